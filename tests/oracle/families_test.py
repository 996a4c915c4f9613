"""Goal: every family of the table of decoders is the model that its authors published: step 0, 20
steps of all weights, 20 steps of adapters, and what is exported.
Method: a small random folder of each, in the published layout; torch_families.py computes it in
float64. make test plays step 0 of all and the training of some; make soak the whole."""

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
import torch_families as families  # noqa: E402
from program import ask, main, path  # noqa: E402

torch.set_num_threads(1)
LENGTH, BATCH, STEPS = 8, 2, 20
WHOLE = int(os.environ.get("SOAK_MINUTES", "0")) > 0
SIZES = {"vocab_size": 64, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2,
         "num_attention_heads": 2, "max_position_embeddings": 64, "torch_dtype": "bfloat16"}
SHARED = SIZES | {"num_attention_heads": 4, "num_key_value_heads": 2, "rope_theta": 10000.0}


def config(kind, architecture, base=SHARED, tied=False, **more):
    return base | {"model_type": kind, "architectures": [architecture + "ForCausalLM"],
                   "tie_word_embeddings": tied} | more


GEMMA = {"head_dim": 8, "rms_norm_eps": 1e-6, "hidden_activation": "gelu_pytorch_tanh"}
LONGROPE = {"type": "longrope", "short_factor": [1.0, 1.25, 1.5], "long_factor": [1.5, 4.0, 9.0]}
FAMILIES = {
    "gemma": config("gemma", "Gemma", tied=True, hidden_act="gelu", **(GEMMA | {
        "hidden_activation": None})),
    "gemma2": config("gemma2", "Gemma2", tied=True, attn_logit_softcapping=2.0,
                     final_logit_softcapping=3.0, query_pre_attn_scalar=12, sliding_window=16,
                     hidden_act="gelu_pytorch_tanh", cache_implementation="hybrid", **GEMMA),
    "gemma3": config("gemma3_text", "Gemma3", tied=True, num_hidden_layers=3,
                     sliding_window_pattern=3, sliding_window=16, query_pre_attn_scalar=12,
                     rope_local_base_freq=100.0, attn_logit_softcapping=None,
                     final_logit_softcapping=None,
                     rope_scaling={"rope_type": "linear", "factor": 8.0}, **GEMMA),
    "olmo2": config("olmo2", "Olmo2", rms_norm_eps=1e-6, hidden_act="silu", attention_bias=False),
    "granite": config("granite", "Granite", tied=True, rms_norm_eps=1e-5, hidden_act="silu",
                      embedding_multiplier=12.0, residual_multiplier=0.22,
                      attention_multiplier=0.0625, logits_scaling=8.0, attention_bias=False,
                      mlp_bias=False),
    "smollm3": config("smollm3", "SmolLM3", tied=True, rms_norm_eps=1e-6, hidden_act="silu",
                      no_rope_layers=[1, 0], no_rope_layer_interval=2, use_sliding_window=False,
                      sliding_window=None, max_window_layers=28, attention_bias=False,
                      layer_types=["full_attention"] * 2, mlp_bias=False, rope_scaling=None),
    "yarn": config("smollm3", "SmolLM3", tied=True, rms_norm_eps=1e-6, hidden_act="silu",
                   hidden_size=64, no_rope_layers=[1, 1], rope_scaling={
                       "rope_type": "yarn", "factor": 4.0, "beta_fast": 4.0, "beta_slow": 0.5,
                       "original_max_position_embeddings": 16}),
    "phi3": config("phi3", "Phi3", num_key_value_heads=4, rms_norm_eps=1e-5, hidden_act="silu",
                   sliding_window=32, embd_pdrop=0.0, resid_pdrop=0.0, rope_scaling=None,
                   original_max_position_embeddings=64, auto_map={"AutoConfig": "x.Phi3Config"}),
    "phi35": config("phi3", "Phi3", rms_norm_eps=1e-5, hidden_act="silu", sliding_window=262144,
                    rope_scaling=LONGROPE, original_max_position_embeddings=8),
    "phi35long": config("phi3", "Phi3", rms_norm_eps=1e-5, hidden_act="silu", sliding_window=262144,
                        rope_scaling=LONGROPE, original_max_position_embeddings=4),
    "phi4mini": config("phi3", "Phi3", tied=True, hidden_size=32, partial_rotary_factor=0.75,
                       rms_norm_eps=1e-5, hidden_act="silu", sliding_window=262144,
                       rope_scaling=LONGROPE, original_max_position_embeddings=8,
                       full_attn_mod=1, interpolate_factor=1, lm_head_bias=False, mlp_bias=False,
                       pad_token_id=-2),
    "glm": config("glm", "Glm", rms_norm_eps=1.5625e-07, hidden_act="silu", head_dim=8,
                  attention_bias=True, partial_rotary_factor=0.5),
    "glm4": config("glm4", "Glm4", rms_norm_eps=1e-5, hidden_act="silu", head_dim=8,
                   attention_bias=True, partial_rotary_factor=0.5, pad_token_id=6),
    "pythia": config("gpt_neox", "GPTNeoX", SIZES, hidden_size=32, hidden_act="gelu", rotary_pct=0.25,
                     rotary_emb_base=10000, use_parallel_residual=True, layer_norm_eps=1e-5,
                     classifier_dropout=0.1, attention_bias=True, pad_token_id=6),
    "neox": config("gpt_neox", "GPTNeoX", SIZES, hidden_act="gelu", rotary_pct=1.0,
                   rotary_emb_base=10000, use_parallel_residual=False, layer_norm_eps=1e-5),
    "stablelm": config("stablelm", "StableLm", hidden_size=32, hidden_act="silu", use_qkv_bias=True,
                       layer_norm_eps=1e-5, partial_rotary_factor=0.25, qk_layernorm=False,
                       use_parallel_residual=False, hidden_dropout=0.0),
    "starcoder2": config("starcoder2", "Starcoder2", tied=True, hidden_act="gelu_pytorch_tanh",
                         norm_epsilon=1e-5, use_bias=True, sliding_window=32, mlp_type="default",
                         norm_type="layer_norm", residual_dropout=0.0, embedding_dropout=0.0),
    "phi2": config("phi", "Phi", SIZES, hidden_size=32, hidden_act="gelu_new", layer_norm_eps=1e-5,
                   rope_theta=10000.0, partial_rotary_factor=0.5, num_key_value_heads=2,
                   qk_layernorm=False, embd_pdrop=0.0, resid_pdrop=0.0),
    "falcon": {key: value for key, value in config(
        "falcon", "Falcon", SIZES, tied=True, num_attention_heads=3, rope_theta=10000.0, alibi=False,
        bias=False, multi_query=True, parallel_attn=True, new_decoder_architecture=False,
        apply_residual_connection_post_layernorm=False, layer_norm_epsilon=1e-5, num_kv_heads=3,
        hidden_dropout=0.0, auto_map={"AutoConfig": "x.FalconConfig"}).items()
               if key != "intermediate_size"},  # and without "activation", as the published file is
    "opt": {key: value for key, value in config(
        "opt", "OPT", SIZES, tied=True, ffn_dim=40, word_embed_proj_dim=24,
        activation_function="relu", do_layer_norm_before=True, enable_bias=True,
        layer_norm_elementwise_affine=True, _remove_final_layer_norm=False, dropout=0.1,
        layerdrop=0.0, init_std=0.02).items() if key != "intermediate_size"},
}
SILU = {"rms_norm_eps": 1e-6, "hidden_act": "silu"}
FAMILIES |= {
    "mixtral": config("mixtral", "Mixtral", num_local_experts=4, num_experts_per_tok=2,
                      output_router_logits=False, router_aux_loss_coef=0.02, sliding_window=None,
                      router_jitter_noise=0.0, **SILU),
    "qwen3_moe": config("qwen3_moe", "Qwen3Moe", head_dim=8, num_experts=5, num_experts_per_tok=3,
                        moe_intermediate_size=20, norm_topk_prob=True, output_router_logits=True,
                        router_aux_loss_coef=0.1, decoder_sparse_step=1, mlp_only_layers=[],
                        use_sliding_window=False, sliding_window=None, max_window_layers=2,
                        attention_bias=False, **SILU),
    # more experts than one operation joins, and some that no token reaches
    "olmoe": config("olmoe", "Olmoe", num_experts=19, num_experts_per_tok=2, intermediate_size=12,
                    norm_topk_prob=False, output_router_logits=True, router_aux_loss_coef=0.01,
                    clip_qkv=None, attention_bias=False, **SILU),
}
EXPERTS = ("mixtral", "qwen3_moe", "olmoe")
# Whose training make test plays: each has parts that the others lack.
TRAINED = ("gemma3", "olmo2", "phi4mini", "glm4", "pythia", "falcon", *EXPERTS)


