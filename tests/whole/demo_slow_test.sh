#!/bin/sh
# Goal: the demo ends as it should, and shows what somebody who sees it for the first time wants to
# know: what is trained, how its loss falls, which number was false, how long a wait is, where the
# money went, and the line that opens the report.
# Method: plays it, without a terminal, and reads what it says. Prints TAP.
set -u

. tests/support/tap.sh

run env LEDGER=local GPU=0 scripts/demo "$TEST_LOCKSTEP" "$PWD/fixtures" "$dir/demo"
ends="honest solver: paid    cheat: convicted    hidden state: refused    audit: proven"
ends="$ends    model: delivered    money: adds up"
check "the honest solver is paid and proven, the cheat convicted, what is hidden refused" 0 'says out "$ends"'
grep -Eq '^  600\.0000 before = [0-9.]+ after \+ [0-9.]+ burned$' "$dir/out"
result $? "what all had is what all have, and what burned"
check "it says what is trained" 0 'grep -Eq "model +a GPT-2 of .* [0-9]+ numbers" "$dir/out"'
awk '/^  training +step/ { losses = losses " " $5; if (NR > 1 && last && $5 >= last) bad = 1; last = $5; n++ }
    END { print n, losses; exit !(n == 7 && !bad) }' "$dir/out" >"$dir/told"
result $? "and that its loss falls, seven times"
sed -n 's/^  cheat .*\(0x[0-9a-f]\{8\}\)$/\1/p; s/^  the rule .*\(0x[0-9a-f]\{8\}\)$/\1/p' "$dir/out" >"$dir/told"
[ "$(wc -l <"$dir/told")" = 2 ] && [ "$(uniq "$dir/told" | wc -l)" = 2 ] &&
    grep -Eq 'step 29, operation [0-9]+ \(adamw\): element 0 of wte.weight' "$dir/out"
result $? "it shows the number that was false, and the rule's"
grep -Eq 'nobody moves: .* [0-9]+ s more' "$dir/out"
result $? "it counts a wait"
report=$(sed -n 's/^    xdg-open //p' "$dir/out")
grep -q '<html' "${report:-none}"
result $? "and ends with the line that opens the report"
evidence=$(sed -n 's/.*lockstep audit --verify-evidence //p' "$dir/out")
run "$TEST_LOCKSTEP" audit --verify-evidence "$evidence"
check "the evidence that it names convicts" 1 'says out "upheld"'
finish
