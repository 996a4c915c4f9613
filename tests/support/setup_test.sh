#!/bin/sh
# Goal: on a machine that lacks something, the set-up says what, and how to come by it, in any state
# of that machine; and a compiler that is newer than we know does not fail over its warnings.
# Method: scripts/setup under a PATH of stand-ins for apt-get, sudo and id, which write down how they
# were called; the Makefile with a stand-in for the compiler that says any version. Prints TAP.
set -u

. tests/support/tap.sh
# What make told its recipes must not reach the make of this test.
unset MAKEFLAGS MAKELEVEL MFLAGS CC WERROR LOCKSTEP_NO_INSTALL

stand_in() { # NAME: its body on stdin
    rm -f "$dir/bin/$1"
    { echo '#!/bin/sh'; echo "echo \"\$(basename \$0) \$*\" >>'$dir/called'"; cat; } >"$dir/bin/$1"
    chmod 755 "$dir/bin/$1"
}
# A machine with a shell and little more, on which somebody with this uid works.
machine() { # UID
    rm -rf "$dir/bin" "$dir/called"
    mkdir -p "$dir/bin" "$dir/tmp"
    : >"$dir/called"
    for tool in sh env basename ls cat sed tr uname mkdir touch sleep; do
        ln -s "$(command -v "$tool")" "$dir/bin/$tool"
    done
    printf 'echo %s\n' "$1" | stand_in id
    echo 'exit 0' | stand_in apt-get
    echo 'exit 0' | stand_in apt-cache
    echo 'exec "$@"' | stand_in sudo
}
run() { # ARGUMENT...: "no-such-compiler" is always missing
    env -i PATH="$dir/bin" CC="${compiler:-no-such-compiler}" TMPDIR="$dir/tmp" "$@" >"$dir/told" 2>&1
}
told() {
    grep -q -e "$1" "$dir/told"
}

machine 0
run scripts/setup --install build
[ $? = 0 ] && grep -q '^apt-get .*install --no-install-recommends.* gcc' "$dir/called" &&
    ! grep -q '^sudo' "$dir/called"
result $? "root installs without sudo"

machine 1000
run scripts/setup --install build
[ $? = 0 ] && grep -q '^sudo apt-get .*update' "$dir/called" &&
    grep -q '^sudo env .*apt-get .*install.* gcc' "$dir/called"
result $? "a user installs with sudo"

machine 1000
rm "$dir/bin/sudo"
run scripts/setup --install build
[ $? = 1 ] && told 'no sudo here; as root, run: apt-get update && apt-get install .* gcc' &&
    ! told 'not found' && ! grep -q '^apt-get' "$dir/called"
result $? "without sudo a user is told what root should run, and nothing is tried"

machine 0
run env LOCKSTEP_NO_INSTALL=1 scripts/setup --install build
[ $? = 1 ] && told 'install with: apt-get update && apt-get install .* gcc' &&
    ! grep -q '^apt-get' "$dir/called"
result $? "LOCKSTEP_NO_INSTALL=1 only prints the command"

machine 0
run scripts/setup --check build
[ $? = 1 ] && told 'missing for build: gcc' && ! grep -q '^apt-get' "$dir/called"
result $? "--check only prints the command"

machine 0
rm "$dir/bin/apt-get"
run scripts/setup --install build
[ $? = 1 ] && told 'missing for build: gcc' && told "there is no apt-get here"
result $? "without apt-get it says so"

machine 0
echo 'exit 100' | stand_in apt-get
run scripts/setup --install build
[ $? = 1 ] && told 'apt-get update failed' && told 'could not install that: is there a network'
result $? "without a network it says what may be wrong"

machine 0
run scripts/setup --install build node fuzz
[ $? = 0 ] && [ "$(grep -c '^apt-get .*install' "$dir/called")" = 1 ] &&
    grep -q '^apt-get .*install.* gcc.* nodejs npm.* clang' "$dir/called"
result $? "all parts are installed at once"

