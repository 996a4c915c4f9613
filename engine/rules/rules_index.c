/*
 * rules_index.c - the rules that choose, draw and move elements. Most of them copy bits and do no
 * arithmetic.
 */
#include <assert.h>

#include "engine/ops/batch_rows.h"
#include "engine/ops/philox.h"
#include "engine/ops/real.h"
#include "engine/rules/rule_real.h"
#include "engine/rules/rules.h"

static RULE uint64_t attribute(const struct rule_call *call, uint32_t at)
{
    return (uint64_t)call->op->attributes[at];
}

static RULE uint64_t seed_at(const struct rule_call *call, uint32_t low)
{
    return (uint64_t)(uint32_t)attribute(call, low + 1) << 32 | (uint32_t)attribute(call, low);
}

RULE uint32_t rule_step_next(const struct rule_call *call, uint64_t index)
{
    (void)index;
    return operand_get(&call->inputs[0], 0) + 1;
}

RULE uint32_t rule_schedule(const struct rule_call *call, uint64_t index)
{
    (void)index;
    uint64_t columns = attribute(call, SCHEDULE_COLUMNS);
    uint64_t rows = call->inputs[0].count / columns;
    uint64_t step = operand_get(&call->inputs[1], 0);
    uint64_t row = step < rows ? step : rows - 1;

    return operand_get(&call->inputs[0], row * columns + attribute(call, SCHEDULE_COLUMN));
}

RULE uint32_t rule_fill(const struct rule_call *call, uint64_t index)
{
    (void)index;
    return (uint32_t)attribute(call, FILL_VALUE_BITS);
}

/* An integer below count, drawn for one row of the batch. step_input holds the step's number. */
static RULE uint64_t batch_draw(const struct rule_call *call, uint64_t row, uint32_t step_input,
                                uint64_t count)
{
    uint32_t step = operand_get(&call->inputs[step_input], 0);
    struct philox_block block = philox_draw(row, (uint32_t)attribute(call, BATCH_STREAM), step,
                                            seed_at(call, BATCH_SEED_LOW));

    return philox_below(&block, count);
}

/* ahead is 0 for the token at index, 1 for the one that follows it. */
static RULE uint32_t batch_token(const struct rule_call *call, uint64_t index, uint64_t ahead)
{
    uint64_t length = attribute(call, BATCH_LENGTH);
    uint64_t windows = call->inputs[0].count - length; /* op_check: the data holds length+1 */
    uint64_t start = batch_draw(call, index / length, 1, windows);

    return operand_get(&call->inputs[0], start + index % length + ahead);
}

RULE uint32_t rule_batch_tokens(const struct rule_call *call, uint64_t index)
{
    return batch_token(call, index, 0);
}

RULE uint32_t rule_batch_targets(const struct rule_call *call, uint64_t index)
{
    return batch_token(call, index, 1);
}

RULE uint32_t rule_batch_samples(const struct rule_call *call, uint64_t index)
{
    const struct operand *samples = &call->inputs[0];
    uint64_t width = attribute(call, BATCH_LENGTH);
    uint64_t sample = batch_draw(call, index / width, 2, samples->count / width);
    uint32_t raw = operand_get(samples, sample * width + index % width);
    float value = samples->dtype == DTYPE_F32 ? real_from_bits(raw) : (float)raw;

    return real_to_bits(value * real_from_bits((uint32_t)attribute(call, BATCH_SCALE_BITS)));
}

RULE uint32_t rule_batch_labels(const struct rule_call *call, uint64_t index)
{
    uint64_t samples = call->inputs[0].count / attribute(call, BATCH_LENGTH);

    return operand_get(&call->inputs[1], batch_draw(call, index, 2, samples));
}

RULE uint32_t rule_batch_rows(const struct rule_call *call, uint64_t index)
{
    const struct operand *data = &call->inputs[0];
    uint64_t length = attribute(call, BATCH_LENGTH);
    uint64_t row = batch_row(call->op->attributes, data->count, operand_get(&call->inputs[1], 0),
                             index / length);
    uint64_t at = index % length + attribute(call, BATCH_ROWS_AHEAD);

    if (row == BATCH_ROW_NONE || at == length) {
        return (uint32_t)attribute(call, BATCH_ROWS_PAST);
    }
    return operand_number(data, row * length + at);
}

RULE uint32_t rule_uniform(const struct rule_call *call, uint64_t index)
{
    struct philox_block block =
        philox_draw(index >> 2, (uint32_t)attribute(call, UNIFORM_STREAM),
                    operand_get(&call->inputs[0], 0), seed_at(call, UNIFORM_SEED_LOW));

    return block.words[index & 3];
}

RULE uint32_t rule_dropout(const struct rule_call *call, uint64_t index)
{
    uint32_t step = operand_get(&call->inputs[1], 0);
    struct philox_block block = philox_draw(index >> 2, (uint32_t)attribute(call, DROPOUT_STREAM),
                                            step, seed_at(call, DROPOUT_SEED_LOW));

    if (block.words[index & 3] < attribute(call, DROPOUT_THRESHOLD)) {
        return 0;
    }
    return real_to_bits(real_from_bits(operand_get(&call->inputs[0], index)) *
                        real_from_bits((uint32_t)attribute(call, DROPOUT_SCALE_BITS)));
}

RULE uint32_t rule_gather(const struct rule_call *call, uint64_t index)
{
    uint64_t width = attribute(call, GATHER_WIDTH);
    uint64_t row = operand_get(&call->inputs[1], index / width);

    if (row >= attribute(call, GATHER_VOCABULARY)) {
        return FLOAT_NAN_BITS;
    }
    return operand_number(&call->inputs[0], row * width + index % width);
}

/* The summed width of the first part_count parts; their widths follow SPLIT_ROWS. */
static RULE uint64_t parts_width(const struct rule_call *call, uint32_t part_count)
{
    uint64_t width = 0;

    for (uint32_t i = 0; i < part_count; i++) {
        width += attribute(call, SPLIT_WIDTHS + i);
    }
    return width;
}

RULE uint32_t rule_split(const struct rule_call *call, uint32_t part, uint64_t index)
{
    uint64_t width = attribute(call, SPLIT_WIDTHS + part);
    uint64_t whole = parts_width(call, call->op->output_count);
    uint64_t before = parts_width(call, part);

    return operand_get(&call->inputs[0], index / width * whole + before + index % width);
}

RULE uint32_t rule_concat(const struct rule_call *call, uint64_t index)
{
    uint64_t whole = parts_width(call, call->op->input_count); /* op_check: at least 1 */
    uint32_t part = 0;

    assert(whole > 0);

    uint64_t row = index / whole;
    uint64_t column = index % whole;

    while (column >= attribute(call, SPLIT_WIDTHS + part)) {
        column -= attribute(call, SPLIT_WIDTHS + part);
        part++;
    }
    return operand_get(&call->inputs[part], row * attribute(call, SPLIT_WIDTHS + part) + column);
}

RULE uint32_t rule_expand(const struct rule_call *call, uint64_t index)
{
    return operand_get(&call->inputs[0],
                       index / attribute(call, EXPAND_DIV) % attribute(call, EXPAND_MOD));
}
