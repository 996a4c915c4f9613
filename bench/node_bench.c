/*
 * node_bench.c - the cost of checking, compared with the training that is checked.
 *
 * A solver trains a small GPT in this process. After each segment a child process, as a node starts
 * it, checks the segment, once plainly and once as for a seat, so all three run under the
 * same load; the cost is the median of the ratios, by processor time and by the clock. The check
 * that runs right after the training has not the same conditions as the one that runs second: each
 * kind comes first in every other segment, and its cost is the mean of both medians. Then a node
 * gets 200 small jobs at once. Then cheats are timed from the block with the commitment to the
 * block with the claim; and audits by one worker and by two.
 *
 *     NODE_THREADS=1       of solver and verifier
 *     NODE_SEGMENTS=7      segments of up to 50 steps; of longer ones as many as take that long
 *     NODE_LENGTH=         segments of this length alone, of at most 256 steps
 *     NODE_WIDTH=128       of the GPT: the wider, the smaller the trace's share of the cost
 *     NODE_JOBS=200        small jobs at once
 *     NODE_CLAIMS=9        cheats
 *     NODE_PART=           costs, jobs or claims alone
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench/support/bench.h"
#include "proofs/job/job_make.h"
#include "prover/serve/publish.h"
#include "prover/train/train.h"
#include "tests/support/dispute/cheat.h"
#include "tests/support/game/market.h"
#include "tests/support/test.h"
#include "verifier/check/workers.h"

/* The program that a node runs; this one also links the peers of other benchmarks. */
#define PROGRAM "build/lockstep"

enum {
    TOKENS = 4 << 20,
    SEGMENTS_MOST = 1000,
    NUMBERS_MAX = 4096,
    LONG_STEPS = 200, /* of a segment beside which a cold start is nothing */
    LENGTHS = 3,
    CHILD_NICENESS = 5, /* as of checks: neighbours treat both alike */
    IDLE_MS = 500,      /* as `lockstep verifier node` waits */
};

/* ---- numbers ------------------------------------------------------------------ */

struct numbers {
    double values[NUMBERS_MAX];
    uint32_t count;
};

static void numbers_add(struct numbers *numbers, double value)
{
    if (numbers->count < NUMBERS_MAX) {
        numbers->values[numbers->count++] = value;
    }
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return (a > b) - (a < b);
}

/* The quantile `part`. */
static double numbers_at(struct numbers *numbers, double part)
{
    qsort(numbers->values, numbers->count, sizeof(numbers->values[0]), compare);
    return numbers->count == 0 ? 0 : numbers->values[(uint32_t)(part * (numbers->count - 1) + 0.5)];
}

static uint64_t setting(const char *name, uint64_t usual)
{
    const char *text = getenv(name);
    unsigned long long given = text == NULL ? usual : strtoull(text, NULL, 10);

    return given < 1 || given > SEGMENTS_MOST ? usual : given;
}

static void insist(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        (void)fprintf(stderr, "node: %s\n", error->text);
        exit(1);
    }
}

/* ---- a segment trained, a segment checked ---------------------------------------- */

/* The costs of one kind of check. */
struct costs {
    struct numbers ratios;           /* by the clock */
    struct numbers processor_ratios; /* by processor time: neighbours do not count */
    struct numbers excess_s;         /* of processor time */
};

struct pairs {
    struct bundle *bundle;
    struct workers *workers;
    const char *data;
    const char *cache;
    double last_s;
    double last_processor_s;
    uint32_t checked;
    struct costs costs[2][2]; /* plain, and as for a seat; each as the first and as the second */
    struct numbers steps_s;
};

