/*
 * tape_test.c - tapes survive a round trip as bytes, and hostile bytes are refused.
 *
 * Round trips of models and of random tapes; each truncation; each byte changed; then one spoiled
 * field at a time, with the error that must come back. "tape_test write FOLDER" writes the seeds of
 * the fuzz target.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/tape/builder_core.h"
#include "tests/support/numeric/random_tape.h"
#include "tests/support/numeric/small_model.h"
#include "tests/support/test.h"

struct bytes {
    uint8_t *at;
    uint64_t size;
};

static struct bytes encoded(const struct tape *tape)
{
    struct bytes bytes = {NULL, tape_encoded_size(tape)};

    bytes.at = malloc(bytes.size);
    assert_non_null(bytes.at);
    tape_encode(bytes.at, tape);
    return bytes;
}

static void assert_same_tape(const struct tape *a, const struct tape *b)
{
    assert_int_equal(a->tensor_count, b->tensor_count);
    assert_int_equal(a->op_count, b->op_count);
    assert_int_equal(a->state_count, b->state_count);
    assert_int_equal(a->loss, b->loss);
    for (uint32_t id = 0; id < a->tensor_count; id++) {
        assert_string_equal(a->tensors[id].name, b->tensors[id].name);
        assert_int_equal(a->tensors[id].dtype, b->tensors[id].dtype);
        assert_int_equal(a->tensors[id].role, b->tensors[id].role);
        assert_int_equal(a->tensors[id].rank, b->tensors[id].rank);
        assert_int_equal(a->tensors[id].count, b->tensors[id].count);
        assert_memory_equal(a->tensors[id].dims, b->tensors[id].dims,
                            a->tensors[id].rank * sizeof(uint64_t));
    }
    for (uint32_t at = 0; at < a->op_count; at++) {
        assert_memory_equal(&a->ops[at], &b->ops[at], sizeof(a->ops[at]));
    }
    for (uint32_t i = 0; i < a->state_count; i++) {
        assert_int_equal(a->states[i].before, b->states[i].before);
        assert_int_equal(a->states[i].after, b->states[i].after);
    }
}

static void check_round_trip(const struct tape *tape)
{
    struct bytes bytes = encoded(tape);
    struct bytes again;
    struct tape *parsed = NULL;
    struct error error;

    error_init(&error);
    if (tape_parse(&parsed, bytes.at, bytes.size, &error) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
    assert_same_tape(tape, parsed);
    again = encoded(parsed);
    assert_int_equal(again.size, bytes.size);
    assert_memory_equal(again.at, bytes.at, bytes.size);
    tape_free(parsed);
    free(bytes.at);
    free(again.at);
}

static struct tape *model_tape(struct small_model *small, enum model_kind kind, bool inference)
{
    struct model_options options;

    small_model_options(&options, kind);
    options.inference = inference;
    small_model_open(small, &options);
    return small->model.tape;
}

/* ---- bytes -------------------------------------------------------------- */

static void test_models_come_back_from_their_bytes(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2 * MODEL_COUNT; kind++) {
        struct small_model small;

        check_round_trip(model_tape(&small, (enum model_kind)(kind / 2), kind % 2 == 1));
        small_model_close(&small);
    }
}

static void test_random_tapes_come_back_from_their_bytes(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < test_share(20000, 500); seed++) {
        struct tape *tape = random_tape(seed, (uint32_t)(seed % 30));

        check_round_trip(tape);
        tape_free(tape);
    }
}

static void test_equal_options_give_equal_bytes_and_others_do_not(void **state)
{
    struct small_model a;
    struct small_model b;
    struct small_model c;
    struct model_options options;
    struct bytes bytes[3];

    (void)state;
    small_model_options(&options, MODEL_LLAMA);
    small_model_open(&a, &options);
    small_model_open(&b, &options);
    options.rate_min = 0.02; /* in the schedule's table, which is a constant, not in the tape */
    options.clip = 0.5;
    small_model_open(&c, &options);
    bytes[0] = encoded(a.model.tape);
    bytes[1] = encoded(b.model.tape);
    bytes[2] = encoded(c.model.tape);
    assert_int_equal(bytes[0].size, bytes[1].size);
    assert_memory_equal(bytes[0].at, bytes[1].at, bytes[0].size);
    assert_int_equal(bytes[0].size, bytes[2].size);
    assert_memory_not_equal(bytes[0].at, bytes[2].at, bytes[0].size);
    for (int i = 0; i < 3; i++) {
        free(bytes[i].at);
    }
    small_model_close(&a);
    small_model_close(&b);
    small_model_close(&c);
}

