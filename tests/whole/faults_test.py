"""Goal: a solver that vanishes at any point of a dispute is convicted by the clock, and a node
whose disk is full says so, signs nothing, and goes on when there is room.
Method: whole games of real programs. Each fault begins and ends with something that happened (an
event, a line in a log); the ledger and everybody's purse must then be as they should."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import town as stage  # noqa: E402
from plays import PEOPLE, STEP, pass_sealing, see_conviction, see_money, see_once, see_pay  # noqa: E402
from town import ETHER, PERIOD_S, PRIZE, PURSE, SEGMENTS, STAKE, Town  # noqa: E402

GAS = ETHER // 2
FULL = "disk is full"


# ---- solvers that vanish ------------------------------------------------------


def see_silence_convicted(town, key, phase):
    town.pass_time(PERIOD_S + 1)
    town.until_count(1, "convicted", key)
    assert town.count("claimed", key) == 1 and town.count("replied", key) == 0, phase
    town.ask("client", "job", "close", key)
    town.until(lambda: town.money("verifier") == PURSE + PRIZE, "bonds are back")
    for who, change in (("cheat", -STAKE), ("verifier", PRIZE), ("client", PRIZE)):
        assert town.money(who) == PURSE + change, (phase, who, town.money(who))


def a_cheat_that_vanishes_is_convicted_by_the_clock():
    """Before it answers; and behind its answer, when it is queried on the ledger."""
    for answers in (False, True):
        with Town(("client", "cheat", "verifier")) as town:
            job = town.new_job("a.job")
            key = town.open_job(job)
            ended = town.solve("cheat", job, key, "--until", "committed", "--falsify", str(STEP))
            town.until(lambda: ended.code() == 0, "all is committed")
            bundle = town.path("cheat.run")
            town.run("cheat", "prover", "publish", bundle, "--out", town.path("www"))
            node = town.verifier("--mirror", town.path("www"))
            pass_sealing(town)
            town.until_count(1, "claimed", key)
            if answers:
                assert node.stop() == 0
                solver = town.start("cheat", "prover", "respond", bundle, "--poll", "1s", "--wait")
                town.until_count(1, "answered", key)
                solver.kill()
                node = town.verifier("--mirror", town.path("www"))
                town.until_count(1, "queried", key)
            see_silence_convicted(town, key, "answered" if answers else "claimed")
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
        # What was sent before may still come into a block.
        town.until(lambda: node.said()[said:].count(FULL) >= 3, "it says so")
        own = [event for event in town.events() if event["account"] == town.people["verifier"]]
        said = len(node.said())
        town.until(lambda: node.said()[said:].count(FULL) >= 1, "it says so again")
        now = [event for event in town.events() if event["account"] == town.people["verifier"]]
        assert own == now and node.code() is None, (what, own, now)
        os.unlink(full)

    town.until_count_at_least(1, "sealed a verdict")
    run_full("sealing")
    pass_sealing(town)
    town.until_count_at_least(1, "claimed")
    town.until_count(SEGMENTS, "revealed", keys["honest"])
    run_full("disputing")
    see_conviction(town, keys["cheat"])
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
    a_full_disk_stops_the_pen_until_there_is_room,
]
sys.exit(stage.main(TESTS, [a_full_disk_on_a_chain]))
