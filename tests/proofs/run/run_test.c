/*
 * Goal: a job runs on its own data and no other, and any of its steps can be reached and traced.
 *
 * Method: data that differs from the job's in every way; every step of a bundle reached from its
 * checkpoints and traced, on several instruction sets; journals that are false from some step on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "base/io/file.h"
#include "proofs/run/replay.h"
#include "tests/support/numeric/small_job.h"
#include "tests/support/test.h"

static const struct replay_options plain = {.threads = 1};

static struct job *small_job(void)
{
    struct small_job_options options;

    small_job_defaults(&options);
    return small_job_new(&options);
}

static enum status open_with(const struct job *job, const char *const *paths, size_t count)
{
    const struct machine_options options = {.isa = isa_best(), .thread_count = 1};
    struct error error;
    struct run run;
    enum status status;

    error_init(&error);
    status = run_open(&run, job, paths, count, &options, &error);
    assert_int_equal(error.status, status);
    run_close(&run);
    return status;
}

static void test_data_of_another_job_is_refused(void **state)
{
    static const char *const good[] = {"fixtures/text/village.u8"};
    const char *paths[] = {good[0], good[0]};
    struct job *job = small_job();
    struct file_bytes text;

    (void)state;
    assert_int_equal(open_with(job, good, 1), STATUS_OK);
    assert_int_equal(open_with(job, good, 0), STATUS_USAGE);
    assert_int_equal(open_with(job, paths, 2), STATUS_USAGE);
    assert_int_equal(file_read(&text, NULL, good[0], 1 << 22), STATUS_OK);
    paths[0] = small_path("text");
    assert_int_equal(file_write(paths[0], NULL, text.data, text.size - 1, 0644), STATUS_OK);
    assert_int_equal(open_with(job, paths, 1), STATUS_BAD_FORMAT);
    text.data[text.size / 2] ^= 1;
    assert_int_equal(file_write(paths[0], NULL, text.data, text.size, 0644), STATUS_OK);
    assert_int_equal(open_with(job, paths, 1), STATUS_REFUSED);
    text.data[text.size / 2] ^= 1;
    assert_int_equal(file_write(paths[0], NULL, text.data, text.size, 0644), STATUS_OK);
    assert_int_equal(open_with(job, paths, 1), STATUS_OK);
    paths[0] = small_path("nowhere");
    assert_int_equal(open_with(job, paths, 1), STATUS_NOT_FOUND);
    file_bytes_release(&text);
    job_free(job);
}

static void test_two_data_files_keep_their_order(void **state)
{
    static const char *const exchanged[] = {"fixtures/images/shapes-labels.npy",
                                            "fixtures/images/shapes.npy"};
    static const char *const good[] = {"fixtures/images/shapes.npy",
                                       "fixtures/images/shapes-labels.npy"};
    struct small_job_options options;
    struct job *job;

    (void)state;
    small_job_of_kind(&options, MODEL_MLP);
    job = small_job_new(&options);
    assert_int_equal(open_with(job, good, 2), STATUS_OK);
    assert_int_not_equal(open_with(job, exchanged, 2), STATUS_OK);
    job_free(job);
}

static void test_job_that_needs_more_memory_is_refused(void **state)
{
    static const char *const paths[] = {"fixtures/text/village.u8"};
    const struct machine_options options = {
        .isa = isa_best(), .thread_count = 1, .memory_max = 10000};
    struct job *job = small_job();
    struct run run;

    (void)state;
    assert_int_equal(run_open(&run, job, paths, 1, &options, NULL), STATUS_NO_MEMORY);
    run_close(&run);
    job_free(job);
}

/* ---- steps run again ----------------------------------------------------- */

static void test_every_step_is_reached_and_traced(void **state)
{
    struct bundle *bundle = small_bundle_new(small_path("reached"), small_job(), NULL, 20);

    (void)state;
    for (uint64_t step = 0; step <= 20; step++) {
        enum isa isa = step % 2 == 0 ? isa_best() : ISA_SCALAR;
        struct digest before;
        struct digest after;
        struct digest root;
        struct trace trace;
        struct run run;

        small_run_open(&run, bundle_job(bundle), isa, 1, false);
        assert_int_equal(replay_reach(&run, bundle, step, &plain, NULL), STATUS_OK);
        assert_int_equal(state_root_of(&root, run.machine, NULL), STATUS_OK);
        assert_int_equal(bundle_state_root(&before, bundle, step, NULL), STATUS_OK);
        assert_true(digest_equal(&root, &before));
        if (step < 20) {
            assert_int_equal(replay_trace(&trace, &run, bundle, step, NULL, 0, &plain, NULL),
                             STATUS_OK);
            assert_int_equal(bundle_state_root(&after, bundle, step + 1, NULL), STATUS_OK);
            assert_true(digest_equal(&trace.state_root, &before));
            assert_true(digest_equal(&trace.next_root, &after));
            trace_release(&trace);
        } else {
            assert_int_equal(replay_trace(&trace, &run, bundle, step, NULL, 0, &plain, NULL),
                             STATUS_USAGE);
        }
        run_close(&run);
    }
    bundle_close(bundle);
}

