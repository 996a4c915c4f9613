/*
 * evidence_gather.h - which elements of an accused's a rule reads, and where their proofs are.
 *
 * What a rule needs is not worked out a second time here: the rule is run once on the accused's
 * elements, and what it asked for is what is shown. For evidence_write.c.
 */
#ifndef PROOFS_EVIDENCE_GATHER_H
#define PROOFS_EVIDENCE_GATHER_H

#include "engine/rule.h"
#include "proofs/descriptor.h"
#include "proofs/evidence.h"

struct gathered_leaf {
    uint64_t index;
    uint32_t round; /* in which it was last asked for */
    uint8_t *bytes;
};

/* The leaves of one operand that were asked for, by rising index. */
struct gathered {
    struct gathered_leaf *leaves;
    uint32_t count;
    uint32_t capacity;
    uint32_t last; /* most elements are in the leaf of the one before */
    enum evidence_list list;
    uint32_t item;
    const struct tensor *tensor;
};

/* Leaves stay when a rule is run again; `round` tells which it needs now. */
struct gather {
    const struct evidence_source *source;
    const struct op *op;
    struct gathered operands[DESCRIPTOR_OPERANDS_MAX];
    uint32_t operand_count;
    uint32_t round;
    struct rule_call call;
    enum status status;
    struct error *error;
};

/* All but gather is borrowed until gather_release(). */
void gather_init(struct gather *gather, const struct tape *tape,
                 const struct evidence_source *source, const struct descriptor_places *places,
                 uint32_t op_index, struct error *error);
void gather_release(struct gather *gather);

/* The accused's element; its leaf is needed in this round. A failure is in gather->status. */
uint32_t gather_found(struct gather *gather, const struct evidence_target *target);

/* Begins a round and runs the rule; *wrong says whether the accused's element is another one. */
MUST_CHECK enum status gather_run(struct gather *gather, bool *wrong,
                                  const struct evidence_target *target);

/* The proof of the leaves that this round needs: indexes and where their siblings are. */
struct gather_plan {
    uint64_t *indexes;
    uint32_t count; /* 0: the operand is not used */
    struct merkle_place *places;
    uint32_t place_count;
};

MUST_CHECK enum status gather_plan(struct gather_plan *plan, const struct gather *gather,
                                   const struct gathered *gathered);
void gather_plan_release(struct gather_plan *plan); /* a zero-filled one is allowed */

#endif /* PROOFS_EVIDENCE_GATHER_H */
