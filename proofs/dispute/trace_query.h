/*
 * trace_query.h - what a claimant may query of a step that is disputed, and how many replies it
 * takes.
 *
 * A step is committed to by the root of its trace (trace.h) and the root of the state after it. A
 * walk leads from such a root down to one leaf. Each query names a list, a tensor or a node in one
 * of their trees, and each reply (trace_reply.h) shows what lies up to eight levels below. So that
 * a contract can bound what it reads, a reply has at most 256 hashes, or 16 leaves.
 *
 * Nothing here allocates, reads files or prints.
 */
#ifndef PROOFS_DISPUTE_TRACE_QUERY_H
#define PROOFS_DISPUTE_TRACE_QUERY_H

#include "base/error.h"
#include "engine/tape/tape.h"

#define TRACE_QUERY_SIZE        15 /* bytes of every query */
#define TRACE_QUERY_TEXT_MAX    64 /* and as text, with its NUL */
#define TRACE_QUERY_LEVELS      8  /* of a tree that one reply shows */
#define TRACE_QUERY_ENTRIES_MAX (1u << TRACE_QUERY_LEVELS)
#define TRACE_QUERY_LEAVES_MAX  16 /* a part of a tensor with no more leaves is shown as it is */
#define TRACE_QUERY_TRACE_REPLIES                                                                  \
    9 /* enough for any step of which no tensor has more than 2^28 leaves */

enum trace_query_kind {
    TRACE_QUERY_LIST = 1,    /* a list: its tree's root and what lies below it */
    TRACE_QUERY_LIST_NODE,   /* what lies below a node of that tree */
    TRACE_QUERY_TENSOR,      /* a tensor of the trace: its tree's root and what lies below it */
    TRACE_QUERY_TENSOR_NODE, /* what lies below a node of that tree */
    TRACE_QUERY_DIVERGED,    /* an element of the next state that is no finite number */
    TRACE_QUERY_PARTS,       /* what the parts of an axis come to (partial_sums.h) */
};

enum trace_query_list {
    TRACE_QUERY_TRACE = 0,  /* the trace's: the states before the step, then outputs */
    TRACE_QUERY_NEXT_STATE, /* the state after the step */
    TRACE_QUERY_BATCH,      /* a micro-batch's own list (trace.h) */
};

/* What a kind does not use is zero. */
struct trace_query {
    enum trace_query_kind kind;
    enum trace_query_list list; /* LIST, LIST_NODE */
    uint32_t item;              /* of the trace; where list is BATCH, which micro-batch */
    uint32_t level;             /* LIST_NODE, TENSOR_NODE: the node, as merkle.h counts; PARTS: 0 of
                                   the whole axis, 1 of a part, which a ledger query names */
    uint64_t index;             /* likewise; PARTS: the element */
};

/* What a reply shows of a node over `count` leaves: the nodes `level` levels above the leaves. */
struct trace_query_span {
    uint64_t count;
    uint32_t level;
    uint32_t entries; /* at most TRACE_QUERY_ENTRIES_MAX */
};

/* count > 0 leaves, at most MERKLE_LEAVES_MAX. */
struct trace_query_span trace_query_span(uint64_t count);

/* The leaves that a node covers; 0: a tree of count leaves has no such node below its root. */
uint64_t trace_query_node_count(uint64_t count, uint32_t level, uint64_t index);

/* Leaves of the tree of a list of a tape, and of a tensor's. */
uint64_t trace_query_list_count(const struct tape *tape, enum trace_query_list list);
uint64_t trace_query_tensor_count(const struct tensor *tensor);

/*
 * Enough replies for the walk to any leaf of any step of tape, with any numbers of the accused:
 * known from the shapes alone.
 */
uint32_t trace_query_replies_max(const struct tape *tape);

/* Is there such a thing in steps of tape? STATUS_NOT_FOUND says what is not there. */
MUST_CHECK enum status trace_query_check(const struct trace_query *query, const struct tape *tape,
                                         struct error *error);

/* Called for a query; the visit ends with any status but STATUS_OK. */
struct trace_query_visitor {
    enum status (*visit)(void *context, const struct trace_query *query, struct error *error);
    void *context;
};

/* Visits every query about trees that a walk about a step of tape can come to: about the lists,
 * then about each tensor in turn. */
MUST_CHECK enum status trace_query_visit(const struct tape *tape,
                                         const struct trace_query_visitor *visitor,
                                         struct error *error);

/* The canonical bytes (docs/FORMATS.md). Only bytes that trace_query_write() would write are
 * read. */
void trace_query_write(uint8_t bytes[TRACE_QUERY_SIZE], const struct trace_query *query);
MUST_CHECK enum status trace_query_read(struct trace_query *query, const uint8_t *bytes,
                                        size_t size);

/*
 * The same as text, which is also the end of its place in an address: list/trace, list/next,
 * list/batch/NUMBER, node/trace/LEVEL/INDEX, node/batch/NUMBER/LEVEL/INDEX, tensor/ITEM,
 * tensor-node/ITEM/LEVEL/INDEX, diverged, parts/ITEM/ELEMENT, parts/ITEM/ELEMENT/part. Numbers are
 * decimal without signs or leading zeros.
 */
void trace_query_text(char text[TRACE_QUERY_TEXT_MAX], const struct trace_query *query);
MUST_CHECK enum status trace_query_parse(struct trace_query *query, const char *text);

#endif /* PROOFS_DISPUTE_TRACE_QUERY_H */
