/* crowd.c - see crowd.h. */
#include "tests/support/node/crowd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/game/leg.h"
#include "chain/local/ledger_local.h"
#include "tests/support/test.h"
#include "verifier/node/node_round.h"

enum {
    ROUNDS_MAX = 40, /* of one node without a pause */
    BUSY_STEP_S = 12,
    STEP_MS = 1000, /* that a step takes on the solver's machine */
    TRIAL_MS = 1000,
    KEY_BYTE = 0x51,
    ENTRIES = 1, /* of a node in each panel: here begin the defaults of `verifier node` */
    CHECKS = 2,
    REACH = 16,
    MIRROR_TIMEOUT_S = 20,
    CHECK_TIME_S = 3600,
    GRACE_S = 600,
    AHEAD = 24, /* and of `prover commit` */
};

/* ---- a node ------------------------------------------------------------------------ */

static uint64_t now_ms(void *context)
{
    const struct crowd_node *node = context;

    return stage_clock(&node->crowd->scene->stage) * 1000;
}

static bool has_fetched(struct crowd_node *node, uint32_t index)
{
    int64_t count = 0;
    struct error error;

    error_init(&error);
    stage_check(database_number(&node->store.sql, &count, 0, &error,
                                "SELECT count(*) FROM tasks WHERE kind = ? AND idx = ? AND state ="
                                " ?",
                                "iii", (int64_t)TASK_FETCH, (int64_t)index, (int64_t)TASK_DONE),
                &error);
    return count > 0;
}

bool crowd_has_states(struct crowd *crowd, uint32_t index)
{
    bool has = index < CROWD_SEGMENTS_MAX && crowd->kept[index].has_states;

    for (uint32_t i = 0; i < crowd->node_count && !has; i++) {
        has = has_fetched(&crowd->nodes[i], index);
    }
    return has;
}

static bool is_served(struct crowd *crowd, uint32_t index)
{
    return crowd->serving.gone ? crowd_has_states(crowd, index) : index < crowd->serving.hides_from;
}

static enum virtual_answer choose(void *context, uint64_t *takes_ms,
                                  const struct check_request *request)
{
    const struct crowd_node *node = context;
    const struct crowd_serving *serving = &node->crowd->serving;

    *takes_ms = TRIAL_MS;
    if (node->crowd->fetch != NULL) {
        node->crowd->fetch(request);
    }
    if (serving->hides_job) {
        return ANSWER_SILENCE;
    }
    if (!request->trial) {
        *takes_ms = request->states ? TRIAL_MS : (uint64_t)serving->takes_s * 1000;
    }
    /* Somebody answers, and has it not. */
    return request->trial || is_served(node->crowd, request->index) ? ANSWER_TRUTH : ANSWER_LIES;
}

static struct node_options default_options(const struct crowd_node *node)
{
    return (struct node_options){.mode = NODE_ACT,
                                 .entries = ENTRIES,
                                 .extra = 0.1,
                                 .checks_max = CHECKS,
                                 .reach = REACH,
                                 .cache = node->cache,
                                 .memory_max = (uint64_t)1 << 30,
                                 .disk_max = (uint64_t)20 << 30,
                                 .mirror_timeout_s = MIRROR_TIMEOUT_S,
                                 .check_time_s = CHECK_TIME_S,
                                 .threads = 1,
                                 .withdraw_at = WEI_PER_ETHER / 10,
                                 .policy = policy_default(),
                                 .grace_s = GRACE_S};
}

/* As much as a player of the stage has. */
static void give_money(struct crowd *crowd, const struct address *account)
{
    struct stage *stage = &crowd->scene->stage;
    const wei money = crowd->scene->before[STAGE_OTHER];
    char text[ADDRESS_TEXT_SIZE];
    char amount[40];
    struct error error;

    error_init(&error);
    if (stage->anvil == NULL) {
        stage_check(ledger_local_faucet(stage->ledgers[STAGE_CLIENT], account, money, &error),
                    &error);
        return;
    }
    address_print(text, account);
    (void)snprintf(amount, sizeof(amount), "0x%llx%016llx", (unsigned long long)(money >> 64),
                   (unsigned long long)money);
    json_decref(anvil_call(stage->rpc, "anvil_setBalance", json_pack("[s,s]", text, amount)));
}

