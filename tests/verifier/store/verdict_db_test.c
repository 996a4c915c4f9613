/*
 * Goal: nothing that contradicts the verdict database gets into it, by entry, by import or by a
 * second node, and everything that is in it stays. Method: each way to contradict, one by one;
 * exports that are changed in each place; a second process; a process that is killed at random
 * instants while it enters verdicts.
 */
#include "tests/support/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io/file.h"
#include "verifier/store/verdict_db.h"

enum {
    KILLS = 12,
    KILLS_SOAK = 200,
};

static const char *path_of(const char *name)
{
    static char paths[8][600];
    static int next;

    next = (next + 1) % 8;
    (void)snprintf(paths[next], sizeof(paths[0]), "%s/%s", test_temp_dir(), name);
    return paths[next];
}

static struct verdict_db *open_book(const char *path)
{
    struct verdict_db *verdicts = NULL;
    struct error error;

    error_init(&error);
    if (verdict_db_open(&verdicts, path, &error) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
    return verdicts;
}

static struct verdict_db_entry entry_of(uint32_t segment, uint32_t step, enum game_verdict verdict)
{
    struct verdict_db_entry entry;

    memset(&entry, 0, sizeof(entry));
    (void)snprintf(entry.place.chain, sizeof(entry.place.chain), "eip155:1");
    entry.place.registry.bytes[0] = 1;
    entry.job.bytes[0] = 2;
    entry.segment = segment;
    entry.before.bytes[0] = 3;
    entry.root.bytes[0] = 4;
    entry.verdict = verdict;
    if (verdict == GAME_VERDICT_FALSE) {
        entry.step = step;
        entry.pre_state.bytes[0] = 6;
        entry.post_state.bytes[0] = 7;
    }
    return entry;
}

static struct verdict_db_seal seal_of(uint32_t seat, enum game_verdict verdict)
{
    struct verdict_db_seal seal;

    memset(&seal, 0, sizeof(seal));
    (void)snprintf(seal.place.chain, sizeof(seal.place.chain), "eip155:1");
    seal.segment.bytes[0] = 8;
    seal.seed.bytes[0] = 9;
    seal.seat = seat;
    seal.verdict = verdict;
    if (verdict == GAME_VERDICT_RIGHT) {
        memset(&seal.leaves, 10, sizeof(seal.leaves));
    }
    seal.step = verdict == GAME_VERDICT_FALSE ? 3 : 0;
    return seal;
}

static enum status seal(struct verdict_db *verdicts, struct verdict_db_seal made)
{
    struct error error;

    error_init(&error);
    return verdict_db_seal(verdicts, &made, &error);
}

static enum status enter(struct verdict_db *verdicts, struct verdict_db_entry entry)
{
    struct error error;

