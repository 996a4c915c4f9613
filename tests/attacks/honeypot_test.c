/*
 * Goal: a client and a solver that are one party get no bond out of a node that asks its policy.
 * Method: the attack as it was played: a bond of 45 ether, a fee of one wei and one second to
 * reveal. The node is the real one. Once it has no policy: it locks nothing all the same, since
 * nobody shows it the job, and it enlists in none that it has not tried; where the job is shown it
 * locks the bond, and has it back. Once it has the policy of its defaults. Then baits that look
 * better and better. That absence costs no bond, panel_test.c plays. Client and solver are one
 * party: their money is counted together.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <unistd.h>

#include "tests/support/dispute/cheat.h"
#include "tests/support/game/market.h"
#include "verifier/dispute/dispute_child.h"

#define ETH WEI_PER_ETHER

enum {
    STEPS = 12,
    SEGMENT = 4,
    ROUNDS = 40,
};

#define TRIED "SELECT count(*) FROM wishes WHERE reason LIKE 'its job %tried here%'"

static const struct policy no_policy;

/* ---- the terms ----------------------------------------------------------------- */

static void bait(struct game_terms *terms)
{
    terms->fee = 1;
    terms->stake = 90 * ETH;
    terms->bond = 45 * ETH;
    terms->reveal_period_s = 1;
}

static void bait_with_a_fee(struct game_terms *terms)
{
    bait(terms);
    terms->fee = WEI_PER_GWEI;
}

static void bait_with_a_large_fee(struct game_terms *terms)
{
    bait(terms);
    terms->fee = terms->bond / 20;
}

static void bait_with_time(struct game_terms *terms)
{
    bait_with_a_large_fee(terms);
    terms->reveal_period_s = MARKET_REVEAL_S;
}

static void trap(struct game_terms *terms)
{
    terms->stake = 90 * ETH;
    terms->clock_s = 1;
}

/* ---- playing ------------------------------------------------------------------- */

static wei attackers_money(struct market *market)
{
    return market_money(market, MARKET_CLIENT) + market_money(market, MARKET_SOLVER);
}

static void see_unharmed(struct market *market, wei before, wei after)
{
    wei gas = market->anvil == NULL ? 0 : ETH / 10;

    assert_true(after <= before && after + gas >= before);
}

/* Rounds for a node that will not be quiet, since it would do more than its policy lets it. */
static void some_rounds(struct market_node *node)
{
    for (int i = 0; i < ROUNDS;) {
        struct error error;
        bool busy = false;

        error_init(&error);
        if (node_round(&node->node, &busy, &error) != STATUS_OK) {
            fail_msg("%s", error.text);
        }
        if (node->node.running_count > 0) {
            (void)usleep(2000);
        } else {
            i++;
            market_pass_time(node->market, 1);
        }
    }
}

/* How many wishes to enlist the policy has refused for this option. */
static int64_t refused_by(struct market_node *node, const char *option)
{
    char query[160];

    (void)snprintf(query, sizeof(query), "SELECT count(*) FROM wishes WHERE reason LIKE '%%%s%%'",
                   option);
    return market_node_number(node, query);
}

/* A job that waits for a panel, and the node; refused: the option that its policy names. NULL: the
 * policy says nothing, and the job is tried first, in vain unless there is a mirror. */
static void play(bool embedded, const char *name, void (*terms)(struct game_terms *terms),
                 const struct policy *policy, const char *mirror, const char *refused)
{
    const bool locks = refused == NULL && mirror != NULL;
    struct job *job = small_job_of_steps(STEPS, SEGMENT);
    struct market_node node;
    struct market market;
    struct hash32 key;
    wei attackers;
    wei victim;

    market_open(&market, embedded, name);
    market.retouch = terms;
    attackers = attackers_money(&market);
    victim = market_money(&market, MARKET_VERIFIER);
    key = market_open_job(&market, job);
    market_node_defaults(&node, &market, mirror);
    node.options.entries = 1;
    node.options.policy = *policy;
    market_node_open(&node);
    some_rounds(&node);
    assert_int_equal(
        market_count(&market, GAME_ENLISTED, signer_address(market.signers[MARKET_VERIFIER])),
        locks);
    if (locks) {
        assert_true(market_money(&market, MARKET_VERIFIER) <= victim - 45 * ETH);
    } else {
        assert_int_equal(
            refused == NULL ? market_node_number(&node, TRIED) : refused_by(&node, refused), 1);
        see_unharmed(&market, victim, market_money(&market, MARKET_VERIFIER));
    }
    market_close_job(&market, &key);
    some_rounds(&node);
    see_unharmed(&market, victim, market_money(&market, MARKET_VERIFIER));
    see_unharmed(&market, attackers, attackers_money(&market));
    market_node_close(&node);
    market_close(&market);
    job_free(job);
}

