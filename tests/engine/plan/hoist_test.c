/*
 * Goal: a tape in which equal operations are made once ends every step in the same states and makes
 * the same tensors; what lasts from step to step is made once, and again when what it depends on is
 * written.
 *
 * Method: each model, with and without micro-batches, after recompute.h and without it; random
 * tapes; states and traces against those of the tape. A machine with a frozen weight, whose
 * operations are counted in each step.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/plan/hoist.h"
#include "engine/plan/recompute.h"
#include "engine/tape/builder_core.h"
#include "tests/support/device/rewrite_check.h"
#include "tests/support/numeric/random_tape.h"
#include "tests/support/test.h"

#define SIDE 16

static void check(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fail_msg("%s", error->text);
    }
}

/* ---- equal operations ------------------------------------------------------- */

static struct tape *hoisted(const struct tape *tape)
{
    struct tape *rewrite = NULL;
    struct error error;

    error_init(&error);
    check(hoist_build(&rewrite, tape, &error), &error);
    return rewrite;
}

static uint32_t count_quantize(const struct tape *tape)
{
    uint32_t count = 0;

    for (uint32_t at = 0; at < tape->op_count; at++) {
        count += tape->ops[at].kind == OP_QUANTIZE;
    }
    return count;
}

static void test_models_end_alike_and_quantize_weights_once(void **state)
{
    (void)state;
    for (int turn = 0; turn < 2 * MODEL_COUNT; turn++) {
        struct model_options options;
        struct small_model small;
        struct tape *rewrite;

        small_model_options(&options, (enum model_kind)(turn / 2));
        options.accumulate = turn % 2 == 0 ? 1 : 4;
        options.group = turn % 2 == 0 ? 1 : 2;
        small_model_open(&small, &options);
        rewrite = hoisted(small.model.tape);
        (void)rewrite_compare_traces(&small, rewrite);
        rewrite_compare_states(&small, rewrite);
        print_message("%s, %u micro-batches: %u operations for %u\n", model_kind_name(options.kind),
                      options.accumulate, rewrite->op_count, small.model.tape->op_count);
        if (options.accumulate > 1) {
            assert_true(count_quantize(rewrite) < count_quantize(small.model.tape));
        }
        tape_free(rewrite);
        small_model_close(&small);
    }
}

static void test_both_rewrites_together_end_alike(void **state)
{
    (void)state;
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        struct model_options options;
        struct small_model small;
        struct tape *recomputed = NULL;
        struct tape *rewrite;
        struct error error;

        error_init(&error);
        small_model_options(&options, (enum model_kind)kind);
        options.accumulate = 4;
        options.equilibrate = true;
        small_model_open(&small, &options);
        check(recompute_build(&recomputed, small.model.tape, NULL, 4, &error), &error);
        rewrite = hoisted(recomputed);
        assert_true(rewrite->op_count < recomputed->op_count);
        rewrite_compare_states(&small, rewrite);
        tape_free(rewrite);
        tape_free(recomputed);
        small_model_close(&small);
    }
}

static void test_random_tapes_end_alike(void **state)
{
    uint32_t shared = 0;

    (void)state;
    for (uint64_t seed = 0; seed < test_share(20000, 150); seed++) {
        struct tape *tape = random_tape(seed, 4 + (uint32_t)(seed % 50));
        struct tape *rewrite = hoisted(tape);

        rewrite_compare_random(tape, rewrite, seed);
        shared += tape->op_count - rewrite->op_count;
        tape_free(rewrite);
        tape_free(tape);
    }
    assert_true(shared > 0);
}

/* ---- what lasts -------------------------------------------------------------- */

/* w += frozen . w, where frozen never changes, c and d are data and a constant. */
struct adapter {
    struct tape *tape;
    uint32_t frozen;
    uint32_t w;
    uint32_t data;
};

static void adapter_build(struct adapter *adapter)
{
    static const uint64_t square[2] = {SIDE, SIDE};
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    struct error error;
    uint32_t product;

    error_init(&error);
    adapter->data = build_tensor(builder, "data", DTYPE_F32, ROLE_DATA, 2, square);
    adapter->frozen = build_tensor(builder, "frozen", DTYPE_F32, ROLE_STATE, 2, square);
    adapter->w = build_tensor(builder, "w", DTYPE_F32, ROLE_STATE, 2, square);
    product =
        build_linear(builder, build_linear(builder, adapter->w, adapter->frozen), adapter->data);
    build_after(builder, adapter->frozen, adapter->frozen);
    build_after(builder, adapter->w, build_add(builder, adapter->w, product, 1));
    adapter->tape = NULL;
    check(builder_finish(&adapter->tape, builder, &error), &error);
    builder_free(builder);
}

static void count_op(void *context, uint32_t op, double seconds)
{
    uint32_t *count = context;

    (void)op;
    (void)seconds;
    ++*count;
}

static void fill(float *values, float first)
{
    for (int i = 0; i < SIDE * SIDE; i++) {
        values[i] = first + 0.001f * (float)(i * 37 % 101);
    }
}

static void write_all(struct machine *machine, const struct adapter *adapter, float frozen,
                      const float *data)
{
    float values[SIDE * SIDE];

    fill(values, frozen);
    assert_int_equal(machine->backend->write(machine, adapter->frozen, values, NULL), STATUS_OK);
    fill(values, 0.5f);
    assert_int_equal(machine->backend->write(machine, adapter->w, values, NULL), STATUS_OK);
    assert_int_equal(machine->backend->bind(machine, adapter->data, data, NULL), STATUS_OK);
}

static void test_what_lasts_is_made_once_and_again_when_it_is_written(void **state)
{
    uint32_t counts[2] = {0, 0};
    struct machine *machines[2];
    struct adapter adapter;
    float data[2][SIDE * SIDE];
    uint32_t in_first[2];

    (void)state;
    adapter_build(&adapter);
    fill(data[0], -0.25f);
    fill(data[1], 0.125f);
    for (int i = 0; i < 2; i++) {
        const struct machine_options options = {.isa = isa_best(),
                                                .thread_count = 1,
                                                .hoist = i == 1,
                                                .timed = count_op,
                                                .timed_context = &counts[i]};

        assert_int_equal(machine_open(&machines[i], adapter.tape, &options, NULL), STATUS_OK);
    }
    for (int turn = 0; turn < 9; turn++) {
        float w[2][SIDE * SIDE];

        for (int i = 0; i < 2; i++) {
            if (turn % 3 == 0) {
                write_all(machines[i], &adapter, 0.1f * (float)turn, data[turn / 3 % 2]);
            }
            counts[i] = 0;
            assert_int_equal(machines[i]->backend->step(machines[i], NULL, NULL), STATUS_OK);
            in_first[i] = turn % 3 == 0 ? counts[i] : in_first[i];
            assert_int_equal(machines[i]->backend->read(machines[i], adapter.w, w[i], NULL),
                             STATUS_OK);
        }
        assert_memory_equal(w[0], w[1], sizeof(w[0]));
        assert_int_equal(counts[0], in_first[0]);
        /* The frozen weight and the data are quantized in the first step after they are written. */
        assert_int_equal(counts[1], turn % 3 == 0 ? in_first[1] : in_first[1] - 2);
    }
    for (int i = 0; i < 2; i++) {
        machines[i]->backend->close(machines[i]);
    }
    tape_free(adapter.tape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models_end_alike_and_quantize_weights_once),
        cmocka_unit_test(test_both_rewrites_together_end_alike),
        cmocka_unit_test(test_random_tapes_end_alike),
        cmocka_unit_test(test_what_lasts_is_made_once_and_again_when_it_is_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
