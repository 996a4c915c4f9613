/*
 * op_check_test.c - op_check() accepts a sound operation of every kind and refuses each error.
 *
 * A table holds a sound operation per kind. Each attribute, count, id, type and size of it is
 * spoiled in turn; the refusal must name the kind, and the attribute or tensor. Cases of single
 * families (views, windows of pictures, bits) follow.
 */
#include <stdio.h>
#include <string.h>

#include "engine/ops/batch_rows.h"
#include "engine/ops/spec/op_spec.h"
#include "tests/support/test.h"

#define F DTYPE_F32
#define U DTYPE_U32
#define E DTYPE_I16

#define ONE   0x3f800000
#define IMAGE 2, 6, 5, 3, 2, 2, 1, 1, 0, 0, 0, 0, 1, 1
#define VIEW  2, 1, 1, 3, 1, 4, 12, 0, 0, 4, 0, 1

struct port {
    enum dtype dtype;
    uint64_t count;
};

struct sample {
    enum op_kind kind;
    uint32_t attribute_count;
    int64_t attributes[OP_ATTRIBUTES_MAX];
    struct port inputs[OP_INPUTS_MAX]; /* ends at a count of 0 */
    struct port outputs[OP_OUTPUTS_MAX];
};

static const struct sample samples[] = {
    {OP_STEP_NEXT, 0, {0}, {{U, 1}}, {{U, 1}}},
    {OP_SCHEDULE, 2, {3, 1}, {{F, 12}, {U, 1}}, {{F, 1}}},
    {OP_FILL, 1, {ONE}, {{F, 0}}, {{F, 7}}},
    {OP_BATCH_TOKENS, 5, {2, 4, 0, 1, 2}, {{DTYPE_U16, 50}, {U, 1}}, {{U, 8}, {U, 8}}},
    {OP_BATCH_SAMPLES,
     6,
     {2, 4, 0, 1, 2, ONE},
     {{DTYPE_U8, 40}, {DTYPE_U8, 10}, {U, 1}},
     {{F, 8}, {U, 2}}},
    {OP_DROPOUT, 5, {99, ONE, 0, 1, 2}, {{F, 6}, {U, 1}}, {{F, 6}}},
    {OP_GATHER, 2, {5, 3}, {{F, 15}, {U, 4}}, {{F, 12}}},
    {OP_SPLIT, 3, {2, 3, 4}, {{F, 14}}, {{F, 6}, {F, 8}}},
    {OP_CONCAT, 3, {2, 3, 4}, {{F, 6}, {F, 8}}, {{F, 14}}},
    {OP_EXPAND, 2, {2, 3}, {{F, 3}}, {{F, 12}}},
    {OP_IM2COL, 14, {IMAGE}, {{F, 180}}, {{F, 2 * 5 * 4 * 12}}},
    {OP_COL2IM, 14, {IMAGE}, {{F, 2 * 5 * 4 * 12}}, {{F, 180}}},
    {OP_ROTARY, 5, {3, 2, 4, 1, 1}, {{F, 48}, {F, 12}}, {{F, 48}}},
    {OP_QUANTIZE, 14, {VIEW, 14, 16}, {{F, 24}}, {{E, 6}, {E, 6}, {E, 24}}},
    {OP_CONTRACT,
     16,
     {1, 1, 1, 3, 1, 4, 0, 0, 0, 4, 0, 1, 20, 22, 16, 0},
     {{DTYPE_I32, 60}, {E, 6}, {DTYPE_I32, 80}, {E, 8}},
     {{F, 12}}},
    {OP_CONTRACT_ONES, 4, {3, 20, 14, 0}, {{E, 60}, {E, 3}}, {{F, 3}}},
    {OP_CONTRACT_ONEHOT, 5, {7, 3, 20, 14, 16}, {{U, 20}, {E, 60}, {E, 6}}, {{F, 21}}},
    {OP_CONTRACT_CHOSEN,
     6,
     {3, 2, 4, 20, 14, 16},
     {{E, 60}, {E, 6}, {U, 3}, {E, 160}, {E, 16}},
     {{F, 12}}},
    {OP_CONTRACT_CHOSEN_ROWS,
     6,
     {2, 3, 4, 20, 14, 16},
     {{U, 20}, {E, 60}, {E, 6}, {E, 80}, {E, 8}},
     {{F, 24}}},
    {OP_INTEGER,
     13,
     {INTEGER_DIV, 2, 3, 4, 5, 1, 2, 6, 24, 0, 20, 5, 1},
     {{U, 120}, {U, 60}},
     {{U, 120}}},
    {OP_TAKE, 3, {3, 5, 2}, {{F, 15}, {U, 6}}, {{F, 6}}},
    {OP_TAKE, 3, {3, 5, 2}, {{U, 15}, {U, 6}}, {{U, 6}}},
    {OP_SCATTER, 4, {3, 5, 2, SCATTER_ADD}, {{U, 6}, {F, 6}, {F, 15}}, {{F, 15}}},
    {OP_SCATTER, 4, {3, 5, 2, SCATTER_LAST}, {{U, 6}, {U, 6}, {U, 15}}, {{U, 15}}},
    {OP_SORT, 3, {3, 5, 1}, {{F, 15}}, {{U, 15}, {U, 15}, {F, 15}}},
    {OP_ROW_SUM, 2, {2, 1030}, {{F, 2060}}, {{F, 4}, {F, 2}}},
    {OP_LAYER_NORM,
     3,
     {2, 5, ONE},
     {{F, 10}, {F, 5}, {F, 5}},
     {{F, 2}, {F, 2}, {F, 2}, {F, 2}, {F, 10}}},
    {OP_LAYER_NORM_GRAD,
     2,
     {2, 5},
     {{F, 10}, {F, 10}, {F, 5}, {F, 2}, {F, 2}},
     {{F, 2}, {F, 2}, {F, 2}, {F, 2}, {F, 10}, {F, 10}}},
    {OP_RMS_NORM, 3, {2, 5, ONE}, {{F, 10}, {F, 5}}, {{F, 2}, {F, 2}, {F, 10}}},
    {OP_RMS_NORM_GRAD,
     2,
     {2, 5},
     {{F, 10}, {F, 10}, {F, 5}, {F, 2}},
     {{F, 2}, {F, 2}, {F, 10}, {F, 10}}},
    {OP_SOFTMAX, 4, {4, 5, 2, ONE}, {{F, 20}}, {{F, 4}, {F, 4}, {F, 20}, {F, 4}, {F, 4}, {F, 20}}},
    {OP_SOFTMAX_GRAD, 4, {4, 5, 2, ONE}, {{F, 20}, {F, 20}}, {{F, 4}, {F, 4}, {F, 20}}},
    /* Eight rows (2,2,2) with a reach (2,2). */
    {OP_SOFTMAX,
     4,
     {8, 5, 2, ONE},
     {{F, 40}, {U, 4}},
     {{F, 8}, {F, 8}, {F, 40}, {F, 8}, {F, 8}, {F, 40}}},
    {OP_SOFTMAX_GRAD, 4, {8, 5, 2, ONE}, {{F, 40}, {F, 40}, {U, 4}}, {{F, 8}, {F, 8}, {F, 40}}},
    {OP_CROSS_ENTROPY,
     2,
     {2, 1030},
     {{F, 2060}, {U, 2}},
     {{F, 4}, {F, 2}, {F, 2060}, {F, 4}, {F, 2}, {F, 2}}},
    {OP_CROSS_ENTROPY_GRAD, 2, {2, 5}, {{F, 10}, {U, 2}, {F, 2}, {F, 2}, {F, 2}}, {{F, 10}}},
    {OP_MAX_POOL, 14, {IMAGE}, {{F, 180}}, {{F, 120}, {U, 120}}},
    {OP_MAX_POOL_GRAD, 14, {IMAGE}, {{U, 120}, {F, 120}}, {{F, 180}}},
    {OP_MEAN_POOL, 15, {IMAGE, 1}, {{F, 180}}, {{F, 120}}},
    {OP_MEAN_POOL_GRAD, 15, {IMAGE, 1}, {{F, 120}}, {{F, 180}}},
    {OP_CLIP_FACTOR, 1, {ONE}, {{F, 1}}, {{F, 1}}},
    {OP_SGD, 2, {0, 0}, {{F, 6}, {F, 6}, {F, 6}, {F, 1}, {F, 1}}, {{F, 6}, {F, 6}}},
    {OP_ADAMW,
     6,
     {0, ONE, 0, ONE, ONE, 0},
     {{F, 6}, {F, 6}, {F, 6}, {F, 6}, {F, 1}, {F, 1}, {F, 1}, {F, 1}},
     {{F, 6}, {F, 6}, {F, 6}}},
    {OP_MAP, 2, {MAP_SCALE, ONE}, {{F, 5}}, {{F, 5}}},
    /* a transposed; b repeated along the first axis */
    {OP_BINARY,
     13,
     {BINARY_DIV, 2, 3, 4, 5, 1, 2, 6, 24, 0, 20, 5, 1},
     {{F, 120}, {F, 60}},
     {{F, 120}}},
    {OP_SELECT,
     16,
     {2, 3, 4, 5, 0, 20, 5, 1, 60, 20, 5, 1, 60, 20, 5, 1},
     {{F, 60}, {F, 120}, {F, 120}},
     {{F, 120}}},
    {OP_SELECT,
     16,
     {2, 3, 4, 5, 0, 20, 5, 1, 60, 20, 5, 1, 60, 20, 5, 1},
     {{U, 60}, {U, 120}, {U, 120}},
     {{U, 120}}},
    /* every second column of a matrix of 4 by 6, backwards, three times */
    {OP_MOVE, 11, {3, 1, 4, 1, 3, 0, 0, 6, 0, -2, 5}, {{F, 24}}, {{F, 36}}},
    {OP_CAST, 0, {0}, {{DTYPE_BF16, 5}}, {{F, 5}}},
    {OP_BATCH_ROWS, 9, {4, 3, 0, 1, 2, 2, 1, 7, 1}, {{DTYPE_U16, 30}, {U, 1}}, {{U, 12}}},
    {OP_UNIFORM, 3, {0, 1, 2}, {{U, 1}}, {{U, 7}}},
    {OP_CAST, 0, {0}, {{F, 5}}, {{DTYPE_I32, 5}}},
    {OP_CAST, 0, {0}, {{F, 5}}, {{DTYPE_U32, 5}}},
    {OP_PLACE, 11, {1, 1, 4, 1, 3, 0, 0, 6, 0, -2, 5}, {{F, 12}, {F, 24}}, {{F, 24}}},
    {OP_REDUCE, 3, {2, 1030, REDUCE_MIN}, {{F, 2060}}, {{F, 4}, {U, 4}, {F, 2}, {U, 2}}},
    {OP_GATHER_ELEMENTS, 2, {2, 1030}, {{F, 2060}, {U, 2}}, {{F, 2}}},
    {OP_GATHER_ELEMENTS_GRAD, 2, {2, 1030}, {{U, 2}, {F, 2}}, {{F, 2060}}},
    {OP_EQUILIBRATE, 3, {3, 2, 4}, {{E, 6}, {E, 12}}, {{E, 3}, {E, 3}}},
};
#define SAMPLE_COUNT (sizeof(samples) / sizeof(samples[0]))

