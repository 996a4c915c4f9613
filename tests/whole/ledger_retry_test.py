"""Goal: long-running programs start while the ledger is unreachable: they report it, go on when the
ledger is back, and stop at once on a signal. An error that waiting cannot heal ends them at once.
Method: the built programs before an endpoint that is down until the test says otherwise, under a
service manager of one socket; every wait is for a line, a message or an event."""

import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import town as stage  # noqa: E402
import processes  # noqa: E402
from endpoint import Endpoint  # noqa: E402
from town import DATA, LOCKSTEP, WAIT_MAX_S, Town  # noqa: E402

WAITS = "the ledger cannot be reached"
PEOPLE = ("client", "honest", "verifier")


class Gate(Endpoint):
    """Answers with 503 while it is down."""

    down = True

    def choose(self):
        return "unavailable" if self.down else None


class Manager:
    """What a service manager hears."""

    def __init__(self, place):
        self.place, self.heard = place, []
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(place)
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            self.heard.append(self.socket.recv(999).decode())

    def environment(self):
        return {"NOTIFY_SOCKET": self.place, "WATCHDOG_USEC": "2000000"}

    def said(self, words):
        return any(words in message for message in self.heard)


def health(said):
    """The code and the words of /health; None: the page is not there yet."""
    place = re.search(r"status at (http://\S+)", said)
    if place is None:
        return None
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(place.group(1) + "health", timeout=WAIT_MAX_S) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def a_node_waits_and_says_so():
    with Town(PEOPLE, on_chain=True) as town, Gate(town.port) as gate:
        manager = Manager(town.path("notify"))
        town.place["LOCKSTEP_LEDGER"] = gate.url
        node = town.verifier("--mode", "observe", "--page", "0",
                             environment=manager.environment())
        town.until(lambda: WAITS in node.said(), "it waits")
        assert "tried again in 1 s" in node.said() and "HTTP status 503" in node.said(), node.said()
        assert "ledger=" in node.said(), node.said()
        town.until(lambda: manager.said("READY=1\nSTATUS=waiting for the ledger"), "it says so")
        town.until(lambda: manager.said("WATCHDOG=1"), "it lives")
        code, words = health(node.said())
        assert code == 503 and "ledger" in words, (code, words)
        assert "503" in json.dumps(town.ask("verifier", "verifier", "status"))
        gate.down = False
        town.until(lambda: "started" in node.said(), "it goes on")
        assert "the ledger is reached" in node.said(), node.said()
        town.until(lambda: manager.said("STATUS=following the ledger"), "it says so")
        assert sum("READY=1" in message for message in manager.heard) == 1, manager.heard
        town.until(lambda: health(node.said())[0] == 200, "it is healthy")
        assert node.stop() == 0, node.said()


def a_node_that_waits_ends_when_it_is_told_to():
    with Town(PEOPLE, on_chain=True) as town, Gate(town.port) as gate:
        town.place["LOCKSTEP_LEDGER"] = gate.url
        node = town.verifier()
        town.until(lambda: WAITS in node.said(), "it waits")
        assert node.stop() == 0, node.said()
        assert "stopped while waiting for the ledger" in node.said(), node.said()


def what_waiting_cannot_heal_ends_a_node_at_once():
    with Town(PEOPLE, on_chain=True) as town:
        run = ["verifier", "node", "--mode", "observe"]

        def refused(words, *more):
            done = subprocess.run([LOCKSTEP, *run, *more], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  env=town.environment("verifier"), timeout=WAIT_MAX_S)
            said = done.stdout
            assert done.returncode != 0 and words in said and WAITS not in said, said

        refused("is the address right?", "--registry", "0x" + "12" * 20)
        refused("address", "--registry", "0x12")
        refused("a ledger is", "--ledger", "ftp://127.0.0.1")
        node = town.verifier("--mode", "observe")
        town.until(lambda: "started" in node.said(), "the node is there")
        assert node.stop() == 0
        with Town(PEOPLE, on_chain=True) as other:  # the same contract on another chain
            other.rpc("anvil_setChainId", 1337)
            refused("this state is that of the node of", "--ledger", other.url, "--registry",
                    other.place["LOCKSTEP_REGISTRY"])


