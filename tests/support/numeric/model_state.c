/* model_state.c - see model_state.h. */
#include "tests/support/numeric/model_state.h"

#include <string.h>

uint32_t model_find(const struct model *model, const char *name)
{
    for (uint32_t id = 0; id < model->tape->tensor_count; id++) {
        if (strcmp(model->tape->tensors[id].name, name) == 0) {
            return id;
        }
    }
    return TENSOR_NONE;
}

void model_first_state(void *bytes, const struct model *model, uint32_t tensor)
{
    const struct tensor *shape = &model->tape->tensors[tensor];

    for (uint32_t i = 0; i < model->parameter_count; i++) {
        if (model->parameters[i].tensor == tensor) {
            init_fill(bytes, shape->count, &model->parameters[i].init, model->options.seed, tensor);
            return;
        }
    }
    memset(bytes, 0, shape->count * dtype_size(shape->dtype));
}
