"""Makes a Lockstep job of a PyTorch program. Needs nothing but torch (1.13.1 is tested).

    import lockstep_torch as lockstep

    def loss(module, x, y):
        return torch.nn.functional.cross_entropy(module(x), y)

    lockstep.export(module, loss, {"x": x[:32], "y": y[:32]}, "digits")
    lockstep.save_rows("x.npy", x)
    lockstep.save_rows("y.npy", y)

writes digits.graph and digits.safetensors, and the two files of rows. Then

    lockstep job new --graph digits.graph --first-state digits.safetensors --data x.npy --data y.npy

makes the job, and after the training lockstep.load(module, "digits.run") fills the module.

export() runs the loss once, on the batch, and writes down every ATen call that depends on the batch
or on a parameter as a call of Lockstep's own builder. What depends on neither is a constant. The
reverse pass and the update are Lockstep's. docs/PYTORCH.md says what is covered; what is not is
refused with the module's name and your line."""

import copy
import ctypes
import dis
import json
import math
import os
import re
import struct
import sys
import warnings

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

IGNORED = 2 ** 32 - 1  # a target that takes no part
RANK, MOVE_AXES, VIEW_AXES, PARTS = 4, 5, 4, 8
WINDOW_MOST = 256
HERE = os.path.abspath(__file__)
TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep


class Refused(Exception):
    """The program does something that has no line of a graph."""


# ---- files -----------------------------------------------------------------------------------

TYPES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int32: "U32"}


def _bytes(tensor):
    flat = tensor.detach().cpu().contiguous()
    return ctypes.string_at(flat.data_ptr(), flat.numel() * flat.element_size())


def _save_tensors(path, tensors):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, tensor in tensors.items():
        size = tensor.numel() * tensor.element_size()
        header[name] = {"dtype": TYPES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % 64)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(_bytes(tensor))


def _read_tensors(path):
    types = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
             "U32": torch.int32}
    with open(path, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = bytearray(file.read())
    header.pop("__metadata__", None)
    return {name: torch.frombuffer(data, dtype=types[one["dtype"]], offset=one["data_offsets"][0],
                                   count=math.prod(one["shape"])).reshape(one["shape"])
            for name, one in header.items() if one["dtype"] in types}


def save_rows(path, rows):
    """Writes a tensor whose first axis counts the rows as a .npy that `job new --data` reads: floats
    as f32, integers as u8, u16 or u32. -100, the index that PyTorch's losses ignore, becomes the
    target that Lockstep's ignore."""
    rows = rows.detach().cpu()
    if rows.is_floating_point():
        kind, data = "<f4", _bytes(rows.float())
    else:
        rows = rows.long()
        rows = torch.where(rows == -100, torch.full_like(rows, IGNORED), rows)
        low, high = int(rows.min()), int(rows.max())
        if low < 0 or high > IGNORED:
            raise Refused("%s: integers from 0 to 4294967295, or -100, and there is %d"
                          % (path, low if low < 0 else high))
        kind, width = ("|u1", 1) if high < 256 else ("<u2", 2) if high < 65536 else ("<u4", 4)
        data = _bytes(rows.reshape(-1, 1).view(torch.uint8)[:, :width])
    head = "{'descr': '%s', 'fortran_order': False, 'shape': (%s,), }" % (
        kind, ", ".join(map(str, rows.shape)))
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)


def load(module, run, scale=None):
    """Fills the module with the trained weights and with the buffers that its steps wrote: of a
    run's folder those of its newest checkpoint, or of a .safetensors. Strict: every one must be there
    in its shape, and nothing else. Adapters of `job new --lora` are added to the weights that they
    stand beside, scale (alpha / rank) times. Returns the names of the parameters that the run did not
    train: they keep their values."""
    tensors, path = _newest(run)
    states = {"step", "micro", "held_out.loss", "held_out.accuracy"} | {
        kind + name for name in tensors for kind in ("m.", "v.")}
    trained = {name: tensor for name, tensor in tensors.items() if name not in states}
    parameters = dict(module.named_parameters())
    known = {name: _as_real(one.detach()) for name, one in [
        *module.named_buffers(), *parameters.items()]}
    trained = _merged(trained, known, scale, path)
    for name, tensor in trained.items():
        if name not in known:
            raise Refused("%s: the module has no parameter and no buffer '%s'" % (path, name))
        if tape_shape(known[name].shape) != tuple(tensor.shape):
            raise Refused("%s: '%s' has the shape %s, and the module's %s" % (
                path, name, tuple(tensor.shape), tuple(known[name].shape)))
    with torch.no_grad():
        for name, tensor in trained.items():
            known[name].copy_(_whole(tensor, known[name]))
    return [name for name in parameters if name not in trained]


def _merged(tensors, known, scale, path):
    """With W + scale B A in place of each pair of adapters whose parts the module does not have."""
    merged = dict(tensors)
    for name in tensors:
        stem = name[:-len(".lora_A.weight")]
        if not name.endswith(".lora_A.weight") or name in known:
            continue
        a, b = merged.pop(name), merged.pop(stem + ".lora_B.weight", None)
        weight = known.get(stem + ".weight")
        if b is None or weight is None:
            raise Refused("%s: '%s' has no lora_B beside it, or the module no '%s.weight'" % (
                path, name, stem))
        if scale is None:
            raise Refused("%s: adapters, as '%s': say with scale=alpha / rank how they count" % (
                path, name))
        if b.shape[1:] != a.shape[:1] or (b.shape[0], a.shape[1]) != tuple(weight.shape):
            raise Refused("%s: '%s' does not fit the module's weight of %s" % (
                path, name, tuple(weight.shape)))
        merged[stem + ".weight"] = weight.detach().float() + scale * (b.float() @ a.float())
    return merged


class _Linear(torch.nn.Module):
    """As GPT-2 has it: the weight is (inputs, outputs)."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(inputs, outputs))
        self.bias = torch.nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return x @ self.weight + self.bias


class _Layer(torch.nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.attn, self.mlp = torch.nn.Module(), torch.nn.Module()
        self.attn.c_attn, self.attn.c_proj = _Linear(width, 3 * width), _Linear(width, width)
        self.mlp.c_fc, self.mlp.c_proj = _Linear(width, inner), _Linear(inner, width)

    def attend(self, x):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(-3, -2)
                   for part in self.attn.c_attn(x).chunk(3, -1))
        later = torch.ones(x.shape[-2], x.shape[-2]).triu(1).bool()
        scores = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).masked_fill(later, -math.inf)
        return self.attn.c_proj((scores.softmax(-1) @ v).transpose(-3, -2).flatten(-2))

    def forward(self, x):
        x = x + self.attend(self.ln_1(x))
        inner = torch.nn.functional.gelu(self.mlp.c_fc(self.ln_2(x)), approximate="tanh")
        return x + self.mlp.c_proj(inner)


class _GPT2(torch.nn.Module):
    def __init__(self, tensors, heads):
        super().__init__()
        width = tensors["wte.weight"].shape[1]
        layers = 1 + max(int(name.split(".")[1]) for name in tensors if name.startswith("h."))
        self.wte = torch.nn.Embedding(*tensors["wte.weight"].shape)
        self.wpe = torch.nn.Embedding(*tensors["wpe.weight"].shape)
        self.h = torch.nn.ModuleList([
            _Layer(width, heads, tensors["h.0.mlp.c_fc.weight"].shape[1]) for _ in range(layers)])
        self.ln_f = torch.nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[-1]))
        for layer in self.h:
            x = layer(x)
        return self.ln_f(x) @ self.wte.weight.T


def gpt2(run, heads):
    """A module with the weights of a job of `--model gpt2`: tokens (..., length) to logits. Of a
    run's folder or of a .safetensors, as load() takes them, and as strictly."""
    tensors, path = _newest(run)
    for name in ("wte.weight", "wpe.weight", "h.0.mlp.c_fc.weight"):
        if name not in tensors or tensors[name].dim() != 2:
            raise Refused("%s: no GPT-2: it has no '%s'" % (path, name))
    if tensors["wte.weight"].shape[1] % heads:
        raise Refused("%s: %d heads, and a width of %d" % (path, heads,
                                                          tensors["wte.weight"].shape[1]))
    module = _GPT2(tensors, heads)
    left = load(module, path)
    if left:
        raise Refused("%s: no GPT-2: it has no '%s'" % (path, left[0]))
    return module


def load_state(state, run):
    """The newest state of a run of export_step(), in the shapes and types of the first."""
    tensors, path = _newest(run)
    if set(state) | {"step"} != set(tensors) | {"step"}:
        raise Refused("%s: other states: %s" % (path, ", ".join(sorted(tensors))))
    return {name: _whole(tensors[name], one).to(one.dtype) for name, one in state.items()}


def _newest(run):
    path = run
    if os.path.isdir(run):
        folder = os.path.join(run, "checkpoints")
        path = os.path.join(folder, sorted(os.listdir(folder))[-1])
    return _read_tensors(path), path


def _whole(tensor, like):
    """In the shape of another; a u32 is not negative."""
    if tensor.dtype == torch.int32:
        tensor = tensor.long() & (2 ** 32 - 1)
    return tensor.reshape(like.shape)


# ---- lines ------------------------------------------------------------------------------------

class Line:
    """A line of the graph that makes a value. shape is the tape's; count its elements."""

    def __init__(self, word, operands, numbers, shape, kind, place):
        self.word, self.numbers = word, numbers
        self.operands = [one.same or one for one in operands]
        self.same = None     # of a line with another span: the line itself
        self.shape, self.kind, self.place = tuple(shape), kind, place
        self.count = math.prod(self.shape)
        self.hidden = None   # of a masked score: what it was before, and where it is hidden
        self.logits = None   # of a log-softmax over the last axis: the line of what went in
        self.view = None     # of a move: what it copies
        self.factors = None  # of a product by element: its two sides
        self.turned = None   # of (-second half, first half) of the last axis: the whole
        self.span = None     # of u32: the least and the largest number that it stands for
        self.computed = False  # of u32: by calls of integers
        self.words = None    # of integers as f32: gives the same as u32, or None


LOST = "a result that has no line, like the places of a pool's numbers"  # of a tensor, in place of its value
PARTLY = "a tensor of which a part was changed in place: build it with torch.cat, torch.stack or torch.where"
UNSEEN = ("a tensor with a gradient whose memory was changed past autograd, by detach(), .data or no_grad(): change a "
          "clone() of it, or change it where gradients are recorded")
WORD, SIGNED, WIDE = (0, 2 ** 32 - 1), (-2 ** 31, 2 ** 31 - 1), (-2 ** 64, 2 ** 64)
MOVED = {"move", "place", "select", "stop", "take"}  # what they give is what they got


def _is_within(span, other):
    return other[0] <= span[0] and span[1] <= other[1]


def _once(function):
    kept = []

    def made():
        if not kept:
            kept.append(function())
        return kept[0]
    return made


def _spanned(line, low, high):
    """The line, as what stands for numbers of this span alone."""
    if line.span == (low, high) or (low, high) == WORD and line.span is None:
        return line
    made = copy.copy(line)
    made.span, made.same = (low, high), line.same or line
    return made


class Value:
    """A line seen through strides. kind: f32, bool (f32 of 0 and 1), u32, or constant, which has the
    tensor and no line yet."""

    def __init__(self, line, sizes, strides=None, offset=0, kind="f32", tensor=None):
        self.line, self.sizes, self.offset = line, tuple(sizes), offset
        self.strides = tuple(strides) if strides is not None else dense_strides(self.sizes)
        self.kind, self.tensor = kind, tensor
        self.stopped = self.integer = False


def dense_strides(sizes):
    strides, step = [], 1
    for size in reversed(sizes):
        strides.insert(0, step)
        step *= size
    return tuple(strides)


def bits(number):
    number = float(number)
    if math.isnan(number):
        return "0x7fc00000"
    return "0x%08x" % struct.unpack("<I", struct.pack("<f", number if abs(number) < 3.4e38 or
                                                      math.isinf(number) else
                                                      math.copysign(math.inf, number)))[0]


def tape_shape(sizes):
    """Of at most four axes: the first ones are joined."""
    sizes = tuple(sizes) or (1,)
    while len(sizes) > RANK:
        sizes = (sizes[0] * sizes[1],) + sizes[2:]
    return sizes


def merged(sizes, *strides):
    """The axes of several views of one shape: those of length 1 go, neighbours that all views read
    as one are joined. Returns lengths and the strides of each view."""
    axes = []
    for axis, size in enumerate(sizes):
        steps = [view[axis] for view in strides]
        if size == 1:
            continue
        if axes and all(before == step * size for before, step in zip(axes[-1][1], steps)):
            axes[-1] = (axes[-1][0] * size, steps)
        else:
            axes.append((size, steps))
    return [size for size, _ in axes], [[steps[i] for _, steps in axes]
                                        for i in range(len(strides))]


def _window(value):
    """The shorter axis of two along which a view, or a tensor, shows elements twice, or None."""
    strides, sizes = (value.strides, value.sizes) if isinstance(value, Value) else (value.stride(), value.shape)
    steps = sorted((abs(step), size, axis) for axis, (step, size) in enumerate(
        zip(strides, sizes)) if step and size > 1)
    span, seen = 0, []
    for step, size, axis in steps:
        if step <= span:
            return min(seen + [(size, axis)])[1]
        span += step * (size - 1)
        seen.append((size, axis))
    return None


def padded(numbers, count, value):
    return [value] * (count - len(numbers)) + list(numbers)


# ---- the graph ---------------------------------------------------------------------------------

