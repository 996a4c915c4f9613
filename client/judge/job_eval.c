/* job_eval.c - see job_eval.h. */
#include "client/judge/job_eval.h"

#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hex.h"
#include "base/io/file.h"
#include "base/sandbox/sandbox.h"
#include "engine/ops/real.h"
#include "proofs/job/held_out_job.h"
#include "proofs/job/job_file.h"
#include "proofs/job/job_make.h"
#include "proofs/job/job_notes.h"
#include "proofs/job/tape_file.h"
#include "proofs/run/data_paths.h"
#include "proofs/run/run.h"

const struct option_spec job_eval_options[JOB_EVAL_OPTIONS] = {
    {.name = "data",
     .heading = "data",
     .often = true,
     .kind = OPTION_LIST,
     .value = "FILE",
     .help = "held-out tokens, or samples and then their labels; of adapters also the weights "
             "below them",
     .required = true},
    {.name = "checkpoint",
     .heading = "model",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .help = "what is looked at: a checkpoint, or a model file of 'job fetch' (default: the newest "
             "checkpoint of the bundle)",
     .command_line_only = true},
    {.name = "step",
     .heading = "model",
     .kind = OPTION_INTEGER,
     .value = "N",
     .maximum = JOB_STEPS_MAX,
     .help = "the bundle's checkpoint after so many steps",
     .command_line_only = true},
    {.name = "out",
     .heading = "result",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "FILE",
     .help = "also write the job, for others to run ('prover run FILE --first-state STATE')",
     .command_line_only = true},
    RUN_DEVICE_OPTION("what computes: " RUN_DEVICE_NAMES),
    RUN_MACHINE_OPTIONS,
};

enum { SEGMENT_STEPS = 50 };

struct evaluation {
    const struct options *options;
    struct bundle *bundle; /* NULL: the argument is a job file */
    struct job *read;      /* or NULL: the bundle has it */
    const struct job *trained;
    char state[FILE_PATH_MAX];
    struct data_paths paths;
    struct job *job; /* what is run */
    struct first_state first;
    uint32_t loss_bits;
    uint32_t accuracy_bits;
    bool of_tokens;
};

/* ---- what is looked at --------------------------------------------------------------------- */

static enum status find_checkpoint(struct evaluation *this, struct error *error)
{
    const bool given = options_given(this->options, "step");
    const uint64_t wanted = given ? options_number(this->options, "step") : 0;
    uint64_t step = wanted;
    uint64_t newest = 0;
    enum status status = bundle_checkpoint_find(&newest, this->bundle, wanted, error);

    /* Without --step the newest checkpoint counts: the last that a search from the one before
     * finds. */
    while (!given && status == STATUS_OK) {
        step = newest;
        status = bundle_checkpoint_find(&newest, this->bundle, step + 1, error);
    }
    if (status != STATUS_OK && (given || status != STATUS_NOT_FOUND || step == 0)) {
        return status;
    }
    if (given && newest != wanted) {
        (void)error_set(error, STATUS_NOT_FOUND,
                        "the bundle keeps no checkpoint after %" PRIu64 " steps; the next one is "
                        "after %" PRIu64,
                        wanted, newest);
        return STATUS_NOT_FOUND;
    }
    if (bundle_is_encrypted(this->bundle)) {
        (void)error_set(error, STATUS_REFUSED, "the bundle is encrypted");
        error_advise(error,
                     "take the model out with 'bundle export', and name it with --checkpoint");
        return STATUS_REFUSED;
    }
    error_init(error);
    /* A checkpoint that a crash or a disk damaged would give a figure of no state at all. */
    TRY(bundle_checkpoint_check(this->bundle, step, error));
    return bundle_checkpoint_path(this->state, this->bundle, step, error);
}

