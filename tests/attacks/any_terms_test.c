/*
 * Goal: a client whose terms only rob a solver gets nothing from a solver that asks its policy.
 * Method: the attack as it was played: a stake of 80 ether for 8 wei and clocks of one second; and
 * one that would hold a stake for years. The solver is the real one, rounds and all. Once it has no
 * policy, as it had none, and a friend of the client claims what nobody answers in time; once it
 * asks the policy of its defaults. Client and friend are one party: what they have is counted as
 * one.
 */
#include "tests/support/game/attack.h"

#include <string.h>

#include "prover/post/solver.h"
#include "tests/support/game/made_states.h"

enum {
    ROUNDS_MAX = 2000,
};

static const int robbers[] = {STAGE_CLIENT, STAGE_FRIEND};

static void rob(struct game_terms *terms)
{
    terms->reward = 3;
    terms->stake = 80 * WEI_PER_ETHER;
    terms->seats = 0;
    terms->coverage_ppm = 0;
    terms->panel_least = 0;
    terms->fee = 0;
    terms->bond = 1;
    terms->query_fee = 0;
    terms->clock_s = 1;
}

/* The solver that a user runs, with its first segment, until that is committed or it says that it
 * does not take the job. */
static struct solver_view run_solver(struct scene *scene, const struct policy *policy)
{
    struct stage *stage = &scene->stage;
    struct solver_options options = {.ledger = stage->options,
                                     .job = scene->job,
                                     .account = *signer_address(stage->signers[STAGE_SOLVER]),
                                     .accept = true,
                                     .segment_steps = SCENE_STEPS,
                                     .contact = "http://solver.example:8000",
                                     .policy = {.limits = *policy}};
    struct digest room[SCENE_STEPS];
    struct game_hashes states = {room, SCENE_STEPS};
    struct solver_view view = {0};
    struct solver *solver;
    struct error error;

    error_init(&error);
    for (uint32_t i = 0; i < SCENE_STEPS; i++) {
        room[i] = made_state_root(1 + i);
    }
    ledger_close(stage->ledgers[STAGE_SOLVER]);
    stage->ledgers[STAGE_SOLVER] = NULL;
    options.ledger.state_dir = stage->state_dirs[STAGE_SOLVER];
    options.ledger.signer = stage->signers[STAGE_SOLVER];
    stage_check(solver_new(&solver, &options, SCENE_SEGMENTS, &error), &error);
    stage_check(solver_add(solver, &states, false, &error), &error);
    for (int i = 0; i < ROUNDS_MAX; i++) {
        stage_check(solver_round(solver, &view, &error), &error);
        if (view.committed > 0 || (view.lost && view.pending == 0)) {
            break;
        }
        scene_pass(scene, 1);
    }
    solver_free(solver);
    stage_restart(stage, STAGE_SOLVER);
    return view;
}

ATTACK(a_solver_without_a_policy)
{
    static const struct policy none;
    struct hash32 claim;

    rob(&scene->terms);
    scene_open_job(scene);
    assert_int_equal(run_solver(scene, &none).committed, 1);
    claim = scene_claim(scene, STAGE_FRIEND, 0, 1, 0);
    scene_pass(scene, 3);
    scene_timeout(scene, STAGE_CLIENT, &claim);
    scene_pay(scene, STAGE_CLIENT, 0);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -80000);
    scene_see(scene, scene_party_gain(scene, robbers, 2), 40000); /* half is burned */
}

ATTACK(a_solver_at_its_defaults)
{
    const struct policy policy = policy_default();
    struct solver_view view;

    rob(&scene->terms);
    scene_open_job(scene);
    view = run_solver(scene, &policy);
    assert_true(view.lost && view.committed == 0);
    assert_non_null(strstr(view.trouble, "nothing was staked"));
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), 0);
    scene_see(scene, scene_party_gain(scene, robbers, 2), 0);
}

/* Everything else is agreed to. */
ATTACK(a_stake_that_would_be_held_for_years)
{
    const struct policy policy = {.lock_time_max_s = policy_default().lock_time_max_s};
    struct solver_view view;

    scene->terms.clock_s = GAME_PERIOD_MAX;
    scene_open_job(scene);
    view = run_solver(scene, &policy);
    assert_true(view.lost && view.committed == 0);
    assert_non_null(strstr(view.trouble, "the clock of a dispute is 16777215s"));
    assert_non_null(strstr(view.trouble, "--lock-time-max"));
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), 0);
}

/* One term after the other is put right, until the policy agrees to all. */
ATTACK(each_term_is_refused_by_its_name)
{
    const struct policy_pace unknown = {0};
    const uint64_t now_s = stage_clock(&scene->stage);
    struct policy policy = policy_default();
    struct game_terms terms = scene->terms;
    struct policy_refusal refusal;

    rob(&terms);
    assert_false(policy_solve(&refusal, &policy, &terms, terms.stake, &unknown, now_s));
    assert_int_equal(refusal.term, POLICY_REWARD);
    policy.reward_least = 0;
    assert_false(policy_solve(&refusal, &policy, &terms, terms.stake, &unknown, now_s));
    assert_int_equal(refusal.term, POLICY_STAKE);
    policy.stake_rewards_max = 0;
    assert_false(policy_solve(&refusal, &policy, &terms, terms.stake, &unknown, now_s));
    assert_int_equal(refusal.term, POLICY_CLOCK);
    policy.clock_least_s = 0;
    assert_true(policy_solve(&refusal, &policy, &terms, terms.stake, &unknown, now_s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ATTACK_TESTS(a_solver_without_a_policy),
        ATTACK_TESTS(a_solver_at_its_defaults),
        ATTACK_TESTS(a_stake_that_would_be_held_for_years),
        ATTACK_TESTS(each_term_is_refused_by_its_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
