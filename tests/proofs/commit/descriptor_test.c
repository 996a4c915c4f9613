/*
 * Goal: descriptors have the documented bytes and hold all that a judge needs; hostile ones are
 * refused.
 *
 * Method: one operation and one state written out by hand; every item of the small models read back
 * and compared with the tape; each byte of good descriptors changed: what still reads is sound.
 */
#include <stdlib.h>
#include <string.h>

#include "proofs/commit/commit.h"
#include "proofs/commit/descriptor.h"
#include "proofs/commit/trace.h"
#include "proofs/hash/sha256.h"
#include "tests/support/loops/unlooped.h"
#include "tests/support/numeric/random_tape.h"
#include "tests/support/numeric/small_model.h"
#include "tests/support/test.h"

/* step' = step + 1; table (a constant) and x (data); y = the table's value. */
enum { STEP, OTHER, TABLE, X, STEP_NEXT, Y, TENSORS };

static struct tape *hand_tape(void)
{
    struct tape *tape = calloc(1, sizeof(*tape));

    *tape = (struct tape){.tensor_count = TENSORS, .op_count = 2, .state_count = 2};
    tape->loss = TENSOR_NONE;
    tape->tensors = calloc(TENSORS, sizeof(*tape->tensors));
    tape->ops = calloc(2, sizeof(*tape->ops));
    tape->states = calloc(2, sizeof(*tape->states));
    tape->tensors[STEP] = (struct tensor){"step", DTYPE_U32, ROLE_STATE, 1, {1}, 1};
    tape->tensors[OTHER] = (struct tensor){"other", DTYPE_F32, ROLE_STATE, 2, {2, 3}, 6};
    tape->tensors[TABLE] = (struct tensor){"table", DTYPE_F32, ROLE_CONSTANT, 2, {5, 2}, 10};
    tape->tensors[X] = (struct tensor){"x", DTYPE_U8, ROLE_DATA, 1, {9}, 9};
    tape->tensors[STEP_NEXT] = (struct tensor){"step", DTYPE_U32, ROLE_TEMPORARY, 1, {1}, 1};
    tape->tensors[Y] = (struct tensor){"y", DTYPE_F32, ROLE_OUTPUT, 0, {0}, 1};
    tape->ops[0] = (struct op){
        .kind = OP_STEP_NEXT, .input_count = 1, .output_count = 1, .outputs = {STEP_NEXT}};
    tape->ops[1] = (struct op){.kind = OP_SCHEDULE,
                               .input_count = 2,
                               .output_count = 1,
                               .attribute_count = 2,
                               .inputs = {TABLE, STEP},
                               .outputs = {Y},
                               .attributes = {2, 1}};
    tape->states[0] = (struct state_pair){STEP, STEP_NEXT, {INIT_ZEROS, 0}};
    tape->states[1] = (struct state_pair){OTHER, OTHER, {INIT_NORMAL, 0x3dcccccd}};
    return tape;
}

static void add_hash(uint8_t *at, const uint8_t *label, size_t size)
{
    struct digest hash;

    sha256(&hash, label, size);
    memcpy(at, hash.bytes, DIGEST_SIZE);
}

static const uint8_t table_label[65] = {[7] = 40,   [15] = 5,   [23] = 2,   [57] = 2,   [59] = 5,
                                        [60] = 't', [61] = 'a', [62] = 'b', [63] = 'l', [64] = 'e'};
static const uint8_t step_label[64] = {[7] = 4,    [15] = 1,   [56] = 3,   [57] = 1,  [59] = 4,
                                       [60] = 's', [61] = 't', [62] = 'e', [63] = 'p'};
static const uint8_t y_label[61] = {[7] = 4, [59] = 1, [60] = 'y'};
static const uint8_t other_label[65] = {[7] = 24,   [15] = 2,   [23] = 3,   [57] = 2,   [59] = 5,
                                        [60] = 'o', [61] = 't', [62] = 'h', [63] = 'e', [64] = 'r'};

