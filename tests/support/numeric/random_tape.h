/*
 * random_tape.h - random sound tapes, for properties that must hold for all tapes.
 *
 * Tensors are small, most of them with RANDOM_TAPE_COUNT elements, so that most operands fit most
 * operations. There are repeated operands, outputs that nobody reads, states whose next values are
 * exchanged, gradients and updates. The same seed gives the same tape everywhere.
 * random_tape_value() gives data and values.
 */
#ifndef TESTS_SUPPORT_NUMERIC_RANDOM_TAPE_H
#define TESTS_SUPPORT_NUMERIC_RANDOM_TAPE_H

#include "engine/plan/backend.h"
#include "engine/tape/builder.h"

#define RANDOM_TAPE_COUNT 96

/* The forward part has op_count operations or a few more; the caller frees the tape. */
struct tape *random_tape(uint64_t seed, uint32_t op_count);

/* The first value of a tensor that no operation makes; the caller frees it. */
void *random_tape_value(const struct tape *tape, uint32_t tensor, uint64_t seed);

/* A machine with all values from seed, after count steps; aborts on failure. The machine borrows
 * data: free it, with its tape_count entries, after closing. */
struct random_machine {
    struct machine *machine;
    void **data;
};
void random_machine_open(struct random_machine *random, const struct tape *tape,
                         const struct machine_options *options, uint64_t seed);
void random_machine_step(struct random_machine *random, const struct observer *observer);
void random_machine_close(struct random_machine *random);

/* Have two machines of one tape, or of rewrites of it, the same states, outputs and loss? *name is
 * the one that differs. */
bool random_machine_equal(const char **name, const struct random_machine *a,
                          const struct random_machine *b);

#endif /* TESTS_SUPPORT_NUMERIC_RANDOM_TAPE_H */
