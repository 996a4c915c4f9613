/*
 * Goal: the contracts of rules give the bits of the C rules, and refuse evidence that is not whole.
 * Method: random operations with hard shapes and hostile elements (tests/support/shown_random.h),
 * each with the leaves that the C rule reads, many to a call; sums in parts against whole sums; a
 * leaf that is left out; bytes that are cut, go on, or are changed.
 */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include "chain/abi.h"
#include "chain/rules_code.h"
#include "engine/contraction.h"
#include "tests/support/contract_call.h"
#include "tests/support/jury.h"
#include "tests/support/shown_random.h"

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
    struct address contraction;
    struct address moves;
};

static void open_rules(struct rules *rules)
{
    jury_open(&rules->jury);
    rules->contraction = jury_deploy(&rules->jury, RULES_CONTRACTION_CODE);
    rules->moves = jury_deploy(&rules->jury, RULES_MOVES_CODE);
}

static const struct address *contract_for(const struct rules *rules, enum op_kind kind)
{
    return kind >= OP_QUANTIZE && kind <= OP_CONTRACT_ONEHOT ? &rules->contraction : &rules->moves;
}

/* ---- every rule ----------------------------------------------------------- */

struct expectation {
    struct shown_target target;
    uint32_t bits;
};

static void compare(struct rules *rules, enum op_kind kind, const struct expectation *expected,
                    size_t count)
{
    struct jury_answer *answers = jury_hear(&rules->jury, contract_for(rules, kind));

    for (size_t i = 0; i < count; i++) {
        if (answers[i].refused || !answers[i].done || answers[i].value != expected[i].bits) {
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

/* ---- sums in parts -------------------------------------------------------- */

/* Adds the evidence of [from, to); *bytes is kept for the next. */
static void add_part(struct rules *rules, const struct shown_case *shown,
                     struct shown_target target, uint32_t from, uint32_t to)
{
    struct buffer bytes;

    target.from = from;
    target.to = to;
    buffer_init(&bytes, EVIDENCE_MAX);
    shown_case_write(&bytes, shown, &target, false, 0);
    jury_add(&rules->jury, bytes.data, bytes.size, true);
    buffer_release(&bytes);
}

/* Cuts [0, end) at random multiples of piece; returns how many parts there are. */
static size_t add_parts(struct rules *rules, const struct shown_case *shown,
                        const struct shown_target *target, uint64_t *seed, uint32_t end,
                        uint32_t piece)
{
    size_t count = 0;

    for (uint32_t from = 0; from < end; count++) {
        uint64_t pieces = 1 + test_random_below(seed, 1 + end / piece / 3);
        uint32_t to = end - from > pieces * piece ? from + (uint32_t)pieces * piece : end;

        add_part(rules, shown, *target, from, to);
        from = to;
    }
    return count;
}

static void test_sums_and_peaks_in_parts_are_those_of_the_whole(void **state)
{
    static const enum op_kind kinds[4] = {OP_CONTRACT, OP_CONTRACT_ONES, OP_CONTRACT_ONEHOT,
                                          OP_QUANTIZE};
    struct rules rules;
    uint64_t seed = 2;

    (void)state;
    open_rules(&rules);
    for (uint64_t i = 0; i < test_share(2000, 60); i++) {
        struct shown_case shown;

        shown_random(&shown, &seed, kinds[i % 4]);

        struct shown_target target = shown_random_target(&shown, &seed);
        struct contraction_shape shape = contraction_shape_of(&shown.op);
        uint32_t end = (uint32_t)shape.k;
        uint32_t piece = (uint32_t)shape.piece;

        if (shown.op.kind == OP_QUANTIZE) {
            int64_t start;

            target.output = 0;
            target.element = test_random_below(&seed, shown.operands[1].count);
            start = (int64_t)(target.element % (uint64_t)shape.pieces) * shape.piece;
            end = (uint32_t)(shape.k - start < shape.piece ? shape.k - start : shape.piece);
            piece = 1;
        }
        size_t count = add_parts(&rules, &shown, &target, &seed, end, piece);
        uint32_t bits = shown_case_rule(&shown, target.output, target.element);
        struct jury_answer *answers = jury_hear(&rules.jury, &rules.contraction);

        for (size_t part = 0; part < count; part++) {
            if (answers[part].refused || answers[part].done != (part + 1 == count)) {
                fail_msg("%s: part %zu of %zu %s %08llx", op_kind_name(shown.op.kind), part, count,
                         answers[part].refused ? "is refused with" : "gives",
                         (unsigned long long)answers[part].value);
            }
        }
        assert_int_equal(answers[count - 1].value, bits);
        free(answers);
        shown_case_release(&shown);
    }
    jury_close(&rules.jury);
}

static void test_parts_that_are_not_cut_at_pieces_are_refused(void **state)
{
    struct rules rules;
    struct shown_case shown;
    struct jury_answer *answers;
    static const uint32_t cuts[][2] = {{0, 17}, {1, 16},  {16, 16}, {32, 16}, {0, 0},
                                       {0, 81}, {80, 96}, {16, 33}, {16, 80}};
    const size_t count = sizeof(cuts) / sizeof(cuts[0]);

    (void)state;
    open_rules(&rules);
    shown_case_init(&shown, OP_CONTRACT_ONES, 2, 1);
    memcpy(shown.op.attributes, (int64_t[]){2, 80, 14, 16}, 4 * sizeof(int64_t));
    shown.op.attribute_count = ONES_ATTRIBUTES;
    (void)shown_case_tensor(&shown, 0, DTYPE_I16, 160);
    (void)shown_case_tensor(&shown, 1, DTYPE_I16, 10);
    (void)shown_case_tensor(&shown, 2, DTYPE_F32, 2);
    shown_case_check(&shown);
    for (size_t i = 0; i < count; i++) {
        struct shown_target target = {0};

        add_part(&rules, &shown, target, cuts[i][0], cuts[i][1]);
    }
    answers = jury_hear(&rules.jury, &rules.contraction);
    for (size_t i = 0; i < count; i++) {
        /* The last one is sound, and shows that the others could have been. */
        assert_int_equal(answers[i].refused, i + 1 < count);
        if (i + 1 < count) {
            assert_int_equal(answers[i].value,
                             abi_selector("BadTarget(uint256,uint256,uint256,uint256)"));
        }
    }
    free(answers);
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
            jury_add(&rules.jury, bytes.data, size, false);
            jury_add(&rules.jury, bytes.data, bytes.size - 1 - size, false);
            count += 2;
        }
        buffer_add_u8(&bytes, 0);
        jury_add(&rules.jury, bytes.data, bytes.size, false);
        jury_add(&rules.jury, bytes.data, bytes.size - 1, false);
        count += 2;

        struct jury_answer *answers =
            jury_hear(&rules.jury, contract_for(&rules, shown_random_kinds[i]));

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
            jury_add(&rules.jury, bytes.data, bytes.size, false);
            bytes.data[at] = before;
        }
        struct jury_answer *answers = jury_hear(&rules.jury, contract_for(&rules, kind));

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
    enum { INDEXES = 338, LEAVES = INDEXES + 8 * LEAVES_SHOWN + 2 };
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
    jury_add(&rules->jury, cut.data, cut.size, false);
    buffer_release(&cut);
}

static void test_a_leaf_that_is_not_shown_is_missed(void **state)
{
    struct rules rules;
    struct shown_case shown;
    struct buffer bytes;
    struct jury_answer *answers;
    struct shown_target target = {.element = 3, .to = 1500};

    (void)state;
    open_rules(&rules);
    buffer_init(&bytes, EVIDENCE_MAX);
    shown_case_init(&shown, OP_CONTRACT_ONES, 2, 1);
    memcpy(shown.op.attributes, (int64_t[]){8, 1500, 14, 16}, 4 * sizeof(int64_t));
    shown.op.attribute_count = ONES_ATTRIBUTES;
    (void)shown_case_tensor(&shown, 0, DTYPE_I16, 8 * 1500); /* leaves 8 to 11 hold the row */
    (void)shown_case_tensor(&shown, 1, DTYPE_I16, 8 * 94);
    (void)shown_case_tensor(&shown, 2, DTYPE_F32, 8);
    shown_case_check(&shown);
    shown_case_write(&bytes, &shown, &target, false, 0);
    jury_add(&rules.jury, bytes.data, bytes.size, false);
    for (size_t leaf = 0; leaf < LEAVES_SHOWN; leaf++) {
        add_without(&rules, &bytes, leaf);
    }
    answers = jury_hear(&rules.jury, &rules.contraction);
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
        cmocka_unit_test(test_sums_and_peaks_in_parts_are_those_of_the_whole),
        cmocka_unit_test(test_parts_that_are_not_cut_at_pieces_are_refused),
        cmocka_unit_test(test_evidence_that_is_cut_or_goes_on_is_refused),
        cmocka_unit_test(test_evidence_with_changed_bytes_costs_no_more_than_it_may),
        cmocka_unit_test(test_a_leaf_that_is_not_shown_is_missed),
        cmocka_unit_test(test_philox_gives_the_published_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
