"""Goal: `verifier claim` claims a false step and follows the dispute to the verdict; it does not claim
what would lose; an interrupted claim is neither lost nor made twice.
Method: a cheat that falsified one number, an honest solver with the same job, and `verifier claim`
in a town of their own, on the embedded ledger and on anvil; the events and the money are counted."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import town as stage  # noqa: E402
from plays import PEOPLE, STEP  # noqa: E402
from town import BOND, DATA, ETHER, PRIZE, PURSE, SEGMENTS, STAKE, Town  # noqa: E402


def commit_both(town):
    """The keys of their jobs, and where all that is needed of both is to be had."""
    job = town.new_job("a.job")
    keys = {}
    for who, more in (("honest", ()), ("cheat", ("--falsify", str(STEP)))):
        keys[who] = town.open_job(job, "--seats", "0")
        town.solve(who, job, keys[who], *more)
    for who, key in keys.items():
        town.until_count(SEGMENTS, "committed", key)
        town.run(who, "prover", "publish", town.path(who + ".run"), "--out", town.path(who + ".www"))
    return keys


def words(town, key, step, *more):
    return ["verifier", "claim", key, str(step), "--data", DATA, "--threads", "1", "--mirror",
            town.path("honest.www"), "--mirror", town.path("cheat.www"), *more]


def claim_to_the_end(town, gas):
    keys = commit_both(town)
    command = town.start("verifier", *words(town, keys["cheat"], STEP, "--yes", "--json"))
    town.until(lambda: command.code() is not None, "the claim has come to its end")
    assert command.code() == 0, command.said()
    report = json.loads(command.said().splitlines()[-1])
    assert report["outcome"] == "upheld", report
    assert int(report["bond_wei"]) == BOND and int(report["prize_wei"]) == PRIZE, report
    for kind in ("claimed", "answered", "ruled", "convicted"):
        assert town.count(kind, keys["cheat"]) == 1, town.events(job=keys["cheat"])
    lost = PURSE + PRIZE - town.money("verifier")
    assert 0 <= lost <= gas, lost
    # It is over, and stays so.
    assert "stands on the ledger" in town.run("verifier", *words(town, keys["cheat"], STEP, "--yes"),
                                              wanted=1)
    assert town.count("claimed") == 1


def a_false_step_is_claimed_by_hand():
    with Town(PEOPLE) as town:
        claim_to_the_end(town, 0)


def what_would_not_win_is_not_claimed():
    with Town(PEOPLE) as town:
        keys = commit_both(town)
        for key, step, why in ((keys["honest"], STEP, "a claim would lose its bond"),
                               (keys["cheat"], STEP + 1, "the first false step is %d" % STEP),
                               (keys["cheat"], 0, "a claim would lose its bond"),
                               (keys["cheat"], 99, "is not committed"),
                               ("0x" + "11" * 32, 0, "no segment of such a job")):
            said = town.run("verifier", *words(town, key, step, "--yes"), wanted=1)
            assert why in said, said
        said = town.run("verifier", *words(town, keys["cheat"], STEP), wanted=3)
        assert "nobody is there to confirm" in said and "STAKE" in said, said
        for solver in town.processes:  # they serve what the ledger says where to find
            solver.kill()
        said = town.run("verifier", "verifier", "claim", keys["honest"], str(STEP), "--yes",
                        "--mirror", town.path("nowhere"), wanted=2)
        assert "it cannot be told" in said, said
        assert "not the number of a step" in town.run("verifier", *words(town, keys["cheat"], "x"),
                                                      wanted=3)
        assert town.count("sealed") == 0, town.events()
        assert town.money("verifier") == PURSE


def a_claim_that_is_killed_is_carried_on_by_a_node():
    with Town(PEOPLE) as town:
        keys = commit_both(town)
        command = town.start("verifier", *words(town, keys["cheat"], STEP, "--yes"))
        town.until(lambda: town.count("sealed") > 0, "the claim is sealed")
        command.kill()
        node = town.verifier("--mirror", town.path("honest.www"), "--mirror",
                             town.path("cheat.www"), "--mode", "defend", "--extra", "0")
        town.until_count(1, "convicted", keys["cheat"])
        assert town.count("claimed") == 1 and town.count("sealed") == 1, town.events()
        # A folder has one owner at a time.
        said = town.run("verifier", *words(town, keys["honest"], STEP, "--yes"), wanted=1)
        assert "another node uses this verdict database" in said, said
        assert node.stop() == 0, node.said()


def the_same_on_a_chain():
    with Town(PEOPLE, on_chain=True) as town:
        claim_to_the_end(town, ETHER // 5)


TESTS = [
    a_false_step_is_claimed_by_hand,
    what_would_not_win_is_not_claimed,
    a_claim_that_is_killed_is_carried_on_by_a_node,
]
sys.exit(stage.main(TESTS, [the_same_on_a_chain]))
