"""Goal: `job new --base` takes a folder of Hugging Face as it is, and refuses what it does not do, by
the name of the file, the key or the tensor, and with a remedy.
Method: a small folder is written here, then broken in one place at a time."""

import hashlib
import json
import os
import shutil
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../support")]
sys.dont_write_bytecode = True

from program import DATA, ask, main, path, run  # noqa: E402

CONFIG = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 128,
          "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 1,
          "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 32,
          "rms_norm_eps": 1e-5, "rope_theta": 10000, "hidden_act": "silu",
          "tie_word_embeddings": False, "torch_dtype": "float32"}
LAYER = {"input_layernorm": (8,), "post_attention_layernorm": (8,), "self_attn.q_proj": (8, 8),
         "self_attn.k_proj": (4, 8), "self_attn.v_proj": (4, 8), "self_attn.o_proj": (8, 8),
         "mlp.gate_proj": (12, 8), "mlp.up_proj": (12, 8), "mlp.down_proj": (8, 12)}
INDEX = "model.safetensors.index.json"


def tensors(value=0.125):
    shapes = {"model.layers.0.%s.weight" % name: shape for name, shape in LAYER.items()}
    shapes |= {"model.embed_tokens.weight": (128, 8), "model.norm.weight": (8,),
               "lm_head.weight": (128, 8)}
    made = {}
    for number, (name, shape) in enumerate(shapes.items()):
        count = shape[0] * (shape[1] if len(shape) == 2 else 1)
        made[name] = ("F32", shape, struct.pack("<%df" % count, *(
            value * ((i * 7 + number) % 11 - 5) for i in range(count))))
    return made


def write_safetensors(name, made):
    header, at = {}, 0
    for tensor, (kind, shape, raw) in made.items():
        header[tensor] = {"dtype": kind, "shape": list(shape), "data_offsets": [at, at + len(raw)]}
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(name, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(raw for _, _, raw in made.values()))


def folder(name="base", config=None, made=None, shards=None):
    """shards: a list of lists of names."""
    place = path(name)
    shutil.rmtree(place, ignore_errors=True)
    os.makedirs(place)
    made = made or tensors()
    with open(os.path.join(place, "config.json"), "w", encoding="ascii") as file:
        json.dump(CONFIG if config is None else config, file)
    if shards is None:
        write_safetensors(os.path.join(place, "model.safetensors"), made)
        return place
    weight_map = {}
    for number, names in enumerate(shards):
        file = "model-%05d-of-%05d.safetensors" % (number + 1, len(shards))
        write_safetensors(os.path.join(place, file), {key: made[key] for key in names})
        weight_map |= {key: file for key in names}
    with open(os.path.join(place, INDEX), "w", encoding="ascii") as file:
        json.dump({"metadata": {}, "weight_map": weight_map}, file)
    return place


def new(place, *more, wanted=0):
    out = path("base.job")
    if os.path.exists(out):
        os.remove(out)
    return ask("job", "new", "--base", place, "--data", DATA, "--data-type", "u8", "--length", "4",
               "--batch", "1", "--steps", "2", "--segment-steps", "2", "--out", out, *more, wanted=wanted)


def roots(place, *more):
    """What a job computes, and of what: its notes name the config.json itself."""
    return {name: root for name, root in new(place, *more)["roots"].items() if name != "body"}


def refused(place, *words, more=(), wanted=1):
    error = new(place, *more, wanted=wanted)["error"]
    said = error["message"] + " " + error.get("advice", "")
    for word in words:
        assert word in said, (word, said)


def halves():
    names = list(tensors())
    return [names[::2], names[1::2]]


def shards_are_one_model():
    whole = new(folder())
    assert whole["first_state_given"]
    split = new(folder(shards=halves()))
    assert split["id"] == whole["id"]
    place = folder(shards=halves())
    new(place)
    run("base.job", "base.run", "--first-state", place)
    steps = ask("bundle", "steps", path("base.run"))["steps"]
    assert len(steps) == 2
    other = folder("other", made=tensors(0.25))
    ask("prover", "run", path("base.job"), "--data", DATA, "--first-state", other, "--bundle",
        path("other.run"), wanted=1)


