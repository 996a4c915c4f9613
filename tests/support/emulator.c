/* emulator.c - see emulator.h. */
#include "tests/support/emulator.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/support/coroutine.h"

#define THREADS_MAX     1024
#define WARP            32
#define WARPS_MAX       (THREADS_MAX / WARP)
#define STACK_SIZE      (128 << 10)
#define SHARED_SIZE_MAX (48 << 10) /* of what is declared in a kernel */
#define COPIES_MAX      64         /* unfinished, of one thread */
#define POISON          0xa5
#define CLUSTER_MAX     2   /* blocks that run together */
#define BULK_MAX        64  /* unfinished bulk copies of a block */
#define GROUP           128 /* threads that multiply together */
#define GROUPS_MAX      (THREADS_MAX / GROUP)
#define PRODUCTS_MAX    16 /* of a group between group_begin() and group_end() */
#define SUMS_MAX        64 /* of a thread */
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
    bool a_signed;
    bool b_signed;
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
    size_t shared_used;
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
    uint32_t words[6];
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
    uint8_t *dynamics[CLUSTER_MAX]; /* of each block */
    uint8_t shared[SHARED_SIZE_MAX] __attribute__((aligned(64)));
    uint32_t block[2];
    uint32_t grid;
    uint32_t cluster;                  /* blocks */
    uint32_t threads;                  /* of a block */
    uint32_t current;                  /* of all blocks' threads */
    uint32_t arrived[CLUSTER_MAX + 1]; /* at the barrier of each block, and of all */
    uint32_t turn[CLUSTER_MAX + 1];
    uint64_t progress;
};

static struct emulator *emulator;

static _Noreturn void give_up(const char *why)
{
    fprintf(stderr, "emulated kernel, block (%u, %u), thread %u: %s\n", emulator->block[0],
            emulator->block[1], emulator->current, why);
    abort();
}

static struct fiber *me(void)
{
    return &emulator->fibers[emulator->current];
}

/* Which block of its cluster runs. */
static uint32_t rank(void)
{
    return emulator->current / emulator->threads;
}

static void yield(void)
{
    coroutine_change(&me()->routine, &emulator->scheduler);
}

/* ---- running --------------------------------------------------------------- */

static void fiber_main(void)
{
    emulator->kernel(emulator->arguments);
    me()->done = true;
    emulator->progress++;
    yield();
}

static void start_fiber(uint32_t thread)
{
    struct fiber *fiber = &emulator->fibers[thread];

    fiber->done = false;
    fiber->shared_used = 0;
    fiber->copy_count = 0;
    fiber->groups = 0;
    fiber->product_count = 0;
    fiber->product_number = 0;
    fiber->multiplies = false;
    coroutine_init(&fiber->routine, emulator->stacks + (size_t)thread * STACK_SIZE, STACK_SIZE,
                   fiber_main);
}

static void finish_bulks(void);

static void run_block(uint32_t shared_size)
{
    const uint32_t all = emulator->threads * emulator->cluster;
    bool alive = true;

    memset(emulator->shared, POISON, sizeof(emulator->shared));
    for (uint32_t i = 0; i < emulator->cluster; i++) {
        memset(emulator->dynamics[i], POISON, shared_size);
    }
    memset(emulator->warps, 0, (all + WARP - 1) / WARP * sizeof(emulator->warps[0]));
    memset(emulator->groups, 0, sizeof(emulator->groups));
    memset(emulator->arrived, 0, sizeof(emulator->arrived));
    for (uint32_t thread = 0; thread < all; thread++) {
        start_fiber(thread);
    }
    while (alive) {
        uint64_t before = emulator->progress;

        alive = false;
        for (uint32_t thread = 0; thread < all; thread++) {
            emulator->current = thread;
            if (!me()->done) {
                coroutine_change(&emulator->scheduler, &me()->routine);
                alive = alive || !me()->done;
            }
        }
        finish_bulks();
        if (alive && emulator->progress == before) {
            give_up("threads wait for each other for ever");
        }
    }
}

