/*
 * kernels_test.c - each kernel of the CUDA backend alone against the rules, on the emulator: shapes
 * at the edges of tiles, views of every kind, the largest and the smallest numbers. And the Merkle
 * roots against proofs/hash/merkle.h.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/kernels/packed.h"
#include "engine/cuda/launch/launch.h"
#include "engine/cuda/launch/launch_hash.h"
#include "engine/rules/rule.h"
#include "proofs/hash/merkle.h"
#include "tests/support/device/emulator.h"
#include "tests/support/device/fake_device.h"
#include "tests/support/numeric/op_case.h"
#include "tests/support/test.h"

/* ---- a tape of tensors in memory ------------------------------------------------ */

/* Up to three operations over one table of tensors, run by the kernels and by the rules. */
struct kernel_case {
    struct tape tape;
    struct tensor tensors[16];
    struct op ops[3];
    void *memory[16];
    void *expected[16];
};

static uint32_t case_tensor(struct kernel_case *tested, enum dtype dtype, uint64_t count)
{
    uint32_t id = tested->tape.tensor_count++;
    struct tensor *tensor = &tested->tensors[id];

    *tensor = (struct tensor){.dtype = dtype, .rank = 1, .dims = {count}, .count = count};
    assert_int_equal(posix_memalign(&tested->memory[id], 256, count * dtype_size(dtype) + 256), 0);
    assert_int_equal(posix_memalign(&tested->expected[id], 256, count * dtype_size(dtype) + 256),
                     0);
    memset(tested->memory[id], 0xa5, count * dtype_size(dtype));
    fake_device_lend(tested->memory[id], count * dtype_size(dtype), false);
    return id;
}

static uint32_t case_input(struct kernel_case *tested, enum dtype dtype, uint64_t count,
                           const void *values)
{
    uint32_t id = case_tensor(tested, dtype, count);

    memcpy(tested->memory[id], values, count * dtype_size(dtype));
    fake_device_take_back(tested->memory[id]);
    fake_device_lend(tested->memory[id], count * dtype_size(dtype), true);
    memcpy(tested->expected[id], values, count * dtype_size(dtype));
    return id;
}

static void case_forget(struct kernel_case *tested, uint32_t id)
{
    if (tested->memory[id] != NULL) {
        fake_device_take_back(tested->memory[id]);
        free(tested->memory[id]);
        tested->memory[id] = NULL;
    }
}

static struct op *case_op(struct kernel_case *tested, enum op_kind kind)
{
    struct op *op = &tested->ops[tested->tape.op_count++];

    memset(op, 0, sizeof(*op));
    op->kind = kind;
    return op;
}

static void case_init(struct kernel_case *tested)
{
    memset(tested, 0, sizeof(*tested));
    tested->tape.tensors = tested->tensors;
    tested->tape.ops = tested->ops;
}

static void case_release(struct kernel_case *tested)
{
    for (uint32_t id = 0; id < tested->tape.tensor_count; id++) {
        case_forget(tested, id);
        free(tested->expected[id]);
    }
}

static void case_rules(struct kernel_case *tested)
{
    for (uint32_t at = 0; at < tested->tape.op_count; at++) {
        const struct op *op = &tested->ops[at];
        struct kernel_call call = {.op = op, .tensors = tested->tensors, .thread_count = 2};

        for (uint32_t i = 0; i < op->input_count; i++) {
            call.inputs[i] = tested->expected[op->inputs[i]];
        }
        for (uint32_t i = 0; i < op->output_count; i++) {
            call.outputs[i] = tested->expected[op->outputs[i]];
        }
        kernel_run_rules(&call);
    }
}

/* A device to launch on: what decides which kernels run. */
struct kind {
    int32_t capability;
    uint32_t processors;
    uint32_t shared_max;
    uint32_t disabled;
};

static const struct kind plain_kind = {80, 1, 0, 1u << VARIANT_MMA | 1u << VARIANT_HALF};
static const struct kind mma_kind = {80, 1, 0, 0};
static const struct kind half_kind = {80, 1, 0, 1u << VARIANT_MMA};
static const struct kind half_split = {80, 40, 0, 1u << VARIANT_MMA};

/* Runs all by the kernels; in packed mode a q tensor's memory is grown, and peaks are left out. */
static void case_kernels(struct kernel_case *tested, const struct kind *kind, bool packed)
{
    struct launcher launcher = {.calls = fake_device_calls(),
                                .tape = &tested->tape,
                                .ops = tested->ops,
                                .memory = tested->memory,
                                .block_count = 7,
                                .capability = kind->capability,
                                .processors = kind->processors,
                                .shared_max = kind->shared_max,
                                .disabled = kind->disabled,
                                .packed = packed};
    struct device_facts facts;
    uint64_t scratch = 1;

    assert_int_equal(launcher.calls->open(&launcher.device, &facts, 0), DEVICE_OK);
    for (uint32_t at = 0; at < tested->tape.op_count; at++) {
        const struct op *op = &tested->ops[at];
        uint64_t size = launch_scratch_size(op, tested->tensors, packed);

        scratch = size > scratch ? size : scratch;
        if (packed && op->kind == OP_QUANTIZE) {
            size = launch_output_size(op, 2, tested->tensors, true);
            case_forget(tested, op->outputs[0]);
            case_forget(tested, op->outputs[2]);
            assert_int_equal(posix_memalign(&tested->memory[op->outputs[2]], 256, size), 0);
            fake_device_lend(tested->memory[op->outputs[2]], size, false);
        }
    }
    assert_int_equal(posix_memalign((void **)&launcher.scratch, 256, scratch), 0);
    fake_device_lend(launcher.scratch, scratch, false);
    fake_device_lend(tested->ops, sizeof(tested->ops), true);
    for (uint32_t at = 0; at < tested->tape.op_count; at++) {
        assert_int_equal(launch_op(&launcher, at), DEVICE_OK);
    }
    fake_device_take_back(tested->ops);
    fake_device_take_back(launcher.scratch);
    free(launcher.scratch);
    launcher.calls->close(launcher.device);
}