/* A refusal must leave an error and no tape. */
static bool is_refused(const uint8_t *bytes, uint64_t size)
{
    struct tape *tape = NULL;
    struct error error;

    error_init(&error);
    if (tape_parse(&tape, bytes, size, &error) == STATUS_OK) {
        tape_free(tape);
        return false;
    }
    assert_null(tape);
    assert_true(error.text[0] != '\0');
    return true;
}

static void test_every_truncation_is_refused(void **state)
{
    struct tape *tape = random_tape(11, 12);
    struct bytes bytes = encoded(tape);

    (void)state;
    for (uint64_t size = 0; size < bytes.size; size++) {
        /* Exactly the promised size, so a sanitizer sees every access past it. */
        uint8_t *cut = malloc(size + (size == 0));

        memcpy(cut, bytes.at, size);
        if (!is_refused(cut, size)) {
            fail_msg("the first %llu of %llu bytes were taken", (unsigned long long)size,
                     (unsigned long long)bytes.size);
        }
        free(cut);
    }
    bytes.at = realloc(bytes.at, bytes.size + 1);
    bytes.at[bytes.size] = 0;
    assert_true(is_refused(bytes.at, bytes.size + 1));
    free(bytes.at);
    tape_free(tape);
}

static void test_every_changed_byte_is_refused_or_means_itself(void **state)
{
    struct tape *tape = random_tape(11, 12);
    struct bytes bytes = encoded(tape);
    uint64_t values = test_share(255, 4);
    uint64_t taken = 0;

    (void)state;
    for (uint64_t at = 0; at < bytes.size; at++) {
        uint8_t kept = bytes.at[at];

        for (uint64_t i = 1; i <= values; i++) {
            static const uint8_t marks[4] = {0x01, 0x80, 0xff, 0x10};
            struct tape *parsed = NULL;

            bytes.at[at] = (uint8_t)(kept ^ (values == 255 ? i : marks[i - 1]));
            if (tape_parse(&parsed, bytes.at, bytes.size, NULL) == STATUS_OK) {
                struct bytes again = encoded(parsed);

                assert_int_equal(again.size, bytes.size);
                assert_memory_equal(again.at, bytes.at, bytes.size);
                free(again.at);
                tape_free(parsed);
                taken++;
            }
        }
        bytes.at[at] = kept;
    }
    assert_true(taken > 0); /* a name or a seed may change */
    free(bytes.at);
    tape_free(tape);
}

static void put_u32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        at[i] = (uint8_t)(value >> (24 - 8 * i));
    }
}

static void test_hostile_counts_allocate_nothing(void **state)
{
    static const uint32_t counts[] = {1u << 20, 1u << 30, UINT32_MAX, TAPE_TENSORS_MAX + 1,
                                      TAPE_TENSORS_MAX};
    struct tape *tape = random_tape(11, 12);
    struct bytes bytes = encoded(tape);

    (void)state;
    /* Offsets 8, 12 and 16: tensors, operations, states. */
    for (uint64_t offset = 8; offset <= 16; offset += 4) {
        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
            struct tape *parsed = NULL;
            struct error error;
            uint8_t kept[4];

            memcpy(kept, bytes.at + offset, 4);
            put_u32(bytes.at + offset, counts[i]);
            error_init(&error);
            assert_int_equal(tape_parse(&parsed, bytes.at, bytes.size, &error), STATUS_BAD_FORMAT);
            assert_non_null(strstr(error.text, "do not fit"));
            memcpy(bytes.at + offset, kept, 4);
        }
    }
    assert_false(is_refused(bytes.at, bytes.size));
    free(bytes.at);
    tape_free(tape);
}

