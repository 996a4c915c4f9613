/*
 * commit_bench.c - what committing costs: the share of a training step that hashing its state
 * takes, after the step and beside the next one where a core is idle; proving one element of a step
 * by running it once more in trace mode; and what the trace of a step of micro-batches saves by
 * committing to its accumulators first.
 *
 * The peer of the hashing is one stream of libcrypto over the same bytes: the cost of a plain
 * digest of the weights, without trees, proofs or threads.
 *
 *     COMMIT_CASE=124M     only cases whose name holds this
 *     COMMIT_ROUNDS=5      steps of each, instead of the case's own number
 *     COMMIT_THREADS=1     of the steps, instead of all
 *     COMMIT_OPENING=0     no element of a trace
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <omp.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/support/bench.h"
#include "bench/support/gpt2_case.h"
#include "proofs/commit/state_root.h"
#include "proofs/commit/trace.h"
#include "tests/support/numeric/model_state.h"

#define ROUNDS_MAX 100
#define SAMPLES    4096

struct gpt2_row {
    struct gpt2_size size;
    int rounds;
    bool opened; /* and an element of a trace is opened */
};

static const struct gpt2_row gpt2_rows[] = {
    {{"gpt2 tiny", 2, 64, 2, 256, 80, 2, 64, 1}, 41, true},
    {{"gpt2 10M, 2048 tokens", 6, 384, 6, 256, 256, 8, 256, 1}, 7, true},
    {{"gpt2 124M, 1024 tokens", 12, 768, 12, 50257, 1024, 2, 512, 1}, 3, true},
};

/* A step in trace mode; no rounds: its bytes are counted alone. */
static const struct gpt2_row traced_rows[] = {
    {{"gpt2 tiny, 8 micro-batches", 2, 64, 2, 256, 80, 2, 64, 8}, 11, false},
    {{"gpt2 10M, 8 micro-batches", 6, 384, 6, 256, 256, 1, 256, 8}, 1, false},
    {{"gpt2 124M, 8 micro-batches of 1024", 12, 768, 12, 50257, 1024, 1, 1024, 8}, 0, false},
};

struct small_row {
    const char *name;
    enum model_kind kind;
    int rounds;
};

static const struct small_row small_rows[] = {
    {"mlp, as by default", MODEL_MLP, 41},
    {"convnet, as by default", MODEL_CONVNET, 21},
    {"llama, as by default", MODEL_LLAMA, 21},
};

static double median(double *values, int count)
{
    for (int i = 1; i < count; i++) {
        for (int j = i; j > 0 && values[j] < values[j - 1]; j--) {
            double kept = values[j];

            values[j] = values[j - 1];
            values[j - 1] = kept;
        }
    }
    return values[count / 2];
}

static int rounds_of(int rounds)
{
    const char *setting = getenv("COMMIT_ROUNDS");
    long wanted = setting == NULL ? rounds : strtol(setting, NULL, 10);

    return wanted < 1 ? 1 : wanted > ROUNDS_MAX ? ROUNDS_MAX : (int)wanted;
}

/* ---- the share of a step --------------------------------------------------- */

static double hash_by_peer(struct machine *machine)
{
    double start = bench_now();
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256_CTX hash;

    SHA256_Init(&hash);
    for (uint32_t i = 0; i < machine->tape->state_count; i++) {
        uint32_t id = machine->tape->states[i].before;

        SHA256_Update(&hash, machine->backend->peek(machine, id),
                      commit_tensor_size(&machine->tape->tensors[id]));
    }
    SHA256_Final(digest, &hash);
    return bench_now() - start;
}

/* Threads of the machines, as the program would use them. */
static int threads_of_steps(void)
{
    const char *setting = getenv("COMMIT_THREADS");
    long wanted = setting == NULL ? 0 : strtol(setting, NULL, 10);

    return wanted < 1 || wanted > omp_get_max_threads() ? omp_get_max_threads() : (int)wanted;
}

static enum status open_options(struct machine_options *options, struct error *error)
{
    TRY(machine_options_default(options, error));
    options->thread_count = threads_of_steps();
    return STATUS_OK;
}

/* What the rounds took. Each makes two steps: one that is hashed afterwards, and one beside which
 * the state before it is hashed. */
struct shares {
    double step[ROUNDS_MAX];
    double step_used[ROUNDS_MAX]; /* of the processor */
    double root[ROUNDS_MAX];
    double root_used[ROUNDS_MAX];
    double beside[ROUNDS_MAX]; /* the step and the hash beside it */
    double beside_used[ROUNDS_MAX];
    double waited[ROUNDS_MAX]; /* of beside: the step for the hash */
    double peer[ROUNDS_MAX];
};

