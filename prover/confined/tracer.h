/*
 * tracer.h - one step of a bundle, run again in a process without a key, ready for trace queries.
 *
 * The step costs one replay; every query about it after that is cheap. The process that asks runs
 * nothing of a stranger's: it gets the bytes of a reply, and signs and sends them. A child that is
 * killed, at any moment, is started again within the same call, which then costs another replay.
 * The replies follow from the bundle, so they are the same.
 */
#ifndef PROVER_CONFINED_TRACER_H
#define PROVER_CONFINED_TRACER_H

#include "chain/game/game.h"
#include "engine/plan/backend.h"
#include "proofs/bundle/bundle.h"
#include "proofs/dispute/trace_query.h"

#define TRACER_QUERY_MAX GAME_QUERIED_MAX
#define TRACER_REPLY_MAX (128 * 1024)

struct tracer;

/* Which step, of which bundle. */
struct tracer_step {
    const char *bundle;               /* its folder */
    const struct encryption_key *key; /* NULL: it is not encrypted */
    const char *const *data;          /* a path for each data tensor */
    uint32_t data_count;
    const struct machine_options *machine;
    uint64_t step;
};

/* Copies everything and starts the child; waits for nothing. */
MUST_CHECK enum status tracer_open(struct tracer **tracer, const struct tracer_step *wanted,
                                   struct error *error);
void tracer_close(struct tracer *tracer); /* ends a replay that goes on; NULL is fine */

/* Is it this step? */
bool tracer_is_of(const struct tracer *tracer, const char *bundle, uint64_t step);

/* Waits until the step is run. *root: of its trace. *steps_run: the steps before it that the replay
 * ran. STATUS_NOT_FOUND: the bundle does not go that far. */
MUST_CHECK enum status tracer_ready(struct tracer *tracer, struct digest *root, uint64_t *steps_run,
                                    struct error *error);

/* The reply to a peer's trace query, as trace_server_answer() has it. bytes has room for
 * TRACER_REPLY_MAX. STATUS_NOT_FOUND: no such item, or only a ledger may ask this. */
MUST_CHECK enum status tracer_ask(struct tracer *tracer, uint8_t *bytes, size_t *size,
                                  const struct trace_query *query, struct error *error);

/* The reply to what the event QUERIED holds, as fraud_proof_reply() has it. */
MUST_CHECK enum status tracer_ask_ledger(struct tracer *tracer, uint8_t *bytes, size_t *size,
                                         const uint8_t *queried, uint32_t queried_size,
                                         struct error *error);

#endif /* PROVER_CONFINED_TRACER_H */
