"""Goal: --stop-above and --patience end a local run where its held-out figures say so, the bundle and
an audit say the same, and `bundle export --best` takes the state with the least figure.
Method: a small Llama learns text, and is looked at on noise, so the figure falls and then rises. The
rule once more in Python, on the figures of a run without one. Runs that are killed and go on, a
bundle as one file, a rule that somebody changed, a ledger, jobs that look at nothing."""

import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
sys.dont_write_bytecode = True

import tiny_llama  # noqa: E402
from program import LOCKSTEP, ask, call, main, path  # noqa: E402

DATA = "fixtures/text/village.u8"
STEPS, SEGMENT = 30, 2


def files():
    if not os.path.exists(path("noise.u8")):
        tiny_llama.write(path("base"), num_hidden_layers=1, hidden_size=32, intermediate_size=64)
        with open(path("noise.u8"), "wb") as file:
            file.write(random.Random(3).randbytes(400))
    return ["--data", DATA, "--data", path("noise.u8")]


def new_job(name, *more):
    files()
    return ask("job", "new", "--base", path("base"), "--data", DATA, "--data-type", "u8", "--length", "16",
               "--batch", "2", "--steps", str(STEPS), "--segment-steps", str(SEGMENT), "--rate", "0.011",
               "--warmup", "0", "--calibrate", "none", "--out", path(name), *more)


def run(bundle, *more, job="job", wanted=0):
    if not os.path.exists(path("job")):
        new_job("job", "--eval", path("noise.u8"), "--eval-every", "3", "--eval-batches", "4")
    return ask("prover", "run", path(job), *files(), "--first-state", path("base"), "--bundle",
               path(bundle), *more, wanted=wanted)


def looks():
    """(steps done, loss) of each look of a run without a rule, and its state roots."""
    if not os.path.exists(path("plain")):
        run("plain")
    steps = ask("bundle", "steps", path("plain"))["steps"]
    return ([(step["step"] + 1, step["held_out_loss"]) for step in steps
             if step["held_out_loss"] is not None], [step["state_root"] for step in steps])


def end_of(found, above=None, patience=None):
    """After how many steps a run ends, by which rule, and where the least figure was."""
    least, at, worse = None, 0, 0
    for after, loss in found:
        if least is None or loss < least:
            least, at, worse = loss, after, 0
        else:
            worse += 1
        if above is not None and loss > above:
            return after, "--stop-above", at
        if patience is not None and worse >= patience:
            return after, "--patience", at
    return STEPS, None, at


def check(bundle, found, roots, **rule):
    end, by, at = end_of(found, **rule)
    assert by is not None and end < STEPS, (found, rule)
    told = ask("bundle", "status", path(bundle))
    assert told["steps"] == end, (told, end)
    assert re.match("ended after step %d by %s .*after step %d$" % (end, by, at), told["ended"]), told
    steps = ask("bundle", "steps", path(bundle))["steps"]
    assert [step["state_root"] for step in steps] == roots[:end]
    audit, = ask("audit", path(bundle), *files())["audits"]
    assert audit["answer"] == "proven" and audit["ended"] == told["ended"], audit
    return end, at


def a_rule_ends_a_run_where_its_figures_say_so():
    found, roots = looks()
    assert [after for after, _ in found] == [*range(4, STEPS, 4), STEPS], found  # 3 is rounded up
    losses = [loss for _, loss in found]
    assert 0 < losses.index(min(losses)) < len(losses) - 2, losses
    run("patient", "--patience", "2")
    end, at = check("patient", found, roots, patience=2)
    above = (max(losses[1:-1]) + min(losses)) / 2
    run("above", "--stop-above", "%.9g" % above)
    check("above", found, roots, above=above)
    run("both", "--stop-above", "1000", "--patience", "1")
    check("both", found, roots, patience=1)
    run("never", "--stop-above", "1000", "--patience", "1000")
    told = ask("bundle", "status", path("never"))
    assert told["steps"] == STEPS and told["ended"] is None, told
    again = ask("prover", "resume", path("patient"))
    assert again["steps"] == end and again["first"] == end, again
    shown = call("audit", path("patient"), *files()).stdout.decode()
    assert "ended after step %d by --patience" % end in shown, shown
    call("bundle", "export", path("patient"), path("hf.tar.zst"))
    call("bundle", "import", path("hf.tar.zst"), path("fetched"))
    check("fetched", found, roots, patience=2)
    shutil.copytree(path("patient"), path("changed"))
    with open(path("changed/stop.rule"), "r+b") as file:
        file.seek(12)
        file.write(struct.pack(">I", 1))
    first = end_of(found, patience=1)[0]
    audit, = ask("audit", path("changed"), *files(), wanted=2)["audits"]
    assert audit["answer"] == "cannot-tell" and "after step %d by --patience" % first in audit["reason"], audit


