#!/bin/sh
# Goal: an embedded ledger and a contract on a chain are made, looked at and watched from the shell.
# Method: runs the built program, the chain being the pinned anvil on a free port. Prints TAP.
set -u

L=$TEST_LOCKSTEP
ANVIL=tests/evm/node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil
. tests/support/tap.sh
chain=
at_end() {
    [ -z "$chain" ] || kill "$chain" 2>/dev/null
}
export XDG_DATA_HOME="$dir/data" XDG_STATE_HOME="$dir/state" XDG_CONFIG_HOME="$dir/config"
printf 'pass words\n' >"$dir/pass"
chmod 600 "$dir/pass"

run "$L" doctor
check "doctor shows the policies in force" 0 \
    'says out "locks at most 2 % in all" && says out "stakes at most 4 whole rewards" &&
    says out "for 30d; takes fees" && says out "for 30d; takes a segment"'
run env LOCKSTEP_LOCK_MAX=3eth "$L" doctor
check "with what the environment says" 0 'says out "locks at most 3 eth in all"'
printf 'lock-max=5%%\nbond-fees-max=0\n' >"$dir/policy"
run "$L" doctor --config "$dir/policy"
check "and the config file" 0 'says out "at most 5 % in all" && says out "any number of fees"'
run env LOCKSTEP_LOCK_MAX=101% "$L" doctor
check "a limit that is none is named" 1 'says out "--lock-max"'

run "$L" doctor
check "no wallet and no ledger is said, and is no fault" 0 \
    'says out "no key in $dir/data/lockstep/wallet" && says out "lockstep wallet new" &&
    says out "note    ledger" && says out "GiB free below $dir" && says out "UTC"'
check "and nothing was made" 0 '[ ! -e "$dir/data" ] && [ ! -e "$dir/state" ]'
run env XDG_STATE_HOME="$dir/pass/below" "$L" doctor
check "a place that cannot be written is broken" 1 'says out "broken  disk" && says out "XDG_STATE_HOME"'
run env LOCKSTEP_LEDGER=http://127.0.0.1:9 "$L" doctor
check "and so is a ledger that does not answer" 1 'says out "broken  ledger" && says out "ledger=URL,URL"'
run env LOCKSTEP_LEDGER="local:$dir/none" "$L" doctor
check "or is not there" 1 'says out "no embedded ledger at" && says out "lockstep ledger init"'

