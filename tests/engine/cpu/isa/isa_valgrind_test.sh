#!/bin/sh
# Goal: where vector instructions compute other bits, they are not used, and the user is told so once.
# Method: valgrind emulates AVX2 and negates the zeros of a negated fma late. The program under it
# either says that avx2 is not used and refuses it by name, or a valgrind without the fault passes.
# Prints TAP.
set -u

L=$TEST_LOCKSTEP
case $L in
*/asan/*) echo "1..0 # SKIP valgrind does not run sanitized programs"; exit 0 ;;
esac
command -v valgrind >/dev/null 2>&1 || { echo "1..0 # SKIP valgrind is not installed"; exit 0; }
. tests/support/tap.sh
# A set spin count keeps the program from starting itself again, which valgrind cannot follow.
export GOMP_SPINCOUNT=1000

run valgrind -q "$L" --version
check "the program runs under valgrind" 0 'says out lockstep'
if says err "other bits than the rules"; then
    check "the line names the instruction set and the operation" 0 \
        'says err "avx2 computes other bits than the rules here (negated fma) and is not used"'
    check "the line comes once" 0 '[ "$(wc -l <"$dir/err")" = 1 ]'
    LOCKSTEP_ISA=avx2
    export LOCKSTEP_ISA
    run valgrind -q "$L" verifier plan --data fixtures/text/village.u8 fixtures/bundle/job
    check "avx2 by name is refused" 1 'says err "LOCKSTEP_ISA: avx2 computes other bits"'
else
    skip "avx2 is refused and named" "this valgrind computes the bits of the rules"
fi
finish
