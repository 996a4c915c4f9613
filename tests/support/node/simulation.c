/* simulation.c - time, faults, and the life of the node: see simulation.h. */
#include "tests/support/node/simulation.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hex.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

enum {
    START_S = 1700000000,
    STORMS = 2,
    CALM_S = 460,
    END_S = 2400,
    BLOCK_MS = 12000,
    ROUND_CALLS = 60, /* about what one round calls: when a death is drawn */
    ROUNDS_MAX = 6,   /* without a pause */
    TROUBLE_MS = 3000,
    DAY_MS = 86400000,
    FORSAKEN_EVERY = 4,
};

static uint64_t below(struct simulation *simulation, uint64_t limit)
{
    return test_random_below(&simulation->random, limit);
}

bool simulation_chance(uint64_t *random, uint32_t percent)
{
    return test_random_below(random, 100) < percent;
}

static bool chance(struct simulation *simulation, uint32_t percent)
{
    return simulation_chance(&simulation->random, percent);
}

void simulation_show(struct simulation *simulation, const char *format, ...)
{
    va_list values;
    bool full = simulation->files_are_full;

    if (simulation->log != NULL) {
        simulation_empty_files(simulation); /* the story may be told to a file */
        (void)fprintf(simulation->log, "%7llu.%03llu %s ",
                      (unsigned long long)(simulation->now_ms / 1000 - START_S),
                      (unsigned long long)(simulation->now_ms % 1000),
                      simulation->storm ? "storm" : "calm ");
        va_start(values, format);
        (void)vfprintf(simulation->log, format, values);
        va_end(values);
        (void)fputc('\n', simulation->log);
        (void)fflush(simulation->log);
        if (full) {
            simulation_fill_files(simulation);
        }
    }
}

/* What the node remembers, for whoever looks for the cause. */
static void tell_tables(struct simulation *simulation)
{
    static const char *const queries[] = {
        "SELECT 'segment', hex(job), idx, generation, hex(hash), choice, mine, void, reason FROM"
        " segments",
        "SELECT 'task', hex(job), idx, traced_step, state, outcome, attempts, next_ms, deadline_s,"
        " expiry_s, reason FROM tasks",
        "SELECT 'action', name, state, due_s, late_s, step, tries, trouble FROM actions",
        "SELECT 'claim', hex(key), hex(job), idx, phase, turn, deadline_s, outcome FROM claims",
        "SELECT 'fact', name, value FROM facts"};

    for (size_t i = 0; simulation->log != NULL && simulation->up && i < 5; i++) {
        struct error error;
        sqlite3_stmt *row;

        error_init(&error);
        row = database_query(&simulation->store.sql, &error, queries[i], "");
        while (row != NULL && database_step(&simulation->store.sql, row, &error) == STATUS_OK) {
            for (int k = 0; k < sqlite3_column_count(row); k++) {
                (void)fprintf(simulation->log, " %.40s", (const char *)sqlite3_column_text(row, k));
            }
            (void)fputc('\n', simulation->log);
        }
        (void)sqlite3_finalize(row);
    }
}

/* The first thing that went wrong is the one that is told. */
void simulation_wrong(struct simulation *simulation, const char *format, ...)
{
    va_list values;

    if (simulation->result->wrong[0] == '\0') {
        va_start(values, format);
        (void)vsnprintf(simulation->result->wrong, SIMULATION_WRONG_MAX, format, values);
        va_end(values);
        simulation_show(simulation, "WRONG: %s", simulation->result->wrong);
        tell_tables(simulation);
    }
}

/* ---- children ------------------------------------------------------------------- */

static const struct simulation_job *job_of(const struct simulation *simulation,
                                           const struct digest *job_id)
{
    for (uint32_t i = 0; i < simulation->job_count; i++) {
        if (digest_equal(&simulation->jobs[i].terms.job_id, job_id)) {
            return &simulation->jobs[i];
        }
    }
    return NULL;
}

