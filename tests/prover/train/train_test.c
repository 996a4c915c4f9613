/*
 * Goal: a run ends at the same bits, however it was interrupted.
 * Method: an uninterrupted run as the measure; stops by signal after every step, damaged
 * checkpoints, other instruction sets and thread counts, encrypted bundles; runs that diverge;
 * journals that are false; a device that fails steps; states that are hashed beside the next step.
 * Being killed and a full disk are in crash_test.py.
 */
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "proofs/commit/state_root.h"
#include "prover/train/energy.h"
#include "prover/train/train.h"
#include "tests/support/numeric/small_job.h"
#include "tests/support/test.h"

static struct job *small_job(void)
{
    struct small_job_options options;

    small_job_defaults(&options);
    return small_job_new(&options);
}

static enum status train_more(struct train_result *result, struct bundle *bundle, enum isa isa,
                              const struct train_options *options)
{
    struct error error;
    struct run run = {0};
    enum status status;

    error_init(&error);
    small_run_open(&run, bundle_job(bundle), isa, 1, false);
    status = bundle_set_device(bundle, isa_name(isa), &error);
    if (status == STATUS_OK) {
        status = train(result, bundle, &run, options, &error);
    }
    run_close(&run);
    return status;
}

/* The root after all steps of the small job, by stepping and nothing else. */
static struct digest expected_root(void)
{
    struct job *job = small_job();
    struct digest root;
    struct run run = {0};

    small_run_open(&run, job, isa_best(), 1, false);
    small_run_begin(&run);
    for (uint64_t i = 0; i < job->steps; i++) {
        small_run_step(&run);
    }
    assert_int_equal(state_root_of(&root, run.machine, NULL), STATUS_OK);
    run_close(&run);
    job_free(job);
    return root;
}

static void check_end(struct bundle *bundle)
{
    struct digest wanted = expected_root();
    struct digest root;
    uint64_t count = 0;

    assert_int_equal(bundle_step_count(&count, bundle, NULL), STATUS_OK);
    assert_int_equal(count, SMALL_JOB_STEPS);
    assert_int_equal(bundle_state_root(&root, bundle, SMALL_JOB_STEPS, NULL), STATUS_OK);
    assert_true(digest_equal(&root, &wanted));
    assert_int_equal(bundle_checkpoint_check(bundle, SMALL_JOB_STEPS, NULL), STATUS_OK);
}

static struct bundle *new_bundle(const char *name)
{
    struct bundle *bundle = NULL;

    assert_int_equal(bundle_create(&bundle, small_path(name), small_job(), NULL), STATUS_OK);
    return bundle;
}

static void test_run_commits_to_every_step(void **state)
{
    struct bundle *bundle = new_bundle("whole");
    struct train_options options = {0};
    struct train_result result = {0};
    uint64_t from = 0;

    (void)state;
    assert_int_equal(train_more(&result, bundle, isa_best(), &options), STATUS_OK);
    assert_true(result.first == 0 && result.steps == SMALL_JOB_STEPS && !result.diverged);
    check_end(bundle);
    for (uint64_t step = SMALL_JOB_SEGMENT; step <= SMALL_JOB_STEPS; step += SMALL_JOB_SEGMENT) {
        assert_int_equal(bundle_checkpoint_find(&from, bundle, from + 1, NULL), STATUS_OK);
        assert_int_equal(from, step);
        assert_int_equal(bundle_checkpoint_check(bundle, step, NULL), STATUS_OK);
    }
    /* Once more does nothing. */
    assert_int_equal(train_more(&result, bundle, isa_best(), &options), STATUS_OK);
    assert_true(result.first == SMALL_JOB_STEPS && result.steps == SMALL_JOB_STEPS);
    bundle_close(bundle);
}

/* ---- stops -------------------------------------------------------------- */

struct stopper {
    uint64_t at;
};

static void stop_at(void *context, const struct bundle_step *step)
{
    const struct stopper *stopper = context;

    if (step->step + 1 == stopper->at) {
        (void)raise(SIGTERM);
    }
}

