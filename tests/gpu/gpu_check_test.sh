#!/bin/sh
# Goal: without a GPU, gpu-check says so in one sentence and an advice, and exits 2: cannot tell. With one it goes on
# after whatever fails, and its files hold what it found: named after device and day, whatever the device's name holds,
# and never over those of an earlier run.
# Method: runs it with the plugin turned off, as it is where there is no driver, and on the emulated device, which is
# lost at some call. Prints TAP.
set -u

check=$TEST_BUILD/gpu-check
if [ ! -x "$check" ]; then
    check=$(dirname "$TEST_LOCKSTEP")/gpu-check
fi
if [ ! -x "$check" ]; then
    echo "skip: gpu-check is not built: make build/gpu-check"
    exit 77
fi
. tests/support/tap.sh

# passes NAME CODE: 0 where the last command, of which code and said tell, was right.
passes() {
    result "$2" "$1"
    if [ "$2" != 0 ]; then
        printf '# exit code %s: %s\n' "$code" "$said"
        find "$dir" -type f -ls | sed 's/^/# /'
    fi
}
# says NAME TEXT: the last run ended with 2 and named its reason.
says() {
    [ "$code" = 2 ] && printf '%s\n' "$said" | grep -qF -- "$2"
    passes "$1" $?
}

said=$(LOCKSTEP_CUDA=off "$check" 2>&1)
code=$?
says "gpu-check names the plugin that is turned off" "turned off"
if [ -e /dev/nvidiactl ]; then
    skip "gpu-check without a device" "there is a device"
else
    said=$("$check" 2>&1)
    code=$?
    says "gpu-check without a device says what is missing" "gpu-check: there is no"
fi
plugin=$PWD/build/tests/emulated_cuda.so
if [ ! -e "$plugin" ]; then
    skip "gpu-check on the emulated device" "it is not built"
    finish
fi

# runs FOLDER ONLY: on the emulated device, whose name is no file's name.
runs() {
    said=$(LOCKSTEP_CUDA=$plugin EMULATED_NAME='NVIDIA "H200" | ../../x' GPU_CHECK_QUICK=1 GPU_CHECK_ONLY="$2" \
        "$check" "$1" "$dir/note" 2>&1)
    code=$?
}

runs "$dir" "states of m"
path=$(cat "$dir/note")
passes "gpu-check on the emulated device writes what it found" "$(
    [ "$code" = 0 ] && printf '%s\n' "$said" | grep -q "gpu-check: 1 comparisons, 0 differ; 0 sections" &&
        printf '%s\n' "$said" | grep -qF "gpu-check: results in $path.md and .json" &&
        grep -q "^NVIDIA \"H200\"   ../../x, compute capability 8.0.*driver .* for CUDA 11.4.*QUICK" "$path.md" &&
        grep -q "^| pinned states of mlp | equal | 1 comparisons |  |" "$path.md" &&
        python3 -c 'import json, sys
rows = json.load(open(sys.argv[1]))
assert rows[0]["date"] and rows[0]["value"] == "NVIDIA \"H200\" | ../../x" and rows[0]["quick"]
assert rows[1] == {"name": "pinned states of mlp", "value": "equal", "comparisons": 1, "reason": ""}
assert rows[-1]["differ"] == 0' "$path.json"
    echo $?
)"
passes "the files are named after the device, the day and what was left out" "$(
    basename "$path" | grep -qE '^gpu-check-nvidia-h200-x-[0-9]{4}-[0-9]{2}-[0-9]{2}-quick-only-states-of-m$' &&
        [ "$(dirname "$path")" = "$dir" ] && [ "$(find "$dir" -name '*.part.*' | wc -l)" = 0 ]
    echo $?
)"
first=$(cat "$path.md" "$path.json" | cksum)
runs "$dir" "states of m"
passes "a second run leaves the first one's files alone, and says so" "$(
    [ "$code" = 0 ] && printf '%s\n' "$said" | grep -q "has results of an earlier run: these go beside them" &&
        [ "$(cat "$dir/note")" = "$path-2" ] && [ -s "$path-2.md" ] && [ -s "$path-2.json" ] &&
        [ "$(cat "$path.md" "$path.json" | cksum)" = "$first" ]
    echo $?
)"
: >"$path-3.part.json" # of a run that was cut off
runs "$dir" "states of m"
passes "what a run left that was cut off stays" "$(
    [ "$code" = 0 ] && [ "$(cat "$dir/note")" = "$path-4" ] && [ -s "$path-4.md" ] && [ ! -e "$path-3.part.md" ] &&
        [ -e "$path-3.part.json" ] && [ ! -s "$path-3.part.json" ]
    echo $?
)"
runs "$dir/none" "states of m"
passes "a folder that is not there is reported before anything runs" "$(
    [ "$code" = 2 ] && printf '%s\n' "$said" | grep -q "gpu-check: no file for results at .*: No such file" &&
        ! printf '%s\n' "$said" | grep -q "comparisons"
    echo $?
)"
# The first calls belong to the self-tests at opening: the device is lost after them.
EMULATED_FAIL_AT=100
export EMULATED_FAIL_AT
said="fails the self-test of"
while printf '%s\n' "$said" | grep -q "fails the self-test of" && [ "$EMULATED_FAIL_AT" -lt 100000 ]; do
    EMULATED_FAIL_AT=$((EMULATED_FAIL_AT * 3 / 2))
    rm -rf "$dir/lost"
    mkdir "$dir/lost"
    runs "$dir/lost" "pinned"
done
path=$(cat "$dir/note")
passes "gpu-check on a device that is lost goes on to the end, and cannot tell" "$(
    lost=$(printf '%s\n' "$said" | grep -c "CANNOT TELL: pinned states of .*: .")
    [ "$code" = 2 ] && [ "$lost" -ge 1 ] && [ "$(grep -c "^| pinned states of " "$path.md")" = 4 ] &&
        [ "$(grep -c "^| pinned states of .* | cannot tell |  | ." "$path.md")" = "$lost" ] &&
        [ "$(python3 -c 'import json, sys
print(sum(row["value"] == "cannot tell" and row["reason"] != "" for row in json.load(open(sys.argv[1]))))' "$path.json")" = "$lost" ]
    echo $?
)"
finish
