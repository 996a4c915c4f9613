/*
 * Goal: nobody gets away with a false element because evidence about it is too large.
 * Method: the attack as it was played: a step with a sum of up to 2^31 terms, or a row with as many
 * elements, and one element that is false. The claimant asks for the parts, the accused replies
 * with parts that come to its lie; of a part that is itself too long the claimant asks for its
 * parts, and so on; one part convicts, on both ledgers and with the gas that a transaction may
 * take. The accused ends without its stake. Parts that are as they were replied convict nobody, and
 * a query about a reply that is not the last one is refused.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/rules/evidence_bound.h"
#include "proofs/dispute/fraud_proof.h"
#include "tests/support/dispute/giant.h"
#include "tests/support/game/court.h"
#include "tests/support/test.h"

#define GAS_MAX 16000000 /* of a transaction */

static uint64_t play(struct court *court, enum game_move_kind kind, uint32_t player,
                     const struct buffer *payload)
{
    struct game_move move = court_move(court, kind, payload->data, payload->size);

    assert_true(payload->size <= GAME_PAYLOAD_MAX);
    court_done(court, &move, player);
    assert_true(court->twins.gas < GAS_MAX);
    return court->twins.gas;
}

static void refuse(struct court *court, enum game_move_kind kind, uint32_t player,
                   const struct buffer *payload, enum game_refusal_kind refusal)
{
    struct game_move move = court_move(court, kind, payload->data, payload->size);

    court_refused(court, &move, player, refusal);
}

/* A dispute about one element, on its way down. */
struct descent {
    struct court *court;
    struct giant *giant;
    struct evidence_target target;
    struct rule_axis axis; /* that was queried last */
    struct evidence_part said;
    struct buffer reply;
    struct buffer bytes;
    uint64_t gas;
    uint64_t most;
    uint32_t queries;
};

static void spend(struct descent *descent, uint64_t gas)
{
    descent->gas += gas;
    descent->most = gas > descent->most ? gas : descent->most;
}

static void write_query(struct descent *descent, const struct evidence_part *part)
{
    const struct giant *giant = descent->giant;

    buffer_clear(&descent->bytes);
    assert_int_equal(ledger_query_write_parts(&descent->bytes, giant->tape, &giant->source,
                                              &descent->target, part, NULL),
                     STATUS_OK);
}

static void write_evidence(struct descent *descent, uint32_t number)
{
    const struct giant *giant = descent->giant;

    descent->said.number = number;
    buffer_clear(&descent->bytes);
    assert_int_equal(evidence_write_part(&descent->bytes, giant->tape, &giant->source,
                                         &descent->target, &descent->said, GAME_PAYLOAD_MAX, NULL),
                     STATUS_OK);
}

/* What the liar says of a part: of sums the number of its terms, but of the part `lie` less by all
 * terms, so that the element is a zero; of maxima the lie. */
static void forge(struct descent *descent, uint32_t lie, int64_t terms)
{
    struct buffer *reply = &descent->reply;
    int64_t bits =
        descent->giant->values[descent->giant->tape->ops[0].outputs[descent->target.output]];

    buffer_clear(reply);
    buffer_add_u32(reply, 0);
    for (uint32_t i = 0; i < descent->axis.parts; i++) {
        struct rule_axis part = descent->axis;

        rule_axis_enter(&part, i);
        buffer_add_u64(reply, part.fold == RULE_MAXIMUM
                                  ? (uint64_t)bits
                                  : part.length - (i == lie ? (uint64_t)terms : 0));
    }
    descent->said.reply = reply->data;
    descent->said.reply_size = reply->size;
}

/* A query, and the liar's reply; the truth and what says less are no replies. */
static void ask(struct descent *descent, const struct evidence_part *part, uint32_t lie,
                int64_t terms)
{
    struct court *court = descent->court;

    write_query(descent, part);
    spend(descent, play(court, GAME_QUERY, COURT_CLAIMANT, &descent->bytes));
    descent->queries++;
    forge(descent, lie, terms + 1);
    if (descent->axis.fold == RULE_SUM) {
        refuse(court, GAME_REPLY, COURT_SOLVER, &descent->reply, GAME_BAD_REPLY);
    }
    forge(descent, lie, terms);
    if (part != NULL && descent->axis.fold == RULE_SUM) {
        descent->reply.data[3] ^= 1; /* another exponent than before */
        refuse(court, GAME_REPLY, COURT_SOLVER, &descent->reply, GAME_BAD_REPLY);
        descent->reply.data[3] ^= 1;
    }
    spend(descent, play(court, GAME_REPLY, COURT_SOLVER, &descent->reply));
}

/* One level down into part `lie`: it is queried for its own parts, of all of which but one the
 * liar says the truth. */
