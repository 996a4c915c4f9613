"""Goal: what was trained leaves the house whole: a model from a seed with the config and the tokenizer
that other programs read, in binary32 or bfloat16, with a root of the weights; adapters under the name
of their base, which a later job goes on with.
Method: small GPT-2s and Llamas, trained here. The exported folder goes in again: it generates, and its
loss at step 0 is the held-out loss of the run. Roots and rounding once more in Python, from
docs/FORMATS.md. A training that is cut in two goes on where it was. Refusals by name."""

import hashlib
import json
import os
import shutil
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
sys.dont_write_bytecode = True

import tiny_llama  # noqa: E402
from program import ask, call, main, path  # noqa: E402

DATA = "fixtures/text/village.u8"
SHAPE = ["--vocabulary", "256", "--layers", "2", "--width", "32", "--heads", "4", "--length", "16"]
COURSE = ["--data", DATA, "--data-type", "u8", "--batch", "2"]


def read(file):
    """name -> (type, dims, bytes)"""
    with open(file, "rb") as opened:
        size, = struct.unpack("<Q", opened.read(8))
        header, body = json.loads(opened.read(size)), opened.read()
    return {name: (entry["dtype"], entry["shape"], body[slice(*entry["data_offsets"])])
            for name, entry in header.items() if name != "__metadata__"}


def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def tree(leaves):
    if len(leaves) == 1:
        return leaves[0]
    half = 1 << (len(leaves) - 1).bit_length() - 1
    return sha(b"\x01", tree(leaves[:half]), tree(leaves[half:]))


def tag(name):
    return name.encode().ljust(32, b"\0")


def tensor_root(name, kind, dims, data):
    """docs/FORMATS.md, section 2.1."""
    leaves = [sha(b"\0", data[i:i + 1024].ljust(1024, b"\0")) for i in range(0, len(data), 1024)]
    return sha(tag("lockstep.tensor.v1"), tree(leaves), struct.pack(
        ">7QBBH", len(data), *dims, *[0] * (6 - len(dims)), {"F32": 0, "BF16": 7}[kind], len(dims),
        len(name)), name.encode())


def model_root(tensors):
    """Section 2.4: as a state whose tensors are sorted by name."""
    items = [sha(b"\0", tensor_root(name, *tensors[name])) for name in sorted(tensors)]
    return sha(tag("lockstep.state.v1"), tree(items), struct.pack(">QQ", 0, len(items))).hex()


def trained(kind, *more):
    """A run of four steps of a model from a seed."""
    job, run = path(kind + ".job"), path(kind + ".run")
    if not os.path.exists(run):
        ask("job", "new", "--model", kind, *SHAPE, *COURSE, "--steps", "4", "--segment-steps", "2",
            "--out", job, "--eval", DATA, "--eval-batches", "3", *more)
        ask("prover", "run", job, "--data", DATA, "--data", DATA, "--bundle", run)
    return run


def loss_of(folder):
    """Of the whole folder, on the batches of a job of inference: its mean over 8 steps."""
    job, run = folder + ".test.job", folder + ".test.run"
    ask("job", "new", "--base", folder, "--inference", *COURSE, "--length", "16", "--steps", "8",
        "--segment-steps", "8", "--calibrate", "none", "--out", job)
    ask("prover", "run", job, "--data", DATA, "--first-state", folder, "--bundle", run)
    return sum(step["loss"] for step in ask("bundle", "steps", run)["steps"]) / 8


def narrow(bits):
    """binary32 to bfloat16, to nearest, ties to even."""
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16


