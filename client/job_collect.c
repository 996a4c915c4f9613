/*
 * job_collect.c - `lockstep job collect`: what anybody may do for a job, done; what is owed, paid.
 */
#include <inttypes.h>
#include <string.h>

#include "base/hex.h"
#include "base/io/stop.h"
#include "chain/codec/hex_data.h"
#include "chain/commands/commands.h"
#include "chain/game/due_moves.h"
#include "chain/game/job_status.h"
#include "chain/game/terms.h"
#include "client/job_ledger_commands.h"
#include "client/job_moves.h"

enum {
    LOOKS_MAX = 30, /* for a move that is in a block and not in the index yet */
    LOOK_S = 1,
};

const struct option_spec job_collect_options[JOB_COLLECT_OPTIONS] = {
    CHAIN_LEDGER_OPTIONS,
    CHAIN_KEY_OPTIONS,
    CHAIN_ACCOUNT_OPTION,
    {.name = "wait",
     .kind = OPTION_FLAG,
     .help = "stay, and do whatever becomes due, until the job is closed",
     .command_line_only = true},
    {.name = "poll",
     .kind = OPTION_DURATION,
     .value = "TIME",
     .fallback = "3s",
     .minimum = 1,
     .maximum = 3600,
     .help = "with --wait: how often to look at the ledger"},
    JOB_MOVES_TIMEOUT_OPTION,
};

struct collecting {
    struct command_context *context;
    struct ledger *ledger;
    const struct address *account;
    struct job_record record;
    struct ledger_clock clock;
    struct due_move_move last; /* that was made, and what was known when it was */
    uint64_t last_read;
    bool moved;
    char refusal[ERROR_TEXT_MAX]; /* empty: it was taken */
    int looks;                    /* since, without news */
    json_t *done;
    wei withdrawn;
    uint64_t timeout_s;
    struct stop stop;
};

/* ---- one move --------------------------------------------------------------------------- */

static void tell_done(struct collecting *collecting, const struct due_move_move *move)
{
    bool of_segment = move->kind != DUE_MOVE_RELEASE && move->kind != DUE_MOVE_EXPIRE;
    const char *name = due_move_name(move->kind);
    char claim[HEX_DATA_SIZE(HASH32_SIZE)];

    hex_write(claim, move->claim.bytes, HASH32_SIZE, true);
    if (collecting->context->json) {
        json_t *one = json_pack("{s:s}", "move", name);

        if (of_segment) {
            (void)json_object_set_new(one, "segment", json_integer(move->index));
        }
        if (move->kind == DUE_MOVE_TIMEOUT || move->kind == DUE_MOVE_LAPSE) {
            (void)json_object_set_new(one, "claim", json_string(claim));
        }
        (void)json_array_append_new(collecting->done, one);
        return;
    }
    if (move->kind == DUE_MOVE_TIMEOUT || move->kind == DUE_MOVE_LAPSE) {
        fprintf(collecting->context->out, "%s: claim %.18s... on segment %u\n", name, claim,
                move->index);
    } else if (of_segment) {
        fprintf(collecting->context->out, "%s: segment %u\n", name, move->index);
    } else {
        fprintf(collecting->context->out, "%s: the job\n", name);
    }
    (void)fflush(collecting->context->out);
}

/* Names as the solver gives them (solver.c): the same move by the same key is made once. */
static enum status submit_of_segment(char name[LEDGER_NAME_MAX], struct collecting *collecting,
                                     const struct due_move_move *move, struct error *error)
{
    const struct job_record *record = &collecting->record;
    const struct job_record_segment *segment = &record->segments[move->index];
    struct hash32 hash = game_segment_hash(&record->key, &segment->committed);
    const char *verb = due_move_name(move->kind);
    char text[HEX_DATA_SIZE(HASH32_SIZE)];
    char attestor[ADDRESS_TEXT_SIZE];

    hex_write(text, hash.bytes, HASH32_SIZE, true);
    if (move->kind == DUE_MOVE_RENEW) {
        (void)snprintf(name, LEDGER_NAME_MAX, "segment %s %s %u", text, verb, segment->round);
        return ledger_renew(collecting->ledger, name, &record->key, &segment->committed, error);
    }
    if (move->kind == DUE_MOVE_SETTLE) {
        address_print(attestor, &move->attestor);
        (void)snprintf(name, LEDGER_NAME_MAX, "segment %s %s %s", text, verb, attestor);
        return ledger_settle(collecting->ledger, name, &record->key, &segment->committed,
                             &move->attestor, error);
    }
    (void)snprintf(name, LEDGER_NAME_MAX, "segment %s %s", text, verb);
    return (move->kind == DUE_MOVE_DRAW ? ledger_draw : ledger_finalize)(
        collecting->ledger, name, &record->key, &segment->committed, error);
}

