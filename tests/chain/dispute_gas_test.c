/*
 * Goal: a whole dispute costs what docs/GAS.md says, and a conviction what it may.
 * Method: the moves of a dispute as transactions of their own, with the contracts as deployed but
 * for a clock in storage: a walk through a tensor of 13 levels, and convictions by one element of
 * matmuls as GPT-2 124M has them. LOCKSTEP_WRITE_GAS=1 prints the table.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/court.h"
#include "tests/support/exhibit.h"
#include "tests/support/gas_bill.h"
#include "tests/support/test.h"
#include "tests/support/walk.h"

enum {
    MOST_768 = 1000000,
    MOST_3072 = 2000000,
    MOST_TRANSACTION = 16000000,
    BITS = 14,
    BLOCK = 128,
};

static void check(const struct court *court, const char *name)
{
    uint64_t documented = 0;

    assert_true(court->twins.gas < MOST_TRANSACTION);
    if (getenv("LOCKSTEP_WRITE_GAS") != NULL) {
        print_message("| %s | %llu |\n", name, (unsigned long long)court->twins.gas);
        return;
    }
    gas_bill_documented(&documented, 1, name);
    if (10 * court->twins.gas > 11 * documented) {
        fail_msg("%s costs %llu gas, docs/GAS.md says %llu", name,
                 (unsigned long long)court->twins.gas, (unsigned long long)documented);
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

/* The gas of claim, answer and convictions together. */
static uint64_t convict(struct court *court, const char *name, struct tape *tape)
{
    struct evidence_target target = {.element = 77};
    struct exhibit exhibit;
    uint64_t gas = 0;
    uint64_t from = 0;
    bool last = false;

    exhibit_of_op(&exhibit, tape, MOOD_TAME, 1);
    exhibit_make_right(&exhibit, &target);
    exhibit_set(&exhibit, &target, exhibit_get(&exhibit, &target) ^ 1);
    court->twins.outcome_count = 0;
    court_commit(court, &exhibit.context, 1, 1);
    court_claim(court);
    gas += court->twins.gas;
    court_answer(court);
    gas += court->twins.gas;
    while (!last) {
        struct buffer evidence;
        struct game_move move;
        char row[96];
        struct error error;
        uint64_t to;

        error_init(&error);
        buffer_init(&evidence, GAME_PAYLOAD_MAX);
        assert_int_equal(evidence_write_element(&evidence, &to, &last, exhibit.tape,
                                                &exhibit.source, &target, from, GAME_PAYLOAD_MAX,
                                                &error),
                         STATUS_OK);
        move = court_move(court, GAME_CONVICT, evidence.data, evidence.size);
        court_done(court, &move, COURT_CLAIMANT);
        gas += court->twins.gas;
        (void)snprintf(row, sizeof(row), "%s%s", name,
                       last && from == 0 ? ""
                       : last            ? ", last part"
                                         : ", first part");
        if (from == 0 || last) {
            check(court, row);
        }
        buffer_release(&evidence);
        from = to;
    }
    exhibit_close(&exhibit);
    return gas;
}

static void test_conviction_costs_what_it_may(void **state)
{
    struct court *court = calloc(1, sizeof(*court));

    (void)state;
    assert_non_null(court);
    court_open_direct(court);
    assert_true(convict(court, "convict, K = 768", product(1024, 768, 768)) < MOST_768);
    assert_true(convict(court, "convict, K = 3072", product(1024, 768, 3072)) < MOST_3072);
    (void)convict(court, "convict, K = 50257", product(64, 64, 50257));
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
        check(court, row);
        walk_answer(&walk, &court->asked.payload);
        move = court_move(court, GAME_TELL, walk.told, walk.told_size);
        court_done(court, &move, COURT_SOLVER);
        (void)snprintf(row, sizeof(row), "tell, round %u", round);
        check(court, row);
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
