/*
 * job_collect.c - `lockstep job collect`: makes every due move of a job that anybody may make, and
 * withdraws what the ledger owes.
 */
#include "client/job_collect.h"

#include <inttypes.h>
#include <string.h>

#include "base/hex.h"
#include "base/io/stop.h"
#include "chain/codec/hex_data.h"
#include "chain/commands/commands.h"
#include "chain/game/terms.h"
#include "chain/job/due_submit.h"
#include "chain/job/job_status.h"
#include "chain/job/job_wait.h"
#include "client/job_moves.h"

enum {
    LOOKS_MAX = 30, /* at a move that is in a block and not yet in the index */
    WAITS_MAX = 90, /* for the block that a seed comes from */
    LOOK_S = 1,
};

const struct option_spec job_collect_options[JOB_COLLECT_OPTIONS] = {
    CHAIN_LEDGER_OPTIONS,
    CHAIN_KEY_OPTIONS,
    CHAIN_ACCOUNT_OPTION,
    {.name = "wait",
     .heading = "ledger",
     .often = true,
     .kind = OPTION_FLAG,
     .help = "stay, and do all that becomes due, until the job is closed",
     .command_line_only = true},
    CHAIN_POLL_OPTION("with --wait: how often to look at the ledger"),
    JOB_MOVES_TIMEOUT_OPTION,
};

struct collector {
    struct command_context *context;
    struct ledger *ledger;
    const struct address *account;
    struct job_record record;
    struct ledger_clock clock;
    struct due_move last; /* the last move that was made */
    uint64_t last_read;   /* how far the record was read then */
    bool moved;
    char refusal[ERROR_TEXT_MAX]; /* why the ledger refused the last move; empty: it took it */
    int looks;                    /* without news since the last move */
    int waits;
    json_t *done;
    wei withdrawn;
    uint64_t timeout_s;
    struct stop stop;
};

/* ---- one move --------------------------------------------------------------------------- */

static void report_move(struct collector *collector, const struct due_move *move)
{
    bool of_claim = move->kind == DUE_MOVE_TIMEOUT || move->kind == DUE_MOVE_LAPSE;
    bool of_segment = of_claim || move->kind == DUE_MOVE_DRAW || move->kind == DUE_MOVE_SETTLE;
    const char *name = due_move_name(move->kind);
    json_t *one = json_pack("{s:s}", "move", name);
    char claim[HEX_DATA_SIZE(HASH32_SIZE)];

    hex_write(claim, move->claim.bytes, HASH32_SIZE, true);
    if (of_claim) {
        command_tell(collector->context, "%s: claim %.18s... on segment %u\n", name, claim,
                     move->index);
    } else if (of_segment) {
        command_tell(collector->context, "%s: segment %u\n", name, move->index);
    } else {
        command_tell(collector->context, "%s: the job\n", name);
    }
    if (of_segment) {
        (void)json_object_set_new(one, "segment", json_integer(move->index));
    }
    if (of_claim) {
        (void)json_object_set_new(one, "claim", json_string(claim));
    }
    (void)json_array_append_new(collector->done, one);
}

static bool is_same(const struct due_move *a, const struct due_move *b)
{
    return a->kind == b->kind && a->index == b->index && hash32_equal(&a->claim, &b->claim) &&
           a->turn_s == b->turn_s && a->entry == b->entry && a->generation == b->generation &&
           a->round == b->round && a->vouched == b->vouched && a->because == b->because;
}

static enum status pause_for_ledger(struct collector *collector, struct error *error)
{
    return stop_wait(&collector->stop, LOOK_S)
               ? error_set(error, STATUS_STOPPED, "stopped while waiting for the ledger")
               : STATUS_OK;
}

static enum status make(struct collector *collector, const struct due_move *move,
                        struct error *error)
{
    char name[LEDGER_NAME_MAX];
    enum status status;

    status = due_submit(name, collector->ledger, &collector->record, move, error);
    if (status == STATUS_UNREACHABLE && move->kind == DUE_MOVE_DRAW &&
        collector->waits++ < WAITS_MAX) {
        return pause_for_ledger(collector, error); /* the block of its seed is not there yet */
    }
    TRY(status);
    status = job_moves_wait(collector->ledger, name, due_move_name(move->kind),
                            collector->timeout_s, error);
    collector->last = *move;
    collector->last_read = collector->record.read;
    collector->moved = true;
    collector->looks = 0;
    collector->refusal[0] = '\0';
    if (status == STATUS_REFUSED) { /* somebody else was first; the ledger will show it */
        (void)snprintf(collector->refusal, sizeof(collector->refusal), "%s", error->text);
        return STATUS_OK;
    }
    TRY(status);
    report_move(collector, move);
    return STATUS_OK;
}

/* ---- all due moves ---------------------------------------------------------------------- */

static enum status read_job(struct collector *collector, struct error *error)
{
    TRY(ledger_catch_up(collector->ledger, error));
    TRY(job_record_follow(&collector->record, collector->ledger, error));
    return ledger_get_clock(collector->ledger, &collector->clock, error);
}

/* The last move is still due: an index may be behind its chain for a moment. */
static enum status wait_for_news(struct collector *collector, struct error *error)
{
    if (collector->looks++ >= LOOKS_MAX) {
        return collector->refusal[0] != '\0'
                   ? error_set(error, STATUS_REFUSED, "%s", collector->refusal)
                   : error_set(error, STATUS_UNREACHABLE,
                               "'%s' was sent, and the ledger shows no effect of it",
                               due_move_name(collector->last.kind));
    }
    return pause_for_ledger(collector, error);
}

