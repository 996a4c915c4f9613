/*
 * experts_bench.c - a layer of eight experts, of which a token goes to two, against a dense layer
 * with as many products.
 *
 * Three small decoders of one layer train by SGD on the same tokens: with experts of HIDDEN, with
 * dense feed-forward layers of twice that, and with such of SMALL. What the last one takes is
 * nearly what the others have beside these layers, and is subtracted from both. Steps alternate,
 * on one thread; processor time is compared, since the machine may be busy, and the median is
 * told.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/support/bench.h"
#include "engine/models/layouts.h"
#include "engine/models/model.h"
#include "engine/plan/backend.h"

#define WIDTH      1024
#define HIDDEN     1024
#define ROUNDS     5
#define SMALL      16
#define TOKENS     8192
#define VOCABULARY 64

enum { SIDE_EXPERTS, SIDE_DENSE, SIDE_SMALL, SIDE_COUNT };

struct side {
    struct model model;
    struct machine *machine;
    double times[ROUNDS];
};

static void stop_at(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fprintf(stderr, "experts_bench: %s\n", error->text);
        exit(1);
    }
}

static struct model_options options_of(int side, int bits)
{
    struct model_options options;

    model_options_default(&options, MODEL_LLAMA);
    options.precision = bits == 22 ? (struct precision){22, 0} : PRECISION_DEFAULT;
    options.equilibrate = bits != 22;
    options.layout = layout_find(side == SIDE_EXPERTS ? "mixtral" : "llama");
    options.batch = 16;
    options.length = 256;
    options.vocabulary = VOCABULARY;
    options.layers = 1;
    options.heads = options.kv_heads = 4;
    options.width = WIDTH;
    options.hidden = side == SIDE_SMALL ? SMALL : side == SIDE_DENSE ? 2 * HIDDEN : HIDDEN;
    options.experts = 8;
    options.experts_used = 2;
    options.tied_head = true;
    options.data_count = TOKENS;
    options.optimizer = OPTIMIZER_SGD;
    options.clip = 0.0;
    return options;
}

/* Tensors of the tape that the machine wants: parameters are drawn, the rest is zeros. */
static void fill_tensors(struct side *side, const uint8_t *tokens)
{
    const struct tape *tape = side->model.tape;
    struct error error;
    uint32_t state = 1;

    error_init(&error);
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        const struct tensor *tensor = &tape->tensors[id];

        if (tensor->role == ROLE_DATA) {
            stop_at(backend_cpu.bind(side->machine, id, tokens, &error), &error);
        } else if (tensor->role == ROLE_STATE && tensor->dtype == DTYPE_F32) {
            float *values = calloc(tensor->count, sizeof(*values));

            for (uint64_t i = 0; values != NULL && i < tensor->count; i++) {
                state = state * 1664525u + 1013904223u;
                values[i] = tensor->rank == 1 ? 1.0f : ((float)(state >> 8) * 0x1p-24f - 0.5f) / 8;
            }
            stop_at(backend_cpu.write(side->machine, id, values, &error), &error);
            free(values);
        }
    }
    for (uint32_t i = 0; i < side->model.constant_count; i++) {
        const struct model_constant *constant = &side->model.constants[i];

        stop_at(backend_cpu.write(side->machine, constant->tensor, constant->bytes, &error),
                &error);
    }
}

static void open_side(struct side *side, int number, int bits, const uint8_t *tokens)
{
    struct model_options options = options_of(number, bits);
    struct machine_options how;
    struct error error;

    error_init(&error);
    memset(side, 0, sizeof(*side));
    stop_at(model_build(&side->model, &options, &error), &error);
    stop_at(machine_options_default(&how, &error), &error);
    how.thread_count = 1;
    stop_at(machine_open(&side->machine, side->model.tape, &how, &error), &error);
    fill_tensors(side, tokens);
}

static double processor_time(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void step(struct side *side, int round)
{
    struct error error;
    double begin = processor_time();

    error_init(&error);
    stop_at(backend_cpu.step(side->machine, NULL, &error), &error);
    if (round >= 0) {
        side->times[round] = processor_time() - begin;
    }
}

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return (a > b) - (a < b);
}

/* Records the medians over rounds of what the layers alone took, in seconds. */
static void measure(struct bench *bench, int bits, const uint8_t *tokens)
{
    static struct side sides[SIDE_COUNT];
    double alone[2][ROUNDS];
    char name[BENCH_NAME_MAX];

    for (int i = 0; i < SIDE_COUNT; i++) {
        open_side(&sides[i], i, bits, tokens);
    }
    for (int round = -1; round < ROUNDS; round++) {
        for (int i = 0; i < SIDE_COUNT; i++) {
            step(&sides[i], round);
        }
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 2; i++) {
            alone[i][round] = sides[i].times[round] - sides[SIDE_SMALL].times[round];
        }
    }
    for (int i = 0; i < SIDE_COUNT; i++) {
        backend_cpu.close(sides[i].machine);
        model_release(&sides[i].model);
    }
    for (int i = 0; i < 2; i++) {
        qsort(alone[i], ROUNDS, sizeof(alone[i][0]), compare_doubles);
    }
    (void)snprintf(name, sizeof(name), "8 experts of %d, 2 used, %d bits", HIDDEN, bits);
    bench_record(bench, name, "s", alone[0][ROUNDS / 2], alone[1][ROUNDS / 2], 0);
}

int main(int argc, char **argv)
{
    static uint8_t tokens[TOKENS];
    struct bench bench;

    bench_init(&bench, "experts", "a dense layer of twice the width", argc, argv);
    for (uint32_t i = 0; i < TOKENS; i++) {
        tokens[i] = (uint8_t)((i * 2654435761u >> 13) % VOCABULARY);
    }
    measure(&bench, 14, tokens);
    measure(&bench, 22, tokens);
    return bench_finish(&bench);
}
