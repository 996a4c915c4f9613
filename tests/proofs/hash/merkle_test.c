/*
 * Goal: roots and paths are those of RFC 6962, and no other proof is accepted.
 * Method: the vectors of the certificate-transparency reference log; then, for every tree of 1 to
 * 70 leaves, a second implementation straight from the text of the RFC, every path of every leaf
 * and every bit of it flipped.
 */
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "proofs/hash/merkle.h"
#include "tests/support/proofs/merkle_multi.h"
#include "tests/support/test.h"

#define LEAVES_MAX  70
#define BYTES_MAX   ((size_t)5 * 1024 * 1024 + 700)
#define PATHS_BIT   33 /* trees up to this size have every bit of their paths flipped */
#define SUBSETS_MAX 10

static void fill(void *bytes, size_t size, uint64_t seed)
{
    test_random_fill(&seed, bytes, size);
}

static void digest_of_hex(struct digest *digest, const char *hex)
{
    static const char digits[] = "0123456789abcdef";

    memset(digest, 0, sizeof(*digest));
    for (size_t i = 0; i < 2 * sizeof(digest->bytes); i++) {
        const char *place = strchr(digits, hex[i]);

        assert_true(hex[i] != '\0' && place != NULL);
        digest->bytes[i / 2] = (uint8_t)(digest->bytes[i / 2] << 4 | (place - digits));
    }
}

static void assert_digest(const struct digest *got, const struct digest *wanted)
{
    assert_memory_equal(got->bytes, wanted->bytes, DIGEST_SIZE);
}

static void assert_hex(const struct digest *got, const char *hex)
{
    struct digest wanted;

    digest_of_hex(&wanted, hex);
    assert_digest(got, &wanted);
}

/* ---- RFC 6962, 2.1, word for word, with libcrypto's hash ---- */

static void rfc_hash(struct digest *out, uint8_t prefix, const void *data, size_t size)
{
    uint8_t message[1 + MERKLE_LEAF_SIZE];

    message[0] = prefix;
    memcpy(message + 1, data, size);
    assert_int_equal(EVP_Digest(message, size + 1, out->bytes, NULL, EVP_sha256(), NULL), 1);
}

static uint64_t rfc_split(uint64_t n)
{
    uint64_t k = 1;

    while (k * 2 < n) {
        k *= 2;
    }
    return k;
}

static void rfc_root(struct digest *out, const struct digest *hashes, uint64_t n)
{
    struct digest pair[2];

    if (n == 1) {
        *out = hashes[0];
        return;
    }
    rfc_root(&pair[0], hashes, rfc_split(n));
    rfc_root(&pair[1], hashes + rfc_split(n), n - rfc_split(n));
    rfc_hash(out, 0x01, pair, sizeof(pair));
}

static uint32_t rfc_path(struct digest *out, uint64_t m, const struct digest *hashes, uint64_t n)
{
    uint64_t k = rfc_split(n);
    uint32_t count;

    if (n == 1) {
        return 0;
    }
    if (m < k) {
        count = rfc_path(out, m, hashes, k);
        rfc_root(&out[count], hashes + k, n - k);
    } else {
        count = rfc_path(out, m - k, hashes + k, n - k);
        rfc_root(&out[count], hashes, k);
    }
    return count + 1;
}

/* ---- the reference log of certificate transparency ---- */