static enum virtual_answer choose_answer(void *context, const struct check_request *request,
                                         uint64_t *takes_ms)
{
    struct simulation *simulation = context;
    const struct simulation_job *job = job_of(simulation, &request->job_id);
    uint64_t luck = below(simulation, 1000);

    *takes_ms = below(simulation, simulation->storm ? 60000 : 6000);
    if (job->unknown) {
        return ANSWER_NEVER;
    }
    if (job->poisoned || (simulation->storm && luck < 250)) {
        return ANSWER_NOTHING;
    }
    if (!request->disputed && simulation_diverges(simulation)) {
        *takes_ms = 0; /* before what is planned can be said */
        return ANSWER_FAULT;
    }
    if (!simulation->storm || luck >= 290) {
        return ANSWER_TRUTH;
    }
    if (request->disputed) {
        return ANSWER_NOTHING;
    }
    return luck < 275 ? ANSWER_FAULT : ANSWER_NONSENSE;
}

static bool is_withheld(void *context, const struct digest *job_id, uint32_t segment)
{
    const struct simulation_job *job = job_of(context, job_id);

    (void)segment;
    return job->withheld;
}

static void hear_result(void *context, const struct check_request *request,
                        const struct check_result *result)
{
    struct simulation *simulation = context;

    simulation_show(simulation, "child: %s%u is %s", request->disputed ? "dispute in " : "",
                    request->index, check_outcome_name(result->outcome));
    if (result->outcome == CHECK_FAULT) {
        simulation->fault_noted = true;
        simulation->troubles[TROUBLE_FAULT] = true;
        simulation->result->faults++;
    }
}

/* ---- the node's life --------------------------------------------------------------- */

static uint64_t node_now(void *context)
{
    const struct simulation *simulation = context;

    return (uint64_t)((int64_t)simulation->now_ms + simulation->skew_ms);
}

/* A new book draws its secret from the system: it is given one that follows from the seed. */
static enum status give_secret(struct simulation *simulation, struct error *error)
{
    struct hash32 hash =
        keccak256(&(uint64_t[2]){simulation->seed, simulation->verdict_db_was_lost ? 2 : 1},
                  2 * sizeof(uint64_t));
    char text[HEX_SIZE(HASH32_SIZE)];
    uint64_t added = 0;
    json_t *view;
    enum status status;

    hex_encode(text, hash.bytes, HASH32_SIZE);
    view = json_pack("{s:i, s:s, s:[]}", "lockstep_verdict_db", 1, "secret", text, "verdicts");
    status = verdict_db_import(&added, simulation->verdicts, view, error);
    json_decref(view);
    return status;
}

static void close_node(struct simulation *simulation)
{
    node_close(&simulation->node);
    store_close(&simulation->store);
    verdict_db_close(simulation->verdicts);
    simulation->verdicts = NULL;
    virtual_checks_die(&simulation->checks);
    simulation->up = false;
}

static bool verdict_db_is_empty(struct simulation *simulation)
{
    json_t *view = NULL;
    struct error error;
    bool empty;

    error_init(&error);
    empty = verdict_db_export(&view, simulation->verdicts, &error) == STATUS_OK &&
            json_array_size(json_object_get(view, "verdicts")) == 0;
    json_decref(view);
    return empty;
}

static void forget_fault(struct simulation *simulation)
{
    simulation_show(simulation, "somebody has looked at the fault");
    simulation->forgets_fault = false;
    simulation->fault = false;
    simulation->fault_in_store = false;
    simulation->fault_in_book = false;
}

static void open_node(struct simulation *simulation)
{
    struct node_ports ports = {.ledger = &simulation->ledger.ledger,
                               .store = &simulation->store,
                               .checks = virtual_checks_port(&simulation->checks),
                               .now_ms = node_now,
                               .clock = simulation};
    struct error error;
    enum status status;

    error_init(&error);
    memset(&simulation->store, 0, sizeof(simulation->store));
    memset(&simulation->node, 0, sizeof(simulation->node));
    status = verdict_db_open(&simulation->verdicts, simulation->verdict_db_path, &error);
    if (status == STATUS_OK && verdict_db_is_empty(simulation)) {
        status = give_secret(simulation, &error);
    }
    if (status == STATUS_OK) {
        status = store_open(&simulation->store, simulation->store_path, STORE_WRITE, &error);
    }
    if (status == STATUS_OK) {
        ports.verdicts = simulation->verdicts;
        if (simulation->world.tasks_max > 0) {
            simulation->store.tasks_max = simulation->world.tasks_max;
        }
        if (simulation->forgets_fault) {
            status = node_forget_fault(&simulation->store, simulation->verdicts, &error);
            forget_fault(simulation);
        }
    }
    if (status == STATUS_OK) {
        status = node_open(&simulation->node, &simulation->options, &ports, &error);
    }
    simulation->up = status == STATUS_OK;
    simulation_show(simulation, "the node %s%s", simulation->up ? "is up" : "does not start: ",
                    simulation->up ? "" : error.text);
    if (!simulation->up) {
        if (!simulation->storm && !simulation->fate.dead) {
            simulation_wrong(simulation, "the node does not start: %s", error.text);
        }
        close_node(simulation);
        return;
    }
    simulation_judge_book(simulation);
    simulation_judge_fault(simulation);
}

