/* npy.c - see npy.h. */
#include "proofs/format/npy.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/endian.h"
#include "base/io/whole_file.h"

#define MAGIC_SIZE    6
#define TYPE_TEXT_MAX 16

static const uint8_t magic[MAGIC_SIZE] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

/* The text of a header, read from left to right: a Python literal of one known shape. */
struct reader {
    const char *text;
    size_t size;
    size_t at;
};

static void skip_blanks(struct reader *reader)
{
    while (reader->at < reader->size && reader->text[reader->at] == ' ') {
        reader->at++;
    }
}

static bool take(struct reader *reader, char wanted)
{
    skip_blanks(reader);
    if (reader->at < reader->size && reader->text[reader->at] == wanted) {
        reader->at++;
        return true;
    }
    return false;
}

static bool take_word(struct reader *reader, const char *word)
{
    size_t length = strlen(word);

    skip_blanks(reader);
    if (reader->size - reader->at >= length &&
        memcmp(reader->text + reader->at, word, length) == 0) {
        reader->at += length;
        return true;
    }
    return false;
}

/* A string in either quotes, without escapes, shorter than out_size. */
static bool take_string(struct reader *reader, char *out, size_t out_size)
{
    char quote = take(reader, '\'') ? '\'' : take(reader, '"') ? '"' : '\0';
    size_t length = 0;

    while (quote != '\0' && reader->at < reader->size && length + 1 < out_size) {
        char c = reader->text[reader->at++];

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

static bool take_number(struct reader *reader, uint64_t *number)
{
    size_t digits = 0;

    skip_blanks(reader);
    *number = 0;
    while (reader->at < reader->size && reader->text[reader->at] >= '0' &&
           reader->text[reader->at] <= '9') {
        uint64_t digit = (uint64_t)(reader->text[reader->at] - '0');

        if (*number > (INT64_MAX - digit) / 10) {
            return false;
        }
        *number = *number * 10 + digit;
        reader->at++;
        digits++;
    }
    return digits > 0;
}

/* "()", "(3,)", "(3, 4)": one number needs its comma, as Python has it. */
static bool take_shape(struct reader *reader, struct npy *npy)
{
    bool comma = true;

    npy->rank = 0;
    if (!take(reader, '(')) {
        return false;
    }
    while (!take(reader, ')')) {
        if (!comma || npy->rank == ELEMENT_DIMS_MAX ||
            !take_number(reader, &npy->dims[npy->rank])) {
            return false;
        }
        npy->rank++;
        comma = take(reader, ',');
    }
    return npy->rank != 1 || comma;
}

enum {
    SEEN_TYPE = 1,
    SEEN_ORDER = 2,
    SEEN_SHAPE = 4,
    SEEN_ALL = 7,
};

static enum status read_type(struct reader *reader, struct npy *npy, struct error *error)
{
    char type[TYPE_TEXT_MAX];

    if (!take_string(reader, type, sizeof(type))) {
        return error_set(error, STATUS_BAD_FORMAT, "the element type is not a plain text");
    }
    if (!element_of_npy_name(&npy->element, type)) {
        error_set(error, STATUS_BAD_FORMAT, "the element type '%s' is not one we read", type);
        error_advise(error, "save it little-endian, for example a.astype('<f4')");
        return STATUS_BAD_FORMAT;
    }
    return STATUS_OK;
}

static enum status read_order(struct reader *reader, struct error *error)
{
    if (take_word(reader, "False")) {
        return STATUS_OK;
    }
    if (take_word(reader, "True")) {
        error_set(error, STATUS_BAD_FORMAT, "the array is in Fortran order");
        error_advise(error, "save it with numpy.ascontiguousarray(a)");
        return STATUS_BAD_FORMAT;
    }
    return error_set(error, STATUS_BAD_FORMAT, "fortran_order is neither True nor False");
}

/* One "key: value" of the dictionary; seen collects the keys, each of which comes once. */
static enum status read_field(struct reader *reader, struct npy *npy, int *seen,
                              struct error *error)
{
    char key[TYPE_TEXT_MAX];
    int field;

    if (!take_string(reader, key, sizeof(key)) || !take(reader, ':')) {
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
        return read_type(reader, npy, error);
    }
    if (field == SEEN_ORDER) {
        return read_order(reader, error);
    }
    if (!take_shape(reader, npy)) {
        return error_set(error, STATUS_BAD_FORMAT, "no shape of at most %d dims", ELEMENT_DIMS_MAX);
    }
    return STATUS_OK;
}

static enum status read_dictionary(struct reader *reader, struct npy *npy, struct error *error)
{
    bool comma = true;
    int seen = 0;

    if (!take(reader, '{')) {
        return error_set(error, STATUS_BAD_FORMAT, "the header is not a dictionary");
    }
    while (!take(reader, '}')) {
        enum status status;

        if (!comma) {
            return error_set(error, STATUS_BAD_FORMAT, "a comma is missing");
        }
        status = read_field(reader, npy, &seen, error);
        if (status != STATUS_OK) {
            return status;
        }
        comma = take(reader, ',');
    }
    skip_blanks(reader);
    if (seen != SEEN_ALL || reader->at + 1 != reader->size || reader->text[reader->at] != '\n') {
        return error_set(error, STATUS_BAD_FORMAT, "the header is incomplete or does not end");
    }
    return STATUS_OK;
}

/* Finds the text: its start and size, from the version and the length before it. */
static enum status find_text(struct reader *reader, uint64_t *data_offset, const uint8_t *bytes,
                             uint64_t file_size, struct error *error)
{
    uint64_t start;
    uint64_t size;

    if (file_size < 12 || memcmp(bytes, magic, MAGIC_SIZE) != 0) {
        return error_set(error, STATUS_BAD_FORMAT, "byte 0: this is not an .npy file");
    }
    if (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0) {
        return error_set(error, STATUS_BAD_FORMAT, "byte %d: version %u.%u of .npy is not known",
                         MAGIC_SIZE, bytes[6], bytes[7]);
    }
    if (bytes[6] == 1) {
        start = 10;
        size = endian_load_le16(bytes + 8);
    } else {
        start = 12;
        size = endian_load_le32(bytes + 8);
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
    *reader = (struct reader){(const char *)bytes + start, (size_t)size, 0};
    *data_offset = start + size;
    return STATUS_OK;
}

enum status npy_header_read(struct npy *npy, struct error *error, const uint8_t *bytes,
                            uint64_t file_size)
{
    struct reader reader = {0};
    enum status status;

    memset(npy, 0, sizeof(*npy));
    status = find_text(&reader, &npy->data_offset, bytes, file_size, error);
    if (status == STATUS_OK) {
        status = read_dictionary(&reader, npy, error);
        if (status != STATUS_OK) {
            (void)error_wrap(error, "byte %zu",
                             (size_t)(reader.text - (const char *)bytes) + reader.at);
        }
    }
    if (status != STATUS_OK) {
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

size_t npy_header_write(uint8_t bytes[NPY_HEADER_MAX], struct npy *npy)
{
    char *text = (char *)bytes + 10;
    size_t room = NPY_HEADER_MAX - 10;
    size_t used;
    size_t size;
    bool fits = element_array_size(&npy->data_size, npy->element, npy->dims, npy->rank);

    assert(fits);
    assert(npy->rank <= ELEMENT_DIMS_MAX);
    assert(element_npy_name(npy->element) != NULL);
    used = (size_t)snprintf(text, room, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                            element_npy_name(npy->element));
    for (uint32_t i = 0; i < npy->rank; i++) {
        used += (size_t)snprintf(text + used, room - used, "%s%llu%s", i == 0 ? "" : " ",
                                 (unsigned long long)npy->dims[i],
                                 i + 1 < npy->rank || npy->rank == 1 ? "," : "");
    }
    used += (size_t)snprintf(text + used, room - used, "), }");
    size = (10 + used + 1 + 63) / 64 * 64;
    memset(text + used, ' ', size - 10 - used);
    bytes[size - 1] = '\n';
    memcpy(bytes, magic, MAGIC_SIZE);
    bytes[6] = 1;
    bytes[7] = 0;
    endian_store_le16(bytes + 8, (uint16_t)(size - 10));
    npy->data_offset = size;
    return size;
}

enum status npy_open(struct npy_file *file, struct error *error, const char *path)
{
    uint8_t header[NPY_HEADER_MAX];
    uint64_t size;
    enum status status = whole_file_read_open(&file->descriptor, &size, error, path);

    if (status != STATUS_OK) {
        return status;
    }
    snprintf(file->path, sizeof(file->path), "%s", path);
    status = whole_file_read_at(file->descriptor, error, header,
                                size < sizeof(header) ? (size_t)size : sizeof(header), 0, path);
    if (status == STATUS_OK) {
        status = npy_header_read(&file->npy, error, header, size);
        if (status != STATUS_OK) {
            error_wrap(error, "%s", path);
        }
    }
    if (status != STATUS_OK) {
        npy_close(file);
    }
    return status;
}

enum status npy_read(const struct npy_file *file, struct error *error, void *data, size_t size,
                     uint64_t from)
{
    assert(from <= file->npy.data_size);
    assert(size <= file->npy.data_size - from);
    return whole_file_read_at(file->descriptor, error, data, size, file->npy.data_offset + from,
                              file->path);
}

void npy_close(struct npy_file *file)
{
    if (file->descriptor >= 0) {
        close(file->descriptor);
        file->descriptor = -1;
    }
}

enum status npy_write(const char *path, struct error *error, struct npy *npy, const void *data)
{
    uint8_t header[NPY_HEADER_MAX];
    size_t header_size = npy_header_write(header, npy);
    struct whole_file file;
    enum status status = whole_file_open(&file, error, path, 0644);

    if (status == STATUS_OK) {
        status = whole_file_add(&file, error, header, header_size);
    }
    if (status == STATUS_OK) {
        status = whole_file_add(&file, error, data, (size_t)npy->data_size);
    }
    if (status == STATUS_OK) {
        return whole_file_keep(&file, error);
    }
    whole_file_drop(&file);
    return status;
}
