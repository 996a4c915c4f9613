/* address.c - see address.h. */
#include "chain/codec/address.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "base/hex.h"
#include "chain/codec/keccak.h"
#include "chain/codec/rlp.h"

enum {
    DIGITS = 2 * ADDRESS_SIZE,
};

bool address_equal(const struct address *left, const struct address *right)
{
    return memcmp(left->bytes, right->bytes, ADDRESS_SIZE) == 0;
}

bool address_is_zero(const struct address *address)
{
    static const struct address zero;

    return address_equal(address, &zero);
}

static bool has_mixed_case(const char *digits)
{
    bool lower = false;
    bool upper = false;

    for (int i = 0; i < DIGITS; i++) {
        lower = lower || islower((unsigned char)digits[i]);
        upper = upper || isupper((unsigned char)digits[i]);
    }
    return lower && upper;
}

enum status address_parse(struct address *address, const char *text)
{
    struct address parsed;
    char right_spelling[ADDRESS_TEXT_SIZE];

    if (strlen(text) != ADDRESS_TEXT_SIZE - 1 || text[0] != '0' || text[1] != 'x') {
        return STATUS_BAD_FORMAT;
    }
    for (int i = 0; i < ADDRESS_SIZE; i++) {
        int high = hex_digit(text[2 + 2 * i]);
        int low = hex_digit(text[3 + 2 * i]);

        if (high < 0 || low < 0) {
            return STATUS_BAD_FORMAT;
        }
        parsed.bytes[i] = (uint8_t)(high << 4 | low);
    }
    address_print(right_spelling, &parsed);
    if (has_mixed_case(text + 2) && strcmp(text, right_spelling) != 0) {
        return STATUS_BAD_FORMAT;
    }
    *address = parsed;
    return STATUS_OK;
}

void address_print(char text[ADDRESS_TEXT_SIZE], const struct address *address)
{
    struct hash32 hash;

    text[0] = '0';
    text[1] = 'x';
    for (int i = 0; i < DIGITS; i++) {
        text[2 + i] = "0123456789abcdef"[address->bytes[i / 2] >> (i % 2 == 0 ? 4 : 0) & 0xf];
    }
    text[2 + DIGITS] = '\0';
    hash = keccak256(text + 2, DIGITS);
    for (int i = 0; i < DIGITS; i++) {
        if ((hash.bytes[i / 2] >> (i % 2 == 0 ? 4 : 0) & 0xf) >= 8) {
            text[2 + i] = (char)toupper((unsigned char)text[2 + i]);
        }
    }
}

struct address address_of_contract(const struct address *creator, uint64_t nonce)
{
    uint8_t bytes[64];
    struct byte_writer writer;
    struct hash32 hash;
    struct address result;
    size_t list;

    byte_writer_init(&writer, bytes, sizeof(bytes));
    list = rlp_list_begin(&writer);
    rlp_write_bytes(&writer, creator->bytes, ADDRESS_SIZE);
    rlp_write_u64(&writer, nonce);
    rlp_list_end(&writer, list);
    assert(!writer.overflowed);
    hash = keccak256(bytes, writer.used);
    memcpy(result.bytes, hash.bytes + HASH32_SIZE - ADDRESS_SIZE, ADDRESS_SIZE);
    return result;
}
