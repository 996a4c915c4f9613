/*
 * dispute.h - two machines before the same step of a small model: an accused's and a claimant's.
 *
 * Whatever fails here fails the running test.
 */
#ifndef TESTS_SUPPORT_DISPUTE_DISPUTE_H
#define TESTS_SUPPORT_DISPUTE_DISPUTE_H

#include "proofs/dispute/fraud_proof.h"
#include "tests/support/dispute/liar.h"
#include "tests/support/numeric/random_tape.h"
#include "tests/support/numeric/small_model.h"

struct dispute {
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
    struct record_given given;
    struct evidence_context context; /* the job's roots; the accused's are to be filled in */
};

void dispute_open(struct dispute *dispute, const struct model_options *options);
void dispute_open_kind(struct dispute *dispute, enum model_kind kind);

/* An MLP with so many hidden units, of one sample. DISPUTE_WIDE: its weights have a tree of 13
 * levels, three answers. */
#define DISPUTE_WIDE 4200
void dispute_open_hidden(struct dispute *dispute, uint32_t hidden);

/* A step of random_tape(seed). */
void dispute_open_random(struct dispute *dispute, uint64_t seed, uint32_t op_count);

/* A step after which the state is not finite. */
void dispute_open_diverging(struct dispute *dispute);
void dispute_close(struct dispute *dispute);

/* The accused's machine, before the step again. */
struct machine *dispute_rewind(struct dispute *dispute);

/* What an accused commits to whose step is told by `accused`. */
struct trace_walk_case dispute_case(const struct trace_server *accused,
                                    const struct trace_server *own);

/* What the judge knows of it. */
struct evidence_context dispute_context(const struct dispute *dispute,
                                        const struct trace_walk_case *accused);

struct lie dispute_random_lie(const struct tape *tape, uint64_t *seed);

#endif /* TESTS_SUPPORT_DISPUTE_DISPUTE_H */