static void test_tape_past_the_limit_is_refused_unread(void **state)
{
    struct tape *tape = NULL;
    struct error error;

    (void)state;
    error_init(&error);
    /* The size is checked before a byte is read. */
    assert_int_equal(tape_parse(&tape, NULL, TAPE_BYTES_MAX + 1, &error), STATUS_OVER_LIMIT);
}

/* ---- one spoiled field at a time ---------------------------------------- */

/*
 * x (state) -> quantize -> contract with w -> y; y -> mean -> loss; w stays. Tensors: 0 x, 1 w,
 * 2..4 quantized x, 5..7 quantized w, 8 y, 9 row-sum part, 10 sum, 11 loss. Operations: 0 and 1
 * quantize, 2 contract, 3 row-sum, 4 scale, 5 scale (x's next value, tensor 12).
 */
enum { X, W, PEAKS_X, E_X, Q_X, PEAKS_W, E_W, Q_W, Y, PART, SUM, LOSS, NEXT_X, TENSOR_COUNT };
enum { QUANTIZE_X, QUANTIZE_W, CONTRACT, ROW_SUM, SCALE, NEXT, COUNT };

static struct tape *small_tape(void)
{
    static const uint64_t x_dims[2] = {4, 40};
    static const uint64_t w_dims[2] = {3, 40};
    struct builder *builder = builder_new((struct precision){14, 16});
    struct tape *tape = NULL;
    uint32_t x = build_tensor(builder, "x", DTYPE_F32, ROLE_STATE, 2, x_dims);
    uint32_t w = build_tensor(builder, "w", DTYPE_F32, ROLE_STATE, 2, w_dims);
    uint32_t loss = build_mean(builder, build_linear(builder, x, w));

    build_output(builder, "loss", loss);
    build_loss(builder, loss);
    build_after(builder, x, build_scale(builder, x, 0.5f));
    assert_int_equal(builder_finish(&tape, builder, NULL), STATUS_OK);
    builder_free(builder);
    assert_int_equal(tape->tensor_count, TENSOR_COUNT);
    assert_int_equal(tape->op_count, COUNT);
    return tape;
}

typedef void spoil(struct tape *tape);

struct spoiled {
    spoil *spoil;
    const char *words;
};

/* tape_check() refuses it, and so does the parser, where bytes can express it. */
static void check_spoiled(const struct spoiled *spoiled, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct tape *tape = small_tape();
        struct error error;

        error_init(&error);
        spoiled[i].spoil(tape);
        if (tape_check(tape, &error) == STATUS_OK) {
            fail_msg("taken, although '%s'", spoiled[i].words);
        }
        if (strstr(error.text, spoiled[i].words) == NULL) {
            fail_msg("'%s' does not say '%s'", error.text, spoiled[i].words);
        }
        struct bytes bytes = encoded(tape);
        assert_true(is_refused(bytes.at, bytes.size));
        free(bytes.at);
        tape_free(tape);
    }
}

#define CHECK_SPOILED(table) check_spoiled(table, sizeof(table) / sizeof((table)[0]))

static void read_itself(struct tape *tape)
{
    tape->ops[SCALE].inputs[0] = LOSS;
}

static void read_later(struct tape *tape)
{
    tape->ops[ROW_SUM].inputs[0] = NEXT_X;
    tape->ops[ROW_SUM].attributes[COLUMNS] = 160;
}

static void read_nothing(struct tape *tape)
{
    tape->ops[SCALE].inputs[0] = TENSOR_COUNT;
}

static void write_nothing(struct tape *tape)
{
    tape->ops[SCALE].outputs[0] = UINT32_MAX;
}

static void make_twice(struct tape *tape)
{
    tape->ops[SCALE].outputs[0] = SUM;
}

static void make_state(struct tape *tape)
{
    tape->ops[NEXT].outputs[0] = X;
}

static void make_same_twice_in_one(struct tape *tape)
{
    tape->tensors[PART].count = tape->tensors[PART].dims[0] = tape->tensors[PART].dims[1] = 1;
    tape->ops[ROW_SUM].outputs[1] = PART;
}

