#!/bin/sh
# kinds_torch_test.sh - single kinds and their gradients, taken again by PyTorch in float64 with
# autograd. Skipped where Debian's python3-torch is not installed.
set -u

python=/usr/bin/python3
here=$(dirname "$0")
if ! "$python" -c 'import torch' 2>/dev/null; then
    echo "skip: PyTorch is not installed (Debian: apt-get install python3-torch)"
    exit 77
fi
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
"${TEST_BUILD:-build}/tests/oracle/kinds_test" dump "$folder" || exit 1
OMP_NUM_THREADS=1 "$python" "$here/torch_kinds.py" "$folder"
