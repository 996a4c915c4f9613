/*
 * tape_file.h - a program and its constants as files, apart from any job.
 *
 * A tape's file holds its canonical bytes (docs/FORMATS.md); constants are a safetensors file with
 * exactly the tape's constant tensors, by name, type and shape.
 */
#ifndef PROOFS_JOB_TAPE_FILE_H
#define PROOFS_JOB_TAPE_FILE_H

#include "engine/tape/tape.h"

/* The caller frees the tape. */
MUST_CHECK enum status tape_file_read(struct tape **tape, const char *path, struct error *error);
/* Never replaces a file. */
MUST_CHECK enum status tape_file_write(const char *path, const struct tape *tape,
                                       struct error *error);

/* The constants in the order of the tape's constant tensors; path NULL: the tape may have none.
 * Free them with tape_file_free_constants(). */
MUST_CHECK enum status tape_file_constants(void ***constants, uint32_t *count,
                                           const struct tape *tape, const char *path,
                                           struct error *error);
void tape_file_free_constants(void **constants, uint32_t count); /* NULL is allowed */

/* Never replaces a file. */
MUST_CHECK enum status tape_file_write_constants(const char *path, const struct tape *tape,
                                                 void *const *constants, struct error *error);

#endif /* PROOFS_JOB_TAPE_FILE_H */
