"""Keccak-256 as Ethereum has it (padding 0x01), and what is built from it. Not a test: a second
implementation for the tests that compare keys and messages."""

MASK = (1 << 64) - 1


def rotate(word, places):
    return ((word << places) | (word >> (64 - places))) & MASK if places else word


def constants():
    """The 24 round constants, from the shift register of the standard."""
    register, found = 1, []
    for _ in range(24):
        word = 0
        for power in range(7):
            word |= (register & 1) << ((1 << power) - 1)
            register = (register << 1) ^ (0x171 if register & 0x80 else 0)
        found.append(word)
    return found


ROUNDS = constants()


def permute(lanes):
    for constant in ROUNDS:
        parity = [lanes[x] ^ lanes[x + 5] ^ lanes[x + 10] ^ lanes[x + 15] ^ lanes[x + 20]
                  for x in range(5)]
        for at in range(25):
            lanes[at] ^= parity[(at + 4) % 5] ^ rotate(parity[(at + 1) % 5], 1)
        moved, x, y = [0] * 25, 1, 0
        moved[0] = lanes[0]
        for step in range(24):
            here = lanes[x + 5 * y]
            x, y = y, (2 * x + 3 * y) % 5
            moved[x + 5 * y] = rotate(here, (step + 1) * (step + 2) // 2 % 64)
        for y in range(0, 25, 5):
            row = moved[y:y + 5]
            for x in range(5):
                lanes[y + x] = row[x] ^ (~row[(x + 1) % 5] & MASK & row[(x + 2) % 5])
        lanes[0] ^= constant


def keccak256(data):
    rate, lanes = 136, [0] * 25
    padded = bytearray(data) + bytes([1]) + bytes(rate - 1 - len(data) % rate)
    padded[-1] |= 0x80
    for start in range(0, len(padded), rate):
        for lane in range(rate // 8):
            lanes[lane] ^= int.from_bytes(padded[start + 8 * lane:start + 8 * lane + 8], "little")
        permute(lanes)
    return b"".join(lane.to_bytes(8, "little") for lane in lanes[:4])


def words(*values):
    """abi.encode() of values of one word each: numbers, or bytes of 32."""
    return b"".join(value if isinstance(value, bytes) else value.to_bytes(32, "big")
                    for value in values)


def typed_message(domain_type, domain, message_type, message):
    """What EIP-712 has signed."""
    hashes = [keccak256(keccak256(kind.encode()) + words(*values))
              for kind, values in ((domain_type, domain), (message_type, message))]
    return keccak256(b"\x19\x01" + b"".join(hashes))
