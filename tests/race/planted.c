/* planted.c - see planted.h. */
#include "tests/race/planted.h"

#define WARP 32

/* ---- barriers of a block ----------------------------------------------------------- */

KERNEL(missing_barrier, struct planted_args)
{
    SHARED(uint32_t, tile, 64);
    const uint32_t at = thread_index();

    tile[at] = at;
    if (args.sound) {
        barrier();
    }
    args.words[at] = tile[(at + 1) % 64];
}

/* Bytes beside each other in a word are nobody's concern; the same byte is. */
KERNEL(missing_barrier_of_bytes, struct planted_args)
{
    SHARED(uint8_t, tile, 64);
    const uint32_t at = thread_index();

    tile[at] = (uint8_t)at;
    if (args.sound) {
        barrier();
    }
    args.words[at] = tile[63 - at];
}

/* The next turn's write comes before all have read the turn before. */
KERNEL(missing_barrier_of_a_loop, struct planted_args)
{
    SHARED(uint32_t, tile, 64);
    const uint32_t at = thread_index();
    uint32_t sum = 0;

    for (uint32_t turn = 0; turn < 3; turn++) {
        tile[at] = turn;
        barrier();
        sum += tile[63 - at];
        if (args.sound) {
            barrier();
        }
    }
    args.words[block_index() * 64 + at] = sum;
}

KERNEL(all_write_one_word, struct planted_args)
{
    SHARED(uint32_t, word, 1);

    if (args.sound == 0 || thread_index() == 0) {
        *word = 7;
    }
    barrier();
    args.words[thread_index()] = *word;
}

KERNEL(barrier_of_a_part, struct planted_args)
{
    if (args.sound || thread_index() < 16) {
        barrier();
    }
    args.words[thread_index()] = 1;
}

KERNEL(barriers_at_two_places, struct planted_args)
{
    if (args.sound || thread_index() % 2 == 0) {
        barrier();
        args.words[thread_index()] = 1;
    } else {
        barrier();
        args.words[thread_index()] = 2;
    }
}

/* ---- warps ---------------------------------------------------------------------------- */

/* A shuffle orders no memory. */
KERNEL(missing_warp_barrier, struct planted_args)
{
    SHARED(uint32_t, tile, 32);
    const uint32_t at = thread_index();

    tile[at] = at;
    if (args.sound) {
        warp_barrier();
    } else {
        (void)shuffle_xor(at, 1);
    }
    args.words[at] = tile[at ^ 1];
}

KERNEL(warp_barrier_for_two_warps, struct planted_args)
{
    SHARED(uint32_t, tile, 64);
    const uint32_t at = thread_index();

    tile[at] = at;
    if (args.sound) {
        barrier();
    } else {
        warp_barrier();
    }
    args.words[at] = tile[at ^ WARP];
}

KERNEL(shuffle_meets_a_barrier, struct planted_args)
{
    if (args.sound || thread_index() != 5) {
        args.words[thread_index()] = shuffle_xor(thread_index(), 1);
    } else {
        warp_barrier();
    }
}

/* Device memory is not what orders a warp either. */
KERNEL(missing_warp_barrier_of_device_memory, struct planted_args)
{
    const uint32_t at = thread_index();

    args.fresh[at] = at;
    if (args.sound) {
        warp_barrier();
    }
    args.words[at] = args.fresh[at ^ 1];
}

/* ldmatrix reads for all lanes what each has put there. */
KERNEL(matrices_before_a_barrier, struct planted_args)
{
    SHARED(uint32_t, tile, 128);
    const uint32_t at = thread_index();
    uint32_t words[4];

    for (uint32_t i = 0; i < 4; i++) {
        tile[at * 4 + i] = at;
    }
    if (args.sound) {
        warp_barrier();
    }
    load_matrices(words, &tile[at * 4]);
    args.words[at] = words[0];
}

/* ---- copies ------------------------------------------------------------------------------- */

