"""Goal: a folder as Hugging Face publishes it is the model that it says it is, and is fine-tuned as
PyTorch fine-tunes it.
Method: a small random folder of each family, in shards and in 16 bits, with and without channels that
are 100 times larger; torch_decoder.py computes it in float64 from the published formulas. Logits and
loss of step 0 at 22 and 14 bits, and 20 steps of AdamW. Skipped where PyTorch is not installed."""

import json
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

import torch_decoder as reference  # noqa: E402
from program import ask, main, path  # noqa: E402

torch.set_num_threads(1)
LENGTH, BATCH, STEPS = 16, 2, 20
ROTARY = {"vocab_size": 96, "hidden_size": 32, "intermediate_size": 80, "num_hidden_layers": 2,
          "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64,
          "rms_norm_eps": 1e-5, "hidden_act": "silu", "attention_dropout": 0.0,
          "torch_dtype": "bfloat16", "transformers_version": "4.44.0", "use_cache": True,
          "bos_token_id": 1, "eos_token_id": 2, "initializer_range": 0.02}


def rotary(kind, architecture, **more):
    return ROTARY | {"model_type": kind, "architectures": [architecture]} | more


# config, type of the file, shards, prefix of the names
FAMILIES = {
    "gpt2": ({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 32,
              "n_layer": 2, "n_head": 4, "n_positions": 24, "n_ctx": 24, "vocab_size": 96,
              "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "attn_pdrop": 0.1,
              "embd_pdrop": 0.1, "resid_pdrop": 0.1, "summary_type": "cls_index",
              "task_specific_params": {"text-generation": {"do_sample": True}}},
             "F32", 1, "transformer."),
    "crfm": ({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 30,
              "n_layer": 3, "n_head": 3, "n_positions": 24, "n_inner": 52, "vocab_size": 97,
              "activation_function": "gelu", "scale_attn_weights": False,
              "scale_attn_by_inverse_layer_idx": True, "reorder_and_upcast_attn": True,
              "tie_word_embeddings": False, "torch_dtype": "float32"}, "BF16", 2, "transformer."),
    "llama2": (rotary("llama", "LlamaForCausalLM", num_key_value_heads=4, rope_scaling=None,
                      tie_word_embeddings=False, pretraining_tp=1), "F16", 3, ""),
    "llama3": (rotary("llama", "LlamaForCausalLM", rope_theta=500000.0, tie_word_embeddings=True,
                      rope_scaling={"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                                    "high_freq_factor": 4.0,
                                    "original_max_position_embeddings": 24}), "BF16", 2, ""),
    "mistral": (rotary("mistral", "MistralForCausalLM", head_dim=12, sliding_window=None,
                       rope_theta=1e6, tie_word_embeddings=False), "BF16", 2, ""),
    "qwen2": (rotary("qwen2", "Qwen2ForCausalLM", tie_word_embeddings=True, rms_norm_eps=1e-6,
                     sliding_window=64, use_sliding_window=False, max_window_layers=2,
                     rope_theta=1e6), "BF16", 1, ""),
    "qwen3": (rotary("qwen3", "Qwen3ForCausalLM", head_dim=16, attention_bias=False,
                     rope_theta=1e6, rms_norm_eps=1e-6, tie_word_embeddings=False,
                     sliding_window=None, use_sliding_window=False, max_window_layers=2),
              "BF16", 3, ""),
    "smollm": (rotary("llama", "LlamaForCausalLM", num_attention_heads=8, tie_word_embeddings=True,
                      is_llama_config=True, rope_interleaved=False, rope_scaling=None),
               "BF16", 1, ""),
    "biased": (rotary("llama", "LlamaForCausalLM", attention_bias=True, mlp_bias=True,
                      hidden_act="gelu", rope_scaling={"type": "linear", "factor": 4.0}),
               "F32", 2, ""),
}


def tokens_of(count=2000):
    generator = torch.Generator().manual_seed(3)
    # Some order, so that there is something to learn.
    data = torch.randint(0, 96, (count,), generator=generator)
    data[1::2] = (data[::2] * 5 + 1) % 96
    return data


def write_data():
    data = tokens_of()
    name = path("tokens.u8")
    with open(name, "wb") as file:
        file.write(bytes(data.tolist()))
    return name, data


