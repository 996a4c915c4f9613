/*
 * plan_commands.c - `lockstep verifier plan`: what to check, how long that takes, what it earns.
 *
 * All of it is advice. Terms that are not given are those of 'lockstep job open', so the plan fits
 * the job that is opened next. Sends and writes nothing.
 */
#include "verifier/commands/plan_commands.h"

#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <string.h>

#include "base/io/strict_json.h"
#include "chain/codec/wei.h"
#include "chain/commands/commands.h"
#include "chain/game/game.h"
#include "chain/game/policy/economy.h"
#include "proofs/job/job_file.h"
#include "proofs/run/data_paths.h"
#include "proofs/run/run.h"
#include "proofs/run/step_time.h"
#include "verifier/status/plan.h"

#define AMOUNT(under, first, option, text)                                                         \
    {                                                                                              \
        .name = (option), .heading = (under), .often = (first), .kind = OPTION_TEXT,               \
        .value = "AMOUNT", .help = (text), .command_line_only = true                               \
    }
/* As 'job open' has them: a segment period; seal, reveal and claim period. */
#define SEGMENT_S 86400.0
#define WAIT_S    (6 * 3600.0)

#define SHARE(under, first, option, preset, text)                                                  \
    {                                                                                              \
        .name = (option), .heading = (under), .often = (first), .kind = OPTION_REAL, .value = "X", \
        .fallback = (preset), .help = (text), .command_line_only = true                            \
    }
#define COUNT(under, first, option, preset, least, most, text)                                     \
    {                                                                                              \
        .name = (option), .heading = (under), .often = (first), .kind = OPTION_INTEGER,            \
        .value = "N", .fallback = (preset), .minimum = (least), .maximum = (most), .help = (text), \
        .command_line_only = true                                                                  \
    }

const struct option_spec plan_command_options[PLAN_COMMAND_OPTIONS] = {
    COUNT("training", true, "segments", NULL, 1, PLAN_SEGMENTS_MAX,
          "segments of the job (default: the file's)"),
    COUNT("training", true, "segment-steps", NULL, 1, UINT32_C(1) << 24,
          "steps of a segment (default: the file's, or 1)"),
    COUNT("check", true, "bad", "1", 1, PLAN_SEGMENTS_MAX, "how many segments hold a false step"),
    SHARE("check", false, "fraction", NULL,
          "the share of segments that hold a false step, instead of --bad"),
    SHARE("check", true, "confidence", "0.99", "the chance wanted of finding at least one of them"),
    SHARE("machine", false, "seconds-per-step", NULL,
          "how long a step takes here (default: measured with --data)"),
    {.name = "measure",
     .heading = "machine",
     .kind = OPTION_REAL,
     .value = "SECONDS",
     .fallback = "3",
     .help = "for how long to time steps of the job",
     .command_line_only = true},
    {.name = "data",
     .heading = "data",
     .often = true,
     .kind = OPTION_LIST,
     .value = "FILE",
     .help = "a data file of the job, to time a step; once for each, in the job's order"},
    PLAN_MACHINE_OPTIONS,
    AMOUNT("policy", true, "price", "what an hour of this machine costs, such as 0.0005eth"),
    AMOUNT(
        "terms", true, "reward",
        "the reward of the whole job, as in 'job open'; without it there is no money in the plan"),
    AMOUNT("terms", true, "stake",
           "what a solver loses when it is convicted (default: the whole reward)"),
    AMOUNT("terms", false, "fee",
           "what a seat earns with a segment (default: 1.3 times --segment-cost)"),
    AMOUNT("terms", false, "gas", "what sealing and revealing a verdict costs"),
    COUNT("terms", true, "seats", "1", 0, GAME_SEATS_MAX,
          "rights that make a covered segment final"),
    COUNT("terms", false, "panel", "12", 1, GAME_PANEL_MAX, "entries in the panel"),
    SHARE("terms", true, "coverage", "0.2", "share of the segments that is covered"),
    SHARE("cheat", false, "partners", "0.3", "share of the panel that colludes or trusts"),
    COUNT("cheat", false, "watchers", "10", 0, 10000000, "nodes that check secret samples"),
    SHARE("policy", false, "extra", "0.1", "the rate at which each of them does"),
    SHARE("cheat", false, "saved", "1", "what a cheat saves of a segment's cost"),
    COUNT("cheat", false, "open-segments", NULL, 1, GAME_OPEN_MAX,
          "segments that are committed and not yet final when a conviction comes (default: by the "
          "periods of 'job open' and the time of a segment, or of a day)"),
    AMOUNT("terms", false, "segment-cost",
           "what it costs to compute a segment (default: its time at --price, or its reward "
           "divided by 1.3)"),
    SHARE("cost", false, "replay", NULL,
          "time of a check over that of training (default: measured with --data, or 1.05)"),
};

