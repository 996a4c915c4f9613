/* machine_choice.c - which machine runs a tape: by name, or another one for a second opinion. */
#include <stdlib.h>
#include <string.h>

#include "engine/backend.h"
#include "engine/cuda/loader.h"
#include "engine/cuda/machine.h"
#include "engine/sliced.h"

/* More devices than any machine has: bounds what is read from a name. */
#define DEVICE_NUMBER_MAX 1023

enum status machine_open(struct machine **machine, const struct tape *tape,
                         const struct machine_options *options, struct error *error)
{
    const struct backend *backend = options->backend == NULL ? &backend_cpu : options->backend;
    struct machine_options whole = *options;
    enum status status;

    if (options->device_memory != 0 && backend != &backend_cpu) {
        whole.memory_max = options->device_memory;
    }
    status = backend->open(machine, tape, &whole, error);
    if (status == STATUS_NO_MEMORY && backend != &backend_cpu &&
        (options->device_memory != 0 || options->trace)) {
        error_init(error);
        status = machine_sliced_open(machine, tape, options, error);
    }
    return status;
}

/* Does the device start? The sentences are those of opening a machine on it. */
static enum status try_cuda(uint32_t device, struct error *error)
{
    const struct device_calls *calls = NULL;
    struct device *opened = NULL;
    struct device_facts facts = {.capability = 0};
    enum device_result result;
    enum status status = loader_open(&calls, error);

    if (status != STATUS_OK) {
        return status;
    }
    result = calls->open(&opened, &facts, (int)device);
    if (result == DEVICE_OK) {
        calls->close(opened);
        return STATUS_OK;
    }
    return machine_cuda_trouble(calls, &facts, (int)device, result, error);
}

static enum status unknown_device(const char *name, struct error *error)
{
    (void)error_set(error, STATUS_USAGE, "there is no kind of device '%.40s'", name);
    error_advise(error, "use cpu, cuda, cuda:N for the N-th GPU from 0, or auto");
    return STATUS_USAGE;
}

static enum status choose_cuda(struct machine_options *options, const char *name,
                               const char *number, struct error *error)
{
    char *end = NULL;
    unsigned long device = 0;
    enum status status;

    if (*number != '\0') {
        device = strtoul(number + 1, &end, 10);
        if (number[0] != ':' || number[1] < '0' || number[1] > '9' || *end != '\0' ||
            device > DEVICE_NUMBER_MAX) {
            return unknown_device(name, error);
        }
    }
    status = try_cuda((uint32_t)device, error);
    if (status == STATUS_OK) {
        options->backend = &backend_cuda;
        options->device = (uint32_t)device;
    }
    return status;
}

enum status machine_options_device(struct machine_options *options, const char *name,
                                   struct error *error)
{
    options->backend = &backend_cpu;
    options->device = 0;
    if (strcmp(name, "cpu") == 0) {
        return STATUS_OK;
    }
    if (strcmp(name, "auto") == 0) {
        struct error none;

        error_init(&none);
        (void)choose_cuda(options, name, "", &none); /* without a GPU the CPU stands */
        return STATUS_OK;
    }
    if (strncmp(name, "cuda", 4) == 0) {
        return choose_cuda(options, name, name + 4, error);
    }
    return unknown_device(name, error);
}

void machine_options_other(struct machine_options *options)
{
    if (options->backend != NULL && options->backend != &backend_cpu) {
        options->backend = &backend_cpu;
        options->isa = isa_best();
        return;
    }
    for (int other = ISA_COUNT - 1; other > ISA_SCALAR; other--) {
        if (other != (int)options->isa && isa_available((enum isa)other)) {
            options->isa = (enum isa)other;
            return;
        }
    }
    options->isa = options->isa == ISA_SCALAR ? isa_best() : ISA_SCALAR;
}
