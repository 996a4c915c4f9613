/*
 * walk.h - a whole walk against a machine that lies in one element (liar.h), or reads other data:
 * the questions, the answers and the evidence at its end, as bytes for a ledger.
 *
 * Any failure here fails the running test.
 */
#ifndef TESTS_SUPPORT_DISPUTE_WALK_H
#define TESTS_SUPPORT_DISPUTE_WALK_H

#include "chain/game/game.h"
#include "proofs/dispute/ledger_query.h"
#include "tests/support/dispute/opponents.h"

#define WALK_RANDOM_OPS 12

struct walk {
    struct opponents dispute;
    struct liar liar;
    struct trace_server accused;
    struct evidence_context context; /* what the liar committed to */
    struct trace_walk walk;
    struct buffer question;
    uint8_t reply[TRACE_REPLY_BYTES_MAX];
    size_t reply_size;
};

/* The small MLP, or (hidden > 0) one with so many hidden units: see opponents.h. */
void walk_open(struct walk *walk, const struct lie *lie, uint32_t hidden);
/* The small MLP, with so many micro-batches in groups. */
void walk_open_repeat(struct walk *walk, const struct lie *lie, uint32_t times, uint32_t group);
/* random_tape(seed, WALK_RANDOM_OPS). The accused is honest but for its data: the last bit of an
 * element of tensor `frozen` is another, as walk_spoil_frozen() makes it. */
void walk_open_frozen(struct walk *walk, uint64_t seed, uint32_t frozen, uint64_t element);
void walk_spoil_frozen(void *bytes, const struct tensor *tensor, uint64_t element);

enum held_out_cheat {
    HELD_OUT_WINDOW = 0, /* a number of the last batch, as drawn */
    HELD_OUT_LOGITS,     /* a number of what the model answers to it */
    HELD_OUT_MEAN,       /* half the mean loss */
    HELD_OUT_FIGURE,     /* half the loss that the state holds after the step */
    HELD_OUT_DATA,       /* a solver that looks at other samples, and computes on */
    HELD_OUT_DUE,        /* a solver that looks in the other steps, and computes on */
    HELD_OUT_CHEAT_COUNT,
};
/* The small MLP that looks at held-out data after each third step (is_due), or each second. */
void walk_held_out_options(struct model_options *options, bool is_due);
/* Its third step. */
void walk_open_held_out(struct walk *walk, enum held_out_cheat cheat, bool is_due);
/* The select whose output is the held-out loss that the state holds after the step. */
const struct op *walk_held_out_choice(const struct walk *walk);
void walk_close(struct walk *walk);

/* Writes the claimant's next question; false: it knows where the lie is. */
bool walk_query(struct walk *walk);

/* Writes what the accused tells, of which it knows what the ledger told it. */
void walk_answer(struct walk *walk, const struct game_bytes *queried);

/* After the walk: evidence of the cheapest element of the leaf that was found. */
void walk_evidence(struct buffer *evidence, struct walk *walk);

/* The output of the last matmul of the small MLP. */
uint32_t walk_item_of_matmul(void);

#endif /* TESTS_SUPPORT_DISPUTE_WALK_H */