machine 0
compiler=clang-99 run scripts/setup --install build
[ $? = 0 ] && grep -q '^apt-get .*install.* clang-99' "$dir/called" &&
    ! grep -q '^apt-get .*install.* gcc' "$dir/called"
result $? "another compiler is installed by its own name"

# Where npm was called, by the version of the system's node.
npm_with_node() { # VERSION
    machine 0
    echo "echo $1" | stand_in node
    echo "pwd >>'$dir/places'" | stand_in npm
    echo 'echo x86_64' | stand_in uname
    : >"$dir/places"
    run scripts/setup --install evm
}
npm_with_node v12.22.9
[ $? = 0 ] && told 'the tests get one of their own' &&
    [ "$(sed 's|.*/tests|tests|' "$dir/places" | xargs)" = "tests/evm/node tests/evm" ]
result $? "an old node is given a newer one beside it"

npm_with_node v18.20.4
[ $? = 0 ] && [ "$(sed 's|.*/tests|tests|' "$dir/places" | xargs)" = "tests/evm" ]
result $? "a newer one is used as it is"

npm_with_node v20.1.0 && echo 'exit 1' | stand_in npm && echo 'exit 0' | stand_in sleep &&
    ! run scripts/setup --install evm && [ "$(grep -c '^npm' "$dir/called")" = 4 ]
result $? "a registry in trouble is asked three times, then it fails"

machine 0
run scripts/setup --install nonsense
[ $? = 3 ] && told "there is no part 'nonsense'"
result $? "a part that is none is refused"

# How the Makefile would compile with a compiler that calls itself so.
strict() { # NAME VERSION [VARIABLE...]
    printf 'echo %s\n' "$2" | stand_in "$1"
    compiler=$dir/bin/$1
    shift 2
    make -n V=1 NVCC= BUILD="$dir/build" CC="$compiler" "$@" "$dir/build/base/hex.o" \
        >"$dir/told" 2>&1 || return 2
    grep -q ' -c .*base/hex.c' "$dir/told" || return 2
    grep -q -e '-Werror' "$dir/told"
}
if command -v make >/dev/null 2>&1; then
    machine 0
    strict gcc 12 && strict gcc 13.3.0 && strict gcc 14 && strict clang-19 19.1.7 && strict clang 14.0.6
    result $? "warnings of the compilers that we know are errors"
    strict gcc 99
    [ $? = 1 ]
    result $? "those of a later gcc are not"
    strict clang 99.0.1
    [ $? = 1 ]
    result $? "nor those of a later clang"
    strict gcc 99 WERROR=1
    result $? "unless they are to be"
    strict gcc 12 WERROR=
    [ $? = 1 ]
    result $? "nor any when they are not to be"

    # The first minutes: make is silent about a compiler that is not there, counts what it compiles, and
    # installs no npm, which is hundreds of packages, for the sake of a test.
    make -n NVCC= BUILD="$dir/new" CC="$dir/bin/not-there" demo >"$dir/told" 2>&1 && ! told 'not-there: No such file'
    result $? "nothing is said about a compiler before it is installed"
    rm "$dir/bin/sh" && ln -s "$(command -v sh)" "$dir/bin/sh" && ln -s "$(command -v make)" "$dir/bin/make"
    for tool in find sort grep head cut nproc; do ln -s "$(command -v $tool)" "$dir/bin/$tool"; done
    PATH=$dir/bin make -n NVCC= BUILD="$dir/new" test >"$dir/told" 2>&1
    ! told 'scripts/setup .*\(node\|evm\)' && told 'make judges installs them'
    result $? "without npm the tests install none, and say so"
    mkdir -p "$dir/new/setup" && touch "$dir/new/setup/build.ok"
    make -j1 CC=true NVCC= WERROR= BUILD="$dir/new" "$dir/new/base/hex.o" "$dir/new/base/error.o" >"$dir/told" 2>&1 &&
        told 'CC  *1 of 2 .*hex.o$' && told 'CC  *2 of 2 .*error.o  (then it is linked)$'
    result $? "each file that is compiled has its number of how many"
fi

finish
