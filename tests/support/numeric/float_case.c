/* float_case.c - see float_case.h. */
#include "tests/support/numeric/float_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cpu/cpu.h"
#include "tests/support/test.h"

/* Guard elements on either side of an output; an odd number, so that no vector is aligned. */
#define GUARD       25
#define CANARY_BITS UINT32_C(0x7fabcdef)

uint32_t float_bits(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

float float_of(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

int64_t float_attribute(float x)
{
    return (int64_t)float_bits(x);
}

/* ---- building a case ------------------------------------------------------ */

void float_case_init(struct float_case *one, enum op_kind kind, uint32_t attribute_count,
                     const int64_t *attributes)
{
    memset(one, 0, sizeof(*one));
    one->op.kind = kind;
    one->op.attribute_count = attribute_count;
    if (attribute_count > 0) {
        memcpy(one->op.attributes, attributes, attribute_count * sizeof(*attributes));
    }
}

/* Guarded memory for count elements; the pointer is that of the first element. */
static float *guarded_new(uint64_t count)
{
    float *base = malloc((count + 2 * GUARD) * sizeof(*base));

    assert_non_null(base);
    for (uint64_t i = 0; i < count + 2 * GUARD; i++) {
        ((uint32_t *)base)[i] = CANARY_BITS;
    }
    return base + GUARD;
}

static void guarded_free(float *memory)
{
    if (memory != NULL) {
        free(memory - GUARD);
    }
}

void float_case_release(struct float_case *one)
{
    for (uint32_t i = 0; i < one->op.input_count; i++) {
        guarded_free(one->inputs[i]);
    }
    for (uint32_t i = 0; i < one->op.output_count; i++) {
        guarded_free(one->expected[i]);
        guarded_free(one->actual[i]);
    }
}

static void add_tensor(struct float_case *one, uint32_t id, enum dtype dtype, uint64_t count)
{
    struct tensor *tensor = &one->tensors[id];

    tensor->dtype = dtype;
    tensor->rank = 1;
    tensor->dims[0] = count;
    tensor->count = count;
}

/* Inputs have the ids from 0, outputs those from OP_INPUTS_MAX. */
static void *add_input(struct float_case *one, enum dtype dtype, uint64_t count)
{
    uint32_t input = one->op.input_count++;

    add_tensor(one, input, dtype, count);
    one->op.inputs[input] = input;
    one->inputs[input] = guarded_new(count);
    memset(one->inputs[input], 0, count * sizeof(float));
    return one->inputs[input];
}

float *float_case_input(struct float_case *one, uint64_t count)
{
    return add_input(one, DTYPE_F32, count);
}

uint32_t *float_case_input_u32(struct float_case *one, uint64_t count)
{
    return add_input(one, DTYPE_U32, count);
}

uint8_t *float_case_input_u8(struct float_case *one, uint64_t count)
{
    return add_input(one, DTYPE_U8, count);
}

void float_case_output(struct float_case *one, uint64_t count)
{
    uint32_t output = one->op.output_count++;

    add_tensor(one, OP_INPUTS_MAX + output, DTYPE_F32, count);
    one->op.outputs[output] = OP_INPUTS_MAX + output;
    one->expected[output] = guarded_new(count);
    one->actual[output] = guarded_new(count);
}

static float nasty(uint64_t *seed)
{
    static const uint32_t special[] = {
        0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff,     0x807fffff, 0x00800000,
        0x80800000, 0x3f800000, 0xbf800000, 0x7f7fffff, 0xff7fffff,     0x42b17218, 0xc2cff1b5,
        0x33800000, 0x4b000001, 0x7f800000, 0xff800000, FLOAT_NAN_BITS,
    };
    uint64_t random = test_random(seed);

    if (random % 4 != 0) {
        return float_of(special[(random >> 8) % (sizeof(special) / sizeof(special[0]))]);
    }
    /* Any bits, but for the NaN that are never stored. */
    float x = float_of((uint32_t)(random >> 32));
    return x == x ? x : float_of(FLOAT_NAN_BITS);
}

void float_case_fill(uint64_t *seed, float *to, uint64_t count, enum float_fill fill)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t random = test_random(seed);
        float plain = (float)((int64_t)(random >> 40) - (1 << 23)) * 0x1p-21f;

        to[i] = fill == FLOAT_POSITIVE ? fabsf(plain) + 0x1p-22f : plain;
        /* A row without ordinary numbers would hide most errors. */
        if ((fill == FLOAT_NASTY || fill == FLOAT_FINITE) && random % 8 == 0) {
            do {
                to[i] = nasty(seed);
            } while (fill == FLOAT_FINITE && !isfinite(to[i]));
        }
    }
}

/* ---- running and comparing -------------------------------------------------- */

