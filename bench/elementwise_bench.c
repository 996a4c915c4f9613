/*
 * elementwise_bench.c - the float kernels against plain C loops under -O3 -march=native and
 * -ffast-math, on the shapes of a GPT-2 124M step over 1,024 tokens, one thread each. GB/s counts
 * what must at least be read and written; the target is a ratio of 0.8 or more everywhere.
 *
 * Ours runs in fast mode: in place as a machine plans it, without outputs that nobody reads.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/support/bench.h"
#include "bench/support/peer_fastmath.h"
#include "engine/cpu/cpu.h"
#include "engine/ops/real.h"
#include "engine/ops/view.h"

#define ROWS_OF_STEP   1024 /* tokens */
#define WIDTH          768
#define WIDE           3072
#define VOCABULARY     50257
#define LOSS_ROWS      64
#define ATTENTION_ROWS 4096 /* four heads of 1,024 */
#define PARAMETERS     (8u << 20)
#define BIGGEST        PARAMETERS
#define ARRAYS         4
/* Arrays that begin at the same place of a page share cache sets, and AMD's way predictor then
 * takes one for the other; which pairs it hits changes from run to run. Elements, a few lines. */
#define SKEW           208

/* Everything that both sides work on. */
struct work {
    struct kernel_table kernels;
    struct op op;
    struct tensor tensor; /* every output's: only the count is looked at */
    struct kernel_call call;
    float *arrays[ARRAYS]; /* BIGGEST elements each */
    float *ours;
    float *peer;
    float *gain, *bias, *mean, *rstd;
    float scalars[4];
    uint32_t *target;
    size_t rows, columns;
};

static float *numbers_new(size_t count, uint32_t seed, float scale)
{
    size_t skew = seed * SKEW;
    float *numbers = aligned_alloc(64, (count + skew) * sizeof(*numbers) / 64 * 64 + 64);

    if (numbers == NULL) {
        perror("elementwise_bench");
        exit(1);
    }
    numbers += skew;
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        numbers[i] = ((float)(seed >> 8) * 0x1p-23f - 1.0f) * scale;
    }
    return numbers;
}

static int64_t attribute(float x)
{
    return (int64_t)real_to_bits(x);
}

static void work_op(struct work *work, enum op_kind kind, size_t count, const int64_t *attributes,
                    size_t attribute_count)
{
    memset(&work->op, 0, sizeof(work->op));
    memset(&work->call, 0, sizeof(work->call));
    work->op.kind = kind;
    if (attribute_count > 0) {
        memcpy(work->op.attributes, attributes, attribute_count * sizeof(*attributes));
    }
    work->tensor.count = count;
    work->call.op = &work->op;
    work->call.tensors = &work->tensor;
    work->call.thread_count = 1;
}

static void run_ours(void *context)
{
    struct work *work = context;

    work->kernels.kernels[work->op.kind].run(&work->call);
}

static void compare(struct bench *bench, struct work *work, const char *name, double bytes,
                    void (*peer)(void *context))
{
    char full[BENCH_NAME_MAX];
    struct bench_case one = {
        .name = full,
        .unit = "GB/s",
        .work = bytes * 1e-9,
        .ours = run_ours,
        .peer = peer,
        .context = work,
    };

    snprintf(full, sizeof(full), "%s, %s", name, work->kernels.name);
    bench_compare(bench, &one);
}

/* ---- elementwise ----------------------------------------------------------- */

static void run_peer_add(void *context)
{
    struct work *work = context;

    peer_add(work->peer, work->arrays[0], work->arrays[1], work->rows * work->columns);
}

static void bench_add(struct bench *bench, struct work *work)
{
    size_t count = ROWS_OF_STEP * WIDTH;

    work->rows = ROWS_OF_STEP;
    work->columns = WIDTH;
    work_op(work, OP_BINARY, count, NULL, 0);
    binary_set(&work->op, BINARY_ADD, count, 1, count);
    work->call.inputs[0] = work->arrays[0];
    work->call.inputs[1] = work->arrays[1];
    work->call.outputs[0] = work->ours;
    compare(bench, work, "add 1024x768", 12.0 * (double)count, run_peer_add);
}

