/*
 * Goal: the float operations of the contracts, and float rules on elements of a GPT-2 124M step,
 * cost no more gas than documented, and no conviction by one of them more than it may.
 * Method: the mean and the most of an operation over ordinary and over hostile operands; evidence
 * with real proofs for tensors of those shapes, and a bill of it (gas_bill.h). All is compared with
 * docs/GAS.md; LOCKSTEP_WRITE_GAS=1 prints the tables that should stand there.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/rules_code.h"
#include "tests/contracts/calculator_code.h"
#include "tests/support/calculator.h"
#include "tests/support/gas_bill.h"

enum {
    WIDTH = 768,
    HIDDEN = 3072,
    TOKENS = 1024,
    HEADS = 12,
    VOCABULARY = 50257,
    ROWS_SHOWN = 64, /* fewer rows than a step has: only the height of the trees is less */
    ROWS_OF_LONG = 2,
    ORDINARY = 40,
    HOSTILE = 160,
    MOST = 6000000,
};

/* ---- operations ----------------------------------------------------------- */

/* Both signs, exponents around 1. */
static uint32_t ordinary(uint64_t *seed)
{
    uint64_t random = test_random(seed);

    return (uint32_t)(random >> 32 & UINT32_C(0x807fffff)) | (uint32_t)(124 + random % 6) << 23;
}

static struct float_operands ordinary_operands(uint64_t *seed, enum float_operation operation)
{
    struct float_operands made = {ordinary(seed), ordinary(seed), ordinary(seed)};

    if (operation == FLOAT_SQRT || operation == FLOAT_LOG) {
        made.a &= UINT32_C(0x7fffffff);
    } else if (operation == FLOAT_FROM_INTEGER || operation == FLOAT_TO_INTEGER) {
        made = float_operands_make(seed, operation);
    }
    return made;
}

static void test_operations_cost_what_is_documented(void **state)
{
    const bool writing = getenv("LOCKSTEP_WRITE_GAS") != NULL;
    struct anvil *anvil = anvil_start(NULL);
    struct rpc *rpc = anvil_rpc(anvil);
    struct address calculator = anvil_deploy(rpc, 0, CALCULATOR_CODE, NULL, "0x0");

    (void)state;
    for (enum float_operation i = 0; i < FLOAT_OPERATIONS; i++) {
        uint64_t seed = 1 + i;
        uint64_t gas[2] = {0}; /* the mean of ordinary ones, the most */
        uint64_t figures[2];
        char name[32]; /* in backticks: rules have the same names */

        (void)snprintf(name, sizeof(name), "`%s`", float_operation_names[i]);
        for (int n = 0; n < ORDINARY; n++) {
            gas[0] += calculator_gas(rpc, &calculator, i, ordinary_operands(&seed, i));
        }
        gas[0] /= ORDINARY;
        for (int n = 0; n < HOSTILE; n++) {
            uint64_t used = calculator_gas(rpc, &calculator, i, float_operands_make(&seed, i));

            gas[1] = used > gas[1] ? used : gas[1];
        }
        if (writing) {
            print_message("| %s | %llu | %llu |\n", name, (unsigned long long)gas[0],
                          (unsigned long long)gas[1]);
            continue;
        }
        gas_bill_documented(figures, 2, name);
        if (10 * gas[0] > 11 * figures[0] || 10 * gas[1] > 11 * figures[1]) {
            fail_msg("%s costs %llu gas and %llu at the most; docs/GAS.md says %llu and %llu", name,
                     (unsigned long long)gas[0], (unsigned long long)gas[1],
                     (unsigned long long)figures[0], (unsigned long long)figures[1]);
        }
    }
    rpc_free(rpc);
    anvil_stop(anvil);
}

/* ---- rules ---------------------------------------------------------------- */

struct bill {
    struct gas_bill gas;
    struct address elementwise;
    struct address rows;
    uint64_t seed;
};

