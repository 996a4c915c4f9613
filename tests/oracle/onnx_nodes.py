"""Gives the published node tests of ONNX to our kinds. Prints TAP, and a table of what is covered.

argv[1] is the program onnx_nodes_test. Each node test whose attributes our kinds have becomes a tape
of a few operations; its inputs and expected outputs are those that Debian's python3-onnx makes.
Pictures are (batch, height, width, channels) here and (batch, channels, height, width) in ONNX.
"""

import importlib
import re
import subprocess
import sys
import warnings

import numpy as np

warnings.simplefilter("ignore")
for name, value in (("float", float), ("bool", bool), ("object", object), ("int", int)):
    if name not in np.__dict__:  # which the package still names
        setattr(np, name, value)

import onnx  # noqa: E402
from onnx.backend.test.case import node as cases  # noqa: E402
from onnx.backend.test.case.utils import import_recursive  # noqa: E402,F401

TYPES = ["f32", "u8", "u16", "u32", "i16", "i32", "f16", "bf16"]
MAPS = ["Neg", "Abs", "Sign", "Floor", "Ceil", "Round", "Sqrt", None, "Reciprocal", "Exp", "Log",
        "Tanh", "Sigmoid", "Erf", "Sin", "Cos", None, None, None, "Relu"]
SCALE = 18  # of MAP, by its constant
BINARIES = {"Add": 0, "Sub": 1, "Mul": 2, "Div": 3, "Max": 4, "Min": 5, "Pow": 6, "Less": 7,
            "LessOrEqual": 8, "Equal": 9}
MODULES = (
    "abs add and argmax argmin averagepool cast ceil concat conv cos depthtospace div equal erf exp "
    "expand flatten floor gather gatherelements gemm globalaveragepool globalmaxpool greater "
    "greater_equal identity layernormalization less less_equal log logsoftmax matmul max maxpool "
    "min momentum mul adam neg pad pow reciprocal reducemean reducemax reducemin reducesum relu "
    "round sigmoid sign sin slice softmax softmaxcrossentropy spacetodepth split sqrt sub tanh tile "
    "transpose where onehot").split()


class Skip(Exception):
    """Why our kinds do not have it."""


class Tape:
    def __init__(self):
        self.tensors, self.ops = [], []

    def given(self, array, kind=None):
        array = np.asarray(array)
        kind = kind or {"float32": "f32", "float16": "f16", "uint32": "u32", "uint8": "u8"}.get(
            str(array.dtype))
        if kind is None:
            raise Skip("numbers of type %s" % array.dtype)
        if array.size == 0:
            raise Skip("an empty tensor")
        bits = array.reshape(-1)
        bits = bits.view(np.uint32) if kind == "f32" else bits.view(
            np.uint16) if kind == "f16" else bits
        self.tensors.append((kind, array.size, [int(b) for b in bits]))
        return len(self.tensors) - 1

    def op(self, kind, attributes, inputs, outputs):
        """outputs: (type, count) each; returns their ids."""
        ids = []
        for dtype, count in outputs:
            self.tensors.append((dtype, int(count), None))
            ids.append(len(self.tensors) - 1)
        self.ops.append((kind, [int(a) for a in attributes], inputs, ids))
        return ids

    def line(self, kinds):
        words = [len(self.tensors)]
        for dtype, count, bits in self.tensors:
            words += [TYPES.index(dtype), count, 0 if bits is None else 1] + (bits or [])
        words.append(len(self.ops))
        for kind, attributes, inputs, outputs in self.ops:
            words += [kinds.index(kind), len(attributes), *attributes, len(inputs), *inputs,
                      len(outputs), *outputs]
        return " ".join(map(str, words))


def bits_of(value):
    return int(np.float32(value).view(np.uint32))


def need(condition, why):
    if not condition:
        raise Skip(why)


