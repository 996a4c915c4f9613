/*
 * The second chain of the EVM tests (tests/chain/hardhat_slow_test.c): hardhat's own network as it
 * comes, with its limits on the gas of a transaction and of a block. Hardhat compiles nothing here.
 */
module.exports = { networks: { hardhat: { chainId: 31337 } } };
