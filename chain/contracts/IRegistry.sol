// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @notice The key of a job. It names the job on one registry of one chain, and nothing elsewhere.
function jobKeyOn(address registry, address client, bytes32 jobId, uint256 salt)
    view
    returns (bytes32)
{
    return keccak256(abi.encode(block.chainid, registry, client, jobId, salt));
}

/// @title IRegistry
/// @notice The game of a training job: what is agreed, who may move, what a move costs and pays.
/// docs/PROTOCOL.md has the same game in prose; the embedded ledger plays it in C.
/// @dev Amounts are wei below 2^96, times are seconds, indices count segments of one job from 0.
interface IRegistry {
    ////////////////////////////////////////////////////////////////
    //                           Types                            //
    ////////////////////////////////////////////////////////////////

    enum Phase {
        // Zero is "does not exist", so an unknown key can never look like a live job.
        None,
        Open, // the reward lies in escrow, a solver may accept
        Running, // a solver has staked and commits segments
        Closed // nothing but settling and withdrawing is left
    }

    enum ClaimPhase {
        None,
        Called, // the solver must answer with the trace root of the step
        Tried, // the referee says whose turn it is
        Closed
    }

    enum Turn {
        Claimant,
        Accused
    }

    enum AttestationPhase {
        None,
        Sealed,
        Revealed,
        Closed // paid out, forfeited or convicted
    }

    struct Terms {
        bytes32 jobId; // hash of the canonical job
        bytes32 programRoot;
        bytes32 dataRoot;
        bytes32 firstStateRoot;
        uint256 salt; // lets a client open the same job twice
        uint256 steps;
        uint256 segmentSteps;
        uint256 segmentReward;
        uint256 attestFee; // of one attestation of one segment
        uint256 stake;
        uint256 claimBond;
        uint256 attestBond;
        uint256 attestors; // how many a covered segment needs, and the most that are paid
        uint256 coveragePpm; // how many of a million segments must be attested
        uint256 segmentPeriod; // from one commit to the next
        uint256 attestPeriod;
        uint256 revealPeriod;
        uint256 claimPeriod; // after the reveals
        uint256 responsePeriod; // of one turn in a dispute
        uint256 deadline; // the last moment of a commit
    }

    /// @notice A committed segment, as in the event Committed. The contract keeps only its hash.
    struct Segment {
        uint256 index;
        uint256 generation; // how many convictions the job had seen
        bytes32 root;
        uint256 steps;
        uint256 time;
        uint256 height; // of the block of the commit
        address solver;
    }

    /// @notice A claim that is being tried, as the referee needs to know it.
    struct Trial {
        address claimant;
        address accused; // the solver or the attestor
        address attestor; // zero: the solver is accused
        Turn turn;
        bytes32 job;
        bytes32 segment; // hash of the segment
        bytes32 traceRoot; // of the step, by the accused
        bytes32 seed; // of the segment: which step an attestor drew
        bool diverged; // the segment ends a training that is said to have diverged
    }

    ////////////////////////////////////////////////////////////////
    //                          Refusals                          //
    ////////////////////////////////////////////////////////////////

    /// @param field The position in Terms, from 0.
    error BadTerms(uint256 field);
    error WrongValue(uint256 expected);
    error JobExists();
    error WrongPhase(uint256 phase);
    error NotYours(address expected);
    error WrongIndex(uint256 expected);
    error WrongSegment();
    error WrongSteps(uint256 most);
    error ZeroRoot();
    error ZeroAddress();
    error TooEarly(uint256 bound);
    error TooLate(uint256 bound);
    error SelfDealing();
    error Full();
    error AlreadyAttested();
    error NotSealed();
    error NotRevealed();
    error WrongReveal();
    error CoverageMissing(uint256 revealed);
    error NotNeeded();
    error ClaimsOpen(uint256 count);
    error ClaimExists();
    error NotLapsed();
    error OutOfTurns();
    error NothingOwed();
    error WithdrawFailed();

    ////////////////////////////////////////////////////////////////
    //                           Events                           //
    ////////////////////////////////////////////////////////////////

    event Opened(bytes32 indexed job, address indexed client, Terms terms);
    event Cancelled(bytes32 indexed job);
    event Accepted(bytes32 indexed job, address indexed solver, uint256 due);
    event Committed(
        bytes32 indexed job,
        uint256 indexed index,
        uint256 generation,
        bytes32 root,
        uint256 steps,
        uint256 time,
        address solver,
        bool diverged
    );
    event Drawn(bytes32 indexed job, uint256 indexed index, bytes32 seed, bool mandatory);
    event Attested(
        bytes32 indexed job,
        uint256 indexed index,
        address indexed attestor,
        uint256 step,
        bytes32 seal
    );
    event Revealed(
        bytes32 indexed job, uint256 indexed index, address indexed attestor, bytes32 traceRoot
    );
    event Renewed(bytes32 indexed job, uint256 indexed index, uint256 time);
    event Settled(
        bytes32 indexed job,
        uint256 indexed index,
        address indexed attestor,
        address payee,
        uint256 amount
    );
    event Sealed(bytes32 indexed seal);
    event Claimed(
        bytes32 indexed job,
        uint256 indexed index,
        bytes32 indexed claim,
        address claimant,
        uint256 step,
        bytes32 preState,
        bytes32 postState,
        uint256 deadline
    );
    event Accused(
        bytes32 indexed job,
        uint256 indexed index,
        bytes32 indexed claim,
        address claimant,
        address attestor,
        uint256 deadline
    );
    event Answered(bytes32 indexed claim, bytes32 traceRoot, uint256 deadline);
    event TurnPassed(bytes32 indexed claim, Turn turn, uint256 deadline);
    event Ruled(bytes32 indexed claim, bool upheld);
    event Lapsed(bytes32 indexed claim);
    event Convicted(bytes32 indexed job, address indexed solver, uint256 resumeAt);
    event Finalized(bytes32 indexed job, uint256 indexed index);
    event Released(bytes32 indexed job, address indexed solver, uint256 penalty);
    event Closed(bytes32 indexed job, uint256 finalized);
    event Withdrawn(address indexed owner, address indexed to, uint256 amount);

