/*
 * Goal: the random moves of fuzz_test find the faults that the contracts of the game may have.
 * Method: tests/contracts/game_mutants.mjs puts faults into the contracts (a period that is not
 * asked, a share that is another, a seed that can be chosen ...), each of which is on while the
 * account of its number makes the call. The same random moves are played with one fault at a time:
 * each must break a promise, and without any none may be broken. Their compilation takes minutes,
 * so only "make soak" plays them; "make test" sees that each fault still has its place.
 * LOCKSTEP_MUTANTS=0,3 plays these.
 */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "chain/evm/rpc/rpc.h"
#include "tests/support/game/anvil.h"
#include "tests/support/gas/contract_call.h"

enum {
    MUTANTS_LEAST = 10,
    MUTANTS_MAX = 64,
    NAME_MAX_SIZE = 64,
    FIRST_ACCOUNT = 0x10000, /* of the first fault: as in game_mutants.mjs */
    NO_FAULT = MUTANTS_MAX,
    RUNS = 150,       /* with a fault, at most: 0.9 million calls */
    RUNS_WITHOUT = 3, /* any */
    WORLDS = 4,
    STEPS = 400,
    CODE_MAX = 1 << 19,
};

#define SCRIPT "node tests/contracts/game_mutants.mjs"

struct mutants {
    char names[MUTANTS_MAX][NAME_MAX_SIZE];
    uint32_t count;
    struct anvil *anvil;
    struct rpc *rpc;
    struct address fuzz;
};

/* ---- the script ------------------------------------------------------------------- */

static FILE *begin(const char *command)
{
    FILE *script = popen(command, "re");

    assert_non_null(script);
    return script;
}

static bool read_line(char *line, size_t size, FILE *script)
{
    if (fgets(line, (int)size, script) == NULL) {
        return false;
    }
    assert_non_null(strchr(line, '\n')); /* whole */
    line[strcspn(line, "\n")] = '\0';
    return true;
}

static void read_names(struct mutants *mutants)
{
    FILE *script = begin(SCRIPT);

    while (mutants->count < MUTANTS_MAX &&
           read_line(mutants->names[mutants->count], NAME_MAX_SIZE, script)) {
        mutants->count++;
    }
    assert_int_equal(pclose(script), 0);
    assert_in_range(mutants->count, MUTANTS_LEAST, MUTANTS_MAX - 1);
}

static void deploy(struct mutants *mutants)
{
    static const char *const arguments[] = {"--code-size-limit", "200000", "--memory-limit",
                                            "4294967296", NULL};
    char *code = malloc(CODE_MAX);
    FILE *script = begin(SCRIPT " code");

    assert_non_null(code);
    assert_true(read_line(code, CODE_MAX, script));
    assert_int_equal(pclose(script), 0);
    mutants->anvil = anvil_start(arguments);
    mutants->rpc = anvil_rpc(mutants->anvil);
    mutants->fuzz = anvil_deploy(mutants->rpc, 0, code, NULL, "0x8ac7230489e80000");
    free(code);
}

/* ---- playing ---------------------------------------------------------------------- */

static bool breaks_a_promise(const struct mutants *mutants, uint32_t number, uint64_t seed)
{
    struct contract_call call;
    uint8_t *result;
    size_t size;

    contract_call_init(&call, "run(uint256,uint256,uint256)");
    contract_call_word(&call, seed);
    contract_call_word(&call, WORLDS);
    contract_call_word(&call, STEPS);
    endian_store_be32(call.sender.bytes + ADDRESS_SIZE - sizeof(uint32_t), FIRST_ACCOUNT + number);
    result = contract_call_try(mutants->rpc, &size, &mutants->fuzz, &call);
    contract_call_release(&call);
    free(result);
    return result == NULL;
}

static bool is_caught(const struct mutants *mutants, uint32_t number)
{
    uint64_t seed = 0;

    assert_true(number < mutants->count);
    while (seed < RUNS) {
        if (breaks_a_promise(mutants, number, ++seed)) {
            print_message("%u %s: found in run %llu\n", number, mutants->names[number],
                          (unsigned long long)seed);
            return true;
        }
    }
    print_message("%u %s: NOT FOUND in %llu runs\n", number, mutants->names[number],
                  (unsigned long long)seed);
    return false;
}

static uint32_t count_missed(const struct mutants *mutants, const char *chosen)
{
    uint32_t missed = 0;

    for (uint32_t i = 0; i < mutants->count && chosen == NULL; i++) {
        missed += !is_caught(mutants, i);
    }
    while (chosen != NULL && *chosen != '\0') {
        char *end;

        missed += !is_caught(mutants, (uint32_t)strtoul(chosen, &end, 10));
        chosen = *end == ',' ? end + 1 : end;
    }
    return missed;
}

static void test_every_fault_has_its_place(void **state)
{
    struct mutants mutants = {.count = 0};

    (void)state;
    (void)evm_tool("solc/package.json");
    read_names(&mutants);
}

static void test_every_fault_breaks_a_promise(void **state)
{
    const char *chosen = getenv("LOCKSTEP_MUTANTS");
    struct mutants mutants = {.count = 0};

    (void)state;
    if (chosen == NULL && test_soak_minutes() == 0) {
        test_skip("compiling the faults takes minutes: make soak plays them");
    }
    anvil_need();
    read_names(&mutants);
    deploy(&mutants);
    for (uint64_t seed = 1; seed <= RUNS_WITHOUT; seed++) {
        assert_false(breaks_a_promise(&mutants, NO_FAULT, seed));
    }
    assert_int_equal(count_missed(&mutants, chosen), 0);
    rpc_free(mutants.rpc);
    anvil_stop(mutants.anvil);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_fault_has_its_place),
        cmocka_unit_test(test_every_fault_breaks_a_promise),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
