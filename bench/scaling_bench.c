/*
 * scaling_bench.c - what a GPT-2 training step costs as it grows: in length, in width and in depth.
 * Processor time, wall time and memory, planned and really used, with and without recomputing,
 * beside the same step in PyTorch float32. scaling_plot.py draws the result.
 *
 * Each measurement is a process of its own, so that its peak of memory is its own; the parties take
 * turns. PyTorch is left out, with a sentence, where it would keep more bytes of attention scores
 * than SCALING_TORCH_MB: it keeps those of all heads of all layers.
 *
 *     SCALING_SERIES=length   only the series whose name holds this
 *     SCALING_MOST=2048       no larger value of a series
 *     SCALING_MODEL=124M      the length series with GPT-2 124M instead of the small model
 *     SCALING_THREADS=1       of each party
 *     SCALING_TURNS=3         of each party at a point; none begins later than 60 s after the first
 *     SCALING_TORCH_MB=3000
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/support/bench.h"
#include "bench/support/gpt2_case.h"
#include "bench/support/gpt2_torch.h"

#define VALUES_MAX     8
#define TURNS_MAX      9
#define STEPS_TIMED    2
#define SECONDS_ENOUGH 60.0

enum party { PLAIN, RECOMPUTE, TORCH, PARTY_COUNT };

struct series {
    const char *name;
    uint32_t values[VALUES_MAX]; /* rising; 0 ends them */
};

static const struct series all_series[] = {
    {"length", {256, 512, 1024, 2048, 4096, 8192}},
    {"width", {64, 128, 256, 512, 1024}},
    {"depth", {1, 2, 4, 8, 16}},
};

/* What a process says of its steps. */
struct outcome {
    bool is_there;
    double seconds;
    double processor;
    double planned; /* bytes; PyTorch plans nothing */
    double used;    /* bytes of the whole process, at most */
};

/* One of a series. */
struct point {
    const struct series *series;
    uint32_t value;
    struct gpt2_size size;
    int turns;
    struct outcome outcomes[PARTY_COUNT][TURNS_MAX];
};

static long wish(const char *name, long usual, long least, long most)
{
    const char *text = getenv(name);
    const long value = text == NULL ? usual : strtol(text, NULL, 10);

    return value < least ? least : value > most ? most : value;
}

static bool is_large_model(void)
{
    const char *model = getenv("SCALING_MODEL");

    return model != NULL && strcmp(model, "124M") == 0;
}

static struct gpt2_size size_of(const struct series *series, uint32_t value)
{
    struct gpt2_size size = {"gpt2", 4, 256, 4, 256, 512, 1, 512, 1};

    if (strcmp(series->name, "length") == 0) {
        if (is_large_model()) {
            size = (struct gpt2_size){"gpt2", 12, 768, 12, 50257, 0, 1, 0, 1};
        }
        size.length = value;
        size.positions = value;
    } else if (strcmp(series->name, "width") == 0) {
        size.width = value;
        size.heads = value / 64;
    } else {
        size.layers = value;
    }
    return size;
}

static int thread_wish(void)
{
    return (int)wish("SCALING_THREADS", 1, 1, 1024);
}

/* ---- our side, in a child ------------------------------------------------------- */

static enum status measure_steps(struct outcome *outcome, const struct gpt2_size *size,
                                 bool recompute, struct error *error)
{
    struct machine_options options;
    struct machine *machine = NULL;
    struct bench_time start = {0};
    struct gpt2_case one;
    struct rusage usage;
    uint64_t planned = 0;
    enum status status;

    TRY(machine_options_default(&options, error));
    options.thread_count = thread_wish();
    options.recompute = recompute;
    TRY(gpt2_case_init(&one, size, error));
    TRY_OUT(machine_size(&planned, one.model.tape, &options, error));
    TRY_OUT(gpt2_case_open(&machine, &one, &options, error));
    for (int step = 0; step <= STEPS_TIMED; step++) { /* the first warms everything up */
        if (step == 1) {
            start = bench_clocks();
        }
        TRY_OUT(machine->backend->step(machine, NULL, error));
    }
    start = bench_since(&start);
    (void)getrusage(RUSAGE_SELF, &usage);
    *outcome = (struct outcome){.is_there = true,
                                .seconds = start.seconds / STEPS_TIMED,
                                .processor = start.processor / STEPS_TIMED,
                                .planned = (double)planned,
                                .used = 1024.0 * (double)usage.ru_maxrss};
out:
    if (machine != NULL) {
        machine->backend->close(machine);
    }
    gpt2_case_release(&one);
    return status;
}

