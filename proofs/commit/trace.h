/*
 * trace.h - the roots of all tensors that one step makes, and openings of single elements.
 *
 * The trace of a step is the list of the roots of the states before it and of every output of every
 * operation, in tape order. One step in trace mode makes it: each output is hashed and then
 * dropped, so memory holds one digest per tensor. To open elements, name them before the run, which
 * keeps their leaves.
 */
#ifndef PROOFS_COMMIT_TRACE_H
#define PROOFS_COMMIT_TRACE_H

#include "base/error.h"
#include "engine/plan/backend.h"
#include "proofs/commit/commit.h"
#include "proofs/commit/state_root.h"

/* The items are the states, then the outputs. */
struct trace {
    const struct tape *tape; /* borrowed */
    uint32_t state_count;
    uint32_t item_count;
    struct digest *items;
    struct digest *hashes;    /* of the items as leaves of the tree */
    struct digest root;       /* of the trace */
    struct digest state_root; /* of the state before the step */
    struct digest next_root;  /* of the state after it */
};

/*
 * One element, proven under a trace root: the leaf that holds it, the path of the leaf in its
 * tensor, the tensor's header, and the path of the tensor's root in the list.
 */
struct trace_opening {
    uint32_t item;    /* which tensor of the trace */
    uint64_t element; /* which element of it */
    uint8_t leaf[MERKLE_LEAF_SIZE];
    struct merkle_path leaf_path;
    uint8_t header[COMMIT_TENSOR_HEADER_MAX];
    uint32_t header_size;
    struct merkle_path item_path;
};

/* The most bytes of an opening. */
#define TRACE_OPENING_BYTES_MAX                                                                    \
    (4 + 8 + MERKLE_LEAF_SIZE + 2 + COMMIT_TENSOR_HEADER_MAX + 2 * (2 + MERKLE_PATH_BYTES_MAX))

/*
 * Runs one step of machine, which must be in trace mode and hold the state before the step. Fills
 * trace and the openings, whose item and element the caller has set. Afterwards the machine holds
 * the state after the step. The caller releases trace.
 */
MUST_CHECK enum status trace_run(struct trace *trace, struct machine *machine,
                                 struct trace_opening *openings, uint32_t opening_count,
                                 struct error *error);
void trace_release(struct trace *trace);

/* Called with each tensor of the trace, in order; bytes are borrowed for the call. */
struct trace_watcher {
    enum status (*pass)(void *context, uint32_t item, const struct tensor *tensor,
                        const void *bytes, struct error *error);
    void *context;
};

/* As trace_run(), without openings: the watcher takes what it needs. */
MUST_CHECK enum status trace_watch(struct trace *trace, struct machine *machine,
                                   const struct trace_watcher *watcher, struct error *error);

/* The trace whose items have these roots, item_count of 32 bytes: a step that was run before. */
MUST_CHECK enum status trace_of_roots(struct trace *trace, const struct tape *tape,
                                      const uint8_t *roots, struct error *error);

/* States are the first items, in their order; then outputs. The item of an output of an
 * operation; the tensor of an item. */
uint32_t trace_item_of_output(const struct tape *tape, uint32_t op, uint32_t output);
uint32_t trace_tensor_at(const struct tape *tape, uint32_t item);
/* The operation that makes an item after the states, and which of its outputs it is. */
void trace_output_at(uint32_t *op, uint32_t *output, const struct tape *tape, uint32_t item);
uint32_t trace_item_count(const struct tape *tape);

/* For each state the item that holds its next value: its own where it never changes. The caller
 * frees the list. */
MUST_CHECK enum status trace_next_items(uint32_t **items, const struct tape *tape,
                                        struct error *error);

/* The node at (level, index) of the tree over the items; it must exist. */
void trace_node(struct digest *node, const struct trace *trace, uint32_t level, uint64_t index);

/* Does opening lead to root? On VERDICT_VALID *bits is the element, as rules see it. */
MUST_CHECK enum verdict trace_opening_check(uint32_t *bits, const struct trace_opening *opening,
                                            const struct digest *root, uint32_t item_count);

size_t trace_opening_write(uint8_t bytes[TRACE_OPENING_BYTES_MAX],
                           const struct trace_opening *opening);
MUST_CHECK enum status trace_opening_read(struct trace_opening *opening, const uint8_t *bytes,
                                          size_t size);

#endif /* PROOFS_COMMIT_TRACE_H */
