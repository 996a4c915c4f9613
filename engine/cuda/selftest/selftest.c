/* selftest.c - see selftest.h. */
#include "engine/cuda/selftest/selftest.h"

#include "engine/cuda/fusions/fuse.h"
#include "engine/cuda/fusions/pattern.h"
#include "engine/cuda/launch/contract_kernel.h"
#include "engine/cuda/launch/launch_contract.h"
#include "engine/cuda/launch/launch_quantize.h"
#include "engine/cuda/selftest/tape_run.h"

/* ---- the variants -------------------------------------------------------------------- */

/* Those that launch.h chooses; the others are fusion patterns. */
static const struct launch_variant {
    const char *name;
    selftest_build *build;
    uint32_t parts;
} launch_variants[VARIANT_COUNT] = {
    [VARIANT_WGMMA] = {"wgmma", contract_wgmma_selftest, WGMMA_SELFTESTS},
    [VARIANT_MMA] = {"mma", contract_mma_selftest, MMA_SELFTESTS},
    [VARIANT_HALF] = {"half", contract_half_selftest, HALF_SELFTESTS},
    [VARIANT_PLAIN] = {"plain", contract_plain_selftest, PLAIN_SELFTESTS},
    [VARIANT_DOTS] = {"dots", launch_dots_selftest, DOTS_SELFTESTS},
    [VARIANT_COLUMNS] = {"columns", launch_columns_selftest, COLUMNS_SELFTESTS},
};

static struct launch_variant find_variant(enum kernel_variant variant)
{
    const struct fusion_pattern *pattern = fuse_pattern(variant);

    return pattern == NULL
               ? launch_variants[variant]
               : (struct launch_variant){pattern->name, pattern->selftest, pattern->selftests};
}

const char *selftest_name(enum kernel_variant variant)
{
    return find_variant(variant).name;
}

/* ---- one variant ----------------------------------------------------------------------- */

/* All parts, or so many, with everything else disabled. */
static enum device_result run_parts(bool *right, const struct launcher *device_launcher,
                                    enum kernel_variant variant, uint32_t allowed, uint32_t most)
{
    const struct launch_variant tested = find_variant(variant);
    struct launcher launcher = *device_launcher;

    launcher.disabled = ~allowed;
    for (uint32_t part = 0; part < tested.parts && part < most && *right; part++) {
        DEVICE_TRY(tape_run_compare(right, &launcher, tested.build, part));
    }
    return DEVICE_OK;
}

enum device_result selftest_variant(bool *right, const struct launcher *device_launcher,
                                    enum kernel_variant variant)
{
    const struct fusion_pattern *pattern = fuse_pattern(variant);
    const uint32_t free_ones = ~device_launcher->disabled;
    const uint32_t products = pattern == NULL ? 0 : pattern->products & free_ones;
    const uint32_t with = 1u << variant | 1u << VARIANT_PLAIN |
                          (variant == VARIANT_EPILOGUE ? free_ones & 1u << VARIANT_HELD : 0);

    *right = true;
    if (variant < CONTRACT_VARIANTS) {
        return run_parts(right, device_launcher, variant, 1u << variant, UINT32_MAX);
    }
    if (products == 0) {
        return run_parts(right, device_launcher, variant, with, UINT32_MAX);
    }
    /* What multiplies, or follows products, is tested with each kernel that makes them. */
    for (uint32_t product = 0; product < CONTRACT_VARIANTS && *right; product++) {
        const bool first = (products & ((1u << product) - 1)) == 0;

        if ((products >> product & 1) != 0) {
            DEVICE_TRY(run_parts(right, device_launcher, variant, with | 1u << product,
                                 first ? UINT32_MAX : pattern->again));
        }
    }
    return DEVICE_OK;
}

/* ---- on an open device ------------------------------------------------------------------ */

uint32_t selftest_offered(const struct device_facts *facts)
{
    const uint32_t all = (1u << VARIANT_COUNT) - 1;

    return facts->capability == HOPPER_CAPABILITY ? all : all & ~(1u << VARIANT_WGMMA);
}

/* A kernel that does not start harms nothing but its own variant. Without the plain one, all
 * end. */
static enum device_result forgive_variant(enum device_result result,
                                          const struct launcher *launcher,
                                          enum kernel_variant variant)
{
    return result == DEVICE_OK || result == DEVICE_NO_MEMORY || variant == VARIANT_PLAIN
               ? result
               : launcher->calls->wait(launcher->device);
}

enum device_result selftest_try(bool *right, const struct device_calls *calls,
                                struct device *device, const struct device_facts *facts,
                                enum kernel_variant variant, uint32_t disabled)
{
    const struct launcher launcher = {.calls = calls,
                                      .device = device,
                                      .block_count = 64,
                                      .capability = facts->capability,
                                      .shared_max = facts->shared_max,
                                      .disabled = disabled | ~selftest_offered(facts),
                                      .gives_up = true,
                                      .packed = true};

    *right = false;
    return forgive_variant(selftest_variant(right, &launcher, variant), &launcher, variant);
}
