/*
 * Goal: damage in the verdict database costs the rows that it hit, and nothing is read that was not
 * written. The secret outlives the file.
 * Method: every cell of every table is changed in turn, every page is cleared, bits are flipped all
 * over the file: each row is what it was then, or is missing. A save is interrupted; the secret is
 * lost in both places.
 */
#include "tests/support/test.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/file.h"
#include "verifier/store/verdict_db.h"

enum {
    VERDICTS = 40, /* some pages of each table */
    SEALS = 40,
    PAGE = 4096,
    FLIPS = 40,
    FLIPS_SOAK = 20000,
    FILE_MAX = 1 << 20,
};

struct scene {
    char path[400];
    char before[400]; /* a copy of the sound file */
    struct hash32 derived;
};

static struct verdict_db_entry entry_of(uint32_t segment)
{
    struct verdict_db_entry entry;

    memset(&entry, 0, sizeof(entry));
    (void)snprintf(entry.place.chain, sizeof(entry.place.chain), "eip155:1");
    entry.place.registry.bytes[0] = 1;
    entry.job.bytes[0] = 2;
    entry.segment = segment;
    entry.root.bytes[0] = 4;
    entry.verdict = segment % 2 == 0 ? GAME_VERDICT_RIGHT : GAME_VERDICT_FALSE;
    entry.step = segment % 2;
    entry.pre_state.bytes[1] = (uint8_t)segment;
    entry.post_state.bytes[2] = (uint8_t)segment;
    return entry;
}

static struct verdict_db_seal seal_of(uint32_t seat)
{
    struct verdict_db_seal seal;

    memset(&seal, 0, sizeof(seal));
    (void)snprintf(seal.place.chain, sizeof(seal.place.chain), "eip155:1");
    seal.segment.bytes[0] = 8;
    seal.seed.bytes[0] = 9;
    seal.seat = seat;
    seal.verdict = GAME_VERDICT_RIGHT;
    memset(&seal.leaves, (int)seat, sizeof(seal.leaves));
    return seal;
}

static void copy_file(const char *to, const char *from)
{
    struct file_bytes bytes;
    struct error error;

    error_init(&error);
    assert_int_equal(file_read(&bytes, &error, from, FILE_MAX), STATUS_OK);
    assert_int_equal(file_write(to, &error, bytes.data, bytes.size, 0600), STATUS_OK);
    file_bytes_release(&bytes);
}

/* The sound file again, and nothing beside it but the secret. */
static void restore_file(const struct scene *scene)
{
    static const char *const ends[] = {"-wal",         "-shm",  ".damaged", ".damaged-wal",
                                       ".damaged-shm", ".part", ".saved",   ""};
    char path[500];

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        (void)snprintf(path, sizeof(path), "%s%s", scene->path, ends[i]);
        (void)unlink(path);
    }
    copy_file(scene->path, scene->before);
}

static void make_scene(struct scene *scene, const char *name)
{
    struct verdict_db *verdicts = NULL;
    struct error error;

    error_init(&error);
    (void)snprintf(scene->path, sizeof(scene->path), "%.300s/%s", test_temp_dir(), name);
    (void)snprintf(scene->before, sizeof(scene->before), "%.390s.before", scene->path);
    assert_int_equal(verdict_db_open(&verdicts, scene->path, &error), STATUS_OK);
    for (uint32_t i = 0; i < VERDICTS; i++) {
        const struct verdict_db_entry entry = entry_of(i);

        assert_int_equal(verdict_db_enter(verdicts, &entry, &error), STATUS_OK);
    }
    for (uint32_t i = 0; i < SEALS; i++) {
        const struct verdict_db_seal seal = seal_of(i);

        assert_int_equal(verdict_db_seal(verdicts, &seal, &error), STATUS_OK);
    }
    assert_int_equal(verdict_db_set_fault(verdicts, "a fault", &error), STATUS_OK);
    scene->derived = verdict_db_derive(verdicts, "x", "y", 1);
    verdict_db_close(verdicts);
    copy_file(scene->before, scene->path);
}

static bool same_entry(const struct verdict_db_entry *a, const struct verdict_db_entry *b)
{
    return strcmp(a->place.chain, b->place.chain) == 0 &&
           address_equal(&a->place.registry, &b->place.registry) &&
           hash32_equal(&a->job, &b->job) && a->segment == b->segment &&
           digest_equal(&a->before, &b->before) && digest_equal(&a->root, &b->root) &&
           a->diverged == b->diverged && a->verdict == b->verdict && a->step == b->step &&
           digest_equal(&a->pre_state, &b->pre_state) &&
           digest_equal(&a->post_state, &b->post_state);
}

