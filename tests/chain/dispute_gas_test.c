/*
 * Goal: a whole dispute costs what docs/GAS.md says, and a conviction what it may.
 * Method: the moves of a dispute as transactions of their own, with the contracts as deployed but
 * for a clock in storage: a walk through a tensor of 13 levels, and convictions by one element of
 * matmuls as GPT-2 124M has them. LOCKSTEP_WRITE_GAS=1 prints the table.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proofs/conviction.h"
#include "tests/support/court.h"
#include "tests/support/forgery.h"
#include "tests/support/gas_bill.h"
#include "tests/support/test.h"
#include "tests/support/walk.h"

enum {
    MOST_768 = 1000000,
    MOST_3072 = 2000000,
    MOST = 6000000,
    MOST_TRANSACTION = 16000000,
    BITS = 14,
    BLOCK = 128,
};

static void check(const struct court *court, const char *name, uint64_t gas)
{
    uint64_t documented = 0;

    assert_true(court->twins.gas < MOST_TRANSACTION);
    if (getenv("LOCKSTEP_WRITE_GAS") != NULL) {
        print_message("| %s | %llu |\n", name, (unsigned long long)gas);
        return;
    }
    gas_bill_documented(&documented, 1, name);
    if (10 * gas > 11 * documented) {
        fail_msg("%s costs %llu gas, docs/GAS.md says %llu", name, (unsigned long long)gas,
                 (unsigned long long)documented);
    }
}

static void add_tensor(struct tape *tape, enum dtype dtype, enum role role, uint64_t count)
{
    struct tensor *tensor = &tape->tensors[tape->tensor_count++];

    *tensor =
        (struct tensor){.dtype = dtype, .role = role, .rank = 1, .dims = {count}, .count = count};
    (void)snprintf(tensor->name, sizeof(tensor->name), "t%u", tape->tensor_count);
}

/* One matmul of m rows and n columns. */
static struct tape *product(int64_t m, int64_t n, int64_t k)
{
    const int64_t attributes[CONTRACT_ATTRIBUTES] = {1, 1, 1, m, 1, n,    0,     0,
                                                     0, n, 0, 1, k, BITS, BLOCK, 0};
    uint64_t blocks = (uint64_t)(k + BLOCK - 1) / BLOCK;
    struct tape *tape = calloc(1, sizeof(*tape));

    assert_non_null(tape);
    tape->tensors = calloc(5, sizeof(*tape->tensors));
    tape->states = calloc(4, sizeof(*tape->states));
    tape->ops = calloc(1, sizeof(*tape->ops));
    add_tensor(tape, DTYPE_I16, ROLE_STATE, (uint64_t)(m * k));
    add_tensor(tape, DTYPE_I16, ROLE_STATE, (uint64_t)m * blocks);
    add_tensor(tape, DTYPE_I16, ROLE_STATE, (uint64_t)(n * k));
    add_tensor(tape, DTYPE_I16, ROLE_STATE, (uint64_t)n * blocks);
    add_tensor(tape, DTYPE_F32, ROLE_TEMPORARY, (uint64_t)(m * n));
    tape->op_count = 1;
    tape->loss = TENSOR_NONE;
    tape->ops[0] = (struct op){.kind = OP_CONTRACT,
                               .input_count = 4,
                               .output_count = 1,
                               .attribute_count = CONTRACT_ATTRIBUTES,
                               .inputs = {0, 1, 2, 3},
                               .outputs = {4}};
    memcpy(tape->ops[0].attributes, attributes, sizeof(attributes));
    for (uint32_t i = 0; i < 4; i++) {
        tape->states[tape->state_count++] = (struct state_pair){i, i};
    }
    return tape;
}

/* Rows that run down the columns of (rows, columns). */
static struct tape *column(int64_t rows, int64_t columns)
{
    const int64_t attributes[QUANTIZE_ATTRIBUTES] = {1, 1, 1, columns, 1,       rows, 0,
                                                     0, 0, 1, 0,       columns, BITS, BLOCK};
    uint64_t pieces = (uint64_t)(columns * ((rows + BLOCK - 1) / BLOCK));
    struct tape *tape = calloc(1, sizeof(*tape));

    assert_non_null(tape);
    tape->tensors = calloc(4, sizeof(*tape->tensors));
    tape->states = calloc(1, sizeof(*tape->states));
    tape->ops = calloc(1, sizeof(*tape->ops));
    add_tensor(tape, DTYPE_F32, ROLE_STATE, (uint64_t)(rows * columns));
    add_tensor(tape, DTYPE_I16, ROLE_TEMPORARY, pieces);
    add_tensor(tape, DTYPE_I16, ROLE_TEMPORARY, pieces);
    add_tensor(tape, DTYPE_I16, ROLE_TEMPORARY, (uint64_t)(rows * columns));
    tape->op_count = 1;
    tape->loss = TENSOR_NONE;
    tape->ops[0] = (struct op){.kind = OP_QUANTIZE,
                               .input_count = 1,
                               .output_count = 3,
                               .attribute_count = QUANTIZE_ATTRIBUTES,
                               .inputs = {0},
                               .outputs = {1, 2, 3}};
    memcpy(tape->ops[0].attributes, attributes, sizeof(attributes));
    tape->states[tape->state_count++] = (struct state_pair){0, 0};
    return tape;
}

