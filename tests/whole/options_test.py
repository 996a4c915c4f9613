"""Goal: options that no other test needs do what their help says: which checkpoints an archive takes,
who may solve or verify, entries of a ledger as they come, the price of gas in a plan, how many lines a
server has. Method: the built program, on an embedded ledger where there is one."""

import json
import os
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../support"), os.path.join(HERE, "../support/game")]
sys.dont_write_bytecode = True

import local_ledger  # noqa: E402
from program import DATA, LOCKSTEP, ask, call, main, new_job, path  # noqa: E402

WORDS = {"LOCKSTEP_PASSPHRASE": "pass words", "XDG_STATE_HOME": path("state")}
LEDGER = ["--ledger", "local:" + path("ledger")]
STEPS = 12


def say(*words, wanted=0):
    return ask(*words, wanted=wanted, environment=WORDS)


def train(name, *more):
    new_job(name + ".job", "--steps", str(STEPS), "--segment-steps", "4", *more)
    call("prover", "run", path(name + ".job"), "--data", DATA, "--bundle", path(name + ".run"), "--threads", "1",
         "--keep", "0", "--offline")
    return path(name + ".run")


def checkpoints(bundle):
    return sorted(int(name[:12]) for name in os.listdir(os.path.join(bundle, "checkpoints")))


def an_archive_takes_the_checkpoints_that_are_named():
    bundle = train("kept")
    there = checkpoints(bundle)
    assert len(there) > 2, there
    for which, wanted in (("all", there), ("last", there[-1:]), ("none", [])):
        archive, copy = path(which + ".archive"), path(which + ".copy")
        call("bundle", "export", bundle, archive, "--checkpoints", which)
        call("bundle", "import", archive, copy)
        assert checkpoints(copy) == wanted, (which, checkpoints(copy))


def a_wallet(who):
    return say("wallet", "new", "--light", "--wallet", path(who))["address"]


def accounts(name, *addresses):
    with open(path(name), "w", encoding="ascii") as file:
        file.write("".join(address + "\n" for address in addresses))
    return path(name)


def a_list_of_accounts_admits_them_alone():
    call("ledger", "init", path("ledger"))
    local_ledger.set_clock(path("ledger"), 1700000000)
    people = {who: a_wallet(who) for who in ("client", "solver", "stranger", "verifier")}
    for address in people.values():
        call("ledger", "faucet", address, "100eth", *LEDGER)
    solvers = accounts("solvers", people["client"], people["solver"])
    verifiers = accounts("verifiers", people["verifier"])
    new_job("listed.job", "--steps", str(STEPS), "--segment-steps", "4")
    opens = ["job", "open", path("listed.job"), "--reward", "1eth", "--yes", "--any-terms", *LEDGER, "--wallet",
             path("client")]
    other = say(*opens, "--verifiers", verifiers, "--salt", "1")["job"]
    key = say(*opens, "--solvers", solvers, "--seats", "0")["job"]
    for job in say("job", "list", *LEDGER)["jobs"]:
        lists = [job["terms"][name] is not None for name in ("solvers", "verifiers")]
        assert lists == [job["job"] == key, job["job"] == other], job
    run = ["prover", "run", path("listed.job"), "--data", DATA, "--threads", "1", *LEDGER, "--job-key", key,
           "--timeout", "20s"]
    for number, (who, more, wanted) in enumerate((("solver", [], "allow-list"), ("stranger", ["--allow-list", solvers], "list"),
                              ("solver", ["--allow-list", verifiers], "list"))):
        done = call(*run, "--wallet", path(who), "--bundle", path("refused-%d.run" % number), *more, wanted=1,
                    environment=WORDS)
        assert wanted in done.stderr.decode(), (who, done.stderr)
    solver = subprocess.Popen([LOCKSTEP, *run, "--wallet", path("solver"), "--bundle", path("listed.run"),
                               "--allow-list", solvers], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              stdin=subprocess.DEVNULL, env=dict(os.environ, **WORDS))
    try:
        until = time.monotonic() + 240
        while sum(one["event"] == "committed" for one in entries()) < STEPS // 4:
            assert time.monotonic() < until and solver.poll() is None
            time.sleep(0.2)
    finally:
        solver.kill()
        solver.wait()
    an_entry_is_told_when_it_comes()


def entries():
    return [json.loads(line) for line in call("ledger", "watch", *LEDGER, "--json").stdout.splitlines()]


def an_entry_is_told_when_it_comes():
    """With --follow it goes on behind the entries that are there; without it ends."""
    before = call("ledger", "watch", *LEDGER, "--json").stdout.splitlines()
    assert before
    watch = subprocess.Popen([LOCKSTEP, "ledger", "watch", *LEDGER, "--json", "--follow"], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=dict(os.environ, **WORDS))
    try:
        for line in before:
            assert watch.stdout.readline().rstrip(b"\n") == line
        assert watch.poll() is None
        new_job("second.job", "--steps", "4", "--segment-steps", "4", "--seed", "5")
        say("job", "open", path("second.job"), "--reward", "1eth", "--yes", "--any-terms", *LEDGER, "--wallet",
            path("client"))
        entry = json.loads(watch.stdout.readline())
        assert entry["event"] == "opened", entry
    finally:
        watch.kill()
        watch.wait()


def gas_is_a_cost_of_a_seat():
    words = ["verifier", "plan", "--segments", "100", "--reward", "2eth", "--segment-cost", "0.01eth", "--fee",
             "0.02eth", "--json"]
    free, paid = (json.loads(call(*words, "--gas", gas).stdout)["money"]["seat_profit"] for gas in ("0eth", "0.001eth"))
    assert abs(free - paid - 10 ** 15) < 10 ** 6, (free, paid)


def answered(place, count):
    """Of so many lines that stand at once, how many get an answer."""
    lines = [socket.create_connection(place) for _ in range(count)]
    got = 0
    for line in lines:
        try:
            line.settimeout(120)
            line.sendall(b"GET /v1/jobs.json HTTP/1.1\r\nHost: %s\r\n\r\n" % place[0].encode())
            got += line.recv(4096).startswith(b"HTTP/1.1 200")
        except OSError:
            pass  # it is closed
    for line in lines:
        line.close()
    return got


def a_server_has_so_many_lines():
    """A line that asks nothing for ten seconds is closed too: a machine that is as slow as that tries again."""
    for room, wanted in (("8", lambda got: 0 < got <= 8), ("64", lambda got: got == 20)):
        serve = subprocess.Popen([LOCKSTEP, "prover", "serve", path("kept.run"), "--data", DATA, "--serve",
                                  "127.0.0.1:0", "--connections", room, "--connections-per-client", "60", "--json"],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        try:
            host, port = json.loads(serve.stdout.readline())["serving"].split("/")[2].rsplit(":", 1)
            until = time.monotonic() + 240
            while not wanted(answered((host, int(port)), 20)):
                assert time.monotonic() < until, room
        finally:
            serve.kill()
            serve.wait()


sys.exit(main([
    an_archive_takes_the_checkpoints_that_are_named,
    a_list_of_accounts_admits_them_alone,
    gas_is_a_cost_of_a_seat,
    a_server_has_so_many_lines,
]))