static wei money_of(struct crowd *crowd, const struct address *account)
{
    struct error error;
    wei purse = 0;
    wei owed = 0;

    error_init(&error);
    stage_check(ledger_get_account(crowd->scene->stage.ledgers[STAGE_CLIENT], &purse, &owed,
                                   account, &error),
                &error);
    return purse + owed;
}

static void join_path(char path[FILE_PATH_MAX], const char *folder, const char *name)
{
    struct error error;

    error_init(&error);
    stage_check(file_path_join(path, FILE_PATH_MAX, &error, folder, name), &error);
}

static void open_account(struct crowd_node *node, uint32_t number)
{
    struct stage *stage = &node->crowd->scene->stage;
    struct ledger_options options = stage->options;
    struct secret_key key;
    struct error error;

    error_init(&error);
    memset(&key, (int)(KEY_BYTE + number), sizeof(key));
    node->signer = signer_new(&key, &error);
    assert_non_null(node->signer);
    (void)snprintf(node->folder, sizeof(node->folder), "%.500s-node-%u",
                   stage->state_dirs[STAGE_CLIENT], number);
    stage_check(file_make_folder(node->folder, &error, 0700), &error);
    options.signer = node->signer;
    options.state_dir = node->folder;
    stage_check(ledger_open(&node->ledger, &options, &error), &error);
    give_money(node->crowd, signer_address(node->signer));
    node->before = money_of(node->crowd, signer_address(node->signer));
}

static void open_node(struct crowd_node *node, struct crowd *crowd, uint32_t number)
{
    struct node_ports ports = {.store = &node->store, .now_ms = now_ms, .clock = node};
    char path[FILE_PATH_MAX];
    struct error error;

    error_init(&error);
    node->crowd = crowd;
    open_account(node, number);
    node->checks = (struct virtual_checks){
        .fate = &crowd->never, .random = number, .choose = choose, .context = node};
    join_path(node->cache, node->folder, "cache");
    join_path(path, node->folder, "verdicts.db");
    stage_check(verdict_db_open(&node->verdicts, path, &error), &error);
    join_path(path, node->folder, "node.db");
    stage_check(store_open(&node->store, path, STORE_WRITE, &error), &error);
    ports.ledger = node->ledger;
    ports.signer = node->signer;
    ports.verdicts = node->verdicts;
    ports.checks = virtual_checks_port(&node->checks);
    ports.log = crowd->log.stream == NULL ? NULL : &crowd->log;
    node->options = default_options(node);
    stage_check(node_open(&node->node, &node->options, &ports, &error), &error);
}

static void close_node(struct crowd_node *node)
{
    node_close(&node->node);
    store_close(&node->store);
    verdict_db_close(node->verdicts);
    virtual_checks_die(&node->checks);
    ledger_close(node->ledger);
    signer_free(node->signer);
}

/* As the loop of `verifier node`: at once while there is work. */
static void run_node(struct crowd_node *node)
{
    bool busy = true;

    node->checks.now_ms = now_ms(node);
    node->checks.step_ms = (uint64_t)node->crowd->serving.step_s * 1000;
    for (int i = 0; i < ROUNDS_MAX && busy; i++) {
        struct error error;

        error_init(&error);
        busy = false;
        stage_check(node_round(&node->node, &busy, &error), &error);
        node->crowd->busy |= busy;
    }
    assert_false(node->node.fault);
}

/* ---- the scene ---------------------------------------------------------------------- */

static void set_terms(struct game_terms *terms)
{
    made_job_terms(terms, made_state(MADE_FULL, 0));
    terms->stake = 10 * WEI_PER_ETHER;
    terms->bond = 20 * terms->fee;
    terms->seal_period_s = 2 * 3600;
    terms->reveal_period_s = 3600;
    terms->claim_period_s = 3 * 3600;
    terms->clock_s = 12 * 3600;
    terms->segment_period_s = 86400;
}

void crowd_open(struct crowd *crowd, struct scene *scene, uint32_t nodes)
{
    assert_true(nodes <= CROWD_NODES_MAX);
    memset(crowd, 0, sizeof(*crowd));
    crowd->scene = scene;
    crowd->serving = (struct crowd_serving){.hides_from = UINT32_MAX, .takes_s = 60};
    set_terms(&scene->terms);
    if (getenv("CROWD_LOG") != NULL) {
        log_init(&crowd->log, stderr, LOG_LEVEL_INFO, LOG_FORMAT_PLAIN);
    }
    crowd->node_count = nodes;
    crowd->nodes = calloc(nodes, sizeof(*crowd->nodes));
    assert_non_null(crowd->nodes);
    for (uint32_t i = 0; i < nodes; i++) {
        open_node(&crowd->nodes[i], crowd, i);
    }
}

