"""Loads the model file of a GPT-2 job into a GPT-2 of PyTorch, strictly: every name and shape must be
there, and no other. Computes the loss of one window with it.

    python3 scripts/load_gpt2.py model.safetensors"""

import json
import struct
import sys

import torch
from torch import nn
from torch.nn import functional


def read(path):
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(size))
        data = file.read()
    header.pop("__metadata__")
    return {name: torch.frombuffer(bytearray(data[slice(*one["data_offsets"])]), dtype=torch.float32)
            .reshape(one["shape"]) for name, one in header.items()}


class Linear(nn.Module):
    """As GPT-2 has it: the weight is (inputs, outputs)."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return x @ self.weight + self.bias


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn, self.c_proj = Linear(width, 3 * width), Linear(width, width)

    def forward(self, x):
        length, width = x.shape
        q, k, v = (part.reshape(length, self.heads, -1).transpose(0, 1)
                   for part in self.c_attn(x).split(width, 1))
        later = torch.ones(length, length).triu(1).bool()
        scores = (q @ k.transpose(1, 2) / q.shape[-1] ** 0.5).masked_fill(later, float("-inf"))
        y = scores.softmax(-1) @ v
        return self.c_proj(y.transpose(0, 1).reshape(length, width))


class Mlp(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.c_fc, self.c_proj = Linear(width, inner), Linear(inner, width)

    def forward(self, x):
        return self.c_proj(functional.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn, self.mlp = Attention(width, heads), Mlp(width, inner)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Model(nn.Module):
    def __init__(self, tensors, heads):
        super().__init__()
        width = tensors["wte.weight"].shape[1]
        layers = 1 + max(int(name.split(".")[1]) for name in tensors if name.startswith("h."))
        inner = tensors["h.0.mlp.c_fc.weight"].shape[1]
        self.wte = nn.Embedding(*tensors["wte.weight"].shape)
        self.wpe = nn.Embedding(*tensors["wpe.weight"].shape)
        self.h = nn.ModuleList([Block(width, heads, inner) for _ in range(layers)])
        self.ln_f = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(len(tokens)))
        for block in self.h:
            x = block(x)
        return self.ln_f(x) @ self.wte.weight.T


def main(path, heads=1):
    tensors = read(path)
    model = Model(tensors, heads)
    model.load_state_dict(tensors, strict=True)
    text = torch.tensor([ord(letter) for letter in "the village"]
                        )[:len(tensors["wpe.weight"])]
    with torch.no_grad():
        loss = functional.cross_entropy(model(text[:-1]), text[1:])
    assert torch.isfinite(loss)
    print("  PyTorch loads it strictly: %d tensors, %d numbers" % (
        len(tensors), sum(tensor.numel() for tensor in tensors.values())))


if __name__ == "__main__":
    main(*sys.argv[1:2], *map(int, sys.argv[2:3]))
