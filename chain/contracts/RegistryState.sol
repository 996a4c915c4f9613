// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Commitments} from "./Commitments.sol";
import {IRegistry} from "./IRegistry.sol";

/// @title RegistryState
/// @notice What the registry keeps, and what all of its moves ask and do with it.
abstract contract RegistryState is IRegistry {
    ////////////////////////////////////////////////////////////////
    //                         Constants                          //
    ////////////////////////////////////////////////////////////////

    uint256 internal constant AMOUNT_MAX = type(uint96).max;
    uint256 internal constant BOND_MAX = 2 ** 85 - 1; // five of them fit where a claim keeps one
    uint256 internal constant SEGMENTS_MAX = 2 ** 24 - 1;
    uint256 internal constant SEGMENT_STEPS_MAX = 256;
    uint256 internal constant PERIOD_MAX = 2 ** 24 - 1;
    uint256 internal constant TIME_MAX = 2 ** 40 - 1;
    uint256 internal constant PPM = 1_000_000;
    uint256 internal constant HELD_PPM_MAX = 500_000;
    uint256 internal constant SEATS_MAX = 8;
    uint256 internal constant PLACES = 64; // of a draw
    uint256 internal constant PANEL_LEAST_MAX = 255;
    uint256 internal constant CONTACT_MAX = 256;
    uint256 internal constant PATH_MAX = 32; // siblings in an allow-list
    uint256 internal constant LATE_SHARE = 8; // a solver that is late or voided loses an eighth
    uint256 internal constant BACK_SHARE = 64; // one that steps back, a sixty-fourth

    ////////////////////////////////////////////////////////////////
    //                           State                            //
    ////////////////////////////////////////////////////////////////

    struct Job {
        // One slot for what every move about a segment asks.
        Phase phase;
        bool ended; // the last committed segment says that the training diverged
        uint24 generation; // how often what was not final became void
        uint24 committed;
        uint40 due;
        uint24 segments;
        uint24 segmentPeriod;
        uint24 sealPeriod;
        uint24 revealPeriod;
        uint24 claimPeriod;
        uint8 seats;
        uint16 entries; // of the panel, also those that are gone
        // What a commit asks too.
        address solver;
        uint40 steps;
        uint16 segmentSteps;
        uint40 deadline;
        // What a segment's end changes.
        uint96 held;
        uint96 pool; // pays the fees
        uint24 finalized;
        bool asked; // the client asked the panel for the last state
        // What draws and ends ask.
        uint96 reward; // of this solver
        uint96 rewardTo;
        uint24 coveragePpm;
        uint24 heldPpm;
        uint8 panelLeast;
        address client;
        uint96 fee;
        // What claims ask and change.
        uint96 stake;
        uint96 bond;
        uint24 clock;
        uint24 openClaims; // live disputes of this generation
        uint16 active; // entries that may be drawn
        uint96 queryFee;
        uint40 acceptedAt; // of this solver, too
        uint24 start; // the first segment that this solver could commit
        // The rest.
        uint96 rewardFrom;
        uint24 riseTime;
        uint40 openedAt; // also each return to Open
        uint40 closedAt;
        uint24 deliveryPeriod;
        bytes32 solvers;
        bytes32 verifiers;
    }

    struct Progress {
        Phase phase;
        address client;
        address solver;
        uint256 generation;
        uint256 segments;
        uint256 committed;
        uint256 finalized;
        uint256 openClaims;
        uint256 entries;
        uint256 active;
        uint256 openedAt;
        uint256 acceptedAt;
        uint256 closedAt;
        uint256 due;
        uint256 reward;
        uint256 held;
        bool ended;
    }

    struct Entry {
        address owner;
        uint8 strikes;
        bool left; // is drawn no more
        bool gone; // its bond was paid or taken
        uint24 generation; // when it left,
        uint24 until; // ... and the segments committed then: it may sit in them
    }

    /// @dev One slot.
    struct Tally {
        uint40 start; // of the last round, or the commit's time where not covered; zero: not drawn
        uint16 panel; // entries that can be drawn
        uint8 round;
        uint8 from; // the places of the last round
        uint8 to;
        uint8 drawn; // seats of all rounds
        uint8 rights;
        uint8 unavailables;
        uint8 absents;
        bool covered;
        bool closed; // the last round, by renew()
        bool asleep; // the draw has ended without a score; the claim time began again
        uint64 seed; // of a covered segment
        uint48 near; // the first places, four bits each
    }

    /// @notice What the referee must know of a segment that a claim can be about.
    struct Standing {
        bytes32 hash;
        uint256 generation;
        uint256 claimEnd;
        uint256 openClaims; // of the job: all of them share one queue
        uint256 bond;
        uint256 queryFee;
        uint256 clock;
        uint256 firstStep; // of the segment
    }

    /// @notice A verdict "right" that can be disproved.
    struct Shown {
        bytes32 hash; // of the segment
        bytes32 seed;
        address owner;
        uint256 firstStep;
    }

    /// @notice What was burned; it stays here.
    uint256 public burned;

    mapping(bytes32 job => Job) internal _jobs;
    mapping(bytes32 job => mapping(uint256 index => bytes32 hash)) public segments;
    mapping(bytes32 job => mapping(uint256 entry => Entry)) public entries;
    mapping(bytes32 segment => Tally) internal _tallies;
    mapping(bytes32 segment => uint256) internal _farPlaces; // those behind the first
    /// @dev The seals of two seats in a slot, in the order of the draw.
    mapping(bytes32 segment => uint256[PLACES / 2] pairs) internal _seats;
    mapping(address owner => uint256 amount) public owed;

    ////////////////////////////////////////////////////////////////
    //                      Internal: terms                       //
    ////////////////////////////////////////////////////////////////

    /// @dev Returns the number of segments. The numbers in BadTerms are positions in Terms.
    function _checkTerms(Terms calldata terms) internal view returns (uint256 count) {
        _checkRange(uint256(terms.jobId), 1, type(uint256).max, 0);
        _checkRange(terms.steps, 1, TIME_MAX, 5);
        _checkRange(terms.segmentSteps, 1, SEGMENT_STEPS_MAX, 6);
        count = (terms.steps + terms.segmentSteps - 1) / terms.segmentSteps;
        _checkRange(count, 1, SEGMENTS_MAX, 6);
        uint256 from = terms.rewardFrom;
        _checkRange(terms.rewardTo, from == 0 ? 1 : from, AMOUNT_MAX, 8);
        _checkRange(terms.riseTime, from == terms.rewardTo ? 0 : 1, PERIOD_MAX, 9);
        _checkRange(terms.fee, 0, AMOUNT_MAX, 10);
        _checkRange(terms.stake, 1, AMOUNT_MAX, 11);
        uint256 bondMost = terms.stake < BOND_MAX ? terms.stake : BOND_MAX;
        _checkRange(terms.bond, terms.fee == 0 ? 1 : 4 * terms.fee, bondMost, 12);
        _checkRange(terms.queryFee, 0, AMOUNT_MAX, 13);
        _checkRange(terms.seats, 0, SEATS_MAX, 14);
        _checkRange(terms.coveragePpm, 0, terms.seats == 0 ? 0 : PPM, 15);
        _checkRange(terms.panelLeast, terms.seats, PANEL_LEAST_MAX, 16);
        _checkRange(terms.heldPpm, 0, HELD_PPM_MAX, 19);
        _checkRange(terms.segmentPeriod, 1, PERIOD_MAX, 20);
        _checkRange(terms.sealPeriod, 1, PERIOD_MAX, 21);
        _checkRange(terms.revealPeriod, 1, PERIOD_MAX, 22);
        _checkRange(terms.claimPeriod, 1, PERIOD_MAX, 23);
        _checkRange(terms.clock, 1, PERIOD_MAX, 24);
        _checkRange(terms.deliveryPeriod, 1, PERIOD_MAX, 25);
        _checkRange(terms.deadline, _now() + 1, TIME_MAX / 2, 26);
    }

    function _checkRange(uint256 value, uint256 least, uint256 most, uint256 field) internal pure {
        if (value < least || value > most) revert BadTerms(field);
    }

    function _storeTerms(Job storage job, Terms calldata terms) internal {
        job.seats = uint8(terms.seats);
        job.panelLeast = uint8(terms.panelLeast);
        job.steps = uint40(terms.steps);
        job.segmentSteps = uint16(terms.segmentSteps);
        job.deadline = uint40(terms.deadline);
        job.segmentPeriod = uint24(terms.segmentPeriod);
        job.sealPeriod = uint24(terms.sealPeriod);
        job.revealPeriod = uint24(terms.revealPeriod);
        job.claimPeriod = uint24(terms.claimPeriod);
        job.clock = uint24(terms.clock);
        job.stake = uint96(terms.stake);
        job.bond = uint96(terms.bond);
        job.coveragePpm = uint24(terms.coveragePpm);
        job.heldPpm = uint24(terms.heldPpm);
        job.rewardFrom = uint96(terms.rewardFrom);
        job.rewardTo = uint96(terms.rewardTo);
        job.riseTime = uint24(terms.riseTime);
        job.fee = uint96(terms.fee);
        job.queryFee = uint96(terms.queryFee);
        job.deliveryPeriod = uint24(terms.deliveryPeriod);
        job.solvers = terms.solvers;
        job.verifiers = terms.verifiers;
    }

    /// @dev Fees for so many segments: of those that may well be covered, twice.
    function _pool(uint256 count, uint256 seatCount, uint256 fee, uint256 coveragePpm)
        internal
        pure
        returns (uint256)
    {
        uint256 covered = 3 + count * coveragePpm * 3 / (2 * PPM);
        return 2 * seatCount * fee * (covered < count ? covered : count);
    }

    function _rewardNow(Job storage job) internal view returns (uint256) {
        uint256 rise = job.riseTime;
        uint256 passed = _now() - job.openedAt;
        if (passed >= rise) return job.rewardTo;
        return job.rewardFrom + (uint256(job.rewardTo) - job.rewardFrom) * passed / rise;
    }

    ////////////////////////////////////////////////////////////////
    //                      Internal: checks                      //
    ////////////////////////////////////////////////////////////////

    function _requirePhase(Job storage job, Phase phase) internal view {
        if (job.phase != phase) revert WrongPhase(uint256(job.phase));
    }

    function _requireSender(address expected) internal view {
        if (msg.sender != expected) revert NotYours(expected);
    }

    function _requireValue(uint256 expected) internal view {
        if (msg.value != expected) revert WrongValue(expected);
    }

    /// @dev A bond comes with the move, or from what its sender is owed: never a part from each.
    function _takeBond(uint256 amount) internal {
        if (msg.value == 0) _spend(msg.sender, amount);
        else _requireValue(amount);
    }

    function _spend(address owner, uint256 amount) internal {
        if (owed[owner] < amount) revert WrongValue(amount);
        owed[owner] -= amount;
    }

    function _requireNotAfter(uint256 time) internal view {
        if (_now() > time) revert TooLate(time);
    }

    function _requireAfter(uint256 time) internal view {
        if (_now() <= time) revert TooEarly(time);
    }

    function _requireShort(bytes calldata contact) internal pure {
        if (contact.length > CONTACT_MAX) revert TooLong(CONTACT_MAX);
    }

    /// @dev Is the sender in a tree of sorted pairs? A zero root lets everybody in.
    function _requireAllowed(bytes32 root, bytes32[] calldata path) internal view {
        if (root == 0) return;
        if (path.length > PATH_MAX) revert NotAllowed();
        bytes32 node = keccak256(abi.encode(msg.sender));
        for (uint256 i = 0; i < path.length; i++) {
            bytes32 other = path[i];
            node = node < other
                ? keccak256(abi.encode(node, other))
                : keccak256(abi.encode(other, node));
        }
        if (node != root) revert NotAllowed();
    }

    ////////////////////////////////////////////////////////////////
    //                       Internal: time                       //
    ////////////////////////////////////////////////////////////////

    function _now() internal view virtual returns (uint256) {
        return block.timestamp;
    }

    function _height() internal view virtual returns (uint256) {
        return block.number;
    }

    /// @dev A commit may come until the next is due, and never after the deadline.
    function _dueFromNow(Job storage job) internal view returns (uint40) {
        uint256 due = _now() + job.segmentPeriod;
        return uint40(due < job.deadline ? due : job.deadline);
    }

    /// @dev When the verdicts of the last round are in.
    function _roundEnd(Job storage job, Tally storage tally) internal view returns (uint256) {
        return uint256(tally.start) + job.sealPeriod + job.revealPeriod;
    }

    /// @dev Until when claims may be opened: without an end while it is not known who checks.
    function _claimEnd(Job storage job, Tally storage tally, Segment calldata segment)
        internal
        view
        returns (uint256)
    {
        if (tally.start != 0) return _roundEnd(job, tally) + job.claimPeriod;
        if (job.seats != 0) return TIME_MAX;
        return segment.time + job.sealPeriod + job.revealPeriod + job.claimPeriod;
    }

    /// @dev A segment can come to its end. Claims about any other hold it up too: they share one
    /// queue, and a full one would else shut out the claim that this segment needs.
    function _requireClaimsOver(Job storage job, Tally storage tally, Segment calldata segment)
        internal
        view
    {
        if (job.seats != 0 && tally.start == 0) revert NotDrawn();
        _requireAfter(_claimEnd(job, tally, segment));
        if (job.openClaims != 0) revert ClaimsOpen(job.openClaims);
    }

    ////////////////////////////////////////////////////////////////
    //                     Internal: segments                     //
    ////////////////////////////////////////////////////////////////

    function _firstStep(Job storage job, uint256 index) internal view returns (uint256) {
        return index * job.segmentSteps;
    }

    /// @dev All segments have the same number of steps, except that the last has what is left.
    function _segmentSteps(Job storage job, uint256 index) internal view returns (uint256) {
        uint256 size = job.segmentSteps;
        uint256 rest = job.steps - index * size;
        return rest < size ? rest : size;
    }

    /// @dev docs/FORMATS.md 2.2: the list of the states after each step.
    function _segmentRoot(bytes32[] calldata states, uint256 first)
        internal
        view
        returns (bytes32)
    {
        uint256 offset;
        assembly {
            offset := states.offset
        }
        (bytes32 treeRoot, bool whole) = Commitments.foldItems(offset, states.length);
        if (!whole) revert ZeroRoot();
        return Commitments.listRoot(Commitments.SEGMENT_TAG, treeRoot, first, states.length);
    }

    function _hashSegment(bytes32 key, Segment calldata segment) internal pure returns (bytes32) {
        return keccak256(abi.encode(key, segment));
    }

    function _stands(bytes32 key, Job storage job, uint256 index, bytes32 hash)
        internal
        view
        returns (bool)
    {
        return index < job.committed && segments[key][index] == hash;
    }

    /// @dev The hash of a segment that stands: committed, and not void.
    function _requireCommitted(bytes32 key, Job storage job, Segment calldata segment)
        internal
        view
        returns (bytes32 hash)
    {
        _requirePhase(job, Phase.Running);
        hash = _hashSegment(key, segment);
        if (!_stands(key, job, segment.index, hash)) revert WrongSegment();
    }

    /// @dev What a panel judges: a segment that stands, or the question of a closed job's client.
    function _requireSubject(bytes32 key, Job storage job, uint256 index, bytes32 hash)
        internal
        view
    {
        if (job.phase != Phase.Closed || !job.asked) _requirePhase(job, Phase.Running);
        if (!_stands(key, job, index, hash)) revert WrongSegment();
    }

    ////////////////////////////////////////////////////////////////
    //                       Internal: ends                       //
    ////////////////////////////////////////////////////////////////

    function _owe(address owner, uint256 amount) internal {
        if (amount != 0) owed[owner] += amount;
    }

    function _reopen(Job storage job) internal {
        job.phase = Phase.Open;
        job.solver = address(0);
        job.openedAt = uint40(_now());
    }

    /// @dev The solver goes, with what it is owed.
    function _leaveJob(Job storage job, uint256 penalty) internal {
        burned += penalty;
        _owe(job.solver, job.stake - penalty + job.held);
        job.held = 0;
        _reopen(job);
    }

    /// @dev Forgets every segment that is not final.
    function _voidCommitted(Job storage job) internal {
        job.generation++;
        job.committed = job.finalized;
        job.openClaims = 0;
        job.ended = false;
    }

    /// @dev The client gets what was for segments that never will be final.
    function _close(Job storage job) internal {
        _owe(
            job.client,
            (uint256(job.segments) - job.finalized) * job.rewardTo + job.pool
        );
        job.pool = 0;
        job.phase = Phase.Closed;
        job.closedAt = uint40(_now());
    }

    function _deliver(bytes32 key, Job storage job, address to) internal {
        uint256 amount = job.held;
        job.held = 0;
        _owe(to, amount);

        emit Delivered(key, to, amount);
    }
}
