"""A second reader of Lockstep's commitments, written from docs/FORMATS.md alone. Standard library
only; slow, short and independent of the C code, which is its whole worth.

Every function returns a value or raises Refused."""

import ast
import hashlib
import json
import struct

LEAF_SIZE = 1024
LEAVES_MAX = 1 << 40

# number -> (size, name in safetensors, name in .npy)
TYPES = {
    0: (4, "F32", "<f4"),
    1: (1, "U8", "|u1"),
    2: (2, "U16", "<u2"),
    3: (4, "U32", "<u4"),
    4: (2, "I16", "<i2"),
    5: (4, "I32", "<i4"),
    6: (2, "F16", "<f2"),
    7: (2, "BF16", None),
}
NAME_CHARACTERS = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/")


class Refused(Exception):
    pass


def need(condition, why):
    if not condition:
        raise Refused(why)


def sha256(data):
    return hashlib.sha256(data).digest()


# ---- section 1: trees ----

def leaf_hash(leaf):
    return sha256(b"\x00" + leaf)


def node_hash(left, right):
    return sha256(b"\x01" + left + right)


def split(count):
    """The largest power of two below count."""
    return 1 << ((count - 1).bit_length() - 1)


def tree_root(hashes):
    if not hashes:
        return sha256(b"")
    if len(hashes) == 1:
        return hashes[0]
    k = split(len(hashes))
    return node_hash(tree_root(hashes[:k]), tree_root(hashes[k:]))


def leaves_of(data):
    return [data[at:at + LEAF_SIZE].ljust(LEAF_SIZE, b"\x00")
            for at in range(0, len(data), LEAF_SIZE)]


def read_path(data):
    """-> leaf index, leaf count, siblings"""
    need(len(data) >= 18, "a path is cut short")
    index, count, n = struct.unpack_from(">QQH", data)
    need(len(data) == 18 + 32 * n, "a path has another size than its siblings")
    need(index < count <= LEAVES_MAX, "a path's index is not in the tree")
    return index, count, [data[18 + 32 * i:50 + 32 * i] for i in range(n)]


def path_root(data, hashed):
    """-> leaf index, leaf count, the root that the path leads to from this leaf hash"""
    index, count, siblings = read_path(data)
    at, last, node = index, count - 1, hashed
    siblings = list(siblings)
    while last > 0:
        if at % 2 == 1 or at < last:
            need(siblings, "a path has too few siblings")
            sibling = siblings.pop(0)
            node = node_hash(sibling, node) if at % 2 == 1 else node_hash(node, sibling)
        at, last = at // 2, last // 2
    need(not siblings, "a path has too many siblings")
    return index, count, node


def multi_root(data, hashed):
    """-> the root that a proof of many leads to; hashed: leaf index -> leaf hash"""
    need(len(data) >= 16, "a proof is cut short")
    count, m, n = struct.unpack_from(">QII", data)
    need(len(data) == 16 + 8 * m + 32 * n, "a proof has another size than it says")
    need(0 < m <= 65536 and count <= LEAVES_MAX, "a proof of too many leaves, or of none")
    indexes = struct.unpack_from(">%dQ" % m, data, 16)
    need(all(a < b for a, b in zip(indexes, indexes[1:])) and indexes[-1] < count,
         "indexes do not rise, or leave the tree")
    need(set(indexes) <= set(hashed), "a proof of a leaf that is not claimed")
    siblings = [data[16 + 8 * m + 32 * i:][:32] for i in range(n)]

    def part(first, size, inside):
        if not inside:
            need(siblings, "a proof has too few siblings")
            return siblings.pop(0)
        if size == 1:
            return hashed[first]
        k = split(size)
        left = part(first, k, [i for i in inside if i < first + k])
        return node_hash(left, part(first + k, size - k, [i for i in inside if i >= first + k]))

    root = part(0, count, list(indexes))
    need(not siblings, "a proof has too many siblings")
    return root


# ---- section 2: headers ----

def tag(name):
    return ("lockstep.%s.v1" % name).encode().ljust(32, b"\x00")