static void test_run_stopped_after_any_step_goes_on(void **state)
{
    (void)state;
    for (uint64_t at = 1; at < SMALL_JOB_STEPS; at++) {
        struct stopper stopper = {at};
        struct stop stop = {.descriptor = -1};
        struct train_options options = {
            .stop = &stop, .progress = stop_at, .progress_context = &stopper};
        struct train_result result = {0};
        char name[32];

        (void)snprintf(name, sizeof(name), "stopped %d", (int)at);

        struct bundle *bundle = new_bundle(name);

        assert_int_equal(stop_open(&stop, NULL), STATUS_OK);
        assert_int_equal(train_more(&result, bundle, isa_best(), &options), STATUS_STOPPED);
        stop_close(&stop);
        assert_int_equal(result.steps, at);
        bundle_close(bundle);
        assert_int_equal(bundle_open(&bundle, small_path(name), BUNDLE_WRITE, NULL), STATUS_OK);
        options = (struct train_options){0};
        assert_int_equal(train_more(&result, bundle, isa_best(), &options), STATUS_OK);
        assert_int_equal(result.first, at); /* nothing is run twice */
        check_end(bundle);
        bundle_close(bundle);
    }
}

static void test_run_goes_on_with_other_instructions(void **state)
{
    struct bundle *bundle = new_bundle("other isa");
    struct stopper stopper = {7};
    struct stop stop = {.descriptor = -1};
    struct train_options options = {
        .stop = &stop, .progress = stop_at, .progress_context = &stopper};
    struct train_result result = {0};

    (void)state;
    assert_int_equal(stop_open(&stop, NULL), STATUS_OK);
    assert_int_equal(train_more(&result, bundle, isa_best(), &options), STATUS_STOPPED);
    stop_close(&stop);
    options = (struct train_options){.threads = 3};
    assert_int_equal(train_more(&result, bundle, ISA_SCALAR, &options), STATUS_OK);
    check_end(bundle);
    bundle_close(bundle);
}

/* ---- hashing beside the next step ------------------------------------------ */

/* Its state is hashed beside the next step wherever a second core is. */
static void wide_job(struct small_job_options *options)
{
    small_job_defaults(options);
    options->model.width = 128;
}

/* The root after each step, found when nothing else is done. */
static void roots_in_turn(struct digest roots[SMALL_JOB_STEPS], const struct job *job)
{
    struct run run = {0};

    small_run_open(&run, job, isa_best(), 1, false);
    small_run_begin(&run);
    for (uint64_t i = 0; i < job->steps; i++) {
        small_run_step(&run);
        assert_int_equal(state_root_of(&roots[i], run.machine, NULL), STATUS_OK);
    }
    assert_int_equal(state_root_can_overlap(run.machine, 1), omp_get_num_procs() > 1);
    run_close(&run);
}

static void check_roots(struct bundle *bundle, const struct digest roots[SMALL_JOB_STEPS],
                        uint64_t steps)
{
    uint64_t count = 0;

    assert_int_equal(bundle_step_count(&count, bundle, NULL), STATUS_OK);
    assert_int_equal(count, steps);
    for (uint64_t i = 0; i < steps; i++) {
        struct bundle_step entry;

        assert_int_equal(bundle_step_read(&entry, bundle, i, NULL), STATUS_OK);
        assert_true(digest_equal(&entry.root, &roots[i]));
        assert_true(entry.nanoseconds > 0);
    }
}

static void test_states_hashed_beside_the_next_step_have_their_roots(void **state)
{
    struct small_job_options options;
    struct digest roots[SMALL_JOB_STEPS];
    struct job *job;

    (void)state;
    wide_job(&options);
    job = small_job_new(&options);
    roots_in_turn(roots, job);
    job_free(job);
    for (uint64_t at = 1; at <= SMALL_JOB_STEPS; at += test_share(1, 4)) {
        struct stopper stopper = {at};
        struct stop stop = {.descriptor = -1};
        struct train_options training = {
            .stop = &stop, .progress = stop_at, .progress_context = &stopper, .threads = 1};
        struct train_result result = {0};
        struct bundle *bundle = NULL;
        char name[32];

        (void)snprintf(name, sizeof(name), "beside %d", (int)at);
        assert_int_equal(bundle_create(&bundle, small_path(name), small_job_new(&options), NULL),
                         STATUS_OK);
        assert_int_equal(stop_open(&stop, NULL), STATUS_OK);
        assert_int_equal(train_more(&result, bundle, isa_best(), &training),
                         at < SMALL_JOB_STEPS ? STATUS_STOPPED : STATUS_OK);
        stop_close(&stop);
        /* What is made already is journaled; nothing more is made. */
        assert_in_range(result.steps, at, at + 1);
        check_roots(bundle, roots, result.steps);
        assert_int_equal(bundle_checkpoint_check(bundle, result.steps, NULL), STATUS_OK);
        training = (struct train_options){.threads = 1};
        assert_int_equal(train_more(&result, bundle, isa_best(), &training), STATUS_OK);
        check_roots(bundle, roots, SMALL_JOB_STEPS);
        assert_int_equal(bundle_checkpoint_check(bundle, SMALL_JOB_STEPS, NULL), STATUS_OK);
        bundle_close(bundle);
    }
}

