/*
 * Goal: every intent becomes exactly one transaction, no matter what happens to us or to the chain.
 * Method: against anvil: crashes at random instants, reorganizations, a full pool, a nonce that
 * somebody else used, fees past the ceiling, an endpoint that lies, slow blocks. The receiver's
 * balance counts. A scripted endpoint says the words that pools of other nodes say.
 */
#include "tests/support/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/io/database.h"
#include "chain/codec/hex_data.h"
#include "chain/contracts/compiled/registry_code.h"
#include "chain/evm/evm.h"
#include "chain/evm/outbox.h"
#include "chain/game/game.h"
#include "chain/keys/transaction.h"
#include "tests/support/game/anvil.h"
#include "tests/support/game/rpc_server.h"

enum {
    TRANSFER_GAS = 21000,
    CRASHES = 12,
    CRASH_INTENTS = 40,
    ROUNDS_MAX = 3000,
    CHAIN_ID = 31337,
};

static const struct address receiver = {{0xbe, 0xef, 1}};

struct fixture {
    struct anvil *anvil;
    struct rpc *rpc;
    struct signer *signer;
    struct outbox_options options;
    struct outbox *outbox;
    char path[512];
};

static void open_outbox(struct fixture *fixture)
{
    struct error error;

    error_init(&error);
    if (outbox_open(&fixture->outbox, &fixture->options, fixture->signer, fixture->rpc, &error) !=
        STATUS_OK) {
        fail_msg("%s", error.text);
    }
}

static void set_up(struct fixture *fixture, const char *const *arguments, const char *name)
{
    struct secret_key key = anvil_key(1);
    struct error error;

    memset(fixture, 0, sizeof(*fixture));
    fixture->anvil = anvil_start(arguments);
    fixture->rpc = anvil_rpc(fixture->anvil);
    fixture->signer = signer_new(&key, &error);
    assert_non_null(fixture->signer);
    (void)snprintf(fixture->path, sizeof(fixture->path), "%s/%s.db", test_temp_dir(), name);
    fixture->options.path = fixture->path;
    fixture->options.chain_id = CHAIN_ID;
    fixture->options.depth = 2;
    fixture->options.replace_after_s = 3600; /* nothing is replaced unless a test wants it */
    fixture->options.fee_most = uint256_of(500000000000u);
    open_outbox(fixture);
}

static void tear_down(struct fixture *fixture)
{
    outbox_close(fixture->outbox);
    signer_free(fixture->signer);
    rpc_free(fixture->rpc);
    anvil_stop(fixture->anvil);
}