static enum status time_root(struct shares *shares, int at, struct machine *machine,
                             struct error *error)
{
    struct bench_time start = bench_clocks();
    struct bench_time took;
    struct digest root;
    bool finite;

    TRY(machine->backend->step(machine, NULL, error));
    took = bench_since(&start);
    shares->step[at] = took.seconds;
    shares->step_used[at] = took.processor;
    start = bench_clocks();
    TRY(state_root_find(&root, &finite, machine, threads_of_steps(), error));
    took = bench_since(&start);
    shares->root[at] = took.seconds;
    shares->root_used[at] = took.processor;
    return STATUS_OK;
}

static enum status time_beside(struct shares *shares, int at, struct machine *machine,
                               struct error *error)
{
    struct bench_time start = bench_clocks();
    struct bench_time took;
    struct digest root;
    uint64_t waited;
    bool finite;

    TRY(state_root_begin(machine, threads_of_steps(), error));
    TRY(machine->backend->step(machine, NULL, error));
    TRY(state_root_end(&root, &finite, &waited, machine, error));
    took = bench_since(&start);
    shares->beside[at] = took.seconds;
    shares->beside_used[at] = took.processor;
    shares->waited[at] = (double)waited * 1e-9;
    return STATUS_OK;
}

static void record_share(struct bench *bench, const char *name, const char *what, double step,
                         double both)
{
    char row[BENCH_NAME_MAX];

    (void)snprintf(row, sizeof(row), "%s: %s", name, what);
    bench_record(bench, row, "%", 100.0 * (both - step) / both, 0.0, 0);
}

static void record_shares(struct bench *bench, struct shares *shares, const char *name, int rounds,
                          bool beside)
{
    const double step = median(shares->step, rounds);
    const double step_used = median(shares->step_used, rounds);
    const double root = median(shares->root, rounds);
    const double root_used = median(shares->root_used, rounds);
    char row[BENCH_NAME_MAX];

    (void)snprintf(row, sizeof(row), "%s: a step", name);
    bench_record(bench, row, "ms", step * 1e3, 0.0, 0);
    (void)snprintf(row, sizeof(row), "%s: its state root", name);
    bench_record(bench, row, "ms", root * 1e3, median(shares->peer, rounds) * 1e3, 0);
    (void)snprintf(row, sizeof(row), "%s: a step, of the processors", name);
    bench_record(bench, row, "ms", step_used * 1e3, 0.0, 0);
    (void)snprintf(row, sizeof(row), "%s: its state root, of the processors", name);
    bench_record(bench, row, "ms", root_used * 1e3, 0.0, 0);
    record_share(bench, name, "share of committing", step, step + root);
    record_share(bench, name, "share of committing, of the processors", step_used,
                 step_used + root_used);
    if (beside) {
        record_share(bench, name, "share of committing beside the next step", step,
                     median(shares->beside, rounds));
        record_share(bench, name, "the same, of the processors", step_used,
                     median(shares->beside_used, rounds));
        (void)snprintf(row, sizeof(row), "%s: the next step waits for the hash", name);
        bench_record(bench, row, "ms", median(shares->waited, rounds) * 1e3, 0.0, 0);
    }
}

static enum status measure_share(struct bench *bench, struct machine *machine, const char *name,
                                 int rounds, struct error *error)
{
    const bool beside = state_root_can_overlap(machine, threads_of_steps());
    struct shares *shares = calloc(1, sizeof(*shares));
    enum status status = shares == NULL ? STATUS_NO_MEMORY : STATUS_OK;

    TRY_OUT(status);
    for (int i = -1; i < rounds; i++) { /* the first warms everything up */
        int at = i < 0 ? 0 : i;

        TRY_OUT(time_root(shares, at, machine, error));
        shares->peer[at] = hash_by_peer(machine);
        if (beside) {
            TRY_OUT(time_beside(shares, at, machine, error));
        }
    }
    record_shares(bench, shares, name, rounds, beside);
out:
    free(shares);
    return status;
}

/* ---- one element of a trace ------------------------------------------------- */

/* The largest tensor that a step makes: opening it costs most. */
static uint32_t largest_item(const struct tape *tape)
{
    uint32_t best = 0;

    for (uint32_t item = 0; item < trace_item_count(tape); item++) {
        const struct tensor *tensor = &tape->tensors[trace_tensor_at(tape, item)];

        if (commit_tensor_size(tensor) >
            commit_tensor_size(&tape->tensors[trace_tensor_at(tape, best)])) {
            best = item;
        }
    }
    return best;
}

static enum status measure_opening(struct bench *bench, struct machine *machine, const char *name,
                                   struct error *error)
{
    struct trace_opening *opening = calloc(1, sizeof(*opening));
    uint8_t bytes[TRACE_OPENING_BYTES_MAX];
    char row[BENCH_NAME_MAX];
    double seconds[2] = {0.0, 0.0};
    double checking = 0.0;
    enum status status = opening == NULL ? STATUS_NO_MEMORY : STATUS_OK;