def data_of():
    generator = torch.Generator().manual_seed(3)
    data = torch.randint(0, 64, (600,), generator=generator)
    data[1::2] = (data[::2] * 5 + 1) % 64
    name = path("tokens.u8")
    if not os.path.exists(name):
        with open(name, "wb") as file:
            file.write(bytes(data.tolist()))
    return name, data


def seed_of(family, margin=1e-5):
    """Of the first draw that leaves no token's route open in the first batch; others are told."""
    tokens, _ = reference.batch_of(data_of()[1], LENGTH, BATCH, 0)
    for seed in range(7, 27):
        model = families.Family(FAMILIES[family], families.draw(FAMILIES[family], "BF16", seed))
        model(tokens)
        if model.close_routes(margin) == 0:
            return seed
        print("# %s, draw %d: left out, %d tokens have routes that differ by less than %g"
              % (family, seed, model.close_routes(margin), margin))
    raise AssertionError(family)


def folder_of(family, kind="BF16", margin=1e-5):
    place, config_of = path("%s.%s.%g" % (family, kind, margin)), FAMILIES[family]
    weights = families.draw(config_of, kind, seed_of(family, margin) if family in EXPERTS else 7)
    if not os.path.exists(place):
        reference.write_folder(place, config_of, weights, kind)
    return place, config_of, weights


