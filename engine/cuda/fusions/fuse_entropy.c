/*
 * fuse_entropy.c - cross-entropy, its gradient and the gradient's quantization along rows, found in
 * a tape. The three become one operation, the last of them: entropy_body.h. What a tape does with
 * the losses in between is not what the gradient waits for: it goes behind.
 */
#include <string.h>

#include "engine/cuda/fusions/fuse_core.h"
#include "engine/cuda/launch/launch_core.h"

enum { LOSS, GRADIENT, QUANTIZED, PARTS };

/* The outputs of cross-entropy, as in op.h. */
enum { OUT_MAX_PART, OUT_MAX, OUT_EXPS, OUT_SUM_PART, OUT_SUM, OUT_LOSS };

#define SPAN_MAX 64 /* operations from the first to the last */

static bool reads(const struct op *op, const struct op *maker)
{
    for (uint32_t i = 0; i < op->input_count; i++) {
        for (uint32_t j = 0; j < maker->output_count; j++) {
            if (op->inputs[i] == maker->outputs[j]) {
                return true;
            }
        }
    }
    return false;
}

static bool is_gradient_of(const struct op *op, const struct op *loss)
{
    return op->kind == OP_CROSS_ENTROPY_GRAD && op->inputs[0] == loss->inputs[0] &&
           op->inputs[1] == loss->inputs[1] && op->inputs[2] == loss->outputs[OUT_MAX] &&
           op->inputs[3] == loss->outputs[OUT_SUM] &&
           op->attributes[ROWS] == loss->attributes[ROWS] &&
           op->attributes[COLUMNS] == loss->attributes[COLUMNS];
}

static bool quantizes(const struct op *op, const struct op *gradient)
{
    struct contraction_shape shape;

    if (op->kind != OP_QUANTIZE || op->inputs[0] != gradient->outputs[0] ||
        !fuse_view_is_rows(op, gradient->attributes[ROWS], gradient->attributes[COLUMNS])) {
        return false;
    }
    shape = contraction_shape_of(op);
    return shape.piece == CONTRACTION_PIECE && (shape.blocks == 1 || shape.block_span == 1);
}

/* The three operations, the first of which stands at ats[LOSS]. */
static bool find_parts(uint32_t ats[PARTS], const struct fusion *fusion)
{
    const struct op *loss = &fusion->ops[ats[LOSS]];
    int part = GRADIENT;

    for (uint32_t at = ats[LOSS] + 1; at < fusion->op_count && at < ats[LOSS] + SPAN_MAX; at++) {
        const struct op *op = &fusion->ops[at];

        if (!chain_may_take(fusion, at)) {
            return false;
        }
        if (part == GRADIENT ? is_gradient_of(op, loss)
                             : quantizes(op, &fusion->ops[ats[GRADIENT]])) {
            ats[part++] = at;
        }
        if (part == PARTS) {
            return true;
        }
    }
    return false;
}

static bool is_part(const uint32_t ats[PARTS], uint32_t at)
{
    return at == ats[LOSS] || at == ats[GRADIENT] || at == ats[QUANTIZED];
}

/*
 * What moves leaves its leg, and so may what closes up: nobody may ask for what the one makes, nor
 * bring the other what it reads.
 */
static bool may_move(const struct fusion *fusion, const struct tape *tape, uint32_t first,
                     const bool *late, uint32_t count)
{
    bool closes_up = false;

    for (uint32_t i = 0; i < count; i++) {
        const struct op *op = &fusion->ops[first + i];

        for (uint32_t j = 0; late[i] && j < op->output_count; j++) {
            if (tape->tensors[op->outputs[j]].role == ROLE_OUTPUT) {
                return false;
            }
        }
        for (uint32_t j = 0; closes_up && !late[i] && j < op->input_count; j++) {
            if (tape->tensors[op->inputs[j]].role == ROLE_INPUT) {
                return false;
            }
        }
        closes_up = closes_up || late[i];
    }
    return true;
}

