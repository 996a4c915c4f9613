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
        Open, // the price lies in escrow, verifiers may enlist, a solver may accept
        Running, // a solver has staked and commits segments
        Closed // nothing but departing and withdrawing is left
    }

    enum Verdict {
        None,
        Right,
        False
    }

    enum SeatPhase {
        None,
        Sealed,
        Revealed, // right
        Unseen, // it says that it could not get the states
        Closed // silent, an alarm, or a right that was disproved
    }

    struct Terms {
        bytes32 jobId; // hash of the canonical job
        bytes32 programRoot;
        bytes32 dataRoot;
        bytes32 firstStateRoot;
        uint256 salt; // lets a client open the same job twice
        uint256 steps;
        uint256 segmentSteps; // at most 256
        uint256 reward; // of a segment
        uint256 fee; // of one seat of one segment
        uint256 stake;
        uint256 bond; // of a seat, and the least of a claim
        uint256 queryFee; // pays the gas of a reply on the ledger
        uint256 seats; // how many rights make a covered segment final
        uint256 coveragePpm; // how many of a million segments are covered
        uint256 panelLeast; // how many entries a solver waits for
        bytes32 solvers; // root of an allow-list; zero: anybody
        bytes32 verifiers; // root of an allow-list; zero: anybody
        address keeper; // says for the client that the states are there; zero: nobody
        uint256 segmentPeriod; // from one commit to the next
        uint256 sealPeriod;
        uint256 revealPeriod;
        uint256 claimPeriod; // after the reveals
        uint256 clock; // of each party of a dispute, for all of its moves
        uint256 deadline; // the last moment of a commit
    }

    /// @notice A committed segment, as in the event Committed. The contract keeps only its hash.
    struct Segment {
        uint256 index;
        uint256 generation; // how often the job was open before
        bytes32 root; // of the list of states
        uint256 steps;
        uint256 time;
        uint256 height; // of the block of the commit
        address solver;
        uint256 panel; // entries of this generation at the commit
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
    error TooLong(uint256 most); // a contact or a vouch
    error SelfDealing();
    error Full(uint256 most);
    error PanelShort(uint256 entries);
    error NotDrawn();
    error AlreadyDrawn();
    error WrongPlace();
    error AlreadySealed();
    error NotSealed();
    error WrongReveal();
    error NotNeeded();
    error Engaged(uint256 index); // what stands in the way: this segment is not final yet
    error ClaimsOpen(uint256 count);
    error Barred(); // until the client resumes
    error StandsRefused(uint256 until); // client or keeper refused what is not final
    error WrongVouch();
    error WrongToken(); // it did not move the amount
    error NothingOwed();
    error WithdrawFailed();

    ////////////////////////////////////////////////////////////////
    //                           Events                           //
    ////////////////////////////////////////////////////////////////

    /// @notice A job is up, with its price in escrow.
    event Opened(bytes32 indexed job, address indexed client, Terms terms, bytes contact);
    /// @notice The client put back what a void burned.
    event Resumed(bytes32 indexed job, uint256 escrow, uint256 pool);
    /// @notice So many segments are all: the client wants no more.
    event Stopped(bytes32 indexed job, uint256 segments);
    /// @notice Client or keeper says that what is not final and not vouched cannot be fetched.
    /// @param until Claims may be opened until then; afterwards settle() voids.
    event Refused(bytes32 indexed job, address indexed by, uint256 until);
    /// @notice A solver has staked.
    /// @param due Until then its first commit must come.
    event Accepted(bytes32 indexed job, address indexed solver, uint256 due, bytes contact);
    /// @notice A segment is committed, by the states after each of its steps.
    event Committed(bytes32 indexed job, Segment segment, bytes32[] states);
    /// @notice Entries joined the panel of this generation.
    /// @param entry The number of the first of them.
    event Enlisted(
        bytes32 indexed job,
        address indexed owner,
        uint256 generation,
        uint256 entry,
        uint256 count,
        bytes contact
    );
    /// @notice An entry departed, and the last one has its number now.
    event Moved(bytes32 indexed job, uint256 generation, uint256 from, uint256 to);
    /// @notice An entry is gone: it departed, raised an alarm or was disproved.
    /// @param amount What of its bond its owner is owed now.
    event Gone(
        bytes32 indexed job, uint256 generation, uint256 entry, address owner, uint256 amount
    );
    /// @notice A party is found at another address from now on.
    event Announced(bytes32 indexed job, address indexed owner, bytes contact);
    /// @notice The seed of a segment is known, and with it whether seats check it.
    event Drawn(bytes32 indexed job, uint256 indexed index, bytes32 seed, bool covered);
    /// @notice A round is over, and rights are missing: draw() opens another one.
    /// @param height Of this block: the seed of the next round is that of a commit in it,
    /// @param time at this time.
    event RoundOver(
        bytes32 indexed job,
        uint256 indexed index,
        uint256 height,
        uint256 time
    );
    /// @notice A round of seats, at these places, which follow from this seed.
    event Round(
        bytes32 indexed job,
        uint256 indexed index,
        uint256 round,
        uint256 from,
        uint256 to,
        uint256 start,
        bytes32 seed
    );
    /// @notice A seat has a verdict, and shows it later.
    event SealedVerdict(
        bytes32 indexed job, uint256 indexed index, uint256 place, address owner, bytes32 seal
    );
    /// @notice A seat showed its verdict. False is an alarm: a claim follows.
    event Revealed(
        bytes32 indexed job,
        uint256 indexed index,
        uint256 place,
        address owner,
        Verdict verdict,
        bytes16 leaves,
        bytes32 salt
    );
    /// @notice A seat says that it could not get the states of the segment.
    event Unseen(bytes32 indexed job, uint256 indexed index, uint256 place, address owner);
    /// @notice The keeper says that it has the states of the segment, and serves them.
    event Vouched(bytes32 indexed job, uint256 indexed index, bytes32 segment);
    /// @notice A seat is paid: a right its fee, and where a void was decided, who said unseen a
    /// part of its gas.
    event FeePaid(
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
    /// @notice A leg is final and paid.
    /// @param index Its last segment.
    /// @param count Of its segments.
    event Finalized(bytes32 indexed job, uint256 indexed index, uint256 count, uint256 reward);
    /// @notice What was committed and not final is void: its states cannot be fetched.
    /// @param resumeAt The first segment of the next solver.
    /// @param count Of the segments whose price is burned, if there is that much.
    /// @param stake Burned of the solver's stake,
    /// @param escrow of the client's rewards,
    /// @param pool and of the fees.
    event Voided(
        bytes32 indexed job,
        address indexed solver,
        uint256 resumeAt,
        uint256 count,
        uint256 stake,
        uint256 escrow,
        uint256 pool
    );
    /// @notice The solver was proven wrong. What it committed and what is not final is void.
    event Convicted(bytes32 indexed job, address indexed solver, uint256 resumeAt);
    /// @notice A solver was late: it is gone, and so is what it left behind the last leg.
    event Released(
        bytes32 indexed job, address indexed solver, uint256 resumeAt, uint256 penalty
    );
    /// @notice The job has ended, with so many segments final.
    event Closed(bytes32 indexed job, uint256 finalized);
    /// @notice All that an owner was owed is paid out.
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

    /// @notice Ends a job that no solver has, and gives the client what is left. After the deadline
    /// anybody may.
    function close(bytes32 job) external;

    /// @notice Puts back what a void burned, so that a solver may accept again.
    function resume(bytes32 job) external payable;

    /// @notice Makes the next segment the last one. What the others would cost is owed to the
    /// client.
    function stop(bytes32 job) external;

    /// @notice Says that the states cannot be fetched. Also the keeper's move. The solver commits no
    /// more, and what is not vouched and not yet through its claim time becomes void.
    function refuse(bytes32 job) external;

    ////////////////////////////////////////////////////////////////
    //                     Moves of the solver                    //
    ////////////////////////////////////////////////////////////////

    /// @notice Stakes and takes the job on, from its first segment that is not final.
    /// @param path Siblings of the sender in the allow-list of solvers.
    function accept(bytes32 job, bytes32[] calldata path, bytes calldata contact)
        external
        payable;

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

    /// @notice Takes an entry's bond back: while no solver has the job, when it is closed, and of
    /// any earlier generation. The last entry takes its number.
    function depart(bytes32 job, uint256 generation, uint256 entry) external;

    /// @notice Changes the address at which a party is found.
    function announce(bytes32 job, bytes calldata contact) external;

    /// @notice Fixes the seed of the next segment: whether it is covered, and by whom. Of a segment
    /// that is drawn, the seed of the next round, where settle() closed one and rights are missing.
    /// @param proof What the registry's seeds (ISeeds.sol) want to see: RLP of the header of the
    /// block that the seed comes from, or nothing where it was fixed.
    function draw(bytes32 job, Segment calldata segment, bytes calldata proof) external;

    /// @notice Seals the verdict of a seat of the last round.
    /// @param segment Its hash.
    /// @param seal keccak256(owner, segment's hash, verdict, step, leaves, salt); half of it is
    /// kept
    function seal(bytes32 job, uint256 index, bytes32 segment, uint256 place, bytes32 seal)
        external;

    /// @notice Reveals right. False is revealed by the referee's alarm().
    /// @param segment Its hash.
    /// @param leaves For each drawn leaf the first two bytes of its hash.
    function reveal(
        bytes32 job,
        uint256 index,
        bytes32 segment,
        uint256 place,
        bytes16 leaves,
        bytes32 salt
    ) external;

    /// @notice Says, in place of a seal, that the states of the segment could not be fetched.
    /// @param segment Its hash.
    function unseen(bytes32 job, uint256 index, bytes32 segment, uint256 place) external;

    ////////////////////////////////////////////////////////////////
    //                      Moves of anybody                      //
    ////////////////////////////////////////////////////////////////

    /// @notice Does all that is due about a covered segment: notes a vouch, closes its round so that
    /// draw() opens another, pays its leg or voids what is not final.
    /// @param vouch The keeper's signature over Vouch(job, segment's hash), or nothing.
    function settle(bytes32 job, Segment calldata segment, bytes calldata vouch) external;

    /// @notice Frees a job of a solver that is late.
    function release(bytes32 job) external;

    /// @notice Pays out all that the sender is owed.
    function withdraw(address to) external;

    ////////////////////////////////////////////////////////////////
    //                    Moves of the referee                    //
    ////////////////////////////////////////////////////////////////

    // What these are given in detail is between the two contracts: see Registry.sol.
}
