#!/bin/sh
# Goal: a portable evidence file is judged alone, without bundle, data or ledger: 1 convicts, 0 shows nothing wrong, 2 proves
# nothing; and no damaged file convicts.
# Method: the evidence files of the fuzz corpus, without the byte that chooses the target's mode.
set -u

lockstep=${TEST_LOCKSTEP:?}
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

answer() { # answer WANTED-CODE WANTED-ANSWER FILE...
    code=$1
    wanted=$2
    shift 2
    "$lockstep" audit --evidence --json "$@" >"$folder/out" 2>&1
    [ $? = "$code" ] && grep -q "\"answer\":\"$wanted\"" "$folder/out"
}

tail -c +2 fixtures/corpus/evidence/file-placed >"$folder/guilty"
tail -c +2 fixtures/corpus/evidence/file >"$folder/honest"
head -c 400 "$folder/guilty" >"$folder/cut"
{ cat "$folder/guilty"; printf x; } >"$folder/long"
: >"$folder/empty"

none_convicts() {
    size=$(wc -c <"$folder/guilty")
    at=1
    while [ "$at" -lt "$size" ]; do
        { head -c "$at" "$folder/guilty"; printf '\377'; tail -c "+$((at + 2))" "$folder/guilty"; } >"$folder/bent"
        cmp -s "$folder/bent" "$folder/guilty" || set -- "$@" "$at"
        if ! cmp -s "$folder/bent" "$folder/guilty" && answer 1 upheld "$folder/bent" &&
            [ "$(sed 's/.*"trace":"\([0-9a-f]*\).*/\1/' "$folder/out")" = "$trace" ] &&
            [ "$(sed 's/.*"job":"\([0-9a-f]*\).*/\1/' "$folder/out")" = "$job" ] && grep -q "\"step\":5," "$folder/out"; then
            echo "# byte $at can be another"
            return 1
        fi
        at=$((at + 211))
    done
    [ $# -gt 10 ]
}

echo 1..7
check "a file that convicts is upheld" answer 1 upheld "$folder/guilty"
trace=$(sed 's/.*"trace":"\([0-9a-f]*\).*/\1/' "$folder/out")
job=$(sed 's/.*"job":"\([0-9a-f]*\).*/\1/' "$folder/out")
check "a file about a true element shows nothing wrong" answer 0 not-guilty "$folder/honest"
check "a file that is cut proves nothing" answer 2 proves-nothing "$folder/cut"
check "a file with a byte more proves nothing" answer 2 proves-nothing "$folder/long"
check "no file and an empty one prove nothing" answer 2 proves-nothing "$folder/empty" "$folder/none"
check "among several one that convicts decides" answer 1 upheld "$folder/honest" "$folder/guilty" "$folder/cut"
check "a byte changed anywhere is about something else, or proves nothing" none_convicts
exit $failed
