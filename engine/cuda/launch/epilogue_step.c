/* epilogue_step.c - see epilogue_step.h. */
#include "engine/cuda/launch/epilogue_step.h"

static bool takes_two(struct epilogue_form *form, const struct op *op, uint64_t count,
                      uint32_t value)
{
    const uint64_t turn = (uint64_t)op->attributes[BROADCAST_MOD];
    const bool whole = turn == count;

    form->other = 1 - value;
    form->source = whole ? EPILOGUE_WHOLE : EPILOGUE_ROW;
    form->row = whole ? 0 : turn;
    /* The rule repeats the second operand only. */
    return op->attributes[BROADCAST_DIV] == 1 && (whole || (value == 0 && turn % 4 == 0));
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
    switch ((int)op->kind) {
    case OP_ADD:
    case OP_MUL:
        return op->input_count == 2 && value < 2 &&
               takes_two(form, op, tensors[op->outputs[0]].count, value);
    case OP_SCALE:
        form->constant = (uint32_t)op->attributes[SCALE_FACTOR_BITS];
        return value == 0;
    case OP_RELU:
    case OP_GELU:
    case OP_SILU:
        return value == 0;
    case OP_RELU_GRAD:
    case OP_GELU_GRAD:
    case OP_SILU_GRAD:
        form->other = 0;
        form->source = EPILOGUE_WHOLE;
        return value == 1;
    default:
        return false;
    }
}

void epilogue_add(struct epilogue *epilogue, const struct launcher *launcher, const struct op *op,
                  const struct epilogue_form *form, void *out)
{
    struct epilogue_step *step = &epilogue->steps[epilogue->count++];

    assert(epilogue->count <= EPILOGUE_STEPS_MAX);
    step->kind = (uint32_t)op->kind;
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
