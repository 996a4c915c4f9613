/* safetensors.c - see safetensors.h: reading. */
#include "proofs/format/safetensors.h"

#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/endian.h"
#include "base/io/strict_json.h"

#define HEADER_DEPTH_MAX 3

struct header_text {
    const char *bytes;
    size_t size;
};

/* Names reach logs and terminals: no control characters, not even those of UTF-8's C1 block. */
static bool name_is_plain(const char *name)
{
    size_t length = strnlen(name, SAFETENSORS_NAME_MAX + 1);

    if (length == 0 || length > SAFETENSORS_NAME_MAX) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)name[i];

        if (c < ' ' || c == 0x7F || (c == 0xC2 && (unsigned char)name[i + 1] < 0xA0)) {
            return false;
        }
    }
    return true;
}

/* A whole number from 0; a real of JSON is none. */
static bool read_number(uint64_t *number, const json_t *value)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        return false;
    }
    *number = (uint64_t)json_integer_value(value);
    return true;
}

static bool read_shape(struct safetensors_entry *entry, const json_t *shape)
{
    if (!json_is_array(shape) || json_array_size(shape) > ELEMENT_DIMS_MAX) {
        return false;
    }
    entry->rank = (uint32_t)json_array_size(shape);
    for (uint32_t i = 0; i < entry->rank; i++) {
        if (!read_number(&entry->dims[i], json_array_get(shape, i))) {
            return false;
        }
    }
    return true;
}

/* Reads the place in the data: it must lie inside, and be as long as type and shape say. */
static enum status read_offsets(struct safetensors_entry *entry, struct error *error,
                                const json_t *offsets, uint64_t data_size)
{
    uint64_t end;

    if (!json_is_array(offsets) || json_array_size(offsets) != 2 ||
        !read_number(&entry->offset, json_array_get(offsets, 0)) ||
        !read_number(&end, json_array_get(offsets, 1))) {
        return error_set(error, STATUS_BAD_FORMAT, "data_offsets are not two whole numbers");
    }
    if (entry->offset > end || end > data_size) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "bytes %llu to %llu lie outside the %llu of the data",
                         (unsigned long long)entry->offset, (unsigned long long)end,
                         (unsigned long long)data_size);
    }
    if (!element_array_size(&entry->size, entry->element, entry->dims, entry->rank) ||
        entry->size != end - entry->offset) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "type and shape do not take the %llu bytes from %llu to %llu",
                         (unsigned long long)(end - entry->offset),
                         (unsigned long long)entry->offset, (unsigned long long)end);
    }
    return STATUS_OK;
}

static enum status read_entry(struct safetensors_entry *entry, struct error *error,
                              const json_t *value, uint64_t data_size)
{
    const char *type = json_string_value(json_object_get(value, "dtype"));

    if (!json_is_object(value) || json_object_size(value) != 3) {
        return error_set(error, STATUS_BAD_FORMAT, "not exactly dtype, shape and data_offsets");
    }
    if (type == NULL || !element_of_safetensors_name(&entry->element, type)) {
        return error_set(error, STATUS_BAD_FORMAT, "the dtype is not one we read");
    }
    if (!read_shape(entry, json_object_get(value, "shape"))) {
        return error_set(error, STATUS_BAD_FORMAT, "the shape is not at most %d whole numbers",
                         ELEMENT_DIMS_MAX);
    }
    return read_offsets(entry, error, json_object_get(value, "data_offsets"), data_size);
}

static bool is_metadata(const char *key)
{
    return strcmp(key, "__metadata__") == 0;
}

static enum status read_metadata(struct safetensors *file, struct error *error, json_t *value)
{
    const char *key;
    json_t *text;

    if (!json_is_object(value)) {
        return error_set(error, STATUS_BAD_FORMAT, "__metadata__ is not an object");
    }
    json_object_foreach(value, key, text)
    {
        if (!json_is_string(text)) {
            return error_set(error, STATUS_BAD_FORMAT, "__metadata__ holds more than texts");
        }
    }
    file->metadata = json_incref(value);
    return STATUS_OK;
}

static int by_offset(const void *left, const void *right)
{
    const struct safetensors_entry *a = left;
    const struct safetensors_entry *b = right;

    if (a->offset != b->offset) {
        return a->offset < b->offset ? -1 : 1;
    }
    /* Empty tensors share their offset with the one behind them. */
    if (a->size != b->size) {
        return a->size < b->size ? -1 : 1;
    }
    return strcmp(a->name, b->name);
}

/* The tensors must cover the data from the first to the last byte, each byte once. */
static enum status check_cover(struct safetensors *file, struct error *error)
{
    uint64_t covered = 0;

