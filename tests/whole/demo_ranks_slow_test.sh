#!/bin/sh
# Goal: the demo ends as it should where the honest solver trains on two ranks: it is paid, and one
# thread proves what two processes made. A number of ranks that is none is refused.
# Method: plays it, without a terminal, and reads what it says. Prints TAP.
set -u

. tests/support/tap.sh

run env LEDGER=local GPU=0 RANKS=none scripts/demo "$TEST_LOCKSTEP" "$PWD/fixtures" "$dir/none"
check "a number of ranks that is none is refused" 3 'says err "RANKS=none is no number of processes"'
run env LEDGER=local GPU=0 PLAY=own RANKS=2 scripts/demo "$TEST_LOCKSTEP" "$PWD/fixtures" "$dir/none"
check "and so is a play whose job has no groups" 3 'says err "those of PLAY=own have none"'
run env LEDGER=local GPU=0 RANKS=2 scripts/demo "$TEST_LOCKSTEP" "$PWD/fixtures" "$dir/demo"
ends="honest solver: paid    cheat: convicted    hidden state: refused    audit: proven"
ends="$ends    model: delivered    money: adds up"
check "the honest solver is paid and proven, the cheat convicted, what is hidden refused" 0 'says out "$ends"'
check "it says that two processes share each step" 0 'says out "has 2 processes, the ranks, which share each step"'
check "one thread audits it" 0 'says out "audit honest.run --data village.u8 --threads 1"'
finish
