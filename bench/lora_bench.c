/*
 * lora_bench.c - a step of LoRA on frozen BF16 weights, as `job new --base --lora` and
 * `prover run --hoist` do it: its time against PyTorch in float32 doing the same step on the same
 * cores, the memory of the whole process, the state root and the size of a checkpoint.
 *
 * The folder is a random Llama of the shape of Llama-3.2-1B (1.24 billion weights); rank 16 beside
 * query, key, value and out products, one sequence of 64 tokens. Both sides begin with the same
 * adapters, take turns and compare the losses of every step. Fails where the losses differ, or
 * where the memory is above 8 GB or a checkpoint above 50 MB. Skipped where Python is not here.
 *
 *     LORA_CASE=tiny       only cases whose name holds this; the tiny one runs on request
 *     LORA_FOLDER=DIR      keeps the folder of weights there, or uses the one that is
 *     LORA_ROUNDS=3        timed steps of each
 *     LORA_THREADS=1       instead of all processors
 */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench/support/bench.h"
#include "bench/support/torch_child.h"
#include "proofs/commit/state_root.h"
#include "proofs/job/job_file.h"
#include "proofs/run/data_paths.h"
#include "proofs/run/run.h"
#include "tests/support/folder.h"

#define PROGRAM             "build/lockstep"
#define LENGTH              64
#define RANK                16
#define TOKENS              4096
#define ROUNDS              5
#define ROUNDS_MAX          100
#define MEMORY_MAX          8e9
#define CHECKPOINT_MAX      50e6
#define LOSS_DIFFERENCE_MAX 2e-4 /* relative; 14 bits */
#define NUMBERS             10

struct shape {
    const char *name;
    const char *config; /* for tests/support/tiny_llama.py */
    unsigned vocabulary;
};

static const struct shape shapes[] = {
    {"llama tiny", "vocab_size=512", 512},
    {"llama 1B",
     "vocab_size=128256 hidden_size=2048 intermediate_size=8192 num_hidden_layers=16 "
     "num_attention_heads=32 num_key_value_heads=8 max_position_embeddings=131072 "
     "rope_theta=500000.0 tie_word_embeddings=true "
     "rope_scaling='{\"rope_type\":\"llama3\",\"factor\":32.0,\"low_freq_factor\":1.0,"
     "\"high_freq_factor\":4.0,\"original_max_position_embeddings\":8192}'",
     128256},
};

struct contest {
    const struct shape *shape;
    int threads;
    int rounds;
    char weights[128];
    char tokens[128];
    char job_path[128];
    struct job *job;
    struct data_paths paths;
    struct run run;
    struct torch_child torch;
    bool has_torch;
    double ours[ROUNDS_MAX];
    double peer[ROUNDS_MAX];
    double root[ROUNDS_MAX];
    double worst; /* relative difference of the losses */
};

/* ---- the job ---------------------------------------------------------------- */

static enum status command(struct error *error, const char *line)
{
    return system(line) == 0 ? STATUS_OK : error_set(error, STATUS_IO, "it failed: %s", line);
}

static enum status write_tokens(const struct contest *contest, struct error *error)
{
    FILE *file = fopen(contest->tokens, "wb");
    uint32_t state = 1;

    for (int i = 0; i < TOKENS && file != NULL; i++) {
        uint32_t token;

        state = state * 1664525u + 1013904223u;
        token = (state >> 8) % contest->shape->vocabulary;
        (void)fwrite(&token, sizeof(token), 1, file);
    }
    return file != NULL && fclose(file) == 0
               ? STATUS_OK
               : error_set_errno(error, "cannot write %s", contest->tokens);
}

/* By the program, as people do it. */
static enum status make_job(struct contest *contest, const char *place, struct error *error)
{
    const char *kept = getenv("LORA_FOLDER");
    char line[1200];

    (void)snprintf(contest->weights, sizeof(contest->weights), "%s%s", kept != NULL ? kept : place,
                   kept != NULL ? "" : "/base");
    (void)snprintf(contest->tokens, sizeof(contest->tokens), "%s/tokens.u32", place);
    (void)snprintf(contest->job_path, sizeof(contest->job_path), "%s/lora.job", place);
    TRY(write_tokens(contest, error));
    if (access(contest->weights, R_OK) != 0) {
        (void)snprintf(line, sizeof(line), "python3 tests/support/tiny_llama.py '%s' %s",
                       contest->weights, contest->shape->config);
        TRY(command(error, line));
    }
    (void)snprintf(line, sizeof(line),
                   PROGRAM " job new --base '%s' --data '%s' --data-type u32 --length %d --batch 1 "
                           "--lora %d --target q_proj,k_proj,v_proj,o_proj --schedule constant "
                           "--warmup 0 --steps %d --segment-steps 1 --out '%s' >/dev/null",
                   contest->weights, contest->tokens, LENGTH, RANK, ROUNDS_MAX + 1,
                   contest->job_path);
    TRY(command(error, line));
    return job_read(&contest->job, contest->job_path, error);
}

