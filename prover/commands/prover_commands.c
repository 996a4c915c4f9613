/*
 * prover_commands.c - `lockstep prover run` and `resume`, with or without a ledger.
 *
 * The order of things: what can be refused without cost comes first (the job file, the machine, the
 * terms on the ledger, the data), then the bundle, then the stake, then the first step.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/io/file.h"
#include "base/io/listen.h"
#include "base/io/log.h"
#include "base/web/ports.h"
#include "chain/commands/job_source.h"
#include "proofs/job/first_state.h"
#include "proofs/job/job_facts.h"
#include "proofs/job/job_file.h"
#include "prover/commands/access.h"
#include "prover/commands/attempt.h"
#include "prover/commands/commands.h"
#include "prover/commands/ledger_commands.h"
#include "prover/commands/node_commands.h"
#include "prover/commands/probe_commands.h"
#include "prover/commands/run_by_key.h"
#include "prover/commands/serve_commands.h"
#include "prover/train/requirements.h"

static const struct option_spec run_options[] = {
    {.name = "bundle",
     .heading = "keeping",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "FOLDER",
     .help = "where to keep the run (default: the job's name with .run)"},
    JOB_SOURCE_OPTIONS,
    {.name = "encrypt",
     .heading = "keeping",
     .kind = OPTION_FLAG,
     .help = "encrypt checkpoints, losses and times under a key (made in --bundle-key FILE where "
             "there is "
             "none) or a passphrase",
     .command_line_only = true},
    {.name = "stop-above",
     .heading = "training",
     .kind = OPTION_REAL,
     .value = "LOSS",
     .help = "end a local run where held-out data has a greater loss than this; not on a ledger",
     .command_line_only = true},
    {.name = "patience",
     .heading = "training",
     .kind = OPTION_INTEGER,
     .value = "N",
     .minimum = 1,
     .maximum = STOP_PATIENCE_MAX,
     .help =
         "end a local run after N looks at held-out data in a row without a new least loss; not "
         "on a ledger",
     .command_line_only = true},
    {.name = "first-state",
     .heading = "model",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .help = "the first state of a job that does not draw it: a .safetensors, or a folder of "
             "Hugging Face"},
    ACCESS_RUN_OPTIONS,
    {.name = "recompute",
     .heading = "machine",
     .kind = OPTION_FLAG,
     .help = "forget activations and make them again: less memory, more time, the same bits"},
    {.name = "hoist",
     .heading = "machine",
     .kind = OPTION_FLAG,
     .help = "compute only once what all micro-batches of a step share, and what follows from "
             "frozen weights alone: more memory, less time, the same bits"},
    RANKS_OPTIONS,
    SERVE_BESIDE_OPTION,
    JOB_PAGE_OPTION,
    {.name = "keep",
     .heading = "keeping",
     .often = true,
     .kind = OPTION_INTEGER,
     .value = "N",
     .help = "how many of the newest checkpoints to keep; 0: all; on a ledger those of segments "
             "that are "
             "not final stay too (default: all that fit 16 GiB, and three at least)"},
    {.name = "keep-every",
     .heading = "keeping",
     .kind = OPTION_INTEGER,
     .value = "N",
     .fallback = "0",
     .help = "with --keep: keep also the checkpoint of every N-th segment"},
    {.name = "offline",
     .heading = "ledger",
     .kind = OPTION_FLAG,
     .help = "take no notice of a ledger; 'lockstep prover commit' posts later",
     .command_line_only = true},
    {.name = "until",
     .heading = "ledger",
     .kind = OPTION_CHOICE,
     .value = "STAGE",
     .choices = "committed|collected",
     .fallback = "collected",
     .help = "on a ledger, stay until all is committed, or until all is final and paid"},
    {.name = "again",
     .heading = "ledger",
     .kind = OPTION_FLAG,
     .help = "take a job again that was lost by a conviction or by being late",
     .command_line_only = true},
    {.name = "falsify",
     .heading = "trials",
     .kind = OPTION_INTEGER,
     .value = "STEP",
     .help = "inject a fault of one ulp into the state after this step, to test the verifiers of a "
             "job of your own. It costs the stake",
     .command_line_only = true},
    {.name = "ignore-requirements",
     .heading = "machine",
     .kind = OPTION_FLAG,
     .help = "take a job that requires a better machine than this",
     .command_line_only = true},
    SESSION_LEDGER_OPTIONS,
    SESSION_WALLET_OPTIONS,
    ACCESS_KEY_OPTIONS,
    POLICY_OPTIONS,
    POLICY_SOLVER_OPTIONS,
    SESSION_ACCEPT_OPTIONS,
};
#define RUN_OPTION_COUNT (sizeof(run_options) / sizeof(run_options[0]))
/* Options that only a new bundle has stand first. */
#define NEW_OPTION_COUNT (4 + 2)

