#!/bin/sh
# Goal: what is said to somebody who made a mistake names what was wrong and what to do.
# Method: each mistake once, by the program, in a folder with one wallet and one embedded ledger; the
# words are looked for, and that what once stood there does not come back. Prints TAP.
set -u

. tests/support/tap.sh
here=$(pwd)
export XDG_DATA_HOME="$dir/home" XDG_STATE_HOME="$dir/home" XDG_CONFIG_HOME="$dir/home" XDG_CACHE_HOME="$dir/home"
export LOCKSTEP_PASSPHRASE=words
cd "$dir" || exit 1
nobody=0x52908400098527886E0F7030069857D2E4169EE7
cp "$here/fixtures/text/village.u8" text.u8
printf 'abcde' >small.u8
lockstep() { run "$TEST_LOCKSTEP" "$@"; }

lockstep job new --model gpt2 --data text.u8 --rate 1e9 --out a.job
check "a learning rate out of range has its range" 3 "says err 'each must be from 0 to 1e6'"
lockstep job new --model gpt2 --data small.u8 --out a.job
check "a file that is too short is named, with what a row takes" 3 \
    "says err 'small.u8 has 5 tokens, and a row takes 65' && ! says err batch-tokens"
lockstep job new --model mlp --data text.u8 --labels small.u8 --labels text.u8 --out a.job
check "a file that is given twice is not dropped" 3 "says err '--labels is given twice: small.u8 and text.u8'"
lockstep audit none --report a.html --report b.json
check "nor a report" 3 "says err '--report is given twice: a.html and b.json'"

lockstep job new --model gpt2 --data text.u8 --steps 4 --segment-steps 2 --out a.job
lockstep ledger init try.ledger
open="job open a.job --reward 0.5eth --ledger local:try.ledger --yes"
# shellcheck disable=SC2086 # words
lockstep $open
check "a wallet without a key says so" 3 "says err 'there is no key in' && says err 'wallet new'"
lockstep wallet new
key=$(head -n 1 out)
# shellcheck disable=SC2086
lockstep $open --account "$nobody"
check "a wallet without that key names it" 3 "says err 'none of the keys in' && says err $nobody"
file=$(find home -name 'UTC--*')
sed 's/"address": *"[0-9a-fA-Fx]*", *//' "$file" >other && mv "$file" named && mv other "$file"
# shellcheck disable=SC2086
lockstep $open --account "$nobody"
check "a wallet whose files name nobody says that" 3 "says err '1 of 1 name no address' && says err '--account FILE'"

mv named "$file"

lockstep ledger faucet "$key" 100 --ledger local:try.ledger
check "an amount without a unit is asked for it" 3 "says err '100 of what? 100wei, 100gwei or 100eth'"
lockstep ledger faucet "$key" 100eth --ledger local:try.ledger
check "with one it is given" 0 "says out 100"
lockstep job open a.job --reward 0.5eth --ledger local:try.ledger
check "an escrow says that what is not earned comes back" 3 "says err 'ESCROW' && says err 'comes back when the job is over'"
# shellcheck disable=SC2086
lockstep $open
job=$(sed -n 's/.*\(0x[0-9a-f]\{64\}\).*/\1/p' out | head -n 1)
lockstep prover run "$job" --ledger local:try.ledger --serve 127.0.0.1:0 --timeout 5s
check "a job whose files nobody offers says who has not spoken" 3 \
    "says err 'the client has not said on the ledger' && says err 'no solver has committed anything yet'"

lockstep bundle steps a.job
check "a file in place of a bundle is told from a bundle" 3 \
    "says err 'a.job is a file, and a bundle is a folder' && says err 'bundle import'"
printf '#!/bin/sh\necho scripts/progress counts 1 last.c make\n' >make && chmod +x make
run "$here/scripts/progress" counts $$ last.c ./make
check "the last file that is compiled says what follows" 0 "says out '1 of 1  last.c  (then it is linked)'"
lockstep prover status
check "without a node it says that none has run" 3 "says err 'node has run in' && says err 'prover node'"
lockstep doctor
check "doctor advises no option that it refuses" 0 "says out LOCKSTEP_LEDGER && ! grep -q -- ' --[a-z]' \"$dir/out\""
lockstep job show "$job" --ledger local:try.ledger
check "nor does job show let an escrow stand for a price" 0 "says out 'of it comes back when the job is over'"
lockstep job stop "$job" --ledger local:try.ledger
check "a move of another phase is told from what stands" 1 "says err 'no solver is at work' && says err 'job close'"
lockstep job close "$job" --ledger local:try.ledger
lockstep job close "$job" --ledger local:try.ledger
check "also of a job that is over" 1 "says err 'the job is closed' && says err 'job collect' && ! says err phase"
finish
