/*
 * Goal: a walk ends at the leftmost thing that the accused made differently from what the step
 * makes, within the rounds that the shapes promise, and no answer but a true one moves it.
 * Method: machines that lie in one random tensor of the trace (liar.h), in the state before the
 * step, or in the state after it alone, for each small model and a wide one whose tensors take
 * several answers; every hunt saved and loaded between any two answers; each answer flipped, cut
 * and lengthened; trees of 1 to 600 leaves against merkle_node(); the rounds of GPT-2 124M.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "proofs/hunt.h"
#include "proofs/sha256.h"
#include "tests/support/dispute.h"
#include "tests/support/test.h"

#define LIES_FULL  40000
#define LIES       600
#define LIES_WIDE  4
#define TREES_MAX  600
#define FLIPS_FULL 200000
#define FLIPS      4000

/* ---- walks ---------------------------------------------------------------- */

/* Saves the hunt and goes on with what was loaded. */
static void reload(struct hunt *hunt)
{
    struct teller *own = hunt->own;
    struct buffer bytes;
    struct buffer again;

    buffer_init(&bytes, HUNT_BYTES_MAX);
    buffer_init(&again, HUNT_BYTES_MAX);
    assert_int_equal(hunt_save(&bytes, hunt, NULL), STATUS_OK);
    hunt_close(hunt);
    assert_int_equal(hunt_load(hunt, own, bytes.data, bytes.size, NULL), STATUS_OK);
    assert_int_equal(hunt_save(&again, hunt, NULL), STATUS_OK);
    assert_int_equal(again.size, bytes.size);
    assert_memory_equal(again.data, bytes.data, bytes.size);
    buffer_release(&bytes);
    buffer_release(&again);
}

/* Asks and tells to the end; returns how many answers it took. */
static uint32_t walk(struct hunt *hunt, struct teller *accused, bool reloads)
{
    static uint8_t bytes[TELL_BYTES_MAX];
    struct digest known;
    uint32_t tells = 0;
    struct ask ask;

    while (hunt_ask(&ask, &known, hunt)) {
        uint8_t written[ASK_SIZE];
        struct ask read;
        size_t size;

        ask_write(written, &ask);
        assert_int_equal(ask_read(&read, written, sizeof(written)), STATUS_OK);
        assert_int_equal(teller_answer(bytes, &size, accused, &read, NULL), STATUS_OK);
        assert_int_equal(hunt_take(hunt, bytes, size, NULL), STATUS_OK);
        tells++;
        if (reloads) {
            reload(hunt);
        }
    }
    return tells;
}

/* ---- what a hunt that has ended knows ------------------------------------- */

static void check_items(const struct hunt *hunt, const struct teller *accused, uint32_t count)
{
    struct digest tree;

    hunt_trace_tree(&tree, hunt);
    /* The last ones are nearest the lie; of the others a few. */
    for (uint32_t item = 0; item < count; item += item + 8 < count ? 1 + item / 4 : 1) {
        struct merkle_path path;
        struct digest root;
        struct digest top;

        hunt_item(&root, &path, hunt, item);
        assert_true(digest_equal(&root, &accused->trace.items[item]));
        assert_int_equal(commit_item_check(&accused->trace.root, COMMIT_TRACE, 0, root.bytes,
                                           DIGEST_SIZE, &path),
                         VERDICT_VALID);
        merkle_leaf_hash(&top, root.bytes, DIGEST_SIZE);
        assert_int_equal(merkle_path_check(&path, &top, &tree), VERDICT_VALID);
    }
}

/* The path of a leaf, in the accused's tensor that differs (list NULL) or in one of its lists. */
static struct merkle_path path_of(const struct hunt *hunt, const enum ask_list *list,
                                  uint64_t count, uint64_t leaf)
{
    struct merkle_path path = {.leaf_index = leaf, .leaf_count = count};
    uint32_t level = 0;

    for (uint64_t last = count - 1; last > 0; last >>= 1, leaf >>= 1, level++) {
        if ((leaf & 1) == 1 || leaf < last) {
            struct digest *node = &path.siblings[path.sibling_count++];

            assert_true(list == NULL ? hunt_tensor_node(node, hunt, level, leaf ^ 1)
                                     : hunt_list_node(node, hunt, *list, level, leaf ^ 1));
        }
    }
    return path;
}

