/*
 * selftest.h - the proof of a way that spares passes or launches: it makes a few small tapes on the
 * device, and every output must have the rules' bits. paths.h has it done, and keeps what came out.
 */
#ifndef ENGINE_CUDA_SELFTEST_SELFTEST_H
#define ENGINE_CUDA_SELFTEST_SELFTEST_H

#include "engine/cuda/launch/launch.h"

/*
 * Tries a way of enum launch_way, beside those that device_launcher does not bar. *right is false
 * where it gave other bits, or was not launched at all.
 */
enum device_result proof_of_way(bool *right, const struct launcher *device_launcher, uint32_t way);

#endif /* ENGINE_CUDA_SELFTEST_SELFTEST_H */
