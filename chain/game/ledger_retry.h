/*
 * ledger_retry.h - tries a ledger again while it cannot be reached: waits, longer each time, logs
 * it, and ends at once on a stop.
 *
 *     do {
 *         status = ledger_open(&ledger, &options, error);
 *     } while (ledger_retry_again(&retry, &status, error));
 *
 * Only STATUS_UNREACHABLE is tried again. A missing contract, another chain or a wrong option fails
 * at once.
 */
#ifndef CHAIN_GAME_LEDGER_RETRY_H
#define CHAIN_GAME_LEDGER_RETRY_H

#include <stdio.h>

#include "base/io/log.h"
#include "base/io/notify.h"
#include "base/io/stop.h"

#define LEDGER_RETRY_WAIT_S_MAX 60

struct ledger_retry {
    struct stop *stop;
    struct notify *notify; /* learns that the program runs and waits; NULL: nobody */
    const struct log *log;
    const char *area; /* of the log's lines */
    FILE *terminal;   /* shows the tries on one line if it is a terminal; may be NULL */
    uint64_t limit_s; /* in all; 0: for ever */
    /* Called before each wait; may be NULL. */
    void (*waiting)(void *context, const char *why);
    void *context;
    /* set by ledger_retry_again(); zero at first */
    uint32_t tries;
    double begun_s;
};

/* After a try: waits, and says whether to try again. *status and error become STATUS_STOPPED on a
 * stop. */
bool ledger_retry_again(struct ledger_retry *retry, enum status *status, struct error *error);

#endif /* CHAIN_GAME_LEDGER_RETRY_H */
