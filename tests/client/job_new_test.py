"""Goal: `job new` and `job show` do what they say, by hand and by script.
Method: runs the built program on one small job: exit codes, JSON, files made and not made. A GPT-2
in Hugging Face naming, written here, becomes a first state, and its root is made a second time."""

import json
import math
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../support"), os.path.join(HERE, "../proofs/reader")]
sys.dont_write_bytecode = True

import reader  # noqa: E402
from program import DATA, SIZE, ask, call, main, new_job, path, run  # noqa: E402


def jobs_are_made_shown_and_never_replaced():
    made = new_job("a.job")
    shown = ask("job", "show", path("a.job"))
    assert made["id"] == shown["id"] and shown["segments"] == 3 and not shown["first_state_given"]
    new_job("a.job", wanted=1)
    assert new_job("b.job", "--seed", "2")["id"] != made["id"]
    with open(path("a.job"), "rb") as file:
        data = file.read()
    assert reader.job_id(data[:216]).hex() == made["id"]
    assert b"state" in call("job", "show", path("a.job"), "--program").stdout
    call("job", "new", *SIZE, "--out", path("c.job"), wanted=3)  # no data
    call("job", "new", "--data", DATA, "--data", DATA, "--out", path("c.job"), wanted=3)
    assert not os.path.exists(path("c.job"))


def write_npy(name, shape):
    head = "{'descr': '|u1', 'fortran_order': False, 'shape': %r, }" % (shape,)
    head = head.ljust(117) + "\n"
    with open(name, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        file.write(bytes(i % 10 for i in range(math.prod(shape))))


def pictures_have_the_shape_of_their_file():
    """It is shown, the job binds it, and a solver's file must have it."""
    labels = path("labels.npy")
    write_npy(labels, (40,))
    words = ["job", "new", "--labels", labels, "--steps", "4", "--segment-steps", "4", "--batch", "4",
             "--hidden", "8"]
    ids = {}
    for shape, picture in (((40, 8, 8, 4), (8, 8, 4)), ((40, 4, 64), (4, 64, 1)),
                           ((40, 32, 32, 3), (32, 32, 3)), ((40, 16, 16), (16, 16, 1)),
                           ((40, 256), (16, 16, 1))):
        name = path("p%s.npy" % "x".join(map(str, shape)))
        write_npy(name, shape)
        job = name + ".job"
        made = ask(*words, "--model", "convnet", "--data", name, "--out", job)
        assert made["data_shapes"] == [list(shape), [40]], made["data_shapes"]
        said = call("job", "show", job).stdout.decode()
        assert "(%s)" % ", ".join(map(str, shape)) in said, said
        assert "%d high, %d wide, %d channels" % picture in said, said
        flat = ask(*words, "--model", "mlp", "--data", name, "--out",
                   name + ".mlp.job")
        assert flat["data_shapes"] == [list(shape), [40]]
        ids[shape] = made["roots"]["data"], made["roots"]["program"]
        done = ask("prover", "run", job, "--data", name, "--data", labels, "--bundle", job + ".run")
        assert done["steps"] == 4
    assert len(set(ids.values())) == len(ids)  # the same bytes, and other jobs
    job = path("p40x8x8x4.npy.job")
    refused = ask("prover", "run", job, "--data", path("p40x4x64.npy"), "--data", labels,
                  "--bundle", path("other.run"), wanted=1)["error"]["message"]
    assert "(40, 4, 64)" in refused and "(40, 8, 8, 4)" in refused, refused
    assert not os.path.exists(path("other.run"))
    for shape, words_of in (((40, 3, 32, 32), "transpose"), ((40, 4, 8, 8), "transpose"),
                            ((40, 200), "reshape"), ((40, 2, 2), "sides are 4 at least"),
                            ((40, 2, 2, 2, 2), "at most 3 dimensions")):
        name = path("wrong.npy")
        write_npy(name, shape)
        error = ask(*words, "--model", "convnet", "--data", name, "--out", path("wrong.job"),
                    wanted=3)["error"]
        assert words_of in error["message"] + error.get("advice", ""), error
        assert "image-height" not in error["message"], error


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
    write_npy(samples, (40, 64))
    write_npy(labels, (40,))
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
                "--segment-steps 50 " + rest).split()
        assert (ask(*words, path(model + ".1.job"))["id"]
                == ask(*words, path(model + ".2.job"), *said)["id"]), model


def job_is_made_again_from_its_tape():
    call("job", "show", path("a.job"), "--save-tape", path("a.tape"), "--save-constants",
         path("a.safetensors"))
    words = ["job", "new", "--tape", path("a.tape"), "--steps", "12", "--segment-steps", "4"]
    ask(*words, "--data", DATA, "--out", path("t.job"), wanted=3)  # its constants are missing
    words += ["--constants", path("a.safetensors"), "--out", path("t.job")]
    ask(*words, wanted=3)  # its data is missing
    ask(*words, "--data", DATA, "--data", DATA, wanted=3)
    name = ask("job", "show", path("a.job"))["model"]  # a tape does not say it
    again = ask(*words, "--data", DATA, "--model-name", name)
    roots, first = again["roots"], ask("job", "show", path("a.job"))["roots"]
    for key in ("program", "constants", "data"):
        assert roots[key] == first[key], key
    assert again["id"] == ask("job", "show", path("a.job"))["id"]
    again = ask(*words[:-1], path("t7.job"), "--data", DATA, "--seed", "7")
    assert again["roots"]["program"] == first["program"]
    assert again["roots"]["first_state"] != first["first_state"]
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