def tensor_label(kind, dtype, dims, name, size):
    """What a header holds besides its tag and its tree root."""
    count = 1
    for dim in dims:
        need(dim >= 1, "a dim is 0")
        count *= dim
    need(dtype in TYPES and len(dims) <= 4 and count <= 1 << 40, "no such type or shape")
    need(size == count * TYPES[dtype][0], "the number of bytes is not that of the shape")
    if kind == "data":
        name = ""
    else:
        need(1 <= len(name) <= 127 and set(name) <= NAME_CHARACTERS, "not a name")
    dims = list(dims) + [0] * (6 - len(dims))
    rank = 6 - dims.count(0)
    return struct.pack(">7QBBH", size, *dims, dtype, rank, len(name)) + name.encode()


def tensor_header(kind, dtype, dims, name, size, leaves_root):
    return tag(kind) + leaves_root + tensor_label(kind, dtype, dims, name, size)


def tensor_root(kind, dtype, dims, name, data):
    leaves = tree_root([leaf_hash(leaf) for leaf in leaves_of(data)])
    return sha256(tensor_header(kind, dtype, dims, name, len(data), leaves))


def list_header(kind, first, count, items_root):
    need(kind in ("segment", "program", "batch") or first == 0, "a state or a trace with a number")
    return tag(kind) + items_root + struct.pack(">QQ", first, count)


def list_root(kind, first, items):
    root = tree_root([leaf_hash(item) for item in items])
    return sha256(list_header(kind, first, len(items), root))


def job_id(data):
    return sha256(tag("job") + struct.pack(">Q", len(data)) + data)


def open_leaf(root, header, leaf, path):
    """-> the index of the leaf, when it is a leaf of the tensor with this root"""
    need(sha256(header) == root, "another header")
    need(124 <= len(header), "a header is cut short")
    size, *dims = struct.unpack_from(">7Q", header, 64)
    dtype, rank, name_size = struct.unpack_from(">BBH", header, 120)
    need(rank <= 4 and not any(dims[rank:]) and len(header) == 124 + name_size, "a bad header")
    kind = "data" if header[:32] == tag("data") else "tensor"
    need(tensor_header(kind, dtype, dims[:rank], header[124:].decode("ascii"), size,
                       header[32:64]) == header, "a bad header")
    index, count, led = path_root(path, leaf_hash(leaf))
    need(count == -(-size // LEAF_SIZE), "a path for another number of leaves")
    need(len(leaf) == LEAF_SIZE and not any(leaf[max(0, size - index * LEAF_SIZE):]),
         "bytes behind the end of the tensor")
    need(led == header[32:64], "the path leads elsewhere")
    return index


def open_item(root, kind, first, item, path):
    """-> the index of the item, when it is an item of the list with this root"""
    index, count, led = path_root(path, leaf_hash(item))
    need(sha256(list_header(kind, first, count, led)) == root, "the path leads elsewhere")
    return index


# ---- files of others ----

def no_duplicates(pairs):
    need(len(pairs) == len(dict(pairs)), "a key is there twice")
    return dict(pairs)


def read_safetensors(data):
    """-> name -> (type number, dims, bytes)"""
    need(len(data) >= 8, "a file is cut short")
    size, = struct.unpack_from("<Q", data)
    need(size <= len(data) - 8, "a header is cut short")
    header = json.loads(data[8:8 + size], object_pairs_hook=no_duplicates)
    header.pop("__metadata__", None)
    numbers = {names[1]: number for number, names in TYPES.items()}
    body, tensors, covered = data[8 + size:], {}, 0
    for name, entry in sorted(header.items(), key=lambda pair: pair[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        need(begin == covered and end >= begin, "a hole or an overlap")
        tensors[name] = (numbers[entry["dtype"]], entry["shape"], body[begin:end])
        covered = end
    need(covered == len(body), "bytes that belong to no tensor")
    return tensors


def read_npy(data):
    """-> type number, dims, bytes"""
    need(data[:6] == b"\x93NUMPY" and data[6] in (1, 2, 3), "not an .npy file")
    start = 10 if data[6] == 1 else 12
    size = int.from_bytes(data[8:start], "little")
    header = ast.literal_eval(data[start:start + size].decode("utf-8"))
    need(not header["fortran_order"], "Fortran order")
    numbers = {names[2]: number for number, names in TYPES.items() if names[2]}
    return numbers[header["descr"]], list(header["shape"]), data[start + size:]
