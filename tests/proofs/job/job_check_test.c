/*
 * Goal: a job that would train nothing is refused, and the error names the tensor or operation.
 *
 * Method: one tape of two layers, y = (x w) u, spoiled in one way at a time, and made into a job.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/tape/builder.h"
#include "proofs/commit/commit.h"
#include "proofs/job/first_state.h"
#include "proofs/job/job_file.h"
#include "proofs/job/job_make.h"
#include "tests/support/numeric/small_job.h"
#include "tests/support/test.h"

#define RATES 6
#define SIDE  4

struct flaws {
    enum init_kind kind;   /* of w */
    enum init_kind second; /* of u */
    bool stays;            /* u has no gradient, and stays as it is */
    bool decays;           /* nor has this one, but it shrinks with each step */
    bool evaluates;        /* nothing changes */
    bool no_loss;
    bool late; /* u learns what a third micro-batch hands on of the first */
};

static uint32_t weight(struct builder *builder, const char *name, enum init_kind kind)
{
    static const uint64_t dims[2] = {SIDE, SIDE};
    uint32_t id = build_tensor(builder, name, DTYPE_F32, ROLE_STATE, 2, dims);
    uint32_t half = UINT32_C(0x3f000000);

    build_init(builder, id, (struct init){kind, kind >= INIT_CONSTANT ? half : 0});
    return id;
}

static void update(struct builder *builder, uint32_t state, uint32_t gradient, uint32_t rate)
{
    uint32_t change = build_scale(builder, gradient, -1.0f);

    change = build_mul(builder, change, rate, builder_tensor(builder, change)->count);
    build_after(builder, state, build_add(builder, state, change, 1));
}

/* What a micro-batch finds reaches u by two accumulators: two micro-batches later. */
static void update_late(struct builder *builder, uint32_t state, uint32_t found)
{
    static const uint64_t dims[2] = {SIDE, SIDE};
    const uint32_t first = build_fill(builder, 0.0f, 2, dims);
    const uint32_t second = build_fill(builder, 1.0f, 2, dims);
    uint32_t after;

    build_repeat(builder, 4, 4);
    after = build_add(builder, state, second, 1);
    build_carry(builder, state, after);
    build_carry(builder, second, build_scale(builder, first, 0.5f));
    build_carry(builder, first, build_add(builder, first, found, 1));
    build_repeat_end(builder);
    build_after(builder, state, after);
}

static struct tape *make_tape(const struct flaws *flaws)
{
    static const uint64_t dims[2] = {SIDE, SIDE};
    static const uint64_t rates[2] = {RATES, 1};
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    uint32_t x = build_tensor(builder, "x", DTYPE_F32, ROLE_DATA, 2, dims);
    uint32_t table = build_tensor(builder, "rates", DTYPE_F32, ROLE_CONSTANT, 2, rates);
    uint32_t of[2] = {weight(builder, "w", flaws->kind), weight(builder, "u", flaws->second)};
    uint32_t y = build_linear(builder, build_linear(builder, x, of[0]), of[1]);
    uint32_t rate = build_schedule(builder, table, 1, 0);
    uint32_t loss = build_mean(builder, y);
    uint32_t gradients[2];
    struct tape *tape = NULL;

    build_output(builder, "loss", loss);
    if (!flaws->no_loss) {
        build_loss(builder, loss);
    }
    if (!flaws->evaluates) {
        build_gradients(builder, gradients, loss, of, 2);
        update(builder, of[0], gradients[0], rate);
        if (flaws->decays) {
            build_after(builder, of[1], build_scale(builder, of[1], 0.5f));
        } else if (flaws->late) {
            update_late(builder, of[1], y);
        } else if (!flaws->stays) {
            update(builder, of[1], gradients[1], rate);
        }
    }
    assert_int_equal(builder_finish(&tape, builder, NULL), STATUS_OK);
    builder_free(builder);
    return tape;
}

static enum status make_job(const struct flaws *flaws, uint64_t steps, bool given,
                            struct error *error)
{
    const struct digest root = {{0}};
    const struct job_terms terms = {.steps = steps,
                                    .segment_length = 1,
                                    .data_roots = &root,
                                    .data_count = 1,
                                    .first_state_given = given};
    void **constants = calloc(1, sizeof(*constants));
    struct job *job = NULL;
    struct job *again = NULL;
    struct buffer bytes;
    enum status status;

