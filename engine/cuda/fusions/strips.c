/*
 * strips.c - products whose operand across memory needs no limbs there: a quantization of such a
 * view and the only product that reads it become one operation (strip_columns_body.h). Columns of
 * memory lie in shared memory as the rows of a strip, become limbs there, and are multiplied.
 *
 * Saves: limbs across memory written and read; three launches. Refused: 22 bits, rows above 1,024,
 * another operand of more than 128 rows, blocks that are no piece.
 */
#include "engine/cuda/fusions/strips.h"

#include "engine/cuda/fusions/group.h"
#include "engine/cuda/fusions/pattern.h"
#include "engine/cuda/fusions/quantizer.h"
#include "engine/cuda/launch/contract_kernel.h"
#include "engine/cuda/launch/launch_contract.h"
#include "engine/cuda/launch/launch_quantize.h"

uint32_t strips_rows_of(uint32_t shared_max, uint64_t k)
{
    const uint32_t most = shared_max == 0 ? UINT32_MAX : shared_max;

    return STRIP_SHARED(STRIP_ROWS, k) <= most ? STRIP_ROWS : STRIP_SHARED(16, k) <= most ? 16 : 0;
}

/* A product, and which of its operands is held on chip. */
struct strip_match {
    uint32_t ats[2]; /* quantization, product */
    uint32_t side;   /* 0: A, 1: B */
};

static int64_t product_rows(const struct op *contract, uint32_t side)
{
    const int64_t *dims = &contract->attributes[CONTRACT_DIMS + 2 + 2 * side];

    return dims[0] * dims[1];
}

/* Are its rows neighbours in memory, and no longer than a strip? */
static bool is_held_view(const struct op *quantize)
{
    const struct contraction_shape shape = contraction_shape_of(quantize);
    const int64_t *dims = &quantize->attributes[QUANTIZE_DIMS];
    const int64_t *strides = &quantize->attributes[QUANTIZE_STRIDES];

    return dims[3] > 1 && strides[3] == 1 && shape.bits != 22 && shape.k <= STRIP_K_MAX &&
           quantizes_pieces(quantize);
}

static bool strip_at(struct strip_match *strip, const struct fusion *fusion,
                     const struct readers *readers, uint32_t at, uint32_t side)
{
    const struct op *contract = &fusion->ops[at];
    const uint32_t quantize = quantizer_of_operand(fusion, readers, contract, 2 * side);

    if (quantize == NEVER || contract->inputs[0] == contract->inputs[2] ||
        !is_held_view(&fusion->ops[quantize]) || product_rows(contract, !side) > STRIP_COLUMNS ||
        strips_rows_of(fusion->facts.shared_max, (uint64_t)contract->attributes[CONTRACT_K]) == 0) {
        return false;
    }
    *strip = (struct strip_match){.ats = {quantize, at}, .side = side};
    return group_can_form(fusion, readers, strip->ats, 2, contract->outputs, 1);
}

/* The product reads the numbers instead of their limbs. */
static bool add_strip(struct fusion *fusion, const struct strip_match *strip)
{
    const struct op *quantize = &fusion->ops[strip->ats[0]];
    const struct op *contract = &fusion->ops[strip->ats[1]];
    struct op maker = *contract;

    maker.input_count = 3;
    maker.inputs[0] = quantize->inputs[0];
    maker.inputs[1] = contract->inputs[2 * !strip->side];
    maker.inputs[2] = contract->inputs[2 * !strip->side + 1];
    return group_add(fusion, strip->ats, 2, &maker, &pattern_strips);
}

static bool find_strips(struct fusion *fusion, const struct tape *tape, struct readers *readers)
{
    (void)tape;
    for (uint32_t at = 0; at < fusion->op_count; at++) {
        const struct op *op = &fusion->ops[at];
        struct strip_match strip;

        if (op->kind != OP_CONTRACT || op->input_count != 4 || !fusion_may_take(fusion, at) ||
            op->attributes[CONTRACT_CAUSAL] != 0) {
            continue;
        }
        if ((strip_at(&strip, fusion, readers, at, 0) ||
             strip_at(&strip, fusion, readers, at, 1)) &&
            !add_strip(fusion, &strip)) {
            return false;
        }
    }
    return true;
}

/* ---- the launch ---------------------------------------------------------------------- */

static enum cuda_kernel strips_kernel(const struct launcher *launcher, int bits)
{
    if (contract_by_halves(launcher, UNITS_STRIPS, bits)) {
        return bits == 14 ? KERNEL_STRIP_HALVES_NARROW : KERNEL_STRIP_HALVES_WIDE;
    }
    return bits == 14 ? KERNEL_STRIP_COLUMNS_NARROW : KERNEL_STRIP_COLUMNS_WIDE;
}

