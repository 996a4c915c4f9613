// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IRegistry} from "./IRegistry.sol";

/// @title IReferee
/// @notice Tries the claims of the registry: queries, replies, and evidence that convicts.
/// docs/PROTOCOL.md, section 7, has it in prose; chain/local/local_referee.c plays it in C.
/// @dev Every move takes a turn of the registry: a party that does not move in time loses.
interface IReferee {
    /// @notice What a claim is about. The ledger keeps only hashes of it, so each move of the
    /// claimant shows it.
    struct Case {
        address client;
        uint256 salt;
        bytes32[7] header; // of the job, 216 bytes
        IRegistry.Segment segment;
        IRegistry.Segment previous; // the one before; not used for segment 0 and step > 0
        uint256 step; // within the segment; of an attestor: the one it drew
        bytes32 preState;
        bytes32 postState;
    }

    /// @notice The part of a case that is wrong.
    enum Part {
        None,
        Job, // client, salt and header are not the job of the claim
        Segment,
        Subject, // step and states are not those of the claim, or not the step drawn
        Previous,
        PreState, // not under the root of its segment
        PostState
    }

    error WrongTurn(uint256 turn);
    error WrongCase(uint256 part);
    error BadQuery();
    error NotQueried();
    error BadReply();
    error BadEvidence();
    error NotGuilty();

    /// @param queried What the accused must reply with: docs/FORMATS.md, section 10.4.
    event Queried(bytes32 indexed claim, bytes queried);
    event Replied(bytes32 indexed claim, bytes replied);

    /// @notice Queries the accused for a part of its trace, or of the state after the step.
    /// @param prePath Siblings of preState under its segment's root; none for the first state.
    /// @param postPath Siblings of postState.
    function query(
        bytes32 claim,
        Case calldata shown,
        bytes32[] calldata prePath,
        bytes32[] calldata postPath,
        bytes calldata ledgerQuery
    ) external;

    /// @notice Replies with what was queried.
    function reply(bytes32 claim, bytes calldata queried, bytes calldata replied) external;

    /// @notice Shows evidence: the claim is upheld, or the move reverts.
    function convict(
        bytes32 claim,
        Case calldata shown,
        bytes32[] calldata prePath,
        bytes32[] calldata postPath,
        bytes calldata evidence
    ) external;
}
