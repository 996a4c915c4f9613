#!/bin/sh
# Goal: every benchmark runs. A table that nobody can make again is worth nothing.
# Method: each program of bench/ for a second or two; one that ends by itself must end well, and one
# that goes on measuring is told to stop. Skipped where OpenBLAS, a peer, is not here. Prints TAP.
set -u

case $TEST_BUILD in
*/asan) echo "1..0 # SKIP benchmarks measure what is built for users"; exit 0 ;;
esac

. tests/support/tap.sh
if ! pkg-config --exists openblas 2>/dev/null; then
    echo "1..0 # SKIP OpenBLAS is not here: make judges installs it"
    exit 0
fi
TMPDIR=$dir
export TMPDIR
seconds=2
[ "${SOAK_MINUTES:-0}" = 0 ] || seconds=60
for source in bench/*_bench.c; do
    name=$(basename "$source" _bench.c)
    timeout -k 5 "$seconds" "$TEST_BUILD/bench/${name}_bench" "$dir/$name.json" >"$dir/told" 2>&1
    code=$?
    [ "$code" = 0 ] || [ "$code" = 124 ]
    result $? "$name runs"
done
SCALING_SERIES=depth SCALING_MOST=2 SCALING_TURNS=1 timeout -k 5 300 "$TEST_BUILD/bench/scaling_bench" \
    "$dir/scaling.json" >"$dir/out" 2>"$dir/err" &&
    /usr/bin/python3 bench/scaling_plot.py "$dir/scaling.json" "$dir/plot.svg" "$dir/table.md" &&
    /usr/bin/python3 -c 'import sys, xml.dom.minidom as xml
plot = xml.parse(sys.argv[1])
lines = plot.getElementsByTagName("polyline")
assert len(lines) == 6 and len(lines[0].getAttribute("points").split()) == 2, len(lines)' "$dir/plot.svg"
code=$?
check "a step as it grows is measured, drawn and put into a table" 0 \
    'says out "depth 2: memory used, recomputing" && says table.md "| 2 | "'
scripts/economics --check >"$dir/told" 2>&1
result $? "docs/ECONOMICS.md has the table that the network benchmark plays"
if /usr/bin/python3 -c 'import torch' 2>/dev/null; then
    STEP_BFLOAT16_SLOWNESS=1000 STEP_CASE=tiny STEP_THREADS=1 STEP_ROUNDS=1 timeout -k 5 300 \
        "$TEST_BUILD/bench/step_bench" "$dir/tiny.json" >"$dir/out" 2>"$dir/err"
    code=$?
    check "a step has the peers that people use, with losses like ours" 0 \
        'says out "PyTorch float32" && says out "PyTorch bfloat16 autocast"'
    STEP_BFLOAT16_SLOWNESS=0 STEP_CASE=tiny STEP_THREADS=1 STEP_ROUNDS=1 timeout -k 5 300 \
        "$TEST_BUILD/bench/step_bench" "$dir/slow.json" >"$dir/out" 2>"$dir/err"
    code=$?
    check "where bfloat16 would not end it is left out with a sentence, and float32 is not" 0 \
        'says out "PyTorch float32" && ! says out bfloat16 &&
            says err "without PyTorch bfloat16 autocast: this processor has no products of bfloat16"'
    STEP_ISA=avx2 STEP_CASE=tiny STEP_THREADS=1 STEP_ROUNDS=1 timeout -k 5 300 \
        "$TEST_BUILD/bench/step_bench" "$dir/held.json" >"$dir/out" 2>"$dir/err"
    code=$?
    check "a step held to AVX2 says so, with the processor time of both" 0 \
        'says out "AVX2, 1 thread, PyTorch float32" && says out "s of processor" && ! says out "fast math"'
    LORA_CASE=tiny LORA_ROUNDS=3 timeout -k 5 300 "$TEST_BUILD/bench/lora_bench" \
        "$dir/lora.json" >"$dir/out" 2>"$dir/err"
    code=$?
    check "a step of LoRA has PyTorch's losses" 0 'says err "from PyTorch" && says out "checkpoint"'
    GENERATE_CASE=tiny GENERATE_TOKENS=40 timeout -k 5 300 "$TEST_BUILD/bench/generate_bench" \
        "$dir/generate.json" >"$dir/out" 2>"$dir/err"
    code=$?
    check "generation has PyTorch's logits" 0 'says err "from PyTorch" && says out "tokens/s"'
else
    skip "a step has the peers that people use, with losses like ours" "PyTorch is not here"
    skip "where bfloat16 would not end it is left out with a sentence" "PyTorch is not here"
    skip "a step held to AVX2 says so" "PyTorch is not here"
    skip "a step of LoRA has PyTorch's losses" "PyTorch is not here"
    skip "generation has PyTorch's logits" "PyTorch is not here"
fi
finish
