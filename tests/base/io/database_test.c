/*
 * Goal: a kept statement behaves like a new one. Method: run the same texts again with other
 * parameters, inside each other, after failures, beside another connection that writes and changes
 * tables, and more of them than are kept. And a file that is deleted or replaced while it is open
 * takes nothing more.
 */
#include "base/io/database.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io/file.h"
#include "tests/support/test.h"

struct scene {
    struct database sql;
    char path[FILE_PATH_MAX];
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
    memset(scene, 0, sizeof(*scene));
    error_init(&scene->error);
    (void)snprintf(scene->path, sizeof(scene->path), "%.900s/%s", test_temp_dir(), name);
    must(scene,
         database_open(&scene->sql, scene->path,
                       "CREATE TABLE IF NOT EXISTS t (a INTEGER UNIQUE, b TEXT)", &scene->error));
}

static void insert(struct scene *scene, int64_t a, const char *b)
{
    must(scene, database_run(&scene->sql, &scene->error, "INSERT INTO t (a, b) VALUES (?, ?)", "it",
                             a, b));
}

static int64_t number(struct scene *scene, const char *text)
{
    int64_t found = 0;

    must(scene, database_number(&scene->sql, &found, -1, &scene->error, text, ""));
    return found;
}

static void test_what_was_bound_before_is_forgotten(void **state)
{
    struct scene scene;

    (void)state;
    open_scene(&scene, "bound.db");
    insert(&scene, 1, "one");
    insert(&scene, 2, NULL);
    insert(&scene, 3, "three");
    assert_int_equal(number(&scene, "SELECT count(*) FROM t"), 3);
    assert_int_equal(number(&scene, "SELECT a FROM t WHERE b IS NULL"), 2);
    /* A format that binds nothing leaves the parameters NULL, not as they were. */
    must(&scene, database_run(&scene.sql, &scene.error, "INSERT INTO t (a, b) VALUES (?, ?)", ""));
    assert_int_equal(number(&scene, "SELECT count(*) FROM t WHERE a IS NULL AND b IS NULL"), 1);
    database_close(&scene.sql);
}

static enum status read_number(void *one, sqlite3_stmt *row, struct error *error)
{
    int64_t value = sqlite3_column_int64(row, 0);

    if (value == 3) {
        return error_set(error, STATUS_BAD_FORMAT, "three");
    }
    *(int64_t *)one = value;
    return STATUS_OK;
}

static void test_rows_are_collected_up_to_a_bound_or_a_bad_one(void **state)
{
    static const char text[] = "SELECT a FROM t WHERE a >= ? ORDER BY a";
    int64_t found[4] = {0};
    uint32_t count = 9;
    struct scene scene;

    (void)state;
    open_scene(&scene, "collect.db");
    must(&scene, database_collect(&scene.sql, found, &count,
                                  database_query(&scene.sql, &scene.error, text, "i", (int64_t)0),
                                  sizeof(found[0]), 4, read_number, &scene.error));
    assert_int_equal(count, 0);
    for (int64_t a = 1; a <= 9; a++) {
        insert(&scene, a, "");
    }
    must(&scene, database_collect(&scene.sql, found, &count,
                                  database_query(&scene.sql, &scene.error, text, "i", (int64_t)4),
                                  sizeof(found[0]), 3, read_number, &scene.error));
    assert_int_equal(count, 3);
    assert_true(found[0] == 4 && found[1] == 5 && found[2] == 6 && found[3] == 0);
    assert_int_equal(
        database_collect(&scene.sql, found, &count,
                         database_query(&scene.sql, &scene.error, text, "i", (int64_t)2),
                         sizeof(found[0]), 4, read_number, &scene.error),
        STATUS_BAD_FORMAT);
    assert_int_equal(count, 1);
    assert_string_equal(scene.error.text, "three");
    error_init(&scene.error);
    assert_int_equal(
        database_collect(&scene.sql, found, &count,
                         database_query(&scene.sql, &scene.error, "SELECT a FROM nothing", ""),
                         sizeof(found[0]), 4, read_number, &scene.error),
        STATUS_IO);
    assert_int_equal(count, 0);
    assert_non_null(strstr(scene.error.text, "nothing"));
    database_close(&scene.sql);
}

