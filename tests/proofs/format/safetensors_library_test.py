"""Goal: our checkpoints open in the Hugging Face library. Method: its reader and our own second one
(reader.py, written from docs/FORMATS.md) are shown the checkpoints of the fixtures and must find the
same tensors and metadata. Skipped where the library is not installed; reader.py keeps its rules
(the header first, offsets without holes or overlaps to the end of the file) all the same."""

import importlib.util
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

import reader  # noqa: E402

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../fixtures")
FILES = ["bundle/checkpoint.safetensors", "commitments/state.safetensors"]


def compare(safe_open, name):
    path = os.path.join(FIXTURES, name)
    with open(path, "rb") as file:
        ours = reader.read_safetensors(file.read())
    with safe_open(path, framework="numpy") as theirs:
        assert sorted(theirs.keys()) == sorted(ours), name
        for tensor, (_, dims, data) in ours.items():
            array = theirs.get_tensor(tensor)
            assert list(array.shape) == dims and array.tobytes() == data, tensor
        metadata = theirs.metadata() or {}
        assert name != FILES[0] or metadata["lockstep.step"] == "10", metadata


def main():
    missing = [how for name, how in (("numpy", "numpy (Debian: python3-numpy)"),
                                     ("safetensors", "safetensors (pip install safetensors)"))
               if importlib.util.find_spec(name) is None]
    if missing:
        print("skip: %s does not have %s" % (sys.executable, " and ".join(missing)))
        return 77
    from safetensors import safe_open

    print("1..%d" % len(FILES))
    failed = 0
    for number, name in enumerate(FILES, 1):
        try:
            compare(safe_open, name)
            print("ok %d - %s" % (number, name))
        except Exception as error:  # every surprise is a failure of that test
            failed = 1
            print("not ok %d - %s: %r" % (number, name, error))
    return failed


sys.exit(main())
