"""Goal: two programs with one key do together what one would have done, or the second is refused:
nothing is sealed, claimed, committed or paid twice, and nobody contradicts what the other signed.
Method: in one folder the lock decides. In folders of their own, with nothing in common but the key,
two nodes and two solvers play a whole game at once, on the embedded ledger and on anvil; the
ledger and everybody's purse must look as if there had been one of each."""

import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import town as stage  # noqa: E402
from plays import PEOPLE, STEP, see_conviction, see_money, see_once, see_pay  # noqa: E402
from town import ETHER, SEGMENTS, SOAK, Town  # noqa: E402

GAS = ETHER // 2


def copy_what_stays(source, target):
    """A replay may outlive its killed node by a moment and still tidy up behind itself: what is gone
    by the time its turn comes is no part of the copy. Anything else that cannot be copied is told."""
    try:
        shutil.copytree(source, target)
    except shutil.Error as failed:
        if any(os.path.lexists(path) for path, _, _ in failed.args[0]):
            raise


def twin_of(town, who, folders=("data",)):
    """Somebody with the same key, who knows nothing of the other but what is in the folders."""
    twin = who + "-twin"
    for folder in folders:
        copy_what_stays(town.path("%s/%s" % (who, folder)), town.path("%s/%s" % (twin, folder)))
    town.people[twin] = town.people[who]
    return twin


def a_second_node_in_the_same_folder_is_refused():
    with Town(("client", "verifier")) as town:
        first = town.verifier()
        town.until(lambda: "started" in first.said(), "the node is there")
        second = town.verifier()
        town.until(lambda: second.code() is not None, "the second one ends")
        assert second.code() == 1, (second.code(), second.said())
        assert "verdict database" in second.said(), second.said()
        assert first.code() is None
        first.kill()
        third = town.verifier()
        town.until(lambda: "started" in third.said(), "a killed node leaves no lock")
        assert third.stop() == 0


def a_second_solver_of_the_same_bundle_is_refused():
    with Town(("client", "solver")) as town:
        job = town.new_job("a.job")
        key = town.open_job(job, "--seats", "0")
        first = town.solve("solver", job, key)
        town.until_count(SEGMENTS, "committed", key)
        second = town.solve("solver", job, key)
        town.until(lambda: second.code() is not None, "the second one ends")
        assert second.code() in (1, 2), (second.code(), second.said())
        assert first.code() is None
        first.kill()
        third = town.solve("solver", job, key)
        town.until(lambda: "open claims" in third.said(), "a killed run leaves no lock")


def start_nodes(town, places, copied_at):
    """Two strangers with one key; or a node and a copy of all that it had when it was killed."""
    folders = ("data",)
    if copied_at is not None:
        killed = town.verifier(*places, deaths=[copied_at])
        town.until(lambda: killed.died > 0, "the node is killed", awake=False)
        folders = ("data", "state")
    return [town.verifier(*places, who=who)
            for who in ("verifier", twin_of(town, "verifier", folders))]


def play(on_chain, gas, copied_at=None):
    with Town(PEOPLE, on_chain=on_chain) as town:
        job = town.new_job("a.job")
        keys = {who: town.open_job(job) for who in ("honest", "cheat")}
        twins = [town.solve(who, job, keys["honest"])
                 for who in ("honest", twin_of(town, "honest"))]
        town.solve("cheat", job, keys["cheat"], "--falsify", str(STEP))
        for key in keys.values():
            town.until_count(SEGMENTS, "committed", key)
        places = ["--mirror", town.path("honest.run"), "--mirror",
                  town.serve("cheat", town.path("cheat.run"))[1]]
        nodes = start_nodes(town, places, copied_at)
        see_conviction(town, keys["cheat"])
        see_pay(town, keys["honest"], nodes[0])
        town.until(lambda: all(twin.code() == 0 for twin in twins), "both solvers' programs end")
        see_money(town, keys, gas)
        see_once(town, keys, ("verifier", "verifier-twin"))
        for node in nodes:
            assert node.code() is None and "FAULT" not in node.said(), node.said()
            assert node.stop() == 0, node.said()


def two_nodes_and_two_solvers_with_one_key_do_what_one_does():
    play(False, 0)


def two_nodes_and_two_solvers_with_one_key_on_a_chain():
    play(True, GAS)


def a_node_and_a_copy_of_it_do_what_one_does():
    """At instants from before the first verdict to the dispute."""
    for copied_at in range(151, 800, 50 if SOAK else 325):
        play(False, 0, copied_at)


def a_node_and_a_copy_of_it_on_a_chain():
    play(True, GAS, 501)


TESTS = [
    a_second_node_in_the_same_folder_is_refused,
    a_second_solver_of_the_same_bundle_is_refused,
    two_nodes_and_two_solvers_with_one_key_do_what_one_does,
    a_node_and_a_copy_of_it_do_what_one_does,
]
sys.exit(stage.main(TESTS, [two_nodes_and_two_solvers_with_one_key_on_a_chain,
                            a_node_and_a_copy_of_it_on_a_chain]))