/* A check should take at most this much of the time of training; shorter segments get a note. */
#define REPLAY_USUAL 1.05

/* Reward and fee over the cost of computing a segment, as in 'job open'. */
#define COST_COVER 1.3

struct planning {
    const struct options *given;
    const struct log *log;
    uint32_t segments;
    uint32_t bad;
    uint32_t samples;
    double confidence;
    uint64_t segment_steps;
    double seconds_per_step; /* 0: unknown */
    double replay;           /* time of a seat's check, relative to training */
    struct step_time measured;
    struct plan_times times; /* when measured */
    bool has_money;
    double price;    /* of an hour; 0: unknown */
    bool knows_cost; /* of computing a segment; else it is guessed from the reward */
    struct economy economy;
    double partners;
    struct economy_cheat cheat;    /* where verifiers have the data */
    struct economy_cheat withheld; /* where they do not */
};

/* ---- the question --------------------------------------------------------------------- */

static enum status amount_of(double *value, const struct options *given, const char *name,
                             struct error *error)
{
    wei exact;

    TRY(chain_amount(&exact, given, name, error));
    if (options_text(given, name) != NULL) {
        *value = (double)exact;
    }
    return STATUS_OK;
}

static enum status check_shares(const struct options *given, struct error *error)
{
    static const char *const names[] = {"coverage", "partners", "extra", "saved"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (options_real(given, names[i]) > 1.0) {
            return error_set(error, STATUS_USAGE, "--%s is a share, from 0 to 1", names[i]);
        }
    }
    if (options_real(given, "confidence") >= 1.0) {
        return error_set(error, STATUS_USAGE,
                         "--confidence is below 1: only checking everything is certain");
    }
    if (options_given(given, "fraction") &&
        (options_real(given, "fraction") <= 0.0 || options_real(given, "fraction") > 1.0)) {
        return error_set(error, STATUS_USAGE, "--fraction is above 0 and at most 1");
    }
    return STATUS_OK;
}

static enum status take_machine(struct machine_options *machine, const struct planning *plan,
                                struct error *error)
{
    const struct options *given = plan->given;

    TRY(machine_options_default(machine, error));
    machine->thread_count = (int)options_number(given, "threads");
    if (machine->thread_count == 0) {
        machine->thread_count = omp_get_max_threads();
    }
    machine->memory_max = options_number(given, "memory-max");
    machine->device_memory = options_number(given, "device-memory");
    return machine_options_device(machine, options_text(given, "device"), plan->log, error);
}

enum status plan_launch_device(const char *device, struct error *error)
{
    if (device == NULL || strcmp(device, "auto") != 0) {
        return STATUS_OK;
    }
    (void)error_set(error, STATUS_USAGE,
                    "--device auto looks at this machine, and --launch computes "
                    "on another");
    error_advise(error, "say cpu or cuda");
    return error->status;
}

static enum status measure_job(struct planning *plan, const struct job *job, struct error *error)
{
    const char *files[OPTION_LIST_MAX];
    struct machine_options machine;
    struct data_paths paths = {0};
    size_t count = options_list(files, plan->given, "data");
    enum status status;

    TRY(take_machine(&machine, plan, error));
    status = data_paths_of_files(&paths, job->tape, files, count, error);
    if (status == STATUS_OK) {
        status = step_time_measure(&plan->measured, job, (const char *const *)paths.of, paths.count,
                                   &machine, options_real(plan->given, "measure"), error);
    }
    data_paths_close(&paths);
    TRY(status);
    plan->seconds_per_step = plan->measured.seconds + plan->measured.hashing;
    plan->times.step = plan->seconds_per_step;
    plan->times.hash = plan->measured.hashing;
    return STATUS_OK;
}

/* The overhead of a replay over computing the segment. */
static enum status take_replay(struct planning *plan, struct error *error)
{
    plan->replay = REPLAY_USUAL;
    if (options_given(plan->given, "replay")) {
        plan->replay = options_real(plan->given, "replay");
    } else if (plan->measured.steps > 0) {
        plan->replay = plan_replay(&plan->times, (double)plan->segment_steps);
    }
    if (plan->replay < 1.0) {
        return error_set(error, STATUS_USAGE, "--replay is 1 or more: a check runs every step");
    }
    return STATUS_OK;
}

