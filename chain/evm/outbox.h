/*
 * outbox.h - transactions on disk before they are sent.
 *
 * The caller names each intent; the same name again is not a second transaction. Each is signed and
 * stored before it is sent, so after a crash the same bytes are sent again, never others. A
 * transaction that stays in the pool is replaced by a dearer one, up to the user's ceiling. One
 * that a reorganization removed is sent again, also one that was deep enough to count as final. A
 * nonce that is left without a transaction, so that later ones wait for ever, gets one that does
 * nothing. One whose nonce another transaction used gets a new
 * nonce, once that is final.
 *
 * One process at a time: the file is locked. The outbox signs with one key on one chain.
 */
#ifndef CHAIN_EVM_OUTBOX_H
#define CHAIN_EVM_OUTBOX_H

#include "base/error.h"
#include "chain/codec/address.h"
#include "chain/codec/currency.h"
#include "chain/codec/keccak.h"
#include "chain/evm/outbox_depth.h"
#include "chain/evm/rpc/rpc.h"
#include "chain/keys/signer.h"

#define OUTBOX_NAME_MAX   250
#define OUTBOX_REVERT_MAX 256
#define OUTBOX_FLIGHT_MAX 64 /* transactions in the pool at once */

struct outbox_options {
    const char *path; /* of the sqlite3 file; path and ".lock" belong to the outbox */
    uint64_t chain_id;
    uint32_t depth;           /* blocks on top of a transaction's until it is final; 0: none */
    uint32_t replace_after_s; /* in the pool before it is replaced */
    struct uint256 fee_most;  /* wei per gas that the user is ready to pay */
    const struct log *log; /* learns of reorganizations that are deeper than depth; may be NULL */
};

struct outbox_status {
    enum outbox_state state;
    bool reverted;      /* of MINED and FINAL: the transaction did nothing */
    struct hash32 hash; /* of the transaction that counts */
    uint64_t height;    /* of its block */
    uint64_t nonce;
    uint32_t replacements;
    uint8_t revert[OUTBOX_REVERT_MAX]; /* why: of REFUSED, and of a reverted one */
    size_t revert_size;
    char trouble[256]; /* the last failure; empty: none */
};

struct outbox;

/* signer and rpc are borrowed until outbox_close. STATUS_REFUSED: another process has it, or the
 * file belongs to another key or chain. */
MUST_CHECK enum status outbox_open(struct outbox **outbox, const struct outbox_options *options,
                                   const struct signer *signer, struct rpc *rpc,
                                   struct error *error);
void outbox_close(struct outbox *outbox); /* NULL is fine */

/* Writes an intent to disk; from then on the transaction will be sent. The same name with the same
 * content changes nothing; with other content it is STATUS_REFUSED. But one that was refused or has
 * reverted for good is tried again, with the content given now. */
MUST_CHECK enum status outbox_add(struct outbox *outbox, const char *name, const struct address *to,
                                  wei value, const void *data, size_t data_size, uint64_t gas,
                                  struct error *error);

/* Can the account pay for a transaction of this value and gas, and for later_gas after it, at the
 * fees of now? STATUS_REFUSED, with the balance and the need, if it cannot. STATUS_OK also where
 * the fees or the balance are unknown. */
MUST_CHECK enum status outbox_check_purse(struct outbox *outbox, wei value, uint64_t gas,
                                          uint64_t later_gas, struct error *error);

/* One round: signs, sends, replaces, looks for receipts. Trouble with the chain is kept with the
 * intent and is no failure. */
MUST_CHECK enum status outbox_work(struct outbox *outbox, struct error *error);

/* Only signs and sends what waits: for urgent moves. */
MUST_CHECK enum status outbox_send(struct outbox *outbox, struct error *error);

/* How many transactions were final and then taken back, ever. */
MUST_CHECK enum status outbox_reopened(struct outbox *outbox, uint64_t *count, struct error *error);

/* STATUS_NOT_FOUND for a name that was never added. */
MUST_CHECK enum status outbox_look(struct outbox *outbox, struct outbox_status *status,
                                   const char *name, struct error *error);

#endif /* CHAIN_EVM_OUTBOX_H */
