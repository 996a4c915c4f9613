/*
 * Goal: the contracts of rules give the bits of the C rules, and refuse evidence that is not whole.
 * Method: random operations with hard shapes and hostile elements
 * (tests/support/dispute/shown_random.h), each with the leaves that the C rule reads, many to a
 * call; all parts of sums and of peaks; a leaf that is left out; bytes that are cut, go on, or are
 * changed.
 */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "chain/codec/abi.h"
#include "engine/ops/contraction.h"
#include "tests/support/dispute/shown_random.h"
#include "tests/support/game/jury.h"
#include "tests/support/gas/contract_call.h"

enum {
    FULL_COUNT = 10000, /* elements of each kind, under make soak */
    SHARE_COUNT = 800,
    ELEMENTS_OF_A_CASE = 8,
    BATCH = 64,
    EVIDENCE_MAX = 1 << 21,
    HOSTILE_GAS_MAX = 3000000,
    LEAVES_SHOWN = 4,
};

struct rules {
    struct jury jury;
    struct jury_rules contracts;
};

static void open_rules(struct rules *rules)
{
    jury_open(&rules->jury);
    jury_deploy_rules(&rules->jury, &rules->contracts);
}

/* ---- every rule ----------------------------------------------------------- */

struct expectation {
    struct shown_target target;
    uint32_t bits;
};

static void compare(struct rules *rules, enum op_kind kind, const struct expectation *expected,
                    size_t count)
{
    struct jury_answer *answers = jury_hear(&rules->jury, jury_rules_of(&rules->contracts, kind));

    for (size_t i = 0; i < count; i++) {
        if (answers[i].refused || answers[i].value != expected[i].bits) {
            fail_msg("%s, output %u, element %llu: %08x, the contract %s %08llx",
                     op_kind_name(kind), expected[i].target.output,
                     (unsigned long long)expected[i].target.element, expected[i].bits,
                     answers[i].refused ? "refuses with" : "says",
                     (unsigned long long)answers[i].value);
        }
    }
    free(answers);
}

static void compare_kind(struct rules *rules, enum op_kind kind, uint64_t *seed, uint64_t count)
{
    struct expectation expected[BATCH];
    size_t waiting = 0;

    for (uint64_t done = 0; done < count; done += ELEMENTS_OF_A_CASE) {
        struct shown_case shown;

        shown_random(&shown, seed, kind);
        for (int i = 0; i < ELEMENTS_OF_A_CASE; i++) {
            struct shown_target target = shown_random_target(&shown, seed);

            jury_add_case(&rules->jury, &shown, &target);
            expected[waiting++] = (struct expectation){
                .target = target,
                .bits = shown_case_rule(&shown, target.output, target.element),
            };
        }
        shown_case_release(&shown);
        if (waiting == BATCH || rules->jury.cases.size > JURY_BYTES_MAX) {
            compare(rules, kind, expected, waiting);
            waiting = 0;
        }
    }
    compare(rules, kind, expected, waiting);
}

static void test_every_rule_gives_the_bits_of_the_c_rule(void **state)
{
    struct rules rules;
    uint64_t seed = 1;

    (void)state;
    open_rules(&rules);
    for (size_t i = 0; i < SHOWN_RANDOM_KINDS; i++) {
        compare_kind(&rules, shown_random_kinds[i], &seed, test_share(FULL_COUNT, SHARE_COUNT));
    }
    jury_close(&rules.jury);
}

/* ---- parts of sums and of peaks -------------------------------------------- */

static void add_target(struct rules *rules, const struct shown_case *shown,
                       const struct shown_target *target)
{
    struct buffer bytes;

    buffer_init(&bytes, EVIDENCE_MAX);
    shown_case_write(&bytes, shown, target, false, 0);
    jury_add(&rules->jury, bytes.data, bytes.size);
    buffer_release(&bytes);
}

static void check_part(const struct jury_answer *answer, const struct rule_part *part,
                       enum op_kind kind, uint32_t number)
{
    bool same = !answer->refused && answer->settled == part->settled;

    if (same && part->settled) {
        same = answer->value == part->bits;
    } else if (same) {
        same = answer->value == (uint64_t)part->value && answer->unfit == part->unfit;
    }
    if (!same) {
        fail_msg("%s: part %u %s %08llx", op_kind_name(kind), number,
                 answer->refused ? "is refused with" : "gives", (unsigned long long)answer->value);
    }
}

