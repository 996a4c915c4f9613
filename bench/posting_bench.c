/*
 * posting_bench.c - the cost of a paid run beyond training: hashing every state, writing
 * checkpoints and the journal, and committing segments to a ledger while the next one is trained.
 *
 * One run of a job on an embedded ledger, measured from inside: the time of the steps alone is that
 * of plain training, and the rest of the run is compared with it. The posting thread counts with
 * its processor time.
 *
 *     POSTING_STEPS=16     steps of the run
 *     POSTING_SEGMENT=8    steps of a segment: each ends with a checkpoint on disk
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/support/bench.h"
#include "chain/game/terms.h"
#include "chain/local/ledger_local.h"
#include "proofs/job/job_make.h"
#include "prover/post/poster.h"
#include "prover/train/train.h"

enum {
    TOKENS = 100000,
    STEPS = 16,
    SEGMENT = 8,
    STEPS_MOST = 10000,
    USUAL_SEGMENT = 50, /* what 'job new' makes */
};

/* The 10M GPT with 2,048 tokens per step. */
static const struct model_options size = {
    .layers = 6, .width = 384, .heads = 6, .vocabulary = 256, .length = 256, .batch = 8};

struct paid_run {
    struct bundle *bundle;
    struct solver *solver;
    struct poster *poster;
    double start_s; /* of the first step */
    double training_s;
    double hashing_s;
    double waited_s; /* that training has waited for posting */
    uint32_t posted;
};

static uint64_t setting(const char *name, uint64_t usual)
{
    const char *text = getenv(name);
    unsigned long long given = text == NULL ? usual : strtoull(text, NULL, 10);

    return given < 1 || given > STEPS_MOST ? usual : given;
}

static void took_step(void *context, const struct bundle_step *step)
{
    struct paid_run *paid = context;
    double took_s = (double)(step->nanoseconds + step->nanoseconds_committing) / 1e9;

    if (paid->start_s == 0.0) {
        paid->start_s = bench_now() - took_s;
    }
    paid->training_s += (double)step->nanoseconds / 1e9;
    paid->hashing_s += (double)step->nanoseconds_committing / 1e9;
}

static enum status took_segment(void *context, struct error *error)
{
    struct paid_run *paid = context;
    const struct job *job = bundle_job(paid->bundle);
    uint64_t first = paid->posted++ * job->segment_length;
    double start = bench_now();
    struct digest states[GAME_STATES_MAX];
    struct game_hashes list = {states, 0};

    TRY(bundle_flush(paid->bundle, error));
    while (list.count < job->segment_length && first + list.count < job->steps) {
        struct bundle_step step;

        TRY(bundle_step_read(&step, paid->bundle, first + list.count, error));
        states[list.count++] = step.root;
    }
    TRY(solver_add(paid->solver, &list, false, error));
    poster_wake(paid->poster);
    paid->waited_s += bench_now() - start;
    return STATUS_OK;
}

/* ---- the job ---------------------------------------------------------------------- */

static enum status write_data(const char *path, struct error *error)
{
    uint8_t *data = malloc(TOKENS);
    uint32_t state = 1;
    enum status status;

    if (data == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for data");
    }
    for (size_t i = 0; i < TOKENS; i++) {
        state = state * 1664525u + 1013904223u;
        data[i] = (uint8_t)(state >> 24);
    }
    status = file_write(path, error, data, TOKENS, 0600);
    free(data);
    return status;
}

static enum status make_job(struct job **job, const char *data, struct error *error)
{
    struct digest root;
    struct job_terms terms = {.steps = setting("POSTING_STEPS", STEPS),
                              .segment_length = setting("POSTING_SEGMENT", SEGMENT),
                              .data_roots = &root,
                              .data_count = 1};
    struct model_options options;
    struct dataset dataset;
    struct model model;
    enum status status;

    model_options_default(&options, MODEL_GPT2);
    options.layers = size.layers;
    options.width = size.width;
    options.heads = size.heads;
    options.vocabulary = size.vocabulary;
    options.length = size.length;
    options.batch = size.batch;
    options.data_dtype = DTYPE_U8;
    options.data_count = TOKENS;
    options.steps = (uint32_t)terms.steps;
    TRY(model_build(&model, &options, error));
    TRY_OUT(run_data_open(&dataset, &root, &model.tape->tensors[model.data], data, error));
    dataset_close(&dataset);
    status = job_from_model(job, &model, &terms, error);
out:
    model_release(&model);
    return status;
}

/* ---- the ledger -------------------------------------------------------------------- */

static enum status open_job(struct solver_options *solver, const struct job *job,
                            const struct signer *signer, struct error *error)
{
    static const struct game_bytes no_contact;
    struct game_terms terms = {.reward = 1,
                               .stake = 2,
                               .bond = 1,
                               .segment_period_s = 1000000,
                               .seal_period_s = 1,
                               .reveal_period_s = 1,
                               .claim_period_s = 1000000,
                               .clock_s = 1};
    struct ledger *ledger = NULL;
    struct ledger_clock clock;
    enum status status;

    TRY_OUT(terms_of_job(&terms, job, error));
    TRY_OUT(ledger_open(&ledger, &solver->ledger, error));
    TRY_OUT(ledger_local_faucet(ledger, signer_address(signer), WEI_PER_ETHER, error));
    TRY_OUT(ledger_get_clock(ledger, &clock, error));
    terms.deadline_s = clock.time_s + 10000000;
    TRY_OUT(ledger_open_job(ledger, "open", &solver->job, &terms, &no_contact, error));
out:
    ledger_close(ledger);
    return status;
}

