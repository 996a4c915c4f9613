/*
 * weights.h - the tensors of a model that another program trained: one .safetensors file, or a
 * folder as Hugging Face publishes it, with model.safetensors or with shards and their index.
 *
 * The files are hostile. An index must name every tensor of its shards once, in the shard where it
 * is, and nothing else. F16 and BF16 are widened exactly; a NaN or an infinity is refused.
 */
#ifndef PROOFS_FORMAT_WEIGHTS_H
#define PROOFS_FORMAT_WEIGHTS_H

#include "proofs/format/safetensors.h"

#define WEIGHTS_SHARDS_MAX     1024
#define WEIGHTS_INDEX_SIZE_MAX (8u << 20)
#define WEIGHTS_INDEX_NAME     "model.safetensors.index.json"
#define WEIGHTS_ADAPTERS_NAME  "adapter_model.safetensors"

struct weights_entry {
    const struct safetensors_entry *entry;
    const struct safetensors *file;
};

struct weights {
    struct safetensors *files;
    char **paths; /* of the files, whole */
    uint32_t file_count;
    struct weights_entry *entries; /* sorted by name */
    uint32_t entry_count;
    bool adapters;  /* named as PEFT names them */
    bool text_part; /* beside other parts: what pictures are made of */
    char path[256]; /* for errors; a longer one is cut */
};

MUST_CHECK enum status weights_open(struct weights *weights, const char *path, struct error *error);
void weights_close(struct weights *weights); /* a zero-filled one is allowed */

/* STATUS_NOT_FOUND: the folder holds adapters of PEFT, and no whole model. Says what to do. */
MUST_CHECK enum status weights_only_adapters(const char *folder, struct error *error);

/* NULL: there is no tensor of that name. */
const struct weights_entry *weights_find(const struct weights *weights, const char *name);

/*
 * By the name in a model of ours. Published names may begin with the module that holds the layers
 * or not: "NAME" and "transformer.NAME" are one, and so are "model.NAME" and "NAME". A text part
 * beside others has "language_model.NAME", or "model.language_model.NAME" for "model.NAME".
 * Adapters of PEFT have "base_model.model." before all that.
 */
const struct weights_entry *weights_find_plain(const struct weights *weights, const char *name);

/* The same in one file, where the name may also be the file's own. */
const struct safetensors_entry *weights_find_in(const struct safetensors *file, const char *name);

/* The other way: the name in a model of ours. */
#define WEIGHTS_NAME_MAX (SAFETENSORS_NAME_MAX + 8)
void weights_plain_name(char plain[WEIGHTS_NAME_MAX + 1], const char *name);

/* Is the tensor none of the text part, which stands beside others? */
bool weights_is_beside(const struct weights *weights, const char *name);

/* The file that holds the tensor. */
const char *weights_path(const struct weights *weights, const struct weights_entry *entry);

/* Is it of a type that widens to binary32 exactly: F32, F16, BF16? */
bool weights_widen(enum element element);

/* `count` elements as binary32, from element `from` on. */
MUST_CHECK enum status weights_read(float *out, const struct weights_entry *entry, uint64_t from,
                                    uint64_t count, struct error *error);

/* ---- the index ---- */

struct weights_index {
    struct json_t *map; /* name of a tensor: name of a file beside the index */
};

/* The index in bytes; what names them in errors. Names of files are plain and end in
 * ".safetensors". */
MUST_CHECK enum status weights_index_parse(struct weights_index *index, const void *bytes,
                                           size_t size, const char *what, struct error *error);
void weights_index_release(struct weights_index *index); /* a zero-filled one is allowed */

#endif /* PROOFS_FORMAT_WEIGHTS_H */
