/*
 * Goal: a bundle gives back what was put into it, and accepts nothing false.
 *
 * Method: round trips, plain and encrypted; folders with links, strangers' files and leftovers of a
 * crash; a second process; rows removed and changed with sqlite3; checkpoints with bits flipped,
 * cut, exchanged and missing, down to the first state; every way to keep checkpoints.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proofs/bundle/bundle_parts.h"
#include "proofs/commit/state_root.h"
#include "tests/support/numeric/small_job.h"
#include "tests/support/test.h"

static const struct encryption_key the_key = {{3, 1, 4, 1, 5}};
static const struct encryption_key other_key = {{2, 7, 1, 8, 2}};

static struct job *small_job(void)
{
    struct small_job_options options;

    small_job_defaults(&options);
    return small_job_new(&options);
}

static struct bundle *reopen(const char *path, enum bundle_mode mode)
{
    struct bundle *bundle = NULL;

    assert_int_equal(bundle_open(&bundle, path, mode, NULL), STATUS_OK);
    return bundle;
}

static enum status try_open(const char *path, enum bundle_mode mode)
{
    struct bundle *bundle = NULL;
    struct error error;
    enum status status;

    error_init(&error);
    status = bundle_open(&bundle, path, mode, &error);
    bundle_close(bundle);
    assert_int_equal(error.status, status);
    return status;
}

/* A stranger with sqlite3. */
static void change(const char *path, const char *sql)
{
    char file[600];
    sqlite3 *database;

    (void)snprintf(file, sizeof(file), "%s/journal.db", path);
    assert_int_equal(sqlite3_open(file, &database), SQLITE_OK);
    if (sqlite3_exec(database, sql, NULL, NULL, NULL) != SQLITE_OK) {
        fail_msg("%s: %s", sql, sqlite3_errmsg(database));
    }
    sqlite3_close(database);
}

static void part(char out[700], const char *path, const char *name)
{
    (void)snprintf(out, 700, "%s/%s", path, name);
}

/* ---- what is put in is read back ------------------------------------------ */

static void check_steps(struct bundle *bundle, uint64_t count)
{
    uint64_t found = 0;

    assert_int_equal(bundle_step_count(&found, bundle, NULL), STATUS_OK);
    assert_int_equal(found, count);
    for (uint64_t i = 0; i < count; i++) {
        struct bundle_step step;
        char device[BUNDLE_DEVICE_MAX];

        assert_int_equal(bundle_step_read(&step, bundle, i, NULL), STATUS_OK);
        assert_int_equal(step.step, i);
        assert_int_equal(step.hidden, bundle_is_locked(bundle));
        if (!step.hidden) {
            assert_int_equal(step.nanoseconds, 1000 + i);
            assert_int_equal(step.nanoseconds_committing, 100 + i);
            assert_int_equal(step.microjoules, i % 2 == 0 ? BUNDLE_ENERGY_UNKNOWN : i);
            assert_int_equal(bundle_device(device, bundle, step.device, NULL), STATUS_OK);
            assert_string_equal(device, "a small test");
        }
    }
    assert_int_equal(bundle_step_read(&(struct bundle_step){0}, bundle, count, NULL),
                     STATUS_NOT_FOUND);
}

static void check_round_trip(const char *path, const struct encryption_key *key)
{
    struct bundle *bundle = small_bundle_new(path, small_job(), key, 12);
    uint8_t signature[BUNDLE_SIGNATURE_MAX];
    struct digest signed_root;
    struct digest root;
    char note[FILE_PATH_MAX];
    size_t size = 0;
    uint64_t diverged;

    assert_int_equal(bundle_set_note(bundle, "data.0", "/the/data", NULL), STATUS_OK);
    assert_int_equal(bundle_set_note(bundle, "data.0", "/the/other data", NULL), STATUS_OK);
    assert_int_equal(bundle_set_device(bundle, "another device", NULL), STATUS_OK);
    assert_int_equal(bundle_set_device(bundle, "a small test", NULL), STATUS_OK);
    assert_int_equal(bundle_segment_sign(bundle, 1, (const uint8_t *)"signed", 6, NULL), STATUS_OK);
    bundle_close(bundle);

    bundle = reopen(path, BUNDLE_READ);
    assert_int_equal(bundle_is_encrypted(bundle), key != NULL);
    if (key != NULL) {
        check_steps(bundle, 12);
        assert_int_equal(bundle_note(note, bundle, "data.0", NULL), STATUS_NOT_FOUND);
        assert_int_equal(bundle_unlock(bundle, &other_key, NULL), STATUS_REFUSED);
        assert_true(bundle_is_locked(bundle));
        assert_int_equal(bundle_unlock(bundle, key, NULL), STATUS_OK);
    }
    check_steps(bundle, 12);
    assert_int_equal(bundle_note(note, bundle, "data.0", NULL), STATUS_OK);
    assert_string_equal(note, "/the/other data");
    assert_int_equal(bundle_note(note, bundle, "data.1", NULL), STATUS_NOT_FOUND);
    assert_int_equal(bundle_segment_signature(&signed_root, signature, &size, bundle, 1, NULL),
                     STATUS_OK);
    assert_int_equal(size, 6);
    assert_memory_equal(signature, "signed", 6);
    assert_int_equal(bundle_segment_root(&root, bundle, 1, NULL), STATUS_OK);
    assert_true(digest_equal(&root, &signed_root));
    assert_int_equal(bundle_segment_signature(&root, signature, &size, bundle, 0, NULL),
                     STATUS_NOT_FOUND);
    assert_int_equal(bundle_segment_root(&root, bundle, 2, NULL), STATUS_NOT_FOUND);
    assert_int_equal(bundle_segment_root(&root, bundle, 4, NULL), STATUS_USAGE);
    assert_int_equal(bundle_diverged(&diverged, bundle, NULL), STATUS_OK);
    assert_true(diverged == UINT64_MAX);
    bundle_close(bundle);
}