static void test_descriptor_of_an_operation_has_the_documented_bytes(void **state)
{
    uint8_t expected[21 + 3 * 46] = {0, OP_SCHEDULE, 2, 2, 1, [12] = 2, [20] = 1};
    uint8_t *at = expected + 21;
    struct tape *tape = hand_tape();
    struct descriptor_places places;
    uint8_t bytes[DESCRIPTOR_SIZE_MAX];

    (void)state;
    at[1] = ROLE_CONSTANT; /* number 0 of its kind */
    at[13] = 10;
    add_hash(at + 14, table_label, sizeof(table_label));
    at += 46;
    at[0] = DTYPE_U32;
    at[1] = ROLE_STATE;
    at[13] = 1;
    add_hash(at + 14, step_label, sizeof(step_label));
    at += 46;
    at[1] = ROLE_OUTPUT;
    at[5] = 3; /* two states, the next step, y */
    at[13] = 1;
    add_hash(at + 14, y_label, sizeof(y_label));
    assert_int_equal(descriptor_places_find(&places, tape, NULL), STATUS_OK);
    assert_int_equal(places.trace_items, 4);
    assert_int_equal(descriptor_write(bytes, &places, 1), sizeof(expected));
    assert_memory_equal(bytes, expected, sizeof(expected));
    descriptor_places_release(&places);
    tape_free(tape);
}

static void test_descriptor_of_a_state_has_the_documented_bytes(void **state)
{
    uint8_t expected[51] = {0xff, 0xff, [9] = 2, [13] = 2, [46] = 1};
    struct tape *tape = hand_tape();
    struct descriptor_places places;
    uint8_t bytes[DESCRIPTOR_SIZE_MAX];

    (void)state;
    assert_int_equal(descriptor_places_find(&places, tape, NULL), STATUS_OK);
    assert_int_equal(descriptor_count(tape), 4);
    add_hash(expected + 14, step_label, sizeof(step_label));
    assert_int_equal(descriptor_write(bytes, &places, 2), 51);
    assert_memory_equal(bytes, expected, 51);
    expected[5] = 1;
    expected[13] = 1; /* it never changes */
    memcpy(expected + 46, "\5\x3d\xcc\xcc\xcd", 5);
    add_hash(expected + 14, other_label, sizeof(other_label));
    assert_int_equal(descriptor_write(bytes, &places, 3), 51);
    assert_memory_equal(bytes, expected, 51);
    descriptor_places_release(&places);
    tape_free(tape);
}

static void test_label_of_data_holds_no_name(void **state)
{
    static const uint8_t expected[60] = {[7] = 9, [15] = 9, [56] = 1, [57] = 1};
    struct tape *tape = hand_tape();
    uint8_t label[DESCRIPTOR_LABEL_MAX];

    (void)state;
    assert_int_equal(descriptor_label(label, &tape->tensors[X]), sizeof(expected));
    assert_memory_equal(label, expected, sizeof(expected));
    tape_free(tape);
}

static void check_operand(const struct descriptor_operand *operand,
                          const struct descriptor_places *places, uint32_t id)
{
    const struct tensor *tensor = &places->tape->tensors[id];
    struct digest label;

    descriptor_label_hash(&label, tensor);
    assert_int_equal(operand->dtype, tensor->dtype);
    assert_int_equal(operand->role, tensor->role);
    assert_int_equal(operand->place, places->of[id]);
    assert_int_equal(operand->count, tensor->count);
    assert_true(digest_equal(&operand->label, &label));
}

static void check_op(const struct descriptor *read, const struct descriptor_places *places,
                     const struct op *op)
{
    assert_false(read->is_state);
    assert_int_equal(read->op.kind, op->kind);
    assert_int_equal(read->op.attribute_count, op->attribute_count);
    assert_int_equal(read->op.input_count, op->input_count);
    assert_int_equal(read->op.output_count, op->output_count);
    assert_memory_equal(read->op.attributes, op->attributes, 8 * op->attribute_count);
    for (uint32_t i = 0; i < op->input_count; i++) {
        assert_int_equal(read->op.inputs[i], i);
        check_operand(&read->operands[i], places, op->inputs[i]);
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        assert_int_equal(read->op.outputs[i], op->input_count + i);
        check_operand(&read->operands[op->input_count + i], places, op->outputs[i]);
    }
}