def a_run_that_was_killed_ends_at_the_same_step():
    found, roots = looks()
    words = [LOCKSTEP, "prover", "run", path("job"), *files(), "--first-state", path("base"), "--bundle",
             path("killed"), "--patience", "2"]
    running = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not os.path.exists(
            path("killed/checkpoints/%012d.safetensors" % SEGMENT)):
        time.sleep(0.002)
    running.send_signal(signal.SIGKILL)
    running.wait()
    ask("prover", "resume", path("killed"))
    check("killed", found, roots, patience=2)


def the_best_state_is_exported():
    found, _ = looks()
    _, at = end_of(found, patience=2)[0], end_of(found, patience=2)[2]
    run("pruned", "--keep", "1", "--patience", "2")
    for bundle in ("plain", "patient"):
        out = path(bundle + ".hf")
        call("bundle", "export", path(bundle), "--hf", out, "--base", path("base"), "--best")
        call("bundle", "export", path(bundle), "--hf", out + ".step", "--base", path("base"), "--step",
             str(at))
        with open(out + "/model.safetensors", "rb") as one, open(
                out + ".step/model.safetensors", "rb") as other:
            assert one.read() == other.read()
    said = ask("bundle", "export", path("pruned"), "--hf", path("none"), "--base", path("base"),
               "--best", wanted=3)["error"]
    assert "after %d steps" % at in said["message"] and "--step" in said["advice"], said
    said = ask("bundle", "export", path("plain"), "--hf", path("none"), "--best", "--step", "4", wanted=3)
    assert "--best" in said["error"]["message"], said
    said = ask("bundle", "export", path("plain"), path("none"), "--best", wanted=3)
    assert "--hf" in said["error"]["message"], said


def where_there_is_no_rule_it_is_refused_by_name():
    looks()
    new_job("blind")
    said = ask("prover", "run", path("blind"), "--data", DATA, "--first-state", path("base"), "--bundle",
               path("no"), "--patience", "2", wanted=3)["error"]
    assert "the job has none" in said["message"] and not os.path.exists(path("no")), said
    ledger = "local:" + path("try.ledger")
    said = run("no", "--patience", "2", "--ledger", ledger, wanted=3)["error"]
    assert "on a ledger" in said["message"] and not os.path.exists(path("no")), said
    call("ledger", "init", path("try.ledger"))
    for words in (["prover", "commit"], ["prover", "resume"]):
        said = ask(*words, path("patient"), "--ledger", ledger, wanted=3)["error"]
        assert "on a ledger" in said["message"], (words, said)
    for words, part in ((["--stop-above", "0"], "above 0"), (["--patience", "0"], "patience")):
        said = run("no", *words, wanted=3)["error"]
        assert part in said["message"], said


def a_rounded_distance_is_said():
    files()
    job = ["--eval", path("noise.u8")]
    made = new_job("rounded", *job, "--eval-every", "3")
    assert made["eval_every"] == 4, made
    shown = call("job", "new", "--base", path("base"), "--data", DATA, "--data-type", "u8", "--steps",
                 "30", "--segment-steps", "2", "--length", "16", "--eval-every", "3", *job, "--out",
                 path("said")).stdout.decode()
    assert "after every 4 steps, and after the last; --eval-every 3 is rounded up" in shown, shown
    shown = call("job", "show", path("said")).stdout.decode()
    assert "after every 4 steps, and after the last\n" in shown, shown
    assert new_job("whole", *job, "--eval-every", "4")["eval_every"] == 4
    assert new_job("tenth", *job)["eval_every"] == 4


if __name__ == "__main__":
    sys.exit(main([a_rule_ends_a_run_where_its_figures_say_so, a_run_that_was_killed_ends_at_the_same_step,
                   the_best_state_is_exported, where_there_is_no_rule_it_is_refused_by_name,
                   a_rounded_distance_is_said]))
