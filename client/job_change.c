/* job_change.c - see job_change.h. */
#include "client/job_change.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "chain/codec/hex_data.h"
#include "chain/commands/commands.h"
#include "chain/game/leg.h"
#include "chain/game/terms.h"
#include "client/job_moves.h"

const struct option_spec job_change_options[JOB_CHANGE_OPTIONS] = {
    CHAIN_LEDGER_OPTIONS,
    CHAIN_KEY_OPTIONS,
    CHAIN_ACCOUNT_OPTION,
    JOB_MOVES_TIMEOUT_OPTION,
};

const struct option_spec job_change_paid_options[JOB_CHANGE_PAID_OPTIONS] = {
    CHAIN_LEDGER_OPTIONS,
    CHAIN_KEY_OPTIONS,
    CHAIN_ACCOUNT_OPTION,
    JOB_MOVES_TIMEOUT_OPTION,
    {.name = "yes",
     .heading = "account",
     .often = true,
     .kind = OPTION_FLAG,
     .help = "without a prompt",
     .command_line_only = true},
};

/* The job that the command names, and what the ledger says of it. */
struct change {
    struct command_context *context;
    struct ledger *ledger;
    struct signer *signer;
    struct hash32 key;
    struct ledger_job job;
    struct game_terms terms;
    struct ledger_clock clock;
    char name[LEDGER_NAME_MAX]; /* of the move */
};

/* A move of a client. */
struct change_kind {
    const char *word; /* "close" */
    const char *done; /* "closed" */
    /* STATUS_REFUSED: the ledger would refuse it; says what to do instead. */
    enum status (*look)(struct change *change, struct error *error);
    enum status (*send)(struct change *change, struct error *error);
    bool withdraws; /* what it brings back */
};

static enum status find(struct change *change, struct error *error)
{
    struct command_context *context = change->context;

    TRY(job_moves_open(&change->ledger, &change->signer, context, error));
    TRY(ledger_catch_up(change->ledger, error));
    TRY(terms_find(&change->key, &change->terms, change->ledger, context->options->arguments[0],
                   NULL, error));
    TRY(ledger_get_clock(change->ledger, &change->clock, error));
    return ledger_get_job(change->ledger, &change->job, &change->key, error);
}

static bool is_client(const struct change *change)
{
    return address_equal(signer_address(change->signer), &change->job.client);
}

static enum status refuse_to(struct error *error, const char *why, const char *advice)
{
    (void)error_set(error, STATUS_REFUSED, "%s", why);
    error_advise(error, "%s", advice);
    return STATUS_REFUSED;
}

static enum status check_running(const struct change *change, struct error *error)
{
    return change->job.phase == GAME_PHASE_RUNNING
               ? STATUS_OK
               : refuse_to(error, "no solver is at work",
                           "'lockstep job close' takes back a job that is open");
}

static enum status confirm(const struct change *change, const char *question, struct error *error)
{
    const struct command_context *context = change->context;

    if (context->json || options_flag(context->options, "yes")) {
        return STATUS_OK;
    }
    if (isatty(STDIN_FILENO) != 1) {
        (void)error_set(error, STATUS_USAGE, "no terminal to confirm it on");
        error_advise(error, "--yes does it without a prompt");
        return STATUS_USAGE;
    }
    return command_confirms(question)
               ? STATUS_OK
               : error_set(error, STATUS_REFUSED, "not confirmed, and nothing was sent");
}

/* ---- close ------------------------------------------------------------------- */

static enum status look_close(struct change *change, struct error *error)
{
    if (change->job.phase == GAME_PHASE_RUNNING) {
        return refuse_to(error, "a solver is at work, and its stake is locked for this job",
                         "'lockstep job stop' ends it with the next segment");
    }
    if (change->job.phase == GAME_PHASE_CLOSED) {
        return refuse_to(error, "the job is closed", "'lockstep job collect' withdraws");
    }
    return is_client(change) || change->clock.time_s > change->terms.deadline_s
               ? STATUS_OK
               : error_set(error, STATUS_REFUSED,
                           "until its deadline only the client closes a job");
}

static enum status send_close(struct change *change, struct error *error)
{
    return ledger_close_job(change->ledger, change->name, &change->key, error);
}

/* ---- resume ------------------------------------------------------------------ */

static enum status look_resume(struct change *change, struct error *error)
{
    char escrow[WEI_TEXT_SIZE];
    char pool[WEI_TEXT_SIZE];

    if (change->job.phase != GAME_PHASE_OPEN || !change->job.barred) {
        return refuse_to(error, "the job is not barred: nothing of it burned",
                         "'lockstep job show' says where it stands");
    }
    if (change->clock.time_s > change->terms.deadline_s) {
        return refuse_to(error, "the deadline of the job is over",
                         "'lockstep job close' takes back the rest");
    }
    currency_print(escrow, ledger_get_currency(change->ledger), change->job.missing_escrow);
    currency_print(pool, ledger_get_currency(change->ledger), change->job.missing_pool);
    if (!change->context->json) {
        fprintf(stderr, "a void burned %s of the escrow and %s of the pool; you put both back\n",
                escrow, pool);
    }
    return confirm(change, "Resume the job?", error);
}

