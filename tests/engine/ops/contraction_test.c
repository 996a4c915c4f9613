/*
 * contraction_test.c - the rules of quantization and exact contraction have the bits that
 * docs/ARITHMETIC.md states, on ordinary and on hostile numbers, for any cut of K.
 *
 * Method: an independent reference (long double and 128-bit integers) checks the rules over random
 * shapes, views and values. contraction_kernels_test.c checks the kernels by the rules.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/numeric/contraction_problem.h"

static void test_rules_agree_with_the_reference(void **state)
{
    uint64_t seed = 1;

    (void)state;
    for (int turn = 0; turn < 120; turn++) {
        struct problem problem;

        problem_random(&seed, &problem);
        check_quantize(&problem, &problem.a);
        check_quantize(&problem, &problem.b);
        check_contract(&problem);
        problem_release(&problem);
    }
}

static void test_finish_rounds_once_and_once_more_where_subnormal(void **state)
{
    uint64_t seed = 2;

    (void)state;
    for (int turn = 0; turn < 400000; turn++) {
        int64_t sum = (int64_t)test_random(&seed) >> (1 + (int64_t)test_random_below(&seed, 63));
        int exponent = (int)(int64_t)test_random_below(&seed, 420) - 270;

        if ((int64_t)test_random_below(&seed, 2)) {
            sum &= ~((INT64_C(1) << (int64_t)test_random_below(&seed, 40)) - 1); /* ties */
        }
        assert_int_equal(contraction_finish(sum, exponent), reference_finish(sum, exponent));
    }
    assert_int_equal(contraction_finish(0, 50), 0);
    assert_int_equal(contraction_finish(-1, -400), UINT32_C(0x80000000));
    assert_int_equal(contraction_finish(1, -149), 1);
    assert_int_equal(contraction_finish(1, -150), 0); /* a tie, to even */
    assert_int_equal(contraction_finish(3, -151), 1);
    assert_int_equal(contraction_finish((1 << 25) - 1, 103), UINT32_C(0x7f800000));
    assert_int_equal(contraction_finish((1 << 24) - 1, 104), UINT32_C(0x7f7fffff));
    assert_int_equal(contraction_finish(INT64_MIN, -63), float_to_bits(-1.0F));
}

static void test_exponents_of_all_powers_and_their_neighbours(void **state)
{
    (void)state;
    for (uint32_t power = 0; power < 255; power++) {
        for (int step = -1; step <= 1; step++) {
            uint32_t bits = (power << 23) + (uint32_t)step;

            if (power > 0 || step >= 0) {
                assert_int_equal(exponent_of_bits(bits), reference_exponent(float_from_bits(bits)));
                assert_int_equal(exponent_of_bits(bits | UINT32_C(0x80000000)),
                                 exponent_of_bits(bits));
            }
        }
    }
    for (int place = 0; place < 23; place++) {
        assert_int_equal(exponent_of_bits(UINT32_C(1) << place), place - 148);
    }
    assert_int_equal(exponent_of_bits(UINT32_C(0x7f7fffff)), 128);
    assert_int_equal(exponent_of_bits(UINT32_C(0x7f800000)), EXPONENT_POISON);
    assert_int_equal(exponent_of_bits(FLOAT_NAN_BITS), EXPONENT_POISON);
}

/* Exponents and integers of a cheating solver: every value must give a value. UBSan watches. */
static void test_rules_are_total_on_hostile_operands(void **state)
{
    uint64_t seed = 3;

    (void)state;
    for (int turn = 0; turn < 60; turn++) {
        struct problem problem;

        problem_random(&seed, &problem);
        for (int64_t i = 0; i < problem.a.rows * problem.shape.blocks; i++) {
            problem.a.exponents[i] = (int16_t)test_random(&seed);
        }
        for (size_t i = 0; i < problem.a.q_size; i++) {
            ((uint8_t *)problem.a.q)[i] = (uint8_t)test_random(&seed);
        }
        struct rule_call call = contract_call(&problem);
        struct rule_call quantize = quantize_call(&problem.a, problem.bits);

        for (int64_t i = 0; i < problem.out_count; i++) {
            uint32_t bits = rule_contract(&call, (uint64_t)i);

            assert_true((bits & UINT32_C(0x7fffffff)) <= FLOAT_NAN_BITS);
        }
        for (int64_t i = 0; i < problem.a.rows * problem.k; i++) {
            int32_t q = (int32_t)rule_quantize_integer(&quantize, (uint64_t)i);

            assert_true(abs(q) < 1 << (problem.bits - 1));
        }
        problem_release(&problem);
    }
}

