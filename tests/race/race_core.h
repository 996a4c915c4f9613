/*
 * race_core.h - what the files of the race detector share: race_order.c (what is before what),
 * race.c (the memory of accesses), race_report.c (faults). Nobody else includes it.
 *
 * An access leaves a stamp: the era, the thread and the thread's clock. An era is a stretch between
 * two barriers of all threads that run together, or a work of the host; eras are counted through
 * all grids. In an era threads know of each other what their clocks say.
 */
#ifndef TESTS_RACE_RACE_CORE_H
#define TESTS_RACE_RACE_CORE_H

#ifndef RACECHECK
#define RACECHECK
#endif
#include "tests/race/race.h"

#define RACE_THREADS_MAX  1024
#define RACE_BARRIERS_MAX 32 /* that count bytes, of blocks that run together */
#define RACE_BULK         RACE_THREADS_MAX
#define RACE_HOST         2047

/* Bits 0-31 era, 32-42 thread (or RACE_BULK + barrier), 43-61 clock. */
#define RACE_THREAD_SHIFT 32
#define RACE_CLOCK_SHIFT  43
#define RACE_CLOCK_MAX    ((UINT64_C(1) << 19) - 1)
#define RACE_ATOMIC_BIT   (UINT64_C(1) << 62)
#define RACE_FLIGHT_BIT   (UINT64_C(1) << 63)

static inline uint32_t race_era_of(uint64_t stamp)
{
    return (uint32_t)stamp;
}

static inline uint32_t race_thread_of(uint64_t stamp)
{
    return (uint32_t)(stamp >> RACE_THREAD_SHIFT) & 0x7ff;
}

static inline uint32_t race_clock_of(uint64_t stamp)
{
    return (uint32_t)(stamp >> RACE_CLOCK_SHIFT & RACE_CLOCK_MAX);
}

/* What runs. */
struct race_state {
    struct race_block block;
    uint32_t thread; /* of the block; RACE_HOST */
    uint32_t era;
    uint32_t block_era; /* the first of the block */
    uint32_t work_era;  /* the first of the launch, copy or fill */
    bool inside;        /* a block was begun */
    uint64_t looked_at;
    uint64_t vague_reads;
};

extern struct race_state race;

/* ---- race_order.c ---- */

/* Of the thread that runs. */
uint64_t race_stamp(void);

/* Is what left it before what the running thread does now? */
bool race_ordered(uint64_t stamp);

/* A bulk copy's that this barrier will count. */
uint64_t race_bulk_stamp(const void *barrier);

/* Has the thread that wrote it fenced its plain writes for the asynchronous proxy? */
bool race_proxy_fenced(uint64_t stamp);

/* Who left it. */
struct race_end race_end_of(uint64_t stamp);

/* What the functions of race.h do beside looking at the access. */
void race_order_atomic(const void *at);
void race_order_barrier(const void *at);
void race_order_arrive(const void *at);
void race_order_waited(const void *at);

/* ---- race.c ---- */

void race_begin_meetings(void);

/* ---- race_report.c ---- */

void race_tell(enum race_kind kind, const struct race_end *now, const struct race_end *before,
               const char *where, uint64_t offset, uint64_t size);

/* Do the two lie in one line of one file? */
bool race_same_line(const void *site, const void *other);

#endif /* TESTS_RACE_RACE_CORE_H */
