/* made_block.c - see made_block.h. */
#include "tests/support/chain/made_block.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "chain/codec/hex_data.h"
#include "chain/codec/rlp.h"
#include "chain/evm/header/bloom.h"

enum {
    NUMBER = 0, /* in place of a size in bytes */
};

/* The items in the order of the header; value is the last byte of one that is not empty. */
static const struct {
    const char *name;
    uint16_t size;
    uint64_t value;
} items[] = {
    {"parentHash", 32, 0},
    {"sha3Uncles", 32, 1},
    {"miner", 20, 2},
    {"stateRoot", 32, 3},
    {"transactionsRoot", 32, 4},
    {"receiptsRoot", 32, 5},
    {"logsBloom", BLOOM_SIZE, 0},
    {"difficulty", NUMBER, 0},
    {"number", NUMBER, 0},
    {"gasLimit", NUMBER, 30000000},
    {"gasUsed", NUMBER, 0},
    {"timestamp", NUMBER, 0},
    {"extraData", 3, 6},
    {"mixHash", 32, 7},
    {"nonce", 8, 0},
    {"baseFeePerGas", NUMBER, 7},
    {"withdrawalsRoot", 32, 8},
    {"blobGasUsed", NUMBER, 0},
    {"excessBlobGas", NUMBER, 0},
    {"parentBeaconBlockRoot", 32, 9},
    {"requestsHash", 32, 10},
    {"blockAccessListHash", 32, 11},
    {"slotNumber", NUMBER, 12},
};

static void put_number(json_t *json, struct byte_writer *writer, const char *name, uint64_t value)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "0x%llx", (unsigned long long)value);
    (void)json_object_set_new(json, name, json_string(text));
    rlp_write_u64(writer, value);
}

static void put_bytes(json_t *json, struct byte_writer *writer, const char *name,
                      const uint8_t *bytes, size_t size)
{
    char text[HEX_DATA_SIZE(BLOOM_SIZE)];

    hex_write(text, bytes, size, true);
    (void)json_object_set_new(json, name, json_string(text));
    rlp_write_bytes(writer, bytes, size);
}

static void put_item(json_t *json, struct byte_writer *writer, const struct made_block *block,
                     size_t at)
{
    uint8_t bytes[BLOOM_SIZE] = {0};
    struct bloom bloom = {{0}};

    if (items[at].size == NUMBER) {
        uint64_t value = strcmp(items[at].name, "number") == 0      ? block->height
                         : strcmp(items[at].name, "timestamp") == 0 ? block->time_s
                                                                    : items[at].value;

        put_number(json, writer, items[at].name, value);
        return;
    }
    if (at == 0) {
        memcpy(bytes, block->parent.bytes, HASH32_SIZE);
    } else if (items[at].size == BLOOM_SIZE && block->address != NULL) {
        struct bloom_item item = bloom_item_of(block->address->bytes, ADDRESS_SIZE);

        bloom_add(&bloom, &item);
        for (uint32_t i = 0; i < block->topic_count; i++) {
            item = bloom_item_of(block->topics[i].bytes, HASH32_SIZE);
            bloom_add(&bloom, &item);
        }
        memcpy(bytes, bloom.bytes, BLOOM_SIZE);
    } else {
        bytes[items[at].size - 1] = (uint8_t)items[at].value;
    }
    put_bytes(json, writer, items[at].name, bytes, items[at].size);
}

json_t *made_block(const struct made_block *block, struct hash32 *hash,
                   char raw[2 * GAME_HEADER_MAX + 3])
{
    uint8_t bytes[GAME_HEADER_MAX];
    char text[HEX_DATA_SIZE(HASH32_SIZE)];
    struct byte_writer writer;
    json_t *json = json_object();
    enum status status;
    size_t list;

    byte_writer_init(&writer, bytes, sizeof(bytes));
    list = rlp_list_begin(&writer);
    for (size_t i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
        put_item(json, &writer, block, i);
    }
    if (block->stranger != NULL) {
        put_number(json, &writer, block->stranger, block->height + 1);
    }
    rlp_list_end(&writer, list);
    status = byte_writer_finish(&writer);
    assert(status == STATUS_OK);
    (void)status;
    *hash = keccak256(bytes, writer.used);
    hex_write(text, hash->bytes, HASH32_SIZE, true);
    (void)json_object_set_new(json, "hash", json_string(text));
    if (raw != NULL) {
        hex_write(raw, bytes, writer.used, true);
    }
    return json;
}
