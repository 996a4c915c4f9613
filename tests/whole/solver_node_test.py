"""Goal: solvers that take work by themselves empty a board of ten jobs: each job is trained and paid
once, nobody takes what its policy refuses, one job at a time runs on a device, and a node that is
killed at any call goes on with what it began.
Method: two nodes with different policies in a town (town.py) of an embedded ledger and of a chain. Both
have all job files. One has no stake above 5 ether and wants no small reward; the other takes at most two
jobs at a time. Jobs that both refuse stay open."""

import fcntl
import json
import os
import re
import sys
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

from town import BOND, DATA, ETHER, PERIOD_S, Town, main  # noqa: E402

JOBS = 10
SMALL = ETHER // 100
REFUSED = ("huge", "poor")
# Nobody verifies here: a segment is final a minute after it was committed.
SOON = ("--seal-period", "20s", "--reveal-period", "20s", "--claim-period", "20s")
# Calls at which the nodes die, in their first lives: before, while and after they stake and train.
DEATHS = {"careful": (40, 250, 700), "greedy": (25, 400)}


def open_board(town):
    """Ten jobs that somebody takes, and two that nobody does."""
    os.mkdir(town.path("jobs"))
    keys = {}
    for number in range(JOBS):
        job = town.new_job("jobs/%d.job" % number, "--seed", str(number + 1), "--steps", "8")
        keys[str(number)] = town.open_job(
            job, "--seats", "0", "--stake", "%dwei" % (ETHER * (2 + 6 * (number % 2))),
            "--reward", "%dwei" % (2 * ETHER + number), "--segment-period", "%ds" % (3 * PERIOD_S),
            *SOON)
    for name in REFUSED:
        job = town.new_job("jobs/%s.job" % name, "--seed", str(100 + len(name)), "--width", "24")
        stake = 30 * ETHER if name == "huge" else ETHER // 100
        reward = 20 * ETHER if name == "huge" else SMALL
        keys[name] = town.open_job(job, "--seats", "0", "--stake", "%dwei" % stake, "--reward",
                                   "%dwei" % reward, "--bond", "%dwei" % min(stake, BOND), *SOON)
    return keys


def node(town, who, *policy):
    return town.start(who, "prover", "node", "--jobs", town.path("jobs"), "--data", DATA,
                      "--threads", "1", "--measure", "0.05", "--poll", "1s", "--reward-least",
                      "0.1ether", "--stake-rewards-most", "0", *policy, deaths=DEATHS[who],
                      more={"LOCKSTEP_LOCKS": town.path(who)})


def jobs_of(town, who):
    """What the node's file says; it may not be there yet."""
    try:
        with open(town.path(who + "/state/lockstep/solver/node.json"), encoding="utf-8") as view:
            told = json.load(view)
    except FileNotFoundError:
        return {"paid": 0, "slots": [{"why": ""}]}
    return told


def see_policies(town, keys):
    """Who took what, by the ledger."""
    accepted = [(event["job"], event["account"]) for event in town.events("accepted")]
    assert sorted(job for job, _ in accepted) == sorted(keys[str(i)] for i in range(JOBS)), accepted
    for number in range(JOBS):
        if number % 2:  # a stake of 8 ether
            assert (keys[str(number)], town.people["careful"]) not in accepted, accepted
    assert {account for _, account in accepted} == {town.people["careful"], town.people["greedy"]}


def see_reasons(town, keys):
    """Of each open job it is told which term is refused, and by which option."""
    for who in ("careful", "greedy"):
        told = {offer["job"]: offer for offer in jobs_of(town, who)["offers"]}
        assert all(told[keys[name]]["refused"] for name in REFUSED), told
        assert "--stake-most" in told[keys["huge"]]["why"], told
        assert "--reward-least" in told[keys["poor"]]["why"], told


def see_page(one):
    """The page, the JSON and the health tell the same as the node's file."""
    url = re.search(r"http://\S+", one.said()).group()
    ask = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
    page = ask(url, timeout=60).read().decode()
    assert "computes on cpu" in page and "Lockstep solver" in page and "<script" in page, page
    assert "http" not in page.replace("http-equiv", ""), "a page asks for nothing outside"
    assert json.load(ask(url + "node.json", timeout=60))["slots"][0]["does"] == "idle"
    assert ask(url + "health", timeout=60).read() == b"well\n"


def empty_the_board(on_chain):
    with Town(["client", "careful", "greedy"], on_chain=on_chain) as town:
        for who in ("careful", "greedy"):
            os.makedirs(town.path(who), exist_ok=True)
        keys = open_board(town)
        nodes = [node(town, "careful", "--stake-most", "5ether"),
                 node(town, "greedy", "--stake-most", "20ether", "--held-most", "2")]
        for one in nodes:
            one.again = False

        def all_paid():
            town.pass_time(4)  # periods end while the nodes work
            return sum(jobs_of(town, who)["paid"] for who in ("careful", "greedy")) >= JOBS
        town.until(all_paid, "all jobs are paid")
        town.until(lambda: town.count("closed") >= JOBS, "the client's index has all of it")
        see_policies(town, keys)
        see_reasons(town, keys)
        assert town.count("committed") == 2 * JOBS and town.count("convicted") == 0
        assert town.count("released") == 0
        assert all(one.died > 0 for one in nodes), [one.died for one in nodes]
        for one in nodes:
            assert one.stop() == 0, one.said()
        for who in ("careful", "greedy"):
            view = jobs_of(town, who)
            assert view["lost"] == 0 and not view["jobs"], view
            assert int(view["earned_wei"]) > 0, view


def two_nodes_empty_a_board():
    empty_the_board(False)


def two_nodes_empty_a_board_on_a_chain():
    empty_the_board(True)


def a_device_trains_one_job_at_a_time():
    """Where another process computes, a node waits and says so; a run by hand goes on, and says so."""
    with Town(["client", "greedy"]) as town:
        os.makedirs(town.path("greedy"), exist_ok=True)
        os.mkdir(town.path("jobs"))
        key = town.open_job(town.new_job("jobs/a.job"), "--seats", "0", *SOON)
        lock = os.open(town.path("greedy/lockstep-cpu.lock"), os.O_RDONLY | os.O_CREAT, 0o444)
        fcntl.flock(lock, fcntl.LOCK_EX)
        one = town.start("greedy", "prover", "node", "--jobs", town.path("jobs"), "--data", DATA,
                         "--threads", "1", "--measure", "0.05", "--clock-least", "0s", "--status",
                         "0",
                         more={"LOCKSTEP_LOCKS": town.path("greedy")})
        town.until(lambda: "computes on cpu" in jobs_of(town, "greedy")["slots"][0]["why"],
                   "the node waits")
        assert town.count("accepted", key) == 0
        see_page(one)
        os.close(lock)
        town.until(lambda: town.count("closed", key) == 1, "the job is done")
        assert one.stop() == 0
        assert town.ask("greedy", "prover", "jobs") == jobs_of(town, "greedy")


if __name__ == "__main__":
    sys.exit(main([two_nodes_empty_a_board, a_device_trains_one_job_at_a_time],
                  [two_nodes_empty_a_board_on_a_chain]))
