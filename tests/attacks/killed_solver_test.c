/*
 * Goal: a solver that is killed at any moment takes nothing with it that was paid for: the state
 * with which the job goes on is at a node or at the keeper, and the client burns little, with a
 * keeper nearly always nothing.
 * Method: verifier's nodes, a solver and a keeper's plan with their defaults (crowd.h), and a job
 * of twelve segments of ten minutes. The solver vanishes at a random moment, or at once behind a
 * commit, with all that nobody has fetched. The others play on until the job is open again or
 * closed. What a node has fetched it keeps and serves: node_test.c. What chance decides is asserted
 * of twenty kills (make soak); of a share of them, that no final state is lost.
 */
#include "tests/support/game/attack.h"

#include <stdio.h>

#include "tests/support/node/crowd.h"

enum {
    SEGMENTS = 12,
    SEGMENT_S = 600,
    NODES = 5,
    KILLS = 20,
    KILLS_SHARE = 2,
    DAY_S = 86400,
    FIRST_SEED = 2, /* the first two behind a commit are covered */
    PPM_FIFTH = 200000,
};

struct sums {
    uint64_t kills;
    uint64_t whole; /* the client burned nothing */
    uint64_t came;  /* the state at `finalized` is not that of the job itself */
    int64_t burned; /* of the client, thousandths of an ether */
};

static bool is_over(const struct job_record *record)
{
    return record->state.phase != GAME_PHASE_RUNNING;
}

static void open_job(struct crowd *crowd, struct scene *scene, bool keeper)
{
    crowd_open(crowd, scene, NODES);
    if (keeper) {
        crowd_keep(crowd, STAGE_OTHER);
    }
    scene->terms.steps = SEGMENTS;
    scene->terms.segment_steps = 1;
    scene->terms.coverage_ppm = PPM_FIFTH;
    scene->terms.seats = keeper ? 1 : 2;
    scene->terms.panel_least = NODES;
    scene_open_job(scene);
    crowd_until(crowd, crowd_has_panel, DAY_S);
    crowd_live(crowd, scene->terms.seal_period_s);
    crowd_train_slowly(crowd, SEGMENT_S);
    crowd_solve(crowd, STAGE_SOLVER);
}

/* The next, or the last there is: nobody has fetched its states. */
static void wait_for_commit(struct crowd *crowd)
{
    const uint32_t before = crowd->scene->record.state.committed;

    while (crowd->scene->record.state.committed == before && before < SEGMENTS) {
        crowd_live(crowd, 1);
        scene_read(crowd->scene);
    }
}

static void kill_at(struct sums *sums, bool keeper, bool behind_commit)
{
    uint64_t random = FIRST_SEED + sums->kills;
    struct scene scene;
    struct crowd crowd;
    char name[48];

    (void)snprintf(name, sizeof(name), "killed-%llu-%d-%d", (unsigned long long)sums->kills, keeper,
                   behind_commit);
    scene_open(&scene, STAGE_EMBEDDED, name);
    open_job(&crowd, &scene, keeper);
    crowd_live(&crowd, SEGMENT_S + (uint32_t)test_random_below(&random, SEGMENTS * SEGMENT_S));
    if (behind_commit) {
        wait_for_commit(&crowd);
    }
    crowd_kill_solver(&crowd);
    crowd_until(&crowd, is_over, 6 * DAY_S);
    sums->kills++;
    sums->whole += scene.record.burned_escrow + scene.record.burned_pool == 0;
    sums->burned += scene_gain_of(scene.record.burned_escrow + scene.record.burned_pool, 0);
    if (scene.record.state.finalized > 0) {
        sums->came++;
        assert_true(crowd_has_states(&crowd, scene.record.state.finalized - 1));
    }
    crowd_close(&crowd);
    scene_close(&scene);
}

static struct sums kill_solvers(bool keeper, bool behind_commit)
{
    const uint64_t count = test_share(KILLS, KILLS_SHARE);
    struct sums sums = {0};

    for (uint64_t i = 0; i < count; i++) {
        kill_at(&sums, keeper, behind_commit);
    }
    print_message("%s a keeper, %s: of %llu the client burned nothing in %llu, and %.2f segments"
                  " on average; in %llu a state came back\n",
                  keeper ? "with" : "without", behind_commit ? "behind a commit" : "at any moment",
                  (unsigned long long)sums.kills, (unsigned long long)sums.whole,
                  (double)sums.burned / 1000 / (double)count, (unsigned long long)sums.came);
    assert_true(sums.came > 0 || sums.kills < KILLS);
    return sums;
}

static void test_with_a_keeper_nothing_burns(void **state)
{
    const struct sums sums = kill_solvers(true, false);

    (void)state;
    assert_true(20 * sums.whole >= 17 * sums.kills || sums.kills < KILLS);
}

static void test_without_a_keeper_little_burns(void **state)
{
    const struct sums sums = kill_solvers(false, false);

    (void)state;
    assert_true(sums.burned <= 8 * 1000 * (int64_t)sums.kills || sums.kills < KILLS);
}

/* The worst moment: what chance covers then is void, and nothing that is paid is lost. */
static void test_what_is_final_is_somewhere(void **state)
{
    (void)state;
    (void)kill_solvers(true, true);
    (void)kill_solvers(false, true);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_with_a_keeper_nothing_burns),
        cmocka_unit_test(test_without_a_keeper_little_burns),
        cmocka_unit_test(test_what_is_final_is_somewhere),
    };

    test_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
