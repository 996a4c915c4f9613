/*
 * Goal: of the states that a node keeps, those that nobody needs go first, the model of a job that
 * closed within two weeks last, and never more than the bound stays; what is not a state stays
 * untouched, and a job without states leaves nothing.
 * Method: a store that heard of jobs in every phase; files of known sizes and ages in the folder;
 * bounds that shrink state by state.
 */
#include "verifier/store/keep.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hex.h"
#include "tests/support/test.h"

enum {
    STEPS = 10, /* of each job, */
    SEGMENT = 4,
    STATE_SIZE = 900,
    PIECES_SIZE = 100,
    JOB_SIZE = 10,
    NOW_S = 1700000000,
};

struct scene {
    struct store store;
    struct keep keep;
    char folder[FILE_PATH_MAX];
    uint64_t number; /* of the last event, */
    uint64_t age_s;  /* and how long ago it was */
    struct error error;
};

static void must(const struct scene *scene, enum status status)
{
    if (status != STATUS_OK) {
        fail_msg("%s", scene->error.text);
    }
}

static void open_scene(struct scene *scene, const char *name)
{
    char path[FILE_PATH_MAX];

    memset(scene, 0, sizeof(*scene));
    error_init(&scene->error);
    (void)snprintf(path, sizeof(path), "%.900s/%s.db", test_temp_dir(), name);
    (void)snprintf(scene->folder, sizeof(scene->folder), "%.900s/%s.kept", test_temp_dir(), name);
    must(scene, store_open(&scene->store, path, STORE_WRITE, &scene->error));
}

static void close_scene(struct scene *scene)
{
    keep_close(&scene->keep);
    store_close(&scene->store);
}

static void hear(struct scene *scene, const struct game_event *event)
{
    static const struct address own;
    const struct ledger_entry entry = {.kind = LEDGER_EVENT,
                                       .number = ++scene->number,
                                       .time_s = NOW_S - scene->age_s,
                                       .event = *event};

    must(scene, store_take(&scene->store, &entry, &own, &scene->error));
}

/* Its id and its key have this first byte; segments that are final; and what happened after. */
static void have_job(struct scene *scene, uint8_t id, uint32_t finalized,
                     const enum game_event_kind *then, size_t count)
{
    struct game_event event = {
        .kind = GAME_OPENED,
        .job = {{id}},
        .terms = {.job_id = {{id}}, .steps = STEPS, .segment_steps = SEGMENT}};

    hear(scene, &event);
    event = (struct game_event){.kind = GAME_ACCEPTED, .job = {{id}}, .account = {{2}}};
    hear(scene, &event);
    for (uint32_t i = 0; i < finalized; i++) {
        event = (struct game_event){.kind = GAME_COMMITTED,
                                    .job = {{id}},
                                    .index = i,
                                    .segment = {.index = i, .generation = 1}};
        hear(scene, &event);
        event = (struct game_event){.kind = GAME_FINALIZED, .job = {{id}}, .index = i, .count = 1};
        hear(scene, &event);
    }
    for (size_t i = 0; i < count; i++) {
        event = (struct game_event){.kind = then[i], .job = {{id}}};
        hear(scene, &event);
    }
}

static void put(struct scene *scene, const char *name, size_t size)
{
    static const uint8_t bytes[STATE_SIZE];
    char path[FILE_PATH_MAX];
    char folder[FILE_PATH_MAX];

    (void)snprintf(path, sizeof(path), "%.2000s/%s", scene->folder, name);
    (void)snprintf(folder, sizeof(folder), "%s", path);
    *strrchr(folder, '/') = '\0';
    must(scene, file_make_folder(folder, &scene->error, 0755));
    must(scene, file_write(path, &scene->error, bytes, size, 0644));
}

static void name_of(char name[256], uint8_t id, uint64_t step, const char *ending)
{
    const struct digest job = {{id}};
    char text[HEX_SIZE(DIGEST_SIZE)];

    hex_encode(text, job.bytes, DIGEST_SIZE);
    (void)snprintf(name, 256, "v1/jobs/%s/checkpoints/%012" PRIu64 ".%s", text, step, ending);
}

