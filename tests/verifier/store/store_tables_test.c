/*
 * Goal: SQL sees each struct of the board exactly once, whichever way it looks for it, and changes
 * none.
 * Method: a board of three jobs is told of panels, segments, draws, voids and claims. Each row that
 * a walk over a table finds must be found by its key, by its job and by what else names it, and
 * nothing else may be found so. A table is read, and joined with itself, as statements do.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "verifier/store/store_tables.h"

#define OK(call) assert_int_equal((call), STATUS_OK)

enum { JOBS = 3, SEGMENTS = 6, STEPS = 4, PANEL = 5, TENURES = 2 };

static const struct address own = {{7}};
static const struct address other = {{8}};

struct scene {
    struct board board;
    struct database sql;
    uint64_t number;
    struct error error;
};

static void tell(struct scene *scene, uint8_t job, const struct game_event *event)
{
    struct ledger_entry entry = {.kind = LEDGER_EVENT, .number = ++scene->number, .event = *event};

    entry.height = entry.time_s = scene->number;
    entry.event.job.bytes[0] = job;
    OK(board_take(&scene->board, &entry, &scene->error));
}

static void commit(struct scene *scene, uint8_t job, uint32_t generation, uint32_t index)
{
    static const struct digest states[STEPS];
    struct game_event event = {.kind = GAME_COMMITTED, .states = {states, STEPS}};

    event.segment = (struct game_segment){
        .index = index, .generation = generation, .steps = STEPS, .panel = PANEL};
    event.segment.root.bytes[0] = (uint8_t)(index + 1);
    tell(scene, job, &event);
    tell(scene, job,
         &(struct game_event){.kind = GAME_DRAWN, .index = index, .seal = {{3}}, .flag = true});
    tell(scene, job,
         &(struct game_event){.kind = GAME_ROUND, .index = index, .seal = {{3}}, .to = 8});
}

/* A tenure that commits, has claims, and is void at last. */
static void play_tenure(struct scene *scene, uint8_t job, uint32_t generation)
{
    for (uint32_t i = 0; i < PANEL; i++) {
        tell(scene, job,
             &(struct game_event){.kind = GAME_ENLISTED,
                                  .account = i % 2 == 0 ? own : other,
                                  .generation = generation,
                                  .entry = i,
                                  .count = 1});
    }
    tell(scene, job, &(struct game_event){.kind = GAME_ACCEPTED, .account = {{9}}});
    for (uint32_t i = generation; i < SEGMENTS; i++) {
        commit(scene, job, generation, i);
        tell(scene, job,
             &(struct game_event){.kind = GAME_CLAIMED,
                                  .claim = {{job, (uint8_t)generation, (uint8_t)i}},
                                  .account = i % 2 == 0 ? own : other,
                                  .amount = 100 + i,
                                  .index = i});
    }
    tell(scene, job, &(struct game_event){.kind = GAME_GONE, .generation = generation, .entry = 2});
    tell(scene, job, &(struct game_event){.kind = GAME_FINALIZED, .index = generation, .count = 1});
    tell(scene, job, &(struct game_event){.kind = GAME_RELEASED});
}

static void open_scene(struct scene *scene)
{
    memset(scene, 0, sizeof(*scene));
    error_init(&scene->error);
    scene->board.whole = true;
    scene->board.account = own;
    OK(database_open_foreign(&scene->sql, ":memory:", SQLITE_OPEN_READWRITE, &scene->error));
    OK(store_tables_make(&scene->sql, &scene->board, &scene->error));
    for (uint32_t job = 1; job <= JOBS; job++) {
        struct game_event event = {.kind = GAME_OPENED};

        event.terms = (struct game_terms){
            .steps = SEGMENTS * STEPS, .segment_steps = STEPS, .seats = 1, .reward = 1};
        tell(scene, (uint8_t)job, &event);
    }
    for (uint32_t generation = 0; generation < TENURES; generation++) {
        for (uint32_t job = 1; job <= JOBS; job++) {
            play_tenure(scene, (uint8_t)job, generation);
        }
    }
    commit(scene, 2, TENURES, TENURES); /* one stands */
}

static void close_scene(struct scene *scene)
{
    database_close(&scene->sql);
    board_release(&scene->board);
}

static int64_t count_of(struct scene *scene, const char *query)
{
    int64_t number = -1;

    if (database_number(&scene->sql, &number, 0, &scene->error, query, "") != STATUS_OK) {
        fail_msg("%s: %s", query, scene->error.text);
    }
    return number;
}

/* ---- tests ------------------------------------------------------------------------- */

static void test_each_struct_is_one_row(void **state)
{
    static const struct {
        const char *table;
        int64_t rows;
    } tables[] = {
        {"jobs", JOBS},
        {"entries", (int64_t)JOBS * TENURES * PANEL},
        {"segments", JOBS * (SEGMENTS + SEGMENTS - 1) + 1},
        {"disputes", JOBS * (SEGMENTS + SEGMENTS - 1)},
    };
    struct scene scene;
    char query[256];

    (void)state;
    open_scene(&scene);
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        (void)snprintf(query, sizeof(query), "SELECT count(*) FROM %s", tables[i].table);
        assert_int_equal(count_of(&scene, query), tables[i].rows);
        (void)snprintf(query, sizeof(query), "SELECT count(DISTINCT +rowid) FROM %s",
                       tables[i].table);
        assert_int_equal(count_of(&scene, query), tables[i].rows);
    }
    assert_true(count_of(&scene, "SELECT count(*) FROM seats") > 0);
    assert_int_equal(count_of(&scene, "SELECT count(DISTINCT +rowid) - count(*) FROM seats"), 0);
    assert_int_equal(count_of(&scene, "SELECT count(*) FROM segments WHERE void"),
                     JOBS * (SEGMENTS - 1 + SEGMENTS - 2));
    close_scene(&scene);
}

