"""Opens a merged model with PyTorch: its logits agree with those of the base beside the adapters.

    python3 scripts/load_adapters.py BASE model.safetensors MERGED

Adapters of 8, with alpha twice that, as scripts/demo makes them. Without PyTorch it says so."""

import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/oracle"))

try:
    import torch
    import torch_decoder as reference
except ImportError:
    print("  PyTorch is not installed: the merged model was not opened")
    sys.exit(0)

ALPHA_BY_RANK = 2.0


def weights_of(folder):
    tensors = reference.read_safetensors(os.path.join(folder, "model.safetensors"))
    return {name: tensor.double() for name, tensor in tensors.items()}


def main(base, adapters, merged):
    with open(os.path.join(merged, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    state = reference.read_safetensors(adapters)
    modules = {name.removesuffix(".lora_A.weight") for name in state if name.endswith("lora_A.weight")}
    beside = {module: tuple(state["%s.lora_%s.weight" % (module, part)].double() for part in "AB")
              + (ALPHA_BY_RANK,) for module in modules}
    tokens = torch.tensor([list(b"Ines, the miller, got up")])
    one = reference.Decoder(config, weights_of(merged))(tokens)
    two = reference.Decoder(config, weights_of(base), beside)(tokens)
    plain = reference.Decoder(config, weights_of(base))(tokens)
    apart, way = float((one - two).norm()), float((one - plain).norm())
    print("  PyTorch opens it: logits are %.1e from base and adapters, and %.1f from the base alone"
          % (apart, way))
    return 0 if apart < 1e-4 * way else 1


sys.exit(main(*sys.argv[1:]))
