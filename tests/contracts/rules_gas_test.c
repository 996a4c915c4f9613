/*
 * Goal: recomputing an element of a GPT-2 124M step on the chain costs no more than documented, and
 * a conviction stays below its limits.
 * Method: evidence with real proofs for tensors of those shapes; the gas of its bytes, of checking
 * its leaves and of the rule are compared with docs/GAS.md: more than a tenth above what stands
 * there fails. LOCKSTEP_WRITE_GAS=1 prints the table that should stand there.
 */
#include "tests/support/test.h"

#include "tests/support/gas/gas_bill.h"
#include "tests/support/gas/gas_shapes.h"

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

static void test_every_rule_costs_what_is_documented_and_a_conviction_what_it_may(void **state)
{
    enum { MOST_768 = 1000000, MOST_3072 = 2000000, MOST = 6000000 };
    uint64_t claim;
    uint64_t answer;
    struct bill bill;
    struct gas_shapes shapes = {.visit = measure, .context = &bill, .seed = 1};

    (void)state;
    gas_bill_open(&bill.gas);
    jury_deploy_rules(&bill.gas.jury, &bill.contracts);
    gas_shapes_of_integers(&shapes);
    gas_bill_compare(&bill.gas);
    gas_bill_documented(&claim, 1, "claim, K = 768");
    gas_bill_documented(&answer, 1, "answer, K = 768");

    uint64_t before = claim + answer;

    assert_true(claim > 0 && answer > 0);

    assert_true(before + gas_bill_transaction(&bill.gas, "contract, K = 768") < MOST_768);
    assert_true(before + gas_bill_transaction(&bill.gas, "contract, K = 3072") < MOST_3072);
    for (size_t i = 0; i < bill.gas.count; i++) {
        assert_true(before + bill.gas.costs[i].figures[0] < MOST);
    }
    gas_bill_close(&bill.gas);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_rule_costs_what_is_documented_and_a_conviction_what_it_may),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
