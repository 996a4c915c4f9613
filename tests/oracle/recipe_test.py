"""Goal: the options of a training do what their papers say: optimizers, schedules, rates and decay
of single tensors, label smoothing and z-loss, rsLoRA, LoRA+, modules that are trained whole, adapters
of the embedding and the head, the gradient's norm, means of checkpoints.
Method: a small Llama in F32; 20 steps at 22 bits beside PyTorch in float64, whose optimizers,
schedules and losses are written here from the published formulas."""

import json
import math
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../support"), HERE]
sys.dont_write_bytecode = True

try:
    import torch
except ImportError:
    print("skip: PyTorch is not installed (Debian: apt-get install python3-torch)")
    sys.exit(77)

import torch.nn.functional as F  # noqa: E402
import torch_decoder as reference  # noqa: E402
from program import ask, main, path  # noqa: E402

torch.set_num_threads(1)
LENGTH, BATCH, STEPS = 8, 2, 20
CONFIG = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 96,
          "hidden_size": 32, "intermediate_size": 80, "num_hidden_layers": 2, "num_attention_heads": 4,
          "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
          "hidden_act": "silu", "tie_word_embeddings": False, "torch_dtype": "float32"}
TIED = CONFIG | {"tie_word_embeddings": True}
RATE = 0.002


def data_of():
    generator = torch.Generator().manual_seed(3)
    data = torch.randint(0, 96, (600,), generator=generator)
    data[1::2] = (data[::2] * 5 + 1) % 96
    name = path("tokens.u8")
    with open(name, "wb") as file:
        file.write(bytes(data.tolist()))
    return name, data


def folder_of(config=CONFIG):
    place = path("tied" if config is TIED else "base")
    weights = reference.draw_weights(config, "F32")
    if not os.path.exists(place):
        reference.write_folder(place, config, weights, "F32")
    return place, weights


def make(stem, *more, config=CONFIG, wanted=0, steps=STEPS, length=LENGTH):
    folder, _ = folder_of(config)
    job = path(stem + ".job")
    said = ask("job", "new", "--base", folder, "--data", data_of()[0], "--data-type", "u8", "--length",
               str(length), "--batch", str(BATCH), "--calibrate", "none", "--bits", "22", "--steps",
               str(steps), "--segment-steps", "1", "--out", job, *more, wanted=wanted)
    return job, said


def run(job, stem, *more):
    bundle = path(stem + ".run")
    ask("prover", "run", job, "--data", data_of()[0], *more, "--bundle", bundle)
    place = os.path.join(bundle, "checkpoints")
    return ask("bundle", "steps", bundle)["steps"], {
        int(name.split(".")[0]): reference.read_safetensors(os.path.join(place, name))
        for name in sorted(os.listdir(place))}


# ---- the formulas ----

