/* ledger_commands.c - `lockstep bundle status`, `commit` and `collect`, and the end of a run. */
#include "prover/commands/ledger_commands.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "chain/codec/hex_data.h"
#include "chain/game/terms.h"
#include "chain/job/job_status.h"
#include "proofs/bundle/stop_rule.h"
#include "prover/commands/access.h"

enum {
    LINES_MOST = 20, /* of segments, without --all */
};

const struct option_spec ledger_commands_status_options[LEDGER_COMMANDS_STATUS_OPTIONS] = {
    ACCESS_KEY_OPTIONS,
    {.name = "all",
     .kind = OPTION_FLAG,
     .help = "list every segment, also those that are final",
     .command_line_only = true},
    SESSION_LEDGER_OPTIONS,
};
const struct option_spec ledger_commands_post_options[LEDGER_COMMANDS_POST_OPTIONS] = {
    {.name = "again",
     .heading = "ledger",
     .kind = OPTION_FLAG,
     .help = "take a job again that was lost by a conviction or by being late",
     .command_line_only = true},
    POLICY_OPTIONS,
    POLICY_SOLVER_OPTIONS,
    SESSION_ACCEPT_OPTIONS,
    SESSION_LEDGER_OPTIONS,
    SESSION_WALLET_OPTIONS,
    ACCESS_KEY_OPTIONS,
    {.name = "wait",
     .heading = "ledger",
     .often = true,
     .kind = OPTION_FLAG,
     .help = "stay until the job is closed and everything is paid",
     .command_line_only = true},
};

const struct option_spec ledger_commands_respond_options[LEDGER_COMMANDS_RESPOND_OPTIONS] = {
    SESSION_LEDGER_OPTIONS,
    SESSION_WALLET_OPTIONS,
    ACCESS_KEY_OPTIONS,
    ACCESS_RUN_OPTIONS,
    {.name = "wait",
     .heading = "ledger",
     .often = true,
     .kind = OPTION_FLAG,
     .help = "stay until the job is closed, for claims that may still come",
     .command_line_only = true},
};

/* ---- the training ------------------------------------------------------------------ */

static json_t *result_json(const struct bundle *bundle, const struct train_result *result,
                           const char *root, float loss)
{
    char id[HEX_SIZE(DIGEST_SIZE)];

    hex_encode(id, bundle_job(bundle)->id.bytes, DIGEST_SIZE);
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:b, s:s, s:o}", "job", id, "bundle",
                     bundle_path(bundle), "first", (json_int_t)result->first, "steps",
                     (json_int_t)result->steps, "steps_of_job",
                     (json_int_t)bundle_job(bundle)->steps, "diverged", (int)result->diverged,
                     "state_root", root, "loss", isfinite(loss) ? json_real(loss) : json_null());
}

/* The training's part of a report. */
static enum status add_training(struct sheet *sheet, struct bundle *bundle,
                                const struct train_result *result, struct error *error)
{
    struct bundle_step last = {.root = bundle_job(bundle)->first_state_root, .hidden = true};
    char sentence[STOP_SENTENCE];
    const bool trains = bundle_job(bundle)->tape->loss != TENSOR_NONE;
    char root[HEX_SIZE(DIGEST_SIZE)];
    float loss;

    if (result->steps > 0) {
        TRY(bundle_step_read(&last, bundle, result->steps - 1, error));
    }
    if (last.hidden) {
        last.loss_bits = FLOAT_NAN_BITS;
    }
    memcpy(&loss, &last.loss_bits, sizeof(loss));
    hex_encode(root, last.root.bytes, DIGEST_SIZE);
    sheet_merge(sheet, result_json(bundle, result, root, loss));
    TRY(stop_rule_sentence(sentence, bundle, error));
    sheet_set(sheet, "ended", sentence[0] == '\0' ? json_null() : json_string(sentence));
    if (result->steps == 0) {
        sheet_print(sheet, "no step of %" PRIu64 " was run yet\n", bundle_job(bundle)->steps);
        return STATUS_OK;
    }
    sheet_print(sheet, "%s %" PRIu64 " of %" PRIu64 " steps",
                result->diverged ? "diverged after"
                : trains         ? "trained after"
                                 : "ran",
                result->steps, bundle_job(bundle)->steps);
    if (trains) {
        sheet_print(sheet, ", loss %.6f", (double)loss);
    }
    sheet_print(sheet, "\nstate root %s\nbundle     %s\n", root, bundle_path(bundle));
    if (sentence[0] != '\0') {
        sheet_print(sheet, "%s\n", sentence);
    }
    return STATUS_OK;
}

