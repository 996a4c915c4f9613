/* gpu_machine.c - see gpu_machine.h. */
#include "tests/gpu/gpu_machine.h"

const struct device_facts *gpu_machine_facts(const struct machine *machine)
{
    return &((const struct machine_cuda *)machine)->facts;
}

enum status gpu_machine_wait(struct machine *machine, struct error *error)
{
    struct machine_cuda *cuda = cuda_of(machine);

    return cuda_failed(cuda, cuda->config.calls->wait(cuda->device), "the queue", error);
}

enum status gpu_machine_time(double *seconds, struct machine *machine, uint32_t steps,
                             struct error *error)
{
    struct machine_cuda *cuda = cuda_of(machine);
    const struct device_calls *calls = cuda->config.calls;

    TRY(cuda_failed(cuda, calls->mark(cuda->device, 2), "a mark", error));
    for (uint32_t i = 0; i < steps; i++) {
        TRY(machine->backend->step(machine, NULL, error));
    }
    TRY(cuda_failed(cuda, calls->mark(cuda->device, 3), "a mark", error));
    return cuda_failed(cuda, calls->seconds(cuda->device, seconds, 2, 3), "a mark", error);
}
