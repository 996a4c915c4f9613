/* evm_blocks.c - see evm_blocks.h. */
#include "chain/evm/evm_blocks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "chain/codec/hex_data.h"
#include "chain/evm/header/block_header.h"
#include "chain/evm/rpc/poll.h"

/* What is asked for. */
struct heights {
    uint64_t first;
    size_t count;
    bool list; /* the answer is a list */
};

static const json_t *block_of(const json_t *answer, const struct heights *heights, size_t at)
{
    return heights->list ? json_array_get(answer, at) : answer;
}

static json_t *height_params(uint64_t height)
{
    struct uint256 wide = uint256_of(height);
    char number[UINT256_HEX_SIZE];

    uint256_print_quantity(number, &wide);
    return json_pack("[s, b]", number, 0);
}

/* ---- headers whose items are not all known ------------------------------------ */

static bool needs_raw(const json_t *block)
{
    uint8_t header[GAME_HEADER_MAX];
    bool unknown = false;
    struct error why;
    size_t size;

    error_init(&why);
    return json_is_object(block) &&
           block_header_encode(header, &size, &unknown, block, &why) != STATUS_OK && unknown;
}

/* Asks for the raw headers of all blocks at once, or of one. Where the endpoint refuses that,
 * reduce_blocks() says what is missing. */
static enum status add_raw_headers(json_t **answer, struct rpc *rpc, size_t endpoint,
                                   const void *subject, struct error *error)
{
    const struct heights *heights = subject;
    json_t *params = json_array();
    json_t *raw = NULL;
    bool needed = false;
    enum status status;

    for (size_t i = 0; i < heights->count; i++) {
        json_t *height = height_params(heights->first + i);

        needed = needed || needs_raw(block_of(*answer, heights, i));
        (void)json_array_remove(height, 1);
        (void)json_array_append_new(params, height);
    }
    if (!needed) {
        json_decref(params);
        return STATUS_OK;
    }
    status = heights->list ? rpc_batch_at(rpc, endpoint, &raw, "debug_getRawHeader", params, error)
                           : rpc_call_at(rpc, endpoint, &raw, "debug_getRawHeader",
                                         json_incref(json_array_get(params, 0)), error);
    if (!heights->list) {
        json_decref(params);
    }
    for (size_t i = 0; i < heights->count && status == STATUS_OK; i++) {
        json_t *block = (json_t *)block_of(*answer, heights, i);

        if (json_is_object(block)) {
            (void)json_object_set(block, BLOCK_HEADER_RAW,
                                  heights->list ? json_array_get(raw, i) : raw);
        }
    }
    json_decref(raw);
    return status == STATUS_UNREACHABLE || status == STATUS_STOPPED ? status : STATUS_OK;
}

/* ---- blocks ------------------------------------------------------------------- */

static enum status read_block(struct evm_block *block, const json_t *answer, struct error *error)
{
    size_t size;

    TRY(rpc_field_u64(&block->height, answer, "number", error));
    TRY(rpc_field_hash(&block->hash, answer, "hash", error));
    TRY(rpc_field_hash(&block->parent, answer, "parentHash", error));
    TRY(rpc_value_data(block->bloom.bytes, BLOOM_SIZE, &size, json_object_get(answer, "logsBloom"),
                       "logsBloom", error));
    if (size != BLOOM_SIZE) {
        return error_set(error, STATUS_BAD_FORMAT, "malformed reply: logsBloom");
    }
    return rpc_field_u64(&block->time_s, answer, "timestamp", error);
}

/* The hash stands for all that we use of a block: its header has been hashed. */
static enum status check_block(struct evm_block *block, const json_t *answer, uint64_t height,
                               struct error *error)
{
    uint8_t header[GAME_HEADER_MAX];
    bool unknown;
    size_t size;

    TRY(read_block(block, answer, error));
    if (block->height != height) {
        return poll_false_reply(error, "a block of another height");
    }
    return block_header_encode(header, &size, &unknown, answer, error);
}

static enum status reduce_blocks(char **text, const json_t *answer, const void *subject,
                                 struct error *error)
{
    const struct heights *heights = subject;
    char hash[2 * HASH32_SIZE + 1];
    struct evm_block block;
    struct hash32 last = {{0}};

    for (size_t i = 0; i < heights->count; i++) {
        const json_t *one = block_of(answer, heights, i);

        if (json_is_null(one)) {
            return poll_keep_text(text, "null", error);
        }
        TRY(check_block(&block, one, heights->first + i, error));
        if (i > 0 && !hash32_equal(&block.parent, &last)) {
            return poll_false_reply(error, "a block that does not continue the one before");
        }
        last = block.hash;
    }
    hex_write(hash, last.bytes, HASH32_SIZE, false);
    return poll_keep_text(text, hash, error);
}

/* STATUS_NOT_FOUND: one of them is not there. The caller decrefs *answer. */
static enum status ask_blocks(struct rpc *rpc, json_t **answer, const struct heights *heights,
                              struct error *error)
{
    json_t *params = heights->list ? json_array() : height_params(heights->first);

    for (size_t i = 0; i < heights->count && heights->list; i++) {
        (void)json_array_append_new(params, height_params(heights->first + i));
    }
    TRY(poll_majority(rpc, answer,
                      (struct poll_query){.method = "eth_getBlockByNumber",
                                          .params = params,
                                          .reduce = reduce_blocks,
                                          .subject = heights,
                                          .complete = add_raw_headers,
                                          .batch = heights->list},
                      error));
    for (size_t i = 0; i < heights->count; i++) {
        if (json_is_null(block_of(*answer, heights, i))) {
            json_decref(*answer);
            return error_set(error, STATUS_NOT_FOUND, "there is no block %llu",
                             (unsigned long long)(heights->first + i));
        }
    }
    return STATUS_OK;
}

enum status evm_block_at(struct rpc *rpc, struct evm_block *block, uint64_t height,
                         struct error *error)
{
    const struct heights heights = {height, 1, false};
    json_t *answer;
    enum status status;

    TRY(ask_blocks(rpc, &answer, &heights, error));
    status = read_block(block, answer, error);
    json_decref(answer);
    return status;
}

enum status evm_blocks_at(struct rpc *rpc, struct evm_block *blocks, uint64_t first, size_t count,
                          struct error *error)
{
    const struct heights heights = {first, count, true};
    json_t *answer;
    enum status status = STATUS_OK;

    assert(count >= 1 && count <= EVM_BLOCKS_MAX);
    if (count == 1) {
        return evm_block_at(rpc, blocks, first, error);
    }
    TRY(ask_blocks(rpc, &answer, &heights, error));
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        status = read_block(&blocks[i], json_array_get(answer, i), error);
    }
    json_decref(answer);
    return status;
}

enum status evm_header_at(struct rpc *rpc, uint8_t header[GAME_HEADER_MAX], size_t *size,
                          uint64_t height, struct error *error)
{
    const struct heights heights = {height, 1, false};
    json_t *answer;
    bool unknown;
    enum status status;

    TRY(ask_blocks(rpc, &answer, &heights, error));
    status = block_header_encode(header, size, &unknown, answer, error);
    json_decref(answer);
    return status;
}

enum status evm_finalized(struct rpc *rpc, uint64_t *height, struct error *error)
{
    return poll_largest(rpc, height, "eth_getBlockByNumber", json_pack("[s, b]", "finalized", 0),
                        "number", error);
}
