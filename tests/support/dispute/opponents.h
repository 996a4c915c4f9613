/*
 * opponents.h - two machines before the same step of a small model: an accused's and a claimant's.
 *
 * Any failure here fails the running test.
 */
#ifndef TESTS_SUPPORT_DISPUTE_OPPONENTS_H
#define TESTS_SUPPORT_DISPUTE_OPPONENTS_H

#include "proofs/dispute/fraud_proof.h"
#include "tests/support/dispute/liar.h"
#include "tests/support/numeric/random_tape.h"
#include "tests/support/numeric/small_model.h"

struct opponents {
    struct small_model small;        /* of a model; else zeros */
    struct tape *invented;           /* of a random tape; else NULL */
    struct random_machine random[2]; /* of a random tape; else zeros */
    const struct tape *tape;
    struct machine *machines[2]; /* of the accused, of the claimant; in trace mode */
    uint8_t **states;            /* before the step */
    struct trace_server own;     /* the claimant's */
    /* What the job gives. */
    void **data;
    void **constants;
    struct digest *data_roots;
    struct evidence_given given;
    struct evidence_context context; /* the job's roots; the accused's are to be filled in */
};

void opponents_open(struct opponents *dispute, const struct model_options *options);
void opponents_open_kind(struct opponents *dispute, enum model_kind kind);

/* An MLP with so many hidden units, of one sample. OPPONENTS_WIDE: its weights have a tree of 13
 * levels, three answers. */
#define OPPONENTS_WIDE 4200
void opponents_open_hidden(struct opponents *dispute, uint32_t hidden);

/* A step of random_tape(seed). */
void opponents_open_random(struct opponents *dispute, uint64_t seed, uint32_t op_count);

/* A step after which the state is not finite. */
void opponents_open_diverging(struct opponents *dispute);
void opponents_close(struct opponents *dispute);

/* The accused's machine, before the step again. */
struct machine *opponents_rewind(struct opponents *dispute);

/* What an accused commits to whose step is told by `accused`; of the micro-batch too to which the
 * walk leads. */
struct trace_walk_case opponents_case(struct trace_server *accused, const struct trace_server *own);

/* What the judge knows of it. */
struct evidence_context opponents_context(const struct opponents *dispute,
                                          const struct trace_walk_case *accused);

struct lie opponents_random_lie(const struct tape *tape, uint64_t *seed);

#endif /* TESTS_SUPPORT_DISPUTE_OPPONENTS_H */
