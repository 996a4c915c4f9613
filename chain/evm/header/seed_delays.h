/*
 * seed_delays.h - from how many blocks behind a commit its seed comes, on each chain that has a
 * random number of the kind that HeaderSeeds.sol reads.
 *
 * The one list for C and Solidity: scripts/contracts.mjs writes SeedDelays.sol from its rows. Why
 * sixteen: docs/PROTOCOL.md, "Seeds". A chain of one's own has one block maker that wants nothing.
 */
#ifndef CHAIN_EVM_HEADER_SEED_DELAYS_H
#define CHAIN_EVM_HEADER_SEED_DELAYS_H

/* ROW(the chain's id, blocks, its name) */
#define SEED_DELAYS(ROW)                                                                           \
    ROW(1, 16, "Ethereum")                                                                         \
    ROW(11155111, 16, "Sepolia")                                                                   \
    ROW(560048, 16, "Hoodi")                                                                       \
    ROW(100, 16, "Gnosis")                                                                         \
    ROW(1337, 1, "a development chain")                                                            \
    ROW(31337, 1, "a development chain")

#endif /* CHAIN_EVM_HEADER_SEED_DELAYS_H */
