"""Goal: `base widen` makes an ordinary folder of one whose weights have four bits, as bitsandbytes and
transformers widen them, and refuses what does not fit, by file and tensor.
Method: weights are quantized here by the published rules: NF4 in groups of 64 with F32 or doubly
quantized scales, MXFP4 in groups of 32. PyTorch multiplies in binary32."""

import hashlib
import json
import os
import shutil
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
from program import DATA, ask, main, path  # noqa: E402

CONFIG = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 128,
          "hidden_size": 40, "intermediate_size": 56, "num_hidden_layers": 2, "num_attention_heads": 4,
          "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
          "hidden_act": "silu", "tie_word_embeddings": False, "torch_dtype": "bfloat16"}
NF4 = {"quant_method": "bitsandbytes", "load_in_4bit": True, "load_in_8bit": False,
       "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True,
       "bnb_4bit_compute_dtype": "bfloat16"}
TABLE = torch.tensor([-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453,
                      -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0,
                      0.07958029955625534, 0.16093020141124725, 0.24611230194568634,
                      0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
                      0.7229568362236023, 1.0])
TYPES = {torch.float32: "F32", torch.bfloat16: "BF16", torch.uint8: "U8", torch.int8: "I8"}


def write(name, tensors):
    """Raw tensors, wider types first."""
    header, parts, at = {}, [], 0
    for key, t in sorted(tensors.items(), key=lambda item: -item[1].element_size()):
        t = t.contiguous()
        raw = (t.view(torch.int16) if t.dtype == torch.bfloat16 else t).numpy().tobytes()
        header[key] = {"dtype": TYPES[t.dtype], "shape": list(t.shape), "data_offsets": [at, at + len(raw)]}
        parts.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(name, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


def text_of(value):
    return torch.tensor(list(json.dumps(value).encode()), dtype=torch.uint8)


def nf4(name, w, nested):
    """The tensors of a weight, and what it is wide. nested: groups in a group of scales, or 0."""
    flat = w.flatten().float()
    groups = torch.nn.functional.pad(flat, (0, -len(flat) % 64)).view(-1, 64)
    largest = groups.abs().max(1).values
    state = {"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": list(w.shape)}
    made = {}
    if nested:
        offset = float(largest.mean())
        codes = torch.linspace(-1, 1, 256)
        outer = torch.nn.functional.pad(largest - offset, (0, -len(largest) % nested)).view(-1, nested)
        scale = outer.abs().max(1).values
        byte = ((outer / scale[:, None])[..., None] - codes).abs().argmin(-1)
        largest = ((codes[byte] * scale[:, None]).flatten() + torch.tensor(offset))[:len(largest)]
        made = {".absmax": byte.flatten()[:len(largest)].to(torch.uint8), ".nested_absmax": scale,
                ".nested_quant_map": codes}
        state |= {"nested_blocksize": nested, "nested_dtype": "float32", "nested_offset": offset}
    else:
        made = {".absmax": largest}
    code = ((groups / largest[:, None])[..., None] - TABLE).abs().argmin(-1).flatten()[:len(flat)]
    wide = (TABLE[code] * largest.repeat_interleave(64)[:len(flat)]).view(w.shape)
    padded = torch.nn.functional.pad(code, (0, len(code) % 2)).to(torch.uint8)
    made |= {"": (padded[::2] * 16 + padded[1::2]).view(-1, 1), ".quant_map": TABLE,
             ".quant_state.bitsandbytes__nf4": text_of(state)}
    return {name + end: t for end, t in made.items()}, wide


def folder_nf4(stem, nested, shards=1, **config):
    """Returns the folder and the wide tensors."""
    place = path(stem)
    shutil.rmtree(place, ignore_errors=True)
    os.makedirs(place)
    weights = reference.draw_weights(CONFIG, "BF16")
    tensors, wide = {}, {}
    for name, w in weights.items():
        if "_proj" in name and name.endswith(".weight"):
            made, wide[name] = nf4(name, w, nested)
            tensors |= made
        else:
            tensors[name] = wide[name] = w.to(torch.bfloat16)
    with open(os.path.join(place, "config.json"), "w", encoding="ascii") as file:
        json.dump(CONFIG | {"quantization_config": NF4} | config, file)
    with open(os.path.join(place, "tokenizer_config.json"), "w", encoding="ascii") as file:
        file.write("{}")
    if shards == 1:
        write(os.path.join(place, "model.safetensors"), tensors)
        return place, wide
    weight_map = {}
    for shard in range(shards):  # parts of one weight stand in several files
        file = "model-%05d-of-%05d.safetensors" % (shard + 1, shards)
        part = {key: tensors[key] for key in sorted(tensors)[shard::shards]}
        write(os.path.join(place, file), part)
        weight_map |= {key: file for key in part}
    with open(os.path.join(place, "model.safetensors.index.json"), "w", encoding="ascii") as file:
        json.dump({"metadata": {}, "weight_map": weight_map}, file)
    return place, wide


def read(folder):
    tensors = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".safetensors"):
            tensors |= reference.read_safetensors(os.path.join(folder, name))
    return tensors


