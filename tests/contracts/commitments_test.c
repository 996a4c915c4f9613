/*
 * Goal: chain/contracts/Commitments.sol finds the roots that proofs/hash/merkle.c finds, and
 * accepts no proof that is changed in any bit. Method: trees of every size from 1 to 300 leaves;
 * paths from each level; proofs of many leaves at random; frontiers; headers. Every bit of some
 * proofs is turned around, one at a time, inside the contract of the test.
 */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include "chain/codec/keccak.h"
#include "proofs/hash/merkle.h"
#include "proofs/hash/sha256.h"
#include "tests/support/game/jury.h"
#include "tests/support/gas/contract_call.h"
#include "tests/support/proofs/merkle_multi.h"

enum {
    SIZE_MOST = 300,
    CASES_MAX = 4096,
    CALL_BYTES = 1 << 19,
    PROOF_MAX = 1 << 20,
    LABEL_SIZE = 71,
    WORD = 32,
};

enum prove_kind { PROVE_LEAVES, PROVE_PATH, PROVE_FOLD, PROVE_OPERANDS };
enum fold_kind { FOLD_LIST, FOLD_TENSOR, FOLD_HASHES, FOLD_ITEMS, FOLD_LEAVES };

/* Cases for Jury.prove(), and the roots that they must give. */
struct proofs {
    struct jury jury;
    struct digest expected[CASES_MAX];
    uint8_t *bytes; /* of the tree's leaves */
    uint64_t seed;
};

static void open_proofs(struct proofs *proofs, uint64_t seed)
{
    memset(proofs, 0, sizeof(*proofs));
    jury_open(&proofs->jury);
    proofs->seed = seed;
    proofs->bytes = malloc(SIZE_MOST * MERKLE_LEAF_SIZE);
    assert_non_null(proofs->bytes);
    test_random_fill(&proofs->seed, proofs->bytes, SIZE_MOST * MERKLE_LEAF_SIZE);
}

static void close_proofs(struct proofs *proofs)
{
    free(proofs->bytes);
    jury_close(&proofs->jury);
}

/* Asks for all cases so far; each must give its root. */
static void check_proofs(struct proofs *proofs)
{
    struct contract_call call;
    uint8_t *result;
    size_t size;

    contract_call_init(&call, "prove(bytes)");
    contract_call_word(&call, WORD);
    contract_call_bytes(&call, proofs->jury.cases.data, proofs->jury.cases.size);
    result = contract_call_make(proofs->jury.rpc, &size, &proofs->jury.jury, &call);
    contract_call_release(&call);
    assert_int_equal(size, (2 + proofs->jury.count) * WORD);
    for (size_t i = 0; i < proofs->jury.count; i++) {
        assert_memory_equal(result + (2 + i) * WORD, &proofs->expected[i], WORD);
    }
    free(result);
    buffer_clear(&proofs->jury.cases);
    proofs->jury.count = 0;
}

/* NULL: it must be refused. */
static void add_proof(struct proofs *proofs, enum prove_kind kind, const struct buffer *argument,
                      const struct digest *root)
{
    static const struct digest refused = {{0}};

    assert_int_equal(argument->status, STATUS_OK);
    proofs->expected[proofs->jury.count++] = root == NULL ? refused : *root;
    buffer_add_u32(&proofs->jury.cases, (uint32_t)kind << 24 | (uint32_t)argument->size);
    buffer_add(&proofs->jury.cases, argument->data, argument->size);
    assert_int_equal(proofs->jury.cases.status, STATUS_OK);
    if (proofs->jury.count == CASES_MAX || proofs->jury.cases.size > CALL_BYTES) {
        check_proofs(proofs);
    }
}

/* How many of the bits from..to of an argument can be turned around without a change of root? */
static uint64_t flips_accepted(struct proofs *proofs, enum prove_kind kind,
                               const struct buffer *argument, size_t from, size_t to,
                               const struct digest *root)
{
    struct contract_call call;
    uint8_t *result;
    uint64_t accepted;
    size_t size;

    contract_call_init(&call, "flip(uint256,bytes,uint256,uint256,bytes32)");
    contract_call_word(&call, kind);
    contract_call_word(&call, 5 * WORD);
    contract_call_word(&call, 8 * from);
    contract_call_word(&call, 8 * to);
    contract_call_word(&call, 0);
    memcpy(call.data + call.size - WORD, root, WORD);
    contract_call_bytes(&call, argument->data, argument->size);
    result = contract_call_make(proofs->jury.rpc, &size, &proofs->jury.jury, &call);
    contract_call_release(&call);
    accepted = contract_call_u64(result);
    free(result);
    return accepted;
}

