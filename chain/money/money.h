/*
 * money.h - the money of one account on one ledger: where it lies, and what became of it.
 *
 * Both sides add up to the wei:
 *
 *     total = free + stakes + bonds + escrow + owed
 *           = brought in + earned - paid - lost - gas
 *
 * Where the registry plays for a token, gas is paid from another purse and is no part of the sum.
 */
#ifndef CHAIN_MONEY_MONEY_H
#define CHAIN_MONEY_MONEY_H

#include <stdbool.h>

#include "chain/codec/address.h"
#include "chain/codec/currency.h"

enum money_kind {
    MONEY_EARNED, /* rewards, fees, shares of stakes and bonds of others, replies */
    MONEY_PAID,   /* for what was delivered: rewards and fees of segments, queries */
    MONEY_LOST,   /* stakes and bonds, and what a void burned of an escrow */
    MONEY_GAS,    /* of the transactions that this machine sent */
};
#define MONEY_KINDS 4

#define MONEY_DAYS_MAX 62

struct money_day {
    uint64_t day; /* since 1970 */
    wei amounts[MONEY_KINDS];
};

struct money {
    struct address account;
    struct currency currency;
    wei free;   /* in the purse */
    wei stakes; /* of jobs that it solves */
    wei bonds;  /* of entries and claims, and the fees of queries without a reply yet */
    wei escrow; /* of its jobs, with the pool of their fees */
    wei owed;   /* by the registry */
    wei amounts[MONEY_KINDS];
    uint32_t day_count;
    struct money_day days[MONEY_DAYS_MAX]; /* that have any of it; the newest last */
};

const char *money_kind_name(enum money_kind kind); /* "earned" */

void money_add(struct money *money, enum money_kind kind, wei amount, uint64_t time_s);

wei money_total(const struct money *money);

/* What came from elsewhere, less what went there; false: more went there, and *amount says how
 * much more. */
bool money_brought(const struct money *money, wei *amount);

#endif /* CHAIN_MONEY_MONEY_H */
