/*
 * rules_reduce.c - the rules of the extreme of a row, and of one element of each row.
 *
 * A row is reduced in chunks, which are outputs of their own, so no rule reads more than FOLD_CHUNK
 * elements.
 */
#include "engine/ops/extreme.h"
#include "engine/rules/rule_real.h"
#include "engine/rules/rules.h"

enum { REDUCE_PART, REDUCE_PART_INDEX };

static RULE uint64_t columns_of_reduced(const struct rule_call *call)
{
    return (uint64_t)call->op->attributes[COLUMNS];
}

/* The column of the extreme of a chunk; index counts chunks of all rows. */
static RULE uint64_t extreme_of_chunk(const struct rule_call *call, uint64_t index)
{
    int64_t function = call->op->attributes[REDUCE_FUNCTION];
    uint64_t columns = columns_of_reduced(call);
    uint64_t chunks = fold_chunks(columns);
    uint64_t start = index / chunks * columns;
    uint64_t from = index % chunks * FOLD_CHUNK;
    uint64_t end = from + FOLD_CHUNK < columns ? from + FOLD_CHUNK : columns;
    float best = rule_input(call, 0, start + from);
    uint64_t holder = from;

    for (uint64_t c = from + 1; c < end; c++) {
        float value = rule_input(call, 0, start + c);

        if (extreme_takes(function, best, value)) {
            best = value;
            holder = c;
        }
    }
    return holder;
}

/* The part that holds the extreme of a row, counted over all rows. */
static RULE uint64_t extreme_of_parts(const struct rule_call *call, uint64_t row)
{
    int64_t function = call->op->attributes[REDUCE_FUNCTION];
    uint64_t chunks = fold_chunks(columns_of_reduced(call));
    uint64_t holder = row * chunks;
    float best = rule_output(call, REDUCE_PART, holder);

    for (uint64_t part = holder + 1; part < (row + 1) * chunks; part++) {
        float value = rule_output(call, REDUCE_PART, part);

        if (extreme_takes(function, best, value)) {
            best = value;
            holder = part;
        }
    }
    return holder;
}

RULE uint32_t rule_reduce_part(const struct rule_call *call, uint64_t index)
{
    uint64_t columns = columns_of_reduced(call);
    uint64_t start = index / fold_chunks(columns) * columns;

    return real_to_bits(rule_input(call, 0, start + extreme_of_chunk(call, index)));
}

RULE uint32_t rule_reduce_part_index(const struct rule_call *call, uint64_t index)
{
    return (uint32_t)extreme_of_chunk(call, index);
}

RULE uint32_t rule_reduce(const struct rule_call *call, uint64_t index)
{
    return real_to_bits(rule_output(call, REDUCE_PART, extreme_of_parts(call, index)));
}

RULE uint32_t rule_reduce_index(const struct rule_call *call, uint64_t index)
{
    return operand_get(&call->outputs[REDUCE_PART_INDEX], extreme_of_parts(call, index));
}

RULE uint32_t rule_gather_elements(const struct rule_call *call, uint64_t index)
{
    uint64_t columns = columns_of_reduced(call);
    uint64_t column = operand_get(&call->inputs[1], index);

    if (column >= columns) {
        return FLOAT_NAN_BITS;
    }
    return real_to_bits(rule_input(call, 0, index * columns + column));
}

RULE uint32_t rule_gather_elements_grad(const struct rule_call *call, uint64_t index)
{
    uint64_t columns = columns_of_reduced(call);
    uint64_t row = index / columns;

    if (operand_get(&call->inputs[0], row) != index % columns) {
        return 0;
    }
    return real_to_bits(rule_input(call, 1, row));
}
