/*
 * Goal: only a journal of ours opens, and every value read from it has its type and size.
 *
 * Method: foreign databases: of other programs, empty, cut, with triggers, views, virtual tables,
 * changed tables, more and fewer of them; values of every wrong type and size; every byte of a
 * journal changed in turn, which is refused or read as values of the right kind.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proofs/bundle/journal.h"
#include "tests/support/test.h"

static const char *path_of(const char *name)
{
    static char path[512];

    (void)snprintf(path, sizeof(path), "%s/%s", test_temp_dir(), name);
    return path;
}

/* A journal, changed by the statements of a stranger. */
static void make(const char *name, const char *sql)
{
    struct journal journal;
    sqlite3 *database;

    (void)unlink(path_of(name));
    assert_int_equal(journal_open(&journal, path_of(name), JOURNAL_CREATE, NULL), STATUS_OK);
    journal_close(&journal);
    assert_int_equal(sqlite3_open(path_of(name), &database), SQLITE_OK);
    if (sqlite3_exec(database, sql, NULL, NULL, NULL) != SQLITE_OK) {
        fail_msg("%s: %s", sql, sqlite3_errmsg(database));
    }
    sqlite3_close(database);
}

static enum status opens(const char *name, enum journal_mode mode)
{
    struct journal journal;
    struct error error;
    enum status status;

    error_init(&error);
    status = journal_open(&journal, path_of(name), mode, &error);
    if (status == STATUS_OK) {
        journal_close(&journal);
    } else {
        assert_int_equal(error.status, status);
        assert_non_null(strstr(error.text, name));
    }
    return status;
}

static void test_journal_is_found_again(void **state)
{
    (void)state;
    make("good", "");
    assert_int_equal(opens("good", JOURNAL_READ), STATUS_OK);
    assert_int_equal(opens("good", JOURNAL_WRITE), STATUS_OK);
    assert_int_equal(opens("none", JOURNAL_READ), STATUS_IO);
}

static void test_databases_of_others_are_refused(void **state)
{
    static const char *const changes[] = {
        "PRAGMA application_id=1",
        "CREATE TRIGGER t AFTER INSERT ON steps BEGIN DELETE FROM steps; END",
        "CREATE TRIGGER t AFTER INSERT ON checkpoints BEGIN DELETE FROM checkpoints; END",
        "CREATE VIEW v AS SELECT * FROM steps",
        "CREATE TABLE other (a)",
        "CREATE INDEX i ON steps (loss)",
        "CREATE VIRTUAL TABLE f USING fts5(a)",
        "DROP TABLE steps",
        "DROP TABLE facts",
        "DROP TABLE steps; CREATE VIEW steps AS SELECT 1 AS step, 2 AS root",
        ("DROP TABLE steps; CREATE TABLE steps (step INTEGER PRIMARY KEY, root BLOB, loss INTEGER,"
         " held_out INTEGER, accuracy INTEGER, nanoseconds INTEGER, committing INTEGER,"
         " microjoules INTEGER, device INTEGER, encrypted BLOB)"),
        ("DROP TABLE checkpoints; CREATE TABLE checkpoints (step INTEGER PRIMARY KEY,"
         " root BLOB AS (zeroblob(32)))"),
        "ALTER TABLE steps ADD COLUMN more INTEGER DEFAULT 5",
        "ALTER TABLE steps RENAME TO stepz",
        "ANALYZE",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        make("foreign", changes[i]);
        if (opens("foreign", JOURNAL_READ) != STATUS_BAD_FORMAT ||
            opens("foreign", JOURNAL_WRITE) != STATUS_BAD_FORMAT) {
            fail_msg("accepted: %s", changes[i]);
        }
    }
    make("foreign", "PRAGMA user_version=2");
    assert_int_equal(opens("foreign", JOURNAL_READ), STATUS_REFUSED);
}

static void test_files_that_are_no_database_are_refused(void **state)
{
    static const char text[] = "this is not a database, but it is long enough to be looked at as "
                               "one: a header of a hundred bytes is read before anything else.";
    FILE *file;

    (void)state;
    file = fopen(path_of("text"), "wb");
    assert_int_equal(fwrite(text, 1, sizeof(text), file), sizeof(text));
    (void)fclose(file);
    assert_int_equal(opens("text", JOURNAL_READ), STATUS_BAD_FORMAT);
    assert_int_equal(opens("text", JOURNAL_WRITE), STATUS_BAD_FORMAT);
    file = fopen(path_of("empty"), "wb");
    (void)fclose(file);
    assert_int_equal(opens("empty", JOURNAL_READ), STATUS_BAD_FORMAT);
    assert_int_equal(mkdir(path_of("folder"), 0755), 0);
    assert_int_not_equal(opens("folder", JOURNAL_READ), STATUS_OK);
}