class Recipe:
    """A training in float64. rates: step -> rate; factor and decay: name -> number."""

    def __init__(self, optimizer="adamw", rates=lambda step: RATE, betas=(0.9, 0.999), epsilon=1e-8,
                 momentum=0.9, factor=lambda name: 1.0, decay=lambda name: 0.0, clip=1.0):
        self.optimizer, self.rates, self.betas, self.epsilon = optimizer, rates, betas, epsilon
        self.momentum, self.factor, self.decay, self.clip = momentum, factor, decay, clip
        self.m, self.v, self.norms = {}, {}, []

    def orthogonal(self, g):
        """Keller Jordan's Newton-Schulz iteration."""
        x = g / (g.norm() + 1e-7)
        if g.shape[0] > g.shape[1]:
            x = x.T
        for _ in range(5):
            s = x @ x.T
            x = 3.4445 * x + (-4.7750 * s + 2.0315 * s @ s) @ x
        return x.T if g.shape[0] > g.shape[1] else x

    def direction(self, name, p, g, step):
        b1, b2 = self.betas
        m = self.m.get(name, torch.zeros_like(p))
        kind = self.optimizer
        if kind == "muon" and (p.dim() != 2 or "embed" in name or "lm_head" in name):
            kind = "adamw"
        if kind == "lion":
            u = torch.sign(b1 * m + (1 - b1) * g)
            self.m[name] = b2 * m + (1 - b2) * g
            return u
        if kind == "muon":
            self.m[name] = self.momentum * m + g
            u = self.orthogonal(g + self.momentum * self.m[name])
            return 0.2 * math.sqrt(max(p.shape)) * u
        if kind == "sgd":
            self.m[name] = self.momentum * m + g
            return self.m[name]
        v = self.v.get(name, torch.zeros_like(p))
        self.m[name], self.v[name] = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        return (self.m[name] / (1 - b1**(step + 1))) / (
            (self.v[name] / (1 - b2**(step + 1))).sqrt() + self.epsilon)

    def train(self, forward, trained, first=0, loss_of=None):
        losses, data = [], data_of()[1]
        for step in range(first, STEPS):
            tokens, targets = reference.batch_of(data, LENGTH, BATCH, step)
            for p in trained.values():
                p.requires_grad_(True)
                p.grad = None
            logits = forward(tokens).flatten(0, 1)
            loss = (loss_of or F.cross_entropy)(logits, targets.flatten())
            loss.backward()
            losses.append(float(loss))
            norm = math.sqrt(sum(float(p.grad.pow(2).sum()) for p in trained.values()))
            self.norms.append(norm)
            share = min(1.0, self.clip / norm) if self.clip else 1.0
            with torch.no_grad():
                for name, p in trained.items():
                    u = self.direction(name, p, p.grad * share, step) + self.decay(name) * p
                    p -= self.rates(step) * self.factor(name) * u
            for p in trained.values():
                p.requires_grad_(False)
        return losses


def check(stem, recipe, *more, loss_of=None, config=CONFIG, within=2e-4):
    """All weights. Returns the steps and the last state."""
    folder, weights = folder_of(config)
    steps, states = run(make(stem, *more, config=config)[0], stem, "--first-state", folder)
    wanted = recipe.train(reference.Decoder(config, weights), weights, loss_of=loss_of)
    worst = max(abs(one["loss"] - b) / b for one, b in zip(steps, wanted))
    moved = math.sqrt(sum(float((states[0][name] - t).pow(2).sum()) for name, t in weights.items()))
    apart = math.sqrt(sum(float((states[STEPS][name] - t).pow(2).sum()) for name, t in weights.items()))
    print("# %s: loss %.1e apart, weights %.1e of their way" % (stem, worst, apart / moved))
    assert len(wanted) == STEPS and worst <= within, (stem, worst)
    return steps, states


# ---- optimizers ----

def linear(step, warmup=4, least=0.0):
    if step < warmup:
        return RATE * (step + 1) / warmup
    return RATE + (least - RATE) * (step - warmup) / (STEPS - 1 - warmup)


COURSE = ("--rate", str(RATE), "--warmup", "4")


def adamw_of_a_base_has_the_defaults_of_published_recipes():
    check("adamw", Recipe(rates=linear), *COURSE)
    _, said = make("defaults", length=8)
    facts = said["facts"]
    assert (facts["optimizer"], facts["rate_last"], facts["decay"]) == ("adamw", 0.0, 0.0), facts
    assert abs(facts["rate_most"] - 2e-5) < 1e-10 and abs(facts["beta2"] - 0.999) < 1e-7, facts
    _, said = make("defaults.lion", "--optimizer", "lion")
    assert abs(said["facts"]["rate_most"] - 2e-6) < 1e-11, said["facts"]
    _, said = make("defaults.lora", "--lora", "2")
    assert abs(said["facts"]["rate_most"] - 2e-4) < 1e-10, said["facts"]
    assert (said["facts"]["adapter_rank"], said["facts"]["adapter_scale"]) == (2, 2.0), said["facts"]


