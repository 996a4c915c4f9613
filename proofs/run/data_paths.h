/*
 * data_paths.h - which file holds which data tensor of a job.
 *
 * People name files; a run wants one for each data tensor. A .safetensors file gives every data
 * tensor that it names, and may be named twice. A folder of packed rows gives its tensors by the
 * names of its files. NAME=FILE gives the tensor of that name. The other files give the rest, one
 * each, in the tape's order.
 */
#ifndef PROOFS_RUN_DATA_PATHS_H
#define PROOFS_RUN_DATA_PATHS_H

#include "proofs/bundle/bundle.h"

struct data_paths {
    char **of; /* the file of each data tensor, in the tape's order; NULL: not known */
    uint32_t count;
};

/* No path is known yet. data_paths_close() may be called on a zeroed one, and after a failure. */
MUST_CHECK enum status data_paths_open(struct data_paths *paths, uint32_t count,
                                       struct error *error);
void data_paths_close(struct data_paths *paths);

/* Notes a copy of the path. */
MUST_CHECK enum status data_paths_set(struct data_paths *paths, uint32_t at, const char *path,
                                      struct error *error);

/* STATUS_USAGE: too few or too many files, or a .safetensors or a folder that gives nothing. */
MUST_CHECK enum status data_paths_of_files(struct data_paths *paths, const struct tape *tape,
                                           const char *const *files, size_t count,
                                           struct error *error);

/* The files in what people name, for programs that find data by its root: of a folder of packed
 * rows or of weights the files in it, else the path as it is. A folder that is neither stays,
 * too. */
MUST_CHECK enum status data_paths_spread(struct data_paths *paths, const char *const *names,
                                         size_t count, struct error *error);

/* Where the bundle remembers its data. STATUS_NOT_FOUND: it does not. */
MUST_CHECK enum status data_paths_of_bundle(struct data_paths *paths, const struct job *job,
                                            struct bundle *bundle, struct error *error);
MUST_CHECK enum status data_paths_remember(const struct data_paths *paths, struct bundle *bundle,
                                           struct error *error);

/* The name of the note about a data tensor. */
#define DATA_PATHS_NOTE_SIZE 16
void data_paths_note(char name[DATA_PATHS_NOTE_SIZE], uint32_t at);

#endif /* PROOFS_RUN_DATA_PATHS_H */
