/*
 * gas_bill.h - measures the gas of recomputing an element, and compares it with docs/GAS.md.
 *
 * A contract of rules judges evidence with real proofs; a transaction costs the gas of its bytes,
 * of checking the leaves and of the rule. A figure more than a tenth above docs/GAS.md fails the
 * test; LOCKSTEP_WRITE_GAS=1 prints the rows for that page.
 */
#ifndef TESTS_SUPPORT_GAS_GAS_BILL_H
#define TESTS_SUPPORT_GAS_GAS_BILL_H

#include "tests/support/game/jury.h"

#define GAS_BILL_FIGURES   4
#define GAS_BILL_COSTS_MAX 96

struct gas_cost {
    char name[64];
    uint64_t figures[GAS_BILL_FIGURES]; /* transaction, bytes, leaves, rule */
};

struct gas_bill {
    struct jury jury;
    struct gas_cost costs[GAS_BILL_COSTS_MAX];
    size_t count;
};

void gas_bill_open(struct gas_bill *bill); /* skips the test where there is no anvil */
void gas_bill_close(struct gas_bill *bill);

/* Measures what a transaction with this evidence costs, but for what is not about its leaves, and
 * compares the result with the C rule's. */
void gas_bill_measure(struct gas_bill *bill, const char *name, const struct address *rules,
                      const struct shown_case *shown, const struct shown_target *target);

/* Fails the test where a figure is more than a tenth above the table's; or prints the table. */
void gas_bill_compare(const struct gas_bill *bill);

/* The gas of the transaction that was measured under this name. */
uint64_t gas_bill_transaction(const struct gas_bill *bill, const char *name);

/* The first `count` figures that docs/GAS.md has for a name; zeros where it has none. */
void gas_bill_documented(uint64_t *figures, size_t count, const char *name);

#endif /* TESTS_SUPPORT_GAS_GAS_BILL_H */