    TRY_OUT(status);
    for (uint32_t opened = 0; opened < 2; opened++) {
        struct trace trace;
        double start = bench_now();
        uint32_t bits;

        opening->item = largest_item(machine->tape);
        opening->element =
            12345 % machine->tape->tensors[trace_tensor_at(machine->tape, opening->item)].count;
        TRY_OUT(trace_run(&trace, machine, opening, opened, error));
        seconds[opened] = bench_now() - start;
        if (opened == 1) {
            start = bench_now();
            if (trace_opening_check(&bits, opening, &trace.root, trace.tape) != VERDICT_VALID) {
                status = error_set(error, STATUS_BAD_FORMAT, "an opening of ours is refused");
            }
            checking = bench_now() - start;
        }
        trace_release(&trace);
        TRY_OUT(status);
    }
    (void)snprintf(row, sizeof(row), "%s: trace of a step", name);
    bench_record(bench, row, "ms", seconds[0] * 1e3, 0.0, 0);
    (void)snprintf(row, sizeof(row), "%s: the same with one element opened", name);
    bench_record(bench, row, "ms", seconds[1] * 1e3, 0.0, 0);
    (void)snprintf(row, sizeof(row), "%s: bytes of the opening", name);
    bench_record(bench, row, "bytes", (double)trace_opening_write(bytes, opening), 0.0, 0);
    (void)snprintf(row, sizeof(row), "%s: checking it", name);
    bench_record(bench, row, "us", checking * 1e6, 0.0, 0);
out:
    free(opening);
    return status;
}

/* ---- a trace of micro-batches ------------------------------------------------- */

static double bytes_of_items(const struct tape *tape, uint32_t count)
{
    double bytes = 0;

    for (uint32_t item = 0; item < count; item++) {
        bytes += (double)commit_tensor_size(&tape->tensors[trace_tensor_at(tape, item)]);
    }
    return bytes;
}

/* The trace alone, then with the lists of all micro-batches. */
static enum status time_traces(double seconds[2], struct machine *machine, int rounds,
                               struct error *error)
{
    double times[2][ROUNDS_MAX] = {{0.0}};

    for (int i = 0; i < rounds; i++) {
        for (int all = 0; all < 2; all++) {
            double start = bench_now();
            struct trace trace;

            TRY(all == 0 ? trace_run(&trace, machine, NULL, 0, error)
                         : trace_watch_all(&trace, machine, NULL, error));
            times[all][i] = bench_now() - start;
            trace_release(&trace);
        }
    }
    seconds[0] = median(times[0], rounds);
    seconds[1] = median(times[1], rounds);
    return STATUS_OK;
}

static enum status run_traced(struct bench *bench, const struct gpt2_row *row, struct error *error)
{
    static const char *const what[2] = {"trace root", "with all lists"};
    struct machine_options options;
    struct machine *machine = NULL;
    double seconds[2] = {0.0, 0.0};
    struct gpt2_case one;
    enum status status;

    TRY(open_options(&options, error));
    options.trace = true;
    TRY(gpt2_case_init(&one, &row->size, error));
    if (row->rounds > 0) {
        TRY_OUT(gpt2_case_open(&machine, &one, &options, error));
        TRY_OUT(time_traces(seconds, machine, rounds_of(row->rounds), error));
    }
    for (int all = 0; all < 2; all++) {
        const struct tape *tape = one.model.tape;
        uint32_t count = all == 0 ? trace_list_count(tape) : trace_item_count(tape);
        char name[BENCH_NAME_MAX];

        (void)snprintf(name, sizeof(name), "%s: %s", row->size.name, what[all]);
        bench_record(bench, name, "MB", bytes_of_items(tape, count) * 1e-6, 0.0, 0);
        if (row->rounds > 0) {
            (void)snprintf(name, sizeof(name), "%s: %s, time", row->size.name, what[all]);
            bench_record(bench, name, "ms", seconds[all] * 1e3, 0.0, 0);
        }
    }
    status = STATUS_OK;
out:
    if (machine != NULL) {
        machine->backend->close(machine);
    }
    gpt2_case_release(&one);
    return status;
}

/* ---- the cases --------------------------------------------------------------- */

static bool without_opening(void)
{
    const char *setting = getenv("COMMIT_OPENING");

    return setting != NULL && strcmp(setting, "0") == 0;
}

static enum status run_gpt2(struct bench *bench, const struct gpt2_row *row, struct error *error)
{
    struct machine_options options;
    struct machine *machine = NULL;
    struct gpt2_case one;
    enum status status;