static void test_links_are_refused(void **state)
{
    char target[512];

    (void)state;
    make("good", "");
    (void)snprintf(target, sizeof(target), "%s", path_of("good"));
    assert_int_equal(symlink(target, path_of("link")), 0);
    assert_int_equal(opens("link", JOURNAL_READ), STATUS_IO);
    assert_int_equal(opens("link", JOURNAL_WRITE), STATUS_IO);
}

/* ---- values ------------------------------------------------------------- */

static enum status read_column(struct journal *journal, const char *sql, char kind)
{
    sqlite3_stmt *statement = NULL;
    struct digest digest;
    uint64_t number;
    char text[16];
    uint8_t bytes[16];
    size_t size;
    enum status status = database_first(&statement, &journal->database, NULL, sql, "");

    assert_int_equal(status, STATUS_OK);
    switch (kind) {
    case 'n':
        status = journal_number(&number, journal, statement, 0, 1000, NULL);
        break;
    case 'd':
        status = journal_digest(&digest, journal, statement, 0, NULL);
        break;
    case 't':
        status = journal_text(text, sizeof(text), journal, statement, 0, NULL);
        break;
    default:
        status = journal_bytes(bytes, &size, journal, statement, 0, 2, sizeof(bytes), NULL);
        break;
    }
    database_done(&journal->database, statement);
    return status;
}

static void test_values_of_another_kind_are_refused(void **state)
{
    static const struct {
        const char *sql;
        const char *accepted; /* as which kinds */
    } values[] = {
        {"SELECT 7", "n"},
        {"SELECT 0", "n"},
        {"SELECT 1000", "n"},
        {"SELECT 1001", ""},
        {"SELECT -1", ""},
        {"SELECT 9223372036854775807", ""},
        {"SELECT 7.0", ""},
        {"SELECT NULL", ""},
        {"SELECT '7'", "t"},
        {"SELECT ''", "t"},
        {"SELECT 'plain'", "t"},
        {"SELECT 'too long to fit'", "t"},
        {"SELECT 'too long to fit.'", ""},
        {"SELECT 'a' || char(10)", ""},
        {"SELECT 'a' || char(0) || 'b'", ""},
        {"SELECT zeroblob(32)", "d"},
        {"SELECT zeroblob(31)", ""},
        {"SELECT zeroblob(33)", ""},
        {"SELECT x''", ""},
        {"SELECT x'00'", ""},
        {"SELECT x'0000'", "b"},
        {"SELECT zeroblob(16)", "b"},
        {"SELECT zeroblob(17)", ""},
    };
    static const char kinds[] = "ndtb";
    struct journal journal;

    (void)state;
    make("values", "");
    assert_int_equal(journal_open(&journal, path_of("values"), JOURNAL_READ, NULL), STATUS_OK);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        for (size_t kind = 0; kind < 4; kind++) {
            bool wanted = strchr(values[i].accepted, kinds[kind]) != NULL;

            if ((read_column(&journal, values[i].sql, kinds[kind]) == STATUS_OK) != wanted) {
                fail_msg("%s as '%c'", values[i].sql, kinds[kind]);
            }
        }
    }
    journal_close(&journal);
}

static void test_huge_values_are_not_read_into_memory(void **state)
{
    struct journal journal;
    sqlite3_stmt *row = NULL;
    struct digest digest;

    (void)state;
    make("huge", "INSERT INTO checkpoints VALUES (1, zeroblob(100000000))");
    assert_int_equal(journal_open(&journal, path_of("huge"), JOURNAL_READ, NULL), STATUS_OK);
    if (database_first(&row, &journal.database, NULL, "SELECT root FROM checkpoints", "") ==
        STATUS_OK) {
        assert_int_equal(journal_digest(&digest, &journal, row, 0, NULL), STATUS_BAD_FORMAT);
    }
    assert_non_null(row);
    database_done(&journal.database, row);
    assert_true(sqlite3_memory_used() < 16 << 20);
    journal_close(&journal);
}

