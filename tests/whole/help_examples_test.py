"""Goal: who copies an example of --help gets what it promises.
Method: the examples as --help prints them, one after the other in a folder with a small text, as a
client, a solver and a verifier with money would. Only names that a user has to fill in are
replaced. An example that cannot run here stands in a list, with the reason; one that stands
nowhere fails the test."""

import glob
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
sys.dont_write_bytecode = True

import processes  # noqa: E402
import tap  # noqa: E402

LOCKSTEP = os.path.abspath(os.environ["TEST_LOCKSTEP"])
TEXT = os.path.abspath("fixtures/text/village.u8")
WAIT_MAX_S = 300
COMMANDS = ["verifier node", "verifier status", "verifier claims", "audit", "job new", "job eval",
            "job show", "job open", "job list", "prover run", "prover resume", "bundle status",
            "bundle steps", "bundle segments", "bundle check", "bundle export", "bundle import",
            "bundle key", "wallet new", "wallet import", "wallet list", "wallet address",
            "wallet sign", "ledger init", "ledger faucet", "ledger deploy", "ledger status",
            "ledger watch"]
NOT_HERE = {
    "verifier node --mode observe --mirror https://solver.example": "the network",
    "job new --inference": "the published weights",
    "job eval": "tests/oracle/held_out_test.py",
    "job new --base": "tests/client/job_base_test.py",
    "bundle export tune.run --hf": "tests/oracle/base_test.py",
    "job new --tape": "a tape of another program",
    "prover run 0x": "tests/whole/by_ledger_test.py",
    "audit --report text.json": "tests/whole/delivery_test.py",
    "audit answer.receipt": "tests/whole/finetune_test.py",
    "audit --workers 8": "tests/verifier/audit/audit_test.c",
    "audit answer.receipt": "tests/client/generate/receipt_test.py",
    "audit fed": "tests/client/federate_test.py",
    "audit --lineage": "tests/verifier/lineage/lineage_test.py",
    "audit --verify-report": "tests/whole/delivery_test.py",
    "ledger deploy": "tests/chain has chains",
}
# A job that is small enough to be trained here; the examples name no size.
SMALL = {"LAYERS": "1", "HEADS": "1", "WIDTH": "8", "LENGTH": "4", "BATCH": "1", "SEGMENT_STEPS": "100",
         "THREADS": "1", "TERMS": "quick", "POLL": "1s"}
folder = tempfile.mkdtemp(prefix="lockstep-test-")
used = set()


def path(*names):
    return os.path.join(folder, *names)


def environment(who):
    home = {"XDG_%s_HOME" % place: path(who, place.lower()) for place in ("DATA", "STATE", "CONFIG")}
    return dict(os.environ, LOCKSTEP_PASSPHRASE="pass words", LOCKSTEP_LIGHT="true", **home,
                **{"LOCKSTEP_" + name: value for name, value in SMALL.items()})


def examples(command):
    done = subprocess.run([LOCKSTEP, *command.split(), "--help"], stdout=subprocess.PIPE,
                          env=environment("reader"), check=True)
    shown = re.split(r"\nExamples?:\n", done.stdout.decode())
    assert len(shown) == 2, (command, "has no example")
    return [line.strip() for line in shown[1].replace("\\\n", " ").split("\n") if line.strip()]


def words_of(example, names):
    for word, meant in names.items():
        assert word in example, (word, example)
        example = example.replace(word, meant)
    words = shlex.split(example)
    assert words[0] == "lockstep", example
    return [LOCKSTEP, *words[1:]]


def find(start):
    """The example that begins so."""
    command = max((one for one in COMMANDS if (start + " ").startswith(one + " ")), key=len)
    found = [line for line in examples(command) if line.startswith("lockstep " + start)]
    assert found, (start, examples(command))
    used.add(found[0])
    return found[0]


def play(who, start, *more, names=None):
    """Runs it to its end; what it prints."""
    words = words_of(find(start), names or {})
    done = subprocess.run([*words, *more], cwd=folder, env=environment(who),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          start_new_session=True)
    assert done.returncode == 0, (words, done.returncode, done.stdout[-600:], done.stderr[-600:])
    return done.stdout.decode()


def ask(who, *words):
    done = subprocess.run([LOCKSTEP, *words, "--json"], cwd=folder, env=environment(who),
                          stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=True)
    return json.loads(done.stdout)


class Running:
    """An example that goes on until it is stopped."""

    def __init__(self, who, start, *more):
        self.log = path(who + ".log")
        with open(self.log, "wb") as log:
            self.process = processes.start([*words_of(find(start), {}), *more], cwd=folder,
                                           env=environment(who), stdin=subprocess.DEVNULL,
                                           stdout=log, stderr=log)

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return log.read()

    def until(self, true, what):
        end = time.monotonic() + WAIT_MAX_S
        while not true():
            assert self.process.poll() is None and time.monotonic() < end, (what, self.said()[-2000:])
            time.sleep(0.3)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(WAIT_MAX_S)