static void work(struct outbox *outbox)
{
    struct error error;

    error_init(&error);
    if (outbox_work(outbox, &error) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
}

static void add_transfer(struct outbox *outbox, const char *name, wei value)
{
    struct error error;

    error_init(&error);
    if (outbox_add(outbox, name, &receiver, value, "", 0, TRANSFER_GAS, &error) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
}

static struct outbox_status look(struct outbox *outbox, const char *name)
{
    struct outbox_status status;
    struct error error;

    assert_int_equal(outbox_look(outbox, &status, name, &error), STATUS_OK);
    return status;
}

static void mine(struct rpc *rpc)
{
    json_decref(anvil_call(rpc, "evm_mine", NULL));
}

/* How many transactions are not final, by the outbox's file. */
static int64_t unfinished(const struct fixture *fixture)
{
    struct database file;
    struct error error;
    int64_t count = 0;

    error_init(&error);
    assert_int_equal(database_open(&file, fixture->options.path, "", &error), STATUS_OK);
    assert_int_equal(database_number(&file, &count, 0, &error,
                                     "SELECT count(*) FROM intents WHERE state < ?", "i",
                                     (int64_t)OUTBOX_FINAL),
                     STATUS_OK);
    database_close(&file);
    return count;
}

/* Works and mines until all is final. */
static void finish(struct fixture *fixture)
{
    for (int i = 0; i < ROUNDS_MAX; i++) {
        work(fixture->outbox);
        if (unfinished(fixture) == 0) {
            return;
        }
        mine(fixture->rpc);
    }
    fail_msg("the outbox does not come to an end");
}

static wei balance_of(struct rpc *rpc, const struct address *account)
{
    struct error error;
    wei balance = 0;

    assert_int_equal(evm_balance(rpc, &balance, account, &error), STATUS_OK);
    return balance;
}

static uint64_t nonce_of(struct fixture *fixture)
{
    struct error error;
    uint64_t nonce = 0;

    assert_int_equal(evm_nonce(fixture->rpc, &nonce, signer_address(fixture->signer), &error),
                     STATUS_OK);
    return nonce;
}

static void test_an_intent_is_sent_once(void **state)
{
    struct fixture fixture;
    struct outbox_status status;
    struct error error;

    (void)state;
    set_up(&fixture, NULL, "once");
    add_transfer(fixture.outbox, "pay", 1000);
    add_transfer(fixture.outbox, "pay", 1000);
    assert_int_equal(outbox_add(fixture.outbox, "pay", &receiver, 999, "", 0, TRANSFER_GAS, &error),
                     STATUS_REFUSED);
    assert_int_equal(outbox_look(fixture.outbox, &status, "other", &error), STATUS_NOT_FOUND);
    finish(&fixture);
    add_transfer(fixture.outbox, "pay", 1000);
    finish(&fixture);
    status = look(fixture.outbox, "pay");
    assert_int_equal(status.state, OUTBOX_FINAL);
    assert_false(status.reverted);
    assert_int_equal(balance_of(fixture.rpc, &receiver), 1000);
    assert_int_equal(nonce_of(&fixture), 1);
    tear_down(&fixture);
}

static void test_a_second_process_or_another_key_is_refused(void **state)
{
    struct fixture fixture;
    struct secret_key key = anvil_key(2);
    struct outbox *second;
    struct signer *other;
    struct error error;

    (void)state;
    set_up(&fixture, NULL, "locked");
    assert_int_equal(outbox_open(&second, &fixture.options, fixture.signer, fixture.rpc, &error),
                     STATUS_REFUSED);
    outbox_close(fixture.outbox);
    other = signer_new(&key, &error);
    assert_non_null(other);
    assert_int_equal(outbox_open(&second, &fixture.options, other, fixture.rpc, &error),
                     STATUS_REFUSED);
    fixture.options.chain_id++;
    assert_int_equal(outbox_open(&second, &fixture.options, fixture.signer, fixture.rpc, &error),
                     STATUS_REFUSED);
    fixture.options.chain_id--;
    open_outbox(&fixture);
    signer_free(other);
    tear_down(&fixture);
}

/* The child works until it is killed; what it wrote down must be sent once, by it or by us. */
static void crash_once(struct fixture *fixture, uint64_t *random)
{
    pid_t child;

    outbox_close(fixture->outbox);
    fixture->outbox = NULL;
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rpc *rpc = anvil_rpc(fixture->anvil); /* a connection is not shared */
        struct secret_key key = anvil_key(1);
        struct signer *signer = signer_new(&key, NULL); /* key memory is wiped by a fork */
        struct outbox *outbox;

        if (outbox_open(&outbox, &fixture->options, signer, rpc, NULL) == STATUS_OK) {
            while (outbox_work(outbox, NULL) == STATUS_OK) {
            }
        }
        _exit(1);
    }
    usleep((useconds_t)test_random_below(random, 150000));
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
    open_outbox(fixture);
}

static void test_crashes_neither_lose_nor_double(void **state)
{
    struct fixture fixture;
    uint64_t random = 5;
    wei sum = 0;

    (void)state;
    set_up(&fixture, NULL, "crash");
    for (uint32_t crash = 0; crash < CRASHES; crash++) {
        for (uint32_t i = 0; i < CRASH_INTENTS; i++) {
            char name[32];

            (void)snprintf(name, sizeof(name), "pay %u/%u", crash, i);
            add_transfer(fixture.outbox, name, 1 + i);
            sum += 1 + i;
        }
        crash_once(&fixture, &random);
    }
    finish(&fixture);
    assert_int_equal(balance_of(fixture.rpc, &receiver), sum);
    assert_int_equal(nonce_of(&fixture), CRASHES * CRASH_INTENTS);
    tear_down(&fixture);
}

static void test_a_pending_transaction_is_replaced_by_a_dearer_one(void **state)
{
    static const char *const arguments[] = {"--no-mining", NULL};
    struct fixture fixture;
    struct outbox_status first;
    struct outbox_status second;

    (void)state;
    set_up(&fixture, arguments, "replace");
    add_transfer(fixture.outbox, "pay", 7);
    work(fixture.outbox);
    first = look(fixture.outbox, "pay");
    assert_int_equal(first.state, OUTBOX_SENT);
    outbox_close(fixture.outbox);
    fixture.options.replace_after_s = 0;
    open_outbox(&fixture);
    usleep(3100000);
    work(fixture.outbox);
    second = look(fixture.outbox, "pay");
    assert_int_equal(second.replacements, 1);
    assert_int_equal(second.nonce, first.nonce);
    assert_false(hash32_equal(&first.hash, &second.hash));
    finish(&fixture);
    assert_int_equal(balance_of(fixture.rpc, &receiver), 7);
    tear_down(&fixture);
}

static void test_a_reorganization_sends_it_again(void **state)
{
    static const char *const arguments[] = {"--no-mining", NULL};
    struct fixture fixture;
    struct outbox_status status;

    (void)state;
    set_up(&fixture, arguments, "reorg");
    fixture.options.depth = 5;
    outbox_close(fixture.outbox);
    open_outbox(&fixture);
    mine(fixture.rpc);
    mine(fixture.rpc);
    add_transfer(fixture.outbox, "pay", 9);
    work(fixture.outbox);
    mine(fixture.rpc);
    work(fixture.outbox);
    status = look(fixture.outbox, "pay");
    assert_int_equal(status.state, OUTBOX_MINED);
    json_decref(anvil_call(fixture.rpc, "anvil_reorg", json_pack("[i, []]", 2)));
    assert_int_equal(balance_of(fixture.rpc, &receiver), 0); /* the chain has forgotten it */
    work(fixture.outbox);
    status = look(fixture.outbox, "pay");
    assert_int_equal(status.state, OUTBOX_SENT);
    finish(&fixture);
    status = look(fixture.outbox, "pay");
    assert_int_equal(status.state, OUTBOX_FINAL);
    assert_int_equal(balance_of(fixture.rpc, &receiver), 9);
    assert_int_equal(nonce_of(&fixture), 1);
    tear_down(&fixture);
}

/* Moves that count as final, and a reorganization that is deeper than that by a few blocks. */
static void test_a_reorganization_deeper_than_final_opens_moves_again(void **state)
{
    static const char *const arguments[] = {"--no-mining", NULL};

    (void)state;
    for (uint32_t beyond = 1; beyond <= 8; beyond++) {
        struct fixture fixture;
        struct error error;
        uint64_t reopened = 0;
        char name[32];

        error_init(&error);
        (void)snprintf(name, sizeof(name), "deep-%u", beyond);
        set_up(&fixture, arguments, name);
        for (uint32_t i = 0; i < fixture.options.depth + 9; i++) {
            mine(fixture.rpc);
        }
        add_transfer(fixture.outbox, "first", 10);
        work(fixture.outbox);
        mine(fixture.rpc);
        add_transfer(fixture.outbox, "second", 3);
        work(fixture.outbox);
        mine(fixture.rpc);
        for (uint32_t i = 0; i < fixture.options.depth + beyond - 1; i++) {
            mine(fixture.rpc);
        }
        work(fixture.outbox);
        assert_int_equal(look(fixture.outbox, "second").state, OUTBOX_FINAL);
        json_decref(anvil_call(fixture.rpc, "anvil_reorg",
                               json_pack("[i, []]", (int)(fixture.options.depth + beyond))));
        if (beyond % 2 == 0) { /* also where the program did not run meanwhile */
            outbox_close(fixture.outbox);
            open_outbox(&fixture);
        }
        assert_true(balance_of(fixture.rpc, &receiver) < 13);
        work(fixture.outbox);
        assert_true(look(fixture.outbox, "second").state < OUTBOX_FINAL);
        assert_int_equal(outbox_reopened(fixture.outbox, &reopened, &error), STATUS_OK);
        assert_true(reopened >= 1);
        finish(&fixture);
        assert_int_equal(balance_of(fixture.rpc, &receiver), 13);
        assert_int_equal(nonce_of(&fixture), 2);
        assert_int_equal(look(fixture.outbox, "first").state, OUTBOX_FINAL);
        assert_int_equal(look(fixture.outbox, "second").state, OUTBOX_FINAL);
        tear_down(&fixture);
    }
}

/* A transaction that nobody has any more, as of a name that was freed, leaves its nonce unused. */
static void test_a_nonce_that_is_left_unused_gets_a_transaction(void **state)
{
    static const char *const arguments[] = {"--no-mining", NULL};

    (void)state;
    for (int with_next = 0; with_next < 2; with_next++) {
        struct fixture fixture;
        struct database file;
        struct error error;

        error_init(&error);
        set_up(&fixture, arguments, with_next == 0 ? "gap" : "gap-next");
        for (uint32_t i = 0; i < fixture.options.depth + 9; i++) {
            mine(fixture.rpc);
        }
        add_transfer(fixture.outbox, "first", 10);
        add_transfer(fixture.outbox, "second", 3);
        finish(&fixture);
        assert_int_equal(database_open(&file, fixture.options.path, "", &error), STATUS_OK);
        assert_int_equal(database_run(&file, &error,
                                      "DELETE FROM attempts WHERE intent ="
                                      " (SELECT id FROM intents WHERE nonce = 0)",
                                      ""),
                         STATUS_OK);
        assert_int_equal(database_run(&file, &error, "DELETE FROM intents WHERE nonce = 0", ""),
                         STATUS_OK);
        database_close(&file);
        json_decref(anvil_call(fixture.rpc, "anvil_reorg",
                               json_pack("[i, []]", (int)(fixture.options.depth + 4))));
        if (with_next != 0) {
            add_transfer(fixture.outbox, "third", 100);
        }
        finish(&fixture);
        assert_int_equal(nonce_of(&fixture), 2);
        assert_int_equal(balance_of(fixture.rpc, &receiver), with_next != 0 ? 103 : 3);
        tear_down(&fixture);
    }
}

/* One transaction is in a block, one in the pool, when the node is killed. The one that takes its
 * place knows of neither. */
static void test_a_chain_that_dies_and_forgets_gets_all_again(void **state)
{
    static const char *const arguments[] = {"--no-mining", NULL};
    struct fixture fixture;
    struct error error;

    (void)state;
    set_up(&fixture, arguments, "dies");
    add_transfer(fixture.outbox, "first", 3);
    work(fixture.outbox);
    mine(fixture.rpc);
    work(fixture.outbox);
    assert_int_equal(look(fixture.outbox, "first").state, OUTBOX_MINED);
    add_transfer(fixture.outbox, "second", 4);
    work(fixture.outbox);
    assert_int_equal(look(fixture.outbox, "second").state, OUTBOX_SENT);
    anvil_kill(fixture.anvil);
    assert_int_equal(outbox_work(fixture.outbox, &error), STATUS_UNREACHABLE);
    assert_int_equal(look(fixture.outbox, "second").state, OUTBOX_SENT);
    outbox_close(fixture.outbox);
    rpc_free(fixture.rpc);
    anvil_stop(fixture.anvil);
    fixture.anvil = anvil_start(arguments);
    fixture.rpc = anvil_rpc(fixture.anvil);
    open_outbox(&fixture);
    finish(&fixture);
    assert_int_equal(balance_of(fixture.rpc, &receiver), 7);
    assert_int_equal(nonce_of(&fixture), 2);
    tear_down(&fixture);
}

/* The user sends with another wallet; our transaction of that nonce can never count. */
static void test_a_nonce_used_by_another_is_given_up(void **state)
{
    static const char *const arguments[] = {"--no-mining", NULL};
    struct fixture fixture;
    struct transaction foreign = {.kind = TRANSACTION_FEE_MARKET,
                                  .chain_id = CHAIN_ID,
                                  .gas_limit = TRANSFER_GAS,
                                  .to = {{0xaa}}};
    uint8_t *raw = (anvil_need(), malloc(TRANSACTION_SIZE_MAX));
    char *text = malloc(4096);
    struct hash32 hash;
    struct error error;
    size_t size;

    (void)state;
    assert_non_null(raw);
    assert_non_null(text);
    set_up(&fixture, arguments, "foreign");
    add_transfer(fixture.outbox, "pay", 11);
    work(fixture.outbox);
    foreign.fee_wei_max = uint256_of(400000000000u);
    foreign.tip_wei_max = uint256_of(100000000000u);
    assert_int_equal(transaction_sign(&foreign, raw, &size, &hash, fixture.signer, &error),
                     STATUS_OK);
    hex_write(text, raw, size, true);
    json_decref(anvil_call(fixture.rpc, "eth_sendRawTransaction", json_pack("[s]", text)));
    finish(&fixture);
    assert_int_equal(balance_of(fixture.rpc, &receiver), 11);
    assert_int_equal(nonce_of(&fixture), 2);
    assert_int_equal(look(fixture.outbox, "pay").nonce, 1);
    free(raw);
    free(text);
    tear_down(&fixture);
}

static void test_the_ceiling_of_the_fee_is_kept(void **state)
{
    struct fixture fixture;
    struct outbox_status status;

    (void)state;
    set_up(&fixture, NULL, "ceiling");
    outbox_close(fixture.outbox);
    fixture.options.fee_most = uint256_of(1000);
    open_outbox(&fixture);
    add_transfer(fixture.outbox, "pay", 5);
    work(fixture.outbox);
    status = look(fixture.outbox, "pay");
    assert_int_equal(status.state, OUTBOX_WAITING);
    assert_non_null(strstr(status.trouble, "ceiling"));
    outbox_close(fixture.outbox);
    fixture.options.fee_most = uint256_of(500000000000u);
    open_outbox(&fixture);
    finish(&fixture);
    assert_int_equal(balance_of(fixture.rpc, &receiver), 5);
    tear_down(&fixture);
}

static void test_chains_without_a_base_fee_get_the_older_kind(void **state)
{
    static const char *const arguments[] = {"--hardfork", "berlin", NULL};
    struct fixture fixture;

    (void)state;
    set_up(&fixture, arguments, "legacy");
    add_transfer(fixture.outbox, "pay", 3);
    finish(&fixture);
    assert_int_equal(balance_of(fixture.rpc, &receiver), 3);
    tear_down(&fixture);
}

static void test_a_refusal_of_the_contract_is_kept(void **state)
{
    static const struct address nobody[3];
    struct fixture fixture;
    struct address registry;
    struct outbox_status status;
    struct game_move move = {.kind = GAME_WITHDRAW, .account = {{1}}};
    struct game_refusal refusal;
    struct error error;
    uint8_t data[GAME_MOVE_SIZE_MAX];
    size_t size;

    (void)state;
    set_up(&fixture, NULL, "refusal");
    registry = anvil_deploy_with(fixture.rpc, 0, REGISTRY_CODE, nobody, 3, "0x0");
    game_move_encode(data, &size, &move);
    assert_int_equal(
        outbox_add(fixture.outbox, "withdraw", &registry, 0, data, size, 100000, &error),
        STATUS_OK);
    work(fixture.outbox);
    status = look(fixture.outbox, "withdraw");
    assert_int_equal(status.state, OUTBOX_REFUSED);
    game_refusal_decode(&refusal, status.revert, status.revert_size);
    assert_int_equal(refusal.kind, GAME_NOTHING_OWED);
    assert_int_equal(nonce_of(&fixture), 0);
    /* Behind another one nobody can know, so it is sent, reverts, and says why. */
    add_transfer(fixture.outbox, "pay", 1);
    assert_int_equal(outbox_add(fixture.outbox, "again", &registry, 0, data, size, 100000, &error),
                     STATUS_OK);
    json_decref(anvil_call(fixture.rpc, "evm_setAutomine", json_pack("[b]", 0)));
    work(fixture.outbox);
    finish(&fixture);
    status = look(fixture.outbox, "again");
    assert_int_equal(status.state, OUTBOX_FINAL);
    assert_true(status.reverted);
    game_refusal_decode(&refusal, status.revert, status.revert_size);
    assert_int_equal(refusal.kind, GAME_NOTHING_OWED);
    /* Nor behind one that waits for a cheaper block. */
    outbox_close(fixture.outbox);
    fixture.options.fee_most = uint256_of(1000);
    open_outbox(&fixture);
    add_transfer(fixture.outbox, "pay later", 1);
    assert_int_equal(outbox_add(fixture.outbox, "third", &registry, 0, data, size, 100000, &error),
                     STATUS_OK);
    work(fixture.outbox);
    assert_int_equal(look(fixture.outbox, "third").state, OUTBOX_WAITING);
    tear_down(&fixture);
}

/* Says that everything is mined, deep, and that there is no need to send anything. */
static int lie(char *reply, int reply_size, const char *request, void *context)
{
    const char *id = strstr(request, "\"id\":");
    const char *hash = strstr(request, "\"params\":[\"");
    const char *result = "\"0x7fffffff\"";
    char receipt[512];

    (void)context;
    if (strstr(request, "eth_getTransactionReceipt") != NULL) {
        (void)snprintf(receipt, sizeof(receipt),
                       "{\"transactionHash\":\"%.66s\",\"blockHash\":\"0x%064d\","
                       "\"blockNumber\":\"0x1\",\"status\":\"0x1\"}",
                       hash + strlen("\"params\":[\""), 1);
        result = receipt;
    } else if (strstr(request, "eth_chainId") != NULL) {
        result = "\"0x7a69\"";
    }
    return snprintf(reply, (size_t)reply_size, "{\"jsonrpc\":\"2.0\",\"id\":%lu,\"result\":%s}",
                    strtoul(id + 5, NULL, 10), result);
}

static void test_one_lying_endpoint_of_three_changes_nothing(void **state)
{
    static const char *const arguments[] = {"--no-mining", NULL};
    struct fixture fixture;
    struct rpc_server *liar = rpc_server_start_answering(lie, NULL);
    struct rpc_options options;
    struct rpc *all;
    struct rpc *honest;
    const char *urls[3];
    struct error error;

    (void)state;
    set_up(&fixture, arguments, "liar");
    urls[0] = anvil_url(fixture.anvil);
    urls[1] = rpc_server_url(liar);
    urls[2] = anvil_url(fixture.anvil);
    rpc_options_init(&options);
    options.urls = urls;
    options.url_count = 3;
    options.timeout_ms = 60000;
    all = rpc_new(&options, &error);
    assert_non_null(all);
    honest = fixture.rpc;
    outbox_close(fixture.outbox);
    fixture.rpc = all;
    open_outbox(&fixture);
    add_transfer(fixture.outbox, "pay", 13);
    work(fixture.outbox);
    work(fixture.outbox);
    assert_int_equal(look(fixture.outbox, "pay").state, OUTBOX_SENT);
    for (int i = 0; i < 6; i++) {
        mine(honest);
        work(fixture.outbox);
    }
    assert_int_equal(look(fixture.outbox, "pay").state, OUTBOX_FINAL);
    assert_int_equal(balance_of(honest, &receiver), 13);
    outbox_close(fixture.outbox);
    fixture.outbox = NULL;
    fixture.rpc = honest;
    rpc_free(all);
    tear_down(&fixture);
    rpc_server_stop(liar);
}

/* ---- words of a pool ------------------------------------------------------------- */

/* An endpoint that refuses each raw transaction with a message. */
struct pool {
    const char *message;
    bool mined;       /* the receipt of every transaction is there */
    uint32_t refused; /* how many raw transactions */
};

static int pool_answer(char *reply, int reply_size, const char *request, void *context)
{
    static const struct {
        const char *method;
        const char *result;
    } fixed[] = {
        {"eth_blockNumber", "\"0x9\""},
        {"eth_getTransactionCount", "\"0x0\""},
        {"eth_getBlockByNumber", "{\"baseFeePerGas\":\"0x1\"}"},
        {"eth_maxPriorityFeePerGas", "\"0x1\""},
        {"eth_call", "\"0x\""},
    };
    struct pool *pool = context;
    json_t *queried = json_loads(request, 0, NULL);
    const char *method = json_string_value(json_object_get(queried, "method"));
    const char *hash = json_string_value(json_array_get(json_object_get(queried, "params"), 0));
    unsigned long id = (unsigned long)json_integer_value(json_object_get(queried, "id"));
    char receipt[512];
    const char *result = "null";
    bool sends = strcmp(method, "eth_sendRawTransaction") == 0;

    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
        result = strcmp(method, fixed[i].method) == 0 ? fixed[i].result : result;
    }
    if (strcmp(method, "eth_getTransactionReceipt") == 0 && pool->mined) {
        (void)snprintf(receipt, sizeof(receipt),
                       "{\"transactionHash\":\"%s\",\"blockHash\":\"%s\",\"blockNumber\":\"0x9\","
                       "\"status\":\"0x1\"}",
                       hash, hash);
        result = receipt;
    }
    pool->refused += sends;
    json_decref(queried);
    return sends ? snprintf(reply, (size_t)reply_size,
                            "{\"jsonrpc\":\"2.0\",\"id\":%lu,\"error\":{\"code\":-32000,"
                            "\"message\":\"%s\"}}",
                            id, pool->message)
                 : snprintf(reply, (size_t)reply_size,
                            "{\"jsonrpc\":\"2.0\",\"id\":%lu,\"result\":%s}", id, result);
}