static void test_bundle_is_read_back(void **state)
{
    (void)state;
    check_round_trip(small_path("plain"), NULL);
    check_round_trip(small_path("encrypted"), &the_key);
}

static void test_segment_root_is_the_list_of_its_states(void **state)
{
    struct bundle *bundle = small_bundle_new(small_path("segments"), small_job(), NULL, 20);

    (void)state;
    for (uint64_t segment = 0; segment < 4; segment++) {
        struct digest items[SMALL_JOB_SEGMENT];
        struct digest expected;
        struct digest root;

        for (uint64_t i = 0; i < SMALL_JOB_SEGMENT; i++) {
            assert_int_equal(
                bundle_state_root(&items[i], bundle, segment * SMALL_JOB_SEGMENT + i + 1, NULL),
                STATUS_OK);
        }
        commit_list_root(&expected, COMMIT_SEGMENT, segment * SMALL_JOB_SEGMENT, items,
                         SMALL_JOB_SEGMENT);
        assert_int_equal(bundle_segment_root(&root, bundle, segment, NULL), STATUS_OK);
        assert_true(digest_equal(&root, &expected));
    }
    bundle_close(bundle);
}

static void test_segment_ends_with_the_step_that_diverged(void **state)
{
    const char *path = small_path("diverged");
    struct bundle *bundle = small_bundle_new(path, small_job(), NULL, 7);
    struct digest items[2];
    struct digest expected;
    struct digest root;
    uint64_t diverged;

    (void)state;
    assert_int_equal(bundle_segment_root(&root, bundle, 1, NULL), STATUS_NOT_FOUND);
    assert_int_equal(bundle_set_diverged(bundle, 6, NULL), STATUS_OK);
    assert_int_equal(bundle_diverged(&diverged, bundle, NULL), STATUS_OK);
    assert_int_equal(diverged, 6);
    for (uint64_t i = 0; i < 2; i++) {
        assert_int_equal(bundle_state_root(&items[i], bundle, 6 + i, NULL), STATUS_OK);
    }
    commit_list_root(&expected, COMMIT_SEGMENT, 5, items, 2);
    assert_int_equal(bundle_segment_root(&root, bundle, 1, NULL), STATUS_OK);
    assert_true(digest_equal(&root, &expected));
    assert_int_equal(bundle_segment_root(&root, bundle, 2, NULL), STATUS_NOT_FOUND);
    assert_int_equal(bundle_segment_root(&root, bundle, 0, NULL), STATUS_OK);
    bundle_close(bundle);
    change(path, "UPDATE facts SET value = 7 WHERE name = 'diverged'");
    bundle = reopen(path, BUNDLE_READ);
    assert_int_equal(bundle_diverged(&diverged, bundle, NULL), STATUS_BAD_FORMAT);
    bundle_close(bundle);
}

static void test_step_that_gives_something_else_is_refused(void **state)
{
    struct bundle *bundle = small_bundle_new(small_path("twice"), small_job(), NULL, 6);
    struct bundle_step step;

    (void)state;
    assert_int_equal(bundle_step_read(&step, bundle, 3, NULL), STATUS_OK);
    assert_int_equal(bundle_record(bundle, &step, NULL), STATUS_OK);
    step.nanoseconds++; /* another time: it is only a time */
    assert_int_equal(bundle_record(bundle, &step, NULL), STATUS_OK);
    step.loss_bits ^= 1;
    assert_int_equal(bundle_record(bundle, &step, NULL), STATUS_REFUSED);
    step.loss_bits ^= 1;
    step.root.bytes[31] ^= 1;
    assert_int_equal(bundle_record(bundle, &step, NULL), STATUS_REFUSED);
    bundle_close(bundle);
}

