"""Goal: a kind costs eight files, and leaving one of them out is noticed before anything runs wrong.

Method: new_kind.patch adds an example, the differences along rows, to a copy of the tree. What kinds
are made of is compiled there, and linked with the rest of what this tree built; op_check_test and
evidence_test, which lies about every kind, pass with it. Then each file of the patch is left out in
turn: the compiler, the linker, scripts/kinds or op_check_test must say so. Under make soak the copy's
contracts are compiled too, and the whole comparison of C with Solidity runs.
"""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.realpath(os.path.join(HERE, "../.."))
sys.path.insert(0, os.path.join(HERE, "../support"))
sys.dont_write_bytecode = True

import tap  # noqa: E402

BUILD = os.path.realpath(os.environ.get("TEST_BUILD", os.path.join(ROOT, "build")))
PATCH = os.path.join(HERE, "new_kind.patch")
FILES_MAX = 8
CC = [os.environ.get("CC", "cc"), "-std=c17", "-D_GNU_SOURCE", "-I.", "-Wall", "-Wextra",
      "-Wswitch-enum", "-Werror", "-Wno-unknown-warning-option", "-fopenmp", "-ffp-contract=off",
      "-O0"]
if os.path.basename(BUILD) == "asan":
    CC.append("-fsanitize=address,undefined")
LIBRARIES = ["-lcmocka"] + (os.environ.get("TEST_LDLIBS") or
                            "-lcrypto -ljansson -lzstd -lsqlite3 -lcurl -lmicrohttpd -lz -lm -ldl"
                            ).split()
# What has a table of kinds, or a switch over them.
COMPILED = ("engine/ops/*.c", "engine/ops/spec/*.c", "engine/rules/*.c", "engine/tape/*.c",
            "engine/plan/slice.c", "proofs/commit/descriptor.c",
            "tests/support/numeric/random_op*.c")
PROGRAMS = ("tests/engine/ops/spec/op_check_test.c", "tests/proofs/dispute/evidence_test.c")


def files_of_patch():
    with open(PATCH, encoding="utf-8") as file:
        return re.findall(r"^\+\+\+ b/(\S+)", file.read(), re.M)


def call(command, where):
    return subprocess.run(command, cwd=where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", check=False)


def need(done, what):
    assert done.returncode == 0, "%s: %s" % (what, done.stdout[-2000:])


class Copy:
    """The tree with the patch; objects of it are beside it."""

    def __init__(self, folder):
        self.tree, self.objects = os.path.join(folder, "tree"), os.path.join(folder, "objects")
        os.makedirs(self.objects)
        for room in ("base", "engine", "proofs", "chain/contracts", "docs", "scripts",
                     "tests/support", "tests/proofs", "tests/engine"):
            shutil.copytree(os.path.join(ROOT, room), os.path.join(self.tree, room))
        need(call(["git", "apply", "--recount", PATCH], self.tree), "the patch")
        need(call(["scripts/kinds"], self.tree), "scripts/kinds")

    def object_of(self, path):
        return os.path.join(self.objects, path.replace("/", "_")[:-2] + ".o")

    def compile(self, path):
        return call(CC + ["-c", "-o", self.object_of(path), path], self.tree)

    def sources(self):
        return [os.path.relpath(path, self.tree) for pattern in COMPILED
                for path in sorted(glob.glob(os.path.join(self.tree, pattern)))]

    def link(self, program):
        """The objects of the copy stand before the archives, so these give the rest alone."""
        path = os.path.join(self.objects, os.path.basename(program)[:-2])
        made = [self.object_of(source) for source in self.sources() + [program]]
        return path, call(CC + ["-o", path, *made, os.path.join(BUILD, "tests/libsupport.a"),
                                os.path.join(BUILD, "liblockstep.a"), *LIBRARIES], self.tree)

    def leave_out(self, path):
        """The file as it was; returns what says so, or None."""
        with open(os.path.join(self.tree, path), encoding="utf-8") as file:
            patched = file.read()
        shutil.copy(os.path.join(ROOT, path), os.path.join(self.tree, path))
        try:
            return self.complaint(path)
        finally:
            with open(os.path.join(self.tree, path), "w", encoding="utf-8") as file:
                file.write(patched)
            if path.endswith(".c"):
                need(self.compile(path), path)

    def complaint(self, path):
        if path.endswith(".h"):  # the list: the compiler misses the kind where it is named
            done = call(CC + ["-fsyntax-only", PROGRAMS[0]], self.tree)
            return done.returncode and "compiler"
        if not path.endswith(".c"):
            return call(["scripts/kinds", "--check"], self.tree).returncode and "scripts/kinds"
        if self.compile(path).returncode:
            return "compiler"
        program, linked = self.link(PROGRAMS[0])
        if linked.returncode:
            return "linker"
        return call([program], ROOT).returncode and "op_check_test"


copy = None


def an_example_kind_is_a_patch_of_eight_files():
    assert len(files_of_patch()) <= FILES_MAX, files_of_patch()
    for source in copy.sources() + list(PROGRAMS):
        need(copy.compile(source), source)
    need(call(["scripts/kinds", "--check"], copy.tree), "scripts/kinds --check")


def lies_about_it_are_convicted():
    for program in PROGRAMS:
        path, linked = copy.link(program)
        need(linked, "link of " + program)
        need(call([path], ROOT), program)


def every_file_of_it_is_asked_for():
    said = {path: copy.leave_out(path) for path in files_of_patch()}
    print("".join("# without %s: %s\n" % pair for pair in said.items()), end="", flush=True)
    assert all(said.values()), said


def contract_and_c_agree_about_it():
    if not os.environ.get("SOAK_MINUTES"):
        raise tap.Skip("make soak compiles the contracts of the copy")
    with tempfile.TemporaryDirectory() as folder:
        tree = os.path.join(folder, "tree")
        need(call(["git", "clone", "-q", "--shared", ROOT, tree], folder), "clone")
        need(call(["git", "apply", "--recount", PATCH], tree), "the patch")
        os.symlink(os.path.join(ROOT, "tests/evm/node_modules"),
                   os.path.join(tree, "tests/evm/node_modules"))
        need(call(["scripts/kinds"], tree), "scripts/kinds")
        need(call(["node", "scripts/contracts.mjs", "rules_code"], tree), "contracts.mjs")
        need(call(["scripts/kinds", "--sizes"], tree), "sizes")
        need(call(["make", "-j2", "build/tests/contracts/rules_float_test"], tree), "make")
        need(call(["build/tests/contracts/rules_float_test"], tree), "rules_float_test")


def main():
    global copy
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(folder)
        return tap.run([an_example_kind_is_a_patch_of_eight_files, lies_about_it_are_convicted,
                        every_file_of_it_is_asked_for, contract_and_c_agree_about_it])


if __name__ == "__main__":
    sys.exit(main())
