"""Goal: kill -9 at any instant, and a disk that is full at any size, cost time and not one bit.
Method: one uninterrupted run is the measure. Then runs are killed at 30 random instants (a fixed
seed), some several times, and resumed to their end; and runs are given a limit to the size of any
file, as a full disk would, and resumed without it. Every end must be the measure's: the last
state's root and every segment's, with checkpoints that hash to them and no half-written file. Where
states are hashed beside the next step, a journal that a kill left is a beginning of the measure's."""

import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
sys.dont_write_bytecode = True

import processes  # noqa: E402
import tap  # noqa: E402

LOCKSTEP = os.environ["TEST_LOCKSTEP"]
DATA = "fixtures/text/village.u8"
SOAK = int(os.environ.get("SOAK_MINUTES", "0")) > 0
KILLS = 300 if SOAK else 8 if "TEST_QUICK" in os.environ else 30
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
LIMITS = range(0, 400, 2 if SOAK else 25)

folder = tempfile.mkdtemp(prefix="lockstep-test-")
numbers = random.Random(20)


def path(name):
    return os.path.join(folder, name)


def lockstep(*words, wanted=0):
    done = subprocess.run([LOCKSTEP, *words, "--json"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    assert done.returncode == wanted, (words, done.returncode, done.stdout, done.stderr[-400:])
    return json.loads(done.stdout)


def make_job():
    lockstep("job", "new", "--data", DATA, "--layers", "1", "--heads", "1", "--width", "16",
             "--length", "8", "--batch", "1", "--vocabulary", "128", "--steps", "120", "--segment-steps",
             "4", "--out", path("small.job"))


def command(verb, run):
    words = [LOCKSTEP, "prover", verb]
    words += [path("small.job"), "--bundle", path(run), "--data", DATA] if verb == "run" else [
        path(run), "--data", DATA]
    return words + ["--threads", "1", "--keep", "3", "--keep-every", "5"]


def started(run):
    """Is there a bundle, or only what a crash left of the making of one?"""
    return os.path.exists(os.path.join(path(run), "job"))


def go_on(run):
    verb = "resume" if started(run) else "run"
    done = subprocess.run(command(verb, run), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr[-600:]


def end_of(run):
    """What everybody can see of a finished run."""
    steps = lockstep("bundle", "steps", path(run), "--count", "1000")["steps"]
    assert lockstep("bundle", "check", path(run))["damaged"] == 0
    names = sorted(os.listdir(os.path.join(path(run), "checkpoints")))
    left = [name for name in os.listdir(path(run)) if name not in
            ("job", "journal.db", "journal.db-wal", "journal.db-shm", "lock", "checkpoints")]
    assert left == [], left
    return ([(step["step"], step["state_root"], step["loss"]) for step in steps],
            lockstep("bundle", "segments", path(run))["segments"], names)


def killed_after(words, seconds):
    """Starts a program and kills it; returns whether it was still running."""
    process = processes.start(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        process.wait(seconds)
        return False
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return True


def measure():
    before = time.time()
    go_on("measure")
    return end_of("measure"), time.time() - before


def assert_same(end, run):
    """Says which part of an end is not the measure's: a test of chance is not easily run again."""
    for part, is_now, wanted in zip(("steps", "segments", "checkpoints"), end, MEASURE):
        assert is_now == wanted, (run, part, [pair for pair in zip(is_now, wanted)
                                              if pair[0] != pair[1]][:3],
                                  len(is_now), len(wanted))


def runs_killed_at_random_instants_end_at_the_same_bits():
    kills = survived = number = 0
    while kills < KILLS:
        run = "killed %d" % number
        number += 1
        for _ in range(numbers.randint(1, 4)):
            verb = "resume" if started(run) else "run"
            was_running = killed_after(command(verb, run), numbers.uniform(0, 0.9) * DURATION)
            kills += was_running
            survived += not was_running
        go_on(run)
        assert_same(end_of(run), run)
        shutil.rmtree(path(run))
    print("# %d kills in %d runs, %d came too late" % (kills, number, survived))


def runs_on_a_full_disk_stop_with_a_word_and_go_on():
    refused = 0
    for limit in LIMITS:
        run = "full at %d" % limit

        def no_more():
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit * 512, limit * 512))

        done = subprocess.run(command("run", run), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              preexec_fn=no_more, restore_signals=False)
        assert done.returncode in (0, 2), (limit, done.returncode, done.stderr[-400:])
        if done.returncode == 2:
            refused += 1
            assert b"lockstep prover run: " in done.stderr, done.stderr
        go_on(run)
        assert_same(end_of(run), run)
        shutil.rmtree(path(run))
    assert refused > len(LIMITS) // 2, "the limits are too wide to mean anything"


def encrypted_runs_are_killed_too():
    key = path("a.key")
    words = command("run", "encrypted") + ["--encrypt", "--bundle-key", key]
    for _ in range(3):
        killed_after(words, numbers.uniform(0.2, 0.9) * DURATION)
        words = command("resume", "encrypted") + ["--bundle-key", key]
        if not started("encrypted"):
            words = command("run", "encrypted") + ["--encrypt", "--bundle-key", key]
    assert subprocess.run(words, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0
    steps = lockstep("bundle", "steps", path("encrypted"), "--count", "1000", "--bundle-key", key)["steps"]
    assert [(s["step"], s["state_root"], s["loss"]) for s in steps] == MEASURE[0]
    assert lockstep("bundle", "check", path("encrypted"), "--bundle-key", key)["damaged"] == 0


def wide_command(run, threads):
    """The state has more than a mebibyte: beside one thread, a second core hashes it."""
    words = ["resume", path(run)] if started(run) else ["run", path("wide.job"), "--bundle", path(run)]
    return [LOCKSTEP, "prover", *words, "--data", DATA, "--threads", threads]


def roots_of(run):
    steps = lockstep("bundle", "steps", path(run), "--count", "1000")["steps"]
    return [(step["step"], step["state_root"], step["loss"]) for step in steps]


def runs_that_hash_beside_their_steps_are_killed_too():
    lockstep("job", "new", "--data", DATA, "--layers", "2", "--heads", "2", "--width", "96", "--length",
             "16", "--batch", "1", "--vocabulary", "128", "--steps", "60", "--segment-steps", "6",
             "--out", path("wide.job"))
    # All cores compute: nothing is hashed beside a step.
    assert subprocess.run(wide_command("wide measure", "0"), **QUIET).returncode == 0
    wanted = roots_of("wide measure")
    before = time.time()
    assert subprocess.run(wide_command("wide", "1"), **QUIET).returncode == 0
    duration = time.time() - before
    assert roots_of("wide") == wanted
    kills = number = left = 0
    while kills < max(4, KILLS // 3):
        run = "wide killed %d" % number
        number += 1
        kills += killed_after(wide_command(run, "1"), numbers.uniform(0.1, 0.9) * duration)
        if started(run):
            there = roots_of(run)
            assert there == wanted[:len(there)], (run, len(there))
            left += len(there)
        assert subprocess.run(wide_command(run, "1"), **QUIET).returncode == 0
        assert roots_of(run) == wanted, run
        assert lockstep("bundle", "check", path(run))["damaged"] == 0
        shutil.rmtree(path(run))
    assert left > 0, "no kill came behind a journaled step"
    print("# %d kills in %d runs that hash beside their steps left %d journaled steps"
          % (kills, number, left))


TESTS = [
    runs_killed_at_random_instants_end_at_the_same_bits,
    runs_on_a_full_disk_stop_with_a_word_and_go_on,
    encrypted_runs_are_killed_too,
    runs_that_hash_beside_their_steps_are_killed_too,
]


try:
    make_job()
    MEASURE, DURATION = measure()
    code = tap.run(TESTS)
finally:
    shutil.rmtree(folder, ignore_errors=True)
sys.exit(code)
