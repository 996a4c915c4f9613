/*
 * Goal: no endpoint can make a reader of the ledger believe an event that was not, or miss one
 * that was.
 * Method: an endpoint in front of anvil that lies in one way at a time: alone among three, where it
 * must change nothing; one of two, where nothing may be believed; and the only one, lying for a
 * while.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/contracts/compiled/referee_code.h"
#include "chain/evm/evm.h"
#include "chain/evm/evm_index.h"
#include "chain/game/event_log.h"
#include "tests/support/folder.h"
#include "tests/support/game/anvil.h"
#include "tests/support/game/rpc_server.h"

enum lie {
    LIE_NOT,
    LIE_NO_LOGS,    /* as if nothing had happened */
    LIE_MORE_LOGS,  /* every log twice */
    LIE_OTHER_LOGS, /* one bit of the data */
    LIE_OLD_HEAD,   /* lags behind for ever */
    LIE_FUTURE_HEAD,
    LIE_OTHER_BLOCKS, /* another history */
    LIE_NO_BLOCKS,
    LIE_GARBAGE,
    LIE_OTHER_TIME, /* of a block, whose hash is right */
    /* Replies about something else than the query: */
    LIE_OTHER_HEIGHT,
    LIE_LOGS_OF_OTHERS,
    LIE_LOGS_OF_ANOTHER_BLOCK,
    LIE_REMOVED_LOGS,
    LIE_OTHER_RECEIPT,
    LIE_OTHER_PLACE, /* of a log in its block: nothing proves it */
    LIES,
};

/* Where the event OPENED has what: terms, then the offset and the size of a contact. */
enum {
    OTHERS = 8000, /* events of a ledger, */
    OPENINGS = 8,  /* ... and jobs among them */
    TERMS_WORDS = 24,
    SOLVERS_WORD = 15,
    VERIFIERS_WORD = 16,
};

enum {
    EVENTS = 5,
};

struct liar {
    struct rpc *rpc; /* of the chain that it stands before */
    enum lie lie;
    struct evm_index *other; /* NULL, or who does a round before the first logs are told */
};

struct world {
    struct anvil *anvil;
    struct rpc *rpc;
    struct address referee; /* seals are its events */
};

/* Something happens: a seal of that number. */
static void happen(struct world *world, uint8_t number)
{
    struct game_move move = {.kind = GAME_SEAL_CLAIM};
    uint8_t bytes[GAME_MOVE_SIZE_MAX];
    char data[2 * GAME_MOVE_SIZE_MAX + 3];
    size_t size;

    memset(move.seal.bytes, number, HASH32_SIZE);
    game_move_encode(bytes, &size, &move);
    for (size_t i = 0; i < size; i++) {
        (void)snprintf(data + 2 + 2 * i, 3, "%02x", bytes[i]);
    }
    memcpy(data, "0x", 2);
    json_decref(anvil_send(world->rpc, 1, &world->referee, data, "0x0"));
}

static void set_up(struct world *world)
{
    static const struct address nobody[3];

    world->anvil = anvil_start(NULL);
    world->rpc = anvil_rpc(world->anvil);
    world->referee = anvil_deploy_with(world->rpc, 0, REFEREE_CODE, nobody, 3, "0x0");
    for (uint32_t i = 1; i <= EVENTS; i++) {
        happen(world, (uint8_t)i);
    }
}

static void tear_down(struct world *world)
{
    rpc_free(world->rpc);
    anvil_stop(world->anvil);
}

/* ---- the liar ----------------------------------------------------------------- */

static void flip(json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    char *changed = text == NULL ? NULL : strdup(text);

    if (changed != NULL && strlen(changed) > 2) {
        changed[strlen(changed) - 1] = changed[strlen(changed) - 1] == '0' ? '1' : '0';
        (void)json_object_set_new(object, key, json_string(changed));
    }
    free(changed);
}

/* Changes the first of the logs, if there is one. */
static void distort_log(json_t *logs, enum lie lie)
{
    json_t *entry = json_array_get(logs, 0);

    if (entry == NULL) {
        return;
    }
    if (lie == LIE_LOGS_OF_OTHERS) {
        flip(entry, "address");
    } else if (lie == LIE_LOGS_OF_ANOTHER_BLOCK) {
        flip(entry, "blockHash");
    } else if (lie == LIE_OTHER_PLACE) {
        flip(entry, "logIndex");
    } else if (lie == LIE_REMOVED_LOGS) {
        (void)json_object_set_new(entry, "removed", json_true());
    }
}

