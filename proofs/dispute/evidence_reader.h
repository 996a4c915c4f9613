/*
 * evidence_reader.h - reads evidence front to back, for evidence_judge.c and evidence_element.c.
 *
 * Every function gives the reason why it stops. The reader then stands behind what was read.
 */
#ifndef PROOFS_DISPUTE_EVIDENCE_READER_H
#define PROOFS_DISPUTE_EVIDENCE_READER_H

#include "base/reader.h"
#include "proofs/commit/descriptor.h"
#include "proofs/dispute/evidence.h"

/* The leaves that are shown of an operand, where they lie in the evidence. */
struct shown {
    uint32_t leaf_count;    /* 0: the operand is not used */
    const uint8_t *indexes; /* 8 bytes each */
    const uint8_t *leaves;
    uint32_t last; /* the leaf that was read last: the next element is mostly in it too */
};

struct evidence_reader {
    const struct evidence_context *context;
    struct evidence_ruling *ruling;
    struct error *error;
    enum status status; /* no memory */
    struct reader reader;
    enum evidence_kind kind;
    uint32_t trace_items;
    const uint8_t *descriptor_bytes;
    size_t descriptor_size;
    struct descriptor descriptor;
    struct digest trace_tree; /* tree roots that were seen to be in the context's roots */
    struct digest batch_tree;
    struct shown shown[DESCRIPTOR_OPERANDS_MAX];
    bool missing; /* the rule reads an element that is not shown */
};

/* ---- pieces that all kinds have ---- */

/* Reads a path for the item at index of count, and says where it leads to from hash. */
enum evidence_reason evidence_reader_path(struct digest *root, struct evidence_reader *in,
                                          uint64_t index, uint64_t count,
                                          const struct digest *hash);
enum evidence_reason evidence_reader_digest(struct digest *digest, struct evidence_reader *in);

/* Does a path that follows lead from a tensor root at index of count to this tree root? */
enum evidence_reason evidence_reader_item(struct evidence_reader *in, const struct digest *item,
                                          uint64_t index, uint64_t count,
                                          const struct digest *tree);

/* The tree root of the trace follows; of an operation of a micro-batch that of its own list too. */
enum evidence_reason evidence_reader_trace_tree(struct evidence_reader *in);

/* A label follows, which hashes to what is wanted. */
enum evidence_reason evidence_reader_label(const uint8_t **label, size_t *size,
                                           struct evidence_reader *in, const struct digest *wanted);

/* Is the leaf at index, of an array of byte_count bytes, zero behind the end of the array? */
bool evidence_reader_padding_fits(const uint8_t *leaf, uint64_t index, uint64_t byte_count);

/* ---- kinds 1 and 5: evidence_element.c ---- */

enum evidence_reason evidence_reader_element(struct evidence_reader *in);

/* The element that is committed to, and the parts of its axis; of kind 5 those of the part. */
enum evidence_reason evidence_reader_committed(struct evidence_committed *committed,
                                               struct evidence_reader *in);

#endif /* PROOFS_DISPUTE_EVIDENCE_READER_H */