/* An operation with its tensors: inputs first, then outputs. */
struct scene {
    struct op op;
    struct tensor tensors[OP_INPUTS_MAX + OP_OUTPUTS_MAX];
    uint32_t tensor_count;
    struct error error;
};

static uint32_t put_tensor(struct scene *scene, const struct port *port)
{
    struct tensor *tensor = &scene->tensors[scene->tensor_count];

    *tensor = (struct tensor){.dtype = port->dtype,
                              .role = ROLE_TEMPORARY,
                              .rank = 1,
                              .dims = {port->count},
                              .count = port->count};
    (void)snprintf(tensor->name, sizeof(tensor->name), "tensor%u", scene->tensor_count);
    return scene->tensor_count++;
}

static void set_scene(struct scene *scene, const struct sample *sample)
{
    memset(scene, 0, sizeof(*scene));
    scene->op.kind = sample->kind;
    scene->op.attribute_count = sample->attribute_count;
    memcpy(scene->op.attributes, sample->attributes, sizeof(sample->attributes));
    for (uint32_t i = 0; i < OP_INPUTS_MAX && sample->inputs[i].count > 0; i++) {
        scene->op.inputs[scene->op.input_count++] = put_tensor(scene, &sample->inputs[i]);
    }
    for (uint32_t i = 0; i < OP_OUTPUTS_MAX && sample->outputs[i].count > 0; i++) {
        scene->op.outputs[scene->op.output_count++] = put_tensor(scene, &sample->outputs[i]);
    }
}