static enum status open_run(struct contest *contest, struct error *error)
{
    const char *const files[] = {contest->tokens, contest->weights};
    struct machine_options options;

    TRY(machine_options_default(&options, error));
    options.thread_count = contest->threads;
    options.hoist = true;
    TRY(data_paths_of_files(&contest->paths, contest->job->tape, files, 2, error));
    return run_open(&contest->run, contest->job, (const char *const *)contest->paths.of,
                    contest->paths.count, &options, error);
}

/* The first state into the machine, and what of it PyTorch cannot know to the child. */
static enum status write_first_state(struct contest *contest, struct error *error)
{
    const struct tape *tape = contest->job->tape;
    struct machine *machine = contest->run.machine;

    for (uint32_t i = 0; i < tape->state_count; i++) {
        const uint32_t id = tape->states[i].before;
        const struct tensor *tensor = &tape->tensors[id];
        float *values = malloc(tensor->count * dtype_size(tensor->dtype));
        enum status status;

        if (values == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "no memory for a first state");
        }
        job_first_state(values, contest->job, id);
        status = machine->backend->write(machine, id, values, error);
        if (contest->has_torch && strncmp(tensor->name, "model.", 6) == 0 &&
            strstr(tensor->name, "lora_A") != NULL) {
            (void)fwrite(values, sizeof(*values), tensor->count, contest->torch.to);
        }
        free(values);
        TRY(status);
    }
    return STATUS_OK;
}

/* The defaults of `job new`. */
static enum status start_torch(struct contest *contest, struct error *error)
{
    static const double said[] = {LENGTH, 1,     RANK, 2 * RANK, 2e-4, /* seed, alpha, rate */
                                  0.9,    0.999, 1e-8, 0.0,      1.0};
    char arguments[3 + NUMBERS][TORCH_ARGUMENT_MAX];

    (void)snprintf(arguments[0], sizeof(arguments[0]), "%s", contest->weights);
    (void)snprintf(arguments[1], sizeof(arguments[1]), "%s", contest->tokens);
    (void)snprintf(arguments[2], sizeof(arguments[2]), "%d", contest->threads);
    for (int i = 0; i < NUMBERS; i++) {
        (void)snprintf(arguments[3 + i], sizeof(arguments[3 + i]), "%.17g", said[i]);
    }
    return torch_child_start(&contest->torch, "bench/peer_lora.py", arguments, 3 + NUMBERS, error);
}

static enum status open_all(struct contest *contest, const char *place, struct error *error)
{
    struct error missing;

    TRY(make_job(contest, place, error));
    TRY(open_run(contest, error));
    error_init(&missing);
    contest->has_torch = start_torch(contest, &missing) == STATUS_OK;
    TRY(write_first_state(contest, error));
    if (contest->has_torch && torch_child_ready(&contest->torch, &missing) != STATUS_OK) {
        contest->has_torch = false;
    }
    if (!contest->has_torch) {
        fprintf(stderr, "  without PyTorch: %s (%s)\n", missing.text, missing.advice);
    }
    return STATUS_OK;
}

static void close_all(struct contest *contest)
{
    torch_child_close(&contest->torch);
    run_close(&contest->run);
    data_paths_close(&contest->paths);
    job_free(contest->job);
}

/* ---- the contest --------------------------------------------------------------- */

/* Step 0 packs the frozen weights, and is not timed. */
static enum status play(struct contest *contest, uint32_t step, struct error *error)
{
    struct machine *machine = contest->run.machine;
    double start = bench_now();
    double times[2];
    struct bench_time peer = {0};
    double loss = 0.0;
    struct digest root;
    uint32_t bits = 0;
    float ours;

