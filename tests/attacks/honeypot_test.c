/*
 * Goal: a client and a solver that are one party get no bond out of a node that asks its policy.
 * Method: the attack as it was played: 64 seats, no fee, a bond of 45 ether and one second to
 * reveal, on an honest training; and the same with a false step, whose claim has a bond of 45 ether
 * and turns of one second. The node is the real one. Once it has no policy, as it had none, and
 * loses the bonds; once it has the policy of its defaults. Client and solver are one party: their
 * money is counted together, before and after, on both ledgers. On a chain they pay gas besides.
 * Then baits that look better and better, up to terms that nobody can tell from good ones, for a
 * node that is off when it should reveal: it loses at most what the policy says, and only once.
 */
#include "tests/support/test.h"

#include <string.h>
#include <unistd.h>

#include "tests/support/dispute/cheat.h"
#include "tests/support/game/market.h"
#include "verifier/dispute/dispute_child.h"

#define ETH WEI_PER_ETHER

enum {
    STEPS = 12,
    SEGMENT = 4,
    SEGMENTS = 3,
    FALSE_STEP = 6,
    SEATS = 64,
    ROUNDS = 40,
};

static const struct policy no_policy;

/* ---- the terms ----------------------------------------------------------------- */

static void bait(struct game_terms *terms)
{
    terms->attest_fee = 0;
    terms->attest_bond = 45 * ETH;
    terms->coverage_ppm = 0;
    terms->reveal_period_s = 1;
}

static void bait_with_a_fee(struct game_terms *terms)
{
    bait(terms);
    terms->attest_fee = WEI_PER_GWEI;
}

static void bait_with_a_large_fee(struct game_terms *terms)
{
    bait(terms);
    terms->attest_fee = terms->attest_bond / 20;
}

static void bait_with_time(struct game_terms *terms)
{
    bait_with_a_large_fee(terms);
    terms->reveal_period_s = MARKET_REVEAL_S;
}

static void good_looking(struct game_terms *terms)
{
    terms->attest_fee = ETH / 4;
    terms->attest_bond = 5 * ETH;
    terms->coverage_ppm = 0;
}

static void trap(struct game_terms *terms)
{
    terms->attest_bond = ETH / 10;
    terms->coverage_ppm = 0;
    terms->stake = 90 * ETH;
    terms->claim_bond = 45 * ETH;
    terms->response_period_s = 1;
}

/* ---- playing ------------------------------------------------------------------- */

static const char *make_run(const char *name, uint64_t seed, enum cheat cheat)
{
    const char *path = small_path(name);
    struct small_job_options options;
    uint64_t random = seed;

    small_job_of_kind(&options, MODEL_MLP);
    options.steps = STEPS;
    options.segment_length = SEGMENT;
    options.model.seed = seed;
    cheat_bundle_new(path, small_job_new(&options), cheat, FALSE_STEP, &random);
    return path;
}

static wei attackers_money(struct market *market)
{
    return market_money(market, MARKET_CLIENT) + market_money(market, MARKET_SOLVER);
}

static wei victims_money(struct market *market)
{
    return market_money(market, MARKET_VERIFIER);
}

static const struct address *victim(const struct market *market)
{
    return signer_address(market->signers[MARKET_VERIFIER]);
}

static void see_unharmed(struct market *market, wei before, wei after)
{
    wei gas = market->anvil == NULL ? 0 : ETH / 10;

    assert_true(after <= before && after + gas >= before);
}

/* What a second attack finds is what the first has left: a node goes on where it was. */
static void open_node(struct market_node *node, struct market *market, const char *path,
                      const struct policy *policy)
{
    market_node_defaults(node, market, path);
    node->options.policy = *policy;
    market_node_open(node);
}