static enum status run_check(struct scene *scene)
{
    error_init(&scene->error);
    return op_check(&scene->op, scene->tensors, scene->tensor_count, &scene->error);
}

/* Refused, with an error that begins with the kind and holds the words. */
static void assert_refused(struct scene *scene, const char *words)
{
    const char *kind = op_kind_name(scene->op.kind);

    if (run_check(scene) == STATUS_OK) {
        fail_msg("%s was taken, although '%s'", kind, words);
    }
    if (strncmp(scene->error.text, kind, strlen(kind)) != 0 ||
        strstr(scene->error.text, words) == NULL) {
        fail_msg("'%s' should begin with '%s' and say '%s'", scene->error.text, kind, words);
    }
}

static const struct sample *sample_of(enum op_kind kind)
{
    for (size_t i = 0; i < SAMPLE_COUNT; i++) {
        if (samples[i].kind == kind) {
            return &samples[i];
        }
    }
    fail_msg("no sample of kind %u", (unsigned)kind);
    return NULL;
}

static void attribute_name(char *name, size_t size, const struct op *op, uint32_t position)
{
    op_spec_name(name, size, op_spec(op->kind)->attributes, position);
}

/* ---- every kind --------------------------------------------------------- */

static void test_good_operation_of_every_kind_is_taken(void **state)
{
    (void)state;
    for (int kind = 0; kind < OP_KIND_COUNT; kind++) {
        struct scene scene;

        set_scene(&scene, sample_of((enum op_kind)kind));
        if (run_check(&scene) != STATUS_OK) {
            fail_msg("%s", scene.error.text);
        }
    }
}

static void test_unknown_kind_is_refused(void **state)
{
    static const unsigned kinds[] = {OP_KIND_COUNT, 999, 65535, UINT32_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct scene scene;

        set_scene(&scene, &samples[0]);
        scene.op.kind = (enum op_kind)kinds[i];
        assert_int_equal(run_check(&scene), STATUS_BAD_FORMAT);
        assert_non_null(strstr(scene.error.text, "unknown kind"));
    }
}

static bool is_signed(enum op_kind kind, uint32_t at)
{
    return (kind == OP_MOVE || kind == OP_PLACE) && at >= MOVE_STRIDES && at < MOVE_OFFSET;
}

static void test_attribute_out_of_range_is_named(void **state)
{
    static const int64_t bad[] = {-1, INT64_MIN, INT64_MAX, INT64_C(1) << 41};

    (void)state;
    for (size_t s = 0; s < SAMPLE_COUNT; s++) {
        for (uint32_t at = 0; at < samples[s].attribute_count; at++) {
            for (size_t b = 0; b < sizeof(bad) / sizeof(bad[0]); b++) {
                struct scene scene;
                char name[64];

                set_scene(&scene, &samples[s]);
                attribute_name(name, sizeof(name), &scene.op, at);
                if (bad[b] == -1 && is_signed(samples[s].kind, at)) {
                    continue;
                }
                scene.op.attributes[at] = bad[b];
                assert_refused(&scene, name);
            }
        }
    }
}

static void test_count_of_inputs_outputs_or_attributes_is_exact(void **state)
{
    (void)state;
    for (size_t s = 0; s < SAMPLE_COUNT; s++) {
        for (int which = 0; which < 6; which++) {
            struct scene scene;
            uint32_t *counts[3] = {&scene.op.input_count, &scene.op.output_count,
                                   &scene.op.attribute_count};

            set_scene(&scene, &samples[s]);
            if (which % 2 == 0 && *counts[which / 2] == 0) {
                continue;
            }
            if (which == 0 && op_spec(scene.op.kind)->counts == COUNTS_OPTIONAL &&
                scene.op.input_count > op_spec(scene.op.kind)->input_count_min) {
                continue; /* the optional input may be missing */
            }
            *counts[which / 2] += which % 2 == 0 ? UINT32_MAX : 1;
            if (run_check(&scene) == STATUS_OK) {
                fail_msg("%s: %u inputs, %u outputs, %u attributes were taken",
                         op_kind_name(scene.op.kind), scene.op.input_count, scene.op.output_count,
                         scene.op.attribute_count);
            }
        }
    }
}

