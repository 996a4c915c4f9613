// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title IRules
/// @notice Recomputes one element of one output of an operation from the elements that evidence
/// shows. docs/ARITHMETIC.md says what; the rules of the engine say the same in C.
/// @dev The referee has checked the evidence by then: descriptor, leaves and their places. These
/// contracts read it without checking any proof, and revert where an element that the rule needs is
/// not shown, or where the descriptor is of no operation of theirs. They keep no state.
interface IRules {
    /// @notice The bits that the accused element must have.
    function element(bytes calldata evidence) external view returns (uint256 bits);
}
