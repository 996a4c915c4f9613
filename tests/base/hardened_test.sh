#!/bin/sh
# Goal: a fault of memory in the program does not at once become somebody's code: it lies anywhere,
# its tables of calls are read-only, no stack is executed, stacks and copies are guarded, and branches
# land where they may. So that the compiler of another system, or a setting, cannot take it away
# silently.
# Method: readelf reads the program and each object of its library. Prints TAP.
set -u

L=$TEST_LOCKSTEP
build=$(dirname "$L")
case $build in
*/asan) echo "1..0 # SKIP the sanitized program has its own guards"; exit 0 ;;
esac
command -v readelf >/dev/null 2>&1 || { echo "1..0 # SKIP binutils is not installed"; exit 0; }
. tests/support/tap.sh

readelf -hlWd "$L" >"$dir/told"
grep -q 'Type: *DYN' "$dir/told" && grep -q 'Flags:.* PIE' "$dir/told"
result $? "it can lie anywhere"
says told "GNU_RELRO" && says told "BIND_NOW"
result $? "its tables are resolved at the start, then read-only"
grep 'GNU_STACK' "$dir/told" | grep -q 'RW ' && ! grep -E '^ +LOAD' "$dir/told" | grep -q 'RWE'
result $? "nothing is both written and executed"

readelf --dyn-syms -W "$L" >"$dir/told"
says told "__stack_chk_fail"
result $? "stacks are guarded"
case ${CFLAGS:-} in
*-O0*) skip "copies into what has a known size are guarded" "this needs optimization" ;;
*)
    says told "__snprintf_chk" && says told "__memcpy_chk"
    result $? "copies into what has a known size are guarded"
    ;;
esac

# Debian's own start files lack the mark, and with them the program: so the objects are asked.
case $(uname -m) in
x86_64) mark='x86 feature: IBT, SHSTK' ;;
aarch64) mark='AArch64 feature: BTI' ;;
*) mark= ;;
esac
if [ -n "$mark" ]; then
    readelf -nW "$build/liblockstep.a" 2>"$dir/err" |
        awk -v mark="$mark" '/^File:/ { if (file != "") print file; file = $2 }
            index($0, mark) { file = "" } END { if (file != "") print file }' >"$dir/told"
    [ "$(ar t "$build/liblockstep.a" | wc -l)" -gt 100 ] && [ ! -s "$dir/told" ]
    result $? "branches are guarded in every object of the library"
else
    skip "branches are guarded in every object of the library" "no such guard is known here"
fi
finish
