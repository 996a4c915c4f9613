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
    sha256_init(&hash, SHA256_ISA_BEST);
    sha256_add(&hash, descriptor, descriptor_size);
    sha256_add(&hash, place, sizeof(place));
    sha256_end(&hash, subject);
}

/* docs/FORMATS.md, queried: 0 query (15), 15 subject (32), 47 bits (4), 51 fold (1), 52 parts
 * (4). */
void partial_sums_query_write(uint8_t bytes[PARTIAL_SUMS_QUERY_SIZE],
                              const struct trace_query *query,
                              const struct partial_sums_target *target)
{
    trace_query_write(bytes, query);
    memcpy(bytes + TRACE_QUERY_SIZE, target->subject.bytes, DIGEST_SIZE);
    endian_store_be32(bytes + 47, target->bits);
    bytes[51] = (uint8_t)target->fold;
    endian_store_be32(bytes + 52, target->count);
}

void partial_sums_reply_hash(struct digest *hash, const uint8_t *queried, size_t queried_size,
                             const uint8_t *reply, size_t reply_size)
{
    struct sha256 state;

    sha256_init(&state, SHA256_ISA_BEST);
    sha256_add(&state, queried, queried_size);
    sha256_add(&state, reply, reply_size);
    sha256_end(&state, hash);
}

int64_t partial_sums_value(const struct partial_sums_reply *reply, uint32_t number)
{
    return (int64_t)endian_load_be64(reply->values + 8 * (size_t)number);
}

static uint32_t finish(const struct partial_sums_target *target,
                       const struct partial_sums_reply *reply)
{
    struct rule_part whole = {
        .fold = target->fold, .exponent = reply->exponent, .value = partial_sums_value(reply, 0)};

    for (uint32_t i = 1; i < target->count; i++) {
        rule_part_join(&whole, partial_sums_value(reply, i));
    }
    return element_cut(rule_part_finish(&whole), target->fold == RULE_SUM ? DTYPE_F32 : DTYPE_I16);
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
    return finish(target, reply) == target->bits ? VERDICT_VALID : VERDICT_INVALID;
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
                          uint64_t element)
{
    struct rule_axis axis;
    struct rule_base base;
    struct rule_part part = {.value = 0};

    rule_axis_of(&axis, call->op, output, element);
    rule_element_base(&base, call, output, element);
    if (base.settled && base.bits == FLOAT_NAN_BITS) {
        endian_store_be32(bytes, base.poisoned);
        return 4;
    }
    /* Of any other element that no sum can change, zeros give the bits: it is a zero. */
    endian_store_be32(bytes, base.settled ? 0 : (uint32_t)base.exponent);
    for (uint32_t i = 0; i < axis.parts; i++) {
        if (!base.settled) {
            rule_element_part(&part, call, output, element, i, base.exponent);
        }
        endian_store_be64(bytes + 4 + 8 * (size_t)i, (uint64_t)part.value);
    }
    return 4 + 8 * (size_t)axis.parts;
}
