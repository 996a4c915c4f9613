/*
 * partial_sums.h - what the parts of a long axis come to, as an accused replies (docs/FORMATS.md
 * 10.6).
 *
 * The operands of a long sum do not fit in a transaction. So the accused is queried what each part
 * of it comes to (engine/rules/rule.h). Its reply counts only when these values, put together as
 * the rule does, give the very element that it committed to. An accused that committed to a false
 * element then has a false part in its reply, and evidence of that part alone convicts. The ledger
 * stores the reply's hash, so the accused cannot retract it. A reply says nothing about anybody's
 * tensors, so it is of use nowhere else.
 *
 * Nothing here allocates, reads files or prints.
 */
#ifndef PROOFS_DISPUTE_PARTIAL_SUMS_H
#define PROOFS_DISPUTE_PARTIAL_SUMS_H

#include "base/digest.h"
#include "base/status.h"
#include "engine/rules/rule.h"
#include "proofs/dispute/trace_query.h"

#define PARTIAL_SUMS_REPLY_MAX (4 + 8 * RULE_PARTS_MAX)

/* What a query is about: the parts of one element, as it was committed to. */
struct partial_sums_target {
    struct digest subject; /* of the descriptor, the output and the element */
    uint32_t bits;         /* the element */
    enum rule_fold fold;   /* RULE_SUM or RULE_MAXIMUM */
    uint32_t count;        /* of parts, 2 to RULE_PARTS_MAX */
};

/* A reply that was checked. Borrows the bytes that it was read from. */
struct partial_sums_reply {
    bool none; /* the element is a NaN, which no sum is: part `poisoned` has what makes it one */
    uint32_t poisoned;
    int exponent;
    const uint8_t *values;
};

/* A ledger keeps the hash of the query, then that of the query with the reply. */
#define PARTIAL_SUMS_QUERY_SIZE (TRACE_QUERY_SIZE + DIGEST_SIZE + 9)
void partial_sums_query_write(uint8_t bytes[PARTIAL_SUMS_QUERY_SIZE],
                              const struct trace_query *query,
                              const struct partial_sums_target *target);
void partial_sums_reply_hash(struct digest *hash, const uint8_t *queried, size_t queried_size,
                             const uint8_t *reply, size_t reply_size);

/* What a reply is about. */
void partial_sums_subject(struct digest *subject, const uint8_t *descriptor, size_t descriptor_size,
                          uint32_t output, uint64_t element);

/* Safe on hostile bytes; reply means something only on VERDICT_VALID: its values give the
 * element's bits. */
MUST_CHECK enum verdict partial_sums_check(struct partial_sums_reply *reply,
                                           const struct partial_sums_target *target,
                                           const uint8_t *bytes, size_t size);

/* The value of part `number`, below the target's count. */
int64_t partial_sums_value(const struct partial_sums_reply *reply, uint32_t number);

/*
 * Does part `number`, as the rule gives it with the reply's exponent, show that the reply or the
 * element `bits` is false? A sum whose every part is as replied is the element: each fits the
 * window, so nothing wraps, and none is poisoned.
 */
bool partial_sums_is_false(const struct rule_part *part, const struct partial_sums_reply *reply,
                           uint32_t number, uint32_t bits);

/*
 * Writes the reply of an honest accused about an element with the bits that the rule gives of
 * call's operands; returns its size. bytes has room for PARTIAL_SUMS_REPLY_MAX.
 */
size_t partial_sums_write(uint8_t *bytes, const struct rule_call *call, uint32_t output,
                          uint64_t element);

#endif /* PROOFS_DISPUTE_PARTIAL_SUMS_H */
