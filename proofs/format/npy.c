/* npy.c - see npy.h. */
#include "proofs/format/npy.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/endian.h"

#define MAGIC_SIZE    6
#define TYPE_TEXT_MAX 16

static const uint8_t magic[MAGIC_SIZE] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

/* The text of a header: a Python literal of one known shape, read from left to right. */
struct npy_text {
    const char *bytes;
    size_t size;
    size_t at;
};

static void skip_blanks(struct npy_text *text)
{
    while (text->at < text->size && text->bytes[text->at] == ' ') {
        text->at++;
    }
}

static bool take_letter(struct npy_text *text, char wanted)
{
    skip_blanks(text);
    if (text->at < text->size && text->bytes[text->at] == wanted) {
        text->at++;
        return true;
    }
    return false;
}

static bool take_word(struct npy_text *text, const char *word)
{
    size_t length = strlen(word);

    skip_blanks(text);
    if (text->size - text->at >= length && memcmp(text->bytes + text->at, word, length) == 0) {
        text->at += length;
        return true;
    }
    return false;
}

/* A string in either quotes, without escapes, shorter than out_size. */
static bool take_string(struct npy_text *text, char *out, size_t out_size)
{
    char quote = take_letter(text, '\'') ? '\'' : take_letter(text, '"') ? '"' : '\0';
    size_t length = 0;

    while (quote != '\0' && text->at < text->size && length + 1 < out_size) {
        char c = text->bytes[text->at++];

        if (c == quote) {
            out[length] = '\0';
            return true;
        }
        if (c < ' ' || c > '~' || c == '\\') {
            return false;
        }
        out[length++] = c;
    }
    return false;
}

static bool take_number(struct npy_text *text, uint64_t *number)
{
    size_t digits = 0;

    skip_blanks(text);
    *number = 0;
    while (text->at < text->size && text->bytes[text->at] >= '0' && text->bytes[text->at] <= '9') {
        uint64_t digit = (uint64_t)(text->bytes[text->at] - '0');

        if (*number > (INT64_MAX - digit) / 10) {
            return false;
        }
        *number = *number * 10 + digit;
        text->at++;
        digits++;
    }
    return digits > 0;
}

/* "()", "(3,)", "(3, 4)": one number needs its comma, as Python has it. */
static bool take_shape(struct npy_text *text, struct npy *npy)
{
    bool comma = true;

    npy->rank = 0;
    if (!take_letter(text, '(')) {
        return false;
    }
    while (!take_letter(text, ')')) {
        if (!comma || npy->rank == ELEMENT_DIMS_MAX || !take_number(text, &npy->dims[npy->rank])) {
            return false;
        }
        npy->rank++;
        comma = take_letter(text, ',');
    }
    return npy->rank != 1 || comma;
}

enum {
    SEEN_TYPE = 1,
    SEEN_ORDER = 2,
    SEEN_SHAPE = 4,
    SEEN_ALL = 7,
};

static enum status read_type(struct npy_text *text, struct npy *npy, struct error *error)
{
    char type[TYPE_TEXT_MAX];

    if (!take_string(text, type, sizeof(type))) {
        return error_set(error, STATUS_BAD_FORMAT, "the element type is not a plain text");
    }
    if (!element_of_npy_name(&npy->element, type)) {
        error_set(error, STATUS_BAD_FORMAT, "the element type '%s' is not one we read", type);
        error_advise(error, "save it little-endian, for example a.astype('<f4')");
        return STATUS_BAD_FORMAT;
    }
    return STATUS_OK;
}

static enum status read_order(struct npy_text *text, struct error *error)
{
    if (take_word(text, "False")) {
        return STATUS_OK;
    }
    if (take_word(text, "True")) {
        error_set(error, STATUS_BAD_FORMAT, "the array is in Fortran order");
        error_advise(error, "save it with numpy.ascontiguousarray(a)");
        return STATUS_BAD_FORMAT;
    }
    return error_set(error, STATUS_BAD_FORMAT, "fortran_order is neither True nor False");
}

/* One "key: value" of the dictionary; seen collects the keys, each of which comes once. */
static enum status read_field(struct npy_text *text, struct npy *npy, int *seen,
                              struct error *error)
{
    char key[TYPE_TEXT_MAX];
    int field;