static enum status take_job(struct planning *plan, const char *path, struct error *error)
{
    struct job *job = NULL;
    enum status status;

    TRY_OUT(job_read(&job, path, error));
    if (status != STATUS_OK) {
        return status;
    }
    if (job_segments(job) > PLAN_SEGMENTS_MAX) {
        status = error_set(error, STATUS_REFUSED, "no ledger takes a job of that many segments");
        goto out;
    } else {
        plan->segments = (uint32_t)job_segments(job);
        plan->segment_steps = job->segment_length;
    }
    if (options_list_count(plan->given, "data") > 0 && plan->seconds_per_step == 0.0) {
        TRY_OUT(measure_job(plan, job, error));
    }
out:
    job_free(job);
    return status;
}

static enum status take_size(struct planning *plan, struct error *error)
{
    const struct options *given = plan->given;

    plan->confidence = options_real(given, "confidence");
    plan->bad = (uint32_t)options_number(given, "bad");
    if (options_given(given, "segments")) {
        plan->segments = (uint32_t)options_number(given, "segments");
    }
    if (options_given(given, "segment-steps")) {
        plan->segment_steps = options_number(given, "segment-steps");
    }
    if (plan->segments == 0) {
        (void)error_set(error, STATUS_USAGE, "how many segments does the job have?");
        error_advise(error, "name the job's file, or --segments N");
        return STATUS_USAGE;
    }
    if (options_given(given, "fraction")) {
        double bad = floor(options_real(given, "fraction") * plan->segments + 0.5);

        plan->bad = bad < 1.0 ? 1 : (uint32_t)bad;
    }
    if (plan->bad > plan->segments) {
        return error_set(error, STATUS_USAGE, "--bad: the job has %u segments", plan->segments);
    }
    return STATUS_OK;
}

/* Defaults are those of 'job open'. */
static enum status take_money(struct planning *plan, struct error *error)
{
    const struct options *given = plan->given;
    struct economy *economy = &plan->economy;
    double hours = plan->seconds_per_step * (double)plan->segment_steps / 3600.0;
    double reward = 0.0;

    TRY(amount_of(&reward, given, "reward", error));
    plan->has_money = reward > 0.0;
    economy->segments = plan->segments;
    economy->reward = reward / plan->segments;
    TRY(amount_of(&plan->price, given, "price", error));
    plan->knows_cost = plan->price * hours > 0.0 || options_given(given, "segment-cost");
    economy->cost = plan->price * hours > 0.0 ? hours * plan->price : economy->reward / COST_COVER;
    TRY(amount_of(&economy->cost, given, "segment-cost", error));
    economy->fee = COST_COVER * economy->cost;
    TRY(amount_of(&economy->fee, given, "fee", error));
    economy->stake = reward;
    TRY(amount_of(&economy->stake, given, "stake", error));
    TRY(amount_of(&economy->gas, given, "gas", error));
    economy->overhead = plan->replay - 1.0;
    economy->seats = (double)options_number(given, "seats");
    economy->panel = (double)options_number(given, "panel");
    economy->coverage = economy->seats > 0.0 ? options_real(given, "coverage") : 0.0;
    economy->watchers = (double)options_number(given, "watchers");
    economy->extra = options_real(given, "extra");
    economy->saved = options_real(given, "saved");
    economy->open_segments =
        options_given(given, "open-segments")
            ? (double)options_number(given, "open-segments")
            : economy_open_segments(economy->coverage, hours > 0.0 ? hours * 3600.0 : SEGMENT_S,
                                    WAIT_S, ECONOMY_AHEAD_USUAL);
    plan->partners = options_real(given, "partners");
    return STATUS_OK;
}

static void conclude_plan(struct planning *plan)
{
    plan->samples = plan_samples(plan->segments, plan->bad, plan->confidence);
    economy_cheat(&plan->cheat, &plan->economy, plan->partners, true);
    economy_cheat(&plan->withheld, &plan->economy, plan->partners, false);
}

/* ---- telling --------------------------------------------------------------------------- */

/* Seconds on this machine for so many segments. */
static double replay_seconds(const struct planning *plan, double segments)
{
    return segments * (double)plan->segment_steps * plan->seconds_per_step * plan->replay;
}

static double stream_samples(const struct planning *plan)
{
    return plan_samples_of_stream((double)plan->bad / plan->segments, plan->confidence);
}

