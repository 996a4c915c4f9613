/*
 * start.h - the first values of a small model or of a random tape, for the machines that a test
 * compares. A failure ends the test with its error.
 */
#ifndef TESTS_SUPPORT_NUMERIC_START_H
#define TESTS_SUPPORT_NUMERIC_START_H

#include "engine/plan/backend.h"
#include "tests/support/numeric/small_model.h"

/* values[id] is NULL for a tensor that an operation makes. */
struct start {
    const struct tape *tape;
    void **values;
};

void start_model(struct start *start, const struct small_model *small);
void start_random(struct start *start, const struct tape *tape, uint64_t seed);
void start_release(struct start *start);

/* The machine borrows data until it is closed. */
enum status start_give(struct machine *machine, const struct start *start, struct error *error);
void start_steps(struct machine *machine, const struct start *start, uint32_t steps);

/* Compares states, outputs and loss bit by bit, and the roots of the states. */
void start_compare(struct machine *cpu, struct machine *other, const char *what);

void start_must(enum status status, const struct error *error);
uint64_t start_size(const struct tape *tape, uint32_t id);

#endif /* TESTS_SUPPORT_NUMERIC_START_H */
