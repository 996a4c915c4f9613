#!/bin/sh
# Goal: a portable evidence file is judged alone, without bundle, data or ledger: 1 convicts, 0 shows nothing wrong, 2 proves
# nothing; and no damaged file convicts.
# Method: the evidence files of the fuzz corpus, without the byte that chooses the target's mode.
set -u

lockstep=${TEST_LOCKSTEP:?}
. tests/support/tap.sh

answer() { # answer WANTED-CODE WANTED-ANSWER FILE...
    code=$1
    wanted=$2
    shift 2
    "$lockstep" audit --verify-evidence --json "$@" >"$dir/out" 2>&1
    [ $? = "$code" ] && grep -q "\"answer\":\"$wanted\"" "$dir/out"
}

tail -c +2 fixtures/corpus/evidence/file-placed >"$dir/guilty"
tail -c +2 fixtures/corpus/evidence/file >"$dir/honest"
head -c 400 "$dir/guilty" >"$dir/cut"
{ cat "$dir/guilty"; printf x; } >"$dir/long"
: >"$dir/empty"

none_convicts() {
    size=$(wc -c <"$dir/guilty")
    at=1
    while [ "$at" -lt "$size" ]; do
        { head -c "$at" "$dir/guilty"; printf '\377'; tail -c "+$((at + 2))" "$dir/guilty"; } >"$dir/bent"
        cmp -s "$dir/bent" "$dir/guilty" || set -- "$@" "$at"
        if ! cmp -s "$dir/bent" "$dir/guilty" && answer 1 upheld "$dir/bent" &&
            [ "$(sed 's/.*"trace":"\([0-9a-f]*\).*/\1/' "$dir/out")" = "$trace" ] &&
            [ "$(sed 's/.*"job":"\([0-9a-f]*\).*/\1/' "$dir/out")" = "$job" ] && grep -q "\"step\":5," "$dir/out"; then
            echo "# byte $at can be another"
            return 1
        fi
        at=$((at + 211))
    done
    [ $# -gt 10 ]
}

holds "a file that convicts is upheld" answer 1 upheld "$dir/guilty"
trace=$(sed 's/.*"trace":"\([0-9a-f]*\).*/\1/' "$dir/out")
job=$(sed 's/.*"job":"\([0-9a-f]*\).*/\1/' "$dir/out")
holds "a file about a true element shows nothing wrong" answer 0 not-guilty "$dir/honest"
holds "a file that is cut proves nothing" answer 2 proves-nothing "$dir/cut"
holds "a file with a byte more proves nothing" answer 2 proves-nothing "$dir/long"
holds "no file and an empty one prove nothing" answer 2 proves-nothing "$dir/empty" "$dir/none"
holds "among several one that convicts decides" answer 1 upheld "$dir/honest" "$dir/guilty" "$dir/cut"
holds "a byte changed anywhere is about something else, or proves nothing" none_convicts
finish
