"""Goal: `lockstep prover probe` says what the machine is, what it can take and would earn, and runs on
a GPU leave its use in the log and its energy in the journal. Method: runs the built program; the
emulated CUDA device and a fake NVML stand in for a GPU."""

import json
import math
import os
import re
import sqlite3
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../../support")]
sys.dont_write_bytecode = True

import program  # noqa: E402
from program import DATA, folder, path  # noqa: E402

NONE = {"LOCKSTEP_CUDA": "off", "LOCKSTEP_NVML": "off"}
FAKE = {"LOCKSTEP_CUDA": os.path.abspath("build/tests/emulated_cuda.so"),
        "LOCKSTEP_NVML": os.path.abspath("build/tests/fake_nvml.so"),
        "FAKE_NVML": "1 77 42 1073741824"}
ETHER = 10**18


def call(*words, wanted=0, environment=NONE):
    return program.call(*words, wanted=wanted, environment=environment)


def probe(*words, wanted=0, environment=NONE):
    return json.loads(call("prover", "probe", *words, "--json", wanted=wanted,
                           environment=environment).stdout)


def new_job(name, *more):
    call("job", "new", "--data", DATA, "--layers", "1", "--heads", "1", "--width", "16", "--length", "8",
         "--batch", "2", "--vocabulary", "128", "--steps", "4", "--segment-steps", "2", "--out", path(name),
         *more)
    return path(name)


def machine_without_a_gpu_says_so():
    report = probe()
    assert report["contraction_rate"] > 0 and report["cores"] >= 1 and report["memory"] > 0
    assert report["gpus"] == [] and "LOCKSTEP_CUDA" in report["no_gpu"] and report["job"] is None
    assert report["meets"]["compute_capability"] == 0
    least, most = report["contraction_rate_spread"]
    assert 0 < least <= report["contraction_rate"] <= most, report
    assert report["meets"]["contraction_rate"] == int(least)
    text = call("prover", "probe").stdout.decode()
    assert re.search(r"GPU +none", text) and "--contraction-rate" in text


def gpu_is_told_by_plugin_and_nvml():
    report = probe("--device", "cuda", environment=FAKE)
    gpu = report["gpus"][0]  # the emulated device is there under every number
    assert gpu["contracts_by"] == "mma, half, plain"
    assert gpu["can_train"] and gpu["use_percent"] == 42 and gpu["energy_known"]
    assert report["meets"]["compute_capability"] == gpu["compute_capability"] > 0
    seen = probe(environment=dict(FAKE, LOCKSTEP_CUDA="off"))
    gpu, = seen["gpus"]
    assert (gpu["name"], gpu["memory"], gpu["compute_capability"]) == ("Fake GPU", 2**33, 86)
    assert not gpu["can_train"] and seen["meets"]["compute_capability"] == 0


def job_is_timed_and_priced():
    job = new_job("a.job")
    report = probe(job, "--data", DATA, "--measure", "0.05", "--bundle", folder, "--reward", "2eth",
                 "--price", "0.5eth")["job"]
    assert report["fits"] and report["measured"]
    step = report["seconds_per_step"]
    assert math.isclose(report["tokens_per_second"], 16 / step)
    assert math.isclose(report["income_per_hour"], 2 * ETHER / 4 / step * 3600)
    assert math.isclose(report["profit_per_hour"], report["income_per_hour"] - 0.5 * ETHER)
    guess = probe(job, "--bundle", folder)["job"]
    assert guess["fits"] and not guess["measured"] and guess["income_per_hour"] is None
    assert guess["tokens_per_second"] > 0
    assert b"at most" in call("prover", "probe", job, "--bundle", folder).stdout


def split_is_planned_without_a_gpu():
    job = new_job("split.job", "--layers", "4")
    split = probe(job, "--bundle", folder, "--devices", "1..4", "--link", "10")["job"]["split"]
    rows = split["rows"]
    assert [row["devices"] for row in rows] == [1, 2, 3, 4] and split["needed"] is None, split
    assert all(len(row["memory"]) == row["devices"] and min(row["memory"]) > 0 for row in rows)
    assert rows[0]["moved_bytes"] == 0 and rows[1]["moved_bytes"] > 0
    assert all(math.isclose(row["moving_ms"], row["moved_bytes"] / 10e9 * 1e3) for row in rows)
    assert max(rows[3]["memory"]) < max(rows[0]["memory"])
    for enough in (max(rows[0]["memory"]), max(rows[3]["memory"])):
        for memory in (enough, enough - 1):
            wanted = next((row["devices"] for row in rows if max(row["memory"]) <= memory), None)
            found = probe(job, "--bundle", folder, "--devices", "1..4", "--device-memory",
                          str(memory))["job"]["split"]
            assert found["device_memory"] == memory and found["needed"] == wanted, found
    most = probe(job, "--bundle", folder, "--devices", "12")["job"]["split"]["rows"]
    assert [len(row["memory"]) for row in most] == [12], most
    said = call("prover", "probe", job, "--bundle", folder, "--devices", "2..3").stdout.decode()
    assert "memory of each" in said and "--device-memory BYTES says how many" in said, said
    for bad in ("0", "3..2", "1..13", "two", "2..", "1..2x"):
        call("prover", "probe", job, "--bundle", folder, "--devices", bad, wanted=3)
    call("prover", "probe", "--devices", "2", wanted=3)


def job_that_asks_for_more_is_refused():
    fast = new_job("fast.job", "--contraction-rate", "4000000000")
    report = probe(fast, "--bundle", folder, wanted=1)["job"]
    assert not report["fits"] and "multiply-adds" in report["why_not"]
    small = new_job("small.job")
    report = probe(small, "--bundle", folder, "--memory-max", "1k", wanted=1)["job"]
    assert not report["fits"] and "memory" in report["why_not"]
    call("prover", "probe", path("none.job"), wanted=3)
    call("prover", "probe", small, "--reward", "much", wanted=3)
    # What an hour costs is not zero because nobody said it.
    report = probe(small, "--reward", "2eth", "--bundle", folder)["job"]
    assert report["income_per_hour"] > 0 and report["profit_per_hour"] is None, report
    said = call("prover", "probe", small, "--reward", "2eth", "--bundle", folder).stdout.decode()
    assert "is not known: give --price" in said and "less 0 eth" not in said, said
    assert os.listdir(folder).count("small.run") == 0


def run_on_a_gpu_is_metered():
    job = new_job("metered.job")
    done = call("prover", "run", job, "--data", DATA, "--bundle", path("metered.run"), "--device", "cuda",
                "--offline", environment=FAKE)
    assert re.search(rb"segment 1: the GPU was busy 42 %", done.stderr), done.stderr[-600:]
    assert b"1024 MiB" in done.stderr
    steps = sqlite3.connect(path("metered.run/journal.db")).execute(
        "SELECT microjoules FROM steps").fetchall()
    notes = dict(sqlite3.connect(path("metered.run/journal.db")).execute(
        "SELECT name, text FROM facts WHERE name LIKE 'gpu.%'").fetchall())
    assert sorted(notes) == ["gpu.0", "gpu.1"] and "busy 42 %" in notes["gpu.1"], notes
    assert len(steps) == 4 and all(energy is not None for energy, in steps), steps


sys.exit(program.main([machine_without_a_gpu_says_so, gpu_is_told_by_plugin_and_nvml, job_is_timed_and_priced,
                        split_is_planned_without_a_gpu, job_that_asks_for_more_is_refused, run_on_a_gpu_is_metered]))
