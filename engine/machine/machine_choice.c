/* machine_choice.c - opens the machine that the options name, and reads the names of devices. */
#include <stdlib.h>
#include <string.h>

#include "base/io/log.h"
#include "engine/cuda/device/device_error.h"
#include "engine/cuda/device/loader.h"
#include "engine/cuda/machine/machine.h"
#include "engine/cuda/selftest/variants.h"
#include "engine/machine/machine_rewrite.h"
#include "engine/machine/machine_sliced.h"
#include "engine/machine/machine_split.h"
#include "engine/plan/backend.h"

#define DEVICE_NUMBER_MAX 1023 /* in a device's name */

static enum status open_machine(struct machine **machine, const struct tape *tape,
                                const struct machine_options *options, struct error *error)
{
    return options->device_count > 1 ? machine_split_open(machine, tape, options, error)
                                     : machine_fitting_open(machine, tape, options, error);
}

enum status machine_open(struct machine **machine, const struct tape *tape,
                         const struct machine_options *options, struct error *error)
{
    struct tape *rewrite = NULL;
    enum status status;

    TRY(machine_rewrite(&rewrite, tape, options, error));
    status = open_machine(machine, rewrite != NULL ? rewrite : tape, options, error);
    if (status != STATUS_OK) {
        tape_free(rewrite);
        return status;
    }
    (*machine)->rewrite = rewrite;
    (*machine)->thread_count = options->thread_count;
    return STATUS_OK;
}

enum status machine_size(uint64_t *size, const struct tape *tape,
                         const struct machine_options *options, struct error *error)
{
    const struct backend *backend = options->backend == NULL ? &backend_cpu : options->backend;
    struct tape *rewrite = NULL;
    enum status status;

    TRY(machine_rewrite(&rewrite, tape, options, error));
    status = backend->size(size, rewrite != NULL ? rewrite : tape, options, error);
    tape_free(rewrite);
    return status;
}

/* Does the device start? The errors are those of opening a machine on it. */
static enum status try_cuda(uint32_t device, struct error *error)
{
    const struct device_calls *calls = NULL;
    struct device *opened = NULL;
    struct device_facts facts = {.capability = 0};
    enum device_result result;

    TRY(loader_open(&calls, error));
    result = calls->open(&opened, &facts, (int)device);
    if (result == DEVICE_OK) {
        calls->close(opened);
        return STATUS_OK;
    }
    return device_error(calls, &facts, (int)device, result, error);
}

static enum status unknown_device(const char *name, struct error *error)
{
    (void)error_set(error, STATUS_USAGE, "there is no kind of device '%.40s'", name);
    error_advise(error,
                 "use cpu, cuda, cuda:N for the N-th GPU from 0, several with commas, or auto");
    return STATUS_USAGE;
}

/* Reads one "cuda" or "cuda:N"; *next is the end of it. */
static enum status read_device(uint32_t *device, const char **next, const char *name,
                               struct error *error)
{
    const char *at = name + strlen("cuda");
    unsigned long number = 0;
    char *end = NULL;

    if (strncmp(name, "cuda", strlen("cuda")) != 0) {
        return unknown_device(name, error);
    }
    if (*at == ':') {
        number = strtoul(at + 1, &end, 10);
        if (at[1] < '0' || at[1] > '9' || number > DEVICE_NUMBER_MAX) {
            return unknown_device(name, error);
        }
        at = end;
    }
    *device = (uint32_t)number;
    *next = at;
    return *at == '\0' || *at == ',' ? STATUS_OK : unknown_device(name, error);
}

static enum status choose_cuda(struct machine_options *options, const char *name,
                               struct error *error)
{
    uint32_t devices[MACHINE_DEVICES_MAX];
    uint32_t count = 0;
    const char *at = name;

    for (;;) {
        if (count == MACHINE_DEVICES_MAX) {
            return error_set(error, STATUS_USAGE, "a step is split over %d devices at most",
                             MACHINE_DEVICES_MAX);
        }
        TRY(read_device(&devices[count], &at, at, error));
        TRY(try_cuda(devices[count++], error));
        if (*at == '\0') {
            break;
        }
        at++;
    }
    options->backend = &backend_cuda;
    options->device = devices[0];
    options->device_count = count;
    memcpy(options->devices, devices, sizeof(devices));
    return STATUS_OK;
}

/* The first GPU, if it gives the rules' bits; a name that LOCKSTEP_CUDA_WITHOUT gets wrong is no
 * reason to compute elsewhere. */
static enum status choose_sound(struct machine_options *options, const struct log *log,
                                struct error *error)
{
    const struct device_calls *calls = NULL;
    struct variants variants;
    struct error why;
    enum status status;

    error_init(&why);
    status = loader_open(&calls, &why);
    if (status == STATUS_OK) {
        status = variants_of_device(&variants, calls, 0, &why);
    }
    if (status == STATUS_USAGE) {
        *error = why;
        return status;
    }
    if (status != STATUS_OK) {
        log_info(log, "device", "auto takes the CPU: %s", why.text);
        return STATUS_OK;
    }
    log_info(log, "device", "auto takes the first GPU");
    return choose_cuda(options, "cuda", error);
}

enum status machine_options_device(struct machine_options *options, const char *name,
                                   const struct log *log, struct error *error)
{
    options->backend = &backend_cpu;
    options->device = 0;
    options->device_count = 0;
    if (strcmp(name, "cpu") == 0) {
        return STATUS_OK;
    }
    if (strcmp(name, "auto") == 0) {
        return choose_sound(options, log, error);
    }
    if (strncmp(name, "cuda", 4) == 0) {
        return choose_cuda(options, name, error);
    }
    return unknown_device(name, error);
}

void machine_options_other(struct machine_options *options)
{
    if (options->backend != NULL && options->backend != &backend_cpu) {
        options->backend = &backend_cpu;
        options->device_count = 0;
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