/* Inputs and roots of merkle_tree_test.cc in google/certificate-transparency. */
static const struct {
    const char *bytes;
    size_t size;
    const char *root;
} reference_log[] = {
    {"", 0, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"},
    {"\x00", 1, "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"},
    {"\x10", 1, "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"},
    {"\x20\x21", 2, "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"},
    {"\x30\x31", 2, "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4"},
    {"\x40\x41\x42\x43", 4, "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef"},
    {"\x50\x51\x52\x53\x54\x55\x56\x57", 8,
     "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c"},
    {"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f", 16,
     "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"},
};

static void reference_hashes(struct digest hashes[8])
{
    for (size_t i = 0; i < 8; i++) {
        merkle_leaf_hash(&hashes[i], reference_log[i].bytes, reference_log[i].size);
    }
}

static void test_reference_log_has_its_published_roots(void **state)
{
    struct digest hashes[8];
    struct merkle_builder builder;
    struct digest root;

    (void)state;
    reference_hashes(hashes);
    merkle_builder_init(&builder);
    merkle_builder_root(&builder, &root);
    assert_hex(&root, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    for (size_t i = 0; i < 8; i++) {
        struct merkle_leaves leaves;

        assert_int_equal(merkle_builder_add(&builder, &hashes[i], 1), STATUS_OK);
        merkle_builder_root(&builder, &root);
        assert_hex(&root, reference_log[i].root);
        merkle_leaves_init_hashes(&leaves, hashes, i + 1);
        merkle_root(&root, &leaves);
        assert_hex(&root, reference_log[i].root);
    }
}

/* The published paths count leaves from 1: (1, 8), (6, 8), (3, 3), (2, 5). */
static void test_reference_log_has_its_published_paths(void **state)
{
    static const struct {
        uint64_t index;
        uint64_t count;
        uint32_t siblings;
        const char *hex[3];
    } paths[] = {
        {0, 1, 0, {""}},
        {0,
         8,
         3,
         {"96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
          "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
          "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4"}},
        {5,
         8,
         3,
         {"bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
          "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
          "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"}},
        {2, 3, 1, {"fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"}},
        {1,
         5,
         3,
         {"6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
          "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
          "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b"}},
    };
    struct digest hashes[8];

    (void)state;
    reference_hashes(hashes);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        struct merkle_leaves leaves;
        struct merkle_path path;

        merkle_leaves_init_hashes(&leaves, hashes, paths[i].count);
        merkle_path_build(&path, &leaves, paths[i].index);
        assert_int_equal(path.sibling_count, paths[i].siblings);
        for (uint32_t k = 0; k < path.sibling_count; k++) {
            assert_hex(&path.siblings[k], paths[i].hex[k]);
        }
    }
}

/* ---- every small tree ---- */

static void test_roots_of_small_trees_follow_the_rfc(void **state)
{
    struct digest hashes[LEAVES_MAX];

    (void)state;
    fill(hashes, sizeof(hashes), 3);
    for (uint64_t count = 1; count <= LEAVES_MAX; count++) {
        struct digest wanted;

        rfc_root(&wanted, hashes, count);
        for (uint64_t cut = 0; cut <= count; cut++) {
            struct merkle_builder builder;
            struct digest root;

            merkle_builder_init(&builder);
            assert_int_equal(merkle_builder_add(&builder, hashes, cut), STATUS_OK);
            assert_int_equal(merkle_builder_add(&builder, hashes + cut, count - cut), STATUS_OK);
            merkle_builder_root(&builder, &root);
            assert_digest(&root, &wanted);
        }
    }
}

static void test_every_node_of_small_trees_is_the_root_of_its_leaves(void **state)
{
    struct digest hashes[LEAVES_MAX];

    (void)state;
    fill(hashes, sizeof(hashes), 4);
    for (uint64_t count = 1; count <= LEAVES_MAX; count++) {
        struct merkle_leaves leaves;

        merkle_leaves_init_hashes(&leaves, hashes, count);
        for (uint32_t level = 0; level < 8; level++) {
            struct digest below[LEAVES_MAX];
            uint64_t nodes = ((count - 1) >> level) + 1;
            struct digest top;
            struct digest wanted;

            for (uint64_t i = 0; i < nodes; i++) {
                uint64_t first = i << level;
                uint64_t span = UINT64_C(1) << level;

                merkle_node(&below[i], &leaves, level, i);
                rfc_root(&wanted, hashes + first, count - first < span ? count - first : span);
                assert_digest(&below[i], &wanted);
            }
            /* Any whole level folds into the root: what a walk that reveals levels relies on. */
            rfc_root(&top, below, nodes);
            merkle_root(&wanted, &leaves);
            assert_digest(&top, &wanted);
        }
    }
}

static void check_other_places_are_refused(struct merkle_path *path, const struct digest *hash,
                                           const struct digest *root)
{
    uint64_t index = path->leaf_index;

    for (uint64_t other = 0; other <= path->leaf_count + 1; other++) {
        path->leaf_index = other;
        assert_int_equal(merkle_path_check(path, hash, root),
                         other == index ? VERDICT_VALID : VERDICT_INVALID);
    }
    path->leaf_index = UINT64_MAX;
    assert_int_equal(merkle_path_check(path, hash, root), VERDICT_INVALID);
    path->leaf_index = index;
}

static void check_other_lengths_are_refused(struct merkle_path *path, const struct digest *hash,
                                            const struct digest *root)
{
    uint32_t count = path->sibling_count;
    uint64_t leaf_count = path->leaf_count;
    static const uint64_t bad[] = {0, MERKLE_LEAVES_MAX + 1, UINT64_MAX, UINT64_C(1) << 63};

    for (uint32_t other = 0; other <= MERKLE_DEPTH_MAX; other++) {
        path->sibling_count = other;
        assert_int_equal(merkle_path_check(path, hash, root),
                         other == count ? VERDICT_VALID : VERDICT_INVALID);
    }
    path->sibling_count = UINT32_MAX;
    assert_int_equal(merkle_path_check(path, hash, root), VERDICT_INVALID);
    path->sibling_count = count;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        path->leaf_count = bad[i];
        assert_int_equal(merkle_path_check(path, hash, root), VERDICT_INVALID);
    }
    path->leaf_count = leaf_count;
}

