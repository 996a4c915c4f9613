/*
 * Goal: the kernels of integers, and of several elements of each row, give the bits of their rules;
 * and these say what docs/ARITHMETIC.md does.
 * Method: random operations of the kinds with tame, mixed and wild elements, by the kernel with 1
 * and 3 threads and by the loop over the rules, and without each output; rows of the greatest
 * length; by hand, ties, zeros of both signs, NaN, and what integers do at their ends.
 */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include "engine/cpu/cpu.h"
#include "engine/ops/integers.h"
#include "tests/support/numeric/random_op.h"

enum { SEEDS = 150 };

static const enum op_kind kinds[] = {OP_INTEGER, OP_TAKE, OP_SCATTER, OP_SORT};

struct bench {
    struct tape *tape;
    void *inputs[OP_INPUTS_MAX];
    void *outputs[OP_OUTPUTS_MAX];
};

static size_t size_of(const struct tape *tape, uint32_t tensor)
{
    return tape->tensors[tensor].count * dtype_size(tape->tensors[tensor].dtype);
}

static struct kernel_call call_of(struct bench *bench, int threads)
{
    struct kernel_call call = {
        .op = &bench->tape->ops[0], .tensors = bench->tape->tensors, .thread_count = threads};

    for (uint32_t i = 0; i < call.op->input_count; i++) {
        call.inputs[i] = bench->inputs[i];
    }
    for (uint32_t i = 0; i < call.op->output_count; i++) {
        call.outputs[i] = bench->outputs[i];
    }
    return call;
}

static void check_against_rules(struct bench *bench)
{
    const struct op *op = &bench->tape->ops[0];
    struct kernel_call call = call_of(bench, 1);
    struct kernel_table table;
    void *rules[OP_OUTPUTS_MAX] = {NULL};

    cpu_kernels(&table, isa_best());
    for (uint32_t i = 0; i < op->output_count; i++) {
        rules[i] = call.outputs[i] = calloc(1, size_of(bench->tape, op->outputs[i]));
        assert_non_null(rules[i]);
    }
    kernel_run_rules(&call);
    for (uint32_t without = 0; without <= op->output_count; without++) {
        for (int threads = 1; threads <= 3; threads += 2) {
            call = call_of(bench, threads);
            for (uint32_t i = 0; i < op->output_count; i++) {
                if (bench->outputs[i] == NULL) {
                    fail_msg("output %u has no room", i);
                    return;
                }
                memset(bench->outputs[i], 0xa5, size_of(bench->tape, op->outputs[i]));
            }
            call.outputs[without] = without < op->output_count ? NULL : call.outputs[without];
            table.kernels[op->kind].run(&call);
            for (uint32_t i = 0; i < op->output_count; i++) {
                if (i != without) {
                    assert_memory_equal(bench->outputs[i], rules[i],
                                        size_of(bench->tape, op->outputs[i]));
                }
            }
        }
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        free(rules[i]);
    }
}

static void open_bench(struct bench *bench, enum op_kind kind, uint64_t seed)
{
    *bench = (struct bench){.tape = random_op_tape(kind, seed)};
    const struct op *op = &bench->tape->ops[0];

    for (uint32_t i = 0; i < op->input_count; i++) {
        bench->inputs[i] = random_op_value(bench->tape, op->inputs[i],
                                           (enum random_mood)(seed % MOOD_COUNT), seed);
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        bench->outputs[i] = calloc(1, size_of(bench->tape, op->outputs[i]));
        assert_non_null(bench->outputs[i]);
    }
}

static void close_bench(struct bench *bench)
{
    const struct op *op = &bench->tape->ops[0];

    for (uint32_t i = 0; i < op->input_count; i++) {
        free(bench->inputs[i]);
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        free(bench->outputs[i]);
    }
    tape_free(bench->tape);
}

static void test_kernels_give_the_bits_of_their_rules(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            struct bench bench;

            open_bench(&bench, kinds[k], seed);
            check_against_rules(&bench);
            close_bench(&bench);
        }
    }
}

/* One row by the rules: rank, index, y. */
static void sort_row(uint32_t *out, const uint32_t *x, uint64_t count, bool descending)
{
    const struct op op = {.kind = OP_SORT,
                          .input_count = 1,
                          .output_count = 3,
                          .attribute_count = SORT_ATTRIBUTES,
                          .inputs = {0},
                          .outputs = {1, 2, 3},
                          .attributes = {1, (int64_t)count, descending}};
    struct tensor tensors[4];

    for (int i = 0; i < 4; i++) {
        tensors[i] = (struct tensor){.dtype = i == 1 || i == 2 ? DTYPE_U32 : DTYPE_F32,
                                     .rank = 1,
                                     .dims = {count},
                                     .count = count};
    }
    const struct kernel_call call = {.op = &op,
                                     .tensors = tensors,
                                     .thread_count = 1,
                                     .inputs = {x},
                                     .outputs = {out, out + count, out + 2 * count}};
    kernel_run_rules(&call);
}