static void test_id_past_the_last_tensor_is_named(void **state)
{
    (void)state;
    for (size_t s = 0; s < SAMPLE_COUNT; s++) {
        struct scene scene;

        set_scene(&scene, &samples[s]);
        for (uint32_t i = 0; i < scene.op.input_count; i++) {
            char words[32];

            set_scene(&scene, &samples[s]);
            scene.op.inputs[i] = i % 2 == 0 ? scene.tensor_count : UINT32_MAX;
            (void)snprintf(words, sizeof(words), "input %u names tensor", i);
            assert_refused(&scene, words);
        }
        for (uint32_t i = 0; i < scene.op.output_count; i++) {
            char words[32];

            set_scene(&scene, &samples[s]);
            scene.op.outputs[i] = scene.tensor_count;
            (void)snprintf(words, sizeof(words), "output %u names tensor", i);
            assert_refused(&scene, words);
        }
    }
}

static void test_tensor_of_another_type_is_named(void **state)
{
    (void)state;
    for (size_t s = 0; s < SAMPLE_COUNT; s++) {
        struct scene scene;

        set_scene(&scene, &samples[s]);
        for (uint32_t id = 0; id < scene.tensor_count; id++) {
            for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
                bool integers = scene.tensors[id].dtype != F;

                set_scene(&scene, &samples[s]);
                if (dtype == (int)scene.tensors[id].dtype) {
                    continue;
                }
                scene.tensors[id].dtype = (enum dtype)dtype;
                /* Tokens and samples may be of several types. */
                bool select = scene.op.kind == OP_SELECT;

                if (run_check(&scene) != STATUS_OK) {
                    /* What is selected or moved has the type of the output. */
                    bool moved = scene.op.kind == OP_MOVE || scene.op.kind == OP_PLACE ||
                                 scene.op.kind == OP_CAST || scene.op.kind == OP_BATCH_ROWS ||
                                 scene.op.kind == OP_TAKE || scene.op.kind == OP_SCATTER;

                    assert_refused(&scene, moved || (select && id == 3) ? "'tensor"
                                                                        : scene.tensors[id].name);
                } else if ((scene.op.kind == OP_QUANTIZE || scene.op.kind == OP_GATHER) &&
                           id == 0) {
                    assert_true(dtype == DTYPE_F16 || dtype == DTYPE_BF16);
                } else if (scene.op.kind != OP_FILL && scene.op.kind != OP_CAST &&
                           !(select && id == 0)) {
                    assert_true(id < 2 && (integers || dtype == DTYPE_U8));
                    assert_true(scene.op.kind == OP_BATCH_TOKENS ||
                                scene.op.kind == OP_BATCH_SAMPLES ||
                                scene.op.kind == OP_BATCH_ROWS);
                }
            }
        }
    }
}

/* A tensor of free size (an index, the data) decides the sizes of others: the error names one. */
static void test_tensor_of_another_size_is_refused(void **state)
{
    (void)state;
    for (size_t s = 0; s < SAMPLE_COUNT; s++) {
        struct scene scene;

        set_scene(&scene, &samples[s]);
        for (uint32_t id = 0; id < scene.tensor_count; id++) {
            enum op_kind kind = samples[s].kind;

            set_scene(&scene, &samples[s]);
            scene.tensors[id].count = scene.tensors[id].dims[0] += 1;
            if (kind == OP_FILL || (kind == OP_BATCH_TOKENS && id == 0) ||
                (kind == OP_EXPAND && id == 1) || (kind == OP_MOVE && id == 0) ||
                (kind == OP_UNIFORM && id == 1)) {
                assert_int_equal(run_check(&scene), STATUS_OK); /* any size will do */
            } else {
                assert_refused(&scene, kind == OP_SCHEDULE && id == 0 ? "whole number of rows"
                                       : kind == OP_ROTARY && id == 2 ? "whole sequences"
                                                                      : "'tensor");
            }
        }
    }
}

static void test_constant_is_no_foreign_nan(void **state)
{
    (void)state;
    for (size_t s = 0; s < SAMPLE_COUNT; s++) {
        for (uint32_t at = 0; at < samples[s].attribute_count; at++) {
            struct scene scene;
            char name[64];

            set_scene(&scene, &samples[s]);
            attribute_name(name, sizeof(name), &scene.op, at);
            if (strlen(name) < 5 || strcmp(name + strlen(name) - 5, "_bits") != 0) {
                continue;
            }
            scene.op.attributes[at] = FLOAT_NAN_BITS;
            assert_int_equal(run_check(&scene), STATUS_OK);
            scene.op.attributes[at] = 0xff800000; /* -infinity */
            assert_int_equal(run_check(&scene), STATUS_OK);
            scene.op.attributes[at] = 0x7fc00001;
            assert_refused(&scene, "NaN");
            scene.op.attributes[at] = 0xffc00000;
            assert_refused(&scene, "NaN");
            scene.op.attributes[at] = INT64_C(0x100000000);
            assert_refused(&scene, name);
        }
    }
}

/* ---- families ----------------------------------------------------------- */

static void assert_attribute_refused(enum op_kind kind, uint32_t at, int64_t value,
                                     const char *words)
{
    struct scene scene;

    set_scene(&scene, sample_of(kind));
    scene.op.attributes[at] = value;
    assert_refused(&scene, words);
}

