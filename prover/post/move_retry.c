/* move_retry.c - see move_retry.h. */
#include "prover/post/move_retry.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/backoff.h"
#include "chain/game/terms.h"

/* The row of a turn, or a new one: a free row, else the oldest. */
static struct move_retry *row_of(struct move_retries *retries, const char *turn)
{
    struct move_retry *oldest = &retries->rows[0];

    for (uint32_t i = 0; i < retries->count; i++) {
        if (strcmp(retries->rows[i].turn, turn) == 0) {
            return &retries->rows[i];
        }
        if (retries->rows[i].next_s < oldest->next_s) {
            oldest = &retries->rows[i];
        }
    }
    if (retries->count < RESPOND_REQUESTS_MAX) {
        oldest = &retries->rows[retries->count++];
    }
    *oldest = (struct move_retry){0};
    (void)snprintf(oldest->turn, sizeof(oldest->turn), "%s", turn);
    return oldest;
}

enum status move_retry_find(char name[LEDGER_NAME_MAX + 1], struct ledger_outcome *outcome,
                            uint32_t *times, struct ledger *ledger, const char *turn,
                            struct error *error)
{
    for (*times = 0; *times < MOVE_RETRY_TIMES_MAX; ++*times) {
        struct ledger_outcome found;
        if (*times == 0) {
            (void)snprintf(name, LEDGER_NAME_MAX + 1, "%s", turn);
        } else {
            (void)snprintf(name, LEDGER_NAME_MAX + 1, "%.*s again %" PRIu32, LEDGER_NAME_MAX - 20,
                           turn, *times);
        }
        TRY(ledger_look(ledger, &found, name, error));
        *outcome = found;
        if (found.state != LEDGER_MOVE_REFUSED) {
            return STATUS_OK;
        }
    }
    return STATUS_OK;
}

bool move_retry_hold(struct move_retries *retries, struct move_retry *retry, const char *turn,
                     uint32_t times, uint64_t now_s, uint64_t deadline_s)
{
    struct move_retry *row = row_of(retries, turn);
    uint64_t most = (deadline_s - now_s) / 4;
    /* A longer pause than the longest: the clock was set back. */
    bool over = now_s >= row->next_s || row->next_s - now_s > MOVE_RETRY_PAUSE_S_MAX;
    bool hold = times > row->times || !over;

    most = most < 1 ? 1 : most < MOVE_RETRY_PAUSE_S_MAX ? most : MOVE_RETRY_PAUSE_S_MAX;
    if (times > row->times || over) {
        row->times = times;
        row->next_s = now_s + backoff_pause(MOVE_RETRY_PAUSE_S, most, times - 1);
    }
    *retry = *row;
    return hold;
}

void move_retry_say(char text[MOVE_RETRY_TEXT_SIZE], const struct move_retry *retry,
                    const struct ledger_outcome *outcome, uint64_t deadline_s)
{
    const char *why = outcome->refusal.kind == GAME_REFUSED_NOT
                          ? "it gives no known reason"
                          : game_refusal_text(outcome->refusal.kind);
    char next[TERMS_TIME_SIZE];
    char end[TERMS_TIME_SIZE];

    terms_time(next, retry->next_s);
    terms_time(end, deadline_s);
    (void)snprintf(text, MOVE_RETRY_TEXT_SIZE,
                   "the ledger refuses it: %.120s; refused %" PRIu32 " times, it is sent again at "
                   "%s of the ledger's time, and is due until %s",
                   why, retry->times, next, end);
}
