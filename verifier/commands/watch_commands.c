/* watch_commands.c - `lockstep watch`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hex.h"
#include "base/io/notify.h"
#include "base/io/stop.h"
#include "base/io/strict_json.h"
#include "base/web/ports.h"
#include "chain/commands/commands.h"
#include "chain/job/job_status.h"
#include "proofs/run/run.h"
#include "verifier/commands/commands.h"
#include "verifier/status/board_page.h"

enum {
    SEGMENTS_SHOWN_MAX = 32, /* of one job */
    MOMENT_SIZE = 24,
};

static const struct option_spec watch_options[] = {
    CHAIN_LEDGER_OPTIONS,
    {.name = "once",
     .heading = "ledger",
     .often = true,
     .kind = OPTION_FLAG,
     .help = "look once and end; the exit code is 1 when there is an alarm"},
    {.name = "warn",
     .heading = "ledger",
     .kind = OPTION_DURATION,
     .value = "TIME",
     .fallback = "1h",
     .help = "how long before a deadline its alarm is given; no more than a third of its period"},
    {.name = "poll",
     .heading = "ledger",
     .kind = OPTION_DURATION,
     .value = "TIME",
     .fallback = "10s",
     .minimum = 1,
     .maximum = 86400,
     .help = "how often to look"},
    {.name = "page",
     .heading = "serving",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "ADDRESS:PORT",
     .help = "serve all jobs as a page at /, and /health; with a port alone to this machine only "
             "(default: not at all)"},
    RUN_DEVICE_OPTION("the device that 'prover probe JOB --data FILE' measured, by which the page "
                      "says what an hour would earn"),
};

struct watching {
    struct command_context *context;
    struct stop stop;
    struct notify notify;
    struct ledger *ledger;
    struct board board;
    struct ledger_clock clock;
    struct board_view view;
    struct board_page *page; /* NULL: none is served */
    struct watch_alarm alarms[WATCH_ALARMS_MAX];
    struct watch_alarm before[WATCH_ALARMS_MAX];
    uint32_t alarm_count;
    uint32_t before_count;
};

