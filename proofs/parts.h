/*
 * parts.h - what the parts of a long axis come to, as an accused tells it (docs/FORMATS.md 10.6).
 *
 * The operands of a long sum do not fit in a transaction. So the accused is asked what each part of
 * it comes to (engine/rule.h), and its answer counts only when these values, put together as the
 * rule does, give the very element that it committed to. Whoever committed to a false element then
 * has told a false part, and evidence of that part alone convicts. An answer binds whoever gave it
 * on a ledger, by its seal; it says nothing about anybody's tensors, so it is of use nowhere else.
 *
 * Nothing here allocates, reads files or prints.
 */
#ifndef PROOFS_PARTS_H
#define PROOFS_PARTS_H

#include "base/digest.h"
#include "base/status.h"
#include "engine/rule.h"
#include "proofs/ask.h"

#define PARTS_TOLD_MAX (4 + 8 * RULE_PARTS_MAX)

/* What is asked: the parts of one element, as it was committed to. */
struct parts_target {
    struct digest subject; /* of the descriptor, the output and the element */
    uint32_t bits;         /* the element */
    enum rule_fold fold;   /* RULE_SUM or RULE_MAXIMUM */
    uint32_t count;        /* of parts, 2 to RULE_PARTS_MAX */
};

/* An answer that was checked. Borrows the bytes that it was read from. */
struct parts_told {
    bool none; /* the element is a NaN, which no sum is: there is nothing to put together */
    int exponent;
    const uint8_t *values;
};

/* What a ledger keeps the hash of while it is asked, and of that with the answer afterwards. */
#define PARTS_ASKED_SIZE (ASK_SIZE + DIGEST_SIZE + 9)
void parts_asked_write(uint8_t bytes[PARTS_ASKED_SIZE], const struct ask *ask,
                       const struct parts_target *target);
void parts_told_hash(struct digest *hash, const uint8_t *asked, size_t asked_size,
                     const uint8_t *told, size_t told_size);

/* What an answer is about. */
void parts_subject(struct digest *subject, const uint8_t *descriptor, size_t descriptor_size,
                   uint32_t output, uint64_t element);

/* Safe on hostile bytes; told means something only on VERDICT_VALID: what is told gives the
 * element's bits. */
MUST_CHECK enum verdict parts_check(struct parts_told *told, const struct parts_target *target,
                                    const uint8_t *bytes, size_t size);

/* The value of part `number`, below the target's count. */
int64_t parts_value(const struct parts_told *told, uint32_t number);

/*
 * Writes what an honest accused tells of an element that has the bits which the rule gives of
 * call's operands; returns its size. bytes has room for PARTS_TOLD_MAX.
 */
size_t parts_write(uint8_t *bytes, const struct rule_call *call, uint32_t output, uint64_t element);

#endif /* PROOFS_PARTS_H */
