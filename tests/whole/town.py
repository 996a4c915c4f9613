"""A ledger, people with money on it, and the built program as their processes. Not a test: the
tests of this folder play in it.

Time is the test's: the embedded ledger's clock stands but for what the test lets pass, a chain's
periods are far longer than any test; so nothing here depends on how fast a machine is. Everybody
has folders of their own. A process can die at a chosen system call (see sudden_death.c); until()
restarts it."""

import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
sys.dont_write_bytecode = True

import processes  # noqa: E402

os.umask(0o077)  # state folders that others may read are refused

LOCKSTEP = os.environ["TEST_LOCKSTEP"]
ANVIL = "tests/evm/node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil"
DEATH, FAST_CLOCK = (os.path.abspath(re.sub("/asan$", "", os.environ["TEST_BUILD"]) + "/tests/" + name + ".so")
                     for name in ("sudden_death", "fast_clock"))
DATA = "fixtures/text/village.u8"
QUICK = "TEST_QUICK" in os.environ
SOAK = int(os.environ.get("SOAK_MINUTES", "0")) > 0
ETHER = 10 ** 18
PURSE = 100 * ETHER
WAIT_MAX_S = int(os.environ.get("WAIT_MAX_S", "400"))
PERIOD_S = 1000000
AT_ONCE = 3  # tests of one program
TOWNS = []  # that stand
NOBODY = "http://127.0.0.1:9"  # a contact where nobody is
# Most of a purse is in bonds here, which a node at its defaults would not lock.
POLICY = {"LOCKSTEP_LOCK_MAX": "100%", "LOCKSTEP_LOCK_JOB_MAX": "100%",
          "LOCKSTEP_LOCK_PARTY_MAX": "100%", "LOCKSTEP_LOCK_TIME_MAX": "0s",
          "LOCKSTEP_SEGMENT_PERIOD_MAX": "0s"}
SEGMENTS = 3
REWARD = 3 * ETHER
STAKE = 5 * ETHER
FEE = REWARD // SEGMENTS // 10
BOND = 10 * FEE  # of a seat, and the least of a claim
PRIZE = STAKE // 4  # of a conviction, to who proves it and to the client each; half is burned


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Process:
    """A program that runs until it stops, ends, or dies at a chosen call. deaths: numbers of calls, one
    for each life; after the last it lives. words: a list, or a function that makes one for each
    life."""

    def __init__(self, town, who, words, deaths=(), more=None):
        self.town, self.who, self.words = town, who, words
        self.deaths, self.died, self.more = list(deaths), 0, more or {}
        self.again = False  # after a failure too, as a service manager would
        self.log = town.path("%s-%d.log" % (who, len(town.processes)))
        self.tally = self.log + ".tally"
        self.begin()

    def begin(self):
        words = self.words() if callable(self.words) else self.words
        environment = {**self.town.environment(self.who), "LD_PRELOAD": DEATH,
                       "SUDDEN_TALLY": self.tally, "ASAN_OPTIONS": "verify_asan_link_order=0",
                       "OMP_WAIT_POLICY": "passive", **self.more}
        if self.deaths:
            environment["SUDDEN_DEATH"] = str(self.deaths[0])
        with open(self.log, "ab") as log:
            self.process = processes.start([*self.town.rooms.get(self.who, ()), LOCKSTEP, *words], stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL, env=environment)

    def look(self, awake=True):
        """Restarts it after a chosen death; when not awake, only notes the death."""
        if self.deaths and self.process.poll() == -signal.SIGKILL:
            self.deaths.pop(0)
            self.died += 1
            if awake:
                self.begin()
        elif self.again and self.process.poll() not in (None, 0):
            self.begin()

    def code(self):
        return self.process.poll()

    def calls(self):
        with open(self.tally, "rb") as tally:
            return struct.unpack("=Q", tally.read(8))[0]

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return log.read()

    def kill(self):
        self.deaths, self.again = [], False
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def stop(self):
        """As a service manager does; what it returns."""
        self.deaths = []
        self.process.terminate()
        return self.process.wait(WAIT_MAX_S)


