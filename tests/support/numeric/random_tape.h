/*
 * random_tape.h - sound tapes that nobody would write, for properties that must hold for all.
 *
 * Small tensors, most of them of RANDOM_TAPE_COUNT elements so that nearly anything fits anything;
 * operands that repeat, outputs that nobody reads, states that cross over, gradients and updates.
 * The same seed gives the same tape everywhere. Data and values are random_tape_value()'s.
 */
#ifndef TESTS_SUPPORT_NUMERIC_RANDOM_TAPE_H
#define TESTS_SUPPORT_NUMERIC_RANDOM_TAPE_H

#include "engine/plan/backend.h"
#include "engine/tape/builder.h"

#define RANDOM_TAPE_COUNT 96

/* Operations of the forward part are op_count or a few more; the caller frees the tape. */
struct tape *random_tape(uint64_t seed, uint32_t op_count);

/* The first bytes of a tensor that is given; the caller frees them. */
void *random_tape_value(const struct tape *tape, uint32_t tensor, uint64_t seed);

/* A machine that holds all given values (from seed), and runs count steps; aborts on failure.
 * data is kept by the machine: free it, with its tape_count entries, after closing. */
struct random_machine {
    struct machine *machine;
    void **data;
};
void random_machine_open(struct random_machine *random, const struct tape *tape,
                         const struct machine_options *options, uint64_t seed);
void random_machine_step(struct random_machine *random, const struct observer *observer);
void random_machine_close(struct random_machine *random);

/* Have two machines of one tape the same states, outputs and loss? Names what differs. */
bool random_machine_equal(const char **name, const struct random_machine *a,
                          const struct random_machine *b);

#endif /* TESTS_SUPPORT_NUMERIC_RANDOM_TAPE_H */
