"""Runs the built program in a folder of the test's own, and tells of its tests as TAP. Not a
test."""

import json
import os
import shutil
import subprocess
import tempfile

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


def ask(*words, wanted=0, environment=None):
    done = call(*words, "--json", wanted=wanted, environment=environment)
    return json.loads(done.stdout)


def new_job(name, *more, wanted=0, environment=None):
    return ask("job", "new", "--data", DATA, *SIZE, "--steps", "12", "--segment", "4", "--out",
               path(name), *more, wanted=wanted, environment=environment)


def run(job, bundle, *more, wanted=0, environment=None):
    return ask("prover", "run", path(job), "--data", DATA, "--bundle", path(bundle), *more,
               wanted=wanted, environment=environment)


def main(tests):
    """Returns the exit code."""
    failed = 0
    print("1..%d" % len(tests))
    try:
        for number, test in enumerate(tests, 1):
            try:
                test()
                print("ok %d - %s" % (number, test.__name__), flush=True)
            except Exception as error:  # every surprise is a failure of that test
                failed = 1
                print("not ok %d - %s: %r" % (number, test.__name__, error), flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return failed
