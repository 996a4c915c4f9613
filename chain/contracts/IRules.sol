// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title IRules
/// @notice Recomputes one element of one output of an operation from the elements that evidence
/// shows. docs/ARITHMETIC.md says what; the rules of the engine say the same in C.
/// @dev The referee has checked the evidence by then: descriptor, leaves and their places. These
/// contracts read it without checking any proof, and revert where an element that the rule needs is
/// not shown, or where the descriptor is of no operation of theirs. They keep no state.
///
/// The axis of a rule, which evidence may cover in parts from .. to: for an output of contract,
/// contract-ones and contract-onehot the K elements that are summed, cut at multiples of the piece;
/// for the peaks of quantize the elements of the piece, cut anywhere, or from and to are 0 for all
/// of them at once. All other rules have none: for them from and to are 0.
interface IRules {
    /// @notice The bits that the accused element must have. The evidence covers the whole axis.
    function element(bytes calldata evidence) external view returns (uint256 bits);

    /// @notice The same over several calls, each with evidence of one part of the axis.
    /// @param carry What the part before this one gave; for a part from 0 it means nothing. The
    /// caller sees to it that parts follow each other and are about the same element.
    /// @return done Whether the axis ends here.
    /// @return result The bits of the element, or what the next part begins with.
    function part(bytes calldata evidence, uint256 carry)
        external
        view
        returns (bool done, uint256 result);
}
