/*
 * module_shares.h - the modules of a job's program, with what each holds and its share of the
 * arithmetic of a step.
 *
 * A tensor belongs to the module that its name says: "h.0.attn.weight" to "h.0.attn". What is done
 * belongs to the module that the notes of the job say (job_notes.h), else to the one whose weights
 * are read, or were read last. The reverse pass of an operation counts for its module. Nothing but
 * the notes is told by anybody, and no bit of the job hangs on any of it.
 */
#ifndef PROOFS_RUN_MODULE_SHARES_H
#define PROOFS_RUN_MODULE_SHARES_H

#include "proofs/job/job.h"
#include "proofs/job/job_notes.h"

#define MODULE_UPDATE   "(update)"
#define MODULE_HELD_OUT "(held-out)"
#define MODULE_NONE     "(others)"

struct module_share {
    char name[JOB_NOTES_LINE_MAX + 1];
    uint64_t parameters; /* numbers that are trained */
    uint64_t frozen;     /* numbers of weights that no step changes */
    double work;         /* multiply-adds of products, and results of what is no product */
};

struct module_shares {
    uint32_t count;
    struct module_share *modules; /* in the order of their tensors, then of the program */
    double work;                  /* of a step */
    uint32_t *of_tensor;          /* of each tensor that is a weight; else UINT32_MAX */
};

MUST_CHECK enum status module_shares_find(struct module_shares *shares, const struct job *job,
                                          struct error *error);
void module_shares_release(struct module_shares *shares); /* a zero-filled one is allowed */

/* Joins modules whose names begin with the same parts, as many as leave at most `most` of them,
 * one at least. Weights are not told apart any more: of_tensor is NULL. */
void module_shares_fold(struct module_shares *shares, uint32_t most);

#endif /* PROOFS_RUN_MODULE_SHARES_H */
