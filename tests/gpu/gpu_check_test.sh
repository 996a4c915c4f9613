#!/bin/sh
# Goal: without a GPU, gpu-check says so in one sentence and an advice, and exits 2: cannot tell.
# With one it climbs to its end even where sections fail, within its budget; names every variant
# that differs, fails, traps, hangs or dies, and uses it no more. Its files hold what it found:
# named after device and day, with any name of a device, and never over those of an earlier run.
# Method: runs it with the plugin turned off, as it is where there is no driver, and on the emulated
# device, whose kernels have faults or which is lost at some call. Prints TAP.
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
    [ "$code" = 0 ] && printf '%s\n' "$said" | grep -q "gpu-check: 14 comparisons, 0 differ; 0 sections" &&
        printf '%s\n' "$said" | grep -qF "gpu-check: results in $path.md and .json" &&
        grep -q "^NVIDIA \"H200\"   ../../x, compute capability 8.0.*driver .* for CUDA 11.4.*QUICK" "$path.md" &&
        grep -q "^| pinned states of mlp | equal | 1 comparisons |  |" "$path.md" &&
        python3 -c 'import json, sys
rows = json.load(open(sys.argv[1]))
assert rows[0]["date"] and rows[0]["value"] == "NVIDIA \"H200\" | ../../x" and rows[0]["quick"]
assert rows[1] == {"name": "self-test of plain", "value": "equal", "comparisons": 1, "reason": ""}
assert rows[-2] == {"name": "pinned states of mlp", "value": "equal", "comparisons": 1, "reason": ""}
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
# Carried to a machine that has nothing but a driver, as `make gpu-kit` packs it.
mkdir -p "$dir/kit/fixtures"
cp "$check" "$dir/kit/gpu-check"
cp "$plugin" "$dir/kit/lockstep_cuda.so"
cp -r fixtures/text fixtures/images "$dir/kit/fixtures/"
if command -v readelf >/dev/null 2>&1; then
    needed=$(readelf -d "$dir/kit/gpu-check" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc|libm|libdl|ld-linux.*)\.so')
    result "$([ -z "$needed" ] && echo 0 || echo 1)" "gpu-check needs the C library and no other"
else
    skip "gpu-check needs the C library and no other" "readelf is not installed"
fi
said=$(cd "$dir/kit" && env -i PATH=/nonexistent GPU_CHECK_QUICK=1 GPU_CHECK_ONLY="states of m" ./gpu-check --budget 5m . note 2>&1)
code=$?
passes "gpu-check finds its plugin and its data beside itself, with no environment" "$(
    [ "$code" = 0 ] && printf '%s\n' "$said" | grep -q "equal    pinned states of mlp" &&
        [ -s "$dir/kit/$(cat "$dir/kit/note").md" ]
    echo $?
)"
# The script of the kit runs the same, and PyTorch behind it where it is.
cp tests/gpu/run.sh bench/peer_gpu.py "$dir/kit/"
mkdir "$dir/found"
said=$(cd "$dir/kit" && GPU_CHECK_QUICK=1 GPU_CHECK_ONLY="states of m" GPU_CHECK_PYTHON=no-python ./run.sh "$dir/found" 2>&1)
code=$?
passes "the kit's script runs gpu-check within its budget, and says what is not there" "$(
    [ "$code" = 0 ] && printf '%s\n' "$said" | grep -q "equal    pinned states of mlp" &&
        printf '%s\n' "$said" | grep -q "^run.sh: without PyTorch: there is no no-python" &&
        [ "$(find "$dir/found" -name '*.json' | wc -l)" = 1 ]
    echo $?
)"
said=$(cd "$dir/kit" && EMULATED_FAULT="skips:kernel_held" GPU_CHECK_QUICK=1 GPU_CHECK_ONLY="states of m" \
    GPU_CHECK_PYTHON=no-python ./run.sh "$dir/found" 2>&1)
code=$?
passes "the script's code is gpu-check's" "$(
    [ "$code" = 1 ] && printf '%s\n' "$said" | grep -q "^  GUILTY: held is barred"
    echo $?
)"
# The ladder. rungs FOLDER: the sections that the last run's table has.
rungs() {
    grep -cE "^\| (self-test of|pinned states of) .* \| (equal|DIFFERS|CANNOT TELL|left out) \|" "$(cat "$dir/note").md"
}
climbs() {
    rm -rf "$dir/ladder"
    mkdir "$dir/ladder"
    runs "$dir/ladder" "pinned"
}
# A lost device, at some call of each section: all sections are tried, and none that failed passes for equal. At the first
# three calls there is no device at all.
deaths="4 40 100 400"
[ -n "${SOAK_MINUTES:-}" ] && deaths="4 6 9 13 20 30 45 67 100 150 225 337 506"
for call in $deaths; do
    export EMULATED_FAIL_AT="$call"
    climbs
    unset EMULATED_FAIL_AT
    untold=$(printf '%s\n' "$said" | grep -c "^  CANNOT TELL .*: .")
    passes "a device that is lost at call $call of every section: the ladder is climbed to its end, and cannot tell" "$(
        [ "$code" = 2 ] && [ "$(rungs)" = 17 ] && [ "$untold" -ge 1 ] &&
            [ "$(python3 -c 'import json, sys
print(sum(row["value"] == "CANNOT TELL" and row["reason"] != "" for row in json.load(open(sys.argv[1]))))' \
                "$(cat "$dir/note").json")" = "$untold" ]
        echo $?
    )"
