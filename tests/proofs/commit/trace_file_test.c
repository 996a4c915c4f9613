/*
 * Goal: a trace that was written to a file is the trace that was run; a damaged file, or one of
 * another step, is never taken for it; and a file that cannot be written is no failure. However
 * many micro-batches a step has, the file never has more than one of them. Method: a step of a
 * small model, traced with a file; the server that reads the file is compared with one that runs
 * the step; then each byte of the head, and some of the tensors, are changed.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/file.h"
#include "proofs/dispute/trace_server.h"
#include "tests/support/dispute/opponents.h"
#include "tests/support/numeric/small_job.h"

static const struct digest mark = {{1, 2, 3}};
static const struct digest other_mark = {{1, 2, 4}};

static void check(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fail_msg("%s", error->text);
    }
}

static void write_trace(struct trace_server *server, struct opponents *opponents, const char *path)
{
    struct error error;

    error_init(&error);
    check(trace_server_open_kept(server, opponents_rewind(opponents), path, &mark, &error), &error);
    assert_int_equal(server->runs, 1);
}

static struct file_bytes read_all(const char *path)
{
    struct file_bytes bytes = {0};
    struct error error;

    error_init(&error);
    check(file_read(&bytes, &error, path, (size_t)64 << 20), &error);
    return bytes;
}

static void test_a_trace_that_is_read_is_the_one_that_was_run(void **state)
{
    const char *path = small_path("whole");
    struct opponents opponents;
    struct trace_server written;
    struct trace_server read;
    struct error error;

    (void)state;
    error_init(&error);
    opponents_open_kind(&opponents, MODEL_MLP);
    write_trace(&written, &opponents, path);
    check(trace_server_load(&read, opponents.tape, path, &mark, &error), &error);
    assert_true(digest_equal(&read.trace.root, &opponents.own.trace.root));
    assert_true(digest_equal(&read.trace.state_root, &opponents.own.trace.state_root));
    assert_true(digest_equal(&read.trace.next_root, &opponents.own.trace.next_root));
    for (uint32_t item = 0; item < read.trace.item_count; item++) {
        const struct trace_server_tensor *one;
        const struct trace_server_tensor *other;

        check(trace_server_keep(&read, &item, 1, &error), &error);
        check(trace_server_keep(&opponents.own, &item, 1, &error), &error);
        one = trace_server_tensor(&read, item);
        other = trace_server_tensor(&opponents.own, item);
        assert_int_equal(one->size, other->size);
        assert_memory_equal(one->bytes, other->bytes, one->size);
    }
    assert_int_equal(read.runs, 0);
    assert_int_equal(written.runs, 1);
    trace_server_close(&read);
    trace_server_close(&written);
    opponents_close(&opponents);
}

static void test_a_damaged_file_is_removed_and_not_believed(void **state)
{
    const char *path = small_path("damaged");
    struct opponents opponents;
    struct trace_server server;
    struct file_bytes bytes;
    struct error error;
    size_t head;

    (void)state;
    opponents_open_kind(&opponents, MODEL_MLP);
    write_trace(&server, &opponents, path);
    bytes = read_all(path);
    head = 96 + ((size_t)server.trace.item_count + 1) * DIGEST_SIZE;
    trace_server_close(&server);
    for (size_t at = 0; at < head; at++) {
        error_init(&error);
        bytes.data[at] ^= 1;
        check(file_write(path, &error, bytes.data, bytes.size, 0600), &error);
        assert_int_equal(trace_server_load(&server, opponents.tape, path, &mark, &error),
                         STATUS_BAD_FORMAT);
        assert_false(file_exists(path));
        bytes.data[at] ^= 1;
    }
    error_init(&error);
    check(file_write(path, &error, bytes.data, bytes.size - 1, 0600), &error);
    assert_int_equal(trace_server_load(&server, opponents.tape, path, &mark, &error),
                     STATUS_BAD_FORMAT);
    error_init(&error);
    assert_int_equal(trace_server_load(&server, opponents.tape, path, &mark, &error),
                     STATUS_NOT_FOUND);
    file_bytes_release(&bytes);
    opponents_close(&opponents);
}

static void test_a_damaged_tensor_is_found_when_it_is_wanted(void **state)
{
    const char *path = small_path("tensor");
    const uint32_t last = 0;
    struct opponents opponents;
    struct trace_server server;
    struct file_bytes bytes;
    struct error error;

    (void)state;
    error_init(&error);
    opponents_open_kind(&opponents, MODEL_MLP);
    write_trace(&server, &opponents, path);
    bytes = read_all(path);
    bytes.data[96 + ((size_t)server.trace.item_count + 1) * DIGEST_SIZE] ^= 1;
    trace_server_close(&server);
    check(file_write(path, &error, bytes.data, bytes.size, 0600), &error);
    check(trace_server_load(&server, opponents.tape, path, &mark, &error), &error);
    assert_int_equal(trace_server_keep(&server, &last, 1, &error), STATUS_IO);
    assert_false(file_exists(path));
    trace_server_close(&server);
    file_bytes_release(&bytes);
    opponents_close(&opponents);
}

static void test_a_file_of_another_step_is_not_taken(void **state)
{
    const char *path = small_path("other");
    struct opponents opponents;
    struct trace_server server;
    struct error error;

    (void)state;
    error_init(&error);
    opponents_open_kind(&opponents, MODEL_MLP);
    write_trace(&server, &opponents, path);
    trace_server_close(&server);
    assert_int_equal(trace_server_load(&server, opponents.tape, path, &other_mark, &error),
                     STATUS_BAD_FORMAT);
    opponents_close(&opponents);
}

static void test_without_room_for_the_file_the_step_is_run_again(void **state)
{
    const uint32_t item = 0;
    struct opponents opponents;
    struct trace_server server;
    struct error error;
    uint32_t output;

    (void)state;
    error_init(&error);
    opponents_open_kind(&opponents, MODEL_MLP);
    write_trace(&server, &opponents, "/nowhere/at/all");
    assert_null(server.file.bytes);
    output = server.trace.state_count;
    check(trace_server_keep(&server, &item, 1, &error), &error);
    check(trace_server_keep(&server, &output, 1, &error), &error);
    assert_int_equal(server.runs, 2);
    trace_server_close(&server);
    opponents_close(&opponents);
}

/* ---- a step of many micro-batches ----------------------------------------- */

