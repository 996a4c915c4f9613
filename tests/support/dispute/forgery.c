/* forgery.c - see forgery.h. */
#include "tests/support/dispute/forgery.h"

#include "base/endian.h"
#include "tests/support/test.h"

static uint8_t *value_at(struct buffer *reply, uint32_t part)
{
    return reply->data + 4 + 8 * (size_t)part;
}

static bool holds(const struct buffer *reply, const struct partial_sums_target *queried)
{
    struct partial_sums_reply read;

    return partial_sums_check(&read, queried, reply->data, reply->size) == VERDICT_VALID;
}

/* Another value of one part, so near that the exponent need not change. */
static bool bend_sum(struct buffer *reply, uint32_t part, const struct partial_sums_target *queried)
{
    uint64_t value = endian_load_be64(value_at(reply, part));

    for (uint32_t i = 0; i < 128; i++) {
        uint64_t change = UINT64_C(1) << i / 2;

        endian_store_be64(value_at(reply, part), i % 2 == 0 ? value + change : value - change);
        if (holds(reply, queried)) {
            return true;
        }
    }
    endian_store_be64(value_at(reply, part), value);
    return false;
}

/* The first part has all that was said of the range. */
static bool invent_of_range(struct buffer *reply, const struct partial_sums_target *queried)
{
    buffer_clear(reply);
    if (queried->fold == RULE_SUM && queried->bits == FLOAT_NAN_BITS) {
        buffer_add_u32(reply, 0);
        return true;
    }
    buffer_add_u32(reply, (uint32_t)queried->range.exponent);
    for (uint32_t i = 0; i < queried->count; i++) {
        buffer_add_u64(reply,
                       i > 0 && queried->fold == RULE_SUM ? 0 : (uint64_t)queried->range.value);
    }
    return holds(reply, queried);
}

/* The element's own significand and exponent. */
static bool invent_sum(struct buffer *reply, const struct partial_sums_target *queried)
{
    uint32_t bits = queried->bits;
    uint32_t place = bits >> 23 & 0xff;
    int64_t value = place == 0 ? bits & 0x7fffff : (bits & 0x7fffff) | 0x800000;
    int32_t exponent = (place == 0 ? 1 : (int32_t)place) - 150;

    buffer_clear(reply);
    if (bits == FLOAT_NAN_BITS) {
        buffer_add_u32(reply, 0); /* the part that is said to be poisoned */
        return true;
    }
    if (place == 0xff) {
        value = 1;
        exponent = 4000;
    }
    buffer_add_u32(reply, (uint32_t)exponent);
    for (uint32_t i = 0; i < queried->count; i++) {
        buffer_add_u64(reply, i > 0 ? 0 : (uint64_t)(bits >> 31 != 0 ? -value : value));
    }
    return holds(reply, queried);
}

/* The part itself has the maximum, and no other more. */
static bool bend_maximum(struct buffer *reply, uint32_t part,
                         const struct partial_sums_target *queried)
{
    int64_t peak = (int32_t)queried->bits;

    for (uint32_t i = 0; i < queried->count; i++) {
        if ((int64_t)endian_load_be64(value_at(reply, i)) > peak || i == part) {
            endian_store_be64(value_at(reply, i), (uint64_t)peak);
        }
    }
    return holds(reply, queried);
}

/* The part whose value is the greatest. */
static uint32_t greatest(struct buffer *reply, uint32_t count)
{
    uint32_t found = 0;

    for (uint32_t i = 1; i < count; i++) {
        if ((int64_t)endian_load_be64(value_at(reply, i)) >
            (int64_t)endian_load_be64(value_at(reply, found))) {
            found = i;
        }
    }
    return found;
}

bool forgery_bend(struct buffer *reply, uint32_t *part, const struct partial_sums_target *queried,
                  uint64_t *random)
{
    *part = (uint32_t)test_random_below(random, queried->count);
    if (queried->range.is_part) {
        *part = 0;
        return invent_of_range(reply, queried);
    }
    if (queried->fold == RULE_MAXIMUM) {
        uint32_t top = greatest(reply, queried->count);

        /* A peak that is too low hides the part that has it. */
        if ((int64_t)endian_load_be64(value_at(reply, top)) > (int32_t)queried->bits) {
            *part = top;
        }
        return bend_maximum(reply, *part, queried);
    }
    if (queried->bits != FLOAT_NAN_BITS && reply->size > 0 && bend_sum(reply, *part, queried)) {
        return true;
    }
    *part = 0;
    return invent_sum(reply, queried);
}

bool forgery_make(struct buffer *reply, uint32_t *part, const struct forgery_case *made,
                  uint64_t *random)
{
    const struct evidence_target *target = made->target;
    struct evidence_part false_part = {.number = 0};
    struct rule_axis axis;

    rule_axis_of(&axis, &made->tape->ops[target->op], target->output, target->element);
    buffer_init(reply, PARTIAL_SUMS_REPLY_MAX);
    assert_int_equal(evidence_parts(reply, made->tape, made->source, target,
                                    &(struct partial_sums_range){0}, NULL),
                     STATUS_OK);
    if (!forgery_bend(reply, part,
                      &(struct partial_sums_target){
                          .bits = made->bits, .fold = axis.fold, .count = axis.parts},
                      random)) {
        return false;
    }
    /* Of an invented exponent it is not known which parts it makes false. */
    false_part.reply = reply->data;
    false_part.reply_size = reply->size;
    assert_int_equal(evidence_false_part(&false_part, made->tape, made->source, target, NULL),
                     STATUS_OK);
    *part = false_part.number;
    return true;
}

bool forgery_of(struct buffer *reply, uint32_t *part, const struct exhibit *exhibit,
                const struct evidence_target *target, uint64_t *random)
{
    return forgery_make(reply, part,
                        &(struct forgery_case){.tape = exhibit->tape,
                                               .source = &exhibit->source,
                                               .target = target,
                                               .bits = exhibit_get(exhibit, target)},
                        random);
}
