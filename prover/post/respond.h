/*
 * respond.h - a solver who is accused answers: the trace root of the step, and whatever is asked
 * of it.
 *
 * A thread opens the bundle for reading and runs the step again from the nearest checkpoint, while
 * training and posting go on; the step that was disputed last stays ready, so a walk costs one
 * replay. Of several answers that are wanted the one is made first whose time is over first, but
 * what is asked of the step that is ready costs no replay and comes before. What is answered
 * follows from the bundle alone: after a crash it is the same again. Nothing here touches a ledger;
 * solver.c does.
 */
#ifndef PROVER_POST_RESPOND_H
#define PROVER_POST_RESPOND_H

#include "chain/game/game.h"
#include "engine/plan/backend.h"
#include "proofs/bundle/bundle.h"

struct respond;

/* Copies everything. key NULL: the bundle is not encrypted. paths: one for each data tensor. */
MUST_CHECK enum status respond_open(struct respond **respond, const char *bundle,
                                    const struct encryption_key *key, const char *const *paths,
                                    size_t path_count, const struct machine_options *machine,
                                    struct error *error);
void respond_close(struct respond *respond); /* waits for the replay that is on; NULL is fine */

/* What is wanted of a step of the job. */
struct respond_wish {
    uint64_t step;
    uint64_t deadline_s; /* by the ledger's clock */
    uint32_t asked_size; /* 0: the trace root; else what the event ASKED said */
    uint8_t queried[GAME_QUERIED_MAX];
};

#define RESPOND_BYTES_MAX    (128 * 1024)
#define RESPOND_REQUESTS_MAX 64 /* at a time */

/* All that is wanted now, at most RESPOND_REQUESTS_MAX: what was wanted before and is not among
 * them is forgotten. Never waits. */
void respond_want(struct respond *respond, const struct respond_wish *wishes, uint32_t count);

/*
 * Never waits. STATUS_NOT_FOUND: it is being made, or its turn has not come, or it was not wanted.
 * bytes has RESPOND_BYTES_MAX: the trace root, or what ledger_tell() takes. Any other status is why
 * it could not be made; it is tried again.
 */
MUST_CHECK enum status respond_get(struct respond *respond, uint8_t *bytes, size_t *size,
                                   const struct respond_wish *wish, struct error *error);

/* Seconds, by what replays took so far, until an answer about this step would be there if nothing
 * else were wanted; 0: nobody knows yet. */
double respond_forecast(struct respond *respond, uint64_t step);

#endif /* PROVER_POST_RESPOND_H */
