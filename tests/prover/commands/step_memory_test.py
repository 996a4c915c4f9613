"""Goal: what `job new`, `job show` and `prover probe` say of the memory of a step is what a run takes.
Method: the peak of a whole run's resident memory against the plan, for activations that are kept and
made again, and for frozen 16-bit weights that are packed in each step and once."""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../../support")]
sys.dont_write_bytecode = True

import tiny_llama  # noqa: E402
from program import DATA, LOCKSTEP, ask, call, main, path  # noqa: E402

MIB = 1 << 20
PROGRAM = 40 * MIB  # the program, its threads and libraries, and the journal
WAYS = {"plain": [], "recompute": ["--recompute"], "hoist": ["--hoist"]}


def peak(job, way, *data):
    """Bytes of a run of two steps."""
    words = [w for name in data for w in ("--data", name)]
    child = subprocess.Popen([LOCKSTEP, "prover", "run", job, *words, *WAYS[way], "--offline",
                              "--threads", "1", "--bundle", job + "." + way],
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    told = child.stderr.read()
    _, code, usage = os.wait4(child.pid, 0)
    child.returncode = code
    assert code == 0, told[-300:]
    return 1024 * usage.ru_maxrss


def check(job, *data):
    told = ask("job", "show", job)["step_memory"]
    for way in WAYS:
        taken = peak(job, way, *data)
        print("# %s: planned %.1f MiB and %.1f of data, taken %.1f" % (
            way, told["cpu"][way] / MIB, told["data"] / MIB, taken / MIB))
        assert 0.95 * told["cpu"][way] <= taken, (way, told, taken)
        read = told["data_hoist" if way == "hoist" else "data"]  # what is packed is dropped
        assert taken <= 1.1 * (told["cpu"][way] + read) + PROGRAM, (way, told, taken)
    return told


def activations_are_planned():
    job = path("a.job")
    made = ask("job", "new", "--data", DATA, "--width", "192", "--layers", "6", "--length", "256",
               "--batch", "8", "--vocabulary", "128", "--steps", "2", "--segment-steps", "2", "--out", job)
    told = check(job, DATA)
    assert told == made["step_memory"]
    assert told["cpu"]["recompute"] < 0.6 * told["cpu"]["plain"]
    assert told["gpu"]["recompute"] < 0.6 * told["gpu"]["plain"]
    probe = ask("prover", "probe", job, "--bundle", path("."))["job"]
    assert probe["step_memory"] == told
    text = call("job", "show", job).stdout.decode()
    assert re.search(r"a step +on a CPU +%.2f MiB, with --recompute %.2f MiB" % (
        told["cpu"]["plain"] / MIB, told["cpu"]["recompute"] / MIB), text), text


def micro_batches_grow_by_their_sums_alone():
    made = [ask("job", "new", "--data", DATA, "--length", "16", "--layers", "2", "--accumulate", n,
                "--steps", "2", "--segment-steps", "2", "--out", path(n + ".acc"))["step_memory"]
            for n in ("1", "8", "5000")]
    assert made[1] == made[2], made
    for device in "cpu", "gpu":
        assert made[0][device]["plain"] < made[1][device]["plain"], made


def frozen_weights_are_planned():
    place = path("base")
    size = tiny_llama.write(place, vocab_size=4096, hidden_size=512, intermediate_size=1024,
                            num_hidden_layers=4, tie_word_embeddings=True)
    job = path("lora.job")
    ask("job", "new", "--base", place, "--data", DATA, "--data-type", "u8", "--length", "64", "--batch", "1", "--lora",
        "4", "--steps", "2", "--segment-steps", "2", "--out", job)
    told = check(job, DATA, place)
    assert told["data"] >= size
    assert told["cpu"]["hoist"] > told["cpu"]["plain"] + size  # packed for both directions
    assert told["gpu"]["plain"] > size
    assert told["data"] - told["data_hoist"] == size - 2 * 4096 * 512, (told, size)  # the embedding


if __name__ == "__main__":
    if os.environ.get("TEST_BUILD", "").endswith("/asan"):
        print("1..0 # SKIP a sanitized program takes more memory")
        sys.exit(0)
    sys.exit(main([activations_are_planned, micro_batches_grow_by_their_sums_alone,
                   frozen_weights_are_planned]))