    TRY(open_options(&options, error));
    TRY(gpt2_case_init(&one, &row->size, error));
    TRY_OUT(gpt2_case_open(&machine, &one, &options, error));
    TRY_OUT(measure_share(bench, machine, row->size.name, rounds_of(row->rounds), error));
    if (row->opened && !without_opening()) {
        machine->backend->close(machine);
        machine = NULL;
        options.trace = true;
        TRY_OUT(gpt2_case_open(&machine, &one, &options, error));
        TRY_OUT(measure_opening(bench, machine, row->size.name, error));
    }
out:
    if (machine != NULL) {
        machine->backend->close(machine);
    }
    gpt2_case_release(&one);
    return status;
}

/* A step on random bytes costs as much as any. */
static void *random_bytes(uint64_t size, uint8_t limit)
{
    uint8_t *bytes = malloc(size);
    uint32_t state = 1;

    for (uint64_t i = 0; bytes != NULL && i < size; i++) {
        state = state * 1664525u + 1013904223u;
        bytes[i] = (uint8_t)((state >> 24) % limit);
    }
    return bytes;
}

static enum status open_small(struct machine **machine, const struct model *model, const void *data,
                              const void *labels, struct error *error)
{
    struct machine_options options;

    TRY(open_options(&options, error));
    TRY(backend_cpu.open(machine, model->tape, &options, error));
    TRY(backend_cpu.bind(*machine, model->data, data, error));
    if (model->labels != TENSOR_NONE) {
        TRY(backend_cpu.bind(*machine, model->labels, labels, error));
    }
    for (uint32_t i = 0; i < model->constant_count; i++) {
        TRY(backend_cpu.write(*machine, model->constants[i].tensor, model->constants[i].bytes,
                              error));
    }
    for (uint32_t i = 0; i < model->tape->state_count; i++) {
        enum status status;
        uint32_t id = model->tape->states[i].before;
        void *bytes = malloc(commit_tensor_size(&model->tape->tensors[id]));

        if (bytes == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "no memory for a state");
        }
        model_first_state(bytes, model, id);
        status = backend_cpu.write(*machine, id, bytes, error);
        free(bytes);
        TRY(status);
    }
    return STATUS_OK;
}

static enum status run_small(struct bench *bench, const struct small_row *row, struct error *error)
{
    struct model_options options;
    struct machine *machine = NULL;
    struct model model;
    uint64_t width = 1;
    void *data;
    void *labels;
    enum status status;

    model_options_default(&options, row->kind);
    options.data_dtype = DTYPE_U8;
    options.data_count = row->kind == MODEL_LLAMA ? SAMPLES * 16 : SAMPLES;
    TRY(model_build(&model, &options, error));
    if (row->kind != MODEL_LLAMA) {
        width = model.tape->tensors[model.data].dims[1];
    }
    data = random_bytes(options.data_count * width, 128);
    labels = random_bytes(SAMPLES, (uint8_t)(options.classes == 0 ? 1 : options.classes));
    TRY_OUT(data == NULL || labels == NULL
                ? error_set(error, STATUS_NO_MEMORY, "no memory for data")
                : open_small(&machine, &model, data, labels, error));
    TRY_OUT(measure_share(bench, machine, row->name, rounds_of(row->rounds), error));
out:
    if (machine != NULL) {
        machine->backend->close(machine);
    }
    model_release(&model);
    free(data);
    free(labels);
    return status;
}

static bool wanted(const char *name)
{
    const char *part = getenv("COMMIT_CASE");

    return part == NULL || strstr(name, part) != NULL;
}

static enum status run_all(struct bench *bench, struct error *error)
{
    for (size_t i = 0; i < sizeof(small_rows) / sizeof(small_rows[0]); i++) {
        if (wanted(small_rows[i].name)) {
            TRY(run_small(bench, &small_rows[i], error));
        }
    }
    for (size_t i = 0; i < sizeof(gpt2_rows) / sizeof(gpt2_rows[0]); i++) {
        if (wanted(gpt2_rows[i].size.name)) {
            TRY(run_gpt2(bench, &gpt2_rows[i], error));
        }
    }
    for (size_t i = 0; i < sizeof(traced_rows) / sizeof(traced_rows[0]); i++) {
        if (wanted(traced_rows[i].size.name)) {
            TRY(run_traced(bench, &traced_rows[i], error));
        }
    }
    return STATUS_OK;
}

int main(int argc, char **argv)
{
    struct bench bench;
    struct error error;

    error_init(&error);
    bench_init(&bench, "commit", "libcrypto, one stream", argc, argv);
    if (run_all(&bench, &error) != STATUS_OK) {
        fprintf(stderr, "commit: %s\n", error.text);
        return 1;
    }
    return bench_finish(&bench);
}
