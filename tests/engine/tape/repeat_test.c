/*
 * Goal: a tape with a repeat is the tape that its definition unrolls it to, bit for bit, and what
 * is no sound repeat is refused by operation and reason.
 *
 * Method: the same step written twice: with a repeat, and by hand without one, where each sum is
 * made as the definition says (in order within a group, groups as a balanced tree, no zero to begin
 * with); both run on the processor, the first with each rewrite. The same of accumulators that read
 * each other. Thousands of micro-batches against themselves without loops. Bytes and text read
 * back; every field of a repeat spoiled; sizes near the limits; what a machine needs for 8
 * micro-batches against one, and for 400,000 against three.
 */
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "engine/models/model.h"
#include "engine/plan/backend.h"
#include "engine/plan/expand.h"
#include "engine/plan/hoist.h"
#include "engine/plan/recompute.h"
#include "engine/tape/builder_core.h"
#include "engine/tape/repeat.h"
#include "tests/support/numeric/random_tape.h"
#include "tests/support/numeric/small_model.h"
#include "tests/support/test.h"

#define SIDE     12
#define SAMPLES  40
#define STEPS    3
#define TIMES    12
#define REPEAT   (20 + 9 * 3) /* bytes of a repeat of the hand-made tape: micro and two sums */
#define TENSORS  8
#define CARRY_AT 20

/* ---- one step, twice ---------------------------------------------------- */

struct net {
    struct builder *builder;
    uint32_t data;
    uint32_t labels;
    uint32_t w;
    uint32_t step;
};

static void net_begin(struct net *net)
{
    static const uint64_t samples[2] = {SAMPLES, SIDE};
    static const uint64_t count[1] = {SAMPLES};
    static const uint64_t square[2] = {SIDE, SIDE};

    net->builder = builder_new(PRECISION_DEFAULT);
    net->data = build_tensor(net->builder, "data", DTYPE_F32, ROLE_DATA, 2, samples);
    net->labels = build_tensor(net->builder, "labels", DTYPE_U8, ROLE_DATA, 1, count);
    net->w = build_tensor(net->builder, "w", DTYPE_F32, ROLE_STATE, 2, square);
    net->step = build_step(net->builder);
}

/* The gradient and the loss of one micro-batch; counter numbers it. */
static void net_body(struct net *net, uint32_t counter, uint32_t *gradient, uint32_t *loss)
{
    struct builder *builder = net->builder;
    uint32_t inputs[3] = {net->data, net->labels, counter};
    struct output_shape shapes[2] = {shape_matrix(DTYPE_F32, 4, SIDE), shape_vector(DTYPE_U32, 4)};
    struct op op = op_begin(OP_BATCH_SAMPLES, 3, inputs);
    const uint64_t attributes[] = {4, SIDE, 3, 7, 0};
    uint32_t drop[2];

    for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
        op_attribute(&op, attributes[i]);
    }
    op_attribute_float(&op, 1.0f);
    op.output_count = 2;
    build_op(builder, &op, shapes);
    drop[0] = build_linear(builder, op.outputs[0], net->w);
    drop[1] = counter;
    struct op dropout = op_begin(OP_DROPOUT, 2, drop);
    op_attribute(&dropout, UINT32_C(0x40000000));
    op_attribute_float(&dropout, 1.25f);
    op_attribute(&dropout, 5);
    op_attribute(&dropout, 7);
    op_attribute(&dropout, 0);
    dropout.output_count = 1;
    shapes[0] = shape_matrix(DTYPE_F32, 4, SIDE);
    build_op(builder, &dropout, shapes);
    *loss = build_cross_entropy(builder, dropout.outputs[0], op.outputs[1]);
    build_gradients(builder, gradient, *loss, &net->w, 1);
}

static struct tape *net_end(struct net *net, uint32_t gradient, uint32_t loss)
{
    struct tape *tape = NULL;
    struct error error;