enum {
    LOCK_LOOKS = 20,
    LOCK_LOOK_MS = 50,
};

/* ---- running ------------------------------------------------------------ */

/* Where others call the server that runs beside; NULL: nobody can. */
static const char *contact_of(const struct command_context *context,
                              const struct serve_beside *beside)
{
    if (serve_beside_can_be_called(beside)) {
        return serve_beside_url(beside);
    }
    log_warn(context->log, "serve", "nobody can call %s: name this machine with --contact",
             serve_beside_url(beside));
    return NULL;
}

/* Stakes before the first step: work for a job that another solver takes would be lost. */
static enum status begin_attempt(struct command_context *context, struct attempt *attempt,
                                 uint64_t step_ns, struct error *error)
{
    struct session *session = &attempt->session;
    struct bundle *bundle = attempt->bundle;
    struct session_plan plan = {.accept = true,
                                .again = options_flag(context->options, "again"),
                                .collect = true,
                                .sign = true,
                                .keep = attempt_keep_signature,
                                .keep_context = attempt};
    struct solver_view view;
    uint64_t steps = 0;
    enum status status;

    TRY(session_accept_options(&plan, context->options, error));
    if (plan.contact == NULL && attempt->beside != NULL) {
        plan.contact = contact_of(context, attempt->beside);
    }
    TRY(policy_options_solver(&plan.policy.limits, context->options, error));
    TRY(access_respond(&plan.respond, bundle, &attempt->machine, context->options, error));
    TRY(bundle_step_count(&steps, bundle, error));
    if (steps == 0) {
        solver_policy_set_pace(&plan.policy, bundle_job(bundle), step_ns);
    } else {
        TRY(solver_policy_read_pace(&plan.policy, bundle, error));
    }
    TRY(session_start(session, bundle, &plan, context->log, error));
    if (steps > 0) {
        return STATUS_OK; /* a run that has begun does not wait for the ledger */
    }
    session->outlasts_outages = !options_given(context->options, "timeout");
    status = session_wait(session, &view, session_is_begun, &attempt->stop,
                          options_number(context->options, "timeout"),
                          isatty(STDERR_FILENO) == 1 ? stderr : NULL, error);
    if (status != STATUS_OK) {
        error_wrap(error, "before the first step");
    }
    return status;
}

/* Stays until the ledger needs nothing more of the solver. */
static enum status see_through(struct command_context *context, struct session *session,
                               struct stop *stop, struct error *error)
{
    bool collected = strcmp(options_text(context->options, "until"), "collected") == 0;
    struct solver_view view;
    enum status status =
        session_wait(session, &view, collected ? session_is_collected : session_is_committed, stop,
                     0, stderr, error);

    if (status == STATUS_STOPPED) {
        error_advise(error, "'lockstep prover resume' goes on with the ledger, and 'lockstep "
                            "bundle status' says what it waits for");
    }
    return status;
}

static enum status train_and_post(struct train_result *result, struct attempt *attempt,
                                  struct command_context *context, struct error *error)
{
    struct session *session = attempt->with_ledger ? &attempt->session : NULL;
    uint64_t step_ns = 0;

    TRY(attempt_begin(&step_ns, attempt, context, error));
    TRY(serve_beside_open(&attempt->beside, context, attempt->bundle, &attempt->machine, error));
    if (attempt->beside != NULL) {
        log_info(context->log, "serve", "serving at %s", serve_beside_url(attempt->beside));
    }
    notify_ready(&attempt->notify, "running");
    if (session != NULL) {
        session->notify = &attempt->notify;
        TRY(begin_attempt(context, attempt, step_ns, error));
    }
    TRY(run_sight_open(&attempt->sight, context, attempt->bundle,
                       session == NULL ? NULL : session->poster, error));
    TRY(attempt_train(result, attempt, context, error));
    if (session == NULL) {
        return STATUS_OK;
    }
    TRY(bundle_open(&attempt->held, bundle_path(attempt->bundle), BUNDLE_WRITE, error));
    return see_through(context, session, &attempt->stop, error);
}

