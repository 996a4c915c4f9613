#!/bin/sh
# Goal: the demo's game is played about programs of PyTorch too: a cheat that changes a number of a
# vision transformer is convicted, and so is one that changes a number of a heat equation, by the
# evidence that the ledgers rule on; the honest run is proven and comes back into the module.
# Method: plays PLAY=own, without a terminal, and reads what it says. Skipped where PyTorch is not
# installed. Prints TAP.
set -u

. tests/support/tap.sh

for python in python3 /usr/bin/python3 none; do
    "$python" -c 'import torch' 2>/dev/null && break
done
if [ "$python" = none ]; then
    run env PLAY=own scripts/demo "$TEST_LOCKSTEP" "$PWD/fixtures" "$dir/demo"
    check "without PyTorch it is refused by name" 3 'says err "PLAY=own needs PyTorch"'
    finish
fi
run env PLAY=other scripts/demo "$TEST_LOCKSTEP" "$PWD/fixtures" "$dir/demo"
check "another play is refused" 3 'says err "PLAY=other is no play"'

run env LEDGER=local GPU=0 PLAY=own scripts/demo "$TEST_LOCKSTEP" "$PWD/fixtures" "$dir/demo"
ends="honest solver: paid    cheat: convicted    hidden state: refused    audit: proven"
ends="$ends    model: delivered    money: adds up"
check "the honest solver is paid and proven, both cheats convicted, what is hidden refused" 0 'says out "$ends"'
grep -Eq '^  block [0-9]+ +convicted +job 2 .* cheat$' "$dir/out" &&
    grep -Eq '^  block [0-9]+ +convicted +job 4 .* forger$' "$dir/out"
result $? "the ledger convicts the one of the transformer, and the one of the heat equation"
! grep -Eq '^  block [0-9]+ +convicted +job [13] ' "$dir/out"
result $? "and nobody else"
grep -Eq '^  700\.0000 before = [0-9.]+ after \+ [0-9.]+ burned$' "$dir/out"
result $? "what all had is what all have, and what burned"
grep -Eq 'model +a vision transformer of PyTorch, 17956 numbers' "$dir/out"
result $? "it says what is trained"
sed -n 's/^  \(cheat\|forger\) .*\(0x[0-9a-f]\{8\}\)$/\2/p; s/^  the rule .*\(0x[0-9a-f]\{8\}\)$/\1/p' "$dir/out" >"$dir/told"
[ "$(wc -l <"$dir/told")" = 4 ] && [ "$(sort -u "$dir/told" | wc -l)" = 4 ] &&
    grep -Eq 'step 29, operation [0-9]+ \(adamw\): element 0 of ' "$dir/out" &&
    grep -Eq 'step 29, operation [0-9]+ \(binary\): element 0 of u' "$dir/out"
result $? "it shows the numbers that were false, and the rule's"
grep -Eq 'the module of PyTorch loads it strictly: its loss fell' "$dir/out"
result $? "and PyTorch's module has the weights that were trained"
for evidence in $(sed -n 's/.*lockstep audit --verify-evidence //p' "$dir/out"); do
    run "$TEST_LOCKSTEP" audit --verify-evidence "$evidence"
    check "the evidence that it names convicts" 1 'says out "upheld"'
done
finish
