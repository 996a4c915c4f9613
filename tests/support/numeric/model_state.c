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
    tape_first_value(bytes, model->tape, tensor, model->options.seed);
}
