/*
 * machine_sliced.h - runs a step on a device that cannot hold it. The tensors live in the host's
 * memory. The device runs ranges of operations one after the other, and slices of an operation that
 * is too large alone.
 *
 * The bits are those of the whole step. It is slower by the copies over the bus. Operations that
 * cannot be cut small enough (randomness, and batches of large data) run on the CPU.
 */
#ifndef ENGINE_MACHINE_MACHINE_SLICED_H
#define ENGINE_MACHINE_MACHINE_SLICED_H

#include "engine/plan/backend.h"

/*
 * The options name the machine that computes; device_memory is the memory it may use (0: all it
 * has). memory_max limits the host's memory, and is checked before allocating.
 */
MUST_CHECK enum status machine_sliced_open(struct machine **machine, const struct tape *tape,
                                           const struct machine_options *options,
                                           struct error *error);

/* The machine that the options name, whole where it fits; by ranges and slices where it is no CPU
 * and device_memory is set or a trace is asked for. */
MUST_CHECK enum status machine_fitting_open(struct machine **machine, const struct tape *tape,
                                            const struct machine_options *options,
                                            struct error *error);

/* The cost of a step, counted without running it. */
struct machine_sliced_survey {
    uint64_t host_size;   /* bytes of the host's memory */
    uint64_t device_size; /* the most bytes of the computing machine */
    uint64_t moved;       /* bytes written to it and read from it in a step */
    uint32_t ranges;      /* ranges that fit */
    uint32_t cut;         /* operations that do not fit alone */
    uint32_t slices;      /* their slices */
    uint32_t left;        /* slices and operations that run on the CPU */
};
MUST_CHECK enum status machine_sliced_survey(struct machine_sliced_survey *survey,
                                             const struct tape *tape,
                                             const struct machine_options *options,
                                             struct error *error);

#endif /* ENGINE_MACHINE_MACHINE_SLICED_H */
