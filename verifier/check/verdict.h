/*
 * verdict.h - is a step what was said of it? The one place that calls a step true or false.
 *
 * A node's check, an audit, a self-test and a claim by hand all ask here. A step is true when one
 * replay gives the committed state. It is false only by two replays, on two instruction sets, that
 * give the same other state. Nothing here reads a file or runs a step.
 *
 * Tour 8 of 10: next read proofs/dispute/fraud_proof.h, what proves it.
 */
#ifndef VERIFIER_CHECK_VERDICT_H
#define VERIFIER_CHECK_VERDICT_H

#include "verifier/check/check_wire.h"

/* What was said of a step. */
struct verdict_step {
    struct digest committed; /* the root of the state after it */
    bool diverged;           /* the training ended there, with a NaN or an infinity */
    bool open_end;           /* nobody said what came after it */
};

/* What a replay of the step gave. */
struct verdict_replay {
    struct digest root;
    bool finite;
};

/*
 * PROVEN: the first replay gives what was said. CANNOT_TELL: it does not, and there is no second;
 * flaw is what it would be. REFUTED: the second agrees. FAULT: the two disagree, so this machine
 * computes wrongly. second: NULL where there is none yet.
 */
enum check_outcome verdict_of_step(enum check_flaw *flaw, const struct verdict_step *said,
                                   const struct verdict_replay *first,
                                   const struct verdict_replay *second);

#endif /* VERIFIER_CHECK_VERDICT_H */
