// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Commitments} from "./Commitments.sol";
import {Purse} from "./Purse.sol";

/// @title RegistryState
/// @notice What the registry keeps, and what all of its moves ask and do with it.
abstract contract RegistryState is Purse {
    ////////////////////////////////////////////////////////////////
    //                         Constants                          //
    ////////////////////////////////////////////////////////////////

    uint256 internal constant PPM = 1_000_000;
    uint256 internal constant PLACES = 64; // of a draw
    uint256 internal constant CONTACT_MAX = 256;
    uint256 internal constant PATH_MAX = 32; // siblings in an allow-list
    uint256 internal constant OPEN_MAX = 64; // segments that are committed and not final
    uint256 internal constant WAITS_MAX = 4; // claim times that a segment waits for
    uint256 internal constant VOUCH_MAX = 1024; // bytes of a keeper's signature
    uint256 internal constant LATE_SHARE = 8; // a solver that is late loses an eighth
    uint256 internal constant LATER_SHARE = 8; // a right of a later round, of its fee
    uint256 internal constant UNSEEN_SHARE = 4; // of the query fee, to a seat that saw nothing

    ////////////////////////////////////////////////////////////////
    //                           State                            //
    ////////////////////////////////////////////////////////////////

    struct Job {
        // One slot for what every move about a segment asks.
        Phase phase;
        bool ended; // the last committed segment says that the training diverged
        uint24 generation; // how often the job returned to Open
        uint24 committed;
        uint24 drawn;
        uint24 legStart; // the first segment behind the last covered one
        uint40 due; // zero: no time runs
        uint24 segments;
        uint24 sealPeriod;
        uint24 revealPeriod;
        uint8 seats;
        uint16 entries; // of this generation, also those that are gone
        // What a commit asks too.
        address solver;
        uint40 steps;
        uint16 segmentSteps;
        uint40 deadline;
        uint96 queryFee;
        uint40 refusedUntil; // zero: nobody refused
        bool barred; // until the client resumes
        uint24 finalized;
        uint24 segmentPeriod;
        uint24 claimPeriod;
        uint24 clock;
        uint8 panelLeast;
        // What draws and ends ask.
        uint96 reward;
        uint96 pool; // pays the fees
        uint24 coveragePpm;
        uint24 openClaims; // live disputes of this generation
        address client;
        uint96 fee;
        uint96 stake;
        uint96 bond;
        uint40 openedAt; // also each return to Open
        // What a void burned of the client's.
        uint96 missingEscrow;
        uint96 missingPool;
        address keeper;
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
        uint256 drawn;
        uint256 legStart;
        uint256 finalized;
        uint256 openClaims;
        uint256 entries;
        uint256 openedAt;
        uint256 due;
        uint256 refusedUntil;
        uint256 pool;
        uint256 missingEscrow;
        uint256 missingPool;
        bool ended;
        bool barred;
    }

    struct Entry {
        address owner;
        bool gone; // its bond was paid or taken
    }

    /// @dev One slot, of a covered segment: of another nothing is kept.
    struct Tally {
        uint40 start; // of the last round; where seats are none, of the commit
        uint16 panel; // entries that can be drawn
        uint8 round;
        uint8 from; // the places of the last round
        uint8 to; // zero: not covered
        uint8 first; // the end of the first round
        uint8 drawn; // seats of all rounds
        uint8 rights;
        uint8 unseen;
        bool vouched;
        uint64 seed; // of the first round
        uint24 legStart; // the first segment of its leg
        uint48 near; // the first places, four bits each
    }

    /// @dev One slot, of a round behind the first: it has a seed of its own, of a block that comes
    /// when the round before is over. So nobody who speaks knows who sits in the next one.
    struct LaterRound {
        uint64 height; // of the block in which settle() closed the round before,
        uint40 time; // and of its time
        uint64 seed;
        uint8 from; // its first place; zero: not drawn
    }

    /// @notice What the referee must know of a segment that a claim can be about.
    struct Standing {
        bytes32 hash;
        uint256 generation;
        uint256 refusedUntil;
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

    mapping(bytes32 job => Job) internal _jobs;
    mapping(bytes32 job => mapping(uint256 index => bytes32 hash)) public segments;
    mapping(bytes32 job => mapping(uint256 generation => mapping(uint256 entry => Entry)))
        public entries;
    mapping(bytes32 segment => Tally) internal _tallies;
    mapping(bytes32 segment => uint256) internal _farPlaces; // those behind the first
    /// @dev The seals of two seats in a slot, in the order of the draw.
    mapping(bytes32 segment => uint256[PLACES / 2] pairs) internal _seats;
    mapping(bytes32 segment => mapping(uint256 round => LaterRound)) internal _laterRounds;

    ////////////////////////////////////////////////////////////////
    //                      Internal: terms                       //
    ////////////////////////////////////////////////////////////////

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
        job.reward = uint96(terms.reward);
        job.fee = uint96(terms.fee);
        job.stake = uint96(terms.stake);
        job.bond = uint96(terms.bond);
        job.queryFee = uint96(terms.queryFee);
        job.coveragePpm = uint24(terms.coveragePpm);
        job.keeper = terms.keeper;
        job.solvers = terms.solvers;
        job.verifiers = terms.verifiers;
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

    /// @dev The hash of a segment that stands: committed, and not void.
    function _requireCommitted(bytes32 key, Job storage job, Segment calldata segment)
        internal
        view
        returns (bytes32 hash)
    {
        hash = _hashSegment(key, segment);
        _requireStanding(key, job, segment.index, hash);
    }

    /// @dev The same of a segment that is named by its hash.
    function _requireStanding(bytes32 key, Job storage job, uint256 index, bytes32 hash)
        internal
        view
    {
        _requirePhase(job, Phase.Running);
        if (index >= job.committed || segments[key][index] != hash) revert WrongSegment();
    }

    function _requireNotFinal(Job storage job, uint256 index) internal view {
        if (index < job.finalized) revert WrongIndex(job.finalized);
    }

    function _requireNoClaims(Job storage job) internal view {
        if (job.openClaims != 0) revert ClaimsOpen(job.openClaims);
    }

    ////////////////////////////////////////////////////////////////
    //                       Internal: ends                       //
    ////////////////////////////////////////////////////////////////

    /// @dev What is not final is forgotten, and with it the panel of this tenure.
    function _reopen(Job storage job) internal {
        job.phase = Phase.Open;
        job.solver = address(0);
        job.generation++;
        job.committed = job.finalized;
        job.drawn = job.finalized;
        job.legStart = job.finalized;
        job.ended = false;
        job.openClaims = 0;
        job.refusedUntil = 0;
        job.entries = 0;
        job.due = 0;
        job.openedAt = uint40(_now());
    }

    /// @dev The client gets what was for segments that never will be final, but for what is burned.
    function _close(bytes32 key, Job storage job) internal {
        uint256 escrow = (uint256(job.segments) - job.finalized) * job.reward;
        _owe(job.client, escrow - job.missingEscrow + job.pool);
        job.pool = 0;
        job.missingEscrow = 0;
        job.missingPool = 0;
        job.phase = Phase.Closed;

        emit Closed(key, job.finalized);
    }
}
