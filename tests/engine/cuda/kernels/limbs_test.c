/*
 * limbs_test.c - the limbs of quantized integers over their whole domain, and the bounds that
 * packed.h states for the sums that wgmma makes of them.
 */
#include <stdlib.h>

#include "engine/cuda/kernels/args.h"
#include "engine/cuda/kernels/packed.h"
#include "tests/support/test.h"

static int32_t signed_byte(uint8_t byte)
{
    return byte < 128 ? byte : byte - 256;
}

static void check_limbs(int bits)
{
    int32_t most = (1 << (bits - 1)) - 1;

    for (int32_t q = -most; q <= most; q++) {
        uint8_t limbs[PACKED_PLANES_MAX];

        packed_split(limbs, q, bits);
        assert_int_equal(packed_join(limbs[0], limbs[1], limbs[2], bits), q);
        if (bits == 14) {
            int32_t high = signed_byte(limbs[0]);
            int32_t low = signed_byte(limbs[1]);

            assert_true(high >= -64 && high <= 64 && low >= -64 && low <= 63);
            assert_true(high + low >= INT8_MIN && high + low <= INT8_MAX);
            assert_int_equal((int8_t)packed_add_bytes(limbs[0], limbs[1]), high + low);
        }
    }
}

static void test_limbs_give_back_every_integer(void **state)
{
    (void)state;
    check_limbs(14);
    check_limbs(15);
    check_limbs(16);
    check_limbs(22);
}

static void test_bytes_are_added_without_carries(void **state)
{
    uint64_t random = 7;

    (void)state;
    for (int i = 0; i < 100000; i++) {
        uint32_t a = (uint32_t)test_random(&random);
        uint32_t b = (uint32_t)test_random(&random);
        uint32_t sum = packed_add_bytes(a, b);

        for (int byte = 0; byte < 32; byte += 8) {
            assert_int_equal((uint8_t)(sum >> byte), (uint8_t)((a >> byte) + (b >> byte)));
        }
    }
}

/* The largest or the smallest integer of 14 bits with this high limb. */
static int32_t integer_of(int32_t high, bool largest)
{
    const int32_t q = high * 128 + (largest ? 63 : -64);

    return q > 8191 ? 8191 : q < -8191 ? -8191 : q;
}

/* The magnitude of 128 hh' + hl' + lh' is at its largest where low limbs are at an end. */
static int64_t largest_high_part(void)
{
    int64_t most = 0;

    for (int32_t at = 0; at < 129 * 129 * 4; at++) {
        const int32_t q[2] = {integer_of(at / 4 % 129 - 64, at % 2 == 1),
                              integer_of(at / 4 / 129 - 64, at / 2 % 2 == 1)};
        uint8_t limbs[2][PACKED_PLANES_MAX];
        int64_t high;

        packed_split(limbs[0], q[0], 14);
        packed_split(limbs[1], q[1], 14);
        high = (int64_t)q[0] * q[1] - signed_byte(limbs[0][1]) * signed_byte(limbs[1][1]);
        assert_int_equal(high % 128, 0);
        most = llabs(high / 128) > most ? llabs(high / 128) : most;
    }
    return most;
}

/* What packed.h says of wgmma's sums and factors, for every run and the shortest rows of each. */
static void test_sums_and_factors_of_wgmma_fit_32_bits(void **state)
{
    const int64_t most = largest_high_part();

    (void)state;
    for (uint32_t run_log = 7; 1u << run_log <= HOPPER_REACH; run_log++) {
        const int32_t room = (int32_t)packed_room(run_log);

        assert_true(most << run_log << room <= INT32_MAX);
        for (int64_t k = (1 << run_log) + 1; k < INT64_C(1) << 24; k = 2 * k - 1) {
            const int32_t window = contraction_window(14, k);
            const int32_t left = window > room ? window - room : 0;

            assert_true(left + window + 7 <= 30);
        }
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limbs_give_back_every_integer),
        cmocka_unit_test(test_bytes_are_added_without_carries),
        cmocka_unit_test(test_sums_and_factors_of_wgmma_fit_32_bits),
    };

    test_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
