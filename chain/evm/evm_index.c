/* evm_index.c - see evm_index.h. */
#include "chain/evm/evm_index.h"

#include <stdlib.h>
#include <time.h>

#include "base/steady.h"
#include "chain/evm/evm.h"
#include "chain/game/event_log.h"

enum {
    RANGES_GOOD = 8, /* in a row, until a range may be larger */
};

static struct event_log_block log_block_of(const struct evm_block *block)
{
    struct event_log_block made = {block->height, block->hash, block->time_s};

    return made;
}

/* Where the event log stands. */
struct place {
    struct event_log_block top;
    bool empty;
};

static enum status find_place(const struct evm_index *index, struct place *place,
                              struct error *error)
{
    enum status status = event_log_top(index->sql, &place->top, error);

    place->empty = status == STATUS_NOT_FOUND;
    return place->empty ? STATUS_OK : status;
}

/* STATUS_NOT_FOUND: another process that reads into the same log was quicker, or went back. */
static enum status stand_still_at(const struct evm_index *index, const struct place *place,
                                  struct error *error)
{
    struct place now;

    TRY(find_place(index, &now, error));
    return now.empty == place->empty && (now.empty || hash32_equal(&now.top.hash, &place->top.hash))
               ? STATUS_OK
               : STATUS_NOT_FOUND;
}

/* Blocks that continue what is there, with all their logs, at once. */
static enum status add_blocks(struct evm_index *index, const struct place *place,
                              const struct evm_block *blocks, size_t count, struct error *error)
{
    struct evm_logs logs;
    size_t next = 0;
    enum status status;

    TRY_OUT(evm_logs_of(index->rpc, &logs, blocks, count, index->contracts, index->contract_count,
                        error));
    TRY_OUT(database_begin(index->sql, error));
    status = stand_still_at(index, place, error);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        struct event_log_block kept = log_block_of(&blocks[i]);

        status = event_log_add_block(index->sql, &kept, error);
        for (; next < logs.count && logs.blocks[next] == i && status == STATUS_OK; next++) {
            status =
                event_log_add_log(index->sql, &kept, logs.places[next], &logs.logs[next], error);
        }
    }
    status = database_end(index->sql, status, error);
out:
    evm_logs_release(&logs);
    return status;
}

/* In one request where that is possible. */
static enum status read_blocks(struct evm_index *index, struct evm_block *blocks, uint64_t first,
                               size_t count, struct error *error)
{
    enum status status;

    if (index->range >= count) {
        return evm_blocks_at(index->rpc, blocks, first, count, error);
    }
    status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        status = evm_block_at(index->rpc, &blocks[i], first + i, error);
    }
    return status;
}

static enum status rewind_to(struct evm_index *index, uint64_t height, struct error *error)
{
    enum status status;

    TRY(database_begin(index->sql, error));
    status = event_log_rewind(index->sql, height, error);
    return database_end(index->sql, status, error);
}

/* Goes back to the highest kept block that is still part of the chain. */
static enum status drop_orphans(struct evm_index *index, struct error *error)
{
    struct event_log_block top;
    struct evm_block now;
    uint64_t keep;
    enum status status = event_log_top(index->sql, &top, error);

    if (status != STATUS_OK) {
        return status == STATUS_NOT_FOUND ? STATUS_OK : status;
    }
    keep = top.height;
    for (;;) {
        struct event_log_block kept;

        status = event_log_block_at(index->sql, &kept, keep, error);
        if (status == STATUS_NOT_FOUND) {
            break; /* nothing is left: begin again */
        }
        if (status == STATUS_OK) {
            status = evm_block_at(index->rpc, &now, keep, error);
        }
        if (status != STATUS_OK && status != STATUS_NOT_FOUND) {
            return status;
        }
        if (status == STATUS_OK && hash32_equal(&kept.hash, &now.hash)) {
            break;
        }
        if (keep == 0) {
            break;
        }
        keep--;
    }
    return keep == top.height ? STATUS_OK : rewind_to(index, keep, error);
}

/* Are the logs of this block those that are kept? A block that is another now is left to the next
 * round. */
static enum status compare_block(bool *same, struct evm_index *index, const struct evm_block *block,
                                 struct error *error)
{
    struct event_log_block kept;
    struct evm_logs logs;
    struct hash32 ours;
    struct hash32 theirs = {{0}};
    enum status status = event_log_block_at(index->sql, &kept, block->height, error);

    *same = true;
    if (status != STATUS_OK || !hash32_equal(&kept.hash, &block->hash)) {
        return status == STATUS_NOT_FOUND ? STATUS_OK : status;
    }
    status =
        evm_logs_of(index->rpc, &logs, block, 1, index->contracts, index->contract_count, error);
    if (status == STATUS_OK) {
        theirs = event_log_hash_of(logs.logs, logs.places, logs.count);
    }
    evm_logs_release(&logs);
    TRY(status);
    TRY(event_log_logs_hash(index->sql, &ours, &kept, error));
    *same = hash32_equal(&ours, &theirs);
    return STATUS_OK;
}

/* Fetches the logs of the newest blocks again, in case an endpoint gave others. */
static enum status compare_again(struct evm_index *index, struct error *error)
{
    struct evm_block blocks[EVM_INDEX_AGAIN];
    struct event_log_block top;
    size_t count;
    bool same = true;
    enum status status = event_log_top(index->sql, &top, error);