static void test_parts_of_every_axis_are_those_of_the_c_rule(void **state)
{
    static const enum op_kind kinds[6] = {
        OP_CONTRACT,        OP_CONTRACT_ONES,        OP_CONTRACT_ONEHOT,
        OP_CONTRACT_CHOSEN, OP_CONTRACT_CHOSEN_ROWS, OP_QUANTIZE};
    struct rules rules;
    uint64_t seed = 2;
    uint32_t many = 0;
    const uint64_t count = test_share(2000, 100);

    (void)state;
    open_rules(&rules);
    for (uint64_t i = 0; i < count; i++) {
        struct shown_case shown;
        struct shown_target target;
        struct jury_answer *answers;
        struct rule_axis axis;

        shown_random(&shown, &seed, kinds[i % 6]);
        target = shown_random_target(&shown, &seed);
        if (shown.op.kind == OP_QUANTIZE) {
            target.output = (uint32_t)test_random_below(&seed, 2);
            target.element = test_random_below(
                &seed, shown.operands[shown.op.input_count + target.output].count);
        }
        axis = shown_case_axis(&shown, &target);
        many += axis.parts > 1;
        target.is_part = true;
        if (i % 2 == 1) { /* of a range of it */
            target.from = test_random_below(&seed, axis.length);
            target.length = 1 + test_random_below(&seed, axis.length - target.from);
            axis = shown_case_axis(&shown, &target);
        }
        target.beside = i % 3 == 0 ? (int32_t)test_random_below(&seed, 100) - 50 : 0;
        for (target.part = 0; target.part < axis.parts; target.part++) {
            add_target(&rules, &shown, &target);
        }
        answers = jury_hear(&rules.jury, jury_rules_of(&rules.contracts, OP_CONTRACT));
        for (target.part = 0; target.part < axis.parts; target.part++) {
            struct rule_part part = shown_case_part(&shown, &target);

            check_part(&answers[target.part], &part, shown.op.kind, target.part);
        }
        free(answers);
        shown_case_release(&shown);
    }
    assert_true(many >= (count < 100 ? 1 : 10));
    jury_close(&rules.jury);
}

/* Makes the part that evidence of shown's first element names another one. */
static void add_numbered(struct rules *rules, const struct buffer *bytes, uint32_t number)
{
    size_t descriptor = (size_t)bytes->data[14] << 8 | bytes->data[15];

    endian_store_be32(bytes->data + 16 + descriptor + 32 + 9, number);
    jury_add(&rules->jury, bytes->data, bytes->size);
}

/* Evidence of a range of an axis of 1,040 elements. */
static void add_ranged(struct rules *rules, const struct shown_case *shown, uint64_t from,
                       uint64_t length, uint8_t size)
{
    const struct shown_target target = {.is_part = true, .length = 1040};
    struct buffer bytes;
    uint8_t *range;

    buffer_init(&bytes, EVIDENCE_MAX);
    shown_case_write(&bytes, shown, &target, false, 0);
    range = bytes.data + 16 + ((size_t)bytes.data[14] << 8 | bytes.data[15]) + 32 + 9 + 4;
    range[0] = size;
    endian_store_be64(range + 1, from);
    endian_store_be64(range + 9, length);
    jury_add(&rules->jury, bytes.data, bytes.size);
    buffer_release(&bytes);
}

/* Sums of rows of k integers, in blocks of 16. */
static void shown_ones(struct shown_case *shown, int64_t rows, int64_t k)
{
    shown_case_init(shown, OP_CONTRACT_ONES, 2, 1);
    memcpy(shown->op.attributes, (int64_t[]){rows, k, 14, 16}, 4 * sizeof(int64_t));
    shown->op.attribute_count = ONES_ATTRIBUTES;
    (void)shown_case_tensor(shown, 0, DTYPE_I16, (uint64_t)(rows * k));
    (void)shown_case_tensor(shown, 1, DTYPE_I16, (uint64_t)(rows * ((k + 15) / 16)));
    (void)shown_case_tensor(shown, 2, DTYPE_F32, (uint64_t)rows);
    shown_case_check(shown);
}

static void test_ranges_that_are_not_there_are_refused(void **state)
{
    static const struct {
        uint64_t from;
        uint64_t length;
    } table[] = {{0, 0},
                 {1, 1040},
                 {1040, 1},
                 {1, UINT64_MAX},
                 {UINT64_MAX, 1},
                 {UINT64_MAX, 0},
                 {UINT64_MAX, UINT64_MAX},
                 {0, 1041},
                 {1039, 1},
                 {0, 1040}};
    const size_t count = sizeof(table) / sizeof(table[0]);
    struct rules rules;
    struct shown_case shown;
    struct jury_answer *answers;

    (void)state;
    open_rules(&rules);
    shown_ones(&shown, 2, 1040);
    for (size_t i = 0; i < count; i++) {
        add_ranged(&rules, &shown, table[i].from, table[i].length, 28);
    }
    add_ranged(&rules, &shown, 0, 1040, 27);
    answers = jury_hear(&rules.jury, jury_rules_of(&rules.contracts, OP_CONTRACT));
    for (size_t i = 0; i <= count; i++) {
        /* The last one is sound, but one byte of it is not said to be the range's. Of that before
         * the last the leaf is not shown. */
        assert_int_equal(answers[i].refused, i + 1 != count);
    }
    for (size_t i = 0; i + 2 < count; i++) {
        assert_int_equal(answers[i].value, abi_selector("BadTarget(uint256,uint256,uint256)"));
    }
    free(answers);
    shown_case_release(&shown);
    jury_close(&rules.jury);
}