void simulation_lose_book(struct simulation *simulation)
{
    simulation_show(simulation, "the verdict database is lost");
    virtual_disk_lose(simulation->disk, simulation->verdict_db_path);
    simulation->verdict_db_was_lost = true;
    simulation->verdict_db_lost_s = simulation->now_ms / 1000;
    simulation->statement_count = 0; /* what is said from now on is in the new one */
    simulation->fault_in_book = false;
    simulation->troubles[TROUBLE_BOOK_LOST] = true;
}

/* The process is gone; what is on the disk stays, or what was synced of it. */
static void bury(struct simulation *simulation, bool power_fails)
{
    simulation->fate.dead = true;
    close_node(simulation);
    virtual_disk_restart(simulation->disk, power_fails);
    simulation->fate = (struct fate){0};
    simulation->fault_noted = false; /* it took what it had not kept with it */
    simulation->result->deaths++;
    simulation->result->power_failures += power_fails;
    simulation->troubles[power_fails ? TROUBLE_POWER : TROUBLE_DEATH] = true;
    simulation->down_until_ms = simulation->now_ms;
    if (simulation->storm) {
        simulation->down_until_ms += below(simulation, 60000);
        if (chance(simulation, 6)) {
            simulation_show(simulation, "the node's database is lost");
            virtual_disk_lose(simulation->disk, simulation->store_path);
            simulation->fault_in_store = false;
            simulation->troubles[TROUBLE_STORE_LOST] = true;
        }
        if (chance(simulation, 1)) {
            simulation_lose_book(simulation);
        }
        simulation_lose(simulation);
    }
    simulation_show(simulation, "the node is dead%s", power_fails ? ", and the power failed" : "");
}

static void start_node(struct simulation *simulation)
{
    open_node(simulation);
    if (simulation->fate.dead) {
        bury(simulation, chance(simulation, 30));
    }
}

/* A round that failed, or was the last, may have kept what the child told, or may not. */
static void keep_fault(struct simulation *simulation)
{
    if (simulation->fault_noted || simulation->fault) {
        simulation->fault = true;
        simulation->fault_in_store = true;
        simulation->fault_in_book = true;
        simulation->fault_noted = false;
    }
}

/* As the loop of `verifier run`: at once while there is work, and after a pause when it failed. */
static void run_node(struct simulation *simulation)
{
    bool busy = true;

    for (int i = 0; i < ROUNDS_MAX && busy && simulation->up; i++) {
        struct error error;
        enum status status;

        error_init(&error);
        busy = false;
        simulation->result->rounds++;
        simulation_fill_files(simulation);
        status = node_round(&simulation->node, &busy, &error);
        simulation_empty_files(simulation);
        if (simulation->fate.dead) {
            bury(simulation, chance(simulation, 30));
            return;
        }
        if (status == STATUS_OK) {
            keep_fault(simulation);
            continue;
        }
        simulation->troubles[TROUBLE_DISK_FULL] |= virtual_disk_is_full(simulation->disk);
        simulation_show(simulation, "a round fails: %s", error.text);
        if (!simulation->storm) {
            simulation_wrong(simulation, "a round fails in calm: %s", error.text);
        }
        busy = false;
    }
}

/* ---- weather ------------------------------------------------------------------------ */

