/*
 * rewrite_test.c - which operations of a tape are rewritten, and how.
 *
 * Goal: a quantization is read from an earlier one exactly where that makes the same integers of
 * the same elements in the same order, and always from the first of them; kept outputs are made.
 * A part of rows is read and written inside of the whole exactly where a view can say so.
 * Method: random views of a small tensor, some of them alike by chance or by another spelling,
 * compared with the places that quantize_place() gives element by element.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/fusions/fuse.h"
#include "engine/cuda/fusions/pattern.h"
#include "engine/ops/contraction.h"
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

/* All other variants disabled: what is shared stays to be seen. */
static const struct fusion_facts no_facts = {.disabled = ~0u};

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
        assert_int_equal(fuse_tape(&fusion, &views.tape, &no_facts, &error), STATUS_OK);
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
        assert_int_equal(fuse_tape(&fusion, &views.tape, &no_facts, &error), STATUS_OK);
        assert_int_equal(fusion.ops[VIEWS].inputs[2 - i], views.ops[VIEWS - 1].outputs[i]);
        assert_memory_equal(&fusion.ops[VIEWS - 1], &views.ops[VIEWS - 1], sizeof(views.ops[0]));
        fusion_release(&fusion);
    }
}

/* ---- parts of rows ------------------------------------------------------------------------- */

#define PARTS 3

/* A whole that a scale makes, or that products make; its parts, and quantizations or products. */
struct rows {
    struct tensor tensors[2 + PARTS + 3 * PARTS + 1];
    struct op ops[3 + PARTS];
    struct tape tape;
    int64_t widths[PARTS];
    int64_t rows;
    int64_t whole;
};

enum { GIVEN, WHOLE, FIRST_PART };

static void rows_random(struct rows *rows, uint64_t *seed)
{
    static const int64_t widths[] = {4, 6, 8, 12, 24};

    memset(rows, 0, sizeof(*rows));
    rows->rows = 1 + (int64_t)test_random_below(seed, 3);
    for (int i = 0; i < PARTS; i++) {
        rows->widths[i] = widths[test_random_below(seed, 5)];
        rows->whole += rows->widths[i];
    }
    rows->tape = (struct tape){.tensor_count = FIRST_PART + 4 * PARTS + 1,
                               .loss = TENSOR_NONE,
                               .tensors = rows->tensors,
                               .ops = rows->ops};
    for (uint32_t id = 0; id < rows->tape.tensor_count; id++) {
        rows->tensors[id] = (struct tensor){.role = ROLE_TEMPORARY, .dtype = DTYPE_F32, .count = 1};
    }
    rows->tensors[GIVEN].role = ROLE_INPUT;
}

static struct op *rows_op(struct rows *rows, enum op_kind kind)
{
    struct op *op = &rows->ops[rows->tape.op_count++];

    op->kind = kind;
    return op;
}

/* SPLIT or CONCAT of all parts. */
static struct op *rows_parts(struct rows *rows, enum op_kind kind)
{
    const bool split = kind == OP_SPLIT;
    struct op *op = rows_op(rows, kind);

    op->input_count = split ? 1 : PARTS;
    op->output_count = split ? PARTS : 1;
    (split ? op->inputs : op->outputs)[0] = WHOLE;
    op->attributes[SPLIT_ROWS] = rows->rows;
    op->attribute_count = SPLIT_WIDTHS + PARTS;
    for (uint32_t i = 0; i < PARTS; i++) {
        (split ? op->outputs : op->inputs)[i] = FIRST_PART + i;
        op->attributes[SPLIT_WIDTHS + i] = rows->widths[i];
    }
    return op;
}

/* Six axes through all elements of a part: its rows, heads of them, and what is left; or all. */
static void random_axes(int64_t *dims, int64_t *strides, const struct rows *rows, uint32_t part,
                        uint64_t *seed)
{
    const int64_t width = rows->widths[part];
    const int64_t heads = test_random_below(seed, 2) == 0 ? 1 : 2;
    const bool flat = test_random_below(seed, 4) == 0;
    const int64_t own[3][2] = {{flat ? 1 : rows->rows, width},
                               {flat ? 1 : heads, width / heads},
                               {flat ? rows->rows * width : width / heads, 1}};
    const uint32_t turn = (uint32_t)test_random_below(seed, 3);

    for (int axis = 0; axis < 6; axis++) {
        dims[axis] = 1;
        strides[axis] = (int64_t)test_random_below(seed, 30);
    }
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t axis = (i + turn) % 3 * 2 + (uint32_t)test_random_below(seed, 2);

        dims[axis] = own[i][0];
        strides[axis] = own[i][1];
    }
}

