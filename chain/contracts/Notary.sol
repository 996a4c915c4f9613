// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IRegistry} from "./IRegistry.sol";

interface IERC1271 {
    function isValidSignature(bytes32 hash, bytes calldata signature)
        external
        view
        returns (bytes4);
}

/// @title Notary
/// @notice Reads what registries are shown and do not keep: terms, and what keepers sign.
/// @dev Keeps nothing: it is a contract of its own because a registry has no room for it.
contract Notary {
    uint256 internal constant AMOUNT_MAX = type(uint96).max;
    uint256 internal constant BOND_MAX = 2 ** 85 - 1; // five of them fit where a claim keeps one
    uint256 internal constant SEGMENTS_MAX = 2 ** 24 - 1;
    uint256 internal constant SEGMENT_STEPS_MAX = 256;
    uint256 internal constant PERIOD_MAX = 2 ** 24 - 1;
    uint256 internal constant TIME_MAX = 2 ** 40 - 1;
    uint256 internal constant PPM = 1_000_000;
    uint256 internal constant SEATS_MAX = 8;
    uint256 internal constant PANEL_LEAST_MAX = 255;
    uint256 internal constant QUERY_REWARDS = 16; // a reward holds so many query fees at least,
    uint256 internal constant QUERY_STAKES = 128; // ... and a stake so many

    bytes32 internal constant DOMAIN_TYPE = keccak256(
        "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
    );
    bytes32 internal constant VOUCH_TYPE = keccak256("Vouch(bytes32 job,bytes32 segment)");
    uint256 internal constant KEY_VOUCH_SIZE = 65; // by a key: r, s, v
    // A signature with the higher s is the same one again.
    uint256 internal constant S_MAX =
        0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0;
    uint256 internal constant GAS = 50_000; // for a keeper that is a contract

    ////////////////////////////////////////////////////////////////
    //                           Terms                            //
    ////////////////////////////////////////////////////////////////

    /// @notice Are the terms sound at that time? The numbers in BadTerms are positions in Terms.
    /// @return count Of segments.
    /// @return pool Fees for them: of those that may well be covered, three times.
    function examine(IRegistry.Terms calldata terms, uint256 time)
        external
        pure
        returns (uint256 count, uint256 pool)
    {
        _checkRange(uint256(terms.jobId), 1, type(uint256).max, 0);
        _checkRange(terms.steps, 1, TIME_MAX, 5);
        _checkRange(terms.segmentSteps, 1, SEGMENT_STEPS_MAX, 6);
        count = (terms.steps + terms.segmentSteps - 1) / terms.segmentSteps;
        _checkRange(count, 1, SEGMENTS_MAX, 6);
        _checkRange(terms.reward, 1, AMOUNT_MAX, 7);
        _checkRange(terms.fee, terms.seats == 0 ? 0 : 1, AMOUNT_MAX, 8);
        _checkRange(terms.stake, 1, AMOUNT_MAX, 9);
        uint256 bondMost = terms.stake < BOND_MAX ? terms.stake : BOND_MAX;
        _checkRange(terms.bond, terms.fee == 0 ? 1 : 4 * terms.fee, bondMost, 10);
        // No panel is paid for a void, and no lie is too dear to be proven.
        uint256 queryMost = terms.stake / QUERY_STAKES;
        if (queryMost > terms.reward / QUERY_REWARDS) queryMost = terms.reward / QUERY_REWARDS;
        _checkRange(terms.queryFee, 0, queryMost, 11);
        _checkRange(terms.seats, 0, SEATS_MAX, 12);
        _checkRange(terms.coveragePpm, 0, terms.seats == 0 ? 0 : PPM, 13);
        _checkRange(terms.panelLeast, terms.seats, PANEL_LEAST_MAX, 14);
        _checkRange(terms.segmentPeriod, 1, PERIOD_MAX, 18);
        _checkRange(terms.sealPeriod, 1, PERIOD_MAX, 19);
        _checkRange(terms.revealPeriod, 1, PERIOD_MAX, 20);
        _checkRange(terms.claimPeriod, 1, PERIOD_MAX, 21);
        _checkRange(terms.clock, 1, PERIOD_MAX, 22);
        _checkRange(terms.deadline, time + 1, TIME_MAX / 2, 23);
        uint256 covered = 3 + count * terms.coveragePpm * 3 / (2 * PPM);
        pool = 3 * terms.seats * terms.fee * (covered < count ? covered : count);
        if (count * terms.reward + pool > AMOUNT_MAX) revert IRegistry.BadTerms(7);
    }

    function _checkRange(uint256 value, uint256 least, uint256 most, uint256 field) internal pure {
        if (value < least || value > most) revert IRegistry.BadTerms(field);
    }

    ////////////////////////////////////////////////////////////////
    //                          Vouches                           //
    ////////////////////////////////////////////////////////////////

    /// @notice Did the keeper sign for the registry that asks: "I have start and end of this
    /// covered segment, and serve them"? (EIP-712)
    /// @param segment Its hash.
    function isVouch(address keeper, bytes32 job, bytes32 segment, bytes calldata signature)
        external
        view
        returns (bool)
    {
        bytes32 domain = keccak256(
            abi.encode(
                DOMAIN_TYPE, keccak256("Lockstep"), keccak256("3"), block.chainid, msg.sender
            )
        );
        bytes32 message = keccak256(abi.encode(VOUCH_TYPE, job, segment));
        bytes32 hash = keccak256(abi.encodePacked(hex"1901", domain, message));
        if (keeper.code.length != 0) return _isApproved(keeper, hash, signature);
        if (signature.length != KEY_VOUCH_SIZE) return false;
        bytes32 s = bytes32(signature[32:64]);
        address signer = ecrecover(hash, uint8(signature[64]), bytes32(signature[:32]), s);
        return signer == keeper && signer != address(0) && uint256(s) <= S_MAX;
    }

    /// @dev ERC-1271, with little gas: anything else that the keeper does is no approval.
    function _isApproved(address keeper, bytes32 hash, bytes calldata signature)
        internal
        view
        returns (bool approved)
    {
        bytes memory data = abi.encodeCall(IERC1271.isValidSignature, (hash, signature));
        bytes32 magic = bytes32(IERC1271.isValidSignature.selector);
        assembly ("memory-safe") {
            let done := staticcall(GAS, keeper, add(data, 32), mload(data), 0, 32)
            approved := and(done, and(gt(returndatasize(), 31), eq(mload(0), magic)))
        }
    }
}
