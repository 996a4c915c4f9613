/*
 * conviction.h - evidence from a hunt that has ended.
 *
 * Evidence is written under the accused's own roots. What the accused told leads to the lie; all
 * that the operation read stands to the left of it and is the claimant's own, and so are the job's
 * data and constants. A conviction puts these together as an evidence_source, keeps the tensors
 * that the operation touches (one more run of the step), and writes what evidence.h judges.
 */
#ifndef PROOFS_CONVICTION_H
#define PROOFS_CONVICTION_H

#include "proofs/evidence.h"
#include "proofs/hunt.h"
#include "proofs/job.h"
#include "proofs/record.h"

struct conviction {
    struct hunt *hunt; /* borrowed; its end names the kind of evidence */
    struct record_given given;
    struct digest *pieces[JOB_DATA_MAX]; /* nodes of a data tensor, made when it is asked for */
    struct evidence_source source;
    struct evidence_target target; /* HUNT_ELEMENT: the element that costs least to prove */
};

/* The hunt must have ended, but not with HUNT_NO_LIE; given is borrowed. */
MUST_CHECK enum status conviction_open(struct conviction *conviction, struct hunt *hunt,
                                       const struct record_given *given, struct error *error);
/* Another element of the same leaf, where the ledger did not convict for the passed_over best ones.
 * STATUS_NOT_FOUND: there are no more, or the evidence is not about an element. */
MUST_CHECK enum status conviction_other(struct conviction *conviction, uint32_t passed_over,
                                        struct error *error);
void conviction_close(struct conviction *conviction); /* a zero-filled one is allowed */

/*
 * Appends evidence of at most size_max bytes. Sums that are too long are proven in parts: from is
 * where this one begins (0: the first), *to where it ends, and *last that none is left; all other
 * evidence is whole. After a restart the same element is chosen again.
 * STATUS_OVER_LIMIT: not even a part fits.
 */
MUST_CHECK enum status conviction_write(struct buffer *bytes, uint64_t *to, bool *last,
                                        struct conviction *conviction, uint64_t from,
                                        size_t size_max, struct error *error);

/*
 * Appends evidence that the state after the step holds a number that ends a job: against a solver
 * who went on, or what an accused tells who is asked (ASK_DIVERGED). own must have run the step
 * that both agree on. STATUS_NOT_FOUND: all numbers are finite.
 */
MUST_CHECK enum status conviction_not_finite(struct buffer *bytes, struct teller *own,
                                             struct error *error);

#endif /* PROOFS_CONVICTION_H */
