/*
 * curves_bench.c - loss curves of training by exact contraction and in double precision.
 *
 * A small GPT (3 layers, width 64, 64 tokens, batches of 8, AdamW) is trained for 300 steps from
 * three seeds: by the engine at several precisions, by the interpreter of
 * tests/support/reference/reference.h in double, and by the same with bfloat16 inputs and float
 * sums, all on the same batches from the same first states. Curves are averaged over the seeds. The
 * distance of a curve is the mean over all steps of its relative deviation from the double curve;
 * "end" compares the means of the last 50 steps. The peer is bfloat16: above 1 ours is closer.
 *
 * CURVES_STEPS and CURVES_SEEDS (environment) make a shorter run. CURVES_RATE is another learning
 * rate: the higher it is, the more early training amplifies any rounding. CURVES_WIDTH is another
 * width: products along the width and along four times it have more blocks then.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/support/bench.h"
#include "tests/support/numeric/small_model.h"

#define STEPS_MAX 2000
#define SEEDS_MAX 16
#define END_STEPS 50
#define WIDTH_MAX 1024

enum { DOUBLE, BFLOAT16, ENGINE };

struct course {
    const char *name;
    int kind;
    struct precision precision;
    double runs[SEEDS_MAX][STEPS_MAX];
    double seconds[SEEDS_MAX];
    double losses[STEPS_MAX]; /* mean over the seeds */
};

static uint32_t setting(const char *name, uint32_t otherwise, uint32_t most)
{
    const char *text = getenv(name);
    unsigned long value = text == NULL ? otherwise : strtoul(text, NULL, 10);

    return value == 0 || value > most ? otherwise : (uint32_t)value;
}

static void open_model(struct small_model *small, const struct course *course, uint32_t seed,
                       uint32_t steps)
{
    const char *rate = getenv("CURVES_RATE");
    struct model_options options;

    model_options_default(&options, MODEL_GPT2);
    options.precision = course->precision;
    options.seed = 1000 + seed;
    options.steps = steps;
    options.width = setting("CURVES_WIDTH", options.width, WIDTH_MAX);
    if (rate != NULL) {
        options.rate = strtod(rate, NULL);
    }
    small_model_open(small, &options);
}

static void run_engine(double *losses, const struct small_model *small, uint32_t steps)
{
    struct machine *machine = small_machine_open(small, isa_best(), 1, false);

    for (uint32_t step = 0; step < steps; step++) {
        small_machine_steps(machine, 1);
        losses[step] = (double)small_machine_loss(machine);
    }
    backend_cpu.close(machine);
}

static void run_reference(double *losses, const struct small_model *small, uint32_t steps,
                          enum reference_mode mode)
{
    struct reference *reference = small_reference_open(small, mode);

    for (uint32_t step = 0; step < steps; step++) {
        reference_run(reference, small->model.tape->op_count);
        losses[step] = reference_values(reference, small->model.tape->loss)[0];
        reference_advance(reference);
    }
    reference_free(reference);
}

static void run_course(struct course *course, uint32_t seed, uint32_t steps)
{
    double start = bench_now();
    struct small_model small;

    open_model(&small, course, seed, steps);
    if (course->kind == ENGINE) {
        run_engine(course->runs[seed], &small, steps);
    } else {
        run_reference(course->runs[seed], &small, steps,
                      course->kind == DOUBLE ? REFERENCE_DOUBLE : REFERENCE_BFLOAT16);
    }
    small_model_close(&small);
    course->seconds[seed] = bench_now() - start;
}

/* One run per thread. Runs share nothing, and the parallel loops inside of them stay serial. */
static void run_all(struct course *courses, size_t count, uint32_t seeds, uint32_t steps)
{
#pragma omp parallel for schedule(dynamic, 1)
    for (size_t run = 0; run < count * seeds; run++) {
        run_course(&courses[run / seeds], (uint32_t)(run % seeds), steps);
    }
    for (size_t i = 0; i < count; i++) {
        for (uint32_t step = 0; step < steps; step++) {
            double sum = 0.0;

            for (uint32_t seed = 0; seed < seeds; seed++) {
                sum += courses[i].runs[seed][step];
            }
            courses[i].losses[step] = sum / seeds;
        }
    }
}

static double mean_of_end(const struct course *course, uint32_t steps)
{
    uint32_t count = steps < END_STEPS ? steps : END_STEPS;
    double sum = 0.0;

    for (uint32_t step = steps - count; step < steps; step++) {
        sum += course->losses[step];
    }
    return sum / count;
}

/* Mean over the steps of |loss - exact| / exact, in percent. */
static double curve_distance(const struct course *course, const struct course *exact,
                             uint32_t steps)
{
    double sum = 0.0;

    for (uint32_t step = 0; step < steps; step++) {
        sum += fabs(course->losses[step] - exact->losses[step]) / exact->losses[step];
    }
    return 100.0 * sum / steps;
}

static double end_distance(const struct course *course, const struct course *exact, uint32_t steps)
{
    double end = mean_of_end(exact, steps);

    return 100.0 * fabs(mean_of_end(course, steps) - end) / end;
}

int main(int argc, char **argv)
{
    static struct course courses[] = {
        {.name = "double", .kind = DOUBLE, .precision = {14, 128}},
        {.name = "bf16", .kind = BFLOAT16, .precision = {14, 128}},
        {.name = "14/128", .kind = ENGINE, .precision = {14, 128}},
        {.name = "14/512", .kind = ENGINE, .precision = {14, 512}},
        {.name = "15/128", .kind = ENGINE, .precision = {15, 128}},
        {.name = "22/row", .kind = ENGINE, .precision = {22, 0}},
    };
    const size_t count = sizeof(courses) / sizeof(courses[0]);
    uint32_t steps = setting("CURVES_STEPS", 300, STEPS_MAX);
    uint32_t seeds = setting("CURVES_SEEDS", 3, SEEDS_MAX);
    struct bench bench;

    bench_init(&bench, "loss curves: percent away from double", "bf16 inputs", argc, argv);
    run_all(courses, count, seeds, steps);
    for (size_t i = 0; i < count; i++) {
        printf("%-7s mean loss of the last %d steps %.5f, of the last step %.5f; a run %.1f s\n",
               courses[i].name, END_STEPS, mean_of_end(&courses[i], steps),
               courses[i].losses[steps - 1], courses[i].seconds[0]);
    }
    for (size_t i = 2; i < count; i++) {
        char name[BENCH_NAME_MAX];

        (void)snprintf(name, sizeof(name), "%s, whole curve", courses[i].name);
        bench_record(&bench, name, "%", curve_distance(&courses[i], &courses[0], steps),
                     curve_distance(&courses[1], &courses[0], steps), 0);
        (void)snprintf(name, sizeof(name), "%s, end", courses[i].name);
        bench_record(&bench, name, "%", end_distance(&courses[i], &courses[0], steps),
                     end_distance(&courses[1], &courses[0], steps), 0);
    }
    return bench_finish(&bench);
}
