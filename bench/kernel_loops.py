#!/usr/bin/env python3
"""Counts what the tensor cores' loops of the kernels consist of, in the machine code.

usage: kernel_loops.py [--against TABLE.md] MODULE.cubin...

Of each kernel with products of matrices: the instructions of the smallest loop that has the most of
them, and among these the products, moves between registers, barriers of memory (with the error
barrier that follows one), barriers of a block, shuffles, conversions and accesses to spilled
registers. Then what a warp executes for 512 elements of k on the usual way, in blocks of 128 and
in blocks of 512: 32-bit sums are added up in 64 bits once a block, or as often as 32 bits reach
(packed.h). 0: not counted, or the kernel does not take such blocks. Prints a table. With --against it ends with 1 where a count is above that of the table.
No disassembler is needed: an instruction has 16 bytes, whose low bits say what it is.
"""
import re
import struct
import sys

# The low nine bits, for any operands.
PRODUCT = {0x1F1, 0x037, 0x03C}
MEMORY_BARRIER = {0x192, 0x1AB}
BLOCK_BARRIER = {0x11D}
SHUFFLE = {0x189}
CONVERSION = {0x105, 0x106}
SPILL = {0x183, 0x187}
MOVE, MULTIPLY_ADD, BRANCH = 0x002, 0x024, 0x147
ALWAYS = 7  # the predicate of an instruction that has none
ZERO = 0xFF
COLUMNS = ["loop", "products", "moves", "memory barriers", "block barriers", "shuffles", "conversions", "spills",
           "by 128", "by 512"]
# The elements of a block whose sums stay in 32 bits, and the blocks that a kernel takes.
REACHES = {"kernel_contract_narrow": 2048, "kernel_contract_wide": 256, "kernel_contract_three": 128,
           "kernel_halves_short": 256, "kernel_halves_long": 1024, "kernel_halves_wide": 256, "kernel_halves_three": 128,
           "kernel_hopper_narrow": 256, "kernel_hopper_narrow_half": 256}
TAKES = {"kernel_halves_short": [128], "kernel_halves_long": [512]}
STAGE = 64  # of k: a turn of mma's loop
PASSES, LINE = 4, 128  # of wgmma: over a run (sums are raised, left, added and added); a slot's elements


def sections(path):
    with open(path, "rb") as file:
        data = file.read()
    if data[:5] != b"\x7fELF\x02":
        sys.exit(f"kernel_loops: {path} is no cubin")
    at = struct.unpack_from("<Q", data, 0x28)[0]
    count, names_index = struct.unpack_from("<HH", data, 0x3C)
    heads = [struct.unpack_from("<IIQQQQIIQQ", data, at + 64 * i) for i in range(count)]
    names = heads[names_index][4]
    for head in heads:
        name = data[names + head[0]:].split(b"\0", 1)[0].decode("ascii")
        if name.startswith(".text."):
            yield name[6:], data[head[4]:head[4] + head[5]]


def target_of(at, low, high, short):
    """Of a branch: a signed number in units of 4 bytes, from the next instruction on."""
    offset, bits = (high & 0x3FFFF) << 30 | low >> 34, 48
    if not short:
        offset, bits = offset << 8 | (low >> 16 & 0xFF), 56
    if offset >> (bits - 1):
        offset -= 1 << bits
    return at + 1 + offset // 4


def is_short(code):
    """Before 9.0 a branch has no low byte of its own. A kernel's last branch is to itself."""
    at, low, high = [(at, low, high) for at, (low, high) in enumerate(code) if low & 0x1FF == BRANCH][-1]
    for short in (False, True):
        if target_of(at, low, high, short) == at:
            return short
    sys.exit("kernel_loops: machine code of a form that is not known here")


def is_move(low, high):
    kind = low & 0x1FF
    zeros = low >> 24 & 0xFF == ZERO and (low >> 32 & 0xFF == ZERO or low >> 9 & 7 != 1)
    return kind == MOVE or (kind == MULTIPLY_ADD and zeros and low >> 9 & 7 in (1, 7))


