/*
 * Goal: a quantization is read from an earlier one exactly where that makes the same integers of
 * the same elements in the same order, and always from the first of them; what has a name is made.
 * Method: random views of a small tensor, some of them alike by chance or by another spelling, held
 * to the places that quantize_place() gives element by element.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/contraction.h"
#include "engine/cuda/fuse.h"
#include "tests/support/test.h"

#define ELEMENTS 24
#define OUTPUTS  3
#define VIEWS    3

/* x; the outputs of some QUANTIZE; what CONTRACT_ONES makes of the last. */
struct views {
    struct tensor tensors[1 + VIEWS * OUTPUTS + 1];
    struct op ops[VIEWS + 1];
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

static void views_random(struct views *views, uint64_t *seed)
{
    struct op *ones = &views->ops[VIEWS];

    memset(views, 0, sizeof(*views));
    views->tape = (struct tape){.tensor_count = 2 + VIEWS * OUTPUTS,
                                .op_count = VIEWS + 1,
                                .loss = TENSOR_NONE,
                                .tensors = views->tensors,
                                .ops = views->ops};
    for (uint32_t id = 0; id < views->tape.tensor_count; id++) {
        views->tensors[id].role = ROLE_TEMPORARY;
        views->tensors[id].count = ELEMENTS;
    }
    for (uint32_t at = 0; at < VIEWS; at++) {
        struct op *op = &views->ops[at];

        op->kind = OP_QUANTIZE;
        op->attribute_count = QUANTIZE_ATTRIBUTES;
        op->input_count = 1;
        op->output_count = OUTPUTS;
        for (uint32_t i = 0; i < OUTPUTS; i++) {
            op->outputs[i] = 1 + at * OUTPUTS + i;
        }
        random_view(op, seed);
        op->attributes[QUANTIZE_BITS] = test_random_below(seed, 4) == 0 ? 16 : 14;
        op->attributes[QUANTIZE_BLOCK] = test_random_below(seed, 4) == 0 ? 16 : 0;
        if (at > 0 && test_random_below(seed, 3) == 0) {
            memcpy(op->attributes, views->ops[at - 1].attributes, sizeof(op->attributes));
        }
    }
    *ones = (struct op){.kind = OP_CONTRACT_ONES, .input_count = 2, .output_count = 1};
    ones->inputs[0] = views->ops[VIEWS - 1].outputs[2];
    ones->inputs[1] = views->ops[VIEWS - 1].outputs[1];
    ones->outputs[0] = 1 + VIEWS * OUTPUTS;
}

/* By the definition: every element of every row comes from one place, and is cut alike. */
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

/* All other ways barred: what is shared stays to be seen. */
static const struct fusion_facts no_facts = {.barred = ~0u};

static void test_views_are_shared_exactly_where_their_places_agree(void **state)
{
    uint64_t seed = 21;
    uint32_t shared = 0;
    uint32_t respelled = 0;
    uint32_t thrice = 0;

    (void)state;
    for (int turn = 0; turn < 100000; turn++) {
        struct views views;
        struct fusion fusion;
        struct error error;
        uint32_t first = 0;

        views_random(&views, &seed);
        const struct views before = views;
        const struct op *last = &before.ops[VIEWS - 1];

        while (!alike(&before.ops[first], last)) {
            first++;
        }
        error_init(&error);
        assert_int_equal(fusion_build(&fusion, &views.tape, &no_facts, &error), STATUS_OK);
        assert_int_equal(fusion.ops[VIEWS].inputs[0], before.ops[first].outputs[2]);
        assert_int_equal(fusion.ops[VIEWS].inputs[1], before.ops[first].outputs[1]);
        assert_memory_equal(views.ops, before.ops, sizeof(views.ops)); /* the tape itself stays */
        shared += first < VIEWS - 1;
        respelled += first < VIEWS - 1 &&
                     memcmp(before.ops[first].attributes, last->attributes, 12 * 8) != 0;
        thrice += first == 0 && alike(&before.ops[1], last);
        fusion_release(&fusion);
    }
    assert_true(shared > 100 && respelled > 50 && thrice > 1000);
}

/* What somebody asks for by name is made where it says. */
static void test_outputs_with_a_name_are_made(void **state)
{
    uint64_t seed = 22;

    (void)state;
    for (uint32_t i = 1; i < OUTPUTS; i++) {
        struct views views;
        struct fusion fusion;
        struct error error;

        error_init(&error);
        views_random(&views, &seed);
        memcpy(views.ops[VIEWS - 1].attributes, views.ops[0].attributes,
               sizeof(views.ops[0].attributes));
        views.tensors[views.ops[VIEWS - 1].outputs[i]].role = ROLE_OUTPUT;
        assert_int_equal(fusion_build(&fusion, &views.tape, &no_facts, &error), STATUS_OK);
        assert_int_equal(fusion.ops[VIEWS].inputs[2 - i], views.ops[VIEWS - 1].outputs[i]);
        assert_memory_equal(&fusion.ops[VIEWS - 1], &views.ops[VIEWS - 1], sizeof(views.ops[0]));
        fusion_release(&fusion);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_views_are_shared_exactly_where_their_places_agree),
        cmocka_unit_test(test_outputs_with_a_name_are_made),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
