/*
 * Goal: a client whose terms only rob a solver gets nothing from a solver that asks its policy.
 * Method: the attack as it was played: a stake of 80 ether for 8 wei and turns of one second. The
 * solver is the real one, rounds and all. Once it has no policy, as it had none, and a friend of
 * the client takes the whole stake by a claim that nobody answers in time; once it asks the policy
 * of its defaults. Client and friend are one party: their money is counted together, before and
 * after, on both ledgers. On a chain they pay gas besides.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "prover/post/solver.h"
#include "tests/support/game/stage.h"

enum {
    SEGMENTS = 3,
    ROUNDS_MAX = 2000,
};

static const struct policy no_policy;

/* What a player has, in its purse and on the ledger. */
static wei money(struct stage *stage, int player)
{
    struct error error;
    wei purse;
    wei owed;

    error_init(&error);
    stage_check(ledger_get_account(stage->ledgers[STAGE_CLIENT], &purse, &owed,
                                   signer_address(stage->signers[player]), &error),
                &error);
    return purse + owed;
}

static wei attackers_money(struct stage *stage)
{
    return money(stage, STAGE_CLIENT) + money(stage, STAGE_VERIFIER);
}

/* Not less than before, but for gas. */
static void see_unharmed(struct stage *stage, wei before, wei after)
{
    wei gas = stage->anvil == NULL ? 0 : WEI_PER_ETHER / 10;

    assert_true(after <= before && after + gas >= before);
}

static struct game_terms robbing_terms(struct stage *stage)
{
    struct game_terms terms = stage_terms(stage);

    terms.segment_reward = 8 / SEGMENTS + 1;
    terms.stake = 80 * WEI_PER_ETHER;
    terms.attestors = 0;
    terms.coverage_ppm = 0;
    terms.attest_fee = 0;
    terms.claim_bond = 1;
    terms.response_period_s = 1;
    return terms;
}

/* The solver that a user runs, with a key of its own folder. */
static struct solver *open_solver(struct stage *stage, const struct hash32 *job,
                                  const struct policy *policy, char state_dir[600])
{
    struct solver_options options = {.ledger = stage->options,
                                     .job = *job,
                                     .account = *signer_address(stage->signers[STAGE_SOLVER]),
                                     .accept = true,
                                     .segment_steps = 10,
                                     .policy = {.limits = *policy}};
    struct solver *solver = NULL;
    struct digest root = stage_root(9);
    struct error error;

    error_init(&error);
    ledger_close(stage->ledgers[STAGE_SOLVER]);
    stage->ledgers[STAGE_SOLVER] = NULL;
    (void)snprintf(state_dir, 600, "%s", stage->state_dirs[STAGE_SOLVER]);
    options.ledger.state_dir = state_dir;
    options.ledger.signer = stage->signers[STAGE_SOLVER];
    stage_check(solver_new(&solver, &options, SEGMENTS, &error), &error);
    stage_check(solver_add(solver, &root, 0, &error), &error);
    return solver;
}

/* Rounds until the first segment is committed, or the solver says that it does not take the job. */
static struct solver_view run_solver(struct stage *stage, struct solver *solver)
{
    struct solver_view view = {0};

    for (int i = 0; i < ROUNDS_MAX; i++) {
        struct error error;

        error_init(&error);
        stage_check(solver_round(solver, &view, &error), &error);
        if (view.committed > 0 || (view.lost && view.pending == 0)) {
            break;
        }
        stage_pass_time(stage, 1);
    }
    return view;
}

/* A friend of the client claims something, and a second later nobody has answered. */
static void rob(struct stage *stage, const struct hash32 *job, const struct game_terms *terms)
{
    struct ledger_whistle whistle = {.job = *job,
                                     .step = 7,
                                     .pre_state = stage_root(3),
                                     .post_state = stage_root(4),
                                     .salt = {{0x77}}};
    struct hash32 claim;

    whistle.segment = stage_segment(stage, STAGE_VERIFIER, job, 0);
    STAGE_PLAY(stage, STAGE_VERIFIER, ledger_seal_claim, &claim, &whistle);
    stage_pass_time(stage, 2);
    STAGE_PLAY(stage, STAGE_VERIFIER, ledger_claim, terms, &whistle);
    stage_pass_time(stage, 3);
    STAGE_PLAY(stage, STAGE_CLIENT, ledger_timeout, &claim);
}