void emulator_run(emulated_kernel *kernel, const void *arguments, const uint32_t grid[3],
                  uint32_t block, uint32_t shared_size, uint32_t cluster)
{
    emulator = calloc(1, sizeof(*emulator));
    if (emulator == NULL || block * cluster > THREADS_MAX || grid[2] != 1 ||
        cluster > CLUSTER_MAX || grid[0] % cluster != 0) {
        abort();
    }
    emulator->cluster = cluster;
    emulator->kernel = kernel;
    emulator->arguments = arguments;
    emulator->grid = grid[0];
    emulator->threads = block;
    /* Kept from grid to grid: fresh pages cost more than the kernels. */
    static uint8_t *stacks;

    if (stacks == NULL) {
        stacks = malloc((size_t)THREADS_MAX * STACK_SIZE);
    }
    emulator->stacks = stacks;
    /* Not a byte more than was asked for, so that a sanitizer sees any step outside. */
    for (uint32_t i = 0; i < cluster; i++) {
        emulator->dynamics[i] = malloc(shared_size + (shared_size == 0));
        if (emulator->stacks == NULL || emulator->dynamics[i] == NULL) {
            abort();
        }
    }
    for (uint32_t y = 0; y < grid[1]; y++) {
        for (uint32_t x = 0; x < grid[0]; x += cluster) {
            emulator->block[0] = x;
            emulator->block[1] = y;
            run_block(shared_size);
        }
    }
    for (uint32_t i = 0; i < cluster; i++) {
        free(emulator->dynamics[i]);
    }
    free(emulator);
    emulator = NULL;
}

/* ---- places ------------------------------------------------------------------ */

uint32_t thread_index(void)
{
    return emulator->current % emulator->threads;
}

uint32_t block_index(void)
{
    return emulator->block[0] + rank();
}

uint32_t block_index_y(void)
{
    return emulator->block[1];
}

uint32_t block_size(void)
{
    return emulator->threads;
}

uint32_t grid_size(void)
{
    return emulator->grid;
}

/* Every thread declares the same arrays in the same order, and so gets the same places. */
void *emulated_shared(size_t size)
{
    struct fiber *fiber = me();
    uint8_t *place = emulator->shared + fiber->shared_used;

    fiber->shared_used += (size + 15) / 16 * 16;
    if (fiber->shared_used > SHARED_SIZE_MAX || emulator->cluster > 1) {
        give_up("more shared memory than a device grants");
    }
    return place;
}

uint8_t *dynamic_shared(void)
{
    return emulator->dynamics[rank()];
}

/* ---- meetings ------------------------------------------------------------------ */

static void meet_all(uint32_t where, uint32_t count)
{
    uint32_t turn = emulator->turn[where];

    emulator->progress++;
    if (++emulator->arrived[where] == count) {
        emulator->arrived[where] = 0;
        emulator->turn[where]++;
    }
    while (emulator->turn[where] == turn) {
        yield();
    }
}

void barrier(void)
{
    meet_all(rank(), emulator->threads);
}

/*
 * Brings offer to the warp and waits until all lanes did; then the offers lie in the returned
 * half. A lane can be one meeting ahead of the slowest reader, never two: two halves are enough.
 */
static uint32_t meet(const struct offer *offer, void (*last)(struct warp *warp, uint32_t half))
{
    struct warp *warp = &emulator->warps[emulator->current / WARP];
    uint32_t turn = warp->turn;
    uint32_t half = turn & 1;

    warp->offers[half][emulator->current % WARP] = *offer;
    emulator->progress++;
    if (++warp->arrived == WARP) {
        warp->arrived = 0;
        if (last != NULL) {
            last(warp, half);
        }
        warp->turn++;
    }
    while (warp->turn == turn) {
        yield();
    }
    return half;
}

static uint32_t value_of_lane(uint32_t value, uint32_t lane)
{
    struct offer offer = {.words = {value}};
    uint32_t half = meet(&offer, NULL);

    /* A device gives a lane its own value where the other does not exist. */
    lane = lane < WARP ? lane : emulator->current % WARP;
    return emulator->warps[emulator->current / WARP].offers[half][lane].words[0];
}

void warp_barrier(void)
{
    (void)value_of_lane(0, 0);
}

static uint32_t bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static float real_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

uint32_t shuffle_xor(uint32_t value, uint32_t distance)
{
    return value_of_lane(value, emulator->current % WARP ^ distance);
}

float shuffle_xor_real(float value, uint32_t distance)
{
    return real_of(shuffle_xor(bits_of(value), distance));
}

float shuffle_down_real(float value, uint32_t distance)
{
    return real_of(value_of_lane(bits_of(value), emulator->current % WARP + distance));
}

