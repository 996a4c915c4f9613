/*
 * Goal: a step whose chains run slice by slice ends in the same states and makes the same tensors
 * as the step that has them whole, and its memory no longer grows with the square of its length.
 *
 * Method: random attention (sequences, groups of heads, lengths, bits, blocks, caps, windows, with
 * and without a mask) in slices of random size; models with and without micro-batches, under
 * recompute.h and hoist.h. States and losses are compared step by step, and in trace mode every
 * tensor that is left. Chains that must stay whole. The measured memory of a step.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "engine/cuda/machine/machine.h"
#include "engine/plan/chain.h"
#include "tests/support/device/fake_device.h"
#include "tests/support/device/rewrite_check.h"
#include "tests/support/numeric/random_op.h"
#include "tests/support/numeric/random_tape.h"
#include "tests/support/numeric/start.h"
#include "tests/support/test.h"

#define STEPS 3

static void check(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fail_msg("%s", error->text);
    }
}

/* ---- rewrites ----------------------------------------------------------------- */

static struct tape *in_slices(const struct tape *tape, uint64_t room, uint32_t parts)
{
    const struct chain_limits limits = {.room = room};

    return rewrite_in_slices(tape, &limits, parts);
}

/* ---- random attention ------------------------------------------------------------ */

/* Dropout has no axis. The extreme of each row is cut with the rows; an output is put together, but
 * not one of integers. */
enum odd { ODD_NONE, ODD_DROPOUT, ODD_SHARES_READ, ODD_SHARES_KEPT, ODD_PLACES_KEPT, ODD_COUNT };

struct attention {
    struct precision precision;
    uint64_t batch;
    uint64_t kv_heads;
    uint64_t group;
    uint64_t length;
    uint64_t d;
    bool causal;
    bool windows; /* a reach */
    bool capped;
    enum odd odd;
};

static struct attention random_attention(uint64_t seed)
{
    static const struct precision precisions[4] = {{14, 16}, {14, 128}, {16, 0}, {22, 32}};
    uint64_t random = seed;
    struct attention one = {.precision = precisions[random_op_below(&random, 4)]};

    one.batch = 1 + random_op_below(&random, 3);
    one.kv_heads = 1 + random_op_below(&random, 3);
    one.kv_heads += one.batch * one.kv_heads == 1;
    one.group = 1 + random_op_below(&random, 2);
    one.d = 2 + random_op_below(&random, 5);
    one.length = 2 * one.d + 1 + random_op_below(&random, 40);
    one.causal = random_op_below(&random, 4) != 0;
    one.windows = one.causal && random_op_below(&random, 3) == 0;
    one.capped = random_op_below(&random, 3) == 0;
    return one;
}

/* Queries, keys and values as states, which take steps along their gradients. */
static struct tape *attention_tape(const struct attention *one)
{
    const uint64_t b = one->batch;
    const uint64_t t = one->length;
    const uint64_t d = one->d;
    const uint64_t heads = one->kv_heads * one->group;
    const uint64_t wide = heads * d;
    const uint64_t kv_wide = one->kv_heads * d;
    const uint64_t square = t * t;
    const uint64_t q_dims[3] = {b, t, wide};
    const uint64_t kv_dims[3] = {b, t, kv_wide};
    const uint64_t reach_dims[2] = {b, t};
    const uint64_t score_dims[4] = {b, heads, t, t};
    const uint64_t weight_dims[2] = {3, wide};
    const struct view q_rows = {{b, one->kv_heads, one->group, t, 1, d},
                                {t * wide, one->group * d, d, wide, 0, 1}};
    const struct view k_rows = {{b, one->kv_heads, 1, t, 1, d}, {t * kv_wide, d, 0, kv_wide, 0, 1}};
    const struct view v_columns = {{b, one->kv_heads, 1, d, 1, t},
                                   {t * kv_wide, d, 0, 1, 0, kv_wide}};
    const uint64_t score_strides[6] = {heads * square, one->group * square, square, t, 0, 1};
    const struct view p_rows = {{b, one->kv_heads, one->group, t, 1, t},
                                {heads * square, one->group * square, square, t, 0, 1}};
    const uint64_t out_strides[6] = {t * wide, one->group * d, d, wide, 0, 1};
    struct builder *builder = builder_new(one->precision);
    const uint32_t of[3] = {build_tensor(builder, "q", DTYPE_F32, ROLE_STATE, 3, q_dims),
                            build_tensor(builder, "k", DTYPE_F32, ROLE_STATE, 3, kv_dims),
                            build_tensor(builder, "v", DTYPE_F32, ROLE_STATE, 3, kv_dims)};
    const uint32_t weight = build_tensor(builder, "w", DTYPE_F32, ROLE_CONSTANT, 2, weight_dims);
    const uint32_t reach =
        one->windows ? build_tensor(builder, "reach", DTYPE_U32, ROLE_CONSTANT, 2, reach_dims)
                     : TENSOR_NONE;
    const uint64_t causal = one->causal ? t : 0;
    uint32_t gradients[3];
    struct tape *tape = NULL;
    struct error error;
    uint32_t x = build_contract(builder, of[0], &q_rows, of[1], &k_rows, score_strides,
                                one->capped ? 0 : causal, 4, score_dims);

