// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Commitments} from "./Commitments.sol";
import {Evidence} from "./Evidence.sol";
import {IExaminer} from "./IExaminer.sol";
import {IRules} from "./IRules.sol";
import {ProgramItem} from "./ProgramItem.sol";
import {Walk} from "./Walk.sol";

/// @title Examiner
/// @notice See IExaminer. Here everything is proven; the contracts of rules compute.
contract Examiner is IExaminer {
    using ProgramItem for ProgramItem.Item;

    uint256 internal constant LEAF_SIZE = 1024;
    uint256 internal constant ELEMENTS_OF_A_LEAF = 256; // of binary32
    uint256 internal constant LABEL_TYPE = 56; // where a label has the element type
    uint256 internal constant EXPONENT_BITS = 0x7f800000;

    // The last kind of each family: engine/op.h.
    uint256 internal constant LAST_MOVE = 11;
    uint256 internal constant LAST_ELEMENTWISE = 23;
    uint256 internal constant LAST_CONTRACTION = 27;
    uint256 internal constant LAST_ROWS = 36;
    uint256 internal constant LAST_POOL = 40;
    uint256 internal constant LAST_UPDATE = 43;

    IRules public immutable MOVES; // and pools
    IRules public immutable ELEMENTWISE; // and updates
    IRules public immutable CONTRACTION;
    IRules public immutable ROWS;

    constructor(IRules moves, IRules elementwise, IRules contraction, IRules rows) {
        MOVES = moves;
        ELEMENTWISE = elementwise;
        CONTRACTION = contraction;
        ROWS = rows;
    }

    ////////////////////////////////////////////////////////////////
    //                            Walk                            //
    ////////////////////////////////////////////////////////////////

    /// @inheritdoc IExaminer
    function question(Context calldata context, bytes calldata proof)
        external
        view
        returns (bytes memory asked)
    {
        return Walk.question(context, proof);
    }

    /// @inheritdoc IExaminer
    function compare(bytes calldata asked, bytes calldata told) external view {
        if (uint8(asked[0]) != Walk.DIVERGED) {
            Walk.compare(asked, told);
            return;
        }
        // What is told is evidence that a number of the state is not finite.
        bytes32 postState = bytes32(asked[15:47]);
        ProgramItem.Item memory program = _programItem(told, bytes32(asked[47:79]));
        if (uint8(told[0]) != Evidence.NOT_FINITE || _isFinite(program, postState)) {
            revert BadTelling();
        }
    }

    ////////////////////////////////////////////////////////////////
    //                          Evidence                          //
    ////////////////////////////////////////////////////////////////

    /// @inheritdoc IExaminer
    function examine(Context calldata context, Progress calldata progress, bytes calldata evidence)
        external
        view
        returns (Answer answer, Progress memory moved)
    {
        ProgramItem.Item memory program = _programItem(evidence, context.programRoot);
        uint256 kind = uint8(evidence[0]);
        bool guilty;
        if (kind == Evidence.ELEMENT) {
            return _element(context, progress, evidence);
        } else if (kind == Evidence.FIRST_STATE) {
            guilty = _differs(program, context, context.preState, program.state());
        } else if (context.attestor) {
            revert Evidence.BadKind(kind); // an attestor answers for its trace alone
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

    /// @dev An element is not what the rule makes of the others.
    function _element(
        Context calldata context,
        Progress calldata progress,
        bytes calldata evidence
    ) internal view returns (Answer answer, Progress memory moved) {
        Evidence.Exhibit memory shown = Evidence.parse(evidence);
        _checkOperands(context, shown);
        uint256 carry = 0;
        bytes32 subject = _subject(shown);
        if (shown.from != 0) {
            if (progress.subject != subject || progress.next != shown.from) {
                revert BadOrder(progress.next);
            }
            carry = progress.carry;
        }
        (bool done, uint256 result) = _rules(shown.operation).part(evidence, carry);
        if (!done) return (Answer.PartTaken, Progress(subject, shown.to, result));
        answer = result == Evidence.accused(shown) ? Answer.NotGuilty : Answer.Upheld;
    }

    /// @dev Does every operand that is shown stand where the descriptor says?
    function _checkOperands(Context calldata context, Evidence.Exhibit memory shown) internal view {
        uint256 traceCount = shown.head.traceCount;
        bytes32 traceTree = _word(shown.treeRoot);
        if (
            Commitments.listRoot(Commitments.TRACE_TAG, traceTree, 0, traceCount)
                != context.traceRoot
        ) revert BadTrace();
        for (uint256 i = 0; i < shown.operands.length; i++) {
            Evidence.Operand memory operand = shown.operands[i];
            if (operand.used == 0) continue;
            bytes32 item = Commitments.itemHash(Commitments.operandRoot(operand));
            bool listed =
                operand.role == Evidence.ROLE_DATA || operand.role == Evidence.ROLE_CONSTANT;
            uint256 count = listed ? operand.listCount : traceCount;
            bytes32 root = Commitments.pathRoot(
                item, operand.place, count, operand.path, operand.pathSize
            );
            if (listed) {
                root = Commitments.listRoot(Commitments.STATE_TAG, root, 0, count);
            }
            bytes32 expected = operand.role == Evidence.ROLE_DATA
                ? context.dataRoot
                : operand.role == Evidence.ROLE_CONSTANT ? context.constantsRoot : traceTree;
            if (root != expected) revert BadTensor(i);
        }
    }

    /// @dev What a long sum is of.
    function _subject(Evidence.Exhibit memory shown) internal pure returns (bytes32) {
        uint256 offset = shown.head.descriptor;
        bytes calldata descriptor = msg.data[offset:offset + shown.head.descriptorSize];
        return keccak256(abi.encodePacked(descriptor, shown.output, shown.element));
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
    //                          Private                           //
    ////////////////////////////////////////////////////////////////

    /// @dev The contract that has the rules of a kind of operation.
    function _rules(uint256 kind) internal view returns (IRules) {
        if (kind <= LAST_MOVE) return MOVES;
        if (kind <= LAST_ELEMENTWISE) return ELEMENTWISE;
        if (kind <= LAST_CONTRACTION) return CONTRACTION;
        if (kind <= LAST_ROWS) return ROWS;
        if (kind <= LAST_POOL) return MOVES;
        if (kind <= LAST_UPDATE) return ELEMENTWISE;
        revert Evidence.BadDescriptor();
    }

    function _word(uint256 offset) internal pure returns (bytes32 word) {
        assembly {
            word := calldataload(offset)
        }
    }
}
