#!/bin/sh
# Goal: without a GPU, gpu-check says so in one sentence and an advice, and exits 2: cannot tell.
# Method: runs it with the plugin turned off, and as it is where there is no driver. Prints TAP.
set -u

check=$TEST_BUILD/gpu-check
if [ ! -x "$check" ]; then
    check=$(dirname "$TEST_LOCKSTEP")/gpu-check
fi
if [ ! -x "$check" ]; then
    echo "gpu-check is not built: make build/gpu-check"
    exit 77
fi
bad=0

# says NUMBER NAME TEXT: the last run ended with 2 and named its reason.
says() {
    if [ "$code" = 2 ] && printf '%s\n' "$said" | grep -qF -- "$3"; then
        echo "ok $1 - $2"
    else
        echo "not ok $1 - $2"
        printf '# exit code %s: %s\n' "$code" "$said"
        bad=1
    fi
}

echo 1..2
said=$(LOCKSTEP_CUDA=off "$check" 2>&1)
code=$?
says 1 "gpu-check names the plugin that is turned off" "turned off"
if [ -e /dev/nvidiactl ]; then
    echo "ok 2 - gpu-check without a device # SKIP there is a device"
else
    said=$("$check" 2>&1)
    code=$?
    says 2 "gpu-check without a device says what is missing" "gpu-check: there is no"
fi
exit "$bad"