static void leave_unmade(struct tape *tape)
{
    tape->op_count--;
}

static void test_cycles_and_overwriting_are_refused(void **state)
{
    static const struct spoiled table[] = {
        {read_itself, "operation 4 (map) reads 'loss' before it is made"},
        {read_later, "operation 3 (row-sum) reads 'x' before it is made"},
        {read_nothing, "operation 4: map: input 0 names tensor 13 of 13"},
        {write_nothing, "operation 4: map: output 0 names tensor 4294967295"},
        {make_twice, "operation 4 (map) makes 'row-sum.sum', which exists already"},
        {make_state, "operation 5 (map) makes 'x', which exists already"},
        {make_same_twice_in_one, "operation 3 (row-sum) makes 'row-sum.part'"},
        {leave_unmade, "no operation makes 'x'"},
    };

    (void)state;
    CHECK_SPOILED(table);
}

static void unknown_kind(struct tape *tape)
{
    tape->ops[SCALE].kind = (enum op_kind)OP_KIND_COUNT;
}

static void wrong_shape(struct tape *tape)
{
    tape->ops[CONTRACT].attributes[CONTRACT_DIMS + 3] = 3;
}

static void wrong_attribute(struct tape *tape)
{
    tape->ops[ROW_SUM].attributes[ROWS] = -1;
}

static void huge_attribute(struct tape *tape)
{
    tape->ops[CONTRACT].attributes[CONTRACT_K] = INT64_MAX;
}

static void too_many_inputs(struct tape *tape)
{
    tape->ops[SCALE].input_count = 2;
}

static void test_unsound_operations_are_named(void **state)
{
    static const struct spoiled table[] = {
        {unknown_kind, "operation 4: unknown kind"},
        {wrong_shape, "operation 2: contract"},
        {wrong_attribute, "operation 3: row-sum: rows is -1"},
        {huge_attribute, "operation 2: contract: k is"},
        {too_many_inputs, "operation 4: map: 2 inputs"},
    };

    (void)state;
    CHECK_SPOILED(table);
}

static void empty_name(struct tape *tape)
{
    tape->tensors[W].name[0] = '\0';
}

static void strange_name(struct tape *tape)
{
    memcpy(tape->tensors[W].name, "w\n", 3);
}

static void same_names(struct tape *tape)
{
    memcpy(tape->tensors[LOSS].name, "w", 2);
}

static void unknown_type(struct tape *tape)
{
    tape->tensors[W].dtype = DTYPE_COUNT;
}

static void unknown_role(struct tape *tape)
{
    tape->tensors[W].role = ROLE_COUNT;
}

static void empty_axis(struct tape *tape)
{
    tape->tensors[W].dims[0] = 0;
}

static void huge_axis(struct tape *tape)
{
    tape->tensors[W].dims[0] = UINT64_MAX;
}

static void huge_product(struct tape *tape)
{
    tape->tensors[W].dims[0] = tape->tensors[W].dims[1] = UINT64_C(1) << 39;
}

static void test_unsound_tensors_are_named(void **state)
{
    static const struct spoiled table[] = {
        {empty_name, "tensor 1: a name is"},
        {strange_name, "tensor 1: a name is"},
        {same_names, "two tensors have the name 'w'"},
        {unknown_type, "tensor 1 'w': type 8"},
        {unknown_role, "role 6"},
        {empty_axis, "tensor 1 'w': axis 0 of length 0"},
        {huge_axis, "tensor 1 'w': axis 0 of length 18446744073709551615"},
        {huge_product, "tensor 1 'w': axis 1"},
    };

    (void)state;
    CHECK_SPOILED(table);
}

static void loss_of_many(struct tape *tape)
{
    tape->loss = Y;
}

static void loss_of_none(struct tape *tape)
{
    tape->loss = TENSOR_COUNT;
}

static void no_pair(struct tape *tape)
{
    tape->state_count = 1;
}

static void pairs_out_of_order(struct tape *tape)
{
    struct state_pair first = tape->states[0];

    tape->states[0] = tape->states[1];
    tape->states[1] = first;
}

