/*
 * witness.h - which elements of an accused's a rule reads, and where their proofs are.
 *
 * What a rule needs is not worked out a second time here: the rule is run once on the accused's
 * elements, and what it reads is what is shown. For evidence_write.c.
 */
#ifndef PROOFS_DISPUTE_WITNESS_H
#define PROOFS_DISPUTE_WITNESS_H

#include "engine/rules/rule.h"
#include "proofs/commit/descriptor.h"
#include "proofs/dispute/evidence.h"

struct witness_leaf {
    uint64_t index;
    uint32_t round; /* in which it was last read */
    uint8_t *bytes;
};

/* The leaves of one operand that were read, by rising index. */
struct witness_operand {
    struct witness_leaf *leaves;
    uint32_t count;
    uint32_t capacity;
    uint32_t last; /* most elements are in the leaf of the one before */
    enum evidence_list list;
    uint32_t item;
    const struct tensor *tensor;
};

/* Leaves stay when a rule is run again; `round` says which it needs now. */
struct witness {
    const struct evidence_source *source;
    const struct op *op;
    struct witness_operand operands[DESCRIPTOR_OPERANDS_MAX];
    uint32_t operand_count;
    uint32_t round;
    struct rule_call call;
    enum status status;
    struct error *error;
};

/* All but witness is borrowed until witness_release(). */
void witness_init(struct witness *witness, const struct tape *tape,
                  const struct evidence_source *source, const struct descriptor_places *places,
                  struct op_turn maker, struct error *error);
void witness_release(struct witness *witness);

/* The accused's element; its leaf is needed in this round. A failure is in witness->status. */
uint32_t witness_found(struct witness *witness, const struct evidence_target *target);

/* Begins a round and runs the rule; *wrong says whether the accused's element is another one. */
MUST_CHECK enum status witness_run(struct witness *witness, bool *wrong,
                                   const struct evidence_target *target);

/* The proof of the leaves that this round needs: indexes and where their siblings are. */
struct witness_plan {
    uint64_t *indexes;
    uint32_t count; /* 0: the operand is not used */
    struct merkle_place *places;
    uint32_t place_count;
};

MUST_CHECK enum status witness_plan(struct witness_plan *plan, const struct witness *witness,
                                    const struct witness_operand *operand);
void witness_plan_release(struct witness_plan *plan); /* a zero-filled one is allowed */

#endif /* PROOFS_DISPUTE_WITNESS_H */
