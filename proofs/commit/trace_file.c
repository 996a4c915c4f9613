/* trace_file.c - see trace_file.h. */
#include "proofs/commit/trace_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/endian.h"
#include "proofs/hash/sha256.h"

#define HEAD_SIZE ((size_t)96) /* before the roots */
#define MARK_AT   32
#define ITEMS_AT  64 /* how many items there are */
#define BATCH_AT  68

static const char file_tag[32] = "lockstep.tensors.v3";

/* ---- what a file has, and where ------------------------------------------ */

/* A file of the tape that is not there yet. */
static struct trace_file shape_of(const struct tape *tape, uint32_t batch)
{
    struct trace_file shape = {.tape = tape, .batch = batch};

    repeat_layout_of(&shape.layout, tape);
    return shape;
}

static uint64_t head_size(const struct tape *tape)
{
    return HEAD_SIZE + ((uint64_t)trace_item_count(tape) + 1) * DIGEST_SIZE;
}

static bool has_item(const struct trace_file *shape, uint32_t item)
{
    uint32_t batch;

    return !repeat_holds(&batch, &shape->layout, item) ||
           (batch != TENSOR_NONE && batch == shape->batch);
}

bool trace_file_has(const struct trace_file *file, uint32_t item)
{
    return file->bytes != NULL && has_item(file, item);
}

static uint64_t room_of(const struct trace_file *shape, uint32_t item, uint32_t id)
{
    return has_item(shape, item) ? commit_tensor_size(&shape->tape->tensors[id]) : 0;
}

/* What an operation makes is kept of one micro-batch. The item of an output: in the turn that is
 * kept, or in the first. */
static uint32_t kept_item(const struct trace_file *shape, uint32_t op, uint32_t id)
{
    const struct tape *tape = shape->tape;
    const struct loop *loop = tape_loop_of(tape, op);
    uint32_t turn = shape->batch - tape->origins[op].instance;

    return repeat_turn_item(&shape->layout, tape->items[id],
                            loop != NULL && turn < loop->turns ? turn : 0);
}

/* Of an item; of none, the size of the file. Tensors stand in the order in which they are made. */
static uint64_t tensor_place(const struct trace_file *shape, uint32_t wanted)
{
    const struct tape *tape = shape->tape;
    uint64_t place = head_size(tape);
    uint32_t next = 0;

    for (; next < tape->state_count; next++) {
        if (next == wanted) {
            return place;
        }
        place += room_of(shape, next, tape->states[next].before);
    }
    for (uint32_t at = 0; at < tape->op_count; at++) {
        for (uint32_t i = 0; i < tape->ops[at].output_count; i++, next++) {
            uint32_t id = tape->ops[at].outputs[i];
            uint32_t item = tape->items == NULL ? next : kept_item(shape, at, id);

            if (item == wanted) {
                return place;
            }
            place += room_of(shape, item, id);
        }
    }
    return place;
}

static uint64_t whole_size(const struct trace_file *shape)
{
    return tensor_place(shape, UINT32_MAX);
}

/* Micro-batches make tensors of the same sizes. */
uint64_t trace_file_size(const struct tape *tape)
{
    const struct trace_file shape = shape_of(tape, 0);

    return whole_size(&shape);
}

const uint8_t *trace_file_tensor(const struct trace_file *file, uint32_t item)
{
    assert(trace_file_has(file, item));
    return file->bytes + tensor_place(file, item);
}

void trace_file_close(struct trace_file *file)
{
    if (file->bytes != NULL) {
        (void)munmap((void *)(uintptr_t)file->bytes, file->size);
    }
    memset(file, 0, sizeof(*file));
}

void trace_file_remove(const struct trace_file *file)
{
    (void)unlink(file->path);
}

/* Which micro-batch the file says that it has. */
static bool read_batch(uint32_t *batch, int descriptor)
{
    uint8_t bytes[4];

    if (pread(descriptor, bytes, sizeof(bytes), BATCH_AT) != (ssize_t)sizeof(bytes)) {
        return false;
    }
    *batch = endian_load_be32(bytes);
    return true;
}

