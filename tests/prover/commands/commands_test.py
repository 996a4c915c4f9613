"""Goal: the commands on jobs, bundles and traces do what they say, by hand and by script.
Method: runs the built program on one small job: exit codes, JSON, files made and not made. A GPT-2
in Hugging Face naming, written here, becomes a first state, and its root is made a second time."""

import json
import os
import shutil
import stat
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../proofs/reader"))
sys.dont_write_bytecode = True

import reader  # noqa: E402
import reader_bundle  # noqa: E402

LOCKSTEP = os.environ["TEST_LOCKSTEP"]
DATA = "fixtures/text/village.u8"
SIZE = ["--layers", "1", "--heads", "1", "--width", "8", "--length", "4", "--batch", "1",
        "--vocabulary", "128"]
folder = tempfile.mkdtemp(prefix="lockstep-test-")


def path(name):
    return os.path.join(folder, name)


def call(*words, wanted=0, environment=None):
    done = subprocess.run([LOCKSTEP, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, env=dict(os.environ, **(environment or {})),
                          start_new_session=True)  # no terminal: nobody to ask
    assert done.returncode == wanted, (words, done.returncode, done.stdout[-300:], done.stderr[-300:])
    return done


def ask(*words, wanted=0, environment=None):
    done = call(*words, "--json", wanted=wanted, environment=environment)
    return json.loads(done.stdout)


def new_job(name, *more, wanted=0, environment=None):
    return ask("job", "new", "--data", DATA, *SIZE, "--steps", "12", "--segment", "4", "--out",
               path(name), *more, wanted=wanted, environment=environment)


def run(job, bundle, *more, wanted=0, environment=None):
    return ask("prover", "run", path(job), "--data", DATA, "--bundle", path(bundle), *more,
               wanted=wanted, environment=environment)


def jobs_are_made_shown_and_never_replaced():
    made = new_job("a.job")
    shown = ask("job", "show", path("a.job"))
    assert made["id"] == shown["id"] and shown["segments"] == 3 and not shown["first_state_given"]
    new_job("a.job", wanted=1)
    assert new_job("b.job", "--seed", "2")["id"] != made["id"]
    with open(path("a.job"), "rb") as file:
        data = file.read()
    assert reader.job_id(data[:216]).hex() == made["id"]
    assert b"state" in call("job", "show", path("a.job"), "--tape").stdout
    call("job", "new", *SIZE, "--out", path("c.job"), wanted=3)  # no data
    call("job", "new", "--data", DATA, "--data", DATA, "--out", path("c.job"), wanted=3)
    assert not os.path.exists(path("c.job"))


def options_that_change_nothing_are_refused():
    """And the defaults that --help names are those that are taken."""
    for words, option in ((["--kv-heads", "1"], "--kv-heads"), (["--labels", DATA], "--labels"),
                          (["--classes", "3"], "--classes"), (["--constants", DATA], "--constants"),
                          (["--model", "llama", "--positions", "9"], "--positions"),
                          (["--model", "mlp"], "--length"), (["--warmup", "12"], "--warmup"),
                          (["--tape", DATA], "--batch")):
        got = new_job("n.job", *words, wanted=3)["error"]["message"]
        assert got.startswith(option), got
    new_job("n.job", environment={"LOCKSTEP_KV_HEADS": "1"})  # other jobs' settings may be there
    samples = path("samples.npy")
    labels = path("labels.npy")
    for name, shape, count in ((samples, "(40, 64)", 40 * 64), (labels, "(40,)", 40)):
        with open(name, "wb") as file:
            head = "{'descr': '|u1', 'fortran_order': False, 'shape': %s, }" % shape
            head = head.ljust(117) + "\n"
            file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
            file.write(bytes(i % 10 for i in range(count)))
    for model, data, rest in (
            ("gpt2", DATA, "--batch 8 --length 64 --vocabulary 256 --layers 3 --heads 4 --width 64 "
                           "--hidden 256 --positions 64"),
            ("llama", DATA, "--batch 8 --length 64 --vocabulary 256 --layers 3 --heads 4 --width 64 "
                            "--hidden 192 --kv-heads 2"),
            ("mlp", samples, "--batch 32 --layers 2 --hidden 64 --classes 10"),
            ("convnet", samples, "--batch 32 --hidden 8 --classes 10")):
        words = ["job", "new", "--model", model, "--data", data, "--out"]
        words[4:4] = ["--labels", labels] if data == samples else []
        said = ("--dropout 0 --rate 0.001 --rate-min 0.0001 --warmup 20 --decay 0.1 --clip 1 "
                "--optimizer adamw --schedule linear --bits 14 --block 128 --seed 1 --steps 300 "
                "--segment 50 " + rest).split()
        assert (ask(*words, path(model + ".1.job"))["id"]
                == ask(*words, path(model + ".2.job"), *said)["id"]), model


def fixture_is_what_is_made_today():
    """If this fails after a deliberate change: fixtures/bundle/make."""
    made = ask("job", "new", "--data", DATA, *SIZE, "--steps", "10", "--segment", "4", "--seed", "7",
               "--out", path("fixture.job"))
    with open("fixtures/bundle/job", "rb") as fixture, open(path("fixture.job"), "rb") as file:
        assert fixture.read() == file.read(), made["id"]
    run("fixture.job", "fixture.run")
    with open("fixtures/bundle/segments.json") as file:
        assert ask("bundle", "segments", path("fixture.run")) == json.load(file)
    with open("fixtures/bundle/trace.json") as file:
        assert ask("trace", "root", path("fixture.run"), "9") == json.load(file)


def job_is_made_again_from_its_tape():
    call("job", "show", path("a.job"), "--save-tape", path("a.tape"), "--save-constants",
         path("a.safetensors"))
    words = ["job", "new", "--tape", path("a.tape"), "--steps", "12", "--segment", "4"]
    ask(*words, "--data", DATA, "--out", path("t.job"), wanted=3)  # its constants are missing
    words += ["--constants", path("a.safetensors"), "--out", path("t.job")]
    ask(*words, wanted=3)  # its data is missing
    ask(*words, "--data", DATA, "--data", DATA, wanted=3)
    again = ask(*words, "--data", DATA)
    roots, first = again["roots"], ask("job", "show", path("a.job"))["roots"]
    for key in ("program", "constants", "data"):
        assert roots[key] == first[key], key
    assert roots["first_state"] != first["first_state"]  # zeros: nothing draws it
    ask("job", "new", "--tape", DATA, "--data", DATA, "--out", path("u.job"), wanted=1)
    # The state of a run gives the tape what the model's draws gave.
    run("a.job", "a.run")
    state = os.path.join(path("a.run"), "checkpoints", "000000000004.safetensors")
    given = ask(*words[:-1], path("g.job"), "--data", DATA, "--first-state", state)
    assert given["first_state_given"]
    steps = ask("bundle", "steps", path("a.run"))["steps"]
    assert given["roots"]["first_state"] == steps[3]["state_root"]
    run("g.job", "g.run", "--first-state", state)
    assert ask("bundle", "steps", path("g.run"))["steps"][0]["state_root"] == steps[4]["state_root"]
    os.unlink(state)


def write_gpt2(name, prefix, drop=None, extra=None):
    """A GPT-2 of this size as Hugging Face names it; returns name -> (dims, bytes)."""
    shapes = {"wte.weight": [128, 8], "wpe.weight": [4, 8], "ln_f.weight": [8], "ln_f.bias": [8],
              "h.0.ln_1.weight": [8], "h.0.ln_1.bias": [8], "h.0.ln_2.weight": [8],
              "h.0.ln_2.bias": [8], "h.0.attn.c_attn.weight": [8, 24],
              "h.0.attn.c_attn.bias": [24], "h.0.attn.c_proj.weight": [8, 8],
              "h.0.attn.c_proj.bias": [8], "h.0.mlp.c_fc.weight": [8, 32],
              "h.0.mlp.c_fc.bias": [32], "h.0.mlp.c_proj.weight": [32, 8],
              "h.0.mlp.c_proj.bias": [8]}
    tensors = {}
    for number, (key, dims) in enumerate(sorted(shapes.items())):
        count = 1
        for dim in dims:
            count *= dim
        tensors[key] = (dims, struct.pack("<%df" % count, *[
            ((i * 37 + number * 11) % 101 - 50) / 1000 for i in range(count)]))
    body, header = b"", {"__metadata__": {"format": "pt"}}
    for key, (dims, data) in list(tensors.items()) + list((extra or {}).items()):
        if key != drop:
            header[prefix + key] = {"dtype": "F32", "shape": dims,
                                    "data_offsets": [len(body), len(body) + len(data)]}
            body += data
    text = json.dumps(header).encode()
    with open(path(name), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)
    return tensors


def gpt2_of_hugging_face_is_a_first_state():
    write_gpt2("plain.safetensors", "")
    tensors = write_gpt2("hub.safetensors", "transformer.",
                         extra={"h.0.attn.bias": ([1, 1, 4, 4], bytes(64))})
    made = new_job("hub.job", "--first-state", path("hub.safetensors"))
    assert new_job("plain.job", "--first-state", path("plain.safetensors"))["id"] == made["id"]
    # The state root, a second time: states in the tape's order, what is missing as zeros.
    roots = []
    for line in call("job", "show", path("hub.job"), "--tape").stdout.decode().splitlines():
        if line.startswith("state "):
            name = line.split("'")[1]
            kind, dims = line.split("' ")[1].split(" ")[0].rstrip("]").split("[")
            dims = [int(dim) for dim in dims.split(",")]
            count = 1
            for dim in dims:
                count *= dim
            data = tensors[name][1] if name in tensors else bytes(4 * count)
            roots.append(reader.tensor_root("tensor", {"f32": 0, "u32": 3}[kind], dims, name, data))
    assert reader.list_root("state", 0, roots).hex() == made["roots"]["first_state"]
    # A run needs the file once, and keeps it as a checkpoint.
    run("hub.job", "hub.run", wanted=3)
    run("hub.job", "hub2.run", "--first-state", path("plain.safetensors"))
    ask("prover", "resume", path("hub.run"), "--first-state", path("hub.safetensors"))
    assert (ask("bundle", "segments", path("hub.run"))
            == ask("bundle", "segments", path("hub2.run")))
    ask("prover", "resume", path("hub2.run"))
    write_gpt2("less.safetensors", "", drop="h.0.mlp.c_fc.bias")
    assert "h.0.mlp.c_fc.bias" in new_job("l.job", "--first-state", path("less.safetensors"),
                                          wanted=1)["error"]["message"]
    write_gpt2("more.safetensors", "", extra={"h.1.ln_1.bias": ([8], bytes(32))})
    new_job("m.job", "--first-state", path("more.safetensors"), wanted=1)
    # The table of positions may be longer than the sequences, as GPT-2's is.
    new_job("p.job", "--positions", "9", "--first-state", path("hub.safetensors"), wanted=1)


def bundle_is_shown_packed_and_unpacked():
    status = ask("prover", "status", path("a.run"))
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
    ask("bundle", "steps", path("nowhere"), wanted=3)
    call("prover", "run", path("a.job"), "--data", DATA, "--bundle", path("e.run"), wanted=1)


def encrypted_bundle_opens_with_its_key_alone():
    run("a.job", "s.run", "--encrypt", wanted=3)  # no passphrase, nobody to ask
    assert not os.path.exists(path("s.run"))
    run("a.job", "s.run", "--encrypt", "--key", path("s.key"))
    assert stat.S_IMODE(os.stat(path("s.key")).st_mode) == 0o600
    hidden = ask("bundle", "steps", path("s.run"))["steps"][0]
    assert sorted(hidden) == ["state_root", "step"]
    shown = ask("bundle", "steps", path("s.run"), "--key", path("s.key"))["steps"][0]
    assert shown["loss"] == ask("bundle", "steps", path("e.run"))["steps"][0]["loss"]
    assert ask("prover", "status", path("s.run"))["loss"] is None
    ask("bundle", "check", path("s.run"), wanted=3)
    ask("bundle", "check", path("s.run"), "--key", path("s.key"))
    ask("prover", "resume", path("s.run"), "--key", path("s.key"))
    # Under a passphrase; the key can be handed to somebody who then needs none.
    word = {"LOCKSTEP_PASSPHRASE": "correct horse"}
    run("a.job", "w.run", "--encrypt", environment=word)
    ask("bundle", "check", path("w.run"), environment={"LOCKSTEP_PASSPHRASE": "battery"}, wanted=1)
    ask("bundle", "key", path("w.run"), path("w.key"), environment=word)
    ask("bundle", "key", path("e.run"), path("n.key"), wanted=1)
    ask("bundle", "check", path("w.run"), "--key", path("w.key"))
    ask("bundle", "check", path("w.run"), "--key", path("s.key"), wanted=1)
    assert (ask("trace", "root", path("w.run"), "5", "--key", path("w.key"))
            == ask("trace", "root", path("e.run"), "5"))
    with open(path("word"), "w") as file:
        file.write("correct horse\n")
    os.chmod(path("word"), 0o600)
    ask("bundle", "check", path("w.run"), "--passphrase-file", path("word"))
    ask("bundle", "export", path("w.run"), path("w.tar.zst"))
    assert ask("bundle", "import", path("w.tar.zst"), path("w2.run"))["checkpoints_unchecked"] == 3
    assert ask("bundle", "import", path("w.tar.zst"), path("w3.run"), "--passphrase-file",
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


TESTS = [
    jobs_are_made_shown_and_never_replaced,
    options_that_change_nothing_are_refused,
    fixture_is_what_is_made_today,
    job_is_made_again_from_its_tape,
    gpt2_of_hugging_face_is_a_first_state,
    bundle_is_shown_packed_and_unpacked,
    encrypted_bundle_opens_with_its_key_alone,
    traces_are_opened_and_checked,
    queries_about_a_step_are_answered,
]


def main():
    failed = 0
    print("1..%d" % len(TESTS))
    for number, test in enumerate(TESTS, 1):
        try:
            test()
            print("ok %d - %s" % (number, test.__name__), flush=True)
        except Exception as error:  # every surprise is a failure of that test
            failed = 1
            print("not ok %d - %s: %r" % (number, test.__name__, error), flush=True)
    return failed


try:
    code = main()
finally:
    shutil.rmtree(folder, ignore_errors=True)
sys.exit(code)
