/*
 * defendant.h - who lies in one number and stands by it: a solver whose committed state shows the
 * lie.
 *
 * The bundle holds the lie and is whole otherwise; the accused then answers all that the ledger
 * asks of it, from a trace of its own in which a number may be wrong, anywhere. Any failure here
 * fails the test.
 */
#ifndef TESTS_SUPPORT_DISPUTE_DEFENDANT_H
#define TESTS_SUPPORT_DISPUTE_DEFENDANT_H

#include "proofs/dispute/trace_server.h"
#include "tests/support/dispute/liar.h"
#include "tests/support/game/market.h"

enum {
    DEFENDANT_STEPS = 12, /* of its jobs, */
    DEFENDANT_SEGMENT = 4,
};

struct defendant_lie {
    uint64_t step;
    bool in_state;    /* the bundle's state after the step holds a lie: */
    struct lie state; /* item: which state */
    bool in_trace;    /* what it answers holds one: */
    struct lie trace; /* item: of the trace */
};

struct defendant {
    struct market *market;
    enum market_player player;
    struct hash32 job;
    struct bundle *bundle;
    struct run run;
    struct liar liar;
    struct defendant_lie lie;
    struct trace_server server; /* of its trace */
    /* Where the trace is true and the state is not: tells of the state. */
    struct run state_run;
    struct trace_server state_server;
};

/* With other options than defendant_job() has: call small_job_of_kind() first. Sets the steps. */
struct job *defendant_job_of(struct small_job_options *options, uint64_t seed);
struct job *defendant_job(enum model_kind kind, uint64_t seed);

/* A float state that the step changes: its next value is wrong, in the bundle and in the trace. */
struct defendant_lie defendant_choose(const struct job *job, uint64_t step, uint64_t *random);

/* The output, as an item of the trace, of the matmul that sums along the longest axis; that axis
 * has at least this many terms. */
uint32_t defendant_longest_sum(const struct tape *tape, uint64_t least);

/* The whole bundle, with the lie. Takes job. */
void defendant_write(const char *path, struct job *job, const struct defendant_lie *lie);

/* Ready to answer. What it does under a name that was used it does not do twice. */
void defendant_open(struct defendant *accused, struct market *market, enum market_player player,
                    const struct hash32 *job, const char *path, const struct defendant_lie *lie);
void defendant_close(struct defendant *accused);

/* Answers what is the accused's to answer now, if it can. */
void defendant_round(struct defendant *accused);

#endif /* TESTS_SUPPORT_DISPUTE_DEFENDANT_H */
