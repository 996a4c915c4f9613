/*
 * Goal: the operands of binary32_test find the faults that an implementation of binary32 has.
 * Method: tests/contracts/mutants.mjs puts one fault at a time into the library (a wrong sign of
 * zero, ties, sticky bits, ends of the range, rounding twice ...). The operands must find each
 * within the share of make check, and nothing in the library as it is.
 */
#include "tests/support/test.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/game/anvil.h"
#include "tests/support/gas/calculator.h"

enum {
    CASES = 20000, /* a tenth of what binary32_test takes */
    LINE_MAX_SIZE = 65536,
    MUTANTS_LEAST = 30,
};

static enum float_operation operation_named(const char *name)
{
    for (enum float_operation i = 0; i < FLOAT_OPERATIONS; i++) {
        if (strcmp(name, float_operation_names[i]) == 0) {
            return i;
        }
    }
    fail_msg("no operation %s", name);
    return FLOAT_OPERATIONS;
}

/* Cuts the next field of a line off. */
static char *field(char **line)
{
    char *found = strsep(line, "\t\n");

    assert_non_null(found);
    return found;
}

static bool is_caught(struct rpc *rpc, enum float_operation operation, const char *code)
{
    struct address calculator = anvil_deploy(rpc, 0, code, NULL, "0x0");
    struct calculator_difference difference;
    uint64_t seed = 1 + operation;

    return calculator_differs(rpc, &difference, &calculator, operation, &seed, CASES);
}

/* What the script writes. */
static FILE *start_script(pid_t *child)
{
    int ends[2];
    int result = pipe2(ends, O_CLOEXEC);

    assert(result == 0);
    *child = fork();
    assert(*child >= 0);
    if (*child == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)execlp("node", "node", "tests/contracts/mutants.mjs", (char *)NULL);
        _exit(127);
    }
    (void)close(ends[1]);
    return fdopen(ends[0], "r");
}

static void test_every_fault_is_found(void **state)
{
    (void)state;
    (void)evm_tool("solc/package.json");
    struct anvil *anvil = anvil_start(NULL);
    struct rpc *rpc = anvil_rpc(anvil);
    char *line = malloc(LINE_MAX_SIZE);
    uint32_t missed = 0;
    uint32_t count = 0;
    pid_t child;
    FILE *mutants = start_script(&child);
    int status = 0;

    assert_non_null(line);
    assert_non_null(mutants);
    for (; fgets(line, LINE_MAX_SIZE, mutants) != NULL; count++) {
        char *rest = line;
        enum float_operation operation = operation_named(field(&rest));
        const char *name = field(&rest);
        const char *code = field(&rest);

        if (count == 0) {
            for (enum float_operation i = 0; i < FLOAT_OPERATIONS; i++) {
                assert_false(is_caught(rpc, i, code));
            }
        } else if (!is_caught(rpc, operation, code)) {
            print_error("not found: %s: %s\n", float_operation_names[operation], name);
            missed++;
        }
    }
    (void)fclose(mutants);
    assert_true(waitpid(child, &status, 0) == child && status == 0);
    assert_int_equal(missed, 0);
    assert_true(count > MUTANTS_LEAST);
    free(line);
    rpc_free(rpc);
    anvil_stop(anvil);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_fault_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
