/* philox.c - see philox.h. */
#include "engine/ops/philox.h"

static RULE struct philox_block philox_round(const struct philox_block *in, uint32_t key0,
                                             uint32_t key1)
{
    uint64_t product0 = (uint64_t)PHILOX_MULTIPLIER_0 * in->words[0];
    uint64_t product2 = (uint64_t)PHILOX_MULTIPLIER_2 * in->words[2];

    return (struct philox_block){{
        (uint32_t)(product2 >> 32) ^ in->words[1] ^ key0,
        (uint32_t)product2,
        (uint32_t)(product0 >> 32) ^ in->words[3] ^ key1,
        (uint32_t)product0,
    }};
}

RULE struct philox_block philox(const uint32_t counter[4], const uint32_t key[2])
{
    struct philox_block block = {{counter[0], counter[1], counter[2], counter[3]}};
    uint32_t key0 = key[0];
    uint32_t key1 = key[1];

    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        block = philox_round(&block, key0, key1);
        key0 += PHILOX_KEY_STEP_0;
        key1 += PHILOX_KEY_STEP_1;
    }
    return block;
}

RULE struct philox_block philox_draw(uint64_t element, uint32_t stream, uint32_t step,
                                     uint64_t seed)
{
    const uint32_t counter[4] = {(uint32_t)element, (uint32_t)(element >> 32), stream, step};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};

    return philox(counter, key);
}

RULE uint64_t philox_below(const struct philox_block *block, uint64_t count)
{
    /* (w1*2^32 + w0) * (c1*2^32 + c0) >> 64, by parts that cannot overflow. */
    uint64_t low = (uint32_t)count;
    uint64_t high = count >> 32;
    uint64_t carry = (block->words[0] * low) >> 32;
    uint64_t middle = block->words[1] * low + carry;

    middle += (uint32_t)(block->words[0] * high);
    carry = (middle >> 32) + ((block->words[0] * high) >> 32);
    return block->words[1] * high + carry;
}
