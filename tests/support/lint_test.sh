#!/bin/sh
# Goal: the checks of "make lint" find what they are for.
# Method: a small tree with one offence at a time, and the same tree without. Prints TAP.
set -u

scripts=$(pwd)/scripts
. tests/support/tap.sh
cd "$dir" || exit 1
mkdir -p base engine proofs chain prover verifier tests/base scripts
echo '# none' >scripts/lint-ratchet.txt
echo '# none' >scripts/lint-globals.txt

# check NAME EXIT COMMAND...
check() {
    name=$1 wanted=$2
    shift 2
    "$@" >"$dir/told" 2>&1
    code=$?
    [ "$code" = "$wanted" ]
    result $? "$name"
}
# included FILE HEADER: FILE includes HEADER and nothing else.
included() {
    printf '/* x */\n#include "%s"\n' "$2" >"$1"
}
layers() {
    "$scripts/check-layers" base engine proofs chain prover verifier
}
source_of() {
    "$scripts/check-source" "$@"
}

# Every pair of rooms: who may include whom.
for pair in base:engine engine:base engine:proofs proofs:engine proofs:chain chain:proofs \
    chain:engine chain:prover prover:verifier verifier:prover prover:chain verifier:engine; do
    from=${pair%:*} to=${pair#*:}
    case $pair in
    engine:base | proofs:engine | chain:proofs | prover:chain | verifier:engine) wanted=0 ;;
    *) wanted=1 ;;
    esac
    included "$from/x.c" "$to/y.h"
    check "include_from_${from}_to_${to}_is_judged" "$wanted" layers
    rm "$from/x.c"
done
included chain/local_rules.c engine/rules/rule.h
check embedded_ledger_may_call_the_rules 0 layers
included chain/local_rules.c engine/tape/tape.h
check embedded_ledger_may_call_nothing_else 1 layers
rm chain/local_rules.c

printf '/* x */\nint f(void)\n{\n    return 0;\n}\n' >base/good.c
check good_source_passes_the_check 0 source_of base/good.c
printf 'int f(void)\n{\n    return 0;\n}\n' >base/bad.c
check missing_opening_comment_is_found 1 source_of base/bad.c
{ echo '/* x */' && printf '%0101d\n' 0; } >base/bad.c
check too_long_line_is_found 1 source_of base/bad.c
printf '/* x */\nint f(void)\n{\n    (void)fread(text, 1, 2, file);\n    return 0;\n}\n' >base/bad.c
check result_that_is_cast_away_is_found 1 source_of base/bad.c
{ echo '/* x */' && printf '/* %s */\n' "$(printf '\303\251%.0s' $(seq 94))"; } >base/bad.c
check letters_count_once_however_many_bytes 0 source_of base/bad.c
{ printf '/* x */\nint long_one(void)\n{\n' && yes '    f();' | head -n 69 && echo '}'; } >base/bad.c
check too_long_function_is_found 1 source_of base/bad.c
echo 'function base/bad.c:long_one 71' >scripts/lint-ratchet.txt
check listed_function_may_stay 0 source_of base/bad.c
check list_entry_without_need_is_found 1 source_of base/good.c
echo '# none' >scripts/lint-ratchet.txt
{ echo '/* x */' && yes 'int x;' | head -n 800; } >base/bad.c
check too_long_file_is_found 1 source_of base/bad.c
printf '/* x */\n#ifndef OTHER_H\n#define OTHER_H\n#endif\n' >base/bad.h
check wrong_include_guard_is_found 1 source_of base/bad.h
printf '/* x */\ntypedef struct x { int y; } x;\n' >base/bad.c
check typedef_of_a_struct_is_found 1 source_of base/bad.c
printf '/* x */\nstatic void test_one(void **state)\n{\n}\n' >tests/base/bad_test.c
check test_that_is_no_sentence_is_found 1 source_of tests/base/bad_test.c

if command -v "${CC:-cc}" >/dev/null && command -v ar >/dev/null; then
    printf 'const int table[] = {1};\nstatic int counter;\nint f(void) { return ++counter; }\n' >g.c
    "${CC:-cc}" -c g.c -o g.o && ar rcs g.a g.o
    check mutable_global_is_found 1 "$scripts/check-globals" g.a
    echo 'counter because of this test' >scripts/lint-globals.txt
    check listed_global_may_stay 0 "$scripts/check-globals" g.a
fi
finish
