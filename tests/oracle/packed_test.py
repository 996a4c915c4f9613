"""Goal: a job on packed rows reads every row once per epoch, sees no example from another, counts
positions from each example's beginning, learns what the mask says, and looks at held-out rows, as
PyTorch does in float64.
Method: a few examples packed by `data pack`; batches drawn again by tests/engine/ops/
batch_rows_reference.py; small random folders of two families; losses, weights, held-out loss and
accuracy. Folders that are not what they say are refused by name. Skipped where PyTorch is not
installed."""

import json
import math
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, part) for part in ("../support", "../data", "../engine/ops", "")]
sys.dont_write_bytecode = True

try:
    import torch
except ImportError:
    print("skip: PyTorch is not installed (Debian: apt-get install python3-torch)")
    sys.exit(77)

import batch_rows_reference as draws  # noqa: E402
import tokenizers  # noqa: E402
import torch_decoder as reference  # noqa: E402
from base_test import FAMILIES  # noqa: E402
from program import ask, call, main, path  # noqa: E402

torch.set_num_threads(1)
LENGTH, BATCH, ACCUMULATE, EPOCHS, EVAL_BATCHES = 24, 2, 2, 3, 2
RATE, WARMUP, VOCABULARY = 0.002, 2, 272
CONFIGS = {"gpt2": dict(FAMILIES["gpt2"][0], vocab_size=VOCABULARY, n_positions=30, n_ctx=30),
           "qwen2": dict(FAMILIES["qwen2"][0], vocab_size=VOCABULARY)}


def base_of(family):
    folder = path(family)
    weights = reference.draw_weights(CONFIGS[family], "F32")
    if not os.path.exists(folder):
        reference.write_folder(folder, CONFIGS[family], weights, "F32", 1, FAMILIES[family][3])
        tokenizers.write(folder, tokenizers.byte_level())
    return folder, weights


def pack(name, tokenizer, *more):
    """A folder of rows: sums, of which the answer is learned."""
    source = path(name + ".jsonl")
    with open(source, "w", encoding="ascii") as file:
        for a in range(40):
            file.write(json.dumps({"prompt": "%d+%d=" % (a, a), "completion": str(2 * a)}) + "\n")
    if not os.path.exists(path(name)):
        ask("data", "pack", source, "--tokenizer", tokenizer, "--length", str(LENGTH), "--out",
            path(name), *more)
    return path(name)


def rows_of(folder, held_out=False):
    """Tokens, mask and reach, each (rows, length)."""
    found = tokenizers.rows(folder, held_out)[:3]
    return [torch.tensor(part) for part in found]


def manifest_of(folder):
    with open(os.path.join(folder, "manifest.json"), encoding="ascii") as file:
        return json.load(file)


def drawn(rows, numbers):
    """What a batch of these rows has: tokens, targets, mask of the targets, reach."""
    numbers = list(numbers)
    tokens, mask, reach = (part[numbers] for part in rows)

    def ahead(part, past):
        return torch.cat((part[:, 1:], torch.full((len(part), 1), past)), 1)

    return tokens, ahead(tokens, 0), ahead(mask, 0), reach


def new_job(name, base, folder, *more, wanted=0):
    return ask("job", "new", "--base", base, "--data", folder, "--batch", str(BATCH), "--accumulate",
               str(ACCUMULATE), "--bits", "22", "--rate", str(RATE), "--rate-min", "0.0001",
               "--schedule", "cosine", "--warmup", str(WARMUP), "--beta2", "0.95", "--decay", "0.1",
               "--segment-steps", "50", "--out", path(name + ".job"), *more, wanted=wanted)


def run(name, base, folder):
    bundle = path(name + ".run")
    ask("prover", "run", path(name + ".job"), "--data", folder, "--first-state", base, "--bundle",
        bundle)
    steps = ask("bundle", "steps", bundle)["steps"]
    last = sorted(os.listdir(os.path.join(bundle, "checkpoints")))[-1]
    return steps, reference.read_safetensors(os.path.join(bundle, "checkpoints", last))


