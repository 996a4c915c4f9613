/*
 * Goal: a check that is killed at any moment loses little of what it has computed, and what it
 * hands on changes no verdict.
 * Method: checks in child processes, confined as a node's are, on a machine of this test (in place
 * of check_machine.c) that kills its process before a step; others are killed from outside at
 * random moments. Then the same check again, here. What lies in the cache between them is damaged,
 * too.
 */
#include "tests/support/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/numeric/small_job.h"
#include "tests/support/proofs/hostile_mirror.h"
#include "verifier/check/check.h"
#include "verifier/check/confine.h"

enum {
    LIE = 3,        /* the step of the segment that is falsified */
    STEP_US = 2000, /* longer than between two states that are handed on */
    ROUNDS = 4,
    KILLS = 10,
    KILL_US = 40000,
};

static uint32_t steps;  /* that this process ran */
static uint32_t deadly; /* the process does not live to run so many; 0: it does */
static struct backend backend;

static enum status step(struct machine *machine, const struct observer *observer,
                        struct error *error)
{
    steps++;
    if (steps == deadly) {
        (void)raise(SIGKILL);
    }
    (void)usleep(STEP_US);
    return backend_cpu.step(machine, observer, error);
}

static enum status open_machine(struct machine **machine, const struct tape *tape,
                                const struct machine_options *options, struct error *error)
{
    struct machine_options here = *options;
    enum status status;

    here.backend = &backend_cpu;
    status = backend_cpu.open(machine, tape, &here, error);
    if (status == STATUS_OK) {
        (*machine)->backend = &backend;
    }
    return status;
}

/* In place of verifier/check/check_machine.c. */
enum status check_machine(struct machine_options *options, const struct check_request *request,
                          bool other, struct error *error)
{
    (void)other;
    TRY(machine_options_default(options, error));
    options->thread_count = (int)request->threads;
    options->backend = &backend;
    return STATUS_OK;
}

/* ---- checks --------------------------------------------------------------- */

struct fixture {
    struct check_request request; /* of segment 1 */
    struct check_result whole;    /* when nothing kills it */
    struct check_result result;
};

static void check(struct fixture *fixture, enum check_outcome wanted)
{
    steps = 0;
    check_run(&fixture->result, &fixture->request, NULL, NULL);
    if (fixture->result.outcome != wanted) {
        fail_msg("%s: %s", check_outcome_name(fixture->result.outcome), fixture->result.reason);
    }
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct check_request *request = &fixture->request;
    struct check_segment segments[SMALL_JOB_STEPS / SMALL_JOB_SEGMENT];
    const char *path = small_path("honest.run");
    struct small_job_options options;
    const char *const *files;
    struct job *job;
    size_t count;

    backend = backend_cpu;
    backend.open = open_machine;
    backend.step = step;
    small_job_defaults(&options);
    job = small_job_new(&options);
    files = small_job_data(job, &count);
    assert_int_equal(count, 1);
    (void)snprintf(request->data[request->data_count++], FILE_PATH_MAX, "%s", files[0]);
    bundle_close(small_bundle_new(path, job, NULL, SMALL_JOB_STEPS));
    (void)snprintf(request->mirrors[request->mirror_count++], FILE_PATH_MAX, "%s/tree",
                   test_temp_dir());
    request->job_id = hostile_mirror_publish(segments, request->mirrors[0], path);
    (void)snprintf(request->cache, sizeof(request->cache), "%s/cache", test_temp_dir());
    memcpy(request->segments, segments, 2 * sizeof(segments[0]));
    request->steps = SMALL_JOB_STEPS;
    request->segment_steps = SMALL_JOB_SEGMENT;
    request->index = 1;
    request->segment_count = 2;
    request->memory_max = (uint64_t)1 << 30;
    request->file_max = (uint64_t)64 << 20;
    request->mirror_timeout_s = 120;
    request->threads = 1;
    request->seed.bytes[3] = 7;
    check(fixture, CHECK_PROVEN);
    fixture->whole = fixture->result;
    assert_true(fixture->whole.has_leaves);
    request->resume_ms = 1;
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    free(*state);
    return 0;
}

/* The files that are handed on; the n-th is `path`. */
static uint32_t count_files(const struct fixture *fixture, uint32_t n, char path[FILE_PATH_MAX])
{
    DIR *folder = opendir(fixture->request.cache);
    struct dirent *entry;
    uint32_t count = 0;

    assert_non_null(folder);
    while ((entry = readdir(folder)) != NULL) {
        if (strstr(entry->d_name, ".resume") == NULL) {
            continue;
        }
        if (count++ == n) {
            (void)snprintf(path, FILE_PATH_MAX, "%.2000s/%.255s", fixture->request.cache,
                           entry->d_name);
        }
    }
    (void)closedir(folder);
    return count;
}

