// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Binary32} from "./Binary32.sol";
import {Evidence} from "./Evidence.sol";
import {FloatRules} from "./FloatRules.sol";

/// @title RulesElementwise
/// @notice The rules of operations whose element reads one element of each input, and of the
/// update: engine's rules_elementwise.c and rules_update.c.
contract RulesElementwise is FloatRules {
    using Binary32 for uint256;
    using Evidence for Evidence.Exhibit;

    ////////////////////////////////////////////////////////////////
    //                         Constants                          //
    ////////////////////////////////////////////////////////////////

    // Kinds of operations and positions of their attributes: engine/ops/op.h.
    uint256 internal constant OP_ADD = 12;
    uint256 internal constant OP_MUL = 13;
    uint256 internal constant OP_SCALE = 14;
    uint256 internal constant OP_RELU = 15;
    uint256 internal constant OP_RELU_GRAD = 16;
    uint256 internal constant OP_GELU = 17;
    uint256 internal constant OP_GELU_GRAD = 18;
    uint256 internal constant OP_SILU = 19;
    uint256 internal constant OP_SILU_GRAD = 20;
    uint256 internal constant OP_ROTARY = 21;
    uint256 internal constant OP_SQUARED_ERROR = 22;
    uint256 internal constant OP_SQUARED_ERROR_GRAD = 23;
    uint256 internal constant OP_CLIP_FACTOR = 41;
    uint256 internal constant OP_SGD = 42;
    uint256 internal constant OP_ADAMW = 43;

    uint256 internal constant BROADCAST_DIV = 0;
    uint256 internal constant BROADCAST_MOD = 1;
    uint256 internal constant SCALE_FACTOR = 0;
    uint256 internal constant ROTARY_LENGTH = 0;
    uint256 internal constant ROTARY_HEADS = 1;
    uint256 internal constant ROTARY_WIDTH = 2;
    uint256 internal constant ROTARY_INVERSE = 3;
    uint256 internal constant ROTARY_HALVES = 4;
    uint256 internal constant CLIP_LIMIT = 0;
    uint256 internal constant SGD_MOMENTUM = 0;
    uint256 internal constant SGD_DECAY = 1;
    uint256 internal constant ADAMW_BETA1 = 0;
    uint256 internal constant ADAMW_ONE_LESS_BETA1 = 1;
    uint256 internal constant ADAMW_BETA2 = 2;
    uint256 internal constant ADAMW_ONE_LESS_BETA2 = 3;
    uint256 internal constant ADAMW_EPSILON = 4;
    uint256 internal constant ADAMW_DECAY = 5;

    // docs/ARITHMETIC.md, "Elementwise".
    uint256 internal constant GELU_W1 = 0xbfcc422a; // -0x1.988454p0
    uint256 internal constant GELU_W3 = 0xbd922279; // -0x1.2444f2p-4
    uint256 internal constant GELU_D3 = 0xbe5b33b6; // -0x1.b6676cp-3
    uint256 internal constant GELU_FLAT = 0x41180000; // 9.5
    uint256 internal constant SILU_FLAT = 0x42a00000; // 80

    ////////////////////////////////////////////////////////////////
    //                           Rules                            //
    ////////////////////////////////////////////////////////////////

    /// @inheritdoc FloatRules
    function _rule(Evidence.Exhibit memory shown) internal pure override returns (uint256) {
        uint256 operation = shown.operation;
        if (operation == OP_SGD) return _sgd(shown);
        if (operation == OP_ADAMW) return _adamw(shown);
        if (shown.output != 0) revert Evidence.BadDescriptor();

        if (operation == OP_CLIP_FACTOR) return _clipFactor(shown);
        if (operation == OP_ROTARY) return _rotary(shown);
        uint256 x = _input(shown, 0, shown.element);
        if (operation == OP_ADD) return x.add(_broadcast(shown));
        if (operation == OP_MUL) return x.mul(_broadcast(shown));
        if (operation == OP_SCALE) return x.mul(shown.pattern(SCALE_FACTOR));
        if (operation == OP_RELU) return _relu(x, x);
        if (operation == OP_GELU) return _gelu(x);
        if (operation == OP_SILU) return x.div(Binary32.ONE.add(x.negated().exp()));
        return _ofTwo(shown, operation, x);
    }

    /// @dev Operations whose second input has the shape of the first.
    function _ofTwo(Evidence.Exhibit memory shown, uint256 operation, uint256 x)
        internal
        pure
        returns (uint256)
    {
        // Evidence need not show what relu-grad does not read.
        if (operation == OP_RELU_GRAD && !Binary32.isLess(0, x)) return _relu(x, 0);
        uint256 y = _input(shown, 1, shown.element);
        if (operation == OP_RELU_GRAD) return y;
        if (operation == OP_GELU_GRAD) return _geluGrad(x, y);
        if (operation == OP_SILU_GRAD) return _siluGrad(x, y);
        if (operation == OP_SQUARED_ERROR) {
            x = x.sub(y);
            return x.mul(x);
        }
        if (operation == OP_SQUARED_ERROR_GRAD) {
            return Binary32.TWO.mul(x.sub(y)).mul(_input(shown, 2, shown.element));
        }
        revert Evidence.BadDescriptor();
    }

    function _broadcast(Evidence.Exhibit memory shown) internal pure returns (uint256) {
        uint256 index =
            shown.element / shown.size(BROADCAST_DIV) % shown.size(BROADCAST_MOD);
        return _input(shown, 1, index);
    }

    /// @dev y where x > 0, +0 where it is not, NaN where it is none.
    function _relu(uint256 x, uint256 y) internal pure returns (uint256) {
        if (x.isNan()) return Binary32.NAN;
        return Binary32.isLess(0, x) ? y : 0;
    }

    /// @dev x * (W1 + W3 * x^2).
    function _geluExponent(uint256 x, uint256 square) internal pure returns (uint256) {
        return x.mul(GELU_W3.fma(square, GELU_W1));
    }

    function _gelu(uint256 x) internal pure returns (uint256) {
        return x.div(Binary32.ONE.add(_geluExponent(x, x.mul(x)).exp()));
    }

    function _geluGrad(uint256 x, uint256 dy) internal pure returns (uint256) {
        x = _clamp(x, GELU_FLAT);
        uint256 square = x.mul(x);
        uint256 e = _geluExponent(x, square).exp();
        uint256 s = Binary32.ONE.div(Binary32.ONE.add(e));
        uint256 slope = GELU_D3.fma(square, GELU_W1);
        uint256 m = x.mul(s).mul(e.mul(s));
        return m.negated().fma(slope, s).mul(dy);
    }

    function _siluGrad(uint256 x, uint256 dy) internal pure returns (uint256) {
        x = _clamp(x, SILU_FLAT);
        uint256 e = x.negated().exp();
        uint256 s = Binary32.ONE.div(Binary32.ONE.add(e));
        return x.mul(s).fma(e.mul(s), s).mul(dy);
    }

    /// @dev x, or the nearer of -limit and limit; NaN stays NaN.
    function _clamp(uint256 x, uint256 limit) internal pure returns (uint256) {
        if (x.isLess(limit.negated())) return limit.negated();
        return limit.isLess(x) ? limit : x;
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
        uint256 limit = shown.pattern(CLIP_LIMIT);
        if (norm.isNan()) return Binary32.NAN;
        return limit.isLess(norm) ? limit.div(norm) : Binary32.ONE;
    }

    /// @dev Inputs p, g, v, rate, gscale; outputs p', v'.
    function _sgd(Evidence.Exhibit memory shown) internal pure returns (uint256) {
        uint256 index = shown.element;
        uint256 p = _input(shown, 0, index);
        uint256 velocity = _input(shown, 1, index).mul(_input(shown, 4, 0));
        velocity = shown.pattern(SGD_DECAY).fma(p, velocity);
        velocity = shown.pattern(SGD_MOMENTUM).fma(_input(shown, 2, index), velocity);
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
        uint256 update = mean.div(root.add(shown.pattern(ADAMW_EPSILON)));
        update = shown.pattern(ADAMW_DECAY).fma(p, update);
        return _input(shown, 4, 0).negated().fma(update, p);
    }

    function _gradient(Evidence.Exhibit memory shown) internal pure returns (uint256) {
        return _input(shown, 1, shown.element).mul(_input(shown, 7, 0));
    }

    function _moment1(Evidence.Exhibit memory shown) internal pure returns (uint256) {
        uint256 fresh = shown.pattern(ADAMW_ONE_LESS_BETA1).mul(_gradient(shown));
        return shown.pattern(ADAMW_BETA1).fma(_input(shown, 2, shown.element), fresh);
    }

    function _moment2(Evidence.Exhibit memory shown) internal pure returns (uint256) {
        uint256 gradient = _gradient(shown);
        uint256 fresh = shown.pattern(ADAMW_ONE_LESS_BETA2).mul(gradient.mul(gradient));
        return shown.pattern(ADAMW_BETA2).fma(_input(shown, 3, shown.element), fresh);
    }
}
