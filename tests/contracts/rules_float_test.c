/*
 * Goal: the contracts of float rules give the bits that the rules of the engine give, and refuse
 * what is not theirs.
 * Method: operations of every float kind, of random shapes, whose tensors hold ordinary, mixed and
 * hostile numbers, inputs and earlier outputs alike (exhibit.h); evidence about every output, the
 * accused element not being read by its own rule. Both sides must agree on each. Then evidence with
 * an operand withheld, and of operations of other contracts.
 */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/dispute/exhibit.h"
#include "tests/support/dispute/shown_random.h"
#include "tests/support/game/jury.h"

enum {
    FULL_COUNT = 10000, /* of elements of each output, under make soak */
    SHARE_COUNT = 160,
    CASES_MAX = 4096,
    TARGETS = 8, /* of each output of one exhibit */
    CODE_SIZE_MAX = 24576,
    FREE_LEAST = 4000, /* for what a kind more needs: scripts/kinds */
};

struct court {
    struct jury jury;
    struct jury_rules contracts;
};

static int open_court(void **state)
{
    struct court *court = calloc(1, sizeof(*court));

    assert_non_null(court);
    jury_open(&court->jury);
    jury_deploy_rules(&court->jury, &court->contracts);
    *state = court;
    return 0;
}

static int close_court(void **state)
{
    struct court *court = *state;

    jury_close(&court->jury);
    free(court);
    return 0;
}

static bool in_rows(enum op_kind kind)
{
    return jury_contract_of(kind) == JURY_ROWS;
}

static bool in_elementwise(enum op_kind kind)
{
    return jury_contract_of(kind) == JURY_ELEMENTWISE;
}

static bool in_general(enum op_kind kind)
{
    return kind == OP_MAP || jury_contract_of(kind) == JURY_BINARY;
}

/* Of the contract of moves, only these are tried here: rules_test.c has the others. */
static bool in_moves(enum op_kind kind)
{
    return kind == OP_MOVE || kind == OP_PLACE || kind == OP_CAST;
}

/* How many functions a kind has. */
static uint64_t functions_of(enum op_kind kind)
{
    return kind == OP_MAP       ? MAP_FUNCTION_COUNT
           : kind == OP_BINARY  ? BINARY_FUNCTION_COUNT
           : kind == OP_INTEGER ? INTEGER_FUNCTION_COUNT
                                : 1;
}

/* ---- agreement ------------------------------------------------------------ */

/* A case for the contract, kept to explain a difference. */
struct jury_case {
    struct evidence_target target;
    uint64_t seed;
    enum random_mood mood;
    uint32_t expected;
};

struct session {
    struct court *court;
    enum op_kind kind;
    const struct address *rules;       /* who hears the cases */
    struct jury_case cases[CASES_MAX]; /* as many as the jury has cases */
    uint64_t tried[OP_OUTPUTS_MAX];
};

static void hear(struct session *session)
{
    struct jury *jury = &session->court->jury;
    size_t count = jury->count;
    struct jury_answer *answers = count == 0 ? NULL : jury_hear(jury, session->rules);

    for (size_t i = 0; i < count; i++) {
        const struct jury_case *tried = &session->cases[i];

        if (answers[i].refused || answers[i].value != tried->expected) {
            fail_msg(
                "%s, output %u, element %llu, seed %llu, mood %d: %08x, the contract %s %08llx",
                op_kind_name(session->kind), tried->target.output,
                (unsigned long long)tried->target.element, (unsigned long long)tried->seed,
                (int)tried->mood, tried->expected, answers[i].refused ? "refuses with" : "says",
                (unsigned long long)answers[i].value);
        }
    }
    free(answers);
}

static void try_case(struct session *session, struct exhibit *exhibit,
                     const struct jury_case *tried)
{
    const struct address *rules =
        jury_rules_of_op(&session->court->contracts, &exhibit->tape->ops[0]);
    struct jury *jury = &session->court->jury;
    struct buffer evidence;

    if (session->rules != rules) {
        hear(session);
        session->rules = rules;
    }
    session->cases[jury->count] = *tried;
    session->cases[jury->count].expected = exhibit_rule(exhibit, &tried->target);
    session->tried[tried->target.output]++;
    exhibit_evidence(&evidence, exhibit, &tried->target);
    jury_add(jury, evidence.data, evidence.size);
    buffer_release(&evidence);
    if (jury->count == CASES_MAX || jury->cases.size > JURY_BYTES_MAX) {
        hear(session);
    }
}

