/* simulation.c - see simulation.h: time, weather, the lives of nodes. */
#include "tests/support/node/simulation.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

enum {
    START_S = 1000000,
    BLOCK_MS = 12000,
    ROUNDS_MAX = 24, /* of one node in one step */
    ROUND_CALLS = 60,
    STORMS = 5,
    STORM_STEPS = 25,
    STORM_STEP_MS = 12000, /* at most: a storm is shorter than any period of the game */
    CALM_S = 700,
    DOWN_MS = 60000,
    END_S = 60000,
    FAIR_EVERY = 4, /* of those that are watched */
    WATCHED_EVERY = 2,
    FORSAKEN_EVERY = 5,
    HIDDEN_EVERY = 7,
    HIDDEN_ENTRIES = 5, /* of a node, where a panel must have more than ten */
    CAPTURED_EVERY = 6, /* of those that are watched: an outsider must claim there */
};

bool simulation_chance(uint64_t *random, uint32_t percent)
{
    return test_random_below(random, 100) < percent;
}

static bool chance(struct simulation *simulation, uint32_t percent)
{
    return simulation_chance(&simulation->random, percent);
}

static uint64_t below(struct simulation *simulation, uint64_t limit)
{
    return test_random_below(&simulation->random, limit);
}

static void tell(struct simulation *simulation, const char *format, va_list list)
{
    if (simulation->log != NULL) {
        fprintf(simulation->log, "%8.1f #%-4" PRIu64 " ",
                (double)(simulation->now_ms - (uint64_t)START_S * 1000) / 1000,
                simulation->chain->height);
        (void)vfprintf(simulation->log, format, list);
        fputc('\n', simulation->log);
    }
}

void simulation_show(struct simulation *simulation, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    tell(simulation, format, list);
    va_end(list);
}

void simulation_wrong(struct simulation *simulation, const char *format, ...)
{
    char *wrong = simulation->result->wrong;
    va_list list;

    if (wrong[0] == '\0') {
        va_start(list, format);
        (void)vsnprintf(wrong, SIMULATION_WRONG_MAX, format, list);
        va_end(list);
        simulation_show(simulation, "WRONG: %s", wrong);
    }
}

static bool is_well(const struct simulation *simulation)
{
    return simulation->result->wrong[0] == '\0';
}

/* ---- children ------------------------------------------------------------------- */

static enum virtual_answer choose_answer(void *context, uint64_t *takes_ms,
                                         const struct check_request *request)
{
    struct simulation *simulation = ((struct simulation_node *)context)->simulation;
    uint64_t luck = below(simulation, 100);

    (void)request;
    *takes_ms = below(simulation, simulation->storm ? 20000 : 8000);
    if (simulation->withheld) {
        return ANSWER_LIES; /* somebody answers, and has it not */
    }
    if (!simulation->storm) {
        return ANSWER_TRUTH;
    }
    if (simulation->data_is_away) {
        return luck < 30 ? ANSWER_LIES : ANSWER_SILENCE;
    }
    return luck < 20 ? ANSWER_NOTHING : luck < 30 ? ANSWER_LIES : ANSWER_TRUTH;
}

/* ---- the life of a node ------------------------------------------------------------ */

static uint64_t node_now(void *context)
{
    return ((const struct simulation_node *)context)->simulation->now_ms;
}

/* The secret of an empty database is drawn from the seed, so that a seed gives the same life. */
static enum status give_secret(struct simulation_node *player, struct error *error)
{
    const uint64_t words[2] = {player->simulation->seed, player->number};
    struct hash32 hash = keccak256(words, sizeof(words));
    char text[HEX_SIZE(HASH32_SIZE)];
    uint64_t added = 0;
    json_t *view = NULL;
    enum status status;

    TRY_OUT(verdict_db_export(&view, player->verdicts, error));
    if (json_array_size(json_object_get(view, "verdicts")) == 0 &&
        json_array_size(json_object_get(view, "seals")) == 0) {
        hex_encode(text, hash.bytes, HASH32_SIZE);
        (void)json_object_set_new(view, "secret", json_string(text));
        status = verdict_db_import(&added, player->verdicts, view, error);
    }
out:
    json_decref(view);
    return status;
}

static void close_node(struct simulation_node *player)
{
    node_close(&player->node);
    store_close(&player->store);
    verdict_db_close(player->verdicts);
    player->verdicts = NULL;
    virtual_checks_die(&player->checks);
    player->up = false;
}

static enum status open_files(struct simulation_node *player, struct error *error)
{
    struct node_ports ports = {.ledger = &player->ledger.ledger,
                               .store = &player->store,
                               .checks = virtual_checks_port(&player->checks),
                               .now_ms = node_now,
                               .clock = player};

