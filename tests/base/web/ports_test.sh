#!/bin/sh
# Goal: all that the house serves by default fits on one machine: no two have the same port, and what
# we show people, in help, examples, units and documents, has each command at its own port.
# Method: the numbers of base/web/ports.h; every port 75xx that the program's help, packaging and
# documents name, with the command and the option of its line. Prints TAP.
set -u

. tests/support/tap.sh
header=base/web/ports.h

port() { sed -n "s/^#define PORT_$1 *\"\([0-9]*\)\".*/\1/p" "$header"; }

sed -n 's/^#define PORT_[A-Z_]* *"\([0-9]*\)".*/\1/p' "$header" | sort | uniq -d >"$dir/told"
[ "$(grep -c '^#define PORT_' "$header")" -ge 8 ] && [ ! -s "$dir/told" ]
result $? "no two servers have one port"

for room in base chain client prover verifier; do
    grep -rnE --include='*.c' '"[^"]*\b75[0-9]{2}\b' "$room" | grep -v '^base/io/listen.c'
done >"$dir/told"
[ ! -s "$dir/told" ]
result $? "no source names a port by its number"

# Text that people read, a command with its continuation lines on one.
{
    for command in "job serve" "job watch" "prover serve" "prover run" "prover node" "verifier node" watch; do
        # shellcheck disable=SC2086 # two words
        "$TEST_LOCKSTEP" $command --help all
    done
    cat README.md docs/*.md packaging/*.service
} | sed -e ':more' -e '/\\$/{N;s/\\\n */ /;b more' -e '}' >"$dir/text"

# at OPTION COMMAND PORT...: where the command is shown with the option, it has this port.
at() {
    option=$1 command=$2
    shift 2
    grep -E "(lockstep|@BIN@/lockstep) $command .*--$option[ =][^ ]*\b75[0-9]{2}\b" "$dir/text" |
        grep -vE -- "--$option[ =][^ ]*\b$1\b" >"$dir/told"
    [ -n "$1" ] && [ ! -s "$dir/told" ]
    result $? "$command --$option is shown with port $1 alone"
}
at serve 'prover (run|node)' "$(port SOLVER_BUNDLES)"
at page 'verifier node' "$(port VERIFIER_PAGE)"
at page 'prover (run|node)' "$(port SOLVER_PAGE)"
at page '(job )?watch' "$(port WATCH_PAGE)"
at serve 'job watch' "$(port WATCH_KEPT)"
at serve 'verifier node' "$(port VERIFIER_KEPT)"
at serve 'job serve' "$(port JOB_SERVE)"
at serve 'prover serve' "$(port PROVER_SERVE)"

tr -s '[:space:]' ' ' <"$dir/text" >"$dir/words"
grep -q "(default 127.0.0.1:$(port JOB_SERVE))" "$dir/words" &&
    grep -q "(default 127.0.0.1:$(port PROVER_SERVE))" "$dir/words" &&
    grep -q "^serve=127.0.0.1:$(port PROVER_SERVE)$" packaging/examples/serve.conf
result $? "the defaults are the header's"
finish
