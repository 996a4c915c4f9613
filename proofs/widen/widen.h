/*
 * widen.h - a published folder whose weights have four bits as an ordinary folder, which `job new
 * --base` takes: of BF16 or F32, with a root of its own and a note of the origin's.
 *
 * Weights of NF4 become F32, or rounded once more BF16; those of MXFP4 become BF16, exactly. Other
 * tensors stay as they are. Each shard becomes one. config.json loses "quantization_config".
 * WIDENED.json holds the SHA-256 of every file of weights, and of config.json, before and after;
 * the root of a folder is the SHA-256 of these lines, as sha256sum prints them in the order of
 * names.
 *
 * Refused by file and tensor: groups that do not fit, scales that are NaN or overflow, a part that
 * is missing, a type that is no part of a quantized weight, and by its name every other method.
 */
#ifndef PROOFS_WIDEN_WIDEN_H
#define PROOFS_WIDEN_WIDEN_H

#include "base/digest.h"
#include "base/error.h"

#define WIDEN_NOTE "WIDENED.json"

enum widen_type {
    WIDEN_AS_METHOD = 0, /* F32 of NF4, BF16 of MXFP4 */
    WIDEN_F32,
    WIDEN_BF16,
};

struct widened {
    uint32_t tensors; /* that had four bits */
    struct digest origin;
    struct digest root;
};

/* The new folder appears whole or not at all. */
MUST_CHECK enum status widen_folder(struct widened *widened, const char *out, const char *folder,
                                    enum widen_type type, struct error *error);

#endif /* PROOFS_WIDEN_WIDEN_H */