static void keep(struct scene *scene, uint8_t id, uint64_t step, uint64_t age_s)
{
    static const char *const endings[] = {"safetensors", "pieces"};
    static const size_t sizes[] = {STATE_SIZE, PIECES_SIZE};
    const struct digest job = {{id}};
    char text[HEX_SIZE(DIGEST_SIZE)];
    char name[256];

    for (size_t i = 0; i < 2; i++) {
        const struct timespec times[2] = {{NOW_S - (time_t)age_s, 0}, {NOW_S - (time_t)age_s, 0}};
        char path[FILE_PATH_MAX];

        name_of(name, id, step, endings[i]);
        put(scene, name, sizes[i]);
        (void)snprintf(path, sizeof(path), "%.2000s/%s", scene->folder, name);
        assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    }
    hex_encode(text, job.bytes, DIGEST_SIZE);
    (void)snprintf(name, sizeof(name), "v1/jobs/%s/job", text);
    put(scene, name, JOB_SIZE);
}

static bool is_there(const struct scene *scene, uint8_t id, uint64_t step)
{
    const struct digest job = {{id}};

    return kept_has(scene->keep.folder, &job, step);
}

/* Opens it again with another bound. */
static void bound(struct scene *scene, uint64_t bytes_max)
{
    keep_close(&scene->keep);
    must(scene, keep_open(&scene->keep, scene->folder, NULL, bytes_max, &scene->error));
    must(scene, keep_sweep(&scene->keep, &scene->store, NOW_S, &scene->error));
}

static void test_what_is_needed_most_goes_last(void **state)
{
    static const enum game_event_kind closed[] = {GAME_CLOSED};
    /* In the order in which they go: by what they are worth, then by their age. */
    static const struct {
        uint8_t id;
        uint64_t step;
        uint64_t age_s;
    } order[] = {
        {9, 4, 60},  /* of a job that nobody knows, and the older one */
        {9, 8, 50},  /* and the newer */
        {1, 10, 3},  /* closed long ago */
        {2, 8, 2},   /* of a closed job, and not its model */
        {3, 4, 100}, /* of a running one: a later end is final */
        {3, 10, 1},  /* not final yet */
        {3, 8, 200}, /* the last final end: it is older than the model of the next */
        {2, 10, 150} /* closed, and its model */
    };
    const uint64_t whole = STATE_SIZE + PIECES_SIZE;
    const size_t count = sizeof(order) / sizeof(order[0]);
    char facts[STORE_REASON_MAX];
    struct scene scene;

    (void)state;
    open_scene(&scene, "order");
    scene.age_s = 15 * 86400;
    have_job(&scene, 1, 3, closed, 1);
    scene.age_s = 13 * 86400;
    have_job(&scene, 2, 3, closed, 1);
    have_job(&scene, 3, 2, NULL, 0);
    for (size_t i = 0; i < count; i++) {
        keep(&scene, order[i].id, order[i].step, order[i].age_s);
    }
    bound(&scene, UINT64_MAX);
    for (size_t gone = 0; gone <= count; gone++) {
        /* Room for the rest, and for the files of their jobs, which go with the last state. */
        bound(&scene, (count - gone) * whole + (gone == count ? 0 : 4 * JOB_SIZE));
        for (size_t i = 0; i < count; i++) {
            if (is_there(&scene, order[i].id, order[i].step) != (i >= gone)) {
                fail_msg("%zu states went, and number %zu is%s there", gone, i,
                         i >= gone ? " not" : "");
            }
        }
    }
    must(&scene, store_text(&scene.store, facts, "keeps", &scene.error));
    assert_string_equal(facts, "0 states, 0.0 of 0.0 MB; not served");
    close_scene(&scene);
}

static void test_a_job_without_states_leaves_nothing(void **state)
{
    char path[FILE_PATH_MAX];
    char name[256];
    struct scene scene;

    (void)state;
    open_scene(&scene, "empty");
    keep(&scene, 7, 4, 5);
    keep(&scene, 8, 4, 1);
    name_of(name, 8, 8, "pieces"); /* a death came before its state */
    put(&scene, name, PIECES_SIZE);
    put(&scene, "v1/jobs/notes.txt", JOB_SIZE);
    bound(&scene, STATE_SIZE + PIECES_SIZE + PIECES_SIZE + 2 * JOB_SIZE);
    assert_false(is_there(&scene, 7, 4));
    assert_true(is_there(&scene, 8, 4));
    (void)snprintf(path, sizeof(path), "%.2000s/v1/jobs/07%062d", scene.folder, 0);
    assert_false(file_exists(path));
    (void)snprintf(path, sizeof(path), "%.2000s/v1/jobs/notes.txt", scene.folder);
    assert_true(file_exists(path));
    bound(&scene, 0);
    (void)snprintf(path, sizeof(path), "%.2000s/v1/jobs/08%062d", scene.folder, 0);
    assert_false(file_exists(path));
    close_scene(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_needed_most_goes_last),
        cmocka_unit_test(test_a_job_without_states_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
