/*
 * pattern.h - the patterns that fuse.c looks for in a tape. Each is a file of this folder that says
 * what it matches, how it is launched, how it is tested on a device, and what it saves.
 */
#ifndef ENGINE_CUDA_FUSIONS_PATTERN_H
#define ENGINE_CUDA_FUSIONS_PATTERN_H

#include "engine/cuda/fusions/fusion.h"
#include "engine/cuda/fusions/readers.h"
#include "engine/cuda/launch/selftest_tape.h"

struct fusion_pattern {
    const char *name;
    enum kernel_variant variant; /* VARIANT_COUNT: it launches nothing and cannot be disabled */

    /*
     * Finds all places and rewrites them. The readers are those of now; a match that changes
     * operations and looks on has them see it. false: no memory.
     */
    bool (*match)(struct fusion *fusion, const struct tape *tape, struct readers *readers);

    /* Operation `at`, or the unit that starts there. The launcher's tape has fusion->ops. */
    enum device_result (*launch)(const struct launcher *launcher, const struct fusion *fusion,
                                 uint32_t at);

    /* Adds a small example, one of so many. */
    selftest_build *selftest;
    uint32_t selftests;

    /*
     * Kernels of products, in bits: it is tested with each of them that is free, with the first by
     * all examples, with others by the first of them, so many. 0: with plain ones.
     */
    uint32_t products;
    uint32_t again;

    /* Adds one to be timed, by bytes and by halves; NULL: it has no such choice. */
    selftest_timed *timed;
};

extern const struct fusion_pattern pattern_repeated;
extern const struct fusion_pattern pattern_views;
extern const struct fusion_pattern pattern_entropy;
extern const struct fusion_pattern pattern_lists;
extern const struct fusion_pattern pattern_attention;
extern const struct fusion_pattern pattern_epilogue;
extern const struct fusion_pattern pattern_held;
extern const struct fusion_pattern pattern_strips;
extern const struct fusion_pattern pattern_tiles;

/* A unit of held.c whose result nobody else reads: its rows are not written. */
extern const struct fusion_pattern pattern_unwritten;

#endif /* ENGINE_CUDA_FUSIONS_PATTERN_H */