def a_model_from_a_seed_is_a_folder_of_its_own():
    for kind in ("gpt2", "llama"):
        run, out = trained(kind, *(["--rotary-base", "54321"] if kind == "llama" else [])), path(kind + ".hf")
        call("bundle", "export", run, "--hf", out, "--tokenizer", "bytes")
        with open(out + "/config.json", encoding="ascii") as file:
            config = json.load(file)
        assert config["model_type"] == kind and config["torch_dtype"] == "float32", config
        assert kind == "gpt2" or (config["rope_theta"], config["num_key_value_heads"]) == (54321, 2)
        state = read(run + "/checkpoints/000000000004.safetensors")
        weights = read(out + "/model.safetensors")
        assert weights == {name: state[name] for name in weights}
        assert {name for name in state if name[:2] not in ("m.", "v.") and state[name][0] == "F32"
                and not name.startswith("held_out.")} == set(weights)
        said = ask("generate", out, "--prompt", "The \u00e9", "--tokens", "6", "--temperature", "0")
        raw = ask("generate", out, "--tokenizer", "bytes", "--prompt", "The \u00e9", "--tokens", "6",
                  "--temperature", "0")
        assert said["tokens"] == raw["tokens"] and said["prompt_tokens"] == 6, (said, raw)
        before = path(kind + ".before")
        call("bundle", "export", run, "--hf", before, "--step", "2")
        assert not os.path.exists(before + "/tokenizer.json")
        assert loss_of(out) < loss_of(before), "two more steps taught nothing"


