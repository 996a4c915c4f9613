/*
 * Goal: evidence about the operations of large models fits in transactions, by a part of it where
 * it must; and sizes that only a liar would name do not keep the judge busy. Method: giants
 * (tests/support/dispute/giant.h) with the shapes of GPT-2 124M at 8,192 tokens a step, whose right
 * elements are known by hand; evidence that claims to cover billions of elements.
 */
#include <string.h>

#include "base/endian.h"
#include "proofs/dispute/fraud_proof.h"
#include "tests/support/dispute/forgery.h"
#include "tests/support/dispute/giant.h"
#include "tests/support/test.h"

#define TRANSACTION_MAX 96000 /* of 128 KiB that nodes take, and of what else is in a move */
#define TOKENS          8192
#define VOCABULARY      50257

static const uint32_t one = 0x3f800000;

/* A product of rows of ones with exponent 13: each element is K. */
static void open_product(struct giant *giant, int64_t m, int64_t n, int64_t k, int64_t block,
                         int64_t causal, uint32_t found)
{
    struct op op = {.kind = OP_CONTRACT,
                    .input_count = 4,
                    .output_count = 1,
                    .attribute_count = CONTRACT_ATTRIBUTES,
                    .attributes = {1, 1, 1, m, 1, n, 0, 0, 0, n, 0, 1, k, 14, block, causal}};
    uint64_t blocks = block == 0 ? 1 : (uint64_t)((k + block - 1) / block);
    struct giant_tensor tensors[5] = {{DTYPE_I16, (uint64_t)(m * k), 1},
                                      {DTYPE_I16, (uint64_t)m * blocks, 13},
                                      {DTYPE_I16, (uint64_t)(n * k), 1},
                                      {DTYPE_I16, (uint64_t)n * blocks, 13},
                                      {DTYPE_F32, (uint64_t)(m * n), found}};

    giant_open(giant, &op, tensors);
}

static uint32_t float_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, 4);
    return bits;
}

/* All elements of a giant's tensor are the same. */
static uint32_t accused_bits(const struct giant *giant, const struct evidence_target *target)
{
    return giant->values[giant->tape->ops[target->op].outputs[target->output]];
}

/* Judges it as a claimant shows it: whole, or one part of it (that of which something false was
 * told, if any is); the largest bytes and how many moves. */
static struct evidence_ruling judge(struct giant *giant, const struct evidence_target *target,
                                    uint32_t *moves, size_t *largest)
{
    struct evidence_ruling ruling = {0};
    struct buffer bytes;
    struct buffer reply;
    uint64_t random = 1;
    uint32_t part;
    enum status status;
    struct error error;

    error_init(&error);
    buffer_init(&bytes, EVIDENCE_SIZE_MAX);
    *moves = 1;
    status = evidence_write_element(&bytes, giant->tape, &giant->source, target,
                                    FRAUD_PROOF_WHOLE_MAX, &error);
    if (status == STATUS_OVER_LIMIT) {
        const struct forgery_case made = {giant->tape, &giant->source, target,
                                          accused_bits(giant, target)};
        struct partial_sums_reply honest;
        struct ledger_queried queried;
        uint8_t written[LEDGER_QUERIED_SIZE_MAX];

        *moves = 2;
        buffer_clear(&bytes);
        assert_int_equal(
            ledger_query_write_parts(&bytes, giant->tape, &giant->source, target, NULL, &error),
            STATUS_OK);
        assert_int_equal(ledger_query_check(&queried, &giant->context, bytes.data, bytes.size),
                         VERDICT_VALID);
        buffer_init(&reply, PARTIAL_SUMS_REPLY_MAX);
        assert_int_equal(evidence_parts(&reply, giant->tape, &giant->source, target,
                                        &(struct partial_sums_range){0}, &error),
                         STATUS_OK);
        part = 0;
        if (partial_sums_check(&honest, &queried.parts, reply.data, reply.size) != VERDICT_VALID) {
            buffer_release(&reply);
            assert_true(forgery_make(&reply, &part, &made, &random));
        }
        partial_sums_reply_hash(&giant->context.reply, written,
                                ledger_queried_write(written, &queried), reply.data, reply.size);
        buffer_clear(&bytes);
        status = evidence_write_part(
            &bytes, giant->tape, &giant->source, target,
            &(struct evidence_part){.reply = reply.data, .reply_size = reply.size, .number = part},
            TRANSACTION_MAX, &error);
        buffer_release(&reply);
    }
    assert_int_equal(status, STATUS_OK);
    *largest = bytes.size;
    assert_int_equal(evidence_judge(&ruling, &giant->context, bytes.data, bytes.size, &error),
                     STATUS_OK);
    assert_int_equal(ruling.reason, EVIDENCE_FINE);
    buffer_release(&bytes);
    return ruling;
}

