/* twins.c - see twins.h. */
#include "tests/support/game/twins.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/codec/abi.h"
#include "chain/codec/hex_data.h"
#include "tests/contracts/court_code.h"
#include "tests/contracts/harness_code.h"
#include "tests/support/test.h"

enum {
    SCRIPT_SIZE_MAX = 32 << 20,
    /* In the byte of the player: see the driver. */
    TO_REFEREE = 128,
    TO_SEEDS = 64,
    SCRIPT_HEAD = 8 + 8 + 1 + 16 + 3,
};

/* ---- the embedded side -------------------------------------------------------- */

/* As the harness of the contracts. */
static enum status random_of(void *context, struct hash32 *random, uint64_t height)
{
    uint8_t word[UINT256_SIZE];
    struct uint256 number = uint256_of(height);

    (void)context;
    uint256_to_bytes(word, &number);
    *random = keccak256(word, sizeof(word));
    return STATUS_OK;
}

static void sql(struct twins *twins, const char *text)
{
    assert_int_equal(database_execute(&twins->sql, text, &twins->error), STATUS_OK);
}

static void keep_log(struct twins *twins, const struct game_event *event)
{
    uint8_t bytes[GAME_LOG_SIZE_MAX];
    struct game_log *log = &twins->logs[twins->log_count++];
    uint8_t *owned;

    assert_true(twins->log_count <= TWINS_LOGS);
    game_event_encode(log, bytes, event);
    owned = malloc(log->data.size + 1);
    assert_non_null(owned);
    memcpy(owned, bytes, log->data.size);
    log->data.bytes = owned;
}

static void forget_played(struct twins *twins)
{
    for (uint32_t i = 0; i < twins->log_count; i++) {
        free((void *)twins->logs[i].data.bytes);
    }
    twins->log_count = 0;
    twins->outcome_count = 0;
    buffer_clear(&twins->script);
}

static void put_number(struct buffer *bytes, size_t size, wei value)
{
    for (size_t i = 0; i < size; i++) {
        buffer_add_u8(bytes, (uint8_t)(value >> (8 * (size - 1 - i))));
    }
}

static uint32_t way_of(const struct game_move *move)
{
    static const uint32_t ways[] = {
        [GAME_REGISTRY] = 0, [GAME_REFEREE] = TO_REFEREE, [GAME_SEEDS] = TO_SEEDS};

    return ways[game_move_contract(move->kind)];
}

static void write_script(struct twins *twins, const struct game_move *move, uint32_t player)
{
    uint8_t *bytes = malloc(game_move_size(move));
    size_t size;

    assert_non_null(bytes);
    game_move_encode(bytes, &size, move);
    put_number(&twins->script, 8, twins->now_s);
    put_number(&twins->script, 8, twins->height);
    put_number(&twins->script, 1, player + way_of(move));
    put_number(&twins->script, 16, move->value);
    put_number(&twins->script, 3, size);
    buffer_add(&twins->script, bytes, size);
    free(bytes);
}

static void take_events(struct twins *twins, const struct local_game *game, uint32_t player)
{
    for (uint32_t i = 0; i < game->event_count; i++) {
        if (twins->anvil != NULL) {
            keep_log(twins, &game->events[i]);
        }
        if (twins->learn != NULL) {
            twins->learn(twins->context, &game->events[i]);
        }
        if (game->events[i].kind == GAME_WITHDRAWN) {
            twins->paid_out += game->events[i].amount;
            twins->paid_out_of[player] += game->events[i].amount;
        }
    }
}

static json_t *send_direct(struct twins *twins, uint32_t player, const struct address *to,
                           const uint8_t *bytes, size_t size, wei value)
{
    struct uint256 wide = wei_to_uint256(value);
    char amount[UINT256_HEX_SIZE];
    char *data = malloc(2 * size + 3);
    json_t *receipt;

    assert_non_null(data);
    uint256_print_quantity(amount, &wide);
    hex_write(data, bytes, size, true);
    receipt = anvil_send(twins->rpc, player, to, data, amount);
    free(data);
    return receipt;
}