def test_a_wallet_is_made_and_used():
    play("client", "wallet new")
    assert len(json.loads(play("client", "wallet list"))["keys"]) == 1
    address = play("client", "wallet address").strip()
    assert address.lower().startswith("0x"), address
    play("client", "wallet sign")
    subprocess.run([LOCKSTEP, "wallet", "new"], cwd=folder, env=environment("elsewhere"), check=True,
                   stdout=subprocess.DEVNULL)
    (key,) = [name for name in glob.glob(path("elsewhere", "**", "*--*"), recursive=True)
              if os.path.isfile(name)]
    os.mkdir(path("keystore"))
    for who in ("solver", "verifier"):
        if who == "solver":
            name = find("wallet import").split()[-1]
            shutil.copy(key, path(name))
            play(who, "wallet import")
        else:
            ask(who, "wallet", "new")


def test_a_ledger_is_made_and_filled():
    play("client", "ledger init")
    play("client", "ledger faucet")
    for who in ("client", "solver", "verifier"):
        address = ask(who, "wallet", "list")["keys"][0]["address"]
        ask(who, "ledger", "faucet", address, "100ether", "--ledger", "local:try.ledger")
    assert "100" in play("client", "ledger status")
    watch = Running("watcher", "ledger watch")
    time.sleep(1)
    assert watch.process.poll() is None, watch.said()
    watch.stop()


def test_a_job_is_made_and_trained():
    shutil.copy(TEXT, path("text.u8"))
    play("client", "job new --model gpt2")
    play("client", "job show text.job")
    play("solver", "prover run text.job --data text.u8")
    play("solver", "bundle status")
    play("solver", "prover resume")


def test_a_bundle_is_read_packed_and_audited():
    play("solver", "bundle steps")
    play("solver", "bundle segments")
    assert "3" in play("solver", "bundle check")
    play("solver", "bundle export")
    os.rename(path("text.run"), path("first.run"))
    play("solver", "bundle import")
    shutil.rmtree(path("text.run"))
    os.rename(path("first.run"), path("text.run"))
    assert "proven" in play("auditor", "audit text.run")
    play("auditor", "audit --sample 5")
    assert os.path.getsize(path("text.html")) > 1000
    shutil.move(path("text.run"), path("plain.run"))
    find("prover run text.job --data text.u8 --encrypt")
    play("solver", "prover run text.job --data text.u8 --encrypt")
    play("solver", "bundle key", "--bundle-key", "text.key", names={"text.key": "other.key"})
    shutil.move(path("text.run"), path("sealed.run"))


def proven(who):
    """How many segments; 0 before the node has its database."""
    done = subprocess.run([LOCKSTEP, "verifier", "status", "--json"], env=environment(who),
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    jobs = json.loads(done.stdout)["jobs"] if done.returncode == 0 else []
    return sum(job["proven"] for job in jobs)


def test_a_job_on_a_ledger_is_solved_and_verified():
    play("client", "job open", "--yes")
    play("client", "job list")
    (job,) = ask("client", "job", "list", "--ledger", "local:try.ledger")["jobs"]
    play("client", "job show 0x", names={"0x51dc0a7f": job["job"][:10]})
    verifier = Running("verifier", "verifier node --ledger")  # which the solver waits for
    solver = Running("solver", "prover run text.job --data text.u8 --ledger")
    solver.until(lambda: ask("client", "job", "list", "--ledger", "local:try.ledger")["jobs"][0][
        "committed"] == 3, "three segments are committed")
    verifier.until(lambda: proven("verifier") == 3, "three segments are proven")
    verifier.stop()
    solver.stop()
    play("verifier", "verifier status")
    play("verifier", "verifier claims")
    play("verifier", "verifier node --self-test", names={"20": "1"})


def test_every_example_has_run_or_has_a_reason():
    for command in COMMANDS:
        for line in examples(command):
            reason = [why for start, why in NOT_HERE.items()
                      if re.sub("^lockstep ", "", line).startswith(start)]
            assert line in used or reason, line


def main(tests):
    try:
        return tap.run(tests)
    finally:
        processes.end_all()
        shutil.rmtree(folder, ignore_errors=True)


sys.exit(main([
    test_a_wallet_is_made_and_used,
    test_a_ledger_is_made_and_filled,
    test_a_job_is_made_and_trained,
    test_a_bundle_is_read_packed_and_audited,
    test_a_job_on_a_ledger_is_solved_and_verified,
    test_every_example_has_run_or_has_a_reason,
]))
