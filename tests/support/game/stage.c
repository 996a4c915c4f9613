/* stage.c - see stage.h. */
#include "tests/support/game/stage.h"
#include "tests/support/chain/standing_segment.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "chain/codec/abi.h"
#include "chain/codec/hex_data.h"
#include "chain/evm/ledger_evm.h"
#include "chain/local/ledger_local.h"
#include "tests/contracts/harness_code.h"
#include "tests/support/test.h"

enum {
    DEPLOYER = 9,
    DEPLOY_S = 600, /* a busy machine is no failure */
    WAIT_MS = 600000,
    LOOKS_MAX = 30000,
    LOCAL_START_S = 1000000,
    CALL_SIZE = 4 + 8 * 32,
};

static const wei MONEY = 1000 * WEI_PER_ETHER;

void stage_check(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fail_msg("%s", error->text);
    }
}

void stage_work(struct ledger *ledger)
{
    struct error error;
    enum status status = ledger_work(ledger, &error);

    assert_true(status == STATUS_OK || status == STATUS_UNREACHABLE);
}

static void open_player(struct stage *stage, int player)
{
    struct ledger_options options = stage->options;
    struct error error;

    error_init(&error);
    options.signer = stage->signers[player];
    options.state_dir = stage->state_dirs[player];
    stage_check(ledger_open(&stage->ledgers[player], &options, &error), &error);
}

/* Everything, as `lockstep ledger deploy` does it. */
static void put_up_all(struct stage *stage, const char *name)
{
    struct secret_key key = anvil_key(DEPLOYER);
    struct ledger_options options = stage->options;
    struct signer *signer;
    char state_dir[600];
    struct error error;

    error_init(&error);
    (void)snprintf(state_dir, sizeof(state_dir), "%s/%s-deployer", test_temp_dir(), name);
    options.state_dir = state_dir;
    signer = signer_new(&key, &error);
    assert_non_null(signer);
    options.signer = signer;
    stage_check(ledger_evm_deploy(&options, "deploy", &stage->options.registry,
                                  &stage->options.first_height, &stage->token, DEPLOY_S, &error),
                &error);
    signer_free(signer);
}

void stage_tell_token(struct stage *stage, const char *signature, const struct uint256 *numbers,
                      size_t count)
{
    uint8_t call[CALL_SIZE];
    char text[2 * CALL_SIZE + 3];
    struct byte_writer writer;

    byte_writer_init(&writer, call, sizeof(call));
    abi_put_selector(&writer, signature);
    for (size_t i = 0; i < count; i++) {
        abi_put_uint256(&writer, &numbers[i]);
    }
    assert_false(writer.overflowed);
    hex_write(text, call, writer.used, true);
    json_decref(anvil_send(stage->rpc, DEPLOYER, &stage->token, text, "0x0"));
}

static void mint(struct stage *stage, int player)
{
    uint8_t account[UINT256_SIZE] = {0};

    memcpy(account + UINT256_SIZE - ADDRESS_SIZE, signer_address(stage->signers[player])->bytes,
           ADDRESS_SIZE);
    stage_tell_token(stage, "mint(address,uint256)",
                     (const struct uint256[]){uint256_from_bytes(account), wei_to_uint256(MONEY)},
                     2);
}