void float_case_rules(struct float_case *one)
{
    struct kernel_call call = {.op = &one->op, .tensors = one->tensors, .thread_count = 2};
    struct error error;

    error_init(&error);
    if (op_check(&one->op, one->tensors, FLOAT_CASE_TENSORS, &error) != STATUS_OK) {
        fail_msg("the case itself is wrong: %s", error.text);
    }
    for (uint32_t i = 0; i < one->op.input_count; i++) {
        call.inputs[i] = one->inputs[i];
    }
    for (uint32_t i = 0; i < one->op.output_count; i++) {
        call.outputs[i] = one->expected[i];
    }
    kernel_run_rules(&call);
}

static uint64_t output_count(const struct float_case *one, uint32_t output)
{
    return one->tensors[one->op.outputs[output]].count;
}

static void compare(const struct float_case *one, uint32_t output, const char *how)
{
    const uint32_t *expected = (const uint32_t *)one->expected[output];
    const uint32_t *actual = (const uint32_t *)one->actual[output];
    uint64_t count = output_count(one, output);

    for (uint64_t i = 0; i < count; i++) {
        if (expected[i] != actual[i]) {
            fail_msg("%s, output %u, element %llu of %llu (%s): %08x, the rule says %08x",
                     op_kind_name(one->op.kind), output, (unsigned long long)i,
                     (unsigned long long)count, how, actual[i], expected[i]);
        }
    }
    for (uint64_t i = 0; i < GUARD; i++) {
        if (actual[-1 - (int64_t)i] != CANARY_BITS || actual[count + i] != CANARY_BITS) {
            fail_msg("%s, output %u (%s): written outside its memory", op_kind_name(one->op.kind),
                     output, how);
        }
    }
}

/* over[output]: the input whose memory the output takes, or -1. */
static void run_kernel(struct float_case *one, const struct kernel *kernel, int thread_count,
                       uint32_t wanted, const int *over, const char *how)
{
    struct kernel_call call = {
        .op = &one->op, .tensors = one->tensors, .thread_count = thread_count};
    char text[96];

    for (uint32_t i = 0; i < one->op.input_count; i++) {
        call.inputs[i] = one->inputs[i];
    }
    for (uint32_t i = 0; i < one->op.output_count; i++) {
        uint64_t count = output_count(one, i);

        if ((wanted >> i & 1) == 0) {
            continue;
        }
        call.outputs[i] = one->actual[i];
        if (over[i] >= 0) {
            memcpy(one->actual[i], one->inputs[over[i]], count * sizeof(float));
            call.inputs[over[i]] = one->actual[i];
        } else {
            for (uint64_t k = 0; k < count; k++) {
                ((uint32_t *)one->actual[i])[k] = CANARY_BITS;
            }
        }
    }
    kernel->run(&call);
    for (uint32_t i = 0; i < one->op.output_count; i++) {
        if ((wanted >> i & 1) != 0) {
            snprintf(text, sizeof(text), "%s, %d threads, over input %d, wanted %x", how,
                     thread_count, over[i], wanted);
            compare(one, i, text);
        }
    }
}

static bool fits_in_place(const struct float_case *one, uint32_t output, uint32_t input)
{
    return op_in_place(&one->op, output, input) &&
           output_count(one, output) == one->tensors[input].count;
}

static void check_kernel(struct float_case *one, const struct kernel *kernel, int thread_count,
                         const char *how)
{
    const int apart[OP_OUTPUTS_MAX] = {-1, -1, -1, -1, -1, -1, -1, -1};
    int over[OP_OUTPUTS_MAX];
    uint32_t all = (1u << one->op.output_count) - 1;
    uint32_t taken = 0;

    run_kernel(one, kernel, thread_count, all, apart, how);
    for (uint32_t i = 0; i < one->op.output_count; i++) {
        run_kernel(one, kernel, thread_count, 1u << i, apart, how);
        for (uint32_t k = 0; k < one->op.input_count; k++) {
            if (fits_in_place(one, i, k)) {
                memcpy(over, apart, sizeof(over));
                over[i] = (int)k;
                run_kernel(one, kernel, thread_count, all, over, how);
                run_kernel(one, kernel, thread_count, 1u << i, over, how);
            }
        }
    }
    memcpy(over, apart, sizeof(over));
    for (uint32_t i = 0; i < one->op.output_count; i++) {
        for (uint32_t k = 0; k < one->op.input_count && over[i] < 0; k++) {
            if (fits_in_place(one, i, k) && (taken >> k & 1) == 0) {
                over[i] = (int)k;
                taken |= 1u << k;
            }
        }
    }
    run_kernel(one, kernel, thread_count, all, over, how);
}

void float_case_check(struct float_case *one)
{
    float_case_rules(one);
    for (int isa = ISA_SCALAR + 1; isa < ISA_COUNT; isa++) {
        struct kernel_table table;

        if (!isa_available((enum isa)isa)) {
            continue;
        }
        cpu_kernels(&table, (enum isa)isa);
        if (table.kernels[one->op.kind].run == NULL) {
            fail_msg("%s has no kernel for %s", table.name, op_kind_name(one->op.kind));
            return;
        }
        for (int thread_count = 1; thread_count <= 2; thread_count++) {
            check_kernel(one, &table.kernels[one->op.kind], thread_count, table.name);
        }
    }
}
