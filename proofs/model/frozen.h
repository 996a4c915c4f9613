/*
 * frozen.h - the weights of a folder as data of a tape: how its files call and hold them.
 */
#ifndef PROOFS_MODEL_FROZEN_H
#define PROOFS_MODEL_FROZEN_H

#include "engine/models/model.h"
#include "proofs/format/weights.h"

/* For lora.find: weights is a struct weights. A tensor that is not there keeps its name, and is
 * named when it is read. */
const char *frozen_find(enum dtype *dtype, const void *weights, const char *name);

/* How the folder holds the embedding: some families scale it by a number of its type. */
enum dtype frozen_embedding_type(const struct weights *weights, const struct model_options *model);

#endif /* PROOFS_MODEL_FROZEN_H */
