/*
 * dispute_child.h - the child process that finds the next move of a dispute: it reads the dispute
 * from its folder, runs the step, and leaves the move there.
 *
 * A child may be killed at any point. What it has left is whole, and the next one goes on with it.
 */
#ifndef VERIFIER_DISPUTE_DISPUTE_CHILD_H
#define VERIFIER_DISPUTE_DISPUTE_CHILD_H

#include "verifier/check/check.h"

/* What a check does with a step that is disputed. */
extern const struct check_visitor dispute_child;

#endif /* VERIFIER_DISPUTE_DISPUTE_CHILD_H */
