/* local_claims.c - disputes: who claims, whose clock runs, and how they end. See local_game.h. */
#include <assert.h>
#include <string.h>

#include "chain/local/local_rules.h"

enum {
    LAPSES_MAX = 4, /* by the way, when another dispute ends */
};

static enum status get_dispute(struct local_game *game, struct local_trial *trial,
                               const struct hash32 *key)
{
    trial->key = key;
    return local_get(game->store, &trial->dispute, LOCAL_DISPUTE, key, 0);
}

static enum status put_dispute(struct local_game *game, const struct local_trial *trial)
{
    return local_put(game->store, &trial->dispute, LOCAL_DISPUTE, trial->key, 0);
}

static enum status get_claimant(struct local_game *game, struct local_claimant *claimant,
                                const struct local_trial *trial, uint32_t number)
{
    return local_get(game->store, claimant, LOCAL_CLAIMANT, trial->key, number);
}

static enum status get_docket(struct local_game *game, struct local_docket *docket,
                              const struct local_trial *trial)
{
    return local_get(game->store, docket, LOCAL_DOCKET, &trial->dispute.job,
                     trial->dispute.generation);
}

static enum status put_docket(struct local_game *game, const struct local_docket *docket,
                              const struct local_trial *trial)
{
    return local_put(game->store, docket, LOCAL_DOCKET, &trial->dispute.job,
                     trial->dispute.generation);
}

struct game_event *local_claim_event(struct local_game *game, enum game_event_kind kind,
                                     const struct hash32 *claim)
{
    struct game_event *event = local_event(game, kind, NULL);

    event->claim = *claim;
    return event;
}

static enum status refuse_phase(struct local_game *game, const struct local_trial *trial)
{
    return local_refuse(game, GAME_WRONG_PHASE, trial->dispute.phase);
}

/* ---- clocks -------------------------------------------------------------------- */

static uint64_t turn_end(const struct local_dispute *dispute)
{
    return dispute->since_s +
           (dispute->turn == GAME_TURN_ACCUSED ? dispute->solver_left_s : dispute->lead_left_s);
}

static enum status tell_turn(struct local_game *game, const struct local_trial *trial)
{
    struct game_event *event = local_claim_event(game, GAME_TURN_PASSED, trial->key);
    struct local_claimant lead = {0};

    TRY(get_claimant(game, &lead, trial, trial->dispute.first));
    event->phase = trial->dispute.phase;
    event->turn = trial->dispute.turn;
    event->account = lead.owner;
    event->time_s = turn_end(&trial->dispute);
    return STATUS_OK;
}

static enum status require_mover(struct local_game *game, const struct local_trial *trial,
                                 enum game_turn turn)
{
    const struct local_dispute *dispute = &trial->dispute;
    struct local_claimant lead = {0};

    if (dispute->turn != (uint32_t)turn) {
        return local_refuse(game, GAME_WRONG_TURN, dispute->turn);
    }
    TRY(get_claimant(game, &lead, trial, dispute->first));
    TRY(local_require_sender(game, turn == GAME_TURN_ACCUSED ? &dispute->solver : &lead.owner));
    return local_require_not_after(game, turn_end(dispute));
}

enum status local_require_tried(struct local_game *game, struct local_trial *trial,
                                const struct hash32 *key, enum game_turn turn)
{
    TRY(get_dispute(game, trial, key));
    if (trial->dispute.phase != GAME_CLAIM_TRIED) {
        return refuse_phase(game, trial);
    }
    return require_mover(game, trial, turn);
}

/* The mover's clock stops, the other's runs. */
enum status local_pass_turn(struct local_game *game, struct local_trial *trial)
{
    struct local_dispute *dispute = &trial->dispute;
    uint32_t left_s = (uint32_t)(turn_end(dispute) - game->now_s);

    if (dispute->turn == GAME_TURN_ACCUSED) {
        dispute->solver_left_s = left_s;
        dispute->turn = GAME_TURN_CLAIMANT;
    } else {
        dispute->lead_left_s = left_s;
        dispute->turn = GAME_TURN_ACCUSED;
    }
    dispute->since_s = game->now_s;
    TRY(tell_turn(game, trial));
    return put_dispute(game, trial);
}

/* ---- ends ----------------------------------------------------------------------- */

/* Those of a generation that is over hold nothing. */
static enum status free_claim(struct local_game *game, const struct local_dispute *dispute)
{
    struct local_job job = {0};

    TRY(local_get_job(game, &job, &dispute->job));
    if (job.generation != dispute->generation) {
        return STATUS_OK;
    }
    job.open_claims--;
    return local_put_job(game, &job, &dispute->job);
}