    error_init(error);
    constants[0] = calloc(RATES, sizeof(float));
    status = job_from_tape(&job, make_tape(flaws), constants, 1, &terms, error);
    if (status == STATUS_OK) {
        buffer_init(&bytes, JOB_FILE_SIZE_MAX);
        assert_int_equal(job_encode(&bytes, job, error), STATUS_OK);
        assert_int_equal(job_parse(&again, bytes.data, bytes.size, error), STATUS_OK);
        buffer_release(&bytes);
        job_free(again);
        job_free(job);
    }
    return status;
}

static const struct flaws none = {.kind = INIT_NORMAL, .second = INIT_ZEROS};

static void check_refused(const struct flaws *flaws, uint64_t steps, bool given, const char *text)
{
    struct error error;

    assert_int_equal(make_job(flaws, steps, given, &error), STATUS_REFUSED);
    assert_non_null(strstr(error.text, text));
}

static void test_job_that_trains_is_accepted(void **state)
{
    struct error error;

    (void)state;
    assert_int_equal(make_job(&none, RATES, false, &error), STATUS_OK);
}

static void test_state_without_a_rule_must_be_given(void **state)
{
    struct flaws flaws = none;
    struct error error;

    (void)state;
    flaws.second = INIT_NONE;
    check_refused(&flaws, RATES, false, "no rule by which 'u' is drawn");
    assert_int_equal(make_job(&flaws, RATES, true, &error), STATUS_OK);
}

static void test_first_state_of_zeros_alone_is_refused(void **state)
{
    struct flaws flaws = none;

    (void)state;
    flaws.kind = INIT_ZEROS;
    check_refused(&flaws, RATES, false, "is zero, from 'w' on");
}

static void test_schedule_must_last_as_long_as_the_job(void **state)
{
    (void)state;
    check_refused(&none, RATES + 1, false, "(schedule) reads 'rates', which ends after 6");
    check_refused(&none, RATES + 1, true, "'rates'");
}

static void test_parameter_that_no_gradient_reaches_is_refused(void **state)
{
    struct flaws flaws = none;
    struct error error;

    (void)state;
    flaws.stays = true;
    check_refused(&flaws, RATES, false, "no gradient reaches the parameter 'u'");
    flaws.decays = true;
    check_refused(&flaws, RATES, true, "no gradient reaches the parameter 'u'");
    flaws.no_loss = true; /* Without a loss nobody can tell. */
    assert_int_equal(make_job(&flaws, RATES, false, &error), STATUS_OK);
    flaws = none;
    flaws.late = true;
    assert_int_equal(make_job(&flaws, RATES, true, &error), STATUS_OK);
    flaws = none;
    flaws.evaluates = true;
    assert_int_equal(make_job(&flaws, RATES, true, &error), STATUS_OK);
}

/* A safetensors file of the tape's two parameters, of one value. */
static const char *write_state(float value)
{
    static const char header[] =
        "{\"w\":{\"dtype\":\"F32\",\"shape\":[4,4],\"data_offsets\":[0,64]},"
        "\"u\":{\"dtype\":\"F32\",\"shape\":[4,4],\"data_offsets\":[64,128]}}";
    const char *path = small_path("given.safetensors");
    const uint64_t size = sizeof(header) - 1;
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(&size, 8, 1, file), 1); /* little-endian, as this machine */
    assert_int_equal(fwrite(header, size, 1, file), 1);
    for (int i = 0; i < 2 * SIDE * SIDE; i++) {
        assert_int_equal(fwrite(&value, 4, 1, file), 1);
    }
    assert_int_equal(fclose(file), 0);
    return path;
}

static void test_given_state_of_zeros_alone_is_refused(void **state)
{
    const float values[] = {1.0f, -0.0f};
    struct tape *tape = make_tape(&none);
    struct first_state first;
    struct digest root;
    struct error error;

    (void)state;
    for (int i = 0; i < 2; i++) {
        error_init(&error);
        assert_int_equal(first_state_open(&first, tape, write_state(values[i]), &error), STATUS_OK);
        assert_int_equal(first_state_root(&root, &first, &error),
                         values[i] == 0.0f ? STATUS_REFUSED : STATUS_OK);
        first_state_close(&first);
    }
    assert_non_null(strstr(error.text, "every number is zero, from 'w' on"));
    tape_free(tape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_job_that_trains_is_accepted),
        cmocka_unit_test(test_state_without_a_rule_must_be_given),
        cmocka_unit_test(test_first_state_of_zeros_alone_is_refused),
        cmocka_unit_test(test_schedule_must_last_as_long_as_the_job),
        cmocka_unit_test(test_parameter_that_no_gradient_reaches_is_refused),
        cmocka_unit_test(test_given_state_of_zeros_alone_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