    error_init(&error);
    gradient = build_scale(net->builder, gradient, -0.1f);
    build_after(net->builder, net->w, build_add(net->builder, net->w, gradient, 1));
    loss = build_scale(net->builder, loss, 0.125f);
    build_output(net->builder, "loss", loss);
    build_loss(net->builder, loss);
    if (builder_finish(&tape, net->builder, &error) != STATUS_OK) {
        print_message("%s\n", error.text);
        fail();
    }
    builder_free(net->builder);
    return tape;
}

static struct tape *with_repeat(uint32_t times, uint32_t group)
{
    struct net net;
    uint32_t gradient;
    uint32_t loss;

    net_begin(&net);
    build_repeat(net.builder, times, group);
    net_body(&net, build_counter(net.builder), &gradient, &loss);
    gradient = build_accumulated(net.builder, "g.w", gradient);
    loss = build_accumulated(net.builder, "losses", loss);
    build_repeat_end(net.builder);
    return net_end(&net, gradient, loss);
}

/* The definition, word for word. */
static uint32_t sum_of(struct builder *builder, const uint32_t *terms, uint32_t count,
                       uint32_t group)
{
    uint32_t sum = terms[0];

    if (count > group) {
        return build_add(builder, sum_of(builder, terms, count / 2, group),
                         sum_of(builder, terms + count / 2, count / 2, group), 1);
    }
    for (uint32_t i = 1; i < count; i++) {
        sum = build_add(builder, sum, terms[i], 1);
    }
    return sum;
}

static struct tape *by_hand(uint32_t times, uint32_t group)
{
    static const uint64_t one = 1;
    struct output_shape shape = shape_vector(DTYPE_U32, 1);
    uint32_t gradients[64];
    uint32_t losses[64];
    struct net net;
    uint32_t micro;
    uint32_t counter;

    net_begin(&net);
    micro = counter = build_tensor(net.builder, "micro", DTYPE_U32, ROLE_STATE, 1, &one);
    for (uint32_t i = 0; i < times; i++) {
        struct op op = op_begin(OP_STEP_NEXT, 1, &counter);

        net_body(&net, counter, &gradients[i], &losses[i]);
        op.output_count = 1;
        build_op(net.builder, &op, &shape);
        counter = op.outputs[0];
    }
    build_after(net.builder, micro, counter);
    return net_end(&net, sum_of(net.builder, gradients, times, group),
                   sum_of(net.builder, losses, times, group));
}

static uint32_t find(const struct tape *tape, const char *name)
{
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        if (tape->tensors[id].role != ROLE_TEMPORARY && strcmp(tape->tensors[id].name, name) == 0) {
            return id;
        }
    }
    fail();
    return 0;
}

static float uniform(uint64_t *random)
{
    return (float)test_random_below(random, 2001) / 1000.0f - 1.0f;
}

/* The bytes of w, micro and loss after some steps, in a row. */
static void run(uint8_t result[4 * SIDE * SIDE + 8], const struct tape *tape)
{
    struct machine_options options = {.isa = isa_best(), .thread_count = 2};
    static float data[SAMPLES * SIDE];
    static uint8_t labels[SAMPLES];
    float w[SIDE * SIDE];
    const uint32_t zero = 0;
    uint64_t random = 9;
    struct machine *machine = NULL;

    for (uint32_t i = 0; i < SAMPLES * SIDE; i++) {
        data[i] = uniform(&random);
    }
    for (uint32_t i = 0; i < SAMPLES; i++) {
        labels[i] = (uint8_t)test_random_below(&random, SIDE);
    }
    for (uint32_t i = 0; i < SIDE * SIDE; i++) {
        w[i] = uniform(&random);
    }
    assert_int_equal(backend_cpu.open(&machine, tape, &options, NULL), STATUS_OK);
    assert_int_equal(machine->backend->bind(machine, find(tape, "data"), data, NULL), STATUS_OK);
    assert_int_equal(machine->backend->bind(machine, find(tape, "labels"), labels, NULL),
                     STATUS_OK);
    assert_int_equal(machine->backend->write(machine, find(tape, "w"), w, NULL), STATUS_OK);
    assert_int_equal(machine->backend->write(machine, find(tape, "micro"), &zero, NULL), STATUS_OK);
    assert_int_equal(machine->backend->write(machine, find(tape, "step"), &zero, NULL), STATUS_OK);
    for (uint32_t i = 0; i < STEPS; i++) {
        assert_int_equal(machine->backend->step(machine, NULL, NULL), STATUS_OK);
    }
    assert_int_equal(machine->backend->read(machine, find(tape, "w"), result, NULL), STATUS_OK);
    assert_int_equal(machine->backend->read(machine, find(tape, "micro"), result + sizeof(w), NULL),
                     STATUS_OK);
    assert_int_equal(
        machine->backend->read(machine, find(tape, "loss"), result + sizeof(w) + 4, NULL),
        STATUS_OK);
    machine->backend->close(machine);
}

