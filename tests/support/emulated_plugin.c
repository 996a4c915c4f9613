/*
 * emulated_plugin.c - the emulated device as a plugin: the one symbol of lockstep_cuda.so.
 *
 * With fake_device.c and the rules it makes build/tests/emulated_cuda.so, which LOCKSTEP_CUDA can
 * name, so that the programs themselves run on "a GPU" where there is none.
 */
#include "tests/support/fake_device.h"

device_plugin lockstep_cuda_device;

const struct device_calls *lockstep_cuda_device(void)
{
    return fake_device_calls();
}
