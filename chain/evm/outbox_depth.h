/*
 * outbox_depth.h - transactions that counted as final, and the nonces that a reorganization deeper
 * than the outbox's depth left without one. For outbox.c, on its tables.
 */
#ifndef CHAIN_EVM_OUTBOX_DEPTH_H
#define CHAIN_EVM_OUTBOX_DEPTH_H

#include "base/io/database.h"
#include "chain/codec/address.h"
#include "chain/evm/rpc/rpc.h"

enum outbox_state {
    OUTBOX_WAITING = 1, /* written down; not signed */
    OUTBOX_SENT = 2,    /* signed; sent unless the program crashed in between */
    OUTBOX_MINED = 3,   /* in a block that may still be reorganized away */
    OUTBOX_FINAL = 4,   /* deep enough */
    OUTBOX_REFUSED = 5, /* the contract would refuse it; never sent */
};

/* Opens again what counts as final in a block that is no more part of the chain: *count of them.
 * They are looked for like those that may still be reorganized away. Endpoints that do not answer
 * now are asked in the next round. */
MUST_CHECK enum status outbox_depth_reopen(struct database *sql, struct rpc *rpc, uint64_t *count,
                                           struct error *error);

/* How many were opened again, ever. */
MUST_CHECK enum status outbox_depth_count(struct database *sql, uint64_t *count,
                                          struct error *error);

/* The lowest nonce that no transaction of ours has, from the account's on. */
MUST_CHECK enum status outbox_depth_nonce(struct database *sql, uint64_t *nonce,
                                          uint64_t account_nonce, struct error *error);

/* Does something of ours wait in the pool behind a nonce that nobody uses? Then the pool holds it
 * for ever. */
MUST_CHECK enum status outbox_depth_gap(struct database *sql, struct rpc *rpc, bool *gap,
                                        uint64_t account_nonce, const struct address *account,
                                        struct error *error);

#endif /* CHAIN_EVM_OUTBOX_DEPTH_H */
