/*
 * Goal: the queue is bounded, and no job fills it or stands in the way of another; what a machine
 * at fault left undecided is checked again.
 * Method: small queues filled by hand; a node's plan over far more segments than there is room for.
 */
#include "verifier/store/queue.h"

#include <stdio.h>
#include <string.h>

#include "base/io/file.h"
#include "chain/local/ledger_local.h"
#include "tests/support/test.h"
#include "verifier/node/node_plan.h"
#include "verifier/node/node_round.h"

enum {
    NOW_S = 1700000000,
    PERIOD_S = 100000,
    MANY = 2 * STORE_VISIT_MAX + 50,
};

struct scene {
    struct store store;
    struct error error;
    uint64_t number; /* of the last event */
};

static void must(const struct scene *scene, enum status status)
{
    if (status != STATUS_OK) {
        fail_msg("%s", scene->error.text);
    }
}

static void path_of(char path[FILE_PATH_MAX], const char *name)
{
    (void)snprintf(path, FILE_PATH_MAX, "%.900s/%s", test_temp_dir(), name);
}

static void open_scene(struct scene *scene, const char *name, uint32_t tasks_max)
{
    char path[FILE_PATH_MAX];

    memset(scene, 0, sizeof(*scene));
    error_init(&scene->error);
    path_of(path, name);
    must(scene, store_open(&scene->store, path, STORE_WRITE, &scene->error));
    assert_int_equal(scene->store.tasks_max, STORE_TASKS_MAX);
    scene->store.tasks_max = tasks_max;
}

/* ---- the queue ------------------------------------------------------------------ */

static struct store_segment segment_of(uint8_t job, uint32_t index)
{
    struct store_segment segment;

    memset(&segment, 0, sizeof(segment));
    segment.job.bytes[0] = job;
    segment.committed.index = index;
    segment.committed.steps = 10;
    segment.hash.bytes[0] = job;
    segment.hash.bytes[1] = (uint8_t)index;
    return segment;
}

static bool has_room(struct scene *scene, uint8_t job, uint32_t index)
{
    const struct task task = {.deadline_s = NOW_S, .expiry_s = NOW_S + 100};
    struct store_segment segment = segment_of(job, index);
    bool full = true;

    must(scene, queue_add(&scene->store, &full, &segment, &task, &scene->error));
    return !full;
}

static uint32_t fill(struct scene *scene, uint8_t job)
{
    uint32_t count = 0;

    while (has_room(scene, job, count)) {
        count++;
    }
    return count;
}

static void test_a_job_takes_no_more_places_than_it_leaves(void **state)
{
    struct scene scene;

    (void)state;
    open_scene(&scene, "share.db", 16);
    assert_int_equal(fill(&scene, 1), 8);
    assert_int_equal(fill(&scene, 2), 4);
    assert_int_equal(fill(&scene, 3), 2);
    assert_int_equal(fill(&scene, 4), 1);
    assert_int_equal(fill(&scene, 5), 1);
    assert_int_equal(fill(&scene, 6), 0); /* it is bounded */
    store_close(&scene.store);
}

static void test_a_check_that_waits_or_runs_needs_no_second_place(void **state)
{
    struct scene scene;
    struct task task;

    (void)state;
    open_scene(&scene, "again.db", 2);
    assert_true(has_room(&scene, 1, 0));
    assert_true(has_room(&scene, 2, 0));
    assert_false(has_room(&scene, 3, 0));
    assert_true(has_room(&scene, 1, 0));
    must(&scene, queue_next(&scene.store, &task, NOW_S, 10, false, &scene.error));
    must(&scene, queue_begin(&scene.store, &task, NOW_S, &scene.error));
    assert_true(has_room(&scene, 3, 0)); /* what runs does not wait */
    assert_true(has_room(&scene, 1, 0));
    assert_true(has_room(&scene, 2, 0));
    store_close(&scene.store);
}

static enum status next(struct scene *scene, struct task *task)
{
    return queue_next(&scene->store, task, UINT64_C(1000) * NOW_S, 10, false, &scene->error);
}

static void end(struct scene *scene, enum check_outcome outcome)
{
    static struct check_result result;
    struct task task;

    must(scene, next(scene, &task));
    must(scene, queue_begin(&scene->store, &task, NOW_S, &scene->error));
    memset(&result, 0, sizeof(result));
    result.outcome = outcome;
    must(scene, queue_finish(&scene->store, &task, &result, TASK_DONE, NOW_S, 0, &scene->error));
}

static void test_a_forgotten_fault_is_checked_again(void **state)
{
    struct scene scene;
    struct task task;

    (void)state;
    open_scene(&scene, "fault.db", 100);
    assert_true(has_room(&scene, 1, 7));
    end(&scene, CHECK_FAULT);
    assert_true(has_room(&scene, 2, 8));
    end(&scene, CHECK_PROVEN);
    assert_int_equal(next(&scene, &task), STATUS_NOT_FOUND);
    must(&scene, queue_forget_fault(&scene.store, &scene.error));
    must(&scene, next(&scene, &task));
    assert_int_equal(task.index, 7);
    end(&scene, CHECK_REFUTED);
    assert_int_equal(next(&scene, &task), STATUS_NOT_FOUND);
    must(&scene, queue_forget_fault(&scene.store, &scene.error));
    assert_int_equal(next(&scene, &task), STATUS_NOT_FOUND);
    store_close(&scene.store);
}

