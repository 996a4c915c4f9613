/* forgery.c - see forgery.h. */
#include "tests/support/forgery.h"

#include "base/endian.h"
#include "tests/support/test.h"

static uint8_t *value_at(struct buffer *told, uint32_t part)
{
    return told->data + 4 + 8 * (size_t)part;
}

static bool holds(const struct buffer *told, const struct parts_target *asked)
{
    struct parts_told read;

    return parts_check(&read, asked, told->data, told->size) == VERDICT_VALID;
}

/* Another value of one part, so near that the exponent need not change. */
static bool bend_sum(struct buffer *told, uint32_t part, const struct parts_target *asked)
{
    uint64_t value = endian_load_be64(value_at(told, part));

    for (uint32_t i = 0; i < 128; i++) {
        uint64_t change = UINT64_C(1) << i / 2;

        endian_store_be64(value_at(told, part), i % 2 == 0 ? value + change : value - change);
        if (holds(told, asked)) {
            return true;
        }
    }
    endian_store_be64(value_at(told, part), value);
    return false;
}

/* The element's own significand and exponent. */
static bool invent_sum(struct buffer *told, const struct parts_target *asked)
{
    uint32_t bits = asked->bits;
    uint32_t place = bits >> 23 & 0xff;
    int64_t value = place == 0 ? bits & 0x7fffff : (bits & 0x7fffff) | 0x800000;
    int32_t exponent = (place == 0 ? 1 : (int32_t)place) - 150;

    buffer_clear(told);
    if (bits == FLOAT_NAN_BITS) {
        return true;
    }
    if (place == 0xff) {
        value = 1;
        exponent = 4000;
    }
    buffer_add_u32(told, (uint32_t)exponent);
    for (uint32_t i = 0; i < asked->count; i++) {
        buffer_add_u64(told, i > 0 ? 0 : (uint64_t)(bits >> 31 != 0 ? -value : value));
    }
    return holds(told, asked);
}

/* The part itself has the maximum, and no other more. */
static bool bend_maximum(struct buffer *told, uint32_t part, const struct parts_target *asked)
{
    int64_t peak = (int32_t)asked->bits;

    for (uint32_t i = 0; i < asked->count; i++) {
        if ((int64_t)endian_load_be64(value_at(told, i)) > peak || i == part) {
            endian_store_be64(value_at(told, i), (uint64_t)peak);
        }
    }
    return holds(told, asked);
}

/* The part whose value is the greatest. */
static uint32_t greatest(struct buffer *told, uint32_t count)
{
    uint32_t found = 0;

    for (uint32_t i = 1; i < count; i++) {
        if ((int64_t)endian_load_be64(value_at(told, i)) >
            (int64_t)endian_load_be64(value_at(told, found))) {
            found = i;
        }
    }
    return found;
}

bool forgery_bend(struct buffer *told, uint32_t *part, const struct parts_target *asked,
                  uint64_t *random)
{
    *part = (uint32_t)test_random_below(random, asked->count);
    if (asked->fold == RULE_MAXIMUM) {
        uint32_t top = greatest(told, asked->count);

        /* A peak that is too low hides the part that has it. */
        if ((int64_t)endian_load_be64(value_at(told, top)) > (int32_t)asked->bits) {
            *part = top;
        }
        return bend_maximum(told, *part, asked);
    }
    if (asked->bits != FLOAT_NAN_BITS && told->size > 0 && bend_sum(told, *part, asked)) {
        return true;
    }
    *part = 0;
    return invent_sum(told, asked);
}

bool forgery_make(struct buffer *told, uint32_t *part, const struct forgery_case *made,
                  uint64_t *random)
{
    const struct evidence_target *target = made->target;
    struct rule_axis axis;

    rule_axis_of(&axis, &made->tape->ops[target->op], target->output, target->element);
    buffer_init(told, PARTS_TOLD_MAX);
    assert_int_equal(evidence_parts(told, made->tape, made->source, target, NULL), STATUS_OK);
    return forgery_bend(
        told, part,
        &(struct parts_target){.bits = made->bits, .fold = axis.fold, .count = axis.parts}, random);
}

bool forgery_of(struct buffer *told, uint32_t *part, const struct exhibit *exhibit,
                const struct evidence_target *target, uint64_t *random)
{
    return forgery_make(told, part,
                        &(struct forgery_case){.tape = exhibit->tape,
                                               .source = &exhibit->source,
                                               .target = target,
                                               .bits = exhibit_get(exhibit, target)},
                        random);
}
