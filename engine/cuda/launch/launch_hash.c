/* launch_hash.c - see launch_hash.h. */
#include "engine/cuda/launch/launch_hash.h"

void launch_hash_plan(struct hash_item *items, uint32_t count)
{
    for (uint32_t level = 0; level < HASH_LEVELS; level++) {
        uint64_t place = 0;

        for (uint32_t i = 0; i < count; i++) {
            assert(items[i].size > 0);
            items[i].first[level] = place;
            place += hash_count(items[i].size, level);
        }
    }
}

/* Digests of all items at a level. */
static uint64_t hash_total(const struct hash_item *items, uint32_t count, uint32_t level)
{
    return items[count - 1].first[level] + hash_count(items[count - 1].size, level);
}

static uint64_t digests_size(uint64_t count)
{
    return packed_round_up(count * HASH_DIGEST, PACKED_ALIGNMENT);
}

uint64_t launch_hash_scratch_size(const struct hash_item *items, uint32_t count)
{
    return count == 0 ? 0
                      : digests_size(hash_total(items, count, 0)) +
                            digests_size(hash_total(items, count, 1));
}

enum device_result launch_hash(const struct launcher *launcher, void *roots,
                               const struct hash_item *on_device, const struct hash_item *items,
                               uint32_t count)
{
    const uint64_t leaves = hash_total(items, count, 0);
    uint8_t *halves[2] = {launcher->scratch, launcher->scratch + digests_size(leaves)};
    struct hash_args args = {
        .items = on_device, .to = halves[0], .total = leaves, .item_count = count};

    DEVICE_TRY(launch_work(launcher, KERNEL_HASH_LEAVES, leaves, HASH_LEAF_THREADS,
                           HASH_LEAF_THREADS, &args, sizeof(args)));
    /* At least once: it moves the roots of single leaves to their places. */
    do {
        args.level++;
        assert(args.level < HASH_LEVELS);
        args.total = hash_total(items, count, args.level);
        args.from = args.to;
        args.to = args.total == count ? (uint8_t *)roots : halves[args.level % 2];
        DEVICE_TRY(launch_work(launcher, KERNEL_HASH_NODES, args.total, 1, HASH_NODES_THREADS,
                               &args, sizeof(args)));
    } while (args.total > count);
    return DEVICE_OK;
}

enum device_result launch_finite(const struct launcher *launcher, uint32_t *found,
                                 const void *values, uint64_t count)
{
    struct finite_args args = {.bits = values, .found = found, .count = count};

    return LAUNCH_WORK(launcher, KERNEL_FINITE, count, BLOCK_THREADS * 4, args);
}