void crowd_close(struct crowd *crowd)
{
    solver_free(crowd->solver);
    for (uint32_t i = 0; i < crowd->node_count; i++) {
        close_node(&crowd->nodes[i]);
    }
    free(crowd->nodes);
}

/* ---- the solver ---------------------------------------------------------------------- */

static void train_segment(struct crowd *crowd)
{
    const struct scene *scene = crowd->scene;
    const uint64_t left = scene->terms.steps - crowd->next_step;
    struct digest states[GAME_STATES_MAX];
    struct game_hashes list = {states, scene->terms.segment_steps};
    struct error error;

    error_init(&error);
    list.count = left < list.count ? (uint32_t)left : list.count;
    for (uint32_t i = 0; i < list.count; i++) {
        states[i] = made_state_root(made_state(scene->shape, (uint32_t)crowd->next_step + i + 1));
    }
    stage_check(solver_add(crowd->solver, &list, false, &error), &error);
    crowd->next_step += list.count;
}

static void train(struct crowd *crowd)
{
    const uint64_t now_s = stage_clock(&crowd->scene->stage);

    while (crowd->next_step < crowd->scene->terms.steps && crowd->trained_s <= now_s) {
        train_segment(crowd);
        crowd->trained_s += crowd->train_s;
    }
}

void crowd_train_slowly(struct crowd *crowd, uint32_t segment_s)
{
    crowd->train_s = segment_s;
    crowd->trained_s = stage_clock(&crowd->scene->stage) + segment_s;
}

void crowd_solve(struct crowd *crowd, int player)
{
    const struct scene *scene = crowd->scene;
    const struct stage *stage = &scene->stage;
    const struct solver_options options = {
        .ledger = stage->options,
        .shared = stage->ledgers[player],
        .job = scene->job,
        .account = *signer_address(stage->signers[player]),
        .accept = true,
        .collect = true,
        .segment_steps = scene->terms.segment_steps,
        .contact = "https://solver.example",
        .ahead = AHEAD,
        .policy = {.limits = policy_default(),
                   .pace = {.segment_ms = (uint64_t)scene->terms.segment_steps * STEP_MS}}};
    struct error error;

    error_init(&error);
    stage_check(solver_new(&crowd->solver, &options, game_segment_count(&scene->terms), &error),
                &error);
}

static void run_solver(struct crowd *crowd)
{
    uint64_t pending = crowd->view.pending;
    struct error error;

    error_init(&error);
    train(crowd);
    stage_check(solver_round(crowd->solver, &crowd->view, &error), &error);
    crowd->busy |= crowd->view.pending != pending;
}

void crowd_kill_solver(struct crowd *crowd)
{
    solver_free(crowd->solver);
    crowd->solver = NULL;
    crowd->serving.gone = true;
}

/* ---- the keeper ---------------------------------------------------------------------- */

void crowd_keep(struct crowd *crowd, int player)
{
    assert_true(game_segment_count(&crowd->scene->terms) <= CROWD_SEGMENTS_MAX);
    crowd->keeper = player;
    crowd->scene->terms.keeper = *signer_address(crowd->scene->stage.signers[player]);
}

/* What it has, and since when it waits for it. Ledger and mirror never failed it. */
static struct keep_known *look_up(struct crowd *crowd, const struct job_segment *segment,
                                  uint32_t index)
{
    struct keep_known *known = &crowd->kept[index];

    if (known->first_end_s == 0) {
        known->first_end_s = job_segment_reveal_end(segment);
        known->well_s = segment->start_s;
    }
    if (!known->has_states && is_served(crowd, index)) {
        known->has_states = true;
        known->late = stage_clock(&crowd->scene->stage) > known->first_end_s;
    }
    known->has_start = index == 0 || is_served(crowd, index - 1);
    return known;
}

