/* tape_file.c - see tape_file.h. */
#include "proofs/job/tape_file.h"

#include <stdlib.h>

#include "base/io/file.h"
#include "proofs/format/safetensors.h"

enum status tape_file_read(struct tape **tape, const char *path, struct error *error)
{
    struct file_bytes bytes;
    enum status status;

    TRY(file_read(&bytes, error, path, TAPE_BYTES_MAX));
    status = tape_parse(tape, bytes.data, bytes.size, error);
    file_bytes_release(&bytes);
    if (status != STATUS_OK) {
        (void)error_wrap(error, "%s", path);
    }
    return status;
}

enum status tape_file_write(const char *path, const struct tape *tape, struct error *error)
{
    uint64_t size = tape_encoded_size(tape);
    uint8_t *bytes = malloc(size);
    enum status status;

    if (bytes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a tape");
    }
    tape_encode(bytes, tape);
    status = file_write_new(path, error, bytes, size, 0644);
    free(bytes);
    return status;
}

/* ---- constants ---------------------------------------------------------- */

void tape_file_free_constants(void **constants, uint32_t count)
{
    for (uint32_t i = 0; constants != NULL && i < count; i++) {
        free(constants[i]);
    }
    free(constants);
}

static uint32_t count_constants(const struct tape *tape)
{
    uint32_t count = 0;

    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        count += tape->tensors[id].role == ROLE_CONSTANT;
    }
    return count;
}

static enum status read_constant(void **constant, const struct safetensors *file,
                                 const struct tensor *tensor, struct error *error)
{
    const struct safetensors_entry *entry;

    TRY(safetensors_find_tensor(&entry, file, tensor, error));
    *constant = malloc(entry->size);
    if (*constant == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the constant '%s'", tensor->name);
    }
    return safetensors_read(file, error, *constant, entry, (size_t)entry->size, 0);
}

static enum status read_constants(void **constants, const struct tape *tape, const char *path,
                                  struct error *error)
{
    struct safetensors file;
    uint32_t at = 0;
    enum status status;

    TRY(safetensors_open(&file, error, path));
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (tape->tensors[id].role == ROLE_CONSTANT) {
            TRY_OUT(read_constant(&constants[at++], &file, &tape->tensors[id], error));
        }
    }
    status = file.entry_count == at
                 ? STATUS_OK
                 : error_set(error, STATUS_BAD_FORMAT, "%s: %u tensors for %u constants", path,
                             file.entry_count, at);
out:
    safetensors_close(&file);
    return status;
}

enum status tape_file_constants(void ***constants, uint32_t *count, const struct tape *tape,
                                const char *path, struct error *error)
{
    enum status status = STATUS_OK;

    *count = count_constants(tape);
    *constants = calloc((size_t)*count + 1, sizeof(**constants));
    if (*constants == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %u constants", *count);
    }
    if (path != NULL) {
        status = read_constants(*constants, tape, path, error);
    } else if (*count > 0) {
        (void)error_set(error, STATUS_USAGE, "the tape has %u constants", *count);
        error_advise(error, "name the file that holds them with --constants");
        status = STATUS_USAGE;
    }
    if (status != STATUS_OK) {
        tape_file_free_constants(*constants, *count);
        *constants = NULL;
    }
    return status;
}

/* Wider types first, as safetensors wants them. */
static uint32_t describe_tensors(struct safetensors_entry *entries, uint32_t *order,
                                 const struct tape *tape)
{
    uint32_t count = 0;

    for (size_t size = 8; size > 0; size /= 2) {
        uint32_t at = 0;

        for (uint32_t id = 0; id < tape->tensor_count; id++) {
            const struct tensor *tensor = &tape->tensors[id];

            if (tensor->role == ROLE_CONSTANT && dtype_size(tensor->dtype) == size) {
                safetensors_describe(&entries[count], tensor);
                order[count++] = at;
            }
            at += tensor->role == ROLE_CONSTANT;
        }
    }
    return count;
}

static enum status add_constants(struct safetensors_writer *writer,
                                 const struct safetensors_entry *entries, uint32_t count,
                                 const uint32_t *order, void *const *constants, struct error *error)
{
    for (uint32_t i = 0; i < count; i++) {
        TRY(safetensors_writer_add(writer, error, constants[order[i]], (size_t)entries[i].size));
    }
    return STATUS_OK;
}

enum status tape_file_write_constants(const char *path, const struct tape *tape,
                                      void *const *constants, struct error *error)
{
    uint32_t count = count_constants(tape);
    struct safetensors_entry *entries = calloc((size_t)count + 1, sizeof(*entries));
    uint32_t *order = calloc((size_t)count + 1, sizeof(*order));
    struct safetensors_writer writer;
    enum status status;

    if (entries == NULL || order == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory for %u constants", count);
        goto out;
    }
    if (file_exists(path)) {
        status = error_set(error, STATUS_REFUSED, "%s: exists already", path);
        goto out;
    }
    (void)describe_tensors(entries, order, tape);
    TRY_OUT(safetensors_writer_open(&writer, error, path, entries, count, NULL, 0));
    status = add_constants(&writer, entries, count, order, constants, error);
    status = safetensors_writer_end(&writer, status, error);
out:
    free(entries);
    free(order);
    return status;
}
