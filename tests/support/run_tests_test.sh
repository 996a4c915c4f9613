#!/bin/sh
# Goal: the runner cannot be fooled into green: crashes, time limits, missing results and empty
# runs fail, and the last line is exactly the count.
# Method: small programs that pass, fail, skip, crash, hang and stop half-way. Prints TAP.
set -u

limit=300
again=

runner=$(pwd)/scripts/run-tests
. tests/support/tap.sh

# program NAME BODY
program() {
    printf '#!/bin/sh\n%s\n' "$2" >"$dir/$1"
    chmod +x "$dir/$1"
}
# check NAME EXIT LASTLINE PROGRAM...
check() {
    name=$1 wanted_code=$2 wanted=$3
    shift 3
    (cd "$dir" && "$runner" ${again:+"$again"} -b "$dir" -j 2 -t "$limit" "$@") >"$dir/told" 2>&1
    code=$?
    [ "$code" = "$wanted_code" ] && [ "$(tail -n 1 "$dir/told")" = "$wanted" ]
    result $? "$name"
}

program good 'echo 1..2; echo ok 1 - a; echo ok 2 - b'
program wrong 'echo 1..2; echo ok 1 - a; echo not ok 2 - b; exit 1'
program skips 'echo 1..2; echo ok 1 - a; echo "skip: no GPU"; echo "ok 2 # SKIP b"'
program explains 'echo 1..1; echo "ok 1 - b # SKIP no GPU"'
program nothing 'echo "1..0 # SKIP no GPU"'
program crash 'echo 1..3; echo ok 1 - a; kill -SEGV $$'
program hang 'echo 1..1; sleep 3600'
program early 'echo 1..4; echo ok 1 - a'
program liar 'echo 1..1; echo ok 1 - a; exit 5'
program silent 'exit 0'
program silentbad 'exit 4'
program silentskip 'echo "skip: nothing here"; exit 77'
program empty 'echo 1..0'

check passing_tests_are_counted 0 "2 passed, 0 failed" "$dir/good"
check failed_test_fails_the_run 1 "3 passed, 1 failed" "$dir/good" "$dir/wrong"
check skipped_tests_are_counted_apart 0 "1 passed, 0 failed, 1 skipped" "$dir/skips"
check crash_fails_what_did_not_run 1 "1 passed, 2 failed" "$dir/crash"
limit=2
check hanging_test_is_ended_and_fails 1 "0 passed, 1 failed" "$dir/hang"
again=-s
check without_time_it_is_skipped_where_that_is_asked_for 0 "2 passed, 0 failed, 1 skipped" "$dir/hang" "$dir/good"
program leaves 'echo 1..2; echo ok 1 - a; echo "ok 2 # SKIP b"; exit 1'
grep -q "skip .*hang: it ran longer than 2 s" "$dir/told" || bad=1
check memory_of_a_skipped_test_may_be_left_there 0 "1 passed, 0 failed, 1 skipped" "$dir/leaves"
again=
check but_not_elsewhere 1 "1 passed, 1 failed, 1 skipped" "$dir/leaves"
limit=300
check early_end_fails_what_is_missing 1 "1 passed, 3 failed" "$dir/early"
check bad_exit_code_fails_a_green_list 1 "1 passed, 1 failed" "$dir/liar"
check program_without_a_list_is_one_test 1 "1 passed, 1 failed, 1 skipped" \
    "$dir/silent" "$dir/silentbad" "$dir/silentskip"
program groupskip 'echo "skip: no chain"; exit 255'
program groupfail 'exit 255'
check group_whose_set_up_skips_is_skipped 1 "2 passed, 1 failed, 1 skipped" \
    "$dir/good" "$dir/groupskip" "$dir/groupfail"
grep -q "skip .*groupskip: no chain$" "$dir/told" || bad=1
check missing_program_is_a_failure 1 "0 passed, 1 failed" "$dir/not-there"
check empty_run_is_a_failure 1 "0 passed, 0 failed"
check only_skipped_is_a_failure 1 "0 passed, 0 failed, 1 skipped" "$dir/silentskip"
check reason_of_a_skip_is_shown 0 "1 passed, 0 failed, 1 skipped" "$dir/skips"
grep -q "skip .*b: no GPU" "$dir/told" || bad=1
check reason_behind_a_skip_is_shown 0 "1 passed, 0 failed, 1 skipped" "$dir/silent" "$dir/explains"
grep -q "skip .*explains: b: no GPU$" "$dir/told" || bad=1
check a_list_that_is_skipped_is_a_skip 0 "1 passed, 0 failed, 1 skipped" "$dir/silent" "$dir/nothing"
grep -q "skip .*nothing: no GPU$" "$dir/told" || bad=1
check plan_of_zero_is_not_a_pass 1 "0 passed, 0 failed" "$dir/empty"