/* A run that diverged is a result, which may be paid; the exit code says that it did. */
static int run_bundle(struct attempt *attempt, struct command_context *context, struct error *error)
{
    struct train_result result = {0};
    enum status status = train_and_post(&result, attempt, context, error);
    int code;

    notify_stopping(&attempt->notify);
    code = status == STATUS_OK
               ? ledger_commands_report(context, attempt->bundle,
                                        attempt->with_ledger ? &attempt->session : NULL, &result,
                                        error)
               : command_fail(context, error);
    return code == COMMAND_OK && result.diverged ? COMMAND_DIVERGED : code;
}

static bool has_ledger(const struct command_context *context, struct bundle *bundle)
{
    return !options_flag(context->options, "offline") && session_wanted(context, bundle);
}

/* The rule that the options give; refused on a ledger, and for a job without held-out figures. */
static enum status read_rule(struct stop_rule *rule, const struct command_context *context,
                             const struct job *job, struct error *error)
{
    const struct options *options = context->options;
    struct held_out held_out;

    *rule = STOP_RULE_NONE;
    if (options_given(options, "stop-above")) {
        const float above = (float)options_real(options, "stop-above");

        if (!(isfinite(above) && above > 0.0f)) {
            return error_set(error, STATUS_USAGE, "--stop-above %g: a loss is above 0",
                             (double)above);
        }
        memcpy(&rule->above_bits, &above, sizeof(above));
    }
    rule->patience =
        options_given(options, "patience") ? (uint32_t)options_number(options, "patience") : 0;
    if (stop_rule_is_none(rule)) {
        return STATUS_OK;
    }
    if (has_ledger(context, NULL)) {
        return stop_rule_refuse_ledger(error);
    }
    held_out_of(&held_out, job);
    return held_out.loss == TENSOR_NONE ? stop_rule_refuse_job(error) : STATUS_OK;
}

/* Where a ledger is named, finds it and unlocks the account. */
static enum status open_session(struct session *session, bool *with_ledger,
                                struct command_context *context, struct bundle *bundle,
                                struct error *error)
{
    *with_ledger = has_ledger(context, bundle);
    return *with_ledger ? session_open(session, context, bundle, true, error) : STATUS_OK;
}

/* Refuses a job that is too large for this machine before anything is allocated. */
static enum status check_machine(struct command_context *context, const struct job *job,
                                 const struct machine_options *machine, const char *folder,
                                 bool ignore_requirements, struct error *error)
{
    struct requirements found;

    return requirements_check(&found, job, machine, folder, attempt_keep(context, job),
                              options_number(context->options, "keep-every"), ignore_requirements,
                              error);
}

/* Compares the file of --first-state with the job, before there is a bundle or a stake. */
static enum status check_first_state(struct command_context *context, const struct job *job,
                                     struct error *error)
{
    const char *path = options_text(context->options, "first-state");
    struct first_state first = {0};
    struct digest root;
    enum status status;

    if (path == NULL && job->first_state_given) {
        (void)error_set(error, STATUS_USAGE,
                        "the job's first state is given as a file, and no file is named");
        error_advise(error, "name it with --first-state");
        return STATUS_USAGE;
    }
    if (path == NULL) {
        return STATUS_OK;
    }
    if (!job->first_state_given) {
        return error_set(error, STATUS_USAGE,
                         "--first-state: the job draws its first state; none can be given");
    }
    TRY_OUT(first_state_open(&first, job->tape, path, error));
    TRY_OUT(first_state_root(&root, &first, error));
    TRY_OUT(digest_equal(&root, &job->first_state_root)
                ? STATUS_OK
                : error_set(error, STATUS_REFUSED, "%s is not the first state of the job", path));
out:
    first_state_close(&first);
    return status;
}

