/* ledger_evm.h - deploys the contracts of a ledger on an EVM chain. */
#ifndef CHAIN_EVM_LEDGER_EVM_H
#define CHAIN_EVM_LEDGER_EVM_H

#include "chain/game/ledger.h"

/* Deploys rules, referee and registry with the account of options->signer. name: as for
 * ledger_submit; after a crash the same name finds the same contracts. *height is the first block
 * to read. token: what the registry plays for; zero: the chain's coin. STATUS_REFUSED where it is
 * unfit. timeout_s: for each contract. */
MUST_CHECK enum status ledger_evm_deploy(const struct ledger_options *options, const char *name,
                                         struct address *registry, uint64_t *height,
                                         const struct address *token, uint32_t timeout_s,
                                         struct error *error);

#endif /* CHAIN_EVM_LEDGER_EVM_H */
