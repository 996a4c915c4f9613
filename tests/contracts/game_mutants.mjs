// game_mutants.mjs - the game's contracts with one fault each, for fuzz_mutants_test.
//
//     node tests/contracts/game_mutants.mjs           how many there are
//     node tests/contracts/game_mutants.mjs NUMBER    a line: name, code of Fuzz to deploy
//
// A fault is a text of a file of chain/contracts, which must stand there exactly once, and what
// stands in its place. Fuzz.sol makes its referee, registry and all.

import { createRequire } from 'node:module';
import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');

// name, file, text, replacement
const faults = [
  ['a verdict is sealed late', 'Panel.sol',
    '_requireNotAfter(uint256(tally.start) + job.sealPeriod);', ''],
  ['a verdict is revealed while others seal', 'Panel.sol',
    '_requireAfter(uint256(tally.start) + job.sealPeriod);', ''],
  ['a bond is paid while its verdict counts', 'Panel.sol',
    'entry.until > job.finalized) {', 'false) {'],
  ['whoever draws late chooses the seed', 'HeaderSeeds.sol',
    'source = first;', 'source = _height() - 1;'],
  ['a challenge is copied', 'Referee.sol',
    '_openSeal(keccak256(abi.encode(msg.sender, subject, sealSalt)));', 'subject;'],
  ['a bond comes from nobody', 'RegistryState.sol',
    'owed[owner] -= amount;', ''],
  ['a seed is fixed at once', 'HeaderSeeds.sol',
    'if (_now() <= time + FIX_AFTER) revert TooEarly(time + FIX_AFTER);', ''],
  ['the end of a job is covered by luck', 'Panel.sol',
    '|| segment.index + 1 == job.segments || seed', '|| seed'],
  ['who could not get the states is paid for it', 'Panel.sol',
    'if ((word >> (4 * place)) & 15 != RIGHT) continue;',
    'if ((word >> (4 * place)) & 15 < RIGHT) continue;'],
  ['one right is enough, whatever others say', 'Registry.sol',
    '_score(tally) >= int256(uint256(job.seats)) || _isEnoughAsleep(job, tally);',
    'tally.rights > 0;'],
  ['the deadline robs what was committed', 'Registry.sol',
    `        // What was committed in time is carried to its end first.
        if (job.committed != job.finalized) revert WrongIndex(job.finalized);`, ''],
  ['a claim holds nothing up', 'RegistryState.sol',
    'if (job.openClaims != 0) revert ClaimsOpen(job.openClaims);', ''],
  ['a late solver loses a sixty-fourth', 'RegistryState.sol',
    'LATE_SHARE = 8;', 'LATE_SHARE = 64;'],
  ['a conviction pays half of the stake', 'Referee.sol',
    'uint256 quarter = pot / 4;', 'uint256 quarter = pot / 2;'],
  ['bonds of outsiders do not rise', 'Referee.sol',
    'standing.bond * (4 + outsiders) / 4;', 'standing.bond;'],
  ['a true right is convicted', 'Referee.sol',
    'if (bytes2(hash) == bytes2(leaves << (16 * index))) revert NotGuilty();', 'hash;'],
  ['clocks begin anew with each move', 'Referee.sol',
    'uint24 left = uint24(_turnEnd(dispute) - _now());', 'uint24 left = dispute.clock;'],
  ['one friend passes what the rest of a small panel denies', 'Panel.sol',
    'return tally.asleep && (score > 0', 'return tally.asleep && (tally.rights > 0'],
];

function mutate(text, [name, , from, to]) {
  if (text.split(from).length !== 2) throw new Error(`${name}: not there once: ${from}`);
  return text.replace(from, () => to);
}

function read(fault) {
  const sources = {};
  for (const folder of ['chain/contracts', 'tests/contracts']) {
    for (const file of readdirSync(join(root, folder)).filter((file) => file.endsWith('.sol'))) {
      const text = readFileSync(join(root, folder, file), 'utf8');
      sources[file] = { content: file === fault[1] ? mutate(text, fault) : text };
    }
  }
  return sources;
}

function compile(fault) {
  const solc = createRequire(join(root, 'tests/evm/package.json'))('solc');
  const settings = {
    viaIR: true,
    evmVersion: 'paris',
    optimizer: { enabled: true, runs: 1 },
    outputSelection: { 'Fuzz.sol': { Fuzz: ['evm.bytecode.object'] } },
  };
  const input = { language: 'Solidity', sources: read(fault), settings };
  const output = JSON.parse(solc.compile(JSON.stringify(input)));
  for (const error of output.errors ?? []) {
    if (error.severity === 'error') throw new Error(error.formattedMessage);
  }
  return output.contracts['Fuzz.sol'].Fuzz.evm.bytecode.object;
}

if (process.argv.length < 3) {
  faults.forEach((fault) => read(fault)); // all texts are there
  process.stdout.write(`${faults.length}\n`);
} else {
  const fault = faults[Number(process.argv[2])];
  process.stdout.write(`${fault[0]}\t${compile(fault)}\n`);
}
