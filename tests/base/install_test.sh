#!/bin/sh
# Goal: "make install" and "make deb" install complete, well-formed files, and uninstall removes them.
# Method: installs into a temporary DESTDIR. Manual pages are read by groff with all warnings, units
# by systemd-analyze, completions by their shells, the package by dpkg-deb, each where it is
# installed. "make soak" installs and removes the package in a clean Debian, where this is root.
# Prints TAP.
set -u

L=$TEST_LOCKSTEP
build=$(dirname "$L")
case $build in
*/asan) echo "1..0 # SKIP the sanitized program is not installed"; exit 0 ;;
esac
command -v make >/dev/null 2>&1 || { echo "1..0 # SKIP make is not installed"; exit 0; }
unset MAKEFLAGS MAKELEVEL MFLAGS
. tests/support/tap.sh
# The program is up to date: nothing is compiled here, and no plugin is built.
run_make() {
    make -s -o "$build/lockstep" BUILD="$build" NVCC= LOCKSTEP_NO_INSTALL=1 "$@" >"$dir/told" 2>&1
}

run_make install DESTDIR="$dir/stage" PREFIX=/usr
result $? "it installs"

missing=
for file in bin/lockstep share/man/man1/lockstep.1 share/man/man1/lockstep-verifier-node.1 \
    share/man/man1/lockstep-audit.1 share/bash-completion/completions/lockstep \
    share/zsh/site-functions/_lockstep share/fish/vendor_completions.d/lockstep.fish \
    lib/systemd/system/lockstep-verifier.service lib/systemd/system/lockstep-solver.service \
    lib/systemd/system/lockstep-verifier-gpu.service lib/systemd/system/lockstep-solver-gpu.service \
    lib/systemd/system/lockstep-keeper@.service share/doc/lockstep/examples/keeper.conf \
    lib/systemd/system/lockstep-prover-serve@.service lib/sysusers.d/lockstep.conf \
    lib/tmpfiles.d/lockstep.conf share/doc/lockstep/README.md share/lockstep/lockstep_torch.py \
    share/lockstep/wells.c include/lockstep/engine/tape/builder.h lib/lockstep/liblockstep_tape.a \
    share/pkgconfig/lockstep.pc share/doc/lockstep/examples/verifier.conf share/doc/lockstep/examples/verifier-gpu.conf; do
    [ -s "$dir/stage/usr/$file" ] || missing="$missing $file"
done
echo "missing:$missing" >"$dir/told"
[ -z "$missing" ]
result $? "all of it is there"

"$dir/stage/usr/bin/lockstep" --version >"$dir/told" 2>&1
result $? "the installed program runs"

# As its first lines say, with nothing but what is installed: the compiler sees no file of ours here.
own_c() {
    mkdir "$dir/own" && cp "$dir/stage/usr/share/lockstep/wells.c" "$dir/own/" && cd "$dir/own" || return 1
    flags=$(PKG_CONFIG_PATH=$dir/stage/usr/share/pkgconfig pkg-config --define-variable=prefix="$dir/stage/usr" \
        --cflags --libs lockstep) || return 1
    # shellcheck disable=SC2086 # what follows are words
    "${CC:-cc}" wells.c $flags -o wells && ./wells >wells.tape && export XDG_DATA_HOME="$dir/own" &&
        "$L" job new --tape wells.tape --steps 40 --out wells.job &&
        "$L" prover run wells.job --bundle wells.run && "$L" bundle steps wells.run --json >steps &&
        "$L" audit wells.run | grep proven
}
if ! command -v pkg-config >/dev/null 2>&1; then
    skip "a program of C becomes a job" "pkg-config is not installed"
else
    (own_c) >"$dir/told" 2>&1
    result $? "a program of C, compiled against what is installed, becomes a job that is proven"
    tr '{' '\n' <"$dir/own/steps" | sed -n 's/.*"loss": *\([0-9.e-]*\).*/\1/p' | sed -n '1p;$p' | tr '\n' ' ' |
        awk '{ exit !(NF == 2 && $2 < 0.1 * $1) }'
    result $? "and its loss falls"
fi

if command -v readelf >/dev/null 2>&1; then
    readelf -d "$dir/stage/usr/bin/lockstep" | grep '(NEEDED)' | grep -v '\.so\.[0-9]' >"$dir/told"
    [ ! -s "$dir/told" ]
    result $? "every library that it wants has a version, as those of users have"
