/*
 * Goal: damage in a node's databases costs it no reveal and no bond, and is never believed.
 * Method: a node seals its verdicts; then rows of its verdict database are changed or lost, or the
 * whole file is, with or without the node's database; every cell of the node's database is changed
 * in turn. The node that is opened again reveals everything.
 */
#include "tests/support/test.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/dispute/cheat.h"
#include "tests/support/game/market.h"

enum {
    STEPS = 12,
    SEGMENT = 4,
    SEGMENTS = 3,
    CELLS_MIN = 12,
    CELLS_STEP = 4, /* outside of make soak */
    PLAYS = 3,
};

struct scene {
    struct market market;
    struct market_node node;
    const char *mirror;
};

static struct job *small_mlp(void)
{
    struct small_job_options options;

    small_job_of_kind(&options, MODEL_MLP);
    options.steps = STEPS;
    options.segment_length = SEGMENT;
    options.model.seed = 43;
    return small_job_new(&options);
}

/* A node has sealed all its verdicts, and is closed. */
static void seal_all(struct scene *scene, const char *name)
{
    uint64_t random = 1;

    scene->mirror = small_path(name);
    market_open(&scene->market, true, name);
    cheat_bundle_new(scene->mirror, small_mlp(), CHEAT_NOT, 0, &random);
    (void)market_commit(&scene->market, scene->mirror);
    market_node_defaults(&scene->node, &scene->market, scene->mirror);
    market_node_open(&scene->node);
    market_node_settle(&scene->node);
    assert_int_equal(market_count(&scene->market, GAME_SEALED_VERDICT, NULL), SEGMENTS);
    market_node_close(&scene->node);
}

static void see_all_revealed(struct scene *scene)
{
    market_node_open(&scene->node);
    market_node_settle(&scene->node);
    market_pass_time(&scene->market, MARKET_SEAL_S + 1);
    market_node_settle(&scene->node);
    assert_int_equal(market_count(&scene->market, GAME_SEALED_VERDICT, NULL), SEGMENTS);
    assert_int_equal(market_count(&scene->market, GAME_REVEALED, NULL), SEGMENTS);
    market_node_close(&scene->node);
    market_close(&scene->market);
}

static const char *path_of(const struct scene *scene, const char *name)
{
    static char path[700];

    (void)snprintf(path, sizeof(path), "%.600s/%.90s", scene->market.folders[MARKET_VERIFIER],
                   name);
    return path;
}

static void lose_file(const struct scene *scene, const char *name)
{
    static const char *const ends[] = {"", "-wal", "-shm"};

    for (int end = 0; end < 3; end++) {
        char whole[64];

        (void)snprintf(whole, sizeof(whole), "%.50s%s", name, ends[end]);
        (void)unlink(path_of(scene, whole));
    }
}

/* How many rows the last statement changed. */
static int change_rows(const char *path, const char *text)
{
    sqlite3 *sql;
    int changed;

    assert_int_equal(sqlite3_open(path, &sql), SQLITE_OK);
    if (sqlite3_exec(sql, text, NULL, NULL, NULL) != SQLITE_OK) {
        fail_msg("%s: %s", text, sqlite3_errmsg(sql));
    }
    changed = sqlite3_changes(sql);
    assert_int_equal(sqlite3_close(sql), SQLITE_OK);
    return changed;
}

/* ---- the verdict database ------------------------------------------------------- */

/* A check and the secret make a seal again: what the ledger has is revealed in time. */
static void test_seals_that_were_lost_are_made_again(void **state)
{
    static const char *const losses[] = {
        "UPDATE seals SET seat = seat + 100; UPDATE verdicts SET segment = segment + 1000",
        NULL, /* the whole file */
        "UPDATE meta SET value = zeroblob(32) WHERE name = 'secret'",
        "UPDATE seals SET verdict = verdict % 2 + 1",
        "UPDATE seals SET leaves = zeroblob(length(leaves))",
    };
    const size_t count = sizeof(losses) / sizeof(losses[0]);
    const size_t plays = test_soak_minutes() > 0 ? 2 * count : PLAYS;

    (void)state;
    for (size_t i = 0; i < plays; i++) {
        const char *loss = losses[i % count];
        struct scene scene;
        char name[32];

        (void)snprintf(name, sizeof(name), "lost-seals-%zu", i);
        seal_all(&scene, name);
        if (loss == NULL) {
            lose_file(&scene, "verdicts.db");
        } else {
            assert_true(change_rows(path_of(&scene, "verdicts.db"), loss) > 0);
        }
        if (i % 2 != 0) { /* five of them: in the second half the others */
            lose_file(&scene, "node.db");
        }
        see_all_revealed(&scene);
    }
}

