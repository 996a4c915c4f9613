/*
 * job_new_options.h - the options of `job new`, and what they say of a model.
 */
#ifndef CLIENT_JOB_NEW_OPTIONS_H
#define CLIENT_JOB_NEW_OPTIONS_H

#include "base/cli/command.h"
#include "engine/models/model.h"
#include "proofs/job/job.h"

#define JOB_NEW_OPTIONS   60
#define JOB_NEW_STEPS_MAX 10000000
extern const struct option_spec job_new_options[JOB_NEW_OPTIONS];

/* The model of --model, or of the folder of --base, with the options that are given. Refuses an
 * option that would change nothing. */
MUST_CHECK enum status job_new_model(struct model_options *model, const struct options *options,
                                     struct error *error);

/* Once the data is measured: how many steps --steps or --epochs says, and that a warm-up ends
 * before them. */
MUST_CHECK enum status job_new_settle_steps(struct model_options *model,
                                            const struct options *options, struct error *error);

/* The name of the model: of --model-name, of the folder of --base, or what it is. */
void job_new_model_name(char name[JOB_TITLE_MAX + 2], const struct model_options *model,
                        const struct options *options);

/* Refuses what says something of held-out data where --eval names none. */
MUST_CHECK enum status job_new_check_eval(const struct options *options, struct error *error);

/* Refuses options that say nothing about a tape. */
MUST_CHECK enum status job_new_check_tape(const struct options *options, struct error *error);

#endif /* CLIENT_JOB_NEW_OPTIONS_H */