def new_job(folder, name, *more):
    job = path(name + ".job")
    ask("job", "new", "--base", folder, "--data", data_of()[0], "--data-type", "u8", "--length",
        str(LENGTH), "--batch", str(BATCH), "--calibrate", "none", "--out", job, *more)
    return job


def run(job, folder, name, how="--first-state"):
    bundle = path(name + ".run")
    ask("prover", "run", job, "--data", data_of()[0], how, folder, "--bundle", bundle)
    place = os.path.join(bundle, "checkpoints")
    steps = ask("bundle", "steps", bundle)["steps"]
    states = sorted(os.listdir(place))
    return [step["loss"] for step in steps], {
        int(name.split(".")[0]): os.path.join(place, name) for name in states}


def loss_of(logits, targets):
    return float(torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()))


def distance(got, wanted):
    return float((got.double() - wanted).norm() / wanted.norm())


def check_answers(folder, stem, decoder, bits=22):
    """The loss and the logits of a batch."""
    tokens, targets = reference.batch_of(data_of()[1], LENGTH, BATCH, 0)
    logits = decoder(tokens).detach()
    job = new_job(folder, stem, "--inference", "--steps", "1", "--segment-steps", "1", "--bits", str(bits))
    losses, states = run(job, folder, stem)
    loss = loss_of(logits, targets)
    apart = abs(losses[0] - loss) / loss
    far = distance(reference.read_safetensors(states[1])["answers"].view(logits.shape), logits)
    print("# %s at %d bits: loss %.1e apart, logits %.1e" % (stem, bits, apart, far))
    # A mean of 16 tokens; reach: 2e-6 and 1e-4 of sizes that people train.
    assert apart <= {22: 2e-6, 14: 1e-3}[bits] and far <= {22: 1e-5, 14: 4e-3}[bits], (stem, apart, far)


