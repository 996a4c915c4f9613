// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Binary32} from "./Binary32.sol";
import {Evidence} from "./Evidence.sol";
import {FloatRules} from "./FloatRules.sol";

/// @title RulesElementwise
/// @notice The rules of rotary and of the update, of integers, and of several elements of each row:
/// engine's rules_general.c, rules_update.c and rules_integers.c.
contract RulesElementwise is FloatRules {
    using Binary32 for uint256;
    using Evidence for Evidence.Exhibit;
    using Evidence for Evidence.Operand;

    ////////////////////////////////////////////////////////////////
    //                         Constants                          //
    ////////////////////////////////////////////////////////////////

    uint256 internal constant VIEW_AXES = 4; // dims, then strides of each operand
    uint256 internal constant WORD = type(uint32).max;
    uint256 internal constant U32 = 3; // an element type
    uint256 internal constant SCATTER_ADD = 0;

    ////////////////////////////////////////////////////////////////
    //                           Rules                            //
    ////////////////////////////////////////////////////////////////

    /// @dev Integers and what is moved are bits as they are.
    function element(bytes calldata evidence) external pure override returns (uint256 bits) {
        Evidence.Exhibit memory shown = Evidence.parse(evidence);
        bits = _rule(shown);
        if (shown.operation < OP_INTEGER) bits = Binary32.stored(bits);
    }

    /// @inheritdoc FloatRules
    function _rule(Evidence.Exhibit memory shown) internal pure override returns (uint256) {
        uint256 operation = shown.operation;
        if (operation == OP_SGD) return _sgd(shown);
        if (operation == OP_ADAMW) return _adamw(shown);
        if (operation == OP_SORT) return _sort(shown);
        if (shown.output != 0) revert Evidence.BadDescriptor();
        if (operation == OP_CLIP_FACTOR) return _clipFactor(shown);
        if (operation == OP_ROTARY) return _rotary(shown);
        if (operation == OP_INTEGER) return _integer(shown);
        if (operation == OP_TAKE) return _take(shown);
        if (operation == OP_SCATTER) return _scatter(shown);
        revert Evidence.BadDescriptor();
    }

    function _rotary(Evidence.Exhibit memory shown) internal pure returns (uint256) {
        uint256 width = shown.size(ROTARY_WIDTH);
        uint256 across = width * shown.size(ROTARY_HEADS);
        uint256 time = shown.element / across % shown.size(ROTARY_LENGTH);
        uint256 place = shown.element % width;
        uint256 apart = shown.natural(ROTARY_HALVES) != 0 ? width / 2 : 1;
        uint256 pair = apart == 1 ? place / 2 : place % apart;
        uint256 first = shown.element - place + (apart == 1 ? 2 * pair : pair);
        uint256 angle = time * width + 2 * pair;
        uint256 x0 = _input(shown, 0, first);
        uint256 x1 = _input(shown, 0, first + apart);
        uint256 c = _input(shown, 1, angle);
        uint256 s = _input(shown, 1, angle + 1);
        if (shown.natural(ROTARY_INVERSE) != 0) s = s.negated();
        return shown.element == first ? x0.fma(c, x1.mul(s).negated()) : x0.fma(s, x1.mul(c));
    }

    ////////////////////////////////////////////////////////////////
    //                         The update                         //
    ////////////////////////////////////////////////////////////////

    function _clipFactor(Evidence.Exhibit memory shown) internal pure returns (uint256) {
        uint256 norm = _input(shown, 0, shown.element).sqrt();
        uint256 limit = shown.pattern(CLIP_LIMIT_BITS);
        if (norm.isNan()) return Binary32.NAN;
        return limit.isLess(norm) ? limit.div(norm) : Binary32.ONE;
    }

    /// @dev Inputs p, g, v, rate, gscale; outputs p', v'.
    function _sgd(Evidence.Exhibit memory shown) internal pure returns (uint256) {
        uint256 index = shown.element;
        uint256 p = _input(shown, 0, index);
        uint256 velocity = _input(shown, 1, index).mul(_input(shown, 4, 0));
        velocity = shown.pattern(SGD_DECAY_BITS).fma(p, velocity);
        velocity = shown.pattern(SGD_MOMENTUM_BITS).fma(_input(shown, 2, index), velocity);
        if (shown.output == 1) return velocity;
        if (shown.output != 0) revert Evidence.BadDescriptor();
        return _input(shown, 3, 0).negated().fma(velocity, p);
    }

    /// @dev Inputs p, g, m, v, rate, correct1, correct2, gscale; outputs p', m', v'.
    function _adamw(Evidence.Exhibit memory shown) internal pure returns (uint256) {
        if (shown.output == 1) return _moment1(shown);
        if (shown.output == 2) return _moment2(shown);
        if (shown.output != 0) revert Evidence.BadDescriptor();
        uint256 p = _input(shown, 0, shown.element);
        uint256 mean = _moment1(shown).mul(_input(shown, 5, 0));
        uint256 root = _moment2(shown).mul(_input(shown, 6, 0)).sqrt();
        uint256 update = mean.div(root.add(shown.pattern(ADAMW_EPSILON_BITS)));
        update = shown.pattern(ADAMW_DECAY_BITS).fma(p, update);
        return _input(shown, 4, 0).negated().fma(update, p);
    }

    function _gradient(Evidence.Exhibit memory shown) internal pure returns (uint256) {
        return _input(shown, 1, shown.element).mul(_input(shown, 7, 0));
    }

    function _moment1(Evidence.Exhibit memory shown) internal pure returns (uint256) {
        uint256 fresh = shown.pattern(ADAMW_ONE_LESS_BETA1_BITS).mul(_gradient(shown));
        return shown.pattern(ADAMW_BETA1_BITS).fma(_input(shown, 2, shown.element), fresh);
    }

    function _moment2(Evidence.Exhibit memory shown) internal pure returns (uint256) {
        uint256 gradient = _gradient(shown);
        uint256 fresh = shown.pattern(ADAMW_ONE_LESS_BETA2_BITS).mul(gradient.mul(gradient));
        return shown.pattern(ADAMW_BETA2_BITS).fma(_input(shown, 3, shown.element), fresh);
    }

    ////////////////////////////////////////////////////////////////
    //                          Integers                          //
    ////////////////////////////////////////////////////////////////

    /// @dev Where an operand is read whose strides are the four attributes from `strides` on.
    function _viewed(Evidence.Exhibit memory shown, uint256 strides)
        internal
        pure
        returns (uint256 at)
    {
        uint256 index = shown.element;
        for (uint256 axis = VIEW_AXES; axis > 0; axis--) {
            uint256 length = shown.size(INTEGER_D0 + axis - 1);
            at += index % length * shown.natural(strides + axis - 1);
            index /= length;
        }
    }

    function _integer(Evidence.Exhibit memory shown) internal pure returns (uint256) {
        uint256 f = shown.natural(INTEGER_FUNCTION);
        uint256 a = _input(shown, 0, _viewed(shown, INTEGER_A0));
        uint256 b = _input(shown, 1, _viewed(shown, INTEGER_B0));
        unchecked {
            if (f == INTEGER_ADD) return (a + b) & WORD;
            if (f == INTEGER_SUB) return (a - b) & WORD;
            if (f == INTEGER_MUL) return (a * b) & WORD;
        }
        if (f == INTEGER_DIV) return b == 0 ? WORD : a / b;
        if (f == INTEGER_MOD) return b == 0 ? a : a % b;
        if (f == INTEGER_AND) return a & b;
        if (f == INTEGER_OR) return a | b;
        if (f == INTEGER_XOR) return a ^ b;
        if (f == INTEGER_SHIFT_LEFT) return b < 32 ? (a << b) & WORD : 0;
        if (f == INTEGER_SHIFT_RIGHT) return a >> b;
        bool holds;
        if (f == INTEGER_LESS) holds = a < b;
        else if (f == INTEGER_LESS_EQUAL) holds = a <= b;
        else if (f == INTEGER_EQUAL) holds = a == b;
        else if (f == INTEGER_NOT_EQUAL) holds = a != b;
        else revert Evidence.BadDescriptor();
        return holds ? 1 : 0;
    }

    ////////////////////////////////////////////////////////////////
    //                Several elements of each row                //
    ////////////////////////////////////////////////////////////////

    function _take(Evidence.Exhibit memory shown) internal pure returns (uint256) {
        uint256 columns = shown.size(TAKE_COLUMNS);
        uint256 column = _input(shown, 1, shown.element);
        if (column < columns) {
            return _input(shown, 0, shown.element / shown.size(TAKE_WIDTH) * columns + column);
        }
        return shown.operands[0].elementType == U32 ? WORD : Binary32.NAN;
    }

    function _scatter(Evidence.Exhibit memory shown) internal pure returns (uint256 bits) {
        uint256 columns = shown.size(SCATTER_COLUMNS);
        uint256 width = shown.size(SCATTER_WIDTH);
        uint256 column = shown.element % columns;
        uint256 at = shown.element / columns * width;
        bool adds = shown.natural(SCATTER_FUNCTION) == SCATTER_ADD;
        bits = _input(shown, 2, shown.element);
        for (uint256 end = at + width; at < end; at++) {
            if (_input(shown, 0, at) != column) continue;
            uint256 sent = _input(shown, 1, at);
            bits = adds ? Binary32.stored(bits.add(sent)) : sent;
        }
    }

    /// @dev Outputs rank, index, y. Keys: the order of numbers, NaN above all, -0 with +0.
    function _sort(Evidence.Exhibit memory shown) internal pure returns (uint256) {
        if (shown.output == 0) return _rank(shown);
        uint256 columns = shown.size(SORT_COLUMNS);
        uint256 place = shown.element % columns;
        uint256 first = shown.element - place;
        if (shown.output == 1) return _columnAt(shown, first, columns, place);
        if (shown.output != 2) revert Evidence.BadDescriptor();
        uint256 column = _output(shown, 1, shown.element);
        return column < columns ? Binary32.stored(_input(shown, 0, first + column)) : Binary32.NAN;
    }

    function _rank(Evidence.Exhibit memory shown) internal pure returns (uint256 before) {
        uint256 columns = shown.size(SORT_COLUMNS);
        uint256 index = shown.element;
        uint256 first = index - index % columns;
        uint256 turned = shown.natural(SORT_DESCENDING) != 0 ? WORD : 0;
        uint256 own = _key(_input(shown, 0, index)) ^ turned;
        unchecked {
            for (uint256 at = first; at < first + columns; at++) {
                uint256 key = _key(_input(shown, 0, at)) ^ turned;
                if (key < own || (key == own && at < index)) before++;
            }
        }
    }

    function _columnAt(Evidence.Exhibit memory shown, uint256 first, uint256 columns, uint256 place)
        internal
        pure
        returns (uint256 column)
    {
        unchecked {
            while (column < columns && _output(shown, 0, first + column) != place) column++;
        }
    }

    function _key(uint256 bits) internal pure returns (uint256) {
        uint256 magnitude = bits & Binary32.MAGNITUDE;
        if (magnitude > 0x7f800000) return WORD;
        return magnitude == 0 || magnitude == bits ? magnitude | 0x80000000 : bits ^ WORD;
    }
}
