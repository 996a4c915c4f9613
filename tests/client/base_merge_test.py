"""Goal: `base merge` makes of a published folder and published adapters what `bundle export --merge` makes of
the run that trained them, for adapters of each type, and refuses what it would add wrongly.
Method: adapters of a small Llama, also of its embedding, and of a small GPT-2, whose matrices lie the other way;
the same in bfloat16, computed here; then one thing is broken at a time."""

import json
import os
import shutil
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../support")]
sys.dont_write_bytecode = True

import tiny_gpt2  # noqa: E402
import tiny_llama  # noqa: E402
from program import ask, call, main, path  # noqa: E402

WEIGHTS = "adapter_model.safetensors"
BEFORE = "base_model.model."


def read(name):
    """name -> (type, shape, bytes)"""
    with open(name, "rb") as file:
        whole = file.read()
    size, = struct.unpack("<Q", whole[:8])
    body = whole[8 + size:]
    return {key: (one["dtype"], one["shape"], body[slice(*one["data_offsets"])])
            for key, one in json.loads(whole[8:8 + size]).items() if key != "__metadata__"}


def write(name, tensors):
    header, body = {}, b""
    for key, (kind, shape, data) in tensors.items():
        header[key] = {"dtype": kind, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(name, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)


def trained(family):
    """Base, adapters and the merged folder of the run."""
    base, adapter, merged = (path(family + end) for end in ("", ".adapter", ".merged"))
    if not os.path.exists(base):
        if family == "llama":
            tiny_llama.write(base, vocab_size=256, hidden_size=16, intermediate_size=32, num_hidden_layers=1)
        else:
            tiny_gpt2.write(base, n_layer=1, n_embd=16, n_head=2, vocab_size=256, n_positions=32)
        with open(path("tokens.u8"), "wb") as file:
            file.write(bytes(range(256)) * 2)
        call("job", "new", "--base", base, "--lora", "2", "--target",
             {"llama": "q_proj,down_proj,embed_tokens", "gpt2": "c_attn,c_fc"}[family], "--data", path("tokens.u8"),
             "--data-type", "u8", "--length", "16", "--batch", "2", "--steps", "2", "--segment-steps", "2", "--rate",
             "0.1", "--out", base + ".job")
        call("prover", "run", base + ".job", "--data", path("tokens.u8"), "--data", base, "--bundle", base + ".run")
        call("bundle", "export", base + ".run", "--hf", adapter, "--base", base)
        call("bundle", "export", base + ".run", "--hf", merged, "--base", base, "--merge")
    return base, adapter, merged


def changed(name, change, config=None):
    """A copy of the Llama's adapters, with change(tensors) and other keys of its config."""
    _, adapter, _ = trained("llama")
    place = path(name)
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(adapter, place)
    tensors = read(os.path.join(place, WEIGHTS))
    change(tensors)
    write(os.path.join(place, WEIGHTS), tensors)
    with open(os.path.join(place, "adapter_config.json"), encoding="ascii") as file:
        said = json.load(file)
    with open(os.path.join(place, "adapter_config.json"), "w", encoding="ascii") as file:
        json.dump(said | (config or {}), file)
    return place


def merge(base, adapter, out, wanted=0):
    return ask("base", "merge", base, "--adapter", adapter, "--out", path(out), wanted=wanted)


def merged_as_by_the_run():
    for family, adapters in (("llama", 3), ("gpt2", 2)):
        base, adapter, merged = trained(family)
        said = merge(base, adapter, family + ".again")
        assert said["adapters"] == adapters and said["root"] == ask("model", "root", merged)["root"], said
        for name in ("model.safetensors", "config.json"):
            with open(path(family + ".again/" + name), "rb") as one, open(os.path.join(merged, name), "rb") as other:
                assert one.read() == other.read(), (family, name)
        moved = read(os.path.join(base, "model.safetensors"))
        assert sum(read(path(family + ".again/model.safetensors"))[name][2] != widened(moved[name])
                   for name in moved) == adapters, family


def widened(tensor):
    kind, _, data = tensor
    return data if kind == "F32" else b"".join(b"\0\0" + data[at:at + 2] for at in range(0, len(data), 2))


def floats(tensor):
    data = widened(tensor)
    return struct.unpack("<%df" % (len(data) // 4), data)


def short_adapters_are_widened():
    def shorten(tensors):
        for name, (_, shape, data) in tensors.items():
            tensors[name] = ("BF16", shape, b"".join(data[at + 2:at + 4] for at in range(0, len(data), 4)))

    base, _, _ = trained("llama")
    place = changed("short", shorten, {"lora_alpha": 3.0})
    merge(base, place, "short.merged")
    parts = read(os.path.join(place, WEIGHTS))
    module = "model.layers.0.self_attn.q_proj"
    a, b = (floats(parts[BEFORE + module + end]) for end in (".lora_A.weight", ".lora_B.weight"))
    before = floats(read(os.path.join(base, "model.safetensors"))[module + ".weight"])
    after = floats(read(path("short.merged/model.safetensors"))[module + ".weight"])
    for o in range(16):
        for i in range(16):
            product = b[2 * o] * a[i] + b[2 * o + 1] * a[16 + i]
            wanted, = struct.unpack("<f", struct.pack("<f", before[16 * o + i] + 1.5 * product))
            assert after[16 * o + i] == wanted, (o, i)


def what_would_be_added_wrongly_is_refused():
    base, adapter, _ = trained("llama")
    module = BEFORE + "model.layers.0.self_attn.q_proj.lora_"

    def drop(tensors):
        del tensors[module + "B.weight"]

    def rename(tensors):
        for end in ("A.weight", "B.weight"):
            tensors[module.replace("q_proj", "x_proj") + end] = tensors.pop(module + end)

    def turn(tensors):
        kind, shape, data = tensors[module + "A.weight"]
        tensors[module + "A.weight"] = (kind, shape[::-1], data)

    for name, change, config, word in (
            ("drop", drop, {}, "one part of an adapter alone"), ("rename", rename, {}, "4 of its 6 tensors"),
            ("turn", turn, {}, "other shapes"), ("dora", dict, {"use_dora": True}, "use_dora"),
            ("none", dict.clear, {}, "tensor"), ("rank", dict, {"r": 0}, "'r'")):
        said = merge(base, changed(name, change, config), "refused", wanted=1)["error"]["message"]
        assert word in said and not os.path.exists(path("refused")), (name, said)
    said = merge(adapter, adapter, "refused", wanted=3)["error"]
    assert "adapters of PEFT" in said["message"] and "base merge" in said["advice"], said
    os.makedirs(path("there"))
    assert "is there already" in merge(base, adapter, "there", wanted=1)["error"]["message"]
    assert not [name for name in os.listdir(path("")) if ".part-" in name]


if __name__ == "__main__":
    sys.exit(main([merged_as_by_the_run, short_adapters_are_widened, what_would_be_added_wrongly_is_refused]))