static enum status submit(char name[LEDGER_NAME_MAX], struct collecting *collecting,
                          const struct due_move_move *move, struct error *error)
{
    const struct hash32 *job = &collecting->record.key;
    const char *verb = due_move_name(move->kind);
    char text[HEX_DATA_SIZE(HASH32_SIZE)];

    if (move->kind == DUE_MOVE_TIMEOUT || move->kind == DUE_MOVE_LAPSE) {
        hex_write(text, move->claim.bytes, HASH32_SIZE, true);
        (void)snprintf(name, LEDGER_NAME_MAX, "claim %s %s of %" PRIu64, text, verb, move->turn_s);
        return (move->kind == DUE_MOVE_LAPSE ? ledger_lapse : ledger_timeout)(
            collecting->ledger, name, &move->claim, error);
    }
    if (move->kind == DUE_MOVE_RELEASE || move->kind == DUE_MOVE_EXPIRE) {
        hex_write(text, job->bytes, HASH32_SIZE, true);
        (void)snprintf(name, LEDGER_NAME_MAX, "job %s %s %u", text, verb,
                       collecting->record.accepts);
        return (move->kind == DUE_MOVE_RELEASE ? ledger_release : ledger_expire)(collecting->ledger,
                                                                                 name, job, error);
    }
    return submit_of_segment(name, collecting, move, error);
}

static bool is_same(const struct due_move_move *a, const struct due_move_move *b)
{
    return a->kind == b->kind && a->index == b->index && hash32_equal(&a->claim, &b->claim) &&
           a->turn_s == b->turn_s && address_equal(&a->attestor, &b->attestor);
}

static enum status make(struct collecting *collecting, const struct due_move_move *move,
                        struct error *error)
{
    char name[LEDGER_NAME_MAX];
    enum status status = submit(name, collecting, move, error);

    if (status != STATUS_OK) {
        return status;
    }
    status = job_moves_wait(collecting->ledger, name, due_move_name(move->kind),
                            collecting->timeout_s, error);
    collecting->last = *move;
    collecting->last_read = collecting->record.read;
    collecting->moved = true;
    collecting->looks = 0;
    collecting->refusal[0] = '\0';
    if (status == STATUS_REFUSED) { /* somebody else was first: the ledger will tell */
        (void)snprintf(collecting->refusal, sizeof(collecting->refusal), "%s", error->text);
        return STATUS_OK;
    }
    if (status == STATUS_OK) {
        tell_done(collecting, move);
    }
    return status;
}

/* ---- all that is due ---------------------------------------------------------------------- */

static enum status read_job(struct collecting *collecting, struct error *error)
{
    enum status status = ledger_catch_up(collecting->ledger, error);

    if (status == STATUS_OK) {
        status = job_record_follow(&collecting->record, collecting->ledger, error);
    }
    return status == STATUS_OK ? ledger_get_clock(collecting->ledger, &collecting->clock, error)
                               : status;
}

/* The move that was just made is due still: an index may be behind its chain for a moment. */
static enum status wait_for_news(struct collecting *collecting, struct error *error)
{
    if (collecting->looks++ >= LOOKS_MAX) {
        return collecting->refusal[0] != '\0'
                   ? error_set(error, STATUS_REFUSED, "%s", collecting->refusal)
                   : error_set(error, STATUS_UNREACHABLE,
                               "'%s' was sent, and the ledger tells of nothing that came of it",
                               due_move_name(collecting->last.kind));
    }
    return stop_wait(&collecting->stop, LOOK_S)
               ? error_set(error, STATUS_STOPPED, "stopped while waiting for the ledger")
               : STATUS_OK;
}

