/*
 * model_source.h - where a decoder's weights come from: a folder as it is published, a bundle of a
 * training beside the folder that it began with, or a model file beside such a folder.
 *
 * All of it is hostile: config.json is read key by key (base_config.h), each weight must have the
 * type and shape that the config says, and the folder beside a bundle must be the one to which the
 * job commits.
 */
#ifndef CLIENT_GENERATE_MODEL_SOURCE_H
#define CLIENT_GENERATE_MODEL_SOURCE_H

#include "proofs/bundle/bundle.h"
#include "proofs/bundle/model_export.h"
#include "proofs/format/base_config.h"

struct model_source {
    struct base_config config;
    const char *folder;     /* borrowed: has the config, and mostly the tokenizer */
    struct weights weights; /* of a folder or a file */
    struct bundle *bundle;  /* or: */
    struct safetensors state;
    bool state_open;
    struct model_weights *merged;
};

/* base NULL: path is a published folder. step: of a bundle; UINT64_MAX: the newest checkpoint. */
MUST_CHECK enum status model_source_open(struct model_source *source, const char *path,
                                         const char *base, uint64_t step, struct error *error);
void model_source_close(struct model_source *source); /* a zero-filled one is allowed */

/* The longest sequence that the model takes as we compute it. */
uint32_t model_source_longest(const struct model_source *source);

/* The decoder; it borrows the source. */
struct model_options model_source_options(const struct model_source *source);

/* A weight of the decoder: decode.h. context is the source. */
enum status model_source_read(void *context, void *bytes, const struct tensor *weight,
                              struct error *error);

#endif /* CLIENT_GENERATE_MODEL_SOURCE_H */
