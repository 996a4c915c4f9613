"""Goal: `lockstep verifier plan` says what plan.h computes, from options and from jobs, and refuses
what makes no sense. Method: runs the built program and computes the same figures a second time."""

import json
import math
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../../support")]
sys.dont_write_bytecode = True

from program import DATA, call, main, path  # noqa: E402

job = path("a.job")
ETHER = 10**18


def plan(*words):
    return json.loads(call("verifier", "plan", *words, "--json").stdout)


def samples_follow_the_confidence():
    told = plan("--segments", "1000", "--bad", "1", "--confidence", "0.99")
    assert told["samples"] == 990 and told["money"] is None and told["seconds_of_all"] is None
    told = plan("--segments", "1000", "--fraction", "0.05", "--confidence", "0.95")
    assert told["bad"] == 50
    missed = [math.comb(950, n) / math.comb(1000, n) for n in range(100)]
    assert told["samples"] == next(n for n, p in enumerate(missed) if p <= 0.05)
    assert told["samples_of_a_stream"] == 59  # Wilks, 1941
    told = plan("--segments", "7", "--bad", "7")
    assert told["samples"] == 1


def time_is_steps_times_seconds():
    told = plan("--segments", "200", "--segment-steps", "50", "--seconds-per-step", "2",
                "--bad", "200", "--replay", "1")
    assert told["seconds_of_samples"] == 100 and told["seconds_of_all"] == 20000


def a_cost_that_is_not_known_is_guessed_and_says_so():
    words = ["--segments", "100", "--segment-steps", "36", "--reward", "2.6eth"]
    timed = ["--seconds-per-step", "100"]
    for more, wanted in (([], "--price"), (timed, "--price"), (["--price", "0.01eth"], "--data")):
        money = plan(*words, *more)["money"]
        assert not money["segment_cost_is_known"]
        assert math.isclose(money["segment_cost"], 0.02 * ETHER)
        said = call("verifier", "plan", *words, *more).stdout.decode()
        assert "a guess" in said and wanted in said, said
    for more in (["--segment-cost", "0.01eth"], timed + ["--price", "0.01eth"]):
        assert plan(*words, *more)["money"]["segment_cost_is_known"]


def money_is_the_closed_form():
    asked = ["--segments", "100", "--segment-steps", "36", "--seconds-per-step", "100",
             "--price", "0.01eth", "--reward", "2eth", "--stake", "1eth", "--fee", "0.015eth",
             "--seats", "2", "--coverage", "0.5", "--partners", "0.2", "--watchers", "3",
             "--extra", "0.1", "--open-segments", "2", "--saved", "0.5", "--bad", "4"]
    told = plan(*asked, "--panel", "10")
    money = told["money"]
    d = 1 - (1 - 0.5 * (1 - 2 / 10 * 1 / 9)) * 0.9**3  # both seats are the two partners
    gain, loss = 0.5 * 0.01, 0.75 + 2 * 0.02  # a cheat may claim a quarter of its stake itself
    assert math.isclose(told["detection_of_a_segment"], d)
    assert math.isclose(money["segment_cost"], 0.01 * ETHER)
    assert math.isclose(money["cheat"]["value"], (gain - d * loss) * ETHER)
    assert math.isclose(money["cheat"]["advantage"],
                        (1 - (1 - d)**4) * (gain / d - loss) * ETHER)
    assert math.isclose(money["seat_profit"], (0.015 - 1.05 * 0.01) * ETHER)
    leg = (1 - 0.5**16) / 0.5  # the sixteenth is always covered, and the last wants three rights
    assert math.isclose(money["verifying"], 0.015 * (2 * 99 / leg + 3) * ETHER)
    hidden = plan(*asked, "--panel", "3")["money"]["cheat_that_hides_data"]
    # one partner of three never has twice the unseens: void, at the price of three segments
    assert math.isclose(hidden["detection"], 0.5, rel_tol=1e-9)
    assert math.isclose(hidden["loss"], (3 * 0.02 + 2 * 0.02) * ETHER)
    at = asked.index("--open-segments")
    of_periods = plan(*asked[:at], *asked[at + 2:], "--panel", "3")["money"]["cheat_that_hides_data"]
    waiting = 6 + (leg + 1) / 2  # an hour a segment, six hours of periods
    assert math.isclose(of_periods["loss"], (2 * waiting + 1) * 0.02 * ETHER)
    assert not money["cheat"]["pays"]
    usual = plan("--segments", "100", "--reward", "2.6eth", "--replay", "1.5")["money"]
    assert math.isclose(usual["segment_cost"], 0.02 * ETHER)
    assert math.isclose(usual["fee"], 0.026 * ETHER)
    assert math.isclose(usual["seat_profit"], (0.026 - 1.5 * 0.02) * ETHER)
    weak = plan("--segments", "10", "--reward", "1eth", "--segment-cost", "0.09eth", "--seats", "0",
                "--watchers", "0")["money"]
    assert weak["cheat"]["pays"] and weak["stake_least"] is None and weak["coverage_least"] is None
    text = call("verifier", "plan", "--segments", "10", "--reward", "1eth", "--segment-cost",
                "0.09eth", "--seats", "0", "--watchers", "0").stdout
    assert b"IT PAYS" in text and b"none is enough" in text
    assert b"no money in the plan" in call("verifier", "plan", "--segments", "10").stdout


def job_is_read_and_timed():
    call("job", "new", "--data", DATA, "--layers", "1", "--heads", "1", "--width", "8", "--length", "4",
         "--batch", "1", "--vocabulary", "128", "--steps", "12", "--segment-steps", "4", "--out", job)
    told = plan(job)
    assert (told["segments"], told["segment_steps"]) == (3, 4) and told["seconds_per_step"] is None
    told = plan(job, "--data", DATA, "--measure", "0.05")
    assert 0 < told["seconds_per_step"] < 60
    assert told["replay"] > 1.05 and told["segment_steps_least"] > 4  # such a step is nothing
    assert math.isclose(told["seconds_of_all"], told["replay"] * 12 * told["seconds_per_step"])
    least = told["segment_steps_least"]
    beside = (told["replay"] - 1) * 4  # in steps
    assert math.ceil(beside / 0.05 - 1e-6) <= least <= math.ceil(beside / 0.05 + 1e-6)
    told = plan(job, "--data", DATA, "--measure", "0.05", "--replay", "1.2")
    assert told["replay"] == 1.2
    call("verifier", "plan", job, "--replay", "0.9", wanted=3)
    assert b"steps timed" in call("verifier", "plan", job, "--data", DATA, "--measure", "0.05").stdout
    call("verifier", "plan", job, "--data", "README.md", wanted=1)


def nonsense_is_refused():
    for words in (["--segments", "0"], [], ["--segments", "5", "--bad", "6"],
                  ["--segments", "5", "--confidence", "1"], ["--segments", "5", "--coverage", "1.5"],
                  ["--segments", "5", "--fraction", "0"], ["--segments", "5", "--reward", "much"]):
        call("verifier", "plan", *words, wanted=3)


sys.exit(main([samples_follow_the_confidence, time_is_steps_times_seconds,
               a_cost_that_is_not_known_is_guessed_and_says_so, money_is_the_closed_form,
               job_is_read_and_timed, nonsense_is_refused]))
