"""Writes a small random Llama as Hugging Face publishes it, in BF16: tiny_llama.py FOLDER. Not a
test; needs only the standard library."""

import json
import os
import random
import struct
import sys

WIDTH, HIDDEN, LAYERS, HEADS, KV_HEADS, VOCABULARY = 64, 160, 2, 4, 2, 256
CONFIG = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": VOCABULARY,
          "hidden_size": WIDTH, "intermediate_size": HIDDEN, "num_hidden_layers": LAYERS,
          "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS,
          "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
          "hidden_act": "silu", "tie_word_embeddings": False, "torch_dtype": "bfloat16"}


def shapes():
    narrow = WIDTH // HEADS * KV_HEADS
    yield "model.embed_tokens.weight", (VOCABULARY, WIDTH)
    for layer in range(LAYERS):
        for name, shape in (("input_layernorm", (WIDTH,)), ("self_attn.q_proj", (WIDTH, WIDTH)),
                            ("self_attn.k_proj", (narrow, WIDTH)),
                            ("self_attn.v_proj", (narrow, WIDTH)),
                            ("self_attn.o_proj", (WIDTH, WIDTH)),
                            ("post_attention_layernorm", (WIDTH,)),
                            ("mlp.gate_proj", (HIDDEN, WIDTH)), ("mlp.up_proj", (HIDDEN, WIDTH)),
                            ("mlp.down_proj", (WIDTH, HIDDEN))):
            yield "model.layers.%d.%s.weight" % (layer, name), shape
    yield "model.norm.weight", (WIDTH,)
    yield "lm_head.weight", (VOCABULARY, WIDTH)


def drawn(shape, source):
    """As bytes: the upper halves of binary32."""
    count = shape[0] * (shape[1] if len(shape) == 2 else 1)
    values = ((source.gauss(0, shape[1] ** -0.5) if len(shape) == 2 else 1.0) for _ in range(count))
    return b"".join(struct.pack("<f", value)[2:] for value in values)


def main(folder):
    source = random.Random(1)
    header, parts, at = {}, [], 0
    for name, shape in shapes():
        parts.append(drawn(shape, source))
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + len(parts[-1])]}
        at += len(parts[-1])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    os.makedirs(folder)
    with open(os.path.join(folder, "config.json"), "w", encoding="ascii") as file:
        json.dump(CONFIG, file, indent=2)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


main(sys.argv[1])
