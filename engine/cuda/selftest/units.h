/*
 * units.h - by bytes or by halves: whichever took less time on this very device, family by family
 * and width by width. Nobody keeps a list of what which device does better.
 */
#ifndef ENGINE_CUDA_SELFTEST_UNITS_H
#define ENGINE_CUDA_SELFTEST_UNITS_H

#include "engine/cuda/launch/launcher.h"

/* Seconds; 0 and 0 where there is no choice. */
struct unit_times {
    double bytes[UNIT_FAMILIES][UNIT_WIDTHS];
    double halves[UNIT_FAMILIES][UNIT_WIDTHS];
};

/* "products", "strips", "attention"; "14", "15, 16", "22" */
const char *units_family(enum unit_family family);
const char *units_bits(enum unit_width width);

/*
 * Times one kernel of each family and width on an open device that it fills, by both. What disabled
 * bars is not launched.
 */
enum device_result units_time(struct unit_times *times, const struct device_calls *calls,
                              struct device *device, const struct device_facts *facts,
                              uint32_t disabled);

/* launcher.quicker, by these times. */
uint32_t units_quicker(const struct unit_times *times);

#endif /* ENGINE_CUDA_SELFTEST_UNITS_H */
