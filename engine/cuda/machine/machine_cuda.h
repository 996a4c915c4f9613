/*
 * machine_cuda.h - the CUDA machine itself, and what the files of this folder ask of it. Nobody
 * else includes it but tests that look inside.
 */
#ifndef ENGINE_CUDA_MACHINE_MACHINE_CUDA_H
#define ENGINE_CUDA_MACHINE_MACHINE_CUDA_H

#include "engine/cuda/fusions/fusion.h"
#include "engine/plan/backend.h"
#include "engine/plan/lazy.h"
#include "engine/plan/plan.h"

#define BLOCKS_PER_PROCESSOR 32   /* of striding grids */
#define CUDA_ROOTS_MAX       4096 /* digests that wait on the device for one download, at most */
#define ALIGNMENT            UINT64_C(256)
#define LEGS_MAX             256 /* that are kept as graphs; more are queued call by call */

enum {
    BLOCK_STATE,
    BLOCK_TEMPORARY,
    BLOCK_SCRATCH,
    BLOCK_DATA,
    BLOCK_OPS,
    BLOCK_LISTS,
    BLOCK_WORDS,
    BLOCK_HASH,
    BLOCK_COUNT
};

/* Hashing that was begun on the other lane and not ended. */
struct hashing {
    struct hash_item *items; /* the table that the device has, as it was last sent */
    uint32_t count;
    bool pending;
    bool joined;      /* lane 0 waits for it */
    bool states_only; /* it reads nothing but states, which a step writes at its end */
};

/* A run of operations that is queued as one, from its second time on. */
struct leg {
    uint32_t first;
    uint32_t last;
    bool ends; /* the step: the states take their next values */
    bool used;
    struct device_graph *graph;
};

/* Which device, and what of it is used. */
struct cuda_config {
    const struct device_calls *calls; /* must outlive the machine */
    int ordinal;
    bool rules_only;   /* every operation by its rules, nothing fused */
    uint32_t disabled; /* bits 1 << enum kernel_variant */
    uint32_t quicker;  /* as launcher.quicker */
};

struct machine_cuda {
    struct machine machine;
    struct machine_options options;
    struct cuda_config config;
    struct device *device;
    struct device_facts facts;
    struct plan plan;
    bool fused;           /* fast mode: operations are rewritten, and some launched together */
    struct fusion fusion; /* where fused */
    struct tape tape;     /* what is launched: the machine's, with fusion.ops where fused */
    struct launcher launcher;
    void *blocks[BLOCK_COUNT];
    uint64_t block_sizes[BLOCK_COUNT];
    void **memory;  /* per tensor, of the device; NULL: not there */
    bool *bound;    /* per tensor: data that was given */
    uint8_t *shown; /* trace: host memory for the largest output */
    struct leg legs[LEGS_MAX];
    uint32_t roots_max;     /* digests that there is room for */
    uint32_t first_writing; /* the first operation that writes a state; else op_count */
    struct hashing hashing;
    bool graph_refused; /* recording failed once: never tried again */
    struct lazy lazy;   /* fast mode; the run of them that a step may leave out as one: */
    uint32_t lazy_first;
    uint32_t lazy_last; /* one past it; 0: there is none */
};

static inline struct machine_cuda *cuda_of(struct machine *machine)
{
    return (struct machine_cuda *)machine;
}

static inline uint64_t cuda_tensor_bytes(const struct tape *tape, uint32_t id)
{
    return tape->tensors[id].count * dtype_size(tape->tensors[id].dtype);
}

/* The sentence for a call that failed; STATUS_OK where it did not. */
MUST_CHECK enum status cuda_failed(const struct machine_cuda *cuda, enum device_result result,
                                   const char *what, struct error *error);

/* May a caller read it? */
bool cuda_can_be_read(const struct machine_cuda *cuda, uint32_t tensor);

#endif /* ENGINE_CUDA_MACHINE_MACHINE_CUDA_H */
