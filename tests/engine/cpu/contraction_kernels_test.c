/*
 * contraction_kernels_test.c - every contraction kernel, with any number of threads, gives the bits
 * of the rules, and packed operands unpack to the rules' integers.
 *
 * Method: random shapes, views and values; then the extremes of the overflow proofs: everything at
 * the clamp, the longest rows, the widest exponent window.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cpu/cpu.h"
#include "engine/rules/rules.h"
#include "tests/support/numeric/contraction_problem.h"
#include "tests/support/numeric/op_case.h"

/* ---- the kernels against the rules ---- */

struct run {
    const struct kernel_table *table;
    int thread_count;
    bool peaks; /* are wanted */
};

static void kernel_run(const struct run *run, struct kernel_call *call)
{
    static const struct tensor numbers = {.dtype = DTYPE_F32};
    const struct kernel *kernel = &run->table->kernels[call->op->kind];

    call->tensors = &numbers; /* every operand has the id 0; only the type of x is looked at */
    call->thread_count = run->thread_count;
    call->scratch =
        take(kernel->scratch_size == NULL ? 0 : kernel->scratch_size(call->op, run->thread_count));
    kernel->run(call);
    free(call->scratch);
}

/* Runs QUANTIZE, checks its outputs against the rules, and returns its q buffer. */
static void *kernel_quantize(const struct run *run, const struct operand_case *operand,
                             const struct problem *problem)
{
    size_t exponents_size = (size_t)(operand->rows * problem->shape.blocks) * 2;
    size_t peaks_size = (size_t)(operand->rows * problem->shape.pieces) * 2;
    int16_t *exponents = take(exponents_size);
    int16_t *peaks = take(peaks_size);
    void *q = take(contraction_packed_size(&operand->op));
    uint8_t *unpacked = take(operand->q_size + 64);
    struct kernel_call call = {.op = &operand->op,
                               .inputs = {operand->x, operand->c},
                               .outputs = {run->peaks ? peaks : NULL, exponents, q}};

    kernel_run(run, &call);
    assert_memory_equal(exponents, operand->exponents, exponents_size);
    if (run->peaks) {
        assert_memory_equal(peaks, operand->peaks, peaks_size);
    }
    memset(unpacked, 0xa5, operand->q_size + 64);
    run->table->unpack(unpacked, q, &operand->op, run->thread_count);
    assert_memory_equal(unpacked, operand->q, operand->q_size);
    for (size_t i = 0; i < 64; i++) {
        assert_int_equal(unpacked[operand->q_size + i], 0xa5);
    }
    free(unpacked);
    free(exponents);
    free(peaks);
    return q;
}

static void check_kernel_contract(const struct run *run, const struct problem *problem, void *qa,
                                  void *qb)
{
    size_t size = (size_t)problem->out_count * sizeof(float);
    float *out = take(size);
    struct kernel_call call = {
        .op = &problem->contract,
        .inputs = {qa, problem->a.exponents, qb, problem->b.exponents},
        .outputs = {out},
    };

    kernel_run(run, &call);
    assert_memory_equal(out, problem->out, size);
    free(out);
}

static void check_kernel_ones(const struct run *run, const struct problem *problem, void *q)
{
    const struct operand_case *a = &problem->a;
    enum dtype dtype = problem->bits == 22 ? DTYPE_I32 : DTYPE_I16;
    struct op op = {.kind = OP_CONTRACT_ONES,
                    .attributes = {a->rows, problem->k, problem->bits, problem->block}};
    struct rule_call rule = {
        .op = &op,
        .inputs = {memory_operand(a->q, dtype), memory_operand(a->exponents, DTYPE_I16)}};
    float *out = take((size_t)a->rows * sizeof(float));
    struct kernel_call call = {.op = &op, .inputs = {q, a->exponents}, .outputs = {out}};

    kernel_run(run, &call);
    for (int64_t row = 0; row < a->rows; row++) {
        assert_int_equal(float_to_bits(out[row]), rule_contract_ones(&rule, (uint64_t)row));
    }
    free(out);
}

