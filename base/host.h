/*
 * host.h - what this machine is: cores, memory, instruction sets. Facts only, read again each time;
 * nothing here changes the machine.
 */
#ifndef BASE_HOST_H
#define BASE_HOST_H

#include <stdbool.h>
#include <stdint.h>

#define HOST_TEXT_MAX 128

struct host {
    char cpu[HOST_TEXT_MAX];
    char system[HOST_TEXT_MAX]; /* kernel and architecture */
    unsigned cores;             /* that this process may run on */
    uint64_t memory_bytes;
    uint64_t memory_free_bytes; /* available without swapping */
    bool has_avx2;              /* as host_has_avx2() says */
    bool has_avx512;            /* as host_has_avx512() says */
    bool has_neon;              /* as host_has_neon() says */
    bool has_i8mm;              /* as host_has_i8mm() says */
    bool flushes_subnormals; /* the control word that this thread runs with would change results */
};

void host_look(struct host *host);

/* What an x86-64 processor says of itself, and what its operating system saves; else zeros. */
struct host_cpuid {
    uint32_t leaf1_ecx;
    uint32_t leaf7_ebx;
    uint32_t leaf7_ecx;
    uint32_t xcr0;
};

void host_cpuid_read(struct host_cpuid *cpuid);

/* Is every feature there that files named _avx2.c, or _avx512.c, are compiled with? See Makefile,
 * ISA_avx2 and ISA_avx512. */
bool host_has_avx2(const struct host_cpuid *cpuid);
bool host_has_avx512(const struct host_cpuid *cpuid);

/* What the system says of an ARM processor of 64 bits: HWCAP and HWCAP2; else zeros. */
struct host_hwcap {
    uint64_t first;
    uint64_t second;
};

void host_hwcap_read(struct host_hwcap *hwcap);

/* The same for files named _neon.c, _i8mm.c and _armsha.c. */
bool host_has_neon(const struct host_hwcap *hwcap);
bool host_has_i8mm(const struct host_hwcap *hwcap);
bool host_has_armsha(const struct host_hwcap *hwcap);

/*
 * GNU's OpenMP lets a waiting thread spin for milliseconds. On a shared machine the spinning keeps
 * the thread that is waited for off its core: steps take five times as long. The library reads its
 * environment when it is loaded, so this restarts the program once with a short spin, unless the
 * user has chosen one. Call it early in main().
 */
void host_wait_quietly(char **argv);

/* This thread, and what it starts, lets what is dearer on this machine go first. Never the other
 * way round, where root asked for less already. */
void host_step_back(void);

#endif /* BASE_HOST_H */
