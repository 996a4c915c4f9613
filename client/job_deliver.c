/* job_deliver.c - see job_deliver.h. */
#include "client/job_deliver.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "chain/codec/hex_data.h"
#include "chain/commands/commands.h"
#include "chain/game/terms.h"
#include "chain/job/job_record.h"
#include "client/job_moves.h"

const struct option_spec job_deliver_options[JOB_DELIVER_OPTIONS] = {
    CHAIN_LEDGER_OPTIONS,
    CHAIN_KEY_OPTIONS,
    CHAIN_ACCOUNT_OPTION,
    JOB_MOVES_TIMEOUT_OPTION,
};

const struct option_spec job_deliver_rewind_options[JOB_DELIVER_REWIND_OPTIONS] = {
    CHAIN_LEDGER_OPTIONS,
    CHAIN_KEY_OPTIONS,
    CHAIN_ACCOUNT_OPTION,
    {.name = "to",
     .kind = OPTION_INTEGER,
     .value = "SEGMENT",
     .maximum = GAME_SEGMENTS_MAX,
     .required = true,
     .help = "the first segment that counts as not final again"},
    {.name = "yes",
     .kind = OPTION_FLAG,
     .help = "pay again without a prompt",
     .command_line_only = true},
    JOB_MOVES_TIMEOUT_OPTION,
};

/* The job that the command names, and what the ledger says of it. */
struct delivery {
    struct command_context *context;
    struct ledger *ledger;
    struct signer *signer;
    struct hash32 key;
    struct ledger_job job;
    struct game_terms terms;
    char text[HEX_DATA_SIZE(HASH32_SIZE)];
    wei paid;
};

static enum status find(struct delivery *delivery, struct error *error)
{
    struct command_context *context = delivery->context;

    TRY(job_moves_open(&delivery->ledger, &delivery->signer, context, error));
    TRY(ledger_catch_up(delivery->ledger, error));
    TRY(terms_find(&delivery->key, &delivery->terms, delivery->ledger,
                   context->options->arguments[0], NULL, error));
    TRY(ledger_get_job(delivery->ledger, &delivery->job, &delivery->key, error));
    hex_write(delivery->text, delivery->key.bytes, HASH32_SIZE, true);
    return STATUS_OK;
}

static enum status wait_for(struct delivery *delivery, const char *name, const char *what,
                            struct error *error)
{
    return job_moves_wait(delivery->ledger, name, what,
                          options_number(delivery->context->options, "timeout"), error);
}

static int finish(struct delivery *delivery, enum status status, const char *done,
                  struct error *error)
{
    struct command_context *context = delivery->context;
    char paid[WEI_TEXT_SIZE];

    ledger_close(delivery->ledger);
    signer_free(delivery->signer);
    if (status != STATUS_OK) {
        return command_fail(context, error);
    }
    wei_print_plain(paid, delivery->paid);
    if (context->json) {
        return command_emit(context, json_pack("{s:s, s:s, s:s}", "job", delivery->text, "move",
                                               done, "paid_wei", paid));
    }
    fprintf(context->out, "%s: job %.14s\n", done, delivery->text);
    return COMMAND_OK;
}

/* ---- acknowledge ---------------------------------------------------------------------------- */

static enum status acknowledge(struct delivery *delivery, struct error *error)
{
    char name[LEDGER_NAME_MAX];

    TRY(find(delivery, error));
    (void)snprintf(name, sizeof(name), "job %s acknowledge", delivery->text);
    TRY(ledger_acknowledge(delivery->ledger, name, &delivery->key, error));
    return wait_for(delivery, name, "acknowledge the delivery", error);
}

int job_deliver_acknowledge(struct command_context *context)
{
    struct delivery delivery = {.context = context};
    struct error error;

    error_init(&error);
    return finish(&delivery, acknowledge(&delivery, &error), "acknowledged", &error);
}

/* ---- ask-panel --------------------------------------------------------------- */

