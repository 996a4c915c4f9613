/*
 * gas_shapes.h - an element of every kind of operation, in the shapes of a step of GPT-2 124M.
 * docs/GAS.md has what it costs to recompute each.
 */
#ifndef TESTS_SUPPORT_GAS_GAS_SHAPES_H
#define TESTS_SUPPORT_GAS_GAS_SHAPES_H

#include "tests/support/dispute/shown_case.h"

struct gas_shapes {
    void (*visit)(void *context, const char *name, const struct shown_case *shown,
                  const struct shown_target *target);
    void *context;
    uint64_t seed;
};

/* Rules of floats; of moves, quantize and contraction. An element that is too long to show is
 * visited with a part of it. */
void gas_shapes_of_floats(struct gas_shapes *shapes);
void gas_shapes_of_integers(struct gas_shapes *shapes);

#endif /* TESTS_SUPPORT_GAS_GAS_SHAPES_H */