done
# Every variant is guilty: each is named, and what follows is equal by plain kernels.
all="kernel_contract_narrow kernel_halves_long kernel_hopper_narrow_half kernel_held kernel_attention_narrow \
kernel_entropy kernel_updates kernel_quantize_columns kernel_strip_columns_narrow kernel_dots kernel_quads \
kernel_quantize_tiles"
names="mma half wgmma held attention entropy lists columns strips dots epilogue tiles"
guilty=$(printf '%s\n' "$all" | tr -s ' ' ',')
export EMULATED_CAPABILITY=90
for fault in skips refused traps crashes; do
    export EMULATED_FAULT="$fault:$guilty"
    climbs
    named=0
    for name in $names; do
        printf '%s\n' "$said" | grep -q "^  GUILTY: $name is barred from here on" && named=$((named + 1))
    done
    passes "a ladder on which every variant $fault names them all, and the pinned states are equal without them" "$(
        [ "$named" = 12 ] && [ "$(rungs)" = 18 ] && [ "$code" != 0 ] &&
            [ "$(printf '%s\n' "$said" | grep -c "^  equal    pinned states of ")" = 4 ]
        echo $?
    )"
done
# Each unit that multiplies has the processor's root; one that was found wrong is not asked.
unset EMULATED_FAULT EMULATED_CAPABILITY
said=$(LOCKSTEP_CUDA=$plugin GPU_CHECK_QUICK=1 GPU_CHECK_ONLY="every unit" "$check" 2>&1)
code=$?
passes "steps by bytes, by halves and by neither have one root, at three precisions" "$(
    [ "$code" = 0 ] && [ "$(printf '%s\n' "$said" | grep -c "^  same root, three units (bytes, halves, plain), 1[46] bits: [0-9a-f]\{64\}$")" = 3 ]
    echo $?
)"
said=$(LOCKSTEP_CUDA=$plugin EMULATED_UNIT=22 GPU_CHECK_QUICK=1 GPU_CHECK_ONLY="every unit" "$check" 2>&1)
code=$?
passes "a unit that drops a bit is named, and not asked for a root" "$(
    [ "$code" = 1 ] && printf '%s\n' "$said" | grep -q "^  GUILTY: half is barred from here on" &&
        [ "$(printf '%s\n' "$said" | grep -c "^  same root, two units (bytes, plain), ")" = 3 ]
    echo $?
)"
export EMULATED_CAPABILITY=90
# What hangs costs its share of the budget.
hanging=kernel_held
[ -n "${SOAK_MINUTES:-}" ] && hanging=$guilty
export EMULATED_FAULT="hangs:$hanging"
said=$(LOCKSTEP_CUDA=$plugin GPU_CHECK_QUICK=1 GPU_CHECK_ONLY="pinned" "$check" --budget 3m "$dir/ladder" "$dir/note" 2>&1)
code=$?
passes "a kernel that hangs costs a share of the budget, is named, and what follows is equal without it" "$(
    [ "$code" = 2 ] && printf '%s\n' "$said" | grep -q "self-test of held: it did not end in [0-9]* s" &&
        printf '%s\n' "$said" | grep -q "^  GUILTY: held is barred" &&
        [ "$(printf '%s\n' "$said" | grep -c "^  equal    pinned states of ")" = 4 ]
    echo $?
)"
export EMULATED_FAULT="skips:kernel_contract_plain"
climbs
passes "plain kernels that differ are named, and nothing is said to take their place" "$(
    [ "$code" = 1 ] && printf '%s\n' "$said" | grep -q "^  GUILTY: plain kernels, and nothing"
    echo $?
)"
unset EMULATED_FAULT EMULATED_CAPABILITY
said=$(LOCKSTEP_CUDA=$plugin GPU_CHECK_QUICK=1 "$check" --budget 3s "$dir/ladder" "$dir/note" 2>&1)
code=$?
passes "what finds no budget is left out aloud, and the files are whole" "$(
    [ "$code" = 2 ] && printf '%s\n' "$said" | grep -q "^  left out mlp: the budget is spent" &&
        grep -q "^| mlp | left out |  | the budget is spent |" "$(cat "$dir/note").md" &&
        python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$(cat "$dir/note").json"
    echo $?
)"
said=$("$check" --budget soon 2>&1)
code=$?
says "a budget that is no time is refused" "--budget takes a time"
# The tools of the toolkit see the self-tests where they are.
cat >"$dir/compute-sanitizer" <<'END'
#!/bin/sh
echo "seen: $*"
exit "${TOOL_CODE:-0}"
END
chmod +x "$dir/compute-sanitizer"
for found in 0 9; do
    said=$(LOCKSTEP_CUDA=$plugin GPU_CHECK_QUICK=1 GPU_CHECK_ONLY="compute-sanitizer" TOOL_CODE=$found \
        PATH=$dir:$PATH "$check" 2>&1)
    code=$?
    passes "compute-sanitizer is started over the program, and its code $found is the section's" "$(
        printf '%s\n' "$said" | grep -q "^seen: --tool memcheck .*gpu-check$" &&
            { { [ "$found" = 0 ] && [ "$code" = 0 ]; } ||
                { [ "$code" = 2 ] && printf '%s\n' "$said" | grep -q "CANNOT TELL compute-sanitizer: it ended with code 9"; }; }
        echo $?
    )"
done
finish