static void leaves_of(struct merkle_leaves *leaves, struct proofs *proofs, uint64_t count)
{
    merkle_leaves_init_bytes(leaves, proofs->bytes, count * MERKLE_LEAF_SIZE);
    leaves->threads = 1;
}

/* ---- paths ---------------------------------------------------------------- */

static void write_path(struct buffer *argument, const struct merkle_path *path,
                       const struct digest *node)
{
    buffer_clear(argument);
    buffer_add_u64(argument, path->leaf_index);
    buffer_add_u64(argument, path->leaf_count);
    buffer_add(argument, node, sizeof(*node));
    buffer_add(argument, path->siblings, path->sibling_count * sizeof(struct digest));
}

static void hash_nodes(struct digest *nodes, const struct merkle_leaves *leaves, uint32_t level)
{
    for (uint64_t i = 0; i << level < leaves->count; i++) {
        merkle_node(&nodes[i], leaves, level, i);
    }
}

static void test_a_path_leads_to_the_root_that_c_finds(void **state)
{
    struct proofs proofs;
    struct buffer argument;
    struct digest nodes[SIZE_MOST];

    (void)state;
    open_proofs(&proofs, 1);
    buffer_init(&argument, PROOF_MAX);
    for (uint64_t count = 1; count <= SIZE_MOST; count++) {
        struct merkle_leaves leaves;
        struct merkle_leaves hashes;
        struct merkle_path path;
        struct digest root;

        leaves_of(&leaves, &proofs, count);
        hash_nodes(nodes, &leaves, 0);
        merkle_leaves_init_hashes(&hashes, nodes, count);
        merkle_root(&root, &hashes);
        for (int i = 0; i < 4; i++) {
            uint64_t index = i == 0 ? count - 1 : test_random_below(&proofs.seed, count);

            merkle_path_build(&path, &hashes, index);
            write_path(&argument, &path, &nodes[index]);
            add_proof(&proofs, PROVE_PATH, &argument, &root);
        }
        /* One sibling more, one less, and an index behind the end. */
        buffer_add(&argument, &root, sizeof(root));
        add_proof(&proofs, PROVE_PATH, &argument, NULL);
        if (path.sibling_count > 0) {
            argument.size -= 2 * sizeof(root);
            add_proof(&proofs, PROVE_PATH, &argument, NULL);
        }
        path.leaf_index = count;
        write_path(&argument, &path, &nodes[0]);
        add_proof(&proofs, PROVE_PATH, &argument, NULL);
    }
    check_proofs(&proofs);
    buffer_release(&argument);
    close_proofs(&proofs);
}

static void test_a_path_from_any_level_leads_to_the_root(void **state)
{
    struct proofs proofs;
    struct buffer argument;
    struct digest nodes[SIZE_MOST];

    (void)state;
    open_proofs(&proofs, 2);
    buffer_init(&argument, PROOF_MAX);
    for (uint64_t count = 1; count <= SIZE_MOST; count += 7) {
        struct merkle_leaves leaves;
        struct digest root;

        leaves_of(&leaves, &proofs, count);
        merkle_root(&root, &leaves);
        for (uint32_t level = 0; level == 0 || UINT64_C(1) << (level - 1) < count; level++) {
            uint64_t node_count = (count + (UINT64_C(1) << level) - 1) >> level;
            uint64_t index = test_random_below(&proofs.seed, node_count);
            struct merkle_leaves above;
            struct merkle_path path;
            struct digest shape;

            /* The nodes of a level are a list of their own, of the same shape from there on. */
            hash_nodes(nodes, &leaves, level);
            merkle_leaves_init_hashes(&above, nodes, node_count);
            merkle_root(&shape, &above);
            assert_memory_equal(&shape, &root, sizeof(root));
            merkle_path_build(&path, &above, index);
            write_path(&argument, &path, &nodes[index]);
            add_proof(&proofs, PROVE_PATH, &argument, &root);
        }
    }
    check_proofs(&proofs);
    buffer_release(&argument);
    close_proofs(&proofs);
}

