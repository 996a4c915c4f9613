/* launch_rows.c - see launch_rows.h. */
#include "engine/cuda/launch/launch_rows.h"

uint32_t launch_rows_result(const struct op *op)
{
    if (op->kind == OP_LAYER_NORM || op->kind == OP_LAYER_NORM_GRAD) {
        return 4;
    }
    if (op->kind == OP_RMS_NORM || op->kind == OP_RMS_NORM_GRAD || op->kind == OP_SOFTMAX_GRAD) {
        return 2;
    }
    return op->kind == OP_SOFTMAX ? 5 : ROWS_NO_RESULT;
}

bool launch_has_reach(const struct op *op)
{
    return (op->kind == OP_SOFTMAX || op->kind == OP_SOFTMAX_GRAD) &&
           op->input_count > softmax_reach_input(op->kind);
}

bool launch_can_hold(const struct op *op)
{
    return launch_rows_result(op) != ROWS_NO_RESULT && op->attributes[COLUMNS] <= HELD_MAX &&
           !launch_has_reach(op);
}

struct rows_args launch_rows_args(const struct launcher *launcher, const struct op *op)
{
    const int64_t *attributes = op->attributes;
    struct rows_args args = {.rows = (uint64_t)attributes[ROWS],
                             .columns = (uint64_t)attributes[COLUMNS],
                             .kind = (uint32_t)op->kind};

    if (op->kind == OP_SOFTMAX || op->kind == OP_SOFTMAX_GRAD) {
        args.causal = (uint64_t)attributes[SOFTMAX_CAUSAL];
        args.constant = (uint32_t)attributes[SOFTMAX_SCALE_BITS];
        if (launch_has_reach(op)) {
            const uint32_t slot = softmax_reach_input(op->kind);

            args.reach = input_memory(launcher, op, slot);
            args.reach_count = launcher->tape->tensors[op->inputs[slot]].count;
        }
    } else if (op->kind == OP_LAYER_NORM || op->kind == OP_RMS_NORM) {
        args.constant = (uint32_t)attributes[NORM_EPSILON_BITS];
    }
    for (uint32_t i = 0; i < op->input_count; i++) {
        args.inputs[i] = input_memory(launcher, op, i);
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        args.outputs[i] = output_memory(launcher, op, i);
    }
    /* One input more: what the gradient is added to (fusions/epilogue.c). */
    if (op->kind == OP_LAYER_NORM_GRAD && op->input_count == 6) {
        args.addend = args.inputs[5];
    } else if (op->kind == OP_RMS_NORM_GRAD && op->input_count == 5) {
        args.addend = args.inputs[4];
    }
    return args;
}

enum device_result launch_held(const struct launcher *launcher, const struct rows_args *rows,
                               const struct quantize_args *quantize)
{
    struct held_args args = {.rows = *rows};

    if (quantize != NULL) {
        args.quantize = *quantize;
        args.quantize.team = 1;
    }
    return LAUNCH_WORK(launcher, KERNEL_HELD, rows->rows, ROWS_WARPS, args);
}

enum device_result launch_rows(const struct launcher *launcher, const struct op *op)
{
    const struct rows_args args = launch_rows_args(launcher, op);

    if (launch_allows(launcher, VARIANT_HELD) && launch_can_hold(op)) {
        return launch_held(launcher, &args, NULL);
    }
    return LAUNCH_WORK(launcher, KERNEL_ROWS, args.rows,
                       fold_chunks(args.columns) == 1 ? ROWS_WARPS : 1, args);
}
