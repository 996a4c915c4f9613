/*
 * shown_random.h - random operations with hard shapes and hostile elements, for the contracts of
 * rules: moves, windows, quantize and contraction.
 *
 * Every operation passes op_check(). Elements are what a liar may write: any bits at all, next to
 * honest ones, so that no branch of a rule is left out.
 */
#ifndef TESTS_SUPPORT_DISPUTE_SHOWN_RANDOM_H
#define TESTS_SUPPORT_DISPUTE_SHOWN_RANDOM_H

#include "tests/support/dispute/shown_case.h"

/* The kinds that shown_random() knows. */
#define SHOWN_RANDOM_KINDS 25
extern const enum op_kind shown_random_kinds[SHOWN_RANDOM_KINDS];

/* The caller releases it. */
void shown_random(struct shown_case *shown, uint64_t *seed, enum op_kind kind);

/* A random output and element, with the whole axis. */
struct shown_target shown_random_target(const struct shown_case *shown, uint64_t *seed);

#endif /* TESTS_SUPPORT_DISPUTE_SHOWN_RANDOM_H */