static void case_compare(const struct kernel_case *tested, bool packed, const char *what)
{
    for (uint32_t at = 0; at < tested->tape.op_count; at++) {
        const struct op *op = &tested->ops[at];

        for (uint32_t i = 0; i < op->output_count; i++) {
            uint32_t id = op->outputs[i];
            size_t size = tested->tensors[id].count * dtype_size(tested->tensors[id].dtype);

            if (packed && op->kind == OP_QUANTIZE && i != 1) {
                continue; /* in a layout of its own, or left out: the contraction judges it */
            }
            if (memcmp(tested->memory[id], tested->expected[id], size) != 0) {
                fail_msg("%s: output %u of %s differs", what, i, op_kind_name(op->kind));
            }
        }
    }
}

/* ---- contraction ----------------------------------------------------------------- */

struct product {
    int64_t batch;
    int64_t m;
    int64_t n;
    int64_t k;
    int bits;
    int block;
    int64_t causal;
    bool across; /* A is given transposed */
};

/* Values over many orders of magnitude, now and then nasty ones. */
static void fill_values(uint32_t *values, uint64_t count, uint64_t seed, bool nasty)
{
    uint64_t random = seed;

    for (uint64_t i = 0; i < count; i++) {
        uint64_t draw = test_random(&random);
        float value = (float)((double)(int64_t)draw * 0x1p-63);

        if (draw % 7 == 0) {
            value *= (float)(1 << (draw >> 8) % 24);
        }
        memcpy(&values[i], &value, sizeof(value));
        if (nasty && draw % 509 == 0) {
            values[i] = op_case_nasty(i, (uint32_t)seed);
        }
    }
}

#define NO_SHIFTS UINT32_MAX

static void quantize_of(struct kernel_case *tested, uint32_t x, uint32_t c, const struct product *p,
                        int64_t rows, bool across)
{
    struct op *op = case_op(tested, OP_QUANTIZE);
    const struct contraction_shape shape = contraction_shape(p->k, p->bits, p->block);
    const int64_t dims[6] = {1, p->batch, 1, rows, 1, p->k};
    const int64_t along[6] = {1, rows * p->k, 1, p->k, 1, 1};
    const int64_t transposed[6] = {1, rows * p->k, 1, 1, 1, rows};
    uint64_t all = (uint64_t)(p->batch * rows);

    for (int axis = 0; axis < 6; axis++) {
        op->attributes[QUANTIZE_DIMS + axis] = dims[axis];
        op->attributes[QUANTIZE_STRIDES + axis] = across ? transposed[axis] : along[axis];
    }
    op->attributes[QUANTIZE_BITS] = p->bits;
    op->attributes[QUANTIZE_BLOCK] = p->block;
    op->attribute_count = QUANTIZE_ATTRIBUTES;
    op->input_count = c == NO_SHIFTS ? 1 : 2;
    op->inputs[0] = x;
    op->inputs[1] = c;
    op->output_count = 3;
    op->outputs[0] = case_tensor(tested, DTYPE_I16, all * (uint64_t)shape.pieces);
    op->outputs[1] = case_tensor(tested, DTYPE_I16, all * (uint64_t)shape.blocks);
    op->outputs[2] =
        case_tensor(tested, p->bits == 22 ? DTYPE_I32 : DTYPE_I16, all * (uint64_t)p->k);
}

static void contract_of(struct kernel_case *tested, const struct product *p)
{
    struct op *op = case_op(tested, OP_CONTRACT);
    const int64_t dims[6] = {1, p->batch, 1, p->m, 1, p->n};
    const int64_t strides[6] = {1, p->m * p->n, 1, 1, 1, p->m}; /* stored transposed */

    for (int axis = 0; axis < 6; axis++) {
        op->attributes[CONTRACT_DIMS + axis] = dims[axis];
        op->attributes[CONTRACT_STRIDES + axis] = strides[axis];
    }
    op->attributes[CONTRACT_K] = p->k;
    op->attributes[CONTRACT_BITS] = p->bits;
    op->attributes[CONTRACT_BLOCK] = p->block;
    op->attributes[CONTRACT_CAUSAL] = p->causal;
    op->attribute_count = CONTRACT_ATTRIBUTES;
    op->input_count = 4;
    op->inputs[0] = tested->ops[0].outputs[2];
    op->inputs[1] = tested->ops[0].outputs[1];
    op->inputs[2] = tested->ops[1].outputs[2];
    op->inputs[3] = tested->ops[1].outputs[1];
    op->output_count = 1;
    op->outputs[0] = case_tensor(tested, DTYPE_F32, (uint64_t)(p->batch * p->m * p->n));
}

/* Shifts of every element of K in each batch, some beyond what counts; and those with which they
 * cancel. */