static void check_program(const struct tape *tape)
{
    struct descriptor_places places;
    struct commit_roots roots;
    struct digest root;
    struct digest wanted;

    assert_int_equal(descriptor_places_find(&places, tape, NULL), STATUS_OK);
    commit_roots_init(&roots, COMMIT_PROGRAM, places.trace_items);
    for (uint32_t item = 0; item < descriptor_count(tape); item++) {
        uint8_t bytes[DESCRIPTOR_SIZE_MAX];
        struct descriptor read;
        size_t size = descriptor_write(bytes, &places, item);

        assert_int_equal(commit_roots_add_bytes(&roots, bytes, size), STATUS_OK);
        assert_int_equal(descriptor_read(&read, bytes, size, NULL), STATUS_OK);
        if (item < tape->op_count) {
            check_op(&read, &places, &tape->ops[item]);
        } else {
            const struct state_pair *pair = &tape->states[item - tape->op_count];

            assert_true(read.is_state);
            assert_int_equal(read.state, item - tape->op_count);
            assert_int_equal(read.state_count, tape->state_count);
            assert_int_equal(read.next, places.of[pair->after]);
            assert_int_equal(read.init.kind, pair->init.kind);
            assert_int_equal(read.init.value_bits, pair->init.value_bits);
        }
        assert_int_equal(descriptor_read(&read, bytes, size - 1, NULL), STATUS_BAD_FORMAT);
    }
    commit_roots_end(&roots, &wanted);
    assert_int_equal(descriptor_program_root(&root, tape, NULL), STATUS_OK);
    assert_true(digest_equal(&root, &wanted));
    descriptor_places_release(&places);
}

static void test_programs_of_all_models_are_read_back(void **state)
{
    (void)state;
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        struct model_options options;
        struct small_model small;

        small_model_options(&options, (enum model_kind)kind);
        small_model_open(&small, &options);
        check_program(small.model.tape);
        small_model_close(&small);
    }
}

/* Every operation that runs is an instance of an item of the program, which gives its operands the
 * places that they have; no other instance is taken. */
static void check_instances(const struct tape *tape)
{
    struct descriptor_places places;
    struct unlooped unlooped;

    assert_true(unlooped_open(&unlooped, tape));
    assert_int_equal(descriptor_places_find(&places, tape, NULL), STATUS_OK);
    for (uint32_t at = 0; at < unlooped.tape->op_count; at++) {
        const struct op_turn maker = unlooped_maker(&unlooped, at);
        const struct op *op = &unlooped.tape->ops[at];
        uint8_t bytes[DESCRIPTOR_SIZE_MAX];
        struct descriptor read;
        struct op_turn found;
        uint32_t instance;
        uint32_t item = descriptor_of_op(&instance, tape, maker);
        size_t size = descriptor_write(bytes, &places, item);

        assert_true(descriptor_find_op(&found, tape, item, instance));
        assert_true(found.op == maker.op && found.turn == maker.turn);
        descriptor_of_turn(&read, &places, maker);
        assert_int_equal(read.is_repeated, descriptor_is_repeated(bytes));
        for (uint32_t i = 0; i < read.operand_count; i++) {
            uint32_t id = i < op->input_count ? op->inputs[i] : op->outputs[i - op->input_count];
            struct digest label;

            descriptor_label_hash(&label, &unlooped.tape->tensors[id]);
            assert_int_equal(read.operands[i].place, unlooped.places[id]);
            assert_true(digest_equal(&read.operands[i].label, &label));
        }
        for (uint32_t i = 0; i < op->output_count; i++) {
            struct op_turn output_maker;
            uint32_t output;

            assert_int_equal(trace_item_of_output(tape, maker, i), unlooped.places[op->outputs[i]]);
            trace_output_at(&output_maker, &output, tape, unlooped.places[op->outputs[i]]);
            assert_true(output_maker.op == maker.op && output_maker.turn == maker.turn &&
                        output == i);
        }
        if (read.is_repeated) {
            assert_int_equal(descriptor_read(&read, bytes, size, NULL), STATUS_OK);
            assert_false(descriptor_at(&read, read.layout.times, places.trace_items));
            assert_int_equal(descriptor_at(&read, 0, places.trace_items),
                             read.operands[read.operand_count - 1].way < DESCRIPTOR_JOIN);
        }
    }
    descriptor_places_release(&places);
    unlooped_close(&unlooped);
}

/* Of a trace, where the next values stand, and what is made before what. */
static void check_order(const struct tape *tape, uint64_t *random)
{
    struct unlooped unlooped;
    uint32_t *next = NULL;

    assert_true(unlooped_open(&unlooped, tape));
    assert_int_equal(trace_next_items(&next, tape, NULL), STATUS_OK);
    for (uint32_t i = 0; i < tape->state_count; i++) {
        assert_int_equal(next[i], unlooped.places[unlooped.tape->states[i].after]);
    }
    for (int round = 0; round < 200; round++) {
        uint32_t items[2];
        uint32_t ats[2];

        for (int i = 0; i < 2; i++) {
            ats[i] = (uint32_t)test_random_below(random, unlooped.tape->op_count);
            items[i] = unlooped.places[unlooped.tape->ops[ats[i]].outputs[0]];
        }
        assert_int_equal(trace_is_before(tape, items[0], items[1]), ats[0] < ats[1]);
    }
    free(next);
    unlooped_close(&unlooped);
}

