/*
 * job_pairs.h - preference pairs (DPO) in a new job: what --dpo asks for, and what rows it takes.
 *
 * Pairs are trained as pairs, and nothing else is. Refused by name: other rows, an odd batch,
 * held-out figures of pairs, a calibration (model and reference must have the same products).
 */
#ifndef CLIENT_TOKENS_JOB_PAIRS_H
#define CLIENT_TOKENS_JOB_PAIRS_H

#include "base/cli/options.h"
#include "engine/models/model.h"

/* --dpo, as an option of the model. */
MUST_CHECK enum status job_pairs_read(struct model_options *model, const struct options *options,
                                      struct error *error);

/* Do the rows of the folder, which are pairs or not, fit the model's options? */
MUST_CHECK enum status job_pairs_check(bool pairs, const struct model_options *model,
                                       const struct options *options, const char *folder,
                                       struct error *error);

#endif /* CLIENT_TOKENS_JOB_PAIRS_H */
