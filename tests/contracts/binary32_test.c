/*
 * Goal: chain/contracts/Binary32.sol gives the bits that the CPU gives, for every operation.
 * Method: operands that are hard to get right (tests/support/numeric/float_operands.h), thousands
 * in one eth_call to tests/contracts/Calculator.sol; the CPU, the C library's fma and the engine's
 * own exp and log say what must come out. binary32_mutants_test shows that these operands find
 * faults.
 */
#include "tests/support/test.h"

#include <stdlib.h>

#include "tests/contracts/calculator_code.h"
#include "tests/support/game/anvil.h"
#include "tests/support/gas/calculator.h"

enum {
    FULL_COUNT = 10000000, /* of each operation, under make soak */
    SHARE_COUNT = 200000,
    SLOW_DIVISOR = 10, /* exp and log are chains of the others */
};

static uint64_t count_for(enum float_operation operation)
{
    bool slow = operation == FLOAT_EXP || operation == FLOAT_LOG;

    return test_share(FULL_COUNT, slow ? SHARE_COUNT / SLOW_DIVISOR : SHARE_COUNT);
}

static void test_every_operation_gives_the_bits_of_the_cpu(void **state)
{
    struct anvil *anvil = anvil_start(NULL);
    struct rpc *rpc = anvil_rpc(anvil);
    struct address calculator = anvil_deploy(rpc, 0, CALCULATOR_CODE, NULL, "0x0");

    (void)state;
    for (enum float_operation i = 0; i < FLOAT_OPERATIONS; i++) {
        uint64_t seed = 1 + i;
        uint64_t count = count_for(i);
        struct calculator_difference difference;

        if (calculator_differs(rpc, &difference, &calculator, i, &seed, count)) {
            fail_msg("%s(%08x, %08x, %08x) is %08x, the contract says %08x",
                     float_operation_names[i], difference.operands.a, difference.operands.b,
                     difference.operands.c, difference.expected, difference.actual);
        }
        if (test_soak_minutes() > 0) {
            print_message("%s: %llu cases\n", float_operation_names[i], (unsigned long long)count);
        }
    }
    rpc_free(rpc);
    anvil_stop(anvil);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_operation_gives_the_bits_of_the_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
