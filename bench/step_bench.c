/*
 * step_bench.c - time of whole GPT-2 training steps, by the wall and of the processor: forward,
 * cross-entropy, backward, clipping, AdamW. Against an unreproducible step with OpenBLAS and fast
 * math, and against PyTorch where it is installed, in float32 and with bfloat16 autocast, as
 * people train; all from the same first state and on the same batches.
 *
 * They take turns, step by step. The program compares the losses of every step and fails where they
 * differ.
 *
 *     STEP_CASE=10M        only cases whose name holds this
 *     STEP_THREADS=1       only that many threads
 *     STEP_ROUNDS=3        timed steps of each, instead of the case's own number
 *     STEP_ISA=avx2        all sides held to AVX2, as on a processor that has no more
 *     STEP_PLAIN=1         gradients of weights do not shift their tokens
 *     STEP_PROFILE=1       where the time of our steps goes; the hook costs a clock per operation
 */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/support/bench.h"
#include "bench/support/gpt2_baseline.h"
#include "bench/support/gpt2_case.h"
#include "bench/support/gpt2_torch.h"
#include "bench/support/profile.h"

#define ROUNDS_MAX                   1000
/*
 * Relative. 14 bits differ from binary32 by up to 6e-5 here; the exact GELU instead of tanh and a
 * wrong decay and no clipping, in one peer alone, by 5e-4.
 */
#define LOSS_DIFFERENCE_MAX          2e-4
#define LOSS_DIFFERENCE_BFLOAT16_MAX 5e-3 /* eight bits of a product instead of 24 */
#define LOSS_STEPS_CHECKED           10
#define THREADS_MEASURED             2

struct size_case {
    struct gpt2_size size;
    int rounds;
};

static const struct size_case sizes[] = {
    {{"gpt2 tiny", 2, 64, 2, 256, 80, 2, 64, 1}, 11},
    {{"gpt2 10M", 6, 384, 6, 256, 256, 8, 256, 1}, 11},
    {{"gpt2 124M", 12, 768, 12, 50257, 1024, 2, 512, 1}, 5},
};

enum party { OURS, BASELINE, TORCH, TORCH_BFLOAT16, PARTY_COUNT };

static const char *const peers[PARTY_COUNT] = {"", "OpenBLAS and fast math", "PyTorch float32",
                                               "PyTorch bfloat16 autocast"};

struct contest {
    struct gpt2_case one;
    struct machine *machine;
    struct gpt2_baseline *baseline;
    struct torch_child torch[PARTY_COUNT]; /* of the parties from TORCH on */
    bool has[PARTY_COUNT];                 /* who takes part */
    int threads;
    double loss[PARTY_COUNT];
    struct bench_time took[PARTY_COUNT][ROUNDS_MAX];
    double worst[PARTY_COUNT]; /* the largest relative difference to our loss */
};

/* ---- one step of each --------------------------------------------------- */

static enum status step_ours(struct contest *contest, struct bench_time *took, struct error *error)
{
    struct bench_time start = bench_clocks();
    float loss;

    TRY(backend_cpu.step(contest->machine, NULL, error));
    *took = bench_since(&start);
    TRY(backend_cpu.read(contest->machine, contest->one.model.tape->loss, &loss, error));
    contest->loss[OURS] = loss;
    return STATUS_OK;
}

static void step_baseline(struct contest *contest, struct bench_time *took)
{
    struct bench_time start = bench_clocks();

    contest->loss[BASELINE] = gpt2_baseline_step(contest->baseline);
    *took = bench_since(&start);
}

/* Lets the idle threads of one side stop spinning before the next side runs. */
static void pause_between(void)
{
    const struct timespec moment = {.tv_nsec = 30000000};

    (void)nanosleep(&moment, NULL);
}