static void test_one_text_runs_inside_itself(void **state)
{
    static const char text[] = "SELECT a FROM t ORDER BY a";
    struct scene scene;
    int64_t sum = 0;

    (void)state;
    open_scene(&scene, "inside.db");
    for (int64_t a = 1; a <= 3; a++) {
        insert(&scene, a, "");
    }
    for (int again = 0; again < 3; again++) {
        sqlite3_stmt *outer = database_query(&scene.sql, &scene.error, text, "");

        while (database_step(&scene.sql, outer, &scene.error) == STATUS_OK) {
            sqlite3_stmt *inner = database_query(&scene.sql, &scene.error, text, "");

            assert_ptr_not_equal(inner, outer);
            while (database_step(&scene.sql, inner, &scene.error) == STATUS_OK) {
                sum += sqlite3_column_int64(outer, 0) * sqlite3_column_int64(inner, 0);
            }
            database_done(&scene.sql, inner);
        }
        database_done(&scene.sql, outer);
    }
    assert_int_equal(sum, 3 * 36);
    database_done(&scene.sql, NULL);
    database_close(&scene.sql);
}

static void test_a_failure_is_not_kept(void **state)
{
    struct scene scene;

    (void)state;
    open_scene(&scene, "failure.db");
    insert(&scene, 1, "one");
    for (int again = 0; again < 2; again++) {
        assert_int_equal(database_run(&scene.sql, &scene.error,
                                      "INSERT INTO t (a, b) VALUES (?, ?)", "it", (int64_t)1,
                                      "twice"),
                         STATUS_IO);
        assert_non_null(strstr(scene.error.text, "UNIQUE"));
    }
    insert(&scene, 2, "two");
    assert_int_equal(number(&scene, "SELECT count(*) FROM t"), 2);
    database_close(&scene.sql);
}

static void test_others_write_and_change_tables_meanwhile(void **state)
{
    struct scene scene;
    struct scene other;

    (void)state;
    open_scene(&scene, "others.db");
    open_scene(&other, "others.db");
    insert(&scene, 1, "one");
    assert_int_equal(number(&scene, "SELECT count(*) FROM t"), 1);
    /* What is kept holds no lock. */
    must(&other, database_begin(&other.sql, &other.error));
    insert(&other, 2, "two");
    must(&other, database_run(&other.sql, &other.error,
                              "ALTER TABLE t ADD COLUMN c INTEGER NOT NULL DEFAULT 7", ""));
    must(&other, database_end(&other.sql, STATUS_OK, &other.error));
    assert_int_equal(number(&other, "PRAGMA wal_checkpoint(TRUNCATE)"), 0);
    assert_int_equal(number(&scene, "SELECT count(*) FROM t"), 2);
    assert_int_equal(number(&scene, "SELECT sum(c) FROM t"), 14);
    insert(&scene, 3, "three");
    must(&other, database_run(&other.sql, &other.error, "DROP TABLE t", ""));
    assert_int_equal(database_run(&scene.sql, &scene.error, "INSERT INTO t (a, b) VALUES (?, ?)",
                                  "it", (int64_t)4, "four"),
                     STATUS_IO);
    database_close(&scene.sql);
    database_close(&other.sql);
}

