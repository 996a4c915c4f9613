/* fields.c - see fields.h. */
#include "chain/game/fields.h"

#include <assert.h>
#include <string.h>

#include "chain/game/game.h"

enum {
    HEADER_WORDS = (GAME_JOB_HEADER_SIZE + ABI_WORD_SIZE - 1) / ABI_WORD_SIZE,
};

static bool is_of_any_length(enum field_type type)
{
    return type == FIELD_PATH || type == FIELD_BYTES;
}

/* ---- one value in words ------------------------------------------------------- */

static void encode_header(struct abi_writer *writer, const uint8_t *from)
{
    struct hash32 words[HEADER_WORDS] = {{{0}}};

    memcpy(words, from, GAME_JOB_HEADER_SIZE);
    for (size_t i = 0; i < HEADER_WORDS; i++) {
        abi_put_hash(writer, &words[i]);
    }
}

static enum status decode_header(struct abi_reader *reader, uint8_t *to)
{
    static const uint8_t zeros[HEADER_WORDS * ABI_WORD_SIZE - GAME_JOB_HEADER_SIZE];
    struct hash32 words[HEADER_WORDS];

    for (size_t i = 0; i < HEADER_WORDS; i++) {
        enum status status = abi_get_hash(reader, &words[i]);

        if (status != STATUS_OK) {
            return status;
        }
    }
    memcpy(to, words, GAME_JOB_HEADER_SIZE);
    return memcmp((const uint8_t *)words + GAME_JOB_HEADER_SIZE, zeros, sizeof(zeros)) == 0
               ? STATUS_OK
               : STATUS_BAD_FORMAT;
}

static void encode(struct abi_writer *writer, const uint8_t *from, enum field_type type)
{
    struct hash32 hash;
    struct address address;
    struct uint256 wide;
    uint64_t number;
    uint32_t narrow;
    wei amount;
    bool flag;

    switch (type) {
    case FIELD_BYTES32:
        memcpy(&hash, from, sizeof(hash));
        abi_put_hash(writer, &hash);
        break;
    case FIELD_ADDRESS:
        memcpy(&address, from, sizeof(address));
        abi_put_address(writer, &address);
        break;
    case FIELD_U32:
        memcpy(&narrow, from, sizeof(narrow));
        abi_put_u64(writer, narrow);
        break;
    case FIELD_U64:
        memcpy(&number, from, sizeof(number));
        abi_put_u64(writer, number);
        break;
    case FIELD_WEI:
        memcpy(&amount, from, sizeof(amount));
        wide = wei_to_uint256(amount);
        abi_put_uint256(writer, &wide);
        break;
    case FIELD_BOOL:
        memcpy(&flag, from, sizeof(flag));
        abi_put_bool(writer, flag);
        break;
    case FIELD_JOB_HEADER:
        encode_header(writer, from);
        break;
    case FIELD_PATH:
    case FIELD_BYTES:
        assert(!"a value of any length is no word");
        break;
    }
}

static enum status decode(struct abi_reader *reader, uint8_t *to, enum field_type type)
{
    struct hash32 hash;
    struct address address;
    struct uint256 wide;
    uint64_t number;
    uint32_t narrow;
    wei amount;
    bool flag;
    enum status status = STATUS_BAD_FORMAT;

    switch (type) {
    case FIELD_BYTES32:
        if ((status = abi_get_hash(reader, &hash)) == STATUS_OK) {
            memcpy(to, &hash, sizeof(hash));
        }
        break;
    case FIELD_ADDRESS:
        if ((status = abi_get_address(reader, &address)) == STATUS_OK) {
            memcpy(to, &address, sizeof(address));
        }
        break;
    case FIELD_U32:
        if ((status = abi_get_u32(reader, &narrow)) == STATUS_OK) {
            memcpy(to, &narrow, sizeof(narrow));
        }
        break;
    case FIELD_U64:
        if ((status = abi_get_u64(reader, &number)) == STATUS_OK) {
            memcpy(to, &number, sizeof(number));
        }
        break;
    case FIELD_WEI:
        if ((status = abi_get_uint256(reader, &wide)) != STATUS_OK) {
            break;
        }
        if (!wei_from_uint256(&amount, &wide)) {
            return STATUS_BAD_FORMAT;
        }
        memcpy(to, &amount, sizeof(amount));
        break;
    case FIELD_BOOL:
        if ((status = abi_get_bool(reader, &flag)) == STATUS_OK) {
            memcpy(to, &flag, sizeof(flag));
        }
        break;
    case FIELD_JOB_HEADER:
        status = decode_header(reader, to);
        break;
    case FIELD_PATH:
    case FIELD_BYTES:
        assert(!"a value of any length is no word");
        break;
    }
    return status;
}

/* ---- values of any length ------------------------------------------------------- */

static size_t size_behind(const uint8_t *from, enum field_type type)
{
    struct merkle_path path;
    struct game_bytes bytes;

    if (type == FIELD_PATH) {
        memcpy(&path, from, sizeof(path));
        return ABI_WORD_SIZE + (size_t)path.sibling_count * DIGEST_SIZE;
    }
    memcpy(&bytes, from, sizeof(bytes));
    return ABI_WORD_SIZE + (bytes.size + ABI_WORD_SIZE - 1) / ABI_WORD_SIZE * ABI_WORD_SIZE;
}

