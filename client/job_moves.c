/* job_moves.c - see job_moves.h. */
#include "client/job_moves.h"

#include <inttypes.h>
#include <stdio.h>

#include "chain/commands/commands.h"
#include "chain/job/job_record.h"

enum status job_moves_wait(struct ledger *ledger, const char *name, const char *what,
                           uint64_t timeout_s, struct error *error)
{
    struct ledger_outcome outcome;

    TRY(ledger_wait(ledger, &outcome, name, false,
                    (uint32_t)(timeout_s < 4000000 ? timeout_s * 1000 : UINT32_MAX), error));
    if (outcome.state == LEDGER_MOVE_REFUSED) {
        return error_set(error, STATUS_REFUSED, "the ledger refuses to %s: %s", what,
                         outcome.refusal.kind == GAME_REFUSED_NOT
                             ? "it gives no known reason"
                             : game_refusal_text(outcome.refusal.kind));
    }
    return STATUS_OK;
}

enum status job_moves_open(struct ledger **ledger, struct signer **signer,
                           const struct command_context *context, struct error *error)
{
    struct ledger_options options;
    char state_dir[FILE_PATH_MAX];

    *ledger = NULL;
    TRY(chain_unlock(signer, context, error));
    TRY(chain_ledger_options(&options, state_dir, context, *signer, error));
    options.check_purse = true; /* nobody waits at a command until money comes */
    return ledger_open(ledger, &options, error);
}

enum status job_moves_watch(struct ledger **ledger, struct address *account,
                            const struct command_context *context, struct error *error)
{
    struct ledger_options options;
    char state_dir[FILE_PATH_MAX];

    *ledger = NULL;
    TRY(chain_account_address(account, context, error));
    TRY(chain_ledger_options(&options, state_dir, context, NULL, error));
    return ledger_open(ledger, &options, error);
}

enum status job_moves_withdraw(wei *amount, struct ledger *ledger, const struct address *account,
                               uint64_t timeout_s, struct error *error)
{
    static const struct hash32 no_job;
    struct job_record record;
    char address[ADDRESS_TEXT_SIZE];
    char name[LEDGER_NAME_MAX];
    wei purse;
    enum status status;

    job_record_init(&record, &no_job, account);
    TRY_OUT(ledger_catch_up(ledger, error));
    TRY_OUT(job_record_follow(&record, ledger, error));
    TRY_OUT(ledger_get_account(ledger, &purse, amount, account, error));
    if (*amount > 0) {
        address_print(address, account);
        (void)snprintf(name, sizeof(name), "withdraw %s %" PRIu64, address, record.withdrawals);
        TRY_OUT(ledger_withdraw(ledger, name, account, error));
        TRY_OUT(job_moves_wait(ledger, name, "withdraw", timeout_s, error));
    }
out:
    job_record_free(&record);
    return status;
}

int job_moves_report(struct command_context *context, const struct currency *currency, wei amount)
{
    char plain[WEI_TEXT_SIZE];
    char text[WEI_TEXT_SIZE];

    wei_print_plain(plain, amount);
    currency_print(text, currency, amount);
    return command_say(context, json_pack("{s:s}", "withdrawn_wei", plain), "%s came back\n", text);
}