static void check_leaf(const struct hunt *hunt, const struct liar *liar)
{
    const struct tape *tape = hunt->own->tape;
    const struct tensor *tensor = &tape->tensors[trace_tensor_at(tape, hunt->item)];
    uint8_t header[COMMIT_TENSOR_HEADER_MAX];
    struct merkle_path path;
    size_t size = commit_tensor_header(header, COMMIT_TENSOR, tensor, &hunt->tensor.root);

    path = path_of(hunt, NULL, hunt->tensor.count, hunt->leaf);
    assert_int_equal(commit_leaf_check(&hunt->item_root, header, size, hunt->leaf_bytes, &path),
                     VERDICT_VALID);
    assert_int_equal(hunt->leaf, liar->changed / MERKLE_LEAF_SIZE);
}

static void hunt_lie(struct dispute *dispute, const struct lie *lie, bool reloads)
{
    const struct tape *tape = dispute->tape;
    uint64_t runs = dispute->own.runs;
    struct hunt_case accused;
    struct teller teller;
    struct liar liar;
    struct hunt hunt;

    liar_open(&liar, dispute_rewind(dispute), lie);
    assert_int_equal(teller_open(&teller, &liar.machine, NULL), STATUS_OK);
    accused = dispute_case(&teller, &dispute->own);
    assert_int_equal(hunt_open(&hunt, &dispute->own, &accused, NULL), STATUS_OK);
    assert_in_range(walk(&hunt, &teller, reloads), 1, ask_tells_max(tape));
    assert_int_equal(hunt.item, lie->item);
    assert_int_equal(hunt.end, lie->item < tape->state_count ? HUNT_FIRST_STATE : HUNT_ELEMENT);
    if (hunt.end == HUNT_ELEMENT) {
        check_leaf(&hunt, &liar);
    }
    check_items(&hunt, &teller, lie->item + 1);
    /* However many answers: one run to trace, and one for the tensor in question. */
    assert_in_range(teller.runs, 1, 2);
    assert_in_range(dispute->own.runs, runs, runs + 1);
    hunt_close(&hunt);
    teller_close(&teller);
    liar_close(&liar);
}

/* ---- the tests ------------------------------------------------------------ */

static void test_random_lies_are_found_where_they_are(void **state)
{
    uint64_t lies = test_share(LIES_FULL, LIES);
    uint64_t seed = 1;

    (void)state;
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        struct dispute dispute;

        dispute_open_kind(&dispute, (enum model_kind)kind);
        for (uint64_t i = 0; i < lies / MODEL_COUNT; i++) {
            struct lie lie = dispute_random_lie(dispute.tape, &seed);

            hunt_lie(&dispute, &lie, i % 4 == 0);
        }
        dispute_close(&dispute);
    }
}

static void test_lies_in_large_tensors_take_several_answers(void **state)
{
    struct dispute dispute;
    const struct tape *tape;
    uint64_t seed = 2;

    (void)state;
    dispute_open_hidden(&dispute, DISPUTE_WIDE);
    tape = dispute.tape;
    assert_int_equal(ask_tells_max(tape), 1 + 3);
    for (uint64_t i = 0, item = 0; i < LIES_WIDE; item++) {
        uint32_t at =
            tape->state_count + (uint32_t)(item * 7 % (trace_item_count(tape) - tape->state_count));
        const struct tensor *tensor = &tape->tensors[trace_tensor_at(tape, at)];
        struct lie lie = {at, test_random_below(&seed, tensor->count), LIE_ULP};

        if (ask_tensor_count(tensor) > 4096) {
            lie.element = i == 0 ? tensor->count - 1 : lie.element;
            hunt_lie(&dispute, &lie, i % 2 == 0);
            i++;
        }
    }
    dispute_close(&dispute);
}

