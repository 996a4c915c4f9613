"""Goal: each option of `job new` either says something of a graph, and then makes another job, or is
refused by its name. Frozen parameters are data, and calibration works as for built-in models.
Method: a table of all options that --help lists, so that a new one must be put into it; a small
graph of fixtures/corpus with weights of its own, and no PyTorch."""

import json
import os
import random
import re
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../support")]
sys.dont_write_bytecode = True

from program import ask, call, main, path  # noqa: E402

PARAMETERS = {"0.weight": (16, 8), "0.bias": (16,), "2.weight": (4, 16), "2.bias": (4,)}

# What changes a job of a graph.
WORKS = {
    "--bits": "14", "--block": "32", "--equilibrate": "none", "--calibrate": "step", "--steps": "9",
    "--segment-steps": "2", "--seed": "3", "--accumulate": "2", "--accumulate-group": "2",
    "--optimizer": "lion", "--schedule": "cosine", "--rate": "0.01", "--rate-min": "0.0002",
    "--rate-of": "0.*=0.1", "--warmup": "2", "--warmup-share": "0.3", "--cycles": "3",
    "--power": "2", "--cooldown": "2", "--decay": "0.2", "--decay-of": "*.bias=0.1",
    "--freeze": "0.*", "--beta1": "0.8", "--beta2": "0.9", "--epsilon": "0.001", "--momentum": "0.5",
    "--clip": "0.5", "--gradient-norm": None, "--eval": "x.npy", "--eval-every": "2",
    "--eval-batches": "1", "--title": "a", "--model-name": "b", "--memory": "1G",
    "--compute-capability": "70", "--contraction-rate": "1", "--data": None, "--graph": None,
    "--first-state": None, "--out": None}
# Without these the option would change nothing, and is refused.
BESIDE = {"--cycles": ["--schedule", "cosine-restarts"], "--power": ["--schedule", "polynomial"],
          "--cooldown": ["--schedule", "stable-decay"], "--momentum": ["--optimizer", "sgd"],
          "--block": ["--bits", "14"], "--equilibrate": ["--bits", "14"],
          "--calibrate": ["--bits", "14"], "--accumulate-group": ["--accumulate", "4"]}
# What is of other jobs.
REFUSED = {
    "--model": "mlp", "--base": "folder", "--lora": "2", "--adapter": "folder", "--lora-alpha": "1",
    "--lora-stabilized": None, "--lora-dropout": "0.1", "--lora-plus": "4", "--target": "q",
    "--train-whole": "head", "--tape": "t", "--constants": "c", "--positions": "8",
    "--vocabulary": "9", "--layers": "1", "--heads": "1", "--kv-heads": "1", "--rotary-base": "9",
    "--norm-epsilon": "0.1", "--width": "8", "--hidden": "8", "--classes": "4", "--dropout": "0.1",
    "--inference": None, "--dpo": "0.1", "--epochs": "2", "--batch": "3", "--label-smoothing": "0.1",
    "--z-loss": "0.1", "--mask": "m", "--labels": "l", "--data-type": "f32", "--length": "4",
    "--eval-labels": "l", "--receipt": "r"}
# Of every command.
COMMON = {"--help", "--json", "--config", "--log-level", "--log-format"}
# Of a training: a graph without a loss refuses them.
OF_LOSS = ["--equilibrate", "--accumulate", "--accumulate-group", "--optimizer", "--schedule",
           "--rate", "--rate-min", "--rate-of", "--warmup", "--warmup-share", "--cycles", "--power",
           "--cooldown", "--decay", "--decay-of", "--freeze", "--beta1", "--beta2", "--epsilon",
           "--momentum", "--clip", "--gradient-norm", "--eval"]


def save_rows(name, letter, shape, values):
    head = "{'descr': '<%s4', 'fortran_order': False, 'shape': %s, }" % (letter, tuple(shape))
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    with open(path(name), "wb") as file:
        file.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode())
        file.write(struct.pack("<%d%s" % (len(values), {"f": "f", "u": "I"}[letter]), *values))


