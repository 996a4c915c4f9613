"""Goal: a check runs where a program that we name puts it, and one that is lost is made again.
Method: audits of a small bundle, true and false, whose processes are started by a script in another
folder, without our environment, as a machine of a cluster would; the script notes each start, and by
name loses the first ones, all of them, or speaks of another version."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../../support")]
sys.dont_write_bytecode = True

from program import DATA, LOCKSTEP, ask, call, main, new_job, path  # noqa: E402

LAUNCHER = """#!/bin/sh
echo "$2" >>%(here)s/starts
count=$(wc -l <%(here)s/starts)
case $1 in
lost) [ "$count" -gt 2 ] || exit 255 ;;
killed) [ "$count" -gt 1 ] || kill -9 $$ ;;
away) exit 255 ;;
other) cd / && exec env -i "$2" "$3" 0.0.1 ;;
esac
cd / && shift && exec env -i "$@"
"""


def starts():
    with open(path("starts"), encoding="ascii") as file:
        return len(file.read().splitlines())


def audit(how, *more, wanted=0):
    if os.path.exists(path("starts")):
        os.remove(path("starts"))
    words = "%s %s %s" % (path("launcher"), how, os.path.abspath(LOCKSTEP))
    return call("audit", path("a.run"), "--launch", words, *more, wanted=wanted)


def prepare():
    new_job("a.job")
    ask("prover", "run", path("a.job"), "--data", DATA, "--bundle", path("a.run"), "--threads", "1")
    with open(path("launcher"), "w", encoding="ascii") as file:
        file.write(LAUNCHER % {"here": os.path.dirname(path("x"))})
    os.chmod(path("launcher"), 0o700)


def what_is_launched_elsewhere_proves_the_same():
    prepare()
    here = ask("audit", path("a.run"))
    assert audit("plain", "--workers", "3").returncode == 0
    assert starts() >= 3, starts()
    audit("plain", "--report", path("a.html"))
    with open(path("a.html"), encoding="utf-8") as file:
        assert "launcher plain" in file.read()
    there = ask("audit", path("a.run"), "--workers", "3", "--launch",
                "%s plain %s" % (path("launcher"), os.path.abspath(LOCKSTEP)))
    assert {key: value for key, value in there.items() if "seconds" not in key} == \
        {key: value for key, value in here.items() if "seconds" not in key}, (here, there)


def a_program_that_is_started_without_ends_of_children_hears_of_them():
    """Who starts us may ignore SIGCHLD, and we inherit it; the system then tells no end."""
    done = subprocess.run([LOCKSTEP, "audit", path("a.run")], stdout=subprocess.PIPE, check=False,
                          stdin=subprocess.DEVNULL, start_new_session=True,
                          preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert done.returncode == 0 and b"proven" in done.stdout, done


def what_is_lost_is_made_again():
    audit("lost")
    assert starts() >= 3, starts()
    audit("killed")
    assert starts() >= 2, starts()


def what_is_lost_thrice_is_not_proven():
    said = audit("away", wanted=2).stderr.decode() + audit("away", wanted=2).stdout.decode()
    assert starts() == 3, starts()
    assert "the check ended with code 255 and no answer" in said, said


def another_version_refuses():
    done = audit("other", wanted=2)
    said = done.stderr.decode() + done.stdout.decode()
    assert "launched a check, and here is" in said and "the same version on all machines" in said, said
    assert starts() == 1, starts()


def what_is_cut_off_ends_itself():
    """In a session of its own, as on another machine; it waits for the rest of its request."""
    version = call("--version").stdout.decode().split()[1]
    child = subprocess.Popen([LOCKSTEP, "--lockstep-check-worker", version], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, start_new_session=True)
    child.stdin.write(b"{")
    child.stdin.flush()
    time.sleep(0.5)
    assert child.poll() is None, "it ended while somebody listened"
    child.stdout.close()
    assert child.wait(timeout=10) == 1
    child.stdin.close()


def words_are_checked_before_anything_starts():
    for words in (" ", "x " * 65):
        said = call("audit", path("a.run"), "--launch", words, wanted=2).stdout.decode()
        assert "not the words of a command" in said, said
    said = call("audit", path("a.run"), "--launch", "/none/such lockstep", wanted=2)
    assert "cannot start /none/such" in said.stderr.decode() + said.stdout.decode(), said
    said = audit("plain", "--device", "auto", wanted=2).stdout.decode()
    assert "say cpu or cuda" in said, said


def a_lie_is_refuted_from_elsewhere():
    shutil.copytree(path("a.run"), path("b.run"))
    with sqlite3.connect(path("b.run/journal.db")) as journal:
        root, = journal.execute("SELECT root FROM steps WHERE step = 7").fetchone()
        journal.execute("UPDATE steps SET root = ? WHERE step = 7", (bytes([root[0] ^ 1]) + root[1:],))
    here = call("audit", path("b.run"), wanted=1).stdout
    os.rename(path("a.run"), path("c.run"))
    os.rename(path("b.run"), path("a.run"))
    there = audit("lost", wanted=1).stdout
    assert b"step 7" in here and b"step 7" in there, (here, there)


def the_self_test_of_a_node_runs_there_too():
    os.remove(path("starts"))
    said = call("verifier", "node", "--self-test", "--self-test-rounds", "2", "--state",
                path("state"), "--launch", "%s plain %s" % (path("launcher"),
                                                                os.path.abspath(LOCKSTEP))).stdout
    assert starts() >= 2 and b"wrong answers 0" in said, (starts(), said)


sys.exit(main([what_is_launched_elsewhere_proves_the_same,
      a_program_that_is_started_without_ends_of_children_hears_of_them, what_is_lost_is_made_again,
      what_is_lost_thrice_is_not_proven, what_is_cut_off_ends_itself, another_version_refuses,
      words_are_checked_before_anything_starts, a_lie_is_refuted_from_elsewhere,
               the_self_test_of_a_node_runs_there_too]))