float shuffle_real(float value, uint32_t lane)
{
    return real_of(value_of_lane(bits_of(value), lane));
}

uint32_t atomic_swap(uint32_t *at, uint32_t value)
{
    uint32_t before = *at;

    *at = value;
    return before;
}

uint32_t atomic_add(uint32_t *at, uint32_t value)
{
    uint32_t before = *at;

    *at += value;
    return before;
}

void atomic_add_wide(uint64_t *at, uint64_t value)
{
    *at += value;
}

void atomic_max(uint32_t *at, uint32_t value)
{
    *at = *at < value ? value : *at;
}

uint64_t load_fresh(const uint64_t *at)
{
    return *at;
}

/* Threads run one at a time here: all see all. */
void device_fence(void)
{
}

void load_quad(float *to, const float *from)
{
    if ((uintptr_t)from % 16 != 0) {
        give_up("four numbers that are not aligned to 16");
    }
    memcpy(to, from, 16);
}

void store_quad(uint32_t *to, const uint32_t *from)
{
    if ((uintptr_t)to % 16 != 0) {
        give_up("four words that are not aligned to 16");
    }
    memcpy(to, from, 16);
}

void load_pair(uint32_t *to, const void *from)
{
    if ((uintptr_t)from % 8 != 0) {
        give_up("two words that are not aligned to 8");
    }
    memcpy(to, from, 8);
}

int32_t round_to_int(float x)
{
    return (int32_t)lrintf(x);
}

void prefetch_line(const void *at)
{
    (void)at;
}

/* ---- copies ---------------------------------------------------------------------- */

void copy_async(void *to, const void *from, bool there)
{
    struct fiber *fiber = me();

    if (fiber->copy_count == COPIES_MAX) {
        give_up("too many copies under way for the emulator");
    }
    if ((uintptr_t)to % 16 != 0 || (uintptr_t)from % 16 != 0) {
        give_up("a copy of 16 bytes that is not aligned to 16");
    }
    fiber->copies[fiber->copy_count++] = (struct copy){to, from, there, fiber->groups};
}

void copy_commit(void)
{
    me()->groups++;
}

void copy_wait(uint32_t left)
{
    struct fiber *fiber = me();
    uint32_t kept = 0;

    for (uint32_t i = 0; i < fiber->copy_count; i++) {
        struct copy *copy = &fiber->copies[i];

        if (copy->group + left >= fiber->groups) {
            fiber->copies[kept++] = *copy;
        } else if (copy->there) {
            memcpy(copy->to, copy->from, 16);
        } else {
            memset(copy->to, 0, 16);
        }
    }
    fiber->copy_count = kept;
}

/* ---- tensor cores -------------------------------------------------------------------- */

/* ldmatrix .m8n8.x4.b16: lane l gets 16-bit elements 2 (l % 4) and the next of row l / 4. */
void load_matrices(uint32_t words[4], const void *row)
{
    struct offer offer = {.row = row};
    uint32_t lane = emulator->current % WARP;
    const struct offer *offers;

    if ((uintptr_t)row % 16 != 0) {
        give_up("a row of a matrix that is not aligned to 16");
    }
    offers = emulator->warps[emulator->current / WARP].offers[meet(&offer, NULL)];
    for (uint32_t i = 0; i < 4; i++) {
        memcpy(&words[i], offers[8 * i + lane / 4].row + (size_t)lane % 4 * 4, 4);
    }
}

/*
 * mma .m16n8k32 with 8-bit operands, from the tables of the PTX ISA. With g = lane / 4 and
 * t = lane % 4, byte i of A is at row g (+ 8 for i in 4-7 and 12-15), column 4 t + i % 4 (+ 16 for
 * i >= 8); byte i of B is at row 4 t + i % 4 (+ 16 for i >= 4), column g; sum i is at row g (+ 8
 * for i >= 2), column 2 t + i % 2.
 */
static int32_t byte_at(uint32_t word, uint32_t i, bool is_signed)
{
    uint8_t byte = (uint8_t)(word >> (8 * (i % 4)));

    return is_signed ? (int8_t)byte : byte;
}

