/* adapter.c - see adapter.h. */
#include "proofs/model/adapter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "engine/models/model.h"
#include "proofs/format/weights.h"
#include "proofs/job/job_adapters.h"

#define WEIGHT ".weight"

/* The state of that name, or NULL. */
static const struct safetensors_entry *find_part(const struct safetensors *state, const char *name,
                                                 const char *end)
{
    char whole[SAFETENSORS_NAME_MAX + 32];

    (void)snprintf(whole, sizeof(whole), "%s%s", name, end);
    return safetensors_find(state, whole);
}

void adapter_find(struct adapter *adapter, const struct tape *tape, const struct safetensors *state,
                  const char *name)
{
    char module[WEIGHTS_NAME_MAX + 1];

    *adapter = (struct adapter){0};
    if (!text_ends_with(name, WEIGHT)) {
        return;
    }
    weights_plain_name(module, name);
    module[strlen(module) - strlen(WEIGHT)] = '\0';
    adapter->a = find_part(state, module, LORA_A);
    adapter->b = find_part(state, module, LORA_B);
    if (adapter->a == NULL) {
        adapter->a = find_part(state, module, LORA_TOKENS_A);
        adapter->b = find_part(state, module, LORA_TOKENS_B);
        adapter->tokens = true;
    }
    if (adapter->a == NULL || adapter->b == NULL) {
        adapter->a = NULL;
        return;
    }
    adapter->scale = job_adapter_scale(tape, adapter->b->name);
}

enum status adapter_read_part(float **values, const struct safetensors *file,
                              const struct safetensors_entry *entry, struct error *error)
{
    *values = malloc(entry->size + 1);
    if (*values == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for '%s'", entry->name);
    }
    return safetensors_read(file, error, *values, entry, (size_t)entry->size, 0);
}

void adapter_add(float *weight, const float *a, const float *b, const struct adapter *adapter,
                 bool in_first)
{
    uint64_t rank = adapter->a->dims[0];
    uint64_t in = adapter->a->dims[1];
    uint64_t out = adapter->b->dims[0];

    for (uint64_t o = 0; o < out; o++) {
        for (uint64_t i = 0; i < in; i++) {
            float *place = &weight[in_first ? i * out + o : o * in + i];
            double sum = 0.0;

            for (uint64_t r = 0; r < rank; r++) {
                sum += (double)b[o * rank + r] * (double)a[r * in + i];
            }
            *place = (float)((double)*place + adapter->scale * sum);
        }
    }
}

enum status adapter_merge(float *weight, const struct adapter *adapter,
                          const struct safetensors *state, uint64_t count, bool in_first,
                          struct error *error)
{
    float *a = NULL;
    float *b = NULL;
    enum status status;

    if (adapter->a->rank != 2 || adapter->b->rank != 2 ||
        adapter->a->dims[1] * adapter->b->dims[0] != count ||
        adapter->a->dims[0] != adapter->b->dims[1] || !(adapter->scale > 0.0)) {
        return error_set(error, STATUS_BAD_FORMAT, "'%s' is no adapter of the weight beside it",
                         adapter->a->name);
    }
    TRY_OUT(adapter_read_part(&a, state, adapter->a, error));
    TRY_OUT(adapter_read_part(&b, state, adapter->b, error));
    adapter_add(weight, a, b, adapter, in_first || adapter->tokens);
out:
    free(a);
    free(b);
    return status;
}