def lion_is_the_papers():
    """A sign takes what is rounded for a whole step, so the rate is a tenth, as people choose it."""
    check("lion", Recipe("lion", lambda step: 0.1 * linear(step), (0.9, 0.99),
                         decay=lambda name: 0.1 if is_matrix(name) else 0),
          "--optimizer", "lion", "--decay", "0.1", "--rate", str(0.1 * RATE), "--warmup", "4")


def muon_is_jordans_with_the_size_of_moonshot():
    check("muon", Recipe("muon", linear, momentum=0.95,
                         decay=lambda name: 0.1 if is_matrix(name) else 0),
          "--optimizer", "muon", "--decay", "0.1", *COURSE)
    check("muon.plain", Recipe("muon", linear, momentum=0.8, clip=0),
          "--optimizer", "muon", "--momentum", "0.8", "--clip", "0", *COURSE)


def momentum_of_sgd_is_what_was_asked():
    check("sgd", Recipe("sgd", linear, momentum=0.6), "--optimizer", "sgd", "--momentum", "0.6", *COURSE)
    check("sgd.usual", Recipe("sgd", linear, momentum=0.9), "--optimizer", "sgd", *COURSE)


def is_matrix(name):
    return "norm" not in name


# ---- schedules ----

def fallen(share, least=0.0005):
    return RATE + (least - RATE) * share


def behind(step, warmup=4):
    return (step - warmup) / (STEPS - 1 - warmup)


def restarts(step, cycles=3):
    turns = cycles * behind(step)
    part = 1.0 if step == STEPS - 1 else turns - math.floor(turns)
    return fallen(0.5 - 0.5 * math.cos(math.pi * part))


SCHEDULES = {
    "constant": ((), lambda step: RATE),
    "linear": (("--rate-min", "0.0005"), lambda step: fallen(behind(step))),
    "cosine": (("--rate-min", "0.0005"),
               lambda step: fallen(0.5 - 0.5 * math.cos(math.pi * behind(step)))),
    "cosine-restarts": (("--rate-min", "0.0005", "--cycles", "3"), restarts),
    "polynomial": (("--rate-min", "0.0005", "--power", "2.5"),
                   lambda step: 0.0005 + (RATE - 0.0005) * (1 - behind(step))**2.5),
    "cosine-restarts as usual": (("--rate-min", "0.0005"), lambda step: restarts(step, 2)),
    "polynomial as usual": (("--rate-min", "0.0005"), lambda step: fallen(behind(step))),
    "inverse-root": ((), lambda step: RATE * math.sqrt(4 / (step + 1))),
    "stable-decay": (("--rate-min", "0.0005", "--cooldown", "5"),
                     lambda step: fallen(max(0, step - 14) / 5)),
    "stable-decay as usual": ((), lambda step: fallen(max(0, step - 17) / 2, 0.0)),
}


def schedules_are_the_published_formulas():
    """Every rate, by the constant of the job."""
    for name, (more, formula) in SCHEDULES.items():
        job, said = make("schedule." + name, "--schedule", name.split(" ")[0], "--rate", str(RATE),
                         "--warmup-share", "0.17", *more)  # of 20 steps 3.4: the warm-up takes 4, as transformers has it
        ask("job", "show", job, "--save-constants", path(name + ".constants"), "--program")
        table = reference.read_safetensors(path(name + ".constants"))["schedule"]
        wanted = [RATE * (step + 1) / 4 if step < 4 else formula(step) for step in range(STEPS)]
        for step, rate in enumerate(wanted):
            assert abs(float(table[step][0]) - rate) <= 1e-7 * RATE, (name, step, table[step], rate)
        assert abs(said["facts"]["rate_last"] - wanted[-1]) <= 1e-7 * RATE, (name, said["facts"])