    error_init(&error);
    (void)build_step(builder);
    if (one->capped) {
        x = build_scale(builder, build_map(builder, MAP_TANH, build_scale(builder, x, 0.5f)), 2.0f);
    }
    x = build_softmax(builder, x, 0.375f, causal, reach);
    if (one->odd == ODD_DROPOUT) {
        x = build_dropout(builder, x, 0.25, 3, 77);
    } else if (one->odd == ODD_SHARES_READ) {
        build_output(builder, "most", build_extreme(builder, REDUCE_MAX, x, NULL));
    } else if (one->odd == ODD_PLACES_KEPT) {
        uint32_t places = 0;

        (void)build_extreme(builder, REDUCE_MAX, x, &places);
        build_output(builder, "places", places);
    } else if (one->odd == ODD_SHARES_KEPT) {
        build_output(builder, "p", x);
    }
    x = build_contract(builder, x, &p_rows, of[2], &v_columns, out_strides, 0, 3, q_dims);
    build_output(builder, "out", build_scale(builder, x, 1.0f));
    x = build_linear(builder, build_map(builder, MAP_TANH, x), weight);
    x = build_mean(builder, build_mul(builder, x, x, 1));
    build_loss(builder, x);
    build_gradients(builder, gradients, x, of, 3);
    for (int i = 0; i < 3; i++) {
        build_after(builder, of[i], build_add(builder, of[i], gradients[i], 1));
    }
    check(builder_finish(&tape, builder, &error), &error);
    builder_free(builder);
    return tape;
}

static uint64_t head_size(const struct attention *one)
{
    return one->group * one->length * one->length * sizeof(float);
}

/* How many products of whole score matrices a tape makes. */
static uint32_t count_whole(const struct tape *tape, uint64_t elements)
{
    uint32_t count = 0;

    for (uint32_t at = 0; tape != NULL && at < tape->op_count; at++) {
        count += tape->ops[at].kind == OP_CONTRACT &&
                 tape->tensors[tape->ops[at].outputs[0]].count == elements;
    }
    return count;
}

static void test_random_attention_ends_alike(void **state)
{
    uint32_t windows = 0;

    (void)state;
    for (uint64_t seed = 0; seed < test_share(600, 60); seed++) {
        const struct attention one = random_attention(seed);
        struct tape *tape = attention_tape(&one);
        const uint64_t elements = one.batch * one.kv_heads * head_size(&one) / sizeof(float);
        /* From a part of a head to all but one byte of all of them. */
        const uint64_t room =
            seed % 5 == 0 ? elements * sizeof(float) - 1 : (seed % 5) * head_size(&one) - 1;
        struct tape *rewrite =
            in_slices(tape, room < elements * sizeof(float) ? room : elements * sizeof(float) - 1,
                      seed % 3 == 2 ? 2 : 0);

        if (rewrite == NULL) {
            fail_msg("seed %llu: no chain", (unsigned long long)seed);
        }
        assert_int_equal(count_whole(tape, elements), 2);
        assert_int_equal(count_whole(rewrite, elements), 0);
        rewrite = seed % 2 == 0 ? rewrite : rewrite_hoisted(rewrite);
        rewrite_compare_random(tape, rewrite, seed);
        assert_true(rewrite_compare_tensors(tape, rewrite, seed) > 10);
        windows += one.windows;
        tape_free(rewrite);
        tape_free(tape);
    }
    assert_true(windows > 0);
}

/* On the emulated device, which fuses what it can of each slice. */
static void test_random_attention_ends_alike_on_a_device(void **state)
{
    const struct fake_device_switches sound = {0};
    const struct cuda_config config = {.calls = fake_device_calls()};

    (void)state;
    fake_device_set(&sound);
    for (uint64_t seed = 0; seed < test_share(40, 4); seed++) {
        const struct machine_options options = {.isa = isa_best(), .thread_count = 1};
        const struct attention one = random_attention(7 * seed + 3);
        struct tape *tape = attention_tape(&one);
        struct tape *rewrite = in_slices(tape, head_size(&one), 0);
        struct machine *machines[2] = {NULL, NULL};
        struct start start;
        struct error error;

        error_init(&error);
        assert_non_null(rewrite);
        start_random(&start, tape, seed);
        check(backend_cpu.open(&machines[0], tape, &options, &error), &error);
        check(machine_cuda_open(&machines[1], rewrite, &options, &config, &error), &error);
        start_steps(machines[0], &start, 2);
        start_steps(machines[1], &start, 2);
        start_compare(machines[0], machines[1], "attention in slices");
        machines[0]->backend->close(machines[0]);
        machines[1]->backend->close(machines[1]);
        start_release(&start);
        tape_free(rewrite);
        tape_free(tape);
    }
    assert_int_equal(fake_device_leftovers(), 0);
}

