"""init_reference.py - a second implementation of engine/tape/init.h, written from its text. Prints the
pins of init_test.c.

Python's floats are binary64 with correctly rounded + - * / and sqrt, so the bits must agree. Needs
only the standard library.
"""
import math
import struct

WORD = 0xFFFFFFFF
INIT_STEP = WORD
LN2 = float.fromhex("0x1.62e42fefa39efp-1")
HALF_PI = float.fromhex("0x1.921fb54442d18p+0")


def philox(counter, key):
    c, (key0, key1) = list(counter), key
    for _ in range(10):
        product0, product2 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(product2 >> 32) ^ c[1] ^ key0, product2 & WORD,
             (product0 >> 32) ^ c[3] ^ key1, product0 & WORD]
        key0, key1 = (key0 + 0x9E3779B9) & WORD, (key1 + 0xBB67AE85) & WORD
    return c


def draw(element, stream, seed):
    return philox([element & WORD, element >> 32, stream, INIT_STEP], [seed & WORD, seed >> 32])


def log_of(m):
    e = m.bit_length() - 1
    f = math.ldexp(float(m), -e)
    if f >= 4.0 / 3.0:
        f, e = f * 0.5, e + 1
    s = (f - 1.0) / (f + 1.0)
    t = s * s
    p = 1.0 / 23
    for k in range(21, 0, -2):
        p = p * t + 1.0 / k
    return (e - 53) * LN2 + (2.0 * s) * p


def taylor(t, last):
    total = 1.0
    for k in range(last, 1, -2):
        total = 1.0 - total * t / float(k * (k - 1))
    return total


def normal_pair(words):
    radius = math.sqrt(-2.0 * log_of(((words[1] << 32 | words[0]) >> 11) + 1))
    v = (words[3] << 32 | words[2]) >> 11
    a = math.ldexp(float((v & ((1 << 51) - 1)) - (1 << 50)), -51) * HALF_PI
    sine, cosine = radius * (a * taylor(a * a, 17)), radius * taylor(a * a, 16)
    return [(cosine, sine), (-sine, cosine), (-cosine, -sine), (sine, -cosine)][v >> 51]


def to_bits(value):
    return struct.unpack("<I", struct.pack("<f", value))[0]


def from_bits(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def normal(index, std_bits, seed, stream):
    return to_bits(normal_pair(draw(index // 2, stream, seed))[index % 2] * from_bits(std_bits))


def uniform(index, limit_bits, seed, stream):
    k = draw(index, stream, seed)[0] >> 8
    return to_bits((2 * k + 1 - (1 << 24)) * 2.0**-24 * from_bits(limit_bits))


def fnv1a(words):
    value = 0xCBF29CE484222325
    for word in words:
        for byte in word.to_bytes(4, "little"):
            value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def show(name, words):
    print(name, " ".join(f"0x{word:08x}" for word in words))


ONE, SMALL, LIMIT, SEED = 0x3F800000, 0x3CA3D70A, 0x3D4CCCCD, 0x123456789ABCDEF0
show("normal 1", [normal(i, ONE, 1, 0) for i in range(8)])
show("normal 0.02", [normal(i, SMALL, SEED, 7) for i in [*range(6), 999998, 999999]])
show("uniform 1", [uniform(i, ONE, 1, 0) for i in range(8)])
show("uniform 0.05", [uniform(i, LIMIT, SEED, 7) for i in range(8)])
print(f"normal, 20000: {fnv1a(normal(i, SMALL, 42, 3) for i in range(20000)):016x}")
print(f"uniform, 20000: {fnv1a(uniform(i, SMALL, 42, 3) for i in range(20000)):016x}")