/* A run that has no step yet, and got no first state, must not stake. */
static enum status require_first_state(struct command_context *context, struct bundle *bundle,
                                       struct error *error)
{
    uint64_t steps = 0;
    uint64_t found = 0;
    enum status status;

    TRY(bundle_step_count(&steps, bundle, error));
    if (steps > 0 || !bundle_job(bundle)->first_state_given) {
        return STATUS_OK;
    }
    status = bundle_checkpoint_find(&found, bundle, 0, error);
    if (status == STATUS_NOT_FOUND || (status == STATUS_OK && found > 0)) {
        error_init(error);
        return check_first_state(context, bundle_job(bundle), error);
    }
    return status;
}

/* Takes job. */
static enum status create_bundle(struct bundle **bundle, struct command_context *context,
                                 const char *folder, struct job *job, struct error *error)
{
    struct access_encryption encryption;
    enum status status;

    if (!options_flag(context->options, "encrypt")) {
        return bundle_create(bundle, folder, job, error);
    }
    status = access_encryption_make(&encryption, context->options, error);
    if (status != STATUS_OK) {
        job_free(job);
    } else {
        status = bundle_create_encrypted(bundle, folder, job, &encryption.key,
                                         encryption.has_lock ? encryption.lock : NULL, error);
    }
    access_encryption_wipe(&encryption);
    return status;
}

/* "text.job" gives "text.run". */
static enum status default_folder(char *folder, const char *job_path, struct error *error)
{
    size_t length = strlen(job_path);

    length -= length > 4 && strcmp(job_path + length - 4, ".job") == 0 ? 4 : 0;
    if (length + 5 > FILE_PATH_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "the path of the job is too long");
    }
    (void)snprintf(folder, FILE_PATH_MAX, "%.*s.run", (int)length, job_path);
    return STATUS_OK;
}

static enum status start_attempt(struct attempt *attempt, struct command_context *context,
                                 struct error *error)
{
    const char *serve = options_text(context->options, "serve");
    struct listen_place place;

    if (serve != NULL) {
        TRY(listen_place_read(&place, serve, error));
    }
    notify_open(&attempt->notify);
    TRY(stop_open(&attempt->stop, error));
    TRY(access_machine(&attempt->machine, context, error));
    attempt->machine.recompute = options_flag(context->options, "recompute");
    attempt->machine.hoist = options_flag(context->options, "hoist");
    return ranks_launch_read(&attempt->launch, &attempt->machine, context->options, error);
}

static bool is_other_rank(const struct attempt *attempt)
{
    return attempt->launch.place.rank > 0;
}

static int end_attempt(struct attempt *attempt, struct command_context *context, enum status status,
                       struct error *error)
{
    int code = COMMAND_OK;

    if (status != STATUS_OK) {
        code = command_fail(context, error);
    } else if (!is_other_rank(attempt)) {
        code = run_bundle(attempt, context, error);
    }

    run_sight_close(attempt->sight);
    session_close(&attempt->session);
    trainer_close(attempt->trainer);
    ranks_launch_end(&attempt->launch);
    serve_beside_close(attempt->beside);
    data_paths_close(&attempt->data);
    stop_close(&attempt->stop);
    notify_close(&attempt->notify);
    job_free(attempt->job);
    bundle_close(attempt->held);
    bundle_close(attempt->bundle);
    return code;
}

/* Of a rank that is not rank 0: it has job, data and machine, and no bundle and no ledger. */
static enum status follow_ranks(struct attempt *attempt, struct command_context *context,
                                const char *folder, const struct job *job, struct bundle *bundle,
                                struct error *error)
{
    TRY(access_data(&attempt->data, job, bundle, context->options, error));
    return ranks_launch_follow(&attempt->launch, folder, job, &attempt->data, &attempt->machine,
                               error);
}

