/*
 * job_moves.h - making a move on a ledger with an account, as several commands do.
 */
#ifndef CLIENT_JOB_MOVES_H
#define CLIENT_JOB_MOVES_H

#include "base/cli/command.h"
#include "chain/game/ledger.h"

#define JOB_MOVES_TIMEOUT_OPTION                                                                   \
    {                                                                                              \
        .name = "timeout", .heading = "ledger", .kind = OPTION_DURATION, .value = "TIME",          \
        .fallback = "10m", .minimum = 1, .help = "how long to wait for the ledger"                 \
    }

/* The ledger and the account that the options name. */
MUST_CHECK enum status job_moves_open(struct ledger **ledger, struct signer **signer,
                                      const struct command_context *context, struct error *error);

/* The same without a passphrase, only to look: *account is the address of the key. */
MUST_CHECK enum status job_moves_watch(struct ledger **ledger, struct address *account,
                                       const struct command_context *context, struct error *error);

/* Waits until a move is in a block. STATUS_REFUSED: the ledger refuses to `what`. */
MUST_CHECK enum status job_moves_wait(struct ledger *ledger, const char *name, const char *what,
                                      uint64_t timeout_s, struct error *error);

/* Withdraws what the ledger owes to account, which may be nothing. */
MUST_CHECK enum status job_moves_withdraw(wei *amount, struct ledger *ledger,
                                          const struct address *account, uint64_t timeout_s,
                                          struct error *error);
int job_moves_report(struct command_context *context, const struct currency *currency, wei amount);

#endif /* CLIENT_JOB_MOVES_H */
