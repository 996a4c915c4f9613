"""What the mean of a round is: binary32, each operation rounded by itself."""
import json
import struct


def f32(number):
    return struct.unpack("<f", struct.pack("<f", number))[0]


def state(name):
    """The binary32 tensors of a file, each as a list."""
    with open(name, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    return {key: struct.unpack("<%df" % ((at["data_offsets"][1] - at["data_offsets"][0]) // 4),
                               data[at["data_offsets"][0]:at["data_offsets"][1]])
            for key, at in header.items() if key != "__metadata__" and at["dtype"] == "F32"}


def mean(values):
    """In order, each sum rounded; then times 1 / K."""
    total = values[0]
    for value in values[1:]:
        total = f32(total + value)
    return f32(total * f32(1.0 / len(values)))
