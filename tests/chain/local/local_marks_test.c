/*
 * Goal: no bit of an embedded ledger's file that is not as it was written changes an answer without
 * a word, and what is changed by anything but the ledger is refused by name.
 * Method: a job is played; then single bits of the file are flipped, spread over all of it, and
 * each time the ledger gives the answers of before or is refused, with what to do. So is
 * a file whose sums are gone.
 */
#include "tests/support/test.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/file.h"
#include "chain/local/ledger_local.h"
#include "tests/support/game/scene.h"

enum {
    FLIPS = 600,
    FILE_MAX = 8 << 20,
};

/* All answers of a ledger, hashed; false: it is refused. */
static bool answers_of(struct hash32 *answers, const char *path, const struct scene *scene,
                       struct error *error)
{
    struct ledger_options options;
    struct ledger_entry entry = {0};
    struct ledger *ledger = NULL;
    struct ledger_job job;
    struct keccak keccak;
    char url[600];
    enum status status;

    (void)snprintf(url, sizeof(url), "local:%s", path);
    ledger_options_init(&options);
    options.url = url;
    options.signer = scene->stage.signers[STAGE_SOLVER];
    error_init(error);
    keccak_init(&keccak);
    if (ledger_open(&ledger, &options, error) != STATUS_OK) {
        return false;
    }
    keccak_add(&keccak, ledger_get_place(ledger)->chain, strlen(ledger_get_place(ledger)->chain));
    status = ledger_get_job(ledger, &job, &scene->job, error);
    if (status == STATUS_OK) {
        const uint64_t numbers[] = {job.phase,     job.generation, job.segments, job.committed,
                                    job.finalized, job.panel,      job.due_s,    job.opened_at_s};

        keccak_add(&keccak, numbers, sizeof(numbers)); /* the struct has gaps */
        keccak_add(&keccak, &job.client, ADDRESS_SIZE);
        keccak_add(&keccak, &job.solver, ADDRESS_SIZE);
        keccak_add(&keccak, &job.pool, sizeof(job.pool));
    }
    for (int i = 0; i < STAGE_PLAYERS && status == STATUS_OK; i++) {
        wei money[2] = {0, 0};

        status = ledger_get_account(ledger, &money[0], &money[1],
                                    signer_address(scene->stage.signers[i]), error);
        keccak_add(&keccak, money, sizeof(money));
    }
    while (status == STATUS_OK) {
        status = ledger_next(ledger, &entry, entry.number, 0, error);
        if (status == STATUS_OK) {
            const uint64_t numbers[] = {entry.number, entry.height, entry.time_s, entry.event.kind,
                                        entry.event.segment.index};

            keccak_add(&keccak, numbers, sizeof(numbers));
            keccak_add(&keccak, &entry.event.job, HASH32_SIZE);
            keccak_add(&keccak, &entry.event.account, ADDRESS_SIZE);
        }
    }
    ledger_close(ledger);
    *answers = keccak_end(&keccak);
    return status == STATUS_NOT_FOUND;
}

static void play(struct scene *scene, char *path, size_t size, const char *name)
{
    scene_open(scene, STAGE_EMBEDDED, name);
    scene_open_job(scene);
    scene_enlist(scene, STAGE_VERIFIER, 2);
    scene_accept(scene, STAGE_SOLVER);
    scene_commit(scene, STAGE_SOLVER, SCENE_STEPS);
    (void)snprintf(path, size, "%s", scene->stage.url + strlen("local:"));
    for (int i = 0; i < STAGE_PLAYERS; i++) { /* the last that closes empties the log */
        ledger_close(scene->stage.ledgers[i]);
        scene->stage.ledgers[i] = NULL;
    }
}

static void write_file(const char *path, const uint8_t *bytes, size_t size)
{
    struct error error;
    char beside[800];

    error_init(&error);
    (void)snprintf(beside, sizeof(beside), "%s-wal", path);
    (void)unlink(beside);
    (void)snprintf(beside, sizeof(beside), "%s-shm", path);
    (void)unlink(beside);
    assert_int_equal(file_write(path, &error, bytes, size, 0600), STATUS_OK);
}

