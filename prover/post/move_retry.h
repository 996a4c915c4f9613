/*
 * move_retry.h - when a move that the ledger refused is sent again before its turn ends. The pause
 * doubles with each refusal, up to a quarter of the time that is left. All times are the ledger's.
 * Retry timers are not persisted; they restart with the process.
 */
#ifndef PROVER_POST_MOVE_RETRY_H
#define PROVER_POST_MOVE_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "chain/game/ledger.h"
#include "prover/post/respond.h"

#define MOVE_RETRY_PAUSE_S     2
#define MOVE_RETRY_PAUSE_S_MAX 300
#define MOVE_RETRY_TIMES_MAX   100 /* each has its own name: the bytes may have changed */

struct move_retry {
    char turn[LEDGER_NAME_MAX + 1];
    uint32_t times;
    uint64_t next_s;
};

/* A plain value; a zero-filled one is empty. */
struct move_retries {
    struct move_retry rows[RESPOND_REQUESTS_MAX];
    uint32_t count;
};

/* Finds the name of a turn's move: the turn, or after refusals the turn with a number.
 * STATUS_OK: the move was sent, and *outcome says how it went; it is a refusal where there were
 * too many. STATUS_NOT_FOUND: the move of that name is still to be made. *times: how many were
 * refused, and *outcome is the last of these. */
MUST_CHECK enum status move_retry_find(char name[LEDGER_NAME_MAX + 1],
                                       struct ledger_outcome *outcome, uint32_t *times,
                                       struct ledger *ledger, const char *turn,
                                       struct error *error);

/* The ledger refused the turn's move `times` times. True: wait until retry->next_s; false: send it
 * now. deadline_s is the end of the turn, in the future. */
bool move_retry_hold(struct move_retries *retries, struct move_retry *retry, const char *turn,
                     uint32_t times, uint64_t now_s, uint64_t deadline_s);

/* Says why it was refused and when it is sent again. The words stay the same until then, so that a
 * log of changes has one line. */
#define MOVE_RETRY_TEXT_SIZE 300
void move_retry_say(char text[MOVE_RETRY_TEXT_SIZE], const struct move_retry *retry,
                    const struct ledger_outcome *outcome, uint64_t deadline_s);

#endif /* PROVER_POST_MOVE_RETRY_H */
