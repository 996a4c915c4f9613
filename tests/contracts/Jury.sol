// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Commitments} from "./Commitments.sol";
import {Evidence} from "./Evidence.sol";
import {IParts} from "./IParts.sol";
import {IRules} from "./IRules.sol";
import {Philox} from "./Philox.sol";

/// @title Jury
/// @notice Puts many cases to the contracts of rules and to Commitments in one call, for tests.
contract Jury {
    uint256 internal constant FAILED = 1 << 64;
    uint256 internal constant SETTLED = 1 << 65;
    uint256 internal constant UNFIT = 1 << 66;

    ////////////////////////////////////////////////////////////////
    //                           Rules                            //
    ////////////////////////////////////////////////////////////////

    /// @param cases Each: size (4); evidence.
    /// @return results Each: gas used (from bit 128 on), UNFIT, SETTLED, FAILED; the element, what a part comes to, or the selector of an error (64 bits).
    function hear(IParts rules, bytes calldata cases)
        external
        view
        returns (uint256[] memory results)
    {
        uint256 count = 0;
        results = new uint256[](cases.length / 4);
        for (uint256 place = 0; place < cases.length; count++) {
            uint256 size = uint32(bytes4(cases[place:place + 4]));
            bytes calldata evidence = cases[place + 4:place + 4 + size];
            results[count] = _query(address(rules), evidence);
            place += 4 + size;
        }
        assembly {
            mstore(results, count)
        }
    }

    function _query(address target, bytes calldata evidence) private view returns (uint256) {
        bool isPart = evidence.length > 0 && uint8(evidence[0]) == Evidence.PART;
        bytes memory call_ = abi.encodeWithSelector(
            isPart ? IParts.part.selector : IRules.element.selector, evidence
        );
        uint256 left = gasleft();
        (bool done, bytes memory answer) = target.staticcall(call_);
        uint256 used = (left - gasleft()) << 128;
        if (!done) {
            return used | FAILED | (answer.length < 4 ? 0 : uint32(bytes4(answer)));
        }
        if (!isPart) {
            return used | abi.decode(answer, (uint256));
        }
        IParts.Part memory part = abi.decode(answer, (IParts.Part));
        if (part.settled) {
            return used | SETTLED | part.bits;
        }
        return used | (part.unfit ? UNFIT : 0) | uint64(int64(part.value));
    }

    function philox(uint256[] calldata inputs) external pure returns (uint256[] memory blocks) {
        blocks = new uint256[](inputs.length / 2);
        for (uint256 i = 0; i < blocks.length; i++) {
            blocks[i] = Philox.block4(inputs[2 * i], inputs[2 * i + 1]);
        }
    }

    ////////////////////////////////////////////////////////////////
    //                        Commitments                         //
    ////////////////////////////////////////////////////////////////

    /// @param proof Leaf count (8), indexes (2), siblings (2), each index (8), siblings, leaves.
    function leaves(bytes calldata proof) external view returns (bytes32) {
        uint256 m = uint16(bytes2(proof[8:10]));
        uint256 n = uint16(bytes2(proof[10:12]));
        uint256 start;
        assembly {
            start := add(proof.offset, 12)
        }
        if (12 + 1032 * m + 32 * n != proof.length) {
            revert();
        }
        return Commitments.leavesRoot(
            start,
            m,
            uint64(bytes8(proof[:8])),
            start + 8 * m,
            n,
            start + 8 * m + 32 * n
        );
    }

    /// @param proof Index (8), count (8), the node (32), siblings.
    function path(bytes calldata proof) external view returns (bytes32) {
        uint256 start;
        assembly {
            start := proof.offset
        }
        return Commitments.pathRoot(
            bytes32(proof[16:48]),
            uint64(bytes8(proof[:8])),
            uint64(bytes8(proof[8:16])),
            start + 48,
            (proof.length - 48) / 32
        );
    }

    /// @param data Kind (1): 0 a list's header: tag, tree root, first (8), count (8); 1 a tensor's:
    /// tag, tree root, label; 2 a frontier of hashes; 3 one of items; 4 one of leaves.
    function fold(bytes calldata data) external view returns (bytes32) {
        uint256 start;
        assembly {
            start := add(data.offset, 1)
        }
        uint256 size = data.length - 1;
        if (data[0] == 0) {
            return Commitments.listRoot(
                bytes32(data[1:33]),
                bytes32(data[33:65]),
                uint64(bytes8(data[65:73])),
                uint64(bytes8(data[73:81]))
            );
        }
        if (data[0] == 0x01) {
            return Commitments.tensorRoot(
                bytes32(data[1:33]), bytes32(data[33:65]), start + 64, size - 64
            );
        }
        if (data[0] == 0x02) {
            return Commitments.foldHashes(start, size / 32);
        }
        return data[0] == 0x03
            ? Commitments.foldLeaves(start, size / 32, 32)
            : Commitments.foldLeaves(start, size / 1024, 1024);
    }

    /// @notice The root of each operand that evidence shows, and what checking them costs.
    function operands(bytes calldata evidence)
        external
        view
        returns (bytes32[] memory roots, uint256 used)
    {
        uint256 left = gasleft();
        Evidence.Exhibit memory shown = Evidence.parse(evidence);
        roots = new bytes32[](shown.operands.length);
        for (uint256 i = 0; i < roots.length; i++) {
            if (shown.operands[i].used == 1) {
                roots[i] = Commitments.operandRoot(shown.operands[i]);
            }
        }
        used = left - gasleft();
    }

    /// @param cases Each: kind (1): 0 leaves, 1 path, 2 fold, 3 operands; size (3); argument.
    /// @return results Each: what it gives, or 0 where it is refused; of operands the hash of all.
    function prove(bytes calldata cases) external view returns (bytes32[] memory results) {
        uint256 count = 0;
        results = new bytes32[](cases.length / 4);
        for (uint256 place = 0; place < cases.length; count++) {
            uint256 size = uint24(bytes3(cases[place + 1:place + 4]));
            results[count] =
                _prove(uint8(cases[place]), cases[place + 4:place + 4 + size]);
            place += 4 + size;
        }
        assembly {
            mstore(results, count)
        }
    }

    /// @notice Turns each bit from `from` on of a case of prove() around, one at a time.
    /// @return accepted How many of those still give the root.
    function flip(uint256 kind, bytes memory proof, uint256 from, uint256 to, bytes32 root)
        external
        view
        returns (uint256 accepted)
    {
        for (uint256 bit = from; bit < to; bit++) {
            bytes1 mask = bytes1(uint8(128 >> (bit & 7)));
            proof[bit >> 3] ^= mask;
            if (_prove(kind, proof) == root) {
                accepted++;
            }
            proof[bit >> 3] ^= mask;
        }
    }

    function _prove(uint256 kind, bytes memory argument) private view returns (bytes32 result) {
        bytes4[4] memory selectors =
            [Jury.leaves.selector, Jury.path.selector, Jury.fold.selector, Jury.operands.selector];
        (bool done, bytes memory answer) =
            address(this).staticcall(abi.encodeWithSelector(selectors[kind], argument));
        if (!done) {
            return 0;
        }
        if (kind != 3) {
            return abi.decode(answer, (bytes32));
        }
        (bytes32[] memory roots,) = abi.decode(answer, (bytes32[], uint256));
        return keccak256(abi.encodePacked(roots));
    }
}
