/*
 * loader.h - finds and opens the CUDA plugin at run time.
 *
 * LOCKSTEP_CUDA names the file, and then no other place is tried; "off" means that there is none.
 * Otherwise lockstep_cuda.so is looked for beside the program and in ../lib/lockstep from there.
 * A plugin of another build is refused. What was loaded stays loaded: CUDA's runtime cannot be
 * unloaded safely.
 */
#ifndef ENGINE_CUDA_DEVICE_LOADER_H
#define ENGINE_CUDA_DEVICE_LOADER_H

#include "base/error.h"
#include "engine/cuda/device/device.h"

#define LOADER_PLUGIN "lockstep_cuda.so"

/* *calls is the plugin's table. Refusals name the file and say what to do. */
MUST_CHECK enum status loader_open(const struct device_calls **calls, struct error *error);

/* Are the numbers of the table this program's? file is for the sentence. */
MUST_CHECK enum status loader_check(const struct device_calls *calls, const char *file,
                                    struct error *error);

/* The driver's own number, "550.54.15", where the kernel says it; else "not known". */
#define LOADER_DRIVER_MAX 32
void loader_driver(char number[LOADER_DRIVER_MAX]);

#endif /* ENGINE_CUDA_DEVICE_LOADER_H */