/* ---- the node's database --------------------------------------------------------- */

/* Changes a cell of a table's last row as a bit flip would, past the triggers: how many. */
static int change_cell(const char *path, const char *table, const char *cell)
{
    char text[700];

    (void)snprintf(text, sizeof(text),
                   "DROP TRIGGER IF EXISTS marks_%s_UPDATE; UPDATE OR IGNORE %s SET %s = CASE"
                   " typeof(%s) WHEN 'integer' THEN %s + 1000 WHEN 'text' THEN %s || 'x' WHEN"
                   " 'null' THEN x'01' ELSE CAST(x'ff' || substr(%s, 2) AS BLOB) END WHERE"
                   " rowid = (SELECT max(rowid) FROM %s)",
                   table, table, cell, cell, cell, cell, cell, table);
    return change_rows(path, text);
}

static void see_it_set_aside(const struct scene *scene, const char *table, const char *cell,
                             bool changed)
{
    struct store store;
    struct error error;

    error_init(&error);
    if (store_open(&store, path_of(scene, "node.db"), STORE_WRITE, &error) != STATUS_OK) {
        fail_msg("%s.%s: %s", table, cell, error.text);
    }
    if (changed && strstr(store.damage, "made again from the ledger") == NULL) {
        fail_msg("%s.%s is not seen: %s", table, cell, store.damage);
    }
    store_close(&store);
    assert_int_equal(unlink(path_of(scene, "node.db.damaged")), changed ? 0 : -1);
}

static void test_every_cell_of_the_nodes_database_is_held_against_sums(void **state)
{
    struct scene scene;
    char text[800];
    sqlite3_stmt *row;
    sqlite3 *sql;
    sqlite3 *source; /* VACUUM allows no other statement beside it */
    int cells = 0;

    (void)state;
    seal_all(&scene, "cells");
    (void)snprintf(text, sizeof(text), "%s", path_of(&scene, "before.db"));
    assert_int_equal(rename(path_of(&scene, "node.db"), text), 0);
    assert_int_equal(sqlite3_open(text, &sql), SQLITE_OK);
    assert_int_equal(sqlite3_open(text, &source), SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(sql,
                           "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c"
                           " WHERE m.type = 'table'",
                           -1, &row, NULL),
        SQLITE_OK);
    for (int at = 0; sqlite3_step(row) == SQLITE_ROW; at++) {
        const char *table = (const char *)sqlite3_column_text(row, 0);
        const char *cell = (const char *)sqlite3_column_text(row, 1);
        int changed;

        if (at % CELLS_STEP != 0 && test_soak_minutes() == 0) {
            continue;
        }
        lose_file(&scene, "node.db");
        (void)snprintf(text, sizeof(text), "VACUUM INTO '%.700s'", path_of(&scene, "node.db"));
        assert_int_equal(sqlite3_exec(source, text, NULL, NULL, NULL), SQLITE_OK);
        changed = change_cell(path_of(&scene, "node.db"), table, cell);
        see_it_set_aside(&scene, table, cell, changed > 0);
        cells += changed;
    }
    (void)sqlite3_finalize(row);
    (void)sqlite3_close(sql);
    (void)sqlite3_close(source);
    assert_true(cells > CELLS_MIN);
    see_all_revealed(&scene); /* the last one is new, and empty */
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seals_that_were_lost_are_made_again),
        cmocka_unit_test(test_every_cell_of_the_nodes_database_is_held_against_sums),
    };

    if (workers_asked(argc, argv)) {
        return workers_serve(argv, &dispute_child);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
