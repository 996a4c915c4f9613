/*
 * trace_file.h - the tensors of one traced step in one file, so that the step is run once.
 *
 * Of a step with a repeat the file has what is made outside of it, and one micro-batch: the one
 * that is asked about. To turn to another, the step is run once more. So a dispute never stores
 * more than one micro-batch makes, however many there are.
 *
 * The file is written while the step runs and gets its name when it is whole. It is read through a
 * map, so it takes no memory that the system could not take back. It belongs to the process that
 * wrote it: nobody sends it to anybody, and a damaged one is removed and made again.
 *
 * The file: tag (32), mark (32), number of items (4), the micro-batch, or TENSOR_NONE (4), zeros
 * (24), the roots of all items (32 each), the SHA-256 of all that (32); then the tensors of the
 * items that it has, one after another.
 */
#ifndef PROOFS_COMMIT_TRACE_FILE_H
#define PROOFS_COMMIT_TRACE_FILE_H

#include "base/io/file.h"
#include "engine/tape/repeat.h"
#include "proofs/commit/trace.h"

struct trace_file {
    const uint8_t *bytes; /* NULL: not open */
    size_t size;
    const struct tape *tape;
    struct repeat_layout layout;
    uint32_t batch; /* of a repeat the micro-batch that it has, or TENSOR_NONE */
    char path[FILE_PATH_MAX];
};

/* The most bytes of the file of a step of tape. */
uint64_t trace_file_size(const struct tape *tape);

/*
 * Runs one step of machine as trace_run() does, and writes the file meanwhile. mark: what the step
 * is, which a reader of the file must name. A file that cannot be written is no failure: file is
 * then not open.
 */
MUST_CHECK enum status trace_file_run(struct trace_file *file, struct trace *trace,
                                      struct machine *machine, const char *path,
                                      const struct digest *mark, struct error *error);

/*
 * Runs the step again on machine, which is in trace mode, hashes micro-batch number `batch`, and
 * puts it into the file in place of the one that it has. What cannot be written leaves the file as
 * it was: look with trace_file_has().
 */
MUST_CHECK enum status trace_file_turn(struct trace_file *file, struct trace *trace,
                                       struct machine *machine, uint32_t batch,
                                       struct error *error);

/* Reads the file and fills trace from it. STATUS_NOT_FOUND: there is none. STATUS_BAD_FORMAT: it is
 * damaged, or of another step; it is removed. */
MUST_CHECK enum status trace_file_open(struct trace_file *file, struct trace *trace,
                                       const struct tape *tape, const char *path,
                                       const struct digest *mark, struct error *error);
void trace_file_close(struct trace_file *file); /* a zero-filled one is allowed */

/* Removes a file of which a tensor is damaged, so that the next process makes it again. */
void trace_file_remove(const struct trace_file *file);

/* Is there a file, and does it have the item? */
bool trace_file_has(const struct trace_file *file, uint32_t item);

/* The bytes of an item that it has, until the file turns or is closed. Nobody has compared them
 * with the root yet. */
const uint8_t *trace_file_tensor(const struct trace_file *file, uint32_t item);

#endif /* PROOFS_COMMIT_TRACE_FILE_H */