class Town:
    """on_chain: anvil, whose blocks come with transactions and with every look of until()."""

    def __init__(self, people, on_chain=False, depth=1):
        self.folder = tempfile.mkdtemp(prefix="lockstep-test-")
        TOWNS.append(self)
        self.processes, self.people, self.jobs = [], {}, 0
        self.rooms = {}  # words before the program of who has a room of their own
        self.chain, self.place = None, {}
        self.depth = depth
        if on_chain:
            self.start_chain()
        else:
            self.url = "local:" + self.path("ledger")
            self.place = {"LOCKSTEP_LEDGER": self.url}
            self.run("nobody", "ledger", "init", self.path("ledger"))
            self.now_s = int(time.time())
            self.pass_time(0)
        for who in people:
            self.settle(who)
        if on_chain:
            made = self.ask(people[0], "ledger", "deploy", "--timeout", "4m")
            self.place.update({"LOCKSTEP_REGISTRY": made["registry"],
                               "LOCKSTEP_FIRST_BLOCK": str(made["first_block"])})
            self.give(people[0], PURSE)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for process in self.processes:
            process.kill()
        if kind is not None:
            self.tell_all()
        if self.chain is not None:
            self.chain.kill()
            self.chain.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
        TOWNS.remove(self)

    def tell_all(self):
        """What everybody said, for a reader who has to find out why."""
        for process in self.processes:
            print("# %s, %d deaths, now %s:\n# %s" % (
                process.who, process.died, process.code(),
                process.said()[-2500:].replace("\n", "\n# ")), file=sys.stderr)
        try:
            for event in self.events():
                print("# %s" % json.dumps(event), file=sys.stderr)
        except (AssertionError, OSError) as error:
            print("# no events: %r" % error, file=sys.stderr)

    def path(self, name):
        return os.path.join(self.folder, name)

    # ---- people ----

    def environment(self, who):
        home = {"XDG_%s_HOME" % place: self.path("%s/%s" % (who, place.lower()))
                for place in ("DATA", "STATE", "CONFIG")}
        return dict(os.environ, LOCKSTEP_PASSPHRASE="pass words", **home, **self.place, **POLICY)

    def settle(self, who):
        address = self.ask(who, "wallet", "new", "--light")["address"]
        self.people[who] = address
        self.give(who, PURSE)

    def give(self, who, amount):
        if self.chain is None:
            self.run(who, "ledger", "faucet", self.people[who], "%dwei" % amount)
        else:
            self.rpc("anvil_setBalance", self.people[who], hex(amount))

    def money(self, who):
        """Of the purse and on the ledger."""
        account = self.ask(who, "ledger", "status")["accounts"][0]
        return int(account["purse_wei"]) + int(account["owed_wei"])

    def run(self, who, *words, wanted=0):
        done = subprocess.run([*self.rooms.get(who, ()), LOCKSTEP, *words], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                              env=self.environment(who))
        assert done.returncode == wanted, (words, done.returncode, done.stdout[-600:],
                                           done.stderr[-600:])
        return done.stdout.decode() + (done.stderr.decode() if wanted else "")

    def ask(self, who, *words, wanted=0):
        return json.loads(self.run(who, *words, "--json", wanted=wanted))

    def start(self, who, *words, deaths=(), more=None):
        one = words[0] if len(words) == 1 and callable(words[0]) else list(words)
        self.processes.append(Process(self, who, one, deaths, more))
        return self.processes[-1]

    def verifier(self, *more, who="verifier", deaths=(), environment=None):
        if "--entries" not in more:
            more += ("--entries", "1")
        return self.start(who, "verifier", "node", "--data", DATA, "--threads", "1", "--checks",
                          "1", "--withdraw-at", "1", *more, deaths=deaths, more=environment)

    # ---- jobs ----

    def new_job(self, name, *more, data=DATA):
        self.run("client", "job", "new", "--data", data, "--layers", "1", "--heads", "1",
                 "--width", "16", "--length", "8", "--batch", "1", "--vocabulary", "128",
                 "--steps", "12", "--segment-steps", "4", "--out", self.path(name), *more)
        return self.path(name)

    def open_job(self, job, *more, panel=("verifier",)):
        """All covered by one seat each, where nothing else is said: most towns have one verifier,
        which enlists before any solver comes."""
        self.jobs += 1
        period = "%ds" % PERIOD_S
        terms = {"--reward": "%dwei" % REWARD, "--stake": "%dwei" % STAKE, "--seats": "1",
                 "--coverage": "1", "--panel": "1", "--fee": "%dwei" % FEE,
                 "--bond": "%dwei" % BOND, "--query-fee": "0wei", "--seal-period": period,
                 "--reveal-period": period, "--claim-period": period, "--clock": period,
                 "--segment-period": "%ds" % (5 * PERIOD_S),
                 "--deadline": "%ds" % (16 * PERIOD_S), "--salt": str(self.jobs)}
        terms.update(zip(more[::2], more[1::2]))
        if terms["--seats"] == "0":
            terms.update({"--coverage": "0", "--panel": "0", "--fee": "0wei"})
        key = self.ask("client", "job", "open", job, *(word for pair in terms.items()
                                                       for word in pair), "--any-terms",
                       "--yes")["job"]
        self.publish(job)
        if terms["--seats"] != "0":
            for who in panel:
                self.enlist(who, key)
            self.pass_time(int(terms["--seal-period"][:-1]) + 1)  # until then nobody accepts
        return key

    def publish(self, job, mirror="tree"):
        """The job file in a folder that is a mirror: a node tries a job before it enlists."""
        folder = self.path(mirror + "/v1/jobs/" + self.ask("client", "job", "show", job)["id"])
        os.makedirs(folder, exist_ok=True)
        shutil.copy(job, os.path.join(folder, "job"))

    def enlist(self, who, key, *more):
        """By the node itself, which then ends."""
        node = self.verifier("--mirror", self.path("tree"), "--entries", "1", *more, who=who)
        self.until(lambda: self.count("enlisted", key, who) > 0, "%s enlists" % who)
        assert node.stop() == 0, node.said()

    def solve(self, who, job, key, *more, deaths=(), verb="run"):
        """`prover run`, and `prover resume` in every later life."""
        bundle = self.path(who + ".run") if verb == "run" else more[0]
        if not {"--serve", "--contact"} & set(more):
            more += ("--serve", "127.0.0.1:0")
        found = [word for at, word in enumerate(more)
                 if {"--serve", "--contact"} & {word, *more[at - 1:at]}]

        def words():
            common = ["--data", DATA, "--threads", "1", "--job-key", key, "--poll", "1s"]
            if os.path.exists(os.path.join(bundle, "job")):  # a killed one may not have accepted
                return ["prover", "resume", bundle, "--ledger", self.place["LOCKSTEP_LEDGER"],
                        *common, *found]
            return ["prover", "run", job, "--bundle", bundle, *common, *more]

        return self.start(who, words, deaths=deaths)

    def train(self, who, job, name, *more):
        """A whole bundle that no ledger knows of."""
        self.run(who, "prover", "run", job, "--bundle", self.path(name), "--data", DATA,
                 "--threads", "1", "--offline", *more)
        return self.path(name)

    def roots(self, bundle):
        steps = self.ask("client", "bundle", "steps", bundle, "--count", "1000")["steps"]
        return [step["state_root"] for step in steps]

    def serve(self, who, bundle, *more):
        """Its process, and where it serves."""
        server = self.start(who, "prover", "serve", bundle, "--data", DATA, "--threads", "1",
                            "--serve", "127.0.0.1:0", "--json", *more)
        self.until(lambda: "serving" in server.said(), "the server is there")
        return server, re.search(r'"serving": *"([^"]+)"', server.said()).group(1)

    # ---- the ledger ----

    def events(self, kind=None, job=None, who=None):
        """The events on the ledger, without those that a reorganization removed."""
        standing = []
        for line in self.run("client", "ledger", "watch", "--json").splitlines():
            entry = json.loads(line)
            if entry["event"] == "rewind":
                standing = [event for event in standing if event["height"] <= entry["height"]]
            else:
                standing.append(entry)
        # What comes after a claim names the claim alone.
        jobs = {event["claim"]: event["job"] for event in standing if event["event"] == "claimed"}
        for event in standing:
            event["job"] = jobs.get(event["claim"], event["job"])
        return [event for event in standing
                if (kind is None or event["event"] == kind)
                and (job is None or event["job"] == job)
                and (who is None or event["account"] == self.people[who])]

    def count(self, kind, job=None, who=None):
        return len(self.events(kind, job, who))

    def pass_time(self, seconds):
        if self.chain is not None:
            self.rpc("evm_increaseTime", seconds)
            self.rpc("evm_mine")
            return
        self.now_s += seconds
        self.change_ledger("INSERT OR REPLACE INTO meta VALUES ('clock', ?1), ('clock-again', ?1)", self.now_s)

    def until(self, happened, what, awake=True):
        """Lets time creep until it has; a process that dies as told is started again, when
        awake."""
        end = time.monotonic() + WAIT_MAX_S
        while True:
            for process in self.processes:
                process.look(awake)
            found = happened()
            if found:
                return found
            assert time.monotonic() < end, "it never happened: " + what
            if self.chain is None:
                self.pass_time(1)
            else:
                self.rpc("evm_mine")
            time.sleep(0.05 if self.chain is None else 0.2)

    def change_ledger(self, words, *values):
        """A statement on the embedded ledger's file, behind its back."""
        database = sqlite3.connect(self.path("ledger"), timeout=WAIT_MAX_S)
        with database:
            database.execute(words, values)
        database.close()

    def until_count(self, number, kind, job=None, who=None):
        self.until(lambda: self.count(kind, job, who) >= number,
                   "%d times %s" % (number, kind))
        assert self.count(kind, job, who) == number, (kind, self.events(kind, job, who))

    def until_count_at_least(self, number, kind, job=None):
        self.until(lambda: self.count(kind, job) >= number, "%d times %s" % (number, kind))

    # ---- a chain ----

    def start_chain(self):
        self.chain = processes.start([ANVIL, "--host", "127.0.0.1", "--port", "0"],
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                      text=True)
        for line in self.chain.stdout:
            found = re.match(r"Listening on 127.0.0.1:(\d+)", line)
            if found:
                break
        threading.Thread(target=self.chain.stdout.read, daemon=True).start()
        self.port = int(found.group(1))
        self.url = "http://127.0.0.1:%d" % self.port
        # Everybody's contact is on this machine.
        self.place = {"LOCKSTEP_LEDGER": self.url, "LOCKSTEP_DEPTH": str(self.depth),
                      "LOCKSTEP_PRIVATE_CONTACTS": "true"}

    def rpc(self, method, *parameters):
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters})
        request = urllib.request.Request(self.url, body.encode(),
                                         {"Content-Type": "application/json"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=WAIT_MAX_S) as reply:
            answer = json.load(reply)
        assert "error" not in answer, answer
        return answer["result"]


def give_up(*_):
    """Nothing outlives a test that is stopped."""
    for town in list(TOWNS):
        town.__exit__(None)
    processes.end_all()
    os._exit(1)


def try_one(test):
    begun = time.monotonic()
    try:
        test()
        failure = None
    except Exception as error:  # every surprise is a failure of that test
        failure = repr(error)
    return failure, time.monotonic() - begun


def main(tests, on_chain=()):
    """Runs the tests, those that are named where any is, and tells of them as TAP. Several at once:
    each has towns of its own, and most of its time it waits for a program's next look."""
    signal.signal(signal.SIGTERM, give_up)
    wanted = sys.argv[1:]
    chosen = [test for test in [*tests, *on_chain] if not wanted or test.__name__ in wanted]
    why = ("only in full runs" if QUICK
           else None if os.access(ANVIL, os.X_OK) else "anvil is not installed")
    failed = 0
    print("1..%d" % len(chosen))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        runs = [None if why and test in on_chain else pool.submit(try_one, test)
                for test in chosen]
        for number, (test, run) in enumerate(zip(chosen, runs), 1):
            if run is None:
                print("skip: %s\nok %d # SKIP %s" % (why, number, test.__name__), flush=True)
                continue
            failure, seconds = run.result()
            failed |= failure is not None
            print("%s %d - %s%s\n# %.1f s" % ("ok" if failure is None else "not ok", number,
                                              test.__name__, "" if failure is None
                                              else ": " + failure, seconds), flush=True)
    return int(failed)