    ////////////////////////////////////////////////////////////////
    //                     Moves of the client                    //
    ////////////////////////////////////////////////////////////////

    /// @notice Puts a job up, with all of its rewards and fees in escrow.
    /// @return job Its key, as jobKeyOn() says.
    function open(Terms calldata terms) external payable returns (bytes32 job);

    /// @notice Takes back a job that no solver holds.
    function cancel(bytes32 job) external;

    ////////////////////////////////////////////////////////////////
    //                     Moves of the solver                    //
    ////////////////////////////////////////////////////////////////

    /// @notice Stakes and takes the job on, from its first segment that is not final.
    function accept(bytes32 job) external payable;

    /// @notice Commits the next segment.
    function commit(bytes32 job, uint256 index, bytes32 root) external;

    /// @notice Commits the last segment of a training that ended in a NaN or infinity.
    /// @param steps The number of steps of the segment; the state after the last is not finite.
    function commitDiverged(bytes32 job, uint256 index, bytes32 root, uint256 steps) external;

    /// @notice Answers a claim with the trace root of its step.
    function answer(bytes32 claim, bytes32 traceRoot) external;

    ////////////////////////////////////////////////////////////////
    //                   Moves of the verifiers                   //
    ////////////////////////////////////////////////////////////////

    /// @notice Fixes the randomness of a segment: which step each attestor checks, and whether the
    /// segment must be covered. It comes from the block after the commit's.
    function draw(bytes32 job, Segment calldata segment) external;

    /// @param seal keccak256(attestor, segment's hash, trace root of the step that was drawn)
    function attest(bytes32 job, Segment calldata segment, bytes32 seal) external payable;

    function reveal(bytes32 job, Segment calldata segment, bytes32 traceRoot) external;

    /// @notice Announces a claim without revealing it, so that nobody can file it first.
    /// @param seal keccak256(claim's key, salt)
    function sealClaim(bytes32 seal) external;

    /// @notice Claims that step `step` (counted within the segment) does not lead from preState to
    /// postState, two states that the solver committed. The referee checks that.
    function claim(
        bytes32 job,
        Segment calldata segment,
        uint256 step,
        bytes32 preState,
        bytes32 postState,
        bytes32 salt
    ) external payable returns (bytes32 key);

    /// @notice Claims that an attestor revealed a false trace root.
    function accuse(bytes32 job, Segment calldata segment, address attestor, bytes32 salt)
        external
        payable
        returns (bytes32 key);

    ////////////////////////////////////////////////////////////////
    //                    Moves of the referee                    //
    ////////////////////////////////////////////////////////////////

    /// @notice Gives a party its next turn of a dispute.
    function passTurn(bytes32 claim, Turn turn) external;

    /// @notice A claim that the referee may judge now. Reverts as the referee's moves would.
    function trial(bytes32 claim) external view returns (Trial memory);

    /// @notice The hash of the segment that was committed last at an index.
    function segments(bytes32 job, uint256 index) external view returns (bytes32 hash);

    /// @notice Ends a dispute.
    function rule(bytes32 claim, bool upheld) external;

    ////////////////////////////////////////////////////////////////
    //                      Moves of anybody                      //
    ////////////////////////////////////////////////////////////////

    /// @notice Ends a dispute against the party that let its turn pass.
    function timeout(bytes32 claim) external;

    /// @notice Gives back the bond of a claim whose accused was convicted by another claim.
    function lapse(bytes32 claim) external;

    /// @notice Opens another round of attestations where too few were revealed.
    function renew(bytes32 job, Segment calldata segment) external;

    /// @notice Pays for the first segment that is not final.
    function finalize(bytes32 job, Segment calldata segment) external;

    /// @notice Pays an attestor, or takes the bond of one that did not reveal.
    function settle(bytes32 job, Segment calldata segment, address attestor) external;

    /// @notice Frees a job of a solver that is late.
    function release(bytes32 job) external;

    /// @notice Ends a job whose time is over.
    function expire(bytes32 job) external;

    /// @notice Pays out all that the sender is owed.
    function withdraw(address to) external;
}