static void enter(struct descent *descent, uint32_t lie, uint32_t next, int64_t terms)
{
    uint8_t kept[PARTIAL_SUMS_REPLY_MAX];
    struct evidence_part part = descent->said;
    struct partial_sums_reply read = {.exponent = 0, .values = kept + 4};
    struct partial_sums_range range;

    memcpy(kept, descent->reply.data, descent->reply.size);
    part.reply = kept;
    part.number = lie;
    assert_true(partial_sums_enter(&range, &descent->axis, &read, lie));
    rule_axis_enter(&descent->axis, lie);
    ask(descent, &part, next, terms);
    /* The query was about the last reply, and now there is another. */
    write_query(descent, &part);
    refuse(descent->court, GAME_QUERY, COURT_CLAIMANT, &descent->bytes, GAME_BAD_QUERY);
    descent->said.range = range;
}

/* The claim, and the part of each level that is false: `lie` of how many there are. */
static void convict(struct court *court, struct giant *giant, const char *name, uint32_t output,
                    uint64_t eighths)
{
    const struct op *op = &giant->tape->ops[0];
    uint64_t bound = evidence_bound(op, giant->tape->tensors, output);
    struct descent descent = {
        .court = court, .giant = giant, .target = {.output = output, .element = 1}};
    uint32_t lie;
    int64_t terms;
    wei before;

    rule_axis_of(&descent.axis, op, output, descent.target.element);
    terms = (int64_t)descent.axis.length;
    lie = (uint32_t)(descent.axis.parts * eighths / 8);
    buffer_init(&descent.reply, PARTIAL_SUMS_REPLY_MAX);
    buffer_init(&descent.bytes, EVIDENCE_SIZE_MAX);
    assert_true(bound <= EVIDENCE_FITS);
    court_commit(court, &giant->context, 1, 1);
    court_claim(court);
    court_answer(court);
    before = court_owed(court, COURT_CLAIMANT);
    ask(&descent, NULL, lie, terms);
    while (descent.axis.part > descent.axis.least) {
        struct rule_axis inner = descent.axis;
        uint32_t next;

        rule_axis_enter(&inner, lie);
        next = (uint32_t)(inner.parts * eighths / 8);
        enter(&descent, lie, next, terms);
        lie = next;
    }
    if (descent.axis.fold == RULE_SUM) {
        write_evidence(&descent, (lie + 1) % descent.axis.parts);
        refuse(court, GAME_CONVICT, COURT_CLAIMANT, &descent.bytes, GAME_NOT_GUILTY);
    }
    write_evidence(&descent, lie);
    assert_true(descent.bytes.size <= bound);
    spend(&descent, play(court, GAME_CONVICT, COURT_CLAIMANT, &descent.bytes));
    court_pay(court);
    /* Its bond, and a quarter of the stake. */
    assert_true(court_owed(court, COURT_CLAIMANT) ==
                before + court->terms.bond + court->terms.stake / 4);
    print_message("%s: %u queries, evidence of %zu bytes (bound %llu); gas %llu, at most %llu\n",
                  name, descent.queries, descent.bytes.size, (unsigned long long)bound,
                  (unsigned long long)descent.gas, (unsigned long long)descent.most);
    buffer_release(&descent.reply);
    buffer_release(&descent.bytes);
    giant_close(giant);
}

static void test_the_longest_operations_convict_who_lies_about_them(void **state)
{
    struct court *court = calloc(1, sizeof(*court));
    struct giant giant;

    (void)state;
    assert_non_null(court);
    court_open_direct(court);
    giant_open_long(&giant, OP_CONTRACT, 1 << 20, 128, 13, 0);
    convict(court, &giant, "contract, K 2^20", 0, 3);
    giant_open_long(&giant, OP_CONTRACT, 1 << 22, 128, 13, 0);
    convict(court, &giant, "contract, K 2^22", 0, 7);
    giant_open_long(&giant, OP_CONTRACT, (INT64_C(1) << 31) - 5, 16, 13, 0);
    convict(court, &giant, "contract, K 2^31 - 5, block 16", 0, 7);
    giant_open_long(&giant, OP_CONTRACT_ONES, INT64_C(1) << 31, 16, 13, 0);
    convict(court, &giant, "contract-ones, K 2^31, block 16", 0, 0);
    giant_open_long(&giant, OP_CONTRACT_ONEHOT, INT64_C(1) << 31, 16, 13, 0);
    convict(court, &giant, "contract-onehot, K 2^31, block 16", 0, 5);
    giant_open_long(&giant, OP_CONTRACT, INT64_C(1) << 34, 128, 13, 0);
    convict(court, &giant, "contract, K 2^34", 0, 2);
    giant_open_long(&giant, OP_QUANTIZE, 1 << 20, 16, 5, 4);
    convict(court, &giant, "quantize, exponents of K 2^20, block 16", 1, 0);
    giant_open_long(&giant, OP_QUANTIZE, INT64_C(1) << 31, 16, 5, 4);
    convict(court, &giant, "quantize, exponents of K 2^31, block 16", 1, 0);
    court_close(court);
    free(court);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_longest_operations_convict_who_lies_about_them),
    };

    anvil_need();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
