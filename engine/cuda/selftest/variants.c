/* variants.c - see variants.h. */
#include "engine/cuda/selftest/variants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/device/device_error.h"
#include "engine/cuda/selftest/selftest.h"

/* ---- names ------------------------------------------------------------------ */

static void add_text(char text[VARIANTS_TEXT_MAX], const char *before, const char *more)
{
    const size_t used = strlen(text);

    (void)snprintf(text + used, VARIANTS_TEXT_MAX - used, "%s%s", before, more);
}

void variants_text(char text[VARIANTS_TEXT_MAX], const struct variants *variants)
{
    const uint32_t disabled = variants_disabled(variants);

    text[0] = '\0';
    for (uint32_t variant = 0; variant < CONTRACT_VARIANTS; variant++) {
        if ((variants->offered & ~disabled) >> variant & 1) {
            add_text(text, text[0] == '\0' ? "" : ", ", selftest_name(variant));
        }
    }
    for (uint32_t variant = 0; variant < VARIANT_COUNT; variant++) {
        if (disabled >> variant & 1) {
            add_text(text, (disabled & ((1u << variant) - 1)) == 0 ? "; disabled: " : ", ",
                     selftest_name(variant));
            add_text(text, "",
                     variants->wrong >> variant & 1 ? " (other bits than the rules)"
                                                    : " (by name)");
        }
    }
}

static enum status refuse_name(const char *name, struct error *error)
{
    char known[VARIANTS_TEXT_MAX] = "";

    for (uint32_t variant = 0; variant < VARIANT_COUNT; variant++) {
        if (variant != VARIANT_PLAIN) {
            add_text(known, known[0] == '\0' ? "" : ", ", selftest_name(variant));
        }
    }
    (void)error_set(error, STATUS_USAGE,
                    "LOCKSTEP_CUDA_WITHOUT names '%.20s', which is no kernel variant that can be "
                    "disabled",
                    name);
    error_advise(error, "name some of %s, with commas between them", known);
    return STATUS_USAGE;
}

/* LOCKSTEP_CUDA_WITHOUT as bits. */
static enum status read_names(uint32_t *without, struct error *error)
{
    const char *names = getenv("LOCKSTEP_CUDA_WITHOUT");

    *without = 0;
    while (names != NULL && *names != '\0') {
        const size_t length = strcspn(names, ",");
        uint32_t variant = 0;

        while (variant < VARIANT_COUNT &&
               (variant == VARIANT_PLAIN || strlen(selftest_name(variant)) != length ||
                memcmp(selftest_name(variant), names, length) != 0)) {
            variant++;
        }
        if (variant == VARIANT_COUNT) {
            return refuse_name(names, error);
        }
        *without |= 1u << variant;
        names += length + (names[length] == ',');
    }
    return STATUS_OK;
}

/* ---- tests ----------------------------------------------------------------------- */

#define NOTE_KNOWN UINT32_C(0x80000000)
#define NOTE_BITS  15 /* for each of two sets */
#define NOTE_MASK  ((1u << NOTE_BITS) - 1)

_Static_assert(VARIANT_COUNT <= NOTE_BITS, "a note has a bit for each variant");

uint32_t variants_offered(const struct device_facts *facts)
{
    const uint32_t all = (1u << VARIANT_COUNT) - 1;

    return facts->capability == HOPPER_CAPABILITY
               ? all
               : all & ~(1u << VARIANT_PAIRS | 1u << VARIANT_WGMMA);
}

/* A kernel that does not start harms nothing but its own variant. Without the plain one, all
 * end. */
static enum device_result forgive(enum device_result result, const struct launcher *launcher,
                                  enum kernel_variant variant)
{
    return result == DEVICE_OK || result == DEVICE_NO_MEMORY || variant == VARIANT_PLAIN
               ? result
               : launcher->calls->wait(launcher->device);
}

enum device_result variants_try(bool *right, const struct device_calls *calls,
                                struct device *device, const struct device_facts *facts,
                                enum kernel_variant variant, uint32_t disabled)
{
    const struct launcher launcher = {.calls = calls,
                                      .device = device,
                                      .block_count = 64,
                                      .capability = facts->capability,
                                      .shared_max = facts->shared_max,
                                      .disabled = disabled | ~variants_offered(facts),
                                      .gives_up = true,
                                      .packed = true};

    *right = false;
    return forgive(selftest_variant(right, &launcher, variant), &launcher, variant);
}

static enum device_result test_all(struct variants *variants, const struct device_calls *calls,
                                   struct device *device, const struct device_facts *facts)
{
    for (uint32_t variant = 0; variant < VARIANT_COUNT; variant++) {
        const uint32_t disabled = variants_disabled(variants);
        bool right = true;

        if (((disabled | ~variants->offered) >> variant & 1) == 0) {
            DEVICE_TRY(variants_try(&right, calls, device, facts, variant, disabled));
        }
        variants->wrong |= right ? 0 : 1u << variant;
    }
    return DEVICE_OK;
}

enum status variants_test(struct variants *variants, const struct device_calls *calls,
                          struct device *device, const struct device_facts *facts, int ordinal,
                          struct error *error)
{
    uint32_t *note = calls->note(ordinal);
    enum device_result result = DEVICE_OK;

    *variants = (struct variants){.offered = variants_offered(facts)};
    TRY(read_names(&variants->without, error));
    variants->without &= variants->offered;
    if (note != NULL && (*note & NOTE_KNOWN) != 0 &&
        (*note >> NOTE_BITS & NOTE_MASK) == variants->without) {
        variants->wrong = *note & NOTE_MASK;
    } else {
        result = test_all(variants, calls, device, facts);
    }
    if (result != DEVICE_OK || (variants->wrong >> VARIANT_PLAIN & 1) != 0) {
        (void)error_set(error, result == DEVICE_NO_MEMORY ? STATUS_NO_MEMORY : STATUS_DEVICE,
                        "%s fails the self-test of its contraction kernels: %s", facts->name,
                        result != DEVICE_OK ? calls->trouble()
                                            : "they give other bits than the rules");
        error_advise(error, "if it stays, try LOCKSTEP_CUDA_WITHOUT=pairs,wgmma, and tell us");
        return result == DEVICE_NO_MEMORY ? STATUS_NO_MEMORY : STATUS_DEVICE;
    }
    if (note != NULL) {
        *note = NOTE_KNOWN | variants->without << NOTE_BITS | variants->wrong;
    }
    return STATUS_OK;
}

enum status variants_of_device(struct variants *variants, const struct device_calls *calls,
                               int ordinal, struct error *error)
{
    struct device_facts facts = {.capability = 0};
    struct device *device = NULL;
    enum device_result result = calls->open(&device, &facts, ordinal);
    enum status status;

    if (result != DEVICE_OK) {
        return device_error(calls, &facts, ordinal, result, error);
    }
    status = variants_test(variants, calls, device, &facts, ordinal, error);
    calls->close(device);
    return status;
}