def check_step_0(family):
    folder, config_of, weights = folder_of(family)
    check_answers(folder, family, families.Family(config_of, weights))
    if WHOLE or family in EXPERTS:
        folder, config_of, weights = folder_of(family, margin=2e-3)
        check_answers(folder, family + ".14", families.Family(config_of, weights), 14)


COURSE = ("--steps", str(STEPS), "--bits", "22", "--schedule", "cosine", "--warmup", "4", "--rate",
          "0.002", "--rate-min", "0.0001", "--beta2", "0.95", "--epsilon", "1e-7", "--decay", "0.05")


def course(first=0):
    steps = range(first, STEPS)
    return ([[reference.batch_of(data_of()[1], LENGTH, BATCH, step)] for step in steps],
            [reference.rate_at(step, STEPS, 4, 0.002, 0.0001) for step in steps])


def tell_close_routes(family, model):
    """None is left open in the 20 steps of these draws: else another draw must be taken."""
    count = sum(len(m) for m in model.margins)
    if count:
        print("# %s: %d of %d routes differ by less than 1e-5" % (family, model.close_routes(), count))
        assert model.close_routes() == 0, family


def plain(name):
    """States are called without the module of all layers, as Falcon has it."""
    return name.removeprefix("transformer.")


def check_training(family):
    """All weights, from a folder in binary32: what is exported is again such a folder."""
    folder, config_of, weights = folder_of(family, "F32")
    stem = family + ".full"
    losses, states = run(new_job(folder, stem, *COURSE, "--segment-steps", str(STEPS)), folder, stem)
    model = families.Family(config_of, weights, None, "F32")
    wanted = reference.train(model, weights, *course(), decay=0.05, epsilon=1e-7)
    tell_close_routes(family, model)
    worst = max(abs(a - b) / b for a, b in zip(losses, wanted))
    print("# %s, all weights: loss %.1e apart" % (family, worst))
    assert worst <= 2e-4, (family, worst)
    hold_export(stem, folder, config_of, reference.read_safetensors(states[STEPS]))


def hold_export(stem, folder, config_of, state):
    """The folder that comes out has the names and shapes of the published one, and its model."""
    out = path(stem + ".hf")
    ask("bundle", "export", path(stem + ".run"), "--hf", out, "--base", folder)
    saved = reference.read_safetensors(os.path.join(out, "model.safetensors"))
    assert {name: tuple(t.shape) for name, t in saved.items()} == families.shapes_of(config_of)
    assert all(torch.equal(saved[name], state[plain(name)]) for name in saved)
    trained = {name: saved[name].double() for name in saved}
    check_answers(out, stem + ".again", families.Family(config_of, trained, None, "F32"))


def published(state, config_of):
    """A state by the names of the folder, which adapters in it follow."""
    names = {plain(name): name for name in families.shapes_of(config_of)}
    under = {plain(name).rsplit(".", 1)[0]: name.rsplit(".", 1)[0] for name in names.values()}
    made = {}
    for name, tensor in state.items():
        kind = name[:2] if name[:2] in ("m.", "v.") else ""
        module, mark, end = name[len(kind):].partition(".lora_")
        made[kind + under.get(module, module) + mark + end if mark else name] = tensor
    return made


def check_adapters(family):
    folder, config_of, weights = folder_of(family)
    stem = family + ".lora"
    job = new_job(folder, stem, *COURSE, "--segment-steps", "1", "--lora", "2", "--lora-alpha", "3",
                  "--target", "all-linear")
    losses, states = run(job, folder, stem, "--data")
    first, last = (published(reference.read_safetensors(states[step]), config_of)
                   for step in (1, STEPS))
    ends = (".lora_A.weight", ".lora_B.weight")
    modules = sorted({name[:-len(ends[0])] for name in first if name.endswith(ends[0])
                      and name[:2] not in ("m.", "v.")})
    linears = {name[:-7] for name, shape in families.shapes_of(config_of).items() if len(shape) == 2
               and "embed" not in name and "lm_head" not in name}
    assert set(modules) == linears, (modules, linears)
    trained = {module + end: first[module + end].double() for module in modules for end in ends}
    moments = {name: tuple(first[kind + name].double() for kind in ("m.", "v.")) for name in trained}
    adapters = {module: (*(trained[module + end] for end in ends), 1.5) for module in modules}
    model = families.Family(config_of, weights, adapters)
    wanted = reference.train(model, trained, *course(1), decay=0.05, epsilon=1e-7, moments=moments)
    tell_close_routes(family, model)
    worst = max(abs(a - b) / b for a, b in zip(losses[1:], wanted))
    print("# %s, adapters: loss %.1e apart" % (family, worst))
    assert worst <= 2e-4, (family, worst)
    hold_adapters(stem, folder, config_of, weights, last)


