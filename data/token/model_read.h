/*
 * model_read.h - vocabulary, merges and added tokens of a tokenizer.json.
 */
#ifndef DATA_TOKEN_MODEL_READ_H
#define DATA_TOKEN_MODEL_READ_H

#include <jansson.h>

#include "data/token/tokenizer.h"

/* Normalizers and cuts must have been read: byte_level says how tokens are written. */
MUST_CHECK enum status model_read(struct tokenizer *tokenizer, const json_t *root,
                                  struct error *error);

#endif /* DATA_TOKEN_MODEL_READ_H */