/* No dim and no stride of a general view can be another number. */
static void test_every_dim_and_stride_of_a_general_view_counts(void **state)
{
    static const struct {
        enum op_kind kind;
        uint32_t first;
    } kinds[] = {{OP_BINARY, BINARY_DIMS}, {OP_SELECT, SELECT_DIMS}};

    (void)state;
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        const struct sample *sample = sample_of(kinds[k].kind);

        for (uint32_t at = kinds[k].first; at < sample->attribute_count; at++) {
            int64_t right = sample->attributes[at];

            assert_attribute_refused(kinds[k].kind, at, right + 1, "");
            assert_attribute_refused(kinds[k].kind, at, right * 2 + 7, "");
            if (right > 0) {
                assert_attribute_refused(kinds[k].kind, at, right - 1, "");
                assert_attribute_refused(kinds[k].kind, at, 0, "");
            }
        }
    }
    assert_attribute_refused(OP_BINARY, BINARY_A_STRIDES, 7, "not a permutation");
    assert_attribute_refused(OP_MAP, MAP_FUNCTION, MAP_FUNCTION_COUNT, "function");
    assert_attribute_refused(OP_BINARY, BINARY_FUNCTION, BINARY_FUNCTION_COUNT, "function");
}

static void test_every_dim_and_stride_of_a_move_counts(void **state)
{
    static const enum op_kind kinds[] = {OP_MOVE, OP_PLACE};

    (void)state;
    for (size_t k = 0; k < 2; k++) {
        for (uint32_t at = 0; at < MOVE_STRIDES; at++) {
            assert_attribute_refused(kinds[k], at, sample_of(kinds[k])->attributes[at] + 1, "");
            assert_attribute_refused(kinds[k], at, 0, "");
        }
        /* Rows that overlap, columns that leave the tensor on either side. */
        assert_attribute_refused(kinds[k], MOVE_STRIDES + 2, 4, "addressed twice");
        assert_attribute_refused(kinds[k], MOVE_STRIDES + 2, -6, "offset");
        assert_attribute_refused(kinds[k], MOVE_STRIDES + 2, 7, "offset");
        assert_attribute_refused(kinds[k], MOVE_STRIDES + 4, -3, "addressed twice");
        assert_attribute_refused(kinds[k], MOVE_STRIDES + 4, 2, "offset");
        assert_attribute_refused(kinds[k], MOVE_OFFSET, 3, "offset");
        assert_attribute_refused(kinds[k], MOVE_OFFSET, 6, "offset");
    }
    assert_attribute_refused(OP_PLACE, MOVE_STRIDES + 4, 0, "addressed twice");
    /* A repeated axis may have any length. */
    assert_attribute_refused(OP_MOVE, MOVE_STRIDES, 1, "addressed twice");
}

static void test_sizes_whose_product_overflows_are_refused(void **state)
{
    struct scene scene;

    (void)state;
    set_scene(&scene, sample_of(OP_ROW_SUM));
    scene.op.attributes[ROWS] = INT64_C(1) << 40;
    assert_refused(&scene, "over the limit");
    set_scene(&scene, sample_of(OP_GATHER));
    scene.op.attributes[GATHER_VOCABULARY] = UINT32_MAX;
    scene.op.attributes[GATHER_WIDTH] = UINT32_MAX;
    assert_refused(&scene, "over the limit");
    set_scene(&scene, sample_of(OP_BATCH_TOKENS));
    scene.op.attributes[BATCH_COUNT] = UINT32_MAX;
    scene.op.attributes[BATCH_LENGTH] = UINT32_MAX;
    assert_refused(&scene, "over the limit");
    set_scene(&scene, sample_of(OP_CONTRACT));
    scene.op.attributes[CONTRACT_K] = INT64_C(1) << 20;
    scene.op.attributes[CONTRACT_DIMS + 3] = INT64_C(1) << 38;
    assert_refused(&scene, "over the limit");
    set_scene(&scene, sample_of(OP_IM2COL));
    scene.op.attributes[IMAGE_BATCH] = UINT32_MAX;
    scene.op.attributes[IMAGE_HEIGHT] = 65535;
    scene.op.attributes[IMAGE_WIDTH] = 65535;
    assert_refused(&scene, "over the limit");
    set_scene(&scene, sample_of(OP_ROTARY));
    scene.op.attributes[ROTARY_LENGTH] = UINT32_MAX;
    scene.op.attributes[ROTARY_HEADS] = 65535;
    scene.op.attributes[ROTARY_WIDTH] = 65534;
    assert_refused(&scene, "over the limit");
}

static void test_bits_and_block_are_the_known_ones(void **state)
{
    static const struct {
        enum op_kind kind;
        uint32_t bits_at;
    } kinds[] = {{OP_QUANTIZE, QUANTIZE_BITS},      {OP_CONTRACT, CONTRACT_BITS},
                 {OP_CONTRACT_ONES, ONES_BITS},     {OP_CONTRACT_ONEHOT, ONEHOT_BITS},
                 {OP_CONTRACT_CHOSEN, CHOSEN_BITS}, {OP_CONTRACT_CHOSEN_ROWS, CHOSEN_SUM_BITS}};
    static const int64_t bits[] = {0, 8, 13, 17, 18, 21, 23};
    static const int64_t blocks[] = {1, 8, 15, 17, 24, 100, (1 << 20) + 16};

    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        for (size_t b = 0; b < sizeof(bits) / sizeof(bits[0]); b++) {
            assert_attribute_refused(kinds[i].kind, kinds[i].bits_at, bits[b], "bits is");
            assert_attribute_refused(kinds[i].kind, kinds[i].bits_at + 1, blocks[b], "block is");
        }
        assert_attribute_refused(kinds[i].kind, kinds[i].bits_at + 1, 1 << 21, "block is");
    }
}

