// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Binary32} from "./Binary32.sol";
import {Evidence} from "./Evidence.sol";
import {FloatRules} from "./FloatRules.sol";

/// @title RulesElementwise
/// @notice The rules of rotary and of the update: engine's rules_general.c and rules_update.c.
contract RulesElementwise is FloatRules {
    using Binary32 for uint256;
    using Evidence for Evidence.Exhibit;

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
}
