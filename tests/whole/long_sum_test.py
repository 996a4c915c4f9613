"""Goal: who lies about an element that is a sum too long for partial sums alone is convicted by
real programs: the node meets the lie by itself, queries the parts of the sum and then the parts of
the false part, and shows the one that is not what the solver says.
Method: a job whose state is a sum of six million terms (long_sum_tape.c), an honest solver of it
and one that tells the lie in its trace and in its replies about parts (lying_solver.c), which are
otherwise the program; a verifier's node; on the embedded ledger and on anvil. The walk is served,
so the ledger has the two queries for parts and no others. The honest solver beside it is paid, and
the money of everybody is compared, on the embedded ledger to the wei."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import town as stage  # noqa: E402
from plays import PEOPLE, pass_sealing, see_money, see_pay  # noqa: E402
from town import DATA, ETHER, SEGMENTS, Town  # noqa: E402

BUILT = os.path.dirname(stage.DEATH) + "/"
STEP = 1  # that is falsified
GAS = ETHER // 5


def new_job(town):
    tape, job = town.path("sum.tape"), town.path("sum.job")
    subprocess.run([BUILT + "long_sum_tape", tape, str(os.path.getsize(DATA))], check=True)
    town.run("client", "job", "new", "--tape", tape, "--data", DATA, "--steps", str(SEGMENTS),
             "--segment-steps", "1", "--out", job)
    return job


def see_nested_queries(town, key):
    town.until_count(1, "convicted", key)
    (claim,) = town.events("claimed", key)
    assert claim["account"] == town.people["verifier"] and claim["segment"] == STEP, claim
    for kind, number in (("answered", 1), ("queried", 2), ("replied", 2), ("ruled", 1)):
        assert town.count(kind, key) == number, (kind, town.events(job=key))


def play(on_chain, gas):
    with Town(PEOPLE, on_chain=on_chain) as town:
        # Words of a room stand before the program; these put another in its place.
        town.rooms["cheat"] = ["sh", "-c", 'shift; exec "$0" "$@"', BUILT + "lying_solver"]
        job = new_job(town)
        keys = {who: town.open_job(job) for who in ("honest", "cheat")}
        for who, more in (("honest", ()), ("cheat", ("--falsify", str(STEP)))):
            town.solve(who, job, keys[who], *more)
        for key in keys.values():
            town.until_count(SEGMENTS, "committed", key)
        _, url = town.serve("cheat", town.path("cheat.run"))
        node = town.verifier("--mirror", town.path("honest.run"), "--mirror", url)
        pass_sealing(town)
        see_nested_queries(town, keys["cheat"])
        see_pay(town, keys["honest"], node)
        see_money(town, keys, gas)
        assert node.stop() == 0, node.said()


def a_lie_in_a_sum_that_nests_convicts():
    play(False, 0)


def the_same_on_a_chain():
    play(True, GAS)


TESTS = [a_lie_in_a_sum_that_nests_convicts]
sys.exit(stage.main(TESTS, [the_same_on_a_chain]))
