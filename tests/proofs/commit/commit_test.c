/*
 * Goal: a root changes with every bit that it commits to, and opens nothing else.
 *
 * Method: headers byte for byte as docs/FORMATS.md has them, built here a second time with
 * libcrypto's hash; then every bit of tensors, headers, leaves and items flipped.
 */
#include <string.h>

#include <openssl/evp.h>

#include "proofs/commit/commit.h"
#include "tests/support/test.h"

static struct tensor tensor_of(const char *name, enum dtype dtype, uint32_t rank, uint64_t a,
                               uint64_t b)
{
    struct tensor tensor = {.dtype = dtype, .rank = rank, .dims = {a, b}, .count = 1};

    memcpy(tensor.name, name, strlen(name));
    for (uint32_t i = 0; i < rank; i++) {
        tensor.count *= tensor.dims[i];
    }
    return tensor;
}

static void oracle(struct digest *digest, const void *data, size_t size)
{
    assert_int_equal(EVP_Digest(data, size, digest->bytes, NULL, EVP_sha256(), NULL), 1);
}

static void assert_digest(const struct digest *got, const struct digest *wanted)
{
    assert_memory_equal(got->bytes, wanted->bytes, DIGEST_SIZE);
}

static void assert_other(const struct digest *got, const struct digest *other)
{
    assert_memory_not_equal(got->bytes, other->bytes, DIGEST_SIZE);
}

static void test_tensor_header_has_the_documented_bytes(void **state)
{
    const struct tensor tensor = tensor_of("h.0.ln.weight", DTYPE_F32, 2, 3, 5);
    const float data[15] = {1.0f, -2.5f};
    uint8_t leaf[1025] = {0};
    uint8_t header[124 + 13] = "lockstep.tensor.v1";
    struct digest leaves_root;
    struct digest wanted;
    struct digest root;
    uint8_t bytes[COMMIT_TENSOR_HEADER_MAX];

    (void)state;
    memcpy(leaf + 1, data, sizeof(data));
    oracle(&leaves_root, leaf, sizeof(leaf));
    memcpy(header + 32, leaves_root.bytes, 32);
    header[71] = 60;
    header[79] = 3;
    header[87] = 5;
    header[120] = 0;
    header[121] = 2;
    header[123] = 13;
    memcpy(header + 124, "h.0.ln.weight", 13);
    assert_int_equal(commit_tensor_header(bytes, COMMIT_TENSOR, &tensor, &leaves_root),
                     sizeof(header));
    assert_memory_equal(bytes, header, sizeof(header));
    oracle(&wanted, header, sizeof(header));
    commit_tensor_root(&root, COMMIT_TENSOR, &tensor, data, 1);
    assert_digest(&root, &wanted);
}

static void test_list_roots_have_the_documented_bytes(void **state)
{
    static const char *const tags[COMMIT_LIST_COUNT] = {"lockstep.state.v1", "lockstep.segment.v1",
                                                        "lockstep.trace.v1", "lockstep.program.v1",
                                                        "lockstep.batch.v1"};
    struct digest items[2];

    (void)state;
    memset(items, 0x17, sizeof(items));
    items[1].bytes[0] = 0x71;
    for (int kind = 0; kind < COMMIT_LIST_COUNT; kind++) {
        uint8_t header[80] = {0};
        uint8_t leaf[33] = {0};
        uint8_t node[65] = {1};
        struct digest wanted;
        struct digest root;
        bool has_first = kind == COMMIT_SEGMENT || kind >= COMMIT_PROGRAM;
        uint64_t first = has_first ? 0x0102030405 : 0;

        for (int i = 0; i < 2; i++) {
            memcpy(leaf + 1, items[i].bytes, 32);
            oracle(&wanted, leaf, sizeof(leaf));
            memcpy(node + 1 + 32 * i, wanted.bytes, 32);
        }
        oracle(&wanted, node, sizeof(node));
        memcpy(header, tags[kind], strlen(tags[kind]));
        memcpy(header + 32, wanted.bytes, 32);
        if (has_first) {
            for (uint8_t i = 0; i < 5; i++) {
                header[67 + i] = (uint8_t)(i + 1);
            }
        }
        header[79] = 2;
        oracle(&wanted, header, sizeof(header));
        commit_list_root(&root, (enum commit_list)kind, first, items, 2);
        assert_digest(&root, &wanted);
    }
}