static enum status step_all(struct contest *contest, uint32_t step, struct bench_time *took,
                            struct error *error)
{
    gpt2_case_batch(&contest->one, step);
    pause_between();
    TRY(step_ours(contest, &took[OURS], error));
    if (contest->has[BASELINE]) {
        pause_between();
        step_baseline(contest, &took[BASELINE]);
    }
    for (int party = TORCH; party < PARTY_COUNT; party++) {
        if (contest->has[party]) {
            pause_between();
            TRY(gpt2_torch_step(&contest->torch[party], &contest->loss[party], &took[party],
                                &contest->one, error));
        }
    }
    for (int party = BASELINE; party < PARTY_COUNT && step < LOSS_STEPS_CHECKED; party++) {
        double apart = fabs(contest->loss[party] / contest->loss[OURS] - 1.0);

        /* A NaN counts as the worst. */
        if (contest->has[party] && !(apart <= contest->worst[party])) {
            contest->worst[party] = apart;
        }
    }
    return STATUS_OK;
}

/* ---- an instruction set for all ------------------------------------------ */

static bool held_to_avx2(void)
{
    const char *isa = getenv("STEP_ISA");

    return isa != NULL && strcmp(isa, "avx2") == 0;
}

/*
 * Libraries choose their kernels when they are loaded, so the program starts again with what each
 * of them reads; the children in PyTorch inherit it.
 */
static void hold_to_avx2(char **argv)
{
    if (!held_to_avx2() || getenv("OPENBLAS_CORETYPE") != NULL) {
        return;
    }
    (void)setenv("LOCKSTEP_ISA", "avx2", 1);
    (void)setenv("OPENBLAS_CORETYPE", "Haswell", 1);
    (void)setenv("ATEN_CPU_CAPABILITY", "avx2", 1);
    (void)setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
    (void)setenv("MKL_ENABLE_INSTRUCTIONS", "AVX2", 1);
    (void)execv("/proc/self/exe", argv);
}

/* ---- a contest ---------------------------------------------------------- */

static enum status open_all(struct contest *contest, const struct gpt2_size *size, int threads,
                            struct profile *profile, struct error *error)
{
    struct machine_options options;
    struct error missing;

    TRY(machine_options_default(&options, error));
    contest->threads = threads;
    options.thread_count = threads;
    TRY(gpt2_case_init(&contest->one, size, error));
    if (getenv("STEP_PROFILE") != NULL) {
        profile_watch(profile, &options);
    }
    TRY(gpt2_case_open(&contest->machine, &contest->one, &options, error));
    if (getenv("STEP_PROFILE") != NULL) {
        profile_init(profile, contest->machine->tape);
    }
    if (!held_to_avx2()) { /* its loops are compiled for this processor */
        contest->baseline = gpt2_baseline_new(&contest->one, threads);
        if (contest->baseline == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "no memory for the baseline");
        }
        contest->has[BASELINE] = true;
    }
    for (int party = TORCH; party < PARTY_COUNT; party++) {
        error_init(&missing);
        contest->has[party] = gpt2_torch_open(&contest->torch[party], &contest->one, threads,
                                              party == TORCH_BFLOAT16, &missing) == STATUS_OK;
        if (!contest->has[party]) {
            fprintf(stderr, "  without %s: %s (%s)\n", peers[party], missing.text, missing.advice);
        }
    }
    return STATUS_OK;
}

static void close_all(struct contest *contest)
{
    if (contest->machine != NULL) {
        backend_cpu.close(contest->machine);
    }
    gpt2_baseline_free(contest->baseline);
    for (int party = TORCH; party < PARTY_COUNT; party++) {
        torch_child_close(&contest->torch[party]);
    }
    gpt2_case_release(&contest->one);
}

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return (a > b) - (a < b);
}

static struct bench_time median_of(const struct contest *contest, enum party party, int rounds)
{
    double seconds[ROUNDS_MAX];
    double processor[ROUNDS_MAX];

    for (int i = 0; i < rounds; i++) {
        seconds[i] = contest->took[party][i].seconds;
        processor[i] = contest->took[party][i].processor;
    }
    qsort(seconds, (size_t)rounds, sizeof(*seconds), compare_doubles);
    qsort(processor, (size_t)rounds, sizeof(*processor), compare_doubles);
    return (struct bench_time){seconds[rounds / 2], processor[rounds / 2]};
}

