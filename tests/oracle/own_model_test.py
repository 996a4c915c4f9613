"""Goal: docs/OWN_MODEL.md is true: its five programs, as they stand there, become jobs that run and are
proven, and find what they look for.
Method: the page's blocks in their order, in an empty folder: Python in one interpreter, commands in a
shell; then what they found, against PyTorch and what is known."""

import math
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "../..")
sys.path[:0] = [os.path.abspath(os.path.join(HERE, part))
                for part in ("../support", "../../share/lockstep")]
sys.dont_write_bytecode = True

import tap  # noqa: E402
from own_page import blocks, sections  # noqa: E402

try:
    import torch  # noqa: E402
except ImportError:
    print("1..0 # SKIP PyTorch is not here")
    sys.exit(0)

LOCKSTEP = os.path.abspath(os.environ["TEST_LOCKSTEP"])
SECTIONS = 5
found = {}  # what the page's Python has named


def play(number):
    said = ""
    for shell, text in blocks(sections()[number - 1]):
        if shell:
            done = subprocess.run("set -e\n" + text, shell=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, check=False)
            said += done.stdout.decode(errors="replace")
            assert done.returncode == 0, (text, said[-800:])
        else:
            exec(compile(text, "docs/OWN_MODEL.md", "exec"), found)  # noqa: S102 - our own page
    return said


def a_vision_transformer():
    said = play(1)
    assert "vit.run: proven" in said, said[-500:]
    assert found["right"] > 0.6, found["right"]  # one in four by chance


def adapters_by_hand():
    said = play(2)
    assert "lora.run: proven" in said, said[-500:]
    before = float(found["squares"](found["net"], found["x"], found["y"]))
    weight = found["net"][0].linear.weight.clone()
    found["lockstep"].load(found["net"], "lora.run")
    after = float(found["squares"](found["net"], found["x"], found["y"]))
    assert torch.equal(weight, found["net"][0].linear.weight)
    assert after < 0.7 * before, (before, after)


def an_equation():
    play(3)
    assert found["off"] < 0.02, found["off"]


def heat():
    said = play(4)
    state = dict(found["warm"])
    for _ in range(100):
        state = found["heat"](state)
    cooled = found["cooled"]
    assert "heat.run: proven" in said, said[-500:]
    assert int(cooled["time"]) == 100
    apart = float((cooled["u"] - state["u"]).abs().max())
    assert apart < 1e-5, apart
    assert float(state["u"].std()) < 0.2 * float(found["warm"]["u"].std())


def an_estimate():
    said = play(5)
    assert "darts.run: proven" in said, said[-500:]
    assert int(found["thrown"]["thrown"]) == 20
    assert abs(float(found["pi"]) - math.pi) < 0.006, found["pi"]  # five deviations of 2 000 000 points


folder = tempfile.mkdtemp(prefix="lockstep-test-")
ROOT = os.path.abspath(ROOT)
try:
    os.makedirs(os.path.join(folder, "bin"))
    os.symlink(LOCKSTEP, os.path.join(folder, "bin/lockstep"))
    os.environ["PATH"] = os.path.join(folder, "bin") + ":" + os.environ["PATH"]
    os.makedirs(os.path.join(folder, "empty"))
    os.chdir(os.path.join(folder, "empty"))
    assert len(sections()) == SECTIONS
    code = tap.run([a_vision_transformer, adapters_by_hand, an_equation, heat, an_estimate])
finally:
    os.chdir("/")
    shutil.rmtree(folder, ignore_errors=True)
sys.exit(code)
