// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Commitments} from "./Commitments.sol";
import {IExaminer} from "./IExaminer.sol";
import {Repeats} from "./Repeats.sol";

/// @title ProgramItem
/// @notice A descriptor that is proven to be in a program, and the proofs that stand behind it.
/// @dev Item (4), items (4), items of a trace (4), path, size (2), descriptor; of an operation of a
/// repeat its instance (4). A path is the number
/// of its siblings (1) and the siblings. Offsets are into calldata; what would be read past the end
/// reverts.
library ProgramItem {
    uint256 internal constant STATE = 0xffff; // stands where the kind of an operation stands
    uint256 internal constant STATE_SIZE = 51;
    uint256 internal constant OPERAND_SIZE = 46; // of an operand in a descriptor
    uint256 internal constant LABEL_MIN = 60;
    uint256 internal constant LABEL_MAX = 123;

    struct Item {
        uint256 traceCount; // items of a trace
        uint256 descriptor;
        uint256 descriptorSize;
        bool repeated; // an operation of a repeat
        uint256 instance; // of it
        bool exists; // there is such an instance
        uint256 innerCount; // items of its micro-batch's own list; 0: none
        uint256 rest; // what stands behind it
        uint256 end;
    }

    function read(bytes calldata proof, bytes32 programRoot)
        internal
        view
        returns (Item memory item)
    {
        uint256 offset;
        assembly {
            offset := proof.offset
        }
        item.end = offset + proof.length;
        uint256 index = number(item, offset, 4);
        uint256 count = number(item, offset + 4, 4);
        item.traceCount = number(item, offset + 8, 4);
        uint256 siblings = number(item, offset + 12, 1);
        item.descriptorSize = number(item, offset + 13 + 32 * siblings, 2);
        item.descriptor = offset + 15 + 32 * siblings;
        item.rest = item.descriptor + item.descriptorSize;
        if (item.rest > item.end) revert IExaminer.BadProgram();

        bytes32 leaf = Commitments.leafHash(item.descriptor, item.descriptorSize);
        bytes32 treeRoot = Commitments.pathRoot(leaf, index, count, offset + 13, siblings);
        if (
            Commitments.listRoot(Commitments.PROGRAM_TAG, treeRoot, item.traceCount, count)
                != programRoot
        ) revert IExaminer.BadProgram();
        if (Repeats.isRepeated(number(item, item.descriptor, 2))) {
            item.repeated = true;
            item.instance = number(item, item.rest, 4);
            item.rest += 4;
            uint256 operands =
                number(item, item.descriptor + 3, 1) + number(item, item.descriptor + 4, 1);
            uint256 shape = _shape(item, operands);
            item.exists = Repeats.exists(shape, operands, item.instance);
            item.innerCount = Repeats.innerItems(shape, operands);
        }
    }

    ////////////////////////////////////////////////////////////////
    //                       The descriptor                       //
    ////////////////////////////////////////////////////////////////

    /// @notice Is it a state's? What is proven is well formed: the job was agreed on.
    function isState(Item memory item) internal pure returns (bool) {
        return item.descriptorSize == STATE_SIZE && number(item, item.descriptor, 2) == STATE;
    }

    function state(Item memory item) internal pure returns (uint256) {
        if (!isState(item)) revert IExaminer.BadProgram();
        return number(item, item.descriptor + 2, 4);
    }

    function stateCount(Item memory item) internal pure returns (uint256) {
        if (!isState(item)) revert IExaminer.BadProgram();
        return number(item, item.descriptor + 6, 4);
    }

    /// @notice The item of a trace that is the state's next value.
    function nextItem(Item memory item) internal pure returns (uint256) {
        return number(item, item.descriptor + 10, 4);
    }

    /// @notice The hash of the label of a state.
    function labelOfState(Item memory item) internal pure returns (bytes32) {
        return word(item, item.descriptor + 14);
    }

    /// @notice The hash of the label of an operation's output, which must stand at an item of a
    /// trace.
    function labelOfOutput(Item memory item, uint256 output, uint256 place)
        internal
        pure
        returns (bytes32)
    {
        uint256 offset = item.descriptor;
        if (isState(item) || output >= number(item, offset + 4, 1)) {
            revert IExaminer.BadTensor(place);
        }
        uint256 operand = number(item, offset + 3, 1) + output;
        uint256 count = number(item, offset + 3, 1) + number(item, offset + 4, 1);
        uint256 shape = _shape(item, count);
        offset = shape - OPERAND_SIZE * (count - operand);
        uint256 found = number(item, offset + 2, 4);
        if (item.repeated) {
            if (!item.exists) revert IExaminer.BadTensor(place);
            found = Repeats.placeOf(shape, operand, found, item.instance, item.traceCount);
        }
        if (found != place) revert IExaminer.BadTensor(place);
        return word(item, offset + 14);
    }

    /// @dev The offset behind the operands, of which there are `count`.
    function _shape(Item memory item, uint256 count) private pure returns (uint256) {
        return item.descriptor + 5 + 8 * number(item, item.descriptor + 2, 1)
            + OPERAND_SIZE * count;
    }

    ////////////////////////////////////////////////////////////////
    //                      What is behind it                     //
    ////////////////////////////////////////////////////////////////

    /// @notice The big-endian number of `size` bytes.
    function number(Item memory item, uint256 offset, uint256 size)
        internal
        pure
        returns (uint256 value)
    {
        if (offset + size > item.end) revert IExaminer.BadQuery();
        assembly {
            value := shr(sub(256, shl(3, size)), calldataload(offset))
        }
    }

    function word(Item memory item, uint256 offset) internal pure returns (bytes32) {
        return bytes32(number(item, offset, 32));
    }

    /// @notice A label with its size before it, whose hash is known.
    function label(Item memory item, uint256 offset, bytes32 hash)
        internal
        view
        returns (uint256 place, uint256 size)
    {
        size = number(item, offset, 1);
        place = offset + 1;
        bool sound = size >= LABEL_MIN && size <= LABEL_MAX && place + size <= item.end;
        if (!sound || Commitments.hashOf(place, size) != hash) revert IExaminer.BadLabel();
    }

    /// @notice A path that must lead from a node at `index` of `count` to a root.
    /// @return behind The offset behind it.
    function path(
        Item memory item,
        bytes32 node,
        uint256 index,
        uint256 count,
        bytes32 root,
        uint256 offset
    ) internal view returns (uint256 behind) {
        uint256 siblings = number(item, offset, 1);
        behind = offset + 1 + 32 * siblings;
        if (
            behind > item.end
                || Commitments.pathRoot(node, index, count, offset + 1, siblings) != root
        ) revert IExaminer.BadTensor(index);
    }
}
