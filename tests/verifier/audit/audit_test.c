/*
 * Goal: the auditor calls a true bundle proven, a false one refuted at the very step, and what it
 * cannot know "cannot tell".
 * Method: small true runs, and runs of solvers who cheat in each way that a state root can show.
 */
#include "tests/support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/io/stop.h"
#include "proofs/commit/trace.h"
#include "proofs/job/job_make.h"
#include "prover/train/train.h"
#include "verifier/audit/audit.h"
#include "verifier/check/workers.h"

#define STEPS   12
#define SEGMENT 4
#define SAMPLES "fixtures/images/shapes.npy"
#define LABELS  "fixtures/images/shapes-labels.npy"

static const char *const paths[2] = {SAMPLES, LABELS};

/* ---- jobs and runs ------------------------------------------------------ */

static struct job *make_job(uint64_t seed)
{
    struct model_options options;
    struct model model;
    struct digest roots[2];
    struct job_terms terms = {
        .steps = STEPS, .segment_length = SEGMENT, .data_roots = roots, .data_count = 2};
    struct job *job = NULL;
    struct error error;

    model_options_default(&options, MODEL_MLP);
    options.hidden = 8;
    options.batch = 4;
    options.steps = STEPS;
    options.warmup = 2;
    options.seed = seed;
    options.data_count = 2000;
    assert_int_equal(model_build(&model, &options, &error), STATUS_OK);
    for (uint32_t i = 0; i < 2; i++) {
        struct dataset dataset;
        uint32_t id = i == 0 ? model.data : model.labels;

        assert_int_equal(
            run_data_open(&dataset, &roots[i], &model.tape->tensors[id], paths[i], &error),
            STATUS_OK);
        dataset_close(&dataset);
    }
    assert_int_equal(job_from_model(&job, &model, &terms, &error), STATUS_OK);
    model_release(&model);
    return job;
}

static struct machine_options machine_here(void)
{
    return (struct machine_options){.isa = isa_best(), .thread_count = 1};
}

/* What a cheat does to the machine before step `step`; NULL: an honest solver. */
typedef void cheat_function(struct run *run, uint64_t step);

/* Trains as the solver does, lets the cheat act, and leaves the bundle closed at path. */
static void make_run(char *path, const char *name, uint64_t steps, cheat_function *cheat)
{
    struct machine_options options = machine_here();
    struct bundle *bundle = NULL;
    struct run run;
    struct error error;
    uint64_t at = 0;

    (void)snprintf(path, FILE_PATH_MAX, "%s/%s", test_temp_dir(), name);
    assert_int_equal(bundle_create(&bundle, path, make_job(7), &error), STATUS_OK);
    assert_int_equal(run_open(&run, bundle_job(bundle), paths, 2, &options, &error), STATUS_OK);
    assert_int_equal(bundle_restore(&at, bundle, run.machine, STEPS, &error), STATUS_OK);
    for (; at < steps; at++) {
        struct bundle_step entry = {.step = at};

        assert_int_equal(run.machine->backend->step(run.machine, NULL, &error), STATUS_OK);
        if (cheat != NULL) {
            cheat(&run, at);
        }
        assert_int_equal(run_loss(&entry.loss_bits, &run, &error), STATUS_OK);
        assert_int_equal(state_root_of(&entry.root, run.machine, &error), STATUS_OK);
        assert_int_equal(bundle_record(bundle, &entry, &error), STATUS_OK);
        if ((at + 1) % SEGMENT == 0) {
            assert_int_equal(bundle_checkpoint_write(bundle, run.machine, at + 1, &error),
                             STATUS_OK);
        }
    }
    run_close(&run);
    bundle_close(bundle);
}

static struct audit_result audit_with(const char *path, uint64_t sample, uint64_t seed,
                                      uint32_t worker_count)
{
    struct audit_options options = {
        .sample = sample, .sample_seed = seed, .threads = 1, .workers = worker_count};
    struct audit_result result;
    struct bundle *bundle = NULL;
    struct error error;

    assert_int_equal(bundle_open(&bundle, path, BUNDLE_READ, &error), STATUS_OK);
    audit(&result, bundle, paths, 2, &options);
    bundle_close(bundle);
    return result;
}

static struct audit_result audit_path(const char *path, uint64_t sample, uint64_t seed)
{
    return audit_with(path, sample, seed, 1);
}

/* ---- cheats ------------------------------------------------------------- */

