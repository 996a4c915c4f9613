#!/bin/sh
# run.sh - what a person with a GPU runs first: gpu-check, what matters most first, and then PyTorch on the same device where it
# is. All of it takes less than ten minutes. `make gpu-kit` packs it; `make gpu-check` runs it without a budget.
#
#     ./run.sh [FOLDER]           FOLDER takes the results; the present one, if none is named
#     GPU_CHECK_BUDGET=6m         what gpu-check may take; empty: as long as it takes
#     GPU_CHECK_PRICE=2.5         of an hour on the device: then a step's price is told
#     GPU_CHECK_ONLY, GPU_CHECK_QUICK: see gpu_ladder.c
set -u

here=$(dirname "$0")
budget=${GPU_CHECK_BUDGET-6m}
peer=${GPU_CHECK_PEER:-$here/peer_gpu.py}
python=${GPU_CHECK_PYTHON:-python3}
note=$(mktemp) || exit 2

code=0
"${GPU_CHECK_PROGRAM:-$here/gpu-check}" ${budget:+--budget "$budget"} "${1:-.}" "$note" || code=$?
if [ -s "$note" ]; then
    path=$(cat "$note")
    if command -v "$python" >/dev/null 2>&1; then
        ${budget:+timeout 200} "$python" "$peer" "$path.json" "$path.md"
    else
        echo "run.sh: without PyTorch: there is no $python"
    fi
fi
rm -f "$note"
exit "$code"