static void test_every_tensor_of_a_small_trace_can_be_lied_about(void **state)
{
    struct dispute dispute;
    uint64_t seed = 3;

    (void)state;
    dispute_open_kind(&dispute, MODEL_MLP);
    for (uint32_t item = 0; item < trace_item_count(dispute.tape); item++) {
        struct lie lie = dispute_random_lie(dispute.tape, &seed);

        lie.item = item;
        lie.element = 0;
        hunt_lie(&dispute, &lie, true);
    }
    dispute_close(&dispute);
}

/* Who really trains from another state makes everything differ; the state is to the left of all. */
static void test_step_from_another_state_is_found_in_the_state(void **state)
{
    (void)state;
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        struct dispute dispute;
        struct hunt_case accused;
        struct machine *machine;
        const struct tape *tape;
        struct teller teller;
        struct hunt hunt;
        struct lie lie = {0, 0, LIE_ULP};
        uint64_t seed = 4;

        dispute_open_kind(&dispute, (enum model_kind)kind);
        tape = dispute.tape;
        machine = dispute_rewind(&dispute);
        for (uint32_t item = tape->state_count; item-- > tape->state_count / 2;) {
            uint32_t id = tape->states[item].before;
            uint8_t *bytes = malloc(commit_tensor_size(&tape->tensors[id]));

            memcpy(bytes, dispute.states[item], commit_tensor_size(&tape->tensors[id]));
            lie.element = test_random_below(&seed, tape->tensors[id].count);
            liar_lie(bytes, &tape->tensors[id], &lie);
            assert_int_equal(machine->backend->write(machine, id, bytes, NULL), STATUS_OK);
            free(bytes);
        }
        assert_int_equal(teller_open(&teller, machine, NULL), STATUS_OK);
        accused = dispute_case(&teller, &dispute.own);
        assert_int_equal(hunt_open(&hunt, &dispute.own, &accused, NULL), STATUS_OK);
        (void)walk(&hunt, &teller, false);
        assert_int_equal(hunt.end, HUNT_FIRST_STATE);
        assert_int_equal(hunt.item, tape->state_count / 2);
        check_items(&hunt, &teller, hunt.item + 1);
        hunt_close(&hunt);
        /* Who committed to that other state before the step cannot be hunted in this one. */
        accused.state_root = teller.trace.state_root;
        assert_int_equal(hunt_open(&hunt, &dispute.own, &accused, NULL), STATUS_REFUSED);
        hunt_close(&hunt);
        teller_close(&teller);
        dispute_close(&dispute);
    }
}

static void test_honest_accused_is_found_to_have_told_no_lie(void **state)
{
    (void)state;
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        struct dispute dispute;
        struct hunt_case accused;
        struct teller teller;
        struct hunt hunt;

        dispute_open_kind(&dispute, (enum model_kind)kind);
        assert_int_equal(teller_open(&teller, dispute_rewind(&dispute), NULL), STATUS_OK);
        accused = dispute_case(&teller, &dispute.own);
        assert_int_equal(hunt_open(&hunt, &dispute.own, &accused, NULL), STATUS_OK);
        assert_int_equal(walk(&hunt, &teller, false), 0);
        assert_int_equal(hunt.end, HUNT_NO_LIE);
        reload(&hunt);
        assert_int_equal(hunt.end, HUNT_NO_LIE);
        check_items(&hunt, &teller, teller.trace.item_count);
        hunt_close(&hunt);
        teller_close(&teller);
        dispute_close(&dispute);
    }
}