static void test_no_bit_of_a_path_can_be_changed(void **state)
{
    static const uint64_t counts[] = {1, 2, 3, 5, 8, 13, 100, 255, 256, 257, 300};
    struct proofs proofs;
    struct buffer argument;

    (void)state;
    open_proofs(&proofs, 3);
    buffer_init(&argument, PROOF_MAX);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        uint64_t index = test_random_below(&proofs.seed, counts[i]);
        struct merkle_leaves leaves;
        struct merkle_path path;
        struct digest node;
        struct digest root;

        leaves_of(&leaves, &proofs, counts[i]);
        merkle_root(&root, &leaves);
        merkle_node(&node, &leaves, 0, index);
        merkle_path_build(&path, &leaves, index);
        write_path(&argument, &path, &node);
        assert_int_equal(flips_accepted(&proofs, PROVE_PATH, &argument, 0, 8, &root), 0);
        assert_int_equal(flips_accepted(&proofs, PROVE_PATH, &argument, 16, argument.size, &root),
                         0);
    }
    buffer_release(&argument);
    close_proofs(&proofs);
}

/* ---- proofs of many leaves -------------------------------------------------- */

enum { MOST_SHOWN = 40 };

struct many {
    struct merkle_multi multi;
    uint64_t indexes[MOST_SHOWN];
    struct digest siblings[MERKLE_MULTI_SIBLINGS(MOST_SHOWN)];
};

/* A random set of leaves: scattered, or one run. */
static void choose_leaves(struct many *many, struct proofs *proofs, uint64_t count)
{
    uint64_t wanted = 1 + test_random_below(&proofs->seed, count < MOST_SHOWN ? count : MOST_SHOWN);
    uint64_t left = count;
    bool run = test_random_below(&proofs->seed, 3) == 0;
    uint64_t first = test_random_below(&proofs->seed, count - wanted + 1);

    memset(many, 0, sizeof(*many));
    many->multi.indexes = many->indexes;
    many->multi.siblings = many->siblings;
    many->multi.index_capacity = MOST_SHOWN;
    many->multi.sibling_capacity = MERKLE_MULTI_SIBLINGS(MOST_SHOWN);
    for (uint64_t leaf = 0; leaf < count; leaf++, left--) {
        bool taken =
            run ? leaf >= first && leaf < first + wanted
                : test_random_below(&proofs->seed, left) < wanted - many->multi.index_count;

        if (taken) {
            many->indexes[many->multi.index_count++] = leaf;
        }
    }
    assert_int_equal(many->multi.index_count, wanted);
}

static void write_many(struct buffer *argument, const struct merkle_multi *multi,
                       const uint8_t *bytes)
{
    buffer_clear(argument);
    buffer_add_u64(argument, multi->leaf_count);
    buffer_add_u16(argument, (uint16_t)multi->index_count);
    buffer_add_u16(argument, (uint16_t)multi->sibling_count);
    for (uint32_t i = 0; i < multi->index_count; i++) {
        buffer_add_u64(argument, multi->indexes[i]);
    }
    buffer_add(argument, multi->siblings, multi->sibling_count * sizeof(struct digest));
    for (uint32_t i = 0; i < multi->index_count; i++) {
        buffer_add(argument, bytes + multi->indexes[i] * MERKLE_LEAF_SIZE, MERKLE_LEAF_SIZE);
    }
}

static void build_many(struct many *many, struct digest *root, struct proofs *proofs,
                       uint64_t count)
{
    struct merkle_leaves leaves;

    leaves_of(&leaves, proofs, count);
    merkle_root(root, &leaves);
    choose_leaves(many, proofs, count);
    assert_int_equal(merkle_multi_build(&many->multi, &leaves), STATUS_OK);
}

