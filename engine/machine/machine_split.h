/*
 * machine_split.h - one machine made of several, each of which holds and computes a part of a tape.
 *
 * The parts run one after the other, and tensors move between them: splitting shares the memory and
 * not the time. The bits are those of one machine. division.h decides what runs where. All parts
 * may be on one GPU, each with its own memory.
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

#endif /* ENGINE_MACHINE_MACHINE_SPLIT_H */