static json_t *distort(json_t *truth, enum lie lie, const char *method)
{
    const bool logs = strcmp(method, "eth_getLogs") == 0;
    const bool block = strcmp(method, "eth_getBlockByNumber") == 0;
    const bool head = strcmp(method, "eth_blockNumber") == 0;
    const bool receipt = strcmp(method, "eth_getTransactionReceipt") == 0;

    if (logs) {
        distort_log(truth, lie);
    }
    if (logs && lie == LIE_NO_LOGS) {
        (void)json_array_clear(truth);
    } else if (logs && lie == LIE_MORE_LOGS) {
        json_t *copy = json_deep_copy(truth);

        (void)json_array_extend(truth, copy);
        json_decref(copy);
    } else if (logs && lie == LIE_OTHER_LOGS && json_array_size(truth) > 0) {
        json_t *topics = json_object_get(json_array_get(truth, 0), "topics");

        (void)json_array_set_new(topics, json_array_size(topics) - 1,
                                 json_string("0x11111111111111111111111111111111111111111111111111"
                                             "11111111111111"));
    } else if (head && lie == LIE_OLD_HEAD) {
        (void)json_string_set(truth, "0x1");
    } else if (head && lie == LIE_FUTURE_HEAD) {
        (void)json_string_set(truth, "0xffffff");
    } else if (block && lie == LIE_OTHER_BLOCKS) {
        flip(truth, "hash");
        flip(truth, "parentHash");
    } else if (block && lie == LIE_OTHER_TIME) {
        flip(truth, "timestamp");
    } else if (block && lie == LIE_OTHER_HEIGHT) {
        flip(truth, "number");
    } else if (receipt && lie == LIE_OTHER_RECEIPT) {
        flip(truth, "transactionHash");
    } else if (block && lie == LIE_NO_BLOCKS) {
        json_decref(truth);
        return json_null();
    } else if (lie == LIE_GARBAGE) {
        json_decref(truth);
        return json_string("0xzz");
    }
    return truth;
}

static int answer(char *reply, int reply_size, const char *request, void *context)
{
    struct liar *liar = context;
    json_t *queried = json_loads(request, 0, NULL);
    const char *method = json_string_value(json_object_get(queried, "method"));
    json_t *truth = NULL;
    enum status status;
    int size;

    if (liar->other != NULL && strcmp(method, "eth_getLogs") == 0) {
        assert_int_equal(evm_index_work(liar->other, NULL), STATUS_OK);
        liar->other = NULL;
    }
    status =
        rpc_call(liar->rpc, &truth, method, json_incref(json_object_get(queried, "params")), NULL);
    size = rpc_server_write(reply, reply_size, queried,
                            status == STATUS_OK ? distort(truth, liar->lie, method) : NULL);

    json_decref(queried);
    return size;
}

/* ---- reading ------------------------------------------------------------------ */

static struct rpc *rpc_of(const char *const *urls, size_t count)
{
    struct rpc_options options;
    struct rpc *rpc;

    rpc_options_init(&options);
    options.urls = urls;
    options.url_count = count;
    options.rounds_max = 1;
    options.timeout_ms = 60000;
    rpc = rpc_new(&options, NULL);
    assert_non_null(rpc);
    return rpc;
}

/* How many true events the event log holds; a false one fails the test. */
static uint32_t count_true(struct database *sql)
{
    struct ledger_entry entry = {0};
    uint8_t payload[GAME_LOG_SIZE_MAX];
    uint32_t count = 0;

    while (event_log_next(sql, &entry, payload, entry.number, UINT64_MAX, NULL, NULL) ==
           STATUS_OK) {
        struct hash32 expected;

        if (entry.kind == LEDGER_REWIND) {
            count = 0; /* the plays here rewind to the beginning or not at all */
            continue;
        }
        assert_int_equal(entry.event.kind, GAME_SEALED);
        memset(expected.bytes, (int)++count, HASH32_SIZE);
        assert_true(hash32_equal(&entry.event.seal, &expected));
    }
    return count;
}

static void open_index(struct evm_index *index, struct database *sql, struct rpc *rpc,
                       const struct world *world)
{
    assert_int_equal(database_open(sql, ":memory:", EVENT_LOG_SCHEMA, NULL), STATUS_OK);
    *index = (struct evm_index){
        .sql = sql, .rpc = rpc, .contracts = {world->referee}, .contract_count = 1};
}

