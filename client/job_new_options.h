/*
 * job_new_options.h - the options of `job new`, and what they say of a model.
 */
#ifndef CLIENT_JOB_NEW_OPTIONS_H
#define CLIENT_JOB_NEW_OPTIONS_H

#include "base/cli/command.h"
#include "client/recipe/lora_options.h"
#include "client/recipe/recipe_options.h"
#include "engine/models/model.h"
#include "proofs/job/job.h"

#define JOB_NEW_OPTIONS (46 + LORA_OPTION_COUNT + RECIPE_OPTION_COUNT)
extern const struct option_spec job_new_options[JOB_NEW_OPTIONS];

/* The model of --model, or of the folder of --base, with the options that are given. Refuses an
 * option that would change nothing. */
MUST_CHECK enum status job_new_model(struct model_options *model, const struct options *options,
                                     struct error *error);

/* The name of the model: of --model-name, of the folder of --base, or what it is. */
void job_new_model_name(char name[JOB_TITLE_MAX + 2], const struct model_options *model,
                        const struct options *options);

/* Refuses what says something of held-out data where --eval names none. */
MUST_CHECK enum status job_new_check_eval(const struct options *options, struct error *error);

/* Refuses options that say nothing about a receipt, whose job is one step. */
MUST_CHECK enum status job_new_check_receipt(const struct options *options, struct error *error);

/* Refuses options that say nothing about a tape. */
MUST_CHECK enum status job_new_check_tape(const struct options *options, struct error *error);

#endif /* CLIENT_JOB_NEW_OPTIONS_H */
