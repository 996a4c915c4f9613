/*
 * Goal: a registry plays for a token as it does for the coin, and an unfit token is refused before
 * anybody pays.
 * Method: whole jobs, with bonds and a conviction, on anvil and a token that returns nothing: the
 * balances are exact, since gas is paid in the coin; each account approves once, and sends no
 * value. A move of tokens costs little more gas. A token that pauses, or keeps a part, moves
 * nothing and is named. What is no token, and one whose balances change by themselves, gets no
 * registry.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "chain/codec/hex_data.h"
#include "chain/evm/evm_token.h"
#include "chain/evm/ledger_evm.h"
#include "tests/support/folder.h"
#include "tests/support/game/scene.h"

enum {
    DEPLOY_S = 600,
    PAYING_MOVES = 3,
    TOKEN_GAS_MOST = 60000, /* more than for the coin */
};

/* It answers every call with a word of zeros: also those that only rebasing tokens know. */
static const char agrees_with_all[] = "6460206000f3600052600560"
                                      "1bf3";

/* It has no balances, a symbol of 32 bytes, "USDC", and six decimals. */
static const char names_itself[] =
    "60678060093d393df360003560e01c806395d89b41146027578063313ce567146051576370a0823114605c57600080"
    "fd5b7f555344430000000000000000000000000000000000000000000000000000000060005260206000f35b600660"
    "005260206000f35b600060005260206000f3";

static void test_whole_jobs_are_played_for_a_token(void **state)
{
    (void)state;
    scene_play_jobs(STAGE_TOKEN);
}

static uint64_t nonce_of(struct scene *scene, int player)
{
    struct error error;
    uint64_t nonce = 0;

    error_init(&error);
    stage_check(
        evm_nonce(scene->stage.rpc, &nonce, signer_address(scene->stage.signers[player]), &error),
        &error);
    return nonce;
}

static wei coins_of(struct scene *scene, const struct address *account)
{
    struct error error;
    wei coins = 0;

    error_init(&error);
    stage_check(evm_balance(scene->stage.rpc, &coins, account, &error), &error);
    return coins;
}

static void test_an_account_approves_once_and_sends_no_value(void **state)
{
    struct scene scene;
    uint64_t nonce;

    (void)state;
    scene_open(&scene, STAGE_TOKEN, "approves");
    assert_true(
        address_equal(ledger_get_token(scene.stage.ledgers[STAGE_CLIENT]), &scene.stage.token));
    scene_open_job(&scene);
    nonce = nonce_of(&scene, STAGE_VERIFIER);
    for (uint32_t i = 0; i < PAYING_MOVES; i++) {
        scene_enlist(&scene, STAGE_VERIFIER, 1);
        stage_restart(&scene.stage, STAGE_VERIFIER);
    }
    assert_int_equal(nonce_of(&scene, STAGE_VERIFIER), nonce + 1 + PAYING_MOVES);
    scene_see(&scene, scene_gain(&scene, STAGE_VERIFIER), -1000 * PAYING_MOVES);
    assert_true(coins_of(&scene, &scene.stage.options.registry) == 0);
    scene_close(&scene);
}

/* paused, denies, tax, callback */
static void behave(struct scene *scene, bool paused, uint64_t tax)
{
    const struct uint256 words[] = {uint256_of(paused ? 1 : 0), uint256_of(0), uint256_of(tax),
                                    uint256_of(128), uint256_of(0)};

    stage_tell_token(&scene->stage, "behave(bool,bool,uint256,bytes)", words, 5);
}

static enum game_refusal_kind try_enlist(struct scene *scene, const char *name)
{
    struct error error;

    error_init(&error);
    stage_check(ledger_enlist(scene->stage.ledgers[STAGE_VERIFIER], name, &scene->job,
                              &scene->terms, 1, &(struct game_hashes){0}, &(struct game_bytes){0},
                              &error),
                &error);
    return stage_refused(&scene->stage, STAGE_VERIFIER, name);
}

static void test_a_token_that_does_not_move_the_amount_is_named(void **state)
{
    struct scene scene;
    struct error error;

    (void)state;
    error_init(&error);
    scene_open(&scene, STAGE_TOKEN, "paused");
    scene_open_job(&scene);
    scene_enlist(&scene, STAGE_VERIFIER, 1);
    behave(&scene, false, 1);
    assert_int_equal(try_enlist(&scene, "taxed"), GAME_WRONG_TOKEN);
    behave(&scene, true, 0);
    assert_int_equal(try_enlist(&scene, "paused"), GAME_WRONG_TOKEN);
    STAGE_PLAY(&scene.stage, STAGE_CLIENT, ledger_close_job, &scene.job); /* needs no token */
    stage_check(ledger_withdraw(scene.stage.ledgers[STAGE_CLIENT], "out",
                                signer_address(scene.stage.signers[STAGE_CLIENT]), &error),
                &error);
    assert_int_equal(stage_refused(&scene.stage, STAGE_CLIENT, "out"), GAME_WITHDRAW_FAILED);
    behave(&scene, false, 0);
    STAGE_PLAY(&scene.stage, STAGE_CLIENT, ledger_withdraw,
               signer_address(scene.stage.signers[STAGE_CLIENT]));
    assert_true(stage_owed(&scene.stage, STAGE_CLIENT) == 0);
    scene_see(&scene, scene_gain(&scene, STAGE_CLIENT), 0);
    scene_close(&scene);
}