static uint32_t shifts_of(struct kernel_case *tested, const struct product *p, int16_t *c,
                          bool back)
{
    uint64_t random = 77;

    for (int64_t i = 0; i < p->batch * p->k; i++) {
        c[i] = (int16_t)((int64_t)test_random_below(&random, i % 11 == 0 ? 401 : 61) - 30);
        c[i] = back ? (int16_t)-c[i] : c[i];
    }
    return case_input(tested, DTYPE_I16, (uint64_t)(p->batch * p->k), c);
}

static void hold_product(const struct product *p, const struct kind *kind, uint32_t *a, uint32_t *b)
{
    int16_t *c[2] = {malloc((size_t)(p->batch * p->k) * sizeof(int16_t)),
                     malloc((size_t)(p->batch * p->k) * sizeof(int16_t))};

    for (int turn = 0; turn < 4; turn++) {
        const int packed = turn % 2;
        const bool shifted = turn / 2 == 1;
        struct kernel_case tested;
        char what[128];
        uint32_t x;
        uint32_t y;

        case_init(&tested);
        x = case_input(&tested, DTYPE_F32, (uint64_t)(p->batch * p->m * p->k), a);
        y = case_input(&tested, DTYPE_F32, (uint64_t)(p->batch * p->n * p->k), b);
        quantize_of(&tested, x, shifted ? shifts_of(&tested, p, c[0], false) : NO_SHIFTS, p, p->m,
                    p->across);
        quantize_of(&tested, y, shifted ? shifts_of(&tested, p, c[1], true) : NO_SHIFTS, p, p->n,
                    false);
        contract_of(&tested, p);
        case_rules(&tested);
        case_kernels(&tested, kind, packed == 1);
        (void)snprintf(what, sizeof(what),
                       "capability %d, %lld x %lld x %lld x %lld, %d bits, block %d",
                       kind->capability, (long long)p->batch, (long long)p->m, (long long)p->n,
                       (long long)p->k, p->bits, p->block);
        case_compare(&tested, packed == 1, what);
        case_release(&tested);
    }
    free(c[0]);
    free(c[1]);
}

static const struct product products[] = {
    {1, 130, 66, 130, 14, 128, 0, false}, {2, 5, 3, 33, 14, 32, 0, true},
    {1, 33, 70, 257, 15, 64, 0, false},   {1, 17, 9, 200, 16, 128, 0, true},
    {1, 40, 65, 300, 14, 0, 0, false},    {2, 33, 34, 75, 22, 0, 0, true},
    {1, 35, 36, 49, 14, 16, 0, false},    {2, 140, 140, 64, 14, 128, 140, false},
    {1, 48, 70, 96, 16, 32, 24, false},   {1, 1, 1, 1, 14, 128, 0, false},
    {1, 3, 2, 1030, 14, 1024, 0, true},   {1, 9, 9, 129, 16, 128, 0, false},
};

/* Three limbs by mma: tiles of half the rows, batches, causal rows, blocks of one step and more. */
static const struct product three_products[] = {
    {1, 130, 66, 300, 22, 0, 0, false},  {2, 65, 3, 33, 22, 32, 0, true},
    {1, 64, 64, 128, 22, 128, 0, false}, {1, 48, 70, 96, 22, 64, 24, false},
    {1, 1, 1, 1, 22, 0, 0, false},       {3, 9, 9, 129, 22, 256, 0, true},
};

/* At the edges of wgmma's tiles: batches that begin inside of atoms, half tiles, short strips. */
static const struct product hopper_products[] = {
    {3, 131, 137, 190, 14, 128, 0, false}, {2, 12, 300, 64, 14, 128, 0, true},
    {1, 257, 60, 513, 14, 256, 0, false},  {3, 29, 61, 40, 14, 0, 29, false},
    {1, 300, 140, 390, 14, 128, 0, false}, {2, 21, 66, 260, 14, 128, 7, false},
    {1, 134, 140, 650, 14, 512, 0, false},
};

static void hold_products(const struct product *all, size_t count, const struct kind *kind)
{
    for (size_t i = 0; i < count; i++) {
        const struct product *p = &all[i];
        uint64_t a_count = (uint64_t)(p->batch * p->m * p->k);
        uint64_t b_count = (uint64_t)(p->batch * p->n * p->k);
        uint32_t *a = malloc(a_count * 4);
        uint32_t *b = malloc(b_count * 4);

        /* Both with nasty values and without; the slow ones have one of them. */
        for (size_t nasty = 0; nasty < 2; nasty++) {
            if (kind == &mma_kind || nasty == i % 2) {
                fill_values(a, a_count, 100 + i, nasty == 1);
                fill_values(b, b_count, 200 + i, nasty == 1);
                hold_product(p, kind, a, b);
            }
        }
        free(a);
        free(b);
    }
}

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static void test_products_have_the_bits_of_the_rules(void **state)
{
    (void)state;
    hold_products(products, COUNT_OF(products), &mma_kind);
    hold_products(three_products, COUNT_OF(three_products), &mma_kind);
    for (uint32_t kernel = KERNEL_CONTRACT_NARROW; kernel <= KERNEL_CONTRACT_THREE; kernel++) {
        assert_true(fake_device_launches(kernel) > 0);
    }
}

/* Each limb by itself at its largest, in phase: h = -32, m = l = 255 with h = -32, 31 and 0; and as
 * signed limbs: m = l = -128, and 128 and -128, the most that ml' + lm' comes to. */
