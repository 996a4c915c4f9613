// game_mutants.mjs - the game's contracts with faults that a test switches on, for fuzz_mutants_test.
//
//     node tests/contracts/game_mutants.mjs         the names of the faults, a line each
//     node tests/contracts/game_mutants.mjs code    code of Fuzz, with all of them in its contracts
//
// A fault is a text of a file of chain/contracts, which must stand there exactly once, and what is
// done instead: statements (which end with a semicolon or a brace), or an expression. It is on while
// the account that makes a call is that of its number, so that one compilation, which takes minutes,
// has all of them. Fuzz.sol makes its referee, registry and all.

import { createRequire } from 'node:module';
import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');

const FIRST_ACCOUNT = 0x10000; // of the first fault: as in fuzz_mutants_test.c

// name, file, text, what is done instead; rows of the same name are one fault
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
    'each - each / LATER_SHARE', 'each'],
  ['a disproved right denies nothing', 'Registry.sol',
    `        tally.unseen++;
        _setPhase(hash, tally, place, CLOSED);`,
    '        _setPhase(hash, tally, place, CLOSED);'],
  ['rounds stay small', 'Panel.sol', 'round + 1 >= FULL_ROUND', 'false'],
  ['all rounds come from the first seed', 'Panel.sol',
    'next.seed = uint64(seed);', 'seed = tally.seed; next.seed = uint64(seed);'],
  ['a round is drawn that nobody closed', 'Panel.sol',
    'next.height == 0 || segment.index < job.finalized', 'segment.index < job.finalized'],
  ['rounds go on while somebody refuses', 'Panel.sol',
    'if (job.refusedUntil != 0 && !tally.vouched) revert StandsRefused(job.refusedUntil);', ''],
  ['the first unseen brings a seat', 'Panel.sol',
    'enough > 1 ? enough + denied - 1 : enough + denied', 'enough + denied'],
  ['a last segment is final by one right', 'Panel.sol', 'seats >= LAST_RIGHTS', 'true'],
  // Draws.
  ['a late draw chooses the seed', 'HeaderSeeds.sol',
    'source = first;', 'source = _height() - 1;'],
  ['a commit is ground by who makes its block', 'HeaderSeeds.sol',
    '_readable(height + DELAY)', '_readable(height)'],
  ['a seed is fixed at once', 'HeaderSeeds.sol',
    'if (_now() <= time + FIX_AFTER) revert TooEarly(time + FIX_AFTER);', ''],
  ['the end of a job is covered by luck', 'Panel.sol',
    'covered || _isLast(job, segment)', 'covered'],
  ['a leg has no end', 'Panel.sol', 'segment.index + 1 >= job.legStart + LEG_MAX', 'false'],
  ['draws are skipped', 'Panel.sol', 'if (segment.index != drawn) revert WrongIndex(drawn);', ''],
  ['a panel is captured in the block of open', 'Registry.sol',
    '_requireAfter(uint256(job.openedAt) + job.sealPeriod);', ''],
  // Legs.
  ['one right is enough, against all others', 'Registry.sol',
    'rights >= enough || (rights >= 2 * unseen && (rights != 0 || unseen == 0))',
    'rights != 0 || unseen == 0'],
  ['a leg is paid before the one ahead of it', 'Registry.sol',
    'if (tally.legStart != job.finalized) return (WrongIndex.selector, job.finalized);', ''],
  ['who denies has no time to be heard', 'Registry.sol',
    '1 + uint256(tally.unseen)', '1'],
  ['a claim holds nothing up', 'Registry.sol',
    'if (job.openClaims != 0) return (ClaimsOpen.selector, job.openClaims);', ''],
  ['a solver commits without end', 'Registry.sol',
    'if (ahead >= OPEN_MAX) revert Full(OPEN_MAX);', ''],
  ['a solver commits without end', 'Registry.sol', 'ahead + 1 == OPEN_MAX', 'false'],
  ['a void bars nobody', 'Registry.sol', 'job.barred = true;', ''],
  ['a void burns nothing of the escrow', 'Registry.sol',
    'job.missingEscrow = uint96(ofEscrow);', ''],
  ['a void burns nothing of the fees', 'Registry.sol', 'job.pool -= uint96(ofPool);', ''],
  ['a late solver loses a sixty-fourth', 'Registry.sol',
    'job.stake / LATE_SHARE', 'job.stake / 64'],
  ['a solver is released with its leg', 'Registry.sol',
    'if (job.legStart != job.finalized) revert WrongIndex(job.finalized);', ''],
  // Client and keeper.
  ['a client sends its solver away', 'Registry.sol',
    `        _requirePhase(job, Phase.Open);
        if (_now() <= job.deadline) _requireSender(job.client);`,
    '        if (_now() <= job.deadline) _requireSender(job.client);'],
  ['a stop makes what is committed the last', 'Registry.sol',
    'uint256(job.committed) + 1', 'uint256(job.committed)'],
  ['a refusal voids what is vouched', 'Registry.sol',
    'refusedUntil == 0 || tally.vouched', 'refusedUntil == 0'],
  ['a refusal voids what was over', 'Registry.sol',
    '!stays && end + _claimTime(job) >= refusedUntil', '!stays'],
  ['a refusal voids at once', 'Registry.sol',
    'if (_now() <= refusedUntil) return (TooEarly.selector, refusedUntil);', ''],
  ['a refusal is blocked by claims that come late', 'Referee.sol',
    'standing.refusedUntil != 0 && _now() > standing.refusedUntil', 'false'],
  ['commits go on under a refusal', 'Registry.sol',
    'if (job.refusedUntil != 0) revert StandsRefused(job.refusedUntil);', ''],
  ['anybody vouches', 'Registry.sol',
    'if (!NOTARY.isVouch(keeper, key, hash, vouch)) revert WrongVouch();', ''],
  // Bonds, claims and convictions.
  ['any query fee is taken', 'Notary.sol',
    '_checkRange(terms.queryFee, 0, queryMost, 11);', ''],
  ['a bond comes from nobody', 'Purse.sol',
    `        if (msg.value == 0 && owed[payer] >= amount) owed[payer] -= amount;
        else _requireValue(amount);`,
    'if (msg.value != 0 || owed[payer] < amount) _requireValue(amount);'],
  ['a token need not come', 'Purse.sol',
    `        bool moved =
            _callToken(abi.encodeCall(IToken.transferFrom, (payer, address(this), amount)));
        if (!moved || IToken(TOKEN).balanceOf(address(this)) != before + amount) {
            revert WrongToken();
        }`, ''],
  ['a challenge is copied', 'Referee.sol',
    '_openSeal(keccak256(abi.encode(msg.sender, subject, sealSalt)));', ''],
  ['a conviction pays half of the stake', 'Referee.sol',
    'pot / 4', 'pot / 2'],
  ['bonds of outsiders do not rise', 'Referee.sol',
    'standing.bond * (4 + docket.outsiders) / 4', 'standing.bond'],
  ['a true right is convicted', 'Referee.sol',
    'bytes2(hash) == bytes2(leaves << (16 * index))', 'false'],
  ['clocks begin again with each move', 'Referee.sol',
    'uint24(_turnEnd(dispute) - _now())', 'dispute.clock'],
];