static void play(enum stage_ledger ledger, const char *name, const struct policy *policy,
                 bool robbed)
{
    struct stage stage;
    struct game_terms terms;
    struct hash32 job;
    struct solver *solver;
    struct solver_view view;
    char state_dir[600];
    wei attackers;
    wei victim;

    stage_open(&stage, ledger, name);
    attackers = attackers_money(&stage);
    victim = money(&stage, STAGE_SOLVER);
    terms = robbing_terms(&stage);
    STAGE_PLAY(&stage, STAGE_CLIENT, ledger_open_job, &job, &terms);
    solver = open_solver(&stage, &job, policy, state_dir);
    view = run_solver(&stage, solver);
    if (robbed) {
        assert_int_equal(view.committed, 1);
        rob(&stage, &job, &terms);
    } else {
        assert_true(view.lost);
        assert_int_equal(view.committed, 0);
        assert_non_null(strstr(view.trouble, "nothing was staked"));
        assert_non_null(strstr(view.trouble, "--reward-least"));
    }
    STAGE_PLAY(&stage, STAGE_CLIENT, ledger_cancel, &job); /* the escrow comes back */
    if (robbed) {
        assert_true(money(&stage, STAGE_SOLVER) + 80 * WEI_PER_ETHER <= victim);
        assert_true(attackers_money(&stage) > attackers + 79 * WEI_PER_ETHER);
    } else {
        see_unharmed(&stage, victim, money(&stage, STAGE_SOLVER));
        see_unharmed(&stage, attackers, attackers_money(&stage));
    }
    solver_free(solver);
    stage_close(&stage);
}

static void test_without_a_policy_the_stake_is_lost(void **state)
{
    (void)state;
    play(STAGE_EMBEDDED, "robbed", &no_policy, true);
}

static void test_without_a_policy_the_stake_is_lost_on_a_chain(void **state)
{
    (void)state;
    play(STAGE_ANVIL, "robbed-evm", &no_policy, true);
}

static void test_with_the_default_policy_nobody_gains_or_loses(void **state)
{
    const struct policy policy = policy_default();

    (void)state;
    play(STAGE_EMBEDDED, "unharmed", &policy, false);
}

static void test_with_the_default_policy_nobody_gains_or_loses_on_a_chain(void **state)
{
    const struct policy policy = policy_default();

    (void)state;
    play(STAGE_ANVIL, "unharmed-evm", &policy, false);
}

/* Each of the terms alone is enough to refuse them, and the option that is named takes them. */
static void test_each_robbing_term_is_refused_alone(void **state)
{
    const struct policy defaults = policy_default();
    const struct policy_pace unknown = {0};
    struct policy_refusal refusal;
    struct policy policy = defaults;
    struct stage stage;
    struct game_terms terms;

    (void)state;
    stage_open(&stage, STAGE_EMBEDDED, "each");
    terms = robbing_terms(&stage);
    assert_false(policy_solve(&refusal, &policy, &terms, terms.stake, &unknown, stage.now_s));
    assert_int_equal(refusal.term, POLICY_REWARD);
    policy.reward_least = 0;
    assert_false(policy_solve(&refusal, &policy, &terms, terms.stake, &unknown, stage.now_s));
    assert_int_equal(refusal.term, POLICY_STAKE);
    policy.stake_rewards_max = 0;
    assert_false(policy_solve(&refusal, &policy, &terms, terms.stake, &unknown, stage.now_s));
    assert_int_equal(refusal.term, POLICY_RESPONSE_PERIOD);
    policy.response_least_s = 0;
    assert_true(policy_solve(&refusal, &policy, &terms, terms.stake, &unknown, stage.now_s));
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_a_policy_the_stake_is_lost),
        cmocka_unit_test(test_without_a_policy_the_stake_is_lost_on_a_chain),
        cmocka_unit_test(test_with_the_default_policy_nobody_gains_or_loses),
        cmocka_unit_test(test_with_the_default_policy_nobody_gains_or_loses_on_a_chain),
        cmocka_unit_test(test_each_robbing_term_is_refused_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
