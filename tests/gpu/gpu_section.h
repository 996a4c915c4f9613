/*
 * gpu_section.h - a part of gpu-check as a process of its own, with a limit of time.
 *
 * No matter what happens to it (a lost device, a signal, no end), its parent gets an answer. A
 * section that cannot even be killed, because a driver holds it, is left behind.
 */
#ifndef TESTS_GPU_GPU_SECTION_H
#define TESTS_GPU_GPU_SECTION_H

#include "tests/gpu/gpu_check.h"

/* What a section is for. */
enum gpu_rung {
    GPU_RUNG_ALONE, /* one variant beside plain kernels: where it fails, it is barred */
    GPU_RUNG_BITS,
    GPU_RUNG_SPEED,
    GPU_RUNG_TOOL, /* where the tool is */
};

struct gpu_section {
    const char *name;
    void (*run)(struct gpu_check *check, int kind);
    int kind;
    enum gpu_rung rung;
    double limit_s;
};

/* Did it come to its end within limit_s? Otherwise the tally holds the reason. */
bool gpu_section_run(struct gpu_check *check, const struct gpu_section *section, double limit_s);

#endif /* TESTS_GPU_GPU_SECTION_H */