static void print_moment(char text[MOMENT_SIZE], uint64_t time_s)
{
    time_t moment = (time_t)time_s;
    struct tm parts = {0};

    if (time_s == 0 || gmtime_r(&moment, &parts) == NULL ||
        strftime(text, MOMENT_SIZE, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0) {
        (void)snprintf(text, MOMENT_SIZE, "-");
    }
}

static const char *turn_name(const struct job_record_claim *claim)
{
    return claim->state.deadline_s == 0              ? "nobody"
           : claim->state.turn == GAME_TURN_CLAIMANT ? "claimant"
                                                     : "solver";
}

/* ---- for programs ------------------------------------------------------- */

static json_t *segment_json(const struct job_record *job, uint32_t index, uint64_t now_s)
{
    const struct job_record_segment *segment = &job->segments[index];
    const struct job_reduced_segment *draw = &segment->draw;
    const struct job_segment state = job_record_segment(job, index);

    return json_pack("{s:i, s:s, s:b, s:i, s:i, s:i, s:i, s:b, s:i, s:I}", "segment", (int)index,
                     "waits_for", job_segment_wait_word(job_record_waits_for(job, index, now_s)),
                     "covered", draw->covered, "seats", (int)segment->seated, "rights",
                     (int)draw->rights, "unseen", (int)draw->unseen, "wanted",
                     (int)state.tally.wanted, "vouched", draw->vouched || segment->has_vouch,
                     "open_claims", (int)segment->open_claims, "final_not_before",
                     (json_int_t)job_status_forecast(job, index, now_s));
}

static json_t *job_json(const struct job_record *job, uint64_t now_s)
{
    json_t *segments = json_array();

    for (uint32_t i = job->state.finalized; i < job->state.committed; i++) {
        (void)json_array_append_new(segments, segment_json(job, i, now_s));
    }
    return json_pack("{s:o, s:s, s:i, s:i, s:i, s:I, s:I, s:o}", "job",
                     strict_json_digest(&job->key), "phase", job_status_phase(job), "segments",
                     (int)job->state.segments, "committed", (int)job->state.committed, "final",
                     (int)job->state.finalized, "due",
                     (json_int_t)(job->state.phase == GAME_PHASE_RUNNING ? job->state.due_s : 0),
                     "refused_until", (json_int_t)job->state.refused_until_s, "waiting", segments);
}

static void add_claims(json_t *claims, const struct job_record *job)
{
    for (uint32_t i = 0; i < job->claim_count; i++) {
        const struct job_record_claim *claim = &job->claims[i];

        if (job_record_claim_is_open(claim)) {
            (void)json_array_append_new(
                claims,
                json_pack("{s:o, s:o, s:i, s:i, s:s, s:I}", "claim",
                          strict_json_digest(&claim->key), "job", strict_json_digest(&job->key),
                          "segment", (int)claim->index, "step", (int)claim->step, "turn",
                          turn_name(claim), "until", (json_int_t)claim->state.deadline_s));
        }
    }
}

static json_t *alarm_json(const struct watch_alarm *alarm)
{
    json_t *object =
        json_pack("{s:s, s:o, s:i, s:i, s:I, s:s}", "alarm", watch_alarm_name(alarm->kind), "job",
                  strict_json_digest(&alarm->job), "segment", (int)alarm->index, "last_segment",
                  (int)alarm->last, "due", (json_int_t)alarm->due_s, "text", alarm->text);

    if (object != NULL && !hash32_is_zero(&alarm->claim)) {
        (void)json_object_set_new(object, "claim", strict_json_digest(&alarm->claim));
    }
    return object;
}

static json_t *view_json(const struct watching *watching)
{
    const struct board *board = &watching->board;
    json_t *jobs = json_array();
    json_t *claims = json_array();
    json_t *alarms = json_array();

    for (uint32_t i = 0; i < board->count; i++) {
        if (board->jobs[i].state.phase != GAME_PHASE_CLOSED) {
            (void)json_array_append_new(jobs, job_json(&board->jobs[i], watching->clock.time_s));
        }
        add_claims(claims, &board->jobs[i]);
    }
    for (uint32_t i = 0; i < watching->alarm_count; i++) {
        (void)json_array_append_new(alarms, alarm_json(&watching->alarms[i]));
    }
    return json_pack("{s:I, s:i, s:o, s:o, s:o}", "time", (json_int_t)watching->clock.time_s,
                     "jobs_left_out", (int)board->left_out, "jobs", jobs, "claims", claims,
                     "alarms", alarms);
}

/* ---- for people --------------------------------------------------------- */

static void print_segment(struct sheet *sheet, const struct job_record *job, uint32_t index,
                          uint64_t now_s)
{
    const struct job_record_segment *segment = &job->segments[index];
    uint64_t final_s = job_status_forecast(job, index, now_s);
    char moment[MOMENT_SIZE];

    print_moment(moment, final_s);
    sheet_print(sheet, "  segment %u  %s", index,
                job_segment_wait_word(job_record_waits_for(job, index, now_s)));
    if (segment->draw.covered) {
        const struct job_segment state = job_record_segment(job, index);

        sheet_print(sheet, "  rights %u of %u, unseen %u%s", segment->draw.rights,
                    state.tally.wanted, segment->draw.unseen,
                    segment->draw.vouched || segment->has_vouch ? ", vouched" : "");
    }
    if (segment->open_claims > 0) {
        sheet_print(sheet, "  claims open %u", segment->open_claims);
    }
    if (final_s == 0) {
        sheet_print(sheet, "  final: nobody can say yet\n");
    } else {
        sheet_print(sheet, "  final not before %s\n", moment);
    }
}

static void print_job(struct sheet *sheet, const struct job_record *job, uint64_t now_s)
{
    char key[HEX_SIZE(HASH32_SIZE)];
    char moment[MOMENT_SIZE];
    uint32_t shown = 0;

    hex_encode(key, job->key.bytes, HASH32_SIZE);
    sheet_print(sheet, "job 0x%.16s  %s  committed %u of %u, final %u", key, job_status_phase(job),
                job->state.committed, job->state.segments, job->state.finalized);
    if (job->state.phase == GAME_PHASE_RUNNING && !job->state.ended && job->state.due_s > 0 &&
        job->state.committed < job->state.segments) {
        print_moment(moment, job->state.due_s);
        sheet_print(sheet, "  next due %s", moment);
    }
    sheet_print(sheet, "\n");
    for (uint32_t i = job->state.finalized; i < job->state.committed && shown < SEGMENTS_SHOWN_MAX;
         i++) {
        print_segment(sheet, job, i, now_s);
        shown++;
    }
    if (job->state.finalized + shown < job->state.committed) {
        sheet_print(sheet, "  and %u segments after these\n",
                    job->state.committed - job->state.finalized - shown);
    }
}

static void print_claims(struct sheet *sheet, const struct job_record *job)
{
    for (uint32_t i = 0; i < job->claim_count; i++) {
        const struct job_record_claim *claim = &job->claims[i];
        char key[HEX_SIZE(HASH32_SIZE)];
        char moment[MOMENT_SIZE];

        if (!job_record_claim_is_open(claim)) {
            continue;
        }
        hex_encode(key, claim->key.bytes, HASH32_SIZE);
        print_moment(moment, claim->state.deadline_s);
        sheet_print(sheet, "claim 0x%.16s  segment %u step %u  %s's turn until %s\n", key,
                    claim->index, claim->step, turn_name(claim), moment);
    }
}

static void print_alarm(struct sheet *sheet, const char *word, const struct watch_alarm *alarm)
{
    char key[HEX_SIZE(HASH32_SIZE)];
    char moment[MOMENT_SIZE];

    hex_encode(key, alarm->job.bytes, HASH32_SIZE);
    sheet_print(sheet, "%s %s  job 0x%.16s segment%s %u", word, watch_alarm_name(alarm->kind), key,
                alarm->last == alarm->index ? "" : "s", alarm->index);
    if (alarm->last != alarm->index) {
        sheet_print(sheet, " to %u", alarm->last);
    }
    sheet_print(sheet, ": %s", alarm->text);
    if (alarm->due_s != 0) {
        print_moment(moment, alarm->due_s);
        sheet_print(sheet, "; until %s", moment);
    }
    sheet_print(sheet, "\n");
}

static void print_view(struct sheet *sheet, const struct watching *watching)
{
    const struct board *board = &watching->board;

    for (uint32_t i = 0; i < board->count; i++) {
        if (board->jobs[i].state.phase != GAME_PHASE_CLOSED) {
            print_job(sheet, &board->jobs[i], watching->clock.time_s);
        }
    }
    for (uint32_t i = 0; i < board->count; i++) {
        print_claims(sheet, &board->jobs[i]);
    }
    if (board->left_out > 0) {
        sheet_print(sheet, "%u more jobs are not watched: %d is the most\n", board->left_out,
                    WATCH_JOBS_MAX);
    }
    for (uint32_t i = 0; i < watching->alarm_count; i++) {
        print_alarm(sheet, "ALARM", &watching->alarms[i]);
    }
    if (watching->alarm_count == 0) {
        sheet_print(sheet, "no alarms\n");
    }
}

/* ---- looking ------------------------------------------------------------ */

static enum status read_events(struct watching *watching, struct error *error)
{
    TRY(board_follow(&watching->board, watching->ledger, error));
    memcpy(watching->before, watching->alarms, sizeof(watching->before));
    watching->before_count = watching->alarm_count;
    watching->alarm_count = watch_alarms(watching->alarms, &watching->board, watching->clock.time_s,
                                         options_number(watching->context->options, "warn"));
    watching->view.alarm_count = watching->alarm_count;
    watching->view.clock = watching->clock;
    watching->view.followed_s = (uint64_t)time(NULL);
    return STATUS_OK;
}

/* What waits for endpoints does not hold the page up. */
static enum status look_at_ledger(struct watching *watching, struct error *error)
{
    enum status status;

    TRY(ledger_catch_up(watching->ledger, error));
    TRY(ledger_get_clock(watching->ledger, &watching->clock, error));
    (void)pthread_mutex_lock(&watching->view.lock);
    status = read_events(watching, error);
    (void)pthread_mutex_unlock(&watching->view.lock);
    return status;
}

static bool has_alarm(const struct watch_alarm *alarms, uint32_t count,
                      const struct watch_alarm *alarm)
{
    for (uint32_t i = 0; i < count; i++) {
        if (alarms[i].kind == alarm->kind && alarms[i].index <= alarm->last &&
            alarm->index <= alarms[i].last && hash32_equal(&alarms[i].job, &alarm->job) &&
            hash32_equal(&alarms[i].claim, &alarm->claim) &&
            strcmp(alarms[i].text, alarm->text) == 0) {
            return true;
        }
    }
    return false;
}

static void print_change(const struct watching *watching, bool begins,
                         const struct watch_alarm *alarm)
{
    struct sheet sheet;

    sheet_init(&sheet);
    sheet_merge(&sheet, alarm_json(alarm));
    sheet_set(&sheet, "event", json_string(begins ? "alarm" : "over"));
    sheet_set(&sheet, "time", json_integer((json_int_t)watching->clock.time_s));
    print_alarm(&sheet, begins ? "ALARM" : "over", alarm);
    (void)command_show(watching->context, &sheet);
}

static void tell_changes(const struct watching *watching)
{
    for (uint32_t i = 0; i < watching->alarm_count; i++) {
        if (!has_alarm(watching->before, watching->before_count, &watching->alarms[i])) {
            print_change(watching, true, &watching->alarms[i]);
        }
    }
    for (uint32_t i = 0; i < watching->before_count; i++) {
        if (!has_alarm(watching->alarms, watching->alarm_count, &watching->before[i])) {
            print_change(watching, false, &watching->before[i]);
        }
    }
    (void)fflush(watching->context->out);
}

/* A ledger that does not answer is reported once and waited for: the watch goes on. */
static enum status follow_ledger(struct watching *watching, struct error *error)
{
    double interval_s = (double)options_number(watching->context->options, "poll");
    bool unreachable = false;
    bool looked = false; /* the first look is reported, so that silence does not seem a hang */

    for (;;) {
        enum status status = look_at_ledger(watching, error);

        if (status == STATUS_UNREACHABLE) {
            if (!unreachable) {
                log_warn(watching->context->log, "watch", "%s", error->text);
            }
            unreachable = true;
        } else if (status != STATUS_OK) {
            return status == STATUS_STOPPED ? STATUS_OK : status;
        } else {
            if (!looked) {
                log_info(
                    watching->context->log, "watch",
                    "jobs followed: %u, alarms now: %u; each is printed when it begins and when "
                    "it ends",
                    watching->board.count, watching->alarm_count);
            }
            looked = true;
            unreachable = false;
            tell_changes(watching);
        }
        notify_alive(&watching->notify);
        if (stop_wait(&watching->stop, interval_s)) {
            return STATUS_OK;
        }
    }
}

static enum status open_ledger(struct watching *watching, struct error *error)
{
    struct ledger_options options;
    char state_dir[FILE_PATH_MAX];
    enum status status = chain_ledger_options(&options, state_dir, watching->context, NULL, error);

    options.stopped = stop_called_back;
    options.context = &watching->stop;
    return status == STATUS_OK ? ledger_open(&watching->ledger, &options, error) : status;
}

static enum status open_page(struct watching *watching, struct error *error)
{
    const char *text = options_text(watching->context->options, "page");
    char url[WEB_SERVER_URL_MAX];
    struct listen_place place;

    if (text == NULL) {
        return STATUS_OK;
    }
    TRY(listen_place_read(&place, text, error));
    TRY(board_page_open(&watching->page, &watching->view, &place, error));
    board_page_url(url, watching->page, &place);
    log_info(watching->context->log, "watch", "all jobs at %s", url);
    return STATUS_OK;
}

static int watch_until_stopped(struct watching *watching)
{
    struct command_context *context = watching->context;
    bool once = options_flag(context->options, "once");
    struct sheet sheet;
    int code;
    struct error error;
    enum status status;

    error_init(&error);
    status = open_ledger(watching, &error);
    if (status == STATUS_OK && once) {
        status = look_at_ledger(watching, &error);
    } else if (status == STATUS_OK) {
        status = open_page(watching, &error);
        if (status == STATUS_OK) {
            notify_ready(&watching->notify, "watching");
            status = follow_ledger(watching, &error);
        }
        board_page_close(watching->page);
    }
    ledger_close(watching->ledger);
    if (status != STATUS_OK) {
        return command_fail(context, &error);
    }
    if (!once) {
        return COMMAND_OK;
    }
    sheet_init(&sheet);
    sheet_merge(&sheet, view_json(watching));
    print_view(&sheet, watching);
    code = command_show(context, &sheet);
    return code == COMMAND_OK && watching->alarm_count > 0 ? COMMAND_REFUSED : code;
}

static int run_watch(struct command_context *context)
{
    struct watching *watching = calloc(1, sizeof(*watching));
    struct error error;
    int code;

    error_init(&error);
    if (watching == NULL) {
        (void)error_set(&error, STATUS_NO_MEMORY, "no memory to watch");
        return command_fail(context, &error);
    }
    watching->context = context;
    watching->view = (struct board_view){.lock = PTHREAD_MUTEX_INITIALIZER,
                                         .board = &watching->board,
                                         .alarms = watching->alarms,
                                         .device = options_text(context->options, "device")};
    notify_open(&watching->notify);
    if (stop_open(&watching->stop, &error) == STATUS_OK) {
        watching->board = (struct board){.most = WATCH_JOBS_MAX};
        code = watch_until_stopped(watching);
        board_release(&watching->board);
        stop_close(&watching->stop);
    } else {
        code = command_fail(context, &error);
    }
    notify_close(&watching->notify);
    free(watching);
    return code;
}

static const struct command commands[] = {
    {.name = "watch",
     .summary = "follow all jobs of a ledger, and give alarms",
     .description =
         "Reads the ledger and nothing else; no key is needed, and nothing is replayed. Shows what "
         "each segment waits for and when it can be final, whose turn it is in each dispute, and "
         "gives alarms: deadlines that are near or over, verdicts that are missing, segments whose "
         "states the panel cannot get, claims. Without --once it goes on and prints each alarm "
         "when "
         "it begins and when it ends, with --json as one object on each line.",
     .example = "lockstep watch --ledger local:try.ledger --once\n"
                "lockstep watch --json --warn 6h\n"
                "lockstep watch --page " PORT_WATCH_PAGE " --ledger local:try.ledger",
     .options = watch_options,
     .option_count = sizeof(watch_options) / sizeof(watch_options[0]),
     .run = run_watch},
};

const struct command_group watch_commands = {
    .commands = commands,
    .command_count = sizeof(commands) / sizeof(commands[0]),
};
