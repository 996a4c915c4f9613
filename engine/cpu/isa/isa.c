/* isa.c - see isa.h. */
#include "engine/cpu/isa/isa.h"

#include <stdint.h>
#include <stdio.h>

#include "base/host.h"
#include "engine/cpu/isa/probe.h"
#include "engine/ops/float_control.h"

#define CHECKED (1u << ISA_COUNT) /* in the kept word: the other bits are known */

const char *isa_name(enum isa isa)
{
    static const char *const names[ISA_COUNT] = {"scalar", "avx2", "avx512", "neon", "i8mm"};

    return (unsigned)isa < ISA_COUNT ? names[isa] : "unknown";
}

static bool is_present(enum isa isa)
{
    struct host_cpuid cpuid;
    struct host_hwcap hwcap;

    host_cpuid_read(&cpuid);
    host_hwcap_read(&hwcap);
    switch (isa) {
    case ISA_SCALAR:
        return true;
    case ISA_AVX2:
        return host_has_avx2(&cpuid);
    case ISA_AVX512:
        return host_has_avx512(&cpuid);
    case ISA_NEON:
        return host_has_neon(&hwcap);
    case ISA_I8MM:
        return host_has_i8mm(&hwcap);
    case ISA_COUNT:
        break;
    }
    return false;
}

static probe_run *run_of(enum isa isa)
{
#if defined(__x86_64__)
    if (isa != ISA_SCALAR) {
        return isa == ISA_AVX2 ? probe_avx2 : probe_avx512;
    }
#elif defined(__aarch64__)
    if (isa != ISA_SCALAR) {
        return isa == ISA_NEON ? probe_neon : probe_i8mm;
    }
#else
    (void)isa;
#endif
    return probe_scalar;
}

/* The first class of operations that has other bits; NULL if all have those of the rules. */
static const char *wrong_class(enum isa isa)
{
    uint64_t control = float_control_take();
    enum probe_class wrong =
        isa == ISA_SCALAR ? probe_known(probe_scalar) : probe_compare(run_of(isa));

    float_control_give_back(control);
    return wrong == PROBE_COUNT ? NULL : probe_name(wrong);
}

/* A bit for each instruction set that may compute; threads that race here keep the same word. */
static unsigned usable_sets(void)
{
    static _Atomic unsigned isa_usable_kept;
    unsigned sets = isa_usable_kept;

    if (sets != 0) {
        return sets;
    }
    sets = CHECKED;
    if (wrong_class(ISA_SCALAR) == NULL) {
        for (int isa = ISA_SCALAR; isa < ISA_COUNT; isa++) {
            if (is_present((enum isa)isa) && wrong_class((enum isa)isa) == NULL) {
                sets |= 1u << isa;
            }
        }
    }
    isa_usable_kept = sets;
    return sets;
}

bool isa_available(enum isa isa)
{
    return (unsigned)isa < ISA_COUNT && (usable_sets() >> isa & 1) != 0;
}

enum isa isa_best(void)
{
    enum isa best = ISA_SCALAR;

    for (int isa = ISA_SCALAR; isa < ISA_COUNT; isa++) {
        best = isa_available((enum isa)isa) ? (enum isa)isa : best;
    }
    return best;
}

/* For messages: the class that has other bits. */
static const char *trouble_of(enum isa isa)
{
    const char *wrong = wrong_class(isa);

    return wrong == NULL ? "scalar arithmetic" : wrong;
}

enum status isa_check(enum isa isa, struct error *error)
{
    enum isa wrong = isa_available(ISA_SCALAR) ? isa : ISA_SCALAR;

    if (isa_available(isa)) {
        return STATUS_OK;
    }
    if (!is_present(wrong)) {
        return error_set(error, STATUS_USAGE, "this CPU has no %s", isa_name(wrong));
    }
    (void)error_set(error, STATUS_REFUSED, "%s computes other bits than the rules here: %s",
                    isa_name(wrong), trouble_of(wrong));
    error_advise(error, wrong == ISA_SCALAR
                            ? "this machine cannot take part: the processor is faulty, or an "
                              "emulator stands between"
                            : "a faulty processor or an emulator does this: LOCKSTEP_ISA=scalar "
                              "computes without it");
    return STATUS_REFUSED;
}

bool isa_trouble(char *line, size_t size)
{
    for (int isa = ISA_COUNT - 1; isa >= ISA_SCALAR; isa--) {
        if (!isa_available((enum isa)isa) && is_present((enum isa)isa)) {
            snprintf(line, size, "%s computes other bits than the rules here (%s) and is not used",
                     isa_name((enum isa)isa), trouble_of((enum isa)isa));
            return true;
        }
    }
    return false;
}
