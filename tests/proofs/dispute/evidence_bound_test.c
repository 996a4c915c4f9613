/*
 * Goal: no evidence is larger than the bound that a tape is checked with, and what is over the
 * bound of a transaction is refused by name.
 * Method: evidence about elements of every output of every kind, of random shapes, whole or every
 * part of it; the largest operations that are allowed and the smallest that are not.
 */
#include "engine/rules/evidence_bound.h"

#include <string.h>

#include "chain/game/game.h"
#include "proofs/dispute/evidence.h"
#include "tests/support/dispute/exhibit.h"
#include "tests/support/dispute/giant.h"
#include "tests/support/test.h"

enum { SHARE = 4, FULL = 60 };

/* The largest evidence that shows the element: whole, or of any part with the reply. */
static size_t largest_evidence(struct exhibit *exhibit, const struct evidence_target *target)
{
    uint32_t parts = exhibit_axis(exhibit, target).parts;
    size_t largest = 0;
    struct buffer bytes;
    struct buffer reply;

    if (parts <= 1) {
        exhibit_evidence(&bytes, exhibit, target);
        largest = bytes.size;
        buffer_release(&bytes);
        return largest;
    }
    exhibit_parts(&reply, exhibit, target);
    for (uint32_t part = 0; part < parts; part++) {
        exhibit_part_evidence(&bytes, exhibit, target, part, &reply);
        largest = bytes.size > largest ? bytes.size : largest;
        buffer_release(&bytes);
    }
    buffer_release(&reply);
    return largest;
}

static void test_no_evidence_is_larger_than_its_bound(void **state)
{
    uint64_t random = 11;

    (void)state;
    for (uint32_t kind = 0; kind < OP_KIND_COUNT; kind++) {
        uint64_t most = 0;
        uint64_t bound_of_most = 0;

        for (uint64_t seed = 0; seed < test_share(FULL, SHARE); seed++) {
            struct exhibit exhibit;
            const struct op *op;

            exhibit_of_kind(&exhibit, (enum op_kind)kind, MOOD_TAME, seed);
            op = &exhibit.tape->ops[0];
            for (uint32_t output = 0; output < op->output_count; output++) {
                uint64_t count = exhibit.tape->tensors[op->outputs[output]].count;
                struct evidence_target target = {.output = output,
                                                 .element = test_random_below(&random, count)};
                uint64_t bound = evidence_bound(op, exhibit.tape->tensors, output);
                size_t size = largest_evidence(&exhibit, &target);

                if (size > bound) {
                    fail_msg("%s, output %u, seed %llu: %zu bytes, bound %llu",
                             op_kind_name(op->kind), output, (unsigned long long)seed, size,
                             (unsigned long long)bound);
                }
                if (size > most) {
                    most = size;
                    bound_of_most = bound;
                }
            }
            exhibit_close(&exhibit);
        }
        assert_true(bound_of_most < 8192 + 3 * most); /* and it is no idle number */
    }
}

