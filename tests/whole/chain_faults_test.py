"""Goal: reorganizations under a commit, a draw, a verdict of a seat, a claim, an answer or a verdict, and an
endpoint that misbehaves in every way, cost a game only time and gas.
Method: whole games of real programs on anvil. A block is taken away as soon as it holds the move;
which requests an endpoint answers wrongly, and how, follows from their number."""

import os
import re
import sys
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import town as stage  # noqa: E402
from endpoint import Endpoint  # noqa: E402
from plays import PEOPLE, STEP, pass_sealing, see_conviction, see_money, see_once, see_pay  # noqa: E402
from town import ETHER, SEGMENTS, Town  # noqa: E402

GAS = ETHER // 2
DEPTH = 10  # more than is ever taken away
FAR = 60  # and more than comes while somebody looks
SEEN_S = 3  # after which the programs have looked


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
    town.until_count(2, "accepted")
    for key in keys.values():
        town.until_count(SEGMENTS, "committed", key)
    places = ["--mirror", town.path("honest.run"), "--mirror",
              town.serve("cheat", town.path("cheat.run"))[1]]
    town.place["LOCKSTEP_LEDGER"] = endpoint.url
    node = town.verifier(*places)
    town.place["LOCKSTEP_LEDGER"] = honest
    town.until(lambda: "started" in node.said(), "the node is there")
    see_conviction(town, keys["cheat"])
    see_pay(town, keys["honest"], node)
    town.until(lambda: solvers[0].code() == 0, "the honest solver is done")
    endpoint.wrong = False
    see_money(town, keys, GAS)
    see_once(town, keys)
    assert node.stop() == 0, node.said()
    print("# %d of %d requests were answered wrongly: %s" % (
        sum(endpoint.counts.values()), endpoint.requests, dict(endpoint.counts)))
    # How many requests there are depends on how often the programs looked.
    assert sum(endpoint.counts.values()) >= 3, endpoint.counts


def a_chain_that_is_reorganized_under_every_move_costs_time_only():
    """As soon as a move is in a block, that block and all above it are replaced by empty ones."""
    with Town(PEOPLE, on_chain=True, depth=DEPTH) as town:
        job = town.new_job("a.job")
        keys = {who: town.open_job(job) for who in ("honest", "cheat")}

        solvers = [town.solve("honest", job, keys["honest"]),
                   town.solve("cheat", job, keys["cheat"], "--falsify", str(STEP))]
        take_away(town, "accepted", DEPTH)
        take_away(town, "committed", DEPTH)
        for key in keys.values():
            town.until_count(SEGMENTS, "committed", key)
        places = ["--mirror", town.path("honest.run"), "--mirror",
                  town.serve("cheat", town.path("cheat.run"))[1]]
        node = town.verifier(*places)
        for kind in ("drawn", "sealed a verdict"):
            take_away(town, kind, DEPTH)
        pass_sealing(town)
        for kind in ("claimed", "answered"):
            take_away(town, kind, DEPTH)
        take_away(town, "convicted", DEPTH)
        see_conviction(town, keys["cheat"])

        def trouble():
            take_away(town, "revealed", DEPTH)
            town.until_count(1, "convicted", keys["cheat"])  # it may be gone once more

        see_pay(town, keys["honest"], node, trouble)
        town.until(lambda: solvers[0].code() == 0, "the honest solver is done")
        see_money(town, keys, GAS)
        see_once(town, keys)
        rewound = town.run("client", "ledger", "watch", "--json").count('"rewind"')
        print("# %d times the ledger's events were taken back" % rewound)
        assert rewound >= 3, rewound
        assert node.stop() == 0, node.said()


def take_away(town, kind, depth):
    town.until_count_at_least(1, kind)
    height = town.events(kind)[-1]["height"]
    above = int(town.rpc("eth_blockNumber"), 16) - height
    town.rpc("anvil_reorg", min(above + 1, depth - 1), [])


def take_back(town, kind, beyond, see=lambda: time.sleep(SEEN_S)):
    """What is in a block deep enough to count as final is gone, with some blocks below it. All who
    made a move there see() it as final before."""
    town.until_count_at_least(1, kind)
    height = town.events(kind)[-1]["height"]
    head = int(town.rpc("eth_blockNumber"), 16)
    if head < height + DEPTH:
        town.rpc("anvil_mine", hex(height + DEPTH - head))
        head = height + DEPTH
    see()
    head = int(town.rpc("eth_blockNumber"), 16)
    town.rpc("anvil_reorg", max(head - height + 1, DEPTH + beyond), [])