static void pair_of_no_state(struct tape *tape)
{
    tape->states[0].before = Y;
}

static void after_out_of_range(struct tape *tape)
{
    tape->states[0].after = UINT32_MAX;
}

static void after_of_another_shape(struct tape *tape)
{
    tape->states[0].after = Y;
}

static void after_of_another_name(struct tape *tape)
{
    memcpy(tape->tensors[NEXT_X].name, "other", 6);
}

static void test_unsound_states_and_losses_are_named(void **state)
{
    static const struct spoiled table[] = {
        {loss_of_many, "the loss is not one binary32 number"},
        {loss_of_none, "the loss is not one binary32 number"},
        {no_pair, "state 'w' has no next value"},
        {pairs_out_of_order, "state 'x' has no next value"},
        {pair_of_no_state, "state 'x' has no next value"},
        {after_out_of_range, "state 'x' has no next value"},
        {after_of_another_shape, "the next value of state 'x' has another type or shape"},
        {after_of_another_name, "is not a temporary of the same name"},
    };

    (void)state;
    CHECK_SPOILED(table);
}

static void swap_integers(struct tape *tape)
{
    tape->ops[CONTRACT].inputs[0] = Q_W;
    tape->ops[CONTRACT].attributes[CONTRACT_DIMS + 3] = 3;
}

static void swap_exponents(struct tape *tape)
{
    /* W has as many peaks as exponents: the right type and size, but the wrong tensor. */
    tape->ops[CONTRACT].inputs[3] = PEAKS_W;
}

/* The same number of elements and type, but other bits than the contraction's. */
static void cut_otherwise(struct tape *tape)
{
    tape->ops[QUANTIZE_W].attributes[QUANTIZE_BITS] = 15;
}

static void operand_from_outside(struct tape *tape)
{
    tape->tensors[W].dtype = DTYPE_I16;
    tape->ops[QUANTIZE_W] = tape->ops[QUANTIZE_X];
    tape->ops[QUANTIZE_W].outputs[0] = PEAKS_W;
    tape->ops[QUANTIZE_W].outputs[1] = E_W;
    tape->ops[QUANTIZE_W].outputs[2] = Q_W;
    for (uint32_t id = PEAKS_W; id <= Q_W; id++) {
        const struct tensor *like = &tape->tensors[id - PEAKS_W + PEAKS_X];

        memcpy(tape->tensors[id].dims, like->dims, sizeof(like->dims));
        tape->tensors[id].count = like->count;
    }
    tape->ops[CONTRACT].inputs[2] = W;
    tape->ops[CONTRACT].inputs[3] = E_W;
}

static void show_integers(struct tape *tape)
{
    tape->tensors[Q_X].role = ROLE_OUTPUT;
}

static void keep_integers(struct tape *tape)
{
    memcpy(tape->tensors[W].dims, tape->tensors[Q_X].dims, sizeof(tape->tensors[W].dims));
    tape->tensors[W].count = tape->tensors[Q_X].count;
    tape->tensors[W].dtype = DTYPE_I16;
    memcpy(tape->tensors[Q_X].name, "w", 2);
    tape->ops[QUANTIZE_W].inputs[0] = X;
    tape->ops[QUANTIZE_W].attributes[QUANTIZE_DIMS + 3] = 4;
    for (uint32_t id = PEAKS_W; id <= Q_W; id++) {
        const struct tensor *like = &tape->tensors[id - PEAKS_W + PEAKS_X];

        memcpy(tape->tensors[id].dims, like->dims, sizeof(like->dims));
        tape->tensors[id].count = like->count;
    }
    tape->ops[CONTRACT].attributes[CONTRACT_DIMS + 5] = 4;
    tape->ops[CONTRACT].attributes[CONTRACT_STRIDES + 3] = 4;
    tape->tensors[Y].dims[1] = 4;
    tape->tensors[Y].count = 16;
    tape->ops[ROW_SUM].attributes[COLUMNS] = 16;
    tape->states[1].after = Q_X;
}