static void begin_calm(struct simulation *simulation)
{
    simulation->storm = false;
    simulation->ledger.unreachable = false;
    simulation->ledger.bad_percent = 0;
    simulation->ledger.refusing_percent = 0;
    simulation->ledger.lags = false;
    simulation->fate.left = 0;
    simulation->down_until_ms = 0;
    simulation->checks.barren = chance(simulation, 6);
    virtual_disk_fill(simulation->disk, UINT64_MAX);
    simulation->calm_since_s = simulation->now_ms / 1000;
    for (uint32_t i = 0; i < simulation->job_count; i++) {
        simulation->jobs[i].withheld = simulation->jobs[i].withheld && chance(simulation, 30);
    }
    simulation_show(simulation, "calm");
    if (simulation->fault && simulation->world.fault_is_looked_at) {
        simulation->forgets_fault = true; /* verifier run --forget-fault */
        if (simulation->up) {
            close_node(simulation);
            virtual_disk_restart(simulation->disk, false);
        }
    }
}

static void reorganize(struct simulation *simulation)
{
    uint64_t depth = simulation->ledger.depth;

    if (depth > 0) {
        depth = 1 + below(simulation, depth);
        simulation->troubles[TROUBLE_REORGANIZED] = true;
        simulation_show(simulation, "%llu blocks are taken back", (unsigned long long)depth);
        virtual_chain_reorganize(simulation->chain, depth);
        simulation->result->reorganizations++;
    }
}

static void disturb_ledger(struct simulation *simulation)
{
    struct virtual_ledger *ledger = &simulation->ledger;

    switch (below(simulation, 5)) {
    case 0:
        ledger->unreachable = !ledger->unreachable;
        simulation->troubles[TROUBLE_LEDGER_AWAY] = true;
        break;
    case 1:
        ledger->bad_percent = (uint32_t)below(simulation, 3) * 20;
        simulation->troubles[TROUBLE_LEDGER_BAD] |= ledger->bad_percent > 0;
        break;
    case 2:
        ledger->refusing_percent = (uint32_t)below(simulation, 3) * 20;
        simulation->troubles[TROUBLE_REFUSING] |= ledger->refusing_percent > 0;
        break;
    case 3:
        ledger->lags = !ledger->lags;
        simulation->troubles[TROUBLE_LAGS] = true;
        break;
    default:
        reorganize(simulation);
        break;
    }
}

static void disturb_node(struct simulation *simulation)
{
    switch (below(simulation, 6)) {
    case 0:
    case 1: /* at some call in one of the rounds to come, before it or after */
        simulation->fate.left = 1 + below(simulation, (uint64_t)ROUND_CALLS * 4);
        simulation->fate.last_counts = chance(simulation, 50);
        break;
    case 2:
        if (simulation->up) {
            bury(simulation, chance(simulation, 50));
        }
        break;
    case 3:
        virtual_disk_fill(simulation->disk,
                          chance(simulation, 50) ? UINT64_MAX : below(simulation, 30));
        break;
    case 4:
        simulation->skew_ms += (int64_t)below(simulation, (uint64_t)2 * DAY_MS) - DAY_MS;
        simulation->troubles[TROUBLE_CLOCK] = true;
        simulation_show(simulation, "the node's clock jumps");
        break;
    default: /* the machine sleeps */
        simulation->now_ms += below(simulation, 400000);
        simulation->troubles[TROUBLE_SLEEP] = true;
        break;
    }
}

static void disturb(struct simulation *simulation)
{
    uint64_t luck = below(simulation, 100);

    if (luck < 25) {
        disturb_ledger(simulation);
    } else if (luck < 45) {
        disturb_node(simulation);
    } else if (luck < 48) {
        simulation->checks.barren = !simulation->checks.barren;
        simulation->troubles[TROUBLE_BARREN] = true;
    } else if (luck < 53) {
        struct simulation_job *job = &simulation->jobs[below(simulation, simulation->job_count)];

        job->withheld = !job->withheld;
        simulation->troubles[TROUBLE_WITHHELD] = true;
    }
}

/* ---- time ------------------------------------------------------------------------------ */

/* A ledger without forks has a block for each move, and others as time goes by. */
static void mine(struct simulation *simulation)
{
    bool instant = simulation->ledger.depth == 0;

    simulation->ledger.now_s = simulation->now_ms / 1000;
    if (!instant && simulation->now_ms < simulation->mined_ms + BLOCK_MS) {
        return;
    }
    simulation->mined_ms = simulation->now_ms;
    virtual_chain_mine(simulation->chain, simulation->now_ms / 1000,
                       simulation->storm && !instant ? 40 : 100);
}

