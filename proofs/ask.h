/*
 * ask.h - what a claimant may ask of a step that is disputed, and how many answers it takes.
 *
 * A step is committed to by the root of its trace (trace.h) and the root of the state after it.
 * A walk leads from such a root down to one leaf: each ask names a list, a tensor or a node in one
 * of their trees, and each answer (tell.h) shows what lies up to eight levels below. So that a
 * contract can bound what it reads, an answer has at most 256 hashes, or 16 leaves.
 *
 * Nothing here allocates, reads files or prints.
 */
#ifndef PROOFS_ASK_H
#define PROOFS_ASK_H

#include "base/error.h"
#include "engine/tape.h"

#define ASK_SIZE        15 /* bytes of every ask */
#define ASK_TEXT_MAX    64 /* and as text, with its NUL */
#define ASK_LEVELS      8  /* of a tree that one answer shows */
#define ASK_ENTRIES_MAX (1u << ASK_LEVELS)
#define ASK_LEAVES_MAX  16 /* a part of a tensor with no more leaves is shown as it is */
#define ASK_TRACE_TELLS 6  /* enough for any step of which no tensor has more than 2^28 leaves */

enum ask_kind {
    ASK_LIST = 1,    /* a list: its tree's root and what lies below it */
    ASK_LIST_NODE,   /* what lies below a node of that tree */
    ASK_TENSOR,      /* a tensor of the trace: its tree's root and what lies below it */
    ASK_TENSOR_NODE, /* what lies below a node of that tree */
    ASK_DIVERGED,    /* an element of the next state that is no finite number */
    ASK_PARTS,       /* what the parts of an element's axis come to (parts.h) */
};

enum ask_list {
    ASK_TRACE = 0,  /* the trace: the states before the step, then every output */
    ASK_NEXT_STATE, /* the state after the step */
};

/* What a kind does not use is zero. */
struct ask {
    enum ask_kind kind;
    enum ask_list list; /* LIST, LIST_NODE */
    uint32_t item;      /* TENSOR, TENSOR_NODE, PARTS: of the trace */
    uint32_t level;     /* LIST_NODE, TENSOR_NODE: the node, as merkle.h counts */
    uint64_t index;     /* likewise; PARTS: the element */
};

/* What an answer shows of a node over `count` leaves: the nodes `level` levels above the leaves. */
struct ask_span {
    uint64_t count;
    uint32_t level;
    uint32_t entries; /* at most ASK_ENTRIES_MAX */
};

/* count > 0 leaves, at most MERKLE_LEAVES_MAX. */
struct ask_span ask_span(uint64_t count);

/* The leaves that a node covers; 0: a tree of count leaves has no such node below its root. */
uint64_t ask_node_count(uint64_t count, uint32_t level, uint64_t index);

/* Leaves of the tree of a list of a tape, and of a tensor's. */
uint64_t ask_list_count(const struct tape *tape, enum ask_list list);
uint64_t ask_tensor_count(const struct tensor *tensor);

/*
 * Enough answers for the walk to any leaf of any step of tape, whatever the accused made: known
 * from the shapes alone.
 */
uint32_t ask_tells_max(const struct tape *tape);

/* Is there such a thing in steps of tape? STATUS_NOT_FOUND says what is not there. */
MUST_CHECK enum status ask_check(const struct ask *ask, const struct tape *tape,
                                 struct error *error);

/* Told of an ask; but for STATUS_OK the visit ends. */
struct ask_visitor {
    enum status (*told)(void *context, const struct ask *ask, struct error *error);
    void *context;
};

/* Tells every ask about trees that a walk about a step of tape can come to: those about the lists,
 * then those about each tensor in turn. */
MUST_CHECK enum status ask_visit(const struct tape *tape, const struct ask_visitor *visitor,
                                 struct error *error);

/* The canonical bytes (docs/FORMATS.md). Only bytes that ask_write() would write are read. */
void ask_write(uint8_t bytes[ASK_SIZE], const struct ask *ask);
MUST_CHECK enum status ask_read(struct ask *ask, const uint8_t *bytes, size_t size);

/*
 * The same as text, which is also the end of its place in an address: list/trace, list/next,
 * node/trace/LEVEL/INDEX, tensor/ITEM, tensor-node/ITEM/LEVEL/INDEX, diverged, parts/ITEM/ELEMENT.
 * Numbers are decimal without signs or leading zeros.
 */
void ask_text(char text[ASK_TEXT_MAX], const struct ask *ask);
MUST_CHECK enum status ask_parse(struct ask *ask, const char *text);

#endif /* PROOFS_ASK_H */