/* Everything that can fail comes before the bundle is made: a mistake leaves none behind. */
static int run_job(struct command_context *context)
{
    const char *job_path = context->options->arguments[0];
    const char *given = options_text(context->options, "bundle");
    struct attempt attempt = ATTEMPT_NONE;
    struct ledger_retry retry;
    struct policy policy;
    char folder[FILE_PATH_MAX];
    struct error error;
    enum status status;

    error_init(&error);
    if (given == NULL) {
        TRY_OUT(default_folder(folder, job_path, &error));
        given = folder;
    }
    TRY_OUT(job_read(&attempt.job, job_path, &error));
    TRY_OUT(start_attempt(&attempt, context, &error));
    TRY_OUT(
        ranks_launch_check(&attempt.launch, attempt.job, &attempt.machine, context->log, &error));
    if (is_other_rank(&attempt)) {
        TRY_OUT(follow_ranks(&attempt, context, given, attempt.job, NULL, &error));
        goto out;
    }
    TRY_OUT(check_machine(context, attempt.job, &attempt.machine, given,
                          options_flag(context->options, "ignore-requirements"), &error));
    TRY_OUT(check_first_state(context, attempt.job, &error));
    TRY_OUT(read_rule(&attempt.rule, context, attempt.job, &error));
    TRY_OUT(policy_options_solver(&policy, context->options, &error));
    TRY_OUT(session_check_readable(
        options_flag(context->options, "encrypt") && has_ledger(context, NULL), &error));
    TRY_OUT(open_session(&attempt.session, &attempt.with_ledger, context, NULL, &error));
    if (attempt.with_ledger) {
        retry = session_retry(context, &attempt.stop, &attempt.notify);
        TRY_OUT(session_find_job(&attempt.session, NULL, context, attempt.job, &retry, &error));
        TRY_OUT(session_check_purse(&attempt.session, true, &error));
    }
    TRY_OUT(access_data(&attempt.data, attempt.job, NULL, context->options, &error));
    status = create_bundle(&attempt.bundle, context, given, attempt.job, &error);
    attempt.job = NULL;
    attempt.is_new = status == STATUS_OK;
out:
    return end_attempt(&attempt, context, status, &error);
}

/* Of a job file; or of a key, whose files are fetched. */
static int run_run(struct command_context *context)
{
    if (run_by_key_wanted(context) && options_given(context->options, "ranks")) {
        return command_usage(context, "--ranks takes a job file: 'lockstep job fetch' gets it");
    }
    return run_by_key_wanted(context) ? run_by_key(context, run_job, UINT64_MAX, true)
                                      : run_job(context);
}

/* A run that knows its job goes on without the ledger; one that has begun, without money too. */
static enum status find_again(struct attempt *attempt, struct command_context *context,
                              struct error *error)
{
    struct ledger_retry retry = session_retry(context, &attempt->stop, &attempt->notify);
    uint64_t steps = 0;

    TRY(open_session(&attempt->session, &attempt->with_ledger, context, attempt->bundle, error));
    if (!attempt->with_ledger) {
        return STATUS_OK;
    }
    if (!attempt->session.has_job) {
        TRY(session_check_readable(bundle_is_encrypted(attempt->bundle), error));
        TRY(session_find_job(&attempt->session, NULL, context, bundle_job(attempt->bundle), &retry,
                             error));
    }
    TRY(bundle_step_count(&steps, attempt->bundle, error));
    return steps > 0 ? STATUS_OK : session_check_purse(&attempt->session, true, error);
}

/* What a killed command had for training is gone a moment later. */
static enum status open_bundle(struct bundle **bundle, const char *folder, struct error *error)
{
    enum status status = bundle_open(bundle, folder, BUNDLE_WRITE, error);

    for (int i = 0; i < LOCK_LOOKS && status == STATUS_REFUSED; i++) {
        (void)usleep(LOCK_LOOK_MS * 1000);
        error_init(error);
        status = bundle_open(bundle, folder, BUNDLE_WRITE, error);
    }
    return status;
}

