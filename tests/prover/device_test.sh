#!/bin/sh
# Goal: --device chooses what computes; a GPU gives the journal that the CPU gives; and a GPU that is not there is refused
# with advice, unless anything was welcome.
# Method: the emulated device of tests/support stands in as the plugin.
set -eu

lockstep=${TEST_LOCKSTEP:?}
plugin=$PWD/build/tests/emulated_cuda.so
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
number=0

check() { # check NAME CONDITION...
    name=$1
    shift
    number=$((number + 1))
    if "$@"; then
        echo "ok $number - $name"
    else
        echo "not ok $number - $name"
        failed=1
    fi
}

roots() {
    "$lockstep" bundle steps "$folder/$1" --json | tr '{' '\n' | grep -o '"state_root": *"[0-9a-f]*"'
}

run() { # run BUNDLE DEVICE
    LOCKSTEP_CUDA=$plugin "$lockstep" prover run "$folder/a.job" --bundle "$folder/$1" \
        --data fixtures/text/village.u8 --threads 1 --device "$2" >"$folder/$1.out" 2>&1
}

"$lockstep" job new --data fixtures/text/village.u8 --layers 1 --heads 1 --width 16 --length 8 --batch 1 \
    --vocabulary 128 --steps 4 --segment 2 --out "$folder/a.job" >/dev/null 2>&1

echo 1..10
check "a run on the CPU is the measure" run cpu cpu
check "a run on a CUDA device ends" run cuda cuda
check "its roots are those of the CPU" test "$(roots cpu)" = "$(roots cuda)"
check "auto takes the device that starts" run auto auto
named() {
    python3 -c 'import sqlite3, sys
print(*sqlite3.connect(sys.argv[1]).execute("SELECT name FROM devices").fetchone())' \
        "$folder/auto/journal.db" | grep -q '^cuda device 0$'
}
check "the journal says what ran it" named
proven() {
    LOCKSTEP_CUDA=$plugin "$lockstep" audit "$folder/cpu" --device cuda --json >"$folder/audit.out" 2>&1
}
check "an auditor with a CUDA device proves the CPU's run" proven
in_parts() {
    LOCKSTEP_CUDA=$plugin "$lockstep" audit "$folder/cpu" --device cuda --device-memory 40K --json \
        >"$folder/parts.out" 2>&1
}
check "it proves it part by part within 40 KiB of the device" in_parts
split() {
    LOCKSTEP_CUDA=$plugin "$lockstep" audit "$folder/cpu" --device cuda:0,cuda:1 --json >"$folder/split.out" 2>&1
}
check "it proves it on two devices" split
# A device that is lost at any moment: the audit cannot tell (2), and never refutes (1).
undecided() {
    for at in 1 2 5 20 50 90 120 150 200 260; do
        code=0
        LOCKSTEP_CUDA=$plugin EMULATED_FAIL_AT=$at "$lockstep" audit "$folder/cpu" --device cuda \
            --json >"$folder/lost.out" 2>&1 || code=$?
        if [ "$code" != 2 ]; then
            echo "# call $at: exit code $code"
            return 1
        fi
    done
}
check "an auditor that loses its device cannot tell" undecided
refused() {
    ! LOCKSTEP_CUDA=off "$lockstep" prover run "$folder/a.job" --bundle "$folder/none" \
        --data fixtures/text/village.u8 --device cuda 2>"$folder/refused" && grep -q CUDA "$folder/refused" &&
        ! test -e "$folder/none"
}
check "a device that is not there is refused before anything is made" refused
exit $failed
