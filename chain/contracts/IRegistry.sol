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
        Closed // nothing but delivery, settling and withdrawing is left
    }

    enum Verdict {
        None,
        Right,
        False,
        Unavailable
    }

    enum SeatPhase {
        None,
        Sealed,
        Revealed,
        Closed // paid, absent, an alarm, or a right that was convicted
    }

    struct Terms {
        bytes32 jobId; // hash of the canonical job
        bytes32 programRoot;
        bytes32 dataRoot;
        bytes32 firstStateRoot;
        uint256 salt; // lets a client open the same job twice
        uint256 steps;
        uint256 segmentSteps; // at most 256
        uint256 rewardFrom; // of a segment, when the job opens
        uint256 rewardTo; // of a segment, from riseTime on
        uint256 riseTime;
        uint256 fee; // of one seat of one segment
        uint256 stake;
        uint256 bond; // of a seat, and the least of a claim
        uint256 queryFee; // pays the gas of a reply on the ledger
        uint256 seats; // how many rights make a covered segment final
        uint256 coveragePpm; // how many of a million segments are covered
        uint256 panelLeast; // how many entries a solver waits for
        bytes32 solvers; // root of an allow-list; zero: anybody
        bytes32 verifiers; // root of an allow-list; zero: anybody
        uint256 heldPpm; // of each reward until delivery
        uint256 segmentPeriod; // from one commit to the next
        uint256 sealPeriod;
        uint256 revealPeriod;
        uint256 claimPeriod; // after the reveals
        uint256 clock; // of each party of a dispute, for all of its moves
        uint256 deliveryPeriod;
        uint256 deadline; // the last moment of a commit
    }

    /// @notice A committed segment, as in the event Committed. The contract keeps only its hash.
    struct Segment {
        uint256 index;
        uint256 generation; // how often what was not final became void
        bytes32 root; // of the list of states
        uint256 steps;
        uint256 time;
        uint256 height; // of the block of the commit
        address solver;
        uint256 panel; // entries of the panel at the commit
        bool diverged; // the state after the last step is not finite
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
    error NotAllowed(); // not on the job's allow-list
    error WrongIndex(uint256 expected);
    error WrongSegment();
    error WrongSteps(uint256 most);
    error ZeroRoot();
    error ZeroAddress();
    error TooEarly(uint256 bound);
    error TooLate(uint256 bound);
    error TooLittle(uint256 reward);
    error TooLong(uint256 most); // a contact
    error SelfDealing();
    error Full(uint256 most);
    error PanelShort(uint256 entries);
    error NotDrawn();
    error AlreadyDrawn();
    error WrongPlace();
    error AlreadySealed();
    error NotSealed();
    error WrongReveal();
    error CoverageMissing(uint256 rights);
    error NotNeeded();
    error Engaged(uint256 until); // so many segments must be final, or the panel have answered
    error ClaimsOpen(uint256 count);
    error NothingOwed();
    error WithdrawFailed();

    ////////////////////////////////////////////////////////////////
    //                           Events                           //
    ////////////////////////////////////////////////////////////////

    event Opened(bytes32 indexed job, address indexed client, Terms terms, bytes contact);
    event Cancelled(bytes32 indexed job);
    event Rewound(bytes32 indexed job, uint256 index);
    event Accepted(
        bytes32 indexed job, address indexed solver, uint256 reward, uint256 due, bytes contact
    );
    event SteppedBack(bytes32 indexed job, address indexed solver, uint256 penalty);
    event Committed(bytes32 indexed job, Segment segment, bytes32[] states);
    event Enlisted(
        bytes32 indexed job, address indexed owner, uint256 entry, uint256 count, bytes contact
    );
    event Left(bytes32 indexed job, uint256 indexed entry, address owner);
    /// @notice An entry is gone: it left and was paid, was absent twice, alarmed or was convicted.
    event Gone(bytes32 indexed job, uint256 indexed entry, address owner, uint256 amount);
    event Announced(bytes32 indexed job, address indexed owner, bytes contact);
    event Drawn(bytes32 indexed job, uint256 indexed index, bytes32 seed, bool covered);
    /// @notice Another round of seats; from == to: the draw has ended.
    event Round(
        bytes32 indexed job,
        uint256 indexed index,
        uint256 generation,
        uint256 round,
        uint256 from,
        uint256 to,
        uint256 start
    );
    event SealedVerdict(
        bytes32 indexed job, uint256 indexed index, uint256 place, address owner, bytes32 seal
    );
    event Revealed(
        bytes32 indexed job,
        uint256 indexed index,
        uint256 place,
        address owner,
        Verdict verdict,
        bytes16 leaves,
        bytes32 salt
    );
    event Absent(bytes32 indexed job, uint256 indexed index, uint256 place, uint256 entry);
    /// @notice A right is paid.
    event Settled(
        bytes32 indexed job, uint256 indexed index, uint256 place, address owner, uint256 amount
    );
    /// @notice A right was convicted: its leaf is another.
    event Disproved(
        bytes32 indexed job,
        uint256 indexed index,
        bytes32 segment, // its hash: it may be void
        uint256 place,
        uint256 entry,
        address mover
    );
    event Finalized(bytes32 indexed job, uint256 indexed index, uint256 reward);
    event Voided(bytes32 indexed job, address indexed solver, uint256 resumeAt, uint256 penalty);
    event Convicted(bytes32 indexed job, address indexed solver, uint256 resumeAt);
    event Released(bytes32 indexed job, address indexed solver, uint256 penalty);
    event Closed(bytes32 indexed job, uint256 finalized);
    event Asked(bytes32 indexed job);
    event Delivered(bytes32 indexed job, address indexed to, uint256 amount);
    event Withdrawn(address indexed owner, address indexed to, uint256 amount);

    ////////////////////////////////////////////////////////////////
    //                     Moves of the client                    //
    ////////////////////////////////////////////////////////////////

    /// @notice Puts a job up, with all of its rewards and fees in escrow.
    /// @return job Its key, as jobKeyOn() says.
    function open(Terms calldata terms, bytes calldata contact)
        external
        payable
        returns (bytes32 job);

    /// @notice Takes back a job that no solver holds.
    function cancel(bytes32 job) external;

    /// @notice Makes segments from index on count as not final, and pays for them again.
    function rewind(bytes32 job, uint256 index) external payable;

    /// @notice Says that the model was delivered: the held part goes to the solver.
    function acknowledge(bytes32 job) external;

    /// @notice Asks the panel once whether the last state of a closed job can be had.
    function askPanel(bytes32 job, Segment calldata segment) external payable;

    ////////////////////////////////////////////////////////////////
    //                     Moves of the solver                    //
    ////////////////////////////////////////////////////////////////

    /// @notice Stakes and takes the job on, from its first segment that is not final.
    /// @param leastReward Refused where the reward of a segment is below it now.
    /// @param path Siblings of the sender in the allow-list of solvers.
    function accept(
        bytes32 job,
        uint256 leastReward,
        bytes32[] calldata path,
        bytes calldata contact
    ) external payable;

    /// @notice Gives the job back before the first commit, for a sixty-fourth of the stake.
    function stepBack(bytes32 job) external;

    /// @notice Commits the next segment by the list of its states.
    /// @param diverged The last state holds a NaN or infinity, and the training ends there.
    function commit(bytes32 job, uint256 index, bytes32[] calldata states, bool diverged)
        external;

    ////////////////////////////////////////////////////////////////
    //                   Moves of the verifiers                   //
    ////////////////////////////////////////////////////////////////

    /// @notice Appends entries to the panel, each with its bond: paid exactly, or without any value
    /// from what the sender is owed.
    function enlist(bytes32 job, uint256 count, bytes32[] calldata path, bytes calldata contact)
        external
        payable;

    /// @notice Leaves the panel; called again when the time is over, pays the bond.
    function leave(bytes32 job, uint256 entry) external;

    /// @notice Changes the address at which a party is found.
    function announce(bytes32 job, bytes calldata contact) external;

    /// @notice Fixes the seed of a segment: whether it is covered, and by whom.
    /// @param proof What the registry's seeds (ISeeds.sol) want to see: RLP of the header of the block
    /// that the seed comes from, or nothing where it was fixed.
    function draw(bytes32 job, Segment calldata segment, bytes calldata proof) external;

    /// @param segment Its hash.
    /// @param seal keccak256(owner, segment's hash, verdict, step, leaves, salt); half of it is kept
    function seal(bytes32 job, uint256 index, bytes32 segment, uint256 place, bytes32 seal)
        external;

    /// @notice Reveals right or unavailable. False is revealed by the referee's alarm().
    /// @param segment Its hash.
    /// @param leaves Of right: for each drawn leaf the first two bytes of its hash.
    function reveal(
        bytes32 job,
        uint256 index,
        bytes32 segment,
        uint256 place,
        Verdict verdict,
        bytes16 leaves,
        bytes32 salt
    ) external;

    ////////////////////////////////////////////////////////////////
    //                      Moves of anybody                      //
    ////////////////////////////////////////////////////////////////

    /// @notice Closes a round, and opens another where verdicts are missing.
    function renew(bytes32 job, Segment calldata segment) external;

    /// @notice Pays for the first segment that is not final.
    function finalize(bytes32 job, Segment calldata segment) external;

    /// @notice Ends the work of a solver whose states nobody can get.
    function forfeit(bytes32 job, Segment calldata segment) external;

    /// @notice Frees a job of a solver that is late.
    function release(bytes32 job) external;

    /// @notice Ends a job whose time is over.
    function expire(bytes32 job) external;

    /// @notice Pays the held part of a closed job when the time of the client is over.
    function deliver(bytes32 job) external;

    /// @notice Pays out all that the sender is owed.
    function withdraw(address to) external;

    ////////////////////////////////////////////////////////////////
    //                    Moves of the referee                    //
    ////////////////////////////////////////////////////////////////

    // What these are given in detail is between the two contracts: see Registry.sol.
}
