"""Goal: rewards can be given and compared for an hour of this machine and for a million tokens.
Method: the built program on an embedded ledger whose clock the test sets. What the machine's pace is
stands in a file, so the test writes it and computes every amount by hand."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../support"), os.path.join(HERE, "../support/game")]
sys.dont_write_bytecode = True

import local_ledger  # noqa: E402
from program import DATA, ask, call, main, new_job, path  # noqa: E402

STEPS, SEGMENT, TOKENS = 36, 3, 4  # --length 4, --batch 1
SEGMENTS = STEPS // SEGMENT
ETHER = 10 ** 18
WORDS = {"LOCKSTEP_PASSPHRASE": "pass words", "XDG_STATE_HOME": path("state")}


def say(*words, wanted=0):
    return ask(*words, wanted=wanted, environment=WORDS)


def open_job(name, *more, wanted=0):
    return say("job", "open", path(name), "--ledger", "local:" + path("ledger"), "--wallet",
               path("wallet"), "--yes", "--any-terms", *more, wanted=wanted)


def listed(*more):
    return say("job", "list", "--ledger", "local:" + path("ledger"), *more)["jobs"]


def measure(name, step_ns):
    """As if a probe had found that a step takes so long."""
    os.makedirs(path("state/lockstep/paces"), exist_ok=True)
    with open(path("state/lockstep/paces/%s.cpu" % say("job", "show", path(name))["id"]), "w",
              encoding="utf-8") as file:
        file.write('{"step_ns": %d, "tokens": %d}\n' % (step_ns, TOKENS))


def prepare():
    call("ledger", "init", path("ledger"))
    local_ledger.set_clock(path("ledger"), 1700000000)
    address = ask("wallet", "new", "--light", "--wallet", path("wallet"),
                  environment=WORDS)["address"]
    call("ledger", "faucet", address, "1000eth", "--ledger", "local:" + path("ledger"))
    for name, seed in (("a.job", "1"), ("b.job", "2"), ("c.job", "3")):
        new_job(name, "--steps", str(STEPS), "--segment-steps", str(SEGMENT), "--seed", seed)


def an_hour_needs_a_measurement():
    prepare()
    refusal = open_job("a.job", "--reward", "1eth", "--per-hour", wanted=3)["error"]
    assert "measured" in refusal["message"] and "prover probe" in refusal["advice"], refusal
    measure("a.job", 500 * 10 ** 9)  # 36 steps of 500 s: five hours
    open_job("a.job", "--reward", "2eth", "--per-hour")
    job = listed("--price", "0eth")[0]
    assert int(job["terms"]["reward_wei"]) == 10 * ETHER // SEGMENTS, job
    assert int(job["hour_wei"]) == 10 * ETHER // SEGMENTS * 3600 // 1500, job
    assert open_job("b.job", "--reward", "1eth", "--per-hour", "--per-million-tokens", wanted=3)


def a_million_tokens_need_the_file_alone():
    open_job("b.job", "--reward", "1000eth", "--per-million-tokens")
    job = listed()[0]
    assert int(job["terms"]["reward_wei"]) == 1000 * ETHER * TOKENS * STEPS // 10 ** 6 // SEGMENTS
    assert "hour_wei" not in job, job
    measure("b.job", 10 ** 9)
    assert int(listed()[0]["million_tokens_wei"]) == 1000 * ETHER


def a_list_sorts_by_what_an_hour_earns():
    """The price of the machine is taken off, and what nobody measured comes last."""
    open_job("c.job", "--reward", "1eth")
    hours = [job.get("hour_wei") for job in listed("--per-hour", "--price", "1eth")]
    first = 1000 * ETHER * TOKENS * STEPS // 10 ** 6 // SEGMENTS * 3600 // 3
    second = 10 * ETHER // SEGMENTS * 3600 // 1500
    assert hours == [str(first - ETHER), str(second - ETHER), None], (hours, first, second)
    table = call("job", "list", "--per-hour", "--ledger", "local:" + path("ledger"),
                 environment=WORDS).stdout.decode()
    assert "an hour" in table and "not measured" in table, table
    assert int(listed()[0]["terms"]["reward_wei"]) == ETHER // SEGMENTS


def a_probe_is_remembered():
    say("prover", "probe", path("c.job"), "--data", DATA, "--measure", "0.05", "--threads", "1")
    job = [job for job in listed() if int(job["terms"]["reward_wei"]) == ETHER // SEGMENTS][0]
    assert int(job["hour_wei"]) > 0 and int(job["million_tokens_wei"]) > 0, job


if __name__ == "__main__":
    sys.exit(main([an_hour_needs_a_measurement, a_million_tokens_need_the_file_alone,
                   a_list_sorts_by_what_an_hour_earns, a_probe_is_remembered]))
