/*
 * step_memory.h - how much memory a step of a job takes on a CPU and on a GPU, by the plan. Nothing
 * is allocated and no device is needed, so it is known before anything starts.
 */
#ifndef PROOFS_RUN_STEP_MEMORY_H
#define PROOFS_RUN_STEP_MEMORY_H

#include <jansson.h>

#include "engine/plan/backend.h"

/* What a machine may do with the tape of a job: recompute.h, hoist.h. */
enum step_way {
    STEP_PLAIN = 0,
    STEP_RECOMPUTE,
    STEP_HOIST,
    STEP_WAYS,
};

struct step_memory {
    uint64_t cpu[STEP_WAYS]; /* bytes for tensors, without the data */
    uint64_t gpu[STEP_WAYS]; /* bytes of the device, the data included; 0: not known */
    uint64_t data;           /* bytes that a CPU reads where they lie in their files */
    uint64_t data_hoist;     /* of these, with --hoist, what is read after the first step */
};

/* An operation that no GPU takes leaves the bytes of the GPU unknown. */
MUST_CHECK enum status step_memory_plan(struct step_memory *memory, const struct tape *tape,
                                        struct error *error);

/* "12.50 MiB, with --recompute 8.00 MiB, with --hoist 13.00 MiB", or "not known". */
#define STEP_MEMORY_TEXT 160
void step_memory_text(char text[STEP_MEMORY_TEXT], const uint64_t ways[STEP_WAYS]);

json_t *step_memory_json(const struct step_memory *memory);

#endif /* PROOFS_RUN_STEP_MEMORY_H */
