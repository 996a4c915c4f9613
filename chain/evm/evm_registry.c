/* evm_registry.c - see evm_registry.h. */
#include "chain/evm/evm_registry.h"

#include <string.h>

#include "chain/codec/abi.h"
#include "chain/codec/keccak.h"

enum status evm_word(struct rpc *rpc, struct hash32 *word, const struct address *contract,
                     const uint8_t *call, size_t size, struct error *error)
{
    static const struct address nobody;
    uint8_t answer[ABI_WORD_SIZE];
    struct abi_reader reader;
    size_t answer_size;

    TRY(evm_call(rpc, answer, sizeof(answer), &answer_size, &nobody, contract, 0, call, size,
                 error));
    abi_reader_init(&reader, answer, answer_size);
    return answer_size == sizeof(answer) && abi_get_hash(&reader, word) == STATUS_OK
               ? STATUS_OK
               : error_set(error, STATUS_BAD_FORMAT, "the contract answers %zu bytes", answer_size);
}

struct address evm_registry_notary(const struct address *registry)
{
    /* A contract's address is a hash of who made it and of how many it had made: RLP. */
    uint8_t list[3 + ADDRESS_SIZE] = {0xc0 + 2 + ADDRESS_SIZE, 0x80 + ADDRESS_SIZE};
    struct address notary;
    struct hash32 hash;

    memcpy(list + 2, registry->bytes, ADDRESS_SIZE);
    list[2 + ADDRESS_SIZE] = 1;
    hash = keccak256(list, sizeof(list));
    memcpy(notary.bytes, hash.bytes + HASH32_SIZE - ADDRESS_SIZE, ADDRESS_SIZE);
    return notary;
}

enum status evm_registry_refuse(const struct address *registry, const char *why,
                                struct error *error)
{
    char address[ADDRESS_TEXT_SIZE];

    address_print(address, registry);
    (void)error_set(error, STATUS_REFUSED, "%s %s", address, why);
    error_advise(error, "another registry: 'lockstep ledger deploy' makes one; finish jobs of an "
                        "old one with the program that made it");
    return STATUS_REFUSED;
}

enum status evm_registry_part(struct rpc *rpc, struct address *part, const struct address *registry,
                              const char *getter, struct error *error)
{
    uint8_t call[ABI_SELECTOR_SIZE];
    struct byte_writer writer;
    struct abi_reader reader;
    struct hash32 word;
    enum status status;

    byte_writer_init(&writer, call, sizeof(call));
    abi_put_selector(&writer, getter);
    status = evm_word(rpc, &word, registry, call, sizeof(call), error);
    if (status == STATUS_REFUSED) {
        return evm_registry_refuse(registry, "is of another edition than this program plays",
                                   error);
    }
    abi_reader_init(&reader, word.bytes, sizeof(word.bytes));
    if (status == STATUS_BAD_FORMAT ||
        (status == STATUS_OK && abi_get_address(&reader, part) != STATUS_OK)) {
        (void)evm_registry_refuse(
            registry, "does not answer as a registry does: is the address right?", error);
        return error->status = STATUS_BAD_FORMAT;
    }
    return status;
}