def hold_adapters(stem, folder, config_of, weights, last):
    """Merged and beside the base: names, shapes and numbers, and what the merged model says."""
    ends = (".lora_A.weight", ".lora_B.weight")
    drawn = {name: t for name, t in last.items() if name.endswith(ends) and name[:2] not in ("m.", "v.")}
    adapters = {module: (*(drawn[module + end].double() for end in ends), 1.5)
                for module in {name[:-len(ends[0])] for name in drawn}}
    merged, beside = path(stem + ".merged"), path(stem + ".adapter")
    ask("bundle", "export", path(stem + ".run"), "--hf", merged, "--base", folder, "--merge")
    saved = reference.read_safetensors(os.path.join(merged, "model.safetensors"))
    assert {name: tuple(t.shape) for name, t in saved.items()} == families.shapes_of(config_of)
    for name, tensor in saved.items():
        module = name.removesuffix(".weight")
        more = (1.5 * last[module + ends[1]].double() @ last[module + ends[0]].double()
                if module in adapters else 0.0)
        assert torch.allclose(tensor.double(), weights[name] + more, rtol=1e-6, atol=1e-9), name
    check_answers(merged, stem + ".says", families.Family(
        config_of, {name: tensor.double() for name, tensor in saved.items()}, None, "F32"))
    if not config_of["tie_word_embeddings"] or config_of["model_type"][:5] != "gemma":
        # of Gemma the type of the folder decides about the embedding's scale
        near = families.Family(config_of, weights, adapters)
        tokens, _ = reference.batch_of(data_of()[1], LENGTH, BATCH, 0)
        ours = families.Family(config_of, {n: t.double() for n, t in saved.items()}, None, "F32")
        assert distance(ours(tokens), near(tokens)) <= 1e-5, stem
    ask("bundle", "export", path(stem + ".run"), "--hf", beside, "--base", folder)
    with open(os.path.join(beside, "adapter_config.json"), encoding="ascii") as file:
        said = json.load(file)
    assert sorted(said["target_modules"]) == sorted({m.split(".")[-1] for m in adapters}), said
    saved = reference.read_safetensors(os.path.join(beside, "adapter_model.safetensors"))
    assert set(saved) == {"base_model.model." + name for name in drawn}
    assert all(torch.equal(saved["base_model.model." + name], t) for name, t in drawn.items())


def check_exports(family):
    """What comes out of a short training, of all weights and of adapters."""
    few = ("--steps", "2", "--segment-steps", "1", "--bits", "22", "--rate", "0.002")
    folder, config_of, _ = folder_of(family, "F32")
    stem = family + ".full"
    _, states = run(new_job(folder, stem, *few), folder, stem)
    hold_export(stem, folder, config_of, reference.read_safetensors(states[2]))
    folder, config_of, weights = folder_of(family)
    stem = family + ".lora"
    job = new_job(folder, stem, *few, "--lora", "2", "--lora-alpha", "3", "--target", "all-linear")
    _, states = run(job, folder, stem, "--data")
    hold_adapters(stem, folder, config_of, weights, published(reference.read_safetensors(states[2]),
                                                              config_of))


def the_scale_of_an_embedding_has_its_type():
    """The root of 24 is 4.899, in BF16 4.906: a thousandth more, which the logits show."""
    for kind in ("F32", "F16", "BF16"):
        folder, config_of, weights = folder_of("gemma", kind)
        check_answers(folder, "scale." + kind, families.Family(config_of, weights, None, kind))