/* The program called as a child: SERIES VALUE RECOMPUTE. Writes the outcome to its output. */
static int tell_outcome(char **words)
{
    struct outcome outcome = {0};
    struct error error;

    error_init(&error);
    for (size_t i = 0; i < sizeof(all_series) / sizeof(all_series[0]); i++) {
        const struct series *series = &all_series[i];
        struct gpt2_size size;

        if (strcmp(series->name, words[0]) != 0) {
            continue;
        }
        size = size_of(series, (uint32_t)strtoul(words[1], NULL, 10));
        if (measure_steps(&outcome, &size, words[2][0] == '1', &error) != STATUS_OK) {
            fprintf(stderr, "scaling: %s\n", error.text);
        }
    }
    return write(STDOUT_FILENO, &outcome, sizeof(outcome)) == (ssize_t)sizeof(outcome) ? 0 : 1;
}

/* A new program, and not only a new process: what the parent's threads held would stay held. */
static void start_child(const struct point *point, bool recompute, int output)
{
    char name[] = "scaling";
    char series[16];
    char value[16];
    char flag[2] = {recompute ? '1' : '0', '\0'};
    char *const words[] = {name, series, value, flag, NULL};

    (void)snprintf(series, sizeof(series), "%s", point->series->name);
    (void)snprintf(value, sizeof(value), "%u", point->value);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody waits for its figures then */
    (void)dup2(output, STDOUT_FILENO);
    (void)execv("/proc/self/exe", words);
    _exit(127);
}

static struct outcome run_ours(const struct point *point, bool recompute)
{
    struct outcome outcome = {0};
    int ends[2];
    pid_t child;

    if (pipe(ends) != 0) {
        return outcome;
    }
    child = fork();
    if (child == 0) {
        start_child(point, recompute, ends[1]);
    }
    close(ends[1]);
    if (child < 0 || read(ends[0], &outcome, sizeof(outcome)) != (ssize_t)sizeof(outcome)) {
        outcome.is_there = false;
    }
    close(ends[0]);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
    return outcome;
}

/* ---- PyTorch -------------------------------------------------------------------- */

/* Scores, their softmax and what the gradient keeps, of all heads of all layers. */
static double scores_of(const struct gpt2_size *size)
{
    return 3.0 * 4.0 * size->layers * size->heads * size->batch * size->length * size->length;
}

static enum status time_torch(struct outcome *outcome, const struct gpt2_size *size,
                              struct error *error)
{
    struct torch_child torch = {.child = -1};
    struct gpt2_case one;
    double loss;
    enum status status;

    TRY(gpt2_case_init(&one, size, error));
    TRY_OUT(gpt2_torch_open(&torch, &one, thread_wish(), false, error));
    for (uint32_t step = 0; step <= STEPS_TIMED; step++) {
        struct bench_time took = {0};

        gpt2_case_batch(&one, step);
        TRY_OUT(gpt2_torch_step(&torch, &loss, &took, &one, error));
        outcome->seconds += step == 0 ? 0.0 : took.seconds / STEPS_TIMED;
        outcome->processor += step == 0 ? 0.0 : took.processor / STEPS_TIMED;
    }
    outcome->used = torch.memory;
    outcome->is_there = true;
out:
    torch_child_close(&torch);
    gpt2_case_release(&one);
    return status;
}

static struct outcome run_torch(const struct point *point)
{
    const double most = 1e6 * (double)wish("SCALING_TORCH_MB", 3000, 0, 1000000);
    struct outcome outcome = {0};
    struct error error;