static void test_traces_agree_by_every_way_to_them(void **state)
{
    struct bundle *bundle = small_bundle_new(small_path("ways"), small_job(), NULL, 20);
    struct digest first = {{0}};

    (void)state;
    for (int way = 0; way < 4; way++) {
        struct trace_opening *opening = calloc(1, sizeof(*opening));
        uint32_t bits = 0;
        struct trace trace;
        struct run run;

        opening->item = 60;
        opening->element = 3;
        small_run_open(&run, bundle_job(bundle), way % 2 == 0 ? isa_best() : ISA_SCALAR, 1 + way,
                       false);
        if (way >= 2) {
            /* Without the nearest checkpoint: from the one before it. */
            char path[FILE_PATH_MAX];

            assert_int_equal(
                bundle_checkpoint_path(path, bundle, 15 - 5 * ((uint64_t)way - 2), NULL),
                STATUS_OK);
            assert_int_equal(remove(path), 0);
        }
        assert_int_equal(replay_trace(&trace, &run, bundle, 17, opening, 1, &plain, NULL),
                         STATUS_OK);
        assert_int_equal(trace_opening_check(&bits, opening, &trace.root, trace.tape),
                         VERDICT_VALID);
        assert_true(way == 0 || digest_equal(&first, &trace.root));
        first = trace.root;
        trace_release(&trace);
        run_close(&run);
        free(opening);
    }
    bundle_close(bundle);
}

static void test_step_that_was_not_run_can_be_traced_but_not_passed(void **state)
{
    struct bundle *bundle = small_bundle_new(small_path("edge"), small_job(), NULL, 7);
    struct trace trace;
    struct run run;

    (void)state;
    small_run_open(&run, bundle_job(bundle), isa_best(), 1, false);
    assert_int_equal(replay_trace(&trace, &run, bundle, 7, NULL, 0, &plain, NULL), STATUS_OK);
    trace_release(&trace);
    run_close(&run);
    small_run_open(&run, bundle_job(bundle), isa_best(), 1, false);
    assert_int_equal(replay_trace(&trace, &run, bundle, 8, NULL, 0, &plain, NULL),
                     STATUS_NOT_FOUND);
    assert_int_equal(replay_reach(&run, bundle, 8, &plain, NULL), STATUS_NOT_FOUND);
    assert_int_equal(replay_reach(&run, bundle, UINT64_MAX, &plain, NULL), STATUS_NOT_FOUND);
    run_close(&run);
    bundle_close(bundle);
}

static void test_false_journal_is_refused_at_the_step_that_is_false(void **state)
{
    const char *path = small_path("false");
    struct bundle *bundle = small_bundle_new(path, small_job(), NULL, 12);
    char file[600];
    sqlite3 *database;
    struct trace trace;
    struct run run;

    (void)state;
    bundle_close(bundle);
    (void)snprintf(file, sizeof(file), "%s/journal.db", path);
    assert_int_equal(sqlite3_open(file, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, "UPDATE steps SET root = zeroblob(32) WHERE step = 7",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(database);
    assert_int_equal(bundle_open(&bundle, path, BUNDLE_READ, NULL), STATUS_OK);
    small_run_open(&run, bundle_job(bundle), isa_best(), 1, false);
    assert_int_equal(replay_reach(&run, bundle, 7, &plain, NULL), STATUS_OK);
    assert_int_equal(replay_reach(&run, bundle, 8, &plain, NULL), STATUS_REFUSED);
    assert_int_equal(replay_trace(&trace, &run, bundle, 7, NULL, 0, &plain, NULL), STATUS_REFUSED);
    assert_null(trace.items);
    run_close(&run);
    small_run_open(&run, bundle_job(bundle), isa_best(), 1, false);
    assert_int_equal(replay_reach(&run, bundle, 11, &plain, NULL), STATUS_OK);
    run_close(&run);
    bundle_close(bundle);
}

static void count_steps(void *context, uint64_t step)
{
    uint64_t *seen = context;

    assert_int_equal(step, *seen);
    (*seen)++;
}

static void test_replay_tells_of_each_step(void **state)
{
    struct bundle *bundle = small_bundle_new(small_path("reply"), small_job(), NULL, 20);
    uint64_t seen = 10;
    const struct replay_options options = {
        .threads = 1, .progress = count_steps, .progress_context = &seen};
    struct run run;

    (void)state;
    small_run_open(&run, bundle_job(bundle), isa_best(), 1, false);
    assert_int_equal(replay_reach(&run, bundle, 14, &options, NULL), STATUS_OK);
    assert_int_equal(seen, 14);
    run_close(&run);
    bundle_close(bundle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_of_another_job_is_refused),
        cmocka_unit_test(test_two_data_files_keep_their_order),
        cmocka_unit_test(test_job_that_needs_more_memory_is_refused),
        cmocka_unit_test(test_every_step_is_reached_and_traced),
        cmocka_unit_test(test_traces_agree_by_every_way_to_them),
        cmocka_unit_test(test_step_that_was_not_run_can_be_traced_but_not_passed),
        cmocka_unit_test(test_false_journal_is_refused_at_the_step_that_is_false),
        cmocka_unit_test(test_replay_tells_of_each_step),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