static void test_limbs_of_22_bits_at_their_largest_do_not_overflow(void **state)
{
    static const int32_t largest[6] = {-2097151, -2031617, 2097151, 65535, 0x8080, 0x7f80};
    static const struct kind hopper = {90, 1, 0, 0};

    (void)state;
    for (int i = 0; i < 36; i++) {
        const int32_t of_a = largest[i / 6];
        const int32_t of_b = largest[i % 6];
        struct product p = {1, 8, 8, 256, 22, 128, 0, false};
        uint32_t *a = malloc(8 * 256 * 4);
        uint32_t *b = malloc(8 * 256 * 4);

        for (uint32_t at = 0; at < 8 * 256; at++) {
            /* The first of a piece is just below 1, so that its exponent is 0 and q is as given. */
            const float top = 1.0f - 0x1p-24f;
            const float x = at % 128 == 0 ? top : ldexpf((float)of_a, -21);
            const float y = at % 128 == 0 ? top : ldexpf((float)of_b, -21);

            memcpy(&a[at], &x, 4);
            memcpy(&b[at], &y, 4);
        }
        hold_product(&p, &mma_kind, a, b);
        hold_product(&p, i % 7 == 3 ? &hopper : &half_kind, a, b);
        free(a);
        free(b);
    }
}

static void test_products_without_tensor_cores_have_the_bits_of_the_rules(void **state)
{
    (void)state;
    hold_products(products, COUNT_OF(products), &plain_kind);
}

/* Blocks of threads go from tile to tile: one, and more of them than there are tiles. */
static void test_products_of_wgmma_have_the_bits_of_the_rules(void **state)
{
    static const struct kind one = {90, 1, 0, 0};
    static const struct kind some = {90, 5, 0, 0};

    (void)state;
    hold_products(products, COUNT_OF(products), &one);
    hold_products(hopper_products, COUNT_OF(hopper_products), &some);
    for (uint32_t kernel = KERNEL_HOPPER_NARROW; kernel <= KERNEL_HOPPER_NARROW_HALF; kernel++) {
        assert_true(fake_device_launches(kernel) > 0);
    }
}

/* Two stages as on sm_75, four elsewhere; k split as far as a device with many processors does. */
static void test_products_split_along_k_have_the_bits_of_the_rules(void **state)
{
    static const struct product split[] = {
        {1, 20, 30, 1100, 14, 128, 0, false}, {2, 9, 130, 2050, 16, 128, 0, true},
        {1, 70, 9, 1030, 14, 32, 40, false},  {1, 7, 8, 1600, 22, 0, 0, false},
        {2, 70, 9, 1100, 22, 128, 35, false},
    };
    static const struct kind kinds[] = {
        {75, 40, 65536, 0}, {80, 7, 0, 0}, {90, 40, 0, 0}, {90, 9, 0, 0}};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        hold_products(split, COUNT_OF(split), &kinds[i]);
    }
}

/* Every element the largest or its negative: the emulator fails where a 32-bit sum overflows. Both
 * operands have as many rows, in one batch. */
static void hold_extremes(const struct product *p, const struct kind *kind)
{
    const uint32_t count = (uint32_t)(p->m * p->k);
    uint32_t *a = malloc(count * sizeof(*a));
    uint32_t *b = malloc(count * sizeof(*b));

    for (uint32_t at = 0; at < count; at++) {
        const uint32_t row = at / (uint32_t)p->k;
        float most = 1.0f - 0x1p-24f; /* clamps to the largest integer */
        float x = row % 2 == 0 ? most : at % 2 == 0 ? most : -most;
        float y = row % 4 == 0 ? most : row % 4 == 1 ? -most : x;

        memcpy(&a[at], &x, 4);
        memcpy(&b[at], &y, 4);
    }
    hold_product(p, kind, a, b);
    free(a);
    free(b);
}

static void test_products_of_extremes_do_not_overflow(void **state)
{
    static const int widths[4] = {14, 15, 16, 22};
    static const struct kind hopper = {90, 1, 0, 0};

    (void)state;
    for (int i = 0; i < 4; i++) {
        const struct product p = {1, 16, 16, 256, widths[i], 128, 0, false};

        hold_extremes(&p, &mma_kind);
        hold_extremes(&p, &hopper);
    }
}

/* All of a block stays in 32 bits as far as packed_reach says, and a longer one is cut there. */
static void test_products_of_long_blocks_have_the_bits_of_the_rules(void **state)
{
    static const struct product cases[] = {
        {1, 8, 8, 8224, 14, 0, 0, false},    {1, 8, 8, 2080, 14, 2048, 0, false},
        {1, 8, 8, 4160, 14, 4096, 0, false}, {1, 8, 8, 1100, 14, 512, 0, false},
        {1, 8, 8, 1056, 16, 0, 0, false},    {1, 8, 8, 800, 16, 512, 0, false},
        {1, 8, 8, 1056, 15, 0, 0, false},    {1, 8, 8, 300, 22, 0, 0, false},
        {1, 8, 8, 600, 22, 512, 0, false},
    };
    static const struct kind split = {80, 40, 0, 0};
    static const struct kind hopper = {90, 1, 0, 0};
    static const struct kind hopper_split = {90, 40, 0, 0};

    (void)state;
    hold_products(cases, COUNT_OF(cases), &mma_kind);
    hold_products(cases, 4, &hopper); /* those of 14 bits */
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        hold_extremes(&cases[i], &mma_kind);
        hold_extremes(&cases[i], &split);
        hold_extremes(&cases[i], &hopper);
        hold_extremes(&cases[i], &hopper_split);
    }
}

