#!/bin/sh
# Goal: a node is started, stopped, looked at, tested and moved from the shell, and
# refuses what it must.
# Method: runs the built program on an embedded ledger without jobs. Prints TAP.
set -u

L=$TEST_LOCKSTEP
. tests/support/tap.sh
node=
at_end() {
    [ -z "$node" ] || kill "$node" 2>/dev/null
}
export XDG_DATA_HOME="$dir/data" XDG_STATE_HOME="$dir/state" XDG_CONFIG_HOME="$dir/config"
printf 'pass words\n' >"$dir/pass"
chmod 600 "$dir/pass"

# Waits until a file says something. Only a machine that is very busy needs minutes.
wait_for() {
    tries=0
    until grep -qF -- "$2" "$1" 2>/dev/null || [ "$tries" -ge 2400 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
}
start() {
    "$L" verifier node --ledger "local:$dir/try.ledger" --passphrase-file "$dir/pass" --checks 1 \
        "$@" \
        >"$dir/node.out" 2>"$dir/node.err" </dev/null &
    node=$!
    wait_for "$dir/node.err" "started"
}

run "$L" ledger init "$dir/try.ledger"
run "$L" wallet new --light --passphrase-file "$dir/pass"
check "a key is made" 0 'true'

run "$L" verifier status
check "without a node there is no status" 3 'says err "no node has worked here"'
run "$L" verifier node --passphrase-file "$dir/pass"
check "a node needs a ledger" 3 'says err "no ledger is named"'
many=
for number in $(seq 33); do
    many="$many --data $dir/$number.u8"
done
# shellcheck disable=SC2086
run "$L" verifier node $many
check "files that it would not look into are refused" 3 'says err "names 33 files in all; a node takes 32"'

"$L" watch --ledger "local:$dir/try.ledger" >"$dir/out" 2>"$dir/watch.err" </dev/null &
watch=$!
wait_for "$dir/watch.err" "jobs followed: 0, alarms now: 0"
kill "$watch"
wait "$watch"
code=$?
check "a watch without alarms says that it looks" 0 'grep -q "jobs followed" "$dir/watch.err"'
run env -u HOME -u XDG_STATE_HOME -u XDG_DATA_HOME "$L" watch --once --ledger "local:$dir/try.ledger"
check "an embedded ledger is watched without a home" 0 'says out "no alarms"'

start --mirror "$dir/nowhere"
run "$L" verifier node --ledger "local:$dir/try.ledger" --passphrase-file "$dir/pass"
check "a second node with the same state is refused" 1 \
    'says err "another node uses this verdict database"'
run "$L" verifier status --json
check "its status is told while it runs" 0 'says out "\"jobs\":[]" && says out "\"money\""'
run "$L" verifier claims --json
check "so are its claims" 0 'says out "\"claims\":[]"'
run "$L" verifier verdicts export
check "its verdict database is in use" 1 'says err "another node uses this verdict database"'
kill -TERM "$node"
wait "$node"
code=$?
node=
check "it stops when it is asked to" 0 'says node.err "stopped"'

run "$L" verifier verdicts export "$dir/verdicts.json"
check "its verdict database is exported" 0 'grep -q lockstep_verdict_db "$dir/verdicts.json"'
run "$L" verifier verdicts export "$dir/nothing.json" --state "$dir/elsewhere"
check "a verdict database that is not there is not backed up" 3 \
    'says err "no node has kept" && [ ! -e "$dir/nothing.json" ] && [ ! -e "$dir/elsewhere" ]'
run "$L" verifier verdicts import "$dir/verdicts.json" --state "$dir/other"
check "and imported elsewhere" 0 'says out "0 verdicts are new"'
run "$L" verifier verdicts lend
check "and nothing else" 3 'says err "exported or imported"'

place=$dir/state/lockstep/verifier
try_node() { run timeout 120 "$L" verifier node --ledger "local:$dir/try.ledger" --passphrase-file "$dir/pass" "$@"; }
chmod 750 "$place"
try_node
check "a state folder that others may read is refused" 1 \
    'says err "others may read the state folder $place (mode 750)" && says err "chmod 700 $place"'
chmod 700 "$place"
mkdir "$dir/open" && chmod 707 "$dir/open"
try_node --state "$dir/open"
check "and one that others may write to, which stays empty" 1 \
    'says err "others may write to the state folder" && [ -z "$(ls -A "$dir/open")" ]'
mkdir -p "$dir/state/lockstep/solver" && chmod 755 "$dir/state/lockstep/solver"
run timeout 120 "$L" prover node --ledger "local:$dir/try.ledger" --passphrase-file "$dir/pass" --jobs "$dir"
check "so is a solver's" 1 'says err "others may read the state folder $dir/state/lockstep/solver"'

# What nodes of earlier editions left: a database by its number, another by its tables.
/usr/bin/python3 - "$place/node.db" "$dir/older" "$dir/oldest" <<'END'
import os, shutil, sqlite3, sys
now, older, oldest = sys.argv[1:]
for folder, version in ((older, 9), (oldest, 2)):
    os.mkdir(folder, 0o700)
    shutil.copy(now, folder)
    with sqlite3.connect(folder + "/node.db") as file:
        file.execute("PRAGMA user_version = %d" % version)
with sqlite3.connect(oldest + "/verdicts.db") as file:
    file.execute("CREATE TABLE meta (name TEXT PRIMARY KEY, value NOT NULL)")
    file.execute("INSERT INTO meta VALUES ('version', 3), ('secret', zeroblob(32))")
END
older() {
    check "the state of an earlier edition is refused by 'verifier $1', with what to do" 1 \
        'says err "the node'"'"'s database is of version 9; this program knows 1" &&
        says err "an earlier edition of the game: name another folder with --state"'
}
try_node --state "$dir/older"
older node
run "$L" verifier status --state "$dir/older"
older status
try_node --state "$dir/oldest"
check "and a verdict database of before sums" 1 \
    'says err "the verdict database is of version 3" && says err "verifier verdicts export"'
run "$L" verifier verdicts export "$dir/none.json" --state "$dir/oldest"
check "from which nothing is exported in silence" 1 'says err "is of version 3" && [ ! -e "$dir/none.json" ]'

run "$L" ledger init "$dir/second.ledger"
run "$L" verifier node --ledger "local:$dir/second.ledger" --passphrase-file "$dir/pass"
check "the state of one ledger does not serve another" 1 \
    'says err "this state is that of the node of"'
run "$L" verifier node --ledger "local:$dir/try.ledger" --passphrase-file "$dir/pass" --extra 2
check "what is checked besides is a fraction" 3 'says err "a fraction"'

run "$L" verifier node --ledger "local:$dir/try.ledger" --passphrase-file "$dir/pass" --page x
check "a place to serve the status is one" 3 'says err "is no place to listen at"'
run "$L" verifier node --ledger "local:$dir/try.ledger" --passphrase-file "$dir/pass" --checks 3 --bandwidth-max 4
check "a bandwidth that is less than a byte for each child is refused" 3 \
    'says err "--bandwidth-max 4: 5 children share it"'
command -v python3 >/dev/null 2>&1 && {
    # A service manager of one socket; the node must tell it, and go on SIGTERM. A socket holds few
    # messages: it is emptied before the last one.
    python3 -c '
import os, re, signal, socket, subprocess, sys, urllib.request
place = sys.argv[1] + "/notify"
manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
manager.bind(place)
manager.settimeout(240)
node = subprocess.Popen(sys.argv[2:], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
                        env=dict(os.environ, NOTIFY_SOCKET=place, WATCHDOG_USEC="4000000"))
try:
    assert manager.recv(999).startswith(b"READY=1\nSTATUS="), "no READY"
    assert manager.recv(999) == b"WATCHDOG=1", "no WATCHDOG"
    url = None
    while url is None:
        url = re.search(r"http://\S+", node.stderr.readline().decode())
    ask = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
    assert b"lockstep_node_healthy 1" in ask(url.group() + "metrics", timeout=240).read()
    assert ask(url.group() + "health", timeout=240).read() == b"well\n"
    manager.setblocking(False)
    try:
        while manager.recv(999):
            pass
    except BlockingIOError:
        manager.settimeout(240)
    node.send_signal(signal.SIGTERM)
    assert node.wait(240) == 0
    last = b""
    while not last.startswith(b"STOPPING=1"):
        last = manager.recv(999)
    print("stopped")
finally:
    node.kill()
' "$dir" "$L" verifier node --ledger "local:$dir/try.ledger" --passphrase-file "$dir/pass" \
        --checks 1 --page 0 >"$dir/out" 2>"$dir/err"
    code=$?
    check "the service manager and Prometheus are told, and that it stops" 0 'says out "stopped"'
}

run "$L" watch --ledger "local:$dir/try.ledger" --once
check "an empty ledger has no alarms" 0 'says out "no alarms"'
run "$L" watch --ledger "local:$dir/try.ledger" --once --json
check "so it says as JSON" 0 'says out "\"alarms\":[]"'
command -v python3 >/dev/null 2>&1 && {
    run python3 -c '
import os, signal, socket, subprocess, sys
place = sys.argv[1] + "/watched"
manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
manager.bind(place)
manager.settimeout(240)
watcher = subprocess.Popen(sys.argv[2:], env=dict(os.environ, NOTIFY_SOCKET=place))
assert manager.recv(999).startswith(b"READY=1\n"), "no READY"
watcher.send_signal(signal.SIGTERM)
sys.exit(watcher.wait(240))
' "$dir" "$L" watch --ledger "local:$dir/try.ledger" --poll 1h
    check "who watches stops when asked to" 0 '! grep -qv "info watch: jobs followed" "$dir/err"'
}

run "$L" verifier node --self-test --self-test-rounds 4 --self-test-seed 5 --json
check "the self-test tells true from false" 0 'says out "\"wrong\":0"'

finish
