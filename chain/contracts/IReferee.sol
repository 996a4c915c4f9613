// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IRegistry} from "./IRegistry.sol";

/// @title IReferee
/// @notice Tries claims: who may move for how long, queries, replies, and evidence that convicts.
/// docs/PROTOCOL.md has it in prose; chain/local plays it in C.
interface IReferee {
    enum ClaimPhase {
        None,
        Waiting, // others come first; nobody's clock runs
        Called, // the solver must answer with the trace root of the step
        Tried, // queries, replies, evidence
        Closed
    }

    enum Turn {
        Claimant,
        Accused
    }

    enum Outcome {
        Upheld,
        Refuted,
        Lapsed
    }

    /// @notice What a claim is about, with the proof that the solver committed to both states.
    struct Case {
        address client;
        uint256 salt;
        bytes32[7] header; // of the job, 216 bytes
        IRegistry.Segment segment;
        IRegistry.Segment previous; // the one before; not used for segment 0 and step > 0
        uint256 step; // within the segment
        bytes32 preState;
        bytes32 postState;
        bytes32[] prePath; // siblings of preState; none for the first state
        bytes32[] postPath;
    }

    /// @notice What moves in a dispute show again; the dispute keeps only hashes of it.
    struct Subject {
        address client;
        uint256 salt;
        bytes32[7] header;
        uint256 step;
        bytes32 preState;
        bytes32 postState;
    }

    /// @notice The part of a case that is wrong.
    enum Part {
        None,
        Job, // client, salt and header are not the job of the claim
        Segment,
        Subject, // step and states are not those of the claim
        Previous,
        PreState, // not under the root of its segment
        PostState
    }

    error WrongTurn(uint256 turn);
    error WrongCase(uint256 part);
    error NotSealed();
    error SealExists();
    error ClaimExists(); // the sender is a claimant already
    error NotLapsed();
    error NotPaid(uint256 open); // disputes that a pot waits for
    error BadQuery();
    error NotQueried();
    error BadReply();
    error BadEvidence();
    error NotGuilty();

    /// @notice Somebody will claim or challenge something.
    event Sealed(bytes32 indexed seal);
    /// @notice A claim is open: a new dispute, or one more claimant of a live one.
    event Claimed(
        bytes32 indexed job,
        bytes32 indexed claim,
        address indexed claimant,
        uint256 index,
        uint256 step,
        bytes32 preState,
        bytes32 postState,
        uint256 rank,
        uint256 bond
    );
    /// @notice Whose move it is, and until when. Also the first of a dispute that waited.
    event TurnPassed(
        bytes32 indexed claim, ClaimPhase phase, Turn turn, address lead, uint256 deadline
    );
    /// @notice The solver told the trace root of the step.
    event Answered(bytes32 indexed claim, bytes32 traceRoot);
    /// @notice A claimant's clock ran out.
    event Defaulted(bytes32 indexed claim, address indexed claimant);
    /// @notice A dispute is closed.
    event Ruled(bytes32 indexed claim, Outcome outcome);
    /// @notice The stake of a conviction is paid.
    event Paid(bytes32 indexed job, uint256 generation, address claimant, uint256 amount);
    /// @notice The solver is asked, and its clock runs.
    event Queried(bytes32 indexed claim, bytes queried);
    /// @notice The solver showed what it was asked for.
    event Replied(bytes32 indexed claim, bytes replied);

    /// @notice Announces a claim or a challenge without revealing it, so that nobody can file it first.
    /// @param seal keccak256(sender, subject, salt); it lives for 32 blocks
    function sealClaim(bytes32 seal) external;

    /// @notice Claims that a step does not lead from one committed state to the next. Its bond comes
    /// with it, or without any value from what the sender is owed.
    function claim(bytes32 job, Case calldata shown, bytes32 salt)
        external
        payable
        returns (bytes32 key);

    /// @notice Reveals the verdict "false at this step" of a seat, whose bond backs the claim.
    function alarm(bytes32 job, Case calldata shown, uint256 place, bytes32 salt)
        external
        returns (bytes32 key);

    /// @notice Answers a claim with the trace root of its step.
    function answer(bytes32 claim, bytes32 traceRoot) external;

    /// @notice Queries the solver for a part of its trace, or of the state after the step.
    function query(bytes32 claim, Subject calldata shown, bytes calldata ledgerQuery)
        external
        payable;

    /// @notice Replies with what was queried.
    function reply(bytes32 claim, bytes calldata queried, bytes calldata replied) external;

    /// @notice Shows evidence: the claim is upheld, or the move reverts.
    function convict(bytes32 claim, Subject calldata shown, bytes calldata evidence) external;

    /// @notice Ends the turn of a party whose clock ran out.
    function timeout(bytes32 claim) external;

    /// @notice Ends a claim that a conviction with a lower rank has overtaken.
    function lapse(bytes32 claim) external;

    /// @notice Pays the stake of a conviction when no dispute of its generation is open.
    function pay(bytes32 job, uint256 generation) external;

    /// @notice Shows that one of the eight leaves of a verdict "right" is another, while the segment
    /// stands and is not final. Its seal was made a block before: of
    /// keccak256("challenge", the segment's hash, place, index).
    /// @param leaves As they were revealed, with the salt.
    /// @param index Which of the eight.
    /// @param shown The leaf and its path up to the root of the segment.
    /// @param sealSalt The salt of the sender's seal.
    function challenge(
        bytes32 job,
        IRegistry.Segment calldata segment,
        uint256 place,
        bytes16 leaves,
        bytes32 salt,
        uint256 index,
        bytes calldata shown,
        bytes32 sealSalt
    ) external;
}