def a_schedule_is_a_file():
    rates = [0.001 * (1 + step % 3) for step in range(STEPS)]
    with open(path("rates.txt"), "w", encoding="ascii") as file:
        file.write("".join("%r\n" % rate for rate in rates))
    check("listed", Recipe(rates=lambda step: rates[step], factor=lambda name: 0.5 if ".mlp." in name else 1.0),
          "--schedule", path("rates.txt"), "--rate-of", "*.mlp.*=0.0015")  # half of the highest
    for text, word in (("0.1\n" * 19, "19 rates"), ("0.1\n" * 21, "more than 20"),
                       ("0.1\n" * 9 + "x\n" + "0.1\n" * 10, "line 10"), ("nan\n" * 20, "line 1"),
                       ("0.1\n" * 19 + "-1\n", "line 20"), ("0.1\n" * 19 + "1e7\n", "line 20")):
        with open(path("broken.txt"), "w", encoding="ascii") as file:
            file.write(text)
        assert word in refusal("--schedule", path("broken.txt")), (word, text[-20:])


# ---- single tensors ----

def rates_and_decay_go_by_names():
    def factor(name):
        return 0.25 if ".mlp." in name else 0.0 if "embed" in name else 1.0

    check("names", Recipe(rates=linear, factor=factor, decay=lambda name: (
        0.3 if name.endswith("layernorm.weight") else 0.05 if is_matrix(name) else 0.0)),
          "--rate-of", "*.mlp.*=%r" % (RATE / 4), "--rate-of", "model.embed?tokens.*=0", "--rate-of", "*=%r" % RATE,
          "--decay-of", "*layernorm.weight=0.3", "--decay", "0.05", *COURSE)  # the first that fits


# ---- losses ----

def smoothed_loss(logits, targets):
    return (F.cross_entropy(logits, targets, label_smoothing=0.15)
            + 0.01 * logits.logsumexp(-1).pow(2).mean())


def labels_are_smoothed_and_the_sum_is_held():
    check("smoothed", Recipe(rates=linear), "--label-smoothing", "0.15", "--z-loss", "0.01", *COURSE,
          loss_of=smoothed_loss)


def a_mask_leaves_rows_out_of_every_loss():
    """Over micro-batches, whose rows are counted together."""
    name, data = data_of()
    folder, weights = folder_of()
    generator = torch.Generator().manual_seed(5)
    mask = (torch.rand(len(data), generator=generator) < 0.4).long()
    with open(path("mask.u8"), "wb") as file:
        file.write(bytes(mask.tolist()))
    for micro in (1, 3):
        stem = "masked.%d" % micro
        job, said = make(stem, "--mask", path("mask.u8"), "--accumulate", str(micro),
                         "--label-smoothing", "0.15", "--z-loss", "0.01", steps=1)
        assert abs(said["mask_share"] - float(mask.double().mean())) < 1e-9 and said["facts"]["masked"]
        steps, _ = run(job, stem, "--data", path("mask.u8"), "--first-state", folder)
        total = count = 0.0
        for part in range(micro):
            at = list(reference.starts(len(data), LENGTH, BATCH, part))
            tokens = torch.stack([data[s:s + LENGTH] for s in at])
            targets = torch.stack([data[s + 1:s + LENGTH + 1] for s in at]).flatten()
            counts = torch.stack([mask[s + 1:s + LENGTH + 1] for s in at]).flatten().bool()
            logits = reference.Decoder(CONFIG, weights)(tokens).flatten(0, 1)
            total += float(smoothed_loss(logits[counts], targets[counts])) * int(counts.sum())
            count += int(counts.sum())
        assert abs(steps[0]["loss"] - total / count) <= 2e-6 * total / count, (micro, steps[0], total / count)