else
    skip "every library that it wants has a version" "binutils is not installed"
fi

if grep -rn "@BIN@" "$dir/stage/usr/lib" >"$dir/told"; then false; else true; fi
result $? "the units name the program"

: >"$dir/told"
for page in "$dir"/stage/usr/share/man/man1/*.1; do
    if command -v groff >/dev/null 2>&1; then
        groff -ww -man -Tutf8 "$page" 2>>"$dir/told" >/dev/null
    fi
done
if command -v groff >/dev/null 2>&1; then
    [ ! -s "$dir/told" ]
    result $? "groff has nothing to say about the manual pages"
else
    skip "groff has nothing to say about the manual pages" "groff is not installed"
fi

for shell in bash zsh fish; do
    case $shell in
    bash) file=share/bash-completion/completions/lockstep ;;
    zsh) file=share/zsh/site-functions/_lockstep ;;
    fish) file=share/fish/vendor_completions.d/lockstep.fish ;;
    esac
    if command -v "$shell" >/dev/null 2>&1; then
        "$shell" -n "$dir/stage/usr/$file" >"$dir/told" 2>&1
        result $? "$shell reads its completion"
    else
        skip "$shell reads its completion" "$shell is not installed"
    fi
done
if command -v fish >/dev/null 2>&1; then
    HOME=$dir XDG_DATA_HOME="$dir/x" XDG_CONFIG_HOME="$dir/x" fish --no-config -c \
        "source $dir/stage/usr/share/fish/vendor_completions.d/lockstep.fish
         complete -C 'lockstep verifier no'; complete -C 'lockstep verifier node --pag'" \
        >"$dir/told" 2>&1
    grep -q '^node' "$dir/told" && grep -q '^--page' "$dir/told"
    result $? "fish completes a command and its options"
else
    skip "fish completes a command and its options" "fish is not installed"
fi

# What a driver of GPUs needs is all that the two units differ in.
settings() {
    grep -v '^#' "packaging/$1" | sed 's/ --device auto//; s/ --slot auto//; s/ on GPUs//' |
        grep -Ev '^(Conflicts|PrivateDevices|MemoryDenyWriteExecute|DevicePolicy|DeviceAllow)='
}
for who in verifier solver; do
    settings "lockstep-$who.service" >"$dir/cpu"
    settings "lockstep-$who-gpu.service" >"$dir/gpu"
    diff "$dir/cpu" "$dir/gpu" >"$dir/told" && grep -q "^DevicePolicy=closed" "packaging/lockstep-$who-gpu.service" &&
        grep -q "^PrivateDevices=yes" "packaging/lockstep-$who.service"
    result $? "the $who on GPUs is as closed as the other, but for its devices and the driver's code"
done

# Each key of an example is an option of the command that reads it.
for pair in "verifier.conf:verifier node" "verifier-gpu.conf:verifier node" "solver.conf:prover node" \
    "keeper.conf:job keep" "serve.conf:prover serve"; do
    file=${pair%%:*}
    # shellcheck disable=SC2086 # a command of two words
    "$L" ${pair#*:} --help all >"$dir/help" 2>&1
    sed -n 's/^#\{0,1\}\([a-z][a-z-]*\)=.*/\1/p' "packaging/examples/$file" | while read -r key; do
        grep -q -- "--$key\b" "$dir/help" || echo "$key"
    done >"$dir/told"
    [ ! -s "$dir/told" ]
    result $? "$file has options of '${pair#*:}' alone"
done

if command -v systemd-analyze >/dev/null 2>&1; then
    for unit in lockstep-verifier.service lockstep-verifier-gpu.service lockstep-solver.service \
        lockstep-solver-gpu.service lockstep-keeper@.service lockstep-prover-serve@.service; do
        name=$(echo "$unit" | sed 's/@/@x/')
        sed "s|/usr/bin/lockstep|$dir/stage/usr/bin/lockstep|" \
            "$dir/stage/usr/lib/systemd/system/$unit" >"$dir/$name"
        # The manual pages are not where man looks; anything else would be ours.
        systemd-analyze verify --man=no "$dir/$name" >"$dir/told" 2>&1 && [ ! -s "$dir/told" ]
        result $? "systemd-analyze has nothing to say about $unit"
    done
    for unit in verifier verifier-gpu solver solver-gpu keeper@x; do
        systemd-analyze security --offline=true --threshold=25 "$dir/lockstep-$unit.service" \
            >"$dir/told" 2>&1
        result $? "the exposure of lockstep-$unit is below 2.5 of 10"
    done
