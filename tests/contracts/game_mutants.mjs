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
  // Verdicts.
  ['a verdict is sealed late', 'Panel.sol',
    '_requireNotAfter(uint256(tally.start) + job.sealPeriod);', ''],
  ['a verdict is revealed while others seal', 'Panel.sol',
    '_requireAfter(uint256(tally.start) + job.sealPeriod);', ''],
  ['a bond is paid while its verdict counts', 'Panel.sol',
    'if (isNow && job.phase == Phase.Running) revert Engaged(job.finalized);', ''],
  ['a tenure has the panel of the one before', 'RegistryState.sol', 'job.entries = 0;', ''],
  ['who could not get the states is paid for it', 'Panel.sol',
    'if ((word >> (4 * place)) & 15 != phase) continue;',
    'if ((word >> (4 * place)) & 15 < phase) continue;'],
  ['a right of a later round is worth a whole fee', 'Registry.sol',
    'each - each / LATER_SHARE;', 'each;'],
  ['a disproved right denies nothing', 'Registry.sol',
    `        tally.unseen++;
        _setPhase(hash, tally, place, CLOSED);`,
    '        _setPhase(hash, tally, place, CLOSED);'],
  ['rounds stay small', 'Panel.sol', 'FULL_ROUND = 5;', 'FULL_ROUND = 60;'],
  ['a last segment is final by one right', 'Panel.sol', 'LAST_RIGHTS = 3;', 'LAST_RIGHTS = 1;'],
  // Draws.
  ['whoever draws late chooses the seed', 'HeaderSeeds.sol',
    'source = first;', 'source = _height() - 1;'],
  ['a seed is fixed at once', 'HeaderSeeds.sol',
    'if (_now() <= time + FIX_AFTER) revert TooEarly(time + FIX_AFTER);', ''],
  ['the end of a job is covered by luck', 'Panel.sol',
    'covered = covered || _isLast(job, segment)', 'covered = covered'],
  ['a leg has no end', 'Panel.sol', '|| segment.index + 1 >= job.legStart + LEG_MAX', ''],
  ['draws are skipped', 'Panel.sol', 'if (segment.index != drawn) revert WrongIndex(drawn);', ''],
  ['a panel is captured in the block of open', 'Registry.sol',
    '_requireAfter(uint256(job.openedAt) + job.sealPeriod);', ''],
  // Legs.
  ['one right is enough, whatever others say', 'Registry.sol',
    'rights >= needed || (rights >= 2 * unseen && (rights != 0 || unseen == 0));',
    'rights != 0 || unseen == 0;'],
  ['a leg is paid before the one ahead of it', 'Registry.sol',
    'if (tally.legStart != job.finalized) return (WrongIndex.selector, job.finalized);', ''],
  ['who denies has no time to be heard', 'Registry.sol',
    'uint256 waits = 1 + uint256(tally.unseen);', 'uint256 waits = 1;'],
  ['a claim holds nothing up', 'Registry.sol',
    'if (job.openClaims != 0) return (ClaimsOpen.selector, job.openClaims);', ''],
  ['a solver commits without end', 'Registry.sol',
    'if (ahead >= OPEN_MAX) revert Full(OPEN_MAX);', ''],
  ['a void bars nobody', 'Registry.sol', 'job.barred = true;', ''],
  ['a void burns nothing of the escrow', 'Registry.sol',
    'job.missingEscrow = uint96(ofEscrow);', ''],
  ['a void burns nothing of the fees', 'Registry.sol', 'job.pool -= uint96(ofPool);', ''],
  ['a late solver loses a sixty-fourth', 'RegistryState.sol',
    'LATE_SHARE = 8;', 'LATE_SHARE = 64;'],
  ['a solver is released with its leg', 'Registry.sol',
    'if (job.legStart != job.finalized) revert WrongIndex(job.finalized);', ''],
  // Client and keeper.
  ['a client sends its solver away', 'Registry.sol',
    `        _requirePhase(job, Phase.Open);
        if (_now() <= job.deadline) _requireSender(job.client);`,
    '        if (_now() <= job.deadline) _requireSender(job.client);'],
  ['a stop makes what is committed the last', 'Registry.sol',
    'uint256 count = uint256(job.committed) + 1;', 'uint256 count = job.committed;'],
  ['a refusal voids what is vouched', 'Registry.sol',
    'bool stays = refusedUntil == 0 || tally.vouched;', 'bool stays = refusedUntil == 0;'],
  ['a refusal voids what was over', 'Registry.sol',
    'bool held = !stays && end + _claimTime(job) >= refusedUntil;', 'bool held = !stays;'],
  ['a refusal voids at once', 'Registry.sol',
    'if (_now() <= refusedUntil) return (TooEarly.selector, refusedUntil);', ''],
  ['a refusal is blocked by claims that come late', 'Referee.sol',
    'if (standing.refusedUntil != 0 && _now() > standing.refusedUntil) {', 'if (false) {'],
  ['commits go on under a refusal', 'Registry.sol',
    'if (job.refusedUntil != 0) revert StandsRefused(job.refusedUntil);', ''],
  ['anybody vouches', 'Registry.sol',
    'if (!NOTARY.isVouch(keeper, key, hash, vouch)) revert WrongVouch();', ''],
  // Bonds, claims and convictions.
  ['a bond comes from nobody', 'Purse.sol',
    `        if (TOKEN != address(0)) return;
        if (msg.value == 0 && owed[payer] >= amount) owed[payer] -= amount;`,
    `        if (TOKEN != address(0)) return;
        if (msg.value == 0 && owed[payer] >= amount) owed[payer] -= 0;`],
  ['a token need not come', 'Purse.sol',
    `        bool moved =
            _callToken(abi.encodeCall(IToken.transferFrom, (payer, address(this), amount)));
        if (!moved || IToken(TOKEN).balanceOf(address(this)) != before + amount) {
            revert WrongToken();
        }`, '        before;'],
  ['a challenge is copied', 'Referee.sol',
    '_openSeal(keccak256(abi.encode(msg.sender, subject, sealSalt)));', 'subject;'],
  ['a conviction pays half of the stake', 'Referee.sol',
    'uint256 quarter = pot / 4;', 'uint256 quarter = pot / 2;'],
  ['bonds of outsiders do not rise', 'Referee.sol',
    'standing.bond * (4 + docket.outsiders) / 4;', 'standing.bond;'],
  ['a true right is convicted', 'Referee.sol',
    'if (bytes2(hash) == bytes2(leaves << (16 * index))) revert NotGuilty();', 'hash;'],
  ['clocks begin anew with each move', 'Referee.sol',
    'uint24 left = uint24(_turnEnd(dispute) - _now());', 'uint24 left = dispute.clock;'],
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
