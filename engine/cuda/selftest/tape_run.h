/*
 * tape_run.h - one small tape (selftest_tape.h) on a device, with what the launcher allows.
 */
#ifndef ENGINE_CUDA_SELFTEST_TAPE_RUN_H
#define ENGINE_CUDA_SELFTEST_TAPE_RUN_H

#include "engine/cuda/launch/launcher.h"
#include "engine/cuda/launch/selftest_tape.h"

/* Runs part `part`, and compares every shown tensor with the rules. */
enum device_result tape_run_compare(bool *right, const struct launcher *device_launcher,
                                    selftest_build *build, uint32_t part);

/* Times the last operation of a tape that fills the launcher's processors, over zeros. */
enum device_result tape_run_time(double *seconds, const struct launcher *device_launcher,
                                 selftest_timed *build, int bits);

#endif /* ENGINE_CUDA_SELFTEST_TAPE_RUN_H */
