/* simulation_players.c - client, solvers, other attestors and claimants: see simulation.h. */
#include <string.h>

#include "tests/support/node/simulation.h"
#include "tests/support/test.h"

static uint64_t below(struct simulation *simulation, uint64_t limit)
{
    return test_random_below(&simulation->players_random, limit);
}

static bool chance(struct simulation *simulation, uint32_t percent)
{
    return simulation_chance(&simulation->players_random, percent);
}

/* ---- what is played for -------------------------------------------------------- */

static void invent_terms(struct simulation *simulation, struct simulation_job *job, uint32_t number)
{
    struct game_terms *terms = &job->terms;

    terms->salt = number + 1;
    terms->segment_steps = 1 + (uint32_t)below(simulation, VIRTUAL_STEPS_MAX);
    terms->steps = 1 + below(simulation, (uint64_t)terms->segment_steps * 3);
    terms->segment_reward = WEI_PER_ETHER / 10;
    terms->attest_fee = WEI_PER_ETHER / 100;
    terms->stake = 2 * WEI_PER_ETHER + 1; /* which has no half */
    terms->claim_bond = WEI_PER_ETHER / 10;
    terms->attest_bond = WEI_PER_ETHER / 20;
    terms->attestors = (uint32_t)below(simulation, 4);
    terms->coverage_ppm = terms->attestors == 0    ? 0
                          : chance(simulation, 60) ? GAME_PPM
                                                   : (uint32_t)below(simulation, GAME_PPM);
    terms->segment_period_s = 3000;
    terms->attest_period_s = 150 + (uint32_t)below(simulation, 400);
    terms->reveal_period_s = 150 + (uint32_t)below(simulation, 300);
    terms->claim_period_s = 100 + (uint32_t)below(simulation, 600);
    terms->response_period_s = 150 + (uint32_t)below(simulation, 300);
    terms->deadline_s = virtual_chain_time(simulation->chain) + 3000 + below(simulation, 9000);
}

static void invent_conduct(struct simulation *simulation, struct simulation_job *job)
{
    for (uint32_t i = 0; i < 4; i++) {
        job->lie[i] = chance(simulation, i == 0 ? 60 : 25) ? below(simulation, job->terms.steps)
                                                           : VIRTUAL_TRUE;
        job->commits[i] = chance(simulation, 15) ? (uint32_t)below(simulation, 3) : 1000;
    }
    job->answer_percent = chance(simulation, 30) ? 0 : 5 + (uint32_t)below(simulation, 60);
    job->answers_lie = chance(simulation, 50);
    job->poisoned = chance(simulation, 8);
    job->unknown = !job->poisoned && chance(simulation, 5);
}

void simulation_invent_jobs(struct simulation *simulation)
{
    simulation->job_count = 1 + (uint32_t)below(simulation, SIMULATION_JOBS_MAX);
    for (uint32_t i = 0; i < simulation->job_count; i++) {
        struct simulation_job *job = &simulation->jobs[i];
        struct hash32 id = keccak256(&(uint64_t[2]){simulation->seed, i}, 16);

        invent_terms(simulation, job, i);
        memcpy(job->terms.job_id.bytes, id.bytes, DIGEST_SIZE);
        job->terms.program_root = job->terms.data_root = job->terms.job_id;
        virtual_checks_add_job(&simulation->checks, &job->terms.job_id);
        job->terms.first_state_root =
            *virtual_checks_first(&simulation->checks, &job->terms.job_id);
        job->key = game_job_key(&virtual_place, &simulation->accounts[SIMULATION_CLIENT],
                                &job->terms.job_id, job->terms.salt);
        job->opens_ms = simulation->now_ms + below(simulation, i == 0 ? 30000 : 600000);
        invent_conduct(simulation, job);
    }
}

/* ---- moves --------------------------------------------------------------------- */

static bool has_waiting(const struct simulation *simulation, const struct address *sender)
{
    const struct virtual_chain *chain = simulation->chain;

    for (uint32_t i = chain->move_count; i > 0 && i + 100 > chain->move_count; i--) {
        const struct virtual_move *move = &chain->moves[i - 1];

        if (move->height == 0 && !move->lost && address_equal(&move->sender, sender)) {
            return true;
        }
    }
    return false;
}