def branches(code):
    """Of each branch: where it stands and where it goes to."""
    short = is_short(code)
    return [(at, target_of(at, low, high, short)) for at, (low, high) in enumerate(code) if low & 0x1FF == BRANCH]


def products_before(code):
    products = [0]
    for low, _ in code:
        products.append(products[-1] + ((low & 0x1FF) in PRODUCT))
    return products


def loops_of(code):
    """Runs that a branch goes back over, those with the most products first, then the smallest."""
    products = products_before(code)
    found = [(-(products[at + 1] - products[first]), at - first, first, at + 1)
             for at, first in branches(code) if 0 <= first < at and products[at + 1] > products[first]]
    return [(first, end) for _, _, first, end in sorted(found)]


def ways_of(code, at, end):
    """How many instructions lie on each way from one place on to another, without a branch back."""
    targets = dict(branches(code))
    found, open_ways = set(), [(at, 0)]
    while open_ways:
        at, length = open_ways.pop()
        if at == end:
            found.add(length)
        elif at < end:
            to = targets.get(at, 0)
            if at < to <= end:
                open_ways.append((to, length + 1))
            if not (at < to and code[at][0] >> 12 & 0xF == ALWAYS):
                open_ways.append((at + 1, length + 1))
    return found


def executed(name, code, block):
    """Instructions for 512 elements of k; 0: not counted."""
    if name not in REACHES or block not in TAKES.get(name, [128, 512]):
        return 0
    runs = 512 // min(block, REACHES[name])
    loops, products = loops_of(code), products_before(code)
    first, end = loops[0]
    if name.startswith("kernel_hopper"):  # a loop over slots, and one over passes around it
        around = next((a, b) for a, b in loops if a < first and b > end)
        inner = end - first
        ways = sorted(ways_of(code, end, around[1]))
        if len(ways) != 3:
            sys.exit(f"kernel_loops: {name}: {len(ways)} ways behind the products, not known here")
        nothing, raised, added = ways
        products_made = PASSES * (runs * (first - around[0]) + 512 // LINE * (end - first))
        return products_made + runs * (nothing + raised + 2 * added)
    skipped = [to - at - 1 for at, to in branches(code)
               if first <= at < to <= end and products[to] == products[at]]
    sums = [length for length in skipped if length == max(skipped)]
    return 512 // STAGE * (end - first - sum(sums)) + runs * sums[0]


def count(code):
    kinds = [low & 0x1FF for low, _ in code]
    of = lambda wanted: sum(kind in wanted for kind in kinds)
    return [len(code), of(PRODUCT), sum(is_move(low, high) for low, high in code), of(MEMORY_BARRIER),
            of(BLOCK_BARRIER), of(SHUFFLE), of(CONVERSION), of(SPILL)]


def read_table(path):
    rows = {}
    with open(path, encoding="ascii") as file:
        for line in file:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if re.fullmatch(r"`kernel_\w+`", cells[0]):
                rows[cells[0].strip("`")] = [int(cell) for cell in cells[1:]]
    return rows


def main():
    arguments = sys.argv[1:]
    before = {}
    if arguments[:1] == ["--against"]:
        before = read_table(arguments[1])
        arguments = arguments[2:]
    worse = 0
    print("| kernel | " + " | ".join(COLUMNS) + " |\n|---|" + "---:|" * len(COLUMNS))
    for path in arguments:
        for name, data in sorted(sections(path)):
            code = [struct.unpack_from("<QQ", data, at) for at in range(0, len(data), 16)]
            loops = loops_of(code)
            if not loops:
                continue
            counts = count(code[loops[0][0]:loops[0][1]]) + [executed(name, code, block) for block in (128, 512)]
            print(f"| `{name}` | " + " | ".join(map(str, counts)) + " |")
            for column, now, then in zip(COLUMNS, counts, before.get(name, counts)):
                if now > then and column != "products":
                    worse += 1
                    print(f"kernel_loops: {name}: {now} {column} in place of {then}", file=sys.stderr)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