static enum status send_resume(struct change *change, struct error *error)
{
    return ledger_resume(change->ledger, change->name, &change->key,
                         change->job.missing_escrow + change->job.missing_pool, error);
}

/* ---- stop -------------------------------------------------------------------- */

static enum status look_stop(struct change *change, struct error *error)
{
    TRY(check_running(change, error));
    return change->job.committed + 1 < change->job.segments && !change->job.ended
               ? STATUS_OK
               : error_set(error, STATUS_REFUSED, "the next segment is the last one already");
}

static enum status send_stop(struct change *change, struct error *error)
{
    return ledger_stop(change->ledger, change->name, &change->key, error);
}

/* ---- refuse ------------------------------------------------------------------ */

static enum status look_refuse(struct change *change, struct error *error)
{
    uint32_t open = change->job.committed - change->job.finalized;
    struct leg_void lost;
    char stake[WEI_TEXT_SIZE];
    char yours[WEI_TEXT_SIZE];

    TRY(check_running(change, error));
    if (open == 0) {
        return error_set(error, STATUS_REFUSED, "nothing is committed that is not final");
    }
    if (change->job.refused_until_s != 0) {
        return error_set(error, STATUS_REFUSED, "the job was refused already");
    }
    lost = leg_void(&change->terms, change->job.pool, open,
                    change->job.segments - change->job.finalized, 0, false);
    currency_print(stake, ledger_get_currency(change->ledger), lost.stake);
    currency_print(yours, ledger_get_currency(change->ledger), lost.escrow + lost.pool);
    if (!change->context->json) {
        fprintf(stderr,
                "%" PRIu32 " segments are open; where none of them is vouched for or about to be "
                "paid, %s of your money burns, and %s of the solver's\n",
                open, yours, stake);
    }
    return confirm(change, "Refuse what is open?", error);
}

static enum status send_refuse(struct change *change, struct error *error)
{
    return ledger_refuse(change->ledger, change->name, &change->key, error);
}

/* ---- the commands ------------------------------------------------------------- */

static enum status make(struct change *change, const struct change_kind *kind, wei *amount,
                        struct error *error)
{
    uint64_t timeout_s = options_number(change->context->options, "timeout");
    char key[HEX_DATA_SIZE(HASH32_SIZE)];
    char what[32];

    TRY(find(change, error));
    TRY(kind->look(change, error));
    hex_write(key, change->key.bytes, HASH32_SIZE, true);
    /* A job can be resumed, stopped and refused once in each tenure. */
    (void)snprintf(change->name, sizeof(change->name), "job %s %s %" PRIu32, key, kind->word,
                   change->job.generation);
    (void)snprintf(what, sizeof(what), "%s the job", kind->word);
    TRY(kind->send(change, error));
    TRY(job_moves_wait(change->ledger, change->name, what, timeout_s, error));
    return kind->withdraws ? job_moves_withdraw(amount, change->ledger,
                                                signer_address(change->signer), timeout_s, error)
                           : STATUS_OK;
}

static int report(const struct change *change, const struct change_kind *kind, wei amount)
{
    struct command_context *context = change->context;
    char key[HEX_DATA_SIZE(HASH32_SIZE)];
    char text[WEI_TEXT_SIZE];

    hex_write(key, change->key.bytes, HASH32_SIZE, true);
    if (context->json) {
        wei_print_plain(text, amount);
        return command_emit(context, json_pack("{s:s, s:s, s:s}", "job", key, "move", kind->done,
                                               "withdrawn_wei", text));
    }
    fprintf(context->out, "%s: job %.14s\n", kind->done, key);
    return kind->withdraws ? job_moves_report(context, ledger_get_currency(change->ledger), amount)
                           : COMMAND_OK;
}

static int run(struct command_context *context, const struct change_kind *kind)
{
    struct change change = {.context = context};
    struct error error;
    wei amount = 0;
    enum status status;

    error_init(&error);
    status = make(&change, kind, &amount, &error);
    ledger_close(change.ledger);
    signer_free(change.signer);
    return status == STATUS_OK ? report(&change, kind, amount) : command_fail(context, &error);
}

int job_change_close(struct command_context *context)
{
    return run(context,
               &(struct change_kind){"close", "closed", look_close, send_close, .withdraws = true});
}

int job_change_resume(struct command_context *context)
{
    return run(context,
               &(struct change_kind){"resume", "resumed", look_resume, send_resume, false});
}

int job_change_stop(struct command_context *context)
{
    return run(context,
               &(struct change_kind){"stop", "stopped", look_stop, send_stop, .withdraws = true});
}

int job_change_refuse(struct command_context *context)
{
    return run(context,
               &(struct change_kind){"refuse", "refused", look_refuse, send_refuse, false});
}
