"""Goal: mirrors that are silent, slow, out of date or false cost a node only time: it never trusts
their bytes, and one good mirror is enough.
Method: a node that has nothing but mirrors, all of them hostile but the last, or one that turns.
What was served wrongly is counted at the mirror; nothing waits for the clock."""

import os
import subprocess
import sys
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import town as stage  # noqa: E402
import processes  # noqa: E402
from town import DATA, PERIOD_S, SEGMENTS, SOAK, Town  # noqa: E402

# tests/verifier/check/fetch_test.c shows each of these to a single check, in every run.
ALL = ("truncate", "silent", "old", "wrong", "loris", "other", "foreign", "slow", "error", "drip",
       "redirect", "huge")
HOSTILE = ALL if SOAK else ALL[:6]


class HostileMirror:
    """See tests/verifier/check/hostile_mirror.py."""

    def __init__(self, root):
        self.process = processes.start([sys.executable, "tests/verifier/check/hostile_mirror.py", root],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.url = "http://127.0.0.1:%d" % int(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def get(self, path):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self.url + path, timeout=stage.WAIT_MAX_S) as reply:
            return int(reply.read())


def an_open_job(town, number, panel=("verifier",)):
    job = town.new_job("%d.job" % number, "--seed", str(number))
    return job, town.open_job(job, panel=panel)


def commit(town, number, job, key):
    """Whole and published; the solver goes and comes back to be paid."""
    bundle = town.train("honest", job, "%d.run" % number)
    town.run("honest", "prover", "commit", bundle, "--ledger", town.place["LOCKSTEP_LEDGER"],
             "--job-key", key, "--contact", "http://127.0.0.1:9")
    town.run("honest", "prover", "publish", bundle, "--data", DATA, "--out", town.path("www"))


def a_committed_job(town, number):
    job, key = an_open_job(town, number)
    commit(town, number, job, key)
    return key


def a_job_of_the_node(town, number):
    """A node that runs tries the job and enlists by itself."""
    job, key = an_open_job(town, number, panel=())
    town.publish(job, "www")
    town.until(lambda: town.count("enlisted", key) > 0, "the node enlists")
    town.pass_time(PERIOD_S + 1)  # until then nobody accepts
    return job, key


def sealed_of(town, key):
    return {event["segment"] for event in town.events("sealed a verdict", key)}


def a_node_among_hostile_mirrors_says_what_is_true():
    """One good mirror behind all the others is enough."""
    with Town(("client", "honest", "verifier")) as town:
        keys = [a_committed_job(town, number) for number in ((1, 2) if SOAK else (1,))]
        with HostileMirror(town.path("www")) as mirror:
            places = [word for how in HOSTILE + ("good",)
                      for word in ("--mirror", "%s/%s" % (mirror.url, how))]
            node = town.start("verifier", "verifier", "node", "--mirror-timeout", "1s", "--threads", "1",
                              *places)
            for key in keys:
                town.until_count(SEGMENTS, "sealed a verdict", key)
            assert town.count("claimed") == 0 and "FAULT" not in node.said()
            assert node.stop() == 0


def a_mirror_that_becomes_good_is_used_and_was_never_believed():
    """Each kind of wrong in turn is all that the node gets of what is committed; then the truth."""
    with Town(("client", "honest", "verifier")) as town:
        a_committed_job(town, 99)  # what "other" serves
        with HostileMirror(town.path("www")) as mirror:
            # A node goes back to a start that it knows, the job's own; without reach it needs each.
            node = town.start("verifier", "verifier", "node", "--mirror-timeout", "1s", "--threads", "1",
                              "--reach", "0", "--checks", "4", "--mirror", mirror.url + "/switch")
            town.until_count(SEGMENTS, "sealed a verdict")
            for number, how in enumerate(HOSTILE, 1):
                job, key = a_job_of_the_node(town, number)
                mirror.get("/set/" + how)
                commit(town, number, job, key)
                town.until(lambda: mirror.get("/count") >= 3, how + " is served")
                if how not in ("old", "other"):  # what these give by its root is true
                    assert sealed_of(town, key) <= {0}, how  # it begins with the job alone
                mirror.get("/set/good")
                town.until_count(SEGMENTS, "sealed a verdict", key)
            assert town.count("sealed") == 0 and "FAULT" not in node.said()
            assert node.stop() == 0


def a_mirror_that_is_silent_is_waited_for_once():
    """It stands first; what comes after the first check asks the good one first, also after a new
    start of the node."""
    with Town(("client", "honest", "verifier")) as town:
        with HostileMirror(town.path("www")) as mirror:
            words = ["--mirror-timeout", "5s", "--checks", "1", "--mirror", mirror.url + "/switch",
                     "--mirror", mirror.url + "/good"]
            mirror.get("/set/silent")
            for number in (1, 2):
                key = a_committed_job(town, number)
                node = town.start("verifier", "verifier", "node", "--threads", "1", *words)
                town.until_count(SEGMENTS, "sealed a verdict", key)
                assert node.stop() == 0
            # Twice more is for a good mirror that is late, on a busy machine.
            assert 1 <= mirror.get("/count") <= 3, mirror.get("/count")
            report = {about["name"]: about
                    for about in town.ask("verifier", "verifier", "status")["mirrors"]}
            silent, good = report[mirror.url + "/switch"], report[mirror.url + "/good"]
            assert silent["silent"] >= 1 and silent["state"] != "good", report
            assert good["good"] > 0, report


sys.exit(stage.main([a_mirror_that_is_silent_is_waited_for_once,
                     a_node_among_hostile_mirrors_says_what_is_true,
                     a_mirror_that_becomes_good_is_used_and_was_never_believed]))
