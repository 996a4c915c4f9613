// mutants.mjs - Binary32 with one fault each, for binary32_mutants_test.
//
//     node tests/contracts/mutants.mjs        a line for each: operation, name, code to deploy
//
// A fault is a text of chain/contracts/Binary32.sol, which must stand there exactly once, and what
// stands in its place. The first line is the library without a fault. All are compiled without
// the optimizer: that is faster, and the arithmetic is the same.

import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
const solc = createRequire(join(root, 'tests/evm/package.json'))('solc');
const library = readFileSync(join(root, 'chain/contracts/Binary32.sol'), 'utf8');
const calculator = readFileSync(join(root, 'tests/contracts/Calculator.sol'), 'utf8');

const fits = 'if (c - IMPLICIT >= INFINITE - IMPLICIT) return _mulRare(a, b);';

// operation, name, text, replacement
const faults = [
  ['add', 'x - x has the sign of x', 'if (sum == 0) return 0;', 'if (sum == 0) return sign;'],
  ['add', 'the sum of zeros has the sign of one', '? a & b : a', '? a : a'],
  ['add', 'a sum of 2^128 and more is a NaN',
    'if (c & INFINITE == INFINITE) c &= MINUS_INFINITE;', ''],
  ['add', 'ties of sums go up', '(c + 0xffffffff + ((c >> 33) & 1))', '(c + 0x100000000)'],
  ['add', 'ties of differences go up', '(c + 0x7fffffff + ((c >> 32) & 1))', '(c + 0x80000000)'],
  ['add', 'no sticky bit', 'c += ((b & FRACTION) | IMPLICIT) << gap;',
    'c += ((((b & FRACTION) | IMPLICIT) << gap) >> 31) << 31;'],
  ['add', 'cancellation forgets the top of large exponents',
    '_addCancelled(a & SIGN, c, top >> 23)', '_addCancelled(a & SIGN, c, (top >> 23) & 0x7f)'],
  ['add', 'cancellation to half the least normal', 'if (top <= shift)', 'if (top < shift)'],
  ['add', 'infinite minus infinite is infinite', 'return a ^ b == SIGN ? NAN : a;', 'return a;'],
  ['mul', 'a product up to 2^129 is a number', fits,
    'if (c - IMPLICIT >= INFINITE) return _mulRare(a, b);'],
  ['mul', 'subnormal products are rounded twice', fits,
    `if (c - IMPLICIT >= INFINITE - IMPLICIT && (a & INFINITE) * (b & INFINITE) != 0)
        return _round((a ^ b) & SIGN, (c & FRACTION) | IMPLICIT, (int256(c) >> 23) - 1);`],
  ['mul', 'ties of products go up', '(product + 0x7fffff + ((product >> 24) & 1))',
    '(product + 0x800000)'],
  ['mul', 'subnormal results keep 24 bits', 'if (drop + e < 0) drop = -e;', ''],
  ['mul', 'ties of subnormal results go up',
    '(m + (1 << uint256(drop - 1)) - 1 + ((m >> uint256(drop)) & 1))',
    '(m + (1 << uint256(drop - 1)))'],
  ['mul', 'infinite times zero is infinite',
    'return a > INFINITE || b > INFINITE || a == 0 || b == 0 ? NAN : sign | INFINITE;',
    'return a > INFINITE || b > INFINITE ? NAN : sign | INFINITE;'],
  ['div', 'half of the last place is forgotten', '(quotient + 1 + carry)', '(quotient + 1)'],
  ['div', 'no sticky bit', 'if (quotient * n != m) quotient |= 1;', ''],
  ['div', 'infinite by infinite is infinite', '(a == 0 || a == INFINITE)', 'a == 0'],
  ['sqrt', 'rounds down', '((c + 1) >> 1)', '(c >> 1)'],
  ['sqrt', 'the root of -0 is a NaN', 'if (a & MAGNITUDE == 0 || a == INFINITE) return a;',
    'if (a == 0 || a == INFINITE) return a;'],
  ['fma', 'no sticky bit', '| _isAbove(gap, 87)', ''],
  ['fma', 'a tiny addend is forgotten', '(m << 64, 1, e - 64)', '(m << 64, 0, e - 64)'],
  ['fma', 'ties go up', '(sum + (1 << 88) - 1 + ((sum >> 89) & 1))', '(sum + (1 << 88))'],
  ['fma', 'exact cancellation has the sign of the product',
    'if (m == 0) return 0;', 'if (m == 0) return sign;'],
  ['fma', 'zero plus zero has the sign of the addend', '? c & sign : c', '? c : c'],
  ['fma', 'the product is rounded', 'uint256 addend = c & INFINITE;',
    'uint256 addend = c & INFINITE; if (a != 0) return add(mul(a, b), c);'],
  ['fma', 'a borrow past the addend keeps the sign', 'd ^= SIGN;', ''],
  ['exp', 'subnormal results are zero',
    'return _round(0, (p & FRACTION) | IMPLICIT, int256(p >> 23) - 1 + k);',
    'return k < 0 ? 0 : INFINITE;'],
  ['log', 'subnormal operands are half as large', 'k = -23;', 'k = -24;'],
  ['is-less', '-0 is below +0', '-int256(a & MAGNITUDE)', '-int256(a)'],
  ['maximum', 'a NaN is passed over', 'if (isNan(soFar) || isNan(a)) return NAN;',
    'if (isNan(soFar)) return NAN; if (isNan(a)) return soFar;'],
  ['from-integer', 'rounds once where it must twice', 'if (m >> 24 != 0) {', 'if (m >> 64 != 0) {'],
  ['to-integer', 'ties go up',
    'm = (m + (1 << (drop - 1)) - 1 + ((m >> drop) & 1)) >> drop;\n                }',
    'm = (m + (1 << (drop - 1))) >> drop;\n                }'],
];

function mutant([, name, text, replacement]) {
  if (library.split(text).length !== 2) throw new Error(`${name}: not there once: ${text}`);
  return library.replace(text, () => replacement);
}

const all = [['add', 'none', '', ''], ...faults];
const sources = {};
all.forEach((fault, i) => {
  sources[`${i}/Binary32.sol`] = { content: i === 0 ? library : mutant(fault) };
  sources[`${i}/Calculator.sol`] = { content: calculator };
});
const settings = {
  evmVersion: 'paris',
  outputSelection: { '*': { Calculator: ['evm.bytecode.object'] } },
};
const output = JSON.parse(
  solc.compile(JSON.stringify({ language: 'Solidity', sources, settings })));
for (const error of output.errors ?? []) {
  if (error.severity === 'error') throw new Error(error.formattedMessage);
}
all.forEach(([operation, name], i) => {
  const { object } = output.contracts[`${i}/Calculator.sol`].Calculator.evm.bytecode;
  process.stdout.write(`${operation}\t${name}\t${object}\n`);
});
