/*
 * trainer_child.h - the process that trains: trainer.h starts it, trainer_wire.h is its speech.
 */
#ifndef PROVER_TRAIN_TRAINER_CHILD_H
#define PROVER_TRAIN_TRAINER_CHILD_H

#include <stdbool.h>

#include "prover/train/trainer_wire.h"

/* Is this process such a child? */
bool trainer_child_asked(int argc, char *const *argv);

/* Trains as its first input says. Returns the exit code. */
int trainer_child_serve(void);

/* Limits this process, and on the CPU keeps it from all but these files; while it has one
 * thread. */
void trainer_child_confine(const struct trainer_plan *plan, const char *const *data);

#endif /* PROVER_TRAIN_TRAINER_CHILD_H */