/* A child that does not live for its so-many-th step, or for so long. */
static void kill_check(struct fixture *fixture, uint32_t step_number, useconds_t after_us)
{
    pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        steps = 0;
        deadly = step_number;
        confine_begin(&fixture->request);
        check_run(&fixture->result, &fixture->request, NULL, NULL);
        _exit(0);
    }
    if (step_number == 0) {
        (void)usleep(after_us);
        (void)kill(child, SIGKILL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(step_number == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
}

static void see_the_same(const struct fixture *fixture)
{
    const struct check_result *result = &fixture->result;
    char path[FILE_PATH_MAX];

    assert_true(result->has_leaves);
    assert_memory_equal(result->leaves, fixture->whole.leaves, sizeof(result->leaves));
    for (uint32_t i = 0; i < GAME_LEAVES; i++) {
        assert_int_equal(result->rights[i].step, fixture->whole.rights[i].step);
        assert_int_equal(result->rights[i].tensor, fixture->whole.rights[i].tensor);
        assert_true(result->rights[i].leaf == fixture->whole.rights[i].leaf);
    }
    assert_memory_equal(&result->before, &fixture->whole.before, DIGEST_SIZE);
    assert_int_equal(result->loss_bits, fixture->whole.loss_bits);
    assert_int_equal(count_files(fixture, 0, path), 0);
}

static void test_each_try_begins_where_the_one_before_was_killed(void **state)
{
    struct fixture *fixture = *state;
    char path[FILE_PATH_MAX];

    for (uint32_t done = 1; done < SMALL_JOB_SEGMENT; done++) {
        kill_check(fixture, 2, 0); /* one step each, and the next one is its last */
        assert_int_equal(count_files(fixture, 0, path), done == 1 ? 2 : 3);
    }
    check(fixture, CHECK_PROVEN);
    assert_int_equal(steps, 1);
    assert_int_equal(fixture->result.steps_run, 1);
    see_the_same(fixture);
}

static void test_no_moment_to_be_killed_in_changes_the_result(void **state)
{
    struct fixture *fixture = *state;
    uint64_t random = 1;

    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < KILLS; i++) {
            kill_check(fixture, 0, (useconds_t)(test_random(&random) % KILL_US));
        }
        check(fixture, CHECK_PROVEN);
        see_the_same(fixture);
    }
}

static void test_what_is_damaged_is_dropped(void **state)
{
    struct fixture *fixture = *state;

    for (uint32_t n = 0; n < 2; n++) {
        char path[FILE_PATH_MAX] = "";
        struct stat about = {0};
        uint8_t byte = 0;
        int file;

        kill_check(fixture, 2, 0);
        assert_int_equal(count_files(fixture, n, path), 2);
        file = open(path, O_RDWR | O_CLOEXEC);
        assert_true(file >= 0 && fstat(file, &about) == 0);
        assert_int_equal(pread(file, &byte, 1, about.st_size - 1), 1);
        byte ^= 1;
        assert_int_equal(pwrite(file, &byte, 1, about.st_size - 1), 1);
        (void)close(file);
        check(fixture, CHECK_PROVEN);
        assert_int_equal(steps, SMALL_JOB_SEGMENT);
        see_the_same(fixture);
    }
}

/* The other machine comes from the beginning, as it would without what was handed on. */
static void test_a_lie_behind_it_is_refuted(void **state)
{
    struct fixture *fixture = *state;
    char path[FILE_PATH_MAX];

    fixture->request.segments[1].states[LIE].bytes[5] ^= 1;
    kill_check(fixture, 2, 0);
    kill_check(fixture, 2, 0);
    check(fixture, CHECK_REFUTED);
    assert_int_equal(fixture->result.step, LIE);
    assert_int_equal(steps, (LIE + 1 - 2) + LIE + 1);
    assert_int_equal(count_files(fixture, 0, path), 0);
    fixture->request.segments[1].states[LIE].bytes[5] ^= 1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_try_begins_where_the_one_before_was_killed),
        cmocka_unit_test(test_no_moment_to_be_killed_in_changes_the_result),
        cmocka_unit_test(test_what_is_damaged_is_dropped),
        cmocka_unit_test(test_a_lie_behind_it_is_refuted),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
