/*
 * evm_seeds.h - where the seeds of a registry come from, and what shows them.
 *
 * A registry draws from the contract that its deployer named, for ever. The party that chooses that
 * contract may choose who checks: so only HeaderSeeds.sol counts, with the delay of its chain, and
 * only on the chains of seed_delays.h. Rollups have no random number that nobody chooses.
 */
#ifndef CHAIN_EVM_EVM_SEEDS_H
#define CHAIN_EVM_EVM_SEEDS_H

#include "chain/evm/evm.h"

struct evm_seeds {
    struct address contract;
    uint32_t delay; /* in blocks */
};

/* STATUS_REFUSED: no seeds are known for this chain. */
MUST_CHECK enum status evm_seeds_delay(uint32_t *delay, uint64_t chain_id, struct error *error);

/* Reads and checks the seeds of a registry. STATUS_REFUSED: they are none that this program knows,
 * or the registry is of an edition that had none. STATUS_BAD_FORMAT: nothing like a registry
 * answers there. */
MUST_CHECK enum status evm_seeds_find(struct evm_seeds *seeds, struct rpc *rpc,
                                      const struct address *registry, uint64_t chain_id,
                                      struct error *error);

/* The block from which the seeds of commits of that block come; 0: they were not fixed. */
MUST_CHECK enum status evm_seeds_fixed(const struct evm_seeds *seeds, struct rpc *rpc,
                                       uint64_t *source, uint64_t height, uint64_t time_s,
                                       struct error *error);

/* What a draw shows, for the next block. STATUS_UNREACHABLE: the block that the seed comes from is
 * not there yet. */
MUST_CHECK enum status evm_seeds_prove(const struct evm_seeds *seeds, struct rpc *rpc,
                                       uint8_t proof[GAME_HEADER_MAX], size_t *size,
                                       const struct game_commits *commits, struct error *error);

#endif /* CHAIN_EVM_EVM_SEEDS_H */
