"""Goal: a training on preference pairs (DPO) is the published one: with adapters the reference is the
model without them, and with all weights trained the first state.
Method: pairs packed by `data pack`; 20 steps of AdamW in PyTorch in float64, on the same pairs, drawn
again by tests/engine/ops/batch_rows_reference.py; losses and weights. The pair whose answer is learned
gains. An audit finds the run true. What does not fit is refused by name. Skipped where PyTorch is not
installed."""

import json
import math
import os
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
import torch_decoder as reference  # noqa: E402
from base_test import TARGETS, adapters_of  # noqa: E402
from packed_test import CONFIGS, LENGTH, base_of, drawn, pack, rows_of  # noqa: E402
from program import ask, call, main, path  # noqa: E402

torch.set_num_threads(1)
F = torch.nn.functional
BATCH, ACCUMULATE, STEPS, BETA, WARMUP, RATE_MIN = 4, 2, 21, 0.4, 2, 0.0001


def pairs_of(base, *more):
    if not os.path.exists(path("pairs.jsonl")):
        with open(path("pairs.jsonl"), "w", encoding="ascii") as file:
            for a in range(23):
                file.write(json.dumps({"prompt": "%d+%d=" % (a, a), "chosen": str(2 * a),
                                       "rejected": str(2 * a + 7 + a % 3)}) + "\n")
    if not os.path.exists(path("pairs")):
        ask("data", "pack", path("pairs.jsonl"), "--tokenizer", base, "--length", str(LENGTH), "--out",
            path("pairs"))
    return path("pairs")


def new_job(name, base, folder, *more, wanted=0, batch=BATCH):
    return ask("job", "new", "--base", base, "--data", folder, "--batch", str(batch), "--accumulate",
               str(ACCUMULATE), "--bits", "22", "--rate-min", str(RATE_MIN), "--schedule", "cosine",
               "--warmup", str(WARMUP), "--beta2", "0.95", "--decay", "0.1", "--steps",
               str(STEPS), "--segment-steps", "1", "--out", path(name + ".job"), *more, wanted=wanted)


def run(name, *files):
    ask("prover", "run", path(name + ".job"), *files, "--bundle", path(name + ".run"))
    place = path(name + ".run/checkpoints/%012d.safetensors")
    return ([step["loss"] for step in ask("bundle", "steps", path(name + ".run"))["steps"]],
            *(reference.read_safetensors(place % step) for step in (1, STEPS)))


def course_of(rows):
    """What each micro-batch of each step has: (tokens, targets, mask, reach)."""
    return [[drawn(rows, draws.rows_at(step * ACCUMULATE + micro, BATCH, len(rows[0]), unit=2))
             for micro in range(ACCUMULATE)] for step in range(STEPS)]


def scores(decoder, part):
    """log-probability of each row."""
    tokens, targets, mask, reach = part
    decoder.reaches = iter([reach])
    kept = F.log_softmax(decoder(tokens), -1).gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    return (kept * (mask != 0)).sum(-1)


def loss_of(decoder, theirs, part):
    own, fixed = scores(decoder, part), scores(theirs, part).detach()
    margins = (own[0::2] - own[1::2]) - (fixed[0::2] - fixed[1::2])
    return -F.logsigmoid(BETA * margins).mean(), margins


def train(decoder, theirs, trained, course, rates, moments):
    for t in trained.values():
        t.requires_grad_()
    optimizer = torch.optim.AdamW(
        [{"params": [t for t in trained.values() if t.dim() > 1], "weight_decay": 0.1},
         {"params": [t for t in trained.values() if t.dim() == 1], "weight_decay": 0.0}],
        lr=rates[0], betas=(0.9, 0.95), eps=1e-8)
    for name, pair in moments.items():
        optimizer.state[trained[name]] = {"step": torch.tensor(1.0), "exp_avg": pair[0],
                                          "exp_avg_sq": pair[1]}
    losses, margins = [], []
    for parts, rate in zip(course, rates):
        optimizer.zero_grad()
        total = 0.0
        for part in parts:
            loss, margin = loss_of(decoder, theirs, part)
            (loss / len(parts)).backward()
            total += float(loss) / len(parts)
            margins.append(float(margin.detach().mean()))
        norm = math.sqrt(sum(float(t.grad.pow(2).sum()) for t in trained.values()))
        for t in trained.values():
            t.grad *= min(1.0, 1.0 / norm)
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        losses.append(total)
    return losses, margins


