"""Goal: the held-out loss and accuracy of a job are those of its parameters on fixed batches of the
held-out file, as PyTorch finds them; they change nothing of the training, and stand in every state.
Method: the parameters of each checkpoint are given to the published formulas in float64 (a GPT-2, a
Llama, adapters on frozen weights, a classifier), the batches are drawn again; the same jobs without
held-out data; --recompute, --hoist, micro-batches. `job eval` finds the same bits as a job of its
own, from bundle, checkpoint and model file, also over adapters, and refuses what does not fit.
Skipped where PyTorch is not installed."""

import json
import math
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../support"), HERE]
sys.dont_write_bytecode = True

try:
    import torch
except ImportError:
    print("skip: PyTorch is not installed (Debian: apt-get install python3-torch)")
    sys.exit(77)

import torch_decoder as reference  # noqa: E402
from base_test import BATCH, LENGTH, folder_of, near, tokens_of  # noqa: E402
from program import ask, call, main, path  # noqa: E402

torch.set_num_threads(1)
STEPS, EVERY, BATCHES = 10, 4, 3
DUE = [3, 7, 9]  # after 4 steps, after 8, after the last
WORDS = ["--steps", str(STEPS), "--segment-steps", "1", "--bits", "22", "--warmup", "2"]
EVAL = ["--eval-every", str(EVERY), "--eval-batches", str(BATCHES)]


def write(name, data):
    with open(path(name), "wb") as file:
        file.write(data)
    return path(name)


def write_npy(name, data, shape):
    head = "{'descr': '|u1', 'fortran_order': False, 'shape': %r, }" % (shape,)
    head = head.ljust(117) + "\n"
    return write(name, b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode()
                 + bytes(data))


def run(job, data, *more):
    bundle = job + ".run"
    files = [word for name in data for word in ("--data", name)]
    ask("prover", "run", path(job + ".job"), *files, "--bundle", path(bundle), *more)
    steps = ask("bundle", "steps", path(bundle))["steps"]
    states = {}
    for name in os.listdir(path(bundle + "/checkpoints")):
        states[int(name[:12])] = reference.read_safetensors(path(bundle + "/checkpoints/" + name))
    return steps, states


def figures_stand_where_they_are_due(steps, states, accuracy=False):
    for step in steps:
        due = step["step"] in DUE
        assert (step["held_out_loss"] is not None) == due, step
        assert (step["held_out_accuracy"] is not None) == (due and accuracy), step
    last = [0.0]
    for step in steps:
        last = [step["held_out_loss"]] if step["step"] in DUE else last
        assert states[step["step"] + 1]["held_out.loss"].tolist() == last, step


def training_is_the_same(steps, states, other_steps, other_states):
    assert [step["loss"] for step in steps] == [step["loss"] for step in other_steps]
    for step, state in other_states.items():
        assert set(states[step]) - set(state) <= {"held_out.loss", "held_out.accuracy"}
        assert all(torch.equal(state[name], states[step][name]) for name in state)


def lighten(checkpoint, model):
    """The tensors that 'job fetch' writes: no moments, no counters, no figures."""
    with open(checkpoint, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        entries = json.loads(file.read(size))
        body = file.read()
    kept, data = {}, b""
    for name, entry in entries.items():
        if name[:2] in ("m.", "v.") or name == "__metadata__" or name.startswith("held_out.") or (
                entry["dtype"] != "F32"):
            continue
        start, end = entry["data_offsets"]
        kept[name] = dict(entry, data_offsets=[len(data), len(data) + end - start])
        data += body[start:end]
    head = json.dumps(kept).encode()
    head += b" " * (-len(head) % 8)
    with open(model, "wb") as file:
        file.write(struct.pack("<Q", len(head)) + head + data)


def evaluation_is_the_same(stem, steps, files):
    """Of each step that was due: the same bits as the job's own, from the bundle and from a file."""
    data = [word for name in files for word in ("--data", name)]
    for step in DUE:
        made = ask("job", "eval", path(stem + ".run"), "--step", str(step + 1), *data)
        for figure in ("loss", "accuracy"):
            assert made[figure] == steps[step]["held_out_" + figure], (stem, step, made)
    out = path(stem + ".eval.job")
    last = ask("job", "eval", path(stem + ".run"), *data, "--out", out)
    assert last == dict(made, out=out)  # the newest checkpoint is the default
    again = ask("prover", "run", out, *data, "--first-state", made["path"], "--bundle", out + ".run")
    assert again["steps"] == 1
    step, = ask("bundle", "steps", out + ".run")["steps"]
    assert step["held_out_loss"] == made["loss"] and step["held_out_accuracy"] == made["accuracy"]
    audit, = ask("audit", out + ".run", *data)["audits"]
    assert audit["answer"] == "proven", audit
    model = path(stem + ".model.safetensors")
    lighten(made["path"], model)
    lone = ask("job", "eval", path(stem + ".job"), "--checkpoint", model, *data)
    assert lone["loss"] == made["loss"] and lone["accuracy"] == made["accuracy"]


def mean_loss(decoder, data, first_stream):
    total = 0.0
    for chunk in range(BATCHES):
        at = list(reference.starts(len(data), LENGTH, BATCH, 0, 1, first_stream + chunk))
        tokens = torch.stack([data[s:s + LENGTH] for s in at])
        targets = torch.stack([data[s + 1:s + LENGTH + 1] for s in at])
        logits = decoder(tokens)
        total += float(torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()))
    return total / BATCHES