/* ---- a node's plan --------------------------------------------------------------- */

static void take(struct scene *scene, const struct game_event *event)
{
    static const struct address own = {"the node"};
    const struct ledger_entry entry = {
        .kind = LEDGER_EVENT, .number = ++scene->number, .height = 1, .event = *event};

    must(scene, store_take(&scene->store, &entry, &own, &scene->error));
}

static void commit(struct scene *scene, uint8_t job, uint32_t count, uint64_t time_s)
{
    struct game_event event = {.kind = GAME_OPENED, .job = {{job}}};

    event.terms = (struct game_terms){.steps = count,
                                      .segment_steps = 1,
                                      .reward = 1,
                                      .seal_period_s = PERIOD_S,
                                      .reveal_period_s = PERIOD_S,
                                      .claim_period_s = PERIOD_S,
                                      .deadline_s = NOW_S + PERIOD_S};
    take(scene, &event);
    event.kind = GAME_ACCEPTED;
    take(scene, &event);
    event.kind = GAME_COMMITTED;
    for (uint32_t i = 0; i < count; i++) {
        event.index = i;
        event.segment =
            (struct game_segment){.index = i, .steps = 1, .time_s = time_s, .solver = {{9}}};
        event.states = (struct game_hashes){&event.segment.root, 1};
        event.segment.root.bytes[0] = job;
        memcpy(event.segment.root.bytes + 1, &i, sizeof(i));
        take(scene, &event);
    }
}

static int64_t count_of(struct scene *scene, uint8_t job)
{
    const struct hash32 key = {{job}};
    int64_t count = 0;

    must(scene, database_number(&scene->store.sql, &count, 0, &scene->error,
                                "SELECT count(*) FROM tasks WHERE job = ?", "b",
                                &(struct database_blob){key.bytes, HASH32_SIZE}));
    return count;
}

static uint64_t no_time(void *context)
{
    (void)context;
    return 0;
}

static struct ledger *some_ledger(struct scene *scene)
{
    struct ledger_options options;
    struct ledger *ledger = NULL;
    char url[FILE_PATH_MAX + 8] = "local:";

    path_of(url + 6, "queue.ledger");
    ledger_options_init(&options);
    options.url = url;
    must(scene, ledger_local_init(url + 6, &scene->error));
    must(scene, ledger_open(&ledger, &options, &scene->error));
    return ledger;
}

static void test_a_job_without_room_blocks_nobody(void **state)
{
    struct scene scene;
    const struct node_options options = {.mode = NODE_OBSERVE, .extra = 1, .checks_max = 1};
    struct node_ports ports = {.now_ms = no_time};
    struct node node;
    char path[FILE_PATH_MAX];

    (void)state;
    open_scene(&scene, "plan.db", 100);
    path_of(path, "plan-verdicts.db");
    must(&scene, verdict_db_open(&ports.verdicts, path, &scene.error));
    ports.ledger = some_ledger(&scene);
    ports.store = &scene.store;
    must(&scene, node_open(&node, &options, &ports, &scene.error));
    node.clock.time_s = NOW_S;
    commit(&scene, 1, MANY, NOW_S - 10);
    commit(&scene, 2, 1, NOW_S);
    for (int round = 0; round < 3; round++) {
        must(&scene, node_plan(&node, &scene.error));
    }
    assert_int_equal(count_of(&scene, 1), 50);
    assert_int_equal(count_of(&scene, 2), 1);
    /* And those that wait come as soon as there is room, in as many rounds as it takes. */
    scene.store.tasks_max = 4 * MANY;
    for (int round = 0; round < 4; round++) {
        must(&scene, node_plan(&node, &scene.error));
    }
    assert_int_equal(count_of(&scene, 1), MANY);
    node_close(&node);
    ledger_close(ports.ledger);
    verdict_db_close(ports.verdicts);
    store_close(&scene.store);
}

static void test_a_job_is_named_by_digits_that_commands_take(void **state)
{
    const struct hash32 job = {{0x51, 0xdc, 0x0a, 0x7f, 0x99}};
    char text[STORE_PLACE_TEXT];

    (void)state;
    store_job_text(text, &job);
    assert_string_equal(text, "job 0x51dc0a7f");
    store_place_text(text, &job, UINT32_MAX);
    assert_string_equal(text, "job 0x51dc0a7f segment 4294967295");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_job_is_named_by_digits_that_commands_take),
        cmocka_unit_test(test_a_job_takes_no_more_places_than_it_leaves),
        cmocka_unit_test(test_a_check_that_waits_or_runs_needs_no_second_place),
        cmocka_unit_test(test_a_forgotten_fault_is_checked_again),
        cmocka_unit_test(test_a_job_without_room_blocks_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
