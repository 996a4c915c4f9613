/*
 * rules_integers.c - the rules of integers, and of several elements of each row: taken, sent, put
 * in order.
 *
 * What sorts counts: a column's place is how many columns come before it, and the column at a place
 * is the one that has it. A cheating solver's places may repeat: then the first one stands.
 */
#include "engine/ops/integers.h"
#include "engine/ops/view.h"
#include "engine/rules/rule_real.h"
#include "engine/rules/rules.h"

enum { SORT_RANK_OUT, SORT_INDEX_OUT };

/* An operand as its view reads it. */
static RULE uint32_t viewed_word(const struct rule_call *call, uint32_t input, uint64_t index)
{
    const int64_t *dims = &call->op->attributes[BINARY_DIMS];

    return operand_get(&call->inputs[input],
                       view_place(dims, dims + VIEW_AXES * (input + 1), index));
}

RULE uint32_t rule_integer(const struct rule_call *call, uint64_t index)
{
    return element_integers((enum integer_function)call->op->attributes[INTEGER_FUNCTION],
                            viewed_word(call, 0, index), viewed_word(call, 1, index));
}

RULE uint32_t rule_take(const struct rule_call *call, uint64_t index)
{
    const uint64_t columns = (uint64_t)call->op->attributes[COLUMNS];
    const uint64_t row = index / (uint64_t)call->op->attributes[TAKE_WIDTH];
    const uint64_t column = operand_get(&call->inputs[1], index);

    if (column < columns) {
        return operand_get(&call->inputs[0], row * columns + column);
    }
    return call->inputs[0].dtype == DTYPE_U32 ? UINT32_MAX : FLOAT_NAN_BITS;
}

RULE uint32_t rule_scatter(const struct rule_call *call, uint64_t index)
{
    const bool adds = call->op->attributes[SCATTER_FUNCTION] == SCATTER_ADD;
    const uint64_t columns = (uint64_t)call->op->attributes[COLUMNS];
    const uint64_t width = (uint64_t)call->op->attributes[SCATTER_WIDTH];
    const uint64_t first = index / columns * width;
    uint32_t bits = operand_get(&call->inputs[2], index);

    for (uint64_t at = first; at < first + width; at++) {
        if (operand_get(&call->inputs[0], at) == index % columns) {
            const uint32_t sent = operand_get(&call->inputs[1], at);

            bits = adds ? real_to_bits(real_from_bits(bits) + real_from_bits(sent)) : sent;
        }
    }
    return bits;
}

static RULE uint32_t key_at(const struct rule_call *call, uint64_t index)
{
    return sort_key(operand_get(&call->inputs[0], index),
                    call->op->attributes[SORT_DESCENDING] != 0);
}

RULE uint32_t rule_sort_rank(const struct rule_call *call, uint64_t index)
{
    const uint64_t columns = (uint64_t)call->op->attributes[COLUMNS];
    const uint64_t first = index - index % columns;
    const uint32_t own = key_at(call, index);
    uint32_t before = 0;

    for (uint64_t at = first; at < first + columns; at++) {
        const uint32_t key = key_at(call, at);

        before += key < own || (key == own && at < index);
    }
    return before;
}

RULE uint32_t rule_sort_index(const struct rule_call *call, uint64_t index)
{
    const uint64_t columns = (uint64_t)call->op->attributes[COLUMNS];
    const uint64_t place = index % columns;
    uint32_t column = 0;

    while (column < columns &&
           operand_get(&call->outputs[SORT_RANK_OUT], index - place + column) != place) {
        column++;
    }
    return column;
}

RULE uint32_t rule_sort(const struct rule_call *call, uint64_t index)
{
    const uint64_t columns = (uint64_t)call->op->attributes[COLUMNS];
    const uint64_t column = operand_get(&call->outputs[SORT_INDEX_OUT], index);
    const uint64_t at = index - index % columns + column;

    return column < columns ? real_to_bits(rule_input(call, 0, at)) : FLOAT_NAN_BITS;
}