/* Of a classifier, of another model, and of a step without a look at held-out data. */
static void test_held_out_figures_come_back(void **state)
{
    static const struct encryption_key key = {{7}};
    static const uint32_t figures[3][2] = {
        {0x3f000000, 0x3f666666}, {0x40400000, FLOAT_NAN_BITS}, {0, 0}};

    (void)state;
    for (int encrypted = 0; encrypted < 2; encrypted++) {
        const char *path = small_path(encrypted ? "judged-locked" : "judged");
        struct bundle *bundle = small_bundle_new(path, small_job(), encrypted ? &key : NULL, 0);

        for (uint64_t i = 0; i < 3; i++) {
            struct bundle_step step = {.step = i,
                                       .evaluated = i < 2,
                                       .held_out_bits = figures[i][0],
                                       .accuracy_bits = figures[i][1]};

            assert_int_equal(bundle_record(bundle, &step, NULL), STATUS_OK);
        }
        for (uint64_t i = 0; i < 3; i++) {
            struct bundle_step step;

            assert_int_equal(bundle_step_read(&step, bundle, i, NULL), STATUS_OK);
            assert_int_equal(step.evaluated, i < 2);
            assert_int_equal(step.held_out_bits, i < 2 ? figures[i][0] : FLOAT_NAN_BITS);
            assert_int_equal(step.accuracy_bits, i < 2 ? figures[i][1] : FLOAT_NAN_BITS);
        }
        bundle_close(bundle);
    }
}

static void test_pending_steps_are_written_when_there_are_many(void **state)
{
    struct small_job_options options;
    const char *path = small_path("pending");
    struct bundle *bundle = NULL;
    uint64_t count = 0;

    (void)state;
    small_job_defaults(&options);
    options.steps = 1000;
    assert_int_equal(bundle_create(&bundle, path, small_job_new(&options), NULL), STATUS_OK);
    for (uint64_t i = 0; i < 2 * BUNDLE_PENDING_MAX + 1; i++) {
        struct bundle_step step = {.step = i};

        assert_int_equal(bundle_record(bundle, &step, NULL), STATUS_OK);
    }

    struct bundle *reader = reopen(path, BUNDLE_READ);

    assert_int_equal(bundle_step_count(&count, reader, NULL), STATUS_OK);
    assert_int_equal(count, 2 * BUNDLE_PENDING_MAX);
    assert_int_equal(bundle_flush(bundle, NULL), STATUS_OK);
    assert_int_equal(bundle_step_count(&count, reader, NULL), STATUS_OK);
    assert_int_equal(count, 2 * BUNDLE_PENDING_MAX + 1);
    bundle_close(reader);
    bundle_close(bundle);
}

/* ---- folders ------------------------------------------------------------ */

