/*
 * merge_folder.h - a published folder with published adapters added: an ordinary folder, which
 * `job new --base` takes, so that a second stage may stand on adapters.
 *
 * Each weight with an adapter becomes W + alpha / rank * B A, in binary64, rounded once to binary32
 * (adapter.h): the rule of `bundle export --merge`. The others are widened exactly. config.json
 * says float32. MERGED.json names the SHA-256 of all files of both folders that the weights follow
 * from.
 *
 * Refused by name: adapters that ask for what we do not compute (adapter_config.h), a part without
 * the other, a shape that does not fit, and a tensor that belongs to no weight of the folder.
 */
#ifndef PROOFS_MODEL_MERGE_FOLDER_H
#define PROOFS_MODEL_MERGE_FOLDER_H

#include "base/digest.h"
#include "base/error.h"

#define MERGE_NOTE "MERGED.json"

struct merged {
    uint32_t adapters;  /* weights that had one */
    struct digest root; /* of the weights: model_root.h */
};

/* The new folder appears whole or not at all. */
MUST_CHECK enum status merge_folder(struct merged *merged, const char *out, const char *base,
                                    const char *adapters, struct error *error);

#endif /* PROOFS_MODEL_MERGE_FOLDER_H */
