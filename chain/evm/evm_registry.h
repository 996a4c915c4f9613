/*
 * evm_registry.h - asks a registry for the contracts that it was made with, for ever.
 *
 * What does not answer as a registry of this edition does is refused by name.
 */
#ifndef CHAIN_EVM_EVM_REGISTRY_H
#define CHAIN_EVM_EVM_REGISTRY_H

#include "chain/evm/evm.h"

/* Calls a contract whose answer is one word. STATUS_REFUSED: it reverts; STATUS_BAD_FORMAT: it
 * answers anything else. */
MUST_CHECK enum status evm_word(struct rpc *rpc, struct hash32 *word,
                                const struct address *contract, const uint8_t *call, size_t size,
                                struct error *error);

/* getter: "SEEDS()". STATUS_REFUSED: the registry is of another edition. STATUS_BAD_FORMAT: nothing
 * like a registry answers there. */
MUST_CHECK enum status evm_registry_part(struct rpc *rpc, struct address *part,
                                         const struct address *registry, const char *getter,
                                         struct error *error);

/* The contract that reads signatures: the first that the registry made, in its constructor. */
struct address evm_registry_notary(const struct address *registry);

/* STATUS_REFUSED: this registry `why`, and what to do about it. */
enum status evm_registry_refuse(const struct address *registry, const char *why,
                                struct error *error);

#endif /* CHAIN_EVM_EVM_REGISTRY_H */
