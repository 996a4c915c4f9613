// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Philox
/// @notice Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011), as engine/ops/philox.h has it.
library Philox {
    uint256 private constant WORD = 0xffffffff;

    /// @notice The block of a counter under a key.
    /// @param counter Four words of 32 bits, the first one lowest.
    /// @param key Two words of 32 bits, the first one lowest.
    /// @return words Four words of 32 bits, the first one lowest.
    function block4(uint256 counter, uint256 key) internal pure returns (uint256 words) {
        unchecked {
            uint256 c0 = counter & WORD;
            uint256 c1 = counter >> 32 & WORD;
            uint256 c2 = counter >> 64 & WORD;
            uint256 c3 = counter >> 96 & WORD;
            uint256 k0 = key & WORD;
            uint256 k1 = key >> 32 & WORD;
            for (uint256 round = 0; round < 10; round++) {
                uint256 product0 = 0xd2511f53 * c0;
                uint256 product2 = 0xcd9e8d57 * c2;
                c0 = product2 >> 32 ^ c1 ^ k0;
                c1 = product2 & WORD;
                c2 = product0 >> 32 ^ c3 ^ k1;
                c3 = product0 & WORD;
                k0 = k0 + 0x9e3779b9 & WORD;
                k1 = k1 + 0xbb67ae85 & WORD;
            }
            words = c3 << 96 | c2 << 64 | c1 << 32 | c0;
        }
    }

    /// @notice The block that the engine draws for an element of a stream in a step.
    function draw(uint256 index, uint256 stream, uint256 step, uint256 seed)
        internal
        pure
        returns (uint256 words)
    {
        return block4(index & type(uint64).max | stream << 64 | step << 96, seed);
    }

    /// @notice An integer below count, drawn from a block.
    function below(uint256 words, uint256 count) internal pure returns (uint256) {
        return (words & type(uint64).max) * count >> 64;
    }
}
