/*
 * tracer_child.h - the process that runs a step and replies to queries about it: tracer.h starts
 * it, confined_wire.h is its speech.
 */
#ifndef PROVER_CONFINED_TRACER_CHILD_H
#define PROVER_CONFINED_TRACER_CHILD_H

/* Traces as its plan says, where this process is a CONFINED_TRACER. Returns the exit code. */
int tracer_child_serve(void);

#endif /* PROVER_CONFINED_TRACER_CHILD_H */
