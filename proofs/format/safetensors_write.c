/* safetensors_write.c - see safetensors.h: writing. */
#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "base/io/strict_json.h"
#include "proofs/format/safetensors.h"

/* Every reader accepts such a name, ours included: printable ASCII that JSON need not escape. */
static bool name_is_writable(const char *name)
{
    size_t length = strnlen(name, SAFETENSORS_NAME_MAX + 1);

    for (size_t i = 0; i < length; i++) {
        if (name[i] < '!' || name[i] > '~' || name[i] == '"' || name[i] == '\\') {
            return false;
        }
    }
    return length > 0 && length <= SAFETENSORS_NAME_MAX && strcmp(name, "__metadata__") != 0;
}

void safetensors_describe(struct safetensors_entry *entry, const struct tensor *tensor)
{
    (void)snprintf(entry->name, sizeof(entry->name), "%s", tensor->name);
    entry->element = element_of_dtype(tensor->dtype);
    entry->rank = tensor->rank;
    memcpy(entry->dims, tensor->dims, tensor->rank * sizeof(tensor->dims[0]));
}

static enum status place_entry(struct safetensors_entry *entry, struct error *error,
                               uint64_t *offset)
{
    if (!name_is_writable(entry->name)) {
        return error_set(error, STATUS_BAD_FORMAT, "'%.*s' cannot be the name of a tensor",
                         SAFETENSORS_NAME_MAX, entry->name);
    }
    if (entry->rank > ELEMENT_DIMS_MAX ||
        !element_array_size(&entry->size, entry->element, entry->dims, entry->rank) ||
        entry->size > INT64_MAX - *offset) {
        return error_set(error, STATUS_OVER_LIMIT, "tensor '%s' is too large", entry->name);
    }
    if (*offset % element_size(entry->element) != 0) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "tensor '%s' would not be aligned: wider types come first", entry->name);
    }
    entry->offset = *offset;
    *offset += entry->size;
    return STATUS_OK;
}

static json_t *entry_json(const struct safetensors_entry *entry)
{
    const json_int_t begin = (json_int_t)entry->offset;
    const json_int_t size = (json_int_t)entry->size;
    json_t *shape = json_array();

    for (uint32_t i = 0; i < entry->rank; i++) {
        if (json_array_append_new(shape, json_integer((json_int_t)entry->dims[i])) != 0) {
            json_decref(shape);
            return NULL;
        }
    }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", element_safetensors_name(entry->element),
                     "shape", shape, "data_offsets", begin, begin + size);
}

/* The header as JSON, entries in their order. NULL: no memory, or a text that is not UTF-8. */
static json_t *header_json(const struct safetensors_plan *plan)
{
    const struct safetensors_entry *entries = plan->entries;
    json_t *root = json_object();
    json_t *metadata = plan->text_count > 0 ? json_object() : NULL;
    int failed = root == NULL;

    for (uint32_t i = 0; i < plan->text_count; i++) {
        failed |=
            json_object_set_new(metadata, plan->texts[i].key, json_string(plan->texts[i].value));
    }
    if (plan->text_count > 0) {
        failed |= json_object_set_new(root, "__metadata__", metadata);
    }
    for (uint32_t i = 0; i < plan->entry_count && failed == 0; i++) {
        failed = json_object_set_new(root, entries[i].name, entry_json(&entries[i]));
    }
    if (failed != 0) {
        json_decref(root);
        return NULL;
    }
    return root;
}

static enum status add_bytes(struct safetensors_writer *writer, struct error *error,
                             const void *data, size_t size)
{
    return writer->encryption != NULL ? encryption_writer_add(writer->encryption, error, data, size)
                                      : whole_file_add(&writer->file, error, data, size);
}

/* The length of the header, and the header. */
static enum status encode_header(struct buffer *bytes, struct error *error, const json_t *root)
{
    struct buffer text;
    uint8_t length[8];
    enum status status;

    buffer_init(&text, SAFETENSORS_HEADER_MAX);
    TRY_OUT(strict_json_write(&text, error, root, JSON_COMPACT));
    buffer_add(&text, "       ", (8 - text.size % 8) % 8);
    TRY_OUT(buffer_check(&text, error, "the header"));
    endian_store_le64(length, text.size);
    buffer_add(bytes, length, sizeof(length));
    buffer_add(bytes, text.data, text.size);
    TRY_OUT(buffer_check(bytes, error, "the header"));
out:
    buffer_release(&text);
    return status;
}

