/*
 * trainer_child.h - the process that trains: trainer.h starts it, confined_wire.h is its speech.
 */
#ifndef PROVER_CONFINED_TRAINER_CHILD_H
#define PROVER_CONFINED_TRAINER_CHILD_H

/* Trains as its plan says, where this process is a CONFINED_TRAINER. Returns the exit code. */
int trainer_child_serve(void);

#endif /* PROVER_CONFINED_TRAINER_CHILD_H */
