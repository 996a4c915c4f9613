"""Goal: the commands on bundles and traces do what they say, by hand and by script.
Method: runs the built program on one small job: exit codes, JSON, files made and not made."""

import hashlib
import json
import os
import stat
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../../support"), os.path.join(HERE, "../../proofs/reader")]
sys.dont_write_bytecode = True

import reader  # noqa: E402
import reader_bundle  # noqa: E402
from program import DATA, LOCKSTEP, SIZE, ask, call, main, new_job, path, run  # noqa: E402


def fixture_is_what_is_made_today():
    """If this fails after a deliberate change: fixtures/bundle/make."""
    made = ask("job", "new", "--data", DATA, *SIZE, "--steps", "10", "--segment-steps", "4", "--seed", "7",
               "--out", path("fixture.job"))
    with open("fixtures/bundle/job", "rb") as fixture, open(path("fixture.job"), "rb") as file:
        assert fixture.read() == file.read(), made["id"]
    run("fixture.job", "fixture.run")
    with open("fixtures/bundle/segments.json") as file:
        assert ask("bundle", "segments", path("fixture.run")) == json.load(file)
    with open("fixtures/bundle/trace.json") as file:
        assert ask("trace", "root", path("fixture.run"), "9") == json.load(file)


def bundle_is_shown_packed_and_unpacked():
    new_job("a.job")
    run("a.job", "a.run")
    os.unlink(os.path.join(path("a.run"), "checkpoints", "000000000004.safetensors"))
    status = ask("bundle", "status", path("a.run"))
    assert status["steps"] == 12 and not status["diverged"]
    assert ask("bundle", "check", path("a.run"), wanted=1)["damaged"] == 1  # removed above
    ask("bundle", "export", path("a.run"), path("a.tar.zst"), wanted=1)
    assert not os.path.exists(path("a.tar.zst"))
    run("a.job", "e.run", "--keep", "2")
    names = sorted(os.listdir(os.path.join(path("e.run"), "checkpoints")))
    assert names == ["000000000008.safetensors", "000000000012.safetensors"]
    ask("bundle", "export", path("e.run"), path("e.tar.zst"))
    ask("bundle", "export", path("e.run"), path("e.tar.zst"), wanted=1)
    came = ask("bundle", "import", path("e.tar.zst"), path("i.run"))
    assert came["checkpoints"] == 2 and came["checkpoints_unchecked"] == 0
    ask("bundle", "import", path("e.tar.zst"), path("i.run"), wanted=1)
    ask("bundle", "import", path("e.tar.zst"), path("j.run"), "--size-max", "10k", wanted=1)
    ask("bundle", "import", path("a.job"), path("j.run"), wanted=1)
    assert not os.path.exists(path("j.run"))
    assert (ask("bundle", "steps", path("i.run")) == ask("bundle", "steps", path("e.run")))
    # What is not shown is counted, and said.
    some = ask("bundle", "steps", path("e.run"), "--from", "2", "--count", "5")
    assert [step["step"] for step in some["steps"]] == [2, 3, 4, 5, 6] and some["more"] == 5, some
    assert ask("bundle", "steps", path("e.run"))["more"] == 0
    said = call("bundle", "steps", path("e.run"), "--count", "5").stdout.decode()
    assert said.endswith("7 more: --from 5 goes on, --count 12 shows all\n"), said
    assert said.startswith("not checked: ") and some["checked"] is False, said
    assert "more" not in call("bundle", "steps", path("e.run")).stdout.decode()
    ask("bundle", "steps", path("nowhere"), wanted=3)
    call("prover", "run", path("a.job"), "--data", DATA, "--bundle", path("e.run"), wanted=1)


