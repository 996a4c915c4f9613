/* row_files.c - see row_files.h. */
#include "data/rows/row_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/file.h"
#include "base/io/whole_file.h"
#include "proofs/commit/commit.h"

#define HASHED_AT_ONCE ((size_t)1 << 20)
#define ELEMENT_MAX    4 /* bytes */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are written as they lie");

void row_shape_of(struct row_shape *shape, uint32_t length, uint32_t id_count)
{
    *shape = (struct row_shape){.length = length};
    shape->types[ROW_TOKENS] = id_count <= 256     ? DTYPE_U8
                               : id_count <= 65536 ? DTYPE_U16
                                                   : DTYPE_U32;
    shape->types[ROW_MASK] = DTYPE_U8;
    shape->types[ROW_REACH] = length <= 65536 ? DTYPE_U16 : DTYPE_U32;
}

const char *row_tensor_name(enum row_tensor which)
{
    static const char *const names[ROW_TENSORS] = {"tokens", "mask", "reach"};

    return names[which];
}

void row_file_name(char name[ROW_NAME_MAX], const struct row_shape *shape, enum row_tensor which,
                   bool held_out)
{
    (void)snprintf(name, ROW_NAME_MAX, "%s%s.%s", held_out ? "held-out-" : "",
                   row_tensor_name(which), dtype_name(shape->types[which]));
}

static size_t row_size(const struct row_files *files, enum row_tensor which)
{
    return files->shape.length * dtype_size(files->shape.types[which]);
}

static enum status path_of(char path[FILE_PATH_MAX], const struct row_files *files,
                           enum row_tensor which, struct error *error)
{
    char name[ROW_NAME_MAX];

    row_file_name(name, &files->shape, which, files->held_out);
    return file_path_join(path, FILE_PATH_MAX, error, files->folder, name);
}

void row_files_init(struct row_files *files)
{
    *files = (struct row_files){.descriptors = {-1, -1, -1}};
}

void row_files_close(struct row_files *files)
{
    for (size_t i = 0; i < ROW_TENSORS; i++) {
        if (files->descriptors[i] >= 0) {
            (void)close(files->descriptors[i]);
        }
    }
    free(files->bytes);
    row_files_init(files);
}

static enum status begin_files(struct row_files *files, struct error *error, const char *folder,
                               const struct row_shape *shape, bool held_out)
{
    row_files_init(files);
    files->shape = *shape;
    files->held_out = held_out;
    files->bytes = malloc(2 * ELEMENT_MAX * (size_t)shape->length);
    if (files->bytes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "out of memory for a row");
    }
    if (snprintf(files->folder, sizeof(files->folder), "%s", folder) >=
        (int)sizeof(files->folder)) {
        return error_set(error, STATUS_OVER_LIMIT, "%.100s...: a path that is too long", folder);
    }
    return STATUS_OK;
}

static enum status create_one(struct row_files *files, struct error *error, enum row_tensor which,
                              uint64_t rows)
{
    const uint64_t size = rows * row_size(files, which);
    char path[FILE_PATH_MAX];
    struct stat there;
    int file;

    TRY(path_of(path, files, which, error));
    file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | (rows == 0 ? O_TRUNC : 0), 0666);
    files->descriptors[which] = file;
    if (file < 0 || fstat(file, &there) != 0) {
        return error_set_errno(error, "cannot write %s", path);
    }
    if ((uint64_t)there.st_size < size) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: shorter than it was", path);
    }
    if (ftruncate(file, (off_t)size) != 0 || lseek(file, 0, SEEK_END) < 0) {
        return error_set_errno(error, "cannot write %s", path);
    }
    return STATUS_OK;
}

enum status row_files_create(struct row_files *files, struct error *error, const char *folder,
                             const struct row_shape *shape, bool held_out, uint64_t rows)
{
    enum status status = begin_files(files, error, folder, shape, held_out);

    for (int i = 0; i < ROW_TENSORS && status == STATUS_OK; i++) {
        status = create_one(files, error, (enum row_tensor)i, rows);
    }
    files->rows = rows;
    if (status != STATUS_OK) {
        row_files_close(files);
    }
    return status;
}

static enum status open_one(struct row_files *files, struct error *error, enum row_tensor which)
{
    char path[FILE_PATH_MAX];
    uint64_t size = 0;

    TRY(path_of(path, files, which, error));
    TRY(whole_file_read_open(&files->descriptors[which], &size, error, path));
    if (size % row_size(files, which) != 0) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: %" PRIu64 " bytes are no whole rows of %u",
                         path, size, files->shape.length);
    }
    size /= row_size(files, which);
    if (which != ROW_TOKENS && size != files->rows_there) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "%s: %" PRIu64 " rows, and %" PRIu64 " rows of tokens", path, size,
                         files->rows_there);
    }
    files->rows_there = size;
    return STATUS_OK;
}

enum status row_files_open(struct row_files *files, struct error *error, const char *folder,
                           const struct row_shape *shape, bool held_out)
{
    enum status status = begin_files(files, error, folder, shape, held_out);

    for (int i = 0; i < ROW_TENSORS && status == STATUS_OK; i++) {
        status = open_one(files, error, (enum row_tensor)i);
    }
    if (status != STATUS_OK) {
        row_files_close(files);
    }
    return status;
}

/* ---- rows as bytes ---- */

static void encode_row(uint8_t *bytes, const struct row_files *files, const struct packed_row *row,
                       enum row_tensor which)
{
    const uint32_t *values = which == ROW_TOKENS ? row->tokens : row->reach;
    const uint32_t length = files->shape.length;
    const enum dtype type = files->shape.types[which];

