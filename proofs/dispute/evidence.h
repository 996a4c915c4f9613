/*
 * evidence.h - evidence: a few leaves under the accused's own roots, and the judge of them.
 *
 * Evidence says: here is an operation of the program, and elements that you committed to; by the
 * rule, one of them contradicts the others. Or: your trace begins elsewhere than the state before
 * the step, or ends elsewhere than the state after it; or the state after it holds a number that
 * ends a job, and you went on. The same bytes are read by the contract and by the judge here; both
 * answer alike (docs/FORMATS.md, section 9).
 *
 * The judge takes nothing from the evidence but what hashes to the context's roots: every size,
 * offset and count follows from the descriptor. Evidence from anywhere is safe to judge: it is
 * refused, with a reason, or it is true. The writer (evidence_write.c) is for the claimant.
 */
#ifndef PROOFS_DISPUTE_EVIDENCE_H
#define PROOFS_DISPUTE_EVIDENCE_H

#include "base/buffer.h"
#include "base/digest.h"
#include "engine/tape/tape.h"
#include "proofs/dispute/partial_sums.h"
#include "proofs/hash/merkle.h"

#define EVIDENCE_SIZE_MAX (UINT64_C(16) << 20) /* a ledger allows less */

enum evidence_kind {
    EVIDENCE_ELEMENT = 1, /* an element is not what the rule makes of the others */
    EVIDENCE_FIRST_STATE, /* the trace does not begin in the state before the step */
    EVIDENCE_NEXT_STATE,  /* the state after the step is not what the trace ends in */
    EVIDENCE_NOT_FINITE,  /* the state after the step holds a NaN or an infinity */
    EVIDENCE_PART, /* a part of an element's axis does not come to what the accused replied */
};

/* ---- judging ---- */

/* What is known of the step without the evidence. */
struct evidence_context {
    struct digest program;   /* roots of the job's header */
    struct digest constants; /* ... */
    struct digest data;      /* ... */
    struct digest before;    /* P, the state root before the step */
    struct digest after;     /* Q, the state root after it */
    struct digest trace;     /* T, the trace root of the accused */
    struct digest batch;     /* B, of the micro-batch that it committed to last; zeros: none */
    bool diverged;           /* the job is said to have diverged at this step */
    struct digest reply; /* partial_sums_reply_hash() of its last reply about parts; zeros: none */
};

enum evidence_answer {
    EVIDENCE_REFUSED = 0, /* proves nothing */
    EVIDENCE_NOT_GUILTY,  /* is sound, and shows that nothing is wrong */
    EVIDENCE_UPHELD,      /* the accused is guilty */
};

/* Why evidence is refused. The contract's errors have the same names: NotReplied. */
enum evidence_reason {
    EVIDENCE_FINE = 0, /* it is not */
    EVIDENCE_BAD_SIZE, /* it ends early, or goes on after its end, or is too large */
    EVIDENCE_BAD_KIND, /* no such kind, or the descriptor is for another, or not against this one */
    EVIDENCE_BAD_PATH, /* an index past a list's end, or another number of siblings than it has */
    EVIDENCE_BAD_DESCRIPTOR, /* not an operation or state that could be in a program */
    EVIDENCE_BAD_PROGRAM,    /* not under the program root */
    EVIDENCE_BAD_TRACE,      /* a tree root is not that of the trace, or of the micro-batch */
    EVIDENCE_BAD_STATE,      /* the tree root is not that of the state before or after the step */
    EVIDENCE_BAD_TARGET,     /* no such output or element, or no such part of it */
    EVIDENCE_BAD_LABEL,      /* not the label that the descriptor names */
    EVIDENCE_BAD_TENSOR,     /* not the tensor that stands there */
    EVIDENCE_BAD_LEAVES,     /* indexes that do not rise or leave the tensor, a wrong proof */
    EVIDENCE_BAD_PADDING,    /* bytes behind the end of the tensor that are not zero */
    EVIDENCE_MISSING,        /* an operand or a leaf that the rule needs is not shown */
    EVIDENCE_NOT_REPLIED,    /* the parts are not those of the accused's last reply */
};
#define EVIDENCE_REASON_COUNT 15

struct evidence_ruling {
    enum evidence_answer answer;
    enum evidence_reason reason; /* when refused */
    uint32_t wanted;             /* kind 1: the bits that the rule gives ... */
    uint32_t found;              /* ... and those that the accused has; of a part the same bits */
};

/* Judges size bytes. STATUS_NO_MEMORY is no ruling. */
MUST_CHECK enum status evidence_judge(struct evidence_ruling *ruling,
                                      const struct evidence_context *context, const uint8_t *bytes,
                                      size_t size, struct error *error);

/* An element that was committed to, and its axis or a range of it: count is 0 where it has none. */
struct evidence_committed {
    uint32_t item; /* of the trace */
    uint64_t element;
    struct partial_sums_target parts;
};

/*
 * Reads evidence that need not show anything but the element itself: nothing is computed. Evidence
 * of kind 5 names a part of the last reply, whose own parts the range of `parts` then is. What
 * memory does not suffice for is refused too.
 */
MUST_CHECK enum verdict evidence_read_committed(struct evidence_committed *committed,
                                                const struct evidence_context *context,
                                                const uint8_t *bytes, size_t size);

/* "the padding of a leaf is not zero": why, for people. */
const char *evidence_reason_text(enum evidence_reason reason);

/* ---- where the claimant finds what the accused committed to ---- */

