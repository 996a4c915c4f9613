// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IRegistry, jobKeyOn} from "./IRegistry.sol";
import {ISeeds} from "./ISeeds.sol";
import {Panel} from "./Panel.sol";

/// @title Registry
/// @notice Holds all money, jobs, segments, panels and verdicts.
/// @dev Makes no call except to pay out at the end of withdraw(), and to ask its seeds, which can
/// change nothing. The referee calls this contract, never the other way round. Every move checks first, in the order in which the code reads, and
/// changes afterwards.
///
/// INVARIANT: the balance is at least all that is owed, held (escrows, pools, stakes, bonds, pots,
/// held parts) and burned.
contract Registry is Panel {
    /// @notice The only account that may judge.
    address public immutable REFEREE;

    constructor(address referee, ISeeds seeds) Panel(seeds) {
        REFEREE = referee;
    }

    ////////////////////////////////////////////////////////////////
    //                    Moves of the client                     //
    ////////////////////////////////////////////////////////////////

    /// @inheritdoc IRegistry
    function open(Terms calldata terms, bytes calldata contact)
        external
        payable
        returns (bytes32 key)
    {
        uint256 count = _checkTerms(terms);
        uint256 pool = _pool(count, terms.seats, terms.fee, terms.coveragePpm);
        uint256 escrow = count * terms.rewardTo + pool;
        if (escrow > AMOUNT_MAX) revert BadTerms(8);
        _requireShort(contact);
        _requireValue(escrow);
        key = jobKeyOn(address(this), msg.sender, terms.jobId, terms.salt);
        Job storage job = _jobs[key];
        if (job.phase != Phase.None) revert JobExists();

        job.client = msg.sender;
        job.segments = uint24(count);
        job.pool = uint96(pool);
        _storeTerms(job, terms);
        _reopen(job);

        emit Opened(key, msg.sender, terms, contact);
    }

    /// @inheritdoc IRegistry
    function cancel(bytes32 key) external {
        Job storage job = _jobs[key];
        _requirePhase(job, Phase.Open);
        _requireSender(job.client);

        _close(job);

        emit Cancelled(key);
    }

    /// @inheritdoc IRegistry
    function rewind(bytes32 key, uint256 index) external payable {
        Job storage job = _jobs[key];
        _requirePhase(job, Phase.Open);
        _requireSender(job.client);
        if (index >= job.finalized) revert WrongIndex(job.finalized);
        uint256 count = job.finalized - index;
        uint256 pool = _pool(count, job.seats, job.fee, job.coveragePpm);
        _requireValue(count * job.rewardTo + pool);

        job.pool += uint96(pool);
        job.generation++;
        job.finalized = uint24(index);
        job.committed = uint24(index);

        emit Rewound(key, index);
    }

    /// @inheritdoc IRegistry
    function acknowledge(bytes32 key) external {
        Job storage job = _jobs[key];
        _requirePhase(job, Phase.Closed);
        _requireSender(job.client);
        if (job.held == 0 || job.asked) revert NotNeeded();
        _requireNotAfter(uint256(job.closedAt) + job.deliveryPeriod);

        _deliver(key, job, job.solver);
    }

    /// @inheritdoc IRegistry
    function askPanel(bytes32 key, Segment calldata segment) external payable {
        Job storage job = _jobs[key];
        _requirePhase(job, Phase.Closed);
        _requireSender(job.client);
        if (job.held == 0 || job.asked || job.seats == 0) revert NotNeeded();
        _requireNotAfter(uint256(job.closedAt) + job.deliveryPeriod / 2);
        bytes32 hash = _hashSegment(key, segment);
        if (segment.index + 1 != job.finalized || segments[key][segment.index] != hash) {
            revert WrongSegment();
        }
        uint256 fees = 2 * uint256(job.seats) * job.fee;
        _requireValue(fees);

        // As a commit of now, in the place of the last segment.
        Segment memory asked = segment;
        asked.time = _now();
        asked.height = _height();
        asked.panel = job.entries;
        segments[key][segment.index] = keccak256(abi.encode(key, asked));
        job.asked = true;
        job.pool = uint96(fees);

        emit Asked(key);
    }

    ////////////////////////////////////////////////////////////////
    //                    Moves of the solver                     //
    ////////////////////////////////////////////////////////////////

    /// @inheritdoc IRegistry
    function accept(
        bytes32 key,
        uint256 leastReward,
        bytes32[] calldata path,
        bytes calldata contact
    ) external payable {
        Job storage job = _jobs[key];
        _requirePhase(job, Phase.Open);
        _requireNotAfter(job.deadline);
        uint256 reward = _rewardNow(job);
        if (reward < leastReward) revert TooLittle(reward);
        if (job.active < job.panelLeast) revert PanelShort(job.active);
        _requireValue(job.stake);
        _requireAllowed(job.solvers, path);
        _requireShort(contact);

        job.phase = Phase.Running;
        job.solver = msg.sender;
        job.due = _dueFromNow(job);
        job.reward = uint96(reward);
        job.acceptedAt = uint40(_now());
        job.start = job.finalized;

        emit Accepted(key, msg.sender, reward, job.due, contact);
    }

    /// @inheritdoc IRegistry
    function stepBack(bytes32 key) external {
        Job storage job = _jobs[key];
        _requirePhase(job, Phase.Running);
        _requireSender(job.solver);
        if (job.committed != job.start) revert WrongIndex(job.start);
        _requireNotAfter(uint256(job.acceptedAt) + job.segmentPeriod);

        uint256 penalty = job.stake / BACK_SHARE;
        _leaveJob(job, penalty);

        emit SteppedBack(key, msg.sender, penalty);
    }

    /// @inheritdoc IRegistry
    function commit(bytes32 key, uint256 index, bytes32[] calldata states, bool diverged)
        external
    {
        Job storage job = _jobs[key];
        _requirePhase(job, Phase.Running);
        _requireSender(job.solver);
        if (index != job.committed) revert WrongIndex(job.committed);
        if (index >= job.segments || job.ended) revert WrongIndex(job.segments);
        _requireNotAfter(job.due);
        uint256 steps = states.length;
        uint256 most = _segmentSteps(job, index);
        if (diverged ? steps == 0 || steps > most : steps != most) revert WrongSteps(most);

        Segment memory segment = Segment({
            index: index,
            generation: job.generation,
            root: _segmentRoot(states, _firstStep(job, index)),
            steps: steps,
            time: _now(),
            height: _height(),
            solver: msg.sender,
            panel: job.entries,
            diverged: diverged
        });
        segments[key][index] = keccak256(abi.encode(key, segment));
        job.committed = uint24(index + 1);
        job.due = _dueFromNow(job);
        if (diverged) job.ended = true;

        emit Committed(key, segment, states);
    }

    ////////////////////////////////////////////////////////////////
    //                      Moves of anybody                      //
    ////////////////////////////////////////////////////////////////

    /// @inheritdoc IRegistry
    function finalize(bytes32 key, Segment calldata segment) external {
        Job storage job = _jobs[key];
        bytes32 hash = _requireCommitted(key, job, segment);
        if (segment.index != job.finalized) revert WrongIndex(job.finalized);
        Tally storage tally = _tallies[hash];
        _requireClaimsOver(job, tally, segment);
        if (tally.covered) {
            _closeRound(key, job, segment.index, hash, tally);
            bool enough =
                _score(tally) >= int256(uint256(job.seats)) || _isEnoughAsleep(job, tally);
            if (!enough) revert CoverageMissing(tally.rights);
            _payRights(key, job, segment.index, hash, tally);
        }

        uint256 kept = uint256(job.reward) * job.heldPpm / PPM;
        job.held += uint96(kept);
        _owe(segment.solver, job.reward - kept);
        _owe(job.client, job.rewardTo - job.reward);
        job.finalized++;
        emit Finalized(key, segment.index, job.reward);

        if (job.finalized == job.segments || segment.diverged) {
            _owe(job.solver, job.stake);
            _close(job);
            emit Closed(key, job.finalized);
        }
    }

    /// @inheritdoc IRegistry
    function forfeit(bytes32 key, Segment calldata segment) external {
        Job storage job = _jobs[key];
        bytes32 hash = _requireCommitted(key, job, segment);
        if (segment.index != job.finalized) revert WrongIndex(job.finalized);
        Tally storage tally = _tallies[hash];
        _requireClaimsOver(job, tally, segment);
        if (!tally.covered) revert NotNeeded();
        _closeRound(key, job, segment.index, hash, tally);
        bool refused = _score(tally) <= VOID_SCORE;
        if (!refused && (!tally.asleep || _isEnoughAsleep(job, tally))) revert NotNeeded();

        uint256 penalty = refused ? job.stake / LATE_SHARE : 0;
        address solver = job.solver;
        _leaveJob(job, penalty);
        _voidCommitted(job);

        emit Voided(key, solver, job.finalized, penalty);
    }

    /// @inheritdoc IRegistry
    function release(bytes32 key) external {
        Job storage job = _jobs[key];
        _requirePhase(job, Phase.Running);
        _requireAfter(job.due);
        // After the deadline a job expires, and its solver has lost nothing.
        _requireNotAfter(job.deadline);
        if (job.committed != job.finalized) revert WrongIndex(job.finalized);

        address solver = job.solver;
        uint256 penalty = job.stake / LATE_SHARE;
        _leaveJob(job, penalty);

        emit Released(key, solver, penalty);
    }

    /// @inheritdoc IRegistry
    function expire(bytes32 key) external {
        Job storage job = _jobs[key];
        if (job.phase != Phase.Open) _requirePhase(job, Phase.Running);
        _requireAfter(job.deadline);
        // What was committed in time is carried to its end first.
        if (job.committed != job.finalized) revert WrongIndex(job.finalized);

        if (job.phase == Phase.Running) _leaveJob(job, 0);
        _close(job);

        emit Closed(key, job.finalized);
    }

    /// @inheritdoc IRegistry
    function deliver(bytes32 key) external {
        Job storage job = _jobs[key];
        _requirePhase(job, Phase.Closed);
        if (job.held == 0) revert NotNeeded();
        address to = job.solver;
        if (job.asked) {
            uint256 last = uint256(job.finalized) - 1;
            bytes32 hash = segments[key][last];
            Tally storage tally = _tallies[hash];
            bool over = tally.closed && (_hasScore(job, tally) || tally.asleep);
            if (!over) revert CoverageMissing(tally.rights);

            if (_score(tally) <= VOID_SCORE) to = job.client;
            _payRights(key, job, last, hash, tally);
            _owe(job.client, job.pool);
            job.pool = 0;
        } else {
            _requireAfter(uint256(job.closedAt) + job.deliveryPeriod);
        }
        _deliver(key, job, to);
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
    //                    Moves of the referee                    //
    ////////////////////////////////////////////////////////////////

    modifier onlyReferee() {
        _requireSender(REFEREE);
        _;
    }

    /// @notice Takes bonds and query fees, which the referee keeps account of.
    function deposit() external payable onlyReferee {}

    /// @notice Takes a bond from what its owner is owed.
    function spend(address owner, uint256 amount) external onlyReferee {
        _spend(owner, amount);
    }

    /// @notice Owes what was deposited, or was in a bond or stake that the referee was told of.
    function credit(address owner, uint256 amount) external onlyReferee {
        _owe(owner, amount);
    }

    function burn(uint256 amount) external onlyReferee {
        burned += amount;
    }

    /// @notice A dispute about a segment that stands.
    function hold(bytes32 key) external onlyReferee {
        _jobs[key].openClaims++;
    }

    /// @notice The end of a dispute. Those of a generation that is over hold nothing.
    function free(bytes32 key, uint256 generation) external onlyReferee {
        Job storage job = _jobs[key];
        if (job.generation == generation) job.openClaims--;
    }

    /// @notice A seat reveals that a step is false. Its entry is gone.
    /// @return bond What its bond still is: now the claim's.
    function raise(
        bytes32 key,
        Segment calldata segment,
        uint256 place,
        address owner,
        uint256 step,
        bytes32 salt
    ) external onlyReferee returns (uint256 bond) {
        Job storage job = _jobs[key];
        bytes32 hash = _requireCommitted(key, job, segment);
        Tally storage tally = _tallies[hash];
        (Seat memory seat, uint256 number) = _requireSeat(key, hash, tally, place, owner);
        bytes32 value = _sealOf(owner, hash, Verdict.False, step, 0, salt);
        _requireReveal(job, tally, seat, value);

        _setPhase(hash, tally, place, CLOSED);
        bond = _remove(job, entries[key][number]);

        emit Revealed(key, segment.index, place, owner, Verdict.False, 0, salt);
        emit Gone(key, number, owner, 0);
    }

    /// @notice A right was disproved. Half of its entry's bond is the mover's; nothing, where the
    /// entry is gone.
    function disprove(bytes32 key, Segment calldata segment, uint256 place, address mover)
        external
        onlyReferee
    {
        Job storage job = _jobs[key];
        (bytes32 hash,) = _requireRight(key, segment, place);
        Tally storage tally = _tallies[hash];
        uint256 number = _entryOf(tally, place);
        Entry storage entry = entries[key][number];

        tally.rights--;
        _setPhase(hash, tally, place, CLOSED);
        emit Disproved(key, segment.index, hash, place, number, mover);
        if (entry.gone) return;
        uint256 bond = _remove(job, entry);
        burned += bond / 2;
        _owe(mover, bond - bond / 2);
        emit Gone(key, number, entry.owner, 0);
    }

    /// @notice The solver was proven wrong. What is not final is void.
    /// @return stake Now the referee's to share out.
    function convict(bytes32 key) external onlyReferee returns (uint256 stake) {
        Job storage job = _jobs[key];
        address solver = job.solver;

        stake = job.stake;
        _owe(job.client, job.held);
        job.held = 0;
        _voidCommitted(job);
        _reopen(job);

        emit Convicted(key, solver, job.finalized);
    }

    /// @notice What a claim can be about: a segment that stands and is not final.
    function standing(bytes32 key, Segment calldata segment)
        external
        view
        returns (Standing memory found)
    {
        Job storage job = _jobs[key];
        found.hash = _requireCommitted(key, job, segment);
        if (segment.index < job.finalized) revert WrongIndex(job.finalized);
        Tally storage tally = _tallies[found.hash];
        found.generation = job.generation;
        found.claimEnd = _claimEnd(job, tally, segment);
        found.openClaims = job.openClaims;
        found.bond = job.bond;
        found.queryFee = job.queryFee;
        found.clock = job.clock;
        found.firstStep = _firstStep(job, segment.index);
    }

    /// @notice The right at a place, of a segment that stands and is not final.
    /// @param leaves As they were revealed, with the salt.
    function right(
        bytes32 key,
        Segment calldata segment,
        uint256 place,
        bytes16 leaves,
        bytes32 salt
    )
        external
        view
        returns (Shown memory found)
    {
        Job storage job = _jobs[key];
        Seat memory seat;
        _requireSubject(key, job, segment.index, _hashSegment(key, segment));
        if (_isAnswered(job, segment.index)) revert WrongIndex(job.finalized);
        (found.hash, seat) = _requireRight(key, segment, place);
        Tally storage tally = _tallies[found.hash];
        found.seed = bytes32(uint256(tally.seed));
        found.owner = entries[key][_entryOf(tally, place)].owner;
        bytes32 value = _sealOf(found.owner, found.hash, Verdict.Right, 0, leaves, salt);
        if (seat.value != bytes16(value)) revert WrongReveal();
        found.firstStep = _firstStep(job, segment.index);
    }

    function clientOf(bytes32 key) external view returns (address) {
        return _jobs[key].client;
    }

    /// @notice What moves have changed in a job. Its terms are in the event Opened.
    function jobs(bytes32 key) external view returns (Progress memory found) {
        Job storage job = _jobs[key];
        found.phase = job.phase;
        found.client = job.client;
        found.solver = job.solver;
        found.generation = job.generation;
        found.segments = job.segments;
        found.committed = job.committed;
        found.finalized = job.finalized;
        found.openClaims = job.openClaims;
        found.entries = job.entries;
        found.active = job.active;
        found.openedAt = job.openedAt;
        found.acceptedAt = job.acceptedAt;
        found.closedAt = job.closedAt;
        found.due = job.due;
        found.reward = job.reward;
        found.held = job.held;
        found.ended = job.ended;
    }
}