static void add_to_transcript(struct simulation *simulation)
{
    uint64_t words[6] = {simulation->now_ms,
                         simulation->chain->height,
                         simulation->ledger.calls,
                         virtual_disk_used(simulation->disk),
                         simulation->ledger.outbox_count,
                         simulation->up};

    keccak_add(&simulation->transcript, words, sizeof(words));
    keccak_add(&simulation->transcript,
               simulation->chain->blocks[simulation->chain->height].hash.bytes, HASH32_SIZE);
}

static void step(struct simulation *simulation, uint64_t ms)
{
    simulation->now_ms += ms;
    simulation->checks.now_ms = simulation->now_ms;
    if (simulation->storm) {
        disturb(simulation);
        simulation->checks.now_ms = simulation->now_ms;
    }
    for (uint32_t i = 0; i < simulation->job_count; i++) {
        if (simulation->storm || simulation->jobs[i].withheld) {
            simulation->jobs[i].data_since_s = simulation->now_ms / 1000;
        }
    }
    mine(simulation);
    simulation_look(simulation);
    simulation_play(simulation);
    if (!simulation->up && simulation->now_ms >= simulation->down_until_ms) {
        start_node(simulation);
    }
    if (simulation->up) {
        run_node(simulation);
    }
    simulation_watch_queue(simulation);
    simulation_judge(simulation);
    add_to_transcript(simulation);
    simulation->result->steps++;
}

static bool is_well(const struct simulation *simulation)
{
    return simulation->result->wrong[0] == '\0';
}

static void pass_storm(struct simulation *simulation)
{
    simulation->storm = true;
    memset(simulation->troubles, 0, sizeof(simulation->troubles));
    for (uint64_t left = 5 + below(simulation, 35); left > 0 && is_well(simulation); left--) {
        step(simulation, below(simulation, chance(simulation, 10) ? 120000 : 15000));
    }
}

/* Nothing is under way: the next thing that happens comes with time. */
static bool is_idle(const struct simulation *simulation)
{
    return simulation->up && virtual_checks_are_idle(&simulation->checks) &&
           !virtual_ledger_is_waiting(&simulation->ledger);
}

static void pass_calm(struct simulation *simulation, uint64_t seconds)
{
    uint64_t end_ms = simulation->now_ms + seconds * 1000;

    begin_calm(simulation);
    while (simulation->now_ms < end_ms && is_well(simulation)) {
        step(simulation, is_idle(simulation) ? 8000 + below(simulation, 16000)
                                             : 4000 + below(simulation, 6000));
    }
}

/* ---- a life ------------------------------------------------------------------------------- */

static void invent_options(struct simulation *simulation)
{
    static const char *const mirrors[] = {"http://one.example", "http://two.example"};
    struct node_options *options = &simulation->options;
    uint64_t luck = below(simulation, 10);

    *options = (struct node_options){.mirrors = mirrors,
                                     .mirror_count = 2,
                                     .cache = simulation->cache,
                                     .memory_max = 1 << 30,
                                     .disk_max = 1 << 30,
                                     .mirror_timeout_s = 10,
                                     .check_time_s = 60,
                                     .threads = 1};
    /* One draw after the other: in an initializer their order would be the compiler's. */
    options->mode = luck == 0 ? NODE_OBSERVE : luck < 3 ? NODE_DEFEND : NODE_ACT;
    options->share = chance(simulation, 75) ? 1.0 : 0.5;
    options->extra = chance(simulation, 75) ? 1.0 : 0.4;
    options->audit_share = chance(simulation, 70) ? 1.0 : 0.3;
    options->checks_max = 1 + (uint32_t)below(simulation, 3);
    options->reach = (uint32_t)below(simulation, 3);
    options->withdraw_at = chance(simulation, 30) ? WEI_PER_ETHER / 10 : 0;
    simulation->forsaken = simulation->seed % FORSAKEN_EVERY == 0;
    options->grace_s = simulation->forsaken ? 60 : 600;
}