static void check_kernel_onehot(const struct run *run, const struct problem *problem, void *q)
{
    uint64_t seed = (uint64_t)problem->k;
    const struct operand_case *a = &problem->a;
    enum dtype dtype = problem->bits == 22 ? DTYPE_I32 : DTYPE_I16;
    int64_t words = 1 + (int64_t)test_random_below(&seed, 12);
    struct op op = {.kind = OP_CONTRACT_ONEHOT,
                    .attributes = {words, a->rows, problem->k, problem->bits, problem->block}};
    uint32_t *index = take((size_t)problem->k * sizeof(uint32_t));
    float *out = take((size_t)(words * a->rows) * sizeof(float));

    for (int64_t k = 0; k < problem->k; k++) {
        index[k] = (int64_t)test_random_below(&seed, 50) == 0
                       ? UINT32_MAX
                       : (uint32_t)(int64_t)test_random_below(&seed, words + 1);
    }
    struct rule_call rule = {.op = &op,
                             .inputs = {memory_operand(index, DTYPE_U32),
                                        memory_operand(a->q, dtype),
                                        memory_operand(a->exponents, DTYPE_I16)}};
    struct kernel_call call = {.op = &op, .inputs = {index, q, a->exponents}, .outputs = {out}};

    kernel_run(run, &call);
    for (int64_t i = 0; i < words * a->rows; i++) {
        assert_int_equal(float_to_bits(out[i]), rule_contract_onehot(&rule, (uint64_t)i));
    }
    free(index);
    free(out);
}

/* Experts of so many rows, some without one and some that nobody chose. */
static uint32_t *random_experts(uint64_t *seed, int64_t count, int64_t experts)
{
    uint32_t *index = take((size_t)count * sizeof(uint32_t));
    bool one = test_random_below(seed, 6) == 0; /* all rows have the same */

    for (int64_t i = 0; i < count; i++) {
        index[i] = test_random_below(seed, 40) == 0
                       ? UINT32_MAX
                       : (uint32_t)(one ? 0 : test_random_below(seed, (uint64_t)experts + 1));
    }
    return index;
}

/* B's rows are those of as many experts as divide them. */
static void check_kernel_chosen(const struct run *run, const struct problem *problem, void *qa,
                                void *qb)
{
    uint64_t seed = (uint64_t)problem->k;
    const struct operand_case *a = &problem->a;
    const struct operand_case *b = &problem->b;
    enum dtype dtype = problem->bits == 22 ? DTYPE_I32 : DTYPE_I16;
    int64_t experts = 1 + (int64_t)test_random_below(&seed, 5);

    while (b->rows % experts != 0) {
        experts--;
    }
    struct op op = {.kind = OP_CONTRACT_CHOSEN,
                    .attributes = {a->rows, experts, b->rows / experts, problem->k, problem->bits,
                                   problem->block}};
    int64_t count = a->rows * (b->rows / experts);
    uint32_t *index = random_experts(&seed, a->rows, experts);
    float *out = take((size_t)count * sizeof(float));
    struct rule_call rule = {
        .op = &op,
        .inputs = {memory_operand(a->q, dtype), memory_operand(a->exponents, DTYPE_I16),
                   memory_operand(index, DTYPE_U32), memory_operand(b->q, dtype),
                   memory_operand(b->exponents, DTYPE_I16)}};
    struct kernel_call call = {
        .op = &op, .inputs = {qa, a->exponents, index, qb, b->exponents}, .outputs = {out}};

    kernel_run(run, &call);
    for (int64_t i = 0; i < count; i++) {
        assert_int_equal(float_to_bits(out[i]), rule_contract_chosen(&rule, (uint64_t)i));
    }
    free(index);
    free(out);
}

static void check_kernel_chosen_rows(const struct run *run, const struct problem *problem, void *qa,
                                     void *qb)
{
    uint64_t seed = (uint64_t)problem->k + 1;
    const struct operand_case *a = &problem->a;
    const struct operand_case *b = &problem->b;
    enum dtype dtype = problem->bits == 22 ? DTYPE_I32 : DTYPE_I16;
    int64_t experts = 1 + (int64_t)test_random_below(&seed, 5);
    struct op op = {
        .kind = OP_CONTRACT_CHOSEN_ROWS,
        .attributes = {experts, a->rows, b->rows, problem->k, problem->bits, problem->block}};
    uint64_t count = (uint64_t)(experts * a->rows * b->rows);
    uint32_t *index = random_experts(&seed, problem->k, experts);
    float *out = take(count * sizeof(float));
    struct rule_call rule = {
        .op = &op,
        .inputs = {memory_operand(index, DTYPE_U32), memory_operand(a->q, dtype),
                   memory_operand(a->exponents, DTYPE_I16), memory_operand(b->q, dtype),
                   memory_operand(b->exponents, DTYPE_I16)}};
    struct kernel_call call = {
        .op = &op, .inputs = {index, qa, a->exponents, qb, b->exponents}, .outputs = {out}};

    kernel_run(run, &call);
    for (uint64_t turn = 0; turn < 300 && turn < 2 * count; turn++) {
        uint64_t i = test_random_below(&seed, count);

        assert_int_equal(float_to_bits(out[i]), rule_contract_chosen_rows(&rule, i));
    }
    free(index);
    free(out);
}