def a_solver_waits_and_goes_on():
    with Town(PEOPLE, on_chain=True) as town, Gate(town.port) as gate:
        job = town.new_job("a.job")
        key = town.open_job(job)
        manager = Manager(town.path("notify"))
        town.place["LOCKSTEP_LEDGER"] = gate.url
        bundle = town.path("a.run")
        solver = town.start("honest", "prover", "run", job, "--bundle", bundle, "--data", DATA,
                            "--threads", "1", "--poll", "1s", "--until", "committed",
                            "--contact", stage.NOBODY,
                            more=manager.environment())
        town.until(lambda: WAITS in solver.said(), "it waits")
        town.until(lambda: manager.said("READY=1\nSTATUS=waiting for the ledger"), "it says so")
        assert not os.path.exists(bundle)
        gate.down = False
        town.until(lambda: os.path.exists(os.path.join(bundle, "job")), "it goes on")
        town.place["LOCKSTEP_LEDGER"] = town.url
        town.until(lambda: solver.code() == 0, "it has committed")
        assert town.count("committed", key) == stage.SEGMENTS


def a_keeper_waits_and_goes_on():
    with Town(PEOPLE, on_chain=True) as town, Gate(town.port) as gate:
        key = town.open_job(town.new_job("a.job"), "--keeper", town.people["honest"])
        manager = Manager(town.path("notify"))
        town.place["LOCKSTEP_LEDGER"] = gate.url
        words = ["job", "keep", key, "--serve", "127.0.0.1:0", "--poll", "1s"]
        keeper = town.start("honest", *words, more=manager.environment())
        town.until(lambda: WAITS in keeper.said(), "it waits")
        town.until(lambda: manager.said("READY=1\nSTATUS=waiting for the ledger"), "it says so")
        assert keeper.stop() == 0, keeper.said()
        keeper = town.start("honest", *words, more=manager.environment())
        town.until(lambda: WAITS in keeper.said(), "it waits again")
        gate.down = False
        town.until(lambda: "keeping job" in keeper.said(), "it goes on")
        town.until(lambda: manager.said("STATUS=keeping"), "it says so")
        assert keeper.stop() == 0, keeper.said()


def a_solver_that_waits_ends_when_it_is_told_to():
    """Ctrl-C, and the end of the time that it was given."""
    with Town(PEOPLE, on_chain=True) as town, Gate(town.port) as gate:
        job = town.new_job("a.job")
        town.place["LOCKSTEP_LEDGER"] = gate.url
        words = ["prover", "run", job, "--bundle", town.path("a.run"), "--data", DATA]
        solver = town.start("honest", *words)
        town.until(lambda: WAITS in solver.said(), "it waits")
        solver.process.send_signal(signal.SIGINT)
        assert solver.process.wait(WAIT_MAX_S) == 2, solver.said()
        assert "stopped while waiting for the ledger" in solver.said(), solver.said()
        said = town.run("honest", *words, "--timeout", "1s", wanted=2)
        assert "HTTP status 503" in said, said
        assert not os.path.exists(town.path("a.run"))


def read_some(terminal):
    assert select.select([terminal], [], [], WAIT_MAX_S)[0], "nothing more is said"
    return os.read(terminal, 4096)


def a_terminal_shows_the_tries():
    with Town(PEOPLE, on_chain=True) as town, Gate(town.port) as gate:
        job = town.new_job("a.job")
        town.place["LOCKSTEP_LEDGER"] = gate.url
        ours, theirs = pty.openpty()
        run = processes.start([LOCKSTEP, "prover", "run", job, "--bundle", town.path("a.run"),
                                "--data", DATA], stdin=theirs, stdout=theirs, stderr=theirs,
                               env=town.environment("honest"), start_new_session=True)
        os.close(theirs)
        said = b""
        while b"no ledger after 2 tries, again in " not in said:
            said += read_some(ours)
        assert said.count(b"cannot be reached") == 1, said
        run.send_signal(signal.SIGINT)
        try:
            while True:
                said += read_some(ours)
        except OSError:  # the other end is closed
            pass
        assert run.wait(WAIT_MAX_S) == 2, said
        assert b"\nlockstep prover run: stopped while waiting for" in said.replace(b"\r", b""), said
        os.close(ours)


sys.exit(stage.main([], [a_node_waits_and_says_so, a_node_that_waits_ends_when_it_is_told_to,
                         what_waiting_cannot_heal_ends_a_node_at_once, a_solver_waits_and_goes_on, a_keeper_waits_and_goes_on,
                         a_solver_that_waits_ends_when_it_is_told_to, a_terminal_shows_the_tries]))
