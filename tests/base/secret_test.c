/*
 * Goal: a key's memory is locked, does not reach a child or a core file, and is wiped.
 * Method: reads what the kernel says: /proc, a fork, the limits of the process.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/secret.h"

/* The address sanitizer replaces mlock with nothing. */
static void skip_without_locks(void)
{
#if defined(__SANITIZE_ADDRESS__)
    test_skip("the address sanitizer locks no memory");
#endif
}

/* Kibibytes of locked memory of this process. */
static unsigned long locked_kib(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    unsigned long kib = 0;

    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "VmLck:", 6) == 0) {
            kib = strtoul(line + 6, NULL, 10);
        }
    }
    (void)fclose(file);
    return kib;
}

static void test_a_secret_is_locked_until_it_is_freed(void **state)
{
    unsigned long before = locked_kib();
    struct error error;
    uint8_t *secret;

    (void)state;
    skip_without_locks();
    secret = secret_alloc(5000, &error);
    assert_non_null(secret);
    for (size_t i = 0; i < 5000; i++) {
        assert_int_equal(secret[i], 0);
    }
    assert_int_equal(locked_kib(), before + 8);
    secret_free(secret, 5000);
    assert_int_equal(locked_kib(), before);
    secret_free(NULL, 5000);
}

static void test_a_child_sees_zeros(void **state)
{
    struct error error;
    uint8_t *secret = secret_alloc(32, &error);
    int result = -1;
    pid_t child;

    (void)state;
    assert_non_null(secret);
    memset(secret, 0x5a, 32);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(secret[0] == 0 && secret[31] == 0 ? 0 : 1);
    }
    (void)waitpid(child, &result, 0);
    assert_int_equal(result, 0);
    assert_int_equal(secret[0], 0x5a);
    secret_free(secret, 32);
}

static void test_a_refused_lock_is_an_error_with_advice(void **state)
{
    int result = -1;
    pid_t child;

    (void)state;
    skip_without_locks();
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit none = {0, 0};
        struct error error;

        error_init(&error);
        if (setrlimit(RLIMIT_MEMLOCK, &none) != 0 || (geteuid() == 0 && setuid(65534) != 0)) {
            _exit(2);
        }
        _exit(secret_alloc(32, &error) == NULL && error.advice[0] != '\0' ? 0 : 1);
    }
    (void)waitpid(child, &result, 0);
    assert_int_equal(result, 0);
}

static void test_no_core_files_after_forbidding(void **state)
{
    struct rlimit limit;
    struct error error;

    (void)state;
    assert_int_equal(secret_forbid_dumps(&error), STATUS_OK);
    assert_int_equal(getrlimit(RLIMIT_CORE, &limit), 0);
    assert_int_equal(limit.rlim_cur, 0);
    assert_int_equal(limit.rlim_max, 0);
    assert_int_equal(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 0);
}

static void test_equality_looks_at_every_byte(void **state)
{
    uint8_t left[32] = {0};
    uint8_t right[32] = {0};

    (void)state;
    assert_true(secret_equal(left, right, sizeof(left)));
    for (size_t bit = 0; bit < 8 * sizeof(left); bit++) {
        right[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(secret_equal(left, right, sizeof(left)));
        right[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_secret_is_locked_until_it_is_freed),
        cmocka_unit_test(test_a_child_sees_zeros),
        cmocka_unit_test(test_a_refused_lock_is_an_error_with_advice),
        cmocka_unit_test(test_equality_looks_at_every_byte),
        cmocka_unit_test(test_no_core_files_after_forbidding), /* last: it stays so */
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
