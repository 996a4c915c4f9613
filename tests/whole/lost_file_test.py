"""Goal: a program whose ledger, or whose own database, is deleted or replaced while it runs stops
with a sentence. It never tells of money or verdicts that only a file without a name holds.
Method: real programs on an embedded ledger; the files are taken away under them."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import town as stage  # noqa: E402
from town import DATA, WAIT_MAX_S, Town  # noqa: E402

LOST = "was deleted, moved or replaced while it was in use"
PEOPLE = ("client", "honest", "verifier")


def see_the_end(process, path):
    assert process.process.wait(WAIT_MAX_S) == 2, process.said()
    said = process.said()
    assert LOST in said and path in said and "put the" in said, said
    assert "paid" not in said, said


def a_solver_stops_where_its_ledger_is_deleted():
    with Town(PEOPLE) as town:
        job = town.new_job("a.job")
        key = town.open_job(job)
        solver = town.solve("honest", job, key)
        town.until_count(stage.SEGMENTS, "committed", key)
        os.unlink(town.path("ledger"))
        see_the_end(solver, town.path("ledger"))
        resumed = town.start("honest", "prover", "resume", town.path("honest.run"), "--data", DATA)
        assert resumed.process.wait(WAIT_MAX_S) == 2, resumed.said()
        assert "cannot find the ledger" in resumed.said(), resumed.said()


def a_training_stops_at_the_end_of_its_segment():
    with Town(PEOPLE) as town:
        job = town.new_job("a.job", "--steps", "1000000")
        key = town.open_job(job, "--seats", "0")
        solver = town.solve("honest", job, key)
        town.until_count_at_least(2, "committed", key)
        os.unlink(town.path("ledger"))
        see_the_end(solver, town.path("ledger"))


def a_node_stops_where_its_ledger_is_replaced():
    with Town(PEOPLE) as town:
        node = town.verifier()
        town.until(lambda: "started" in node.said(), "the node is there")
        town.run("nobody", "ledger", "init", town.path("another"))
        os.replace(town.path("another"), town.path("ledger"))
        see_the_end(node, town.path("ledger"))


def a_node_signs_nothing_where_its_verdicts_are_deleted():
    with Town(PEOPLE) as town:
        job = town.new_job("a.job")
        key = town.open_job(job)
        bundle = town.path("honest.run")
        node = town.verifier("--mirror", bundle)
        town.until(lambda: "started" in node.said(), "the node is there")
        verdicts = [os.path.join(place, name) for place, _, names in os.walk(town.path("verifier"))
                    for name in names if name == "verdicts.db"]
        assert len(verdicts) == 1, verdicts
        os.unlink(verdicts[0])
        town.solve("honest", job, key)
        town.until(lambda: node.code() is not None, "it stops")
        see_the_end(node, verdicts[0])
        assert town.count("attested", key) == 0


TESTS = [
    a_solver_stops_where_its_ledger_is_deleted,
    a_training_stops_at_the_end_of_its_segment,
    a_node_stops_where_its_ledger_is_replaced,
    a_node_signs_nothing_where_its_verdicts_are_deleted,
]
sys.exit(stage.main(TESTS, []))
