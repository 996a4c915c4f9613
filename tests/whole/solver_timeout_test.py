"""Goal: a solver that vanishes costs nobody money: a node gets its bonds and fees, the client the rest
of its escrow, and `job collect` says what the job waits for.
Method: a solver is killed for good behind its commits; a node and `job collect` play on in a town
of their own, on the embedded ledger and on anvil, and every wei is counted."""

import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import town as stage  # noqa: E402
from town import ETHER, FEE, PERIOD_S, PURSE, REWARD, SEGMENTS, STAKE, Town  # noqa: E402

PEOPLE = ("client", "honest", "verifier")
GRACE_S = 600
SPREAD_S = GRACE_S // 5 + 1
HURRY = 120  # a clock that runs so much faster
LATE_S = 5 * PERIOD_S  # for the next segment; the deadline is four times that


def vanish(town, committed, *terms):
    """The key of a job whose solver is killed when it has committed so many segments."""
    job = town.new_job("a.job")
    key = town.open_job(job, *terms)
    if committed < SEGMENTS:
        town.change_ledger("CREATE TRIGGER stuck BEFORE INSERT ON moves WHEN NEW.name LIKE"
                      " '%% commit %d generation %%' BEGIN SELECT RAISE(ABORT, 'stuck'); END"
                      % committed)
    solver = town.solve("honest", job, key)
    town.until_count(committed, "committed", key)
    solver.kill()
    if committed < SEGMENTS:
        town.change_ledger("DROP TRIGGER stuck")
    return key


def collect(town, key, *more, who="client"):
    """Its moves, and its report."""
    report = town.ask(who, "job", "collect", key, *more)
    return [move["move"] for move in report["done"]], report


def see_nothing_due(town, key):
    done, report = collect(town, key)
    assert done == [] and report["withdrawn_wei"] == "0", report
    return report


def watch_over(town, sealed, key):
    """A node that has sealed and revealed so many verdicts, until their claim time is over."""
    node = town.verifier("--mirror", town.path("honest.run"), "--extra", "0")
    town.until_count(sealed, "sealed a verdict", key, "verifier")
    town.pass_time(PERIOD_S + 1)
    town.until_count(sealed, "revealed", key, "verifier")
    return node


def see_money(town, wanted, gas=0):
    for who, amount in wanted.items():
        lost = amount - town.money(who)
        assert 0 <= lost <= gas, (who, amount, lost)


