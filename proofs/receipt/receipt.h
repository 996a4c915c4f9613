/*
 * receipt.h - a receipt: the claim that a model, asked so, answered so.
 *
 * It is a file of canonical JSON (docs/FORMATS.md, section 15): only the bytes that receipt_bytes()
 * writes are read. The file is hostile: bounded, every key of it known, every number in its range.
 * A receipt that is read is well formed, and no more; receipt_check() says whether it is true.
 */
#ifndef PROOFS_RECEIPT_RECEIPT_H
#define PROOFS_RECEIPT_RECEIPT_H

#include "base/buffer.h"
#include "base/digest.h"
#include "engine/models/model.h"

#define RECEIPT_FORMAT    "lockstep-receipt-1"
#define RECEIPT_STOPS_MAX 64
#define RECEIPT_SIZE_MAX  ((size_t)4 << 20)

struct receipt {
    uint32_t rules_version;
    struct digest model_root;          /* proofs/model/model_root.h */
    struct digest config;              /* SHA-256 of the model's config.json */
    struct receipt_row row;            /* owned */
    uint32_t stops[RECEIPT_STOPS_MAX]; /* tokens that end an answer, rising */
    uint32_t stop_count;
};

/* Room for an answer to a prompt; its tokens and thresholds are zeros. */
MUST_CHECK enum status receipt_init(struct receipt *receipt, uint32_t count, uint32_t prompt,
                                    struct error *error);
void receipt_release(struct receipt *receipt); /* a zero-filled one is allowed */

/* Tokens of the answer. */
uint32_t receipt_answer(const struct receipt *receipt);
/* Does the answer end with a token that ends answers? */
bool receipt_stopped(const struct receipt *receipt);

/* STATUS_BAD_FORMAT: no receipt. STATUS_REFUSED: one of another version of the rules. On failure
 * there is nothing to release. */
MUST_CHECK enum status receipt_parse(struct receipt *receipt, struct error *error, const char *what,
                                     const void *bytes, size_t size);
MUST_CHECK enum status receipt_read(struct receipt *receipt, struct error *error, const char *path);

/* The file. The caller has initialized the buffer, with RECEIPT_SIZE_MAX, and releases it. */
MUST_CHECK enum status receipt_bytes(struct buffer *bytes, struct error *error,
                                     const struct receipt *receipt);
/* Whole, or not at all. */
MUST_CHECK enum status receipt_write(const struct receipt *receipt, struct error *error,
                                     const char *path);

/* Does the file begin like a receipt? */
bool receipt_is(const char *path);

#endif /* PROOFS_RECEIPT_RECEIPT_H */
