/*
 * Goal: a quantization is spared exactly where an earlier one makes the same integers of the same
 * elements in the same order, and whoever read it reads that one.
 * Method: random views of a small tensor, two of them alike by chance or by another spelling, held
 * to the places that quantize_place() gives element by element; then the tapes of whole models.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/contraction.h"
#include "engine/once.h"
#include "tests/support/small_model.h"
#include "tests/support/test.h"

#define ELEMENTS 24
#define OUTPUTS  3

/* x; the outputs of two QUANTIZE; what CONTRACT_ONES makes of the second. */
struct pair {
    struct tensor tensors[1 + 2 * OUTPUTS + 1];
    struct op ops[3];
    struct tape tape;
};

/* The elements in a random order of 2, 2, 2 and 3, dealt out to the six axes. */
static void random_view(struct op *op, uint64_t *seed)
{
    int64_t factors[4] = {2, 2, 2, 3};
    int64_t strides[4];
    int axes[4];
    int64_t stride = 1;

    for (int i = 3; i >= 0; i--) {
        const int other = (int)test_random_below(seed, (uint64_t)i + 1);
        const int64_t factor = factors[other];

        factors[other] = factors[i];
        factors[i] = factor;
        strides[i] = stride;
        stride *= factor;
        axes[i] = (int)test_random_below(seed, 6);
    }
    for (int axis = 0; axis < 6; axis++) {
        op->attributes[QUANTIZE_DIMS + axis] = 1;
        op->attributes[QUANTIZE_STRIDES + axis] = (int64_t)test_random_below(seed, 3);
    }
    /* An axis takes one factor, or several that lie one after another. */
    for (int i = 0; i < 4; i++) {
        int axis = axes[i];

        while (op->attributes[QUANTIZE_DIMS + axis] != 1 &&
               op->attributes[QUANTIZE_STRIDES + axis] != factors[i] * strides[i]) {
            axis = (axis + 1) % 6;
        }
        op->attributes[QUANTIZE_DIMS + axis] *= factors[i];
        op->attributes[QUANTIZE_STRIDES + axis] = strides[i];
    }
}

static void pair_random(struct pair *pair, uint64_t *seed)
{
    memset(pair, 0, sizeof(*pair));
    pair->tape = (struct tape){.tensor_count = 2 + 2 * OUTPUTS,
                               .op_count = 3,
                               .loss = TENSOR_NONE,
                               .tensors = pair->tensors,
                               .ops = pair->ops};
    for (uint32_t id = 0; id < pair->tape.tensor_count; id++) {
        pair->tensors[id].role = ROLE_TEMPORARY;
    }
    for (uint32_t at = 0; at < 2; at++) {
        struct op *op = &pair->ops[at];

        op->kind = OP_QUANTIZE;
        op->input_count = 1;
        op->output_count = OUTPUTS;
        for (uint32_t i = 0; i < OUTPUTS; i++) {
            op->outputs[i] = 1 + at * OUTPUTS + i;
        }
        random_view(op, seed);
        op->attributes[QUANTIZE_BITS] = test_random_below(seed, 4) == 0 ? 16 : 14;
        op->attributes[QUANTIZE_BLOCK] = test_random_below(seed, 4) == 0 ? 16 : 0;
    }
    pair->ops[2] = (struct op){.kind = OP_CONTRACT_ONES, .input_count = 2, .output_count = 1};
    pair->ops[2].inputs[0] = pair->ops[1].outputs[2];
    pair->ops[2].inputs[1] = pair->ops[1].outputs[1];
    pair->ops[2].outputs[0] = 1 + 2 * OUTPUTS;
}

static bool alike(const struct op *a, const struct op *b)
{
    const int64_t *dims = &a->attributes[QUANTIZE_DIMS];
    const uint64_t k = (uint64_t)(dims[4] * dims[5]);

    if (a->attributes[QUANTIZE_BITS] != b->attributes[QUANTIZE_BITS] ||
        a->attributes[QUANTIZE_BLOCK] != b->attributes[QUANTIZE_BLOCK] ||
        quantize_rows(a) != quantize_rows(b)) {
        return false;
    }
    for (uint64_t at = 0; at < ELEMENTS; at++) {
        if (quantize_place(a, at / k, at % k) != quantize_place(b, at / k, at % k)) {
            return false;
        }
    }
    return true;
}

static void test_views_are_spared_exactly_where_their_places_agree(void **state)
{
    uint64_t seed = 21;
    uint32_t spared = 0;
    uint32_t respelled = 0;

    (void)state;
    for (int turn = 0; turn < 100000; turn++) {
        struct pair pair;
        struct once once;
        struct error error;

        pair_random(&pair, &seed);
        const struct op ops[3] = {pair.ops[0], pair.ops[1], pair.ops[2]};
        const bool same = alike(&ops[0], &ops[1]);

        error_init(&error);
        assert_int_equal(once_build(&once, &pair.tape, &error), STATUS_OK);
        assert_int_equal(once.spared, same);
        assert_int_equal(once.tape.ops[2].inputs[0], ops[same ? 0 : 1].outputs[2]);
        assert_int_equal(once.tape.ops[2].inputs[1], ops[same ? 0 : 1].outputs[1]);
        assert_memory_equal(pair.ops, ops, sizeof(ops)); /* the tape itself stays */
        spared += once.spared;
        respelled += same && memcmp(ops[0].attributes, ops[1].attributes, 12 * 8) != 0;
        once_release(&once);
    }
    assert_true(spared > 100 && respelled > 50);
}

/* What somebody asks for by name is made where it says. */
static void test_outputs_with_a_name_are_not_spared(void **state)
{
    uint64_t seed = 22;
    struct pair pair;
    struct once once;
    struct error error;

    (void)state;
    for (uint32_t i = 0; i < OUTPUTS; i++) {
        error_init(&error);
        pair_random(&pair, &seed);
        memcpy(pair.ops[1].attributes, pair.ops[0].attributes, sizeof(pair.ops[0].attributes));
        pair.tensors[pair.ops[1].outputs[i]].role = ROLE_OUTPUT;
        assert_int_equal(once_build(&once, &pair.tape, &error), STATUS_OK);
        assert_int_equal(once.spared, 0);
        assert_memory_equal(once.tape.ops, pair.ops, sizeof(pair.ops));
        once_release(&once);
    }
}

/* The gradient of each bias reads what that of its matrix reads: four times in a layer. */
static void test_models_quantize_nothing_twice(void **state)
{
    (void)state;
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        struct model_options options;
        struct small_model small;
        struct once once;
        struct error error;

        error_init(&error);
        small_model_options(&options, (enum model_kind)kind);
        small_model_open(&small, &options);
        const struct tape *tape = small.model.tape;

        assert_int_equal(once_build(&once, tape, &error), STATUS_OK);
        for (uint32_t at = 0; at < tape->op_count; at++) {
            const struct op *op = &once.tape.ops[at];

            for (uint32_t i = 0; i < op->input_count; i++) {
                assert_int_equal(tape->tensors[op->inputs[i]].dtype,
                                 tape->tensors[tape->ops[at].inputs[i]].dtype);
                assert_int_equal(tape->tensors[op->inputs[i]].count,
                                 tape->tensors[tape->ops[at].inputs[i]].count);
            }
        }
        if (kind == MODEL_GPT2) {
            assert_true(once.spared >= 4 * options.layers);
        }
        once_release(&once);
        once_release(&once);
        small_model_close(&small);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_views_are_spared_exactly_where_their_places_agree),
        cmocka_unit_test(test_outputs_with_a_name_are_not_spared),
        cmocka_unit_test(test_models_quantize_nothing_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
