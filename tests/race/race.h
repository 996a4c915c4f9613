/*
 * race.h - sees what a GPU would not forgive and an emulator does: a racecheck, initcheck,
 * synccheck and memcheck for the emulated device.
 *
 * The kernels and the rules are compiled with -fsanitize=thread, and the functions that the
 * compiler then calls at each access are ours (race_hooks.c). The emulator and the fake device say
 * what orders accesses; everything else is unordered, however it happened to run:
 *   - barrier(), warp_barrier() and group_barrier() order what their threads did
 *     before with what they do behind. Shuffles, votes and products of matrices order nothing: the
 *     CUDA guide says so, and since Volta a warp's lanes do not go in step;
 *   - a copy_async() is seen by its own thread after its copy_wait(), by others after a barrier
 *     behind that; a bulk copy by a thread that waited for the phase of its barrier that counts it,
 *     and what an arrival has behind it by a thread that waited for the phase that the arrival
 *     completes;
 *   - wgmma reads what bulk copies wrote, or what was written before a fence of the proxies;
 *   - blocks of a grid are ordered by nothing but device_fence() before an atomic of the same
 *     thread, which another thread's atomic finds that has a device_fence() behind it;
 *   - launches, copies and fills of a lane are ordered, those of two lanes by signals and waits.
 * Each four bytes of memory remember who wrote them last and who read them since, so that a fault
 * is found no matter in which order the emulator runs threads, blocks and lanes.
 *
 * Without RACECHECK all of this is nothing. One grid runs at a time; no threads of the host.
 */
#ifndef TESTS_RACE_RACE_H
#define TESTS_RACE_RACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum race_kind {
    RACE_READ_EARLY,  /* of what another wrote, without order between the two */
    RACE_WRITE_EARLY, /* over what another still reads */
    RACE_WRITE_TWICE, /* two write, in any order */
    RACE_IN_FLIGHT,   /* an access where a copy may be under way */
    RACE_PROXY,       /* wgmma or a bulk copy behind plain writes, without a fence between */
    RACE_UNWRITTEN,   /* a read of what nobody wrote */
    RACE_OUTSIDE,     /* of an allocation, of an array, of a block's shared memory */
    RACE_MISALIGNED,  /* an address that is no multiple of the access */
    RACE_DIVERGED,    /* lanes of a warp meet each other at different places */
    RACE_STUCK,       /* a barrier that not all reach, and what else the emulator refuses */
    RACE_KINDS
};

enum race_access { RACE_READ, RACE_WRITE, RACE_ATOMIC };

/* What lanes of a warp do together. */
enum race_meeting {
    RACE_MEET_SHUFFLE,
    RACE_MEET_WARP,
    RACE_MEET_MATRICES,
    RACE_MEET_PRODUCT,
    RACE_MEET_BLOCK,
};

/* One end of a fault. */
struct race_end {
    const char *kernel; /* or what the host did */
    const void *site;   /* in the code; NULL: the host's */
    uint32_t block[2];
    uint32_t thread; /* UINT32_MAX: a copy's, or the host's */
    enum race_access access;
};

/* Faults of one kind at one pair of places in the code are one. */
struct race_fault {
    enum race_kind kind;
    struct race_end now;
    struct race_end before;
    const char *where; /* "shared memory", "device memory", ... */
    uint64_t offset;
    uint64_t size;
    uint64_t count;
    bool expected;
};

struct race_block {
    const uint8_t *stacks; /* of all threads, one after another */
    size_t stack_size;
    const uint8_t *shared; /* what is declared in a kernel */
    size_t shared_max;
    const uint8_t *dynamic;
    uint32_t dynamic_size;
    uint32_t threads;
    uint32_t place[2];
    const void *arguments;
    size_t arguments_size;
};

#ifdef RACECHECK

#define RACE_SITE __builtin_return_address(0)
#define RACE_ROOM 256 /* bytes behind memory, for steps outside to do no harm */

/* ---- for tests ---- */

/* Distinct faults so far, and one of them. */
uint32_t race_fault_count(void);
const struct race_fault *race_fault_at(uint32_t at);
void race_forget(void);

/* Faults from now on are expected: kept, but not reported, and no program fails for them. */
void race_expect(bool expected);