static void read_with_a_liar(struct world *world, enum lie lie)
{
    struct liar liar = {anvil_rpc(world->anvil), lie, NULL};
    struct rpc_server *server = rpc_server_start_answering(answer, &liar);
    const char *honest = anvil_url(world->anvil);
    const char *urls[3] = {rpc_server_url(server), honest, honest};
    struct rpc *rpc = rpc_of(urls, 3);
    struct evm_index index;
    struct database sql;
    enum status status;

    open_index(&index, &sql, rpc, world);
    status = evm_index_work(&index, NULL);
    assert_int_equal(status, STATUS_OK);
    assert_int_equal(count_true(&sql), EVENTS);
    database_close(&sql);
    rpc_free(rpc);
    rpc_server_stop(server);
    rpc_free(liar.rpc);
}

static void test_one_liar_of_three_adds_and_hides_nothing(void **state)
{
    struct world world;

    (void)state;
    set_up(&world);
    for (int lie = 0; lie < LIES; lie++) {
        read_with_a_liar(&world, (enum lie)lie);
    }
    tear_down(&world);
}

/* With two endpoints there is no majority. A lie that is found out is not believed, and the other
 * endpoint is; where nobody can tell which of them lies, nothing is believed. */
static void test_of_two_that_differ_a_false_one_is_never_believed(void **state)
{
    struct world world;

    (void)state;
    set_up(&world);
    for (int lie = LIE_NO_LOGS; lie < LIES; lie++) {
        const bool open = lie == LIE_NO_BLOCKS || lie == LIE_OTHER_PLACE;
        struct liar liar = {anvil_rpc(world.anvil), (enum lie)lie, NULL};
        struct rpc_server *server = rpc_server_start_answering(answer, &liar);
        const char *urls[2] = {rpc_server_url(server), anvil_url(world.anvil)};
        struct rpc *rpc = rpc_of(urls, 2);
        struct evm_index index;
        struct database sql;
        struct error error;
        enum status status;

        error_init(&error);
        open_index(&index, &sql, rpc, &world);
        (void)!evm_index_work(&index, NULL); /* up to the first block in which they differ */
        status = evm_index_work(&index, &error);
        assert_int_equal(status, open ? STATUS_UNREACHABLE : STATUS_OK);
        if (open) {
            assert_non_null(strstr(error.text, "the two endpoints disagree"));
            assert_non_null(strstr(error.text, rpc_endpoint_label(rpc, 0)));
            assert_non_null(strstr(error.text, rpc_endpoint_label(rpc, 1)));
            assert_non_null(strstr(error.advice, "third"));
        }
        /* A head that only one has reached is not reached. */
        assert_int_equal(count_true(&sql), open || lie == LIE_OLD_HEAD ? 0 : EVENTS);
        database_close(&sql);
        rpc_free(rpc);
        rpc_server_stop(server);
        rpc_free(liar.rpc);
    }
    tear_down(&world);
}

/* Some transaction of the newest block. */
static struct hash32 newest_transaction(const struct world *world)
{
    json_t *block =
        anvil_call(world->rpc, "eth_getBlockByNumber", json_pack("[s, b]", "latest", 0));
    struct hash32 hash;

    assert_int_equal(rpc_value_hash(&hash,
                                    json_array_get(json_object_get(block, "transactions"), 0),
                                    "hash", NULL),
                     STATUS_OK);
    json_decref(block);
    return hash;
}

/* One endpoint alone cannot be outvoted; but it must answer what it was asked. */
static void test_a_reply_about_something_else_is_refused_with_its_endpoint(void **state)
{
    static const struct {
        enum lie lie;
        const char *sentence;
    } cases[] = {
        {LIE_OTHER_HEIGHT, "eth_getBlockByNumber: false reply: a block of another height"},
        {LIE_LOGS_OF_OTHERS, "eth_getLogs: false reply: a log of another contract"},
        {LIE_LOGS_OF_ANOTHER_BLOCK, "eth_getLogs: false reply: a log of another block"},
        {LIE_REMOVED_LOGS, "eth_getLogs: false reply: a removed log"},
        {LIE_MORE_LOGS, "eth_getLogs: false reply: the same log twice"},
        {LIE_OTHER_RECEIPT, "eth_getTransactionReceipt: false reply: a receipt of another"},
    };
    struct world world;

    (void)state;
    set_up(&world);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct liar liar = {anvil_rpc(world.anvil), cases[i].lie, NULL};
        struct rpc_server *server = rpc_server_start_answering(answer, &liar);
        const char *url = rpc_server_url(server);
        struct rpc *rpc = rpc_of(&url, 1);
        struct hash32 transaction = newest_transaction(&world);
        struct evm_receipt receipt;
        struct evm_index index;
        struct database sql;
        struct error error;

        open_index(&index, &sql, rpc, &world);
        (void)!evm_index_work(&index, NULL); /* up to the first block that it lies about */
        assert_int_equal(cases[i].lie == LIE_OTHER_RECEIPT
                             ? evm_receipt_of(rpc, &receipt, &transaction, &error)
                             : evm_index_work(&index, &error),
                         STATUS_UNREACHABLE);
        assert_non_null(strstr(error.text, cases[i].sentence));
        assert_non_null(strstr(error.text, rpc_endpoint_label(rpc, 0)));
        assert_int_equal(count_true(&sql), cases[i].lie == LIE_OTHER_RECEIPT ? EVENTS : 0);
        database_close(&sql);
        rpc_free(rpc);
        rpc_server_stop(server);
        rpc_free(liar.rpc);
    }
    tear_down(&world);
}

