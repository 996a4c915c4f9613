/*
 * Goal: a party that floods a machine waits for the others: a party's query comes after the turn
 * that runs, and a party that has had its share is refused alone. Method: turns taken one after the
 * other in one thread, so that their order is not the scheduler's; a party of each kind; one thread
 * that must be woken.
 */
#include "tests/support/test.h"

#include <pthread.h>

#include "prover/serve/ask_turns.h"

enum {
    LONG_S = 600,
};

static const struct address flood = {{1}};
static const struct address honest = {{2}};
static const struct address other = {{3}};
static const struct address anybody = {{0}};

static struct ask_turns *new_turns(void)
{
    struct ask_turns *turns;
    struct error error;

    error_init(&error);
    assert_int_equal(ask_turns_open(&turns, &error), STATUS_OK);
    return turns;
}

static enum status enter(struct ask_turns *turns, struct ask_turns_party **party,
                         const struct address *account)
{
    struct error error;

    error_init(&error);
    return ask_turns_enter(turns, party, account, &error);
}

static enum status wait_for(struct ask_turns *turns, struct ask_turns_party *party,
                            uint32_t seconds)
{
    struct error error;

    error_init(&error);
    return ask_turns_wait(turns, party, seconds, &error);
}

static struct ask_turns_party *entered(struct ask_turns *turns, const struct address *account)
{
    struct ask_turns_party *party;

    assert_int_equal(enter(turns, &party, account), STATUS_OK);
    return party;
}

static void take(struct ask_turns *turns, struct ask_turns_party *party)
{
    assert_int_equal(wait_for(turns, party, LONG_S), STATUS_OK);
    ask_turns_leave(turns, party);
}

static void test_a_flood_waits_for_the_others(void **state)
{
    struct ask_turns *turns = new_turns();
    struct ask_turns_party *running;
    struct ask_turns_party *waiting;

    (void)state;
    for (int i = 0; i < 100; i++) {
        running = entered(turns, &flood);
        assert_int_equal(wait_for(turns, running, LONG_S), STATUS_OK);
        waiting = entered(turns, i % 2 == 0 ? &honest : &other);
        assert_int_equal(enter(turns, &(struct ask_turns_party *){NULL}, &flood),
                         STATUS_OVER_LIMIT);
        assert_int_equal(wait_for(turns, waiting, 0), STATUS_OVER_LIMIT); /* one at a time */

        waiting = entered(turns, i % 2 == 0 ? &honest : &other);
        ask_turns_leave(turns, running);
        running = entered(turns, &flood);
        assert_int_equal(wait_for(turns, running, 0), STATUS_OVER_LIMIT);
        running = entered(turns, &flood);
        take(turns, waiting);
        take(turns, running);
    }
    ask_turns_close(turns);
}

static void test_the_last_turn_longest_ago_comes_next(void **state)
{
    const struct address *order[] = {&other, &honest, &flood};
    struct ask_turns *turns = new_turns();
    struct ask_turns_party *parties[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        take(turns, entered(turns, order[i]));
    }
    for (int i = 2; i >= 0; i--) { /* who comes first is not who has waited longest */
        parties[i] = entered(turns, order[i]);
    }
    for (int i = 0; i < 3; i++) {
        for (int later = i + 1; later < 3; later++) {
            assert_int_equal(wait_for(turns, parties[later], 0), STATUS_OVER_LIMIT);
            parties[later] = entered(turns, order[later]);
        }
        take(turns, parties[i]);
    }
    ask_turns_close(turns);
}

struct woken {
    struct ask_turns *turns;
    struct ask_turns_party *party;
    enum status status;
};

static void *be_woken(void *context)
{
    struct woken *woken = context;

    woken->status = wait_for(woken->turns, woken->party, LONG_S);
    return NULL;
}

static void test_who_waits_is_woken_and_who_gave_up_blocks_nobody(void **state)
{
    struct woken woken = {.turns = new_turns()};
    struct ask_turns_party *first;
    pthread_t thread;

    (void)state;
    first = entered(woken.turns, &flood);
    assert_int_equal(wait_for(woken.turns, first, LONG_S), STATUS_OK);
    assert_int_equal(wait_for(woken.turns, entered(woken.turns, &other), 0), STATUS_OVER_LIMIT);
    woken.party = entered(woken.turns, &honest);
    assert_int_equal(pthread_create(&thread, NULL, be_woken, &woken), 0);
    ask_turns_leave(woken.turns, first);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(woken.status, STATUS_OK);
    ask_turns_leave(woken.turns, woken.party);
    ask_turns_close(woken.turns);
}

static void test_a_party_has_its_share_and_others_have_theirs(void **state)
{
    struct ask_turns *turns = new_turns();
    struct ask_turns_party *party;
    uint32_t taken = 0;

    (void)state;
    for (; enter(turns, &party, &flood) == STATUS_OK; taken++) {
        take(turns, party);
    }
    assert_true(taken >= ASK_TURNS_SHARE);
    take(turns, entered(turns, &honest));
    for (uint32_t i = 0; i < 2 * ASK_TURNS_SHARE; i++) {
        take(turns, entered(turns, &anybody)); /* nobody counts these */
    }
    ask_turns_close(turns);
}

static void test_idle_parties_are_forgotten_and_one_that_waits_is_not(void **state)
{
    struct ask_turns *turns = new_turns();
    struct ask_turns_party *waiting;

    (void)state;
    waiting = entered(turns, &flood);
    for (uint32_t i = 0; i < 3 * ASK_TURNS_PARTIES_MAX; i++) {
        struct address address = {{4, (uint8_t)(i >> 8), (uint8_t)i}};
        struct ask_turns_party *party;

        assert_int_equal(enter(turns, &party, &address), STATUS_OK);
        assert_ptr_not_equal(party, waiting);
        take(turns, party);
    }
    take(turns, waiting);
    ask_turns_close(turns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_flood_waits_for_the_others),
        cmocka_unit_test(test_the_last_turn_longest_ago_comes_next),
        cmocka_unit_test(test_who_waits_is_woken_and_who_gave_up_blocks_nobody),
        cmocka_unit_test(test_a_party_has_its_share_and_others_have_theirs),
        cmocka_unit_test(test_idle_parties_are_forgotten_and_one_that_waits_is_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