static void check_kernels(const struct run *run, const struct problem *problem, bool sums)
{
    void *qa = kernel_quantize(run, &problem->a, problem);
    void *qb = kernel_quantize(run, &problem->b, problem);

    check_kernel_contract(run, problem, qa, qb);
    if (sums) {
        check_kernel_ones(run, problem, qa);
        check_kernel_onehot(run, problem, qa);
        check_kernel_chosen(run, problem, qa, qb);
        check_kernel_chosen_rows(run, problem, qa, qb);
    }
    free(qa);
    free(qb);
}

/* The tables of fast kernels that this CPU runs; returns their number. */
static int tables(struct kernel_table *out)
{
    int count = 0;

    for (int isa = ISA_AVX2; isa < ISA_COUNT; isa++) {
        if (isa_available((enum isa)isa)) {
            cpu_kernels(&out[count++], (enum isa)isa);
        }
    }
    return count;
}

/* Every instruction set, with and without peaks, one with one thread and the other with two. */
static void check_all_kernels(const struct problem *problem, bool sums)
{
    struct kernel_table table[ISA_COUNT];
    int count = tables(table);
    int threads = (int)(problem->k & 1);

    for (int i = 0; i < 2 * count; i++) {
        struct run run = {
            .table = &table[i / 2], .thread_count = 1 + ((i + threads) & 1), .peaks = i % 2 == 0};

        check_kernels(&run, problem, sums);
    }
}

static void test_kernels_give_the_rules_bits(void **state)
{
    uint64_t turns = test_share(20000, 200);

    uint64_t seed = 4;

    (void)state;
    for (uint64_t turn = 0; turn < turns; turn++) {
        struct problem problem;

        problem_random(&seed, &problem);
        check_all_kernels(&problem, true);
        problem_release(&problem);
    }
}

/* Experts of more places and rows than are copied at a time. */
static void test_kernels_give_the_rules_bits_of_many_places(void **state)
{
    static const int64_t dims[8] = {1, 1, 1, 40, 1, 30, 1, 2500};
    static const int cuts[5][2] = {{14, 0}, {14, 128}, {16, 64}, {22, 0}, {22, 16}};
    uint64_t seed = 16;

    (void)state;
    for (int i = 0; i < 5; i++) {
        struct problem problem;

        problem_init(&seed, &problem, dims, cuts[i][0], cuts[i][1], 0, VALUES_NORMAL, true);
        problem_solve(&problem);
        check_all_kernels(&problem, true);
        problem_release(&problem);
    }
}

/* Shifts within the clamp and beyond it, on ordinary numbers, subnormals, infinities and NaNs. */
static void test_kernels_give_the_rules_bits_of_shifted_rows(void **state)
{
    static const int most[4] = {3, 40, 126, 5000};
    uint64_t turns = test_share(20000, 200);
    uint64_t seed = 14;

    (void)state;
    for (uint64_t turn = 0; turn < turns; turn++) {
        struct problem problem;

        problem_random(&seed, &problem);
        problem_shift(&seed, &problem, most[turn % 4]);
        check_all_kernels(&problem, false);
        problem_release(&problem);
    }
}

/*
 * What one operand is shifted by, the other is shifted back by. Channels that differ by up to 2^40
 * in one operand, and by the inverse in the other, are a product of ordinary rows: with the shifts
 * that say so, its bits are those of the ordinary rows.
 */