static const char *mirror_of_the_job(const char *name)
{
    const char *path = small_path(name);
    uint64_t random = 1;

    cheat_bundle_new(path, small_job_of_steps(STEPS, SEGMENT), CHEAT_NOT, 0, &random);
    return path;
}

static void test_without_a_policy_a_node_locks_nothing_blindly(void **state)
{
    (void)state;
    play(true, "blind", bait, &no_policy, NULL, NULL);
    play(true, "honeypot", bait, &no_policy, mirror_of_the_job("honeypot-run"), NULL);
}

static void test_without_a_policy_a_node_locks_nothing_blindly_on_a_chain(void **state)
{
    (void)state;
    play(false, "blind-evm", bait, &no_policy, NULL, NULL);
    play(false, "honeypot-evm", bait, &no_policy, mirror_of_the_job("honeypot-run-evm"), NULL);
}

static void test_with_the_default_policy_it_locks_none(void **state)
{
    const struct policy policy = policy_default();
    const char *mirror = mirror_of_the_job("refused-run");

    (void)state;
    play(true, "refused", bait, &policy, mirror, "--fee-min");
    play(true, "fee", bait_with_a_fee, &policy, mirror, "--bond-fees-max");
    play(true, "large-fee", bait_with_a_large_fee, &policy, mirror, "--reveal-period-min");
    play(true, "time", bait_with_time, &policy, mirror, "-max");
    play(true, "trap", trap, &policy, mirror, "--clock-min");
}

static void test_with_the_default_policy_it_locks_none_on_a_chain(void **state)
{
    const struct policy policy = policy_default();

    (void)state;
    play(false, "refused-evm", bait, &policy, mirror_of_the_job("refused-run-evm"), "--fee-min");
}

/* The "1 gwei": a fee that pays neither the work nor the gas of a seat. The node tries one
 * step, which tells it what a seat costs, and enlists nowhere. */
static void one_gwei(struct game_terms *terms)
{
    terms->fee = WEI_PER_GWEI;
    terms->bond = 20 * WEI_PER_GWEI;
    terms->segment_period_s = 86400;
}

static void test_one_gwei_buys_no_seat_of_a_node_on_a_chain(void **state)
{
    const struct policy policy = policy_default();

    (void)state;
    play(false, "gwei-evm", one_gwei, &policy, mirror_of_the_job("gwei-run-evm"), "--price");
}

/* Terms of another job: by their roots a referee could call what a node replayed false. The node
 * finds it out by the trial, and locks nothing. */
static void other_program(struct game_terms *terms)
{
    terms->program_root.bytes[0] ^= 1;
}

static void other_data(struct game_terms *terms)
{
    terms->data_root.bytes[DIGEST_SIZE - 1] ^= 1;
}

static void other_first_state(struct game_terms *terms)
{
    terms->first_state_root.bytes[5] ^= 1;
}

static void test_terms_with_roots_of_another_job_get_no_bond(void **state)
{
    const char *mirror = mirror_of_the_job("other-roots-run");

    (void)state;
    play(true, "other-program", other_program, &no_policy, mirror, "the root of the program");
    play(true, "other-data", other_data, &no_policy, mirror, "the root of the data");
    play(true, "other-state", other_first_state, &no_policy, mirror, "the root of the first state");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_a_policy_a_node_locks_nothing_blindly),
        cmocka_unit_test(test_without_a_policy_a_node_locks_nothing_blindly_on_a_chain),
        cmocka_unit_test(test_with_the_default_policy_it_locks_none),
        cmocka_unit_test(test_with_the_default_policy_it_locks_none_on_a_chain),
        cmocka_unit_test(test_one_gwei_buys_no_seat_of_a_node_on_a_chain),
        cmocka_unit_test(test_terms_with_roots_of_another_job_get_no_bond),
    };

    if (workers_asked(argc, argv)) {
        return workers_serve(argv, &dispute_child);
    }
    test_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