def decoder_case(family, *more):
    def test():
        folder, config, weights = folder_of(family, False)
        everything = tokens_of(2600)
        train = write("train.u8", bytes(everything[:2000].tolist()))
        held = write("held.u8", bytes(everything[2000:].tolist()))
        stem = family + "".join(more).replace("-", "")
        base = ["job", "new", "--base", folder, "--data", train, "--data-type", "u8", "--length",
                str(LENGTH), "--batch", str(BATCH), *WORDS, *more]
        ask(*base, "--out", path("plain." + stem + ".job"))
        ask(*base, "--eval", held, *EVAL, "--out", path(stem + ".job"))
        first = ["--first-state", folder]
        steps, states = run(stem, [train, held], *first)
        figures_stand_where_they_are_due(steps, states)
        training_is_the_same(steps, states, *run("plain." + stem, [train], *first))
        worst = 0.0
        for step in DUE:
            state = states[step + 1]
            wanted = mean_loss(
                reference.Decoder(config, {name: state[name].double() for name in weights}),
                everything[2000:], 1)
            near(steps[step]["held_out_loss"], wanted, 2e-6, (family, step))
            worst = max(worst, abs(steps[step]["held_out_loss"] / wanted - 1))
        print("# %s: held-out loss %.1e apart" % (stem, worst))
        for option in ("--recompute", "--hoist"):  # the same bits
            bundle = path(stem + option)
            ask("prover", "run", path(stem + ".job"), "--data", train, "--data", held, *first,
                "--bundle", bundle, option)
            assert ask("bundle", "steps", bundle)["steps"][-1]["state_root"] == (
                steps[-1]["state_root"])
        evaluation_is_the_same(stem, steps, [held])
        other = write("other.u8", bytes(everything[300:1500].tolist()))  # another length too
        found = ask("job", "eval", path(stem + ".run"), "--data", other)
        near(found["loss"], mean_loss(
            reference.Decoder(config, {name: state[name].double() for name in weights}),
            everything[300:1500], 1), 2e-6, family)
        assert abs(found["perplexity"] / math.exp(found["loss"]) - 1) < 1e-12
        # The model that a client fetches has the tensors of the model alone.
        call("bundle", "export", path(stem + ".run"), "--hf", path(stem + ".hf"), "--base", folder)
        audit, = ask("audit", path(stem + ".run"), "--data", train, "--data", held)["audits"]
        assert audit["answer"] == "proven" and audit["steps_checked"] == STEPS

    test.__name__ = "decoder_%s%s" % (family, "".join(more).replace("-", "_"))
    return test