/* A product, a sum or a choice over K elements whose operands are states. */
static void open_sum(struct giant *giant, enum op_kind kind, int64_t k, int64_t bits, int64_t block)
{
    const uint64_t row = (uint64_t)(block == 0 ? 1 : (k + block - 1) / block);
    const enum dtype q = bits == 22 ? DTYPE_I32 : DTYPE_I16;
    const uint64_t elements = 2 * (uint64_t)k;
    struct giant_tensor product[5] = {{q, elements, 1},
                                      {DTYPE_I16, 2 * row, 13},
                                      {q, elements, 1},
                                      {DTYPE_I16, 2 * row, 13},
                                      {DTYPE_F32, 4, 0}};
    struct giant_tensor choice[4] = {
        {DTYPE_U32, (uint64_t)k, 1}, {q, elements, 1}, {DTYPE_I16, 2 * row, 13}, {DTYPE_F32, 4, 0}};
    struct giant_tensor ones[3] = {{q, elements, 1}, {DTYPE_I16, 2 * row, 13}, {DTYPE_F32, 2, 0}};
    struct giant_tensor chosen[6] = {{q, elements, 1},         {DTYPE_I16, 2 * row, 13},
                                     {DTYPE_U32, 2, 1},        {q, 2 * elements, 1},
                                     {DTYPE_I16, 4 * row, 13}, {DTYPE_F32, 4, 0}};
    struct giant_tensor apart[6] = {{DTYPE_U32, (uint64_t)k, 1}, {q, elements, 1},
                                    {DTYPE_I16, 2 * row, 13},    {q, elements, 1},
                                    {DTYPE_I16, 2 * row, 13},    {DTYPE_F32, 8, 0}};
    struct op op = {.kind = kind, .output_count = 1};

    if (kind == OP_CONTRACT_CHOSEN || kind == OP_CONTRACT_CHOSEN_ROWS) {
        op.input_count = 5;
        op.attribute_count = CHOSEN_ATTRIBUTES;
        memcpy(op.attributes, (int64_t[]){2, 2, 2, k, bits, block},
               CHOSEN_ATTRIBUTES * sizeof(int64_t));
        giant_open(giant, &op, kind == OP_CONTRACT_CHOSEN ? chosen : apart);
    } else if (kind == OP_CONTRACT) {
        op.input_count = 4;
        op.attribute_count = CONTRACT_ATTRIBUTES;
        memcpy(op.attributes, (int64_t[]){1, 1, 1, 2, 1, 2, 0, 0, 0, 2, 0, 1, k, bits, block, 0},
               CONTRACT_ATTRIBUTES * sizeof(int64_t));
        giant_open(giant, &op, product);
    } else if (kind == OP_CONTRACT_ONES) {
        op.input_count = 2;
        op.attribute_count = ONES_ATTRIBUTES;
        memcpy(op.attributes, (int64_t[]){2, k, bits, block}, ONES_ATTRIBUTES * sizeof(int64_t));
        giant_open(giant, &op, ones);
    } else {
        op.input_count = 3;
        op.attribute_count = ONEHOT_ATTRIBUTES;
        memcpy(op.attributes, (int64_t[]){2, 2, k, bits, block},
               ONEHOT_ATTRIBUTES * sizeof(int64_t));
        giant_open(giant, &op, choice);
    }
}

/* Rows of K elements down the columns of a matrix, so that every element has a leaf of its own. */
static void open_quantize(struct giant *giant, int64_t k, int64_t bits, int64_t block)
{
    int64_t piece = block == 0 || block > 128 ? 128 : block;
    uint64_t pieces = (uint64_t)((k + piece - 1) / piece);
    uint64_t blocks = (uint64_t)(block == 0 ? 1 : (k + block - 1) / block);
    struct op op = {.kind = OP_QUANTIZE,
                    .input_count = 1,
                    .output_count = 3,
                    .attribute_count = QUANTIZE_ATTRIBUTES,
                    .attributes = {1, 1, 1, 2, 1, k, 0, 0, 0, 1, 0, 2, bits, block}};
    struct giant_tensor tensors[4] = {{DTYPE_F32, 2 * (uint64_t)k, 0},
                                      {DTYPE_I16, 2 * pieces, 0},
                                      {DTYPE_I16, 2 * blocks, 0},
                                      {DTYPE_I16, 2 * (uint64_t)k, 0}};

    giant_open(giant, &op, tensors);
}

static uint64_t bound_of(const struct giant *giant)
{
    const struct op *op = &giant->tape->ops[0];
    uint64_t most = 0;

    for (uint32_t output = 0; output < op->output_count; output++) {
        uint64_t bound = evidence_bound(op, giant->tape->tensors, output);

        most = bound > most ? bound : most;
    }
    return most;
}