/* How many elements a tensor has, in terms of the operation's shape. */
enum extent {
    NONE, /* no such tensor */
    ALL,  /* rows times columns */
    LINE, /* columns: gain and bias */
    EACH, /* rows */
    PART, /* rows times chunks */
    ONE,
    TARGET, /* rows, of u32 */
};

struct measured {
    enum op_kind kind;
    uint64_t rows;
    uint64_t columns;
    uint32_t attribute_count;
    int64_t attributes[OP_ATTRIBUTES_MAX];
    enum extent inputs[OP_INPUTS_MAX];
    enum extent outputs[OP_OUTPUTS_MAX];
    const char *shape;                 /* what the table calls it; "" for none */
    const char *names[OP_OUTPUTS_MAX]; /* of outputs; NULL: not measured */
};

#define ONE_BITS  INT64_C(0x3f800000)
#define HALF_BITS INT64_C(0x3f000000)
#define TINY_BITS INT64_C(0x3727c5ac) /* 1e-5 */

static const struct measured elementwise_kinds[] = {
    {OP_ADD, ROWS_SHOWN, HIDDEN, 2, {1, HIDDEN}, {ALL, LINE}, {ALL}, "", {"add"}},
    {OP_MUL, ROWS_SHOWN, HIDDEN, 2, {1, HIDDEN}, {ALL, LINE}, {ALL}, "", {"mul"}},
    {OP_SCALE, ROWS_SHOWN, HIDDEN, 1, {HALF_BITS}, {ALL}, {ALL}, "", {"scale"}},
    {OP_RELU, ROWS_SHOWN, HIDDEN, 0, {0}, {ALL}, {ALL}, "", {"relu"}},
    {OP_RELU_GRAD, ROWS_SHOWN, HIDDEN, 0, {0}, {ALL, ALL}, {ALL}, "", {"relu-grad"}},
    {OP_GELU, ROWS_SHOWN, HIDDEN, 0, {0}, {ALL}, {ALL}, "", {"gelu"}},
    {OP_GELU_GRAD, ROWS_SHOWN, HIDDEN, 0, {0}, {ALL, ALL}, {ALL}, "", {"gelu-grad"}},
    {OP_SILU, ROWS_SHOWN, HIDDEN, 0, {0}, {ALL}, {ALL}, "", {"silu"}},
    {OP_SILU_GRAD, ROWS_SHOWN, HIDDEN, 0, {0}, {ALL, ALL}, {ALL}, "", {"silu-grad"}},
    {OP_SQUARED_ERROR, ROWS_SHOWN, WIDTH, 0, {0}, {ALL, ALL}, {ALL}, "", {"squared-error"}},
    {OP_SQUARED_ERROR_GRAD,
     ROWS_SHOWN,
     WIDTH,
     0,
     {0},
     {ALL, ALL, ALL},
     {ALL},
     "",
     {"squared-error-grad"}},
    /* 64 numbers a head. */
    {OP_ROTARY,
     ROWS_SHOWN *HEADS,
     WIDTH / HEADS,
     4,
     {ROWS_SHOWN * HEADS, 1, WIDTH / HEADS, 0},
     {ALL, ALL},
     {ALL},
     "",
     {"rotary"}},
    {OP_CLIP_FACTOR, 1, 1, 1, {ONE_BITS}, {ONE}, {ONE}, "", {"clip-factor"}},
    {OP_SGD,
     HIDDEN,
     WIDTH,
     2,
     {HALF_BITS, TINY_BITS},
     {ALL, ALL, ALL, ONE, ONE},
     {ALL, ALL},
     "",
     {"sgd, parameter", "sgd, velocity"}},
    {OP_ADAMW,
     HIDDEN,
     WIDTH,
     6,
     {HALF_BITS, HALF_BITS, HALF_BITS, HALF_BITS, TINY_BITS, TINY_BITS},
     {ALL, ALL, ALL, ALL, ONE, ONE, ONE, ONE},
     {ALL, ALL, ALL},
     "",
     {"adamw, parameter", "adamw, moment 1", "adamw, moment 2"}},
};