static void run_peer_add_bias(void *context)
{
    struct work *work = context;

    peer_add_bias(work->peer, work->arrays[0], work->bias, work->rows, work->columns);
}

static void bench_add_bias(struct bench *bench, struct work *work)
{
    size_t count = ROWS_OF_STEP * WIDE;

    work->rows = ROWS_OF_STEP;
    work->columns = WIDE;
    work_op(work, OP_BINARY, count, NULL, 0);
    binary_set(&work->op, BINARY_ADD, count, 1, WIDE);
    work->call.inputs[0] = work->arrays[0];
    work->call.inputs[1] = work->bias;
    work->call.outputs[0] = work->ours;
    compare(bench, work, "add bias 1024x3072", 8.0 * (double)count, run_peer_add_bias);
}

static void run_peer_gelu(void *context)
{
    struct work *work = context;

    peer_gelu(work->peer, work->arrays[0], ROWS_OF_STEP * WIDE);
}

static void run_peer_gelu_grad(void *context)
{
    struct work *work = context;

    peer_gelu_grad(work->peer, work->arrays[0], work->arrays[1], ROWS_OF_STEP * WIDE);
}

static void run_peer_silu(void *context)
{
    struct work *work = context;

    peer_silu(work->peer, work->arrays[0], ROWS_OF_STEP * WIDE);
}

static void bench_activations(struct bench *bench, struct work *work)
{
    size_t count = ROWS_OF_STEP * WIDE;

    work_op(work, OP_MAP, count, (int64_t[]){MAP_GELU, 0}, MAP_ATTRIBUTES);
    work->call.inputs[0] = work->arrays[0];
    work->call.inputs[1] = work->arrays[1];
    work->call.outputs[0] = work->ours;
    compare(bench, work, "gelu 1024x3072", 8.0 * (double)count, run_peer_gelu);
    binary_set(&work->op, BINARY_GELU_GRAD, count, 1, count);
    compare(bench, work, "gelu-grad 1024x3072", 12.0 * (double)count, run_peer_gelu_grad);
    work_op(work, OP_MAP, count, (int64_t[]){MAP_SILU, 0}, MAP_ATTRIBUTES);
    compare(bench, work, "silu 1024x3072", 8.0 * (double)count, run_peer_silu);
}

/* ---- norms ------------------------------------------------------------------- */

static void run_peer_layer_norm(void *context)
{
    struct work *work = context;

    peer_layer_norm(work->peer, work->mean, work->rstd, work->arrays[0], work->gain, work->bias,
                    ROWS_OF_STEP, WIDTH);
}

static void run_peer_layer_norm_grad(void *context)
{
    struct work *work = context;

    peer_layer_norm_grad(work->peer, work->arrays[2], work->arrays[1], work->arrays[0], work->gain,
                         work->mean, work->rstd, ROWS_OF_STEP, WIDTH);
}

static void bench_layer_norm(struct bench *bench, struct work *work)
{
    size_t count = ROWS_OF_STEP * WIDTH;

    work_op(work, OP_LAYER_NORM, count, (int64_t[]){ROWS_OF_STEP, WIDTH, attribute(1e-5f)}, 3);
    work->call.inputs[0] = work->arrays[0];
    work->call.inputs[1] = work->gain;
    work->call.inputs[2] = work->bias;
    work->call.outputs[1] = work->mean;
    work->call.outputs[3] = work->rstd;
    work->call.outputs[4] = work->ours;
    compare(bench, work, "layer-norm 1024x768", 8.0 * (double)count, run_peer_layer_norm);

    work_op(work, OP_LAYER_NORM_GRAD, count, (int64_t[]){ROWS_OF_STEP, WIDTH}, 2);
    work->call.inputs[0] = work->arrays[1];
    work->call.inputs[1] = work->arrays[0];
    work->call.inputs[2] = work->gain;
    work->call.inputs[3] = work->mean;
    work->call.inputs[4] = work->rstd;
    work->call.outputs[4] = work->ours;
    work->call.outputs[5] = work->arrays[2];
    compare(bench, work, "layer-norm-grad 1024x768", 16.0 * (double)count,
            run_peer_layer_norm_grad);
}

