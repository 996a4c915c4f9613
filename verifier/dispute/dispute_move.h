/*
 * dispute_move.h - what comes next in a dispute, and the file of a move that was found.
 */
#ifndef VERIFIER_DISPUTE_DISPUTE_MOVE_H
#define VERIFIER_DISPUTE_DISPUTE_MOVE_H

#include "base/buffer.h"
#include "base/io/file.h"

/* The numbers of those with a file stand in it. */
enum dispute_kind {
    DISPUTE_WAIT = 0,
    DISPUTE_QUERY = 1,    /* ask the accused on the ledger */
    DISPUTE_EVIDENCE = 2, /* convict it */
    DISPUTE_NO_FAULT = 3, /* the accused is right in everything: nothing can be shown */
    DISPUTE_RUN,          /* the step must be run to know */
    DISPUTE_TIMEOUT,      /* another's clock has run out */
    DISPUTE_LAPSE,        /* the accused is gone: take the bond back */
    DISPUTE_MISSED,       /* our own clock has run out */
};

#define DISPUTE_MOVE_MAX ((size_t)256 * 1024)

/* What the file of a move holds. */
struct dispute_move {
    enum dispute_kind kind;
    const uint8_t *payload; /* borrowed */
    size_t payload_size;
};

void dispute_move_write(struct buffer *bytes, const struct dispute_move *move);
/* Reads exactly size bytes and borrows them. STATUS_BAD_FORMAT: they are no move. */
MUST_CHECK enum status dispute_move_read(struct dispute_move *move, const uint8_t *bytes,
                                         size_t size, struct error *error);

/* Reads a file; move borrows bytes, which the caller releases on any outcome. */
MUST_CHECK enum status dispute_move_load(struct dispute_move *move, struct file_bytes *bytes,
                                         const char *path, struct error *error);

#endif /* VERIFIER_DISPUTE_DISPUTE_MOVE_H */