/* rows and columns are put before the attributes that are given. */
static const struct measured norm_kinds[] = {
    {OP_ROW_SUM, 0, 0, 0, {0}, {ALL}, {PART, EACH}, "", {"row-sum, part", "row-sum, sum"}},
    {OP_LAYER_NORM,
     0,
     0,
     1,
     {TINY_BITS},
     {ALL, LINE, LINE},
     {PART, EACH, PART, EACH, ALL},
     "",
     {"layer-norm, sum part", "layer-norm, mean", "layer-norm, square part", "layer-norm, rstd",
      "layer-norm, y"}},
    {OP_LAYER_NORM_GRAD,
     0,
     0,
     0,
     {0},
     {ALL, ALL, LINE, EACH, EACH},
     {PART, PART, EACH, EACH, ALL, ALL},
     "",
     {"layer-norm-grad, g part", "layer-norm-grad, gx part", "layer-norm-grad, g mean",
      "layer-norm-grad, gx mean", "layer-norm-grad, dx", "layer-norm-grad, product"}},
    {OP_RMS_NORM,
     0,
     0,
     1,
     {TINY_BITS},
     {ALL, LINE},
     {PART, EACH, ALL},
     "",
     {"rms-norm, square part", "rms-norm, rstd", "rms-norm, y"}},
    {OP_RMS_NORM_GRAD,
     0,
     0,
     0,
     {0},
     {ALL, ALL, LINE, EACH},
     {PART, EACH, ALL, ALL},
     "",
     {"rms-norm-grad, gx part", "rms-norm-grad, gx mean", "rms-norm-grad, dx",
      "rms-norm-grad, product"}},
};

static const struct measured row_kinds[] = {
    {OP_SOFTMAX,
     0,
     0,
     2,
     {0, HALF_BITS},
     {ALL},
     {PART, EACH, ALL, PART, EACH, ALL},
     "",
     {"softmax, max part", "softmax, max", "softmax, exps", "softmax, sum part", "softmax, sum",
      "softmax, p"}},
    {OP_SOFTMAX_GRAD,
     0,
     0,
     2,
     {0, HALF_BITS},
     {ALL, ALL},
     {PART, EACH, ALL},
     "",
     {"softmax-grad, dot part", "softmax-grad, dot", "softmax-grad, dx"}},
};

static const struct measured loss_kinds[] = {
    {OP_CROSS_ENTROPY,
     0,
     0,
     0,
     {0},
     {ALL, TARGET},
     {PART, EACH, ALL, PART, EACH, EACH},
     "",
     {"cross-entropy, max part", "cross-entropy, max", "cross-entropy, exps",
      "cross-entropy, sum part", "cross-entropy, sum", "cross-entropy, loss"}},
    {OP_CROSS_ENTROPY_GRAD,
     0,
     0,
     0,
     {0},
     {ALL, TARGET, EACH, EACH, EACH},
     {ALL},
     "",
     {"cross-entropy-grad, dx"}},
};

static uint64_t count_of(const struct measured *measured, enum extent extent)
{
    uint64_t chunks = fold_chunks(measured->columns);

    switch (extent) {
    case NONE:
        return 0;
    case ALL:
        return measured->rows * measured->columns;
    case LINE:
        return measured->columns;
    case EACH:
    case TARGET:
        return measured->rows;
    case PART:
        return measured->rows * chunks;
    case ONE:
        return 1;
    }
    return 0;
}

static void fill(struct bill *bill, struct shown_case *shown, uint32_t number,
                 const struct measured *measured, enum extent extent)
{
    enum dtype dtype = extent == TARGET ? DTYPE_U32 : DTYPE_F32;
    uint64_t count = count_of(measured, extent);
    uint32_t *bits = shown_case_tensor(shown, number, dtype, count);

    for (uint64_t i = 0; i < count; i++) {
        bits[i] = extent == TARGET ? (uint32_t)test_random_below(&bill->seed, measured->columns)
                                   : ordinary(&bill->seed);
    }
}