/* 22 bits leave 20 binary places for K: 2^20 elements fit 64 bits, one more does not. */
static void test_sum_that_could_pass_64_bits_is_refused(void **state)
{
    struct scene scene;

    (void)state;
    set_scene(&scene, sample_of(OP_CONTRACT_ONES));
    scene.op.attributes[ONES_ROWS] = 1;
    scene.op.attributes[ONES_BITS] = 22;
    scene.op.attributes[ONES_BLOCK] = 0;
    scene.op.attributes[ONES_K] = 1 << 20;
    scene.tensors[0].dtype = DTYPE_I32;
    scene.tensors[0].count = 1 << 20;
    scene.tensors[1].count = 1;
    scene.tensors[2].count = 1;
    assert_int_equal(run_check(&scene), STATUS_OK);
    scene.op.attributes[ONES_K]++;
    scene.tensors[0].count++;
    assert_refused(&scene, "do not sum in 64 bits");
}

static void test_view_that_is_no_permutation_is_refused(void **state)
{
    struct scene scene;

    (void)state;
    assert_attribute_refused(OP_QUANTIZE, QUANTIZE_STRIDES + 5, 2, "stride 1");
    assert_attribute_refused(OP_QUANTIZE, QUANTIZE_STRIDES + 3, 3, "stride 4");
    assert_attribute_refused(OP_QUANTIZE, QUANTIZE_STRIDES + 0, 4, "stride 12");
    assert_attribute_refused(OP_QUANTIZE, QUANTIZE_STRIDES + 5, 0, "stride 1");
    assert_attribute_refused(OP_CONTRACT, CONTRACT_STRIDES + 5, 3, "stride 1");
    /* An axis of length one may have any stride. */
    set_scene(&scene, sample_of(OP_QUANTIZE));
    scene.op.attributes[QUANTIZE_STRIDES + 1] = 12345;
    assert_int_equal(run_check(&scene), STATUS_OK);
    /* Two axes change places: it is still a permutation. */
    scene.op.attributes[QUANTIZE_STRIDES + 0] = 4;
    scene.op.attributes[QUANTIZE_STRIDES + 3] = 8;
    assert_int_equal(run_check(&scene), STATUS_OK);
}

/* The rows must be (S,H,T) for a reach (S,T). */
static void test_reach_that_does_not_fit_the_rows_is_refused(void **state)
{
    static const enum op_kind kinds[] = {OP_SOFTMAX, OP_SOFTMAX_GRAD};

    (void)state;
    for (size_t i = 0; i < SAMPLE_COUNT; i++) {
        struct scene scene;
        uint32_t slot = softmax_reach_input(samples[i].kind);

        if ((samples[i].kind != kinds[0] && samples[i].kind != kinds[1]) ||
            samples[i].inputs[slot].count == 0) {
            continue;
        }
        for (uint64_t count = 1; count <= 16; count++) {
            set_scene(&scene, &samples[i]);
            scene.tensors[slot].count = scene.tensors[slot].dims[0] = count;
            if (count == 2 || count == 4 || count == 8) {
                assert_int_equal(run_check(&scene), STATUS_OK);
            } else {
                assert_refused(&scene, "8 rows in sequences of 2");
            }
        }
        set_scene(&scene, &samples[i]);
        scene.op.attributes[SOFTMAX_CAUSAL] = 0;
        assert_refused(&scene, "a reach needs causal rows");
        set_scene(&scene, &samples[i]);
        scene.op.attributes[SOFTMAX_CAUSAL] = 3;
        assert_refused(&scene, "sequences of 3");
    }
}

static void test_causal_period_is_at_most_the_columns(void **state)
{
    struct scene scene;

    (void)state;
    for (int64_t period = 0; period <= 5; period++) {
        set_scene(&scene, sample_of(OP_SOFTMAX));
        scene.op.attributes[SOFTMAX_CAUSAL] = period;
        assert_int_equal(run_check(&scene), STATUS_OK);
    }
    assert_attribute_refused(OP_SOFTMAX, SOFTMAX_CAUSAL, 6, "causal");
    assert_attribute_refused(OP_SOFTMAX_GRAD, SOFTMAX_CAUSAL, 6, "causal");
}

static void test_row_longer_than_a_fold_of_folds_is_refused(void **state)
{
    (void)state;
    assert_attribute_refused(OP_ROW_SUM, COLUMNS, (1 << 20) + 1, "columns is");
    assert_attribute_refused(OP_SOFTMAX, COLUMNS, 0, "columns is");
    for (unsigned kind = OP_REDUCE; kind <= OP_GATHER_ELEMENTS_GRAD; kind++) {
        assert_attribute_refused((enum op_kind)kind, COLUMNS, 0, "columns is");
        assert_attribute_refused((enum op_kind)kind, COLUMNS, 1029, "'tensor");
        assert_attribute_refused((enum op_kind)kind, ROWS, 0, "rows is");
        assert_attribute_refused((enum op_kind)kind, ROWS, 3, "'tensor");
    }
    assert_attribute_refused(OP_REDUCE, REDUCE_FUNCTION, REDUCE_FUNCTION_COUNT, "function is");
}

static void test_window_outside_the_picture_is_refused(void **state)
{
    (void)state;
    assert_attribute_refused(OP_IM2COL, IMAGE_KERNEL_HEIGHT, 7, "rows is larger than the picture");
    assert_attribute_refused(OP_MAX_POOL, IMAGE_KERNEL_WIDTH, 6, "columns is larger");
    assert_attribute_refused(OP_IM2COL, IMAGE_DILATION_Y, 6, "a window of 7 rows is larger");
    assert_attribute_refused(OP_IM2COL, IMAGE_STRIDE_Y, 0, "stride_y is");
    assert_attribute_refused(OP_IM2COL, IMAGE_STRIDE_X, 65, "stride_x is");
    assert_attribute_refused(OP_IM2COL, IMAGE_DILATION_X, 0, "dilation_x is");
    assert_attribute_refused(OP_IM2COL, IMAGE_BOTTOM, 4096, "bottom is");
    assert_attribute_refused(OP_IM2COL, IMAGE_KERNEL_WIDTH, 0, "kernel_width is");
    assert_attribute_refused(OP_IM2COL, IMAGE_KERNEL_WIDTH, 65, "kernel_width is");
    assert_attribute_refused(OP_MEAN_POOL, MEAN_POOL_COUNTS_PADDING, 2, "counts_padding is");
}

