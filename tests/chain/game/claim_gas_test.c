/*
 * Goal: an alarm, a timeout, a lapse and a challenge cost no more gas than docs/GAS.md says.
 * Method: two jobs on anvil, on the contracts as deployed, through the ledger as a node uses it.
 * The gas of each kind of move is read from the blocks. LOCKSTEP_WRITE_GAS=1 prints the rows.
 */
#include "tests/support/test.h"

#include <stdlib.h>

#include "chain/codec/hex_data.h"
#include "chain/evm/evm.h"
#include "tests/support/chain/move_reader.h"
#include "tests/support/game/scene.h"
#include "tests/support/gas/gas_bill.h"

static const enum game_move_kind kinds[] = {GAME_ALARM, GAME_TIMEOUT, GAME_LAPSE, GAME_CHALLENGE};

/* The most that each kind cost in this block. */
static void read_block(struct scene *scene, uint64_t height, uint64_t gas[GAME_MOVE_KINDS])
{
    char text[32];
    static uint8_t bytes[GAME_MOVE_SIZE_MAX];
    json_t *block;
    json_t *transaction;
    size_t i;

    (void)snprintf(text, sizeof(text), "0x%llx", (unsigned long long)height);
    block = anvil_call(scene->stage.rpc, "eth_getBlockByNumber", json_pack("[s, b]", text, 1));
    json_array_foreach(json_object_get(block, "transactions"), i, transaction)
    {
        const char *input = json_string_value(json_object_get(transaction, "input"));
        struct game_move move;
        uint64_t used = 0;
        size_t size = 0;

        if (hex_data_read(bytes, sizeof(bytes), &size, input) != STATUS_OK ||
            game_move_decode(&move, bytes, size) != STATUS_OK) {
            continue; /* a contract is put up */
        }
        assert_int_equal(json_array_size(json_object_get(block, "transactions")), 1);
        assert_int_equal(rpc_field_u64(&used, block, "gasUsed", NULL), STATUS_OK);
        gas[move.kind] = used > gas[move.kind] ? used : gas[move.kind];
    }
    json_decref(block);
}

static void see(struct scene *scene, uint64_t gas[GAME_MOVE_KINDS])
{
    struct ledger_clock clock;
    struct error error;

    stage_check(ledger_get_clock(scene->stage.ledgers[STAGE_CLIENT], &clock, &error), &error);
    for (uint64_t height = 1; height <= clock.height; height++) {
        read_block(scene, height, gas);
    }
}

/* An alarm convicts by the solver's silence, and a claim with a higher rank lapses. */
static void play_an_alarm(uint64_t gas[GAME_MOVE_KINDS])
{
    struct scene_verdicts verdicts = {.of = {[STAGE_VERIFIER] = GAME_VERDICT_FALSE},
                                      .false_step = 1};
    struct hash32 alarm = {{0}};
    struct hash32 claim;
    struct scene scene;

    scene_open(&scene, STAGE_ANVIL, "alarm-gas");
    scene_open_job(&scene);
    scene_enlist(&scene, STAGE_VERIFIER, 1);
    scene_accept(&scene, STAGE_SOLVER);
    scene_commit(&scene, STAGE_SOLVER, 1);
    scene_draw(&scene, 0);
    scene_round(&scene, 0, &verdicts, &alarm);
    claim = scene_claim(&scene, STAGE_OTHER, 0, 2, 0);
    scene_pass(&scene, SCENE_CLOCK_S - 100);
    scene_timeout(&scene, STAGE_VERIFIER, &alarm);
    STAGE_PLAY(&scene.stage, STAGE_OTHER, ledger_lapse, &claim);
    scene_pay(&scene, STAGE_VERIFIER, 0);
    see(&scene, gas);
    scene_close(&scene);
}

static void play_a_challenge(uint64_t gas[GAME_MOVE_KINDS])
{
    struct scene_verdicts verdicts = {.of = {[STAGE_FRIEND] = GAME_VERDICT_RIGHT},
                                      .made_up = {[STAGE_FRIEND] = true}};
    struct scene scene;

    scene_open(&scene, STAGE_ANVIL, "challenge-gas");
    scene_open_job(&scene);
    scene_enlist(&scene, STAGE_FRIEND, 1);
    scene_accept(&scene, STAGE_SOLVER);
    scene_commit(&scene, STAGE_SOLVER, SCENE_STEPS);
    scene_draw(&scene, 0);
    scene_round(&scene, 0, &verdicts, NULL);
    assert_int_equal(scene_challenge(&scene, STAGE_SECOND, 0, STAGE_FRIEND, 7), GAME_REFUSED_NOT);
    see(&scene, gas);
    scene_close(&scene);
}

static void test_moves_about_claims_cost_what_is_documented(void **state)
{
    uint64_t gas[GAME_MOVE_KINDS] = {0};

    (void)state;
    anvil_need();
    play_an_alarm(gas);
    play_a_challenge(gas);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        const char *name = game_move_name(kinds[i]);
        uint64_t documented = 0;

        assert_true(gas[kinds[i]] > 0);
        if (getenv("LOCKSTEP_WRITE_GAS") != NULL) {
            print_message("| %s | %llu |\n", name, (unsigned long long)gas[kinds[i]]);
            continue;
        }
        gas_bill_documented(&documented, 1, name);
        if (10 * gas[kinds[i]] > 11 * documented) {
            fail_msg("%s costs %llu gas, docs/GAS.md says %llu", name,
                     (unsigned long long)gas[kinds[i]], (unsigned long long)documented);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moves_about_claims_cost_what_is_documented),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
