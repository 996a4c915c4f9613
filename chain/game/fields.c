/* fields.c - see fields.h. */
#include "chain/game/fields.h"

#include <assert.h>
#include <string.h>

#include "chain/game/game.h"

enum {
    HEADER_WORDS = (GAME_JOB_HEADER_SIZE + ABI_WORD_SIZE - 1) / ABI_WORD_SIZE,
};

static bool is_of_any_length(const struct field *field)
{
    switch ((enum field_type)field->type) {
    case FIELD_PATH:
    case FIELD_HASHES:
    case FIELD_BYTES:
        return true;
    case FIELD_TUPLE:
        for (size_t i = 0; i < field->parts->count; i++) {
            if (is_of_any_length(&field->parts->fields[i])) {
                return true;
            }
        }
        return false;
    case FIELD_BYTES32:
    case FIELD_ADDRESS:
    case FIELD_U32:
    case FIELD_U64:
    case FIELD_WEI:
    case FIELD_BOOL:
    case FIELD_JOB_HEADER:
    case FIELD_LEAVES:
        break;
    }
    return false;
}

/* ---- one value in words ------------------------------------------------------- */

static void put_words(struct abi_writer *writer, const uint8_t *from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct hash32 word;

        memcpy(word.bytes, from + i * HASH32_SIZE, HASH32_SIZE);
        abi_put_hash(writer, &word);
    }
}

static enum status get_words(struct abi_reader *reader, uint8_t *to, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct hash32 word;
        enum status status = abi_get_hash(reader, &word);

        if (status != STATUS_OK) {
            return status;
        }
        memcpy(to + i * HASH32_SIZE, word.bytes, HASH32_SIZE);
    }
    return STATUS_OK;
}

static void encode_header(struct abi_writer *writer, const uint8_t *from)
{
    uint8_t words[HEADER_WORDS * ABI_WORD_SIZE] = {0};

    memcpy(words, from, GAME_JOB_HEADER_SIZE);
    put_words(writer, words, HEADER_WORDS);
}

static enum status decode_header(struct abi_reader *reader, uint8_t *to)
{
    static const uint8_t zeros[HEADER_WORDS * ABI_WORD_SIZE - GAME_JOB_HEADER_SIZE];
    uint8_t words[HEADER_WORDS * ABI_WORD_SIZE];
    enum status status = get_words(reader, words, HEADER_WORDS);

    if (status != STATUS_OK) {
        return status;
    }
    memcpy(to, words, GAME_JOB_HEADER_SIZE);
    return memcmp(words + GAME_JOB_HEADER_SIZE, zeros, sizeof(zeros)) == 0 ? STATUS_OK
                                                                           : STATUS_BAD_FORMAT;
}

static void encode_leaves(struct abi_writer *writer, const uint8_t *from)
{
    struct hash32 word = {{0}};

    memcpy(word.bytes, from, sizeof(struct game_leaves));
    abi_put_hash(writer, &word);
}

static enum status decode_leaves(struct abi_reader *reader, uint8_t *to)
{
    static const uint8_t zeros[HASH32_SIZE - sizeof(struct game_leaves)];
    struct hash32 word;
    enum status status = abi_get_hash(reader, &word);

    if (status != STATUS_OK) {
        return status;
    }
    memcpy(to, word.bytes, sizeof(struct game_leaves));
    return memcmp(word.bytes + sizeof(struct game_leaves), zeros, sizeof(zeros)) == 0
               ? STATUS_OK
               : STATUS_BAD_FORMAT;
}

static void encode_field(struct abi_writer *writer, const uint8_t *from, const struct field *field)
{
    struct hash32 hash;
    struct address address;
    struct uint256 wide;
    uint64_t number;
    uint32_t narrow;
    wei amount;
    bool flag;

    /* Copied, never cast: the table knows a member by its place, not by its type. */
    switch ((enum field_type)field->type) {
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
    case FIELD_LEAVES:
        encode_leaves(writer, from);
        break;
    case FIELD_TUPLE:
        fields_encode(writer, from, field->parts);
        break;
    case FIELD_PATH:
    case FIELD_HASHES:
    case FIELD_BYTES:
        assert(!"a value of any length is no word");
        break;
    }
}

