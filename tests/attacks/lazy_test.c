/*
 * Goal: a seat that did not replay earns nothing by saying right.
 * Method: one that fetched the last state alone: of a segment, of one with a single step, of states
 * of one leaf, of states in which one leaf changes, or none. Which of its tags are false follows
 * from what the seed draws. A cheat in such states is found by the seat that replays.
 */
#include "tests/support/game/attack.h"

#include "chain/game/policy/economy.h"

static const struct scene_verdicts lazy = {
    .of = {[STAGE_VERIFIER] = GAME_VERDICT_RIGHT, [STAGE_FRIEND] = GAME_VERDICT_RIGHT},
    .lazy = {[STAGE_FRIEND] = true}};

/* The eighth leaf is of the state before: a right cannot be made of what is served. */
ATTACK(the_last_state_is_not_enough)
{
    scene_open_job(scene);
    scene_enlist(scene, STAGE_FRIEND, 1);
    scene_accept(scene, STAGE_SOLVER);
    scene_commit(scene, STAGE_SOLVER, SCENE_STEPS);
    scene_draw(scene, 0);
    scene_round(scene, 0, &lazy, NULL);
    assert_int_equal(scene_challenge(scene, STAGE_SECOND, 0, STAGE_FRIEND, 7), GAME_REFUSED_NOT);
    scene_see(scene, scene_gain(scene, STAGE_FRIEND), -1000);
}

/* A segment of one step has no state before its last: a right says no more than that the state can
 * be fetched. It is covered, and one seat that replays convicts; the lazy one is not paid. */
ATTACK(a_last_segment_of_one_step)
{
    struct scene_verdicts verdicts = lazy;
    struct hash32 alarm = {{0}};
    uint32_t last = SCENE_SEGMENTS - 1;

    scene->terms.steps = last * SCENE_STEPS + 1;
    scene->terms.coverage_ppm = 0;
    scene->terms.seats = 2;
    scene->terms.panel_least = 2;
    scene_open_job(scene);
    scene_enlist(scene, STAGE_FRIEND, 1);
    scene_enlist(scene, STAGE_VERIFIER, 1);
    scene_accept(scene, STAGE_SOLVER);
    for (uint32_t i = 0; i < last; i++) {
        scene_commit(scene, STAGE_SOLVER, SCENE_STEPS);
    }
    scene_commit(scene, STAGE_SOLVER, 0);
    for (uint32_t i = 0; i <= last; i++) {
        scene_draw(scene, i);
    }
    verdicts.of[STAGE_VERIFIER] = GAME_VERDICT_FALSE;
    scene_round(scene, last, &verdicts, &alarm);
    assert_int_equal(scene_challenge(scene, STAGE_SECOND, last, STAGE_FRIEND, 7), GAME_NOT_GUILTY);
    scene_pass(scene, SCENE_CLOCK_S + 1);
    scene_see_convicted(scene, &alarm);
    STAGE_PLAY(&scene->stage, STAGE_CLIENT, ledger_close_job, &scene->job);
    scene_depart(scene);
    scene_see(scene, scene_gain(scene, STAGE_FRIEND), 0);
}

/* A lazy seat and one that replays, and a solver that lies from a step on. */
static void commit_for_both(struct scene *scene, enum made_shape shape, uint32_t lie)
{
    scene->shape = shape;
    scene_commit_for_two(scene, 1, lie);
}

/* Is the leaf that this tag is about the same in the last state, which is all that it knows? */
static bool is_known(struct scene *scene, uint32_t which)
{
    const struct hash32 *seed = &scene->record.segments[0].draw.seed;
    uint32_t tensor = game_right_tensor(seed, which, made_tensors(scene->shape));
    uint64_t leaf = game_right_leaf(seed, which, made_leaves(scene->shape, tensor));

    return game_right_step(seed, which, SCENE_STEPS) == SCENE_STEPS - 1 ||
           !made_leaf_changes(scene->shape, tensor, leaf);
}

/* The lazy right is shown each leaf that it has drawn. Is it convicted? */
static bool challenge_lazy(struct scene *scene)
{
    for (uint32_t i = 0; i < GAME_LEAVES; i++) {
        enum game_refusal_kind refused = scene_challenge(scene, STAGE_SECOND, 0, STAGE_FRIEND, i);

        if (!is_known(scene, i)) {
            assert_int_equal(refused, GAME_REFUSED_NOT);
            return true;
        }
        assert_int_equal(refused, GAME_NOT_GUILTY);
    }
    return false;
}

/* The seat that replays says false, and the solver has nothing to answer. Others are not robbed. */
static void convict_by_replay(struct scene *scene)
{
    struct scene_verdicts verdicts = lazy;
    struct hash32 alarm = {{0}};

    verdicts.of[STAGE_VERIFIER] = GAME_VERDICT_FALSE;
    verdicts.false_step = scene_replay(scene, 0);
    assert_int_equal(verdicts.false_step, 1);
    scene_round(scene, 0, &verdicts, &alarm);
    scene_pass(scene, SCENE_CLOCK_S + 1);
    scene_see_convicted(scene, &alarm);
}