/* Long blocks, short ones and pieces of them, of every width that halves take. */
static const struct product half_products[] = {
    {1, 8, 8, 2080, 14, 0, 0, false},   {1, 8, 8, 2080, 14, 2048, 0, false},
    {1, 8, 8, 1100, 14, 512, 0, false}, {1, 8, 8, 1056, 16, 0, 0, false},
    {1, 8, 8, 800, 15, 512, 0, false},  {1, 8, 8, 600, 14, 256, 0, false},
    {1, 9, 9, 1030, 16, 128, 3, false}, {1, 8, 8, 1100, 14, 32, 0, true},
    {1, 8, 8, 600, 22, 512, 0, false},  {1, 8, 8, 300, 22, 0, 0, false},
};

static void test_products_by_halves_have_the_bits_of_the_rules(void **state)
{
    (void)state;
    emulator_unit(NULL);
    hold_products(products, COUNT_OF(products), &half_kind);
    hold_products(three_products, COUNT_OF(three_products), &half_kind);
    hold_products(half_products, COUNT_OF(half_products), &half_split);
    for (size_t i = 0; i < COUNT_OF(half_products); i++) {
        hold_extremes(&half_products[i], &half_kind);
        hold_extremes(&half_products[i], &half_split);
    }
    for (uint32_t kernel = KERNEL_HALVES_SHORT; kernel <= KERNEL_HALVES_THREE; kernel++) {
        assert_true(fake_device_launches(kernel) > 0);
    }
    assert_int_equal(emulator_unit_lost(), 0);
}

/*
 * The largest sums by halves: every h + l is -127, or -255 (packed.h), in blocks that are longer
 * than what binary32 holds of them, and one product more than that.
 */
static void test_the_largest_sums_by_halves_lose_nothing(void **state)
{
    static const struct product cases[] = {
        {1, 8, 8, 2080, 14, 2048, 0, false}, {1, 8, 8, 1056, 14, 1024, 0, false},
        {1, 8, 8, 1056, 14, 512, 0, false},  {1, 8, 8, 544, 14, 256, 0, false},
        {1, 8, 8, 2080, 16, 2048, 0, false}, {1, 8, 8, 1056, 16, 512, 0, false},
        {1, 8, 8, 544, 16, 256, 0, false},   {1, 8, 8, 2080, 14, 0, 0, false},
    };

    (void)state;
    emulator_unit(NULL);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct product *p = &cases[i];
        const uint64_t count = (uint64_t)(p->m * p->k);
        const float x = p->bits == 14 ? -8128 * 0x1p-13f : -32640 * 0x1p-15f;
        uint32_t *values = malloc(count * sizeof(*values));

        for (uint64_t at = 0; at < count; at++) {
            memcpy(&values[at], &x, sizeof(x));
        }
        hold_product(p, &half_kind, values, values);
        hold_product(p, &half_split, values, values);
        free(values);
    }
    assert_int_equal(emulator_unit_lost(), 0);
}

/* Units differ in what they do with bits that they have no room for. There are none. */
static void test_units_of_every_kind_never_have_to_round(void **state)
{
    (void)state;
    for (int at = 0; at < 18; at++) {
        const struct emulated_unit unit = {UNIT_BITS_LEAST + at % 3, (enum unit_cut)(at / 3 % 3),
                                           at / 9 == 1};

        emulator_unit(&unit);
        hold_extremes(&half_products[at % COUNT_OF(half_products)], &half_kind);
        hold_products(&half_products[at % COUNT_OF(half_products)], 1, &half_kind);
        assert_int_equal(emulator_unit_lost(), 0);
    }
    emulator_unit(NULL);
}

/* Rows of one integer, whose second block is so many places below the first, or above it. */
static void fill_shifted(uint32_t *values, int64_t rows, int64_t k, int64_t block)
{
    /* h = 64 and l = -1; its negative; h = -63 and l = -64; h = 64 and l = -64. */
    static const int32_t largest[4] = {8191, -8191, -8128, 8128};
    static const int places[8] = {14, 13, 12, 11, 10, 9, 1, 20};

    for (int64_t at = 0; at < rows * k; at++) {
        const int64_t row = at / k;
        const bool is_small = (at % k < block) == (row % 3 == 0);
        const float x = ldexpf((float)largest[row % 4], is_small ? -13 - places[row / 4 % 8] : -13);

        memcpy(&values[at], &x, 4);
    }
}

/*
 * Limbs at their largest with every shift that two blocks can have, 14 and 14 at most, and fewer
 * where blocks are longer: what is left of 32 bits is nothing (packed.h).
 */
static void test_products_of_14_bits_have_room_for_the_largest_shifts(void **state)
{
    static const struct kind hopper = {90, 1, 0, 0};
    static const struct product cases[] = {
        {1, 36, 36, 256, 14, 128, 0, false},  {1, 36, 128, 256, 14, 128, 0, false},
        {1, 36, 36, 129, 14, 128, 0, false},  {1, 36, 36, 512, 14, 256, 0, false},
        {1, 36, 36, 640, 14, 512, 0, false},  {1, 36, 36, 1056, 14, 1024, 0, false},
        {1, 36, 36, 2080, 14, 2048, 0, false}};

    (void)state;
    assert_int_equal(contraction_window(14, 129), 14);
    assert_int_equal(contraction_window(14, 256), 14);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct product *p = &cases[i];
        uint32_t *a = malloc((size_t)(p->m * p->k) * 4);
        uint32_t *b = malloc((size_t)(p->n * p->k) * 4);

        fill_shifted(a, p->m, p->k, p->block);
        fill_shifted(b, p->n, p->k, p->block);
        hold_product(p, &hopper, a, b);
        hold_product(p, &mma_kind, a, b);
        free(a);
        free(b);
    }
}

