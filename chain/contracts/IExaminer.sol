// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title IExaminer
/// @notice Computes for the referee: whether evidence convicts, what a query asks for, whether a
/// reply is right. docs/FORMATS.md has the bytes; proofs/dispute does the same in C.
/// @dev Keeps no state. Reverts with a reason where bytes prove nothing, so a player can try a move
/// by calling this contract first.
interface IExaminer {
    /// @notice What was committed: bytes are checked against it.
    struct Context {
        bytes32 programRoot; // of the job
        bytes32 constantsRoot;
        bytes32 dataRoot;
        bytes32 preState; // state roots before and after the step
        bytes32 postState;
        bytes32 traceRoot; // of the accused
        bytes32 batchRoot; // of the micro-batch that it committed to last
        bool diverged; // the training is said to have diverged at this step
        bytes32 replied; // what compare() returned for the accused's last reply
    }

    /// @notice A verdict "right", which stands on eight leaves of the segment's states.
    struct Right {
        address owner;
        bytes32 seed;
        bytes32 segment; // its hash
        bytes32 root; // of its states
        uint256 firstStep;
        uint256 steps;
    }

    enum Answer {
        NotGuilty, // the evidence shows what the rules give
        Upheld
    }

    error BadQuery();
    error BadReply();
    error BadProgram();
    error BadLabel();
    error BadLeaf(uint256 index);
    error BadTrace();
    error BadState(uint256 state);
    error BadTensor(uint256 operand);
    error NotReplied();

    function examine(Context calldata context, bytes calldata evidence)
        external
        view
        returns (Answer answer);

    /// @param ledgerQuery The query and the proof that the accused committed to its object.
    /// @return queried What the query asks for, as the event Queried has it.
    function query(Context calldata context, bytes calldata ledgerQuery)
        external
        view
        returns (bytes memory queried);

    /// @notice Reverts unless `replied` is what was queried.
    /// @return kept What evidence needs later: of parts the hash of both; of the list of a
    /// micro-batch, to which nobody had committed, its root; else 0.
    function compare(bytes calldata queried, bytes calldata replied)
        external
        view
        returns (bytes32 kept);

    /// @param index Which of the eight.
    /// @param shown The leaf and its path up to the root of the segment: docs/FORMATS.md, 9.7.
    /// @return said What an honest verdict says of it.
    function drawnLeaf(Right calldata verdict, uint256 index, bytes calldata shown)
        external
        view
        returns (bytes32 said);
}
