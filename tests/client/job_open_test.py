"""Goal: `job open` shows its terms before it wants a secret, and takes the answer that people type.
Method: runs the built program on a terminal of its own, on an embedded ledger, with a wallet whose
passphrase nobody has given."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../support"), os.path.join(HERE, "../support/game")]
sys.dont_write_bytecode = True

import local_ledger  # noqa: E402
from program import DATA, LOCKSTEP, ask, call, main, new_job, path  # noqa: E402

WAIT_MAX_S = 120
WORD = {"LOCKSTEP_PASSPHRASE": "pass words"}


class Terminal:
    """The program on a terminal; its environment holds no passphrase."""

    def __init__(self, *words):
        self.seen = b""
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            signal.alarm(WAIT_MAX_S)  # it never outlives the test
            os.environ.pop("LOCKSTEP_PASSPHRASE", None)
            os.execv(LOCKSTEP, [LOCKSTEP, *words])

    def read(self):
        """False at the end of the program."""
        assert select.select([self.master], [], [], WAIT_MAX_S)[0], self.seen
        try:
            more = os.read(self.master, 4096)
        except OSError:  # EIO: nobody has the terminal open
            more = b""
        self.seen += more
        return more != b""

    def wait_for(self, word):
        while word not in self.seen:
            assert self.read(), (word, self.seen)

    def type(self, line):
        os.write(self.master, line + b"\n")

    def end(self):
        while self.read():
            pass
        os.close(self.master)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def place():
    return ["--ledger", "local:" + path("ledger"), "--wallet", path("wallet")]


def open_words(*more):
    return ["job", "open", path("a.job"), "--reward", "0.5eth", *place(), *more]


def prepare():
    new_job("a.job", "--steps", "36", "--segment-steps", "3", "--title", "Houses & <b>people</b>")  # twelve segments: 0.5 ether is not shared
    call("ledger", "init", path("ledger"))
    address = ask("wallet", "new", "--light", "--wallet", path("wallet"),
                  environment=WORD)["address"]
    call("ledger", "faucet", address, "100eth", "--ledger", "local:" + path("ledger"))


def terms_come_before_the_passphrase():
    prepare()
    terminal = Terminal(*open_words())
    terminal.wait_for(b"[y/N]")
    assert b"assphrase" not in terminal.seen, terminal.seen
    assert b"ESCROW" in terminal.seen
    terminal.type(b"n")
    assert terminal.end() == 1
    assert b"nothing was sent" in terminal.seen and b"assphrase" not in terminal.seen
    # Terms that nobody takes are refused without a secret too.
    message = ask(*open_words("--stake", "9eth", "--yes"), wanted=1)["error"]["message"]
    assert "these terms" in message, message
    # Neither by a sixteenth of the reward, nor by a 128th of the stake.
    for words in (["--query-fee", "0.0027eth"], ["--query-fee", "0.002eth", "--stake", "0.25eth"]):
        message = ask(*open_words("--fee", "0.01eth", "--bond", "0.04eth", "--yes", *words),
                      wanted=3)["error"]["message"]
        assert "--query-fee: at most" in message, message


def defaults_are_round_and_amounts_say_what_is_not_shared():
    terminal = Terminal(*open_words())
    terminal.wait_for(b"[y/N]")
    terminal.type(b"")
    assert terminal.end() == 1
    said = terminal.seen.decode()
    share = 10**18 // 2 // 12
    fee = 417 * 10**14  # 1.3 times the cost, rounded up to three digits
    assert "0.0417 eth" in said and "0.5 eth" in said.replace("the 0.5 eth", ""), said
    coverage = float(re.search(r"([0-9.]+) % are covered", said).group(1)) / 100
    assert 0.2 <= coverage < 0.4, said
    assert "2 for each covered segment" in said, "a job without a keeper has two seats"
    covered = min(12, 3 + int(12 * coverage * 3 / 2))
    escrow = 12 * share + 3 * 2 * fee * covered
    assert "0.%018d eth" % share in said, said
    assert "%d wei of the 0.5 eth: 12 segments" % (10**18 // 2 - 12 * share) in said, said
    assert "%d.%018d eth, paid" % divmod(escrow, 10**18) in said, said
    assert "seal 2h, reveal 1h, claim 3h; a clock of 12h" in said, said


def what_can_burn_is_said_before():
    """Nobody vouches: then what is open can burn. A keeper takes that away, and is named."""
    terminal = Terminal(*open_words())
    terminal.wait_for(b"[y/N]")
    terminal.type(b"")
    terminal.end()
    said = " ".join(terminal.seen.decode().split())
    assert "can burn usually" in said and "5 to 25 segments" in said and "(65)" in said, said
    assert "you may be away 6h" in said and "WARNING a job of fewer than 20 segments" in said, said
    keeper = "0x" + "Ab" * 20
    terminal = Terminal(*open_words("--keeper", keeper.lower()))
    terminal.wait_for(b"[y/N]")
    terminal.type(b"")
    terminal.end()
    said = " ".join(terminal.seen.decode().split())
    assert "can burn" not in said and keeper.lower() in said.lower(), said
    assert "1 for each covered segment" in said and "until the deadline" in said, said
    assert "not an address" in ask(*open_words("--keeper", "0x12", "--yes"), wanted=3)["error"]["message"]


def y_and_yes_are_taken():
    for number, answer in enumerate((b"y", b"yes", b"YES")):
        terminal = Terminal(*open_words("--salt", str(number)))
        terminal.wait_for(b"[y/N]")
        terminal.type(answer)
        terminal.wait_for(b"assphrase")
        terminal.type(b"pass words")
        assert terminal.end() == 0, terminal.seen
    jobs = ask("job", "list", *place()[:2])["jobs"]
    assert len(jobs) == 3
    card = jobs[0]["card"]
    assert card["title"] == "Houses & <b>people</b>" and card["model"] == "gpt2, 1 layer, width 8"
    facts = ask("job", "show", path("a.job"))["facts"]
    assert card["tokens"] == facts["tokens"] == 36 * 4 and card["samples"] is None
    assert card["parameters"] == facts["parameters"] > 1000
    assert b"Houses & <b>people</b>" in call("job", "list", *place()[:2]).stdout
    assert b"title        Houses & <b>people</b>" in call(
        "job", "show", jobs[0]["job"], *place()[:2]).stdout
    # Once it is open nothing is asked but the key.
    terminal = Terminal(*open_words("--salt", "1"))
    terminal.wait_for(b"assphrase")
    terminal.type(b"pass words")
    assert terminal.end() == 0 and b"[y/N]" not in terminal.seen
    assert len(ask("job", "list", *place()[:2])["jobs"]) == 3


def the_contact_is_asked_before_money_moves():
    """A folder of jobs is served; a job that is not among them is not opened with that address."""
    os.mkdir(path("jobs"))
    new_job("jobs/b.job", "--seed", "2")
    new_job("jobs/c.job", "--seed", "3")
    with open(path("serve.log"), "wb") as log:
        server = subprocess.Popen([LOCKSTEP, "job", "serve", path("jobs"), "--data", DATA, "--serve",
                                   "127.0.0.1:0", "--folder", path("www"), "--json"], stdout=log,
                                  stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        end = time.monotonic() + WAIT_MAX_S
        while b"serving" not in open(path("serve.log"), "rb").read():
            assert server.poll() is None and time.monotonic() < end
            time.sleep(0.05)
        said = json.loads(open(path("serve.log"), "rb").read().splitlines()[0])
        assert said["jobs"] == 2, said
        for name in ("b", "c"):
            call("job", "open", path("jobs/%s.job" % name), "--reward", "0.5eth", "--stake", "1eth",
                 "--yes", "--any-terms", "--contact", said["serving"], *place(), environment=WORD)
        before = len(ask("job", "list", *place()[:2])["jobs"])
        refused = ask("job", "open", path("a.job"), "--reward", "0.5eth", "--salt", "77", "--yes",
                      "--contact", said["serving"], *place(), wanted=2, environment=WORD)["error"]
        assert "does not serve this job" in refused["message"], refused
        assert "job serve" in refused["advice"], refused
        assert len(ask("job", "list", *place()[:2])["jobs"]) == before
        opened = call("job", "open", path("a.job"), "--reward", "0.5eth", "--salt", "77", "--yes",
                      "--any-terms", "--contact", said["serving"], *place(), environment=WORD)
        assert b"does not serve this job" in opened.stderr, opened.stderr
    finally:
        server.kill()
        server.wait()


def a_wait_that_cannot_end_says_so():
    """Nobody takes the job before its deadline; time alone brings nothing then."""
    key = ask(*open_words("--salt", "88", "--yes", "--any-terms", "--deadline", "60s"),
              environment=WORD)["job"]
    local_ledger.set_clock(path("ledger"), int(time.time()) + 100)
    failed = ask("job", "fetch", key, "--wait", "--out", path("out"), *place()[:2], wanted=1)
    assert "does not end by itself" in failed["error"]["message"], failed
    assert "the deadline was" in failed["error"]["message"], failed


def periods_follow_the_measured_check():
    """Quick terms give a check half a minute where nobody has measured one; else four times what it
    takes."""
    job = new_job("slow.job", "--steps", "3", "--segment-steps", "3")["id"]
    paces = path("state/lockstep/paces")
    os.makedirs(paces)
    state = {"XDG_STATE_HOME": path("state"), **WORD}
    words = ["job", "open", path("slow.job"), "--reward", "0.5eth", "--terms", "quick",
             "--any-terms", "--yes", *place()]
    terms = []
    for salt in ("1", "2"):
        key = ask(*words, "--salt", salt, environment=state)["job"]
        listed = ask("job", "list", *place()[:2])["jobs"]
        terms += [one["terms"] for one in listed if one["job"] == key]
        call("prover", "probe", path("slow.job"), "--data", DATA, environment=state)
        for name in os.listdir(paces):  # as if each step took twenty seconds
            with open(os.path.join(paces, name), encoding="utf-8") as file:
                text = file.read()
            with open(os.path.join(paces, name), "w", encoding="utf-8") as file:
                file.write(re.sub(r'("step_ns": *)\d+', r"\g<1>20000000000", text))
    assert job and terms[0]["seal_period"] == 30, terms[0]
    assert terms[1]["seal_period"] == 4 * 3 * 20, terms[1]
    assert terms[1]["claim_period"] == 2 * 3 * 20, terms[1]


sys.exit(main([
    terms_come_before_the_passphrase,
    defaults_are_round_and_amounts_say_what_is_not_shared,
    what_can_burn_is_said_before,
    y_and_yes_are_taken,
    the_contact_is_asked_before_money_moves,
    periods_follow_the_measured_check,
    a_wait_that_cannot_end_says_so,
]))
