/*
 * Goal: every way of computing SHA-256 gives the digests of FIPS 180-4.
 * Method: published vectors, then libcrypto as a second opinion over every short length, every
 * way to cut a stream, and groups of many messages of every size around a block's edges.
 */
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "proofs/hash/sha256.h"
#include "tests/support/test.h"

#define MANY_COUNT_MAX 19
#define MESSAGE_MAX    4500

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

static void oracle(struct digest *digest, const void *data, size_t size)
{
    assert_int_equal(EVP_Digest(data, size, digest->bytes, NULL, EVP_sha256(), NULL), 1);
}

static void expect(const struct digest *got, const struct digest *wanted, int isa, size_t size)
{
    if (!digest_equal(got, wanted)) {
        fail_msg("%s differs at %zu bytes", sha256_isa_name((enum sha256_isa)isa), size);
    }
}

static void whole(struct digest *digest, const void *data, size_t size, int isa)
{
    struct sha256 hash;

    sha256_init(&hash, (enum sha256_isa)isa);
    sha256_add(&hash, data, size);
    sha256_end(&hash, digest);
}

static void check_vector(const void *data, size_t size, const char *hex)
{
    struct digest wanted;
    struct digest got;

    digest_of_hex(&wanted, hex);
    for (int isa = 0; isa < SHA256_ISA_COUNT; isa++) {
        if (sha256_isa_usable((enum sha256_isa)isa)) {
            whole(&got, data, size, isa);
            expect(&got, &wanted, isa, size);
            if (size > 0) {
                sha256_many(&got, *(const uint8_t *)data, (const uint8_t *)data + 1, size - 1, 1,
                            (enum sha256_isa)isa);
                expect(&got, &wanted, isa, size);
            }
        }
    }
    sha256(&got, data, size);
    expect(&got, &wanted, 0, size);
    sha256_scalar(&got, data, size);
    expect(&got, &wanted, SHA256_ISA_SCALAR, size);
}

