/*
 * model_state.h - the tensors of a model by name, and their first values.
 *
 * A job draws its first state by its own description (proofs/job/job.h). Tests and benches that
 * have a model and no job draw it here.
 */
#ifndef TESTS_SUPPORT_NUMERIC_MODEL_STATE_H
#define TESTS_SUPPORT_NUMERIC_MODEL_STATE_H

#include "engine/models/model.h"

/* The tensor of that name, or TENSOR_NONE. */
uint32_t model_find(const struct model *model, const char *name);

/*
 * Writes the first value of the state tensor `tensor` to bytes, its full size: the model's draw, or
 * zeros for moments and the step. Independent of the number of threads.
 */
void model_first_state(void *bytes, const struct model *model, uint32_t tensor);

#endif /* TESTS_SUPPORT_NUMERIC_MODEL_STATE_H */