static uint32_t tensor_named(const struct run *run, const char *name)
{
    for (uint32_t id = 0; id < run->job->tape->tensor_count; id++) {
        if (strcmp(run->job->tape->tensors[id].name, name) == 0) {
            return id;
        }
    }
    fail_msg("no tensor '%s'", name);
    return TENSOR_NONE;
}

/* Changes one element of a state by function of its value. */
static void change(struct run *run, const char *name, uint64_t element, float (*how)(float))
{
    uint32_t id = tensor_named(run, name);
    float values[4096];
    struct error error;

    assert_true(run->job->tape->tensors[id].count <= 4096);
    assert_int_equal(run->machine->backend->read(run->machine, id, values, &error), STATUS_OK);
    values[element] = how(values[element]);
    assert_int_equal(run->machine->backend->write(run->machine, id, values, &error), STATUS_OK);
}

static float one_ulp_up(float x)
{
    return nextafterf(x, INFINITY);
}

static float other_sign_of_zero(float x)
{
    return x == 0.0f ? -x : x;
}

static float zero(float x)
{
    return x * 0.0f;
}

static void cheat_one_ulp_in_step_five(struct run *run, uint64_t step)
{
    if (step == 5) {
        change(run, "layers.0.weight", 77, one_ulp_up);
    }
}

static void cheat_moment_in_last_step(struct run *run, uint64_t step)
{
    if (step == STEPS - 1) {
        change(run, "v.head.weight", 3, one_ulp_up);
    }
}

static void cheat_no_update_of_bias(struct run *run, uint64_t step)
{
    if (step == 2) {
        change(run, "head.bias", 0, zero);
    }
}

/* The bits of zero are compared, not its value. */
static void cheat_sign_of_zero(struct run *run, uint64_t step)
{
    if (step == 8) {
        change(run, "m.layers.0.weight", 0, other_sign_of_zero);
        change(run, "m.layers.0.weight", 0, zero);
        change(run, "m.layers.0.weight", 0, other_sign_of_zero);
    }
}

/* ---- tests -------------------------------------------------------------- */

static void test_an_honest_bundle_is_proven(void **state)
{
    char path[FILE_PATH_MAX];
    struct audit_result result;

    (void)state;
    make_run(path, "honest", STEPS, NULL);
    result = audit_path(path, 0, 0);
    assert_int_equal(result.answer, AUDIT_PROVEN);
    assert_int_equal(result.steps_checked, STEPS);
}

static void test_each_cheat_is_refuted_at_its_step(void **state)
{
    static const struct {
        const char *name;
        cheat_function *cheat;
        uint64_t step;
    } cheats[] = {{"ulp", cheat_one_ulp_in_step_five, 5},
                  {"moment", cheat_moment_in_last_step, STEPS - 1},
                  {"bias", cheat_no_update_of_bias, 2},
                  {"zero", cheat_sign_of_zero, 8}};

    (void)state;
    for (size_t i = 0; i < sizeof(cheats) / sizeof(cheats[0]); i++) {
        char path[FILE_PATH_MAX];
        struct audit_result result;

        make_run(path, cheats[i].name, STEPS, cheats[i].cheat);
        result = audit_path(path, 0, 0);
        assert_int_equal(result.answer, AUDIT_REFUTED);
        assert_int_equal(result.wrong_step, cheats[i].step);
        assert_false(digest_equal(&result.wrong_root, &result.true_root));
    }
}

/* A sample sees the cheat exactly when it holds the segment of the first wrong step: after the lie
 * the solver went on honestly from a false state. */
static void test_a_sample_refutes_when_it_holds_the_wrong_segment(void **state)
{
    char path[FILE_PATH_MAX];
    unsigned refuted = 0;

    (void)state;
    make_run(path, "sampled", STEPS, cheat_one_ulp_in_step_five);
    for (uint64_t seed = 0; seed < 24; seed++) {
        struct audit_result result = audit_path(path, 1, seed);

        assert_true(result.answer == AUDIT_REFUTED || result.answer == AUDIT_PROVEN);
        if (result.answer == AUDIT_REFUTED) {
            assert_int_equal(result.wrong_step, 5);
            refuted++;
        } else {
            assert_int_equal(result.steps_checked, SEGMENT);
        }
    }
    /* One of three segments: 24 fair draws miss it, or always hit it, once in ten thousand. */
    assert_in_range(refuted, 1, 23);
}

static void test_an_unfinished_run_is_proven_as_far_as_it_goes(void **state)
{
    char path[FILE_PATH_MAX];
    struct audit_result result;

    (void)state;
    make_run(path, "unfinished", 6, NULL);
    result = audit_path(path, 0, 0);
    assert_int_equal(result.answer, AUDIT_PROVEN);
    assert_int_equal(result.steps_checked, 6);
    assert_int_equal(result.steps_of_job, STEPS);
}

