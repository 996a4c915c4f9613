/*
 * Goal: from the first difference to the conviction a verifier computes the disputed step at most
 * three times: the replay that finds it, the second replay with other instructions, and the trace;
 * and once more for the micro-batch in which the difference lies.
 * Method: a small job whose very first step is false, on the embedded ledger, against a solver that
 * serves nothing but what the ledger makes it reply; the node checks in this process and every
 * result says how many steps it ran. The whole walk goes over the ledger, a child for each turn.
 */
#include "proofs/commit/descriptor.h"
#include "tests/support/dispute/defendant.h"
#include "tests/support/test.h"

enum {
    ROUNDS_MAX = 200000,
    RUNS_MAX = 3,
    PAUSE_S = 60, /* a small part of the clocks and periods of a market */
};

static void check(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fail_msg("%s", error->text);
    }
}

/* Counts what the checks of a node run; its clock passes pauses in no time. */
struct counter {
    struct check_port honest;
    struct check_request last;
    uint64_t runs;     /* of the disputed step */
    uint32_t disputes; /* children that looked for a move */
    uint64_t now_ms;
};

static enum status counter_start(void *context, uint64_t number,
                                 const struct check_request *request, struct error *error)
{
    struct counter *counter = context;

    counter->last = *request;
    return counter->honest.start(counter->honest.context, number, request, error);
}

static enum status counter_take(void *context, uint64_t *number, struct check_result *result,
                                struct error *error)
{
    struct counter *counter = context;
    enum status status = counter->honest.take(counter->honest.context, number, result, error);

    if (status == STATUS_OK && counter->last.index == 0) {
        /* Nothing but the job's first step is run here: it is the disputed one. */
        counter->runs += result->steps_run;
        counter->disputes += counter->last.disputed;
    }
    return status;
}

static uint64_t counter_now_ms(void *context)
{
    struct counter *counter = context;

    return counter->now_ms += 30000;
}

struct scene {
    struct market market;
    struct market_node node;
    struct defendant accused;
    struct counter counter;
};

static void scene_open(struct scene *scene, const char *name, struct job *job,
                       const struct defendant_lie *lie)
{
    const char *path = small_path(name);
    struct hash32 key;

    memset(scene, 0, sizeof(*scene));
    market_open(&scene->market, true, name);
    defendant_write(path, job, lie);
    key = market_commit(&scene->market, path);
    defendant_open(&scene->accused, &scene->market, MARKET_SOLVER, &key, path, lie);
    market_node_defaults(&scene->node, &scene->market, path);
    scene->node.in_process = true;
    scene->node.options.mode = NODE_DEFEND;
    scene->node.options.checks_max = 1;
    market_node_open(&scene->node);
    scene->counter.honest = scene->node.node.ports.checks;
    scene->node.node.ports.checks =
        (struct check_port){&scene->counter, counter_start, counter_take};
    scene->node.node.ports.now_ms = counter_now_ms;
    scene->node.node.ports.clock = &scene->counter;
}

static void play(struct scene *scene)
{
    for (int i = 0; market_count(&scene->market, GAME_CONVICTED, NULL) == 0; i++) {
        struct error error;
        bool busy = false;

        assert_true(i < ROUNDS_MAX);
        error_init(&error);
        check(node_round(&scene->node.node, &busy, &error), &error);
        defendant_round(&scene->accused);
        if (!busy) {
            market_pass_time(&scene->market, PAUSE_S);
        }
    }
}

static void scene_close(struct scene *scene)
{
    market_node_close(&scene->node);
    defendant_close(&scene->accused);
    market_close(&scene->market);
}

static void test_a_conviction_runs_the_disputed_step_three_times(void **state)
{
    uint64_t random = 3;
    struct job *job = defendant_job(MODEL_MLP, 61);
    struct defendant_lie lie = defendant_choose(job, 0, &random);
    struct scene scene;

    (void)state;
    scene_open(&scene, "runs", job, &lie);
    play(&scene);
    assert_true(market_count(&scene.market, GAME_REPLIED, NULL) >= 2);
    assert_true(scene.counter.disputes >= 3); /* queries, and the evidence */
    assert_in_range(scene.counter.runs, 1, RUNS_MAX);
    scene_close(&scene);
}

/* Where both agree on the trace, and not on the state that it ends in. */
static void test_a_false_end_of_a_true_trace_costs_no_more(void **state)
{
    uint64_t random = 4;
    struct job *job = defendant_job(MODEL_MLP, 62);
    struct defendant_lie lie = defendant_choose(job, 0, &random);
    struct scene scene;

    (void)state;
    lie.in_trace = false;
    scene_open(&scene, "end", job, &lie);
    play(&scene);
    assert_in_range(scene.counter.runs, 1, RUNS_MAX);
    scene_close(&scene);
}

/* A contraction of a micro-batch. */
static uint32_t contraction_of(const struct tape *tape, uint32_t batch)
{
    struct op_turn maker;
    uint32_t op = 0;

    while (!descriptor_runs_in(&maker, tape, op, batch) || tape->ops[op].kind != OP_CONTRACT) {
        op++;
        assert_true(op < tape->op_count);
    }
    return trace_item_of_output(tape, maker, 0);
}

/* The file of the trace has one micro-batch, and the step is run once more to turn to it. */
static void test_a_lie_in_a_micro_batch_costs_one_run_more(void **state)
{
    uint64_t random = 5;
    struct small_job_options options;
    struct defendant_lie lie;
    struct scene scene;
    struct job *job;

    (void)state;
    small_job_of_kind(&options, MODEL_MLP);
    options.model.accumulate = 4;
    options.model.group = 4; /* all but the first are turns of a loop */
    job = defendant_job_of(&options, 63);
    lie = defendant_choose(job, 0, &random);
    lie.trace = (struct lie){.item = contraction_of(job->tape, 3)};
    scene_open(&scene, "batch", job, &lie);
    play(&scene);
    assert_true(scene.counter.disputes >= 3);
    assert_in_range(scene.counter.runs, RUNS_MAX + 1, RUNS_MAX + 1);
    scene_close(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_conviction_runs_the_disputed_step_three_times),
        cmocka_unit_test(test_a_false_end_of_a_true_trace_costs_no_more),
        cmocka_unit_test(test_a_lie_in_a_micro_batch_costs_one_run_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
