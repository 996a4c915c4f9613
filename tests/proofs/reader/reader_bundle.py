"""The second reader, of what a run leaves on disk: tapes, jobs, journals, checkpoints, openings.
Written from docs/FORMATS.md, sections 4 to 8, and from the first states of docs/ARITHMETIC.md.
Standard library only; slow, short and independent of the C code."""

import hashlib
import math
import struct

from reader import (TYPES, LEAF_SIZE, Refused, job_id, leaf_hash, list_header, list_root, need,
                    open_item, open_leaf, read_safetensors, sha256, tag, tensor_label, tensor_root,
                    tree_root)

ROLE_STATE, ROLE_DATA, ROLE_CONSTANT, ROLE_INPUT = 1, 2, 3, 4
NONE = 0xFFFFFFFF
REPEATED, BINARY = 0x4000, 34  # added to the kind of an operation; the kind of a sum
NEVER = 2**64 - 1


class Bytes:
    """Reads front to back and never past the end."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size):
        need(size <= len(self.data) - self.at, "the bytes end early")
        self.at += size
        return self.data[self.at - size:self.at]

    def numbers(self, form):
        return struct.unpack(">" + form, self.take(struct.calcsize(">" + form)))

    def number(self, form):
        return self.numbers(form)[0]

    def left(self):
        return len(self.data) - self.at

    def end(self):
        need(self.at == len(self.data), "bytes behind the end")


def count_of(dims):
    count = 1
    for dim in dims:
        count *= dim
    return count


# ---- section 4: tapes ----

class Tensor:
    def __init__(self, name, dtype, role, dims):
        self.name, self.dtype, self.role, self.dims = name, dtype, role, dims
        self.count = count_of(dims)
        self.size = self.count * TYPES[dtype][0]


def read_tape(data):
    """-> tensors, operations as (kind, attributes, inputs, outputs), states, loss, repeat (None: the
    micro-batches are not repeated)"""
    source = Bytes(data)
    need(source.take(8) == b"LSTAPE\x00\x02", "not a tape")
    tensor_count, op_count, state_count, loss = source.numbers("IIII")
    tensors, operations = [], []
    for _ in range(tensor_count):
        name = source.take(source.number("B")).decode("ascii")
        dtype, role, rank = source.numbers("BBB")
        need(dtype in TYPES and role <= 5 and rank <= 4, "no such type, role or rank")
        tensors.append(Tensor(name, dtype, role, list(source.numbers("%dQ" % rank))))
    for _ in range(op_count):
        kind, a, i, o = source.numbers("HBBB")
        operations.append((kind, source.numbers("%dq" % a), source.numbers("%dI" % i),
                           source.numbers("%dI" % o)))
    states = [source.numbers("IIBI") for _ in range(state_count)]
    repeat = Repeat(source, tensors, operations) if source.left() else None
    source.end()
    need([before for before, *_ in states]
         == [i for i, tensor in enumerate(tensors) if tensor.role == ROLE_STATE],
         "the states are not in the tape's order")
    return tensors, operations, states, loss, repeat


class Repeat:
    """What a tape says behind its states, and where the items of a trace then stand (4.1)."""

    def __init__(self, source, tensors, operations):
        self.times, self.group, self.first, self.ops, count = source.numbers("IIIII")
        self.carries = [source.numbers("IIB") for _ in range(count)]
        need(1 < self.times <= 10**6 and self.group > 0 and self.times % self.group == 0,
             "no such groups")
        need(self.ops > 0 and self.first + self.ops <= len(operations), "no such operations")
        need(all(start < len(tensors) and after < len(tensors) and joined <= 1
                 for start, after, joined in self.carries), "no such accumulators")
        self.groups = self.times // self.group
        need(self.groups & (self.groups - 1) == 0, "groups that are no whole tree")
        self.behind = self.first + self.ops
        self.made = {i for *_, outputs in operations[self.first:self.behind] for i in outputs}
        later = {i for *_, outputs in operations[self.first:] for i in outputs}
        need(all(after in self.made and start not in later for start, after, _ in self.carries),
             "accumulators that nobody makes")
        self.base = (sum(t.role == ROLE_STATE for t in tensors)
                     + sum(len(outputs) for *_, outputs in operations[:self.first]))
        carried = {after for _, after, _ in self.carries}
        outputs = [i for *_, outputs in operations[self.first:self.behind] for i in outputs]
        self.handed = [i for i in outputs if i in carried]
        self.kept = [i for i in outputs if i not in carried]
        self.block = len(self.handed)
        self.sums = [after for _, after, joined in self.carries if joined]
        self.more = (self.times - 1) * self.block + (self.groups - 1) * len(self.sums)

    def block_place(self, i):
        done = i // self.group
        return self.base + i * self.block + len(self.sums) * (done - bin(done).count("1"))

    def join_place(self, node):
        level = self.groups.bit_length() - node.bit_length()
        end = (node - 2 ** (node.bit_length() - 1) + 1) << level
        return (self.base + end * self.group * self.block
                + len(self.sums) * (end - 1 - bin(end - 1).count("1") + level - 1))

    def last_place(self, after, places):
        """Of a carry, when all micro-batches are over."""
        if after in self.sums and self.groups > 1:
            return self.join_place(1) + self.sums.index(after)
        return self.block_place(self.times - 1) + places[after] - self.base

    def way(self, i, places):
        """Of an operand of the body -> way, place, other"""
        for start, after, joined in self.carries:
            if i == start:
                return 3 if joined else 2, places[i], places[after] - self.base
        if i in self.made:
            return (1, self.handed.index(i), 0) if i in self.handed else (4, self.kept.index(i), 0)
        return 0, places[i], 0

    def suffix(self, ways):
        return struct.pack(">6I", self.base, self.times, self.group, self.block, len(self.sums),
                           len(self.kept)) + b"".join(struct.pack(">BI", way, other)
                                                      for way, _, other in ways)


def places_of(tensors, operations, repeat=None):
    """-> where each tensor's root stands, by tensor (what a body makes: in micro-batch 0); how many
    items a trace has"""
    places, next_place = {}, {}
    for i, tensor in enumerate(tensors):
        places[i] = next_place.get(tensor.role, 0)
        next_place[tensor.role] = places[i] + 1
    item = next_place.get(ROLE_STATE, 0)
    for number, (*_, outputs) in enumerate(operations):
        if repeat and number == repeat.behind:
            item += repeat.more
        for i in outputs:
            if not repeat or i not in repeat.kept:
                places[i], item = item, item + 1
    if repeat and repeat.behind == len(operations):
        item += repeat.more
    if repeat:
        places.update((i, item + at) for at, i in enumerate(repeat.kept))
    return places, item


def label_hash(tensor):
    kind = "data" if tensor.role == ROLE_DATA else "tensor"
    return sha256(tensor_label(kind, tensor.dtype, tensor.dims, tensor.name, tensor.size))


def descriptor(tensors, operation, places, flag=0):
    kind, attributes, inputs, outputs = operation
    data = struct.pack(">HBBB%dq" % len(attributes), kind | flag, len(attributes), len(inputs),
                       len(outputs), *attributes)
    for i, place in zip(inputs + outputs, places):
        data += struct.pack(">BBIQ", tensors[i].dtype, tensors[i].role, place,
                            tensors[i].count) + label_hash(tensors[i])
    return data


def descriptors(tensors, operations, states, repeat=None):
    """The items of a program root."""
    places, _ = places_of(tensors, operations, repeat)
    items, last = [], dict(places)
    if repeat:
        last.update((after, repeat.last_place(after, places)) for _, after, _ in repeat.carries)
    for number, operation in enumerate(operations):
        operands = operation[2] + operation[3]
        if repeat and repeat.first <= number < repeat.behind:
            ways = [repeat.way(i, places) for i in operands]
            items.append(descriptor(tensors, operation, [way[1] for way in ways], REPEATED)
                         + repeat.suffix(ways))
        else:
            items.append(descriptor(tensors, operation, [last[i] for i in operands]))
    for number, after in enumerate(repeat.sums if repeat and repeat.groups > 1 else []):
        other = places[after] - repeat.base
        view = (1, 1, 1, tensors[after].count, 0, 0, 0, 1, 0, 0, 0, 1)
        items.append(descriptor(tensors, (BINARY, (0, *view), (after, after), (after,)),
                                [number] * 3, REPEATED)
                     + repeat.suffix([(6, number, other), (7, number, other), (5, number, 0)]))
    places = last
    for k, (before, after, kind, bits) in enumerate(states):
        items.append(struct.pack(">HIII", 0xFFFF, k, len(states), places[after])
                     + label_hash(tensors[before]) + struct.pack(">BI", kind, bits))
    return items


def program_root(tensors, operations, states, repeat=None):
    _, items = places_of(tensors, operations, repeat)
    return list_root("program", items, descriptors(tensors, operations, states, repeat))


# ---- first states (docs/ARITHMETIC.md) ----

WORD = 0xFFFFFFFF


def philox(element, stream, seed):
    c, k = [element & WORD, element >> 32, stream, WORD], [seed & WORD, seed >> 32]
    for _ in range(10):
        p0, p2 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p2 >> 32) ^ c[1] ^ k[0], p2 & WORD, (p0 >> 32) ^ c[3] ^ k[1], p0 & WORD]
        k = [(k[0] + 0x9E3779B9) & WORD, (k[1] + 0xBB67AE85) & WORD]
    return c


def normal(words):
    m = ((words[1] << 32 | words[0]) >> 11) + 1
    e = m.bit_length() - 1
    f = m / 2**e
    if f >= float.fromhex("0x1.5555555555555p0"):
        f, e = f / 2, e + 1
    s = (f - 1) / (f + 1)
    t, p = s * s, 1 / 23
    for k in range(21, 0, -2):
        p = p * t + 1 / k
    radius = math.sqrt(-2 * ((e - 53) * float.fromhex("0x1.62e42fefa39efp-1") + (2 * s) * p))
    v = (words[3] << 32 | words[2]) >> 11
    a = ((v % 2**51) - 2**50) * 2.0**-51 * float.fromhex("0x1.921fb54442d18p0")
    t, sine, cosine = a * a, 1.0, 1.0
    for k in range(17, 2, -2):
        sine = 1 - (sine * t) / (k * (k - 1))
    for k in range(16, 1, -2):
        cosine = 1 - (cosine * t) / (k * (k - 1))
    sine, cosine = radius * (a * sine), radius * cosine
    return [(cosine, sine), (-sine, cosine), (-cosine, -sine), (sine, -cosine)][v >> 51]


def drawn(count, kind, value_bits, seed, stream):
    value = struct.unpack(">f", struct.pack(">I", value_bits))[0]
    if kind <= 3:
        return struct.pack("<f", [0.0, 1.0, value][kind - 1]) * count
    if kind == 4:
        return b"".join(struct.pack("<f", (2 * (philox(i, stream, seed)[0] >> 8) + 1 - 2**24)
                                    * 2.0**-24 * value) for i in range(count))
    pairs = [normal(philox(j, stream, seed)) for j in range((count + 1) // 2)]
    return b"".join(struct.pack("<f", x * value) for pair in pairs for x in pair)[:4 * count]


# ---- section 5: jobs ----

class Job:
    pass


def read_job(data):
    """-> a job whose roots were all recomputed; the first state's too, where it is drawn"""
    source, job = Bytes(data), Job()
    need(source.take(8) == b"LSJOB\x00\x00\x02", "not a job")
    job.rules, job.steps, job.segment, _, _, _ = source.numbers("IQQQII")
    need(source.take(12) == bytes(12), "bytes that mean nothing")
    roots = [source.take(32) for _ in range(5)]
    need(1 <= job.segment <= job.steps <= 2**32 - 2, "impossible steps")
    need(sha256(data[216:]) == roots[1], "the header does not commit to what follows it")
    job.tensors, job.operations, job.states, _, job.repeat = read_tape(
        source.take(source.number("Q")))
    need(program_root(job.tensors, job.operations, job.states, job.repeat) == roots[0],
         "another program")
    constants = [tensor_root("tensor", t.dtype, t.dims, t.name, source.take(t.size))
                 for t in job.tensors if t.role == ROLE_CONSTANT]
    need(list_root("state", 0, constants) == roots[2], "other constants")
    job.data_tensors = [t for t in job.tensors if t.role == ROLE_DATA]
    job.data_roots = [source.take(32) for _ in job.data_tensors]
    need(list_root("state", 0, job.data_roots) == roots[3], "other data")
    given, seed = source.numbers("BQ")
    need(given <= 1 and not (given and seed), "a first state that is given and drawn")
    if source.left():
        texts = [source.take(source.number("B")) for _ in range(2)]
        notes = b""
        if source.left():
            notes = source.take(source.number("I"))
            need(0 < len(notes) <= 2**20 and notes.endswith(b"\n") and
                 all(byte == 10 or 32 <= byte < 127 for byte in notes), "notes that no reader may take")
        need(any(texts + [notes]) and all(len(text) <= 80 and text == text.strip()
                                          and all(32 <= byte < 127 for byte in text) for text in texts),
             "a title or a name that no reader may take")
    source.end()
    job.first_root, job.id = roots[4], job_id(data[:216])
    if not given:
        need(all(kind > 0 for *_, kind, _ in job.states), "a state that is not drawn")
        values = [drawn(job.tensors[before].count, kind, bits, seed, before)
                  for before, _, kind, bits in job.states]
        need(state_root(job, values) == job.first_root, "the draws give another first state")
    job.items = places_of(job.tensors, job.operations, job.repeat)[1]
    return job


