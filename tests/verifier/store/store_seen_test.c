/*
 * Goal: the ledger as a node saw it is in no file of the node. Who looks at a node sees it by its
 * event log, as far as the node has read; a node that starts again has it from the ledger, and
 * still knows what it thought; a reorganization drops both.
 * Method: a node's store and an event log hear the same events; a second store only looks. What
 * both say of a job and its segments is compared byte for byte.
 */
#include "verifier/store/store.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io/file.h"
#include "chain/game/event_log.h"
#include "tests/support/chain/event_file.h"
#include "tests/support/test.h"

enum {
    STEPS = 10, /* of a segment */
    SEGMENTS = 6,
};

struct scene {
    char path[FILE_PATH_MAX];
    char log_path[FILE_PATH_MAX];
    struct store store;
    struct database log;
    struct address own;
    struct hash32 job;
    uint64_t number; /* of the last event in the log */
    struct error error;
};

static void must(const struct scene *scene, enum status status)
{
    if (status != STATUS_OK) {
        fail_msg("%s", scene->error.text);
    }
}

static void open_store(struct scene *scene)
{
    must(scene, store_open(&scene->store, scene->path, STORE_WRITE, &scene->error));
    must(scene, store_set_event_log(&scene->store, scene->log_path, &scene->error));
    must(scene,
         store_set_text(&scene->store, "owner",
                        "0x0700000000000000000000000000000000000000 at a ledger", &scene->error));
}

static void open_scene(struct scene *scene, const char *name)
{
    memset(scene, 0, sizeof(*scene));
    error_init(&scene->error);
    scene->own.bytes[0] = 7;
    scene->job.bytes[0] = 1;
    (void)snprintf(scene->path, sizeof(scene->path), "%.900s/%s.db", test_temp_dir(), name);
    (void)snprintf(scene->log_path, sizeof(scene->log_path), "%.900s/%s.log", test_temp_dir(),
                   name);
    event_file_open(&scene->log, scene->log_path);
    open_store(scene);
}

static void close_scene(struct scene *scene)
{
    store_close(&scene->store);
    database_close(&scene->log);
}

static void add_event(struct scene *scene, const struct game_event *event)
{
    event_file_add(&scene->log, event, ++scene->number);
}

/* The node takes all that the event log has; how many entries. */
static int follow(struct scene *scene)
{
    uint8_t data[GAME_LOG_SIZE_MAX];
    struct ledger_entry entry;
    int count = 0;

    while (event_log_next(&scene->log, &entry, data, store_position(&scene->store), UINT64_MAX,
                          NULL, &scene->error) == STATUS_OK) {
        must(scene, store_take(&scene->store, &entry, &scene->own, &scene->error));
        count++;
    }
    return count;
}

static void add_job(struct scene *scene)
{
    struct game_event event = {.kind = GAME_OPENED, .job = scene->job};

    event.terms = event_file_terms(SEGMENTS, STEPS);
    add_event(scene, &event);
    event.kind = GAME_ENLISTED;
    event.account = scene->own;
    event.count = 1;
    add_event(scene, &event);
    event.kind = GAME_ACCEPTED;
    event.account = (struct address){{9}};
    add_event(scene, &event);
}

static void add_segment(struct scene *scene, uint32_t index)
{
    static const struct digest states[STEPS];
    struct game_event event = {.kind = GAME_COMMITTED, .job = scene->job, .index = index};

    event.segment = (struct game_segment){.index = index, .steps = STEPS, .time_s = 1 + index};
    event.segment.root.bytes[0] = (uint8_t)(index + 1);
    event.states = (struct game_hashes){.hashes = states, .count = STEPS};
    add_event(scene, &event);
}

static int64_t count_of(struct scene *scene, struct store *store, const char *query)
{
    int64_t number = 0;

    must(scene, database_number(&store->sql, &number, 0, &scene->error, query, ""));
    return number;
}

