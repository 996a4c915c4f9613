#!/bin/sh
# Goal: the command line has documented exit codes, one line per mistake, and JSON with --json.
# Method: runs the built program and compares exit code, stdout and stderr. Prints TAP.
set -u

L=$TEST_LOCKSTEP
. tests/support/tap.sh

lines() { [ "$(wc -l <"$dir/$1")" -eq "$2" ]; }
silent() { [ ! -s "$dir/$1" ]; }

run "$L" --version
check "version_is_one_line" 0 'lines out 1 && says out "lockstep 0." && silent err'
run "$L" --version --json
check "version_as_json_is_json" 0 'says out "{\"version\":\"0."'
run "$L" help
check "help_fits_a_screen" 0 'says out "doctor" && [ "$(wc -l <"$dir/out")" -le 24 ]'
run "$L"
check "no_command_is_a_usage_error" 3 'lines err 1 && silent out'
run "$L" docter
check "mistyped_command_gets_the_nearest" 3 'lines err 1 && says err "did you mean '"'doctor'"'?"'
run "$L" zzzzzzzzzz
check "strange_command_gets_no_suggestion" 3 'lines err 1 && ! says err "did you mean"'
run "$L" doctor --jsn
check "mistyped_option_gets_the_nearest" 3 'lines err 1 && says err "did you mean --json?"'
run "$L" doctor --jsn --json
check "errors_are_json_on_stdout_with_json" 3 'silent err && says out "\"exit\":3"'
run env LOCKSTEP_JSON=true "$L" docter
check "json_by_environment_covers_errors_too" 3 'silent err && says out "\"status\":\"usage\""'
run "$L" doctor stray
check "stray_argument_is_named" 3 'lines err 1 && says err "stray"'
run "$L" doctor --config "$dir/none"
check "missing_config_is_named" 3 'lines err 1 && says err "$dir/none: No such file"'
printf 'log-level=info\nlog-levle=warn\n' >"$dir/config"
run "$L" doctor --config "$dir/config"
check "unknown_key_is_named_with_file_and_line" 3 \
    'lines err 1 && says err "$dir/config:2: unknown key" && says err "did you mean"'
printf 'log-level=info\nstatus=7571\n' >"$dir/old"
run "$L" watch --config "$dir/old"
check "old_key_is_refused_with_the_new_one" 3 'lines err 1 && says err "$dir/old:2: '"'status' is now 'page'"'"'
run "$L" watch --status 7571
check "old_option_is_refused_with_the_new_one" 3 'lines err 1 && says err "--status is now --page"'
run env LOCKSTEP_STATUS=7571 "$L" watch
check "old_variable_is_refused_with_the_new_one" 3 'lines err 1 && says err "LOCKSTEP_STATUS is now LOCKSTEP_PAGE"'
run env LOCKSTEP_STATUS=7571 "$L" data show "$dir"
check "old_variable_of_another_command_is_not_asked" 3 '! says err LOCKSTEP_STATUS'
run "$L" job serve a.job --keep 0x51dc0a7f
check "old_option_has_the_new_name_that_the_command_knows" 3 'says err "--keep is now --keeper-of"'
run "$L" job watch 0x51dc0a7f --keep kept
check "old_option_has_another_new_name_elsewhere" 3 'says err "--keep is now --folder"'
for old in "verifier run:verifier node" "prover jobs:prover status" "job cancel:job close"; do
    # shellcheck disable=SC2086 # two words
    run "$L" ${old%%:*} 0x51dc0a7f
    check "old command ${old%%:*} is refused with the new one" 3 "lines err 1 && says err \"'${old%%:*}' is now '${old#*:}'\""
done
run "$L" prover status a.run
check "status of a bundle is bundle status" 3 'says err "is now '"'bundle status'"'"'
run "$L" job new --help
check "help_shows_what_most_people_need" 0 'says out "Model:" && says out "--data FILE" && ! says out "--beta1" &&
    says out "more options: lockstep job new --help all" && [ "$(grep -c "^  --" "$dir/out")" -le 20 ]'