static void test_shifts_cancel_in_the_product(void **state)
{
    static const int64_t dims[8] = {1, 1, 1, 20, 1, 30, 1, 700};
    uint64_t seed = 15;

    (void)state;
    for (int turn = 0; turn < 8; turn++) {
        struct problem plain;
        struct problem scaled;

        problem_init(&seed, &plain, dims, 14, 128, 0, VALUES_NORMAL, true);
        problem_init(&seed, &scaled, dims, 14, 128, 0, VALUES_NORMAL, true);
        scaled.a.c = take((size_t)plain.k * sizeof(int16_t));
        scaled.b.c = take((size_t)plain.k * sizeof(int16_t));
        for (int64_t k = 0; k < plain.k; k++) {
            scaled.a.c[k] = (int16_t)((int64_t)test_random_below(&seed, 81) - 40);
            scaled.b.c[k] = (int16_t)-scaled.a.c[k];
            for (int64_t row = 0; row < 20; row++) {
                scaled.a.x[row * plain.k + k] = ldexpf(plain.a.x[row * plain.k + k], scaled.a.c[k]);
            }
            for (int64_t row = 0; row < 30; row++) {
                scaled.b.x[row * plain.k + k] = ldexpf(plain.b.x[row * plain.k + k], scaled.b.c[k]);
            }
        }
        scaled.a.op.input_count = 2;
        scaled.b.op.input_count = 2;
        problem_solve(&scaled);
        assert_memory_equal(scaled.out, plain.out, 600 * sizeof(float));
        check_all_kernels(&scaled, false);
        problem_release(&plain);
        problem_release(&scaled);
    }
}

static void test_kernels_every_bits_block_and_values(void **state)
{
    uint64_t seed = 5;

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        for (size_t j = 0; j < 6; j++) {
            for (int values = 0; values < VALUES_KINDS; values++) {
                int64_t dims[8] = {1, 1,  1, 19,
                                   1, 50, 1, 515 + (int64_t)test_random_below(&seed, 100)};
                struct problem problem;

                problem_init(&seed, &problem, dims, problem_bits[i], problem_blocks[j], 0,
                             (enum values)values, true);
                check_all_kernels(&problem, true);
                problem_release(&problem);
            }
        }
    }
}

/* Batches of one row by one row, of every kind of value; then in the widest window, all at the
 * clamp. */
static void test_kernels_one_row_by_one_row(void **state)
{
    uint64_t seed = 17;

    (void)state;
    for (int turn = 0; turn < 4 * 6 * 2 * VALUES_KINDS; turn++) {
        int bits = problem_bits[turn % 4];
        int64_t dims[8] = {1 + (int64_t)test_random_below(&seed, 3),
                           1 + (int64_t)test_random_below(&seed, 20),
                           1,
                           1,
                           1,
                           1,
                           1 + (int64_t)test_random_below(&seed, 2),
                           1 + (int64_t)test_random_below(&seed, 300)};
        struct problem problem;

        problem_init(&seed, &problem, dims, bits, problem_blocks[turn / 4 % 6], turn % 3 == 0,
                     (enum values)(turn / 24 % VALUES_KINDS), turn % 2 == 0);
        check_all_kernels(&problem, false);
        if (dims[6] == 1 && turn % 2 == 0) {
            int64_t count = dims[0] * dims[1] * dims[7];
            int window = contraction_window(bits, dims[7]);

            for (int64_t at = 0; at < count; at++) {
                bool low = at % dims[7] / 16 % 2 == 1;

                problem.a.x[at] = ldexpf(0x1.fffffep-1F, low ? -window : 0);
                problem.b.x[at] = low ? problem.a.x[at] : -problem.a.x[at];
            }
            problem_solve(&problem);
            check_contract(&problem);
            check_all_kernels(&problem, false);
        }
        problem_release(&problem);
    }
}

/* Tasks of several slices and panels, full tiles and every kind of edge. */
static void test_kernels_large_shapes(void **state)
{
    static const int64_t shapes[][8] = {
        {1, 1, 1, 150, 1, 230, 1, 1100}, /* five slices, ragged tasks */
        {1, 1, 1, 16, 1, 48, 1, 2049},   /* nine slices, one tile wide, odd */
        {1, 2, 1, 130, 1, 64, 1, 128},   /* attention mixing */
        {2, 1, 1, 100, 1, 100, 1, 64},   /* attention scores, batches straddle panels */
    };

    uint64_t seed = 6;

    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (int turn = 0; turn < 4; turn++) {
            int64_t m_count = shapes[i][2] * shapes[i][3];
            struct problem problem;

            problem_init(&seed, &problem, shapes[i], problem_bits[turn], turn == 3 ? 0 : 128,
                         turn == 1 ? m_count : 0, VALUES_NORMAL, turn != 2);
            check_all_kernels(&problem, false);
            problem_release(&problem);
        }
    }
}

