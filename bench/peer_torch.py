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