static void test_a_pragma_works_each_time(void **state)
{
    struct scene scene;

    (void)state;
    open_scene(&scene, "pragma.db");
    for (int64_t value = 1; value <= 3; value++) {
        must(&scene, database_run(&scene.sql, &scene.error, "PRAGMA cache_size = 10", ""));
        assert_int_equal(number(&scene, "PRAGMA cache_size"), 10);
        must(&scene, database_run(&scene.sql, &scene.error, "pragma cache_size = 20", ""));
        assert_int_equal(number(&scene, "PRAGMA cache_size"), 20);
    }
    database_close(&scene.sql);
}

static void test_more_texts_than_places_are_all_right(void **state)
{
    struct scene scene;
    char wal[FILE_PATH_MAX];

    (void)state;
    open_scene(&scene, "many.db");
    insert(&scene, 1, "one");
    for (int again = 0; again < 3; again++) {
        for (int i = 0; i < 3 * DATABASE_KEPT_MAX; i++) {
            char text[64];

            (void)snprintf(text, sizeof(text), "SELECT a + %d FROM t", i);
            assert_int_equal(number(&scene, text), 1 + i);
        }
    }
    database_close(&scene.sql);
    /* Only a connection without statements can be closed; the last one removes the log. */
    (void)snprintf(wal, sizeof(wal), "%.900s-wal", scene.path);
    assert_true(file_exists(scene.path));
    assert_false(file_exists(wal));
}

static void test_a_digest_and_nothing_are_bound(void **state)
{
    const struct digest digest = {{9, 8, 7}};
    struct scene scene;
    sqlite3_stmt *row = NULL;
    struct digest found;

    (void)state;
    open_scene(&scene, "letters.db");
    must(&scene, database_first(&row, &scene.sql, &scene.error, "SELECT ?, ?", "dn", &digest));
    assert_true(database_blob_column(row, 0, found.bytes, DIGEST_SIZE));
    assert_true(digest_equal(&found, &digest));
    assert_int_equal(sqlite3_column_type(row, 1), SQLITE_NULL);
    database_done(&scene.sql, row);
    assert_int_equal(
        database_first(&row, &scene.sql, &scene.error, "SELECT a FROM t WHERE a = 7", ""),
        STATUS_NOT_FOUND);
    database_done(&scene.sql, row);
    assert_int_equal(database_prepare(&row, &scene.sql, &scene.error, "SELECT nothing", ""),
                     STATUS_IO);
    assert_null(row);
    database_close(&scene.sql);
    database_close(&scene.sql);
}

static void test_damage_in_a_foreign_file_is_a_bad_format(void **state)
{
    static const char bytes[] = "a file that is no database, and longer than a header of one, so "
                                "that sqlite3 looks at the first 16 bytes of it";
    struct scene scene;

    (void)state;
    open_scene(&scene, "ours.db");
    database_close(&scene.sql);
    assert_int_equal(
        database_open_foreign(&scene.sql, scene.path, SQLITE_OPEN_READWRITE, &scene.error),
        STATUS_OK);
    assert_false(database_in_transaction(&scene.sql));
    must(&scene, database_execute(&scene.sql, "BEGIN", &scene.error));
    assert_true(database_in_transaction(&scene.sql));
    database_close(&scene.sql);
    (void)snprintf(scene.path, sizeof(scene.path), "%.900s/foreign.db", test_temp_dir());
    must(&scene, file_write_new(scene.path, &scene.error, bytes, sizeof(bytes), 0600));
    must(&scene,
         database_open_foreign(&scene.sql, scene.path, SQLITE_OPEN_READWRITE, &scene.error));
    assert_int_equal(database_execute(&scene.sql, "SELECT 1 FROM sqlite_schema", &scene.error),
                     STATUS_BAD_FORMAT);
    database_close(&scene.sql);
    assert_int_equal(database_open(&scene.sql, scene.path, "", &scene.error), STATUS_IO);
}

/* Removes the file, or puts another one at its path. */
static void lose(const struct scene *scene, bool replace)
{
    char other[FILE_PATH_MAX + 8];
    FILE *file;

    (void)snprintf(other, sizeof(other), "%s.other", scene->path);
    if (!replace) {
        assert_int_equal(remove(scene->path), 0);
        return;
    }
    file = fopen(other, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename(other, scene->path), 0);
}

