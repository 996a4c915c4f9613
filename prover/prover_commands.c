/*
 * prover_commands.c - `lockstep prover run`, `resume` and `status`, without a ledger.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/log.h"
#include "base/progress.h"
#include "prover/access.h"
#include "prover/commands.h"
#include "prover/serve_commands.h"
#include "prover/train.h"

static const struct option_spec run_options[] = {
    {.name = "bundle",
     .kind = OPTION_TEXT,
     .value = "FOLDER",
     .help = "where to keep the run (default: the job's name with .run)"},
    {.name = "encrypt",
     .kind = OPTION_FLAG,
     .help = "seal checkpoints, losses and times under a key (made in --key FILE where there is "
             "none) or a passphrase",
     .command_line_only = true},
    {.name = "first-state",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .help = "the first state (.safetensors) of a job that does not draw it"},
    ACCESS_RUN_OPTIONS,
    {.name = "keep",
     .kind = OPTION_INTEGER,
     .value = "N",
     .fallback = "0",
     .help = "how many of the newest checkpoints to keep; 0: all"},
    {.name = "every",
     .kind = OPTION_INTEGER,
     .value = "N",
     .fallback = "0",
     .help = "with --keep: keep also the checkpoint of every N-th segment"},
    ACCESS_KEY_OPTIONS,
};
#define RUN_OPTION_COUNT (sizeof(run_options) / sizeof(run_options[0]))
/* Options that only a new bundle has stand first. */
#define NEW_OPTION_COUNT 2

static const struct option_spec status_options[] = {ACCESS_KEY_OPTIONS};

/* ---- what is told while it trains --------------------------------------- */

struct teller {
    struct progress progress;
    uint64_t steps; /* done */
    uint64_t training_ns;
    uint64_t committing_ns;
};

static void tell(void *context, const struct bundle_step *step)
{
    struct teller *teller = context;
    char note[PROGRESS_NOTE_MAX];
    float loss;

    memcpy(&loss, &step->loss_bits, sizeof(loss));
    teller->steps = step->step + 1;
    teller->training_ns += step->nanoseconds;
    teller->committing_ns += step->nanoseconds_committing;
    (void)snprintf(note, sizeof(note), "loss %.4f  committing %.1f %%", (double)loss,
                   100.0 * (double)teller->committing_ns /
                       (double)(teller->training_ns + teller->committing_ns + 1));
    progress_update(&teller->progress, teller->steps, note, progress_now());
}

/* ---- running ------------------------------------------------------------ */

static json_t *result_json(const struct bundle *bundle, const struct train_result *result,
                           const struct digest *root, uint32_t loss_bits)
{
    char id[HEX_SIZE(DIGEST_SIZE)];
    char state[HEX_SIZE(DIGEST_SIZE)];
    float loss;

    memcpy(&loss, &loss_bits, sizeof(loss));
    hex_encode(id, bundle_job(bundle)->id.bytes, DIGEST_SIZE);
    hex_encode(state, root->bytes, DIGEST_SIZE);
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:b, s:s, s:o}", "job", id, "bundle",
                     bundle_path(bundle), "first", (json_int_t)result->first, "steps",
                     (json_int_t)result->steps, "steps_of_job",
                     (json_int_t)bundle_job(bundle)->steps, "diverged", (int)result->diverged,
                     "state_root", state, "loss", isfinite(loss) ? json_real(loss) : json_null());
}

static int report(struct command_context *context, struct bundle *bundle,
                  const struct train_result *result, struct error *error)
{
    struct bundle_step last = {0};
    char root[HEX_SIZE(DIGEST_SIZE)];
    float loss;

    if (bundle_step_read(&last, bundle, result->steps - 1, error) != STATUS_OK) {
        return command_fail(context, error);
    }
    if (last.hidden) {
        last.loss_bits = FLOAT_NAN_BITS;
    }
    if (context->json) {
        return command_emit(context, result_json(bundle, result, &last.root, last.loss_bits));
    }
    memcpy(&loss, &last.loss_bits, sizeof(loss));
    hex_encode(root, last.root.bytes, DIGEST_SIZE);
    fprintf(context->out,
            "%s after %" PRIu64 " of %" PRIu64 " steps, loss %.6f\nstate root %s\nbundle     %s\n",
            result->diverged ? "diverged" : "trained", result->steps, bundle_job(bundle)->steps,
            (double)loss, root, bundle_path(bundle));
    return COMMAND_OK;
}

