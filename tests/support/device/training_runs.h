/*
 * training_runs.h - the pinned states of the small models: SHA-256 after so many steps.
 *
 * All that computes must end there: each instruction set (training_test.c) and each GPU
 * (gpu-check).
 */
#ifndef TESTS_SUPPORT_DEVICE_TRAINING_RUNS_H
#define TESTS_SUPPORT_DEVICE_TRAINING_RUNS_H

#include "engine/models/model.h"

#define TRAINING_MARKS_MAX 4

struct training_run {
    enum model_kind kind;
    uint32_t steps[TRAINING_MARKS_MAX]; /* ends at 0 */
    const char *digests[TRAINING_MARKS_MAX];
};

extern const struct training_run training_runs[MODEL_COUNT];

#endif /* TESTS_SUPPORT_DEVICE_TRAINING_RUNS_H */
