/* device_error.h - the sentence for a device that did not open. */
#ifndef ENGINE_CUDA_DEVICE_DEVICE_ERROR_H
#define ENGINE_CUDA_DEVICE_DEVICE_ERROR_H

#include "base/error.h"
#include "engine/cuda/device/device.h"

/* facts: as far as opening came. Returns STATUS_DEVICE. */
MUST_CHECK enum status device_error(const struct device_calls *calls,
                                    const struct device_facts *facts, int ordinal,
                                    enum device_result result, struct error *error);

#endif /* ENGINE_CUDA_DEVICE_DEVICE_ERROR_H */