static void say_stop(void *context, uint64_t steps_done, uint64_t steps_wanted)
{
    (void)steps_wanted;
    if (steps_done > 0) {
        assert_int_equal(write(*(const int *)context, "", 1), 1);
    }
}

static void test_an_audit_that_is_stopped_counts_what_it_ran(void **state)
{
    char path[FILE_PATH_MAX];
    struct stop stop = {.descriptor = -1};
    struct audit_options options = {.threads = 1, .workers = 1, .progress = say_stop};
    struct audit_result result;
    struct bundle *bundle = NULL;
    struct error error;
    int ends[2];

    (void)state;
    make_run(path, "stopped", STEPS, NULL);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(stop_open_word(&stop, ends[0], &error), STATUS_OK);
    options.stop = &stop;
    options.progress_context = &ends[1];
    assert_int_equal(bundle_open(&bundle, path, BUNDLE_READ, &error), STATUS_OK);
    audit(&result, bundle, paths, 2, &options);
    assert_int_equal(result.answer, AUDIT_CANNOT_TELL);
    assert_non_null(strstr(result.reason.text, "stopped before step"));
    assert_true(result.steps_checked > 0 && result.steps_checked < STEPS);
    audit_result_release(&result);
    bundle_close(bundle);
    stop_close(&stop);
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(close(ends[1]), 0);
}

static void test_an_empty_journal_gives_no_answer(void **state)
{
    char path[FILE_PATH_MAX];
    struct audit_result result;

    (void)state;
    make_run(path, "empty", 0, NULL);
    result = audit_path(path, 0, 0);
    assert_int_equal(result.answer, AUDIT_CANNOT_TELL);
    assert_non_null(strstr(result.reason.text, "no step"));
}

static void test_foreign_data_gives_no_answer(void **state)
{
    static const char *const swapped[2] = {LABELS, SAMPLES};
    static const char *const wrong[2] = {SAMPLES, SAMPLES};
    char path[FILE_PATH_MAX];
    struct audit_options options = {.threads = 1};
    struct audit_result result;
    struct bundle *bundle = NULL;
    struct error error;

    (void)state;
    make_run(path, "foreign", 4, NULL);
    assert_int_equal(bundle_open(&bundle, path, BUNDLE_READ, &error), STATUS_OK);
    audit(&result, bundle, wrong, 2, &options);
    assert_int_equal(result.answer, AUDIT_CANNOT_TELL);
    audit(&result, bundle, paths, 1, &options);
    assert_int_equal(result.answer, AUDIT_CANNOT_TELL);
    audit(&result, bundle, swapped, 2, &options); /* a root says which file is which */
    assert_int_equal(result.answer, AUDIT_PROVEN);
    bundle_close(bundle);
}

/* A missing checkpoint costs time: the replay begins at an older one. */
static void test_an_older_checkpoint_replaces_a_lost_one(void **state)
{
    char path[FILE_PATH_MAX];
    char checkpoint[FILE_PATH_MAX + 64];

    (void)state;
    make_run(path, "lost", STEPS, NULL);
    (void)snprintf(checkpoint, sizeof(checkpoint), "%s/checkpoints/000000000008.safetensors", path);
    assert_int_equal(unlink(checkpoint), 0);
    for (uint64_t seed = 0; seed < 6; seed++) {
        struct audit_result result = audit_path(path, 1, seed);

        assert_int_equal(result.answer, AUDIT_PROVEN);
        assert_int_equal(result.steps_checked, SEGMENT);
    }
}

/* Flips a byte of the checkpoint before `step`, or removes it. */
static void spoil_checkpoint(const char *path, uint64_t step, bool remove)
{
    char checkpoint[FILE_PATH_MAX + 64];
    FILE *file;
    int byte;

    (void)snprintf(checkpoint, sizeof(checkpoint), "%s/checkpoints/%012llu.safetensors", path,
                   (unsigned long long)step);
    if (remove) {
        assert_int_equal(unlink(checkpoint), 0);
        return;
    }
    file = fopen(checkpoint, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, -1, SEEK_END), 0);
    byte = fgetc(file);
    assert_int_equal(fseek(file, -1, SEEK_END), 0);
    assert_int_not_equal(fputc(byte ^ 1, file), EOF);
    assert_int_equal(fclose(file), 0);
}

