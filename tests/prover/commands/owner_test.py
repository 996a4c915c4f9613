"""Goal: commands that run a job's program in their own process, for its owner or an auditor, are kept
from all but the files that they were told of: the job may be a stranger's.
Method: the built program writes into a pipe that is full, so it stands at its answer, and /proc says
what the kernel holds it to; read again, the answer is the one that a free process gives."""

import fcntl
import json
import os
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
SANITIZED = os.path.basename(os.path.dirname(LOCKSTEP)) == "asan"
DATA = "fixtures/text/village.u8"
WAIT_MAX_S = 60
PAGE = 4096

folder = tempfile.mkdtemp(prefix="lockstep-test-")


def path(name):
    return os.path.join(folder, name)


def lockstep(*words):
    return subprocess.run([LOCKSTEP, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, check=True).stdout


def kernel_says(process):
    fields = processes.fields_of("/proc/%d/status" % process.pid)
    return fields["Seccomp"], fields["NoNewPrivs"], int(fields["CapEff"], 16) & ~6


def held(*words):
    """What the kernel says of this command while it stands at its answer, and the answer."""
    readable, writable = os.pipe()
    fcntl.fcntl(writable, fcntl.F_SETPIPE_SZ, PAGE)
    os.write(writable, b"." * PAGE)
    process = processes.start([LOCKSTEP, *words], stdout=writable, stderr=subprocess.PIPE)
    os.close(writable)
    end = time.monotonic() + WAIT_MAX_S
    told = kernel_says(process)
    while told[0] == "0" and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
        told = kernel_says(process)
    with os.fdopen(readable, "rb") as pipe:
        answer = pipe.read()[PAGE:]
    _, trouble = process.communicate(timeout=WAIT_MAX_S)
    assert process.returncode == 0, trouble[-600:]
    return told, answer


def is_confined(*words):
    if SANITIZED:
        raise tap.Skip("a sanitized program is not confined")
    told, answer = held(*words)
    assert told == ("2", "1", 0), told
    return json.loads(answer)


def a_trace_is_confined():
    root = is_confined("trace", "root", path("a.run"), "3", "--json")
    assert len(root["trace_root"]) == 64, root


def a_trace_that_writes_is_confined():
    opened = is_confined("trace", "open", path("a.run"), "3", "1.0[0]", "--out",
                path("an.opening"), "--json")
    checked = json.loads(lockstep("trace", "check", path("an.opening"), "--root", opened["trace_root"],
                                  "--job", path("a.job"), "--json"))
    assert checked["bits"] == opened["bits"], (checked, opened)


def a_look_at_held_out_data_is_confined():
    figures = is_confined("job", "eval", path("a.run"), "--data", DATA, "--out", path("eval.job"),
                          "--json")
    assert 0 < figures["loss"] < 10, figures
    assert os.path.getsize(path("eval.job")) > 0


try:
    lockstep("job", "new", "--data", DATA, "--layers", "1", "--heads", "1", "--width", "16", "--length",
             "8", "--batch", "1", "--vocabulary", "128", "--steps", "10", "--segment-steps", "5",
             "--eval", DATA, "--out", path("a.job"))
    lockstep("prover", "run", path("a.job"), "--bundle", path("a.run"), "--data", DATA, "--data", DATA)
    code = tap.run([a_trace_is_confined, a_trace_that_writes_is_confined,
                    a_look_at_held_out_data_is_confined])
finally:
    shutil.rmtree(folder, ignore_errors=True)
sys.exit(code)
