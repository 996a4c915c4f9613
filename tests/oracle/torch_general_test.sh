#!/bin/sh
# torch_general_test.sh - results and gradients of the general kinds, taken again by PyTorch in
# float64 with autograd. Skipped where Debian's python3-torch is not installed.
set -u

python=/usr/bin/python3
here=$(dirname "$0")
if ! "$python" -c 'import torch' 2>/dev/null; then
    echo "skip: PyTorch is not installed (Debian: apt-get install python3-torch)"
    exit 77
fi
lines=$(mktemp) || exit 1
trap 'rm -f "$lines"' EXIT
"${TEST_BUILD:-build}/tests/oracle/general_test" dump >"$lines" || exit 1
OMP_NUM_THREADS=1 "$python" "$here/torch_general.py" <"$lines"