    TRY(machine->backend->step(machine, NULL, error));
    times[0] = bench_now() - start;
    start = bench_now();
    TRY(state_root_find(&root, NULL, machine, contest->threads, error));
    times[1] = bench_now() - start;
    TRY(run_loss(&bits, &contest->run, error));
    memcpy(&ours, &bits, sizeof(ours));
    if (contest->has_torch) {
        double apart;

        (void)fwrite(&step, sizeof(step), 1, contest->torch.to);
        TRY(torch_child_step(&contest->torch, &loss, &peer, error));
        apart = fabs(loss / (double)ours - 1.0);
        if (!(apart <= contest->worst)) { /* a NaN is the worst */
            contest->worst = apart;
        }
    }
    if (step > 0) {
        contest->ours[step - 1] = times[0];
        contest->root[step - 1] = times[1];
        contest->peer[step - 1] = peer.seconds;
    }
    return STATUS_OK;
}

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return (a > b) - (a < b);
}

static double median(double *seconds, int count)
{
    qsort(seconds, (size_t)count, sizeof(*seconds), by_size);
    return seconds[count / 2];
}

static void record(struct bench *bench, const struct contest *contest, const char *what,
                   const char *unit, double ours, double peer, int more_is_better)
{
    char name[BENCH_NAME_MAX];

    (void)snprintf(name, sizeof(name), "%s, rank %d, %d tokens, %s", contest->shape->name, RANK,
                   LENGTH, what);
    bench_record(bench, name, unit, ours, peer, more_is_better);
}

/* Returns how many promises are broken. */
static int report(struct bench *bench, struct contest *contest)
{
    const double checkpoint = (double)tape_footprint(contest->job->tape).state;
    struct rusage usage;
    double memory;
    char what[32];

    (void)getrusage(RUSAGE_SELF, &usage);
    memory = 1024.0 * (double)usage.ru_maxrss;
    (void)snprintf(what, sizeof(what), "a step by %d thread%s", contest->threads,
                   contest->threads == 1 ? "" : "s");
    record(bench, contest, what, "s", median(contest->ours, contest->rounds),
           median(contest->peer, contest->rounds), 0);
    record(bench, contest, "state root", "ms", 1e3 * median(contest->root, contest->rounds), 0.0,
           0);
    record(bench, contest, "memory at most", "MB", memory / 1e6, 0.0, 0);
    record(bench, contest, "checkpoint", "MB", checkpoint / 1e6, 0.0, 0);
    if (contest->has_torch) {
        printf("  the peer is PyTorch %s in float32, without a library of adapters\n",
               contest->torch.version);
        fprintf(stderr, "    losses differ by at most %.1e from PyTorch %s\n", contest->worst,
                contest->torch.version);
    }
    return (memory > MEMORY_MAX) + (checkpoint > CHECKPOINT_MAX) +
           !(contest->worst <= LOSS_DIFFERENCE_MAX);
}

static int run_shape(struct bench *bench, const struct shape *shape)
{
    const char *rounds = getenv("LORA_ROUNDS");
    const char *threads = getenv("LORA_THREADS");
    struct contest *contest = calloc(1, sizeof(*contest));
    char place[FOLDER_PATH_MAX];
    struct error error;
    enum status status = STATUS_OK;
    int failures = 1;

    if (contest == NULL) {
        return 1;
    }
    contest->shape = shape;
    contest->rounds = rounds == NULL ? ROUNDS : (int)strtol(rounds, NULL, 10);
    contest->rounds =
        contest->rounds < 1 || contest->rounds > ROUNDS_MAX ? ROUNDS : contest->rounds;
    contest->threads = threads == NULL ? omp_get_num_procs() : (int)strtol(threads, NULL, 10);
    error_init(&error);
    folder_make(place);
    TRY_OUT(open_all(contest, place, &error));
    for (int step = 0; step <= contest->rounds; step++) {
        TRY_OUT(play(contest, (uint32_t)step, &error));
    }
    failures = report(bench, contest);
out:
    if (status != STATUS_OK) {
        fprintf(stderr, "lora: %s\n", error.text);
    }
    close_all(contest);
    folder_remove(place);
    free(contest);
    return failures;
}

int main(int argc, char **argv)
{
    const char *name = getenv("LORA_CASE");
    struct bench bench;
    int failures = 0;

    bench_init(&bench, "LoRA on frozen weights", "PyTorch float32", argc, argv);
    if (system("command -v python3 >/dev/null 2>&1") != 0 || access(PROGRAM, X_OK) != 0) {
        fprintf(stderr, "  no python3, or no " PROGRAM ": nothing is measured\n");
        return bench_finish(&bench);
    }
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        if (name == NULL ? i > 0 : strstr(shapes[i].name, name) != NULL) {
            failures += run_shape(&bench, &shapes[i]);
        }
    }
    return bench_finish(&bench) != 0 || failures != 0;
}