/* Operands and results larger than the caches are written past them. Compares a sample. */
static void test_kernels_results_larger_than_the_caches(void **state)
{
    static const int64_t dims[8] = {1, 1, 1, 2601, 1, 2500, 1, 5300};
    struct kernel_table table[ISA_COUNT];
    int count = tables(table);
    struct problem problem = {.bits = 14, .block = 128, .k = 5300};
    size_t size = sizeof(float) * 2601 * 2500;
    float *out[2] = {take(size), take(size)};

    uint64_t seed = 12;

    (void)state;
    memcpy(problem.dims, dims, sizeof(dims));
    problem.shape = contraction_shape(problem.k, problem.bits, problem.block);
    operand_init(&seed, &problem.a, &problem, 2, VALUES_UNIFORM, true);
    operand_init(&seed, &problem.b, &problem, 4, VALUES_UNIFORM, true);
    problem.contract =
        (struct op){.kind = OP_CONTRACT,
                    .attributes = {1, 1, 1, 2601, 1, 2500, 1, 1, 1, 2500, 1, 1, 5300, 14, 128, 0}};
    for (int i = 0; i < 2 * count; i++) {
        struct run run = {.table = &table[i / 2], .thread_count = 1 + i % 2};
        void *q[2];

        for (int side = 0; side < 2; side++) {
            struct operand_case *operand = side == 0 ? &problem.a : &problem.b;

            q[side] = take(contraction_packed_size(&operand->op));
            kernel_run(&run, &(struct kernel_call){.op = &operand->op,
                                                   .inputs = {operand->x},
                                                   .outputs = {NULL, operand->exponents, q[side]}});
            run.table->unpack(operand->q, q[side], &operand->op, run.thread_count);
        }
        kernel_run(&run, &(struct kernel_call){
                             .op = &problem.contract,
                             .inputs = {q[0], problem.a.exponents, q[1], problem.b.exponents},
                             .outputs = {out[i > 0]}});
        assert_memory_equal(out[i > 0], out[0], size);
        free(q[0]);
        free(q[1]);
    }
    struct rule_call call = contract_call(&problem);
    struct rule_call quantize = quantize_call(&problem.a, problem.bits);

    if (problem.a.q == NULL) {
        fail_msg("nothing was quantized");
        return;
    }
    for (int turn = 0; turn < 300 && count > 0; turn++) {
        int64_t at = (int64_t)test_random_below(&seed, 2601 * 2500);
        int64_t q = (int64_t)test_random_below(&seed, 2601 * 5300);

        assert_int_equal(float_to_bits(out[0][at]), rule_contract(&call, (uint64_t)at));
        assert_int_equal((int16_t)rule_quantize_integer(&quantize, (uint64_t)q),
                         ((int16_t *)problem.a.q)[q]);
    }
    operand_release(&problem.a);
    operand_release(&problem.b);
    free(out[0]);
    free(out[1]);
}

/* ---- the extremes of the proofs ---- */

/* All elements at the clamp, in phase: every partial sum is the largest possible. */
static void test_extremes_longest_rows_at_the_clamp(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        for (int64_t k = 50257; k <= 50258; k++) {
            int64_t dims[8] = {1, 1, 1, 2, 1, 3, 1, k};
            struct problem problem;

            uint64_t seed = 7;

            problem_init(&seed, &problem, dims, problem_bits[i], problem_bits[i] == 22 ? 0 : 128, 0,
                         VALUES_FULL, true);
            for (int64_t at = 0; at < 2 * k; at++) { /* make them equal: S = K * Q^2 */
                problem.a.x[at] = 0x1.fffffep-1F;
            }
            for (int64_t at = 0; at < 3 * k; at++) {
                problem.b.x[at] = at < k ? 0x1.fffffep-1F : -0x1.fffffep-1F;
            }
            problem_solve(&problem);
            wide largest = (1 << (problem.bits - 1)) - 1;

            assert_int_equal(float_to_bits(problem.out[0]),
                             reference_finish(largest * largest * k, -2 * (problem.bits - 1)));
            check_contract(&problem);
            check_all_kernels(&problem, true);
            problem_release(&problem);
        }
    }
}

/*
 * The widest window: every other block at the top and at the clamp, the others W below, both
 * operands in phase. |S| comes as close to 2^62 as the proof allows.
 */
