#!/bin/sh
# Goal: keys and signatures go to and from other wallets, and no passphrase goes anywhere.
# Method: runs the built program next to the pinned cast. Prints TAP.
set -u

L=$TEST_LOCKSTEP
CAST=tests/evm/node_modules/@foundry-rs/cast-linux-amd64/bin/cast
. tests/support/tap.sh
export XDG_DATA_HOME="$dir/data" XDG_STATE_HOME="$dir/state" XDG_CONFIG_HOME="$dir/config"
unset LOCKSTEP_PASSPHRASE
printf 'pass words\n' >"$dir/pass"
chmod 600 "$dir/pass"

run "$L" wallet new --light --passphrase-file "$dir/pass"
check "a new key is made" 0 'says out 0x'
address=$(head -n 1 "$dir/out")
file=$(echo "$dir"/data/lockstep/wallet/UTC--*)
check "only its owner may read it" 0 '[ "$(stat -c %a "$file")" = 600 ]'
run "$L" wallet list --json
check "the list is JSON" 0 'says out "$address"'
run "$L" wallet sign hello --passphrase-file "$dir/pass"
check "it signs" 0 '[ "$(wc -c <"$dir/out")" -eq 133 ]'
signature=$(cat "$dir/out")
run env LOCKSTEP_PASSPHRASE='pass words' "$L" wallet sign hello
check "the variable serves as well" 0 'says out "$signature"'
run env LOCKSTEP_PASSPHRASE=wrong "$L" wallet sign hello
check "a wrong passphrase is refused" 1 'says err "wrong passphrase"'
chmod 644 "$dir/pass"
run "$L" wallet sign hello --passphrase-file "$dir/pass"
check "a passphrase file that others may read is refused" 1 'says err "chmod 600"'
chmod 600 "$dir/pass"
run "$L" wallet sign hello --json
check "with --json nobody is asked" 3 'says out "nobody to ask"'
run "$L" wallet sign --hash 0x1234 --passphrase-file "$dir/pass"
check "half a hash is refused" 3 'says err "64 hex"'
run "$L" wallet address 0x5AAeb6053F3E94C9b9A09f33669435E7Ef1BeAed
check "a wrong checksum is refused" 3 'says err "checksum"'
printf '0000000000000000000000000000000000000000000000000000000000000000\n' >"$dir/zero"
run "$L" wallet import --passphrase-file "$dir/pass" "$dir/zero"
check "a key of zero is refused" 1 'says err "64 hex digits"'
printf '{"version":3' >"$dir/cut"
run "$L" wallet import --passphrase-file "$dir/pass" "$dir/cut"
check "a key file that is cut is named" 1 'says err "$dir/cut: not a key file"'

if [ ! -x "$CAST" ]; then
    count=$((count + 1))
    echo "ok $count - keys go to and from cast # SKIP cast is not installed: (cd tests/evm && npm ci)"
else
    run "$CAST" wallet address --keystore "$file" --password 'pass words'
    check "cast opens our key" 0 'says out "$address"'
    run "$CAST" wallet verify --address "$address" hello "$signature"
    check "cast verifies our signature" 0 'says out succeeded'
    key=0x4646464646464646464646464646464646464646464646464646464646464646
    run "$CAST" wallet import -k "$dir/foreign" theirs --private-key $key --unsafe-password 'pass words'
    check "cast writes a key" 0 '[ -s "$dir/foreign/theirs" ]'
    run "$L" wallet import --light --passphrase-file "$dir/pass" "$dir/foreign/theirs"
    check "we open its key" 0 'says out 0x9d8A62f656a8d1615C1294fd71e9CFb3E4855A4F'
    run "$CAST" wallet sign --private-key $key hello
    theirs=$(cat "$dir/out")
    run "$L" wallet sign hello --passphrase-file "$dir/pass" \
        --account 0x9d8A62f656a8d1615C1294fd71e9CFb3E4855A4F
    check "both sign alike" 0 'says out "$theirs"'
    # Its file names no address.
    echo '{"version":3}' >"$dir/foreign/other.json"
    run "$L" wallet list --wallet "$dir/foreign" --json
    check "a key file without an address is listed, other JSON is not" 0 \
        'says out "{\"keys\":[{\"address\":null,\"file\":\"$dir/foreign/theirs\"}]}"'
    run "$L" wallet list --wallet "$dir/foreign"
    check "the list says that it names none" 0 \
        'says out "names no address" && says out "$dir/foreign/theirs"'
    run "$L" wallet sign hello --passphrase-file "$dir/pass" --account "$dir/foreign/theirs"
    check "it signs when its file is the account" 0 'says out "$theirs"'
    run "$L" wallet sign hello --passphrase-file "$dir/pass" --wallet "$dir/foreign"
    check "it signs as the only key of a folder" 0 'says out "$theirs"'
    run "$L" wallet address --passphrase-file "$dir/pass" --wallet "$dir/foreign"
    check "its passphrase gives its address" 0 \
        'says out 0x9d8A62f656a8d1615C1294fd71e9CFb3E4855A4F'
    "$L" ledger init "$dir/try.ledger" >"$dir/told"
    run "$L" ledger status --wallet "$dir/foreign" --ledger "local:$dir/try.ledger"
    check "the status of a ledger names its file" 0 \
        'says out "$dir/foreign/theirs names no address"'
    run "$L" wallet address --wallet "$dir/foreign" 0x9d8A62f656a8d1615C1294fd71e9CFb3E4855A4F
    check "an address that no file names is not found, and the file is" 3 \
        'says err "--account FILE"'
fi
finish