static enum status do_what_is_due(struct collecting *collecting, struct error *error)
{
    struct due_move_move move;
    enum status status = read_job(collecting, error);

    while (status == STATUS_OK &&
           due_move_next(&move, &collecting->record, &collecting->clock, collecting->account)) {
        bool again = collecting->moved && is_same(&move, &collecting->last) &&
                     collecting->record.read == collecting->last_read;

        status = stop_requested(&collecting->stop)
                     ? error_set(error, STATUS_STOPPED, "stopped between two moves")
                 : again ? wait_for_news(collecting, error)
                         : make(collecting, &move, error);
        if (status == STATUS_OK) {
            status = read_job(collecting, error);
        }
    }
    return status;
}

static enum status withdraw(struct collecting *collecting, struct error *error)
{
    char text[WEI_TEXT_SIZE];
    wei amount = 0;
    enum status status = job_moves_withdraw(&amount, collecting->ledger, collecting->account,
                                            collecting->timeout_s, error);

    if (status != STATUS_OK || amount == 0) {
        return status;
    }
    collecting->withdrawn += amount;
    if (!collecting->context->json) {
        wei_print(text, amount);
        fprintf(collecting->context->out, "withdraw: %s came back\n", text);
        (void)fflush(collecting->context->out);
    }
    return STATUS_OK;
}

static enum status collect(struct collecting *collecting, bool waiting, struct error *error)
{
    double poll_s = (double)options_number(collecting->context->options, "poll");
    enum status status = STATUS_OK;

    do {
        struct error weather;

        error_init(&weather);
        status = do_what_is_due(collecting, &weather);
        if (status == STATUS_OK) {
            status = withdraw(collecting, &weather);
        }
        if (status != STATUS_OK && (status != STATUS_UNREACHABLE || !waiting)) {
            *error = weather;
            return status;
        }
        if (status == STATUS_OK && collecting->record.phase == GAME_PHASE_CLOSED) {
            return STATUS_OK;
        }
    } while (waiting && !stop_wait(&collecting->stop, poll_s));
    return waiting ? error_set(error, STATUS_STOPPED, "stopped while waiting for the ledger")
                   : status;
}

/* ---- what is left ------------------------------------------------------------------------- */

struct left {
    const char *word;
    int64_t segment; /* -1: the job */
    uint64_t until_s;
    char text[2 * JOB_STATUS_TEXT_SIZE];
};

/* The job's first segment that is not final holds up all others. */
static void describe_first(struct left *left, const struct job_record *record, uint64_t now_s)
{
    uint32_t first = record->finalized;
    char time[TERMS_TIME_SIZE];
    struct job_status waits;

    job_status_describe(&waits, record, first, now_s);
    left->word = waits.word;
    left->segment = first;
    left->until_s = waits.until_s != 0 ? waits.until_s : due_move_after(record, now_s);
    terms_time(time, left->until_s);
    if (job_record_waits_for(record, first, now_s) == JOB_RECORD_UNCOVERED) {
        (void)snprintf(left->text, sizeof(left->text),
                       "the end of the job, %s: segment %u has too few attestors, and can be final "
                       "no more",
                       time, first);
        return;
    }
    (void)snprintf(left->text, sizeof(left->text), "segment %u: %s%s%s", first, waits.text,
                   waits.until_s == 0 && left->until_s != 0 ? "; their turn ends " : "",
                   waits.until_s == 0 && left->until_s != 0 ? time : "");
}

static void describe_running(struct left *left, const struct job_record *record, uint64_t now_s)
{
    bool late = now_s > record->due_s;
    char time[TERMS_TIME_SIZE];

    if (record->finalized < record->committed) {
        describe_first(left, record, now_s);
        return;
    }
    left->word = late ? "end" : "commit";
    left->until_s = late ? job_record_end(record) : record->due_s;
    terms_time(time, left->until_s);
    (void)snprintf(left->text, sizeof(left->text),
                   late ? "the end of the job, %s: the whole stake comes back then"
                        : "the solver, which has until %s to commit the next segment",
                   time);
}