static int run_resume(struct command_context *context)
{
    const char *folder = context->options->arguments[0];
    struct attempt attempt = ATTEMPT_NONE;
    struct error error;
    enum status status;

    error_init(&error);
    TRY_OUT(ranks_launch_read(&attempt.launch, &attempt.machine, context->options, &error));
    if (is_other_rank(&attempt)) {
        TRY_OUT(start_attempt(&attempt, context, &error));
        TRY_OUT(bundle_open(&attempt.bundle, folder, BUNDLE_READ, &error));
        TRY_OUT(follow_ranks(&attempt, context, folder, bundle_job(attempt.bundle), attempt.bundle,
                             &error));
        goto out;
    }
    TRY_OUT(open_bundle(&attempt.bundle, folder, &error));
    TRY_OUT(access_unlock(attempt.bundle, context->options, &error));
    TRY_OUT(start_attempt(&attempt, context, &error));
    TRY_OUT(ranks_launch_check(&attempt.launch, bundle_job(attempt.bundle), &attempt.machine,
                               context->log, &error));
    TRY_OUT(
        check_machine(context, bundle_job(attempt.bundle), &attempt.machine, folder, true, &error));
    TRY_OUT(require_first_state(context, attempt.bundle, &error));
    TRY_OUT(find_again(&attempt, context, &error));
    TRY_OUT(access_data(&attempt.data, bundle_job(attempt.bundle), attempt.bundle, context->options,
                        &error));
out:
    return end_attempt(&attempt, context, status, &error);
}

/* ---- the table ---------------------------------------------------------- */

