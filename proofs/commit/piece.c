/* piece.c - see piece.h. */
#include "proofs/commit/piece.h"

#include <assert.h>

#include "proofs/commit/commit.h"
#include "proofs/hash/merkle.h"

uint64_t piece_count(const struct tensor *tensor)
{
    uint64_t size = commit_tensor_size(tensor);

    return size / PIECE_SIZE + (size % PIECE_SIZE != 0);
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

void piece_tensor_root(struct digest *root, const struct tensor *tensor,
                       const struct digest *hashes)
{
    struct merkle_leaves pieces;
    struct digest leaves_root;

    /* PIECE_SIZE is a power of two of leaves: the tree over the pieces is the tree's upper part. */
    merkle_leaves_init_hashes(&pieces, hashes, piece_count(tensor));
    pieces.threads = 1;
    merkle_root(&leaves_root, &pieces);
    commit_tensor_root_of(root, COMMIT_TENSOR, tensor, &leaves_root);
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
