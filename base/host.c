/* host.c - see host.h. */
#include "base/host.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

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

static void look_at_instructions(struct host *host)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    host->has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    host->has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    host->has_avx512_vnni = host->has_avx512 && __builtin_cpu_supports("avx512vnni");
#else
    (void)host;
#endif
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
    if (getenv("GOMP_SPINCOUNT") == NULL && getenv("OMP_WAIT_POLICY") == NULL &&
        setenv("GOMP_SPINCOUNT", SPIN_COUNT, 0) == 0) {
        (void)execv("/proc/self/exe", argv); /* a failure changes nothing but the speed */
    }
}
