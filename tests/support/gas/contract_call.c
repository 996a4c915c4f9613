/* contract_call.c - see contract_call.h. */
#include "tests/support/gas/contract_call.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "chain/codec/hex_data.h"
#include "chain/codec/keccak.h"
#include "tests/support/test.h"

enum {
    SELECTOR_SIZE = 4,
    WORD_SIZE = 32,
};

static uint8_t *grow(struct contract_call *call, size_t more)
{
    if (call->size + more > call->room) {
        call->room = 2 * (call->size + more);
        call->data = realloc(call->data, call->room);
        assert(call->data != NULL);
    }
    uint8_t *place = call->data + call->size;

    memset(place, 0, more);
    call->size += more;
    return place;
}

void contract_call_init(struct contract_call *call, const char *signature)
{
    struct hash32 hash = keccak256(signature, strlen(signature));

    memset(call, 0, sizeof(*call));
    memcpy(grow(call, SELECTOR_SIZE), hash.bytes, SELECTOR_SIZE);
}

void contract_call_release(struct contract_call *call)
{
    free(call->data);
    call->data = NULL;
}

void contract_call_word(struct contract_call *call, uint64_t value)
{
    uint8_t *word = grow(call, WORD_SIZE);

    for (int i = 0; i < 8; i++) {
        word[WORD_SIZE - 1 - i] = (uint8_t)(value >> (8 * i));
    }
}

void contract_call_bytes(struct contract_call *call, const void *bytes, size_t size)
{
    contract_call_word(call, size);
    if (size > 0) {
        memcpy(grow(call, (size + WORD_SIZE - 1) / WORD_SIZE * WORD_SIZE), bytes, size);
    }
}

uint8_t *contract_call_try(struct rpc *rpc, size_t *size, const struct address *contract,
                           const struct contract_call *call)
{
    char from[ADDRESS_TEXT_SIZE];
    char to[ADDRESS_TEXT_SIZE];
    char *text = malloc(2 * call->size + 3);
    struct error error;
    json_t *result = NULL;
    json_t *params;
    uint8_t *bytes;

    assert(text != NULL);
    hex_write(text, call->data, call->size, true);
    address_print(from, &call->sender);
    address_print(to, contract);
    params = json_pack("[{s:s, s:s, s:s, s:s}, s]", "from", from, "to", to, "data", text, "gas",
                       "0xffffffffff", "latest");
    free(text);
    enum status status = rpc_call(rpc, &result, "eth_call", params, &error);

    if (status == STATUS_REFUSED && rpc_failure(rpc)->code == 3) {
        return NULL;
    }
    if (status != STATUS_OK) {
        fail_msg("eth_call: %s", error.text);
    }
    const char *hex = json_string_value(result);

    assert_non_null(hex);
    bytes = malloc(strlen(hex) / 2 + 1);
    assert(bytes != NULL);
    assert_int_equal(hex_data_read(bytes, strlen(hex) / 2, size, hex), STATUS_OK);
    json_decref(result);
    return bytes;
}

uint8_t *contract_call_make(struct rpc *rpc, size_t *size, const struct address *contract,
                            const struct contract_call *call)
{
    uint8_t *result = contract_call_try(rpc, size, contract, call);

    if (result == NULL) {
        fail_msg("the contract reverted");
    }
    return result;
}

uint64_t contract_call_u64(const uint8_t *word)
{
    uint64_t value = 0;

    for (size_t i = WORD_SIZE - 8; i < WORD_SIZE; i++) {
        value = value << 8 | word[i];
    }
    return value;
}
