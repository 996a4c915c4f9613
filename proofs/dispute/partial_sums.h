/*
 * partial_sums.h - what the parts of a long axis come to, as an accused replies (docs/FORMATS.md
 * 10.6).
 *
 * The operands of a long sum do not fit in a transaction. So the accused is queried what each part
 * of it comes to (engine/rules/rule.h). Its reply counts only when these values, put together as
 * the rule does, give the very element that it committed to. An accused that committed to a false
 * element then has a false part in its reply, and evidence of that part alone convicts. Where even
 * the part is too long to show, it is queried for its own parts: these must come to what the reply
 * before said of it. So evidence is bounded, however long the axis is. The ledger stores the hash
 * of the reply, so the accused cannot retract it. A reply says nothing about anybody's tensors, so
 * it is of use nowhere else.
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

/* The part of an axis that a query is about, and what the reply before said of it: zeros, where it
 * said that the part makes the element a NaN. */
struct partial_sums_range {
    bool is_part; /* else it is the whole axis, and the rest is zero */
    uint64_t from;
    uint64_t length;
    int32_t exponent;
    int64_t value;
};
#define PARTIAL_SUMS_RANGE_SIZE 28

/* What a query is about: the parts of one element, as it was committed to, or those of a part. */
struct partial_sums_target {
    struct digest subject; /* of the descriptor, the output and the element */
    uint32_t bits;         /* the element */
    enum rule_fold fold;   /* RULE_SUM or RULE_MAXIMUM */
    uint32_t count;        /* of parts, 2 to RULE_PARTS_MAX */
    struct partial_sums_range range;
};

/* A reply that was checked. Borrows the bytes that it was read from. */
struct partial_sums_reply {
    bool none; /* the element is a NaN, which no sum is: part `poisoned` has what makes it one */
    uint32_t poisoned;
    int exponent;
    const uint8_t *values;
};

/* A ledger keeps the hash of the query, then that of the query with the reply. */
#define PARTIAL_SUMS_QUERY_MAX (TRACE_QUERY_SIZE + DIGEST_SIZE + 9 + PARTIAL_SUMS_RANGE_SIZE)
size_t partial_sums_query_write(uint8_t bytes[PARTIAL_SUMS_QUERY_MAX],
                                const struct trace_query *query,
                                const struct partial_sums_target *target);
void partial_sums_reply_hash(struct digest *hash, const uint8_t *queried, size_t queried_size,
                             const uint8_t *reply, size_t reply_size);

/* The range's bytes: none of a whole axis, else PARTIAL_SUMS_RANGE_SIZE. Returns how many. */
size_t partial_sums_range_write(uint8_t bytes[PARTIAL_SUMS_RANGE_SIZE],
                                const struct partial_sums_range *range);
void partial_sums_range_read(struct partial_sums_range *range,
                             const uint8_t bytes[PARTIAL_SUMS_RANGE_SIZE]);

/* Makes the axis of an element what the range says; false: the axis has no such range. */
MUST_CHECK bool partial_sums_narrow(struct rule_axis *axis, const struct partial_sums_range *range);

/* What a reply is about. */
void partial_sums_subject(struct digest *subject, const uint8_t *descriptor, size_t descriptor_size,
                          uint32_t output, uint64_t element);

/* Safe on hostile bytes; reply means something only on VERDICT_VALID: its values give the
 * element's bits, or what the range has. */
MUST_CHECK enum verdict partial_sums_check(struct partial_sums_reply *reply,
                                           const struct partial_sums_target *target,
                                           const uint8_t *bytes, size_t size);

/* The value of part `number`, below the target's count. */
int64_t partial_sums_value(const struct partial_sums_reply *reply, uint32_t number);

/* Part `number` of the axis that a reply is about, as a range to be queried. False: the reply says
 * nothing of it, since another part makes the element a NaN. */
MUST_CHECK bool partial_sums_enter(struct partial_sums_range *range, const struct rule_axis *axis,
                                   const struct partial_sums_reply *reply, uint32_t number);

/*
 * Does part `number`, as the rule gives it with the reply's exponent, show that the reply or the
 * element `bits` is false? A sum whose every part is as replied is the element: each fits the
 * window, so nothing wraps, and none is poisoned.
 */
bool partial_sums_is_false(const struct rule_part *part, const struct partial_sums_reply *reply,
                           uint32_t number, uint32_t bits);

/*
 * Writes the reply of an honest accused about an element with the bits that the rule gives of
 * call's operands, or about a range of its axis; returns its size. bytes has room for
 * PARTIAL_SUMS_REPLY_MAX.
 */
size_t partial_sums_write(uint8_t *bytes, const struct rule_call *call, uint32_t output,
                          uint64_t element, const struct rule_axis *axis);

#endif /* PROOFS_DISPUTE_PARTIAL_SUMS_H */
