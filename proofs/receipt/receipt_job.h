/*
 * receipt_job.h - a receipt as a job of one step, whose data are the weights of a published folder.
 *
 * Row, thresholds and rule are constants of its tape, so the job's id binds them. "held" of the
 * state after the step must be receipt_row_conditions().
 */
#ifndef PROOFS_RECEIPT_RECEIPT_JOB_H
#define PROOFS_RECEIPT_RECEIPT_JOB_H

#include "proofs/format/base_config.h"
#include "proofs/format/weights.h"
#include "proofs/job/job_make.h"
#include "proofs/receipt/receipt.h"

/* The folder that a receipt is held against. */
struct receipt_base {
    const char *folder; /* borrowed */
    const char *name;   /* how sentences call it; borrowed */
    struct base_config config;
    struct weights weights;
    struct digest config_hash; /* SHA-256 of config.json */
    struct digest root;        /* of the weights: proofs/model/model_root.h */
};

/* Reads all weights, to find their root. name: how sentences call it; NULL: by its folder. */
MUST_CHECK enum status receipt_base_open(struct receipt_base *base, const char *folder,
                                         const char *name, struct error *error);
void receipt_base_close(struct receipt_base *base); /* a zero-filled one is allowed */

/* Is the receipt about this folder? False: error says what is another, and which. */
bool receipt_base_is(const struct receipt_base *base, const struct receipt *receipt,
                     struct error *error);

/* Does the model take the row? False: error says why not. */
bool receipt_base_takes(const struct receipt_base *base, const struct receipt *receipt,
                        struct error *error);

/* The most tokens of a row. */
uint32_t receipt_base_longest(const struct receipt_base *base);

/*
 * The job, which the caller frees. Of terms it takes texts and requirements; NULL: none. *model,
 * which the caller releases, keeps the slices of logits; NULL is allowed. Refuses a row that the
 * model does not take.
 */
MUST_CHECK enum status receipt_job(struct job **job, struct model *model,
                                   const struct receipt *receipt, const struct receipt_base *base,
                                   const struct job_terms *terms, struct error *error);

/* The root of the state after the step of a receipt that is true: what a ledger has of it. */
void receipt_true_root(struct digest *root, const struct job *job, const struct receipt *receipt);

#endif /* PROOFS_RECEIPT_RECEIPT_JOB_H */