def the_norm_of_each_gradient_stands_beside_the_loss():
    recipe = Recipe(rates=linear, clip=0.5)
    steps, _ = check("norms", recipe, "--gradient-norm", "--clip", "0.5", *COURSE)
    for one, norm in zip(steps, recipe.norms):
        assert abs(one["gradient_norm"] - norm) <= 1e-3 * norm, (one, norm)
    unclipped, _ = check("norms.0", Recipe(rates=linear, clip=0), "--gradient-norm", "--clip", "0", *COURSE)
    assert abs(unclipped[0]["gradient_norm"] - steps[0]["gradient_norm"]) <= 1e-6 * recipe.norms[0]


# ---- adapters ----

def check_lora(stem, recipe, scale, *more, whole=(), targets="q_proj,v_proj", within=2e-4):
    """Adapters as they are drawn, and what is trained whole beside them."""
    folder, weights = folder_of()
    job, said = make(stem, "--lora", "4", "--target", targets, *more, *COURSE)
    given = ["--first-state", folder] if whole else []
    assert said["first_state_given"] == bool(whole)
    steps, states = run(job, stem, "--data", folder, *given)
    names = sorted(name for name in states[1] if name[:2] not in ("m.", "v.") and (
        ".lora_" in name or name in whole))
    assert set(whole) <= set(names), (whole, names)
    zeros = (".lora_B.weight", ".lora_embedding_A")
    if 0 not in states:
        # Beside a half that is zero the other has no gradient in step 0, and here no decay.
        states[0] = {name: torch.zeros_like(states[1][name]) if name.endswith(zeros)
                     else states[1][name] for name in names}
    assert not any(states[0][name].any() for name in names if name.endswith(zeros))
    trained = {name: states[0][name].double() for name in names}

    def forward(tokens):
        p = dict(weights) | {name: trained[name] for name in whole}
        for name in trained:
            for a, b in ((".lora_A.weight", ".lora_B.weight"), (".lora_embedding_A", ".lora_embedding_B")):
                if name.endswith(a):
                    module = name[:-len(a)]
                    more = scale * trained[module + b] @ trained[name]
                    p[module + ".weight"] = weights[module + ".weight"] + (
                        more.T if "embedding" in a else more)
        return reference.Decoder(CONFIG, p)(tokens)

    wanted = recipe.train(forward, trained)
    worst = max(abs(one["loss"] - b) / b for one, b in zip(steps, wanted))
    print("# %s: loss %.1e apart" % (stem, worst))
    assert worst <= within, (stem, worst)
    return states, folder, weights


def adapters_are_stabilized_and_b_learns_faster():
    check_lora("rslora", Recipe(rates=linear), 6 / math.sqrt(4), "--lora-alpha", "6", "--lora-stabilized")
    check_lora("loraplus", Recipe(rates=linear, factor=lambda name: 8.0 if "lora_B" in name else 1.0),
               1.5, "--lora-alpha", "6", "--lora-plus", "8")


def exports(stem, folder, last, scale, weights, whole, targets):
    merged, beside = path(stem + ".merged"), path(stem + ".adapter")
    ask("bundle", "export", path(stem + ".run"), "--hf", merged, "--base", folder, "--merge")
    saved = reference.read_safetensors(os.path.join(merged, "model.safetensors"))
    assert {name: t.shape for name, t in saved.items()} == {name: t.shape for name, t in weights.items()}
    for name, tensor in saved.items():
        wanted, module = weights[name], name.removesuffix(".weight")
        if name in whole:
            wanted = last[name].double()
        if module + ".lora_A.weight" in last:
            wanted = wanted + scale * last[module + ".lora_B.weight"].double() @ last[
                module + ".lora_A.weight"].double()
        if module + ".lora_embedding_A" in last:
            wanted = wanted + scale * (last[module + ".lora_embedding_B"].double() @ last[
                module + ".lora_embedding_A"].double()).T
        assert torch.allclose(tensor.double(), wanted, rtol=1e-6, atol=1e-9), name
    ask("bundle", "export", path(stem + ".run"), "--hf", beside, "--base", folder)
    with open(os.path.join(beside, "adapter_config.json"), encoding="ascii") as file:
        said = json.load(file)
    assert sorted(said["target_modules"]) == sorted(targets), said
    assert (sorted(said["modules_to_save"]) if whole else said["modules_to_save"]) == (sorted({name.split(".")[-2] for name in whole}) or None), said
    saved = reference.read_safetensors(os.path.join(beside, "adapter_model.safetensors"))
    wanted = {"base_model.model." + name for name in last
              if name[:2] not in ("m.", "v.") and (".lora_" in name or name in whole)}
    assert set(saved) == wanted, set(saved) ^ wanted
    for name, tensor in saved.items():
        assert torch.equal(tensor, last[name.removeprefix("base_model.model.")]), name
    return merged