/* A rate that every watcher needs, when there are any. */
static double watch_rate(const struct planning *plan)
{
    return plan->economy.watchers > 0.0
               ? plan_rate(plan->bad, plan->economy.watchers, plan->confidence)
               : 1.0;
}

static double job_found(const struct planning *plan)
{
    return plan_found_by_rate(plan->bad, 1.0, plan->cheat.detection);
}

static json_t *cheat_json(const struct planning *plan, const struct economy_cheat *cheat)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:b}", "detection", strict_json_real(cheat->detection),
                     "loss", strict_json_real(cheat->loss), "value", strict_json_real(cheat->value),
                     "advantage", strict_json_real(economy_advantage(cheat, plan->bad)), "pays",
                     cheat->value > 0.0);
}

static json_t *money_json(const struct planning *plan)
{
    const struct economy *economy = &plan->economy;

    return json_pack("{s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
                     "segment_reward", strict_json_real(economy->reward), "segment_cost_is_known",
                     plan->knows_cost, "segment_cost", strict_json_real(economy->cost), "fee",
                     strict_json_real(economy->fee), "stake", strict_json_real(economy->stake),
                     "verifying", strict_json_real(economy_verifying(economy) * economy->segments),
                     "seat_profit", strict_json_real(economy_seat_profit(economy)), "cheat_gain",
                     strict_json_real(plan->cheat.gain), "cheat", cheat_json(plan, &plan->cheat),
                     "cheat_that_hides_data", cheat_json(plan, &plan->withheld), "stake_least",
                     strict_json_real(economy_stake_least(economy, plan->partners)),
                     "coverage_least",
                     strict_json_real(economy_coverage_least(economy, plan->partners)),
                     "watch_least", strict_json_real(economy_watch_least(economy)));
}

static json_t *plan_json(const struct planning *plan)
{
    bool timed = plan->seconds_per_step > 0.0;

    return json_pack(
        "{s:I, s:I, s:I, s:f, s:I, s:o, s:o, s:f, s:f, s:f, s:o, s:o, s:o, s:o, s:f, s:o}",
        "segments", (json_int_t)plan->segments, "segment_steps", (json_int_t)plan->segment_steps,
        "bad", (json_int_t)plan->bad, "confidence", plan->confidence, "samples",
        (json_int_t)plan->samples, "samples_of_a_stream",
        plan->bad == plan->segments ? json_integer(1) : strict_json_real(stream_samples(plan)),
        "samples_found", strict_json_real(plan_found(plan->segments, plan->bad, plan->samples)),
        "watcher_rate", watch_rate(plan), "detection_of_a_segment", plan->cheat.detection,
        "detection_of_the_job", job_found(plan), "seconds_per_step",
        timed ? json_real(plan->seconds_per_step) : json_null(), "seconds_of_samples",
        timed ? json_real(replay_seconds(plan, plan->samples)) : json_null(), "seconds_of_all",
        timed ? json_real(replay_seconds(plan, plan->segments)) : json_null(), "money",
        plan->has_money ? money_json(plan) : json_null(), "replay", plan->replay,
        "segment_steps_least",
        plan->measured.steps > 0 ? json_real(plan_steps_least(&plan->times, REPLAY_USUAL))
                                 : json_null());
}

static void show_time(struct sheet *sheet, const char *what, double seconds)
{
    if (seconds < 600.0) {
        sheet_print(sheet, "%-26s %.3g s\n", what, seconds);
    } else if (seconds < 48.0 * 3600.0) {
        sheet_print(sheet, "%-26s %.3g hours\n", what, seconds / 3600.0);
    } else {
        sheet_print(sheet, "%-26s %.3g days\n", what, seconds / 86400.0);
    }
}

static void show_amount(struct sheet *sheet, const char *what, double value, const char *why)
{
    if (isfinite(value)) {
        sheet_print(sheet, "%-26s %.4g eth%s\n", what, value / (double)WEI_PER_ETHER, why);
    } else {
        sheet_print(sheet, "%-26s none is enough%s\n", what, why);
    }
}

static void show_share(struct sheet *sheet, const char *what, double share, const char *why)
{
    sheet_print(sheet, "%-26s %.4g %%%s\n", what, 100.0 * share, why);
}

static void show_cheat(struct sheet *sheet, const struct planning *plan,
                       const struct economy_cheat *cheat, const char *when)
{
    show_amount(sheet, when, economy_advantage(cheat, plan->bad),
                cheat->value > 0.0 ? " more than honesty: IT PAYS"
                                   : " more than honesty: it does not pay");
}