/* A transaction of the player's own; it must not be refused. */
static void play_direct(struct twins *twins, const struct game_move *move, uint32_t player)
{
    uint8_t clock[ABI_SELECTOR_SIZE + 2 * ABI_WORD_SIZE];
    uint8_t *bytes = malloc(game_move_size(move));
    struct byte_writer writer;
    json_t *receipt;
    size_t size;

    assert_non_null(bytes);
    byte_writer_init(&writer, clock, sizeof(clock));
    abi_put_selector(&writer, "setClock(uint256,uint256)");
    abi_put_u64(&writer, twins->now_s);
    abi_put_u64(&writer, twins->height);
    json_decref(send_direct(twins, 0, &twins->registry, clock, writer.used, 0));
    game_move_encode(bytes, &size, move);
    assert_int_not_equal(game_move_contract(move->kind), GAME_SEEDS);
    receipt = send_direct(twins, player,
                          game_move_contract(move->kind) == GAME_REFEREE ? &twins->referee
                                                                         : &twins->registry,
                          bytes, size, move->value);
    assert_int_equal(rpc_field_u64(&twins->gas, receipt, "gasUsed", NULL), STATUS_OK);
    json_decref(receipt);
    free(bytes);
}

struct twins_outcome twins_play(struct twins *twins, const struct game_move *move, uint32_t player)
{
    struct local_game *game = twins->game;
    uint32_t at;
    enum status status;

    game->store = &twins->store;
    game->place = twins->place;
    game->sender = twins->players[player];
    game->now_s = twins->now_s;
    game->height = twins->height;
    game->random = random_of;
    if (twins->direct || twins->anvil == NULL) {
        forget_played(twins); /* there is nothing to compare with */
    } else {
        write_script(twins, move, player);
    }
    at = twins->outcome_count++;
    assert_true(at < TWINS_MOVES);
    sql(twins, "SAVEPOINT move");
    status = local_game_play(game, move);
    twins->outcomes[at].done = status == STATUS_OK;
    twins->outcomes[at].size = 0;
    twins->outcomes[at].logs_before = twins->log_count;
    twins->outcomes[at].kind = move->kind;
    if (status == STATUS_OK) {
        take_events(twins, game, player);
        twins->paid_in += move->value;
        twins->paid_in_by[player] += move->value;
        twins->done_of[move->kind]++;
        sql(twins, "RELEASE move");
        if (twins->direct) {
            play_direct(twins, move, player);
        }
        return (struct twins_outcome){.done = true};
    }
    assert_int_equal(status, STATUS_REFUSED);
    twins->refused_of[game->refusal.kind]++;
    if (game->refusal.kind != GAME_REFUSED_NOT) {
        game_refusal_encode(twins->outcomes[at].bytes, &twins->outcomes[at].size, &game->refusal);
    }
    sql(twins, "ROLLBACK TO move; RELEASE move");
    return (struct twins_outcome){.refusal = game->refusal};
}

/* ---- the contracts' side ------------------------------------------------------- */

static json_t *play_on_contracts(struct twins *twins)
{
    size_t room = twins->script.size + 256;
    uint8_t *bytes = malloc(room);
    char *data = malloc(2 * room + 3);
    struct byte_writer writer;
    json_t *receipt;
    size_t base;
    size_t place;

    assert_non_null(bytes);
    assert_non_null(data);
    assert_int_equal(twins->script.status, STATUS_OK);
    byte_writer_init(&writer, bytes, room);
    abi_put_selector(&writer, "play(bytes)");
    base = writer.used;
    place = abi_put_offset(&writer);
    abi_set_offset(&writer, place, base);
    abi_put_blob(&writer, twins->script.data, twins->script.size);
    assert_int_equal(byte_writer_finish(&writer), STATUS_OK);
    hex_write(data, bytes, writer.used, true);
    receipt = anvil_send(twins->rpc, 0, &twins->driver, data, "0x8ac7230489e80000"); /* 10 ether */
    free(bytes);
    free(data);
    return receipt;
}

/* The log's data lie in data, which has GAME_LOG_SIZE_MAX. */
static void read_log(struct game_log *log, uint8_t *data, const json_t *entry)
{
    const json_t *topics = json_object_get(entry, "topics");

    memset(log, 0, sizeof(*log));
    log->topic_count = (uint32_t)json_array_size(topics);
    assert_true(log->topic_count <= GAME_TOPICS_MAX);
    for (uint32_t i = 0; i < log->topic_count; i++) {
        assert_int_equal(rpc_value_hash(&log->topics[i], json_array_get(topics, i), "topic", NULL),
                         STATUS_OK);
    }
    log->data.bytes = data;
    assert_int_equal(rpc_value_data(data, GAME_LOG_SIZE_MAX, &log->data.size,
                                    json_object_get(entry, "data"), "data", NULL),
                     STATUS_OK);
}

