/* ptx.c - see ptx.h. */
#include "tests/ptx/ptx.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define RANGES_MAX 8192

struct range {
    const uint8_t *first;
    uint64_t size;
};

static struct range ranges[RANGES_MAX];
static uint32_t range_count;
static uint32_t last_found; /* most accesses follow one that is near */

void ptx_allow(const void *memory, uint64_t size)
{
    if (range_count == RANGES_MAX) {
        abort();
    }
    ranges[range_count++] = (struct range){memory, size};
}

void ptx_forbid(const void *memory)
{
    for (uint32_t i = 0; i < range_count; i++) {
        if (ranges[i].first == memory) {
            ranges[i] = ranges[--range_count];
            return;
        }
    }
}

/* ---- memory ------------------------------------------------------------------- */

static bool lies_in(const void *memory, uint64_t memory_size, uint64_t at, uint64_t size)
{
    const uint64_t first = (uint64_t)(uintptr_t)memory;

    return at >= first && size <= memory_size && at - first <= memory_size - size;
}

static bool is_allocated(uint64_t at, uint64_t size)
{
    if (last_found < range_count &&
        lies_in(ranges[last_found].first, ranges[last_found].size, at, size)) {
        return true;
    }
    for (uint32_t i = 0; i < range_count; i++) {
        if (lies_in(ranges[i].first, ranges[i].size, at, size)) {
            last_found = i;
            return true;
        }
    }
    return false;
}

static bool is_own(uint64_t at, uint64_t size)
{
    return lies_in(emulator->stacks + (size_t)emulator->current * STACK_SIZE, STACK_SIZE, at,
                   size) ||
           lies_in(emulator->shared, sizeof(emulator->shared), at, size) ||
           lies_in(emulator->dynamic, emulator->shared_size, at, size);
}

static _Noreturn void refuse(const char *what, uint64_t at, uint64_t size)
{
    char text[160];

    (void)snprintf(text, sizeof(text), "%s: %" PRIu64 " bytes at 0x%" PRIx64, what, size, at);
    emulator_give_up(text);
}

void *ptx_place_of(uint64_t at, uint64_t size, uint64_t align)
{
    if (at % align != 0) {
        refuse("a misaligned access", at, size);
    }
    if (!is_allocated(at, size) && !is_own(at, size)) {
        refuse("an access outside of all memory", at, size);
    }
    return (void *)(uintptr_t)at;
}

static size_t statics_size;

uint8_t *ptx_statics(size_t size)
{
    statics_size = size;
    return emulated_shared(size);
}

void *ptx_shared_of(uint8_t *statics, uint64_t at, uint64_t size, uint64_t align)
{
    const uint64_t place = (uint32_t)at;

    if (place % align != 0) {
        refuse("a misaligned access to shared memory", place, size);
    }
    if (place >= PTX_STATIC && statics != NULL && place - PTX_STATIC + size <= statics_size) {
        return statics + (place - PTX_STATIC);
    }
    if (place < PTX_DYNAMIC || place - PTX_DYNAMIC + size > emulator->shared_size) {
        refuse("an access outside of shared memory", place, size);
    }
    return dynamic_shared() + (place - PTX_DYNAMIC);
}

/* A pointer may lie behind what it is the end of: only accesses are looked at. */
uint64_t ptx_generic_of_shared(uint8_t *statics, uint64_t at)
{
    return (uint64_t)(uintptr_t)(at >= PTX_STATIC ? statics + (at - PTX_STATIC)
                                                  : dynamic_shared() + (at - PTX_DYNAMIC));
}

/* ---- threads together ---------------------------------------------------------- */

static void expect_whole(uint32_t clamp, uint32_t mask)
{
    ptx_whole(mask);
    if (clamp != 31) {
        emulator_give_up("a shuffle within a part of a warp");
    }
}

uint32_t ptx_shuffle_bfly(uint32_t value, uint32_t distance, uint32_t clamp, uint32_t mask)
{
    expect_whole(clamp, mask);
    return shuffle_xor(value, distance);
}

uint32_t ptx_shuffle_down(uint32_t value, uint32_t distance, uint32_t clamp, uint32_t mask)
{
    expect_whole(clamp, mask);
    return ptx_bits(shuffle_down_real(ptx_real(value), distance));
}

uint32_t ptx_shuffle_idx(uint32_t value, uint32_t lane, uint32_t clamp, uint32_t mask)
{
    expect_whole(clamp, mask);
    return ptx_bits(shuffle_real(ptx_real(value), lane));
}

/* ---- products of groups --------------------------------------------------------- */

/* What a sum's register holds while it is being made: so that no other can pass for it. */
#define TOKEN 0x5a5a0000

void ptx_group_fence(struct ptx_group *group)
{
    if (group->begun) {
        emulator_give_up("a fence between products and their wait");
    }
    group->fenced = true;
}

static void expect_tokens(const int32_t *sums, uint32_t columns)
{
    for (uint32_t i = 0; i < columns / 2; i++) {
        if (sums[i] != TOKEN + (int32_t)i) {
            emulator_give_up("a product's registers are not those of the product before it");
        }
    }
}

void ptx_group_multiply(struct ptx_group *group, int32_t *sums, uint64_t a, uint64_t b, bool more,
                        uint32_t columns)
{
    if (!group->fenced || group->committed) {
        emulator_give_up("a product without a fence before it");
    }
    if (!group->begun) {
        group_begin(sums, columns);
        group->begun = true;
    } else {
        expect_tokens(sums, columns);
    }
    group_multiply(sums, a, b, more, columns);
    for (uint32_t i = 0; i < columns / 2; i++) {
        sums[i] = TOKEN + (int32_t)i;
    }
}

void ptx_group_commit(struct ptx_group *group)
{
    group->committed = group->begun;
}

void ptx_group_wait(struct ptx_group *group, int32_t *sums, uint32_t columns)
{
    if (!group->committed) {
        emulator_give_up("a wait for products that were not sent off");
    }
    expect_tokens(sums, columns);
    group_end(sums, columns);
    *group = (struct ptx_group){.fenced = false};
}