static enum status open_file(struct safetensors_writer *writer, struct error *error,
                             const char *path, const struct safetensors_plan *plan)
{
    enum status status;

    if (plan->key == NULL) {
        return whole_file_open(&writer->file, error, path, 0644);
    }
    writer->encryption = malloc(sizeof(*writer->encryption));
    if (writer->encryption == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to encrypt '%s'", path);
    }
    status = encryption_writer_open(writer->encryption, error, path, plan->key, plan->context);
    if (status != STATUS_OK) {
        free(writer->encryption);
        writer->encryption = NULL;
    }
    return status;
}

static enum status place_entries(const struct safetensors_plan *plan, struct error *error,
                                 uint64_t *size)
{
    if (plan->entry_count > SAFETENSORS_ENTRIES_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "%u tensors, at most %d", plan->entry_count,
                         SAFETENSORS_ENTRIES_MAX);
    }
    *size = 0;
    for (uint32_t i = 0; i < plan->entry_count; i++) {
        TRY(place_entry(&plan->entries[i], error, size));
    }
    return STATUS_OK;
}

/* *size: of the data that follows. */
static enum status plan_header(struct buffer *bytes, uint64_t *size,
                               const struct safetensors_plan *plan, struct error *error)
{
    json_t *root;
    enum status status;

    TRY(place_entries(plan, error, size));
    root = header_json(plan);
    if (root == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the header, or text not UTF-8");
    }
    status = json_object_size(root) != (size_t)plan->entry_count + (plan->text_count > 0)
                 ? error_set(error, STATUS_BAD_FORMAT, "two tensors have the same name")
                 : encode_header(bytes, error, root);
    json_decref(root);
    return status;
}

enum status safetensors_plan_header(struct buffer *bytes, const struct safetensors_plan *plan,
                                    struct error *error)
{
    uint64_t size;

    return plan_header(bytes, &size, plan, error);
}

enum status safetensors_writer_open_plan(struct safetensors_writer *writer, struct error *error,
                                         const char *path, const struct safetensors_plan *plan)
{
    struct buffer header;
    enum status status;

    writer->file.descriptor = -1;
    writer->encryption = NULL;
    buffer_init(&header, SAFETENSORS_HEADER_MAX + 8);
    TRY_OUT(plan_header(&header, &writer->left, plan, error));
    TRY_OUT(open_file(writer, error, path, plan));
    status = add_bytes(writer, error, header.data, header.size);
    if (status != STATUS_OK) {
        safetensors_writer_drop(writer);
    }
out:
    buffer_release(&header);
    return status;
}

enum status safetensors_writer_open(struct safetensors_writer *writer, struct error *error,
                                    const char *path, struct safetensors_entry *entries,
                                    uint32_t entry_count, const struct safetensors_text *texts,
                                    uint32_t text_count)
{
    const struct safetensors_plan plan = {
        .entries = entries,
        .entry_count = entry_count,
        .texts = texts,
        .text_count = text_count,
    };

    return safetensors_writer_open_plan(writer, error, path, &plan);
}

enum status safetensors_writer_add(struct safetensors_writer *writer, struct error *error,
                                   const void *data, size_t size)
{
    assert(size <= writer->left);
    writer->left -= size;
    return add_bytes(writer, error, data, size);
}

enum status safetensors_writer_room(uint64_t *first, struct safetensors_writer *writer,
                                    struct error *error)
{
    assert(writer->encryption == NULL);
    TRY(whole_file_room(first, &writer->file, error, writer->left));
    writer->left = 0;
    return STATUS_OK;
}

enum status safetensors_writer_keep(struct safetensors_writer *writer, struct error *error)
{
    enum status status;

    assert(writer->left == 0);
    if (writer->encryption == NULL) {
        return whole_file_keep(&writer->file, error);
    }
    status = encryption_writer_keep(writer->encryption, error);
    free(writer->encryption);
    writer->encryption = NULL;
    return status;
}

void safetensors_writer_drop(struct safetensors_writer *writer)
{
    if (writer->encryption != NULL) {
        encryption_writer_drop(writer->encryption);
        free(writer->encryption);
        writer->encryption = NULL;
    }
    whole_file_drop(&writer->file);
}

enum status safetensors_writer_end(struct safetensors_writer *writer, enum status status,
                                   struct error *error)
{
    if (status != STATUS_OK) {
        safetensors_writer_drop(writer);
        return status;
    }
    return safetensors_writer_keep(writer, error);
}