static void test_instances_of_a_repeat_have_their_places(void **state)
{
    static const uint32_t shapes[][2] = {{1, 1},  {2, 2},  {2, 1},   {5, 5},
                                         {32, 1}, {12, 3}, {64, 16}, {48, 6}};
    uint64_t random = 3;

    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct model_options options;
        struct small_model small;

        small_model_options(&options, i % 2 == 0 ? MODEL_MLP : MODEL_GPT2);
        options.accumulate = shapes[i][0];
        options.group = shapes[i][1];
        small_model_open(&small, &options);
        check_instances(small.model.tape);
        check_order(small.model.tape, &random);
        small_model_close(&small);
    }
}

static void test_programs_of_random_tapes_are_read_back(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < test_share(5000, 200); seed++) {
        struct tape *tape = random_tape(seed, (uint32_t)(seed % 30));

        check_program(tape);
        tape_free(tape);
    }
}

/* A changed descriptor that still reads is one that op_check() accepts. */
static void check_damaged(const uint8_t *good, size_t size, uint64_t *seed)
{
    for (size_t at = 0; at < size; at++) {
        uint8_t bytes[DESCRIPTOR_SIZE_MAX + 1];
        struct descriptor read;
        struct error error;

        memcpy(bytes, good, size);
        bytes[at] ^= (uint8_t)(1 + test_random_below(seed, 255));
        bytes[size] = 0;
        error_init(&error);
        assert_int_not_equal(descriptor_read(&read, bytes, size + 1, &error), STATUS_OK);
        if (descriptor_read(&read, bytes, size, &error) != STATUS_OK) {
            assert_true(error.text[0] != '\0');
            continue;
        }
        for (uint32_t i = 0; i < read.operand_count; i++) {
            assert_true(read.operands[i].dtype < DTYPE_COUNT);
            assert_true(read.operands[i].role < ROLE_COUNT);
        }
    }
}

static void test_damaged_descriptors_are_refused_or_sound(void **state)
{
    uint64_t seed = 8;

    (void)state;
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        struct model_options options;
        struct small_model small;
        struct descriptor_places places;

        small_model_options(&options, (enum model_kind)kind);
        small_model_open(&small, &options);
        assert_int_equal(descriptor_places_find(&places, small.model.tape, NULL), STATUS_OK);
        for (uint32_t item = 0; item < descriptor_count(small.model.tape); item++) {
            uint8_t bytes[DESCRIPTOR_SIZE_MAX];

            check_damaged(bytes, descriptor_write(bytes, &places, item), &seed);
        }
        descriptor_places_release(&places);
        small_model_close(&small);
    }
}

static void test_state_out_of_range_is_refused(void **state)
{
    uint8_t bytes[DESCRIPTOR_STATE_SIZE] = {0xff, 0xff, [5] = 7, [9] = 8};
    struct descriptor read;

    (void)state;
    assert_int_equal(descriptor_read(&read, bytes, sizeof(bytes), NULL), STATUS_OK);
    bytes[46] = 6; /* no such kind */
    assert_int_equal(descriptor_read(&read, bytes, sizeof(bytes), NULL), STATUS_BAD_FORMAT);
    bytes[46] = 0;
    bytes[5] = 8;
    assert_int_equal(descriptor_read(&read, bytes, sizeof(bytes), NULL), STATUS_BAD_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_descriptor_of_an_operation_has_the_documented_bytes),
        cmocka_unit_test(test_descriptor_of_a_state_has_the_documented_bytes),
        cmocka_unit_test(test_label_of_data_holds_no_name),
        cmocka_unit_test(test_programs_of_all_models_are_read_back),
        cmocka_unit_test(test_instances_of_a_repeat_have_their_places),
        cmocka_unit_test(test_programs_of_random_tapes_are_read_back),
        cmocka_unit_test(test_damaged_descriptors_are_refused_or_sound),
        cmocka_unit_test(test_state_out_of_range_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
