/*
 * parts.c - see parts.h.
 *
 * Told: nothing, of an element that is the NaN of rules; else 0 exponent of the sum (4, two's
 * complement; of a maximum 0), 4 what each part comes to (8 each, two's complement).
 */
#include "proofs/parts.h"

#include <string.h>

#include "base/endian.h"
#include "proofs/element.h"
#include "proofs/sha256.h"

/* More than two rows of exponents of 16 bits can add up to. */
#define EXPONENT_MAX (1 << 17)

void parts_subject(struct digest *subject, const uint8_t *descriptor, size_t descriptor_size,
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

/* docs/FORMATS.md, asked: 0 ask (15), 15 subject (32), 47 bits (4), 51 fold (1), 52 parts (4). */
void parts_asked_write(uint8_t bytes[PARTS_ASKED_SIZE], const struct ask *ask,
                       const struct parts_target *target)
{
    ask_write(bytes, ask);
    memcpy(bytes + ASK_SIZE, target->subject.bytes, DIGEST_SIZE);
    endian_store_be32(bytes + 47, target->bits);
    bytes[51] = (uint8_t)target->fold;
    endian_store_be32(bytes + 52, target->count);
}

void parts_told_hash(struct digest *hash, const uint8_t *asked, size_t asked_size,
                     const uint8_t *told, size_t told_size)
{
    struct sha256 state;

    sha256_init(&state, SHA256_ISA_BEST);
    sha256_add(&state, asked, asked_size);
    sha256_add(&state, told, told_size);
    sha256_end(&state, hash);
}

int64_t parts_value(const struct parts_told *told, uint32_t number)
{
    return (int64_t)endian_load_be64(told->values + 8 * (size_t)number);
}

static uint32_t finish(const struct parts_target *target, const struct parts_told *told)
{
    struct rule_part whole = {
        .fold = target->fold, .exponent = told->exponent, .value = parts_value(told, 0)};

    for (uint32_t i = 1; i < target->count; i++) {
        rule_part_join(&whole, parts_value(told, i));
    }
    return element_cut(rule_part_finish(&whole), target->fold == RULE_SUM ? DTYPE_F32 : DTYPE_I16);
}

enum verdict parts_check(struct parts_told *told, const struct parts_target *target,
                         const uint8_t *bytes, size_t size)
{
    *told = (struct parts_told){.none = target->fold == RULE_SUM && target->bits == FLOAT_NAN_BITS};
    if (told->none) {
        return size == 0 ? VERDICT_VALID : VERDICT_INVALID;
    }
    if (size != 4 + 8 * (size_t)target->count) {
        return VERDICT_INVALID;
    }
    told->exponent = (int32_t)endian_load_be32(bytes);
    told->values = bytes + 4;
    if (told->exponent < -EXPONENT_MAX || told->exponent > EXPONENT_MAX ||
        (target->fold == RULE_MAXIMUM && told->exponent != 0)) {
        return VERDICT_INVALID;
    }
    return finish(target, told) == target->bits ? VERDICT_VALID : VERDICT_INVALID;
}

size_t parts_write(uint8_t *bytes, const struct rule_call *call, uint32_t output, uint64_t element)
{
    struct rule_axis axis;
    struct rule_part part;

    rule_axis_of(&axis, call->op, output, element);
    rule_element_range(&part, call, output, element, 0, 0);
    if (part.settled && part.bits == FLOAT_NAN_BITS) {
        return 0;
    }
    /* Of any other element that no sum can change, zeros give the bits: it is a zero. */
    endian_store_be32(bytes, (uint32_t)part.exponent);
    for (uint32_t i = 0; i < axis.parts; i++) {
        if (!part.settled) {
            rule_element_part(&part, call, output, element, i);
        }
        endian_store_be64(bytes + 4 + 8 * (size_t)i, (uint64_t)part.value);
    }
    return 4 + 8 * (size_t)axis.parts;
}