/* ---- the solver's view -------------------------------------------------------------- */

static json_t *view_json(const struct session *session, const struct solver_view *view)
{
    char key[HEX_DATA_SIZE(HASH32_SIZE)];

    hex_write(key, session->job.bytes, HASH32_SIZE, true);
    return json_pack("{s:s, s:i, s:i, s:i, s:b, s:b, s:i}", "job", key, "segments",
                     (int)view->segments, "committed", (int)view->committed, "final",
                     (int)view->finalized, "closed", (int)(view->phase == GAME_PHASE_CLOSED),
                     "collected", (int)view->collected, "open_claims", (int)view->disputed);
}

static void print_view(struct sheet *sheet, const struct session *session,
                       const struct solver_view *view)
{
    char key[HEX_DATA_SIZE(HASH32_SIZE)];

    hex_write(key, session->job.bytes, HASH32_SIZE, true);
    sheet_print(sheet, "on ledger  %.18s...: %u of %u segments committed, %u final%s%s\n", key,
                view->committed, view->segments, view->finalized,
                view->phase == GAME_PHASE_CLOSED ? ", closed" : "",
                view->collected ? ", all is paid" : "");
}

int ledger_commands_report(struct command_context *context, struct bundle *bundle,
                           struct session *session, const struct train_result *result,
                           struct error *error)
{
    struct solver_view view;
    struct sheet sheet;
    double spent;

    sheet_init(&sheet);
    if (add_training(&sheet, bundle, result, error) != STATUS_OK) {
        sheet_release(&sheet);
        return command_fail(context, error);
    }
    if (session != NULL) {
        poster_look(session->poster, &view, &spent);
        sheet_set(&sheet, "ledger", view_json(session, &view));
        print_view(&sheet, session, &view);
    }
    return command_show(context, &sheet);
}

/* ---- commit, collect -------------------------------------------------------------------- */

static int report_view(struct command_context *context, const struct session *session,
                       const struct solver_view *view)
{
    struct sheet sheet;

    sheet_init(&sheet);
    sheet_merge(&sheet, view_json(session, view));
    print_view(&sheet, session, view);
    return command_show(context, &sheet);
}

struct posting {
    struct session_plan plan;
    bool (*done)(const struct solver_view *view);
    bool forever;
    bool computes; /* the options name a machine */
};

static enum status post_with(struct solver_view *view, struct session *session,
                             struct command_context *context, struct bundle *bundle,
                             const struct posting *posting, struct stop *stop,
                             struct notify *notify, struct error *error)
{
    uint64_t timeout_s = posting->forever ? 0 : options_number(context->options, "timeout");
    const struct options *options = posting->computes ? context->options : NULL;
    struct session_plan plan = posting->plan;
    struct machine_options machine;
    struct ledger_retry retry = session_retry(context, stop, notify);

    TRY(session_open(session, context, bundle, true, error));
    if (!session->has_job) {
        TRY(session_check_readable(plan.accept && bundle_is_encrypted(bundle), error));
        TRY(session_find_job(session, NULL, context, bundle_job(bundle),
                             posting->forever ? &retry : NULL, error));
    }
    TRY(session_check_purse(session, plan.accept, error));
    if (posting->plan.sign) {
        TRY(session_remember(session, bundle, error));
    }
    TRY(options == NULL ? machine_options_default(&machine, error)
                        : access_machine(&machine, context, error));
    TRY(access_respond(&plan.respond, bundle, &machine, options, error));
    if (plan.accept) {
        TRY(policy_options_solver(&plan.policy.limits, context->options, error));
        TRY(session_accept_options(&plan, context->options, error));
        TRY(solver_policy_read_pace(&plan.policy, bundle, error));
    }
    TRY(session_start(session, bundle, &plan, context->log, error));
    session->notify = notify;
    notify_ready(notify, "following the ledger");
    return session_wait(session, view, posting->done, stop, timeout_s,
                        posting->forever ? stderr : NULL, error);
}

