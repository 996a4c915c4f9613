/* anvil.c - see anvil.h. */
#include "tests/support/game/anvil.h"

#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "chain/codec/abi.h"
#include "chain/codec/hex_data.h"
#include "chain/contracts/compiled/examiner_code.h"
#include "chain/contracts/compiled/rules_code.h"
#include "chain/contracts/compiled/seeds_code.h"
#include "chain/evm/evm.h"
#include "chain/evm/evm_seeds.h"
#include "chain/keys/signer.h"
#include "tests/support/test.h"

enum {
    ARGUMENTS_MAX = 32,
    RECEIPT_TRIES = 150000, /* 5 minutes at least: a busy machine is no failure */
};

struct anvil {
    pid_t child;
    FILE *output;
    pthread_t drain;
    char url[64];
};

const char *evm_tool(const char *path)
{
    static char full[4096];

    (void)snprintf(full, sizeof(full), "tests/evm/node_modules/%s", path);
    if (access(full, R_OK) != 0) {
        test_skip("%s is not installed: (cd tests/evm && npm ci)", path);
    }
    return full;
}

static const char *find_anvil(void)
{
    const char *named = getenv("LOCKSTEP_ANVIL");

    return named != NULL ? named : evm_tool("@foundry-rs/anvil-linux-amd64/bin/anvil");
}

void anvil_need(void)
{
    (void)find_anvil();
}