def state_root(job, values):
    tensors = [job.tensors[before] for before, *_ in job.states]
    return list_root("state", 0, [tensor_root("tensor", t.dtype, t.dims, t.name, value)
                                  for t, value in zip(tensors, values)])


# ---- section 6: checkpoints ----

def read_checkpoint(data, job):
    """-> the state root of a checkpoint that is not encrypted"""
    file = read_safetensors(data)
    need(len(file) == len(job.states), "another number of states")
    values = []
    for before, *_ in job.states:
        tensor = job.tensors[before]
        dtype, dims, value = file[tensor.name]
        need(dtype == tensor.dtype and dims == tensor.dims, "another type or shape")
        values.append(value)
    return state_root(job, values)


# ---- section 7: the journal of an archive ----

def read_journal(data, job):
    """-> state roots after each step, loss bits, and (number, signature) of signed segments"""
    source = Bytes(data)
    name = source.take(8)
    need(name in (b"LSJRNL\x00\x02", b"LSJRNL\x00\x03"), "not a journal")
    need(source.take(32) == job.id, "the journal of another job")
    encrypted, steps, diverged, devices, segments = source.numbers("BQQIQ")
    need(encrypted == 0, "encrypted")
    need(steps <= job.steps and diverged in (NEVER, steps - 1), "impossible steps")
    for _ in range(devices):
        source.take(source.number("H"))
    roots, losses, signed = [], [], []
    for _ in range(steps):
        roots.append(source.take(32))
        loss, _, _, _, _, _, device = source.numbers("IIIQQQQ")
        need(device < devices, "no such device")
        losses.append(loss)
    for _ in range(segments):
        number, root = source.number("Q"), source.take(32)
        need(root == segment_root(job, roots, number), "the root of other steps")
        signed.append((number, source.take(source.number("H"))))
    if name[7] == 3:
        need(source.take(32) == hashlib.sha256(data[:-32]).digest(), "another hash")
    source.end()
    return roots, losses, signed