static const struct command commands[] = {
    {.name = "run",
     .summary = "train a job into a new bundle",
     .description = "Trains, hashes the state after every step into the bundle's journal and keeps "
                    "a checkpoint at the end of every segment. Ctrl-C stops cleanly after the "
                    "step; 'lockstep prover resume' goes on to the same bits. Where a ledger is "
                    "named, it accepts the job with its stake, commits each segment while the next "
                    "is trained, and stays until everything is final and paid. Verifiers must be "
                    "able to fetch what it committed to, or the job is voided: --serve does that "
                    "from here, 'lockstep prover publish' by any web server. With the key of a job "
                    "in place of its file, job file and data are fetched: from the addresses that "
                    "the ledger's events give, and from --mirror.",
     .arguments = "JOB",
     .example = "lockstep prover run text.job --data text.u8\n"
                "lockstep prover run text.job --data text.u8 --ledger local:try.ledger "
                "--serve 127.0.0.1:" PORT_SOLVER_BUNDLES "\n"
                "lockstep prover run 0x51dc0a7f --ledger local:try.ledger --serve "
                "127.0.0.1:" PORT_SOLVER_BUNDLES "\n"
                "lockstep prover run text.job --data text.u8 --encrypt --bundle-key text.key",
     .options = run_options,
     .option_count = RUN_OPTION_COUNT,
     .run = run_run},
    {.name = "resume",
     .summary = "go on with a run that stopped or crashed",
     .arguments = "BUNDLE",
     .example = "lockstep prover resume text.run",
     .options = run_options + NEW_OPTION_COUNT,
     .option_count = RUN_OPTION_COUNT - NEW_OPTION_COUNT,
     .run = run_resume},
    {.name = "node",
     .summary = "take jobs from the ledger by a policy, train them, and be paid",
     .description =
         "Follows the ledger and looks at every open job; job files and data that are not here are "
         "fetched from where the client serves them. "
         "Those that its policy does not refuse are measured on this machine; of these it takes "
         "the one that earns most an hour, trains and commits it, answers claims, collects, and "
         "goes to the next. A device trains one job at a time and is locked against other runs of "
         "this machine. What it has begun goes on after a stop, a crash or a kill. 'lockstep "
         "prover "
         "status' shows what it does and why it refuses a job.",
     .example = "lockstep prover node --hour-min 0.0005eth\n"
                "lockstep prover node --jobs jobs --data text.u8 --slot cuda:0 --slot cuda:1 "
                "--price 0.0004eth --serve 0.0.0.0:" PORT_SOLVER_BUNDLES,
     .options = node_commands_node_options,
     .option_count = NODE_COMMANDS_NODE_OPTIONS,
     .run = node_commands_node},
    {.name = "status",
     .summary = "show what the node of this machine trains, waits for and refuses",
     .description = "Reads what 'lockstep prover node' wrote last, whether the node runs or not. "
                    "'lockstep bundle status' says how far one bundle is.",
     .example = "lockstep prover status",
     .options = node_commands_status_options,
     .option_count = NODE_COMMANDS_STATUS_OPTIONS,
     .run = node_commands_status},
    {.name = "commit",
     .summary = "post to the ledger what a bundle holds, without training",
     .description = "Accepts the job where it is open, commits every segment that is trained, and "
                    "ends when all commits are in final blocks. Posts what 'run --offline' made.",
     .arguments = "BUNDLE",
     .example = "lockstep prover commit text.run --ledger local:try.ledger",
     .options = ledger_commands_post_options,
     .option_count = LEDGER_COMMANDS_POST_OPTIONS - 1,
     .run = ledger_commands_commit},
    {.name = "collect",
     .summary = "make final what is due, and withdraw what is owed",
     .description = "Does what can be done now and ends; with --wait it stays until the job is "
                    "closed and everything is paid.",
     .arguments = "BUNDLE",
     .example = "lockstep prover collect text.run",
     .options = ledger_commands_post_options + LEDGER_COMMANDS_COMMIT_ONLY,
     .option_count = LEDGER_COMMANDS_POST_OPTIONS - LEDGER_COMMANDS_COMMIT_ONLY,
     .run = ledger_commands_collect},
    {.name = "probe",
     .summary = "measure this machine: what it is, what it can take, what it would earn",
     .description =
         "Measures the rate of exact products at 14 bits and prints the requirements that this "
         "machine meets. With JOB: whether the machine can take it, and tokens a second, from real "
         "steps with --data, else as an upper bound from its products. With --reward and --price: "
         "what an hour earns. Exits with 1 where the machine cannot take the job.",
     .arguments = "[JOB]",
     .example = "lockstep prover probe\n"
                "lockstep prover probe text.job --data text.u8 --reward 0.5eth --price 0.0004eth",
     .options = probe_commands_options,
     .option_count = PROBE_COMMANDS_OPTIONS,
     .run = probe_commands_probe},
    {.name = "respond",
     .summary = "answer claims against a bundle that is not being trained",
     .description = "A claim that is not answered in time is lost, with the stake. 'run' and "
                    "'resume' answer claims, and so do 'commit' and 'collect' while they run. "
                    "'respond' ends when no claim is open; with --wait it stays until the job is "
                    "closed.",
     .arguments = "BUNDLE",
     .example = "lockstep prover respond text.run\n"
                "lockstep prover respond text.run --wait",
     .options = ledger_commands_respond_options,
     .option_count = LEDGER_COMMANDS_RESPOND_OPTIONS,
     .run = ledger_commands_respond},
    {.name = "serve",
     .summary = "serve bundles to verifiers by HTTP",
     .description = "Serves jobs, segments, checkpoints, data and trace replies about any step, "
                    "read-only, each by its place and by its root. A bundle that is still "
                    "being trained grows as it is served. Where it is staked on a ledger, "
                    "replies are about steps that an open claim or alarm is about, for "
                    "parties of the job who sign what they ask.",
     .arguments = "BUNDLE...",
     .example =
         "lockstep prover serve text.run\n"
         "lockstep prover serve text.run --serve 0.0.0.0:" PORT_PROVER_SERVE " --certificate "
         "full.pem --tls-key key.pem",
     .options = serve_commands_serve_options,
     .option_count = SERVE_COMMANDS_SERVE_OPTIONS,
     .run = serve_commands_serve},
    {.name = "publish",
     .summary = "write what 'prover serve' shows as files, for any web server",
     .description =
         "Writes the content tree of the bundles into a folder that any static web "
         "server or object store can offer. Run it again when the bundle has grown: what "
         "is there is kept. Of traces only those of the steps named by --trace are "
         "written: with them a verifier can follow such a step to the operation and "
         "element without a server.",
     .arguments = "BUNDLE...",
     .example = "lockstep prover publish text.run --out /srv/www/lockstep\n"
                "lockstep prover publish text.run --out /srv/www/lockstep --trace 513\n"
                "lockstep prover publish text.run --push https://client.example --push-token token",
     .options = serve_commands_publish_options,
     .option_count = SERVE_COMMANDS_PUBLISH_OPTIONS,
     .run = serve_commands_publish},
};

const struct command_group prover_commands = {
    .name = "prover",
    .summary = "train jobs: the tool of a solver, the party that is paid for training",
    .commands = commands,
    .command_count = sizeof(commands) / sizeof(commands[0]),
    .checks = node_commands_checks,
    .check_count = NODE_COMMANDS_CHECK_COUNT};
