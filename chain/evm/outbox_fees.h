/* outbox_fees.h - what a transaction offers, within the user's ceiling. For outbox.c. */
#ifndef CHAIN_EVM_OUTBOX_FEES_H
#define CHAIN_EVM_OUTBOX_FEES_H

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

#endif /* CHAIN_EVM_OUTBOX_FEES_H */