/* One operation, and a few elements of each of its outputs; returns the least tried of one. */
static uint64_t try_one(struct session *session, uint64_t seed)
{
    enum random_mood mood = (enum random_mood)(seed % MOOD_COUNT);
    uint64_t random = seed;
    uint64_t least = UINT64_MAX;
    struct exhibit exhibit;

    exhibit_of_kind(&exhibit, session->kind, mood, seed);
    const struct op *op = &exhibit.tape->ops[0];

    for (uint32_t output = 0; output < op->output_count; output++) {
        uint64_t count = exhibit.tape->tensors[op->outputs[output]].count;

        for (uint32_t i = 0; i < TARGETS && i < count; i++) {
            uint64_t element = i == 0 ? count - 1 : test_random_below(&random, count);
            struct jury_case tried = {.target = {.op = 0, .output = output, .element = element},
                                      .seed = seed,
                                      .mood = mood};

            try_case(session, &exhibit, &tried);
        }
        least = session->tried[output] < least ? session->tried[output] : least;
    }
    exhibit_close(&exhibit);
    return least;
}

static void agree(struct court *court, enum op_kind kind)
{
    struct session *session = calloc(1, sizeof(*session));
    uint64_t count = test_share(FULL_COUNT, SHARE_COUNT) * functions_of(kind);

    assert_non_null(session);
    session->court = court;
    session->kind = kind;
    for (uint64_t seed = 1; try_one(session, seed) < count; seed++) {
    }
    hear(session);
    if (test_soak_minutes() > 0) {
        print_message("%s: at least %llu elements of each output\n", op_kind_name(kind),
                      (unsigned long long)count);
    }
    free(session);
}

static void test_elements_of_elementwise_operations_and_updates_agree(void **state)
{
    for (enum op_kind kind = 0; kind < OP_KIND_COUNT; kind++) {
        if (in_elementwise(kind)) {
            agree(*state, kind);
        }
    }
}

static void test_elements_of_general_kinds_agree(void **state)
{
    for (enum op_kind kind = 0; kind < OP_KIND_COUNT; kind++) {
        if (in_general(kind) || in_moves(kind)) {
            agree(*state, kind);
        }
    }
}

static void test_elements_of_rows_agree(void **state)
{
    for (enum op_kind kind = 0; kind < OP_KIND_COUNT; kind++) {
        if (in_rows(kind)) {
            agree(*state, kind);
        }
    }
}

/* Each kind has a contract, and its outputs are tried here or in rules_test.c, of one alone. */
static void test_every_kind_is_tried_by_one_test(void **state)
{
    (void)state;
    for (enum op_kind kind = 0; kind < OP_KIND_COUNT; kind++) {
        int tried = in_rows(kind) + in_elementwise(kind) + in_general(kind) + in_moves(kind);

        for (size_t i = 0; i < SHOWN_RANDOM_KINDS; i++) {
            tried += shown_random_kinds[i] == kind;
        }
        if (tried != 1) {
            fail_msg("%s: elements are compared by %d tests", op_kind_name(kind), tried);
        }
    }
}

/* ---- refusals ------------------------------------------------------------- */

static bool is_refused(struct court *court, const struct address *rules,
                       const struct buffer *evidence)
{
    jury_add(&court->jury, evidence->data, evidence->size);
    struct jury_answer *answers = jury_hear(&court->jury, rules);
    bool refused = answers[0].refused;

    free(answers);
    return refused;
}

/* Where the bytes behind the descriptor begin. */
static size_t after_descriptor(const struct buffer *evidence)
{
    size_t descriptor = 14 + (size_t)32 * evidence->data[13];

    return descriptor + 2 + ((size_t)evidence->data[descriptor] << 8) +
           evidence->data[descriptor + 1];
}

static void test_operations_of_other_contracts_are_refused(void **state)
{
    struct court *court = *state;

    for (enum op_kind kind = 0; kind < OP_KIND_COUNT; kind++) {
        struct evidence_target target = {.op = 0};
        struct exhibit exhibit;
        struct buffer evidence;

        exhibit_of_kind(&exhibit, kind, MOOD_TAME, 1);
        exhibit_evidence(&evidence, &exhibit, &target);
        for (uint32_t i = 0; i < JURY_CONTRACTS; i++) {
            const struct address *rules = &court->contracts.contracts[i];

            if (i != JURY_MOVES && i != JURY_CONTRACTION) {
                assert_int_equal(is_refused(court, rules, &evidence),
                                 jury_rules_of_op(&court->contracts, &exhibit.tape->ops[0]) !=
                                     rules);
            }
        }
        buffer_release(&evidence);
        exhibit_close(&exhibit);
    }
}

