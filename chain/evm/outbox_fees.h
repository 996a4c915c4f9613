/*
 * outbox_fees.h - what a transaction offers, within the user's ceiling, and what each has cost. For
 * outbox.c, on its tables.
 */
#ifndef CHAIN_EVM_OUTBOX_FEES_H
#define CHAIN_EVM_OUTBOX_FEES_H

#include "base/io/database.h"
#include "chain/codec/wei.h"
#include "chain/evm/evm.h"
#include "chain/keys/transaction.h"

/* tip and fee for a transaction that is sent now; within the ceiling, or STATUS_REFUSED. */
MUST_CHECK enum status outbox_fees_within(struct transaction *transaction, struct evm_fees *fees,
                                          const struct uint256 *most, struct error *error);

/* What nodes want to see in the account for the first transaction: its gas at the most that it
 * offers. Later ones count at the price of now. False: past 96 bits. */
bool outbox_fees_need(wei *need, wei value, uint64_t gas, uint64_t later_gas,
                      const struct transaction *transaction, const struct evm_fees *fees);

/* By as much as nodes want to see for a replacement. False: that is past the ceiling. */
bool outbox_fees_raise(struct uint256 *value, const struct uint256 *most);

/* The gas of each transaction that is in a block, also of one that reverted. */
#define OUTBOX_FEES_SCHEMA                                                                         \
    "CREATE TABLE IF NOT EXISTS gas (hash BLOB PRIMARY KEY, sent_s INTEGER NOT NULL,"              \
    " amount TEXT NOT NULL);"

/* Of the attempts of an intent this one is in a block; hash NULL: none is any more. */
MUST_CHECK enum status outbox_fees_note(struct database *sql, int64_t intent,
                                        const struct hash32 *hash, uint64_t sent_s, wei amount,
                                        struct error *error);

/* Each of them; nothing where there is no outbox at path. It may be in use. */
MUST_CHECK enum status outbox_fees_each(const char *path,
                                        void (*take)(void *context, wei amount, uint64_t time_s),
                                        void *context, struct error *error);

#endif /* CHAIN_EVM_OUTBOX_FEES_H */
