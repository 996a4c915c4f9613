/* fields.c - see fields.h. */
#include "chain/game/fields.h"

#include <assert.h>
#include <string.h>

#include "chain/game/game.h"

enum {
    HEADER_WORDS = (GAME_JOB_HEADER_SIZE + ABI_WORD_SIZE - 1) / ABI_WORD_SIZE,
};

/* Words of a value in the head of its tuple; 0: it is of any length, and lies behind the head. */
static size_t words_of(const struct field *field)
{
    size_t count = 0;

    switch ((enum field_type)field->type) {
    case FIELD_PATH:
    case FIELD_HASHES:
    case FIELD_BYTES:
        return 0;
    case FIELD_TUPLE:
        for (size_t i = 0; i < field->parts->count; i++) {
            size_t words = words_of(&field->parts->fields[i]);

            if (words == 0) {
                return 0;
            }
            count += words;
        }
        return count;
    case FIELD_JOB_HEADER:
        return HEADER_WORDS;
    case FIELD_BYTES32:
    case FIELD_ADDRESS:
    case FIELD_U32:
    case FIELD_U64:
    case FIELD_WEI:
    case FIELD_BOOL:
    case FIELD_LEAVES:
        break;
    }
    return 1;
}

static bool is_of_any_length(const struct field *field)
{
    return words_of(field) == 0;
}

/* ---- one value in words ------------------------------------------------------- */

static void put_words(struct byte_writer *writer, const uint8_t *from, size_t count)
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

static void encode_header(struct byte_writer *writer, const uint8_t *from)
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

static void encode_leaves(struct byte_writer *writer, const uint8_t *from)
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

union word {
    struct hash32 hash;
    struct address address;
    struct uint256 wide;
    uint64_t number;
    uint32_t narrow;
    bool flag;
};

static void encode_field(struct byte_writer *writer, const uint8_t *from, const struct field *field)
{
    union word word;
    wei amount;

    /* Copied, never cast: the table knows a member by its place, not by its type. */
    switch ((enum field_type)field->type) {
    case FIELD_BYTES32:
        memcpy(&word.hash, from, sizeof(word.hash));
        abi_put_hash(writer, &word.hash);
        break;
    case FIELD_ADDRESS:
        memcpy(&word.address, from, sizeof(word.address));
        abi_put_address(writer, &word.address);
        break;
    case FIELD_U32:
        memcpy(&word.narrow, from, sizeof(word.narrow));
        abi_put_u64(writer, word.narrow);
        break;
    case FIELD_U64:
        memcpy(&word.number, from, sizeof(word.number));
        abi_put_u64(writer, word.number);
        break;
    case FIELD_WEI:
        memcpy(&amount, from, sizeof(amount));
        word.wide = wei_to_uint256(amount);
        abi_put_uint256(writer, &word.wide);
        break;
    case FIELD_BOOL:
        memcpy(&word.flag, from, sizeof(word.flag));
        abi_put_bool(writer, word.flag);
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
    union word word;
    wei amount;
    enum status status = STATUS_BAD_FORMAT;

    switch ((enum field_type)field->type) {
    case FIELD_BYTES32:
        if ((status = abi_get_hash(reader, &word.hash)) == STATUS_OK) {
            memcpy(to, &word.hash, sizeof(word.hash));
        }
        break;
    case FIELD_ADDRESS:
        if ((status = abi_get_address(reader, &word.address)) == STATUS_OK) {
            memcpy(to, &word.address, sizeof(word.address));
        }
        break;
    case FIELD_U32:
        if ((status = abi_get_u32(reader, &word.narrow)) != STATUS_OK) {
            break;
        }
        /* A number that fits 32 bits may still be more than the field's own bound. */
        if (field->most > 0 && word.narrow > field->most) {
            return STATUS_BAD_FORMAT;
        }
        memcpy(to, &word.narrow, sizeof(word.narrow));
        break;
    case FIELD_U64:
        if ((status = abi_get_u64(reader, &word.number)) == STATUS_OK) {
            memcpy(to, &word.number, sizeof(word.number));
        }
        break;
    case FIELD_WEI:
        if ((status = abi_get_uint256(reader, &word.wide)) != STATUS_OK) {
            break;
        }
        if (!wei_from_uint256(&amount, &word.wide)) {
            return STATUS_BAD_FORMAT;
        }
        memcpy(to, &amount, sizeof(amount));
        break;
    case FIELD_BOOL:
        if ((status = abi_get_bool(reader, &word.flag)) == STATUS_OK) {
            memcpy(to, &word.flag, sizeof(word.flag));
        }
        break;
    case FIELD_JOB_HEADER:
        return decode_header(reader, to);
    case FIELD_LEAVES:
        return decode_leaves(reader, to);
    case FIELD_TUPLE:
        return fields_decode(reader, to, field->parts);
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

static void encode_behind(struct byte_writer *writer, const uint8_t *from,
                          const struct field *field)
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

size_t fields_size(const void *from, const struct fields *fields)
{
    size_t size = 0;

    for (size_t i = 0; i < fields->count; i++) {
        const struct field *field = &fields->fields[i];
        const uint8_t *value = (const uint8_t *)from + field->offset;

        size += is_of_any_length(field) ? ABI_WORD_SIZE + size_behind(value, field)
                                        : words_of(field) * ABI_WORD_SIZE;
    }
    return size;
}

void fields_encode(struct byte_writer *writer, const void *from, const struct fields *fields)
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