    if (!take_string(text, key, sizeof(key)) || !take_letter(text, ':')) {
        return error_set(error, STATUS_BAD_FORMAT, "no key and its colon");
    }
    field = strcmp(key, "descr") == 0           ? SEEN_TYPE
            : strcmp(key, "fortran_order") == 0 ? SEEN_ORDER
            : strcmp(key, "shape") == 0         ? SEEN_SHAPE
                                                : 0;
    if (field == 0 || (*seen & field) != 0) {
        return error_set(error, STATUS_BAD_FORMAT, "the key '%s' is %s", key,
                         field == 0 ? "not known" : "there twice");
    }
    *seen |= field;
    if (field == SEEN_TYPE) {
        return read_type(text, npy, error);
    }
    if (field == SEEN_ORDER) {
        return read_order(text, error);
    }
    if (!take_shape(text, npy)) {
        return error_set(error, STATUS_BAD_FORMAT, "no shape of at most %d dims", ELEMENT_DIMS_MAX);
    }
    return STATUS_OK;
}

static enum status read_dictionary(struct npy_text *text, struct npy *npy, struct error *error)
{
    bool comma = true;
    int seen = 0;

    if (!take_letter(text, '{')) {
        return error_set(error, STATUS_BAD_FORMAT, "the header is not a dictionary");
    }
    while (!take_letter(text, '}')) {

        if (!comma) {
            return error_set(error, STATUS_BAD_FORMAT, "a comma is missing");
        }
        TRY(read_field(text, npy, &seen, error));
        comma = take_letter(text, ',');
    }
    skip_blanks(text);
    if (seen != SEEN_ALL || text->at + 1 != text->size || text->bytes[text->at] != '\n') {
        return error_set(error, STATUS_BAD_FORMAT, "the header is incomplete or does not end");
    }
    return STATUS_OK;
}

/* Behind the magic stand the version, of two bytes, and the length of the header: of two bytes in
 * version 1, of four in later ones. */
enum { VERSION_AT = MAGIC_SIZE, LENGTH_AT = 8, TEXT_1_AT = 10, TEXT_2_AT = 12 };

/* Finds the text of the header, by the version and the length before it. */
static enum status find_text(struct npy_text *text, uint64_t *data_offset, const uint8_t *bytes,
                             uint64_t file_size, struct error *error)
{
    uint64_t start;
    uint64_t size;

    if (file_size < TEXT_2_AT || memcmp(bytes, magic, MAGIC_SIZE) != 0) {
        return error_set(error, STATUS_BAD_FORMAT, "byte 0: this is not an .npy file");
    }
    if (bytes[VERSION_AT] < 1 || bytes[VERSION_AT] > 3 || bytes[VERSION_AT + 1] != 0) {
        return error_set(error, STATUS_BAD_FORMAT, "byte %d: version %u.%u of .npy is not known",
                         VERSION_AT, bytes[VERSION_AT], bytes[VERSION_AT + 1]);
    }
    if (bytes[VERSION_AT] == 1) {
        start = TEXT_1_AT;
        size = endian_load_le16(bytes + LENGTH_AT);
    } else {
        start = TEXT_2_AT;
        size = endian_load_le32(bytes + LENGTH_AT);
    }
    if (start + size > NPY_HEADER_MAX) {
        return error_set(error, STATUS_OVER_LIMIT,
                         "byte 8: a header of %llu bytes, at most %d are read",
                         (unsigned long long)size, NPY_HEADER_MAX);
    }
    if (start + size > file_size) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "byte 8: a header of %llu bytes in a file of %llu",
                         (unsigned long long)size, (unsigned long long)file_size);
    }
    *text = (struct npy_text){(const char *)bytes + start, (size_t)size, 0};
    *data_offset = start + size;
    return STATUS_OK;
}

enum status npy_header_read(struct npy *npy, struct error *error, const uint8_t *bytes,
                            uint64_t file_size)
{
    struct npy_text text = {0};
    enum status status;

    memset(npy, 0, sizeof(*npy));
    TRY(find_text(&text, &npy->data_offset, bytes, file_size, error));
    status = read_dictionary(&text, npy, error);
    if (status != STATUS_OK) {
        (void)error_wrap(error, "byte %zu", (size_t)(text.bytes - (const char *)bytes) + text.at);
        return status;
    }
    if (!element_array_size(&npy->data_size, npy->element, npy->dims, npy->rank) ||
        npy->data_size != file_size - npy->data_offset) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "byte %llu: the header announces another number of bytes than the %llu "
                         "that follow",
                         (unsigned long long)npy->data_offset,
                         (unsigned long long)(file_size - npy->data_offset));
    }
    return STATUS_OK;
}
