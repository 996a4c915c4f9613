/* units.c - see units.h. */
#include "engine/cuda/selftest/units.h"

#include <string.h>

#include "engine/cuda/fusions/fuse.h"
#include "engine/cuda/fusions/pattern.h"
#include "engine/cuda/launch/contract_kernel.h"
#include "engine/cuda/selftest/selftest.h"
#include "engine/cuda/selftest/tape_run.h"

static const struct unit_kind {
    const char *name;
    enum kernel_variant variant; /* that must be free; VARIANT_PLAIN always is */
    int widths;                  /* that it takes, from the first */
} kinds[UNIT_FAMILIES] = {
    [UNITS_PRODUCTS] = {"products", VARIANT_PLAIN, UNIT_WIDTHS},
    [UNITS_STRIPS] = {"strips", VARIANT_STRIPS, WIDTH_THREE},
    [UNITS_ATTENTION] = {"attention", VARIANT_ATTENTION, WIDTH_THREE},
};

static const struct {
    const char *name;
    int bits; /* that are timed */
} widths[UNIT_WIDTHS] = {{"14", 14}, {"15, 16", 16}, {"22", 22}};

const char *units_family(enum unit_family family)
{
    return kinds[family].name;
}

const char *units_bits(enum unit_width width)
{
    return widths[width].name;
}

/* Can bytes be multiplied but by plain kernels? Only mma's units are in strips and in attention. */
static bool bytes_take(const struct launcher *launcher, enum unit_family family, int bits)
{
    return launch_allows(launcher, VARIANT_MMA) ||
           (family == UNITS_PRODUCTS && bits == 14 && launch_allows(launcher, VARIANT_WGMMA));
}

static enum device_result time_one(struct unit_times *times, const struct launcher *device_launcher,
                                   enum unit_family family, enum unit_width width)
{
    const struct unit_kind *kind = &kinds[family];
    const struct fusion_pattern *pattern = fuse_pattern(kind->variant);
    selftest_timed *build = pattern == NULL ? contract_timed : pattern->timed;
    struct launcher launcher = *device_launcher;
    const int bits = widths[width].bits;

    if (!launch_allows(&launcher, kind->variant) || !launch_allows(&launcher, VARIANT_HALF) ||
        !bytes_take(&launcher, family, bits)) {
        return DEVICE_OK;
    }
    launcher.disabled = device_launcher->disabled | 1u << VARIANT_HALF;
    DEVICE_TRY(tape_run_time(&times->bytes[family][width], &launcher, build, bits));
    launcher.disabled = device_launcher->disabled | 1u << VARIANT_WGMMA | 1u << VARIANT_MMA;
    return tape_run_time(&times->halves[family][width], &launcher, build, bits);
}

enum device_result units_time(struct unit_times *times, const struct device_calls *calls,
                              struct device *device, const struct device_facts *facts,
                              uint32_t disabled)
{
    const struct launcher launcher = {.calls = calls,
                                      .device = device,
                                      .block_count = 64,
                                      .capability = facts->capability,
                                      .processors = (uint32_t)facts->multiprocessors,
                                      .shared_max = facts->shared_max,
                                      .disabled = disabled | ~selftest_offered(facts),
                                      .gives_up = true,
                                      .packed = true};

    memset(times, 0, sizeof(*times));
    for (int family = 0; family < UNIT_FAMILIES; family++) {
        for (int width = 0; width < kinds[family].widths; width++) {
            DEVICE_TRY(
                time_one(times, &launcher, (enum unit_family)family, (enum unit_width)width));
        }
    }
    return DEVICE_OK;
}

uint32_t units_quicker(const struct unit_times *times)
{
    uint32_t quicker = 0;

    for (int family = 0; family < UNIT_FAMILIES; family++) {
        for (int width = 0; width < UNIT_WIDTHS; width++) {
            quicker |= times->halves[family][width] < times->bytes[family][width]
                           ? QUICKER(family, width)
                           : 0;
        }
    }
    return quicker;
}