static void test_products_of_a_large_model_fit_in_transactions(void **state)
{
    static const struct {
        int64_t n;
        int64_t k;
        uint32_t moves;
    } table[] = {{2304, 768, 1},       {3072, 768, 1},       {768, 3072, 1},
                 {VOCABULARY, 768, 1}, {768, VOCABULARY, 2}, {768, TOKENS, 2}};

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        for (int guilty = 0; guilty < 2; guilty++) {
            float right = (float)table[i].k;
            struct giant giant;
            struct evidence_target target = {.element = (uint64_t)(5000 * table[i].n + 77)};
            struct evidence_ruling ruling;
            uint32_t moves;
            size_t largest;

            open_product(&giant, TOKENS, table[i].n, table[i].k, 128, 0,
                         float_bits(guilty == 1 ? right + 1 : right));
            ruling = judge(&giant, &target, &moves, &largest);
            assert_int_equal(ruling.answer, guilty == 1 ? EVIDENCE_UPHELD : EVIDENCE_NOT_GUILTY);
            assert_true(moves == 2 || ruling.wanted == float_bits(right));
            assert_int_equal(moves, table[i].moves);
            if (guilty == 1) {
                print_message("product, K %lld: %u moves, at most %zu bytes\n",
                              (long long)table[i].k, moves, largest);
            }
            giant_close(&giant);
        }
    }
}

static void test_gradient_of_the_words_fits_in_transactions(void **state)
{
    struct op op = {.kind = OP_CONTRACT_ONEHOT,
                    .input_count = 3,
                    .output_count = 1,
                    .attribute_count = ONEHOT_ATTRIBUTES,
                    .attributes = {VOCABULARY, 768, TOKENS, 14, 128}};
    struct giant_tensor tensors[4] = {{DTYPE_U32, TOKENS, 50000},
                                      {DTYPE_I16, UINT64_C(768) * TOKENS, 1},
                                      {DTYPE_I16, UINT64_C(768) * TOKENS / 128, 13},
                                      {DTYPE_F32, UINT64_C(768) * VOCABULARY, 0}};
    struct giant giant;
    struct evidence_target target = {.element = UINT64_C(50000) * 768 + 5};
    struct evidence_ruling ruling;
    uint32_t moves;
    size_t largest;

    (void)state;
    giant_open(&giant, &op, tensors);
    ruling = judge(&giant, &target, &moves, &largest); /* every token is the word */
    assert_int_equal(ruling.answer, EVIDENCE_UPHELD);
    assert_int_equal(moves, 2);
    print_message("one-hots: %u moves, at most %zu bytes\n", moves, largest);
    target.element += 768;
    ruling = judge(&giant, &target, &moves, &largest);
    assert_int_equal(ruling.answer, EVIDENCE_NOT_GUILTY);
    giant_close(&giant);
}

/* The piece of a gradient of a weight: its elements lie a row apart, in as many leaves. */
static void test_peak_of_a_transposed_view_fits_in_transactions(void **state)
{
    struct op op = {.kind = OP_QUANTIZE,
                    .input_count = 1,
                    .output_count = 3,
                    .attribute_count = QUANTIZE_ATTRIBUTES,
                    .attributes = {1, 1, 1, 768, 1, TOKENS, 0, 0, 0, 1, 0, 768, 14, 128}};
    struct giant_tensor tensors[4] = {{DTYPE_F32, UINT64_C(768) * TOKENS, one},
                                      {DTYPE_I16, UINT64_C(768) * TOKENS / 128, 2},
                                      {DTYPE_I16, UINT64_C(768) * TOKENS / 128, 1},
                                      {DTYPE_I16, UINT64_C(768) * TOKENS, 4096}};
    static const enum evidence_answer answers[3] = {EVIDENCE_UPHELD, EVIDENCE_UPHELD,
                                                    EVIDENCE_NOT_GUILTY};
    struct giant giant;

    (void)state;
    giant_open(&giant, &op, tensors);
    for (uint32_t output = 0; output < 3; output++) {
        struct evidence_target target = {.output = output, .element = 12345};
        struct evidence_ruling ruling;
        uint32_t moves;
        size_t largest;

        /* E(1) is 1, which the exponents say and the peaks do not. */
        ruling = judge(&giant, &target, &moves, &largest);
        assert_int_equal(ruling.answer, answers[output]);
        assert_int_equal(moves, output == 0 ? 2 : 1);
        if (output == 0) {
            print_message("peak: %u moves, at most %zu bytes\n", moves, largest);
        }
    }
    giant_close(&giant);
}

