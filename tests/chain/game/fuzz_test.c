/*
 * fuzz_test.c - random moves against the contracts as deployed, and what the game promises.
 *
 * tests/contracts/Fuzz.sol plays: a client and a keeper, an honest solver and an honest verifier
 * who are online, and three accounts that do anything; every other job is played for a token.
 * After each move all money is accounted for (owed, held and burned are what was paid in), the
 * honest solver is not convicted, the honest verifier has lost nothing, claims are counted, and
 * few disputes use clocks at once; and what the move did is what the rules say, computed again.
 * Every job ends within a bound, by moves that anybody may make, and leaves nothing behind.
 * 200,000 calls; "make soak" makes 10 million.
 */
#include <stdlib.h>

#include "chain/evm/rpc/rpc.h"
#include "tests/contracts/fuzz_code.h"
#include "tests/support/game/anvil.h"
#include "tests/support/gas/contract_call.h"
#include "tests/support/test.h"

enum {
    CALLS = 200000,
    CALLS_OF_A_SOAK = 10000000,
    WORLDS = 4,  /* of one run: an answer of the node takes seconds, on a busy machine too */
    STEPS = 400, /* of one world */
    RARE = 4,    /* kinds of moves that may not come up */
    TOLD = 10,   /* runs from one line of a soak's progress to the next */
    WORD = 32,
    HEAD = 3, /* words before the counts */
};

/* In the order of the contract. */
static const char *const moves[] = {
    "open",    "close",    "resume",    "stop",  "refuse", "accept",    "commit",
    "enlist",  "depart",   "draw",      "seal",  "reveal", "unseen",    "settle",
    "release", "withdraw", "sealClaim", "claim", "alarm",  "answer",    "query",
    "reply",   "convict",  "timeout",   "lapse", "pay",    "challenge", "fix",
};
enum { MOVES = sizeof(moves) / sizeof(moves[0]) };

static uint64_t play(struct rpc *rpc, const struct address *fuzz, uint64_t seed, uint64_t *counts)
{
    struct contract_call call;
    uint8_t *result;
    uint64_t calls;
    size_t size;

    contract_call_init(&call, "run(uint256,uint256,uint256)");
    contract_call_word(&call, seed);
    contract_call_word(&call, WORLDS);
    contract_call_word(&call, STEPS);
    result = contract_call_try(rpc, &size, fuzz, &call);
    contract_call_release(&call);
    if (result == NULL) {
        fail_msg("seed %llu: %s", (unsigned long long)seed, rpc_failure(rpc)->message);
    }
    assert_int_equal(size, (HEAD + MOVES) * WORD);
    calls = contract_call_u64(result);
    for (size_t i = 0; i < MOVES; i++) {
        counts[i] += contract_call_u64(result + (HEAD + i) * WORD);
    }
    free(result);
    return calls;
}

/* A soak that was cut off goes on with LOCKSTEP_FUZZ_SEED, the last seed that it named. */
static uint64_t first_seed(void)
{
    const char *seed = getenv("LOCKSTEP_FUZZ_SEED");

    return seed == NULL ? 1 : strtoull(seed, NULL, 10);
}

static void test_random_moves_break_no_promise(void **state)
{
    static const char *const arguments[] = {"--code-size-limit", "100000", "--memory-limit",
                                            "4294967296", NULL};
    uint64_t wanted = test_soak_minutes() > 0 ? CALLS_OF_A_SOAK : CALLS;
    uint64_t counts[MOVES] = {0};
    uint64_t calls = 0;
    uint32_t missing = 0;
    struct anvil *anvil;
    struct rpc *rpc;
    struct address fuzz;

    (void)state;
    anvil_need();
    anvil = anvil_start(arguments);
    rpc = anvil_rpc(anvil);
    fuzz = anvil_deploy(rpc, 0, FUZZ_CODE, NULL, "0x8ac7230489e80000");
    for (uint64_t seed = first_seed(); calls < wanted; seed++) {
        calls += play(rpc, &fuzz, seed, counts);
        if (seed % TOLD == 0) {
            print_message("%llu calls; the next seed is %llu\n", (unsigned long long)calls,
                          (unsigned long long)seed + 1);
        }
    }
    for (size_t i = 0; i < MOVES; i++) {
        print_message("%s %llu\n", moves[i], (unsigned long long)counts[i]);
        missing += counts[i] == 0;
    }
    /* Some moves are rare: in seventy worlds not each of them comes up. */
    if (missing > (test_soak_minutes() > 0 ? 0 : RARE)) {
        fail_msg("%u kinds of moves were not made in %llu calls", missing,
                 (unsigned long long)calls);
    }
    rpc_free(rpc);
    anvil_stop(anvil);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_moves_break_no_promise),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