def the_text_part_of_a_folder_is_trained_and_the_rest_kept():
    text = FAMILIES["gemma3"]
    whole = {"model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"],
             "text_config": {key: value for key, value in text.items() if key != "architectures"},
             "vision_config": {"hidden_size": 4}, "image_token_index": 60, "torch_dtype": "bfloat16",
             "mm_tokens_per_image": 4}
    weights, eye = families.draw(text), torch.eye(3, dtype=torch.float64)
    for stem, module in (("old", lambda n: "language_model." + n), (
            "new", lambda n: n.replace("model.", "model.language_model.", 1))):
        beside = {"vision_tower.layers.0.weight": eye} if stem == "old" else {
            "model.vision_tower.layers.0.weight": eye}
        folder = path(stem)
        reference.write_folder(folder, whole, {module(n): t for n, t in weights.items()} | beside,
                               "BF16")
        check_answers(folder, stem + ".answers", families.Family(text, weights))
        job = new_job(folder, stem + ".lora", "--steps", "2", "--segment-steps", "2", "--lora", "2")
        run(job, folder, stem + ".lora", "--data")
        for name, more in ((".merged", ["--merge"]), (".adapter", [])):
            ask("bundle", "export", path(stem + ".lora.run"), "--hf", path(stem + name), "--base",
                folder, *more)
        saved = reference.read_safetensors(path(stem + ".merged/model.safetensors"))
        assert set(saved) == {module(name) for name in weights} | set(beside)
        assert all(torch.equal(saved[name].double(), eye) for name in beside)
        saved = reference.read_safetensors(path(stem + ".adapter/adapter_model.safetensors"))
        wanted = {"base_model.model.%s.lora_%s.weight" % (module(
            "model.layers.%d.self_attn.%s_proj" % (layer, part)), side)
                  for layer in range(3) for part in "qv" for side in "AB"}
        assert set(saved) == wanted, set(saved) ^ wanted
    refuse(whole | {"text_config": None}, "text_config")
    refuse(whole | {"text_config": dict(text, model_type="gemma2")}, "gemma2")
    refuse(whole | {"tie_word_embeddings": False}, "tie_word_embeddings")
    refuse(whole | {"quantization_config": {"bits": 4}}, "quantization_config")
    refuse(whole | {"odd": 1}, "odd")


def refuse(broken, word):
    folder = path("broken")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w", encoding="ascii") as file:
        json.dump(broken, file)
    said = ask("job", "new", "--base", folder, "--data", data_of()[0], "--data-type", "u8",
               "--length", str(LENGTH), "--out", path("broken.job"), wanted=1)["error"]["message"]
    assert word in said, (word, said)