/* A store that only looks says what the node's says. */
static void see_same(struct scene *scene, struct store *looks, uint32_t segments)
{
    static struct store_job jobs[2];
    static struct store_segment found[2];

    must(scene, store_job(&scene->store, &jobs[0], &scene->job, &scene->error));
    must(scene, store_job(looks, &jobs[1], &scene->job, &scene->error));
    assert_memory_equal(&jobs[0], &jobs[1], sizeof(jobs[0]));
    assert_int_equal(jobs[0].state.committed, segments);
    assert_int_equal(jobs[1].ours, 1);
    for (uint32_t i = 0; i < segments; i++) {
        must(scene, store_segment(&scene->store, &found[0], &scene->job, i, &scene->error));
        must(scene, store_segment(looks, &found[1], &scene->job, i, &scene->error));
        assert_memory_equal(&found[0], &found[1], sizeof(found[0]));
    }
}

static void pass_over(struct scene *scene, uint32_t index)
{
    struct store_segment segment;
    struct store_seat seat = {.place = 0};

    must(scene, store_segment(&scene->store, &segment, &scene->job, index, &scene->error));
    must(scene,
         store_choose(&scene->store, &segment.hash, STORE_CHOICE_PASS, "too far", &scene->error));
    seat.segment = segment.hash;
    must(scene, store_say(&scene->store, &seat, "no verdict in time", &scene->error));
    must(scene, store_judge(&scene->store, &seat, STORE_TRUE, &scene->error));
}

#define PASSED_OVER                                                                                \
    "SELECT count(*) FROM segments s JOIN choices c ON c.segment = s.hash WHERE c.reason = 'too"   \
    " far'"

/* ---- tests ------------------------------------------------------------------------- */

static void test_no_file_of_the_node_has_what_the_ledger_says(void **state)
{
    struct scene scene;

    (void)state;
    open_scene(&scene, "own");
    add_job(&scene);
    add_segment(&scene, 0);
    assert_int_equal(follow(&scene), 4);
    assert_int_equal(count_of(&scene, &scene.store, "SELECT count(*) FROM segments"), 1);
    assert_int_equal(count_of(&scene, &scene.store,
                              "SELECT count(*) FROM main.sqlite_master WHERE type = 'table' AND"
                              " name NOT IN ('facts', 'wishes', 'choices', 'notes', 'retries',"
                              " 'tasks', 'actions', 'mirrors', 'marks')"),
                     0);
    close_scene(&scene);
}

static void test_who_looks_sees_what_the_node_has_read_and_no_more(void **state)
{
    struct scene scene;
    struct store looks;

    (void)state;
    open_scene(&scene, "looks");
    add_job(&scene);
    add_segment(&scene, 0);
    add_segment(&scene, 1);
    (void)follow(&scene);
    must(&scene, store_open(&looks, scene.path, STORE_READ, &scene.error));
    see_same(&scene, &looks, 2);
    add_segment(&scene, 2);
    must(&scene, store_catch_up(&looks, &scene.error));
    see_same(&scene, &looks, 2); /* the node does not know it yet */
    (void)follow(&scene);
    pass_over(&scene, 1);
    must(&scene, store_catch_up(&looks, &scene.error));
    see_same(&scene, &looks, 3);
    assert_int_equal(count_of(&scene, &looks, PASSED_OVER), 1);
    /* It may not write what is the node's. */
    assert_int_equal(database_run(&looks.sql, &scene.error, "CREATE TABLE ours (own)", ""),
                     STATUS_IO);
    assert_non_null(strstr(scene.error.text, "readonly"));
    store_close(&looks);
    close_scene(&scene);
}

static void test_a_node_that_starts_again_has_the_ledger_and_its_thoughts(void **state)
{
    struct scene scene;
    struct store_segment segment;
    struct store looks;
    int64_t cursor = 0;

    (void)state;
    open_scene(&scene, "again");
    add_job(&scene);
    add_segment(&scene, 0);
    (void)follow(&scene);
    pass_over(&scene, 0);
    store_close(&scene.store);
    open_store(&scene);
    assert_int_equal(store_segment(&scene.store, &segment, &scene.job, 0, &scene.error),
                     STATUS_NOT_FOUND);
    must(&scene, store_number(&scene.store, &cursor, "cursor", &scene.error));
    assert_int_equal(cursor, scene.number); /* what was heard stays heard */
    assert_int_equal(follow(&scene), scene.number);
    must(&scene, store_segment(&scene.store, &segment, &scene.job, 0, &scene.error));
    assert_int_equal(segment.choice, STORE_CHOICE_PASS);
    assert_int_equal(count_of(&scene, &scene.store,
                              "SELECT judgement FROM notes WHERE reason = 'no verdict in time'"),
                     STORE_TRUE);
    must(&scene, store_open(&looks, scene.path, STORE_READ, &scene.error));
    see_same(&scene, &looks, 1);
    store_close(&looks);
    close_scene(&scene);
}

