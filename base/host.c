/* host.c - see host.h. */
#include "base/host.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

#define PROC_LINE_MAX 512

/* The value of a "name : value" line of a /proc file; empty when there is none. */
static void proc_value(char *value, size_t size, const char *path, const char *name)
{
    FILE *file = fopen(path, "re");
    char line[PROC_LINE_MAX];

    value[0] = '\0';
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        const char *colon = strchr(line, ':');

        if (strncmp(line, name, strlen(name)) == 0 && colon != NULL) {
            const char *start = colon + 1 + strspn(colon + 1, " \t");

            snprintf(value, size, "%.*s", (int)strcspn(start, "\n"), start);
            break;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

static unsigned core_count(void)
{
    cpu_set_t cores;

    if (sched_getaffinity(0, sizeof(cores), &cores) == 0) {
        return (unsigned)CPU_COUNT(&cores);
    }
    return 1;
}

static uint64_t memory_available(void)
{
    char value[64];

    proc_value(value, sizeof(value), "/proc/meminfo", "MemAvailable");
    return strtoull(value, NULL, 10) * 1024; /* 0 where the system does not say */
}

/* ---- instruction sets ------------------------------------------------------------------- */

/* Bits of CPUID: leaf 1 and leaf 7, by register. */
enum {
    LEAF1_ECX_FMA = 1 << 12,
    LEAF1_ECX_OSXSAVE = 1 << 27,
    LEAF1_ECX_AVX = 1 << 28,
    LEAF1_ECX_F16C = 1 << 29,
    LEAF7_EBX_AVX2 = 1 << 5,
    LEAF7_EBX_BMI2 = 1 << 8,
    LEAF7_EBX_AVX512F = 1 << 16,
    LEAF7_EBX_AVX512DQ = 1 << 17,
    LEAF7_EBX_AVX512BW = 1 << 30,
    LEAF7_ECX_AVX512VNNI = 1 << 11,
    XCR0_AVX = 0x06,    /* the system saves 256-bit registers */
    XCR0_AVX512 = 0xe6, /* and masks and 512-bit ones */
};

#define LEAF7_EBX_AVX512VL (UINT32_C(1) << 31)

static bool has_all(uint32_t word, uint32_t wanted)
{
    return (word & wanted) == wanted;
}

void host_cpuid_read(struct host_cpuid *cpuid)
{
    memset(cpuid, 0, sizeof(*cpuid));
#if defined(__x86_64__)
    uint32_t eax;
    uint32_t ebx;
    uint32_t ecx;
    uint32_t edx;

    if (__get_cpuid(1, &eax, &ebx, &ecx, &edx)) {
        cpuid->leaf1_ecx = ecx;
    }
    if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) {
        cpuid->leaf7_ebx = ebx;
        cpuid->leaf7_ecx = ecx;
    }
    if (has_all(cpuid->leaf1_ecx, LEAF1_ECX_OSXSAVE)) {
        __asm__ volatile("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
        cpuid->xcr0 = eax;
    }
#endif
}

bool host_has_avx2(const struct host_cpuid *cpuid)
{
    return has_all(cpuid->leaf1_ecx,
                   LEAF1_ECX_FMA | LEAF1_ECX_OSXSAVE | LEAF1_ECX_AVX | LEAF1_ECX_F16C) &&
           has_all(cpuid->leaf7_ebx, LEAF7_EBX_AVX2 | LEAF7_EBX_BMI2) &&
           has_all(cpuid->xcr0, XCR0_AVX);
}

bool host_has_avx512(const struct host_cpuid *cpuid)
{
    return host_has_avx2(cpuid) &&
           has_all(cpuid->leaf7_ebx, LEAF7_EBX_AVX512F | LEAF7_EBX_AVX512DQ | LEAF7_EBX_AVX512BW |
                                         LEAF7_EBX_AVX512VL) &&
           has_all(cpuid->leaf7_ecx, LEAF7_ECX_AVX512VNNI) && has_all(cpuid->xcr0, XCR0_AVX512);
}

/* Bits of HWCAP and of HWCAP2 of an ARM system: asm/hwcap.h. */
enum {
    HWCAP_BIT_ASIMD = 1 << 1,
    HWCAP_BIT_SHA2 = 1 << 6,
    HWCAP_BIT_ASIMDDP = 1 << 20,
    HWCAP2_BIT_I8MM = 1 << 13,
};

void host_hwcap_read(struct host_hwcap *hwcap)
{
    memset(hwcap, 0, sizeof(*hwcap));
#if defined(__aarch64__)
    hwcap->first = getauxval(AT_HWCAP);
    hwcap->second = getauxval(AT_HWCAP2);
#endif
}

bool host_has_neon(const struct host_hwcap *hwcap)
{
    return has_all((uint32_t)hwcap->first, HWCAP_BIT_ASIMD);
}

bool host_has_i8mm(const struct host_hwcap *hwcap)
{
    return has_all((uint32_t)hwcap->first, HWCAP_BIT_ASIMD | HWCAP_BIT_ASIMDDP) &&
           has_all((uint32_t)hwcap->second, HWCAP2_BIT_I8MM);
}

bool host_has_armsha(const struct host_hwcap *hwcap)
{
    return has_all((uint32_t)hwcap->first, HWCAP_BIT_ASIMD | HWCAP_BIT_SHA2);
}

static void look_at_instructions(struct host *host)
{
    struct host_cpuid cpuid;
    struct host_hwcap hwcap;

    host_cpuid_read(&cpuid);
    host_hwcap_read(&hwcap);
    host->has_neon = host_has_neon(&hwcap);
    host->has_i8mm = host_has_i8mm(&hwcap);
    host->has_avx2 = host_has_avx2(&cpuid);
    host->has_avx512 = host_has_avx512(&cpuid);
}

/* Measured, not read from a register: this is the property that matters, on every machine. */
static bool subnormals_are_flushed(void)
{
    volatile float smallest_normal = 0x1p-126f;
    volatile float half = smallest_normal * 0.5f;
    volatile float again = half + half;

    return half == 0.0f || again != smallest_normal;
}

void host_look(struct host *host)
{
    struct utsname names;
    long pages = sysconf(_SC_PHYS_PAGES);
    long page_size = sysconf(_SC_PAGESIZE);

    memset(host, 0, sizeof(*host));
    proc_value(host->cpu, sizeof(host->cpu), "/proc/cpuinfo", "model name");
    if (host->cpu[0] == '\0') {
        snprintf(host->cpu, sizeof(host->cpu), "unknown processor");
    }
    if (uname(&names) == 0) {
        snprintf(host->system, sizeof(host->system), "%.40s %.40s %.40s", names.sysname,
                 names.release, names.machine);
    }
    host->cores = core_count();
    if (pages > 0 && page_size > 0) {
        host->memory_bytes = (uint64_t)pages * (uint64_t)page_size;
    }
    host->memory_free_bytes = memory_available();
    host->flushes_subnormals = subnormals_are_flushed();
    look_at_instructions(host);
}

#define SPIN_COUNT "1000" /* some twenty microseconds */

void host_wait_quietly(char **argv)
{
    const char *slash = argv[0] == NULL ? NULL : strrchr(argv[0], '/');

    if (getenv("GOMP_SPINCOUNT") == NULL && getenv("OMP_WAIT_POLICY") == NULL &&
        setenv("GOMP_SPINCOUNT", SPIN_COUNT, 0) == 0) {
        (void)execv("/proc/self/exe", argv); /* a failure changes nothing but the speed */
    }
    if (argv[0] != NULL) { /* started by that link, lists of processes would call it "exe" */
        (void)prctl(PR_SET_NAME, slash == NULL ? argv[0] : slash + 1);
    }
}

#define NICENESS 5

void host_step_back(void)
{
    if (getpriority(PRIO_PROCESS, 0) < NICENESS) {
        (void)setpriority(PRIO_PROCESS, 0, NICENESS);
    }
}