/* All leaves are one, and the eighth tag is of the state before the last step. */
ATTACK(a_lazy_right_of_tiny_states)
{
    commit_for_both(scene, MADE_TINY, SCENE_STEPS);
    scene_round(scene, 0, &lazy, NULL);
    assert_true(challenge_lazy(scene));
    scene_see(scene, scene_gain(scene, STAGE_FRIEND), -1000);
}

ATTACK(a_cheat_in_tiny_states)
{
    commit_for_both(scene, MADE_TINY, 1);
    convict_by_replay(scene);
}

/* One leaf of five changes, in a tensor of three: a tag is false once in nine, and loses the bond;
 * where none is, the right is as true as one that cost a replay, and is paid as that. */
ATTACK(a_lazy_right_of_sparse_states)
{
    bool is_convicted;

    commit_for_both(scene, MADE_SPARSE, SCENE_STEPS);
    scene_round(scene, 0, &lazy, NULL);
    is_convicted = challenge_lazy(scene);
    if (!is_convicted) {
        scene_pass(scene, SCENE_CLAIM_S + 1);
        scene_settle(scene, STAGE_SOLVER, 0);
    }
    scene_see(scene, scene_gain(scene, STAGE_FRIEND), is_convicted ? -1000 : -900);
    assert_int_equal(scene_replay(scene, 0), SCENE_STEPS);
}

ATTACK(a_cheat_in_sparse_states)
{
    commit_for_both(scene, MADE_SPARSE, 1);
    convict_by_replay(scene);
}

/* Nothing changes, so there is nothing to compute and nothing to know: all tags are true. Who
 * commits to anything else changed something. */
ATTACK(a_lazy_right_of_frozen_states)
{
    commit_for_both(scene, MADE_FROZEN, SCENE_STEPS);
    scene_round(scene, 0, &lazy, NULL);
    assert_false(challenge_lazy(scene));
    scene_pass(scene, SCENE_CLAIM_S + 1);
    scene_settle(scene, STAGE_SOLVER, 0);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -20000 + 1000);
    scene_see(scene, scene_gain(scene, STAGE_FRIEND), -1000 + 100);
}

ATTACK(a_cheat_in_frozen_states)
{
    commit_for_both(scene, MADE_FROZEN, 1);
    convict_by_replay(scene);
}

enum {
    SEEDS = 4000,
    TENSORS = 100,
    BOND_FEES = 10, /* of the default terms */
};

/* The least tensor that each seed draws: where no step changes it, nor those above, all eight
 * leaves are known. */
static void draw_least(uint32_t least[SEEDS])
{
    for (uint32_t n = 0; n < SEEDS; n++) {
        struct hash32 seed = {{[24] = (uint8_t)(n >> 8), [25] = (uint8_t)n}};

        least[n] = TENSORS;
        for (uint32_t i = 0; i < GAME_LEAVES; i++) {
            uint32_t tensor = game_right_tensor(&seed, i, TENSORS);

            least[n] = tensor < least[n] ? tensor : least[n];
        }
    }
}

/* In how many of SEEDS draws are all eight leaves in tensors that no step changes? */
static uint32_t count_lucky(const uint32_t least[SEEDS], uint32_t changing)
{
    uint32_t lucky = 0;

    for (uint32_t n = 0; n < SEEDS; n++) {
        lucky += least[n] >= changing;
    }
    return lucky;
}

/* A fee where all eight are known, the bond otherwise: with two changing tensors of a hundred that
 * loses; with three also where only half of the rights are looked at. */
static void test_a_state_that_changes_almost_nothing(void **state)
{
    static uint32_t least[SEEDS];

    (void)state;
    draw_least(least);
    assert_int_equal(count_lucky(least, 0), SEEDS); /* frozen whole: there is nothing to compute */
    for (uint32_t changing = 1; changing <= TENSORS; changing++) {
        double known = 1.0 - (double)changing / TENSORS;
        double odds = known * known * known * known * known * known * known * known;
        double lucky = count_lucky(least, changing) / (double)SEEDS;
        double gain = lucky - (1.0 - lucky) * BOND_FEES;

        assert_true(lucky > odds - 0.04 && lucky < odds + 0.04);
        if (changing >= 2) {
            assert_true(gain < 0.0);
        }
        if (changing >= 3) {
            assert_true(lucky + 0.5 * (1.0 - lucky) - 0.5 * (1.0 - lucky) * BOND_FEES < 0.0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ATTACK_TESTS(the_last_state_is_not_enough),
        ATTACK_TESTS(a_last_segment_of_one_step),
        ATTACK_TESTS(a_lazy_right_of_tiny_states),
        ATTACK_TESTS(a_cheat_in_tiny_states),
        ATTACK_TESTS(a_lazy_right_of_sparse_states),
        ATTACK_TESTS(a_cheat_in_sparse_states),
        ATTACK_TESTS(a_lazy_right_of_frozen_states),
        ATTACK_TESTS(a_cheat_in_frozen_states),
        cmocka_unit_test(test_a_state_that_changes_almost_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