def save_tensors(name, tensors):
    """tensors: name: (type, shape, bytes)"""
    header, body = {}, b""
    for key, (kind, shape, data) in tensors.items():
        header[key] = {"dtype": kind, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    head = json.dumps(header).encode()
    with open(path(name), "wb") as file:
        file.write(struct.pack("<Q", len(head)) + head + body)


def prepare():
    draw = random.Random(1)
    with open("fixtures/corpus/graph/mlp", encoding="ascii") as file:
        lines = file.read().rstrip().split("\n")
    calls = [line for line in lines[1:] if line.split()[1] not in ("input", "param")]
    with open(path("mlp.graph"), "w", encoding="ascii") as file:
        file.write("\n".join(lines + ["eval"] + calls) + "\n")
    save_tensors("mlp.safetensors", {
        name: ("F32", shape, struct.pack("<%df" % (n := shape[0] * (shape + (1,))[1]), *(
            draw.gauss(0, 0.3) * (50 if i % 8 == 3 else 1) for i in range(n))))
        for name, shape in PARAMETERS.items()})
    save_rows("x.npy", "f", (60, 8), [draw.gauss(0, 1) for _ in range(480)])
    save_rows("y.npy", "u", (60,), [draw.randrange(4) for _ in range(60)])


def data(option="--data"):
    return [option, "x=" + path("x.npy"), option, "y=" + path("y.npy")]


def job(*more, wanted=0, name="made.job"):
    if os.path.exists(path(name)):
        os.remove(path(name))
    words = ["--graph", path("mlp.graph"), "--first-state", path("mlp.safetensors"), *data(),
             "--out", path(name)]
    for option, value in (("--steps", "8"), ("--segment-steps", "4")):
        words += [] if option in more else [option, value]
    return ask("job", "new", *words, *more, wanted=wanted)


def listed():
    text = call("job", "new", "--help", "all").stdout.decode()
    return set(re.findall(r"^  (--[a-z0-9-]+)", text, re.M)) - COMMON


def every_option_says_something_or_is_refused():
    prepare()
    assert listed() == set(WORKS) | set(REFUSED), listed() ^ (set(WORKS) | set(REFUSED))
    plain = job()["id"]
    for option, value in WORKS.items():
        beside = BESIDE.get(option, [])
        if option.startswith("--eval"):
            beside = data("--eval")
        words = beside + ([option] + ([] if value is None else [value])
                          if option not in ("--eval", "--data", "--graph", "--first-state", "--out")
                          else [])
        if words:
            made = job(*words)["id"]
            assert made != (job(*beside)["id"] if beside and words != beside else plain), option
    for option, value in REFUSED.items():
        said = job(option, *([] if value is None else [value]), wanted=3)["error"]["message"]
        assert said == option + " says nothing about a graph: its program is fixed", said
    for option, value in BESIDE.items():
        if option not in ("--block", "--equilibrate", "--calibrate", "--accumulate-group"):
            said = job(option, WORKS[option], wanted=3)["error"]["message"]
            assert option + " says nothing of the " in said, said


def a_graph_without_a_loss_learns_nothing():
    with open("fixtures/corpus/graph/steps", encoding="ascii") as file:
        text = file.read()
    with open(path("steps.graph"), "w", encoding="ascii") as file:
        file.write("\n".join(line for line in text.split("\n") if not line.startswith("expect ")))
    save_tensors("steps.safetensors", {
        "u": ("F32", (6, 5), struct.pack("<30f", *range(30))),
        "old": ("F32", (6, 5), bytes(120)), "n": ("U32", (1,), bytes(4))})
    words = ["job", "new", "--graph", path("steps.graph"), "--first-state",
             path("steps.safetensors"), "--out", path("steps.job")]
    for option in OF_LOSS:
        value = WORKS[option]
        said = ask(*words, *BESIDE.get(option, []), option, *([] if value is None else [value]),
                   wanted=3)["error"]["message"]
        named = [option, *BESIDE.get(option, [])[:1]]
        assert any(said.startswith(one + " says nothing ") for one in named) or \
            option == "--eval", (option, said)
    ask(*words)


def frozen_parameters_are_data():
    """They have no gradient, no moment and no place in a checkpoint; held-out data are found with
    them; what is left learns."""
    prepare()
    made = job("--freeze", "0.*", "--rate", "0.05", *data("--eval"), name="frozen.job")
    assert made["facts"]["frozen_parameters"] == 16 * 8 + 16, made["facts"]
    assert made["facts"]["parameters"] == 4 * 16 + 4, made["facts"]
    read = [*data(), "--data", path("mlp.safetensors"), "--data", "held_out.x=" + path("x.npy"),
            "--data", "held_out.y=" + path("y.npy")]
    ask("prover", "run", path("frozen.job"), "--first-state", path("mlp.safetensors"), *read,
        "--bundle", path("frozen.run"))
    folder = path("frozen.run/checkpoints")
    with open(os.path.join(folder, sorted(os.listdir(folder))[-1]), "rb") as file:
        names = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    assert not [name for name in names if "0." in name and "2." not in name], sorted(names)
    assert "2.weight" in names and "m.2.weight" in names, sorted(names)
    losses = [step["loss"] for step in ask("bundle", "steps", path("frozen.run"))["steps"]]
    assert losses[-1] < losses[0], losses
    audit, = ask("audit", path("frozen.run"), *read)["audits"]
    assert audit["answer"] == "proven", audit
    for pattern, words in (("3.*", "no parameter has a name like '3.*'"),
                           ("*", "all parameters are frozen"), ("", "1 to 127 letters"),
                           ("x" * 128, "1 to 127 letters")):
        said = job("--freeze", pattern, wanted=3)["error"]["message"]
        assert words in said, said
    said = job("--freeze", "0.*", "--rate-of", "0.*=0.1", wanted=3)["error"]["message"]
    assert "no tensor that is trained has a name like '0.*'" in said, said


def names_may_be_long():
    """Of 125 bytes, of inputs 118: with m. or v. before them, or held_out., they have at most 127."""
    prepare()
    with open(path("mlp.graph"), encoding="ascii") as file:
        text = file.read()
    for more in (0, 1):
        weight, rows = "w" * (118 + more) + ".weight", "x" * (118 + more)
        for name, words in ((weight, ("param 0.weight", "param " + weight)),
                            (rows, ("input x", "input " + rows))):
            if more == 1 and name is rows:
                weight = "0.weight"
            with open(path("mlp.graph"), "w", encoding="ascii") as file:
                file.write(text.replace(*words))
            with open(path("mlp.safetensors"), "rb") as file:
                size, = struct.unpack("<Q", file.read(8))
                header, body = json.loads(file.read(size)), file.read()
            prepare()
            values = {key: (one["dtype"], one["shape"], body[slice(*one["data_offsets"])])
                      for key, one in header.items()}
            if name is not rows:
                values[name] = values.pop("0.weight")
            with open(path("mlp.graph"), "w", encoding="ascii") as file:
                file.write(text.replace(*words))
            save_tensors("mlp.safetensors", values)
            files = [one.replace("x=", rows + "=", 1) if name is rows and one.startswith("x=") else one
                     for one in data()]
            words = ["job", "new", "--graph", path("mlp.graph"), "--first-state",
                     path("mlp.safetensors"), *files, "--steps", "4", "--out", path("long.job")]
            if os.path.exists(path("long.job")):
                os.remove(path("long.job"))
            if more == 1:
                said = ask(*words, wanted=1)["error"]["message"]
                assert "over 125 bytes" in said or "over 118 bytes" in said, said
                prepare()
                continue
            ask(*words)
            ask("prover", "run", path("long.job"), "--first-state", path("mlp.safetensors"),
                *files, "--bundle", path("long%d.run" % (name is rows)))
            audit, = ask("audit", path("long%d.run" % (name is rows)), *files)["audits"]
            assert audit["answer"] == "proven", audit
            prepare()


def a_calibration_shifts_channels_that_differ():
    prepare()
    plain = job("--bits", "14")["precision"]
    shifted = job("--bits", "14", "--calibrate", "step")["precision"]
    assert plain != shifted, (plain, shifted)
    ask("prover", "run", path("made.job"), "--first-state", path("mlp.safetensors"), *data(),
        "--bundle", path("calibrated.run"))
    audit, = ask("audit", path("calibrated.run"), *data())["audits"]
    assert audit["answer"] == "proven", audit


def shares(name):
    modules = ask("job", "show", path(name))["modules"]
    assert abs(sum(one["share"] for one in modules) - 1) < 1e-9, modules
    return {one["module"]: one for one in modules}


def job_show_says_which_module_does_what():
    """Of a graph by its lines `at`; of a model that is built in by the weights that are read."""
    prepare()
    with open(path("mlp.graph"), encoding="ascii") as file:
        text = file.read()
    job()
    plain = shares("made.job")
    assert set(plain) == {"0", "1", "2", "loss", "(others)", "(update)"}, plain
    # Rows of 6: forward, and the gradients of weights and of inputs, which the first layer lacks.
    first, last = plain["0"]["share"] / (2 * 6 * 8 * 16), plain["2"]["share"] / (3 * 6 * 16 * 4)
    assert plain["0"]["parameters"] == 144 and plain["2"]["parameters"] == 68, plain
    assert [one["shape"] for one in plain["0"]["tensors"]] == [[16, 8], [16]], plain
    assert first > 0 and 1 <= first / last < 2 or 1 <= last / first < 2, plain
    job("--accumulate", "4", "--freeze", "0.*", *data("--eval"))
    more = shares("made.job")
    assert more["0"]["frozen_parameters"] == 144 and more["0"]["parameters"] == 0, more["0"]
    assert more["0"]["share"] / more["2"]["share"] < 0.6 * first / last * 4 / 3, more
    assert more["(held-out)"]["share"] > 0.02, more
    with open(path("mlp.graph"), "w", encoding="ascii") as file:
        file.write(text.replace("at 2 ", "at encoder.layers.3.out "))
    job()
    moved = shares("made.job")
    assert moved["encoder.layers.3.out"]["share"] == plain["2"]["share"], moved
    assert moved["2"]["share"] == 0 and moved["2"]["parameters"] == 68, moved

    size = ["--layers", "3", "--heads", "4", "--width", "64", "--length", "64", "--batch", "8"]
    ask("job", "new", "--model", "gpt2", "--data", "fixtures/text/village.u8", *size, "--steps", "3",
        "--out", path("gpt.job"))
    found = shares("gpt.job")
    product = found["h.1.mlp.c_fc"]["share"] / (64 * 256)
    for name, others in (("h.0.mlp.c_proj", 64 * 256), ("h.2.attn.c_proj", 64 * 64),
                         ("wte", 64 * 256), ("h.2.attn.c_attn", 64 * (192 + 2 * 64))):
        assert 0.9 < found[name]["share"] / product / others < 1.1, (name, found[name], product)
    text = call("job", "show", path("gpt.job")).stdout.decode()
    assert re.search(r"^  h\.1 +49984 +3\d\.\d\d %$", text, re.M) or re.search(
        r"^  h\.1 +49984 +2\d\.\d\d %$", text, re.M), text
    assert "--modules shows all" in text and "c_fc" not in text, text
    text = call("job", "show", path("gpt.job"), "--modules").stdout.decode()
    assert re.search(r"^  h\.1\.mlp\.c_fc +16640 +\d+\.\d\d %  weight \(64, 256\)  bias \(256\)$",
                     text, re.M), text


if __name__ == "__main__":
    sys.exit(main([every_option_says_something_or_is_refused, a_graph_without_a_loss_learns_nothing,
                   frozen_parameters_are_data,
                   job_show_says_which_module_does_what, names_may_be_long,
                   a_calibration_shifts_channels_that_differ]))