/* Rows: attributes that are replaced in the sample of 2 by 2 windows on 6 by 5 places. */
static void test_pool_window_of_nothing_but_padding_is_refused(void **state)
{
    static const enum op_kind kinds[] = {OP_MAX_POOL, OP_MAX_POOL_GRAD, OP_MEAN_POOL,
                                         OP_MEAN_POOL_GRAD};
    static const struct {
        uint32_t at[3];
        int64_t to[3];
        const char *words;
    } cases[] = {
        {{IMAGE_TOP, IMAGE_TOP, IMAGE_TOP}, {2, 2, 2}, "window 0 of the rows"},
        {{IMAGE_LEFT, IMAGE_LEFT, IMAGE_LEFT}, {2, 2, 2}, "window 0 of the columns"},
        {{IMAGE_BOTTOM, IMAGE_BOTTOM, IMAGE_BOTTOM}, {2, 2, 2}, "window 6 of the rows"},
        {{IMAGE_RIGHT, IMAGE_STRIDE_X, IMAGE_RIGHT}, {4, 3, 4}, "window 2 of the columns"},
        /* Places one above and one below a picture that lies between them. */
        {{IMAGE_HEIGHT, IMAGE_TOP, IMAGE_DILATION_Y}, {1, 1, 2}, "larger than the picture"},
    };

    (void)state;
    for (size_t k = 0; k < 4; k++) {
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            struct scene scene;

            set_scene(&scene, sample_of(kinds[k]));
            for (int j = 0; j < 3; j++) {
                scene.op.attributes[cases[i].at[j]] = cases[i].to[j];
            }
            assert_refused(&scene, cases[i].words);
        }
        struct scene scene;

        set_scene(&scene, sample_of(kinds[k]));
        scene.op.attributes[IMAGE_HEIGHT] = scene.op.attributes[IMAGE_TOP] = 1;
        scene.op.attributes[IMAGE_BOTTOM] = 1;
        scene.op.attributes[IMAGE_DILATION_Y] = 2;
        assert_refused(&scene, "window 0 of the rows has nothing but padding");
    }
}

/* What a rule reads fits one transaction; im2col reads one element, for any window. */
static void test_window_larger_than_a_rule_may_read_is_refused(void **state)
{
    struct scene scene;

    (void)state;
    set_scene(&scene, sample_of(OP_MEAN_POOL));
    scene.op.attributes[IMAGE_HEIGHT] = scene.op.attributes[IMAGE_WIDTH] = 64;
    scene.op.attributes[IMAGE_KERNEL_HEIGHT] = 13;
    scene.op.attributes[IMAGE_KERNEL_WIDTH] = 5;
    assert_refused(&scene, "reads 65 others through windows, and 64 are allowed");
    set_scene(&scene, sample_of(OP_MAX_POOL_GRAD));
    scene.op.attributes[IMAGE_HEIGHT] = scene.op.attributes[IMAGE_WIDTH] = 64;
    scene.op.attributes[IMAGE_KERNEL_HEIGHT] = 11;
    scene.op.attributes[IMAGE_KERNEL_WIDTH] = 3;
    assert_refused(&scene, "reads 33 others through windows, and 32 are allowed");
    /* An element of every fourth window: a stride of 4, dilated by 3, meets it no more often. */
    set_scene(&scene, sample_of(OP_COL2IM));
    scene.op.attributes[IMAGE_HEIGHT] = scene.op.attributes[IMAGE_WIDTH] = 64;
    scene.op.attributes[IMAGE_KERNEL_HEIGHT] = scene.op.attributes[IMAGE_KERNEL_WIDTH] = 16;
    scene.op.attributes[IMAGE_STRIDE_Y] = scene.op.attributes[IMAGE_STRIDE_X] = 1;
    assert_refused(&scene, "reads 256 others");
    scene.op.attributes[IMAGE_STRIDE_Y] = scene.op.attributes[IMAGE_STRIDE_X] = 4;
    scene.op.attributes[IMAGE_DILATION_Y] = scene.op.attributes[IMAGE_DILATION_X] = 3;
    assert_refused(&scene, "'tensor"); /* 16 windows are fine: only the sizes are not */
    scene.op.attributes[IMAGE_DILATION_Y] = scene.op.attributes[IMAGE_DILATION_X] = 4;
    assert_refused(&scene, "reads 256 others");
    /* Patches of a vision transformer. */
    set_scene(&scene, sample_of(OP_IM2COL));
    scene.op.attributes[IMAGE_BATCH] = 1;
    scene.op.attributes[IMAGE_HEIGHT] = scene.op.attributes[IMAGE_WIDTH] = 32;
    scene.op.attributes[IMAGE_KERNEL_HEIGHT] = scene.op.attributes[IMAGE_KERNEL_WIDTH] = 16;
    scene.op.attributes[IMAGE_STRIDE_Y] = scene.op.attributes[IMAGE_STRIDE_X] = 16;
    scene.tensors[0].count = scene.tensors[0].dims[0] = 32 * 32 * 3;
    scene.tensors[1].count = scene.tensors[1].dims[0] = 32 * 32 * 3;
    assert_int_equal(run_check(&scene), STATUS_OK);
}