static void found(struct simulation *simulation)
{
    const uint32_t depths[] = {0, 2, 5};
    uint64_t ledger_seed;
    struct error error;

    for (uint32_t i = 0; i < SIMULATION_ACCOUNTS; i++) {
        struct hash32 hash = keccak256(&(uint64_t[2]){i, simulation->seed}, 2 * sizeof(uint64_t));

        memcpy(simulation->accounts[i].bytes, hash.bytes, ADDRESS_SIZE);
    }
    simulation->disk = virtual_disk_new(&simulation->fate, &simulation->disk_random);
    simulation->chain = virtual_chain_new(test_random(&simulation->random), START_S);
    simulation->chain->guilty = simulation_guilty;
    simulation->chain->context = simulation;
    simulation->chain->keeps = simulation->accounts[SIMULATION_NODE];
    for (uint32_t i = 0; i < SIMULATION_ACCOUNTS; i++) {
        virtual_chain_enrich(simulation->chain, &simulation->accounts[i]);
    }
    ledger_seed = test_random(&simulation->random);
    virtual_ledger_init(&simulation->ledger, simulation->chain, &simulation->fate,
                        &simulation->accounts[SIMULATION_NODE], depths[below(simulation, 3)],
                        ledger_seed);
    simulation->ledger.submitted = simulation_submitted;
    simulation->ledger.contradicted = simulation_contradicted;
    simulation->ledger.context = simulation;
    simulation->checks.fate = &simulation->fate;
    simulation->checks.random = test_random(&simulation->random);
    simulation->checks.choose = choose_answer;
    simulation->checks.withheld = is_withheld;
    simulation->checks.reply = hear_result;
    simulation->checks.context = simulation;
    (void)snprintf(simulation->folder, sizeof(simulation->folder), "%s/%llu", test_temp_dir(),
                   (unsigned long long)simulation->seed);
    (void)snprintf(simulation->cache, sizeof(simulation->cache), "%.900s/cache",
                   simulation->folder);
    (void)snprintf(simulation->verdict_db_path, sizeof(simulation->verdict_db_path),
                   "%.900s/book.db", simulation->folder);
    (void)snprintf(simulation->store_path, sizeof(simulation->store_path), "%.900s/node.db",
                   simulation->folder);
    error_init(&error);
    if (file_make_folder(simulation->cache, &error, 0700) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
}

static void end(struct simulation *simulation)
{
    if (simulation->up) {
        close_node(simulation);
    }
    virtual_ledger_release(&simulation->ledger);
    virtual_chain_free(simulation->chain);
    virtual_disk_free(simulation->disk);
    folder_remove(simulation->folder);
}

static void count(const struct simulation *simulation)
{
    struct simulation_result *result = simulation->result;

    for (uint32_t i = 0; i < simulation->view.segment_count; i++) {
        enum store_mine mine = simulation->view.segments[i].mine;

        result->attested += mine != STORE_MINE_NOT;
        result->revealed += mine >= STORE_MINE_REVEALED;
    }
    for (uint32_t i = 0; i < simulation->view.claim_count; i++) {
        const struct simulation_claim *claim = &simulation->view.claims[i];
        bool solver = address_is_zero(&claim->attestor);

        result->claimed += claim->ours && solver;
        result->upheld += claim->ours && solver && claim->upheld;
        result->accused += claim->ours && !solver;
        result->attestors_convicted += claim->ours && !solver && claim->upheld;
        result->acquitted += claim->against_us && claim->phase == GAME_CLAIM_CLOSED;
    }
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
    simulation->worlds_random = seed ^ UINT64_C(0x8cb92ba72f3d8dd7);
    simulation->log = log;
    simulation->result = result;
    simulation->now_ms = (uint64_t)START_S * 1000;
    keccak_init(&simulation->transcript);
    found(simulation);
    invent_options(simulation);
    simulation_invent_jobs(simulation);
    simulation_invent_world(simulation);
    for (int i = 0; i < STORMS && is_well(simulation); i++) {
        pass_storm(simulation);
        pass_calm(simulation, CALM_S);
    }
    pass_calm(simulation, END_S);
    if (is_well(simulation) && simulation->up) {
        simulation_judge_end(simulation);
    }
    count(simulation);
    result->transcript = keccak_end(&simulation->transcript);
    end(simulation);
    free(simulation);
}