static void test_no_flipped_bit_changes_an_answer(void **state)
{
    struct scene scene;
    struct file_bytes file = {0};
    struct hash32 before;
    struct hash32 after;
    struct error error;
    char path[600];
    char copy[700];
    uint32_t refused = 0;
    uint64_t random = 7;

    (void)state;
    play(&scene, path, sizeof(path), "flips");
    assert_true(answers_of(&before, path, &scene, &error));
    assert_int_equal(file_read(&file, &error, path, FILE_MAX), STATUS_OK);
    (void)snprintf(copy, sizeof(copy), "%s-flipped", path);
    for (uint32_t i = 0; i < FLIPS; i++) {
        size_t at;

        random = random * 6364136223846793005u + 1442695040888963407u;
        at = (size_t)((random >> 20) % file.size);
        file.data[at] ^= (uint8_t)(1u << (random >> 60) % 8);
        write_file(copy, file.data, file.size);
        if (!answers_of(&after, copy, &scene, &error)) {
            refused++;
            if (strstr(error.text, copy) == NULL && strstr(error.text, "ledger's file") == NULL) {
                fail_msg("bit at %zu: %s", at, error.text);
            }
            assert_true(error.advice[0] != '\0');
        } else if (!hash32_equal(&after, &before)) {
            fail_msg("the byte at %zu of %zu changes an answer", at, file.size);
        }
        file.data[at] ^= (uint8_t)(1u << (random >> 60) % 8);
    }
    assert_true(refused > FLIPS / 10); /* many bytes of a file are unused */
    file_bytes_release(&file);
    scene_close(&scene);
}

static void test_what_others_change_is_refused_by_the_name_of_its_table(void **state)
{
    static const struct {
        const char *change;
        const char *named;
    } changes[] = {
        {"DELETE FROM event_log WHERE number = 2", "table event_log"},
        {"UPDATE blocks SET time_s = time_s + 1 WHERE height = 2", "table blocks"},
        {"UPDATE moves SET done = 0", "table moves"},
        {"DELETE FROM records WHERE kind = 5", "table records"},
        {"UPDATE meta SET value = value + 1 WHERE name = 'genesis'", "table meta"},
        {"DROP INDEX event_log_by_kind; CREATE INDEX event_log_by_kind ON event_log (number)",
         "table schema"},
    };
    struct scene scene;
    struct hash32 answers;
    struct error error;
    char path[600];

    (void)state;
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        sqlite3 *file = NULL;
        char name[32];

        (void)snprintf(name, sizeof(name), "change-%zu", i);
        play(&scene, path, sizeof(path), name);
        assert_true(answers_of(&answers, path, &scene, &error));
        assert_int_equal(sqlite3_open(path, &file), SQLITE_OK);
        assert_int_equal(sqlite3_exec(file,
                                      "DROP TRIGGER marks_event_log_DELETE; DROP TRIGGER"
                                      " marks_blocks_UPDATE; DROP TRIGGER marks_moves_UPDATE;"
                                      " DROP TRIGGER marks_records_DELETE",
                                      NULL, NULL, NULL),
                         SQLITE_OK);
        assert_int_equal(sqlite3_exec(file, changes[i].change, NULL, NULL, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_close(file), SQLITE_OK);
        assert_false(answers_of(&answers, path, &scene, &error));
        assert_int_equal(error.status, STATUS_BAD_FORMAT);
        assert_non_null(strstr(error.text, changes[i].named));
        assert_non_null(strstr(error.text, path));
        assert_non_null(strstr(error.advice, "lockstep ledger init"));
        scene_close(&scene);
    }
}

static void test_a_file_without_its_sums_is_refused(void **state)
{
    static const char *const losses[] = {"DELETE FROM marks", "DROP TABLE marks",
                                         "DELETE FROM meta WHERE name LIKE '%-again'"};
    struct scene scene;
    struct hash32 answers;
    struct error error;
    char path[600];

    (void)state;
    for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++) {
        sqlite3 *file = NULL;
        char name[32];

        (void)snprintf(name, sizeof(name), "loss-%zu", i);
        play(&scene, path, sizeof(path), name);
        assert_true(answers_of(&answers, path, &scene, &error));
        assert_int_equal(sqlite3_open(path, &file), SQLITE_OK);
        assert_int_equal(sqlite3_exec(file, losses[i], NULL, NULL, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_close(file), SQLITE_OK);
        assert_false(answers_of(&answers, path, &scene, &error));
        assert_int_equal(error.status, STATUS_BAD_FORMAT);
        assert_non_null(strstr(error.text, i < 2 ? "table marks" : "table meta"));
        scene_close(&scene);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_flipped_bit_changes_an_answer),
        cmocka_unit_test(test_what_others_change_is_refused_by_the_name_of_its_table),
        cmocka_unit_test(test_a_file_without_its_sums_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
