"""Goal: what an auditor without key, ledger or network has found convicts on a ledger, by the
commands that people use; evidence of one thing says nothing about another, and a forged byte of it
nothing at all, to the command as to the ledger.
Method: a cheat that falsified one number and an honest solver with the same job, the cheat's bundle
handed on as a file, `audit`, `audit --verify-evidence` and `verifier claim --evidence`, on the embedded
ledger and on anvil. The evidence file is read here as docs/FORMATS.md says (9.5). The solver's
trace comes from its server, from published files behind a web server and from a folder of them."""

import functools
import glob
import hashlib
import http.server
import json
import os
import sqlite3
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import town as stage  # noqa: E402
from plays import PEOPLE, STEP  # noqa: E402
from town import BOND, DATA, ETHER, NOBODY, PRIZE, PURSE, SEGMENTS, Town  # noqa: E402

END = 7  # the last step of a segment: the bundle has a checkpoint of the state after it
MOVE_TAG = b"lockstep.move.v3".ljust(32, b"\0")
CONVICT = 2


def node(left, right):
    return hashlib.sha256(b"\1" + left + right).digest()


def fold(item, index, count, siblings):
    """The root of a tree of count items, from one and its path (1.1)."""
    at, last = hashlib.sha256(b"\0" + item).digest(), count - 1
    while last > 0:
        if index % 2 == 1:
            at, siblings = node(siblings[:32], at), siblings[32:]
        elif index < last:
            at, siblings = node(at, siblings[:32]), siblings[32:]
        index, last = index // 2, last // 2
    assert siblings == b""
    return at


def list_root(kind, root, count, first=0):
    """Of a state, a segment or a trace (2.2)."""
    return hashlib.sha256((b"lockstep.%s.v1" % kind).ljust(32, b"\0") + root
                          + first.to_bytes(8, "big") + count.to_bytes(8, "big")).digest()


class Evidence:
    """An evidence file, taken to pieces."""

    def __init__(self, path):
        self.bytes = read(path)
        assert self.bytes[:8] == b"LSEVID\0\1"
        self.header = self.bytes[8:224]
        self.step = int.from_bytes(self.bytes[224:232], "big")
        self.before, self.after, self.trace = (self.bytes[at:at + 32] for at in (232, 264, 296))
        assert self.bytes[328] == 4, "a solver is accused, and the places are there"
        self.after_path, at = self.place(329)
        self.before_path, at = self.place(at) if self.step > 0 else (b"", at)
        self.payload = self.bytes[at + 4:]
        assert int.from_bytes(self.bytes[at:at + 4], "big") == len(self.payload)

    def of_another_trace(self, honest):
        """The file that a forger makes: of a trace that ends in something that nobody has ever
        computed, and, against the honest solver, of the state that the step truly gives."""
        shown = self.payload

        def number(at, size=4):
            return int.from_bytes(shown[at:at + size], "big")

        assert shown[0] == 3, "the state is not what the trace ends in"
        items, at = number(9), 14 + 32 * shown[13]
        state, states, item = (number(at + 2 + offset) for offset in (2, 6, 10))
        at += 2 + number(at, 2)
        true, path = shown[at + 32:at + 64], shown[at + 65:at + 65 + 32 * shown[at + 64]]
        end = at + 65 + len(path)
        theirs, state_path = shown[end:end + 32], shown[end + 65:]
        tree = fold(theirs, state, states, state_path)
        assert (tree, list_root(b"state", tree, states)) == (shown[end + 32:end + 64], self.after)
        assert list_root(b"trace", fold(true, item, items, path), items) == self.trace
        if honest:
            theirs, tree = true, fold(true, state, states, state_path)
        after = list_root(b"state", tree, states)
        lie = bytes(32)
        trace = fold(lie, item, items, path)
        payload = (shown[:at] + trace + lie + shown[at + 64:end] + theirs + tree
                   + shown[end + 64:])
        index, count = (int.from_bytes(self.bytes[at:at + 8], "big") for at in (361, 369))
        segment = list_root(b"segment", fold(after, index, count, self.after_path), count,
                            self.step - index)
        # The state before stands beside the one after: they are each other's first sibling.
        assert index % 2 == 1 and honest or segment == self.bytes[329:361]
        second = 379 + len(self.after_path)
        return (self.bytes[:264] + after + list_root(b"trace", trace, items) + self.bytes[328:329]
                + segment + self.bytes[361:second]
                + segment + self.bytes[second + 32:second + 50]
                + hashlib.sha256(b"\0" + after).digest() + self.before_path[32:]
                + len(payload).to_bytes(4, "big") + payload)

    def place(self, at):
        """The siblings of the path at a place, and where it ends."""
        count = int.from_bytes(self.bytes[at + 48:at + 50], "big")
        end = at + 50 + 32 * count
        return self.bytes[at + 50:end], end

    def move(self, payload):
        """The file of the move in the folder of a dispute."""
        return MOVE_TAG + bytes([CONVICT]) + payload


