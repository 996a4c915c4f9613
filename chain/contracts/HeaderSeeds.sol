// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ISeeds} from "./ISeeds.sol";
import {seedDelayOn} from "./SeedDelays.sol";

/// @title HeaderSeeds
/// @notice The random number of a block some blocks behind the commit, out of its header, which the
/// caller of a draw shows.
/// @dev The beacon chain's random number of a block follows from the reveal of the block before: so
/// the maker of a commit's block knows the next one's, and could try many commits against it.
/// docs/PROTOCOL.md has what sixteen blocks leave to chance.
contract HeaderSeeds is ISeeds {
    uint256 internal constant HASHES = 256; // of blocks, that a contract can read
    uint256 internal constant RANDOM_ITEM = 13; // of a header: prevrandao
    uint256 internal constant FIXED_ITEMS = 7; // of a header, the first
    uint256 internal constant FIXED_SIZE = 5 * 33 + 21 + 259;
    uint256 internal constant FIX_AFTER = 7 days;

    /// @notice From the block of a commit to the block of its random.
    uint256 public immutable DELAY;

    /// @notice The block whose hash stands in for a random that nobody showed; zero: none.
    mapping(uint256 height => mapping(uint256 time => uint256 source)) public fixedAt;

    /// @param delay That of this chain, and no other.
    constructor(uint256 delay) {
        uint256 expected = seedDelayOn(block.chainid);
        if (delay == 0 || delay != expected) revert WrongDelay(expected);
        DELAY = delay;
    }

    /// @inheritdoc ISeeds
    function randomOf(uint256 height, uint256 time, bytes calldata proof)
        external
        view
        returns (bytes32 random, bool late)
    {
        uint256 source = fixedAt[height][time];
        if (source != 0) {
            (source,) = _readable(source);
            return (_hashOfBlock(source), true);
        }
        (source, late) = _readable(height + DELAY);
        random = _randomIn(source, proof);
    }

    /// @inheritdoc ISeeds
    function fix(uint256 height, uint256 time) external {
        if (fixedAt[height][time] != 0) revert NotNeeded();
        if (_now() <= time + FIX_AFTER) revert TooEarly(time + FIX_AFTER);

        uint256 source = _height() + 1;
        fixedAt[height][time] = source;

        emit Fixed(height, time, source);
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

    /// @dev The block itself, or every 256th from there when it is late. Exactly one of these can be
    /// read at any time, so nobody chooses among them.
    function _readable(uint256 first) internal view returns (uint256 source, bool late) {
        source = first;
        uint256 current = _height();
        if (current <= source) revert TooEarly(source + 1);
        late = current > source + HASHES;
        if (late) source += (current - source - 1) / HASHES * HASHES;
    }

    /// @dev The random of a block, from its header.
    function _randomIn(uint256 height, bytes calldata header)
        internal
        view
        virtual
        returns (bytes32)
    {
        if (keccak256(header) != _hashOfBlock(height)) revert WrongHeader(height);
        // Behind the list's own prefix, items before the random are skipped: seven of fixed sizes
        // (five hashes, the address of who made the block, the bloom), then each by its own.
        uint256 offset = 1 + uint8(header[0]) - 0xf7 + FIXED_SIZE;
        for (uint256 i = FIXED_ITEMS; i < RANDOM_ITEM; i++) {
            uint256 prefix = uint8(header[offset++]);
            if (prefix > 0xb7) {
                uint256 sizeOfSize = prefix - 0xb7;
                uint256 size = uint256(bytes32(header[offset:])) >> (256 - 8 * sizeOfSize);
                offset += sizeOfSize + size;
            } else if (prefix > 0x80) {
                offset += prefix - 0x80;
            }
        }
        if (uint8(header[offset]) != 0xa0) revert WrongHeader(height);
        return bytes32(header[offset + 1:offset + 33]);
    }
}
