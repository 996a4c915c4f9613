/*
 * Goal: what comes next in a dispute follows from the dispute alone, as it is read back after a
 * crash; a file that is cut off or damaged is never taken for a dispute of another shape.
 * Method: every combination of whose turn it is, whether it is over and what was tried; then the
 * saved file, cut at each length and with each byte changed.
 */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/numeric/small_job.h"
#include "verifier/dispute/dispute_next.h"

static void check(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fail_msg("%s", error->text);
    }
}

static struct dispute make_dispute(const char *name)
{
    struct dispute dispute = {.claim = {{1, 2, 3}},
                              .step = 5,
                              .trace_root = {{4, 5, 6}},
                              .turn = 2,
                              .ours = true,
                              .attempt = 1,
                              .acquitted = 1,
                              .move_max = 1000};

    (void)snprintf(dispute.folder, sizeof(dispute.folder), "%s", small_path(name));
    return dispute;
}

static enum dispute_kind next_of(const struct dispute *dispute)
{
    enum dispute_kind kind = DISPUTE_WAIT;
    struct error error;

    error_init(&error);
    check(dispute_next(&kind, NULL, dispute, NULL, &error), &error);
    return kind;
}

static void write_move(const struct dispute *dispute, enum dispute_kind kind)
{
    struct dispute_move move = {.kind = kind, .payload = (const uint8_t *)"x", .payload_size = 1};
    char name[DISPUTE_NAME_MAX];
    char path[FILE_PATH_MAX];
    struct buffer bytes;
    struct error error;

    error_init(&error);
    buffer_init(&bytes, DISPUTE_MOVE_MAX);
    dispute_move_write(&bytes, &move);
    dispute_move_name(name, dispute->turn, dispute->attempt);
    check(file_make_folder(dispute->folder, &error, 0700), &error);
    check(dispute_path(path, dispute, name, &error), &error);
    check(file_write(path, &error, bytes.data, bytes.size, 0600), &error);
    buffer_release(&bytes);
}

static void test_what_comes_next_follows_from_the_turn(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 32; bits++) {
        struct dispute dispute = make_dispute("turn");
        enum dispute_kind wanted = DISPUTE_WAIT;

        dispute.under_way = (bits & 1) != 0;
        dispute.ours = (bits & 2) != 0;
        dispute.late = (bits & 4) != 0;
        dispute.overtaken = (bits & 8) != 0;
        dispute.follows = !dispute.ours && (bits & 16) != 0;
        if (dispute.overtaken) {
            wanted = DISPUTE_LAPSE;
        } else if (dispute.late) {
            wanted = dispute.ours ? DISPUTE_MISSED : DISPUTE_TIMEOUT;
        } else if ((dispute.ours || dispute.follows) && !dispute.under_way) {
            wanted = DISPUTE_RUN;
        }
        assert_int_equal(next_of(&dispute), wanted);
    }
}

static void test_a_move_that_was_found_is_not_looked_for_again(void **state)
{
    struct dispute dispute = make_dispute("found");

    (void)state;
    write_move(&dispute, DISPUTE_EVIDENCE);
    assert_int_equal(next_of(&dispute), DISPUTE_EVIDENCE);
    dispute.attempt++; /* it was refused */
    assert_int_equal(next_of(&dispute), DISPUTE_RUN);
    dispute.attempt--;
    dispute.ours = false;
    dispute.follows = true; /* whose turn it is makes the move, not we */
    assert_int_equal(next_of(&dispute), DISPUTE_WAIT);
    dispute.turn++;
    assert_int_equal(next_of(&dispute), DISPUTE_RUN);
}

static void test_a_dispute_is_read_back_as_it_was_saved(void **state)
{
    struct dispute saved = make_dispute("saved");
    struct dispute read;
    struct error error;

    (void)state;
    error_init(&error);
    check(dispute_save(&saved, &error), &error);
    check(dispute_load(&read, saved.folder, &error), &error);
    assert_memory_equal(&read, &saved, sizeof(saved));
}

static void test_a_damaged_dispute_is_refused_or_one_of_the_same_shape(void **state)
{
    struct dispute saved = make_dispute("damaged");
    struct file_bytes bytes = {0};
    char path[FILE_PATH_MAX];
    struct dispute read;
    struct error error;

    (void)state;
    error_init(&error);
    check(dispute_save(&saved, &error), &error);
    check(dispute_path(path, &saved, DISPUTE_FILE, &error), &error);
    check(file_read(&bytes, &error, path, 4096), &error);
    for (size_t size = 0; size < bytes.size; size++) {
        error_init(&error);
        check(file_write(path, &error, bytes.data, size, 0600), &error);
        assert_int_equal(dispute_load(&read, saved.folder, &error), STATUS_BAD_FORMAT);
    }
    for (size_t at = 0; at < bytes.size; at++) {
        error_init(&error);
        bytes.data[at] ^= 0xff;
        check(file_write(path, &error, bytes.data, bytes.size, 0600), &error);
        if (dispute_load(&read, saved.folder, &error) == STATUS_OK) {
            assert_in_range(read.move_max, 0, GAME_PAYLOAD_MAX);
        }
        bytes.data[at] ^= 0xff;
    }
    file_bytes_release(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_comes_next_follows_from_the_turn),
        cmocka_unit_test(test_a_move_that_was_found_is_not_looked_for_again),
        cmocka_unit_test(test_a_dispute_is_read_back_as_it_was_saved),
        cmocka_unit_test(test_a_damaged_dispute_is_refused_or_one_of_the_same_shape),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