def bfloat16_is_rounded_to_nearest_even_and_has_a_root_of_its_own():
    run, out = trained("llama"), path("narrow")
    call("bundle", "export", run, "--hf", out, "--tokenizer", "bytes", "--dtype", "bf16")
    call("bundle", "export", run, "--hf", path("wide"), "--tokenizer", "bytes")
    wide, made = read(path("wide/model.safetensors")), read(out + "/model.safetensors")
    for name, (kind, dims, data) in made.items():
        words = struct.unpack("<%dI" % (len(data) // 2), wide[name][2])
        assert (kind, dims) == ("BF16", wide[name][1])
        assert data == struct.pack("<%dH" % len(words), *map(narrow, words)), name
    with open(out + "/config.json", encoding="ascii") as file:
        assert json.load(file)["torch_dtype"] == "bfloat16"
    roots = {}
    for folder, tensors in ((out, made), (path("wide"), wide)):
        said = ask("model", "root", folder)
        assert said["root"] == model_root(tensors) and said["tensors"] == len(tensors), said
        assert ask("model", "root", folder + "/model.safetensors")["root"] == said["root"]
        with open(folder + "/README.md", encoding="ascii") as file:
            assert "| root of the weights here | `%s` |" % said["root"] in file.read()
        roots[folder] = said["root"]
    assert len(set(roots.values())) == 2
    assert len(ask("generate", out, "--prompt", "The", "--tokens", "3")["tokens"]) == 3
    with open(out + "/model.safetensors", "r+b") as file:
        file.seek(-1, 2)
        last = file.read(1)
        file.seek(-1, 2)
        file.write(bytes([last[0] ^ 1]))
    assert ask("model", "root", out)["root"] != roots[out]


def base():
    if not os.path.exists(path("base")):
        tiny_llama.write(path("base"), num_hidden_layers=1)
    return path("base")


def tuned(name, steps, *more, first=None):
    job, run = path(name + ".job"), path(name + ".run")
    made = ask("job", "new", "--base", base(), *COURSE, "--length", "16", "--steps", str(steps),
               "--segment-steps", "2", "--optimizer", "sgd", "--schedule", "constant", "--warmup", "0",
               "--rate", "0.05", "--calibrate", "none", "--out", job, *more)
    ask("prover", "run", job, "--data", DATA, "--data", base(), "--bundle", run,
        *(["--first-state", first] if first else []))
    return run, made


def adapters_go_on_and_bear_the_name_of_their_base():
    run, _ = tuned("first", 4, "--lora", "3", "--lora-alpha", "5")
    out = path("adapter")
    call("bundle", "export", run, "--hf", out, "--base", base(), "--base-name", "owner/tiny")
    with open(out + "/adapter_config.json", encoding="ascii") as file:
        config = json.load(file)
    with open(out + "/README.md", encoding="ascii") as file:
        assert "\nbase_model: owner/tiny\n" in file.read()
    assert config["base_model_name_or_path"] == "owner/tiny", config
    second, made = tuned("second", 2, "--adapter", out, first=out)
    assert made["first_state_given"]
    parts = read(run + "/checkpoints/000000000004.safetensors")
    # Nothing moves: what stands there first is what was exported, and it is as the first run left it.
    still, _ = tuned("still", 2, "--adapter", out, "--rate", "0", first=out)
    after = read(still + "/checkpoints/000000000002.safetensors")
    names = [name for name in parts if "lora_" in name and name[:2] not in ("m.", "v.")]
    assert len(names) == 4 and all(after[name] == parts[name] for name in names), names
    moved = read(second + "/checkpoints/000000000002.safetensors")
    assert all(moved[name] != parts[name] for name in names)
    audit, = ask("audit", second, "--data", DATA, "--data", base())["audits"]
    assert audit["answer"] == "proven", audit
    call("bundle", "export", second, "--hf", path("merged"), "--base", base(), "--merge", "--dtype", "bf16")
    assert {kind for kind, _, _ in read(path("merged/model.safetensors")).values()} == {"BF16"}
    third, _ = tuned("third", 2, "--adapter", out, first=out)  # the same again
    assert read(third + "/checkpoints/000000000002.safetensors") == moved
    ask("job", "new", "--base", path("merged"), *COURSE, "--length", "16", "--lora", "2", "--out",
        path("stage.job"), "--steps", "2")  # a second stage on the first


def what_does_not_fit_is_refused_by_name():
    out, number = path("adapter"), iter(range(100))

    def refused(part, words, wanted=3):
        said = ask(*words, wanted=wanted)["error"]["message"]
        assert part in said, (words, said)

    def adapter(**changes):
        folder = path("bad%d" % next(number))
        shutil.copytree(out, folder)
        with open(folder + "/adapter_config.json", encoding="ascii") as file:
            config = json.load(file)
        with open(folder + "/adapter_config.json", "w", encoding="ascii") as file:
            json.dump(config | changes, file)
        return folder

    new = ["job", "new", "--base", base(), *COURSE, "--out", path("no.job"), "--length", "16"]
    refused("of rank 3, alpha 5, on q_proj,v_proj", [*new, "--adapter", out, "--lora", "4"])
    refused("of rank 3", [*new, "--adapter", out, "--lora-alpha", "6"])
    refused("of rank 3", [*new, "--adapter", out, "--target", "q_proj"])
    refused("adapter_config.json", [*new, "--adapter", path("nowhere")])
    for changes, part in (({"use_dora": True}, "'use_dora'"), ({"peft_type": "IA3"}, "'peft_type'"),
                          ({"rank_pattern": {"q_proj": 2}}, "'rank_pattern'"), ({"r": 0}, "'r'"),
                          ({"modules_to_save": ["lm_head"]}, "'modules_to_save'"),
                          ({"target_modules": ".*q_proj"}, "'target_modules'"),
                          ({"target_modules": ["q_proj"]}, "v_proj"), ({"r": 2}, "lora_A")):
        refused(part, [*new, "--adapter", adapter(**changes)], wanted=1)
    refused("began with a seed", ["bundle", "export", trained("gpt2"), "--hf", path("no"), "--base-name", "a/b"])
    refused("adapters stay", ["bundle", "export", path("first.run"), "--hf", path("no"), "--base", base(),
                              "--dtype", "bf16"])
    refused("--base DIR", ["bundle", "export", path("first.run"), "--hf", path("no")])
    refused("taken along already", ["bundle", "export", path("first.run"), "--hf", path("no"), "--base",
                                    base(), "--tokenizer", "bytes"])
    assert not os.path.exists(path("no")) and not os.path.exists(path("no.job"))


if __name__ == "__main__":
    sys.exit(main([a_model_from_a_seed_is_a_folder_of_its_own,
                   bfloat16_is_rounded_to_nearest_even_and_has_a_root_of_its_own,
                   adapters_go_on_and_bear_the_name_of_their_base, what_does_not_fit_is_refused_by_name]))