/* Every length for which the rule has 64 bits: 2^36 terms of 14 bits, 2^32 of 16, 2^20 of 22. */
static void test_sums_of_any_length_fit(void **state)
{
    static const enum op_kind kinds[] = {OP_CONTRACT, OP_CONTRACT_ONES, OP_CONTRACT_ONEHOT,
                                         OP_CONTRACT_CHOSEN, OP_CONTRACT_CHOSEN_ROWS};
    static const int64_t blocks[] = {0, 16, 128, 1 << 20};
    static const struct {
        int64_t bits;
        int log;
    } table[] = {{14, 36}, {15, 34}, {16, 32}, {22, 20}};
    uint64_t most = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        for (size_t b = 0; b < sizeof(blocks) / sizeof(blocks[0]); b++) {
            for (size_t bits = 0; bits < sizeof(table) / sizeof(table[0]); bits++) {
                for (int log = 5; log <= table[bits].log; log++) {
                    struct giant giant;

                    open_sum(&giant, kinds[i], INT64_C(1) << log, table[bits].bits, blocks[b]);
                    assert_in_range(bound_of(&giant), 1, EVIDENCE_FITS);
                    most = bound_of(&giant) > most ? bound_of(&giant) : most;
                    giant_close(&giant);
                }
            }
        }
    }
    print_message("the largest evidence about a sum has at most %llu bytes\n",
                  (unsigned long long)most);
}

/* Tops of rows of so many exponents, which have no parts. */
static enum status check_tops(int64_t width, struct error *error)
{
    const struct op op = {.kind = OP_EQUILIBRATE,
                          .input_count = 1,
                          .output_count = 2,
                          .attribute_count = EQUILIBRATE_ATTRIBUTES,
                          .attributes = {2, width, 0}};
    const struct giant_tensor tensors[3] = {
        {DTYPE_I16, 2 * (uint64_t)width, 0}, {DTYPE_I16, 2, 0}, {DTYPE_I16, 2, 0}};
    struct giant giant;
    enum status status;

    giant_open(&giant, &op, tensors);
    status = evidence_bound_check(&giant.tape->ops[0], giant.tape->tensors, error);
    if (status != STATUS_OK) {
        assert_int_not_equal(tape_check(giant.tape, error), STATUS_OK);
    }
    giant_close(&giant);
    return status;
}

static void test_what_does_not_fit_is_refused_by_name(void **state)
{
    struct error error;

    (void)state;
    error_init(&error);
    assert_int_equal(check_tops(1 << 15, &error), STATUS_OK);
    for (int log = 16; log <= 31; log++) {
        assert_int_equal(check_tops(INT64_C(1) << log, &error), STATUS_OVER_LIMIT);
        assert_non_null(strstr(error.text, "equilibrate: evidence about '"));
        assert_non_null(strstr(error.text, "nobody could be convicted"));
    }
}

static void test_rows_of_any_length_can_be_quantized(void **state)
{
    static const int64_t blocks[] = {0, 32, 128, 1 << 20};

    (void)state;
    for (size_t b = 0; b < sizeof(blocks) / sizeof(blocks[0]); b++) {
        struct giant giant;

        open_quantize(&giant, INT64_C(1) << 31, 14, blocks[b]);
        assert_in_range(bound_of(&giant), 1, EVIDENCE_FITS);
        giant_close(&giant);
    }
}

static void test_a_ledger_takes_what_fits(void **state)
{
    (void)state;
    assert_true(EVIDENCE_FITS <= GAME_PAYLOAD_MAX);
    assert_int_equal(MERKLE_LEAF_SIZE, 1024);
    assert_int_equal(DESCRIPTOR_SIZE_MAX, 1024);
    assert_true(DESCRIPTOR_LABEL_MAX < 256);
    assert_true(TAPE_TENSORS_MAX <= 1u << 20 && TAPE_OPS_MAX <= 1u << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_evidence_is_larger_than_its_bound),
        cmocka_unit_test(test_sums_of_any_length_fit),
        cmocka_unit_test(test_what_does_not_fit_is_refused_by_name),
        cmocka_unit_test(test_rows_of_any_length_can_be_quantized),
        cmocka_unit_test(test_a_ledger_takes_what_fits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
