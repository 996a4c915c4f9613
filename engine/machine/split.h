/*
 * split.h - one machine made of several, each of which holds and computes a part of the tape.
 *
 * The parts run one after the other, and what one needs of another moves between them: so memory is
 * shared out, time is not. Bits are those of one machine, whatever the number of parts: division.h
 * says what goes where. With one GPU the parts may all be on it, each with its own memory.
 */
#ifndef ENGINE_MACHINE_SPLIT_H
#define ENGINE_MACHINE_SPLIT_H

#include "engine/plan/backend.h"

/*
 * Opens a machine of the options' backend on each of their devices. Refuses a backend that cannot
 * run a part of a step, and more devices than there is something to do for.
 */
MUST_CHECK enum status machine_split_open(struct machine **machine, const struct tape *tape,
                                          const struct machine_options *options,
                                          struct error *error);

/* Bytes that move between the machines in a step, and in how many turns they work. */
struct split_facts {
    uint64_t moved;
    uint32_t turns;
    uint32_t op_counts[MACHINE_DEVICES_MAX];
};
void machine_split_facts(struct split_facts *facts, const struct machine *machine);

#endif /* ENGINE_MACHINE_SPLIT_H */
