"""Goal: nothing that the world does to a node or a solver makes anything lost, doubled or false:
solvers that vanish, mirrors and endpoints that misbehave in every way, a chain that is
reorganized under a commit, a draw, an attestation, a claim, an answer, a full disk.
Method: whole games of real programs. Every fault begins and ends with something that happened (an
event, a count at a server, a line in a log); the ledger and everybody's purse must then look as
they do without it."""

import os
import subprocess
import sys
import threading
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import town as stage  # noqa: E402
from endpoint import Endpoint  # noqa: E402
from plays import (PEOPLE, STEP, see_conviction, see_money, see_once, see_pay)  # noqa: E402
from town import (DATA, ETHER, PERIOD_S, PURSE, SEGMENTS, STAKE, Town)  # noqa: E402

GAS = ETHER // 2
SILENT_DEPTH = 4


# ---- solvers that vanish ------------------------------------------------------


def see_silence_convicted(town, key, phase):
    town.pass_time(PERIOD_S + 1)
    town.until_count(1, "convicted", key)
    assert town.count("claimed", key) == 1 and town.count("told", key) == 0, phase
    town.ask("client", "job", "cancel", key)
    town.until(lambda: town.count("settled", key) == town.count("attested", key), "bonds are back")
    for who, change in (("cheat", -STAKE), ("verifier", STAKE // 2), ("client", STAKE // 2)):
        assert town.money(who) == PURSE + change, (phase, who, town.money(who))


def a_cheat_that_vanishes_is_convicted_by_the_clock():
    """Before it answers; and behind its answer, when it is asked on the ledger."""
    for answers in (False, True):
        with Town(("client", "cheat", "verifier")) as town:
            job = town.new_job("a.job")
            key = town.open_job(job)
            ended = town.solve("cheat", job, key, "--until", "committed", "--falsify", str(STEP))
            town.until(lambda: ended.code() == 0, "all is committed")
            bundle = town.path("cheat.run")
            town.run("cheat", "prover", "publish", bundle, "--to", town.path("www"))
            node = town.verifier("--mirror", town.path("www"))
            town.until_count(1, "claimed", key)
            if answers:
                assert node.stop() == 0
                solver = town.start("cheat", "prover", "respond", bundle, "--poll", "1s", "--wait")
                town.until_count(1, "answered", key)
                solver.kill()
                node = town.verifier("--mirror", town.path("www"))
                town.until_count(1, "asked", key)
            see_silence_convicted(town, key, "answered" if answers else "claimed")
            assert node.stop() == 0, node.said()


# ---- mirrors ------------------------------------------------------------------

HOSTILE = ("truncate", "wrong", "foreign", "huge", "slow", "drip", "error", "redirect", "silent",
           "loris", "old", "other")


class HostileMirror:
    """See tests/verifier/hostile_mirror.py."""

    def __init__(self, root):
        self.process = subprocess.Popen([sys.executable, "tests/verifier/hostile_mirror.py", root],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.url = "http://127.0.0.1:%d" % int(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def get(self, path):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self.url + path, timeout=stage.PATIENCE_S) as reply:
            return int(reply.read())


def a_committed_job(town, number):
    """Whole and published; the solver goes and comes back to be paid."""
    job = town.new_job("%d.job" % number, "--seed", str(number))
    key = town.open_job(job)
    bundle = town.train("honest", job, "%d.run" % number)
    town.run("honest", "prover", "commit", bundle, "--ledger", town.place["LOCKSTEP_LEDGER"],
             "--job-key", key)
    town.run("honest", "prover", "publish", bundle, "--data", DATA, "--to", town.path("www"))
    return key


def a_node_among_hostile_mirrors_attests_what_is_true():
    """One good mirror behind all the others is enough."""
    with Town(("client", "honest", "verifier")) as town:
        keys = [a_committed_job(town, number) for number in (1, 2)]
        with HostileMirror(town.path("www")) as mirror:
            places = [word for how in HOSTILE + ("good",)
                      for word in ("--mirror", "%s/%s" % (mirror.url, how))]
            node = town.start("verifier", "verifier", "run", "--patience", "1s", "--threads", "1",
                              *places)
            for key in keys:
                town.until_count(SEGMENTS, "attested", key)
            assert town.count("claimed") == 0 and "FAULT" not in node.said()
            assert node.stop() == 0


def a_mirror_that_becomes_good_is_used_and_was_never_believed():
    """Each kind of wrong in turn is all that the node gets; then the truth."""
    with Town(("client", "honest", "verifier")) as town:
        a_committed_job(town, 99)  # what "other" serves
        with HostileMirror(town.path("www")) as mirror:
            node = town.start("verifier", "verifier", "run", "--patience", "1s", "--threads", "1",
                              "--checks", "4", "--mirror", mirror.url + "/switch")
            town.until_count(SEGMENTS, "attested")
            for number, how in enumerate(HOSTILE, 1):
                attested = town.count("attested")
                mirror.get("/set/" + how)
                key = a_committed_job(town, number)
                town.until(lambda: mirror.get("/count") >= 3, how + " is served")
                if how != "old":  # the first segment of old things is true
                    assert town.count("attested") == attested, how
                mirror.get("/set/good")
                town.until_count(SEGMENTS, "attested", key)
            assert town.count("sealed") == 0 and "FAULT" not in node.said()
            assert node.stop() == 0


# ---- the ledger's endpoint ----------------------------------------------------


def an_endpoint_that_misbehaves_costs_time_only():
    """Of every few requests some are answered in each wrong way in turn."""
    with Town(PEOPLE, on_chain=True) as town:
        with Endpoint(town.port) as endpoint:
            town.place["LOCKSTEP_LEDGER"] = endpoint.url
            honest = town.url
            play_through(town, honest, endpoint)


def play_through(town, honest, endpoint):
    """The test itself looks at the chain by the way that is good."""
    job = town.new_job("a.job")
    town.place["LOCKSTEP_LEDGER"] = honest
    keys = {who: town.open_job(job) for who in ("honest", "cheat")}
    town.place["LOCKSTEP_LEDGER"] = endpoint.url
    endpoint.wrong = True
    solvers = [town.solve("honest", job, keys["honest"]),
               town.solve("cheat", job, keys["cheat"], "--falsify", str(STEP))]
    town.place["LOCKSTEP_LEDGER"] = honest
    for key in keys.values():
        town.until_count(SEGMENTS, "committed", key)
    places = ["--mirror", town.path("honest.run"), "--mirror",
              town.serve("cheat", town.path("cheat.run"))[1]]
    town.place["LOCKSTEP_LEDGER"] = endpoint.url
    node = town.verifier(*places)
    town.place["LOCKSTEP_LEDGER"] = honest
    see_conviction(town, keys["cheat"])
    see_pay(town, keys["honest"], node)
    town.until(lambda: solvers[0].code() == 0, "the honest solver is done")
    endpoint.wrong = False
    see_money(town, keys, GAS)
    see_once(town, keys)
    assert node.stop() == 0, node.said()
    print("# %d of %d requests were answered wrongly: %s" % (
        sum(endpoint.told.values()), endpoint.requests, dict(endpoint.told)))
    assert all(endpoint.told[how] > 0 for how in endpoint.HOW), endpoint.told


# ---- reorganizations ----------------------------------------------------------


def a_chain_that_is_reorganized_under_every_move_costs_time_only():
    """As soon as a move is in a block, that block and the one below are replaced by empty ones."""
    with Town(PEOPLE, on_chain=True, depth=SILENT_DEPTH) as town:
        job = town.new_job("a.job")
        keys = {who: town.open_job(job) for who in ("honest", "cheat")}
        town.until(lambda: town.count("opened") == 2, "the jobs are there")
        for _ in range(SILENT_DEPTH):
            town.rpc("evm_mine")

        def take_away(kind):
            before = town.count(kind)
            town.until(lambda: town.count(kind) > before, kind + " happens")
            town.rpc("anvil_reorg", 2, [])

        solvers = [town.solve("honest", job, keys["honest"]),
                   town.solve("cheat", job, keys["cheat"], "--falsify", str(STEP))]
        take_away("accepted")
        take_away("committed")
        for key in keys.values():
            town.until_count(SEGMENTS, "committed", key)
        places = ["--mirror", town.path("honest.run"), "--mirror",
                  town.serve("cheat", town.path("cheat.run"))[1]]
        node = town.verifier(*places)
        for kind in ("drawn", "attested", "sealed", "claimed", "answered"):
            take_away(kind)
        town.until_count(1, "convicted", keys["cheat"])
        town.rpc("anvil_reorg", 2, [])
        see_conviction(town, keys["cheat"])
        see_pay(town, keys["honest"], node, lambda: town.rpc("anvil_reorg", 2, []))
        town.until(lambda: solvers[0].code() == 0, "the honest solver is done")
        see_money(town, keys, GAS)
        see_once(town, keys)
        assert node.stop() == 0, node.said()


# ---- full disks ---------------------------------------------------------------


def fill_the_disk(town, on_chain, gas):
    full = town.path("full")
    job = town.new_job("a.job")
    keys = {who: town.open_job(job) for who in ("honest", "cheat")}
    for who, more in (("honest", ()), ("cheat", ("--falsify", str(STEP)))):
        town.solve(who, job, keys[who], *more)
    for key in keys.values():
        town.until_count(SEGMENTS, "committed", key)
    places = ["--mirror", town.path("honest.run"), "--mirror",
              town.serve("cheat", town.path("cheat.run"))[1]]
    node = town.verifier(*places, environment={"SUDDEN_FULL": full})

    def run_full(what):
        said = len(node.said())
        open(full, "w").close()
        town.until(lambda: node.said()[said:].count(" error verifier: ") >= 2, "it says so")
        own = [event for event in town.events() if event["account"] == town.people["verifier"]]
        said = len(node.said())
        town.until(lambda: node.said()[said:].count(" error verifier: ") >= 2, "it says so again")
        now = [event for event in town.events() if event["account"] == town.people["verifier"]]
        assert own == now and node.code() is None, (what, own, now)
        os.unlink(full)

    town.until_count_at_least(1, "attested")
    run_full("attesting")
    town.until_count_at_least(1, "sealed")
    run_full("claiming")
    see_conviction(town, keys["cheat"])
    run_full("idle")
    see_pay(town, keys["honest"], node)
    see_money(town, keys, gas)
    see_once(town, keys)
    assert node.stop() == 0, node.said()


def a_full_disk_stops_the_pen_until_there_is_room():
    with Town(PEOPLE) as town:
        fill_the_disk(town, False, 0)


def a_full_disk_on_a_chain():
    with Town(PEOPLE, on_chain=True) as town:
        fill_the_disk(town, True, GAS)


TESTS = [
    a_cheat_that_vanishes_is_convicted_by_the_clock,
    a_node_among_hostile_mirrors_attests_what_is_true,
    a_mirror_that_becomes_good_is_used_and_was_never_believed,
    a_full_disk_stops_the_pen_until_there_is_room,
]
ON_A_CHAIN = [
    an_endpoint_that_misbehaves_costs_time_only,
    a_chain_that_is_reorganized_under_every_move_costs_time_only,
    a_full_disk_on_a_chain,
]
sys.exit(stage.main(TESTS, ON_A_CHAIN))