/* Returns how many peers have other losses. */
static int report(struct bench *bench, struct contest *contest, int rounds)
{
    double tokens = (double)gpt2_case_rows(&contest->one);
    struct bench_time ours = median_of(contest, OURS, rounds);
    int failures = 0;

    for (int party = BASELINE; party < PARTY_COUNT; party++) {
        char name[BENCH_NAME_MAX];
        struct bench_time peer = median_of(contest, (enum party)party, rounds);
        double most = party == TORCH_BFLOAT16 ? LOSS_DIFFERENCE_BFLOAT16_MAX : LOSS_DIFFERENCE_MAX;

        if (!contest->has[party]) {
            continue;
        }
        (void)snprintf(name, sizeof(name), "%s%s, %d thread%s, %s", contest->one.name,
                       held_to_avx2() ? ", AVX2" : "", contest->threads,
                       contest->threads == 1 ? "" : "s", peers[party]);
        bench_record(bench, name, "tokens/s", tokens / ours.seconds, tokens / peer.seconds, 1);
        bench_record(bench, name, "s of processor", ours.processor, peer.processor, 0);
        fprintf(stderr, "    losses differ by at most %.1e\n", contest->worst[party]);
        if (!(contest->worst[party] <= most)) {
            fprintf(stderr, "    more than %.1e: this is not the same step\n", most);
            failures++;
        }
    }
    return failures;
}

static int run(struct bench *bench, struct contest *contest, const struct size_case *size,
               int threads)
{
    const char *chosen = getenv("STEP_ROUNDS");
    int rounds = chosen == NULL ? size->rounds : (int)strtol(chosen, NULL, 10);
    struct profile profile = {0};
    struct error error;
    enum status status;
    int failures = 1;

    rounds = rounds < 1 ? 1 : rounds > ROUNDS_MAX ? ROUNDS_MAX : rounds;
    error_init(&error);
    memset(contest, 0, sizeof(*contest));
    status = open_all(contest, &size->size, threads, &profile, &error);
    /* Step 0 warms everything up and is not timed. */
    for (int step = 0; step <= rounds && status == STATUS_OK; step++) {
        struct bench_time took[PARTY_COUNT] = {0};

        status = step_all(contest, (uint32_t)step, took, &error);
        for (int party = 0; party < PARTY_COUNT && step > 0; party++) {
            contest->took[party][step - 1] = took[party];
        }
        if (step == 0) {
            profile_clear(&profile);
        }
    }
    if (status == STATUS_OK) {
        failures = report(bench, contest, rounds);
        profile_print(&profile, size->size.name, rounds);
    } else {
        fprintf(stderr, "step: %s\n", error.text);
    }
    profile_release(&profile);
    close_all(contest);
    return failures;
}

int main(int argc, char **argv)
{
    const char *name = getenv("STEP_CASE");
    const char *only_threads = getenv("STEP_THREADS");
    long only = only_threads == NULL ? 0 : strtol(only_threads, NULL, 10);
    struct contest *contest;
    struct bench bench;
    int failures = 0;

    hold_to_avx2(argv);
    bench_init(&bench, "step", "the same step elsewhere", argc, argv);
    contest = malloc(sizeof(*contest));
    if (contest == NULL) {
        fprintf(stderr, "step: no memory\n");
        return 1;
    }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (int threads = 1; threads <= THREADS_MEASURED; threads++) {
            /* The tiny case only tests the comparison, so it runs on request. */
            bool wanted = name == NULL ? i > 0 : strstr(sizes[i].size.name, name) != NULL;

            if (wanted && threads <= omp_get_num_procs() && (only == 0 || threads == only)) {
                failures += run(&bench, contest, &sizes[i], threads);
            }
        }
    }
    free(contest);
    return bench_finish(&bench) != 0 || failures != 0;
}