/* Sends it unless the rules refuse it now; now and then a blunder is sent all the same. */
static bool send(struct simulation *simulation, enum simulation_account account,
                 const struct game_move *move)
{
    const struct address *sender = &simulation->accounts[account];
    struct game_refusal refusal;

    if ((account == SIMULATION_ANYBODY && simulation->forsaken) ||
        has_waiting(simulation, sender) ||
        (virtual_chain_refuses(simulation->chain, sender, move, simulation->now_ms / 1000,
                               &refusal) &&
         !chance(simulation, 1))) {
        return false;
    }
    simulation_show(simulation, "account %d: %s", account, game_move_name(move->kind));
    (void)virtual_chain_send(simulation->chain, sender, move);
    if (simulation->ledger.depth == 0) {
        virtual_chain_mine(simulation->chain, simulation->now_ms / 1000, 100);
    }
    return true;
}

static bool send_about(struct simulation *simulation, enum simulation_account account,
                       enum game_move_kind kind, const struct hash32 *key)
{
    return send(simulation, account, &(struct game_move){.kind = kind, .key = *key});
}

static bool send_segment(struct simulation *simulation, enum simulation_account account,
                         enum game_move_kind kind, const struct simulation_segment *segment)
{
    return send(simulation, account,
                &(struct game_move){.kind = kind,
                                    .key = simulation->jobs[segment->job].key,
                                    .segment = segment->committed,
                                    .account = simulation->accounts[account]});
}

/* ---- client and solvers ----------------------------------------------------------- */

static enum simulation_account solver_of(const struct simulation *simulation,
                                         const struct local_job *job)
{
    return address_equal(&job->solver, &simulation->accounts[SIMULATION_SOLVER])
               ? SIMULATION_SOLVER
               : SIMULATION_OTHER_SOLVER;
}

static void commit(struct simulation *simulation, uint32_t number, const struct local_job *found)
{
    struct simulation_job *job = &simulation->jobs[number];
    uint32_t generation = found->generation < 4 ? found->generation : 3;
    uint32_t index = found->committed;
    const struct simulation_segment *previous =
        index == 0 ? NULL : simulation_standing(simulation, number, index - 1);
    uint64_t first = (uint64_t)index * job->terms.segment_steps;
    uint64_t left = job->terms.steps - first;
    uint32_t steps = left < job->terms.segment_steps ? (uint32_t)left : job->terms.segment_steps;
    uint64_t lie = job->lie[generation];
    const struct virtual_segment *segment;

    if (index >= found->segments || index >= job->commits[generation] ||
        (index > 0 && previous == NULL)) {
        return;
    }
    segment = virtual_checks_commit(
        &simulation->checks, &job->terms.job_id, index,
        previous == NULL ? &job->terms.first_state_root
                         : &previous->truth->states[previous->truth->steps - 1],
        steps,
        lie != VIRTUAL_TRUE && lie >= first && lie - first < steps ? (uint32_t)(lie - first)
                                                                   : VIRTUAL_TRUE,
        generation);
    (void)send(simulation, solver_of(simulation, found),
               &(struct game_move){
                   .kind = GAME_COMMIT, .key = job->key, .index = index, .root = segment->root});
}

static void play_job(struct simulation *simulation, uint32_t number)
{
    struct simulation_job *job = &simulation->jobs[number];
    struct local_job found;

    if (local_get_job(&simulation->chain->store, &found, &job->key) != STATUS_OK) {
        fail_msg("the virtual chain does not answer");
    }
    if (found.phase == GAME_PHASE_NONE && simulation->now_ms >= job->opens_ms) {
        (void)send(simulation, SIMULATION_CLIENT,
                   &(struct game_move){
                       .kind = GAME_OPEN, .terms = job->terms, .value = game_escrow(&job->terms)});
    } else if (found.phase == GAME_PHASE_OPEN) {
        (void)send(
            simulation, chance(simulation, 50) ? SIMULATION_SOLVER : SIMULATION_OTHER_SOLVER,
            &(struct game_move){.kind = GAME_ACCEPT, .key = job->key, .value = job->terms.stake});
    } else if (found.phase == GAME_PHASE_RUNNING) {
        commit(simulation, number, &found);
    }
}

/* ---- disputes ---------------------------------------------------------------------- */