else
    skip "systemd-analyze has nothing to say about the units" "systemd is not installed"
fi

cp "$dir/stage/usr/share/man/man1/lockstep.1" "$dir/stage-th"
run_make uninstall DESTDIR="$dir/stage" PREFIX=/usr
find "$dir/stage" -type f >"$dir/told"
[ ! -s "$dir/told" ]
result $? "uninstall leaves no file"

if ! command -v dpkg-shlibdeps >/dev/null 2>&1; then
    skip "the package is complete" "dpkg-dev is not installed"
    echo "1..$count"
    exit "$bad"
fi
# As "make deb" does it, in folders of the test's own.
run_make install DESTDIR="$dir/deb" PREFIX=/usr && scripts/deb "$dir/deb" "$dir" 9.9 >"$dir/told" 2>&1
result $? "the package is packed"
package=$(echo "$dir"/lockstep_9.9~*.deb)
release=$(. /etc/os-release && echo "$ID$VERSION_ID")
dpkg-deb --info "$package" >"$dir/told" 2>&1 && grep -q "^ Version: 9.9~$release$" "$dir/told" &&
    case $package in *"/lockstep_9.9~${release}_"*) true ;; *) false ;; esac
result $? "its name and version say the release that it is for"
base=$(dpkg-query -W -f '${Version}' base-files | sed 's/[^0-9].*//')
grep -q "^ Depends: .*base-files (>= $base), base-files (<< $((base + 1)))" "$dir/told"
result $? "so that apt names the reason on another release"
dpkg-deb --info "$package" >"$dir/told" 2>&1 && grep -q "^ Depends: .*libsqlite3" "$dir/told" &&
    grep -q "^ Depends: .*libscrypt" "$dir/told" && grep -q "^ Version: 9.9" "$dir/told"
result $? "it says what it needs"
dpkg-deb --contents "$package" >"$dir/told" 2>&1 &&
    grep -q "root/root .*\./usr/bin/lockstep$" "$dir/told" &&
    grep -q "man1/lockstep-verifier-node.1.gz" "$dir/told" &&
    ! grep -v "root/root" "$dir/told" | grep -q .
result $? "its files are those of root, its manual pages packed"

grep -q '^.TH LOCKSTEP 1 "20[0-9-]*"' "$dir/stage-th"
result $? "the manual pages have a date"
if command -v lintian >/dev/null 2>&1; then
    lintian --fail-on error,warning "$package" >"$dir/told" 2>&1
    result $? "lintian finds no error and no warning"
else
    skip "lintian finds no error and no warning" "lintian is not installed"
fi

# Installs and removes in a clean Debian, below $dir/clean.
try_clean() {
    site=$(apt-get indextargets --format '$(SITE)' 2>/dev/null | grep -v security | head -1)
    release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    debootstrap --variant=minbase "$release" "$dir/clean" "$site" || return 1
    cp /etc/resolv.conf "$dir/clean/etc/" 2>/dev/null
    cp -r /etc/apt/apt.conf.d/. "$dir/clean/etc/apt/apt.conf.d/"
    cp "$package" "$dir/clean/lockstep.deb"
    chroot "$dir/clean" apt-get install -y --no-install-recommends /lockstep.deb || return 1
    chroot "$dir/clean" lockstep doctor
    chroot "$dir/clean" lockstep --version && chroot "$dir/clean" getent passwd lockstep &&
        [ "$(stat -c %a "$dir/clean/var/lib/lockstep")" = 700 ] || return 1
    touch "$dir/clean/var/lib/lockstep/key"
    chroot "$dir/clean" apt-get purge -y lockstep || return 1
    [ ! -e "$dir/clean/usr/bin/lockstep" ] && [ -e "$dir/clean/var/lib/lockstep/key" ]
}
if [ "${SOAK_MINUTES:-0}" = 0 ]; then
    skip "a clean Debian takes it and lets it go" "only make soak does this"
elif [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null 2>&1; then
    skip "a clean Debian takes it and lets it go" "it needs root and debootstrap"
else
    try_clean >"$dir/told" 2>&1
    result $? "a clean Debian takes it and lets it go"
fi

finish
