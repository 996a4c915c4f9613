/*
 * Goal: a seat that said what is right gets bond and fee, though the solver is never seen again;
 * and all others that have money in the job get it too. Method: the real node sits in the panel of
 * whole jobs whose solver makes no move after its last commit. Time is the test's. Every wei is
 * looked at, on the embedded ledger and on a chain.
 */
#include "tests/support/test.h"

#include <string.h>

#include "tests/support/dispute/cheat.h"
#include "tests/support/game/market.h"
#include "verifier/node/node_plan.h"
#include "verifier/node/signing_guard.h"

enum {
    STEPS = 12,
    SEGMENT = 4,
    SEGMENTS = 3,
    SPREAD_S = MARKET_GRACE_S / 5 + 1,
    ROUNDS_MAX = 40,
};

#define REWARD (WEI_PER_ETHER / 10)
#define FEE    (WEI_PER_ETHER / 100)
#define BOND   (WEI_PER_ETHER / 10)
#define STAKE  (2 * WEI_PER_ETHER)

struct scene {
    struct market market;
    struct market_node node;
    struct hash32 job;
    const char *path;
};

static void check(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fail_msg("%s", error->text);
    }
}

static void scene_open(struct scene *scene, const char *name, bool embedded)
{
    struct small_job_options options;
    uint64_t random = 1;

    memset(scene, 0, sizeof(*scene));
    market_open(&scene->market, embedded, name);
    small_job_of_kind(&options, MODEL_MLP);
    options.steps = STEPS;
    options.segment_length = SEGMENT;
    scene->path = small_path(name);
    cheat_bundle_new(scene->path, small_job_new(&options), CHEAT_NOT, 0, &random);
    scene->job = market_commit(&scene->market, scene->path);
    market_node_defaults(&scene->node, &scene->market, scene->path);
}

static void scene_close(struct scene *scene)
{
    assert_int_equal(
        market_node_number(&scene->node, "SELECT count(*) FROM facts WHERE name = 'fault'"), 0);
    market_node_close(&scene->node);
    market_close(&scene->market);
}

static uint32_t count(struct scene *scene, enum game_event_kind kind)
{
    return market_count(&scene->market, kind, NULL);
}

/* Every verdict is sealed and revealed. */
static void say_all(struct scene *scene)
{
    market_node_settle(&scene->node);
    market_pass_time(&scene->market, MARKET_SEAL_S + 1);
    market_node_settle(&scene->node);
}

/* From the reveals to where a living solver would have made all final long ago. */
static void outwait(struct scene *scene)
{
    market_pass_time(&scene->market, MARKET_REVEAL_S + MARKET_CLAIM_S);
    market_node_settle(&scene->node);
    assert_int_equal(count(scene, GAME_FINALIZED), 0);
    market_pass_time(&scene->market, MARKET_GRACE_S);
}

static void play_until(struct scene *scene, enum game_event_kind kind, uint32_t wanted,
                       uint32_t pause_s)
{
    for (int i = 0; count(scene, kind) < wanted; i++) {
        assert_true(i < ROUNDS_MAX);
        market_pass_time(&scene->market, pause_s);
        market_node_settle(&scene->node);
    }
    market_node_settle(&scene->node);
    assert_int_equal(count(scene, kind), wanted);
}

static void see_owed(struct scene *scene, enum market_player player, wei amount)
{
    char texts[2][WEI_TEXT_SIZE];

    currency_print(texts[0], &currency_coin, market_owed(&scene->market, player));
    currency_print(texts[1], &currency_coin, amount);
    assert_string_equal(texts[0], texts[1]);
}