static void products(struct warp *warp, uint32_t half, bool a_signed, bool b_signed)
{
    static int32_t a[16][32];
    static int32_t b[32][8];

    for (uint32_t lane = 0; lane < WARP; lane++) {
        const uint32_t *words = warp->offers[half][lane].words;
        uint32_t g = lane / 4;
        uint32_t t = lane % 4;

        for (uint32_t i = 0; i < 16; i++) {
            a[g + (i / 4 % 2 == 1 ? 8 : 0)][4 * t + i % 4 + (i >= 8 ? 16 : 0)] =
                byte_at(words[i / 4], i, a_signed);
        }
        for (uint32_t i = 0; i < 8; i++) {
            b[4 * t + i % 4 + (i >= 4 ? 16 : 0)][g] = byte_at(words[4 + i / 4], i, b_signed);
        }
    }
    for (uint32_t m = 0; m < 16; m++) {
        for (uint32_t n = 0; n < 8; n++) {
            int32_t sum = 0;

            for (uint32_t k = 0; k < 32; k++) {
                sum += a[m][k] * b[k][n];
            }
            warp->products[half][m][n] = sum;
        }
    }
}

static void products_ss(struct warp *warp, uint32_t half)
{
    products(warp, half, true, true);
}

static void products_su(struct warp *warp, uint32_t half)
{
    products(warp, half, true, false);
}

static void products_us(struct warp *warp, uint32_t half)
{
    products(warp, half, false, true);
}

static void products_uu(struct warp *warp, uint32_t half)
{
    products(warp, half, false, false);
}

static void multiply(int32_t *sums, const uint32_t *a, const uint32_t *b,
                     void (*last)(struct warp *warp, uint32_t half))
{
    struct offer offer = {.words = {a[0], a[1], a[2], a[3], b[0], b[1]}};
    uint32_t half = meet(&offer, last);
    uint32_t lane = emulator->current % WARP;

    for (uint32_t i = 0; i < 4; i++) {
        int32_t product = emulator->warps[emulator->current / WARP]
                              .products[half][lane / 4 + (i >= 2 ? 8 : 0)][lane % 4 * 2 + i % 2];

        if (__builtin_add_overflow(sums[i], product, &sums[i])) {
            give_up("a 32-bit sum of products overflows");
        }
    }
}

void multiply_ss(int32_t *sums, const uint32_t *a, const uint32_t *b)
{
    multiply(sums, a, b, products_ss);
}

void multiply_su(int32_t *sums, const uint32_t *a, const uint32_t *b)
{
    multiply(sums, a, b, products_su);
}

void multiply_us(int32_t *sums, const uint32_t *a, const uint32_t *b)
{
    multiply(sums, a, b, products_us);
}

void multiply_uu(int32_t *sums, const uint32_t *a, const uint32_t *b)
{
    multiply(sums, a, b, products_uu);
}

/* ---- what sm_90a adds ------------------------------------------------------------------ */

uint32_t shared_address(const void *at)
{
    return (uint32_t)((const uint8_t *)at - dynamic_shared()) + DYNAMIC_ADDRESS;
}

bool any_of_warp(bool value)
{
    struct offer offer = {.words = {value}};
    uint32_t half = meet(&offer, NULL);
    bool any = false;

    for (uint32_t lane = 0; lane < WARP; lane++) {
        any = any || emulator->warps[emulator->current / WARP].offers[half][lane].words[0] != 0;
    }
    return any;
}

void store_pair(uint32_t *at, uint32_t first, uint32_t second)
{
    if ((uintptr_t)at % 8 != 0) {
        give_up("a store of two words that is not aligned to 8");
    }
    at[0] = first;
    at[1] = second;
}

uint32_t opaque(uint32_t value)
{
    return value;
}

void add_product(int64_t *sum, int32_t a, int32_t b)
{
    *sum = (int64_t)((uint64_t)*sum + (uint64_t)((int64_t)a * b));
}

void add_shifted(int64_t *sum, int32_t a, int32_t b, uint32_t shift)
{
    if (shift > 63) {
        give_up("a shift of more than 63");
    }
    *sum = (int64_t)((uint64_t)*sum + ((uint64_t)((int64_t)a * b) << shift));
}

void registers_lower(void)
{
}

void registers_raise(void)
{
}

/* ---- barriers that count bytes ---- */

struct counter {
    uint8_t arrivals;
    uint8_t pending;
    uint8_t phase;
    uint8_t alive;
    int32_t bytes;
};