static void test_extremes_widest_exponent_window(void **state)
{
    static const int64_t lengths[] = {16, 17, 32, 33, 64, 65, 127, 128, 129, 256, 257, 1024, 1025};

    uint64_t seed = 8;

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        for (size_t j = 0; j < sizeof(lengths) / sizeof(lengths[0]); j++) {
            for (int64_t block = 16; block <= 128; block *= 2) {
                int64_t k = lengths[j];
                int64_t dims[8] = {1, 1, 1, 2, 1, 17, 1, k};
                int window = contraction_window(problem_bits[i], k);
                struct problem problem;

                assert_true(window >= 0);
                problem_init(&seed, &problem, dims, problem_bits[i], block, 0, VALUES_FULL, true);
                for (int64_t at = 0; at < 19 * k; at++) {
                    bool low = at % k / block % 2 == 0 && k > block;
                    float x = ldexpf(0x1.fffffep-1F, low ? -window : 0);

                    *(at < 2 * k ? &problem.a.x[at] : &problem.b.x[at - 2 * k]) = x;
                }
                problem_solve(&problem);
                check_contract(&problem);
                check_all_kernels(&problem, true);
                problem_release(&problem);
            }
        }
    }
}

/*
 * One operand is at the clamp, so its norm exceeds 32 bits; the other is in phase with a norm just
 * below 2^30. Their dot product exceeds 2^31, though the saturated norms' product is below 2^62.
 */
static void test_extremes_norms_that_do_not_fit(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        int64_t dims[8] = {1, 1, 1, 8, 1, 48, 1, 512};
        uint64_t seed = 13;
        struct problem problem;

        problem_init(&seed, &problem, dims, problem_bits[i], 128, 0, VALUES_FULL, true);
        for (int64_t at = 0; at < 8 * 512; at++) {
            problem.a.x[at] = 0x1.fffffep-1F;
        }
        for (int64_t at = 0; at < 48 * 512; at++) {
            problem.b.x[at] = at % 128 == 5 ? 0.6F : 2650.0F / 8192.0F;
        }
        problem_solve(&problem);
        check_contract(&problem);
        check_all_kernels(&problem, true);
        problem_release(&problem);
    }
}

/*
 * S = 4097^2 * 2^30 + d: just past, on, and just before a tie of binary32, with the difference 55
 * bits below the top. A conversion that rounds twice, through binary64, gets one of them wrong.
 */
static void test_extremes_sums_beside_a_tie(void **state)
{
    (void)state;
    for (int step = -1; step <= 1; step++) {
        int64_t dims[8] = {1, 1, 1, 3, 1, 20, 1, 32};
        uint64_t seed = 14;
        struct problem problem;

        problem_init(&seed, &problem, dims, 14, 16, 0, VALUES_NORMAL, true);
        for (int64_t at = 0; at < 23 * 32; at++) {
            float x = at % 32 == 3 ? 4097.0F / 8192.0F : 0.0F;

            if (at % 32 == 20) {
                x = at < 3 * 32 ? (float)step * 0x1p-28F : 0x1p-28F;
            }
            *(at < 3 * 32 ? &problem.a.x[at] : &problem.b.x[at - 3 * 32]) = x;
        }
        problem_solve(&problem);
        assert_int_equal(float_to_bits(problem.out[0]),
                         reference_finish((wide)4097 * 4097 * (1 << 30) + step, -30 - 26));
        check_contract(&problem);
        check_all_kernels(&problem, true);
        problem_release(&problem);
    }
}

/* ---- rounding ---- */

/* A tie between two integers of a block whose exponent is `exponent`, one step of binary32 beside
 * it, a zero of either sign, or a subnormal. Its magnitude is below 2^exponent. */
static float beside_tie(uint64_t *seed, int exponent, int bits)
{
    const double below = ldexp(1, exponent);
    float x;

    do {
        double n = (double)test_random_below(seed, UINT64_C(1) << (bits - 1));

        x = (float)ldexp(test_random_below(seed, 8) == 0 ? n : n + 0.5, exponent - bits + 1);
        switch (test_random_below(seed, 8)) {
        case 0:
            x = 0.0F;
            break;
        case 1:
            x = float_from_bits((uint32_t)test_random(seed) & UINT32_C(0x007fffff));
            break;
        case 2:
        case 3:
            x = nextafterf(x, INFINITY);
            break;
        case 4:
        case 5:
            x = nextafterf(x, 0.0F);
            break;
        }
    } while (!((double)x < below));
    return test_random(seed) & 1 ? -x : x;
}

