// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Evidence} from "./Evidence.sol";
import {FloatRules} from "./FloatRules.sol";
import {Functions} from "./Functions.sol";

/// @title RulesFunctions
/// @notice The rule of functions of one number that take many steps: those of the normal distribution,
/// sine and cosine. See RulesMap.
contract RulesFunctions is FloatRules {
    using Evidence for Evidence.Exhibit;

    ////////////////////////////////////////////////////////////////
    //                           Rules                            //
    ////////////////////////////////////////////////////////////////

    /// @inheritdoc FloatRules
    function _rule(Evidence.Exhibit memory shown) internal pure override returns (uint256) {
        if (shown.output != 0 || shown.operation != OP_MAP) revert Evidence.BadDescriptor();
        uint256 f = shown.natural(MAP_FUNCTION);
        uint256 x = _input(shown, 0, shown.element);
        if (f == MAP_ERF) return Functions.erf(x);
        if (f == MAP_SIN) return Functions.sin(x);
        if (f == MAP_COS) return Functions.cos(x);
        if (f == MAP_GELU_ERF) return Functions.geluErf(x);
        if (f == MAP_GELU_ERF_SLOPE) return Functions.geluErfSlope(x);
        revert Evidence.BadDescriptor();
    }
}