/* The trace is honest, and the state that was committed to after it has one tensor's root wrong. */
static void hunt_next_lie(struct dispute *dispute, struct teller *teller, uint32_t wrong)
{
    static const enum ask_list next_state = ASK_NEXT_STATE;
    static uint8_t bytes[TELL_BYTES_MAX];
    uint32_t count = teller->tape->state_count;
    struct hunt_case accused = dispute_case(teller, &dispute->own);
    struct merkle_path path;
    struct tell_tree tree;
    struct digest known;
    struct digest root;
    struct hunt hunt;
    struct ask ask;

    teller->next[wrong].bytes[wrong % DIGEST_SIZE] ^= 1;
    merkle_leaf_hash(&teller->next[count + wrong], teller->next[wrong].bytes, DIGEST_SIZE);
    commit_list_root(&accused.next_root, COMMIT_STATE, 0, teller->next, count);
    assert_int_equal(hunt_open(&hunt, &dispute->own, &accused, NULL), STATUS_OK);
    while (hunt_ask(&ask, &known, &hunt)) {
        assert_int_equal(ask.list, ASK_NEXT_STATE);
        assert_int_equal(teller_tree(&tree, teller, &ask, NULL), STATUS_OK);
        assert_int_equal(hunt_take(&hunt, bytes, tell_write(bytes, &ask, &tree), NULL), STATUS_OK);
        reload(&hunt);
    }
    assert_int_equal(hunt.end, HUNT_NEXT_STATE);
    assert_int_equal(hunt.item, wrong);
    root = hunt.item_root;
    path = path_of(&hunt, &next_state, hunt.items.count, hunt.item);
    assert_true(digest_equal(&root, &teller->next[wrong]));
    assert_int_equal(
        commit_item_check(&accused.next_root, COMMIT_STATE, 0, root.bytes, DIGEST_SIZE, &path),
        VERDICT_VALID);
    merkle_leaf_hash(&known, root.bytes, DIGEST_SIZE);
    assert_int_equal(merkle_path_check(&path, &known, &hunt.items.root), VERDICT_VALID);
    check_items(&hunt, teller, teller->trace.item_count);
    hunt_close(&hunt);
    /* It is nothing to an attestor, who answers for the trace alone. */
    accused.is_attestor = true;
    assert_int_equal(hunt_open(&hunt, &dispute->own, &accused, NULL), STATUS_OK);
    assert_int_equal(hunt.end, HUNT_NO_LIE);
    reload(&hunt);
    hunt_close(&hunt);
    teller->next[wrong] = teller->trace.items[teller->next_items[wrong]];
    merkle_leaf_hash(&teller->next[count + wrong], teller->next[wrong].bytes, DIGEST_SIZE);
}

static void test_next_state_that_no_trace_ends_in_is_found(void **state)
{
    (void)state;
    for (int kind = 0; kind < MODEL_COUNT; kind++) {
        struct dispute dispute;
        struct teller teller;

        dispute_open_kind(&dispute, (enum model_kind)kind);
        assert_int_equal(teller_open(&teller, dispute_rewind(&dispute), NULL), STATUS_OK);
        for (uint32_t wrong = 0; wrong < teller.tape->state_count; wrong += 1 + wrong % 5) {
            hunt_next_lie(&dispute, &teller, wrong);
        }
        teller_close(&teller);
        dispute_close(&dispute);
    }
}

/* ---- what cannot be told -------------------------------------------------- */

/* A trace root that is the hash of nothing, or of another number of items, is told by no bytes. */
static void test_roots_without_such_a_list_cannot_be_told(void **state)
{
    static uint8_t bytes[TELL_BYTES_MAX];
    struct dispute dispute;
    struct hunt_case accused;
    struct digest tree;
    struct hunt hunt;
    struct ask ask = {.kind = ASK_LIST};
    uint64_t seed = 5;
    size_t size;

    (void)state;
    dispute_open_kind(&dispute, MODEL_MLP);
    assert_int_equal(teller_answer(bytes, &size, &dispute.own, &ask, NULL), STATUS_OK);
    memcpy(tree.bytes, bytes, DIGEST_SIZE);
    for (uint32_t i = 0; i < 4; i++) {
        uint8_t header[COMMIT_LIST_HEADER_SIZE];

        accused = dispute_case(&dispute.own, &dispute.own);
        if (i == 0) {
            test_random_fill(&seed, accused.trace_root.bytes, DIGEST_SIZE);
        } else {
            commit_list_header(header, i == 3 ? COMMIT_STATE : COMMIT_TRACE, 0,
                               dispute.own.trace.item_count + (i == 1) - (i == 2), &tree);
            sha256(&accused.trace_root, header, sizeof(header));
        }
        assert_int_equal(hunt_open(&hunt, &dispute.own, &accused, NULL), STATUS_OK);
        assert_int_equal(hunt_take(&hunt, bytes, size, NULL), STATUS_BAD_FORMAT);
        assert_int_equal(hunt_take(&hunt, bytes, size + DIGEST_SIZE, NULL), STATUS_BAD_FORMAT);
        assert_int_equal(hunt.told_count, 0);
        hunt_close(&hunt);
    }
    dispute_close(&dispute);
}

