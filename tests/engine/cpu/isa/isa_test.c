/*
 * isa_test.c - an instruction set computes only where it has shown the bits of the rules.
 *
 * Method: the probes of this machine's sets are right. A wrong result is injected for one class of
 * operations after the other, in one lane, and the class is named; the same for scalar code. Under
 * valgrind, whose AVX2 has other bits, isa_valgrind_test.sh sees a real one refused.
 */
#include "engine/cpu/isa/isa.h"

#include <string.h>

#include "engine/cpu/isa/probe.h"
#include "tests/support/test.h"

static enum probe_class faulty_class;
static uint32_t faulty_lane;
static probe_run *faulty_run;

static void run_with_fault(enum probe_class class, struct probe_lanes *probe)
{
    faulty_run(class, probe);
    if (class == faulty_class) {
        probe->out[faulty_lane] ^= 0x80000000;
    }
}

static void check_fault_is_seen(probe_run *run, enum probe_class (*judge)(probe_run *))
{
    faulty_run = run;
    for (int at = 0; at < PROBE_COUNT; at++) {
        faulty_class = (enum probe_class)at;
        for (faulty_lane = 0; faulty_lane < PROBE_LANES; faulty_lane += 5) {
            assert_int_equal(judge(run_with_fault), at);
        }
    }
    faulty_class = PROBE_COUNT;
    assert_int_equal(judge(run_with_fault), PROBE_COUNT);
}

static void test_a_wrong_bit_of_any_vector_operation_is_seen(void **state)
{
    int tried = 0;

    (void)state;
#if defined(__x86_64__)
    if (isa_available(ISA_AVX2)) {
        check_fault_is_seen(probe_avx2, probe_compare);
        tried++;
    }
    if (isa_available(ISA_AVX512)) {
        check_fault_is_seen(probe_avx512, probe_compare);
        tried++;
    }
#elif defined(__aarch64__)
    if (isa_available(ISA_NEON)) {
        check_fault_is_seen(probe_neon, probe_compare);
        tried++;
    }
    if (isa_available(ISA_I8MM)) {
        check_fault_is_seen(probe_i8mm, probe_compare);
        tried++;
    }
#endif
    if (tried == 0) {
        test_skip("no vector instructions that the kernels use are here");
    }
}

static void test_a_wrong_bit_of_scalar_code_is_seen(void **state)
{
    (void)state;
    check_fault_is_seen(probe_scalar, probe_known);
}

/* What valgrind's AVX2 computes: c - a * b as -(a * b - c), which is -0 where all are +0. */
static void negate_late(enum probe_class class, struct probe_lanes *probe)
{
    probe_scalar(class, probe);
    for (uint32_t i = 0; class == PROBE_FNMA && i < PROBE_LANES; i++) {
        if ((probe->a[i] | probe->b[i] | probe->c[i]) == 0) {
            probe->out[i] = 0x80000000;
        }
    }
}

static void test_a_late_negation_of_zeros_is_seen(void **state)
{
    (void)state;
    assert_int_equal(probe_compare(negate_late), PROBE_FNMA);
}

static void test_this_machine_computes_with_what_it_says(void **state)
{
    struct error error;

    (void)state;
    error_init(&error);
    assert_true(isa_available(ISA_SCALAR));
    assert_int_equal(isa_check(isa_best(), &error), STATUS_OK);
    for (int isa = ISA_SCALAR; isa < ISA_COUNT; isa++) {
        bool may = isa_available((enum isa)isa);

        assert_int_equal(isa_check((enum isa)isa, &error) == STATUS_OK, may);
        if (!may) {
            assert_non_null(strstr(error.text, isa_name((enum isa)isa)));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_wrong_bit_of_any_vector_operation_is_seen),
        cmocka_unit_test(test_a_wrong_bit_of_scalar_code_is_seen),
        cmocka_unit_test(test_a_late_negation_of_zeros_is_seen),
        cmocka_unit_test(test_this_machine_computes_with_what_it_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
