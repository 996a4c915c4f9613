/*
 * calculator.h - runs tests/contracts/Calculator.sol and reports where it differs from this
 * machine.
 */
#ifndef TESTS_SUPPORT_GAS_CALCULATOR_H
#define TESTS_SUPPORT_GAS_CALCULATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "chain/codec/address.h"
#include "chain/evm/rpc/rpc.h"
#include "tests/support/numeric/float_operands.h"

struct calculator_difference {
    struct float_operands operands;
    uint32_t expected;
    uint32_t actual;
    uint64_t number; /* of cases before it */
};

/* Tries `count` cases, in calls of many; true and the first difference where there is one. A call
 * that reverts is a difference of its first case. */
bool calculator_differs(struct rpc *rpc, struct calculator_difference *difference,
                        const struct address *calculator, enum float_operation operation,
                        uint64_t *seed, uint64_t count);

/* Gas of one operation alone. */
uint64_t calculator_gas(struct rpc *rpc, const struct address *calculator,
                        enum float_operation operation, struct float_operands operands);

#endif /* TESTS_SUPPORT_GAS_CALCULATOR_H */