def folder_of(family, outliers):
    config, kind, shards, prefix = FAMILIES[family]
    folder = path(family + (".out" if outliers else ""))
    weights = reference.draw_weights(config, kind, outliers)
    if not os.path.exists(folder):
        reference.write_folder(folder, config, weights, kind, shards, prefix)
    return folder, config, weights


def new_job(folder, data, name, *more):
    job = path(name + ".job")
    made = ask("job", "new", "--base", folder, "--data", data, "--data-type", "u8", "--length",
               str(LENGTH), "--batch", str(BATCH), "--out", job, *more)
    return job, made


def run(job, folder, data, name, mask=None):
    bundle = path(name + ".run")
    more = ["--data", mask] if mask else []
    ask("prover", "run", job, "--data", data, *more, "--first-state", folder, "--bundle", bundle)
    steps = ask("bundle", "steps", bundle)["steps"]
    last = sorted(os.listdir(os.path.join(bundle, "checkpoints")))[-1]
    return ([step["loss"] for step in steps],
            reference.read_safetensors(os.path.join(bundle, "checkpoints", last)))


def near(got, wanted, within, what):
    assert abs(got - wanted) <= within * abs(wanted), (what, got, wanted, within)


def distance(got, wanted):
    return float((got.double() - wanted).norm() / wanted.norm())


def check_step_0(family, outliers):
    name, data = write_data()
    folder, config, weights = folder_of(family, outliers)
    tokens, targets = reference.batch_of(data, LENGTH, BATCH, 0)
    logits = reference.Decoder(config, weights)(tokens)
    loss = float(torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()))
    for bits, within in ((22, 1e-4), (14, 1e-3)):
        stem = "%s.%d.%d" % (family, outliers, bits)
        job, _ = new_job(folder, name, stem, "--inference", "--steps", "1", "--segment-steps", "1",
                         "--bits", str(bits))
        losses, state = run(job, folder, name, stem)
        apart = distance(state["answers"].view(logits.shape), logits)
        print("# %s%s at %d bits: loss %.2e apart, logits %.2e" % (
            family, " with outliers" if outliers else "", bits, abs(losses[0] - loss) / loss, apart))
        near(losses[0], loss, within, (family, outliers, bits))
        assert apart <= 1.5 * within, (family, outliers, bits, apart)


def train_ours(family, outliers, rate):
    """22 bits. The losses, the last state, the tokens, and each step's batches and rate."""
    name, data = write_data()
    folder, config, weights = folder_of(family, outliers)
    stem = "%s.%d.train%g" % (family, outliers, rate)
    job, _ = new_job(folder, name, stem, "--steps", str(STEPS), "--segment-steps", str(STEPS), "--bits",
                     "22", "--schedule", "cosine", "--warmup", "4", "--rate", str(rate), "--rate-min",
                     "0.0001", "--beta2", "0.95", "--epsilon", "1e-7", "--decay", "0.05")
    losses, state = run(job, folder, name, stem)
    batches = [[reference.batch_of(data, LENGTH, BATCH, step)] for step in range(STEPS)]
    rates = [reference.rate_at(step, STEPS, 4, rate, 0.0001) for step in range(STEPS)]
    return losses, state, data, (batches, rates), (stem, folder, config, weights)


def train_theirs(config, weights, course):
    """Changes the weights."""
    return reference.train(reference.Decoder(config, weights), weights, *course, decay=0.05,
                           epsilon=1e-7)


def check_training(family, outliers):
    rate = 0.0002 if outliers else 0.002  # with outliers 0.002 is another question: check_drift
    losses, state, data, course, (stem, folder, config, weights) = train_ours(family, outliers, rate)
    before = {key: t.clone() for key, t in weights.items()}
    wanted = train_theirs(config, weights, course)
    worst = max(abs(a - b) / b for a, b in zip(losses, wanted))
    moved = sum(float((weights[key] - t).pow(2).sum()) for key, t in before.items()) ** 0.5
    apart = sum(float((state[key].double() - t).pow(2).sum()) for key, t in weights.items()) ** 0.5
    if not outliers:
        check_export(stem, folder, config, state, data)
    print("# %s%s, %d steps: loss %.2e apart, weights %.2e of their way" % (
        family, " with outliers" if outliers else "", STEPS, worst, apart / moved))
    assert outliers or sum(wanted[-5:]) < sum(wanted[:5])
    assert worst <= 1e-3, (family, outliers, worst)
    assert apart <= 0.02 * moved, (family, outliers, apart / moved)


