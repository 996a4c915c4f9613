/* evm_index.c - see evm_index.h. */
#include "chain/evm/evm_index.h"

#include <time.h>

#include "chain/evm/evm.h"
#include "chain/game/event_log.h"

static struct event_log_block log_block_of(const struct evm_block *block)
{
    struct event_log_block made = {block->height, block->hash, block->time_s};

    return made;
}

static enum status add_block(struct evm_index *index, const struct evm_block *block,
                             struct error *error)
{
    struct event_log_block kept = log_block_of(block);
    struct evm_logs logs;
    enum status status;

    TRY_OUT(evm_logs_of(index->rpc, &logs, &block->hash, index->contracts, index->contract_count,
                        error));
    TRY_OUT(database_begin(index->sql, error));
    status = event_log_add_block(index->sql, &kept, error);
    for (size_t i = 0; i < logs.count && status == STATUS_OK; i++) {
        status = event_log_add_log(index->sql, &kept, logs.places[i], &logs.logs[i], error);
    }
    status = database_end(index->sql, status, error);
out:
    evm_logs_release(&logs);
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

/* Fetches the logs of the newest blocks again, in case an endpoint left some out. */
static enum status compare_again(struct evm_index *index, struct error *error)
{
    struct event_log_block top;
    enum status status = event_log_top(index->sql, &top, error);

    if (status != STATUS_OK) {
        return status == STATUS_NOT_FOUND ? STATUS_OK : status;
    }
    for (uint64_t back = 0; back < EVM_INDEX_AGAIN && back < top.height; back++) {
        struct event_log_block block;
        struct evm_logs logs;
        struct hash32 ours;
        struct hash32 theirs = {{0}};

        status = event_log_block_at(index->sql, &block, top.height - back, error);
        if (status != STATUS_OK) {
            return status == STATUS_NOT_FOUND ? STATUS_OK : status;
        }
        status = evm_logs_of(index->rpc, &logs, &block.hash, index->contracts,
                             index->contract_count, error);
        if (status == STATUS_OK) {
            theirs = event_log_hash_of(logs.logs, logs.places, logs.count);
        }
        evm_logs_release(&logs);
        if (status == STATUS_OK) {
            status = event_log_logs_hash(index->sql, &ours, &block, error);
        }
        if (status != STATUS_OK) {
            return status;
        }
        if (!hash32_equal(&ours, &theirs)) {
            return rewind_to(index, block.height - 1, error);
        }
    }
    return STATUS_OK;
}

static time_t steady_s(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

/* Adds the block after *top to the event log. STATUS_NOT_FOUND: there is none yet, or it does not
 * continue *top, and the next round drops the orphans. */
static enum status take_next(struct evm_index *index, struct event_log_block *top, bool *empty,
                             struct error *error)
{
    struct evm_block block;

    TRY(evm_block_at(index->rpc, &block, *empty ? index->first_height : top->height + 1, error));
    if (!*empty && !hash32_equal(&block.parent, &top->hash)) {
        return STATUS_NOT_FOUND;
    }
    TRY(add_block(index, &block, error));
    *top = log_block_of(&block);
    *empty = false;
    return STATUS_OK;
}

static enum status catch_up(struct evm_index *index, struct error *error)
{
    time_t end_s = steady_s() + EVM_INDEX_ROUND_S;
    struct event_log_block top;
    uint32_t added = 0;
    enum status status = event_log_top(index->sql, &top, error);
    bool empty = status == STATUS_NOT_FOUND;

    if (status != STATUS_OK && !empty) {
        return status;
    }
    status = STATUS_OK;
    while (status == STATUS_OK && added < EVM_INDEX_BLOCKS_MAX &&
           (empty ? index->first_height : top.height + 1) <= index->head) {
        if (rpc_is_stopped(index->rpc)) {
            return error_set(error, STATUS_STOPPED, "stopped while reading the ledger");
        }
        if (steady_s() > end_s) { /* the caller has a watchdog */
            return STATUS_OK;
        }
        status = take_next(index, &top, &empty, error);
        added += status == STATUS_OK;
    }
    if (status == STATUS_NOT_FOUND || (status == STATUS_UNREACHABLE && added > 0)) {
        return STATUS_OK;
    }
    return status;
}

enum status evm_index_work(struct evm_index *index, struct error *error)
{
    TRY(evm_head(index->rpc, &index->head, error));
    TRY(drop_orphans(index, error));
    TRY(compare_again(index, error));
    return catch_up(index, error);
}