def tape_that_would_train_nothing_is_refused():
    words = ["--constants", path("a.safetensors"), "--data", DATA, "--segment-steps", "4", "--out",
             path("nothing.job")]
    with open(path("a.tape"), "rb") as file:
        tape = file.read()
    states = struct.unpack_from(">I", tape, 16)[0]
    rules = len(tape) - 13 * states  # of each state: two tensors, kind and value
    for kinds, text in (([0] * states, "no rule by which"),  # 0: none; 1: zeros
                        ([1] * states, "every number of the first state is zero")):
        changed = bytearray(tape)
        for at, kind in enumerate(kinds):
            changed[rules + 13 * at + 8:rules + 13 * at + 13] = bytes([kind, 0, 0, 0, 0])
        with open(path("n.tape"), "wb") as file:
            file.write(changed)
        said = ask("job", "new", "--tape", path("n.tape"), "--steps", "12", *words, wanted=1)
        assert text in said["error"]["message"], said
        assert "--first-state" in json.dumps(said), said
    said = ask("job", "new", "--tape", path("a.tape"), "--steps", "13", *words, wanted=1)
    assert "ends after 12 of the job's 13 steps" in said["error"]["message"], said
    assert not os.path.exists(path("nothing.job"))
    changed[7] = 1
    with open(path("n.tape"), "wb") as file:
        file.write(changed)
    said = ask("job", "new", "--tape", path("n.tape"), "--steps", "12", *words, wanted=1)
    assert "version 1" in said["error"]["message"], said


def steps_of_micro_batches_are_as_short_as_one():
    one = new_job("one.job")
    many = [new_job("%d.job" % n, "--accumulate", str(n)) for n in (8, 64)]
    grouped = new_job("grouped.job", "--accumulate", "64", "--accumulate-group", "16")
    assert [made["program"]["micro_batches"] for made in [one, *many, grouped]] == [1, 8, 64, 64]
    sizes = [os.path.getsize(path(name)) for name in ("8.job", "64.job", "grouped.job")]
    assert sizes == [sizes[0]] * 3 and sizes[0] < 1.2 * os.path.getsize(path("one.job")), sizes
    assert len({made["roots"]["program"] for made in [one, *many, grouped]}) == 4
    run("8.job", "8.run")
    steps = ask("bundle", "steps", path("8.run"))["steps"]
    assert len(steps) == 12 and all(step["loss"] > 0 for step in steps)
    assert b"repeat 8 times in groups of 8:" in call("job", "show", path("8.job"), "--program").stdout
    said = new_job("bad.job", "--accumulate", "6", "--accumulate-group", "2", wanted=1)
    assert "6 micro-batches in groups of 2" in said["error"]["message"], said
    new_job("bad.job", "--accumulate", "2", "--accumulate-group", "4", wanted=3)
    said = new_job("bad.job", "--accumulate", "1000000", wanted=1)
    assert "at most" in said["error"]["message"], said


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
    for line in call("job", "show", path("hub.job"), "--program").stdout.decode().splitlines():
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
    assert not os.path.exists(path("hub.run"))
    run("hub.job", "hub2.run", "--first-state", path("plain.safetensors"))
    run("hub.job", "hub.run", "--first-state", path("hub.safetensors"))
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


def llama_is_a_first_state_only_where_it_is_the_same_network():
    """Weights say neither their rotary base nor their norms' epsilon, nor which rules made them:
    a wrong one would train another network, and nobody would know."""
    words = ["--model", "llama", "--heads", "2"]
    new_job("llama.job", *words)
    run("llama.job", "llama.run")
    checkpoint = os.path.join(path("llama.run"), "checkpoints", "000000000012.safetensors")
    taken = new_job("again.job", *words, "--first-state", checkpoint)
    assert taken["first_state_given"]
    with open(checkpoint, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    ours = header["__metadata__"]

    def with_metadata(name, metadata):
        text = json.dumps(header | {"__metadata__": metadata}).encode()
        with open(path(name), "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + data[8 + size:])
        return path(name)

    published = with_metadata("published.safetensors", {"format": "pt"})  # as Hugging Face writes
    both = ["--rotary-base", "500000", "--norm-epsilon", "1e-6"]
    # It is told before any advice about shapes, which would lead nowhere.
    for more in ([], ["--hidden", "64"], both[:2], both[2:]):
        error = new_job("other.job", *words, *more, "--first-state", published, wanted=1)["error"]
        assert "another network" in error["message"] and "rope_theta" in error["advice"], error
    assert not os.path.exists(path("other.job"))
    made = new_job("published.job", *words, *both, "--first-state", published)
    assert made["roots"]["first_state"] == taken["roots"]["first_state"]
    assert made["roots"]["program"] != taken["roots"]["program"]  # another epsilon
    for metadata in ({k: v for k, v in ours.items() if k != "lockstep.rules"},
                     ours | {"lockstep.rules": "1"}):
        error = new_job("old.job", *words, *both, "--first-state",
                        with_metadata("old.safetensors", metadata), wanted=1)["error"]
        assert "other rules" in error["message"], error
    for wrong, said in ((["--rotary-base", "1"], "rotary base"), (["--norm-epsilon", "0"], "epsilon")):
        assert said in new_job("w.job", *words, *wrong, wanted=3)["error"]["message"]


sys.exit(main([
    jobs_are_made_shown_and_never_replaced,
    pictures_have_the_shape_of_their_file,
    options_that_change_nothing_are_refused,
    job_is_made_again_from_its_tape,
    tape_that_would_train_nothing_is_refused,
    steps_of_micro_batches_are_as_short_as_one,
    gpt2_of_hugging_face_is_a_first_state,
    llama_is_a_first_state_only_where_it_is_the_same_network,
]))