def check_gradients(family, outliers):
    """Of step 0, by the first moments. Larger channels cost their neighbours nothing: a product that
    is not shifted as it should be is ten times as far."""
    name, data = write_data()
    folder, config, weights = folder_of(family, outliers)
    stem = "%s.%d.gradients" % (family, outliers)
    job, _ = new_job(folder, name, stem, "--steps", "1", "--segment-steps", "1", "--bits", "22", "--clip",
                     "0")
    _, state = run(job, folder, name, stem)
    tokens, targets = reference.batch_of(data, LENGTH, BATCH, 0)
    for t in weights.values():
        t.requires_grad_(True)
    logits = reference.Decoder(config, weights)(tokens)
    torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()).backward()
    # What a key's bias adds to the scores of a query cancels, but for the rotation.
    apart = {key: distance(10 * state["m." + key].double(), t.grad) for key, t in weights.items()
             if not key.endswith("k_proj.bias")}
    worst = max(apart, key=apart.get)
    print("# %s%s: gradients at most %.1e apart" % (
        family, " with outliers" if outliers else "", apart[worst]))
    assert apart[worst] <= 2e-5, (family, outliers, worst, apart[worst])


def largest_so_far(losses, exact):
    apart = [abs(a - b) / b for a, b in zip(losses, exact)]
    return [max(apart[:step + 1]) for step in range(len(apart))]


def check_drift(family, _):
    """A rate that moves weights of 0.002 by as much in a step: what is rounded grows until it is all
    that is left of the difference. float32 of the same reference measures how fast: as it is, and
    from weights that another rounding made."""
    losses, _, _, course, (_, _, config, weights) = train_ours(family, True, 0.002)
    exact = train_theirs(config, {key: t.clone() for key, t in weights.items()}, course)
    generator = torch.Generator().manual_seed(9)
    own = [0.0] * STEPS
    for noise in (0.0, 2.0**-24):
        rounded = {key: (t + noise * t * torch.randn(t.shape, generator=generator, dtype=t.dtype))
                   .float() for key, t in weights.items()}
        theirs = largest_so_far(train_theirs(config, rounded, course), exact)
        own = [max(pair) for pair in zip(own, theirs)]
    ours = largest_so_far(losses, exact)
    times = [a / b for a, b in zip(ours, own)]
    print("# %s with outliers at a rate of 0.002: loss %.2e apart, of float32 %.2e; at most %.1f "
          "times as far in a step" % (family, ours[-1], own[-1], max(times)))
    # Our operands have 22 bits for a row where float32 has 24 for each number; 14 bits fail here.
    assert ours[-1] <= 10 * own[-1] and max(times) <= 100, (family, ours, own)


def check_export(stem, folder, config, state, data):
    """The folder that comes out is the model that was trained."""
    out = path(stem + ".hf")
    ask("bundle", "export", path(stem + ".run"), "--hf", out, "--base", folder)
    saved = reference.read_safetensors(os.path.join(out, "model.safetensors"))
    with open(os.path.join(out, "config.json"), encoding="ascii") as file:
        assert json.load(file) == dict(config, torch_dtype="float32")
    prefix = FAMILIES[stem.split(".")[0]][3]
    for name in reference.shapes_of(config):
        assert torch.equal(saved[reference.published(prefix, name)], state[name]), name
    # It is a base again.
    again, _ = new_job(out, path("tokens.u8"), stem + ".again", "--inference", "--steps", "1",
                       "--segment-steps", "1", "--bits", "22")
    losses, _ = run(again, out, path("tokens.u8"), stem + ".again")
    tokens, targets = reference.batch_of(data, LENGTH, BATCH, 0)
    logits = reference.Decoder(config, {key: state[key].double()
                                        for key in reference.shapes_of(config)})(tokens)
    near(losses[0], float(torch.nn.functional.cross_entropy(logits.flatten(0, 1),
                                                            targets.flatten())), 1e-4, stem)


# The layers that get adapters: as PEFT chooses, all, or a list.
TARGETS = {"gpt2": (None, ("attn.c_attn",)),
           "llama3": (None, ("self_attn.q_proj", "self_attn.v_proj")),
           "qwen2": ("o_proj,down_proj", ("self_attn.o_proj", "mlp.down_proj"))}
ALL = {True: ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"),
       False: tuple("self_attn.%s_proj" % x for x in "qkvo")
       + tuple("mlp.%s_proj" % x for x in ("gate", "up", "down"))}