static void test_equal_numbers_keep_their_order_and_nan_is_above_all(void **state)
{
    /* 1, NaN, -0, +0, -inf, 1, inf, another NaN */
    static const uint32_t x[8] = {0x3f800000, 0xffc12345, 0x80000000, 0x00000000,
                                  0xff800000, 0x3f800000, 0x7f800000, 0x7fc00000};
    static const uint32_t up[8] = {4, 2, 3, 0, 5, 6, 1, 7};
    static const uint32_t down[8] = {1, 7, 6, 0, 5, 2, 3, 4};
    uint32_t out[24];

    (void)state;
    sort_row(out, x, 8, false);
    assert_memory_equal(out + 8, up, sizeof(up));
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(out[up[i]], i);
        assert_int_equal(out[16 + i], i >= 6 ? FLOAT_NAN_BITS : x[up[i]]);
    }
    sort_row(out, x, 8, true);
    assert_memory_equal(out + 8, down, sizeof(down));
}

static void test_the_longest_row_is_sorted(void **state)
{
    uint32_t *x = calloc(SORT_COLUMNS_MAX, 4);
    uint32_t *out = calloc((size_t)3 * SORT_COLUMNS_MAX, 4);
    uint64_t random = 7;

    (void)state;
    assert_non_null(x);
    assert_non_null(out);
    for (uint32_t i = 0; i < SORT_COLUMNS_MAX; i++) {
        x[i] = UINT32_C(0x3f800000) | (uint32_t)(random_op_below(&random, 1000) << 10);
    }
    sort_row(out, x, SORT_COLUMNS_MAX, false);
    for (uint32_t i = 1; i < SORT_COLUMNS_MAX; i++) {
        const uint32_t *index = out + SORT_COLUMNS_MAX;

        assert_true(x[index[i - 1]] < x[index[i]] ||
                    (x[index[i - 1]] == x[index[i]] && index[i - 1] < index[i]));
    }
    free(x);
    free(out);
}

static void test_integers_come_round(void **state)
{
    const uint32_t top = UINT32_MAX;

    (void)state;
    assert_int_equal(element_integers(INTEGER_ADD, top, 2), 1);
    assert_int_equal(element_integers(INTEGER_SUB, 1, 2), top);
    assert_int_equal(element_integers(INTEGER_MUL, 0x10001, 0x10001), 0x20001);
    assert_int_equal(element_integers(INTEGER_DIV, top, 10), 429496729);
    assert_int_equal(element_integers(INTEGER_MOD, top, 10), 5);
    assert_int_equal(element_integers(INTEGER_DIV, 7, 0), top);
    assert_int_equal(element_integers(INTEGER_MOD, 7, 0), 7);
    assert_int_equal(element_integers(INTEGER_AND, 0xc, 0xa), 0x8);
    assert_int_equal(element_integers(INTEGER_OR, 0xc, 0xa), 0xe);
    assert_int_equal(element_integers(INTEGER_XOR, 0xc, 0xa), 0x6);
    assert_int_equal(element_integers(INTEGER_SHIFT_LEFT, 3, 31), UINT32_C(0x80000000));
    assert_int_equal(element_integers(INTEGER_SHIFT_LEFT, 3, 32), 0);
    assert_int_equal(element_integers(INTEGER_SHIFT_RIGHT, top, 31), 1);
    assert_int_equal(element_integers(INTEGER_SHIFT_RIGHT, top, 32), 0);
    assert_int_equal(element_integers(INTEGER_LESS, 1, top), 1); /* no sign */
    assert_int_equal(element_integers(INTEGER_LESS_EQUAL, top, top), 1);
    assert_int_equal(element_integers(INTEGER_EQUAL, 3, 4), 0);
    assert_int_equal(element_integers(INTEGER_NOT_EQUAL, 3, 4), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_give_the_bits_of_their_rules),
        cmocka_unit_test(test_equal_numbers_keep_their_order_and_nan_is_above_all),
        cmocka_unit_test(test_the_longest_row_is_sorted),
        cmocka_unit_test(test_integers_come_round),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