static void test_loss_of_a_large_vocabulary_fits_in_one_transaction(void **state)
{
    struct op op = {.kind = OP_CROSS_ENTROPY,
                    .input_count = 2,
                    .output_count = 6,
                    .attribute_count = CROSS_ENTROPY_ATTRIBUTES,
                    .attributes = {TOKENS, VOCABULARY}};
    uint64_t all = UINT64_C(1) * TOKENS * VOCABULARY;
    struct giant_tensor tensors[8] = {{DTYPE_F32, all, one},
                                      {DTYPE_U32, TOKENS, 7},
                                      {DTYPE_F32, TOKENS * fold_chunks(VOCABULARY), one},
                                      {DTYPE_F32, TOKENS, one},
                                      {DTYPE_F32, all, one},
                                      {DTYPE_F32, TOKENS * fold_chunks(VOCABULARY), one},
                                      {DTYPE_F32, TOKENS, one},
                                      {DTYPE_F32, TOKENS, one}};
    /* max 1, exp(0) = 1, sums of 1,024 and of 50 parts; the loss of them is log(1). */
    static const float right[6] = {1, 1, 1, 1024, 50, 0};
    struct giant giant;

    (void)state;
    giant_open(&giant, &op, tensors);
    for (uint32_t output = 0; output < 6; output++) {
        struct evidence_target target = {.output = output, .element = 4000};
        struct evidence_ruling ruling;
        uint32_t moves;
        size_t largest;

        ruling = judge(&giant, &target, &moves, &largest);
        assert_int_equal(moves, 1);
        assert_int_equal(ruling.wanted, float_bits(right[output]));
        assert_int_equal(ruling.answer, right[output] == 1 ? EVIDENCE_NOT_GUILTY : EVIDENCE_UPHELD);
        print_message("loss, output %u: %zu bytes\n", output, largest);
    }
    giant_close(&giant);
}

/* ---- sizes that only a liar names --------------------------------------- */

/* Where the element stands: behind the program item, the tree root of the trace and the output. */
static uint8_t *element_of(const struct buffer *bytes)
{
    size_t path = 32 * (size_t)bytes->data[13];
    size_t descriptor = endian_load_be16(bytes->data + 14 + path);

    return bytes->data + 16 + path + descriptor + 32 + 1;
}

static void test_sums_of_billions_are_refused_at_once(void **state)
{
    struct giant giant;
    struct evidence_target target = {.element = 0};
    struct evidence_ruling ruling;
    struct buffer bytes;

    (void)state;
    open_product(&giant, 2, 2, INT64_C(1) << 31, 0, 0, one);
    buffer_init(&bytes, EVIDENCE_SIZE_MAX);
    assert_int_equal(
        evidence_write_committed(&bytes, giant.tape, &giant.source, &target, NULL, NULL),
        STATUS_OK);
    assert_int_equal(evidence_judge(&ruling, &giant.context, bytes.data, bytes.size, NULL),
                     STATUS_OK);
    assert_int_equal(ruling.reason, EVIDENCE_MISSING);
    buffer_release(&bytes);
    giant_close(&giant);
}

static void test_rows_of_millions_of_blocks_must_be_shown(void **state)
{
    struct giant giant;
    struct evidence_target target = {.element = 1}; /* behind the causal edge: +0, nothing read */
    struct evidence_ruling ruling;
    struct buffer bytes;

    (void)state;
    open_product(&giant, 2, 2, INT64_C(1) << 30, 16, 1, one);
    buffer_init(&bytes, EVIDENCE_SIZE_MAX);
    assert_int_equal(
        evidence_write_element(&bytes, giant.tape, &giant.source, &target, TRANSACTION_MAX, NULL),
        STATUS_OK);
    element_of(&bytes)[7] = 0; /* the element beside it is a sum */
    assert_int_equal(evidence_judge(&ruling, &giant.context, bytes.data, bytes.size, NULL),
                     STATUS_OK);
    assert_int_equal(ruling.reason, EVIDENCE_MISSING);
    buffer_release(&bytes);
    giant_close(&giant);
}

/* However long an axis is, the answer about its parts has a bounded size. */
static void test_axes_of_any_length_have_few_parts(void **state)
{
    (void)state;
    for (int log = 0; log <= 40; log++) {
        for (int64_t by = -1; by <= 1; by++) {
            struct op op = {.kind = OP_CONTRACT_ONES, .attributes = {1, (INT64_C(1) << log) + by}};
            struct rule_axis axis;

            if (op.attributes[ONES_K] == 0) {
                continue;
            }
            rule_axis_of(&axis, &op, 0, 0);
            assert_in_range(axis.parts, 1, RULE_PARTS_MAX);
            assert_true((axis.parts - 1) * axis.part < axis.length);
            assert_true(axis.parts * axis.part >= axis.length);
            assert_true(axis.length > (1 << 21) || axis.part == RULE_PART_OF_SUM);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products_of_a_large_model_fit_in_transactions),
        cmocka_unit_test(test_gradient_of_the_words_fits_in_transactions),
        cmocka_unit_test(test_peak_of_a_transposed_view_fits_in_transactions),
        cmocka_unit_test(test_loss_of_a_large_vocabulary_fits_in_one_transaction),
        cmocka_unit_test(test_sums_of_billions_are_refused_at_once),
        cmocka_unit_test(test_rows_of_millions_of_blocks_must_be_shown),
        cmocka_unit_test(test_axes_of_any_length_have_few_parts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