def segment_root(job, roots, number):
    first = number * job.segment
    last = min(first + job.segment, job.steps, len(roots))
    need(first < last, "no such segment")
    return list_root("segment", first, roots[first:last])


# ---- section 8: openings ----

ELEMENTS = {0: "<I", 1: "<B", 2: "<H", 3: "<I", 4: "<h", 5: "<i"}


def open_element(data, root, items):
    """-> item, element and bits, when the opening proves them under this trace root"""
    need(len(data) >= 1038, "an opening is cut short")
    item, element = struct.unpack_from(">IQ", data)
    leaf, at, parts = data[12:1036], 1036, []
    for _ in range(3):
        need(len(data) >= at + 2, "an opening is cut short")
        size, = struct.unpack_from(">H", data, at)
        need(len(data) >= at + 2 + size, "an opening is cut short")
        parts.append(data[at + 2:at + 2 + size])
        at += 2 + size
    need(at == len(data), "bytes behind an opening")
    header, leaf_path, item_path = parts
    need(header[:32] == tag("tensor"), "not a tensor's header")
    tensor_root_opened = sha256(header)
    leaf_index = open_leaf(tensor_root_opened, header, leaf, leaf_path)
    dtype = header[120]
    size = TYPES[dtype][0]
    need(element < struct.unpack_from(">Q", header, 64)[0] // size, "no such element")
    need(element * size // LEAF_SIZE == leaf_index, "another leaf than the element's")
    need(open_item(root, "trace", 0, tensor_root_opened, item_path) == item, "another item")
    need(struct.unpack_from(">Q", item_path, 8)[0] == items, "another number of items")
    value, = struct.unpack_from(ELEMENTS[dtype], leaf, element * size % LEAF_SIZE)
    return item, element, value & 0xFFFFFFFF