/* Closes a dispute and saves it. The bonds of the claimants that are left go back. */
static enum status end_claim(struct local_game *game, struct local_trial *trial,
                             struct local_docket *docket, enum game_outcome outcome)
{
    struct local_dispute *dispute = &trial->dispute;

    for (uint32_t i = dispute->first; i < dispute->count; i++) {
        struct local_claimant claimant = {0};

        TRY(get_claimant(game, &claimant, trial, i));
        TRY(local_credit(game, &claimant.owner, claimant.bond));
        docket->outsiders -= !claimant.seat;
    }
    docket->active -= dispute->phase != GAME_CLAIM_WAITING;
    docket->open--;
    dispute->phase = GAME_CLAIM_CLOSED;
    dispute->outcome = outcome;
    TRY(free_claim(game, dispute));
    local_claim_event(game, GAME_RULED, trial->key)->outcome = outcome;
    return put_dispute(game, trial);
}

/* A conviction of a lower rank makes it needless. */
static bool is_overtaken(const struct local_docket *docket, const struct local_dispute *dispute)
{
    return docket->convicted && dispute->rank > docket->best;
}

/* ---- the queues ------------------------------------------------------------------ */

static uint64_t queue_place(uint32_t generation, uint32_t number)
{
    return (uint64_t)generation << 32 | number;
}

/* The next that waits: alarms first, each queue in its order. */
static enum status take_next(struct local_game *game, struct hash32 *key, bool *found,
                             struct local_docket *docket, const struct hash32 *job,
                             uint32_t generation)
{
    *found = true;
    if (docket->alarm < docket->alarm_count) {
        return local_get(game->store, key, LOCAL_ALARMS, job,
                         queue_place(generation, docket->alarm++));
    }
    if (docket->other < docket->other_count) {
        return local_get(game->store, key, LOCAL_OTHERS, job,
                         queue_place(generation, docket->other++));
    }
    *found = false;
    return STATUS_OK;
}

/* Both begin again with each lead: else many leads together could use up the solver's. */
static void wind_clocks(const struct local_game *game, struct local_dispute *dispute)
{
    dispute->since_s = game->now_s;
    dispute->solver_left_s = dispute->clock_s;
    dispute->lead_left_s = dispute->clock_s;
    dispute->queries = 0;
}

static enum status start_dispute(struct local_game *game, struct local_trial *trial,
                                 struct local_docket *docket)
{
    struct local_dispute *dispute = &trial->dispute;

    docket->active++;
    dispute->phase = GAME_CLAIM_CALLED;
    dispute->turn = GAME_TURN_ACCUSED;
    wind_clocks(game, dispute);
    TRY(tell_turn(game, trial));
    return put_dispute(game, trial);
}

/* Starts what waits while there is room. What was overtaken by a conviction lapses here, some at a
 * time; the rest by local_lapse(). */
static enum status start_next(struct local_game *game, struct local_docket *docket,
                              const struct hash32 *job, uint32_t generation)
{
    uint32_t lapses = 0;

    while (docket->active < GAME_ACTIVE_MAX && lapses < LAPSES_MAX) {
        struct local_trial next = {0};
        struct hash32 key;
        bool found;

        TRY(take_next(game, &key, &found, docket, job, generation));
        if (!found) {
            break;
        }
        TRY(get_dispute(game, &next, &key));
        if (next.dispute.phase != GAME_CLAIM_WAITING) {
            continue;
        }
        if (is_overtaken(docket, &next.dispute)) {
            TRY(end_claim(game, &next, docket, GAME_LAPSED));
            lapses++;
        } else {
            TRY(start_dispute(game, &next, docket));
        }
    }
    return STATUS_OK;
}

/* ---- opening -------------------------------------------------------------------- */

enum status local_seal_claim(struct local_game *game, const struct game_move *move)
{
    uint64_t height;

    TRY(local_get(game->store, &height, LOCAL_SEAL, &move->seal, 0));
    if (height != 0 && game->height <= height + GAME_SEAL_BLOCKS) {
        return local_refuse(game, GAME_SEAL_EXISTS, 0);
    }
    local_event(game, GAME_SEALED, NULL)->seal = move->seal;
    return local_put(game->store, &game->height, LOCAL_SEAL, &move->seal, 0);
}

/* A seal must be older than this block, so nobody can copy a claim from the pool, and young, so
 * nobody has one in store for every claim to come. */