/* The only endpoint hides the newest logs for a while, as one does that lags behind itself: the
 * newest blocks are fetched again, and the event log has them after a rewind. */
static void test_logs_that_come_late_are_added(void **state)
{
    struct world world;
    struct liar liar;
    struct rpc_server *server;
    const char *url;
    struct rpc *rpc;
    struct evm_index index;
    struct ledger_entry entry = {0};
    struct database sql;
    uint8_t payload[GAME_LOG_SIZE_MAX];
    uint32_t events = 0;

    (void)state;
    set_up(&world);
    liar = (struct liar){anvil_rpc(world.anvil), LIE_NOT, NULL};
    server = rpc_server_start_answering(answer, &liar);
    url = rpc_server_url(server);
    rpc = rpc_of(&url, 1);
    open_index(&index, &sql, rpc, &world);
    assert_int_equal(evm_index_work(&index, NULL), STATUS_OK);
    liar.lie = LIE_NO_LOGS;
    happen(&world, EVENTS + 1);
    (void)!evm_index_work(&index, NULL);
    liar.lie = LIE_NOT;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(evm_index_work(&index, NULL), STATUS_OK);
    }
    while (event_log_next(&sql, &entry, payload, entry.number, UINT64_MAX, NULL, NULL) ==
           STATUS_OK) {
        events += entry.kind == LEDGER_EVENT ? 1 : 0;
    }
    assert_int_equal(events, EVENTS + 1);
    database_close(&sql);
    rpc_free(rpc);
    rpc_server_stop(server);
    rpc_free(liar.rpc);
    tear_down(&world);
}

/* A node and a command of one account read into one file at once. */
static void test_two_readers_of_one_event_log_add_each_event_once(void **state)
{
    char folder[FOLDER_PATH_MAX];
    char path[FOLDER_PATH_MAX + 16];
    struct world world;
    struct liar liar;
    struct rpc_server *server;
    const char *url;
    struct rpc *rpc;
    struct database sql[2];
    struct evm_index index[2];

    (void)state;
    folder_make(folder);
    (void)snprintf(path, sizeof(path), "%s/ledger.db", folder);
    set_up(&world);
    liar = (struct liar){anvil_rpc(world.anvil), LIE_NOT, &index[1]};
    server = rpc_server_start_answering(answer, &liar);
    url = rpc_server_url(server);
    rpc = rpc_of(&url, 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(database_open(&sql[i], path, EVENT_LOG_SCHEMA, NULL), STATUS_OK);
        index[i] = (struct evm_index){.sql = &sql[i],
                                      .rpc = i == 0 ? rpc : world.rpc,
                                      .contracts = {world.referee},
                                      .contract_count = 1};
    }
    assert_int_equal(evm_index_work(&index[0], NULL), STATUS_OK);
    assert_null(liar.other); /* which was quicker */
    assert_int_equal(count_true(&sql[0]), EVENTS);
    happen(&world, EVENTS + 1);
    liar.other = &index[1];
    assert_int_equal(evm_index_work(&index[0], NULL), STATUS_OK);
    assert_int_equal(count_true(&sql[0]), EVENTS + 1);
    database_close(&sql[0]);
    database_close(&sql[1]);
    rpc_free(rpc);
    rpc_server_stop(server);
    rpc_free(liar.rpc);
    tear_down(&world);
    folder_remove(folder);
}

static void add_log(struct database *sql, uint64_t height, const struct game_log *log)
{
    struct event_log_block block = {.height = height, .hash = {{(uint8_t)height}}};

    assert_int_equal(event_log_add_block(sql, &block, NULL), STATUS_OK);
    assert_int_equal(event_log_add_log(sql, &block, 0, log, NULL), STATUS_OK);
}