/* False: nothing is. */
static bool describe(struct left *left, const struct collecting *collecting)
{
    const struct job_record *record = &collecting->record;
    char time[TERMS_TIME_SIZE];

    *left = (struct left){.word = "solver", .segment = -1};
    if (record->phase == GAME_PHASE_RUNNING) {
        describe_running(left, record, collecting->clock.time_s);
    } else if (record->phase == GAME_PHASE_OPEN) {
        left->until_s = record->terms.deadline_s;
        terms_time(time, left->until_s);
        (void)snprintf(left->text, sizeof(left->text),
                       "a solver that accepts it, until %s; 'lockstep job cancel' takes back the "
                       "rest of the escrow before",
                       time);
    }
    return left->text[0] != '\0';
}

static int report(struct collecting *collecting)
{
    struct command_context *context = collecting->context;
    const struct job_record *record = &collecting->record;
    char withdrawn[WEI_TEXT_SIZE];
    char key[HEX_DATA_SIZE(HASH32_SIZE)];
    char time[TERMS_TIME_SIZE];
    struct left left;
    bool waits = describe(&left, collecting);
    json_t *waiting = NULL;

    hex_write(key, record->key.bytes, HASH32_SIZE, true);
    if (context->json) {
        wei_print_plain(withdrawn, collecting->withdrawn);
        waiting = !waits ? json_null()
                         : json_pack("{s:s, s:o, s:I, s:s}", "for", left.word, "segment",
                                     left.segment < 0 ? json_null() : json_integer(left.segment),
                                     "until", (json_int_t)left.until_s, "text", left.text);
        return command_emit(context, json_pack("{s:s, s:s, s:i, s:i, s:i, s:O, s:o, s:s}", "job",
                                               key, "phase", job_status_phase(record), "segments",
                                               (int)record->segment_count, "committed",
                                               (int)record->committed, "final",
                                               (int)record->finalized, "done", collecting->done,
                                               "waits_for", waiting, "withdrawn_wei", withdrawn));
    }
    terms_time(time, collecting->clock.time_s);
    fprintf(context->out, "job %.18s...: %s, %u of %u segments final; it is %s UTC there\n", key,
            job_status_phase(record), record->finalized, record->segment_count, time);
    if (waits) {
        fprintf(context->out, "waits for %s\n", left.text);
    }
    return COMMAND_OK;
}

/* ---- the command -------------------------------------------------------------------------- */

static enum status collect_job(struct collecting *collecting, const char *text, bool waiting,
                               struct error *error)
{
    struct hash32 key;
    enum status status = ledger_catch_up(collecting->ledger, error);

    if (status == STATUS_OK) {
        status = terms_find(&key, NULL, collecting->ledger, text, NULL, error);
    }
    if (status != STATUS_OK) {
        return status;
    }
    job_record_init(&collecting->record, &key, collecting->account);
    status = stop_open(&collecting->stop, error);
    if (status == STATUS_OK) {
        status = collect(collecting, waiting, error);
        stop_close(&collecting->stop);
    }
    return status;
}

int job_ledger_collect(struct command_context *context)
{
    const struct options *options = context->options;
    const char *job = options->argument_count == 0 ? NULL : options->arguments[0];
    bool waiting = options_flag(options, "wait");
    struct collecting collecting = {.context = context,
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
    status = job_moves_open(&collecting.ledger, &signer, context, &error);
    collecting.done = json_array();
    if (status == STATUS_OK) {
        collecting.account = signer_address(signer);
        status = job == NULL ? job_moves_withdraw(&collecting.withdrawn, collecting.ledger,
                                                  collecting.account, collecting.timeout_s, &error)
                             : collect_job(&collecting, job, waiting, &error);
    }
    ledger_close(collecting.ledger);
    code = status != STATUS_OK ? command_fail(context, &error)
           : job == NULL       ? job_moves_report(context, collecting.withdrawn)
                               : report(&collecting);
    job_record_free(&collecting.record);
    json_decref(collecting.done);
    signer_free(signer);
    return code;
}