/* False: the file is not of the size that its shape has, or cannot be read. */
static bool map_file(struct trace_file *file, int descriptor, const char *path,
                     const struct tape *tape)
{
    struct stat about;
    void *bytes;

    if (!read_batch(&file->batch, descriptor) || fstat(descriptor, &about) != 0) {
        return false;
    }
    *file = shape_of(tape, file->batch);
    file->size = (size_t)about.st_size;
    if (whole_size(file) != file->size) {
        return false;
    }
    bytes = mmap(NULL, file->size, PROT_READ, MAP_SHARED, descriptor, 0);
    if (bytes == MAP_FAILED) {
        return false;
    }
    file->bytes = bytes;
    (void)snprintf(file->path, sizeof(file->path), "%s", path);
    return true;
}

/* ---- writing ------------------------------------------------------------- */

struct trace_writer {
    int descriptor; /* -1: writing has failed */
    struct trace_file shape;
    char part[FILE_PATH_MAX];
    uint64_t place;
};

static bool write_all(int descriptor, const void *bytes, uint64_t size, uint64_t place)
{
    const uint8_t *from = bytes;

    while (size > 0) {
        ssize_t written = pwrite(descriptor, from, size, (off_t)place);

        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return false;
        }
        from += written;
        place += (uint64_t)written;
        size -= (uint64_t)written;
    }
    return true;
}

