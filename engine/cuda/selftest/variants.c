/* variants.c - see variants.h. */
#include "engine/cuda/selftest/variants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/device/device_error.h"
#include "engine/cuda/selftest/selftest.h"
#include "engine/cuda/selftest/units.h"

/* ---- names ------------------------------------------------------------------ */

static void add_text(char text[VARIANTS_TEXT_MAX], const char *before, const char *more)
{
    const size_t used = strlen(text);

    (void)snprintf(text + used, VARIANTS_TEXT_MAX - used, "%s%s", before, more);
}

static const char *why_disabled(const struct variants *variants, enum kernel_variant variant)
{
    if (variants->without >> variant & 1) {
        return "by name";
    }
    return proofs_words(
        variants->wrong >> variant & 1 ? PROOF_WRONG : (enum proof)variants->proofs.found[variant]);
}

/* "; half first in products of 14, 15, 16 bits, strips of 14 bits" */
static void add_quicker(char text[VARIANTS_TEXT_MAX], uint32_t quicker)
{
    const char *before = "; half first in ";

    for (int family = 0; family < UNIT_FAMILIES; family++) {
        const char *of = " of ";

        for (int width = 0; width < UNIT_WIDTHS; width++) {
            if ((quicker & QUICKER(family, width)) == 0) {
                continue;
            }
            if (strcmp(of, " of ") == 0) {
                add_text(text, before, units_family((enum unit_family)family));
                before = ", ";
            }
            add_text(text, of, units_bits((enum unit_width)width));
            of = ", ";
        }
        add_text(text, "", strcmp(of, ", ") == 0 ? " bits" : "");
    }
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
    add_quicker(text, variants->quicker);
    for (uint32_t variant = 0; variant < VARIANT_COUNT; variant++) {
        if (disabled >> variant & 1) {
            add_text(text, (disabled & ((1u << variant) - 1)) == 0 ? "; disabled: " : ", ",
                     selftest_name(variant));
            add_text(text, " (", why_disabled(variants, (enum kernel_variant)variant));
            add_text(text, "", ")");
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

/* What a note holds; first zeros. */
struct finding {
    uint32_t known;
    struct variants variants;
};

_Static_assert(sizeof(struct finding) <= sizeof(struct device_note), "a note holds a finding");

/* Without room for the trial bytes stay. */
static enum device_result choose_units(struct variants *variants, const struct device_calls *calls,
                                       struct device *device, const struct device_facts *facts)
{
    struct unit_times times;
    const enum device_result result =
        units_time(&times, calls, device, facts, variants_disabled(variants));

    variants->quicker = result == DEVICE_OK ? units_quicker(&times) : 0;
    return result == DEVICE_NO_MEMORY ? DEVICE_OK : result;
}

static enum device_result test_all(struct variants *variants, const struct device_calls *calls,
                                   struct device *device, const struct device_facts *facts)
{
    for (uint32_t variant = 0; variant < VARIANT_COUNT; variant++) {
        const uint32_t disabled = variants_disabled(variants);
        bool right = true;

        if (((disabled | ~variants->offered) >> variant & 1) == 0) {
            DEVICE_TRY(selftest_try(&right, calls, device, facts, variant, disabled));
        }
        variants->wrong |= right ? 0 : 1u << variant;
    }
    return choose_units(variants, calls, device, facts);
}

static enum status tell_unsound(const struct variants *variants, const struct device_calls *calls,
                                const struct device_facts *facts, enum device_result result,
                                struct error *error)
{
    const enum proof plain = (enum proof)variants->proofs.found[VARIANT_PLAIN];
    const enum status status = result == DEVICE_NO_MEMORY ? STATUS_NO_MEMORY : STATUS_DEVICE;

    (void)error_set(error, status, "%s fails the self-test of its contraction kernels: %s",
                    facts->name,
                    result != DEVICE_OK ? calls->trouble()
                                        : proofs_words(plain > PROOF_SOUND ? plain : PROOF_WRONG));
    error_advise(error, "if it stays, try LOCKSTEP_CUDA_WITHOUT=wgmma,mma,half, and tell us");
    return status;
}

static enum status test_open(struct variants *variants, const struct device_calls *calls,
                             struct device *device, const struct device_facts *facts,
                             struct error *error)
{
    enum device_result result = DEVICE_OK;

    variants->offered = selftest_offered(facts);
    variants->without &= variants->offered;
    if (proofs_barred(&variants->proofs) >> VARIANT_PLAIN & 1) {
        return tell_unsound(variants, calls, facts, result, error);
    }
    result = test_all(variants, calls, device, facts);
    return result != DEVICE_OK || (variants->wrong >> VARIANT_PLAIN & 1) != 0
               ? tell_unsound(variants, calls, facts, result, error)
               : STATUS_OK;
}

static enum status open_and_test(struct variants *variants, const struct device_calls *calls,
                                 int ordinal, struct error *error)
{
    struct device_facts facts = {.capability = 0};
    struct device *device = NULL;
    const enum device_result result = calls->open(&device, &facts, ordinal);
    enum status status;

    if (result != DEVICE_OK) {
        return device_error(calls, &facts, ordinal, result, error);
    }
    proofs_recall(&variants->proofs, calls, &facts);
    status = test_open(variants, calls, device, &facts, error);
    calls->close(device);
    return status;
}

enum status variants_of_device(struct variants *variants, const struct device_calls *calls,
                               int ordinal, struct error *error)
{
    struct device_note *note = calls->note(ordinal);
    struct finding finding = {.known = 0};

    *variants = (struct variants){.offered = 0};
    TRY(read_names(&variants->without, error));
    if (note != NULL) {
        memcpy(&finding, note, sizeof(finding));
    }
    if (finding.known != 0 &&
        finding.variants.without == (variants->without & finding.variants.offered)) {
        *variants = finding.variants;
        return STATUS_OK;
    }
    proofs_find(&variants->proofs, calls, ordinal, ~variants->without, PROOFS_SECONDS);
    TRY(open_and_test(variants, calls, ordinal, error));
    finding = (struct finding){.known = 1, .variants = *variants};
    if (note != NULL) {
        memcpy(note, &finding, sizeof(finding));
    }
    return STATUS_OK;
}