def sixteen_bits_are_widened_exactly():
    made = tensors()
    short = {name: ("BF16", shape, b"".join(raw[i + 2:i + 4] for i in range(0, len(raw), 4)))
             for name, (_, shape, raw) in made.items()}  # multiples of 1/8: nothing is cut
    half = {name: ("F16", shape, struct.pack(
        "<%de" % (len(raw) // 4), *struct.unpack("<%df" % (len(raw) // 4), raw)))
            for name, (_, shape, raw) in made.items()}
    ids = {new(folder(made=kind))["id"] for kind in (made, short, half)}
    assert len(ids) == 1
    tiny = dict(half)
    kind, shape, raw = tiny["model.norm.weight"]
    tiny["model.norm.weight"] = (kind, shape, struct.pack("<8H", 1, 0x8001, 0x3FF, 0x400, 0x7BFF,
                                                          0x8000, 0, 0x3C00))
    wide = dict(made)
    wide["model.norm.weight"] = ("F32", shape, struct.pack(
        "<8f", *struct.unpack("<8e", tiny["model.norm.weight"][2])))
    assert new(folder(made=tiny))["id"] == new(folder(made=wide))["id"]


def every_key_is_used_or_refused():
    whole = roots(folder())
    for key, value, same in (("rope_theta", 500000.0, False), ("rms_norm_eps", 1e-6, False),
                             ("hidden_act", "gelu", False), ("transformers_version", "9", True),
                             ("pad_token_id", None, True), ("pad_token_id", 1, False),
                             ("attention_dropout", 0.5, True),
                             ("head_dim", 4, True), ("rope_scaling", None, True),
                             ("rope_scaling", {"type": "linear", "factor": 2.0}, False),
                             ("rope_parameters", {"rope_theta": 10000.0, "rope_type": "default"},
                              True), ("rope_scaling", {"type": "dynamic", "factor": 2.0}, True),
                             ("unsloth_fixed", True, True), ("_num_labels", 1, True),
                             ("max_sequence_length", 9, True), ("use_sliding_window", False, True)):
        assert (roots(folder(config=CONFIG | {key: value})) == whole) == same, (key, value)
    for key, value, word in (
            ("new_trick", True, "new_trick"), ("model_type", "mamba", "mamba"),
            ("architectures", ["LlamaForSequenceClassification"], "SequenceClassification"),
            ("hidden_act", "quick_gelu", "quick_gelu"), ("rope_scaling", {"rope_type": "ntk",
                                                                        "factor": 4.0}, "ntk"),
            ("rope_scaling", {"rope_type": "yarn", "factor": 4.0, "mscale": 1.0}, "mscale"),
            ("rope_scaling", {"rope_type": "llama3", "factor": 8.0}, "low_freq_factor"),
            ("rope_scaling", {"rope_type": "linear", "factor": 2.0, "odd": 1}, "odd"),
            ("quantization_config", {"bits": 4}, "quantization_config"),
            ("rope_parameters", {"rope_theta": 9.0, "rope_type": "default"}, "rope_theta"),
            ("auto_map", {"AutoModel": "x.Y"}, "remove it"), ("use_sliding_window", True, "false"),
            ("rope_interleaved", True, "rope_interleaved"), ("num_hidden_layers", 0, "whole"),
            ("hidden_size", "8", "hidden_size"), ("tie_word_embeddings", 1, "true or false"),
            ("layer_types", ["linear_attention"], "linear_attention"),
            ("pad_token_id", CONFIG["vocab_size"], "pad_token_id"), ("pad_token_id", "x", "pad_token_id"),
            ("hidden_size", 9, "multiple"), ("num_key_value_heads", 3, "heads"),
            ("bad\u001b[31m", 1, "bad?[31m")):
        refused(folder(config=CONFIG | {key: value}), word)
    config = dict(CONFIG)
    del config["vocab_size"]
    refused(folder(config=config), "vocab_size", "config.json")
    # What is not there is as the family's program has it: 2048 positions; a key head for each head.
    for key, value in (("max_position_embeddings", 2048), ("num_key_value_heads", None)):
        config = dict(CONFIG)
        del config[key]
        made = tensors()
        if key == "num_key_value_heads":
            for part in "kv":
                made["model.layers.0.self_attn.%s_proj.weight" % part] = (
                    "F32", (8, 8), made["model.layers.0.self_attn.q_proj.weight"][2])
        missing = roots(folder(config=config, made=made), "--length", "32")
        given = folder(config=config | {key: value}, made=made)
        assert roots(given, "--length", "32") == missing, key
    mistral = {k: v for k, v in CONFIG.items() if k != "num_key_value_heads"} | {
        "model_type": "mistral", "architectures": ["MistralForCausalLM"]}
    refused(folder(config=mistral), "8 heads for keys")


def the_job_names_the_config():
    """A changed config.json that computes the same is another job, and what came out is not exported with it."""
    place = folder("named")
    config = os.path.join(place, "config.json")
    with open(config, "rb") as file:
        bytes_of_config = file.read()
    made = new(place)
    with open(path("base.job"), "rb") as file:
        line = b"from config.json %s\n" % hashlib.sha256(bytes_of_config).hexdigest().encode()
        assert file.read().endswith(line)
    ask("prover", "run", path("base.job"), "--data", DATA, "--first-state", place, "--bundle", path("named.run"))
    words = ("bundle", "export", path("named.run"), "--base", place, "--hf")
    ask(*words, path("named.hf"))
    with open(config, "ab") as file:
        file.write(b"\n")
    assert new(place)["id"] != made["id"]
    said = ask(*words, path("changed.hf"), wanted=1)["error"]["message"]
    assert "config.json is not the one" in said and not os.path.exists(path("changed.hf")), said


def trained(padding, tied=False, token=97):
    """Does the row of a token move that stands in every batch? A head that is the embedding moves it too."""
    made = tensors()
    if tied:
        del made["lm_head.weight"]
    place = folder(config=CONFIG | {"pad_token_id": padding, "tie_word_embeddings": tied}, made=made)
    with open(path("two.u8"), "wb") as file:
        file.write(b"ab" * 50)
    stem = path("two.%s.%s.%d" % (padding, tied, token))
    job, bundle = stem + ".job", stem + ".run"
    ask("job", "new", "--base", place, "--data", path("two.u8"), "--data-type", "u8", "--length", "4", "--batch", "2",
        "--steps", "2", "--segment-steps", "2", "--rate", "0.01", "--calibrate", "none", "--out", job)
    ask("prover", "run", job, "--data", path("two.u8"), "--first-state", place, "--bundle", bundle)
    with open(os.path.join(bundle, "checkpoints", "%012d.safetensors" % 2), "rb") as file:
        whole = file.read()
    size, = struct.unpack("<Q", whole[:8])
    first, _ = json.loads(whole[8:8 + size])["model.embed_tokens.weight"]["data_offsets"]
    at, row = token * 32, 8 + size + first
    return made["model.embed_tokens.weight"][2][at:at + 32] != whole[row + at:row + at + 32]


def the_token_of_padding_trains_nothing():
    assert trained(None) and trained(98) and not trained(98, token=98)
    assert not trained(97) and not trained(97 - 128)
    assert trained(97, tied=True)


def names_without_the_module_are_the_same_model():
    """As a folder of the model without its head has them: LlamaModel, embeddings."""
    config = CONFIG | {"tie_word_embeddings": True}
    made = tensors()
    del made["lm_head.weight"]
    bare = {name.removeprefix("model."): tensor for name, tensor in made.items()}
    bare["rotary_emb.inv_freq"] = ("F32", (2,), bytes(8))
    place = folder("bare", config=config | {"architectures": ["LlamaModel"]}, made=bare)
    called = ("--model-name", "one")
    assert roots(place, *called) == roots(folder(config=config, made=made), *called)
    losses = []
    for name, weights in (("bare", place), ("base", folder(config=config, made=made))):
        new(weights, "--lora", "2")
        ask("prover", "run", path("base.job"), "--data", DATA, "--data", weights, "--bundle",
            path(name + ".lora"))
        losses.append([step["loss"] for step in ask("bundle", "steps", path(name + ".lora"))["steps"]])
        out = path(name + ".merged")
        ask("bundle", "export", path(name + ".lora"), "--hf", out, "--base", weights, "--merge")
        new(out)
    assert losses[0] == losses[1], losses
    with open(os.path.join(path("bare.merged"), "model.safetensors"), "rb") as file:
        names = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    del names["__metadata__"]
    assert set(names) == {name.removeprefix("model.") for name in made}  # nothing beside
    refused(folder("headless", config=CONFIG | {"architectures": ["LlamaModel"]}, made=bare),
            "lm_head.weight", "tie_word_embeddings")


def windows_are_refused_where_they_would_matter():
    config = CONFIG | {"model_type": "mistral", "architectures": ["MistralForCausalLM"],
                       "sliding_window": 8}
    new(folder(config=config), "--length", "8")
    refused(folder(config=config), "sliding_window", "--length 8", more=("--length", "9"))
    config |= {"sliding_window": None}
    new(folder(config=config), "--length", "9")
    refused(folder(), "32 positions", more=("--length", "33"), wanted=3)
    qwen = CONFIG | {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"],
                     "sliding_window": 8, "use_sliding_window": True, "max_window_layers": 0}
    refused(folder(config=qwen), "sliding_window", more=("--length", "9"))
    biased = tensors()
    for part, size in (("q", 8), ("k", 4), ("v", 4)):
        biased["model.layers.0.self_attn.%s_proj.bias" % part] = ("F32", (size,), bytes(4 * size))
    new(folder(config=qwen | {"max_window_layers": 1}, made=biased), "--length", "9")  # in no layer


def broken_folders_say_what_is_wrong():
    place = folder(shards=halves())
    os.remove(os.path.join(place, "model-00002-of-00002.safetensors"))
    refused(place, "model-00002-of-00002.safetensors", INDEX, "fetch", wanted=3)
    names = list(tensors())
    refused(folder(shards=[names, names[:2]]), "is in", names[0])  # doubled
    place = folder(shards=halves())
    with open(os.path.join(place, INDEX), encoding="ascii") as file:
        index = json.load(file)

    def changed(**more):
        with open(os.path.join(place, INDEX), "w", encoding="ascii") as file:
            json.dump(index | more, file)

    changed(weight_map=index["weight_map"] | {"ghost": "model-00001-of-00002.safetensors"})
    refused(place, "ghost", INDEX)
    changed(weight_map={k: v for k, v in index["weight_map"].items() if k != names[0]})
    refused(place, names[0], INDEX)
    changed(weight_map={k: "../" + v for k, v in index["weight_map"].items()})
    refused(place, "plain name")
    changed(weight_map=[])
    refused(place, "weight_map")
    changed(more=1)
    refused(place, "more")
    place = folder(shards=halves())
    os.remove(os.path.join(place, INDEX))
    refused(place, INDEX, "fetch", wanted=3)
    place = folder(shards=halves())
    write_safetensors(os.path.join(place, "model.safetensors"), tensors())
    refused(place, "twice")
    place = folder()  # an index may name model.safetensors alone
    with open(os.path.join(place, INDEX), "w", encoding="ascii") as file:
        json.dump({"metadata": {"total_size": 1},
                   "weight_map": {name: "model.safetensors" for name in names}}, file)
    called = ("--model-name", "one")
    assert new(place, *called)["id"] == new(folder("whole"), *called)["id"]
    for other in ("pytorch_model.bin", "model.pt"):
        place = folder()
        os.rename(os.path.join(place, "model.safetensors"), os.path.join(place, other))
        refused(place, other, "save_file", wanted=3)
    place = folder()
    os.remove(os.path.join(place, "config.json"))
    refused(place, "config.json", wanted=3)
    with open(os.path.join(place, "config.json"), "w", encoding="ascii") as file:
        file.write('{"model_type": "llama", "x": "%s"}' % ("y" * 100_000_000))
    refused(place, "config.json", "1048576")
    refused(path("nowhere"), "nowhere", wanted=3)
    for other, word in (("pytorch_model-00001-of-00002.bin", "save_pretrained"),
                        ("model-q4.gguf", "made from"), ("adapter_model.safetensors", "merge")):
        place = folder()
        os.rename(os.path.join(place, "model.safetensors"), os.path.join(place, other))
        refused(place, word, wanted=3)
    with open(os.path.join(place, "adapter_config.json"), "w", encoding="ascii") as file:
        file.write("{}")
    os.remove(os.path.join(place, "config.json"))
    refused(place, "PEFT", "merge", wanted=3)


def weights_off_their_alignment_are_read():
    """Older programs wrote headers of any length."""
    weights = tensors()
    ids = []
    for spaces in (0, 1):
        place = folder(made=weights)
        name = os.path.join(place, "model.safetensors")
        with open(name, "rb") as file:
            whole = file.read()
        size = struct.unpack("<Q", whole[:8])[0]
        head = whole[8:8 + size].rstrip()
        head += b" " * (-(8 + len(head)) % 4 + spaces)
        with open(name, "wb") as file:
            file.write(struct.pack("<Q", len(head)) + head + whole[8 + size:])
        ids.append(new(place, "--lora", "2")["id"])
        ask("prover", "run", path("base.job"), "--data", DATA, "--data", place, "--hoist",
            "--bundle", path("aligned.%d" % spaces))
    assert ids[0] == ids[1]
    assert len({ask("bundle", "steps", path("aligned.%d" % n))["steps"][-1]["loss"]
                for n in (0, 1)}) == 1


def broken_tensors_say_which():
    made = tensors()
    name = "model.layers.0.mlp.up_proj.weight"
    for change, words in (
            ({name: ("F32", (12, 8), struct.pack("<96f", *[float("nan")] * 96))}, (name, "NaN")),
            ({name: ("F32", (8, 12), made[name][2])}, (name, "[12,8]")),
            ({name: ("F64", (12, 8), made[name][2] * 2)}, (name, "F64")),
            ({"extra.weight": made["model.norm.weight"]}, ("extra.weight",))):
        refused(folder(made=made | change), "model.safetensors", *words)
    del made[name]
    refused(folder(made=made), name)


def tied_head_must_be_the_embedding():
    config = CONFIG | {"tie_word_embeddings": True}
    made = tensors()
    refused(folder(config=config, made=made), "lm_head.weight", "ties", "remove it")
    made["lm_head.weight"] = made["model.embed_tokens.weight"]
    same = new(folder(config=config, made=made))["id"]
    del made["lm_head.weight"]
    assert new(folder(config=config, made=made))["id"] == same


def options_that_the_folder_decides_are_refused():
    for words in (["--layers", "2"], ["--model", "llama"], ["--rotary-base", "5"],
                  ["--first-state", DATA], ["--positions", "9"]):
        refused(folder(), words[0], more=words, wanted=3)
    weights = os.path.join(folder(), "model.safetensors")
    said = ask("job", "new", "--model", "llama", "--data", DATA, "--vocabulary", "128", "--layers",
               "1", "--heads", "2", "--kv-heads", "1", "--width", "8", "--hidden", "12",
               "--first-state", weights, "--out", path("x.job"), wanted=1)["error"]
    assert "another network" in said["message"] and "--base" in said["advice"], said


def adapters_want_the_same_of_a_folder():
    lora = ("--lora", "2")
    made = tensors()
    name = "model.layers.0.mlp.up_proj.weight"
    assert not new(folder(), *lora)["first_state_given"]
    for more, word in ((("--target", "q_proj,q_projx"), "q_projx"), (("--target", ""), "linear"),
                       (("--inference",), "learns nothing"), (("--lora-dropout", "1"), "dropout")):
        refused(folder(), word, more=(*lora, *more), wanted=3)
    refused(folder(), "--lora", more=("--target", "q_proj"), wanted=3)
    for change, words in (
            ({name: ("F32", (12, 8), struct.pack("<96f", *[float("nan")] * 96))}, (name, "NaN")),
            ({name: ("F32", (8, 12), made[name][2])}, (name, "[12,8]")),
            ({"extra.weight": made["model.norm.weight"]}, ("extra.weight",))):
        refused(folder(made=made | change), *words, more=lora)
    del made[name]
    refused(folder(made=made), name, more=lora)


if __name__ == "__main__":
    sys.exit(main([shards_are_one_model, sixteen_bits_are_widened_exactly,
                   every_key_is_used_or_refused, the_job_names_the_config,
                   the_token_of_padding_trains_nothing, windows_are_refused_where_they_would_matter,
                   names_without_the_module_are_the_same_model,
                   broken_folders_say_what_is_wrong, broken_tensors_say_which,
                   weights_off_their_alignment_are_read,
                   tied_head_must_be_the_embedding, adapters_want_the_same_of_a_folder,
                   options_that_the_folder_decides_are_refused]))
