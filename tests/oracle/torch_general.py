"""Computes what general_test dumped again in PyTorch, in float64, with autograd. Prints TAP.

Reads the lines of JSON from stdin. Views are torch.as_strided(); moves and places are indexes.
"""

import json
import struct
import sys

import torch
import torch.nn.functional as F

MAP = [
    torch.neg, torch.abs, torch.sign, torch.floor, torch.ceil, torch.round, torch.sqrt,
    torch.rsqrt, torch.reciprocal, torch.exp, torch.log, torch.tanh, torch.sigmoid, torch.erf,
    torch.sin, torch.cos, F.gelu, None, None, torch.relu, None, F.silu,
]
AXES = 4
MOVE_AXES = 5


def gelu_tanh(x):
    return F.gelu(x, approximate="tanh")


def slope_of(function, x):
    x = x.detach().requires_grad_()
    return torch.autograd.grad(function(x).sum(), x)[0]


def real(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def map_of(code, constant, x):
    others = {17: lambda: slope_of(F.gelu, x), 18: lambda: x * real(constant),
              20: lambda: gelu_tanh(x)}
    return others[code]() if code in others else MAP[code](x)


BINARY = [
    torch.add, torch.sub, torch.mul, torch.div, torch.maximum, torch.minimum, torch.pow, torch.lt,
    torch.le, torch.eq, torch.ne,
    lambda x, dy: slope_of(torch.relu, x) * dy, lambda x, dy: slope_of(gelu_tanh, x) * dy,
    lambda x, dy: slope_of(F.silu, x) * dy, lambda a, b: (a - b) ** 2, lambda a, b: 2 * (a - b),
]


def views(tensors, attributes):
    """Each tensor through its strides: the dims, then strides for each."""
    dims = attributes[:AXES]
    return [
        torch.as_strided(x, dims, attributes[AXES * (i + 1) : AXES * (i + 2)])
        for i, x in enumerate(tensors)
    ]


def places(attributes):
    """Where each element of the dense side lies in the addressed tensor."""
    index = torch.tensor(attributes[2 * MOVE_AXES])
    for axis in range(MOVE_AXES):
        along = torch.arange(attributes[axis]) * attributes[MOVE_AXES + axis]
        index = index.unsqueeze(-1) + along
    return index.flatten()


def result(case, x):
    kind, attributes = case["kind"], case["attributes"]
    if kind == "map":
        return map_of(attributes[0], attributes[1], x[0])
    if kind == "binary":
        a, b = views(x, attributes[1:])
        return BINARY[attributes[0]](a, b).double().flatten()
    if kind == "select":
        c, a, b = views(x, attributes)
        return torch.where(c != 0, a, b).flatten()
    index = places(attributes)
    if kind == "move":
        return x[0][index]
    base = x[1].expand(len(case["y"]))
    return base.index_put((index,), x[0])


def distance(ours, exact):
    """Relative to the norm of the exact values."""
    return ((ours - exact).norm() / max(exact.norm(), 1e-3)).item()


def check(case):
    """The trouble with a case, or None."""
    inputs = [k for k in sorted(case) if k[0] == "x"]
    x = [torch.tensor(case[k], dtype=torch.float64, requires_grad=True) for k in inputs]
    y = result(case, x)
    ours = torch.tensor(case["y"], dtype=torch.float64)
    exact = case["kind"] in ("select", "move", "place")
    if (exact and not torch.equal(ours, y.detach())) or not torch.allclose(
        ours, y.detach(), rtol=1e-6, atol=2e-7
    ):
        return "another result"
    if not y.requires_grad:
        return None
    (y * torch.tensor(case["w"], dtype=torch.float64)).mean().backward()
    for i, tensor in enumerate(x):
        key = f"d{i}"
        if key in case:
            apart = distance(torch.tensor(case[key], dtype=torch.float64), tensor.grad)
            if not apart < 1e-5:
                return f"the gradient of input {i} is {apart:.2g} away"
    return None


def main():
    kinds = {}
    for line in sys.stdin:
        case = json.loads(line)
        kinds.setdefault(case["kind"], []).append(case)
    failures = 0
    for number, (kind, cases) in enumerate(sorted(kinds.items()), 1):
        troubles = [(c["attributes"], t) for c in cases if (t := check(c)) is not None]
        gradients = sum(k[0] == "d" for c in cases for k in c)
        print(f"{'not ok' if troubles else 'ok'} {number} - {kind}: {len(cases)} operations and "
              f"{gradients} gradients are PyTorch's")
        for attributes, trouble in troubles[:5]:
            print(f"# {attributes}: {trouble}")
        failures += len(troubles)
    print(f"1..{len(kinds)}")
    sys.exit(1 if failures or len(kinds) != 5 else 0)


main()
