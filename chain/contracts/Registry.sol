// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IRegistry, jobKeyOn} from "./IRegistry.sol";

/// @title Registry
/// @notice Holds the escrow, stakes and bonds of all jobs, and whose move it is.
/// @dev Makes no call except to pay out at the end of withdraw(). The referee calls this contract,
/// never the other way round.
///
/// INVARIANT: the balance is at least the sum of everything owed, escrowed, staked and bonded.
contract Registry is IRegistry {
    ////////////////////////////////////////////////////////////////
    //                         Constants                          //
    ////////////////////////////////////////////////////////////////

    uint256 internal constant AMOUNT_MAX = type(uint96).max;
    uint256 internal constant SEGMENTS_MAX = 2 ** 24 - 1;
    uint256 internal constant PERIOD_MAX = 2 ** 24 - 1;
    uint256 internal constant TIME_MAX = 2 ** 40 - 1;
    uint256 internal constant ATTESTORS_MAX = 64;
    uint256 internal constant PPM = 1_000_000;
    uint256 internal constant TURNS_MAX = 64;
    uint256 internal constant LATE_SHARE = 8; // a solver that is late loses an eighth of its stake

    ////////////////////////////////////////////////////////////////
    //                           State                            //
    ////////////////////////////////////////////////////////////////

    struct Job {
        // What a commit touches, in one slot.
        address solver;
        Phase phase;
        uint24 generation; // counts convictions: what was committed before is void
        uint24 committed;
        uint40 due;
        // The rest of what changes.
        address client;
        uint24 finalized;
        uint24 openClaims;
        uint16 attestors;
        // Terms, and one flag that fills their slot.
        uint40 steps;
        uint24 segmentSteps;
        uint24 segments;
        uint40 deadline;
        uint24 segmentPeriod;
        uint24 attestPeriod;
        uint24 revealPeriod;
        uint24 claimPeriod;
        uint24 responsePeriod;
        bool ended; // the last committed segment says that the training diverged
        uint96 stake;
        uint96 claimBond;
        uint24 coveragePpm;
        uint96 segmentReward;
        uint96 attestFee;
        uint96 attestBond;
        bytes32 jobId;
        bytes32 roots; // keccak256(program root, data root, first state root)
    }

    struct Tally {
        uint16 round;
        uint16 attested; // in this round
        uint16 revealed; // in all rounds
        uint16 openClaims;
        uint40 start; // of the round; zero: the commit's time
        bool mandatory;
        bytes32 seed; // zero: not drawn
    }

    struct Attestation {
        AttestationPhase phase;
        uint16 round;
        bytes32 value; // the seal, then the trace root
    }

    struct Claim {
        address claimant;
        ClaimPhase phase;
        Turn turn;
        uint24 generation;
        uint40 deadline;
        uint8 turns;
        bytes32 job;
        bytes32 segment; // hash of the segment
        address attestor; // zero: the solver is accused
        bytes32 traceRoot; // the solver's answer
    }

    /// @notice The only account that may judge.
    address public immutable REFEREE;

    mapping(bytes32 job => Job) public jobs;
    mapping(bytes32 job => mapping(uint256 index => bytes32 hash)) public segments;
    mapping(bytes32 segment => Tally) public tallies;
    mapping(bytes32 segment => mapping(address attestor => Attestation)) public attestations;
    mapping(bytes32 claim => Claim) public claims;
    mapping(bytes32 seal => uint256 height) public seals;
    mapping(address owner => uint256 amount) public owed;

    constructor(address referee) {
        REFEREE = referee;
    }

    ////////////////////////////////////////////////////////////////
    //                     Moves of the client                    //
    ////////////////////////////////////////////////////////////////

    /// @inheritdoc IRegistry
    function open(Terms calldata terms) external payable returns (bytes32 key) {
        uint256 count = _checkTerms(terms);
        uint256 escrow = count * (terms.segmentReward + terms.attestors * terms.attestFee);
        if (escrow > AMOUNT_MAX) revert BadTerms(7);
        if (msg.value != escrow) revert WrongValue(escrow);

        key = jobKeyOn(address(this), msg.sender, terms.jobId, terms.salt);
        Job storage job = jobs[key];
        if (job.phase != Phase.None) revert JobExists();

        job.phase = Phase.Open;
        job.client = msg.sender;
        job.segments = uint24(count);
        _storeTerms(job, terms);

        emit Opened(key, msg.sender, terms);
    }

    /// @inheritdoc IRegistry
    function cancel(bytes32 key) external {
        Job storage job = jobs[key];
        _requirePhase(job, Phase.Open);
        if (msg.sender != job.client) revert NotYours(job.client);

        _refundRest(job);
        job.phase = Phase.Closed;

        emit Cancelled(key);
    }

    ////////////////////////////////////////////////////////////////
    //                     Moves of the solver                    //
    ////////////////////////////////////////////////////////////////

    /// @inheritdoc IRegistry
    function accept(bytes32 key) external payable {
        Job storage job = jobs[key];
        _requirePhase(job, Phase.Open);
        _requireNotAfter(job.deadline);
        if (msg.value != job.stake) revert WrongValue(job.stake);

        job.phase = Phase.Running;
        job.solver = msg.sender;
        job.due = _dueFromNow(job);

        emit Accepted(key, msg.sender, job.due);
    }

    /// @inheritdoc IRegistry
    function commit(bytes32 key, uint256 index, bytes32 root) external {
        Job storage job = jobs[key];
        _requireMayCommit(job, index, root);
        _commit(key, job, index, root, _segmentSteps(job, index), false);
    }

    /// @inheritdoc IRegistry
    function commitDiverged(bytes32 key, uint256 index, bytes32 root, uint256 steps) external {
        Job storage job = jobs[key];
        _requireMayCommit(job, index, root);
        uint256 most = _segmentSteps(job, index);
        if (steps == 0 || steps > most) revert WrongSteps(most);

        job.ended = true;
        _commit(key, job, index, root, steps, true);
    }

    /// @inheritdoc IRegistry
    function answer(bytes32 key, bytes32 traceRoot) external {
        Claim storage dispute = claims[key];
        Job storage job = jobs[dispute.job];
        _requireAlive(dispute, job, ClaimPhase.Called);
        if (msg.sender != job.solver) revert NotYours(job.solver);
        _requireNotAfter(dispute.deadline);
        if (traceRoot == 0) revert ZeroRoot();

        dispute.phase = ClaimPhase.Tried;
        dispute.turn = Turn.Claimant;
        dispute.traceRoot = traceRoot;
        dispute.deadline = _respondFromNow(job);

        emit Answered(key, traceRoot, dispute.deadline);
    }

    ////////////////////////////////////////////////////////////////
    //                   Moves of the verifiers                   //
    ////////////////////////////////////////////////////////////////

    /// @inheritdoc IRegistry
    function draw(bytes32 key, Segment calldata segment) external {
        Job storage job = jobs[key];
        _requirePhase(job, Phase.Running);
        bytes32 hash = _requireCommitted(key, job, segment);
        _draw(key, job, segment, hash);
    }

    /// @inheritdoc IRegistry
    function attest(bytes32 key, Segment calldata segment, bytes32 seal) external payable {
        Job storage job = jobs[key];
        _requirePhase(job, Phase.Running);
        bytes32 hash = _requireCommitted(key, job, segment);
        if (msg.value != job.attestBond) revert WrongValue(job.attestBond);
        if (msg.sender == segment.solver) revert SelfDealing();
        bytes32 seed = _draw(key, job, segment, hash);
        Tally storage tally = tallies[hash];
        _requireNotAfter(_roundStart(tally, segment) + job.attestPeriod);
        if (uint256(tally.attested) + tally.revealed >= job.attestors) revert Full();
        Attestation storage attestation = attestations[hash][msg.sender];
        if (attestation.phase != AttestationPhase.None) revert AlreadyAttested();

        tally.attested++;
        attestation.phase = AttestationPhase.Sealed;
        attestation.round = tally.round;
        attestation.value = seal;

        uint256 step = _sampledStep(seed, msg.sender, segment.steps);
        emit Attested(key, segment.index, msg.sender, step, seal);
    }

    /// @inheritdoc IRegistry
    function reveal(bytes32 key, Segment calldata segment, bytes32 traceRoot) external {
        Job storage job = jobs[key];
        _requirePhase(job, Phase.Running);
        bytes32 hash = _requireCommitted(key, job, segment);
        Tally storage tally = tallies[hash];
        Attestation storage attestation = attestations[hash][msg.sender];
        if (attestation.phase != AttestationPhase.Sealed) revert NotSealed();
        uint256 start = _roundStart(tally, segment) + job.attestPeriod;
        if (attestation.round != tally.round) revert TooLate(start);
        _requireAfter(start);
        _requireNotAfter(start + job.revealPeriod);
        if (keccak256(abi.encode(msg.sender, hash, traceRoot)) != attestation.value) {
            revert WrongReveal();
        }

        attestation.phase = AttestationPhase.Revealed;
        attestation.value = traceRoot;
        tally.attested--;
        tally.revealed++;

        emit Revealed(key, segment.index, msg.sender, traceRoot);
    }

    /// @inheritdoc IRegistry
    function sealClaim(bytes32 seal) external {
        if (seals[seal] != 0) revert ClaimExists();

        seals[seal] = _height();

        emit Sealed(seal);
    }

    /// @inheritdoc IRegistry
    function claim(
        bytes32 job,
        Segment calldata segment,
        uint256 step,
        bytes32 preState,
        bytes32 postState,
        bytes32 salt
    ) external payable returns (bytes32 key) {
        bytes32 subject = keccak256(abi.encode(step, preState, postState));
        Claim storage dispute;
        (key, dispute) = _openClaim(job, segment, address(0), subject, salt);
        if (step >= segment.steps) revert WrongSteps(segment.steps - 1);

        dispute.phase = ClaimPhase.Called;
        dispute.turn = Turn.Accused;

        emit Claimed(
            job, segment.index, key, msg.sender, step, preState, postState, dispute.deadline
        );
    }

    /// @inheritdoc IRegistry
    function accuse(bytes32 job, Segment calldata segment, address attestor, bytes32 salt)
        external
        payable
        returns (bytes32 key)
    {
        Claim storage dispute;
        if (attestor == address(0)) revert ZeroAddress();
        (key, dispute) = _openClaim(job, segment, attestor, 0, salt);
        if (attestations[dispute.segment][attestor].phase != AttestationPhase.Revealed) {
            revert NotRevealed();
        }

        dispute.phase = ClaimPhase.Tried;
        dispute.turn = Turn.Claimant;
        dispute.attestor = attestor;

        emit Accused(job, segment.index, key, msg.sender, attestor, dispute.deadline);
    }

    ////////////////////////////////////////////////////////////////
    //                    Moves of the referee                    //
    ////////////////////////////////////////////////////////////////

    /// @inheritdoc IRegistry
    function passTurn(bytes32 key, Turn turn) external {
        Claim storage dispute = claims[key];
        Job storage job = jobs[dispute.job];
        _requireReferee(dispute, job);
        // An accused needs a turn left to pass it back.
        uint256 needed = turn == Turn.Accused ? 2 : 1;
        if (dispute.turns + needed > TURNS_MAX) revert OutOfTurns();

        dispute.turns++;
        dispute.turn = turn;
        dispute.deadline = _respondFromNow(job);

        emit TurnPassed(key, turn, dispute.deadline);
    }

    /// @inheritdoc IRegistry
    function rule(bytes32 key, bool upheld) external {
        Claim storage dispute = claims[key];
        Job storage job = jobs[dispute.job];
        _requireReferee(dispute, job);
        _endClaim(key, dispute, job, upheld);
    }

    /// @inheritdoc IRegistry
    function trial(bytes32 key) external view returns (Trial memory found) {
        Claim storage dispute = claims[key];
        Job storage job = jobs[dispute.job];
        _requireTried(dispute, job);
        address attestor = dispute.attestor;
        bytes32 segment = dispute.segment;

        found.claimant = dispute.claimant;
        found.attestor = attestor;
        found.turn = dispute.turn;
        found.job = dispute.job;
        found.segment = segment;
        if (attestor == address(0)) {
            found.accused = job.solver;
            found.traceRoot = dispute.traceRoot;
        } else {
            found.accused = attestor;
            found.traceRoot = attestations[segment][attestor].value;
            found.seed = tallies[segment].seed;
        }
        found.diverged = job.ended && segments[dispute.job][job.committed - 1] == segment;
    }

    ////////////////////////////////////////////////////////////////
    //                      Moves of anybody                      //
    ////////////////////////////////////////////////////////////////

    /// @inheritdoc IRegistry
    function timeout(bytes32 key) external {
        Claim storage dispute = claims[key];
        Job storage job = jobs[dispute.job];
        if (
            dispute.phase == ClaimPhase.None || dispute.phase == ClaimPhase.Closed
                || _isMoot(dispute, job)
        ) {
            revert WrongPhase(uint256(dispute.phase));
        }
        _requireAfter(dispute.deadline);
        _endClaim(key, dispute, job, dispute.turn == Turn.Accused);
    }

    /// @inheritdoc IRegistry
    function lapse(bytes32 key) external {
        Claim storage dispute = claims[key];
        Job storage job = jobs[dispute.job];
        if (dispute.phase == ClaimPhase.None || dispute.phase == ClaimPhase.Closed) {
            revert WrongPhase(uint256(dispute.phase));
        }
        if (!_isMoot(dispute, job)) revert NotLapsed();

        dispute.phase = ClaimPhase.Closed;
        if (dispute.generation == job.generation) {
            job.openClaims--;
            tallies[dispute.segment].openClaims--;
        }
        owed[dispute.claimant] += job.claimBond;

        emit Lapsed(key);
    }

    /// @inheritdoc IRegistry
    function renew(bytes32 key, Segment calldata segment) external {
        Job storage job = jobs[key];
        _requirePhase(job, Phase.Running);
        bytes32 hash = _requireCommitted(key, job, segment);
        if (segment.index < job.finalized) revert WrongIndex(job.finalized);
        _requireNotAfter(job.deadline);
        Tally storage tally = tallies[hash];
        _requireAfter(_roundStart(tally, segment) + job.attestPeriod + job.revealPeriod);
        if (!_isMandatory(key, job, segment, hash) || tally.revealed >= job.attestors) {
            revert NotNeeded();
        }

        tally.round++;
        tally.attested = 0;
        tally.start = uint40(_now());

        emit Renewed(key, segment.index, _now());
    }

    /// @inheritdoc IRegistry
    function finalize(bytes32 key, Segment calldata segment) external {
        Job storage job = jobs[key];
        _requirePhase(job, Phase.Running);
        bytes32 hash = _requireCommitted(key, job, segment);
        if (segment.index != job.finalized) revert WrongIndex(job.finalized);
        Tally storage tally = tallies[hash];
        _requireAfter(_claimEnd(job, tally, segment));
        if (tally.openClaims != 0) revert ClaimsOpen(tally.openClaims);
        if (_isMandatory(key, job, segment, hash) && tally.revealed < job.attestors) {
            revert CoverageMissing(tally.revealed);
        }

        job.finalized++;
        owed[job.solver] += job.segmentReward;
        owed[job.client] += (uint256(job.attestors) - tally.revealed) * job.attestFee;

        emit Finalized(key, segment.index);
        _closeIfComplete(key, job);
    }

    /// @inheritdoc IRegistry
    function settle(bytes32 key, Segment calldata segment, address attestor) external {
        Job storage job = jobs[key];
        bytes32 hash = _hashSegment(key, segment);
        bool kept = segment.index < job.committed && segments[key][segment.index] == hash;
        Attestation storage attestation = attestations[hash][attestor];
        AttestationPhase phase = attestation.phase;
        Tally storage tally = tallies[hash];
        address payee = attestor;
        uint256 amount = job.attestBond;

        if (phase == AttestationPhase.None || phase == AttestationPhase.Closed) revert NotSealed();
        if (kept && phase == AttestationPhase.Sealed) {
            // It could have revealed and did not. In an earlier round its time is over anyway.
            if (attestation.round == tally.round) {
                _requireAfter(_roundStart(tally, segment) + job.attestPeriod + job.revealPeriod);
            }
            payee = segment.solver;
        } else if (kept) {
            if (segment.index >= job.finalized) revert WrongIndex(job.finalized);
            amount += job.attestFee;
        }

        attestation.phase = AttestationPhase.Closed;
        owed[payee] += amount;

        emit Settled(key, segment.index, attestor, payee, amount);
    }

    /// @inheritdoc IRegistry
    function release(bytes32 key) external {
        Job storage job = jobs[key];
        _requirePhase(job, Phase.Running);
        _requireAfter(job.due);
        if (job.committed != job.finalized) revert WrongIndex(job.finalized);

        address solver = job.solver;
        uint256 penalty = job.stake / LATE_SHARE;
        owed[job.client] += penalty;
        owed[solver] += job.stake - penalty;
        job.phase = Phase.Open;
        job.solver = address(0);

        emit Released(key, solver, penalty);
    }

    /// @inheritdoc IRegistry
    function expire(bytes32 key) external {
        Job storage job = jobs[key];
        if (job.phase != Phase.Open && job.phase != Phase.Running) {
            revert WrongPhase(uint256(job.phase));
        }
        if (job.phase == Phase.Open) {
            _requireAfter(job.deadline);
        } else {
            _requireAfter(
                uint256(job.deadline) + job.attestPeriod + job.revealPeriod + job.claimPeriod
            );
        }
        if (job.openClaims != 0) revert ClaimsOpen(job.openClaims);

        if (job.phase == Phase.Running) {
            owed[job.solver] += job.stake;
            _voidCommitted(job);
        }
        _refundRest(job);
        job.phase = Phase.Closed;

        emit Closed(key, job.finalized);
    }

    /// @inheritdoc IRegistry
    function withdraw(address to) external {
        uint256 amount = owed[msg.sender];
        if (amount == 0) revert NothingOwed();
        if (to == address(0)) revert ZeroAddress();

        owed[msg.sender] = 0;
        emit Withdrawn(msg.sender, to, amount);

        (bool paid,) = to.call{value: amount}("");
        if (!paid) revert WithdrawFailed();
    }

    ////////////////////////////////////////////////////////////////
    //                    Internal: terms, time                   //
    ////////////////////////////////////////////////////////////////

    /// @dev Returns the number of segments. The numbers in BadTerms are positions in Terms.
    function _checkTerms(Terms calldata terms) internal view returns (uint256 count) {
        if (terms.jobId == 0) revert BadTerms(0);
        if (terms.steps == 0 || terms.steps > TIME_MAX) revert BadTerms(5);
        if (terms.segmentSteps == 0 || terms.segmentSteps > PERIOD_MAX) revert BadTerms(6);
        count = (terms.steps + terms.segmentSteps - 1) / terms.segmentSteps;
        if (count > SEGMENTS_MAX) revert BadTerms(6);
        if (terms.segmentReward == 0 || terms.segmentReward > AMOUNT_MAX) revert BadTerms(7);
        if (terms.attestFee > AMOUNT_MAX) revert BadTerms(8);
        if (terms.stake == 0 || terms.stake > AMOUNT_MAX) revert BadTerms(9);
        if (terms.claimBond == 0 || terms.claimBond > terms.stake) revert BadTerms(10);
        if (terms.attestors > ATTESTORS_MAX) revert BadTerms(12);
        if (terms.attestBond > AMOUNT_MAX || (terms.attestBond == 0 && terms.attestors > 0)) {
            revert BadTerms(11);
        }
        if (terms.coveragePpm > PPM || (terms.coveragePpm > 0 && terms.attestors == 0)) {
            revert BadTerms(13);
        }
        _checkPeriod(terms.segmentPeriod, 14);
        _checkPeriod(terms.attestPeriod, 15);
        _checkPeriod(terms.revealPeriod, 16);
        _checkPeriod(terms.claimPeriod, 17);
        _checkPeriod(terms.responsePeriod, 18);
        if (terms.deadline <= _now() || terms.deadline > TIME_MAX / 2) revert BadTerms(19);
    }

    function _checkPeriod(uint256 period, uint256 field) internal pure {
        if (period == 0 || period > PERIOD_MAX) revert BadTerms(field);
    }

    function _storeTerms(Job storage job, Terms calldata terms) internal {
        job.attestors = uint16(terms.attestors);
        job.steps = uint40(terms.steps);
        job.segmentSteps = uint24(terms.segmentSteps);
        job.deadline = uint40(terms.deadline);
        job.segmentPeriod = uint24(terms.segmentPeriod);
        job.attestPeriod = uint24(terms.attestPeriod);
        job.revealPeriod = uint24(terms.revealPeriod);
        job.claimPeriod = uint24(terms.claimPeriod);
        job.responsePeriod = uint24(terms.responsePeriod);
        job.stake = uint96(terms.stake);
        job.claimBond = uint96(terms.claimBond);
        job.coveragePpm = uint24(terms.coveragePpm);
        job.segmentReward = uint96(terms.segmentReward);
        job.attestFee = uint96(terms.attestFee);
        job.attestBond = uint96(terms.attestBond);
        job.jobId = terms.jobId;
        job.roots = keccak256(abi.encode(terms.programRoot, terms.dataRoot, terms.firstStateRoot));
    }

    function _now() internal view virtual returns (uint256) {
        return block.timestamp;
    }

    function _height() internal view virtual returns (uint256) {
        return block.number;
    }

    function _hashOfBlock(uint256 height) internal view virtual returns (bytes32) {
        return blockhash(height);
    }

    /// @dev A commit may come until the next is due, and never after the deadline.
    function _dueFromNow(Job storage job) internal view returns (uint40) {
        uint256 due = _now() + job.segmentPeriod;
        return uint40(due < job.deadline ? due : job.deadline);
    }

    function _respondFromNow(Job storage job) internal view returns (uint40) {
        return uint40(_now() + job.responsePeriod);
    }

    function _requireNotAfter(uint256 time) internal view {
        if (_now() > time) revert TooLate(time);
    }

    function _requireAfter(uint256 time) internal view {
        if (_now() <= time) revert TooEarly(time);
    }

    ////////////////////////////////////////////////////////////////
    //                     Internal: segments                     //
    ////////////////////////////////////////////////////////////////

    function _requirePhase(Job storage job, Phase phase) internal view {
        if (job.phase != phase) revert WrongPhase(uint256(job.phase));
    }

    function _requireMayCommit(Job storage job, uint256 index, bytes32 root) internal view {
        _requirePhase(job, Phase.Running);
        if (msg.sender != job.solver) revert NotYours(job.solver);
        if (index != job.committed) revert WrongIndex(job.committed);
        if (index >= job.segments || job.ended) revert WrongIndex(job.segments);
        _requireNotAfter(job.due);
        if (root == 0) revert ZeroRoot();
    }

    /// @dev All segments have the same number of steps, except that the last has what is left.
    function _segmentSteps(Job storage job, uint256 index) internal view returns (uint256) {
        uint256 size = job.segmentSteps;
        uint256 rest = job.steps - index * size;
        return rest < size ? rest : size;
    }

    function _commit(
        bytes32 key,
        Job storage job,
        uint256 index,
        bytes32 root,
        uint256 steps,
        bool diverged
    ) internal {
        segments[key][index] = keccak256(
            abi.encode(
                key, Segment(index, job.generation, root, steps, _now(), _height(), msg.sender)
            )
        );
        job.committed = uint24(index + 1);
        job.due = _dueFromNow(job);

        emit Committed(key, index, job.generation, root, steps, _now(), msg.sender, diverged);
    }

    function _hashSegment(bytes32 key, Segment calldata segment) internal pure returns (bytes32) {
        return keccak256(abi.encode(key, segment));
    }

    /// @dev The hash of a segment that stands: committed, and not void by a conviction.
    function _requireCommitted(bytes32 key, Job storage job, Segment calldata segment)
        internal
        view
        returns (bytes32 hash)
    {
        hash = _hashSegment(key, segment);
        if (segment.index >= job.committed || segments[key][segment.index] != hash) {
            revert WrongSegment();
        }
    }

    /// @dev The seed of a segment, made now if it is not there. Nobody knows the hash of the block
    /// after the commit's when the commit is sent. If it is no longer readable, another seed is drawn
    /// and the segment must be covered: waiting for a lucky draw gains nothing.
    function _draw(bytes32 key, Job storage job, Segment calldata segment, bytes32 hash)
        internal
        returns (bytes32 seed)
    {
        Tally storage tally = tallies[hash];
        seed = tally.seed;
        if (seed != 0) return seed;
        if (_height() <= segment.height + 1) revert TooEarly(segment.height + 2);

        bytes32 entropy = _hashOfBlock(segment.height + 1);
        bool late = entropy == 0;
        if (late) entropy = _hashOfBlock(_height() - 1);
        seed = keccak256(abi.encode(entropy, hash));
        tally.seed = seed;
        tally.mandatory =
            job.coveragePpm > 0 && (late || uint256(seed) % PPM < job.coveragePpm);

        emit Drawn(key, segment.index, seed, tally.mandatory);
    }

    function _isMandatory(bytes32 key, Job storage job, Segment calldata segment, bytes32 hash)
        internal
        returns (bool)
    {
        if (job.coveragePpm == 0) return false;
        if (job.coveragePpm == PPM) return true;
        _draw(key, job, segment, hash);
        return tallies[hash].mandatory;
    }

    function _sampledStep(bytes32 seed, address attestor, uint256 steps)
        internal
        pure
        returns (uint256)
    {
        return uint256(keccak256(abi.encode(seed, attestor))) % steps;
    }

    function _roundStart(Tally storage tally, Segment calldata segment)
        internal
        view
        returns (uint256)
    {
        return tally.start == 0 ? segment.time : tally.start;
    }

    function _claimEnd(Job storage job, Tally storage tally, Segment calldata segment)
        internal
        view
        returns (uint256)
    {
        return _roundStart(tally, segment) + job.attestPeriod + job.revealPeriod + job.claimPeriod;
    }

    ////////////////////////////////////////////////////////////////
    //                      Internal: claims                      //
    ////////////////////////////////////////////////////////////////

    function _openClaim(
        bytes32 jobKey,
        Segment calldata segment,
        address attestor,
        bytes32 subject,
        bytes32 salt
    ) internal returns (bytes32 key, Claim storage dispute) {
        Job storage job = jobs[jobKey];
        _requirePhase(job, Phase.Running);
        bytes32 hash = _requireCommitted(jobKey, job, segment);
        if (segment.index < job.finalized) revert WrongIndex(job.finalized);
        if (msg.value != job.claimBond) revert WrongValue(job.claimBond);
        if (msg.sender == segment.solver || msg.sender == attestor) revert SelfDealing();
        Tally storage tally = tallies[hash];
        _requireNotAfter(_claimEnd(job, tally, segment));

        key = keccak256(abi.encode(msg.sender, hash, attestor, subject));
        _openSeal(keccak256(abi.encode(key, salt)));
        dispute = claims[key];
        if (dispute.phase != ClaimPhase.None) revert ClaimExists();

        dispute.claimant = msg.sender;
        dispute.generation = job.generation;
        dispute.deadline = _respondFromNow(job);
        dispute.job = jobKey;
        dispute.segment = hash;
        job.openClaims++;
        tally.openClaims++;
    }

    /// @dev A seal must be older than this block, so nobody can copy a claim from the pool.
    function _openSeal(bytes32 seal) internal {
        uint256 height = seals[seal];
        if (height == 0) revert NotSealed();
        if (_height() <= height) revert TooEarly(height + 1);
        delete seals[seal];
    }

    /// @dev Is the accused gone: convicted by another claim?
    function _isMoot(Claim storage dispute, Job storage job) internal view returns (bool) {
        if (dispute.generation != job.generation) return true;
        if (dispute.attestor == address(0)) return false;
        return attestations[dispute.segment][dispute.attestor].phase != AttestationPhase.Revealed;
    }

    function _requireAlive(Claim storage dispute, Job storage job, ClaimPhase phase) internal view {
        if (dispute.phase != phase || _isMoot(dispute, job)) {
            revert WrongPhase(uint256(dispute.phase));
        }
    }

    function _requireReferee(Claim storage dispute, Job storage job) internal view {
        if (msg.sender != REFEREE) revert NotYours(REFEREE);
        _requireTried(dispute, job);
    }

    function _requireTried(Claim storage dispute, Job storage job) internal view {
        _requireAlive(dispute, job, ClaimPhase.Tried);
        _requireNotAfter(dispute.deadline);
    }

    function _endClaim(bytes32 key, Claim storage dispute, Job storage job, bool upheld) internal {
        uint256 bond = job.claimBond;
        address claimant = dispute.claimant;
        address attestor = dispute.attestor;
        Tally storage tally = tallies[dispute.segment];

        dispute.phase = ClaimPhase.Closed;
        job.openClaims--;
        tally.openClaims--;
        emit Ruled(key, upheld);

        if (!upheld) {
            owed[attestor == address(0) ? job.solver : attestor] += bond;
        } else if (attestor == address(0)) {
            owed[claimant] += bond;
            _convict(dispute.job, job, claimant);
        } else {
            owed[claimant] += bond + job.attestBond;
            attestations[dispute.segment][attestor].phase = AttestationPhase.Closed;
            tally.revealed--;
        }
    }

    /// @dev Half of the stake pays the whistle. The other half goes to the client and never to the
    /// claimant: else a solver that is about to be caught could claim against itself for nothing.
    function _convict(bytes32 key, Job storage job, address claimant) internal {
        address solver = job.solver;
        uint256 half = job.stake / 2;

        owed[claimant] += half;
        owed[job.client] += job.stake - half;
        _voidCommitted(job);
        job.phase = Phase.Open;
        job.solver = address(0);

        emit Convicted(key, solver, job.finalized);
    }

    ////////////////////////////////////////////////////////////////
    //                        Internal: ends                      //
    ////////////////////////////////////////////////////////////////

    /// @dev Forgets every segment that is not final.
    function _voidCommitted(Job storage job) internal {
        job.generation++;
        job.committed = job.finalized;
        job.openClaims = 0;
        job.ended = false;
    }

    function _closeIfComplete(bytes32 key, Job storage job) internal {
        bool complete =
            job.finalized == job.segments || (job.ended && job.finalized == job.committed);
        if (!complete) return;

        owed[job.solver] += job.stake;
        _refundRest(job);
        job.phase = Phase.Closed;

        emit Closed(key, job.finalized);
    }

    /// @dev Refunds the escrow of segments that will never be final.
    function _refundRest(Job storage job) internal {
        uint256 rest = uint256(job.segments) - job.finalized;
        owed[job.client] +=
            rest * (uint256(job.segmentReward) + uint256(job.attestors) * job.attestFee);
    }
}