# The first account of anvil.
printf 'ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80\n' >"$dir/key"
address=0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266
other=0x70997970C51812dc3A010C7d01b50e0d17dc79C8
run "$L" wallet import --light --passphrase-file "$dir/pass" "$dir/key"
check "a key is there" 0 'says out $address'
run "$L" doctor
check "doctor finds the key" 0 'says out "good    wallet      $address"'
chmod 644 "$dir/data/lockstep/wallet"/*
run "$L" doctor
check "and sees that others can open it" 0 'says out "note    wallet" && says out "chmod 600"'
chmod 600 "$dir/data/lockstep/wallet"/*

run "$L" ledger status
check "without a ledger it says how to name one" 3 'says err "--ledger local:PATH"'
run "$L" ledger status --ledger "local:$dir/none"
check "a ledger that is not there is not made by looking" 3 'says err "lockstep ledger init"'
run "$L" ledger init "$dir/try.ledger"
check "an embedded ledger is made" 0 'says out "local:$dir/try.ledger"'
run env LOCKSTEP_LEDGER="local:$dir/try.ledger" "$L" doctor
check "doctor finds it" 0 'says out "good    ledger      local:$dir/try.ledger, height"'
run "$L" ledger init "$dir/try.ledger"
check "and not made twice" 1 'says err "already something"'
(
    ulimit -f 8
    "$L" ledger init "$dir/cut.ledger"
) >"$dir/out" 2>"$dir/err"
code=$?
check "on a full disk none is made, and nothing stays" 2 \
    'says err "cut.ledger" && [ -z "$(ls "$dir" | grep cut)" ]'
run "$L" ledger init "$dir/cut.ledger"
check "so that it is made when there is room" 0 'says out "local:$dir/cut.ledger"'
run "$L" ledger faucet $address 4.5ether --ledger "local:$dir/try.ledger"
check "its money is free, and it says what it did" 0 \
    'says out "gave 4.5 eth to $address, which has 4.5 eth"'
run "$L" ledger faucet $address 0 --ledger "local:$dir/try.ledger" --json
check "as JSON too" 0 'says out "\"given_wei\":\"0\",\"purse_wei\":\"4500000000000000000\""'
run "$L" ledger faucet $address 1ether --ledger http://127.0.0.1:9
check "a chain has no free money, and it says what to do instead" 3 \
    'says err "this ledger is a chain" && says err "try: send money" && ! says err "registry"'
run "$L" ledger faucet $address much --ledger "local:$dir/try.ledger"
check "an amount is a number" 3 'says err "1.5ether"'
run "$L" ledger status --ledger "local:$dir/try.ledger"
check "it shows the money, which adds up" 0 \
    'says out "4.5 eth = 4.5 free + 0 in stakes + 0 in bonds + 0 in escrow + 0 owed" &&
    says out "4.5 eth = 4.5 brought in + 0 earned - 0 paid - 0 lost - 0 gas"'
run "$L" ledger status "$other" --ledger "local:$dir/try.ledger"
check "and that of any account" 0 'says out "$other" && says out "0 eth = 0 free" && ! says out "$address"'
run "$L" ledger status 0xf39 --ledger "local:$dir/try.ledger"
check "if it is one" 3 'says err "is not an address"'
run "$L" ledger status --ledger "local:$dir/try.ledger" --json
check "as JSON too" 0 'says out "\"purse_wei\":\"4500000000000000000\""'
run "$L" ledger watch --ledger "local:$dir/try.ledger"
check "nothing has happened yet" 0 '[ ! -s "$dir/out" ]'
run "$L" job new --data fixtures/text/village.u8 --layers 1 --heads 1 --width 16 --length 8 --batch 1 \
    --steps 2 --segment-steps 1 --out "$dir/small.job"
check "a job is written" 0 'true'
run "$L" job open "$dir/small.job" --ledger "local:$dir/try.ledger" --reward 0.5ether \
    --passphrase-file "$dir/pass" --yes
check "and opened" 0 'true'
run "$L" ledger status --ledger "local:$dir/try.ledger"
check "what a job holds is in escrow" 0 \
    'says out "4.5 eth = 1 free + 0 in stakes + 0 in bonds + 3.5 in escrow + 0 owed"'
run "$L" ledger watch --ledger "local:$dir/try.ledger"
check "what is about a whole job names no segment" 0 \
    'says out "opened" && says out "job 0x" && ! says out "segment"'
run "$L" ledger status --ledger "http://127.0.0.1:1" --registry 0x12
check "a wrong address is named" 3 'says err "--registry"'
run "$L" ledger status --ledger "http://127.0.0.1:1" --registry $address
check "a chain that is not there cannot be reached" 2 'says err "127.0.0.1:1"'

if [ ! -x "$ANVIL" ]; then
    count=$((count + 1))
    echo "ok $count - a contract on a chain # SKIP anvil is not installed: (cd tests/evm && npm ci)"
else
    "$ANVIL" --host 127.0.0.1 --port 0 >"$dir/anvil" 2>&1 &
    chain=$!
    tries=0
    while ! grep -q 'Listening on' "$dir/anvil" && [ $tries -lt 2400 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    url=http://$(sed -n 's/^Listening on //p' "$dir/anvil")
    run "$L" wallet new --light --passphrase-file "$dir/pass" --wallet "$dir/poor"
    poor=$(head -n 1 "$dir/out")
    run "$L" ledger deploy --ledger "$url" --passphrase-file "$dir/pass" --wallet "$dir/poor" \
        --timeout 5s
    check "an empty purse deploys nothing, and hears at once what is needed" 1 \
        'says err "$poor has 0 eth, and this needs up to 0." && says err "send money"'
    run "$L" ledger deploy --ledger "$url" --passphrase-file "$dir/pass" --timeout 4m
    check "a contract is deployed" 0 'says out "registry=0x"'
    registry=$(sed -n 's/^registry=//p' "$dir/out")
    first=$(cat "$dir/out")
    run "$L" ledger deploy --ledger "$url" --passphrase-file "$dir/pass" --timeout 4m
    check "the same name is the same contract" 0 '[ "$(cat "$dir/out")" = "$first" ]'
    run "$L" ledger status --ledger "$url" --registry "$registry"
    check "its money is shown, and with the gas it is to the wei what there was" 0 \
    'says out "eth = 9999." && says out "eth = 10000 brought in + 0 earned - 0 paid - 0 lost - 0.0" &&
    says out ": 0 earned, 0 paid, 0 lost, 0.0"'
    run env LOCKSTEP_LEDGER="$url" "$L" doctor
    check "doctor finds the chain, and misses the registry" 0 \
        'says out "eip155:31337, height" && says out "no registry= is named"'
    for try in first second; do # what was refused is not kept
        run "$L" job open "$dir/small.job" --ledger "$url" --registry "$registry" \
            --reward 0.5ether --passphrase-file "$dir/pass" --wallet "$dir/poor" --yes
        check "an empty purse opens no job, the $try time" 1 \
            'says err "$poor has 0 eth, and this needs up to 3."'
    done
    run "$L" ledger deploy --ledger "$url" --passphrase-file "$dir/pass" --name other \
        --token $address --timeout 4m
    check "an account is no token" 1 'says err "is no token"'
    token=$(sed -n '/define COIN_CODE/,/^$/p' tests/contracts/harness_code.h | tr -cd '0-9a-f"\n' |
        sed -n 's/.*"\([0-9a-f]*\)".*/\1/p' | tr -d '\n')
    token=$(/usr/bin/python3 - "$url" $address "0x$token" <<'END'
import json, sys, time, urllib.request
url, owner, code = sys.argv[1:]
def call(method, *params):
    body = json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': method, 'params': params}).encode()
    head = {'Content-Type': 'application/json'}
    return json.load(urllib.request.urlopen(urllib.request.Request(url, body, head)))['result']
def send(**fields):
    sent = call('eth_sendTransaction', dict(fields, gas='0x4c4b40', **{'from': owner}))
    while (receipt := call('eth_getTransactionReceipt', sent)) is None:
        time.sleep(0.1)
    return receipt
token = send(data=code)['contractAddress']
mint = '0x40c10f19' + owner[2:].rjust(64, '0') + '%064x' % 10**19
send(to=token, data=mint)
print(token)
END
)
    run "$L" ledger deploy --ledger "$url" --passphrase-file "$dir/pass" --name token \
        --token "$token" --timeout 4m
    check "a registry plays for a token" 0 'says out "registry=0x"'
    tokens=$(sed -n 's/^registry=//p' "$dir/out")
    run "$L" ledger status --ledger "$url" --registry "$tokens"
    check "the money shown is the token's" 0 'says out "of the token 0x" && says out "10000000000000000000 units = 10000000000000000000 free"'
    run "$L" job open "$dir/small.job" --ledger "$url" --registry "$tokens" \
        --reward 0.5ether --passphrase-file "$dir/pass" --yes
    check "a job is opened for tokens" 0 'says out "0x"'
    run "$L" ledger status --ledger "$url" --registry "$tokens"
    check "and its price is theirs, and gas is another matter" 0 \
    'says out "10000000000000000000 units = 6500000000000000000 free" &&
    says out " 3500000000000000000 in escrow" && says out "= 10000000000000000000 brought in" &&
    says out "0 lost; 0." && says out " eth of gas"'
    run env LOCKSTEP_LEDGER="$url" LOCKSTEP_REGISTRY="$tokens" "$L" doctor
    check "doctor names the token, and what makes one unfit" 0 \
        'says out "all is paid in the token" && says out "rebasing"'
    run "$L" ledger watch --ledger "$url" --registry "$registry"
    check "it can be watched" 0 'true'
    run "$L" ledger status --ledger "$url" --registry 0x0000000000000000000000000000000000000001
    check "what is no registry is told" 1 'says err "is the address right"'
    run env LOCKSTEP_LEDGER="$url" LOCKSTEP_REGISTRY="$registry" "$L" doctor
    check "doctor knows the registry's seeds" 0 'says out "eip155:31337, height"'
    run env LOCKSTEP_LEDGER="$url" LOCKSTEP_REGISTRY=0x0000000000000000000000000000000000000001 \
        "$L" doctor
    check "doctor refuses what is no registry" 1 'says out "is the address right"'
fi
finish
