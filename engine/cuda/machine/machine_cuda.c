/* machine_cuda.c - see machine_cuda.h. */
#include "engine/cuda/machine/machine_cuda.h"

enum status cuda_failed(const struct machine_cuda *cuda, enum device_result result,
                        const char *what, struct error *error)
{
    if (result == DEVICE_OK) {
        return STATUS_OK;
    }
    (void)error_set(error, result == DEVICE_NO_MEMORY ? STATUS_NO_MEMORY : STATUS_DEVICE,
                    "%s: %s failed: %s", cuda->facts.name, what, cuda->config.calls->trouble());
    error_advise(error, "run it again; if it stays, see what nvidia-smi and dmesg say");
    return result == DEVICE_NO_MEMORY ? STATUS_NO_MEMORY : STATUS_DEVICE;
}

bool cuda_can_be_read(const struct machine_cuda *cuda, uint32_t tensor)
{
    const struct tape *tape = cuda->machine.tape;

    if (tensor >= tape->tensor_count || tape->tensors[tensor].role == ROLE_DATA ||
        cuda->memory[tensor] == NULL) {
        return false;
    }
    return tape->tensors[tensor].role != ROLE_TEMPORARY || tensor == tape->loss;
}
