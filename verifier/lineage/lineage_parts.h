/*
 * lineage_parts.h - the inside of a lineage, for the files of this folder alone: what was given,
 * and what was found about it.
 */
#ifndef VERIFIER_LINEAGE_LINEAGE_PARTS_H
#define VERIFIER_LINEAGE_LINEAGE_PARTS_H

#include <jansson.h>

#include "data/rows/manifest.h"
#include "proofs/format/weights.h"
#include "proofs/run/data_paths.h"
#include "verifier/audit/findings.h"
#include "verifier/lineage/lineage_options.h"
#include "verifier/lineage/model_card.h"

enum { LINEAGE_LOSS_MAX = 64 };

/* What a path is, by what lies there. */
enum lineage_kind {
    LINEAGE_UNKNOWN = 0, /* it could not be opened */
    LINEAGE_MODEL,       /* a published folder, or a file of weights */
    LINEAGE_ADAPTERS,    /* a folder of PEFT */
    LINEAGE_STATE,       /* a checkpoint or a model file of ours */
    LINEAGE_ROWS,        /* a folder of packed rows */
    LINEAGE_RUN,         /* a bundle */
    LINEAGE_RECEIPT,     /* of an answer */
    LINEAGE_TOKENS,      /* any other file: data without a manifest */
};

/* What it is in the lineage; a model may be two of them. */
enum lineage_role {
    LINEAGE_BASE = 1,
    LINEAGE_DATA = 2,
    LINEAGE_TRAINING = 4,
    LINEAGE_PRODUCT = 8,
    LINEAGE_ANSWER = 16,
    LINEAGE_ASKED = 32, /* what answered */
};

struct lineage_item {
    const char *path; /* borrowed */
    enum lineage_kind kind;
    unsigned roles;
    json_t *files;          /* name, sha256 and size of each; of a product, is it proven */
    struct digest root;     /* our own, */
    const char *root_tag;   /* by the tag of its header; NULL: it has none */
    struct weights weights; /* MODEL, ADAPTERS and STATE */
    struct model_card card; /* of a folder of them; a hint, and no more */
    struct manifest manifest;
    bool followed;  /* the rows were made again from their sources */
    bool described; /* its configuration was held to a job that names one */
    struct bundle *bundle;
    /* Of a run: */
    struct data_paths data;
    size_t base;  /* the item below it; SIZE_MAX: none */
    size_t first; /* that it begins with; SIZE_MAX: none */
    struct audit_result audit;
    /* Of a product: */
    size_t run;
    uint64_t step;
};

struct lineage {
    const struct lineage_options *options;
    struct lineage_item *items; /* in the order in which they were given */
    size_t count;
    struct findings findings;
    json_t *figures; /* held-out ones */
};

/* Opens what was given and hashes its files. What cannot be opened is said in a list. */
MUST_CHECK enum status lineage_parts_open(struct lineage *lineage, const char *const *paths,
                                          size_t count, const struct lineage_options *options,
                                          struct error *error);
void lineage_parts_close(struct lineage *lineage);

/* Says why a file is no link: refuted where its bytes are to blame, else not told. */
void lineage_parts_blame(struct lineage *lineage, const char *path, const struct error *error);

/* Ends a check: blames the file for what went wrong, but passes on what is no fault of it. */
MUST_CHECK enum status lineage_parts_end(struct lineage *lineage, const char *path,
                                         enum status status, const struct error *why,
                                         struct error *error);

/* Does a sentence say already why it is no link? */
bool lineage_parts_is_blamed(const struct lineage *lineage, const char *path);

/* Is there such a file in the folder? */
bool lineage_parts_has(const char *folder, const char *name);

/* The SHA-256 of a file of the item, in hexadecimal; NULL: there is no such file. */
const char *lineage_parts_file(const struct lineage_item *item, const char *name);

/* A held-out loss for people: one that is no finite number is said to be none. */
const char *lineage_parts_loss(char text[LINEAGE_LOSS_MAX], const json_t *figures);

#endif /* VERIFIER_LINEAGE_LINEAGE_PARTS_H */