/* How many rows are missing; one that is there is what was written. The secret is what it was. */
static uint32_t count_missing(const struct scene *scene, bool *saved)
{
    struct verdict_db *verdicts = NULL;
    char fault[VERDICT_DB_FAULT_MAX];
    struct hash32 derived;
    struct error error;
    uint32_t count = 0;

    error_init(&error);
    if (verdict_db_open(&verdicts, scene->path, &error) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
    for (uint32_t i = 0; i < VERDICTS; i++) {
        const struct verdict_db_entry entry = entry_of(i);
        struct verdict_db_entry found = entry;
        enum status status = verdict_db_find(&found, verdicts, &error);

        assert_true(status == STATUS_NOT_FOUND ||
                    (status == STATUS_OK && same_entry(&found, &entry)));
        count += status == STATUS_NOT_FOUND;
        assert_int_equal(verdict_db_enter(verdicts, &entry, &error), STATUS_OK);
    }
    for (uint32_t i = 0; i < SEALS; i++) {
        const struct verdict_db_seal seal = seal_of(i);
        struct verdict_db_seal found = seal;
        enum status status = verdict_db_find_seal(&found, verdicts, &error);

        assert_true(status == STATUS_NOT_FOUND ||
                    (status == STATUS_OK && memcmp(&found, &seal, sizeof(found)) == 0));
        count += status == STATUS_NOT_FOUND;
        assert_int_equal(verdict_db_seal(verdicts, &seal, &error), STATUS_OK);
    }
    assert_int_equal(verdict_db_fault(verdicts, fault, &error), STATUS_OK);
    assert_true(strcmp(fault, "a fault") == 0 || fault[0] == '\0');
    count += fault[0] == '\0';
    derived = verdict_db_derive(verdicts, "x", "y", 1);
    assert_memory_equal(derived.bytes, scene->derived.bytes, HASH32_SIZE);
    *saved = verdict_db_damage(verdicts)[0] != '\0';
    verdict_db_close(verdicts);
    return count;
}

/* ---- cells ------------------------------------------------------------------ */

static int count_of(sqlite3 *sql, const char *text)
{
    sqlite3_stmt *row;
    int count;

    assert_int_equal(sqlite3_prepare_v2(sql, text, -1, &row, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    count = sqlite3_column_int(row, 0);
    (void)sqlite3_finalize(row);
    return count;
}

/* Changes one cell as a bit flip would: a number, a letter, a byte. */
static void change_cell(const struct scene *scene, const char *table, int row, int column)
{
    char name[64];
    char text[600];
    sqlite3_stmt *found;
    sqlite3 *sql;

    assert_int_equal(sqlite3_open(scene->path, &sql), SQLITE_OK);
    (void)snprintf(text, sizeof(text), "SELECT name FROM pragma_table_info('%s') WHERE cid = %d",
                   table, column);
    assert_int_equal(sqlite3_prepare_v2(sql, text, -1, &found, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(found), SQLITE_ROW);
    (void)snprintf(name, sizeof(name), "%s", (const char *)sqlite3_column_text(found, 0));
    (void)sqlite3_finalize(found);
    (void)snprintf(text, sizeof(text),
                   "UPDATE %s SET %s = CASE typeof(%s) WHEN 'integer' THEN %s + 1000 WHEN 'text' "
                   "THEN %s || 'x' ELSE CAST(x'ff' || substr(%s, 2) AS BLOB) END WHERE"
                   " sum = (SELECT sum FROM %s LIMIT 1 OFFSET %d)",
                   table, name, name, name, name, name, table, row);
    assert_int_equal(sqlite3_exec(sql, text, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_changes(sql), 1);
    assert_int_equal(sqlite3_close(sql), SQLITE_OK);
}

static void test_every_cell_of_every_table_costs_its_row(void **state)
{
    static const char *const tables[] = {"meta", "verdicts", "seals"};
    struct scene scene;

    (void)state;
    make_scene(&scene, "cells");
    for (size_t table = 0; table < sizeof(tables) / sizeof(tables[0]); table++) {
        char text[200];
        sqlite3 *sql;
        int columns;
        int rows;

        assert_int_equal(sqlite3_open(scene.before, &sql), SQLITE_OK);
        (void)snprintf(text, sizeof(text), "SELECT count(*) FROM pragma_table_info('%s')",
                       tables[table]);
        columns = count_of(sql, text);
        (void)snprintf(text, sizeof(text), "SELECT min(%d, count(*)) FROM %s", table == 0 ? 3 : 1,
                       tables[table]);
        rows = count_of(sql, text);
        (void)sqlite3_close(sql);
        assert_true(columns > 2 && rows == (table == 0 ? 3 : 1));
        for (int cell = 0; cell < rows * columns; cell++) {
            bool saved = false;
            uint32_t lost;

            restore_file(&scene);
            change_cell(&scene, tables[table], cell / columns, cell % columns);
            lost = count_missing(&scene, &saved);
            assert_true(saved);
            assert_in_range(lost, table == 0 ? 0 : 1, 1);
            assert_int_equal(count_missing(&scene, &saved),
                             table == 0 ? lost : 0); /* entered again */
            assert_false(saved);
        }
    }
}

/* ---- pages and bits ----------------------------------------------------------- */

static void overwrite_file(const struct scene *scene, long at, const void *bytes, size_t size)
{
    FILE *file = fopen(scene->path, "r+b");

    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void test_a_torn_page_costs_its_rows(void **state)
{
    static const uint8_t nothing[PAGE];
    struct scene scene;
    struct file_bytes bytes;
    struct error error;
    size_t size;
    bool saved;

    (void)state;
    make_scene(&scene, "pages");
    error_init(&error);
    assert_int_equal(file_read(&bytes, &error, scene.before, FILE_MAX), STATUS_OK);
    size = bytes.size;
    file_bytes_release(&bytes);
    assert_true(size >= 5 * PAGE);
    for (size_t at = PAGE; at < size; at += PAGE) {
        restore_file(&scene);
        overwrite_file(&scene, (long)at, nothing, sizeof(nothing));
        (void)count_missing(&scene, &saved);
        assert_true(saved);
        restore_file(&scene);
        assert_int_equal(truncate(scene.path, (off_t)(size - PAGE / 2)), 0);
        (void)count_missing(&scene, &saved);
        assert_true(saved);
    }
    /* The last pages are of one table: rows of another are there. */
    restore_file(&scene);
    overwrite_file(&scene, (long)(size - PAGE), nothing, sizeof(nothing));
    assert_in_range(count_missing(&scene, &saved), 1, VERDICTS);
    restore_file(&scene);
    overwrite_file(&scene, 0, nothing,
                   100); /* no database any more: the secret is that of PATH.secret */
    assert_int_equal(count_missing(&scene, &saved), VERDICTS + SEALS + 1);
    assert_true(saved);
}

static void test_no_bit_changes_what_was_written(void **state)
{
    const int flips = test_soak_minutes() > 0 ? FLIPS_SOAK : FLIPS;
    struct file_bytes bytes;
    struct scene scene;
    struct error error;

    (void)state;
    make_scene(&scene, "bits");
    error_init(&error);
    assert_int_equal(file_read(&bytes, &error, scene.before, FILE_MAX), STATUS_OK);
    for (int i = 0; i < flips; i++) {
        const size_t bit = bytes.size * 8 / (size_t)flips * (size_t)i + (size_t)i % 8;
        const uint8_t byte = (uint8_t)(bytes.data[bit / 8] ^ 1U << bit % 8);
        bool saved;

        restore_file(&scene);
        overwrite_file(&scene, (long)(bit / 8), &byte, 1);
        (void)count_missing(&scene, &saved);
    }
    file_bytes_release(&bytes);
}

/* ---- the save itself ------------------------------------------------------------- */

static void test_an_interrupted_save_goes_on(void **state)
{
    struct scene scene;
    char saved_path[500];
    bool saved;

    (void)state;
    make_scene(&scene, "cut");
    (void)snprintf(saved_path, sizeof(saved_path), "%s.saved", scene.path);
    overwrite_file(&scene, 0, "rubbish rubbish rubbish", 20);
    copy_file(saved_path, scene.before);
    assert_int_equal(count_missing(&scene, &saved), 0);
    assert_false(file_exists(saved_path));
}

static void test_without_any_secret_nothing_is_made_up(void **state)
{
    struct verdict_db *verdicts = NULL;
    struct scene scene;
    struct error error;
    char path[500];

    (void)state;
    error_init(&error);
    make_scene(&scene, "secret");
    change_cell(&scene, "meta", 1, 1);
    (void)snprintf(path, sizeof(path), "%s.secret", scene.path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(verdict_db_open(&verdicts, scene.path, &error), STATUS_BAD_FORMAT);
    assert_null(verdicts);
    assert_non_null(strstr(error.text, "the secret"));
    assert_non_null(strstr(error.advice, "put a copy of before in its place"));
    assert_true(file_exists(scene.path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_cell_of_every_table_costs_its_row),
        cmocka_unit_test(test_a_torn_page_costs_its_rows),
        cmocka_unit_test(test_no_bit_changes_what_was_written),
        cmocka_unit_test(test_an_interrupted_save_goes_on),
        cmocka_unit_test(test_without_any_secret_nothing_is_made_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
