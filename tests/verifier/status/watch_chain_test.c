/*
 * Goal: `lockstep watch`, which only reads, tells of each turn of a dispute on a chain as on the
 * embedded ledger.
 * Method: the program itself beside a job whose solver cheats and a node that claims, on both
 * ledgers; after each act it looks once.
 */
#include "tests/support/test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/dispute/cheat.h"
#include "tests/support/game/market.h"
#include "verifier/check/workers.h"

enum {
    STEPS = 12,
    SEGMENT = 4,
    WRONG_STEP = 6,
    ROUNDS_MAX = 20000,
    DEPTH = 2, /* of the market's ledgers */
};

/* What the program sees now; *code is its exit code. */
static json_t *look(struct market *market, const char *warn, int *code)
{
    char registry[ADDRESS_TEXT_SIZE];
    char command[2400];
    json_error_t error;
    json_t *view;
    FILE *pipe;
    int status;

    for (int i = 0; i <= DEPTH; i++) {
        market_pass_time(market, 1); /* a block */
    }
    address_print(registry, &market->options.registry);
    (void)snprintf(command, sizeof(command),
                   "'%s' watch --once --json --warn %s --depth %d --ledger '%s' --ledger-state "
                   "'%s/watcher' %s%s",
                   test_program(), warn, DEPTH, market->url, test_temp_dir(),
                   market->anvil == NULL ? "" : "--registry ",
                   market->anvil == NULL ? "" : registry);
    pipe = popen(command, "r");
    assert_non_null(pipe);
    view = json_loadf(pipe, 0, &error);
    status = pclose(pipe);
    if (view == NULL) {
        fail_msg("%s: %s", command, error.text);
    }
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
    return view;
}

static size_t size_of(const json_t *view, const char *list)
{
    return json_array_size(json_object_get(view, list));
}

static bool has_alarm(const json_t *view, const char *name)
{
    json_t *alarm;
    size_t i;

    json_array_foreach(json_object_get(view, "alarms"), i, alarm)
    {
        if (strcmp(json_string_value(json_object_get(alarm, "alarm")), name) == 0) {
            return true;
        }
    }
    return false;
}

/* The node works until the ledger holds an event of this kind. */
static void until(struct market *market, struct market_node *node, enum game_event_kind kind)
{
    for (int i = 1; market_count(market, kind, NULL) == 0; i++) {
        struct error error;
        bool busy;

        error_init(&error);
        assert_in_range(i, 1, ROUNDS_MAX);
        assert_int_equal(node_round(&node->node, &busy, &error), STATUS_OK);
        (void)usleep(5000);
        if (i % 64 == 0) {
            market_pass_time(market, 1);
        }
    }
}

static void see_before(struct market *market)
{
    json_t *waiting;
    json_t *segment;
    json_t *view;
    size_t i;
    int code;

    view = look(market, "1m", &code);
    assert_int_equal(code, 0);
    assert_int_equal(size_of(view, "jobs"), 1);
    assert_int_equal(size_of(view, "claims"), 0);
    assert_int_equal(size_of(view, "alarms"), 0);
    waiting = json_object_get(json_array_get(json_object_get(view, "jobs"), 0), "waiting");
    assert_int_equal(json_array_size(waiting), STEPS / SEGMENT);
    json_array_foreach(waiting, i, segment)
    {
        assert_string_equal(json_string_value(json_object_get(segment, "waits_for")), "undrawn");
        assert_int_equal(json_integer_value(json_object_get(segment, "final_not_before")), 0);
    }
    json_decref(view);
}

/* late: the turn is in its last third. */
static void see_claim(struct market *market, bool late)
{
    json_t *claim;
    json_t *view;
    int code;

    view = look(market, "2h", &code);
    assert_int_equal(code, 1);
    assert_int_equal(size_of(view, "claims"), 1);
    claim = json_array_get(json_object_get(view, "claims"), 0);
    assert_int_equal(json_integer_value(json_object_get(claim, "segment")), WRONG_STEP / SEGMENT);
    assert_string_equal(json_string_value(json_object_get(claim, "turn")), "solver");
    assert_int_equal(has_alarm(view, "turn"), late);
    assert_false(has_alarm(view, "convicted"));
    json_decref(view);
}

static void see_conviction(struct market *market)
{
    json_t *view;
    int code;

    view = look(market, "1m", &code);
    assert_int_equal(code, 1);
    assert_int_equal(size_of(view, "claims"), 0);
    assert_true(has_alarm(view, "convicted"));
    assert_false(has_alarm(view, "turn"));
    json_decref(view);
}

static void play(bool embedded)
{
    const char *path = small_path(embedded ? "embedded.run" : "chain.run");
    struct small_job_options options;
    struct market_node node;
    struct market market;
    uint64_t random = 3;

    small_job_of_kind(&options, MODEL_MLP);
    options.steps = STEPS;
    options.segment_length = SEGMENT;
    market_open(&market, embedded, embedded ? "embedded" : "chain");
    market.seats = 0; /* nobody is paid to look: who claims is an outsider */
    cheat_bundle_new(path, small_job_new(&options), CHEAT_ULP, WRONG_STEP, &random);
    (void)market_commit(&market, path);
    see_before(&market);
    market_node_defaults(&node, &market, path);
    node.options.mode = NODE_DEFEND;
    market_node_open(&node);
    until(&market, &node, GAME_CLAIMED);
    see_claim(&market, false);
    market_pass_time(&market, MARKET_CLOCK_S * 2 / 3 + 60); /* the solver is silent */
    see_claim(&market, true);
    market_pass_time(&market, MARKET_CLOCK_S / 3);
    until(&market, &node, GAME_CONVICTED);
    see_conviction(&market);
    market_node_close(&node);
    market_close(&market);
}

static void test_a_dispute_is_watched_on_the_embedded_ledger(void **state)
{
    (void)state;
    play(true);
}

static void test_a_dispute_is_watched_on_a_chain(void **state)
{
    (void)state;
    play(false);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_dispute_is_watched_on_the_embedded_ledger),
        cmocka_unit_test(test_a_dispute_is_watched_on_a_chain),
    };

    if (workers_asked(argc, argv)) {
        return workers_serve(argv, &dispute_child);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
