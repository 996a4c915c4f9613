/*
 * Goal: the promises of the game, in any weather and under anybody's lies: an honest solver is
 * never convicted, and its work never void but by a client that refuses; an honest node never loses
 * a bond and says nothing false, every job, claim and entry ends, and what is owed, held and burned
 * is what was paid in. Method: whole lives of several nodes in a world that is made of one number
 * (tests/support/node/simulation.h). A life in which something went wrong tells its seed;
 * SIMULATION_SEED=N tells its story, and SIMULATION_FIRST=N SIMULATION_LIVES=K lives only those
 * seeds, so that a soak can be carried on, or split over processes.
 */
#include "tests/support/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/node/simulation.h"

enum {
    LIVES_SOAK = 10000,
    FIRST = 44, /* the seed of the first life: these fourteen have all that is asked for below */
    LIVES = 14,
    TWICE = 2,
    TOLD_EVERY = 50,
    COUNTS = (sizeof(struct simulation_result) - offsetof(struct simulation_result, steps)) /
             sizeof(uint64_t),
};

/* All that is counted. */
static void add(struct simulation_result *sum, const struct simulation_result *result)
{
    uint64_t *sums = &sum->steps;
    const uint64_t *counts = &result->steps;

    for (size_t i = 0; i < COUNTS; i++) {
        sums[i] += counts[i];
    }
}

static void tell(const struct simulation_result *sum, uint64_t lives)
{
    print_message("%" PRIu64 " lives, %" PRIu64 " steps, %" PRIu64 " rounds, %" PRIu64
                  " moves; deaths %" PRIu64 ", by power %" PRIu64 ", databases lost %" PRIu64
                  ", reorganizations %" PRIu64 "\n",
                  lives, sum->steps, sum->rounds, sum->moves, sum->deaths, sum->power_failures,
                  sum->stores_lost, sum->reorganizations);
    print_message("nodes: right %" PRIu64 ", alarms %" PRIu64 ", unseen %" PRIu64
                  ", claims %" PRIu64 "; slanders %" PRIu64 ", convictions %" PRIu64
                  ", rights disproved %" PRIu64 ", voided %" PRIu64 "; final %" PRIu64
                  ", lies among them %" PRIu64 "; jobs closed %" PRIu64 ", diverged %" PRIu64
                  "; claims of a false end %" PRIu64 "\n",
                  sum->rights, sum->alarms, sum->unseen, sum->claims, sum->slanders,
                  sum->convictions, sum->disproved, sum->voided, sum->finals, sum->lies,
                  sum->closed, sum->diverged, sum->pretended);
}

/* Was every promise kept? */
static bool is_kept(struct simulation_result *sum, uint64_t seed)
{
    struct simulation_result result;

    simulation_run(&result, seed, NULL);
    add(sum, &result);
    if (result.wrong[0] != '\0') {
        print_message("seed %" PRIu64 ": %s\n  SIMULATION_SEED=%" PRIu64
                      " build/tests/verifier/node/simulation_test\n",
                      seed, result.wrong, seed);
    }
    return result.wrong[0] == '\0';
}

static uint64_t live(struct simulation_result *sum, uint64_t first, uint64_t lives)
{
    uint64_t wrong = 0;

    memset(sum, 0, sizeof(*sum));
    for (uint64_t i = 0; i < lives; i++) {
        wrong += !is_kept(sum, first + i);
        if ((i + 1) % TOLD_EVERY == 0) {
            print_message("seeds %" PRIu64 " to %" PRIu64 ": %" PRIu64 " wrong\n", first, first + i,
                          wrong);
        }
    }
    tell(sum, lives);
    return wrong;
}

static void test_the_promises_are_kept_in_any_weather(void **state)
{
    const uint64_t lives = test_share(LIVES_SOAK, LIVES);
    struct simulation_result sum;

    (void)state;
    assert_int_equal(live(&sum, FIRST, lives), 0);
    /* Else the lives would prove nothing. */
    if (lives >= LIVES) {
        assert_true(sum.rights > 0 && sum.alarms > 0 && sum.claims > 0 && sum.slanders > 0);
        assert_true(sum.convictions > 0 && sum.disproved > 0 && sum.closed >= lives);
        assert_true(sum.deaths > 0 && sum.reorganizations > 0);
        assert_true(sum.unseen > 0 && sum.voided > 0);
        assert_true(sum.diverged > 0 && sum.pretended > 0);
    }
}

static void test_a_seed_gives_the_same_life_again(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= TWICE; seed++) {
        struct simulation_result first;
        struct simulation_result second;

        simulation_run(&first, seed, NULL);
        simulation_run(&second, seed, NULL);
        assert_memory_equal(&first, &second, sizeof(first));
    }
}

static int tell_one(const char *text)
{
    struct simulation_result result;

    simulation_run(&result, strtoull(text, NULL, 10), stdout);
    tell(&result, 1);
    (void)printf("%s\n", result.wrong[0] == '\0' ? "all is well" : result.wrong);
    return result.wrong[0] == '\0' ? 0 : 1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_promises_are_kept_in_any_weather),
        cmocka_unit_test(test_a_seed_gives_the_same_life_again),
    };
    const char *seed = getenv("SIMULATION_SEED");
    const char *first = getenv("SIMULATION_FIRST");
    const char *lives = getenv("SIMULATION_LIVES");
    struct simulation_result sum;

    if (seed != NULL) {
        return tell_one(seed);
    }
    if (first != NULL || lives != NULL) {
        return live(&sum, first == NULL ? 1 : strtoull(first, NULL, 10),
                    lives == NULL ? LIVES : strtoull(lives, NULL, 10)) == 0
                   ? 0
                   : 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
