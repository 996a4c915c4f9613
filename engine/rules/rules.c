/* rules.c - finds the rule of a kind and an output number; see rule.h and rules.h. */
#include "engine/rules/rule.h"

#include <assert.h>
#include <string.h>

#include "engine/ops/contraction.h"
#include "engine/ops/float_control.h"
#include "engine/ops/kernel.h"
#include "engine/rules/rules.h"

#define RULE_ENTRY(kind, output, rule) [kind][output] = (rule),

static rule_function *const rules[OP_KIND_COUNT][OP_OUTPUTS_MAX] = {RULE_LIST};

static uint32_t element_of(const struct rule_call *call, uint32_t output, uint64_t index)
{
    assert(output < call->op->output_count);
    if (call->op->kind == OP_SPLIT) {
        return rule_split(call, output, index);
    }
    return rules[call->op->kind][output](call, index);
}

uint32_t rule_element(const struct rule_call *call, uint32_t output, uint64_t index)
{
    uint64_t control = float_control_take();
    uint32_t bits = element_of(call, output, index);

    float_control_give_back(control);
    return bits;
}

/* ---- parts -------------------------------------------------------------- */

void rule_axis_narrow(struct rule_axis *axis, uint64_t from, uint64_t length)
{
    axis->from = from;
    axis->length = length;
    axis->part = axis->least;
    while (length > axis->part * RULE_PARTS_MAX) {
        axis->part *= 2;
    }
    axis->parts = (uint32_t)((length + axis->part - 1) / axis->part);
}

void rule_axis_enter(struct rule_axis *axis, uint32_t number)
{
    uint64_t skipped = number * axis->part;
    uint64_t left = axis->length - skipped;

    rule_axis_narrow(axis, axis->from + skipped, left < axis->part ? left : axis->part);
}

static struct rule_axis axis_of(enum rule_fold fold, uint64_t length, uint64_t least)
{
    struct rule_axis axis = {.fold = fold, .least = least};

    rule_axis_narrow(&axis, 0, length);
    return axis;
}

/* What a kind that sums over a long axis has for it. */
struct sum_rules {
    rule_base_function *base;
    rule_part_function *part;
};

static const struct sum_rules sums[OP_KIND_COUNT] = {
    [OP_CONTRACT] = {rule_contract_base, rule_contract_part},
    [OP_CONTRACT_ONES] = {rule_contract_ones_base, rule_contract_ones_part},
    [OP_CONTRACT_ONEHOT] = {rule_contract_onehot_base, rule_contract_onehot_part},
    [OP_CONTRACT_CHOSEN] = {rule_contract_chosen_base, rule_contract_chosen_part},
    [OP_CONTRACT_CHOSEN_ROWS] = {rule_contract_chosen_rows_base, rule_contract_chosen_rows_part},
};

void rule_axis_of(struct rule_axis *axis, const struct op *op, uint32_t output, uint64_t index)
{
    struct contraction_shape shape;

    *axis = (struct rule_axis){.fold = RULE_WHOLE};
    if (sums[op->kind].part != NULL) {
        shape = contraction_shape_of(op);
        *axis = axis_of(RULE_SUM, (uint64_t)shape.k, RULE_PART_OF_SUM);
    } else if (op->kind == OP_QUANTIZE && output == 0) {
        shape = contraction_shape_of(op);
        uint64_t start = index % (uint64_t)shape.pieces * (uint64_t)shape.piece;
        uint64_t left = (uint64_t)shape.k - start;

        *axis = axis_of(RULE_MAXIMUM, left < (uint64_t)shape.piece ? left : (uint64_t)shape.piece,
                        RULE_PART_OF_PIECE);
    } else if (op->kind == OP_QUANTIZE && output == 1) {
        shape = contraction_shape_of(op);
        *axis = axis_of(RULE_MAXIMUM, (uint64_t)shape.pieces, RULE_PART_OF_EXPONENTS);
    }
}

void rule_element_base(struct rule_base *base, const struct rule_call *call, uint32_t output,
                       uint64_t index)
{
    struct rule_part part = {.fold = RULE_SUM};
    struct rule_axis axis;

    *base = (struct rule_base){0};
    rule_axis_of(&axis, call->op, output, index);
    assert(axis.fold != RULE_WHOLE);
    if (axis.fold == RULE_SUM) {
        rule_base_function *base_of = sums[call->op->kind].base;

        assert(base_of != NULL);
        base->poisoned = base_of(&part, call, index);
        base->settled = part.settled;
        base->bits = part.bits;
        base->exponent = part.exponent;
    }
}

static rule_part_function *part_rule(enum op_kind kind, uint32_t output)
{
    if (kind == OP_QUANTIZE) {
        return output == 0 ? rule_quantize_peak_part : rule_quantize_exponent_part;
    }
    return sums[kind].part;
}

bool rule_element_is_edge(const struct rule_call *call, uint32_t output, uint64_t index)
{
    struct rule_part part = {.fold = RULE_SUM};

    if (call->op->kind == OP_CONTRACT || call->op->kind == OP_CONTRACT_CHOSEN) {
        part_rule(call->op->kind, output)(&part, call, index, 0, 0);
    }
    return part.settled;
}