static void test_contractions_read_one_quantized_operand(void **state)
{
    static const struct spoiled table[] = {
        {swap_integers, "operation 2: contract"},
        {swap_exponents, "operation 2 (contract): 'quantize.q' and 'quantize.peaks' are not one"},
        {cut_otherwise, "operation 2 (contract): 'quantize.q' and 'quantize.exponents'"},
        {operand_from_outside, "operation 2: contract"},
        {show_integers, "operation 0 (quantize): 'quantize.q' must be a temporary"},
        {keep_integers, "'w' of a quantize operation cannot be the next value"},
    };

    (void)state;
    CHECK_SPOILED(table);
}

static void test_small_tape_itself_is_sound(void **state)
{
    struct tape *tape = small_tape();
    struct error error;

    (void)state;
    assert_int_equal(tape_check(tape, &error), STATUS_OK);
    tape_free(tape);
}

/* ---- sizes, text ------------------------------------------------------- */

static void test_footprint_counts_every_byte_once(void **state)
{
    struct tape *tape = small_tape();
    struct tape_footprint footprint = tape_footprint(tape);

    (void)state;
    assert_int_equal(footprint.state, 4 * (160 + 120));
    assert_int_equal(footprint.constant, 0);
    assert_int_equal(footprint.data, 0);
    /* peaks and exponents of 4 and 3 rows in 3 blocks, integers, y, part, sum, loss, next x */
    assert_int_equal(footprint.trace,
                     2 * (12 + 12 + 160 + 9 + 9 + 120) + 4 * (12 + 1 + 1 + 1 + 160));
    tape_free(tape);
}

static void test_text_shows_names_attributes_and_numbers(void **state)
{
    struct tape *tape = small_tape();
    char *text = NULL;
    struct error error;

    (void)state;
    error_init(&error);
    assert_int_equal(tape_text(&text, tape, &error), STATUS_OK);
    assert_string_equal(
        text, "tape of 13 tensors, 6 operations, 2 states\n"
              "state %0 'x' f32[4,40] becomes %12\n"
              "state %1 'w' f32[3,40] never changes\n"
              "%2 i16[4,3], %3 i16[4,3], %4 i16[4,40] = quantize x=%0 'x', b0 1, b1 1, r0 1, r1 4,"
              " k0 1, k1 40, sb0 0, sb1 0, sr0 0, sr1 40, sk0 0, sk1 1, bits 14, block 16\n"
              "%5 i16[3,3], %6 i16[3,3], %7 i16[3,40] = quantize x=%1 'w', b0 1, b1 1, r0 1, r1 3,"
              " k0 1, k1 40, sb0 0, sb1 0, sr0 0, sr1 40, sk0 0, sk1 1, bits 14, block 16\n"
              "%8 f32[4,3] = contract qa=%4 ea=%3 qb=%7 eb=%6, b0 1, b1 1, m0 1, m1 4, n0 1, n1 3,"
              " sb0 0, sb1 0, sm0 0, sm1 3, sn0 0, sn1 1, k 40, bits 14, block 16, causal 0\n"
              "%9 f32[1,1], %10 f32[1] = row-sum x=%8, rows 1, columns 12\n"
              "%11 'loss' f32[1] = scale x=%10, constant 0.0833333358\n"
              "%12 f32[4,40] = scale x=%0 'x', constant 0.5\n"
              "loss %11\n");
    free(text);
    tape_free(tape);
}

static void test_text_of_every_model_has_a_line_per_operation(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2 * MODEL_COUNT; kind++) {
        struct small_model small;
        const struct tape *tape = model_tape(&small, (enum model_kind)(kind / 2), kind % 2 == 1);
        uint32_t expected = 1 + tape->op_count + (tape->loss != TENSOR_NONE);
        uint32_t lines = 0;
        char *text = NULL;

        for (uint32_t id = 0; id < tape->tensor_count; id++) {
            expected += !role_is_made(tape->tensors[id].role);
        }
        assert_int_equal(tape_text(&text, tape, NULL), STATUS_OK);
        for (const char *at = text; *at != '\0'; at++) {
            lines += *at == '\n';
        }
        assert_int_equal(lines, expected);
        free(text);
        small_model_close(&small);
    }
}

