/*
 * Goal: recomputing an element of a GPT-2 124M step on the chain costs no more than documented, and
 * a conviction stays below its limits.
 * Method: evidence with real proofs for tensors of those shapes; the gas of its bytes, of checking
 * its leaves and of the rule are compared with docs/GAS.md: more than a tenth above what stands
 * there fails. LOCKSTEP_WRITE_GAS=1 prints the table that should stand there.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/rules_code.h"
#include "engine/contraction.h"
#include "tests/support/contract_call.h"
#include "tests/support/jury.h"

enum {
    TOKENS = 1024,
    WIDTH = 768,
    HIDDEN = 3072,
    VOCABULARY = 50257,
    ROWS_OF_LONG = 128, /* of operands with rows of VOCABULARY: fewer than a step has */
    BITS = 14,
    BLOCK = 128,
    PATH = 13, /* siblings in a list of about 5,000 items */
    EVIDENCE_MAX = 1 << 20,
    TRANSACTION_BYTES_MAX = 128 * 1024,
    CASES_MAX = 24,
    FIGURES = 4,
    /* EIP-2028 and EIP-7623. */
    TRANSACTION_GAS = 21000,
    ZERO_GAS = 4,
    BYTE_GAS = 16,
    ZERO_FLOOR_GAS = 10,
    BYTE_FLOOR_GAS = 40,
};

static const char *const figure_names[FIGURES] = {"transaction", "bytes", "leaves", "rule"};

struct cost {
    char name[64];
    uint64_t figures[FIGURES];
};

struct bill {
    struct jury jury;
    struct address contraction;
    struct address moves;
    struct cost costs[CASES_MAX];
    size_t count;
    uint64_t seed;
};

static uint64_t calldata_gas(const struct buffer *bytes, uint64_t zero, uint64_t other)
{
    uint64_t gas = 0;

    for (size_t i = 0; i < bytes->size; i++) {
        gas += bytes->data[i] == 0 ? zero : other;
    }
    return gas;
}

static uint64_t checking_gas(struct bill *bill, const struct buffer *evidence)
{
    struct contract_call call;
    uint8_t *result;
    uint64_t gas;
    size_t size;

    contract_call_init(&call, "operands(bytes)");
    contract_call_word(&call, 32);
    contract_call_bytes(&call, evidence->data, evidence->size);
    result = contract_call_make(bill->jury.rpc, &size, &bill->jury.jury, &call);
    contract_call_release(&call);
    gas = contract_call_u64(result + 32);
    free(result);
    return gas;
}

/* What a transaction with this evidence costs, but for what is not about its leaves. */
static void measure(struct bill *bill, const char *name, const struct shown_case *shown,
                    const struct shown_target *target)
{
    bool sum = shown_case_axis(shown, target->output) != 0;
    bool part = sum ? target->from != 0 || target->to != shown_case_axis(shown, target->output)
                    : target->to != 0;
    struct cost *cost = &bill->costs[bill->count++];
    struct jury_answer *answers;
    struct buffer evidence;
    uint64_t floor;

    assert_true(bill->count <= CASES_MAX);
    buffer_init(&evidence, EVIDENCE_MAX);
    shown_case_write(&evidence, shown, target, true, PATH);
    if (evidence.size >= TRANSACTION_BYTES_MAX) {
        fail_msg("%s: %zu bytes", name, evidence.size);
    }
    jury_add(&bill->jury, evidence.data, evidence.size, part);
    answers =
        jury_hear(&bill->jury, shown->op.kind >= OP_QUANTIZE ? &bill->contraction : &bill->moves);
    assert_false(answers[0].refused);
    if (!part) {
        assert_int_equal(answers[0].value, shown_case_rule(shown, target->output, target->element));
    }
    (void)snprintf(cost->name, sizeof(cost->name), "%s", name);
    cost->figures[1] = evidence.size;
    cost->figures[2] = checking_gas(bill, &evidence);
    cost->figures[3] = answers[0].gas;
    cost->figures[0] = TRANSACTION_GAS + calldata_gas(&evidence, ZERO_GAS, BYTE_GAS) +
                       cost->figures[2] + cost->figures[3];
    floor = TRANSACTION_GAS + calldata_gas(&evidence, ZERO_FLOOR_GAS, BYTE_FLOOR_GAS);
    if (cost->figures[0] < floor) {
        cost->figures[0] = floor;
    }
    free(answers);
    buffer_release(&evidence);
}