/* The last segment that is final, as the ledger's events have it. */
static enum status last_segment(struct game_segment *segment, struct delivery *delivery,
                                struct error *error)
{
    struct job_record record;
    enum status status;

    job_record_init(&record, &delivery->key, NULL);
    TRY_OUT(job_record_follow(&record, delivery->ledger, error));
    if (record.finalized == 0 || record.finalized > record.committed) {
        TRY_OUT(error_set(error, STATUS_REFUSED, "no segment of this job is final"));
    }
    *segment = record.segments[record.finalized - 1].committed;
    if (!job_record_can_deny(&record)) {
        error_advise(error,
                     "ask the solver and the mirrors; open the next job with a larger --panel");
        TRY_OUT(error_set(error, STATUS_REFUSED,
                          "asking would cost its price for nothing: a panel of %" PRIu32
                          " entries reaches no score of -10, which alone brings the held part back",
                          segment->panel));
    }
out:
    job_record_free(&record);
    return status;
}

static enum status ask_panel(struct delivery *delivery, struct error *error)
{
    struct game_segment segment;
    char name[LEDGER_NAME_MAX];

    TRY(find(delivery, error));
    TRY(last_segment(&segment, delivery, error));
    delivery->paid = 2 * (wei)delivery->terms.seats * delivery->terms.fee;
    (void)snprintf(name, sizeof(name), "job %s ask panel", delivery->text);
    TRY(ledger_ask_panel(delivery->ledger, name, &delivery->key, &delivery->terms, &segment,
                         error));
    return wait_for(delivery, name, "ask the panel", error);
}

int job_deliver_ask_panel(struct command_context *context)
{
    struct delivery delivery = {.context = context};
    struct error error;

    error_init(&error);
    return finish(&delivery, ask_panel(&delivery, &error), "asked the panel", &error);
}

/* ---- rewind ------------------------------------------------------------------ */

static enum status confirm(const struct delivery *delivery, uint32_t index, struct error *error)
{
    char amount[WEI_TEXT_SIZE];

    if (delivery->context->json || options_flag(delivery->context->options, "yes")) {
        return STATUS_OK;
    }
    wei_print(amount, delivery->paid);
    fprintf(stderr, "segments %u to %u count as not final again; paying for them once more: %s\n",
            index, delivery->job.finalized - 1, amount);
    if (isatty(STDIN_FILENO) != 1) {
        (void)error_set(error, STATUS_USAGE, "no terminal to confirm the payment on");
        error_advise(error, "--yes pays without a prompt");
        return STATUS_USAGE;
    }
    return command_confirms("Rewind the job?")
               ? STATUS_OK
               : error_set(error, STATUS_REFUSED, "not confirmed, and nothing was sent");
}

static enum status rewind_job(struct delivery *delivery, struct error *error)
{
    uint32_t index = (uint32_t)options_number(delivery->context->options, "to");
    char name[LEDGER_NAME_MAX];

    TRY(find(delivery, error));
    if (delivery->job.phase != GAME_PHASE_OPEN || index >= delivery->job.finalized) {
        (void)error_set(error, STATUS_REFUSED,
                        "only a job that is open can be rewound, to a segment that is final");
        error_advise(error, "'lockstep job show %.14s' says where it stands", delivery->text);
        return STATUS_REFUSED;
    }
    delivery->paid = game_rewind_price(&delivery->terms, index, delivery->job.finalized);
    TRY(confirm(delivery, index, error));
    (void)snprintf(name, sizeof(name), "job %s rewind %u of %" PRIu64, delivery->text, index,
                   delivery->job.opened_at_s);
    TRY(ledger_rewind(delivery->ledger, name, &delivery->key, &delivery->terms, index,
                      delivery->job.finalized, error));
    return wait_for(delivery, name, "rewind the job", error);
}

int job_deliver_rewind(struct command_context *context)
{
    struct delivery delivery = {.context = context};
    struct error error;

    error_init(&error);
    return finish(&delivery, rewind_job(&delivery, &error), "rewound", &error);
}
