#!/bin/sh
# Goal: without a GPU, gpu-check says so in one sentence and an advice, and exits 2: cannot tell. With one it goes on
# after whatever fails, and its files hold what it found.
# Method: runs it with the plugin turned off, as it is where there is no driver, and on the emulated device, which is
# lost at some call. Prints TAP.
set -u

check=$TEST_BUILD/gpu-check
if [ ! -x "$check" ]; then
    check=$(dirname "$TEST_LOCKSTEP")/gpu-check
fi
if [ ! -x "$check" ]; then
    echo "gpu-check is not built: make build/gpu-check"
    exit 77
fi
bad=0

# says NUMBER NAME TEXT: the last run ended with 2 and named its reason.
says() {
    if [ "$code" = 2 ] && printf '%s\n' "$said" | grep -qF -- "$3"; then
        echo "ok $1 - $2"
    else
        echo "not ok $1 - $2"
        printf '# exit code %s: %s\n' "$code" "$said"
        bad=1
    fi
}

echo 1..4
said=$(LOCKSTEP_CUDA=off "$check" 2>&1)
code=$?
says 1 "gpu-check names the plugin that is turned off" "turned off"
if [ -e /dev/nvidiactl ]; then
    echo "ok 2 - gpu-check without a device # SKIP there is a device"
else
    said=$("$check" 2>&1)
    code=$?
    says 2 "gpu-check without a device says what is missing" "gpu-check: there is no"
fi
plugin=$PWD/build/tests/emulated_cuda.so
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if [ ! -e "$plugin" ]; then
    echo "ok 3 - gpu-check on the emulated device # SKIP it is not built"
    echo "ok 4 - gpu-check on a device that is lost # SKIP it is not built"
    exit "$bad"
fi
said=$(LOCKSTEP_CUDA=$plugin GPU_CHECK_QUICK=1 GPU_CHECK_ONLY="states of m" "$check" "$folder/a.json" "$folder/a.md" 2>&1)
code=$?
if [ "$code" = 0 ] && printf '%s\n' "$said" | grep -q "gpu-check: 1 comparisons, 0 differ; 0 sections" &&
    grep -q "fake device, compute capability 8.0" "$folder/a.md" &&
    python3 -c 'import json, sys; rows = json.load(open(sys.argv[1])); assert rows[0]["date"] and rows[-1]["differ"] == 0' \
        "$folder/a.json"; then
    echo "ok 3 - gpu-check on the emulated device writes what it found"
else
    echo "not ok 3 - gpu-check on the emulated device writes what it found"
    printf '# exit code %s: %s\n' "$code" "$said"
    bad=1
fi
# The proof of ways must have ended when the device is lost: without those that come and go, its calls are known.
said=$(LOCKSTEP_CUDA_WITHOUT=dots,lists,columns,held LOCKSTEP_CUDA=$plugin GPU_CHECK_QUICK=1 GPU_CHECK_ONLY="pinned" EMULATED_FAIL_AT=160 "$check" 2>&1)
code=$?
if [ "$code" = 2 ] && [ "$(printf '%s\n' "$said" | grep -c "CANNOT TELL: pinned states of .*: .")" = 4 ]; then
    echo "ok 4 - gpu-check on a device that is lost goes on to the end, and cannot tell"
else
    echo "not ok 4 - gpu-check on a device that is lost goes on to the end, and cannot tell"
    printf '# exit code %s: %s\n' "$code" "$said"
    bad=1
fi
exit "$bad"