static enum status open_trained(struct evaluation *this, const char *path, struct error *error)
{
    const char *state = options_text(this->options, "checkpoint");
    struct stat about;

    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode)) {
        TRY(bundle_open(&this->bundle, path, BUNDLE_READ, error));
        this->trained = bundle_job(this->bundle);
    } else {
        TRY(job_read(&this->read, path, error));
        this->trained = this->read;
    }
    if (options_given(this->options, "step") && (state != NULL || this->bundle == NULL)) {
        return error_set(error, STATUS_USAGE, "--step chooses a checkpoint of a bundle");
    }
    if (state == NULL && this->bundle != NULL) {
        return find_checkpoint(this, error);
    }
    if (state == NULL) {
        return error_set(
            error, STATUS_USAGE,
            "a job file has no trained state: name it with --checkpoint, or name a bundle");
    }
    if (strlen(state) >= sizeof(this->state)) {
        return error_set(error, STATUS_USAGE, "--checkpoint: the path is too long");
    }
    memcpy(this->state, state, strlen(state) + 1);
    return STATUS_OK;
}

/* ---- the data ------------------------------------------------------------------------------ */

/* How many classes, or different tokens, the loss is about. */
static uint64_t classes_of(const struct tape *tape)
{
    for (uint32_t at = 0; at < tape->op_count; at++) {
        const struct tensor *logits = &tape->tensors[tape->ops[at].inputs[0]];

        if (tape->ops[at].kind == OP_CROSS_ENTROPY && logits->rank > 0) {
            return logits->dims[logits->rank - 1];
        }
    }
    return UINT32_MAX;
}

/* Are these packed rows, of which a batch takes the next ones? */
static bool is_rows(const struct tape *tape, uint32_t id)
{
    for (uint32_t at = 0; at < tape->op_count; at++) {
        if (tape->ops[at].kind == OP_BATCH_ROWS && tape->ops[at].inputs[0] == id) {
            return true;
        }
    }
    return false;
}

/* Tokens, mask and reach have as many rows. */
static enum status measure_packed(uint64_t *rows, struct evaluation *this,
                                  const struct tensor *tensor, const char *path, uint64_t classes,
                                  struct error *error)
{
    const bool tokens = strcmp(tensor->name, HELD_OUT_DATA "tokens") == 0;
    struct dataset data;
    uint64_t found;

    TRY(dataset_open_tokens(&data, error, path, tensor->dtype, tokens ? classes : UINT64_MAX));
    found = data.count / tensor->dims[1];
    if (data.count % tensor->dims[1] != 0 || (*rows != 0 && *rows != found)) {
        (void)error_set(error, STATUS_BAD_FORMAT,
                        "%s: %" PRIu64 " numbers, and these rows are %" PRIu64 " of %" PRIu64, path,
                        (uint64_t)data.count, *rows, tensor->dims[1]);
        dataset_close(&data);
        return STATUS_BAD_FORMAT;
    }
    dataset_close(&data);
    *rows = found;
    this->of_tokens = true;
    return STATUS_OK;
}

/* The rows of the held-out data in the files; 0: the files name them, and have the job's. */
static enum status measure_rows(uint64_t *rows, struct evaluation *this, const struct tape *tape,
                                struct error *error)
{
    const uint64_t classes = classes_of(tape);
    uint32_t at = 0;

    *rows = 0;
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        const struct tensor *tensor = &tape->tensors[id];
        const char *path = tensor->role == ROLE_DATA ? this->paths.of[at++] : NULL;
        struct dataset data;

        /* A file that gives tensors by their names has the rows of the job; others any number. */
        if (path == NULL || dataset_is_named(path) ||
            strncmp(tensor->name, HELD_OUT_DATA, strlen(HELD_OUT_DATA)) != 0) {
            continue;
        }
        if (is_rows(tape, id)) {
            TRY(measure_packed(rows, this, tensor, path, classes, error));
            continue;
        }
        if (tensor->rank > 1) {
            TRY(dataset_open_samples(&data, error, path));
            /* Labels come behind their samples and are as many. */
        } else if (*rows != 0) {
            TRY(dataset_open_labels(&data, error, path, *rows, classes));
        } else {
            this->of_tokens = true;
            TRY(dataset_open_tokens(&data, error, path, tensor->dtype, classes));
        }
        *rows = data.rows;
        dataset_close(&data);
    }
    return STATUS_OK;
}