/*
 * Accesses that were looked at; and reads of what a copy brought from where nobody wrote, or of
 * such rows by products: tiles are whole where tensors are not, and such results are left.
 */
uint64_t race_looked_at(void);
uint64_t race_vague_reads(void);

const char *race_kind_name(enum race_kind kind);

/* ---- for the fake device ---- */

void race_allocate(const void *memory, uint64_t size);
void race_release(const void *memory);

/* Lanes of a device get numbers of all devices; the first of `count` is returned. */
uint32_t race_lanes_open(uint32_t count);
void race_lanes_close(uint32_t first, uint32_t count);

/* What the host has waited for by now. */
uint64_t race_point(void);
void race_wait(uint32_t lane);
void race_signal(uint32_t lane, uint64_t point, uint32_t device, uint32_t signal, uint64_t turn);
void race_await(uint32_t lane, uint64_t point, uint32_t device, uint32_t signal, uint64_t turn);

/* A launch, a copy or a fill, queued on its lane at `point`. */
void race_work(uint32_t lane, uint64_t point, const char *name);
void race_host(const void *at, uint64_t size, enum race_access access);

/* ---- for the emulator ---- */

void race_block_begin(const struct race_block *block);
void race_block_end(void);
void race_array(size_t offset, size_t size); /* of declared shared memory */
void race_thread(uint32_t thread);           /* runs from now on */
void race_no_thread(void);

void race_access(const void *at, uint64_t size, enum race_access access, const void *site);
void race_aligned(const void *at, uint64_t size, const void *site);
/* Where nobody wrote the result is left: no fault, but counted among the vague. */
void race_read_padded(const void *at, uint64_t size, const void *site);

/* All of these threads have arrived, none has gone on. */
void race_join(uint32_t first, uint32_t count);
void race_join_all(void);

/* A lane meets its warp's others: kind, and the place of a block's barrier, must be theirs. */
void race_meet(uint32_t kind, const void *site);

void race_fence(void);
void race_atomic(const void *at, const void *site);

void race_copy(const void *to, const void *from, bool there, const void *site);
void race_copied(const void *to, const void *from, bool there, const void *site);

void race_barrier_init(const void *barrier, const void *site);
void race_arrive(const void *barrier, const void *site);
void race_phase(const void *barrier); /* is complete */
void race_waited(const void *barrier, const void *site);
void race_bulk(const void *to, const void *from, uint64_t size, const void *barrier,
               const void *site);
void race_proxy_fence(void);
void race_proxy_read(const void *at, uint64_t size, const void *site);

/* The emulator cannot go on; true: the test expects it, and the grid is left. */
bool race_stuck(const char *why);

#else

#define RACE_SITE NULL
#define RACE_ROOM 0
#ifdef PTXCHECK /* the same question, asked by others: tests/ptx/ptx.h */
void ptx_allow(const void *memory, uint64_t size);
void ptx_forbid(const void *memory);
#define race_allocate(memory, size) ptx_allow(memory, size)
#define race_release(memory)        ptx_forbid(memory)
#else
#define race_allocate(memory, size)
#define race_release(memory)
#endif
#define race_lanes_open(count) 0
#define race_lanes_close(first, count)
#define race_point() 0
#define race_wait(lane)
#define race_signal(lane, point, device, signal, turn)
#define race_await(lane, point, device, signal, turn)
#define race_work(lane, point, name)
#define race_host(at, size, access)
#define race_block_begin(block)
#define race_block_end()
#define race_array(offset, size)
#define race_thread(thread)
#define race_no_thread()
#define race_access(at, size, access, site)
#define race_aligned(at, size, site)
#define race_read_padded(at, size, site)
#define race_join(first, count)
#define race_join_all()
#define race_meet(kind, site)
#define race_fence()
#define race_atomic(at, site)
#define race_copy(to, from, there, site)
#define race_copied(to, from, there, site)
#define race_barrier_init(barrier, site)
#define race_arrive(barrier, site)
#define race_phase(barrier)
#define race_waited(barrier, site)
#define race_bulk(to, from, size, barrier, site)
#define race_proxy_fence()
#define race_proxy_read(at, size, site)
#define race_stuck(why) false
#define race_expect(expected)

#endif

#endif /* TESTS_RACE_RACE_H */
