// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title IExaminer
/// @notice What the referee knows by computing: whether evidence convicts, what a question queries for,
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
        NotGuilty, // the evidence shows what the rules query for
        Upheld
    }

    error BadQuestion();
    error BadReply();
    error BadProgram();
    error BadLabel();
    error BadLeaf(uint256 index);
    error BadTrace();
    error BadState(uint256 state);
    error BadTensor(uint256 operand);
    error NotReplied();

    /// @param replied What compare() said to keep of the parts that the accused replied last.
    /// @return answer What the evidence comes to.
    function examine(Context calldata context, bytes32 replied, bytes calldata evidence)
        external
        view
        returns (Answer answer);

    /// @return queried What a question queries for, in the words of the event Asked.
    function question(Context calldata context, bytes calldata proof)
        external
        view
        returns (bytes memory queried);

    /// @notice Reverts unless replied is what was queried for.
    /// @return kept What evidence will need of it: of parts the hash of both, else 0.
    function compare(bytes calldata queried, bytes calldata replied)
        external
        view
        returns (bytes32 kept);
}