/* Gives each row its own exponent, from `first` on, at the first element of each block. Where there
 * are shifts, what is read shifted stands beside a tie. */
static void fill_beside_ties(uint64_t *seed, struct operand_case *operand,
                             const struct problem *problem, int first)
{
    for (int64_t row = 0; row < operand->rows; row++) {
        int exponent = first + (int)row > 128 ? 128 : first + (int)row;

        for (int64_t k = 0; k < problem->k; k++) {
            float *x = &operand->x[quantize_place(&operand->op, (uint64_t)row, (uint64_t)k)];
            float peak =
                exponent == 128 ? 0x1.fffffep+127F : nextafterf((float)ldexp(1, exponent), 0.0F);

            *x = k % problem->shape.block == 0 ? peak : beside_tie(seed, exponent, problem->bits);
            if (operand->c != NULL) {
                float back = ldexpf(*x, operand->c[k]);

                *x = isfinite(back) ? back : *x;
            }
        }
    }
}

/* One operand with k along memory, the other with its rows along memory. */
static void init_two_ways(uint64_t *seed, struct problem *problem, int bits, int64_t block)
{
    static const int64_t dims[8] = {1, 1, 1, 33, 1, 32, 1, 75};
    int64_t *strides;

    problem_init(seed, problem, dims, bits, block, 0, VALUES_NORMAL, true);
    strides = &problem->b.op.attributes[QUANTIZE_STRIDES];
    strides[3] = 1;
    strides[5] = problem->b.rows;
}

/* Ties at every exponent that a number has: integers are rounded once, to even, on each set. */
static void test_integers_beside_ties_at_every_exponent(void **state)
{
    uint64_t seed = 18;

    (void)state;
    for (int first = -148; first <= 128; first += 31) {
        for (int turn = 0; turn < 8; turn++) {
            struct problem problem;

            init_two_ways(&seed, &problem, problem_bits[turn % 4], turn < 4 ? 32 : 0);
            fill_beside_ties(&seed, &problem.a, &problem, first);
            fill_beside_ties(&seed, &problem.b, &problem, first);
            problem_solve(&problem);
            check_quantize(&problem, &problem.a);
            check_quantize(&problem, &problem.b);
            check_all_kernels(&problem, false);
            problem_release(&problem);
        }
    }
}

/* The same of numbers that are read shifted, at both ends of the clamp and on both sides of them,
 * beside rows of which a block holds a NaN or an infinity. */
static void test_integers_beside_ties_shifted_and_poisoned(void **state)
{
    static const int16_t ends[6] = {-125, -126, -127, 125, 126, 127};
    uint64_t seed = 19;

    (void)state;
    for (int turn = 0; turn < 48; turn++) {
        struct problem problem;

        init_two_ways(&seed, &problem, problem_bits[turn % 4], turn % 3 == 0 ? 0 : 16);
        problem_shift(&seed, &problem, 1);
        for (int64_t k = 0; k < problem.k; k++) {
            problem.a.c[k] = ends[test_random_below(&seed, 6)];
            problem.b.c[k] = turn < 24 ? ends[turn % 6] : (int16_t)-problem.a.c[k];
        }
        fill_beside_ties(&seed, &problem.a, &problem, turn * 5 - 140);
        fill_beside_ties(&seed, &problem.b, &problem, turn * 5 - 140);
        for (int64_t row = turn % 2; row < 32; row += 7) {
            const uint64_t k = test_random_below(&seed, 75);
            const float poison = row % 3 == 0 ? float_from_bits(FLOAT_NAN_BITS) : -INFINITY;

            problem.a.x[quantize_place(&problem.a.op, (uint64_t)row, k)] = poison;
            problem.b.x[quantize_place(&problem.b.op, (uint64_t)row, k)] = poison;
        }
        problem_solve(&problem);
        check_all_kernels(&problem, false);
        problem_release(&problem);
    }
}

/* ---- properties ---- */

/* Exchanging the operands and their strides does not change out. */
static void test_exchanged_operands_give_the_transpose(void **state)
{
    struct kernel_table table[ISA_COUNT];
    int count = tables(table);

    uint64_t seed = 10;

    (void)state;
    for (int turn = 0; turn < 60; turn++) {
        struct problem problem;
        struct problem other;

        problem_random(&seed, &problem);
        other = problem;
        for (int i = 0; i < 2; i++) {
            int64_t *a = other.contract.attributes;

            a[2 + i] = problem.contract.attributes[4 + i];
            a[4 + i] = problem.contract.attributes[2 + i];
            a[8 + i] = problem.contract.attributes[10 + i];
            a[10 + i] = problem.contract.attributes[8 + i];
        }
        other.a = problem.b;
        other.b = problem.a;
        if (problem.causal == 0) {
            for (int i = 0; i < count; i++) {
                check_kernels(&(struct run){&table[i], 2, true}, &other, false);
            }
        }
        problem_release(&problem);
    }
}