static enum device_result launch_strips(const struct launcher *launcher,
                                        const struct fusion *fusion, uint32_t at)
{
    const struct fused_group *group = fusion_group(fusion, at);
    const struct op *quantize = &group->ops[0];
    const struct op *contract = &group->ops[1];
    const uint32_t is_b = quantize->outputs[2] == contract->inputs[2];
    const struct contraction_shape shape = contraction_shape_of(contract);
    struct strip_columns_args args = {
        .view = launch_quantize_args(launcher, quantize),
        .product = {.contract = launch_contract_args(launcher, contract),
                    .window = shape.window,
                    .is_b = is_b},
        .rows = strips_rows_of(launcher->shared_max, (uint64_t)shape.k)};
    struct contract_args *product = &args.product.contract;
    const uint64_t held = is_b ? product->n : product->m;
    const uint64_t others = product->batches * (is_b ? product->m : product->n);
    const struct packed_operand other =
        launch_operand(&shape, others, launcher->memory[contract->inputs[is_b ? 0 : 2]]);

    assert(args.rows > 0); /* strip_at() takes no others */
    *(is_b ? &product->a : &product->b) = other;
    args.view.across = 1;
    args.strips = (held + args.rows - 1) / args.rows;
    const struct device_launch launch = {.kernel = strips_kernel(launcher, shape.bits),
                                         .grid = {(uint32_t)(args.strips * product->batches), 1, 1},
                                         .block = STRIP_THREADS,
                                         .shared_size = STRIP_SHARED(args.rows, (uint64_t)shape.k),
                                         .arguments_size = sizeof(args),
                                         .arguments = &args};

    return launcher->calls->launch(launcher->device, &launch);
}

/* ---- the self-test ------------------------------------------------------------------- */

/*
 * Views across memory by few rows, on either side of a product: a causal softmax's columns, long
 * rows and short ones, and as many of the other operand as a strip takes.
 */
static void add_selftest(struct selftest_tape *tape, uint32_t part)
{
    static const struct row_kind softmax = {OP_SOFTMAX, 0x3e000000, {1}, {3, 3, 1, 3, 3, 1}};
    static const struct {
        int64_t batches;
        int64_t rows;
        int64_t others;
        int64_t k;
        int bits;
        int block;
        bool is_b;
        bool is_softmax;
    } shapes[] = {{1, 20, 5, 130, 15, 128, false, false},
                  {2, 70, 19, 150, 14, 128, true, true},
                  {1, 40, 70, 1000, 14, 128, false, false},
                  {3, 17, 128, 60, 16, 0, true, false}};
    const bool is_b = shapes[part].is_b;
    const int64_t batches = shapes[part].batches;
    const int64_t rows = shapes[part].rows;
    const int64_t others = shapes[part].others;
    const int64_t k = shapes[part].k;
    const int64_t by_a[3] = {batches, rows, others};
    const int64_t by_b[3] = {batches, others, rows};
    const uint32_t y = selftest_give(tape, DTYPE_F32, (uint64_t)(batches * others * k));
    const uint32_t x = shapes[part].is_softmax
                           ? selftest_rows(tape, &softmax, batches * k, rows, k)->outputs[5]
                           : selftest_give(tape, DTYPE_F32, (uint64_t)(batches * rows * k));
    const struct op *a =
        selftest_quantize(tape, x, batches, rows, k, shapes[part].bits, shapes[part].block, false);
    const struct op *b =
        selftest_quantize(tape, y, batches, others, k, shapes[part].bits, shapes[part].block, true);

    (void)selftest_contract(tape, is_b ? b : a, is_b ? a : b, is_b ? by_b : by_a, k, !is_b);
}

/* A strip to each multiprocessor. */
static void add_timed(struct selftest_tape *tape, int bits, int64_t processors)
{
    const int64_t sizes[3] = {1, processors * STRIP_ROWS, STRIP_COLUMNS / 2};
    const int64_t k = selftest_timed_k(processors, STRIP_K_MAX);
    const uint32_t x = selftest_give(tape, DTYPE_F32, (uint64_t)(sizes[1] * k));
    const uint32_t y = selftest_give(tape, DTYPE_F32, (uint64_t)(sizes[2] * k));
    const struct op *a = selftest_quantize(tape, x, 1, sizes[1], k, bits, 128, false);
    const struct op *b = selftest_quantize(tape, y, 1, sizes[2], k, bits, 128, true);

    (void)selftest_contract(tape, a, b, sizes, k, false);
}

const struct fusion_pattern pattern_strips = {.name = "strips",
                                              .variant = VARIANT_STRIPS,
                                              .match = find_strips,
                                              .launch = launch_strips,
                                              .selftest = add_selftest,
                                              .selftests = 4,
                                              .products = 1u << VARIANT_MMA | 1u << VARIANT_HALF,
                                              .again = 2,
                                              .timed = add_timed};