    if (file->entry_count > 0) {
        qsort(file->entries, file->entry_count, sizeof(file->entries[0]), by_offset);
    }
    for (uint32_t i = 0; i < file->entry_count; i++) {
        if (file->entries[i].offset != covered) {
            return error_set(error, STATUS_BAD_FORMAT, "byte %llu: tensor '%s' %s",
                             (unsigned long long)(file->data_offset + file->entries[i].offset),
                             file->entries[i].name,
                             file->entries[i].offset < covered ? "overlaps another"
                                                               : "leaves a hole before it");
        }
        covered += file->entries[i].size;
    }
    if (covered != file->data_size) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "byte %llu: %llu bytes of data belong to no tensor",
                         (unsigned long long)(file->data_offset + covered),
                         (unsigned long long)(file->data_size - covered));
    }
    return STATUS_OK;
}

/* The byte at which the header names this key; its start where the key is written with escapes. */
static size_t place_of(const struct header_text *header, const char *key)
{
    char quoted[SAFETENSORS_NAME_MAX + 3];
    int length = snprintf(quoted, sizeof(quoted), "\"%s\"", key);
    const char *found = length < (int)sizeof(quoted)
                            ? memmem(header->bytes, header->size, quoted, (size_t)length)
                            : NULL;

    return 8 + (found == NULL ? 0 : (size_t)(found - header->bytes));
}

static enum status read_entries(struct safetensors *file, struct error *error, json_t *root,
                                const struct header_text *header)
{
    const char *key;
    json_t *value;

    json_object_foreach(root, key, value)
    {
        struct safetensors_entry *entry = &file->entries[file->entry_count];
        enum status status;

        if (is_metadata(key)) {
            status = read_metadata(file, error, value);
        } else if (!name_is_plain(key)) {
            status = error_set(error, STATUS_BAD_FORMAT,
                               "the name of tensor %u is empty, longer than %d bytes or not plain",
                               file->entry_count, SAFETENSORS_NAME_MAX);
        } else {
            memcpy(entry->name, key, strlen(key) + 1);
            status = read_entry(entry, error, value, file->data_size);
            if (status != STATUS_OK) {
                error_wrap(error, "tensor '%s'", entry->name);
            }
            file->entry_count++;
        }
        if (status != STATUS_OK) {
            error_wrap(error, "byte %zu", place_of(header, key));
            return status;
        }
    }
    return check_cover(file, error);
}

static enum status read_root(struct safetensors *file, struct error *error, json_t *root,
                             const struct header_text *header)
{
    size_t count = json_object_size(root);

    if (!json_is_object(root)) {
        return error_set(error, STATUS_BAD_FORMAT, "byte 8: the header is not a JSON object");
    }
    if (count > SAFETENSORS_ENTRIES_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "byte 8: %zu tensors, at most %d are read",
                         count, SAFETENSORS_ENTRIES_MAX);
    }
    file->entries = calloc(count + 1, sizeof(file->entries[0]));
    if (file->entries == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %zu tensors", count);
    }
    return read_entries(file, error, root, header);
}

enum status safetensors_header_read(struct safetensors *file, struct error *error,
                                    const char *header, size_t header_size, uint64_t data_size)
{
    json_t *root;
    enum status status;

    *file = (struct safetensors){.descriptor = -1, .data_size = data_size};
    file->data_offset = 8 + (uint64_t)header_size;
    if (header_size > SAFETENSORS_HEADER_MAX) {
        return error_set(error, STATUS_OVER_LIMIT,
                         "byte 0: a header of %zu bytes, at most %u are read", header_size,
                         SAFETENSORS_HEADER_MAX);
    }
    if (header_size == 0 || header[0] != '{') {
        return error_set(error, STATUS_BAD_FORMAT, "byte 8: the header does not begin with '{'");
    }
    TRY(strict_json_parse(&root, error, "the header at byte 8", header, header_size,
                          SAFETENSORS_HEADER_MAX, HEADER_DEPTH_MAX));
    status = read_root(file, error, root, &(struct header_text){header, header_size});
    json_decref(root);
    if (status != STATUS_OK) {
        safetensors_close(file);
    }
    return status;
}

static enum status read_bytes(const struct safetensors *file, struct error *error, void *data,
                              size_t size, uint64_t offset)
{
    if (file->encryption != NULL) {
        return encryption_reader_read(file->encryption, error, data, size, offset);
    }
    return whole_file_read_at(file->descriptor, error, data, size, offset, file->path);
}

