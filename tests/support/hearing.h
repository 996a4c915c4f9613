/*
 * hearing.h - many pieces of evidence put to a contract of rules (chain/contracts/IRules.sol) in
 * one call, through tests/contracts/Jury.sol.
 */
#ifndef TESTS_SUPPORT_HEARING_H
#define TESTS_SUPPORT_HEARING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "chain/address.h"
#include "chain/rpc.h"

#define HEARING_CASES_MAX 4096

/* What the contract said of one piece. */
struct hearing_result {
    bool refused;
    uint32_t bits;     /* the element, or the selector of the error */
    uint64_t gas_used; /* by the contract of rules */
};

struct hearing {
    struct buffer cases;
    uint32_t count;
    struct hearing_result results[HEARING_CASES_MAX]; /* after hearing_hold() */
};

void hearing_init(struct hearing *hearing);
void hearing_release(struct hearing *hearing);

/* Adds evidence; true when it is time to hold the hearing. */
bool hearing_add(struct hearing *hearing, const uint8_t *evidence, size_t size);

/* Asks rules about all that was added, in order. The next hearing_add() begins anew. */
void hearing_hold(struct hearing *hearing, struct rpc *rpc, const struct address *jury,
                  const struct address *rules);

#endif /* TESTS_SUPPORT_HEARING_H */
