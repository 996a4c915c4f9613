"""Goal: `prover run` trains in a process that has no key: it reads no file but its data, writes only
to its bundle, opens no socket, and the kernel holds it to that. A kill of either process costs time
and not one bit, Ctrl-C stops both at a whole step, and a mistake leaves nothing behind.
Method: the built program and what /proc says of its processes; one run that nobody disturbs is the
measure. confined_child_test.c tries what such a process must not do."""

import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
sys.dont_write_bytecode = True

import processes  # noqa: E402
import tap  # noqa: E402

LOCKSTEP = os.environ["TEST_LOCKSTEP"]
SANITIZED = os.path.basename(os.path.dirname(LOCKSTEP)) == "asan"
DATA = "fixtures/text/village.u8"
STEPS = 1500
WAIT_MAX_S = 120
SECRET = "a long secret word"

folder = tempfile.mkdtemp(prefix="lockstep-test-")


def path(name):
    return os.path.join(folder, name)


def lockstep(*words, wanted=0):
    done = subprocess.run([LOCKSTEP, *words, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == wanted, (words, done.returncode, done.stdout, done.stderr[-400:])
    return json.loads(done.stdout)


def words_of(verb, run):
    words = [LOCKSTEP, "prover", verb]
    words += [path("a.job"), "--bundle", path(run)] if verb == "run" else [path(run)]
    return words + ["--data", DATA, "--threads", "1", "--json"]


def start(verb, run, **more):
    return processes.start(words_of(verb, run), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           env=dict(os.environ, **more))


def trainer_of(process):
    return processes.child_of(process, b"--lockstep-trainer")


def is_gone(child):
    """One whose parent was killed may stay as a zombie until somebody waits for it."""
    try:
        return processes.fields_of("/proc/%d/status" % child)["State"].startswith("Z")
    except OSError:
        return True


def until(question, what):
    end = time.monotonic() + WAIT_MAX_S
    while True:
        answer = question()
        if answer:
            return answer
        assert time.monotonic() < end, what
        time.sleep(0.01)


def steps_of(run):
    return len(lockstep("bundle", "steps", path(run), "--count", "100000")["steps"])


def end_of(run):
    steps = lockstep("bundle", "steps", path(run), "--count", "100000")["steps"]
    return [(step["step"], step["state_root"], step["loss"]) for step in steps]


def training(run, **more):
    """A run whose child has made some steps, and that child."""
    process = start("run", run, **more)
    child = until(lambda: trainer_of(process), "there is a child")
    until(lambda: os.path.exists(path(run + "/job")) and steps_of(run) > 0, "it makes steps")
    return process, child


def finish(process, wanted=0):
    said, trouble = process.communicate(timeout=WAIT_MAX_S)
    assert process.returncode == wanted, (process.returncode, said, trouble[-600:])
    return said, trouble.decode(errors="replace")


def kernel_holds_what_trains():
    if SANITIZED:
        raise tap.Skip("a sanitized program is not confined")
    process, child = training("held", LOCKSTEP_PASSPHRASE=SECRET)
    told = {(fields["Seccomp"], fields["NoNewPrivs"], int(fields["CapEff"], 16) & ~6)
            for fields in map(processes.fields_of, glob.glob("/proc/%d/task/*/status" % child))}
    assert told == {("2", "1", 0)}, told
    assert processes.fields_of("/proc/%d/status" % process.pid)["Seccomp"] == "0"
    with open("/proc/%d/environ" % child, "rb") as environ:
        assert SECRET.encode() not in environ.read()
    links = [os.readlink(place) for place in glob.glob("/proc/%d/fd/*" % child)]
    assert not [one for one in links if "wallet" in one], links
    assert [one for one in links if one.endswith("held/journal.db")], links
    finish(process)
    assert end_of("held") == MEASURE


def a_killed_child_is_started_again():
    process, child = training("child")
    os.kill(child, signal.SIGKILL)
    # The killed one stands in /proc until it is waited for.
    until(lambda: trainer_of(process) not in (None, child), "another child goes on")
    said, trouble = finish(process)
    assert "ended by signal 9" in trouble and "another goes on" in trouble, trouble
    assert json.loads(said)["steps"] == STEPS
    assert end_of("child") == MEASURE


def a_killed_command_takes_its_child_along():
    process, child = training("command")
    process.kill()
    process.communicate()
    until(lambda: is_gone(child), "the child ends with its command")
    finish(start("resume", "command"))
    assert end_of("command") == MEASURE


def a_stop_reaches_the_child_at_a_whole_step():
    for run, everybody in (("one", False), ("all", True)):
        process, child = training(run)
        if everybody:  # as a terminal and a service manager do
            os.kill(child, signal.SIGINT)
        process.send_signal(signal.SIGINT)
        said, _ = finish(process, wanted=2)
        assert "stopped after step" in json.loads(said)["error"]["message"], said
        assert is_gone(child)
        assert 0 < steps_of(run) < STEPS
        finish(start("resume", run))
        assert end_of(run) == MEASURE


def a_mistake_leaves_nothing_behind():
    with open(path("other.u8"), "wb") as other:
        with open(DATA, "rb") as data:
            other.write(data.read()[::-1])
    failed = lockstep("prover", "run", path("a.job"), "--bundle", path("no"), "--data",
                      path("other.u8"), wanted=1)
    assert "is not the job's" in failed["error"]["message"], failed
    assert not os.path.exists(path("no"))


try:
    lockstep("job", "new", "--data", DATA, "--layers", "1", "--heads", "1", "--width", "16", "--length",
             "8", "--batch", "1", "--vocabulary", "128", "--steps", str(STEPS), "--segment-steps", "100",
             "--out", path("a.job"))
    finish(start("run", "measure"))
    MEASURE = end_of("measure")
    code = tap.run([kernel_holds_what_trains, a_killed_child_is_started_again,
                    a_killed_command_takes_its_child_along, a_stop_reaches_the_child_at_a_whole_step,
                    a_mistake_leaves_nothing_behind])
finally:
    shutil.rmtree(folder, ignore_errors=True)
sys.exit(code)