static void check_outcome(const struct twins *twins, const struct game_log *log, uint32_t at)
{
    struct abi_reader reader;
    const uint8_t *result;
    size_t size;
    bool done;

    abi_reader_init(&reader, log->data.bytes, log->data.size);
    assert_int_equal(abi_get_bool(&reader, &done), STATUS_OK);
    assert_int_equal(abi_get_blob(&reader, &result, &size), STATUS_OK);
    if (done != twins->outcomes[at].done || size != twins->outcomes[at].size ||
        (size > 0 && memcmp(result, twins->outcomes[at].bytes, size) != 0)) {
        struct game_refusal theirs;
        struct game_refusal ours;

        game_refusal_decode(&theirs, result, size);
        game_refusal_decode(&ours, twins->outcomes[at].bytes, twins->outcomes[at].size);
        fail_msg("move %u (%s): the contract %s \"%s\" %llu, the embedded ledger %s \"%s\" %llu",
                 at, game_move_name(twins->outcomes[at].kind), done ? "did it" : "refused",
                 game_refusal_text(theirs.kind), (unsigned long long)theirs.number,
                 twins->outcomes[at].done ? "did it" : "refused", game_refusal_text(ours.kind),
                 (unsigned long long)ours.number);
    }
}

/* The sums of the embedded side: what each is owed, and what must lie in the contract. */
static void check_balances(struct twins *twins, const struct game_log *log, wei promised)
{
    struct abi_reader reader;
    struct uint256 held;
    wei contract = 0;
    wei sum = 0;

    abi_reader_init(&reader, log->data.bytes, log->data.size);
    assert_int_equal(abi_get_uint256(&reader, &held), STATUS_OK);
    for (uint32_t i = 0; i < TWINS_PLAYERS; i++) {
        const struct hash32 key = local_key_of_account(&twins->players[i]);
        struct local_account account;
        struct uint256 owed;
        struct uint256 ours;

        assert_int_equal(abi_get_uint256(&reader, &owed), STATUS_OK);
        assert_int_equal(local_get(&twins->store, &account, LOCAL_ACCOUNT, &key, 0), STATUS_OK);
        ours = wei_to_uint256(account.owed);
        assert_int_equal(uint256_compare(&owed, &ours), 0);
        sum += account.owed;
    }
    assert_true(wei_from_uint256(&contract, &held));
    assert_true(contract == twins->paid_in - twins->paid_out);
    assert_true(contract == sum + promised);
}

static void compare_log(const struct twins *twins, const struct game_log *log, uint32_t at)
{
    const struct game_log *ours = &twins->logs[at];

    assert_true(at < twins->log_count);
    assert_int_equal(log->topic_count, ours->topic_count);
    assert_memory_equal(log->topics, ours->topics, sizeof(log->topics));
    assert_int_equal(log->data.size, ours->data.size);
    assert_memory_equal(log->data.bytes, ours->data.bytes, log->data.size);
}

uint64_t twins_compare(struct twins *twins, wei promised)
{
    const struct hash32 outcome = keccak256("Outcome(bool,bytes)", strlen("Outcome(bool,bytes)"));
    json_t *receipt = play_on_contracts(twins);
    const json_t *logs = json_object_get(receipt, "logs");
    uint32_t at_log = 0;
    uint32_t at_move = 0;
    uint64_t gas = 0;
    size_t count = json_array_size(logs);

    for (size_t i = 0; i < count; i++) {
        uint8_t data[GAME_LOG_SIZE_MAX];
        struct game_log log;

        read_log(&log, data, json_array_get(logs, i));
        if (i + 1 == count) {
            check_balances(twins, &log, promised);
        } else if (hash32_equal(&log.topics[0], &outcome)) {
            uint32_t until = at_move + 1 < twins->outcome_count
                                 ? twins->outcomes[at_move + 1].logs_before
                                 : twins->log_count;

            check_outcome(twins, &log, at_move);
            assert_int_equal(at_log, until);
            at_move++;
        } else {
            compare_log(twins, &log, at_log++);
        }
    }
    assert_int_equal(at_log, twins->log_count);
    assert_int_equal(at_move, twins->outcome_count);
    assert_int_equal(rpc_field_u64(&gas, receipt, "gasUsed", NULL), STATUS_OK);
    json_decref(receipt);
    forget_played(twins);
    return gas;
}

/* ---- making them ---------------------------------------------------------------- */

static void open_store(struct twins *twins)
{
    assert_int_equal(database_open(&twins->sql, ":memory:", "", &twins->error), STATUS_OK);
    assert_int_equal(local_store_open(&twins->store, &twins->sql, &twins->error), STATUS_OK);
}

static void close_store(struct twins *twins)
{
    database_close(&twins->sql);
}

static struct address read_player(const struct twins *twins, uint32_t number)
{
    char to[ADDRESS_TEXT_SIZE];
    char data[80];
    uint8_t word[ABI_WORD_SIZE];
    struct abi_reader reader;
    struct address address;
    json_t *result;
    size_t size;

