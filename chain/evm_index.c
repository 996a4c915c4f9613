/* evm_index.c - see evm_index.h. */
#include "chain/evm_index.h"

#include "chain/chronicle.h"
#include "chain/evm.h"

static struct chronicle_block as_chronicle_block(const struct evm_block *block)
{
    struct chronicle_block made = {block->height, block->hash, block->time_s};

    return made;
}

static enum status add_block(struct evm_index *index, const struct evm_block *block,
                             struct error *error)
{
    struct chronicle_block kept = as_chronicle_block(block);
    struct evm_logs logs;
    enum status status = evm_logs_of(index->rpc, &logs, &block->hash, index->contracts,
                                     index->contract_count, error);

    if (status == STATUS_OK) {
        status = sql_begin(index->sql, error);
    }
    if (status == STATUS_OK) {
        status = chronicle_add_block(index->sql, &kept, error);
        for (size_t i = 0; i < logs.count && status == STATUS_OK; i++) {
            status = chronicle_add_log(index->sql, &kept, logs.places[i], &logs.logs[i], error);
        }
        status = sql_end(index->sql, status, error);
    }
    evm_logs_release(&logs);
    return status;
}

static enum status rewind_to(struct evm_index *index, uint64_t height, struct error *error)
{
    enum status status = sql_begin(index->sql, error);

    if (status != STATUS_OK) {
        return status;
    }
    status = chronicle_rewind(index->sql, height, error);
    return sql_end(index->sql, status, error);
}

/* Goes back to the highest kept block that is still part of the chain. */
static enum status drop_orphans(struct evm_index *index, struct error *error)
{
    struct chronicle_block top;
    struct evm_block now;
    uint64_t keep;
    enum status status = chronicle_top(index->sql, &top, error);

    if (status != STATUS_OK) {
        return status == STATUS_NOT_FOUND ? STATUS_OK : status;
    }
    keep = top.height;
    for (;;) {
        struct chronicle_block kept;

        status = chronicle_block_at(index->sql, &kept, keep, error);
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

/* Were we told everything? Asks again for the newest blocks. */
static enum status compare_again(struct evm_index *index, struct error *error)
{
    struct chronicle_block top;
    enum status status = chronicle_top(index->sql, &top, error);

    if (status != STATUS_OK) {
        return status == STATUS_NOT_FOUND ? STATUS_OK : status;
    }
    for (uint64_t back = 0; back < EVM_INDEX_AGAIN && back < top.height; back++) {
        struct chronicle_block block;
        struct evm_logs logs;
        struct hash32 ours;
        struct hash32 theirs = {{0}};

        status = chronicle_block_at(index->sql, &block, top.height - back, error);
        if (status != STATUS_OK) {
            return status == STATUS_NOT_FOUND ? STATUS_OK : status;
        }
        status = evm_logs_of(index->rpc, &logs, &block.hash, index->contracts,
                             index->contract_count, error);
        if (status == STATUS_OK) {
            theirs = chronicle_hash_of(logs.logs, logs.places, logs.count);
        }
        evm_logs_release(&logs);
        if (status == STATUS_OK) {
            status = chronicle_logs_hash(index->sql, &ours, &block, error);
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

static enum status catch_up(struct evm_index *index, struct error *error)
{
    struct chronicle_block top;
    enum status status = chronicle_top(index->sql, &top, error);
    bool empty = status == STATUS_NOT_FOUND;
    uint64_t next = empty ? index->first_height : top.height + 1;

    if (status != STATUS_OK && !empty) {
        return status;
    }
    for (uint32_t i = 0; i < EVM_INDEX_BLOCKS_MAX && next <= index->head; i++, next++) {
        struct evm_block block;

        status = evm_block_at(index->rpc, &block, next, error);
        if (status != STATUS_OK) {
            return status == STATUS_NOT_FOUND ? STATUS_OK : status;
        }
        if (!empty && !hash32_equal(&block.parent, &top.hash)) {
            return STATUS_OK; /* reorganized since we looked: the next round drops the orphans */
        }
        status = add_block(index, &block, error);
        if (status != STATUS_OK) {
            return status;
        }
        top = as_chronicle_block(&block);
        empty = false;
    }
    return STATUS_OK;
}

enum status evm_index_work(struct evm_index *index, struct error *error)
{
    enum status status = evm_head(index->rpc, &index->head, error);

    if (status == STATUS_OK) {
        status = drop_orphans(index, error);
    }
    if (status == STATUS_OK) {
        status = compare_again(index, error);
    }
    if (status == STATUS_OK) {
        status = catch_up(index, error);
    }
    return status;
}