/* ---- softmax and cross-entropy -------------------------------------------------- */

static void run_peer_softmax(void *context)
{
    struct work *work = context;

    peer_softmax(work->peer, work->arrays[0], 0.125f, ROWS_OF_STEP, ROWS_OF_STEP);
}

static void run_peer_softmax_causal(void *context)
{
    struct work *work = context;

    peer_softmax_causal(work->peer, work->arrays[0], 0.125f, ATTENTION_ROWS, ROWS_OF_STEP);
}

static void run_peer_softmax_causal_grad(void *context)
{
    struct work *work = context;

    peer_softmax_causal_grad(work->peer, work->arrays[0], work->arrays[1], 0.125f, ATTENTION_ROWS,
                             ROWS_OF_STEP);
}

static void bench_softmax(struct bench *bench, struct work *work)
{
    size_t count = (size_t)ROWS_OF_STEP * ROWS_OF_STEP;
    size_t causal = (size_t)ATTENTION_ROWS * ROWS_OF_STEP;

    work_op(work, OP_SOFTMAX, count, (int64_t[]){ROWS_OF_STEP, ROWS_OF_STEP, 0, attribute(0.125f)},
            4);
    work->call.inputs[0] = work->arrays[0];
    work->call.outputs[5] = work->ours;
    compare(bench, work, "softmax 1024x1024", 8.0 * (double)count, run_peer_softmax);

    work_op(work, OP_SOFTMAX, causal,
            (int64_t[]){ATTENTION_ROWS, ROWS_OF_STEP, ROWS_OF_STEP, attribute(0.125f)}, 4);
    work->call.inputs[0] = work->arrays[0];
    work->call.outputs[5] = work->ours;
    compare(bench, work, "causal softmax 4096x1024", 6.0 * (double)causal, run_peer_softmax_causal);

    work->op.kind = OP_SOFTMAX_GRAD;
    work->call.inputs[1] = work->arrays[1];
    work->call.outputs[5] = NULL;
    work->call.outputs[2] = work->ours;
    compare(bench, work, "causal softmax-grad 4096x1024", 8.0 * (double)causal,
            run_peer_softmax_causal_grad);
}

static void run_peer_cross_entropy(void *context)
{
    struct work *work = context;

    peer_cross_entropy(work->peer, work->mean, work->rstd, work->arrays[0], work->target, LOSS_ROWS,
                       VOCABULARY);
}

static void run_peer_cross_entropy_grad(void *context)
{
    struct work *work = context;

    peer_cross_entropy_grad(work->peer, work->arrays[0], work->target, work->mean, work->rstd,
                            work->gain, LOSS_ROWS, VOCABULARY);
}

static void bench_cross_entropy(struct bench *bench, struct work *work)
{
    size_t count = (size_t)LOSS_ROWS * VOCABULARY;

    work_op(work, OP_CROSS_ENTROPY, count, (int64_t[]){LOSS_ROWS, VOCABULARY}, 2);
    work->call.inputs[0] = work->arrays[0];
    work->call.inputs[1] = work->target;
    work->call.outputs[1] = work->mean;
    work->call.outputs[4] = work->rstd;
    work->call.outputs[5] = work->ours;
    compare(bench, work, "cross-entropy 64x50257", 4.0 * (double)count, run_peer_cross_entropy);

    work_op(work, OP_CROSS_ENTROPY_GRAD, count, (int64_t[]){LOSS_ROWS, VOCABULARY}, 2);
    work->call.inputs[0] = work->arrays[0];
    work->call.inputs[1] = work->target;
    work->call.inputs[2] = work->mean;
    work->call.inputs[3] = work->rstd;
    work->call.inputs[4] = work->gain;
    work->call.outputs[0] = work->ours;
    compare(bench, work, "cross-entropy-grad 64x50257", 8.0 * (double)count,
            run_peer_cross_entropy_grad);
}