/* Who is accused, when it is not the node. */
static enum simulation_account accused_by(const struct simulation *simulation,
                                          const struct simulation_claim *claim,
                                          const struct simulation_job *job)
{
    struct local_job found;

    if (!address_is_zero(&claim->attestor)) {
        return address_equal(&claim->attestor, &simulation->accounts[SIMULATION_ATTESTOR])
                   ? SIMULATION_ATTESTOR
                   : SIMULATION_LYING_ATTESTOR;
    }
    if (local_get_job(&simulation->chain->store, &found, &job->key) != STATUS_OK) {
        fail_msg("the virtual chain does not answer");
    }
    return solver_of(simulation, &found);
}

static void answer(struct simulation *simulation, const struct simulation_claim *claim)
{
    const struct simulation_segment *segment = &simulation->view.segments[claim->segment];
    const struct simulation_job *job = &simulation->jobs[segment->job];
    const struct digest *before =
        virtual_state_before(segment->truth, claim->step < segment->truth->steps ? claim->step : 0);
    struct game_move move = {.kind = GAME_ANSWER,
                             .key = claim->key,
                             .root = virtual_trace_root(&job->terms.job_id, before)};
    const uint8_t reply[2] = {0, claim->queried[1]};

    if (claim->against_us || !chance(simulation, job->answer_percent)) {
        return;
    }
    if (claim->phase == GAME_CLAIM_TRIED) {
        move.kind = GAME_REPLY;
        move.queried = (struct game_bytes){claim->queried, claim->asked_size};
        move.payload = (struct game_bytes){reply, sizeof(reply)};
    } else if (job->answers_lie) {
        move.root.bytes[0] ^= 1;
    }
    (void)send(simulation, accused_by(simulation, claim, job), &move);
}

/* Who claims beside the node shows everything at once; a slander can only ask. */
static void prosecute(struct simulation *simulation, const struct simulation_claim *claim,
                      enum simulation_account account)
{
    const struct simulation_segment *segment = &simulation->view.segments[claim->segment];
    const struct simulation_job *job = &simulation->jobs[segment->job];
    const struct simulation_segment *previous =
        segment->committed.index == 0
            ? NULL
            : simulation_standing(simulation, segment->job, segment->committed.index - 1);
    const struct virtual_evidence evidence = {
        .kind = account == SIMULATION_RIVAL ? 'c' : 'a',
        .number = account == SIMULATION_RIVAL ? 0 : (uint8_t)below(simulation, 200)};
    struct game_move move = {.kind = account == SIMULATION_RIVAL ? GAME_CONVICT : GAME_QUERY,
                             .key = claim->key};

    move.payload = (struct game_bytes){(const uint8_t *)&evidence, sizeof(evidence)};
    move.shown.client = simulation->accounts[SIMULATION_CLIENT];
    move.shown.salt = job->terms.salt;
    move.shown.segment = segment->committed;
    move.shown.previous = previous == NULL ? (struct game_segment){0} : previous->committed;
    move.shown.step = claim->step;
    move.shown.pre_state = *virtual_state_before(segment->truth, claim->step);
    move.shown.post_state = segment->truth->states[claim->step];
    (void)send(simulation, account, &move);
}

static void play_claim(struct simulation *simulation, const struct simulation_claim *claim)
{
    if (claim->phase == GAME_CLAIM_CLOSED) {
        return;
    }
    if (claim->turn == GAME_TURN_ACCUSED) {
        answer(simulation, claim);
    } else if (!claim->ours && chance(simulation, 10)) {
        prosecute(simulation, claim,
                  address_equal(&claim->claimant, &simulation->accounts[SIMULATION_RIVAL])
                      ? SIMULATION_RIVAL
                      : SIMULATION_SLANDER);
    }
    if ((!claim->ours && !claim->against_us) || chance(simulation, 1)) {
        (void)send_about(simulation, SIMULATION_ANYBODY, GAME_TIMEOUT, &claim->key);
        (void)send_about(simulation, SIMULATION_ANYBODY, GAME_LAPSE, &claim->key);
    }
}

static void claim_of(struct simulation *simulation, enum simulation_account account,
                     const struct simulation_segment *segment, uint32_t step)
{
    const struct simulation_job *job = &simulation->jobs[segment->job];
    const struct digest *before = virtual_state_before(segment->truth, step);
    const struct digest *after = &segment->truth->states[step];
    struct hash32 key =
        game_claim_key(&simulation->accounts[account], &segment->hash, step, before, after);
    struct hash32 salt = {"nobody else's"};
    struct game_move move = {.kind = GAME_CLAIM,
                             .key = job->key,
                             .value = job->terms.claim_bond,
                             .segment = segment->committed,
                             .steps = step,
                             .pre_state = *before,
                             .post_state = *after,
                             .salt = salt};

    if (!send(simulation, account, &move)) {
        move = (struct game_move){.kind = GAME_SEAL_CLAIM, .seal = game_claim_seal(&key, &salt)};
        (void)send(simulation, account, &move);
    }
}

