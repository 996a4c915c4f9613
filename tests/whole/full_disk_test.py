"""Goal: a disk that is really full stops a run, an auditor and a node with a sentence, leaves
nothing half-written, and when there is room again they go on to the same end as if nothing had been.
Method: a file system of a few megabytes of our own, in a name space of our own, which the test
fills when something has happened and empties again. Where nobody may mount one, it is skipped."""

import glob
import os
import shutil
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import town as stage  # noqa: E402
from plays import PEOPLE, STEP, pass_sealing, see_conviction, see_money, see_once, see_pay  # noqa: E402
from town import DATA, LOCKSTEP, WAIT_MAX_S, SEGMENTS, Town  # noqa: E402

FULL = ("disk is full", "No space left on device")
SIZE = 48 << 20
ALONE = ("--data", DATA, "--threads", "1")


def says_full(said):
    return any(words in said for words in FULL)


class Disk:
    """A file system of its own, below a town."""

    def __init__(self, town, name="disk"):
        self.place = town.path(name)
        os.makedirs(self.place)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=700,size=%d" % SIZE, "none", self.place],
                       check=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.place], check=True)

    def path(self, name):
        return os.path.join(self.place, name)

    def fill(self):
        """To the last byte: smaller pieces when large ones do not fit any more."""
        with open(self.path("filler"), "ab", buffering=0) as filler:
            for size in (1 << 20, 4096, 1):
                try:
                    while filler.write(b"x" * size) == size:
                        pass
                except OSError:
                    pass

    def make_room(self):
        os.unlink(self.path("filler"))


def see_whole(folder):
    """No file is on its way to its name, and every database is whole."""
    names = glob.glob(folder + "/**/*", recursive=True)
    assert not [name for name in names if name.endswith((".tmp", ".new"))], names
    for name in names:
        if name.endswith(".db"):
            database = sqlite3.connect(name, timeout=WAIT_MAX_S)
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",), name
            database.close()


def run_until_full(town, disk, job, bundle):
    """What a run said that was overtaken by a full disk; None: it was faster than this test."""
    run = town.start("honest", "prover", "run", job, "--bundle", bundle, "--offline", *ALONE)
    town.until(lambda: len(glob.glob(bundle + "/checkpoints/*.safetensors")) >= 2
               or run.code() is not None, "it keeps checkpoints")
    disk.fill()
    town.until(lambda: run.code() is not None, "it ends")
    disk.make_room()
    if run.code() == 0:
        return None
    assert run.code() == 2, (run.code(), run.said())
    return run.said()


def a_run_stops_and_goes_on_with_the_same_bits():
    with Town(("client", "honest")) as town, Disk(town) as disk:
        said = None
        for steps in (600, 2400, 9600, 38400):
            job = town.new_job("%d.job" % steps, "--steps", str(steps), "--segment-steps",
                               str(steps // 30))
            bundle = disk.path("%d.run" % steps)
            said = run_until_full(town, disk, job, bundle)
            if said is not None:
                break
            shutil.rmtree(bundle)
        assert said is not None and says_full(said), said
        see_whole(bundle)
        done = town.roots(bundle)
        wanted = town.roots(town.train("client", job, "easy.run"))
        assert 0 < len(done) < steps and done == wanted[:len(done)]
        town.run("honest", "prover", "resume", bundle, "--offline", *ALONE)
        assert town.roots(bundle) == wanted
        town.run("honest", "audit", bundle, *ALONE)


def a_run_that_cannot_begin_leaves_nothing():
    with Town(("client", "honest")) as town, Disk(town) as disk:
        job = town.new_job("a.job")
        disk.fill()
        words = ["prover", "run", job, "--bundle", disk.path("a.run"), "--offline", *ALONE]
        said = town.run("honest", *words, wanted=1)
        assert "room" in said or "disk" in said, said
        disk.make_room()
        assert os.listdir(disk.place) == [], os.listdir(disk.place)


def an_audit_says_so_and_leaves_no_half_report():
    with Town(("client", "honest")) as town, Disk(town) as disk:
        job = town.new_job("a.job")
        for name, more, wanted in (("true.run", (), 0), ("false.run", ("--falsify", str(STEP)), 1)):
            bundle = town.train("client", job, name, *more)
            words = ["audit", bundle, *ALONE, "--report",
                     disk.path("report.html"), "--evidence-folder", disk.place]
            disk.fill()
            done = subprocess.run([LOCKSTEP, *words], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  env=town.environment("client"), timeout=WAIT_MAX_S)
            assert done.returncode == 2 and says_full(done.stdout), (done.returncode, done.stdout)
            assert os.listdir(disk.place) == ["filler"], os.listdir(disk.place)
            disk.make_room()
            town.run("client", *words, wanted=wanted)
            assert os.path.getsize(disk.path("report.html")) > 1000
            for left in os.listdir(disk.place):
                os.unlink(disk.path(left))


def a_node_pauses_and_loses_nothing():
    state = "verifier/state/lockstep/verifier"
    with Town(PEOPLE) as town, Disk(town, state) as disk:
        job = town.new_job("a.job")
        keys = {who: town.open_job(job) for who in ("honest", "cheat")}
        for who, more in (("honest", ()), ("cheat", ("--falsify", str(STEP)))):
            town.solve(who, job, keys[who], *more)
        for key in keys.values():
            town.until_count(SEGMENTS, "committed", key)
        places = ["--mirror", town.path("honest.run"), "--mirror",
                  town.serve("cheat", town.path("cheat.run"))[1]]
        disk.fill()
        node = town.verifier(*places)
        node.again = True  # it may not even begin, and a service manager starts it again
        town.until(lambda: says_full(node.said()), "it cannot begin")
        disk.make_room()
        for kind in ("sealed a verdict", "claimed"):
            if kind == "claimed":
                pass_sealing(town)
            town.until_count_at_least(1, kind)
            said = len(node.said())
            disk.fill()
            town.until(lambda: says_full(node.said()[said:]), "it says so")
            assert node.code() is None, node.said()
            disk.make_room()
        see_conviction(town, keys["cheat"])
        see_pay(town, keys["honest"], node)
        see_money(town, keys, 0)
        see_once(town, keys)
        assert node.stop() == 0, node.said()
        see_whole(disk.place)


def own_room():
    """This test once more, where it may mount; None: nobody may."""
    for more in ([], ["--map-root-user"]):
        unshare = ["unshare", "--mount", *more]
        probe = "mount -t tmpfs -o size=65536 none /mnt"
        if shutil.which("unshare") and subprocess.run(
                [*unshare, "sh", "-c", probe], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
            return unshare
    return None


if "OWN_ROOM" not in os.environ:
    room = own_room()
    if room is None:
        print("1..1\nskip: no file system may be mounted here\nok 1 # SKIP full disks")
        sys.exit(0)
    os.environ["OWN_ROOM"] = "1"
    os.execvp(room[0], [*room, sys.executable, *sys.argv])

sys.exit(stage.main([a_run_stops_and_goes_on_with_the_same_bits,
                     a_run_that_cannot_begin_leaves_nothing,
                     an_audit_says_so_and_leaves_no_half_report, a_node_pauses_and_loses_nothing]))
