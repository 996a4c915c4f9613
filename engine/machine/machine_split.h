/*
 * machine_split.h - one machine made of several, each of which holds and computes a part of a tape.
 *
 * The parts run one after the other, and tensors move between them: splitting shares the memory and
 * not the time. The bits are those of one machine. division.h decides what runs where. All parts
 * may be on one GPU, each with its own memory. With device_memory, a part that needs more runs in
 * machine_sliced.h.
 */
#ifndef ENGINE_MACHINE_MACHINE_SPLIT_H
#define ENGINE_MACHINE_MACHINE_SPLIT_H

#include "engine/plan/backend.h"

/*
 * Opens a machine on each of the options' devices. Refuses a backend without run(), and more
 * devices than the tape has forward operations.
 */
MUST_CHECK enum status machine_split_open(struct machine **machine, const struct tape *tape,
                                          const struct machine_options *options,
                                          struct error *error);

/* What a split costs, by the plan alone: no device is opened. */
struct machine_split_cost {
    uint64_t memory[MACHINE_DEVICES_MAX]; /* bytes that each device must have for its part */
    uint64_t moved;                       /* bytes from one device to another in a step */
    uint32_t moves;                       /* tensors, in a step */
};

/* For options->device_count devices, from 1 on. STATUS_USAGE: the tape cannot be cut so often. */
MUST_CHECK enum status machine_split_cost(struct machine_split_cost *cost, const struct tape *tape,
                                          const struct machine_options *options,
                                          struct error *error);

#endif /* ENGINE_MACHINE_MACHINE_SPLIT_H */
