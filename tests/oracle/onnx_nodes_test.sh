#!/bin/sh
# onnx_nodes_test.sh - the published node tests of ONNX, given to our kinds. Skipped where Debian's
# python3-onnx is not installed.
set -u

python=/usr/bin/python3
here=$(dirname "$0")
if ! "$python" -c 'import onnx.backend.test.case.node' 2>/dev/null; then
    echo "skip: ONNX is not installed (Debian: apt-get install python3-onnx)"
    exit 77
fi
"$python" "$here/onnx_nodes.py" "${TEST_BUILD:-build}/tests/oracle/onnx_nodes_test"