/*
 * Puts what reads the parts' outputs, and what reads that, behind the last part; the others keep
 * their order. False, and nothing is moved, where a part waits for it.
 */
static bool move_readers_behind(struct fusion *fusion, const struct tape *tape, uint32_t ats[PARTS])
{
    struct op ops[SPAN_MAX];
    bool late[SPAN_MAX] = {false};
    const uint32_t first = ats[LOSS];
    const uint32_t count = ats[QUANTIZED] - first + 1;
    uint32_t place = first;
    uint32_t part = LOSS;

    for (uint32_t i = 1; i < count; i++) {
        const struct op *op = &fusion->ops[first + i];

        for (uint32_t j = 0; j < i; j++) {
            late[i] =
                late[i] || ((late[j] || (is_part(ats, first + j) && !is_part(ats, first + i))) &&
                            reads(op, &fusion->ops[first + j]));
        }
        if (late[i] && is_part(ats, first + i)) {
            return false;
        }
    }
    if (fusion->facts.in_legs && !may_move(fusion, tape, first, late, count)) {
        return false;
    }
    memcpy(ops, &fusion->ops[first], count * sizeof(*ops));
    for (int turn = 0; turn < 2; turn++) {
        for (uint32_t i = 0; i < count; i++) {
            if (late[i] == (turn == 1)) {
                if (turn == 0 && part < PARTS && ats[part] == first + i) {
                    ats[part++] = place;
                }
                fusion->ops[place++] = ops[i];
            }
        }
    }
    return true;
}

/* The gradient, and all that the three make: see launch.h. */
static struct op maker_of(const struct fusion *fusion, const uint32_t ats[PARTS])
{
    const struct op *loss = &fusion->ops[ats[LOSS]];
    const struct op *quantize = &fusion->ops[ats[QUANTIZED]];
    struct op maker = fusion->ops[ats[GRADIENT]];

    maker.inputs[2] = maker.inputs[4];
    maker.input_count = 3;
    maker.attribute_count = ENTROPY_ATTRIBUTES;
    maker.attributes[ENTROPY_BITS] = quantize->attributes[QUANTIZE_BITS];
    maker.attributes[ENTROPY_BLOCK] = quantize->attributes[QUANTIZE_BLOCK];
    maker.output_count = ENTROPY_OUTPUTS;
    maker.outputs[ENTROPY_PEAKS] = quantize->outputs[0];
    maker.outputs[ENTROPY_EXPONENTS] = quantize->outputs[1];
    maker.outputs[ENTROPY_Q] = quantize->outputs[2];
    maker.outputs[ENTROPY_LOSS] = loss->outputs[OUT_LOSS];
    maker.outputs[ENTROPY_MAX] = loss->outputs[OUT_MAX];
    maker.outputs[ENTROPY_SUM] = loss->outputs[OUT_SUM];
    return maker;
}

bool fuse_find_entropy(struct fusion *fusion, const struct tape *tape, struct readers *readers)
{
    for (uint32_t at = 0; at < fusion->op_count; at++) {
        const struct op *op = &fusion->ops[at];
        uint32_t ats[PARTS] = {at};
        struct op maker;

        if (op->kind != OP_CROSS_ENTROPY || !chain_may_take(fusion, at) ||
            !launch_entropy_fits(fusion->facts.shared_max, (uint64_t)op->attributes[COLUMNS]) ||
            !find_parts(ats, fusion) || !move_readers_behind(fusion, tape, ats)) {
            continue;
        }
        readers_release(readers);
        if (!readers_find(readers, fusion, tape)) {
            return false;
        }
        maker = maker_of(fusion, ats);
        if (chain_closed(fusion, readers, ats, PARTS, maker.outputs, maker.output_count) &&
            !chain_add(fusion, ats, PARTS, &maker, launch_entropy)) {
            return false;
        }
    }
    return true;
}
