/*
 * model_root.h - one root of all weights of a model, in the types in which its files hold them.
 *
 * It is the root of a state whose tensors are the model's, sorted by name (bytewise): the same for
 * one file and for shards. docs/FORMATS.md, section 2.4.
 */
#ifndef PROOFS_MODEL_MODEL_ROOT_H
#define PROOFS_MODEL_MODEL_ROOT_H

#include "proofs/commit/commit.h"
#include "proofs/format/weights.h"

/* *count: how many tensors. STATUS_REFUSED: one of a type or a name that no tape has. */
MUST_CHECK enum status model_root(struct digest *root, uint32_t *count,
                                  const struct weights *weights, struct error *error);

/* The same of a folder or a file. */
MUST_CHECK enum status model_root_of(struct digest *root, uint32_t *count, const char *path,
                                     struct error *error);

/* The root of one tensor, whose bytes are those of the entry. */
MUST_CHECK enum status model_tensor_root(struct digest *root, enum commit_array kind,
                                         const struct tensor *tensor,
                                         const struct weights_entry *from, struct error *error);

#endif /* PROOFS_MODEL_MODEL_ROOT_H */
