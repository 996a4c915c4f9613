"""Goal: nothing passes by hand. With the ledger's address alone a solver gets job and data, a node
checks what the solver commits, and the client gets the model, also from a solver that nobody can
call: it pushes to the client's mirror. What is pushed needs the token, a name of the tree, and room.
Method: the built program on an embedded ledger; everybody has a folder of their own and no file of
anybody else's."""

import http.client
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

import town  # noqa: E402
from town import PERIOD_S, Town, main  # noqa: E402

TOKEN = "a token of some length"


def serve_job(here, job, *more):
    """By the client, on a port that is free. Returns where."""
    with open(here.path("token"), "w", encoding="ascii") as file:
        file.write(TOKEN + "\n")
    server = here.start("client", "job", "serve", job, "--data", town.DATA, "--serve", "127.0.0.1:0",
                        "--folder", here.path("served"), "--push-token", here.path("token"),
                        "--json", *more)
    here.until(lambda: '"serving"' in server.said(), "the client serves")
    return json.loads(server.said())["serving"]


def ask(url, method, name, body=None, token=TOKEN):
    """The status, and what the mirror says."""
    one = http.client.HTTPConnection(url.split("//")[1], timeout=town.WAIT_MAX_S)
    try:
        one.request(method, "/" + name, body, {"Authorization": "Bearer " + token})
        got = one.getresponse()
        return got.status, got.read()
    finally:
        one.close()


def test_a_job_is_played_by_the_ledgers_address_alone():
    with Town(["client", "solver", "verifier"]) as here:
        job = here.new_job("text.job")
        url = serve_job(here, job)
        key = here.open_job(job, "--contact", url)
        solver = here.start("solver", "prover", "run", key, "--bundle", here.path("solver.run"),
                            "--threads", "1", "--poll", "1s", "--serve", "127.0.0.1:0")
        here.until_count_at_least(3, "committed", key)
        node = here.start("verifier", "verifier", "node", "--threads", "1", "--checks", "1",
                          "--withdraw-at", "1", "--entries", "1", "--serve", "127.0.0.1:0")
        here.until_count_at_least(3, "sealed a verdict", key)
        here.pass_time(PERIOD_S + 10)
        here.until_count_at_least(3, "revealed", key)
        here.pass_time(3 * PERIOD_S + 10)
        here.until_count(1, "closed", key)
        done = here.ask("client", "job", "fetch", key, "--out", here.path("model"))
        assert done["final"] and done["step"] == 12, done
        assert node.stop() == 0, node.said()
        solver.kill()


def test_a_solvers_node_needs_the_ledger_alone():
    """It fetches jobs and data whose size its policy allows, and says why it leaves the others."""
    with Town(["client", "solver"]) as here:
        job = here.new_job("text.job")
        url = serve_job(here, job)
        key = here.open_job(job, "--contact", url, "--seats", "0")
        hidden = here.open_job(here.new_job("hidden.job", "--seed", "9"), "--seats", "0")
        os.makedirs(here.path("locks"))

        def start(*more):
            return here.start("solver", "prover", "node", "--threads", "1", "--measure", "0.05",
                              "--poll", "1s", *more, more={"LOCKSTEP_LOCKS": here.path("locks")})

        def why(which):
            offers = here.ask("solver", "prover", "status")["offers"]
            return [offer["why"] for offer in offers if offer["job"] == which][0]

        node = start("--fetch-max", "1k")
        here.until(lambda: os.path.exists(here.path("solver/state/lockstep/solver/node.json")) and
                   "are fetched at most" in why(key), "the data is too much")
        assert node.stop() == 0, node.said()
        node = start()
        here.until_count_at_least(3, "committed", key)
        here.until(lambda: "has not said on the ledger" in why(hidden), "it says why it leaves one")
        assert here.count("accepted", hidden) == 0
        assert node.stop() == 0, node.said()