cp "$dir/out" "$dir/short"
run "$L" help job new
check "help_of_a_command_is_its_help" 0 'cmp -s "$dir/short" "$dir/out"'
run "$L" job new --help all
check "help_all_shows_all" 0 'says out "Held-out:" && says out "--beta1" && ! says out "more options"'
run "$L" help job new all
check "help_of_a_command_shows_all_too" 0 'says out "--beta1"'
run "$L" help --config "$dir/config"
check "help_command_reports_a_config_it_was_given" 3 'lines err 1'
mkdir -p "$dir/xdg/lockstep"
cp "$dir/config" "$dir/xdg/lockstep/config"
run env XDG_CONFIG_HOME="$dir/xdg" "$L" help
check "help_works_with_a_broken_config" 0 'silent err'
run env XDG_CONFIG_HOME="$dir/xdg" "$L" doctor
check "default_config_is_read" 3 'says err "lockstep/config:2"'
run "$L" doctor
check "doctor_tells_about_the_processor" 0 'says out "cpu" && says out "libraries"'
check "doctor_says_where_verifiers_could_fetch_nothing" 0 \
    'says out "note    taking jobs" && says out "only jobs without seats" && says out "serve=ADDRESS:PORT"'
run env LOCKSTEP_SERVE=127.0.0.1:7570 "$L" doctor
check "doctor_is_content_where_they_could" 0 'says out "good    taking jobs" && ! says out "only jobs without seats"'
run env LOCKSTEP_STAKES_MAX=3eth LOCKSTEP_JOBS_MAX=7 LOCKSTEP_WHEN_IDLE=true LOCKSTEP_SLOT=cpu,cuda:1 LOCKSTEP_HOUR_MIN=5gwei \
    "$L" doctor
check "doctor_tells_what_a_solver_would_take" 0 'says out "each of cpu, cuda:1" && says out "at most 7 jobs" &&
    says out "stakes 3eth" && says out "while others use" && says out "5 gwei an hour"'
run "$L" doctor --json
check "doctor_as_json_is_one_line" 0 'lines out 1 && says out "\"fit\":true" && silent err'
run "$L" doctor --help
check "command_help_has_usage_and_example" 0 'says out "Usage: lockstep doctor" && says out "Example:"'
check "command_help_keeps_to_80_columns" 0 '! grep -q ".\{81\}" "$dir/out"'
check "command_help_begins_with_what_it_does" 0 'sed -n 3p "$dir/out" | grep -q "^[A-Z].*\.$"'
run "$L" watch --help
check "command_help_says_how_values_are_written" 0 'says out "TIME is such as" && ! says out "AMOUNT is such as"'
run "$L" help doctor
check "help_and_flag_say_the_same" 0 'says out "Usage: lockstep doctor"'
run "$L" help docter
check "help_on_a_mistyped_command_suggests" 3 'lines err 1 && says err "did you mean"'
run "$L" help --man
check "manual_names_every_part" 0 'says out ".TH LOCKSTEP 1" && says out ".SH EXIT STATUS"'
check "manual_has_every_exit_code" 0 '[ "$(sed -n "/^.SH EXIT STATUS/,\$p" "$dir/out" | grep -c "^.B [0-4]$")" = 5 ] &&
    says out "a training diverged"'
run "$L" help
check "help_has_every_exit_code" 0 'says out "0 ok, 1 refused or refuted," &&
    says out "2 cannot tell or cannot reach, 3 usage, 4 a training diverged"'
run "$L" help --completion
check "completion_script_is_made" 0 'says out "complete -o default -F _lockstep lockstep"'
cp "$dir/out" "$dir/completion"
# shellcheck disable=SC2016 # the inner shell expands them
run bash -c '. "$1"; COMP_WORDS=(lockstep doctor --js); COMP_CWORD=2; _lockstep
    echo "${COMPREPLY[@]}"; COMP_WORDS=(lockstep doc); COMP_CWORD=1; _lockstep
    echo "${COMPREPLY[@]}"' bash "$dir/completion"
check "completion_finds_commands_and_flags" 0 'says out "--json" && says out "doctor"'
# Each shell is asked for what it offers behind some words; the last of them is being typed.
cat >"$dir/ask.bash" <<'END'
. "$1"
offer() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    compopt() { echo "no files"; } # only a running completion has options
    _lockstep
    echo "${COMPREPLY[@]}"
}
END
cat >"$dir/ask.zsh" <<'END'
compadd() { shift; print -- "$@" }
_describe() { local -a all; all=("${(@P)argv[-1]}"); print -- ${all%%:*} }
_files() { print files }
compset() { }
offer() {
    words=("$@") CURRENT=$# PREFIX=${@[-1]}
    source "$completion"
}
completion=$1
END
cat >"$dir/ask.fish" <<'END'
source $argv[1]
function offer
    complete -C "$argv" | string split -f1 \t | string join ' '
