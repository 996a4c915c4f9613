// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IRegistry} from "./IRegistry.sol";
import {ISeeds} from "./ISeeds.sol";
import {RegistryState} from "./RegistryState.sol";

/// @title Panel
/// @notice Who checks: entries and their bonds, draws, rounds, verdicts.
/// @dev Every commit has a seed. It fixes whether the segment is covered, and who has the first
/// places. Each later round has a seed of its own, and takes as many places as verdicts are missing.
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
    uint256 internal constant ENTRIES_MAX = 65_535; // of a generation
    uint256 internal constant NEAR = 12; // places that stand in the tally; few draws go beyond
    uint256 internal constant LEG_MAX = 16; // segments until one is covered with any seed
    uint256 internal constant LAST_RIGHTS = 3; // that a last segment needs at least
    uint256 internal constant FULL_ROUND = 5; // from this round on as many seats as all before,
    uint256 internal constant FULL_SEATS = 9; // ... and at most this many

    // What a place of a draw is, four bits each.
    uint256 internal constant SKIPPED = 0;
    uint256 internal constant DRAWN = 1; // sealed, where its seat has a seal
    uint256 internal constant RIGHT = 2;
    uint256 internal constant UNSEEN = 3;
    uint256 internal constant CLOSED = 4; // an alarm, or disproved

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
        _takeTokenBond(msg.sender, count * job.bond);
        if (job.phase != Phase.Open) _requirePhase(job, Phase.Running);
        if (job.barred) revert Barred();
        if (count == 0 || count > ENLIST_MAX) revert Full(ENLIST_MAX);
        uint256 first = job.entries;
        if (first + count > ENTRIES_MAX) revert Full(ENTRIES_MAX);
        if (msg.sender == job.client || msg.sender == job.solver || msg.sender == job.keeper) {
            revert SelfDealing();
        }
        _requireAllowed(job.verifiers, path);
        _requireShort(contact);
        _takeCoinBond(msg.sender, count * job.bond);

        uint256 generation = job.generation;
        job.entries = uint16(first + count);
        for (uint256 i = 0; i < count; i++) {
            entries[key][generation][first + i].owner = msg.sender;
        }

        emit Enlisted(key, msg.sender, generation, first, count, contact);
    }

    /// @inheritdoc IRegistry
    function depart(bytes32 key, uint256 generation, uint256 number) external {
        Job storage job = _jobs[key];
        mapping(uint256 => Entry) storage panel = entries[key][generation];
        _requireSender(panel[number].owner);
        if (panel[number].gone) revert NotNeeded();
        bool isNow = generation == job.generation;
        if (isNow && job.phase == Phase.Running) revert Engaged(job.finalized);

        panel[number].gone = true;
        _owe(msg.sender, job.bond);
        emit Gone(key, generation, number, msg.sender, job.bond);
        if (!isNow || job.phase == Phase.Closed) return;

        uint256 last = job.entries - 1;
        job.entries = uint16(last);
        panel[number] = panel[last];
        delete panel[last];
        if (number != last) emit Moved(key, generation, last, number);
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
        bytes32 hash = _requireCommitted(key, job, segment);
        uint256 drawn = job.drawn;
        if (segment.index < drawn) {
            _drawAgain(key, job, segment, hash, proof);
            return;
        }
        if (segment.index != drawn) revert WrongIndex(drawn);
        (uint256 seed, bool covered) = _chance(job, segment, hash, proof);

        job.drawn = uint24(drawn + 1);
        emit Drawn(key, drawn, bytes32(seed), covered);
        if (!covered) return;
        Tally storage tally = _tallies[hash];
        tally.legStart = job.legStart;
        job.legStart = uint24(drawn + 1);
        if (job.seats == 0) {
            tally.start = uint40(segment.time);
            tally.to = uint8(PLACES);
            return;
        }
        tally.seed = uint64(seed);
        tally.panel = uint16(segment.panel);
        _openRound(key, segment, hash, tally, seed, _wanted(job, segment));
        tally.first = tally.to;
    }

    /// @inheritdoc IRegistry
    function seal(bytes32 key, uint256 index, bytes32 hash, uint256 place, bytes32 value)
        external
    {
        Job storage job = _jobs[key];
        _requireStanding(key, job, index, hash);
        Tally storage tally = _tallies[hash];
        Seat memory seat = _requireSilent(key, job, hash, tally, place);

        _seats[hash][seat.pair] = seat.both | (uint256(uint128(bytes16(value))) << seat.shift);

        emit SealedVerdict(key, index, place, msg.sender, value);
    }

    /// @inheritdoc IRegistry
    function reveal(
        bytes32 key,
        uint256 index,
        bytes32 hash,
        uint256 place,
        bytes16 leaves,
        bytes32 salt
    ) external {
        Job storage job = _jobs[key];
        _requireStanding(key, job, index, hash);
        Tally storage tally = _tallies[hash];
        (Seat memory seat,) = _requireSeat(key, job, hash, tally, place, msg.sender);
        bytes32 value = _sealOf(msg.sender, hash, Verdict.Right, 0, leaves, salt);
        _requireReveal(job, tally, seat, value);

        tally.rights++;
        _setPhase(hash, tally, place, RIGHT);

        emit Revealed(key, index, place, msg.sender, Verdict.Right, leaves, salt);
    }

    /// @inheritdoc IRegistry
    function unseen(bytes32 key, uint256 index, bytes32 hash, uint256 place) external {
        Job storage job = _jobs[key];
        _requireStanding(key, job, index, hash);
        Tally storage tally = _tallies[hash];
        _requireSilent(key, job, hash, tally, place);

        tally.unseen++;
        _setPhase(hash, tally, place, UNSEEN);

        emit Unseen(key, index, place, msg.sender);
    }

    ////////////////////////////////////////////////////////////////
    //                      Internal: draws                       //
    ////////////////////////////////////////////////////////////////

    /// @dev The seed of a segment, and whether it is covered: by the seed, or by its place in its
    /// leg.
    function _chance(Job storage job, Segment calldata segment, bytes32 hash, bytes calldata proof)
        internal
        view
        returns (uint256 seed, bool covered)
    {
        if (job.seats == 0) return (0, true);
        (seed, covered) = _seedOf(segment.height, segment.time, hash, proof); // or late
        covered = covered || _isLast(job, segment)
            || segment.index + 1 >= job.legStart + LEG_MAX
            || segment.time + job.segmentPeriod > job.deadline || seed % PPM < job.coveragePpm;
    }

    /// @dev The seed of a segment, from the random of a block.
    function _seedOf(uint256 height, uint256 time, bytes32 hash, bytes calldata proof)
        internal
        view
        returns (uint256 seed, bool late)
    {
        bytes32 random;
        (random, late) = SEEDS.randomOf(height, time, proof);
        // Nobody can try more than a few, so few bytes are as good as all.
        seed = uint64(uint256(keccak256(abi.encode(random, hash))));
    }

    function _isLast(Job storage job, Segment calldata segment) internal view returns (bool) {
        return segment.diverged || segment.index + 1 == job.segments;
    }

    /// @dev How many rights make it final.
    function _wanted(Job storage job, Segment calldata segment) internal view returns (uint256) {
        uint256 seats = job.seats;
        if (seats == 0 || seats >= LAST_RIGHTS || !_isLast(job, segment)) return seats;
        return LAST_RIGHTS;
    }

    /// @dev How many rights end its draw: those that are wanted, and one more for each seat that saw
    /// nothing. The first of these counts as silence where more than one right is wanted.
    function _enough(Job storage job, Segment calldata segment, Tally storage tally)
        internal
        view
        returns (uint256 enough)
    {
        enough = _wanted(job, segment);
        uint256 denied = tally.unseen;
        if (denied == 0 || tally.vouched) return enough;
        return enough > 1 ? enough + denied - 1 : enough + denied;
    }

    ////////////////////////////////////////////////////////////////
    //                      Internal: seats                       //
    ////////////////////////////////////////////////////////////////

    /// @dev The entry at a place: keccak256(abi.encode(seed, place)) modulo the panel, in the scratch
    /// space, since a draw asks for many.
    function _entryAt(uint256 seed, uint256 panel, uint256 place)
        internal
        pure
        returns (uint256 entry)
    {
        bytes32 hash;
        assembly ("memory-safe") {
            mstore(0, seed)
            mstore(32, place)
            hash := keccak256(0, 64)
        }
        entry = uint256(hash) % panel;
    }

    function _entryOf(bytes32 hash, Tally storage tally, uint256 place)
        internal
        view
        returns (uint256)
    {
        uint256 seed = tally.seed;
        if (place >= tally.first) {
            uint256 round = tally.round;
            while (place < _laterRounds[hash][round].from) round--;
            seed = _laterRounds[hash][round].seed;
        }
        return _entryAt(seed, tally.panel, place);
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
        uint256 before = _countSeats(word & ((1 << (4 * place)) - 1));
        seat.pair = before >> 1;
        seat.shift = 128 * (before & 1);
        seat.both = _seats[hash][seat.pair];
        seat.value = bytes16(uint128(seat.both >> seat.shift));
    }

    /// @dev How many of the places are not skipped: SKIPPED is zero. However many are, it costs the
    /// same.
    function _countSeats(uint256 word) internal pure returns (uint256) {
        uint256 ones = type(uint256).max / 255; // the lowest bit of each byte
        word |= word >> 1;
        word |= word >> 2; // a place's lowest bit says whether any of its four is set
        return ((word & ones) + ((word >> 4) & ones)) % 255; // 256 is one more: the sum of the bytes
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
        Job storage job,
        bytes32 hash,
        Tally storage tally,
        uint256 place,
        address owner
    ) internal view returns (Seat memory seat, uint256 number) {
        if (tally.to == 0) revert NotDrawn();
        seat = _seatAt(hash, tally, place);
        if (place < tally.from || place >= tally.to || seat.phase == SKIPPED) revert WrongPlace();
        number = _entryOf(hash, tally, place);
        Entry storage entry = entries[key][job.generation][number];
        if (entry.gone || entry.owner != owner) revert NotYours(entry.owner);
    }

    /// @dev The sender's seat, which has said nothing yet and may.
    function _requireSilent(
        bytes32 key,
        Job storage job,
        bytes32 hash,
        Tally storage tally,
        uint256 place
    ) internal view returns (Seat memory seat) {
        (seat,) = _requireSeat(key, job, hash, tally, place, msg.sender);
        if (seat.phase != DRAWN || seat.value != 0) revert AlreadySealed();
        _requireNotAfter(uint256(tally.start) + job.sealPeriod);
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

    /// @dev The next round of a segment, where settle() closed one and rights are missing still.
    function _drawAgain(
        bytes32 key,
        Job storage job,
        Segment calldata segment,
        bytes32 hash,
        bytes calldata proof
    ) internal {
        Tally storage tally = _tallies[hash];
        uint256 round = uint256(tally.round) + 1;
        LaterRound storage next = _laterRounds[hash][round];
        // A refusal lets a leg be final with a round to come, and ends with its tenure.
        if (next.height == 0 || segment.index < job.finalized) revert AlreadyDrawn();
        if (job.refusedUntil != 0 && !tally.vouched) revert StandsRefused(job.refusedUntil);
        uint256 rights = tally.rights;
        uint256 need = _enough(job, segment, tally);
        if (rights >= need) revert NotNeeded();
        need -= rights;
        if (round + 1 >= FULL_ROUND) {
            uint256 drawn = tally.drawn;
            if (drawn > FULL_SEATS) drawn = FULL_SEATS;
            if (need < drawn) need = drawn;
        }
        (uint256 seed,) = _seedOf(next.height, next.time, hash, proof);

        next.seed = uint64(seed);
        next.from = tally.to;
        _openRound(key, segment, hash, tally, seed, need);
    }

    /// @dev Walks on from the last place to as many entries as are needed, or to the last place.
    function _openRound(
        bytes32 key,
        Segment calldata segment,
        bytes32 hash,
        Tally storage tally,
        uint256 seed,
        uint256 need
    ) internal {
        uint256 first = tally.to;
        uint256 round = first == 0 ? 0 : uint256(tally.round) + 1;
        (uint256 place, uint256 found, uint256 word) =
            _walk(key, segment, hash, tally, seed, first, need);

        tally.to = uint8(place);
        tally.round = uint8(round);
        tally.from = uint8(first);
        tally.drawn += uint8(found);
        tally.start = uint40(_now());
        tally.near = uint48(word);
        if (place > NEAR) _farPlaces[hash] = word >> (4 * NEAR);
        emit Round(key, segment.index, round, first, place, _now(), bytes32(seed));
    }

    /// @dev Skips entries that are gone or the solver's, and those that the draw has had.
    function _walk(
        bytes32 key,
        Segment calldata segment,
        bytes32 hash,
        Tally storage tally,
        uint256 seed,
        uint256 first,
        uint256 need
    ) internal view returns (uint256 place, uint256 found, uint256 word) {
        uint256 panel = segment.panel;
        word = _placesOf(hash, tally);
        uint256[] memory taken = new uint256[]((panel >> 8) + 1); // a bit for each entry
        for (; place < PLACES && found < need; place++) {
            bool isOld = place < first;
            if (isOld && (word >> (4 * place)) & 15 == SKIPPED) continue;
            uint256 number =
                isOld ? _entryOf(hash, tally, place) : _entryAt(seed, panel, place);
            if ((taken[number >> 8] >> (number & 255)) & 1 != 0) continue;
            if (!isOld) {
                Entry storage entry = entries[key][segment.generation][number];
                if (entry.gone || entry.owner == segment.solver) continue;
                word |= DRAWN << (4 * place);
                found++;
            }
            taken[number >> 8] |= 1 << (number & 255);
        }
    }

    /// @dev Seats that said that they could not get the states.
    function _unseenSeats(bytes32 hash) internal view returns (uint256 count) {
        for (uint256 word = _placesOf(hash, _tallies[hash]); word != 0; word >>= 4) {
            if (word & 15 == UNSEEN) count++;
        }
    }

    /// @dev Pays the seats of a phase.
    /// @param each Those of the first round, and the others
    /// @param later so much.
    function _paySeats(
        bytes32 key,
        Segment calldata segment,
        bytes32 hash,
        uint256 phase,
        uint256 each,
        uint256 later
    ) internal returns (uint256 paid) {
        Tally storage tally = _tallies[hash];
        uint256 first = tally.first;
        uint256 word = _placesOf(hash, tally);
        for (uint256 place = 0; word >> (4 * place) != 0; place++) {
            if ((word >> (4 * place)) & 15 != phase) continue;
            uint256 number = _entryOf(hash, tally, place);
            address owner = entries[key][segment.generation][number].owner;
            uint256 amount = place < first ? each : later;
            paid += amount;
            _owe(owner, amount);
            emit FeePaid(key, segment.index, place, owner, amount);
        }
    }
}
