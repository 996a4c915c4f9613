"""Goal: a model outlives its solver: `job watch --folder` keeps the state at the end of each committed
segment, checked against its root, no matter what mirrors give; it serves them; nothing that is not
whole has a final name, also when it is killed at any moment or the disk is too small; the oldest go
over a bound. A verifier's node keeps what it has replayed, for a seat or by chance, and serves it:
`job fetch` finds that by the ledger alone. Method: the built program; a job whose segments are
committed; mirrors that do wrong (tests/verifier/check/hostile_mirror.py); the solver's own files,
which are then deleted."""

import glob
import os
import random
import re
import resource
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

import town  # noqa: E402
from delivery_test import FALSE, cites_another_run, cites_the_ledger, fetch, publish, train  # noqa: E402
from town import PERIOD_S, Town, main  # noqa: E402

ENDS = ("000000000004", "000000000008", "000000000012")


def commit(here):
    """A job whose three segments are committed; its key. Its solver is gone; its bundle is not."""
    job, _ = train(here, "first")
    key = here.open_job(job, "--seats", "0")
    solver = here.start("solver", "prover", "run", job, "--bundle", here.path("solver.run"),
                        "--data", town.DATA, "--threads", "1", "--job-key", key, "--poll", "1s")
    here.until_count_at_least(3, "committed", key)
    solver.kill()
    return key


def finals(folder):
    """What lies in a kept folder under final names."""
    found = glob.glob(folder + "/v1/jobs/*/checkpoints/*")
    return {os.path.basename(one): one for one in found if ".part" not in os.path.basename(one)}


def read(path):
    with open(path, "rb") as file:
        return file.read()


def see_right(here, folder, ends=ENDS, whole=True):
    """Only true states; each with its list of hashes."""
    names = finals(folder)
    states = {name for name in names if name.endswith(".safetensors")}
    for name in states:
        assert read(names[name]) == read(here.path("truth/" + name)), name
        assert name.replace("safetensors", "pieces") in names, (name, names)
    if whole:
        assert states == {end + ".safetensors" for end in ends}, names
    else:
        assert states <= {end + ".safetensors" for end in ends}, names


def keep_once(here, key, out, *more):
    patience = () if "--mirror-timeout" in more else ("--mirror-timeout", "10s")
    return here.ask("client", "job", "watch", key, "--once", "--folder", here.path(out), *patience,
                    *more)["copies"]


def mirrors_that_do_wrong(here, key, url):
    for how in FALSE + ("truncate", "silent", "norange"):
        bad = "%s/%s" % (url, how)
        said = keep_once(here, key, "bad", "--mirror", bad, "--mirror-timeout", "1s")
        see_right(here, here.path("bad"), whole=False)
        if how in FALSE and how != "other":  # there is no other job to take it from
            assert how in said, (how, said)
        shutil.rmtree(here.path("bad"))
    bads = [word for how in FALSE for word in ("--mirror", "%s/%s" % (url, how))]
    said = keep_once(here, key, "mixed", *bads, "--mirror", url + "/good")
    assert said.startswith("3 end states"), said
    see_right(here, here.path("mixed"))