static void measure(struct bill *bill, const struct measured *measured, bool has_rows)
{
    struct shown_case shown;
    uint32_t inputs = 0;
    uint32_t outputs = 0;

    while (inputs < OP_INPUTS_MAX && measured->inputs[inputs] != NONE) {
        inputs++;
    }
    while (outputs < OP_OUTPUTS_MAX && measured->outputs[outputs] != NONE) {
        outputs++;
    }
    shown_case_init(&shown, measured->kind, inputs, outputs);
    if (has_rows) {
        shown.op.attributes[shown.op.attribute_count++] = (int64_t)measured->rows;
        shown.op.attributes[shown.op.attribute_count++] = (int64_t)measured->columns;
    }
    for (uint32_t i = 0; i < measured->attribute_count; i++) {
        shown.op.attributes[shown.op.attribute_count++] = measured->attributes[i];
    }
    for (uint32_t i = 0; i < inputs; i++) {
        fill(bill, &shown, i, measured, measured->inputs[i]);
    }
    for (uint32_t i = 0; i < outputs; i++) {
        fill(bill, &shown, inputs + i, measured, measured->outputs[i]);
    }
    shown_case_check(&shown);
    for (uint32_t i = 0; i < outputs; i++) {
        uint64_t count = count_of(measured, measured->outputs[i]);
        char name[64];

        (void)snprintf(name, sizeof(name), "%s%s", measured->names[i], measured->shape);
        gas_bill_measure(&bill->gas, name, has_rows ? &bill->rows : &bill->elementwise, &shown,
                         &(struct shown_target){.output = i, .element = count / 2});
    }
    shown_case_release(&shown);
}

#define MEASURE_ALL(bill, kinds, shape, rows, columns)                                             \
    measure_all(bill, kinds, sizeof(kinds) / sizeof((kinds)[0]), shape, rows, columns)

static void measure_all(struct bill *bill, const struct measured *kinds, size_t count,
                        const char *shape, uint64_t rows, uint64_t columns)
{
    for (size_t i = 0; i < count; i++) {
        struct measured measured = kinds[i];

        measured.rows = rows;
        measured.columns = columns;
        measured.shape = shape;
        measure(bill, &measured, true);
    }
}

static void test_rules_cost_what_is_documented_and_a_conviction_what_it_may(void **state)
{
    struct bill bill = {.seed = 1};
    uint64_t claim;
    uint64_t answer;

    (void)state;
    gas_bill_open(&bill.gas);
    bill.elementwise = jury_deploy(&bill.gas.jury, RULES_ELEMENTWISE_CODE);
    bill.rows = jury_deploy(&bill.gas.jury, RULES_ROWS_CODE);
    for (size_t i = 0; i < sizeof(elementwise_kinds) / sizeof(elementwise_kinds[0]); i++) {
        measure(&bill, &elementwise_kinds[i], false);
    }
    MEASURE_ALL(&bill, norm_kinds, ", 768 columns", ROWS_SHOWN, WIDTH);
    MEASURE_ALL(&bill, norm_kinds, ", 3072 columns", ROWS_SHOWN, HIDDEN);
    MEASURE_ALL(&bill, row_kinds, ", 1024 columns", ROWS_SHOWN, TOKENS);
    MEASURE_ALL(&bill, loss_kinds, ", 50257 columns", ROWS_OF_LONG, VOCABULARY);
    gas_bill_compare(&bill.gas);

    gas_bill_documented(&claim, 1, "claim");
    gas_bill_documented(&answer, 1, "answer");
    for (size_t i = 0; i < bill.gas.count; i++) {
        assert_true(claim + answer + bill.gas.costs[i].figures[0] < MOST);
    }
    gas_bill_close(&bill.gas);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operations_cost_what_is_documented),
        cmocka_unit_test(test_rules_cost_what_is_documented_and_a_conviction_what_it_may),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
