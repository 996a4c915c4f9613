/*
 * trace_walk.h - the claimant's side of a walk: which query comes next, until the first difference
 * is found.
 *
 * The claimant has run the disputed step itself (trace_server.h). From the root that the accused
 * gave it queries its way down to the leftmost thing in which the accused's trace differs from its
 * own: a state before the step, or a leaf of an output. Everything to the left is equal to the
 * claimant's own, and the replies show every sibling above. So any proof of the difference, and of
 * everything that the operation reads, can be written under the accused's own root. Where the
 * traces are equal, the state that was committed to after the step may still not be the one that
 * the trace ends in.
 *
 * Of a step with micro-batches the trace's list shows only what they hand on. Where the leftmost
 * difference is what a micro-batch handed on, the accused must commit to that micro-batch's own
 * list, and the walk goes through it: the lie is the leftmost difference of both lists, in the
 * order in which the step makes them.
 *
 * A reply may come from a ledger or from anywhere. Each one is checked, and one that does not fit
 * the query leaves the walk as it was. Whether a silent accused loses is the ledger's business.
 */
#ifndef PROOFS_DISPUTE_TRACE_WALK_H
#define PROOFS_DISPUTE_TRACE_WALK_H

#include "base/buffer.h"
#include "proofs/dispute/trace_server.h"

#define TRACE_WALK_REPLIES_MAX 12 /* enough for the largest tape that there can be */
#define TRACE_WALK_ROWS_MAX    5  /* replies about one tree */
#define TRACE_WALK_BYTES_MAX                                                                       \
    (32 + 4 * DIGEST_SIZE + 2 + TRACE_WALK_REPLIES_MAX * (2 + TRACE_REPLY_BYTES_MAX))

/* What the accused committed to. */
struct trace_walk_case {
    struct digest trace_root;
    struct digest state_root; /* of the state before the step */
    struct digest next_root;  /* of the state after it */
    struct digest batch_root; /* of the micro-batch that a ledger asked for last; zeros: none */
};

enum trace_walk_end {
    TRACE_WALK_GOES_ON = 0,
    TRACE_WALK_NO_LIE,      /* all that was committed to is what this machine makes */
    TRACE_WALK_ELEMENT,     /* an output's leaf is wrong: item, leaf */
    TRACE_WALK_FIRST_STATE, /* the trace begins elsewhere than the state before: item: which */
    TRACE_WALK_NEXT_STATE,  /* the state after is not what the trace ends in: item: which */
};

/* One reply about a tree: the nodes of a level that lie below a node of a higher one. */
struct trace_walk_row {
    uint32_t top; /* the level of that node */
    uint32_t level;
    uint64_t first;
    uint32_t count;
    struct digest hashes[TRACE_QUERY_ENTRIES_MAX];
};

/* A tree of the accused's, as far as replies show it: rows, each below a node of the one before. */
struct trace_walk_tree {
    uint64_t count; /* leaves */
    struct digest root;
    uint32_t row_count;
    struct trace_walk_row rows[TRACE_WALK_ROWS_MAX];
    uint64_t index; /* the leftmost node of the last row that differs from our own */
};

/* The item of a list that differs. */
struct trace_walk_found {
    bool known;
    uint32_t index;
    struct digest root; /* as the accused has it */
};

struct trace_walk {
    struct trace_server *own; /* borrowed: our own run of the step */
    struct trace_walk_case accused;
    enum trace_walk_end end;
    enum trace_query_list list; /* which list differs; TRACE_QUERY_TRACE: the traces do */
    struct trace_walk_tree items;
    struct trace_walk_found listed; /* in that list */
    uint32_t batch;                 /* the micro-batch that made it, or TENSOR_NONE */
    bool batch_known;               /* the accused has shown the root of its own list */
    struct trace_walk_tree inner;   /* that list; without rows it is as our own */
    struct trace_walk_found within; /* in it */
    struct trace_walk_tree tensor;
    bool item_known;         /* which of the two is the lie */
    struct digest item_root; /* of that item, as the accused has it */
    uint32_t item;           /* its number, through all lists; of a state list which of it */
    uint64_t leaf;           /* which of the tensor */
    uint8_t leaf_bytes[MERKLE_LEAF_SIZE];
    struct buffer reply; /* every reply so far: size (2), bytes */
    uint32_t reply_count;
};

/* own must be a run of the step from the very state that the case names, else STATUS_REFUSED. */
MUST_CHECK enum status trace_walk_open(struct trace_walk *walk, struct trace_server *own,
                                       const struct trace_walk_case *accused, struct error *error);
void trace_walk_close(struct trace_walk *walk); /* a zero-filled one is allowed */

/* The next query, and the hash that its target is known by; false: the walk has ended. */
bool trace_walk_next(struct trace_query *query, struct digest *known,
                     const struct trace_walk *walk);

/* Takes the reply. STATUS_BAD_FORMAT: it is no reply to the query; look elsewhere. To the query for
 * the list of a micro-batch a ledger alone has replies, until the case has its root. */
MUST_CHECK enum status trace_walk_take(struct trace_walk *walk, const uint8_t *bytes, size_t size,
                                       struct error *error);

/* A walk outlives its process: bytes are appended to buffer. Reading walks it again, with every
 * reply checked as the first time. */
MUST_CHECK enum status trace_walk_save(struct buffer *bytes, const struct trace_walk *walk,
                                       struct error *error);
MUST_CHECK enum status trace_walk_load(struct trace_walk *walk, struct trace_server *own,
                                       const uint8_t *bytes, size_t size, struct error *error);

/* ---- what is known of the accused's trees -------------------------------- */

/* The root of the tree over the items of the accused's trace, known from the first reply on. Of the
 * list of the micro-batch, where that is known. */
void trace_walk_trace_tree(struct digest *root, const struct trace_walk *walk);
void trace_walk_batch_tree(struct digest *root, const struct trace_walk *walk);

/*
 * The root of a tensor of the accused's trace, and its path in its list. All items of the trace's
 * list are known when the traces are equal; otherwise those up to the one that differs, once that
 * is known. Likewise of the micro-batch's list.
 */
bool trace_walk_knows(const struct trace_walk *walk, uint32_t item);
void trace_walk_item(struct digest *root, struct merkle_path *path, const struct trace_walk *walk,
                     uint32_t item);

/* The siblings above the node that trace_walk_next() names, up to the root of its tree: the path
 * of a leaf at query->index of a tree whose leaves are the nodes of that level. */
void trace_walk_node_path(struct merkle_path *path, const struct trace_walk *walk,
                          const struct trace_query *query);

/* Any node that is known of the accused's lists, and of the tensor that differs; false: it was
 * not shown, and is not to the left of what differs. */
MUST_CHECK bool trace_walk_list_node(struct digest *node, const struct trace_walk *walk,
                                     enum trace_query_list list, uint32_t level, uint64_t index);
MUST_CHECK bool trace_walk_tensor_node(struct digest *node, const struct trace_walk *walk,
                                       uint32_t level, uint64_t index);

#endif /* PROOFS_DISPUTE_TRACE_WALK_H */