/* NIST "SHA-256 examples" (FIPS 180-4) and CAVP SHA256ShortMsg.rsp, Len 0 to 64. */
static void test_published_short_messages_have_their_digests(void **state)
{
    static const uint8_t cavp[][8] = {
        {0xd3},
        {0x11, 0xaf},
        {0xb4, 0x19, 0x0e},
        {0x74, 0xba, 0x25, 0x21},
        {0xc2, 0x99, 0x20, 0x96, 0x82},
        {0xe1, 0xdc, 0x72, 0x4d, 0x56, 0x21},
        {0x06, 0xe0, 0x76, 0xf5, 0xa4, 0x42, 0xd5},
        {0x57, 0x38, 0xc9, 0x29, 0xc4, 0xf4, 0xcc, 0xb6},
    };
    static const char *const digests[] = {
        "28969cdfa74a12c82f3bad960b0b000aca2ac329deea5c2328ebc6f2ba9802c1",
        "5ca7133fa735326081558ac312c620eeca9970d1e70a4b95533d956f072d1f98",
        "dff2e73091f6c05e528896c4c831b9448653dc2ff043528f6769437bc7b975c2",
        "b16aa56be3880d18cd41e68384cf1ec8c17680c45a02b1575dc1518923ae8b0e",
        "f0887fe961c9cd3beab957e8222494abb969b1ce4c6557976df8b0f6d20e9166",
        "eca0a060b489636225b4fa64d267dabbe44273067ac679f20820bddc6b6a90ac",
        "3fd877e27450e6bbd5d74bb82f9870c64c66e109418baa8e6bbcff355e287926",
        "963bb88f27f512777aab6c8b1a02c70ec0ad651d428f870036e1917120fb48bf",
    };

    (void)state;
    check_vector("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check_vector("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check_vector("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
                 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    check_vector("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnop"
                 "jklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
                 112, "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
    for (size_t i = 0; i < 8; i++) {
        check_vector(cavp[i], i + 1, digests[i]);
    }
}

/* The third example of FIPS 180-2: one million times "a". */
static void test_a_million_letters_have_their_digest(void **state)
{
    static uint8_t letters[1000000];

    (void)state;
    memset(letters, 'a', sizeof(letters));
    check_vector(letters, sizeof(letters),
                 "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* CAVP SHA256Monte.rsp: counts 0 and 99 of the chain that starts at its seed. */
static void test_monte_carlo_chain_reaches_its_checkpoints(void **state)
{
    (void)state;
    for (int isa = 1; isa < SHA256_ISA_COUNT; isa++) {
        struct digest seed;
        struct digest wanted;

        if (!sha256_isa_usable((enum sha256_isa)isa)) {
            continue;
        }
        digest_of_hex(&seed, "6d1e72ad03ddeb5de891e572e2396f8da015d899ef0e79503152d6010a3fe691");
        for (int count = 0; count < 100; count++) {
            struct digest last[4] = {seed, seed, seed, seed};

            for (int i = 0; i < 1000; i++) {
                whole(&last[3], last, 3 * sizeof(last[0]), isa);
                memmove(last, last + 1, 3 * sizeof(last[0]));
            }
            seed = last[3];
            if (count == 0) {
                digest_of_hex(&wanted,
                              "e93c330ae5447738c8aa85d71a6c80f2a58381d05872d26bdd39f1fcd4f2b788");
                expect(&seed, &wanted, isa, 96);
            }
        }
        digest_of_hex(&wanted, "6a912ba4188391a78e6f13d88ed2d14e13afce9db6f7dcbf4a48c24f3db02778");
        expect(&seed, &wanted, isa, 96);
    }
}

static void test_every_short_length_agrees_with_libcrypto(void **state)
{
    uint8_t data[300];

    (void)state;
    fill(data, sizeof(data), 1);
    for (size_t size = 0; size <= sizeof(data); size++) {
        struct digest wanted;

        oracle(&wanted, data, size);
        for (int isa = 0; isa < SHA256_ISA_COUNT; isa++) {
            struct digest got;

            if (sha256_isa_usable((enum sha256_isa)isa)) {
                whole(&got, data, size, isa);
                expect(&got, &wanted, isa, size);
            }
        }
    }
}

static void test_a_stream_may_be_cut_anywhere(void **state)
{
    uint8_t data[MESSAGE_MAX];

    (void)state;
    fill(data, sizeof(data), 2);
    uint64_t seed = 7;

    for (int round = 0; round < 2000; round++) {
        int isa = round % SHA256_ISA_COUNT;
        size_t size = test_random_below(&seed, MESSAGE_MAX);
        struct sha256 hash;
        struct digest wanted;
        struct digest got;

        if (!sha256_isa_usable((enum sha256_isa)isa)) {
            continue;
        }
        sha256_init(&hash, (enum sha256_isa)isa);
        for (size_t at = 0; at < size;) {
            size_t piece = test_random_below(&seed, 200);

            piece = piece < size - at ? piece : size - at;
            sha256_add(&hash, data + at, piece);
            at += piece;
        }
        sha256_end(&hash, &got);
        oracle(&wanted, data, size);
        expect(&got, &wanted, isa, size);
    }
}

/* The messages stand at an odd address, for no kernel may count on alignment. */
static void check_many(size_t size, uint64_t count, int isa)
{
    static uint8_t messages[1 + MANY_COUNT_MAX * MESSAGE_MAX];
    static uint8_t prefixed[1 + MESSAGE_MAX];
    struct digest got[MANY_COUNT_MAX + 1];
    struct digest untouched;

    memset(&untouched, 0xA5, sizeof(untouched));
    got[count] = untouched;
    fill(messages + 1, size * count, size * 31 + count);
    sha256_many(got, 0x5A, messages + 1, size, count, (enum sha256_isa)isa);
    for (uint64_t i = 0; i < count; i++) {
        struct digest wanted;

        prefixed[0] = 0x5A;
        memcpy(prefixed + 1, messages + 1 + i * size, size);
        oracle(&wanted, prefixed, size + 1);
        expect(&got[i], &wanted, isa, size);
    }
    assert_true(digest_equal(&got[count], &untouched));
}

static void test_many_messages_agree_with_libcrypto(void **state)
{
    (void)state;
    for (int isa = 0; isa < SHA256_ISA_COUNT; isa++) {
        if (!sha256_isa_usable((enum sha256_isa)isa)) {
            print_message("no %s on this machine\n", sha256_isa_name((enum sha256_isa)isa));
            continue;
        }
        for (size_t size = 0; size <= 260; size++) {
            check_many(size, 1 + size % MANY_COUNT_MAX, isa);
        }
        for (uint64_t count = 0; count <= MANY_COUNT_MAX; count++) {
            check_many(32, count, isa);
            check_many(64, count, isa);
            check_many(1024, count, isa);
            check_many(MESSAGE_MAX, count, isa);
        }
    }
}

static void test_digests_may_overwrite_the_messages(void **state)
{
    (void)state;
    for (int isa = 0; isa < SHA256_ISA_COUNT; isa++) {
        for (uint64_t count = 1; count <= 40; count++) {
            struct digest nodes[80];
            struct digest wanted[40];

            if (!sha256_isa_usable((enum sha256_isa)isa)) {
                continue;
            }
            fill((uint8_t *)nodes, sizeof(nodes), count);
            sha256_many(wanted, 0x01, nodes, 64, count, (enum sha256_isa)isa);
            sha256_many(nodes, 0x01, nodes, 64, count, (enum sha256_isa)isa);
            assert_memory_equal(nodes, wanted, count * sizeof(wanted[0]));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_short_messages_have_their_digests),
        cmocka_unit_test(test_a_million_letters_have_their_digest),
        cmocka_unit_test(test_monte_carlo_chain_reaches_its_checkpoints),
        cmocka_unit_test(test_every_short_length_agrees_with_libcrypto),
        cmocka_unit_test(test_a_stream_may_be_cut_anywhere),
        cmocka_unit_test(test_many_messages_agree_with_libcrypto),
        cmocka_unit_test(test_digests_may_overwrite_the_messages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
