/*
 * start.h - what machines start from, given to as many of them as a test compares.
 *
 * Of a small model or of a random tape: one value for each tensor that is not made. Failures end
 * the test with their sentence.
 */
#ifndef TESTS_SUPPORT_NUMERIC_START_H
#define TESTS_SUPPORT_NUMERIC_START_H

#include "engine/plan/backend.h"
#include "tests/support/numeric/small_model.h"

/* values[id] is NULL for what is made. */
struct start {
    const struct tape *tape;
    void **values;
};

void start_model(struct start *start, const struct small_model *small);
void start_random(struct start *start, const struct tape *tape, uint64_t seed);
void start_release(struct start *start);

/* Data is borrowed until the machine is closed. */
enum status start_give(struct machine *machine, const struct start *start, struct error *error);
void start_steps(struct machine *machine, const struct start *start, uint32_t steps);

/* States, outputs and the loss of both, bit by bit, and the roots of their states. */
void start_compare(struct machine *cpu, struct machine *other, const char *what);

void start_must(enum status status, const struct error *error);
uint64_t start_size(const struct tape *tape, uint32_t id);

#endif /* TESTS_SUPPORT_NUMERIC_START_H */
