/*
 * check_machine.c - which machine a check computes with, by its request.
 *
 * The first replay runs where the operator said. The second opinion of a GPU's is the CPU's; of a
 * CPU's, another instruction set's.
 */
#include "engine/plan/backend.h"
#include "verifier/check/check.h"

enum status check_machine(struct machine_options *options, const struct check_request *request,
                          bool other, struct error *error)
{
    const char *device = request->device[0] == '\0' ? "cpu" : request->device;

    TRY(machine_options_default(options, error));
    TRY(machine_options_device(options, device, NULL, error));

    options->thread_count = (int)request->threads;
    options->device_memory = request->device_memory;
    options->memory_max =
        request->memory_max > CHECK_MEMORY_BESIDE ? request->memory_max - CHECK_MEMORY_BESIDE : 1;
    if (other != request->other) {
        machine_options_other(options);
    }
    return STATUS_OK;
}