static enum status decode_field(struct abi_reader *reader, uint8_t *to, const struct field *field)
{
    struct hash32 hash;
    struct address address;
    struct uint256 wide;
    uint64_t number;
    uint32_t narrow;
    wei amount;
    bool flag;
    enum status status = STATUS_BAD_FORMAT;

    switch ((enum field_type)field->type) {
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
        if ((status = abi_get_u32(reader, &narrow)) != STATUS_OK) {
            break;
        }
        /* A number that fits 32 bits may still be more than the field's own bound. */
        if (field->most > 0 && narrow > field->most) {
            return STATUS_BAD_FORMAT;
        }
        memcpy(to, &narrow, sizeof(narrow));
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
    case FIELD_LEAVES:
        status = decode_leaves(reader, to);
        break;
    case FIELD_TUPLE:
        status = fields_decode(reader, to, field->parts);
        break;
    case FIELD_PATH:
    case FIELD_HASHES:
    case FIELD_BYTES:
        assert(!"a value of any length is no word");
        break;
    }
    return status;
}

/* ---- values of any length ------------------------------------------------------- */

static size_t size_of_hashes(uint32_t count)
{
    return ABI_WORD_SIZE + (size_t)count * HASH32_SIZE;
}

static size_t size_behind(const uint8_t *from, const struct field *field)
{
    struct merkle_path path;
    struct game_hashes hashes;
    struct game_bytes bytes;

    if (field->type == FIELD_TUPLE) {
        return fields_size(from, field->parts);
    }
    if (field->type == FIELD_PATH) {
        memcpy(&path, from, sizeof(path));
        return size_of_hashes(path.sibling_count);
    }
    if (field->type == FIELD_HASHES) {
        memcpy(&hashes, from, sizeof(hashes));
        return size_of_hashes(hashes.count);
    }
    memcpy(&bytes, from, sizeof(bytes));
    return ABI_WORD_SIZE + (bytes.size + ABI_WORD_SIZE - 1) / ABI_WORD_SIZE * ABI_WORD_SIZE;
}

static void encode_behind(struct abi_writer *writer, const uint8_t *from, const struct field *field)
{
    struct merkle_path path;
    struct game_hashes hashes;
    struct game_bytes bytes;

    if (field->type == FIELD_TUPLE) {
        fields_encode(writer, from, field->parts);
    } else if (field->type == FIELD_PATH) {
        memcpy(&path, from, sizeof(path));
        assert(path.sibling_count <= MERKLE_DEPTH_MAX);
        abi_put_u64(writer, path.sibling_count);
        put_words(writer, (const uint8_t *)path.siblings, path.sibling_count);
    } else if (field->type == FIELD_HASHES) {
        memcpy(&hashes, from, sizeof(hashes));
        abi_put_u64(writer, hashes.count);
        put_words(writer, (const uint8_t *)hashes.hashes, hashes.count);
    } else {
        memcpy(&bytes, from, sizeof(bytes));
        abi_put_blob(writer, bytes.bytes, bytes.size);
    }
}

static enum status decode_path(struct abi_reader *reader, uint8_t *to)
{
    struct merkle_path path = {0};
    enum status status = abi_get_u32(reader, &path.sibling_count);

    if (status != STATUS_OK || path.sibling_count > MERKLE_DEPTH_MAX) {
        return STATUS_BAD_FORMAT;
    }
    status = get_words(reader, (uint8_t *)path.siblings, path.sibling_count);
    memcpy(to, &path, sizeof(path));
    return status;
}

/* A digest is bytes, so it may lie anywhere. */
static enum status decode_hashes(struct abi_reader *reader, uint8_t *to)
{
    struct game_hashes hashes;
    enum status status = abi_get_u32(reader, &hashes.count);

