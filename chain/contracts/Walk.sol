// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Commitments} from "./Commitments.sol";
import {IExaminer} from "./IExaminer.sol";
import {ProgramItem} from "./ProgramItem.sol";

/// @title Walk
/// @notice Queries about what the accused committed to, and the replies (docs/FORMATS.md, section
/// 10).
/// @dev A query proves that its object was committed, so the accused can reply. A reply is folded
/// to the known hash. Offsets are into calldata.
library Walk {
    using ProgramItem for ProgramItem.Item;

    uint256 internal constant LIST = 1; // kinds of queries
    uint256 internal constant LIST_NODE = 2;
    uint256 internal constant TENSOR = 3;
    uint256 internal constant TENSOR_NODE = 4;
    uint256 internal constant DIVERGED = 5;
    uint256 internal constant PARTS = 6; // of an element: not of this file

    uint256 internal constant NEXT_STATE = 1; // lists
    uint256 internal constant BATCH = 2;

    uint256 internal constant QUERY_SIZE = 15;
    uint256 internal constant LEVELS = 8; // of a tree that one reply shows
    uint256 internal constant LEAVES_MAX = 16; // of a part of a tensor that is shown as it is
    uint256 internal constant LEAF_SIZE = 1024;
    uint256 internal constant QUERIED_HEADER = 58; // where what is queried has the header of a root

    struct Query {
        uint256 kind;
        uint256 list; // 0: the trace, 1: the state after the step, 2: a micro-batch
        uint256 item;
        uint256 level;
        uint256 index;
    }

    /// @dev What is known of the queried object.
    struct Target {
        bytes32 known; // the node's hash, or the hash of the header
        uint256 count; // leaves below it
        uint256 lastSize; // bytes of the last one that are not padding
        bytes header; // of a root, with zeros for its tree's root; empty: a node
    }

    ////////////////////////////////////////////////////////////////
    //                          Queries                           //
    ////////////////////////////////////////////////////////////////

    /// @param proof The query, an item of the program, and the proof of the queried object.
    /// @return queried Query, known hash, leaves (8), size of the last (2), size of the header (1),
    /// header. Of DIVERGED: query, state root, program root.
    function check(IExaminer.Context calldata context, bytes calldata proof)
        internal
        view
        returns (bytes memory queried)
    {
        if (proof.length < QUERY_SIZE) revert IExaminer.BadQuery();
        Query memory query = _query(proof);
        ProgramItem.Item memory program = ProgramItem.read(proof[QUERY_SIZE:], context.programRoot);
        uint256 offset = program.rest;
        if (query.kind == DIVERGED) {
            if (!program.isState() || !context.diverged) {
                revert IExaminer.BadQuery();
            }
            queried = abi.encodePacked(proof[:QUERY_SIZE], context.postState, context.programRoot);
        } else {
            Target memory target;
            (target, offset) = query.kind <= LIST_NODE
                ? _list(context, query, program)
                : _tensor(context, query, program);
            queried = abi.encodePacked(
                proof[:QUERY_SIZE],
                target.known,
                uint64(target.count),
                uint16(target.lastSize),
                uint8(target.header.length),
                target.header
            );
        }
        if (offset != program.end) revert IExaminer.BadQuery();
    }

    function _query(bytes calldata proof) private pure returns (Query memory query) {
        query.kind = uint8(proof[0]);
        query.list = uint8(proof[1]);
        query.item = uint32(bytes4(proof[2:6]));
        query.level = uint8(proof[6]);
        query.index = uint64(bytes8(proof[7:15]));
        bool node = query.kind == LIST_NODE || query.kind == TENSOR_NODE;
        bool tensor = query.kind == TENSOR || query.kind == TENSOR_NODE;
        bool list = query.kind == LIST || query.kind == LIST_NODE;
        if (
            query.kind == 0 || query.kind > DIVERGED || query.list > (list ? BATCH : 0)
                || (!tensor && query.list != BATCH && query.item != 0) || (!node && (query.level != 0 || query.index != 0))
        ) revert IExaminer.BadQuery();
    }

    /// @dev The program item is a state, or of a micro-batch's list one of its operations. Behind it,
    /// of a node: the tree root of its list, the node, its path. Nobody has committed to the list of
    /// a micro-batch before the reply.
    function _list(
        IExaminer.Context calldata context,
        Query memory query,
        ProgramItem.Item memory program
    ) private view returns (Target memory target, uint256 offset) {
        bytes32 tag = Commitments.TRACE_TAG;
        offset = program.rest;
        target.known = context.traceRoot;
        target.count = program.traceCount;
        target.lastSize = 32;
        if (query.list == BATCH) {
            if (program.innerCount == 0 || !program.exists || query.item != program.instance) {
                revert IExaminer.BadQuery();
            }
            tag = Commitments.BATCH_TAG;
            target.known = query.kind == LIST ? bytes32(0) : context.batchRoot;
            target.count = program.innerCount;
        } else {
            uint256 states = program.stateCount();
            if (query.list == NEXT_STATE) {
                tag = Commitments.STATE_TAG;
                target.known = context.postState;
                target.count = states;
            }
        }
        if (query.kind == LIST) {
            target.header =
                abi.encodePacked(tag, bytes32(0), uint64(query.item), uint64(target.count));
            return (target, offset);
        }
        bytes32 treeRoot = program.word(offset);
        if (Commitments.listRoot(tag, treeRoot, query.item, target.count) != target.known) {
            revert IExaminer.BadTrace();
        }
        offset = _node(target, query, treeRoot, program, offset + 32);
    }

    /// @dev The program item is an operation that has the tensor as an output. Behind it: tree root
    /// of its list, path of the tensor's root, output (1), size of the label (1), label, tensor's
    /// root; of a node instead of that the root of the tensor's tree, the node, its path.
    function _tensor(
        IExaminer.Context calldata context,
        Query memory query,
        ProgramItem.Item memory program
    ) private view returns (Target memory target, uint256 offset) {
        uint256 path = program.rest + 32;
        offset = path + 1 + 32 * program.number(path, 1);
        uint256 output = program.number(offset, 1);
        (uint256 label, uint256 labelSize) =
            program.label(offset + 1, program.labelOfOutput(output, query.item));
        offset = label + labelSize + 32;

        bytes32 treeRoot = program.word(offset - 32);
        bytes32 tensorRoot = treeRoot;
        if (query.kind == TENSOR_NODE) {
            tensorRoot = Commitments.tensorRoot(Commitments.TENSOR_TAG, treeRoot, label, labelSize);
        }
        _item(context, query, program, tensorRoot, path);
        uint256 size = program.number(label, 8);
        target.count = size / LEAF_SIZE + (size % LEAF_SIZE == 0 ? 0 : 1);
        target.lastSize = size - (target.count - 1) * LEAF_SIZE;
        if (query.kind == TENSOR_NODE) {
            offset = _node(target, query, treeRoot, program, offset);
        } else {
            target.known = tensorRoot;
            target.header = abi.encodePacked(
                Commitments.TENSOR_TAG, bytes32(0), msg.data[label:label + labelSize]
            );
        }
    }

    /// @dev The tensor's root stands in its list. Behind the program item: the tree root of that, the
    /// path.
    function _item(
        IExaminer.Context calldata context,
        Query memory query,
        ProgramItem.Item memory program,
        bytes32 tensorRoot,
        uint256 path
    ) private view {
        bytes32 treeRoot = program.word(program.rest);
        bytes32 tag = Commitments.TRACE_TAG;
        bytes32 root = context.traceRoot;
        uint256 count = program.traceCount;
        uint256 first = 0;
        uint256 place = query.item;
        if (place >= count) {
            if (program.innerCount == 0) revert IExaminer.BadTensor(place);
            tag = Commitments.BATCH_TAG;
            root = context.batchRoot;
            first = program.instance;
            place = (place - count) % program.innerCount;
            count = program.innerCount;
        }
        if (Commitments.listRoot(tag, treeRoot, first, count) != root) {
            revert IExaminer.BadTrace();
        }
        program.path(Commitments.itemHash(tensorRoot), place, count, treeRoot, path);
    }

    /// @dev A node below the root of a tree, and the path that leads there from it.
    function _node(
        Target memory target,
        Query memory query,
        bytes32 treeRoot,
        ProgramItem.Item memory program,
        uint256 offset
    ) private view returns (uint256) {
        uint256 count = target.count;
        if (query.level >= Commitments.heightOf(count)) revert IExaminer.BadQuery();
        uint256 nodes = Commitments.nodesAt(count, query.level);
        target.known = program.word(offset);
        offset = program.path(target.known, query.index, nodes, treeRoot, offset + 32);
        if (query.index + 1 < nodes) {
            target.count = uint256(1) << query.level;
            if (query.kind == TENSOR_NODE) target.lastSize = LEAF_SIZE;
        } else {
            target.count = count - (query.index << query.level);
        }
        return offset;
    }

    ////////////////////////////////////////////////////////////////
    //                          Replies                           //
    ////////////////////////////////////////////////////////////////

    /// @notice Is it the query for the list of a micro-batch? The reply to that commits the accused.
    function commits(bytes calldata queried) internal pure returns (bool) {
        return uint8(queried[0]) == LIST && uint8(queried[1]) == BATCH;
    }

    /// @notice Reverts unless `replied` is the one right reply. The query is not DIVERGED.
    /// @return kept The root of a micro-batch that the reply commits to; else 0.
    function compare(bytes calldata queried, bytes calldata replied)
        internal
        view
        returns (bytes32 kept)
    {
        bytes32 known = bytes32(queried[QUERY_SIZE:47]);
        uint256 count = uint64(bytes8(queried[47:55]));
        bool leaves = uint8(queried[0]) >= TENSOR && count <= LEAVES_MAX;
        bytes calldata header = queried[QUERIED_HEADER:];
        uint256 offset;
        assembly {
            offset := replied.offset
        }
        uint256 size = replied.length;
        if (header.length > 0) {
            if (size < 32) revert IExaminer.BadReply();
            bytes32 treeRoot = bytes32(replied[:32]);
            bytes memory whole = abi.encodePacked(header[:32], treeRoot, header[64:]);
            if (commits(queried)) {
                kept = sha256(whole);
            } else if (sha256(whole) != known) {
                revert IExaminer.BadReply();
            }
            known = treeRoot;
            offset += 32;
            size -= 32;
        }
        bytes32 folded;
        if (leaves) {
            if (size != LEAF_SIZE * count) revert IExaminer.BadReply();
            _requirePadding(replied, uint16(bytes2(queried[55:57])));
            folded = Commitments.foldLeaves(offset, count, LEAF_SIZE);
        } else {
            uint256 height = Commitments.heightOf(count);
            uint256 level = height > LEVELS ? height - LEVELS : 0;
            uint256 entries = Commitments.nodesAt(count, level);
            if (size != 32 * entries) revert IExaminer.BadReply();
            folded = level == 0 && uint8(queried[0]) <= LIST_NODE
                ? Commitments.foldLeaves(offset, entries, 32)
                : Commitments.foldHashes(offset, entries);
        }
        if (folded != known) revert IExaminer.BadReply();
    }

    /// @dev Only the first lastSize bytes of the last leaf are the tensor's.
    function _requirePadding(bytes calldata replied, uint256 lastSize) private pure {
        for (uint256 i = replied.length - LEAF_SIZE + lastSize; i < replied.length; i++) {
            if (replied[i] != 0) revert IExaminer.BadReply();
        }
    }
}
