/*
 * emulator_core.h - what the emulator's files share: emulator.c (threads, meetings, memory, mma),
 * emulator_halves.c (mma of halves) and emulator_hopper.c (what sm_90a adds). Nobody else includes
 * it.
 */
#ifndef TESTS_SUPPORT_DEVICE_EMULATOR_CORE_H
#define TESTS_SUPPORT_DEVICE_EMULATOR_CORE_H

#include "tests/race/race.h"
#include "tests/support/device/coroutine.h"
#include "tests/support/device/emulator.h"

#define THREADS_MAX 1024
#define WARP        32
#define WARPS_MAX   (THREADS_MAX / WARP)
#ifdef PTXCHECK /* what was PTX keeps its registers on the stack */
#define STACK_SIZE (512 << 10)
#else /* no power of two: the ends of all stacks would share a few lines of a cache */
#define STACK_SIZE ((128 << 10) + 4096 + 320)
#endif
#define SHARED_SIZE_MAX (48 << 10) /* of what is declared in a kernel */
#define COPIES_MAX      64         /* unfinished, of one thread */
#define POISON          0xa5
#define BULK_MAX        64  /* unfinished bulk copies of a block */
#define GROUP           128 /* threads that multiply together */
#define GROUPS_MAX      (THREADS_MAX / GROUP)
#define PRODUCTS_MAX    16 /* of a group between group_begin() and group_end() */
#define SUMS_MAX        64 /* of a thread */
#define ARRAY_GAP       64 /* bytes between arrays that are declared */
#define DYNAMIC_ADDRESS 48 /* in shared memory: aligned to 16, and to no more */

struct bulk {
    uint8_t *to;
    const uint8_t *from;
    uint32_t size;
    uint64_t *barrier;
};

struct group_product {
    uint64_t a;
    uint64_t b;
    bool more;
};

/* What the first of a group's threads brought, for the others to be compared with. */
struct group {
    struct group_product products[PRODUCTS_MAX];
    uint64_t numbers[PRODUCTS_MAX];
    uint32_t arrived; /* at its barrier */
    uint32_t turn;
};

struct copy {
    uint8_t *to;
    const uint8_t *from;
    bool there;
    uint32_t group;
};

struct fiber {
    struct coroutine routine;
    bool done;
    const uint32_t *awaited; /* it waits until this is no more what it was; NULL: for nothing */
    uint32_t was;
    size_t shared_used;  /* by arrays */
    size_t shared_place; /* of the next, with what lies between them */
    struct copy copies[COPIES_MAX];
    uint32_t copy_count;
    uint32_t groups; /* committed */
    struct group_product products[PRODUCTS_MAX];
    int32_t sums[SUMS_MAX]; /* before the products */
    uint32_t product_count;
    uint64_t product_number; /* of all that this thread sent off */
    bool multiplies;         /* between group_begin() and group_end() */
};

/* What a lane brings to a meeting of its warp. */
struct offer {
    const uint8_t *row;
    uint32_t words[10];
};

struct warp {
    struct offer offers[2][WARP];
    int32_t products[2][16][8];
    uint32_t arrived;
    uint32_t turn;
};

struct emulator {
    struct fiber fibers[THREADS_MAX];
    struct warp warps[WARPS_MAX];
    struct group groups[GROUPS_MAX];
    struct bulk bulks[BULK_MAX];
    uint32_t bulk_count;
    struct coroutine scheduler;
    emulated_kernel *kernel;
    const void *arguments;
    uint8_t *stacks;
    uint8_t *dynamic;
    uint8_t shared[2 * SHARED_SIZE_MAX] __attribute__((aligned(64)));
    uint32_t block[2];
    uint32_t grid;
    uint32_t threads;     /* of a block */
    uint32_t shared_size; /* of a block, dynamic */
    uint32_t current;     /* thread */
    uint32_t arrived;     /* at the block's barrier */
    uint32_t turn;
    uint64_t progress;
    bool left; /* a test expected that it could not go on */
};

/* What runs; NULL between grids. */
extern struct emulator *emulator;

/* The thread that runs. */
static inline struct fiber *emulator_fiber(void)
{
    return &emulator->fibers[emulator->current];
}

/* Ends the program, or, where a test expects that, the grid. */
_Noreturn void emulator_give_up(const char *why);

/* The other threads have their turns until *turn is no more what it was. */
void emulator_await(const uint32_t *turn, uint32_t was);

/* The other threads have their turns. */
void emulator_yield(void);

/*
 * Brings offer to the warp and waits until all lanes did; then the offers lie in the returned
 * half. A lane can be one meeting ahead of the slowest reader, never two: two halves are enough.
 */
uint32_t emulator_meet(const struct offer *offer, void (*last)(struct warp *warp, uint32_t half));

/* ---- emulator_hopper.c ---- */

/* Bulk copies arrive. */
void emulator_finish_bulks(void);

#endif /* TESTS_SUPPORT_DEVICE_EMULATOR_CORE_H */