    if (status != STATUS_OK || hashes.count > (reader->size - reader->at) / HASH32_SIZE) {
        return STATUS_BAD_FORMAT;
    }
    hashes.hashes = (const struct digest *)(const void *)(reader->bytes + reader->at);
    reader->at += (size_t)hashes.count * HASH32_SIZE;
    memcpy(to, &hashes, sizeof(hashes));
    return STATUS_OK;
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

static enum status decode_behind(struct abi_reader *reader, uint8_t *to, const struct field *field)
{
    switch (field->type) {
    case FIELD_TUPLE:
        return fields_decode(reader, to, field->parts);
    case FIELD_PATH:
        return decode_path(reader, to);
    case FIELD_HASHES:
        return decode_hashes(reader, to);
    default:
        return decode_bytes(reader, to);
    }
}

/* ---- tables ------------------------------------------------------------------- */

static size_t size_of_words(const void *from, const struct field *field)
{
    switch ((enum field_type)field->type) {
    case FIELD_JOB_HEADER:
        return (size_t)HEADER_WORDS * ABI_WORD_SIZE;
    case FIELD_TUPLE:
        return fields_size(from, field->parts);
    case FIELD_BYTES32:
    case FIELD_ADDRESS:
    case FIELD_U32:
    case FIELD_U64:
    case FIELD_WEI:
    case FIELD_BOOL:
    case FIELD_LEAVES:
    case FIELD_PATH:
    case FIELD_HASHES:
    case FIELD_BYTES:
        break;
    }
    return ABI_WORD_SIZE;
}

size_t fields_size(const void *from, const struct fields *fields)
{
    size_t size = 0;

    for (size_t i = 0; i < fields->count; i++) {
        const struct field *field = &fields->fields[i];
        const uint8_t *value = (const uint8_t *)from + field->offset;

        size += is_of_any_length(field) ? ABI_WORD_SIZE + size_behind(value, field)
                                        : size_of_words(value, field);
    }
    return size;
}

void fields_encode(struct abi_writer *writer, const void *from, const struct fields *fields)
{
    size_t base = writer->used;
    size_t places[FIELDS_OF_ANY_LENGTH_MAX] = {0};
    size_t count = 0;

    for (size_t i = 0; i < fields->count; i++) {
        const struct field *field = &fields->fields[i];

        if (is_of_any_length(field)) {
            assert(count < FIELDS_OF_ANY_LENGTH_MAX);
            places[count++] = abi_put_offset(writer);
        } else {
            encode_field(writer, (const uint8_t *)from + field->offset, field);
        }
    }
    count = 0;
    for (size_t i = 0; i < fields->count; i++) {
        const struct field *field = &fields->fields[i];

        if (is_of_any_length(field)) {
            abi_set_offset(writer, places[count++], base);
            encode_behind(writer, (const uint8_t *)from + field->offset, field);
        }
    }
}

enum status fields_decode(struct abi_reader *reader, void *to, const struct fields *fields)
{
    size_t base = reader->at;
    uint64_t offsets[FIELDS_OF_ANY_LENGTH_MAX] = {0};
    size_t count = 0;
    enum status status = STATUS_OK;

    for (size_t i = 0; i < fields->count && status == STATUS_OK; i++) {
        const struct field *field = &fields->fields[i];

        if (is_of_any_length(field)) {
            assert(count < FIELDS_OF_ANY_LENGTH_MAX);
            status = abi_get_u64(reader, &offsets[count++]);
        } else {
            status = decode_field(reader, (uint8_t *)to + field->offset, field);
        }
    }
    count = 0;
    for (size_t i = 0; i < fields->count && status == STATUS_OK; i++) {
        const struct field *field = &fields->fields[i];

        if (!is_of_any_length(field)) {
            continue;
        }
        if (offsets[count++] != reader->at - base) {
            return STATUS_BAD_FORMAT;
        }
        status = decode_behind(reader, (uint8_t *)to + field->offset, field);
    }
    return status;
}
