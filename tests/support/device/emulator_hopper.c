/*
 * emulator_hopper.c - what sm_90a adds to the emulator: barriers that count bytes, bulk copies,
 * and the products of groups of four warps. See emulator.h.
 */
#include "tests/support/device/emulator_core.h"

uint32_t shared_address(const void *at)
{
    return (uint32_t)((const uint8_t *)at - dynamic_shared()) + DYNAMIC_ADDRESS;
}

void store_pair(uint32_t *at, uint32_t first, uint32_t second)
{
    if ((uintptr_t)at % 8 != 0) {
        emulator_give_up("a store of two words that is not aligned to 8");
    }
    race_access(at, 8, RACE_WRITE, RACE_SITE);
    at[0] = first;
    at[1] = second;
}

uint32_t opaque(uint32_t value)
{
    return value;
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
        emulator_give_up("a barrier that was not initialized");
    }
    return counter;
}

/* Ends the phase where nothing is missing. */
static void counter_set(uint64_t *barrier, struct counter counter)
{
    if (counter.pending == 0 && counter.bytes == 0) {
        race_phase(barrier);
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

    race_barrier_init(barrier, RACE_SITE);
    memcpy(barrier, &counter, sizeof(counter));
}

void bring_init_fence(void)
{
    race_proxy_fence();
}

void bring_arrive(uint64_t *barrier)
{
    struct counter counter = counter_of(barrier);

    if (counter.pending == 0) {
        emulator_give_up("more arrivals than a barrier waits for");
    }
    race_arrive(barrier, RACE_SITE);
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
        emulator_give_up("too many bulk copies under way for the emulator");
    }
    if ((uintptr_t)from % 16 != 0 || (uintptr_t)to % 16 != 0 || size % 16 != 0 || size == 0) {
        emulator_give_up("a bulk copy that is not of pieces of 16 bytes");
    }
    race_bulk(to, from, size, barrier, RACE_SITE);
    emulator->bulks[emulator->bulk_count++] = (struct bulk){to, from, size, barrier};
}

void emulator_finish_bulks(void)
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
        emulator_yield();
    }
    race_waited(barrier, RACE_SITE);
}

/* ---- groups ---- */

void group_barrier(uint32_t group)
{
    struct group *own = &emulator->groups[group];
    uint32_t turn = own->turn;

    race_meet(RACE_MEET_BLOCK, RACE_SITE);
    emulator->progress++;
    if (++own->arrived == GROUP) {
        race_join(emulator->current / GROUP * GROUP, GROUP);
        own->arrived = 0;
        own->turn++;
    }
    emulator_await(&own->turn, turn);
}

void group_begin(int32_t *sums, uint32_t columns)
{
    struct fiber *fiber = emulator_fiber();

    memcpy(fiber->sums, sums, columns / 2 * sizeof(*sums));
    memset(sums, POISON, columns / 2 * sizeof(*sums));
    fiber->multiplies = true;
    fiber->product_count = 0;
}

void group_multiply(int32_t *sums, uint64_t a, uint64_t b, bool more, uint32_t columns)
{
    struct fiber *fiber = emulator_fiber();
    struct group *group = &emulator->groups[emulator->current / GROUP];
    const struct group_product product = {a, b, more};
    const uint32_t at = fiber->product_count;

    (void)sums;
    (void)columns;
    if (!fiber->multiplies || at == PRODUCTS_MAX) {
        emulator_give_up("a product outside of group_begin() and group_end(), or too many");
    }
    fiber->products[at] = product;
    fiber->product_count++;
    fiber->product_number++;
    if (group->numbers[at] != fiber->product_number) {
        group->numbers[at] = fiber->product_number;
        group->products[at] = product;
    } else if (group->products[at].a != a || group->products[at].b != b ||
               group->products[at].more != more) {
        emulator_give_up("the warps of a group disagree about a product");
    }
}

/*
 * The 32 bytes of a line, from the PTX ISA's matrix descriptor: bits 0-13 the address, 32-45 the
 * distance of groups of eight lines, both without their last four bits; 49-51 an offset, 0 where
 * the pattern begins at its own multiple; 62-63 the swizzle: 1 exchanges bits 4-6 by 7-9 of the
 * address, 2 bits 4-5 by 7-8.
 */
static const uint8_t *line_half(uint64_t descriptor, uint32_t line, uint32_t half)
{
    const uint32_t start = (uint32_t)(descriptor & 0x3fff) << 4;
    const uint32_t stride = (uint32_t)(descriptor >> 32 & 0x3fff) << 4;
    const uint32_t swizzle = (uint32_t)(descriptor >> 62);
    const uint32_t size = swizzle == 1 ? 128 : 64;

    if ((swizzle != 1 && swizzle != 2) || (descriptor >> 46 & 0xffff) != 0 ||
        (descriptor >> 30 & 3) != 0 || start / (8 * size) * (8 * size) + size <= start) {
        emulator_give_up("a matrix descriptor that this emulator does not know");
    }
    uint32_t address = start + line / 8 * stride + line % 8 * size + half * 16;

    address ^= (address >> 7 & (swizzle == 1 ? 7 : 3)) << 4;
    return dynamic_shared() + (address - DYNAMIC_ADDRESS);
}

static void line_of(int8_t values[32], uint64_t descriptor, uint32_t line)
{
    for (uint32_t half = 0; half < 2; half++) {
        memcpy(values + half * 16, line_half(descriptor, line, half), 16);
    }
}

static int32_t dot_of_lines(const int8_t *a, const int8_t *b)
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
    int8_t a[2][32];

    line_of(a[0], product->a, row);
    line_of(a[1], product->a, row + 8);
    for (uint32_t i = 0; i < columns / 2; i += 4) {
        for (uint32_t c = 0; c < 2; c++) {
            int8_t b[32];

            line_of(b, product->b, i / 4 * 8 + thread % 4 * 2 + c);
            for (uint32_t half = 0; half < 2; half++) {
                int32_t *sum = &sums[i + half * 2 + c];
                int32_t more = dot_of_lines(a[half], b);

                if (__builtin_add_overflow(product->more ? *sum : 0, more, sum)) {
                    emulator_give_up("a 32-bit sum of products overflows");
                }
            }
        }
    }
}

#ifdef RACECHECK
/* What a warp's share of the products reads, as its first lane says: 16 lines of A, all of B's. */
static void tell_reads(const struct fiber *fiber, uint32_t columns, const void *tree)
{
    const uint32_t first = emulator->current % GROUP / WARP * 16;

    if (emulator->current % WARP != 0) {
        return;
    }
    for (uint32_t i = 0; i < fiber->product_count; i++) {
        for (uint32_t line = 0; line < 16 + columns; line++) {
            const bool is_a = line < 16;

            for (uint32_t half = 0; half < 2; half++) {
                race_proxy_read(line_half(is_a ? fiber->products[i].a : fiber->products[i].b,
                                          is_a ? first + line : line - 16, half),
                                16, tree);
            }
        }
    }
}
#else
#define tell_reads(fiber, columns, tree)
#endif

void group_end(int32_t *sums, uint32_t columns)
{
    struct fiber *fiber = emulator_fiber();

    tell_reads(fiber, columns, RACE_SITE);
    emulator_yield(); /* what is overwritten too early shows */
    for (uint32_t i = 0; i < fiber->product_count; i++) {
        group_product(fiber->sums, &fiber->products[i], columns);
    }
    memcpy(sums, fiber->sums, columns / 2 * sizeof(*sums));
    fiber->multiplies = false;
    emulator->progress++;
}
