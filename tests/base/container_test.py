"""Goal: the root file system that scripts/container puts together is all that the program needs: it
trains and audits there, with nothing else of this machine; and an image of it is built and run.
Method: the program runs with that folder as its root, in name spaces of its own. buildah or podman, where
one is installed, builds the image from the Containerfile and runs it."""

import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
sys.dont_write_bytecode = True

import program  # noqa: E402
import tap  # noqa: E402
from program import DATA, LOCKSTEP, path  # noqa: E402

IMAGE = "localhost/lockstep-container-test"
SECONDS = 120


def say(*words, **more):
    return subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=SECONDS, **more)


def put_together():
    if os.path.basename(os.path.dirname(LOCKSTEP)) == "asan":
        raise tap.Skip("the sanitized program goes into no image")
    if not os.path.exists(path("image/Containerfile")):
        done = say("scripts/container", LOCKSTEP, path("image"))
        assert done.returncode == 0, done
    return path("image/root")


def inside(root, *words):
    """As its own user; with its own root, /proc, and a network without anything."""
    return say("unshare", "--mount", "--pid", "--fork", "--net", "--root=" + root, "--mount-proc",
               "--setuid", "65532", "--setgid", "65532", "--wd", "/tmp", "/usr/bin/lockstep", *words,
               env={"PATH": "/usr/bin"})


def test_the_program_trains_and_audits_with_nothing_else():
    root = put_together()
    if inside(root, "--version").returncode != 0 and os.geteuid() != 0:
        raise tap.Skip("only root may make a folder the root of a process")
    shutil.copy(DATA, root + "/tmp/data.u8")
    for words in (["job", "new", "--data", "/tmp/data.u8", *program.SIZE, "--steps", "4",
                   "--segment-steps", "2", "--out", "/tmp/job"],
                  ["prover", "run", "/tmp/job", "--data", "/tmp/data.u8", "--bundle", "/tmp/bundle"],
                  ["audit", "/tmp/bundle", "--json"]):
        done = inside(root, *words)
        assert done.returncode == 0, (words, done)
    assert json.loads(done.stdout)["audits"][0]["answer"] == "proven", done
    for name in "data.u8", "job":
        os.remove(root + "/tmp/" + name)
    shutil.rmtree(root + "/tmp/bundle")


def test_the_root_holds_the_program_and_what_it_loads():
    root = put_together()
    wanted = subprocess.run(["ldd", LOCKSTEP], stdout=subprocess.PIPE, check=True).stdout.decode()
    held = [os.path.join(place, name)[len(root):] for place, _, names in os.walk(root) for name in names]
    for name in held:
        assert name.startswith("/etc/") or name.startswith("/usr/lib/lockstep/") \
            or name == "/usr/bin/lockstep" or " %s (" % name in wanted or "\t%s (" % name in wanted, name
    assert len(held) > 10, held


def test_an_image_is_built_and_run():
    put_together()
    if os.geteuid() != 0:
        raise tap.Skip("building an image without root needs a set-up of its own")
    store = ["--storage-driver", "vfs", "--root", path("store"), "--runroot", path("store.run")]
    if shutil.which("buildah") is not None:
        build = ["buildah", *store, "bud", "--isolation", "chroot"]
    elif shutil.which("podman") is not None:
        build = ["podman", *store, "build", "--isolation", "chroot"]
    else:
        raise tap.Skip("neither buildah nor podman is installed")
    built = say(*build, "-t", IMAGE, path("image"))
    assert built.returncode == 0, built
    if shutil.which("buildah") is not None:
        made = say("buildah", *store, "from", IMAGE).stdout.decode().strip()
        run = say("buildah", *store, "run", "--isolation", "chroot", made, "--", "lockstep", "--version")
        say("buildah", *store, "rm", made)
    else:
        run = say("podman", *store, "run", "--rm", "--network", "none", "--cgroups=disabled", IMAGE,
                  "lockstep", "--version")
        if b"OCI" in run.stderr:
            raise tap.Skip("podman starts no container here: %s" % run.stderr.decode()[-200:].strip())
    wanted = say(LOCKSTEP, "--version").stdout
    assert run.returncode == 0 and run.stdout.replace(b"\r\n", b"\n") == wanted, run


if __name__ == "__main__":
    sys.exit(program.main([
        test_the_program_trains_and_audits_with_nothing_else,
        test_the_root_holds_the_program_and_what_it_loads,
        test_an_image_is_built_and_run,
    ]))
