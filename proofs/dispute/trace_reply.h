/*
 * trace_reply.h - the reply to a query: what lies below a root or a node, checked against its hash.
 *
 * Known before the reply are the hash of the target, how many leaves it covers and, of a root, the
 * header that the hash is of. A reply is a list of hashes on one level of the tree, left to right,
 * or leaves. Folding them pairwise, the odd one rising, must give the known hash. So a reply
 * belongs to its root or is refused, and a contract can check it with nothing but these bytes.
 * Whether the step gives these numbers is another matter.
 *
 * Nothing here allocates, reads files or prints.
 */
#ifndef PROOFS_DISPUTE_TRACE_REPLY_H
#define PROOFS_DISPUTE_TRACE_REPLY_H

#include "proofs/commit/commit.h"
#include "proofs/dispute/trace_query.h"

#define TRACE_REPLY_BYTES_MAX (DIGEST_SIZE + TRACE_QUERY_LEAVES_MAX * MERKLE_LEAF_SIZE)

_Static_assert(TRACE_QUERY_ENTRIES_MAX *DIGEST_SIZE <= TRACE_QUERY_LEAVES_MAX * MERKLE_LEAF_SIZE,
               "leaves are the longest reply");

/* What a query is about, as far as it is known before the reply. */
struct trace_reply_target {
    struct digest known; /* the node's hash, or the hash of the header */
    bool is_unknown;     /* nobody has committed to it: any reply does, by its tree root */
    uint64_t count;      /* leaves below it */
    bool is_list;        /* its leaves are items of 32 bytes, not of 1,024 */
    /* Bytes of its last leaf that are the tensor's: those behind them must be zero. */
    uint32_t last_size;
    /* The header of a root, its tree's root still zeros; size 0: a node. */
    uint8_t header[COMMIT_TENSOR_HEADER_MAX];
    uint32_t header_size;
};

/* A reply that was checked. Borrows the bytes that it was read from. */
struct trace_reply {
    struct digest root;      /* the known hash, or what the reply commits to */
    struct digest tree_root; /* of the target's own tree: of a node, its hash */
    uint32_t level;          /* of the entries above the leaves */
    uint32_t entries;        /* how many */
    struct digest hashes[TRACE_QUERY_ENTRIES_MAX]; /* of the entries, as nodes of the tree */
    const uint8_t *items;  /* lists on level 0: the items themselves, 32 bytes each; else NULL */
    const uint8_t *leaves; /* tensors with few leaves: these, 1,024 bytes each; else NULL */
};

/*
 * Everything of target but what is known, from the tape. known is the list's root, the tensor's
 * root or the node's hash; zeros of a micro-batch's list, to whose root nobody has committed yet:
 * only a ledger may take a reply to that. STATUS_NOT_FOUND: there is no such thing; STATUS_USAGE:
 * TRACE_QUERY_DIVERGED, whose reply is evidence (evidence.h), or TRACE_QUERY_PARTS
 * (partial_sums.h).
 */
MUST_CHECK enum status trace_reply_target(struct trace_reply_target *target,
                                          const struct trace_query *query, const struct tape *tape,
                                          const struct digest *known, struct error *error);

/* Bytes of the one reply that a target can have. */
size_t trace_reply_size(const struct trace_reply_target *target);

/* Safe on hostile bytes; reply means something only on VERDICT_VALID. */
MUST_CHECK enum verdict trace_reply_check(struct trace_reply *reply,
                                          const struct trace_reply_target *target,
                                          const uint8_t *bytes, size_t size);

/* What replies are written from: a tree and the bytes of its leaves. */
struct trace_reply_tree {
    struct merkle_leaves hashes; /* of all leaves, by hash */
    const struct digest *items;  /* of a list; NULL: a tensor */
    const uint8_t *bytes;        /* of a tensor, byte_count of them */
    uint64_t byte_count;
};

/*
 * The reply to a query about tree, which is the list's or the tensor's and has the node; returns
 * its size. bytes has room for TRACE_REPLY_BYTES_MAX.
 */
size_t trace_reply_write(uint8_t *bytes, const struct trace_query *query,
                         const struct trace_reply_tree *tree);

#endif /* PROOFS_DISPUTE_TRACE_REPLY_H */