static void test_job_id_has_the_documented_bytes(void **state)
{
    static const uint8_t job[3] = {'a', 'b', 'c'};
    uint8_t bytes[32 + 8 + 3] = "lockstep.job.v1";
    struct digest wanted;
    struct digest id;

    (void)state;
    bytes[39] = 3;
    memcpy(bytes + 40, job, sizeof(job));
    oracle(&wanted, bytes, sizeof(bytes));
    commit_job_id(&id, job, sizeof(job));
    assert_digest(&id, &wanted);
}

static void test_every_bit_of_a_tensor_changes_its_root(void **state)
{
    uint8_t data[2 * 1024 + 512];
    const struct tensor tensor = tensor_of("w", DTYPE_U8, 1, sizeof(data), 0);
    uint64_t seed = 1;
    struct digest root;

    (void)state;
    test_random_fill(&seed, data, sizeof(data));
    commit_tensor_root(&root, COMMIT_TENSOR, &tensor, data, 1);
    for (size_t bit = 0; bit < sizeof(data) * 8; bit++) {
        struct digest other;

        data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        commit_tensor_root(&other, COMMIT_TENSOR, &tensor, data, 1);
        assert_other(&other, &root);
        data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

static void test_type_shape_name_and_kind_are_bound(void **state)
{
    /* All of these are 48 zero bytes. */
    const struct tensor tensors[] = {
        tensor_of("w", DTYPE_F32, 2, 3, 4),  tensor_of("w", DTYPE_F32, 2, 4, 3),
        tensor_of("w", DTYPE_F32, 1, 12, 0), tensor_of("w", DTYPE_F32, 2, 12, 1),
        tensor_of("w", DTYPE_U32, 2, 3, 4),  tensor_of("w", DTYPE_I32, 2, 3, 4),
        tensor_of("v", DTYPE_F32, 2, 3, 4),  tensor_of("W", DTYPE_F32, 2, 3, 4),
        tensor_of("ww", DTYPE_F32, 2, 3, 4), tensor_of("w", DTYPE_U8, 1, 47, 0),
        tensor_of("w", DTYPE_U8, 1, 48, 0),
    };
    const size_t count = sizeof(tensors) / sizeof(tensors[0]);
    const uint8_t zeros[48] = {0};
    struct digest roots[2 * sizeof(tensors) / sizeof(tensors[0])];

    (void)state;
    for (size_t i = 0; i < count; i++) {
        commit_tensor_root(&roots[i], COMMIT_TENSOR, &tensors[i], zeros, 1);
    }
    commit_tensor_root(&roots[count], COMMIT_DATA, &tensors[0], zeros, 1);
    for (size_t i = 0; i <= count; i++) {
        for (size_t j = 0; j < i; j++) {
            assert_other(&roots[i], &roots[j]);
        }
    }
}

static void test_pieces_make_the_root_of_the_whole(void **state)
{
    static uint8_t data[100001];
    const struct tensor tensor = tensor_of("x", DTYPE_U8, 1, sizeof(data), 0);
    uint64_t seed = 2;
    struct digest wanted;

    (void)state;
    test_random_fill(&seed, data, sizeof(data));
    commit_tensor_root(&wanted, COMMIT_TENSOR, &tensor, data, 2);
    for (int round = 0; round < 50; round++) {
        struct commit_stream stream;
        struct digest root;

        commit_stream_init(&stream, COMMIT_TENSOR, &tensor);
        for (size_t at = 0; at < sizeof(data);) {
            size_t piece = test_random_below(&seed, 9000);

            piece = piece < sizeof(data) - at ? piece : sizeof(data) - at;
            commit_stream_add(&stream, data + at, piece, 1);
            at += piece;
        }
        commit_stream_root(&stream, &root);
        assert_digest(&root, &wanted);
    }
}

static void test_unsound_tensors_are_refused(void **state)
{
    struct tensor tensor = tensor_of("w", DTYPE_F32, 2, 3, 4);

    (void)state;
    assert_true(commit_tensor_sound(&tensor));
    tensor.count = 11;
    assert_false(commit_tensor_sound(&tensor));
    tensor = tensor_of("w", DTYPE_F32, 2, 0, 4);
    assert_false(commit_tensor_sound(&tensor));
    tensor = tensor_of("w", DTYPE_F32, 2, UINT64_C(1) << 33, UINT64_C(1) << 33);
    assert_false(commit_tensor_sound(&tensor));
    tensor = tensor_of("w", DTYPE_F32, 0, 0, 0);
    assert_true(commit_tensor_sound(&tensor));
    tensor.rank = TENSOR_RANK_MAX + 1;
    assert_false(commit_tensor_sound(&tensor));
    tensor = tensor_of("two words", DTYPE_F32, 1, 1, 0);
    assert_false(commit_tensor_sound(&tensor));
    tensor = tensor_of("\xc3\xa9", DTYPE_F32, 1, 1, 0);
    assert_false(commit_tensor_sound(&tensor));
    tensor = tensor_of("w", DTYPE_COUNT, 1, 1, 0);
    assert_false(commit_tensor_sound(&tensor));
    tensor = tensor_of("", DTYPE_F32, 1, 1, 0);
    assert_false(commit_tensor_sound(&tensor));
    memset(tensor.name, 'x', sizeof(tensor.name));
    tensor.dtype = DTYPE_U8;
    assert_false(commit_tensor_sound(&tensor));
}

/* Every header that is read back is written to the same bytes, so a changed one never equals it. */
static void test_changed_headers_are_refused_or_hash_to_another_root(void **state)
{
    const struct tensor tensor = tensor_of("block.1.mlp", DTYPE_I16, 2, 7, 300);
    const struct digest leaves_root = {{9}};
    uint8_t bytes[COMMIT_TENSOR_HEADER_MAX + 1] = {0};
    struct tensor read;
    struct digest read_root;
    enum commit_array kind;

    (void)state;

    size_t size = commit_tensor_header(bytes, COMMIT_TENSOR, &tensor, &leaves_root);

    assert_int_equal(commit_tensor_header_read(&read, &kind, &read_root, bytes, size), STATUS_OK);
    assert_memory_equal(&read, &tensor, sizeof(tensor));
    assert_digest(&read_root, &leaves_root);
    for (size_t cut = 0; cut < size; cut++) {
        assert_int_equal(commit_tensor_header_read(&read, &kind, &read_root, bytes, cut),
                         STATUS_BAD_FORMAT);
    }
    assert_int_equal(commit_tensor_header_read(&read, &kind, &read_root, bytes, size + 1),
                     STATUS_BAD_FORMAT);
    for (size_t bit = 0; bit < size * 8; bit++) {
        uint8_t again[COMMIT_TENSOR_HEADER_MAX];

        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        if (commit_tensor_header_read(&read, &kind, &read_root, bytes, size) == STATUS_OK) {
            assert_int_equal(commit_tensor_header(again, kind, &read, &read_root), size);
            assert_memory_equal(again, bytes, size);
        }
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

static void test_data_header_holds_no_name(void **state)
{
    const struct tensor tensor = tensor_of("tokens", DTYPE_U16, 1, 1000, 0);
    const struct digest leaves_root = {{9}};
    uint8_t bytes[COMMIT_TENSOR_HEADER_MAX];
    struct tensor read;
    struct digest read_root;
    enum commit_array kind;

    (void)state;
    assert_int_equal(commit_tensor_header(bytes, COMMIT_DATA, &tensor, &leaves_root),
                     COMMIT_TENSOR_HEADER_MIN);
    assert_int_equal(commit_tensor_header_read(&read, &kind, &read_root, bytes, 124), STATUS_OK);
    assert_int_equal(kind, COMMIT_DATA);
    assert_int_equal(read.role, ROLE_DATA);
    assert_int_equal(read.count, 1000);
}

/* A tensor of 2,500 bytes: three leaves, the last with 476 zeros. */
struct opening {
    struct tensor tensor;
    uint8_t data[2500];
    struct digest root;
    uint8_t header[COMMIT_TENSOR_HEADER_MAX];
    size_t header_size;
    struct merkle_leaves leaves;
};

static void opening_init(struct opening *opening)
{
    uint64_t seed = 3;
    struct digest leaves_root;

    opening->tensor = tensor_of("t", DTYPE_U8, 1, sizeof(opening->data), 0);
    test_random_fill(&seed, opening->data, sizeof(opening->data));
    merkle_leaves_init_bytes(&opening->leaves, opening->data, sizeof(opening->data));
    merkle_root(&leaves_root, &opening->leaves);
    opening->header_size =
        commit_tensor_header(opening->header, COMMIT_TENSOR, &opening->tensor, &leaves_root);
    commit_tensor_root(&opening->root, COMMIT_TENSOR, &opening->tensor, opening->data, 1);
}

static void opening_leaf(const struct opening *opening, uint8_t leaf[MERKLE_LEAF_SIZE],
                         struct merkle_path *path, uint64_t index)
{
    size_t rest = sizeof(opening->data) - index * MERKLE_LEAF_SIZE;

    memset(leaf, 0, MERKLE_LEAF_SIZE);
    memcpy(leaf, opening->data + index * MERKLE_LEAF_SIZE,
           rest < MERKLE_LEAF_SIZE ? rest : MERKLE_LEAF_SIZE);
    merkle_path_build(path, &opening->leaves, index);
}

static void test_leaf_of_a_tensor_is_opened_and_any_flipped_bit_refused(void **state)
{
    struct opening opening;

    (void)state;
    opening_init(&opening);
    for (uint64_t index = 0; index < 3; index++) {
        uint8_t leaf[MERKLE_LEAF_SIZE];
        struct merkle_path path;

        opening_leaf(&opening, leaf, &path, index);
        assert_int_equal(
            commit_leaf_check(&opening.root, opening.header, opening.header_size, leaf, &path),
            VERDICT_VALID);
        for (size_t bit = 0; bit < sizeof(leaf) * 8; bit++) {
            leaf[bit / 8] ^= (uint8_t)(1 << bit % 8);
            assert_int_equal(
                commit_leaf_check(&opening.root, opening.header, opening.header_size, leaf, &path),
                VERDICT_INVALID);
            leaf[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        for (size_t bit = 0; bit < opening.header_size * 8; bit++) {
            opening.header[bit / 8] ^= (uint8_t)(1 << bit % 8);
            assert_int_equal(
                commit_leaf_check(&opening.root, opening.header, opening.header_size, leaf, &path),
                VERDICT_INVALID);
            opening.header[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        for (uint64_t other = 0; other < 5; other++) {
            path.leaf_count = other;
            assert_int_equal(
                commit_leaf_check(&opening.root, opening.header, opening.header_size, leaf, &path),
                other == 3 ? VERDICT_VALID : VERDICT_INVALID);
        }
    }
}

/* A solver who commits to bytes behind the end of a tensor cannot open that leaf. */
static void test_leaf_with_bytes_behind_the_end_is_refused(void **state)
{
    struct opening opening;
    uint8_t leaf[MERKLE_LEAF_SIZE];
    uint8_t padded[3 * MERKLE_LEAF_SIZE] = {0};
    struct merkle_path path;
    struct digest leaves_root;

    (void)state;
    opening_init(&opening);
    memcpy(padded, opening.data, sizeof(opening.data));
    padded[2500] = 1;
    merkle_leaves_init_bytes(&opening.leaves, padded, sizeof(padded));
    merkle_root(&leaves_root, &opening.leaves);
    memcpy(opening.header + 32, leaves_root.bytes, 32);
    oracle(&opening.root, opening.header, opening.header_size);
    memcpy(leaf, padded + 2048, sizeof(leaf));
    merkle_path_build(&path, &opening.leaves, 2);
    assert_int_equal(
        commit_leaf_check(&opening.root, opening.header, opening.header_size, leaf, &path),
        VERDICT_INVALID);
    memcpy(leaf, padded, sizeof(leaf));
    merkle_path_build(&path, &opening.leaves, 0);
    assert_int_equal(
        commit_leaf_check(&opening.root, opening.header, opening.header_size, leaf, &path),
        VERDICT_VALID);
}

static void check_items(enum commit_list kind, uint64_t first, const struct digest *items,
                        uint64_t count)
{
    struct digest hashes[20];
    struct merkle_leaves leaves;
    struct digest root;

    commit_list_root(&root, kind, first, items, count);
    for (uint64_t i = 0; i < count; i++) {
        merkle_leaf_hash(&hashes[i], items[i].bytes, DIGEST_SIZE);
    }
    merkle_leaves_init_hashes(&leaves, hashes, count);
    for (uint64_t i = 0; i < count; i++) {
        struct merkle_path path;
        struct digest item = items[i];

        merkle_path_build(&path, &leaves, i);
        for (int other = 0; other < COMMIT_LIST_COUNT; other++) {
            assert_int_equal(
                commit_item_check(&root, (enum commit_list)other, first, &item, 32, &path),
                other == (int)kind ? VERDICT_VALID : VERDICT_INVALID);
        }
        assert_int_equal(commit_item_check(&root, kind, first + 1, &item, 32, &path),
                         VERDICT_INVALID);
        assert_int_equal(commit_item_check(&root, kind, first, &item, 31, &path), VERDICT_INVALID);
        /* The count is in the header, so a path of another tree fails here. */
        for (uint64_t other = 0; other < 40; other++) {
            path.leaf_count = other;
            assert_int_equal(commit_item_check(&root, kind, first, &item, 32, &path),
                             other == count ? VERDICT_VALID : VERDICT_INVALID);
        }
        path.leaf_count = count;
        for (size_t bit = 0; bit < 256; bit++) {
            item.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            assert_int_equal(commit_item_check(&root, kind, first, &item, 32, &path),
                             VERDICT_INVALID);
            item.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
    }
}

static void test_items_of_lists_are_opened_and_no_others(void **state)
{
    struct digest items[20];
    uint64_t seed = 4;

    (void)state;
    test_random_fill(&seed, items, sizeof(items));
    for (uint64_t count = 1; count <= 20; count++) {
        for (int kind = 0; kind < COMMIT_LIST_COUNT; kind++) {
            bool has_first = kind == COMMIT_SEGMENT || kind >= COMMIT_PROGRAM;

            check_items((enum commit_list)kind, has_first ? count * 100 : 0, items, count);
        }
    }
}

static void test_every_bit_of_a_list_changes_its_root(void **state)
{
    struct digest items[20];
    uint64_t seed = 9;

    (void)state;
    test_random_fill(&seed, items, sizeof(items));
    for (uint64_t count = 1; count <= 20; count++) {
        enum commit_list kind = (enum commit_list)(count % COMMIT_LIST_COUNT);
        struct digest root;
        struct digest other;

        commit_list_root(&root, kind, 0, items, count);
        for (size_t bit = 0; bit < count * 256; bit++) {
            uint8_t *byte = &items[bit / 256].bytes[bit % 256 / 8];

            *byte ^= (uint8_t)(1 << bit % 8);
            commit_list_root(&other, kind, 0, items, count);
            assert_other(&other, &root);
            *byte ^= (uint8_t)(1 << bit % 8);
        }
    }
}

static void test_order_count_and_first_step_are_bound(void **state)
{
    struct digest items[3] = {{{1}}, {{2}}, {{3}}};
    struct digest roots[5];

    (void)state;
    commit_list_root(&roots[0], COMMIT_SEGMENT, 0, items, 3);
    commit_list_root(&roots[1], COMMIT_SEGMENT, 3, items, 3);
    commit_list_root(&roots[2], COMMIT_SEGMENT, 0, items, 2);
    items[0].bytes[0] = 2;
    items[1].bytes[0] = 1;
    commit_list_root(&roots[3], COMMIT_SEGMENT, 0, items, 3);
    commit_list_root(&roots[4], COMMIT_SEGMENT, 0, items, 0);
    for (size_t i = 0; i < 5; i++) {
        for (size_t j = 0; j < i; j++) {
            assert_other(&roots[i], &roots[j]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensor_header_has_the_documented_bytes),
        cmocka_unit_test(test_list_roots_have_the_documented_bytes),
        cmocka_unit_test(test_job_id_has_the_documented_bytes),
        cmocka_unit_test(test_every_bit_of_a_tensor_changes_its_root),
        cmocka_unit_test(test_type_shape_name_and_kind_are_bound),
        cmocka_unit_test(test_pieces_make_the_root_of_the_whole),
        cmocka_unit_test(test_unsound_tensors_are_refused),
        cmocka_unit_test(test_changed_headers_are_refused_or_hash_to_another_root),
        cmocka_unit_test(test_data_header_holds_no_name),
        cmocka_unit_test(test_leaf_of_a_tensor_is_opened_and_any_flipped_bit_refused),
        cmocka_unit_test(test_leaf_with_bytes_behind_the_end_is_refused),
        cmocka_unit_test(test_items_of_lists_are_opened_and_no_others),
        cmocka_unit_test(test_every_bit_of_a_list_changes_its_root),
        cmocka_unit_test(test_order_count_and_first_step_are_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
