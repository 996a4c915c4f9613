"""Goal: a solver that trains a job on a ledger is paid exactly, no matter what happens on the way.
Method: runs the built program as client and as solver, on an embedded ledger and on the pinned
anvil (skipped without it). Runs are killed at random instants (a fixed seed) and resumed; the chain
is cut off; jobs are opened, taken, lost and cancelled. Every end is compared with the balances that
the terms promise, to the wei, and with the events: each move has happened once. Where a deadline
must pass the test sets the ledger's clock."""

import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support/game"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
sys.dont_write_bytecode = True

import processes  # noqa: E402
import local_ledger as ledger_file  # noqa: E402
import tap  # noqa: E402

LOCKSTEP = os.environ["TEST_LOCKSTEP"]
ANVIL = "tests/evm/node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil"
DATA = "fixtures/text/village.u8"
QUICK = "TEST_QUICK" in os.environ
SOAK = int(os.environ.get("SOAK_MINUTES", "0")) > 0
KILLS = 200 if SOAK else 5 if QUICK else 20
ETHER = 10 ** 18
WAIT_MAX_S = 240  # for what must come; only a machine that is very busy needs so much
QUICKLY = ["--seats", "0", "--segment-period", "1h", "--seal-period", "1s",
           "--reveal-period", "1s", "--claim-period", "1s"]

folder = tempfile.mkdtemp(prefix="lockstep-test-")
numbers = random.Random(8)
os.environ.update({"XDG_DATA_HOME": folder, "XDG_STATE_HOME": folder, "XDG_CONFIG_HOME": folder,
                   "LOCKSTEP_PASSPHRASE": "pass words"})


def path(name):
    return os.path.join(folder, name)


def call(*words, wanted=0, environment=None):
    done = subprocess.run([LOCKSTEP, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, env=dict(os.environ, **(environment or {})),
                          start_new_session=True)
    assert done.returncode == wanted, (words, done.returncode, done.stdout[-600:],
                                       done.stderr[-600:])
    return done


def ask(*words, wanted=0, environment=None):
    return json.loads(call(*words, "--json", wanted=wanted, environment=environment).stdout)


def new_job(name, *more):
    return ask("job", "new", "--data", DATA, "--layers", "1", "--heads", "1", "--width", "16",
               "--length", "8", "--batch", "1", "--vocabulary", "128", "--steps", "38",
               "--segment-steps", "4", "--out", path(name), *more)


def wait_for(condition, what):
    until = time.monotonic() + WAIT_MAX_S
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.02)


