// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title IntegerRows
/// @notice Exact sums over little-endian integers in calldata.
/// @dev Assembly, because a dot product has thousands of terms. A word of sixteen (or eight)
/// integers is turned around, made unsigned by its sign bits, and cut into four words of wide
/// lanes. Each lane then has its bias taken off, so that a word is the number sum(x_i * 2^(lane *
/// i)) with signed x_i. A product of two such words, one with its lanes in reverse, has in its top
/// lane the sum of the products: lanes 0..n-1 of one meet lanes n-1..0 of the other. Lower lanes
/// may be negative and borrow from the top; half a lane added to each of them at the end gives
/// that back.
library IntegerRows {
    uint256 private constant BYTES =
        0x00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff;
    uint256 private constant PAIRS =
        0x0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff;
    uint256 private constant WIDE =
        0x00000000ffffffff00000000ffffffff00000000ffffffff00000000ffffffff;
    uint256 private constant HALVES =
        0x0000000000000000ffffffffffffffff0000000000000000ffffffffffffffff;
    uint256 private constant SIGNS16 =
        0x8000800080008000800080008000800080008000800080008000800080008000;
    uint256 private constant SIGNS32 =
        0x8000000080000000800000008000000080000000800000008000000080000000;
    uint256 private constant LANES16 =
        0x000000000000ffff000000000000ffff000000000000ffff000000000000ffff;
    uint256 private constant BIAS16 =
        0x0000000000008000000000000000800000000000000080000000000000008000;
    uint256 private constant LANES32 =
        0x000000000000000000000000ffffffff000000000000000000000000ffffffff;
    uint256 private constant BIAS32 =
        0x0000000000000000000000008000000000000000000000000000000080000000;
    // Half a lane in every lane but the top one.
    uint256 private constant LEND16 = 0x800000000000000080000000000000008000000000000000;
    uint256 private constant LEND32 = 0x80000000000000000000000000000000;

    /// @notice The sum of products of `count` integers of 2 bytes, exact below 2^32 of them.
    function dot16(uint256 a, uint256 b, uint256 count) internal pure returns (int256 sum) {
        assembly {
            function spread(word) -> turned {
                turned := xor(
                    or(shl(8, and(word, BYTES)), and(shr(8, word), BYTES)), SIGNS16
                )
            }
            function reverse(word) -> turned {
                turned := or(shl(128, word), shr(128, word))
                turned := or(shl(64, and(turned, HALVES)), and(shr(64, turned), HALVES))
            }
            function products(x, y) -> total {
                total := mul(sub(and(x, LANES16), BIAS16), sub(and(y, LANES16), BIAS16))
                total := add(
                    total,
                    mul(
                        sub(and(shr(16, x), LANES16), BIAS16),
                        sub(and(shr(16, y), LANES16), BIAS16)
                    )
                )
                total := add(
                    total,
                    mul(
                        sub(and(shr(32, x), LANES16), BIAS16),
                        sub(and(shr(32, y), LANES16), BIAS16)
                    )
                )
                total := add(
                    total,
                    mul(
                        sub(and(shr(48, x), LANES16), BIAS16),
                        sub(and(shr(48, y), LANES16), BIAS16)
                    )
                )
            }
            let end := add(a, shl(1, and(count, not(15))))
            for {} lt(a, end) {} {
                sum := add(sum, products(spread(calldataload(a)), reverse(spread(calldataload(b)))))
                a := add(a, 32)
                b := add(b, 32)
            }
            // Lanes behind the last element are 0.
            let rest := shl(4, and(count, 15))
            if rest {
                let drop := sub(256, rest)
                let x := shl(drop, shr(drop, calldataload(a)))
                let y := shl(drop, shr(drop, calldataload(b)))
                sum := add(sum, products(spread(x), reverse(spread(y))))
            }
            sum := sar(192, add(sum, LEND16))
        }
    }

    /// @notice The same for integers of 4 bytes.
    function dot32(uint256 a, uint256 b, uint256 count) internal pure returns (int256 sum) {
        assembly {
            function spread(word) -> turned {
                turned := or(shl(8, and(word, BYTES)), and(shr(8, word), BYTES))
                turned := xor(
                    or(shl(16, and(turned, PAIRS)), and(shr(16, turned), PAIRS)), SIGNS32
                )
            }
            function products(x, y) -> total {
                for { let i := 0 } lt(i, 4) { i := add(i, 1) } {
                    total := add(
                        total, mul(sub(and(x, LANES32), BIAS32), sub(and(y, LANES32), BIAS32))
                    )
                    x := shr(32, x)
                    y := shr(32, y)
                }
            }
            let end := add(a, shl(2, and(count, not(7))))
            for {} lt(a, end) {} {
                let y := spread(calldataload(b))
                sum := add(sum, products(spread(calldataload(a)), or(shl(128, y), shr(128, y))))
                a := add(a, 32)
                b := add(b, 32)
            }
            let rest := shl(5, and(count, 7))
            if rest {
                let drop := sub(256, rest)
                let y := spread(shl(drop, shr(drop, calldataload(b))))
                let x := spread(shl(drop, shr(drop, calldataload(a))))
                sum := add(sum, products(x, or(shl(128, y), shr(128, y))))
            }
            sum := sar(128, add(sum, LEND32))
        }
    }

    /// @notice The sum of `count` integers of 2 bytes, exact below 2^20 of them.
    function sum16(uint256 a, uint256 count) internal pure returns (int256 sum) {
        assembly {
            let words := shr(4, add(count, 15))
            let lanes := 0
            for { let left := count } left {} {
                let word := calldataload(a)
                if lt(left, 16) {
                    let drop := sub(256, shl(4, left))
                    word := shl(drop, shr(drop, word))
                    left := 16
                }
                word := xor(or(shl(8, and(word, BYTES)), and(shr(8, word), BYTES)), SIGNS16)
                lanes := add(lanes, add(and(word, PAIRS), and(shr(16, word), PAIRS)))
                a := add(a, 32)
                left := sub(left, 16)
            }
            // Eight lanes of 32 bits become four of 64, whose sum stands in the top lane.
            lanes := add(and(lanes, WIDE), and(shr(32, lanes), WIDE))
            lanes := shr(192, mul(lanes, 0x1000000000000000100000000000000010000000000000001))
            sum := sub(lanes, shl(19, words))
        }
    }

    /// @notice The sum of `count` integers of 4 bytes, exact below 2^28 of them.
    function sum32(uint256 a, uint256 count) internal pure returns (int256 sum) {
        assembly {
            let words := shr(3, add(count, 7))
            let lanes := 0
            for { let left := count } left {} {
                let word := calldataload(a)
                if lt(left, 8) {
                    let drop := sub(256, shl(5, left))
                    word := shl(drop, shr(drop, word))
                    left := 8
                }
                word := or(shl(8, and(word, BYTES)), and(shr(8, word), BYTES))
                word := xor(or(shl(16, and(word, PAIRS)), and(shr(16, word), PAIRS)), SIGNS32)
                lanes := add(lanes, add(and(word, WIDE), and(shr(32, word), WIDE)))
                a := add(a, 32)
                left := sub(left, 8)
            }
            lanes := shr(192, mul(lanes, 0x1000000000000000100000000000000010000000000000001))
            sum := sub(lanes, shl(34, words))
        }
    }
}
