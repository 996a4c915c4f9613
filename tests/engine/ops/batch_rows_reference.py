"""batch_rows_reference.py - a second implementation of the draw of batch-rows, written from the text of
docs/ARITHMETIC.md. Prints the pins of batch_rows_test.c.

Needs only the standard library.
"""
import math

WORD = 0xFFFFFFFF


def philox(counter, key):
    c, (key0, key1) = list(counter), key
    for _ in range(10):
        product0, product2 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(product2 >> 32) ^ c[1] ^ key0, product2 & WORD,
             (product0 >> 32) ^ c[3] ^ key1, product0 & WORD]
        key0, key1 = (key0 + 0x9E3779B9) & WORD, (key1 + 0xBB67AE85) & WORD
    return c


def unit_at(position, units, stream, seed):
    """The unit that stands at a position of the whole training (ORDER 1)."""
    epoch, place = divmod(position, units)
    side = math.isqrt(units - 1) + 1
    other = -(-units // side)
    for _ in range(64):
        left, right = place % side, place // side
        for turn in range(8):
            modulus = other if turn % 2 else side
            words = philox([right, turn, stream, epoch & WORD], [seed & WORD, seed >> 32])
            drawn = (words[1] << 32 | words[0]) * modulus >> 64
            left, right = right, (left + drawn) % modulus
        place = right * side + left
        if place < units:
            return place
    return position % units


def rows_at(counter, batch, rows, stream=0, seed=1, unit=1, order=1):
    """The rows of a batch; None where none stands."""
    units = rows // unit
    for b in range(batch):
        at = counter * (batch // unit) + b // unit
        if order == 0:
            yield unit * at + b % unit if at < units else None
        else:
            yield unit * unit_at(at, units, stream, seed) + b % unit


PINS = [(position, units, stream, seed)
        for units in (1, 2, 3, 7, 10, 97, 1000, 10001, 10 ** 6, 2 ** 31 - 1, 2 ** 31)
        for position, stream, seed in ((0, 0, 1), (units - 1, 0, 1), (5 * units + units // 2, 7, 2 ** 63 + 9),
                                       (units * WORD + units // 3, WORD, 2 ** 64 - 1))]


def main():
    for pin in PINS:
        position, units, stream, seed = pin
        print("    {%du, %du, %du, %du, %du}," % (position, units, stream, seed, unit_at(*pin)))


if __name__ == "__main__":
    main()
