/* launch_attention.c - rows of attention in one launch; see attention_body.h, fuse_attention.c. */
#include "engine/cuda/launch/launch_core.h"

/* An operand of a product: its q is that input. */
static struct packed_operand operand_of(const struct launcher *launcher, const struct op *op,
                                        uint32_t input, uint64_t rows)
{
    const struct contraction_shape shape = contraction_shape_of(op);

    return launch_operand(&shape, rows, input_memory(launcher, op, input));
}

enum device_result launch_attention(const struct launcher *launcher, const struct chain *chain)
{
    const struct op *first = &chain->ops[0];
    const struct op *along = &chain->ops[1];
    const struct op *second = &chain->ops[3];
    const bool forward = along->kind == OP_SOFTMAX;
    const uint32_t main_output = forward ? 5 : 2;
    struct attention_args args = {
        .rows = {.rows = (uint64_t)along->attributes[ROWS],
                 .columns = (uint64_t)along->attributes[COLUMNS],
                 .causal = (uint64_t)along->attributes[SOFTMAX_CAUSAL],
                 .constant = (uint32_t)along->attributes[SOFTMAX_SCALE_BITS],
                 .kind = (uint32_t)along->kind},
        .scores = {.contract = launch_contract_args(launcher, first)},
        .product = {.contract = launch_contract_args(launcher, second),
                    .window = contraction_shape_of(second).window}};
    struct contract_args *scores = &args.scores.contract;
    struct contract_args *product = &args.product.contract;
    const uint32_t rows = strip_rows_of(launcher->shared_max, args.rows.columns);
    const struct device_launch launch = {
        .kernel = scores->bits == 14 ? KERNEL_ATTENTION_NARROW : KERNEL_ATTENTION_WIDE,
        .grid = {(uint32_t)((scores->m + rows - 1) / rows * scores->batches), 1, 1},
        .block = STRIP_THREADS,
        .shared_size = STRIP_SHARED(rows, args.rows.columns),
        .arguments_size = sizeof(args),
        .arguments = &args};

    assert(rows != 0 && launcher->packed);
    args.rows.inputs[0] = forward ? NULL : input_memory(launcher, along, 0);
    args.rows.outputs[main_output] = output_memory(launcher, along, main_output);
    /* The maker says whether what is hidden is left: fuse_leave_hidden(). */
    args.hidden = args.rows.causal != 0 && args.rows.outputs[main_output] != NULL &&
                  launcher->tape->ops[chain->ats[3]].attributes[CONTRACT_CAUSAL] == 0;
    args.strip_rows = rows;
    args.strips = (uint32_t)((scores->m + rows - 1) / rows);
    scores->a = operand_of(launcher, first, 0, scores->batches * scores->m);
    scores->b = operand_of(launcher, first, 2, scores->batches * scores->n);
    product->b = operand_of(launcher, second, 2, product->batches * product->n);
    return launcher->calls->launch(launcher->device, &launch);
}
