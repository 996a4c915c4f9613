/* emulator.c - see emulator.h. */
#include "tests/support/device/emulator.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/support/device/emulator_core.h"

struct emulator *emulator;

/* A thread that waits for others has no turn, which it could only give back. */
static bool has_turn(const struct fiber *fiber)
{
    return !fiber->done && (fiber->awaited == NULL || *fiber->awaited != fiber->was);
}

/* The first thread from `thread` on that has a turn; all of them: none. */
static uint32_t next_turn(uint32_t thread)
{
    while (thread < emulator->threads && !has_turn(&emulator->fibers[thread])) {
        thread++;
    }
    return emulator->left ? emulator->threads : thread;
}

/* To the next thread, behind the last to the scheduler, until it is this one's turn again. */
static void leave(void)
{
    struct fiber *own = emulator_fiber();
    const uint32_t next = next_turn(emulator->current + 1);

    race_no_thread();
    if (next == emulator->threads) {
        coroutine_change(&own->routine, &emulator->scheduler);
        return;
    }
    emulator->current = next;
    race_thread(next);
    coroutine_change(&own->routine, &emulator_fiber()->routine);
}

/* Tells of it; returns where the grid is to be left, and not all. */
static void tell_stuck(const char *why)
{
    if (!race_stuck(why)) {
        fprintf(stderr, "emulated kernel, block (%u, %u), thread %u: %s\n", emulator->block[0],
                emulator->block[1], emulator->current, why);
        abort();
    }
    emulator->left = true;
    race_no_thread();
}

_Noreturn void emulator_give_up(const char *why)
{
    tell_stuck(why);
    leave();
    abort(); /* a thread that gave up has no other turn */
}

void emulator_yield(void)
{
    leave();
}

void emulator_await(const uint32_t *turn, uint32_t was)
{
    struct fiber *fiber = emulator_fiber();

    fiber->was = was;
    while (*turn == was) {
        fiber->awaited = turn;
        leave();
    }
    fiber->awaited = NULL;
}

/* All threads that have a turn have it, one behind the other. */
static void resume_all(void)
{
    emulator->current = next_turn(0);
    if (emulator->current < emulator->threads) {
        race_thread(emulator->current);
        coroutine_change(&emulator->scheduler, &emulator_fiber()->routine);
    }
}

static bool is_alive(void)
{
    uint32_t thread = 0;

    while (thread < emulator->threads && emulator->fibers[thread].done) {
        thread++;
    }
    return thread < emulator->threads;
}

/* ---- running --------------------------------------------------------------- */

static void fiber_main(void)
{
    emulator->kernel(emulator->arguments);
    emulator_fiber()->done = true;
    emulator->progress++;
    emulator_yield();
}

static void start_fiber(uint32_t thread)
{
    struct fiber *fiber = &emulator->fibers[thread];

    fiber->done = false;
    fiber->awaited = NULL;
    fiber->shared_used = 0;
    fiber->shared_place = 0;
    fiber->copy_count = 0;
    fiber->groups = 0;
    fiber->product_count = 0;
    fiber->product_number = 0;
    fiber->multiplies = false;
    coroutine_init(&fiber->routine, emulator->stacks + (size_t)thread * STACK_SIZE, STACK_SIZE,
                   fiber_main);
}

/* No thread has anything left to do but to wait. */
static void stop_stuck(void)
{
    emulator->current = 0;
    while (emulator_fiber()->done) {
        emulator->current++;
    }
    race_thread(emulator->current);
    tell_stuck("threads wait for each other for ever");
}

static void run_block(uint32_t shared_size)
{
    const uint32_t all = emulator->threads;

    memset(emulator->shared, POISON, sizeof(emulator->shared));
    memset(emulator->dynamic, POISON, shared_size);
    memset(emulator->warps, 0, (all + WARP - 1) / WARP * sizeof(emulator->warps[0]));
    memset(emulator->groups, 0, sizeof(emulator->groups));
    emulator->arrived = 0;
    for (uint32_t thread = 0; thread < all; thread++) {
        start_fiber(thread);
    }
    while (is_alive() && !emulator->left) {
        const uint64_t before = emulator->progress;

        resume_all();
        emulator_finish_bulks();
        if (emulator->progress == before && is_alive()) {
            stop_stuck();
        }
    }
}

#define ARGUMENTS_MAX 2048

