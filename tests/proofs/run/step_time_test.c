/*
 * Goal: the time of a step is measured on the named job, and its products are counted.
 *
 * Method: a tape whose products are known; micro-batches against one; small jobs; data of another
 * job.
 */
#include "engine/tape/builder.h"
#include "proofs/run/step_time.h"
#include "tests/support/numeric/small_job.h"
#include "tests/support/numeric/small_model.h"
#include "tests/support/test.h"

static void test_products_of_a_linear_layer_are_its_sides(void **state)
{
    const uint64_t dims[2][2] = {{6, 40}, {10, 40}};
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    struct tape *tape = NULL;

    (void)state;
    (void)build_step(builder);
    uint32_t a = build_tensor(builder, "a", DTYPE_F32, ROLE_STATE, 2, dims[0]);
    uint32_t b = build_tensor(builder, "b", DTYPE_F32, ROLE_STATE, 2, dims[1]);
    build_output(builder, "product", build_linear(builder, a, b));
    assert_int_equal(builder_finish(&tape, builder, NULL), STATUS_OK);
    builder_free(builder);
    assert_true(step_time_products(tape) == 6.0 * 10.0 * 40.0);
    assert_int_equal(step_time_tokens(tape), 0);
    tape_free(tape);
}

/* Also of micro-batches that a machine's tape has as turns of a loop. */
static void test_products_and_tokens_are_those_of_all_micro_batches(void **state)
{
    static const uint32_t times[3] = {1, 2, 7};
    double products[3];
    uint64_t tokens[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct model_options options;
        struct small_model small;

        small_model_options(&options, MODEL_GPT2);
        options.accumulate = options.group = times[i];
        small_model_open(&small, &options);
        products[i] = step_time_products(small.model.tape);
        tokens[i] = step_time_tokens(small.model.tape);
        small_model_close(&small);
    }
    assert_true(products[0] > 0.0 &&
                products[2] - products[1] == 5.0 * (products[1] - products[0]));
    assert_int_equal(tokens[1], 2 * tokens[0]);
    assert_int_equal(tokens[2], 7 * tokens[0]);
}

static void test_step_of_a_job_is_timed_on_its_data_only(void **state)
{
    struct small_job_options options;
    struct machine_options machine;
    struct step_time time;
    size_t count = 0;

    (void)state;
    small_job_defaults(&options);
    struct job *job = small_job_new(&options);
    const char *const *paths = small_job_data(job, &count);
    const char *const wrong[] = {"README.md"};

    assert_int_equal(machine_options_default(&machine, NULL), STATUS_OK);
    machine.thread_count = 1;
    assert_int_equal(step_time_measure(&time, job, paths, count, &machine, 0.0, NULL), STATUS_OK);
    assert_int_equal(time.steps, 1);
    assert_true(time.seconds > 0.0);
    assert_true(time.hashing > 0.0);
    assert_int_equal(step_time_measure(&time, job, paths, count, &machine, 60.0, NULL), STATUS_OK);
    assert_int_equal(time.steps, STEP_TIME_STEPS_MAX);
    assert_true(step_time_tokens(job->tape) > 0);
    assert_int_not_equal(step_time_measure(&time, job, wrong, 1, &machine, 0.0, NULL), STATUS_OK);
    job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products_of_a_linear_layer_are_its_sides),
        cmocka_unit_test(test_products_and_tokens_are_those_of_all_micro_batches),
        cmocka_unit_test(test_step_of_a_job_is_timed_on_its_data_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