# Nothing of ours survives: what a test started and forgot is named, ended and counted.
program forgets 'echo 1..1; sleep 3600 & echo $! >forgotten; echo ok 1 - a'
check process_left_behind_fails_the_run 1 "1 passed, 1 failed" "$dir/forgets"
grep -q "left process $(cat "$dir/forgotten") behind: sleep 3600" "$dir/told" || bad=1
# Ended, though maybe nobody has asked yet how.
[ ! -s "/proc/$(cat "$dir/forgotten")/cmdline" ] || bad=1

# The second chance of scripts: only with -a, only scripts, only once, and never silently.
unsteady='if [ -e been ]; then echo ok 1 - a; else : >been; echo not ok 1 - a: weather; exit 1; fi'
program unsteady.sh "$unsteady"
check a_script_has_one_chance 1 "0 passed, 1 failed" "$dir/unsteady.sh"
again=-a
rm "$dir/been"
check a_script_that_fails_once_is_run_again_alone 0 "1 passed, 0 failed" "$dir/unsteady.sh"
grep -q "^---- UNSTEADY $dir/unsteady.sh: exit code 1" "$dir/told" || bad=1
grep -q "^not ok 1 - a: weather" "$dir/told" || bad=1
program wrong.sh 'echo not ok 1 - a; exit 1'
check a_script_that_fails_twice_is_a_failure 1 "2 passed, 1 failed" "$dir/good" "$dir/wrong.sh"
program unsteady "$unsteady"
rm "$dir/been"
check a_compiled_test_has_one_chance 1 "0 passed, 1 failed" "$dir/unsteady"

# What each took is kept, the dearest first: of the processor, by the clock. A second run counts
# again.
program spins 'i=0; while [ $i -lt 600000 ]; do i=$((i + 1)); done; echo ok 1 - a'
program rests 'sleep 1; echo ok 1 - a'
check times_are_kept 0 "2 passed, 0 failed" "$dir/rests" "$dir/spins"
awk -v dir="$dir" '
    NR == 1 && $3 == "spins" && $1 >= 0.05 && $1 < 60 { good++ }
    NR == 2 && $3 == "rests" && $1 < $2 && $2 >= 1 { good++ }
    END { exit good != 2 || NR != 2 }' "$dir/results/times" || bad=1

# Each line says how many are done, and about how long the rest takes, by what it took the last time.
rm -f "$dir"/times "$dir"/results/times
mkdir -p "$dir/tests"
printf '1.00 300.00 good\n1.00 600.00 rests\n' >"$dir/tests/times.txt"
check count_and_forecast_are_shown 0 "3 passed, 0 failed" "$dir/good" "$dir/rests"
grep -q "good: 2 in .* (1 of 2, about 5 min more)$" "$dir/told" && grep -q "rests: 1 in .* (2 of 2)$" "$dir/told" || bad=1
check what_a_test_took_last_is_the_forecast 0 "3 passed, 0 failed" "$dir/good" "$dir/rests"
grep -q "good: 2 in .* (1 of 2)$" "$dir/told" || bad=1

# In parts, as make calls it.
part() { # PART PROGRAM...
    part=$1
    shift
    (cd "$dir" && "$runner" -m "$part" -b "$dir" -j 2 -t 300 "$@") >"$dir/told" 2>&1
}
part begin "$dir/good" "$dir/wrong" "$dir/silentskip" && part one "$dir/silentskip" &&
    part one "$dir/good" && grep -q "good: 2 in .* (2 of 3)$" "$dir/told"
result $? "programs run one by one are counted"
part end "$dir/good" "$dir/silentskip" && [ "$(tail -n 1 "$dir/told")" = "2 passed, 0 failed, 1 skipped" ]
result $? "the end reports what was run"
part end "$dir/good" "$dir/wrong" "$dir/silentskip"
[ $? = 1 ] && [ "$(tail -n 1 "$dir/told")" = "2 passed, 1 failed, 1 skipped" ]
result $? "what was not run fails"
# Each waits for the other: only side by side do both pass.
program meets 'echo here >met; while [ ! -s answered ]; do sleep 0.1; done; echo ok 1 - a'
program answers 'while [ ! -s met ]; do sleep 0.1; done; echo here >answered; echo ok 1 - a'
part begin "$dir/meets" "$dir/answers" && part some "$dir/meets" "$dir/answers" &&
    part end "$dir/meets" "$dir/answers" && [ "$(tail -n 1 "$dir/told")" = "2 passed, 0 failed" ]
result $? "some run side by side"
finish