    TRY(verdict_db_open(&player->verdicts, player->verdicts_path, error));
    TRY(give_secret(player, error));
    TRY(store_open(&player->store, player->store_path, STORE_WRITE, error));
    ports.verdicts = player->verdicts;
    ports.log = player->simulation->log == NULL ? NULL : &player->simulation->nodes_log;
    return node_open(&player->node, &player->options, &ports, error);
}

/* The process is gone; what is on the disk stays, or what was synced of it. */
static void bury(struct simulation_node *player)
{
    struct simulation *simulation = player->simulation;
    const bool power_fails = chance(simulation, 40);

    simulation->fate.dead = true;
    close_node(player);
    virtual_disk_restart(simulation->disk, player->folder, power_fails);
    simulation->fate = (struct fate){0};
    simulation->result->deaths++;
    simulation->result->power_failures += power_fails;
    player->down_until_ms =
        simulation->now_ms + (simulation->storm ? below(simulation, DOWN_MS) : 0);
    if (chance(simulation, 6)) {
        virtual_disk_lose(simulation->disk, player->store_path);
        simulation->result->stores_lost++;
        simulation_show(simulation, "node %u loses its database", player->number);
    }
    simulation_show(simulation, "node %u dies%s", player->number,
                    power_fails ? ", and the power fails" : "");
}

static void start_node(struct simulation_node *player)
{
    struct simulation *simulation = player->simulation;
    struct error error;
    enum status status;

    error_init(&error);
    memset(&player->store, 0, sizeof(player->store));
    memset(&player->node, 0, sizeof(player->node));
    status = open_files(player, &error);
    player->up = status == STATUS_OK && !simulation->fate.dead;
    if (simulation->fate.dead) {
        bury(player);
    } else if (status != STATUS_OK) {
        simulation_wrong(simulation, "node %u does not start: %s", player->number, error.text);
        close_node(player);
    }
}

/* As the loop of `verifier node`: at once while there is work, and after a pause when it failed. */
static void run_node(struct simulation_node *player)
{
    struct simulation *simulation = player->simulation;
    bool busy = true;

    for (int i = 0; i < ROUNDS_MAX && busy && player->up; i++) {
        struct error error;
        enum status status;

        error_init(&error);
        busy = false;
        simulation->result->rounds++;
        status = node_round(&player->node, &busy, &error);
        if (simulation->fate.dead) {
            bury(player);
            return;
        }
        if (status != STATUS_OK) {
            simulation_wrong(simulation, "a round of node %u fails: %s", player->number,
                             error.text);
        }
    }
    if (player->node.fault) {
        simulation_wrong(simulation, "node %u finds a fault in a machine that has none",
                         player->number);
    }
}

static void step_node(struct simulation_node *player)
{
    struct simulation *simulation = player->simulation;

    player->checks.now_ms = simulation->now_ms;
    player->ledger.now_s = simulation->now_ms / 1000;
    if (simulation->storm && chance(simulation, 4)) {
        simulation->fate.left = 1 + below(simulation, (uint64_t)ROUND_CALLS * 2);
        simulation->fate.last_counts = chance(simulation, 50);
    }
    if (!player->up && simulation->now_ms >= player->down_until_ms) {
        start_node(player);
    }
    if (player->up) {
        run_node(player);
    }
    simulation->fate = (struct fate){0};
}

/* ---- weather ---------------------------------------------------------------------- */

static void begin_calm(struct simulation *simulation)
{
    simulation->storm = false;
    simulation->data_is_away = false;
    for (uint32_t i = 0; i < SIMULATION_NODES; i++) {
        struct simulation_node *player = &simulation->nodes[i];

        player->ledger.unreachable = player->ledger.lags = false;
        player->ledger.bad_percent = player->ledger.refusing_percent = 0;
        player->down_until_ms = 0;
    }
    simulation_show(simulation, "calm");
}

static void reorganize(struct simulation *simulation)
{
    if (simulation->depth > 0) {
        const bool deep = below(simulation, 4) == 0; /* what was final is taken back too */
        const uint64_t depth = 1 + below(simulation, simulation->depth + (deep ? 8 : 0));

        simulation_show(simulation, "%" PRIu64 " blocks are taken back", depth);
        virtual_chain_reorganize(simulation->chain, depth);
        simulation->result->reorganizations++;
    }
}

