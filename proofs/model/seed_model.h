/*
 * seed_model.h - what a model from a seed needs beside its weights, so that other programs open it:
 * a config.json, found in the job's own tape, and a tokenizer of bytes.
 *
 * The config is held against the job: the model that it describes must have the job's parameters
 * and its table of angles, or it is refused. Only GPT-2 and Llama have one.
 */
#ifndef PROOFS_MODEL_SEED_MODEL_H
#define PROOFS_MODEL_SEED_MODEL_H

#include <jansson.h>

#include "proofs/job/job.h"

/* The caller releases *config. STATUS_REFUSED: the job's model is none that other programs know. */
MUST_CHECK enum status seed_model_config(json_t **config, const struct job *job,
                                         struct error *error);

/* A tokenizer.json whose ids are bytes, and its tokenizer_config.json; NULL: no memory. */
json_t *seed_model_tokenizer(void);
json_t *seed_model_tokenizer_config(void);

#endif /* PROOFS_MODEL_SEED_MODEL_H */
