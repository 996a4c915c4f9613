// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Commitments} from "./Commitments.sol";
import {IExaminer} from "./IExaminer.sol";
import {IReferee} from "./IReferee.sol";
import {IRegistry, jobKeyOn} from "./IRegistry.sol";
import {ISeeds} from "./ISeeds.sol";
import {Registry} from "./Registry.sol";
import {Walk} from "./Walk.sol";

/// @title Referee
/// @notice Tries claims: whose move it is and for how long, what a move is about, and who wins. The
/// examiner computes what bytes prove; the registry has the money.
/// @dev Holds no money: what it is paid goes on at once. Calls only the registry and the examiner,
/// which never call back.
contract Referee is IReferee {
    uint256 internal constant HEADER_SIZE = 216;
    uint256 internal constant SEAL_LIFE = 32; // blocks
    uint256 internal constant ACTIVE_MAX = 4; // disputes of a generation that use clocks
    uint256 internal constant OUTSIDERS_MAX = 16; // live claims of a generation
    uint256 internal constant LAPSES_MAX = 4; // by the way, when another dispute ends
    uint64 internal constant OUTSIDER = 2 ** 63; // its rank is behind that of every seat
    uint256 internal constant LEAVES = 8; // that a right shows
    uint256 internal constant QUERIES_MAX = 32; // of one lead: a walk needs less than twenty

    struct Dispute {
        address solver;
        ClaimPhase phase;
        Turn turn;
        uint24 generation;
        uint40 since; // whose turn it is, it is from here
        bool diverged;
        Outcome outcome;
        uint64 rank;
        uint24 clock;
        uint24 solverLeft;
        uint24 leadLeft;
        uint16 first; // of the claimants that are left: the lead
        uint96 queryFee;
        uint8 queries; // of this lead
        bytes32 job;
        bytes32 segment; // its hash
        bytes32 subject;
        bytes32 traceRoot;
        bytes32 batchRoot; // of the micro-batch that was queried last
        bytes32 said; // what was queried last, or what the examiner keeps of the reply
        mapping(uint256 => Claimant) claimants; // behind the last one: nobody
    }

    struct Claimant {
        address owner;
        uint88 bond;
        bool seat; // an alarm
    }

    /// @dev The disputes of one generation of a job.
    struct Docket {
        uint96 pot; // the stake of its solver, until it is paid
        uint64 best; // the least rank that was upheld
        uint32 open;
        uint32 opened; // by outsiders
        uint8 active;
        uint8 outsiders;
        bool convicted;
        address winner; // of the best
        uint32 alarm; // the next in each queue
        uint32 other;
        bytes32[] alarms;
        bytes32[] others;
    }

    Registry public immutable REGISTRY;
    IExaminer public immutable EXAMINER;
    bool internal immutable BY_TOKEN; // which is taken before anything is looked at: Purse.sol

    mapping(bytes32 claim => Dispute) internal _disputes;
    mapping(bytes32 job => mapping(uint256 generation => Docket)) internal _dockets;
    mapping(bytes32 subject => uint256) public rounds; // how often it was refuted
    mapping(bytes32 seal => uint256 height) public seals;

    /// @dev Makes its registry: neither can exist with another partner.
    /// @param token Zero: the chain's coin.
    constructor(IExaminer examiner, ISeeds seeds, address token) {
        EXAMINER = examiner;
        REGISTRY = _found(seeds, token);
        BY_TOKEN = token != address(0);
    }

    function _found(ISeeds seeds, address token) internal virtual returns (Registry) {
        return new Registry(address(this), seeds, token);
    }

    function _now() internal view virtual returns (uint256) {
        return block.timestamp;
    }

    function _height() internal view virtual returns (uint256) {
        return block.number;
    }

    ////////////////////////////////////////////////////////////////
    //                          Opening                           //
    ////////////////////////////////////////////////////////////////

    /// @inheritdoc IReferee
    function sealClaim(bytes32 value) external {
        uint256 height = seals[value];
        if (height != 0 && _height() <= height + SEAL_LIFE) revert SealExists();

        seals[value] = _height();

        emit Sealed(value);
    }

    /// @inheritdoc IReferee
    function claim(bytes32 job, Case calldata shown, bytes32 salt)
        external
        payable
        returns (bytes32 key)
    {
        Registry.Standing memory standing = REGISTRY.standing(job, shown.segment);
        Docket storage docket = _dockets[job][standing.generation];
        uint256 bond = standing.bond * (4 + docket.outsiders) / 4;
        if (BY_TOKEN) {
            REGISTRY.takeBond{value: msg.value}(msg.sender, bond);
            standing = REGISTRY.standing(job, shown.segment);
        }
        bytes32 subject = _subject(standing.hash, shown.step, shown.preState, shown.postState);
        _openSeal(keccak256(abi.encode(msg.sender, subject, salt)));
        if (msg.sender == shown.segment.solver) revert IRegistry.SelfDealing();
        if (standing.refusedUntil != 0 && _now() > standing.refusedUntil) {
            revert IRegistry.TooLate(standing.refusedUntil);
        }
        _checkCase(job, shown, standing.firstStep);
        if (docket.outsiders >= OUTSIDERS_MAX) revert IRegistry.Full(OUTSIDERS_MAX);
        key = _keyOf(subject);
        _requireNew(_disputes[key]);
        if (!BY_TOKEN) REGISTRY.takeBond{value: msg.value}(msg.sender, bond);

        docket.outsiders++;
        uint64 rank = OUTSIDER | (docket.opened + 1);
        Claimant memory own = Claimant(msg.sender, uint88(bond), false);
        if (_join(key, job, shown, standing, subject, rank, own)) docket.opened++;
    }

    /// @inheritdoc IReferee
    function alarm(bytes32 job, Case calldata shown, uint256 place, bytes32 salt)
        external
        returns (bytes32 key)
    {
        Registry.Standing memory standing = REGISTRY.standing(job, shown.segment);
        _checkCase(job, shown, standing.firstStep);
        uint256 bond = REGISTRY.raise(job, shown.segment, place, msg.sender, shown.step, salt);

        bytes32 subject = _subject(standing.hash, shown.step, shown.preState, shown.postState);
        key = _keyOf(subject);
        uint64 rank = uint64(shown.segment.index << 32 | shown.step);
        _join(key, job, shown, standing, subject, rank, Claimant(msg.sender, uint88(bond), true));
    }

    ////////////////////////////////////////////////////////////////
    //                    Moves of the accused                    //
    ////////////////////////////////////////////////////////////////

    /// @inheritdoc IReferee
    function answer(bytes32 key, bytes32 traceRoot) external {
        Dispute storage dispute = _disputes[key];
        if (dispute.phase != ClaimPhase.Called) _wrongPhase(dispute);
        _requireMover(dispute, Turn.Accused);
        if (traceRoot == 0) revert IRegistry.ZeroRoot();

        dispute.phase = ClaimPhase.Tried;
        dispute.traceRoot = traceRoot;
        emit Answered(key, traceRoot);
        _passTurn(key, dispute);
    }

    /// @inheritdoc IReferee
    function reply(bytes32 key, bytes calldata queried, bytes calldata replied) external {
        Dispute storage dispute = _requireTried(key, Turn.Accused);
        if (keccak256(queried) != dispute.said) revert NotQueried();
        try EXAMINER.compare(queried, replied) returns (bytes32 kept) {
            dispute.said = kept;
            if (Walk.commits(queried)) dispute.batchRoot = kept;
        } catch {
            revert BadReply();
        }

        REGISTRY.credit(dispute.solver, dispute.queryFee);
        emit Replied(key, replied);
        _passTurn(key, dispute);
    }

    ////////////////////////////////////////////////////////////////
    //                    Moves of the claimant                   //
    ////////////////////////////////////////////////////////////////

    /// @inheritdoc IReferee
    function query(bytes32 key, Subject calldata shown, bytes calldata ledgerQuery)
        external
        payable
    {
        if (BY_TOKEN) _takeFee(_disputes[key]);
        Dispute storage dispute = _requireTried(key, Turn.Claimant);
        if (dispute.queries == QUERIES_MAX) revert IRegistry.Full(QUERIES_MAX);
        IExaminer.Context memory context = _context(dispute, shown);
        if (!BY_TOKEN) _takeFee(dispute);
        try EXAMINER.query(context, ledgerQuery) returns (bytes memory queried) {
            dispute.said = keccak256(queried);
            emit Queried(key, queried);
        } catch {
            revert BadQuery();
        }

        dispute.queries++;
        _passTurn(key, dispute);
    }

    /// @inheritdoc IReferee
    function convict(bytes32 key, Subject calldata shown, bytes calldata evidence) external {
        Dispute storage dispute = _requireTried(key, Turn.Claimant);
        IExaminer.Context memory context = _context(dispute, shown);
        try EXAMINER.examine(context, evidence) returns (IExaminer.Answer found) {
            if (found == IExaminer.Answer.NotGuilty) revert NotGuilty();
        } catch {
            revert BadEvidence();
        }

        _uphold(key, dispute);
    }

    ////////////////////////////////////////////////////////////////
    //                      Moves of anybody                      //
    ////////////////////////////////////////////////////////////////

    /// @inheritdoc IReferee
    function timeout(bytes32 key) external {
        Dispute storage dispute = _disputes[key];
        if (dispute.phase != ClaimPhase.Called && dispute.phase != ClaimPhase.Tried) {
            _wrongPhase(dispute);
        }
        uint256 end = _turnEnd(dispute);
        if (_now() <= end) revert IRegistry.TooEarly(end);

        if (dispute.turn == Turn.Accused) {
            _uphold(key, dispute);
        } else {
            _default(key, dispute);
        }
    }

    /// @inheritdoc IReferee
    function lapse(bytes32 key) external {
        Dispute storage dispute = _disputes[key];
        if (dispute.phase != ClaimPhase.Waiting && dispute.phase != ClaimPhase.Called) {
            _wrongPhase(dispute);
        }
        Docket storage docket = _dockets[dispute.job][dispute.generation];
        if (!_isOvertaken(docket, dispute)) revert NotLapsed();

        _end(key, dispute, docket, Outcome.Lapsed);
        _startNext(docket);
    }

    /// @inheritdoc IReferee
    function pay(bytes32 job, uint256 generation) external {
        Docket storage docket = _dockets[job][generation];
        uint256 pot = docket.pot;
        if (pot == 0) revert IRegistry.NothingOwed();
        if (docket.open != 0) revert NotPaid(docket.open);

        docket.pot = 0;
        uint256 quarter = pot / 4;
        REGISTRY.credit(docket.winner, quarter);
        REGISTRY.credit(REGISTRY.clientOf(job), quarter);
        REGISTRY.burn(pot - 2 * quarter);

        emit Paid(job, generation, docket.winner, quarter);
    }

    /// @inheritdoc IReferee
    function challenge(
        bytes32 job,
        IRegistry.Segment calldata segment,
        uint256 place,
        bytes16 leaves,
        bytes32 salt,
        uint256 index,
        bytes calldata shown,
        bytes32 sealSalt
    ) external {
        Registry.Shown memory right = REGISTRY.right(job, segment, place, leaves, salt);
        bytes32 subject = keccak256(abi.encode(bytes32("challenge"), right.hash, place, index));
        _openSeal(keccak256(abi.encode(msg.sender, subject, sealSalt)));
        if (index >= LEAVES) revert IRegistry.WrongIndex(LEAVES);
        IExaminer.Right memory said = IExaminer.Right({
            owner: right.owner,
            seed: right.seed,
            segment: right.hash,
            root: segment.root,
            firstStep: right.firstStep,
            steps: segment.steps
        });
        try EXAMINER.drawnLeaf(said, index, shown) returns (bytes32 hash) {
            if (bytes2(hash) == bytes2(leaves << (16 * index))) revert NotGuilty();
        } catch {
            revert BadEvidence();
        }

        REGISTRY.disprove(job, segment, place, msg.sender);
    }

    /// @notice What moves have changed in a claim; zeros for one that nobody opened.
    function claims(bytes32 key) external view returns (Trial memory found) {
        Dispute storage dispute = _disputes[key];
        found.phase = dispute.phase;
        found.turn = dispute.turn;
        found.outcome = dispute.outcome;
        found.job = dispute.job;
        found.segment = dispute.segment;
        found.subject = dispute.subject;
        found.generation = dispute.generation;
        found.rank = dispute.rank;
        found.solver = dispute.solver;
        found.claimants = _claimantsEnd(dispute) - dispute.first;
        found.lead = _lead(dispute);
        found.since = dispute.since;
        found.solverLeft = dispute.solverLeft;
        found.leadLeft = dispute.leadLeft;
        found.traceRoot = dispute.traceRoot;
    }

    struct Trial {
        ClaimPhase phase;
        Turn turn;
        Outcome outcome;
        bytes32 job;
        bytes32 segment;
        bytes32 subject;
        uint256 generation;
        uint256 rank;
        address solver;
        address lead;
        uint256 claimants;
        uint256 since;
        uint256 solverLeft;
        uint256 leadLeft;
        bytes32 traceRoot;
    }

    ////////////////////////////////////////////////////////////////
    //                     Internal: opening                      //
    ////////////////////////////////////////////////////////////////

    function _subject(bytes32 segment, uint256 step, bytes32 preState, bytes32 postState)
        internal
        pure
        returns (bytes32)
    {
        return keccak256(abi.encode(segment, step, preState, postState));
    }

    /// @dev A subject that was refuted may be claimed again, under another key.
    function _keyOf(bytes32 subject) internal view returns (bytes32) {
        return keccak256(abi.encode(subject, rounds[subject]));
    }

    /// @dev A seal must be older than this block, so nobody can copy a claim from the pool, and
    /// young, so nobody has one in store for every claim to come.
    function _openSeal(bytes32 value) internal {
        uint256 height = seals[value];
        if (height == 0 || _height() > height + SEAL_LIFE) revert NotSealed();
        if (_height() <= height) revert IRegistry.TooEarly(height + 1);
        delete seals[value];
    }

    function _takeFee(Dispute storage dispute) internal {
        REGISTRY.take{value: msg.value}(msg.sender, dispute.queryFee);
    }

    /// @dev The sender is no claimant yet.
    function _requireNew(Dispute storage dispute) internal view {
        uint256 end = _claimantsEnd(dispute);
        for (uint256 i = dispute.first; i < end; i++) {
            if (dispute.claimants[i].owner == msg.sender) revert ClaimExists();
        }
    }

    /// @dev The number behind the last claimant.
    function _claimantsEnd(Dispute storage dispute) internal view returns (uint256 end) {
        end = dispute.first;
        while (dispute.claimants[end].owner != address(0)) end++;
    }

    /// @dev One more claimant: of a live dispute, or of a new one.
    function _join(
        bytes32 key,
        bytes32 job,
        Case calldata shown,
        Registry.Standing memory standing,
        bytes32 subject,
        uint64 rank,
        Claimant memory claimant
    ) internal returns (bool isNew) {
        Dispute storage dispute = _disputes[key];
        Docket storage docket = _dockets[job][standing.generation];
        isNew = dispute.phase == ClaimPhase.None;
        dispute.claimants[_claimantsEnd(dispute)] = claimant;
        if (isNew) {
            dispute.solver = shown.segment.solver;
            dispute.phase = ClaimPhase.Waiting;
            dispute.generation = uint24(standing.generation);
            dispute.diverged =
                shown.segment.diverged && shown.step + 1 == shown.segment.steps;
            dispute.clock = uint24(standing.clock);
            dispute.queryFee = uint96(standing.queryFee);
            dispute.job = job;
            dispute.segment = standing.hash;
            dispute.subject = subject;
            docket.open++;
            REGISTRY.hold(job);
        }
        // A seat brings the dispute forward.
        bool ahead = isNew || rank < dispute.rank;
        if (ahead) dispute.rank = rank;
        emit Claimed(
            job,
            key,
            claimant.owner,
            shown.segment.index,
            shown.step,
            shown.preState,
            shown.postState,
            dispute.rank,
            claimant.bond
        );
        if (!ahead || dispute.phase != ClaimPhase.Waiting) return isNew;
        if (_isIdle(docket)) {
            _start(key, dispute, docket);
        } else {
            (claimant.seat ? docket.alarms : docket.others).push(key);
            _startNext(docket);
        }
    }

    /// @dev Nobody waits, and there is room: what comes now need not stand in a queue.
    function _isIdle(Docket storage docket) internal view returns (bool) {
        return !docket.convicted && docket.active < ACTIVE_MAX
            && docket.alarm == docket.alarms.length && docket.other == docket.others.length;
    }

    ////////////////////////////////////////////////////////////////
    //                      Internal: clocks                      //
    ////////////////////////////////////////////////////////////////

    function _lead(Dispute storage dispute) internal view returns (address) {
        return dispute.claimants[dispute.first].owner;
    }

    function _turnEnd(Dispute storage dispute) internal view returns (uint256) {
        return uint256(dispute.since)
            + (dispute.turn == Turn.Accused ? dispute.solverLeft : dispute.leadLeft);
    }

    function _wrongPhase(Dispute storage dispute) internal view {
        revert IRegistry.WrongPhase(uint256(dispute.phase));
    }

    function _requireTried(bytes32 key, Turn turn) internal view returns (Dispute storage dispute) {
        dispute = _disputes[key];
        if (dispute.phase != ClaimPhase.Tried) _wrongPhase(dispute);
        _requireMover(dispute, turn);
    }

    function _requireMover(Dispute storage dispute, Turn turn) internal view {
        if (dispute.turn != turn) revert WrongTurn(uint256(dispute.turn));
        address mover = turn == Turn.Accused ? dispute.solver : _lead(dispute);
        if (msg.sender != mover) revert IRegistry.NotYours(mover);
        uint256 end = _turnEnd(dispute);
        if (_now() > end) revert IRegistry.TooLate(end);
    }

    /// @dev The mover's clock stops, the other's runs.
    function _passTurn(bytes32 key, Dispute storage dispute) internal {
        uint24 left = uint24(_turnEnd(dispute) - _now());
        if (dispute.turn == Turn.Accused) {
            dispute.solverLeft = left;
            dispute.turn = Turn.Claimant;
        } else {
            dispute.leadLeft = left;
            dispute.turn = Turn.Accused;
        }
        dispute.since = uint40(_now());
        _emitTurn(key, dispute);
    }

    /// @dev Both begin again with each lead: else many leads together could use up the solver's.
    function _windClocks(Dispute storage dispute) internal {
        dispute.since = uint40(_now());
        dispute.solverLeft = dispute.clock;
        dispute.leadLeft = dispute.clock;
        dispute.queries = 0;
    }

    function _emitTurn(bytes32 key, Dispute storage dispute) internal {
        emit TurnPassed(key, dispute.phase, dispute.turn, _lead(dispute), _turnEnd(dispute));
    }

    /// @dev Starts what waits while there is room: alarms first, each queue in its order. What was
    /// overtaken by a conviction lapses here, some at a time; the rest by lapse().
    function _startNext(Docket storage docket) internal {
        uint256 lapses = 0;
        while (docket.active < ACTIVE_MAX && lapses < LAPSES_MAX) {
            bytes32 key;
            if (docket.alarm < docket.alarms.length) {
                key = docket.alarms[docket.alarm++];
            } else if (docket.other < docket.others.length) {
                key = docket.others[docket.other++];
            } else {
                return;
            }
            Dispute storage dispute = _disputes[key];
            if (dispute.phase != ClaimPhase.Waiting) continue;
            if (_isOvertaken(docket, dispute)) {
                _end(key, dispute, docket, Outcome.Lapsed);
                lapses++;
                continue;
            }
            _start(key, dispute, docket);
        }
    }

    function _start(bytes32 key, Dispute storage dispute, Docket storage docket) internal {
        docket.active++;
        dispute.phase = ClaimPhase.Called;
        dispute.turn = Turn.Accused;
        _windClocks(dispute);
        _emitTurn(key, dispute);
    }

    ////////////////////////////////////////////////////////////////
    //                       Internal: ends                       //
    ////////////////////////////////////////////////////////////////

    /// @dev A conviction of a lower rank makes it needless.
    function _isOvertaken(Docket storage docket, Dispute storage dispute)
        internal
        view
        returns (bool)
    {
        return docket.convicted && dispute.rank > docket.best;
    }

    /// @dev Closes a dispute. The bonds of the claimants that are left go back.
    function _end(bytes32 key, Dispute storage dispute, Docket storage docket, Outcome outcome)
        internal
    {
        uint256 end = _claimantsEnd(dispute);
        for (uint256 i = dispute.first; i < end; i++) {
            Claimant memory claimant = dispute.claimants[i];
            REGISTRY.credit(claimant.owner, claimant.bond);
            if (!claimant.seat) docket.outsiders--;
        }
        if (dispute.phase != ClaimPhase.Waiting) docket.active--;
        docket.open--;
        dispute.phase = ClaimPhase.Closed;
        dispute.outcome = outcome;
        REGISTRY.free(dispute.job, dispute.generation);

        emit Ruled(key, outcome);
    }

    function _uphold(bytes32 key, Dispute storage dispute) internal {
        Docket storage docket = _dockets[dispute.job][dispute.generation];
        if (dispute.turn == Turn.Accused && dispute.phase == ClaimPhase.Tried) {
            REGISTRY.credit(_lead(dispute), dispute.queryFee); // no reply came
        }
        if (!docket.convicted || dispute.rank < docket.best) {
            docket.best = dispute.rank;
            docket.winner = _winner(dispute);
        }
        _end(key, dispute, docket, Outcome.Upheld);
        if (!docket.convicted) {
            docket.convicted = true;
            docket.pot = uint96(REGISTRY.convict(dispute.job));
        }
        _startNext(docket);
    }

    /// @dev The first seat among the claimants that are left, else the lead.
    function _winner(Dispute storage dispute) internal view returns (address) {
        uint256 end = _claimantsEnd(dispute);
        for (uint256 i = dispute.first; i < end; i++) {
            if (dispute.claimants[i].seat) return dispute.claimants[i].owner;
        }
        return _lead(dispute);
    }

    /// @dev The lead loses its bond. The next claimant leads, with whole clocks; after the last the
    /// claim is refuted.
    function _default(bytes32 key, Dispute storage dispute) internal {
        Docket storage docket = _dockets[dispute.job][dispute.generation];
        Claimant memory lead = dispute.claimants[dispute.first];
        dispute.first++;
        if (!lead.seat) docket.outsiders--;
        uint256 burned = docket.convicted ? lead.bond : lead.bond / 2;
        REGISTRY.burn(burned);
        REGISTRY.credit(dispute.solver, lead.bond - burned);
        emit Defaulted(key, lead.owner);

        if (_lead(dispute) != address(0)) {
            _windClocks(dispute);
            _emitTurn(key, dispute);
        } else {
            rounds[dispute.subject]++;
            _end(key, dispute, docket, Outcome.Refuted);
            _startNext(docket);
        }
    }

    ////////////////////////////////////////////////////////////////
    //                     Internal: the case                     //
    ////////////////////////////////////////////////////////////////

    /// @dev The key of the job that a header is of.
    function _jobOf(address client, uint256 salt, bytes32[7] calldata header)
        internal
        view
        returns (bytes32)
    {
        bytes32 jobId = sha256(
            abi.encodePacked(
                Commitments.JOB_TAG,
                uint64(HEADER_SIZE),
                abi.encodePacked(header[0], header[1], header[2], header[3], header[4], header[5]),
                bytes24(header[6])
            )
        );
        return jobKeyOn(address(REGISTRY), client, jobId, salt);
    }

    /// @dev Did the solver commit to the states before and after the step?
    function _checkCase(bytes32 job, Case calldata shown, uint256 first) internal view {
        if (_jobOf(shown.client, shown.salt, shown.header) != job) {
            revert WrongCase(uint256(Part.Job));
        }
        if (shown.step >= shown.segment.steps) {
            revert IRegistry.WrongSteps(shown.segment.steps - 1);
        }
        if (shown.step > 0) {
            if (!_stands(shown.segment, first, shown.step - 1, shown.preState, shown.prePath)) {
                revert WrongCase(uint256(Part.PreState));
            }
        } else if (shown.segment.index > 0) {
            uint256 before = shown.segment.index - 1;
            if (keccak256(abi.encode(job, shown.previous)) != REGISTRY.segments(job, before)) {
                revert WrongCase(uint256(Part.Previous));
            }
            uint256 last = shown.previous.steps - 1;
            // Only the last segment of a job can be short.
            uint256 start = first - shown.previous.steps;
            if (!_stands(shown.previous, start, last, shown.preState, shown.prePath)) {
                revert WrongCase(uint256(Part.PreState));
            }
        } else if (
            // Offset 184 of the header.
            shown.preState != ((shown.header[5] << 192) | (shown.header[6] >> 64))
                || shown.prePath.length != 0
        ) {
            revert WrongCase(uint256(Part.PreState));
        }
        if (!_stands(shown.segment, first, shown.step, shown.postState, shown.postPath)) {
            revert WrongCase(uint256(Part.PostState));
        }
    }

    /// @dev Is the state the one after this step of the segment, by the segment's root?
    function _stands(
        IRegistry.Segment calldata segment,
        uint256 first,
        uint256 step,
        bytes32 state,
        bytes32[] calldata path
    ) internal view returns (bool) {
        uint256 siblings = 0;
        uint256 place = step;
        for (uint256 last = segment.steps - 1; last > 0; last >>= 1) {
            if (place & 1 == 1 || place < last) siblings++;
            place >>= 1;
        }
        if (path.length != siblings) return false;
        uint256 offset;
        assembly {
            offset := path.offset
        }
        bytes32 treeRoot = Commitments.pathRoot(
            Commitments.itemHash(state), step, segment.steps, offset, path.length
        );
        return Commitments.listRoot(Commitments.SEGMENT_TAG, treeRoot, first, segment.steps)
            == segment.root;
    }

    /// @dev Is it the job, the step and the states of the dispute?
    function _context(Dispute storage dispute, Subject calldata shown)
        internal
        view
        returns (IExaminer.Context memory context)
    {
        bytes32[7] calldata header = shown.header;
        if (_jobOf(shown.client, shown.salt, header) != dispute.job) {
            revert WrongCase(uint256(Part.Job));
        }
        bytes32 subject = _subject(dispute.segment, shown.step, shown.preState, shown.postState);
        if (subject != dispute.subject) revert WrongCase(uint256(Part.Subject));
        // Offsets 56, 120, 152 of the header.
        context.programRoot = (header[1] << 192) | (header[2] >> 64);
        context.constantsRoot = (header[3] << 192) | (header[4] >> 64);
        context.dataRoot = (header[4] << 192) | (header[5] >> 64);
        context.preState = shown.preState;
        context.postState = shown.postState;
        context.traceRoot = dispute.traceRoot;
        context.batchRoot = dispute.batchRoot;
        context.diverged = dispute.diverged;
        context.replied = dispute.said;
    }
}