/* Each rewrite of a tape is the same step. */
static void check_rewrites(const uint8_t wanted[4 * SIDE * SIDE + 8], const struct tape *tape)
{
    struct tape *rewrites[4] = {NULL};

    assert_int_equal(expand_build(&rewrites[0], tape, NULL), STATUS_OK);
    assert_int_equal(hoist_build(&rewrites[1], tape, NULL), STATUS_OK);
    assert_int_equal(recompute_build(&rewrites[2], tape, NULL, 2, NULL), STATUS_OK);
    assert_int_equal(hoist_build(&rewrites[3], rewrites[2], NULL), STATUS_OK);
    for (int i = 0; i < 4; i++) {
        uint8_t found[4 * SIDE * SIDE + 8];

        if (rewrites[i] != NULL) {
            run(found, rewrites[i]);
            assert_memory_equal(found, wanted, sizeof(found));
        }
        assert_true(rewrites[i] != NULL || (i == 0 && tape->loop_count == 0));
        tape_free(rewrites[i]);
    }
}

static void test_repeat_is_what_its_definition_unrolls_to(void **state)
{
    static const uint32_t shapes[][2] = {{2, 2}, {2, 1},  {3, 3},  {7, 7},  {8, 1},
                                         {8, 8}, {24, 3}, {32, 8}, {64, 64}};
    uint8_t before[4 * SIDE * SIDE + 8] = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct tape *repeated = with_repeat(shapes[i][0], shapes[i][1]);
        struct tape *unrolled = by_hand(shapes[i][0], shapes[i][1]);
        uint8_t one[4 * SIDE * SIDE + 8];
        uint8_t two[4 * SIDE * SIDE + 8];

        run(one, repeated);
        run(two, unrolled);
        assert_memory_equal(one, two, sizeof(one));
        check_rewrites(one, repeated);
        assert_int_equal(endian_load_le32(one + sizeof(float) * SIDE * SIDE), STEPS * shapes[i][0]);
        if (i > 0 && shapes[i - 1][0] == 8) { /* the order of a sum is not idle */
            assert_memory_not_equal(one, before, sizeof(one));
        }
        memcpy(before, one, sizeof(one));
        tape_free(repeated);
        tape_free(unrolled);
    }
}

static void test_thousands_of_micro_batches_are_those_without_loops(void **state)
{
    static const uint32_t shapes[][2] = {{4096, 4096}, {4096, 512}};

    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct tape *tape = with_repeat(shapes[i][0], shapes[i][1]);
        uint8_t one[4 * SIDE * SIDE + 8];

        run(one, tape);
        assert_int_equal(endian_load_le32(one + sizeof(float) * SIDE * SIDE), STEPS * shapes[i][0]);
        check_rewrites(one, tape);
        tape_free(tape);
    }
}

/* ---- accumulators that read each other ------------------------------------ */

#define STATES  3
#define CROSSED 5

/*
 * What a micro-batch makes of the vectors a to e. c is read when a' is made, and behind that. The
 * next micro-batch makes again of c what this one made of c'. d depends on constants alone. Behind
 * the micro-batches, e is read where it is dropped.
 */