def read(path):
    with open(path, "rb") as file:
        return file.read()


def bent(bytes_, at):
    return bytes_[:at] + bytes([bytes_[at] ^ 1]) + bytes_[at + 1:]


def write(path, bytes_):
    with open(path, "wb") as file:
        file.write(bytes_)
    return path


def commit_both(town, step):
    """The keys of their jobs. What is published of both has no traces, and nobody serves any."""
    job = town.new_job("a.job")
    keys, solvers = {}, {}
    for who, more in (("honest", ()), ("cheat", ("--falsify", str(step)))):
        keys[who] = town.open_job(job, "--seats", "0")
        solvers[who] = town.solve(who, job, keys[who], "--contact", NOBODY, *more)
    for who, key in keys.items():
        town.until_count(SEGMENTS, "committed", key)
        town.run(who, "prover", "publish", town.path(who + ".run"), "--out", town.path(who + ".www"))
    return job, keys, solvers


def audit(town, bundle, *more, name="found"):
    """A refuted bundle: what the audit says, and its evidence file, or None."""
    os.makedirs(town.path(name), exist_ok=True)
    said = town.run("auditor", "audit", bundle, "--data", DATA, "--threads", "1", "--json",
                    "--evidence-folder", town.path(name), *more, wanted=1)
    (report,) = json.loads(said.splitlines()[0])["audits"]
    assert report["answer"] == "refuted", report
    return report, report["evidence"]["file"] if "evidence" in report else None


def evidence_against(town, step):
    """From a copy of the cheat's bundle, made into one file and back; a step in the middle of a
    segment needs what he has published of its trace too."""
    more = ()
    town.run("cheat", "bundle", "export", town.path("cheat.run"), town.path("copy.lsb"))
    town.run("auditor", "bundle", "import", town.path("copy.lsb"), town.path("copy.run"))
    if step != END:
        town.run("cheat", "prover", "publish", town.path("cheat.run"), "--out",
                 town.path("trace.www"), "--trace", str(step), "--threads", "1")
        more = ("--trace-from", town.path("trace.www"))
    report, path = audit(town, town.path("copy.run"), *more)
    assert report["wrong_step"] == step and report["evidence"]["kind"] == "next-state", report
    assert '"answer":"upheld"' in town.run("auditor", "audit", "--verify-evidence", "--json", path,
                                           wanted=1)
    return path


def words(town, key, path, *more):
    return ["verifier", "claim", key, *more, "--evidence", path, "--data", DATA, "--threads", "1",
            "--mirror", town.path("honest.www"), "--mirror", town.path("cheat.www"), "--yes"]


def folder_of_claim(town):
    (folder,) = glob.glob(town.path("verifier/**/claim-*"), recursive=True)
    return folder


def see_upheld(town, key, command, gas):
    town.until(lambda: command.code() is not None, "the claim has come to its end")
    assert command.code() == 0, command.said()
    report = json.loads(command.said().splitlines()[-1])
    assert report["outcome"] == "upheld", report
    assert int(report["bond_wei"]) == BOND and int(report["prize_wei"]) == PRIZE, report
    for kind in ("claimed", "answered", "ruled", "convicted"):
        assert town.count(kind, key) == 1, town.events(job=key)
    lost = PURSE + PRIZE - town.money("verifier")
    assert 0 <= lost <= gas, lost