def test_a_solvers_node_gets_a_given_first_state():
    """From the client, by its root, and only as large as the policy allows; as 'prover run KEY' does."""
    with Town(["client", "solver", "second", "verifier"]) as here:
        state = here.train("client", here.new_job("base.job"), "base.run") + \
            "/checkpoints/000000000012.safetensors"
        job = here.new_job("tune.job", "--first-state", state, "--seed", "3")
        here.run("client", "job", "serve", job, "--data", town.DATA, "--first-state", town.DATA,
                 "--folder", here.path("none"), wanted=1)
        plain = serve_job(here, job)
        key = here.open_job(job, "--contact", plain, "--deadline", "%ds" % (30 * PERIOD_S),
                            panel=())
        whole = here.start("client", "job", "serve", job, "--data", town.DATA, "--first-state", state,
                           "--serve", "127.0.0.1:0", "--folder", here.path("whole"), "--json")
        here.until(lambda: '"serving"' in whole.said(), "the client serves all of it")
        here.enlist("verifier", key, "--mirror", json.loads(whole.said())["serving"])
        whole.kill()
        os.makedirs(here.path("locks"))
        place = "127.0.0.1:%d" % town.free_port()

        def start(*more):
            return here.start("solver", "prover", "node", "--threads", "1", "--measure", "0.05",
                              "--poll", "1s", "--serve", place, *more,
                              more={"LOCKSTEP_LOCKS": here.path("locks")})

        def why():
            if not os.path.exists(here.path("solver/state/lockstep/solver/node.json")):
                return ""
            return "".join(offer["why"] for offer in here.ask("solver", "prover", "status")["offers"])

        for more, said in ((("--fetch-max", "0", "--data", town.DATA, "--jobs", job),
                            "its first state is not here (--fetch-max)"),
                           (("--fetch-max", "60k", "--data", town.DATA, "--jobs", job),
                            "0.0 MB of data and 0.1 MB of first state to fetch"),
                           (("--fetch-max", "300k"),  # room for either, not for both
                            "0.3 MB of data and 0.1 MB of first state to fetch"),
                           (("--fetch-max", "1G",), "list of hashes")):
            node = start(*more)
            here.until(lambda said=said: said in why(), said)
            assert node.stop() == 0, node.said()
        url = serve_job(here, job, "--first-state", state)
        here.run("client", "job", "serve", job, "--data", town.DATA, "--first-state", state,
                 "--folder", here.path("served"), "--serve", "256.0.0.1:1", wanted=3)
        node = start("--jobs", job, "--data", town.DATA, "--mirror", url)
        here.until_count_at_least(3, "committed", key)
        assert here.count("accepted", key, "solver") == 1
        checks = here.start("verifier", "verifier", "node", "--threads", "1", "--checks", "1",
                            "--withdraw-at", "1", "--entries", "1", "--mirror", url)
        here.until(lambda: here.ask("verifier", "verifier", "status")["jobs"][0]["proven"] > 0,
                   "the first segment is proven by the client's copy")
        assert checks.stop() == 0 and node.stop() == 0, node.said()
        again = here.open_job(job, "--contact", url, "--seats", "0")
        second = here.start("second", "prover", "run", again, "--bundle", here.path("second.run"),
                            "--threads", "1", "--poll", "1s")
        here.until_count_at_least(3, "committed", again)
        second.kill()
        ours, theirs = [here.roots(one) for one in (
            here.path("solver/state/lockstep/solver/jobs/%s/run" % key[2:]), here.path("second.run"))]
        assert ours == theirs and len(ours) == 12, (ours, theirs)


def test_a_solver_that_nobody_can_call_pushes():
    with Town(["client", "solver"]) as here:
        job = here.new_job("text.job")
        url = serve_job(here, job)
        key = here.open_job(job, "--contact", url, "--seats", "0")
        solver = here.start("solver", "prover", "run", key, "--bundle", here.path("solver.run"),
                            "--threads", "1", "--poll", "1s")
        here.until_count_at_least(3, "committed", key)
        here.pass_time(3 * PERIOD_S + 10)
        here.until_count(1, "closed", key)
        solver.kill()
        here.run("client", "job", "fetch", key, "--out", here.path("early"), wanted=2)
        with open(here.path("wrong"), "w", encoding="ascii") as file:
            file.write("another token of some length\n")
        push = ("prover", "publish", here.path("solver.run"), "--push", url, "--push-token")
        here.run("solver", *push, here.path("wrong"), wanted=1)
        assert here.ask("solver", *push, here.path("token"))["written"] > 0
        assert here.ask("solver", *push, here.path("token"))["written"] == 0
        done = here.ask("client", "job", "fetch", key, "--out", here.path("early"))
        assert done["step"] == 12, done


def test_what_is_pushed_needs_the_token_a_name_and_room():
    with Town(["client"]) as here:
        url = serve_job(here, here.new_job("text.job"), "--keep-max", "100k")
        good = "v1/jobs/%s/segments/0" % ("ab" * 32)
        for name in ("v1/../x", "v1/.x/y", "etc/passwd", "v1/", "v1/A", "v1//x", "v1/x/", "v2/x",
                     "v1/%2e%2e/x", "v1/" + "a" * 300):
            status, _ = ask(url, "PUT", name, b"x")
            assert status in (403, 404), (name, status)
        for token in ("", "x", TOKEN[:-1], TOKEN + "x"):
            assert ask(url, "PUT", good, b"x", token)[0] == 401, token
        assert ask(url, "GET", good)[0] == 404
        assert ask(url, "PUT", good, b"one")[0] == 201
        assert ask(url, "GET", good, token="") == (200, b"one")
        assert ask(url, "PUT", good, b"two!")[0] == 201
        assert ask(url, "GET", good) == (200, b"two!")
        assert ask(url, "PUT", good + "1", b"x" * 200000)[0] == 503
        assert ask(url, "GET", good + "1")[0] == 404
        for _ in range(5):  # what is replaced frees its room
            assert ask(url, "PUT", good, b"x" * 40000)[0] == 201
        assert ask(url, "DELETE", good)[0] == 405
        cut = http.client.HTTPConnection(url.split("//")[1], timeout=town.WAIT_MAX_S)
        cut.putrequest("PUT", "/" + good + "2")
        cut.putheader("Authorization", "Bearer " + TOKEN)
        cut.putheader("Content-Length", "1000")
        cut.endheaders(b"half")
        cut.close()
        here.until(lambda: not [name for _, _, names in os.walk(here.path("served"))
                                for name in names if "part" in name], "the half is gone")
        assert ask(url, "GET", good + "2")[0] == 404


if __name__ == "__main__":
    sys.exit(main([test_a_job_is_played_by_the_ledgers_address_alone,
                   test_a_solvers_node_needs_the_ledger_alone,
                   test_a_solvers_node_gets_a_given_first_state,
                   test_a_solver_that_nobody_can_call_pushes,
                   test_what_is_pushed_needs_the_token_a_name_and_room]))