def classifier_counts_right_answers():
    width, count, held_count = 12, 300, 90
    generator = torch.Generator().manual_seed(5)
    labels = torch.randint(0, 4, (count + held_count,), generator=generator)
    centres = torch.randint(40, 200, (4, width), generator=generator)
    noise = torch.randint(-40, 40, (count + held_count, width), generator=generator)
    samples = (centres[labels] + noise).clamp(0, 255)
    files = []
    for name, rows in (("train", slice(0, count)), ("held", slice(count, None))):
        some = samples[rows].flatten().tolist()
        files.append(write_npy(name + ".npy", some, (len(some) // width, width)))
        files.append(write_npy(name + "-labels.npy", labels[rows].tolist(), (len(some) // width,)))
    words = ["job", "new", "--model", "mlp", "--data", files[0], "--labels", files[1], "--classes",
             "4", "--hidden", "8", "--batch", "16", "--dropout", "0.2", "--rate", "0.01", *WORDS]
    ask(*words, "--out", path("plain.mlp.job"))
    ask(*words, "--eval", files[2], "--eval-labels", files[3], *EVAL, "--out", path("mlp.job"))
    steps, states = run("mlp", files)
    evaluation_is_the_same("mlp", steps, files[2:])
    figures_stand_where_they_are_due(steps, states, accuracy=True)
    training_is_the_same(steps, states, *run("plain.mlp", files[:2]))
    for step in DUE:
        p = {name: t.double() for name, t in states[step + 1].items()}
        loss = right = 0.0
        for chunk in range(BATCHES):
            rows = [(reference.philox([b, 0, 3 + chunk, 0], [1, 0])[1] << 32
                     | reference.philox([b, 0, 3 + chunk, 0], [1, 0])[0]) * held_count >> 64
                    for b in range(16)]  # streams 0 to 2: the batch, two dropouts
            x = samples[count:][rows].double() * float(torch.tensor(1 / 255, dtype=torch.float32))
            for layer in ("layers.0", "layers.1"):
                x = (x @ p[layer + ".weight"].T + p[layer + ".bias"]).relu()
            logits = x @ p["head.weight"].T + p["head.bias"]
            wanted = labels[count:][rows]
            loss += float(torch.nn.functional.cross_entropy(logits, wanted)) / BATCHES
            right += float((logits.argmax(1) == wanted).double().mean()) / BATCHES
        near(steps[step]["held_out_loss"], loss, 2e-6, step)
        near(steps[step]["held_out_accuracy"], right, 1e-6, step)
    print("# accuracy %.3f, then %.3f" % (steps[3]["held_out_accuracy"],
                                          steps[9]["held_out_accuracy"]))
    assert steps[9]["held_out_accuracy"] > 0.3  # a guess has a quarter


def what_is_said_of_no_held_out_data_is_refused():
    data = write("some.u8", bytes(tokens_of(500).tolist()))
    words = ["job", "new", "--data", data, *WORDS, "--out", path("x.job")]
    for more, said in ((["--eval-every", "3"], "--eval-every says nothing without --eval"),
                       (["--eval-batches", "3"], "--eval-batches says nothing"),
                       (["--eval", path("none")], "none"),
                       (["--eval", data, "--inference"], "of a training"),
                       (["--eval", data, "--eval-labels", data], "says nothing about")):
        error = ask(*words, *more, wanted=3)["error"]
        assert said in error["message"], (more, error)
    short = write("short.u8", bytes(20))
    error = ask(*words, "--eval", short, wanted=1)["error"]["message"]
    assert "'held_out.data' has 20 elements" in error, error
    high = write("high.u8", bytes([200] * 500))
    assert "200" in ask(*words, "--vocabulary", "96", "--eval", high, wanted=1)["error"]["message"]
    assert not os.path.exists(path("x.job"))


def adapters_are_evaluated_over_their_weights():
    folder, _, _ = folder_of("llama3", False)
    everything = tokens_of(2600)
    train = write("train.u8", bytes(everything[:2000].tolist()))
    held = write("held.u8", bytes(everything[2000:].tolist()))
    ask("job", "new", "--base", folder, "--data", train, "--data-type", "u8", "--length",
        str(LENGTH), "--batch", str(BATCH), *WORDS, "--lora", "4", "--eval", held, *EVAL, "--out", path("lora.job"))
    steps, _ = run("lora", [train, folder, held])
    evaluation_is_the_same("lora", steps, [folder, held])


def what_cannot_be_evaluated_is_refused():
    data = write("some.u8", bytes(tokens_of(500).tolist()))
    words = ["job", "new", "--data", data, *WORDS, "--length", "8", "--layers", "1"]
    ask(*words, "--out", path("blind.job"))
    ask(*words, "--eval", data, *EVAL, "--vocabulary", "200", "--out", path("sees.job"))
    run("sees", [data, data], "--keep", "2")
    ask(*words, "--width", "32", "--out", path("narrow.job"))
    run("narrow", [data])
    narrow = path("narrow.run/checkpoints/%012d.safetensors" % STEPS)
    high = write("high.u8", bytes([250] * 500))
    short = write("short.u8", bytes(5))
    cut = write("cut.safetensors", open(narrow, "rb").read()[:-7])
    for words, wanted, said in (
            ([path("blind.job"), "--checkpoint", narrow, "--data", data], 1, "no held-out data"),
            ([path("sees.job"), "--data", data], 3, "--checkpoint"),
            ([path("sees.job"), "--step", "3", "--data", data], 3, "--step"),
            ([path("sees.job"), "--checkpoint", narrow, "--data", data], 1, "32"),
            ([path("sees.job"), "--checkpoint", cut, "--data", data], 1, "cut.safetensors"),
            ([path("sees.run"), "--step", "1", "--data", data], 3, "no checkpoint after 1"),
            ([path("sees.run"), "--step", "11", "--data", data], 3, "checkpoint"),
            ([path("sees.run"), "--data", high], 1, "250"),
            ([path("sees.run"), "--data", short], 1, "held_out.data"),
            ([path("sees.run"), "--data", data, "--data", data], 3, "data"),
            ([path("sees.run"), "--data", path("none")], 3, "none"),
            ([path("none.run"), "--data", data], 3, "none.run")):
        error = ask("job", "eval", *words, "--out", path("never.job"), wanted=wanted)["error"]
        assert said in error["message"] + error.get("advice", ""), (words, error)
    assert not os.path.exists(path("never.job"))
    newest = path("sees.run/checkpoints/%012d.safetensors" % STEPS)
    with open(newest, "r+b") as file:
        file.seek(-9, 2)
        byte = file.read(1)[0]
        file.seek(-9, 2)
        file.write(bytes([byte ^ 1]))
    error = ask("job", "eval", path("sees.run"), "--data", data, wanted=1)["error"]
    assert "not the state that was committed to" in error["message"], error


sys.exit(main([
    decoder_case("gpt2"),
    decoder_case("llama3"),
    decoder_case("qwen3", "--accumulate", "2"),
    classifier_counts_right_answers,
    what_is_said_of_no_held_out_data_is_refused,
    adapters_are_evaluated_over_their_weights,
    what_cannot_be_evaluated_is_refused,
]))