static void crossed_body(struct builder *builder, uint32_t after[CROSSED],
                         const uint32_t before[CROSSED])
{
    const uint32_t quarter = build_scale(builder, before[2], -0.25f);
    uint32_t sum;

    after[0] = build_add(builder, before[1], quarter, 1);
    after[1] = build_add(builder, build_scale(builder, before[0], 0.5f), before[3], 1);
    sum = build_add(builder, build_mul(builder, after[0], before[1], 1), before[4], 1);
    after[2] = build_scale(builder, build_add(builder, sum, before[2], 1), 0.75f);
    after[0] = build_add(builder, after[0], before[2], 1);
    after[0] = build_add(builder, after[0], build_scale(builder, after[2], -0.25f), 1);
    after[3] = build_scale(builder, before[3], 0.5f);
    after[4] = build_scale(builder, build_add(builder, before[4], before[0], 1), 0.5f);
}

/* Three states; with a repeat, or each micro-batch written out. */
static struct tape *crossed_tape(uint32_t times, uint32_t group, bool repeats)
{
    static const char *const names[STATES] = {"a", "b", "c"};
    static const uint64_t length[1] = {SIDE};
    static const uint64_t one[1] = {1};
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    struct tape *tape = NULL;
    uint32_t starts[CROSSED];
    uint32_t now[CROSSED];
    uint32_t after[CROSSED];
    uint32_t never;
    struct error error;

    error_init(&error);
    for (int i = 0; i < CROSSED; i++) {
        starts[i] = i < STATES ? build_tensor(builder, names[i], DTYPE_F32, ROLE_STATE, 1, length)
                               : build_fill(builder, 1.0f / (float)i, 1, length);
    }
    memcpy(now, starts, sizeof(now));
    never = build_fill(builder, 0.0f, 1, one);
    if (repeats) {
        build_repeat(builder, times, group);
        crossed_body(builder, after, starts);
        for (int i = 0; i < CROSSED; i++) {
            build_carry(builder, starts[i], after[i]);
        }
        build_repeat_end(builder);
    }
    for (uint32_t round = 0; !repeats && round < times; round++) {
        crossed_body(builder, after, now);
        memcpy(now, after, sizeof(now));
    }
    after[1] = build_select(builder, never, after[4], after[1]);
    for (int i = 0; i < STATES; i++) {
        build_after(builder, starts[i], after[i]);
    }
    if (builder_finish(&tape, builder, &error) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
    builder_free(builder);
    return tape;
}

static void run_crossed(float result[STATES * SIDE], const struct tape *tape, bool trace)
{
    const struct machine_options options = {
        .isa = isa_best(), .thread_count = 1, .trace = trace, .hoist = !trace};
    struct machine *machine = NULL;

    assert_int_equal(machine_open(&machine, tape, &options, NULL), STATUS_OK);
    for (uint32_t i = 0; i < STATES; i++) {
        float first[SIDE];

        for (uint32_t j = 0; j < SIDE; j++) {
            first[j] = 0.25f * (float)(i + 1) - 0.03f * (float)j;
        }
        assert_int_equal(machine->backend->write(
                             machine, find(tape, (const char[2]){(char)('a' + i)}), first, NULL),
                         STATUS_OK);
    }
    for (uint32_t i = 0; i < STEPS; i++) {
        assert_int_equal(machine->backend->step(machine, NULL, NULL), STATUS_OK);
    }
    for (uint32_t i = 0; i < STATES; i++) {
        assert_int_equal(machine->backend->read(machine,
                                                find(tape, (const char[2]){(char)('a' + i)}),
                                                result + (size_t)i * SIDE, NULL),
                         STATUS_OK);
    }
    machine->backend->close(machine);
}

static void test_accumulators_may_read_each_other(void **state)
{
    static const uint32_t shapes[][2] = {{2, 2}, {3, 3}, {5, 5}, {12, 3}, {40, 10}};

    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct tape *repeated = crossed_tape(shapes[i][0], shapes[i][1], true);
        struct tape *unrolled = crossed_tape(shapes[i][0], shapes[i][1], false);
        struct tape *expanded = NULL;
        float wanted[STATES * SIDE];
        float found[STATES * SIDE];

        run_crossed(wanted, unrolled, true);
        for (int trace = 0; trace < 2; trace++) {
            run_crossed(found, repeated, trace == 1);
            assert_memory_equal(found, wanted, sizeof(found));
        }
        assert_int_equal(expand_build(&expanded, repeated, NULL), STATUS_OK);
        if (expanded != NULL) {
            run_crossed(found, expanded, false);
            assert_memory_equal(found, wanted, sizeof(found));
        }
        tape_free(repeated);
        tape_free(unrolled);
        tape_free(expanded);
    }
}