static void open_repeat(struct opponents *opponents, uint32_t times, uint32_t group)
{
    struct model_options options;

    small_model_options(&options, MODEL_MLP);
    options.accumulate = times;
    options.group = group;
    opponents_open(opponents, &options);
}

/* Bytes of the file's tensors. */
static uint64_t stored(const struct tape *tape)
{
    return trace_file_size(tape) - 96 - ((uint64_t)trace_item_count(tape) + 1) * DIGEST_SIZE;
}

static void test_a_dispute_stores_one_micro_batch_however_many_there_are(void **state)
{
    struct opponents few;
    struct opponents many;

    (void)state;
    open_repeat(&few, 2, 2);
    open_repeat(&many, 64, 8);
    assert_int_equal(stored(few.tape), stored(many.tape));
    assert_true(tape_footprint(many.tape).trace > 10 * stored(many.tape));
    opponents_close(&many);
    opponents_close(&few);
}

static void compare_item(struct trace_server *read, struct trace_server *own, uint32_t item)
{
    const struct trace_server_tensor *one;
    const struct trace_server_tensor *other;
    struct error error;

    error_init(&error);
    check(trace_server_keep(read, &item, 1, &error), &error);
    check(trace_server_keep(own, &item, 1, &error), &error);
    one = trace_server_tensor(read, item);
    other = trace_server_tensor(own, item);
    assert_int_equal(one->size, other->size);
    assert_memory_equal(one->bytes, other->bytes, one->size);
}

static void turn_file(uint32_t times, uint32_t group)
{
    const char *path = small_path("repeat");
    struct repeat_layout layout;
    struct opponents opponents;
    struct trace_server written;
    struct trace_server read;
    struct error error;
    uint32_t joins = 0;
    uint32_t inside;

    error_init(&error);
    open_repeat(&opponents, times, group);
    repeat_layout_of(&layout, opponents.tape);
    inside = (uint32_t)repeat_block_place(&layout, 3);
    write_trace(&written, &opponents, path);
    trace_server_close(&written);
    check(trace_server_load(&read, opponents.tape, path, &mark, &error), &error);
    assert_int_equal(trace_server_keep(&read, &inside, 1, &error), STATUS_NOT_FOUND);
    trace_server_use(&read, opponents.machines[0]);
    for (uint32_t item = 0; item < read.trace.item_count; item++) {
        uint32_t batch;

        joins += repeat_holds(&batch, &layout, item) && batch == TENSOR_NONE;
        compare_item(&read, &opponents.own, item);
        assert_true(read.file.size <= trace_file_size(opponents.tape));
    }
    assert_int_equal(joins, layout.sums * (times / group - 1));
    /* Once for what each hands on, and once more for the list that it keeps to itself. */
    assert_int_equal(read.runs, 2 * times + joins);
    trace_server_close(&read);

    /* Another process goes on with the micro-batch that the file has. */
    check(trace_server_load(&read, opponents.tape, path, &mark, &error), &error);
    inside = (uint32_t)repeat_block_place(&layout, times - 1);
    check(trace_server_keep(&read, &inside, 1, &error), &error);
    assert_int_equal(read.runs, 0);
    trace_server_close(&read);
    opponents_close(&opponents);
}

static void test_a_file_turns_to_the_micro_batch_that_is_asked_about(void **state)
{
    (void)state;
    turn_file(8, 2);
    turn_file(8, 8); /* turns of a loop */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_trace_that_is_read_is_the_one_that_was_run),
        cmocka_unit_test(test_a_damaged_file_is_removed_and_not_believed),
        cmocka_unit_test(test_a_damaged_tensor_is_found_when_it_is_wanted),
        cmocka_unit_test(test_a_file_of_another_step_is_not_taken),
        cmocka_unit_test(test_without_room_for_the_file_the_step_is_run_again),
        cmocka_unit_test(test_a_dispute_stores_one_micro_batch_however_many_there_are),
        cmocka_unit_test(test_a_file_turns_to_the_micro_batch_that_is_asked_about),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