static enum status make_due_moves(struct collector *collector, struct error *error)
{
    struct due_move move;

    TRY(read_job(collector, error));
    while (due_move_next(&move, &collector->record, &collector->clock, collector->account)) {
        bool again = collector->moved && is_same(&move, &collector->last) &&
                     collector->record.read == collector->last_read;

        if (stop_requested(&collector->stop)) {
            return error_set(error, STATUS_STOPPED, "stopped between two moves");
        }
        TRY(again ? wait_for_news(collector, error) : make(collector, &move, error));
        TRY(read_job(collector, error));
    }
    return STATUS_OK;
}

static enum status withdraw(struct collector *collector, struct error *error)
{
    char text[WEI_TEXT_SIZE];
    wei amount = 0;
    enum status status = job_moves_withdraw(&amount, collector->ledger, collector->account,
                                            collector->timeout_s, error);

    if (status != STATUS_OK || amount == 0) {
        return status;
    }
    collector->withdrawn += amount;
    currency_print(text, ledger_get_currency(collector->ledger), amount);
    command_tell(collector->context, "withdraw: %s came back\n", text);
    return STATUS_OK;
}

static enum status collect_once(struct collector *collector, struct error *error)
{
    TRY(make_due_moves(collector, error));
    return withdraw(collector, error);
}

static enum status collect(struct collector *collector, bool waiting, struct error *error)
{
    double poll_s = (double)options_number(collector->context->options, "poll");
    enum status status = STATUS_OK;

    do {
        struct error failure;

        error_init(&failure);
        status = collect_once(collector, &failure);
        if (status != STATUS_OK && (status != STATUS_UNREACHABLE || !waiting)) {
            *error = failure;
            return status;
        }
        if (status == STATUS_OK && job_wait_is_over(&collector->record)) {
            return STATUS_OK;
        }
    } while (waiting && !stop_wait(&collector->stop, poll_s));
    return waiting ? error_set(error, STATUS_STOPPED, "stopped while waiting for the ledger")
                   : status;
}

/* ---- the report ---------------------------------------------------------------------------- */

static int report(struct collector *collector)
{
    struct command_context *context = collector->context;
    const struct job_record *record = &collector->record;
    char withdrawn[WEI_TEXT_SIZE];
    char key[HEX_DATA_SIZE(HASH32_SIZE)];
    char time[TERMS_TIME_SIZE];
    struct job_wait left;
    bool waits = job_wait_describe(&left, record, collector->clock.time_s);

    hex_write(key, record->key.bytes, HASH32_SIZE, true);
    wei_print_plain(withdrawn, collector->withdrawn);
    terms_time(time, collector->clock.time_s);
    return command_say(context,
                       json_pack("{s:s, s:s, s:i, s:i, s:i, s:O, s:o, s:s}", "job", key, "phase",
                                 job_status_phase(record), "segments", (int)record->state.segments,
                                 "committed", (int)record->state.committed, "final",
                                 (int)record->state.finalized, "done", collector->done, "waits_for",
                                 job_wait_json(&left), "withdrawn_wei", withdrawn),
                       "job %.18s...: %s, %u of %u segments final; it is %s there\n%s%s%s", key,
                       job_status_phase(record), record->state.finalized, record->state.segments,
                       time, waits ? "waits for " : "", waits ? left.text : "", waits ? "\n" : "");
}

/* ---- the command -------------------------------------------------------------------------- */

static enum status collect_job(struct collector *collector, const char *text, bool waiting,
                               struct error *error)
{
    struct hash32 key;
    enum status status;

    TRY(ledger_catch_up(collector->ledger, error));
    TRY(terms_find(&key, NULL, collector->ledger, text, NULL, error));
    job_record_init(&collector->record, &key, collector->account);
    TRY(stop_open(&collector->stop, error));
    status = collect(collector, waiting, error);
    stop_close(&collector->stop);
    return status;
}

int job_collect_run(struct command_context *context)
{
    const struct options *options = context->options;
    const char *job = options->argument_count == 0 ? NULL : options->arguments[0];
    bool waiting = options_flag(options, "wait");
    struct collector collector = {.context = context,
                                  .timeout_s = options_number(options, "timeout"),
                                  .stop = {.descriptor = -1}};
    struct signer *signer = NULL;
    struct error error;
    enum status status;
    int code;

    if (waiting && job == NULL) {
        return command_usage(context, "--wait waits for a job: name its key");
    }
    error_init(&error);
    collector.done = json_array();
    TRY_OUT(job_moves_open(&collector.ledger, &signer, context, &error));
    collector.account = signer_address(signer);
    TRY_OUT(job == NULL ? job_moves_withdraw(&collector.withdrawn, collector.ledger,
                                             collector.account, collector.timeout_s, &error)
                        : collect_job(&collector, job, waiting, &error));
out:
    code = status != STATUS_OK ? command_fail(context, &error)
           : job == NULL       ? job_moves_report(context, ledger_get_currency(collector.ledger),
                                                  collector.withdrawn)
                               : report(&collector);
    ledger_close(collector.ledger);
    job_record_free(&collector.record);
    json_decref(collector.done);
    signer_free(signer);
    return code;
}
