/* calculator.c - see calculator.h. */
#include "tests/support/gas/calculator.h"

#include <assert.h>
#include <stdlib.h>

#include "tests/support/gas/contract_call.h"
#include "tests/support/test.h"

enum {
    BATCH = 20000,
    CASE_SIZE = 12,
    PATTERN_SIZE = 4,
    RESULT_HEAD = 64, /* offset and length of the bytes */
};

static void put_pattern(uint8_t *to, uint32_t bits)
{
    for (int i = 0; i < PATTERN_SIZE; i++) {
        to[i] = (uint8_t)(bits >> (24 - 8 * i));
    }
}

static uint32_t get_pattern(const uint8_t *from)
{
    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

static bool batch_differs(struct rpc *rpc, struct calculator_difference *difference,
                          const struct address *calculator, enum float_operation operation,
                          const struct float_operands *cases, size_t count)
{
    uint8_t *packed = malloc(count * CASE_SIZE);
    struct contract_call call;
    size_t size = 0;
    bool differs = false;

    assert(packed != NULL);
    for (size_t i = 0; i < count; i++) {
        put_pattern(packed + i * CASE_SIZE, cases[i].a);
        put_pattern(packed + i * CASE_SIZE + 4, cases[i].b);
        put_pattern(packed + i * CASE_SIZE + 8, cases[i].c);
    }
    contract_call_init(&call, "run(uint256,bytes)");
    contract_call_word(&call, operation);
    contract_call_word(&call, 64);
    contract_call_bytes(&call, packed, count * CASE_SIZE);
    free(packed);
    uint8_t *result = contract_call_try(rpc, &size, calculator, &call);

    contract_call_release(&call);
    assert(result == NULL || size >= RESULT_HEAD + count * PATTERN_SIZE);
    for (size_t i = 0; i < count && !differs; i++) {
        uint32_t expected = float_operands_result(operation, cases[i]);
        uint32_t actual =
            result == NULL ? ~expected : get_pattern(result + RESULT_HEAD + i * PATTERN_SIZE);

        if (actual != expected) {
            *difference = (struct calculator_difference){
                .operands = cases[i], .expected = expected, .actual = actual, .number = i};
            differs = true;
        }
    }
    free(result);
    return differs;
}

bool calculator_differs(struct rpc *rpc, struct calculator_difference *difference,
                        const struct address *calculator, enum float_operation operation,
                        uint64_t *seed, uint64_t count)
{
    struct float_operands *cases = malloc(BATCH * sizeof(*cases));
    bool differs = false;

    assert(cases != NULL);
    for (uint64_t done = 0; done < count && !differs; done += BATCH) {
        size_t batch = count - done < BATCH ? (size_t)(count - done) : BATCH;

        for (size_t i = 0; i < batch; i++) {
            cases[i] = float_operands_make(seed, operation);
        }
        differs = batch_differs(rpc, difference, calculator, operation, cases, batch);
        difference->number += differs ? done : 0;
    }
    free(cases);
    return differs;
}

uint64_t calculator_gas(struct rpc *rpc, const struct address *calculator,
                        enum float_operation operation, struct float_operands operands)
{
    struct contract_call call;
    size_t size;
    uint8_t *result;
    uint64_t gas;

    contract_call_init(&call, "gas(uint256,uint256,uint256,uint256)");
    contract_call_word(&call, operation);
    contract_call_word(&call, operands.a);
    contract_call_word(&call, operands.b);
    contract_call_word(&call, operands.c);
    result = contract_call_make(rpc, &size, calculator, &call);
    contract_call_release(&call);
    assert(size == 64);
    gas = contract_call_u64(result);
    free(result);
    return gas;
}