static void test_a_purse_without_tokens_is_told_what_is_missing(void **state)
{
    struct scene scene;
    struct error error;

    (void)state;
    error_init(&error);
    scene_open(&scene, STAGE_TOKEN, "short");
    stage_check(
        ledger_afford(scene.stage.ledgers[STAGE_CLIENT], GAME_OPEN, 1000 * WEI_PER_ETHER, &error),
        &error);
    assert_int_equal(ledger_afford(scene.stage.ledgers[STAGE_CLIENT], GAME_OPEN,
                                   1000 * WEI_PER_ETHER + 1, &error),
                     STATUS_REFUSED);
    assert_non_null(strstr(error.text, "of the token"));
    scene_close(&scene);
}

/* ---- gas -------------------------------------------------------------------------- */

enum { MONEY_MOVES = 5 };

/* Of the last move of a player. */
static uint64_t gas_of_last(struct scene *scene, int player)
{
    struct ledger_outcome outcome;
    char hash[HEX_DATA_SIZE(HASH32_SIZE)];
    char name[32];
    struct error error;
    uint64_t gas = 0;
    json_t *receipt;

    error_init(&error);
    (void)snprintf(name, sizeof(name), "move %u", scene->stage.moves - 1);
    stage_check(ledger_look(scene->stage.ledgers[player], &outcome, name, &error), &error);
    hex_write(hash, outcome.transaction.bytes, HASH32_SIZE, true);
    receipt = anvil_call(scene->stage.rpc, "eth_getTransactionReceipt", json_pack("[s]", hash));
    stage_check(rpc_field_u64(&gas, receipt, "gasUsed", &error), &error);
    json_decref(receipt);
    return gas;
}

static void measure(enum stage_ledger ledger, uint64_t gas[MONEY_MOVES], const char *name)
{
    struct scene scene;

    scene_open(&scene, ledger, name);
    scene_open_job(&scene);
    gas[0] = gas_of_last(&scene, STAGE_CLIENT);
    scene_enlist(&scene, STAGE_VERIFIER, 1);
    gas[1] = gas_of_last(&scene, STAGE_VERIFIER);
    scene_accept(&scene, STAGE_SOLVER);
    gas[2] = gas_of_last(&scene, STAGE_SOLVER);
    scene_commit(&scene, STAGE_SOLVER, 1);
    (void)scene_claim(&scene, STAGE_SECOND, 0, 1, 0);
    gas[3] = gas_of_last(&scene, STAGE_SECOND);
    STAGE_PLAY(&scene.stage, STAGE_CLIENT, ledger_stop, &scene.job);
    STAGE_PLAY(&scene.stage, STAGE_CLIENT, ledger_withdraw,
               signer_address(scene.stage.signers[STAGE_CLIENT]));
    gas[4] = gas_of_last(&scene, STAGE_CLIENT);
    scene_close(&scene);
}

static void test_a_move_of_tokens_costs_little_more(void **state)
{
    static const char *const names[MONEY_MOVES] = {"open", "enlist", "accept", "claim", "withdraw"};
    uint64_t coin[MONEY_MOVES];
    uint64_t token[MONEY_MOVES];

    (void)state;
    measure(STAGE_ANVIL, coin, "gas-coin");
    measure(STAGE_TOKEN, token, "gas-token");
    for (int i = 0; i < MONEY_MOVES; i++) {
        print_message("%s: %llu gas, for a token %llu\n", names[i], (unsigned long long)coin[i],
                      (unsigned long long)token[i]);
        assert_true(token[i] > coin[i] && token[i] <= coin[i] + TOKEN_GAS_MOST);
    }
}

/* ---- which tokens ------------------------------------------------------------------- */

static void refuses(struct stage *stage, const struct address *token, const char *why)
{
    struct ledger_options options = stage->options;
    struct address registry;
    struct error error;
    uint64_t height;

    error_init(&error);
    options.signer = stage->signers[STAGE_OTHER];
    options.state_dir = stage->state_dirs[STAGE_OTHER];
    assert_int_equal(
        ledger_evm_deploy(&options, "unfit", &registry, &height, token, DEPLOY_S, &error),
        STATUS_REFUSED);
    if (strstr(error.text, why) == NULL) {
        fail_msg("another reason: %s", error.text);
    }
}