static void run_looked_at(uint32_t shared_size)
{
    const struct race_block block = {.stacks = emulator->stacks,
                                     .stack_size = STACK_SIZE,
                                     .shared = emulator->shared,
                                     .shared_max = sizeof(emulator->shared),
                                     .dynamic = emulator->dynamic,
                                     .dynamic_size = shared_size,
                                     .threads = emulator->threads,
                                     .place = {emulator->block[0], emulator->block[1]},
                                     .arguments = emulator->arguments,
                                     .arguments_size = ARGUMENTS_MAX};

    (void)block;
    race_block_begin(&block);
    run_block(shared_size);
    race_block_end();
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
    emulator->shared_size = shared_size;
    /* Kept from grid to grid: fresh pages cost more than the kernels. */
    static uint8_t *stacks;

    if (stacks == NULL) {
        stacks = malloc((size_t)THREADS_MAX * STACK_SIZE);
    }
    emulator->stacks = stacks;
    /* Not a byte more than was asked for, so that a sanitizer sees any step outside. */
    emulator->dynamic = malloc(shared_size + (shared_size == 0) + RACE_ROOM);
    if (emulator->stacks == NULL || emulator->dynamic == NULL) {
        abort();
    }
    for (uint32_t y = 0; y < grid[1]; y++) {
        for (uint32_t x = 0; x < grid[0]; x++) {
            emulator->block[0] = x;
            emulator->block[1] = y;
            if (!emulator->left) {
                run_looked_at(shared_size);
            }
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
    struct fiber *fiber = emulator_fiber();
    uint8_t *place = emulator->shared + fiber->shared_place;

    race_array(fiber->shared_place, size);
    fiber->shared_used += (size + 15) / 16 * 16;
    fiber->shared_place += (size + 15) / 16 * 16 + ARRAY_GAP;
    if (fiber->shared_used > SHARED_SIZE_MAX) {
        emulator_give_up("more shared memory than a device grants");
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
    const uint32_t turn = emulator->turn;

    race_meet(RACE_MEET_BLOCK, RACE_SITE);
    emulator->progress++;
    if (++emulator->arrived == emulator->threads) {
        race_join(0, emulator->threads);
        emulator->arrived = 0;
        emulator->turn++;
    }
    emulator_await(&emulator->turn, turn);
}

uint32_t emulator_meet(const struct offer *offer, void (*last)(struct warp *warp, uint32_t half))
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
    emulator_await(&warp->turn, turn);
    return half;
}

static uint32_t value_of_lane(uint32_t value, uint32_t lane)
{
    race_meet(RACE_MEET_SHUFFLE, RACE_SITE);

    struct offer offer = {.words = {value}};
    uint32_t half = emulator_meet(&offer, NULL);

    /* A device gives a lane its own value where the other does not exist. */
    lane = lane < WARP ? lane : emulator->current % WARP;
    return emulator->warps[emulator->current / WARP].offers[half][lane].words[0];
}

static void join_warp(struct warp *warp, uint32_t half)
{
    (void)warp;
    (void)half;
    race_join(emulator->current / WARP * WARP, WARP);
}

void warp_barrier(void)
{
    const struct offer nothing = {.row = NULL};

    race_meet(RACE_MEET_WARP, RACE_SITE);
    (void)emulator_meet(&nothing, join_warp);
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
    race_aligned(at, sizeof(*at), RACE_SITE);
    race_atomic(at, RACE_SITE);

    uint32_t before = *at;

    *at = value;
    return before;
}

uint32_t atomic_add(uint32_t *at, uint32_t value)
{
    race_aligned(at, sizeof(*at), RACE_SITE);
    race_atomic(at, RACE_SITE);

    uint32_t before = *at;

    *at += value;
    return before;
}

/* This one and the next return no old value, so they order nobody. */
void atomic_add_wide(uint64_t *at, uint64_t value)
{
    race_aligned(at, sizeof(*at), RACE_SITE);
    race_access(at, sizeof(*at), RACE_ATOMIC, RACE_SITE);
    *at += value;
}

void atomic_max(uint32_t *at, uint32_t value)
{
    race_aligned(at, sizeof(*at), RACE_SITE);
    race_access(at, sizeof(*at), RACE_ATOMIC, RACE_SITE);
    *at = *at < value ? value : *at;
}

uint64_t load_fresh(const uint64_t *at)
{
    race_aligned(at, sizeof(*at), RACE_SITE);
    race_access(at, sizeof(*at), RACE_READ, RACE_SITE);
    return *at;
}

/* Threads run one at a time here: all see all. */
void device_fence(void)
{
    race_fence();
}

void load_quad(float *to, const float *from)
{
    if ((uintptr_t)from % 16 != 0) {
        emulator_give_up("four numbers that are not aligned to 16");
    }
    race_access(from, 16, RACE_READ, RACE_SITE);
    race_access(to, 16, RACE_WRITE, RACE_SITE);
    memcpy(to, from, 16);
}

void store_quad(uint32_t *to, const uint32_t *from)
{
    if ((uintptr_t)to % 16 != 0) {
        emulator_give_up("four words that are not aligned to 16");
    }
    race_access(from, 16, RACE_READ, RACE_SITE);
    race_access(to, 16, RACE_WRITE, RACE_SITE);
    memcpy(to, from, 16);
}

void load_four(uint32_t to[4], const void *from)
{
    if ((uintptr_t)from % 16 != 0) {
        emulator_give_up("four words that are not aligned to 16");
    }
    race_access(from, 16, RACE_READ, RACE_SITE);
    race_access(to, 16, RACE_WRITE, RACE_SITE);
    memcpy(to, from, 16);
}

void load_pair(uint32_t *to, const void *from)
{
    if ((uintptr_t)from % 8 != 0) {
        emulator_give_up("two words that are not aligned to 8");
    }
    race_access(from, 8, RACE_READ, RACE_SITE);
    race_access(to, 8, RACE_WRITE, RACE_SITE);
    memcpy(to, from, 8);
}

uint32_t load_padded(const uint8_t *at)
{
    race_read_padded(at, 1, RACE_SITE);
    return *at;
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
    struct fiber *fiber = emulator_fiber();

    if (fiber->copy_count == COPIES_MAX) {
        emulator_give_up("too many copies under way for the emulator");
    }
    if ((uintptr_t)to % 16 != 0 || (uintptr_t)from % 16 != 0) {
        emulator_give_up("a copy of 16 bytes that is not aligned to 16");
    }
    race_copy(to, from, there, RACE_SITE);
    fiber->copies[fiber->copy_count++] = (struct copy){to, from, there, fiber->groups};
}

void copy_commit(void)
{
    emulator_fiber()->groups++;
}

void copy_wait(uint32_t left)
{
    struct fiber *fiber = emulator_fiber();
    uint32_t kept = 0;

    for (uint32_t i = 0; i < fiber->copy_count; i++) {
        struct copy *copy = &fiber->copies[i];

        if (copy->group + left >= fiber->groups) {
            fiber->copies[kept++] = *copy;
            continue;
        }
        race_copied(copy->to, copy->from, copy->there, RACE_SITE);
        if (copy->there) {
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
        emulator_give_up("a row of a matrix that is not aligned to 16");
    }
    race_meet(RACE_MEET_MATRICES, RACE_SITE);
    offers = emulator->warps[emulator->current / WARP].offers[emulator_meet(&offer, NULL)];
    for (uint32_t i = 0; i < 4; i++) {
        race_access(offers[8 * i + lane / 4].row + (size_t)lane % 4 * 4, 4, RACE_READ, RACE_SITE);
        memcpy(&words[i], offers[8 * i + lane / 4].row + (size_t)lane % 4 * 4, 4);
    }
}

static void widen(int16_t *wide, const uint8_t *bytes, uint32_t count, bool is_signed)
{
    for (uint32_t i = 0; i < count; i++) {
        wide[i] = is_signed ? (int8_t)bytes[i] : bytes[i];
    }
}

/*
 * mma .m16n8k32 with 8-bit operands, from the tables of the PTX ISA. With g = lane / 4 and
 * t = lane % 4, byte i of A is at row g (+ 8 for i in 4-7 and 12-15), column 4 t + i % 4 (+ 16 for
 * i >= 8); byte i of B is at row 4 t + i % 4 (+ 16 for i >= 4), column g; sum i is at row g (+ 8
 * for i >= 2), column 2 t + i % 2.
 *
 * A third of the time of emulated kernels went here: rows are 16-bit, and B's are its columns, so
 * that a compiler makes vectors of the loop over k.
 */
static void products(struct warp *warp, uint32_t half, bool a_signed, bool b_signed)
{
    uint8_t a_bytes[16][32];
    uint8_t b_bytes[8][32];
    int16_t a[16][32];
    int16_t b[8][32];

    for (uint32_t lane = 0; lane < WARP; lane++) {
        const uint32_t *words = warp->offers[half][lane].words;
        const uint32_t g = lane / 4;
        const uint32_t at = lane % 4 * 4;

        for (uint32_t i = 0; i < 4; i++) {
            memcpy(&a_bytes[g + i % 2 * 8][at + i / 2 * 16], &words[i], 4);
        }
        for (uint32_t i = 0; i < 2; i++) {
            memcpy(&b_bytes[g][at + i * 16], &words[4 + i], 4);
        }
    }
    widen(a[0], a_bytes[0], sizeof(a_bytes), a_signed);
    widen(b[0], b_bytes[0], sizeof(b_bytes), b_signed);
    for (uint32_t m = 0; m < 16; m++) {
        for (uint32_t n = 0; n < 8; n++) {
            int32_t sum = 0;

            for (uint32_t k = 0; k < 32; k++) {
                sum += a[m][k] * b[n][k];
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
    race_meet(RACE_MEET_PRODUCT, RACE_SITE);

    struct offer offer = {.words = {a[0], a[1], a[2], a[3], b[0], b[1]}};
    uint32_t half = emulator_meet(&offer, last);
    uint32_t lane = emulator->current % WARP;

    for (uint32_t i = 0; i < 4; i++) {
        int32_t product = emulator->warps[emulator->current / WARP]
                              .products[half][lane / 4 + (i >= 2 ? 8 : 0)][lane % 4 * 2 + i % 2];

        if (__builtin_add_overflow(sums[i], product, &sums[i])) {
            emulator_give_up("a 32-bit sum of products overflows");
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
