#!/bin/sh
# Goal: the committed contract code is what the pinned compiler makes of the committed sources.
# Method: compiles again and compares; what only tests deploy is compiled under "make soak" alone, and
# is held to hashes of all that it was made of otherwise. Prints TAP.
set -u

share=--share
[ -z "${SOAK_MINUTES:-}" ] || share=

if ! command -v node >/dev/null || [ ! -d tests/evm/node_modules/solc ]; then
    echo "ok 1 - the headers are current # SKIP solc is not installed: (cd tests/evm && npm ci)"
elif node scripts/contracts.mjs --check $share; then
    echo "ok 1 - the headers are current"
else
    echo "not ok 1 - the headers are not current"
fi
echo "1..1"
