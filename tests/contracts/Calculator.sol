// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Binary32} from "./Binary32.sol";

/// @title Calculator
/// @notice Binary32 over many operands at once, for tests.
contract Calculator {
    uint256 internal constant CASE_SIZE = 12; // three patterns of 4 bytes

    /// @param operation Its number in the list of _operation().
    /// @param cases Three patterns of 4 bytes, big-endian, per case; one not used may be anything.
    /// @return results A pattern of 4 bytes per case.
    function run(uint256 operation, bytes calldata cases)
        external
        pure
        returns (bytes memory results)
    {
        function(uint256, uint256, uint256) pure returns (uint256) calculate =
            _operation(operation);
        uint256 count = cases.length / CASE_SIZE;
        results = new bytes(4 * count);
        for (uint256 i = 0; i < count; i++) {
            uint256 word;
            assembly {
                word := calldataload(add(cases.offset, mul(i, CASE_SIZE)))
            }
            uint256 result =
                calculate(word >> 224, word >> 192 & 0xffffffff, word >> 160 & 0xffffffff);
            if (result >> 32 != 0) revert(); // more than a pattern
            assembly {
                // What this overwrites behind the result is written later, or is past the end.
                mstore(add(add(results, 32), shl(2, i)), shl(224, result))
            }
        }
    }

    /// @return used What one operation costs, the call of its function included.
    /// @return result Keeps the operation from being dropped.
    function gas(uint256 operation, uint256 a, uint256 b, uint256 c)
        external
        view
        returns (uint256 used, uint256 result)
    {
        if (operation == 0) {
            used = gasleft();
            result = Binary32.add(a, b);
        } else if (operation == 1) {
            used = gasleft();
            result = Binary32.sub(a, b);
        } else if (operation == 2) {
            used = gasleft();
            result = Binary32.mul(a, b);
        } else if (operation == 3) {
            used = gasleft();
            result = Binary32.div(a, b);
        } else if (operation == 4) {
            used = gasleft();
            result = Binary32.sqrt(a);
        } else if (operation == 5) {
            used = gasleft();
            result = Binary32.fma(a, b, c);
        } else if (operation == 6) {
            used = gasleft();
            result = Binary32.exp(a);
        } else if (operation == 7) {
            used = gasleft();
            result = Binary32.log(a);
        } else if (operation == 8) {
            used = gasleft();
            result = Binary32.isLess(a, b) ? 1 : 0;
        } else if (operation == 9) {
            used = gasleft();
            result = Binary32.isEqual(a, b) ? 1 : 0;
        } else if (operation == 10) {
            used = gasleft();
            result = Binary32.maximum(a, b);
        } else if (operation == 11) {
            used = gasleft();
            result = _fromInteger(a, b, c);
        } else if (operation == 12) {
            used = gasleft();
            result = _toInteger(a, b, c);
        }
        used -= gasleft();
    }

    function _operation(uint256 number)
        internal
        pure
        returns (function(uint256, uint256, uint256) pure returns (uint256))
    {
        if (number == 0) return _add;
        if (number == 1) return _sub;
        if (number == 2) return _mul;
        if (number == 3) return _div;
        if (number == 4) return _sqrt;
        if (number == 5) return _fma;
        if (number == 6) return _exp;
        if (number == 7) return _log;
        if (number == 8) return _isLess;
        if (number == 9) return _isEqual;
        if (number == 10) return _maximum;
        if (number == 11) return _fromInteger;
        if (number == 12) return _toInteger;
        revert();
    }

    function _add(uint256 a, uint256 b, uint256) internal pure returns (uint256) {
        return Binary32.add(a, b);
    }

    function _sub(uint256 a, uint256 b, uint256) internal pure returns (uint256) {
        return Binary32.sub(a, b);
    }

    function _mul(uint256 a, uint256 b, uint256) internal pure returns (uint256) {
        return Binary32.mul(a, b);
    }

    function _div(uint256 a, uint256 b, uint256) internal pure returns (uint256) {
        return Binary32.div(a, b);
    }

    function _sqrt(uint256 a, uint256, uint256) internal pure returns (uint256) {
        return Binary32.sqrt(a);
    }

    function _fma(uint256 a, uint256 b, uint256 c) internal pure returns (uint256) {
        return Binary32.fma(a, b, c);
    }

    function _exp(uint256 a, uint256, uint256) internal pure returns (uint256) {
        return Binary32.exp(a);
    }

    function _log(uint256 a, uint256, uint256) internal pure returns (uint256) {
        return Binary32.log(a);
    }

    function _isLess(uint256 a, uint256 b, uint256) internal pure returns (uint256) {
        return Binary32.isLess(a, b) ? 1 : 0;
    }

    function _isEqual(uint256 a, uint256 b, uint256) internal pure returns (uint256) {
        return Binary32.isEqual(a, b) ? 1 : 0;
    }

    function _maximum(uint256 a, uint256 b, uint256) internal pure returns (uint256) {
        return Binary32.withoutMinusZero(Binary32.maximum(a, b));
    }

    /// @dev a and b are the halves of the integer, c the power.
    function _fromInteger(uint256 a, uint256 b, uint256 c) internal pure returns (uint256) {
        return Binary32.fromInteger(int64(uint64(a << 32 | b)), int32(uint32(c)));
    }

    /// @dev b is the power, c the limit.
    function _toInteger(uint256 a, uint256 b, uint256 c) internal pure returns (uint256) {
        return uint32(int32(Binary32.toInteger(a, int32(uint32(b)), c)));
    }
}