/* ---- bytes and text ----------------------------------------------------- */

static uint8_t *encode(uint64_t *size, const struct tape *tape)
{
    uint8_t *bytes;

    *size = tape_encoded_size(tape);
    bytes = malloc(*size);
    tape_encode(bytes, tape);
    return bytes;
}

static void test_bytes_of_a_repeat_are_short_and_read_back(void **state)
{
    struct tape *tape = with_repeat(TIMES, 3);
    struct tape *longer = with_repeat(2048, 16);
    struct tape *again = NULL;
    uint64_t size;
    uint64_t again_size;
    uint8_t *bytes = encode(&size, tape);
    uint8_t *again_bytes;
    struct error error;

    (void)state;
    error_init(&error);
    assert_int_equal(tape_encoded_size(longer), size); /* for any number of micro-batches */
    assert_int_equal(tape_parse(&again, bytes, size, &error), STATUS_OK);
    again_bytes = encode(&again_size, again);
    assert_int_equal(again_size, size);
    assert_memory_equal(again_bytes, bytes, size);
    assert_int_equal(again->op_count, tape->op_count);
    assert_memory_equal(again->ops, tape->ops, tape->op_count * sizeof(*tape->ops));
    assert_int_equal(tape_check(again, &error), STATUS_OK); /* what machines run is sound */
    assert_int_equal(tape_check(again->brief, &error), STATUS_OK);
    free(bytes);
    free(again_bytes);
    tape_free(again);
    tape_free(longer);
    tape_free(tape);
}

static void test_text_shows_one_micro_batch(void **state)
{
    struct tape *tape = with_repeat(TIMES, 3);
    char *text = NULL;

    (void)state;
    assert_int_equal(tape_text(&text, tape, NULL), STATUS_OK);
    assert_non_null(strstr(text, "repeat 12 times in groups of 3:\ncarry 'micro'"));
    assert_non_null(strstr(text, "sum 'g.w': %"));
    assert_non_null(strstr(text, "end of the repeat\n"));
    free(text);
    tape_free(tape);
}

/* ---- refusals ----------------------------------------------------------- */

static void check_refused(uint32_t at, uint32_t value, const char *text)
{
    struct tape *tape = with_repeat(TIMES, 3);
    struct tape *parsed = NULL;
    uint64_t size;
    uint8_t *bytes = encode(&size, tape);
    struct error error;

    error_init(&error);
    endian_store_be32(bytes + size - REPEAT + at, value);
    assert_int_not_equal(tape_parse(&parsed, bytes, size, &error), STATUS_OK);
    if (strstr(error.text, text) == NULL) {
        print_message("byte %u: %s\n", at, error.text);
        fail();
    }
    free(bytes);
    tape_free(tape);
}

