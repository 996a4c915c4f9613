/*
 * Goal: a mirror that was silent or lied is asked last for a while, longer each time and never for
 * ever; one that serves well comes back; nothing of it is forgotten by a start.
 * Method: what checks found is entered by hand, at chosen moments.
 */
#include "verifier/store/mirrors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

#define OK(call) assert_int_equal((call), STATUS_OK)

static const uint64_t now_ms = UINT64_C(1800000000000);
static const char *const configured[] = {"http://a", "http://b", "http://c"};

enum {
    MIRRORS = 3,
};

static void test_a_rest_doubles_up_to_its_bound(void **state)
{
    struct mirrors_health health = {0};
    uint64_t rest_ms = MIRRORS_REST_MS;
    uint64_t at_ms = now_ms;

    (void)state;
    assert_false(mirrors_rests(&health, at_ms));
    for (int i = 0; i < 100; i++) {
        mirrors_failed(&health, at_ms);
        mirrors_failed(&health, at_ms + 1); /* of the same outage */
        assert_int_equal(health.rest_until_ms - at_ms, rest_ms);
        assert_true(mirrors_rests(&health, at_ms + rest_ms - 1));
        assert_false(mirrors_rests(&health, at_ms + rest_ms));
        at_ms += rest_ms;
        rest_ms = 2 * rest_ms < MIRRORS_REST_MS_MAX ? 2 * rest_ms : MIRRORS_REST_MS_MAX;
    }
    assert_int_equal(rest_ms, MIRRORS_REST_MS_MAX);
    assert_int_equal(mirrors_failures(&health, at_ms), MIRRORS_FAILURES_MAX);
}

static void test_a_mirror_recovers_by_serving_and_by_time(void **state)
{
    struct mirrors_health health = {0};
    uint64_t later_ms;

    (void)state;
    for (int i = 0; i < MIRRORS_FAILURES_MAX; i++) {
        mirrors_failed(&health, i == 0 ? now_ms : health.rest_until_ms);
    }
    later_ms = health.rest_until_ms + 5 * MIRRORS_FORGET_MS;
    assert_int_equal(mirrors_failures(&health, later_ms), MIRRORS_FAILURES_MAX - 5);
    assert_int_equal(mirrors_failures(&health, later_ms + 100 * MIRRORS_FORGET_MS), 0);
    for (uint32_t left = MIRRORS_FAILURES_MAX; left > 0; left /= 2) {
        mirrors_served(&health, health.rest_until_ms);
        assert_false(mirrors_rests(&health, health.rest_until_ms));
        assert_int_equal(health.failures, left / 2);
    }
}

static void test_a_clock_set_back_puts_no_mirror_last_for_long(void **state)
{
    struct mirrors_health health = {0};

    (void)state;
    mirrors_failed(&health, now_ms);
    assert_false(mirrors_rests(&health, now_ms - 2 * MIRRORS_REST_MS_MAX));
    assert_int_equal(mirrors_failures(&health, now_ms - 2 * MIRRORS_REST_MS_MAX), 1);
}

/* ---- in the database ------------------------------------------------------ */

static struct check_request *choose(struct store *store, uint64_t at_ms, const char *order,
                                    uint32_t tired)
{
    struct check_request *request = calloc(1, sizeof(*request));
    char found[MIRRORS + 1] = "";
    struct error error;

    assert_non_null(request);
    error_init(&error);
    OK(mirrors_choose(store, request, configured, MIRRORS, MIRRORS, at_ms, &error));
    assert_int_equal(request->mirror_count, MIRRORS);
    for (uint32_t i = 0; i < MIRRORS; i++) {
        found[i] = request->mirrors[i][strlen("http://")];
    }
    assert_string_equal(found, order);
    assert_int_equal(request->mirrors_tired, tired);
    return request;
}

/* A check at that moment finds that of the mirror of that letter. */
static void find(struct store *store, uint64_t at_ms, const char *order, uint32_t tired,
                 char mirror, struct mirror_note note)
{
    struct check_result *result = calloc(1, sizeof(*result));
    struct check_request *request = choose(store, at_ms, order, tired);
    struct error error;

    assert_non_null(result);
    error_init(&error);
    result->mirror_count = MIRRORS;
    result->mirrors[strchr(order, mirror) - order] = note;
    OK(mirrors_note(store, request, result, at_ms, NULL, &error));
    free(result);
    free(request);
}

static void test_failing_mirrors_go_last_and_come_back(void **state)
{
    const struct mirror_note silent = {.silent = 2, .good = 1, .trouble = "timed out"};
    const struct mirror_note lied = {.bad = 1, .good = 7, .trouble = "not the content"};
    const struct mirror_note served = {.good = 3};
    const struct mirror_note has_none = {.bytes = 0};
    struct store store;
    struct error error;
    char path[1200];

    (void)state;
    error_init(&error);
    (void)snprintf(path, sizeof(path), "%s/node.db", test_temp_dir());
    OK(store_open(&store, path, STORE_WRITE, &error));
    find(&store, now_ms, "abc", 0, 'a', silent);
    find(&store, now_ms + 1, "bca", 1, 'b', lied);
    free(choose(&store, now_ms + 2, "cab", 2));
    store_close(&store); /* a start forgets nothing */
    OK(store_open(&store, path, STORE_WRITE, &error));
    find(&store, now_ms + 3, "cab", 2, 'b', silent);                   /* of the same outage */
    find(&store, now_ms + MIRRORS_REST_MS + 2, "cab", 0, 'b', silent); /* and again: a minute */
    free(choose(&store, now_ms + MIRRORS_REST_MS + 3, "cab", 1));
    free(choose(&store, now_ms + 3 * MIRRORS_REST_MS + 3, "cab", 0));
    find(&store, now_ms + 3 * MIRRORS_REST_MS + 5, "cab", 0, 'a', has_none); /* says nothing */
    find(&store, now_ms + 3 * MIRRORS_REST_MS + 6, "cab", 0, 'a', served);
    free(choose(&store, now_ms + 3 * MIRRORS_REST_MS + 7, "acb", 0));
    find(&store, now_ms + 3 * MIRRORS_REST_MS + 8, "acb", 0, 'b', served);
    find(&store, now_ms + 3 * MIRRORS_REST_MS + 9, "acb", 0, 'b', served);
    free(choose(&store, now_ms + 3 * MIRRORS_REST_MS + 10, "abc", 0));
    store_close(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_rest_doubles_up_to_its_bound),
        cmocka_unit_test(test_a_mirror_recovers_by_serving_and_by_time),
        cmocka_unit_test(test_a_clock_set_back_puts_no_mirror_last_for_long),
        cmocka_unit_test(test_failing_mirrors_go_last_and_come_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
