/*
 * Goal: nobody gets away with a false element because evidence about it is too large.
 * Method: the attack as it was played: a step with a sum that is as long as a tape may have it, or
 * a row with as many exponents, and one element that is false. The claimant asks for the parts, the
 * accused replies with parts that come to its lie, and one part convicts, on both ledgers and with
 * the gas that a transaction may take. The accused ends without its stake. What is longer is
 * refused when a tape is made or read: a client, a solver, a node and an audit all do that first.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/rules/evidence_bound.h"
#include "proofs/dispute/fraud_proof.h"
#include "tests/support/dispute/forgery.h"
#include "tests/support/dispute/giant.h"
#include "tests/support/game/court.h"
#include "tests/support/test.h"

#define GAS_MAX 16000000 /* of a transaction */

/* Two rows a side of ones with exponent 13: a product of them is K, and a lie says zero. */
static void open_product(struct giant *giant, int64_t k, int64_t block)
{
    uint64_t blocks = 2 * (uint64_t)((k + block - 1) / block);
    uint64_t elements = 2 * (uint64_t)k;
    struct op op = {.kind = OP_CONTRACT,
                    .input_count = 4,
                    .output_count = 1,
                    .attribute_count = CONTRACT_ATTRIBUTES,
                    .attributes = {1, 1, 1, 2, 1, 2, 0, 0, 0, 2, 0, 1, k, 14, block, 0}};
    struct giant_tensor tensors[5] = {{DTYPE_I16, elements, 1},
                                      {DTYPE_I16, blocks, 13},
                                      {DTYPE_I16, elements, 1},
                                      {DTYPE_I16, blocks, 13},
                                      {DTYPE_F32, 4, 0}};

    giant_open(giant, &op, tensors);
}

static void open_ones(struct giant *giant, int64_t k, int64_t block)
{
    struct op op = {.kind = OP_CONTRACT_ONES,
                    .input_count = 2,
                    .output_count = 1,
                    .attribute_count = ONES_ATTRIBUTES,
                    .attributes = {2, k, 14, block}};
    struct giant_tensor tensors[3] = {{DTYPE_I16, 2 * (uint64_t)k, 1},
                                      {DTYPE_I16, 2 * (uint64_t)((k + block - 1) / block), 13},
                                      {DTYPE_F32, 2, 0}};

    giant_open(giant, &op, tensors);
}

/* Every index is the word. */
static void open_onehot(struct giant *giant, int64_t k, int64_t block)
{
    struct op op = {.kind = OP_CONTRACT_ONEHOT,
                    .input_count = 3,
                    .output_count = 1,
                    .attribute_count = ONEHOT_ATTRIBUTES,
                    .attributes = {2, 2, k, 14, block}};
    struct giant_tensor tensors[4] = {{DTYPE_U32, (uint64_t)k, 0},
                                      {DTYPE_I16, 2 * (uint64_t)k, 1},
                                      {DTYPE_I16, 2 * (uint64_t)((k + block - 1) / block), 13},
                                      {DTYPE_F32, 4, 0}};

    giant_open(giant, &op, tensors);
}

/* Peaks of 5, of which an exponent says 4. */
static void open_exponents(struct giant *giant, int64_t k, int64_t block)
{
    uint64_t pieces = 2 * (uint64_t)(k / (block < 128 ? block : 128));
    struct op op = {.kind = OP_QUANTIZE,
                    .input_count = 1,
                    .output_count = 3,
                    .attribute_count = QUANTIZE_ATTRIBUTES,
                    .attributes = {1, 1, 1, 2, 1, k, 0, 0, 0, k, 0, 1, 14, block}};
    struct giant_tensor tensors[4] = {{DTYPE_F32, 2 * (uint64_t)k, 0},
                                      {DTYPE_I16, pieces, 5},
                                      {DTYPE_I16, 2 * (uint64_t)(k / block), 4},
                                      {DTYPE_I16, 2 * (uint64_t)k, 0}};

    giant_open(giant, &op, tensors);
}

static uint64_t play(struct court *court, enum game_move_kind kind, uint32_t player,
                     const struct buffer *payload)
{
    struct game_move move = court_move(court, kind, payload->data, payload->size);

    assert_true(payload->size <= GAME_PAYLOAD_MAX);
    court_done(court, &move, player);
    assert_true(court->twins.gas < GAS_MAX);
    return court->twins.gas;
}

