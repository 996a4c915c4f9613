/* job_adapter.c - see job_adapter.h. */
#include "client/tokens/job_adapter.h"

#include <string.h>

#include "proofs/model/adapter_config.h"

static enum status check_given(const struct lora *lora, const struct options *options,
                               struct error *error)
{
    static const char *const names[] = {"lora", "lora-alpha", "target"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const bool same = i == 0 ? options_number(options, names[i]) == lora->rank
                          : i == 1
                              ? options_real(options, names[i]) == lora->alpha
                              : options_text(options, names[i]) != NULL &&
                                    strcmp(options_text(options, names[i]), lora->targets) == 0;

        if (options_given(options, names[i]) && !same) {
            return error_set(error, STATUS_USAGE,
                             "--%s: the adapters of --adapter are of rank %u, alpha %g, on %s",
                             names[i], lora->rank, lora->alpha, lora->targets);
        }
    }
    return STATUS_OK;
}

enum status job_adapter_read(struct lora *lora, const struct options *options, struct error *error)
{
    const char *folder = options_text(options, "adapter");

    if (folder == NULL) {
        return STATUS_OK;
    }
    TRY(adapter_config_read(lora, folder, error));
    return check_given(lora, options, error);
}