/* ---- the cases -------------------------------------------------------------- */

static void random_tensor(struct bill *bill, struct shown_case *shown, uint32_t number,
                          enum dtype dtype, uint64_t count)
{
    void *memory = shown_case_tensor(shown, number, dtype, count);

    if (dtype == DTYPE_I16) {
        for (uint64_t i = 0; i < count; i++) {
            ((int16_t *)memory)[i] = (int16_t)(test_random_below(&bill->seed, 16383) - 8191);
        }
    } else {
        test_random_fill(&bill->seed, memory, count * dtype_size(dtype));
    }
}

static void exponents(struct bill *bill, struct shown_case *shown, uint32_t number, uint64_t count)
{
    int16_t *memory = shown_case_tensor(shown, number, DTYPE_I16, count);

    for (uint64_t i = 0; i < count; i++) {
        memory[i] = (int16_t)(test_random_below(&bill->seed, 8));
    }
}

static void make_product(struct bill *bill, struct shown_case *shown, int64_t m, int64_t n,
                         int64_t k)
{
    const int64_t attributes[CONTRACT_ATTRIBUTES] = {1, 1, 1, m, 1, n,    0,     0,
                                                     0, n, 0, 1, k, BITS, BLOCK, 0};
    uint64_t blocks = (uint64_t)(k + BLOCK - 1) / BLOCK;

    shown_case_init(shown, OP_CONTRACT, 4, 1);
    memcpy(shown->op.attributes, attributes, sizeof(attributes));
    shown->op.attribute_count = CONTRACT_ATTRIBUTES;
    random_tensor(bill, shown, 0, DTYPE_I16, (uint64_t)(m * k));
    exponents(bill, shown, 1, (uint64_t)m * blocks);
    random_tensor(bill, shown, 2, DTYPE_I16, (uint64_t)(n * k));
    exponents(bill, shown, 3, (uint64_t)n * blocks);
    random_tensor(bill, shown, 4, DTYPE_F32, (uint64_t)(m * n));
    shown_case_check(shown);
}

static void measure_products(struct bill *bill)
{
    struct shown_case shown;

    make_product(bill, &shown, TOKENS, 3 * WIDTH, WIDTH);
    measure(bill, "contract, K = 768", &shown,
            &(struct shown_target){.element = 1000 * 3 * WIDTH + 77, .to = WIDTH});
    shown_case_release(&shown);
    make_product(bill, &shown, TOKENS, WIDTH, HIDDEN);
    measure(bill, "contract, K = 3072", &shown,
            &(struct shown_target){.element = 1000 * WIDTH + 77, .to = HIDDEN});
    shown_case_release(&shown);
    make_product(bill, &shown, ROWS_OF_LONG, ROWS_OF_LONG, VOCABULARY);
    measure(bill, "contract, K = 50257, first part", &shown,
            &(struct shown_target){.element = 1000, .to = 28672});
    measure(bill, "contract, K = 50257, last part", &shown,
            &(struct shown_target){.element = 1000, .from = 28672, .to = VOCABULARY});
    shown_case_release(&shown);
}

/* The gradient of a bias, and that of the embedding. */
static void measure_sums(struct bill *bill)
{
    const int64_t ones[ONES_ATTRIBUTES] = {HIDDEN, TOKENS, BITS, BLOCK};
    const int64_t onehot[ONEHOT_ATTRIBUTES] = {VOCABULARY, WIDTH, TOKENS, BITS, BLOCK};
    struct shown_case shown;
    uint32_t *words;

    shown_case_init(&shown, OP_CONTRACT_ONES, 2, 1);
    memcpy(shown.op.attributes, ones, sizeof(ones));
    shown.op.attribute_count = ONES_ATTRIBUTES;
    random_tensor(bill, &shown, 0, DTYPE_I16, HIDDEN * TOKENS);
    exponents(bill, &shown, 1, HIDDEN * TOKENS / BLOCK);
    random_tensor(bill, &shown, 2, DTYPE_F32, HIDDEN);
    shown_case_check(&shown);
    measure(bill, "contract-ones, K = 1024", &shown,
            &(struct shown_target){.element = 77, .to = TOKENS});
    shown_case_release(&shown);

    shown_case_init(&shown, OP_CONTRACT_ONEHOT, 3, 1);
    memcpy(shown.op.attributes, onehot, sizeof(onehot));
    shown.op.attribute_count = ONEHOT_ATTRIBUTES;
    words = shown_case_tensor(&shown, 0, DTYPE_U32, TOKENS);
    for (uint32_t i = 0; i < TOKENS; i++) {
        words[i] = (uint32_t)(i % 64 == 5 ? 1 : test_random_below(&bill->seed, VOCABULARY));
    }
    random_tensor(bill, &shown, 1, DTYPE_I16, WIDTH * TOKENS);
    exponents(bill, &shown, 2, WIDTH * TOKENS / BLOCK);
    (void)shown_case_tensor(&shown, 3, DTYPE_F32, (uint64_t)VOCABULARY * WIDTH);
    shown_case_check(&shown);
    measure(bill, "contract-onehot, K = 1024", &shown,
            &(struct shown_target){.element = WIDTH + 77, .to = TOKENS});
    shown_case_release(&shown);
}