def strides_of(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return strides


def broadcast(shape, to):
    """The strides of an operand in a result of four axes."""
    shape = (1,) * (len(to) - len(shape)) + tuple(shape)
    strides = [0 if size == 1 else step for size, step in zip(shape, strides_of(shape))]
    return [0] * (4 - len(to)) + strides


def padded(dims, rank, fill=1):
    need(len(dims) <= rank, "more than %d axes" % rank)
    return [fill] * (rank - len(dims)) + list(dims)


# ---- each returns (what the replies are, as arrays in the order of the test's outputs) ------------


def floats(tape, *arrays):
    for array in arrays:
        need(array.dtype == np.float32, "numbers of type %s" % array.dtype)
    return [tape.given(a) for a in arrays]


def map_node(tape, node, attributes, x):
    ids = floats(tape, x[0])
    tape.op("map", [MAPS.index(node.op_type), 0], ids, [("f32", x[0].size)])
    return [lambda out: out[0].view(np.float32).reshape(x[0].shape)]


def binary(tape, node, attributes, x):
    need(len(x) == 2, "%d operands" % len(x))
    exchanged = node.op_type in ("Greater", "GreaterOrEqual")
    function = {"Greater": 7, "GreaterOrEqual": 8}.get(node.op_type)
    function = BINARIES[node.op_type] if function is None else function
    a, b = (x[1], x[0]) if exchanged else (x[0], x[1])
    shape = np.broadcast_shapes(a.shape, b.shape)
    ids = floats(tape, a, b)
    tape.op("binary", [function, *padded(shape, 4), *broadcast(a.shape, shape),
                       *broadcast(b.shape, shape)], ids, [("f32", np.prod(shape))])
    return [lambda out: out[0].view(np.float32).reshape(shape)]


def where(tape, node, attributes, x):
    shape = np.broadcast_shapes(*(a.shape for a in x))
    ids = [tape.given(x[0].astype(np.uint8)), *floats(tape, x[1], x[2])]
    tape.op("select", [*padded(shape, 4), *(s for a in x for s in broadcast(a.shape, shape))], ids,
            [("f32", np.prod(shape))])
    return [lambda out: out[0].view(np.float32).reshape(shape)]


def moved(tape, x, dims, strides, offset, shape):
    """MOVE: neighbouring axes that lie alike join, so that five suffice."""
    joined = []
    for size, step in zip(dims, strides):
        if size == 1:
            continue
        if joined and joined[-1][1] == size * step and step != 0:
            joined[-1] = (joined[-1][0] * size, step)
        else:
            joined.append((size, step))
    need(len(joined) <= 5, "more than five axes")
    dims = padded([d for d, _ in joined], 5)
    steps = padded([s for _, s in joined], 5, 0)
    tape.op("move", [*dims, *steps, offset], floats(tape, x), [("f32", np.prod(shape))])
    return [lambda out: out[0].view(np.float32).reshape(shape)]


def transpose(tape, node, attributes, x):
    order = attributes.get("perm", list(reversed(range(x[0].ndim))))
    shape = tuple(x[0].shape[i] for i in order)
    steps = strides_of(x[0].shape)
    return moved(tape, x[0], shape, [steps[i] for i in order], 0, shape)


def slice_node(tape, node, attributes, x):
    data, starts, ends = x[:3]
    axes = x[3] if len(x) > 3 else range(len(starts))
    steps = x[4] if len(x) > 4 else [1] * len(starts)
    cut = [slice(None)] * data.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps):
        below = end < -data.shape[axis]
        cut[axis] = slice(int(start), None if below else int(end), int(step))
    ranges = [range(*c.indices(size)) for c, size in zip(cut, data.shape)]
    shape = tuple(len(r) for r in ranges)
    need(all(shape), "an empty result")
    own = strides_of(data.shape)
    return moved(tape, data, shape, [r.step * s for r, s in zip(ranges, own)],
                 sum(r.start * s for r, s in zip(ranges, own)), shape)


def expand(tape, node, attributes, x):
    shape = np.broadcast_shapes(x[0].shape, tuple(int(n) for n in x[1]))
    return moved(tape, x[0], padded(shape, 4), broadcast(x[0].shape, shape), 0, shape)


