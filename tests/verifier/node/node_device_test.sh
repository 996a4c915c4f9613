#!/bin/sh
# Goal: the checks of a node compute where --device says, a lie that a GPU finds is confirmed on the CPU, and a GPU that is
# not there is refused before anything is checked. A driver may reserve what it likes: the limit of a check's memory is the
# job's.
# Method: the self-test's true and false steps, in children, with the emulated device of tests/support as the plugin. Which
# machine a request gets: check_machine_test.c.
set -u

lockstep=${TEST_LOCKSTEP:?}
. tests/support/tap.sh
export LOCKSTEP_CUDA="$PWD/build/tests/emulated_cuda.so"

test_steps() { # test_steps CODE ROUNDS OPTION...
    wanted=$1
    rounds=$2
    shift 2
    "$lockstep" verifier node --self-test --self-test-rounds "$rounds" --self-test-seed 3 --state "$dir/state" --threads 1 --json "$@" \
        >"$dir/out" 2>"$dir/err"
    [ $? = "$wanted" ]
}

told() {
    grep -q "$1" "$dir/$2"
}

# The driver takes more than the 1 GiB that the self-test lets a check have.
every_kind() {
    EMULATED_RESERVES=5 test_steps 0 6 --device cuda && told '"proven":[1-9]' out && told '"refuted":[1-9]' out && told '"wrong":0' out
}
nowhere() {
    LOCKSTEP_CUDA=$dir/none test_steps "$1" 1 --device cuda && told 'none' out
}
no_such() {
    test_steps 3 1 --device tpu && told 'tpu' out
}

holds "on a GPU true steps are proven and false ones refuted, no matter what its driver reserves" every_kind
holds "a GPU that is not there is refused" nowhere 2
holds "a device that nobody knows is refused" no_such
finish
