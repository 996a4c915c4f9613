// safetensors.mjs - the header of a safetensors file, as the Hugging Face Hub's own library reads it.
//
//     node tests/judges/safetensors.mjs FILE       prints it as JSON
//
// The library asks a hub for ranges of bytes; here a stand-in for fetch answers from the file.

import { readFileSync } from 'node:fs';
import { parseSafetensorsMetadata } from '@huggingface/hub';

const bytes = readFileSync(process.argv[2]);
const answer = async (url, { headers = {} } = {}) => {
  const range = /bytes=(\d+)-(\d*)/.exec(new Headers(headers).get('range') ?? '');
  const first = range ? Number(range[1]) : 0;
  const last = range && range[2] !== '' ? Math.min(Number(range[2]), bytes.length - 1) : bytes.length - 1;
  if (!String(url).includes('/judged.safetensors')) {
    return new Response('', { status: 404 });
  }
  return new Response(bytes.subarray(first, last + 1), {
    status: range ? 206 : 200,
    headers: {
      'content-range': `bytes ${first}-${last}/${bytes.length}`,
      'content-length': String(last + 1 - first),
      etag: '"judged"',
    },
  });
};
const { header } = await parseSafetensorsMetadata({
  repo: 'here/judged',
  path: 'judged.safetensors',
  hubUrl: 'http://127.0.0.1',
  fetch: answer,
});
console.log(JSON.stringify(header));
