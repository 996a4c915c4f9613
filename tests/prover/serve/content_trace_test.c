/*
 * Goal: whoever floods the server of traces waits for the others: a party's query comes after one
 * turn of the flood at most, and a party that has had its share is refused alone.
 * Method: a real bundle; threads of one party that ask without an end, about two steps in turn, so
 * that every turn is a replay; another party's queries are timed in turns of the flood, not in
 * seconds.
 */
#include "tests/support/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "prover/serve/content_trace.h"
#include "tests/support/numeric/small_job.h"

enum {
    FLOODS = 3, /* threads */
    ASKS = 12,
    STEPS = 10,
    TURNS_MAX = 2, /* the one that runs, and one that ended as the query came */
};

struct stand {
    struct content_trace *trace;
    struct bundle *bundle;
    const char *path;
    const char *data;
    atomic_uint flooded; /* turns of the flood */
    atomic_bool done;
};

static const struct address flood = {{1}};
static const struct address honest = {{2}};

static void open_stand(struct stand *stand, const char *name)
{
    struct small_job_options options;
    struct machine_options machine;
    struct error error;
    size_t count;

    error_init(&error);
    small_job_defaults(&options);
    memset(stand, 0, sizeof(*stand));
    stand->path = small_path(name);
    stand->bundle = small_bundle_new(stand->path, small_job_new(&options), NULL, STEPS);
    stand->data = small_job_data(bundle_job(stand->bundle), &count)[0];
    assert_int_equal(count, 1);
    assert_int_equal(machine_options_default(&machine, &error), STATUS_OK);
    machine.thread_count = 1;
    assert_int_equal(content_trace_open(&stand->trace, &machine, &error), STATUS_OK);
}

static void close_stand(struct stand *stand)
{
    content_trace_close(stand->trace);
    bundle_close(stand->bundle);
}

static enum status ask(struct stand *stand, const struct address *party, uint64_t step)
{
    char *data = (char *)(uintptr_t)stand->data;
    const struct content_trace_request request = {
        .bundle = (char *)(uintptr_t)stand->path,
        .data = {.of = &data, .count = 1},
        .step = step,
        .party = *party,
        .query = {.kind = TRACE_QUERY_LIST, .list = TRACE_QUERY_TRACE}};
    uint8_t *bytes = NULL;
    uint64_t size = 0;
    struct error error;
    enum status status;

    error_init(&error);
    status = content_trace_answer(stand->trace, &bytes, &size, &request, &error);
    free(bytes);
    return status;
}

static void *ask_without_end(void *context)
{
    struct stand *stand = context;

    for (uint64_t i = 0; !atomic_load(&stand->done); i++) {
        if (ask(stand, &flood, i % 2) == STATUS_OK) {
            atomic_fetch_add(&stand->flooded, 1);
        }
    }
    return NULL;
}

static void test_a_flood_waits_for_the_others(void **state)
{
    pthread_t threads[FLOODS];
    struct stand stand;

    (void)state;
    open_stand(&stand, "flood");
    for (int i = 0; i < FLOODS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, ask_without_end, &stand), 0);
    }
    while (atomic_load(&stand.flooded) == 0) {
    }
    for (uint64_t i = 0; i < ASKS; i++) {
        unsigned int before = atomic_load(&stand.flooded);

        assert_int_equal(ask(&stand, &honest, 2 + i % 2), STATUS_OK);
        assert_true(atomic_load(&stand.flooded) - before <= TURNS_MAX);
    }
    atomic_store(&stand.done, true);
    for (int i = 0; i < FLOODS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    close_stand(&stand);
}

static void test_a_party_has_its_share_and_others_have_theirs(void **state)
{
    struct stand stand;
    uint32_t turns = 0;

    (void)state;
    open_stand(&stand, "share");
    while (ask(&stand, &flood, 1) == STATUS_OK) {
        turns++;
    }
    assert_true(turns >= CONTENT_TRACE_SHARE);
    assert_int_equal(ask(&stand, &honest, 1), STATUS_OK);
    assert_int_equal(ask(&stand, &(struct address){{0}}, 1), STATUS_OK); /* nobody counts these */
    close_stand(&stand);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_flood_waits_for_the_others),
        cmocka_unit_test(test_a_party_has_its_share_and_others_have_theirs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