static void tell_damage(struct command_context *context, const struct bundle *bundle)
{
    const char *why;
    uint32_t count = bundle_damaged(bundle, &why);

    if (count > 0) {
        log_warn(context->log, "bundle", "%u damaged checkpoints were passed over: %s", count, why);
    }
}

static enum status train_with(struct train_result *result, struct command_context *context,
                              struct bundle *bundle, struct run *run, struct stop *stop,
                              struct error *error)
{
    struct teller teller = {.steps = 0};
    struct train_options options = {.keep = options_number(context->options, "keep"),
                                    .every = options_number(context->options, "every"),
                                    .threads = run->options.thread_count,
                                    .energy = true,
                                    .stop = stop,
                                    .progress = tell,
                                    .progress_context = &teller};
    uint64_t done = 0;
    enum status status = bundle_step_count(&done, bundle, error);

    if (status != STATUS_OK) {
        return status;
    }
    progress_init(&teller.progress, stderr, "training", "steps", done, bundle_job(bundle)->steps,
                  progress_now());
    status = train(result, bundle, run, &options, error);
    progress_finish(&teller.progress, teller.steps == 0 ? done : teller.steps, "", progress_now());
    tell_damage(context, bundle);
    return status;
}

/* What a bundle must have before its first step here: notes, a device, a first state. */
static enum status prepare(struct command_context *context, struct bundle *bundle, struct run *run,
                           struct error *error)
{
    const char *first_state = options_text(context->options, "first-state");
    char device[BUNDLE_DEVICE_MAX];
    enum status status = access_remember(bundle, context->options, error);

    if (status == STATUS_OK && first_state != NULL) {
        status = bundle_give_first_state(bundle, first_state, error);
    }
    if (status == STATUS_OK) {
        run_describe(device, sizeof(device), &run->options);
        status = bundle_set_device(bundle, device, error);
    }
    return status;
}

static int run_bundle(struct command_context *context, struct bundle *bundle, struct run *run,
                      struct stop *stop, struct error *error)
{
    struct train_result result = {0};
    enum status status = prepare(context, bundle, run, error);

    if (status == STATUS_OK) {
        status = train_with(&result, context, bundle, run, stop, error);
    }
    return status == STATUS_OK ? report(context, bundle, &result, error)
                               : command_fail(context, error);
}

static enum status open_run(struct run *run, struct stop *stop, struct command_context *context,
                            const struct job *job, struct bundle *bundle, struct error *error)
{
    struct machine_options machine;
    enum status status = stop_open(stop, error);

    if (status == STATUS_OK) {
        status = access_machine(&machine, context->options, error);
    }
    return status == STATUS_OK ? access_run(run, job, bundle, &machine, context->options, error)
                               : status;
}