const names = [...new Set(faults.map(([name]) => name))];

// What stands in the place of a fault's text.
function both(text, instead, number) {
  const isOn = `faulty(${number})`;
  if (!/[;}]$/.test(text)) return `(${isOn} ? (${instead}) : (${text}))`;
  return `if (${isOn}) { ${instead} } else { ${text} }`;
}

const PRAGMA = 'pragma solidity 0.8.37;\n';

// A file with all faults that are about it.
function mutate(file, content) {
  let changed = content;
  for (const [name, of, text, instead] of faults) {
    if (of !== file) continue;
    if (content.split(text).length !== 2) throw new Error(`${name}: not there once: ${text}`);
    changed = changed.replace(text, () => both(text, instead, names.indexOf(name)));
  }
  if (changed === content) return content;
  // Whether a fault is on is no pure question.
  return changed.replaceAll(/\bpure\b/g, 'view')
    .replace(PRAGMA, () => `${PRAGMA}import {faulty} from "./Faulty.sol";\n`);
}

function readSources() {
  const sources = {};
  for (const folder of ['chain/contracts', 'tests/contracts']) {
    for (const file of readdirSync(join(root, folder)).filter((file) => file.endsWith('.sol'))) {
      sources[file] = { content: mutate(file, readFileSync(join(root, folder, file), 'utf8')) };
    }
  }
  sources['Faulty.sol'] = {
    content: `${PRAGMA}function faulty(uint256 number) view returns (bool) {
      return tx.origin == address(uint160(${FIRST_ACCOUNT} + number));
    }`,
  };
  return sources;
}

function compile(sources) {
  const solc = createRequire(join(root, 'tests/evm/package.json'))('solc');
  const settings = {
    viaIR: true,
    evmVersion: 'paris',
    optimizer: { enabled: true, runs: 1 },
    outputSelection: { 'Fuzz.sol': { Fuzz: ['evm.bytecode.object'] } },
  };
  const input = { language: 'Solidity', sources, settings };
  const output = JSON.parse(solc.compile(JSON.stringify(input)));
  for (const error of output.errors ?? []) {
    if (error.severity === 'error') throw new Error(error.formattedMessage);
  }
  return output.contracts['Fuzz.sol'].Fuzz.evm.bytecode.object;
}

const sources = readSources(); // all texts are there
if (process.argv[2] === 'code') process.stdout.write(`${compile(sources)}\n`);
else process.stdout.write(`${names.join('\n')}\n`);
