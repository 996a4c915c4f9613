"""What the PyTorch children of the benches share: the threads are set before the libraries read them,
and each answer is a line of JSON. Not a program."""
import json
import math
import os
import sys


def say(**answer):
    print(json.dumps(answer), flush=True)


def load(threads):
    """Returns numpy, torch and torch.nn.functional; without them it says so and ends the program."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # read once, by who loads them
        os.environ[name] = str(threads)
    try:
        import numpy
        import torch
        import torch.nn.functional as functional
    except ImportError as error:
        say(error=str(error))
        sys.exit(0)
    torch.set_num_threads(threads)
    return numpy, torch, functional


def read(dtype, *shape):
    """An array from standard input, whose end is the program's."""
    import numpy

    count = math.prod(shape) * numpy.dtype(dtype).itemsize
    data = sys.stdin.buffer.read(count)
    if len(data) != count:
        sys.exit(0)
    return numpy.frombuffer(data, dtype).reshape(shape)


def read_folder(folder):
    """The config and the weights of a folder in bfloat16, as float32: tensor by tensor, so that no
    second copy of the whole exists."""
    import numpy
    import torch

    with open(os.path.join(folder, "config.json"), encoding="ascii") as file:
        config = json.load(file)
    name = os.path.join(folder, "model.safetensors")
    with open(name, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    weights = {}
    for tensor, about in header.items():
        if tensor != "__metadata__":
            first, last = about["data_offsets"]
            bits = numpy.fromfile(name, "<u2", (last - first) // 2, offset=8 + size + first)
            weights[tensor] = torch.from_numpy(
                (bits.astype("<u4") << 16).view("<f4")).view(about["shape"])
    return config, weights
