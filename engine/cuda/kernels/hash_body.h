/*
 * hash_body.h - SHA-256 Merkle roots over leaves of 1,024 bytes, as proofs/hash/merkle.h defines
 * them.
 *
 * The engine knows no commitments; it only offers to hash what lies in a device's memory. A leaf is
 * hashed as 0x00 and its bytes, a node as 0x01 and two digests (RFC 6962); the last leaf is filled
 * up with zeros, and a node without a right neighbour rises unhashed. Words of a message that has
 * one byte in front are shifted by that byte.
 */

/* The item to which a place among the digests of a level belongs. */
static RULE inline const struct hash_item *hash_item_at(const struct hash_args *args,
                                                        uint64_t place)
{
    uint32_t low = 0;
    uint32_t high = args->item_count;

    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;

        if (args->items[middle].first[args->level] <= place) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return &args->items[low];
}

static RULE inline uint32_t rotate_right(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static CONSTANT uint32_t hash_rounds[64] = {SHA256_ROUND_NUMBERS};

/* FIPS 180-4, 5.3.3 */
static RULE inline void hash_begin(uint32_t state[8])
{
    state[0] = 0x6a09e667;
    state[1] = 0xbb67ae85;
    state[2] = 0x3c6ef372;
    state[3] = 0xa54ff53a;
    state[4] = 0x510e527f;
    state[5] = 0x9b05688c;
    state[6] = 0x1f83d9ab;
    state[7] = 0x5be0cd19;
}

/* The compression function; w is used up. Sixteen rounds at a time keep w in registers. */
static RULE inline void hash_compress(uint32_t state[8], uint32_t w[16])
{
    uint32_t s[8];

    for (int i = 0; i < 8; i++) {
        s[i] = state[i];
    }
    for (int round = 0; round < 64; round += 16) {
        UNROLL
        for (int i = 0; i < 16; i++) {
            if (round > 0) {
                const uint32_t x = w[(i + 1) & 15];
                const uint32_t y = w[(i + 14) & 15];

                w[i] += (rotate_right(x, 7) ^ rotate_right(x, 18) ^ x >> 3) + w[(i + 9) & 15] +
                        (rotate_right(y, 17) ^ rotate_right(y, 19) ^ y >> 10);
            }
            const uint32_t a = s[(0 - i) & 7];
            const uint32_t b = s[(1 - i) & 7];
            const uint32_t c = s[(2 - i) & 7];
            const uint32_t e = s[(4 - i) & 7];
            const uint32_t f = s[(5 - i) & 7];
            const uint32_t g = s[(6 - i) & 7];
            const uint32_t t = s[(7 - i) & 7] +
                               (rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25)) +
                               ((e & f) ^ (~e & g)) + hash_rounds[round + i] + w[i];

            s[(3 - i) & 7] += t;
            s[(7 - i) & 7] = t + (rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22)) +
                             ((a & b) ^ (a & c) ^ (b & c));
        }
    }
    for (int i = 0; i < 8; i++) {
        state[i] += s[i];
    }
}

static RULE inline uint32_t big_endian(uint32_t word)
{
    return word >> 24 | (word >> 8 & 0xff00) | (word << 8 & 0xff0000) | word << 24;
}

static RULE inline void hash_store(uint8_t *to, const uint32_t state[8])
{
    for (int i = 0; i < 8; i++) {
        ((uint32_t *)to)[i] = big_endian(state[i]);
    }
}

/* The block with the last byte of so many, the end mark and their count. */
static RULE inline void hash_end(uint8_t *to, uint32_t state[8], uint32_t w[16], uint32_t last,
                                 uint32_t bytes)
{
    for (uint32_t i = 0; i < 16; i++) {
        w[i] = 0;
    }
    w[0] = last << 24 | UINT32_C(0x00800000);
    w[15] = bytes * 8;
    hash_compress(state, w);
    hash_store(to, state);
}

