// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Binary32} from "./Binary32.sol";
import {Evidence} from "./Evidence.sol";
import {FloatRules} from "./FloatRules.sol";
import {Functions} from "./Functions.sol";

/// @title RulesMap
/// @notice The rule of functions of one number: element_map() of engine/ops/element.h. Those of many
/// steps are in RulesFunctions.
contract RulesMap is FloatRules {
    using Binary32 for uint256;
    using Evidence for Evidence.Exhibit;

    ////////////////////////////////////////////////////////////////
    //                           Rules                            //
    ////////////////////////////////////////////////////////////////

    /// @inheritdoc FloatRules
    function _rule(Evidence.Exhibit memory shown) internal pure override returns (uint256) {
        if (shown.output != 0 || shown.operation != OP_MAP) revert Evidence.BadDescriptor();
        uint256 f = shown.natural(MAP_FUNCTION);
        uint256 x = _input(shown, 0, shown.element);
        return f == MAP_SCALE ? x.mul(shown.pattern(MAP_CONSTANT_BITS)) : _map(f, x);
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
        if (f == MAP_RELU) return Functions.relu(x, x);
        if (f == MAP_GELU) return Functions.gelu(x);
        if (f == MAP_SILU) return x.div(Binary32.ONE.add(x.negated().exp()));
        revert Evidence.BadDescriptor();
    }
}