/* ---- damage -------------------------------------------------------------- */

static void test_damaged_checkpoints_cost_time_and_no_bits(void **state)
{
    struct bundle *bundle = new_bundle("damaged");
    struct stopper stopper = {18};
    struct stop stop = {.descriptor = -1};
    struct train_options options = {
        .stop = &stop, .progress = stop_at, .progress_context = &stopper};
    struct train_result result = {0};
    char path[FILE_PATH_MAX];

    (void)state;
    assert_int_equal(stop_open(&stop, NULL), STATUS_OK);
    assert_int_equal(train_more(&result, bundle, isa_best(), &options), STATUS_STOPPED);
    stop_close(&stop);
    assert_int_equal(bundle_checkpoint_path(path, bundle, 18, NULL), STATUS_OK);
    assert_int_equal(truncate(path, 100), 0);
    assert_int_equal(bundle_checkpoint_path(path, bundle, 15, NULL), STATUS_OK);
    assert_int_equal(unlink(path), 0);
    options = (struct train_options){0};
    assert_int_equal(train_more(&result, bundle, isa_best(), &options), STATUS_OK);
    assert_int_equal(result.first, 10);
    check_end(bundle);
    assert_int_equal(bundle_checkpoint_check(bundle, 15, NULL), STATUS_OK); /* written again */
    bundle_close(bundle);
}