def root_of(folder):
    """sha256sum config.json model*.safetensors | sha256sum"""
    lines = b""
    for name in sorted(os.listdir(folder)):
        if name == "config.json" or name.endswith(".safetensors"):
            with open(os.path.join(folder, name), "rb") as file:
                lines += hashlib.sha256(file.read()).hexdigest().encode() + b"  " + name.encode() + b"\n"
    return hashlib.sha256(lines).hexdigest()


def check_nf4(stem, nested, shards, kind):
    folder, wide = folder_nf4(stem, nested, shards)
    out = path(stem + ".wide")
    said = ask("base", "widen", folder, "--out", out, *(["--dtype", "bf16"] if kind == "BF16" else []))
    saved = read(out)
    assert set(saved) == set(wide) and said["tensors"] == 14, (said, len(wide))
    for name, t in wide.items():
        wanted = t.to(torch.bfloat16) if kind == "BF16" else t
        assert saved[name].dtype == wanted.dtype and torch.equal(saved[name], wanted), name
    assert (said["origin"], said["root"]) == (root_of(folder), root_of(out)), said
    with open(os.path.join(out, "WIDENED.json"), encoding="ascii") as file:
        note = json.load(file)
    assert (note["method"], note["origin"]["root"]) == ("nf4", said["origin"]), note
    with open(os.path.join(out, "config.json"), encoding="ascii") as file:
        config = json.load(file)
    assert config == CONFIG | {"torch_dtype": "bfloat16" if kind == "BF16" else "float32"}, config
    assert os.path.exists(os.path.join(out, "tokenizer_config.json"))
    made = ask("job", "new", "--base", out, "--data", DATA, "--data-type", "u8", "--length", "8", "--batch",
               "1", "--inference", "--steps", "1", "--segment-steps", "1", "--bits", "22", "--out",
               path(stem + ".job"))
    assert made["first_state_given"]
    ask("prover", "run", path(stem + ".job"), "--data", DATA, "--first-state", out, "--bundle",
        path(stem + ".run"))
    loss = ask("bundle", "steps", path(stem + ".run"))["steps"][0]["loss"]
    with open(DATA, "rb") as file:
        data = torch.tensor(list(file.read()))
    tokens, targets = reference.batch_of(data, 8, 1, 0)
    logits = reference.Decoder(CONFIG, {name: t.double() for name, t in saved.items()})(tokens)
    wanted = float(torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()))
    assert abs(loss - wanted) <= 2e-6 * wanted, (loss, wanted)


def nf4_is_one_product():
    check_nf4("plain", 0, 1, "F32")
    check_nf4("plain.bf16", 0, 1, "BF16")


def nf4_is_doubly_quantized():
    """Of 35 groups of a weight 32 have one scale of their scales, and 3 another."""
    check_nf4("nested", 32, 1, "F32")
    check_nf4("nested.bf16", 256, 3, "BF16")


FP4 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]


def folder_mxfp4(stem, scale=None):
    """A linear layer, and a list of two matrices as experts have it."""
    place = path(stem)
    shutil.rmtree(place, ignore_errors=True)
    os.makedirs(place)
    generator = torch.Generator().manual_seed(2)
    tensors, wide = {"norm.weight": torch.ones(3).to(torch.bfloat16)}, {}
    for name, shape in (("linear", (5, 3)), ("experts.up_proj", (2, 5, 3))):
        codes = torch.randint(0, 16, (*shape, 32), generator=generator)
        scales = torch.randint(0, 253, shape, generator=generator)
        if scale is not None:
            scales[-1, -1] = scale
        numbers = torch.tensor(FP4 + [-x for x in FP4], dtype=torch.float64)[codes]
        value = (numbers * 2.0**(scales[..., None].double() - 127)).flatten(-2)
        wide[name] = (value.transpose(1, 2) if len(shape) == 3 else value).to(torch.bfloat16)
        assert scale is not None or torch.equal(
            wide[name].double(), value.transpose(1, 2) if len(shape) == 3 else value)
        tensors[name + "_blocks"] = (codes[..., 1::2] * 16 + codes[..., ::2]).to(torch.uint8)
        tensors[name + "_scales"] = scales.to(torch.uint8)
    write(os.path.join(place, "model.safetensors"), tensors)
    with open(os.path.join(place, "config.json"), "w", encoding="ascii") as file:
        json.dump({"model_type": "gpt_oss", "quantization_config": {"quant_method": "mxfp4"}}, file)
    return place, wide | {"norm.weight": tensors["norm.weight"]}


