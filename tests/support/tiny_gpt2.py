"""A GPT-2 of random weights as Hugging Face publishes one, in bfloat16: of 124M's shape, or another.
Not a test. As a program: FOLDER NAME=VALUE..., such as n_layer=2."""

import json
import os
import random
import struct
import sys

CONFIG = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_layer": 12, "n_embd": 768, "n_head": 12,
          "vocab_size": 50257, "n_positions": 1024, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5}


def shapes(config):
    width = config["n_embd"]
    yield "wte.weight", (config["vocab_size"], width)
    yield "wpe.weight", (config["n_positions"], width)
    for layer in range(config["n_layer"]):
        for name, shape in (("ln_1.weight", (width,)), ("ln_1.bias", (width,)),
                            ("attn.c_attn.weight", (width, 3 * width)), ("attn.c_attn.bias", (3 * width,)),
                            ("attn.c_proj.weight", (width, width)), ("attn.c_proj.bias", (width,)),
                            ("ln_2.weight", (width,)), ("ln_2.bias", (width,)),
                            ("mlp.c_fc.weight", (width, 4 * width)), ("mlp.c_fc.bias", (4 * width,)),
                            ("mlp.c_proj.weight", (4 * width, width)), ("mlp.c_proj.bias", (width,))):
            yield "h.%d.%s" % (layer, name), shape
    yield "ln_f.weight", (width,)
    yield "ln_f.bias", (width,)


def numbers(name, count, source):
    """Gains of 1, else both signs of 0.03 to 0.06."""
    if name.endswith(("ln_1.weight", "ln_2.weight", "ln_f.weight")):
        return b"\x80\x3f" * count
    made = bytearray(2 * count)
    made[0::2] = source.randbytes(count)
    made[1::2] = source.randbytes(count).translate(bytes([0x3d, 0xbd] * 128))
    return made


def write(folder, **changes):
    config = CONFIG | changes
    os.makedirs(folder)
    with open(os.path.join(folder, "config.json"), "w", encoding="ascii") as file:
        json.dump(config, file)
    header, at, source = {}, 0, random.Random(1)
    for name, shape in shapes(config):
        size = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, entry in header.items():
            first, last = entry["data_offsets"]
            file.write(numbers(name, (last - first) // 2, source))


if __name__ == "__main__":
    write(sys.argv[1], **{key: json.loads(value) for key, value in
                          (word.split("=", 1) for word in sys.argv[2:])})