KERNEL(read_before_the_copy, struct planted_args)
{
    SHARED(uint32_t, tile, 128);
    const uint32_t at = thread_index();

    copy_async(&tile[at * 4], &args.words[at * 4], true);
    copy_commit();
    if (args.sound) {
        copy_wait(0);
    }
    args.fresh[at] = tile[at * 4];
    copy_wait(0);
}

/* A wait is for one's own copies. */
KERNEL(missing_barrier_of_a_copy, struct planted_args)
{
    SHARED(uint32_t, tile, 128);
    const uint32_t at = thread_index();

    copy_async(&tile[at * 4], &args.words[at * 4], true);
    copy_commit();
    copy_wait(0);
    if (args.sound) {
        barrier();
    }
    args.fresh[at] = tile[(31 - at) * 4];
}

/* One group too many is left under way. */
KERNEL(copies_of_the_wrong_group, struct planted_args)
{
    SHARED(uint32_t, tile, 256);
    const uint32_t at = thread_index();

    for (uint32_t stage = 0; stage < 2; stage++) {
        copy_async(&tile[stage * 128 + at * 4], &args.words[at * 4], true);
        copy_commit();
    }
    copy_wait(args.sound ? 1 : 2);
    barrier();
    args.fresh[at] = tile[(31 - at) * 4];
    copy_wait(0);
}

/* ---- places -------------------------------------------------------------------------------- */

KERNEL(outside_of_device_memory, struct planted_args)
{
    args.fresh[thread_index()] = args.words[PLANTED_WORDS - WARP + thread_index() + !args.sound];
}

KERNEL(outside_of_an_array, struct planted_args)
{
    SHARED(uint32_t, first, 32);
    SHARED(uint32_t, second, 32);
    const uint32_t at = thread_index();

    first[at] = 0;
    second[at] = 1;
    barrier();
    args.words[at] = first[at + !args.sound] + second[at];
}

KERNEL(outside_of_dynamic_memory, struct planted_args)
{
    uint32_t *tile = (uint32_t *)(void *)dynamic_shared();

    tile[PLANTED_DYNAMIC / 4 - WARP + thread_index() + !args.sound] = 1;
}

KERNEL(unwritten_device_memory, struct planted_args)
{
    if (args.sound) {
        args.fresh[thread_index()] = 3;
    }
    args.words[thread_index()] = args.fresh[thread_index()];
}

/* What the block before has left is not this one's. */
KERNEL(unwritten_shared_memory, struct planted_args)
{
    SHARED(uint32_t, tile, 32);

    if (args.sound || block_index() == 0) {
        tile[thread_index()] = 3;
    }
    args.words[block_index() * 32 + thread_index()] = tile[thread_index()];
}