/* The last checkpoint is the trained model: true steps do not make up for it. */
static void test_a_bundle_without_a_true_last_checkpoint_is_not_proven(void **state)
{
    static const char *const last = "000000000012.safetensors";

    (void)state;
    for (int removed = 0; removed < 2; removed++) {
        char path[FILE_PATH_MAX];
        struct audit_result result;

        make_run(path, removed ? "last-removed" : "last-flipped", STEPS, NULL);
        spoil_checkpoint(path, STEPS, removed);
        for (uint64_t sample = 0; sample < 2; sample++) {
            result = audit_path(path, sample, 3);
            assert_int_equal(result.answer, AUDIT_CANNOT_TELL);
            assert_string_equal(result.checkpoints.last.name, last);
            assert_non_null(strstr(result.reason.text, last));
            assert_int_equal(result.checkpoints.checked, 2);
        }
    }
}

static void test_a_broken_checkpoint_on_the_way_is_named(void **state)
{
    char path[FILE_PATH_MAX];
    struct audit_result result;

    (void)state;
    make_run(path, "middle", STEPS, NULL);
    spoil_checkpoint(path, 8, false);
    spoil_checkpoint(path, 4, true);
    result = audit_path(path, 0, 0);
    assert_int_equal(result.answer, AUDIT_PROVEN);
    assert_int_equal(result.checkpoints.checked, 1);
    assert_int_equal(result.checkpoints.broken_count, 2);
    assert_string_equal(result.checkpoints.broken[0].name, "000000000004.safetensors");
    assert_string_equal(result.checkpoints.broken[1].name, "000000000008.safetensors");
}

/* A whole run that lists checkpoints, but not that of its end. */
static void test_a_last_checkpoint_that_is_not_even_listed_is_missing(void **state)
{
    char path[FILE_PATH_MAX];
    char command[FILE_PATH_MAX + 256];
    struct audit_result result;

    (void)state;
    make_run(path, "unlisted", STEPS, NULL);
    (void)snprintf(command, sizeof(command),
                   "python3 -c \"import sqlite3; c = sqlite3.connect('%s/journal.db'); "
                   "c.execute('DELETE FROM checkpoints WHERE step = 12'); c.commit()\"",
                   path);
    assert_int_equal(system(command), 0);
    result = audit_path(path, 0, 0);
    assert_int_equal(result.answer, AUDIT_CANNOT_TELL);
    assert_string_equal(result.checkpoints.last.name, "000000000012.safetensors");
}

/* ---- what else the journal says ------------------------------------------ */

static void change_journal(const char *path, const char *what)
{
    char command[FILE_PATH_MAX + 512];

    (void)snprintf(command, sizeof(command),
                   "python3 -c \"import sqlite3; c = sqlite3.connect('%s/journal.db'); "
                   "c.execute('%s'); c.commit()\"",
                   path, what);
    assert_int_equal(system(command), 0);
}

/* No root covers a loss: a forged one is named, is not proven, and refutes nobody. */
static void test_a_forged_loss_is_named_and_not_proven(void **state)
{
    char path[FILE_PATH_MAX];
    struct audit_result result;

    (void)state;
    make_run(path, "forged", STEPS, NULL);
    change_journal(path, "UPDATE steps SET loss = loss - 1 WHERE step IN (9, 6)");
    for (uint32_t workers = 1; workers <= 3; workers++) {
        result = audit_with(path, 0, 0, workers);
        assert_int_equal(result.answer, AUDIT_CANNOT_TELL);
        assert_int_equal(result.steps_checked, STEPS);
        assert_string_equal(result.figure.name, "loss");
        assert_int_equal(result.figure.step, 6);
        assert_int_equal(result.figure.journal_bits, result.figure.true_bits - 1);
        assert_non_null(strstr(result.reason.text, "loss of step 6"));
        assert_true(result.final_loss_known);
    }
}

static void sign_segment(const char *path, uint64_t segment)
{
    static const uint8_t signature[65] = {7};
    struct bundle *bundle = NULL;
    struct error error;

    assert_int_equal(bundle_open(&bundle, path, BUNDLE_WRITE, &error), STATUS_OK);
    assert_int_equal(bundle_segment_sign(bundle, segment, signature, sizeof(signature), &error),
                     STATUS_OK);
    bundle_close(bundle);
}

