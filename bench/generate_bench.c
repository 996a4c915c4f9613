/*
 * generate_bench.c - tokens a second of `lockstep generate`, with keys and values kept, against
 * PyTorch in float32 with its own, on the same cores.
 *
 * The folder is a random GPT-2 of 124M's shape in BF16; both sides take the same tokens, one at a
 * time and in turn, and a row is the median over them. Compares the log of the sum of exponentials
 * of the logits. Fails where these differ. Skipped where Python is not here; without a peer where
 * PyTorch is not.
 *
 *     GENERATE_CASE=tiny      only cases whose name holds this; the tiny one runs on request
 *     GENERATE_TOKENS=256     timed tokens
 *     GENERATE_THREADS=1      instead of all processors
 */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/support/bench.h"
#include "bench/support/torch_child.h"
#include "client/generate/model_source.h"
#include "engine/decode/decode.h"
#include "engine/decode/sampler.h"
#include "engine/plan/backend.h"
#include "tests/support/folder.h"

#define TOKENS         256
#define TOKENS_MAX     1000
#define WARM           16 /* tokens before the first that is timed */
#define DIFFERENCE_MAX 1e-4

struct shape {
    const char *name;
    const char *config; /* for tests/support/tiny_gpt2.py */
};

static const struct shape shapes[] = {
    {"gpt2 tiny", "n_layer=2 n_embd=96 n_head=3 vocab_size=1031"},
    {"gpt2 124M", ""},
};

struct contest {
    const struct shape *shape;
    int threads;
    int tokens;
    char weights[128];
    struct model_source source;
    struct decode *decode;
    struct sampler sampler;
    struct torch_child torch;
    bool has_torch;
    double ours[TOKENS_MAX];
    double peer[TOKENS_MAX];
    double worst; /* relative difference of the sums */
};

/* ---- both sides ------------------------------------------------------------- */

static enum status open_ours(struct contest *contest, const char *place, struct error *error)
{
    const struct sampler_rule rule = {.temperature = 1.0f, .top_p = 1.0f, .seed = 1};
    struct machine_options machine;
    struct model_options model;
    struct decode_options wanted = {.read = model_source_read, .read_context = &contest->source};
    char line[512];

    (void)snprintf(contest->weights, sizeof(contest->weights), "%s/model", place);
    (void)snprintf(line, sizeof(line), "python3 tests/support/tiny_gpt2.py '%s' %s",
                   contest->weights, contest->shape->config);
    if (system(line) != 0) {
        return error_set(error, STATUS_IO, "it failed: %s", line);
    }
    TRY(machine_options_default(&machine, error));
    TRY(model_source_open(&contest->source, contest->weights, NULL, UINT64_MAX, error));
    model = model_source_options(&contest->source);
    wanted.model = &model;
    wanted.context = (uint32_t)(contest->tokens + WARM);
    wanted.isa = machine.isa;
    wanted.thread_count = contest->threads;
    TRY(decode_open(&contest->decode, &wanted, error));
    return sampler_init(&contest->sampler, &rule, decode_vocabulary(contest->decode), error);
}

static enum status open_peer(struct contest *contest, struct error *error)
{
    char arguments[3][TORCH_ARGUMENT_MAX];

    (void)snprintf(arguments[0], sizeof(arguments[0]), "%s", contest->weights);
    (void)snprintf(arguments[1], sizeof(arguments[1]), "%d", contest->threads);
    (void)snprintf(arguments[2], sizeof(arguments[2]), "%d", contest->tokens + WARM);
    TRY(torch_child_start(&contest->torch, "bench/peer_generate.py", arguments, 3, error));
    return torch_child_ready(&contest->torch, error);
}

static enum status open_all(struct contest *contest, const char *place, struct error *error)
{
    struct error missing;

    TRY(open_ours(contest, place, error));
    error_init(&missing);
    contest->has_torch = open_peer(contest, &missing) == STATUS_OK;
    if (!contest->has_torch) {
        fprintf(stderr, "  without PyTorch: %s (%s)\n", missing.text, missing.advice);
    }
    return STATUS_OK;
}

static void close_all(struct contest *contest)
{
    torch_child_close(&contest->torch);
    sampler_release(&contest->sampler);
    decode_close(contest->decode);
    model_source_close(&contest->source);
}

/* ---- the contest --------------------------------------------------------------- */

