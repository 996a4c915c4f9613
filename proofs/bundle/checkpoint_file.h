/*
 * checkpoint_file.h - a state as a safetensors file: which tensor stands where, and what it says of
 * itself.
 *
 * A checkpoint has every state tensor, wider types first, and says in its metadata of which job,
 * step, root and rules it is: equal states give equal files. A model file has only what is of use
 * without the training: no moments and no counters. Its metadata holds the roots of the tensors
 * that it lacks, so that it proves itself against the root of the state all the same.
 */
#ifndef PROOFS_BUNDLE_CHECKPOINT_FILE_H
#define PROOFS_BUNDLE_CHECKPOINT_FILE_H

#include "base/hex.h"
#include "engine/plan/backend.h"
#include "proofs/format/safetensors.h"
#include "proofs/job/job.h"

#define CHECKPOINT_FILE_TEXTS 5

struct checkpoint_file {
    struct safetensors_entry *entries; /* in the order of their bytes */
    uint32_t *states;                  /* of the tape, for each entry */
    uint32_t count;
    char job[HEX_SIZE(DIGEST_SIZE)];
    char root[HEX_SIZE(DIGEST_SIZE)];
    char step[24];
    char rules[12];
    char *absent; /* a model file: the roots of the tensors that it lacks; else NULL */
    struct safetensors_text texts[CHECKPOINT_FILE_TEXTS]; /* point into this struct */
    uint32_t text_count;
};

/* The checkpoint before a step of a job, which has this root. Release it also after a failure. It
 * must stay where it is. */
MUST_CHECK enum status checkpoint_file_init(struct checkpoint_file *file, const struct job *job,
                                            uint64_t step, const struct digest *root,
                                            struct error *error);

/* The same without what only the training needs; roots: of all tensors of the state, in the tape's
 * order. STATUS_REFUSED: nothing is left. */
MUST_CHECK enum status checkpoint_file_init_model(struct checkpoint_file *file,
                                                  const struct job *job, uint64_t step,
                                                  const struct digest *root,
                                                  const struct digest *roots, struct error *error);
void checkpoint_file_release(struct checkpoint_file *file);

/* Borrows file. */
struct safetensors_plan checkpoint_file_plan(const struct checkpoint_file *file);

/* Does the metadata name this job, step, root and rules? */
bool checkpoint_file_says(const struct safetensors *file, const struct job *job, uint64_t step,
                          const struct digest *root);

/* Does it say that the file is this checkpoint, and nothing more? */
bool checkpoint_file_is(const struct safetensors *file, const struct job *job, uint64_t step,
                        const struct digest *root);

/*
 * The root of the state in a file, from its bytes; of a model file with the roots in its metadata.
 * STATUS_BAD_FORMAT: it is not a state of this tape.
 */
MUST_CHECK enum status checkpoint_file_root(struct digest *root, const struct safetensors *file,
                                            const struct tape *tape, struct error *error);

/* Writes all states of the file to the machine. Of their root it says nothing. */
MUST_CHECK enum status checkpoint_file_load(struct machine *machine, const struct safetensors *file,
                                            struct error *error);

/* The hashes of the pieces (proofs/commit/piece.h) of a checkpoint; room for all of the tape. */
MUST_CHECK enum status checkpoint_file_pieces(struct digest *hashes, const struct safetensors *file,
                                              const struct tape *tape, struct error *error);

#endif /* PROOFS_BUNDLE_CHECKPOINT_FILE_H */
