/*
 * Goal: the roots that follow from the hashes of pieces are those of the tensors and of the state.
 * Method: tensors whose sizes lie around the ends of leaves and pieces, against commit.h's roots of
 * their bytes; each hash of a list changed in turn.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proofs/commit/commit.h"
#include "proofs/commit/piece.h"
#include "tests/support/test.h"

#define PIECES_MAX 6

static struct tensor tensor_of(uint64_t size)
{
    struct tensor tensor = {.dtype = DTYPE_U8, .role = ROLE_STATE, .rank = 1, .dims = {size}};

    tensor.count = size;
    (void)snprintf(tensor.name, sizeof(tensor.name), "t");
    return tensor;
}

static uint8_t *bytes_of(uint64_t size)
{
    uint8_t *bytes = malloc(size);

    assert_non_null(bytes);
    for (uint64_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)(i * 31 + i / 1000);
    }
    return bytes;
}

static void hash_pieces(struct digest *hashes, const uint8_t *bytes, uint64_t size)
{
    for (uint64_t from = 0; from < size; from += PIECE_SIZE) {
        piece_hash(hashes++, bytes + from,
                   size - from < PIECE_SIZE ? (size_t)(size - from) : PIECE_SIZE);
    }
}

static void test_pieces_give_the_roots_of_tensors(void **state)
{
    static const uint64_t sizes[] = {1,
                                     1023,
                                     1024,
                                     1025,
                                     PIECE_SIZE - 1,
                                     PIECE_SIZE,
                                     PIECE_SIZE + 1,
                                     2 * PIECE_SIZE,
                                     3 * PIECE_SIZE + 1025,
                                     5 * PIECE_SIZE + PIECE_SIZE / 2};

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct tensor tensor = tensor_of(sizes[i]);
        uint8_t *bytes = bytes_of(sizes[i]);
        struct digest hashes[PIECES_MAX];
        struct digest wanted;
        struct digest root;

        assert_int_equal(piece_count(&tensor), (sizes[i] + PIECE_SIZE - 1) / PIECE_SIZE);
        hash_pieces(hashes, bytes, sizes[i]);
        commit_tensor_root(&wanted, COMMIT_TENSOR, &tensor, bytes, 1);
        piece_tensor_root(&root, &tensor, hashes);
        assert_memory_equal(&root, &wanted, sizeof(root));
        free(bytes);
    }
}

static void test_pieces_give_the_root_of_data_and_no_false_hash_does(void **state)
{
    static const uint64_t sizes[] = {1,
                                     1025,
                                     PIECE_DATA_SIZE - 1,
                                     PIECE_DATA_SIZE,
                                     PIECE_DATA_SIZE + 1,
                                     4 * PIECE_DATA_SIZE,
                                     5 * PIECE_DATA_SIZE + 1025};

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct tensor tensor = tensor_of(sizes[i]);
        uint8_t *bytes = bytes_of(sizes[i]);
        struct digest hashes[PIECES_MAX];
        struct digest wanted;
        struct digest root;

        tensor.role = ROLE_DATA;
        commit_tensor_root(&wanted, COMMIT_DATA, &tensor, bytes, 1);
        piece_data_hashes(hashes, &tensor, bytes);
        piece_data_root(&root, &tensor, hashes);
        assert_memory_equal(&root, &wanted, sizeof(root));
        for (uint64_t k = 0; k < piece_data_count(&tensor); k++) {
            hashes[k].bytes[k] ^= 1;
            piece_data_root(&root, &tensor, hashes);
            assert_memory_not_equal(&root, &wanted, sizeof(root));
            hashes[k].bytes[k] ^= 1;
        }
        free(bytes);
    }
}

static void test_pieces_give_the_root_of_a_state_and_no_false_hash_does(void **state)
{
    struct tensor tensors[2] = {tensor_of(2 * PIECE_SIZE + 7), tensor_of(100)};
    struct state_pair states[2] = {{.before = 0}, {.before = 1}};
    const struct tape tape = {
        .tensor_count = 2, .tensors = tensors, .state_count = 2, .states = states};
    struct digest hashes[4] = {{{0}}};
    struct digest wanted;
    struct digest root;
    struct commit_roots roots;

    (void)state;
    commit_roots_init(&roots, COMMIT_STATE, 0);
    for (int i = 0; i < 2; i++) {
        uint8_t *bytes = bytes_of(tensors[i].count);

        hash_pieces(&hashes[3 * i], bytes, tensors[i].count);
        commit_tensor_root(&root, COMMIT_TENSOR, &tensors[i], bytes, 1);
        assert_int_equal(commit_roots_add(&roots, &root), STATUS_OK);
        free(bytes);
    }
    commit_roots_end(&roots, &wanted);
    assert_int_equal(piece_count_of_state(&tape), 4);
    assert_int_equal(piece_state_root(&root, &tape, hashes), STATUS_OK);
    assert_memory_equal(&root, &wanted, sizeof(root));
    for (int i = 0; i < 4; i++) {
        hashes[i].bytes[i] ^= 1;
        assert_int_equal(piece_state_root(&root, &tape, hashes), STATUS_OK);
        assert_memory_not_equal(&root, &wanted, sizeof(root));
        hashes[i].bytes[i] ^= 1;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_give_the_roots_of_tensors),
        cmocka_unit_test(test_pieces_give_the_root_of_data_and_no_false_hash_does),
        cmocka_unit_test(test_pieces_give_the_root_of_a_state_and_no_false_hash_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