/* Two indexes swapped, one twice, one behind the end; a sibling more, a sibling less; none. */
static void add_unsound(struct proofs *proofs, struct buffer *argument, struct many *many)
{
    struct merkle_multi *multi = &many->multi;
    uint32_t last = multi->index_count - 1;
    uint64_t index = many->indexes[last];

    many->indexes[last] = multi->leaf_count;
    write_many(argument, multi, proofs->bytes);
    if (multi->leaf_count < SIZE_MOST) {
        add_proof(proofs, PROVE_LEAVES, argument, NULL);
    }
    many->indexes[last] = index;
    if (last > 0) {
        many->indexes[last] = many->indexes[last - 1];
        write_many(argument, multi, proofs->bytes);
        add_proof(proofs, PROVE_LEAVES, argument, NULL);
        many->indexes[last - 1] = index;
        write_many(argument, multi, proofs->bytes);
        add_proof(proofs, PROVE_LEAVES, argument, NULL);
        many->indexes[last - 1] = many->indexes[last];
        many->indexes[last] = index;
    }
    multi->sibling_count++;
    write_many(argument, multi, proofs->bytes);
    add_proof(proofs, PROVE_LEAVES, argument, NULL);
    if (multi->sibling_count > 1) {
        multi->sibling_count -= 2;
        write_many(argument, multi, proofs->bytes);
        add_proof(proofs, PROVE_LEAVES, argument, NULL);
    }
    multi->sibling_count = 1;
    multi->index_count = 0;
    write_many(argument, multi, proofs->bytes);
    add_proof(proofs, PROVE_LEAVES, argument, NULL);
}

static void test_many_leaves_lead_to_the_root_that_c_finds(void **state)
{
    struct proofs proofs;
    struct buffer argument;

    (void)state;
    open_proofs(&proofs, 4);
    buffer_init(&argument, PROOF_MAX);
    for (uint64_t round = 0; round < test_share(20, 1); round++) {
        for (uint64_t count = 1; count <= SIZE_MOST; count++) {
            struct many many;
            struct digest root;

            build_many(&many, &root, &proofs, count);
            write_many(&argument, &many.multi, proofs.bytes);
            add_proof(&proofs, PROVE_LEAVES, &argument, &root);
            if (count % 8 == 1) {
                add_unsound(&proofs, &argument, &many);
            }
        }
    }
    check_proofs(&proofs);
    buffer_release(&argument);
    close_proofs(&proofs);
}

static void test_no_bit_of_a_proof_of_many_leaves_can_be_changed(void **state)
{
    static const uint64_t counts[] = {1, 2, 3, 7, 21, 64, 129};
    struct proofs proofs;
    struct buffer argument;

    (void)state;
    open_proofs(&proofs, 5);
    buffer_init(&argument, PROOF_MAX);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct many many;
        struct digest root;
        size_t start;

        do {
            build_many(&many, &root, &proofs, counts[i]);
        } while (many.multi.index_count > 5);
        write_many(&argument, &many.multi, proofs.bytes);
        start = argument.size - many.multi.index_count * MERKLE_LEAF_SIZE;
        assert_int_equal(flips_accepted(&proofs, PROVE_LEAVES, &argument, 8, start, &root), 0);
        for (uint64_t j = 0; j < test_share(64, 2); j++) {
            size_t at = start + test_random_below(&proofs.seed, argument.size - start - 32);

            assert_int_equal(flips_accepted(&proofs, PROVE_LEAVES, &argument, at, at + 32, &root),
                             0);
        }
    }
    buffer_release(&argument);
    close_proofs(&proofs);
}

/* ---- frontiers and headers --------------------------------------------------- */

static void test_a_frontier_folds_to_the_node_above_it(void **state)
{
    struct proofs proofs;
    struct buffer argument;
    struct digest nodes[SIZE_MOST];

    (void)state;
    open_proofs(&proofs, 6);
    buffer_init(&argument, PROOF_MAX);
    for (uint64_t count = 1; count <= SIZE_MOST; count++) {
        struct merkle_leaves leaves;
        struct digest root;

        leaves_of(&leaves, &proofs, count);
        merkle_root(&root, &leaves);
        hash_nodes(nodes, &leaves, 0);
        buffer_clear(&argument);
        buffer_add_u8(&argument, FOLD_HASHES);
        buffer_add(&argument, nodes, count * sizeof(nodes[0]));
        add_proof(&proofs, PROVE_FOLD, &argument, &root);
        if (count <= 20) {
            buffer_clear(&argument);
            buffer_add_u8(&argument, FOLD_LEAVES);
            buffer_add(&argument, proofs.bytes, count * MERKLE_LEAF_SIZE);
            add_proof(&proofs, PROVE_FOLD, &argument, &root);
        }
        for (uint64_t i = 0; i < count; i++) {
            merkle_leaf_hash(&nodes[i], proofs.bytes + i * WORD, WORD);
        }
        merkle_leaves_init_hashes(&leaves, nodes, count);
        merkle_root(&root, &leaves);
        buffer_clear(&argument);
        buffer_add_u8(&argument, FOLD_ITEMS);
        buffer_add(&argument, proofs.bytes, count * WORD);
        add_proof(&proofs, PROVE_FOLD, &argument, &root);
    }
    buffer_clear(&argument);
    buffer_add_u8(&argument, FOLD_HASHES);
    add_proof(&proofs, PROVE_FOLD, &argument, NULL);
    check_proofs(&proofs);
    buffer_release(&argument);
    close_proofs(&proofs);
}