def adapters_of(state, config, family, scale):
    """Of a checkpoint, in float64: module -> (A, B, scale)."""
    gpt2 = config["model_type"] == "gpt2"
    layers = config["n_layer" if gpt2 else "num_hidden_layers"]
    names = TARGETS.get(family, ("all-linear", ALL[gpt2]))[1]
    made = {}
    for layer in range(layers):
        for name in names:
            module = ("h.%d." if gpt2 else "model.layers.%d.") % layer + name
            made[module] = tuple(state[module + ".lora_%s.weight" % part].double()
                                 for part in "AB") + (scale,)
    assert {key for key in state if key[:2] not in ("m.", "v.") and "lora" in key} == {
        module + ".lora_%s.weight" % part for module in made for part in "AB"}
    return made


def check_lora(family, outliers, dropout=0.0):
    """Adapters that are drawn here take 20 steps as PyTorch's do; what comes out is a model. Under
    dropout PyTorch has our masks, drawn as docs/ARITHMETIC.md says."""
    name, data = write_data()
    folder, config, weights = folder_of(family, outliers)
    stem = "%s.%d.lora%g" % (family, outliers, dropout)
    words = TARGETS.get(family, ("all-linear",))[0]
    rate = 0.0002 if outliers else 0.01  # a channel of 100 makes the other blow up
    least = 0.0001 if outliers else 0.0005
    more = ["--target", words] if words else []
    job, made = new_job(folder, name, stem, "--lora", "4", "--lora-alpha", "6", "--lora-dropout",
                        str(dropout), *more, "--steps", str(STEPS), "--segment-steps", "1", "--bits", "22", "--schedule", "cosine",
                        "--warmup", "4", "--rate", str(rate), "--rate-min", str(least), "--beta2",
                        "0.95", "--decay", "0.1")
    assert not made["first_state_given"]
    losses, state, first = run_lora(job, folder, name, stem)
    # Step 1 is where both begin: step 0 moves B alone, and by its rate.
    adapters = adapters_of(first, config, family, 1.5)
    trained = {"%s.%d" % (module, i): pair[i] for module, pair in adapters.items() for i in (0, 1)}
    drawn = torch.cat([pair[0].flatten() * pair[0].shape[1] ** 0.5 for pair in adapters.values()])
    assert drawn.abs().max() < 1.03 and abs(float(drawn.pow(2).mean()) - 1 / 3) < 0.05
    batches = [[reference.batch_of(data, LENGTH, BATCH, step)] for step in range(STEPS)]
    rates = [reference.rate_at(step, STEPS, 4, rate, least) for step in range(STEPS)]
    moments = {"%s.%d" % (module, i): tuple(
        first["%s.%s.lora_%s.weight" % (kind, module, "AB"[i])].double() for kind in "mv")
               for module in adapters for i in (0, 1)}
    decoder = reference.Decoder(config, weights, adapters)
    decoder.dropout, decoder.step = dropout, 1
    wanted = reference.train(decoder, trained, batches[1:], rates[1:], moments=moments)
    worst = max(abs(a - b) / b for a, b in zip(losses[1:], wanted))
    after = adapters_of(state, config, family, 1.5)
    apart = moved = 0.0
    for module, pair in after.items():
        for i in (0, 1):
            apart += float((pair[i] - adapters[module][i]).pow(2).sum())
            moved += float((adapters[module][i]
                            - first["%s.lora_%s.weight" % (module, "AB"[i])]).pow(2).sum())
    print("# %s%s, adapters, %d steps: loss %.2e apart, adapters %.2e of their way" % (
        family, " with outliers" if outliers else "", STEPS, worst, (apart / moved) ** 0.5))
    assert worst <= 1e-3 and apart <= 4e-4 * moved, (family, worst, apart / moved)
    if not outliers and not dropout:
        check_lora_export(stem, folder, config, weights, after, data)


def run_lora(job, folder, data, name):
    """The losses, the last state and the one after step 0."""
    bundle = path(name + ".run")
    ask("prover", "run", job, "--data", data, "--data", folder, "--bundle", bundle)
    place = os.path.join(bundle, "checkpoints")
    last, first = (reference.read_safetensors(os.path.join(place, "%012d.safetensors" % step))
                   for step in (STEPS, 1))
    return [step["loss"] for step in ask("bundle", "steps", bundle)["steps"]], last, first