KERNEL(not_aligned, struct planted_args)
{
    const uint32_t skip = args.sound ? 2 : 1;
    const uint64_t *pair = (const uint64_t *)(const void *)(args.words + skip);

    args.fresh[thread_index()] = (uint32_t)*pair;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

KERNEL(blocks_write_one_word, struct planted_args)
{
    if (thread_index() == 0) {
        if (args.sound) {
            (void)atomic_add(&args.tickets[0], 1);
        } else {
            args.tickets[0] = block_index();
        }
    }
}

KERNEL(atomics_and_writes, struct planted_args)
{
    if (args.sound || thread_index() % 2 == 0) {
        (void)atomic_add(&args.tickets[0], 1);
    } else {
        args.tickets[0] = 1;
    }
}

/* The last block adds up what all have written. */
static void add_up(const struct planted_args *args, bool last)
{
    if (last) {
        uint32_t sum = 0;

        for (uint32_t block = 0; block < grid_size(); block++) {
            sum += args->fresh[block * 32 + 31 - thread_index()];
        }
        args->words[thread_index()] = sum;
    }
}

KERNEL(ticket_without_fences, struct planted_args)
{
    SHARED(uint32_t, before, 1);

    args.fresh[block_index() * 32 + thread_index()] = 1;
    barrier();
    if (thread_index() == 0) {
        if (args.sound) {
            device_fence();
        }
        *before = atomic_add(&args.tickets[0], 1);
        device_fence();
    }
    barrier();
    add_up(&args, *before + 1 == grid_size());
}

/* Fences of threads that have no ticket. */
KERNEL(fences_of_others, struct planted_args)
{
    SHARED(uint32_t, before, 1);

    args.fresh[block_index() * 32 + thread_index()] = 1;
    if (args.sound == 0) {
        device_fence();
    }
    barrier();
    if (thread_index() == 0) {
        if (args.sound) {
            device_fence();
        }
        *before = atomic_add(&args.tickets[0], 1);
        if (args.sound) {
            device_fence();
        }
    }
    barrier();
    if (args.sound == 0) {
        device_fence();
    }
    add_up(&args, *before + 1 == grid_size());
}

/* ---- barriers that count bytes --------------------------------------------------------------- */

struct bulk_control {
    uint64_t full;
    uint64_t empty;
};

static uint8_t *bulk_begin(struct bulk_control **control, uint32_t readers)
{
    uint8_t *tile = dynamic_shared();

    *control = (struct bulk_control *)(void *)(tile + 4096);
    if (thread_index() == 0) {
        bring_init(&(*control)->full, 1);
        bring_init(&(*control)->empty, readers);
        bring_init_fence();
    }
    barrier();
    return tile;
}

KERNEL(read_before_the_bulk_copy, struct planted_args)
{
    struct bulk_control *control;
    const uint32_t *tile = (const uint32_t *)(const void *)bulk_begin(&control, 1);

    if (thread_index() == 0) {
        bring_expect(&control->full, 128);
        bring_bulk(dynamic_shared(), args.words, 128, &control->full);
        bring_arrive(&control->full);
    }
    if (args.sound) {
        bring_wait(&control->full, 0, 0);
    }
    args.fresh[thread_index()] = tile[thread_index()];
    bring_wait(&control->full, 0, 0);
}

/* The second copy goes into what the other warp still reads. */
KERNEL(bulk_copy_over_readers, struct planted_args)
{
    struct bulk_control *control;
    const uint32_t *tile = (const uint32_t *)(const void *)bulk_begin(&control, 1);
    const uint32_t lane = thread_index() % WARP;

    for (uint32_t turn = 0; turn < 3; turn++) {
        if (thread_index() == 0) {
            if (args.sound) {
                bring_wait(&control->empty, (turn & 1) ^ 1, 0);
            }
            bring_expect(&control->full, 128);
            bring_bulk(dynamic_shared(), args.words + turn * 32, 128, &control->full);
            bring_arrive(&control->full);
            bring_wait(&control->full, turn & 1, 0);
        }
        if (thread_index() >= WARP) {
            bring_wait(&control->full, turn & 1, 0);
            args.fresh[lane] = tile[lane];
            warp_barrier();
            if (lane == 0) {
                bring_arrive(&control->empty);
            }
        }
    }
}

/* A lane arrives for its warp before the others have read. */
KERNEL(arrival_without_the_warp, struct planted_args)
{
    struct bulk_control *control;
    uint32_t *tile = (uint32_t *)(void *)bulk_begin(&control, 1);
    const uint32_t at = thread_index();

    if (at >= WARP) {
        tile[at - WARP] = at;
        if (args.sound) {
            warp_barrier();
        }
        if (at == WARP) {
            bring_arrive(&control->empty);
        }
    } else {
        bring_wait(&control->empty, 0, 0);
        args.fresh[at] = tile[31 - at];
    }
}

KERNEL(barrier_that_others_have_not_seen, struct planted_args)
{
    struct bulk_control *control = (struct bulk_control *)(void *)dynamic_shared();

    if (thread_index() == 0) {
        bring_init(&control->full, 64);
        bring_init_fence();
    }
    if (args.sound) {
        barrier();
    }
    bring_arrive(&control->full);
    bring_wait(&control->full, 0, 0);
}

/* ---- wgmma ---------------------------------------------------------------------- */

static uint64_t descriptor_of(const uint8_t *at)
{
    return (uint64_t)(shared_address(at) >> 4) | UINT64_C(1) << 16 | (uint64_t)(1024 >> 4) << 32 |
           UINT64_C(1) << 62;
}

/* Plain writes, read by the asynchronous proxy: 32 bytes of 64 lines of 128, for A and for B. */
KERNEL(missing_fence_of_proxies, struct planted_args)
{
    int32_t sums[32] = {0};
    uint8_t *tile = dynamic_shared();

    tile += (1024 - shared_address(tile) % 1024) % 1024;
    for (uint32_t i = thread_index(); i < 64 * 128 / 4; i += 128) {
        ((uint32_t *)(void *)tile)[i] = 0;
    }
    if (args.sound) {
        bring_init_fence();
    }
    barrier();
    group_begin(sums, 64);
    group_multiply(sums, descriptor_of(tile), descriptor_of(tile), false, 64);
    group_end(sums, 64);
    args.words[thread_index()] = (uint32_t)sums[0];
}

#define PLANTED(name, kind, grid, block)                                                           \
    {                                                                                              \
#name, name, kind, grid, block                                                             \
    }

const struct planted planted[] = {
    PLANTED(missing_barrier, RACE_READ_EARLY, 1, 64),
    PLANTED(missing_barrier_of_bytes, RACE_READ_EARLY, 1, 64),
    PLANTED(missing_barrier_of_a_loop, RACE_WRITE_EARLY, 2, 64),
    PLANTED(all_write_one_word, RACE_WRITE_TWICE, 1, 64),
    PLANTED(barrier_of_a_part, RACE_STUCK, 1, 32),
    PLANTED(barriers_at_two_places, RACE_DIVERGED, 1, 32),
    PLANTED(missing_warp_barrier, RACE_READ_EARLY, 1, 32),
    PLANTED(warp_barrier_for_two_warps, RACE_READ_EARLY, 1, 64),
    PLANTED(shuffle_meets_a_barrier, RACE_DIVERGED, 1, 32),
    PLANTED(missing_warp_barrier_of_device_memory, RACE_READ_EARLY, 1, 32),
    PLANTED(matrices_before_a_barrier, RACE_READ_EARLY, 1, 32),
    PLANTED(read_before_the_copy, RACE_IN_FLIGHT, 1, 32),
    PLANTED(missing_barrier_of_a_copy, RACE_READ_EARLY, 1, 32),
    PLANTED(copies_of_the_wrong_group, RACE_IN_FLIGHT, 1, 32),
    PLANTED(outside_of_device_memory, RACE_OUTSIDE, 1, 32),
    PLANTED(outside_of_an_array, RACE_OUTSIDE, 1, 32),
    PLANTED(outside_of_dynamic_memory, RACE_OUTSIDE, 1, 32),
    PLANTED(unwritten_device_memory, RACE_UNWRITTEN, 1, 32),
    PLANTED(unwritten_shared_memory, RACE_UNWRITTEN, 2, 32),
    PLANTED(not_aligned, RACE_MISALIGNED, 1, 32),
    PLANTED(blocks_write_one_word, RACE_WRITE_TWICE, 3, 32),
    PLANTED(atomics_and_writes, RACE_WRITE_TWICE, 1, 32),
    PLANTED(ticket_without_fences, RACE_READ_EARLY, 4, 32),
    PLANTED(fences_of_others, RACE_READ_EARLY, 4, 32),
    PLANTED(read_before_the_bulk_copy, RACE_READ_EARLY, 1, 32),
    PLANTED(bulk_copy_over_readers, RACE_WRITE_EARLY, 1, 64),
    PLANTED(arrival_without_the_warp, RACE_READ_EARLY, 1, 64),
    PLANTED(barrier_that_others_have_not_seen, RACE_READ_EARLY, 1, 64),
    PLANTED(missing_fence_of_proxies, RACE_PROXY, 1, 128),
};

const uint32_t planted_count = sizeof(planted) / sizeof(planted[0]);
