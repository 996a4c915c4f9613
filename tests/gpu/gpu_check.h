/*
 * gpu_check.h - what the parts of gpu-check share: one report, and machines of both kinds.
 */
#ifndef TESTS_GPU_GPU_CHECK_H
#define TESTS_GPU_GPU_CHECK_H

#include <stdio.h>

#include "engine/cuda/machine.h"
#include "engine/models/model.h"

#define GPU_CHECK_OK        0
#define GPU_CHECK_REFUTED   1
#define GPU_CHECK_NO_DEVICE 2

struct gpu_check {
    const struct device_calls *calls;
    struct device_facts facts;
    struct paths paths; /* to contract, as this device has them */
    FILE *json;         /* lines of "name": value, ... ; NULL: no file */
    uint64_t failures;
    uint64_t comparisons;
};

/* One measurement: printed, and written to the file. */
void gpu_check_number(struct gpu_check *check, const char *name, double value, const char *unit);

/* Ends the program with the sentence where status is not STATUS_OK. */
void gpu_check_must(enum status status, const struct error *error);

/* What a machine gives for out = a b^T with a of (m, k), b of (n, k): quantizing is part of it. */
struct tape *gpu_check_product(uint64_t m, uint64_t n, uint64_t k, struct precision precision);

/* A machine in fast mode that has one way to contract; gpu_check_open()'s has all that are sound. */
struct machine *gpu_check_open_path(const struct gpu_check *check, const struct tape *tape,
                                    enum contract_path path);

struct machine *gpu_check_open(const struct gpu_check *check, const struct tape *tape, bool trace,
                               bool rules_only);

/* Fills the given tensors of a tape: names of model parameters draw as the model does. */
void gpu_check_give(struct machine *const *machines, uint32_t machine_count,
                    const struct model *model, const struct tape *tape, uint64_t seed);

void gpu_check_bits(struct gpu_check *check);
void gpu_check_speed(struct gpu_check *check);

#endif /* TESTS_GPU_GPU_CHECK_H */
