/*
 * host.h - what this machine is: cores, memory, instruction sets. Facts only; what follows from
 * them is for others to say. Nothing is cached and nothing changes the machine.
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
    bool has_avx2;              /* with fma and f16c, as the kernels want it */
    bool has_avx512;            /* f, bw, dq, vl */
    bool has_avx512_vnni;
    bool flushes_subnormals; /* the control word that this thread runs with would change results */
};

void host_look(struct host *host);

/*
 * GNU's OpenMP lets a thread that waits spin for milliseconds. Where the machine is not ours alone
 * that keeps the very thread off the core that is waited for: steps take five times as long. The
 * library reads its environment when it is loaded, so the program begins again, once, with a short
 * spin, unless the user has chosen one. To be called first in main().
 */
void host_wait_quietly(char **argv);

#endif /* BASE_HOST_H */
