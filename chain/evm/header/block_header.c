/* block_header.c - see block_header.h. */
#include "chain/evm/header/block_header.h"

#include <string.h>

#include "chain/codec/rlp.h"
#include "chain/evm/rpc/rpc_reply.h"

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
    const char *fork; /* that added it; NULL: it was always there */
} items[] = {
    {"parentHash", ITEM_BYTES, NULL},
    {"sha3Uncles", ITEM_BYTES, NULL},
    {"miner", ITEM_BYTES, NULL},
    {"stateRoot", ITEM_BYTES, NULL},
    {"transactionsRoot", ITEM_BYTES, NULL},
    {"receiptsRoot", ITEM_BYTES, NULL},
    {"logsBloom", ITEM_BYTES, NULL},
    {"difficulty", ITEM_NUMBER, NULL},
    {"number", ITEM_NUMBER, NULL},
    {"gasLimit", ITEM_NUMBER, NULL},
    {"gasUsed", ITEM_NUMBER, NULL},
    {"timestamp", ITEM_NUMBER, NULL},
    {"extraData", ITEM_BYTES, NULL},
    {"mixHash", ITEM_BYTES, NULL},
    {"nonce", ITEM_BYTES, NULL},
    {"baseFeePerGas", ITEM_NUMBER, "London"},
    {"withdrawalsRoot", ITEM_BYTES, "Shanghai"},
    {"blobGasUsed", ITEM_NUMBER, "Cancun"},
    {"excessBlobGas", ITEM_NUMBER, "Cancun"},
    {"parentBeaconBlockRoot", ITEM_BYTES, "Cancun"},
    {"requestsHash", ITEM_BYTES, "Prague"},
    {"blockAccessListHash", ITEM_BYTES, "Amsterdam"},
    {"slotNumber", ITEM_NUMBER, "Amsterdam"},
};

/* What a block has beside its header. */
static const char *const others[] = {
    "hash", "size", "totalDifficulty", "transactions", "uncles", "withdrawals", BLOCK_HEADER_RAW,
};

enum {
    ITEMS = sizeof(items) / sizeof(items[0]),
    OTHERS = sizeof(others) / sizeof(others[0]),
    LIST_SHORT = 0xc0,
    LIST_LONG = 0xf7,
};

static enum status write_item(struct byte_writer *writer, const struct item *item,
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

static bool is_there(const json_t *block, const char *name)
{
    const json_t *value = json_object_get(block, name);

    return value != NULL && !json_is_null(value);
}

/* What is inside a list that is all of the bytes. */
static bool open_list(const uint8_t **inside, size_t *inside_size, const uint8_t *bytes,
                      size_t size)
{
    size_t prefix = 1;
    size_t said = 0;

    if (size == 0 || bytes[0] < LIST_SHORT) {
        return false;
    }
    if (bytes[0] <= LIST_LONG) {
        said = bytes[0] - (size_t)LIST_SHORT;
    } else {
        prefix += bytes[0] - (size_t)LIST_LONG;
        for (size_t i = 1; i < prefix && i < size; i++) {
            said = said << 8 | bytes[i];
        }
    }
    *inside = bytes + prefix;
    *inside_size = said;
    return prefix <= size && said == size - prefix;
}

/* The newest fork whose items the block has. */
static const char *fork_of(const json_t *block)
{
    const char *fork = "the first rules";

    for (size_t i = 0; i < ITEMS; i++) {
        fork = items[i].fork != NULL && is_there(block, items[i].name) ? items[i].fork : fork;
    }
    return fork;
}

/* The first item that this program does not know; NULL: there is none. */
static const char *stranger_of(const json_t *block)
{
    void *at = json_object_iter((json_t *)block);

    for (; at != NULL; at = json_object_iter_next((json_t *)block, at)) {
        const char *name = json_object_iter_key(at);
        bool known = false;

        for (size_t i = 0; i < ITEMS; i++) {
            known = known || strcmp(name, items[i].name) == 0;
        }
        for (size_t i = 0; i < OTHERS; i++) {
            known = known || strcmp(name, others[i]) == 0;
        }
        if (!known) {
            return name;
        }
    }
    return NULL;
}

/* The items that are known, and nothing else. */
static enum status encode_known(uint8_t bytes[GAME_HEADER_MAX], size_t *size, const json_t *block,
                                struct error *error)
{
    struct byte_writer writer;
    size_t list;

    byte_writer_init(&writer, bytes, GAME_HEADER_MAX);
    list = rlp_list_begin(&writer);
    for (size_t i = 0; i < ITEMS; i++) {
        if (items[i].fork == NULL || is_there(block, items[i].name)) {
            TRY(write_item(&writer, &items[i], block, error));
        }
    }
    rlp_list_end(&writer, list);
    if (byte_writer_finish(&writer) != STATUS_OK) {
        return error_set(error, STATUS_BAD_FORMAT, "the header of a block is too long");
    }
    *size = writer.used;
    return STATUS_OK;
}

static enum status unknown_fork(const json_t *block, struct error *error)
{
    const char *stranger = stranger_of(block);

    (void)error_set(error, STATUS_BAD_FORMAT,
                    "the header of block %.20s does not hash to the block's hash: the endpoint "
                    "lies, or the chain has a fork after %s%s%.40s%s that this program does not "
                    "know, and the header's own bytes (debug_getRawHeader) are not to be had",
                    json_string_value(json_object_get(block, "number")), fork_of(block),
                    stranger == NULL ? "" : " (with '", stranger == NULL ? "" : stranger,
                    stranger == NULL ? "" : "')");
    error_advise(error,
                 "name an endpoint that serves debug_getRawHeader, or take a newer Lockstep");
    return STATUS_BAD_FORMAT;
}

/* bytes: the encoding of the known items becomes the whole header. */
static enum status take_raw(uint8_t bytes[GAME_HEADER_MAX], size_t *size, const json_t *block,
                            const struct hash32 *said, struct error *error)
{
    uint8_t raw[GAME_HEADER_MAX];
    const uint8_t *known;
    const uint8_t *whole;
    struct hash32 hash;
    size_t known_size;
    size_t whole_size;
    size_t raw_size;

    TRY(rpc_value_data(raw, sizeof(raw), &raw_size, json_object_get(block, BLOCK_HEADER_RAW),
                       "a raw header", error));
    hash = keccak256(raw, raw_size);
    if (!hash32_equal(&hash, said)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "the raw header of a block does not hash to the block's hash");
    }
    if (!open_list(&known, &known_size, bytes, *size) ||
        !open_list(&whole, &whole_size, raw, raw_size) || known_size > whole_size ||
        memcmp(known, whole, known_size) != 0) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "what the endpoint says of a block is not in the block's raw header");
    }
    memcpy(bytes, raw, raw_size);
    *size = raw_size;
    return STATUS_OK;
}

enum status block_header_encode(uint8_t bytes[GAME_HEADER_MAX], size_t *size, bool *unknown,
                                const json_t *block, struct error *error)
{
    struct hash32 said;
    struct hash32 hash;

    *unknown = false;
    TRY(encode_known(bytes, size, block, error));
    TRY(rpc_field_hash(&said, block, "hash", error));
    hash = keccak256(bytes, *size);
    if (hash32_equal(&hash, &said)) {
        return STATUS_OK;
    }
    if (!is_there(block, BLOCK_HEADER_RAW)) {
        *unknown = true;
        return unknown_fork(block, error);
    }
    return take_raw(bytes, size, block, &said, error);
}