_Static_assert(sizeof(struct counter) == sizeof(uint64_t), "a barrier has 64 bits");

static struct counter counter_of(const uint64_t *barrier)
{
    struct counter counter;

    memcpy(&counter, barrier, sizeof(counter));
    if (counter.alive != 1) {
        give_up("a barrier that was not initialized");
    }
    return counter;
}

/* Ends the phase where nothing is missing. */
static void counter_set(uint64_t *barrier, struct counter counter)
{
    if (counter.pending == 0 && counter.bytes == 0) {
        counter.phase ^= 1;
        counter.pending = counter.arrivals;
    }
    memcpy(barrier, &counter, sizeof(counter));
    emulator->progress++;
}

void bring_init(uint64_t *barrier, uint32_t arrivals)
{
    const struct counter counter = {
        .arrivals = (uint8_t)arrivals, .pending = (uint8_t)arrivals, .alive = 1};

    memcpy(barrier, &counter, sizeof(counter));
}

void bring_init_fence(void)
{
}

void bring_arrive(uint64_t *barrier)
{
    struct counter counter = counter_of(barrier);

    if (counter.pending == 0) {
        give_up("more arrivals than a barrier waits for");
    }
    counter.pending--;
    counter_set(barrier, counter);
}

void bring_expect(uint64_t *barrier, uint32_t size)
{
    struct counter counter = counter_of(barrier);

    counter.bytes += (int32_t)size;
    memcpy(barrier, &counter, sizeof(counter));
}

void bring_bulk(void *to, const void *from, uint32_t size, uint64_t *barrier)
{
    if (emulator->bulk_count == BULK_MAX) {
        give_up("too many bulk copies under way for the emulator");
    }
    if ((uintptr_t)from % 16 != 0 || shared_address(to) % 16 != 0 || size % 16 != 0 || size == 0) {
        give_up("a bulk copy that is not of pieces of 16 bytes");
    }
    emulator->bulks[emulator->bulk_count++] = (struct bulk){to, from, size, barrier};
}

uint32_t cluster_rank(void)
{
    return rank();
}

void cluster_barrier(void)
{
    meet_all(CLUSTER_MAX, emulator->cluster * emulator->threads);
}

/* The same place in another block of the cluster. */
static void *place_in(uint32_t block, const void *at)
{
    return emulator->dynamics[block] + ((const uint8_t *)at - dynamic_shared());
}

void bring_arrive_pair(uint64_t *barrier)
{
    for (uint32_t block = 0; block < 2; block++) {
        bring_arrive(place_in(block, barrier));
    }
}

void bring_bulk_pair(void *to, const void *from, uint32_t size, uint64_t *barrier)
{
    for (uint32_t block = 0; block < 2; block++) {
        bring_bulk(to, from, size, barrier);
        emulator->bulks[emulator->bulk_count - 1].to = place_in(block, to);
        emulator->bulks[emulator->bulk_count - 1].barrier = place_in(block, barrier);
    }
}

static void finish_bulks(void)
{
    for (uint32_t i = 0; i < emulator->bulk_count; i++) {
        const struct bulk *bulk = &emulator->bulks[i];
        struct counter counter = counter_of(bulk->barrier);

        memcpy(bulk->to, bulk->from, bulk->size);
        counter.bytes -= (int32_t)bulk->size;
        counter_set(bulk->barrier, counter);
    }
    emulator->bulk_count = 0;
}

void bring_wait(uint64_t *barrier, uint32_t parity, uint32_t gives_up)
{
    (void)gives_up;
    while (counter_of(barrier).phase == parity) {
        yield();
    }
}

/* ---- groups ---- */

void group_barrier(uint32_t group)
{
    struct group *own = &emulator->groups[rank() * 2 + group];
    uint32_t turn = own->turn;

    emulator->progress++;
    if (++own->arrived == GROUP) {
        own->arrived = 0;
        own->turn++;
    }
    while (own->turn == turn) {
        yield();
    }
}

void group_begin(int32_t *sums, uint32_t columns)
{
    struct fiber *fiber = me();

    memcpy(fiber->sums, sums, columns / 2 * sizeof(*sums));
    memset(sums, POISON, columns / 2 * sizeof(*sums));
    fiber->multiplies = true;
    fiber->product_count = 0;
}

