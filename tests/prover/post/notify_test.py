"""Goal: prover run, serve and respond report to a service manager that they are ready, alive and
stopping.
Method: the built program under a service manager of one socket; a job trained alone and on an
embedded ledger."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
sys.dont_write_bytecode = True

import processes  # noqa: E402

LOCKSTEP = os.environ["TEST_LOCKSTEP"]
DATA = "fixtures/text/village.u8"
WAIT_MAX_S = 240  # only a machine that is very busy needs so much

folder = tempfile.mkdtemp(prefix="lockstep-test-")
os.environ.update({"XDG_DATA_HOME": folder, "XDG_STATE_HOME": folder, "XDG_CONFIG_HOME": folder,
                   "LOCKSTEP_PASSPHRASE": "pass words"})
count = 0
failed = False


def path(name):
    return os.path.join(folder, name)


def call(*words):
    return subprocess.run([LOCKSTEP, *words], stdout=subprocess.PIPE, check=True,
                          stdin=subprocess.DEVNULL).stdout


class Manager:
    """A socket holds few messages, and what does not fit is dropped: no test sends more of them
    than it has room for while this thread sleeps."""

    def __init__(self, watchdog_us, *words):
        self.place = path("notify-%d" % count)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.place)
        self.heard = []
        self.news = threading.Condition()
        threading.Thread(target=self.listen, daemon=True).start()
        self.process = processes.start(
            [LOCKSTEP, *words], stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
            env=dict(os.environ, NOTIFY_SOCKET=self.place, WATCHDOG_USEC=str(watchdog_us)))

    def listen(self):
        while True:
            message = self.socket.recv(999)
            with self.news:
                self.heard.append(message)
                self.news.notify_all()

    def wait_for(self, start):
        with self.news:
            assert self.news.wait_for(lambda: any(m.startswith(start) for m in self.heard),
                                      WAIT_MAX_S), (start, self.heard[:3])

    def end(self, wanted, by=None):
        if by is not None:
            self.process.send_signal(by)
        code = self.process.wait(WAIT_MAX_S)
        assert code in wanted, code
        self.wait_for(b"STOPPING=1")
        assert self.heard[0].startswith(b"READY=1\nSTATUS="), self.heard[0]
        assert sum(m.startswith(b"READY=1") for m in self.heard) == 1
        self.socket.close()


def check(name, test):
    global count, failed
    count += 1
    try:
        test()
        print("ok %d - %s" % (count, name))
    except Exception as error:  # pylint: disable=broad-except
        print("not ok %d - %s\n# %r" % (count, name, error))
        failed = True


def new_job(name):
    call("job", "new", "--data", DATA, "--layers", "1", "--heads", "1", "--width", "16",
         "--length", "8", "--batch", "1", "--vocabulary", "128", "--steps", "8", "--segment-steps", "4",
         "--out", path(name))


def run_tells():
    new_job("alone.job")
    # A sign of life with each of the eight steps.
    manager = Manager(1000, "prover", "run", "--data", DATA, "--offline", "--bundle", path("alone.run"),
                      path("alone.job"))
    manager.end([0])
    assert sum(m == b"WATCHDOG=1" for m in manager.heard) == 8, manager.heard


def serve_tells():
    manager = Manager(4000000, "prover", "serve", "--serve", "127.0.0.1:0", "--data", DATA, path("alone.run"))
    manager.wait_for(b"WATCHDOG=1")
    manager.end([0], signal.SIGTERM)


def respond_tells():
    ledger = "local:" + path("try.ledger")
    key = ["--ledger", ledger, "--wallet", path("wallet")]
    new_job("paid.job")
    call("ledger", "init", path("try.ledger"))
    address = json.loads(call("wallet", "new", "--light", "--wallet", path("wallet"), "--json"))
    call("ledger", "faucet", address["address"], "10ether", "--ledger", ledger)
    call("job", "open", *key, "--reward", "1eth", "--seats", "0", "--yes", path("paid.job"))
    call("prover", "run", *key, "--data", DATA, "--until", "committed", "--bundle",
         path("paid.run"), path("paid.job"))
    manager = Manager(4000000, "prover", "respond", *key, "--data", DATA, "--wait", path("paid.run"))
    manager.wait_for(b"WATCHDOG=1")
    manager.end([0, 2], signal.SIGTERM)


try:
    print("1..3")
    check("a run is ready, lives and stops", run_tells)
    check("a server is ready, lives and stops when it is told to", serve_tells)
    check("a respondent is ready, lives and stops when it is told to", respond_tells)
finally:
    shutil.rmtree(folder, ignore_errors=True)
sys.exit(1 if failed else 0)