static void test_second_process_is_refused(void **state)
{
    const char *path = small_path("locked");
    struct bundle *bundle = small_bundle_new(path, small_job(), NULL, 5);
    struct bundle *reader;
    int result = -1;
    pid_t child;

    (void)state;
    child = fork();
    if (child == 0) {
        struct bundle *second = NULL;

        _exit(bundle_open(&second, path, BUNDLE_WRITE, NULL) == STATUS_REFUSED ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    reader = reopen(path, BUNDLE_READ); /* a reader is not kept out */
    bundle_close(reader);
    bundle_close(bundle);
    assert_int_equal(try_open(path, BUNDLE_WRITE), STATUS_OK);
}

static void test_folders_of_others_are_not_filled(void **state)
{
    const char *path = small_path("home");
    char file[700];
    struct bundle *bundle = NULL;
    struct error error;

    (void)state;
    error_init(&error);
    assert_int_equal(mkdir(path, 0755), 0);
    part(file, path, "letters.txt");
    assert_int_equal(file_write(file, NULL, "dear", 4, 0644), STATUS_OK);
    assert_int_equal(bundle_create(&bundle, path, small_job(), &error), STATUS_REFUSED);
    assert_non_null(strstr(error.text, "letters.txt"));
    part(file, path, "checkpoints");
    assert_false(file_exists(file));
    assert_int_equal(try_open(path, BUNDLE_WRITE), STATUS_NOT_FOUND);
    assert_int_equal(try_open(small_path("nothing"), BUNDLE_READ), STATUS_NOT_FOUND);
    part(file, path, "letters.txt");
    assert_int_not_equal(bundle_create(&bundle, file, small_job(), &error), STATUS_OK);
}

static void test_bundle_is_never_made_twice(void **state)
{
    const char *path = small_path("once");
    struct bundle *bundle = small_bundle_new(path, small_job(), NULL, 5);
    struct bundle *second = NULL;
    uint64_t count = 0;

    (void)state;
    assert_int_equal(bundle_create(&second, path, small_job(), NULL), STATUS_REFUSED);
    bundle_close(bundle);
    assert_int_equal(bundle_create(&second, path, small_job(), NULL), STATUS_REFUSED);
    bundle = reopen(path, BUNDLE_READ);
    assert_int_equal(bundle_step_count(&count, bundle, NULL), STATUS_OK);
    assert_int_equal(count, 5);
    bundle_close(bundle);
}

static void test_what_a_crash_left_is_cleared_away(void **state)
{
    const char *path = small_path("crashed");
    char job[700];
    char half[700];
    struct bundle *bundle = small_bundle_new(path, small_job(), NULL, 5);
    uint64_t count = 9;

    (void)state;
    bundle_close(bundle);
    part(half, path, "checkpoints/000000000005.safetensors.part-Xy12zA");
    assert_int_equal(file_write(half, NULL, "half", 4, 0644), STATUS_OK);
    assert_int_equal(try_open(path, BUNDLE_READ), STATUS_OK);
    assert_true(file_exists(half));
    assert_int_equal(try_open(path, BUNDLE_WRITE), STATUS_OK);
    assert_false(file_exists(half));
    /* Without the job file the folder is no bundle. */
    part(job, path, "job");
    part(half, path, "job.part-a1B2c3");
    assert_int_equal(rename(job, half), 0);
    assert_int_equal(try_open(path, BUNDLE_WRITE), STATUS_NOT_FOUND);
    assert_int_equal(bundle_create(&bundle, path, small_job(), NULL), STATUS_OK);
    assert_false(file_exists(half));
    assert_int_equal(bundle_step_count(&count, bundle, NULL), STATUS_OK);
    assert_int_equal(count, 0);
    bundle_close(bundle);
}

static void test_links_in_a_bundle_are_refused(void **state)
{
    static const char *const names[] = {
        "job", "journal.db", "lock", "journal.db-wal", "journal.db-shm", "key.lock", "checkpoints"};
    const char *path = small_path("links");
    char target[700];
    struct file_bytes bytes;

    (void)state;
    bundle_close(small_bundle_new(path, small_job(), NULL, 5));
    (void)snprintf(target, sizeof(target), "%s", small_path("precious"));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char name[700];
        char kept[720];
        bool was_there;

        assert_int_equal(file_write(target, NULL, "precious", 8, 0644), STATUS_OK);
        part(name, path, names[i]);
        (void)snprintf(kept, sizeof(kept), "%s.kept", name);
        was_there = rename(name, kept) == 0;
        assert_int_equal(symlink(target, name), 0);
        assert_int_equal(try_open(path, BUNDLE_WRITE), STATUS_BAD_FORMAT);
        assert_int_equal(try_open(path, BUNDLE_READ), STATUS_BAD_FORMAT);
        assert_int_equal(file_read(&bytes, NULL, target, 100), STATUS_OK);
        assert_memory_equal(bytes.data, "precious", 8);
        file_bytes_release(&bytes);
        assert_int_equal(unlink(name), 0);
        assert_true(!was_there || rename(kept, name) == 0);
    }
    assert_int_equal(try_open(path, BUNDLE_WRITE), STATUS_OK);
    /* The bundle itself may lie behind a link, which its owner made. */
    assert_int_equal(symlink(path, small_path("alias")), 0);
    assert_int_equal(try_open(small_path("alias"), BUNDLE_WRITE), STATUS_OK);
}

static void test_parts_of_another_kind_are_refused(void **state)
{
    const char *path = small_path("kinds");
    char name[700];

    (void)state;
    bundle_close(small_bundle_new(path, small_job(), NULL, 5));
    part(name, path, "journal.db");
    assert_int_equal(unlink(name), 0);
    assert_int_not_equal(try_open(path, BUNDLE_READ), STATUS_OK);
    assert_int_equal(mkfifo(name, 0644), 0);
    assert_int_equal(try_open(path, BUNDLE_READ), STATUS_BAD_FORMAT);
    assert_int_equal(unlink(name), 0);
    assert_int_equal(mkdir(name, 0755), 0);
    assert_int_equal(try_open(path, BUNDLE_READ), STATUS_BAD_FORMAT);
    part(name, path, "job");
    assert_int_equal(file_write(name, NULL, "LSJOB", 5, 0644), STATUS_OK);
    assert_int_not_equal(try_open(path, BUNDLE_READ), STATUS_OK);
}

/* ---- rows that somebody changed ------------------------------------------- */

static void test_steps_after_a_gap_do_not_count(void **state)
{
    const char *path = small_path("gap");
    struct bundle *bundle;
    struct digest root;
    uint64_t count = 0;

    (void)state;
    bundle_close(small_bundle_new(path, small_job(), NULL, 20));
    change(path, "DELETE FROM steps WHERE step = 7");
    bundle = reopen(path, BUNDLE_READ);
    assert_int_equal(bundle_step_count(&count, bundle, NULL), STATUS_OK);
    assert_int_equal(count, 7);
    assert_int_equal(bundle_segment_root(&root, bundle, 0, NULL), STATUS_OK);
    assert_int_equal(bundle_segment_root(&root, bundle, 1, NULL), STATUS_NOT_FOUND);
    bundle_close(bundle);
    change(path, "UPDATE steps SET step = step + 100 WHERE step > 3");
    change(path, "INSERT INTO steps SELECT step - 101, root, 1, 1, 1, 1, 1, 1, 1, NULL FROM steps "
                 "WHERE step > 104");
    bundle = reopen(path, BUNDLE_READ);
    assert_int_equal(bundle_step_count(&count, bundle, NULL), STATUS_OK);
    assert_in_range(count, 4, 20);
    bundle_close(bundle);
}

static void test_senseless_rows_are_errors_and_not_steps(void **state)
{
    static const char *const changes[] = {
        "UPDATE steps SET root = zeroblob(31) WHERE step = 3",
        "UPDATE steps SET root = zeroblob(1000) WHERE step = 3",
        "UPDATE steps SET loss = -1 WHERE step = 3",
        "UPDATE steps SET loss = 4294967296 WHERE step = 3",
        "UPDATE steps SET loss = NULL WHERE step = 3",
        "UPDATE steps SET nanoseconds = -1 WHERE step = 3",
        "UPDATE steps SET committing = NULL WHERE step = 3",
        "UPDATE steps SET microjoules = -1 WHERE step = 3",
        "UPDATE steps SET device = -1 WHERE step = 3",
    };
    const char *path = small_path("senseless");

    (void)state;
    bundle_close(small_bundle_new(path, small_job(), NULL, 5));
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        struct bundle_step step = {.step = 3};
        struct bundle *bundle;

        change(path, "CREATE TABLE kept AS SELECT * FROM steps");
        change(path, changes[i]);
        change(path, "PRAGMA wal_checkpoint; ALTER TABLE kept RENAME TO away; DROP TABLE away");
        bundle = reopen(path, BUNDLE_WRITE);
        if (bundle_step_read(&step, bundle, 3, NULL) != STATUS_BAD_FORMAT ||
            bundle_record(bundle, &(struct bundle_step){.step = 3}, NULL) != STATUS_BAD_FORMAT) {
            fail_msg("accepted: %s", changes[i]);
        }
        bundle_close(bundle);
        change(path, "UPDATE steps SET root = zeroblob(32), loss = 1, nanoseconds = 1, "
                     "committing = 1, microjoules = 1, device = 0 WHERE step = 3");
    }
}

