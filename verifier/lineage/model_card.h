/*
 * model_card.h - what the README.md of an exported model says of itself (model_export.h).
 *
 * Anybody may have written it, so it is a hint alone: which state to write again, and how the base
 * is called. What is then compared are bytes.
 */
#ifndef VERIFIER_LINEAGE_MODEL_CARD_H
#define VERIFIER_LINEAGE_MODEL_CARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "proofs/bundle/average.h"

#define MODEL_CARD_NAME     "README.md"
#define MODEL_CARD_SIZE_MAX (1u << 20)
#define MODEL_CARD_BASE_MAX 255

struct model_card {
    bool job_known;
    struct digest job;
    bool root_known; /* of a state of the job */
    struct digest root;
    uint32_t averaged_count;            /* 0: it is no mean of states */
    char base[MODEL_CARD_BASE_MAX + 1]; /* ""; how it calls the base */
};

/* Takes what it knows, and passes over all else. */
void model_card_parse(struct model_card *card, const char *text, size_t size);

/* Of a folder; without a card nothing is known. */
void model_card_read(struct model_card *card, const char *folder);

#endif /* VERIFIER_LINEAGE_MODEL_CARD_H */
