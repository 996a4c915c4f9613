/*
 * evidence_reader.c - see evidence_reader.h.
 *
 * A path is the number of its siblings (1) and the siblings (32 each); index and count are known.
 */
#include "proofs/dispute/evidence_reader.h"

#include "proofs/commit/commit.h"
#include "proofs/hash/sha256.h"

enum evidence_reason evidence_reader_path(struct digest *root, struct evidence_reader *in,
                                          uint64_t index, uint64_t count, const struct digest *hash)
{
    struct merkle_path path = {.leaf_index = index, .leaf_count = count};

    path.sibling_count = reader_u8(&in->reader);
    if (path.sibling_count > MERKLE_DEPTH_MAX) {
        return EVIDENCE_BAD_PATH;
    }
    reader_copy(&in->reader, path.siblings, path.sibling_count * sizeof(struct digest));
    if (in->reader.failed) {
        return EVIDENCE_BAD_SIZE;
    }
    return merkle_path_root(root, &path, hash) == VERDICT_VALID ? EVIDENCE_FINE : EVIDENCE_BAD_PATH;
}

enum evidence_reason evidence_reader_digest(struct digest *digest, struct evidence_reader *in)
{
    reader_copy(&in->reader, digest->bytes, DIGEST_SIZE);
    return in->reader.failed ? EVIDENCE_BAD_SIZE : EVIDENCE_FINE;
}

enum evidence_reason evidence_reader_item(struct evidence_reader *in, const struct digest *item,
                                          uint64_t index, uint64_t count, const struct digest *tree)
{
    struct digest hash;
    struct digest root;
    enum evidence_reason reason;

    merkle_leaf_hash(&hash, item->bytes, DIGEST_SIZE);
    reason = evidence_reader_path(&root, in, index, count, &hash);
    if (reason != EVIDENCE_FINE) {
        return reason;
    }
    return digest_equal(&root, tree) ? EVIDENCE_FINE : EVIDENCE_BAD_TENSOR;
}

enum evidence_reason evidence_reader_trace_tree(struct evidence_reader *in)
{
    struct digest root;
    enum evidence_reason reason = evidence_reader_digest(&in->trace_tree, in);

    if (reason != EVIDENCE_FINE) {
        return reason;
    }
    commit_list_root_of(&root, COMMIT_TRACE, 0, in->trace_items, &in->trace_tree);
    if (!digest_equal(&root, &in->context->trace)) {
        return EVIDENCE_BAD_TRACE;
    }
    if (in->descriptor.batch == TENSOR_NONE) {
        return EVIDENCE_FINE;
    }
    reason = evidence_reader_digest(&in->batch_tree, in);
    if (reason != EVIDENCE_FINE) {
        return reason;
    }
    commit_list_root_of(&root, COMMIT_BATCH, in->descriptor.batch, in->descriptor.layout.inner,
                        &in->batch_tree);
    return digest_equal(&root, &in->context->batch) ? EVIDENCE_FINE : EVIDENCE_BAD_TRACE;
}

enum evidence_reason evidence_reader_label(const uint8_t **label, size_t *size,
                                           struct evidence_reader *in, const struct digest *wanted)
{
    struct digest hash;

    *size = reader_u8(&in->reader);
    *label = reader_take(&in->reader, *size);
    if (*label == NULL) {
        return EVIDENCE_BAD_SIZE;
    }
    sha256_scalar(&hash, *label, *size);
    return digest_equal(&hash, wanted) ? EVIDENCE_FINE : EVIDENCE_BAD_LABEL;
}

static bool padding_is_zero(const uint8_t leaf[MERKLE_LEAF_SIZE], uint64_t used)
{
    for (uint64_t at = used; at < MERKLE_LEAF_SIZE; at++) {
        if (leaf[at] != 0) {
            return false;
        }
    }
    return true;
}

bool evidence_reader_padding_fits(const uint8_t *leaf, uint64_t index, uint64_t byte_count)
{
    uint64_t left = byte_count - index * MERKLE_LEAF_SIZE;

    return left >= MERKLE_LEAF_SIZE || padding_is_zero(leaf, left);
}