static void test_what_must_stay_whole_stays(void **state)
{
    (void)state;
    for (int turn = 0; turn <= ODD_COUNT; turn++) {
        struct attention one = random_attention(11);
        struct tape *rewrite = NULL;
        struct tape *tape;
        uint64_t room;

        one.batch = 2;
        one.odd = turn < ODD_COUNT ? (enum odd)turn : ODD_NONE;
        tape = attention_tape(&one);
        room = turn < ODD_COUNT ? head_size(&one) : one.batch * one.kv_heads * head_size(&one);
        rewrite = in_slices(tape, room, 0);
        const bool is_chain =
            turn < ODD_COUNT && one.odd != ODD_DROPOUT && one.odd != ODD_PLACES_KEPT;

        if (is_chain != (rewrite != NULL)) {
            fail_msg("turn %d: a chain is %s", turn, rewrite != NULL ? "there" : "missing");
        }
        if (rewrite != NULL) {
            rewrite_compare_random(tape, rewrite, (uint64_t)turn);
        }
        tape_free(rewrite);
        tape_free(tape);
    }
}

static void test_random_tapes_end_alike(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < test_share(4000, 100); seed++) {
        struct tape *tape = random_tape(seed, 4 + (uint32_t)(seed % 50));
        struct tape *rewrite = in_slices(tape, 1, 0);

        if (rewrite != NULL) {
            rewrite_compare_random(tape, rewrite, seed);
        }
        tape_free(rewrite);
        tape_free(tape);
    }
}

/* ---- models -------------------------------------------------------------------- */

static void test_models_end_alike(void **state)
{
    (void)state;
    for (int turn = 0; turn < 16; turn++) {
        struct model_options options;
        struct small_model small;
        struct tape *rewrite;

        small_model_options(&options, turn % 2 == 0 ? MODEL_GPT2 : MODEL_LLAMA);
        options.dropout = 0.0;
        options.length = options.positions = 45;
        options.layers = 2;
        options.accumulate = turn % 4 < 2 ? 1 : 4;
        options.group = turn % 4 < 2 ? 1 : 2;
        options.equilibrate = turn % 3 == 0;
        options.score_cap = turn % 5 == 0 ? 3.0 : 0.0;
        small_model_open(&small, &options);
        rewrite = in_slices(small.model.tape, 45 * 45 * sizeof(float), turn < 8 ? 0 : 3);
        assert_non_null(rewrite);
        rewrite = turn % 8 < 4 ? rewrite : rewrite_hoisted(rewrite);
        print_message("%s, %u micro-batches: %u operations for %u\n", model_kind_name(options.kind),
                      options.accumulate, rewrite->op_count, small.model.tape->op_count);
        assert_true(rewrite->op_count > small.model.tape->op_count);
        rewrite_compare_states(&small, rewrite);
        tape_free(rewrite);
        small_model_close(&small);
    }
}

/* ---- memory ---------------------------------------------------------------------- */

/* The most memory that this process has held so far, with one more step; MiB. */
static uint64_t peak_after_step(const struct small_model *small, bool whole)
{
    const struct machine_options options = {.isa = isa_best(), .thread_count = 1};
    struct machine *machine = NULL;
    struct rusage usage;
    struct error error;

    error_init(&error);
    check(whole ? backend_cpu.open(&machine, small->model.tape, &options, &error)
                : machine_open(&machine, small->model.tape, &options, &error),
          &error);
    small_machine_give(machine, small);
    small_machine_steps(machine, 1);
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    backend_cpu.close(machine);
    return (uint64_t)usage.ru_maxrss >> 10;
}

/* Scores of 8 heads at 2,048 tokens are 128 MiB, of one head 16 MiB. This test runs first, because
 * a peak only grows. */
static void test_a_long_step_holds_little(void **state)
{
    struct model_options options;
    struct small_model small;

    (void)state;
    small_model_options(&options, MODEL_GPT2);
    options.precision = PRECISION_DEFAULT;
    options.dropout = 0.0;
    options.batch = 1;
    options.length = options.positions = 2048;
    options.layers = 2;
    options.heads = 8;
    options.width = 32;
    small_model_open(&small, &options);
    const uint64_t sliced = peak_after_step(&small, false);
    const uint64_t whole = peak_after_step(&small, true);

    print_message("2,048 tokens: %llu MiB whole, %llu MiB in slices\n", (unsigned long long)whole,
                  (unsigned long long)sliced);
    assert_true(sliced < 200 && 3 * sliced < whole);
    small_model_close(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_long_step_holds_little),
        cmocka_unit_test(test_random_attention_ends_alike),
        cmocka_unit_test(test_random_attention_ends_alike_on_a_device),
        cmocka_unit_test(test_what_must_stay_whole_stays),
        cmocka_unit_test(test_random_tapes_end_alike),
        cmocka_unit_test(test_models_end_alike),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