def course_of(rows, steps):
    """Batches, masks and reaches of each micro-batch of each step."""
    count = len(rows[0])
    parts = [[drawn(rows, draws.rows_at(step * ACCUMULATE + micro, BATCH, count))
              for micro in range(ACCUMULATE)] for step in range(steps)]
    batches = [[part[:2] for part in step] for step in parts]
    masks = [[part[2] for part in step] for step in parts]
    return batches, masks, [part[3] for step in parts for part in step]


def train(family, weights, course, reaches):
    batches, masks, _ = course
    decoder = reference.Decoder(CONFIGS[family], weights)
    decoder.reaches = reaches
    rates = [reference.rate_at(step, len(batches), WARMUP, RATE, 0.0001)
             for step in range(len(batches))]
    return reference.train(decoder, weights, batches, rates, masks=masks)


def largest(losses, wanted):
    return max(abs(a - b) / b for a, b in zip(losses, wanted))


def check_training(family):
    base, weights = base_of(family)
    folder = pack("packed", base)
    rows = rows_of(folder)
    count = len(rows[0])
    made = new_job(family, base, folder, "--epochs", str(EPOCHS))
    steps = -(-EPOCHS * count // (BATCH * ACCUMULATE))
    facts = made["facts"]
    assert (made["steps"], facts["rows"], facts["epochs"], facts["length"]) == (
        steps, count, EPOCHS, LENGTH), made
    assert facts["rows_of_next_epoch"] == steps * BATCH * ACCUMULATE - EPOCHS * count
    side = manifest_of(folder)["rows"]
    assert made["data"] == [side[part]["root"] for part in ("tokens", "mask", "reach")], made["data"]

    seen = [row for step in range(steps * ACCUMULATE) for row in draws.rows_at(step, BATCH, count)]
    for epoch in range(EPOCHS):
        assert sorted(seen[epoch * count:(epoch + 1) * count]) == list(range(count)), epoch

    steps_done, state = run(family, base, folder)
    losses = [step["loss"] for step in steps_done]
    course = course_of(rows, steps)
    before = {key: t.clone() for key, t in weights.items()}
    blind = train(family, {key: t.clone() for key, t in weights.items()}, course, None)
    wanted = train(family, weights, course, iter(course[2]))
    moved = sum(float((weights[key] - t).pow(2).sum()) for key, t in before.items()) ** 0.5
    apart = sum(float((state[key].double() - t).pow(2).sum()) for key, t in weights.items()) ** 0.5
    print("# %s, %d rows, %d steps: loss %.2e apart, weights %.2e of their way; without reach %.2e" % (
        family, count, steps, largest(losses, wanted), apart / moved, largest(losses, blind)))
    assert largest(losses, wanted) <= 1e-4, (losses, wanted)
    assert apart <= 0.02 * moved, apart / moved
    assert largest(losses, blind) > 1e-3, "what stands before an example changes nothing?"
    audit, = ask("audit", path(family + ".run"), "--data", folder)["audits"]
    assert audit["answer"] == "proven", audit


def training_of_learned_positions():
    check_training("gpt2")


def training_of_turned_positions():
    check_training("qwen2")


def held_out_rows_are_looked_at_in_their_order():
    base, _ = base_of("qwen2")
    folder = pack("parted", base, "--held-out", "0.3")
    made = new_job("looked", base, folder, "--steps", "3", "--eval", folder, "--eval-batches",
                   str(EVAL_BATCHES))
    side = manifest_of(folder)["held_out"]
    assert made["data"][3:] == [side[part]["root"] for part in ("tokens", "mask", "reach")]
    steps, state = run("looked", base, folder)
    tokens, targets, mask, reach = drawn(rows_of(folder, True), range(EVAL_BATCHES * BATCH))
    decoder = reference.Decoder(CONFIGS["qwen2"], {key: state[key].double() for key in state
                                                   if key.startswith("model.")})
    decoder.reaches = iter([reach])
    logits = decoder(tokens)
    counted = mask != 0
    loss = torch.nn.functional.cross_entropy(logits[counted], targets[counted])
    right = (logits.argmax(-1) == targets)[counted].double().mean()
    print("# held out: loss %s, of PyTorch %.6f; accuracy %s of %d targets, %.6f" % (
        steps[-1]["held_out_loss"], loss, steps[-1]["held_out_accuracy"], int(counted.sum()), right))
    assert abs(steps[-1]["held_out_loss"] - float(loss)) <= 1e-4 * float(loss)
    assert abs(steps[-1]["held_out_accuracy"] - float(right)) <= 1e-6


def figures_of(state, rows, numbers):
    """Loss and accuracy over the counted targets of these rows, in float64."""
    tokens, targets, mask, reach = drawn(rows, numbers)
    decoder = reference.Decoder(CONFIGS["qwen2"], {key: state[key].double() for key in state
                                                   if key.startswith("model.")})
    decoder.reaches = iter([reach])
    logits = decoder(tokens)
    counted = mask != 0
    return (float(torch.nn.functional.cross_entropy(logits[counted], targets[counted])),
            float((logits.argmax(-1) == targets)[counted].double().mean()))


def job_eval_goes_over_all_rows():
    base, _ = base_of("qwen2")
    folder = pack("parted", base, "--held-out", "0.3")
    new_job("whole", base, folder, "--steps", "3", "--eval", folder, "--eval-batches", "1")
    steps, state = run("whole", base, folder)
    for where, held_out, more in ((folder, True, 0), (pack("packed", base), False, 1)):
        rows = rows_of(where, held_out)
        count = len(rows[0])
        assert count % BATCH == 1 or more, "the last batch is no whole one"
        data = ["--data", where]
        out = path("all%d.job" % more)
        made = ask("job", "eval", path("whole.run"), *data, "--out", out)
        loss, right = figures_of(state, rows, range(count))
        print("# %d rows: loss %.6f, of PyTorch %.6f; accuracy %.6f, %.6f" % (
            count, made["loss"], loss, made["accuracy"], right))
        assert abs(made["loss"] - loss) <= 1e-4 * loss and abs(made["accuracy"] - right) <= 1e-6
        assert abs(made["perplexity"] - math.exp(made["loss"])) <= 1e-9 * made["perplexity"]
        assert made["loss"] != steps[-1]["held_out_loss"], "one batch is not all rows"
        again = ask("prover", "run", out, *data, "--first-state", made["path"], "--bundle", out + ".run")
        assert again["steps"] == -(-count // BATCH), again
        last = ask("bundle", "steps", out + ".run")["steps"][-1]
        assert (last["held_out_loss"], last["held_out_accuracy"]) == (made["loss"], made["accuracy"])
        audit, = ask("audit", out + ".run", *data)["audits"]
        assert audit["answer"] == "proven", audit
    assert abs(steps[-1]["held_out_perplexity"] - math.exp(steps[-1]["held_out_loss"])) <= 1e-3


def what_is_no_such_folder_is_refused_by_name():
    base, _ = base_of("qwen2")
    folder = pack("packed", base)

    def refused(words, *more, where=folder, wanted=3):
        told = new_job("refused", base, where, *more, wanted=wanted)["error"]["message"]
        assert words in told, told

    refused("says it itself", "--mask", os.path.join(folder, "mask.u8"))
    refused("have 24 tokens", "--length", "16")
    refused("leave --steps out", "--epochs", "2", "--steps", "5")
    refused("has no held-out rows", "--eval", folder)
    refused("has packed rows, and these are none", "--eval", "fixtures/text/village.u8")
    other = pack("bytes", "bytes")
    refused("its rows are bytes", where=other, wanted=1)
    changed = path("changed")
    shutil.copytree(folder, changed)
    with open(os.path.join(changed, "tokens.u16"), "r+b") as file:
        file.seek(8)
        file.write(b"\x01")
    refused("tokens.u16 is not what its manifest says", where=changed, wanted=1)
    with open(os.path.join(base, "tokenizer.json"), "a", encoding="ascii") as file:
        file.write("\n")
    refused("of another tokenizer.json than the one in", wanted=1)
    done = call("job", "new", "--data", "fixtures/text/village.u8", "--epochs", "2", wanted=3)
    assert b"--epochs counts packed rows" in done.stderr, done.stderr


if __name__ == "__main__":
    sys.exit(main([training_of_learned_positions, training_of_turned_positions,
                   held_out_rows_are_looked_at_in_their_order, job_eval_goes_over_all_rows,
                   what_is_no_such_folder_is_refused_by_name]))
