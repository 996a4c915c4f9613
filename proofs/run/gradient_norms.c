/* gradient_norms.c - see gradient_norms.h. */
#include "proofs/run/gradient_norms.h"

#include <stdlib.h>
#include <string.h>

#include "proofs/format/safetensors.h"

static bool keeps_norms(const struct tape *tape)
{
    for (uint32_t i = 0; i < tape->state_count; i++) {
        if (strcmp(tape->tensors[tape->states[i].before].name, GRADIENT_NORMS) == 0) {
            return true;
        }
    }
    return false;
}

/* *step is 0 where there is none but of the first state. */
static enum status newest_checkpoint(uint64_t *step, struct bundle *bundle, struct error *error)
{
    uint64_t at = 0;
    enum status status = STATUS_OK;

    *step = 0;
    while (status == STATUS_OK) {
        *step = at;
        status = bundle_checkpoint_find(&at, bundle, *step + 1, error);
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status gradient_norms_read(float **norms, uint64_t *count, struct bundle *bundle,
                                struct error *error)
{
    const struct safetensors_entry *entry;
    struct safetensors state;
    struct error none;
    uint64_t step;
    enum status status;

    *norms = NULL;
    *count = 0;
    error_init(&none);
    if (!keeps_norms(bundle_job(bundle)->tape) || bundle_is_locked(bundle)) {
        return STATUS_OK;
    }
    status = newest_checkpoint(&step, bundle, &none);
    if (status != STATUS_OK) {
        *error = none;
        return status;
    }
    if (step == 0) {
        return STATUS_OK;
    }
    TRY(bundle_checkpoint_open(&state, bundle, step, error));
    entry = safetensors_find(&state, GRADIENT_NORMS);
    if (entry == NULL || entry->element != ELEMENT_F32 || entry->size / sizeof(float) < step) {
        status = error_set(error, STATUS_BAD_FORMAT, "%s: no gradient's norms of %llu steps",
                           state.path, (unsigned long long)step);
        goto out;
    }
    *norms = malloc((size_t)step * sizeof(float));
    if (*norms == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory for the gradient's norms");
        goto out;
    }
    TRY_OUT(safetensors_read(&state, error, *norms, entry, (size_t)step * sizeof(float), 0));
    *count = step;
out:
    safetensors_close(&state);
    return status;
}
