#!/bin/sh
# Goal: the checks of "make lint" find what they are for.
# Method: a small tree with one offence at a time, and the same tree without. Prints TAP.
set -u

scripts=$(pwd)/scripts
. tests/support/tap.sh
cd "$dir" || exit 1
mkdir -p low/a low/b high tests/base base scripts docs
echo '# none' >scripts/lint-ratchet.txt
echo '# none' >scripts/lint-globals.txt

# check NAME EXIT COMMAND...
check() {
    name=$1 wanted=$2
    shift 2
    "$@" >"$dir/told" 2>&1
    code=$?
    [ "$code" = "$wanted" ]
    result $? "$name"
}
# included FILE HEADER: FILE includes HEADER and nothing else.
included() {
    printf '/* x */\n#include "%s"\n' "$2" >"$1"
}
layers() {
    "$scripts/check-layers" low high
}
house() {
    "$scripts/check-house" low high
}
source_of() {
    "$scripts/check-source" "$@"
}

# Three folders: a below b, and high above all of low.
cat >scripts/layers.txt <<'END'
low/a:  # nobody
low/b:  low/a
high:   low/*
END
for pair in low/a:low/b low/a:high low/b:low/a low/b:high high:low/a high:low/b; do
    from=${pair%:*} to=${pair#*:}
    case $pair in
    low/b:low/a | high:*) wanted=0 ;;
    *) wanted=1 ;;
    esac
    included "$from/x.c" "$to/y.h"
    check "include_from_${from}_to_${to}_is_judged" "$wanted" layers
    rm "$from/x.c"
done
included low/a/x.c low/a/y.h
included low/a/y.h low/a/z.h
check chain_of_modules_passes_the_check 0 layers
included low/a/z.c low/a/y.h
check circle_of_modules_through_a_source_is_found 1 layers
rm low/a/x.c low/a/y.h low/a/z.c
mkdir low/c && included low/c/x.c low/c/y.h
check folder_that_the_table_lacks_is_found 1 layers
rm -r low/c
cp scripts/layers.txt layers.saved
sed -i 's|^low/a:.*|low/a: low/b|' scripts/layers.txt
check circle_in_the_table_itself_is_found 1 layers
cp layers.saved scripts/layers.txt
"$scripts/arrows"
check picture_of_the_table_is_its_own 0 "$scripts/arrows" --check
sed -i 's|^low/b:.*|low/b:|' scripts/layers.txt
check picture_of_another_table_is_found 1 "$scripts/arrows" --check
cp layers.saved scripts/layers.txt

# What keeps the house readable.
echo '- `x`: the one module' | tee low/a/README.md low/b/README.md >high/README.md
for folder in low/a low/b high; do echo '/* x */' >$folder/x.c; done
check readable_house_passes_the_check 0 house
echo '/* y */' >low/a/y.c
check module_that_no_readme_names_is_found 1 house
rm low/a/y.c
rm high/README.md
check folder_without_a_readme_is_found 1 house
echo '- `x.c`: the one module' >high/README.md
for number in $(seq 26); do echo '/* x */' >tests/base/x$number.c; done
check folder_that_is_too_full_is_found 1 house
rm tests/base/x*.c
printf '/* x */\nstruct twin {\n    int x;\n};\n' | tee low/a/x.c >high/x.c
check struct_tag_with_two_homes_is_found 1 house
echo '/* x */' >low/a/x.c
printf '/* x */\n    segment->rights++;\n' | tee low/a/x.c >high/x.c
check events_reduced_in_two_files_are_found 1 house
echo '/* x */' | tee low/a/x.c >high/x.c
printf '/* x */\nf("SELECT x FROM y WHERE"\n  " state = 3");\n' >low/a/x.c
check digit_of_an_enum_in_sql_is_found 1 house
printf '/* x */\nf("SELECT x FROM y WHERE state = ? AND count > 0");\n' >low/a/x.c
check value_that_is_bound_passes_the_check 0 house
{ for _ in $(seq 300); do printf 'if (status == STATUS_OK) {\n    status = f();\n} /* x */\n'; done; } >low/a/x.c
check ladders_of_a_status_are_counted 1 house
echo '/* x */' >low/a/x.c
# A tour of ten files, each of which names the next.
tour() {
    "$scripts/check-house" low high engine
}
mkdir -p engine/ops
for number in 1 2 3 4 5 6 7 8 9; do
    echo "/* Tour $number of 10: next read engine/ops/op$((number + 1)).h, why not. */" >engine/ops/op$number.h