static void test_rotary_of_odd_width_is_refused(void **state)
{
    (void)state;
    assert_attribute_refused(OP_ROTARY, ROTARY_WIDTH, 3, "pairs");
    assert_attribute_refused(OP_ROTARY, ROTARY_LENGTH, 5, "whole sequences");
    assert_attribute_refused(OP_ROTARY, ROTARY_INVERSE, 2, "inverse is");
    assert_attribute_refused(OP_ROTARY, ROTARY_HALVES, 2, "halves is");
}

static void test_data_shorter_than_one_window_is_refused(void **state)
{
    struct scene scene;

    (void)state;
    set_scene(&scene, sample_of(OP_BATCH_TOKENS));
    scene.tensors[0].count = scene.tensors[0].dims[0] = 5; /* length 4 and its last target */
    assert_int_equal(run_check(&scene), STATUS_OK);
    scene.tensors[0].count = scene.tensors[0].dims[0] = 4;
    assert_refused(&scene, "needs at least 5");
}

static void test_rows_of_a_batch_are_whole_units(void **state)
{
    struct scene scene;

    (void)state;
    assert_attribute_refused(OP_BATCH_ROWS, BATCH_ROWS_UNIT, 3, "a batch of 4 rows is not whole");
    assert_attribute_refused(OP_BATCH_ROWS, BATCH_ROWS_UNIT, 4, "units of 4 rows of 3");
    assert_attribute_refused(OP_BATCH_ROWS, BATCH_ROWS_AHEAD, 2, "ahead is");
    assert_attribute_refused(OP_BATCH_ROWS, BATCH_ROWS_ORDER, 2, "order is");
    set_scene(&scene, sample_of(OP_BATCH_ROWS));
    scene.tensors[0].count = scene.tensors[0].dims[0] = 6 * BATCH_UNITS_MAX;
    assert_int_equal(run_check(&scene), STATUS_OK);
    scene.tensors[0].count = scene.tensors[0].dims[0] = 6 * (BATCH_UNITS_MAX + 1);
    assert_refused(&scene, "at most 2^31 units");
    set_scene(&scene, sample_of(OP_BATCH_ROWS));
    scene.tensors[0].dtype = DTYPE_BF16;
    scene.tensors[2].dtype = F;
    assert_int_equal(run_check(&scene), STATUS_OK);
    scene.op.attributes[BATCH_ROWS_PAST] = 0x7fc00001;
    assert_refused(&scene, "NaN");
}

static void test_a_sort_is_no_longer_than_a_ledger_convicts(void **state)
{
    struct scene scene;

    (void)state;
    assert_attribute_refused(OP_SORT, SORT_DESCENDING, 2, "descending is");
    set_scene(&scene, sample_of(OP_SORT));
    scene.op.attributes[SORT_ROWS] = 1;
    for (uint32_t more = 0; more < 2; more++) {
        scene.op.attributes[SORT_COLUMNS] = SORT_COLUMNS_MAX + (int64_t)more;
        for (uint32_t i = 0; i < scene.tensor_count; i++) {
            scene.tensors[i].count = scene.tensors[i].dims[0] = SORT_COLUMNS_MAX + more;
        }
        if (more == 0) {
            assert_int_equal(run_check(&scene), STATUS_OK);
        }
    }
    assert_refused(&scene, "columns is 4097");
}

static void test_split_needs_a_width_per_part(void **state)
{
    struct scene scene;

    (void)state;
    set_scene(&scene, sample_of(OP_SPLIT));
    scene.op.attribute_count = 2;
    assert_refused(&scene, "2 parts need 2 widths");
    set_scene(&scene, sample_of(OP_CONCAT));
    scene.op.attributes[3] = 1;
    scene.op.attribute_count = 4;
    assert_refused(&scene, "2 parts need 2 widths");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_operation_of_every_kind_is_taken),
        cmocka_unit_test(test_unknown_kind_is_refused),
        cmocka_unit_test(test_attribute_out_of_range_is_named),
        cmocka_unit_test(test_count_of_inputs_outputs_or_attributes_is_exact),
        cmocka_unit_test(test_id_past_the_last_tensor_is_named),
        cmocka_unit_test(test_tensor_of_another_type_is_named),
        cmocka_unit_test(test_tensor_of_another_size_is_refused),
        cmocka_unit_test(test_constant_is_no_foreign_nan),
        cmocka_unit_test(test_every_dim_and_stride_of_a_general_view_counts),
        cmocka_unit_test(test_every_dim_and_stride_of_a_move_counts),
        cmocka_unit_test(test_sizes_whose_product_overflows_are_refused),
        cmocka_unit_test(test_bits_and_block_are_the_known_ones),
        cmocka_unit_test(test_sum_that_could_pass_64_bits_is_refused),
        cmocka_unit_test(test_view_that_is_no_permutation_is_refused),
        cmocka_unit_test(test_causal_period_is_at_most_the_columns),
        cmocka_unit_test(test_reach_that_does_not_fit_the_rows_is_refused),
        cmocka_unit_test(test_row_longer_than_a_fold_of_folds_is_refused),
        cmocka_unit_test(test_window_outside_the_picture_is_refused),
        cmocka_unit_test(test_pool_window_of_nothing_but_padding_is_refused),
        cmocka_unit_test(test_window_larger_than_a_rule_may_read_is_refused),
        cmocka_unit_test(test_rotary_of_odd_width_is_refused),
        cmocka_unit_test(test_data_shorter_than_one_window_is_refused),
        cmocka_unit_test(test_rows_of_a_batch_are_whole_units),
        cmocka_unit_test(test_a_sort_is_no_longer_than_a_ledger_convicts),
        cmocka_unit_test(test_split_needs_a_width_per_part),
    };

    return cmocka_run_group_tests_name("op-check", tests, NULL, NULL);
}
