/* block_header.c - see block_header.h. */
#include "chain/evm/block_header.h"

#include <string.h>

#include "chain/codec/rlp.h"
#include "chain/evm/rpc_reply.h"

enum {
    ITEM_SIZE_MAX = 512, /* the bloom filter has 256 bytes */
};

enum item_kind {
    ITEM_BYTES,
    ITEM_NUMBER,
};

static const struct item {
    const char *name;
    enum item_kind kind;
    bool optional;
} items[] = {
    {"parentHash", ITEM_BYTES, false},
    {"sha3Uncles", ITEM_BYTES, false},
    {"miner", ITEM_BYTES, false},
    {"stateRoot", ITEM_BYTES, false},
    {"transactionsRoot", ITEM_BYTES, false},
    {"receiptsRoot", ITEM_BYTES, false},
    {"logsBloom", ITEM_BYTES, false},
    {"difficulty", ITEM_NUMBER, false},
    {"number", ITEM_NUMBER, false},
    {"gasLimit", ITEM_NUMBER, false},
    {"gasUsed", ITEM_NUMBER, false},
    {"timestamp", ITEM_NUMBER, false},
    {"extraData", ITEM_BYTES, false},
    {"mixHash", ITEM_BYTES, false},
    {"nonce", ITEM_BYTES, false},
    {"baseFeePerGas", ITEM_NUMBER, true},
    {"withdrawalsRoot", ITEM_BYTES, true},
    {"blobGasUsed", ITEM_NUMBER, true},
    {"excessBlobGas", ITEM_NUMBER, true},
    {"parentBeaconBlockRoot", ITEM_BYTES, true},
    {"requestsHash", ITEM_BYTES, true},
};

static enum status write_item(struct rlp_writer *writer, const struct item *item,
                              const json_t *block, struct error *error)
{
    uint8_t bytes[ITEM_SIZE_MAX];
    struct uint256 number;
    size_t size;

    if (item->kind == ITEM_NUMBER) {
        TRY(rpc_field_uint256(&number, block, item->name, error));
        rlp_write_uint256(writer, &number);
        return STATUS_OK;
    }
    TRY(rpc_value_data(bytes, sizeof(bytes), &size, json_object_get(block, item->name), item->name,
                       error));
    rlp_write_bytes(writer, bytes, size);
    return STATUS_OK;
}

enum status block_header_encode(uint8_t bytes[GAME_HEADER_MAX], size_t *size, const json_t *block,
                                struct error *error)
{
    struct rlp_writer writer;
    struct hash32 said;
    struct hash32 hash;
    size_t list;

    rlp_writer_init(&writer, bytes, GAME_HEADER_MAX);
    list = rlp_list_begin(&writer);
    for (size_t i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
        const json_t *value = json_object_get(block, items[i].name);

        if (!items[i].optional || (value != NULL && !json_is_null(value))) {
            TRY(write_item(&writer, &items[i], block, error));
        }
    }
    rlp_list_end(&writer, list);
    if (rlp_writer_finish(&writer) != STATUS_OK) {
        return error_set(error, STATUS_BAD_FORMAT, "the header of a block is too long");
    }
    *size = writer.used;
    TRY(rpc_field_hash(&said, block, "hash", error));
    hash = keccak256(bytes, *size);
    if (!hash32_equal(&hash, &said)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "the header of a block does not hash to the block's hash");
    }
    return STATUS_OK;
}