done
mv engine/ops/op1.h engine/ops/op.h
echo '/* the end */' >engine/ops/op10.h
for file in engine/ops/*.h; do echo "- \`$(basename "$file")\`: a step"; done >engine/ops/README.md
check tour_of_ten_files_passes_the_check 0 tour
mv engine/ops/op10.h engine/ops/op11.h
check tour_that_leads_to_no_file_is_found 1 tour
mv engine/ops/op11.h engine/ops/op10.h
echo '/* x */' >engine/ops/op4.h
check tour_that_ends_too_early_is_found 1 tour
rm -r engine
{ echo '/* x */' && yes 'int x;' | head -n 40; } >low/a/x.c
check room_whose_causes_are_not_said_is_found 1 house
{ echo '/* x */' && yes 'int x;' | head -n 40 && echo 'int y; /* y, since x */'; } >low/a/x.c
check room_with_few_comments_passes_the_check 0 house
echo '/* x */' >low/a/x.c
if command -v git >/dev/null; then
    git init -q . && printf '%0131d\n' 0 >docs/wide.md && git add docs/wide.md
    check document_that_is_too_wide_is_found 1 house
    printf '%0130d\n' 0 >docs/wide.md
    check document_of_130_columns_passes_the_check 0 house
    git add low high
    # In pieces: this file is looked at too.
    number=0
    for text in "// who""ever comes" "int start_an""ew(void);" "// WHAT""EVER" '/* it can'' be
 * had */'; do
        number=$((number + 1))
        printf '/* x */\n%s\n' "$text" >low/a/x.c
        check "word_${number}_that_hides_its_noun_is_found" 1 house
    done
    printf '/* x */\nint renewal; /* who, what; it can be and had */\n' >low/a/x.c
    check words_that_are_only_alike_pass_the_check 0 house
    echo '/* x */' >low/a/x.c
fi

printf '/* x */\nint f(void)\n{\n    return 0;\n}\n' >base/good.c
check good_source_passes_the_check 0 source_of base/good.c
printf 'int f(void)\n{\n    return 0;\n}\n' >base/bad.c
check missing_opening_comment_is_found 1 source_of base/bad.c
{ echo '/* x */' && printf '%0101d\n' 0; } >base/bad.c
check too_long_line_is_found 1 source_of base/bad.c
printf '/* x */\nint f(void)\n{\n    (void)fread(text, 1, 2, file);\n    return 0;\n}\n' >base/bad.c
check result_that_is_cast_away_is_found 1 source_of base/bad.c
{ echo '/* x */' && printf '/* %s */\n' "$(printf '\303\251%.0s' $(seq 94))"; } >base/bad.c
check letters_count_once_however_many_bytes 0 source_of base/bad.c
{ printf '/* x */\nint long_one(void)\n{\n' && yes '    f();' | head -n 69 && echo '}'; } >base/bad.c
check too_long_function_is_found 1 source_of base/bad.c
echo 'function base/bad.c:long_one 71' >scripts/lint-ratchet.txt
check listed_function_may_stay 0 source_of base/bad.c
check list_entry_without_need_is_found 1 source_of base/good.c
echo '# none' >scripts/lint-ratchet.txt
printf '/* x */\nstatic int look(void)\n{\n    return 0;\n}\n' >base/bad.c
check name_of_one_word_is_found 1 source_of base/bad.c
echo 'name base/bad.c:look 1' >scripts/lint-ratchet.txt
check listed_name_may_stay 0 source_of base/bad.c
sed -i 's/look/look_at_file/' base/bad.c
check listed_name_that_is_gone_leaves_the_list 1 source_of base/bad.c
echo '# none' >scripts/lint-ratchet.txt
check name_of_three_words_passes_the_check 0 source_of base/bad.c
{ echo '/* x */' && yes 'int x;' | head -n 800; } >base/bad.c
check too_long_file_is_found 1 source_of base/bad.c
printf '/* x */\n#ifndef OTHER_H\n#define OTHER_H\n#endif\n' >base/bad.h
check wrong_include_guard_is_found 1 source_of base/bad.h
printf '/* x */\ntypedef struct x { int y; } x;\n' >base/bad.c
check typedef_of_a_struct_is_found 1 source_of base/bad.c
printf '/* x */\nstatic void test_one(void **state)\n{\n}\n' >tests/base/bad_test.c
check test_that_is_no_sentence_is_found 1 source_of tests/base/bad_test.c

