/*
 * prover_commands.c - `lockstep prover run`, `resume` and `status`, without a ledger.
 */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/progress.h"
#include "prover/commands.h"
#include "prover/train.h"

static const struct option_spec run_options[] = {
    {.name = "bundle",
     .kind = OPTION_TEXT,
     .value = "FOLDER",
     .help = "where to keep the run (default: the job's name with .run)"},
    {.name = "data",
     .kind = OPTION_LIST,
     .value = "FILE",
     .help = "a data file of the job; once for each, in the job's order"},
    {.name = "threads",
     .kind = OPTION_INTEGER,
     .value = "N",
     .maximum = MACHINE_THREADS_MAX,
     .help = "threads to compute with (default: all cores)"},
    {.name = "memory-max",
     .kind = OPTION_SIZE,
     .value = "BYTES",
     .help = "refuse a job that needs more memory"},
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
};
#define RUN_OPTION_COUNT (sizeof(run_options) / sizeof(run_options[0]))

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

static enum status choose_machine(struct machine_options *machine, const struct options *options,
                                  struct error *error)
{
    enum status status = machine_options_default(machine, error);

    machine->thread_count = (int)options_number(options, "threads");
    if (machine->thread_count == 0) {
        machine->thread_count = omp_get_max_threads();
    }
    machine->memory_max = options_number(options, "memory-max");
    return status;
}

/* The files named now, else those that the bundle remembers. */
static enum status find_data(const char **paths, char (*remembered)[FILE_PATH_MAX], size_t *count,
                             struct bundle *bundle, const struct options *options,
                             struct error *error)
{
    uint32_t wanted = bundle_job(bundle)->data_count;
    size_t given = options_list_count(options, "data");
    enum status status = STATUS_OK;

    *count = given;
    for (size_t i = 0; i < given && i < JOB_DATA_MAX && status == STATUS_OK; i++) {
        char name[16];

        paths[i] = options_list_item(options, "data", i);
        (void)snprintf(name, sizeof(name), "data.%zu", i);
        if (realpath(paths[i], remembered[i]) == NULL) {
            return error_set_errno(error, "cannot find the data %s", paths[i]);
        }
        status = bundle_set_note(bundle, name, remembered[i], error);
    }
    for (uint32_t i = 0; given == 0 && i < wanted && status == STATUS_OK; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "data.%u", i);
        status = bundle_note(remembered[i], bundle, name, error);
        if (status == STATUS_NOT_FOUND) {
            (void)error_set(error, STATUS_USAGE, "the bundle does not know where its data is");
            error_advise(error, "name the %u files with --data", wanted);
            return STATUS_USAGE;
        }
        paths[i] = remembered[i];
        *count = i + 1;
    }
    return status;
}

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

static enum status train_with(struct train_result *result, struct command_context *context,
                              struct bundle *bundle, struct run *run, struct stop *stop,
                              struct error *error)
{
    struct teller teller = {.steps = 0};
    struct train_options options = {.keep = options_number(context->options, "keep"),
                                    .every = options_number(context->options, "every"),
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
    return status;
}

static int run_bundle(struct command_context *context, struct bundle *bundle, struct error *error)
{
    const char *paths[JOB_DATA_MAX] = {0};
    char(*remembered)[FILE_PATH_MAX] = calloc(JOB_DATA_MAX, FILE_PATH_MAX);
    size_t path_count = 0;
    struct machine_options machine;
    struct train_result result = {0};
    struct run run = {0};
    struct stop stop = {.descriptor = -1};
    char device[BUNDLE_DEVICE_MAX];
    enum status status = remembered == NULL ? error_set(error, STATUS_NO_MEMORY, "no memory")
                                            : stop_open(&stop, error);

    if (status == STATUS_OK) {
        status = choose_machine(&machine, context->options, error);
    }
    if (status == STATUS_OK) {
        status = find_data(paths, remembered, &path_count, bundle, context->options, error);
    }
    if (status == STATUS_OK) {
        status = run_open(&run, bundle_job(bundle), paths, path_count, &machine, error);
    }
    if (status == STATUS_OK) {
        run_describe(device, sizeof(device), &machine);
        status = bundle_set_device(bundle, device, error);
    }
    if (status == STATUS_OK) {
        status = train_with(&result, context, bundle, &run, &stop, error);
    }
    run_close(&run);
    stop_close(&stop);
    free(remembered);
    return status == STATUS_OK ? report(context, bundle, &result, error)
                               : command_fail(context, error);
}

static int run_run(struct command_context *context)
{
    const char *job_path = context->options->arguments[0];
    const char *folder = options_text(context->options, "bundle");
    char default_folder[FILE_PATH_MAX];
    struct bundle *bundle = NULL;
    struct job *job = NULL;
    struct error error;
    enum status status;
    int code;

    error_init(&error);
    if (folder == NULL) {
        size_t length = strlen(job_path);

        length -= length > 4 && strcmp(job_path + length - 4, ".job") == 0 ? 4 : 0;
        if (length + 5 > sizeof(default_folder)) {
            return command_usage(context, "the path of the job is too long");
        }
        (void)snprintf(default_folder, sizeof(default_folder), "%.*s.run", (int)length, job_path);
        folder = default_folder;
    }
    status = job_read(&job, job_path, &error);
    if (status == STATUS_OK) {
        status = bundle_create(&bundle, folder, job, &error);
    }
    code =
        status == STATUS_OK ? run_bundle(context, bundle, &error) : command_fail(context, &error);
    bundle_close(bundle);
    return code;
}

static int run_resume(struct command_context *context)
{
    struct bundle *bundle = NULL;
    struct error error;
    int code;

    error_init(&error);
    if (bundle_open(&bundle, context->options->arguments[0], BUNDLE_WRITE, &error) != STATUS_OK) {
        return command_fail(context, &error);
    }
    code = run_bundle(context, bundle, &error);
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
     .example = "lockstep prover run text.job --data text.u8",
     .options = run_options,
     .option_count = RUN_OPTION_COUNT,
     .run = run_run},
    {.name = "resume",
     .summary = "go on with a run that stopped or crashed",
     .arguments = "BUNDLE",
     .example = "lockstep prover resume text.run",
     .options = run_options + 1, /* all but --bundle */
     .option_count = RUN_OPTION_COUNT - 1,
     .run = run_resume},
    {.name = "status",
     .summary = "say how far a bundle is",
     .arguments = "BUNDLE",
     .example = "lockstep prover status text.run",
     .run = run_status},
};

const struct command_group prover_commands = {.name = "prover",
                                              .summary = "the solver: train, commit, resume",
                                              .commands = commands,
                                              .command_count =
                                                  sizeof(commands) / sizeof(commands[0])};
