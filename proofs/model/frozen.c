/* frozen.c - see frozen.h. */
#include "proofs/model/frozen.h"

#include <stdio.h>

#include "engine/models/layouts.h"

const char *frozen_find(enum dtype *dtype, const void *weights, const char *name)
{
    const struct weights_entry *entry = weights_find_plain(weights, name);

    *dtype = DTYPE_F32;
    if (entry != NULL && weights_widen(entry->entry->element)) {
        (void)element_dtype(dtype, entry->entry->element);
    }
    /* Under the modules of a text part names can be too long for a tape. */
    return entry == NULL || ((const struct weights *)weights)->text_part ? name
                                                                         : entry->entry->name;
}

enum dtype frozen_embedding_type(const struct weights *weights, const struct model_options *model)
{
    const char *embedding = model->layout != NULL ? model->layout->embedding : NULL;
    char name[TENSOR_NAME_MAX + 1];
    enum dtype dtype = DTYPE_F32;

    if (embedding != NULL) {
        (void)snprintf(name, sizeof(name), "%s.weight", embedding);
        (void)frozen_find(&dtype, weights, name);
    }
    return dtype;
}