enum status local_open_seal(struct local_game *game, const struct hash32 *subject,
                            const struct hash32 *salt)
{
    const struct hash32 seal = game_claim_seal(&game->sender, subject, salt);
    const uint64_t none = 0;
    uint64_t height;

    TRY(local_get(game->store, &height, LOCAL_SEAL, &seal, 0));
    if (height == 0 || game->height > height + GAME_SEAL_BLOCKS) {
        return local_refuse(game, GAME_NOT_SEALED, 0);
    }
    if (game->height <= height) {
        return local_refuse(game, GAME_TOO_EARLY, (wei)height + 1);
    }
    return local_put(game->store, &none, LOCAL_SEAL, &seal, 0);
}

/* A subject that was refuted may be claimed again, under another key. */
static enum status find_key(struct local_game *game, struct hash32 *key,
                            const struct hash32 *subject)
{
    uint32_t round;

    TRY(local_get(game->store, &round, LOCAL_SUBJECT, subject, 0));
    *key = game_claim_key(subject, round);
    return STATUS_OK;
}

/* The sender is no claimant yet. */
static enum status require_new(struct local_game *game, const struct local_trial *trial)
{
    for (uint32_t i = trial->dispute.first; i < trial->dispute.count; i++) {
        struct local_claimant claimant = {0};

        TRY(get_claimant(game, &claimant, trial, i));
        if (address_equal(&claimant.owner, &game->sender)) {
            return local_refuse(game, GAME_CLAIM_EXISTS, 0);
        }
    }
    return STATUS_OK;
}

static enum status open_dispute(struct local_game *game, struct local_trial *trial,
                                struct local_docket *docket, struct local_segment *segment,
                                const struct game_case *shown, const struct hash32 *subject)
{
    trial->dispute = (struct local_dispute){
        .solver = shown->segment.solver,
        .phase = GAME_CLAIM_WAITING,
        .generation = segment->job.generation,
        .diverged = shown->segment.diverged && shown->step + 1 == shown->segment.steps,
        .clock_s = segment->job.terms.clock_s,
        .query_fee = segment->job.terms.query_fee,
        .job = *segment->key,
        .segment = segment->hash,
        .subject = *subject,
    };
    docket->open++;
    segment->job.open_claims++;
    return local_save_segment(game, segment);
}

static void tell_claimed(struct local_game *game, const struct local_trial *trial,
                         const struct local_claimant *claimant, const struct game_case *shown)
{
    struct game_event *event = local_claim_event(game, GAME_CLAIMED, trial->key);

    event->job = trial->dispute.job;
    event->account = claimant->owner;
    event->index = shown->segment.index;
    event->step = shown->step;
    event->pre_state = shown->pre_state;
    event->post_state = shown->post_state;
    event->rank = trial->dispute.rank;
    event->amount = claimant->bond;
}

/* Puts a dispute into the queue of its kind, and starts what can. */
static enum status enqueue_dispute(struct local_game *game, const struct local_trial *trial,
                                   struct local_docket *docket, bool seat)
{
    const struct local_dispute *dispute = &trial->dispute;
    uint32_t number = seat ? docket->alarm_count++ : docket->other_count++;

    TRY(local_put(game->store, trial->key, seat ? LOCAL_ALARMS : LOCAL_OTHERS, &dispute->job,
                  queue_place(dispute->generation, number)));
    return start_next(game, docket, &dispute->job, dispute->generation);
}

/* One more claimant: of a live dispute, or of a new one. Saves everything. */
static enum status join_dispute(struct local_game *game, struct local_trial *trial,
                                struct local_docket *docket, struct local_segment *segment,
                                const struct game_case *shown, const struct hash32 *subject,
                                uint64_t rank, const struct local_claimant *claimant)
{
    struct local_dispute *dispute = &trial->dispute;
    const bool is_new = dispute->phase == GAME_CLAIM_NONE;
    bool is_ahead;

    if (is_new) {
        TRY(open_dispute(game, trial, docket, segment, shown, subject));
        docket->opened += !claimant->seat;
    }
    TRY(local_put(game->store, claimant, LOCAL_CLAIMANT, trial->key, dispute->count++));
    /* A seat brings the dispute forward. */
    is_ahead = is_new || rank < dispute->rank;
    if (is_ahead) {
        dispute->rank = rank;
    }
    tell_claimed(game, trial, claimant, shown);
    TRY(put_dispute(game, trial));
    if (is_ahead && dispute->phase == GAME_CLAIM_WAITING) {
        TRY(enqueue_dispute(game, trial, docket, claimant->seat));
    }
    return local_put(game->store, docket, LOCAL_DOCKET, segment->key, segment->job.generation);
}