static void test_text_past_the_limit_is_refused(void **state)
{
    struct tape *tape = small_tape();
    struct tape long_one = *tape;
    struct error error;
    char *text = NULL;

    (void)state;
    error_init(&error);
    long_one.op_count = 490000; /* of about 160 bytes each */
    long_one.ops = malloc(long_one.op_count * sizeof(*long_one.ops));
    assert_non_null(long_one.ops);
    for (uint32_t at = 0; at < long_one.op_count; at++) {
        long_one.ops[at] = tape->ops[CONTRACT];
    }
    assert_int_equal(tape_text(&text, &long_one, &error), STATUS_OVER_LIMIT);
    assert_null(text);
    assert_non_null(strstr(error.text, "490000 operations"));
    free(long_one.ops);
    tape_free(tape);
}

/* ---- the seeds of the fuzz target --------------------------------------- */

/* A sum over micro-batches that no data decides. */
static struct tape *repeated_tape(uint32_t times, uint32_t group)
{
    static const uint64_t dims[1] = {5};
    struct builder *builder = builder_new(PRECISION_DEFAULT);
    struct tape *tape = NULL;
    uint32_t w = build_tensor(builder, "w", DTYPE_F32, ROLE_STATE, 1, dims);
    uint32_t term;

    build_repeat(builder, times, group);
    term = build_dropout(builder, w, 0.5, 1, 2);
    build_carry(builder, w, build_scale(builder, term, 0.5f));
    term = build_accumulated(builder, "sum", term);
    build_repeat_end(builder);
    build_after(builder, w, build_scale(builder, term, 0.25f));
    assert_int_equal(builder_finish(&tape, builder, NULL), STATUS_OK);
    builder_free(builder);
    return tape;
}

static int write_seed(const char *folder, const char *name, struct tape *tape)
{
    struct bytes bytes = encoded(tape);
    char path[512];
    FILE *file;
    bool written;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "wb");
    written =
        file != NULL && fwrite(bytes.at, 1, bytes.size, file) == bytes.size && fclose(file) == 0;
    printf("%s: %llu bytes%s\n", path, (unsigned long long)bytes.size,
           written ? "" : " could not be written");
    free(bytes.at);
    tape_free(tape);
    return written ? 0 : 1;
}

static int write_seeds(const char *folder)
{
    int failures = write_seed(folder, "product", small_tape());

    failures += write_seed(folder, "repeat", repeated_tape(8, 2));
    failures += write_seed(folder, "repeat-long", repeated_tape(3000, 3000));

    for (uint64_t seed = 0; seed < 8; seed++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "random%llu", (unsigned long long)seed);
        failures += write_seed(folder, name, random_tape(seed, 9));
    }
    return failures;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models_come_back_from_their_bytes),
        cmocka_unit_test(test_random_tapes_come_back_from_their_bytes),
        cmocka_unit_test(test_equal_options_give_equal_bytes_and_others_do_not),
        cmocka_unit_test(test_every_truncation_is_refused),
        cmocka_unit_test(test_every_changed_byte_is_refused_or_means_itself),
        cmocka_unit_test(test_hostile_counts_allocate_nothing),
        cmocka_unit_test(test_tape_past_the_limit_is_refused_unread),
        cmocka_unit_test(test_small_tape_itself_is_sound),
        cmocka_unit_test(test_cycles_and_overwriting_are_refused),
        cmocka_unit_test(test_unsound_operations_are_named),
        cmocka_unit_test(test_unsound_tensors_are_named),
        cmocka_unit_test(test_unsound_states_and_losses_are_named),
        cmocka_unit_test(test_contractions_read_one_quantized_operand),
        cmocka_unit_test(test_footprint_counts_every_byte_once),
        cmocka_unit_test(test_text_shows_names_attributes_and_numbers),
        cmocka_unit_test(test_text_of_every_model_has_a_line_per_operation),
        cmocka_unit_test(test_text_past_the_limit_is_refused),
    };

    if (argc == 3 && strcmp(argv[1], "write") == 0) {
        return write_seeds(argv[2]);
    }
    return cmocka_run_group_tests_name("tape", tests, NULL, NULL);
}
