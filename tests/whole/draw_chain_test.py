"""Goal: of all who may draw a segment, one does. The solver draws as soon as the chain shows the
seed; nodes of the panel give it time, and then each other. No draw reverts, and none is missing.
Method: a chain whose blocks come when the test wants, seconds apart, so that everybody sees the same
head and decides by it: who would draw at once would do it in the same block. A solver with two
nodes; then nodes alone, since the solver is gone after its commits. Every transaction of the chain
is looked at."""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import town as stage  # noqa: E402
from town import SEGMENTS, WAIT_MAX_S, Town  # noqa: E402

NODES = ("verifier", "second")
PEOPLE = ("client", "honest", *NODES)
BLOCK_S = 12  # of the chain's time, as on Ethereum
LOOK_S = 2  # until everybody has looked at a head


def reverted(town):
    """(block, from) of every transaction that failed."""
    found = []
    for height in range(int(town.rpc("eth_blockNumber"), 16) + 1):
        block = town.rpc("eth_getBlockByNumber", hex(height), False)
        for name in block["transactions"]:
            receipt = town.rpc("eth_getTransactionReceipt", name)
            if int(receipt["status"], 16) == 0:
                found.append((height, receipt["from"]))
    return found


def play(town, happened, what):
    """Blocks of twelve seconds, after everybody has looked."""
    end = time.monotonic() + WAIT_MAX_S
    while not happened():
        assert time.monotonic() < end, (what, [one.said()[-600:] for one in town.processes])
        time.sleep(LOOK_S)
        town.rpc("evm_increaseTime", BLOCK_S)
        town.rpc("evm_mine")


def try_with(solver_stays):
    with Town(PEOPLE, on_chain=True) as town:
        job = town.new_job("a.job")
        key = town.open_job(job, "--panel", "2", "--seats", "2", panel=NODES)
        bundle = town.path("honest.run")
        for who in NODES:
            town.verifier("--mirror", town.path("tree"), "--mirror", bundle, who=who)
        town.rpc("evm_setAutomine", False)
        solver = town.solve("honest", job, key)
        play(town, lambda: town.count("committed", key) >= (SEGMENTS if solver_stays else 1),
             "commits")
        if not solver_stays:
            solver.kill()
        play(town, lambda: town.count("drawn", key) >= town.count("committed", key), "draws")
        assert not reverted(town), reverted(town)
        assert "not there yet" not in solver.said(), solver.said()  # nobody tries too early


def a_solver_draws_and_nodes_let_it():
    try_with(True)


def without_a_solver_one_node_draws():
    try_with(False)


TESTS = [a_solver_draws_and_nodes_let_it] + [without_a_solver_one_node_draws] * stage.SOAK
sys.exit(stage.main([], TESTS))