static void test_step_that_the_journal_tells_otherwise_ends_the_run(void **state)
{
    const char *path = small_path("otherwise");
    struct bundle *bundle = small_bundle_new(path, small_job(), NULL, 14);
    struct train_options options = {0};
    struct train_result result = {0};
    char file[700];
    sqlite3 *database;

    (void)state;
    bundle_close(bundle);
    (void)snprintf(file, sizeof(file), "%s/journal.db", path);
    assert_int_equal(sqlite3_open(file, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database,
                                  "UPDATE steps SET root = randomblob(32) WHERE step = 12; "
                                  "DELETE FROM checkpoints WHERE step = 14",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(database);
    assert_int_equal(bundle_open(&bundle, path, BUNDLE_WRITE, NULL), STATUS_OK);
    assert_int_equal(train_more(&result, bundle, isa_best(), &options), STATUS_REFUSED);
    assert_int_equal(result.steps, 12);
    bundle_close(bundle);
}

/* ---- retention ---------------------------------------------------------- */

static void test_checkpoints_are_kept_as_wished(void **state)
{
    struct bundle *bundle = new_bundle("kept");
    struct train_options options = {.keep = 1, .every = 3};
    struct train_result result = {0};
    uint64_t step = 0;

    (void)state;
    assert_int_equal(train_more(&result, bundle, isa_best(), &options), STATUS_OK);
    assert_int_equal(bundle_checkpoint_find(&step, bundle, 0, NULL), STATUS_OK);
    assert_int_equal(step, 15);
    assert_int_equal(bundle_checkpoint_find(&step, bundle, 16, NULL), STATUS_OK);
    assert_int_equal(step, 20);
    check_end(bundle);
    bundle_close(bundle);
}

/* ---- divergence ---------------------------------------------------------- */

static void test_run_that_diverges_ends_there(void **state)
{
    struct small_job_options job_options;
    struct train_options options = {0};
    struct train_result result = {0};
    struct bundle *bundle = NULL;
    struct digest root;
    uint64_t step = 0;
    uint64_t count = 0;

    (void)state;
    small_job_diverging(&job_options);
    assert_int_equal(
        bundle_create(&bundle, small_path("diverging"), small_job_new(&job_options), NULL),
        STATUS_OK);
    assert_int_equal(train_more(&result, bundle, isa_best(), &options), STATUS_OK);
    assert_true(result.diverged);
    assert_in_range(result.steps, 1, SMALL_JOB_STEPS - 1);
    assert_int_equal(bundle_diverged(&step, bundle, NULL), STATUS_OK);
    assert_int_equal(step, result.steps - 1);
    assert_int_equal(bundle_step_count(&count, bundle, NULL), STATUS_OK);
    assert_int_equal(count, result.steps);
    assert_int_equal(
        bundle_segment_root(&root, bundle, (result.steps - 1) / SMALL_JOB_SEGMENT, NULL),
        STATUS_OK);
    /* It is at its end: resuming says so, and runs nothing. */
    bundle_close(bundle);
    assert_int_equal(bundle_open(&bundle, small_path("diverging"), BUNDLE_WRITE, NULL), STATUS_OK);
    count = result.steps;
    assert_int_equal(train_more(&result, bundle, isa_best(), &options), STATUS_OK);
    assert_true(result.diverged && result.steps == count);
    bundle_close(bundle);
}

/* ---- encrypted -------------------------------------------------------------- */

static void test_encrypted_run_goes_on_with_its_key(void **state)
{
    static const struct encryption_key key = {{9, 9, 9}};
    struct stopper stopper = {8};
    struct stop stop = {.descriptor = -1};
    struct train_options options = {
        .stop = &stop, .progress = stop_at, .progress_context = &stopper};
    struct train_result result = {0};
    struct bundle *bundle = NULL;

    (void)state;
    assert_int_equal(
        bundle_create_encrypted(&bundle, small_path("encrypted"), small_job(), &key, NULL, NULL),
        STATUS_OK);
    assert_int_equal(stop_open(&stop, NULL), STATUS_OK);
    assert_int_equal(train_more(&result, bundle, isa_best(), &options), STATUS_STOPPED);
    stop_close(&stop);
    bundle_close(bundle);
    options = (struct train_options){0};
    assert_int_equal(bundle_open(&bundle, small_path("encrypted"), BUNDLE_WRITE, NULL), STATUS_OK);
    assert_int_equal(train_more(&result, bundle, isa_best(), &options), STATUS_REFUSED);
    assert_int_equal(bundle_unlock(bundle, &key, NULL), STATUS_OK);
    assert_int_equal(train_more(&result, bundle, isa_best(), &options), STATUS_OK);
    assert_int_equal(result.first, 8);
    check_end(bundle);
    bundle_close(bundle);
}

/* ---- energy -------------------------------------------------------------- */

static void put_counter(const char *folder, int package, const char *name, const char *text)
{
    char path[700];

    (void)snprintf(path, sizeof(path), "%s/intel-rapl:%d", folder, package);
    (void)mkdir(path, 0755);
    (void)snprintf(path, sizeof(path), "%s/intel-rapl:%d/%s", folder, package, name);
    assert_int_equal(file_write(path, NULL, text, strlen(text), 0644), STATUS_OK);
}

static void test_energy_is_what_the_counters_say(void **state)
{
    const char *folder = small_path("powercap");
    struct energy energy;
    uint64_t used = 0;

    (void)state;
    energy_start(&energy, folder);
    assert_false(energy_stop(&used, &energy));
    energy_start(&energy, NULL);
    assert_false(energy_stop(&used, &energy));
    assert_int_equal(mkdir(folder, 0755), 0);
    put_counter(folder, 0, "energy_uj", "1000\n");
    put_counter(folder, 0, "max_energy_range_uj", "9999\n");
    put_counter(folder, 1, "energy_uj", "9000\n");
    put_counter(folder, 1, "max_energy_range_uj", "9999\n");
    energy_start(&energy, folder);
    put_counter(folder, 0, "energy_uj", "1500\n");
    assert_true(energy_stop(&used, &energy));
    assert_int_equal(used, 500);
    put_counter(folder, 1, "energy_uj", "1\n"); /* it came round */
    assert_true(energy_stop(&used, &energy));
    assert_int_equal(used, 500 + 1000);
    put_counter(folder, 1, "energy_uj", "broken\n");
    assert_false(energy_stop(&used, &energy));
}

/* ---- devices that fail ---------------------------------------------------- */

/* A backend before the real one, which fails steps and can come back with other bits. */
struct shim {
    struct backend table;
    const struct backend *real;
    uint64_t calls;
    uint64_t fail_at;   /* the call that fails */
    uint64_t fail_more; /* and so many of those after it */
    bool changed;       /* what comes after a failure is not what it was */
};
static struct shim *shim; /* a step is given the machine only */

static enum status shim_step(struct machine *machine, const struct observer *observer,
                             struct error *error)
{
    uint64_t call = ++shim->calls;
    enum status status;

    if (call >= shim->fail_at && call <= shim->fail_at + shim->fail_more) {
        uint8_t garbage[64];
        uint32_t id = machine->tape->states[1].before;

        /* The states are undefined then. */
        assert_true(commit_tensor_size(&machine->tape->tensors[id]) >= sizeof(garbage));
        memset((void *)(uintptr_t)machine->backend->peek(machine, id), 0x5a, sizeof(garbage));
        return error_set(error, STATUS_DEVICE, "a test's device fell off the bus");
    }
    status = shim->real->step(machine, observer, error);
    if (status == STATUS_OK && shim->changed && call > shim->fail_at) {
        uint32_t id = machine->tape->states[1].before;
        uint8_t *bytes = (uint8_t *)(uintptr_t)machine->backend->peek(machine, id);

        bytes[0] ^= 1;
    }
    return status;
}

static void count_retry(void *context, uint64_t step, const char *why)
{
    (void)step;
    assert_non_null(strstr(why, "fell off the bus"));
    (*(uint32_t *)context)++;
}

static enum status train_on_shim(struct train_result *result, struct bundle *bundle,
                                 struct shim *faults)
{
    uint32_t reply = 0;
    const struct train_options options = {.retrying = count_retry, .retrying_context = &reply};
    struct error error;
    struct run run = {0};
    enum status status;

    error_init(&error);
    small_run_open(&run, bundle_job(bundle), isa_best(), 1, false);
    faults->real = run.machine->backend;
    faults->table = *faults->real;
    faults->table.step = shim_step;
    run.machine->backend = &faults->table;
    shim = faults;
    status = train(result, bundle, &run, &options, &error);
    assert_int_equal(reply, result->retries);
    run.machine->backend = faults->real;
    run_close(&run);
    return status;
}

static void test_step_that_a_device_fails_is_tried_again_to_the_same_bits(void **state)
{
    (void)state;
    for (uint64_t at = 1; at <= SMALL_JOB_STEPS; at += test_share(1, 3)) {
        struct shim faults = {.fail_at = at};
        struct train_result result = {0};
        char name[32];
        struct bundle *bundle;

        (void)snprintf(name, sizeof(name), "failed-%d", (int)at);
        bundle = new_bundle(name);
        assert_int_equal(train_on_shim(&result, bundle, &faults), STATUS_OK);
        assert_int_equal(result.retries, 1);
        check_end(bundle);
        bundle_close(bundle);
    }
}

static void test_device_that_fails_a_step_twice_ends_the_run_which_goes_on_elsewhere(void **state)
{
    struct shim faults = {.fail_at = 8, .fail_more = 100};
    struct train_options options = {0};
    struct train_result result = {0};
    struct bundle *bundle = new_bundle("failed-twice");

    (void)state;
    assert_int_equal(train_on_shim(&result, bundle, &faults), STATUS_DEVICE);
    assert_int_equal(result.retries, 1);
    assert_int_equal(train_more(&result, bundle, isa_best(), &options), STATUS_OK);
    check_end(bundle);
    bundle_close(bundle);
}

static void test_device_that_comes_back_with_other_bits_is_not_believed(void **state)
{
    /* Step 8 fails in the middle of a segment: steps 5 to 7 are run again, and differ. */
    struct shim faults = {.fail_at = 9, .changed = true};
    struct train_result result = {0};
    struct bundle *bundle = new_bundle("failed-falsely");

    (void)state;
    assert_int_equal(train_on_shim(&result, bundle, &faults), STATUS_REFUSED);
    assert_int_equal(result.retries, 1);
    bundle_close(bundle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_commits_to_every_step),
        cmocka_unit_test(test_run_stopped_after_any_step_goes_on),
        cmocka_unit_test(test_states_hashed_beside_the_next_step_have_their_roots),
        cmocka_unit_test(test_run_goes_on_with_other_instructions),
        cmocka_unit_test(test_damaged_checkpoints_cost_time_and_no_bits),
        cmocka_unit_test(test_step_that_the_journal_tells_otherwise_ends_the_run),
        cmocka_unit_test(test_checkpoints_are_kept_as_wished),
        cmocka_unit_test(test_run_that_diverges_ends_there),
        cmocka_unit_test(test_encrypted_run_goes_on_with_its_key),
        cmocka_unit_test(test_energy_is_what_the_counters_say),
        cmocka_unit_test(test_step_that_a_device_fails_is_tried_again_to_the_same_bits),
        cmocka_unit_test(test_device_that_fails_a_step_twice_ends_the_run_which_goes_on_elsewhere),
        cmocka_unit_test(test_device_that_comes_back_with_other_bits_is_not_believed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