/* From the claim to the verdict. */
static void convict(struct court *court, struct giant *giant, const char *name, uint32_t output)
{
    const struct evidence_target target = {.output = output, .element = 1};
    const uint32_t bits = giant->values[giant->tape->ops[0].outputs[output]];
    const struct forgery_case made = {giant->tape, &giant->source, &target, bits};
    uint64_t bound = evidence_bound(&giant->tape->ops[0], giant->tape->tensors, output);
    uint64_t random = 1;
    uint64_t gas[3];
    struct buffer bytes;
    struct buffer reply;
    uint32_t part;
    struct error error;
    wei before;

    error_init(&error);
    assert_true(bound <= EVIDENCE_FITS);
    court_commit(court, &giant->context, 1, 1);
    court_claim(court);
    court_answer(court);
    before = court_owed(court, COURT_CLAIMANT);
    buffer_init(&bytes, EVIDENCE_SIZE_MAX);
    assert_int_equal(ledger_query_write_parts(&bytes, giant->tape, &giant->source, &target, &error),
                     STATUS_OK);
    gas[0] = play(court, GAME_QUERY, COURT_CLAIMANT, &bytes);
    assert_true(forgery_make(&reply, &part, &made, &random));
    gas[1] = play(court, GAME_REPLY, COURT_SOLVER, &reply);
    buffer_clear(&bytes);
    assert_int_equal(evidence_write_part(&bytes, giant->tape, &giant->source, &target, part,
                                         reply.data, reply.size, GAME_PAYLOAD_MAX, &error),
                     STATUS_OK);
    assert_true(bytes.size <= bound);
    gas[2] = play(court, GAME_CONVICT, COURT_CLAIMANT, &bytes);
    court_pay(court);
    /* Its bond, and a quarter of the stake. */
    assert_true(court_owed(court, COURT_CLAIMANT) ==
                before + court->terms.bond + court->terms.stake / 4);
    print_message("%s: evidence of %zu bytes (bound %llu); gas %llu, %llu, %llu\n", name,
                  bytes.size, (unsigned long long)bound, (unsigned long long)gas[0],
                  (unsigned long long)gas[1], (unsigned long long)gas[2]);
    buffer_release(&reply);
    buffer_release(&bytes);
    giant_close(giant);
}

static void test_the_longest_operations_convict_who_lies_about_them(void **state)
{
    struct court *court = calloc(1, sizeof(*court));
    struct giant giant;

    (void)state;
    assert_non_null(court);
    court_open_direct(court);
    open_product(&giant, 1 << 22, 128);
    convict(court, &giant, "contract, K 2^22", 0);
    open_product(&giant, 1 << 25, 16);
    convict(court, &giant, "contract, K 2^25, block 16", 0);
    open_ones(&giant, 1 << 26, 16);
    convict(court, &giant, "contract-ones, K 2^26, block 16", 0);
    open_onehot(&giant, 1 << 24, 16);
    convict(court, &giant, "contract-onehot, K 2^24, block 16", 0);
    open_exponents(&giant, 1 << 20, 16);
    convict(court, &giant, "quantize, exponents of K 2^20, block 16", 1);
    open_exponents(&giant, INT64_C(1) << 30, 32);
    convict(court, &giant, "quantize, exponents of K 2^30, block 32", 1);
    court_close(court);
    free(court);
}

/* A tape that is over the bound is refused by all that read one, with the operation's name. */
static void test_longer_operations_are_refused_when_a_tape_is_read(void **state)
{
    static const struct {
        void (*open)(struct giant *giant, int64_t k, int64_t block);
        int log;
        const char *name;
    } table[] = {{open_product, 26, "contract: evidence about 'out'"},
                 {open_ones, 27, "contract-ones: evidence about 'out'"},
                 {open_onehot, 26, "contract-onehot: evidence about 'out'"}};

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct giant giant;
        struct error error;

        error_init(&error);
        table[i].open(&giant, INT64_C(1) << table[i].log, 16);
        assert_int_equal(tape_check(giant.tape, &error), STATUS_OVER_LIMIT);
        assert_non_null(strstr(error.text, table[i].name));
        giant_close(&giant);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_longest_operations_convict_who_lies_about_them),
        cmocka_unit_test(test_longer_operations_are_refused_when_a_tape_is_read),
    };

    anvil_need();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
