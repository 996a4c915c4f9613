/*
 * fake_nvml.c - a libnvidia-ml that answers as FAKE_NVML says: "COUNT ENERGY USE USED", the energy
 * in millijoules, the use in percent, the memory used in bytes. A use above 100 and an energy of 0
 * are not known; a count of 99 does not start. It makes build/tests/fake_nvml.so, which
 * LOCKSTEP_NVML can name.
 */
#include <stdio.h>
#include <stdlib.h>

struct nvml_readings {
    unsigned count;
    unsigned long long energy;
    unsigned use;
    unsigned long long used;
};

static struct nvml_readings readings(void)
{
    const char *text = getenv("FAKE_NVML");
    unsigned long long numbers[4] = {1};
    char *rest = NULL;

    for (int i = 0; text != NULL && i < 4; i++) {
        numbers[i] = strtoull(i == 0 ? text : rest, &rest, 10);
    }
    return (struct nvml_readings){(unsigned)numbers[0], numbers[1], (unsigned)numbers[2],
                                  numbers[3]};
}

int nvmlInit_v2(void)
{
    return readings().count == 99 ? 9 : 0;
}

int nvmlShutdown(void)
{
    return 0;
}

const char *nvmlErrorString(int code)
{
    return code == 9 ? "Driver Not Loaded" : "Not Supported";
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = readings().count;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned number, void **device)
{
    static char devices[128];

    *device = &devices[number % sizeof(devices)];
    return number < readings().count ? 0 : 2;
}

int nvmlDeviceGetName(void *device, char *name, unsigned size)
{
    (void)device;
    (void)snprintf(name, size, "Fake GPU");
    return 0;
}

int nvmlDeviceGetMemoryInfo(void *device, unsigned long long info[3])
{
    (void)device;
    info[0] = 8ull << 30;
    info[2] = readings().used;
    info[1] = info[0] - info[2];
    return 0;
}

int nvmlDeviceGetUtilizationRates(void *device, unsigned use[2])
{
    (void)device;
    use[0] = readings().use;
    use[1] = 1;
    return use[0] > 100 ? 3 : 0;
}

int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules)
{
    (void)device;
    *millijoules = readings().energy;
    return *millijoules == 0 ? 3 : 0;
}

int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor)
{
    (void)device;
    *major = 8;
    *minor = 6;
    return 0;
}