/* A move of a dispute, which has a row of its own. */
static void measure(struct court *court, enum game_move_kind kind, const struct buffer *payload,
                    const char *what, const char *name)
{
    struct game_move move = court_move(court, kind, payload->data, payload->size);
    char row[96];

    assert_true(payload->size <= GAME_PAYLOAD_MAX);
    court_done(court, &move, kind == GAME_TELL ? COURT_SOLVER : COURT_CLAIMANT);
    (void)snprintf(row, sizeof(row), "%s, %s", what, name);
    check(court, row, court->twins.gas);
}

/* Question, answer and evidence of a false part; the gas of all of them. */
static uint64_t convict_by_part(struct court *court, const char *name,
                                const struct exhibit *exhibit, const struct evidence_target *target)
{
    struct buffer bytes;
    struct buffer told;
    uint64_t random = 1;
    uint64_t gas;
    uint32_t part;

    exhibit_question(&bytes, exhibit, target);
    measure(court, GAME_ASK, &bytes, "ask for parts", name);
    gas = court->twins.gas;
    buffer_release(&bytes);
    assert_true(forgery_of(&told, &part, exhibit, target, &random));
    measure(court, GAME_TELL, &told, "tell parts", name);
    gas += court->twins.gas;
    exhibit_part_evidence(&bytes, exhibit, target, part, &told);
    measure(court, GAME_CONVICT, &bytes, "convict by a part", name);
    buffer_release(&bytes);
    buffer_release(&told);
    return gas + court->twins.gas;
}

/* From the claim to the verdict, as conviction.c would go about it. */
static void convict(struct court *court, const char *name, struct tape *tape, uint32_t output,
                    uint64_t most)
{
    struct evidence_target target = {.output = output};
    struct exhibit exhibit;
    struct buffer evidence;
    uint64_t gas = 0;
    char row[96];

    exhibit_of_op(&exhibit, tape, MOOD_TAME, 1);
    target.element = 77 % tape->tensors[tape->ops[0].outputs[output]].count;
    exhibit_make_right(&exhibit, &target);
    exhibit_set(&exhibit, &target, exhibit_get(&exhibit, &target) ^ 1);
    court->twins.outcome_count = 0;
    court_commit(court, &exhibit.context, 1, 1);
    court_claim(court);
    gas += court->twins.gas;
    court_answer(court);
    gas += court->twins.gas;
    exhibit_evidence(&evidence, &exhibit, &target);
    if (evidence.size <= CONVICTION_WHOLE_MAX) {
        measure(court, GAME_CONVICT, &evidence, "convict", name);
        gas += court->twins.gas;
    } else {
        gas += convict_by_part(court, name, &exhibit, &target);
    }
    (void)snprintf(row, sizeof(row), "claim to verdict, %s", name);
    check(court, row, gas);
    assert_true(gas < most);
    buffer_release(&evidence);
    exhibit_close(&exhibit);
}

static void test_conviction_costs_what_it_may(void **state)
{
    struct court *court = calloc(1, sizeof(*court));

    (void)state;
    assert_non_null(court);
    court_open_direct(court);
    convict(court, "K = 768", product(1024, 768, 768), 0, MOST_768);
    convict(court, "K = 3072", product(1024, 768, 3072), 0, MOST_3072);
    convict(court, "K = 50257", product(64, 64, 50257), 0, MOST);
    convict(court, "K = 524288", product(2, 2, 524288), 0, MOST);
    convict(court, "a peak down a column", column(1024, 768), 0, MOST);
    court_close(court);
    free(court);
}

static void test_each_round_of_a_walk_costs_what_is_documented(void **state)
{
    struct court *court = calloc(1, sizeof(*court));
    struct lie lie = {.item = walk_item_of_matmul(), .kind = LIE_ULP};
    struct buffer evidence;
    struct game_move move;
    struct walk walk;
    uint32_t round = 1;

    (void)state;
    assert_non_null(court);
    court_open_direct(court);
    walk_open(&walk, &lie, true);
    court_commit(court, &walk.context, 1, 1);
    court_claim(court);
    court_answer(court);
    for (; walk_question(&walk); round++) {
        char row[32];

        move = court_move(court, GAME_ASK, walk.question.data, walk.question.size);
        court_done(court, &move, COURT_CLAIMANT);
        (void)snprintf(row, sizeof(row), "ask, round %u", round);
        check(court, row, court->twins.gas);
        walk_answer(&walk, &court->asked.payload);
        move = court_move(court, GAME_TELL, walk.told, walk.told_size);
        court_done(court, &move, COURT_SOLVER);
        (void)snprintf(row, sizeof(row), "tell, round %u", round);
        check(court, row, court->twins.gas);
        assert_int_equal(hunt_take(&walk.hunt, walk.told, walk.told_size, NULL), STATUS_OK);
    }
    buffer_init(&evidence, GAME_PAYLOAD_MAX);
    walk_evidence(&evidence, &walk);
    move = court_move(court, GAME_CONVICT, evidence.data, evidence.size);
    court_done(court, &move, COURT_CLAIMANT);
    buffer_release(&evidence);
    walk_close(&walk);
    court_close(court);
    free(court);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conviction_costs_what_it_may),
        cmocka_unit_test(test_each_round_of_a_walk_costs_what_is_documented),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
