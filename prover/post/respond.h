/*
 * respond.h - the answers of a solver to claims: the trace root of the disputed step, and replies
 * to trace queries about it.
 *
 * A thread has the step run again from the nearest checkpoint while training and posting go on: by
 * a child without a key (prover/confined/tracer.h), for it runs a stranger's program. The last step
 * stays ready, so a dispute costs one replay. Requests about the ready step come first,
 * then those with the earliest deadline. An answer follows from the bundle alone: after a crash it
 * is the same. Nothing here touches a ledger; solver.c does.
 */
#ifndef PROVER_POST_RESPOND_H
#define PROVER_POST_RESPOND_H

#include "chain/game/game.h"
#include "engine/plan/backend.h"
#include "proofs/bundle/bundle.h"
#include "prover/confined/tracer.h"

struct respond;

/* Copies everything. key NULL: the bundle is not encrypted. paths: one for each data tensor. */
MUST_CHECK enum status respond_open(struct respond **respond, const char *bundle,
                                    const struct encryption_key *key, const char *const *paths,
                                    size_t path_count, const struct machine_options *machine,
                                    struct error *error);
void respond_close(struct respond *respond); /* waits for a running replay; NULL is fine */

/* A requested answer about a step of the job. */
struct respond_request {
    uint64_t step;
    uint64_t deadline_s; /* by the ledger's clock */
    uint32_t query_size; /* 0: the trace root; else the query of the event QUERIED */
    uint8_t query[GAME_QUERIED_MAX];
};

#define RESPOND_BYTES_MAX    TRACER_REPLY_MAX
#define RESPOND_REQUESTS_MAX 64 /* at a time */

/* Sets all present requests, at most RESPOND_REQUESTS_MAX; forgets earlier ones that are not among
 * them. Never waits. */
void respond_want(struct respond *respond, const struct respond_request *requests, uint32_t count);

/*
 * Never waits. STATUS_OK: bytes, of RESPOND_BYTES_MAX, is the trace root or the reply for the
 * ledger. STATUS_NOT_FOUND: not ready yet, or not requested. Any other status says why it failed;
 * it is tried again.
 */
MUST_CHECK enum status respond_get(struct respond *respond, uint8_t *bytes, size_t *size,
                                   const struct respond_request *request, struct error *error);

/* Estimated seconds until an answer about this step is ready if there were no other request, by the
 * times of earlier replays; 0: unknown. */
double respond_forecast(struct respond *respond, uint64_t step);

#endif /* PROVER_POST_RESPOND_H */
