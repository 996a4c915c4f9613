/*
 * store_money.h - the money of the node's account, in the node's database: for the metrics and the
 * pages, which other processes make.
 */
#ifndef VERIFIER_STORE_STORE_MONEY_H
#define VERIFIER_STORE_STORE_MONEY_H

#include "chain/money/money_book.h"
#include "verifier/store/store.h"

struct store_money {
    struct board *board;    /* of the store */
    struct money_book book; /* of one account; zeros: of none */
};

/* The book listens to the store's board, which begins again if it has read something. An account of
 * zeros has no money. Release it, before the store is closed, also where it failed. */
MUST_CHECK enum status store_money_open(struct store_money *money, struct store *store,
                                        const struct address *account, struct error *error);
void store_money_release(struct store_money *money); /* a zero-filled one is allowed */

/* Writes what has changed, once the store has taken all that the ledger tells. */
MUST_CHECK enum status store_money_follow(struct store_money *money, struct store *store,
                                          struct ledger *ledger, struct error *error);

/* STATUS_NOT_FOUND: nothing was written yet. */
MUST_CHECK enum status store_money_get(struct store *store, struct money *money,
                                       struct error *error);

#endif /* VERIFIER_STORE_STORE_MONEY_H */
