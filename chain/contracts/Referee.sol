// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Commitments} from "./Commitments.sol";
import {IExaminer} from "./IExaminer.sol";
import {IReferee} from "./IReferee.sol";
import {IRegistry, jobKeyOn} from "./IRegistry.sol";
import {Registry} from "./Registry.sol";

/// @title Referee
/// @notice Checks whose move it is and what the move is about, and reports the outcome to the
/// registry. The examiner computes what bytes prove.
/// @dev Holds no money. Calls only the registry and the examiner, which never call back.
/// Every move reverts or ends with one call of the registry.
contract Referee is IReferee {
    uint256 internal constant HEADER_SIZE = 216;

    IRegistry public immutable REGISTRY;
    IExaminer public immutable EXAMINER;

    /// @notice Per claim, the hash of what was queried last; after a reply of parts, the hash that
    /// the examiner returned for them.
    mapping(bytes32 claim => bytes32 hash) public said;

    /// @dev Makes its registry: neither can exist with another partner.
    constructor(IExaminer examiner) {
        EXAMINER = examiner;
        REGISTRY = _found();
    }

    function _found() internal virtual returns (IRegistry) {
        return new Registry(address(this));
    }

    ////////////////////////////////////////////////////////////////
    //                    Moves of the claimant                   //
    ////////////////////////////////////////////////////////////////

    /// @inheritdoc IReferee
    function query(
        bytes32 claim,
        Case calldata shown,
        bytes32[] calldata prePath,
        bytes32[] calldata postPath,
        bytes calldata ledgerQuery
    ) external {
        IExaminer.Context memory context = _context(claim, shown, prePath, postPath);
        try EXAMINER.query(context, ledgerQuery) returns (bytes memory queried) {
            said[claim] = keccak256(queried);
            emit Queried(claim, queried);
        } catch {
            revert BadQuery();
        }
        REGISTRY.passTurn(claim, IRegistry.Turn.Accused);
    }

    /// @inheritdoc IReferee
    function convict(
        bytes32 claim,
        Case calldata shown,
        bytes32[] calldata prePath,
        bytes32[] calldata postPath,
        bytes calldata evidence
    ) external {
        IExaminer.Context memory context = _context(claim, shown, prePath, postPath);
        try EXAMINER.examine(context, said[claim], evidence) returns (IExaminer.Answer answer) {
            if (answer == IExaminer.Answer.NotGuilty) revert NotGuilty();
        } catch {
            revert BadEvidence();
        }
        REGISTRY.rule(claim, true);
    }

    ////////////////////////////////////////////////////////////////
    //                    Moves of the accused                    //
    ////////////////////////////////////////////////////////////////

    /// @inheritdoc IReferee
    function reply(bytes32 claim, bytes calldata queried, bytes calldata replied) external {
        IRegistry.Trial memory trial = REGISTRY.trial(claim);
        _requireTurn(trial, IRegistry.Turn.Accused, trial.accused);
        if (keccak256(queried) != said[claim]) revert NotQueried();
        try EXAMINER.compare(queried, replied) returns (bytes32 kept) {
            said[claim] = kept;
        } catch {
            revert BadReply();
        }

        emit Replied(claim, replied);
        REGISTRY.passTurn(claim, IRegistry.Turn.Claimant);
    }

    ////////////////////////////////////////////////////////////////
    //                     Internal: the case                     //
    ////////////////////////////////////////////////////////////////

    function _requireTurn(IRegistry.Trial memory trial, IRegistry.Turn turn, address mover)
        internal
        view
    {
        if (trial.turn != turn) revert WrongTurn(uint256(trial.turn));
        if (msg.sender != mover) revert IRegistry.NotYours(mover);
    }

    /// @dev Checks that it is the claimant's turn and that the case is what was committed.
    function _context(
        bytes32 claim,
        Case calldata shown,
        bytes32[] calldata prePath,
        bytes32[] calldata postPath
    ) internal view returns (IExaminer.Context memory context) {
        IRegistry.Trial memory trial = REGISTRY.trial(claim);
        _requireTurn(trial, IRegistry.Turn.Claimant, trial.claimant);
        _checkSubject(claim, trial, shown);
        _checkStates(trial.job, shown, prePath, postPath);

        bytes32[7] calldata header = shown.header;
        // Offsets 56, 120, 152 of the header.
        context.programRoot = (header[1] << 192) | (header[2] >> 64);
        context.constantsRoot = (header[3] << 192) | (header[4] >> 64);
        context.dataRoot = (header[4] << 192) | (header[5] >> 64);
        context.preState = shown.preState;
        context.postState = shown.postState;
        context.traceRoot = trial.traceRoot;
        context.attestor = trial.attestor != address(0);
        context.diverged = trial.diverged && shown.step + 1 == shown.segment.steps;
    }

    /// @dev Is it the job, the segment and the step of the claim?
    function _checkSubject(bytes32 claim, IRegistry.Trial memory trial, Case calldata shown)
        internal
        view
    {
        bytes32[7] calldata header = shown.header;
        bytes32 jobId = sha256(
            abi.encodePacked(
                Commitments.JOB_TAG,
                uint64(HEADER_SIZE),
                abi.encodePacked(header[0], header[1], header[2], header[3], header[4], header[5]),
                bytes24(header[6])
            )
        );
        if (jobKeyOn(address(REGISTRY), shown.client, jobId, shown.salt) != trial.job) {
            revert WrongCase(uint256(Part.Job));
        }
        if (keccak256(abi.encode(trial.job, shown.segment)) != trial.segment) {
            revert WrongCase(uint256(Part.Segment));
        }
        bool same;
        if (trial.attestor == address(0)) {
            bytes32 subject = keccak256(abi.encode(shown.step, shown.preState, shown.postState));
            same =
                keccak256(abi.encode(trial.claimant, trial.segment, address(0), subject)) == claim;
        } else {
            bytes32 drawn = keccak256(abi.encode(trial.seed, trial.attestor));
            same = shown.step == uint256(drawn) % shown.segment.steps;
        }
        if (!same) revert WrongCase(uint256(Part.Subject));
    }

    /// @dev Are the states those that the solver committed to before and after the step?
    function _checkStates(
        bytes32 job,
        Case calldata shown,
        bytes32[] calldata prePath,
        bytes32[] calldata postPath
    ) internal view {
        bytes32[7] calldata header = shown.header;
        uint256 length = uint64(bytes8(header[0] << 160)); // at offset 20 of the header
        if (shown.step > 0) {
            if (!_stands(shown.segment, length, shown.step - 1, shown.preState, prePath)) {
                revert WrongCase(uint256(Part.PreState));
            }
        } else if (shown.segment.index > 0) {
            uint256 before = shown.segment.index - 1;
            if (keccak256(abi.encode(job, shown.previous)) != REGISTRY.segments(job, before)) {
                revert WrongCase(uint256(Part.Previous));
            }
            uint256 last = shown.previous.steps - 1;
            if (!_stands(shown.previous, length, last, shown.preState, prePath)) {
                revert WrongCase(uint256(Part.PreState));
            }
        } else if (
            // Offset 184.
            shown.preState != ((header[5] << 192) | (header[6] >> 64)) || prePath.length != 0
        ) {
            revert WrongCase(uint256(Part.PreState));
        }
        if (!_stands(shown.segment, length, shown.step, shown.postState, postPath)) {
            revert WrongCase(uint256(Part.PostState));
        }
    }

    /// @dev Is the state the one after this step of the segment, by the segment's root?
    function _stands(
        IRegistry.Segment calldata segment,
        uint256 length,
        uint256 step,
        bytes32 state,
        bytes32[] calldata path
    ) internal view returns (bool) {
        uint256 siblings = 0;
        uint256 place = step;
        for (uint256 last = segment.steps - 1; last > 0; last >>= 1) {
            if (place & 1 == 1 || place < last) siblings++;
            place >>= 1;
        }
        if (path.length != siblings) return false;
        uint256 offset;
        assembly {
            offset := path.offset
        }
        bytes32 treeRoot = Commitments.pathRoot(
            Commitments.itemHash(state), step, segment.steps, offset, path.length
        );
        uint256 first = segment.index * length;
        return Commitments.listRoot(Commitments.SEGMENT_TAG, treeRoot, first, segment.steps)
            == segment.root;
    }
}