def what_a_config_asks_for_and_we_do_not_do_is_refused_by_key_and_value():
    for family, key, value, word in (
            ("gemma3", "layer_types", ["full_attention"], "'layer_types' has 1 layers"),
            ("gemma3", "layer_types", ["chunked_attention"] * 3, "chunked_attention"),
            ("gemma2", "query_pre_attn_scalar", 0, "query_pre_attn_scalar"),
            ("gemma2", "use_bidirectional_attention", True, "use_bidirectional_attention"),
            ("gemma", "hidden_act", "relu", "relu"),
            ("gemma2", "sliding_window", 4, "'sliding_window' is 4"),
            ("smollm3", "no_rope_layers", [1], "'no_rope_layers' has 1 layers"),
            ("smollm3", "no_rope_layers", [1, 2], "1 or 0"),
            ("phi35", "rope_scaling", LONGROPE | {"long_factor": [1.0]}, "'long_factor'"),
            ("phi35", "rope_scaling", {"type": "longrope", "short_factor": [1.0] * 3}, "missing"),
            ("phi35", "rope_scaling", {"type": "longrope", "short_factor": [1.0] * 2,
                                       "long_factor": [1.0] * 2}, "2 numbers"),
            ("phi35", "partial_rotary_factor", 2.0, "at most 1"),
            ("phi35", "partial_rotary_factor", 0.2, "pairs"),
            ("phi4mini", "lm_head_bias", True, "lm_head_bias"),
            ("yarn", "rope_scaling", {"rope_type": "yarn", "factor": 4.0, "mscale": 1}, "mscale"),
            ("yarn", "rope_scaling", {"rope_type": "yarn", "factor": 0.5}, "'factor'"),
            ("pythia", "tie_word_embeddings", True, "tie_word_embeddings"),
            ("stablelm", "use_parallel_residual", True, "use_parallel_residual"),
            ("phi2", "qk_layernorm", True, "qk_layernorm"),
            ("opt", "word_embed_proj_dim", 12, "word_embed_proj_dim"),
            ("opt", "do_layer_norm_before", False, "do_layer_norm_before"),
            ("falcon", "alibi", True, "alibi"), ("falcon", "multi_query", False, "multi_query"),
            ("falcon", "new_decoder_architecture", True, "new_decoder_architecture"),
            ("falcon", "parallel_attn", False, "parallel_attn"), ("falcon", "bias", True, "bias"),
            ("falcon", "activation", "softsign", "softsign"),
            ("granite", "logits_scaling", "8", "logits_scaling"),
            ("mixtral", "num_experts_per_tok", 5, "'num_experts_per_tok' is 5, of 4 experts"),
            ("mixtral", "num_experts_per_tok", 0, "num_experts_per_tok"),
            ("mixtral", "router_jitter_noise", 0.1, "'router_jitter_noise' is 0.1"),
            ("mixtral", "router_aux_loss_coef", -1, "'router_aux_loss_coef' is -1"),
            ("mixtral", "num_local_experts", 100000, "100000 experts"),
            ("qwen3_moe", "decoder_sparse_step", 2, "'decoder_sparse_step' is 2"),
            ("qwen3_moe", "mlp_only_layers", [0], "'mlp_only_layers' is [0]"),
            ("qwen3_moe", "num_experts_per_tok", 9, "'num_experts_per_tok' is 9"),
            ("olmoe", "clip_qkv", 8.0, "'clip_qkv' is 8.0"),
            ("olmoe", "model_type", "gpt_oss", "'model_type' is \"gpt_oss\"")):
        refuse(FAMILIES[family] | {key: value}, word)


def experts_that_are_missing_or_of_another_width_are_refused_by_name():
    config_of, name = FAMILIES["mixtral"], "model.layers.1.block_sparse_moe.experts.3.w2.weight"
    for stem, change, word in (
            ("missing", lambda w: w.pop(name), "no tensor '%s'" % name),
            ("narrow", lambda w: w.update({name: w[name][:, 1:]}), "'%s' is F32 [24,39]" % name),
            ("more", lambda w: w.update({name.replace(".3.", ".4."): w[name]}),
             "the model has no tensor '%s'" % name.replace(".3.", ".4."))):
        weights = families.draw(config_of)
        change(weights)
        reference.write_folder(path(stem), config_of, weights, "F32")
        for more in ([], ["--lora", "2"]):
            said = ask("job", "new", "--base", path(stem), "--data", data_of()[0], "--data-type", "u8",
                       "--length", str(LENGTH), "--calibrate", "none", "--out", path("bad.job"), *more,
                       wanted=1)["error"]["message"]
            assert word in said, (word, said)


def case(check, family):
    def test():
        check(family)

    test.__name__ = "%s_%s" % (check.__name__, family)
    return test


TESTS = [case(check, family) for check in (check_step_0, check_training, check_adapters)
         for family in FAMILIES if WHOLE or check is check_step_0 or family in TRAINED]
TESTS += [case(check_exports, family) for family in FAMILIES if not WHOLE and family not in TRAINED]
TESTS += [the_scale_of_an_embedding_has_its_type,
          the_text_part_of_a_folder_is_trained_and_the_rest_kept,
          what_a_config_asks_for_and_we_do_not_do_is_refused_by_key_and_value,
          experts_that_are_missing_or_of_another_width_are_refused_by_name]

if __name__ == "__main__":
    sys.exit(main(TESTS))
