/* evm_open.h - opens endpoints and outbox from the options of a ledger. For ledger_*.c. */
#ifndef CHAIN_EVM_EVM_OPEN_H
#define CHAIN_EVM_EVM_OPEN_H

#include "base/io/file.h"
#include "chain/evm/outbox.h"
#include "chain/game/ledger.h"

enum status evm_open_rpc(struct rpc **opened, const struct ledger_options *options,
                         struct error *error);

/* Where the outbox of an account is. STATUS_OVER_LIMIT: the folder's path is too long. */
enum status evm_open_path(char path[FILE_PATH_MAX], const char *state_dir, uint64_t chain_id,
                          const struct address *account, struct error *error);

/* Leaves *opened alone when the options have no signer. */
enum status evm_open_outbox(struct outbox **opened, struct rpc *rpc,
                            const struct ledger_options *options, uint64_t chain_id,
                            struct error *error);

#endif /* CHAIN_EVM_EVM_OPEN_H */