static void test_what_fails_is_taken_back_in_memory_too(void **state)
{
    struct scene scene;

    (void)state;
    open_scene(&scene, "fails");
    add_job(&scene);
    must(&scene, store_begin(&scene.store, &scene.error));
    assert_int_equal(follow(&scene), 3);
    assert_int_equal(store_end(&scene.store, STATUS_IO, &scene.error), STATUS_IO);
    assert_int_equal(store_position(&scene.store), 0);
    assert_int_equal(count_of(&scene, &scene.store, "SELECT count(*) FROM jobs"), 0);
    assert_int_equal(follow(&scene), 3);
    close_scene(&scene);
}

static void test_a_reorganization_is_seen_by_who_looks(void **state)
{
    struct scene scene;
    struct store looks;

    (void)state;
    open_scene(&scene, "reorganized");
    add_job(&scene);
    add_segment(&scene, 0);
    add_segment(&scene, 1);
    (void)follow(&scene);
    pass_over(&scene, 1);
    must(&scene, store_open(&looks, scene.path, STORE_READ, &scene.error));
    see_same(&scene, &looks, 2);
    must(&scene, event_log_rewind(&scene.log, scene.number - 1, &scene.error));
    (void)follow(&scene);
    must(&scene, store_catch_up(&looks, &scene.error));
    see_same(&scene, &looks, 1);
    assert_int_equal(count_of(&scene, &looks, "SELECT count(*) FROM choices"), 0);
    /* The rewind stands in the log for ever, and counts once. */
    store_close(&scene.store);
    open_store(&scene);
    (void)follow(&scene);
    see_same(&scene, &looks, 1);
    store_close(&looks);
    close_scene(&scene);
}

static void test_a_log_that_is_gone_is_named(void **state)
{
    struct scene scene;
    struct store looks;

    (void)state;
    open_scene(&scene, "gone");
    add_job(&scene);
    (void)follow(&scene);
    assert_int_equal(unlink(scene.log_path), 0);
    assert_int_equal(store_open(&looks, scene.path, STORE_READ, &scene.error), STATUS_UNREACHABLE);
    assert_non_null(strstr(scene.error.text, scene.log_path));
    close_scene(&scene);
}

static void test_a_file_of_the_edition_before_is_set_aside(void **state)
{
    struct scene scene;
    struct store looks;

    (void)state;
    open_scene(&scene, "before");
    must(&scene, database_run(&scene.store.sql, &scene.error, "PRAGMA user_version = 11", ""));
    store_close(&scene.store);
    assert_int_equal(store_open(&looks, scene.path, STORE_READ, &scene.error), STATUS_BAD_FORMAT);
    assert_non_null(strstr(scene.error.advice, "start the node"));
    open_store(&scene);
    assert_non_null(strstr(scene.store.damage, "of the edition before"));
    assert_non_null(strstr(scene.store.damage, "made again from the ledger"));
    close_scene(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_file_of_the_node_has_what_the_ledger_says),
        cmocka_unit_test(test_who_looks_sees_what_the_node_has_read_and_no_more),
        cmocka_unit_test(test_a_node_that_starts_again_has_the_ledger_and_its_thoughts),
        cmocka_unit_test(test_what_fails_is_taken_back_in_memory_too),
        cmocka_unit_test(test_a_reorganization_is_seen_by_who_looks),
        cmocka_unit_test(test_a_log_that_is_gone_is_named),
        cmocka_unit_test(test_a_file_of_the_edition_before_is_set_aside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
