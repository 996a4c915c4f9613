/*
 * dispute_step.h - the step of a dispute, run: its trace, and the walk through the accused's.
 *
 * The step is run once, or once more for a micro-batch of it. Its tensors lie in a file of the
 * dispute's folder from then on (proofs/commit/trace_file.h), unless they are more than the file
 * may have.
 */
#ifndef VERIFIER_DISPUTE_DISPUTE_STEP_H
#define VERIFIER_DISPUTE_DISPUTE_STEP_H

#include "proofs/dispute/evidence.h"
#include "proofs/run/run.h"
#include "verifier/dispute/dispute.h"
#include "verifier/dispute/trace_source.h"

/* Filled in by the code that drives the dispute; a zero-filled own is not open. */
struct dispute_step {
    struct run *run;   /* borrowed; its data and constants are the job's */
    bool stands;       /* run's machine holds the state before the step */
    uint64_t file_max; /* bytes of the file of the trace */
    bool whole;        /* no ledger could be asked for partial sums: evidence is written whole */
    /* What the accused has committed to; the root of the trace is the dispute's. */
    struct evidence_context context;
    struct trace_source source;

    struct trace_server own;
    struct trace_walk walk;
    uint64_t element; /* EVIDENCE: the element of its tensor that it is about, */
    uint32_t state;   /* and where that is one of the next state, which of its tensors */
};

/* Runs the step, or reads the file of its trace. Once: called again it does nothing. Leaves run's
 * machine in trace mode and in no particular state. */
MUST_CHECK enum status dispute_step_open(struct dispute_step *step, const struct dispute *dispute,
                                         struct error *error);
void dispute_step_close(struct dispute_step *step);

/* Walks as far as replies are at hand (trace_source.h). */
MUST_CHECK enum status dispute_step_walk(struct dispute_step *step, const struct dispute *dispute,
                                         struct error *error);

#endif /* VERIFIER_DISPUTE_DISPUTE_STEP_H */