def embedding_and_head_have_adapters():
    states, folder, weights = check_lora("tables", Recipe(rates=linear), 2.0,
                                         targets="embed_tokens,lm_head,q_proj")
    a, b = (states[0]["model.embed_tokens.lora_embedding_" + part] for part in "AB")
    assert a.shape == (4, 96) and b.shape == (32, 4) and not a.any() and 0.8 < float(b.std()) < 1.2
    exports("tables", folder, states[STEPS], 2.0, weights, (), ("embed_tokens", "lm_head", "q_proj"))


def modules_are_trained_whole_beside_adapters():
    whole = ("lm_head.weight", "model.norm.weight")
    states, folder, weights = check_lora(
        "whole", Recipe(rates=linear, decay=lambda name: 0.1 if name != whole[1] else 0.0), 2.0,
        "--train-whole", "lm_head,norm", "--decay", "0.1", whole=whole)
    assert torch.equal(states[0][whole[0]].double(), weights[whole[0]])
    assert not torch.equal(states[STEPS][whole[1]], states[0][whole[1]])
    merged = exports("whole", folder, states[STEPS], 2.0, weights, whole, ("q_proj", "v_proj"))
    again = path("whole.again.job")
    ask("job", "new", "--base", merged, "--data", data_of()[0], "--data-type", "u8", "--length", "8",
        "--batch", "2", "--inference", "--steps", "1", "--segment-steps", "1", "--bits", "22",
        "--out", again)
    steps, _ = run(again, "whole.again", "--first-state", merged)
    tokens, targets = reference.batch_of(data_of()[1], LENGTH, BATCH, 0)
    after = {name: t.double() for name, t in
             reference.read_safetensors(os.path.join(merged, "model.safetensors")).items()}
    loss = float(F.cross_entropy(reference.Decoder(CONFIG, after)(tokens).flatten(0, 1), targets.flatten()))
    assert abs(steps[0]["loss"] - loss) <= 2e-6 * loss, (steps, loss)


def means_of_checkpoints_are_exported():
    folder, weights = folder_of()
    job, _ = make("mean", "--schedule", "constant", "--rate", str(RATE))  # no two states are the same
    _, states = run(job, "mean", "--first-state", folder)
    assert not torch.equal(states[STEPS]["lm_head.weight"], states[STEPS - 1]["lm_head.weight"])
    ask("bundle", "export", path("mean.run"), "--hf", path("mean.hf"), "--base", folder, "--average", "5")
    saved = reference.read_safetensors(path("mean.hf/model.safetensors"))
    for name in weights:
        wanted = sum(states[STEPS - i][name].double() for i in range(5)) / 5
        assert torch.equal(saved[name], wanted.float()), name
    with open(path("mean.hf/README.md"), encoding="utf-8") as file:
        assert "steps | 20 19 18 17 16 |" in file.read()
    assert not os.path.exists(path("mean.hf.mean"))
    ask("bundle", "export", path("mean.run"), "--hf", path("mean.no"), "--base", folder, "--average",
        "22", wanted=3)
    assert not os.path.exists(path("mean.no.mean")) and not os.path.exists(path("mean.no"))


# ---- refusals ----