/* Flips every bit up to a size, then one bit of every byte. */
static void check_flipped_bits_are_refused(struct merkle_path *path, struct digest *hash,
                                           struct digest *root)
{
    int step = path->leaf_count <= PATHS_BIT ? 1 : 8;

    for (size_t bit = 0; bit < path->sibling_count * 256; bit += (size_t)step) {
        size_t at = bit + (step == 8 ? (bit / 8) % 8 : 0);
        uint8_t *byte = &path->siblings[at / 256].bytes[at % 256 / 8];

        *byte ^= (uint8_t)(1 << at % 8);
        assert_int_equal(merkle_path_check(path, hash, root), VERDICT_INVALID);
        *byte ^= (uint8_t)(1 << at % 8);
    }
    for (size_t bit = 0; bit < 256; bit++) {
        hash->bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(merkle_path_check(path, hash, root), VERDICT_INVALID);
        hash->bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        root->bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(merkle_path_check(path, hash, root), VERDICT_INVALID);
        root->bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

static void test_paths_of_small_trees_are_accepted_and_no_others(void **state)
{
    struct digest hashes[LEAVES_MAX];

    (void)state;
    fill(hashes, sizeof(hashes), 5);
    for (uint64_t count = 1; count <= LEAVES_MAX; count++) {
        struct merkle_leaves leaves;
        struct digest root;

        merkle_leaves_init_hashes(&leaves, hashes, count);
        merkle_root(&root, &leaves);
        for (uint64_t index = 0; index < count; index++) {
            struct merkle_path path;
            struct digest wanted[8];

            merkle_path_build(&path, &leaves, index);
            assert_int_equal(rfc_path(wanted, index, hashes, count), path.sibling_count);
            assert_memory_equal(wanted, path.siblings, path.sibling_count * sizeof(wanted[0]));
            assert_int_equal(merkle_path_check(&path, &hashes[index], &root), VERDICT_VALID);
            check_other_places_are_refused(&path, &hashes[index], &root);
            check_other_lengths_are_refused(&path, &hashes[index], &root);
            check_flipped_bits_are_refused(&path, &hashes[index], &root);
        }
    }
}

static void test_path_leaf_count_is_not_bound(void **state)
{
    /* Pins the warning in merkle.h: if this ever starts to fail, the warning can go. */
    struct digest hashes[4];
    struct merkle_leaves leaves;
    struct merkle_path path;
    struct digest root;

    (void)state;
    fill(hashes, sizeof(hashes), 6);
    merkle_leaves_init_hashes(&leaves, hashes, 4);
    merkle_root(&root, &leaves);
    merkle_path_build(&path, &leaves, 0);
    path.leaf_count = 3;
    assert_int_equal(merkle_path_check(&path, &hashes[0], &root), VERDICT_VALID);
}

static void test_path_bytes_one_changed_byte_is_refused(void **state)
{
    struct digest hashes[LEAVES_MAX];

    (void)state;
    fill(hashes, sizeof(hashes), 7);
    for (uint64_t count = 1; count <= LEAVES_MAX; count += 3) {
        struct merkle_leaves leaves;
        struct digest root;
        uint8_t bytes[MERKLE_PATH_BYTES_MAX + 1] = {0};

        merkle_leaves_init_hashes(&leaves, hashes, count);
        merkle_root(&root, &leaves);
        for (uint64_t index = 0; index < count; index++) {
            struct merkle_path path;
            struct merkle_path read;

            merkle_path_build(&path, &leaves, index);

            size_t size = merkle_path_write(bytes, &path);

            assert_int_equal(merkle_path_read(&read, bytes, size), STATUS_OK);
            assert_int_equal(merkle_path_check(&read, &hashes[index], &root), VERDICT_VALID);
            for (size_t cut = 0; cut < size; cut++) {
                assert_int_equal(merkle_path_read(&read, bytes, cut), STATUS_BAD_FORMAT);
            }
            assert_int_equal(merkle_path_read(&read, bytes, size + 1), STATUS_BAD_FORMAT);
            for (size_t at = 0; at < size; at++) {
                bytes[at] ^= 0x10;
                /* Bytes 8 to 15 are the leaf count, which a path alone does not bind. */
                if (merkle_path_read(&read, bytes, size) == STATUS_OK && read.leaf_count == count) {
                    assert_int_equal(merkle_path_check(&read, &hashes[index], &root),
                                     VERDICT_INVALID);
                }
                bytes[at] ^= 0x10;
            }
        }
    }
}

/* ---- proofs of many leaves ---- */

struct multi_room {
    struct merkle_multi multi;
    uint64_t indexes[LEAVES_MAX];
    struct digest siblings[MERKLE_MULTI_SIBLINGS(LEAVES_MAX)];
    struct digest proven[LEAVES_MAX];
};

static void multi_room_init(struct multi_room *room)
{
    room->multi = (struct merkle_multi){
        .indexes = room->indexes,
        .index_capacity = LEAVES_MAX,
        .siblings = room->siblings,
        .sibling_capacity = MERKLE_MULTI_SIBLINGS(LEAVES_MAX),
    };
}

/* Proves the leaves whose bit is set; returns the verdict on the proof after its bytes. */
static void prove_subset(struct multi_room *room, const struct merkle_leaves *leaves,
                         const struct digest *root, uint64_t (*chosen)(uint64_t, uint64_t),
                         uint64_t key)
{
    static uint8_t bytes[16 + LEAVES_MAX * 8 + sizeof(room->siblings)];
    struct multi_room *copy = room + 1;
    struct merkle_multi *multi = &room->multi;

    multi_room_init(room);
    multi_room_init(copy);
    for (uint64_t i = 0; i < leaves->count; i++) {
        if (chosen(key, i) != 0) {
            room->proven[multi->index_count] = leaves->hashes[i];
            multi->indexes[multi->index_count++] = i;
        }
    }
    if (multi->index_count == 0) {
        assert_int_equal(merkle_multi_build(multi, leaves), STATUS_BAD_FORMAT);
        return;
    }
    assert_int_equal(merkle_multi_build(multi, leaves), STATUS_OK);
    assert_int_equal(merkle_multi_check(multi, room->proven, root), VERDICT_VALID);
    merkle_multi_write(bytes, multi);
    assert_int_equal(merkle_multi_read(&copy->multi, bytes, merkle_multi_bytes(multi)), STATUS_OK);
    assert_int_equal(merkle_multi_check(&copy->multi, room->proven, root), VERDICT_VALID);
}

static void check_multi_changes_are_refused(struct multi_room *room, uint64_t leaf_count,
                                            const struct digest *root)
{
    struct merkle_multi *multi = &room->multi;

    for (uint32_t i = 0; i < multi->sibling_count; i++) {
        multi->siblings[i].bytes[i % 32] ^= 0x80;
        assert_int_equal(merkle_multi_check(multi, room->proven, root), VERDICT_INVALID);
        multi->siblings[i].bytes[i % 32] ^= 0x80;
    }
    for (uint32_t i = 0; i < multi->index_count; i++) {
        uint64_t kept = multi->indexes[i];

        room->proven[i].bytes[i % 32] ^= 0x01;
        assert_int_equal(merkle_multi_check(multi, room->proven, root), VERDICT_INVALID);
        room->proven[i].bytes[i % 32] ^= 0x01;
        for (uint64_t other = 0; other <= leaf_count; other++) {
            multi->indexes[i] = other;
            assert_int_equal(merkle_multi_check(multi, room->proven, root),
                             other == kept ? VERDICT_VALID : VERDICT_INVALID);
        }
        multi->indexes[i] = kept;
    }
    multi->sibling_count++;
    assert_int_equal(merkle_multi_check(multi, room->proven, root), VERDICT_INVALID);
    multi->sibling_count--;
    if (multi->sibling_count > 0) {
        multi->sibling_count--;
        assert_int_equal(merkle_multi_check(multi, room->proven, root), VERDICT_INVALID);
        multi->sibling_count++;
    }
}

static uint64_t bit_of(uint64_t key, uint64_t index)
{
    return key >> index & 1;
}

/* A pseudo-random quarter of the leaves. */
static uint64_t scatter(uint64_t key, uint64_t index)
{
    uint64_t x = (key * 131 + index + 1) * 0x9E3779B97F4A7C15;

    return (x >> 40 & 3) == 0;
}

static void test_every_subset_of_small_trees_is_proven_together(void **state)
{
    static struct multi_room rooms[2];
    struct digest hashes[LEAVES_MAX];

    (void)state;
    fill(hashes, sizeof(hashes), 8);
    for (uint64_t count = 1; count <= SUBSETS_MAX; count++) {
        struct merkle_leaves leaves;
        struct digest root;

        merkle_leaves_init_hashes(&leaves, hashes, count);
        merkle_root(&root, &leaves);
        for (uint64_t subset = 0; subset < UINT64_C(1) << count; subset++) {
            prove_subset(rooms, &leaves, &root, bit_of, subset);
            if (subset != 0) {
                check_multi_changes_are_refused(&rooms[0], count, &root);
            }
        }
    }
}

static void test_scattered_leaves_are_proven_together(void **state)
{
    static struct multi_room rooms[2];
    struct digest hashes[LEAVES_MAX];

    (void)state;
    fill(hashes, sizeof(hashes), 9);
    for (uint64_t count = 1; count <= LEAVES_MAX; count++) {
        struct merkle_leaves leaves;
        struct digest root;

        merkle_leaves_init_hashes(&leaves, hashes, count);
        merkle_root(&root, &leaves);
        for (uint64_t key = 0; key < 3; key++) {
            prove_subset(rooms, &leaves, &root, scatter, key);
            if (rooms[0].multi.index_count > 0) {
                check_multi_changes_are_refused(&rooms[0], count, &root);
            }
        }
    }
}

/* One leaf proven "together" is its path, ordered by the walk instead of from the leaf. */
static void test_proof_of_one_leaf_is_as_long_as_its_path(void **state)
{
    static struct multi_room room;
    struct digest hashes[LEAVES_MAX];
    struct merkle_leaves leaves;

    (void)state;
    fill(hashes, sizeof(hashes), 10);
    merkle_leaves_init_hashes(&leaves, hashes, LEAVES_MAX);
    for (uint64_t index = 0; index < LEAVES_MAX; index++) {
        struct merkle_path path;

        multi_room_init(&room);
        room.indexes[0] = index;
        room.multi.index_count = 1;
        assert_int_equal(merkle_multi_build(&room.multi, &leaves), STATUS_OK);
        merkle_path_build(&path, &leaves, index);
        assert_int_equal(room.multi.sibling_count, path.sibling_count);
    }
}

static void test_multi_bytes_cut_or_too_large_are_refused(void **state)
{
    static struct multi_room rooms[2];
    struct digest hashes[LEAVES_MAX];
    static uint8_t bytes[16 + LEAVES_MAX * 8 + sizeof(rooms[0].siblings)];
    struct merkle_leaves leaves;
    struct digest root;

    (void)state;
    fill(hashes, sizeof(hashes), 11);
    merkle_leaves_init_hashes(&leaves, hashes, LEAVES_MAX);
    merkle_root(&root, &leaves);
    prove_subset(rooms, &leaves, &root, scatter, 1);

    size_t size = merkle_multi_bytes(&rooms[0].multi);
    uint32_t indexes = rooms[0].multi.index_count;
    uint32_t siblings = rooms[0].multi.sibling_count;

    merkle_multi_write(bytes, &rooms[0].multi);
    for (size_t cut = 0; cut < size; cut++) {
        assert_int_equal(merkle_multi_read(&rooms[1].multi, bytes, cut), STATUS_BAD_FORMAT);
    }
    rooms[1].multi.index_capacity = indexes - 1;
    assert_int_equal(merkle_multi_read(&rooms[1].multi, bytes, size), STATUS_OVER_LIMIT);
    rooms[1].multi.index_capacity = indexes;
    rooms[1].multi.sibling_capacity = siblings - 1;
    assert_int_equal(merkle_multi_read(&rooms[1].multi, bytes, size), STATUS_OVER_LIMIT);
    rooms[0].multi.sibling_capacity = siblings - 1;
    assert_int_equal(merkle_multi_build(&rooms[0].multi, &leaves), STATUS_OVER_LIMIT);
    rooms[1].multi.sibling_capacity = siblings;
    memset(bytes + 16, 0xFF, 8); /* the first index is now the largest */
    assert_int_equal(merkle_multi_read(&rooms[1].multi, bytes, size), STATUS_BAD_FORMAT);
}

/* ---- bytes ---- */

static void leaf_hashes_of(struct digest *hashes, const uint8_t *bytes, size_t size)
{
    for (size_t at = 0; at < size; at += MERKLE_LEAF_SIZE) {
        uint8_t leaf[MERKLE_LEAF_SIZE] = {0};
        size_t rest = size - at;

        memcpy(leaf, bytes + at, rest < MERKLE_LEAF_SIZE ? rest : MERKLE_LEAF_SIZE);
        rfc_hash(&hashes[at / MERKLE_LEAF_SIZE], 0x00, leaf, sizeof(leaf));
    }
}

/* The same bytes in random pieces, by several threads and by one, make one root. */
static void test_root_of_bytes_depends_on_neither_pieces_nor_threads(void **state)
{
    static const size_t sizes[] = {1,       1023,          1024,     1025,    2048,
                                   65536,   1048575,       1048576,  1048577, 2097152,
                                   3146753, BYTES_MAX - 1, BYTES_MAX};
    static const int threads[] = {1, 2, 3, 5, 0};
    static struct digest hashes[BYTES_MAX / MERKLE_LEAF_SIZE + 1];
    uint8_t *bytes = malloc(BYTES_MAX);
    uint64_t seed = 11;

    (void)state;
    assert_non_null(bytes);
    fill(bytes, BYTES_MAX, 12);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct merkle_leaves leaves;
        struct digest wanted;
        struct digest root;

        leaf_hashes_of(hashes, bytes, sizes[i]);
        rfc_root(&wanted, hashes, (sizes[i] + MERKLE_LEAF_SIZE - 1) / MERKLE_LEAF_SIZE);
        merkle_leaves_init_bytes(&leaves, bytes, sizes[i]);
        for (size_t t = 0; t < 5; t++) {
            struct merkle_stream stream;

            leaves.threads = threads[t];
            merkle_root(&root, &leaves);
            assert_digest(&root, &wanted);
            merkle_stream_init(&stream);
            for (size_t at = 0; at < sizes[i];) {
                size_t piece = test_random_below(&seed, t % 2 == 0 ? 3000000 : 5000);

                piece = piece < sizes[i] - at ? piece : sizes[i] - at;
                assert_int_equal(merkle_stream_add(&stream, bytes + at, piece, threads[t]),
                                 STATUS_OK);
                at += piece;
            }
            merkle_stream_root(&stream, &root);
            assert_digest(&root, &wanted);
        }
    }
    free(bytes);
}

/* Every cut of lists of up to 40 leaves in two, and large ones in three: the ranges, hashed apart,
 * give the root of all. */
static void check_ranges(const uint8_t *bytes, uint64_t size, uint64_t first_cut,
                         uint64_t second_cut)
{
    const uint64_t leaf_count = (size + MERKLE_LEAF_SIZE - 1) / MERKLE_LEAF_SIZE;
    const uint64_t cuts[] = {0, first_cut, second_cut, leaf_count};
    struct merkle_builder builder;
    struct merkle_leaves leaves;
    struct digest wanted;
    struct digest found;

    merkle_builder_init(&builder);
    for (int i = 0; i < 3; i++) {
        struct digest nodes[MERKLE_RANGE_NODES_MAX];
        const uint64_t next = cuts[i + 1] * MERKLE_LEAF_SIZE;
        const uint64_t end = next < size ? next : size; /* the last leaf may be short */
        const uint64_t from = cuts[i] == leaf_count ? end : cuts[i] * MERKLE_LEAF_SIZE;
        const uint32_t count = merkle_range_count(cuts[i], cuts[i + 1] - cuts[i]);

        assert_true(count <= MERKLE_RANGE_NODES_MAX);
        assert_true((count == 0) == (cuts[i] == cuts[i + 1]));
        merkle_leaves_init_bytes(&leaves, bytes + from, end - from);
        merkle_range_nodes(nodes, &leaves, cuts[i]);
        assert_int_equal(merkle_builder_add_range(&builder, nodes, cuts[i + 1] - cuts[i]),
                         STATUS_OK);
    }
    merkle_builder_root(&builder, &found);
    merkle_leaves_init_bytes(&leaves, bytes, size);
    merkle_root(&wanted, &leaves);
    assert_true(digest_equal(&found, &wanted));
}

static void test_ranges_that_are_hashed_apart_give_the_root(void **state)
{
    enum { LEAVES = 700 };
    uint8_t *bytes = malloc((size_t)LEAVES * MERKLE_LEAF_SIZE);

    (void)state;
    assert_non_null(bytes);
    fill(bytes, (size_t)LEAVES * MERKLE_LEAF_SIZE, 77);
    for (uint64_t leaves = 1; leaves <= 40; leaves++) {
        for (uint64_t cut = 0; cut <= leaves; cut++) {
            check_ranges(bytes, leaves * MERKLE_LEAF_SIZE, cut, cut);
            check_ranges(bytes, leaves * MERKLE_LEAF_SIZE - 100, cut, leaves);
        }
    }
    check_ranges(bytes, (uint64_t)LEAVES * MERKLE_LEAF_SIZE, 3, 515);
    check_ranges(bytes, (uint64_t)LEAVES * MERKLE_LEAF_SIZE - 1, 256, 512);
    free(bytes);
}

static void test_paths_of_bytes_are_accepted(void **state)
{
    static uint8_t bytes[70 * MERKLE_LEAF_SIZE - 5];

    (void)state;
    fill(bytes, sizeof(bytes), 13);
    for (size_t size = 1; size <= sizeof(bytes); size += 1000) {
        static struct digest hashes[70];
        struct merkle_leaves leaves;
        struct digest root;

        leaf_hashes_of(hashes, bytes, size);
        merkle_leaves_init_bytes(&leaves, bytes, size);
        merkle_root(&root, &leaves);
        for (uint64_t index = 0; index < leaves.count; index++) {
            struct merkle_path path;

            merkle_path_build(&path, &leaves, index);
            assert_int_equal(merkle_path_check(&path, &hashes[index], &root), VERDICT_VALID);
        }
    }
}

static void test_more_leaves_than_the_limit_are_refused(void **state)
{
    struct digest hash = {{0}};
    struct merkle_builder builder;
    struct merkle_stream stream;
    struct digest before;
    struct digest after;

    (void)state;
    merkle_builder_init(&builder);
    builder.leaf_count = MERKLE_LEAVES_MAX - 1;
    memset(builder.pending, 1, sizeof(builder.pending));
    merkle_builder_root(&builder, &before);
    assert_int_equal(merkle_builder_add(&builder, &hash, 2), STATUS_OVER_LIMIT);
    merkle_builder_root(&builder, &after);
    assert_digest(&before, &after);
    assert_int_equal(merkle_builder_add(&builder, &hash, 1), STATUS_OK);
    merkle_builder_root(&builder, &after);
    assert_int_equal(merkle_builder_add(&builder, &hash, 1), STATUS_OVER_LIMIT);
    merkle_stream_init(&stream);
    stream.size = MERKLE_LEAVES_MAX * MERKLE_LEAF_SIZE - 3;
    assert_int_equal(merkle_stream_add(&stream, &hash, 4, 1), STATUS_OVER_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference_log_has_its_published_roots),
        cmocka_unit_test(test_reference_log_has_its_published_paths),
        cmocka_unit_test(test_roots_of_small_trees_follow_the_rfc),
        cmocka_unit_test(test_every_node_of_small_trees_is_the_root_of_its_leaves),
        cmocka_unit_test(test_paths_of_small_trees_are_accepted_and_no_others),
        cmocka_unit_test(test_path_leaf_count_is_not_bound),
        cmocka_unit_test(test_path_bytes_one_changed_byte_is_refused),
        cmocka_unit_test(test_every_subset_of_small_trees_is_proven_together),
        cmocka_unit_test(test_scattered_leaves_are_proven_together),
        cmocka_unit_test(test_proof_of_one_leaf_is_as_long_as_its_path),
        cmocka_unit_test(test_multi_bytes_cut_or_too_large_are_refused),
        cmocka_unit_test(test_root_of_bytes_depends_on_neither_pieces_nor_threads),
        cmocka_unit_test(test_ranges_that_are_hashed_apart_give_the_root),
        cmocka_unit_test(test_paths_of_bytes_are_accepted),
        cmocka_unit_test(test_more_leaves_than_the_limit_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