static void test_a_file_that_is_lost_takes_nothing_more(void **state)
{
    (void)state;
    for (int replace = 0; replace < 2; replace++) {
        struct scene scene;
        int64_t count = 0;

        open_scene(&scene, replace ? "replaced.db" : "deleted.db");
        insert(&scene, 1, "one");
        must(&scene, database_begin(&scene.sql, &scene.error));
        insert(&scene, 2, "two");
        lose(&scene, replace);
        /* A commit into it would be believed, and lost. */
        assert_int_equal(database_end(&scene.sql, STATUS_OK, &scene.error), STATUS_GONE);
        assert_non_null(strstr(scene.error.text, scene.path));
        assert_false(database_in_transaction(&scene.sql));
        assert_int_equal(database_begin(&scene.sql, &scene.error), STATUS_GONE);
        assert_int_equal(database_run(&scene.sql, &scene.error, "DELETE FROM t", ""), STATUS_GONE);
        /* Nor is it read: it may be another's by now. */
        assert_int_equal(
            database_number(&scene.sql, &count, 0, &scene.error, "SELECT count(*) FROM t", ""),
            STATUS_GONE);
        assert_null(database_query(&scene.sql, &scene.error, "SELECT a FROM t", ""));
        assert_int_equal(scene.error.status, STATUS_GONE);
        database_close(&scene.sql);
    }
}

/* Also the files that SQLite puts beside it. */
static void test_a_new_file_is_its_owners_under_any_umask(void **state)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    mode_t before = umask(0);
    char path[600];
    char name[700];
    struct database sql;
    struct error error;

    (void)state;
    error_init(&error);
    (void)snprintf(path, sizeof(path), "%s/private.db", test_temp_dir());
    assert_int_equal(database_open(&sql, path, "CREATE TABLE kept (a)", &error), STATUS_OK);
    (void)umask(before);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        struct stat made;

        (void)snprintf(name, sizeof(name), "%s%s", path, ends[i]);
        assert_int_equal(stat(name, &made), 0);
        assert_int_equal(made.st_mode & 0777, 0600);
    }
    database_close(&sql);
}

static void test_a_file_that_comes_back_is_used_again(void **state)
{
    struct scene scene;
    char aside[FILE_PATH_MAX + 8];

    (void)state;
    open_scene(&scene, "aside.db");
    insert(&scene, 1, "one");
    (void)snprintf(aside, sizeof(aside), "%s.aside", scene.path);
    assert_int_equal(rename(scene.path, aside), 0);
    assert_int_equal(database_begin(&scene.sql, &scene.error), STATUS_GONE);
    assert_int_equal(rename(aside, scene.path), 0);
    insert(&scene, 2, "two");
    assert_int_equal(number(&scene, "SELECT count(*) FROM t"), 2);
    database_close(&scene.sql);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_bound_before_is_forgotten),
        cmocka_unit_test(test_rows_are_collected_up_to_a_bound_or_a_bad_one),
        cmocka_unit_test(test_one_text_runs_inside_itself),
        cmocka_unit_test(test_a_failure_is_not_kept),
        cmocka_unit_test(test_others_write_and_change_tables_meanwhile),
        cmocka_unit_test(test_a_pragma_works_each_time),
        cmocka_unit_test(test_more_texts_than_places_are_all_right),
        cmocka_unit_test(test_a_digest_and_nothing_are_bound),
        cmocka_unit_test(test_damage_in_a_foreign_file_is_a_bad_format),
        cmocka_unit_test(test_a_file_that_is_lost_takes_nothing_more),
        cmocka_unit_test(test_a_file_that_comes_back_is_used_again),
        cmocka_unit_test(test_a_new_file_is_its_owners_under_any_umask),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