/* Rows along the last axis of (TOKENS, columns), or down its columns. */
static void make_quantize(struct bill *bill, struct shown_case *shown, int64_t columns, bool down)
{
    const int64_t along[12] = {1, 1, 1, TOKENS, 1, columns, 0, 0, 0, columns, 0, 1};
    const int64_t across[12] = {1, 1, 1, columns, 1, TOKENS, 0, 0, 0, 1, 0, columns};
    struct contraction_shape shape;
    uint64_t rows = (uint64_t)(down ? columns : TOKENS);

    shown_case_init(shown, OP_QUANTIZE, 1, 3);
    memcpy(shown->op.attributes, down ? across : along, sizeof(along));
    shown->op.attributes[QUANTIZE_BITS] = BITS;
    shown->op.attributes[QUANTIZE_BLOCK] = BLOCK;
    shown->op.attribute_count = QUANTIZE_ATTRIBUTES;
    shape = contraction_shape_of(&shown->op);
    random_tensor(bill, shown, 0, DTYPE_F32, (uint64_t)(TOKENS * columns));
    exponents(bill, shown, 1, rows * (uint64_t)shape.pieces);
    exponents(bill, shown, 2, rows * (uint64_t)shape.blocks);
    random_tensor(bill, shown, 3, DTYPE_I16, (uint64_t)(TOKENS * columns));
    shown_case_check(shown);
}

static void measure_quantize(struct bill *bill)
{
    struct shown_case shown;

    make_quantize(bill, &shown, WIDTH, false);
    measure(bill, "quantize, peak", &shown, &(struct shown_target){.element = 77});
    measure(bill, "quantize, exponent", &shown, &(struct shown_target){.output = 1, .element = 77});
    measure(bill, "quantize, integer", &shown, &(struct shown_target){.output = 2, .element = 77});
    shown_case_release(&shown);
    make_quantize(bill, &shown, WIDTH, true);
    measure(bill, "quantize, half of a peak down a column", &shown,
            &(struct shown_target){.element = 77, .to = BLOCK / 2});
    shown_case_release(&shown);
}

static void measure_moves(struct bill *bill)
{
    const int64_t gather[GATHER_ATTRIBUTES] = {VOCABULARY / 4, WIDTH};
    const int64_t batch[BATCH_TOKENS_ATTRIBUTES] = {1, TOKENS, 1, 2, 3};
    const int64_t dropout[DROPOUT_ATTRIBUTES] = {1, 0x3f800000, 1, 2, 3};
    struct shown_case shown;

    /* A quarter of the words: two siblings less. */
    shown_case_init(&shown, OP_GATHER, 2, 1);
    memcpy(shown.op.attributes, gather, sizeof(gather));
    shown.op.attribute_count = GATHER_ATTRIBUTES;
    (void)shown_case_tensor(&shown, 0, DTYPE_F32, (uint64_t)(gather[0] * WIDTH));
    (void)shown_case_tensor(&shown, 1, DTYPE_U32, TOKENS);
    random_tensor(bill, &shown, 2, DTYPE_F32, TOKENS * WIDTH);
    shown_case_check(&shown);
    measure(bill, "gather", &shown, &(struct shown_target){.element = 1000 * WIDTH + 77});
    shown_case_release(&shown);

    shown_case_init(&shown, OP_BATCH_TOKENS, 2, 2);
    memcpy(shown.op.attributes, batch, sizeof(batch));
    shown.op.attribute_count = BATCH_TOKENS_ATTRIBUTES;
    random_tensor(bill, &shown, 0, DTYPE_U16, 1 << 20);
    shown.operands[0].role = ROLE_DATA;
    random_tensor(bill, &shown, 1, DTYPE_U32, 1);
    random_tensor(bill, &shown, 2, DTYPE_U32, TOKENS);
    random_tensor(bill, &shown, 3, DTYPE_U32, TOKENS);
    shown_case_check(&shown);
    measure(bill, "batch-tokens", &shown, &(struct shown_target){.element = 77});
    shown_case_release(&shown);

    shown_case_init(&shown, OP_DROPOUT, 2, 1);
    memcpy(shown.op.attributes, dropout, sizeof(dropout));
    shown.op.attribute_count = DROPOUT_ATTRIBUTES;
    random_tensor(bill, &shown, 0, DTYPE_F32, TOKENS * WIDTH);
    random_tensor(bill, &shown, 1, DTYPE_U32, 1);
    random_tensor(bill, &shown, 2, DTYPE_F32, TOKENS * WIDTH);
    shown_case_check(&shown);
    measure(bill, "dropout", &shown, &(struct shown_target){.element = 77});
    shown_case_release(&shown);
}