enum evidence_list {
    EVIDENCE_TRACE = 0,
    EVIDENCE_BEFORE,    /* P */
    EVIDENCE_AFTER,     /* Q */
    EVIDENCE_DATA,      /* the job's */
    EVIDENCE_CONSTANTS, /* the job's */
    EVIDENCE_BATCH,     /* a micro-batch's own list */
};

/* What a job gives that no trace holds. Borrowed, by number among the data tensors and among the
 * constants. */
struct evidence_given {
    const void *const *data;
    const struct digest *data_roots;
    const void *const *constants;
};

/*
 * The accused's trees. Nodes are addressed as merkle.h does: (0, i) of a list is the hash of item i
 * as a leaf, (0, i) of a tensor that of its leaf i, (height, 0) the root of the tree. Items of a
 * trace are numbered through all its lists; batch says of which micro-batch a list is. An
 * implementation takes them from the accused's replies, and from its own trace where both agree.
 */
struct evidence_source {
    void *context;
    enum status (*item)(void *context, struct digest *root, enum evidence_list list, uint32_t item,
                        struct error *error);
    enum status (*list_node)(void *context, struct digest *node, enum evidence_list list,
                             uint32_t batch, uint32_t level, uint64_t index, struct error *error);
    enum status (*tensor_node)(void *context, struct digest *node, enum evidence_list list,
                               uint32_t item, uint32_t level, uint64_t index, struct error *error);
    /* The leaf with its padding. */
    enum status (*leaf)(void *context, uint8_t leaf[MERKLE_LEAF_SIZE], enum evidence_list list,
                        uint32_t item, uint64_t leaf_index, struct error *error);
};

/* ---- writing ---- */

struct evidence_target {
    uint32_t op;
    uint32_t output;
    uint64_t element;
    uint32_t turn; /* of the operation */
};

static inline struct op_turn evidence_maker(const struct evidence_target *target)
{
    return (struct op_turn){target->op, target->turn};
}

/* Aims at the output that is this item of a trace. */
void evidence_aim(struct evidence_target *target, const struct tape *tape, uint32_t item);

/* What the accused replied last about an element's axis, or a range of it, and one of its parts. */
struct evidence_part {
    struct partial_sums_range range;
    const uint8_t *reply; /* borrowed */
    size_t reply_size;
    uint32_t number;
};

/* Appends evidence of kind 1. STATUS_OVER_LIMIT: it has more than size_max bytes. */
MUST_CHECK enum status evidence_write_element(struct buffer *bytes, const struct tape *tape,
                                              const struct evidence_source *source,
                                              const struct evidence_target *target, size_t size_max,
                                              struct error *error);

/* Appends the same with no operand but the accused: what evidence_read_committed() reads. part is
 * NULL, or makes it of kind 5. */
MUST_CHECK enum status evidence_write_committed(struct buffer *bytes, const struct tape *tape,
                                                const struct evidence_source *source,
                                                const struct evidence_target *target,
                                                const struct evidence_part *part,
                                                struct error *error);

/* Appends the reply of an honest accused with these trees to the query for the parts of the target,
 * or of a range of its axis. STATUS_NOT_FOUND: the axis has no such range. */
MUST_CHECK enum status evidence_parts(struct buffer *bytes, const struct tape *tape,
                                      const struct evidence_source *source,
                                      const struct evidence_target *target,
                                      const struct partial_sums_range *range, struct error *error);

/*
 * Sets the number of part: the leftmost that does not come to what the reply says of it.
 * STATUS_NOT_FOUND: all of them do. STATUS_BAD_FORMAT: it is no reply to the query for those parts.
 */
MUST_CHECK enum status evidence_false_part(struct evidence_part *part, const struct tape *tape,
                                           const struct evidence_source *source,
                                           const struct evidence_target *target,
                                           struct error *error);

/* Appends evidence of kind 5, of a part of which there is one. STATUS_OVER_LIMIT: it has more than
 * size_max bytes. */
MUST_CHECK enum status evidence_write_part(struct buffer *bytes, const struct tape *tape,
                                           const struct evidence_source *source,
                                           const struct evidence_target *target,
                                           const struct evidence_part *part, size_t size_max,
                                           struct error *error);

/*
 * Chooses among the elements of one leaf of an output that the rule contradicts: the one with the
 * smallest evidence. target->op and output are given. STATUS_NOT_FOUND: the rule contradicts none.
 */
MUST_CHECK enum status evidence_choose(struct evidence_target *target, const struct tape *tape,
                                       const struct evidence_source *source, uint64_t leaf,
                                       struct error *error);

/* The same, but for the passed_over best ones. STATUS_NOT_FOUND: there are no more. */
MUST_CHECK enum status evidence_choose_other(struct evidence_target *target,
                                             const struct tape *tape,
                                             const struct evidence_source *source, uint64_t leaf,
                                             uint32_t passed_over, struct error *error);

/* Kinds 2 and 3, of a state by its number in the tape's order. */
MUST_CHECK enum status evidence_write_state(struct buffer *bytes, const struct tape *tape,
                                            const struct evidence_source *source,
                                            enum evidence_kind kind, uint32_t state,
                                            struct error *error);

/* Kind 4: the element of a binary32 state after the step. */
MUST_CHECK enum status evidence_write_not_finite(struct buffer *bytes, const struct tape *tape,
                                                 const struct evidence_source *source,
                                                 uint32_t state, uint64_t element,
                                                 struct error *error);

#endif /* PROOFS_DISPUTE_EVIDENCE_H */
