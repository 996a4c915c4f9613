// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Binary32} from "./Binary32.sol";
import {Evidence} from "./Evidence.sol";
import {FloatRules} from "./FloatRules.sol";
import {Functions} from "./Functions.sol";

/// @title RulesBinary
/// @notice The rules of functions of two numbers and of choices, whose operands are read through
/// views: rule_binary() and rule_select() of engine/rules/rules_general.c.
contract RulesBinary is FloatRules {
    using Binary32 for uint256;
    using Evidence for Evidence.Exhibit;

    ////////////////////////////////////////////////////////////////
    //                         Constants                          //
    ////////////////////////////////////////////////////////////////

    uint256 internal constant VIEW_AXES = 4; // dims, then strides of each operand

    ////////////////////////////////////////////////////////////////
    //                           Rules                            //
    ////////////////////////////////////////////////////////////////

    /// @dev What is selected is copied: a NaN stays as it is.
    function element(bytes calldata evidence) external pure override returns (uint256 bits) {
        Evidence.Exhibit memory shown = Evidence.parse(evidence);
        bits = _rule(shown);
        if (shown.operation != OP_SELECT) bits = Binary32.stored(bits);
    }

    /// @inheritdoc FloatRules
    function _rule(Evidence.Exhibit memory shown) internal pure override returns (uint256) {
        if (shown.output != 0) revert Evidence.BadDescriptor();
        if (shown.operation == OP_SELECT) return _select(shown);
        if (shown.operation != OP_BINARY) revert Evidence.BadDescriptor();
        (uint256 a, uint256 b) = _places(shown, BINARY_D0, BINARY_A0, BINARY_B0);
        a = _input(shown, 0, a);
        b = _input(shown, 1, b);
        return _binary(shown.natural(BINARY_FUNCTION), a, b);
    }

    /// @dev Where two inputs are read through their views: `dims` and strides are the first of four
    /// attributes. From where nothing is left of the index, it is 0 along all axes.
    function _places(Evidence.Exhibit memory shown, uint256 dims, uint256 first, uint256 second)
        internal
        pure
        returns (uint256 a, uint256 b)
    {
        uint256 index = shown.element;
        uint256 axis = VIEW_AXES;
        unchecked {
            while (axis > 0 && index > 0) {
                axis--;
                uint256 length = shown.size(dims + axis);
                uint256 at = index % length;
                index /= length;
                if (at > 0) {
                    a += at * shown.natural(first + axis);
                    b += at * shown.natural(second + axis);
                }
            }
        }
    }

    function _select(Evidence.Exhibit memory shown) internal pure returns (uint256) {
        (uint256 c, uint256 place) = _places(shown, SELECT_D0, SELECT_C0, SELECT_A0);
        if (_input(shown, 0, c) & Binary32.MAGNITUDE != 0) return _input(shown, 1, place);
        (, place) = _places(shown, SELECT_D0, SELECT_C0, SELECT_B0);
        return _input(shown, 2, place);
    }

    function _binary(uint256 f, uint256 a, uint256 b) internal pure returns (uint256) {
        if (f == BINARY_ADD) return a.add(b);
        if (f == BINARY_SUB) return a.sub(b);
        if (f == BINARY_MUL) return a.mul(b);
        if (f == BINARY_DIV) return a.div(b);
        if (f == BINARY_POW) return Functions.pow(a, b);
        if (f == BINARY_RELU_GRAD) return Functions.relu(a, b);
        if (f == BINARY_GELU_GRAD) return Functions.geluGrad(a, b);
        if (f == BINARY_SILU_GRAD) return Functions.siluGrad(a, b);
        if (f == BINARY_SQUARED_ERROR) {
            a = a.sub(b);
            return a.mul(a);
        }
        if (f == BINARY_SQUARED_ERROR_SLOPE) return Binary32.TWO.mul(a.sub(b));
        bool equal = a.isEqual(b);
        if (f == BINARY_MAX) return a.isNan() || equal || b.isLess(a) ? a : b;
        if (f == BINARY_MIN) return a.isNan() || equal || a.isLess(b) ? a : b;
        bool holds;
        if (f == BINARY_LESS) holds = a.isLess(b);
        else if (f == BINARY_LESS_EQUAL) holds = equal || a.isLess(b);
        else if (f == BINARY_EQUAL) holds = equal;
        else if (f == BINARY_NOT_EQUAL) holds = !equal;
        else revert Evidence.BadDescriptor();
        return holds ? Binary32.ONE : 0;
    }
}