def adapters_under_dropout_of_a_llama():
    check_lora("mistral", False, 0.25)


def adapters_under_dropout_of_gpt2():
    check_lora("gpt2", False, 0.1)


def check_lora_export(stem, folder, config, weights, adapters, data):
    """Merged weights are W + scale B A; an adapter folder is as PEFT names it."""
    merged, beside = path(stem + ".merged"), path(stem + ".adapter")
    gpt2 = config["model_type"] == "gpt2"
    ask("bundle", "export", path(stem + ".run"), "--hf", merged, "--base", folder, "--merge")
    saved = reference.read_safetensors(os.path.join(merged, "model.safetensors"))
    prefix = FAMILIES[stem.split(".")[0]][3]
    for name, before in weights.items():
        wanted = before.clone()
        if name.removesuffix(".weight") in adapters:
            a, b, scale = adapters[name.removesuffix(".weight")]
            wanted += scale * ((b @ a).T if gpt2 else b @ a)
        assert torch.allclose(saved[reference.published(prefix, name)].double(), wanted, rtol=1e-6, atol=1e-9), name
    tokens, targets = reference.batch_of(data, LENGTH, BATCH, 0)
    logits = reference.Decoder(config, weights, adapters)(tokens)
    again, _ = new_job(merged, path("tokens.u8"), stem + ".again", "--inference", "--steps", "1",
                       "--segment-steps", "1", "--bits", "22")
    losses, state = run(again, merged, path("tokens.u8"), stem + ".again")
    near(losses[0], float(torch.nn.functional.cross_entropy(logits.flatten(0, 1),
                                                            targets.flatten())), 1e-4, stem)
    assert distance(state["answers"].view(logits.shape), logits) <= 1e-4
    ask("bundle", "export", path(stem + ".run"), "--hf", beside, "--base", folder)
    with open(os.path.join(beside, "adapter_config.json"), encoding="ascii") as file:
        said = json.load(file)
    assert (said["r"], said["lora_alpha"], said["fan_in_fan_out"]) == (4, 6.0, gpt2), said
    assert sorted(said["target_modules"]) == sorted({m.split(".")[-1] for m in adapters}), said
    saved = reference.read_safetensors(os.path.join(beside, "adapter_model.safetensors"))
    middle = "base_model.model." + ("transformer." if gpt2 else "")
    assert set(saved) == {middle + m + ".lora_%s.weight" % part for m in adapters for part in "AB"}
    for module, pair in adapters.items():
        for i in (0, 1):
            assert torch.equal(saved[middle + module + ".lora_%s.weight" % "AB"[i]].double(),
                               pair[i]), module


def what_calibration_chooses_is_shown_and_helps():
    """A channel of 2^30 is beyond the largest shift: its products get 22 bits. Others do not."""
    name, data = write_data()
    config, kind, shards, prefix = FAMILIES["biased"]
    weights = reference.draw_weights(config, kind)
    at = "model.layers.0."
    weights[at + "input_layernorm.weight"][3] *= 2.0**30
    for part in "qkv":
        weights[at + "self_attn.%s_proj.weight" % part][:, 3] *= 2.0**-30
    weights[at + "mlp.up_proj.weight"][5] *= 200
    weights[at + "mlp.down_proj.weight"][:, 5] /= 200
    reference.write_folder(path("far"), config, weights, kind, shards, prefix)
    tokens, targets = reference.batch_of(data, LENGTH, BATCH, 0)
    logits = reference.Decoder(config, weights)(tokens)
    loss = float(torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()))
    job, made = new_job(path("far"), name, "far", "--inference", "--steps", "1", "--segment-steps", "1",
                        "--bits", "14")
    chosen = made["precision"]
    assert chosen["bits"] == 14, chosen
    assert chosen["shifted"] == [at + "self_attn.q_proj.channels", at + "mlp.down_proj.channels"]
    assert chosen["wide"] == [at + "self_attn.%s_proj.weight" % part for part in "qkv"], chosen
    assert ask("job", "show", job)["precision"] == chosen
    losses, state = run(job, path("far"), name, "far")
    near(losses[0], loss, 1e-3, "far")
    assert distance(state["answers"].view(logits.shape), logits) <= 1e-3
    # Gradients and scores are looked at too, and shifts serve every micro-batch.
    folder, _, _ = folder_of("qwen2", True)
    shifted = [new_job(folder, name, "all.%s" % n, "--steps", "2", "--segment-steps", "2",
                       "--accumulate", n)[1]["precision"]["shifted"] for n in ("1", "3")]
    assert shifted[0] == shifted[1] and any(s.endswith(".gradients") for s in shifted[0]), shifted
    assert any(s.startswith("product.") for s in shifted[0]), shifted
    plain, _, _ = folder_of("gpt2", False)
    assert new_job(plain, name, "plain", "--steps", "2", "--segment-steps", "2")[1]["precision"] == {
        "bits": 14, "shifted": [], "wide": []}
    # Without it the far channel takes everything.
    job, made = new_job(path("far"), name, "none", "--inference", "--steps", "1", "--segment-steps", "1",
                        "--bits", "14", "--calibrate", "none")
    assert made["precision"] == {"bits": 14, "shifted": [], "wide": []}, made["precision"]
    _, state = run(job, path("far"), name, "none")
    assert distance(state["answers"].view(logits.shape), logits) > 1e-2