void stage_open(struct stage *stage, enum stage_ledger ledger, const char *name)
{
    static const char *const ethereum[] = {"--chain-id", "1", NULL};
    const bool embedded = ledger == STAGE_EMBEDDED;
    struct error error;

    error_init(&error);
    memset(stage, 0, sizeof(*stage));
    ledger_options_init(&stage->options);
    stage->options.depth = 2;
    stage->options.url = stage->url;
    if (embedded) {
        (void)snprintf(stage->url, sizeof(stage->url), "local:%s/%s.ledger", test_temp_dir(), name);
        stage_check(ledger_local_init(stage->url + 6, &error), &error);
        stage->now_s = LOCAL_START_S;
    } else {
        stage->anvil = ledger == STAGE_HARDHAT
                           ? anvil_start_hardhat()
                           : anvil_start(ledger == STAGE_ETHEREUM ? ethereum : NULL);
        stage->rpc = anvil_rpc(stage->anvil);
        (void)snprintf(stage->url, sizeof(stage->url), "%s", anvil_url(stage->anvil));
    }
    if (ledger == STAGE_TOKEN) {
        stage->token = anvil_deploy(stage->rpc, DEPLOYER, COIN_CODE, NULL, "0x0");
    }
    if (!embedded) {
        put_up_all(stage, name);
    }
    for (int i = 0; i < STAGE_PLAYERS; i++) {
        struct secret_key key = anvil_key((uint32_t)i);

        stage->signers[i] = signer_new(&key, &error);
        assert_non_null(stage->signers[i]);
        (void)snprintf(stage->state_dirs[i], sizeof(stage->state_dirs[i]), "%s/%s-%d",
                       test_temp_dir(), name, i);
        open_player(stage, i);
        if (ledger == STAGE_TOKEN) {
            mint(stage, i);
        }
        if (embedded) {
            stage_check(ledger_local_set_clock(stage->ledgers[i], stage->now_s, &error), &error);
            stage_check(ledger_local_faucet(stage->ledgers[i], signer_address(stage->signers[i]),
                                            MONEY, &error),
                        &error);
        }
    }
}

void stage_close(struct stage *stage)
{
    for (int i = 0; i < STAGE_PLAYERS; i++) {
        ledger_close(stage->ledgers[i]);
        signer_free(stage->signers[i]);
    }
    rpc_free(stage->rpc);
    anvil_stop(stage->anvil);
}

void stage_pass_time(struct stage *stage, uint32_t seconds)
{
    struct error error;

    if (stage->anvil == NULL) {
        stage->now_s += seconds;
        stage_check(ledger_local_set_clock(stage->ledgers[0], stage->now_s, &error), &error);
        return;
    }
    anvil_pass_time(stage->rpc, seconds);
}

uint64_t stage_clock(struct stage *stage)
{
    struct ledger_clock clock;
    struct error error;

    stage_check(ledger_get_clock(stage->ledgers[0], &clock, &error), &error);
    return clock.time_s;
}

const char *stage_next_name(struct stage *stage, char *name, size_t size)
{
    (void)snprintf(name, size, "move %u", stage->moves++);
    return name;
}

void stage_settle_down(struct stage *stage, int player, const char *name)
{
    struct ledger_outcome outcome;
    struct error error;

    error_init(&error);
    stage_check(ledger_wait(stage->ledgers[player], &outcome, name, false, WAIT_MS, &error),
                &error);
    if (outcome.state == LEDGER_MOVE_REFUSED) {
        fail_msg("%s: refused: %s (%llu)", name, game_refusal_text(outcome.refusal.kind),
                 (unsigned long long)outcome.refusal.number);
    }
}

enum game_refusal_kind stage_refused(struct stage *stage, int player, const char *name)
{
    struct ledger_outcome outcome;
    struct error error;

    stage_check(ledger_wait(stage->ledgers[player], &outcome, name, false, WAIT_MS, &error),
                &error);
    assert_int_equal(outcome.state, LEDGER_MOVE_REFUSED);
    return outcome.refusal.kind;
}

struct game_segment stage_segment(struct stage *stage, int player, const struct hash32 *job,
                                  uint32_t index)
{
    struct game_segment segment;
    struct error error;

    for (int i = 0; i < LOOKS_MAX; i++) {
        enum status status;

        stage_work(stage->ledgers[player]);
        status = standing_segment(stage->ledgers[player], &segment, job, index, &error);
        if (status == STATUS_OK) {
            return segment;
        }
        usleep(10000);
    }
    fail_msg("segment %u is not in the journal", index);
    return segment;
}

static void get_account(struct stage *stage, int player, wei *purse, wei *owed)
{
    struct error error;

    error_init(&error);
    stage_check(ledger_get_account(stage->ledgers[STAGE_CLIENT], purse, owed,
                                   signer_address(stage->signers[player]), &error),
                &error);
}

wei stage_owed(struct stage *stage, int player)
{
    wei purse;
    wei owed;

    get_account(stage, player, &purse, &owed);
    return owed;
}

wei stage_money(struct stage *stage, int player)
{
    wei purse;
    wei owed;

    get_account(stage, player, &purse, &owed);
    return purse + owed;
}

void stage_restart(struct stage *stage, int player)
{
    ledger_close(stage->ledgers[player]);
    open_player(stage, player);
}