/* `+` keeps sqlite3 from handing `=` to the walk. CROSS JOIN keeps the order. */
static void test_a_search_finds_what_a_walk_finds(void **state)
{
    static const struct {
        const char *outer;
        const char *of;
        const char *inner;
        const char *by;
    } pairs[] = {
        {"jobs", "key", "jobs", "key"},           {"jobs", "key", "entries", "job"},
        {"jobs", "key", "segments", "job"},       {"jobs", "key", "disputes", "job"},
        {"entries", "job", "jobs", "key"},        {"entries", "job", "entries", "job"},
        {"entries", "owner", "seats", "owner"},   {"segments", "hash", "segments", "hash"},
        {"segments", "hash", "seats", "segment"}, {"segments", "hash", "disputes", "segment"},
        {"segments", "seed", "segments", "seed"}, {"segments", "idx", "segments", "idx"},
        {"seats", "segment", "segments", "hash"}, {"seats", "place", "seats", "place"},
        {"disputes", "key", "disputes", "key"},   {"disputes", "segment", "segments", "hash"},
        {"disputes", "bond", "disputes", "bond"}, {"disputes", "subject", "disputes", "subject"},
    };
    struct scene scene;

    (void)state;
    open_scene(&scene);
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        int64_t found[2];

        for (int searched = 0; searched < 2; searched++) {
            char query[256];

            (void)snprintf(
                query, sizeof(query), "SELECT count(*) FROM %s a CROSS JOIN %s b ON %sb.%s = a.%s",
                pairs[i].outer, pairs[i].inner, searched ? "" : "+", pairs[i].by, pairs[i].of);
            found[searched] = count_of(&scene, query);
        }
        assert_true(found[0] > 0);
        assert_int_equal(found[1], found[0]);
    }
    close_scene(&scene);
}

static void test_what_is_nowhere_is_not_found(void **state)
{
    struct scene scene;

    (void)state;
    open_scene(&scene);
    assert_int_equal(count_of(&scene, "SELECT count(*) FROM segments WHERE hash = x'01'"), 0);
    assert_int_equal(count_of(&scene, "SELECT count(*) FROM segments WHERE hash = zeroblob(32)"),
                     0);
    assert_int_equal(count_of(&scene, "SELECT count(*) FROM jobs WHERE key = NULL"), 0);
    assert_int_equal(count_of(&scene, "SELECT count(*) FROM seats WHERE segment = 3"), 0);
    /* A key, and a job that is not its. */
    assert_int_equal(count_of(&scene,
                              "SELECT count(*) FROM disputes d JOIN jobs j ON j.key <> d.job"
                              " JOIN disputes o ON o.key = d.key AND o.job = j.key"),
                     0);
    close_scene(&scene);
}

static void test_what_is_ours_is_told_from_the_rest(void **state)
{
    struct scene scene;

    (void)state;
    open_scene(&scene);
    assert_int_equal(count_of(&scene, "SELECT count(*) FROM entries WHERE ours = 1"),
                     JOBS * TENURES * (PANEL + 1) / 2);
    assert_int_equal(count_of(&scene, "SELECT count(*) FROM entries WHERE ours"),
                     JOBS * TENURES * (PANEL + 1) / 2);
    assert_int_equal(count_of(&scene, "SELECT count(*) FROM entries WHERE gone = 1"),
                     JOBS * TENURES);
    assert_int_equal(count_of(&scene, "SELECT max(cast(bond AS INTEGER)) FROM disputes WHERE ours ="
                                      " 1"),
                     100 + SEGMENTS - 2);
    assert_int_equal(count_of(&scene, "SELECT sum(enlisted) FROM jobs"),
                     JOBS * TENURES * (PANEL + 1) / 2);
    memset(&scene.board.account, 0, sizeof(scene.board.account)); /* a node without a key */
    assert_int_equal(count_of(&scene, "SELECT count(*) FROM entries WHERE ours"), 0);
    close_scene(&scene);
}

static void test_nothing_can_be_written(void **state)
{
    static const char *const statements[] = {"UPDATE jobs SET phase = 3", "DELETE FROM segments",
                                             "INSERT INTO seats (place) VALUES (1)"};
    struct scene scene;

    (void)state;
    open_scene(&scene);
    for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++) {
        assert_int_not_equal(database_run(&scene.sql, &scene.error, statements[i], ""), STATUS_OK);
        assert_non_null(strstr(scene.error.text, "may not be modified"));
    }
    close_scene(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_struct_is_one_row),
        cmocka_unit_test(test_a_search_finds_what_a_walk_finds),
        cmocka_unit_test(test_what_is_nowhere_is_not_found),
        cmocka_unit_test(test_what_is_ours_is_told_from_the_rest),
        cmocka_unit_test(test_nothing_can_be_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
