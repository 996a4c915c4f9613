/*
 * gpu_results.h - the files that gpu-check leaves: one table to be read and one for programs, named
 * after the device and the day, in a folder that keeps those of all runs.
 *
 * While a run goes on they are called NAME.part.md and NAME.part.json; only one that came to its
 * end has files without "part". No file of an earlier run is ever written over: the next has -2, -3
 * and so on behind its name, and that is printed. What the device's name holds is not trusted to be
 * a file's name.
 */
#ifndef TESTS_GPU_GPU_RESULTS_H
#define TESTS_GPU_GPU_RESULTS_H

#include "tests/gpu/gpu_check.h"

#define GPU_RESULTS_NAME_MAX 128
#define GPU_RESULTS_PATH_MAX 4096

struct gpu_results {
    char path[GPU_RESULTS_PATH_MAX]; /* without an ending; empty: no files */
};

/*
 * What the files of a device are called: "gpu-check-nvidia-h200-2026-11-21", and what the run left
 * out behind it. Letters, digits and single hyphens alone.
 */
void gpu_results_name(char name[GPU_RESULTS_NAME_MAX], const char *device, const char *date,
                      const char *rest);

/* Opens check->json and check->table in folder and says what is measured; or says why not. */
bool gpu_results_begin(struct gpu_results *results, struct gpu_check *check, const char *folder,
                       const char *only);

/* A section of bits in words: "equal", "DIFFERS", or "cannot tell" and the reason. */
void gpu_results_section(struct gpu_check *check, const char *name, const char *verdict,
                         uint64_t comparisons, const char *reason);

/* Ends the files and gives them their names; false, and a word, where they could not be kept. */
bool gpu_results_end(struct gpu_results *results, struct gpu_check *check, uint32_t untold);

#endif /* TESTS_GPU_GPU_RESULTS_H */
