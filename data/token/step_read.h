/*
 * step_read.h - the normalizers and pre-tokenizers of a tokenizer.json as steps.
 */
#ifndef DATA_TOKEN_STEP_READ_H
#define DATA_TOKEN_STEP_READ_H

#include <jansson.h>

#include "data/token/tokenizer.h"

/* Fills normalizers; json may be NULL or null: none. What we do not do is refused and shown. */
MUST_CHECK enum status step_read_normalizer(struct tokenizer *tokenizer, const json_t *json,
                                            struct error *error);

/* Fills cuts and byte_level. */
MUST_CHECK enum status step_read_cuts(struct tokenizer *tokenizer, const json_t *json,
                                      struct error *error);

/* Refuses a part of the file: `what` is its name, json is shown. Returns the status. */
enum status step_read_refuse(struct error *error, const char *what, const json_t *json,
                             const char *why);

#endif /* DATA_TOKEN_STEP_READ_H */