/* The element of six axes that an index means, in the order of the axes. */
static int64_t place_at(const int64_t *dims, const int64_t *strides, int64_t index)
{
    int64_t place = 0;

    for (int axis = 5; axis >= 0; axis--) {
        place += index % dims[axis] * strides[axis];
        index /= dims[axis];
    }
    return place;
}

/* Is it what the part's view means, in the whole? */
static bool means_the_same(const struct rows *rows, uint32_t part, const struct fusion *fusion,
                           const int64_t *before, const int64_t *behind)
{
    int64_t ahead = 0;

    for (uint32_t i = 0; i < part; i++) {
        ahead += rows->widths[i];
    }
    for (int64_t at = 0; at < rows->rows * rows->widths[part]; at++) {
        const int64_t place = place_at(before, before + 6, at);
        const int64_t in_whole =
            place / rows->widths[part] * rows->whole + ahead + place % rows->widths[part];

        if (4 * place_at(behind, behind + 6, at) + (int64_t)fusion->offsets[FIRST_PART + part] !=
            4 * in_whole) {
            return false;
        }
    }
    return true;
}

/* Would a view go through rows of another length? Where no axis runs over the end of a row. */
static bool stays_in_rows(const struct rows *rows, uint32_t part, const int64_t *dims)
{
    for (int axis = 0; axis < 6; axis++) {
        const bool over = dims[axis] > 1 && dims[6 + axis] % rows->widths[part] != 0 &&
                          (dims[axis] - 1) * dims[6 + axis] >= rows->widths[part];

        if (over) {
            return false;
        }
    }
    return true;
}

static bool in_quads(const struct rows *rows)
{
    return rows->widths[0] % 4 == 0 && rows->widths[1] % 4 == 0 && rows->widths[2] % 4 == 0;
}

/* Quantizations of the parts of what a scale made; one of them may be read by somebody else. */
static void test_parts_are_read_where_the_whole_lies(void **state)
{
    uint64_t seed = 23;
    uint32_t spared = 0;
    uint32_t left = 0;

    (void)state;
    for (int turn = 0; turn < 20000; turn++) {
        const uint64_t other = test_random_below(&seed, 6);
        struct fusion_facts facts = {.disabled = ~(1u << VARIANT_VIEWS)};
        struct rows rows;
        struct fusion fusion;
        struct error error;
        struct op *op;
        bool expected;

        error_init(&error);
        rows_random(&rows, &seed);
        expected = in_quads(&rows) && other > 1;
        op = rows_op(&rows, OP_MAP);
        op->input_count = op->output_count = 1;
        op->inputs[0] = GIVEN;
        op->outputs[0] = WHOLE;
        (void)rows_parts(&rows, OP_SPLIT);
        for (uint32_t i = 0; i < PARTS; i++) {
            op = rows_op(&rows, OP_QUANTIZE);
            op->input_count = 1;
            op->output_count = 3;
            op->inputs[0] = FIRST_PART + i;
            for (uint32_t j = 0; j < 3; j++) {
                op->outputs[j] = FIRST_PART + PARTS + 3 * i + j;
            }
            op->attributes[QUANTIZE_BITS] = 14;
            random_axes(op->attributes, op->attributes + 6, &rows, i, &seed);
            expected = expected && stays_in_rows(&rows, i, op->attributes);
        }
        if (other == 0) {
            rows.tensors[FIRST_PART + 1].role = ROLE_OUTPUT;
        } else if (other == 1) {
            op = rows_op(&rows, OP_MAP);
            op->input_count = op->output_count = 1;
            op->inputs[0] = FIRST_PART + 2;
            op->outputs[0] = rows.tape.tensor_count - 1;
        }
        assert_int_equal(fuse_tape(&fusion, &rows.tape, &facts, &error), STATUS_OK);
        assert_int_equal(fusion.ops[1].output_count, expected ? 0 : PARTS);
        for (uint32_t i = 0; i < PARTS; i++) {
            assert_int_equal(fusion.holders[FIRST_PART + i], expected ? WHOLE : FIRST_PART + i);
            assert_true(expected ? means_the_same(&rows, i, &fusion, rows.ops[2 + i].attributes,
                                                  fusion.ops[2 + i].attributes)
                                 : memcmp(&rows.ops[2 + i], &fusion.ops[2 + i], sizeof(*op)) == 0);
        }
        spared += expected;
        left += !expected && in_quads(&rows) && other > 1;
        fusion_release(&fusion);
    }
    assert_true(spared > 200 && left > 200);
}