class Graph:
    def __init__(self):
        self.declared, self.place, self.fills, self.constants = [], "loss", {}, {}
        self.frozen = {}  # name: tensor
        self.moves = {}   # by line and view
        self.cut = {}     # integers that are constants, modulo 2^32
        self.tables = {}  # of rotations, by their numbers

    def line(self, word, operands, numbers, sizes, kind="f32"):
        if 0 in tuple(sizes):
            refuse("a tensor without elements")
        made = Line(word, operands, numbers, tape_shape(sizes), kind, self.place)
        moved = [one for one in operands if one.kind == kind] if word in MOVED else []
        if kind == "u32" and moved:
            spans = [one.span or WORD for one in moved]
            made.span = min(low for low, _ in spans), max(high for _, high in spans)
            made.computed = any(one.computed for one in moved)
        elif kind == "f32" and moved and any(one.words for one in moved):
            made.words = _once(lambda: self.moved_words(made))
        return made

    def moved_words(self, line):
        """Of what copies integers: the same copy of their words."""
        operands = []
        for one in line.operands:
            if line.word == "select" and not operands:
                operands.append(one)
                continue
            found = self.words(Value(one, one.shape))
            if found is None:
                return None
            operands.append(found.line)
        return self.line(line.word, operands, line.numbers, line.shape, "u32")

    def call(self, word, operands, numbers, sizes, kind="f32"):
        return Value(self.line(word, operands, numbers, sizes, kind), sizes, kind=kind)

    def declare(self, word, name, sizes, kind="f32"):
        line = Line(word, [], [name] if word == "param" else [name, kind], tape_shape(sizes), kind,
                    "")
        self.declared.append(line)
        return line

    def fill(self, number, kind="f32"):
        word = number if kind == "u32" else bits(number)
        if (kind, word) not in self.fills:
            self.fills[kind, word] = self.line(
                "fill-integer" if kind == "u32" else "fill", [], [word], (1,), kind)
        return self.fills[kind, word]

    def fill_rows(self, number, sizes):
        """A tensor full of an integer."""
        return self.line("fill-integer", [], [number], sizes, "u32")

    def number(self, number, sizes=(), kind="f32"):
        return Value(self.fill(number, kind), sizes, (0,) * len(sizes), kind=kind)

    # -- values as what a call reads

    def constant(self, value, kind):
        """The line of a tensor that depends on nothing."""
        tensor = value.tensor
        key = tensor.data_ptr(), tuple(tensor.shape), tuple(tensor.stride()), kind
        if key in self.constants and self.constants[key][0] is not None:
            return self.constants[key][1]
        whole = tensor.detach()
        for axis, step in enumerate(whole.stride()):
            if step == 0 and whole.shape[axis] > 1:
                whole = whole.narrow(axis, 0, 1)
        if kind == "u32":
            if whole.numel() and (int(whole.min()) < 0 or int(whole.max()) > IGNORED):
                raise Refused("an index of %d" % int(whole.min()))
            whole = whole.long()
        else:
            whole = whole.float()
        if whole.numel() and bool((whole == whole.reshape(-1)[0]).all()):
            made = self.number(whole.reshape(-1)[0].item(), tensor.shape, kind)
        else:
            name = getattr(tensor, "_lockstep_name", None) or "constant.%d" % len(self.frozen)
            if kind == "u32":
                whole = torch.where(whole > 2 ** 31 - 1, whole - 2 ** 32, whole).int()
            elif tensor.dtype in (torch.float16, torch.bfloat16):
                raise Refused("a constant of 16 bits: give it as float()")
            if kind == "f32":  # an additive mask; what it hides has a share of 0 either way
                whole = torch.where(whole == -math.inf, torch.full_like(whole, HIDDEN), whole)
            if not bool(torch.isfinite(whole.float()).all()):
                raise Refused("a constant with infinity or NaN in it; masked_fill() takes a mask")
            flat = whole.contiguous()
            self.frozen[name] = flat.reshape(tape_shape(flat.shape)).clone()
            line = self.declare("frozen", name, tape_shape(flat.shape), kind)
            steps = [0 if size == 1 else step
                     for size, step in zip(flat.shape, dense_strides(flat.shape))]
            made = Value(line, tensor.shape, steps, kind=kind)
        self.constants[key] = tensor, made
        return made

    def real(self, value):
        """As f32, or bool."""
        if isinstance(value, (bool, int, float)):
            return self.number(float(value))
        if value.kind == "constant":
            return self.constant(value, "f32")
        if value.kind == "u32":
            line = self.counted(value.line)
            return Value(line, value.sizes, value.strides, value.offset)
        return value

    def counted(self, word):
        """The number of a u32, as f32; below 0 where its span says so."""
        span = word.span or WORD
        if span[0] >= 0 and span[1] <= WORD[1]:
            made = self.line("cast", [word], [], word.shape)
        elif _is_within(span, SIGNED):
            x = Value(word, word.shape, kind="u32")
            below = self.integers("less-equal", 2 ** 31, x)
            size = self.select(below, self.integers("sub", 0, x), x)
            size = Value(self.line("cast", [size.line], [], word.shape), word.shape)
            made = self.select(below, self.scale(size, -1), size).line
        else:
            refuse("an integer that may pass 32 bits: cut it first, as by `& 0xffffffff` or `% 2**32`")
        made.words = lambda: word
        return made

    def words(self, x):
        """An integer as u32, modulo 2^32, with the span of its line; None where nobody knows it."""
        if isinstance(x, (bool, int)):
            line = self.fill(int(x) % 2 ** 32, "u32")
            return Value(_spanned(line, int(x), int(x)), (), kind="u32")
        if not isinstance(x, Value) or x.kind == "u32":
            return x if isinstance(x, Value) else None
        if x.kind == "constant":
            if x.tensor.is_floating_point() or not x.tensor.numel():
                return None
            tensor = x.tensor.long()
            made = self.constant(Value(None, tensor.shape, kind="constant",
                                       tensor=self.cut_constant(x.tensor)), "u32")
            line = _spanned(made.line, int(tensor.min()), int(tensor.max()))
            return Value(line, made.sizes, made.strides, made.offset, "u32")
        if x.kind == "bool" and x.line.words is None:
            line = self.line("cast-integer", [x.line], [], x.line.shape, "u32")
            return Value(_spanned(line, 0, 1), x.sizes, x.strides, x.offset, "u32")
        line = x.line.words() if x.line.words else None
        return None if line is None else Value(line, x.sizes, x.strides, x.offset, "u32")

    def cut_constant(self, tensor):
        """Modulo 2^32; the same tensor again, so that it is one constant."""
        key = tensor.data_ptr(), tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype
        if key not in self.cut or self.cut[key][1] != tensor._version:
            self.cut[key] = tensor, tensor._version, tensor.long() & WORD[1]
        return self.cut[key][2]

    def sure_words(self, x):
        """As words(); what is only known as f32 is exact up to 2^24 and may be below 0."""
        found = self.words(x)
        if found is None:
            x = self.whole(self.real(x))
            size = self.map("abs", x)
            word = Value(self.line("cast-integer", [size.line], [], size.line.shape, "u32"),
                         size.sizes, size.strides, kind="u32")
            word.line.span = 0, EXACT
            found = self.select(self.binary("less", x, 0), self.integers("sub", 0, word), word)
            found.line.span = -EXACT, EXACT
        return found

    def integers(self, word, a, b, span=None):
        """A call of two integers, modulo 2^32."""
        a, b = self.words(a), self.words(b)
        made = self.viewed("integer-" + word, [a, b], torch.broadcast_shapes(a.sizes, b.sizes),
                           kind="u32")
        made.line.span, made.line.computed = span, True
        return made

    def told(self, bit):
        """A comparison of integers, as bool."""
        made = Value(self.line("cast", [bit.line], [], bit.line.shape), bit.sizes, bit.strides,
                     bit.offset, "bool")
        bit.line.span = 0, 1
        made.line.words = lambda: bit.line
        return made

    def index(self, value):
        """As u32; what is computed of integers is cut."""
        if value.kind == "constant":
            return self.constant(value, "u32")
        if value.kind == "u32" and _is_within(value.line.span or WORD, WORD):
            return value
        x = self.whole(self.real(value))
        return Value(self.line("cast-integer", [x.line], [], x.line.shape, "u32"), x.sizes,
                     x.strides, kind="u32")

    def dense(self, value, last=None):
        """The line whose elements lie in the order of the value; its last axis has `last` elements."""
        line = value.line
        count = math.prod(value.sizes)
        sizes, (strides,) = merged(value.sizes, value.strides)
        if value.offset == 0 and count == line.count and tuple(strides) == dense_strides(sizes) and (
                last is None or line.shape[-1] == last):
            return line
        straight = self.contracted(value, last)
        if straight is not None:
            return straight
        window = _window(value)
        if window is not None:
            return self.dense(self.windows(value, window), last)
        if len(sizes) > MOVE_AXES:
            raise Refused("a permutation of %d axes; a move has %d" % (len(sizes), MOVE_AXES))
        shape = tape_shape(value.sizes)
        if last is not None and shape[-1] != last:
            shape = (count // last, last)
        key = id(line), tuple(sizes), tuple(strides), value.offset, shape
        if key not in self.moves:
            made = self.line("move", [line], padded(sizes, MOVE_AXES, 1) +
                             padded(strides, MOVE_AXES, 0) + [value.offset], shape, line.kind)
            made.view = value
            self.moves[key] = made
        return self.moves[key]

    def windows(self, value, axis):
        """Windows that overlap: side by side along the shorter of two axes, what each place shows."""
        count = value.sizes[axis]
        if count > WINDOW_MOST:
            raise Refused("windows that overlap, of %d places: at most %d" % (count, WINDOW_MOST))
        parts = []
        for at in range(count):
            sizes = value.sizes[:axis] + (1,) + value.sizes[axis + 1:]
            parts.append(Value(value.line, sizes, value.strides,
                               value.offset + at * value.strides[axis], value.kind))
        return self.join(parts, axis)

    def contracted(self, value, last):
        """A product that is read in another order is written in that order at once."""
        line, (sizes, strides) = value.line, (value.sizes, value.strides)
        shape = tape_shape(sizes)
        if line.word != "contract" or value.offset or line.count != math.prod(sizes) or (
                last is not None and shape[-1] != last):
            return None
        axes = sorted(((step, size, new) for step, size, new in zip(
            strides, sizes, dense_strides(sizes)) if size > 1), reverse=True)
        if dense_strides([size for _, size, _ in axes]) != tuple(step for step, _, _ in axes):
            return None
        lengths = line.numbers[:4] + line.numbers[12 + 2:12 + 4]  # batch, rows, columns
        moved = []
        for length, step in zip(lengths, line.numbers[24:30]):
            at = torch.arange(length) * step
            new = torch.zeros_like(at)
            for old, size, other in axes:
                new += at // old % size * other
            moved.append(int(new[1]) if length > 1 else 0)
            if not torch.equal(new, torch.arange(length) * moved[-1]):
                return None
        made = self.line("contract", line.operands, line.numbers[:24] + moved + line.numbers[30:],
                         shape)
        made.place = line.place
        return made

    def whole(self, value):
        """The value as a view that reads each element of its line once. What must be copied for it
        keeps the order in which it lies."""
        kept = sorted((step, size) for step, size in zip(value.strides, value.sizes) if size > 1)
        step = 1
        for stride, size in kept:
            if stride != step:
                break
            step *= size
        if value.offset == 0 and step == value.line.count == math.prod(value.sizes):
            return value
        order = sorted(range(len(value.sizes)), key=lambda i: -value.strides[i])
        if any(value.sizes[i] > 1 and value.strides[i] <= 0 for i in order):
            return Value(self.dense(value), value.sizes, kind=value.kind)
        there = Value(value.line, [value.sizes[i] for i in order],
                      [value.strides[i] for i in order], value.offset, value.kind)
        steps = dense_strides(there.sizes)
        return Value(self.dense(there), value.sizes, [steps[order.index(i)] for i in
                                                      range(len(order))], kind=value.kind)

    def spread(self, value, sizes):
        """Broadcast, as a view whose strides of 0 repeat and whose others are a permutation."""
        value = self.real(value) if value.kind == "constant" else value
        lead = len(sizes) - len(value.sizes)
        repeats = [size == 1 or step == 0 for size, step in zip(value.sizes, value.strides)]
        once = Value(value.line, [1 if r else s for r, s in zip(repeats, value.sizes)],
                     value.strides, value.offset, value.kind)
        once = self.whole(once)
        strides = [0] * lead + [0 if r else step for r, step in zip(repeats, once.strides)]
        return once.line, strides

    def viewed(self, word, operands, sizes, numbers=(), kind="f32"):
        """A call whose operands are read through VIEW_AXES axes with strides."""
        sizes = tuple(sizes)
        read = [self.spread(value, sizes) for value in operands]
        lengths, strides = merged(sizes, *(steps for _, steps in read))
        if len(lengths) > VIEW_AXES:
            whole = [Value(self.dense(Value(line, sizes, steps, kind=line.kind)), sizes,
                           kind=line.kind) for line, steps in read]
            read = [self.spread(value, sizes) for value in whole]
            lengths, strides = merged(sizes, *(steps for _, steps in read))
        words = list(numbers) + padded(lengths, VIEW_AXES, 1)
        for steps in strides:
            words += padded(steps, VIEW_AXES, 0)
        return Value(self.line(word, [line for line, _ in read], words, sizes, kind), sizes,
                     kind=kind)

    def binary(self, word, a, b, kind="f32"):
        a, b = self.real(a), self.real(b)
        return self.viewed(word, [a, b], torch.broadcast_shapes(a.sizes, b.sizes), kind=kind)

    def map(self, word, x, numbers=()):
        x = self.whole(self.real(x))
        line = self.line(word, [x.line], list(numbers), x.line.shape)
        return Value(line, x.sizes, x.strides)

    def scale(self, x, factor):
        return x if factor == 1 else self.map("scale", x, [bits(factor)])

    def stop(self, x):
        x = self.whole(x)
        return Value(self.line("stop", [x.line], [], x.line.shape), x.sizes, x.strides)

    def gather(self, table, index, sizes):
        """Rows of a table (rows, width) where an index says."""
        line = self.dense(index)
        if len(line.shape) + 1 > RANK:
            line = self.dense(Value(line, (line.count,), kind=line.kind), line.count)
        return Value(self.line("gather", [table, line], [], list(line.shape) + [table.shape[-1]]), sizes)

    def select(self, c, a, b):
        sizes = torch.broadcast_shapes(c.sizes, a.sizes, b.sizes)
        return self.viewed("select", [c, a, b], sizes, kind=b.kind)

    # -- shapes

    def view(self, value, change):
        """What change() does to a tensor's strides, it does to the value's. Where it would copy, the
        value is laid out first: a copy's strides say nothing of the value."""
        if value.kind == "constant":
            raise AssertionError("a view of a constant")
        for again in (False, True):
            base = torch.empty(value.line.count, device="meta").as_strided(value.sizes, value.strides,
                                                            value.offset)
            try:
                made = change(base)
                if all(_is_view(one, base) for one in (
                        made if isinstance(made, (tuple, list)) else [made])):
                    break
                if again:
                    raise AssertionError("a change that copies")
            except RuntimeError:
                if again:
                    raise
            value = Value(self.dense(value), value.sizes, kind=value.kind)
        views = [Value(value.line, one.shape, one.stride(), one.storage_offset(), value.kind)
                 for one in (made if isinstance(made, (tuple, list)) else [made])]
        return views if isinstance(made, (tuple, list)) else views[0]

    def behind(self, value, axes):
        """With these axes last."""
        axes = [axis % max(len(value.sizes), 1) for axis in axes]
        order = [axis for axis in range(len(value.sizes)) if axis not in axes] + axes
        return self.view(value, lambda x: x.permute(order)), order

    def flipped(self, value, axes):
        sizes, strides, offset = list(value.sizes), list(value.strides), value.offset
        for axis in axes:
            offset += (sizes[axis] - 1) * strides[axis]
            strides[axis] = -strides[axis]
        return Value(self.dense(Value(value.line, sizes, strides, offset, value.kind)), sizes,
                     kind=value.kind)

    def place_at(self, parts, starts, sizes, axis, base):
        """Each part over the base at its start along the axis."""
        inner = math.prod(sizes[axis + 1:])
        outer = math.prod(sizes[:axis])
        for part, start in zip(parts, starts):
            width = part.sizes[axis] * inner
            base = self.line("place", [self.dense(part), base],
                             padded([outer, width], MOVE_AXES, 1) +
                             padded([sizes[axis] * inner, 1], MOVE_AXES, 0) + [start * inner],
                             sizes, part.kind)
        return Value(base, sizes, kind=parts[0].kind)

    def over(self, whole, part):
        """The whole with a part of it at its beginning."""
        steps = dense_strides(whole.sizes)
        sizes, (strides,) = merged(part.sizes, steps)
        if len(sizes) > MOVE_AXES:
            raise Refused("a part along %d axes" % len(sizes))
        line = self.line("place", [self.dense(part), self.dense(whole)],
                         padded(sizes, MOVE_AXES, 1) + padded(strides, MOVE_AXES, 0) + [0],
                         whole.sizes)
        return Value(line, whole.sizes)

    def join(self, parts, axis):
        if any(part.kind in ("u32",) for part in parts) and not all(
                part.kind in ("u32",) for part in parts):
            parts = [self.real(part) for part in parts]
        sizes = list(parts[0].sizes)
        sizes[axis] = sum(part.sizes[axis] for part in parts)
        starts = [sum(part.sizes[axis] for part in parts[:i]) for i in range(len(parts))]
        return self.place_at(parts, starts, sizes, axis, self.fill(0, parts[0].kind))

    # -- sums and products

    def sum(self, x, axes, keep=False):
        x = self.real(x)
        axes = list(range(len(x.sizes))) if not axes and axes != 0 else \
            [axes] if isinstance(axes, int) else list(axes)
        axes = [axis % max(len(x.sizes), 1) for axis in axes] if x.sizes else []
        kept = [size for axis, size in enumerate(x.sizes) if axis not in axes]
        moved, _ = self.behind(x, axes)
        columns = math.prod(x.sizes[axis] for axis in axes)
        shape = [1 if axis in axes else size for axis, size in enumerate(x.sizes)] if keep else kept
        if columns == 1:
            return self.view(Value(self.dense(moved), kept), lambda t: t.view(shape))
        return Value(self.line("row-sum", [self.dense(moved)], [columns], kept), shape)

    def mean(self, x, axes, keep=False):
        total = self.sum(x, axes, keep)
        return self.scale(total, math.prod(total.sizes) / math.prod(x.sizes))

    def rows(self, x, axis):
        """The line with the axis last and dense, and how to see a result of its layout again."""
        axis %= max(len(x.sizes), 1)
        moved, order = self.behind(x, [axis] if x.sizes else [])
        back = [order.index(i) for i in range(len(order))]
        line = self.dense(moved, x.sizes[axis] if x.sizes else 1)

        def again(result):
            return self.view(Value(result, moved.sizes), lambda t: t.permute(back))
        return line, again

    def extreme(self, word, x, axis, keep, kind="f32"):
        x = self.real(x)
        line, _ = self.rows(x, axis)
        sizes = list(x.sizes)
        if sizes:
            sizes[axis % len(sizes)] = 1
        kept = sizes if keep else [size for i, size in enumerate(x.sizes)
                                   if i != axis % len(x.sizes)]
        return Value(self.line(word, [line], [], kept, kind), kept, kind=kind)

    def contract(self, a, b, sizes, strides=None, causal=0):
        """a (batch, rows, k) and b (batch, columns, k), each axis a list of (length, stride)."""
        def axes(pairs):
            pairs = [pair for pair in pairs if pair[0] > 1]
            return padded(pairs, 2, (1, 0))
        words = []
        for _, groups in (a, b):
            view = [pair for group in groups for pair in axes(group)]
            words += [size for size, _ in view] + [step for _, step in view]
        (a_line, a_groups), (b_line, b_groups) = a, b
        if strides is None:
            batch, rows, columns = (math.prod(size for size, _ in group) for group in
                                    (a_groups[0], a_groups[1], b_groups[1]))
            parts = []
            step = rows * columns * batch
            for group in (a_groups[0], a_groups[1], b_groups[1]):
                for size, _ in axes(group):
                    step //= size
                    parts.append(step if size > 1 else 0)
            strides = parts
        line = self.line("contract", [a_line, b_line], words + list(strides) + [causal], sizes)
        return Value(line, sizes)

    def product(self, a, b):
        """a (..., m, k) times b (..., k, n), with the same one or no batch axis."""
        a, b = self.real(a), self.real(b)
        if len(a.sizes) == 3:
            return self.grouped(a, b) or self.batched(a, b)
        a, b = self.whole(a), self.whole(b)
        a_axes = [[], [(a.sizes[0], a.strides[0])], [(a.sizes[1], a.strides[1])]]
        b_axes = [[], [(b.sizes[1], b.strides[1])], [(b.sizes[0], b.strides[0])]]
        return self.contract((a.line, a_axes), (b.line, b_axes), [a.sizes[0], b.sizes[1]])

    def heads(self, value):
        """(batch, rows, columns) as it lay before batch and heads were joined by a copy: its line,
        the axes of the batch, and the steps of rows and columns."""
        seen = value.line.view if value.line.word == "move" else None
        if seen is not None and len(seen.sizes) == 4 and value.offset == 0 and \
                0 not in seen.strides and seen.sizes[0] * seen.sizes[1] == value.sizes[0]:
            steps = dense_strides((value.sizes[0],) + seen.sizes[2:])
            lies = [(seen.sizes[2], steps[1]), (seen.sizes[3], steps[2])]
            view = list(zip(value.sizes[1:], value.strides[1:]))
            if value.strides[0] == steps[0] and view in (lies, lies[::-1]):
                base = self.whole(seen)
                rows = base.strides[2:] if view == lies else base.strides[:1:-1]
                return base.line, list(zip(seen.sizes[:2], base.strides[:2])), rows
        value = self.whole(value)
        return value.line, [(value.sizes[0], value.strides[0])], value.strides[1:]

    def batched(self, a, b):
        """a (batch, rows, k) times b (batch, k, columns)."""
        (a_line, a_batch, a_steps), (b_line, b_batch, b_steps) = self.heads(a), self.heads(b)
        axes = [size for size, _ in (a_batch if len(a_batch) > 1 else b_batch)]
        if len(a_batch) > 1 and len(b_batch) > 1 and axes != [size for size, _ in b_batch]:
            a, b = self.whole(a), self.whole(b)
            (a_line, a_batch, a_steps), (b_line, b_batch, b_steps) = (
                (one.line, [(one.sizes[0], one.strides[0])], one.strides[1:]) for one in (a, b))
            axes = [a.sizes[0]]

        def parted(batch):
            return batch if len(batch) == len(axes) else [
                (axes[0], axes[1] * batch[0][1]), (axes[1], batch[0][1])]
        rows, k, columns = a.sizes[1], a.sizes[2], b.sizes[2]
        return self.contract((a_line, [parted(a_batch), [(rows, a_steps[0])], [(k, a_steps[1])]]),
                             (b_line, [parted(b_batch), [(columns, b_steps[1])], [(k, b_steps[0])]]),
                             [a.sizes[0], rows, columns])

    def grouped(self, a, b):
        """A product whose right side is repeated for the heads of a group: they are rows of one."""
        seen = b.line.view if b.line.word == "move" else None
        if seen is None or len(seen.sizes) != 5 or seen.strides[2] != 0 or seen.sizes[2] == 1 or \
                math.prod(b.sizes[:-2]) != math.prod(seen.sizes[:3]) or b.offset:
            return None
        batch, groups, times, length, width = seen.sizes
        steps = dense_strides((batch * groups * times, length, width))
        # b may be transposed, and its batch axis joined: (batch * heads, ., .)
        view = [(n, step) for n, step in zip(b.sizes, b.strides)]
        if len(view) != 3 or view[0][1] != steps[0] or {view[1], view[2]} != {
                (length, steps[1]), (width, steps[2])} or view[1] == view[2]:
            return None
        base = self.whole(Value(seen.line, (batch, groups, length, width),
                                seen.strides[:2] + seen.strides[3:], seen.offset))
        turned = view[1] == (length, steps[1])  # rows of b are its length
        k, n = ((length, base.strides[2]), (width, base.strides[3]))[::1 if turned else -1]
        a_line, a_batch, a_steps = self.heads(a)
        if len(a_batch) == 1:
            step = a_batch[0][1]
            a_batch = [(batch, step * groups * times), (groups * times, step)]
        if [size for size, _ in a_batch] != [batch, groups * times]:
            return None
        rows, columns, head = a.sizes[1], n[0], a_batch[1][1]
        a_axes = [[a_batch[0], (groups, head * times)], [(times, head), (rows, a_steps[0])],
                  [(a.sizes[2], a_steps[1])]]
        b_axes = [[(batch, base.strides[0]), (groups, base.strides[1])], [n], [k]]
        square = rows * columns
        strides = []
        for pairs in ([(batch, groups * times * square), (groups, times * square)],
                      [(times, square), (rows, columns)], [(columns, 1)]):
            strides += padded([step for size, step in pairs if size > 1], 2, 0)
        return self.contract((a_line, a_axes), (base.line, b_axes),
                             [batch * groups * times, rows, columns], strides)

    # -- text

    RANKS = {"input": 0, "param": 1, "frozen": 2, "state": 3}

    def reached(self, ends):
        """The lines that these need, operands before their readers; without recursion."""
        order, state, stack = [], {}, list(reversed(ends))
        while stack:
            line = stack[-1]
            if state.get(id(line)) == "made":
                stack.pop()
                continue
            left = [one for one in line.operands if id(one) not in state]
            if left and state.get(id(line)) is None:
                stack += reversed(left)
                continue
            state[id(line)] = "made"
            stack.pop()
            order.append(line)
        return order

    @staticmethod
    def split(order):
        """Copies of columns that make up all columns of a value become the parts of one split."""
        cuts = {}
        for line in order:
            if line.word != "move" or line.kind != "f32":
                continue
            whole, (size, rest, step, offset) = line.operands[0], (
                line.numbers[3:5], line.numbers[:3], line.numbers[8:10], line.numbers[10])
            wide = whole.shape[-1]
            if rest == [1, 1, 1] and step == [wide, 1] and size[0] * wide == whole.count and \
                    size[1] < wide:
                cuts.setdefault(id(whole), {})[offset] = line
        for found in cuts.values():
            offsets = sorted(found)
            widths = [found[offset].numbers[4] for offset in offsets]
            whole = found[offsets[0]].operands[0]
            if sum(widths) == whole.shape[-1] and len(widths) <= PARTS and all(
                    offset == sum(widths[:i]) for i, offset in enumerate(offsets)):
                for i, offset in enumerate(offsets):
                    found[offset].word = "part"
                    found[offset].numbers = [i] + widths + [0] * (PARTS - len(widths))

    def calls(self, order, declared):
        """The text of the calls among these lines, and the number of each value."""
        calls = [line for line in order if line.word not in self.RANKS]
        number = {id(line): i for i, line in enumerate(declared + calls)}
        text, place = [], ""
        for line in calls:
            if line.place != place:
                place = line.place
                text.append("at " + place)
            words = ["%%%d" % number[id(line)], line.word]
            words += ["%%%d" % number[id(one)] for one in line.operands]
            words += [str(one) for one in line.numbers]
            text.append(" ".join(words + ["="] + [str(size) for size in line.shape]))
        return text, number

    def text(self, loss, afters, evaluated=None):
        """loss: a line or None; afters: (state, its next line); evaluated: the loss of held-out
        data. Returns the text, what it declares by word, and the number of each value."""
        step = self.reached([line for _, line in afters] + ([loss] if loss else []))
        held_out = self.reached([evaluated]) if evaluated else []
        used = {id(line) for line in step + held_out}
        declared = sorted((line for line in self.declared if line.word in ("input", "state") or
                           id(line) in used), key=lambda line: self.RANKS[line.word])
        for order in (step, held_out):
            self.split(order)
        body, number = self.calls(step, declared)
        text = ["lockstep-graph 1"]
        for line in declared:
            text.append("%%%d %s %s %s" % (number[id(line)], line.word, " ".join(line.numbers),
                                           " ".join(map(str, line.shape))))
        text += body
        text += ["after %%%d %%%d" % (number[id(state)], number[id(line)])
                 for state, line in afters]
        if loss:
            text.append("loss %%%d" % number[id(loss)])
        if evaluated:
            body, numbers = self.calls(held_out, declared)
            text += ["eval"] + body + ["loss %%%d" % numbers[id(evaluated)]]
        names = {word: [line.numbers[0] for line in declared if line.word == word]
                 for word in self.RANKS}
        return "\n".join(text) + "\n", names, number


# ---- what each ATen call becomes ------------------------------------------------------------------

RULES = {}
VIEWS = {"view", "_unsafe_view", "_reshape_alias", "t", "transpose", "permute", "expand", "unsqueeze",
         "squeeze", "slice", "select", "split", "split_with_sizes", "unsafe_split",
         "unsafe_split_with_sizes", "unsafe_chunk", "chunk", "unbind", "alias", "diagonal",
         "unfold", "numpy_T", "view_as_real"}
SAME = {"clone", "contiguous", "detach", "lift_fresh", "lift_fresh_copy", "positive"}
DRAWS = {"rand", "randn", "randint", "randperm", "bernoulli", "normal", "multinomial", "uniform",
         "rand_like", "randn_like", "randint_like", "exponential", "native_dropout", "poisson",
         "random", "rrelu_with_noise", "log_normal", "cauchy", "geometric"}
MAPS = {"neg": "neg", "abs": "abs", "sign": "sign", "floor": "floor", "ceil": "ceil",
        "round": "round", "sqrt": "sqrt", "rsqrt": "rsqrt", "reciprocal": "reciprocal",
        "exp": "exp", "log": "log", "tanh": "tanh", "sigmoid": "sigmoid", "erf": "erf",
        "sin": "sin", "cos": "cos", "relu": "relu", "silu": "silu"}
COMPARED = {"lt": ("less", False), "le": ("less-equal", False), "gt": ("less", True),
            "ge": ("less-equal", True), "eq": ("equal", False), "ne": ("not-equal", False)}
WAY_OUT = {"_local_scalar_dense": "a number that depends on the batch or a weight cannot leave the "
                                  "tensors: no item(), no if on a tensor",
           "_pack_padded_sequence": "give the rows filled up, and take the state of each row's last "
                                    "step: out[torch.arange(len(out)), lengths - 1]",
           "nonzero": "how many there are depends on numbers: multiply by the mask, or use torch.where",
           "as_strided": "take the parts with narrow(), unfold() or an index that is a constant"}
DIFFERENT = ("how many different ones there are depends on numbers: of what depends on no batch find them before the "
             "export; else sort(), and compare each with the one before")
COUNTS = ("compare with the edges of all bins and sum: ((x[:, None] >= edges[:-1]) & (x[:, None] < edges[1:])).sum(0), "
          "and the last bin has (x == edges[-1]).sum() more; of integers, torch.nn.functional.one_hot(x, count).sum(0)")
GAMMA = ("above 0, by Stirling at z = x + 6: (z - 0.5) * z.log() - z + 0.9189385 + 1 / (12 * z) - 1 / (360 * z**3) - "
         "sum((x + i).log() for i in range(6))")
DIGAMMA = ("above 0, at z = x + 6: z.log() - 1 / (2 * z) - 1 / (12 * z**2) + 1 / (120 * z**4) - sum(1 / (x + i) for i "
           "in range(6))")
NUMBER = "it gives a number, and what is computed cannot leave the tensors: (a == b).all() stays one"
NORM = "x.abs().pow(p).sum(axes).pow(1 / p); of order 0 (x != 0).sum(axes), of -inf x.abs().amin(axes)"
OTHER = "torch.where(a != a, b, torch.where(b != b, a, torch.%s(a, b)))"  # of what may be NaN
EACH = "a loop over the axis: torch.maximum or torch.minimum of what came before and the next"
WAY_OUT.update({
    "_unique2": DIFFERENT, "unique_dim": DIFFERENT, "unique_consecutive": DIFFERENT, "_unique": DIFFERENT,
    "histc": COUNTS, "bincount": COUNTS, "histogram": COUNTS, "lgamma": GAMMA,
    "mvlgamma": "p * (p - 1) / 4 * math.log(math.pi), and lgamma of x - i / 2 for i in range(p); that is " + GAMMA,
    "digamma": DIGAMMA,
    "polygamma": "of order 1 and more it is the derivative of digamma: " + DIGAMMA,
    "linalg_matrix_exp": "scale, sum, square: a = x / 2**k with a norm below 1, then e = I + a (I + a/2 (I + a/3 (...))) "
                         "to about 8 terms, then k times e = e @ e",
    "equal": NUMBER, "allclose": NUMBER, "cummax": EACH, "cummin": EACH,
    "mode": "of integers, torch.nn.functional.one_hot(x, count).sum(-2).argmax(-1)",
    "scatter_reduce": "of 'amax' a mask of who goes where: torch.where(one_hot(index, count) > 0, x[..., None], "
                      "-1e30).amax(0)",
    "renorm": "x * (limit / (x.norm(dim=axes, keepdim=True) + 1e-7)).clamp(max=1)",
    "embedding_renorm": "leave max_norm out, and scale the rows that come out: e * (limit / (e.norm(dim=-1, "
                        "keepdim=True) + 1e-7)).clamp(max=1)",
    "norm": NORM, "linalg_vector_norm": NORM,
    "nansum": "torch.where(x == x, x, 0.0).sum()",
    "nanmedian": "x.sort(-1)[0].gather(-1, ((x == x).sum(-1, True) - 1).clamp(min=0) // 2)",
    "signbit": "x < 0, where -0.0 is none of them", "fmax": OTHER % "maximum", "fmin": OTHER % "minimum",
    "count_nonzero": "(x != 0).sum()",
    "dist": "(a - b).norm()", "rad2deg": "x * (180 / math.pi)", "deg2rad": "x * (math.pi / 180)",
    "isin": "(x[..., None] == those).any(-1)", "block_diag": "torch.nn.functional.pad of each, and their sum",
    "diagonal_scatter": "torch.where(torch.eye(n) > 0, new, x)", "to_sparse": "stay with dense tensors",
    "rrelu_with_noise": "torch.where(x < 0, x * torch.empty_like(x).uniform_(low, high), x)",
    "_upsample_bilinear2d_aa": "leave antialias out, or take avg_pool2d first",
    "angle": "torch.where(x < 0, math.pi, 0.0)", "_pdist_forward": "torch.cdist, and an index of its upper triangle",
})
WAY_OUT.update({name: "of a matrix that depends on no batch and no weight, compute it before the export and give "
                      "it as a buffer; else make it a loop of products: Newton-Schulz steps for an inverse, steps "
                      "of conjugate gradients for a system" for name in (
                          "linalg_cholesky_ex", "linalg_inv_ex", "_linalg_solve_ex", "linalg_pinv",
                          "linalg_lstsq", "linalg_solve_triangular", "linalg_lu_factor_ex", "cholesky_solve",
                          "_linalg_det", "_linalg_slogdet", "triangular_solve")})
WAY_OUT.update({name: "of a matrix that depends on no batch and no weight, compute it before the export and give "
                      "it as a buffer; else make it a loop of products: power iteration for the largest, "
                      "Newton-Schulz steps for what is orthogonal" for name in (
                          "_linalg_svd", "linalg_qr", "_linalg_eigh", "linalg_eig")})


def rule(*names):
    def add(function):
        RULES.update({name: function for name in names})
        return function
    return add


def refuse(what):
    raise Refused(what)


@rule(*MAPS)
def _map(g, name, out, x, decimals=0):
    if decimals:
        refuse("decimals: round(x * 10**n) / 10**n")
    return g.map(MAPS[name], x)


@rule("gelu")
def _gelu(g, name, out, x, approximate="none"):
    return g.map("gelu" if approximate == "tanh" else "gelu-erf", x)


def _needs_words(x):
    """Is this an integer that f32 may not hold?"""
    return isinstance(x, int) and abs(x) > EXACT or isinstance(x, Value) and x.kind == "u32" and \
        x.line.computed and not _is_within(x.line.span or WORD, (-EXACT, EXACT))


def _both_words(g, a, b):
    """Two integers whose order is that of their words; None: there is no such form."""
    a, b = g.words(a), g.words(b)
    if a is None or b is None:
        return None
    spans = [one.line.span or WORD for one in (a, b)]
    if all(_is_within(span, WORD) for span in spans):
        return a, b
    if all(_is_within(span, SIGNED) for span in spans):
        return [g.integers("add", one, 2 ** 31) for one in (a, b)]
    return None


@rule(*COMPARED)
def _compare(g, name, out, a, b):
    word, turned = COMPARED[name]
    if _needs_words(a) or _needs_words(b):
        both = _both_words(g, a, b)
        if both is not None:
            return g.told(g.integers(word, *(reversed(both) if turned else both)))
    return g.binary(word, *((b, a) if turned else (a, b)), kind="bool")


def _is_one(x):
    return x == 1 if isinstance(x, int) else isinstance(x, Value) and x.kind == "constant" and \
        x.tensor.numel() == 1 and x.tensor.item() == 1


def _fitted(line, out):
    """What a type of fewer bits makes of an integer: it comes round."""
    if out.dtype == torch.int32 and not _is_within(line.span or WORD, SIGNED):
        line.span = SIGNED
    return line


def _is_integer(out):
    return isinstance(out, torch.Tensor) and not out.is_floating_point() and \
        out.dtype not in (torch.bool,) + tuple(SMALL)


def _span_of(word, a, b):
    low, high = zip(a.line.span or WORD, b.line.span or WORD)
    if word == "add":
        return low[0] + low[1], high[0] + high[1]
    if word == "sub":
        return low[0] - high[1], high[0] - low[1]
    products = [one * other for one in (low[0], high[0]) for other in (low[1], high[1])]
    return min(products), max(products)


def _worded(g, out, word, a, b, real):
    """Integers that are added or multiplied: as f32, exact up to 2^24, and beside it modulo 2^32 for
    whom that matters. Where the first cannot be, the second."""
    if not _is_integer(out):
        return real()

    def words():
        one, other = g.words(a), g.words(b)
        if one is None or other is None:
            return None
        return _fitted(g.integers(word, one, other, _span_of(word, one, other)).line, out)
    place, words = g.place, _once(words)
    if _needs_words(a) or _needs_words(b):
        line = words()
        if line is not None:
            return Value(line, out.shape, kind="u32")
    made = real()
    dense = made.offset == 0 and made.strides == dense_strides(made.sizes)
    if dense and made.line.count == math.prod(made.sizes) and made.line.words is None:
        def placed():
            kept, g.place = g.place, place
            line, g.place = words(), kept
            return line
        made.line.words = placed
    return made


@rule("add", "sub", "rsub")
def _add(g, name, out, a, b, alpha=1):
    if name == "rsub":
        a, b, name = b, a, "sub"
    if alpha == 1 and not (name == "add" and _counts(a, b, out)):
        return _worded(g, out, name, a, b, lambda: _added(g, name, out, a, b))
    return _added(g, name, out, a, b, alpha)


def _counts(a, b, out):
    return isinstance(a, Value) and a.kind == "u32" and _is_one(b) and \
        a.line.count == math.prod(out.shape) == 1


def _added(g, name, out, a, b, alpha=1):
    if name == "add" and alpha == 1 and _counts(a, b, out):
        return Value(g.line("count", [a.line], [], (1,), "u32"), out.shape, kind="u32")
    if out.dtype == torch.bool:
        return _or(g, name, out, a, b)
    if name == "add" and alpha == 1:
        fused = _added_mask(g, a, b) or _rotary(g, a, b) or _rotary(g, b, a)
        if fused is not None:
            return fused
    b = g.scale(g.real(b), alpha) if alpha != 1 else b
    return g.binary("add" if name == "add" else "sub", a, b)


def _hide(g, x, mask, number):
    """x where the constant mask is false, and a number far below elsewhere: what softmax reads."""
    x = g.real(x)
    if x.sizes != torch.broadcast_shapes(x.sizes, mask.shape):
        wide = torch.broadcast_shapes(x.sizes, mask.shape)
        x = g.view(x, lambda t: t.expand(wide))
    if x.offset != 0 or g.whole(x) is not x:
        x = Value(g.dense(x), x.sizes)
    made = g.select(g.constant(Value(None, mask.shape, kind="constant", tensor=mask), "f32"),
                    g.number(number), x)
    made.line.hidden = x, mask
    return made


def _added_mask(g, a, b):
    """A score and a constant of 0 and minus infinity, as masks are added."""
    for x, mask in ((a, b), (b, a)):
        tensor = mask.tensor if isinstance(mask, Value) else None
        if tensor is None or not isinstance(x, Value) or not tensor.is_floating_point():
            continue
        hides = tensor <= -1e9
        if bool(hides.any()) and bool((hides | (tensor == 0)).all()):
            return _hide(g, x, hides, float(tensor.min()))
    return None


@rule("mul")
def _mul(g, name, out, a, b):
    return _worded(g, out, "mul", a, b, lambda: _multiplied(g, a, b))


def _multiplied(g, a, b):
    for x, factor in ((a, b), (b, a)):
        if isinstance(factor, (bool, int, float)):
            return g.scale(g.real(x), factor)
    for weight, x in ((a, b), (b, a)):
        normed = _rms_norm(g, weight, x)
        if normed is not None:
            return normed
    made = g.binary("mul", a, b)
    made.line.factors = a, b
    return made


def _root_of_mean(g, x, r):
    """Is r 1 over the root of the mean of the squares of x's last axis, and a number? Its bits."""
    width = x.sizes[-1]
    line = r.line
    if line is None or line.word != "rsqrt" or line.count * width != math.prod(x.sizes):
        return None
    line = line.operands[0]
    if line.word != "add" or line.operands[1].word != "fill":
        return None
    epsilon, line = line.operands[1].numbers[0], line.operands[0]
    if line.word != "scale" or line.numbers[0] != bits(1 / width):
        return None
    line = line.operands[0]
    if line.word != "row-sum" or line.numbers[0] != width:
        return None
    square = line.operands[0]
    if square.word != "mul" or square.operands[0] is not square.operands[1] or \
            square.operands[0] is not g.dense(x):
        return None
    return epsilon


def _rms_norm(g, weight, value):
    """weight * (x / root of the mean of its squares), as everybody writes it."""
    line = value.line if isinstance(value, Value) else None
    if line is None or line.factors is None or not isinstance(weight, Value) or \
            len(weight.sizes) != 1 or weight.sizes[0] != value.sizes[-1] or \
            g.whole(value) is not value or value.strides != dense_strides(value.sizes):
        return None
    for x, r in (line.factors, line.factors[::-1]):
        if not isinstance(x, Value) or not isinstance(r, Value) or x.kind != "f32" or \
                x.sizes != value.sizes or r.kind != "f32":
            continue
        epsilon = _root_of_mean(g, x, r)
        if epsilon is not None:
            made = g.dense(x, x.sizes[-1])
            return Value(g.line("rms-norm", [made, g.dense(g.real(weight))], [epsilon], made.shape),
                         x.sizes)
    return None


def _table(g, cos, sin, sizes):
    """Cosines and sines of (..., length, width) as a table of pairs; None where they are others."""
    length, half = sizes[-2], sizes[-1] // 2
    parts = []
    for value in (cos, sin):
        if not isinstance(value, Value) or value.kind != "constant":
            return None
        whole = value.tensor.detach().float()
        if whole.dim() < 2 or tuple(whole.shape[-2:]) != (length, 2 * half):
            return None
        whole = whole.reshape(-1, length, 2 * half)
        if not bool((whole == whole[:1]).all()) or \
                not torch.equal(whole[0, :, :half], whole[0, :, half:]):
            return None
        parts.append(whole[0, :, :half])
    table = torch.stack(parts, -1)
    key = tuple(table.shape), _bytes(table)
    if key not in g.tables:
        g.tables[key] = table
    return g.constant(Value(None, table.shape, kind="constant", tensor=g.tables[key]), "f32").line


def _rotary(g, a, b):
    """x * cosines + turned x * sines, as everybody writes it: (batch, heads, length, width) of rows
    whose heads lie side by side."""
    if not all(isinstance(one, Value) and one.line is not None and one.line.factors is not None and
               one.strides == dense_strides(one.sizes) for one in (a, b)):
        return None
    for x, cos in (a.line.factors, a.line.factors[::-1]):
        for turned, sin in (b.line.factors, b.line.factors[::-1]):
            whole = turned.line.turned if isinstance(turned, Value) and turned.line is not None \
                else None
            if whole is None or not isinstance(x, Value) or len(x.sizes) != 4 or \
                    (x.line, x.sizes, x.strides, x.offset) != (
                        whole.line, whole.sizes, whole.strides, whole.offset):
                continue
            batch, heads, length, width = x.sizes
            row = heads * width
            if x.offset or x.line.count != math.prod(x.sizes) or any(
                    size > 1 and step != wanted for size, step, wanted in zip(
                        x.sizes, x.strides, (length * row, width, row, 1))):
                continue
            table = _table(g, cos, sin, x.sizes)
            if table is not None:
                return Value(g.line("rotary", [x.line, table], [length, heads, 1], x.line.shape),
                             x.sizes, x.strides)
    return None


def _is_large(g, x):
    """May this integer be none that f32 holds, and is it known as a word?"""
    found = g.words(x) if isinstance(x, Value) else None
    return found is not None and not _is_within(found.line.span or WORD, (-EXACT, EXACT))


def _divided(g, out, word, a, b):
    """Quotients and rests of integers from 0 to 2^32 - 1, and rests by a power of two of any; None:
    f32 has it."""
    if not _is_integer(out) or not _is_large(g, a) or a.kind == "u32" and not a.line.computed:
        return None
    one, other = g.words(a), g.words(b)
    if other is None:
        return None
    low, high = one.line.span or WORD
    least, most = other.line.span or WORD
    if word == "mod" and least == most > 0 and least & (least - 1) == 0 and least <= 2 ** 32:
        return g.integers("and", one, least - 1, (0, least - 1))
    if low >= 0 and high <= WORD[1] and least > 0 and most <= WORD[1]:
        return g.integers(word, one, other, (low // most, high // least) if word == "div" else
                          (0, most - 1))
    if max(-low, high) >= 2 ** 36:
        refuse("an integer that may pass 32 bits: cut it first, as by `& 0xffffffff` or `% 2**32`")
    return None


@rule("div", "true_divide", "floor_divide")
def _div(g, name, out, a, b, rounding_mode=None):
    if name == "floor_divide" or rounding_mode is not None:
        made = _divided(g, out, "div", a, b)
        if made is not None:
            return made
    if name == "floor_divide" or rounding_mode is not None:
        made = g.binary("div", a, b)
        return _truncated(g, made) if rounding_mode == "trunc" else g.map("floor", made)
    if isinstance(b, (int, float)) and b != 0 and not _is_counted(a):
        return g.scale(g.real(a), 1 / b)
    return g.binary("div", a, b)


def _is_counted(x):
    """Was it an integer? Then its quotient by a number is rounded once: somebody may take the floor."""
    return isinstance(x, Value) and (x.integer or x.kind != "f32" or x.line is not None and (
        x.line.word == "cast" or x.line.words is not None))


def _truncated(g, x):
    """Toward zero."""
    x = g.real(x)
    return g.binary("mul", g.map("sign", x), g.map("floor", g.map("abs", x)))


@rule("trunc", "fix")
def _trunc(g, name, out, x):
    return _truncated(g, x)


@rule("remainder", "fmod")
def _remainder(g, name, out, a, b):
    made = _divided(g, out, "mod", a, b)
    if made is not None:
        return made
    parts = g.binary("div", a, b)
    parts = g.map("floor", parts) if name == "remainder" else _truncated(g, parts)
    return g.binary("sub", a, g.binary("mul", parts, b))


@rule("pow", "square")
def _pow(g, name, out, a, b=2):
    if not isinstance(b, (int, float)):
        if b.kind == "constant" or b.integer or b.kind != "f32":
            made = _whole_power(g, out, g.binary("pow", a, b))
            if _is_integer(out) and not (b.kind == "constant" and int(b.tensor.min()) >= 0):  # 0 ** -1 is 0
                none = g.binary("mul", g.binary("less", b, 0), g.binary("equal", g.number(a) if isinstance(
                    a, (int, float)) else a, 0))
                made = g.select(none, g.number(0), made)
            return made
        number = a if isinstance(a, (int, float)) else a.tensor.item() if a.kind == "constant" and \
            a.tensor.numel() == 1 else 0
        if number > 0:
            return g.select(g.binary("equal", b, 0), g.number(1), g.map("exp", g.scale(b, math.log(number))))
        still, a = g.stop(b), g.real(a)  # the slope of an exponent is that of exp(b log a)
        log = g.map("log", g.select(g.binary("less", 0, a), a, g.number(1)))
        return g.binary("mul", g.binary("pow", a, still), g.map("exp", g.binary("mul", g.binary("sub", b, still),
                                                                                 g.stop(log))))
    x = g.whole(g.real(a))
    if b in (0.5, -0.5, -1):
        return g.map({0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}[b], x)
    if b in (1, 2, 3):
        made = x
        for _ in range(int(b) - 1):
            made = g.binary("mul", made, x)
        return made
    return _whole_power(g, out, g.binary("pow", x, g.number(b)))


def _whole_power(g, out, made):
    """Of integers the power is rounded."""
    return g.map("round", made) if _is_integer(out) else made


@rule("maximum", "minimum", "max.other", "min.other")
def _maximum(g, name, out, a, b):
    return g.binary(name[:3], a, b)


@rule("clamp", "clamp_min", "clamp_max", "hardtanh")
def _clamp(g, name, out, x, low=None, high=None, **names):
    low, high = names.get("min", low), names.get("max", high)
    if name == "clamp_max":
        low, high = None, low
    if name == "hardtanh":  # at its ends the slope is 0, and 1 at those of clamp
        return _between_ends(g, g.real(x), "less-equal", -1 if low is None else low,
                             1 if high is None else high)
    return _between_ends(g, g.real(x), "less", low, high)


def _between_ends(g, x, word, low, high):
    """What is beyond an end becomes the end, which itself is one of them or is not."""
    if low is not None:
        x = g.select(g.binary(word, x, low), g.real(low), x)
    if high is not None:
        x = g.select(g.binary(word, high, x), g.real(high), x)
    return x


def _bits(g, word, out, a, b):
    """Of integers bit by bit: what lies in 32 bits, with a sign or without."""
    a, b = g.sure_words(a), g.sure_words(b)
    spans = [one.line.span or WORD for one in (a, b)]
    most = max(high for _, high in spans)
    capped = [high for low, high in spans if low >= 0 and high <= WORD[1]]
    if word == "and" and capped:
        span = 0, min(capped)
    elif all(_is_within(span, WORD) for span in spans):
        span = 0, 2 ** most.bit_length() - 1
    else:
        span = SIGNED if all(_is_within(span, SIGNED) for span in spans) else WIDE
    made = g.integers(word, a, b, span)
    return _small(g, Value(_fitted(made.line, out), made.sizes, made.strides, kind="u32"), out)


def _small(g, x, out):
    """Integers of 8 and 16 bits come round."""
    if out.dtype not in SMALL or _is_within(x.line.span or WORD, _range_of(out)):
        return x
    count, low = SMALL[out.dtype]
    x = g.integers("and", g.integers("add", x, low), count - 1)
    return g.integers("sub", x, low, _range_of(out)) if low else _of_span(x, _range_of(out))


def _range_of(out):
    count, low = SMALL[out.dtype]
    return -low, count - low - 1


def _of_span(x, span):
    x.line.span = span
    return x


@rule("logical_not", "bitwise_not")
def _not(g, name, out, x):
    if name == "logical_not" or out.dtype == torch.bool:
        return g.binary("equal", x, 0, kind="bool")
    x = g.sure_words(x)
    low, high = x.line.span or WORD
    return _small(g, g.integers("xor", x, WORD[1], (-1 - high, -1 - low)), out)


@rule("logical_and", "bitwise_and", "__and__")
def _and(g, name, out, a, b):
    if out.dtype != torch.bool and name != "logical_and":
        return _bits(g, "and", out, a, b)
    return g.binary("mul", _truth(g, a), _truth(g, b), kind="bool")


@rule("logical_or", "bitwise_or", "__or__")
def _or(g, name, out, a, b):
    if out.dtype != torch.bool and name != "logical_or":
        return _bits(g, "or", out, a, b)
    return g.binary("max", _truth(g, a), _truth(g, b), kind="bool")


@rule("logical_xor", "bitwise_xor", "__xor__")
def _xor(g, name, out, a, b):
    if out.dtype != torch.bool and name != "logical_xor":
        return _bits(g, "xor", out, a, b)
    return g.binary("not-equal", _truth(g, a), _truth(g, b), kind="bool")


@rule("bitwise_left_shift", "__lshift__")
def _shift_left(g, name, out, a, b):
    if out.is_floating_point():
        refuse("a shift of what is no integer")
    a, b = g.sure_words(a), g.sure_words(b)
    low, high = a.line.span or WORD
    most = (b.line.span or WORD)[1]
    span = (min(low << most, low), max(high << most, high)) if most < 64 else WIDE
    made = g.integers("shift-left", a, b, span)
    return _small(g, Value(_fitted(made.line, out), made.sizes, made.strides, kind="u32"), out)


@rule("bitwise_right_shift", "__rshift__")
def _shift_right(g, name, out, a, b):
    if out.is_floating_point():
        refuse("a shift of what is no integer")
    a, b = g.sure_words(a), g.sure_words(b)
    low, high = a.line.span or WORD
    least = max((b.line.span or WORD)[0], 0)
    span = low >> least if low > 0 else min(low, 0), max(high, 0) >> least
    if low >= 0 and high <= WORD[1]:
        return g.integers("shift-right", a, b, (0, span[1]))
    if not _is_within((low, high), SIGNED):
        refuse("a shift to the right of an integer that may pass 32 bits: cut it first, as by "
               "`& 0xffffffff`")
    up = g.integers("shift-right", g.integers("add", a, 2 ** 31), b)
    return g.integers("sub", up, g.integers("shift-right", 2 ** 31, b), span)


def _truth(g, x):
    boolean = isinstance(x, Value) and (x.kind == "bool" or x.kind == "constant" and
                                        x.tensor.dtype == torch.bool)
    if not boolean and _needs_words(x):
        return g.told(g.integers("not-equal", x, 0))
    return x if boolean else g.binary("not-equal", x, 0, kind="bool")


@rule("masked_fill")
def _masked_fill(g, name, out, x, mask, number):
    if isinstance(number, Value):
        number = number.tensor.item() if number.kind == "constant" else refuse(
            "masked_fill with a computed number")
    number = _held(number, out)
    if number <= -1e9 and mask.kind == "constant":
        return _hide(g, x, mask.tensor, number)
    return g.select(g.real(mask), g.number(number), g.real(x))


@rule("fill", "zero")
def _fill(g, name, out, x, number=0):
    if isinstance(number, Value):
        number = _cast(g, name, out, g.real(number))
        return g.view(number, lambda t: t.expand(x.sizes))
    return g.number(_held(number, out), x.sizes)


def _held(number, out):
    """What a tensor of this type holds of a number that is written into it."""
    return number if out.is_floating_point() else bool(number) if out.dtype == torch.bool else int(number)


@rule("where")
def _where(g, name, out, c, a, b):
    for x, fill, mask in ((a, b, lambda t: ~t), (b, a, lambda t: t)):
        tensor = fill.tensor if isinstance(fill, Value) else None
        number = fill if isinstance(fill, (int, float)) else tensor.item() \
            if tensor is not None and tensor.numel() == 1 else 0
        if number <= -1e9 and c.kind == "constant":
            return _hide(g, x, mask(c.tensor), number)
    if all(isinstance(one, Value) and one.kind == "u32" for one in (a, b)):
        return g.select(g.real(c), a, b)
    return g.select(g.real(c), g.real(a), g.real(b))


@rule("tril", "triu")
def _triangle(g, name, out, x, diagonal=0):
    kept = getattr(torch.ones(x.sizes[-2:]), name)(diagonal)
    mask = Value(None, kept.shape, kind="constant", tensor=kept)
    return g.select(g.real(mask), g.real(x), g.number(0))


@rule("leaky_relu")
def _leaky(g, name, out, x, slope=0.01):
    x = g.real(x)
    return g.select(g.binary("less", g.number(0), x), x, g.scale(x, slope))


@rule("elu")
def _elu(g, name, out, x, alpha=1, scale=1, input_scale=1):
    x = g.real(x)
    above = g.binary("less", 0, x)
    low = g.map("exp", g.scale(g.select(above, g.number(0), x), input_scale))
    low = g.scale(g.binary("sub", low, 1), alpha)
    return g.scale(g.select(above, x, low), scale)


@rule("prelu", "_prelu_kernel")
def _prelu(g, name, out, x, weight):
    x, weight = g.real(x), g.real(weight)
    if math.prod(weight.sizes) > 1 and len(weight.sizes) == 1 and len(x.sizes) > 1:
        weight = g.view(weight, lambda t: t.reshape([1, -1] + [1] * (len(x.sizes) - 2)))
    return g.select(g.binary("less", g.number(0), x), x, g.binary("mul", x, weight))


@rule("pixel_shuffle", "pixel_unshuffle")
def _pixel_shuffle(g, name, out, x, by):
    *lead, channels, high, wide = x.sizes
    n = len(lead)
    parts, order = ([channels // by ** 2, by, by, high, wide], [0, 3, 1, 4, 2]) \
        if name == "pixel_shuffle" else ([channels, high // by, by, wide // by, by], [0, 2, 4, 1, 3])
    x = g.view(x, lambda t: t.reshape(lead + parts))
    x = g.view(x, lambda t: t.permute(list(range(n)) + [n + i for i in order]))
    return g.view(x, lambda t: t.reshape(out.shape))


def _along(g, x, axis, matrix):
    """Along an axis, the product with a constant (old, new)."""
    axis %= len(x.sizes)
    moved, order = g.behind(x, [axis])
    rows = g.view(moved, lambda t: t.reshape(-1, t.shape[-1]))
    made = g.product(rows, Value(None, matrix.shape, kind="constant", tensor=matrix))
    back = [order.index(i) for i in range(len(order))]
    return g.view(Value(made.line, moved.sizes[:-1] + (matrix.shape[1],)), lambda t: t.permute(back))


def _separable(g, x, axes, function):
    """What is linear and does one axis after the other: its matrix for an axis is what it makes of
    the columns of 1. function(pictures one column wide, which of the axes)."""
    for which, axis in enumerate(axes):
        size = x.sizes[axis]
        matrix = function(torch.eye(size).view(1, size, size, 1), which)[0, :, :, 0]
        if not torch.equal(matrix, torch.eye(size)) or matrix.shape[0] != matrix.shape[1]:
            x = _along(g, x, axis, matrix.contiguous())
    return x


UPSAMPLED = {"nearest": "nearest", "_nearest_exact": "nearest-exact", "linear": "bilinear",
             "bilinear": "bilinear", "bicubic": "bicubic"}


@rule("upsample_nearest1d", "upsample_nearest2d", "upsample_linear1d", "upsample_bilinear2d",
      "upsample_bicubic2d", "_upsample_nearest_exact1d", "_upsample_nearest_exact2d")
def _upsample(g, name, out, x, size=None, *more, **names):
    x, axes = g.real(x), list(range(2, len(x.sizes)))
    times = [new // old for new, old in zip(out.shape[2:], x.sizes[2:])]
    if name.startswith("upsample_nearest") and all(
            old * many == new for old, many, new in zip(x.sizes[2:], times, out.shape[2:])):
        return _repeated(g, x, times, out)
    mode = UPSAMPLED[name.replace("upsample_", "").strip("_")[:-2] if "exact" not in name else
                     "_nearest_exact"]
    aligned = None if "nearest" in mode else more[0] if more else names.get("align_corners")
    scales = more[0 if "nearest" in mode else 1:] or [names[key] for key in (
        "scale_factors", "scales", "scales_h", "scales_w") if key in names]
    scales = list(scales[0]) if scales and isinstance(scales[0], (list, tuple)) else list(scales)

    def one(columns, which):
        given = scales[which] if which < len(scales) else None
        sized = {"scale_factor": (given, 1.0)} if given else {"size": (out.shape[2 + which], 1)}
        return FUNCTIONAL.interpolate(columns, mode=mode, align_corners=aligned, **sized)
    return _separable(g, x, axes, one)


def _repeated(g, x, times, out):
    """Each element so many times: the nearest."""
    twice = [n for pair in zip(x.sizes[2:], times) for n in pair]
    ones = [n for size in x.sizes[2:] for n in (size, 1)]
    lead = list(x.sizes[:2])
    x = g.view(x, lambda t: t.reshape(lead + ones).expand(lead + twice))
    return Value(g.dense(x), out.shape)


@rule("reflection_pad1d", "reflection_pad2d", "replication_pad1d", "replication_pad2d")
def _mirrored_pad(g, name, out, x, pads):
    x = g.real(x)
    for i in range(len(pads) // 2):
        axis, (before, after) = len(x.sizes) - 1 - i, pads[2 * i:2 * i + 2]
        if min(before, after) < 0:
            refuse("a padding below 0")
        size, parts = x.sizes[axis], [x]

        def edge(start, last, count):
            if name.startswith("reflection"):
                return g.flipped(g.view(x, lambda t: t.narrow(axis, start, count)), [axis])
            wide = x.sizes[:axis] + (count,) + x.sizes[axis + 1:]
            return g.view(x, lambda t: t.narrow(axis, last, 1).expand(wide))
        if before:
            parts.insert(0, edge(1, 0, before))
        if after:
            parts.append(edge(size - 1 - after, size - 1, after))
        if len(parts) > 1:
            x = g.join(parts, axis)
    return x


@rule("im2col")
def _unfold(g, name, out, x, kernel, dilation, pads, stride):
    """Columns of windows, as F.unfold has them."""
    x = g.real(x)
    if len(x.sizes) == 3:
        return g.view(_unfold(g, name, out[None], g.view(x, lambda t: t.unsqueeze(0)), kernel, dilation,
                              pads, stride), lambda t: t.squeeze(0))
    n, channels, high, wide = x.sizes
    places, area = math.prod(kernel), out.shape[2]
    line = g.line("im2col", [_channels_last(g, x)],
                  _picture(x, channels, kernel, stride, pads, dilation), [n * area, places * channels])
    made = Value(line, (n, area, places, channels))
    return Value(g.dense(g.view(made, lambda t: t.permute(0, 3, 2, 1))), out.shape)


@rule("col2im")
def _fold(g, name, out, x, size, kernel, dilation, pads, stride):
    """What F.fold does: windows added up where they lie."""
    x = g.real(x)
    if len(x.sizes) != 3 or math.prod(kernel) > WINDOW_MOST:
        refuse("windows of %d places, or no batch" % math.prod(kernel))
    n, channels = x.sizes[0], x.sizes[1] // math.prod(kernel)
    steps = [(size[i] + 2 * pads[i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1
             for i in range(2)]
    whole = [size[i] + 2 * pads[i] for i in range(2)]
    x = g.view(x, lambda t: t.reshape([n, channels] + list(kernel) + steps))
    made, area = None, math.prod(whole)
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            part = g.view(x, lambda t: t[:, :, i, j])
            line = g.line("place", [g.dense(part), g.fill(0)],
                          padded([n * channels] + steps, MOVE_AXES, 1) +
                          padded([area, stride[0] * whole[1], stride[1]], MOVE_AXES, 0) +
                          [i * dilation[0] * whole[1] + j * dilation[1]], [n, channels] + whole)
            one = Value(line, [n, channels] + whole)
            made = one if made is None else g.binary("add", made, one)
    return g.view(made, lambda t: t[:, :, pads[0]:pads[0] + size[0], pads[1]:pads[1] + size[1]])


def _root(g, x):
    """The root of a sum of squares: of 0 its slope is 0, as PyTorch's norms have it."""
    is_zero = g.binary("equal", x, 0)
    return g.select(is_zero, g.number(0), g.map("sqrt", g.select(is_zero, g.number(1), x)))


@rule("_cdist_forward")
def _cdist(g, name, out, a, b, p, mode=None):
    a = g.view(g.real(a), lambda t: t.unsqueeze(-2))
    b = g.view(g.real(b), lambda t: t.unsqueeze(-3))
    apart = g.binary("sub", a, b)
    if p == 2:
        return _root(g, g.sum(g.binary("mul", apart, apart), [-1]))
    if p not in (1, math.inf):
        refuse("distances of another norm than 1, 2 and the largest")
    apart = g.map("abs", apart)
    return g.sum(apart, [-1]) if p == 1 else g.extreme("row-max", apart, len(apart.sizes) - 1, False)


@rule("_weight_norm_interface", "_weight_norm")
def _weight_norm(g, name, out, v, size, axis=0):
    v, size = g.real(v), g.real(size)
    others = [i for i in range(len(v.sizes)) if i != axis % len(v.sizes)]
    norm = g.map("sqrt", g.sum(g.binary("mul", v, v), others, True))
    made = g.binary("mul", v, g.binary("div", size, norm))
    return made if name == "_weight_norm" else (made, norm)


@rule("_embedding_bag")
def _embedding_bag(g, name, out, table, index, offsets, scaled=False, mode=0, sparse=False,
                   weights=None, last=False, padding=-1):
    starts = offsets.tensor.tolist() if offsets.kind == "constant" else refuse("computed offsets")
    count = len(starts) and index.sizes[0] // len(starts)
    if mode == 2 or weights is not None or padding != -1 or last or scaled or \
            starts != [i * count for i in range(len(starts))] or count * len(starts) != index.sizes[0]:
        refuse("bags of several sizes, of largest numbers, with weights, a padding or scaled gradients: "
               "embedding() gives the rows, sum them with a mask")
    bags = g.view(g.index(index), lambda t: t.reshape(len(starts), count))
    table = g.real(table)
    rows = g.gather(g.dense(table, table.sizes[-1]), bags, list(bags.sizes) + [table.sizes[-1]])
    made = g.mean(rows, [1]) if mode == 1 else g.sum(rows, [1])
    return made, None, None, None


@rule("log1p")
def _log1p(g, name, out, x):
    """The logarithm, and what 1 + x rounds away; its slope is that of the first."""
    x = g.real(x)
    u = g.binary("add", x, 1)
    lost = g.binary("div", g.binary("sub", x, g.binary("sub", u, 1)), g.binary("max", u, 1e-30))
    return g.binary("add", g.map("log", u), g.stop(lost))


@rule("expm1")
def _expm1(g, name, out, x):
    x = g.real(x)
    t = g.map("tanh", g.scale(g.binary("max", g.binary("min", x, 1), -1), 0.5))
    near = g.binary("div", g.scale(t, 2), g.binary("sub", 1, t))
    return g.select(g.binary("less", g.map("abs", x), 1), near, g.binary("sub", g.map("exp", x), 1))


@rule("softplus")
def _softplus(g, name, out, x, beta=1, threshold=20):
    x = g.real(x)
    y = g.scale(x, beta)
    above = g.binary("less", 0, y)  # of 0 the slope is a half
    tail = _log1p(g, name, out, g.map("exp", g.select(above, g.scale(y, -1), y)))
    made = g.scale(g.binary("add", g.select(above, y, g.number(0)), tail), 1 / beta)
    return made if threshold >= 20 else g.select(g.binary("less", threshold, y), x, made)


@rule("log2", "log10", "exp2")
def _other_base(g, name, out, x):
    if name == "exp2":
        return g.map("exp", g.scale(g.real(x), math.log(2)))
    return g.scale(g.map("log", x), 1 / math.log(int(name[3:])))


@rule("tan")
def _tan(g, name, out, x):
    return g.binary("div", g.map("sin", x), g.map("cos", x))


@rule("sinh", "cosh")
def _sinh(g, name, out, x):
    x = g.real(x)
    if name == "sinh":  # exact near 0 too
        up = _expm1(g, name, out, x)
        return g.scale(g.binary("add", up, g.binary("div", up, g.binary("add", up, 1))), 0.5)
    return g.scale(g.binary("add", g.map("exp", x), g.map("exp", g.scale(x, -1))), 0.5)


@rule("asinh", "acosh", "atanh")
def _inverse_of_exps(g, name, out, x):
    x = g.real(x)
    if name == "atanh":
        up, down = (_log1p(g, name, out, one) for one in (x, g.scale(x, -1)))
        return g.scale(g.binary("sub", up, down), 0.5)
    root = g.map("sqrt", g.binary("add", g.binary("mul", x, x), 1 if name == "asinh" else -1))
    if name == "acosh":
        return g.map("log", g.binary("add", x, root))
    below = g.binary("less", x, 0)
    size = g.select(below, g.scale(x, -1), x)
    square = g.binary("div", g.binary("mul", x, x), g.binary("add", root, 1))
    made = _log1p(g, name, out, g.binary("add", size, square))
    return g.select(below, g.scale(made, -1), made)


def _polynomial(g, x, numbers):
    made = g.scale(x, numbers[0])
    for number in numbers[1:-1]:
        made = g.binary("mul", g.binary("add", made, number), x)
    return g.binary("add", made, numbers[-1])


ATAN = (0.0787249323, -0.138139594, 0.199705213, -0.333326696, 0.999999975)


@rule("atan")
def _atan(g, name, out, x):
    """Least squares of atan(x)/x in x*x up to tan(pi/8); what is larger comes there by the angles
    of 1/x and of (x-1)/(x+1). What is not chosen is kept where its slope is a number."""
    x = g.real(x)
    below = g.binary("less", x, 0)
    size = g.select(below, g.scale(x, -1), x)
    far = g.binary("less", 1, size)
    size = g.select(far, g.map("reciprocal", g.select(far, size, g.number(1))), size)
    half = g.binary("less", math.tan(math.pi / 8), size)
    size = g.select(half, g.binary("div", g.binary("sub", size, 1), g.binary("add", size, 1)), size)
    made = g.binary("mul", size, _polynomial(g, g.binary("mul", size, size), ATAN))
    made = g.select(half, g.binary("add", made, math.pi / 4), made)
    made = g.select(far, g.binary("sub", math.pi / 2, made), made)
    return g.select(below, g.scale(made, -1), made)


@rule("atan2")
def _atan2(g, name, out, y, x):
    """By the ratio that is at most 1."""
    y, x = (g.real(one) for one in (y, x))
    steep = g.binary("less", g.map("abs", x), g.map("abs", y))
    under = g.select(steep, y, x)
    nowhere = g.binary("equal", under, 0)
    made = _atan(g, name, out, g.binary("div", g.select(steep, x, y),
                                        g.select(nowhere, g.number(1), under)))
    made = g.select(nowhere, g.number(0), made)
    side = y if out is None else g.select(g.binary("equal", y, 0), g.map("reciprocal", g.stop(y)), y)
    down = g.binary("less", side, 0)  # of -0 too, but in an angle, whose 0 may come of a transform
    quarter, half = (g.select(down, g.number(-angle), g.number(angle))
                     for angle in (math.pi / 2, math.pi))
    flat = g.select(g.binary("less", x, 0), g.binary("add", made, half), made)
    return g.select(steep, g.binary("sub", quarter, made), flat)


@rule("asin", "acos")
def _asin(g, name, out, x):
    x = g.real(x)
    rest = g.map("sqrt", g.binary("mul", g.binary("sub", 1, x), g.binary("add", x, 1)))
    made = _atan2(g, name, out, *((x, rest) if name == "asin" else (rest, x)))
    return made


@rule("sinc")
def _sinc(g, name, out, x):
    x = g.scale(g.real(x), math.pi)
    is_zero = g.binary("equal", x, 0)
    x = g.select(is_zero, g.number(1), x)
    return g.select(is_zero, g.number(1), g.binary("div", g.map("sin", x), x))


@rule("hypot")
def _hypot(g, name, out, a, b):
    a, b = g.real(a), g.real(b)
    return g.map("sqrt", g.binary("add", g.binary("mul", a, a), g.binary("mul", b, b)))


@rule("erfc", "special_erfc")
def _erfc(g, name, out, x):
    return g.binary("sub", 1, g.map("erf", x))


ERFINV = (  # Giles (2010), in w - 2.5 and in sqrt(w) - 3 with w = -log(1 - x*x)
    (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
     -0.00417768164, 0.246640727, 1.50140941),
    (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
     0.00943887047, 1.00167406, 2.83297682))


@rule("erfinv", "special_erfinv")
def _erfinv(g, name, out, x):
    """A polynomial, and once more by Newton; its slope is sqrt(pi)/2 exp(y*y)."""
    x = g.real(x)
    still = g.stop(x)
    up, down = (_log1p(g, name, out, one) for one in (still, g.scale(still, -1)))
    w = g.scale(g.binary("add", up, down), -1)
    near = _polynomial(g, g.binary("sub", w, 2.5), ERFINV[0])
    far = _polynomial(g, g.binary("sub", g.map("sqrt", g.binary("max", w, 5)), 3), ERFINV[1])
    y = g.binary("mul", still, g.select(g.binary("less", w, 5), near, far))
    slope = g.scale(g.map("exp", g.binary("min", g.binary("mul", y, y), 80)), math.sqrt(math.pi) / 2)
    inside = g.binary("less", g.map("abs", still), 1)
    y = g.select(inside, y, g.binary("mul", still, math.inf))
    return g.binary("add", g.stop(y), g.binary("mul", g.stop(slope), g.binary("sub", x, still)))


@rule("hardsigmoid")
def _hardsigmoid(g, name, out, x):
    return g.binary("add", g.scale(_between_ends(g, g.real(x), "less-equal", -3, 3), 1 / 6), 0.5)


@rule("isnan", "isinf", "isfinite")
def _is_finite(g, name, out, x):
    x = g.real(x)
    if name == "isnan":
        return g.binary("not-equal", x, x, kind="bool")
    word = "equal" if name == "isinf" else "less"
    return g.binary(word, g.map("abs", x), math.inf, kind="bool")


@rule("logaddexp")
def _logaddexp(g, name, out, a, b):
    top = g.binary("max", a, b)
    apart = g.scale(g.map("abs", g.binary("sub", a, b)), -1)
    return g.binary("add", top, _log1p(g, name, out, g.map("exp", apart)))


@rule("cross", "linalg_cross")
def _cross(g, name, out, a, b, axis=-1, **names):
    axis = names.get("dim", axis)
    axis = out.shape.index(3) if axis is None else axis

    def turned(x, by):
        x = g.view(g.real(x), lambda t: t.expand(out.shape))
        return _roll(g, name, out, x, -by, [axis])
    return g.binary("sub", g.binary("mul", turned(a, 1), turned(b, 2)),
                    g.binary("mul", turned(a, 2), turned(b, 1)))


@rule("addcmul", "addcdiv")
def _addc(g, name, out, x, a, b, value=1):
    return g.binary("add", x, g.scale(g.binary("mul" if name == "addcmul" else "div", a, b), value))


@rule("lerp")
def _lerp(g, name, out, a, b, weight):
    return g.binary("add", a, g.binary("mul", g.binary("sub", b, a), weight))


@rule("_to_copy", "to", "_cast_Float", "type_as", "convert_element_type")
def _cast(g, name, out, x, *more, **names):
    kind = out.dtype
    if kind in (torch.float16, torch.bfloat16):
        refuse("floats of 16 bits: leave autocast and half() out; `job new --bits` chooses the "
               "precision of products")
    if kind == torch.bool:
        return _truth(g, x)
    if kind.is_floating_point:
        made = g.real(x)
        return Value(made.line, made.sizes, made.strides, made.offset)
    if x.kind == "u32" and kind in SMALL:
        return _small(g, x, out)
    if x.kind == "u32" and kind == torch.int32 and not _is_within(x.line.span or WORD, SIGNED):
        line = _spanned(x.line, *SIGNED)
        return Value(line, x.sizes, x.strides, x.offset, "u32")
    made = _truncated(g, x) if x.kind == "f32" and not x.integer else x
    return _wrapped(g, made, kind)


SMALL = {torch.uint8: (256, 0), torch.int8: (256, 128), torch.int16: (65536, 32768)}


def _wrapped(g, x, kind):
    """Integers of 8 and 16 bits come round."""
    if kind not in SMALL or x.kind == "bool":
        return x
    span, low = SMALL[kind]
    up = g.binary("add", x, low)
    turns = g.map("floor", g.scale(up, 1 / span))
    return g.binary("sub", x, g.scale(turns, span))


# -- shapes

@rule("cat", "concat")
def _cat(g, name, out, parts, axis=0):
    parts = [g.real(part) if part.kind == "constant" and out.dtype.is_floating_point else
             g.constant(part, "u32") if part.kind == "constant" else part for part in parts
             if math.prod(part.sizes)]
    made = g.join(parts, axis % len(out.shape))
    if axis % len(out.shape) == len(out.shape) - 1 and len(parts) == 2:
        made.line.turned = _turned(*parts)
    return made


def _turned(first, second):
    """Of (-second half, first half): the whole."""
    seen = first.line.operands[0].view if first.line.word == "neg" and first.sizes and \
        first.line.operands[0].word == "move" else None
    if seen is None or second.offset + second.sizes[-1] * second.strides[-1] != seen.offset or \
            second.line is not seen.line or second.sizes[-1] * 2 != second.strides[-2] and \
            second.sizes[-2] > 1 and second.strides[-1] != 1:
        return None
    kept = sorted((step, size) for step, size in zip(seen.strides, seen.sizes) if size > 1)
    if kept != sorted((step, size) for step, size in zip(second.strides, second.sizes) if size > 1):
        return None
    return Value(second.line, second.sizes[:-1] + (2 * second.sizes[-1],), second.strides,
                 second.offset)


@rule("stack")
def _stack(g, name, out, parts, axis=0):
    axis %= out.dim()
    parts = [g.real(part) if part.kind == "constant" else part for part in parts]
    return g.join([g.view(part, lambda t: t.unsqueeze(axis)) for part in parts], axis)


@rule("constant_pad_nd")
def _pad(g, name, out, x, pads, number=0):
    x, sizes = g.real(x), list(x.sizes)
    for i in range(len(pads) // 2):
        axis, (before, after) = len(sizes) - 1 - i, pads[2 * i:2 * i + 2]
        if before < 0 or after < 0:
            x = g.view(x, lambda t: t.narrow(axis, max(-before, 0), t.shape[axis] -
                                             max(-before, 0) - max(-after, 0)))
            before, after = max(before, 0), max(after, 0)
        sizes = list(x.sizes)
        sizes[axis] += before + after
        if before or after:
            x = g.place_at([x], [before], sizes, axis, g.fill(number))
    return x


@rule("select_scatter")
def _select_scatter(g, name, out, x, part, axis, index):
    axis %= len(out.shape)
    part = g.view(g.real(part), lambda t: t.unsqueeze(axis))
    return _slice_scatter(g, name, out, x, part, axis, index % out.shape[axis])


@rule("slice_scatter")
def _slice_scatter(g, name, out, x, part, axis=0, start=None, end=None, step=1):
    """x with a part of it another."""
    sizes, axis = list(out.shape), axis % len(out.shape)
    start = 0 if start is None else start + sizes[axis] if start < 0 else start
    part = g.real(part)
    if math.prod(part.sizes) == 0:
        return g.real(x)
    inner, outer = math.prod(sizes[axis + 1:]), math.prod(sizes[:axis])
    line = g.line("place", [g.dense(part), g.dense(g.real(x))],
                  padded([outer, part.sizes[axis], inner], MOVE_AXES, 1) +
                  padded([sizes[axis] * inner, step * inner, 1], MOVE_AXES, 0) + [start * inner], sizes)
    return Value(line, sizes)


@rule("diag")
def _diag(g, name, out, x, by=0):
    """Of a matrix its diagonal, of a row a matrix that has it."""
    if len(x.sizes) == 2:
        return g.view(x, lambda t: t.diagonal(by))
    column = g.view(g.real(x), lambda t: t.unsqueeze(1))
    made = g.binary("mul", column, Value(None, x.sizes * 2, kind="constant", tensor=torch.eye(x.sizes[0])))
    return _pad(g, name, out, made, [max(by, 0), max(-by, 0), max(-by, 0), max(by, 0)])


@rule("flip")
def _flip(g, name, out, x, axes):
    return g.flipped(x, [axis % len(x.sizes) for axis in axes] if x.sizes else [])


@rule("roll")
def _roll(g, name, out, x, shifts, dims=()):
    if not dims:
        x = _roll(g, name, out, g.view(x, lambda t: t.reshape(-1)), shifts, [0])
        return g.view(x, lambda t: t.reshape(out.shape))
    for shift, axis in zip(shifts if isinstance(shifts, (list, tuple)) else [shifts],
                           dims if isinstance(dims, (list, tuple)) else [dims]):
        cut = -shift % x.sizes[axis] if x.sizes else 0
        if cut:
            x = g.join([g.view(x, lambda t: t.narrow(axis, cut, t.shape[axis] - cut)),
                        g.view(x, lambda t: t.narrow(axis, 0, cut))], axis % len(x.sizes))
    return x


@rule("repeat")
def _repeat(g, name, out, x, times):
    x = g.real(x) if x.kind == "constant" else x
    lead = len(times) - len(x.sizes)
    sizes = [1] * lead + list(x.sizes)
    twice = [n for pair in zip(times, sizes) for n in pair]
    x = g.view(x, lambda t: t.reshape([n for size in sizes for n in (1, size)]).expand(twice))
    return Value(g.dense(x), out.shape, kind=x.kind)


@rule("embedding")
def _embedding(g, name, out, table, index, padding=-1, scaled=False, sparse=False):
    if scaled:
        refuse("scale_grad_by_freq: its gradient would be another; leave it out")
    if padding != -1:  # this row is read, and learns nothing
        rows = _embedding(g, name, out, table, index)
        still = Value(g.line("stop", [g.dense(rows)], [], out.shape), out.shape)
        other = g.binary("not-equal", index, padding, "bool")
        return g.select(g.view(other, lambda t: t.unsqueeze(-1)), rows, still)
    table, index = g.real(table), g.index(index)
    return g.gather(g.dense(table, table.sizes[-1]), index, out.shape)


@rule("index_select")
def _index_select(g, name, out, x, axis, index):
    x, index = g.real(x), g.index(index)
    axis %= len(x.sizes)
    order = [axis] + [i for i in range(len(x.sizes)) if i != axis]
    width = math.prod(x.sizes) // x.sizes[axis]
    table = g.dense(g.view(x, lambda t: t.permute(order)), width if len(x.sizes) == 2 else None)
    if table.shape[-1] != width:
        table = g.dense(Value(table, (x.sizes[axis], width)), width)
    made = Value(g.line("gather", [table, g.dense(index)], [], [index.sizes[0], width]),
                 [index.sizes[0]] + [x.sizes[i] for i in order[1:]])
    back = [order.index(i) for i in range(len(order))]
    return g.view(made, lambda t: t.permute(back))


def _is_mask(index):
    return index.kind == "bool" or index.kind == "constant" and index.tensor.dtype in (
        torch.bool, torch.uint8)


def _spots(x, indexes):
    """The axes that are indexed, and their indexes; a constant mask is the places where it is true."""
    made = []
    for index in indexes:
        if index is None or not _is_mask(index):
            made.append(index)
        elif index.kind != "constant":
            refuse("a mask that is computed: how many rows it leaves would depend on numbers; multiply "
                   "by the mask, or use torch.where")
        else:
            made += [Value(None, one.shape, kind="constant", tensor=one)
                     for one in index.tensor.nonzero(as_tuple=True)]
    axes = [axis for axis, index in enumerate(made) if index is not None]
    return axes, [_natural(made[axis], x.sizes[axis]) for axis in axes]


def _natural(index, size):
    """An index that is a constant and counts from the end counts from the start."""
    if index.kind != "constant":
        return index
    tensor = index.tensor.long()
    return Value(None, tensor.shape, kind="constant",
                 tensor=torch.where(tensor < 0, tensor + size, tensor))


def _is_unsigned(index):
    return index.kind == "u32" and (index.line.span or WORD)[0] >= 0


def _linear(g, indexes, sizes):
    """Of an index for each of these axes: the index of all, as if they were one."""
    if len(indexes) == 1 and (indexes[0].kind == "constant" or _is_unsigned(indexes[0])):
        return indexes[0]
    if math.prod(sizes) > EXACT:
        refuse("an index into %d places that is computed: at most 2^24" % math.prod(sizes))
    constant, rest = 0, None
    for index, size, step in zip(indexes, sizes, dense_strides(sizes)):
        if index.kind == "constant":
            constant = constant + index.tensor * step
            continue
        one = g.real(index)
        if not _is_unsigned(index):  # it may count from the end
            one = g.select(g.binary("less", one, 0), g.binary("add", one, size), one)
        one = g.scale(one, step)
        rest = one if rest is None else g.binary("add", rest, one)
    if rest is None:
        return Value(None, constant.shape, kind="constant", tensor=constant)
    if isinstance(constant, torch.Tensor):
        rest = g.binary("add", rest, Value(None, constant.shape, kind="constant", tensor=constant))
    return g.index(rest)


def _rows_at(g, x, axes, indexes):
    """x with the indexed axes joined, first, as rows; and the index of the rows."""
    order = axes + [axis for axis in range(len(x.sizes)) if axis not in axes]
    sizes = [x.sizes[axis] for axis in axes]
    rest = [x.sizes[axis] for axis in order[len(axes):]]
    count, width = math.prod(sizes), math.prod(rest)
    moved = g.view(x, lambda t: t.permute(order))
    table = g.dense(Value(g.dense(moved), (count, width), kind=x.kind), width)
    return table, _linear(g, indexes, sizes), rest, order


@rule("index")
def _index(g, name, out, x, indexes):
    x = g.real(x) if x.kind in ("constant", "u32", "bool") else x
    axes, indexes = _spots(x, indexes)
    if len(axes) == 2 and _each_row(indexes, x.sizes[axes[0]]) and len(x.sizes) == 2:
        line, _ = g.rows(x, 1)
        return Value(g.line("gather-elements", [line, g.dense(g.index(indexes[1]))], [], out.shape),
                     out.shape)
    table, index, rest, _ = _rows_at(g, x, axes, indexes)
    shape = torch.broadcast_shapes(*(one.sizes for one in indexes))
    index = g.index(index)
    index = g.view(index, lambda t: t.expand(shape))
    made = g.gather(table, index, list(shape) + rest)
    if axes != list(range(axes[0], axes[0] + len(axes))) or axes[0] == 0:
        return made
    lead, wide = axes[0], len(shape)  # what is indexed side by side stays in its place
    back = list(range(wide, wide + lead)) + list(range(wide)) + list(range(wide + lead,
                                                                          wide + len(rest)))
    return g.view(made, lambda t: t.permute(back))


def _each_row(indexes, rows):
    """Is the first index 0, 1, 2 ... of all rows?"""
    one = indexes[0]
    return one.kind == "constant" and indexes[1].kind == "u32" and one.sizes == (rows,) == \
        indexes[1].sizes and torch.equal(one.tensor, torch.arange(rows))


@rule("index_put")
def _index_put(g, name, out, x, indexes, value, accumulate=False):
    mask = indexes[0]
    if len(indexes) == 1 and mask.sizes == x.sizes and math.prod(value.sizes) == 1 and \
            _is_mask(mask) and not accumulate:
        return g.select(g.real(mask), g.view(g.real(value), lambda t: t.reshape([])), g.real(x))
    x = g.real(x)
    axes, indexes = _spots(x, indexes)
    if any(0 in one.sizes for one in indexes + [value]):
        return x
    table, index, rest, order = _rows_at(g, x, axes, indexes)
    shape = torch.broadcast_shapes(*(one.sizes for one in indexes))
    front = axes != list(range(axes[0], axes[0] + len(axes)))
    lead = 0 if front else axes[0]  # the axes of the value that stand before those of the index
    wide = rest[:lead] + list(shape) + rest[lead:]
    value = g.view(g.real(value), lambda t: t.expand(wide))
    value = g.view(value, lambda t: t.permute(
        list(range(lead, lead + len(shape))) + list(range(lead)) +
        list(range(lead + len(shape), len(wide)))))
    count, width = table.shape[0] if len(table.shape) == 2 else table.count // table.shape[-1], \
        math.prod(rest)
    places = math.prod(shape)
    rows = Value(g.dense(value), (places, width))
    base = Value(table, (count, width))
    index = index if index.kind != "constant" else _natural(index, count)
    index = g.view(g.real(index), lambda t: t.expand(shape))
    index = Value(g.dense(index), (places,))
    made = _sent(g, base, index, rows, accumulate)
    made = Value(g.dense(made), [x.sizes[axis] for axis in order])
    back = [order.index(i) for i in range(len(order))]
    return g.view(made, lambda t: t.permute(back))


@rule("index_copy", "index_fill")
def _index_copy(g, name, out, x, axis, index, value):
    value = value if isinstance(value, Value) else g.number(_held(value, out))
    return _index_put(g, name, out, x, [None] * (axis % max(len(x.sizes), 1)) + [index], value)


@rule("put")
def _put(g, name, out, x, index, value, accumulate=False):
    x, index, value = (g.view(one, lambda t: t.reshape(-1)) if one.kind != "constant" else
                       Value(None, (one.tensor.numel(),), kind="constant", tensor=one.tensor.reshape(-1))
                       for one in (x, index, value))
    made = _index_put(g, name, out, x, [index], value, accumulate)
    return g.view(made, lambda t: t.reshape(out.shape))


@rule("masked_select")
def _masked_select(g, name, out, x, mask):
    if mask.kind != "constant":
        return _spots(x, [mask])
    wide = torch.broadcast_shapes(x.sizes, mask.sizes)
    x = g.view(g.real(x), lambda t: t.expand(wide))
    return _index(g, name, out, x, [Value(None, wide, kind="constant", tensor=mask.tensor.expand(wide))])


def _sent(g, base, index, rows, adds):
    """Rows sent to the places of an index, added there, or over what is there: the last one stays."""
    count, width = base.sizes
    places = index.sizes[0]
    index = g.index(index)
    if adds:
        return g.binary("add", base, _summed(g, index, rows, count))
    order = Value(None, (1, places), kind="constant", tensor=torch.arange(places).reshape(1, -1))
    last = g.line("scatter-last", [g.dense(Value(g.dense(index), (1, places), kind="u32")),
                                   g.dense(g.words(order)), g.fill_rows(places, (1, count))], [],
                  (1, count), "u32")
    last.span = 0, places
    last = Value(last, (count,), kind="u32")
    given = g.told(g.integers("less", last, places))
    taken = g.line("gather", [g.dense(rows, width), g.dense(g.select(given, last, g.words(0)))], [],
                   [count, width])
    return g.select(g.view(given, lambda t: t.reshape(count, 1)), Value(taken, (count, width)), base)


ONE_HOT_MOST = 2 ** 24  # elements of what an index is compared with
HIDDEN = -1e30  # what an additive mask of -inf becomes


def _counted(g, count):
    return g.constant(Value(None, (count,), kind="constant",
                            tensor=torch.arange(count).float()), "f32")


def _hot(g, index, count, axis):
    """1 where a place along a new axis is the index."""
    index = g.real(index)
    if math.prod(index.sizes) * count > ONE_HOT_MOST:
        refuse("an index that is computed, of %d places in %d" % (math.prod(index.sizes), count))
    axis %= len(index.sizes) + 1
    wide = g.view(index, lambda t: t.unsqueeze(axis))
    places = g.view(_counted(g, count),
                    lambda t: t.view([-1] + [1] * (len(index.sizes) - axis)))
    return g.binary("equal", wide, places, kind="bool")


@rule("gather")
def _gather(g, name, out, x, axis, index, sparse_grad=False):
    if not x.sizes:
        return g.view(g.real(x), lambda t: t.expand(out.shape))
    axis %= len(x.sizes)
    x = _cut(g, x if x.kind == "u32" else g.real(x), index.sizes, axis)
    if index.kind != "constant" and not _repeats(index) and (index.sizes[axis] > 1 or
                                                             x.kind == "u32"):
        return _taken_along(g, x, axis, index)
    x = g.real(x)
    if index.sizes[axis] == 1:
        line, _ = g.rows(x, axis)
        places = g.dense(g.behind(g.index(index), [axis])[0])
        kept = [n for i, n in enumerate(x.sizes) if i != axis]
        return Value(g.line("gather-elements", [line, places], [], kept), index.sizes)
    return _taken(g, x, axis, index)


def _rows_of(g, x, axis):
    """With the axis last and dense: the line, and how a result of these sizes is seen again."""
    moved, order = g.behind(x, [axis])
    back = [order.index(i) for i in range(len(order))]

    def again(line, kind):
        made = Value(line, [moved.sizes[i] for i in range(len(order) - 1)] + [line.shape[-1]],
                     kind=kind)
        return g.view(made, lambda t: t.permute(back))
    return g.dense(moved, x.sizes[axis]), again


def _taken_along(g, x, axis, index):
    line, _ = _rows_of(g, x, axis)
    places, again = _rows_of(g, g.index(index), axis)
    return again(g.line("take", [line, places], [], places.shape, x.kind if x.kind == "u32" else
                        "f32"), "u32" if x.kind == "u32" else "f32")


def _cut(g, x, sizes, axis):
    """Along the other axes, the part that an index speaks of."""
    for i, size in enumerate(sizes):
        if i != axis and size != x.sizes[i]:
            x = g.view(x, lambda t: t.narrow(i, 0, size))
    return x


def _repeats(index):
    """How many of the last axes an index repeats itself along."""
    if index.kind == "constant":
        steps = index.tensor.stride()
    else:
        view = index.line.view
        steps = index.strides
        if view is not None and min(view.strides, default=0) >= 0 and index.offset == 0 and \
                steps == dense_strides(index.sizes):
            base = torch.empty(view.line.count, device="meta").as_strided(view.sizes, view.strides,
                                                                          view.offset)
            try:
                steps = base.view(index.sizes).stride()
            except RuntimeError:
                pass
    count = 0
    for size, step in zip(reversed(index.sizes), reversed(steps)):
        if size > 1 and step != 0:
            break
        count += 1
    return count


def _taken(g, x, axis, index):
    """Several elements a row; where the index repeats itself along the last axes, whole rows."""
    whole = min(_repeats(index), len(x.sizes) - 1 - axis)
    kept = len(x.sizes) - whole
    width = math.prod(x.sizes[kept:])
    if index.kind == "constant":
        one = index.tensor[(...,) + (0,) * whole]
        index = Value(None, one.shape, kind="constant", tensor=one.contiguous())
    else:
        for _ in range(whole):
            index = g.view(index, lambda t: t.select(-1, 0))
    places = []
    for i, size in enumerate(x.sizes[:kept]):
        at = torch.arange(size if i != axis else 1).view([-1] + [1] * (kept - 1 - i))
        places.append(index if i == axis else Value(None, at.shape, kind="constant", tensor=at))
    used = [i for i in range(kept) if i == axis or x.sizes[i] > 1]
    linear = g.index(_linear(g, [places[i] for i in used], [x.sizes[i] for i in used]))
    table = g.dense(Value(g.dense(x), (math.prod(x.sizes[:kept]), width)), width)
    shape = list(index.sizes) + list(x.sizes[kept:])
    linear = g.view(linear, lambda t: t.expand(index.sizes))
    return g.gather(table, linear, shape)


@rule("take")
def _take(g, name, out, x, index):
    flat = g.view(g.real(x), lambda t: t.reshape(-1))
    return _index(g, name, out, flat, [index])


@rule("scatter", "scatter_add")
def _scatter(g, name, out, x, axis, index, source, **names):
    """For each place along the axis, what the index sends there: added up, or the last one."""
    x = g.real(x)
    axis %= len(x.sizes)
    adds = name == "scatter_add" or names.get("reduce") in ("add", "sum")
    if names.get("reduce") not in (None, "add", "sum"):
        refuse("a scatter that reduces by '%s'" % names["reduce"])
    part = _cut(g, x, index.sizes, axis)
    if isinstance(source, Value):
        source = g.real(source)
        source = _cut(g, source, index.sizes, -1) if len(source.sizes) else source
    else:
        source = g.number(_held(source, out))
    source = g.view(source, lambda t: t.expand(index.sizes))
    places, _ = _rows_of(g, g.index(index), axis)
    base, again = _rows_of(g, part, axis)
    made = again(g.line("scatter-add" if adds else "scatter-last",
                        [places, _rows_of(g, source, axis)[0], base], [], base.shape), "f32")
    return made if made.sizes == x.sizes else g.over(x, made)


@rule("index_add")
def _index_add(g, name, out, x, axis, index, source, alpha=1):
    """Rows that are summed by their index: as exact as the job's products."""
    x, source = g.real(x), g.scale(g.real(source), alpha)
    axis %= len(x.sizes)
    moved, order = g.behind(source, [i for i in range(len(x.sizes)) if i != axis])
    width = math.prod(x.sizes) // x.sizes[axis]
    made = _summed(g, g.index(index), Value(g.dense(moved), (source.sizes[axis], width)),
                   x.sizes[axis])
    sizes = [x.sizes[i] for i in order]
    back = [order.index(i) for i in range(len(order))]
    return g.binary("add", x, g.view(Value(made.line, sizes), lambda t: t.permute(back)))


def _summed(g, index, rows, count):
    """Row v: the sum of the rows whose index is v."""
    width = rows.sizes[1]
    return Value(g.line("sum-by-index", [g.dense(index), g.dense(rows, width)], [],
                        [count, width]), (count, width))


@rule("cumsum", "cumprod", "logcumsumexp")
def _scan(g, name, out, x, axis, dtype=None, **names):
    """By doubling: each element takes in what lies 1, 2, 4 ... places before it."""
    x = g.real(x)
    if not x.sizes:
        return x
    axis %= len(x.sizes)
    word, neutral = {"cumsum": ("add", 0), "cumprod": ("mul", 1),
                     "logcumsumexp": (None, HIDDEN)}[name]
    step = 1
    while step < x.sizes[axis]:
        before = g.view(x, lambda t: t.narrow(axis, 0, t.shape[axis] - step))
        moved = g.place_at([before], [step], list(x.sizes), axis, g.fill(neutral))
        x = g.binary(word, x, moved) if word else _logaddexp(g, name, out, x, moved)
        step *= 2
    return x


@rule("prod", "prod.dim_int")
def _product_of(g, name, out, x, axis=None, keep=False, dtype=None):
    x = g.real(x)
    if axis is None:
        x, axis, keep = g.view(x, lambda t: t.reshape(-1)), 0, False
    axis %= max(len(x.sizes), 1)
    while x.sizes and x.sizes[axis] > 1:
        half, odd = divmod(x.sizes[axis], 2)
        parts = [g.view(x, lambda t: t.narrow(axis, at, half)) for at in (0, half)]
        made = g.binary("mul", *parts)
        if odd:
            made = g.join([made, g.view(x, lambda t: t.narrow(axis, 2 * half, 1))], axis)
        x = made
    return g.view(x, lambda t: t.reshape(out.shape))


@rule("all", "any", "all.dim", "any.dim")
def _every(g, name, out, x, axis=None, keep=False):
    x = g.real(_truth(g, x))
    if axis is None:
        x, axis = g.view(x, lambda t: t.reshape(-1)), 0
    made = g.extreme("row-min" if name.startswith("all") else "row-max", x, axis, keep)
    return Value(made.line, made.sizes, made.strides, kind="bool")


@rule("searchsorted", "bucketize")
def _searchsorted(g, name, out, a, b, out_int32=False, right=False, side=None, sorter=None):
    """How many of what is sorted lie before."""
    table, x = (a, b) if name == "searchsorted" else (b, a)
    if sorter is not None:
        refuse("a sorter: sort first")
    x = g.real(x) if isinstance(x, Value) else g.number(x)
    table = g.real(table)
    if math.prod(x.sizes) * table.sizes[-1] > ONE_HOT_MOST:
        refuse("%d numbers among %d sorted ones" % (math.prod(x.sizes), table.sizes[-1]))
    x = g.view(x, lambda t: t.unsqueeze(-1))
    if len(table.sizes) > 1:
        table = g.view(table, lambda t: t.unsqueeze(-2))
    word = "less-equal" if right or side == "right" else "less"
    return g.sum(g.binary(word, table, x), [-1])


SORT_MOST = 4096  # of a row that is sorted


def _in_order(g, x, axis, descending):
    """Along an axis in order, and where each element comes from."""
    axis %= max(len(x.sizes), 1)
    if not x.sizes:
        x = g.view(x, lambda t: t.reshape(1))
    if x.sizes[axis] > SORT_MOST:
        refuse("a sort of rows of %d elements: at most %d; topk() takes longer ones" % (
            x.sizes[axis], SORT_MOST))
    line, again = _rows_of(g, x, axis)
    index = g.line("sort-index", [line], [int(descending)], line.shape, "u32")
    index.span = 0, x.sizes[axis] - 1
    return again(g.line("sort", [line], [int(descending)], line.shape), "f32"), \
        again(index, "u32")


def _flags(more, names, axis=-1):
    """The axis and the direction of a sort, with and without `stable`."""
    numbers = [one for one in more if not isinstance(one, bool) and one is not None]
    booleans = [one for one in more if isinstance(one, bool)]
    return names.get("dim", numbers[0] if numbers else axis), names.get(
        "descending", booleans[-1] if booleans else False)


@rule("sort", "argsort")
def _sort(g, name, out, x, *more, **names):
    found, index = (g.view(one, lambda t: t.reshape(x.sizes)) for one in _in_order(
        g, g.real(x), *_flags(more, names)))
    return index if name == "argsort" else (found, index)


@rule("topk")
def _topk(g, name, out, x, count, axis=-1, largest=True, in_order=True):
    """Of a row that is too long the best of each piece, and of these the best."""
    x = g.real(x)
    axis %= max(len(x.sizes), 1)
    if not x.sizes:
        return x, g.words(0)
    if x.sizes[axis] > SORT_MOST:
        found, index = _best_of_pieces(g, x, count, axis, largest)
        made, places = _topk(g, name, out, found, count, axis, largest)
        return made, _taken_along(g, index, axis, places)
    return [g.view(one, lambda t: t.narrow(axis, 0, count)) for one in _in_order(g, x, axis,
                                                                                largest)]


def _best_of_pieces(g, x, count, axis, largest):
    pieces = [(at, min(SORT_MOST, x.sizes[axis] - at)) for at in range(0, x.sizes[axis], SORT_MOST)]
    if len(pieces) * count >= x.sizes[axis]:
        refuse("the best %d of rows of %d" % (count, x.sizes[axis]))
    best = []
    for at, size in pieces:
        part = g.view(x, lambda t: t.narrow(axis, at, size))
        found, index = _topk(g, "topk", None, part, min(count, size), axis, largest)
        best.append((found, g.integers("add", index, at, (at, at + size - 1))))
    return [g.join([one[i] for one in best], axis) for i in (0, 1)]


@rule("kthvalue", "median.dim", "nanmedian.dim")
def _kth(g, name, out, x, *more, **names):
    """The lower one of two in the middle."""
    x = g.real(x)
    place = more[0] - 1 if name == "kthvalue" else None
    more = more[1:] if name == "kthvalue" else more
    axis = (more[0] if more else names.get("dim", -1)) % max(len(x.sizes), 1)
    keep = more[1] if len(more) > 1 else names.get("keepdim", False)
    if not x.sizes:
        return x, g.words(0)
    place = (x.sizes[axis] - 1) // 2 if place is None else place
    return [g.view(one, lambda t: t.narrow(axis, place, 1) if keep else t.select(axis, place))
            for one in _in_order(g, x, axis, False)]


@rule("median")
def _median(g, name, out, x):
    return _kth(g, "median.dim", out, g.view(g.real(x), lambda t: t.reshape(-1)), 0)[0]


# -- complex numbers: each is two values

class Pair:
    """A complex value: its real and its imaginary part."""

    kind, integer = "complex", False

    def __init__(self, re, im):
        self.re, self.im, self.stopped = re, im, False

    @property
    def sizes(self):
        return self.re.sizes

    @property
    def line(self):
        return self.re.line


FOURIER = {"_fft_r2c", "_fft_c2c", "_fft_c2r"}
MADE_COMPLEX = FOURIER | {"complex", "polar", "view_as_complex"}
ALIKE_OF_BOTH = {"add", "sub", "rsub", "neg", "sum", "mean", "cat", "stack", "index", "index_select", "flip",
                 "roll", "repeat", "constant_pad_nd", "copy", "gather", "where", "slice_scatter",
                 "select_scatter", "zeros_like", "cumsum", "index_add", "embedding", "masked_fill", "fill"}
PRODUCTS = {"mul", "mm", "bmm", "mv", "dot"}
FOURIER_MOST = 1024  # its matrices are constants of the graph


def _parts(g, x):
    """The two parts of what may be a constant, a number or real."""
    if isinstance(x, Pair):
        return x
    if isinstance(x, complex):
        return Pair(g.number(x.real), g.number(x.imag))
    if isinstance(x, Value) and x.kind == "constant" and x.tensor.is_complex():
        whole = x.tensor.resolve_conj()
        return Pair(*(Value(None, x.sizes, kind="constant", tensor=one.contiguous())
                      for one in (whole.real, whole.imag)))
    x = g.real(x)
    return Pair(x, g.number(0, x.sizes))


def _is_complex(x):
    return isinstance(x, (Pair, complex)) or (
        isinstance(x, Value) and x.kind == "constant" and x.tensor.is_complex())


def _square(g, x):
    return g.binary("add", g.binary("mul", x.re, x.re), g.binary("mul", x.im, x.im))


def _times(g, times, a, b):
    """The product times(a, b), of numbers or of matrices, of complex ones."""
    if not _is_complex(a):
        return Pair(times(a, _parts(g, b).re), times(a, _parts(g, b).im))
    if not _is_complex(b):
        return Pair(times(_parts(g, a).re, b), times(_parts(g, a).im, b))
    a, b = _parts(g, a), _parts(g, b)
    return Pair(g.binary("sub", times(a.re, b.re), times(a.im, b.im)),
                g.binary("add", times(a.re, b.im), times(a.im, b.re)))


def _turned_by(g, x, angle):
    return Pair(g.binary("mul", x, g.map("cos", angle)), g.binary("mul", x, g.map("sin", angle)))


def _complexly(g, name, out, operands, both, times):
    """What a call makes of complex numbers. both(i): what the call makes of the parts number i of
    its operands; times(a, b): of two that are real."""
    x = operands[0]
    if name in FOURIER:
        return _fourier(g, name, out, *operands)
    if name == "complex":
        return Pair(*(g.real(one) for one in operands[:2]))
    if name == "view_as_complex":
        x = g.real(x)
        return Pair(*(g.view(x, lambda t, i=i: t.select(-1, i)) for i in (0, 1)))
    if name == "polar":
        return _turned_by(g, g.real(x), g.real(operands[1]))
    if name in PRODUCTS:
        return _times(g, times, *(_parts(g, one) if isinstance(one, complex) else one
                                  for one in operands[:2]))
    if name in VIEWS | SAME | ALIKE_OF_BOTH and name != "view_as_real":
        return Pair(both(0), both(1))
    if name == "div" and not _is_complex(operands[1]):
        return Pair(*(g.binary("div", one, g.real(operands[1])) for one in (x.re, x.im)))
    x = _parts(g, x)

    def multiplied(a, b):
        return g.binary("mul", a, b)
    if name == "view_as_real":
        last = len(x.sizes)
        return g.join([g.view(one, lambda t: t.unsqueeze(-1)) for one in (x.re, x.im)], last)
    if name in ("_conj", "conj_physical", "_conj_physical"):
        return Pair(x.re, g.map("neg", x.im))
    if name == "abs":
        return _root(g, _square(g, x))
    if name == "angle":
        return _atan2(g, "atan2", None, x.im, x.re)
    if name == "exp":
        return _turned_by(g, g.map("exp", x.re), x.im)
    if name == "pow" and operands[1] == 2:
        return _times(g, multiplied, x, x)
    if name == "div":
        other = _parts(g, operands[1])
        made = _times(g, multiplied, x, Pair(other.re, g.map("neg", other.im)))
        square = _square(g, other)
        return Pair(*(g.binary("div", one, square) for one in (made.re, made.im)))
    refuse("complex numbers have no line for it: write it with .real and .imag")


def _waves(g, size, count, rows):
    """cos and sin of 2 pi j k / size, j < rows, k < count."""
    key = "waves", size, count, rows
    if key not in g.tables:
        turns = torch.arange(rows)[:, None] * torch.arange(count)[None] % size
        turns = turns.double() * (2 * math.pi / size)
        g.tables[key] = turns.cos().float(), turns.sin().float()
    return g.tables[key]


def _turned_along(g, x, axis, sign):
    cos, sin = _waves(g, x.sizes[axis], x.sizes[axis], x.sizes[axis])
    re, im = (_along(g, one, axis, cos) for one in (x.re, x.im))
    other = [g.scale(_along(g, one, axis, sin), sign) for one in (x.im, x.re)]
    return Pair(g.binary("sub", re, other[0]), g.binary("add", im, other[1]))


def _fourier(g, name, out, x, axes, norm, last):
    """By products with the matrices of sines and cosines, one axis after the other."""
    axes = [axis % len(x.sizes) for axis in axes]
    sizes = out.shape if name == "_fft_c2r" else x.sizes
    if any(sizes[axis] > FOURIER_MOST for axis in axes):
        refuse("a Fourier transform over %d: at most %d, as a product with a matrix" % (
            max(sizes[axis] for axis in axes), FOURIER_MOST))
    sign = 1 if name == "_fft_c2r" or (name == "_fft_c2c" and not last) else -1
    end = axes[-1]
    if name == "_fft_r2c":
        x = g.real(x)
        cos, sin = _waves(g, sizes[end], out.shape[end], sizes[end])
        x = Pair(_along(g, x, end, cos), g.scale(_along(g, x, end, sin), -1))
    x = _parts(g, x)
    for axis in axes if name == "_fft_c2c" else axes[:-1]:
        x = _turned_along(g, x, axis, sign)
    scale = math.prod(sizes[axis] for axis in axes) ** {0: 0, 1: -0.5, 2: -1}[norm]
    if name == "_fft_c2r":
        size, rows = sizes[end], x.sizes[end]
        cos, sin = _waves(g, size, size, rows)
        twice = torch.full((rows, 1), 2.0)  # each stands for another one, that is not shown
        twice[0] = 1
        if size % 2 == 0 and rows == size // 2 + 1:
            twice[-1] = 1
        x = g.binary("sub", _along(g, x.re, end, cos * twice), _along(g, x.im, end, sin * twice))
        return x if scale == 1 else g.scale(x, scale)
    return x if scale == 1 else Pair(g.scale(x.re, scale), g.scale(x.im, scale))


# -- sums, norms, losses

SUMS = {"sum", "cumsum", "prod", "cumprod"}


@rule("sum")
def _sum(g, name, out, x, axes=None, keep=False, dtype=None, **names):
    return g.sum(x, axes, keep)


@rule("mean")
def _mean(g, name, out, x, axes=None, keep=False, dtype=None):
    return g.mean(x, axes, keep)


@rule("var", "std", "var_mean")
def _var(g, name, out, x, axes=None, unbiased=True, keep=False, **names):
    if isinstance(axes, bool):
        axes, unbiased = None, axes
    keep = names.get("keepdim", keep)
    less = names["correction"] if names.get("correction") is not None else int(
        unbiased if unbiased is not None else True)
    mean = g.mean(x, axes, True)
    rest = g.binary("sub", x, mean)
    square = g.sum(g.binary("mul", rest, rest), axes, keep)
    count = math.prod(x.sizes) // max(math.prod(square.sizes), 1)
    if count <= less:
        refuse("the spread of %d number, which is none" % count)
    made = g.scale(square, 1 / (count - less))
    if name == "var_mean":
        return made, mean if keep else g.mean(x, axes, False)
    return _root(g, made) if name == "std" else made


@rule("linalg_vector_norm", "norm")
def _norm(g, name, out, x, order=2, axes=None, keep=False, **names):
    if order == 1:
        return g.sum(g.map("abs", x), axes, keep)
    if order == math.inf:
        return _amax(g, "amax", out, g.map("abs", x), axes or (), keep)
    if order != 2 and order is not None:
        refuse("a norm of order %s" % order)
    x = g.real(x)
    return _root(g, g.sum(g.binary("mul", x, x), axes, keep))


@rule("amax", "amin")
def _amax(g, name, out, x, axes=(), keep=False):
    for axis in sorted((axis % len(x.sizes) for axis in axes or range(len(x.sizes))), reverse=True):
        x = g.extreme("row-" + name[1:], x, axis, keep)
    return x


@rule("max.dim", "min.dim")
def _max(g, name, out, x, axis, keep=False):
    x = g.real(x)
    made = g.extreme("row-" + name[:3], x, axis, keep)
    order = x if name == "max" else g.scale(x, -1)
    return made, g.extreme("row-max-index", order, axis, keep, "u32")


@rule("max", "min")
def _max_all(g, name, out, x):
    return g.extreme("row-" + name, g.view(g.real(x), lambda t: t.reshape(-1)), 0, False)


@rule("argmax", "argmin")
def _argmax(g, name, out, x, axis=None, keep=False):
    x = g.real(x)
    if axis is None:
        x, axis = g.view(x, lambda t: t.reshape(-1)), 0
    if name == "argmin":
        x = g.scale(x, -1)
    return g.extreme("row-max-index", x, axis, keep, "u32")


@rule("native_layer_norm")
def _layer_norm(g, name, out, x, shape, weight, bias, epsilon):
    width = math.prod(shape)
    x = g.real(x)
    flat = Value(g.dense(x, width if len(shape) == 1 else None), x.sizes)
    line = flat.line if flat.line.shape[-1] == width else g.dense(
        Value(flat.line, (math.prod(x.sizes) // width, width)), width)

    def vector(value, number):
        if value is None:
            return g.line("fill", [], [bits(number)], [width])
        return g.dense(g.real(value))
    made = g.line("layer-norm", [line, vector(weight, 1), vector(bias, 0)], [bits(epsilon)],
                  line.shape)
    axes = list(range(len(x.sizes) - len(shape), len(x.sizes)))
    mean, rstd = _spread_of(g, flat, axes, epsilon, True)
    return Value(made, x.sizes), mean, rstd


def _spread_of(g, x, axes, epsilon, keep):
    """The mean, and 1 over the root of the variance: what derivatives of derivatives read."""
    mean = g.mean(x, axes, True)
    rest = g.binary("sub", x, mean)
    rstd = g.map("rsqrt", g.binary("add", g.mean(g.binary("mul", rest, rest), axes, True), epsilon))
    return (mean, rstd) if keep else tuple(g.view(one, lambda t: t.reshape(
        [n for i, n in enumerate(x.sizes) if i not in axes])) for one in (mean, rstd))


@rule("native_group_norm")
def _group_norm(g, name, out, x, weight, bias, n, channels, inner, groups, epsilon):
    width = channels // groups * inner
    flat = Value(g.dense(g.real(x)), (n * groups, width))
    made, mean, rstd = _layer_norm(g, name, out, flat, [width], None, None, epsilon)
    mean, rstd = (g.view(one, lambda t: t.reshape(n, groups)) for one in (mean, rstd))
    return _affine(g, Value(made.line, x.sizes), weight, bias), mean, rstd


def _affine(g, x, weight, bias):
    tail = [1] * (len(x.sizes) - 2)
    for word, one in (("mul", weight), ("add", bias)):
        if one is not None:
            one = g.real(one)
            x = g.binary(word, x, g.view(one, lambda t: t.view([-1] + tail)))
    return x


BATCH_NORMS = {"native_batch_norm", "cudnn_batch_norm", "_native_batch_norm_legit",
               "_native_batch_norm_legit_no_training"}


def _training(name, args):
    """Of the arguments of a batch norm: does it take the batch's own statistics?"""
    return not name.endswith("no_training") and bool(args[5])


@rule(*BATCH_NORMS)
def _batch_norm(g, name, out, x, weight, bias, mean, var, *more):
    x, epsilon = g.real(x), more[-1]
    if not _training(name, (x, weight, bias, mean, var) + more):
        if mean.kind == var.kind == "constant":
            scale = (var.tensor.double() + epsilon).rsqrt()
            shift = -mean.tensor.double() * scale
            made = _affine(g, x, *(Value(None, t.shape, kind="constant", tensor=t.float())
                                   for t in (scale, shift)))
        else:
            rstd = g.map("rsqrt", g.binary("add", g.real(var), epsilon))
            made = _affine(g, x, rstd, g.map("neg", g.binary("mul", g.real(mean), rstd)))
        return _affine(g, made, weight, bias), None, None
    tail = [1] * (len(x.sizes) - 2)
    mean = _channel_mean(g, x)
    centred = g.binary("sub", x, g.view(mean, lambda t: t.view([-1] + tail)))
    var = _channel_mean(g, g.binary("mul", centred, centred))
    rstd = g.map("rsqrt", g.binary("add", var, epsilon))
    made = _affine(g, _affine(g, centred, rstd, None), weight, bias)
    made.statistics = mean, var, math.prod(x.sizes) // x.sizes[1]
    return made, mean, rstd


def _channel_mean(g, x):
    """Over all axes but the second, exactly, at any bits of the job."""
    x, channels = g.whole(x), x.sizes[1]
    count = math.prod(x.sizes) // channels
    inner = x.strides[1] if channels > 1 else count
    line = g.line("channel-sum", [x.line], [inner, channels], [channels])
    return g.scale(Value(line, [channels]), 1 / count)


def _running(g, old, new, momentum):
    """The next value of a running statistic."""
    return g.binary("add", g.scale(g.real(old), 1 - momentum), g.scale(new, momentum))


def _causal(g, value):
    """Of scores that are hidden above the diagonal: the scores, and how many rows."""
    hidden = value.line.hidden if value.line is not None else None
    if hidden is None or value.offset or value.strides != dense_strides(value.sizes):
        return None
    x, mask = hidden
    size = value.sizes[-1]
    later = torch.ones(size, size, dtype=torch.bool).triu(1)
    if len(value.sizes) < 2 or value.sizes[-2] != size or mask.dim() < 2 or \
            tuple(mask.shape[-2:]) != (size, size) or x.sizes != value.sizes or \
            not bool((mask == later).all()):
        return None
    return x, size


@rule("_softmax", "softmax")
def _softmax(g, name, out, x, axis, *more):
    x = g.real(x)
    causal = _causal(g, x) if axis % len(x.sizes) == len(x.sizes) - 1 else None
    line, again = g.rows(causal[0] if causal else x, axis)
    factor = bits(1)
    if line.word == "scale":
        factor, line = line.numbers[0], line.operands[0]
    if causal:
        line = _causal_product(g, line, causal[1])
    return again(g.line("softmax", [line], [factor, causal[1] if causal else 0],
                        causal[0].sizes if causal else line.shape))


def _causal_product(g, line, size):
    """Of a product that only a causal softmax reads, the half that it reads."""
    if line.word != "contract" or line.numbers[30] != 0 or line.shape[-1] != size or \
            [n for n in line.numbers[2:4] if n > 1][-1:] != [size] or \
            [n for n in line.numbers[14:16] if n > 1] != [size]:
        return line
    made = g.line("contract", line.operands, line.numbers[:30] + [size], line.shape)
    made.place = line.place
    return made


@rule("_log_softmax", "log_softmax")
def _log_softmax(g, name, out, x, axis, *more):
    line, again = g.rows(g.real(x), axis)
    whole = Value(line, line.shape)
    top = g.extreme("row-max", whole, -1, True)
    top = Value(g.line("stop", [top.line], [], top.sizes), top.sizes)
    rest = g.binary("sub", whole, top)
    total = g.map("log", g.sum(g.map("exp", rest), [-1], True))
    made = g.binary("sub", rest, total)
    made.line.logits = line
    return again(made.line)


@rule("nll_loss_forward", "nll_loss2d_forward", "nll_loss", "nll_loss2d")
def _nll(g, name, out, x, target, weight, reduction, ignored):
    axis = 0 if len(x.sizes) == 1 else 1
    columns, target = x.sizes[axis], g.index(target)
    moved, _ = g.behind(x, [axis])
    if x.line.logits is None or moved.strides[-1] != 1 or x.line.shape[-1] != columns:
        refuse("nll_loss of what log_softmax did not make along the same axis")
    logits = g.dense(Value(x.line.logits, moved.sizes, moved.strides, moved.offset), columns)
    targets = Value(g.dense(target), [math.prod(target.sizes)], kind="u32")
    place = IGNORED if ignored == -100 else ignored
    kept = g.binary("not-equal", g.real(targets), g.number(float(place)))
    if ignored != -100:
        targets = g.select(kept, targets, g.number(IGNORED, targets.sizes, "u32"))
    rows = Value(g.line("cross-entropy", [logits, g.dense(targets)], [], targets.sizes),
                 targets.sizes)
    if weight is not None:
        known = g.select(kept, targets, g.number(0, targets.sizes, "u32"))
        column = g.dense(g.view(g.real(weight), lambda t: t.unsqueeze(-1)), 1)
        each = g.line("gather", [column, g.dense(known)], [], list(targets.sizes) + [1])
        kept = g.binary("mul", kept, Value(each, targets.sizes))
        rows = g.binary("mul", rows, kept)
    if reduction == 0:
        return g.view(rows, lambda t: t.reshape(target.sizes)), None
    total = g.sum(rows, None)
    if reduction == 2:
        return total, None
    count = g.sum(kept, None)
    least = g.binary("max", count, 1) if weight is None else count
    return g.binary("mul", total, g.map("reciprocal", least)), count


def _reduced(g, value, reduction):
    return value if reduction == 0 else g.mean(value, None) if reduction == 1 else g.sum(value, None)


@rule("smooth_l1_loss", "huber_loss")
def _huber(g, name, out, a, b, reduction=1, beta=1.0):
    rest = g.map("abs", g.binary("sub", a, b))
    near = g.scale(g.binary("mul", rest, rest), 0.5 / (beta if name == "smooth_l1_loss" else 1))
    far = g.scale(g.binary("sub", rest, beta / 2), 1 if name == "smooth_l1_loss" else beta)
    return _reduced(g, g.select(g.binary("less", rest, beta), near, far), reduction)


@rule("mse_loss")
def _mse(g, name, out, a, b, reduction=1):
    return _reduced(g, g.binary("squared-error", a, b), reduction)


# -- products

@rule("mm", "bmm", "matmul", "mv", "dot")
def _product(g, name, out, a, b):
    if 0 in a.sizes:
        return g.number(0, out.shape)
    a, b = g.real(a), g.real(b)
    if name == "dot":
        a = g.view(a, lambda t: t.unsqueeze(0))
    if name in ("dot", "mv"):
        b = g.view(b, lambda t: t.unsqueeze(1))
    made = g.product(a, b)
    return Value(made.line, out.shape)


@rule("addmm", "baddbmm", "addmv")
def _addmm(g, name, out, bias, a, b, beta=1, alpha=1):
    made = g.scale(_product(g, {"addmm": "mm", "baddbmm": "bmm", "addmv": "mv"}[name], out, a, b),
                   alpha)
    return made if beta == 0 else g.binary("add", made, g.scale(g.real(bias), beta))


def _picture(x, channels, kernel, stride, pads, dilation):
    n, _, high, wide = x.sizes
    return [n, high, wide, channels, *kernel, *stride, pads[0], pads[1], pads[0], pads[1], *dilation]


def _two(numbers, default=None):
    numbers = list(numbers) if isinstance(numbers, (list, tuple)) else [numbers]
    numbers = numbers or [default]
    return numbers * 2 if len(numbers) == 1 else numbers


def _channels_last(g, x):
    return g.dense(g.view(x, lambda t: t.permute(0, 2, 3, 1)), x.sizes[1])


def _from_channels_last(g, line, shape):
    n, channels, high, wide = shape
    return g.view(Value(line, (n, high, wide, channels)), lambda t: t.permute(0, 3, 1, 2))


@rule("convolution", "_convolution", "mkldnn_convolution", "conv2d", "thnn_conv2d")
def _convolution(g, name, out, x, weight, bias, stride, pads, dilation, transposed=False,
                 out_pads=(0,), groups=1, *more):
    x, weight, shape = g.real(x), g.real(weight), list(out.shape)
    stride, pads, dilation, out_pads = list(stride), list(pads), list(dilation), list(out_pads)
    if len(x.sizes) == 3:  # of one axis: pictures one row high
        x, weight = (g.view(one, lambda t: t.unsqueeze(2)) for one in (x, weight))
        shape.insert(2, 1)
        stride, dilation, pads, out_pads = [1] + stride, [1] + dilation, [0] + pads, [0] + out_pads
    if len(x.sizes) != 4:
        refuse("a convolution over %d axes" % (len(x.sizes) - 2))
    stride, pads, dilation = _two(stride), _two(pads), _two(dilation)
    if transposed:
        x, weight, pads = _spaced(g, x, weight, stride, pads, dilation, _two(out_pads), groups)
        stride = [1, 1]
    made = _convolved(g, x, weight, stride, pads, dilation, groups, shape)
    made = Value(made.line, out.shape)
    return made if bias is None else _affine(g, made, None, bias)


def _spaced(g, x, weight, stride, pads, dilation, out_pads, groups):
    """A transposed convolution as a convolution: of the picture with zeros between its elements and
    around them, with the kernel turned."""
    n, channels, high, wide = x.sizes
    reach = [dilation[i] * (weight.sizes[2 + i] - 1) for i in range(2)]
    if any(reach[i] < pads[i] for i in range(2)):
        refuse("a transposed convolution that is padded beyond its kernel")
    before = [reach[i] - pads[i] for i in range(2)]
    sizes = [(size - 1) * step + 1 + 2 * pad + more for size, step, pad, more in
             zip((high, wide), stride, before, out_pads)]
    row, picture = sizes[1], sizes[0] * sizes[1]
    line = g.line("place", [g.dense(x), g.fill(0)],
                  padded([n * channels, high, wide], MOVE_AXES, 1) +
                  padded([picture, stride[0] * row, stride[1]], MOVE_AXES, 0) +
                  [before[0] * row + before[1]], [n, channels] + sizes)
    maps = weight.sizes[1]
    turned = g.flipped(weight, [2, 3])
    turned = g.view(turned, lambda t: t.view(groups, channels // groups, maps, *t.shape[2:])
                    .transpose(1, 2))
    turned = Value(g.dense(turned), [groups * maps, channels // groups] + list(weight.sizes[2:]))
    return Value(line, [n, channels] + sizes), turned, [0, 0]


def _convolved(g, x, weight, stride, pads, dilation, groups, shape):
    """One product for all groups: a group is a batch of columns and of maps."""
    n, maps, high, wide = shape
    channels, kernel = x.sizes[1], list(weight.sizes[2:])
    places, per, each = math.prod(kernel), channels // groups, maps // groups
    k, area = places * channels, high * wide
    columns = g.line("im2col", [_channels_last(g, x)],
                     _picture(x, channels, kernel, stride, pads, dilation), [n * area, k])
    weight = Value(g.dense(weight), (maps, per, places))
    batch = groups > 1

    def steps(pairs):
        """Strides of what is longer than 1, as contract() lays them out."""
        return padded([step for size, step in pairs if size > 1], 2, 0)
    return g.contract(
        (columns, [[(groups, per)], [(n, area * k), (area, k)], [(places, channels), (per, 1)]]),
        (weight.line, [[(groups, each * per * places)], [(each, per * places)],
                       [(places, 1), (per, places)]]),
        shape, steps([(groups, each * area)] if batch else []) +
        steps([(n, maps * area), (area, 1)]) + steps([(each, area)]))


@rule("convolution_backward")
def _convolution_backward(g, name, out, dy, x, weight, bias_sizes, stride, pads, dilation, transposed,
                          out_pads, groups, wanted):
    """For derivatives inside a program."""
    class Shape:
        def __init__(self, sizes):
            self.shape = tuple(sizes)

    dy, x, weight = g.real(dy), g.real(x), g.real(weight)
    stride, pads, dilation = (list(one) * (len(x.sizes) - 2 if len(one) == 1 else 1)
                              for one in (stride, pads, dilation))
    back = [have - ((size - 1) * step - 2 * pad + reach * (kernel - 1) + 1) for have, size, step, pad,
            reach, kernel in zip(x.sizes[2:], dy.sizes[2:], stride, pads, dilation, weight.sizes[2:])]
    made = [None, None, None]
    if wanted[0]:
        made[0] = _convolution(g, name, Shape(x.sizes), dy, weight, None, stride, pads, dilation,
                               not transposed, [0] * len(back) if transposed else back, groups)
    if wanted[1]:
        inner, outer = (dy, x) if transposed else (x, dy)
        parts = []
        for i in range(groups):
            a, b = (g.view(one, lambda t: t.narrow(1, i * (t.shape[1] // groups), t.shape[1] // groups)
                           .transpose(0, 1)) for one in (inner, outer))
            sizes = [a.sizes[0], b.sizes[0]] + [(n + 2 * p - s * (m - 1) - 1) // d + 1 for n, p, s, m, d in
                                                zip(a.sizes[2:], pads, stride, b.sizes[2:], dilation)]
            one = _convolution(g, name, Shape(sizes), a, b, None, dilation, pads, stride)
            for axis, size in enumerate(weight.sizes[2:]):
                one = g.view(one, lambda t: t.narrow(2 + axis, 0, size))
            parts.append(g.view(one, lambda t: t.transpose(0, 1)))
        made[1] = parts[0] if groups == 1 else g.join(parts, 0)
    if wanted[2]:
        made[2] = g.sum(dy, [axis for axis in range(len(dy.sizes)) if axis != 1])
    return made


@rule("avg_pool2d_backward")
def _mean_pool_backward(g, name, out, dy, x, kernel, stride, pads, ceil, count_pads, divisor):
    kernel, pads = _two(kernel), _two(pads)
    stride = _two(stride) if stride else kernel
    if ceil or divisor is not None or any(pads) and not count_pads or len(x.sizes) != 4:
        refuse("the derivative of such a mean pool")
    n, channels, high, wide = dy.sizes
    each = g.view(g.scale(g.real(dy), 1 / math.prod(kernel)), lambda t: t.unsqueeze(2).expand(
        n, channels, math.prod(kernel), high, wide))
    columns = Value(g.dense(each), (n, channels * math.prod(kernel), high * wide))
    return _fold(g, name, out, columns, x.sizes[2:], kernel, [1, 1], pads, stride)


@rule("max_pool2d_with_indices", "max_pool2d")
def _max_pool(g, name, out, x, kernel, stride=(), pads=0, dilation=1, ceil=False):
    x, shape = g.real(x), out[0].shape if isinstance(out, tuple) else out.shape
    return _pool(g, "max-pool", x, shape, _two(kernel), _two(stride, None) if stride else
                 _two(kernel), _two(pads), _two(dilation), []), None


@rule("avg_pool2d")
def _mean_pool(g, name, out, x, kernel, stride=(), pads=0, ceil=False, count_pads=True,
               divisor=None):
    if divisor is not None or ceil:
        steps = [_two(kernel), _two(stride) if stride else _two(kernel), _two(pads)]
        made = _separable(g, g.real(x), [len(x.sizes) - 2, len(x.sizes) - 1], lambda columns, which:
                          FUNCTIONAL.avg_pool2d(columns, *((one[which], skip) for one, skip in zip(
                              steps, (1, 1, 0))), ceil, count_pads, 1 if divisor else None))
        return g.scale(made, 1 / divisor) if divisor else made
    return _pool(g, "mean-pool", g.real(x), out.shape, _two(kernel), _two(stride) if stride else
                 _two(kernel), _two(pads), [1, 1], [int(count_pads)])


@rule("_adaptive_avg_pool2d", "adaptive_avg_pool2d")
def _adaptive(g, name, out, x, size):
    size, (high, wide), x = _two(size), x.sizes[-2:], g.real(x)
    if high % size[0] or wide % size[1]:
        return _separable(g, x, [len(x.sizes) - 2, len(x.sizes) - 1], lambda columns, which:
                          FUNCTIONAL.adaptive_avg_pool2d(columns, (size[which], 1)))
    return g.mean(_parted(g, x, size), [-3, -1])


def _parted(g, x, size):
    """A picture as so many parts, of one size."""
    high, wide = x.sizes[-2:]
    lead = list(x.sizes[:-2])
    return g.view(x, lambda t: t.reshape(lead + [size[0], high // size[0], size[1], wide // size[1]]))


@rule("adaptive_max_pool2d")
def _adaptive_max(g, name, out, x, size):
    size, (high, wide) = _two(size), x.sizes[-2:]
    if high % size[0] or wide % size[1]:
        refuse("adaptive_max_pool2d from %d x %d to %d x %d" % (high, wide, *size))
    made = _amax(g, "amax", out, _parted(g, g.real(x), size), [-3, -1])
    return made, None


def _pool(g, word, x, shape, kernel, stride, pads, dilation, more):
    lead = len(shape) == 3  # a picture alone
    if lead:
        x, shape = g.view(x, lambda t: t.unsqueeze(0)), (1,) + tuple(shape)
    n, channels, high, wide = shape
    picture = _picture(x, channels, kernel, stride, pads, dilation)
    for axis in range(2):  # with ceil_mode the last windows reach further
        span = dilation[axis] * (kernel[axis] - 1) + 1
        reach = (shape[2 + axis] - 1) * stride[axis] + span
        picture[10 + axis] = max(reach - x.sizes[2 + axis] - pads[axis], picture[10 + axis])
    line = g.line(word, [_channels_last(g, x)], picture + more, [n, high, wide, channels])
    if lead:
        return g.view(_from_channels_last(g, line, shape), lambda t: t.squeeze(0))
    return _from_channels_last(g, line, shape)


# ---- the recording ----------------------------------------------------------------------------------

IGNORED_NAMES = {"layout", "device", "pin_memory", "memory_format", "non_blocking", "implicit"}
FUNCTIONAL = torch.nn.functional
DROPOUTS = {FUNCTIONAL.dropout, torch.dropout, FUNCTIONAL.dropout1d, FUNCTIONAL.dropout2d,
            FUNCTIONAL.dropout3d} if hasattr(FUNCTIONAL, "dropout1d") else {FUNCTIONAL.dropout,
                                                                            torch.dropout}
STOPS = {torch.Tensor.detach, torch.detach, torch.Tensor.data.__get__}


PROMOTED = set(COMPARED) | {"clamp", "clamp_min", "clamp_max", "maximum", "minimum", "div", "floor_divide", "remainder",
                            "fmod", "pow", "where", "bitwise_and", "bitwise_or", "bitwise_xor"}


def _is_narrowed(args):
    """Does a wide integer of no axes take the type of a small one?"""
    whole = [one for one in _tensors(list(args)) if not one.is_floating_point() and one.dtype != torch.bool]
    return any(one.dtype in SMALL and one.dim() for one in whole) and any(
        one.dtype not in SMALL and not one.dim() for one in whole)


def _is_view(one, other):
    """Do both lie in one storage? Tensors without bytes too."""
    whole = [tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
             for tensor in (one, other)]
    return whole[0]._cdata == whole[1]._cdata


def _storage(tensor):
    """Where the memory begins that it lies in."""
    return tensor.data_ptr() - tensor.storage_offset() * tensor.element_size() if tensor.numel() else \
        (tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else
         tensor.storage()).data_ptr()


def _overlap(a, b):
    """Do two views of one memory share an element?"""
    if not a.numel() or not b.numel():
        return False
    (a_first, a_end), (b_first, b_end) = ((t.storage_offset(), t.storage_offset() + 1 + sum(
        step * (n - 1) for step, n in zip(t.stride(), t.shape))) for t in (a, b))
    if a_end <= b_first or b_end <= a_first:
        return False
    step = a.stride()[0] if a.dim() > 1 else 0
    if step and a.shape == b.shape and a.stride() == b.stride():  # columns of the same rows
        wide = a_end - a_first - step * (a.shape[0] - 1)
        a_at, b_at = a_first % step, b_first % step
        if max(a_at, b_at) + wide <= step and abs(a_at - b_at) >= wide:
            return False
    places = torch.zeros(max(a_end, b_end), dtype=torch.bool)
    places.as_strided(a.shape, a.stride(), a_first).fill_(True)
    return bool(places.as_strided(b.shape, b.stride(), b_first).any())


def _is_shifted(a, b):
    """Do two tensors share memory, each in an order of its own?"""
    return a is not b and _storage(a) == _storage(b) and _overlap(a, b) and (
        a.storage_offset(), a.shape, a.stride()) != (b.storage_offset(), b.shape, b.stride())


OURS = {}  # by the name of a file: is it this one, or one of torch?


def _users(frame):
    """The innermost frame of the user's program."""
    while frame is not None:
        name = frame.f_code.co_filename
        ours = OURS.get(name)
        if ours is None:
            path = os.path.abspath(name)
            ours = OURS[name] = path == HERE or path.startswith(TORCH) or name.startswith("<")
        if not ours:
            return frame
        frame = frame.f_back
    return None


def _reads_an_element(index):
    """Does the user's program read x[i] now?"""
    if index.dim() or index.is_floating_point() or index.dtype == torch.bool:
        return False
    frame = _users(sys._getframe(1))
    return frame is not None and dis.opname[frame.f_code.co_code[frame.f_lasti]] == "BINARY_SUBSCR"


def _tensors(tree):
    if isinstance(tree, torch.Tensor):
        yield tree
    elif isinstance(tree, (list, tuple)):
        for one in tree:
            yield from _tensors(one)


def _mapped(function, tree):
    if isinstance(tree, torch.Tensor):
        return function(tree)
    return type(tree)(_mapped(function, one) for one in tree) if type(tree) in (list, tuple) else tree


def _are_one_family(a, b):
    """Does autograd know that they share memory? It does not of what detach() and .data made."""
    return (a if a._base is None else a._base) is (b if b._base is None else b._base)


def _holds(whole, part):
    """Is the whole dense, and does the part view its memory alone?"""
    if not whole.is_contiguous() or whole.numel() == 0:
        return False
    start = part.storage_offset() - whole.storage_offset()
    end = start + sum(step * (n - 1) for step, n in zip(part.stride(), part.shape))
    return start >= 0 and end < whole.numel()


# -- random numbers, as the engine draws them (docs/ARITHMETIC.md)

EXACT = 2 ** 24          # what is computed of integers is a binary32
BELOW_ONE = 1 - 2.0 ** -24
MASK = 2 ** 32 - 1
EXAMPLE_SEED, DRAWS_FIRST = 1, 2 ** 31


def _halves(a, b):
    """The halves of a product of 32 bits each."""
    low = (a & 0xffff) * b
    high = (a >> 16) * b + (low >> 16)
    return high >> 16, ((high & 0xffff) << 16) | (low & 0xffff)


def _words(count, draw):
    """The first words of the draw with that number, in step 0 of the example."""
    blocks = torch.arange((count + 3) // 4, dtype=torch.int64)
    counter = [blocks & MASK, blocks >> 32, torch.full_like(blocks, DRAWS_FIRST + draw),
               torch.zeros_like(blocks)]
    key = [EXAMPLE_SEED, 0]
    for _ in range(10):
        high0, low0 = _halves(counter[0], 0xd2511f53)
        high2, low2 = _halves(counter[2], 0xcd9e8d57)
        counter = [high2 ^ counter[1] ^ key[0], low2, high0 ^ counter[3] ^ key[1], low0]
        key = [(key[0] + 0x9e3779b9) & MASK, (key[1] + 0xbb67ae85) & MASK]
    return torch.stack(counter, 1).reshape(-1)[:count]


def _unit(words):
    """From 0 to below 1."""
    return (words.float() * 2.0 ** -32).clamp(max=BELOW_ONE)


def _uniform(draw, sizes, dtype):
    number = _unit(_words(sizes.numel(), draw).reshape(sizes))
    return number.to(dtype) if dtype.is_floating_point else number


UNSET = {"empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided"}
SHAPED = UNSET | {"zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full"}
DRAWN = {"rand", "randn", "rand_like", "randn_like", "bernoulli", "uniform", "normal", "exponential",
         "randint", "randint_like", "random", "randperm", "multinomial"}


class _Numbers:
    """In place of a graph where only numbers are wanted."""

    def binary(self, *_, **__):
        return None

    map = scale = real = extreme = view = argsort = topk = binary


def _between(args, kwargs, names, defaults):
    """Positional arguments behind the first, or by their names."""
    given = list(args[1:1 + len(names)])
    return given + [kwargs.get(name, value) for name, value in list(zip(names, defaults))[len(given):]]


def _drawn(g, name, inside, args, kwargs, uniform, operand):
    """The numbers of a draw and their line; uniform(sizes) draws once. Where a number decides about
    integers, it is a binary32 as the job's."""
    if name in ("rand", "rand_like", "uniform"):
        low, high = _between(args, kwargs, ("from", "to"), (0.0, 1.0)) if name == "uniform" else (
            0.0, 1.0)
        number, line = uniform()
        if (low, high) == (0.0, 1.0):
            return number, line
        return number * (high - low) + low, g.binary("add", g.scale(line, high - low), low)
    if name in ("randint", "randint_like", "random"):
        return _drawn_integers(g, name, args, kwargs, uniform)
    if name in ("randperm", "multinomial"):
        return _drawn_places(g, name, args, kwargs, uniform, operand)
    if name == "exponential":
        rate, = _between(args, kwargs, ("lambd",), (1.0,))
        number, line = _exponential(g, uniform)
        return number / rate, g.scale(line, 1 / rate)
    if name == "bernoulli":
        share = args[0] if not inside and len(args) == 1 else args[1] if len(args) > 1 else \
            kwargs.get("p", 0.5)
        number, line = uniform()
        known = operand(share) if isinstance(share, torch.Tensor) else share
        return (number < share).to(number.dtype), g.binary("less", line, known)
    mean, deviation = (list(args[:2]) + [1.0])[:2] if name == "normal" and not inside else \
        _between(args, kwargs, ("mean", "std"), (0.0, 1.0)) if name == "normal" else (0.0, 1.0)
    (u, u_line), (v, v_line) = uniform(), uniform()
    number = (-2 * (1 - u).log()).sqrt() * (2 * math.pi * v).cos() * deviation + mean
    line = g.map("sqrt", g.scale(g.map("log", g.binary("sub", 1.0, u_line)), -2.0))
    line = g.binary("mul", line, g.map("cos", g.scale(v_line, 2 * math.pi)))
    for word, one, neutral in (("mul", deviation, 1.0), ("add", mean, 0.0)):
        if isinstance(one, torch.Tensor) or one != neutral:
            line = g.binary(word, line, operand(one) if isinstance(one, torch.Tensor) else one)
    return number, line


def _exponential(g, uniform, sizes=None):
    """Never 0 and never infinite."""
    number, line = uniform(sizes)
    return -(number.clamp(min=2.0 ** -33)).log(), g.scale(g.map("log", g.binary(
        "max", line, 2.0 ** -33)), -1.0)


def _drawn_integers(g, name, args, kwargs, uniform):
    if name == "randint":
        low, high = args[:2] if len(args) > 1 and isinstance(args[1], int) else (0, args[0])
    else:
        low, high = args[1:3] if len(args) > 2 else (0, args[1] if len(args) > 1 else kwargs.get(
            "high", EXACT))
    if not 0 < high - low <= EXACT or max(abs(low), abs(high)) > EXACT:
        refuse("integers from %d to %d: at most 2^24" % (low, high))
    number, line = uniform()
    line = g.map("floor", g.scale(line, float(high - low)))
    return (number.float() * float(high - low)).floor() + low, g.binary("add", line, low) if low else line


def _drawn_places(g, name, args, kwargs, uniform, operand):
    """A permutation, and draws by weights: of two places the first comes whose time is over, as
    exponential times of these rates have it."""
    if name == "randperm":
        number, line = uniform()
        if isinstance(g, Graph):
            line, = [_sort(g, "argsort", None, line)]
        return torch.argsort(number.float(), stable=True), line
    weights, many, again = args[0], *_between(args, kwargs, ("num_samples", "replacement"), (1, False))
    sizes = weights.shape[:-1] + ((many,) if again else ()) + weights.shape[-1:]
    if math.prod(sizes) > EXACT:
        refuse("%d draws among %d places: at most 2^24 in all" % (
            math.prod(sizes[:-1]), weights.shape[-1]))
    number, line = _exponential(g, uniform, sizes)
    wide = weights.unsqueeze(-2) if again else weights
    rate = wide / number.to(wide.dtype)
    if isinstance(g, Graph):
        known = g.real(operand(weights))
        known = g.view(known, lambda t: t.unsqueeze(-2)) if again else known
        line = g.binary("div", known, line)
        line = g.extreme("row-max-index", line, -1, not again, "u32") if again or many == 1 else \
            _sort(g, "topk", None, line, many)[1]
    return rate.argmax(-1, keepdim=not again) if again or many == 1 else rate.topk(many, -1)[1], line


class Recorder(TorchDispatchMode):
    """Sees every ATen call below autograd and writes its line."""

    def __init__(self, graph, trains=True):
        super().__init__()
        self.graph, self.table, self.shared = graph, {}, {}  # shared: by storage, who lies there
        self.storages, self.modules, self.stops = {}, [], {}
        self.trains, self.draws = trains, 0  # without a loss no gradient is Lockstep's
        self.number = None  # a tensor whose number is about to be an index
        self.apart = {}  # what such an index showed: PyTorch's own shares the memory
        self.nowhere = "loss" if trains else "step"  # the place of what no module does
        self.within = []  # names of calls that are made of others now

    def know(self, tensor, line, kind="f32"):
        value = Value(line, _as_real(tensor).shape, kind=kind)
        if tensor.is_complex():
            value = _complexly(self.graph, "view_as_complex", None, [value], None, None)
        self.bind(tensor, value, False)
        self.storages[_storage(tensor)] = line.numbers[0] if line.numbers else "a tensor"

    def bind(self, tensor, value, stopped):
        if not tensor.numel():  # it depends on nothing
            return
        if value is None:
            self.table[id(tensor)] = tensor, LOST
            return
        if tuple(value.sizes) != tuple(tensor.shape):
            raise AssertionError("%s: a value of %s for %s" % (value.line.word, value.sizes,
                                                               tuple(tensor.shape)))
        value = copy.copy(value)
        value.stopped = stopped and self.trains
        if isinstance(value, Pair):
            self.table[id(tensor)] = tensor, value
            self.shared.setdefault(_storage(tensor), {})[id(tensor)] = tensor
            return
        value.integer = not tensor.is_floating_point()
        if tensor.dtype == torch.bool and value.kind == "f32":
            value.kind = "bool"
        if value.integer and value.kind == "f32" and tensor.numel() and \
                int(tensor.abs().max()) >= EXACT:
            words = self.graph.words(value)
            if words is not None:
                words.stopped, words.integer = value.stopped, True
                self.table[id(tensor)] = tensor, words
                self.shared.setdefault(_storage(tensor), {})[id(tensor)] = tensor
                return
            refuse("an integer of %d: what is computed is exact up to 2^24" % int(
                tensor.abs().max()))
        self.table[id(tensor)] = tensor, value
        self.shared.setdefault(_storage(tensor), {})[id(tensor)] = tensor

    def find(self, tensor):
        """What the recording knows of a tensor; None of what depends on nothing."""
        entry = self.table.get(id(tensor))
        if entry is None:
            if _storage(tensor) in self.storages and tensor.numel():
                refuse("memory of %s, read past autograd" % self.storages[_storage(tensor)])
            return None
        _, value = entry
        if isinstance(value, str):
            refuse(value)
        if value.stopped and torch.is_grad_enabled():
            if tensor.requires_grad and not tensor.is_leaf:
                refuse("an autograd.Function, or requires_grad of what no_grad made: its gradient "
                       "would be another")
            return self.stop(value)
        return value

    def changed(self, tensor):
        """In place: what else shows a part of it is no longer what its line says, but what shows all
        of its memory has the part in its place, and what shows a part of that shows the new one."""
        key = _storage(tensor)
        self.storages.setdefault(key, "a tensor that was changed in place")
        self.graph.constants.clear()
        entry = self.table.get(id(tensor))
        for other in list(self.shared.get(key, {}).values()):
            if other is tensor or not _overlap(tensor, other):
                continue
            known, why = self.table[id(other)][1], PARTLY
            value = None
            if entry is not None and not isinstance(known, str) and not isinstance(entry[1], str):
                if self.is_unseen(tensor, entry[1], other):
                    why = UNSEEN
                elif _holds(other, tensor) and isinstance(known, Pair) == isinstance(entry[1], Pair):
                    value = self.placed(other, known, tensor, entry[1])
                elif _holds(tensor, other) and not isinstance(known, Pair) and not isinstance(entry[1], Pair):
                    value = self.seen(tensor, entry[1], other)
                if value is not None and self.trains and not _are_one_family(other, tensor):
                    value = self.stop(value)
            if value is None:
                self.table[id(other)] = other, why
            else:
                self.bind(other, value, value.stopped)

    def is_unseen(self, tensor, value, other):
        """Is the other one's gradient what it was before this change?"""
        return self.trains and other.requires_grad and not other.is_leaf and (
            value.stopped or not tensor.requires_grad)

    def seen(self, whole, value, part):
        """What a view of a part of the whole's memory shows of its new value."""
        self.graph.place = self.where()
        made = self.graph.view(Value(self.graph.dense(value), value.sizes, kind=value.kind), lambda t: t.as_strided(
            part.shape, part.stride(), part.storage_offset() - whole.storage_offset()))
        made.stopped = value.stopped
        return made

    def placed(self, whole, base, part, value):
        """The whole with a part of it, which views its memory, changed."""
        if part.shape == whole.shape and part.stride() == whole.stride():
            return value
        if isinstance(value, Pair):
            parts = [self.placed(whole, *both) for both in zip(
                (base.re, base.im), (part, part), (value.re, value.im))]
            made = Pair(*parts) if None not in parts else None
            if made:
                made.stopped = base.stopped and value.stopped
            return made
        g = self.graph
        sizes, (strides,) = merged(part.shape, part.stride())
        if len(sizes) > MOVE_AXES or any(step == 0 for step in strides):
            return None
        g.place = self.where()
        kind = "u32" if base.kind == value.kind == "u32" else "f32"
        base, value = (one if kind == "u32" else g.real(one) for one in (base, value))
        line = g.line("place", [g.dense(value), g.dense(base)], padded(sizes, MOVE_AXES, 1) +
                      padded(strides, MOVE_AXES, 0) +
                      [part.storage_offset() - whole.storage_offset()], whole.shape, kind)
        made = Value(line, whole.shape, kind=kind)
        made.stopped = base.stopped and value.stopped
        return made

    def stop(self, value):
        if isinstance(value, Pair):
            return Pair(self.stop(value.re), self.stop(value.im))
        made = copy.copy(value)
        if value.kind not in ("u32", "bool"):
            key = id(value.line)
            if key not in self.stops:
                self.stops[key] = self.graph.line("stop", [value.line], [], value.line.shape)
            made.line = self.stops[key]
        made.stopped = False
        return made

    def where(self):
        """The innermost module, and the user's line."""
        frame = _users(sys._getframe(2))
        if frame is None:
            return self.nowhere
        return "%s %s:%d" % (self.modules[-1] if self.modules and self.modules[-1] else
                             self.nowhere,
                             os.path.basename(frame.f_code.co_filename).replace(" ", "_"),
                             frame.f_lineno)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        place = self.where()
        args = _with_tensors(func, args)
        try:
            return self.record(func, args, kwargs or {}, place)
        except Refused as error:
            name = func._schema.name.split("::")[1]
            if getattr(error, "told", False):
                raise
            told = Refused("%s: %s: %s%s" % (place, name, error, "" if name not in WAY_OUT else
                                             "; " + WAY_OUT[name]))
            told.told = True
            raise told from None
        except Exception as error:  # noqa: B902 - the program itself has run before
            told = Refused("%s: %s: this form of it has no line of a graph (%s: %s)" % (
                place, func._schema.name.split("::")[1], type(error).__name__, str(error).split("\n")[0]))
            told.told = True
            raise told from error

    def record(self, func, args, kwargs, place):
        whole = func._schema.name.split("::")[1]
        inside = whole.endswith("_") and not whole.endswith("__")
        name = whole[:-1] if inside else whole
        if isinstance(kwargs.get("out"), torch.Tensor):
            return self.into(kwargs["out"], name, args, kwargs)
        everything = list(_tensors(list(args) + list(kwargs.values())))
        known = any(self.find(tensor) is not None for tensor in everything)
        if name in DRAWS:
            self.graph.place = place
            return self.draw(name, inside, func, args, kwargs)
        if name in SHAPED and not inside:
            known = False  # a constant of the shape of a tensor
        if not known:
            if inside:
                self.graph.constants.clear()
            out = func(*args, **kwargs)
            return out.zero_() if name in UNSET else out  # what is not set is set before it is read
        if name == "_local_scalar_dense" and _reads_an_element(args[0]):
            self.number = args[0]  # of x[i]: the next call selects
            return func(*args, **kwargs)
        if name == "select" and self.number is not None:
            return self.select(place, func, *args)
        if name in MADE_COMPLEX or any(tensor.is_complex() for tensor in everything) or any(
                isinstance(one, complex) for one in args):
            return self.complexly(place, name, inside, func, args, kwargs)
        function = RULES.get("%s.%s" % (name, func._overloadname)) or RULES.get(name)
        if function is None and name not in VIEWS | SAME | {"copy"}:
            return self.outside(func, name, args, kwargs) if inside else self.decompose(
                func, args, kwargs)
        self.graph.place = place
        if inside and name not in VIEWS and _window(args[0]) is not None:
            refuse("a change through windows that overlap: of each place the last one would stay; add them up with "
                   "F.fold or index_add")
        if inside and any(_is_shifted(args[0], one) for one in everything[1:]):
            refuse("a change of memory that it reads at another place: in which order, PyTorch leaves open; clone() "
                   "what is read")
        if inside and id(args[0]) in self.apart:
            refuse("a change at a place that is computed: use torch.where, index_put or index_add")
        if inside and name.startswith("logical") and args[0].requires_grad and self.trains:
            refuse("in place it would leave the gradient as it was: use torch.%s" % name)
        if name in PROMOTED and _is_narrowed(args):
            refuse("an integer of no axes beside integers of 8 or 16 bits: it would take their type; cast one of them")
        before = args
        if inside and self.find(args[0]) is None:
            self.know_base(args[0])
            before = (args[0].clone(),) + tuple(args[1:])
        operands = _mapped(self.operand, before)
        names = {key: _mapped(self.operand, value) for key, value in kwargs.items()
                 if key not in IGNORED_NAMES}
        out = func(*args, **kwargs)
        if not any(one.numel() for one in _tensors(out)):
            return out
        made = self.make(function, name, func, out, operands, names)
        stopped = not torch.is_grad_enabled()
        if inside:
            out, made = args[0], made if isinstance(made, Value) else made[0]
            self.bind(out, made, stopped)
            if name not in VIEWS:  # they change how memory is seen
                self.changed(out)
            return out
        if name in BATCH_NORMS and _training(name, args):
            self.run_statistics(made[0], operands, args)
        if isinstance(out, torch.Tensor):
            self.bind(out, made[0] if isinstance(made, (tuple, list)) else made, stopped)
        else:
            for tensor, value in zip(out, made):
                self.bind(tensor, value, stopped)
        return out

    def complexly(self, place, name, inside, func, args, kwargs):
        """A call that reads or makes complex numbers."""
        g = self.graph
        g.place = place
        if inside and self.find(args[0]) is None:
            self.know_base(args[0])
        before = ((args[0].clone(),) + tuple(args[1:])) if inside and self.find(args[0]) is None \
            else args
        operands = _mapped(self.operand, before)
        function = RULES.get("%s.%s" % (name, func._overloadname)) or RULES.get(name)
        names = {key: value for key, value in kwargs.items() if key not in IGNORED_NAMES}
        out = func(*args, **kwargs)

        def real(one):
            return one.real if isinstance(one, torch.Tensor) and one.is_complex() else one

        def both(i):
            def part(one):
                if isinstance(one, (list, tuple)):
                    return type(one)(part(each) for each in one)
                if not isinstance(one, (Pair, Value, complex)) and not (
                        isinstance(one, float) and name in ("add", "sub", "rsub")):
                    return one
                if isinstance(one, Value) and (one.kind in ("u32", "bool") or one.kind ==
                                               "constant" and not _is_complex(one) and
                                               not one.tensor.is_floating_point()):
                    return one
                pair = _parts(g, one)
                return pair.im if i else pair.re
            return self.make(function, name, func, real(out), part(operands), dict(names))

        def times(a, b):
            return self.make(function, name, func, real(out), [a, b], {})
        made = _complexly(g, name, out, operands, both, times)
        if inside:
            out = args[0]
        self.bind_all(out, made)
        if inside:
            self.changed(out)
        return out

    def bind_all(self, out, made):
        """One, or a pair of lists where a call gives several."""
        stopped = not torch.is_grad_enabled()
        if isinstance(out, torch.Tensor):
            self.bind(out, made, stopped)
        else:
            for at, tensor in enumerate(out):
                self.bind(tensor, Pair(made.re[at], made.im[at]), stopped)

    def select(self, place, func, x, axis, _):
        """x[i] with an index that is computed: PyTorch's own takes the number out of the tensor."""
        index, self.number = self.number, None
        if x.requires_grad:
            refuse("an index that is computed: x.index_select(%d, i.reshape(1)) has a line" % axis)
        self.graph.place = place
        at = self.graph.view(self.find(index), lambda t: t.reshape(1))
        axis %= x.dim()
        made = _index(self.graph, "index", None, self.operand(x), [None] * axis + [at])
        out = func(x, axis, int(index)).clone()  # what shares no memory: where it lies is computed
        self.bind(out, self.graph.view(made, lambda t: t.select(axis, 0)), not torch.is_grad_enabled())
        self.apart[id(out)] = out
        return out

    def into(self, out, name, args, kwargs):
        """What fills a tensor that is there, as what makes another and a copy."""
        kwargs = {key: value for key, value in kwargs.items() if key != "out"}
        with self:
            return out.copy_(getattr(torch.ops.aten, name)(*args, **kwargs))

    def outside(self, func, name, args, kwargs):
        """What changes a tensor, as what makes another and a copy."""
        if name in self.within:  # the other one would copy and change the copy
            refuse("it has no line of a graph" + _way_out(name))
        self.within.append(name)
        try:
            return self.changed_by_copy(func, name, args, kwargs)
        finally:
            self.within.pop()

    def changed_by_copy(self, func, name, args, kwargs):
        packet = getattr(torch.ops.aten, name, None)
        other = getattr(packet, func._overloadname, None) or getattr(packet, "default", None)
        if other is None:
            return self.decompose(func, args, kwargs)
        with self:
            return args[0].copy_(other(*args, **kwargs))

    def know_base(self, tensor):
        """Before a constant is changed in place, through a view of it: its memory is known then."""
        base = tensor._base if tensor._base is not None else tensor
        if base is not tensor and self.find(base) is None and base.is_contiguous():
            g = self.graph
            kept = Value(None, base.shape, kind="constant", tensor=base.clone())
            if base.is_complex():
                return self.bind(base, _parts(g, kept), True)
            integer = not base.is_floating_point()
            made = g.constant(kept, "u32") if integer and int(base.min()) >= 0 and \
                base.dtype != torch.bool else g.real(kept)
            self.bind(base, made, True)

    def run_statistics(self, made, operands, args):
        """The running statistics that a batch norm changes, where they are the module's."""
        mean, var, count = made.statistics
        momentum = args[6]
        with torch.no_grad():
            for at, new in ((3, mean), (4, self.graph.scale(var, count / max(count - 1, 1)))):
                if args[at] is not None and self.find(args[at]) is not None:
                    self.bind(args[at], _running(self.graph, operands[at], new, momentum), True)
                    self.changed(args[at])

    def draw(self, name, inside, func, args, kwargs):
        """Random numbers: those that the job draws for an example, and the line that draws them."""
        out = args[0] if inside else func(*args, **kwargs)
        if name not in DRAWN:
            refuse("random numbers of this kind: torch.rand, randn, randint, randperm, bernoulli, "
                   "multinomial, normal_, uniform_ and exponential_ have lines; or draw them into the "
                   "rows of the batch")
        if inside:
            self.know_base(out)

        def uniform(sizes=None):
            sizes = out.shape if sizes is None else torch.Size(sizes)
            line = self.graph.line("uniform", [], [self.draws], sizes, "u32")
            number = _uniform(self.draws, sizes, out.dtype)
            self.draws += 1
            real = self.graph.scale(self.graph.real(Value(line, sizes, kind="u32")), 2.0 ** -32)
            return number, self.graph.binary("min", real, BELOW_ONE)
        number, value = _drawn(self.graph, name, inside, args, kwargs, uniform, self.operand)
        with torch.no_grad():
            out.copy_(number)
        self.bind(out, value, True)
        if inside:
            self.changed(out)
        return out

    def operand(self, tensor):
        found = self.find(tensor)
        return found if found is not None else Value(None, tensor.shape, kind="constant",
                                                     tensor=tensor)

    def make(self, function, name, func, out, operands, names):
        g = self.graph
        if name == "copy":
            x = operands[1] if operands[1].kind == "u32" else g.real(operands[1])
            x = _cast(g, name, out, x) if x.kind != "f32" or not out.is_floating_point() else x
            return g.view(x, lambda t: t.expand(out.shape))
        if name == "view" and func._overloadname == "dtype":
            refuse("bits that are read as another type: to() makes numbers of another type")
        if name in ("view", "_unsafe_view", "_reshape_alias"):
            return g.view(operands[0], lambda t: t.view(out.shape))
        if name in VIEWS:
            return g.view(operands[0], lambda t: func(t, *operands[1:], **names))
        if name in SAME:
            return operands[0]
        if names.pop("dtype", None) is not None and isinstance(out, torch.Tensor) and _is_integer(out) and \
                name in SUMS and operands[0].kind == "f32" and not operands[0].integer:
            operands[0] = _truncated(g, operands[0])
        made = function(g, name, out, *operands, **names)
        if name in ("add", "sub", "rsub", "mul", "neg") and isinstance(out, torch.Tensor):
            made = _wrapped(g, made, out.dtype)
        return made

    def decompose(self, func, args, kwargs):
        table = torch._decomp.decomposition_table
        with self:
            if func in table:
                return table[func](*args, **kwargs)
            made = func.decompose(*args, **kwargs)
        if made is NotImplemented:
            refuse("it has no line of a graph" + _way_out(func._schema.name.split("::")[1]))
        return made


def _way_out(name):
    return "" if name in WAY_OUT else ": write it by sums, products and comparisons"


def _smoothed(func, x, target, weight=None, size_average=None, ignore_index=-100, reduce=None,
              reduction="mean", label_smoothing=0.0):
    """PyTorch's own selects the targets that count."""
    if target.is_floating_point():
        return func(x, target, weight, ignore_index=ignore_index, reduction=reduction,
                    label_smoothing=label_smoothing)
    axis = 1 if x.dim() > 1 else 0
    logs = FUNCTIONAL.log_softmax(x, axis)
    kept = (target != ignore_index).to(x.dtype)
    each = FUNCTIONAL.nll_loss(logs, target, weight, ignore_index=ignore_index, reduction="none")
    if weight is not None:
        logs = logs * weight.reshape([-1] + [1] * (x.dim() - axis - 1))
    total = (1 - label_smoothing) * each - label_smoothing / x.shape[axis] * logs.sum(axis) * kept
    if weight is not None:
        safe = torch.where(target != ignore_index, target, torch.zeros_like(target))
        kept = kept * FUNCTIONAL.embedding(safe, weight.unsqueeze(-1)).squeeze(-1)
    return total if reduction == "none" else total.sum() if reduction == "sum" else \
        total.sum() / kept.sum()


def _one_hot(recorder, tensor, num_classes=-1):
    """PyTorch's own looks at the numbers."""
    if num_classes < 0:
        raise Refused("%s: one_hot without num_classes: say how many there are" % recorder.where())
    return (tensor.unsqueeze(-1) == torch.arange(num_classes)).long()


def _cosine_similarity(a, b, dim=1, eps=1e-8):
    """PyTorch's own changes its norms where autograd does not see it."""
    a, b = torch.broadcast_tensors(a, b)  # the axis is one of both together
    lengths = [torch.clamp((one * one).sum(dim, keepdim=True), min=eps * eps).sqrt() for one in (a, b)]
    return (a / lengths[0] * (b / lengths[1])).sum(dim)


def _side_by_side(recorder, targets, lengths):
    """Targets that stand side by side, as rows: how long each is must not depend on the batch."""
    if recorder.find(lengths) is not None:
        raise Refused("%s: ctc_loss of targets side by side whose lengths are a tensor of the batch: "
                      "give targets of two axes, rows filled up" % recorder.where())
    counts = [int(one) for one in lengths]
    parts = targets.split(counts)
    return torch.stack([FUNCTIONAL.pad(one, (0, max(counts) - len(one))) for one in parts])


def _ctc_loss(recorder, logs, targets, input_lengths, target_lengths, blank=0, reduction="mean",
              zero_infinity=False):
    """PyTorch's own takes the lengths out of their tensors. Forward over time, for all rows at once:
    the logarithm of what has come to each symbol, blanks between them. What cannot be is NEVER."""
    NEVER = -1e30
    alone = logs.dim() == 2
    logs = logs.unsqueeze(1) if alone else logs
    steps, count = logs.shape[:2]
    ends, lengths = (torch.as_tensor(one).reshape(-1) for one in (input_lengths, target_lengths))
    if alone:
        targets = targets.reshape(1, -1)
    elif targets.dim() == 1:
        targets = _side_by_side(recorder, targets, lengths)
    size = targets.shape[1]
    targets = torch.where(torch.arange(size) < lengths.unsqueeze(1), targets,
                          torch.full_like(targets, blank))
    between = torch.full_like(targets, blank)
    symbols = torch.cat([between[:, :1], torch.stack([targets, between], 2).flatten(1)], 1)
    skips = (symbols[:, 2:] != blank) & (symbols[:, 2:] != symbols[:, :-2])
    skips = FUNCTIONAL.pad(torch.where(skips, 0.0, NEVER), (2, 0), value=NEVER)
    each = logs.gather(2, symbols.unsqueeze(0).expand(steps, -1, -1))
    came = torch.where(torch.arange(2 * size + 1) < 2, each[0], torch.full_like(each[0], NEVER))
    for step in range(1, steps):
        next_to = FUNCTIONAL.pad(came[:, :-1], (1, 0), value=NEVER)
        skipped = FUNCTIONAL.pad(came[:, :-2], (2, 0), value=NEVER) + skips
        new = torch.logsumexp(torch.stack([came, next_to, skipped]), 0) + each[step]
        came = torch.where((step < ends).unsqueeze(1), new, came)
    last = came.gather(1, 2 * lengths.unsqueeze(1)).squeeze(1)
    before = came.gather(1, (2 * lengths - 1).clamp(min=0).unsqueeze(1)).squeeze(1)
    before = torch.where(lengths > 0, before, torch.full_like(before, NEVER))
    found = -torch.logaddexp(last, before)
    found = torch.where(found > -NEVER / 2, torch.full_like(
        found, 0.0 if zero_infinity else math.inf), found)
    if reduction == "mean":
        return (found / lengths.clamp(min=1)).mean()
    return found.sum() if reduction == "sum" else found.squeeze(0) if alone else found


READ_OUT = {torch.Tensor.numpy, torch.Tensor.tolist, torch.Tensor.__array__, torch.Tensor.__float__,
            torch.Tensor.__repr__}
OTHER_DATA = {torch.Tensor.data.__set__}
COPIED = {torch.tensor, torch.as_tensor, torch.Tensor.new_tensor}  # of a tensor, without its gradient


class Calls(TorchFunctionMode):
    """Sees what autograd hides from the recorder: the user's own detach(), and dropout. Without a
    recorder: only drops nothing."""

    def __init__(self, recorder):
        super().__init__()
        self.recorder = recorder

    def __enter__(self):
        """Distributions do not look at numbers meanwhile."""
        kind = torch.distributions.Distribution
        self.validates = kind._validate_args
        kind.set_default_validate_args(False)
        return super().__enter__()

    def __exit__(self, *error):
        torch.distributions.Distribution.set_default_validate_args(self.validates)
        return super().__exit__(*error)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.Tensor.register_hook and self.recorder is not None:
            self.no_hook(args[0])
        if func in READ_OUT and self.recorder is not None:
            self.no_numbers(func, args[0])
        if func in OTHER_DATA and self.recorder is not None:
            self.no_other_data(*args)
        if func in COPIED and self.recorder is not None:
            self.no_elements(func, args[1 if func is torch.Tensor.new_tensor else 0:][:1])
        if func in DROPOUTS:
            return self.dropout(func, *args, **kwargs)
        if func is FUNCTIONAL.gumbel_softmax and self.recorder is not None:
            return self.gumbel_softmax(*args, **kwargs)
        if func is FUNCTIONAL.one_hot and self.recorder is not None:
            return _one_hot(self.recorder, *args, **kwargs)
        if func is torch.cosine_similarity and self.recorder is not None:
            return _cosine_similarity(*args, **kwargs)
        if func is FUNCTIONAL.ctc_loss and self.recorder is not None:
            return _ctc_loss(self.recorder, *args, **kwargs)
        if func is FUNCTIONAL.cross_entropy and kwargs.get("label_smoothing") and \
                self.recorder is not None:
            return _smoothed(func, *args, **kwargs)
        out = func(*args, **kwargs)
        return self.stopped(out) if func in STOPS or func in COPIED - {torch.as_tensor} else out

    def no_numbers(self, func, tensor):
        """Below autograd nothing is seen of it, and a batch in another order may give the same."""
        if self.recorder.find(tensor) is not None:
            raise Refused("%s: %s: %s" % (self.recorder.where(), func.__name__,
                                          WAY_OUT["_local_scalar_dense"]))

    def no_elements(self, func, data):
        """A list is read below where the recorder looks."""
        if data and not isinstance(data[0], torch.Tensor) and any(
                self.recorder.find(one) is not None for one in _tensors(data[0])):
            raise Refused("%s: %s() of what is computed: its numbers would become constants; torch.stack keeps "
                          "them" % (self.recorder.where(), func.__name__))

    def no_other_data(self, tensor, data):
        if self.recorder.find(tensor) is not None or self.recorder.find(data) is not None:
            raise Refused("%s: other data for a tensor: give the new one a name, or copy_() it where no gradient "
                          "is recorded" % self.recorder.where())

    def no_hook(self, tensor):
        """It changes a gradient where no line is: the reverse pass of the job is its own."""
        if self.recorder.trains and self.recorder.find(tensor) is not None:
            raise Refused("%s: register_hook: its gradient would be another; scale the loss, or what "
                          "goes into it as x * a + (x * (1 - a)).detach()" % self.recorder.where())

    def stopped(self, out):
        """What the user's own detach() made."""
        if self.recorder is not None and self.recorder.trains and self.recorder.find(out) is not None:
            self.recorder.bind(out, self.recorder.stop(self.recorder.find(out)), False)
        return out

    def gumbel_softmax(self, x, tau=1, hard=False, eps=1e-10, dim=-1):
        """PyTorch's own detaches where no mode sees it."""
        noise = -torch.empty_like(x).exponential_().log()
        soft = ((x + noise) / tau).softmax(dim)
        if not hard:
            return soft
        chosen = torch.zeros_like(x).scatter_(dim, soft.max(dim, keepdim=True)[1], 1.0)
        return chosen - self.stopped(soft.detach()) + soft

    def dropout(self, func, x, p=0.5, training=True, inplace=False, train=None):
        """The job draws what it drops; here nothing is."""
        training = training if train is None else train
        if not training or p == 0:
            return x
        if self.recorder is None:
            return x
        out = x.clone()
        value = self.recorder.find(out)
        if value is not None:
            g = self.recorder.graph
            g.place = self.recorder.where()
            x = g.real(value)
            if func in (FUNCTIONAL.dropout, torch.dropout):
                made = Value(g.line("dropout", [g.dense(x)], [bits(p)], value.sizes), value.sizes)
            else:  # whole channels
                lead = value.sizes[:2]
                kept = g.line("dropout", [g.line("fill", [], [bits(1)], lead)], [bits(p)], lead)
                made = g.binary("mul", x, Value(kept, lead + (1,) * (len(value.sizes) - 2)))
            self.recorder.bind(out, made, not torch.is_grad_enabled())
        return out


def _with_tensors(func, args):
    """Calls bit by bit get numbers where they take tensors, and then refuse them: as tensors."""
    if not func._schema.name.startswith(("aten::bitwise", "aten::_conj")):
        return args
    wanted = [str(one.type) == "Tensor" for one in func._schema.arguments]
    return [torch.tensor(one) if is_tensor and isinstance(one, (bool, int, float, complex))
            else one for one, is_tensor in zip(args, wanted)] + list(args[len(wanted):])


WIDER = {torch.float32: torch.float64, torch.complex64: torch.complex128}


def _as_wide(tensor):
    return tensor.to(WIDER[tensor.dtype]) if tensor.dtype in WIDER else tensor


def _as_real(tensor):
    """A complex tensor as one of two numbers more."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


class Reference(TorchDispatchMode):
    """The program in binary64, also where it names other types; random numbers are the example's."""

    def __init__(self, double, lean=False):
        super().__init__()
        self.double, self.draws, self.lean = double, 0, lean
        self.names_types = True  # autograd itself names the type of a parameter for its gradient

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        args = _with_tensors(func, args)
        whole = func._schema.name.split("::")[1]
        inside = whole.endswith("_") and not whole.endswith("__")
        name = whole[:-1] if inside else whole
        if self.double:
            if kwargs.get("dtype") in WIDER and self.names_types:
                kwargs["dtype"] = WIDER[kwargs["dtype"]]
            if name == "embedding_dense_backward" and self.lean:  # a table as large as the module
                args = (args[0].float(),) + tuple(args[1:])
            elif not inside and not any(one.alias_info for one in func._schema.returns) and (self.names_types or any(
                    t.dtype == torch.float64 for t in _tensors(list(args)))):
                args = _mapped(_as_wide, list(args))
        if name not in DRAWN:
            return func(*args, **kwargs)
        out = args[0] if inside else func(*args, **kwargs)

        def uniform(sizes=None):
            self.draws += 1
            return _uniform(self.draws - 1, out.shape if sizes is None else torch.Size(sizes),
                            out.dtype), None
        number, _ = _drawn(_Numbers(), name, inside, args, kwargs, uniform, lambda t: None)
        with torch.no_grad():
            return out.copy_(number)


class _Borrowed:
    """The module with buffers of its own and without gradients, double in binary64, and wide with its
    parameters too, or with other numbers in those that are named; afterwards all is as before."""

    def __init__(self, module, double=False, wide=False, others=()):
        self.module, self.double, self.wide, self.others = module, double, wide, others

    def __enter__(self):
        self.gradients = [(one, one.grad) for one in self.module.parameters()]
        for one, _ in self.gradients:
            one.grad = None
        self.data = [(one, one.data) for one in self.module.parameters()] if self.wide else []
        for name, one in self.module.named_parameters():
            if name in self.others:
                self.data.append((one, one.data))
                one.data = _other(one.data)
        self.buffers = [(part, key, one) for part in self.module.modules()
                        for key, one in part._buffers.items() if one is not None]
        made = {}
        for one, data in self.data if self.wide else ():
            if data.dtype in WIDER:
                one.data = _as_wide(data)
        for part, key, one in self.buffers:
            if id(one) not in made:
                wide = self.double and one.dtype in WIDER
                made[id(one)] = _as_wide(one.detach()) if wide else one.detach().clone()
            part._buffers[key] = made[id(one)]
        return self

    def __exit__(self, *_):
        for one, _ in self.gradients:
            one.grad = None
        for one, data in self.data:
            one.data = data
        for one, gradient in self.gradients:
            one.grad = gradient
        for part, key, one in self.buffers:
            part._buffers[key] = one


def _watch(module, recorder):
    hooks = []
    for name, one in module.named_modules():
        hooks.append(one.register_forward_pre_hook(
            lambda *_, name=name: recorder.modules.append(name)))
        hooks.append(one.register_forward_hook(lambda *_: [recorder.modules.pop(), None][1]))
    return hooks


# -- what PyTorch finds

SIGNS = []  # for each million of places: a byte with their eight signs


def _signs(block, count):
    while len(SIGNS) <= block:
        places = torch.arange(len(SIGNS) << 20, (len(SIGNS) + 1) << 20)
        signs = (places * 0x9e3779b1) & MASK
        signs = signs ^ (signs >> 15)
        signs = (signs * 0x85ebca6b) & MASK
        SIGNS.append(((signs ^ (signs >> 13)) >> 24).to(torch.uint8))
    return SIGNS[block][:count].long()


def _measure(tensor):
    """The norm, and eight sums with signs by the place: as graph_expected.c has them."""
    flat, square = _as_real(tensor.detach()).reshape(-1), 0.0
    by_byte = torch.zeros(256, dtype=torch.float64)
    for at in range(0, flat.numel(), 2 ** 20):
        part = flat[at:at + 2 ** 20].double()
        by_byte += torch.bincount(_signs(at >> 20, part.numel()), weights=part, minlength=256)
        square += float(part.dot(part))
    signs = (torch.arange(256)[:, None] >> torch.arange(8) & 1).double() * 2 - 1
    return [math.sqrt(square)] + (by_byte @ signs).tolist()


def _exact(number):
    return "0x%016x" % struct.unpack("<Q", struct.pack("<d", number))


LEAN_FROM = 2 ** 24  # parameters; of so many, Reference widens those that a call reads


def _found(program, ways=((True, True), (False, False))):
    """program(double, wide): as binary64; as PyTorch computes it where the program insists on that,
    which is said here and in the graph. Returns what it gives, and in which type."""
    why = None
    for way in ways[:-1]:
        try:
            return program(*way), "f64"
        except Refused:
            raise
        except Exception as error:  # noqa: B902 - all that a program of another's raises
            why = error
    found = program(*ways[-1])
    warnings.warn("the program does not run in float64 (%s: %s): the first step of a job is "
                  "held to PyTorch's float32" % (type(why).__name__, why), stacklevel=4)
    return found, "f32"


def _example(tensor, double):
    tensor = tensor.detach().clone()
    return _as_wide(tensor) if double else tensor


def _sum_of_bits(tensor):
    flat = _as_real(tensor.detach()).contiguous().reshape(-1)
    wide = {4: torch.int32, 8: torch.int64}.get(flat.element_size())
    parts = (flat[at:at + 2 ** 20] for at in range(0, flat.numel(), 2 ** 20))
    return sum(int(one.view(wide).sum() if wide else one.double().sum()) for one in parts)


def _gradients(module, out):
    """What there is to say of each gradient, by name: found and forgotten one after the other."""
    wanted = {name: one for name, one in module.named_parameters() if one.requires_grad}
    if not out.requires_grad or not wanted:
        raise Refused("the loss depends on no parameter that is trained")
    made, last = {}, []

    def told(name, one):
        def hook(gradient):
            made[name] = _measure(gradient)
            for other in last:
                other.grad = None
            last[:] = [one]
            if not math.isfinite(float(made[name][0])):
                raise Refused("the gradient of %s is no finite number, in PyTorch too: torch.where does not "
                              "stop the slope of what it leaves out: make that finite before the function, "
                              "as in torch.where(x > 0, x, 1).sqrt()" % name)
        return hook
    hooks = [one.register_hook(told(name, one)) for name, one in wanted.items()]
    try:
        for one in wanted.values():
            one.grad = None
        out.backward()
    finally:
        for hook in hooks:
            hook.remove()
        for one in wanted.values():
            one.grad = None
    return {name: made[name] for name in wanted if name in made}


def _find_training(module, loss, batch):
    """The loss, the gradients by name, and the buffers that the step writes, by name."""
    def program(double, wide):
        with _Borrowed(module, double, wide), torch.enable_grad(), Calls(None):
            before = {name: (one, _sum_of_bits(one), one._version)
                      for name, one in module.named_buffers()}
            weights = {name: _sum_of_bits(one) for name, one in module.named_parameters()}
            reference = Reference(double, not wide)
            with reference:
                out = loss(module, **{name: _example(one, double) for name, one in batch.items()})
                if not isinstance(out, torch.Tensor) or out.numel() != 1:
                    raise Refused("the loss is no tensor of one number")
                reference.names_types = False
                gradients = _gradients(module, out)
            for name, one in module.named_parameters():
                if _sum_of_bits(one) != weights.get(name):
                    raise Refused("%s: a parameter that the step itself changes: make it a buffer, "
                                  "which is a state of the job; what max_norm of an embedding "
                                  "does, do to the rows that come out" % name)
            states = {}
            for name, one in module.named_buffers():
                old = before.get(name)
                if old is None:
                    raise Refused("%s: a buffer that the step itself makes: register it in "
                                  "__init__" % name)
                if one is not old[0] or one._version != old[2] or _sum_of_bits(one) != old[1]:
                    states[name] = _measure(one)
            return float(out), gradients, states
    large = sum(one.numel() for one in module.parameters()) >= LEAN_FROM
    try:
        return _found(program, ((True, False),) * large + ((True, True), (False, False)))
    except (NotImplementedError, RuntimeError) as error:
        name = re.search(r"derivative for '?(?:aten::)?(\w+)[^']*'? is not implemented", str(error))
        if name is None:
            raise
        _record(module, loss, batch, {}, {}, False, {})  # says where, if the call has no line
        raise Refused("%s: PyTorch has no derivative of it%s" % (name[1], (
            "; " + WAY_OUT[name[1]] if name[1] in WAY_OUT else ": detach() what goes in"))) from None


def _found_in_bfloat16(module, loss, batch, gradients):
    """How far the worst gradient of autocast to bfloat16 is from these, as graph_check.c counts it: by
    this a job of fewer than 22 bits is judged. None: it does not run so, or the module is large."""
    if sum(one.numel() for one in module.parameters()) >= LEAN_FROM:
        return None
    try:
        with _Borrowed(module, False, False), torch.enable_grad(), Calls(None), Reference(False):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                out = loss(module, **{key: _example(one, False) for key, one in batch.items()})
            found = _gradients(module, out.float())
    except Exception:  # noqa: B902 - all that a program of another's raises
        return None
    least = 0.01 * math.sqrt(sum(one[0] ** 2 for one in gradients.values()))
    worst = 0.0
    for name, one in gradients.items():
        if name not in found:
            return None
        sums = sum((a - b) ** 2 for a, b in zip(one[1:], found[name][1:])) / (len(one) - 1)
        off = max(abs(one[0] - found[name][0]), math.sqrt(sums))
        worst = max(worst, off / max(one[0], least, 1e-300))
    return worst if math.isfinite(worst) else None


# -- the recording of a whole step

def _state_kind(tensor):
    """Integers are tried as such first; where that is not what is computed of them, f32."""
    if tensor.is_floating_point() or tensor.dtype == torch.bool or not tensor.numel():
        return "f32"
    return "u32" if tensor.dtype == torch.int32 or int(tensor.min()) >= 0 else "f32"


class _NoCounter(Exception):
    """A state that was taken for a counter is something else."""


def _declare_states(graph, recorder, states, kinds):
    """states: name: tensor, which the program will find. Returns the lines."""
    lines = {}
    for name, tensor in states.items():
        kind = kinds.setdefault(name, _state_kind(tensor))
        if kind == "u32" and tensor.dtype == torch.int32 and int(tensor.min()) < 0:
            kinds["signed", name] = True
        lines[name] = graph.declare("state", name, tensor.shape, kind)
        if ("signed", name) in kinds:
            lines[name].span = SIGNED
        recorder.know(tensor, lines[name], kind)
    return lines


def _state_words(graph, name, tensor, value, kinds):
    """A state that is computed as an integer of 32 bits, as u32; None: as f32."""
    words = graph.words(value)
    if words is None or ("kept", name) in kinds:
        return None
    span = words.line.span or WORD
    if tensor.dtype == torch.int32 and span[0] < 0:
        kinds["signed", name] = True
        return words
    return words if _is_within(span, (0, WORD[1] + EXACT)) else None  # what counts ends at 2^32


def _after(graph, taken, name, line, value, kinds, tensor):
    """The line that makes the next value of a state: a call of its own."""
    words = _state_words(graph, name, tensor, value, kinds) if line.kind == "u32" or \
        value.kind == "u32" else None
    if (words is not None) != (line.kind == "u32") or ("signed", name) in kinds and \
            line.span is None:
        if words is None:
            kinds["kept", name] = True
            kinds.pop(("signed", name), None)
        kinds[name] = "u32" if words is not None else "f32"
        raise _NoCounter
    value = words or value
    made = graph.dense(value if line.kind == "u32" else graph.real(value))
    made = made.same or made
    if made.word in Graph.RANKS or id(made) in taken or made.shape != line.shape:
        made = graph.line("move", [made], padded([made.count], MOVE_AXES, 1) +
                          padded([1], MOVE_AXES, 0) + [0], line.shape, line.kind)
    taken[id(made)] = made
    return made


def _next_states(graph, recorder, lines, tensors, kinds):
    afters, taken = [], {}
    for name, line in lines.items():
        value = recorder.operand(tensors[name])
        if value.kind == "constant":
            graph.place = "loss"
            value = graph.constant(value, line.kind)
        try:
            made = _after(graph, taken, name, line, value, kinds, tensors[name])
        except Refused as error:
            raise Refused("%s: the next value of '%s': %s" % (value.line.place, name, error)) from None
        afters.append((line, made))
    return afters


def _know_batch(graph, recorder, batch, lines=None):
    inputs = {}
    for name, tensor in batch.items():
        kind = "f32" if tensor.is_floating_point() else "u32"
        inputs[name] = tensor.detach().clone()
        line = lines[name] if lines else graph.declare("input", name, tensor.shape, kind)
        recorder.know(inputs[name], line, kind)
    return inputs


def _run(module, recorder, loss, inputs):
    hooks = _watch(module, recorder)
    try:
        with Calls(recorder), recorder:
            return loss(module, **inputs)
    except Refused:
        raise
    except Exception as error:  # noqa: B902 - it has run before, where nothing was recorded
        frame = error.__traceback__
        while frame.tb_next is not None and _users(frame.tb_next.tb_frame) is frame.tb_next.tb_frame:
            frame = frame.tb_next
        raise Refused("%s:%d: it does not run where calls are recorded (%s: %s)" % (
            os.path.basename(frame.tb_frame.f_code.co_filename), frame.tb_lineno, type(error).__name__,
            str(error).split("\n")[0])) from error
    finally:
        for hook in hooks:
            hook.remove()


def _loss_line(graph, recorder, out):
    if not isinstance(out, torch.Tensor) or out.numel() != 1:
        raise Refused("the loss is no tensor of one number")
    value = recorder.find(out)
    if value is None:
        raise Refused("the loss depends on no parameter that is trained")
    return graph.dense(graph.real(value))


def _record_eval(module, loss, batch, graph):
    """The same loss in eval mode, of the lines that are declared already."""
    recorder = Recorder(graph)
    lines = {line.numbers[0]: line for line in graph.declared}
    modes = [(one, one.training) for one in module.modules()]
    module.eval()
    try:
        inputs = _know_batch(graph, recorder, batch, lines)
        for name, one in list(module.named_parameters()) + list(module.named_buffers()):
            if name in lines:
                recorder.know(one, lines[name], lines[name].kind)
        with torch.enable_grad():  # a loss may have derivatives in it
            return _loss_line(graph, recorder, _run(module, recorder, loss, inputs))
    except Refused as error:
        raise Refused("in eval mode: %s; or export with evaluate=False" % error) from None
    finally:
        for one, mode in modes:
            one.training = mode


class _Recording:
    """A step as it was recorded: text, weights, frozen, number of each value, and lines by name."""


def _other(tensor):
    """Other numbers, of the same signs and not larger."""
    return tensor * (1 - 2.0 ** -10) if tensor.dtype in WIDER else tensor.clone()


def _record(module, loss, batch, reached, written, evaluate, kinds, others=()):
    """The graph of one batch. reached: the parameters with a gradient; written: the buffers that the
    step writes; others: the parameters that have other numbers for once."""
    while True:
        try:
            with _Borrowed(module, others=others):
                return _record_once(module, loss, batch, reached, written, evaluate, kinds)
        except _NoCounter:
            pass


def _record_once(module, loss, batch, reached, written, evaluate, kinds):
    made = _Recording()
    graph = Graph()
    recorder = Recorder(graph)
    trained = {}
    inputs = _know_batch(graph, recorder, batch)
    for name, parameter in module.named_parameters():
        known = recorder.storages.get(_storage(parameter))
        if known is not None:
            raise Refused("%s shares memory with %s: tie weights by giving both the one Parameter"
                          % (name, known))
        line = graph.declare("param", name, _as_real(parameter).shape)
        recorder.know(parameter, line)
        trained[name] = parameter, line
    buffers = {name: one for name, one in module.named_buffers() if name in written}
    states = _declare_states(graph, recorder, buffers, kinds)
    firsts = {name: one.clone() for name, one in buffers.items()}
    with torch.enable_grad():
        out = _run(module, recorder, loss, inputs)
        loss_line = _loss_line(graph, recorder, out)
    wanted = [name for name, (parameter, _) in trained.items() if parameter.requires_grad]
    with torch.no_grad():
        afters = _next_states(graph, recorder, states, dict(module.named_buffers()), kinds)
    for name, (parameter, line) in trained.items():
        if name not in reached:
            line.word, line.numbers = "frozen", [name, "f32"]
            graph.frozen[name] = _as_held(parameter)
    evaluated = None
    if evaluate:
        with _Borrowed(module):
            evaluated = _record_eval(module, loss, batch, graph)
    made.text, names, made.number = graph.text(loss_line, afters, evaluated)
    made.weights = {name: _as_held(trained[name][0]) for name in names["param"]}
    made.weights.update({name: _first(firsts[name], kinds[name]) for name in states})
    made.frozen = {name: graph.frozen[name] for name in names["frozen"]}
    made.without = [name for name in wanted if name not in reached]
    made.lines = {line.numbers[0]: line for line in graph.declared}
    made.loss = loss_line
    return made


def _first(tensor, kind):
    """The first value of a state, as the job has it."""
    if kind != "u32":
        return _as_held(tensor)
    whole = tensor.detach().long() & WORD[1]
    whole = torch.where(whole > 2 ** 31 - 1, whole - 2 ** 32, whole).int()
    return whole.reshape(tape_shape(tensor.shape))


def _as_held(tensor):
    """As a job holds it: f32, of at most four axes."""
    tensor = _as_real(tensor.detach())
    return tensor.float().reshape(tape_shape(tensor.shape))


TAKEN = {"step", "micro", "schedule", "loss", "losses", "answers", "loss_sum", "marked"}


def _check_names(names, inputs):
    for name in names:
        if len(name) > 125 or name in inputs and len(name) > 118:
            raise Refused("%s: names have at most 125 letters, those of a batch 118" % name)
        if name in TAKEN or name.startswith(("example.", "held_out.")):
            raise Refused("%s: a name of the job's own; give it another" % name)
        if not name.isascii() or not name.isprintable() or " " in name:
            raise Refused("%r: names are of printable ASCII without spaces" % name)
        for letter in "mvg":
            if letter + "." + name in names:
                raise Refused("%s.%s and %s: a job calls what it keeps of '%s' so; rename the "
                              "module '%s'" % (letter, name, name, name, letter))


def _check_rows(batch):
    rows = {tensor.shape[0] if tensor.dim() else None for tensor in batch.values()}
    if len(rows) != 1 or None in rows:
        raise Refused("the first axis of every tensor of the batch counts its rows: %s" % {
            key: tuple(tensor.shape) for key, tensor in batch.items()})


def _compare(one, other, what):
    if one.text != other.text or any(not torch.equal(one.frozen[key], other.frozen[key])
                                     for key in one.frozen):
        raise Refused("the program is another one when %s: a number that comes from there, a clock "
                      "or a draw became a constant" % what)


def _write(made, name, batch, expected, precision, coarse=None):
    """The graph, and beside it what is given: weights, first states, what is frozen, the example."""
    _check_names(set(made.lines) & (set(made.weights) | set(made.frozen)) | set(batch), batch)
    examples = {} if not expected else {
        "example." + key: rows.detach().float() if rows.is_floating_point() else torch.where(
            rows == -100, torch.full_like(rows, -1), rows).int() for key, rows in batch.items()}
    _save_tensors(name + ".safetensors", {**made.weights, **made.frozen, **examples})
    with open(name + ".graph", "w", encoding="ascii") as file:
        file.write(made.text)
        if expected:
            file.write("expect %s\n" % precision)
        for line, numbers in expected:
            file.write("expect %%%d %s\n" % (made.number[id(line)],
                                            " ".join(_exact(number) for number in numbers)))
        if coarse is not None:
            file.write("expect bfloat16 %s\n" % _exact(coarse))


def export(module, loss, batch, name, evaluate=True, check=True):
    """Writes name.graph and name.safetensors of a loss, with the module in the mode it is in.

    loss(module, **batch) gives one number. batch: {name: tensor}; the first axis of each counts the
    rows of a batch, which the job draws for every step. Returns the names of the parameters that no
    gradient reaches, which stay as they are.

    evaluate: the graph also says what the loss is in eval mode, for held-out data (--eval). check:
    it has what PyTorch finds in binary64 on this batch, to which `job new` holds its first step."""
    _check_rows(batch)
    (value, gradients, states), precision = _find_training(module, loss, batch)
    kinds = {}
    made = _record(module, loss, batch, gradients, states, evaluate, kinds)
    again = _record(module, loss, {key: _other(tensor.roll(1, 0)) for key, tensor in batch.items()},
                    gradients, states, evaluate, kinds, gradients)
    _compare(made, again, "the batch and the weights have other numbers")
    expected = [(made.loss, [value])] + [
        (made.lines[key], {**gradients, **states}[key]) for key in made.weights]
    coarse = _found_in_bfloat16(module, loss, batch, gradients) if check else None
    _write(made, name, batch, expected if check else [], precision, coarse)
    return made.without


def export_step(function, state, name, batch=None, check=True):
    """Writes name.graph and name.safetensors of a step without a loss: each makes states of states.

    function(state, **batch) takes {name: tensor} and returns {name: tensor}, the next values of all
    of them. batch as in export(): rows that the job draws for every step, or None."""
    batch = batch or {}
    if batch:
        _check_rows(batch)
    if not state or any(not isinstance(one, torch.Tensor) for one in state.values()):
        raise Refused("the state is {name: tensor}")

    def called(tensors, inputs):
        made = function(dict(tensors), **inputs)
        if not isinstance(made, dict) or set(made) != set(state):
            raise Refused("the step returns {name: tensor} with the names of the state")
        for key, one in made.items():
            if not isinstance(one, torch.Tensor) or one.shape != state[key].shape:
                raise Refused("the next value of '%s' has another shape" % key)
        return made

    def program(double, _):
        with Calls(None), Reference(double):
            made = called({key: _example(one, double) for key, one in state.items()},
                          {key: _example(one, double) for key, one in batch.items()})
        return {key: (_measure(made[key]), made[key].is_floating_point() or _measure(
            made[key].long() & WORD[1])) for key in state}
    found, precision = _found(program)
    kinds = {}

    def record(batch, state):
        graph = Graph()
        recorder = Recorder(graph, trains=False)
        inputs = _know_batch(graph, recorder, batch)
        tensors = {key: one.detach().clone() for key, one in state.items()}
        lines = _declare_states(graph, recorder, tensors, kinds)
        with Calls(recorder), recorder:
            after = called(tensors, inputs)
        with torch.no_grad():
            afters = _next_states(graph, recorder, lines, after, kinds)
        made = _Recording()
        made.text, names, made.number = graph.text(None, afters)
        made.weights = {key: _first(state[key], kinds[key]) for key in state}
        made.frozen = {key: graph.frozen[key] for key in names["frozen"]}
        made.lines = {line.numbers[0]: line for line in graph.declared}
        return made

    def recorded(*given):
        while True:
            try:
                return record(*given)
            except _NoCounter:
                pass
    made = recorded(batch, state)
    again = recorded({key: _other(tensor.roll(1, 0)) for key, tensor in batch.items()},
                     {key: _other(one) for key, one in state.items()})
    _compare(made, again, "it is run once more with other numbers")
    _write(made, name, batch, [(made.lines[key], found[key][kinds[key] == "u32"]) for key in state]
           if check else [], precision)
