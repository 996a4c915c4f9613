// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title IExaminer
/// @notice What the referee knows by computing: whether evidence convicts, what a question asks for,
/// whether an answer is one. docs/FORMATS.md has the bytes; proofs/ has the same in C.
/// @dev Keeps nothing, and reverts with a reason where bytes prove nothing: whoever prepares a move
/// can call it first.
interface IExaminer {
    /// @notice What was committed, without which no bytes mean anything.
    struct Context {
        bytes32 programRoot; // of the job
        bytes32 constantsRoot;
        bytes32 dataRoot;
        bytes32 preState; // state roots before and after the step
        bytes32 postState;
        bytes32 traceRoot; // of the accused
        bool attestor; // the accused is one: its trace alone can be wrong
        bool diverged; // the training is said to have diverged at this step
    }

    enum Answer {
        NotGuilty, // the evidence shows what the rules ask for
        PartTaken, // it is a part of a long sum, and not the last
        Upheld
    }

    /// @notice How far a long sum is.
    struct Progress {
        bytes32 subject; // hash of what is summed
        uint256 next; // where the next part begins
        uint256 carry; // what it begins with
    }

    error BadQuestion();
    error BadTelling();
    error BadProgram();
    error BadLabel();
    error BadLeaf(uint256 index);
    error BadTrace();
    error BadState(uint256 state);
    error BadTensor(uint256 operand);
    error BadOrder(uint256 next);

    /// @param progress Of the parts before; a part from 0 begins anew.
    /// @return answer What the evidence comes to.
    /// @return moved The progress after a part that is taken.
    function examine(Context calldata context, Progress calldata progress, bytes calldata evidence)
        external
        view
        returns (Answer answer, Progress memory moved);

    /// @return asked What a question asks for, in the words of the event Asked.
    function question(Context calldata context, bytes calldata proof)
        external
        view
        returns (bytes memory asked);

    /// @notice Reverts unless told is what was asked for.
    function compare(bytes calldata asked, bytes calldata told) external view;
}