static void test_spoiled_repeats_are_refused_by_a_sentence(void **state)
{
    struct tape *tape = with_repeat(TIMES, 3);
    const struct tape *brief = tape->brief;
    const struct repeat *repeat = &brief->repeat;

    (void)state;
    check_refused(0, 0, "0 micro-batches");
    check_refused(0, 1, "1 micro-batches in groups of 3");
    check_refused(0, 9, "9 micro-batches in groups of 3"); /* three groups */
    check_refused(0, 13, "13 micro-batches in groups of 3");
    check_refused(0, 3 << 20, "at most 1000000 make 16777216 and run as 1000000 on 2500000");
    check_refused(0, UINT32_C(3) << 30, "at most");
    check_refused(4, 0, "in groups of 0");
    check_refused(4, 13, "in groups of 13");
    check_refused(8, brief->op_count + 1, "a repeat of");
    check_refused(8, 0, "accumulator"); /* the start of a sum is inside */
    check_refused(12, 0, "a repeat of 0 operations");
    check_refused(12, UINT32_MAX, "a repeat of 4294967295 operations");
    check_refused(12, repeat->op_count - 1, "accumulator 'losses'"); /* nobody makes it */
    check_refused(16, 0, "27 bytes follow");
    check_refused(16, 4, "4 accumulators");
    check_refused(16, 2, "bytes follow");
    check_refused(CARRY_AT, brief->tensor_count, "an accumulator of tensors");
    check_refused(CARRY_AT, repeat->carries[0].after, "must begin as one state");
    check_refused(CARRY_AT, 0, "must begin as one state"); /* the data */
    check_refused(CARRY_AT, find(tape, "w"), "another name, type or shape");
    check_refused(CARRY_AT + 4, repeat->carries[0].start, "no operation of the micro-batch makes");
    check_refused(CARRY_AT + 9, repeat->carries[2].start, "another name, type or shape");
    check_refused(CARRY_AT + 18, repeat->carries[1].start, "must begin as one state"); /* twice */
    check_refused(CARRY_AT + 5, 0xffffff02, "flag 2");
    tape_free(tape);
}

/* Built tapes that break one rule each. */
enum breach { LEAK, LEAK_TO_STATE, LEAK_LOSS, OUTPUT_INSIDE, QUANTIZED, TWO_REPEATS, BREACHES };

static enum status build_breach(enum breach breach, struct error *error)
{
    struct tape *tape = NULL;
    struct net net;
    uint32_t gradient;
    uint32_t loss;
    enum status status;

    net_begin(&net);
    build_repeat(net.builder, 4, 4);
    net_body(&net, build_counter(net.builder), &gradient, &loss);
    if (breach == OUTPUT_INSIDE) {
        build_output(net.builder, "inside", loss);
    }
    if (breach == QUANTIZED) {
        struct view view = view_matrix(SIDE, SIDE);
        struct quantized first = build_quantize(net.builder, net.w, &view, PRECISION_DEFAULT);

        build_carry(net.builder, first.q, first.q);
    }
    if (breach == TWO_REPEATS) {
        build_repeat(net.builder, 4, 4);
    }
    uint32_t sum = build_accumulated(net.builder, "g.w", gradient);

    build_repeat_end(net.builder);
    sum = build_scale(net.builder, breach == LEAK ? gradient : sum, -0.1f);
    build_after(net.builder, net.w, breach == LEAK_TO_STATE ? gradient : sum);
    build_loss(net.builder, breach == LEAK_LOSS ? loss : TENSOR_NONE);
    error_init(error);
    status = builder_finish(&tape, net.builder, error);
    builder_free(net.builder);
    tape_free(tape);
    return status;
}

static void test_only_accumulators_leave_a_micro_batch(void **state)
{
    static const char *const texts[BREACHES] = {
        [LEAK] = "which is no accumulator",
        [LEAK_TO_STATE] = "the next value of state 'w' is made by a micro-batch",
        [LEAK_LOSS] = "the loss is made by a micro-batch",
        [OUTPUT_INSIDE] = "'inside' is made by every micro-batch",
        [QUANTIZED] = "must begin as one state",
        [TWO_REPEATS] = "one repeat",
    };
    struct error error;

    (void)state;
    for (int breach = 0; breach < BREACHES; breach++) {
        assert_int_equal(build_breach((enum breach)breach, &error), STATUS_BAD_FORMAT);
        if (strstr(error.text, texts[breach]) == NULL) {
            print_message("%d: %s\n", breach, error.text);
            fail();
        }
    }
    assert_int_equal(build_breach(BREACHES, &error), STATUS_OK);
}