static int post(struct command_context *context, const struct posting *posting)
{
    struct session *session = calloc(1, sizeof(*session));
    struct solver_view view = {0};
    struct bundle *bundle = NULL;
    struct stop stop = {.descriptor = -1};
    struct notify notify;
    struct error error;
    enum status status;
    int code;

    error_init(&error);
    notify_open(&notify);
    TRY_OUT(session == NULL ? error_set(&error, STATUS_NO_MEMORY, "no memory for a session")
                            : stop_open(&stop, &error));
    TRY_OUT(bundle_open(&bundle, context->options->arguments[0],
                        posting->plan.sign ? BUNDLE_WRITE : BUNDLE_READ, &error));
    TRY_OUT(access_unlock_if_given(bundle, context->options, &error));
    TRY_OUT(post_with(&view, session, context, bundle, posting, &stop, &notify, &error));
out:
    notify_stopping(&notify);
    code =
        status == STATUS_OK ? report_view(context, session, &view) : command_fail(context, &error);
    if (session != NULL) {
        session_close(session);
    }
    free(session);
    stop_close(&stop);
    notify_close(&notify);
    bundle_close(bundle);
    return code;
}

int ledger_commands_commit(struct command_context *context)
{
    const struct posting posting = {
        .plan = {.accept = true, .again = options_flag(context->options, "again"), .sign = true},
        .done = session_is_committed};

    return post(context, &posting);
}

int ledger_commands_collect(struct command_context *context)
{
    bool waiting = options_flag(context->options, "wait");
    const struct posting posting = {.plan = {.collect = true, .collect_now = true},
                                    .done = waiting ? session_is_collected : session_is_idle,
                                    .forever = waiting};

    return post(context, &posting);
}

int ledger_commands_respond(struct command_context *context)
{
    bool waiting = options_flag(context->options, "wait");
    const struct posting posting = {.done = waiting ? session_is_closed : session_is_defended,
                                    .forever = true,
                                    .computes = true};

    return post(context, &posting);
}

/* ---- status: what a segment waits for ----------------------------------------------------- */

static void describe(struct job_status *status, const struct job_record *record, uint32_t index,
                     uint64_t trained, uint64_t now_s)
{
    memset(status, 0, sizeof(*status));
    if (index < record->state.committed) {
        job_status_describe(status, record, index, now_s);
    } else if (index < trained) {
        status->word = "to-commit";
        (void)snprintf(status->text, JOB_STATUS_TEXT_SIZE, "being committed");
    } else {
        status->word = "to-train";
        (void)snprintf(status->text, JOB_STATUS_TEXT_SIZE, "being trained");
    }
}

/* ---- status: the ledger's side -------------------------------------------------------------- */

struct standing {
    struct job_record record;
    struct ledger_clock clock;
    struct address account;
    wei purse;
    wei owed;
    uint64_t trained; /* segments */
};

static enum status read_standing(struct standing *standing, struct session *session,
                                 struct error *error)
{
    struct ledger *ledger;
    enum status status;

    TRY(ledger_open(&ledger, &session->ledger, error));
    job_record_init(&standing->record, &session->job, NULL);
    TRY_OUT(ledger_catch_up(ledger, error));
    TRY_OUT(job_record_follow(&standing->record, ledger, error));
    TRY_OUT(ledger_get_clock(ledger, &standing->clock, error));
    standing->account = standing->record.last_accepted;
    TRY_OUT(
        ledger_get_account(ledger, &standing->purse, &standing->owed, &standing->account, error));
out:
    ledger_close(ledger);
    return status;
}

static void print_standing(struct sheet *sheet, const struct session *session,
                           const struct standing *standing, bool all)
{
    const struct job_record *record = &standing->record;
    uint32_t first = all ? 0 : record->state.finalized;
    uint32_t last = record->state.segments;
    char key[HEX_DATA_SIZE(HASH32_SIZE)];
    char account[ADDRESS_TEXT_SIZE];
    char amount[WEI_TEXT_SIZE];
    char time[TERMS_TIME_SIZE];

    hex_write(key, session->job.bytes, HASH32_SIZE, true);
    address_print(account, &standing->account);
    terms_time(time, standing->clock.time_s);
    sheet_print(sheet, "on ledger  %s\n           %s, it is %s there\n", key,
                job_status_phase(record), time);
    if (record->accepts > 0) {
        currency_print(amount, &record->currency, standing->owed);
        sheet_print(sheet, "solver     %s, is owed %s\n", account, amount);
    }
    sheet_print(sheet, "segments   %" PRIu64 " of %u trained, %u committed, %u final\n",
                standing->trained, record->state.segments, record->state.committed,
                record->state.finalized);
    if (record->state.phase == GAME_PHASE_RUNNING &&
        record->state.committed < record->state.segments && !record->state.ended) {
        terms_time(time, record->state.due_s);
        sheet_print(sheet, "next due   segment %u by %s\n", record->state.committed, time);
    }
    if (record->state.phase == GAME_PHASE_CLOSED) {
        return;
    }
    for (uint32_t i = first; i < last; i++) {
        struct job_status status;

        if (!all && i - first == LINES_MOST) {
            sheet_print(sheet, "  ... and %u more (--all)\n", last - i);
            return;
        }
        describe(&status, record, i, standing->trained, standing->clock.time_s);
        sheet_print(sheet, "  %5u    %s\n", i, status.text);
    }
}

