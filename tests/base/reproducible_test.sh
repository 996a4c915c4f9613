#!/bin/sh
# Goal: who builds our source gets our bytes: program, plugin and package do not depend on the folder's
# name, the time zone, the umask or the number of jobs.
# Method: the tree with its build is copied to a folder of another name, where one room, the plugin of
# the emulated device and what they are linked into are built again; everything in "make soak". The
# package is packed in both. Prints TAP.
set -u

L=$TEST_LOCKSTEP
build=$(dirname "$L")
case $build in
*/asan) echo "1..0 # SKIP the sanitized program is no release"; exit 0 ;;
esac
command -v make >/dev/null 2>&1 || { echo "1..0 # SKIP make is not installed"; exit 0; }
unset MAKEFLAGS MAKELEVEL MFLAGS
. tests/support/tap.sh
other="$dir/a tree elsewhere"
other=$(echo "$other" | tr ' ' -)

# Copies what is built beside what it is built from, by links, with the times that make compares.
mkdir -p "$other/build/tests"
tar -cf - --exclude=./build --exclude=./.git --exclude=node_modules . | tar -xf - -C "$other"
for part in "$build"/*; do
    case $part in
    */tests | */asan | */fuzz | */turn | */deb | */counts) ;;
    *) cp -al "$part" "$other/build/" ;;
    esac
done
if [ "${SOAK_MINUTES:-0}" = 0 ]; then
    rm -rf "$other/build/base" "$other/build/liblockstep.a" "$other/build/lockstep" "$other/build/pic"
else
    rm -rf "$other/build"
    mkdir -p "$other/build/setup"
    cp "$build"/setup/*.ok "$other/build/setup/"
fi
rm -f "$other"/build/lockstep*.deb

(
    umask 077
    export CCACHE_DISABLE=1 # a cache of compilations would hand out what was built here
    cd "$other" && TZ=Pacific/Kiritimati make -s -j3 NVCC= LOCKSTEP_NO_INSTALL=1 build/lockstep \
        build/tests/emulated_cuda.so
) >"$dir/told" 2>&1
result $? "it builds in a folder of another name"
cmp "$L" "$other/build/lockstep" >"$dir/told" 2>&1
result $? "the program has the same bytes"
cmp "$build/tests/emulated_cuda.so" "$other/build/tests/emulated_cuda.so" >"$dir/told" 2>&1
result $? "and so has the plugin of the emulated device"
if grep -F "$other" "$other/build/lockstep" >"$dir/told" 2>&1; then false; else true; fi
result $? "the name of the folder stands nowhere in the program"

if command -v dpkg-deb >/dev/null 2>&1 && command -v dpkg-shlibdeps >/dev/null 2>&1; then
    # Packs at once here, and there with another umask in another time zone, a while later.
    make -s -o "$L" BUILD="$build" NVCC= LOCKSTEP_NO_INSTALL=1 install DESTDIR="$dir/here" PREFIX=/usr \
        >"$dir/told" 2>&1 && scripts/deb "$dir/here" "$dir/packed" 9.9 >>"$dir/told" 2>&1
    result $? "a package is packed here"
    (
        umask 077
        cd "$other" && TZ=Pacific/Kiritimati make -s NVCC= LOCKSTEP_NO_INSTALL=1 install \
            DESTDIR="$dir/there" PREFIX=/usr &&
            TZ=Pacific/Kiritimati scripts/deb "$dir/there" "$dir/packed there" 9.9
    ) >"$dir/told" 2>&1
    result $? "and one there"
    cmp "$dir"/packed/*.deb "$dir"/packed\ there/*.deb >"$dir/told" 2>&1
    result $? "they have the same bytes"
else
    skip "packages have the same bytes" "dpkg-dev is not installed"
fi
finish