static void run_child(const char *folder, const char *const *words, int output)
{
    if (chdir(folder) != 0) {
        _exit(127);
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that crashes leaves no chain behind */
    (void)dup2(output, STDOUT_FILENO);
    (void)execvp(words[0], (char *const *)words);
    _exit(127);
}

/* Every call is reported; a full pipe would stop it. */
static void *drain(void *output)
{
    char line[4096];

    while (fgets(line, sizeof(line), output) != NULL) {
    }
    return NULL;
}

/* Reads the node's output up to its port, after `mark`. */
static void find_port(struct anvil *anvil, const char *mark)
{
    char line[1024];

    while (fgets(line, sizeof(line), anvil->output) != NULL) {
        const char *found = strstr(line, mark);

        if (found != NULL) {
            (void)snprintf(anvil->url, sizeof(anvil->url), "http://%.40s", found + strlen(mark));
            anvil->url[strlen("http://") + strcspn(anvil->url + strlen("http://"), "/\r\n ")] =
                '\0';
            return;
        }
    }
    fail_msg("the node did not start");
}

/* Starts the words' program in the folder. */
static struct anvil *start(const char *folder, const char *const *words, const char *mark)
{
    struct anvil *anvil = calloc(1, sizeof(*anvil));
    int ends[2];
    int result = pipe2(ends, O_CLOEXEC);

    assert(anvil != NULL && result == 0);
    anvil->child = fork();
    assert(anvil->child >= 0);
    if (anvil->child == 0) {
        run_child(folder, words, ends[1]);
    }
    (void)close(ends[1]);
    anvil->output = fdopen(ends[0], "r");
    assert(anvil->output != NULL);
    find_port(anvil, mark);
    result = pthread_create(&anvil->drain, NULL, drain, anvil->output);
    assert(result == 0);
    return anvil;
}

struct anvil *anvil_start(const char *const *arguments)
{
    const char *words[ARGUMENTS_MAX] = {find_anvil(), "--port",    "0",
                                        "--host",     "127.0.0.1", "--disable-block-gas-limit"};
    size_t count = 6;

    for (size_t i = 0; arguments != NULL && arguments[i] != NULL; i++) {
        assert(count + 1 < ARGUMENTS_MAX);
        words[count++] = arguments[i];
    }
    words[count] = NULL;
    return start(".", words, "Listening on ");
}

struct anvil *anvil_start_hardhat(void)
{
    /* Hardhat wants to be called from the folder of its settings, by a path below it. */
    static const char program[] = "node_modules/hardhat/internal/cli/bootstrap.js";
    const char *const words[] = {"node",      program,  "node", "--hostname",
                                 "127.0.0.1", "--port", "0",    NULL};

    (void)evm_tool(program + strlen("node_modules/"));
    return start("tests/evm", words, "server at http://");
}

void anvil_kill(struct anvil *anvil)
{
    if (anvil->child > 0) {
        (void)kill(anvil->child, SIGKILL);
        (void)waitpid(anvil->child, NULL, 0);
        anvil->child = 0;
    }
}

void anvil_stop(struct anvil *anvil)
{
    if (anvil != NULL) {
        anvil_kill(anvil);
        (void)pthread_join(anvil->drain, NULL);
        (void)fclose(anvil->output);
        free(anvil);
    }
}

const char *anvil_url(const struct anvil *anvil)
{
    return anvil->url;
}

struct rpc *anvil_rpc(const struct anvil *anvil)
{
    const char *url = anvil->url;
    struct rpc_options options;
    struct error error;
    struct rpc *rpc;

    rpc_options_init(&options);
    options.urls = &url;
    options.url_count = 1;
    options.timeout_ms = 600000; /* of random moves: minutes on a busy machine */
    options.rounds_max = 2;
    rpc = rpc_new(&options, &error);
    assert_non_null(rpc);
    return rpc;
}

struct secret_key anvil_key(uint32_t number)
{
    /* "test test test test test test test test test test test junk", as anvil prints them */
    static const char *const keys[] = {
        "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
        "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
        "5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
        "7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
        "47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
        "8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba",
        "92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e",
        "4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356",
        "dbda1821b80551c9d65939329250298aa3472ba22feea921c0cf5d620ea67b97",
        "2a871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6",
    };
    struct secret_key key;
    enum status status;

    assert(number < sizeof(keys) / sizeof(keys[0]));
    status = hex_read_exactly(key.bytes, sizeof(key.bytes), keys[number]);
    assert(status == STATUS_OK);
    return key;
}

json_t *anvil_call(struct rpc *rpc, const char *method, json_t *params)
{
    struct error error;
    json_t *result = NULL;

    if (rpc_call(rpc, &result, method, params, &error) != STATUS_OK) {
        fail_msg("%s: %s", method, error.text);
    }
    return result;
}

static struct address account_of(uint32_t number)
{
    struct secret_key key = anvil_key(number);
    struct error error;
    struct signer *signer = signer_new(&key, &error);
    struct address address;

    assert_non_null(signer);
    address = *signer_address(signer);
    signer_free(signer);
    return address;
}

uint64_t anvil_time_s(struct rpc *rpc)
{
    json_t *block = anvil_call(rpc, "eth_getBlockByNumber", json_pack("[s, b]", "latest", 0));
    uint64_t time_s = 0;

    assert_int_equal(rpc_field_u64(&time_s, block, "timestamp", NULL), STATUS_OK);
    json_decref(block);
    return time_s;
}

void anvil_pass_time(struct rpc *rpc, uint32_t seconds)
{
    json_decref(anvil_call(rpc, "evm_increaseTime", json_pack("[i]", (int)seconds)));
    json_decref(anvil_call(rpc, "evm_mine", NULL));
}

struct hash32 anvil_word_of_block(struct rpc *rpc, uint64_t height, const char *field)
{
    struct hash32 word;
    char text[32];
    json_t *block;

    (void)snprintf(text, sizeof(text), "0x%llx", (unsigned long long)height);
    block = anvil_call(rpc, "eth_getBlockByNumber", json_pack("[s, b]", text, 0));
    assert_int_equal(rpc_value_hash(&word, json_object_get(block, field), field, NULL), STATUS_OK);
    json_decref(block);
    return word;
}

json_t *anvil_send(struct rpc *rpc, uint32_t number, const struct address *to, const char *data,
                   const char *value)
{
    struct address from = account_of(number);
    const struct timespec pause = {0, 2000000};
    char from_text[ADDRESS_TEXT_SIZE];
    char to_text[ADDRESS_TEXT_SIZE];
    json_t *transaction;
    json_t *hash;

    address_print(from_text, &from);
    transaction = json_pack("{s:s, s:s, s:s, s:s}", "from", from_text, "data", data, "value", value,
                            "gas", "0x3b9aca00");
    if (to != NULL) {
        address_print(to_text, to);
        (void)json_object_set_new(transaction, "to", json_string(to_text));
    }
    hash = anvil_call(rpc, "eth_sendTransaction", json_pack("[o]", transaction));
    for (int i = 0; i < RECEIPT_TRIES; i++) {
        json_t *receipt = anvil_call(rpc, "eth_getTransactionReceipt", json_pack("[O]", hash));

        if (json_is_object(receipt)) {
            json_decref(hash);
            assert_string_equal(json_string_value(json_object_get(receipt, "status")), "0x1");
            return receipt;
        }
        json_decref(receipt);
        (void)nanosleep(&pause, NULL);
    }
    fail_msg("no receipt");
    return NULL;
}

struct address anvil_deploy_with(struct rpc *rpc, uint32_t number, const char *code,
                                 const struct address *arguments, size_t count, const char *value)
{
    size_t size = strlen(code) + 2 * count * ABI_WORD_SIZE + 3;
    char *data = malloc(size);
    struct address address;
    json_t *receipt;

    assert_non_null(data);
    (void)snprintf(data, size, "0x%s", code);
    for (size_t i = 0; i < count; i++) {
        uint8_t word[ABI_WORD_SIZE] = {0};

        memcpy(word + ABI_WORD_SIZE - ADDRESS_SIZE, arguments[i].bytes, ADDRESS_SIZE);
        hex_write(data + strlen(data), word, sizeof(word), false);
    }
    receipt = anvil_send(rpc, number, NULL, data, value);
    assert_int_equal(rpc_field_address(&address, receipt, "contractAddress", NULL), STATUS_OK);
    json_decref(receipt);
    free(data);
    return address;
}

struct address anvil_deploy(struct rpc *rpc, uint32_t number, const char *code,
                            const struct address *argument, const char *value)
{
    return anvil_deploy_with(rpc, number, code, argument, argument != NULL, value);
}

struct address anvil_deploy_seeds(struct rpc *rpc, uint32_t number)
{
    struct address delay = {{0}}; /* a word, as an address is */
    uint64_t chain_id = 0;
    uint32_t blocks = 0;
    struct error error;

    error_init(&error);
    assert_int_equal(evm_chain_id(rpc, &chain_id, &error), STATUS_OK);
    assert_int_equal(evm_seeds_delay(&blocks, chain_id, &error), STATUS_OK);
    delay.bytes[ADDRESS_SIZE - 1] = (uint8_t)blocks;
    return anvil_deploy(rpc, number, HEADER_SEEDS_CODE, &delay, "0x0");
}

#define RULES_CODE(name, code) (code),

struct address anvil_deploy_examiner(struct rpc *rpc, uint32_t number)
{
    static const char *const rules[] = {RULES_CONTRACTS(RULES_CODE)};
    enum { COUNT = sizeof(rules) / sizeof(rules[0]) };
    struct address addresses[COUNT];

    for (size_t i = 0; i < COUNT; i++) {
        addresses[i] = anvil_deploy(rpc, number, rules[i], NULL, "0x0");
    }
    return anvil_deploy_with(rpc, number, EXAMINER_CODE, addresses, COUNT, "0x0");
}

struct game_place anvil_place(struct rpc *rpc, const struct address *registry)
{
    uint64_t chain_id = 0;
    struct error error;

    error_init(&error);
    if (evm_chain_id(rpc, &chain_id, &error) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
    return (struct game_place){uint256_of(chain_id), *registry};
}
