/*
 * Goal: the ledger on a chain does not lean on what only anvil does.
 * Method: hardhat's network, another implementation, with the limits of a real chain: the gas of a
 * transaction and of a block, and a tenth more for a replacement. Whole jobs are played on it, the
 * plays of ledger_test, on contracts that are deployed as `lockstep ledger deploy` does it; a
 * transaction that stays in the pool is replaced. That the limits are there is checked, too.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "chain/evm/evm.h"
#include "chain/evm/outbox.h"
#include "tests/support/game/scene.h"

enum {
    CHAIN_ID = 31337,
    SENDER = 1,
    TRANSFER_GAS = 21000,
    VALUE = 5,
    ROUNDS_MAX = 100,
};

static const struct address receiver = {{0xbe, 0xef, 2}};

static void test_jobs_on_a_stricter_chain(void **state)
{
    (void)state;
    scene_play_jobs(STAGE_HARDHAT);
}

/* One from the sender to the receiver; what the node says to it. */
static enum status send_plain(struct rpc *rpc, const char *gas, const char *nonce,
                              const char *price, struct error *error)
{
    struct secret_key key = anvil_key(SENDER);
    struct signer *signer = signer_new(&key, error);
    char from[ADDRESS_TEXT_SIZE];
    char to[ADDRESS_TEXT_SIZE];
    json_t *result = NULL;
    enum status status;

    assert_non_null(signer);
    address_print(from, signer_address(signer));
    address_print(to, &receiver);
    signer_free(signer);
    status = rpc_call(rpc, &result, "eth_sendTransaction",
                      json_pack("[{s:s, s:s, s:s, s:s, s:s, s:s, s:s}]", "from", from, "to", to,
                                "value", "0x5", "gas", gas, "nonce", nonce, "maxFeePerGas", price,
                                "maxPriorityFeePerGas", price),
                      error);
    json_decref(result);
    return status;
}

static void test_limits_of_a_real_chain_are_there(void **state)
{
    struct anvil *chain = anvil_start_hardhat();
    struct rpc *rpc = anvil_rpc(chain);
    struct error error;

    (void)state;
    error_init(&error);
    json_decref(anvil_call(rpc, "evm_setAutomine", json_pack("[b]", 0)));
    assert_int_not_equal(send_plain(rpc, "0x1000001", "0x0", "0x77359400", &error), STATUS_OK);
    assert_non_null(strstr(error.text, "16777216"));
    assert_int_equal(send_plain(rpc, "0x1000000", "0x0", "0x77359400", &error), STATUS_OK);
    assert_int_not_equal(send_plain(rpc, "0x1000000", "0x0", "0x77359401", &error), STATUS_OK);
    assert_non_null(strstr(error.text, "underpriced"));
    rpc_free(rpc);
    anvil_stop(chain);
}

static struct outbox_status look(struct outbox *outbox)
{
    struct outbox_status status;
    struct error error;

    stage_check(outbox_work(outbox, &error), &error);
    stage_check(outbox_look(outbox, &status, "one", &error), &error);
    return status;
}

static void test_a_replacement_is_dear_enough(void **state)
{
    struct anvil *chain = anvil_start_hardhat();
    struct rpc *rpc = anvil_rpc(chain);
    struct secret_key key = anvil_key(SENDER);
    struct error error;
    struct signer *signer = signer_new(&key, &error);
    char path[600];
    struct outbox_options options = {.path = path,
                                     .chain_id = CHAIN_ID,
                                     .depth = 2,
                                     .replace_after_s = 1,
                                     .fee_most = uint256_of(500000000000u)};
    struct outbox *outbox;
    struct outbox_status seen;
    wei balance = 0;

    (void)state;
    assert_non_null(signer);
    (void)snprintf(path, sizeof(path), "%s/replace.db", test_temp_dir());
    stage_check(outbox_open(&outbox, &options, signer, rpc, &error), &error);
    json_decref(anvil_call(rpc, "evm_setAutomine", json_pack("[b]", 0)));
    stage_check(outbox_add(outbox, "one", &receiver, VALUE, "", 0, TRANSFER_GAS, &error), &error);
    seen = look(outbox);
    assert_int_equal(seen.state, OUTBOX_SENT);
    for (int i = 0; i < ROUNDS_MAX && seen.replacements == 0; i++) {
        usleep(100000);
        seen = look(outbox);
        assert_string_equal(seen.trouble, "");
    }
    assert_int_equal(seen.replacements, 1);
    for (int i = 0; i < ROUNDS_MAX && seen.state != OUTBOX_FINAL; i++) {
        json_decref(anvil_call(rpc, "evm_mine", NULL));
        seen = look(outbox);
    }
    assert_int_equal(seen.state, OUTBOX_FINAL);
    assert_int_equal(evm_balance(rpc, &balance, &receiver, &error), STATUS_OK);
    assert_true(balance == VALUE); /* once */
    outbox_close(outbox);
    signer_free(signer);
    rpc_free(rpc);
    anvil_stop(chain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jobs_on_a_stricter_chain),
        cmocka_unit_test(test_limits_of_a_real_chain_are_there),
        cmocka_unit_test(test_a_replacement_is_dear_enough),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