def encrypted_bundle_opens_with_its_key_alone():
    run("a.job", "s.run", "--encrypt", wanted=3)  # no passphrase, nobody to ask
    assert not os.path.exists(path("s.run"))
    run("a.job", "s.run", "--encrypt", "--bundle-key", path("s.key"))
    assert stat.S_IMODE(os.stat(path("s.key")).st_mode) == 0o600
    hidden = ask("bundle", "steps", path("s.run"))["steps"][0]
    assert sorted(hidden) == ["state_root", "step"]
    shown = ask("bundle", "steps", path("s.run"), "--bundle-key", path("s.key"))["steps"][0]
    assert shown["loss"] == ask("bundle", "steps", path("e.run"))["steps"][0]["loss"]
    assert ask("bundle", "status", path("s.run"))["loss"] is None
    ask("bundle", "check", path("s.run"), wanted=3)
    ask("bundle", "check", path("s.run"), "--bundle-key", path("s.key"))
    ask("prover", "resume", path("s.run"), "--bundle-key", path("s.key"))
    # Under a passphrase; the key can be handed to somebody who then needs none.
    word = {"LOCKSTEP_PASSPHRASE": "correct horse"}
    run("a.job", "w.run", "--encrypt", environment=word)
    ask("bundle", "check", path("w.run"), environment={"LOCKSTEP_PASSPHRASE": "battery"}, wanted=1)
    ask("bundle", "key", path("w.run"), path("w.key"), environment=word)
    ask("bundle", "key", path("e.run"), path("n.key"), wanted=1)
    ask("bundle", "check", path("w.run"), "--bundle-key", path("w.key"))
    ask("bundle", "check", path("w.run"), "--bundle-key", path("s.key"), wanted=1)
    assert (ask("trace", "root", path("w.run"), "5", "--bundle-key", path("w.key"))
            == ask("trace", "root", path("e.run"), "5"))
    with open(path("word"), "w") as file:
        file.write("correct horse\n")
    os.chmod(path("word"), 0o600)
    ask("bundle", "check", path("w.run"), "--bundle-passphrase-file", path("word"))
    ask("bundle", "export", path("w.run"), path("w.tar.zst"))
    assert ask("bundle", "import", path("w.tar.zst"), path("w2.run"))["checkpoints_unchecked"] == 3
    assert ask("bundle", "import", path("w.tar.zst"), path("w3.run"), "--bundle-passphrase-file",
               path("word"))["checkpoints_unchecked"] == 0


def traces_are_opened_and_checked():
    root = ask("trace", "root", path("e.run"), "5")
    steps = ask("bundle", "steps", path("e.run"))["steps"]
    assert root["state_root_before"] == steps[4]["state_root"]
    assert root["state_root_after"] == steps[5]["state_root"]
    items = root["items"]
    # The node that covers all is the root of the tree that the trace root is the header of.
    top = 0
    while 1 << top < items:
        top += 1
    node = ask("trace", "node", path("e.run"), "5", str(top), "0")["node"]
    header = reader.list_header("trace", 0, items, bytes.fromhex(node))
    assert reader.sha256(header).hex() == root["trace_root"]
    ask("trace", "node", path("e.run"), "5", str(top), "1", wanted=3)
    ask("trace", "root", path("e.run"), "12", wanted=3)
    ask("trace", "root", path("e.run"), "x", wanted=3)
    for place in ("9.0[3]", "wte.weight[7]", "step[0]", "m.wte.weight[1023]"):
        opened = ask("trace", "open", path("e.run"), "5", place, "--out", path("o"))
        data = bytes.fromhex(opened["opening"])
        with open(path("o"), "rb") as file:
            assert file.read() == data
        assert reader_bundle.open_element(data, bytes.fromhex(root["trace_root"]), items) == (
            opened["item"], opened["element"], int(opened["bits"], 16))
        words = ["trace", "check", path("o"), "--job", path("a.job"), "--root"]
        assert ask(*words, root["trace_root"])["bits"] == opened["bits"]
        ask(*words, steps[5]["state_root"], wanted=1)
        ask(*words, "00", wanted=3)
        os.unlink(path("o"))
    for place in ("9.9[0]", "wte.weight[1024]", "nothing[0]", "9.0[", "9.0[1", "9.0[1]x", "", "9",
                  "9.0[-1]", "9.0[99999999999999999999]", "999999.0[0]"):
        ask("trace", "open", path("e.run"), "5", place, wanted=3)
    call("trace", "check", path("a.job"), "--job", path("a.job"), "--root", root["trace_root"],
         wanted=1)


