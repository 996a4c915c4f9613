/*
 * prove.h - a receipt of an answer, as `lockstep generate --prove` writes it.
 *
 * An answer is written token by token, from keys and values that were kept; a receipt is decided by
 * one step over the whole row, whose last bits are others. So the step is run when the answer is
 * done. Where it chooses another token, the answer goes on from there with that one.
 */
#ifndef CLIENT_GENERATE_PROVE_H
#define CLIENT_GENERATE_PROVE_H

#include "client/generate/answer.h"
#include "proofs/receipt/receipt_check.h"

#define PROVE_CORRECTIONS_MAX 8

struct prove {
    const char *path; /* borrowed: where the receipt goes; NULL: none is wanted */
    struct receipt_base base;
    struct receipt receipt; /* of the newest answer */
    uint32_t corrections;   /* of that answer */
};

/* folder: as it is published; borrowed. Reads all weights. */
MUST_CHECK enum status prove_open(struct prove *prove, const char *path, const char *folder,
                                  struct error *error);
void prove_close(struct prove *prove); /* a zero-filled one is allowed */

/* Begins a receipt: what was asked, what was answered, and by which rule. */
MUST_CHECK enum status prove_take(struct prove *prove, const uint32_t *prompt,
                                  uint32_t prompt_count, const uint32_t *answer,
                                  uint32_t answer_count, const struct sampler_rule *rule,
                                  const struct answer_stops *stops, struct error *error);

/* Runs the step. *at is the first token of the answer that it chooses otherwise, and *token what it
 * chooses; where there is none, *at is the number of tokens. */
MUST_CHECK enum status prove_find(uint32_t *at, uint32_t *token, struct prove *prove,
                                  const struct machine_options *machine, struct error *error);

/* Writes the receipt, if it is true. */
MUST_CHECK enum status prove_write(struct prove *prove, const struct machine_options *machine,
                                   struct error *error);

#endif /* CLIENT_GENERATE_PROVE_H */
