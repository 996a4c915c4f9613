/*
 * trace_file.h - all tensors of one traced step in one file, so that the step is run once.
 *
 * The file is written while the step runs and gets its name when it is whole. It is read through a
 * map, so it takes no memory that the system could not take back. It belongs to the process that
 * wrote it: nobody sends it to anybody, and a damaged one is removed and made again.
 *
 * The file: tag (32), mark (32), number of items (4), zeros (28), the items' roots (32 each), the
 * SHA-256 of all that (32); then the tensors of the items, one after another.
 */
#ifndef PROOFS_COMMIT_TRACE_FILE_H
#define PROOFS_COMMIT_TRACE_FILE_H

#include "base/io/file.h"
#include "proofs/commit/trace.h"

struct trace_file {
    const uint8_t *bytes; /* NULL: not open */
    size_t size;
    const struct tape *tape;
    char path[FILE_PATH_MAX];
};

/* Bytes of the file of a step of tape. */
uint64_t trace_file_size(const struct tape *tape);

/*
 * Runs one step of machine as trace_run() does, and writes the file meanwhile. mark: what the step
 * is, which whoever reads the file must name. A file that cannot be written is no failure: file is
 * then not open.
 */
MUST_CHECK enum status trace_file_run(struct trace_file *file, struct trace *trace,
                                      struct machine *machine, const char *path,
                                      const struct digest *mark, struct error *error);

/* Reads the file and fills trace from it. STATUS_NOT_FOUND: there is none. STATUS_BAD_FORMAT: it is
 * damaged, or of another step; it is removed. */
MUST_CHECK enum status trace_file_open(struct trace_file *file, struct trace *trace,
                                       const struct tape *tape, const char *path,
                                       const struct digest *mark, struct error *error);
void trace_file_close(struct trace_file *file); /* a zero-filled one is allowed */

/* Removes a file of which a tensor is damaged, so that the next process makes it again. */
void trace_file_remove(const struct trace_file *file);

/* The bytes of an item, until the file is closed. Nobody has compared them with the root yet. */
const uint8_t *trace_file_tensor(const struct trace_file *file, uint32_t item);

#endif /* PROOFS_COMMIT_TRACE_FILE_H */
