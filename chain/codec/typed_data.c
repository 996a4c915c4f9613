/* typed_data.c - see typed_data.h. */
#include "chain/codec/typed_data.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "chain/codec/abi.h"

static void add_word(struct typed_struct *typed, const uint8_t word[32])
{
    assert(typed->count < 1 + TYPED_WORDS_MAX);
    memcpy(&typed->words[32 * typed->count], word, 32);
    typed->count++;
}

void typed_struct_begin(struct typed_struct *typed, const char *type)
{
    typed->count = 0;
    typed_struct_add_text(typed, type); /* the type's hash is made as that of any text */
}

void typed_struct_add_hash(struct typed_struct *typed, const struct hash32 *hash)
{
    add_word(typed, hash->bytes);
}

void typed_struct_add_address(struct typed_struct *typed, const struct address *address)
{
    uint8_t word[32] = {0};

    memcpy(word + 32 - ADDRESS_SIZE, address->bytes, ADDRESS_SIZE);
    add_word(typed, word);
}

void typed_struct_add_uint256(struct typed_struct *typed, const struct uint256 *value)
{
    uint8_t word[32];

    uint256_to_bytes(word, value);
    add_word(typed, word);
}

void typed_struct_add_u64(struct typed_struct *typed, uint64_t value)
{
    struct uint256 wide = uint256_of(value);

    typed_struct_add_uint256(typed, &wide);
}

void typed_struct_add_text(struct typed_struct *typed, const char *text)
{
    struct hash32 hash = keccak256(text, strlen(text));

    add_word(typed, hash.bytes);
}

struct hash32 typed_struct_hash(const struct typed_struct *typed)
{
    return keccak256(typed->words, 32 * (size_t)typed->count);
}

struct hash32 typed_domain(const char *name, const char *version, const struct uint256 *chain_id,
                           const struct address *contract)
{
    struct typed_struct domain;

    typed_struct_begin(&domain, "EIP712Domain(string name,string version,uint256 chainId,"
                                "address verifyingContract)");
    typed_struct_add_text(&domain, name);
    typed_struct_add_text(&domain, version);
    typed_struct_add_uint256(&domain, chain_id);
    typed_struct_add_address(&domain, contract);
    return typed_struct_hash(&domain);
}

struct hash32 typed_message_hash(const struct hash32 *domain, const struct hash32 *message)
{
    static const uint8_t prefix[2] = {0x19, 0x01};
    struct keccak keccak;

    keccak_init(&keccak);
    keccak_add(&keccak, prefix, sizeof(prefix));
    keccak_add(&keccak, domain->bytes, HASH32_SIZE);
    keccak_add(&keccak, message->bytes, HASH32_SIZE);
    return keccak_end(&keccak);
}

struct hash32 typed_text_hash(const void *text, size_t size)
{
    char prefix[64];
    int length = snprintf(prefix, sizeof(prefix),
                          "\x19"
                          "Ethereum Signed Message:\n%zu",
                          size);
    struct keccak keccak;

    assert(length > 0 && (size_t)length < sizeof(prefix));
    keccak_init(&keccak);
    keccak_add(&keccak, prefix, (size_t)length);
    keccak_add(&keccak, text, size);
    return keccak_end(&keccak);
}