/* ---- AdamW ------------------------------------------------------------------------- */

static void run_peer_adamw(void *context)
{
    static const struct peer_adamw how = {
        .beta1 = 0.9f,
        .beta2 = 0.95f,
        .epsilon = 1e-8f,
        .decay = 0.1f,
        .rate = 1e-4f,
        .correct1 = 1.0f,
        .correct2 = 1.0f,
        .gradient_scale = 1.0f,
    };
    struct work *work = context;

    peer_adamw(work->arrays[0], work->arrays[1], work->arrays[2], work->arrays[3], PARAMETERS,
               &how);
}

static void bench_adamw(struct bench *bench, struct work *work)
{
    work->scalars[0] = 1e-4f;
    work->scalars[1] = 1.0f;
    work_op(work, OP_ADAMW, PARAMETERS,
            (int64_t[]){attribute(0.9f), attribute(0.1f), attribute(0.95f), attribute(0.05f),
                        attribute(1e-8f), attribute(0.1f)},
            6);
    for (int i = 0; i < ARRAYS; i++) {
        work->call.inputs[i] = work->arrays[i];
    }
    work->call.inputs[4] = &work->scalars[0];
    for (int i = 5; i < 8; i++) {
        work->call.inputs[i] = &work->scalars[1];
    }
    /* In place, as the machine plans it. */
    work->call.outputs[0] = work->arrays[0];
    work->call.outputs[1] = work->arrays[2];
    work->call.outputs[2] = work->arrays[3];
    compare(bench, work, "adamw 8M in place", 28.0 * (double)PARAMETERS, run_peer_adamw);
}

static void work_init(struct work *work)
{
    memset(work, 0, sizeof(*work));
    for (uint32_t i = 0; i < ARRAYS; i++) {
        work->arrays[i] = numbers_new(BIGGEST, i + 1, 4.0f);
    }
    for (size_t i = 0; i < BIGGEST; i++) {
        work->arrays[3][i] = work->arrays[3][i] * work->arrays[3][i]; /* a second moment */
    }
    work->ours = numbers_new(BIGGEST, 11, 1.0f);
    work->peer = numbers_new(BIGGEST, 12, 1.0f);
    work->gain = numbers_new(WIDE, 13, 1.0f);
    work->bias = numbers_new(WIDE, 14, 1.0f);
    work->mean = numbers_new(WIDE, 15, 1.0f);
    work->rstd = numbers_new(WIDE, 16, 1.0f);
    work->target = (uint32_t *)numbers_new(LOSS_ROWS, 17, 1.0f);
    for (uint32_t r = 0; r < LOSS_ROWS; r++) {
        work->target[r] = r * 701 % VOCABULARY;
    }
}

int main(int argc, char **argv)
{
    struct bench bench;
    struct work work;

    work_init(&work);
    bench_init(&bench, "elementwise and row kernels, 1 thread", "-O3 -ffast-math C", argc, argv);
    for (int isa = isa_best(); isa > ISA_SCALAR; isa--) {
        if (!isa_available((enum isa)isa)) {
            continue;
        }
        cpu_kernels(&work.kernels, (enum isa)isa);
        bench_add(&bench, &work);
        bench_add_bias(&bench, &work);
        bench_activations(&bench, &work);
        bench_layer_norm(&bench, &work);
        bench_softmax(&bench, &work);
        bench_cross_entropy(&bench, &work);
        bench_adamw(&bench, &work);
    }
    return bench_finish(&bench);
}
