/*
 * respond.h - a solver who is accused answers: the trace root of the step, and whatever is asked
 * of it.
 *
 * A thread opens the bundle for reading and runs the step again from the nearest checkpoint, while
 * training and posting go on; the step that was disputed last stays ready, so a walk costs one
 * replay. What is answered follows from the bundle alone: after a crash it is the same again.
 * Nothing here touches a ledger; solver.c does.
 */
#ifndef PROVER_RESPOND_H
#define PROVER_RESPOND_H

#include "chain/game.h"
#include "engine/backend.h"
#include "proofs/bundle.h"

struct respond;

/* Copies everything. key NULL: the bundle is not sealed. paths: one for each data tensor. */
MUST_CHECK enum status respond_open(struct respond **respond, const char *bundle,
                                    const struct seal_key *key, const char *const *paths,
                                    size_t path_count, const struct machine_options *machine,
                                    struct error *error);
void respond_close(struct respond *respond); /* waits for the replay that is on; NULL is fine */

/* What is wanted of a step of the job. */
struct respond_wish {
    uint64_t step;
    uint32_t asked_size; /* 0: the trace root; else what the event ASKED said */
    uint8_t asked[GAME_ASKED_MAX];
};

#define RESPOND_BYTES_MAX (128 * 1024)

/*
 * Never waits. STATUS_NOT_FOUND: it is being made, ask again. bytes has RESPOND_BYTES_MAX: the
 * trace root, or what ledger_tell() takes. Any other status is why it could not be made; the next
 * call tries again.
 */
MUST_CHECK enum status respond_get(struct respond *respond, uint8_t *bytes, size_t *size,
                                   const struct respond_wish *wish, struct error *error);

#endif /* PROVER_RESPOND_H */