static void disturb(struct simulation *simulation)
{
    struct virtual_ledger *ledger = &simulation->nodes[below(simulation, SIMULATION_NODES)].ledger;

    switch (below(simulation, 12)) {
    case 0:
        ledger->unreachable = !ledger->unreachable;
        break;
    case 1:
        ledger->bad_percent = (uint32_t)below(simulation, 3) * 20; /* of its requests are lost */
        break;
    case 2:
        ledger->refusing_percent = (uint32_t)below(simulation, 3) * 20;
        break;
    case 3:
        ledger->lags = !ledger->lags;
        break;
    case 4:
        reorganize(simulation);
        break;
    case 5:
        simulation->data_is_away = !simulation->data_is_away;
        break;
    default:
        break;
    }
}

/* ---- time --------------------------------------------------------------------------- */

/* A ledger without forks has a block for each move, and others as time goes by. */
static void mine(struct simulation *simulation)
{
    bool instant = simulation->depth == 0;

    if (!instant && simulation->now_ms < simulation->mined_ms + BLOCK_MS) {
        return;
    }
    simulation->mined_ms = simulation->now_ms;
    virtual_chain_mine(simulation->chain, simulation->now_ms / 1000,
                       simulation->storm && !instant ? 40 : 100);
}

static void step(struct simulation *simulation, uint64_t ms)
{
    simulation->now_ms += ms;
    if (simulation->storm) {
        disturb(simulation);
    }
    mine(simulation);
    for (uint32_t i = 0; i < SIMULATION_PLAYERS; i++) {
        simulation->players[i].now_s = simulation->now_ms / 1000;
    }
    simulation_play(simulation);
    for (uint32_t i = 0; i < SIMULATION_NODES && is_well(simulation); i++) {
        step_node(&simulation->nodes[i]);
    }
    simulation_judge(simulation);
    simulation->result->steps++;
}

static void pass_storm(struct simulation *simulation)
{
    simulation->storm = true;
    for (uint64_t left = 5 + below(simulation, STORM_STEPS); left > 0 && is_well(simulation);
         left--) {
        step(simulation, 1 + below(simulation, STORM_STEP_MS));
    }
}

/* Nothing is under way: the next thing that happens comes with time. */
static bool is_idle(const struct simulation *simulation)
{
    bool idle = true;

    for (uint32_t i = 0; i < SIMULATION_NODES; i++) {
        idle = idle && simulation->nodes[i].up &&
               virtual_checks_are_idle(&simulation->nodes[i].checks) &&
               !virtual_ledger_is_waiting(&simulation->nodes[i].ledger);
    }
    return idle;
}

static void pass_calm(struct simulation *simulation, uint64_t seconds)
{
    uint64_t end_ms = simulation->now_ms + seconds * 1000;
    char what[SIMULATION_WAIT_MAX];

    begin_calm(simulation);
    while (simulation->now_ms < end_ms && is_well(simulation) &&
           simulation_waits_for(what, simulation)) {
        step(simulation, is_idle(simulation) ? 12000 + below(simulation, 12000)
                                             : 6000 + below(simulation, 6000));
    }
}

/* ---- a life --------------------------------------------------------------------------- */

/* The second claims only. In some lives the first looks at everything, and others at some; else
 * only panels look. */
static void invent_options(struct simulation_node *player)
{
    static const char *const mirrors[] = {"http://one.example", "http://two.example"};
    struct simulation *simulation = player->simulation;
    struct node_options *options = &player->options;
    uint64_t luck = below(simulation, 10);

    *options = (struct node_options){.mode = NODE_ACT,
                                     .mirrors = mirrors,
                                     .mirror_count = 2,
                                     .cache = player->cache,
                                     .memory_max = 1 << 30,
                                     .disk_max = 1 << 30,
                                     .mirror_timeout_s = 10,
                                     .check_time_s = 60,
                                     .threads = 1};
    if (player->number > 1) {
        options->mode = luck == 0 ? NODE_OBSERVE : luck < 3 ? NODE_DEFEND : NODE_ACT;
    } else if (player->number == 1) {
        options->mode = NODE_DEFEND;
    }
    options->extra = (double)below(simulation, 3) / 2;
    if (simulation->seed % WATCHED_EVERY != 0) {
        options->extra = 0; /* who holds a seat raises the alarm then: nobody claims before */
    } else if (player->number == 0) {
        options->extra = 1;
    }
    options->entries = 1 + (uint32_t)below(simulation, 2);
    if (simulation->hidden) {
        options->mode = NODE_ACT;
        options->entries = HIDDEN_ENTRIES;
    }
    options->checks_max = 1 + (uint32_t)below(simulation, 3);
    options->reach = (uint32_t)below(simulation, SIMULATION_SEGMENTS);
    options->withdraw_at = chance(simulation, 30) ? WEI_PER_ETHER / 10 : 0;
    options->grace_s = simulation->forsaken ? 30 : 200;
}

