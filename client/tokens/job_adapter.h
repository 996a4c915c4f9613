/*
 * job_adapter.h - adapters of an earlier training, which a new job goes on with: a folder as PEFT
 * publishes it.
 *
 * Rank, alpha and layers are the folder's, and an option that says another number is refused.
 */
#ifndef CLIENT_TOKENS_JOB_ADAPTER_H
#define CLIENT_TOKENS_JOB_ADAPTER_H

#include "base/cli/options.h"
#include "engine/models/model.h"

/* What --adapter FOLDER says of the adapters; without it nothing. */
MUST_CHECK enum status job_adapter_read(struct lora *lora, const struct options *options,
                                        struct error *error);

#endif /* CLIENT_TOKENS_JOB_ADAPTER_H */
