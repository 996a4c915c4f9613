/*
 * sliced.h - a machine whose tensors live in the host's memory, and whose operations run on another
 * machine that has less: range after range, and where one operation alone is too large, slice after
 * slice. So a step is verified on a device that could never hold it.
 *
 * Bits are those of the whole step. It is slower by what crosses the bus. Operations that cannot be
 * cut small enough (randomness and batches, whose data may be large) are left to the processor.
 */
#ifndef ENGINE_MACHINE_SLICED_H
#define ENGINE_MACHINE_SLICED_H

#include "engine/plan/backend.h"

/*
 * options name the machine that computes; device_memory is what it may take (0: what it has).
 * memory_max is for the host's memory. Refuses before allocating when that is too little.
 */
MUST_CHECK enum status machine_sliced_open(struct machine **machine, const struct tape *tape,
                                           const struct machine_options *options,
                                           struct error *error);

/* What a step takes, counted without running anything. */
struct sliced_survey {
    uint64_t host_size;   /* bytes of the host's memory */
    uint64_t device_size; /* bytes of the computing machine, at the most */
    uint64_t moved;       /* bytes written to it and read from it in a step */
    uint32_t ranges;      /* of several operations, or of one that fits */
    uint32_t cut;         /* operations that had to be cut */
    uint32_t slices;      /* of those */
    uint32_t left;        /* slices and operations left to the processor */
};
MUST_CHECK enum status sliced_survey(struct sliced_survey *survey, const struct tape *tape,
                                     const struct machine_options *options, struct error *error);

/* The same for one operation alone: the least memory that runs it is in device_size. */
MUST_CHECK enum status sliced_survey_op(struct sliced_survey *survey, const struct tape *tape,
                                        uint32_t at, const struct machine_options *options,
                                        struct error *error);

#endif /* ENGINE_MACHINE_SLICED_H */