/* One answer, changed in every way; the hunt must stay where it is. */
static void refuse_changes(struct hunt *hunt, const uint8_t *bytes, size_t size, uint64_t *seed,
                           uint64_t flips)
{
    static uint8_t changed[TELL_BYTES_MAX + 1];
    struct ask before;
    struct ask after;
    struct digest known;

    assert_true(hunt_ask(&before, &known, hunt));
    memset(changed, 0, sizeof(changed));
    memcpy(changed, bytes, size);
    for (uint64_t i = 0; i < flips; i++) {
        uint64_t bit = test_random_below(seed, size * 8);

        changed[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(hunt_take(hunt, changed, size, NULL), STATUS_BAD_FORMAT);
        changed[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t cut = 0; cut <= sizeof(changed); cut += cut < size + 40 ? 1 : 997) {
        if (cut != size && (cut % 37 == 0 || cut + 40 > size)) {
            assert_int_equal(hunt_take(hunt, changed, cut, NULL), STATUS_BAD_FORMAT);
        }
    }
    assert_true(hunt_ask(&after, &known, hunt));
    assert_memory_equal(&before, &after, sizeof(before));
}

static void test_changed_answers_are_refused(void **state)
{
    static uint8_t bytes[TELL_BYTES_MAX];
    uint64_t flips = test_share(FLIPS_FULL, FLIPS) / 8;
    uint64_t seed = 6;

    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        const struct tape *tape;
        struct dispute dispute;
        struct hunt_case accused;
        struct digest known;
        struct teller teller;
        struct liar liar;
        struct hunt hunt;
        struct lie lie = {0, 0, LIE_ULP};
        struct ask ask;

        if (wide == 1) {
            dispute_open_hidden(&dispute, DISPUTE_WIDE);
        } else {
            dispute_open_kind(&dispute, MODEL_GPT2);
        }
        tape = dispute.tape;
        for (lie.item = tape->state_count;
             ask_tensor_count(&tape->tensors[trace_tensor_at(tape, lie.item)]) <
             (wide == 1 ? 4097 : 10);
             lie.item++) {
        }
        liar_open(&liar, dispute_rewind(&dispute), &lie);
        assert_int_equal(teller_open(&teller, &liar.machine, NULL), STATUS_OK);
        accused = dispute_case(&teller, &dispute.own);
        assert_int_equal(hunt_open(&hunt, &dispute.own, &accused, NULL), STATUS_OK);
        while (hunt_ask(&ask, &known, &hunt)) {
            size_t size;

            assert_int_equal(teller_answer(bytes, &size, &teller, &ask, NULL), STATUS_OK);
            refuse_changes(&hunt, bytes, size, &seed, flips);
            assert_int_equal(hunt_take(&hunt, bytes, size, NULL), STATUS_OK);
        }
        assert_int_equal(hunt_take(&hunt, bytes, 0, NULL), STATUS_BAD_FORMAT);
        hunt_close(&hunt);
        teller_close(&teller);
        liar_close(&liar);
        dispute_close(&dispute);
    }
}

/* A root over a leaf that is not zero behind the tensor's end has no answer. */
static void test_leaves_with_bytes_behind_their_tensor_are_refused(void **state)
{
    static uint8_t bytes[2 * MERKLE_LEAF_SIZE];
    struct digest hashes[2];
    struct merkle_leaves leaves;
    struct tell_target target = {.count = 2, .last_size = 100};
    struct told told;

    (void)state;
    for (size_t at = 0; at < sizeof(bytes); at += 13) {
        memset(bytes, 0, sizeof(bytes));
        bytes[at] = 1;
        for (int i = 0; i < 2; i++) {
            merkle_leaf_hash(&hashes[i], bytes + (size_t)i * MERKLE_LEAF_SIZE, MERKLE_LEAF_SIZE);
        }
        merkle_leaves_init_hashes(&leaves, hashes, 2);
        merkle_root(&target.known, &leaves);
        assert_int_equal(tell_check(&told, &target, bytes, sizeof(bytes)),
                         at < MERKLE_LEAF_SIZE + 100 ? VERDICT_VALID : VERDICT_INVALID);
    }
}

static void test_broken_saved_hunts_are_refused(void **state)
{
    struct dispute dispute;
    struct hunt_case accused;
    struct teller teller;
    struct buffer bytes;
    struct liar liar;
    struct hunt hunt;
    struct lie lie = {0, 0, LIE_SIGN};
    uint64_t seed = 7;

    (void)state;
    dispute_open_kind(&dispute, MODEL_MLP);
    lie.item = dispute.tape->state_count + 5;
    liar_open(&liar, dispute_rewind(&dispute), &lie);
    assert_int_equal(teller_open(&teller, &liar.machine, NULL), STATUS_OK);
    accused = dispute_case(&teller, &dispute.own);
    assert_int_equal(hunt_open(&hunt, &dispute.own, &accused, NULL), STATUS_OK);
    (void)walk(&hunt, &teller, false);
    buffer_init(&bytes, HUNT_BYTES_MAX + 1);
    assert_int_equal(hunt_save(&bytes, &hunt, NULL), STATUS_OK);
    hunt_close(&hunt);
    for (uint32_t i = 0; i < 600; i++) {
        size_t at = i < 140 ? i : (size_t)test_random_below(&seed, bytes.size);
        uint8_t bit = (uint8_t)(1u << test_random_below(&seed, 8));

        bytes.data[at] ^= bit;
        /* The next root is not looked at where the traces differ, nor who is accused. */
        if (hunt_load(&hunt, &dispute.own, bytes.data, bytes.size, NULL) == STATUS_OK) {
            assert_in_range(at, 96, 128);
            assert_int_equal(hunt.item, lie.item);
        }
        hunt_close(&hunt);
        bytes.data[at] ^= bit;
        assert_int_equal(hunt_load(&hunt, &dispute.own, bytes.data,
                                   i < 300 ? i : bytes.size - 1 - i % 100, NULL),
                         STATUS_BAD_FORMAT);
        hunt_close(&hunt);
    }
    buffer_add_u8(&bytes, 0);
    assert_int_equal(hunt_load(&hunt, &dispute.own, bytes.data, bytes.size, NULL),
                     STATUS_BAD_FORMAT);
    hunt_close(&hunt);
    buffer_release(&bytes);
    teller_close(&teller);
    liar_close(&liar);
    dispute_close(&dispute);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_lies_are_found_where_they_are),
        cmocka_unit_test(test_lies_in_large_tensors_take_several_answers),
        cmocka_unit_test(test_every_tensor_of_a_small_trace_can_be_lied_about),
        cmocka_unit_test(test_step_from_another_state_is_found_in_the_state),
        cmocka_unit_test(test_honest_accused_is_found_to_have_told_no_lie),
        cmocka_unit_test(test_next_state_that_no_trace_ends_in_is_found),
        cmocka_unit_test(test_roots_without_such_a_list_cannot_be_told),
        cmocka_unit_test(test_changed_answers_are_refused),
        cmocka_unit_test(test_leaves_with_bytes_behind_their_tensor_are_refused),
        cmocka_unit_test(test_broken_saved_hunts_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