/* ---- memory ------------------------------------------------------------- */

static uint64_t memory_of(uint32_t times, uint32_t group, uint64_t *parameters)
{
    struct machine_options options = {.isa = isa_best(), .thread_count = 1};
    struct model_options model_options;
    struct model model;
    uint64_t size = 0;
    struct error error;

    error_init(&error);
    model_options_default(&model_options, MODEL_GPT2);
    model_options.data_count = 100000;
    model_options.accumulate = times;
    model_options.group = group;
    assert_int_equal(model_build(&model, &model_options, &error), STATUS_OK);
    assert_int_equal(backend_cpu.size(&size, model.tape, &options, &error), STATUS_OK);
    *parameters = 0;
    for (uint32_t i = 0; i < model.parameter_count; i++) {
        *parameters += 4 * model.tape->tensors[model.parameters[i]].count;
    }
    model_release(&model);
    return size;
}

static void test_400000_micro_batches_take_no_more_than_three(void **state)
{
    struct tape *few = with_repeat(3, 3);
    struct tape *many = with_repeat(400000, 400000);
    struct tape *expanded = NULL;
    struct machine_options options = {.isa = isa_best(), .thread_count = 1};
    uint64_t sizes[2];
    struct error error;

    (void)state;
    error_init(&error);
    assert_int_equal(many->op_count, few->op_count);
    assert_int_equal(many->tensor_count, few->tensor_count);
    assert_int_equal(tape_unlooped(many).ops - tape_unlooped(few).ops,
                     (uint64_t)(400000 - 3) * many->brief->repeat.op_count);
    assert_int_equal(backend_cpu.size(&sizes[0], few, &options, &error), STATUS_OK);
    assert_int_equal(backend_cpu.size(&sizes[1], many, &options, &error), STATUS_OK);
    assert_int_equal(sizes[0], sizes[1]);
    assert_int_equal(expand_build(&expanded, many, &error), STATUS_OVER_LIMIT);
    assert_non_null(strstr(error.text, "takes at most 1000000 operations"));
    tape_free(few);
    tape_free(many);
}

static void test_memory_grows_by_the_accumulators_alone(void **state)
{
    uint64_t parameters;
    uint64_t one = memory_of(1, 1, &parameters);
    uint64_t eight = memory_of(8, 8, &parameters);
    uint64_t many = memory_of(64, 64, &parameters);
    uint64_t tree = memory_of(64, 8, &parameters);

    (void)state;
    print_message("%llu KiB; of 8 micro-batches %llu, of 64 %llu, in 8 groups %llu; parameters "
                  "%llu\n",
                  (unsigned long long)(one >> 10), (unsigned long long)(eight >> 10),
                  (unsigned long long)(many >> 10), (unsigned long long)(tree >> 10),
                  (unsigned long long)(parameters >> 10));
    assert_true(eight <= one + parameters + parameters / 4);
    assert_true(many <= eight + 65536);
    assert_true(tree <= one + 6 * parameters); /* a subtree for each level, not a sum per group */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repeat_is_what_its_definition_unrolls_to),
        cmocka_unit_test(test_thousands_of_micro_batches_are_those_without_loops),
        cmocka_unit_test(test_accumulators_may_read_each_other),
        cmocka_unit_test(test_400000_micro_batches_take_no_more_than_three),
        cmocka_unit_test(test_bytes_of_a_repeat_are_short_and_read_back),
        cmocka_unit_test(test_text_shows_one_micro_batch),
        cmocka_unit_test(test_spoiled_repeats_are_refused_by_a_sentence),
        cmocka_unit_test(test_only_accumulators_leave_a_micro_batch),
        cmocka_unit_test(test_memory_grows_by_the_accumulators_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