/* ---- the run ----------------------------------------------------------------------- */

static void record(struct bench *bench, const struct paid_run *paid, double wall_s,
                   double posting_s, uint64_t steps)
{
    double plain = paid->training_s;
    double rest = wall_s - plain - paid->hashing_s - paid->waited_s;
    double posting = posting_s + paid->waited_s;
    double usual = rest / paid->posted / USUAL_SEGMENT / (plain / (double)steps);

    bench_record(bench, "gpt2 10M, 2048 tokens: a step", "ms", plain / (double)steps * 1e3, 0.0, 0);
    bench_record(bench, "hashing every state", "%", 100.0 * paid->hashing_s / plain, 0.0, 0);
    bench_record(bench, "posting", "%", 100.0 * posting / plain, 0.0, 0);
    bench_record(bench, "a checkpoint, with its journal", "ms", rest / paid->posted * 1e3, 0.0, 0);
    bench_record(bench, "all of it against plain training, as measured", "%",
                 100.0 * (wall_s + posting_s - plain) / plain, 0.0, 0);
    bench_record(bench, "the same with a checkpoint every 50 steps", "%",
                 100.0 * ((paid->hashing_s + posting) / plain + usual), 0.0, 0);
}

static enum status run_paid(struct bench *bench, struct paid_run *paid, struct run *run,
                            struct error *error)
{
    const struct train_options options = {.threads = run->options.thread_count,
                                          .progress = took_step,
                                          .progress_context = paid,
                                          .segment = took_segment,
                                          .segment_context = paid};
    struct train_result result;
    struct solver_view view;
    double posting_s = 0.0;
    double wall_s;
    enum status status = train(&result, paid->bundle, run, &options, error);

    wall_s = bench_now() - paid->start_s;
    if (status != STATUS_OK) {
        return status;
    }
    do {
        (void)usleep(10000);
        poster_look(paid->poster, &view, &posting_s);
    } while (view.committed < paid->posted);
    record(bench, paid, wall_s, posting_s, result.steps);
    return STATUS_OK;
}

static enum status measure(struct bench *bench, const char *folder, struct error *error)
{
    const struct secret_key key = {.bytes = {1}};
    struct signer *signer = signer_new(&key, error);
    atomic_bool stopping = false;
    struct solver_options solver = {.accept = true};
    struct machine_options machine;
    struct paid_run paid = {0};
    struct run run = {0};
    struct job *job = NULL;
    char data[600];
    char url[600];
    char bundle[600];
    const char *path = data;
    enum status status;

    (void)snprintf(data, sizeof(data), "%s/data.u8", folder);
    (void)snprintf(url, sizeof(url), "local:%s/ledger", folder);
    (void)snprintf(bundle, sizeof(bundle), "%s/run", folder);
    ledger_options_init(&solver.ledger);
    solver.ledger.url = url;
    solver.ledger.signer = signer;
    TRY_OUT(signer == NULL ? error->status : write_data(data, error));
    solver.account = *signer_address(signer);
    TRY_OUT(ledger_local_init(url + strlen("local:"), error));
    TRY_OUT(make_job(&job, data, error));
    TRY_OUT(open_job(&solver, job, signer, error));
    TRY_OUT(bundle_create(&paid.bundle, bundle, job, error));
    TRY_OUT(machine_options_default(&machine, error));
    TRY_OUT(run_open(&run, bundle_job(paid.bundle), &path, 1, &machine, error));
    TRY_OUT(solver_new(&paid.solver, &solver, job_segments(bundle_job(paid.bundle)), error));
    TRY_OUT(poster_start(&paid.poster, paid.solver, &solver.job, &stopping, NULL, 0.3, error));
    TRY_OUT(run_paid(bench, &paid, &run, error));
out:
    poster_stop(paid.poster);
    solver_free(paid.solver);
    run_close(&run);
    bundle_close(paid.bundle);
    signer_free(signer);
    return status;
}

int main(int argc, char **argv)
{
    const char *place = getenv("TMPDIR");
    char folder[400];
    char command[440];
    struct bench bench;
    struct error error;
    enum status status;

    error_init(&error);
    bench_init(&bench, "posting", "", argc, argv);
    (void)snprintf(folder, sizeof(folder), "%s/lockstep-bench-XXXXXX",
                   place == NULL ? "/tmp" : place);
    if (mkdtemp(folder) == NULL) {
        perror(folder);
        return 1;
    }
    status = measure(&bench, folder, &error);
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    if (system(command) != 0 || status != STATUS_OK) {
        (void)fprintf(stderr, "posting: %s\n", error.text);
        return 1;
    }
    return bench_finish(&bench);
}