    if (which == ROW_MASK) {
        memcpy(bytes, row->mask, length);
    } else if (type == DTYPE_U32) {
        memcpy(bytes, values, length * sizeof(*values));
    } else if (type == DTYPE_U16) {
        for (uint32_t i = 0; i < length; i++) {
            uint16_t value = (uint16_t)values[i];

            memcpy(bytes + 2 * i, &value, sizeof(value));
        }
    } else {
        for (uint32_t i = 0; i < length; i++) {
            bytes[i] = (uint8_t)values[i];
        }
    }
}

static uint32_t element_at(const uint8_t *bytes, enum dtype type, uint32_t at)
{
    uint32_t value = 0;

    memcpy(&value, bytes + at * dtype_size(type), dtype_size(type));
    return value;
}

enum status row_files_take(void *context, struct error *error, const struct packed_row *row)
{
    struct row_files *files = context;

    for (int i = 0; i < ROW_TENSORS; i++) {
        const size_t size = row_size(files, (enum row_tensor)i);
        size_t done = 0;

        encode_row(files->bytes, files, row, (enum row_tensor)i);
        while (done < size) {
            ssize_t wrote = write(files->descriptors[i], files->bytes + done, size - done);

            if (wrote < 0 && errno != EINTR) {
                return error_set_errno(error, "cannot write to %s", files->folder);
            }
            done += wrote < 0 ? 0 : (size_t)wrote;
        }
    }
    files->rows++;
    return STATUS_OK;
}

enum status row_files_compare(void *context, struct error *error, const struct packed_row *row)
{
    struct row_files *files = context;
    uint8_t *made = files->bytes;
    uint8_t *there = files->bytes + ELEMENT_MAX * (size_t)files->shape.length;

    for (int i = 0; i < ROW_TENSORS && !files->differs && files->rows < files->rows_there; i++) {
        const enum dtype type = files->shape.types[i];
        const size_t size = row_size(files, (enum row_tensor)i);
        uint32_t at = 0;

        encode_row(made, files, row, (enum row_tensor)i);
        TRY(whole_file_read_at(files->descriptors[i], error, there, size, files->rows * size,
                               row_tensor_name((enum row_tensor)i)));
        if (memcmp(made, there, size) == 0) {
            continue;
        }
        while (element_at(made, type, at) == element_at(there, type, at)) {
            at++;
        }
        /* One difference is enough for a sentence; what follows it may all be shifted by a
         * place. */
        files->differs = true;
        (void)snprintf(files->difference, sizeof(files->difference),
                       "%s%s: row %" PRIu64 ", place %u: %u, and the sources make %u",
                       files->held_out ? "held-out " : "", row_tensor_name((enum row_tensor)i),
                       files->rows, at, element_at(there, type, at), element_at(made, type, at));
    }
    files->rows++;
    return STATUS_OK;
}

enum status row_files_sync(struct row_files *files, struct error *error)
{
    for (size_t i = 0; i < ROW_TENSORS; i++) {
        if (files->descriptors[i] >= 0 && fsync(files->descriptors[i]) != 0) {
            return error_set_errno(error, "cannot write to %s", files->folder);
        }
    }
    return STATUS_OK;
}

enum status row_files_read(struct row_files *files, struct error *error, struct packed_row *row,
                           uint64_t index)
{
    for (int i = 0; i < ROW_TENSORS; i++) {
        const enum dtype type = files->shape.types[i];
        const size_t size = row_size(files, (enum row_tensor)i);

        TRY(whole_file_read_at(files->descriptors[i], error, files->bytes, size, index * size,
                               row_tensor_name((enum row_tensor)i)));
        for (uint32_t at = 0; at < files->shape.length; at++) {
            uint32_t value = element_at(files->bytes, type, at);

            if (i == ROW_MASK) {
                row->mask[at] = (uint8_t)value;
            } else if (i == ROW_TOKENS) {
                row->tokens[at] = value;
            } else {
                row->reach[at] = value;
            }
        }
    }
    return STATUS_OK;
}

enum status row_files_root(struct row_files *files, struct error *error, enum row_tensor which,
                           struct digest *root)
{
    /* Files that are read say themselves how many rows they have; files that are written are
     * counted. */
    const uint64_t rows = files->rows_there > 0 ? files->rows_there : files->rows;
    struct tensor tensor = {.name = "data", .role = ROLE_DATA, .dtype = files->shape.types[which]};
    uint64_t left = rows * row_size(files, which);
    struct commit_stream stream;
    uint64_t at = 0;
    uint8_t *bytes;

    tensor.rank = 2;
    tensor.dims[0] = rows;
    tensor.dims[1] = files->shape.length;
    tensor.count = rows * files->shape.length;
    if (tensor.count > TENSOR_COUNT_MAX) {
        return error_set(error, STATUS_OVER_LIMIT,
                         "%" PRIu64 " tokens are over the limit of %" PRIu64, tensor.count,
                         (uint64_t)TENSOR_COUNT_MAX);
    }
    bytes = malloc(HASHED_AT_ONCE);
    if (bytes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "out of memory for a root");
    }
    commit_stream_init(&stream, COMMIT_DATA, &tensor);
    /* In pieces: the rows of a large source are more than memory. */
    while (left > 0) {
        size_t size = left < HASHED_AT_ONCE ? (size_t)left : HASHED_AT_ONCE;

        if (whole_file_read_at(files->descriptors[which], error, bytes, size, at,
                               row_tensor_name(which)) != STATUS_OK) {
            free(bytes);
            return error == NULL ? STATUS_IO : error->status;
        }
        commit_stream_add(&stream, bytes, size, 0);
        left -= size;
        at += size;
    }
    free(bytes);
    commit_stream_root(&stream, root);
    return STATUS_OK;
}
