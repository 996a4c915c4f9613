/*
 * sums.c - gradients of biases and gains: a quantization across memory of which only the rows' sums
 * are wanted, and those sums, become one operation (columns_body.h). Where a matrix's gradient
 * reads the same limbs, they are made, and the sums are theirs.
 *
 * Saves: limbs written and read; for the positions' gradient of GPT-2, 250 MB for 12.6 MB of
 * numbers.
 */
#include "engine/cuda/fusions/group.h"
#include "engine/cuda/fusions/pattern.h"
#include "engine/cuda/fusions/quantizer.h"
#include "engine/cuda/launch/launch_quantize.h"

/* Are its rows neighbours in memory, of one piece or as short as a block holds them? */
static bool is_summed_view(const struct fusion *fusion, const struct op *quantize)
{
    const struct plain_view view = quantizer_view(quantize);
    const int64_t k = contraction_shape_of(quantize).k;

    return view.rows > 0 && view.strides[view.rows - 1] == 1 && quantizes_pieces(quantize) &&
           (k <= CONTRACTION_PIECE ||
            launch_columns_of(fusion->facts.shared_max, (uint64_t)k) != 0);
}

static bool sums_at(uint32_t ats[2], const struct fusion *fusion, const struct readers *readers,
                    uint32_t at)
{
    const struct op *sums = &fusion->ops[at];

    if (sums->kind != OP_CONTRACT_ONES || sums->input_count != 2 || !fusion_may_take(fusion, at)) {
        return false;
    }
    ats[0] = quantizer_of_operand(fusion, readers, sums, 0);
    ats[1] = at;
    return ats[0] != NEVER && is_summed_view(fusion, &fusion->ops[ats[0]]) &&
           group_can_form(fusion, readers, ats, 2, sums->outputs, 1);
}

static bool find_sums(struct fusion *fusion, const struct tape *tape, struct readers *readers)
{
    (void)tape;
    for (uint32_t at = 0; at < fusion->op_count; at++) {
        struct op maker = fusion->ops[at];
        uint32_t ats[2];

        if (!sums_at(ats, fusion, readers, at)) {
            continue;
        }
        maker.input_count = 1;
        maker.inputs[0] = fusion->ops[ats[0]].inputs[0];
        if (!group_add(fusion, ats, 2, &maker, &pattern_sums)) {
            return false;
        }
    }
    return true;
}

static enum device_result launch_sums(const struct launcher *launcher, const struct fusion *fusion,
                                      uint32_t at)
{
    const struct fused_group *group = fusion_group(fusion, at);
    struct column_sums_args args = {.view = launch_quantize_args(launcher, &group->ops[0]),
                                    .out = output_memory(launcher, &group->ops[1], 0)};

    args.view.peaks = NULL;
    if (args.view.k <= CONTRACTION_PIECE) {
        return LAUNCH_WORK(launcher, KERNEL_SHORT_SUMS, args.view.rows, BLOCK_THREADS, args);
    }
    args.view.team = launch_columns_of(launcher->shared_max, args.view.k);
    assert(args.view.team > 0); /* is_summed_view() */
    return launch_columns(launcher, KERNEL_COLUMN_SUMS, &args.view, (uint32_t)sizeof(args));
}

/* Sums of columns: long ones, of one piece, of all widths. */
static void add_selftest(struct selftest_tape *tape, uint32_t part)
{
    static const struct {
        int64_t rows;
        int64_t k;
        int bits;
        int block;
    } shapes[] = {{37, 300, 14, 128}, {19, 1030, 16, 128}, {9, 200, 22, 0}, {300, 5, 15, 128}};
    const int64_t rows = shapes[part].rows;
    const int64_t k = shapes[part].k;
    const uint32_t x = selftest_give(tape, DTYPE_F32, (uint64_t)(2 * rows * k));
    const struct op *q =
        selftest_quantize(tape, x, 2, rows, k, shapes[part].bits, shapes[part].block, false);

    (void)selftest_ones(tape, q, 2 * rows, k);
}

const struct fusion_pattern pattern_sums = {.name = "sums",
                                            .variant = VARIANT_SUMS,
                                            .match = find_sums,
                                            .launch = launch_sums,
                                            .selftest = add_selftest,
                                            .selftests = 4};
