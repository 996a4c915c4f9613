// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Binary32} from "./Binary32.sol";
import {Repeats} from "./Repeats.sol";

/// @title Evidence
/// @notice Reads the bytes of evidence (docs/FORMATS.md) where they lie, in calldata.
/// @dev It checks that the bytes are whole and says where everything is. It checks no hash and no
/// proof: the referee does that (Commitments.sol) before it calls a contract of rules. Nothing is
/// copied; an offset is one into calldata. Every loop is bounded by the bytes that are there.
library Evidence {
    ////////////////////////////////////////////////////////////////
    //                         Constants                          //
    ////////////////////////////////////////////////////////////////

    uint256 internal constant ELEMENT = 1; // kinds of evidence
    uint256 internal constant FIRST_STATE = 2;
    uint256 internal constant NEXT_STATE = 3;
    uint256 internal constant NOT_FINITE = 4;
    uint256 internal constant PART = 5;

    uint256 internal constant ATTRIBUTES_MAX = 16;
    uint256 internal constant INPUTS_MAX = 8;
    uint256 internal constant OUTPUTS_MAX = 8;
    uint256 internal constant OPERAND_SIZE = 46; // of an operand in a descriptor
    uint256 internal constant LEAF_SIZE = 1024;
    uint256 internal constant RANGE_SIZE = 28; // of an axis, with what was replied of it
    uint256 internal constant ELEMENTS_MAX = 2 ** 40; // of a tensor

    uint256 internal constant F32 = 0; // element types
    uint256 internal constant U8 = 1;
    uint256 internal constant U16 = 2;
    uint256 internal constant U32 = 3;
    uint256 internal constant I16 = 4;
    uint256 internal constant I32 = 5;
    uint256 internal constant F16 = 6;
    uint256 internal constant BF16 = 7;

    uint256 internal constant ROLE_DATA = 2;
    uint256 internal constant ROLE_CONSTANT = 3;

    uint256 internal constant NAN_BITS = 0x7fc00000;

    uint256 private constant NO_LEAF = type(uint256).max;

    ////////////////////////////////////////////////////////////////
    //                           Types                            //
    ////////////////////////////////////////////////////////////////

    /// @notice An operand of the operation: what its descriptor says, and what was shown of it.
    struct Operand {
        uint256 number; // among inputs, then outputs
        uint256 elementType;
        uint256 role;
        uint256 place;
        uint256 elements;
        uint256 labelHash; // offset of the 32 bytes in the descriptor
        uint256 shift; // log2 of the size of an element
        uint256 used; // 1: what follows was shown
        uint256 label; // offset of the label's bytes
        uint256 labelSize;
        uint256 root; // offset of the root of its tree of leaves
        uint256 listCount; // data and constants: items of their list
        uint256 path; // offset of the siblings of its root
        uint256 pathSize; // their number
        uint256 indexes; // offset of the indexes of its leaves, 8 bytes each
        uint256 count; // of leaves
        uint256 siblings; // offset of the siblings of its leaves
        uint256 siblingCount;
        uint256 leaves; // offset of its leaves
        uint256 lastLeaf; // the leaf that get() found last, and where
        uint256 lastAt;
    }

    /// @notice The beginning of every kind of evidence.
    struct Head {
        uint256 kind;
        uint256 item; // of the program list
        uint256 itemCount;
        uint256 traceCount; // N
        uint256 path; // offset of the siblings of the item
        uint256 pathSize;
        uint256 descriptor; // offset
        uint256 descriptorSize;
        bool repeated; // an operation of a repeat
        uint256 instance; // of it
        uint256 rest; // offset of what follows
        uint256 end; // offset of the end of the evidence
    }

    /// @notice Evidence of kind ELEMENT or PART.
    struct Exhibit {
        Head head;
        uint256 operation; // its kind
        uint256 attributes; // offset
        uint256 attributeCount;
        uint256 inputs; // counts
        uint256 outputs;
        uint256 treeRoot; // offset of the tree root of the trace
        uint256 batchCount; // items of the micro-batch's own list, whose tree root is next; or 0
        uint256 output; // the accused element
        uint256 element;
        uint256 part; // of kind PART: number
        uint256 range; // offset of the range that the parts are of
        uint256 rangeSize; // 0: they are those of the whole axis
        uint256 replied; // offset of the accused's reply about the parts
        uint256 repliedSize;
        Operand[] operands;
    }

    ////////////////////////////////////////////////////////////////
    //                          Errors                            //
    ////////////////////////////////////////////////////////////////

    // The names are those of enum evidence_reason in proofs/dispute/evidence.h.

    /// @notice The evidence ends before this offset, or after it.
    error BadSize(uint256 offset, uint256 end);
    error BadKind(uint256 kind);
    error BadDescriptor();
    /// @notice No such element, or no such part of it.
    error BadTarget(uint256 output, uint256 element, uint256 part);
    /// @notice An element that the rule needs is not shown.
    error Missing(uint256 operand, uint256 index);

    ////////////////////////////////////////////////////////////////
    //                          Reading                           //
    ////////////////////////////////////////////////////////////////

    /// @notice The head of any kind of evidence.
    function parseHead(bytes calldata evidence) internal pure returns (Head memory head) {
        uint256 offset;
        assembly {
            offset := evidence.offset
        }
        head.end = offset + evidence.length;
        _need(head, offset, 14);
        head.kind = _uint(offset, 1);
        if (head.kind < ELEMENT || head.kind > PART) {
            revert BadKind(head.kind);
        }
        head.item = _uint(offset + 1, 4);
        head.itemCount = _uint(offset + 5, 4);
        head.traceCount = _uint(offset + 9, 4);
        head.pathSize = _uint(offset + 13, 1);
        head.path = offset + 14;
        offset = head.path + 32 * head.pathSize;
        _need(head, offset, 2);
        head.descriptorSize = _uint(offset, 2);
        head.descriptor = offset + 2;
        head.rest = head.descriptor + head.descriptorSize;
        _need(head, head.rest, 0);
        head.repeated = head.descriptorSize >= 2 && Repeats.isRepeated(_uint(head.descriptor, 2));
        if (head.repeated) {
            _need(head, head.rest, 4);
            head.instance = _uint(head.rest, 4);
            head.rest += 4;
        }
    }

    /// @notice All of the evidence that an element is false, or a part of one.
    function parse(bytes calldata evidence) internal pure returns (Exhibit memory shown) {
        Head memory head = parseHead(evidence);
        if (head.kind != ELEMENT && head.kind != PART) {
            revert BadKind(head.kind);
        }
        shown.head = head;
        _parseDescriptor(shown, head);
        uint256 offset = head.rest;
        shown.treeRoot = offset;
        offset += shown.batchCount == 0 ? 32 : 64;
        _need(head, offset, 11);
        shown.output = _uint(offset, 1);
        shown.element = _uint(offset + 1, 8);
        offset += 9;
        if (head.kind == PART) {
            _need(head, offset, 5);
            shown.part = _uint(offset, 4);
            shown.rangeSize = _uint(offset + 4, 1);
            shown.range = offset + 5;
            offset = shown.range + shown.rangeSize;
            _need(head, offset, 2);
            shown.repliedSize = _uint(offset, 2);
            shown.replied = offset + 2;
            offset = shown.replied + shown.repliedSize;
            _need(head, offset, 2);
            if (shown.rangeSize != 0 && shown.rangeSize != RANGE_SIZE) badTarget(shown);
        }
        uint256 used = _uint(offset, 2);
        offset += 2;
        uint256 count = shown.operands.length;
        if (used >> count != 0) {
            badTarget(shown);
        }
        if (
            shown.output >= shown.outputs
                || shown.element >= shown.operands[shown.inputs + shown.output].elements
        ) {
            badTarget(shown);
        }
        if (used >> (shown.inputs + shown.output) & 1 == 0) {
            revert Missing(shown.inputs + shown.output, shown.element);
        }
        for (uint256 i = 0; i < count; i++) {
            if (used >> i & 1 == 1) {
                offset = _parseShown(shown.operands[i], head, offset);
            }
        }
        if (offset != head.end) {
            revert BadSize(offset, head.end);
        }
    }

    /// @notice Reverts: the evidence is about nothing that the operation has.
    function badTarget(Exhibit memory shown) internal pure {
        revert BadTarget(shown.output, shown.element, shown.part);
    }

    /// @notice An attribute of the operation.
    function attribute(Exhibit memory shown, uint256 number) internal pure returns (int256 value) {
        if (number >= shown.attributeCount) {
            revert BadDescriptor();
        }
        uint256 offset = shown.attributes + 8 * number;
        assembly {
            value := sar(192, calldataload(offset))
        }
    }

    /// @notice An attribute that is a number no less than 0.
    function natural(Exhibit memory shown, uint256 number) internal pure returns (uint256) {
        int256 value = attribute(shown, number);
        if (value < 0) {
            revert BadDescriptor();
        }
        return uint256(value);
    }

    /// @notice An attribute that is a size: a divisor.
    function size(Exhibit memory shown, uint256 number) internal pure returns (uint256 value) {
        value = natural(shown, number);
        if (value == 0 || value > ELEMENTS_MAX) {
            revert BadDescriptor();
        }
    }

    /// @notice An attribute that is a pattern of 32 bits.
    function pattern(Exhibit memory shown, uint256 number) internal pure returns (uint256) {
        return uint32(int32(attribute(shown, number)));
    }

    /// @notice The accused element, as the solver committed to it.
    function accused(Exhibit memory shown) internal pure returns (uint256 bits) {
        return get(shown.operands[shown.inputs + shown.output], shown.element);
    }

    ////////////////////////////////////////////////////////////////
    //                         Elements                           //
    ////////////////////////////////////////////////////////////////

    /// @notice The 32 bits of an element. Signed ones of 16 bits are widened.
    function get(Operand memory operand, uint256 index) internal pure returns (uint256 bits) {
        if (index >= operand.elements) {
            revert BadDescriptor();
        }
        uint256 shift = operand.shift;
        uint256 place = index << shift; // below 2^42
        uint256 offset = place >> 10 == operand.lastLeaf
            ? operand.lastAt
            : _leaf(operand, place >> 10, index);
        uint256 word;
        assembly {
            word := calldataload(add(offset, and(place, 1023)))
        }
        if (shift == 2) {
            assembly {
                bits := or(
                    or(byte(0, word), shl(8, byte(1, word))),
                    or(shl(16, byte(2, word)), shl(24, byte(3, word)))
                )
            }
        } else if (shift == 0) {
            bits = word >> 248;
        } else {
            assembly {
                bits := or(byte(0, word), shl(8, byte(1, word)))
            }
            if (operand.elementType == I16) {
                assembly {
                    bits := and(signextend(1, bits), 0xffffffff)
                }
            }
        }
    }

    /// @notice An element as binary32: one of 16 bits is widened, exactly.
    function widened(Operand memory operand, uint256 index) internal pure returns (uint256 bits) {
        bits = get(operand, index);
        if (operand.elementType == BF16) {
            return Binary32.stored(bits << 16);
        }
        if (operand.elementType == F16) {
            uint256 sign = (bits & 0x8000) << 16;
            uint256 field = (bits >> 10) & 31;
            bits &= 0x3ff;
            if (field == 0) {
                return sign | Binary32.fromInteger(int256(bits), -24);
            }
            field = field == 31 ? 255 : field + 112;
            return Binary32.stored(sign | (field << 23) | (bits << 13));
        }
    }

    /// @notice Where elements first to first + count - 1 lie one behind the other: an offset.
    /// @dev Leaves are shown in rising order (the referee checks that), so neighbours in the tensor
    /// are neighbours in calldata.
    function span(Operand memory operand, uint256 first, uint256 count)
        internal
        pure
        returns (uint256 offset)
    {
        if (count == 0 || first >= operand.elements || count > operand.elements - first) {
            revert BadDescriptor();
        }
        uint256 shift = operand.shift;
        uint256 place = first << shift;
        uint256 last = first + count - 1;
        uint256 leaf = place >> 10;
        uint256 start = leaf == operand.lastLeaf ? operand.lastAt : _leaf(operand, leaf, first);
        unchecked {
            uint256 slot = ((start - operand.leaves) >> 10) + ((last << shift) >> 10) - leaf;
            if (
                slot >= operand.count
                    || _uint(operand.indexes + 8 * slot, 8) != (last << shift) >> 10
            ) {
                revert Missing(operand.number, last);
            }
            return start + (place & 1023);
        }
    }

    /// @notice Turns each of the sixteen little-endian numbers of 2 bytes in a word around.
    function swap16(uint256 word) internal pure returns (uint256 swapped) {
        uint256 mask = 0x00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff;
        return (word & mask) << 8 | (word >> 8 & mask);
    }

    /// @notice Turns each of the eight little-endian numbers of 4 bytes in a word around.
    function swap32(uint256 word) internal pure returns (uint256 swapped) {
        uint256 mask = 0x0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff;
        word = swap16(word);
        return (word & mask) << 16 | (word >> 16 & mask);
    }

    ////////////////////////////////////////////////////////////////
    //                          Private                           //
    ////////////////////////////////////////////////////////////////

    /// @dev The big-endian number of `length` bytes at an offset.
    function _uint(uint256 offset, uint256 length) private pure returns (uint256 value) {
        assembly {
            value := shr(sub(256, shl(3, length)), calldataload(offset))
        }
    }

    function _need(Head memory head, uint256 offset, uint256 count) private pure {
        if (offset + count > head.end) {
            revert BadSize(offset + count, head.end);
        }
    }

    function _parseDescriptor(Exhibit memory shown, Head memory head) private pure {
        uint256 offset = head.descriptor;
        if (head.descriptorSize < 5) {
            revert BadDescriptor();
        }
        shown.operation = _uint(offset, 2) & ~Repeats.FLAG;
        shown.attributeCount = _uint(offset + 2, 1);
        shown.inputs = _uint(offset + 3, 1);
        shown.outputs = _uint(offset + 4, 1);
        shown.attributes = offset + 5;
        uint256 count = shown.inputs + shown.outputs;
        if (
            shown.attributeCount > ATTRIBUTES_MAX || shown.inputs > INPUTS_MAX
                || shown.outputs > OUTPUTS_MAX
                || head.descriptorSize != 5 + 8 * shown.attributeCount + OPERAND_SIZE * count
                    + (head.repeated ? Repeats.LAYOUT_SIZE + Repeats.WAY_SIZE * count : 0)
        ) {
            revert BadDescriptor();
        }
        offset += 5 + 8 * shown.attributeCount;
        uint256 shape = offset + OPERAND_SIZE * count;
        if (head.repeated && !Repeats.exists(shape, count, head.instance)) {
            revert BadTarget(0, 0, head.instance);
        }
        if (head.repeated) shown.batchCount = Repeats.innerItems(shape, count);
        shown.operands = new Operand[](count);
        for (uint256 i = 0; i < count; i++) {
            Operand memory operand = shown.operands[i];
            operand.number = i;
            operand.elementType = _uint(offset, 1);
            operand.role = _uint(offset + 1, 1);
            operand.place = _uint(offset + 2, 4);
            if (head.repeated) {
                operand.place = Repeats.placeOf(
                    shape, i, operand.place, head.instance, head.traceCount
                );
            }
            operand.elements = _uint(offset + 6, 8);
            operand.labelHash = offset + 14;
            operand.lastLeaf = NO_LEAF;
            if (operand.elementType > BF16 || operand.elements > ELEMENTS_MAX) {
                revert BadDescriptor();
            }
            // Sizes 4, 1, 2, 4, 2, 4, 2, 2 of the types, as their logarithms.
            operand.shift = 0x0101020102010002 >> (8 * operand.elementType) & 3;
            offset += OPERAND_SIZE;
        }
    }

    /// @dev The part of one operand; returns the offset behind it.
    function _parseShown(Operand memory operand, Head memory head, uint256 offset)
        private
        pure
        returns (uint256)
    {
        operand.used = 1;
        _need(head, offset, 1);
        operand.labelSize = _uint(offset, 1);
        operand.label = offset + 1;
        offset += 1 + operand.labelSize;
        operand.root = offset;
        offset += 32;
        if (operand.role == ROLE_DATA || operand.role == ROLE_CONSTANT) {
            _need(head, offset, 4);
            operand.listCount = _uint(offset, 4);
            offset += 4;
        }
        _need(head, offset, 1);
        operand.pathSize = _uint(offset, 1);
        operand.path = offset + 1;
        offset += 1 + 32 * operand.pathSize;
        _need(head, offset, 2);
        operand.count = _uint(offset, 2);
        operand.indexes = offset + 2;
        offset += 2 + 8 * operand.count;
        _need(head, offset, 2);
        operand.siblingCount = _uint(offset, 2);
        operand.siblings = offset + 2;
        operand.leaves = offset + 2 + 32 * operand.siblingCount;
        offset = operand.leaves + LEAF_SIZE * operand.count;
        _need(head, offset, 0);
        return offset;
    }

    /// @dev Where a leaf lies: binary search. `index` is the element, for the error.
    function _leaf(Operand memory operand, uint256 leaf, uint256 index)
        private
        pure
        returns (uint256 offset)
    {
        uint256 low = 0;
        uint256 high = operand.count;
        unchecked {
            while (low < high) {
                uint256 middle = (low + high) >> 1;
                uint256 there = _uint(operand.indexes + 8 * middle, 8);
                if (there == leaf) {
                    offset = operand.leaves + LEAF_SIZE * middle;
                    operand.lastLeaf = leaf;
                    operand.lastAt = offset;
                    return offset;
                }
                if (there < leaf) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
        }
        revert Missing(operand.number, index);
    }
}