/*
 * Pieces of very unlike sizes: a row's shifts go up to the window and past the limits of the quick
 * way, on one side, on the other and on both.
 */
static void test_products_of_far_exponents_have_the_bits_of_the_rules(void **state)
{
    static const struct kind hopper = {90, 1, 0, 0};
    static const int widths[3] = {14, 16, 22};

    (void)state;
    for (int i = 0; i < 12; i++) {
        const struct product p = {1, 40, 24, 384, widths[i % 3], 128, 0, false};
        uint32_t *a = malloc((size_t)p.m * (size_t)p.k * 4);
        uint32_t *b = malloc((size_t)p.n * (size_t)p.k * 4);

        fill_values(a, (uint64_t)(p.m * p.k), 400 + (uint64_t)i, false);
        fill_values(b, (uint64_t)(p.n * p.k), 500 + (uint64_t)i, false);
        for (int64_t at = 0; at < p.m * p.k; at++) {
            float x;

            memcpy(&x, &a[at], 4);
            x = ldexpf(x, i / 3 % 2 == 0 ? 0 : (int)(-7 * (at % p.k / 128 * (at / p.k) % 5)));
            memcpy(&a[at], &x, 4);
        }
        for (int64_t at = 0; at < p.n * p.k; at++) {
            float x;

            memcpy(&x, &b[at], 4);
            x = ldexpf(x, i / 6 == 0 ? 0 : (int)(-9 * (at % p.k / 128 * (at / p.k) % 4)));
            memcpy(&b[at], &x, 4);
        }
        hold_product(&p, &hopper, a, b);
        hold_product(&p, &mma_kind, a, b);
        free(a);
        free(b);
    }
}

/* ---- sums ---------------------------------------------------------------------------- */

static void test_ones_and_onehots_have_the_bits_of_the_rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(products) / sizeof(products[0]); i++) {
        const struct product *from = &products[i];
        struct product p = {1, from->m, 1, from->k, from->bits, from->block, 0, from->across};
        uint64_t count = (uint64_t)(p.m * p.k);
        uint32_t *x = malloc(count * 4);
        uint32_t *index = malloc((uint64_t)p.k * 4);

        fill_values(x, count, 300 + i, i % 2 == 1);
        for (int64_t k = 0; k < p.k; k++) {
            index[k] = (uint32_t)(k * k % 13); /* 11 and 12 are no words */
        }
        for (int packed = 0; packed < 2; packed++) {
            struct kernel_case tested;
            struct op *op;

            case_init(&tested);
            quantize_of(&tested, case_input(&tested, DTYPE_F32, count, x), NO_SHIFTS, &p, p.m,
                        p.across);
            op = case_op(&tested, OP_CONTRACT_ONES);
            op->attributes[ONES_ROWS] = p.m;
            op->attributes[ONES_K] = p.k;
            op->attributes[ONES_BITS] = p.bits;
            op->attributes[ONES_BLOCK] = p.block;
            op->input_count = 2;
            op->inputs[0] = tested.ops[0].outputs[2];
            op->inputs[1] = tested.ops[0].outputs[1];
            op->output_count = 1;
            op->outputs[0] = case_tensor(&tested, DTYPE_F32, (uint64_t)p.m);
            op = case_op(&tested, OP_CONTRACT_ONEHOT);
            op->attributes[ONEHOT_VOCABULARY] = 11;
            op->attributes[ONEHOT_WIDTH] = p.m;
            op->attributes[ONEHOT_K] = p.k;
            op->attributes[ONEHOT_BITS] = p.bits;
            op->attributes[ONEHOT_BLOCK] = p.block;
            op->input_count = 3;
            op->inputs[0] = case_input(&tested, DTYPE_U32, (uint64_t)p.k, index);
            op->inputs[1] = tested.ops[0].outputs[2];
            op->inputs[2] = tested.ops[0].outputs[1];
            op->output_count = 1;
            op->outputs[0] = case_tensor(&tested, DTYPE_F32, (uint64_t)(11 * p.m));
            case_rules(&tested);
            case_kernels(&tested, &mma_kind, packed == 1);
            case_compare(&tested, packed == 1, "sums");
            case_release(&tested);
        }
        free(x);
        free(index);
    }
}