def the_oldest_go(here, key, url):
    """Room for two; then for one; for none."""
    size = os.path.getsize(here.path("truth/" + ENDS[0] + ".safetensors"))
    for room, ends in ((size * 5 // 2, ENDS[1:]), (size * 3 // 2, ENDS[2:])):
        said = keep_once(here, key, "bound", "--mirror", url, "--keep-max", str(room))
        assert said.startswith("%d end states" % len(ends)), said
        see_right(here, here.path("bound"), ends)
    assert "--keep-max allows less" in keep_once(here, key, "none", "--mirror", url, "--keep-max",
                                                  str(size // 2))
    assert not finals(here.path("none"))


def what_is_broken_is_fetched_again(here, key, url):
    path = finals(here.path("bound"))[ENDS[2] + ".safetensors"]
    whole = read(path)
    with open(path, "r+b") as file:
        file.seek(len(whole) - 1)
        file.write(bytes([whole[-1] ^ 1]))
    os.unlink(finals(here.path("mixed"))[ENDS[1] + ".pieces"])
    for out in ("bound", "mixed"):
        keep_once(here, key, out, "--mirror", url)
        see_right(here, here.path(out))


def killed_at_any_moment(here, key, url):
    chance = random.Random(3)
    for _ in range(5):
        watch = here.start("client", "job", "watch", key, "--poll", "1s", "--mirror", url, "--folder",
                           here.path("killed"))
        wanted = chance.randrange(4)
        here.until(lambda: watch.said().count("is kept") >= wanted or
                   len(finals(here.path("killed"))) >= 6, "states come")
        watch.kill()
        see_right(here, here.path("killed"), whole=False)
    keep_once(here, key, "killed", "--mirror", url)
    see_right(here, here.path("killed"))


def a_full_disk_is_said(here, key, url):
    """A limit on files stands for the disk: nothing larger than this can be written."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (
        os.path.getsize(here.path("truth/" + ENDS[0] + ".safetensors")) // 2, before[1]))
    try:
        seen = here.ask("client", "job", "watch", key, "--once", "--folder", here.path("full"),
                        "--mirror", url, "--mirror-timeout", "10s")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "no room" in seen["copies"] and seen["committed"] == 3, seen
    assert seen["training"]["losses"], "the watch goes on"
    left = glob.glob(here.path("full") + "/v1/jobs/*/checkpoints/*.safetensors*")
    assert all(one.endswith(".pieces") for one in left), left


def job_serve_serves_it(here, key):
    serve = here.start("client", "job", "serve", here.path("first.job"), "--data", town.DATA,
                       "--folder", here.path("kept"), "--serve", "127.0.0.1:0")
    place = here.until(lambda: re.search(r"at (http://\S+[0-9])", serve.said()), "it serves")
    done = fetch(here, key, "again", "--mirror", place.group(1), "--with-optimizer",
                 "--segment", "0")
    assert read(done["file"]) == read(here.path("truth/%s.safetensors" % ENDS[0]))
    assert serve.stop() == 0, serve.said()


def test_a_kept_model_outlives_its_solver():
    with Town(["client", "solver"]) as here:
        key = commit(here)
        shutil.copytree(here.path("solver.run/checkpoints"), here.path("truth"))
        url = publish(here, here.path("solver.run"))
        mirrors_that_do_wrong(here, key, url)
        the_oldest_go(here, key, url + "/good")
        what_is_broken_is_fetched_again(here, key, url + "/good")
        killed_at_any_moment(here, key, url + "/good")
        a_full_disk_is_said(here, key, url + "/good")
        solver, place = here.serve("solver", here.path("solver.run"))
        watch = here.start("client", "job", "watch", key, "--poll", "1s", "--mirror", place,
                           "--folder", here.path("kept"), "--serve", "127.0.0.1:0")
        here.until(lambda: watch.said().count("is kept") == 3, "all ends are kept")
        solver.kill()
        for gone in ("solver.run", "www"):
            shutil.rmtree(here.path(gone))
        see_right(here, here.path("kept"))
        kept = re.search(r"states at (http://\S+)", watch.said()).group(1)
        done = fetch(here, key, "model", "--mirror", kept, "--with-optimizer",
                     "--segment", "2")
        assert read(done["file"]) == read(here.path("truth/%s.safetensors" % ENDS[2]))
        assert watch.stop() == 0, watch.said()
        job_serve_serves_it(here, key)


# ---- verifiers' nodes --------------------------------------------------------------------------


def place_of(here, node):
    return here.until(lambda: re.search(r"serving what is kept at (http://\S+[0-9])", node.said()),
                      "it serves").group(1)


def keeps(here, who):
    return {fact["name"]: fact["value"] for fact in
            here.ask(who, "verifier", "status")["facts"]}.get("keeps", "")


def knows_the_end(here, who):
    return [job["phase"] for job in here.ask(who, "verifier", "status")["jobs"]] == ["closed"]


def store_of(here, who):
    return here.path(who + "/state/lockstep/verifier/kept")


def a_smaller_bound_leaves_the_model(here, node, size):
    """The state of the last final segment goes last, though there is no room for the others."""
    here.until(lambda: knows_the_end(here, "auditor"), "the auditor knows what is final")
    assert node.stop() == 0, node.said()
    small = here.verifier("--mode", "observe", "--keep-max", str(size * 3 // 2), "--serve",
                          "127.0.0.1:0", who="auditor")
    here.until(lambda: keeps(here, "auditor").startswith("1 states"), "the others go")
    see_right(here, store_of(here, "auditor"), ENDS[2:])
    place_of(here, small)
    return small


def a_panel_outlives_the_solver(on_chain):
    """The verifier has the seats, and enlisted before it served; the auditor only looks."""
    with Town(["client", "solver", "verifier", "auditor"], on_chain) as here:
        job = here.new_job("text.job", "--width", "64")
        key = here.open_job(job)
        solver = here.solve("solver", job, key)
        here.until_count_at_least(3, "committed", key)
        nodes = [here.verifier("--mirror", here.path("solver.run"), "--serve", "127.0.0.1:0", *more,
                               who=who) for who, more in (("verifier", ()), (
                                   "auditor", ("--mode", "observe", "--extra", "1")))]
        here.until_count_at_least(3, "sealed a verdict", key)
        here.until_count(1, "announced", key, "verifier")
        here.pass_time(PERIOD_S + 10)
        here.until_count_at_least(3, "revealed", key)
        here.pass_time(2 * PERIOD_S + 10)
        here.until_count(1, "closed", key)
        for who in ("verifier", "auditor"):
            here.until(lambda who=who: keeps(here, who).startswith("3 states"), who + " keeps")
        solver.kill()
        cites_the_ledger(here, key, here.path("solver.run"))
        cites_another_run(here, key, job)
        shutil.copytree(here.path("solver.run/checkpoints"), here.path("truth"))
        shutil.rmtree(here.path("solver.run"))
        for who in ("verifier", "auditor"):
            see_right(here, store_of(here, who))
        size = os.path.getsize(here.path("truth/%s.safetensors" % ENDS[2]))
        nodes[1] = a_smaller_bound_leaves_the_model(here, nodes[1], size)
        done = fetch(here, key, "model", "--with-optimizer")
        assert done["final"] and done["step"] == 12, done
        assert read(done["file"]) == read(here.path("truth/%s.safetensors" % ENDS[2]))
        gave = [one["url"] for one in done["mirrors"] if one["bytes"] > 0]
        assert gave == [place_of(here, nodes[0])], done
        done = fetch(here, key, "other", "--with-optimizer", "--mirror",
                     place_of(here, nodes[1]))
        assert read(done["file"]) == read(here.path("truth/%s.safetensors" % ENDS[2]))
        for node in nodes:
            assert node.stop() == 0, node.said()
        assert here.count("announced", key) == 1, "each change is said once"


def test_a_panel_outlives_the_solver():
    a_panel_outlives_the_solver(False)


def test_a_panel_outlives_the_solver_on_a_chain():
    a_panel_outlives_the_solver(True)


def test_a_node_that_keeps_nothing():
    with Town(["auditor"]) as here:
        assert "--no-keep keeps nothing" in here.run("auditor", "verifier", "node", "--mode", "observe",
                                                     "--no-keep", "--serve", "0", wanted=3)
        node = here.verifier("--mode", "observe", "--no-keep", who="auditor")
        here.until(lambda: "started, in" in node.said(), "it runs")
        assert node.stop() == 0 and not os.path.exists(store_of(here, "auditor")), node.said()


if __name__ == "__main__":
    sys.exit(main([test_a_kept_model_outlives_its_solver, test_a_panel_outlives_the_solver,
                   test_a_node_that_keeps_nothing],
                  [test_a_panel_outlives_the_solver_on_a_chain]))
