// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Binary32} from "./Binary32.sol";
import {Evidence} from "./Evidence.sol";

/// @title Vectors
/// @notice Runs of binary32 numbers, and the canonical fold of them (engine/ops/fold.h).
/// @dev A number takes a word of memory. Assembly, because a rule passes over a thousand of them
/// several times, and bounds that are known would be checked at each.
library Vectors {
    using Binary32 for uint256;
    using Evidence for Evidence.Operand;

    uint256 private constant LANES_SIZE = 32 * 32; // 32 lanes of a word each

    /// @notice The words from `start` up to `end`. Never empty.
    struct Vector {
        uint256 start;
        uint256 end;
    }

    ////////////////////////////////////////////////////////////////
    //                           Making                           //
    ////////////////////////////////////////////////////////////////

    /// @notice Elements first to first + count - 1 of an operand, as evidence shows them.
    function load(Evidence.Operand memory operand, uint256 first, uint256 count)
        internal
        pure
        returns (Vector memory v)
    {
        uint256 place = operand.span(first, count);
        v = _allocate(count);
        unchecked {
            // Eight to a word of calldata; what is behind the last one is overwritten later.
            for (uint256 to = v.start; to < v.end; to += 256) {
                uint256 word;
                assembly {
                    word := calldataload(place)
                }
                word = Evidence.swap32(word);
                assembly {
                    mstore(to, shr(224, word))
                    mstore(add(to, 32), and(shr(192, word), 0xffffffff))
                    mstore(add(to, 64), and(shr(160, word), 0xffffffff))
                    mstore(add(to, 96), and(shr(128, word), 0xffffffff))
                    mstore(add(to, 128), and(shr(96, word), 0xffffffff))
                    mstore(add(to, 160), and(shr(64, word), 0xffffffff))
                    mstore(add(to, 192), and(shr(32, word), 0xffffffff))
                    mstore(add(to, 224), and(word, 0xffffffff))
                }
                place += 32;
            }
        }
    }

    ////////////////////////////////////////////////////////////////
    //                      Each by itself                        //
    ////////////////////////////////////////////////////////////////

    function subtract(Vector memory v, uint256 a) internal pure {
        unchecked {
            uint256 end = v.end;
            for (uint256 place = v.start; place < end; place += 32) {
                _set(place, _get(place).sub(a));
            }
        }
    }

    function multiply(Vector memory v, uint256 a) internal pure {
        unchecked {
            uint256 end = v.end;
            for (uint256 place = v.start; place < end; place += 32) {
                _set(place, _get(place).mul(a));
            }
        }
    }

    /// @notice Each by its counterpart in w, which is as long.
    function multiplyEach(Vector memory v, Vector memory w) internal pure {
        unchecked {
            uint256 end = v.end;
            uint256 other = w.start;
            for (uint256 place = v.start; place < end; place += 32) {
                _set(place, _get(place).mul(_get(other)));
                other += 32;
            }
        }
    }

    ////////////////////////////////////////////////////////////////
    //                           Folds                            //
    ////////////////////////////////////////////////////////////////

    /// @notice fold(v). The vector is used up.
    function sum(Vector memory v) internal pure returns (uint256) {
        unchecked {
            uint256 end = v.end;
            uint256 lanesEnd = _lanesEnd(v);
            for (uint256 lane = v.start; lane < lanesEnd; lane += 32) {
                uint256 total = _get(lane);
                for (uint256 place = lane + LANES_SIZE; place < end; place += LANES_SIZE) {
                    total = total.add(_get(place));
                }
                _set(lane, total);
            }
            return _sumOfLanes(v.start, lanesEnd);
        }
    }

    /// @notice fold(v_i * w_i) of products; w is as long as v, and may be v. v is used up.
    function sumOfProducts(Vector memory v, Vector memory w) internal pure returns (uint256) {
        unchecked {
            uint256 end = v.end;
            uint256 offset = w.start - v.start;
            uint256 lanesEnd = _lanesEnd(v);
            for (uint256 lane = v.start; lane < lanesEnd; lane += 32) {
                uint256 total = _get(lane).mul(_get(lane + offset));
                for (uint256 place = lane + LANES_SIZE; place < end; place += LANES_SIZE) {
                    total = _get(place).fma(_get(place + offset), total);
                }
                _set(lane, total);
            }
            return _sumOfLanes(v.start, lanesEnd);
        }
    }

    /// @notice The maximum of docs/ARITHMETIC.md: NaN if there is one, never -0.
    function largest(Vector memory v) internal pure returns (uint256 found) {
        unchecked {
            uint256 end = v.end;
            found = Binary32.MINUS_INFINITE;
            for (uint256 place = v.start; place < end; place += 32) {
                found = found.maximum(_get(place));
            }
            return found.withoutMinusZero();
        }
    }

    ////////////////////////////////////////////////////////////////
    //                          Private                           //
    ////////////////////////////////////////////////////////////////

    /// @dev Room for count numbers, and for what load() writes past them.
    function _allocate(uint256 count) private pure returns (Vector memory v) {
        assembly {
            let start := mload(0x40)
            let size := shl(5, count)
            mstore(v, start)
            mstore(add(v, 32), add(start, size))
            mstore(0x40, add(start, add(size, 256)))
        }
    }

    function _lanesEnd(Vector memory v) private pure returns (uint256) {
        unchecked {
            return v.end - v.start < LANES_SIZE ? v.end : v.start + LANES_SIZE;
        }
    }

    /// @dev Adds pairwise at distance 16, 8, 4, 2, 1, where the second lane is there.
    function _sumOfLanes(uint256 start, uint256 end) private pure returns (uint256) {
        unchecked {
            for (uint256 distance = LANES_SIZE / 2; distance >= 32; distance /= 2) {
                for (
                    uint256 place = start;
                    place < start + distance && place + distance < end;
                    place += 32
                ) {
                    _set(place, _get(place).add(_get(place + distance)));
                }
            }
            return _get(start);
        }
    }

    function _get(uint256 place) private pure returns (uint256 value) {
        assembly {
            value := mload(place)
        }
    }

    function _set(uint256 place, uint256 value) private pure {
        assembly {
            mstore(place, value)
        }
    }
}
