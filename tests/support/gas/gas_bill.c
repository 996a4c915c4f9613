/* gas_bill.c - see gas_bill.h. */
#include "tests/support/gas/gas_bill.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/gas/contract_call.h"
#include "tests/support/test.h"

enum {
    PATH = 13, /* siblings in a list of about 5,000 items */
    EVIDENCE_MAX = 1 << 20,
    TRANSACTION_BYTES_MAX = 128 * 1024,
    /* EIP-2028 and EIP-7623. */
    TRANSACTION_GAS = 21000,
    ZERO_GAS = 4,
    BYTE_GAS = 16,
    ZERO_FLOOR_GAS = 10,
    BYTE_FLOOR_GAS = 40,
};

static const char *const figure_names[GAS_BILL_FIGURES] = {"transaction", "bytes", "leaves",
                                                           "rule"};

void gas_bill_open(struct gas_bill *bill)
{
    memset(bill, 0, sizeof(*bill));
    jury_open(&bill->jury);
}

void gas_bill_close(struct gas_bill *bill)
{
    jury_close(&bill->jury);
}

/* ---- measuring ------------------------------------------------------------ */

static uint64_t calldata_gas(const struct buffer *bytes, uint64_t zero, uint64_t other)
{
    uint64_t gas = 0;

    for (size_t i = 0; i < bytes->size; i++) {
        gas += bytes->data[i] == 0 ? zero : other;
    }
    return gas;
}

static uint64_t checking_gas(struct gas_bill *bill, const struct buffer *evidence)
{
    struct contract_call call;
    uint8_t *result;
    uint64_t gas;
    size_t size;

    contract_call_init(&call, "operands(bytes)");
    contract_call_word(&call, 32);
    contract_call_bytes(&call, evidence->data, evidence->size);
    result = contract_call_make(bill->jury.rpc, &size, &bill->jury.jury, &call);
    contract_call_release(&call);
    gas = contract_call_u64(result + 32);
    free(result);
    return gas;
}

void gas_bill_measure(struct gas_bill *bill, const char *name, const struct address *rules,
                      const struct shown_case *shown, const struct shown_target *target)
{
    struct gas_cost *cost = &bill->costs[bill->count++];
    struct jury_answer *answers;
    struct buffer evidence;
    uint64_t floor;

    assert_true(bill->count <= GAS_BILL_COSTS_MAX);
    buffer_init(&evidence, EVIDENCE_MAX);
    shown_case_write(&evidence, shown, target, true, PATH);
    if (evidence.size >= TRANSACTION_BYTES_MAX) {
        fail_msg("%s: %zu bytes", name, evidence.size);
    }
    jury_add(&bill->jury, evidence.data, evidence.size);
    answers = jury_hear(&bill->jury, rules);
    assert_false(answers[0].refused);
    if (!target->is_part) {
        assert_int_equal(answers[0].value, shown_case_rule(shown, target->output, target->element));
    }
    (void)snprintf(cost->name, sizeof(cost->name), "%s", name);
    cost->figures[1] = evidence.size;
    cost->figures[2] = checking_gas(bill, &evidence);
    cost->figures[3] = answers[0].gas;
    cost->figures[0] = TRANSACTION_GAS + calldata_gas(&evidence, ZERO_GAS, BYTE_GAS) +
                       cost->figures[2] + cost->figures[3];
    floor = TRANSACTION_GAS + calldata_gas(&evidence, ZERO_FLOOR_GAS, BYTE_FLOOR_GAS);
    if (cost->figures[0] < floor) {
        cost->figures[0] = floor;
    }
    free(answers);
    buffer_release(&evidence);
}

/* ---- the table ------------------------------------------------------------ */

void gas_bill_documented(uint64_t *figures, size_t count, const char *name)
{
    FILE *file = fopen("docs/GAS.md", "r");
    char wanted[80];
    char line[256];

    memset(figures, 0, count * sizeof(figures[0]));
    assert_non_null(file);
    (void)snprintf(wanted, sizeof(wanted), "| %s | ", name);
    while (fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, wanted, strlen(wanted)) == 0) {
            char *at = line + strlen(wanted);

            for (size_t i = 0; i < count && *at != '\0'; i++) {
                figures[i] = strtoull(at, &at, 10);
                at += strspn(at, " |\n");
            }
        }
    }
    (void)fclose(file);
}

void gas_bill_compare(const struct gas_bill *bill)
{
    const bool writing = getenv("LOCKSTEP_WRITE_GAS") != NULL;

    for (size_t i = 0; i < bill->count; i++) {
        const struct gas_cost *cost = &bill->costs[i];
        uint64_t figures[GAS_BILL_FIGURES];

        if (writing) {
            print_message(
                "| %s | %llu | %llu | %llu | %llu |\n", cost->name,
                (unsigned long long)cost->figures[0], (unsigned long long)cost->figures[1],
                (unsigned long long)cost->figures[2], (unsigned long long)cost->figures[3]);
            continue;
        }
        gas_bill_documented(figures, GAS_BILL_FIGURES, cost->name);
        for (int f = 0; f < GAS_BILL_FIGURES; f++) {
            if (10 * cost->figures[f] > 11 * figures[f]) {
                fail_msg("%s: %s is %llu, docs/GAS.md says %llu", cost->name, figure_names[f],
                         (unsigned long long)cost->figures[f], (unsigned long long)figures[f]);
            }
        }
    }
}

uint64_t gas_bill_transaction(const struct gas_bill *bill, const char *name)
{
    for (size_t i = 0; i < bill->count; i++) {
        if (strcmp(bill->costs[i].name, name) == 0) {
            return bill->costs[i].figures[0];
        }
    }
    fail_msg("%s was not measured", name);
    return 0;
}