/* Four bytes at `at` of `size`, zeros from the end on. Tensors begin at multiples of 64. */
static RULE inline uint32_t leaf_word(const uint8_t *bytes, uint64_t at, uint64_t size)
{
    uint32_t word = 0;

    if (at + 4 <= size) {
        return *(const uint32_t *)(bytes + at);
    }
    for (uint64_t i = 0; at + i < size && i < 4; i++) {
        word |= (uint32_t)bytes[at + i] << (8 * i);
    }
    return word;
}

/* grid: any; block: HASH_LEAF_THREADS. A thread takes a leaf: 1,025 bytes in 17 blocks. */
KERNEL(kernel_hash_leaves, struct hash_args)
{
    for (uint64_t leaf = first_place(); leaf < args.total; leaf += place_stride()) {
        const struct hash_item *item = hash_item_at(&args, leaf);
        const uint8_t *bytes = item->bytes;
        const uint64_t size = item->size;
        const uint64_t start = (leaf - item->first[0]) * HASH_LEAF;
        uint32_t state[8];
        uint32_t w[16];
        uint32_t before = 0; /* the word in front; for the first, the byte 0x00 */

        hash_begin(state);
        for (uint32_t block = 0; block < HASH_LEAF / 64; block++) {
            UNROLL
            for (uint32_t i = 0; i < 16; i++) {
                const uint32_t word =
                    big_endian(leaf_word(bytes, start + block * 64 + 4 * i, size));

                w[i] = before << 24 | word >> 8;
                before = word;
            }
            hash_compress(state, w);
        }
        hash_end(args.to + leaf * HASH_DIGEST, state, w, before, HASH_LEAF + 1);
    }
}

/* to may be left: everything is read before anything is written. */
static RULE inline void hash_node(uint8_t *to, const uint8_t *left)
{
    uint32_t state[8];
    uint32_t w[16];
    uint32_t before = 0x01;

    hash_begin(state);
    for (uint32_t i = 0; i < 16; i++) {
        const uint32_t word = big_endian(((const uint32_t *)left)[i]);

        w[i] = before << 24 | word >> 8;
        before = word;
    }
    hash_compress(state, w);
    hash_end(to, state, w, before, 65);
}

/*
 * grid: segments; block: HASH_NODES_THREADS. A block folds HASH_SEGMENT digests, or what is left
 * of them, into one: a segment is a subtree, since its length is a power of two or it is the last.
 */
KERNEL(kernel_hash_nodes, struct hash_args)
{
    SHARED(uint32_t, words, HASH_SEGMENT * HASH_DIGEST / 4);
    SHARED(uint32_t, next, HASH_SEGMENT * HASH_DIGEST / 8);

    for (uint64_t place = block_index(); place < args.total; place += grid_size()) {
        const struct hash_item *item = hash_item_at(&args, place);
        const uint64_t segment = place - item->first[args.level];
        const uint64_t left = hash_count(item->size, args.level - 1) - segment * HASH_SEGMENT;
        const uint64_t first = item->first[args.level - 1] + segment * HASH_SEGMENT;
        uint32_t count = left < HASH_SEGMENT ? (uint32_t)left : HASH_SEGMENT;
        uint32_t *from = words;
        uint32_t *to = next;

        for (uint32_t i = thread_index(); i < count * 8; i += HASH_NODES_THREADS) {
            words[i] = ((const uint32_t *)args.from)[first * 8 + i];
        }
        barrier();
        while (count > 1) {
            for (uint32_t pair = thread_index(); pair < (count + 1) / 2;
                 pair += HASH_NODES_THREADS) {
                if (2 * pair + 1 < count) {
                    hash_node((uint8_t *)(to + (uint64_t)pair * 8),
                              (const uint8_t *)(from + (uint64_t)pair * 16));
                } else {
                    for (uint32_t i = 0; i < 8; i++) {
                        to[pair * 8 + i] = from[pair * 16 + i];
                    }
                }
            }
            barrier();
            uint32_t *swap = from;

            from = to;
            to = swap;
            count = (count + 1) / 2;
        }
        if (thread_index() < 8) {
            ((uint32_t *)args.to)[place * 8 + thread_index()] = from[thread_index()];
        }
        barrier();
    }
}
