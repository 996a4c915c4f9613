/*
 * model_export.h - a state as a folder of Hugging Face: the model that was trained, or the adapters
 * beside a model that stays as it is.
 *
 * A job that trains all weights gives a whole model. A job that trains adapters gives an adapter
 * folder as PEFT reads it or, merged, a whole model: W + alpha / rank * B A. A whole model takes
 * config and tokenizer from the folder that the training began with; its weights are binary32 or,
 * where that is asked for, rounded to bfloat16 (to nearest, ties to even), which the config then
 * says. A model that began with a seed has a config of its own (seed_model.h). A README.md names
 * job, step and roots, and that of the weights as they are written (model_root.h).
 *
 * The folder of the beginning is checked: its weights must have the roots to which the job commits.
 * The new folder appears whole or not at all.
 */
#ifndef PROOFS_BUNDLE_MODEL_EXPORT_H
#define PROOFS_BUNDLE_MODEL_EXPORT_H

#include "proofs/bundle/average.h"
#include "proofs/format/weights.h"
#include "proofs/job/job.h"

/* All is borrowed. */
struct model_export {
    const char *folder;    /* the new one */
    const char *base;      /* what the training began with; NULL: a seed */
    const char *base_name; /* how the base is called in adapters and card; NULL: by its folder */
    const char *tokenizer; /* of a model from a seed: its folder, or "bytes"; NULL: none */
    bool merge;
    bool bf16;
    const struct job *job;
    const struct safetensors *state; /* a checkpoint or a model file, checked against its root */
    uint64_t step;                   /* the state before this step */
    struct digest root;
    uint32_t averaged_count; /* 0; or it is the mean of the states before so many steps */
    uint64_t averaged[AVERAGE_STATES_MAX];
    const char *rounds; /* NULL; or the id of the rounds (proofs/rounds) whose mean it is */
    uint32_t round;     /* ... of this round, and `step` says nothing */
};

MUST_CHECK enum status model_export(const struct model_export *options, struct error *error);

/*
 * The weights of the whole model, one by one, without a folder: of the base, of the state where the
 * job trains them, adapters added. The base is checked as above. Borrows job and state.
 */
struct model_weights; /* opaque */
MUST_CHECK enum status model_weights_open(struct model_weights **weights, const char *base,
                                          const struct job *job, const struct safetensors *state,
                                          struct error *error);
void model_weights_close(struct model_weights *weights); /* NULL is allowed */
/* The base, whose names the weights have. */
const struct weights *model_weights_base(const struct model_weights *weights);
/* `count` numbers of the tensor that the base calls so. */
MUST_CHECK enum status model_weights_read(float *values, const struct model_weights *weights,
                                          const char *name, uint64_t count, struct error *error);

/* Does the job train adapters beside frozen weights? */
bool model_export_has_adapters(const struct tape *tape);

#endif /* PROOFS_BUNDLE_MODEL_EXPORT_H */