def a_verifier_is_paid_and_the_client_gets_the_rest():
    with Town(PEOPLE) as town:
        key = vanish(town, 2)
        node = watch_over(town, 2, key)
        report = see_nothing_due(town, key)
        assert report["waits_for"]["for"] == "revealing", report
        assert report["waits_for"]["segment"] == 0 and report["waits_for"]["until"] > town.now_s, report
        town.pass_time(2 * PERIOD_S + GRACE_S + SPREAD_S)
        town.until_count(1, "finalized", key)
        town.pass_time(GRACE_S + SPREAD_S)
        town.until_count(2, "finalized", key)
        report = see_nothing_due(town, key)
        assert report["waits_for"]["for"] == "commit" and report["final"] == 2, report
        town.pass_time(LATE_S)
        done, report = collect(town, key[:14])
        assert done in (["release"], []) and report["phase"] == "open", report  # or the node did
        assert see_nothing_due(town, key)["waits_for"]["for"] == "solver"
        town.pass_time(4 * LATE_S)
        done, report = collect(town, key)  # or the node does it, whose bond waits
        assert done in (["close"], []) and report["phase"] == "closed", report
        assert report["waits_for"] is None, report
        assert see_nothing_due(town, key)["phase"] == "closed"
        town.until(lambda: town.money("verifier") == PURSE + 2 * FEE, "the node has its money")
        see_money(town, {"client": PURSE - 2 * (REWARD // SEGMENTS + FEE),
                         "honest": PURSE + 2 * (REWARD // SEGMENTS) - STAKE // 8})
        assert node.stop() == 0, node.said()


def see_the_end_of_a_wait(town, key):
    """Ten minutes pass on the clock of the one who waits, and nobody makes the move that is due."""
    began = time.monotonic()
    fetch = town.start("client", "job", "fetch", key, "--wait", "--out", town.path("late"),
                       more={"LD_PRELOAD": stage.FAST_CLOCK, "FAST_CLOCK": str(HURRY)})
    town.until(lambda: fetch.code() is not None, "the wait ends")
    assert time.monotonic() - began > 600 / HURRY, fetch.said()
    assert fetch.code() == 1, fetch.said()
    assert "'release' is due, and nobody makes it" in fetch.said(), fetch.said()
    assert "the move 'release' has been due for ten minutes" in fetch.said(), fetch.said()
    assert "nybody may make it: 'lockstep job collect %s'" % key[:10] in fetch.said(), fetch.said()


def a_client_alone_collects_to_the_end():
    with Town(PEOPLE) as town:
        key = vanish(town, 2, "--seats", "0")
        waiting = town.start("client", "job", "collect", key, "--wait", "--poll", "1s", "--json")
        town.pass_time(3 * PERIOD_S + 1)
        town.until_count_at_least(1, "finalized", key)
        waiting.kill()  # wherever it is
        waiting = town.start("client", "job", "collect", key, "--wait", "--poll", "1s", "--json")
        town.until_count(2, "finalized", key)
        waiting.kill()
        town.pass_time(LATE_S)
        fetch = town.start("client", "job", "fetch", key, "--wait", "--out", town.path("out"))
        town.until(lambda: "'release' is due, and nobody makes it" in fetch.said(), "it is told")
        assert "Anybody may make it: 'lockstep job collect %s'" % key[:10] in fetch.said(), fetch.said()
        see_the_end_of_a_wait(town, key)
        assert fetch.code() is None, "by its own clock it has not waited long enough"
        waiting = town.start("client", "job", "collect", key, "--wait", "--poll", "1s", "--json")
        town.until_count(1, "released", key)
        fetch.kill()
        town.pass_time(4 * LATE_S)
        town.until(lambda: waiting.code() is not None, "the job is closed")
        assert waiting.code() == 0, waiting.said()
        report = json.loads(waiting.said().splitlines()[-1])
        assert report["phase"] == "closed" and report["done"][-1]["move"] == "close", report
        for kind, times in (("finalized", 2), ("released", 1), ("closed", 1)):
            assert town.count(kind, key) == times, town.events(job=key)
        see_money(town, {"client": PURSE - 2 * (REWARD // SEGMENTS),
                         "honest": PURSE + 2 * (REWARD // SEGMENTS) - STAKE // 8})


def somebody_who_has_nothing_in_it_may_do_it_too():
    with Town(PEOPLE) as town:
        key = vanish(town, SEGMENTS, "--seats", "0")
        town.pass_time(3 * PERIOD_S + 1)
        done, report = collect(town, key, who="verifier")
        assert done == ["settle"] * SEGMENTS and report["phase"] == "closed", report
        assert report["withdrawn_wei"] == "0", report
        # And the solver, should it come back, finds it done.
        said = town.run("honest", "job", "collect")
        assert "came back" in said, said
        see_money(town, {"client": PURSE - REWARD, "verifier": PURSE, "honest": PURSE + REWARD})


def what_is_no_job_is_refused():
    with Town(PEOPLE) as town:
        town.run("client", "job", "collect", "0x" + "11" * 32, wanted=3)
        assert "name its key" in town.run("client", "job", "collect", "--wait", wanted=3)
        assert town.events() == []


def the_same_on_a_chain():
    """All is committed; what no seat earned is the client's."""
    with Town(PEOPLE, on_chain=True) as town:
        key = vanish(town, SEGMENTS)
        node = watch_over(town, SEGMENTS, key)
        assert see_nothing_due(town, key)["waits_for"]["for"] == "revealing"
        town.pass_time(2 * PERIOD_S + 1)
        done, report = collect(town, key)
        assert done == ["settle"] * SEGMENTS and report["phase"] == "closed", report
        assert int(report["withdrawn_wei"]) == 2 * SEGMENTS * FEE, report
        town.until(lambda: town.count("withdrawn", who="verifier") > 0, "the node withdraws")
        assert see_nothing_due(town, key)["waits_for"] is None
        wanted = PURSE + SEGMENTS * FEE - ETHER // 5
        town.until(lambda: town.money("verifier") >= wanted, "the node has its bond")
        see_money(town, {"client": PURSE - REWARD - SEGMENTS * FEE,
                         "verifier": PURSE + SEGMENTS * FEE, "honest": PURSE + REWARD}, ETHER // 5)
        assert node.stop() == 0, node.said()


TESTS = [
    a_verifier_is_paid_and_the_client_gets_the_rest,
    a_client_alone_collects_to_the_end,
    somebody_who_has_nothing_in_it_may_do_it_too,
    what_is_no_job_is_refused,
]
sys.exit(stage.main(TESTS, [the_same_on_a_chain]))
