/*
 * adapter_config.h - adapter_config.json of a folder as PEFT publishes it: what its adapters are.
 *
 * The file is hostile: bounded, strict JSON. A key that changes what adapters compute is refused by
 * its name.
 */
#ifndef PROOFS_MODEL_ADAPTER_CONFIG_H
#define PROOFS_MODEL_ADAPTER_CONFIG_H

#include "base/error.h"
#include "engine/models/model.h"

#define ADAPTER_CONFIG_NAME     "adapter_config.json"
#define ADAPTER_CONFIG_SIZE_MAX (1u << 20)

/* Sets rank, alpha and targets. */
MUST_CHECK enum status adapter_config_read(struct lora *lora, const char *folder,
                                           struct error *error);

/* The same of bytes; what names them in errors. */
MUST_CHECK enum status adapter_config_parse(struct lora *lora, const void *bytes, size_t size,
                                            const char *what, struct error *error);

#endif /* PROOFS_MODEL_ADAPTER_CONFIG_H */