def refusal(*more, config=CONFIG):
    for code in (3, 1):
        try:
            error = make("refused", *more, config=config, wanted=code)[1]["error"]
            return error["message"] + " " + error.get("advice", "")
        except AssertionError:
            if code == 1:
                raise
    return ""


def what_says_nothing_is_refused_by_name():
    lora = ("--lora", "2")
    for more, word in (
            (("--optimizer", "sgd", "--beta2", "0.9"), "--beta2 says nothing of the optimizer sgd"),
            (("--optimizer", "lion", "--epsilon", "0.1"), "--epsilon says nothing of the optimizer lion"),
            (("--momentum", "0.5"), "--momentum says nothing of the optimizer adamw"),
            (("--cycles", "2"), "--cycles says nothing of the schedule linear"),
            (("--schedule", "cosine", "--power", "2"), "--power says nothing of the schedule cosine"),
            (("--schedule", "inverse-root", "--rate-min", "0"), "--rate-min says nothing"),
            (("--schedule", "inverse-root", "--warmup", "0"), "warm-up"),
            (("--schedule", "stable-decay", "--cooldown", "19"), "cooldown of 19"),
            (("--schedule", "polynomial", "--power", "0"), "power of 0"),
            (("--schedule", "cosine-restarts", "--cycles", "21"), "21 cosines"),
            (("--warmup", "2", "--warmup-share", "0.1"), "say the same"),
            (("--warmup-share", "1"), "--warmup-share"),
            (("--rate", "0.1", "--rate-min", "0.2"), "--rate-min 0.2 is above"),
            (("--schedule", "sawtooth"), "sawtooth"),
            (("--rate-of", "*.moe.*=0.1"), "'*.moe.*'"), (("--decay-of", "*.moe=0.1"), "'*.moe'"),
            (("--decay-of", "mlp"), "PATTERN=X"),
            (("--rate-of", "*=x"), "PATTERN=X"), (("--rate-of", "*=1e9"), "1e+09"),
            (("--label-smoothing", "1"), "1 of a label"), (("--lora-plus", "4"), "without --lora"),
            (("--train-whole", "lm_head"), "without --lora"), (("--lora-stabilized",), "without --lora"),
            (lora + ("--lora-plus", "0"), "--lora-plus"), (lora + ("--target", "w_proj"), "'w_proj'"),
            (lora + ("--target", "q_proj", "--train-whole", "q_proj"), "gets no adapter"),
            (lora + ("--train-whole", "head"), "no module is called 'head'"),
            (("--inference", "--z-loss", "0.1"), "--z-loss")):
        said = refusal(*more)
        assert word in said, (more, said)
    for name in ("embed_tokens", "lm_head"):
        for option in ("--target", "--train-whole"):
            said = refusal("--lora", "2", option, name, config=TIED)
            assert "is its embedding" in said, said


def the_length_is_the_models():
    made = ask("job", "new", "--base", folder_of()[0], "--data", data_of()[0], "--data-type", "u8",
               "--batch", "1", "--steps", "1", "--segment-steps", "1", "--calibrate", "none",
               "--out", path("long.job"))
    assert made["facts"]["length"] == 64, made["facts"]


if __name__ == "__main__":
    sys.exit(main([adamw_of_a_base_has_the_defaults_of_published_recipes, lion_is_the_papers,
                   muon_is_jordans_with_the_size_of_moonshot, momentum_of_sgd_is_what_was_asked,
                   schedules_are_the_published_formulas, a_schedule_is_a_file,
                   rates_and_decay_go_by_names, labels_are_smoothed_and_the_sum_is_held,
                   a_mask_leaves_rows_out_of_every_loss,
                   the_norm_of_each_gradient_stands_beside_the_loss,
                   adapters_are_stabilized_and_b_learns_faster, embedding_and_head_have_adapters,
                   modules_are_trained_whole_beside_adapters, means_of_checkpoints_are_exported,
                   what_says_nothing_is_refused_by_name, the_length_is_the_models]))