/* Contents that anybody can put on a chain: numbers past ours, cut data, unknown events. They are
 * passed over, and what comes after them is read. */
static void test_absurd_events_are_passed_over(void **state)
{
    struct game_event opened = {.kind = GAME_OPENED};
    struct game_event sealed = {.kind = GAME_SEALED};
    struct ledger_entry entry;
    uint8_t bytes[GAME_LOG_SIZE_MAX];
    struct game_log log;
    struct database sql;
    uint64_t height = 1;

    (void)state;
    assert_int_equal(database_open(&sql, ":memory:", EVENT_LOG_SCHEMA, NULL), STATUS_OK);
    for (size_t word = 4; word < TERMS_WORDS + 2; word++) {   /* each number in turn */
        if (word != SOLVERS_WORD && word != VERIFIERS_WORD) { /* these are roots */
            game_event_encode(&log, bytes, &opened);
            memset(bytes + word * 32, 0xff, 32);
            add_log(&sql, height++, &log);
        }
    }
    for (size_t cut = 0; cut < TERMS_WORDS + 2; cut++) {
        game_event_encode(&log, bytes, &opened);
        log.data.size = 32 * cut;
        add_log(&sql, height++, &log);
    }
    game_event_encode(&log, bytes, &opened);
    log.topics[0].bytes[0] ^= 1; /* an event that is not ours */
    add_log(&sql, height++, &log);
    log.topic_count = 0;
    add_log(&sql, height++, &log);
    assert_int_equal(event_log_next(&sql, &entry, bytes, 0, UINT64_MAX, NULL, NULL),
                     STATUS_NOT_FOUND);
    game_event_encode(&log, bytes, &sealed);
    add_log(&sql, height, &log);
    assert_int_equal(event_log_next(&sql, &entry, bytes, 0, UINT64_MAX, NULL, NULL), STATUS_OK);
    assert_int_equal(entry.event.kind, GAME_SEALED);
    assert_int_equal(entry.height, height);
    database_close(&sql);
}

static int count_thousand(void *context)
{
    ++*(int *)context;
    return 0;
}

/* However many events there are: `job list` reads the openings alone. A voided one is left out. */
static void test_events_of_one_kind_are_found_without_the_others(void **state)
{
    struct game_event opened = {.kind = GAME_OPENED};
    struct game_event sealed = {.kind = GAME_SEALED};
    const struct hash32 topic = game_event_topic(GAME_OPENED);
    struct ledger_entry entry = {0};
    uint8_t bytes[GAME_LOG_SIZE_MAX];
    struct game_log log;
    struct database sql;
    uint64_t height = 1;
    int thousands = 0;
    int found = 0;

    (void)state;
    assert_int_equal(database_open(&sql, ":memory:", EVENT_LOG_SCHEMA EVENT_LOG_TOPICS, NULL),
                     STATUS_OK);
    assert_int_equal(database_begin(&sql, NULL), STATUS_OK);
    for (int i = 0; i < OTHERS; i++) {
        game_event_encode(&log, bytes, i % (OTHERS / OPENINGS) == 0 ? &opened : &sealed);
        add_log(&sql, height++, &log);
    }
    game_event_encode(&log, bytes, &opened);
    add_log(&sql, height, &log);
    assert_int_equal(event_log_rewind(&sql, height - 1, NULL), STATUS_OK);
    assert_int_equal(database_end(&sql, STATUS_OK, NULL), STATUS_OK);
    sqlite3_progress_handler(sql.database, 1000, count_thousand, &thousands);
    while (event_log_next(&sql, &entry, bytes, entry.number, UINT64_MAX, &topic, NULL) ==
           STATUS_OK) {
        assert_int_equal(entry.kind, LEDGER_EVENT);
        assert_int_equal(entry.event.kind, GAME_OPENED);
        found++;
    }
    assert_int_equal(found, OPENINGS);
    assert_in_range(thousands, 0, OPENINGS);
    database_close(&sql);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_liar_of_three_adds_and_hides_nothing),
        cmocka_unit_test(test_of_two_that_differ_a_false_one_is_never_believed),
        cmocka_unit_test(test_a_reply_about_something_else_is_refused_with_its_endpoint),
        cmocka_unit_test(test_logs_that_come_late_are_added),
        cmocka_unit_test(test_two_readers_of_one_event_log_add_each_event_once),
        cmocka_unit_test(test_absurd_events_are_passed_over),
        cmocka_unit_test(test_events_of_one_kind_are_found_without_the_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