/* Takes job. */
static enum status create(struct bundle **bundle, struct command_context *context,
                          const char *folder, struct job *job, struct error *error)
{
    struct access_seal seal;
    enum status status;

    if (!options_flag(context->options, "encrypt")) {
        return bundle_create(bundle, folder, job, error);
    }
    status = access_seal_make(&seal, context->options, error);
    if (status != STATUS_OK) {
        job_free(job);
    } else {
        status = bundle_create_sealed(bundle, folder, job, &seal.key,
                                      seal.has_lock ? seal.lock : NULL, error);
    }
    access_seal_wipe(&seal);
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

/* Data and machine come first: a slip there must not leave a bundle behind. */
static int run_run(struct command_context *context)
{
    const char *job_path = context->options->arguments[0];
    const char *given = options_text(context->options, "bundle");
    char folder[FILE_PATH_MAX];
    struct bundle *bundle = NULL;
    struct job *job = NULL;
    struct run run = {0};
    struct stop stop = {.descriptor = -1};
    struct error error;
    enum status status;
    int code;

    error_init(&error);
    status = given == NULL ? default_folder(folder, job_path, &error) : STATUS_OK;
    if (status == STATUS_OK) {
        status = job_read(&job, job_path, &error);
    }
    if (status == STATUS_OK) {
        status = open_run(&run, &stop, context, job, NULL, &error);
    }
    if (status == STATUS_OK) {
        status = create(&bundle, context, given == NULL ? folder : given, job, &error);
        job = NULL;
    }
    code = status == STATUS_OK ? run_bundle(context, bundle, &run, &stop, &error)
                               : command_fail(context, &error);
    run_close(&run);
    stop_close(&stop);
    job_free(job);
    bundle_close(bundle);
    return code;
}

static int run_resume(struct command_context *context)
{
    struct bundle *bundle = NULL;
    struct run run = {0};
    struct stop stop = {.descriptor = -1};
    struct error error;
    enum status status;
    int code;

    error_init(&error);
    status = bundle_open(&bundle, context->options->arguments[0], BUNDLE_WRITE, &error);
    if (status == STATUS_OK) {
        status = access_unlock(bundle, context->options, &error);
    }
    if (status == STATUS_OK) {
        status = open_run(&run, &stop, context, bundle_job(bundle), bundle, &error);
    }
    code = status == STATUS_OK ? run_bundle(context, bundle, &run, &stop, &error)
                               : command_fail(context, &error);
    run_close(&run);
    stop_close(&stop);
    bundle_close(bundle);
    return code;
}

/* ---- status ------------------------------------------------------------- */

static int run_status(struct command_context *context)
{
    struct bundle *bundle = NULL;
    struct train_result result = {0};
    uint64_t diverged = UINT64_MAX;
    struct error error;
    enum status status;
    int code;

    error_init(&error);
    status = bundle_open(&bundle, context->options->arguments[0], BUNDLE_READ, &error);
    if (status == STATUS_OK) {
        status = access_unlock_if_given(bundle, context->options, &error);
    }
    if (status == STATUS_OK) {
        status = bundle_step_count(&result.steps, bundle, &error);
    }
    if (status == STATUS_OK) {
        status = bundle_diverged(&diverged, bundle, &error);
    }
    result.diverged = diverged != UINT64_MAX;
    if (status != STATUS_OK) {
        code = command_fail(context, &error);
    } else if (result.steps > 0) {
        code = report(context, bundle, &result, &error);
    } else if (context->json) {
        code = command_emit(
            context,
            result_json(bundle, &result, &bundle_job(bundle)->first_state_root, FLOAT_NAN_BITS));
    } else {
        fprintf(context->out, "no step of %" PRIu64 " was run yet\n", bundle_job(bundle)->steps);
        code = COMMAND_OK;
    }
    bundle_close(bundle);
    return code;
}

/* ---- the table ---------------------------------------------------------- */

static const struct command commands[] = {
    {.name = "run",
     .summary = "train a job into a new bundle",
     .description = "Trains, hashes the state after every step into the bundle's journal and keeps "
                    "a checkpoint at the end of every segment. Ctrl-C stops cleanly after the "
                    "step; 'lockstep prover resume' goes on to the same bits.",
     .arguments = "JOB",
     .example = "lockstep prover run text.job --data text.u8\n"
                "lockstep prover run text.job --data text.u8 --encrypt --key text.key",
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
    {.name = "status",
     .summary = "say how far a bundle is",
     .arguments = "BUNDLE",
     .example = "lockstep prover status text.run",
     .options = status_options,
     .option_count = sizeof(status_options) / sizeof(status_options[0]),
     .run = run_status},
    {.name = "serve",
     .summary = "show bundles to verifiers by HTTP",
     .description = "Serves jobs, segments, checkpoints, data and answers about the trace of any "
                    "step, read-only, each by its place and by its root. A bundle that is still "
                    "being trained grows as it is served.",
     .arguments = "BUNDLE...",
     .example = "lockstep prover serve text.run\n"
                "lockstep prover serve text.run --bind 0.0.0.0 --certificate full.pem --tls-key "
                "key.pem",
     .options = serve_options_table,
     .option_count = SERVE_OPTION_COUNT,
     .run = run_serve},
    {.name = "publish",
     .summary = "write the same tree as files, for any web server",
     .description = "Writes what 'lockstep prover serve' shows, but for traces, into a folder that "
                    "any static web server or object store can offer. Run it again when the bundle "
                    "has grown: what is there is kept.",
     .arguments = "BUNDLE...",
     .example = "lockstep prover publish text.run --to /srv/www/lockstep",
     .options = publish_options_table,
     .option_count = PUBLISH_OPTION_COUNT,
     .run = run_publish},
};

const struct command_group prover_commands = {.name = "prover",
                                              .summary = "the solver: train, commit, resume",
                                              .commands = commands,
                                              .command_count =
                                                  sizeof(commands) / sizeof(commands[0])};
