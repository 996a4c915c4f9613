/*
 * trace.h - the roots of the tensors that one step makes, and openings of single elements.
 *
 * The trace of a step is the list of the roots of the states before it and of every output of every
 * operation, in tape order. One step in trace mode makes it: each output is hashed and then
 * dropped, so memory holds one digest per tensor. To open elements, name them before the run, which
 * keeps their leaves.
 *
 * Of a step with micro-batches the trace's list has what they hand on, their accumulators, and what
 * is made outside of them. All else that a micro-batch makes stands in a list of its own, with a
 * root of its own, and is hashed only when somebody asks about that micro-batch. Items are numbered
 * through all lists (engine/tape/repeat.h).
 *
 * Tour 7 of 10: next read verifier/check/verdict.h, who calls it false.
 */
#ifndef PROOFS_COMMIT_TRACE_H
#define PROOFS_COMMIT_TRACE_H

#include "base/error.h"
#include "engine/plan/backend.h"
#include "engine/tape/repeat.h"
#include "proofs/commit/commit.h"
#include "proofs/commit/state_root.h"

/* The items are the states, then the outputs. Those of a micro-batch's own list are zeros until it
 * is hashed. */
struct trace {
    const struct tape *tape; /* borrowed */
    struct repeat_layout layout;
    uint32_t state_count;
    uint32_t list_count; /* of the trace's list */
    uint32_t item_count; /* of all lists */
    struct digest *items;
    struct digest *hashes;    /* of the items as leaves of their trees */
    struct digest root;       /* of the trace */
    struct digest state_root; /* of the state before the step */
    struct digest next_root;  /* of the state after it */
};

/*
 * One element, proven under a trace root, or under the root of a micro-batch: the leaf that holds
 * it, the path of the leaf in its tensor, the tensor's header, and the path of the tensor's root in
 * the list.
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
 * trace and the openings, whose item and element the caller has set, and hashes the micro-batches
 * that they are of. Afterwards the machine holds the state after the step. The caller releases
 * trace.
 */
MUST_CHECK enum status trace_run(struct trace *trace, struct machine *machine,
                                 struct trace_opening *openings, uint32_t opening_count,
                                 struct error *error);
void trace_release(struct trace *trace);

/* Called with each tensor of the step, as they are made; bytes are borrowed for the call. Of items
 * that it does not want, only those that are hashed pass. NULL: it wants all. */
struct trace_watcher {
    enum status (*pass)(void *context, uint32_t item, const struct tensor *tensor,
                        const void *bytes, struct error *error);
    void *context;
    bool (*wants)(const void *context, uint32_t item);
};

/* As trace_run(), without openings: the watcher takes what it needs. */
MUST_CHECK enum status trace_watch(struct trace *trace, struct machine *machine,
                                   const struct trace_watcher *watcher, struct error *error);

/* The same, and hashes all micro-batches; watcher may be NULL. */
MUST_CHECK enum status trace_watch_all(struct trace *trace, struct machine *machine,
                                       const struct trace_watcher *watcher, struct error *error);

/* Hashes a micro-batch of a step that was traced before: runs it again, from the state before
 * it. */
MUST_CHECK enum status trace_watch_batch(struct trace *trace, uint32_t batch,
                                         struct machine *machine,
                                         const struct trace_watcher *watcher, struct error *error);

/* The trace whose items have these roots, item_count of 32 bytes: a step that was run before. */
MUST_CHECK enum status trace_of_roots(struct trace *trace, const struct tape *tape,
                                      const uint8_t *roots, struct error *error);

/* ---- which item is which ---- */

/* A list and a place in it: the trace's (batch is TENSOR_NONE), or a micro-batch's own. */
struct trace_place {
    uint32_t batch;
    uint32_t index;
    uint32_t count; /* items of that list */
    uint32_t first; /* its first item */
};
void trace_place_of(struct trace_place *place, const struct repeat_layout *layout, uint32_t item,
                    uint32_t list_count);

/* Was this micro-batch hashed? Its list is not empty. */
bool trace_batch_known(const struct trace *trace, uint32_t batch);

/* The root of the list of a micro-batch that was hashed. */
void trace_batch_root(struct digest *root, const struct trace *trace, uint32_t batch);

/* Is item a made before item b in the step? Outputs, not states. */
bool trace_is_before(const struct tape *tape, uint32_t a, uint32_t b);

/* States are the first items, in their order; then outputs. The item of an output of an
 * operation; the tensor of an item. */
uint32_t trace_item_of_output(const struct tape *tape, struct op_turn maker, uint32_t output);
uint32_t trace_tensor_at(const struct tape *tape, uint32_t item);
/* The operation that makes an item after the states, and which of its outputs it is. */
void trace_output_at(struct op_turn *maker, uint32_t *output, const struct tape *tape,
                     uint32_t item);
uint32_t trace_item_count(const struct tape *tape); /* of all lists */
uint32_t trace_list_count(const struct tape *tape); /* of the trace's own */

/* For each state the item that holds its next value: its own where it never changes. The caller
 * frees the list. */
MUST_CHECK enum status trace_next_items(uint32_t **items, const struct tape *tape,
                                        struct error *error);

/* The node at (level, index) of the tree over the trace's list; it must exist. */
void trace_node(struct digest *node, const struct trace *trace, uint32_t level, uint64_t index);

/* Does opening lead to root, of the trace or of a micro-batch of a tape with these lists? On
 * VERDICT_VALID *bits is the element, as rules see it. */
MUST_CHECK enum verdict trace_opening_check(uint32_t *bits, const struct trace_opening *opening,
                                            const struct digest *root, const struct tape *tape);

size_t trace_opening_write(uint8_t bytes[TRACE_OPENING_BYTES_MAX],
                           const struct trace_opening *opening);
MUST_CHECK enum status trace_opening_read(struct trace_opening *opening, const uint8_t *bytes,
                                          size_t size);

#endif /* PROOFS_COMMIT_TRACE_H */
