"""Runs the built program in a folder of the test's own. Not a test."""

import json
import os
import shutil
import subprocess
import tempfile

import tap

LOCKSTEP = os.environ["TEST_LOCKSTEP"]
DATA = "fixtures/text/village.u8"
SIZE = ["--layers", "1", "--heads", "1", "--width", "8", "--length", "4", "--batch", "1",
        "--vocabulary", "128"]
folder = tempfile.mkdtemp(prefix="lockstep-test-")


def path(name):
    return os.path.join(folder, name)


def call(*words, wanted=0, environment=None):
    done = subprocess.run([LOCKSTEP, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, env=dict(os.environ, **(environment or {})),
                          start_new_session=True)  # no terminal: no prompt
    assert done.returncode == wanted, (words, done.returncode, done.stdout[-300:],
                                       done.stderr[-300:])
    return done


def steps_made(bundle):
    """How many; none of a run that only begins, or begins again."""
    asked = subprocess.run([LOCKSTEP, "bundle", "steps", bundle, "--count", "100000", "--json"],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return len(json.loads(asked.stdout)["steps"]) if asked.returncode == 0 else 0


def ask(*words, wanted=0, environment=None):
    done = call(*words, "--json", wanted=wanted, environment=environment)
    return json.loads(done.stdout)


def new_job(name, *more, wanted=0, environment=None):
    return ask("job", "new", "--data", DATA, *SIZE, "--steps", "12", "--segment-steps", "4", "--out",
               path(name), *more, wanted=wanted, environment=environment)


def run(job, bundle, *more, wanted=0, environment=None):
    return ask("prover", "run", path(job), "--data", DATA, "--bundle", path(bundle), *more,
               wanted=wanted, environment=environment)


def main(tests):
    """Returns the exit code."""
    try:
        return tap.run(tests)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
