/*
 * held.c - norms, softmax and their gradients along rows of up to 1,024, and the quantization of
 * their result, become a unit: the row is a warp's registers, and the same warp quantizes it.
 *
 * Saves: three to five passes over the row, and the launch that would read it again. Rows that
 * nobody quantizes next are held too: launch_rows.c.
 */
#include "engine/cuda/fusions/pattern.h"
#include "engine/cuda/fusions/quantizer.h"
#include "engine/cuda/launch/launch_quantize.h"
#include "engine/cuda/launch/launch_rows.h"

static bool find_held(struct fusion *fusion, const struct tape *tape, struct readers *readers)
{
    for (uint32_t at = 0; at + 1 < tape->op_count; at++) {
        const struct op *op = &fusion->ops[at];

        if (fusion_is_stretch(fusion, at, at + 1) && op->output_count > 0 && launch_can_hold(op) &&
            fusion_may_take(fusion, at) && op->attributes[COLUMNS] % 4 == 0 &&
            quantizer_of_result(fusion, readers, op, launch_rows_result(op)) == at + 1) {
            fusion->ends[at] = at + 2;
            fusion->patterns[at] = &pattern_held;
        }
    }
    return true;
}

static enum device_result launch_unit(const struct launcher *launcher, const struct fusion *fusion,
                                      uint32_t at)
{
    struct rows_args rows = launch_rows_args(launcher, &fusion->ops[at]);
    const struct quantize_args quantize = launch_quantize_args(launcher, &fusion->ops[at + 1]);

    if (fusion->patterns[at] == &pattern_unwritten) {
        rows.outputs[launch_rows_result(&fusion->ops[at])] = NULL;
    }
    return launch_held(launcher, &rows, &quantize);
}

/* Every kind in narrow rows and wide ones, quantized at once and alone. */
static void add_selftest(struct selftest_tape *tape, uint32_t part)
{
    static const struct row_kind kinds[] = {
        {OP_LAYER_NORM, 0x3727c5ac, {1, 2, 2}, {3, 3, 3, 3, 1}},
        {OP_LAYER_NORM_GRAD, 0, {1, 1, 2, 3, 3}, {3, 3, 3, 3, 1, 1}},
        {OP_RMS_NORM, 0x3727c5ac, {1, 2}, {3, 3, 1}},
        {OP_RMS_NORM_GRAD, 0, {1, 1, 2, 3}, {3, 3, 1, 1}},
        {OP_SOFTMAX, 0x3e000000, {1}, {3, 3, 1, 3, 3, 1}},
        {OP_SOFTMAX_GRAD, 0x3e000000, {1, 1}, {3, 3, 1}},
    };
    const int64_t columns = part == 0 ? 300 : 1000;

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        const struct op *op = selftest_rows(tape, &kinds[i], 9, columns, part == 0 ? 0 : 9);
        const uint32_t result = op->outputs[launch_rows_result(op)];
        const struct op *q = selftest_quantize(tape, result, 1, 9, columns, 14, 128, true);

        if (i % 2 == 0) {
            (void)selftest_ones(tape, q, 9, columns);
            (void)selftest_dots(tape, q, q, 9, columns);
        }
    }
    (void)selftest_rows(tape, &kinds[0], 9, columns + 1, 0);
    (void)selftest_rows(tape, &kinds[5], 9, columns + 1, 5);
}

/* tiles.c says where; if the unit is cut, its operations run one by one and hand the rows on. */
const struct fusion_pattern pattern_unwritten = {
    .name = "held", .variant = VARIANT_HELD, .launch = launch_unit};

const struct fusion_pattern pattern_held = {.name = "held",
                                            .variant = VARIANT_HELD,
                                            .match = find_held,
                                            .launch = launch_unit,
                                            .selftest = add_selftest,
                                            .selftests = 2};