static void test_headers_hash_as_the_formats_say(void **state)
{
    struct proofs proofs;
    struct buffer argument;

    (void)state;
    open_proofs(&proofs, 7);
    buffer_init(&argument, PROOF_MAX);
    for (int i = 0; i < 20; i++) {
        const uint8_t *header = proofs.bytes + 200 * i;
        struct digest root;

        buffer_clear(&argument);
        buffer_add_u8(&argument, FOLD_LIST);
        buffer_add(&argument, header, 80);
        sha256(&root, header, 80);
        add_proof(&proofs, PROVE_FOLD, &argument, &root);
        buffer_clear(&argument);
        buffer_add_u8(&argument, FOLD_TENSOR);
        buffer_add(&argument, header, 64 + LABEL_SIZE + (size_t)i);
        sha256(&root, header, 64 + LABEL_SIZE + (size_t)i);
        add_proof(&proofs, PROVE_FOLD, &argument, &root);
    }
    check_proofs(&proofs);
    buffer_release(&argument);
    close_proofs(&proofs);
}

/* ---- operands of evidence ------------------------------------------------------ */

/* Three batches of samples: tensors of every size of element, with padding and without. */
static void make_samples(struct shown_case *shown, uint64_t *seed, bool floats)
{
    const int64_t attributes[] = {3, 16, 1, 2, 3, 0x3f800000};

    shown_case_init(shown, OP_BATCH_SAMPLES, 3, 2);
    memcpy(shown->op.attributes, attributes, sizeof(attributes));
    shown->op.attribute_count = BATCH_SAMPLES_ATTRIBUTES;
    for (uint32_t i = 0; i < 5; i++) {
        static const uint64_t counts[5] = {2048, 128, 1, 48, 3};
        static const enum dtype types[5] = {DTYPE_U8, DTYPE_U16, DTYPE_U32, DTYPE_F32, DTYPE_U32};
        enum dtype dtype = i == 0 && floats ? DTYPE_F32 : types[i];

        test_random_fill(seed, shown_case_tensor(shown, i, dtype, counts[i]),
                         counts[i] * dtype_size(dtype));
    }
    shown_case_check(shown);
}

/* What Jury.prove() gives for operands: the hash of the roots of those shown, 0 for others. */
static struct digest roots_of(const struct shown_case *shown, uint32_t used)
{
    struct digest roots[5] = {{{0}}};
    struct hash32 hash;
    struct digest result;

    for (uint32_t i = 0; i < 5; i++) {
        if ((used >> i & 1) != 0) {
            shown_case_root(&roots[i], shown, i);
        }
    }
    hash = keccak256(roots, sizeof(roots));
    memcpy(&result, &hash, sizeof(result));
    return result;
}