def a_chain_that_takes_back_what_was_final_costs_time_only():
    """Behind each kind of move of client, solver, seat and claimant: depth + 1 to depth + 8 blocks."""
    with Town(PEOPLE, on_chain=True, depth=DEPTH) as town:
        job = town.new_job("a.job")
        key = town.open_job(job)
        cheat = town.solve("cheat", job, key, "--falsify", str(STEP))
        take_back(town, "accepted", 1)
        take_back(town, "committed", 2)
        town.until_count(SEGMENTS, "committed", key)
        places = ["--mirror", town.serve("cheat", town.path("cheat.run"))[1]]
        node = town.verifier("--page", "0", *places)
        take_back(town, "drawn", 3)
        take_back(town, "sealed a verdict", 4)
        pass_sealing(town)
        take_back(town, "claimed", 5)
        take_back(town, "answered", 6)
        take_back(town, "convicted", 8)
        town.until_count(1, "convicted", key)
        assert "took back" in node.said() + cheat.said(), node.said()
        town.rpc("anvil_mine", hex(8))  # what is taken back below is the client's alone

        def any_command():
            town.ask("client", "job", "collect")  # with this account: it looks after its moves

        town.ask("client", "job", "close", key)
        take_back(town, "closed", 7, any_command)
        assert town.count("closed", key) == 0
        any_command()
        town.until_count(1, "closed", key)
        town.until(lambda: reopened(node) >= 2, "the metric counts the node's seal and claim")
        town.until(lambda: seen_by_status(town) == [(key, "closed")], "who looks sees the end")
        assert node.stop() == 0, node.said()
        assert seen_by_status(town) == [(key, "closed")]


def seen_by_status(town):
    """What a process beside the node, or behind it, sees of the chain."""
    return [("0x" + job["job"], job["phase"])
            for job in town.ask("verifier", "verifier", "status")["jobs"]]


def reopened(node):
    """How many moves of a node were final, and are open again: LockstepMovesReopened asks for it."""
    page = re.search(r"http://\S+", node.said()).group()
    ask = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
    text = ask(page + "metrics", timeout=60).read().decode()
    return int(re.search(r"^lockstep_moves_reopened_total (\d+)$", text, re.M).group(1))


def hear(process, words, after=""):
    """Without a block that nobody's move is in; who is heard must be there."""
    end = time.monotonic() + stage.WAIT_MAX_S
    while words not in process.said()[process.said().find(after):]:
        assert process.code() is None and time.monotonic() < end, (words, process.said())
        time.sleep(0.1)


def a_conviction_that_may_be_taken_away_ends_no_solver():
    """It stays to answer until the conviction is deep enough, and answers where that is gone."""
    with Town(PEOPLE, on_chain=True, depth=FAR) as town:
        job = town.new_job("a.job")
        key = town.open_job(job)
        cheat = town.solve("cheat", job, key, "--falsify", str(STEP))
        town.until_count(SEGMENTS, "committed", key)
        places = ["--mirror", town.serve("cheat", town.path("cheat.run"))[1]]
        node = town.verifier(*places)
        pass_sealing(town)
        town.until_count(1, "convicted", key)
        hear(cheat, "which is not final yet")
        assert node.stop() == 0, node.said()
        take_away(town, "convicted", FAR)
        hear(cheat, "the trouble is over", after="which is not final yet")
        assert cheat.code() is None
        node = town.verifier(*places)
        town.until_count(1, "convicted", key)
        town.until(lambda: cheat.code() is not None, "it is final, and the solver's program ends")
        assert cheat.code() == 1, cheat.said()
        assert "we were convicted, and the job is open again" in cheat.said(), cheat.said()
        assert node.stop() == 0, node.said()


sys.exit(stage.main([], [a_chain_that_takes_back_what_was_final_costs_time_only,
                         an_endpoint_that_misbehaves_costs_time_only,
                         a_conviction_that_may_be_taken_away_ends_no_solver,
                         a_chain_that_is_reorganized_under_every_move_costs_time_only]))
