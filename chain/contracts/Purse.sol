// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IRegistry} from "./IRegistry.sol";

/// @title IToken
/// @notice What a registry asks of the token that it plays for. What tokens return differs.
interface IToken {
    function balanceOf(address owner) external view returns (uint256);
    function transfer(address to, uint256 amount) external;
    function transferFrom(address from, address to, uint256 amount) external;
}

/// @title Purse
/// @notice All money of a registry: one currency, what comes in, what is owed, what was burned.
/// @dev Money leaves by withdraw() alone. The chain's coin comes with a move, and is looked at
/// where its turn is. A token is taken before anything else is looked at: its contract may call
/// back.
abstract contract Purse is IRegistry {
    /// @notice The token that all amounts are in; zero: the chain's coin.
    address public immutable TOKEN;

    /// @notice What was burned; it stays here.
    uint256 public burned;

    mapping(address owner => uint256 amount) public owed;

    constructor(address token) {
        TOKEN = token;
    }

    /// @inheritdoc IRegistry
    function withdraw(address to) external {
        uint256 amount = owed[msg.sender];
        if (amount == 0) revert NothingOwed();
        if (to == address(0)) revert ZeroAddress();

        owed[msg.sender] = 0;
        emit Withdrawn(msg.sender, to, amount);

        bool paid;
        if (TOKEN == address(0)) (paid,) = to.call{value: amount}("");
        else paid = _callToken(abi.encodeCall(IToken.transfer, (to, amount)));
        if (!paid) revert WithdrawFailed();
    }

    ////////////////////////////////////////////////////////////////
    //                     Internal: money in                     //
    ////////////////////////////////////////////////////////////////

    /// @dev The first line of a move that is paid.
    function _takeToken(address payer, uint256 amount) internal {
        if (TOKEN != address(0)) _pull(payer, amount);
    }

    function _takeCoin(uint256 amount) internal view {
        if (TOKEN == address(0)) _requireValue(amount);
    }

    /// @dev A bond may also come from what its payer is owed: never a part from each.
    function _takeTokenBond(address payer, uint256 amount) internal {
        if (TOKEN == address(0)) return;
        if (msg.value == 0 && owed[payer] >= amount) owed[payer] -= amount;
        else _pull(payer, amount);
    }

    /// @dev Who sends no value pays with what is owed.
    function _takeCoinBond(address payer, uint256 amount) internal {
        if (TOKEN != address(0)) return;
        if (msg.value == 0 && owed[payer] >= amount) owed[payer] -= amount;
        else _requireValue(amount);
    }

    function _requireValue(uint256 expected) internal view {
        if (msg.value != expected) revert WrongValue(expected);
    }

    /// @dev Not less and not more: a token that keeps a part for itself is none for this game.
    function _pull(address payer, uint256 amount) private {
        _requireValue(0);
        if (amount == 0) return;
        uint256 before = IToken(TOKEN).balanceOf(address(this));
        bool moved =
            _callToken(abi.encodeCall(IToken.transferFrom, (payer, address(this), amount)));
        if (!moved || IToken(TOKEN).balanceOf(address(this)) != before + amount) {
            revert WrongToken();
        }
    }

    /// @dev Some tokens return nothing, others whether they did it.
    function _callToken(bytes memory data) private returns (bool done) {
        bytes memory result;
        (done, result) = TOKEN.call(data);
        if (done && result.length != 0) done = result.length == 32 && uint256(bytes32(result)) == 1;
    }

    ////////////////////////////////////////////////////////////////
    //                    Internal: money owed                    //
    ////////////////////////////////////////////////////////////////

    function _owe(address owner, uint256 amount) internal {
        if (amount != 0) owed[owner] += amount;
    }
}
