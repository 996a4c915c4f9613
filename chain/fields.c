/* fields.c - see fields.h. */
#include "chain/fields.h"

#include <string.h>

#include "chain/wei.h"

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
    }
}

void fields_encode(struct abi_writer *writer, const void *from, const struct field *fields,
                   size_t field_count)
{
    for (size_t i = 0; i < field_count; i++) {
        encode(writer, (const uint8_t *)from + fields[i].offset, (enum field_type)fields[i].type);
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
    }
    return status;
}

enum status fields_decode(struct abi_reader *reader, void *to, const struct field *fields,
                          size_t field_count)
{
    for (size_t i = 0; i < field_count; i++) {
        enum status status =
            decode(reader, (uint8_t *)to + fields[i].offset, (enum field_type)fields[i].type);

        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}