static void test_no_bit_of_a_shown_operand_can_be_changed(void **state)
{
    enum { OPERANDS_AT = 14 + 2 + 5 + 8 * BATCH_SAMPLES_ATTRIBUTES + 46 * 5 + 51 };
    struct proofs proofs;
    struct buffer evidence;

    (void)state;
    open_proofs(&proofs, 8);
    buffer_init(&evidence, PROOF_MAX);
    for (uint32_t i = 0; i < 4; i++) {
        struct shown_case shown;
        struct shown_target target = {.output = i % 2, .element = i % 3};
        struct digest roots;

        make_samples(&shown, &proofs.seed, i < 2);
        /* Data says the length of its list too, which its root does not depend on. */
        shown.operands[0].role = i < 2 ? ROLE_TEMPORARY : ROLE_DATA;
        roots = roots_of(&shown, i % 2 == 0 ? 0xd : 0x16);
        buffer_clear(&evidence);
        shown_case_write(&evidence, &shown, &target, true, 0);
        add_proof(&proofs, PROVE_OPERANDS, &evidence, &roots);
        check_proofs(&proofs);
        for (uint64_t j = 0; i < 2 && j < test_share(200, 12); j++) {
            size_t at =
                OPERANDS_AT +
                (j == 0 ? 0 : test_random_below(&proofs.seed, evidence.size - OPERANDS_AT - 120));

            assert_int_equal(
                flips_accepted(&proofs, PROVE_OPERANDS, &evidence, at, at + 120, &roots), 0);
        }
        shown_case_release(&shown);
    }
    buffer_release(&evidence);
    close_proofs(&proofs);
}

/*
 * Evidence of a tensor of bytes that is said to be size long, while a tree was committed to over
 * 2,048 bytes with one that is not zero.
 */
static void write_padded(struct buffer *evidence, struct digest *root, uint64_t size, size_t dirty)
{
    enum { LABEL_HASH_AT = 16 + 5 + 8 + 14, LABEL_AT = 16 + 5 + 8 + 46 + 43 + 1, LABEL = 60 };
    struct shown_target target = {.element = 2047};
    struct shown_case shown;
    struct digest hash;

    shown_case_init(&shown, OP_FILL, 0, 1);
    shown.op.attribute_count = FILL_ATTRIBUTES;
    *((uint8_t *)shown_case_tensor(&shown, 0, DTYPE_U8, 2048) + dirty) = 1;
    buffer_clear(evidence);
    shown_case_write(evidence, &shown, &target, true, 0);
    for (int i = 0; i < 8; i++) {
        evidence->data[LABEL_AT + 7 - i] = (uint8_t)(size >> (8 * i));
    }
    sha256(&hash, evidence->data + LABEL_AT, LABEL);
    memcpy(evidence->data + LABEL_HASH_AT, &hash, sizeof(hash));

    uint8_t header[32 + 32 + LABEL] = "lockstep.tensor.v1";

    memcpy(header + 64, evidence->data + LABEL_AT, LABEL);
    memcpy(header + 32, evidence->data + LABEL_AT + LABEL, sizeof(hash));
    sha256(&hash, header, sizeof(header));

    struct hash32 all = keccak256(&hash, sizeof(hash));

    memcpy(root, &all, sizeof(*root));
    shown_case_release(&shown);
}

static void test_padding_that_is_not_zero_is_refused(void **state)
{
    struct proofs proofs;
    struct buffer evidence;

    (void)state;
    open_proofs(&proofs, 9);
    buffer_init(&evidence, PROOF_MAX);
    for (uint64_t size = 1025; size <= 2048; size += size < 1100 || size > 2000 ? 1 : 50) {
        struct digest root;

        write_padded(&evidence, &root, size, size - 1);
        add_proof(&proofs, PROVE_OPERANDS, &evidence, &root);
        for (int i = 0; i < 3 && size < 2048; i++) {
            uint64_t dirty = i == 0   ? size
                             : i == 1 ? 2047
                                      : size + test_random_below(&proofs.seed, 2048 - size);

            write_padded(&evidence, &root, size, dirty);
            add_proof(&proofs, PROVE_OPERANDS, &evidence, NULL);
        }
    }
    check_proofs(&proofs);
    buffer_release(&evidence);
    close_proofs(&proofs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_path_leads_to_the_root_that_c_finds),
        cmocka_unit_test(test_a_path_from_any_level_leads_to_the_root),
        cmocka_unit_test(test_no_bit_of_a_path_can_be_changed),
        cmocka_unit_test(test_many_leaves_lead_to_the_root_that_c_finds),
        cmocka_unit_test(test_no_bit_of_a_proof_of_many_leaves_can_be_changed),
        cmocka_unit_test(test_a_frontier_folds_to_the_node_above_it),
        cmocka_unit_test(test_headers_hash_as_the_formats_say),
        cmocka_unit_test(test_no_bit_of_a_shown_operand_can_be_changed),
        cmocka_unit_test(test_padding_that_is_not_zero_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
