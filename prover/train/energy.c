/* energy.c - see energy.h. */
#include "prover/train/energy.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/io/file.h"

#define COUNTER_TEXT_MAX 4096 /* the size that sysfs gives all its files */

/* FOLDER/intel-rapl:0/energy_uj is the counter of socket 0, on AMD's processors too. */
static bool read_counter(uint64_t *value, const char *folder, uint32_t package, const char *name)
{
    char path[FILE_PATH_MAX];
    struct file_bytes text;
    char *end;

    (void)snprintf(path, sizeof(path), "%s/intel-rapl:%u/%s", folder, package, name);
    if (file_read(&text, NULL, path, COUNTER_TEXT_MAX) != STATUS_OK) {
        return false;
    }
    *value = strtoull((const char *)text.data, &end, 10);

    bool good = end != (const char *)text.data && (*end == '\n' || *end == '\0');

    file_bytes_release(&text);
    return good;
}

void energy_start(struct energy *energy, const char *folder)
{
    uint32_t count = 0;

    energy->folder = folder;
    energy->gpu = NULL;
    while (folder != NULL && count < ENERGY_PACKAGES_MAX &&
           read_counter(&energy->before[count], folder, count, "energy_uj")) {
        count++;
    }
    energy->package_count = count;
}

void energy_start_gpu(struct energy *energy, const struct energy_gpu *gpu)
{
    energy->gpu = gpu;
    if (gpu != NULL) {
        nvml_read(&energy->gpu_before, gpu->nvml, gpu->number);
    }
}

/* A restart of the driver resets the counter: then this interval is unknown. */
static bool add_gpu(uint64_t *microjoules, const struct energy *energy)
{
    struct nvml_reading now;

    if (energy->gpu == NULL || !energy->gpu_before.has_energy) {
        return false;
    }
    nvml_read(&now, energy->gpu->nvml, energy->gpu->number);
    if (!now.has_energy || now.microjoules < energy->gpu_before.microjoules) {
        return false;
    }
    *microjoules += now.microjoules - energy->gpu_before.microjoules;
    return true;
}

bool energy_stop(uint64_t *microjoules, const struct energy *energy)
{
    *microjoules = 0;
    for (uint32_t package = 0; package < energy->package_count; package++) {
        uint64_t now;
        uint64_t range = 0;

        if (!read_counter(&now, energy->folder, package, "energy_uj")) {
            return false;
        }
        if (now < energy->before[package] &&
            !read_counter(&range, energy->folder, package, "max_energy_range_uj")) {
            return false;
        }
        *microjoules += now - energy->before[package] + range;
    }
    bool gpu_known = add_gpu(microjoules, energy);

    return gpu_known || energy->package_count > 0;
}