end
END
for shell in bash zsh fish; do
    if ! command -v $shell >/dev/null 2>&1; then
        skip "${shell}_offers_what_fits" "$shell is not installed"
        continue
    fi
    "$L" help --completion --shell $shell >"$dir/completion"
    sign="'--model='"
    [ $shell != bash ] || sign="--model = ''"
    echo "
        offer lockstep job new --model ''
        offer lockstep job new $sign
        offer lockstep verifier node --mode ''
        offer lockstep prover run --device ''
        offer lockstep audit --log-level ''
        offer lockstep help ''
        offer lockstep help ledger ''
        offer lockstep job new --steps ''
        true" >>"$dir/ask.$shell"
    # No config of ours: zsh -f and fish --no-config read none, bash reads none for a script.
    case $shell in
    zsh) flags=-f ;;
    fish) flags=--no-config ;;
    *) flags= ;;
    esac
    # shellcheck disable=SC2086 # no flag is no word
    (cd "$dir" && HOME=$dir XDG_DATA_HOME=$dir/x XDG_CONFIG_HOME=$dir/x $shell $flags "$dir/ask.$shell" \
        "$dir/completion") >"$dir/out" 2>"$dir/err"
    code=$?
    check "${shell}_offers_what_fits" 0 'silent err && [ "$(grep -c "gpt2.*llama\|llama.*gpt2" "$dir/out")" = 2 ] &&
        says out "observe" && says out "cuda" && says out "debug" && says out "verifier" &&
        says out "faucet" && ! says out "completion"'
done
if [ -w /dev/full ]; then
    "$L" help >/dev/full 2>"$dir/err"
    code=$?
    check "full_disk_is_not_success" 2 'lines err 1 && says err "cannot write to stdout"'
fi
mkfifo "$dir/gone"
{
    read -r _ <"$dir/gone"
    "$L" help --man 2>"$dir/err"
    echo $? >"$dir/code"
} | {
    exec <&-
    echo gone >"$dir/gone"
}
code=$(cat "$dir/code")
check "a_reader_that_has_enough_hears_no_complaint" 2 'silent err'
(
    ulimit -f 0
    "$L" help --man-to "$dir"
    echo "code $?"
) 2>&1 | cat >"$dir/out"
code=0
check "a_file_that_may_not_grow_is_an_error_and_no_signal" 0 \
    'says out "File too large" && says out "code 2"'
run env HOME=here XDG_STATE_HOME= "$L" verifier status
check "a_home_that_is_no_path_is_named_with_advice" 3 'says err "HOME" && says err "try: export HOME="'
standard_files() { readlink "/proc/$1/fd/0" "/proc/$1/fd/1" "/proc/$1/fd/2" | tr '\n' ' '; }
env -u OMP_WAIT_POLICY -u GOMP_SPINCOUNT "$L" verifier node --self-test <&- >&- 2>&- &
process=$!
for _ in $(seq 200); do
    [ "$(standard_files "$process")" != '/dev/null /dev/null /dev/null ' ] || break
    sleep 0.1
done
holds "no_file_takes_the_place_of_a_closed_one" test "$(standard_files "$process")" = '/dev/null /dev/null /dev/null '
# It was started again by a link, /proc/self/exe, once it has this in its environment.
is_named() { grep -q GOMP_SPINCOUNT "/proc/$1/environ" && [ "$(cat "/proc/$1/comm")" = "${L##*/}" ]; }
for _ in $(seq 200); do
    is_named "$process" && break
    sleep 0.1
done
holds "a_process_has_the_name_of_the_program" is_named "$process"
kill "$process"
wait "$process" 2>/dev/null
escape=$(printf '\033')
run "$L" "$(printf 'evil\033[2J\nline')"
check "strange_bytes_do_not_reach_the_terminal" 3 'lines err 1 && ! says err "$escape"'
finish
