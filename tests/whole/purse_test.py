"""Goal: a user who cannot pay hears it at once, with balance and need, before anything is made; a
node says so and lives on. Who asks for the segments of a run has twenty of them, or all. Method: a solver and a node with empty purses, on an embedded ledger and
on the pinned anvil."""

import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import town as stage  # noqa: E402
from town import DATA, STAKE, Town  # noqa: E402

PEOPLE = ("client", "honest")
AT_ONCE_S = 400  # the wait for a ledger is ten minutes


def see_refusals(town, need):
    job = town.new_job("a.job")
    key = town.open_job(job, "--seats", "0")
    poor = town.people["poor"] = town.ask("poor", "wallet", "new", "--light")["address"]
    bundle = town.train("poor", job, "alone.run")
    place = ["--ledger", town.place["LOCKSTEP_LEDGER"]]
    before = time.monotonic()
    for words in (["run", job, "--bundle", town.path("poor.run"), "--data", DATA],
                  ["commit", bundle, *place]):
        said = town.run("poor", "prover", *words, wanted=1)
        assert re.search("%s has 0 eth, and this needs %s" % (poor, need), said), said
        assert "try:" in said, said
    assert time.monotonic() < before + AT_ONCE_S
    assert not os.path.exists(town.path("poor.run"))
    # Nothing is remembered of a ledger that took nothing.
    town.place["LOCKSTEP_LEDGER"] = ""
    assert "ledger" not in town.ask("poor", "bundle", "status", bundle)
    town.place["LOCKSTEP_LEDGER"] = place[1]
    node = town.verifier(who="poor")
    town.until(lambda: "%s has no money" % poor in node.said(), "the node says so")
    assert node.stop() == 0, node.said()
    # What is there is enough.
    town.give("poor", STAKE + stage.ETHER)
    commit = town.start("poor", "prover", "commit", bundle, *place, "--poll", "1s")
    town.until(lambda: commit.code() == 0, "it has committed")
    assert town.count("committed", key) == stage.SEGMENTS


def an_empty_purse_is_told_at_once():
    with Town(PEOPLE) as town:
        see_refusals(town, "5 eth")


def a_long_list_of_segments_is_cut_unless_all_are_wanted():
    """24 segments, of which the first two become final."""
    with Town(PEOPLE) as town:
        job = town.new_job("long.job", "--steps", "24", "--segment-steps", "1")
        town.open_job(job, "--seats", "0")
        bundle = town.train("honest", job, "long.run")
        place = ["--ledger", town.place["LOCKSTEP_LEDGER"]]

        def commit(count):
            town.change_ledger("CREATE TRIGGER stuck BEFORE INSERT ON moves WHEN NEW.name LIKE '%% commit %d "
                               "generation %%' BEGIN SELECT RAISE(ABORT, 'stuck'); END" % count)
            one = town.start("honest", "prover", "commit", bundle, *place, "--poll", "1s")
            town.until_count(count, "committed")
            one.kill()
            town.change_ledger("DROP TRIGGER stuck")

        def listed(*more):
            said = town.run("honest", "bundle", "status", bundle, *place, *more)
            return [int(number) for number in re.findall(r"^ {2,}(\d+) {4}\S", said, re.M)], said

        def waiting(*more):
            said = town.ask("honest", "bundle", "status", bundle, *place, *more)["ledger"]
            return [one["segment"] for one in said["waiting"]]

        commit(2)
        assert listed()[0] == list(range(20)) and "... and 4 more (--all)" in listed()[1], listed()
        assert listed("--all")[0] == list(range(24)) and "more (--all)" not in listed("--all")[1]
        town.pass_time(3 * stage.PERIOD_S)
        commit(3)
        town.until_count(2, "finalized")
        assert listed()[0] == list(range(2, 22)) and "... and 2 more (--all)" in listed()[1], listed()
        assert waiting() == list(range(2, 24)), waiting()
        assert listed("--all")[0] == waiting("--all") == list(range(24)), listed("--all")


def the_same_on_a_chain():
    with Town(PEOPLE, on_chain=True) as town:
        see_refusals(town, r"up to 5\.\d+ eth with the gas")


TESTS = [an_empty_purse_is_told_at_once, a_long_list_of_segments_is_cut_unless_all_are_wanted]
sys.exit(stage.main(TESTS, [the_same_on_a_chain]))
