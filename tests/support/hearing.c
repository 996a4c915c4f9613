/* hearing.c - see hearing.h. */
#include "tests/support/hearing.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/contract_call.h"
#include "tests/support/test.h"

enum {
    ROOM = 64 * 1024 * 1024,
    ENOUGH = 600 * 1024, /* bytes of one call: anvil takes requests of 2 MB */
    WORD_SIZE = 32,
};

void hearing_init(struct hearing *hearing)
{
    memset(hearing, 0, sizeof(*hearing));
    buffer_init(&hearing->cases, ROOM);
}

void hearing_release(struct hearing *hearing)
{
    buffer_release(&hearing->cases);
}

bool hearing_add(struct hearing *hearing, const uint8_t *evidence, size_t size)
{
    struct buffer *cases = &hearing->cases;

    if (cases->size == 0) {
        hearing->count = 0;
    }
    assert(size < UINT32_C(1) << 24);
    buffer_add_u32(cases, (uint32_t)size); /* its first byte is 0: a whole element */
    buffer_add(cases, evidence, size);
    hearing->count++;
    return hearing->count == HEARING_CASES_MAX || cases->size > ENOUGH;
}

static uint64_t part_of_word(const uint8_t *word, size_t first, size_t size)
{
    uint64_t value = 0;

    for (size_t i = 0; i < size; i++) {
        value = value << 8 | word[first + i];
    }
    return value;
}

void hearing_hold(struct hearing *hearing, struct rpc *rpc, const struct address *jury,
                  const struct address *rules)
{
    struct contract_call call;
    size_t size;
    uint8_t *result;

    if (hearing->cases.size == 0) {
        return;
    }
    contract_call_init(&call, "hear(address,bytes)");
    contract_call_word(&call, 0);
    memcpy(call.data + call.size - ADDRESS_SIZE, rules->bytes, ADDRESS_SIZE);
    contract_call_word(&call, 2 * WORD_SIZE);
    contract_call_bytes(&call, hearing->cases.data, hearing->cases.size);
    result = contract_call_make(rpc, &size, jury, &call);
    contract_call_release(&call);
    assert(size == (2 + (size_t)hearing->count) * WORD_SIZE);
    for (uint32_t i = 0; i < hearing->count; i++) {
        const uint8_t *word = result + (2 + (size_t)i) * WORD_SIZE;

        /* Gas from bit 128 on; then a flag of failure at bit 64, and the result. */
        hearing->results[i] = (struct hearing_result){.gas_used = part_of_word(word, 8, 8),
                                                      .refused = (word[23] & 1) != 0,
                                                      .bits = (uint32_t)part_of_word(word, 28, 4)};
    }
    free(result);
    buffer_clear(&hearing->cases);
}