/* Products that are put together; one part may be there twice, or be read by somebody else. */
static void test_parts_are_written_where_the_whole_lies(void **state)
{
    uint64_t seed = 24;
    uint32_t spared = 0;

    (void)state;
    for (int turn = 0; turn < 20000; turn++) {
        const uint64_t other = test_random_below(&seed, 8);
        struct fusion_facts facts = {.disabled = ~(1u << VARIANT_VIEWS)};
        struct rows rows;
        struct fusion fusion;
        struct error error;
        struct op *op;
        bool expected;

        error_init(&error);
        rows_random(&rows, &seed);
        if (other == 0) {
            rows.widths[1] = rows.widths[0];
            rows.whole = 2 * rows.widths[0] + rows.widths[2];
        }
        expected = in_quads(&rows) && other > 2;
        for (uint32_t i = 0; i < PARTS; i++) {
            op = rows_op(&rows, OP_CONTRACT);
            op->output_count = 1;
            op->outputs[0] = FIRST_PART + i;
            op->attributes[CONTRACT_BITS] = 14;
            op->attributes[CONTRACT_K] = 8;
            random_axes(op->attributes, op->attributes + 6, &rows, i, &seed);
            expected = expected && stays_in_rows(&rows, i, op->attributes);
        }
        op = rows_parts(&rows, OP_CONCAT);
        op->inputs[1] = other == 0 ? FIRST_PART : FIRST_PART + 1;
        op = rows_op(&rows, OP_MAP);
        op->input_count = op->output_count = 1;
        op->inputs[0] = other == 1 ? FIRST_PART + 1 : WHOLE;
        op->outputs[0] = rows.tape.tensor_count - 1;
        rows.tensors[other == 2 ? WHOLE : rows.tape.tensor_count - 1].role = ROLE_OUTPUT;
        assert_int_equal(fuse_tape(&fusion, &rows.tape, &facts, &error), STATUS_OK);
        assert_int_equal(fusion.ops[PARTS].input_count, expected ? 0 : PARTS);
        for (uint32_t i = 0; i < PARTS; i++) {
            assert_int_equal(fusion.holders[FIRST_PART + i], expected ? WHOLE : FIRST_PART + i);
            assert_true(expected ? means_the_same(&rows, i, &fusion, rows.ops[i].attributes,
                                                  fusion.ops[i].attributes)
                                 : memcmp(&rows.ops[i], &fusion.ops[i], sizeof(*op)) == 0);
        }
        spared += expected;
        fusion_release(&fusion);
    }
    assert_true(spared > 200);
}

/* The launch computes whole rows: it would take a part of a row for all of it. */
static void test_a_gradient_is_fused_only_where_whole_rows_are_quantized(void **state)
{
    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        const struct fusion_facts facts = {.disabled = 0};
        struct selftest_tape tape;
        struct fusion fusion;
        struct error error;

        error_init(&error);
        selftest_init(&tape);
        pattern_entropy.selftest(&tape, 0);
        assert_int_equal(tape.ops[2].kind, OP_QUANTIZE);
        if (!whole) {
            tape.ops[2].attributes[QUANTIZE_DIMS + 5] -= 8;
            tape.ops[3].attributes[ONES_K] -= 8;
        }
        assert_int_equal(fuse_tape(&fusion, &tape.tape, &facts, &error), STATUS_OK);
        assert_int_equal(fusion.patterns[2] == &pattern_entropy, whole);
        fusion_release(&fusion);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_views_are_shared_exactly_where_their_places_agree),
        cmocka_unit_test(test_outputs_with_a_name_are_made),
        cmocka_unit_test(test_parts_are_read_where_the_whole_lies),
        cmocka_unit_test(test_parts_are_written_where_the_whole_lies),
        cmocka_unit_test(test_a_gradient_is_fused_only_where_whole_rows_are_quantized),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