static void test_many_names_of_one_checkpoint_come_to_an_end(void **state)
{
    const char *path = small_path("names");
    struct bundle *bundle;
    uint64_t step = 0;
    struct run run;

    (void)state;
    bundle_close(small_bundle_new(path, small_job(), NULL, 10));
    change(path, "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 30000) "
                 "INSERT OR REPLACE INTO checkpoints SELECT i, zeroblob(32) FROM n");
    bundle = reopen(path, BUNDLE_READ);
    small_run_open(&run, bundle_job(bundle), isa_best(), 1, false);
    assert_int_equal(bundle_restore(&step, bundle, run.machine, UINT64_MAX, NULL), STATUS_OK);
    assert_int_equal(step, 10);
    assert_int_equal(bundle_checkpoint_find(&step, bundle, 21, NULL), STATUS_BAD_FORMAT);
    run_close(&run);
    bundle_close(bundle);
}

/* ---- checkpoints -------------------------------------------------------- */

static uint64_t restored(struct bundle *bundle, uint64_t most, uint32_t damaged)
{
    struct digest root;
    struct digest wanted;
    const char *why;
    struct run run;
    uint64_t step = UINT64_MAX;

    small_run_open(&run, bundle_job(bundle), isa_best(), 1, false);
    assert_int_equal(bundle_restore(&step, bundle, run.machine, most, NULL), STATUS_OK);
    assert_int_equal(state_root_of(&root, run.machine, NULL), STATUS_OK);
    assert_int_equal(bundle_state_root(&wanted, bundle, step, NULL), STATUS_OK);
    assert_true(digest_equal(&root, &wanted));
    assert_int_equal(bundle_damaged(bundle, &why), damaged);
    assert_true(damaged == 0 || why[0] != '\0');
    run_close(&run);
    return step;
}

static void damage(const struct bundle *bundle, uint64_t step)
{
    char path[FILE_PATH_MAX];
    uint8_t byte;
    int file;

    assert_int_equal(bundle_checkpoint_path(path, bundle, step, NULL), STATUS_OK);
    file = open(path, O_RDWR);
    assert_int_equal(pread(file, &byte, 1, 9000), 1);
    byte ^= 0x10;
    assert_int_equal(pwrite(file, &byte, 1, 9000), 1);
    close(file);
}

static void check_fallback(const char *path, const struct encryption_key *key)
{
    struct bundle *bundle = small_bundle_new(path, small_job(), key, 20);
    char name[FILE_PATH_MAX];

    assert_int_equal(restored(bundle, 20, 0), 20);
    assert_int_equal(restored(bundle, UINT64_MAX, 0), 20);
    assert_int_equal(restored(bundle, 19, 0), 15);
    assert_int_equal(restored(bundle, 4, 0), 0);
    damage(bundle, 20);
    assert_int_equal(restored(bundle, 20, 1), 15);
    assert_int_equal(bundle_checkpoint_path(name, bundle, 15, NULL), STATUS_OK);
    assert_int_equal(truncate(name, 5000), 0);
    assert_int_equal(restored(bundle, 20, 2), 10);
    assert_int_equal(bundle_checkpoint_path(name, bundle, 10, NULL), STATUS_OK);
    assert_int_equal(unlink(name), 0);
    assert_int_equal(restored(bundle, 20, 3), 5);
    assert_int_equal(bundle_checkpoint_path(name, bundle, 5, NULL), STATUS_OK);
    assert_int_equal(unlink(name), 0);
    assert_int_equal(mkfifo(name, 0644), 0);
    assert_int_equal(restored(bundle, 20, 4), 0);
    bundle_close(bundle);
}