def convict_by_evidence(town, step, gas):
    """No trace is to be had for the claimant, and none is queried."""
    _, keys, _ = commit_both(town, step)
    path = evidence_against(town, step)
    command = town.start("verifier", *words(town, keys["cheat"], path), "--json")
    see_upheld(town, keys["cheat"], command, gas)
    assert town.count("queried") == 0, town.events(job=keys["cheat"])
    evidence = Evidence(path)
    assert evidence.step == step
    (move,) = glob.glob(folder_of_claim(town) + "/move-*")
    assert read(move) == evidence.move(evidence.payload), "what convicted is another thing"


def a_copied_bundle_is_audited_and_the_evidence_convicts():
    with Town(PEOPLE) as town:
        convict_by_evidence(town, END, 0)


def with_a_published_trace_the_evidence_convicts_on_a_chain():
    with Town(PEOPLE, on_chain=True) as town:
        convict_by_evidence(town, STEP, ETHER // 5)


def who_tells_another_trace_is_walked_down():
    with Town(PEOPLE) as town:
        _, keys, _ = commit_both(town, END)
        forged = Evidence(evidence_against(town, END)).of_another_trace(honest=False)
        path = write(town.path("forged"), forged)
        town.run("auditor", "audit", "--verify-evidence", path, wanted=1)
        command = town.start("verifier", *words(town, keys["cheat"], path), "--json")
        see_upheld(town, keys["cheat"], command, 0)
        assert town.count("queried") > 0, town.events(job=keys["cheat"])


def evidence_of_something_else_is_refused():
    with Town(PEOPLE + ("other",)) as town:
        _, keys, _ = commit_both(town, END)
        another = town.new_job("b.job", "--seed", "77")
        keys["other"] = town.open_job(another, "--seats", "0")
        town.solve("other", another, keys["other"])
        town.until_count(SEGMENTS, "committed", keys["other"])
        path = evidence_against(town, END)
        evidence = Evidence(path)
        harmless = write(town.path("harmless"), read("fixtures/corpus/evidence/file")[1:])
        body = len(evidence.bytes) - len(evidence.payload)
        cut = write(town.path("cut"), evidence.bytes[:-1])
        for key, shown, why in (
                (keys["other"], path, "is about another job: "),
                (keys["honest"], path, "is about another run of this job, by its segment's root: "),
                ("0x" + "11" * 32, path, "no segment of such a job"),
                (keys["cheat"], harmless, "convicts nobody: it shows nothing wrong"),
                (keys["cheat"], cut, "the evidence file"),
                (keys["cheat"], write(town.path("a"), bent(evidence.bytes, 240)),
                 "a state of the evidence is not under its segment root"),
                (keys["cheat"], write(town.path("b"), bent(evidence.bytes, 300)),
                 "convicts nobody: "),
                (keys["cheat"], write(town.path("c"), bent(evidence.bytes, body + 40)),
                 "convicts nobody: ")):
            said = town.run("verifier", *words(town, key, shown), wanted=1)
            assert why in said, (why, said)
        # A solver that commits to the forger's trace is convicted by it: the honest solver never
        # did.
        forged = write(town.path("forged"), evidence.of_another_trace(honest=True))
        town.run("auditor", "audit", "--verify-evidence", forged, wanted=1)
        said = town.run("verifier", *words(town, keys["honest"], forged), wanted=1)
        assert "a claim would lose its bond" in said, said
        for at in range(body, len(evidence.bytes), len(evidence.payload) // 40):
            shown = write(town.path("bent"), bent(evidence.bytes, at))
            assert "convicts nobody: " in town.run("verifier", *words(town, keys["cheat"], shown),
                                                   wanted=1), at
            town.run("auditor", "audit", "--verify-evidence", shown, wanted=2)
        assert "is about step 7, not 6" in town.run(
            "verifier", *words(town, keys["cheat"], path, "6"), wanted=3)
        town.run("verifier", *words(town, keys["cheat"], town.path("none")), wanted=3)
        assert "which step is false?" in town.run("verifier", "verifier", "claim", keys["cheat"],
                                                  wanted=3)
        assert town.count("sealed") == 0, town.events()
        assert town.money("verifier") == PURSE


def show_forged_bytes(town, gas):
    """The claimant's own moves are forged before it comes to them: the solver, who is away, has to
    tell his trace first. The ledger takes none of them, and the true evidence after them."""
    job, keys, solvers = commit_both(town, STEP)
    path = evidence_against(town, STEP)
    evidence = Evidence(path)
    solvers["cheat"].kill()
    command = town.start("verifier", *words(town, keys["cheat"], path), "--json")
    town.until_count(1, "claimed", keys["cheat"])
    folder = folder_of_claim(town)
    size = len(evidence.payload)
    places = {"": size // 3, "-1": size // 2, "-2": size - 1}
    for name, at in places.items():
        write(folder + "/move-2" + name, evidence.move(bent(evidence.payload, at)))
    town.solve("cheat", job, keys["cheat"])
    see_upheld(town, keys["cheat"], command, gas)
    (database,) = glob.glob(town.path("verifier/**/node.db"), recursive=True)
    moves = sqlite3.connect(database).execute(
        "SELECT name FROM actions WHERE name LIKE 'convict/%' AND refusal <> 0").fetchall()
    assert len(moves) == len(places), moves
    # After a refusal nothing that was given is trusted: the claimant has walked to the fault.
    assert not os.path.exists(folder + "/evidence")
    assert town.count("queried", keys["cheat"]) > 0


def forged_bytes_are_refused_by_the_ledger():
    with Town(PEOPLE) as town:
        show_forged_bytes(town, 0)


def forged_bytes_are_refused_by_the_contract():
    with Town(PEOPLE, on_chain=True) as town:
        show_forged_bytes(town, ETHER // 5)


class QuietFiles(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def served(folder):
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(QuietFiles, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, "http://127.0.0.1:%d" % server.server_address[1]


def a_trace_is_the_same_from_a_server_and_from_files():
    with Town(()) as town:
        bundle = town.train("cheat", town.new_job("a.job"), "cheat.run", "--falsify", str(STEP))
        town.run("cheat", "prover", "publish", bundle, "--out", town.path("www"), "--trace",
                 str(STEP), "--trace", "3", "--threads", "1")
        server, url = town.serve("cheat", bundle)
        files, address = served(town.path("www"))
        found = []
        for place in (url, address, town.path("www")):
            report, path = audit(town, bundle, "--trace-from", place, name="at-%d" % len(found))
            assert report["wrong_step"] == STEP, report
            assert report["difference"]["operation_kind"] == "adamw", report
            found.append(read(path))
        assert found[0] == found[1] == found[2]
        assert server.stop() == 0
        # Nobody who answers, and files that say something else.
        for name, left in (("list/trace", "truth"), ("list/next", None), (None, "solver")):
            if name is not None:
                (file,) = glob.glob(town.path("www/v1/jobs/*/trace/%d/%s" % (STEP, name)))
                content = read(file)
                write(file, bent(content, len(content) - 1))
            report, path = audit(town, bundle, "--trace-from", url, "--trace-from", address)
            assert (path is None) == (left is None) and ("lacking" in report), report
            assert left is None or report["evidence"]["trace_of"] == left, report
            if name is not None:
                write(file, content)
        files.shutdown()
        files.server_close()
        # What a server would not answer is not written.
        said = town.run("cheat", "prover", "publish", bundle, "--out", town.path("www"), "--trace",
                        "600", wanted=3)
        assert "step 600 was not run yet" in said, said
        said = town.run("cheat", "prover", "publish", bundle, bundle, "--out", town.path("www"),
                        "--trace", "6", wanted=3)
        assert "--trace is of one bundle" in said, said


TESTS = [
    a_copied_bundle_is_audited_and_the_evidence_convicts,
    who_tells_another_trace_is_walked_down,
    evidence_of_something_else_is_refused,
    forged_bytes_are_refused_by_the_ledger,
    a_trace_is_the_same_from_a_server_and_from_files,
]
if __name__ == "__main__":
    sys.exit(stage.main(TESTS, [with_a_published_trace_the_evidence_convicts_on_a_chain,
                                forged_bytes_are_refused_by_the_contract]))
