// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IRegistry} from "./IRegistry.sol";
import {ISeeds} from "./ISeeds.sol";
import {RegistryState} from "./RegistryState.sol";

/// @title Panel
/// @notice Who checks: entries and their bonds, draws, rounds, verdicts.
/// @dev Every commit has one seed. It fixes whether the segment is covered, and an order of places;
/// each round takes as many of them as verdicts are missing.
abstract contract Panel is RegistryState {
    /// @dev A place of a draw, as it is kept.
    struct Seat {
        uint256 phase;
        uint256 pair; // the slot of its seal,
        uint256 shift; // which half of it,
        uint256 both; // what is in the slot,
        bytes16 value; // and in its half; zero: not sealed
    }

    ////////////////////////////////////////////////////////////////
    //                         Constants                          //
    ////////////////////////////////////////////////////////////////

    uint256 internal constant ENLIST_MAX = 16; // entries in one move
    uint256 internal constant ENTRIES_MAX = 65_535; // of a job
    uint256 internal constant NEAR = 12; // places that stand in the tally; few draws go beyond
    int256 internal constant VOID_SCORE = -10;
    uint256 internal constant STRIKES = 2; // an entry that was absent twice is drawn no more

    // What a place of a draw is, four bits each.
    uint256 internal constant SKIPPED = 0;
    uint256 internal constant DRAWN = 1; // sealed, where its seat has a seal
    uint256 internal constant RIGHT = 2;
    uint256 internal constant UNAVAILABLE = 3;
    uint256 internal constant CLOSED = 4; // absent, an alarm, or disproved

    /// @notice Where all chance of this registry comes from.
    ISeeds public immutable SEEDS;

    constructor(ISeeds seeds) {
        SEEDS = seeds;
    }

    ////////////////////////////////////////////////////////////////
    //                    Entries and verdicts                    //
    ////////////////////////////////////////////////////////////////

    /// @inheritdoc IRegistry
    function enlist(bytes32 key, uint256 count, bytes32[] calldata path, bytes calldata contact)
        external
        payable
    {
        Job storage job = _jobs[key];
        if (job.phase != Phase.Open) _requirePhase(job, Phase.Running);
        if (count == 0 || count > ENLIST_MAX) revert Full(ENLIST_MAX);
        uint256 first = job.entries;
        if (first + count > ENTRIES_MAX) revert Full(ENTRIES_MAX);
        if (msg.sender == job.client || msg.sender == job.solver) revert SelfDealing();
        _requireAllowed(job.verifiers, path);
        _requireShort(contact);
        _takeBond(count * job.bond);

        job.entries = uint16(first + count);
        job.active += uint16(count);
        for (uint256 i = 0; i < count; i++) {
            entries[key][first + i].owner = msg.sender;
        }

        emit Enlisted(key, msg.sender, first, count, contact);
    }

    /// @inheritdoc IRegistry
    function leave(bytes32 key, uint256 number) external {
        Job storage job = _jobs[key];
        Entry storage entry = entries[key][number];
        _requireSender(entry.owner);
        if (entry.gone) revert NotNeeded();
        if (job.phase == Phase.Closed) {
            // Whom the client may have asked stays until that is answered.
            if (job.asked && job.held != 0) revert Engaged(job.finalized);
        } else if (!entry.left) {
            if (job.active <= job.panelLeast) revert PanelShort(job.active);
            _markLeft(key, job, number, entry);
            return;
        } else if (entry.generation == job.generation && entry.until > job.finalized) {
            revert Engaged(entry.until);
        }

        uint256 amount = _remove(job, entry);
        _owe(msg.sender, amount);

        emit Gone(key, number, msg.sender, amount);
    }

    /// @inheritdoc IRegistry
    function announce(bytes32 key, bytes calldata contact) external {
        if (_jobs[key].phase == Phase.None) revert WrongPhase(0);
        _requireShort(contact);

        emit Announced(key, msg.sender, contact);
    }

    /// @inheritdoc IRegistry
    function draw(bytes32 key, Segment calldata segment, bytes calldata proof) external {
        Job storage job = _jobs[key];
        bytes32 hash = _hashSegment(key, segment);
        _requireSubject(key, job, segment.index, hash);
        if (job.seats == 0) revert NotNeeded();
        Tally storage tally = _tallies[hash];
        if (tally.start != 0) revert AlreadyDrawn();
        (bytes32 random, bool covered) = SEEDS.randomOf(segment.height, segment.time, proof);
        // Nobody can try more than a few, so few bytes are as good as all.
        uint256 seed = uint64(uint256(keccak256(abi.encode(random, hash))));

        // A seed that came late, the end of a job and what its client asks for are covered anyway.
        covered = covered || job.phase == Phase.Closed || segment.diverged
            || segment.index + 1 == job.segments || seed % PPM < job.coveragePpm;
        emit Drawn(key, segment.index, bytes32(seed), covered);
        if (!covered) {
            tally.start = uint40(segment.time);
            return;
        }
        tally.seed = uint64(seed);
        tally.covered = true;
        tally.panel = uint16(segment.panel);
        _openRound(key, segment, hash, tally, job.seats);
    }

    /// @inheritdoc IRegistry
    function seal(bytes32 key, uint256 index, bytes32 hash, uint256 place, bytes32 value)
        external
    {
        Job storage job = _jobs[key];
        _requireSubject(key, job, index, hash);
        Tally storage tally = _tallies[hash];
        (Seat memory seat,) = _requireSeat(key, hash, tally, place, msg.sender);
        if (seat.phase != DRAWN || seat.value != 0) revert AlreadySealed();
        _requireNotAfter(uint256(tally.start) + job.sealPeriod);

        _seats[hash][seat.pair] = seat.both | (uint256(uint128(bytes16(value))) << seat.shift);

        emit SealedVerdict(key, index, place, msg.sender, value);
    }

    /// @inheritdoc IRegistry
    function reveal(
        bytes32 key,
        uint256 index,
        bytes32 hash,
        uint256 place,
        Verdict verdict,
        bytes16 leaves,
        bytes32 salt
    ) external {
        Job storage job = _jobs[key];
        _requireSubject(key, job, index, hash);
        Tally storage tally = _tallies[hash];
        (Seat memory seat,) = _requireSeat(key, hash, tally, place, msg.sender);
        bool isRight = verdict == Verdict.Right;
        bytes32 value = _sealOf(msg.sender, hash, verdict, 0, leaves, salt);
        _requireReveal(job, tally, seat, value);
        if (!isRight && verdict != Verdict.Unavailable) revert WrongReveal();

        if (isRight) tally.rights++;
        else tally.unavailables++;
        _setPhase(hash, tally, place, isRight ? RIGHT : UNAVAILABLE);

        emit Revealed(key, index, place, msg.sender, verdict, leaves, salt);
    }

    ////////////////////////////////////////////////////////////////
    //                      Moves of anybody                      //
    ////////////////////////////////////////////////////////////////

    /// @inheritdoc IRegistry
    function renew(bytes32 key, Segment calldata segment) external {
        Job storage job = _jobs[key];
        bytes32 hash = _hashSegment(key, segment);
        _requireSubject(key, job, segment.index, hash);
        Tally storage tally = _tallies[hash];
        if (tally.start == 0) revert NotDrawn();
        if (!tally.covered || _isAnswered(job, segment.index)) revert NotNeeded();
        _requireAfter(_roundEnd(job, tally));
        if (tally.closed && (_hasScore(job, tally) || tally.asleep)) revert NotNeeded();

        _closeRound(key, job, segment.index, hash, tally);
        tally.closed = true;
        if (_hasScore(job, tally)) {
            _emitRound(key, segment, tally);
        } else if (tally.to == PLACES) {
            tally.asleep = true;
            tally.from = uint8(PLACES);
            tally.start = uint40(_now());
            _emitRound(key, segment, tally);
        } else {
            tally.round++;
            // At least as many again: so there are at most seven rounds.
            uint256 need =
                uint256(int256(uint256(job.seats)) - _score(tally)) + tally.absents;
            _openRound(key, segment, hash, tally, need < tally.drawn ? tally.drawn : need);
        }
    }

    ////////////////////////////////////////////////////////////////
    //                      Internal: seats                       //
    ////////////////////////////////////////////////////////////////

    /// @dev The entry at a place.
    function _entryAt(uint256 seed, uint256 panel, uint256 place) internal pure returns (uint256) {
        return uint256(keccak256(abi.encode(seed, place))) % panel;
    }

    function _entryOf(Tally storage tally, uint256 place) internal view returns (uint256) {
        return _entryAt(tally.seed, tally.panel, place);
    }

    /// @dev All places, four bits each.
    function _placesOf(bytes32 hash, Tally storage tally) internal view returns (uint256 word) {
        word = tally.near;
        if (tally.to > NEAR) word |= _farPlaces[hash] << (4 * NEAR);
    }

    function _setPhase(bytes32 hash, Tally storage tally, uint256 place, uint256 phase) internal {
        uint256 word = _withPhase(_placesOf(hash, tally), place, phase);
        if (place < NEAR) tally.near = uint48(word);
        else _farPlaces[hash] = word >> (4 * NEAR);
    }

    function _withPhase(uint256 word, uint256 place, uint256 phase)
        internal
        pure
        returns (uint256)
    {
        return (word & ~(uint256(15) << (4 * place))) | (phase << (4 * place));
    }

    /// @dev What is at a place: its phase, and where its half of a slot is. Seats are counted,
    /// skipped places are not.
    function _seatAt(bytes32 hash, Tally storage tally, uint256 place)
        internal
        view
        returns (Seat memory seat)
    {
        if (place >= PLACES) return seat;
        uint256 word = _placesOf(hash, tally);
        seat.phase = (word >> (4 * place)) & 15;
        uint256 before = 0;
        for (word &= (1 << (4 * place)) - 1; word != 0; word >>= 4) {
            if (word & 15 != SKIPPED) before++;
        }
        seat.pair = before >> 1;
        seat.shift = 128 * (before & 1);
        seat.both = _seats[hash][seat.pair];
        seat.value = bytes16(uint128(seat.both >> seat.shift));
    }

    function _sealOf(
        address owner,
        bytes32 hash,
        Verdict verdict,
        uint256 step,
        bytes16 leaves,
        bytes32 salt
    ) internal pure returns (bytes32) {
        return keccak256(abi.encode(owner, hash, verdict, step, leaves, salt));
    }

    /// @dev The owner's seat, in the last round.
    function _requireSeat(
        bytes32 key,
        bytes32 hash,
        Tally storage tally,
        uint256 place,
        address owner
    ) internal view returns (Seat memory seat, uint256 number) {
        if (tally.start == 0) revert NotDrawn();
        seat = _seatAt(hash, tally, place);
        if (place < tally.from || place >= tally.to || seat.phase == SKIPPED) revert WrongPlace();
        number = _entryOf(tally, place);
        Entry storage entry = entries[key][number];
        if (entry.gone || entry.owner != owner) revert NotYours(entry.owner);
    }

    function _requireReveal(Job storage job, Tally storage tally, Seat memory seat, bytes32 value)
        internal
        view
    {
        if (seat.phase != DRAWN || seat.value == 0) revert NotSealed();
        _requireAfter(uint256(tally.start) + job.sealPeriod);
        _requireNotAfter(_roundEnd(job, tally));
        if (seat.value != bytes16(value)) revert WrongReveal();
    }

    /// @dev A right that was not disproved.
    function _requireRight(bytes32 key, Segment calldata segment, uint256 place)
        internal
        view
        returns (bytes32 hash, Seat memory seat)
    {
        hash = _hashSegment(key, segment);
        seat = _seatAt(hash, _tallies[hash], place);
        if (seat.phase != RIGHT) revert WrongPlace();
    }

    /// @dev What the panel was drawn for is final, or was delivered.
    function _isAnswered(Job storage job, uint256 index) internal view returns (bool) {
        if (job.phase != Phase.Closed) return index < job.finalized;
        return index + 1 != job.finalized || job.held == 0;
    }

    function _score(Tally storage tally) internal view returns (int256) {
        return int256(uint256(tally.rights)) - int256(uint256(tally.unavailables));
    }

    /// @dev More must say right than cannot get it, but silence blocks nothing where the client chose
    /// who may be drawn.
    function _isEnoughAsleep(Job storage job, Tally storage tally) internal view returns (bool) {
        int256 score = _score(tally);
        return tally.asleep && (score > 0 || (score > VOID_SCORE && job.verifiers != 0));
    }

    /// @dev The score ends the draw.
    function _hasScore(Job storage job, Tally storage tally) internal view returns (bool) {
        int256 score = _score(tally);
        return score >= int256(uint256(job.seats)) || score <= VOID_SCORE;
    }

    /// @dev Walks on from the last place to as many entries as are needed, or to the last place.
    function _openRound(
        bytes32 key,
        Segment calldata segment,
        bytes32 hash,
        Tally storage tally,
        uint256 need
    ) internal {
        uint256 seed = tally.seed;
        uint256 panel = tally.panel;
        uint256 first = tally.to;
        uint256 word = _placesOf(hash, tally);
        uint256[] memory taken = new uint256[]((panel >> 8) + 1); // a bit for each entry
        uint256 found = 0;
        uint256 place = 0;
        for (; place < PLACES && found < need; place++) {
            uint256 number = _entryAt(seed, panel, place);
            bool sits;
            if (place < first) {
                sits = (word >> (4 * place)) & 15 != SKIPPED;
            } else if ((taken[number >> 8] >> (number & 255)) & 1 == 0) {
                Entry storage entry = entries[key][number];
                sits = !entry.gone && !entry.left && entry.owner != segment.solver;
                if (sits) {
                    word |= DRAWN << (4 * place);
                    found++;
                }
            }
            if (sits) taken[number >> 8] |= 1 << (number & 255);
        }

        tally.from = uint8(first);
        tally.to = uint8(place);
        tally.drawn += uint8(found);
        tally.closed = false;
        tally.start = uint40(_now());
        tally.near = uint48(word);
        if (place > NEAR) _farPlaces[hash] = word >> (4 * NEAR);
        _emitRound(key, segment, tally);
    }

    function _emitRound(bytes32 key, Segment calldata segment, Tally storage tally) internal {
        uint256 from = tally.closed ? tally.to : tally.from;
        emit Round(
            key, segment.index, segment.generation, tally.round, from, tally.to, tally.start
        );
    }

    /// @dev Who did not reveal loses two fees; who did not twice is drawn no more.
    function _closeRound(
        bytes32 key,
        Job storage job,
        uint256 index,
        bytes32 hash,
        Tally storage tally
    ) internal {
        if (tally.closed) return;
        uint256 to = tally.to;
        uint256 word = _placesOf(hash, tally);
        for (uint256 place = tally.from; place < to; place++) {
            if ((word >> (4 * place)) & 15 != DRAWN) continue;
            uint256 number = _entryOf(tally, place);
            Entry storage entry = entries[key][number];
            _setPhase(hash, tally, place, CLOSED);
            tally.absents++;
            emit Absent(key, index, place, number);
            if (entry.gone || entry.strikes == STRIKES) continue;
            job.pool += 2 * job.fee;
            entry.strikes++;
            if (entry.strikes == STRIKES && !entry.left) _markLeft(key, job, number, entry);
        }
    }

    /// @dev Pays all rights alike.
    function _payRights(
        bytes32 key,
        Job storage job,
        uint256 index,
        bytes32 hash,
        Tally storage tally
    ) internal {
        uint256 rights = tally.rights;
        if (rights == 0) return;
        uint256 each = job.pool / rights;
        if (each > job.fee) each = job.fee;
        job.pool -= uint96(each * rights);
        uint256 word = _placesOf(hash, tally);
        for (uint256 place = 0; word >> (4 * place) != 0; place++) {
            if ((word >> (4 * place)) & 15 != RIGHT) continue;
            address owner = entries[key][_entryOf(tally, place)].owner;
            _owe(owner, each);
            emit Settled(key, index, place, owner, each);
        }
    }

    /// @dev From now on it is not drawn; where it sits, it sits.
    function _markLeft(bytes32 key, Job storage job, uint256 number, Entry storage entry) internal {
        entry.left = true;
        entry.generation = job.generation;
        entry.until = job.committed;
        job.active--;
        emit Left(key, number, entry.owner);
    }

    /// @dev Takes an entry off the panel. Returns what its bond still is.
    function _remove(Job storage job, Entry storage entry) internal returns (uint256) {
        entry.gone = true;
        if (!entry.left) job.active--;
        return job.bond - 2 * uint256(entry.strikes) * job.fee;
    }
}