/* Sends one transfer to the pool, and gives what the outbox says of it. */
static struct outbox_status send_to(struct pool *pool, const char *name)
{
    struct secret_key key = anvil_key(1);
    struct rpc_server *server = rpc_server_start_answering(pool_answer, pool);
    const char *url = rpc_server_url(server);
    struct outbox_status status;
    struct rpc_options options;
    struct fixture fixture;
    struct error error;

    memset(&fixture, 0, sizeof(fixture));
    rpc_options_init(&options);
    options.urls = &url;
    options.url_count = 1;
    fixture.rpc = rpc_new(&options, &error);
    fixture.signer = signer_new(&key, &error);
    assert_non_null(fixture.rpc);
    assert_non_null(fixture.signer);
    (void)snprintf(fixture.path, sizeof(fixture.path), "%s/%s.db", test_temp_dir(), name);
    fixture.options = (struct outbox_options){.path = fixture.path,
                                              .chain_id = CHAIN_ID,
                                              .depth = 2,
                                              .replace_after_s = 3600,
                                              .fee_most = uint256_of(500000000000u)};
    open_outbox(&fixture);
    add_transfer(fixture.outbox, "pay", 1);
    work(fixture.outbox);
    status = look(fixture.outbox, "pay");
    assert_int_equal(pool->refused, 1);
    outbox_close(fixture.outbox);
    signer_free(fixture.signer);
    rpc_free(fixture.rpc);
    rpc_server_stop(server);
    return status;
}

