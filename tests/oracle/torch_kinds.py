"""Takes the kinds that kinds_test dumped in PyTorch, in float64 with autograd. Prints TAP."""

import math
import os
import sys

import torch
import torch.nn.functional as F

FOLDER = sys.argv[1]


class Case:
    def __init__(self, name):
        self.name = name

    def raw(self, name, dtype):
        with open(os.path.join(FOLDER, self.name, name + ".bin"), "rb") as file:
            return torch.frombuffer(bytearray(file.read()), dtype=dtype)

    def real(self, name, *shape):
        return self.raw(name, torch.float32).double().view(*shape)

    def words(self, name, *shape):
        return self.raw(name, torch.int32).long().view(*shape)


def rotary(case, x):
    """x cos + rotate_half(x) sin, as published Llama code has it."""
    table = case.real("table", 5, 3, 2)
    cos, sin = (torch.cat((table[..., k], table[..., k]), -1)[:, None] for k in (0, 1))
    x = x.view(2, 5, 3, 6)
    return x * cos + torch.cat((-x[..., 3:], x[..., :3]), -1) * sin


def softmax_reach(case, x):
    reach = case.words("index", 2, 1, 6, 1)
    row, column = torch.arange(6)[:, None], torch.arange(6)
    hidden = (column > row) | (column < row - reach)
    return (x * 1.5).masked_fill(hidden, -math.inf).softmax(-1)


def cross_entropy_masked(case, x):
    mask = case.words("index", 9) != 0
    targets = case.words("targets", 9).masked_fill(~mask, -100)
    return F.cross_entropy(x, targets, ignore_index=-100)


def padded(x, value):
    """NHWC to NCHW, with 2 rows above, 1 below and 1 column to the right."""
    return F.pad(x.permute(0, 3, 1, 2), (0, 1, 2, 1), value=value)


def im2col(case, x):
    columns = F.unfold(padded(x, 0.0), (3, 2), dilation=(2, 3), stride=(2, 1))
    return columns.view(2, 3, 6, -1).permute(0, 3, 2, 1)


def max_pool(case, x):
    y = F.max_pool2d(padded(x, -math.inf), (3, 2), stride=(2, 1), dilation=(2, 3))
    return y.permute(0, 2, 3, 1)


def mean_pool(counting):
    def mean(case, x):
        sums, there = im2col(case, x).sum(2), im2col(case, torch.ones_like(x)).sum(2)
        return sums / (6.0 if counting else there)

    return mean


def norm(groups):
    def normed(case, x, gain, bias):
        if groups == 0:
            return F.batch_norm(x, None, None, gain, bias, training=True, eps=1e-3)
        return F.group_norm(x, groups, gain, bias, eps=1e-3)

    return normed


def rotary_neighbours(case, x):
    cos, sin = case.real("table", 5, 3, 2)[:, None].unbind(-1)
    first, second = x.view(2, 5, 3, 3, 2).unbind(-1)
    return torch.stack((first * cos - second * sin, first * sin + second * cos), -1)


def cast(dtype):
    """Rounded; the gradient passes straight through."""
    return lambda case, x: x + (x.float().to(dtype).double() - x).detach()


def split(case, x):
    first, _, last = x.chunk(3, 1)
    return last * (first + last)


def softmax_causal(case, x):
    hidden = torch.ones(6, 6).triu(1).bool()
    return (x * 1.5).masked_fill(hidden, -math.inf).softmax(-1)


def rms_norm(case, x, gain):
    return x * (x.square().mean(-1, keepdim=True) + 1e-3).rsqrt() * gain


def col2im(case, x):
    """The adjoint of im2col: its gradient."""
    picture = torch.zeros(2, 6, 5, 3, dtype=torch.float64, requires_grad=True)
    columns = im2col(case, picture)
    return torch.autograd.grad(columns, picture, x.view(columns.shape), create_graph=True)[0]


CASES = {
    "gather": (lambda case, x: x[case.words("index", 12)], [(7, 5)]),
    "cast-f16": (cast(torch.float16), [(9, 11)]),
    "cast-bf16": (cast(torch.bfloat16), [(9, 11)]),
    "split": (split, [(6, 12)]),
    "expand": (lambda case, x: x[None, :, None].expand(3, 5, 4), [(5,)]),
    "relu": (lambda case, x: F.relu(x), [(9, 11)]),
    "gelu": (lambda case, x: F.gelu(x, approximate="tanh"), [(9, 11)]),
    "silu": (lambda case, x: F.silu(x), [(9, 11)]),
    "layer-norm": (lambda case, x, g, b: F.layer_norm(x, (1100,), g, b, 1e-3),
                   [(4, 1100), (1100,), (1100,)]),
    "rms-norm": (rms_norm, [(4, 1100), (1100,)]),
    "softmax-causal": (softmax_causal, [(2, 3, 6, 6)]),
    "cross-entropy": (lambda case, x: F.cross_entropy(x, case.words("index", 9)), [(9, 11)]),
    "linear": (lambda case, x, w: x @ w.T, [(9, 130), (7, 130)]),
    "sums": (lambda case, x: x.sum((0, 2)), [(3, 5, 4)]),
    "rotary-neighbours": (rotary_neighbours, [(2, 5, 18)]),
    "col2im": (col2im, [(18, 18)]),
    "rotary": (rotary, [(2, 5, 18)]),
    "softmax-reach": (softmax_reach, [(2, 3, 6, 6)]),
    "cross-entropy-masked": (cross_entropy_masked, [(9, 11)]),
    "im2col": (im2col, [(2, 6, 5, 3)]),
    "max-pool": (max_pool, [(2, 6, 5, 3)]),
    "mean-pool": (mean_pool(False), [(2, 6, 5, 3)]),
    "mean-pool-counting": (mean_pool(True), [(2, 6, 5, 3)]),
    "reduce-max": (lambda case, x: x.max(-1).values, [(3, 1300)]),
    "reduce-min": (lambda case, x: x.min(-1).values, [(3, 1300)]),
    "gather-elements": (lambda case, x: x.gather(1, case.words("index", 9, 1)), [(9, 5)]),
    "batch-norm": (norm(0), [(4, 6, 10), (6,), (6,)]),
    "group-norm": (norm(2), [(4, 6, 10), (6,), (6,)]),
    "instance-norm": (norm(6), [(4, 6, 10), (6,), (6,)]),
}


def difference(case):
    function, shapes = CASES[case.name]
    inputs = [case.real(f"p{i}", *shape).requires_grad_() for i, shape in enumerate(shapes)]
    y = function(case, *inputs).flatten()
    (y * case.real("weights", -1)).mean().backward()
    pairs = [(y.detach(), case.real("y", -1))]
    pairs += [(x.grad.flatten(), case.real(f"g{i}", -1)) for i, x in enumerate(inputs)]
    return max(((a - b).abs().max() / a.abs().max()).item() for a, b in pairs)


names = sorted(os.listdir(FOLDER))
print(f"1..{len(names)}")
failed = names != sorted(CASES)
for number, name in enumerate(names, 1):
    worst = difference(Case(name))
    good = worst < 3e-6
    failed = failed or not good
    print(f"{'' if good else 'not '}ok {number} - PyTorch agrees on {name} to {worst:.1e}")
sys.exit(1 if failed else 0)