/* Of this process, or of its children that have ended. */
static double processor_s(int who)
{
    struct rusage used;

    (void)getrusage(who, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static void fill_segment(struct check_segment *segment, const struct pairs *pairs, uint32_t index)
{
    const struct job *job = bundle_job(pairs->bundle);
    uint64_t first = index * job->segment_length;
    struct error error;

    error_init(&error);
    segment->steps = (uint32_t)job->segment_length;
    insist(bundle_segment_root(&segment->root, pairs->bundle, index, &error), &error);
    for (uint64_t i = 0; i < segment->steps; i++) {
        insist(bundle_state_root(&segment->states[i], pairs->bundle, first + i + 1, &error),
               &error);
    }
}

static struct check_request *request_of(const struct pairs *pairs, bool traced)
{
    const struct job *job = bundle_job(pairs->bundle);
    struct check_request *request = calloc(1, sizeof(*request));
    uint32_t steps = (uint32_t)job->segment_length;

    if (request == NULL) {
        exit(1);
    }
    request->job_id = job->id;
    request->steps = job->steps;
    request->segment_steps = steps;
    request->index = pairs->checked;
    request->segment_count = pairs->checked == 0 ? 1 : 2;
    fill_segment(&request->segments[0], pairs, pairs->checked == 0 ? 0 : pairs->checked - 1);
    fill_segment(&request->segments[1], pairs, pairs->checked);
    memset(request->seed.bytes, traced, HASH32_SIZE);
    (void)snprintf(request->cache, sizeof(request->cache), "%s", pairs->cache);
    request->mirror_count = request->data_count = 1;
    (void)snprintf(request->mirrors[0], sizeof(request->mirrors[0]), "%s",
                   bundle_path(pairs->bundle));
    (void)snprintf(request->data[0], sizeof(request->data[0]), "%s", pairs->data);
    request->memory_max = (uint64_t)8 << 30;
    request->file_max = (uint64_t)1 << 33;
    request->mirror_timeout_s = 5;
    request->processor_s = 3600;
    request->threads = (uint32_t)setting("NODE_THREADS", 1);
    return request;
}

static double run_check(const struct pairs *pairs, const struct check_request *request)
{
    struct check_port port = workers_port(pairs->workers);
    struct check_result *result = calloc(1, sizeof(*result));
    double start = bench_now();
    uint64_t number = 0;
    struct error error;

    error_init(&error);
    if (result == NULL) {
        exit(1);
    }
    insist(port.start(port.context, 1, request, &error), &error);
    while (port.take(port.context, &number, result, &error) == STATUS_NOT_FOUND) {
        struct pollfd wait = {.fd = -1, .events = POLLIN};

        (void)workers_descriptors(pairs->workers, &wait.fd, 1);
        (void)poll(&wait, 1, 1000);
    }
    start = bench_now() - start;
    if (result->outcome != CHECK_PROVEN) {
        (void)fprintf(stderr, "node: segment %u: %s\n", request->index, result->reason);
        exit(1);
    }
    free(result);
    return start;
}

/* The first of the short segments is a warm-up. */
static bool counts(const struct pairs *pairs)
{
    return pairs->checked > 0 || bundle_job(pairs->bundle)->segment_length >= LONG_STEPS;
}

static void check_one(struct pairs *pairs, bool traced, uint32_t place, double trained_s,
                      double training_s)
{
    struct check_request *request = request_of(pairs, traced);
    struct costs *costs = &pairs->costs[traced][place];
    double checking_s = processor_s(RUSAGE_CHILDREN);
    double checked_s = run_check(pairs, request);

    checking_s = processor_s(RUSAGE_CHILDREN) - checking_s;
    free(request);
    if (counts(pairs)) {
        numbers_add(&costs->ratios, checked_s / trained_s);
        numbers_add(&costs->processor_ratios, checking_s / training_s);
        numbers_add(&costs->excess_s, checking_s - training_s);
    }
}

static enum status took_segment(void *context, struct error *error)
{
    struct pairs *pairs = context;
    double trained_s;
    double training_s;

    TRY(bundle_flush(pairs->bundle, error));
    trained_s = bench_now() - pairs->last_s;
    training_s = processor_s(RUSAGE_SELF) - pairs->last_processor_s;
    for (uint32_t i = 0; i < 2; i++) {
        check_one(pairs, (pairs->checked + i) % 2 == 1, i, trained_s, training_s);
    }
    if (counts(pairs)) {
        numbers_add(&pairs->steps_s,
                    training_s / (double)bundle_job(pairs->bundle)->segment_length);
    }
    pairs->checked++;
    pairs->last_s = bench_now();
    pairs->last_processor_s = processor_s(RUSAGE_SELF);
    return STATUS_OK;
}

static struct job *gpt_job(const char *data, uint64_t length, uint64_t segments)
{
    struct digest root;
    struct job_terms terms = {
        .steps = length * segments, .segment_length = length, .data_roots = &root, .data_count = 1};
    struct model_options options;
    struct dataset dataset;
    struct model model;
    struct job *job = NULL;
    struct error error;

    error_init(&error);
    model_options_default(&options, MODEL_GPT2);
    options.layers = 4;
    options.width = (uint32_t)setting("NODE_WIDTH", 128);
    options.heads = 4;
    options.vocabulary = 256;
    options.length = 128;
    options.batch = 8;
    options.data_dtype = DTYPE_U8;
    options.data_count = TOKENS;
    options.steps = (uint32_t)terms.steps;
    insist(model_build(&model, &options, &error), &error);
    insist(run_data_open(&dataset, &root, &model.tape->tensors[model.data], data, &error), &error);
    dataset_close(&dataset);
    insist(job_from_model(&job, &model, &terms, &error), &error);
    model_release(&model);
    return job;
}

/* Of both places; where one segment was all, of the place that there was. */
static double middle(struct numbers *first, struct numbers *second)
{
    if (first->count == 0 || second->count == 0) {
        return numbers_at(first->count == 0 ? second : first, 0.5);
    }
    return (numbers_at(first, 0.5) + numbers_at(second, 0.5)) / 2;
}

static void record_costs(struct bench *bench, struct pairs *pairs, uint64_t length, bool traced)
{
    struct costs *first = &pairs->costs[traced][0];
    struct costs *second = &pairs->costs[traced][1];
    char name[96];

    (void)snprintf(name, sizeof(name), "%u segments of %u steps of %.0f ms%s, against training",
                   pairs->steps_s.count, (unsigned)length, numbers_at(&pairs->steps_s, 0.5) * 1e3,
                   traced ? ", with proof" : "");
    bench_record(bench, name, "times", middle(&first->processor_ratios, &second->processor_ratios),
                 0.0, 0);
    bench_record(bench, "  the same by the clock", "times", middle(&first->ratios, &second->ratios),
                 0.0, 0);
    bench_record(bench, "  what its check takes more", "ms",
                 middle(&first->excess_s, &second->excess_s) * 1e3, 0.0, 0);
}

/* As many segments as take about as long as those of 50 steps. */
static uint64_t segments_of(uint64_t length)
{
    uint64_t count = setting("NODE_SEGMENTS", 7) * 50 / (length < 50 ? 50 : length);

    return length < LONG_STEPS ? count + 1 : (count < 1 ? 1 : count);
}

static void compare_costs(struct bench *bench, const char *data, uint64_t length)
{
    struct pairs *pairs = calloc(1, sizeof(*pairs));
    struct train_options options = {.threads = (int)setting("NODE_THREADS", 1),
                                    .segment = took_segment,
                                    .segment_context = pairs};
    struct train_result result;
    struct machine_options machine;
    struct run run;
    struct error error;
    char name[32];

    error_init(&error);
    (void)snprintf(name, sizeof(name), "run-%u", (unsigned)length);
    if (pairs == NULL) {
        exit(1);
    }
    pairs->data = data;
    pairs->cache = small_path("cache");
    insist(bundle_create(&pairs->bundle, small_path(name),
                         gpt_job(data, length, segments_of(length)), &error),
           &error);
    insist(workers_open(&pairs->workers, 1, 3600, PROGRAM, &error), &error);
    insist(machine_options_default(&machine, &error), &error);
    machine.thread_count = options.threads;
    insist(run_open(&run, bundle_job(pairs->bundle), &data, 1, &machine, &error), &error);
    pairs->last_s = bench_now();
    pairs->last_processor_s = processor_s(RUSAGE_SELF);
    insist(train(&result, pairs->bundle, &run, &options, &error), &error);
    record_costs(bench, pairs, length, false);
    record_costs(bench, pairs, length, true);
    run_close(&run);
    workers_close(pairs->workers);
    bundle_close(pairs->bundle);
    free(pairs);
}

/* ---- a node ------------------------------------------------------------------------ */

/* One round of the node, and the ledger's clock. */
static void round_of(struct market_node *node)
{
    struct pollfd waits[WORKERS_MAX];
    int descriptors[WORKERS_MAX];
    uint32_t count;
    struct error error;
    bool busy = false;

    error_init(&error);
    insist(node_round(&node->node, &busy, &error), &error);
    count = workers_descriptors(node->workers, descriptors, WORKERS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        waits[i] = (struct pollfd){.fd = descriptors[i], .events = POLLIN};
    }
    (void)poll(waits, count, busy ? 0 : IDLE_MS);
}

static struct job *mlp_job(uint64_t seed, uint64_t steps, uint64_t length)
{
    struct small_job_options options;

    small_job_of_kind(&options, MODEL_MLP);
    options.steps = steps;
    options.segment_length = length;
    options.model.seed = seed;
    return small_job_new(&options);
}

/* Publishes all bundles in one tree, which all mirrors serve. */
static void show(const char *folder, const char *const *bundles, size_t count)
{
    struct content_tree_options options = {.bundles = bundles, .bundle_count = count};
    struct publish_result result;
    struct content_tree *tree = NULL;
    struct error error;

    error_init(&error);
    insist(content_tree_open(&tree, &options, &error), &error);
    insist(publish(&result, tree, folder, &error), &error);
    content_tree_close(tree);
}

/* All jobs are there when the node starts; it checks each segment in full. */
static void many_jobs(struct bench *bench)
{
    enum { STEPS = 16, LENGTH = 8 };
    uint32_t jobs = (uint32_t)setting("NODE_JOBS", 200);
    char(*paths)[600] = calloc(jobs, sizeof(*paths));
    const char **names = calloc(jobs, sizeof(*names));
    const char *folder = small_path("jobs");
    const char *mirror = small_path("jobs-mirror");
    struct market_node node;
    struct market market;
    double trained_s = bench_now();
    double checked_s;
    struct error error;
    char name[64];

    error_init(&error);
    if (paths == NULL || names == NULL) {
        exit(1);
    }
    insist(file_make_folder(folder, &error, 0700), &error);
    for (uint32_t i = 0; i < jobs; i++) {
        (void)snprintf(paths[i], sizeof(paths[i]), "%s/%u", folder, (unsigned)i);
        names[i] = paths[i];
        bundle_close(small_bundle_new(paths[i], mlp_job(1000 + i, STEPS, LENGTH), NULL, STEPS));
    }
    trained_s = bench_now() - trained_s;
    show(mirror, names, jobs);
    market_open(&market, true, "many");
    for (uint32_t i = 0; i < jobs; i++) {
        (void)market_commit(&market, paths[i]);
    }
    market_node_defaults(&node, &market, mirror);
    node.program = PROGRAM;
    market_node_open(&node);
    checked_s = bench_now();
    while (market_node_number(&node, "SELECT count(*) FROM tasks WHERE outcome = 1") <
           jobs * (STEPS / LENGTH)) {
        round_of(&node);
    }
    checked_s = bench_now() - checked_s;
    (void)snprintf(name, sizeof(name), "%u small jobs at once: all %u segments checked", jobs,
                   jobs * (STEPS / LENGTH));
    bench_record(bench, name, "s", checked_s, 0.0, 0);
    bench_record(bench, "the same trained, one after another", "s", trained_s, 0.0, 0);
    market_node_close(&node);
    market_close(&market);
    free(names);
    free(paths);
}

/* Advances the ledger's clock with ours. */
static void keep_time(struct market *market, double *shown_s)
{
    while (bench_now() - *shown_s >= 1.0) {
        market_pass_time(market, 1);
        *shown_s += 1.0;
    }
}

/* Seconds from the commitment to the claim, without the replays. */
static double claim_one(struct market *market, struct market_node *node, uint64_t seed,
                        double *replay_s)
{
    enum { STEPS = 8 };
    uint64_t random = seed;
    char name[32];
    const char *path;
    uint32_t claims = market_count(market, GAME_CLAIMED, NULL);
    double shown_s = bench_now();
    double start;

    (void)snprintf(name, sizeof(name), "cheat-%u", (unsigned)seed);
    path = small_path(name);
    cheat_bundle_new(path, mlp_job(seed, STEPS, STEPS), CHEAT_ULP, seed % STEPS, &random);
    node->mirrors[0] = path;
    round_of(node);
    (void)market_commit(market, path);
    start = bench_now();
    (void)poll(NULL, 0, IDLE_MS); /* the node has just looked */
    while (market_count(market, GAME_CLAIMED, NULL) == claims) {
        keep_time(market, &shown_s);
        round_of(node);
    }
    start = bench_now() - start;
    *replay_s =
        (double)market_node_number(node, "SELECT ended_ms - begun_ms FROM tasks WHERE outcome = 2"
                                         " ORDER BY number DESC LIMIT 1") /
        1e3;
    return start;
}

static void claims(struct bench *bench)
{
    struct numbers *beside = calloc(1, sizeof(*beside));
    struct market_node node;
    struct market market;

    if (beside == NULL) {
        exit(1);
    }
    market_open(&market, true, "claims");
    market_node_defaults(&node, &market, "");
    node.options.mode = NODE_DEFEND;
    node.program = PROGRAM;
    market_node_open(&node);
    for (uint64_t i = 0; i < setting("NODE_CLAIMS", 9); i++) {
        double replay_s;
        double whole_s = claim_one(&market, &node, 500 + i, &replay_s);

        numbers_add(beside, whole_s - replay_s);
    }
    bench_record(bench, "from commitment to claim beside the replay, median", "s",
                 numbers_at(beside, 0.5), 0.0, 0);
    bench_record(bench, "the longest", "s", numbers_at(beside, 1.0), 0.0, 0);
    market_node_close(&node);
    market_close(&market);
    free(beside);
}

/* ---- an audit by workers --------------------------------------------------------------- */

static double audit_seconds(const char *bundle, const char *data, int workers)
{
    char command[2400];
    double start = bench_now();

    (void)snprintf(command, sizeof(command),
                   PROGRAM " audit --workers %d --threads 1 --data %s %s >/dev/null 2>&1", workers,
                   data, bundle);
    if (system(command) != 0) {
        (void)fprintf(stderr, "node: %s\n", command);
        exit(1);
    }
    return bench_now() - start;
}

static void audit_workers(struct bench *bench, const char *data, const char *bundle)
{
    struct numbers *ratios = calloc(1, sizeof(*ratios));

    if (ratios == NULL || access(PROGRAM, X_OK) != 0) {
        (void)fprintf(stderr, "  no " PROGRAM ": audits are left out\n");
        free(ratios);
        return;
    }
    for (int i = 0; i < 5; i++) {
        double one = audit_seconds(bundle, data, 1);

        numbers_add(ratios, one / audit_seconds(bundle, data, 2));
    }
    bench_record(bench, "an audit by 2 workers of 1 thread against 1 worker", "times",
                 numbers_at(ratios, 0.5), 0.0, 1);
    free(ratios);
}

/* ---- all of it ---------------------------------------------------------------------------- */

static const char *write_data(void)
{
    const char *path = small_path("data.u8");
    uint8_t *data = malloc(TOKENS);
    uint64_t random = 1;
    struct error error;

    error_init(&error);
    if (data == NULL) {
        exit(1);
    }
    test_random_fill(&random, data, TOKENS);
    insist(file_write(path, &error, data, TOKENS, 0600), &error);
    free(data);
    return path;
}

static bool is_wanted(const char *part)
{
    const char *only = getenv("NODE_PART");

    return only == NULL || strcmp(only, part) == 0;
}

int main(int argc, char **argv)
{
    static const uint64_t lengths[LENGTHS] = {50, 200, 8};
    uint64_t only = setting("NODE_LENGTH", 0);
    struct bench bench;
    const char *data;

    if (only > GAME_STATES_MAX) {
        (void)fprintf(stderr, "node: a segment has at most %u steps\n", GAME_STATES_MAX);
        return 2;
    }
    bench_init(&bench, "node", "", argc, argv);
    (void)setpriority(PRIO_PROCESS, 0, CHILD_NICENESS);
    data = write_data();
    for (size_t i = 0; i < (only > 0 ? 1 : LENGTHS) && is_wanted("costs"); i++) {
        compare_costs(&bench, data, only > 0 ? only : lengths[i]);
    }
    if (is_wanted("jobs")) {
        many_jobs(&bench);
    }
    if (is_wanted("claims")) {
        claims(&bench);
    }
    if (is_wanted("costs") && (only == 0 || only == 50)) {
        audit_workers(&bench, data, small_path("run-50"));
    }
    return bench_finish(&bench);
}
