// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IRegistry, jobKeyOn} from "./IRegistry.sol";
import {ISeeds} from "./ISeeds.sol";
import {Notary} from "./Notary.sol";
import {Panel} from "./Panel.sol";
import {Purse} from "./Purse.sol";

/// @title Registry
/// @notice Holds all money, jobs, segments, panels and verdicts.
/// @dev Makes no call except to its token, to pay out at the end of withdraw(), and to ask its
/// seeds and a keeper that is a contract, which can change nothing. The referee calls this
/// contract, never the other way round. Every move checks first, in the order in which the code
/// reads, and changes afterwards.
///
/// INVARIANT: the balance is at least all that is owed, held (escrows, pools, stakes, bonds, pots)
/// and burned.
contract Registry is Panel {
    /// @notice The only account that may judge.
    address public immutable REFEREE;
    Notary internal immutable NOTARY = new Notary();

    constructor(address referee, ISeeds seeds, address token) Panel(seeds) Purse(token) {
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
        (uint256 count, uint256 pool) = NOTARY.examine(terms, _now());
        uint256 escrow = count * terms.reward + pool;
        _requireShort(contact);
        _takeToken(msg.sender, escrow);
        _takeCoin(escrow);
        key = jobKeyOn(address(this), msg.sender, terms.jobId, terms.salt);
        Job storage job = _jobs[key];
        if (job.phase != Phase.None) revert JobExists();

        job.phase = Phase.Open;
        job.client = msg.sender;
        job.segments = uint24(count);
        job.pool = uint96(pool);
        job.openedAt = uint40(_now());
        _storeTerms(job, terms);

        emit Opened(key, msg.sender, terms, contact);
    }

    /// @inheritdoc IRegistry
    function close(bytes32 key) external {
        Job storage job = _jobs[key];
        _requirePhase(job, Phase.Open);
        if (_now() <= job.deadline) _requireSender(job.client);

        _close(key, job);
    }

    /// @inheritdoc IRegistry
    function resume(bytes32 key) external payable {
        Job storage job = _jobs[key];
        uint256 escrow = job.missingEscrow;
        uint256 pool = job.missingPool;
        _takeToken(msg.sender, escrow + pool);
        _requirePhase(job, Phase.Open);
        _requireSender(job.client);
        if (!job.barred) revert NotNeeded();
        _requireNotAfter(job.deadline);
        _takeCoin(escrow + pool);

        job.pool += uint96(pool);
        job.missingEscrow = 0;
        job.missingPool = 0;
        job.barred = false;
        job.openedAt = uint40(_now());

        emit Resumed(key, escrow, pool);
    }

    /// @inheritdoc IRegistry
    function stop(bytes32 key) external {
        Job storage job = _jobs[key];
        _requirePhase(job, Phase.Running);
        _requireSender(job.client);
        uint256 count = uint256(job.committed) + 1;
        if (count >= job.segments || job.ended) revert NotNeeded();

        _owe(job.client, (job.segments - count) * job.reward);
        job.segments = uint24(count);

        emit Stopped(key, count);
    }

    /// @inheritdoc IRegistry
    function refuse(bytes32 key) external {
        Job storage job = _jobs[key];
        _requirePhase(job, Phase.Running);
        if (msg.sender != job.keeper) _requireSender(job.client);
        if (job.committed == job.finalized || job.refusedUntil != 0) revert NotNeeded();

        uint256 until = _now() + _claimTime(job);
        job.refusedUntil = uint40(until);

        emit Refused(key, msg.sender, until);
    }

    ////////////////////////////////////////////////////////////////
    //                    Moves of the solver                     //
    ////////////////////////////////////////////////////////////////

    /// @inheritdoc IRegistry
    function accept(bytes32 key, bytes32[] calldata path, bytes calldata contact)
        external
        payable
    {
        Job storage job = _jobs[key];
        _takeToken(msg.sender, job.stake);
        _requirePhase(job, Phase.Open);
        if (job.barred) revert Barred();
        _requireNotAfter(job.deadline);
        // Nobody fills the panel in the block of open(), unless the client chose whom it lets in.
        if (job.seats != 0 && job.verifiers == 0) {
            _requireAfter(uint256(job.openedAt) + job.sealPeriod);
        }
        if (job.entries < job.panelLeast) revert PanelShort(job.entries);
        _takeCoin(job.stake);
        _requireAllowed(job.solvers, path);
        _requireShort(contact);

        job.phase = Phase.Running;
        job.solver = msg.sender;
        job.due = _dueFromNow(job);

        emit Accepted(key, msg.sender, job.due, contact);
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
        if (job.refusedUntil != 0) revert StandsRefused(job.refusedUntil);
        uint256 ahead = index - job.finalized;
        if (ahead >= OPEN_MAX) revert Full(OPEN_MAX);
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
        job.due = ahead + 1 == OPEN_MAX ? 0 : _dueFromNow(job);
        if (diverged) job.ended = true;

        emit Committed(key, segment, states);
    }

    ////////////////////////////////////////////////////////////////
    //                      Moves of anybody                      //
    ////////////////////////////////////////////////////////////////

    /// @inheritdoc IRegistry
    function settle(bytes32 key, Segment calldata segment, bytes calldata vouch) external {
        Job storage job = _jobs[key];
        bytes32 hash = _requireCommitted(key, job, segment);
        _requireNotFinal(job, segment.index);
        Tally storage tally = _tallies[hash];
        bool noted = vouch.length != 0 && _note(key, job, segment.index, hash, tally, vouch);
        if (segment.index >= job.drawn) revert NotDrawn();
        if (tally.to == 0) {
            // An uncovered tail ends in its time only where it was refused.
            if (job.refusedUntil == 0) revert NotNeeded();
            _requireAfter(job.refusedUntil);
            _requireTail(job);
            _void(key, job, segment, hash);
            return;
        }
        (bytes4 refusal, uint256 about) = _advance(key, job, segment, hash, tally);
        if (refusal == 0 || noted) return;
        assembly ("memory-safe") {
            mstore(0, refusal)
            mstore(4, about)
            revert(0, 36)
        }
    }

    /// @inheritdoc IRegistry
    function release(bytes32 key) external {
        Job storage job = _jobs[key];
        _requirePhase(job, Phase.Running);
        _requireTail(job);
        uint256 penalty = 0;
        uint256 refusedUntil = job.refusedUntil;
        if (refusedUntil != 0) {
            // A refusal that found nothing to hold.
            if (job.committed != job.finalized || _now() <= refusedUntil) {
                revert StandsRefused(refusedUntil);
            }
        } else {
            _requireAfter(job.due);
            if (_now() <= job.deadline) penalty = job.stake / LATE_SHARE;
        }

        burned += penalty;
        _owe(job.solver, job.stake - penalty);
        emit Released(key, job.solver, job.finalized, penalty);
        _reopen(job);
    }

    ////////////////////////////////////////////////////////////////
    //                      Internal: a leg                       //
    ////////////////////////////////////////////////////////////////

    /// @dev Notes that the keeper has a covered segment.
    /// @return isNew It was not noted before.
    function _note(
        bytes32 key,
        Job storage job,
        uint256 index,
        bytes32 hash,
        Tally storage tally,
        bytes calldata vouch
    ) internal returns (bool isNew) {
        address keeper = job.keeper;
        if (keeper == address(0)) revert WrongVouch();
        if (vouch.length > VOUCH_MAX) revert TooLong(VOUCH_MAX);
        if (tally.to == 0) revert NotDrawn();
        if (!NOTARY.isVouch(keeper, key, hash, vouch)) revert WrongVouch();
        if (tally.vouched) return false;

        tally.vouched = true;
        emit Vouched(key, index, hash);
        return true;
    }

    /// @dev All is drawn, and nothing but an uncovered tail is left.
    function _requireTail(Job storage job) internal view {
        if (job.drawn != job.committed) revert WrongIndex(job.drawn);
        if (job.legStart != job.finalized) revert WrongIndex(job.finalized);
        _requireNoClaims(job);
    }

    /// @dev How long claims may be opened after a draw, and after a refusal.
    function _claimTime(Job storage job) internal view returns (uint256) {
        return uint256(job.sealPeriod) + job.revealPeriod + job.claimPeriod;
    }

    /// @dev Until when a covered segment waits for claims. The less a panel agrees, the longer.
    function _waitEnd(Job storage job, Tally storage tally) internal view returns (uint256) {
        uint256 waits = 1 + uint256(tally.unseen);
        if (tally.vouched || job.seats == 0) waits = 1;
        else if (waits > WAITS_MAX || (tally.rights == 0 && tally.unseen == 0)) waits = WAITS_MAX;
        return _roundEnd(job, tally) + waits * job.claimPeriod;
    }

    /// @dev Does what is due about a covered segment: a round's end, its leg's end, or a void.
    /// @return refusal An error's selector, where nothing is due yet; zero: it was done.
    /// @return number Of the error.
    function _advance(
        bytes32 key,
        Job storage job,
        Segment calldata segment,
        bytes32 hash,
        Tally storage tally
    ) internal returns (bytes4 refusal, uint256 number) {
        uint256 end = _waitEnd(job, tally);
        uint256 refusedUntil = job.refusedUntil;
        bool stays = refusedUntil == 0 || tally.vouched;
        bool held = !stays && end + _claimTime(job) >= refusedUntil;
        uint256 rights = tally.rights;
        uint256 unseen = tally.vouched ? 0 : tally.unseen;
        uint256 enough = _enough(job, segment, tally);
        if (held) {
            if (_now() <= refusedUntil) return (TooEarly.selector, refusedUntil);
        } else if (job.seats != 0) {
            uint256 roundEnd = _roundEnd(job, tally);
            if (_now() <= roundEnd) return (TooEarly.selector, roundEnd);
            if (rights < enough && tally.to < PLACES && tally.drawn < tally.panel && stays) {
                return _closeRound(key, segment, hash, tally);
            }
        }
        if (tally.legStart != job.finalized) return (WrongIndex.selector, job.finalized);
        if (!held && _now() <= end) return (TooEarly.selector, end);
        if (job.openClaims != 0) return (ClaimsOpen.selector, job.openClaims);

        bool agreed = rights >= enough || (rights >= 2 * unseen && (rights != 0 || unseen == 0));
        if (held || !agreed) _void(key, job, segment, hash);
        else _finalize(key, job, segment, hash, rights);
    }

    /// @dev Rights are missing: the seed of another round is that of a commit in this block.
    function _closeRound(
        bytes32 key,
        Segment calldata segment,
        bytes32 hash,
        Tally storage tally
    ) internal returns (bytes4 refusal, uint256 number) {
        LaterRound storage next = _laterRounds[hash][uint256(tally.round) + 1];
        if (next.height != 0) return (Engaged.selector, segment.index);

        next.height = uint64(_height());
        next.time = uint40(_now());
        emit RoundOver(key, segment.index, _height(), _now());
    }

    /// @dev A covered segment is final, and with it its leg, which is paid.
    function _finalize(
        bytes32 key,
        Job storage job,
        Segment calldata segment,
        bytes32 hash,
        uint256 rights
    ) internal {
        if (rights != 0) {
            uint256 each = job.pool / rights;
            if (each > job.fee) each = job.fee;
            uint256 later = each - each / LATER_SHARE;
            job.pool -= uint96(_paySeats(key, segment, hash, RIGHT, each, later));
        }
        bool isLast = _isLast(job, segment);
        bool wasFull = job.committed - job.finalized == OPEN_MAX;
        uint256 count = segment.index + 1 - job.finalized;
        uint256 amount = count * job.reward;
        job.finalized = uint24(segment.index + 1);
        emit Finalized(key, segment.index, count, amount);
        _owe(job.solver, isLast ? amount + job.stake : amount);

        if (isLast) _close(key, job);
        else if (wasFull && job.refusedUntil == 0) job.due = _dueFromNow(job);
    }

    /// @dev Nobody can prove whose fault it is: the price of what is not final, and of one segment
    /// more, burns on both sides.
    /// @param segment What decided it. Seats that did not see it get a part of their gas back.
    function _void(bytes32 key, Job storage job, Segment calldata segment, bytes32 hash) internal {
        uint256 count = uint256(job.committed) - job.finalized + 1;
        uint256 ofStake = _least(job.stake, count * job.reward);
        uint256 ofEscrow =
            _least(ofStake, (uint256(job.segments) - job.finalized) * job.reward);
        uint256 ofPool = _least(job.pool, ofStake - ofEscrow);
        ofPool += _least(
            job.pool - ofPool, count * job.seats * job.fee * job.coveragePpm / PPM
        );
        uint256 unseen = _isLast(job, segment) ? 0 : _unseenSeats(hash);
        uint256 paid = 0;
        if (unseen != 0) {
            // Of what the client burns beyond the price of what was trained.
            uint256 spare = ofEscrow + ofPool - _least(ofEscrow, (count - 1) * job.reward);
            uint256 each = _least(job.queryFee / UNSEEN_SHARE, spare / unseen);
            paid = _paySeats(key, segment, hash, UNSEEN, each, each);
        }

        burned += ofStake - paid + ofEscrow + ofPool;
        _owe(job.solver, job.stake - ofStake);
        job.pool -= uint96(ofPool);
        job.missingEscrow = uint96(ofEscrow);
        job.missingPool = uint96(ofPool);
        job.barred = true;
        emit Voided(key, job.solver, job.finalized, count, ofStake, ofEscrow, ofPool);
        _reopen(job);
    }

    function _least(uint256 a, uint256 b) internal pure returns (uint256) {
        return a < b ? a : b;
    }

    ////////////////////////////////////////////////////////////////
    //                    Moves of the referee                    //
    ////////////////////////////////////////////////////////////////

    modifier onlyReferee() {
        _requireSender(REFEREE);
        _;
    }

    /// @notice Takes a query's fee, which the referee keeps account of.
    function take(address payer, uint256 amount) external payable onlyReferee {
        _takeToken(payer, amount);
        _takeCoin(amount);
    }

    /// @notice Takes a claim's bond, as enlist() takes that of an entry.
    function takeBond(address payer, uint256 amount) external payable onlyReferee {
        _takeTokenBond(payer, amount);
        _takeCoinBond(payer, amount);
    }

    /// @notice Owes what was taken, or was in a bond or stake that the referee was told of.
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
    /// @return bond Its bond: now the claim's.
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
        (Seat memory seat, uint256 number) = _requireSeat(key, job, hash, tally, place, owner);
        bytes32 value = _sealOf(owner, hash, Verdict.False, step, 0, salt);
        _requireReveal(job, tally, seat, value);

        _setPhase(hash, tally, place, CLOSED);
        bond = job.bond;
        entries[key][segment.generation][number].gone = true;

        emit Revealed(key, segment.index, place, owner, Verdict.False, 0, salt);
        emit Gone(key, segment.generation, number, owner, 0);
    }

    /// @notice A right was disproved: it counts as one that did not see the states. Half of its
    /// entry's bond is the mover's; nothing, where the entry is gone.
    function disprove(bytes32 key, Segment calldata segment, uint256 place, address mover)
        external
        onlyReferee
    {
        Job storage job = _jobs[key];
        bytes32 hash = _hashSegment(key, segment);
        Tally storage tally = _tallies[hash];
        uint256 number = _entryOf(hash, tally, place);
        Entry storage entry = entries[key][segment.generation][number];

        tally.rights--;
        tally.unseen++;
        _setPhase(hash, tally, place, CLOSED);
        emit Disproved(key, segment.index, hash, place, number, mover);
        if (entry.gone) return;
        entry.gone = true;
        uint256 bond = job.bond;
        burned += bond / 2;
        _owe(mover, bond - bond / 2);
        emit Gone(key, segment.generation, number, entry.owner, 0);
    }

    /// @notice The solver was proven wrong. What is not final is void, and costs the client
    /// nothing.
    /// @return stake Now the referee's to share out.
    function convict(bytes32 key) external onlyReferee returns (uint256 stake) {
        Job storage job = _jobs[key];
        emit Convicted(key, job.solver, job.finalized);
        _reopen(job);
        return job.stake;
    }

    /// @notice What a claim can be about: a segment that stands and is not final.
    function standing(bytes32 key, Segment calldata segment)
        external
        view
        returns (Standing memory found)
    {
        Job storage job = _jobs[key];
        found.hash = _requireCommitted(key, job, segment);
        _requireNotFinal(job, segment.index);
        found.generation = job.generation;
        found.refusedUntil = job.refusedUntil;
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
        found.hash = _requireCommitted(key, job, segment);
        _requireNotFinal(job, segment.index);
        Tally storage tally = _tallies[found.hash];
        Seat memory seat = _seatAt(found.hash, tally, place);
        if (seat.phase != RIGHT) revert WrongPlace();
        found.seed = bytes32(uint256(tally.seed));
        found.owner = entries[key][segment.generation][_entryOf(found.hash, tally, place)].owner;
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
        found.drawn = job.drawn;
        found.legStart = job.legStart;
        found.finalized = job.finalized;
        found.openClaims = job.openClaims;
        found.entries = job.entries;
        found.openedAt = job.openedAt;
        found.due = job.due;
        found.refusedUntil = job.refusedUntil;
        found.pool = job.pool;
        found.missingEscrow = job.missingEscrow;
        found.missingPool = job.missingPool;
        found.ended = job.ended;
        found.barred = job.barred;
    }
}