static void test_a_pool_that_knows_the_transaction_is_no_trouble(void **state)
{
    static const char *const known[] = {
        "already known",
        "ALREADY_EXISTS: already known",
        "AlreadyKnown",
        "Known transaction",
        "Known transaction: 0x0102",
        "known transaction: 0102",
        "transaction already imported",
        "Transaction with the same hash was already imported.",
        "existing tx with same hash",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct pool pool = {.message = known[i]};
        struct outbox_status status;
        char name[32];

        (void)snprintf(name, sizeof(name), "known%zu", i);
        status = send_to(&pool, name);
        assert_int_equal(status.state, OUTBOX_SENT);
        assert_string_equal(status.trouble, "");
    }
}

static void test_other_refusals_of_a_pool_are_trouble(void **state)
{
    static const char *const refusals[] = {
        "insufficient funds for gas * price + value",
        "replacement transaction underpriced",
        "unknown transaction type",
        "nonce too low",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        struct pool pool = {.message = refusals[i]};
        struct outbox_status status;
        char name[32];

        (void)snprintf(name, sizeof(name), "refused%zu", i);
        status = send_to(&pool, name);
        assert_int_equal(status.state, OUTBOX_SENT);
        assert_non_null(strstr(status.trouble, refusals[i]));
    }
}

