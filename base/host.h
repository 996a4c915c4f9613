/*
 * host.h - what this machine is: cores, memory, instruction sets. Facts only, read
 * anew each time; nothing here changes the machine.
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
 * GNU's OpenMP lets a waiting thread spin for milliseconds. On a shared machine the spinning keeps
 * the thread that is waited for off its core: steps take five times as long. The library reads its
 * environment when it is loaded, so this restarts the program once with a short spin, unless the
 * user has chosen one. Call it first in main().
 */
void host_wait_quietly(char **argv);

#endif /* BASE_HOST_H */