static void test_parts_that_are_not_there_are_refused(void **state)
{
    static const uint32_t numbers[] = {2, 3, 1 << 20, UINT32_MAX, 0};
    const size_t count = sizeof(numbers) / sizeof(numbers[0]);
    struct shown_target target = {.is_part = true};
    struct rules rules;
    struct shown_case shown;
    struct buffer bytes;
    struct jury_answer *answers;

    (void)state;
    open_rules(&rules);
    shown_ones(&shown, 2, 1040);
    buffer_init(&bytes, EVIDENCE_MAX);
    shown_case_write(&bytes, &shown, &target, false, 0);
    for (size_t i = 0; i < count; i++) {
        add_numbered(&rules, &bytes, numbers[i]);
    }
    answers = jury_hear(&rules.jury, jury_rules_of(&rules.contracts, OP_CONTRACT));
    for (size_t i = 0; i < count; i++) {
        /* The last one is sound, and shows that the others could have been. */
        assert_int_equal(answers[i].refused, i + 1 < count);
        if (i + 1 < count) {
            assert_int_equal(answers[i].value, abi_selector("BadTarget(uint256,uint256,uint256)"));
        }
    }
    free(answers);
    buffer_release(&bytes);
    shown_case_release(&shown);
    jury_close(&rules.jury);
}

/* ---- evidence that is not what it should be --------------------------------- */

static void write_random(struct buffer *bytes, uint64_t *seed, enum op_kind kind)
{
    struct shown_case shown;
    struct shown_target target;

    shown_random(&shown, seed, kind);
    target = shown_random_target(&shown, seed);
    buffer_clear(bytes);
    shown_case_write(bytes, &shown, &target, false, (uint32_t)test_random_below(seed, 3));
    shown_case_release(&shown);
}

static void test_evidence_that_is_cut_or_goes_on_is_refused(void **state)
{
    struct rules rules;
    struct buffer bytes;
    uint64_t seed = 3;

    (void)state;
    open_rules(&rules);
    buffer_init(&bytes, EVIDENCE_MAX);
    for (size_t i = 0; i < SHOWN_RANDOM_KINDS; i++) {
        size_t count = 0;

        write_random(&bytes, &seed, shown_random_kinds[i]);
        for (size_t size = 0; size < bytes.size && count < 200; size += 1 + size / 8) {
            jury_add(&rules.jury, bytes.data, size);
            jury_add(&rules.jury, bytes.data, bytes.size - 1 - size);
            count += 2;
        }
        buffer_add_u8(&bytes, 0);
        jury_add(&rules.jury, bytes.data, bytes.size);
        jury_add(&rules.jury, bytes.data, bytes.size - 1);
        count += 2;

        struct jury_answer *answers =
            jury_hear(&rules.jury, jury_rules_of(&rules.contracts, shown_random_kinds[i]));

        for (size_t at = 0; at < count; at++) {
            assert_int_equal(answers[at].refused, at + 1 < count);
        }
        free(answers);
    }
    buffer_release(&bytes);
    jury_close(&rules.jury);
}

/* Nothing says what such evidence should give; but it must not cost more than a block has. */
static void test_evidence_with_changed_bytes_costs_no_more_than_it_may(void **state)
{
    struct rules rules;
    struct buffer bytes;
    uint64_t seed = 4;

    (void)state;
    open_rules(&rules);
    buffer_init(&bytes, EVIDENCE_MAX);
    for (uint64_t i = 0; i < test_share(2000, 40); i++) {
        enum op_kind kind = shown_random_kinds[i % SHOWN_RANDOM_KINDS];
        size_t count = 0;

        write_random(&bytes, &seed, kind);
        for (; count < 32 && rules.jury.cases.size < JURY_BYTES_MAX; count++) {
            /* Most of what matters stands before the leaves. */
            size_t range = bytes.size < 400 || count % 4 == 0 ? bytes.size : 400;
            size_t at = (size_t)test_random_below(&seed, range);
            uint8_t before = bytes.data[at];

            bytes.data[at] =
                (uint8_t)(count % 2 == 0 ? before ^ 1u << (count / 2 % 8) : test_random(&seed));
            jury_add(&rules.jury, bytes.data, bytes.size);
            bytes.data[at] = before;
        }
        struct jury_answer *answers = jury_hear(&rules.jury, jury_rules_of(&rules.contracts, kind));

        for (size_t at = 0; at < count; at++) {
            assert_true(answers[at].gas < HOSTILE_GAS_MAX);
        }
        free(answers);
    }
    buffer_release(&bytes);
    jury_close(&rules.jury);
}