static void test_damaged_checkpoints_are_passed_over(void **state)
{
    (void)state;
    check_fallback(small_path("fallback"), NULL);
    check_fallback(small_path("encrypted fallback"), &the_key);
}

static void check_exchanged(const char *path, const struct encryption_key *key)
{
    struct bundle *bundle = small_bundle_new(path, small_job(), key, 20);
    char from[FILE_PATH_MAX];
    char to[FILE_PATH_MAX];

    assert_int_equal(bundle_checkpoint_path(from, bundle, 10, NULL), STATUS_OK);
    assert_int_equal(bundle_checkpoint_path(to, bundle, 20, NULL), STATUS_OK);
    assert_int_equal(rename(from, to), 0);
    assert_int_not_equal(bundle_checkpoint_check(bundle, 20, NULL), STATUS_OK);
    assert_int_equal(bundle_checkpoint_check(bundle, 10, NULL), STATUS_NOT_FOUND);
    assert_int_equal(bundle_checkpoint_check(bundle, 15, NULL), STATUS_OK);
    assert_int_equal(restored(bundle, 20, 1), 15);
    bundle_close(bundle);
}

static void test_checkpoint_of_another_step_is_refused(void **state)
{
    (void)state;
    check_exchanged(small_path("exchanged"), NULL);
    check_exchanged(small_path("encrypted exchanged"), &the_key);
}

static void test_false_root_in_the_journal_is_found_with_the_checkpoint(void **state)
{
    const char *path = small_path("false root");
    struct bundle *bundle;

    (void)state;
    bundle_close(small_bundle_new(path, small_job(), NULL, 20));
    change(path, "UPDATE steps SET root = zeroblob(32) WHERE step = 19");
    change(path, "UPDATE checkpoints SET root = zeroblob(32)"); /* whose word counts for nothing */
    bundle = reopen(path, BUNDLE_READ);
    assert_int_equal(restored(bundle, 20, 1), 15);
    bundle_close(bundle);
}

static void test_state_that_was_not_committed_to_is_not_kept(void **state)
{
    struct bundle *bundle = small_bundle_new(small_path("other state"), small_job(), NULL, 10);
    struct run run;

    (void)state;
    small_run_open(&run, bundle_job(bundle), isa_best(), 1, false);
    small_run_begin(&run);
    assert_int_equal(bundle_checkpoint_write(bundle, run.machine, 10, NULL), STATUS_REFUSED);
    assert_int_equal(bundle_checkpoint_write(bundle, run.machine, 11, NULL), STATUS_NOT_FOUND);
    assert_int_equal(bundle_checkpoint_write(bundle, run.machine, 0, NULL), STATUS_OK);
    run_close(&run);
    bundle_close(bundle);
}

/* A checkpoint of 64 KiB: any bit that is not as it was written. */
static void test_every_flipped_bit_and_every_cut_of_a_checkpoint_is_detected(void **state)
{
    static uint8_t bytes[1 << 17];
    struct small_job_options options;
    char path[FILE_PATH_MAX];
    struct bundle *bundle;
    size_t header;
    size_t size;
    size_t step;
    int file;

    (void)state;
    small_job_defaults(&options);
    options.model.width = 16;
    options.model.vocabulary = 160;
    bundle = small_bundle_new(small_path("bits"), small_job_new(&options), NULL, 1);
    assert_int_equal(bundle_checkpoint_path(path, bundle, 1, NULL), STATUS_OK);
    file = open(path, O_RDWR);
    size = (size_t)read(file, bytes, sizeof(bytes));
    assert_in_range(size, 1 << 16, sizeof(bytes) - 1);
    header = 8 + (size_t)bytes[0] + 256 * (size_t)bytes[1];
    step = size * 8 / test_share(size * 8, 2500);
    for (size_t bit = 0; bit < size * 8; bit += bit < header * 8 ? 1 + step / 40 : step) {
        uint8_t changed = bytes[bit / 8] ^ (uint8_t)(1 << bit % 8);

        assert_int_equal(pwrite(file, &changed, 1, (off_t)(bit / 8)), 1);
        if (bundle_checkpoint_check(bundle, 1, NULL) == STATUS_OK) {
            fail_msg("bit %zu of byte %zu", bit % 8, bit / 8);
        }
        assert_int_equal(pwrite(file, &bytes[bit / 8], 1, (off_t)(bit / 8)), 1);
    }
    assert_int_equal(bundle_checkpoint_check(bundle, 1, NULL), STATUS_OK);
    step = size / test_share(size, 600);
    for (size_t cut = size - 1; cut > step; cut -= step) {
        assert_int_equal(ftruncate(file, (off_t)cut), 0);
        assert_int_not_equal(bundle_checkpoint_check(bundle, 1, NULL), STATUS_OK);
    }
    close(file);
    bundle_close(bundle);
}

/* ---- retention ---------------------------------------------------------- */

