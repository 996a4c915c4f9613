"""Goal: a client, a solver and a verifier's node, each a program of its own, bring a job to its end
by themselves: everything is verified, final and paid. What the solver publishes is all that the
node needs.
Method: the built program on an embedded ledger whose clock the test sets: no period ends before its
moves are made, however slow the machine is. The node has no data file and no bundle: it tries the job
with what the client serves, and checks with the folder that was published."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support/game"))
sys.dont_write_bytecode = True

import local_ledger  # noqa: E402

LOCKSTEP = os.environ["TEST_LOCKSTEP"]
DATA = "fixtures/text/village.u8"
WAIT_MAX_S = 240  # for what must come; only a machine that is very busy needs so much
PERIOD_S = 100000

folder = tempfile.mkdtemp(prefix="lockstep-test-")
running = []


def path(name):
    return os.path.join(folder, name)


def environment(who):
    home = dict(os.environ, LOCKSTEP_PASSPHRASE="pass words",
                LOCKSTEP_LEDGER="local:" + path("try.ledger"),
                LOCKSTEP_LOCK_MAX="100%", LOCKSTEP_LOCK_JOB_MAX="100%",
                LOCKSTEP_LOCK_PARTY_MAX="100%", LOCKSTEP_LOCK_TIME_MAX="0s")  # most of it is in bonds
    for place in ("DATA", "STATE", "CONFIG"):
        home["XDG_%s_HOME" % place] = path(who + "-" + place.lower())
    return home


def lockstep(who, *words):
    done = subprocess.run([LOCKSTEP, *words, "--json"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=environment(who))
    assert done.returncode == 0, (words, done.returncode, done.stdout, done.stderr[-600:])
    return json.loads(done.stdout)


def start(who, *words):
    with open(path(who + "-" + words[1] + ".log"), "ab") as log:
        process = subprocess.Popen([LOCKSTEP, *words], stdout=log, stderr=log,
                                   stdin=subprocess.DEVNULL, env=environment(who))
    running.append(process)
    return process


def serve_job(seed):
    """Where the client serves the job and its data."""
    start("client", "job", "serve", path("%d.job" % seed), "--data", DATA, "--serve", "127.0.0.1:0",
          "--folder", path("served"), "--json")
    log = path("client-serve.log")
    wait_for(lambda: "serving" in open(log, encoding="utf-8").read(), "the client serves")
    return json.loads(open(log, encoding="utf-8").read().splitlines()[0])["serving"]


def make_job(seed):
    lockstep("client", "job", "new", "--data", DATA, "--layers", "1", "--heads", "1", "--width",
             "16", "--length", "8", "--batch", "1", "--vocabulary", "128", "--steps", "24",
             "--segment-steps", "8", "--seed", str(seed), "--out", path("%d.job" % seed))
    lockstep("client", "job", "open", path("%d.job" % seed), "--reward", "3ether", "--coverage",
             "1", "--seats", "1", "--panel", "1", "--contact", serve_job(seed), "--any-terms",
             "--seal-period", "%ds" % PERIOD_S,
             "--reveal-period", "%ds" % PERIOD_S, "--claim-period", "%ds" % PERIOD_S, "--clock",
             "%ds" % PERIOD_S, "--yes")


def wait_for(condition, what):
    """While it waits a second passes on the ledger now and then, and with it a block."""
    until = time.monotonic() + WAIT_MAX_S
    while not condition():
        assert time.monotonic() < until, what
        local_ledger.pass_time(path("try.ledger"), 1)
        time.sleep(0.1)


def wait_for_events(event, wanted):
    def there():
        told = subprocess.run([LOCKSTEP, "ledger", "watch", "--json"], stdout=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, env=environment("client"), check=True)
        lines = told.stdout.decode().splitlines()
        return [json.loads(line)["event"] for line in lines].count(event) == wanted
    wait_for(there, event)


def see_page():
    """The node's page and metrics tell what it proved, and the loss that its replays had."""
    with open(path("verifier-node.log"), encoding="utf-8") as log:
        url = re.search(r"http://\S+", log.read()).group()
    ask = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
    assert b"\nlockstep_steps_proven_total 24\n" in ask(url + "metrics", timeout=WAIT_MAX_S).read()
    page = ask(url, timeout=WAIT_MAX_S).read()
    dots = re.search(rb'<path class="d0" d="(M0[^"]*)"', page)  # one for each of its replays
    assert dots.group(1).count(b"M") == 3 and b"3 proven here" in page, page


def earned():
    """By the node's own count, which adds up to what the ledger says that it has."""
    money = lockstep("verifier", "verifier", "status")["money"]
    amounts = {name[:-4]: int(amount) for name, amount in money.items() if name.endswith("_wei")}
    places = ("free", "stakes", "bonds", "escrow", "owed")
    assert sum(amounts[name] for name in places) == amounts["total"], money
    assert amounts["total"] == amounts["brought_in"] + amounts["earned"] - sum(
        amounts[name] for name in ("paid", "lost", "gas")), money
    return amounts["earned"]


def work():
    lockstep("client", "ledger", "init", path("try.ledger"))
    local_ledger.set_clock(path("try.ledger"), int(time.time()))
    for who in ("client", "solver", "verifier"):
        made = lockstep(who, "wallet", "new", "--light")
        lockstep(who, "ledger", "faucet", made["address"], "100ether")
    make_job(1)
    os.mkdir(path("www"))
    node = start("verifier", "verifier", "node", "--mirror", path("www"), "--checks", "1",
                 "--withdraw-at", "1", "--entries", "1", "--page", "0")
    wait_for_events("enlisted", 1)
    local_ledger.pass_time(path("try.ledger"), PERIOD_S + 1)  # until then nobody accepts
    solver = start("solver", "prover", "run", path("1.job"), "--bundle", path("1.run"), "--data",
                   DATA, "--threads", "1", "--serve", "127.0.0.1:0")
    wait_for_events("committed", 3)
    lockstep("solver", "prover", "publish", path("1.run"), "--data", DATA, "--out", path("www"))
    wait_for_events("sealed a verdict", 3)
    local_ledger.pass_time(path("try.ledger"), PERIOD_S + 1)
    wait_for_events("revealed", 3)
    local_ledger.pass_time(path("try.ledger"), 2 * PERIOD_S)
    wait_for_events("finalized", 3)
    wait_for(lambda: solver.poll() is not None, "the solver is paid")
    assert solver.returncode == 0, open(path("solver-run.log")).read()[-800:]
    wait_for(lambda: earned() > 0, "the node is paid")
    status = lockstep("verifier", "verifier", "status")
    see_page()
    node.terminate()
    assert node.wait(WAIT_MAX_S) == 0
    states = {row["outcome"]: row["count"] for row in status["queue"]}
    assert states == {"proven": 3}, status
    assert lockstep("verifier", "verifier", "claims")["claims"] == []


try:
    work()
    print("ok 1 - a job is trained, verified, final and paid")
    print("1..1")
except BaseException:
    for name in sorted(os.listdir(folder)):
        if name.endswith(".log"):
            with open(path(name), encoding="utf-8", errors="replace") as log:
                print("# " + name + "\n# " + log.read()[-1500:].replace("\n", "\n# "),
                      file=sys.stderr)
    raise
finally:
    for process in running:
        if process.poll() is None:
            process.kill()
            process.wait()
    shutil.rmtree(folder, ignore_errors=True)
