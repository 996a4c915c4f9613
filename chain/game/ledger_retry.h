/*
 * ledger_retry.h - what a program that runs for months does while its ledger cannot be reached: it
 * waits, longer each time, says so, and ends at once when it is asked to.
 *
 *     do {
 *         status = ledger_open(&ledger, &options, error);
 *     } while (ledger_retry_again(&patience, &status, error));
 *
 * Only STATUS_UNREACHABLE is waited for. A contract that is not there, another chain, a wrong
 * option do not heal, and fail at once.
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
    struct notify *notify; /* told that the program runs, and waits; NULL: nobody */
    const struct log *log;
    const char *area; /* of the lines in the log */
    FILE *terminal;   /* where it is one, it shows the tries on one line; NULL: nothing does */
    uint64_t limit_s; /* to wait in all; 0: for ever */
    /* Called before each wait; NULL: nobody is. */
    void (*waiting)(void *context, const char *why);
    void *context;
    /* set by ledger_retry_again(); zero at first */
    uint32_t tries;
    double begun_s;
};

/* After a try. True: it failed for want of a ledger, and it is time for the next one. *status and
 * error become STATUS_STOPPED when a stop is asked for meanwhile. */
bool ledger_retry_again(struct ledger_retry *retry, enum status *status, struct error *error);

#endif /* CHAIN_GAME_LEDGER_RETRY_H */