/* A true attestation of the node's is called false. */
static void slander(struct simulation *simulation, const struct simulation_segment *segment)
{
    const struct simulation_job *job = &simulation->jobs[segment->job];
    struct hash32 key = game_accusation_key(&simulation->accounts[SIMULATION_SLANDER],
                                            &segment->hash, &simulation->accounts[SIMULATION_NODE]);
    struct hash32 salt = {"nobody else's"};
    struct game_move move = {.kind = GAME_ACCUSE,
                             .key = job->key,
                             .value = job->terms.claim_bond,
                             .segment = segment->committed,
                             .account = simulation->accounts[SIMULATION_NODE],
                             .salt = salt};

    if (!send(simulation, SIMULATION_SLANDER, &move)) {
        move = (struct game_move){.kind = GAME_SEAL_CLAIM, .seal = game_claim_seal(&key, &salt)};
        (void)send(simulation, SIMULATION_SLANDER, &move);
    }
}

/* ---- attestors, and anybody ----------------------------------------------------------- */

static void attest(struct simulation *simulation, enum simulation_account account,
                   const struct simulation_segment *segment)
{
    const struct simulation_job *job = &simulation->jobs[segment->job];
    struct digest root = {{1}};
    struct game_move move = {.kind = GAME_REVEAL, .key = job->key, .segment = segment->committed};

    if (hash32_is_zero(&segment->seed)) {
        (void)send_segment(simulation, account, GAME_DRAW, segment);
        return;
    }
    if (account == SIMULATION_ATTESTOR) {
        root = virtual_trace_root(
            &job->terms.job_id,
            virtual_state_before(segment->truth,
                                 game_sampled_step(&segment->seed, &simulation->accounts[account],
                                                   segment->committed.steps)));
    }
    move.root = root;
    if (!send(simulation, account, &move) && chance(simulation, 30)) {
        move.kind = GAME_ATTEST;
        move.value = job->terms.attest_bond;
        move.seal = game_attest_seal(&simulation->accounts[account], &segment->hash, &root);
        (void)send(simulation, account, &move);
    }
}

static void play_segment(struct simulation *simulation, const struct simulation_segment *segment)
{
    uint32_t lie = segment->truth->lie;

    if (segment->stands && !segment->final) {
        if (chance(simulation, 12)) {
            attest(simulation,
                   chance(simulation, 50) ? SIMULATION_ATTESTOR : SIMULATION_LYING_ATTESTOR,
                   segment);
        }
        if (segment->mine == STORE_MINE_REVEALED && chance(simulation, 5)) {
            slander(simulation, segment);
        }
        if (lie != VIRTUAL_TRUE && chance(simulation, 1)) {
            claim_of(simulation, SIMULATION_RIVAL, segment, lie);
        } else if (lie == VIRTUAL_TRUE && chance(simulation, 1)) {
            claim_of(simulation, SIMULATION_SLANDER, segment,
                     (uint32_t)below(simulation, segment->truth->steps));
        }
        if (!send_segment(simulation, SIMULATION_ANYBODY, GAME_FINALIZE, segment)) {
            (void)send_segment(simulation, SIMULATION_ANYBODY, GAME_RENEW, segment);
        }
    }
}

void simulation_play(struct simulation *simulation)
{
    const struct simulation_view *view = &simulation->view;

    for (uint32_t i = 0; i < simulation->job_count; i++) {
        if (chance(simulation, 40)) {
            play_job(simulation, i);
        }
        if (chance(simulation, 5)) {
            (void)send_about(simulation, SIMULATION_ANYBODY, GAME_RELEASE,
                             &simulation->jobs[i].key);
            (void)send_about(simulation, SIMULATION_ANYBODY, GAME_EXPIRE, &simulation->jobs[i].key);
        }
    }
    for (uint32_t i = 0; i < view->segment_count; i++) {
        if (chance(simulation, 20)) {
            play_segment(simulation, &view->segments[i]);
        }
    }
    for (uint32_t i = 0; i < view->claim_count; i++) {
        if (chance(simulation, 50)) {
            play_claim(simulation, &view->claims[i]);
        }
    }
}