def check_masked(accumulate):
    """The mean over the targets that count, however they are spread over micro-batches."""
    name, data = write_data()
    folder, config, weights = folder_of("qwen2", False)
    generator = torch.Generator().manual_seed(5)
    mask = (torch.rand(len(data), generator=generator) < 0.3).long()
    file = path("mask.u8")
    with open(file, "wb") as out:
        out.write(bytes((3 * mask).tolist()))  # anything but 0 counts
    stem = "masked.%d" % accumulate
    job, _ = new_job(folder, name, stem, "--steps", "6", "--segment-steps", "6", "--bits", "22", "--mask",
                     file, "--accumulate", str(accumulate), "--rate", "0.002", "--schedule",
                     "constant", "--warmup", "0", "--beta2", "0.95", "--decay", "0.1")
    losses, _ = run(job, folder, name, stem, file)
    places = [range(step * accumulate, (step + 1) * accumulate) for step in range(6)]
    batches = [[reference.batch_of(data, LENGTH, BATCH, at) for at in step] for step in places]
    masks = [[reference.batch_of(mask, LENGTH, BATCH, at)[1] for at in step] for step in places]
    wanted = reference.train(reference.Decoder(config, weights), weights, batches, [0.002] * 6,
                             masks=masks)
    for got, right in zip(losses, wanted):
        near(got, right, 1e-4, (accumulate, losses, wanted))


def one_batch_under_a_mask():
    check_masked(1)


def micro_batches_under_a_mask():
    check_masked(3)


def check_exports(family, _):
    """What comes out of a short training, of all weights and of adapters."""
    _, state, data, _, (stem, folder, config, weights) = train_ours(family, False, 0.001)
    check_export(stem, folder, config, state, data)
    stem, words = family + ".adapters", TARGETS.get(family, ("all-linear",))[0]
    job, _ = new_job(folder, path("tokens.u8"), stem, "--lora", "4", "--lora-alpha", "6",
                     *(["--target", words] if words else []), "--steps", str(STEPS), "--segment-steps",
                     "1", "--bits", "22", "--rate", "0.01")
    _, state, _ = run_lora(job, folder, path("tokens.u8"), stem)
    check_lora_export(stem, folder, config, weights, adapters_of(state, config, family, 1.5), data)


def case(check, family, outliers):
    def test():
        check(family, outliers)

    test.__name__ = "%s_%s%s" % (check.__name__, family, "_with_outliers" if outliers else "")
    return test


# Step 0 tells of a family, and what is exported; of the training two of them tell as much; make soak
# takes all.
WHOLE = int(os.environ.get("SOAK_MINUTES", "0")) > 0
TRAINED = ("gpt2", "qwen3")
TESTS = [case(check, family, outliers)
         for check in (check_step_0, check_gradients, check_training, check_drift,
                       check_lora)
         for family in FAMILIES for outliers in (False, True)
         if (outliers or check not in (check_drift, check_gradients))
         and (check in (check_step_0, check_gradients) or not outliers
              or family in TRAINED or WHOLE)]
TESTS += [case(check_exports, family, False) for family in FAMILIES
          if not WHOLE and family not in TRAINED]
TESTS += [adapters_under_dropout_of_a_llama, adapters_under_dropout_of_gpt2,
          one_batch_under_a_mask, micro_batches_under_a_mask,
          what_calibration_chooses_is_shown_and_helps]

if __name__ == "__main__":
    sys.exit(main(TESTS))