static void test_window_is_refused_exactly_past_its_longest_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        int room = 62 - 2 * (problem_bits[i] - 1);

        assert_int_equal(contraction_window(problem_bits[i], INT64_C(1) << room), 0);
        assert_int_equal(contraction_window(problem_bits[i], (INT64_C(1) << room) + 1), -1);
        assert_int_equal(contraction_window(problem_bits[i], 1), room / 2);
    }
}

/* ---- any cut of K ---- */

struct cut {
    struct contraction_shape shape;
    struct quantized_row rows[2];
};

static int64_t part_of(const struct cut *cut, int64_t part, int64_t parts)
{
    return contraction_partial(&cut->shape, &cut->rows[0], &cut->rows[1],
                               cut->shape.blocks * part / parts,
                               cut->shape.blocks * (part + 1) / parts);
}

static void check_cuts(const struct problem *problem)
{
    struct cut cut = {
        .shape = problem->shape,
        .rows = {{problem->a.q, problem->a.exponents}, {problem->b.q, problem->b.exponents}}};
    int64_t whole = part_of(&cut, 0, 1);
    int64_t *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int64_t threads[4] = {0};
    bool poison[2];
    int lowest = contraction_lowest(&poison[0], problem->a.exponents, problem->shape.blocks) +
                 contraction_lowest(&poison[1], problem->b.exponents, problem->shape.blocks);

    assert_true(shared != MAP_FAILED);
    for (int child = 0; child < 2; child++) {
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
            shared[child] = part_of(&cut, child, 2);
            _exit(0);
        }
    }
    for (int child = 0; child < 2; child++) {
        int status;

        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
#pragma omp parallel for num_threads(2)
    for (int part = 0; part < 4; part++) {
        threads[part] = part_of(&cut, part, 4);
    }
    assert_true(shared[0] + shared[1] == whole);
    assert_true(threads[0] + threads[1] + threads[2] + threads[3] == whole);
    assert_int_equal(contraction_finish(shared[0] + shared[1], lowest - 2 * (problem->bits - 1)),
                     float_to_bits(problem->out[0]));
    munmap(shared, 4096);
}

static void test_any_cut_of_k_over_threads_and_processes_adds_up(void **state)
{
    uint64_t seed = 9;

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        int64_t dims[8] = {1, 1, 1, 1, 1, 1, 1, 3001};
        struct problem problem;

        problem_init(&seed, &problem, dims, problem_bits[i], 64, 0, VALUES_SPREAD, true);
        check_cuts(&problem);
        problem_release(&problem);
    }
}
/* As the referee reads: fetched elements give what memory gives. */
static uint32_t fetch_element(void *context, uint32_t tensor, uint64_t index)
{
    return operand_get(&((const struct operand *)context)[tensor], index);
}

static void test_rules_fetch_gives_what_memory_gives(void **state)
{
    uint64_t seed = 11;

    (void)state;
    for (int turn = 0; turn < 40; turn++) {
        struct problem problem;

        problem_random(&seed, &problem);
        struct rule_call call = contract_call(&problem);
        struct operand sources[4];

        memcpy(sources, call.inputs, sizeof(sources));
        for (uint32_t i = 0; i < 4; i++) {
            call.inputs[i].memory = NULL;
            call.inputs[i].fetch = fetch_element;
            call.inputs[i].context = sources;
            call.inputs[i].tensor = i;
        }
        for (int64_t at = 0; at < problem.out_count; at += 1 + problem.out_count / 50) {
            assert_int_equal(rule_contract(&call, (uint64_t)at), float_to_bits(problem.out[at]));
        }
        problem_release(&problem);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exponents_of_all_powers_and_their_neighbours),
        cmocka_unit_test(test_finish_rounds_once_and_once_more_where_subnormal),
        cmocka_unit_test(test_window_is_refused_exactly_past_its_longest_row),
        cmocka_unit_test(test_rules_agree_with_the_reference),
        cmocka_unit_test(test_rules_are_total_on_hostile_operands),
        cmocka_unit_test(test_rules_fetch_gives_what_memory_gives),
        cmocka_unit_test(test_any_cut_of_k_over_threads_and_processes_adds_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