    error_init(&error);
    if (scores_of(&point->size) > most) {
        fprintf(stderr, "  without PyTorch at %s %u: it would keep %.0f MB of scores\n",
                point->series->name, point->value, scores_of(&point->size) * 1e-6);
    } else if (time_torch(&outcome, &point->size, &error) != STATUS_OK) {
        fprintf(stderr, "  without PyTorch at %s %u: %s (%s)\n", point->series->name, point->value,
                error.text, error.advice);
        outcome.is_there = false;
    }
    return outcome;
}

/* ---- the table ------------------------------------------------------------------ */

static int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;

    return (a > b) - (a < b);
}

/* Of a party's turns; 0 where it has none. offset: of a double in struct outcome. */
static double median_of(const struct point *point, enum party party, size_t offset)
{
    double values[TURNS_MAX];
    size_t count = 0;

    for (int turn = 0; turn < point->turns; turn++) {
        const struct outcome *outcome = &point->outcomes[party][turn];

        if (outcome->is_there) {
            memcpy(&values[count++], (const char *)outcome + offset, sizeof(values[0]));
        }
    }
    qsort(values, count, sizeof(values[0]), compare_doubles);
    return count == 0 ? 0.0 : values[count / 2];
}

static void record_one(struct bench *bench, const struct point *point, const char *what,
                       const char *unit, enum party party, size_t offset, double scale)
{
    char name[BENCH_NAME_MAX];

    (void)snprintf(name, sizeof(name), "%s %u: %s", point->series->name, point->value, what);
    bench_record(bench, name, unit, scale * median_of(point, party, offset),
                 scale * median_of(point, TORCH, offset), 0);
}

static void record_point(struct bench *bench, const struct point *point)
{
    static const struct {
        const char *what;
        const char *unit;
        size_t offset;
        double scale;
    } lines[] = {
        {"a step", "s of processor", offsetof(struct outcome, processor), 1.0},
        {"a step by the wall", "s", offsetof(struct outcome, seconds), 1.0},
        {"memory planned", "MB", offsetof(struct outcome, planned), 1e-6},
        {"memory used", "MB", offsetof(struct outcome, used), 1e-6},
    };

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        char what[BENCH_NAME_MAX];

        record_one(bench, point, lines[i].what, lines[i].unit, PLAIN, lines[i].offset,
                   lines[i].scale);
        (void)snprintf(what, sizeof(what), "%s, recomputing", lines[i].what);
        record_one(bench, point, what, lines[i].unit, RECOMPUTE, lines[i].offset, lines[i].scale);
    }
}

static bool run_point(struct bench *bench, struct point *point)
{
    const int turns = (int)wish("SCALING_TURNS", 3, 1, TURNS_MAX);
    const double start = bench_now();

    for (int turn = 0; turn < turns && (turn == 0 || bench_now() - start < SECONDS_ENOUGH);
         turn++) {
        point->outcomes[PLAIN][turn] = run_ours(point, false);
        point->outcomes[RECOMPUTE][turn] = run_ours(point, true);
        point->outcomes[TORCH][turn] = run_torch(point);
        point->turns = turn + 1;
        if (!point->outcomes[PLAIN][turn].is_there || !point->outcomes[RECOMPUTE][turn].is_there) {
            return false;
        }
    }
    record_point(bench, point);
    return true;
}

int main(int argc, char **argv)
{
    const char *chosen = getenv("SCALING_SERIES");
    const uint32_t most = (uint32_t)wish("SCALING_MOST", 1 << 20, 1, 1 << 20);
    struct bench bench;
    int failures = 0;

    if (argc == 4) {
        return tell_outcome(argv + 1);
    }
    bench_init(&bench, "scaling", "PyTorch float32", argc, argv);
    for (size_t i = 0; i < sizeof(all_series) / sizeof(all_series[0]); i++) {
        const struct series *series = &all_series[i];

        if (chosen != NULL && strstr(series->name, chosen) == NULL) {
            continue;
        }
        for (int k = 0; k < VALUES_MAX && series->values[k] != 0; k++) {
            struct point point = {
                series, series->values[k], size_of(series, series->values[k]), 0, {{{0}}}};

            if (point.value <= most) {
                failures += !run_point(&bench, &point);
            }
        }
    }
    return bench_finish(&bench) != 0 || failures != 0;
}
