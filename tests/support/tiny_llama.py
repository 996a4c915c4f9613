"""Writes a random Llama as Hugging Face publishes it, in BF16: tiny_llama.py FOLDER [KEY=VALUE ...],
where a KEY is one of config.json's. Needs only the standard library. Not a test."""

import json
import math
import os
import random
import struct
import sys

CONFIG = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 256,
          "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2,
          "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128,
          "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
          "tie_word_embeddings": False, "torch_dtype": "bfloat16"}


def shapes(config):
    width, hidden = config["hidden_size"], config["intermediate_size"]
    narrow = width // config["num_attention_heads"] * config["num_key_value_heads"]
    yield "model.embed_tokens.weight", (config["vocab_size"], width)
    for layer in range(config["num_hidden_layers"]):
        for name, shape in (("input_layernorm", (width,)), ("self_attn.q_proj", (width, width)),
                            ("self_attn.k_proj", (narrow, width)),
                            ("self_attn.v_proj", (narrow, width)),
                            ("self_attn.o_proj", (width, width)),
                            ("post_attention_layernorm", (width,)),
                            ("mlp.gate_proj", (hidden, width)), ("mlp.up_proj", (hidden, width)),
                            ("mlp.down_proj", (width, hidden))):
            yield "model.layers.%d.%s.weight" % (layer, name), shape
    yield "model.norm.weight", (width,)
    if not config["tie_word_embeddings"]:
        yield "lm_head.weight", (config["vocab_size"], width)


def drawn(shape, source):
    """As bytes: gains of 1; else signs, and sizes in two octaves about the root of 1 / columns. The
    low byte holds an exponent's last bit and the mantissa, the high one the sign and the rest."""
    count = math.prod(shape)
    if len(shape) == 1:
        return b"\x80\x3f" * count
    exponent = round((127 - 0.5 * math.log2(shape[1]) - 1.26) / 2)
    made = bytearray(2 * count)
    made[0::2] = source.randbytes(count)
    made[1::2] = source.randbytes(count).translate(bytes([exponent, 128 | exponent] * 128))
    return made


def write(folder, **changes):
    config = CONFIG | changes
    source = random.Random(1)
    header, at = {}, 0
    for name, shape in shapes(config):
        size = 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    os.makedirs(folder)
    with open(os.path.join(folder, "config.json"), "w", encoding="ascii") as file:
        json.dump(config, file, indent=2)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, shape in shapes(config):
            file.write(drawn(shape, source))
    return at


if __name__ == "__main__":
    write(sys.argv[1], **{key: json.loads(value) for key, value in
                          (word.split("=", 1) for word in sys.argv[2:])})