# What stands twice, and what has a home.
repeated() {
    "$scripts/check-repeats" "$@" base
}
echo '# none' >scripts/lint-repeats.txt
rm -f base/*.c base/*.h
six='int a;\nint b;\n\n/* said */\nint c;\n    int d;\nint e;\nint f;\n'
# shellcheck disable=SC2059 # lines
printf "/* x */\n$six" >base/one.c
printf '/* x */\nint a;\nint b;\nint c;\nint d;\nint e;\nint g;\n' >base/two.c
check five_lines_may_stand_twice 0 repeated
# shellcheck disable=SC2059
printf "/* y */\nint z;\n$six" >base/two.c
check six_lines_that_stand_twice_are_found 1 repeated
check the_list_takes_them 0 repeated --write
check a_listed_pair_without_a_reason_is_found 1 repeated
sed -i 's/6:.*/6: said twice to be heard/' scripts/lint-repeats.txt
check the_list_keeps_a_reason 0 repeated --write
check what_is_listed_may_stay 0 repeated
printf 'int g;\n' | tee -a base/one.c >>base/two.c
check a_listed_pair_may_not_grow 1 repeated
echo '/* x */' >base/two.c
check a_pair_that_is_gone_leaves_the_list 1 repeated
printf '/* x */\nvoid f(void)\n{\n    clock_gettime(CLOCK_MONOTONIC, &now);\n}\n' >low/a/x.c
check a_second_steady_clock_is_found 1 house
echo '/* x */' >low/a/x.c
check without_it_the_house_is_well 0 house