/* The rows of A are those of experts too, which choose each other; then along K. */
static void test_products_of_experts_have_the_bits_of_the_rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(products) / sizeof(products[0]); i++) {
        const struct product *from = &products[i];
        const struct product p = {1, from->m, 1, from->k, from->bits, from->block, 0, from->across};
        const int64_t experts = p.m % 3 == 0 ? 3 : p.m % 2 == 0 ? 2 : 1;
        uint64_t count = (uint64_t)(p.m * p.k);
        uint64_t indexes = (uint64_t)(p.m > p.k ? p.m : p.k);
        uint32_t *x = malloc(count * 4);
        uint32_t *index = malloc(indexes * 4);

        fill_values(x, count, 700 + i, i % 2 == 1);
        for (uint64_t k = 0; k < indexes; k++) {
            index[k] = (uint32_t)(k * k % (uint64_t)(experts + 1)); /* the last is none */
        }
        for (int packed = 0; packed < 2 && p.m * p.m * p.k < 4000000; packed++) {
            struct kernel_case tested;
            struct op *op;

            case_init(&tested);
            quantize_of(&tested, case_input(&tested, DTYPE_F32, count, x), NO_SHIFTS, &p, p.m,
                        p.across);
            const uint32_t q = tested.ops[0].outputs[2];
            const uint32_t exponents = tested.ops[0].outputs[1];
            const uint32_t rows = case_input(&tested, DTYPE_U32, (uint64_t)p.m, index);
            const uint32_t places = case_input(&tested, DTYPE_U32, (uint64_t)p.k, index);

            op = case_op(&tested, OP_CONTRACT_CHOSEN);
            memcpy(op->attributes, (int64_t[]){p.m, experts, p.m / experts, p.k, p.bits, p.block},
                   CHOSEN_ATTRIBUTES * sizeof(int64_t));
            op->input_count = 5;
            memcpy(op->inputs, (uint32_t[]){q, exponents, rows, q, exponents}, 5 * 4);
            op->output_count = 1;
            op->outputs[0] = case_tensor(&tested, DTYPE_F32, (uint64_t)(p.m * (p.m / experts)));
            op = case_op(&tested, OP_CONTRACT_CHOSEN_ROWS);
            memcpy(op->attributes, (int64_t[]){experts, p.m, p.m, p.k, p.bits, p.block},
                   CHOSEN_SUM_ATTRIBUTES * sizeof(int64_t));
            op->input_count = 5;
            memcpy(op->inputs, (uint32_t[]){places, q, exponents, q, exponents}, 5 * 4);
            op->output_count = 1;
            op->outputs[0] = case_tensor(&tested, DTYPE_F32, (uint64_t)(experts * p.m * p.m));
            case_rules(&tested);
            case_kernels(&tested, &mma_kind, packed == 1);
            case_compare(&tested, packed == 1, "experts");
            case_release(&tested);
        }
        free(x);
        free(index);
    }
}

/* ---- rows ------------------------------------------------------------------------------ */

struct row_case {
    enum op_kind kind;
    uint32_t inputs[5];  /* what each is: 1 matrix, 2 a number per column, 3 per row, 4 targets */
    uint32_t outputs[6]; /* 1 matrix, 3 per row, 5 parts */
};

static const struct row_case row_cases[] = {
    {OP_ROW_SUM, {1}, {5, 3}},
    {OP_LAYER_NORM, {1, 2, 2}, {5, 3, 5, 3, 1}},
    {OP_LAYER_NORM_GRAD, {1, 1, 2, 3, 3}, {5, 5, 3, 3, 1, 1}},
    {OP_RMS_NORM, {1, 2}, {5, 3, 1}},
    {OP_RMS_NORM_GRAD, {1, 1, 2, 3}, {5, 3, 1, 1}},
    {OP_SOFTMAX, {1}, {5, 3, 1, 5, 3, 1}},
    {OP_SOFTMAX_GRAD, {1, 1}, {5, 3, 1}},
    {OP_SOFTMAX, {1, 6}, {5, 3, 1, 5, 3, 1}},
    {OP_SOFTMAX_GRAD, {1, 1, 6}, {5, 3, 1}},
    {OP_CROSS_ENTROPY, {1, 4}, {5, 3, 1, 5, 3, 3}},
    {OP_CROSS_ENTROPY_GRAD, {1, 4, 3, 3, 3}, {1}},
};

static uint64_t size_by(uint32_t what, uint64_t rows, uint64_t columns)
{
    return what == 1   ? rows * columns
           : what == 2 ? columns
           : what == 5 ? rows * fold_chunks(columns)
                       : rows;
}

static void hold_rows(const struct row_case *c, uint64_t rows, uint64_t columns, int64_t causal,
                      uint64_t seed)
{
    struct kernel_case tested;
    struct op *op;

    case_init(&tested);
    op = case_op(&tested, c->kind);
    op->attributes[ROWS] = (int64_t)rows;
    op->attributes[COLUMNS] = (int64_t)columns;
    if (c->kind == OP_SOFTMAX || c->kind == OP_SOFTMAX_GRAD) {
        op->attributes[SOFTMAX_CAUSAL] = causal;
        op->attributes[SOFTMAX_SCALE_BITS] = 0x3e000000; /* 1/8 */
    } else {
        op->attributes[NORM_EPSILON_BITS] = 0x3727c5ac; /* 1e-5 */
    }
    for (uint32_t i = 0; i < 5 && c->inputs[i] != 0; i++) {
        uint64_t count = size_by(c->inputs[i], rows, columns);
        uint32_t *values = malloc(count * 4);

        fill_values(values, count, seed * 16 + i, seed % 2 == 1);
        for (uint64_t r = 0; seed == 2 && r < count; r++) {
            values[r] = UINT32_C(0x80000000); /* -0 stays -0 in a fold */
        }
        for (uint64_t r = 0; c->inputs[i] == 4 && r < count; r++) {
            values[r] = (uint32_t)(r * 7 % (columns + 1)); /* one past the end, now and then */
            values[r] = r % 5 == 4 ? TARGET_IGNORED : values[r];
        }
        for (uint64_t r = 0; c->inputs[i] == 6 && r < count; r++) {
            values[r] = (uint32_t)(seed == 2 ? UINT32_MAX : r * 5 % (columns + 2));
        }
        op->inputs[op->input_count++] =
            case_input(&tested, c->inputs[i] % 2 == 0 && c->inputs[i] != 2 ? DTYPE_U32 : DTYPE_F32,
                       count, values);
        free(values);
    }
    for (uint32_t i = 0; i < 6 && c->outputs[i] != 0; i++) {
        op->outputs[op->output_count++] =
            case_tensor(&tested, DTYPE_F32, size_by(c->outputs[i], rows, columns));
    }
    case_rules(&tested);
    case_kernels(&tested, &mma_kind, false);
    case_compare(&tested, false, "rows");
    case_release(&tested);
}

