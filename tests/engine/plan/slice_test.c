/*
 * slice_test.c - parts of operations make what the whole makes.
 *
 * Random operations of every kind, with odd shapes and special numbers, are cut along every axis at
 * random places, several times: each part must pass op_check(), every element must be made exactly
 * once, and the bits are those of the rules on the whole.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/ops/kernel.h"
#include "engine/plan/slice.h"
#include "tests/support/numeric/random_op.h"
#include "tests/support/test.h"

#define SEEDS     12 /* and on, until a kind was cut */
#define SEEDS_MAX 400
#define PARTS_MAX 4
#define DEPTH_MAX 3
#define UNMADE    0x5c

static uint64_t bytes_of(const struct tensor *tensor)
{
    return tensor->count * dtype_size(tensor->dtype);
}

/* ---- every kind, every axis -------------------------------------------------- */

static void run_rules(const struct slice *slice, void *const *memory)
{
    struct kernel_call call = {.op = &slice->op, .tensors = slice->tensors, .thread_count = 1};

    for (uint32_t i = 0; i < slice->op.input_count; i++) {
        call.inputs[i] = memory[i];
    }
    for (uint32_t i = 0; i < slice->op.output_count; i++) {
        call.outputs[i] = memory[slice->op.input_count + i];
    }
    kernel_run_rules(&call);
}

static uint32_t tensor_total(const struct slice *slice)
{
    return slice->op.input_count + slice->op.output_count;
}

static void run_parts(const struct slice *whole, void *const *memory, uint64_t *random,
                      uint32_t depth);

static void run_one_part(const struct slice *whole, void *const *memory, uint32_t axis,
                         uint64_t first, uint64_t last, uint64_t *random, uint32_t depth)
{
    struct slice_view views[SLICE_TENSORS_MAX];
    void *taken[SLICE_TENSORS_MAX] = {NULL};
    struct slice part;
    struct error error;

    error_init(&error);
    slice_take(&part, views, whole, axis, first, last);
    struct op alone = part.op;

    if (alone.kind == OP_CROSS_ENTROPY_GRAD) {
        /* Of which columns a part is, no job says. */
        alone.attribute_count = CROSS_ENTROPY_ATTRIBUTES;
    }
    if (op_check(&alone, part.tensors, tensor_total(&part), &error) != STATUS_OK) {
        fail_msg("a part is not sound: %s", error.text);
    }
    for (uint32_t i = 0; i < tensor_total(&part); i++) {
        const uint64_t size = dtype_size(part.tensors[i].dtype);

        assert_int_equal(views[i].run * views[i].count, part.tensors[i].count);
        taken[i] = malloc(bytes_of(&part.tensors[i]));
        assert_non_null(taken[i]);
        /* Outputs too: a part must not overwrite what another made. */
        slice_gather(taken[i], memory[i], &views[i], size);
        for (uint64_t at = 0; i >= part.op.input_count && at < bytes_of(&part.tensors[i]); at++) {
            assert_int_equal(((uint8_t *)taken[i])[at], UNMADE);
        }
    }
    run_parts(&part, taken, random, depth + 1);
    for (uint32_t i = 0; i < tensor_total(&part); i++) {
        if (i >= part.op.input_count) {
            slice_scatter(memory[i], taken[i], &views[i], dtype_size(part.tensors[i].dtype));
        }
        free(taken[i]);
    }
}

static void run_parts(const struct slice *whole, void *const *memory, uint64_t *random,
                      uint32_t depth)
{
    uint64_t lengths[SLICE_AXES_MAX];
    const uint32_t axes = slice_axes(lengths, whole);
    const uint32_t axis = axes == 0 ? 0 : (uint32_t)random_op_below(random, axes);
    uint64_t first = 0;

    if (axes == 0 || depth == DEPTH_MAX || lengths[axis] < 2) {
        run_rules(whole, memory);
        return;
    }
    for (uint32_t part = 1; part <= PARTS_MAX && first < lengths[axis]; part++) {
        const uint64_t left = lengths[axis] - first;
        const uint64_t last =
            part == PARTS_MAX ? lengths[axis] : first + 1 + random_op_below(random, left);

        run_one_part(whole, memory, axis, first, last, random, depth);
        first = last;
    }
}

/* false: the operation has nothing to cut. */
static bool hold_kind(enum op_kind kind, uint64_t seed)
{
    struct tape *tape = random_op_tape(kind, seed);
    struct slice whole;
    void *expected[SLICE_TENSORS_MAX] = {NULL};
    void *got[SLICE_TENSORS_MAX] = {NULL};
    uint64_t lengths[SLICE_AXES_MAX];
    uint64_t random = seed * 77 + (uint64_t)kind;
    bool cut = false;

    slice_whole(&whole, tape, 0);
    for (uint32_t i = 0; i < tensor_total(&whole); i++) {
        const uint32_t id = i < whole.op.input_count
                                ? tape->ops[0].inputs[i]
                                : tape->ops[0].outputs[i - whole.op.input_count];

        expected[i] = random_op_value(tape, id, (enum random_mood)(seed % MOOD_COUNT), seed + id);
        if (i >= whole.op.input_count) {
            memset(expected[i], UNMADE, bytes_of(&whole.tensors[i]));
        }
        got[i] = malloc(bytes_of(&whole.tensors[i]));
        memcpy(got[i], expected[i], bytes_of(&whole.tensors[i]));
    }
    run_rules(&whole, expected);
    for (int time = 0; time < 6; time++) {
        for (uint32_t i = whole.op.input_count; i < tensor_total(&whole); i++) {
            memset(got[i], UNMADE, bytes_of(&whole.tensors[i]));
        }
        run_parts(&whole, got, &random, 0);
        for (uint32_t i = whole.op.input_count; i < tensor_total(&whole); i++) {
            if (memcmp(got[i], expected[i], bytes_of(&whole.tensors[i])) != 0) {
                fail_msg("%s, seed %llu: output %u differs", op_kind_name(kind),
                         (unsigned long long)seed, i - whole.op.input_count);
            }
        }
    }
    for (uint32_t axis = 0; axis < slice_axes(lengths, &whole); axis++) {
        cut = cut || lengths[axis] > 1;
    }
    for (uint32_t i = 0; i < tensor_total(&whole); i++) {
        free(expected[i]);
        free(got[i]);
    }
    tape_free(tape);
    return cut;
}

static bool can_never_be_cut(enum op_kind kind)
{
    return kind == OP_STEP_NEXT || kind == OP_SCHEDULE || kind == OP_BATCH_TOKENS ||
           kind == OP_BATCH_SAMPLES || kind == OP_DROPOUT || kind == OP_CLIP_FACTOR ||
           kind == OP_PLACE || kind == OP_BATCH_ROWS || kind == OP_UNIFORM;
}

static void test_parts_of_every_kind_make_what_the_whole_makes(void **state)
{
    (void)state;
    for (int kind = 0; kind < OP_KIND_COUNT; kind++) {
        uint32_t cut = 0;

        /* Most random batches of pictures have one picture: go on until some were cut. */
        for (uint64_t seed = 0; seed < SEEDS || (cut < 3 && seed < SEEDS_MAX); seed++) {
            cut += hold_kind((enum op_kind)kind, seed);
            if (can_never_be_cut((enum op_kind)kind) && seed >= SEEDS) {
                break;
            }
        }
        if (can_never_be_cut((enum op_kind)kind)) {
            assert_int_equal(cut, 0);
        } else if (cut == 0) {
            fail_msg("no %s was cut", op_kind_name((enum op_kind)kind));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_of_every_kind_make_what_the_whole_makes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