static void do_round(struct market_node *node)
{
    struct error error;
    bool busy = false;

    error_init(&error);
    if (node_round(&node->node, &busy, &error) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
    if (node->node.running_count > 0) {
        (void)usleep(2000);
    }
}

/* Rounds for a node that will not be quiet, since it would do more than its policy lets it. */
static void some_rounds(struct market_node *node)
{
    for (int i = 0; i < ROUNDS;) {
        do_round(node);
        if (node->node.running_count == 0) {
            i++;
            market_pass_time(node->market, 1);
        }
    }
}

/* Until its claim is on the ledger: the clock stands there. */
static void rounds_to_claim(struct market_node *node)
{
    do_round(node);
    while (market_count(node->market, GAME_CLAIMED, victim(node->market)) == 0) {
        if (node->node.running_count == 0) {
            market_pass_time(node->market, 1);
        }
        do_round(node);
    }
}

/* The training is honest and becomes final; who did not reveal loses its bond to the solver.
 * Returns how many bonds that were. */
static uint32_t play_honeypot(struct market *market, struct market_node *node,
                              const struct hash32 *job)
{
    struct store_segment segments[SEGMENTS];
    uint32_t lost = 0;
    struct error error;

    market_node_settle(node);
    for (uint32_t i = 0; i < SEGMENTS; i++) {
        error_init(&error);
        assert_int_equal(store_segment(&node->store, &segments[i], job, i, &error), STATUS_OK);
    }
    market_pass_time(market, MARKET_ATTEST_S + MARKET_REVEAL_S + 10); /* the node is too late */
    market_pass_time(market, MARKET_CLAIM_S);
    for (uint32_t i = 0; i < SEGMENTS; i++) {
        if (segments[i].mine == STORE_MINE_SEALED) {
            market_settle(market, MARKET_SOLVER, job, i, victim(market));
            lost++;
        }
        market_finalize(market, job, i);
    }
    assert_int_equal(market_job(market, job).phase, GAME_PHASE_CLOSED);
    market_node_settle(node);
    return lost;
}

static int64_t refused_by(struct market_node *node, const char *option)
{
    char query[160];

    (void)snprintf(query, sizeof(query), "SELECT count(*) FROM segments WHERE reason LIKE '%%%s%%'",
                   option);
    return market_node_number(node, query);
}

/* ---- the honeypot ---------------------------------------------------------------- */

static void play(bool embedded, const char *name, void (*terms)(struct game_terms *terms),
                 const struct policy *policy, const char *refused)
{
    const char *path = make_run(name, 3, CHEAT_NOT);
    struct market_node node;
    struct market market;
    struct hash32 job;
    wei attackers;
    wei before;

    market_open(&market, embedded, name);
    market.attestors = SEATS;
    market.retouch = terms;
    attackers = attackers_money(&market);
    before = victims_money(&market);
    job = market_commit(&market, path);
    open_node(&node, &market, path, policy);
    if (refused == NULL) {
        assert_int_equal(play_honeypot(&market, &node, &job), SEGMENTS);
        see_unharmed(&market, before - SEGMENTS * 45 * ETH, victims_money(&market));
        see_unharmed(&market, attackers + SEGMENTS * 45 * ETH, attackers_money(&market));
    } else {
        assert_int_equal(play_honeypot(&market, &node, &job), 0);
        assert_int_equal(refused_by(&node, refused), SEGMENTS);
        see_unharmed(&market, before, victims_money(&market));
        see_unharmed(&market, attackers, attackers_money(&market));
    }
    market_node_close(&node);
    market_close(&market);
}

static void test_without_a_policy_a_honeypot_takes_all_bonds(void **state)
{
    (void)state;
    play(true, "honeypot", bait, &no_policy, NULL);
}

static void test_without_a_policy_a_honeypot_takes_all_bonds_on_a_chain(void **state)
{
    (void)state;
    play(false, "honeypot-evm", bait, &no_policy, NULL);
}

static void test_with_the_default_policy_a_honeypot_takes_nothing(void **state)
{
    const struct policy policy = policy_default();

    (void)state;
    play(true, "refused", bait, &policy, "--fee-least");
}

static void test_with_the_default_policy_a_honeypot_takes_nothing_on_a_chain(void **state)
{
    const struct policy policy = policy_default();

    (void)state;
    play(false, "refused-evm", bait, &policy, "--fee-least");
}

static void test_better_baits_are_refused_for_what_is_left_of_them(void **state)
{
    const struct policy policy = policy_default();

    (void)state;
    play(true, "fee", bait_with_a_fee, &policy, "--bond-fees-most");
    play(true, "large-fee", bait_with_a_large_fee, &policy, "--reveal-period-least");
    play(true, "time", bait_with_time, &policy, "-most");
}

/* Nobody can tell these terms from honest ones. The node is off when it should reveal, twice: a
 * bond that was lost counts as locked, so the second job of the same client gets none. */
static void test_the_best_bait_takes_one_hundredth_and_only_once(void **state)
{
    const struct policy policy = policy_default();
    const char *path = make_run("best", 5, CHEAT_NOT);
    struct market_node node;
    struct market market;
    struct hash32 job;
    wei before;

    (void)state;
    market_open(&market, true, "best");
    market.attestors = SEATS;
    market.retouch = good_looking;
    before = victims_money(&market);
    job = market_commit(&market, path);
    open_node(&node, &market, path, &policy);
    assert_int_equal(play_honeypot(&market, &node, &job), 2);
    assert_true(victims_money(&market) == before - before / 100);
    job = market_commit(&market, path);
    assert_int_equal(play_honeypot(&market, &node, &job), 0);
    assert_true(victims_money(&market) == before - before / 100);
    market_node_close(&node);
    market_close(&market);
}

/* ---- the trap for a whistle -------------------------------------------------------- */

static struct hash32 find_claim(struct market *market)
{
    struct ledger_entry entry = {0};
    struct hash32 claim = {{0}};
    struct error error;

    error_init(&error);
    (void)!ledger_catch_up(market->ledgers[MARKET_CLIENT], &error);
    while (ledger_next(market->ledgers[MARKET_CLIENT], &entry, entry.number, 0, &error) ==
           STATUS_OK) {
        if (entry.event.kind == GAME_CLAIMED) {
            claim = entry.event.claim;
        }
    }
    assert_false(hash32_is_zero(&claim));
    return claim;
}

static void play_trap(bool embedded, const char *name, const struct policy *policy, bool robbed)
{
    const char *path = make_run(name, 7, CHEAT_ULP);
    const struct digest root = {{9}};
    struct market_node node;
    struct market market;
    struct hash32 claim;
    wei attackers;
    wei before;

    market_open(&market, embedded, name);
    market.retouch = trap;
    (void)market_commit(&market, path);
    attackers = attackers_money(&market);
    before = victims_money(&market);
    open_node(&node, &market, path, policy);
    node.node.options.mode = NODE_DEFEND;
    if (robbed) {
        rounds_to_claim(&node);
        claim = find_claim(&market);
        market_answer(&market, MARKET_SOLVER, &claim, &root);
        market_pass_time(&market, 3);
        market_timeout(&market, MARKET_SOLVER, &claim);
        see_unharmed(&market, before - 45 * ETH, victims_money(&market));
        see_unharmed(&market, attackers + 45 * ETH, attackers_money(&market));
    } else {
        some_rounds(&node);
        assert_int_equal(market_count(&market, GAME_SEALED, NULL), 0);
        assert_true(market_node_number(&node, "SELECT count(*) FROM actions WHERE trouble LIKE"
                                              " '%--response-period-least%'") > 0);
        see_unharmed(&market, before, victims_money(&market));
        see_unharmed(&market, attackers, attackers_money(&market));
    }
    market_node_close(&node);
    market_close(&market);
}

static void test_without_a_policy_a_true_claim_may_lose_its_bond(void **state)
{
    (void)state;
    play_trap(true, "trap", &no_policy, true);
}

static void test_with_the_default_policy_no_claim_is_made_that_has_no_time(void **state)
{
    const struct policy policy = policy_default();

    (void)state;
    play_trap(true, "untrapped", &policy, false);
}

static void test_with_the_default_policy_no_claim_is_made_that_has_no_time_on_a_chain(void **state)
{
    const struct policy policy = policy_default();

    (void)state;
    play_trap(false, "untrapped-evm", &policy, false);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_a_policy_a_honeypot_takes_all_bonds),
        cmocka_unit_test(test_without_a_policy_a_honeypot_takes_all_bonds_on_a_chain),
        cmocka_unit_test(test_with_the_default_policy_a_honeypot_takes_nothing),
        cmocka_unit_test(test_with_the_default_policy_a_honeypot_takes_nothing_on_a_chain),
        cmocka_unit_test(test_better_baits_are_refused_for_what_is_left_of_them),
        cmocka_unit_test(test_the_best_bait_takes_one_hundredth_and_only_once),
        cmocka_unit_test(test_without_a_policy_a_true_claim_may_lose_its_bond),
        cmocka_unit_test(test_with_the_default_policy_no_claim_is_made_that_has_no_time),
        cmocka_unit_test(test_with_the_default_policy_no_claim_is_made_that_has_no_time_on_a_chain),
    };

    if (workers_asked(argc, argv)) {
        return workers_serve(&dispute_child);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
