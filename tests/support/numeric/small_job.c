/* small_job.c - see small_job.h. */
#include "tests/support/numeric/small_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proofs/commit/state_root.h"
#include "proofs/job/job_make.h"
#include "tests/support/numeric/small_model.h"
#include "tests/support/test.h"

static void insist(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fprintf(stderr, "small job: %s\n", error->text);
        exit(1);
    }
}

void small_job_of_kind(struct small_job_options *options, enum model_kind kind)
{
    memset(options, 0, sizeof(*options));
    small_model_options(&options->model, kind);
    options->steps = SMALL_JOB_STEPS;
    options->segment_length = SMALL_JOB_SEGMENT;
}

void small_job_defaults(struct small_job_options *options)
{
    small_job_of_kind(options, MODEL_GPT2);
    options->model.batch = 1;
    options->model.length = 4;
    options->model.positions = 4;
    options->model.layers = 1;
    options->model.heads = 1;
    options->model.width = 8;
    options->model.steps = SMALL_JOB_STEPS;
}

void small_job_diverging(struct small_job_options *options)
{
    small_job_defaults(options);
    options->model.optimizer = OPTIMIZER_SGD;
    options->model.schedule = SCHEDULE_CONSTANT;
    options->model.warmup = 0;
    options->model.clip = 0.0;
    options->model.rate = 1e6;
    options->model.rate_min = 1e6;
    options->model.decay = 1e3;
}

/* ---- data ---------------------------------------------------------------- */

const char *const *small_job_data(const struct job *job, size_t *count)
{
    static const char *const tokens[] = {"fixtures/text/village.u8"};
    static const char *const samples[] = {"fixtures/images/shapes.npy",
                                          "fixtures/images/shapes-labels.npy"};

    *count = job->data_count;
    return job->data_count == 1 ? tokens : samples;
}

struct job *small_job_new(const struct small_job_options *wanted)
{
    struct digest roots[2];
    struct job_terms terms = {
        .steps = wanted->steps, .segment_length = wanted->segment_length, .data_roots = roots};
    struct model_options model = wanted->model;
    struct small_model small;
    struct job *job = NULL;
    struct error error;
    uint32_t ids[2];

    error_init(&error);
    if (model.steps < wanted->steps) {
        model.steps = (uint32_t)wanted->steps; /* the schedule lasts as long as the job */
    }
    small_model_open(&small, &model);
    ids[0] = small.model.data;
    ids[1] = small.model.labels;
    for (uint32_t i = 0; i < 2 && ids[i] != TENSOR_NONE; i++) {
        commit_tensor_root(&roots[terms.data_count++], COMMIT_DATA,
                           &small.model.tape->tensors[ids[i]], i == 0 ? small.data : small.labels,
                           1);
    }
    if (wanted->first_state != NULL) {
        terms.first_state_given = true;
        terms.first_state_root = *wanted->first_state;
    }
    insist(job_from_model(&job, &small.model, &terms, &error), &error);
    small_model_close(&small);
    return job;
}

struct job *small_job_of_steps(uint64_t steps, uint64_t segment_length)
{
    struct small_job_options options;

    small_job_of_kind(&options, MODEL_MLP);
    options.steps = steps;
    options.segment_length = segment_length;
    options.model.seed = 3;
    return small_job_new(&options);
}

/* ---- runs ---------------------------------------------------------------- */

void small_run_open(struct run *run, const struct job *job, enum isa isa, int threads, bool trace)
{
    const struct machine_options options = {.isa = isa, .thread_count = threads, .trace = trace};
    struct error error;
    size_t count;
    const char *const *paths = small_job_data(job, &count);

    error_init(&error);
    insist(run_open(run, job, paths, count, &options, &error), &error);
}

void small_run_begin(struct run *run)
{
    const struct tape *tape = run->job->tape;
    struct error error;

    error_init(&error);
    for (uint32_t i = 0; i < tape->state_count; i++) {
        uint32_t id = tape->states[i].before;
        void *bytes = malloc(commit_tensor_size(&tape->tensors[id]));

        job_first_state(bytes, run->job, id);
        insist(run->machine->backend->write(run->machine, id, bytes, &error), &error);
        free(bytes);
    }
}

void small_run_step(struct run *run)
{
    struct error error;

    error_init(&error);
    insist(run->machine->backend->step(run->machine, NULL, &error), &error);
}

void small_bundle_fill(struct bundle *bundle, struct run *run, uint64_t first, uint64_t end)
{
    uint64_t length = bundle_job(bundle)->segment_length;
    struct error error;

    error_init(&error);
    for (uint64_t step = first; step < end; step++) {
        struct bundle_step entry = {.step = step,
                                    .nanoseconds = 1000 + step,
                                    .nanoseconds_committing = 100 + step,
                                    .microjoules = step % 2 == 0 ? BUNDLE_ENERGY_UNKNOWN : step};

        small_run_step(run);
        insist(run_loss(&entry.loss_bits, run, &error), &error);
        insist(state_root_of(&entry.root, run->machine, &error), &error);
        insist(bundle_record(bundle, &entry, &error), &error);
        if ((step + 1) % length == 0 || step + 1 == end) {
            insist(bundle_checkpoint_write(bundle, run->machine, step + 1, &error), &error);
        }
    }
}

struct bundle *small_bundle_new(const char *path, struct job *job, const struct encryption_key *key,
                                uint64_t end)
{
    struct bundle *bundle = NULL;
    struct run run;
    struct error error;

    error_init(&error);
    insist(bundle_create_encrypted(&bundle, path, job, key, NULL, &error), &error);
    insist(bundle_set_device(bundle, "a small test", &error), &error);
    small_run_open(&run, bundle_job(bundle), isa_best(), 1, false);
    small_run_begin(&run);
    small_bundle_fill(bundle, &run, 0, end);
    run_close(&run);
    return bundle;
}

const char *small_path(const char *name)
{
    static char paths[64][512];
    static int next;
    char *path = paths[next];

    next = (next + 1) % 64;
    (void)snprintf(path, sizeof(paths[0]), "%s/%s", test_temp_dir(), name);
    return path;
}
