/*
 * emulated_plugin.c - the emulated device as a plugin: the one symbol of lockstep_cuda.so.
 *
 * With fake_device.c and the rules it makes build/tests/emulated_cuda.so, which LOCKSTEP_CUDA can
 * name, so that the programs themselves run on "a GPU" where there is none. EMULATED_FAIL_AT=K
 * makes its K-th call fail and all after it, as those of a lost device would; EMULATED_NAME names
 * the device.
 */
#include <stdlib.h>

#include "tests/support/fake_device.h"

device_plugin lockstep_cuda_device;

const struct device_calls *lockstep_cuda_device(void)
{
    const char *fail_at = getenv("EMULATED_FAIL_AT");
    const struct fake_device_switches wanted = {
        .fail_at = fail_at == NULL ? 0 : strtoull(fail_at, NULL, 10),
        .result = DEVICE_FAILED,
        .for_good = true,
        .name = getenv("EMULATED_NAME")};

    fake_device_set(&wanted);
    return fake_device_calls();
}