static void check_kept(struct bundle *bundle, uint64_t keep, uint64_t every, const char *wanted)
{
    char found[256] = "";

    assert_int_equal(bundle_checkpoint_prune(bundle, keep, every, NULL), STATUS_OK);
    for (uint64_t step = 0; step <= 20; step++) {
        char path[FILE_PATH_MAX];
        uint64_t next = UINT64_MAX;
        bool listed =
            bundle_checkpoint_find(&next, bundle, step, NULL) == STATUS_OK && next == step;

        assert_int_equal(bundle_checkpoint_path(path, bundle, step, NULL), STATUS_OK);
        assert_int_equal(file_exists(path), listed);
        if (listed) {
            (void)snprintf(found + strlen(found), sizeof(found) - strlen(found), "%d ", (int)step);
        }
    }
    assert_string_equal(found, wanted);
}

static void test_wanted_checkpoints_stay_and_no_others(void **state)
{
    static const struct {
        uint64_t keep;
        uint64_t every;
        const char *kept;
    } ways[] = {
        {1, 0, "20 "},         {2, 0, "15 20 "},      {4, 0, "5 10 15 20 "},
        {9, 0, "5 10 15 20 "}, {1, 1, "5 10 15 20 "}, {1, 2, "10 20 "},
        {1, 3, "15 20 "},      {2, 4, "15 20 "},      {1, UINT64_MAX, "20 "},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        char name[32];
        struct bundle *bundle;
        char stray[FILE_PATH_MAX];
        char other[FILE_PATH_MAX];

        (void)snprintf(name, sizeof(name), "kept %zu", i);
        bundle = small_bundle_new(small_path(name), small_job(), NULL, 20);
        /* Files: one that a crash left between entry and file, and others that are not ours. */
        assert_int_equal(bundle_checkpoint_path(stray, bundle, 3, NULL), STATUS_OK);
        assert_int_equal(file_write(stray, NULL, "stray", 5, 0644), STATUS_OK);
        (void)snprintf(other, sizeof(other), "%.3000s.note", stray);
        assert_int_equal(file_write(other, NULL, "note", 4, 0644), STATUS_OK);
        check_kept(bundle, ways[i].keep, ways[i].every, ways[i].kept);
        assert_true(file_exists(other));
        bundle_close(bundle);
    }
}

/* ---- encrypted bundles ----------------------------------------------------- */

static void test_locked_bundle_takes_and_gives_nothing_encrypted(void **state)
{
    const char *path = small_path("locked up");
    struct bundle *bundle;
    struct bundle_step step;
    struct encryption_key key;
    struct digest root;
    struct run run;
    uint64_t at;

    (void)state;
    bundle_close(small_bundle_new(path, small_job(), &the_key, 10));
    bundle = reopen(path, BUNDLE_WRITE);
    assert_int_equal(bundle_segment_root(&root, bundle, 1, NULL), STATUS_OK);
    assert_int_equal(bundle_step_read(&step, bundle, 9, NULL), STATUS_OK);
    assert_true(step.hidden && step.loss_bits == 0 && step.nanoseconds == 0);
    assert_int_equal(bundle_record(bundle, &step, NULL), STATUS_REFUSED);
    assert_int_equal(bundle_set_note(bundle, "data.0", "/x", NULL), STATUS_REFUSED);
    assert_int_equal(bundle_set_device(bundle, "x", NULL), STATUS_REFUSED);
    assert_int_equal(bundle_checkpoint_check(bundle, 10, NULL), STATUS_REFUSED);
    assert_int_equal(bundle_key(&key, bundle, NULL), STATUS_REFUSED);
    assert_int_equal(bundle_unlock_with(bundle, "word", 4, NULL), STATUS_NOT_FOUND);
    small_run_open(&run, bundle_job(bundle), isa_best(), 1, false);
    assert_int_equal(bundle_restore(&at, bundle, run.machine, 10, NULL), STATUS_OK);
    assert_int_equal(at, 0); /* the first state is drawn: it is in the job, for everybody */
    assert_int_equal(bundle_checkpoint_write(bundle, run.machine, 0, NULL), STATUS_REFUSED);
    run_close(&run);
    bundle_close(bundle);
}

static void test_passphrase_opens_what_its_lock_holds(void **state)
{
    const char *path = small_path("passphrase");
    uint8_t lock[ENCRYPTION_LOCK_SIZE];
    struct bundle *bundle = NULL;
    struct encryption_key key;
    char name[700];

    (void)state;
    assert_int_equal(encryption_lock(lock, NULL, &the_key, "open sesame", 11, 10), STATUS_OK);
    assert_int_equal(bundle_create_encrypted(&bundle, path, small_job(), &the_key, lock, NULL),
                     STATUS_OK);
    bundle_close(bundle);
    bundle = reopen(path, BUNDLE_READ);
    assert_int_equal(bundle_unlock_with(bundle, "open sesam", 10, NULL), STATUS_REFUSED);
    assert_true(bundle_is_locked(bundle));
    assert_int_equal(bundle_unlock_with(bundle, "open sesame", 11, NULL), STATUS_OK);
    assert_int_equal(bundle_key(&key, bundle, NULL), STATUS_OK);
    assert_memory_equal(&key, &the_key, sizeof(key));
    bundle_close(bundle);
    /* Another bundle's lock: it opens, but its key is not this bundle's. */
    assert_int_equal(encryption_lock(lock, NULL, &other_key, "open sesame", 11, 10), STATUS_OK);
    part(name, path, "key.lock");
    assert_int_equal(file_write(name, NULL, lock, sizeof(lock), 0600), STATUS_OK);
    bundle = reopen(path, BUNDLE_READ);
    assert_int_equal(bundle_unlock_with(bundle, "open sesame", 11, NULL), STATUS_REFUSED);
    bundle_close(bundle);
}

