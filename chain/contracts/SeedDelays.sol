// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

// Written by scripts/contracts.mjs from chain/evm/header/seed_delays.h; not to be edited.

/// @notice How many blocks behind a commit its seed comes from; zero: this chain is not known.
function seedDelayOn(uint256 chainId) pure returns (uint256 blocks) {
    if (chainId == 1) return 16; // Ethereum
    if (chainId == 11155111) return 16; // Sepolia
    if (chainId == 560048) return 16; // Hoodi
    if (chainId == 100) return 16; // Gnosis
    if (chainId == 1337) return 1; // a development chain
    if (chainId == 31337) return 1; // a development chain
}
