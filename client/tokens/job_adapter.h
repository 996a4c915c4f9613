/*
 * job_adapter.h - adapters of an earlier training, which a new job goes on with: a folder as PEFT
 * publishes it.
 *
 * Rank, alpha and layers are the folder's, and an option that says another number is refused. A
 * key of adapter_config.json that changes what adapters compute is refused by its name.
 */
#ifndef CLIENT_TOKENS_JOB_ADAPTER_H
#define CLIENT_TOKENS_JOB_ADAPTER_H

#include "base/cli/options.h"
#include "engine/models/model.h"

#define JOB_ADAPTER_CONFIG   "adapter_config.json"
#define JOB_ADAPTER_SIZE_MAX (1u << 20)

/* What --adapter FOLDER says of the adapters; without it nothing. */
MUST_CHECK enum status job_adapter_read(struct lora *lora, const struct options *options,
                                        struct error *error);

/* The same of the bytes of a config; what names them in errors. */
MUST_CHECK enum status job_adapter_parse(struct lora *lora, const void *bytes, size_t size,
                                         const char *what, struct error *error);

#endif /* CLIENT_TOKENS_JOB_ADAPTER_H */
