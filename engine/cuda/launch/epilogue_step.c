/* epilogue_step.c - see epilogue_step.h. */
#include "engine/cuda/launch/epilogue_step.h"

#include "engine/ops/view.h"

/* Functions of one operand. */
static bool takes_map(struct epilogue_form *form, const struct op *op)
{
    const int64_t function = op->attributes[MAP_FUNCTION];

    form->code = function == MAP_SCALE  ? EPILOGUE_SCALE
                 : function == MAP_RELU ? EPILOGUE_RELU
                 : function == MAP_GELU ? EPILOGUE_GELU
                                        : EPILOGUE_SILU;
    form->constant = (uint32_t)op->attributes[MAP_CONSTANT_BITS];
    return function == MAP_SCALE || function == MAP_RELU || function == MAP_GELU ||
           function == MAP_SILU;
}

/* Sums and products of numbers at one place, or of a number and one of a row. */
static bool takes_binary(struct epilogue_form *form, const struct op *op, uint64_t count,
                         uint32_t value)
{
    const int64_t function = op->attributes[BINARY_FUNCTION];
    const bool gradient = binary_is_gradient(op);
    struct view_turns turns;

    form->code = function == BINARY_ADD         ? EPILOGUE_ADD
                 : function == BINARY_MUL       ? EPILOGUE_MUL
                 : function == BINARY_RELU_GRAD ? EPILOGUE_RELU_GRAD
                 : function == BINARY_GELU_GRAD ? EPILOGUE_GELU_GRAD
                                                : EPILOGUE_SILU_GRAD;
    if ((!gradient && function != BINARY_ADD && function != BINARY_MUL) ||
        !binary_lies_alike(op, value) || !binary_is_turns(&turns, op, 1 - value) ||
        turns.div != 1) {
        return false;
    }
    const bool whole = turns.mod == count;

    form->other = 1 - value;
    form->source = whole ? EPILOGUE_WHOLE : EPILOGUE_ROW;
    form->row = whole ? 0 : turns.mod;
    /* A step of a gradient is on dy, the second operand. */
    return gradient ? whole && value == 1 : whole || turns.mod % 4 == 0;
}

bool epilogue_takes(struct epilogue_form *form, const struct op *op, const struct tensor *tensors,
                    uint32_t value)
{
    *form = (struct epilogue_form){.other = OP_INPUTS_MAX, .source = EPILOGUE_NONE};
    for (uint32_t i = 0; i < op->input_count; i++) {
        if (tensors[op->inputs[i]].dtype != DTYPE_F32) {
            return false;
        }
    }
    if (op->kind == OP_MAP) {
        return value == 0 && takes_map(form, op);
    }
    return op->kind == OP_BINARY && op->input_count == 2 && value < 2 &&
           takes_binary(form, op, tensors[op->outputs[0]].count, value);
}

void epilogue_add(struct epilogue *epilogue, const struct launcher *launcher, const struct op *op,
                  const struct epilogue_form *form, void *out)
{
    struct epilogue_step *step = &epilogue->steps[epilogue->count++];

    assert(epilogue->count <= EPILOGUE_STEPS_MAX);
    step->code = form->code;
    step->source = form->source;
    step->constant = form->constant;
    step->out = out;
    if (form->other < OP_INPUTS_MAX) {
        step->other = input_memory(launcher, op, form->other);
    }
    if (form->source == EPILOGUE_WHOLE &&
        (epilogue->ahead == NULL || epilogue->ahead == step->other)) {
        epilogue->ahead = step->other;
        step->source = EPILOGUE_AHEAD;
    }
}