/* ---- the job ------------------------------------------------------------------------------- */

static enum status make_job(struct evaluation *this, struct error *error)
{
    const char *files[OPTION_LIST_MAX];
    const size_t count = options_list(files, this->options, "data");
    struct job_terms terms = {
        .first_state_given = true, .title = this->trained->title, .model = this->trained->model};
    struct buffer notes = {0};
    struct digest *roots = NULL;
    struct tape *tape = NULL;
    void **constants = NULL;
    uint32_t constant_count = 0;
    uint64_t rows;
    enum status status;

    buffer_init(&notes, JOB_NOTES_MAX);
    job_notes_copy_from(&notes, this->trained->notes);
    TRY_OUT(buffer_check(&notes, error, "the notes of the job"));
    terms.notes = notes.size > 0 ? buffer_text(&notes) : NULL;
    /* Cut twice: the shapes of the data follow from its rows, which are known when the files are
     * found. */
    TRY_OUT(
        held_out_cut(&tape, &constants, &constant_count, &terms.steps, this->trained, 0, error));
    TRY_OUT(data_paths_of_files(&this->paths, tape, files, count, error));
    TRY_OUT(measure_rows(&rows, this, tape, error));
    tape_file_free_constants(constants, constant_count);
    tape_free(tape);
    tape = NULL;
    constants = NULL;
    TRY_OUT(
        held_out_cut(&tape, &constants, &constant_count, &terms.steps, this->trained, rows, error));
    terms.segment_length = terms.steps < SEGMENT_STEPS ? terms.steps : SEGMENT_STEPS;
    TRY_OUT(run_data_roots(&roots, &terms.data_count, tape, (const char *const *)this->paths.of,
                           error));
    terms.data_roots = roots;
    TRY_OUT(first_state_check_origin(tape, this->state, true, error));
    TRY_OUT(first_state_open(&this->first, tape, this->state, error));
    TRY_OUT(first_state_root(&terms.first_state_root, &this->first, error));
    first_state_close(&this->first);
    this->first = (struct first_state){0};
    status = job_from_tape(&this->job, tape, constants, constant_count, &terms, error);
    /* From here on the job owns tape and constants, also where it could not be made. */
    tape = NULL;
    constants = NULL;
out:
    tape_file_free_constants(constants, constant_count);
    tape_free(tape);
    free(roots);
    buffer_release(&notes);
    return status;
}

/* The job may be a stranger's: while it runs, this process reads its data and state alone. */
static void confine_process(const struct evaluation *this)
{
    struct sandbox_plan plan = {.network = false};

    for (uint32_t i = 0; i < this->paths.count; i++) {
        sandbox_add_read(&plan, this->paths.of[i]);
    }
    sandbox_add_read(&plan, this->state);
    sandbox_begin(&plan);
}

static enum status evaluate_state(struct evaluation *this, const struct log *log,
                                  struct error *error)
{
    struct machine_options machine;
    struct run run = {0};
    bool evaluated = false;
    enum status status;