/* A rotten bit in the journal of an honest solver: its signature is of another segment. */
static void test_a_journal_that_was_not_signed_refutes_nobody(void **state)
{
    char path[FILE_PATH_MAX];
    struct audit_result result;

    (void)state;
    make_run(path, "rotten", STEPS, NULL);
    sign_segment(path, 1);
    change_journal(path, "UPDATE steps SET root = "
                         "(SELECT root FROM steps WHERE step = 2) WHERE step = 6");
    result = audit_path(path, 0, 0);
    assert_int_equal(result.answer, AUDIT_CANNOT_TELL);
    assert_non_null(strstr(result.reason.text, "its solver signed"));
    assert_non_null(strstr(result.reason.text, "segment 1"));
}

static void test_a_refutation_names_the_signature_that_it_refutes(void **state)
{
    char path[FILE_PATH_MAX];
    struct audit_result result;

    (void)state;
    make_run(path, "signed", STEPS, cheat_one_ulp_in_step_five);
    result = audit_path(path, 0, 0);
    assert_int_equal(result.answer, AUDIT_REFUTED);
    assert_int_equal(result.signature_size, 0);
    sign_segment(path, 1);
    result = audit_path(path, 0, 0);
    assert_int_equal(result.answer, AUDIT_REFUTED);
    assert_int_equal(result.wrong_segment, 1);
    assert_int_equal(result.signature_size, 65);
    assert_int_equal(result.signature[0], 7);
}

/* ---- several processes ----------------------------------------------------- */

/* However many replay, the answer is that of one: the first false step, and what was checked
 * before it. */
static void test_several_workers_say_what_one_says(void **state)
{
    static cheat_function *const cheats[] = {NULL, cheat_one_ulp_in_step_five,
                                             cheat_moment_in_last_step, cheat_no_update_of_bias};

    (void)state;
    for (size_t i = 0; i < sizeof(cheats) / sizeof(cheats[0]); i++) {
        char path[FILE_PATH_MAX];
        char name[32];
        struct audit_result one;

        (void)snprintf(name, sizeof(name), "workers-%zu", i);
        make_run(path, name, STEPS, cheats[i]);
        one = audit_path(path, 0, 0);
        for (uint32_t workers = 2; workers <= 5; workers++) {
            struct audit_result many = audit_with(path, 0, 0, workers);

            assert_int_equal(many.answer, one.answer);
            assert_int_equal(many.steps_checked, one.steps_checked);
            assert_int_equal(many.wrong_step, one.wrong_step);
            assert_true(digest_equal(&many.true_root, &one.true_root));
        }
    }
}

/* Without any checkpoint each check goes on where the last one ended. */
static void test_a_bundle_without_checkpoints_is_replayed_from_its_start(void **state)
{
    char path[FILE_PATH_MAX];
    struct audit_result result;

    (void)state;
    make_run(path, "bare", STEPS - 1, NULL);
    change_journal(path, "DELETE FROM checkpoints");
    for (uint32_t workers = 1; workers <= 3; workers++) {
        result = audit_with(path, 0, 0, workers);
        assert_int_equal(result.answer, AUDIT_PROVEN);
        assert_int_equal(result.steps_checked, STEPS - 1);
    }
    for (uint64_t seed = 0; seed < 4; seed++) {
        result = audit_path(path, 1, seed);
        assert_int_equal(result.answer, AUDIT_PROVEN);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_honest_bundle_is_proven),
        cmocka_unit_test(test_each_cheat_is_refuted_at_its_step),
        cmocka_unit_test(test_a_sample_refutes_when_it_holds_the_wrong_segment),
        cmocka_unit_test(test_an_unfinished_run_is_proven_as_far_as_it_goes),
        cmocka_unit_test(test_an_audit_that_is_stopped_counts_what_it_ran),
        cmocka_unit_test(test_an_empty_journal_gives_no_answer),
        cmocka_unit_test(test_foreign_data_gives_no_answer),
        cmocka_unit_test(test_an_older_checkpoint_replaces_a_lost_one),
        cmocka_unit_test(test_a_bundle_without_a_true_last_checkpoint_is_not_proven),
        cmocka_unit_test(test_a_broken_checkpoint_on_the_way_is_named),
        cmocka_unit_test(test_a_last_checkpoint_that_is_not_even_listed_is_missing),
        cmocka_unit_test(test_a_forged_loss_is_named_and_not_proven),
        cmocka_unit_test(test_a_journal_that_was_not_signed_refutes_nobody),
        cmocka_unit_test(test_a_refutation_names_the_signature_that_it_refutes),
        cmocka_unit_test(test_several_workers_say_what_one_says),
        cmocka_unit_test(test_a_bundle_without_checkpoints_is_replayed_from_its_start),
    };

    if (workers_asked(argc, argv)) {
        return workers_serve(argv, NULL);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
