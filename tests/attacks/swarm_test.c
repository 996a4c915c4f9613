/*
 * Goal: false claims, however many, cost who makes them, and neither rob nor stop an honest solver.
 * Method: one party claims every step of a job at once; the honest solver answers each when its
 * turn comes, and the claimant has nothing to show. Then sixteen claims that make bonds dear: a
 * true alarm is taken all the same. Then sixteen claims about true segments, to shut out the claim
 * about a false one. Then a claim in the last second of the claim time.
 */
#include "tests/support/game/attack.h"

static const struct scene_verdicts all_right = {
    .of = {[STAGE_VERIFIER] = GAME_VERDICT_RIGHT, [STAGE_SECOND] = GAME_VERDICT_RIGHT}};

enum {
    CLAIMS = SCENE_SEGMENTS * SCENE_STEPS,
};

/* The solver answers what is called; the claimants are silent. Until no claim is open. */
static void answer_all(struct scene *scene)
{
    for (int turn = 0; turn < 4 * CLAIMS; turn++) {
        bool open = false;

        scene_read(scene);
        for (uint32_t i = 0; i < scene->record.claim_count; i++) {
            struct job_record_claim claim = scene->record.claims[i];

            open |= job_record_claim_is_open(&claim);
            if (job_record_claim_is_open(&claim) && claim.state.phase == GAME_CLAIM_CALLED) {
                scene_answer(scene, STAGE_SOLVER, &claim.key);
            }
        }
        if (!open) {
            return;
        }
        scene_pass(scene, SCENE_CLOCK_S + 1);
        scene_read(scene);
        for (uint32_t i = 0; i < scene->record.claim_count; i++) {
            struct job_record_claim claim = scene->record.claims[i];

            if (job_record_claim_is_open(&claim) && claim.state.phase == GAME_CLAIM_TRIED) {
                scene_timeout(scene, STAGE_CLIENT, &claim.key);
            }
        }
    }
    fail_msg("claims stay open");
}

static void commit_all(struct scene *scene, uint32_t entries)
{
    scene_open_job(scene);
    scene_enlist(scene, STAGE_VERIFIER, entries);
    scene_accept(scene, STAGE_SOLVER);
    for (int i = 0; i < SCENE_SEGMENTS; i++) {
        scene_commit(scene, STAGE_SOLVER, SCENE_STEPS);
    }
    for (uint32_t i = 0; i < SCENE_SEGMENTS; i++) {
        scene_draw(scene, i);
    }
}

ATTACK(nine_claims_at_once)
{
    int64_t bonds = 0; /* thousandths */

    commit_all(scene, 3);
    for (uint32_t i = 0; i < CLAIMS; i++) {
        (void)scene_claim(scene, STAGE_FRIEND, i / SCENE_STEPS, i % SCENE_STEPS, i);
        bonds += 1000 + 250 * (int64_t)i;
    }
    answer_all(scene);
    /* The seats slept through all this. Others are drawn, and say right; of the last segment all
     * had been drawn, and silence lets it pass. */
    for (uint32_t i = 0; i < SCENE_SEGMENTS; i++) {
        if (i + 1 < SCENE_SEGMENTS) {
            scene_next_round(scene, STAGE_CLIENT, i);
            scene_rounds(scene, i, &all_right);
        }
        scene_settle(scene, STAGE_CLIENT, i);
    }
    assert_int_equal(scene->record.state.phase, GAME_PHASE_CLOSED);
    assert_int_equal(job_record_open_claims(&scene->record), 0);
    scene_depart(scene);
    scene_see(scene, scene_gain(scene, STAGE_FRIEND), -bonds);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), 3000 + bonds / 2);
    scene_see(scene, scene_party_gain(scene, (int[]){STAGE_CLIENT, STAGE_VERIFIER}, 2), -3000);
}

/* Bonds of outsiders rise with each. A seat's alarm needs none but its own. */
ATTACK(sixteen_claims_price_nobody_out)
{
    struct scene_verdicts verdicts = {.of = {[STAGE_VERIFIER] = GAME_VERDICT_FALSE},
                                      .false_step = 1};
    struct hash32 alarm = {{0}};
    uint32_t open = 0;

    scene_open_job(scene);
    scene_enlist(scene, STAGE_VERIFIER, 1);
    scene_accept(scene, STAGE_SOLVER);
    for (int i = 0; i < SCENE_SEGMENTS; i++) {
        scene_commit(scene, STAGE_SOLVER, 1);
    }
    scene_draw(scene, 0);
    for (uint32_t i = 0; i < GAME_OUTSIDERS_MAX; i++) {
        int player = i < CLAIMS ? STAGE_FRIEND : STAGE_OTHER;
        uint32_t n = i % CLAIMS;

        if (n == 1 && player == STAGE_OTHER) {
            break;
        }
        (void)scene_claim(scene, player, n / SCENE_STEPS, n % SCENE_STEPS, open++);
    }
    scene_round(scene, 0, &verdicts, &alarm);
    scene_read(scene);
    for (uint32_t i = 0; i < scene->record.claim_count; i++) {
        if (hash32_equal(&scene->record.claims[i].key, &alarm)) {
            assert_true(job_record_claim_is_open(&scene->record.claims[i]));
            assert_true(scene->record.claims[i].state.rank < GAME_RANK_OUTSIDER);
        }
    }
    scene_pass(scene, SCENE_CLOCK_S + 1);
    scene_timeout(scene, STAGE_VERIFIER, &alarm); /* the cheat is silent */
    scene_read(scene);
    assert_true(scene->record.convicted);
}