    TRY(machine_options_default(&machine, error));
    machine.thread_count = (int)options_number(this->options, "threads");
    if (machine.thread_count == 0) {
        machine.thread_count = omp_get_max_threads();
    }
    machine.device_memory = options_number(this->options, "device-memory");
    TRY(machine_options_device(&machine, options_text(this->options, "device"), log, error));
    if (machine.backend == NULL || machine.backend == &backend_cpu) {
        confine_process(this);
    }
    TRY_OUT(run_open(&run, this->job, (const char *const *)this->paths.of, this->paths.count,
                     &machine, error));
    TRY_OUT(first_state_open(&this->first, this->job->tape, this->state, error));
    TRY_OUT(run_first_state(&run, &this->first, error));
    /* Steps that look at the held-out data and train nothing. */
    for (uint64_t step = 0; step < this->job->steps; step++) {
        TRY_OUT(run.machine->backend->step(run.machine, NULL, error));
    }
    TRY_OUT(run_held_out(&evaluated, &this->loss_bits, &this->accuracy_bits, &run,
                         this->job->steps - 1, error));
    if (!evaluated) {
        TRY_OUT(error_set(error, STATUS_REFUSED, "the job has not looked at its held-out data"));
    }
out:
    run_close(&run);
    return status;
}

/* ---- what is said -------------------------------------------------------------------------- */

/* JSON has neither NaN nor infinity. */
static json_t *number_json(double number)
{
    return isfinite(number) ? json_real(number) : json_null();
}

static int emit_result(struct command_context *context, const struct evaluation *this)
{
    const char *out = options_text(this->options, "out");
    const double loss = (double)real_from_bits(this->loss_bits);
    const double accuracy = (double)real_from_bits(this->accuracy_bits);
    char state[HEX_SIZE(DIGEST_SIZE)];
    char id[HEX_SIZE(DIGEST_SIZE)];
    char data[HEX_SIZE(DIGEST_SIZE)];
    json_t *roots = json_array();
    struct sheet sheet;

    hex_encode(id, this->job->id.bytes, DIGEST_SIZE);
    hex_encode(state, this->job->first_state_root.bytes, DIGEST_SIZE);
    sheet_init(&sheet);
    sheet_print(&sheet, "loss         %.6f\n", loss);
    /* Perplexity is e to the loss of a token; a loss over pictures has none. */
    if (this->of_tokens) {
        sheet_print(&sheet, "perplexity   %.4f\n", exp(loss));
    }
    if (isfinite(accuracy)) {
        sheet_print(&sheet, "accuracy     %.2f %%\n", 100.0 * accuracy);
    }
    sheet_print(&sheet, "of           %s\nstate        %s\n", this->state, state);
    for (uint32_t i = 0; i < this->job->data_count; i++) {
        hex_encode(data, this->job->data_roots[i].bytes, DIGEST_SIZE);
        (void)json_array_append_new(roots, json_string(data));
        sheet_print(&sheet, "data         %s\n", data);
    }
    sheet_print(&sheet, "job          %s\n", id);
    if (out != NULL) {
        sheet_print(&sheet, "written to   %s\n", out);
    }
    sheet_merge(&sheet,
                json_pack("{s:o, s:o, s:o, s:s, s:s, s:o, s:s, s:s*}", "loss", number_json(loss),
                          "perplexity", number_json(this->of_tokens ? exp(loss) : (double)NAN),
                          "accuracy", number_json(accuracy), "path", this->state, "state_root",
                          state, "data_roots", roots, "job", id, "out", out));
    return command_show(context, &sheet);
}

int job_eval_run(struct command_context *context)
{
    const char *out = options_text(context->options, "out");
    struct evaluation this = {.options = context->options};
    struct error error;
    enum status status;
    int code;

    error_init(&error);
    TRY_OUT(open_trained(&this, context->options->arguments[0], &error));
    TRY_OUT(make_job(&this, &error));
    if (out != NULL) { /* first: it can be run elsewhere where it cannot be here */
        TRY_OUT(job_write(this.job, out, &error));
    }
    TRY_OUT(evaluate_state(&this, context->log, &error));
out:
    code = status == STATUS_OK ? emit_result(context, &this) : command_fail(context, &error);
    first_state_close(&this.first);
    data_paths_close(&this.paths);
    job_free(this.job);
    job_free(this.read);
    bundle_close(this.bundle);
    return code;
}