static void test_values_that_were_written_are_read_back(void **state)
{
    static const uint8_t bytes[3] = {1, 0, 3};
    const struct database_blob blob = {bytes, sizeof(bytes)};
    struct digest root = {{9, 8, 7}};
    struct journal journal;
    sqlite3_stmt *row = NULL;
    struct digest digest;
    uint64_t number = 0;
    uint8_t read[8];
    size_t size;

    (void)state;
    make("bound", "");
    assert_int_equal(journal_open(&journal, path_of("bound"), JOURNAL_WRITE, NULL), STATUS_OK);
    assert_int_equal(database_run(&journal.database, NULL, "INSERT INTO segments VALUES (?, ?, ?)",
                                  "idb", UINT64_C(5), &root, &blob),
                     STATUS_OK);
    assert_int_equal(database_run(&journal.database, NULL,
                                  "INSERT INTO facts VALUES (?, ?, NULL, NULL)", "tn", "empty"),
                     STATUS_OK);
    assert_int_equal(database_first(&row, &journal.database, NULL,
                                    "SELECT segment, root, signature, (SELECT value FROM facts) "
                                    "FROM segments",
                                    ""),
                     STATUS_OK);
    assert_int_equal(journal_number(&number, &journal, row, 0, 10, NULL), STATUS_OK);
    assert_int_equal(journal_digest(&digest, &journal, row, 1, NULL), STATUS_OK);
    assert_int_equal(journal_bytes(read, &size, &journal, row, 2, 0, 8, NULL), STATUS_OK);
    assert_true(number == 5 && digest_equal(&digest, &root) && size == 3);
    assert_memory_equal(read, bytes, 3);
    assert_true(journal_is_null(row, 3) && !journal_is_null(row, 0));
    database_done(&journal.database, row);
    journal_close(&journal);
}

/* ---- damage ------------------------------------------------------------- */

static void read_all(struct journal *journal)
{
    sqlite3_stmt *row = NULL;
    uint64_t number;
    struct digest digest;
    int rows = 0;

    if (database_prepare(&row, &journal->database, NULL, "SELECT step, root, loss FROM steps",
                         "") != STATUS_OK) {
        return;
    }
    while (rows++ < 1000 && database_step(&journal->database, row, NULL) == STATUS_OK) {
        if (journal_number(&number, journal, row, 0, UINT32_MAX, NULL) == STATUS_OK) {
            assert_true(number <= UINT32_MAX);
        }
        rows += journal_digest(&digest, journal, row, 1, NULL) != STATUS_OK;
    }
    database_done(&journal->database, row);
}

static void test_every_changed_byte_is_survived(void **state)
{
    uint64_t tried = 0;
    uint64_t opened = 0;
    static uint8_t bytes[1 << 17];
    size_t size;
    FILE *file;

    (void)state;
    make("damaged",
         "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99) "
         "INSERT INTO steps SELECT i, randomblob(32), 7, 8, NULL, 9, 10, NULL, 0, NULL FROM n");
    file = fopen(path_of("damaged"), "rb");
    size = fread(bytes, 1, sizeof(bytes), file);
    (void)fclose(file);
    for (size_t at = 0; at < size; at += 1 + size / test_share(size, 4000)) {
        struct journal journal;
        uint8_t changed = bytes[at] ^ (uint8_t)(1 + at % 255);

        file = fopen(path_of("damaged"), "r+b");
        (void)fseek(file, (long)at, SEEK_SET);
        (void)fwrite(&changed, 1, 1, file);
        (void)fclose(file);
        tried++;
        if (journal_open(&journal, path_of("damaged"), JOURNAL_READ, NULL) == STATUS_OK) {
            opened++;
            read_all(&journal);
            journal_close(&journal);
        }
        file = fopen(path_of("damaged"), "r+b");
        (void)fseek(file, (long)at, SEEK_SET);
        (void)fwrite(&bytes[at], 1, 1, file);
        (void)fclose(file);
    }
    assert_true(opened < tried);
    assert_int_equal(opens("damaged", JOURNAL_READ), STATUS_OK);
}

/* A read-only medium has no place for the index of the log. */
static void test_journal_in_a_folder_without_the_right_to_write_is_read(void **state)
{
    pid_t child;
    int result = -1;
    char folder[512];

    (void)state;
    if (getuid() != 0) {
        test_skip("only root can become somebody without rights");
    }
    (void)snprintf(folder, sizeof(folder), "%s", path_of("read-only"));
    assert_int_equal(mkdir(folder, 0755), 0);
    assert_int_equal(chmod(test_temp_dir(), 0755), 0);
    make("read-only/journal file", "INSERT INTO checkpoints VALUES (3, zeroblob(32))");
    assert_int_equal(chmod(path_of("read-only/journal file"), 0644), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct journal journal;

        if (setgid(65534) != 0 || setuid(65534) != 0) {
            _exit(2);
        }
        _exit(journal_open(&journal, path_of("read-only/journal file"), JOURNAL_READ, NULL) !=
              STATUS_OK);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_journal_is_found_again),
        cmocka_unit_test(test_databases_of_others_are_refused),
        cmocka_unit_test(test_files_that_are_no_database_are_refused),
        cmocka_unit_test(test_links_are_refused),
        cmocka_unit_test(test_values_of_another_kind_are_refused),
        cmocka_unit_test(test_huge_values_are_not_read_into_memory),
        cmocka_unit_test(test_values_that_were_written_are_read_back),
        cmocka_unit_test(test_every_changed_byte_is_survived),
        cmocka_unit_test(test_journal_in_a_folder_without_the_right_to_write_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