void rule_element_part(struct rule_part *part, const struct rule_call *call, uint32_t output,
                       uint64_t index, const struct rule_axis *axis, uint32_t number, int exponent)
{
    struct rule_axis inner = *axis;
    uint64_t control;

    assert(axis->fold != RULE_WHOLE && number < axis->parts);
    rule_axis_enter(&inner, number);
    control = float_control_take();
    *part = (struct rule_part){.fold = axis->fold, .exponent = exponent};
    part_rule(call->op->kind, output)(part, call, index, inner.from, inner.from + inner.length);
    float_control_give_back(control);
}

void rule_part_join(struct rule_part *part, int64_t value)
{
    if (part->fold == RULE_MAXIMUM) {
        part->value = value > part->value ? value : part->value;
    } else {
        part->value = (int64_t)((uint64_t)part->value + (uint64_t)value);
    }
}

/* ---- the scalar backend ------------------------------------------------- */

static void put_element(void *memory, enum dtype dtype, uint64_t index, uint32_t bits)
{
    switch (dtype) {
    case DTYPE_F32:
    case DTYPE_U32:
    case DTYPE_I32:
        ((uint32_t *)memory)[index] = bits;
        return;
    case DTYPE_U8:
        ((uint8_t *)memory)[index] = (uint8_t)bits;
        return;
    case DTYPE_U16:
    case DTYPE_F16:
    case DTYPE_BF16:
        ((uint16_t *)memory)[index] = (uint16_t)bits;
        return;
    case DTYPE_I16:
        ((int16_t *)memory)[index] = (int16_t)bits;
        return;
    case DTYPE_COUNT:
        break;
    }
    assert(!"a tensor has a type");
}

static struct operand operand_of(const struct tensor *tensor, const void *memory)
{
    return (struct operand){.memory = memory, .dtype = tensor->dtype, .count = tensor->count};
}

/*
 * Every output must be there, since later rules of an operation read the earlier outputs. The
 * machine sets the threads' control words.
 */
/*
 * The exponents of a row, each as its rule has it: the largest of its block's own peaks and of all
 * peaks less W. The second is found once for a row: a long one has as many exponents as peaks.
 */
static void put_row_exponents(const struct kernel_call *call, const struct rule_call *rule,
                              uint64_t row)
{
    const struct contraction_shape shape = contraction_shape_of(rule->op);
    const uint64_t pieces = (uint64_t)shape.pieces;
    const uint64_t blocks = (uint64_t)shape.blocks;
    const uint64_t span = (uint64_t)shape.block_span;
    const struct operand *peaks = &rule->outputs[QUANTIZE_PEAKS_OUT];
    int64_t least = INT32_MIN;

    for (uint64_t p = 0; p < pieces; p++) {
        const int64_t peak = (int32_t)operand_get(peaks, row * pieces + p);

        least = peak - shape.window > least ? peak - shape.window : least;
    }
    for (uint64_t block = 0; block < blocks; block++) {
        const uint64_t first = block * span;
        const uint64_t end = first + span < pieces ? first + span : pieces;
        struct rule_part part = {.fold = RULE_MAXIMUM};

        rule_quantize_exponent_part(&part, rule, row * blocks + block, first, end);
        part.value = least > part.value ? least : part.value;
        put_element(call->outputs[QUANTIZE_EXPONENTS_OUT],
                    rule->outputs[QUANTIZE_EXPONENTS_OUT].dtype, row * blocks + block,
                    rule_part_finish(&part));
    }
}

static void run_quantize_exponents(const struct kernel_call *call, const struct rule_call *rule)
{
    const struct contraction_shape shape = contraction_shape_of(call->op);
    const struct tensor *tensor = &call->tensors[call->op->outputs[QUANTIZE_EXPONENTS_OUT]];
    const int64_t rows = (int64_t)tensor->count / shape.blocks;

#pragma omp parallel for schedule(static) num_threads(call->thread_count) if (rows > 16)
    for (int64_t row = 0; row < rows; row++) {
        put_row_exponents(call, rule, (uint64_t)row);
    }
}

void kernel_run_rules(const struct kernel_call *call)
{
    const struct op *op = call->op;
    struct rule_call rule = {.op = op};

    for (uint32_t i = 0; i < op->input_count; i++) {
        rule.inputs[i] = operand_of(&call->tensors[op->inputs[i]], call->inputs[i]);
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        assert(call->outputs[i] != NULL);
        rule.outputs[i] = operand_of(&call->tensors[op->outputs[i]], call->outputs[i]);
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        const struct tensor *tensor = &call->tensors[op->outputs[i]];
        int64_t count = (int64_t)tensor->count;

        if (op->kind == OP_QUANTIZE && i == QUANTIZE_EXPONENTS_OUT) {
            run_quantize_exponents(call, &rule);
            continue;
        }
#pragma omp parallel for schedule(static) num_threads(call->thread_count) if (count > 256)
        for (int64_t index = 0; index < count; index++) {
            put_element(call->outputs[i], tensor->dtype, (uint64_t)index,
                        element_of(&rule, i, (uint64_t)index));
        }
    }
}
