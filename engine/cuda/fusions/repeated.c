/*
 * repeated.c - a quantization of a view that an earlier operation has quantized, however its axes
 * are written, is read from the first. A bias' gradient has the view of its weight's gradient. An
 * earlier one that some steps leave out is read by what they leave out too.
 *
 * Saves: the later quantization, which has no reader left.
 */
#include <stdlib.h>

#include "engine/cuda/fusions/pattern.h"
#include "engine/cuda/fusions/quantizer.h"

/* Has every step that executes operation `at` executed an earlier one too? */
static bool comes_with(const struct fusion *fusion, uint32_t earlier, uint32_t at)
{
    const bool *lazy = fusion->lazy.ops;

    return lazy == NULL || !lazy[earlier] || lazy[at];
}

/* Readers of the outputs of a later one read those of the first: the tensors' new names. */
static void share_quantizations(struct fusion *fusion, const struct tape *tape, uint32_t *names,
                                const bool *kept, uint32_t *before, uint32_t *newest)
{
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        names[id] = id;
        newest[id] = NEVER;
    }
    for (uint32_t at = 0; at < tape->op_count; at++) {
        struct op *op = &fusion->ops[at];

        for (uint32_t i = 0; i < op->input_count; i++) {
            op->inputs[i] = names[op->inputs[i]];
        }
        if (op->kind != OP_QUANTIZE || tape_varies(tape, at, op->inputs[0])) {
            continue;
        }
        uint32_t made = newest[op->inputs[0]];

        while (made != NEVER &&
               (!comes_with(fusion, made, at) || !quantizer_same(&fusion->ops[made], op))) {
            made = before[made];
        }
        for (uint32_t i = 0; made != NEVER && i < op->output_count; i++) {
            if (!kept[op->outputs[i]]) {
                names[op->outputs[i]] = names[fusion->ops[made].outputs[i]];
            }
        }
        before[at] = newest[op->inputs[0]];
        newest[op->inputs[0]] = at;
    }
}

static bool find_repeated(struct fusion *fusion, const struct tape *tape, struct readers *readers)
{
    uint32_t *names = malloc(((size_t)tape->tensor_count + 1) * sizeof(*names));
    uint32_t *newest = malloc(((size_t)tape->tensor_count + 1) * sizeof(*newest));
    uint32_t *before = malloc(((size_t)tape->op_count + 1) * sizeof(*before));
    const bool there = names != NULL && newest != NULL && before != NULL;

    if (there) {
        share_quantizations(fusion, tape, names, readers->kept, before, newest);
    }
    free(names);
    free(newest);
    free(before);
    return there;
}

const struct fusion_pattern pattern_repeated = {
    .name = "repeated", .variant = VARIANT_COUNT, .match = find_repeated};