static bool holds(const char *path, const void *needle, size_t size)
{
    struct file_bytes bytes;
    bool found;

    if (file_read(&bytes, NULL, path, 1 << 24) != STATUS_OK) {
        return false;
    }
    found = memmem(bytes.data, bytes.size, needle, size) != NULL;
    file_bytes_release(&bytes);
    return found;
}

static void test_encrypted_bundle_holds_nothing_in_the_clear(void **state)
{
    static const char *const encrypting[] = {"in the clear", "not in the clear"};

    (void)state;
    for (int encrypted = 0; encrypted < 2; encrypted++) {
        const char *path = small_path(encrypting[encrypted]);
        struct bundle *bundle =
            small_bundle_new(path, small_job(), encrypted ? &the_key : NULL, 10);
        char checkpoint[FILE_PATH_MAX];
        char journal[700];
        struct run run;
        uint64_t step;
        const void *weights;

        small_run_open(&run, bundle_job(bundle), isa_best(), 1, false);
        assert_int_equal(bundle_restore(&step, bundle, run.machine, 10, NULL), STATUS_OK);
        weights =
            run.machine->backend->peek(run.machine, bundle_job(bundle)->tape->states[1].before);
        assert_int_equal(bundle_set_note(bundle, "data.0", "/home/somebody/novel.txt", NULL),
                         STATUS_OK);
        assert_int_equal(bundle_checkpoint_path(checkpoint, bundle, 10, NULL), STATUS_OK);
        assert_int_equal(holds(checkpoint, weights, 16), !encrypted);
        bundle_close(bundle);
        part(journal, path, "journal.db");
        assert_int_equal(holds(journal, "novel", 5), !encrypted);
        assert_int_equal(holds(journal, "a small test", 12), !encrypted);
        run_close(&run);
    }
}

static void test_encrypted_rows_cannot_change_places(void **state)
{
    const char *path = small_path("places");
    struct bundle *bundle;
    struct bundle_step step;

    (void)state;
    bundle_close(small_bundle_new(path, small_job(), &the_key, 10));
    change(path, "UPDATE steps SET encrypted = (SELECT encrypted FROM steps WHERE step = 4) "
                 "WHERE step = 3");
    bundle = reopen(path, BUNDLE_READ);
    assert_int_equal(bundle_unlock(bundle, &the_key, NULL), STATUS_OK);
    assert_int_equal(bundle_step_read(&step, bundle, 3, NULL), STATUS_REFUSED);
    assert_int_equal(bundle_step_read(&step, bundle, 4, NULL), STATUS_OK);
    bundle_close(bundle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bundle_is_read_back),
        cmocka_unit_test(test_segment_root_is_the_list_of_its_states),
        cmocka_unit_test(test_segment_ends_with_the_step_that_diverged),
        cmocka_unit_test(test_step_that_gives_something_else_is_refused),
        cmocka_unit_test(test_held_out_figures_come_back),
        cmocka_unit_test(test_pending_steps_are_written_when_there_are_many),
        cmocka_unit_test(test_second_process_is_refused),
        cmocka_unit_test(test_folders_of_others_are_not_filled),
        cmocka_unit_test(test_bundle_is_never_made_twice),
        cmocka_unit_test(test_what_a_crash_left_is_cleared_away),
        cmocka_unit_test(test_links_in_a_bundle_are_refused),
        cmocka_unit_test(test_parts_of_another_kind_are_refused),
        cmocka_unit_test(test_steps_after_a_gap_do_not_count),
        cmocka_unit_test(test_senseless_rows_are_errors_and_not_steps),
        cmocka_unit_test(test_many_names_of_one_checkpoint_come_to_an_end),
        cmocka_unit_test(test_damaged_checkpoints_are_passed_over),
        cmocka_unit_test(test_checkpoint_of_another_step_is_refused),
        cmocka_unit_test(test_false_root_in_the_journal_is_found_with_the_checkpoint),
        cmocka_unit_test(test_state_that_was_not_committed_to_is_not_kept),
        cmocka_unit_test(test_every_flipped_bit_and_every_cut_of_a_checkpoint_is_detected),
        cmocka_unit_test(test_wanted_checkpoints_stay_and_no_others),
        cmocka_unit_test(test_locked_bundle_takes_and_gives_nothing_encrypted),
        cmocka_unit_test(test_passphrase_opens_what_its_lock_holds),
        cmocka_unit_test(test_encrypted_bundle_holds_nothing_in_the_clear),
        cmocka_unit_test(test_encrypted_rows_cannot_change_places),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