static void test_rows_have_the_bits_of_the_rules(void **state)
{
    static const uint64_t columns[] = {1, 2, 31, 33, 64, 768, 1024, 1025, 3000};

    (void)state;
    for (size_t i = 0; i < sizeof(row_cases) / sizeof(row_cases[0]); i++) {
        for (size_t j = 0; j < sizeof(columns) / sizeof(columns[0]); j++) {
            for (uint64_t seed = 0; seed < 3; seed++) {
                const struct row_case *c = &row_cases[i];

                if (c->inputs[1] == 6 || c->inputs[2] == 6) { /* a reach: whole sequences */
                    const uint64_t period = columns[j] < 7 ? columns[j] : 7;

                    hold_rows(c, 2 * period, columns[j], (int64_t)period, seed);
                    hold_rows(c, columns[j], columns[j], (int64_t)columns[j], seed);
                    continue;
                }
                hold_rows(c, 11, columns[j], 0, seed);
                hold_rows(c, 5, columns[j], (int64_t)(1 + columns[j] / 2), seed);
            }
        }
    }
}

/* ---- hashing --------------------------------------------------------------------------- */

#define ITEMS 16

/* Tensors of all sizes at once, and each alone. */
static void test_roots_are_those_of_the_proofs(void **state)
{
    static const uint64_t sizes[ITEMS] = {1,    4, 1023,   1024,   1025,   2048,   5000,   8192,
                                          9216, 3, 261120, 262144, 262148, 300000, 700001, 64};
    struct launcher launcher = {.calls = fake_device_calls(), .block_count = 5};
    struct device_facts facts;
    struct hash_item items[ITEMS];
    struct digest expected[ITEMS];
    struct digest got[ITEMS];
    uint8_t *bytes[ITEMS];
    uint64_t random = 3;

    (void)state;
    assert_int_equal(launcher.calls->open(&launcher.device, &facts, 0), DEVICE_OK);
    for (size_t i = 0; i < ITEMS; i++) {
        struct merkle_leaves leaves;

        assert_int_equal(posix_memalign((void **)&bytes[i], 64, sizes[i]), 0);
        test_random_fill(&random, bytes[i], sizes[i]);
        merkle_leaves_init_bytes(&leaves, bytes[i], sizes[i]);
        merkle_root(&expected[i], &leaves);
        items[i] = (struct hash_item){.bytes = bytes[i], .size = sizes[i]};
        fake_device_lend(bytes[i], sizes[i], true);
    }
    fake_device_lend(got, sizeof(got), false);
    for (uint32_t first = 0; first < ITEMS; first++) {
        uint32_t count = first == 0 ? ITEMS : 1;

        uint64_t scratch;

        launch_hash_plan(&items[first], count);
        scratch = launch_hash_scratch_size(&items[first], count);
        fake_device_lend(items, sizeof(items), true);
        assert_int_equal(posix_memalign((void **)&launcher.scratch, 256, scratch), 0);
        fake_device_lend(launcher.scratch, scratch, false);
        memset(got, 0, sizeof(got));
        assert_int_equal(launch_hash(&launcher, got, &items[first], &items[first], count),
                         DEVICE_OK);
        assert_memory_equal(got, &expected[first], count * sizeof(got[0]));
        fake_device_take_back(launcher.scratch);
        fake_device_take_back(items);
        free(launcher.scratch);
    }
    fake_device_take_back(got);
    for (size_t i = 0; i < ITEMS; i++) {
        fake_device_take_back(bytes[i]);
        free(bytes[i]);
    }
    launcher.calls->close(launcher.device);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products_have_the_bits_of_the_rules),
        cmocka_unit_test(test_products_without_tensor_cores_have_the_bits_of_the_rules),
        cmocka_unit_test(test_products_of_wgmma_have_the_bits_of_the_rules),
        cmocka_unit_test(test_limbs_of_22_bits_at_their_largest_do_not_overflow),
        cmocka_unit_test(test_products_split_along_k_have_the_bits_of_the_rules),
        cmocka_unit_test(test_products_of_14_bits_have_room_for_the_largest_shifts),
        cmocka_unit_test(test_products_of_far_exponents_have_the_bits_of_the_rules),
        cmocka_unit_test(test_products_of_extremes_do_not_overflow),
        cmocka_unit_test(test_products_of_long_blocks_have_the_bits_of_the_rules),
        cmocka_unit_test(test_products_by_halves_have_the_bits_of_the_rules),
        cmocka_unit_test(test_the_largest_sums_by_halves_lose_nothing),
        cmocka_unit_test(test_units_of_every_kind_never_have_to_round),
        cmocka_unit_test(test_ones_and_onehots_have_the_bits_of_the_rules),
        cmocka_unit_test(test_products_of_experts_have_the_bits_of_the_rules),
        cmocka_unit_test(test_rows_have_the_bits_of_the_rules),
        cmocka_unit_test(test_roots_are_those_of_the_proofs),
    };
    const struct fake_device_switches sound = {0};

    test_choose(argc, argv);
    fake_device_set(&sound);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
