// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title ISeeds
/// @notice Where the chance of a segment comes from: who must check it, and what they show of it.
/// A registry has one of these for ever.
/// @dev A solver that commits must not know the random of its commit, and nobody may choose among
/// several.
interface ISeeds {
    error WrongDelay(uint256 expected); // of this chain; 0: its random numbers are not known
    error WrongHeader(uint256 height);
    error TooEarly(uint256 bound);
    error NotNeeded();

    /// @notice The seed of all commits of that block and moment comes from another block.
    /// @param source The block from whose hash it comes now.
    event Fixed(uint256 indexed height, uint256 indexed time, uint256 source);

    /// @notice The random of a commit.
    /// @param height Of the block of the commit.
    /// @param time Of that block.
    /// @param proof What shows the random, where it is not known here.
    /// @return random The same for every caller, at every time at which it is not late.
    /// @return late A later one had to stand in: what depends on luck is decided against the solver.
    function randomOf(uint256 height, uint256 time, bytes calldata proof)
        external
        view
        returns (bytes32 random, bool late);

    /// @notice Ends the wait for a random that nobody can show: seven days after the commit anybody
    /// calls this, once. The seed then comes from the hash of the next block.
    function fix(uint256 height, uint256 time) external;
}
