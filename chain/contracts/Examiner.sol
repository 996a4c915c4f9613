// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Commitments} from "./Commitments.sol";
import {Evidence} from "./Evidence.sol";
import {IExaminer} from "./IExaminer.sol";
import {IParts} from "./IParts.sol";
import {IRules} from "./IRules.sol";
import {RuleBook} from "./Kinds.sol";
import {ProgramItem} from "./ProgramItem.sol";
import {Walk} from "./Walk.sol";

/// @title Examiner
/// @notice See IExaminer. Here everything is proven; the contracts of rules compute.
contract Examiner is IExaminer, RuleBook {
    using ProgramItem for ProgramItem.Item;

    uint256 internal constant LEAF_SIZE = 1024;
    uint256 internal constant LEAVES_OF_A_RIGHT = 8;
    uint256 internal constant ELEMENTS_OF_A_LEAF = 256; // of binary32
    uint256 internal constant LABEL_TYPE = 56; // where a label has the element type
    uint256 internal constant EXPONENT_BITS = 0x7f800000;
    uint256 internal constant FOLD_SUM = 1;
    uint256 internal constant PARTS_QUERIED = 56; // bytes of what is queried of a whole axis
    int256 internal constant REPLIED_EXPONENT_MAX = 2 ** 17; // of no sum: they are less

    constructor(IRules[RULE_CONTRACTS] memory rules) RuleBook(rules) {}

    ////////////////////////////////////////////////////////////////
    //                            Walk                            //
    ////////////////////////////////////////////////////////////////

    /// @inheritdoc IExaminer
    function query(Context calldata context, bytes calldata ledgerQuery)
        external
        view
        returns (bytes memory queried)
    {
        if (ledgerQuery.length > 0 && uint8(ledgerQuery[0]) == Walk.PARTS) {
            return _queryParts(context, ledgerQuery);
        }
        return Walk.check(context, ledgerQuery);
    }

    /// @dev Evidence follows the query: of an element, whose parts are queried, or of a part of the
    /// last reply, whose own parts are. It need show only the element.
    function _queryParts(Context calldata context, bytes calldata proof)
        internal
        view
        returns (bytes memory queried)
    {
        bytes calldata evidence = proof[Walk.QUERY_SIZE:];
        _programItem(evidence, context.programRoot);
        Evidence.Exhibit memory shown = Evidence.parse(evidence);
        _checkOperands(context, shown);
        if (!_hasParts(shown.operation)) revert BadQuery();
        IParts.Axis memory axis = _parts().axisOf(evidence);
        bytes memory range;
        if (shown.head.kind == Evidence.PART) {
            bytes calldata values = _requireReplied(context, shown, axis.fold, axis.count);
            range = abi.encodePacked(
                uint64(axis.from), uint64(axis.length), _repliedOf(shown.part, values)
            );
        }
        queried = _queriedParts(shown, axis.fold, axis.parts, range);
        if (axis.parts < 2 || keccak256(proof[:Walk.QUERY_SIZE]) != _queryOf(queried)) {
            revert BadQuery();
        }
    }

    /// @dev What a reply says of a part: exponent (4), value (8). Of an element that is a NaN it
    /// names the part that makes it one, and says nothing of others.
    function _repliedOf(uint256 part, bytes calldata values) internal pure returns (bytes memory) {
        if (values.length == 4) {
            if (part != uint32(bytes4(values))) revert BadQuery();
            return abi.encodePacked(uint96(0));
        }
        uint256 place = 4 + 8 * part;
        return abi.encodePacked(values[:4], values[place:place + 8]);
    }

    /// @dev The accused's last reply, which must be about the range that evidence names.
    function _requireReplied(
        Context calldata context,
        Evidence.Exhibit memory shown,
        uint256 fold,
        uint256 count
    ) internal pure returns (bytes calldata values) {
        uint256 offset = shown.range;
        bytes memory queried =
            _queriedParts(shown, fold, count, msg.data[offset:offset + shown.rangeSize]);
        offset = shown.replied;
        values = msg.data[offset:offset + shown.repliedSize];
        if (sha256(abi.encodePacked(queried, values)) != context.replied) revert NotReplied();
    }

    /// @dev The hash of the query at the start of `queried`.
    function _queryOf(bytes memory queried) internal pure returns (bytes32 hash) {
        uint256 size = Walk.QUERY_SIZE;
        assembly {
            hash := keccak256(add(queried, 32), size)
        }
    }

    /// @dev What a query of the parts of an element asks for: query, subject (32), bits (4), fold
    /// (1), number of parts (4); of a part from (8), length (8), exponent (4), value (8).
    function _queriedParts(
        Evidence.Exhibit memory shown,
        uint256 fold,
        uint256 count,
        bytes memory range
    ) internal pure returns (bytes memory) {
        uint256 offset = shown.head.descriptor;
        bytes calldata descriptor = msg.data[offset:offset + shown.head.descriptorSize];
        bytes32 subject =
            sha256(abi.encodePacked(descriptor, uint8(shown.output), uint64(shown.element)));
        uint256 place = shown.operands[shown.inputs + shown.output].place;
        return abi.encodePacked(
            abi.encodePacked(
                uint8(Walk.PARTS),
                uint8(0),
                uint32(place),
                uint8(range.length == 0 ? 0 : 1),
                uint64(shown.element)
            ),
            subject,
            uint32(Evidence.accused(shown)),
            uint8(fold),
            uint32(count),
            range
        );
    }

    /// @inheritdoc IExaminer
    function compare(bytes calldata queried, bytes calldata replied)
        external
        view
        returns (bytes32 kept)
    {
        uint256 kind = uint8(queried[0]);
        if (kind == Walk.PARTS) {
            _compareParts(queried, replied);
            return sha256(abi.encodePacked(queried, replied));
        }
        if (kind != Walk.DIVERGED) {
            return Walk.compare(queried, replied);
        }
        // The reply is evidence that a number of the state is not finite.
        bytes32 postState = bytes32(queried[15:47]);
        ProgramItem.Item memory program = _programItem(replied, bytes32(queried[47:79]));
        if (uint8(replied[0]) != Evidence.NOT_FINITE || _isFinite(program, postState)) {
            revert BadReply();
        }
    }

    /// @dev Do the parts come to the element, or to what was replied of the part that they are of?
    /// No sum is a NaN: if the element is one, the reply is the part that makes it one.
    function _compareParts(bytes calldata queried, bytes calldata replied) internal view {
        uint256 bits = uint32(bytes4(queried[47:51]));
        uint256 fold = uint8(queried[51]);
        uint256 count = uint32(bytes4(queried[52:56]));
        if (fold == FOLD_SUM && bits == Evidence.NAN_BITS) {
            if (replied.length != 4 || uint32(bytes4(replied)) >= count) revert BadReply();
            return;
        }
        if (replied.length != 4 + 8 * count) revert BadReply();
        int256 exponent = int32(uint32(bytes4(replied)));
        int256 most = fold == FOLD_SUM ? REPLIED_EXPONENT_MAX : int256(0);
        (uint256 joined, int256 value) = _parts().join(fold, replied);
        bool same = joined == bits && exponent >= -most && exponent <= most;
        if (queried.length > PARTS_QUERIED) {
            same = bytes4(replied) == bytes4(queried[PARTS_QUERIED + 16:])
                && value == int64(uint64(bytes8(queried[PARTS_QUERIED + 20:])));
        }
        if (!same) revert BadReply();
    }

    ////////////////////////////////////////////////////////////////
    //                          Evidence                          //
    ////////////////////////////////////////////////////////////////

    /// @inheritdoc IExaminer
    function examine(Context calldata context, bytes calldata evidence)
        external
        view
        returns (Answer answer)
    {
        ProgramItem.Item memory program = _programItem(evidence, context.programRoot);
        uint256 kind = uint8(evidence[0]);
        bool guilty;
        if (kind == Evidence.ELEMENT) {
            guilty = _elementIsFalse(context, evidence);
        } else if (kind == Evidence.PART) {
            guilty = _partIsFalse(context, evidence);
        } else if (kind == Evidence.FIRST_STATE) {
            guilty = _differs(program, context, context.preState, program.state());
        } else if (kind == Evidence.NEXT_STATE) {
            guilty = _differs(program, context, context.postState, program.nextItem());
        } else if (kind == Evidence.NOT_FINITE && !context.diverged) {
            guilty = !_isFinite(program, context.postState);
        } else {
            revert Evidence.BadKind(kind);
        }
        answer = guilty ? Answer.Upheld : Answer.NotGuilty;
    }

    function _programItem(bytes calldata evidence, bytes32 root)
        internal
        view
        returns (ProgramItem.Item memory)
    {
        return ProgramItem.read(evidence[1:], root);
    }

    /// @dev The element differs from what its rule gives.
    function _elementIsFalse(Context calldata context, bytes calldata evidence)
        internal
        view
        returns (bool)
    {
        Evidence.Exhibit memory shown = Evidence.parse(evidence);
        _checkOperands(context, shown);
        return _rules(shown).element(evidence) != Evidence.accused(shown);
    }

    /// @dev A part differs from the accused's reply, or does not go with the exponent in it. An
    /// element that no part can change is judged by itself.
    function _partIsFalse(Context calldata context, bytes calldata evidence)
        internal
        view
        returns (bool)
    {
        Evidence.Exhibit memory shown = Evidence.parse(evidence);
        _checkOperands(context, shown);
        if (!_hasParts(shown.operation)) revert Evidence.BadKind(Evidence.PART);
        IParts.Part memory part = _parts().part(evidence);
        bytes calldata values = _requireReplied(context, shown, part.fold, part.count);
        if (part.settled) return part.bits != Evidence.accused(shown);
        if (values.length == 4) return shown.part == uint32(bytes4(values)); // it said: a NaN
        uint256 place = 4 + 8 * shown.part;
        return part.unfit || part.value != int64(uint64(bytes8(values[place:place + 8])));
    }

    /// @dev Does every operand that is shown stand where the descriptor says?
    function _checkOperands(Context calldata context, Evidence.Exhibit memory shown) internal view {
        uint256 traceCount = shown.head.traceCount;
        uint256 batchCount = shown.batchCount;
        bytes32 traceTree = _word(shown.treeRoot);
        bytes32 batchTree = _word(shown.treeRoot + 32);
        if (
            Commitments.listRoot(Commitments.TRACE_TAG, traceTree, 0, traceCount)
                    != context.traceRoot
                || (batchCount != 0
                    && Commitments.listRoot(
                        Commitments.BATCH_TAG, batchTree, shown.head.instance, batchCount
                    ) != context.batchRoot)
        ) revert BadTrace();
        for (uint256 i = 0; i < shown.operands.length; i++) {
            Evidence.Operand memory operand = shown.operands[i];
            if (operand.used == 0) continue;
            bytes32 item = Commitments.itemHash(Commitments.operandRoot(operand));
            bool listed =
                operand.role == Evidence.ROLE_DATA || operand.role == Evidence.ROLE_CONSTANT;
            bool inner = !listed && batchCount != 0 && operand.place >= traceCount;
            uint256 count = listed ? operand.listCount : inner ? batchCount : traceCount;
            bytes32 root = Commitments.pathRoot(
                item,
                inner ? (operand.place - traceCount) % batchCount : operand.place,
                count,
                operand.path,
                operand.pathSize
            );
            if (listed) {
                root = Commitments.listRoot(Commitments.STATE_TAG, root, 0, count);
            }
            bytes32 expected = operand.role == Evidence.ROLE_DATA
                ? context.dataRoot
                : operand.role == Evidence.ROLE_CONSTANT
                    ? context.constantsRoot
                    : inner ? batchTree : traceTree;
            if (root != expected) revert BadTensor(i);
        }
    }

    /// @dev The trace has another root at an item than a state list has at the descriptor's state.
    /// Tree root of the trace, root in the trace, its path; root in the list, the list's tree root,
    /// its path.
    function _differs(
        ProgramItem.Item memory program,
        Context calldata context,
        bytes32 stateRoot,
        uint256 item
    ) internal view returns (bool) {
        uint256 offset = program.rest;
        uint256 state = program.state();
        bytes32 traceTree = program.word(offset);
        if (
            Commitments.listRoot(Commitments.TRACE_TAG, traceTree, 0, program.traceCount)
                != context.traceRoot
        ) revert BadTrace();
        bytes32 inTrace = program.word(offset + 32);
        offset = program.path(
            Commitments.itemHash(inTrace), item, program.traceCount, traceTree, offset + 64
        );
        bytes32 inState = program.word(offset);
        bytes32 stateTree = _stateTree(program, stateRoot, offset + 32);
        offset = program.path(
            Commitments.itemHash(inState), state, program.stateCount(), stateTree, offset + 64
        );
        if (offset != program.end) revert Evidence.BadSize(offset, program.end);
        return inTrace != inState;
    }

    function _stateTree(ProgramItem.Item memory program, bytes32 stateRoot, uint256 offset)
        internal
        view
        returns (bytes32 treeRoot)
    {
        treeRoot = program.word(offset);
        if (
            Commitments.listRoot(Commitments.STATE_TAG, treeRoot, 0, program.stateCount())
                != stateRoot
        ) revert BadState(program.state());
    }

    /// @dev One element of the descriptor's state in a list of states. Label, tree root, tree root
    /// of the list, path; leaf (8), path, the leaf, element (8).
    function _isFinite(ProgramItem.Item memory program, bytes32 stateRoot)
        internal
        view
        returns (bool)
    {
        uint256 state = program.state();
        (uint256 label, uint256 labelSize) = program.label(program.rest, program.labelOfState());
        // Only a binary32 can be anything but finite.
        if (program.number(label + LABEL_TYPE, 1) != Evidence.F32) revert BadLabel();
        uint256 offset = label + labelSize;
        bytes32 treeRoot = program.word(offset);
        bytes32 stateTree = _stateTree(program, stateRoot, offset + 32);
        bytes32 tensorRoot =
            Commitments.tensorRoot(Commitments.TENSOR_TAG, treeRoot, label, labelSize);
        offset = program.path(
            Commitments.itemHash(tensorRoot), state, program.stateCount(), stateTree, offset + 64
        );

        uint256 size = program.number(label, 8);
        uint256 index = program.number(offset, 8);
        uint256 leaf = offset + 9 + 32 * program.number(offset + 8, 1);
        uint256 element = program.number(leaf + LEAF_SIZE, 8);
        if (leaf + LEAF_SIZE + 8 != program.end) {
            revert Evidence.BadSize(leaf, program.end);
        }
        program.path(
            Commitments.leafHash(leaf, LEAF_SIZE),
            index,
            size / LEAF_SIZE + (size % LEAF_SIZE == 0 ? 0 : 1),
            treeRoot,
            offset + 8
        );
        if (element >= size / 4 || element / ELEMENTS_OF_A_LEAF != index) revert BadLeaf(index);
        if (index == size / LEAF_SIZE) {
            for (uint256 i = size % LEAF_SIZE; i < LEAF_SIZE; i++) {
                if (msg.data[leaf + i] != 0) revert BadLeaf(index);
            }
        }
        // Little-endian: the exponent is in the last two of the four bytes.
        uint256 bits = program.number(leaf + 4 * (element % ELEMENTS_OF_A_LEAF), 4);
        uint256 exponent = ((bits & 0x7f) << 24) | ((bits & 0x8000) << 8);
        return exponent != EXPONENT_BITS;
    }

    ////////////////////////////////////////////////////////////////
    //                       Leaves of rights                     //
    ////////////////////////////////////////////////////////////////

    /// @inheritdoc IExaminer
    function drawnLeaf(Right calldata verdict, uint256 index, bytes calldata shown)
        external
        view
        returns (bytes32 said)
    {
        uint256 drawn = uint256(keccak256(abi.encode(verdict.seed, index)));
        uint256 steps = verdict.steps;
        uint256 step = drawn % steps;
        // The last is of the state before the last step: who stops early has it not.
        if (index == LEAVES_OF_A_RIGHT - 1) step = steps > 1 ? steps - 2 : 0;
        (Branch memory branch, bytes32 state) = _branch(shown, drawn);
        bytes32 root = Commitments.pathRoot(
            Commitments.itemHash(state), step, steps, branch.states, branch.stateSiblings
        );
        root = Commitments.listRoot(Commitments.SEGMENT_TAG, root, verdict.firstStep, steps);
        if (root != verdict.root) revert BadState(step);
        said = keccak256(
            abi.encodePacked(
                verdict.owner,
                verdict.seed,
                verdict.segment,
                uint64(step),
                uint32(branch.tensor),
                uint64(branch.leaf),
                shown[shown.length - LEAF_SIZE:]
            )
        );
    }

    /// @dev Where the leaf that was drawn stands in its state.
    struct Branch {
        uint256 states; // offset of the siblings that lead to the segment's root
        uint256 stateSiblings;
        uint256 tensor;
        uint256 leaf;
    }

    /// @dev Paths stand before what they lead from: first all places, then the hashes.
    function _branch(bytes calldata shown, uint256 drawn)
        internal
        view
        returns (Branch memory branch, bytes32 state)
    {
        ProgramItem.Item memory proof;
        uint256 offset;
        assembly {
            offset := shown.offset
        }
        proof.end = offset + shown.length;
        branch.stateSiblings = proof.number(offset, 1);
        branch.states = offset + 1;
        offset = branch.states + 32 * branch.stateSiblings;
        uint256 tensors = proof.number(offset, 4);
        uint256 items = offset + 5;
        uint256 itemSiblings = proof.number(offset + 4, 1);
        offset = items + 32 * itemSiblings;
        uint256 labelSize = proof.number(offset, 1);
        uint256 label = offset + 1;
        if (labelSize < ProgramItem.LABEL_MIN || labelSize > ProgramItem.LABEL_MAX) {
            revert BadLabel();
        }
        uint256 size = proof.number(label, 8);
        offset = label + labelSize;
        uint256 leafSiblings = proof.number(offset, 1);
        uint256 place = offset + 1 + 32 * leafSiblings;
        if (place + LEAF_SIZE != proof.end) revert Evidence.BadSize(place, proof.end);

        uint256 leaves = size / LEAF_SIZE + (size % LEAF_SIZE == 0 ? 0 : 1);
        branch.tensor = (drawn >> 64) % tensors;
        branch.leaf = (drawn >> 128) % leaves;
        state = Commitments.pathRoot(
            Commitments.leafHash(place, LEAF_SIZE), branch.leaf, leaves, offset + 1, leafSiblings
        );
        state = Commitments.tensorRoot(Commitments.TENSOR_TAG, state, label, labelSize);
        state = Commitments.pathRoot(
            Commitments.itemHash(state), branch.tensor, tensors, items, itemSiblings
        );
        state = Commitments.listRoot(Commitments.STATE_TAG, state, 0, tensors);
    }

    ////////////////////////////////////////////////////////////////
    //                          Private                           //
    ////////////////////////////////////////////////////////////////

    /// @dev Sums have parts; the other contracts have none.
    function _hasParts(uint256 kind) internal pure returns (bool) {
        return _contractOf(kind) == RULES_CONTRACTION;
    }

    function _parts() internal view returns (IParts) {
        return IParts(address(CONTRACTION));
    }

    function _word(uint256 offset) internal pure returns (bytes32 word) {
        assembly {
            word := calldataload(offset)
        }
    }
}