static json_t *standing_json(const struct session *session, const struct standing *standing,
                             bool all)
{
    const struct job_record *record = &standing->record;
    json_t *segments = json_array();
    char key[HEX_DATA_SIZE(HASH32_SIZE)];
    char account[ADDRESS_TEXT_SIZE];
    char owed[WEI_TEXT_SIZE];
    char purse[WEI_TEXT_SIZE];

    for (uint32_t i = all ? 0 : record->state.finalized; i < record->state.segments; i++) {
        struct job_status status;

        describe(&status, record, i, standing->trained, standing->clock.time_s);
        (void)json_array_append_new(
            segments, json_pack("{s:i, s:s, s:I, s:s}", "segment", (int)i, "waits_for", status.word,
                                "until", (json_int_t)status.until_s, "text", status.text));
    }
    hex_write(key, session->job.bytes, HASH32_SIZE, true);
    address_print(account, &standing->account);
    wei_print_plain(owed, standing->owed);
    wei_print_plain(purse, standing->purse);
    return json_pack("{s:s, s:s, s:I, s:s, s:s, s:s, s:i, s:I, s:i, s:i, s:I, s:i, s:o}", "job",
                     key, "phase", job_status_phase(record), "time",
                     (json_int_t)standing->clock.time_s, "solver", account, "owed_wei", owed,
                     "purse_wei", purse, "segments", (int)record->state.segments, "trained",
                     (json_int_t)standing->trained, "committed", (int)record->state.committed,
                     "final", (int)record->state.finalized, "due", (json_int_t)record->state.due_s,
                     "generation", (int)record->state.generation, "waiting", segments);
}

static enum status count_trained(struct train_result *result, uint64_t *segments,
                                 struct bundle *bundle, struct error *error)
{
    const struct job *job = bundle_job(bundle);
    uint64_t diverged = UINT64_MAX;

    TRY(bundle_step_count(&result->steps, bundle, error));
    TRY(bundle_diverged(&diverged, bundle, error));
    result->diverged = diverged != UINT64_MAX;
    *segments = result->diverged || result->steps == job->steps
                    ? (result->steps + job->segment_length - 1) / job->segment_length
                    : result->steps / job->segment_length;
    return STATUS_OK;
}

static enum status add_standing(struct sheet *sheet, struct command_context *context,
                                struct bundle *bundle, uint64_t trained, struct error *error)
{
    bool all = options_flag(context->options, "all");
    struct session *session = calloc(1, sizeof(*session));
    struct standing standing = {.trained = trained};
    enum status status;

    TRY_OUT(session == NULL ? error_set(error, STATUS_NO_MEMORY, "no memory for a session")
                            : session_open(session, context, bundle, false, error));
    if (!session->has_job) {
        TRY_OUT(session_find_job(session, NULL, context, bundle_job(bundle), NULL, error));
    }
    TRY_OUT(read_standing(&standing, session, error));
    sheet_set(sheet, "ledger", standing_json(session, &standing, all));
    print_standing(sheet, session, &standing, all);
out:
    job_record_free(&standing.record);
    if (session != NULL) {
        session_close(session);
    }
    free(session);
    return status;
}

int ledger_commands_status(struct command_context *context)
{
    struct bundle *bundle = NULL;
    struct train_result result = {0};
    uint64_t trained = 0;
    struct sheet sheet;
    struct error error;
    enum status status;

    error_init(&error);
    sheet_init(&sheet);
    TRY_OUT(bundle_open(&bundle, context->options->arguments[0], BUNDLE_READ, &error));
    TRY_OUT(access_unlock_if_given(bundle, context->options, &error));
    TRY_OUT(count_trained(&result, &trained, bundle, &error));
    TRY_OUT(add_training(&sheet, bundle, &result, &error));
    if (session_wanted(context, bundle)) {
        TRY_OUT(add_standing(&sheet, context, bundle, trained, &error));
    }
out:
    bundle_close(bundle);
    if (status != STATUS_OK) {
        sheet_release(&sheet);
        return command_fail(context, &error);
    }
    return command_show(context, &sheet);
}
