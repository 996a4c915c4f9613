"""Goal: an address that a stranger writes on a ledger makes nobody's program call its own machine or
network, and the log says once which address and why; on the user's word it is called.
Method: everybody writes an address of this machine, in many forms, on a chain; a server there counts
who calls. Nothing waits for the clock."""

import os
import socket
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import town as stage  # noqa: E402
from town import DATA, SEGMENTS, Town  # noqa: E402


class Counter:
    """Listens, counts calls, and closes them."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.calls = 0
        threading.Thread(target=self.take, daemon=True).start()

    def take(self):
        while True:
            caller, _ = self.socket.accept()
            self.calls += 1
            caller.close()


def nobody_calls_his_own_machine_for_a_stranger():
    counter = Counter()
    with Town(["client", "honest", "verifier"], on_chain=True) as here:
        here.place["LOCKSTEP_PRIVATE_CONTACTS"] = "false"
        job = here.new_job("1.job")
        key = here.open_job(job, "--contact", "http://localhost:%d/own" % counter.port,
                            panel=("verifier",))
        counter.calls = 0  # the client has asked its own address
        bundle = here.train("honest", job, "1.run")
        here.run("honest", "prover", "commit", bundle, "--ledger", here.place["LOCKSTEP_LEDGER"],
                 "--job-key", key, "--contact", "http://127.0.0.1:%d/solver" % counter.port)
        here.run("honest", "prover", "publish", bundle, "--data", DATA, "--out", here.path("www"))
        for bad in ("http://u@a.example", "http://a.example/?x", "http://a.example#x", "ftp://a"):
            here.run("verifier", "verifier", "node", "--contact", bad, wanted=3)
        node = here.start("verifier", "verifier", "node", "--mirror-timeout", "2s", "--threads", "1",
                          "--contact", "http://127.0.0.1:%d/q" % counter.port)
        here.until(lambda: "is not called" in node.said(), "the node says whom it does not call")
        assert node.stop() == 0
        again = here.start("verifier", "verifier", "node", "--mirror", here.path("www"),
                           "--mirror-timeout", "2s", "--threads", "1")
        here.until_count(SEGMENTS, "sealed a verdict", key)
        assert again.stop() == 0
        said = [line.split("contact ")[1] for line in (node.said() + again.said()).splitlines()
                if "is not called" in line]
        assert counter.calls == 0, counter.calls
        assert said and len(said) == len(set(said)), said
        got = here.run("client", "job", "fetch", key, "--segment", "0", "--out", here.path("out"),
                         "--mirror-timeout", "2s", wanted=2)
        assert counter.calls == 0 and "a stranger named it" in got, (counter.calls, got)
        here.run("client", "job", "fetch", key, "--segment", "0", "--out", here.path("out"),
                   "--mirror-timeout", "2s", "--private-contacts", wanted=2)
        assert counter.calls > 0


sys.exit(stage.main([nobody_calls_his_own_machine_for_a_stranger]))
