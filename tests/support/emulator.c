/* emulator.c - see emulator.h. */
#include "tests/support/emulator.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#define THREADS_MAX     1024
#define WARP            32
#define WARPS_MAX       (THREADS_MAX / WARP)
#define STACK_SIZE      (128 << 10)
#define SHARED_SIZE_MAX (48 << 10) /* of what is declared in a kernel */
#define COPIES_MAX      64         /* unfinished, of one thread */
#define POISON          0xa5

struct copy {
    uint8_t *to;
    const uint8_t *from;
    bool there;
    uint32_t group;
};

/* A fiber begins by ucontext and goes on by setjmp, which needs no system call. */
struct fiber {
    ucontext_t context;
    jmp_buf place;
    bool begun;
    bool done;
    size_t shared_used;
    struct copy copies[COPIES_MAX];
    uint32_t copy_count;
    uint32_t groups; /* committed */
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
    jmp_buf scheduler;
    emulated_kernel *kernel;
    const void *arguments;
    uint8_t *stacks;
    uint8_t *dynamic;
    uint8_t shared[SHARED_SIZE_MAX] __attribute__((aligned(64)));
    uint32_t block[2];
    uint32_t grid;
    uint32_t threads;
    uint32_t current;
    uint32_t arrived; /* at the barrier */
    uint32_t turn;
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

static void yield(void)
{
    if (_setjmp(me()->place) == 0) {
        _longjmp(emulator->scheduler, 1);
    }
}

/* Until the fiber yields. No variable lives across the jump. */
static __attribute__((noinline)) void resume(struct fiber *fiber)
{
    if (_setjmp(emulator->scheduler) != 0) {
        return;
    }
    if (fiber->begun) {
        _longjmp(fiber->place, 1);
    }
    fiber->begun = true;
    (void)setcontext(&fiber->context);
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

    fiber->begun = false;
    fiber->done = false;
    fiber->shared_used = 0;
    fiber->copy_count = 0;
    fiber->groups = 0;
    (void)getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = emulator->stacks + (size_t)thread * STACK_SIZE;
    fiber->context.uc_stack.ss_size = STACK_SIZE;
    fiber->context.uc_link = NULL;
    makecontext(&fiber->context, fiber_main, 0);
}

static void run_block(uint32_t shared_size)
{
    bool alive = true;

    memset(emulator->shared, POISON, sizeof(emulator->shared));
    memset(emulator->dynamic, POISON, shared_size);
    memset(emulator->warps, 0, (emulator->threads + WARP - 1) / WARP * sizeof(emulator->warps[0]));
    emulator->arrived = 0;
    for (uint32_t thread = 0; thread < emulator->threads; thread++) {
        start_fiber(thread);
    }
    while (alive) {
        uint64_t before = emulator->progress;

        alive = false;
        for (uint32_t thread = 0; thread < emulator->threads; thread++) {
            emulator->current = thread;
            if (!me()->done) {
                resume(me());
                alive = alive || !me()->done;
            }
        }
        if (alive && emulator->progress == before) {
            give_up("threads wait for each other for ever");
        }
    }
}

void emulator_run(emulated_kernel *kernel, const void *arguments, const uint32_t grid[3],
                  uint32_t block, uint32_t shared_size)
{
    emulator = calloc(1, sizeof(*emulator));
    if (emulator == NULL || block > THREADS_MAX || grid[2] != 1) {
        abort();
    }
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
    emulator->dynamic = malloc(shared_size + (shared_size == 0));
    if (emulator->stacks == NULL || emulator->dynamic == NULL) {
        abort();
    }
    for (uint32_t y = 0; y < grid[1]; y++) {
        for (uint32_t x = 0; x < grid[0]; x++) {
            emulator->block[0] = x;
            emulator->block[1] = y;
            run_block(shared_size);
        }
    }
    free(emulator->dynamic);
    free(emulator);
    emulator = NULL;
}

/* ---- places ------------------------------------------------------------------ */

uint32_t thread_index(void)
{
    return emulator->current;
}

uint32_t block_index(void)
{
    return emulator->block[0];
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
    if (fiber->shared_used > SHARED_SIZE_MAX) {
        give_up("more shared memory than a device grants");
    }
    return place;
}

uint8_t *dynamic_shared(void)
{
    return emulator->dynamic;
}

/* ---- meetings ------------------------------------------------------------------ */

void barrier(void)
{
    uint32_t turn = emulator->turn;

    emulator->progress++;
    if (++emulator->arrived == emulator->threads) {
        emulator->arrived = 0;
        emulator->turn++;
    }
    while (emulator->turn == turn) {
        yield();
    }
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

int32_t round_to_int(float x)
{
    return (int32_t)lrintf(x);
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

void copy_wait_all_but_last(void)
{
    struct fiber *fiber = me();
    uint32_t kept = 0;

    for (uint32_t i = 0; i < fiber->copy_count; i++) {
        struct copy *copy = &fiber->copies[i];

        if (copy->group + 1 >= fiber->groups) {
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