    address_print(to, &twins->driver);
    (void)snprintf(data, sizeof(data), "0x%08x%064x", abi_selector("players(uint256)"), number);
    result = anvil_call(twins->rpc, "eth_call",
                        json_pack("[{s:s, s:s}, s]", "to", to, "data", data, "latest"));
    assert_int_equal(rpc_value_data(word, sizeof(word), &size, result, "player", NULL), STATUS_OK);
    json_decref(result);
    abi_reader_init(&reader, word, size);
    assert_int_equal(abi_get_address(&reader, &address), STATUS_OK);
    return address;
}

static void stop_chain(struct twins *twins)
{
    if (twins->anvil != NULL) {
        rpc_free(twins->rpc);
        anvil_stop(twins->anvil);
    }
}

void twins_restart_chain(struct twins *twins)
{
    static const char *const arguments[] = {"--hardfork", "cancun", "--balance", "1000000000",
                                            NULL};

    stop_chain(twins);
    twins->anvil = anvil_start(arguments);
    twins->rpc = anvil_rpc(twins->anvil);
    memset(&twins->examiner, 0, sizeof(twins->examiner));
    twins->driver = anvil_deploy(twins->rpc, 0, DRIVER_CODE, NULL, "0x0");
    for (uint32_t i = 0; i < TWINS_PLAYERS; i++) {
        twins->players[i] = read_player(twins, i);
    }
}

void twins_open_embedded(struct twins *twins)
{
    memset(twins, 0, sizeof(*twins));
    error_init(&twins->error);
    buffer_init(&twins->script, SCRIPT_SIZE_MAX);
    open_store(twins);
    for (uint32_t i = 0; i < TWINS_PLAYERS; i++) {
        twins->players[i].bytes[0] = (uint8_t)(i + 1);
    }
    twins->game = calloc(1, sizeof(*twins->game));
    assert_non_null(twins->game);
}

void twins_new_store(struct twins *twins)
{
    close_store(twins);
    open_store(twins);
    twins->paid_in = 0;
    twins->paid_out = 0;
    memset(twins->paid_in_by, 0, sizeof(twins->paid_in_by));
    memset(twins->paid_out_of, 0, sizeof(twins->paid_out_of));
}

void twins_open(struct twins *twins)
{
    twins_open_embedded(twins);
    twins_restart_chain(twins);
}

void twins_open_direct(struct twins *twins)
{
    json_t *accounts;

    twins_open_embedded(twins);
    twins->direct = true;
    twins->anvil = anvil_start(NULL);
    twins->rpc = anvil_rpc(twins->anvil);
    accounts = anvil_call(twins->rpc, "eth_accounts", json_array());
    for (uint32_t i = 0; i < TWINS_PLAYERS; i++) {
        assert_int_equal(
            address_parse(&twins->players[i], json_string_value(json_array_get(accounts, i))),
            STATUS_OK);
    }
    json_decref(accounts);
}

void twins_close(struct twins *twins)
{
    forget_played(twins);
    buffer_release(&twins->script);
    close_store(twins);
    free(twins->game);
    stop_chain(twins);
}

static void start_registry(struct twins *twins, const struct address *registry)
{
    uint8_t bytes[ABI_SELECTOR_SIZE + 2 * ABI_WORD_SIZE];
    char data[2 * sizeof(bytes) + 3];
    struct byte_writer writer;

    twins->registry = *registry;
    twins->place = anvil_place(twins->rpc, registry);
    if (!twins->direct) {
        byte_writer_init(&writer, bytes, sizeof(bytes));
        abi_put_selector(&writer, "use(address,address)");
        abi_put_address(&writer, registry);
        abi_put_address(&writer, &twins->referee);
        hex_write(data, bytes, writer.used, true);
        json_decref(anvil_send(twins->rpc, 0, &twins->driver, data, "0x0"));
    }
    twins_new_store(twins);
}

void twins_new_court(struct twins *twins)
{
    struct address arguments[2] = {{{0}}}; /* the examiner, and the chain's coin */
    struct address registry;

    if (address_is_zero(&twins->examiner)) {
        twins->examiner = anvil_deploy_examiner(twins->rpc, 0);
    }
    arguments[0] = twins->examiner;
    twins->referee = anvil_deploy_with(twins->rpc, 0, HARNESS_REFEREE_CODE, arguments, 2, "0x0");
    registry = address_of_contract(&twins->referee, 2); /* it makes its seeds first */
    start_registry(twins, &registry);
}