def frontier_root(hashes):
    """docs/FORMATS.md, 10.2: pairwise, an odd one at the end rises."""
    while len(hashes) > 1:
        pairs = [reader.node_hash(*hashes[i:i + 2]) for i in range(0, len(hashes) - 1, 2)]
        hashes = pairs + (hashes[-1:] if len(hashes) % 2 else [])
    return hashes[0]


def cut(data, size):
    return [data[i:i + size] for i in range(0, len(data), size)]


def queries_about_a_step_are_answered():
    root = ask("trace", "root", path("e.run"), "5")
    step = [path("e.run"), "5"]

    def reply(text):
        return bytes.fromhex(ask("trace", "reply", *step, text)["reply"])

    got = reply("list/trace")
    header = reader.list_header("trace", 0, root["items"], got[:32])
    assert reader.sha256(header).hex() == root["trace_root"]
    level = max((root["items"] - 1).bit_length() - 8, 0)
    shown = cut(got[32:], 32)
    if level == 0:
        items, shown = shown, [reader.leaf_hash(item) for item in shown]
    else:
        items = []
        for index, node in enumerate(shown):
            below = cut(reply("node/trace/%d/%d" % (level, index)), 32)
            assert frontier_root([reader.leaf_hash(item) for item in below]) == node
            items += below
    assert frontier_root(shown) == got[:32]
    assert len(items) == root["items"]
    got = reply("list/next")
    states = cut(got[32:], 32)
    assert reader.list_root("state", 0, states).hex() == root["state_root_after"]
    for item in (0, len(states), len(items) - 1):
        got = reply("tensor/%d" % item)
        leaves = cut(got[32:], 1024)
        assert frontier_root([reader.leaf_hash(leaf) for leaf in leaves]) == got[:32]
        if len(leaves) > 1:
            assert reply("tensor-node/%d/0/1" % item) == leaves[1]
    got = reply("tensor/0")
    assert ask("trace", "reply", *step, "tensor/0", "--out", path("got"))["query"] == "tensor/0"
    with open(path("got"), "rb") as file:
        assert file.read() == got
    lines = call("trace", "reply", *step, "tensor/0").stdout.decode().split()
    assert bytes.fromhex("".join(lines)) == got
    for text in ("", "tensor", "tensor/01", "tensor/-1", "nothing/0", "diverged",
                 "tensor/%d" % len(items), "node/trace/0/%d" % len(items)):
        ask("trace", "reply", *step, text, wanted=3)


def journal_names_the_program():
    """The very bytes that trained: of a program with one byte changed another digest, and of a resumed
    run the last one's. The byte is in a sentence, so both train alike."""
    with open(LOCKSTEP, "rb") as file:
        own = file.read()
    text = b"not a key file of version 3"
    assert own.count(text) >= 1
    programs = {"own": own, "other": own.replace(text, text.replace(b"not", b"Not"), 1)}
    for name, data in programs.items():
        with open(path(name), "wb") as file:
            file.write(data)
        os.chmod(path(name), 0o755)
        if name == "own":
            new_job("named.job")
        train(name, "run", path("named.job"), "--bundle", path(name + ".run"), "--data", DATA)
        assert noted(name + ".run") == hashlib.sha256(data).hexdigest(), name
    assert noted("own.run") != noted("other.run")
    train("other", "resume", path("own.run"))
    assert noted("own.run") == hashlib.sha256(programs["other"]).hexdigest()


def train(name, *words):
    done = subprocess.run([path(name), "prover", *words, "--threads", "1"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr[-600:]


def noted(bundle):
    call("audit", path(bundle), "--threads", "1", "--report", path("report.json"))
    with open(path("report.json")) as file:
        return json.load(file)["audits"][0]["program"]


sys.exit(main([
    fixture_is_what_is_made_today,
    bundle_is_shown_packed_and_unpacked,
    encrypted_bundle_opens_with_its_key_alone,
    traces_are_opened_and_checked,
    queries_about_a_step_are_answered,
    journal_names_the_program,
]))
