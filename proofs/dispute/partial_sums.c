/*
 * partial_sums.c - see partial_sums.h.
 *
 * A reply: of an element that is the NaN of rules, 0 a part that is poisoned (4); else 0 exponent
 * of the sum (4, two's complement; of a maximum 0), 4 what each part comes to (8 each, two's
 * complement).
 */
#include "proofs/dispute/partial_sums.h"

#include <string.h>

#include "base/endian.h"
#include "proofs/commit/element.h"
#include "proofs/hash/sha256.h"

/* More than two rows of exponents of 16 bits can add up to. */
#define EXPONENT_MAX (1 << 17)

void partial_sums_subject(struct digest *subject, const uint8_t *descriptor, size_t descriptor_size,
                          uint32_t output, uint64_t element)
{
    uint8_t place[9] = {(uint8_t)output};
    struct sha256 hash;

    endian_store_be64(place + 1, element);
    sha256_init_scalar(&hash);
    sha256_add(&hash, descriptor, descriptor_size);
    sha256_add(&hash, place, sizeof(place));
    sha256_end(&hash, subject);
}

/* docs/FORMATS.md, a range. */
enum { RANGE_FROM = 0, RANGE_LENGTH = 8, RANGE_EXPONENT = 16, RANGE_VALUE = 20 };

size_t partial_sums_range_write(uint8_t bytes[PARTIAL_SUMS_RANGE_SIZE],
                                const struct partial_sums_range *range)
{
    if (!range->is_part) {
        return 0;
    }
    endian_store_be64(bytes + RANGE_FROM, range->from);
    endian_store_be64(bytes + RANGE_LENGTH, range->length);
    endian_store_be32(bytes + RANGE_EXPONENT, (uint32_t)range->exponent);
    endian_store_be64(bytes + RANGE_VALUE, (uint64_t)range->value);
    return PARTIAL_SUMS_RANGE_SIZE;
}

void partial_sums_range_read(struct partial_sums_range *range,
                             const uint8_t bytes[PARTIAL_SUMS_RANGE_SIZE])
{
    *range =
        (struct partial_sums_range){.is_part = true,
                                    .from = endian_load_be64(bytes + RANGE_FROM),
                                    .length = endian_load_be64(bytes + RANGE_LENGTH),
                                    .exponent = (int32_t)endian_load_be32(bytes + RANGE_EXPONENT),
                                    .value = (int64_t)endian_load_be64(bytes + RANGE_VALUE)};
}

bool partial_sums_narrow(struct rule_axis *axis, const struct partial_sums_range *range)
{
    if (!range->is_part) {
        return true;
    }
    if (range->length == 0 || range->from > axis->length ||
        range->length > axis->length - range->from) {
        return false;
    }
    rule_axis_narrow(axis, range->from, range->length);
    return true;
}

bool partial_sums_enter(struct partial_sums_range *range, const struct rule_axis *axis,
                        const struct partial_sums_reply *reply, uint32_t number)
{
    struct rule_axis inner = *axis;

    rule_axis_enter(&inner, number);
    *range =
        (struct partial_sums_range){.is_part = true, .from = inner.from, .length = inner.length};
    if (reply->none) {
        return number == reply->poisoned;
    }
    range->exponent = reply->exponent;
    range->value = partial_sums_value(reply, number);
    return true;
}

/* docs/FORMATS.md, queried, of parts: behind the query. */
enum {
    PARTS_SUBJECT = TRACE_QUERY_SIZE,
    PARTS_BITS = PARTS_SUBJECT + DIGEST_SIZE,
    PARTS_FOLD = PARTS_BITS + 4,
    PARTS_COUNT = PARTS_FOLD + 1,
    PARTS_RANGE = PARTS_COUNT + 4
};