enum status local_claim(struct local_game *game, const struct game_move *move)
{
    const struct game_case *shown = &move->shown;
    struct local_segment segment = {0};
    struct local_docket docket = {0};
    struct local_trial trial = {0};
    struct hash32 subject;
    struct hash32 key;
    struct local_claimant claimant = {.owner = game->sender};

    TRY(local_require_pending(game, &segment, &move->key, &shown->segment));
    subject = game_subject_hash(&segment.hash, shown->step, &shown->pre_state, &shown->post_state);
    TRY(local_open_seal(game, &subject, &move->salt));
    if (address_equal(&game->sender, &shown->segment.solver)) {
        return local_refuse(game, GAME_SELF_DEALING, 0);
    }
    /* So that open claims end, and what was refused can be void. */
    if (segment.job.refused_until_s != 0) {
        TRY(local_require_not_after(game, segment.job.refused_until_s));
    }
    TRY(local_check_case(game, &segment, shown));
    TRY(local_get(game->store, &docket, LOCAL_DOCKET, &move->key, segment.job.generation));
    if (docket.outsiders >= GAME_OUTSIDERS_MAX) {
        return local_refuse(game, GAME_FULL, GAME_OUTSIDERS_MAX);
    }
    TRY(find_key(game, &key, &subject));
    TRY(get_dispute(game, &trial, &key));
    TRY(require_new(game, &trial));
    claimant.bond = game_claim_bond(&segment.job.terms, docket.outsiders);
    TRY(local_take_bond(game, move, claimant.bond));

    docket.outsiders++;
    return join_dispute(game, &trial, &docket, &segment, shown, &subject,
                        GAME_RANK_OUTSIDER | (docket.opened + 1), &claimant);
}

enum status local_alarm(struct local_game *game, const struct game_move *move)
{
    const struct game_case *shown = &move->shown;
    struct local_claimant claimant = {.owner = game->sender, .seat = true};
    struct local_segment segment = {0};
    struct local_docket docket = {0};
    struct local_trial trial = {0};
    struct hash32 subject;
    struct hash32 key;

    TRY(local_require_pending(game, &segment, &move->key, &shown->segment));
    TRY(local_check_case(game, &segment, shown));
    TRY(local_raise(game, &segment, move));
    claimant.bond = segment.job.terms.bond;

    subject = game_subject_hash(&segment.hash, shown->step, &shown->pre_state, &shown->post_state);
    TRY(find_key(game, &key, &subject));
    TRY(get_dispute(game, &trial, &key));
    TRY(local_get(game->store, &docket, LOCAL_DOCKET, &move->key, segment.job.generation));
    return join_dispute(game, &trial, &docket, &segment, shown, &subject,
                        (uint64_t)shown->segment.index << 32 | shown->step, &claimant);
}

/* ---- the other moves ------------------------------------------------------------- */

enum status local_answer(struct local_game *game, const struct game_move *move)
{
    static const struct digest zero;
    struct local_trial trial = {0};

    TRY(get_dispute(game, &trial, &move->key));
    if (trial.dispute.phase != GAME_CLAIM_CALLED) {
        return refuse_phase(game, &trial);
    }
    TRY(require_mover(game, &trial, GAME_TURN_ACCUSED));
    if (digest_equal(&move->root, &zero)) {
        return local_refuse(game, GAME_ZERO_ROOT, 0);
    }

    trial.dispute.phase = GAME_CLAIM_TRIED;
    trial.dispute.trace_root = move->root;
    local_claim_event(game, GAME_ANSWERED, trial.key)->root = move->root;
    return local_pass_turn(game, &trial);
}

/* The first seat among the claimants that are left, else the lead. */
static enum status find_winner(struct local_game *game, struct address *winner,
                               const struct local_trial *trial)
{
    struct local_claimant claimant = {0};

    for (uint32_t i = trial->dispute.first; i < trial->dispute.count; i++) {
        TRY(get_claimant(game, &claimant, trial, i));
        if (claimant.seat || i == trial->dispute.first) {
            *winner = claimant.owner;
        }
        if (claimant.seat) {
            break;
        }
    }
    return STATUS_OK;
}

static enum status convict_solver(struct local_game *game, struct local_docket *docket,
                                  const struct local_dispute *dispute)
{
    struct local_job job = {0};

    TRY(local_get_job(game, &job, &dispute->job));
    TRY(local_convict_solver(game, &docket->pot, &job, &dispute->job));
    docket->convicted = true;
    return local_put_job(game, &job, &dispute->job);
}

enum status local_uphold(struct local_game *game, struct local_trial *trial)
{
    struct local_dispute *dispute = &trial->dispute;
    struct local_docket docket = {0};
    struct local_claimant lead = {0};