/* Friends hold all places of outsiders, by claims about true steps of other segments. */
static void fill_queue(struct scene *scene)
{
    static const int friends[] = {STAGE_FRIEND, STAGE_OTHER, STAGE_SECOND};

    for (uint32_t i = 0; i < GAME_OUTSIDERS_MAX; i++) {
        uint32_t subject = SCENE_STEPS + i % (CLAIMS - SCENE_STEPS);

        (void)scene_claim(scene, friends[i / (CLAIMS - SCENE_STEPS)], subject / SCENE_STEPS,
                          subject % SCENE_STEPS, i);
    }
}

/* The cheat answers all but one claim, and friends sleep, until that claim has convicted it. */
static void play_until_convicted(struct scene *scene, const struct hash32 *claim)
{
    for (int turn = 0; turn < 2 * CLAIMS && !scene->record.convicted; turn++) {
        scene_read(scene);
        for (uint32_t i = 0; i < scene->record.claim_count; i++) {
            struct job_record_claim open = scene->record.claims[i];

            if (job_record_claim_is_open(&open) && open.state.phase == GAME_CLAIM_CALLED &&
                !hash32_equal(&open.key, claim)) {
                scene_answer(scene, STAGE_SOLVER, &open.key);
            }
        }
        scene_pass(scene, SCENE_CLOCK_S + 1);
        scene_read(scene);
        for (uint32_t i = 0; i < scene->record.claim_count && !scene->record.convicted; i++) {
            struct job_record_claim open = scene->record.claims[i];

            if (job_record_claim_is_open(&open) && open.state.deadline_s > 0 &&
                stage_clock(&scene->stage) > open.state.deadline_s) {
                scene_timeout(scene, STAGE_VERIFIER, &open.key);
                scene_read(scene);
            }
        }
    }
    assert_true(scene->record.convicted);
}

/* Nobody checks but outsiders. As long as their queue is full, nothing becomes final and the claim
 * time of no segment ends: the first place that becomes free is in time. */
ATTACK(a_full_queue_of_claims_about_another_segment)
{
    static const int attackers[] = {STAGE_SOLVER, STAGE_FRIEND, STAGE_OTHER, STAGE_SECOND};
    struct hash32 claim;

    scene->terms.seats = 0;
    scene->terms.coverage_ppm = 0;
    scene->terms.panel_least = 0;
    scene_open_job(scene);
    scene_accept(scene, STAGE_SOLVER);
    scene_commit(scene, STAGE_SOLVER, 1);
    scene_commit(scene, STAGE_SOLVER, SCENE_STEPS);
    scene_commit(scene, STAGE_SOLVER, SCENE_STEPS);
    for (uint32_t i = 0; i < SCENE_SEGMENTS; i++) {
        scene_draw(scene, i);
    }
    fill_queue(scene);
    scene_pass(scene, SCENE_CLOCK_S - 60);
    scene_read(scene);
    for (uint32_t i = 0; i < scene->record.claim_count; i++) {
        struct job_record_claim open = scene->record.claims[i];

        if (open.state.phase == GAME_CLAIM_CALLED) { /* as late as it may */
            scene_answer(scene, STAGE_SOLVER, &open.key);
        }
    }
    scene_pass(scene, SCENE_SEAL_S + SCENE_REVEAL_S + SCENE_CLAIM_S - SCENE_CLOCK_S + 60);
    scene_read(scene);
    assert_int_equal(job_record_waits_for(&scene->record, 0, stage_clock(&scene->stage)),
                     JOB_SEGMENT_DISPUTED);
    scene_pass(scene, SCENE_CLOCK_S);
    for (uint32_t i = 0; i < scene->record.claim_count; i++) {
        struct job_record_claim open = scene->record.claims[i];

        if (open.state.phase == GAME_CLAIM_TRIED) {
            scene_timeout(scene, STAGE_VERIFIER, &open.key);
        }
    }
    claim = scene_claim(scene, STAGE_VERIFIER, 0, 1, GAME_OUTSIDERS_MAX - GAME_ACTIVE_MAX);
    play_until_convicted(scene, &claim);
    assert_int_equal(scene->record.state.finalized, 0);
    assert_true(scene_party_gain(scene, attackers, 4) < -20000); /* the stake, and half of bonds */
}

/* The clock of a dispute bounds what a claim in the last second can delay. */
ATTACK(a_claim_in_the_last_second)
{
    struct hash32 claim;
    uint64_t before;

    scene_open_job(scene);
    scene_enlist(scene, STAGE_VERIFIER, 3);
    scene_accept(scene, STAGE_SOLVER);
    scene_commit(scene, STAGE_SOLVER, SCENE_STEPS);
    scene_draw(scene, 0);
    scene_round(scene, 0, &all_right, NULL);
    scene_pass(scene, SCENE_CLAIM_S - 60);
    before = stage_clock(&scene->stage);
    claim = scene_claim(scene, STAGE_FRIEND, 0, 2, 0);
    scene_answer(scene, STAGE_SOLVER, &claim);
    scene_pass(scene, SCENE_CLOCK_S + 1);
    scene_timeout(scene, STAGE_SOLVER, &claim);
    scene_settle(scene, STAGE_SOLVER, 0);
    assert_int_equal(scene->record.state.finalized, 1);
    assert_true(stage_clock(&scene->stage) - before < 2 * SCENE_CLOCK_S);
    scene_see(scene, scene_gain(scene, STAGE_FRIEND), -1000);
    scene_see(scene, scene_gain(scene, STAGE_SOLVER), -20000 + 1000 + 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ATTACK_TESTS(nine_claims_at_once),
        ATTACK_TESTS(sixteen_claims_price_nobody_out),
        ATTACK_TESTS(a_full_queue_of_claims_about_another_segment),
        ATTACK_TESTS(a_claim_in_the_last_second),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
