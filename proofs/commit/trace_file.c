/* trace_file.c - see trace_file.h. */
#include "proofs/commit/trace_file.h"

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

static const char file_tag[32] = "lockstep.tensors.v1";

static uint64_t head_size(const struct tape *tape)
{
    return HEAD_SIZE + ((uint64_t)trace_item_count(tape) + 1) * DIGEST_SIZE;
}

static uint64_t tensor_place(const struct tape *tape, uint32_t item)
{
    uint64_t place = head_size(tape);

    for (uint32_t i = 0; i < item; i++) {
        place += commit_tensor_size(&tape->tensors[trace_tensor_at(tape, i)]);
    }
    return place;
}

uint64_t trace_file_size(const struct tape *tape)
{
    return tensor_place(tape, trace_item_count(tape));
}

const uint8_t *trace_file_tensor(const struct trace_file *file, uint32_t item)
{
    return file->bytes + tensor_place(file->tape, item);
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

/* False: the file is not of this size, or cannot be read. */
static bool map_file(struct trace_file *file, int descriptor, const char *path,
                     const struct tape *tape)
{
    struct stat about;
    void *bytes;

    if (fstat(descriptor, &about) != 0 || (uint64_t)about.st_size != trace_file_size(tape)) {
        return false;
    }
    bytes = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, descriptor, 0);
    if (bytes == MAP_FAILED) {
        return false;
    }
    *file = (struct trace_file){.bytes = bytes, .size = (size_t)about.st_size, .tape = tape};
    (void)snprintf(file->path, sizeof(file->path), "%s", path);
    return true;
}

/* ---- writing ------------------------------------------------------------- */

struct trace_writer {
    int descriptor; /* -1: writing has failed */
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

    (void)item;
    (void)error;
    if (writer->descriptor >= 0 && !write_all(writer->descriptor, bytes, size, writer->place)) {
        give_up(writer);
    }
    writer->place += size;
    return STATUS_OK;
}

static void fill_head(uint8_t *head, const struct trace *trace, const struct digest *mark)
{
    size_t size = HEAD_SIZE + (size_t)trace->item_count * DIGEST_SIZE;
    struct digest sum;

    memset(head, 0, HEAD_SIZE);
    memcpy(head, file_tag, sizeof(file_tag));
    memcpy(head + 32, mark->bytes, DIGEST_SIZE);
    endian_store_be32(head + 64, trace->item_count);
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
    fill_head(head, trace, mark);
    written = write_all(writer->descriptor, head, size, 0);
    free(head);
    return written;
}

enum status trace_file_run(struct trace_file *file, struct trace *trace, struct machine *machine,
                           const char *path, const struct digest *mark, struct error *error)
{
    struct trace_writer writer = {.descriptor = -1, .place = head_size(machine->tape)};
    const struct trace_watcher watcher = {write_tensor, &writer};
    char part[FILE_PATH_MAX];
    enum status status;

    memset(file, 0, sizeof(*file));
    if (snprintf(part, sizeof(part), "%s.part", path) < (int)sizeof(part)) {
        writer.descriptor = open(part, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    }
    status = trace_watch(trace, machine, &watcher, error);
    if (status == STATUS_OK && writer.descriptor >= 0 && write_head(&writer, trace, mark) &&
        map_file(file, writer.descriptor, path, machine->tape) && rename(part, path) != 0) {
        trace_file_close(file);
    }
    if (file->bytes == NULL) {
        (void)unlink(part);
    }
    give_up(&writer);
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
        fill_head(head, trace, mark);
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