def mxfp4_is_exact():
    folder, wide = folder_mxfp4("mx")
    assert ask("base", "widen", folder, "--out", path("mx.wide"))["tensors"] == 2
    saved = read(path("mx.wide"))
    assert set(saved) == set(wide)
    for name, t in wide.items():
        assert saved[name].dtype == torch.bfloat16 and torch.equal(
            saved[name].contiguous().view(torch.int16), t.contiguous().view(torch.int16)), name
    assert "bf16, exactly" in refused(folder, "--dtype", "f32", code=3)
    for scale in (253, 255):
        folder, _ = folder_mxfp4("mx.%d" % scale, scale)
        assert "%d, which is NaN or overflows" % scale in refused(folder)


def refused(folder, *more, code=1):
    out = path("refused")
    error = ask("base", "widen", folder, "--out", out, *more, wanted=code)["error"]
    assert not os.path.exists(out), "a folder was left"
    return error["message"] + " " + error.get("advice", "")


def broken(change, **config):
    """What is said of a folder whose tensors were changed."""
    folder, _ = folder_nf4("broken", 256, **config)
    name = os.path.join(folder, "model.safetensors")
    with open(name, "rb") as file:
        whole = file.read()
    size = struct.unpack("<Q", whole[:8])[0]
    kinds = {kind: dtype for dtype, kind in TYPES.items()}
    tensors = {key: torch.frombuffer(bytearray(whole[8 + size + e["data_offsets"][0]:
                                                     8 + size + e["data_offsets"][1]]),
                                     dtype=kinds[e["dtype"]]).view(e["shape"])
               for key, e in json.loads(whole[8:8 + size]).items()}
    change(tensors)
    write(name, tensors)
    return refused(folder)


AT = "model.layers.0.self_attn.q_proj.weight"
STATE = AT + ".quant_state.bitsandbytes__nf4"


def said(**changes):
    state = {"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": [40, 40],
             "nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": 0.5}
    return text_of({key: value for key, value in (state | changes).items() if value is not None})


def what_does_not_fit_is_refused_by_tensor():
    for put, word in (
            ({AT + ".absmax": torch.zeros(24, dtype=torch.uint8)}, "'%s.absmax' is not 25" % AT),
            ({AT + ".nested_absmax": torch.full((1,), float("nan"))}, "nested_absmax"),
            ({AT + ".quant_map": torch.zeros(16)}, "not the table of NF4"),
            ({STATE: said(blocksize=48)}, "'blocksize'"), ({STATE: said(blocksize=128)}, "is not 13"),
            ({STATE: said(shape=[40, 41])}, "1640 numbers"), ({STATE: said(shape=[])}, "'shape'"),
            ({STATE: said(shape=[40, -1])}, "'shape'"), ({STATE: said(shape=[2**31, 2**31])}, "'shape'"),
            ({STATE: said(quant_type="fp4")}, "'quant_type'"), ({STATE: said(odd=1)}, "odd"),
            ({STATE: said(nested_blocksize=None)}, "'nested_blocksize'"),
            ({STATE: said(nested_offset=None)}, "'nested_offset'"),
            ({STATE: text_of([])}, STATE), ({STATE: torch.zeros(9, dtype=torch.uint8)}, STATE),
            ({"x.weight": torch.zeros(3, dtype=torch.int8)}, "'x.weight' is I8"),
            ({AT: torch.zeros(800, dtype=torch.int8)}, "numbers of 4 bits")):
        message = broken(lambda tensors: tensors.update(put))
        assert word in message, (word, message)
    for name in (AT, AT + ".absmax", AT + ".nested_quant_map", AT + ".quant_map"):
        message = broken(lambda tensors: tensors.pop(name))
        assert AT in message, (name, message)
    assert "is U8, and no part" in broken(lambda tensors: tensors.pop(STATE))


def other_methods_are_refused_by_name():
    for method, word in (({"quant_method": "gptq", "bits": 4}, "'gptq'"),
                         ({"quant_method": "awq"}, "'awq'"), ({}, "''"),
                         (NF4 | {"load_in_4bit": False, "load_in_8bit": True}, "8 bits"),
                         (NF4 | {"bnb_4bit_quant_type": "fp4"}, "'fp4'")):
        folder, _ = folder_nf4("other", 0, quantization_config=method)
        message = refused(folder)
        assert word in message and "before they were quantized" in message, (word, message)
    folder, _ = folder_nf4("other", 0, quantization_config=None)
    assert "wide already" in refused(folder)
    folder, _ = folder_nf4("there", 0)
    os.makedirs(path("there.out"))
    assert "is there already" in ask("base", "widen", folder, "--out", path("there.out"), wanted=1)[
        "error"]["message"]


if __name__ == "__main__":
    sys.exit(main([nf4_is_one_product, nf4_is_doubly_quantized, mxfp4_is_exact,
                   what_does_not_fit_is_refused_by_tensor, other_methods_are_refused_by_name]))
