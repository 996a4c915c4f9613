"""Goal: docs/FORMATS.md says enough. Method: reader.py, which knows nothing else, makes the roots
of fixtures/commitments again, accepts its proofs and refuses them with any byte changed."""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../../support")]
sys.dont_write_bytecode = True

import reader  # noqa: E402
import tap  # noqa: E402

FOLDER = os.path.join(HERE, "../../../fixtures/commitments")


def load(name):
    with open(os.path.join(FOLDER, name), "rb") as file:
        return file.read()


VECTORS = json.loads(load("vectors.json"))
STATE = reader.read_safetensors(load("state.safetensors"))


def digests(texts):
    return [bytes.fromhex(text) for text in texts]


def refused(function, *arguments):
    try:
        function(*arguments)
    except reader.Refused:
        return True
    return False


def each_change(data):
    """data with each byte changed once, cut short by one, and one byte longer"""
    for at in range(len(data)):
        yield data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1:]
    yield data[:-1]
    yield data + b"\x00"


def state_and_tensor_roots_are_recomputed_from_the_checkpoint():
    vectors = VECTORS["state"]
    roots = []
    for name in vectors["order"]:
        dtype, dims, data = STATE[name]
        roots.append(reader.tensor_root("tensor", dtype, dims, name, data))
    assert roots == digests(vectors["tensor_roots"])
    assert reader.list_root("state", 0, roots).hex() == vectors["root"]


def data_root_is_recomputed_from_the_npy_file():
    dtype, dims, data = reader.read_npy(load("tokens.npy"))
    assert reader.tensor_root("data", dtype, dims, "", data).hex() == VECTORS["data"]["root"]


def list_roots_and_the_job_id_are_recomputed():
    for kind in ("segment", "trace", "program", "batch"):
        vectors = VECTORS[kind]
        root = reader.list_root(kind, vectors.get("first", 0), digests(vectors["items"]))
        assert root.hex() == vectors["root"], kind
    assert reader.job_id(bytes.fromhex(VECTORS["job"]["bytes"])).hex() == VECTORS["job"]["id"]


def opened_leaf_is_accepted_and_changed_ones_are_refused():
    vectors = VECTORS["leaf"]
    place = VECTORS["state"]["order"].index(vectors["tensor"])
    root = bytes.fromhex(VECTORS["state"]["tensor_roots"][place])
    header, leaf, path = (bytes.fromhex(vectors[key]) for key in ("header", "leaf", "path"))
    index = reader.open_leaf(root, header, leaf, path)
    data = STATE[vectors["tensor"]][2]
    assert leaf == reader.leaves_of(data)[index]
    for changed in each_change(header):
        assert refused(reader.open_leaf, root, changed, leaf, path)
    for changed in each_change(leaf):
        assert refused(reader.open_leaf, root, header, changed, path)
    for changed in each_change(path):
        assert refused(reader.open_leaf, root, header, leaf, changed)


def opened_items_are_accepted_and_changed_ones_are_refused():
    for kind in ("state", "segment", "trace", "batch"):
        vectors = VECTORS[kind]
        root, first = bytes.fromhex(vectors["root"]), vectors.get("first", 0)
        item, path = (bytes.fromhex(vectors["opening"][key]) for key in ("item", "path"))
        items = vectors["tensor_roots" if kind == "state" else "items"]
        assert items[reader.open_item(root, kind, first, item, path)] == item.hex()
        for changed in each_change(item):
            assert refused(reader.open_item, root, kind, first, changed, path)
        for changed in each_change(path):
            assert refused(reader.open_item, root, kind, first, item, changed)


def proof_of_many_leaves_is_accepted_and_changed_ones_are_refused():
    vectors = VECTORS["multi"]
    proof, root = bytes.fromhex(vectors["proof"]), bytes.fromhex(vectors["root"])
    hashes = dict(enumerate(digests(vectors["leaf_hashes"])))
    assert reader.multi_root(proof, hashes) == root
    assert reader.tree_root(list(hashes.values())) == root
    for at, changed in enumerate(each_change(proof)):
        # Bytes 0 to 7 are the leaf count, which a proof alone does not bind.
        assert (refused(reader.multi_root, changed, hashes)
                or reader.multi_root(changed, hashes) != root or at < 8), at


TESTS = [
    state_and_tensor_roots_are_recomputed_from_the_checkpoint,
    data_root_is_recomputed_from_the_npy_file,
    list_roots_and_the_job_id_are_recomputed,
    opened_leaf_is_accepted_and_changed_ones_are_refused,
    opened_items_are_accepted_and_changed_ones_are_refused,
    proof_of_many_leaves_is_accepted_and_changed_ones_are_refused,
]


sys.exit(tap.run(TESTS))
