/*
 * ranks_bench.c - two ranks of one thread against one process of two threads, the program itself:
 * `prover run` of a GPT-2 10M with 4,096 tokens a step in two groups, with hashing, journal and the
 * messages of the ranks. By the wall, and of all processes' processors together.
 *
 * They take turns, run by run. A run of one step is taken from one of several, so that no start is
 * counted. Fails where the roots of the states differ.
 *
 *     RANKS_ROUNDS=3   runs of each
 *     RANKS_STEPS=5    steps of the longer run, from 2 on
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench/support/bench.h"
#include "proofs/bundle/bundle.h"
#include "tests/support/folder.h"

#define PROGRAM    "build/lockstep"
#define DATA       "fixtures/text/village.u8"
#define ROUNDS_MAX 100
#define LINE_MAX_  512

enum side { THREADS, RANKS, SIDE_COUNT };

static const char *const options[SIDE_COUNT] = {"--threads 2", "--ranks 2 --threads 1"};

struct contest {
    char place[64];
    int rounds;
    int steps;
    double wall[SIDE_COUNT][ROUNDS_MAX];      /* a step */
    double processor[SIDE_COUNT][ROUNDS_MAX]; /* likewise */
    struct digest root[SIDE_COUNT];           /* after the last step */
};

static int number_from(const char *name, int fallback, int least)
{
    const char *text = getenv(name);
    const int number = text == NULL ? fallback : atoi(text);

    return number < least ? least : number > ROUNDS_MAX ? ROUNDS_MAX : number;
}

static enum status run_line(const char *line, struct error *error)
{
    return system(line) == 0 ? STATUS_OK : error_set(error, STATUS_IO, "it failed: %s", line);
}

static enum status make_job(const struct contest *contest, int steps, struct error *error)
{
    char line[LINE_MAX_];

    (void)snprintf(line, sizeof(line),
                   PROGRAM " job new --model gpt2 --data " DATA " --layers 6 --width 384 --heads 6 "
                           "--vocabulary 256 --length 256 --batch 8 --accumulate 2 "
                           "--accumulate-group 1 --warmup 0 --steps %d --segment-steps %d "
                           "--out %s/%d.job >/dev/null",
                   steps, steps, contest->place, steps);
    return run_line(line, error);
}

static double processor_of_children(void)
{
    struct rusage usage;

    (void)getrusage(RUSAGE_CHILDREN, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

static int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;

    return (a > b) - (a < b);
}

static double median_of(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(*values), compare_doubles);
    return values[count / 2];
}

/* The median of the steps behind the first, and the last root. */
static enum status read_steps(double *wall, struct digest *root, const char *folder, int steps,
                              struct error *error)
{
    struct bundle *bundle = NULL;
    double took[ROUNDS_MAX];
    enum status status;

    TRY_OUT(bundle_open(&bundle, folder, BUNDLE_READ, error));
    for (int step = 1; step < steps; step++) {
        struct bundle_step entry;

        TRY_OUT(bundle_step_read(&entry, bundle, (uint64_t)step, error));
        took[step - 1] = (double)(entry.nanoseconds + entry.nanoseconds_committing) * 1e-9;
    }
    TRY_OUT(bundle_state_root(root, bundle, (uint64_t)steps, error));
    *wall = steps > 1 ? median_of(took, steps - 1) : 0.0;
out:
    bundle_close(bundle);
    return status;
}

static enum status run_one(double *wall, double *processor, struct digest *root,
                           const struct contest *contest, enum side side, int steps,
                           struct error *error)
{
    const double before = processor_of_children();
    char line[LINE_MAX_];
    char folder[96];

    (void)snprintf(folder, sizeof(folder), "%s/run", contest->place);
    (void)snprintf(line, sizeof(line),
                   PROGRAM " prover run %s/%d.job --data " DATA " --bundle %s %s >/dev/null 2>&1",
                   contest->place, steps, folder, options[side]);
    TRY(run_line(line, error));
    *processor = processor_of_children() - before;
    TRY(read_steps(wall, root, folder, steps, error));
    folder_remove(folder);
    return STATUS_OK;
}

static enum status run_rounds(struct contest *contest, struct error *error)
{
    TRY(make_job(contest, 1, error));
    TRY(make_job(contest, contest->steps, error));
    for (int round = 0; round < contest->rounds; round++) {
        for (int side = 0; side < SIDE_COUNT; side++) {
            double once = 0.0;
            double all = 0.0;
            double unused = 0.0;

            TRY(run_one(&unused, &once, &contest->root[side], contest, (enum side)side, 1, error));
            TRY(run_one(&contest->wall[side][round], &all, &contest->root[side], contest,
                        (enum side)side, contest->steps, error));
            contest->processor[side][round] = (all - once) / (contest->steps - 1);
        }
        if (!digest_equal(&contest->root[THREADS], &contest->root[RANKS])) {
            return error_set(error, STATUS_IO, "the ranks have other states than one process");
        }
    }
    return STATUS_OK;
}

int main(int argc, char **argv)
{
    struct contest contest = {.place = "/tmp/lockstep-ranks-XXXXXX"};
    struct bench bench;
    struct error error;
    enum status status;

    error_init(&error);
    bench_init(&bench, "two ranks of one thread", "one process of two threads", argc, argv);
    contest.rounds = number_from("RANKS_ROUNDS", 3, 1);
    contest.steps = number_from("RANKS_STEPS", 5, 2);
    if (access(PROGRAM, X_OK) != 0 || mkdtemp(contest.place) == NULL) {
        fprintf(stderr, "ranks: no " PROGRAM ", or no folder: nothing is measured\n");
        return 1;
    }
    status = run_rounds(&contest, &error);
    folder_remove(contest.place);
    if (status != STATUS_OK) {
        fprintf(stderr, "ranks: %s\n", error.text);
        return 1;
    }
    bench_record(&bench, "GPT-2 10M, 4,096 tokens: a step by the wall", "s",
                 median_of(contest.wall[RANKS], contest.rounds),
                 median_of(contest.wall[THREADS], contest.rounds), 0);
    bench_record(&bench, "the same, of the processors", "s",
                 median_of(contest.processor[RANKS], contest.rounds),
                 median_of(contest.processor[THREADS], contest.rounds), 0);
    return bench_finish(&bench);
}
