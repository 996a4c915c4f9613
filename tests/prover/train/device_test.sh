#!/bin/sh
# Goal: --device chooses what computes; a GPU gives the journal that the CPU gives; and a GPU that is not there is refused
# with advice, unless anything was welcome.
# Method: the emulated device of tests/support stands in as the plugin.
set -eu

lockstep=${TEST_LOCKSTEP:?}
plugin=$PWD/build/tests/emulated_cuda.so
. tests/support/tap.sh

roots() {
    "$lockstep" bundle steps "$dir/$1" --json | tr '{' '\n' | grep -o '"state_root": *"[0-9a-f]*"'
}

run() { # run BUNDLE DEVICE
    LOCKSTEP_CUDA=$plugin "$lockstep" prover run "$dir/a.job" --bundle "$dir/$1" \
        --data fixtures/text/village.u8 --threads 1 --device "$2" >"$dir/$1.out" 2>&1
}

"$lockstep" job new --data fixtures/text/village.u8 --layers 1 --heads 1 --width 16 --length 8 --batch 1 \
    --vocabulary 128 --steps 4 --segment-steps 2 --out "$dir/a.job" >/dev/null 2>&1

holds "a run on the CPU is the measure" run cpu cpu
holds "a run on a CUDA device ends" run cuda cuda
holds "its roots are those of the CPU" test "$(roots cpu)" = "$(roots cuda)"
holds "auto takes the device that starts" run auto auto
named() {
    python3 -c 'import sqlite3, sys
print(*sqlite3.connect(sys.argv[1]).execute("SELECT name FROM devices").fetchone())' \
        "$dir/auto/journal.db" | grep -q '^cuda device 0$'
}
holds "the journal says what ran it" named
proven() {
    LOCKSTEP_CUDA=$plugin "$lockstep" audit "$dir/cpu" --device cuda --json >"$dir/audit.out" 2>&1
}
holds "an auditor with a CUDA device proves the CPU's run" proven
in_parts() {
    LOCKSTEP_CUDA=$plugin "$lockstep" audit "$dir/cpu" --device cuda --device-memory 40K --json \
        >"$dir/parts.out" 2>&1
}
holds "it proves it part by part within 40 KiB of the device" in_parts
split() {
    LOCKSTEP_CUDA=$plugin "$lockstep" audit "$dir/cpu" --device cuda:0,cuda:1 --json >"$dir/split.out" 2>&1
}
holds "it proves it on two devices" split
# A device that is lost at any moment: the audit cannot tell (2), and never refutes (1).
undecided() {
    for at in 1 2 5 20 50 90 120 150 200 260; do
        code=0
        LOCKSTEP_CUDA=$plugin EMULATED_FAIL_AT=$at "$lockstep" audit "$dir/cpu" --device cuda \
            --json >"$dir/lost.out" 2>&1 || code=$?
        if [ "$code" != 2 ]; then
            echo "# call $at: exit code $code"
            return 1
        fi
    done
}
holds "an auditor that loses its device cannot tell" undecided
refused() {
    ! LOCKSTEP_CUDA=off "$lockstep" prover run "$dir/a.job" --bundle "$dir/none" \
        --data fixtures/text/village.u8 --device cuda 2>"$dir/refused" && grep -q CUDA "$dir/refused" &&
        ! test -e "$dir/none"
}
holds "a device that is not there is refused before anything is made" refused
finish