void group_multiply(int32_t *sums, uint64_t a, uint64_t b, bool more, bool a_signed, bool b_signed,
                    uint32_t columns)
{
    struct fiber *fiber = me();
    struct group *group = &emulator->groups[emulator->current / GROUP];
    const struct group_product product = {a, b, more, a_signed, b_signed};
    const uint32_t at = fiber->product_count;

    (void)sums;
    (void)columns;
    if (!fiber->multiplies || at == PRODUCTS_MAX) {
        give_up("a product outside of group_begin() and group_end(), or too many");
    }
    fiber->products[at] = product;
    fiber->product_count++;
    fiber->product_number++;
    if (group->numbers[at] != fiber->product_number) {
        group->numbers[at] = fiber->product_number;
        group->products[at] = product;
    } else if (group->products[at].a != a || group->products[at].b != b ||
               group->products[at].more != more) {
        give_up("the warps of a group disagree about a product");
    }
}

/*
 * The 32 bytes of a line, from the PTX ISA's matrix descriptor: bits 0-13 the address, 32-45 the
 * distance of groups of eight lines, both without their last four bits; 49-51 an offset, 0 where
 * the pattern begins at its own multiple; 62-63 the swizzle: 1 exchanges bits 4-6 by 7-9 of the
 * address, 2 bits 4-5 by 7-8.
 */
static void line_of(int16_t values[32], uint64_t descriptor, uint32_t line, bool is_signed)
{
    const uint32_t start = (uint32_t)(descriptor & 0x3fff) << 4;
    const uint32_t stride = (uint32_t)(descriptor >> 32 & 0x3fff) << 4;
    const uint32_t swizzle = (uint32_t)(descriptor >> 62);
    const uint32_t size = swizzle == 1 ? 128 : 64;

    if ((swizzle != 1 && swizzle != 2) || (descriptor >> 46 & 0xffff) != 0 ||
        (descriptor >> 30 & 3) != 0 || start / (8 * size) * (8 * size) + size <= start) {
        give_up("a matrix descriptor that this emulator does not know");
    }
    for (uint32_t half = 0; half < 2; half++) {
        uint32_t address = start + line / 8 * stride + line % 8 * size + half * 16;

        address ^= (address >> 7 & (swizzle == 1 ? 7 : 3)) << 4;
        const uint8_t *from = dynamic_shared() + (address - DYNAMIC_ADDRESS);

        for (uint32_t k = 0; k < 16; k++) {
            values[half * 16 + k] = (int16_t)(is_signed ? (int8_t)from[k] : from[k]);
        }
    }
}

static int32_t dot_of_lines(const int16_t *a, const int16_t *b)
{
    int32_t sum = 0;

    for (uint32_t k = 0; k < 32; k++) {
        sum += a[k] * b[k];
    }
    return sum;
}

/*
 * wgmma .m64nNk32: thread 32 w + 4 g + t has the rows 16 w + g and 8 below; its sum i is of the
 * lower one for odd i / 2, of column 8 (i / 4) + 2 t + i % 2.
 */
static void group_product(int32_t *sums, const struct group_product *product, uint32_t columns)
{
    const uint32_t thread = emulator->current % GROUP;
    const uint32_t row = thread / WARP * 16 + thread % WARP / 4;
    int16_t a[2][32];

    line_of(a[0], product->a, row, product->a_signed);
    line_of(a[1], product->a, row + 8, product->a_signed);
    for (uint32_t i = 0; i < columns / 2; i += 4) {
        for (uint32_t c = 0; c < 2; c++) {
            int16_t b[32];

            line_of(b, product->b, i / 4 * 8 + thread % 4 * 2 + c, product->b_signed);
            for (uint32_t half = 0; half < 2; half++) {
                int32_t *sum = &sums[i + half * 2 + c];
                int32_t more = dot_of_lines(a[half], b);

                if (__builtin_add_overflow(product->more ? *sum : 0, more, sum)) {
                    give_up("a 32-bit sum of products overflows");
                }
            }
        }
    }
}

void group_end(int32_t *sums, uint32_t columns)
{
    struct fiber *fiber = me();

    yield(); /* what is overwritten too early shows */
    for (uint32_t i = 0; i < fiber->product_count; i++) {
        group_product(fiber->sums, &fiber->products[i], columns);
    }
    memcpy(sums, fiber->sums, columns / 2 * sizeof(*sums));
    fiber->multiplies = false;
    emulator->progress++;
}
