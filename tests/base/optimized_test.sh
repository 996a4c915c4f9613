#!/bin/sh
# Goal: CFLAGS="-O3 -march=native" and CFLAGS=-O0 build: what a compiler says only there stops nobody.
# Method: the places in which gcc 12 had warned falsely are compiled so, warnings being errors, by gcc
# and, where it is here, by clang.
# Prints TAP.
set -u

command -v make >/dev/null 2>&1 || { echo "1..0 # SKIP make is not installed"; exit 0; }
unset MAKEFLAGS MAKELEVEL MFLAGS
. tests/support/tap.sh

compiles() { # COMPILER CFLAGS SOURCE...
    compiler=$1 flags=$2
    shift 2
    if ! command -v "$compiler" >/dev/null 2>&1; then
        skip "$flags compiles by $compiler" "$compiler is not installed"
        return
    fi
    for source in "$@"; do
        shift
        set -- "$@" "$dir/build/${source%.c}.o"
    done
    make -s -j2 BUILD="$dir/build" CC="$compiler" CFLAGS="$flags" LOCKSTEP_NO_INSTALL=1 "$@" >"$dir/told" 2>&1
    result $? "$flags compiles by $compiler"
    rm -rf "$dir/build"
}
for compiler in gcc clang; do
    compiles "$compiler" "-O3 -march=native" chain/codec/abi.c chain/codec/typed_data.c proofs/bundle/*.c \
        engine/cpu/isa/isa.c engine/cpu/isa/probe.c engine/tape/repeat.c
    compiles "$compiler" "-O0" chain/game/policy/policy.c chain/job/job_card.c prover/commands/run_progress.c
done
finish
