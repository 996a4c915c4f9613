#!/bin/sh
# tap.sh - what tests in sh share: a folder, commands that are run in it, and TAP. A test says
# ". tests/support/tap.sh" at the root of the repository, where all tests run, and ends with "finish".
#
# $dir is a folder of the test's own. at_end(), where a test defines it, is called before it goes.
dir=$(mktemp -d)
count=0
bad=0
at_end() { :; }
trap 'at_end; rm -rf "$dir"' EXIT

# result CODE NAME: 0 is right. What a command said last, in out, err or told, tells why it is not.
result() {
    count=$((count + 1))
    if [ "$1" = 0 ]; then
        echo "ok $count - $2"
        return 0
    fi
    echo "not ok $count - $2"
    bad=1
    for tap_file in out err told; do
        [ ! -e "$dir/$tap_file" ] || tail -n 30 "$dir/$tap_file" | sed "s/^/# $tap_file: /"
    done
}

skip() { # NAME WHY
    count=$((count + 1))
    echo "ok $count - $1 # SKIP $2"
}

# run COMMAND...: $code is how it ended, and the files out and err what it said.
run() {
    "$@" >"$dir/out" 2>"$dir/err" </dev/null
    code=$?
}

# check NAME CODE CONDITION: the last run ended so, and the commands of the condition succeed.
check() {
    if [ "$2" = "$code" ] && eval "$3"; then
        result 0 "$1"
    else
        result 1 "$1"
        echo "# exit code $code, wanted $2 and: $3"
    fi
}
says() { grep -qF -- "$2" "$dir/$1"; }

# holds NAME COMMAND...: the command succeeds.
holds() {
    tap_name=$1
    shift
    if "$@"; then
        result 0 "$tap_name"
    else
        result 1 "$tap_name"
    fi
}

finish() {
    echo "1..$count"
    exit "$bad"
}
