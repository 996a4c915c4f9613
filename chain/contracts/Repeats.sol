// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Repeats
/// @notice Where the operands of an operation stand that a step does once for each micro-batch.
/// @dev docs/FORMATS.md, section 4.1. Behind the operands of such a descriptor: base (4),
/// micro-batches (4), micro-batches of a group (4), items that a micro-batch hands on (4), sums (4),
/// items of a micro-batch's own list (4), and of each operand: way (1), other (4). What is proven is
/// well formed: the job was agreed on. Items of the micro-batches' own lists are numbered behind
/// those of the trace.
library Repeats {
    uint256 internal constant FLAG = 0x4000; // added to the kind of the operation
    uint256 internal constant LAYOUT_SIZE = 24;
    uint256 internal constant WAY_SIZE = 5;

    uint256 private constant OWN = 1;
    uint256 private constant CARRIED = 2;
    uint256 private constant SUMMED = 3;
    uint256 private constant INNER = 4;
    uint256 private constant JOIN = 5;
    uint256 private constant RIGHT = 7;

    /// @notice Is an operation with this kind one of a repeat? A state's 0xffff is not.
    function isRepeated(uint256 kind) internal pure returns (bool) {
        return kind >> 14 == 1;
    }

    /// @notice Is there such a micro-batch, or such a node of the joins?
    /// @param shape The offset behind the operands, of which there are `count`.
    function exists(uint256 shape, uint256 count, uint256 instance) internal pure returns (bool) {
        uint256 times = _uint(shape + 4, 4);
        if (_uint(shape + LAYOUT_SIZE + WAY_SIZE * (count - 1), 1) < JOIN) {
            return instance < times;
        }
        return instance > 0 && instance < times / _uint(shape + 8, 4);
    }

    /// @notice How many items the own list has of the micro-batch that an operation is in; 0: it has
    /// none, or the operation joins groups.
    function innerItems(uint256 shape, uint256 count) internal pure returns (uint256) {
        return _uint(shape + LAYOUT_SIZE + WAY_SIZE * (count - 1), 1) < JOIN
            ? _uint(shape + 20, 4)
            : 0;
    }

    /// @notice The item of an operand, whose descriptor says `place`.
    /// @param items Of the trace.
    function placeOf(
        uint256 shape,
        uint256 operand,
        uint256 place,
        uint256 instance,
        uint256 items
    ) internal pure returns (uint256) {
        uint256 way = _uint(shape + LAYOUT_SIZE + WAY_SIZE * operand, 1);
        uint256 other = _uint(shape + LAYOUT_SIZE + WAY_SIZE * operand + 1, 4);
        uint256 group = _uint(shape + 8, 4);
        if (way == INNER) {
            return items + instance * _uint(shape + 20, 4) + place;
        }
        if (way == OWN) {
            return _block(shape, instance) + place;
        }
        if (way == CARRIED || way == SUMMED) {
            bool begins = way == CARRIED ? instance == 0 : instance % group == 0;
            return begins ? place : _block(shape, instance - 1) + other;
        }
        if (way == JOIN) {
            return _join(shape, instance) + place;
        }
        if (way > JOIN) {
            uint256 groups = _uint(shape + 4, 4) / group;
            uint256 node = 2 * instance + (way == RIGHT ? 1 : 0);
            return node < groups
                ? _join(shape, node) + place
                : _block(shape, (node - groups + 1) * group - 1) + other;
        }
        return place;
    }

    /// @dev The first item of a micro-batch.
    function _block(uint256 shape, uint256 i) private pure returns (uint256) {
        return _uint(shape, 4) + i * _uint(shape + 12, 4)
            + _uint(shape + 16, 4) * _joins(i / _uint(shape + 8, 4));
    }

    /// @dev The first item of a node: 1 is the root, the children of t are 2t and 2t + 1.
    function _join(uint256 shape, uint256 node) private pure returns (uint256) {
        uint256 group = _uint(shape + 8, 4);
        uint256 groups = _uint(shape + 4, 4) / group;
        uint256 level = 0;
        uint256 first = 1; // of the nodes on its level
        while (2 * first <= node) first *= 2;
        while (first << level < groups) level++;
        uint256 end = (node - first + 1) << level; // groups until it is complete
        return _uint(shape, 4) + end * group * _uint(shape + 12, 4)
            + _uint(shape + 16, 4) * (_joins(end - 1) + level - 1);
    }

    /// @dev Joins that the first groups complete: their number less its bits that are set.
    function _joins(uint256 groups) private pure returns (uint256 joins) {
        joins = groups;
        while (groups != 0) {
            groups &= groups - 1;
            joins--;
        }
    }

    /// @dev The big-endian number of `length` bytes at an offset into calldata.
    function _uint(uint256 offset, uint256 length) private pure returns (uint256 value) {
        assembly {
            value := shr(sub(256, shl(3, length)), calldataload(offset))
        }
    }
}
