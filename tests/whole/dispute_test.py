"""Goal: with real programs alone, a solver that falsified one number is convicted, whether it
serves what its trace is made of or says it on the ledger only, and an honest one beside it is paid.
Method: a client, an honest solver, a cheat and a verifier's node in a town of their own, on the
embedded ledger and on anvil. Every move of the dispute is counted; on the embedded ledger the money
of everybody is compared to the wei, on a chain to what gas can cost."""

import json
import os
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import town as stage  # noqa: E402
from plays import PEOPLE, STEP, see_conviction, see_money, see_pay  # noqa: E402
from town import ETHER, NOBODY, SEGMENTS, Town  # noqa: E402

GAS = ETHER // 5


def commit_both(town, *place):
    """Both solvers train, commit everything and stay to answer; returns the keys of their jobs.
    place: where the cheat says that he serves."""
    job = town.new_job("a.job")
    # Both are open before anybody commits: to open a job lets the time of its panel pass.
    keys = {who: town.open_job(job) for who in ("honest", "cheat")}
    for who, more in (("honest", ()), ("cheat", ("--falsify", str(STEP), *place))):
        town.solve(who, job, keys[who], *more)
    for who, key in keys.items():
        town.until_count(SEGMENTS, "committed", key)
    return keys


def see_strangers_refused(town, url):
    """Nobody who does not sign, and nobody about what no claim is about."""
    with urllib.request.urlopen(url + "/v1/jobs.json", timeout=stage.WAIT_MAX_S) as reply:
        job = json.loads(reply.read())["jobs"][0]["job"]
    for headers in ({}, {"Lockstep-Ask": "4000000000 " + "11" * 64 + "1b"}):
        ask = urllib.request.Request("%s/v1/jobs/%s/trace/%d/list/trace" % (url, job, STEP),
                                     headers=headers)
        try:
            urllib.request.urlopen(ask, timeout=stage.WAIT_MAX_S)
            assert False, "a stranger was told of a trace"
        except urllib.error.HTTPError as refusal:
            assert refusal.code == 403, refusal.code


def play(town, serves, gas):
    keys = commit_both(town, *(() if serves else ("--contact", NOBODY)))
    mirrors = ["--mirror", town.path("honest.run")]
    if serves:
        _, url = town.serve("cheat", town.path("cheat.run"))
        see_strangers_refused(town, url)
        mirrors += ["--mirror", url]
    else:  # files only, as a web server would give them
        town.run("cheat", "prover", "publish", town.path("cheat.run"), "--out", town.path("www"))
        mirrors += ["--mirror", town.path("www")]
    node = town.verifier(*mirrors)
    queries = see_conviction(town, keys["cheat"])
    see_pay(town, keys["honest"], node)
    see_money(town, keys, gas)
    assert node.stop() == 0, node.said()
    return queries


def a_cheat_that_serves_is_convicted_without_a_question():
    with Town(PEOPLE) as town:
        assert play(town, True, 0) == 0


def a_cheat_that_serves_nothing_is_queried_on_the_ledger():
    with Town(PEOPLE) as town:
        queries = play(town, False, 0)
        assert 1 <= queries <= 6, queries
        print("# %d queries on the ledger" % queries)


def play_on_a_chain(serves):
    with Town(PEOPLE, on_chain=True) as town:
        return play(town, serves, GAS)


def the_same_on_a_chain():
    """Each on a chain of its own, at once: most of it is waiting for blocks."""
    with ThreadPoolExecutor(2) as both:
        queries = list(both.map(play_on_a_chain, (True, False)))
    assert queries[0] == 0 and 1 <= queries[1] <= 6, queries


TESTS = [
    a_cheat_that_serves_is_convicted_without_a_question,
    a_cheat_that_serves_nothing_is_queried_on_the_ledger,
]
sys.exit(stage.main(TESTS, [the_same_on_a_chain]))
