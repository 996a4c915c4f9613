/* launch_strips.c - products of strips: numbers that are quantized where a block holds them. */
#include "engine/cuda/launch/launch_core.h"

uint32_t strip_rows_of(uint32_t shared_max, uint64_t k)
{
    const uint32_t most = shared_max == 0 ? UINT32_MAX : shared_max;

    if (k > STRIP_K_MAX) {
        return 0;
    }
    return STRIP_SHARED(STRIP_ROWS, k) <= most ? STRIP_ROWS : STRIP_SHARED(16, k) <= most ? 16 : 0;
}

/* What a chain of fuse_strips.c says: the quantization, the product, and what became of it. */
enum device_result launch_strip_columns(const struct launcher *launcher, const struct chain *chain)
{
    const struct op *quantize = &chain->ops[0];
    const struct op *contract = &chain->ops[1];
    const struct op *maker = &launcher->tape->ops[chain->ats[1]];
    const uint32_t is_b = quantize->outputs[2] == contract->inputs[2];
    const struct contraction_shape shape = contraction_shape_of(contract);
    struct strip_columns_args args = {
        .view = launch_quantize_args(launcher, quantize),
        .product = {.contract = launch_contract_args(launcher, contract),
                    .window = shape.window,
                    .is_b = is_b},
        .causal = (uint64_t)maker->attributes[CONTRACT_CAUSAL],
        .rows = strip_rows_of(launcher->shared_max, (uint64_t)shape.k)};
    struct contract_args *product = &args.product.contract;
    const uint64_t held = is_b ? product->n : product->m;
    const uint64_t others = product->batches * (is_b ? product->m : product->n);
    const struct packed_operand other =
        launch_operand(&shape, others, launcher->memory[contract->inputs[is_b ? 0 : 2]]);

    assert(args.rows > 0); /* fuse_strips.c takes no others */
    *(is_b ? &product->a : &product->b) = other;
    args.view.across = 1;
    args.strips = (held + args.rows - 1) / args.rows;
    const struct device_launch launch = {.kernel = shape.bits == 14 ? KERNEL_STRIP_COLUMNS_NARROW
                                                                    : KERNEL_STRIP_COLUMNS_WIDE,
                                         .grid = {(uint32_t)(args.strips * product->batches), 1, 1},
                                         .block = STRIP_THREADS,
                                         .shared_size = STRIP_SHARED(args.rows, (uint64_t)shape.k),
                                         .arguments_size = sizeof(args),
                                         .arguments = &args};

    return launcher->calls->launch(launcher->device, &launch);
}
