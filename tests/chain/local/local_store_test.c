/*
 * Goal: the file of an embedded ledger holds the game of this edition, or is refused.
 * Method: records of every kind are read as they were written, a missing one reads as zeros, a
 * damaged one is refused; a file with records of the first edition and one of a later edition are
 * refused by a sentence that says what to do.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "chain/local/ledger_local.h"
#include "chain/local/local_store.h"

static void must(struct database *sql, const char *text)
{
    struct error error;

    error_init(&error);
    assert_int_equal(database_execute(sql, text, &error), STATUS_OK);
}

static void open_store(struct local_store *store, struct database *sql, struct error *error)
{
    error_init(error);
    assert_int_equal(database_open(sql, ":memory:", "", error), STATUS_OK);
    assert_int_equal(local_store_open(store, sql, error), STATUS_OK);
}

static void test_records_are_read_as_written(void **state)
{
    const struct hash32 key = {{5}};
    const struct hash32 other = {{6}};
    struct local_job job = {.phase = GAME_PHASE_RUNNING, .generation = 3, .barred = true};
    struct local_job seen;
    struct local_store store;
    struct database sql;
    struct error error;
    uint64_t height = 7;

    (void)state;
    open_store(&store, &sql, &error);
    job.terms.reward = WEI_MAX;
    job.terms.deadline_s = 9;
    job.missing_escrow = 11;
    assert_int_equal(local_put(&store, &job, LOCAL_JOB, &key, 0), STATUS_OK);
    assert_int_equal(local_get(&store, &seen, LOCAL_JOB, &key, 0), STATUS_OK);
    assert_memory_equal(&seen, &job, sizeof(job));
    assert_int_equal(local_get(&store, &seen, LOCAL_JOB, &other, 0), STATUS_OK);
    assert_int_equal(seen.phase, GAME_PHASE_NONE);
    assert_int_equal(local_get(&store, &seen, LOCAL_JOB, &key, 1), STATUS_OK);
    assert_int_equal(seen.phase, GAME_PHASE_NONE);
    assert_int_equal(local_put(&store, &height, LOCAL_SEAL, &key, 0), STATUS_OK);
    height = 0;
    assert_int_equal(local_get(&store, &height, LOCAL_SEAL, &key, 0), STATUS_OK);
    assert_int_equal(height, 7);
    database_close(&sql);
}

static void test_damaged_records_are_refused(void **state)
{
    static const char *const damages[] = {
        "UPDATE records SET value = substr(value, 1, length(value) - 1)",
        "UPDATE records SET value = value || x'00'",
        "UPDATE records SET value = x''",
        "UPDATE records SET value = x'ff' || substr(value, 2)",
    };
    const struct hash32 key = {{5}};

    (void)state;
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        struct local_entry entry = {.owner = {{1}}, .gone = true};
        struct local_store store;
        struct database sql;
        struct error error;

        open_store(&store, &sql, &error);
        assert_int_equal(local_put(&store, &entry, LOCAL_ENTRY, &key, 4), STATUS_OK);
        must(&sql, damages[i]);
        assert_int_equal(local_get(&store, &entry, LOCAL_ENTRY, &key, 4), STATUS_BAD_FORMAT);
        assert_non_null(strstr(error.text, "damaged"));
        database_close(&sql);
    }
}

static void test_files_of_other_editions_are_refused(void **state)
{
    static const char *const files[] = {
        /* The first edition had no number. */
        "CREATE TABLE records (kind INTEGER NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL,"
        " PRIMARY KEY (kind, key)) WITHOUT ROWID; INSERT INTO records VALUES (1, x'01', x'02')",
        "PRAGMA user_version = 6",
        "PRAGMA user_version = 8",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        struct ledger_options options;
        struct ledger *ledger;
        struct database sql;
        struct error error;
        char path[512];
        char url[600];

        error_init(&error);
        (void)snprintf(path, sizeof(path), "%s/edition%zu.ledger", test_temp_dir(), i);
        (void)snprintf(url, sizeof(url), "local:%s", path);
        assert_int_equal(database_open(&sql, path, "", &error), STATUS_OK);
        must(&sql, files[i]);
        database_close(&sql);
        ledger_options_init(&options);
        options.url = url;
        assert_int_equal(ledger_open(&ledger, &options, &error), STATUS_REFUSED);
        assert_non_null(strstr(error.text, "another edition"));
    }
}

static void test_a_new_file_is_opened_again(void **state)
{
    struct ledger_options options;
    struct ledger *ledger;
    struct error error;
    char path[512];
    char url[600];

    (void)state;
    error_init(&error);
    (void)snprintf(path, sizeof(path), "%s/new.ledger", test_temp_dir());
    (void)snprintf(url, sizeof(url), "local:%s", path);
    assert_int_equal(ledger_local_init(path, &error), STATUS_OK);
    assert_int_equal(ledger_local_init(path, &error), STATUS_REFUSED);
    ledger_options_init(&options);
    options.url = url;
    for (int i = 0; i < 2; i++) {
        struct ledger_job job;
        struct ledger_claim claim;

        error_init(&error);
        assert_int_equal(ledger_open(&ledger, &options, &error), STATUS_OK);
        assert_int_equal(ledger_get_job(ledger, &job, &(struct hash32){{1}}, &error),
                         STATUS_NOT_FOUND);
        assert_int_equal(ledger_get_claim(ledger, &claim, &(struct hash32){{1}}, &error),
                         STATUS_NOT_FOUND);
        ledger_close(ledger);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records_are_read_as_written),
        cmocka_unit_test(test_damaged_records_are_refused),
        cmocka_unit_test(test_files_of_other_editions_are_refused),
        cmocka_unit_test(test_a_new_file_is_opened_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
