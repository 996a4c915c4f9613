/*
 * Goal: `auto` takes a GPU that gives the rules' bits, else the CPU, and the log has one line that
 * says which and why.
 * Method: the emulated GPU as the plugin, sound or with a fault of its plainest kernel, or none at
 * all; a process for each, as a plugin is asked once what it is.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io/log.h"
#include "engine/plan/backend.h"

struct outcome {
    enum status status;
    bool on_gpu;
    char log[1024];
    char error[1024];
};

static void choose(struct outcome *outcome, const char *variable, const char *value)
{
    struct machine_options options;
    struct error error;
    struct log log;
    FILE *lines = fmemopen(outcome->log, sizeof(outcome->log), "w");

    error_init(&error);
    if (lines == NULL || setenv("LOCKSTEP_CUDA", "build/tests/emulated_cuda.so", 1) != 0 ||
        setenv(variable, value, 1) != 0 || machine_options_default(&options, &error) != STATUS_OK) {
        _exit(1);
    }
    log_init(&log, lines, LOG_LEVEL_INFO, LOG_FORMAT_PLAIN);
    outcome->status = machine_options_device(&options, "auto", &log, &error);
    outcome->on_gpu = options.backend == &backend_cuda;
    (void)snprintf(outcome->error, sizeof(outcome->error), "%s", error.text);
    (void)fclose(lines);
    _exit(0);
}

static struct outcome outcome_with(const char *variable, const char *value)
{
    struct outcome *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct outcome outcome;
    pid_t child;
    int code = -1;

    assert_true(shared != MAP_FAILED);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        choose(shared, variable, value);
    }
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
    outcome = *shared;
    assert_int_equal(munmap(shared, sizeof(*shared)), 0);
    return outcome;
}

static void expect_cpu(const char *variable, const char *value, const char *why)
{
    const struct outcome outcome = outcome_with(variable, value);
    const char *line = strchr(outcome.log, '\n');

    assert_int_equal(outcome.status, STATUS_OK);
    assert_false(outcome.on_gpu);
    assert_non_null(strstr(outcome.log, "auto takes the CPU: "));
    assert_non_null(strstr(outcome.log, why));
    assert_true(line != NULL && line[1] == '\0');
}

static void test_auto_takes_a_gpu_that_passes_its_self_test(void **state)
{
    const struct outcome outcome = outcome_with("EMULATED_NAME", "a sound device");

    (void)state;
    assert_int_equal(outcome.status, STATUS_OK);
    assert_true(outcome.on_gpu);
    assert_non_null(strstr(outcome.log, "auto takes the first GPU"));
}

static void test_auto_takes_the_cpu_and_says_why(void **state)
{
    (void)state;
    expect_cpu("LOCKSTEP_CUDA", "off", "CUDA is turned off by LOCKSTEP_CUDA");
    expect_cpu("LOCKSTEP_CUDA", "build/tests/none.so", "cannot load the CUDA plugin");
    expect_cpu("EMULATED_FAULT", "skips:kernel_contract_plain",
               "fails the self-test of its contraction kernels: other bits than the rules");
    expect_cpu("EMULATED_FAIL_AT", "1", "a failure that the test asked for");
}

static void test_a_wrong_name_of_a_variant_is_refused(void **state)
{
    const struct outcome outcome = outcome_with("LOCKSTEP_CUDA_WITHOUT", "wgma");

    (void)state;
    assert_int_equal(outcome.status, STATUS_USAGE);
    assert_non_null(strstr(outcome.error, "'wgma'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_auto_takes_a_gpu_that_passes_its_self_test),
        cmocka_unit_test(test_auto_takes_the_cpu_and_says_why),
        cmocka_unit_test(test_a_wrong_name_of_a_variant_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