/* Takes the leaves of each operand away in turn: the rule must miss them. */
static void withhold(struct court *court, enum op_kind kind, uint32_t output)
{
    struct evidence_target target = {.op = 0, .output = output};
    struct exhibit exhibit;
    struct buffer evidence;

    exhibit_of_kind(&exhibit, kind, MOOD_TAME, 3);
    exhibit_evidence(&evidence, &exhibit, &target);
    const struct op *op = &exhibit.tape->ops[0];
    size_t used_at = after_descriptor(&evidence) + 41;
    unsigned used = (unsigned)(evidence.data[used_at] << 8 | evidence.data[used_at + 1]);
    size_t at = used_at + 2;

    for (uint32_t i = 0; i < op->input_count + op->output_count; i++) {
        const struct tensor *tensor;
        size_t start = at;

        if ((used >> i & 1) == 0) {
            continue;
        }
        (void)exhibit_operand(&exhibit, (struct op_turn){0, 0}, i, &tensor);
        at += 1 + (size_t)evidence.data[at] + 32;
        at += tensor->role == ROLE_DATA || tensor->role == ROLE_CONSTANT ? 4 : 0;
        at += 1 + (size_t)32 * evidence.data[at];
        size_t leaves = (size_t)(evidence.data[at] << 8 | evidence.data[at + 1]);

        at += 2 + 8 * leaves;
        at += 2 + 32 * (size_t)(evidence.data[at] << 8 | evidence.data[at + 1]) + 1024 * leaves;
        if (i == op->input_count + output) {
            continue; /* the accused: not the rule's business */
        }
        struct buffer less;
        unsigned left = used & ~(1u << i);

        buffer_init(&less, EVIDENCE_SIZE_MAX);
        buffer_add(&less, evidence.data, used_at);
        buffer_add_u16(&less, (uint16_t)left);
        buffer_add(&less, evidence.data + used_at + 2, start - used_at - 2);
        buffer_add(&less, evidence.data + at, evidence.size - at);
        if (!is_refused(court, jury_rules_of_op(&court->contracts, op), &less)) {
            fail_msg("%s, output %u does not miss operand %u", op_kind_name(kind), output, i);
        }
        buffer_release(&less);
    }
    assert_true(at == evidence.size);
    buffer_release(&evidence);
    exhibit_close(&exhibit);
}

static void test_an_operand_that_is_withheld_is_missed(void **state)
{
    struct exhibit exhibit;

    for (enum op_kind kind = 0; kind < OP_KIND_COUNT; kind++) {
        if (in_rows(kind) || in_elementwise(kind) || in_general(kind) || in_moves(kind)) {
            exhibit_of_kind(&exhibit, kind, MOOD_TAME, 3);
            uint32_t outputs = exhibit.tape->ops[0].output_count;

            exhibit_close(&exhibit);
            for (uint32_t output = 0; output < outputs; output++) {
                withhold(*state, kind, output);
            }
        }
    }
}

/* ---- size ----------------------------------------------------------------- */

static void test_the_contracts_can_be_deployed(void **state)
{
    struct court *court = *state;

    for (size_t i = 0; i < JURY_CONTRACTS; i++) {
        char text[ADDRESS_TEXT_SIZE];

        address_print(text, &court->contracts.contracts[i]);
        json_t *code =
            anvil_call(court->jury.rpc, "eth_getCode", json_pack("[s, s]", text, "latest"));
        size_t size = (strlen(json_string_value(code)) - 2) / 2;

        assert_in_range(size, 1000, CODE_SIZE_MAX - FREE_LEAST);
        json_decref(code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elements_of_elementwise_operations_and_updates_agree),
        cmocka_unit_test(test_elements_of_general_kinds_agree),
        cmocka_unit_test(test_elements_of_rows_agree),
        cmocka_unit_test(test_every_kind_is_tried_by_one_test),
        cmocka_unit_test(test_operations_of_other_contracts_are_refused),
        cmocka_unit_test(test_an_operand_that_is_withheld_is_missed),
        cmocka_unit_test(test_the_contracts_can_be_deployed),
    };
    return cmocka_run_group_tests(tests, open_court, close_court);
}