static void show_money(struct sheet *sheet, const struct planning *plan)
{
    const struct economy *economy = &plan->economy;

    sheet_print(sheet, "\nMoney\n");
    show_amount(sheet, "a segment pays", economy->reward, " to the solver");
    show_amount(sheet, "and costs", economy->cost,
                plan->knows_cost ? ""
                : plan->price > 0.0
                    ? ": a guess; --data or --seconds-per-step gives the time of a step"
                    : ": a guess; --price says what an hour of the machine costs");
    show_amount(sheet, "verifying costs", economy_verifying(economy) * economy->segments,
                " in the whole job");
    show_amount(sheet, "a seat earns", economy_seat_profit(economy), " with a whole replay");
    show_amount(sheet, "a cheat saves", plan->cheat.gain, " in a segment");
    show_amount(sheet, "a conviction takes", plan->cheat.loss, "");
    show_share(sheet, "with partners in", plan->partners, " of the panel:");
    show_cheat(sheet, plan, &plan->cheat, "  cheating brings");
    show_cheat(sheet, plan, &plan->withheld, "  and hiding the data");
    show_amount(sheet, "stake to break even", economy_stake_least(economy, plan->partners), "");
    if (isfinite(economy_coverage_least(economy, plan->partners))) {
        show_share(sheet, "coverage to break even", economy_coverage_least(economy, plan->partners),
                   "");
    }
    show_share(sheet, "unpaid watching pays from", economy_watch_least(economy),
               " of segments cheated");
}

static void show_plan(struct sheet *sheet, const struct planning *plan)
{
    sheet_print(sheet, "Confidence\n%-26s %u of %" PRIu64 " steps, of them bad: %u\n", "segments",
                plan->segments, plan->segment_steps, plan->bad);
    sheet_print(sheet, "%-26s %u segments, for %.6g %%\n", "one node must check", plan->samples,
                100.0 * plan->confidence);
    if (plan->economy.watchers > 0.0) {
        sheet_print(sheet, "%-26s %.4g %% of the segments each\n", "or all watchers",
                    100.0 * watch_rate(plan));
    }
    show_share(sheet, "a bad segment is found", plan->cheat.detection, " of the time");
    show_share(sheet, "a bad job", job_found(plan), "");
    if (plan->measured.steps > 0) {
        sheet_print(sheet, "\nTime on this machine (%u steps timed, apart by %.3g s)\n",
                    plan->measured.steps, plan->measured.spread_s);
    } else if (plan->seconds_per_step > 0.0) {
        sheet_print(sheet, "\nTime\n");
    }
    if (plan->seconds_per_step > 0.0) {
        show_time(sheet, "a step", plan->seconds_per_step);
        sheet_print(sheet, "%-26s %.4g times its training", "a check", plan->replay);
        if (plan->measured.steps > 0) {
            sheet_print(sheet, "; at most %g from segments of %.0f steps on", REPLAY_USUAL,
                        plan_steps_least(&plan->times, REPLAY_USUAL));
        }
        sheet_print(sheet, "\n");
        show_time(sheet, "the samples", replay_seconds(plan, plan->samples));
        show_time(sheet, "every segment", replay_seconds(plan, plan->segments));
        if (plan->price > 0.0) {
            show_amount(sheet, "the samples cost",
                        replay_seconds(plan, plan->samples) / 3600.0 * plan->price, "");
        } else {
            sheet_print(sheet, "%-26s not known: give --price, what an hour of the machine costs\n",
                        "the samples cost");
        }
    }
    if (plan->has_money) {
        show_money(sheet, plan);
    } else {
        sheet_print(sheet, "\nWithout --reward there is no money in the plan.\n");
    }
}

int plan_command(struct command_context *context)
{
    struct planning plan = {.given = context->options, .log = context->log, .segment_steps = 1};
    struct sheet sheet;
    struct error error;
    enum status status;

    error_init(&error);
    TRY_OUT(check_shares(plan.given, &error));
    plan.seconds_per_step = options_real(plan.given, "seconds-per-step");
    if (context->options->argument_count > 0) {
        TRY_OUT(take_job(&plan, context->options->arguments[0], &error));
    }
    TRY_OUT(take_size(&plan, &error));
    TRY_OUT(take_replay(&plan, &error));
    TRY_OUT(take_money(&plan, &error));
out:
    if (status != STATUS_OK) {
        return command_fail(context, &error);
    }
    conclude_plan(&plan);
    sheet_init(&sheet);
    sheet_merge(&sheet, plan_json(&plan));
    show_plan(&sheet, &plan);
    return command_show(context, &sheet);
}