    error_init(&error);
    return verdict_db_enter(verdicts, &entry, &error);
}

/* ---- tests ---------------------------------------------------------------- */

static void test_a_contradiction_is_refused(void **state)
{
    struct verdict_db *verdicts = open_book(path_of("contradictions"));
    struct verdict_db_entry entry;

    (void)state;
    assert_int_equal(enter(verdicts, entry_of(1, 0, GAME_VERDICT_RIGHT)), STATUS_OK);
    assert_int_equal(enter(verdicts, entry_of(1, 0, GAME_VERDICT_RIGHT)), STATUS_OK);
    assert_int_equal(enter(verdicts, entry_of(1, 5, GAME_VERDICT_FALSE)), STATUS_REFUSED);

    assert_int_equal(enter(verdicts, entry_of(2, 5, GAME_VERDICT_FALSE)), STATUS_OK);
    assert_int_equal(enter(verdicts, entry_of(2, 5, GAME_VERDICT_FALSE)), STATUS_OK);
    assert_int_equal(enter(verdicts, entry_of(2, 0, GAME_VERDICT_RIGHT)), STATUS_REFUSED);
    assert_int_equal(enter(verdicts, entry_of(2, 6, GAME_VERDICT_FALSE)), STATUS_REFUSED);
    entry = entry_of(2, 5, GAME_VERDICT_FALSE);
    entry.post_state.bytes[9] ^= 1;
    assert_int_equal(enter(verdicts, entry), STATUS_REFUSED);
    verdict_db_close(verdicts);
}

/* No matter what was found since, a place says one thing. Another draw is another place. */
static void test_a_place_has_one_verdict(void **state)
{
    const char *path = path_of("places");
    struct verdict_db *verdicts = open_book(path);
    struct verdict_db_seal found = seal_of(7, GAME_VERDICT_RIGHT);
    struct error error;

    (void)state;
    assert_int_equal(seal(verdicts, seal_of(7, GAME_VERDICT_FALSE)), STATUS_OK);
    assert_int_equal(seal(verdicts, seal_of(7, GAME_VERDICT_FALSE)), STATUS_OK);
    assert_int_equal(seal(verdicts, seal_of(7, GAME_VERDICT_RIGHT)), STATUS_REFUSED);
    assert_int_equal(seal(verdicts, seal_of(8, GAME_VERDICT_RIGHT)), STATUS_OK);
    found = seal_of(8, GAME_VERDICT_RIGHT);
    found.leaves.tags[7][1] ^= 1;
    assert_int_equal(seal(verdicts, found), STATUS_REFUSED);
    found = seal_of(7, GAME_VERDICT_RIGHT);
    found.seed.bytes[31] ^= 1;
    assert_int_equal(seal(verdicts, found), STATUS_OK);
    verdict_db_close(verdicts);
    verdicts = open_book(path);
    found = seal_of(8, GAME_VERDICT_NONE);
    assert_int_equal(verdict_db_find_seal(&found, verdicts, &error), STATUS_OK);
    assert_int_equal(found.verdict, GAME_VERDICT_RIGHT);
    assert_int_equal(found.leaves.tags[0][0], 10);
    found.seat = 9;
    assert_int_equal(verdict_db_find_seal(&found, verdicts, &error), STATUS_NOT_FOUND);
    verdict_db_close(verdicts);
}

/* Another segment, root, state before it, job, contract or chain is another matter. */
static void test_other_matters_do_not_contradict(void **state)
{
    struct verdict_db *verdicts = open_book(path_of("others"));
    struct verdict_db_entry entry;

    (void)state;
    assert_int_equal(enter(verdicts, entry_of(1, 5, GAME_VERDICT_RIGHT)), STATUS_OK);
    assert_int_equal(enter(verdicts, entry_of(3, 5, GAME_VERDICT_FALSE)), STATUS_OK);
    entry = entry_of(1, 5, GAME_VERDICT_FALSE);
    entry.root.bytes[31] ^= 1;
    assert_int_equal(enter(verdicts, entry), STATUS_OK);
    entry = entry_of(1, 5, GAME_VERDICT_FALSE);
    entry.before.bytes[31] ^= 1;
    assert_int_equal(enter(verdicts, entry), STATUS_OK);
    entry = entry_of(1, 5, GAME_VERDICT_FALSE);
    entry.job.bytes[31] ^= 1;
    assert_int_equal(enter(verdicts, entry), STATUS_OK);
    entry = entry_of(1, 5, GAME_VERDICT_FALSE);
    entry.place.registry.bytes[19] ^= 1;
    assert_int_equal(enter(verdicts, entry), STATUS_OK);
    entry = entry_of(1, 5, GAME_VERDICT_FALSE);
    entry.diverged = true; /* the same states, and said to end there */
    assert_int_equal(enter(verdicts, entry), STATUS_OK);
    entry = entry_of(1, 5, GAME_VERDICT_FALSE);
    entry.place.chain[7] = '5';
    assert_int_equal(enter(verdicts, entry), STATUS_OK);
    verdict_db_close(verdicts);
}

static void test_entries_are_found_again(void **state)
{
    const char *path = path_of("found");
    struct verdict_db *verdicts = open_book(path);
    struct verdict_db_entry entry = entry_of(2, 0, GAME_VERDICT_RIGHT);
    struct error error;

    (void)state;
    assert_int_equal(enter(verdicts, entry_of(1, 5, GAME_VERDICT_RIGHT)), STATUS_OK);
    assert_int_equal(enter(verdicts, entry_of(2, 9, GAME_VERDICT_FALSE)), STATUS_OK);
    verdict_db_close(verdicts);
    verdicts = open_book(path);
    assert_int_equal(verdict_db_find(&entry, verdicts, &error), STATUS_OK);
    assert_int_equal(entry.verdict, GAME_VERDICT_FALSE);
    assert_int_equal(entry.step, 9);
    assert_int_equal(entry.post_state.bytes[0], 7);
    entry.segment = 3;
    assert_int_equal(verdict_db_find(&entry, verdicts, &error), STATUS_NOT_FOUND);
    verdict_db_close(verdicts);
}

/* Two nodes with one key share a verdict database; the second one must not even start. */
static void test_a_second_node_is_refused(void **state)
{
    const char *path = path_of("locked");
    struct verdict_db *verdicts = open_book(path);
    int result = -1;
    pid_t child = fork();

    (void)state;
    assert_true(child >= 0);
    if (child == 0) {
        struct verdict_db *second = NULL;
        struct error error;

        error_init(&error);
        _exit(verdict_db_open(&second, path, &error) == STATUS_REFUSED &&
                      strstr(error.text, "another node") != NULL && error.advice[0] != '\0'
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    verdict_db_close(verdicts);
    verdict_db_close(open_book(path)); /* the lock goes with the process */
}

static void test_an_export_moves_the_database(void **state)
{
    struct verdict_db *verdicts = open_book(path_of("from"));
    struct verdict_db *other = open_book(path_of("to"));
    struct hash32 before = verdict_db_derive(verdicts, "x", "y", 1);
    struct hash32 after;
    json_t *view = NULL;
    uint64_t added = 0;
    struct error error;

    (void)state;
    error_init(&error);
    assert_int_equal(enter(verdicts, entry_of(1, 5, GAME_VERDICT_RIGHT)), STATUS_OK);
    assert_int_equal(seal(verdicts, seal_of(4, GAME_VERDICT_RIGHT)), STATUS_OK);
    assert_int_equal(verdict_db_export(&view, verdicts, &error), STATUS_OK);
    after = verdict_db_derive(other, "x", "y", 1);
    assert_false(hash32_equal(&before, &after));
    if (verdict_db_import(&added, other, view, &error) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(added, 2);
    after = verdict_db_derive(other, "x", "y", 1);
    assert_true(hash32_equal(&before, &after)); /* salts of claims stay what they were */
    assert_int_equal(verdict_db_import(&added, other, view, &error), STATUS_OK);
    assert_int_equal(added, 0);
    assert_int_equal(enter(other, entry_of(1, 5, GAME_VERDICT_FALSE)), STATUS_REFUSED);
    assert_int_equal(seal(other, seal_of(4, GAME_VERDICT_FALSE)), STATUS_REFUSED);
    json_decref(view);
    verdict_db_close(verdicts);
    verdict_db_close(other);
}

/* One row of many contradicts: nothing of the import is taken. */
static void test_an_import_that_contradicts_changes_nothing(void **state)
{
    struct verdict_db *verdicts = open_book(path_of("source"));
    struct verdict_db *other = open_book(path_of("target"));
    struct verdict_db_entry entry = entry_of(9, 5, GAME_VERDICT_FALSE);
    json_t *view = NULL;
    uint64_t added = 1;
    struct error error;

    (void)state;
    error_init(&error);
    for (uint32_t i = 0; i < 10; i++) {
        assert_int_equal(enter(verdicts, entry_of(i, 5, GAME_VERDICT_RIGHT)), STATUS_OK);
    }
    assert_int_equal(enter(other, entry), STATUS_OK);
    assert_int_equal(verdict_db_export(&view, verdicts, &error), STATUS_OK);
    assert_int_equal(verdict_db_import(&added, other, view, &error), STATUS_REFUSED);
    assert_int_equal(added, 0);
    entry = entry_of(1, 5, GAME_VERDICT_RIGHT);
    assert_int_equal(verdict_db_find(&entry, other, &error), STATUS_NOT_FOUND);
    json_decref(view);
    verdict_db_close(verdicts);
    verdict_db_close(other);
}

static void test_a_damaged_export_is_refused(void **state)
{
    static const struct {
        const char *key;
        const char *value;
    } changes[] = {{"verdict", "\"maybe\""}, {"verdict", "3"}, {"verdict", "0"},
                   {"root", "\"12\""},       {"step", "-1"},   {"step", "99999999999"},
                   {"chain", "7"},           {"surprise", "1"}};
    struct verdict_db *verdicts = open_book(path_of("damaged"));
    json_t *view = NULL;
    uint64_t added;
    struct error error;

    (void)state;
    error_init(&error);
    assert_int_equal(enter(verdicts, entry_of(1, 5, GAME_VERDICT_RIGHT)), STATUS_OK);
    assert_int_equal(verdict_db_export(&view, verdicts, &error), STATUS_OK);
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        json_t *copy = json_deep_copy(view);
        json_t *row = json_array_get(json_object_get(copy, "verdicts"), 0);

        (void)json_object_set_new(row, changes[i].key,
                                  json_loads(changes[i].value, JSON_DECODE_ANY, NULL));
        assert_int_not_equal(verdict_db_import(&added, verdicts, copy, &error), STATUS_OK);
        json_decref(copy);
    }
    (void)json_object_set_new(view, "lockstep_verdict_db", json_integer(99));
    assert_int_equal(verdict_db_import(&added, verdicts, view, &error), STATUS_REFUSED);
    json_decref(view);
    verdict_db_close(verdicts);
}

/* Enters verdicts one after the other, and tells of each when it is in. */
static void enter_until_killed(const char *path, int reply)
{
    struct verdict_db *verdicts = NULL;
    struct error error;

    error_init(&error);
    if (verdict_db_open(&verdicts, path, &error) != STATUS_OK) {
        _exit(1);
    }
    for (uint32_t i = 0;; i++) {
        struct verdict_db_entry entry = entry_of(i, 3, GAME_VERDICT_RIGHT);

        if (verdict_db_enter(verdicts, &entry, &error) != STATUS_OK ||
            write(reply, &i, sizeof(i)) != (ssize_t)sizeof(i)) {
            _exit(1);
        }
    }
}

static void test_an_entered_verdict_survives_a_kill(void **state)
{
    uint64_t random = 5;
    uint64_t kills = test_share(KILLS_SOAK, KILLS);

    (void)state;
    for (uint64_t i = 0; i < kills; i++) {
        const char *path = path_of("killed");
        struct verdict_db_entry entry;
        struct verdict_db *verdicts;
        struct error error;
        uint32_t last = UINT32_MAX;
        uint32_t number;
        int pipes[2];
        pid_t child;

        (void)unlink(path);
        assert_int_equal(pipe(pipes), 0);
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            enter_until_killed(path, pipes[1]);
        }
        (void)close(pipes[1]);
        (void)usleep((useconds_t)test_random_below(&random, 60000));
        (void)kill(child, SIGKILL);
        (void)waitpid(child, NULL, 0);
        while (read(pipes[0], &number, sizeof(number)) == (ssize_t)sizeof(number)) {
            last = number;
        }
        (void)close(pipes[0]);
        verdicts = open_book(path);
        for (uint32_t k = 0; last != UINT32_MAX && k <= last; k++) {
            entry = entry_of(k, 3, GAME_VERDICT_RIGHT);
            assert_int_equal(verdict_db_find(&entry, verdicts, &error), STATUS_OK);
        }
        verdict_db_close(verdicts);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_contradiction_is_refused),
        cmocka_unit_test(test_a_place_has_one_verdict),
        cmocka_unit_test(test_other_matters_do_not_contradict),
        cmocka_unit_test(test_entries_are_found_again),
        cmocka_unit_test(test_a_second_node_is_refused),
        cmocka_unit_test(test_an_export_moves_the_database),
        cmocka_unit_test(test_an_import_that_contradicts_changes_nothing),
        cmocka_unit_test(test_a_damaged_export_is_refused),
        cmocka_unit_test(test_an_entered_verdict_survives_a_kill),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
