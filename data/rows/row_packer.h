/*
 * row_packer.h - examples into rows of one length.
 *
 * An example goes whole into the open row with the least room that holds it, the oldest on ties.
 * Where none does, a new row is opened; if ROW_OPEN_MAX are open, the fullest (oldest) is closed
 * first. In the end the others are closed by the same rule. Rows lie in the order in which they
 * were closed. Of each token stand: its id, whether it is learned (never the first of an example,
 * which nothing stands before), and its reach: how many tokens of the same example stand before it.
 * What is left of a row is token 0, mask 0, reach 0.
 */
#ifndef DATA_ROWS_ROW_PACKER_H
#define DATA_ROWS_ROW_PACKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/reader.h"

#define ROW_OPEN_MAX   64
#define ROW_LENGTH_MAX 1048576u

struct packed_row {
    uint32_t *tokens; /* length of them, as of the next two */
    uint32_t *reach;
    uint8_t *mask;
    uint32_t used;
    uint64_t opened; /* the count of rows opened before */
};

/* Where closed rows go. */
struct row_sink {
    enum status (*take)(void *context, struct error *error, const struct packed_row *row);
    void *context;
};

struct row_packer {
    uint32_t length;
    struct row_sink sink;
    struct packed_row
        rows[ROW_OPEN_MAX]; /* the first open_count are open; memory of others is kept */
    uint32_t open_count;
    uint64_t opened;
    uint64_t closed;
    uint64_t tokens; /* without padding */
    uint64_t learned;
};

void row_packer_init(struct row_packer *packer, uint32_t length, const struct row_sink *sink);
void row_packer_release(struct row_packer *packer); /* accepts a zeroed one */

/* Adds an example of 1 to length tokens; learned has a byte for each. */
MUST_CHECK enum status row_packer_add(struct row_packer *packer, struct error *error,
                                      const uint32_t *ids, const uint8_t *learned, size_t count);

/* The same, in a row of its own that is closed at once: for pairs. */
MUST_CHECK enum status row_packer_add_alone(struct row_packer *packer, struct error *error,
                                            const uint32_t *ids, const uint8_t *learned,
                                            size_t count);

/* Closes what is open. */
MUST_CHECK enum status row_packer_finish(struct row_packer *packer, struct error *error);

/* All that is needed to go on later, and the way back into a packer that was just made. The bytes
 * come from a file: they are checked. */
void row_packer_write(const struct row_packer *packer, struct buffer *out);
MUST_CHECK enum status row_packer_read(struct row_packer *packer, struct error *error,
                                       struct reader *reader);

#endif /* DATA_ROWS_ROW_PACKER_H */