    TRY(get_docket(game, &docket, trial));
    if (dispute->turn == GAME_TURN_ACCUSED && dispute->phase == GAME_CLAIM_TRIED) {
        TRY(get_claimant(game, &lead, trial, dispute->first));
        TRY(local_credit(game, &lead.owner, dispute->query_fee)); /* no reply came */
    }
    if (!docket.convicted || dispute->rank < docket.best) {
        docket.best = dispute->rank;
        TRY(find_winner(game, &docket.winner, trial));
    }
    TRY(end_claim(game, trial, &docket, GAME_UPHELD));
    if (!docket.convicted) {
        TRY(convict_solver(game, &docket, dispute));
    }
    TRY(start_next(game, &docket, &dispute->job, dispute->generation));
    return put_docket(game, &docket, trial);
}

/* The lead loses its bond. The next claimant leads, with whole clocks; after the last the claim
 * is refuted. */
static enum status default_lead(struct local_game *game, struct local_trial *trial)
{
    struct local_dispute *dispute = &trial->dispute;
    struct local_docket docket = {0};
    struct local_claimant lead = {0};
    uint32_t round;
    wei burned;

    TRY(get_docket(game, &docket, trial));
    TRY(get_claimant(game, &lead, trial, dispute->first++));
    docket.outsiders -= !lead.seat;
    burned = docket.convicted ? lead.bond : lead.bond / 2;
    TRY(local_burn(game, burned));
    TRY(local_credit(game, &dispute->solver, lead.bond - burned));
    local_claim_event(game, GAME_DEFAULTED, trial->key)->account = lead.owner;
    if (dispute->first < dispute->count) {
        wind_clocks(game, dispute);
        TRY(tell_turn(game, trial));
        TRY(put_dispute(game, trial));
    } else {
        TRY(local_get(game->store, &round, LOCAL_SUBJECT, &dispute->subject, 0));
        round++;
        TRY(local_put(game->store, &round, LOCAL_SUBJECT, &dispute->subject, 0));
        TRY(end_claim(game, trial, &docket, GAME_REFUTED));
        TRY(start_next(game, &docket, &dispute->job, dispute->generation));
    }
    return put_docket(game, &docket, trial);
}

enum status local_timeout(struct local_game *game, const struct game_move *move)
{
    struct local_trial trial = {0};

    TRY(get_dispute(game, &trial, &move->key));
    if (trial.dispute.phase != GAME_CLAIM_CALLED && trial.dispute.phase != GAME_CLAIM_TRIED) {
        return refuse_phase(game, &trial);
    }
    TRY(local_require_after(game, turn_end(&trial.dispute)));
    return trial.dispute.turn == GAME_TURN_ACCUSED ? local_uphold(game, &trial)
                                                   : default_lead(game, &trial);
}

enum status local_lapse(struct local_game *game, const struct game_move *move)
{
    struct local_trial trial = {0};
    struct local_docket docket = {0};

    TRY(get_dispute(game, &trial, &move->key));
    if (trial.dispute.phase != GAME_CLAIM_WAITING && trial.dispute.phase != GAME_CLAIM_CALLED) {
        return refuse_phase(game, &trial);
    }
    TRY(get_docket(game, &docket, &trial));
    if (!is_overtaken(&docket, &trial.dispute)) {
        return local_refuse(game, GAME_NOT_LAPSED, 0);
    }

    TRY(end_claim(game, &trial, &docket, GAME_LAPSED));
    TRY(start_next(game, &docket, &trial.dispute.job, trial.dispute.generation));
    return put_docket(game, &docket, &trial);
}

enum status local_pay(struct local_game *game, const struct game_move *move)
{
    struct local_docket docket = {0};
    struct local_job job = {0};
    struct game_event *event;
    wei share;

    TRY(local_get(game->store, &docket, LOCAL_DOCKET, &move->key, move->generation));
    if (docket.pot == 0) {
        return local_refuse(game, GAME_NOTHING_OWED, 0);
    }
    if (docket.open != 0) {
        return local_refuse(game, GAME_NOT_PAID, docket.open);
    }

    share = docket.pot / GAME_POT_SHARE;
    TRY(local_get_job(game, &job, &move->key));
    TRY(local_credit(game, &docket.winner, share));
    TRY(local_credit(game, &job.client, share));
    TRY(local_burn(game, docket.pot - 2 * share));
    docket.pot = 0;
    event = local_event(game, GAME_PAID, &move->key);
    event->generation = move->generation;
    event->account = docket.winner;
    event->amount = share;
    return local_put(game->store, &docket, LOCAL_DOCKET, &move->key, move->generation);
}