/* Reads the header through source, which is open; file gets the header's fields alone. */
static enum status read_file(struct safetensors *file, struct error *error,
                             const struct safetensors *source, uint64_t file_size)
{
    uint8_t length[8];
    uint64_t header_size;
    char *header;
    enum status status;

    if (file_size < sizeof(length)) {
        return error_set(error, STATUS_BAD_FORMAT, "'%s' ends at byte %llu", source->path,
                         (unsigned long long)file_size);
    }
    TRY(read_bytes(source, error, length, sizeof(length), 0));
    header_size = endian_load_le64(length);
    /* The length is a stranger's: it is compared with the file and the maximum before memory is
     * taken. */
    if (header_size > file_size - sizeof(length)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "'%s': byte 0: a header of %llu bytes in a file of %llu", source->path,
                         (unsigned long long)header_size, (unsigned long long)file_size);
    }
    if (header_size > SAFETENSORS_HEADER_MAX) {
        return error_set(error, STATUS_OVER_LIMIT,
                         "'%s': byte 0: a header of %llu bytes, at most %u", source->path,
                         (unsigned long long)header_size, SAFETENSORS_HEADER_MAX);
    }
    header = malloc((size_t)header_size + 1);
    if (header == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the header of '%s'", source->path);
    }
    TRY_OUT(read_bytes(source, error, header, (size_t)header_size, sizeof(length)));
    status = safetensors_header_read(file, error, header, (size_t)header_size,
                                     file_size - sizeof(length) - header_size);
    if (status != STATUS_OK) {
        error_wrap(error, "%s", source->path);
    }
out:
    free(header);
    return status;
}

/* Closes the source when its header is refused; else file takes it over. */
static enum status take_source(struct safetensors *file, struct error *error,
                               struct safetensors *source, uint64_t file_size)
{
    enum status status = read_file(file, error, source, file_size);

    if (status != STATUS_OK) {
        safetensors_close(source);
        return status;
    }
    file->descriptor = source->descriptor;
    file->encryption = source->encryption;
    memcpy(file->path, source->path, sizeof(file->path));
    return STATUS_OK;
}

enum status safetensors_open(struct safetensors *file, struct error *error, const char *path)
{
    struct safetensors source = {.descriptor = -1};
    uint64_t size;
    enum status status = whole_file_read_open(&source.descriptor, &size, error, path);

    *file = (struct safetensors){.descriptor = -1};
    if (status != STATUS_OK) {
        return status;
    }
    snprintf(source.path, sizeof(source.path), "%s", path);
    return take_source(file, error, &source, size);
}

enum status safetensors_open_encrypted(struct safetensors *file, struct error *error,
                                       const char *path, const struct encryption_key *key,
                                       const char *context)
{
    struct safetensors source = {.descriptor = -1,
                                 .encryption = malloc(sizeof(struct encryption_reader))};
    enum status status;

    *file = (struct safetensors){.descriptor = -1};
    if (source.encryption == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to open '%s'", path);
    }
    status = encryption_reader_open(source.encryption, error, path, key, context);
    if (status != STATUS_OK) {
        free(source.encryption);
        return status;
    }
    snprintf(source.path, sizeof(source.path), "%s", path);
    return take_source(file, error, &source, source.encryption->size);
}

void safetensors_close(struct safetensors *file)
{
    if (file->descriptor >= 0) {
        close(file->descriptor);
    }
    if (file->encryption != NULL) {
        encryption_reader_close(file->encryption);
        free(file->encryption);
    }
    json_decref(file->metadata);
    free(file->entries);
    *file = (struct safetensors){.descriptor = -1};
}

const struct safetensors_entry *safetensors_find(const struct safetensors *file, const char *name)
{
    for (uint32_t i = 0; i < file->entry_count; i++) {
        if (strcmp(file->entries[i].name, name) == 0) {
            return &file->entries[i];
        }
    }
    return NULL;
}

bool safetensors_entry_fits(const struct safetensors_entry *entry, const struct tensor *tensor)
{
    return entry->element == element_of_dtype(tensor->dtype) && entry->rank == tensor->rank &&
           memcmp(entry->dims, tensor->dims, tensor->rank * sizeof(tensor->dims[0])) == 0;
}

enum status safetensors_find_tensor(const struct safetensors_entry **entry,
                                    const struct safetensors *file, const struct tensor *tensor,
                                    struct error *error)
{
    *entry = safetensors_find(file, tensor->name);
    if (*entry == NULL || !safetensors_entry_fits(*entry, tensor)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "%s: no tensor '%s' of the type and shape that the job wants", file->path,
                         tensor->name);
    }
    return STATUS_OK;
}

const char *safetensors_metadata(const struct safetensors *file, const char *key)
{
    return json_string_value(json_object_get(file->metadata, key));
}

size_t safetensors_metadata_count(const struct safetensors *file)
{
    return json_object_size(file->metadata);
}

enum status safetensors_read(const struct safetensors *file, struct error *error, void *data,
                             const struct safetensors_entry *entry, size_t size, uint64_t from)
{
    assert(from <= entry->size);
    assert(size <= entry->size - from);
    return read_bytes(file, error, data, size, file->data_offset + entry->offset + from);
}
