// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Binary32} from "./Binary32.sol";
import {Evidence} from "./Evidence.sol";
import {IRules} from "./IRules.sol";
import {Kinds} from "./Kinds.sol";

/// @title FloatRules
/// @notice Shared by the contracts of float rules: they read evidence, call the rule, and store its
/// result as the engine does, with one NaN.
/// @dev Elements are read as bits: infinities, subnormals, any NaN.
abstract contract FloatRules is IRules, Kinds {
    using Evidence for Evidence.Exhibit;
    using Evidence for Evidence.Operand;

    ////////////////////////////////////////////////////////////////
    //                           Rules                            //
    ////////////////////////////////////////////////////////////////

    /// @inheritdoc IRules
    function element(bytes calldata evidence) external pure virtual returns (uint256 bits) {
        return Binary32.stored(_rule(Evidence.parse(evidence)));
    }

    /// @dev The accused element by the rule; any NaN will do.
    function _rule(Evidence.Exhibit memory shown) internal pure virtual returns (uint256 bits);

    ////////////////////////////////////////////////////////////////
    //                          Reading                           //
    ////////////////////////////////////////////////////////////////

    function _input(Evidence.Exhibit memory shown, uint256 number, uint256 index)
        internal
        pure
        returns (uint256)
    {
        return shown.operands[number].get(index);
    }

    /// @dev An earlier output of the same operation.
    function _output(Evidence.Exhibit memory shown, uint256 number, uint256 index)
        internal
        pure
        returns (uint256)
    {
        return shown.operands[shown.inputs + number].get(index);
    }
}
