/*
 * tape.h - the straight-line program of one training step.
 *
 * A tape is a table of tensors and a list of operations in order. Exactly one operation makes each
 * temporary tensor, and it comes before the tensor's readers: there are no cycles and nothing is
 * overwritten. Every other tensor has a unique name. Operations read state tensors; a pair (before,
 * after) of one name and shape names the next value of each, so that both have the same root when
 * they are equal. A tape does not change once a builder (builder.h) or tape_parse() has made it.
 *
 * Bytes from outside are hostile: tape_parse() bounds and checks everything, and tape_footprint()
 * says how much memory a tape needs before anything is allocated to run it.
 *
 * Tour 3 of 10: next read proofs/job/job.h, what is agreed.
 */
#ifndef ENGINE_TAPE_TAPE_H
#define ENGINE_TAPE_TAPE_H

#include "engine/ops/op.h"
#include "engine/tape/init.h"

#define TAPE_TENSORS_MAX   1000000u
#define TAPE_OPS_MAX       500000u
#define TAPE_BYTES_MAX     (UINT64_C(256) << 20)
/* Of a tape with a repeat as machines run it: its loops count once. */
#define REPEAT_TENSORS_MAX 2500000u
#define REPEAT_OPS_MAX     1000000u
/* Micro-batches of a step, and all tensors that a step with a repeat makes. */
#define REPEAT_TIMES_MAX   1000000u
#define REPEAT_ITEMS_MAX   16777216u

/* The states that hold what a step found on held-out data: a loss, a share of right answers. */
#define HELD_OUT_LOSS           "held_out.loss"
#define HELD_OUT_ACCURACY       "held_out.accuracy"
/* The state that holds the norm of each step's gradient: a number for each step of the job. */
#define GRADIENT_NORMS          "gradient.norms"
/* The sums over targets that a job of a look at all packed rows has found so far. */
#define HELD_OUT_LOSS_SO_FAR    "held_out.loss_so_far"
#define HELD_OUT_RIGHT_SO_FAR   "held_out.right_so_far"
#define HELD_OUT_TARGETS_SO_FAR "held_out.targets_so_far"

/* No tensor. */
#define TENSOR_NONE UINT32_MAX

struct state_pair {
    uint32_t before;  /* the state tensor */
    uint32_t after;   /* the tensor that holds its next value; before itself if it never changes */
    struct init init; /* how its first value is drawn, from the stream `before` */
};

/* What one micro-batch hands to the next: see repeat.h. */
struct carry {
    uint32_t start; /* a tensor from before the body */
    uint32_t after; /* what the body makes of it, under the same name */
    bool joined;    /* a sum that begins again in each group; the groups are added in a tree */
};

struct repeat {
    uint32_t times; /* micro-batches; 0: the tape has no repeat */
    uint32_t group; /* micro-batches of a group */
    uint32_t first; /* operations of the body */
    uint32_t op_count;
    uint32_t carry_count;
    struct carry *carries;
};

/*
 * Operations first .. last-1 run `turns` times, one turn after the other. Each turn but the first
 * reads in the `in` of each carry what the turn before left in `out`.
 */
struct loop {
    uint32_t first;
    uint32_t last;
    uint32_t turns; /* two or more */
    uint32_t carry_first;
    uint32_t carry_count;
};

struct loop_carry {
    uint32_t in;
    uint32_t out;
};

/* An operation that runs: in which turn of its loop, from 0. Outside of loops there is turn 0. */
struct op_turn {
    uint32_t op;
    uint32_t turn;
};

/* Which operation of the short tape an operation of the unrolled one is: its number, or that of a
 * join, counted on from the last operation; and of which micro-batch, in its first turn, or of
 * which node. */
struct op_origin {
    uint32_t item;
    uint32_t instance;
};

struct tape {
    uint32_t tensor_count;
    uint32_t op_count;
    uint32_t state_count;
    uint32_t loss; /* a binary32 tensor of one element, or TENSOR_NONE */
    struct tensor *tensors;
    struct op *ops;
    struct state_pair *states; /* in the order of the state tensors */
    struct repeat repeat;      /* of a short tape */
    struct loop *loops;        /* in order; none of a short tape */
    uint32_t loop_count;
    uint32_t loop_carry_count; /* of all loops */
    struct loop_carry *loop_carries;
    /* Of a tape that was unrolled: the short one, whose tensors have the same ids, and for each
     * operation where it comes from. Else NULL. */
    struct tape *brief;
    struct op_origin *origins;
    uint32_t *items;     /* for each tensor that an operation makes its first item (repeat.h) */
    uint32_t join_count; /* additions that join groups, of any node: the joined carries */
};

/* Frees a tape and its tables; NULL is allowed. */
void tape_free(struct tape *tape);

/* The loop that an operation is in, or NULL; how often it runs in a step. */
const struct loop *tape_loop_of(const struct tape *tape, uint32_t op);
uint32_t tape_turns(const struct tape *tape, uint32_t op);

/* Is a tensor given to each turn of the loop that an operation is in: another one under one id? */
bool tape_varies(const struct tape *tape, uint32_t op, uint32_t tensor);

/* As if each turn of a loop stood in the tape for itself. */
struct tape_unlooped {
    uint64_t ops;
    uint64_t tensors;
};
struct tape_unlooped tape_unlooped(const struct tape *tape);

/* Is the tape sound, but for its repeat (repeat.h)? The error names the operation or the tensor
 * that is not. */
MUST_CHECK enum status tape_check(const struct tape *tape, struct error *error);

/* Draws the first value of a state tensor that has a rule. */
void tape_first_value(void *bytes, const struct tape *tape, uint32_t state, uint64_t seed);

/*
 * The canonical bytes (docs/FORMATS.md): equal tapes have equal bytes and the reverse.
 * tape_encode() writes them to bytes, which has room for tape_encoded_size() bytes.
 */
uint64_t tape_encoded_size(const struct tape *tape);
void tape_encode(uint8_t *bytes, const struct tape *tape);

/* Makes a checked tape from untrusted bytes; the caller frees it. */
MUST_CHECK enum status tape_parse(struct tape **tape, const uint8_t *bytes, uint64_t size,
                                  struct error *error);

/* Sizes in bytes, saturating at UINT64_MAX. */
struct tape_footprint {
    uint64_t state;    /* a checkpoint */
    uint64_t constant; /* in the job */
    uint64_t data;     /* the training data */
    uint64_t trace;    /* every output of every operation */
};
struct tape_footprint tape_footprint(const struct tape *tape);

/*
 * Returns the text form in *text: the lasting tensors, then one operation per line. The caller
 * frees it. Refuses a text of more than TAPE_TEXT_MAX bytes.
 */
#define TAPE_TEXT_MAX (UINT64_C(64) << 20)
MUST_CHECK enum status tape_text(char **text, const struct tape *tape, struct error *error);

#endif /* ENGINE_TAPE_TAPE_H */