if command -v "${CC:-cc}" >/dev/null && command -v ar >/dev/null; then
    printf 'const int table[] = {1};\nstatic int counter;\nint f(void) { return ++counter; }\n' >g.c
    "${CC:-cc}" -c g.c -o g.o && ar rcs g.a g.o
    check mutable_global_is_found 1 "$scripts/check-globals" g.a
    echo 'counter because of this test' >scripts/lint-globals.txt
    check listed_global_may_stay 0 "$scripts/check-globals" g.a

    reached() {
        "${CC:-cc}" -c base/one.c -o one.o && "${CC:-cc}" -c base/main.c -o main.o && rm -f one.a &&
            ar rcs one.a one.o && "$scripts/check-reached" one.a main.o base
    }
    echo '# none' >scripts/lint-reached.txt
    printf '/* x */\nint used(void)\n{\n    return 0;\n}\n' >base/one.c
    printf '/* x */\nint used(void);\nint main(void)\n{\n    return used();\n}\n' >base/main.c
    check function_that_is_called_is_reached 0 reached
    printf 'int tabled(void)\n{\n    return 0;\n}\nint (*const t[])(void) = {\n    tabled,\n};\n' >>base/one.c
    check function_in_a_table_is_reached 0 reached
    printf 'int forgotten(void)\n{\n    return 0;\n}\n' >>base/one.c
    check function_that_nobody_calls_is_found 1 reached
    echo forgotten >scripts/lint-reached.txt
    check listed_function_may_be_of_tests_alone 0 reached
    echo used >>scripts/lint-reached.txt
    check listed_function_that_is_reached_leaves_the_list 1 reached

    # A promise that rests on judge() and what it calls.
    trust() {
        "${CC:-cc}" -I. -c -o build/low/a/judge.o low/a/judge.c &&
            "${CC:-cc}" -I. -c -o build/low/b/help.o low/b/help.c || return 9
        "$scripts/check-trust" "$@" build low high
    }
    mkdir -p build/low/a build/low/b
    printf 'int help(void);\n' >low/b/help.h
    printf 'int help(void)\n{\n    return 1;\n}\n' >low/b/help.c
    printf '#include "low/b/help.h"\n\nint judge(void);\nint judge(void)\n{\n    return 2;\n}\n' >low/a/judge.c
    printf '<!-- trust: c judge; at most 8; only here guilty = 1 -->\n<!-- end -->\n' >docs/TRUST.md
    check list_that_lacks_a_file_is_found 1 trust
    check list_is_made 0 trust --write
    check list_that_says_all_passes 0 trust
    sed -i 's/return 2/return help()/' low/a/judge.c
    check file_that_a_promise_newly_rests_on_is_found 1 trust
    result "$(grep -q 'low/b/help.c: promise 1' told && echo 0 || echo 1)" "it_is_named"
    check list_with_it_is_made 0 trust --write
    sed -i 's/judge.c 4/judge.c 5/' docs/TRUST.md
    check number_that_is_out_of_date_is_found 1 trust
    check number_is_made_again 0 trust --write
    printf 'int other(int guilty)\n{\n    guilty = 1;\n    return guilty;\n}\n' >high/other.c
    check what_only_listed_files_may_say_is_found_elsewhere 1 trust
    rm high/other.c
    sed -i 's/at most 8/at most 7/' docs/TRUST.md
    check promise_that_rests_on_too_much_is_found 1 trust

    # A type of the name of a function is no call of it.
    printf '#include "low/b/help.h"\n\nstruct help {\n    int most;\n};\nint judge(struct help *);\nint judge(struct help *by)\n{\n    return by->most;\n}\n' >low/a/judge.c
    printf 'int other(void);\nint other(void)\n{\n    return help();\n}\n' >>low/a/judge.c
    printf '<!-- trust: c judge -->\n<!-- end -->\n' >docs/TRUST.md
    check tag_of_a_struct_is_passed 0 trust --write
    result "$(grep -q help.c docs/TRUST.md && echo 1 || echo 0)" "and_no_call"

    # Walks: from call to call, counted.
    walks() {
        "$scripts/check-walks" "$@" build low high
    }
    # walk LINE...: a walk of these files.
    walk() {
        printf '<!-- walk: a lie -->\n2 files, 1 crossings between rooms:\n\n' >docs/ARCHITECTURE.md
        printf -- '- `%s: says so.\n' "$@" >>docs/ARCHITECTURE.md
        echo '<!-- end -->' >>docs/ARCHITECTURE.md
    }
    printf '#include "low/b/help.h"\n\nint judge(void);\nint judge(void)\n{\n    return help();\n}\n' >low/a/judge.c
    trust --write >told 2>&1
    walk 'low/a/judge.c`' 'low/b/help.c`'
    check walk_from_call_to_call_passes 0 walks
    walk 'low/b/help.c`' 'low/a/judge.c`'
    check walk_to_what_nothing_calls_is_found 1 walks
    walk 'low/b/help.c`' 'low/a/judge.c` (by hand)'
    check walk_says_how_else_it_goes_on 0 walks
    walk 'low/a/judge.c`' 'low/b/gone.c`'
    check walk_to_no_file_is_found 1 walks
    walk 'low/a/judge.c`' 'low/b/help.c`' 'low/a/judge.c` (again)'
    check walk_that_is_miscounted_is_found 1 walks
    check walk_is_counted_again 0 walks --write
    check walk_then_passes 0 walks
    echo nothing >docs/ARCHITECTURE.md
    check document_without_a_walk_is_found 1 walks
    rm -r build docs/TRUST.md docs/ARCHITECTURE.md low/a/judge.c low/b/help.c low/b/help.h
fi
finish