    if (status != STATUS_OK) {
        return status == STATUS_NOT_FOUND ? STATUS_OK : status;
    }
    count = top.height < EVM_INDEX_AGAIN ? (size_t)top.height : EVM_INDEX_AGAIN;
    if (count == 0) {
        return STATUS_OK;
    }
    status = read_blocks(index, blocks, top.height - count + 1, count, error);
    if (status != STATUS_OK) {
        return status == STATUS_NOT_FOUND ? STATUS_OK : status;
    }
    for (size_t i = count; i > 0; i--) {
        TRY(compare_block(&same, index, &blocks[i - 1], error));
        if (!same) {
            return rewind_to(index, blocks[i - 1].height - 1, error);
        }
    }
    return STATUS_OK;
}

static uint64_t next_height(const struct evm_index *index, const struct place *place)
{
    return place->empty ? index->first_height : place->top.height + 1;
}

/* How many blocks come next at once: more than one only where none of them is ever taken back. */
static size_t next_count(const struct evm_index *index, uint64_t first)
{
    uint64_t left = first > index->finalized ? 0 : index->finalized - first + 1;

    return left < 2 ? 1 : left < index->range ? (size_t)left : index->range;
}

/* Adds the next blocks to the event log. STATUS_NOT_FOUND: there are none yet, or they do not
 * continue it (the next round drops the orphans), or another process added them. */
static enum status take_next(struct evm_index *index, struct place *place,
                             struct evm_block blocks[EVM_BLOCKS_MAX], size_t count,
                             struct error *error)
{
    TRY(evm_blocks_at(index->rpc, blocks, next_height(index, place), count, error));
    if (!place->empty && !hash32_equal(&blocks[0].parent, &place->top.hash)) {
        return STATUS_NOT_FOUND;
    }
    TRY(add_blocks(index, place, blocks, count, error));
    place->top = log_block_of(&blocks[count - 1]);
    place->empty = false;
    return STATUS_OK;
}

/* An endpoint may refuse, or not manage, so many blocks. True: try again with fewer. */
static bool learn_range(struct evm_index *index, size_t count, enum status status)
{
    if (status == STATUS_OK) {
        if (++index->good >= RANGES_GOOD && index->range < EVM_BLOCKS_MAX) {
            index->range *= 2;
            index->good = 0;
        }
        return false;
    }
    if (status != STATUS_UNREACHABLE || count < 2) {
        return false;
    }
    index->good = 0;
    index->range = count / 2;
    return true;
}

/* Finds out up to where blocks are never taken back, if that matters. */
static void find_finalized(struct evm_index *index, const struct place *place)
{
    uint64_t deep = index->head > EVM_INDEX_DEEP ? index->head - EVM_INDEX_DEEP : 0;
    struct error unknown;

    error_init(&unknown);
    if (next_height(index, place) + 1 < deep && index->finalized + EVM_INDEX_DEEP < deep &&
        (evm_finalized(index->rpc, &index->finalized, &unknown) != STATUS_OK ||
         index->finalized > index->head)) {
        index->finalized = deep;
    }
}

static enum status catch_up(struct evm_index *index, struct evm_block blocks[EVM_BLOCKS_MAX],
                            struct error *error)
{
    time_t end_s = (time_t)(steady_ms() / 1000) + EVM_INDEX_ROUND_S;
    struct place place;
    uint32_t added = 0;
    uint32_t singles = 0;
    enum status failed = STATUS_OK;
    enum status status = find_place(index, &place, error);

    if (status != STATUS_OK) {
        return status;
    }
    find_finalized(index, &place);
    while (status == STATUS_OK && added < EVM_INDEX_BLOCKS_MAX && singles < EVM_INDEX_SINGLES_MAX &&
           next_height(index, &place) <= index->head) {
        size_t count = next_count(index, next_height(index, &place));

        if (rpc_is_stopped(index->rpc)) {
            return error_set(error, STATUS_STOPPED, "stopped while reading the ledger");
        }
        if ((time_t)(steady_ms() / 1000) > end_s) { /* the caller has a watchdog */
            return added > 0 ? STATUS_OK : failed;
        }
        status = take_next(index, &place, blocks, count, error);
        added += status == STATUS_OK ? (uint32_t)count : 0;
        singles += count == 1;
        if (learn_range(index, count, status)) {
            failed = status;
            status = STATUS_OK;
        }
    }
    if (status == STATUS_NOT_FOUND || (status == STATUS_UNREACHABLE && added > 0)) {
        return STATUS_OK;
    }
    return status;
}

enum status evm_index_work(struct evm_index *index, struct error *error)
{
    struct evm_block *blocks = calloc(EVM_BLOCKS_MAX, sizeof(*blocks));
    enum status status;

    if (blocks == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for blocks");
    }
    index->range = index->range == 0 ? EVM_BLOCKS_MAX : index->range;
    TRY_OUT(evm_head(index->rpc, &index->head, error));
    TRY_OUT(drop_orphans(index, error));
    TRY_OUT(compare_again(index, error));
    TRY_OUT(catch_up(index, blocks, error));
out:
    free(blocks);
    return status;
}