/* Begins a file that will be at path. A failure is seen at the end. */
static void begin_file(struct trace_writer *writer, const struct tape *tape, const char *path,
                       uint32_t batch)
{
    *writer = (struct trace_writer){
        .descriptor = -1, .shape = shape_of(tape, batch), .place = head_size(tape)};
    if (snprintf(writer->part, sizeof(writer->part), "%s.part", path) < (int)sizeof(writer->part)) {
        writer->descriptor = open(writer->part, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    }
}

static void give_up(struct trace_writer *writer)
{
    if (writer->descriptor >= 0) {
        (void)close(writer->descriptor);
    }
    writer->descriptor = -1;
}

static enum status write_tensor(void *context, uint32_t item, const struct tensor *tensor,
                                const void *bytes, struct error *error)
{
    struct trace_writer *writer = context;
    uint64_t size = commit_tensor_size(tensor);

    (void)error;
    if (!has_item(&writer->shape, item)) {
        return STATUS_OK;
    }
    if (writer->descriptor >= 0 && !write_all(writer->descriptor, bytes, size, writer->place)) {
        give_up(writer);
    }
    writer->place += size;
    return STATUS_OK;
}

static bool wants_item(const void *context, uint32_t item)
{
    const struct trace_writer *writer = context;

    return has_item(&writer->shape, item);
}

static void fill_head(uint8_t *head, const struct trace *trace, const struct digest *mark,
                      uint32_t batch)
{
    size_t size = HEAD_SIZE + (size_t)trace->item_count * DIGEST_SIZE;
    struct digest sum;

    memset(head, 0, HEAD_SIZE);
    memcpy(head, file_tag, sizeof(file_tag));
    memcpy(head + MARK_AT, mark->bytes, DIGEST_SIZE);
    endian_store_be32(head + ITEMS_AT, trace->item_count);
    endian_store_be32(head + BATCH_AT, batch);
    memcpy(head + HEAD_SIZE, trace->items, size - HEAD_SIZE);
    sha256(&sum, head, size);
    memcpy(head + size, sum.bytes, DIGEST_SIZE);
}

static bool write_head(const struct trace_writer *writer, const struct trace *trace,
                       const struct digest *mark)
{
    size_t size = (size_t)head_size(trace->tape);
    uint8_t *head = malloc(size);
    bool written;

    if (head == NULL) {
        return false;
    }
    fill_head(head, trace, mark, writer->shape.batch);
    written = write_all(writer->descriptor, head, size, 0);
    free(head);
    return written;
}

/* The file gets its name if the step was run and all of it was written. */
static void end_file(struct trace_file *file, struct trace_writer *writer,
                     const struct trace *trace, const char *path, const struct digest *mark,
                     enum status status)
{
    if (status == STATUS_OK && writer->descriptor >= 0 && write_head(writer, trace, mark) &&
        map_file(file, writer->descriptor, path, writer->shape.tape) &&
        rename(writer->part, path) != 0) {
        trace_file_close(file);
    }
    if (file->bytes == NULL) {
        (void)unlink(writer->part);
    }
    give_up(writer);
}

enum status trace_file_run(struct trace_file *file, struct trace *trace, struct machine *machine,
                           const char *path, const struct digest *mark, struct error *error)
{
    struct trace_writer writer;
    const struct trace_watcher watcher = {
        .pass = write_tensor, .context = &writer, .wants = wants_item};
    enum status status;

    memset(file, 0, sizeof(*file));
    begin_file(&writer, machine->tape, path, TENSOR_NONE);
    status = trace_watch(trace, machine, &watcher, error);
    end_file(file, &writer, trace, path, mark, status);
    return status;
}

/* The states before the step, from the file to the machine. */
static enum status put_states(const struct trace_file *file, struct machine *machine,
                              struct error *error)
{
    for (uint32_t item = 0; item < file->tape->state_count; item++) {
        TRY(machine->backend->write(machine, file->tape->states[item].before,
                                    trace_file_tensor(file, item), error));
    }
    return STATUS_OK;
}

enum status trace_file_turn(struct trace_file *file, struct trace *trace, struct machine *machine,
                            uint32_t batch, struct error *error)
{
    struct trace_file turned = {.bytes = NULL};
    struct trace_writer writer;
    const struct trace_watcher watcher = {
        .pass = write_tensor, .context = &writer, .wants = wants_item};
    struct digest mark;
    enum status status;

    begin_file(&writer, file->tape, file->path, batch);
    memcpy(mark.bytes, file->bytes + MARK_AT, DIGEST_SIZE);
    status = put_states(file, machine, error);
    if (status == STATUS_OK) {
        status = trace_watch_batch(trace, batch, machine, &watcher, error);
    }
    end_file(&turned, &writer, trace, file->path, &mark, status);
    if (turned.bytes != NULL) {
        trace_file_close(file);
        *file = turned;
    }
    return status;
}

/* ---- reading ------------------------------------------------------------- */

/* Fills trace with the roots, when the head is sound and about the step that mark names. */
static enum status read_head(struct trace *trace, const struct trace_file *file,
                             const struct digest *mark, struct error *error)
{
    uint8_t *head = malloc((size_t)head_size(file->tape));
    enum status status;

    if (head == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a trace");
    }
    status = trace_of_roots(trace, file->tape, file->bytes + HEAD_SIZE, error);
    if (status == STATUS_OK) {
        fill_head(head, trace, mark, file->batch);
        if (memcmp(head, file->bytes, (size_t)head_size(file->tape)) != 0) {
            trace_release(trace);
            status = error_set(error, STATUS_BAD_FORMAT, "the file holds no trace of this step");
        }
    }
    free(head);
    return status;
}

enum status trace_file_open(struct trace_file *file, struct trace *trace, const struct tape *tape,
                            const char *path, const struct digest *mark, struct error *error)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    enum status status = STATUS_BAD_FORMAT;

    memset(file, 0, sizeof(*file));
    if (descriptor < 0) {
        return error_set(error, errno == ENOENT ? STATUS_NOT_FOUND : STATUS_IO,
                         "cannot read %s: %s", path, strerror(errno));
    }
    if (map_file(file, descriptor, path, tape)) {
        status = read_head(trace, file, mark, error);
    } else {
        status = error_set(error, STATUS_BAD_FORMAT, "%s is cut off, or of another tape", path);
    }
    (void)close(descriptor);
    if (status != STATUS_OK) {
        trace_file_close(file);
    }
    if (status == STATUS_BAD_FORMAT) {
        (void)unlink(path);
    }
    return status;
}
