/*
 * host_test.c - an instruction set is claimed only where every feature is there that mk/compile.mk
 * compiles its files with. Stepping back for others never raises a priority.
 *
 * Method: the flags are read from mk/compile.mk; for each, a processor that has everything but that
 * feature is asked.
 */
#include "base/host.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/support/test.h"

enum word { LEAF1_ECX, LEAF7_EBX, LEAF7_ECX };

/* The numbers of Intel's manual, volume 2, CPUID. */
static const struct feature {
    const char *flag;
    enum word word;
    int bit;
} features[] = {
    {"-mavx2", LEAF7_EBX, 5},      {"-mfma", LEAF1_ECX, 12},      {"-mf16c", LEAF1_ECX, 29},
    {"-mbmi2", LEAF7_EBX, 8},      {"-mavx512f", LEAF7_EBX, 16},  {"-mavx512bw", LEAF7_EBX, 30},
    {"-mavx512dq", LEAF7_EBX, 17}, {"-mavx512vl", LEAF7_EBX, 31}, {"-mavx512vnni", LEAF7_ECX, 11},
};

#define FEATURE_COUNT (sizeof(features) / sizeof(features[0]))

static const struct host_cpuid everything = {~0u, ~0u, ~0u, ~0u};

static const struct feature *feature_of(const char *flag)
{
    for (size_t i = 0; i < FEATURE_COUNT; i++) {
        if (strcmp(features[i].flag, flag) == 0) {
            return &features[i];
        }
    }
    fail_msg("mk/compile.mk compiles with %s, and this test does not know its bit", flag);
    return NULL;
}

static struct host_cpuid without(const struct feature *feature)
{
    struct host_cpuid cpuid = everything;
    uint32_t *const words[] = {&cpuid.leaf1_ecx, &cpuid.leaf7_ebx, &cpuid.leaf7_ecx};

    *words[feature->word] &= ~(UINT32_C(1) << feature->bit);
    return cpuid;
}

/* Asks has() without each -m flag of the line `name :=`; returns how many there were. */
static int check_flags(const char *name, bool (*has)(const struct host_cpuid *))
{
    FILE *file = fopen("mk/compile.mk", "re");
    char line[512];
    char *rest = NULL;
    int count = 0;

    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, name, strlen(name)) != 0 || line[strlen(name)] != ' ') {
            continue;
        }
        for (char *word = strtok_r(line, " \n", &rest); word != NULL;
             word = strtok_r(NULL, " \n", &rest)) {
            if (word[0] == '-') {
                struct host_cpuid cpuid = without(feature_of(word));

                if (has(&cpuid)) {
                    fail_msg("%s is claimed without %s", name, word);
                }
                count++;
            }
        }
    }
    fclose(file);
    return count;
}

static void test_avx2_is_claimed_only_with_every_feature_of_its_files(void **state)
{
    (void)state;
    assert_true(host_has_avx2(&everything));
    assert_int_equal(check_flags("ISA_avx2", host_has_avx2), 4);
}

static void test_avx512_is_claimed_only_with_every_feature_of_its_files(void **state)
{
    (void)state;
    assert_true(host_has_avx512(&everything));
    assert_int_equal(check_flags("ISA_avx2", host_has_avx512), 4); /* named by reference */
    assert_int_equal(check_flags("ISA_avx512", host_has_avx512), 5);
}

static void test_registers_that_the_system_does_not_save_are_not_used(void **state)
{
    struct host_cpuid cpuid = everything;

    (void)state;
    cpuid.xcr0 = 0x7; /* x87, SSE, AVX */
    assert_true(host_has_avx2(&cpuid));
    assert_false(host_has_avx512(&cpuid));
    cpuid.xcr0 = 0x3;
    assert_false(host_has_avx2(&cpuid));
    cpuid = everything;
    cpuid.leaf1_ecx &= ~(UINT32_C(1) << 27); /* OSXSAVE: xcr0 cannot be read */
    assert_false(host_has_avx2(&cpuid));
}

/* What this machine says is what the compiler's own list says of it. */
static void test_this_machine_is_read_as_the_compiler_reads_it(void **state)
{
    (void)state;
#if defined(__x86_64__)
    struct host_cpuid cpuid;

    host_cpuid_read(&cpuid);
    assert_true(!host_has_avx2(&cpuid) ||
                (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                 __builtin_cpu_supports("bmi2")));
    assert_int_equal((int)(__builtin_cpu_supports("avx512vnni") != 0 &&
                           __builtin_cpu_supports("avx512bw") != 0 &&
                           __builtin_cpu_supports("avx512dq") != 0 &&
                           __builtin_cpu_supports("avx512vl") != 0),
                     (int)host_has_avx512(&cpuid));
#else
    test_skip("CPUID is of x86-64");
#endif
}

/* A user who said "nice" is not overruled, also where root could. */
static void test_stepping_back_never_steps_forward(void **state)
{
    (void)state;
    host_step_back();
    assert_true(getpriority(PRIO_PROCESS, 0) >= 5);
    assert_int_equal(0, setpriority(PRIO_PROCESS, 0, 17));
    host_step_back();
    assert_int_equal(17, getpriority(PRIO_PROCESS, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_avx2_is_claimed_only_with_every_feature_of_its_files),
        cmocka_unit_test(test_avx512_is_claimed_only_with_every_feature_of_its_files),
        cmocka_unit_test(test_registers_that_the_system_does_not_save_are_not_used),
        cmocka_unit_test(test_this_machine_is_read_as_the_compiler_reads_it),
        cmocka_unit_test(test_stepping_back_never_steps_forward),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
