/*
 * gpu_check.h - what the sections of gpu-check share: one report, and machines of both kinds.
 *
 * Each section is a process of its own, so that one that fails, hangs or loses the device takes no
 * other with it: gpu_check_must() ends its section, never the program. The tally is shared memory.
 * Which variants a machine may use is what the ladder found so far (gpu_ladder.c): no section
 * tests variants by itself.
 */
#ifndef TESTS_GPU_GPU_CHECK_H
#define TESTS_GPU_GPU_CHECK_H

#include <stdio.h>

#include "engine/cuda/device/device_error.h"
#include "engine/cuda/selftest/selftest.h"
#include "engine/cuda/selftest/units.h"
#include "engine/cuda/selftest/variants.h"
#include "engine/models/model.h"
#include "tests/gpu/gpu_machine.h"

#define GPU_CHECK_OK        0
#define GPU_CHECK_REFUTED   1
#define GPU_CHECK_NO_DEVICE 2

#define GPU_CHECK_REASON_MAX 1600
#define GPU_CHECK_FIRST_MAX  160

/* Written by sections, read by the process that started them. */
struct gpu_tally {
    struct device_facts facts; /* of device 0 */
    uint64_t comparisons;
    uint64_t failures;
    uint32_t devices;                  /* that open */
    uint32_t offered;                  /* variants that the device has: 1 << enum kernel_variant */
    uint32_t barred;                   /* of them, those that failed alone */
    uint32_t quicker;                  /* launcher.quicker, as measured */
    char first[GPU_CHECK_FIRST_MAX];   /* what differed first in the last section */
    char reason[GPU_CHECK_REASON_MAX]; /* why the last section could not tell */
};

struct gpu_check {
    const struct device_calls *calls;
    struct gpu_tally *tally;
    FILE *json;  /* lines of "name": value, ... ; NULL: no file */
    FILE *table; /* the same, to be read; NULL: no file */
    bool quick;  /* small sizes: to see that everything runs, on any device */
};

/* First in a section's process: opens the plugin, and bars what the tally bars. */
void gpu_check_begin(struct gpu_check *check);

/* One measurement: printed, and written to the files. */
void gpu_check_number(struct gpu_check *check, const char *name, double value, const char *unit);

/* The same, and whether it is what the house asks of an H200: at_least, or at the most. */
void gpu_check_goal(struct gpu_check *check, const char *name, double value, const char *unit,
                    double goal, bool at_least);

/* Ends the section with the sentence where status is not STATUS_OK. */
void gpu_check_must(enum status status, const struct error *error);

/* The same for a call of the device, outside any machine. */
void gpu_check_call(const struct gpu_check *check, enum device_result result);

/* out = a b^T with a (m, k) and b (n, k) given: quantizing both is part of the step. */
struct tape *gpu_check_linear(int64_t m, int64_t n, int64_t k, struct precision precision);

/* As below, without the variants that are named in bits. */
struct machine *gpu_check_open_barred(const struct gpu_check *check, const struct tape *tape,
                                      uint32_t disabled);

/* With every variant that the ladder did not bar, and by the unit that it found quicker. */
struct machine *gpu_check_open(const struct gpu_check *check, const struct tape *tape, bool trace,
                               bool rules_only);

/* Any options, over the device: by ranges or split where they say so. */
struct machine *gpu_check_open_as(const struct tape *tape, const struct machine_options *options);

struct machine *gpu_check_cpu(const struct tape *tape, bool scalar, bool trace);

/* GPT-2 124M, or a small one where the check is quick. The caller releases it. */
void gpu_check_gpt2(struct model *model, const struct gpu_check *check, uint32_t batch,
                    uint32_t length, bool inference);

/* Fills the given tensors of a tape: names of model parameters draw as the model does. */
void gpu_check_give(struct machine *const *machines, uint32_t machine_count,
                    const struct model *model, const struct tape *tape, uint64_t seed);

/* States, outputs, the loss and the root of two machines; what differs is printed and counted. */
void gpu_check_compare(struct gpu_check *check, struct machine *cpu, struct machine *other,
                       const char *what);
void gpu_check_differs(struct gpu_check *check, const char *what);

/* gpu_bits.c */
void gpu_check_functions(struct gpu_check *check, int kind);
void gpu_check_model(struct gpu_check *check, int kind);
void gpu_check_tapes(struct gpu_check *check, int kind);
void gpu_check_pinned(struct gpu_check *check, int kind);
void gpu_check_hashes(struct gpu_check *check, int kind);

/* gpu_parts.c */
void gpu_check_slices(struct gpu_check *check, int kind);
void gpu_check_split(struct gpu_check *check, int kind);
void gpu_check_small_memory(struct gpu_check *check, int kind);
void gpu_check_tokens(struct gpu_check *check, int kind);

/* gpu_variants.c: kind is the variant */
void gpu_check_selftest(struct gpu_check *check, int kind);
void gpu_check_variant(struct gpu_check *check, int kind);
void gpu_check_variant_speed(struct gpu_check *check, int kind);
void gpu_check_units(struct gpu_check *check, int kind);
void gpu_check_unit_times(struct gpu_check *check, int kind);

/* gpu_fused.c: kind is the variant; VARIANT_PLAIN: nothing but plain kernels */
void gpu_check_fused(struct gpu_check *check, int kind);
void gpu_check_fused_speed(struct gpu_check *check, int kind);

/* gpu_speed.c */
#define GPU_SHAPES 9
void gpu_check_hashing(struct gpu_check *check, int kind);
void gpu_check_product(struct gpu_check *check, int kind);
void gpu_check_step(struct gpu_check *check, int kind);
double gpu_check_now(void);

/* gpu_kernels.c */
void gpu_check_kernels(struct gpu_check *check, int kind);

/* gpu_load.c: kind is the variant; VARIANT_COUNT: whole steps with all that are free */
void gpu_check_load(struct gpu_check *check, int kind);

/* gpu_tools.c: kind is the tool */
enum gpu_tool { GPU_TOOL_SANITIZER, GPU_TOOL_NCU };
void gpu_check_tool(struct gpu_check *check, int kind);

#endif /* TESTS_GPU_GPU_CHECK_H */
