// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Binary32} from "./Binary32.sol";
import {Evidence} from "./Evidence.sol";
import {FloatRules} from "./FloatRules.sol";
import {Functions} from "./Functions.sol";

/// @title RulesGeneral
/// @notice The rules of the general kinds, whose operands are read through views: engine's
/// rules_general.c.
contract RulesGeneral is FloatRules {
    using Binary32 for uint256;
    using Evidence for Evidence.Exhibit;

    ////////////////////////////////////////////////////////////////
    //                         Constants                          //
    ////////////////////////////////////////////////////////////////

    // Kinds of operations, positions of their attributes, functions: engine/ops/op.h.
    uint256 internal constant OP_MAP = 44;
    uint256 internal constant OP_BINARY = 45;
    uint256 internal constant OP_SELECT = 46;

    uint256 internal constant VIEW_AXES = 4;
    uint256 internal constant FUNCTION = 0; // of MAP and BINARY
    uint256 internal constant BINARY_DIMS = 1;
    uint256 internal constant SELECT_DIMS = 0;

    uint256 internal constant MAP_NEG = 0;
    uint256 internal constant MAP_ABS = 1;
    uint256 internal constant MAP_SIGN = 2;
    uint256 internal constant MAP_FLOOR = 3;
    uint256 internal constant MAP_CEIL = 4;
    uint256 internal constant MAP_ROUND = 5;
    uint256 internal constant MAP_SQRT = 6;
    uint256 internal constant MAP_RSQRT = 7;
    uint256 internal constant MAP_RECIPROCAL = 8;
    uint256 internal constant MAP_EXP = 9;
    uint256 internal constant MAP_LOG = 10;
    uint256 internal constant MAP_TANH = 11;
    uint256 internal constant MAP_SIGMOID = 12;
    uint256 internal constant MAP_ERF = 13;
    uint256 internal constant MAP_SIN = 14;
    uint256 internal constant MAP_COS = 15;
    uint256 internal constant MAP_GELU_ERF = 16;
    uint256 internal constant MAP_GELU_ERF_SLOPE = 17;

    uint256 internal constant BINARY_ADD = 0;
    uint256 internal constant BINARY_SUB = 1;
    uint256 internal constant BINARY_MUL = 2;
    uint256 internal constant BINARY_DIV = 3;
    uint256 internal constant BINARY_MAX = 4;
    uint256 internal constant BINARY_MIN = 5;
    uint256 internal constant BINARY_POW = 6;
    uint256 internal constant BINARY_LESS = 7;
    uint256 internal constant BINARY_LESS_EQUAL = 8;
    uint256 internal constant BINARY_EQUAL = 9;
    uint256 internal constant BINARY_NOT_EQUAL = 10;

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
        uint256 operation = shown.operation;
        if (shown.output != 0) revert Evidence.BadDescriptor();
        if (operation == OP_SELECT) return _select(shown);
        if (operation == OP_BINARY) {
            uint256 a = _viewed(shown, 0, BINARY_DIMS);
            uint256 b = _viewed(shown, 1, BINARY_DIMS);
            return _binary(shown.natural(FUNCTION), a, b);
        }
        if (operation == OP_MAP) {
            return _map(shown.natural(FUNCTION), _input(shown, 0, shown.element));
        }
        revert Evidence.BadDescriptor();
    }

    /// @dev The element of an input, read through its view: the dims, then strides for each input.
    function _viewed(Evidence.Exhibit memory shown, uint256 input, uint256 dims)
        internal
        pure
        returns (uint256)
    {
        uint256 strides = dims + VIEW_AXES * (input + 1);
        uint256 index = shown.element;
        uint256 place = 0;
        for (uint256 axis = VIEW_AXES; axis > 0; axis--) {
            uint256 length = shown.size(dims + axis - 1);
            place += index % length * shown.natural(strides + axis - 1);
            index /= length;
        }
        return _input(shown, input, place);
    }

    function _select(Evidence.Exhibit memory shown) internal pure returns (uint256) {
        bool first = _viewed(shown, 0, SELECT_DIMS) & Binary32.MAGNITUDE != 0;
        return _viewed(shown, first ? 1 : 2, SELECT_DIMS);
    }

    function _map(uint256 f, uint256 x) internal pure returns (uint256) {
        if (f == MAP_NEG) return x.negated();
        if (f == MAP_ABS) return x & Binary32.MAGNITUDE;
        if (f == MAP_SIGN) return Functions.sign(x);
        if (f == MAP_FLOOR) return Functions.integer(x, -1);
        if (f == MAP_CEIL) return Functions.integer(x, 1);
        if (f == MAP_ROUND) return Functions.integer(x, 0);
        if (f == MAP_SQRT) return x.sqrt();
        if (f == MAP_RSQRT) return Binary32.ONE.div(x.sqrt());
        if (f == MAP_RECIPROCAL) return Binary32.ONE.div(x);
        if (f == MAP_EXP) return x.exp();
        if (f == MAP_LOG) return x.log();
        if (f == MAP_TANH) return Functions.tanh(x);
        if (f == MAP_SIGMOID) return Functions.sigmoid(x);
        if (f == MAP_ERF) return Functions.erf(x);
        if (f == MAP_SIN) return Functions.sin(x);
        if (f == MAP_COS) return Functions.cos(x);
        if (f == MAP_GELU_ERF) return Functions.geluErf(x);
        if (f == MAP_GELU_ERF_SLOPE) return Functions.geluErfSlope(x);
        revert Evidence.BadDescriptor();
    }

    function _binary(uint256 f, uint256 a, uint256 b) internal pure returns (uint256) {
        if (f == BINARY_ADD) return a.add(b);
        if (f == BINARY_SUB) return a.sub(b);
        if (f == BINARY_MUL) return a.mul(b);
        if (f == BINARY_DIV) return a.div(b);
        if (f == BINARY_POW) return Functions.pow(a, b);
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
