/*
 * contraction_bench.c - exact contraction against OpenBLAS sgemm on the shapes of GPT-2's layers.
 *
 * A shape M x K x N is a layer of M outputs and K inputs over N tokens. Its three products: forward
 * (both operands with k along memory), dx (over M, the weights read along their rows) and dw (over
 * the tokens, both read along their rows). Every product is measured with and without the
 * quantization of both operands. sgemm gets the same operands in the same places.
 *
 * Each instruction set has its own process, because OpenBLAS chooses its kernels once: against AVX2
 * it uses its AVX2 kernels (OPENBLAS_CORETYPE=Haswell). Calls alternate, with a pause in which the
 * other side's threads stop spinning; the medians are compared.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cblas.h>

#include "bench/support/bench.h"
#include "bench/support/contract_case.h"

#define CALLS_MIN     5
#define CALLS_MAX     400
#define SECONDS_MIN   0.4
#define PAUSE_US      20000 /* longer than either library's threads spin */
#define LINE_SIZE_MAX 256

struct layer {
    int64_t outputs;
    int64_t inputs;
    int64_t tokens;
};

enum form { FORM_FORWARD, FORM_DX, FORM_DW };

static const struct layer layers[] = {
    {768, 768, 1024},
    {3072, 768, 1024},
    {768, 3072, 1024},
    {50257, 768, 256},
};

static const char *const form_names[] = {"forward", "dx", "dw"};

static struct contract_shape layer_shape(const struct layer *layer, enum form form, int bits)
{
    struct contract_shape shape = {.batch = 1, .bits = bits, .block = bits == 22 ? 0 : 128};

    shape.m = form == FORM_DW ? layer->outputs : layer->tokens;
    shape.n = form == FORM_FORWARD ? layer->outputs : layer->inputs;
    shape.k =
        form == FORM_FORWARD ? layer->inputs : (form == FORM_DX ? layer->outputs : layer->tokens);
    shape.a_transposed = form == FORM_DW;
    shape.b_transposed = form != FORM_FORWARD;
    return shape;
}

/* ---- in the child: measure ---- */

static void peer_multiply(const struct contract_case *one, float *out)
{
    const struct contract_shape *s = &one->shape;

    for (int64_t b = 0; b < s->batch; b++) {
        cblas_sgemm(CblasRowMajor, s->a_transposed ? CblasTrans : CblasNoTrans,
                    s->b_transposed ? CblasNoTrans : CblasTrans, (int)s->m, (int)s->n, (int)s->k,
                    1.0F, one->x[0] + b * s->m * s->k, (int)(s->a_transposed ? s->m : s->k),
                    one->x[1] + b * s->n * s->k, (int)(s->b_transposed ? s->n : s->k), 0.0F,
                    out + b * s->m * s->n, (int)s->n);
    }
}

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return (a > b) - (a < b);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof(values[0]), compare_doubles);
    return values[count / 2];
}

/* Prints two rows for the parent: name, ours, peer, in GFLOP/s. */
static void measure(const char *name, const struct contract_shape *shape, enum isa isa, int threads)
{
    static double times[3][CALLS_MAX]; /* quantize, multiply, peer */
    struct contract_case one;
    double work = 2e-9 * (double)(shape->batch * shape->m * shape->n) * (double)shape->k;
    size_t calls = 0;
    double begin;

    contract_case_init(&one, shape, isa, threads);
    float *out = calloc((size_t)(shape->batch * shape->m * shape->n), sizeof(float));

    openblas_set_num_threads(threads);
    contract_case_quantize(&one);
    contract_case_multiply(&one);
    peer_multiply(&one, out);
    begin = bench_now();
    while (calls < CALLS_MIN || (bench_now() - begin < SECONDS_MIN && calls < CALLS_MAX)) {
        double at[4];

        usleep(threads > 1 ? PAUSE_US : 0);
        at[0] = bench_now();
        contract_case_quantize(&one);
        at[1] = bench_now();
        contract_case_multiply(&one);
        at[2] = bench_now();
        times[0][calls] = at[2] - at[0];
        times[1][calls] = at[2] - at[1];
        usleep(threads > 1 ? PAUSE_US : 0);
        at[3] = bench_now();
        peer_multiply(&one, out);
        times[2][calls++] = bench_now() - at[3];
    }
    double peer = work / median(times[2], calls);

    printf("%s, quantized within\t%g\t%g\n", name, work / median(times[0], calls), peer);
    printf("%s, quantized before\t%g\t%g\n", name, work / median(times[1], calls), peer);
    fflush(stdout);
    free(out);
    contract_case_release(&one);
}

