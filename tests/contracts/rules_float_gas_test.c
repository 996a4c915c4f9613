/*
 * Goal: the float operations of the contracts, and float rules on elements of a GPT-2 124M step,
 * cost no more gas than documented, and no conviction by one of them more than it may.
 * Method: the mean and the most of an operation over ordinary and over hostile operands; evidence
 * with real proofs for tensors of those shapes, and a bill of it (gas_bill.h). All is compared with
 * docs/GAS.md; LOCKSTEP_WRITE_GAS=1 prints the tables that should stand there.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/contracts/calculator_code.h"
#include "tests/support/gas/calculator.h"
#include "tests/support/gas/gas_bill.h"
#include "tests/support/gas/gas_shapes.h"

enum {
    ORDINARY = 40,
    HOSTILE = 160,
    MOST = 6000000,
};

/* ---- operations ----------------------------------------------------------- */

/* Both signs, exponents around 1. */
static uint32_t ordinary(uint64_t *seed)
{
    uint64_t random = test_random(seed);

    return (uint32_t)(random >> 32 & UINT32_C(0x807fffff)) | (uint32_t)(124 + random % 6) << 23;
}

static struct float_operands ordinary_operands(uint64_t *seed, enum float_operation operation)
{
    struct float_operands made = {ordinary(seed), ordinary(seed), ordinary(seed)};

    if (operation == FLOAT_SQRT || operation == FLOAT_LOG) {
        made.a &= UINT32_C(0x7fffffff);
    } else if (operation == FLOAT_FROM_INTEGER || operation == FLOAT_TO_INTEGER) {
        made = float_operands_make(seed, operation);
    }
    return made;
}

static void test_operations_cost_what_is_documented(void **state)
{
    const bool writing = getenv("LOCKSTEP_WRITE_GAS") != NULL;
    struct anvil *anvil = anvil_start(NULL);
    struct rpc *rpc = anvil_rpc(anvil);
    struct address calculator = anvil_deploy(rpc, 0, CALCULATOR_CODE, NULL, "0x0");

    (void)state;
    for (enum float_operation i = 0; i < FLOAT_OPERATIONS; i++) {
        uint64_t seed = 1 + i;
        uint64_t gas[2] = {0}; /* the mean of ordinary ones, the most */
        uint64_t figures[2];
        char name[32]; /* in backticks: rules have the same names */

        (void)snprintf(name, sizeof(name), "`%s`", float_operation_names[i]);
        for (int n = 0; n < ORDINARY; n++) {
            gas[0] += calculator_gas(rpc, &calculator, i, ordinary_operands(&seed, i));
        }
        gas[0] /= ORDINARY;
        for (int n = 0; n < HOSTILE; n++) {
            uint64_t used = calculator_gas(rpc, &calculator, i, float_operands_make(&seed, i));

            gas[1] = used > gas[1] ? used : gas[1];
        }
        if (writing) {
            print_message("| %s | %llu | %llu |\n", name, (unsigned long long)gas[0],
                          (unsigned long long)gas[1]);
            continue;
        }
        gas_bill_documented(figures, 2, name);
        if (10 * gas[0] > 11 * figures[0] || 10 * gas[1] > 11 * figures[1]) {
            fail_msg("%s costs %llu gas and %llu at the most; docs/GAS.md says %llu and %llu", name,
                     (unsigned long long)gas[0], (unsigned long long)gas[1],
                     (unsigned long long)figures[0], (unsigned long long)figures[1]);
        }
    }
    rpc_free(rpc);
    anvil_stop(anvil);
}

/* ---- rules ---------------------------------------------------------------- */

struct bill {
    struct gas_bill gas;
    struct jury_rules contracts;
};

static void measure(void *context, const char *name, const struct shown_case *shown,
                    const struct shown_target *target)
{
    struct bill *bill = context;

    gas_bill_measure(&bill->gas, name, jury_rules_of_op(&bill->contracts, &shown->op), shown,
                     target);
}

static void test_rules_cost_what_is_documented_and_a_conviction_what_it_may(void **state)
{
    struct bill bill;
    struct gas_shapes shapes = {.visit = measure, .context = &bill, .seed = 1};
    uint64_t claim;
    uint64_t answer;

    (void)state;
    gas_bill_open(&bill.gas);
    jury_deploy_rules(&bill.gas.jury, &bill.contracts);
    gas_shapes_of_floats(&shapes);
    gas_bill_compare(&bill.gas);

    gas_bill_documented(&claim, 1, "claim");
    gas_bill_documented(&answer, 1, "answer");
    for (size_t i = 0; i < bill.gas.count; i++) {
        assert_true(claim + answer + bill.gas.costs[i].figures[0] < MOST);
    }
    gas_bill_close(&bill.gas);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operations_cost_what_is_documented),
        cmocka_unit_test(test_rules_cost_what_is_documented_and_a_conviction_what_it_may),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
