/*
 * accused.h - who lies in one number and stands by it: a solver whose committed state shows the
 * lie, or an attestor whose trace root does.
 *
 * The bundle holds the lie and is whole otherwise; the accused then answers whatever the ledger
 * asks of it, from a trace of its own in which a number may be wrong, anywhere. Whatever fails here
 * fails the test.
 */
#ifndef TESTS_SUPPORT_ACCUSED_H
#define TESTS_SUPPORT_ACCUSED_H

#include "proofs/teller.h"
#include "tests/support/liar.h"
#include "tests/support/market.h"

enum {
    ACCUSED_STEPS = 12, /* of its jobs, */
    ACCUSED_SEGMENT = 4,
};

struct accused_lie {
    uint64_t step;
    bool in_state;    /* the bundle's state after the step holds a lie: */
    struct lie state; /* item: which state */
    bool in_trace;    /* what it answers holds one: */
    struct lie trace; /* item: of the trace */
};

struct accused {
    struct market *market;
    enum market_player player;
    struct hash32 job;
    struct bundle *bundle;
    struct run run;
    struct liar liar;
    struct accused_lie lie;
    struct teller teller; /* of its trace */
    /* Where the trace is true and the state is not: tells of the state. */
    struct run state_run;
    struct teller state_teller;
};

/* With other options than accused_job() has: call small_job_of_kind() first. Sets the steps. */
struct job *accused_job_of(struct small_job_options *options, uint64_t seed);
struct job *accused_job(enum model_kind kind, uint64_t seed);

/* A float state that the step changes: its next value is wrong, in the bundle and in the trace. */
struct accused_lie accused_choose(const struct job *job, uint64_t step, uint64_t *random);

/* The whole bundle, with the lie. Takes job. */
void accused_write(const char *path, struct job *job, const struct accused_lie *lie);

/* Ready to answer. What it does under a name that was used it does not do twice. */
void accused_open(struct accused *accused, struct market *market, enum market_player player,
                  const struct hash32 *job, const char *path, const struct accused_lie *lie);
void accused_close(struct accused *accused);

/* Answers what is the accused's to answer now, if it can. */
void accused_round(struct accused *accused);

#endif /* TESTS_SUPPORT_ACCUSED_H */