/* Adds the evidence without one of the leaves of its first operand. */
static void add_without(struct rules *rules, const struct buffer *bytes, size_t leaf)
{
    enum { INDEXES = 330, LEAVES = INDEXES + 8 * LEAVES_SHOWN + 2 };
    struct buffer cut;

    buffer_init(&cut, EVIDENCE_MAX);
    buffer_add(&cut, bytes->data, INDEXES - 2);
    buffer_add_u16(&cut, LEAVES_SHOWN - 1);
    buffer_add(&cut, bytes->data + INDEXES, 8 * leaf);
    buffer_add(&cut, bytes->data + INDEXES + 8 * (leaf + 1),
               LEAVES + 1024 * leaf - INDEXES - 8 * (leaf + 1));
    buffer_add(&cut, bytes->data + LEAVES + 1024 * (leaf + 1),
               bytes->size - LEAVES - 1024 * (leaf + 1));
    assert_int_equal(cut.size, bytes->size - 8 - 1024);
    jury_add(&rules->jury, cut.data, cut.size);
    buffer_release(&cut);
}

static void test_a_leaf_that_is_not_shown_is_missed(void **state)
{
    struct rules rules;
    struct shown_case shown;
    struct buffer bytes;
    struct jury_answer *answers;
    struct shown_target target = {.element = 3};

    (void)state;
    open_rules(&rules);
    buffer_init(&bytes, EVIDENCE_MAX);
    shown_ones(&shown, 8, 1500); /* leaves 8 to 11 hold the row */
    shown_case_write(&bytes, &shown, &target, false, 0);
    jury_add(&rules.jury, bytes.data, bytes.size);
    for (size_t leaf = 0; leaf < LEAVES_SHOWN; leaf++) {
        add_without(&rules, &bytes, leaf);
    }
    answers = jury_hear(&rules.jury, jury_rules_of(&rules.contracts, OP_CONTRACT));
    assert_false(answers[0].refused);
    for (size_t i = 1; i <= LEAVES_SHOWN; i++) {
        assert_true(answers[i].refused);
        assert_int_equal(answers[i].value, abi_selector("Missing(uint256,uint256)"));
    }
    free(answers);
    buffer_release(&bytes);
    shown_case_release(&shown);
    jury_close(&rules.jury);
}

/* ---- Philox ----------------------------------------------------------------- */

/* Random123 v1.14.0, tests/kat_vectors, the lines "philox4x32 10": words, first one lowest. */
static void test_philox_gives_the_published_answers(void **state)
{
    static const uint32_t vectors[3][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d,
         0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09,
         0x94fdcceb, 0x5001e420, 0x24126ea1},
    };
    struct jury jury;
    struct contract_call call;
    uint8_t *result;
    size_t size;

    (void)state;
    jury_open(&jury);
    contract_call_init(&call, "philox(uint256[])");
    contract_call_word(&call, 32);
    contract_call_word(&call, 6);
    for (int i = 0; i < 3; i++) {
        for (int half = 0; half < 2; half++) {
            contract_call_word(&call, 0);
            for (int word = 0; word < (half == 0 ? 4 : 2); word++) {
                for (int byte = 0; byte < 4; byte++) {
                    call.data[call.size - 1 - 4 * word - byte] =
                        (uint8_t)(vectors[i][4 * half + word] >> (8 * byte));
                }
            }
        }
    }
    result = contract_call_make(jury.rpc, &size, &jury.jury, &call);
    assert_int_equal(size, 5 * 32);
    for (int i = 0; i < 3; i++) {
        for (int word = 0; word < 4; word++) {
            const uint8_t *at = result + (size_t)(3 + i) * 32 - 4 * (word + 1);

            assert_int_equal((uint32_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3],
                             vectors[i][6 + word]);
        }
    }
    free(result);
    contract_call_release(&call);
    jury_close(&jury);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_rule_gives_the_bits_of_the_c_rule),
        cmocka_unit_test(test_parts_of_every_axis_are_those_of_the_c_rule),
        cmocka_unit_test(test_parts_that_are_not_there_are_refused),
        cmocka_unit_test(test_ranges_that_are_not_there_are_refused),
        cmocka_unit_test(test_evidence_that_is_cut_or_goes_on_is_refused),
        cmocka_unit_test(test_evidence_with_changed_bytes_costs_no_more_than_it_may),
        cmocka_unit_test(test_a_leaf_that_is_not_shown_is_missed),
        cmocka_unit_test(test_philox_gives_the_published_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
