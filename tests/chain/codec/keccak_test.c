/*
 * Goal: Keccak-256 gives the published values, however its input is cut.
 * Method: known answers, the block's edges among them, and every cut of an input of three blocks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/chain/codec/hex_bytes.h"

enum {
    PATTERN_SIZE = 1000,
};

static void check(const void *bytes, size_t size, const char *hex)
{
    struct hash32 hash = keccak256(bytes, size);
    struct hash32 expected = hex_hash(hex);

    assert_memory_equal(hash.bytes, expected.bytes, HASH32_SIZE);
}

/* The Keccak team's own vectors (KeccakKAT, Keccak-256), and the usual sentence. */
static void test_published_values_are_met(void **state)
{
    const char *fox = "The quick brown fox jumps over the lazy dog";

    (void)state;
    check("", 0, "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470");
    check("abc", 3, "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45");
    check(fox, strlen(fox), "4d741b6f1eb29cb2a9b9911c82f56fa8d73b04959d3d9d222895df6c0b28aa15");
}

/* Computed with js-sha3 0.8.0 (npm): byte i is 7 i + 3. */
static void test_edges_of_the_block(void **state)
{
    static const struct {
        size_t size;
        const char *hex;
    } cases[] = {
        {1, "69c322e3248a5dfc29d73c5b0553b0185a35cd5bb6386747517ef7e53b15e287"},
        {135, "00ef96af9cf4b24c7f269d922294444a197d0a33638c2e56634c57e892103a8f"},
        {136, "742061bcad767ed4c4f5883b1dcb1aad11afdcc140dc469d953759b127b9f9ed"},
        {137, "e3371f61e770abf254c34239c3b0099ad90594507415bc81dd0a10b9692bbf2a"},
        {271, "4401c4afbe16ff911bdbf2d38e556e5b861f3fdf0f9d4306b1c46f6ae4f73584"},
        {272, "ac141fd7b0a0ffcd2e967254d508da3ec616596493c36fa304425647d90e6de5"},
        {1000, "80cdc8dd52cbb3dbaea8f383209893fa2bb52efbd5aedbb4b26dcfe307fcdc9b"},
    };
    uint8_t pattern[PATTERN_SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof(pattern); i++) {
        pattern[i] = (uint8_t)(7 * i + 3);
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check(pattern, cases[i].size, cases[i].hex);
    }
}

static void test_every_cut_gives_the_same_hash(void **state)
{
    uint8_t bytes[3 * KECCAK_RATE];
    struct hash32 whole;

    (void)state;
    memset(bytes, 0xa5, sizeof(bytes));
    whole = keccak256(bytes, sizeof(bytes));
    for (size_t cut = 0; cut <= sizeof(bytes); cut++) {
        struct keccak keccak;
        struct hash32 parts;

        keccak_init(&keccak);
        keccak_add(&keccak, bytes, cut);
        keccak_add(&keccak, bytes + cut, sizeof(bytes) - cut);
        parts = keccak_end(&keccak);
        assert_true(hash32_equal(&whole, &parts));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_values_are_met),
        cmocka_unit_test(test_edges_of_the_block),
        cmocka_unit_test(test_every_cut_gives_the_same_hash),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