static double log_sum(const float *logits, uint32_t count)
{
    double most = -INFINITY;
    double sum = 0.0;

    for (uint32_t i = 0; i < count; i++) {
        most = fmax(most, (double)logits[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        sum += exp((double)logits[i] - most);
    }
    return most + log(sum);
}

/* One token: it is taken, and the next is drawn. The peer draws none. */
static enum status play_token(struct contest *contest, int number, uint32_t *token,
                              struct error *error)
{
    const uint32_t taken = *token;
    double start = bench_now();
    struct bench_time peer = {0};
    double seconds;
    double loss = 0.0;
    struct sampler_choice choice;

    TRY(decode_take(contest->decode, token, 1, error));
    sampler_next(&choice, &contest->sampler, decode_logits(contest->decode));
    seconds = bench_now() - start;
    *token = choice.token;
    if (contest->has_torch) {
        const double ours =
            log_sum(decode_logits(contest->decode), decode_vocabulary(contest->decode));
        double apart;

        (void)fwrite(&taken, sizeof(taken), 1, contest->torch.to);
        TRY(torch_child_step(&contest->torch, &loss, &peer, error));
        apart = fabs(loss / ours - 1.0);
        contest->worst = apart <= contest->worst ? contest->worst : apart; /* a NaN stays */
    }
    if (number >= WARM) {
        contest->ours[number - WARM] = seconds;
        contest->peer[number - WARM] = peer.seconds;
    }
    return STATUS_OK;
}

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return (a > b) - (a < b);
}

static double rate_of(double *seconds, int count)
{
    qsort(seconds, (size_t)count, sizeof(*seconds), by_size);
    return seconds[count / 2] > 0.0 ? 1.0 / seconds[count / 2] : 0.0;
}

/* Returns how many promises are broken. */
static int report(struct bench *bench, struct contest *contest)
{
    char name[BENCH_NAME_MAX];

    (void)snprintf(name, sizeof(name), "%s, %d tokens by %d thread%s", contest->shape->name,
                   contest->tokens, contest->threads, contest->threads == 1 ? "" : "s");
    bench_record(bench, name, "tokens/s", rate_of(contest->ours, contest->tokens),
                 contest->has_torch ? rate_of(contest->peer, contest->tokens) : 0.0, 1);
    if (contest->has_torch) {
        fprintf(stderr, "    logits differ by at most %.1e from PyTorch %s\n", contest->worst,
                contest->torch.version);
    }
    return !(contest->worst <= DIFFERENCE_MAX);
}

static int number_of(const char *name, int otherwise, int most)
{
    const char *text = getenv(name);
    const long number = text == NULL ? otherwise : strtol(text, NULL, 10);

    return number < 1 || number > most ? otherwise : (int)number;
}

static int run_shape(struct bench *bench, const struct shape *shape)
{
    struct contest *contest = calloc(1, sizeof(*contest));
    char place[FOLDER_PATH_MAX];
    struct error error;
    enum status status = STATUS_OK;
    uint32_t token = 464;
    int failures = 1;

    if (contest == NULL) {
        return 1;
    }
    contest->shape = shape;
    contest->tokens = number_of("GENERATE_TOKENS", TOKENS, TOKENS_MAX);
    contest->threads = number_of("GENERATE_THREADS", omp_get_num_procs(), DECODE_THREADS_MAX);
    error_init(&error);
    folder_make(place);
    TRY_OUT(open_all(contest, place, &error));
    for (int number = 0; number < contest->tokens + WARM; number++) {
        TRY_OUT(play_token(contest, number, &token, &error));
    }
    failures = report(bench, contest);
out:
    if (status != STATUS_OK) {
        fprintf(stderr, "generate: %s\n", error.text);
    }
    close_all(contest);
    folder_remove(place);
    free(contest);
    return failures;
}

int main(int argc, char **argv)
{
    const char *name = getenv("GENERATE_CASE");
    struct bench bench;
    int failures = 0;

    bench_init(&bench, "generation", "PyTorch float32", argc, argv);
    if (system("command -v python3 >/dev/null 2>&1") != 0) {
        fprintf(stderr, "  no python3: nothing is measured\n");
        return bench_finish(&bench);
    }
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        if (name == NULL ? i > 0 : strstr(shapes[i].name, name) != NULL) {
            failures += run_shape(&bench, &shapes[i]);
        }
    }
    return bench_finish(&bench) != 0 || failures != 0;
}
