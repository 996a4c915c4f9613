/*
 * Goal: whatever the weather, the node says nothing false and nothing twice, forgets nothing that
 * it has said, does not stand still, and does its work as soon as it can. Method: whole lives of a
 * node in a world that is made of one number (tests/support/node/simulation.h). A life in which
 * something went wrong tells its seed; SIMULATION_SEED=N tells its story, and SIMULATION_FIRST=N
 * SIMULATION_LIVES=K lives only those seeds, so that a soak can be carried on, or split over
 * processes.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/node/simulation.h"

enum {
    LIVES_SOAK = 10000,
    LIVES = 300,
    TWICE_EVERY = 20,
    TOLD_EVERY = 100,
};

static void add(struct simulation_result *sum, const struct simulation_result *result)
{
    sum->steps += result->steps;
    sum->rounds += result->rounds;
    sum->attested += result->attested;
    sum->revealed += result->revealed;
    sum->claimed += result->claimed;
    sum->upheld += result->upheld;
    sum->accused += result->accused;
    sum->attestors_convicted += result->attestors_convicted;
    sum->acquitted += result->acquitted;
    sum->queried += result->queried;
    sum->deaths += result->deaths;
    sum->power_failures += result->power_failures;
    sum->reorganizations += result->reorganizations;
    sum->faults += result->faults;
    sum->promises += result->promises;
    sum->tended += result->tended;
    for (int i = 0; i < SIMULATION_TROUBLES; i++) {
        sum->recovered[i] += result->recovered[i];
    }
}

static void tell(const struct simulation_result *sum, uint64_t lives)
{
    print_message("%llu lives, %llu rounds: attested %llu, revealed %llu; claims %llu, upheld "
                  "%llu; attestors "
                  "accused %llu, convicted %llu; slanders %llu; moves before the referee %llu; "
                  "deaths %llu, by "
                  "power %llu; reorganizations %llu; machine faults %llu; moves for "
                  "solvers that vanished %llu\n",
                  (unsigned long long)lives, (unsigned long long)sum->rounds,
                  (unsigned long long)sum->attested, (unsigned long long)sum->revealed,
                  (unsigned long long)sum->claimed, (unsigned long long)sum->upheld,
                  (unsigned long long)sum->accused, (unsigned long long)sum->attestors_convicted,
                  (unsigned long long)sum->acquitted, (unsigned long long)sum->queried,
                  (unsigned long long)sum->deaths, (unsigned long long)sum->power_failures,
                  (unsigned long long)sum->reorganizations, (unsigned long long)sum->faults,
                  (unsigned long long)sum->tended);
    print_message("statements in the calm after");
    for (int i = 0; i < SIMULATION_TROUBLES; i++) {
        print_message("%s %s: %llu", i == 0 ? "" : ",",
                      simulation_trouble_name((enum simulation_trouble)i),
                      (unsigned long long)sum->recovered[i]);
    }
    print_message("\n");
}

/* Was every promise kept? */
static bool is_kept(struct simulation_result *sum, uint64_t seed)
{
    struct simulation_result result;

    simulation_run(&result, seed, NULL);
    add(sum, &result);
    if (result.wrong[0] != '\0') {
        print_message("seed %llu: %s\n  SIMULATION_SEED=%llu build/tests/verifier/"
                      "simulation_test\n",
                      (unsigned long long)seed, result.wrong, (unsigned long long)seed);
    }
    return result.wrong[0] == '\0';
}

static void test_a_node_keeps_its_promises_in_any_weather(void **state)
{
    const uint64_t lives = test_share(LIVES_SOAK, LIVES);
    struct simulation_result sum;
    uint64_t wrong = 0;

    (void)state;
    memset(&sum, 0, sizeof(sum));
    for (uint64_t seed = 1; seed <= lives; seed++) {
        wrong += !is_kept(&sum, seed);
    }
    tell(&sum, lives);
    assert_int_equal(wrong, 0);
    /* Else nothing was shown. */
    assert_true(sum.attested > 0 && sum.revealed > 0 && sum.upheld > 0 && sum.queried > 0);
    assert_true(sum.attestors_convicted > 0 && sum.acquitted > 0 && sum.tended > 0);
    assert_true(sum.deaths > 0 && sum.power_failures > 0 && sum.reorganizations > 0);
    for (int i = 0; i < SIMULATION_TROUBLES && lives >= LIVES; i++) {
        assert_true(sum.recovered[i] > 0);
    }
}

/* A check that ended in a fault and was not made again, or not in time for a new round; a fault
 * forgotten with the database, a place taken by who was convicted, a settlement of what was, a
 * check given up in a new round, a seal that only the book remembered; a false attestation that
 * could be accused again in a new round, a claim that was too late for the old one, a settlement
 * and a reveal that a reorganization put before what must come first, a segment of which it drew
 * another step. */
static void test_promises_that_were_broken_once_are_kept(void **state)
{
    static const uint64_t seeds[] = {29,   36,   94,   237,  595,  619,  737, 981,
                                     1149, 1974, 2588, 5046, 5203, 5740, 6043};
    struct simulation_result sum;

    (void)state;
    memset(&sum, 0, sizeof(sum));
    for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++) {
        assert_true(is_kept(&sum, seeds[i]));
    }
}

static void test_a_seed_gives_the_same_life_again(void **state)
{
    const uint64_t lives = test_share(LIVES_SOAK, LIVES);

    (void)state;
    for (uint64_t seed = 1; seed <= lives; seed += TWICE_EVERY) {
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

/* Each life that went wrong is told, and how far it has come. */
static int live_range(const char *first, const char *lives)
{
    const uint64_t begin = first == NULL ? 1 : strtoull(first, NULL, 10);
    const uint64_t count = lives == NULL ? LIVES : strtoull(lives, NULL, 10);
    struct simulation_result sum;
    uint64_t wrong = 0;

    memset(&sum, 0, sizeof(sum));
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t seed = begin + i;

        wrong += !is_kept(&sum, seed);
        if ((i + 1) % TOLD_EVERY == 0 || i + 1 == count) {
            (void)printf("seeds %llu to %llu: %llu wrong\n", (unsigned long long)begin,
                         (unsigned long long)seed, (unsigned long long)wrong);
            (void)fflush(stdout);
        }
    }
    tell(&sum, count);
    return wrong == 0 ? 0 : 1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_node_keeps_its_promises_in_any_weather),
        cmocka_unit_test(test_promises_that_were_broken_once_are_kept),
        cmocka_unit_test(test_a_seed_gives_the_same_life_again),
    };
    const char *seed = getenv("SIMULATION_SEED");
    const char *first = getenv("SIMULATION_FIRST");
    const char *lives = getenv("SIMULATION_LIVES");

    if (seed != NULL) {
        return tell_one(seed);
    }
    return first != NULL || lives != NULL ? live_range(first, lives)
                                          : cmocka_run_group_tests(tests, NULL, NULL);
}