size_t partial_sums_query_write(uint8_t bytes[PARTIAL_SUMS_QUERY_MAX],
                                const struct trace_query *query,
                                const struct partial_sums_target *target)
{
    trace_query_write(bytes, query);
    memcpy(bytes + PARTS_SUBJECT, target->subject.bytes, DIGEST_SIZE);
    endian_store_be32(bytes + PARTS_BITS, target->bits);
    bytes[PARTS_FOLD] = (uint8_t)target->fold;
    endian_store_be32(bytes + PARTS_COUNT, target->count);
    return PARTS_RANGE + partial_sums_range_write(bytes + PARTS_RANGE, &target->range);
}

void partial_sums_reply_hash(struct digest *hash, const uint8_t *queried, size_t queried_size,
                             const uint8_t *reply, size_t reply_size)
{
    struct sha256 state;

    sha256_init_scalar(&state);
    sha256_add(&state, queried, queried_size);
    sha256_add(&state, reply, reply_size);
    sha256_end(&state, hash);
}

int64_t partial_sums_value(const struct partial_sums_reply *reply, uint32_t number)
{
    return (int64_t)endian_load_be64(reply->values + 8 * (size_t)number);
}

/* Do the values come to the element, or to what was said of the range? */
static bool comes_to(const struct partial_sums_target *target,
                     const struct partial_sums_reply *reply)
{
    const struct partial_sums_range *range = &target->range;
    enum dtype dtype = target->fold == RULE_SUM ? DTYPE_F32 : DTYPE_I16;
    struct rule_part whole = {
        .fold = target->fold, .exponent = reply->exponent, .value = partial_sums_value(reply, 0)};

    for (uint32_t i = 1; i < target->count; i++) {
        rule_part_join(&whole, partial_sums_value(reply, i));
    }
    return range->is_part ? reply->exponent == range->exponent && whole.value == range->value
                          : element_cut(rule_part_finish(&whole), dtype) == target->bits;
}

enum verdict partial_sums_check(struct partial_sums_reply *reply,
                                const struct partial_sums_target *target, const uint8_t *bytes,
                                size_t size)
{
    *reply = (struct partial_sums_reply){.none = target->fold == RULE_SUM &&
                                                 target->bits == FLOAT_NAN_BITS};
    if (reply->none) {
        reply->poisoned = size == 4 ? endian_load_be32(bytes) : UINT32_MAX;
        return reply->poisoned < target->count ? VERDICT_VALID : VERDICT_INVALID;
    }
    if (size != 4 + 8 * (size_t)target->count) {
        return VERDICT_INVALID;
    }
    reply->exponent = (int32_t)endian_load_be32(bytes);
    reply->values = bytes + 4;
    if (reply->exponent < -EXPONENT_MAX || reply->exponent > EXPONENT_MAX ||
        (target->fold == RULE_MAXIMUM && reply->exponent != 0)) {
        return VERDICT_INVALID;
    }
    return comes_to(target, reply) ? VERDICT_VALID : VERDICT_INVALID;
}

bool partial_sums_is_false(const struct rule_part *part, const struct partial_sums_reply *reply,
                           uint32_t number, uint32_t bits)
{
    if (part->settled) {
        return part->bits != bits;
    }
    if (reply->none) {
        return number == reply->poisoned;
    }
    return part->unfit || partial_sums_value(reply, number) != part->value;
}

size_t partial_sums_write(uint8_t *bytes, const struct rule_call *call, uint32_t output,
                          uint64_t element, const struct rule_axis *axis)
{
    struct rule_base base;
    struct rule_part part = {.value = 0};

    rule_element_base(&base, call, output, element);
    if (base.settled && base.bits == FLOAT_NAN_BITS) {
        endian_store_be32(bytes, (uint32_t)((base.poisoned - axis->from) / axis->part));
        return 4;
    }
    /* Of any other element that no sum can change, zeros give the bits: it is a zero. */
    endian_store_be32(bytes, base.settled ? 0 : (uint32_t)base.exponent);
    for (uint32_t i = 0; i < axis->parts; i++) {
        if (!base.settled) {
            rule_element_part(&part, call, output, element, axis, i, base.exponent);
        }
        endian_store_be64(bytes + 4 + 8 * (size_t)i, (uint64_t)part.value);
    }
    return 4 + 8 * (size_t)axis->parts;
}
