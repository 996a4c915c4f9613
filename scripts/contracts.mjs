// contracts.mjs - compiles the contracts with the pinned solc and writes their code as C headers.
//
//     node scripts/contracts.mjs          writes the headers
//     node scripts/contracts.mjs WORD...  only those with one of the words in their path
//     node scripts/contracts.mjs --check  exit code 1 when a header is not what it would write
//     node scripts/contracts.mjs --check --share  the same, but what only tests deploy is not compiled
//         (minutes): its header and all that it was made of must be what they were when it was written
//
// The headers are committed: building and using the program needs no Node.js.

import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import { readFileSync, writeFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const require = createRequire(join(root, 'tests/evm/package.json'));
const solc = require('solc');

const settings = {
  viaIR: true,
  evmVersion: 'paris',
  metadata: { bytecodeHash: 'none', appendCBOR: false },
};

// The contracts of rules, in the order of engine/ops/op_list.h; scripts/kinds writes Kinds.sol from it.
const opList = readFileSync(join(root, 'engine/ops/op_list.h'), 'utf8');
const rules = [...opList.matchAll(/^ {4}CONTRACT\((\w+), (\w+)\)/gm)].map(([, ...row]) => row);

const headers = [
  {
    path: 'chain/contracts/compiled/registry_code.h',
    folders: ['chain/contracts'],
    note: 'registry_code.h - the contract Registry as it is deployed: constructor(referee, seeds, token).',
    runs: 1, // its size has a bound
    contracts: { Registry: 'REGISTRY_CODE' },
  },
  {
    path: 'chain/contracts/compiled/rules_code.h',
    folders: ['chain/contracts'],
    runs: 10000, // below that, wide constants are copied out of the code at ten times the price
    note: 'rules_code.h - the contracts of rules (IRules.sol) as they are deployed: no arguments.',
    contracts: Object.fromEntries(rules.map(([name, contract]) => [contract, `RULES_${name}_CODE`])),
    list: 'RULES_CONTRACTS', // ENTRY(name, code) for each, as an examiner takes them
  },
  {
    path: 'chain/contracts/compiled/referee_code.h',
    folders: ['chain/contracts'],
    note: 'referee_code.h - Referee: constructor(examiner, seeds, token), which makes its registry.',
    runs: 1, // it holds the registry
    contracts: { Referee: 'REFEREE_CODE' },
  },
  {
    path: 'chain/contracts/compiled/seeds_code.h',
    folders: ['chain/contracts'],
    note: 'seeds_code.h - HeaderSeeds: constructor(delay). What then stands on the chain, with zeros where\n * the delay is, and at which bytes that is.',
    contracts: { HeaderSeeds: 'HEADER_SEEDS_CODE' },
    standing: 'HEADER_SEEDS_STANDING',
  },
  {
    path: 'chain/contracts/compiled/examiner_code.h',
    folders: ['chain/contracts'],
    note: 'examiner_code.h - Examiner: constructor(contracts of rules, as RULES_CONTRACTS has them).',
    contracts: { Examiner: 'EXAMINER_CODE' },
  },
  {
    path: 'tests/contracts/jury_code.h',
    folders: ['chain/contracts', 'tests/contracts'],
    note: 'jury_code.h - the contracts that the tests of rules and commitments ask, many cases at once.',
    contracts: { Jury: 'JURY_CODE' },
  },
  {
    path: 'tests/contracts/court_code.h',
    folders: ['chain/contracts', 'tests/contracts'],
    runs: 1,
    note: 'court_code.h - the referee with a clock that a test sets.',
    contracts: { HarnessReferee: 'HARNESS_REFEREE_CODE' },
  },
  {
    path: 'tests/contracts/harness_code.h',
    folders: ['chain/contracts', 'tests/contracts'],
    runs: 1,
    note: 'harness_code.h - the contracts of tests/contracts, for tests only.',
    contracts: {
      Driver: 'DRIVER_CODE',
      Harness: 'HARNESS_CODE',
      Thief: 'THIEF_CODE',
      Miser: 'MISER_CODE',
      Coin: 'COIN_CODE',
    },
  },
  {
    path: 'tests/contracts/fuzz_code.h',
    folders: ['chain/contracts', 'tests/contracts'],
    runs: 1,
    large: true, // plays on a test's chain only, which takes contracts of any size
    note: 'fuzz_code.h - plays random moves and checks promises, for tests only.',
    contracts: { Fuzz: 'FUZZ_CODE' },
  },
  {
    path: 'tests/contracts/calculator_code.h',
    folders: ['chain/contracts', 'tests/contracts'],
    runs: 10000, // as the rules
    note: 'calculator_code.h - the contract that computes with Binary32, for tests only.',
    contracts: { Calculator: 'CALCULATOR_CODE' },
  },
];

// What Solidity has of chain/evm/header/seed_delays.h.
function writeSeedDelays(check) {
  const rows = readFileSync(join(root, 'chain/evm/header/seed_delays.h'), 'utf8')
    .matchAll(/ROW\((\d+), (\d+), "([^"]*)"\)/g);
  const lines = [...rows].map(([, id, blocks, name]) => `    if (chainId == ${id}) return ${blocks}; // ${name}\n`);
  const path = join(root, 'chain/contracts/SeedDelays.sol');
  const text = `// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

// Written by scripts/contracts.mjs from chain/evm/header/seed_delays.h; not to be edited.

/// @notice How many blocks behind a commit its seed comes from; zero: this chain is not known.
function seedDelayOn(uint256 chainId) pure returns (uint256 blocks) {
${lines.join('')}}
`;
  if (!check) writeFileSync(path, text);
  return readFileSync(path, 'utf8') === text;
}

const compilations = new Map();

// What is compiled together.
const keyOf = ({ folders, runs = 200 }) => `${folders.join()} ${runs}`;

function compile(entry) {
  const key = keyOf(entry);
  if (!compilations.has(key)) compilations.set(key, compileAll(entry));
  return compilations.get(key);
}

function sourcesOf(folders) {
  const sources = {};
  for (const folder of folders) {
    for (const name of readdirSync(join(root, folder)).sort()) {
      if (name.endsWith('.sol')) {
        sources[name] = { content: readFileSync(join(root, folder, name), 'utf8') };
      }
    }
  }
  return sources;
}

function compileAll({ folders, runs = 200 }) {
  const sources = sourcesOf(folders);
  // Only what is asked for: a contract takes seconds.
  const names = headers.filter((entry) => keyOf(entry) === keyOf({ folders, runs }))
    .flatMap((entry) => Object.keys(entry.contracts));
  const wanted = ['evm.bytecode.object', 'evm.deployedBytecode.object',
    'evm.deployedBytecode.immutableReferences'];
  const outputSelection = { '*': Object.fromEntries(names.map((name) => [name, wanted])) };
  const optimizer = { enabled: true, runs };
  const input = {
    language: 'Solidity', sources, settings: { ...settings, optimizer, outputSelection },
  };
  const output = JSON.parse(solc.compile(JSON.stringify(input)));
  for (const error of output.errors ?? []) {
    process.stderr.write(error.formattedMessage);
    if (error.severity === 'error') process.exit(1);
  }
  const found = {};
  for (const file of Object.values(output.contracts)) Object.assign(found, file);
  return found;
}

function literal(name, hex) {
  const lines = hex.match(/.{1,90}/g).map((part) => `    "${part}"`);
  return `#define ${name} \\\n${lines.join(' \\\n')}\n`;
}

function header(entry) {
  const { path, note, contracts, large, standing } = entry;
  const compiled = compile(entry);
  const guard = path.toUpperCase().replace(/[/.]/g, '_');
  let text = `/*\n * ${note}\n *\n * Written by scripts/contracts.mjs with solc ${solc.version().split('+')[0]}; not to be edited.\n */\n`;
  text += `/* clang-format off */\n#ifndef ${guard}\n#define ${guard}\n`;
  for (const [contract, name] of Object.entries(contracts)) {
    const { bytecode, deployedBytecode } = compiled[contract].evm;
    const size = deployedBytecode.object.length / 2;
    if (size > 24576 && !large) throw new Error(`${contract} has ${size} bytes; the limit is 24576`);
    text += `\n/* ${size} bytes when deployed. */\n${literal(name, bytecode.object)}`;
    if (standing) {
      const places = Object.values(deployedBytecode.immutableReferences).flat();
      text += literal(standing, deployedBytecode.object);
      text += `#define ${standing}_PLACES {${places.map(({ start }) => start).join(', ')}}\n`;
    }
  }
  if (entry.list) {
    const rows = Object.values(contracts).map((name) => `    ENTRY("${name.slice(6, -5).toLowerCase()}", ${name})`);
    text += `\n#define ${entry.list}(ENTRY) \\\n${rows.join(' \\\n')}\n`;
  }
  return `${text}\n#endif /* ${guard} */\n`;
}

// One line for each header that only tests deploy: a hash of it and of what it was made of.
const madeOf = join(root, 'tests/contracts/made_of.txt');

function lineOf(entry) {
  const { path, folders } = entry;
  const parts = [solc.version(), settings, entry, sourcesOf(folders), readFileSync(join(root, path), 'utf8')];
  return `${createHash('sha256').update(JSON.stringify(parts)).digest('hex')}  ${path}`;
}

const ofTests = ({ path }) => path.startsWith('tests/');
const check = process.argv.includes('--check');
const share = process.argv.includes('--share');
const given = process.argv.slice(2).filter((word) => !word.startsWith('--'));
const words = given.length === 0 ? [''] : given;
const lines = readFileSync(madeOf, 'utf8').split('\n');
let stale = false;

function report(path) {
  process.stderr.write(`${path} is not current: run node scripts/contracts.mjs\n`);
  stale = true;
}

if (!writeSeedDelays(check)) report('chain/contracts/SeedDelays.sol');
for (const entry of headers.filter(({ path }) => words.some((word) => path.includes(word)))) {
  const path = join(root, entry.path);
  if (ofTests(entry) && check && !lines.includes(lineOf(entry))) {
    report(entry.path);
  } else if (!(ofTests(entry) && share)) {
    const text = header(entry);
    if (!check) {
      writeFileSync(path, text);
    } else if (readFileSync(path, 'utf8') !== text) {
      report(entry.path);
    }
  }
}
if (!check) {
  // A header that was not written keeps its line, which is stale where its sources have changed.
  const kept = (entry) => lines.find((line) => line.endsWith(`  ${entry.path}`));
  const written = ({ path }) => words.some((word) => path.includes(word));
  const all = headers.filter(ofTests).map((entry) => (written(entry) ? lineOf(entry) : kept(entry) ?? ''));
  writeFileSync(madeOf, `${all.join('\n')}\n`);
}
process.exit(stale ? 1 : 0);
