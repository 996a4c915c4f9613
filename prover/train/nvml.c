/* nvml.c - see nvml.h. Calls and layouts are those of NVIDIA's NVML API reference. */
#include "prover/train/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MICRO_PER_MILLI 1000u

typedef void *nvml_handle; /* opaque */

struct memory_info {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
};

struct use_info {
    unsigned gpu;
    unsigned memory;
};

struct nvml {
    void *library;
    uint32_t count;
    int (*start)(void);
    int (*end)(void);
    const char *(*words)(int code);
    int (*get_count)(unsigned *count);
    int (*get_device)(unsigned number, nvml_handle *device);
    int (*get_name)(nvml_handle device, char *name, unsigned size);
    int (*get_memory)(nvml_handle device, struct memory_info *info);
    int (*get_use)(nvml_handle device, struct use_info *use);
    int (*get_energy)(nvml_handle device, unsigned long long *millijoules);
    int (*get_capability)(nvml_handle device, int *major, int *minor);
};

/* The slot is a pointer to a function; NULL where the library has no such call. */
static bool find_call(void *slot, void *library, const char *name)
{
    void *symbol = dlsym(library, name);

    /* POSIX: a function's address fits a void pointer. ISO C has no cast for it. */
    memcpy(slot, &symbol, sizeof(symbol));
    return symbol != NULL;
}

static bool find_all(struct nvml *nvml)
{
    (void)find_call(&nvml->words, nvml->library, "nvmlErrorString");
    (void)find_call(&nvml->get_memory, nvml->library, "nvmlDeviceGetMemoryInfo");
    (void)find_call(&nvml->get_use, nvml->library, "nvmlDeviceGetUtilizationRates");
    (void)find_call(&nvml->get_energy, nvml->library, "nvmlDeviceGetTotalEnergyConsumption");
    (void)find_call(&nvml->get_capability, nvml->library, "nvmlDeviceGetCudaComputeCapability");
    return find_call(&nvml->start, nvml->library, "nvmlInit_v2") &&
           find_call(&nvml->end, nvml->library, "nvmlShutdown") &&
           find_call(&nvml->get_count, nvml->library, "nvmlDeviceGetCount_v2") &&
           find_call(&nvml->get_device, nvml->library, "nvmlDeviceGetHandleByIndex_v2") &&
           find_call(&nvml->get_name, nvml->library, "nvmlDeviceGetName");
}

static const char *words_of(const struct nvml *nvml, int code)
{
    const char *words = nvml->words == NULL ? NULL : nvml->words(code);

    return words == NULL ? "it does not say why" : words;
}

static enum status start_library(struct nvml *nvml, const char *file, struct error *error)
{
    unsigned count = 0;
    int code;

    if (!find_all(nvml)) {
        return error_set(error, STATUS_DEVICE, "%.200s is no NVML that we know", file);
    }
    code = nvml->start();
    if (code != 0) {
        nvml->end = NULL;
        return error_set(error, STATUS_DEVICE, "NVML does not start: %.100s (error %d)",
                         words_of(nvml, code), code);
    }
    code = nvml->get_count(&count);
    if (code != 0) {
        return error_set(error, STATUS_DEVICE, "NVML counts no devices: %.100s (error %d)",
                         words_of(nvml, code), code);
    }
    nvml->count = count < NVML_DEVICES_MAX ? count : NVML_DEVICES_MAX;
    return STATUS_OK;
}

enum status nvml_open(struct nvml **nvml, struct error *error)
{
    const char *chosen = getenv("LOCKSTEP_NVML");
    const char *file = chosen == NULL || chosen[0] == '\0' ? NVML_LIBRARY : chosen;
    enum status status;

    *nvml = NULL;
    if (strcmp(file, "off") == 0) {
        return error_set(error, STATUS_NOT_FOUND, "NVML is turned off by LOCKSTEP_NVML");
    }

    struct nvml *made = calloc(1, sizeof(*made));

    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for NVML");
    }
    made->library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    status = made->library == NULL
                 ? error_set(error, STATUS_NOT_FOUND, "there is no NVML here: %.200s", dlerror())
                 : start_library(made, file, error);
    if (status != STATUS_OK) {
        nvml_close(made);
        return status;
    }
    *nvml = made;
    return STATUS_OK;
}

void nvml_close(struct nvml *nvml)
{
    if (nvml == NULL) {
        return;
    }
    if (nvml->end != NULL) {
        (void)nvml->end();
    }
    if (nvml->library != NULL) {
        (void)dlclose(nvml->library);
    }
    free(nvml);
}

uint32_t nvml_count(const struct nvml *nvml)
{
    return nvml->count;
}

enum status nvml_describe(struct nvml_device *device, const struct nvml *nvml, uint32_t number,
                          struct error *error)
{
    struct memory_info memory;
    nvml_handle handle = NULL;
    int major = 0;
    int minor = 0;
    int code = nvml->get_device(number, &handle);

    memset(device, 0, sizeof(*device));
    if (code == 0) {
        code = nvml->get_name(handle, device->name, sizeof(device->name));
        device->name[sizeof(device->name) - 1] = '\0';
    }
    if (code != 0) {
        return error_set(error, STATUS_DEVICE, "GPU %u: %.100s (error %d)", number,
                         words_of(nvml, code), code);
    }
    if (nvml->get_memory != NULL && nvml->get_memory(handle, &memory) == 0) {
        device->memory = memory.total;
    }
    if (nvml->get_capability != NULL && nvml->get_capability(handle, &major, &minor) == 0) {
        device->capability = 10 * major + minor;
    }
    return STATUS_OK;
}

void nvml_read(struct nvml_reading *reading, const struct nvml *nvml, uint32_t number)
{
    struct memory_info memory = {0};
    struct use_info use = {0};
    unsigned long long millijoules = 0;
    nvml_handle handle = NULL;

    memset(reading, 0, sizeof(*reading));
    if (nvml->get_device(number, &handle) != 0) {
        return;
    }
    reading->has_energy = nvml->get_energy != NULL && nvml->get_energy(handle, &millijoules) == 0;
    reading->microjoules = (uint64_t)millijoules * MICRO_PER_MILLI;
    reading->has_use = nvml->get_use != NULL && nvml->get_use(handle, &use) == 0;
    reading->use = use.gpu;
    reading->has_memory = nvml->get_memory != NULL && nvml->get_memory(handle, &memory) == 0;
    reading->memory_used = memory.used;
}

bool nvml_number_of(uint32_t *number, const struct nvml *nvml, uint32_t device)
{
    const char *order = getenv("CUDA_DEVICE_ORDER");

    *number = device;
    if (nvml->count == 1) {
        return device == 0;
    }
    return device < nvml->count && getenv("CUDA_VISIBLE_DEVICES") == NULL && order != NULL &&
           strcmp(order, "PCI_BUS_ID") == 0;
}