/* ---- equilibrate ---- */

/* An output is left out where `wanted` has not its bit. */
static void check_equilibrate(struct op_case *c, const struct kernel_table *table, uint32_t wanted)
{
    struct kernel_call call = op_case_kernel_call(c, 2);
    struct rule_call rule = op_case_rule_call(c);

    for (uint32_t i = 0; i < 2; i++) {
        memset(c->memory[c->op.outputs[i]], 0xa5, rule.outputs[i].count * sizeof(int16_t));
        call.outputs[i] = (wanted >> i & 1) != 0 ? call.outputs[i] : NULL;
    }
    table->kernels[OP_EQUILIBRATE].run(&call);
    for (uint32_t i = 0; i < 2; i++) {
        for (uint64_t at = 0; call.outputs[i] != NULL && at < rule.outputs[i].count; at++) {
            rule_function *of_rule = i == 0 ? rule_equilibrate : rule_equilibrate_minus;

            assert_int_equal((uint16_t)operand_get(&rule.outputs[i], at),
                             (uint16_t)of_rule(&rule, at));
        }
    }
}

static void test_equilibrate_gives_the_rules_bits(void **state)
{
    const int64_t rows = 37;
    uint64_t seed = 16;

    (void)state;
    for (int turn = 0; turn < 40; turn++) {
        int64_t widths[2] = {1 + (int64_t)test_random_below(&seed, 5),
                             1 + (int64_t)test_random_below(&seed, 5)};
        struct op_case c;

        op_case_init(&c, OP_EQUILIBRATE);
        for (int i = 0; i < 1 + turn % 2; i++) {
            int16_t *exponents = op_case_input(&c, DTYPE_I16, (uint64_t)(rows * widths[i]), NULL);

            for (int64_t at = 0; at < rows * widths[i]; at++) {
                exponents[at] = test_random_below(&seed, 8) == 0
                                    ? EXPONENT_POISON
                                    : (int16_t)((int64_t)test_random_below(&seed, 300) - 150);
            }
        }
        (void)op_case_output(&c, DTYPE_I16, (uint64_t)rows);
        (void)op_case_output(&c, DTYPE_I16, (uint64_t)rows);
        op_case_attributes(&c, (int64_t[]){rows, widths[0], turn % 2 == 0 ? 0 : widths[1]},
                           EQUILIBRATE_ATTRIBUTES);
        for (int isa = ISA_AVX2; isa < ISA_COUNT; isa++) {
            struct kernel_table table = {0};

            if (!isa_available((enum isa)isa)) {
                continue;
            }
            cpu_kernels(&table, (enum isa)isa);
            for (uint32_t wanted = 0; wanted < 4; wanted++) {
                check_equilibrate(&c, &table, wanted);
            }
        }
        op_case_release(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_give_the_rules_bits),
        cmocka_unit_test(test_kernels_give_the_rules_bits_of_many_places),
        cmocka_unit_test(test_kernels_give_the_rules_bits_of_shifted_rows),
        cmocka_unit_test(test_shifts_cancel_in_the_product),
        cmocka_unit_test(test_equilibrate_gives_the_rules_bits),
        cmocka_unit_test(test_kernels_every_bits_block_and_values),
        cmocka_unit_test(test_kernels_one_row_by_one_row),
        cmocka_unit_test(test_kernels_large_shapes),
        cmocka_unit_test(test_kernels_results_larger_than_the_caches),
        cmocka_unit_test(test_extremes_longest_rows_at_the_clamp),
        cmocka_unit_test(test_extremes_widest_exponent_window),
        cmocka_unit_test(test_extremes_norms_that_do_not_fit),
        cmocka_unit_test(test_extremes_sums_beside_a_tie),
        cmocka_unit_test(test_integers_beside_ties_at_every_exponent),
        cmocka_unit_test(test_integers_beside_ties_shifted_and_poisoned),
        cmocka_unit_test(test_exchanged_operands_give_the_transpose),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