/* ---- the table ---------------------------------------------------------------- */

/* The figures that docs/GAS.md has for a name; zeros where it has none. */
static void documented(uint64_t figures[FIGURES], const char *name)
{
    FILE *file = fopen("docs/GAS.md", "r");
    char wanted[80];
    char line[256];

    memset(figures, 0, FIGURES * sizeof(figures[0]));
    assert_non_null(file);
    (void)snprintf(wanted, sizeof(wanted), "| %s | ", name);
    while (fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, wanted, strlen(wanted)) == 0) {
            char *at = line + strlen(wanted);

            for (int i = 0; i < FIGURES && *at != '\0'; i++) {
                figures[i] = strtoull(at, &at, 10);
                at += strspn(at, " |\n");
            }
        }
    }
    (void)fclose(file);
}

static void compare_with_table(const struct bill *bill)
{
    const bool writing = getenv("LOCKSTEP_WRITE_GAS") != NULL;

    for (size_t i = 0; i < bill->count; i++) {
        const struct cost *cost = &bill->costs[i];
        uint64_t figures[FIGURES];

        if (writing) {
            print_message(
                "| %s | %llu | %llu | %llu | %llu |\n", cost->name,
                (unsigned long long)cost->figures[0], (unsigned long long)cost->figures[1],
                (unsigned long long)cost->figures[2], (unsigned long long)cost->figures[3]);
            continue;
        }
        documented(figures, cost->name);
        for (int f = 0; f < FIGURES; f++) {
            if (10 * cost->figures[f] > 11 * figures[f]) {
                fail_msg("%s: %s is %llu, docs/GAS.md says %llu", cost->name, figure_names[f],
                         (unsigned long long)cost->figures[f], (unsigned long long)figures[f]);
            }
        }
    }
}

static uint64_t transaction_of(const struct bill *bill, const char *name)
{
    for (size_t i = 0; i < bill->count; i++) {
        if (strcmp(bill->costs[i].name, name) == 0) {
            return bill->costs[i].figures[0];
        }
    }
    fail_msg("%s was not measured", name);
    return 0;
}

static void test_every_rule_costs_what_is_documented_and_a_conviction_what_it_may(void **state)
{
    enum { MOST_768 = 1000000, MOST_3072 = 2000000, MOST = 6000000 };
    uint64_t claim[FIGURES];
    uint64_t answer[FIGURES];
    struct bill bill = {.seed = 1};

    (void)state;
    jury_open(&bill.jury);
    bill.contraction = jury_deploy(&bill.jury, RULES_CONTRACTION_CODE);
    bill.moves = jury_deploy(&bill.jury, RULES_MOVES_CODE);
    measure_products(&bill);
    measure_sums(&bill);
    measure_quantize(&bill);
    measure_moves(&bill);
    compare_with_table(&bill);
    documented(claim, "claim");
    documented(answer, "answer");

    uint64_t before = claim[0] + answer[0];

    assert_true(before + transaction_of(&bill, "contract, K = 768") < MOST_768);
    assert_true(before + transaction_of(&bill, "contract, K = 3072") < MOST_3072);
    for (size_t i = 0; i < bill.count; i++) {
        assert_true(before + bill.costs[i].figures[0] < MOST);
    }
    jury_close(&bill.jury);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_rule_costs_what_is_documented_and_a_conviction_what_it_may),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
