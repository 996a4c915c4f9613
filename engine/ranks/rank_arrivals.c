/* rank_arrivals.c - see rank_arrivals.h. */
#include "engine/ranks/rank_arrivals.h"

#include <stdlib.h>
#include <string.h>

#include "engine/ranks/rank_sums.h"

static uint64_t part_size(const struct rank_arrivals *arrivals, uint32_t at, uint32_t owner)
{
    return ranks_shard_first(&arrivals->shards, at, owner + 1) -
           ranks_shard_first(&arrivals->shards, at, owner);
}

/* Where the parts of an owner begin. */
static uint64_t before_owner(const struct rank_arrivals *arrivals, uint32_t owner)
{
    uint64_t before = 0;

    for (uint32_t rank = 0; rank < owner; rank++) {
        before += ranks_shard_count(&arrivals->shards, rank);
    }
    return before;
}

enum status rank_arrivals_open(struct rank_arrivals *arrivals, const struct rank_places *places,
                               uint32_t stage, uint32_t rank, struct error *error)
{
    *arrivals = (struct rank_arrivals){.rank = rank};
    TRY(rank_places_arrivals(&arrivals->shards, places, stage, error));
    arrivals->parts = malloc(before_owner(arrivals, places->ranks) + 1);
    arrivals->transfers = malloc(2 * (size_t)places->ranks * sizeof(*arrivals->transfers));
    if (arrivals->parts == NULL || arrivals->transfers == NULL) {
        rank_arrivals_close(arrivals);
        return error_set(error, STATUS_NO_MEMORY, "no memory for what %u ranks send each other",
                         places->ranks);
    }
    return STATUS_OK;
}

void rank_arrivals_close(struct rank_arrivals *arrivals)
{
    ranks_shards_release(&arrivals->shards);
    free(arrivals->parts);
    free(arrivals->transfers);
    *arrivals = (struct rank_arrivals){.parts = NULL};
}

/* Where a tensor's part of an owner stands behind those of the tensors before it. */
static uint64_t place_of(const struct rank_arrivals *arrivals, uint64_t before, uint32_t at,
                         uint32_t owner)
{
    for (uint32_t i = 0; i < at; i++) {
        before += part_size(arrivals, i, owner);
    }
    return before;
}

uint8_t *rank_arrivals_own(const struct rank_arrivals *arrivals, uint32_t at)
{
    const uint64_t before = before_owner(arrivals, arrivals->rank);

    return arrivals->parts + place_of(arrivals, before, at, arrivals->rank);
}

enum status rank_arrivals_exchange(struct rank_arrivals *arrivals, const struct ranks_link *link,
                                   struct error *error)
{
    const uint64_t own = ranks_shard_count(&arrivals->shards, arrivals->rank);
    uint64_t before = 0;
    uint32_t count = 0;

    for (uint32_t peer = 0; peer < link->rank_count; peer++) {
        const uint64_t theirs = ranks_shard_count(&arrivals->shards, peer);
        struct ranks_transfer transfer = {.peer = peer, .tag = RANK_TAG_ARRIVALS};

        if (peer != arrivals->rank && own > 0) {
            transfer.sends = true;
            transfer.bytes = arrivals->parts + before_owner(arrivals, arrivals->rank);
            transfer.size = own;
            arrivals->transfers[count++] = transfer;
        }
        if (peer != arrivals->rank && theirs > 0) {
            transfer.sends = false;
            transfer.bytes = arrivals->parts + before;
            transfer.size = theirs;
            arrivals->transfers[count++] = transfer;
        }
        before += theirs;
    }
    return link->exchange(link->context, arrivals->transfers, count, error);
}

void rank_arrivals_get(uint8_t *bytes, const struct rank_arrivals *arrivals, uint32_t at)
{
    uint64_t before = 0;

    for (uint32_t owner = 0; owner < arrivals->shards.rank_count; owner++) {
        memcpy(bytes + ranks_shard_first(&arrivals->shards, at, owner),
               arrivals->parts + place_of(arrivals, before, at, owner),
               part_size(arrivals, at, owner));
        before += ranks_shard_count(&arrivals->shards, owner);
    }
}