static void see_paid(struct scene *scene)
{
    assert_int_equal(market_job(&scene->market, &scene->job).phase, GAME_PHASE_CLOSED);
    see_owed(scene, MARKET_VERIFIER, SEGMENTS * FEE + BOND);
    see_owed(scene, MARKET_SOLVER, SEGMENTS * REWARD + STAKE);
    see_owed(scene, MARKET_CLIENT, 2 * SEGMENTS * FEE); /* of the pool what nobody earned */
    assert_int_equal(market_node_number(&scene->node,
                                        "SELECT count(*) FROM actions WHERE kind = :settle"
                                        " AND state = 2"),
                     SEGMENTS);
}

static void play_vanished(const char *name, bool embedded)
{
    struct scene scene;

    scene_open(&scene, name, embedded);
    market_node_open(&scene.node);
    say_all(&scene);
    outwait(&scene);
    play_until(&scene, GAME_FEE_PAID, SEGMENTS, SPREAD_S);
    see_paid(&scene);
    scene_close(&scene);
}

static void test_the_panel_of_a_vanished_solver_is_paid(void **state)
{
    (void)state;
    play_vanished("gone", true);
}

static void test_the_panel_of_a_vanished_solver_is_paid_on_a_chain(void **state)
{
    (void)state;
    play_vanished("gone-on-a-chain", false);
}

/* Neither a node that only observes nor a command that makes one claim pays gas for others. */
static void test_who_is_not_to_act_makes_nothing_final(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene, "observer", true);
    market_node_open(&scene.node);
    say_all(&scene);
    market_node_close(&scene.node);
    scene.node.options.mode = NODE_OBSERVE;
    market_node_open(&scene.node);
    outwait(&scene);
    market_pass_time(&scene.market, SPREAD_S);
    market_node_settle(&scene.node);
    market_node_close(&scene.node);
    scene.node.options.mode = NODE_ACT;
    scene.node.options.by_hand = true;
    market_node_open(&scene.node);
    market_node_settle(&scene.node);
    assert_int_equal(count(&scene, GAME_FINALIZED), 0);
    assert_int_equal(
        market_node_number(&scene.node, "SELECT count(*) FROM actions WHERE kind > :draw"), 0);
    scene_close(&scene);
}

/* The solver was not gone after all: its move comes between the node's plan and the node's move. */
static void test_a_solver_that_comes_back_overtakes_the_node(void **state)
{
    struct scene scene;
    struct error error;
    bool busy = false;

    (void)state;
    error_init(&error);
    scene_open(&scene, "back", true);
    market_node_open(&scene.node);
    say_all(&scene);
    outwait(&scene);
    market_pass_time(&scene.market, SPREAD_S);
    check(ledger_get_clock(scene.node.ledger, &scene.node.node.clock, &error), &error);
    check(node_plan(&scene.node.node, &error), &error);
    market_settle(&scene.market, &scene.job, 0);
    check(signing_guard_round(&scene.node.node, &busy, &error), &error);
    check(signing_guard_round(&scene.node.node, &busy, &error), &error);
    assert_int_equal(
        market_node_number(&scene.node,
                           "SELECT count(*) FROM actions WHERE kind = :settle AND state = 5"),
        1);
    /* And for good this time. */
    play_until(&scene, GAME_FEE_PAID, SEGMENTS, SPREAD_S);
    assert_int_equal(market_job(&scene.market, &scene.job).phase, GAME_PHASE_CLOSED);
    see_owed(&scene, MARKET_VERIFIER, SEGMENTS * FEE + BOND);
    assert_int_equal(
        market_node_number(&scene.node,
                           "SELECT count(*) FROM actions WHERE kind = :settle AND state = 2"),
        SEGMENTS - 1);
    scene_close(&scene);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_panel_of_a_vanished_solver_is_paid),
        cmocka_unit_test(test_the_panel_of_a_vanished_solver_is_paid_on_a_chain),
        cmocka_unit_test(test_who_is_not_to_act_makes_nothing_final),
        cmocka_unit_test(test_a_solver_that_comes_back_overtakes_the_node),
    };

    if (workers_asked(argc, argv)) {
        return workers_serve(argv, &dispute_child);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
