/*
 * claim_evidence.h - an evidence file (proofs/dispute/evidence_file.h) that is taken to a ledger:
 * does it convict, and is it about what stands there?
 *
 * It spares the walk, not the replay. Evidence convicts a solver that told the very trace that it
 * is about, and somebody who forged a trace of a true step would have evidence against nobody; so a
 * claim is still made only after two replays of our own. Kept in the folder of the dispute
 * (dispute.h), it is the first thing that is shown when the accused stands by that trace.
 */
#ifndef VERIFIER_DISPUTE_CLAIM_EVIDENCE_H
#define VERIFIER_DISPUTE_CLAIM_EVIDENCE_H

#include "proofs/dispute/evidence_file.h"
#include "verifier/dispute/dispute_send.h"

struct claim_evidence {
    char path[FILE_PATH_MAX]; /* "": none was given */
    struct file_bytes bytes;
    struct evidence_file file; /* borrows bytes */
};

/* Reads and judges it. STATUS_REFUSED: it convicts nobody, and why. */
MUST_CHECK enum status claim_evidence_open(struct claim_evidence *evidence, const char *path,
                                           struct error *error);
void claim_evidence_close(struct claim_evidence *evidence); /* a zero-filled one is allowed */

/* Is it about a step of this segment? STATUS_REFUSED says what it is about instead. */
MUST_CHECK enum status claim_evidence_fits(const struct claim_evidence *evidence,
                                           const struct store_segment *segment,
                                           struct error *error);

/* And about the states that the replay found committed? */
MUST_CHECK enum status claim_evidence_agrees(const struct claim_evidence *evidence,
                                             const struct check_result *result,
                                             struct error *error);

/* Puts it into the folder of the dispute about this claim. */
MUST_CHECK enum status claim_evidence_keep(const struct claim_evidence *evidence, const char *cache,
                                           const struct hash32 *claim, struct error *error);

#endif /* VERIFIER_DISPUTE_CLAIM_EVIDENCE_H */
