"""Goal: one function decides whether a step is true: all code that judges asks it, and has no
answer of its own. Method: the whole program with that function replaced by its opposite
(flipped_judge.c). The audit, the self-test, a claim by hand and a node are asked about an honest
solver and a cheat, once with each program: all of them must say the opposite."""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import town as stage  # noqa: E402
from plays import PEOPLE  # noqa: E402
from town import DATA, LOCKSTEP, SEGMENTS, Town  # noqa: E402

FLIPPED = os.environ["TEST_BUILD"] + "/tests/flipped_judge"
LIE = 0  # the step that the cheat falsifies: the first one that anybody judges
PROGRAMS = ((LOCKSTEP, False), (FLIPPED, True))


def be(town, who, program):
    town.rooms[who] = ["sh", "-c", 'shift; exec "$0" "$@"', program]


def both_solvers(town):
    job = town.new_job("a.job")
    keys = {}
    for who, more in (("honest", ()), ("cheat", ("--falsify", str(LIE)))):
        keys[who] = town.open_job(job, "--seats", "0")
        town.solve(who, job, keys[who], *more)
    for who, key in keys.items():
        town.until_count(SEGMENTS, "committed", key)
        town.run(who, "prover", "publish", town.path(who + ".run"), "--out", town.path(who + ".www"))
    return keys


def audits_and_self_tests_are_flipped():
    with Town(PEOPLE) as town:
        job = town.new_job("a.job")
        bundles = {"honest": town.train("honest", job, "honest.run"),
                   "cheat": town.train("cheat", job, "cheat.run", "--falsify", str(LIE))}
        for program, flips in PROGRAMS:
            be(town, "verifier", program)
            for who, bundle in bundles.items():
                blamed = (who == "cheat") != flips
                code = 1 if blamed or flips else 0  # flipped, a later step of the cheat is false
                said = town.run("verifier", "audit", bundle, "--threads", "1", "--json",
                                "--evidence-folder", town.path("."), wanted=code)
                report = json.loads(said.splitlines()[0])["audits"][0]
                assert (report.get("wrong_step") == LIE) == blamed, report
                assert report["answer"] == ("refuted" if code else "proven"), report
            said = town.run("verifier", "verifier", "node", "--self-test", "--self-test-rounds", "4", "--state",
                            town.path("state-%d" % flips), wanted=int(flips))
            assert ("answer was" in said) == flips, said


def claims_by_hand_are_flipped():
    with Town(PEOPLE) as town:
        keys = both_solvers(town)
        for program, flips in PROGRAMS:
            be(town, "verifier", program)
            for who, key in keys.items():
                wins = (who == "cheat") != flips
                said = town.run("verifier", "verifier", "claim", key, str(LIE), "--data", DATA,
                                "--threads", "1", "--mirror", town.path("honest.www"), "--mirror",
                                town.path("cheat.www"), wanted=3 if wins else 1)
                assert ("STAKE" in said) == wins, said


def nodes_are_flipped():
    with Town(PEOPLE) as town:
        keys = both_solvers(town)
        be(town, "verifier", FLIPPED)
        town.verifier("--mirror", town.path("honest.www"), "--mirror", town.path("cheat.www"),
                      "--mode", "defend", "--extra", "1")
        town.until(lambda: town.count("claimed", keys["honest"]) > 0, "it accuses the honest solver")


TESTS = [audits_and_self_tests_are_flipped, claims_by_hand_are_flipped, nodes_are_flipped]
assert subprocess.run([FLIPPED, "--version"], stdout=subprocess.DEVNULL, check=True)
sys.exit(stage.main(TESTS))