class Running:
    """A program that runs beside the test; what it says on stderr is read as it comes."""

    def __init__(self, words):
        self.said = b""
        self.process = processes.start([LOCKSTEP, *words], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.end()

    def read(self):
        for line in self.process.stderr:
            self.said += line

    def wait_for_word(self, word):
        wait_for(lambda: word in self.said or self.process.poll() is not None, (word, self.said))
        assert word in self.said, self.said[-600:]

    def end(self):
        """Waits until it is over, and gives its exit code."""
        code = self.process.wait(WAIT_MAX_S)
        self.reader.join(WAIT_MAX_S)
        self.process.stderr.close()
        return code


class Ledger:
    """A ledger with a client and two solvers who have money on it."""

    def __init__(self, name, url, more=()):
        self.name, self.url, self.more = name, url, list(more)
        self.place = ["--ledger", url, "--ledger-state", path(name + ".state"), *self.more]
        self.addresses = {}

    def wallet(self, who):
        return ["--wallet", path(self.name + "." + who)]

    def money(self, who):
        for account in ask("ledger", "status", *self.place, *self.wallet(who))["accounts"]:
            return int(account["purse_wei"]) + int(account["owed_wei"])

    def owed(self, who):
        return int(ask("ledger", "status", *self.place, *self.wallet(who))["accounts"][0]
                   ["owed_wei"])

    def open(self, job, *more, wanted=0):
        return ask("job", "open", path(job), "--reward", "1eth", "--any-terms", *QUICKLY,
                   *self.place, *self.wallet("client"), *more, wanted=wanted)["job" if wanted == 0 else "error"]

    def run(self, job, *more, who="solver", wanted=0):
        return ask(*self.run_words(job, *more, who=who), wanted=wanted)

    def run_words(self, job, *more, who="solver"):
        return ["prover", "run", path(job), "--data", DATA, "--threads", "1", *self.place,
                *self.wallet(who), "--poll", "1s", *more]

    def events(self, key):
        lines = call("ledger", "watch", "--json", *self.place).stdout.decode().splitlines()
        entries = [json.loads(line) for line in lines]
        return [entry["event"] for entry in entries if entry["job"] == key
                or entry["event"] == "withdrawn"]


def local_ledger(name):
    made = Ledger(name, "local:" + path(name + ".ledger"))
    call("ledger", "init", path(name + ".ledger"))
    for who in ("client", "solver", "other"):
        address = ask("wallet", "new", "--light", *made.wallet(who))["address"]
        call("ledger", "faucet", address, "10ether", "--ledger", made.url)
    return made


def assert_finished(ledger, key, before, run, gas=0, segments=10):
    """The job is done, and its reward went from the client to the solver."""
    status = ask("bundle", "status", path(run), *ledger.place)["ledger"]
    assert status["phase"] == "closed" and status["final"] == segments, status
    assert status["segments"] == segments and ledger.owed("solver") == 0
    # An even part of an ether for each segment; gas is the only other thing that costs.
    reward = ETHER // segments * segments
    for who, change in (("solver", reward), ("client", -reward)):
        lost = before[who] + change - ledger.money(who)
        assert 0 <= lost <= gas, (who, lost)
    events = ledger.events(key)
    for event, count in (("opened", 1), ("accepted", 1), ("committed", segments),
                         ("finalized", segments), ("closed", 1)):
        assert events.count(event) == count, (event, events)


def money_of(ledger):
    return {who: ledger.money(who) for who in ("client", "solver")}


# ---- the client ---------------------------------------------------------------


def jobs_are_opened_listed_shown_and_closed():
    ledger = local_ledger("client")
    before = ledger.money("client")
    refused = call("job", "open", path("a.job"), "--reward", "1eth", *ledger.place,
                   *ledger.wallet("client"), wanted=3)
    assert b"ESCROW" in refused.stderr and b"--yes" in refused.stderr  # nobody confirms
    terms = {line[:16].strip(): line[16:] for line in refused.stderr.decode().splitlines()}
    assert terms["seats"].strip().startswith("2 for each covered segment"), terms
    assert terms["ESCROW"].strip().startswith("4.6 eth"), terms
    assert ledger.money("client") == before
    two = ["--seats", "2", "--panel", "2", "--coverage", "0.5", "--fee", "0.1eth"]
    key = ledger.open("a.job", *two)
    # 10 segments of 0.1 ether; of each thrice the fees of two seats.
    assert before - ledger.money("client") == 7 * ETHER
    shown = ask("job", "show", key[:12], *ledger.place)
    assert shown["terms"]["coverage"] == 0.5 and shown["phase"] == "open"
    assert shown["terms"]["id"] == ask("job", "show", path("a.job"))["id"]
    text = call("job", "list", *ledger.place).stdout.decode()
    assert all(len(line) <= 80 for line in text.splitlines()) and key[:14] in text
    assert text.splitlines()[1].endswith(" seal"), text
    refused = ask("job", "list", *ledger.place)["jobs"][0]["refused_by"]
    assert refused["solver"] is None and "--seal-period-min" in refused["node"]["text"], refused
    text = call("job", "list", "--seal-period-min", "1s", "--reveal-period-min", "1s",
                *ledger.place).stdout.decode()
    assert text.splitlines()[1].endswith(" ok"), text
    assert [job["job"] for job in ask("job", "list", "--open", *ledger.place)["jobs"]] == [key]
    # Asked for once more it is the same job; with another salt it is another.
    assert ledger.open("a.job", *two) == key
    # Other terms are not what stands: nobody may believe that they are.
    for more in (["--reward", "2eth"], ["--claim-period", "2s"], ["--stake", "3eth"], []):
        said = ledger.open("a.job", *(more and two), *more, wanted=1)
        assert "with another " + (more or ["--seats"])[0] in said["message"], said
    assert before - ledger.money("client") == 7 * ETHER
    other = ledger.open("a.job", "--salt", "1")
    assert other != key and len(ask("job", "list", *ledger.place)["jobs"]) == 2
    call("job", "close", other[:14], *ledger.place, *ledger.wallet("other"), wanted=1)
    for name in (key, other):
        ask("job", "close", name, *ledger.place, *ledger.wallet("client"))
    assert ledger.money("client") == before and ledger.owed("client") == 0
    assert "is over" in ledger.open("a.job", "--salt", "1", wanted=1)["message"]
    assert ask("job", "list", "--open", *ledger.place)["jobs"] == []
    call("job", "close", "0x1234", *ledger.place, *ledger.wallet("client"), wanted=3)
    call("job", "close", "0x" + 64 * "1", *ledger.place, *ledger.wallet("client"), wanted=3)


def terms_that_make_no_sense_are_not_sent():
    ledger = local_ledger("senseless")
    before = ledger.money("client")
    for more in (["--reveal-period", "1s"], ["--stake", "9eth"]):
        said = ask("job", "open", path("a.job"), "--reward", "1eth", *ledger.place,
                   *ledger.wallet("client"), *more, "--yes", wanted=1)["error"]
        assert "no node or no solver" in said["message"], said
        assert "change %s," % more[0] in said["advice"], said
    for more in (["--reward", "9wei"], ["--stake", "0"], ["--bond", "2eth"],
                 ["--seats", "0", "--coverage", "1"], ["--coverage", "1.5"],
                 ["--reward", "much"], ["--seal-period", "0s"]):
        call("job", "open", path("a.job"), "--reward", "1eth", *ledger.place,
             *ledger.wallet("client"), *more, "--yes", wanted=3)
    assert ledger.money("client") == before


# ---- the solver ---------------------------------------------------------------


def a_job_is_trained_committed_and_paid():
    ledger = local_ledger("plain")
    before = money_of(ledger)
    key = ledger.open("a.job")
    result = ledger.run("a.job", "--bundle", path("plain.run"))
    assert result["ledger"]["collected"] and result["steps"] == 38
    assert_finished(ledger, key, before, "plain.run")
    # Once more does nothing.
    ask("prover", "resume", path("plain.run"), *ledger.wallet("solver"), "--data", DATA)
    assert_finished(ledger, key, before, "plain.run")
    segments = ask("bundle", "segments", path("plain.run"))["segments"]
    assert all(len(segment["signature"]) == 130 for segment in segments), segments[0]
    assert segments[-1]["root"] == ROOTS["a.job"][-1]


def another_job_or_solver_is_refused_before_it_costs():
    ledger = local_ledger("refused")
    key = ledger.open("a.job")
    before = ledger.money("other")
    error = ledger.run("b.job", "--bundle", path("refused.run"), "--job-key", key, who="other",
                       wanted=1)["error"]
    assert "the id of the job differs" in error["message"], error
    ledger.run("b.job", "--bundle", path("refused.run"), who="other", wanted=3)
    assert not os.path.exists(path("refused.run"))
    ledger.run("a.job", "--bundle", path("first.run"), "--until", "committed")
    ledger.run("a.job", "--bundle", path("second.run"), who="other", wanted=1)
    assert ledger.money("other") == before
    ask("prover", "collect", path("first.run"), "--wait", *ledger.wallet("solver"))


def terms_that_the_policy_refuses_cost_nothing_and_its_option_takes_them():
    ledger = local_ledger("robbed")
    before = ledger.money("solver")
    key = ledger.open("a.job", "--stake", "9eth", "--clock", "1s")
    bundle = ["--bundle", path("robbed.run")]
    error = ledger.run("a.job", *bundle, wanted=1)["error"]
    assert "nothing was staked: the stake is 9 eth" in error["message"], error
    assert "--stake-rewards-max" in error["message"], error
    assert ledger.events(key) == ["opened"] and ledger.money("solver") == before
    # The bundle is there, and its journal is empty: another command takes the job, or leaves it.
    words = ["prover", "commit", path("robbed.run"), *ledger.place, *ledger.wallet("solver")]
    error = ask(*words, "--stake-rewards-max", "9", wanted=1)["error"]
    assert "the clock of a dispute is 1s" in error["message"], error
    assert "--clock-min" in error["message"], error
    ask("prover", "resume", path("robbed.run"), "--until", "committed", "--clock-min",
        "1s", "--clock-factor", "0", "--stake-rewards-max", "9", *ledger.wallet("solver"))
    assert "committed" in ledger.events(key)


def first_states_that_are_missing_or_wrong_cost_nothing():
    """Nor do they leave a bundle."""
    ledger = local_ledger("first")
    state = os.path.join(path("c.job.measure"), "checkpoints", "000000000012.safetensors")
    other = os.path.join(path("c.job.measure"), "checkpoints", "000000000004.safetensors")
    new_job("given.job", "--first-state", state, "--steps", "6", "--segment-steps", "2")
    key = ledger.open("given.job")
    before = money_of(ledger)
    run = ["--bundle", path("given.run")]
    for words, code, said in (([], 3, "no file is named"),
                              (["--first-state", path("nowhere")], None, "nowhere"),
                              (["--first-state", other], 1, "not the first state"),
                              (["--first-state", path("a.job")], 1, "a.job"),
                              (["--first-state", state, "--stake-max", "much"], 3, "stake-max")):
        done = subprocess.run([LOCKSTEP, *ledger.run_words("given.job", *run, *words)],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, timeout=WAIT_MAX_S)
        assert done.returncode == code or code is None and done.returncode > 0, (words, done)
        assert said in done.stderr.decode(), (words, done.stderr)
        assert not os.path.exists(path("given.run")), words
    error = ledger.run("a.job", *run, "--first-state", state, wanted=3)["error"]
    assert "draws its first state" in error["message"] and not os.path.exists(path("given.run"))
    assert ledger.events(key) == ["opened"] and money_of(ledger) == before
    ledger.run("given.job", *run, "--first-state", state, "--until", "committed")
    assert "committed" in ledger.events(key)


def a_run_serves_its_bundle_and_the_ledger_names_the_place():
    """From the address that its --serve gives; a place that is taken costs no stake."""
    ledger = local_ledger("serving")
    key = ledger.open("long.job", "--claim-period", "1h")
    before = money_of(ledger)
    error = ledger.run("long.job", "--bundle", path("serving.run"), "--serve", "::1:80",
                       wanted=3)["error"]
    assert "no place to listen at" in error["message"], error
    assert not os.path.exists(path("serving.run"))
    taken = socket.create_server(("127.0.0.1", 0))
    error = ledger.run("long.job", "--bundle", path("serving.run"), "--serve",
                       "127.0.0.1:%d" % taken.getsockname()[1], wanted=2)["error"]
    assert "cannot serve content at 127.0.0.1" in error["message"], error
    assert ledger.events(key) == ["opened"] and money_of(ledger) == before
    taken.close()
    with Running(["prover", "resume", path("serving.run"), *ledger.place,
                  *ledger.wallet("solver"), "--data", DATA, "--serve", "127.0.0.1:0"]) as run:
        run.wait_for_word(b"serving at http://127.0.0.1:")
        url = re.search(rb"serving at (\S+)", run.said).group(1).decode()
        wait_for(lambda: ledger.events(key).count("committed") == 4, run.said)
        with urllib.request.urlopen(url + "/v1/jobs.json", timeout=WAIT_MAX_S) as reply:
            job = json.load(reply)["jobs"][0]
        assert job["steps"] == 400, job
        accepted = [json.loads(line) for line in call("ledger", "watch", "--json", *ledger.place)
                    .stdout.decode().splitlines() if '"accepted"' in line]
        assert accepted[0]["contact"] == url, accepted
        run.process.send_signal(signal.SIGINT)
        assert run.end() != 0 and b"lockstep prover resume" in run.said, run.said
    try:
        urllib.request.urlopen(url, timeout=WAIT_MAX_S)
        raise AssertionError("it still serves")
    except urllib.error.URLError:
        pass


def what_nobody_could_check_costs_no_stake():
    """An encrypted bundle, by the three commands that would stake for it."""
    ledger = local_ledger("secret")
    key = ledger.open("a.job")
    before = money_of(ledger)
    secret = ["--bundle-key", path("secret.key")]
    error = ledger.run("a.job", "--bundle", path("secret.run"), "--encrypt", *secret,
                       wanted=1)["error"]
    assert "nothing was staked" in error["message"] and "--offline" in error["advice"], error
    assert not os.path.exists(path("secret.run"))
    assert not os.path.exists(path("secret.key"))
    ask("prover", "run", path("a.job"), "--data", DATA, "--bundle", path("secret.run"), "--encrypt",
        *secret, "--offline", environment={"LOCKSTEP_LEDGER": ledger.url})
    for command in ("commit", "resume"):
        error = ask("prover", command, path("secret.run"), *secret, *ledger.place,
                    *ledger.wallet("solver"), wanted=1)["error"]
        assert "nothing was staked" in error["message"], error
    assert ledger.events(key) == ["opened"] and money_of(ledger) == before


def a_bundle_made_offline_is_posted_later():
    ledger = local_ledger("offline")
    before = money_of(ledger)
    key = ledger.open("a.job")
    environment = {"LOCKSTEP_LEDGER": ledger.url}
    ask("prover", "run", path("a.job"), "--data", DATA, "--bundle", path("offline.run"),
        "--offline", environment=environment)
    assert ledger.events(key) == ["opened"]
    # A ledger of the environment or a config file asks no passphrase of a run that began alone.
    environment["LOCKSTEP_PASSPHRASE"] = ""
    ask("prover", "resume", path("offline.run"), "--data", DATA, environment=environment)
    assert "ledger" not in ask("bundle", "status", path("offline.run"), environment=environment)
    ask("prover", "resume", path("offline.run"), "--data", DATA, *ledger.place,
        environment={"LOCKSTEP_PASSPHRASE": ""}, wanted=3)
    assert ledger.events(key) == ["opened"]
    status = ask("bundle", "status", path("offline.run"), *ledger.place)["ledger"]
    assert status["phase"] == "open" and status["waiting"][0]["waits_for"] == "to-commit"
    assert ask("prover", "commit", path("offline.run"), *ledger.place,
               *ledger.wallet("solver"))["committed"] == 10
    # From here on the bundle knows its ledger. What is not due yet is not an error.
    ask("prover", "collect", path("offline.run"), *ledger.wallet("solver"))
    waits = ask("bundle", "status", path("offline.run"))["ledger"]["waiting"]
    assert all(segment["waits_for"] in ("claim-time", "due", "leg-before") for segment in waits)
    ask("prover", "collect", path("offline.run"), "--wait", *ledger.wallet("solver"))
    assert_finished(ledger, key, before, "offline.run")


def a_training_that_diverges_is_committed_and_paid_up_to_there():
    ledger = local_ledger("diverged")
    before = money_of(ledger)
    key = ledger.open("d.job")
    result = ledger.run("d.job", "--bundle", path("diverged.run"), wanted=4)
    assert result["diverged"] and result["steps"] < 38, result
    segments = (result["steps"] + 3) // 4
    assert ledger.money("solver") - before["solver"] == segments * ETHER // 10
    ask("job", "collect", *ledger.place, *ledger.wallet("client"))
    assert before["client"] - ledger.money("client") == segments * ETHER // 10
    assert ledger.events(key).count("committed") == segments


def answers_are_proven_and_paid_as_training_is():
    """Forward only: the weights stay, each step's answers are what it commits to."""
    ledger = local_ledger("answers")
    state = os.path.join(path("a.job.measure"), "checkpoints", "000000000036.safetensors")
    new_job("i.job", "--inference", "--first-state", state, "--steps", "6", "--segment-steps", "2")
    key = ledger.open("i.job")
    before = money_of(ledger)
    result = ledger.run("i.job", "--bundle", path("i.run"), "--first-state", state)
    assert result["ledger"]["collected"] and result["ledger"]["final"] == 3
    assert ledger.money("solver") - before["solver"] == ETHER // 3 * 3
    weights = tensors_of(state)
    answers = [tensors_of(os.path.join(path("i.run"), "checkpoints", "%012d.safetensors" % step))
               for step in (2, 4, 6)]
    for answer in answers:
        kept = [name for name in answer if name not in ("step", "answers", "loss_sum")]
        assert len(kept) > 5 and all(answer[name] == weights[name] for name in kept)
    assert len({answer["answers"] for answer in answers}) == 3
    losses = [step["loss"] for step in ask("bundle", "steps", path("i.run"))["steps"]]
    total = struct.unpack("<f", answers[-1]["loss_sum"])[0]
    assert abs(total - sum(losses)) < 1e-5 * total, (total, losses)
    # An auditor replays it, and an element of its trace is opened and checked.
    audit = ask("audit", path("i.run"), "--data", DATA)
    assert "proven" in json.dumps(audit), audit
    assert ledger.events(key).count("finalized") == 3


def tensors_of(name):
    with open(name, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(size))
        data = file.read()
    return {tensor: data[slice(*about["data_offsets"])] for tensor, about in header.items()
            if tensor != "__metadata__"}


def what_is_too_large_is_refused_by_name():
    refused = call("prover", "run", path("a.job"), "--data", DATA, "--bundle", path("large.run"),
                   "--memory-max", "16k", wanted=1)
    assert b"MiB" in refused.stderr, refused.stderr
    for name, word in (("capable.job", b"compute capability 9.0"), ("fast.job", b"multiply-adds"),
                       ("wide.job", b"MiB of memory")):
        refused = call("prover", "run", path(name), "--data", DATA, "--bundle", path("large.run"),
                       wanted=1)
        assert word in refused.stderr, refused.stderr
    assert not os.path.exists(path("large.run"))
    ask("prover", "run", path("capable.job"), "--data", DATA, "--bundle", path("able.run"),
        "--ignore-requirements")


def late_solvers_are_told_and_take_the_job_again_when_they_wish():
    ledger = local_ledger("late")
    file = path("late.ledger")
    ledger_file.set_clock(file, int(time.time()))
    before = money_of(ledger)
    key = ledger.open("a.job", "--segment-period", "100s")
    ask("prover", "run", path("a.job"), "--data", DATA, "--bundle", path("late.run"), "--offline")
    # Accepted by somebody who then sleeps: with the acceptance the time of the segment is over.
    ledger_file.execute(file, "CREATE TRIGGER sleep AFTER INSERT ON moves WHEN NEW.name LIKE"
                        " '% accept %' BEGIN UPDATE meta SET value = value + 1000 WHERE"
                        " name IN ('clock', 'clock-again'); END")
    with Running(ledger.run_words("a.job", "--bundle", path("slow.run"), "--until",
                                  "committed")) as sleeper:
        sleeper.wait_for_word(b"overdue")
    ledger_file.execute(file, "DROP TRIGGER sleep")
    assert ledger.events(key) == ["opened", "accepted"]
    refused = wait_in_vain("prover", "commit", path("late.run"), *ledger.place,
                           *ledger.wallet("solver"))
    assert b"overdue" in refused.stderr, refused.stderr
    done = ask("prover", "commit", path("late.run"), *ledger.place, *ledger.wallet("solver"),
               "--again")
    assert done["committed"] == 10
    ledger_file.pass_time(file, 10000)
    ask("prover", "collect", path("late.run"), "--wait", *ledger.wallet("solver"))
    events = ledger.events(key)
    assert events.count("accepted") == 2 and events.count("released") == 1, events
    assert ledger.money("solver") - before["solver"] == ETHER - ETHER // 8
    assert ledger.owed("client") == 0  # the eighth of the stake is burned


def wait_in_vain(*words):
    """With a timeout long enough to find out why it is in vain."""
    for seconds in (1, 4, 16, 64):
        refused = call(*words, "--timeout", "%ds" % seconds, wanted=2)
        if b"the ledger took too long: " in refused.stderr:
            break
    return refused


# ---- kills --------------------------------------------------------------------


def killed_after(words, seconds):
    process = processes.start([LOCKSTEP, *words], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        process.wait(seconds)
        return False
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return True


def kill_and_resume(ledger, job, segments, kills, job_seconds, gas=0):
    done = 0
    number = 1
    while done < kills:
        run = "%s %d.run" % (ledger.name, number)
        before = money_of(ledger)
        key = ledger.open(job, "--salt", str(number))
        first = ledger.run_words(job, "--bundle", path(run), "--job-key", key)
        resume = ["prover", "resume", path(run), "--data", DATA, "--threads", "1",
                  "--ledger-state", path(ledger.name + ".state"), *ledger.more,
                  *ledger.wallet("solver"), "--poll", "1s"]
        for _ in range(min(kills - done, numbers.randint(5, 10))):
            words = resume if os.path.exists(os.path.join(path(run), "job")) else first
            done += killed_after(words, numbers.uniform(0, 0.8) * job_seconds)
        begun = os.path.exists(os.path.join(path(run), "job"))
        # A bundle that no note was written to knows no ledger yet.
        ask(*(resume + ["--ledger", ledger.url, "--job-key", key] if begun else first))
        assert ask("bundle", "check", path(run))["damaged"] == 0
        assert ask("bundle", "segments", path(run))["segments"][-1]["root"] == ROOTS[job][-1]
        assert_finished(ledger, key, before, run, gas, segments)
        shutil.rmtree(path(run))
        number += 1
    print("# %d kills in %d runs" % (done, number - 1))


def runs_killed_at_random_instants_are_paid_once():
    kill_and_resume(local_ledger("killed"), "a.job", 10, KILLS, 3.0)


# ---- on a chain ---------------------------------------------------------------


class Proxy:
    """Stands between the program and the chain. It can be cut, and cuts itself before what holds
    these bytes comes through for the first time."""

    def __init__(self, port, cut_before):
        self.port, self.cut_before, self.cut = port, cut_before, False
        self.server = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.server.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            client, _ = self.server.accept()
            if self.cut:
                client.close()
                continue
            chain = socket.create_connection(("127.0.0.1", self.port))
            for pair in ((client, chain, self.look), (chain, client, lambda data: None)):
                threading.Thread(target=self.copy, args=pair, daemon=True).start()

    def look(self, data):
        if self.cut_before is not None and self.cut_before in data:
            self.cut_before, self.cut = None, True

    def copy(self, source, target, look):
        seen = b""
        try:
            while not self.cut:
                data = source.recv(65536)
                if not data:
                    break
                seen = seen[-1000:] + data
                look(seen)
                if not self.cut:
                    target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Chain:
    def __enter__(self):
        self.process = processes.start([ANVIL, "--host", "127.0.0.1", "--port", "0",
                                         "--block-time", "1"], stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        for line in self.process.stdout:
            found = re.match(r"Listening on 127.0.0.1:(\d+)", line)
            if found:
                break
        self.port = int(found.group(1))
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        self.url = "http://127.0.0.1:%d" % self.port
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def ledger(self, name):
        """The keys are those of anvil's accounts, which have money."""
        keys = {"client": "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
                "solver": "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"}
        for who, key in keys.items():
            with open(os.open(path("key"), os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600),
                      "w") as file:
                file.write(key + "\n")
            call("wallet", "import", "--light", path("key"), "--wallet", path(name + "." + who))
        deployed = ask("ledger", "deploy", "--ledger", self.url, "--ledger-state",
                       path(name + ".state"), "--depth", "1", "--wallet", path(name + ".client"),
                       "--timeout", "4m")
        return Ledger(name, self.url, ["--registry", deployed["registry"], "--first-block",
                                       str(deployed["first_block"]), "--depth", "1"])


def the_same_on_a_chain():
    with Chain() as chain:
        ledger = chain.ledger("chain")
        kill_and_resume(ledger, "c.job", 3, KILLS // 4, 9.0, ETHER // 50)


def steps_of(run):
    """How many there are; a bundle that is being made has none."""
    done = subprocess.run([LOCKSTEP, "bundle", "steps", path(run), "--count", "1000", "--json"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return len(json.loads(done.stdout)["steps"]) if done.returncode == 0 else 0


def a_chain_that_cannot_be_reached_costs_time_only():
    """However quick the training is: the chain is gone from the first states on that are posted."""
    with Chain() as chain:
        ledger = chain.ledger("cut")
        steps = ask("bundle", "steps", path("long.job.measure"), "--count", "1")["steps"]
        proxy = Proxy(chain.port, steps[0]["state_root"].encode())
        ledger.url = ledger.place[1] = proxy.url
        before = money_of(ledger)
        key = ledger.open("long.job")
        with Running(ledger.run_words("long.job", "--bundle", path("cut.run"))) as run:
            run.wait_for_word(b"training goes on")
            assert proxy.cut, run.said[-600:]
            # Cut off, it trains to its end.
            wait_for(lambda: steps_of("cut.run") == 400, "the end of the training")
            assert proxy.cut and run.process.poll() is None
            proxy.cut = False
            assert run.end() == 0, run.said[-600:]
        # By digits that each command takes.
        assert b"job %s: the trouble is over" % key[:10].encode() in run.said, run.said[-600:]
        assert_shares(run.said)
        assert_finished(ledger, key, before, "cut.run", ETHER // 100, 4)


def assert_shares(said):
    """Of all the work, committing and posting took parts."""
    shares = re.findall(rb"committing ([0-9.]+) %  posting ([0-9.]+) %", said)
    assert shares, said
    for committing, posting in shares:
        assert float(committing) + float(posting) <= 100.1, said


TESTS = [
    jobs_are_opened_listed_shown_and_closed,
    terms_that_make_no_sense_are_not_sent,
    a_job_is_trained_committed_and_paid,
    another_job_or_solver_is_refused_before_it_costs,
    terms_that_the_policy_refuses_cost_nothing_and_its_option_takes_them,
    first_states_that_are_missing_or_wrong_cost_nothing,
    a_run_serves_its_bundle_and_the_ledger_names_the_place,
    what_nobody_could_check_costs_no_stake,
    a_bundle_made_offline_is_posted_later,
    a_training_that_diverges_is_committed_and_paid_up_to_there,
    answers_are_proven_and_paid_as_training_is,
    what_is_too_large_is_refused_by_name,
    late_solvers_are_told_and_take_the_job_again_when_they_wish,
    runs_killed_at_random_instants_are_paid_once,
]
ON_A_CHAIN = [
    the_same_on_a_chain,
    a_chain_that_cannot_be_reached_costs_time_only,
]


def main():
    why = ("only in full runs" if QUICK
           else None if os.access(ANVIL, os.X_OK) else "anvil is not installed")
    wanted = sys.argv[1:]
    tests = TESTS + [tap.skipped(test, why) if why else test for test in ON_A_CHAIN]
    return tap.run([test for test in tests if not wanted or test.__name__ in wanted])


try:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    new_job("a.job")
    new_job("b.job", "--seed", "2")
    new_job("d.job", "--optimizer", "sgd", "--schedule", "constant", "--warmup", "0", "--clip", "0",
            "--rate", "1000000", "--rate-min", "1000000", "--decay", "1000")
    new_job("long.job", "--steps", "400", "--segment-steps", "100")
    new_job("capable.job", "--compute-capability", "90")
    new_job("fast.job", "--contraction-rate", "4000000000")
    new_job("wide.job", "--memory", "1000T")
    new_job("c.job", "--steps", "12")
    ROOTS = {}
    for name in ("a.job", "c.job", "long.job"):
        run = path(name + ".measure")
        ask("prover", "run", path(name), "--data", DATA, "--bundle", run, "--offline")
        ROOTS[name] = [segment["root"] for segment in ask("bundle", "segments", run)["segments"]]
    code = main()
finally:
    shutil.rmtree(folder, ignore_errors=True)
sys.exit(code)