static void test_an_unfit_token_gets_no_registry(void **state)
{
    struct stage stage;
    struct address token;

    (void)state;
    stage_open(&stage, STAGE_TOKEN, "unfit");
    refuses(&stage, signer_address(stage.signers[0]), "is no token");
    refuses(&stage, &stage.options.registry, "is no token");
    token = anvil_deploy(stage.rpc, 0, agrees_with_all, NULL, "0x0");
    refuses(&stage, &token, "rebasing");
    stage_close(&stage);
}

/* Runs the program, with its state in this place; its last line that begins with `begins`. */
static const char *line_of(const char *place, const char *words, const char *begins)
{
    static char line[512];
    char command[2048];
    FILE *pipe;

    (void)snprintf(command, sizeof(command),
                   "XDG_STATE_HOME=%s LOCKSTEP_CUDA=off LOCKSTEP_NVML=off %s %s", place,
                   test_program(), words);
    line[0] = '\0';
    pipe = popen(command, "r");
    assert_non_null(pipe);
    for (char next[512]; fgets(next, sizeof(next), pipe) != NULL;) {
        if (strncmp(next, begins, strlen(begins)) == 0) {
            (void)snprintf(line, sizeof(line), "%s", next);
        }
    }
    assert_int_equal(pclose(pipe), 0);
    return line;
}

/* What `prover probe` says that an hour earns is in the registry's token; without a ledger it is in
 * eth. */
static void see_the_probe_name_it(const struct stage *stage, const struct ledger_options *options,
                                  const char *place)
{
    static const char data[] = "--data fixtures/text/village.u8";
    char registry[ADDRESS_TEXT_SIZE];
    char words[1024];

    address_print(registry, &options->registry);
    (void)snprintf(words, sizeof(words),
                   "job new %s --layers 1 --heads 1 --width 16 --length 8 --batch 2 --vocabulary "
                   "128 --steps 4 --segment-steps 2 --out %s/a.job",
                   data, place);
    (void)line_of(place, words, "");
    (void)snprintf(words, sizeof(words),
                   "prover probe %s/a.job %s --reward 8gwei --price 1gwei --ledger %s --registry "
                   "%s",
                   place, data, stage->url, registry);
    assert_non_null(
        strstr(line_of(place, words, "an hour earns"), " USDC, less 1000 USDC for the "));
    (void)snprintf(words, sizeof(words), "prover probe %s/a.job %s --reward 8gwei --price 1gwei",
                   place, data);
    assert_non_null(
        strstr(line_of(place, words, "an hour earns"), " eth, less 1e-09 eth for the "));
}

/* What a token says of itself is what all amounts are shown in. */
static void test_amounts_are_in_the_tokens_own_name(void **state)
{
    struct ledger *ledger = NULL;
    struct ledger_options options;
    struct stage stage;
    char place[FOLDER_PATH_MAX]; /* each player has its own, and holds it */
    struct address token;
    struct error error;

    (void)state;
    error_init(&error);
    folder_make(place);
    stage_open(&stage, STAGE_TOKEN, "named");
    assert_string_equal(currency_name(ledger_get_currency(stage.ledgers[STAGE_CLIENT])), "units");
    token = anvil_deploy(stage.rpc, 0, names_itself, NULL, "0x0");
    options = stage.options;
    options.signer = stage.signers[STAGE_OTHER];
    options.state_dir = place;
    stage_check(ledger_evm_deploy(&options, "named", &options.registry, &options.first_height,
                                  &token, DEPLOY_S, &error),
                &error);
    options.signer = NULL;
    stage_check(ledger_open(&ledger, &options, &error), &error);
    assert_string_equal(currency_name(ledger_get_currency(ledger)), "USDC");
    assert_int_equal(ledger_get_currency(ledger)->places, 6);
    ledger_close(ledger);
    see_the_probe_name_it(&stage, &options, place);
    stage_close(&stage);
    folder_remove(place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_jobs_are_played_for_a_token),
        cmocka_unit_test(test_an_account_approves_once_and_sends_no_value),
        cmocka_unit_test(test_a_token_that_does_not_move_the_amount_is_named),
        cmocka_unit_test(test_a_purse_without_tokens_is_told_what_is_missing),
        cmocka_unit_test(test_a_move_of_tokens_costs_little_more),
        cmocka_unit_test(test_an_unfit_token_gets_no_registry),
        cmocka_unit_test(test_amounts_are_in_the_tokens_own_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