static void place(char path[FILE_PATH_MAX], const char *folder, const char *name)
{
    struct error error;

    error_init(&error);
    if (file_path_join(path, FILE_PATH_MAX, &error, folder, name) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
}

static void found_node(struct simulation *simulation, uint32_t number, uint64_t ledger_seed)
{
    struct simulation_node *player = &simulation->nodes[number];
    struct error error;
    char name[64];

    error_init(&error);
    player->simulation = simulation;
    player->number = number;
    virtual_ledger_init(&player->ledger, simulation->chain, &simulation->fate, &player->account,
                        (uint32_t)simulation->depth, ledger_seed);
    player->checks.fate = &simulation->fate;
    player->checks.random = test_random(&simulation->random);
    player->checks.choose = choose_answer;
    player->checks.context = player;
    (void)snprintf(name, sizeof(name), "%" PRIu64 "-%u", simulation->seed, number);
    place(player->folder, test_temp_dir(), name);
    place(player->cache, player->folder, "cache");
    place(player->verdicts_path, player->folder, "verdicts.db");
    place(player->store_path, player->folder, "node.db");
    if (file_make_folder(player->cache, &error, 0700) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
    invent_options(player);
}

static struct address account_of(struct simulation *simulation, uint64_t number)
{
    const uint64_t words[2] = {number, simulation->seed};
    struct hash32 hash = keccak256(words, sizeof(words));
    struct address account;

    memcpy(account.bytes, hash.bytes, ADDRESS_SIZE);
    virtual_chain_enrich(simulation->chain, &account);
    simulation->paid_in += VIRTUAL_PURSE;
    return account;
}

static void found(struct simulation *simulation)
{
    static const uint64_t depths[] = {0, 2, 5};

    simulation->depth = depths[below(simulation, 3)];
    simulation->disk = virtual_disk_new(&simulation->fate, &simulation->disk_random);
    simulation->chain = virtual_chain_new(test_random(&simulation->random), START_S);
    simulation->chain->is_false = virtual_is_false;
    for (uint32_t i = 0; i < SIMULATION_NODES; i++) {
        simulation->nodes[i].account = account_of(simulation, i);
        found_node(simulation, i, test_random(&simulation->random));
    }
    for (uint32_t i = 0; i < SIMULATION_PLAYERS; i++) {
        simulation->accounts[i] = account_of(simulation, SIMULATION_NODES + i);
        virtual_ledger_init(&simulation->players[i], simulation->chain, &simulation->never,
                            &simulation->accounts[i], (uint32_t)simulation->depth,
                            test_random(&simulation->random));
    }
}

static void end(struct simulation *simulation)
{
    for (uint32_t i = 0; i < SIMULATION_NODES; i++) {
        if (simulation->nodes[i].up) {
            close_node(&simulation->nodes[i]);
        }
        virtual_ledger_release(&simulation->nodes[i].ledger);
        folder_remove(simulation->nodes[i].folder);
    }
    for (uint32_t i = 0; i < SIMULATION_PLAYERS; i++) {
        virtual_ledger_release(&simulation->players[i]);
    }
    for (uint32_t i = 0; i < simulation->job_count; i++) {
        job_record_free(&simulation->jobs[i].record);
    }
    virtual_chain_free(simulation->chain);
    virtual_disk_free(simulation->disk);
}

void simulation_run(struct simulation_result *result, uint64_t seed, FILE *log)
{
    struct simulation *simulation = calloc(1, sizeof(*simulation));

    assert(simulation != NULL);
    memset(result, 0, sizeof(*result));
    simulation->seed = seed;
    simulation->random = seed;
    simulation->players_random = seed ^ UINT64_C(0x9e3779b97f4a7c15);
    simulation->disk_random = seed ^ UINT64_C(0xd1b54a32d192ed03);
    simulation->log = log;
    simulation->result = result;
    log_init(&simulation->nodes_log, log, LOG_LEVEL_INFO, LOG_FORMAT_PLAIN);
    simulation->fair = seed % FAIR_EVERY == 0;
    simulation->forsaken = seed % FORSAKEN_EVERY == 0;
    simulation->hidden = seed % HIDDEN_EVERY == 0;
    simulation->captured = seed % CAPTURED_EVERY == 0 && !simulation->hidden;
    simulation->now_ms = (uint64_t)START_S * 1000;
    found(simulation);
    simulation_invent_jobs(simulation);
    for (int i = 0; i < STORMS && is_well(simulation) && !simulation->fair; i++) {
        pass_storm(simulation);
        pass_calm(simulation, CALM_S);
    }
    pass_calm(simulation, END_S);
    simulation_judge_end(simulation);
    result->moves = simulation->chain->move_count;
    result->transcript = simulation->chain->blocks[simulation->chain->height].hash;
    end(simulation);
    free(simulation);
}
