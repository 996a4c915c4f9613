/*
 * receipt_check.h - is a receipt true? One step of the model over its row decides it.
 */
#ifndef PROOFS_RECEIPT_RECEIPT_CHECK_H
#define PROOFS_RECEIPT_RECEIPT_CHECK_H

#include "engine/decode/sampler.h"
#include "engine/plan/backend.h"
#include "proofs/receipt/receipt_job.h"

struct receipt_verdict {
    bool proven;
    uint32_t held; /* conditions that hold; 0 where no step was needed */
    uint32_t conditions;
    struct error why; /* of a receipt that is refuted: what is wrong, in a sentence */
};

/*
 * STATUS_OK: the verdict stands. A receipt of other weights, or of a row that the model does not
 * take, is refuted without a step; "refuted" by a step is confirmed by another instruction set.
 * Another status is no verdict: what could not be read or done. name: how sentences call the
 * folder; NULL: as it is.
 */
MUST_CHECK enum status receipt_check(struct receipt_verdict *verdict, const struct receipt *receipt,
                                     const char *folder, const char *name,
                                     const struct machine_options *machine, struct error *error);

/* The same against a folder that is open. */
MUST_CHECK enum status receipt_check_base(struct receipt_verdict *verdict,
                                          const struct receipt *receipt,
                                          const struct receipt_base *base,
                                          const struct machine_options *machine,
                                          struct error *error);

/*
 * What the rule chooses at each position of the answer, by a step over the row as it is: choices
 * has room for receipt_answer() of them. The thresholds of the receipt are not looked at.
 * Where logits are no numbers the token is RECEIPT_NO_CHOICE.
 */
#define RECEIPT_NO_CHOICE UINT32_MAX
MUST_CHECK enum status receipt_choices(struct sampler_choice *choices,
                                       const struct receipt *receipt,
                                       const struct receipt_base *base,
                                       const struct machine_options *machine, struct error *error);

#endif /* PROOFS_RECEIPT_RECEIPT_CHECK_H */
