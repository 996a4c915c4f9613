/*
 * move_retry.h - moves in a turn that has an end, and that the ledger refused: when each is sent
 * again. A pause doubles with each refusal and is never more than a quarter of the time that is
 * left, so that what heals is sent in time, and what does not costs little. All times are the
 * ledger's. When the pauses end is kept in memory: who begins anew begins one anew.
 */
#ifndef PROVER_POST_MOVE_RETRY_H
#define PROVER_POST_MOVE_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "chain/game/ledger.h"
#include "prover/post/respond.h"

#define MOVE_RETRY_PAUSE_S     2
#define MOVE_RETRY_PAUSE_S_MAX 300
#define MOVE_RETRY_TIMES_MAX   100 /* each has a name of its own: what is sent may have changed */

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

/* What was refused is made anew, maybe otherwise, and under another name: turn, or turn and a
 * number. name: of the move that is on its way (STATUS_OK, and *outcome is not a refusal), or that
 * is to be made: STATUS_NOT_FOUND, or STATUS_OK where there were too many. *times: how many were
 * refused, *outcome of the last of them. */
MUST_CHECK enum status move_retry_find(char name[LEDGER_NAME_MAX + 1],
                                       struct ledger_outcome *outcome, uint32_t *times,
                                       struct ledger *ledger, const char *turn,
                                       struct error *error);

/* The move of that turn was refused that many times. True: leave it until refusal->next_s; false:
 * send it now. Its turn ends at deadline_s, which is not over. */
bool move_retry_hold(struct move_retries *refusals, struct move_retry *refusal, const char *turn,
                     uint32_t times, uint64_t now_s, uint64_t deadline_s);

/* Why, and when what happens: words that stay the same until it is sent again, so that whoever logs
 * changes is not flooded. */
#define MOVE_RETRY_TEXT_SIZE 300
void move_retry_say(char text[MOVE_RETRY_TEXT_SIZE], const struct move_retry *refusal,
                    const struct ledger_outcome *outcome, uint64_t deadline_s);

#endif /* PROVER_POST_MOVE_RETRY_H */
