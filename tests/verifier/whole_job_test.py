"""Goal: a client, a solver and a verifier's node, each a program of its own, bring a job to its end
by themselves: everything is attested, final and paid. What the solver publishes is all that the
node needs.
Method: the built program on an embedded ledger with short periods; the node has no data file and no
bundle, only the folder that was published."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

LOCKSTEP = os.environ["TEST_LOCKSTEP"]
DATA = "fixtures/text/village.u8"
LIMIT_S = 200

folder = tempfile.mkdtemp(prefix="lockstep-test-")
running = []


def path(name):
    return os.path.join(folder, name)


def environment(who):
    home = dict(os.environ, LOCKSTEP_PASSPHRASE="pass words",
                LOCKSTEP_LEDGER="local:" + path("try.ledger"))
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


def make_job(seed):
    lockstep("client", "job", "new", "--data", DATA, "--layers", "1", "--heads", "1", "--width",
             "16", "--length", "8", "--batch", "1", "--vocabulary", "128", "--steps", "24",
             "--segment", "8", "--seed", str(seed), "--out", path("%d.job" % seed))
    lockstep("client", "job", "open", path("%d.job" % seed), "--reward", "3ether",
             "--attest-period", "20s", "--reveal-period", "20s", "--claim-period", "5s",
             "--response-period", "30s", "--yes")


def see_page():
    """The node's page and metrics tell what it proved, and the loss that its replays had."""
    with open(path("verifier-run.log"), encoding="utf-8") as log:
        url = re.search(r"http://\S+", log.read()).group()
    ask = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
    assert b"\nlockstep_steps_proven_total 24\n" in ask(url + "metrics", timeout=60).read()
    page = ask(url, timeout=60).read()
    assert page.count(b"<circle") == 3 and b"3 proven here" in page, page


def work():
    lockstep("client", "ledger", "init", path("try.ledger"))
    for who in ("client", "solver", "verifier"):
        made = lockstep(who, "wallet", "new", "--light")
        lockstep(who, "ledger", "faucet", made["address"], "100ether")
    make_job(1)
    solver = start("solver", "prover", "run", path("1.job"), "--bundle", path("1.run"), "--data",
                   DATA, "--threads", "1")
    for _ in range(LIMIT_S * 10):
        if os.path.exists(path("1.run/checkpoints/000000000024.safetensors")):
            break
        time.sleep(0.1)
    lockstep("solver", "prover", "publish", path("1.run"), "--data", DATA, "--to", path("www"))
    node = start("verifier", "verifier", "run", "--mirror", path("www"), "--checks", "1",
                 "--withdraw-at", "1", "--status", "0")
    assert solver.wait(LIMIT_S) == 0, open(path("solver-run.log")).read()[-800:]
    time.sleep(3)
    status = lockstep("verifier", "verifier", "status")
    assert int(status["earned_wei"]["attestation"]) > 0, status
    see_page()
    node.terminate()
    assert node.wait(30) == 0
    states = {row["outcome"]: row["count"] for row in status["queue"]}
    assert states == {"proven": 3}, status
    assert lockstep("verifier", "verifier", "claims")["claims"] == []


try:
    work()
    print("ok 1 - a job is trained, attested, final and paid")
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