def tile(tape, node, attributes, x):
    need(x[1].dtype == np.int64 and len(x[1]) == x[0].ndim, "an older form")
    dims, steps = [], []
    for repeat, size, step in zip(x[1], x[0].shape, strides_of(x[0].shape)):
        dims += [int(repeat), size]
        steps += [0, step]
    return moved(tape, x[0], dims, steps, 0, tuple(x[0].shape * x[1]))


def identity(tape, node, attributes, x):
    need(isinstance(x[0], np.ndarray), "a sequence")
    return moved(tape, x[0], [x[0].size], [1], 0, x[0].shape)


def flatten(tape, node, attributes, x):
    axis = attributes.get("axis", 1)
    rows = int(np.prod(x[0].shape[:axis]))
    return moved(tape, x[0], [x[0].size], [1], 0, (rows, x[0].size // rows))


def depth(tape, node, attributes, x):
    """DepthToSpace and SpaceToDepth are one move each."""
    n, c, h, w = x[0].shape
    b = attributes["blocksize"]
    if node.op_type == "SpaceToDepth":
        view = x[0].reshape(n, c, h // b, b, w // b, b)
        order, shape = (0, 3, 5, 1, 2, 4), (n, c * b * b, h // b, w // b)
    elif attributes.get("mode", b"DCR") == b"DCR":
        view = x[0].reshape(n, b, b, c // (b * b), h, w)
        order, shape = (0, 3, 4, 1, 5, 2), (n, c // (b * b), h * b, w * b)
    else:
        view = x[0].reshape(n, c // (b * b), b, b, h, w)
        order, shape = (0, 1, 4, 2, 5, 3), (n, c // (b * b), h * b, w * b)
    steps = strides_of(view.shape)
    return moved(tape, x[0], [view.shape[i] for i in order], [steps[i] for i in order], 0, shape)


def pad(tape, node, attributes, x):
    need(attributes.get("mode", b"constant") == b"constant", "padding that repeats the edge")
    before, after = np.split(np.asarray(x[1]), 2)
    shape = tuple(int(b + s + a) for b, s, a in zip(before, x[0].shape, after))
    need(all(n >= 0 for n in x[1]), "padding that cuts")
    ids = floats(tape, x[0], np.float32(x[2]).reshape(1))
    own = strides_of(shape)
    tape.op("place", [*padded(x[0].shape, 5), *padded(own, 5, 0),
                      sum(int(b) * s for b, s in zip(before, own))], ids, [("f32", np.prod(shape))])
    return [lambda out: out[0].view(np.float32).reshape(shape)]


def concat(tape, node, attributes, x):
    axis = attributes["axis"] % x[0].ndim
    rows = int(np.prod(x[0].shape[:axis]))
    widths = [a.size // rows for a in x]
    shape = list(x[0].shape)
    shape[axis] = sum(a.shape[axis] for a in x)
    tape.op("concat", [rows, *widths], floats(tape, *x), [("f32", sum(widths) * rows)])
    return [lambda out: out[0].view(np.float32).reshape(shape)]


def split(tape, node, attributes, x):
    axis = attributes.get("axis", 0) % x[0].ndim
    count = len(node.output)
    parts = [int(n) for n in x[1]] if len(x) > 1 else [x[0].shape[axis] // count] * count
    need(all(parts), "an empty part")
    rows = int(np.prod(x[0].shape[:axis]))
    inner = int(np.prod(x[0].shape[axis + 1:]))
    tape.op("split", [rows, *(p * inner for p in parts)], floats(tape, x[0]),
            [("f32", rows * p * inner) for p in parts])

    def part(i):
        shape = [*x[0].shape[:axis], parts[i], *x[0].shape[axis + 1:]]
        return lambda out: out[i].view(np.float32).reshape(shape)

    return [part(i) for i in range(count)]


def cast(tape, node, attributes, x):
    narrow = {onnx.TensorProto.FLOAT: "f32", onnx.TensorProto.FLOAT16: "f16",
              onnx.TensorProto.BFLOAT16: "bf16"}
    to = narrow.get(attributes["to"])
    source = {np.dtype("float32"): "f32", np.dtype("float16"): "f16"}.get(x[0].dtype)
    if x[0].dtype == np.uint16:  # as the package holds bfloat16
        source = "bf16"
    need(to is not None and source is not None, "another type")
    need((to == "f32") != (source == "f32"), "not from or to binary32")
    ids = [tape.given(x[0], source)]
    tape.op("cast", [], ids, [(to, x[0].size)])
    held = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16}[to]
    return [lambda out: (out[0].view(held) if to == "f32" else out[0].astype(np.uint16).view(
        held)).reshape(x[0].shape)]


def rows_of(x, axis):
    need(axis % x.ndim == x.ndim - 1, "not along the last axis")
    return x.size // x.shape[-1], x.shape[-1]


def softmax(tape, node, attributes, x):
    rows, columns = rows_of(x[0], attributes.get("axis", -1))
    tape.op("softmax", [rows, columns, 0, bits_of(1)], floats(tape, x[0]),
            [("f32", rows)] * 2 + [("f32", x[0].size)] + [("f32", rows)] * 2 + [("f32", x[0].size)])
    return [lambda out: out[5].view(np.float32).reshape(x[0].shape)]


def layer_norm(tape, node, attributes, x):
    rows, columns = rows_of(x[0], attributes.get("axis", -1))
    one = [("f32", rows)]
    tape.op("layer-norm", [rows, columns, bits_of(attributes.get("epsilon", 1e-5))],
            floats(tape, *x), one * 4 + [("f32", x[0].size)])
    shape = x[0].shape[:-1] + (1,)
    return [lambda out: out[4].view(np.float32).reshape(x[0].shape),
            lambda out: out[1].view(np.float32).reshape(shape),
            lambda out: out[3].view(np.float32).reshape(shape)]


def reduced_shape(x, keep):
    return x.shape[:-1] + ((1,) if keep else ())


def extreme(tape, node, attributes, x):
    index = node.op_type.startswith("Arg")
    need(not attributes.get("select_last_index", 0), "the last of equals")
    axes = [attributes.get("axis", 0)] if index else attributes.get("axes", range(x[0].ndim))
    if list(axes) == list(range(x[0].ndim)) and not index:
        rows, columns = 1, x[0].size
        shape = (1,) * x[0].ndim if attributes.get("keepdims", 1) else ()
    else:
        need(len(axes) == 1, "several axes")
        rows, columns = rows_of(x[0], axes[0])
        shape = reduced_shape(x[0], attributes.get("keepdims", 1))
    tape.op("reduce", [rows, columns, 1 if "Min" in node.op_type else 0], floats(tape, x[0]),
            [("f32", rows), ("u32", rows)] * 2)
    if index:
        return [lambda out: out[3].astype(np.int64).reshape(shape)]
    return [lambda out: out[2].view(np.float32).reshape(shape)]


def row_sum(tape, node, attributes, x):
    axes = attributes.get("axes", list(x[1]) if len(x) > 1 else [])
    need(len(axes) or not attributes.get("noop_with_empty_axes", 0), "nothing to do")
    rows, columns = 1, x[0].size
    shape = (1,) * x[0].ndim if attributes.get("keepdims", 1) else ()
    if len(axes) and sorted(a % x[0].ndim for a in axes) != list(range(x[0].ndim)):
        need(len(axes) == 1, "several axes")
        rows, columns = rows_of(x[0], int(axes[0]))
        shape = reduced_shape(x[0], attributes.get("keepdims", 1))
    made = tape.op("row-sum", [rows, columns], floats(tape, x[0]), [("f32", rows)] * 2)
    if node.op_type == "ReduceMean":
        tape.op("map", [SCALE, bits_of(1 / columns)], [made[1]], [("f32", rows)])
        return [lambda out: out[0].view(np.float32).reshape(shape)]
    return [lambda out: out[1].view(np.float32).reshape(shape)]


def gather(tape, node, attributes, x):
    need(attributes.get("axis", 0) == 0, "not along the first axis")
    width = x[0].size // x[0].shape[0]
    index = (x[1] % x[0].shape[0]).astype(np.uint32)
    ids = [*floats(tape, x[0]), tape.given(index)]
    tape.op("gather", [x[0].shape[0], width], ids, [("f32", index.size * width)])
    return [lambda out: out[0].view(np.float32).reshape(x[1].shape + x[0].shape[1:])]


def products(tape, a, b, batches, m, n, k):
    """a (batches, m, k) by b (batches, n, k), at 22 bits: ids of the operands to the result's."""
    made = []
    for x, rows in ((a, m), (b, n)):
        pieces, every = -(-k // 128), batches * rows
        made.append(tape.op("quantize", [1, batches, 1, rows, 1, k, every * k, rows * k, rows * k, k,
                                         k, 1, 22, 0], [x],
                            [("i16", every * pieces), ("i16", every), ("i32", every * k)]))
    qa, qb = made
    return tape.op("contract", [1, batches, 1, m, 1, n, batches * m * n, m * n, m * n, n, n, 1, k,
                                22, 0, 0], [qa[2], qa[1], qb[2], qb[1]],
                   [("f32", batches * m * n)])[0]


def matmul(tape, node, attributes, x):
    a, b = x
    need(a.ndim >= 2 and a.shape[:-2] == b.shape[:-2], "batches that repeat")
    batches, (m, k), n = int(np.prod(a.shape[:-2])), a.shape[-2:], b.shape[-1]
    ids = floats(tape, a, np.ascontiguousarray(np.swapaxes(b, -1, -2)))
    products(tape, *ids, batches, m, n, k)
    return [lambda out: out[0].view(np.float32).reshape(a.shape[:-1] + (n,))]


def gemm(tape, node, attributes, x):
    a = x[0].T if attributes.get("transA", 0) else x[0]
    b = x[1] if attributes.get("transB", 0) else x[1].T
    (m, k), n = a.shape, b.shape[0]
    ids = floats(tape, np.ascontiguousarray(a), np.ascontiguousarray(b))
    y = products(tape, *ids, 1, m, n, k)
    y = tape.op("map", [SCALE, bits_of(attributes.get("alpha", 1))], [y], [("f32", m * n)])[0]
    if len(x) > 2:
        c = tape.op("map", [SCALE, bits_of(attributes.get("beta", 1))], floats(tape, x[2]),
                    [("f32", x[2].size)])[0]
        tape.op("binary", [0, *padded((m, n), 4), *broadcast((m, n), (m, n)),
                           *broadcast(x[2].shape, (m, n))], [y, c], [("f32", m * n)])
    return [lambda out: out[0].view(np.float32).reshape(m, n)]


def window(x, attributes, kernel):
    """The attributes of a window, and the picture with its channels last."""
    need(x.ndim == 4, "not two axes of pictures")
    need(attributes.get("auto_pad", b"NOTSET") in (b"NOTSET", b"VALID"), "padding by a rule")
    need(not attributes.get("ceil_mode", 0), "windows that end outside")
    need(not attributes.get("storage_order", 0), "another order of places")
    n, c, h, w = x.shape
    pads = attributes.get("pads", [0] * 4)
    strides = attributes.get("strides", [1, 1])
    dilations = attributes.get("dilations", [1, 1])
    image = [n, h, w, c, *kernel, *strides, *pads, *dilations]
    size = [(pads[i] + (h, w)[i] + pads[i + 2] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1
            for i in range(2)]
    return image, np.ascontiguousarray(x.transpose(0, 2, 3, 1)), size


def channels_first(n, size, c):
    return lambda out: out.view(np.float32).reshape(n, *size, c).transpose(0, 3, 1, 2)


def pool(tape, node, attributes, x):
    whole = node.op_type.startswith("Global")
    kernel = list(x[0].shape[2:]) if whole else attributes["kernel_shape"]
    need(len(kernel) == 2 and kernel[0] * kernel[1] <= 64, "a window of another size")
    image, picture, size = window(x[0], attributes, kernel)
    n, c = x[0].shape[:2]
    count = n * c * size[0] * size[1]
    back = channels_first(n, size, c)
    ids = floats(tape, picture)
    if "Average" in node.op_type:
        tape.op("mean-pool", [*image, attributes.get("count_include_pad", 0)], ids, [("f32", count)])
        return [lambda out: back(out[0])]
    need(len(node.output) == 1, "places in the whole picture")
    tape.op("max-pool", image, ids, [("f32", count), ("u32", count)])
    return [lambda out: back(out[0])]


def conv(tape, node, attributes, x):
    need(attributes.get("group", 1) == 1 and len(x) == 2, "groups or a bias")
    out_c, in_c, kh, kw = x[1].shape
    image, picture, size = window(x[0], attributes, [kh, kw])
    rows, k = x[0].shape[0] * size[0] * size[1], kh * kw * in_c
    weight = np.ascontiguousarray(x[1].transpose(0, 2, 3, 1))
    ids = floats(tape, picture, weight)
    columns = tape.op("im2col", image, ids[:1], [("f32", rows * k)])[0]
    products(tape, columns, ids[1], 1, rows, out_c, k)
    back = channels_first(x[0].shape[0], size, out_c)
    return [lambda out: back(out[0])]


def cross_entropy(tape, node, attributes, x):
    need(len(x) == 2, "weights of classes")
    need(len(node.output) == 1, "logarithms of all")
    logits = np.ascontiguousarray(np.moveaxis(x[0], 1, -1))
    target = x[1].astype(np.int64)
    ignored = attributes.get("ignore_index")
    target = np.where(target == ignored, 2**32 - 1, target).astype(np.uint32)
    rows, columns = target.size, x[0].shape[1]
    ids = [*floats(tape, logits), tape.given(target)]
    one = [("f32", rows)]
    tape.op("cross-entropy", [rows, columns], ids,
            one * 2 + [("f32", rows * columns)] + one * 3)
    reduction = attributes.get("reduction", b"mean")
    counted = (target != 2**32 - 1).sum() if reduction == b"mean" else 1
    if reduction == b"none":
        return [lambda out: out[5].view(np.float32).reshape(x[1].shape)]
    return [lambda out: out[5].view(np.float32).astype(np.float64).sum() / counted]


def momentum(tape, node, attributes, x):
    need(len(x) == 5 and attributes["mode"] == b"standard" and attributes["beta"] == 1.0,
         "Nesterov's, several, or another share of the gradient")
    rate, _, p, g, v = x
    ids = floats(tape, p, g, v, np.float32(rate).reshape(1), np.ones(1, np.float32))
    tape.op("sgd", [bits_of(attributes["alpha"]), bits_of(attributes["norm_coefficient"])], ids,
            [("f32", p.size)] * 2)
    return [lambda out, i=i: out[i].view(np.float32).reshape(p.shape) for i in range(2)]


def adam(tape, node, attributes, x):
    need(len(x) == 6, "several tensors")
    rate, step, p, g, m, v = x
    a, b = attributes["alpha"], attributes["beta"]
    g = (attributes["norm_coefficient"] * p + g).astype(np.float32)
    step = int(step)
    correct = np.sqrt(1 - b**step) / (1 - a**step) if step > 0 else 1.0
    ids = floats(tape, p, g, m, v, np.float32(rate).reshape(1),
                 np.float32(correct).reshape(1), np.ones(1, np.float32), np.ones(1, np.float32))
    tape.op("adamw", [bits_of(a), bits_of(1 - a), bits_of(b), bits_of(1 - b),
                      bits_of(attributes["epsilon"]), 0], ids, [("f32", p.size)] * 3)
    return [lambda out, i=i: out[i].view(np.float32).reshape(p.shape) for i in range(3)]


NODES = {
    **{name: (map_node,) for name in MAPS if name},
    **{name: (binary,) for name in (*BINARIES, "Greater", "GreaterOrEqual")},
    "Where": (where,),
    "Transpose": (transpose,), "Slice": (slice_node,), "Expand": (expand,), "Tile": (tile,),
    "Identity": (identity,), "Flatten": (flatten,), "DepthToSpace": (depth,),
    "SpaceToDepth": (depth,), "Pad": (pad,), "Concat": (concat,), "Split": (split,),
    "Cast": (cast,), "Softmax": (softmax,), "LayerNormalization": (layer_norm,),
    "ArgMax": (extreme,), "ArgMin": (extreme,), "ReduceMax": (extreme,), "ReduceMin": (extreme,),
    "ReduceSum": (row_sum,), "ReduceMean": (row_sum,), "Gather": (gather,), "MatMul": (matmul,),
    "Gemm": (gemm,), "MaxPool": (pool,), "AveragePool": (pool,), "GlobalMaxPool": (pool,),
    "GlobalAveragePool": (pool,), "Conv": (conv,), "SoftmaxCrossEntropyLoss": (cross_entropy,),
    "Momentum": (momentum,), "Adam": (adam,),
}


def attributes_of(node):
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def published():
    """(name, node, inputs, outputs, tolerances) of every test of one node."""
    for module in MODULES:
        try:
            importlib.import_module("onnx.backend.test.case.node." + module)
        except ImportError:
            pass  # another release has no such tests
    for case in cases._NodeTestCases:
        nodes = case.model.graph.node
        if len(nodes) == 1 and nodes[0].op_type in NODES:
            for inputs, outputs in case.data_sets:
                yield case.name, nodes[0], list(inputs), list(outputs), case.rtol, case.atol


def run(program, lines):
    done = subprocess.run([program, "run"], input="\n".join(lines) + "\n", text=True,
                          stdout=subprocess.PIPE)
    assert done.returncode == 0, done.stdout[-2000:]
    replies = [line for line in done.stdout.splitlines() if re.fullmatch("[0-9 ,]+", line)]
    assert len(replies) == len(lines), (len(replies), len(lines), done.stdout[-500:])
    return [[np.array(part.split(), dtype=np.int64).astype(np.uint32) for part in reply.split(",")]
            for reply in replies]


def close(found, expected, rtol, atol):
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape:
        return False
    return np.allclose(found.astype(np.float64), expected.astype(np.float64), rtol=rtol, atol=atol,
                       equal_nan=True)


def main():
    program = sys.argv[1]
    kinds = subprocess.run([program, "kinds"], stdout=subprocess.PIPE, text=True,
                           check=True).stdout.split()
    lines, wanted, passed_over = [], [], {}
    covered = {kind: set() for kind in kinds}
    for name, node, inputs, outputs, rtol, atol in published():
        for write in NODES[node.op_type]:
            tape = Tape()
            try:
                results = write(tape, node, attributes_of(node), inputs)
                lines.append(tape.line(kinds))
            except Skip as why:
                passed_over.setdefault("%s: %s" % (node.op_type, why), []).append(name)
                continue
            for kind, _, _, _ in tape.ops:
                covered[kind].add(node.op_type)
            wanted.append((name, write.__name__, results, outputs, rtol, atol))
    replies = run(program, lines)
    failed = 0
    print("1..%d" % (len(wanted) + 1))
    for number, (reply, want) in enumerate(zip(replies, wanted), 1):
        name, writer, results, outputs, rtol, atol = want
        good = all(close(result(reply), output, max(rtol, 1e-5), max(atol, 1e-6))
                   for result, output in zip(results, outputs))
        failed += not good
        print("%s %d - %s (%s)" % ("ok" if good else "not ok", number, name, writer))
        if not good:
            print("#   found %s, expected %s" % (results[0](reply).reshape(-1)[:6],
                                                np.asarray(outputs[0]).reshape(-1)[:6]))
    few = [k for k in ("map", "binary", "select", "move", "place", "cast", "reduce", "contract",
                       "im2col", "max-pool", "mean-pool", "softmax", "gather") if not covered[k]]
    print("%s %d - the kinds that ONNX has are covered%s" % (
        "not ok" if few else "ok", len(wanted) + 1, ": none of " + ", ".join(few) if few else ""))
    print("# kind: nodes of ONNX")
    for kind in kinds:
        print("#   %-22s %s" % (kind, ", ".join(sorted(covered[kind])) or "-"))
    print("# passed over, with the reason")
    for why, names in sorted(passed_over.items()):
        print("#   %s (%d)" % (why, len(names)))
    return 1 if failed or few else 0


sys.exit(main())