static void keep_segment(struct crowd *crowd, uint32_t index)
{
    static const struct keep_policy usual = {.refuses = true, .replays = true};
    struct scene *scene = crowd->scene;
    const struct job_segment segment = job_record_segment(&scene->record, index);
    struct keep_known *known;
    struct keep_needs needs;

    if (!segment.drawn || !segment.covered || segment.noted) {
        return;
    }
    known = look_up(crowd, &segment, index);
    needs = keep_plan(&segment, known, &usual, stage_clock(&scene->stage));
    if (needs.replay) {
        known->replayed = true;
        known->has_states = true;
        known->is_false = scene_replay(scene, index) < scene->terms.segment_steps;
    }
    if (needs.refuse) {
        STAGE_PLAY(&scene->stage, crowd->keeper, ledger_refuse, &scene->job);
        scene_read(scene);
    } else if (needs.vouch || needs.bring) {
        scene_vouch(scene, crowd->keeper, crowd->keeper, index);
    }
}

static void run_keeper(struct crowd *crowd)
{
    scene_read(crowd->scene);
    for (uint32_t i = crowd->scene->record.state.finalized;
         i < crowd->scene->record.state.committed; i++) {
        keep_segment(crowd, i);
    }
}

/* ---- time ------------------------------------------------------------------------------ */

static void run_all(struct crowd *crowd)
{
    crowd->busy = false;
    if (crowd->play != NULL) {
        scene_read(crowd->scene);
        crowd->play(crowd);
    }
    for (uint32_t i = 0; i < crowd->node_count; i++) {
        run_node(&crowd->nodes[i]);
    }
    if (crowd->solver != NULL) {
        run_solver(crowd);
    }
    if (crowd->keeper != 0) {
        run_keeper(crowd);
    }
}

/* While the test keeps the clock, an embedded ledger has no block but those of moves: the draw of a
 * segment, or of a round that was closed, waits for one. */
static void pass(struct crowd *crowd, uint32_t seconds)
{
    struct scene *scene = crowd->scene;

    scene_pass(scene, seconds);
    scene_read(scene);
    if (scene->stage.anvil == NULL &&
        scene->record.state.finalized < scene->record.state.committed) {
        scene_pass_blocks(scene, 1);
    }
}

void crowd_live(struct crowd *crowd, uint32_t seconds)
{
    run_all(crowd);
    while (seconds > 0) {
        uint32_t step_s = crowd->busy ? BUSY_STEP_S : CROWD_STEP_S;

        step_s = step_s < seconds ? step_s : seconds;
        pass(crowd, step_s);
        seconds -= step_s;
        run_all(crowd);
    }
}

void crowd_until(struct crowd *crowd, bool (*is_so)(const struct job_record *record),
                 uint32_t most_s)
{
    for (uint32_t passed_s = 0;; passed_s += CROWD_STEP_S) {
        scene_read(crowd->scene);
        if (is_so(&crowd->scene->record)) {
            return;
        }
        if (passed_s >= most_s) {
            fail_msg("after %u s: phase %u, %u of %u committed segments final; the solver: %s",
                     passed_s, crowd->scene->record.state.phase,
                     crowd->scene->record.state.finalized, crowd->scene->record.state.committed,
                     crowd->view.trouble);
        }
        crowd_live(crowd, CROWD_STEP_S);
    }
}

bool crowd_has_panel(const struct job_record *record)
{
    return record->state.entries >= record->terms.panel_least;
}

bool crowd_is_open(const struct job_record *record)
{
    return record->state.phase == GAME_PHASE_OPEN;
}

bool crowd_is_closed(const struct job_record *record)
{
    return record->state.phase == GAME_PHASE_CLOSED;
}

void crowd_part(struct crowd *crowd)
{
    scene_depart(crowd->scene);
    crowd_live(crowd, 2 * CROWD_STEP_S);
    scene_read(crowd->scene);
    for (uint32_t i = 0; i < crowd->scene->record.state.entries; i++) {
        assert_true(crowd->scene->record.entries[i].gone);
    }
}

int64_t crowd_gain(struct crowd *crowd, uint32_t node)
{
    const struct crowd_node *of = &crowd->nodes[node];

    return scene_gain_of(money_of(crowd, signer_address(of->signer)), of->before);
}

int64_t crowd_gains(struct crowd *crowd)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < crowd->node_count; i++) {
        sum += crowd_gain(crowd, i);
    }
    return sum;
}
