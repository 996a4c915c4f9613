/*
 * pack_state.h - a packing that was stopped, as a file: what is packed, and the rows that are open.
 */
#ifndef DATA_ROWS_PACK_STATE_H
#define DATA_ROWS_PACK_STATE_H

#include "data/rows/packing.h"

#define PACK_STATE_NAME "packing.state"

/* Writes it, whole or not at all. */
MUST_CHECK enum status pack_state_write(const struct packing *packing, struct error *error,
                                        const char *path);

/* Reads it into a packing that was just opened and whose packers have their sinks.
 * STATUS_REFUSED: it is of other options or another tokenizer. */
MUST_CHECK enum status pack_state_read(struct packing *packing, struct error *error,
                                       const char *path);

#endif /* DATA_ROWS_PACK_STATE_H */
