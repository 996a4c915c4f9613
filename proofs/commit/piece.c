/* piece.c - see piece.h. */
#include "proofs/commit/piece.h"

#include <assert.h>

#include "proofs/commit/commit.h"
#include "proofs/hash/merkle.h"

static uint64_t count_of(const struct tensor *tensor, uint64_t piece)
{
    uint64_t size = commit_tensor_size(tensor);

    return size / piece + (size % piece != 0);
}

uint64_t piece_count(const struct tensor *tensor)
{
    return count_of(tensor, PIECE_SIZE);
}

uint64_t piece_data_count(const struct tensor *tensor)
{
    return count_of(tensor, PIECE_DATA_SIZE);
}

uint64_t piece_count_of_state(const struct tape *tape)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < tape->state_count; i++) {
        count += piece_count(&tape->tensors[tape->states[i].before]);
    }
    return count;
}

void piece_hash(struct digest *hash, const void *bytes, size_t size)
{
    struct merkle_leaves leaves;

    assert(size <= PIECE_SIZE);
    merkle_leaves_init_bytes(&leaves, bytes, size);
    leaves.threads = 1;
    merkle_root(hash, &leaves);
}

/* A piece is a power of two of leaves: the tree over the pieces is the upper part of the tree. */
static void root_of(struct digest *root, enum commit_array kind, const struct tensor *tensor,
                    const struct digest *hashes, uint64_t count)
{
    struct merkle_leaves pieces;
    struct digest leaves_root;

    merkle_leaves_init_hashes(&pieces, hashes, count);
    pieces.threads = 1;
    merkle_root(&leaves_root, &pieces);
    commit_tensor_root_of(root, kind, tensor, &leaves_root);
}

void piece_tensor_root(struct digest *root, const struct tensor *tensor,
                       const struct digest *hashes)
{
    root_of(root, COMMIT_TENSOR, tensor, hashes, piece_count(tensor));
}

void piece_data_root(struct digest *root, const struct tensor *tensor, const struct digest *hashes)
{
    root_of(root, COMMIT_DATA, tensor, hashes, piece_data_count(tensor));
}

void piece_data_hashes(struct digest *hashes, const struct tensor *tensor, const void *data)
{
    const uint64_t size = commit_tensor_size(tensor);
    const uint64_t count = piece_data_count(tensor);

#pragma omp parallel for
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t from = i * PIECE_DATA_SIZE;
        const uint64_t left = size - from;

        piece_hash(&hashes[i], (const uint8_t *)data + from,
                   left < PIECE_DATA_SIZE ? (size_t)left : PIECE_DATA_SIZE);
    }
}

enum status piece_state_root(struct digest *root, const struct tape *tape,
                             const struct digest *hashes)
{
    struct commit_roots roots;

    commit_roots_init(&roots, COMMIT_STATE, 0);
    for (uint32_t i = 0; i < tape->state_count; i++) {
        const struct tensor *tensor = &tape->tensors[tape->states[i].before];
        struct digest item;

        piece_tensor_root(&item, tensor, hashes);
        TRY(commit_roots_add(&roots, &item));
        hashes += piece_count(tensor);
    }
    commit_roots_end(&roots, root);
    return STATUS_OK;
}