static void encode_behind(struct abi_writer *writer, const uint8_t *from, enum field_type type)
{
    struct merkle_path path;
    struct game_bytes bytes;

    if (type == FIELD_BYTES) {
        memcpy(&bytes, from, sizeof(bytes));
        abi_put_blob(writer, bytes.bytes, bytes.size);
        return;
    }
    memcpy(&path, from, sizeof(path));
    assert(path.sibling_count <= MERKLE_DEPTH_MAX);
    abi_put_u64(writer, path.sibling_count);
    for (uint32_t i = 0; i < path.sibling_count; i++) {
        struct hash32 sibling;

        memcpy(sibling.bytes, path.siblings[i].bytes, HASH32_SIZE);
        abi_put_hash(writer, &sibling);
    }
}

static enum status decode_path(struct abi_reader *reader, uint8_t *to)
{
    struct merkle_path path = {0};
    enum status status = abi_get_u32(reader, &path.sibling_count);

    if (status == STATUS_OK && path.sibling_count > MERKLE_DEPTH_MAX) {
        status = STATUS_BAD_FORMAT;
    }
    for (uint32_t i = 0; i < path.sibling_count && status == STATUS_OK; i++) {
        struct hash32 sibling;

        status = abi_get_hash(reader, &sibling);
        if (status == STATUS_OK) {
            memcpy(path.siblings[i].bytes, sibling.bytes, DIGEST_SIZE);
        }
    }
    memcpy(to, &path, sizeof(path));
    return status;
}

static enum status decode_bytes(struct abi_reader *reader, uint8_t *to)
{
    static const uint8_t zeros[ABI_WORD_SIZE];
    struct game_bytes bytes;
    uint64_t size;
    size_t padding;
    enum status status = abi_get_u64(reader, &size);

    if (status != STATUS_OK || size > reader->size - reader->at) {
        return STATUS_BAD_FORMAT;
    }
    bytes = (struct game_bytes){reader->bytes + reader->at, (size_t)size};
    padding = (ABI_WORD_SIZE - bytes.size % ABI_WORD_SIZE) % ABI_WORD_SIZE;
    reader->at += bytes.size;
    if (padding > reader->size - reader->at ||
        memcmp(reader->bytes + reader->at, zeros, padding) != 0) {
        return STATUS_BAD_FORMAT;
    }
    reader->at += padding;
    memcpy(to, &bytes, sizeof(bytes));
    return STATUS_OK;
}

/* ---- tables ------------------------------------------------------------------- */

size_t fields_size(const void *from, const struct field *fields, size_t field_count)
{
    size_t size = 0;

    for (size_t i = 0; i < field_count; i++) {
        enum field_type type = (enum field_type)fields[i].type;

        size += type == FIELD_JOB_HEADER ? (size_t)HEADER_WORDS * ABI_WORD_SIZE : ABI_WORD_SIZE;
        if (is_of_any_length(type)) {
            size += size_behind((const uint8_t *)from + fields[i].offset, type);
        }
    }
    return size;
}

void fields_encode(struct abi_writer *writer, const void *from, const struct field *fields,
                   size_t field_count)
{
    size_t base = writer->used;
    size_t places[FIELDS_OF_ANY_LENGTH_MAX];
    size_t count = 0;

    for (size_t i = 0; i < field_count; i++) {
        enum field_type type = (enum field_type)fields[i].type;

        if (is_of_any_length(type)) {
            assert(count < FIELDS_OF_ANY_LENGTH_MAX);
            places[count++] = abi_put_offset(writer);
        } else {
            encode(writer, (const uint8_t *)from + fields[i].offset, type);
        }
    }
    count = 0;
    for (size_t i = 0; i < field_count; i++) {
        enum field_type type = (enum field_type)fields[i].type;

        if (is_of_any_length(type)) {
            abi_set_offset(writer, places[count++], base);
            encode_behind(writer, (const uint8_t *)from + fields[i].offset, type);
        }
    }
}

enum status fields_decode(struct abi_reader *reader, void *to, const struct field *fields,
                          size_t field_count)
{
    size_t base = reader->at;
    uint64_t offsets[FIELDS_OF_ANY_LENGTH_MAX];
    size_t count = 0;
    enum status status = STATUS_OK;

    for (size_t i = 0; i < field_count && status == STATUS_OK; i++) {
        enum field_type type = (enum field_type)fields[i].type;

        if (is_of_any_length(type)) {
            assert(count < FIELDS_OF_ANY_LENGTH_MAX);
            status = abi_get_u64(reader, &offsets[count++]);
        } else {
            status = decode(reader, (uint8_t *)to + fields[i].offset, type);
        }
    }
    count = 0;
    for (size_t i = 0; i < field_count && status == STATUS_OK; i++) {
        uint8_t *value = (uint8_t *)to + fields[i].offset;
        enum field_type type = (enum field_type)fields[i].type;

        if (!is_of_any_length(type)) {
            continue;
        }
        if (offsets[count++] != reader->at - base) {
            return STATUS_BAD_FORMAT;
        }
        status = type == FIELD_PATH ? decode_path(reader, value) : decode_bytes(reader, value);
    }
    return status;
}
