// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Evidence} from "./Evidence.sol";

/// @title Commitments
/// @notice Roots, paths and proofs as docs/FORMATS.md has them, hashed by the SHA-256 precompile.
/// @dev What is proven lies in calldata; an offset is one into calldata. Each function reverts
/// where a proof is not of the one form that its place needs. A path does not bind the number of
/// leaves: callers take that from what the root is bound to. Trees have at most 2^40 leaves.
///
/// Assembly, because a proof is a hundred hashes of 65 bytes, each with its prefix written before
/// it. The bytes are put together behind the free memory pointer, which stays where it is.
library Commitments {
    bytes32 internal constant TENSOR_TAG = "lockstep.tensor.v1";
    bytes32 internal constant DATA_TAG = "lockstep.data.v1";
    bytes32 internal constant STATE_TAG = "lockstep.state.v1";
    bytes32 internal constant SEGMENT_TAG = "lockstep.segment.v1";
    bytes32 internal constant TRACE_TAG = "lockstep.trace.v1";
    bytes32 internal constant BATCH_TAG = "lockstep.batch.v1";
    bytes32 internal constant PROGRAM_TAG = "lockstep.program.v1";
    bytes32 internal constant JOB_TAG = "lockstep.job.v1";

    uint256 internal constant LEAF_SIZE = 1024;
    uint256 internal constant LEAVES_MAX = 2 ** 40;

    // The names are those of enum evidence_reason in proofs/dispute/evidence.h.

    error HashFailed(); // never but for lack of gas
    error BadPath(uint256 index, uint256 count, uint256 siblings);
    error BadLeaves(uint256 leaves, uint256 siblings);
    error BadLabel(uint256 operand);
    error BadPadding(uint256 operand);

    ////////////////////////////////////////////////////////////////
    //                           Hashes                           //
    ////////////////////////////////////////////////////////////////

    /// @notice SHA-256 of bytes in calldata.
    function hashOf(uint256 offset, uint256 size) internal view returns (bytes32 hash) {
        assembly {
            let buffer := mload(0x40)
            calldatacopy(buffer, offset, size)
            hash := staticcall(gas(), 2, buffer, size, 0, 32)
            if hash { hash := mload(0) }
        }
        _hashed(hash);
    }

    /// @notice The hash of a leaf in calldata.
    function leafHash(uint256 offset, uint256 size) internal view returns (bytes32 hash) {
        assembly {
            let buffer := mload(0x40)
            mstore8(buffer, 0)
            calldatacopy(add(buffer, 1), offset, size)
            hash := staticcall(gas(), 2, buffer, add(size, 1), 0, 32)
            if hash { hash := mload(0) }
        }
        _hashed(hash);
    }

    /// @notice The hash of a leaf that is a root: an item of a list.
    function itemHash(bytes32 item) internal view returns (bytes32 hash) {
        assembly {
            let buffer := mload(0x40)
            mstore8(buffer, 0)
            mstore(add(buffer, 1), item)
            hash := staticcall(gas(), 2, buffer, 33, 0, 32)
            if hash { hash := mload(0) }
        }
        _hashed(hash);
    }

    /// @notice The header of a list: state, segment, trace and program roots.
    function listRoot(bytes32 tag, bytes32 treeRoot, uint256 first, uint256 count)
        internal
        view
        returns (bytes32 root)
    {
        assembly {
            let buffer := mload(0x40)
            mstore(buffer, tag)
            mstore(add(buffer, 32), treeRoot)
            mstore(add(buffer, 64), or(shl(192, first), shl(128, count)))
            root := staticcall(gas(), 2, buffer, 80, 0, 32)
            if root { root := mload(0) }
        }
        _hashed(root);
    }

    /// @notice The header of a tensor or of data: its label is what follows tag and tree root.
    function tensorRoot(bytes32 tag, bytes32 treeRoot, uint256 label, uint256 labelSize)
        internal
        view
        returns (bytes32 root)
    {
        assembly {
            let buffer := mload(0x40)
            mstore(buffer, tag)
            mstore(add(buffer, 32), treeRoot)
            calldatacopy(add(buffer, 64), label, labelSize)
            root := staticcall(gas(), 2, buffer, add(64, labelSize), 0, 32)
            if root { root := mload(0) }
        }
        _hashed(root);
    }

    ////////////////////////////////////////////////////////////////
    //                           Proofs                           //
    ////////////////////////////////////////////////////////////////

    /// @notice Where a path leads: from node `index` of `count` beside each other to the root.
    /// @dev For leaves, and for the nodes of any level: nodesAt() says how many those are.
    function pathRoot(
        bytes32 node,
        uint256 index,
        uint256 count,
        uint256 siblings,
        uint256 siblingCount
    ) internal view returns (bytes32 root) {
        if (index >= count || count > LEAVES_MAX) {
            revert BadPath(index, count, siblingCount);
        }
        uint256 end = siblings + 32 * siblingCount;
        bool sound = true;
        assembly {
            let buffer := mload(0x40)
            let left := add(buffer, 1)
            let right := add(buffer, 33)
            let place := index
            let next := siblings
            root := node
            mstore8(buffer, 1)
            for { let last := sub(count, 1) } last { last := shr(1, last) } {
                // A node without a sibling rises as it is.
                if or(and(place, 1), lt(place, last)) {
                    switch and(place, 1)
                    case 1 {
                        mstore(left, calldataload(next))
                        mstore(right, root)
                    }
                    default {
                        mstore(left, root)
                        mstore(right, calldataload(next))
                    }
                    next := add(next, 32)
                    sound := and(sound, staticcall(gas(), 2, buffer, 65, 0, 32))
                    root := mload(0)
                }
                place := shr(1, place)
            }
            sound := and(sound, eq(next, end))
        }
        if (!sound) {
            revert BadPath(index, count, siblingCount);
        }
    }

    /// @notice The root that a proof of many leaves leads to (docs/FORMATS.md 1.2).
    /// @param indexes Offset of the indexes of the leaves, 8 bytes each, rising.
    /// @param m Number of leaves shown, at least 1, at most 65,535.
    /// @param count Number of leaves of the tree.
    /// @param leaves Offset of the leaves of 1,024 bytes.
    function leavesRoot(
        uint256 indexes,
        uint256 m,
        uint256 count,
        uint256 siblings,
        uint256 siblingCount,
        uint256 leaves
    ) internal view returns (bytes32 root) {
        if (m == 0 || count == 0 || count > LEAVES_MAX) {
            revert BadLeaves(m, siblingCount);
        }
        bool sound = true;
        assembly {
            function indexAt(first, slot) -> index {
                index := shr(192, calldataload(add(first, shl(3, slot))))
            }

            // The node over leaves start .. start + size - 1, of which those in slots from to to -
            // 1 are shown; none where from is to. half is a power of two that is at least that at
            // which the part is split. In memory at state: next sibling, indexes, leaves, sound,
            // then room for one leaf.
            function part(state, start, size, half, from, to) -> node {
                switch eq(from, to)
                case 1 {
                    let next := mload(state)
                    node := calldataload(next)
                    mstore(state, add(next, 32))
                }
                default {
                    switch eq(size, 1)
                    case 1 {
                        let buffer := add(state, 128)
                        mstore8(buffer, 0)
                        calldatacopy(
                            add(buffer, 1), add(mload(add(state, 64)), shl(10, from)), 1024
                        )
                        let good := staticcall(gas(), 2, buffer, 1025, 0, 32)
                        mstore(add(state, 96), and(mload(add(state, 96)), good))
                        node := mload(0)
                    }
                    default {
                        for {} iszero(lt(half, size)) {} { half := shr(1, half) }
                        let middle := add(start, half)
                        let first := mload(add(state, 32))
                        let low := from
                        let high := to
                        // The first slot whose index is not below the middle. Most parts hold few.
                        if lt(indexAt(first, sub(to, 1)), middle) { low := to }
                        for {} lt(low, high) {} {
                            let slot := shr(1, add(low, high))
                            switch lt(indexAt(first, slot), middle)
                            case 1 { low := add(slot, 1) }
                            default { high := slot }
                        }
                        node := part(state, start, half, shr(1, half), from, low)
                        let right := part(state, middle, sub(size, half), half, low, to)
                        let buffer := add(state, 128)
                        mstore8(buffer, 1)
                        mstore(add(buffer, 1), node)
                        mstore(add(buffer, 33), right)
                        let good := staticcall(gas(), 2, buffer, 65, 0, 32)
                        mstore(add(state, 96), and(mload(add(state, 96)), good))
                        node := mload(0)
                    }
                }
            }

            let index := indexAt(indexes, 0)
            for { let slot := 1 } lt(slot, m) { slot := add(slot, 1) } {
                let following := indexAt(indexes, slot)
                sound := and(sound, lt(index, following))
                index := following
            }
            sound := and(sound, lt(index, count))
            if sound {
                let state := mload(0x40)
                mstore(state, siblings)
                mstore(add(state, 32), indexes)
                mstore(add(state, 64), leaves)
                mstore(add(state, 96), 1)
                let half := shl(39, 1)
                for {} gt(half, shl(8, count)) {} { half := shr(8, half) }
                root := part(state, 0, count, half, 0, m)
                sound := and(
                    mload(add(state, 96)), eq(mload(state), add(siblings, shl(5, siblingCount)))
                )
            }
        }
        if (!sound) {
            revert BadLeaves(m, siblingCount);
        }
    }

    /// @notice How many nodes there are `level` levels above `count` leaves.
    function nodesAt(uint256 count, uint256 level) internal pure returns (uint256) {
        return (count + (uint256(1) << level) - 1) >> level;
    }

    /// @notice The least level with one node: ceil(log2(count)).
    function heightOf(uint256 count) internal pure returns (uint256 height) {
        while (uint256(1) << height < count) {
            height++;
        }
    }

    ////////////////////////////////////////////////////////////////
    //                         Frontiers                          //
    ////////////////////////////////////////////////////////////////

    /// @notice The node over `count` nodes of one level.
    function foldHashes(uint256 offset, uint256 count) internal view returns (bytes32 root) {
        uint256 base;
        assembly {
            base := add(mload(0x40), 32)
            calldatacopy(base, offset, shl(5, count))
        }
        return _fold(base, count);
    }

    /// @notice The node over `count` items, which are leaves of 32 bytes.
    /// @return root That node.
    /// @return whole No item is zero.
    function foldItems(uint256 offset, uint256 count)
        internal
        view
        returns (bytes32 root, bool whole)
    {
        uint256 base;
        bool sound;
        assembly {
            base := add(mload(0x40), 32)
            let buffer := add(base, shl(5, count))
            let room := add(buffer, 1)
            let to := base
            mstore8(buffer, 0)
            sound := 1
            whole := 1
            for {} lt(to, buffer) {} {
                let item := calldataload(offset)
                mstore(room, item)
                if iszero(item) { whole := 0 }
                sound := and(sound, staticcall(gas(), 2, buffer, 33, to, 32))
                offset := add(offset, 32)
                to := add(to, 32)
            }
        }
        if (!sound) {
            revert HashFailed();
        }
        root = _fold(base, count);
    }

    /// @notice The node over `count` leaves of `size` bytes, one behind the other.
    function foldLeaves(uint256 offset, uint256 count, uint256 size)
        internal
        view
        returns (bytes32 root)
    {
        uint256 base;
        bool sound = true;
        assembly {
            base := add(mload(0x40), 32)
            let buffer := add(base, shl(5, count))
            let to := base
            mstore8(buffer, 0)
            for { let next := offset } lt(to, buffer) { to := add(to, 32) } {
                calldatacopy(add(buffer, 1), next, size)
                sound := and(sound, staticcall(gas(), 2, buffer, add(size, 1), to, 32))
                next := add(next, size)
            }
        }
        if (!sound) {
            revert HashFailed();
        }
        return _fold(base, count);
    }

    ////////////////////////////////////////////////////////////////
    //                    Operands of evidence                    //
    ////////////////////////////////////////////////////////////////

    /// @notice The root that an operand's shown leaves lead to, under the label of its descriptor.
    /// @dev What remains to be checked is that this root stands at the operand's place.
    function operandRoot(Evidence.Operand memory operand) internal view returns (bytes32) {
        uint256 label = operand.label;
        uint256 labelHash = operand.labelHash;
        uint256 size;
        bytes32 expected;
        assembly {
            expected := calldataload(labelHash)
            size := shr(192, calldataload(label))
        }
        if (operand.labelSize < 60 || hashOf(label, operand.labelSize) != expected) {
            revert BadLabel(operand.number);
        }
        _checkPadding(operand, size);
        bytes32 treeRoot = leavesRoot(
            operand.indexes,
            operand.count,
            (size + LEAF_SIZE - 1) / LEAF_SIZE,
            operand.siblings,
            operand.siblingCount,
            operand.leaves
        );
        uint256 shown = operand.root;
        bytes32 claimed;
        assembly {
            claimed := calldataload(shown)
        }
        if (treeRoot != claimed) {
            revert BadLeaves(operand.count, operand.siblingCount);
        }
        return tensorRoot(
            operand.role == Evidence.ROLE_DATA ? DATA_TAG : TENSOR_TAG,
            treeRoot,
            label,
            operand.labelSize
        );
    }

    ////////////////////////////////////////////////////////////////
    //                          Private                           //
    ////////////////////////////////////////////////////////////////

    /// @dev No hash is zero: a failed call is recognized by it.
    function _hashed(bytes32 hash) private pure {
        if (hash == 0) {
            revert HashFailed();
        }
    }

    /// @dev The bytes of the last leaf behind the tensor's last byte.
    function _checkPadding(Evidence.Operand memory operand, uint256 size) private pure {
        uint256 rest = size & (LEAF_SIZE - 1);
        if (rest == 0 || operand.count == 0) {
            return;
        }
        uint256 slot = operand.indexes + 8 * (operand.count - 1);
        uint256 end = operand.leaves + LEAF_SIZE * operand.count;
        uint256 bits = 0;
        assembly {
            if eq(shr(192, calldataload(slot)), shr(10, size)) {
                let next := add(sub(end, 1024), rest)
                for {} iszero(gt(add(next, 32), end)) { next := add(next, 32) } {
                    bits := or(bits, calldataload(next))
                }
                // What is left is less than a word.
                if lt(next, end) {
                    bits := or(bits, shr(shl(3, sub(32, sub(end, next))), calldataload(next)))
                }
            }
        }
        if (bits != 0) {
            revert BadPadding(operand.number);
        }
    }

    /// @dev Folds hashes in memory pairwise, in place; the byte before base is free. The prefix of
    /// a pair overwrites the last byte of the hash before it, which is folded by then.
    function _fold(uint256 base, uint256 count) private view returns (bytes32 root) {
        if (count == 0) {
            revert BadLeaves(0, 0);
        }
        bool sound = true;
        assembly {
            for {} gt(count, 1) {} {
                let pairs := shr(1, count)
                let from := sub(base, 1)
                let to := base
                for { let end := add(base, shl(5, pairs)) } lt(to, end) { to := add(to, 32) } {
                    mstore8(from, 1)
                    sound := and(sound, staticcall(gas(), 2, from, 65, to, 32))
                    from := add(from, 64)
                }
                if and(count, 1) { mstore(to, mload(add(from, 1))) }
                count := add(pairs, and(count, 1))
            }
            root := mload(base)
        }
        if (!sound) {
            revert HashFailed();
        }
    }
}
