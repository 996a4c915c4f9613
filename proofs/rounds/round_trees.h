/*
 * round_trees.h - the tree roots of a state's tensors, and the files of a round that hold states.
 *
 * A tensor has one Merkle root over its bytes, whether it is a state or data; only what is hashed
 * around that root differs (proofs/commit/commit.h). So a list of these roots, in the order of a
 * tape's states, gives both the root of the state that a job committed to and the data roots of the
 * job that averages it: that it is the same state follows from headers alone.
 */
#ifndef PROOFS_ROUNDS_ROUND_TREES_H
#define PROOFS_ROUNDS_ROUND_TREES_H

#include "proofs/format/safetensors.h"
#include "proofs/job/first_state.h"
#include "proofs/job/job.h"

/* Is the state averaged: a parameter, or, with moments, a moment? */
bool round_trees_takes(const struct tape *tape, uint32_t state, bool moments);
bool round_trees_is_moment(const struct tape *tape, uint32_t state);

/* The prefix and the name. False, and "": it would be too long. */
bool round_trees_prefix(char name[TENSOR_NAME_MAX + 1], const char *prefix, const char *tensor);

/* "3.NAME": how the file of an owner, from 0, calls a tensor. False: it would be too long. */
bool round_trees_name(char name[TENSOR_NAME_MAX + 1], uint32_t owner, const char *tensor);

/* The tree of zeros of a tensor. */
void round_trees_zero(struct digest *tree, const struct tensor *tensor);

/* Of a file, for each state of the tape: trees has room for them. A state that the file lacks is
 * zeros. owner: whose names the file has (round_trees_name()), or UINT32_MAX: plain ones. */
MUST_CHECK enum status round_trees_read(struct digest *trees, const char *path,
                                        const struct tape *tape, uint32_t owner,
                                        struct error *error);

/* The root of the state. */
MUST_CHECK enum status round_trees_root(struct digest *root, const struct digest *trees,
                                        const struct tape *tape, struct error *error);

/* Writes what of a state is averaged, under the owner's names. */
MUST_CHECK enum status round_trees_give(const char *path, const struct safetensors *state,
                                        const struct tape *tape, uint32_t owner, bool moments,
                                        struct error *error);

/* Writes the first state of a job: the drawn one, or the one that is given; of it what is no zero
 * by itself. STATUS_REFUSED: it is not the one that the job commits to. */
MUST_CHECK enum status round_trees_begin(const char *path, const struct job *job, const char *given,
                                         struct error *error);

/* Writes tensors of a file once more, those of the tape's states that are averaged. */
MUST_CHECK enum status round_trees_go_on(const char *path, const struct safetensors *mean,
                                         const struct tape *tape, bool moments,
                                         struct error *error);

#endif /* PROOFS_ROUNDS_ROUND_TREES_H */