static void measure_layer(const struct layer *layer, enum form form, int bits, enum isa isa,
                          int threads)
{
    struct contract_shape shape = layer_shape(layer, form, bits);
    char name[LINE_SIZE_MAX];

    snprintf(name, sizeof(name), "%s x%d %ldx%ldx%ld %s %d bits", isa_name(isa), threads,
             (long)layer->outputs, (long)layer->inputs, (long)layer->tokens, form_names[form],
             bits);
    measure(name, &shape, isa, threads);
}

/* Twelve heads of 64 over 1,024 tokens; sgemm has no causal mask and does all of the square. */
static void measure_attention(enum isa isa, int threads)
{
    const struct contract_shape scores = {
        .batch = 12, .m = 1024, .n = 1024, .k = 64, .bits = 14, .block = 128, .causal = 1024};
    const struct contract_shape mixing = {
        .batch = 12, .m = 1024, .n = 64, .k = 1024, .b_transposed = true, .bits = 14, .block = 128};
    char name[LINE_SIZE_MAX];

    snprintf(name, sizeof(name), "%s x%d attention scores, causal", isa_name(isa), threads);
    measure(name, &scores, isa, threads);
    snprintf(name, sizeof(name), "%s x%d attention mixing", isa_name(isa), threads);
    measure(name, &mixing, isa, threads);
}

static int run_child(enum isa isa)
{
    for (int threads = 1; threads <= 2; threads++) {
        for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
            for (int form = FORM_FORWARD; form <= FORM_DW; form++) {
                measure_layer(&layers[i], (enum form)form, 14, isa, threads);
            }
        }
        measure_layer(&layers[0], FORM_FORWARD, 15, isa, threads);
        measure_layer(&layers[0], FORM_FORWARD, 22, isa, threads);
        measure_attention(isa, threads);
    }
    return 0;
}

/* ---- in the parent: start, read, record ---- */

static int measure_isa(struct bench *bench, enum isa isa)
{
    char line[LINE_SIZE_MAX];
    int ends[2];
    int status = 0;

    if (pipe(ends) != 0) {
        return 2;
    }
    pid_t child = fork();

    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        if (isa == ISA_AVX2) {
            setenv("OPENBLAS_CORETYPE", "Haswell", 1);
        }
        /*
         * Waiting threads of one side must take no time from the other. Ours sleep at once; those
         * of OpenBLAS spin for 2^20 cycles (by default 2^26, longer than many of these products),
         * so they are still awake for their next call.
         */
        setenv("OMP_WAIT_POLICY", "passive", 1);
        setenv("OPENBLAS_THREAD_TIMEOUT", "20", 1);
        setenv("CONTRACTION_BENCH_ISA", isa_name(isa), 1);
        execl("/proc/self/exe", "contraction_bench", (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    FILE *from = fdopen(ends[0], "r");

    while (from != NULL && fgets(line, sizeof(line), from) != NULL) {
        char *name = strtok(line, "\t");
        char *ours = strtok(NULL, "\t");
        char *peer = strtok(NULL, "\n");

        if (name != NULL && ours != NULL && peer != NULL) {
            bench_record(bench, name, "GFLOP/s", strtod(ours, NULL), strtod(peer, NULL), 1);
        }
    }
    if (from != NULL) {
        fclose(from);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0 ? 0 : 2;
}

int main(int argc, char **argv)
{
    const char *as_child = getenv("CONTRACTION_BENCH_ISA");
    struct bench bench;

    for (int isa = ISA_AVX2; as_child != NULL && isa < ISA_COUNT; isa++) {
        if (strcmp(as_child, isa_name((enum isa)isa)) == 0) {
            return run_child((enum isa)isa);
        }
    }
    bench_init(&bench, "contraction", "OpenBLAS sgemm", argc, argv);
    for (int isa = ISA_AVX2; isa < ISA_COUNT; isa++) {
        if (isa_available((enum isa)isa) && measure_isa(&bench, (enum isa)isa) != 0) {
            fprintf(stderr, "contraction: the %s part failed\n", isa_name((enum isa)isa));
            return 2;
        }
    }
    return bench_finish(&bench);
}