def compare(stem, losses, wanted, margins, after, trained, first):
    worst = max(abs(a - b) / b for a, b in zip(losses[1:], wanted))
    apart = sum(float((after[key].double() - t.detach()).pow(2).sum()) for key, t in trained.items())
    moved = sum(float((t.detach() - first[key].double()).pow(2).sum()) for key, t in trained.items())
    print("# %s, %d steps: loss %.2e apart, weights %.2e of their way; margins %.3f to %.3f" % (
        stem, len(wanted), worst, (apart / moved) ** 0.5, margins[0], margins[-1]))
    # Before a step model and reference are one, to the bit.
    assert abs(losses[0] - math.log(2)) <= 1e-7, losses[0]
    assert len(wanted) == 20 and worst <= 1e-4, (losses, wanted)
    assert apart <= 0.02 ** 2 * moved and margins[-1] > margins[0] + 0.1, (apart / moved, margins)


def target_of(family):
    words = TARGETS.get(family, ("all-linear",))[0]
    return ["--target", words] if words else []


def check(family, lora, rate):
    base, weights = base_of(family)
    folder = pairs_of(base)
    stem = family + (".lora" if lora else ".all")
    made = new_job(stem, base, folder, "--dpo", str(BETA), "--rate", str(rate),
                   *(["--lora", "4", "--lora-alpha", "6", *target_of(family)] if lora else []))
    assert made["facts"]["pairs"] and made["first_state_given"] != lora, made["facts"]
    files = ["--data", folder, "--data", base]
    losses, first, after = run(stem, *files, *([] if lora else ["--first-state", base]))
    rates = [reference.rate_at(step, STEPS, WARMUP, rate, RATE_MIN) for step in range(STEPS)]
    theirs = reference.Decoder(CONFIGS[family], {key: t.clone() for key, t in weights.items()})
    if lora:
        adapters = adapters_of(first, CONFIGS[family], family, 1.5)
        names = {"%s.lora_%s.weight" % (module, "AB"[i]): pair[i]
                 for module, pair in adapters.items() for i in (0, 1)}
        decoder = reference.Decoder(CONFIGS[family], weights, adapters)
    else:
        names = {key: first[key].double() for key in weights}
        decoder = reference.Decoder(CONFIGS[family], names)
    moments = {key: tuple(first[kind + "." + key].double() for kind in "mv") for key in names}
    wanted, margins = train(decoder, theirs, names, course_of(rows_of(folder))[1:], rates[1:], moments)
    compare(stem, losses, wanted, margins, after, names, first)
    audit, = ask("audit", path(stem + ".run"), *files)["audits"]
    assert audit["answer"] == "proven", audit
    shown = call("job", "show", path(stem + ".job")).stdout.decode()
    assert "two forwards more, of the reference, and keeps nothing of them" in shown, shown


def adapters_of_gpt2():
    check("gpt2", True, 0.01)


def adapters_of_qwen2():
    check("qwen2", True, 0.01)


def all_weights():
    check("gpt2", False, 0.001)
    out = path("learned")
    call("bundle", "export", path("gpt2.all.run"), "--hf", out, "--base", base_of("gpt2")[0])
    said = ask("generate", out, "--prompt", "3+3=", "--tokens", "2", "--temperature", "0")
    assert said["prompt_tokens"] == 5 and said["tokens"], said


def what_does_not_fit_is_refused_by_name():
    base, _ = base_of("qwen2")
    folder = pairs_of(base)

    def refused(words, *more, where=folder, **how):
        made = new_job("refused", base, where, "--rate", "0.001", *more, wanted=3, **how)
        told = made["error"]["message"]
        assert words in told, told

    refused("has pairs of answers")
    refused("are no pairs", "--dpo", "0.1", where=pack("packed", base))
    refused("must be above 0", "--dpo", "0")
    refused("two rows each", "--dpo", "0.1", batch=3)
    refused("no held-out figure of pairs", "--dpo", "0.1", "--eval", folder)
    refused("--inference learns nothing", "--dpo", "0.1", "--inference")
    refused("must have the same products", "--dpo", "0.1", "--calibrate", "step")
    refused("a beta of 2000", "--dpo", "2000")
    for recipe in (["--label-smoothing", "0.1"], ["--z-loss", "0.1"],
                   ["--lora", "2", "--train-whole", "lm_head"]):
        refused("pairs are learned without label smoothing", "--dpo", "0.1", *recipe)


if __name__ == "__main__":
    sys.exit(main([adapters_of_gpt2, adapters_of_qwen2, all_weights,
                   what_does_not_fit_is_refused_by_name]))
