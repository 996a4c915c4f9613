/* device_error.c - see device_error.h. */
#include "engine/cuda/device/device_error.h"

enum status device_error(const struct device_calls *calls, const struct device_facts *facts,
                         int ordinal, enum device_result result, struct error *error)
{
    switch (result) {
    case DEVICE_NO_DRIVER:
        (void)error_set(error, STATUS_DEVICE, "there is no NVIDIA driver");
        error_advise(error, "install the driver, or let the processor do the work");
        return STATUS_DEVICE;
    case DEVICE_OLD_DRIVER:
        (void)error_set(error, STATUS_DEVICE,
                        "the NVIDIA driver serves CUDA %d.%d, the plugin needs %d.%d",
                        facts->driver / 1000, facts->driver % 1000 / 10, facts->runtime / 1000,
                        facts->runtime % 1000 / 10);
        error_advise(error, "update the driver, or build the plugin with an older CUDA toolkit");
        return STATUS_DEVICE;
    case DEVICE_NONE:
        (void)error_set(error, STATUS_DEVICE, "there is no CUDA device %d", ordinal);
        error_advise(error, "see what nvidia-smi lists, and what CUDA_VISIBLE_DEVICES says");
        return STATUS_DEVICE;
    case DEVICE_NO_CODE:
        (void)error_set(error, STATUS_DEVICE,
                        "the plugin holds no code for this device (compute capability %d.%d)",
                        facts->capability / 10, facts->capability % 10);
        error_advise(error, "build with CUDA_ARCHS=%d", facts->capability);
        return STATUS_DEVICE;
    case DEVICE_OK:
    case DEVICE_NO_MEMORY:
    case DEVICE_FAILED:
        break;
    }
    (void)error_set(error, STATUS_DEVICE, "the CUDA device does not start: %s", calls->trouble());
    error_advise(error, "see what nvidia-smi says");
    return STATUS_DEVICE;
}
