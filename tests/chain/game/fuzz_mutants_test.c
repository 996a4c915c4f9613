/*
 * Goal: the random moves of fuzz_test find the faults that the contracts of the game may have.
 * Method: tests/contracts/game_mutants.mjs puts one fault at a time into the contracts (a period
 * that is not asked, a share that is another, a seed that can be chosen ...), and the same random
 * moves are played on them: each must break a promise. A compilation takes a minute or more, so
 * only "make soak" tries them all; "make test" sees that each fault still has its place.
 * LOCKSTEP_MUTANTS=0,3 tries these.
 */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include "chain/evm/rpc/rpc.h"
#include "tests/support/game/anvil.h"
#include "tests/support/gas/contract_call.h"

enum {
    MUTANTS_LEAST = 10,
    RUNS = 150, /* of a mutant, at most: 1.5 million calls */
    WORLDS = 4,
    STEPS = 400,
    CODE_MAX = 1 << 18,
    COUNT_MAX = 16,
};

#define SCRIPT "node tests/contracts/game_mutants.mjs"

/* The first line that the script writes. */
static void ask(char *line, size_t size, const char *command)
{
    FILE *script = popen(command, "re");

    assert_non_null(script);
    assert_non_null(fgets(line, (int)size, script));
    assert_int_equal(pclose(script), 0);
    line[strcspn(line, "\n")] = '\0';
}

static uint32_t count_mutants(void)
{
    char line[COUNT_MAX];

    ask(line, sizeof(line), SCRIPT);
    return (uint32_t)strtoul(line, NULL, 10);
}

static bool breaks_a_promise(struct rpc *rpc, const struct address *fuzz, uint64_t seed)
{
    struct contract_call call;
    uint8_t *result;
    size_t size;

    contract_call_init(&call, "run(uint256,uint256,uint256)");
    contract_call_word(&call, seed);
    contract_call_word(&call, WORLDS);
    contract_call_word(&call, STEPS);
    result = contract_call_try(rpc, &size, fuzz, &call);
    contract_call_release(&call);
    free(result);
    return result == NULL;
}

static bool is_caught(uint32_t number)
{
    static const char *const arguments[] = {"--code-size-limit", "100000", "--memory-limit",
                                            "4294967296", NULL};
    char command[sizeof(SCRIPT) + COUNT_MAX];
    char *line = malloc(CODE_MAX);
    struct anvil *anvil = anvil_start(arguments);
    struct rpc *rpc = anvil_rpc(anvil);
    struct address fuzz;
    uint64_t seed = 0;
    char *code;

    assert_non_null(line);
    (void)snprintf(command, sizeof(command), SCRIPT " %u", number);
    ask(line, CODE_MAX, command);
    code = strchr(line, '\t');
    assert_non_null(code);
    *code++ = '\0';
    fuzz = anvil_deploy(rpc, 0, code, NULL, "0x8ac7230489e80000");
    while (seed < RUNS && !breaks_a_promise(rpc, &fuzz, ++seed)) {
    }
    print_message("%s: %s after %llu runs\n", line, seed < RUNS ? "found" : "not found",
                  (unsigned long long)seed);
    rpc_free(rpc);
    anvil_stop(anvil);
    free(line);
    return seed < RUNS;
}

static void test_every_fault_has_its_place(void **state)
{
    (void)state;
    (void)evm_tool("solc/package.json");
    assert_true(count_mutants() >= MUTANTS_LEAST);
}

static void test_every_fault_breaks_a_promise(void **state)
{
    const char *chosen = getenv("LOCKSTEP_MUTANTS");
    uint32_t missed = 0;

    (void)state;
    if (chosen == NULL && test_soak_minutes() == 0) {
        test_skip("compiling the mutants takes long: make soak tries them");
    }
    anvil_need();
    if (chosen != NULL) {
        while (*chosen != '\0') {
            char *end;

            missed += !is_caught((uint32_t)strtoul(chosen, &end, 10));
            chosen = *end == ',' ? end + 1 : end;
        }
    } else {
        for (uint32_t count = count_mutants(), i = 0; i < count; i++) {
            missed += !is_caught(i);
        }
    }
    assert_int_equal(missed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_fault_has_its_place),
        cmocka_unit_test(test_every_fault_breaks_a_promise),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