/* The block came between our look at the nonce and the sending. */
static void test_nonce_too_low_is_no_trouble_when_our_bytes_are_mined(void **state)
{
    static const char *const used[] = {
        "nonce too low",
        "nonce too low: next nonce 1, tx nonce 0",
        "Nonce too low",
        "OldNonce",
        "OldNonce, Current nonce: 1, nonce of rejected tx: 0",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(used) / sizeof(used[0]); i++) {
        struct pool pool = {.message = used[i], .mined = true};
        struct outbox_status status;
        char name[32];

        (void)snprintf(name, sizeof(name), "used%zu", i);
        status = send_to(&pool, name);
        assert_int_equal(status.state, OUTBOX_MINED);
        assert_string_equal(status.trouble, "");
    }
}

/* Each look at the pool sends the same bytes again. Soak waits for real blocks of 12 s. */
static void test_slow_blocks_are_no_trouble(void **state)
{
    const char *const arguments[] = {"--block-time", test_soak_minutes() > 0 ? "12" : "5", NULL};
    const time_t end_s = time(NULL) + 120;
    struct fixture fixture;

    (void)state;
    set_up(&fixture, arguments, "slow");
    fixture.options.depth = 0;
    outbox_close(fixture.outbox);
    open_outbox(&fixture);
    add_transfer(fixture.outbox, "pay", 17);
    while (look(fixture.outbox, "pay").state != OUTBOX_FINAL && time(NULL) < end_s) {
        work(fixture.outbox);
        assert_string_equal(look(fixture.outbox, "pay").trouble, "");
        usleep(200000);
    }
    assert_int_equal(look(fixture.outbox, "pay").state, OUTBOX_FINAL);
    assert_int_equal(balance_of(fixture.rpc, &receiver), 17);
    assert_int_equal(nonce_of(&fixture), 1);
    tear_down(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_intent_is_sent_once),
        cmocka_unit_test(test_a_second_process_or_another_key_is_refused),
        cmocka_unit_test(test_crashes_neither_lose_nor_double),
        cmocka_unit_test(test_a_pending_transaction_is_replaced_by_a_dearer_one),
        cmocka_unit_test(test_a_reorganization_sends_it_again),
        cmocka_unit_test(test_a_reorganization_deeper_than_final_opens_moves_again),
        cmocka_unit_test(test_a_nonce_that_is_left_unused_gets_a_transaction),
        cmocka_unit_test(test_a_chain_that_dies_and_forgets_gets_all_again),
        cmocka_unit_test(test_a_nonce_used_by_another_is_given_up),
        cmocka_unit_test(test_the_ceiling_of_the_fee_is_kept),
        cmocka_unit_test(test_chains_without_a_base_fee_get_the_older_kind),
        cmocka_unit_test(test_a_refusal_of_the_contract_is_kept),
        cmocka_unit_test(test_one_lying_endpoint_of_three_changes_nothing),
        cmocka_unit_test(test_a_pool_that_knows_the_transaction_is_no_trouble),
        cmocka_unit_test(test_other_refusals_of_a_pool_are_trouble),
        cmocka_unit_test(test_nonce_too_low_is_no_trouble_when_our_bytes_are_mined),
        cmocka_unit_test(test_slow_blocks_are_no_trouble),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
