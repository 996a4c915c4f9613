/* held_out.c - see held_out.h. */
#include "proofs/job/held_out.h"

#include <string.h>

static uint32_t find_figure(const struct tape *tape, const char *name)
{
    for (uint32_t i = 0; i < tape->state_count; i++) {
        const struct tensor *tensor = &tape->tensors[tape->states[i].before];

        if (strcmp(tensor->name, name) == 0 && tensor->dtype == DTYPE_F32 && tensor->count == 1) {
            return i;
        }
    }
    return TENSOR_NONE;
}

static const struct op *maker_of(const struct tape *tape, uint32_t id, enum op_kind kind)
{
    for (uint32_t at = tape->op_count; at > 0; at--) {
        if (tape->ops[at - 1].kind == kind && tape->ops[at - 1].outputs[0] == id) {
            return &tape->ops[at - 1];
        }
    }
    return NULL;
}

void held_out_of(struct held_out *held_out, const struct job *job)
{
    const struct tape *tape = job->tape;
    const uint32_t loss = find_figure(tape, HELD_OUT_LOSS);
    const uint32_t accuracy = find_figure(tape, HELD_OUT_ACCURACY);
    const struct op *choice =
        loss == TENSOR_NONE ? NULL : maker_of(tape, tape->states[loss].after, OP_SELECT);
    const struct op *schedule =
        choice == NULL ? NULL : maker_of(tape, choice->inputs[0], OP_SCHEDULE);

    *held_out = (struct held_out){.loss = TENSOR_NONE, .accuracy = TENSOR_NONE};
    if (schedule == NULL || tape->tensors[schedule->inputs[0]].role != ROLE_CONSTANT ||
        tape->tensors[schedule->inputs[0]].dtype != DTYPE_F32) {
        return;
    }
    held_out->loss = tape->states[loss].before;
    held_out->accuracy = accuracy == TENSOR_NONE ? TENSOR_NONE : tape->states[accuracy].before;
    held_out->due = job_constant(job, schedule->inputs[0]);
    held_out->columns = (uint64_t)schedule->attributes[SCHEDULE_COLUMNS];
    held_out->column = (uint64_t)schedule->attributes[SCHEDULE_COLUMN];
    held_out->rows = tape->tensors[schedule->inputs[0]].count / held_out->columns;
}

bool held_out_is_due(const struct held_out *held_out, uint64_t step)
{
    uint64_t row;

    if (held_out->loss == TENSOR_NONE || held_out->rows == 0) {
        return false;
    }
    row = step < held_out->rows ? step : held_out->rows - 1;
    return held_out->due[row * held_out->columns + held_out->column] != 0.0f;
}
