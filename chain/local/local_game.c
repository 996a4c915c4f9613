/* local_game.c - see local_game.h: the moves of client and solver, and the ends of segments and
 * jobs. */
#include "chain/local/local_game.h"

#include <assert.h>
#include <string.h>

#include "chain/local/local_rules.h"

enum {
    BOND_BITS = 85, /* five bonds fit where a contract keeps one */
};

/* ---- the client ------------------------------------------------------------- */

struct term_range {
    wei value;
    wei least;
    wei most;
    int field;
};

/* The position in Terms of the first term that is out of range; -1 when all are good. The order is
 * that of Registry.sol. */
static int find_bad_term(const struct game_terms *terms, uint64_t now_s)
{
    static const struct digest zero;
    const wei bond_max = ((wei)1 << BOND_BITS) - 1;
    const wei from = terms->reward_from;
    const struct term_range ranges[] = {
        {digest_equal(&terms->job_id, &zero) ? 0 : 1, 1, 1, 0},
        {terms->steps, 1, GAME_STEPS_MAX, 5},
        {terms->segment_steps, 1, GAME_STATES_MAX, 6},
        {game_segment_count(terms), 1, GAME_SEGMENTS_MAX, 6},
        {terms->reward_to, from == 0 ? 1 : from, WEI_MAX, 8},
        {terms->rise_time_s, from == terms->reward_to ? 0 : 1, GAME_PERIOD_MAX, 9},
        {terms->fee, 0, WEI_MAX, 10},
        {terms->stake, 1, WEI_MAX, 11},
        {terms->bond, terms->fee == 0 ? 1 : GAME_FEES_OF_BOND * terms->fee,
         terms->stake < bond_max ? terms->stake : bond_max, 12},
        {terms->query_fee, 0, WEI_MAX, 13},
        {terms->seats, 0, GAME_SEATS_MAX, 14},
        {terms->coverage_ppm, 0, terms->seats == 0 ? 0 : GAME_PPM, 15},
        {terms->panel_least, terms->seats, GAME_PANEL_LEAST, 16},
        {terms->held_ppm, 0, GAME_HELD_PPM_MAX, 19},
        {terms->segment_period_s, 1, GAME_PERIOD_MAX, 20},
        {terms->seal_period_s, 1, GAME_PERIOD_MAX, 21},
        {terms->reveal_period_s, 1, GAME_PERIOD_MAX, 22},
        {terms->claim_period_s, 1, GAME_PERIOD_MAX, 23},
        {terms->clock_s, 1, GAME_PERIOD_MAX, 24},
        {terms->delivery_period_s, 1, GAME_PERIOD_MAX, 25},
        {terms->deadline_s, (wei)now_s + 1, GAME_TIME_MAX / 2, 26},
    };

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        if (ranges[i].value < ranges[i].least || ranges[i].value > ranges[i].most) {
            return ranges[i].field;
        }
    }
    return game_escrow(terms) > WEI_MAX ? 8 : -1;
}

static enum status play_open(struct local_game *game, const struct game_move *move)
{
    int bad_term = find_bad_term(&move->terms, game->now_s);
    struct local_job job = {0};
    struct game_event *event;
    struct hash32 key;

    if (bad_term >= 0) {
        return local_refuse(game, GAME_BAD_TERMS, (wei)bad_term);
    }
    TRY(local_require_short(game, &move->contact));
    TRY(local_require_value(game, move, game_escrow(&move->terms)));
    key = game_job_key(&game->place, &game->sender, &move->terms.job_id, move->terms.salt);
    TRY(local_get_job(game, &job, &key));
    if (job.phase != GAME_PHASE_NONE) {
        return local_refuse(game, GAME_JOB_EXISTS, 0);
    }

    job.client = game->sender;
    job.segments = game_segment_count(&move->terms);
    job.pool = game_fees(&move->terms, job.segments);
    job.terms = move->terms;
    local_reopen(game, &job);
    event = local_event(game, GAME_OPENED, &key);
    event->account = game->sender;
    event->terms = move->terms;
    event->contact = move->contact;
    return local_put_job(game, &job, &key);
}

/* The client gets what was for segments that never will be final. */
static enum status close_job(struct local_game *game, struct local_job *job)
{
    wei rest = (job->segments - job->finalized) * job->terms.reward_to + job->pool;

    job->pool = 0;
    job->phase = GAME_PHASE_CLOSED;
    job->closed_at_s = game->now_s;
    return local_credit(game, &job->client, rest);
}

static enum status play_cancel(struct local_game *game, const struct game_move *move)
{
    struct local_job job = {0};

    TRY(local_get_job(game, &job, &move->key));
    TRY(local_require_phase(game, &job, GAME_PHASE_OPEN));
    TRY(local_require_sender(game, &job.client));

    TRY(close_job(game, &job));
    (void)local_event(game, GAME_CANCELLED, &move->key);
    return local_put_job(game, &job, &move->key);
}

static enum status play_rewind(struct local_game *game, const struct game_move *move)
{
    struct local_job job = {0};

    TRY(local_get_job(game, &job, &move->key));
    TRY(local_require_phase(game, &job, GAME_PHASE_OPEN));
    TRY(local_require_sender(game, &job.client));
    if (move->index >= job.finalized) {
        return local_refuse(game, GAME_WRONG_INDEX, job.finalized);
    }
    TRY(local_require_value(game, move, game_rewind_price(&job.terms, move->index, job.finalized)));

    job.pool += game_fees(&job.terms, job.finalized - move->index);
    job.generation++;
    job.finalized = move->index;
    job.committed = move->index;
    local_event(game, GAME_REWOUND, &move->key)->index = move->index;
    return local_put_job(game, &job, &move->key);
}

static enum status pay_held(struct local_game *game, struct local_job *job,
                            const struct hash32 *key, const struct address *to)
{
    struct game_event *event = local_event(game, GAME_DELIVERED, key);

    event->account = *to;
    event->amount = job->held;
    TRY(local_credit(game, to, job->held));
    job->held = 0;
    return local_put_job(game, job, key);
}

static enum status play_acknowledge(struct local_game *game, const struct game_move *move)
{
    struct local_job job = {0};

    TRY(local_get_job(game, &job, &move->key));
    TRY(local_require_phase(game, &job, GAME_PHASE_CLOSED));
    TRY(local_require_sender(game, &job.client));
    if (job.held == 0 || job.asked) {
        return local_refuse(game, GAME_NOT_NEEDED, 0);
    }
    TRY(local_require_not_after(game, job.closed_at_s + job.terms.delivery_period_s));
    return pay_held(game, &job, &move->key, &job.solver);
}

static enum status play_ask_panel(struct local_game *game, const struct game_move *move)
{
    struct hash32 hash = game_segment_hash(&move->key, &move->segment);
    struct game_segment asked = move->segment;
    struct hash32 standing;
    struct local_job job = {0};

    TRY(local_get_job(game, &job, &move->key));
    TRY(local_require_phase(game, &job, GAME_PHASE_CLOSED));
    TRY(local_require_sender(game, &job.client));
    if (job.held == 0 || job.asked || job.terms.seats == 0) {
        return local_refuse(game, GAME_NOT_NEEDED, 0);
    }
    TRY(local_require_not_after(game, job.closed_at_s + job.terms.delivery_period_s / 2));
    TRY(local_get(game->store, &standing, LOCAL_SEGMENT, &move->key, move->segment.index));
    if ((uint64_t)move->segment.index + 1 != job.finalized || !hash32_equal(&standing, &hash)) {
        return local_refuse(game, GAME_WRONG_SEGMENT, 0);
    }
    TRY(local_require_value(game, move, game_segment_fees(&job.terms)));

    /* As a commit of now, in the place of the last segment. */
    asked.time_s = game->now_s;
    asked.height = game->height;
    asked.panel = job.entries;
    hash = game_segment_hash(&move->key, &asked);
    TRY(local_put(game->store, &hash, LOCAL_SEGMENT, &move->key, asked.index));
    job.pool = move->value;
    job.asked = true;
    (void)local_event(game, GAME_ASKED, &move->key);
    return local_put_job(game, &job, &move->key);
}

/* ---- the solver ------------------------------------------------------------- */

/* A commit may come until the next is due, and never after the deadline. */
static uint64_t due_from_now(const struct local_game *game, const struct local_job *job)
{
    uint64_t due_s = game->now_s + job->terms.segment_period_s;

    return due_s < job->terms.deadline_s ? due_s : job->terms.deadline_s;
}

static enum status play_accept(struct local_game *game, const struct game_move *move)
{
    struct local_job job = {0};
    struct game_event *event;
    wei reward;

    TRY(local_get_job(game, &job, &move->key));
    TRY(local_require_phase(game, &job, GAME_PHASE_OPEN));
    TRY(local_require_not_after(game, job.terms.deadline_s));
    reward = game_reward(&job.terms, job.opened_at_s, game->now_s);
    if (reward < move->least_reward) {
        return local_refuse(game, GAME_TOO_LITTLE, reward);
    }
    if (job.active < job.terms.panel_least) {
        return local_refuse(game, GAME_PANEL_SHORT, job.active);
    }
    TRY(local_require_value(game, move, job.terms.stake));
    TRY(local_require_allowed(game, &job.terms.solvers, &move->path));
    TRY(local_require_short(game, &move->contact));

    job.phase = GAME_PHASE_RUNNING;
    job.solver = game->sender;
    job.due_s = due_from_now(game, &job);
    job.reward = reward;
    job.accepted_at_s = game->now_s;
    job.start = job.finalized;
    event = local_event(game, GAME_ACCEPTED, &move->key);
    event->account = game->sender;
    event->amount = reward;
    event->time_s = job.due_s;
    event->contact = move->contact;
    return local_put_job(game, &job, &move->key);
}

/* The solver goes, with what it is owed. */
static enum status leave_job(struct local_game *game, struct local_job *job, wei penalty)
{
    TRY(local_burn(game, penalty));
    TRY(local_credit(game, &job->solver, job->terms.stake - penalty + job->held));
    job->held = 0;
    local_reopen(game, job);
    return STATUS_OK;
}

static enum status play_step_back(struct local_game *game, const struct game_move *move)
{
    struct local_job job = {0};
    struct game_event *event;
    wei penalty;

    TRY(local_get_job(game, &job, &move->key));
    TRY(local_require_phase(game, &job, GAME_PHASE_RUNNING));
    TRY(local_require_sender(game, &job.solver));
    if (job.committed != job.start) {
        return local_refuse(game, GAME_WRONG_INDEX, job.start);
    }
    TRY(local_require_not_after(game, job.accepted_at_s + job.terms.segment_period_s));

    penalty = job.terms.stake / GAME_BACK_SHARE;
    TRY(leave_job(game, &job, penalty));
    event = local_event(game, GAME_STEPPED_BACK, &move->key);
    event->account = game->sender;
    event->amount = penalty;
    return local_put_job(game, &job, &move->key);
}

static uint32_t segment_steps(const struct local_job *job, uint32_t index)
{
    uint64_t rest = job->terms.steps - local_first_step(job, index);

    return rest < job->terms.segment_steps ? (uint32_t)rest : job->terms.segment_steps;
}

static enum status require_may_commit(struct local_game *game, const struct local_job *job,
                                      const struct game_move *move)
{
    static const struct digest zero;
    const uint32_t steps = move->states.count;
    uint32_t most;

    TRY(local_require_phase(game, job, GAME_PHASE_RUNNING));
    TRY(local_require_sender(game, &job->solver));
    if (move->index != job->committed) {
        return local_refuse(game, GAME_WRONG_INDEX, job->committed);
    }
    if (move->index >= job->segments || job->ended) {
        return local_refuse(game, GAME_WRONG_INDEX, job->segments);
    }
    TRY(local_require_not_after(game, job->due_s));
    most = segment_steps(job, move->index);
    if (move->diverged ? steps == 0 || steps > most : steps != most) {
        return local_refuse(game, GAME_WRONG_STEPS, most);
    }
    for (uint32_t i = 0; i < steps; i++) {
        if (digest_equal(&move->states.hashes[i], &zero)) {
            return local_refuse(game, GAME_ZERO_ROOT, 0);
        }
    }
    return STATUS_OK;
}

static enum status play_commit(struct local_game *game, const struct game_move *move)
{
    struct local_job job = {0};
    struct game_event *event;
    struct hash32 hash;

    TRY(local_get_job(game, &job, &move->key));
    TRY(require_may_commit(game, &job, move));

    event = local_event(game, GAME_COMMITTED, &move->key);
    event->segment = (struct game_segment){
        .index = move->index,
        .generation = job.generation,
        .root = game_segment_root(&move->states, local_first_step(&job, move->index)),
        .steps = move->states.count,
        .time_s = game->now_s,
        .height = game->height,
        .solver = game->sender,
        .panel = job.entries,
        .diverged = move->diverged};
    event->index = move->index;
    event->states = move->states;
    hash = game_segment_hash(&move->key, &event->segment);
    TRY(local_put(game->store, &hash, LOCAL_SEGMENT, &move->key, move->index));
    job.committed = move->index + 1;
    job.due_s = due_from_now(game, &job);
    job.ended = job.ended || move->diverged;
    return local_put_job(game, &job, &move->key);
}

/* ---- ends -------------------------------------------------------------------- */

/* The first segment that is not final can come to its end. Claims about any other hold it up too:
 * they share one queue, and a full one would else shut out the claim that this segment needs. */
static enum status require_claims_over(struct local_game *game, struct local_segment *segment,
                                       const struct game_move *move)
{
    const struct local_job *job = &segment->job;

    TRY(local_require_committed(game, segment, &move->key, &move->segment));
    if (move->segment.index != job->finalized) {
        return local_refuse(game, GAME_WRONG_INDEX, job->finalized);
    }
    if (job->terms.seats != 0 && segment->tally.start_s == 0) {
        return local_refuse(game, GAME_NOT_DRAWN, 0);
    }
    TRY(local_require_after(game, local_claim_end(segment)));
    return job->open_claims == 0 ? STATUS_OK
                                 : local_refuse(game, GAME_CLAIMS_OPEN, job->open_claims);
}

/* More must say right than cannot get it, but silence blocks nothing where the client chose who may
 * be drawn. */
static bool is_enough_asleep(const struct local_segment *segment)
{
    int32_t score = local_score(&segment->tally);

    return segment->tally.asleep && (score > 0 || (score > GAME_SCORE_VOID &&
                                                   !hash32_is_zero(&segment->job.terms.verifiers)));
}

static enum status pay_solver(struct local_game *game, struct local_job *job)
{
    wei kept = job->reward * job->terms.held_ppm / GAME_PPM;

    job->held += kept;
    TRY(local_credit(game, &job->solver, job->reward - kept));
    return local_credit(game, &job->client, job->terms.reward_to - job->reward);
}

static enum status play_finalize(struct local_game *game, const struct game_move *move)
{
    struct local_segment segment = {0};
    struct local_job *job = &segment.job;
    struct game_event *event;

    TRY(require_claims_over(game, &segment, move));
    if (segment.tally.covered) {
        TRY(local_close_round(game, &segment));
        if (local_score(&segment.tally) < (int32_t)job->terms.seats &&
            !is_enough_asleep(&segment)) {
            return local_refuse(game, GAME_COVERAGE_MISSING, segment.tally.rights);
        }
        TRY(local_pay_rights(game, &segment));
    }

    TRY(pay_solver(game, job));
    job->finalized++;
    event = local_event(game, GAME_FINALIZED, &move->key);
    event->index = move->segment.index;
    event->amount = job->reward;
    if (job->finalized == job->segments || move->segment.diverged) {
        TRY(local_credit(game, &job->solver, job->terms.stake));
        TRY(close_job(game, job));
        local_event(game, GAME_CLOSED, &move->key)->index = job->finalized;
    }
    return local_save_segment(game, &segment);
}

static enum status play_forfeit(struct local_game *game, const struct game_move *move)
{
    struct local_segment segment = {0};
    struct local_job *job = &segment.job;
    const struct local_tally *tally = &segment.tally;
    struct game_event *event;
    bool is_refused;
    wei penalty;

    TRY(require_claims_over(game, &segment, move));
    if (!tally->covered) {
        return local_refuse(game, GAME_NOT_NEEDED, 0);
    }
    TRY(local_close_round(game, &segment));
    is_refused = local_score(tally) <= GAME_SCORE_VOID;
    if (!is_refused && (!tally->asleep || is_enough_asleep(&segment))) {
        return local_refuse(game, GAME_NOT_NEEDED, 0);
    }

    penalty = is_refused ? job->terms.stake / GAME_LATE_SHARE : 0;
    event = local_event(game, GAME_VOIDED, &move->key);
    event->account = job->solver;
    event->index = job->finalized;
    event->amount = penalty;
    TRY(leave_job(game, job, penalty));
    local_void_committed(job);
    return local_save_segment(game, &segment);
}

static enum status play_release(struct local_game *game, const struct game_move *move)
{
    struct local_job job = {0};
    struct game_event *event;
    wei penalty;

    TRY(local_get_job(game, &job, &move->key));
    TRY(local_require_phase(game, &job, GAME_PHASE_RUNNING));
    TRY(local_require_after(game, job.due_s));
    /* After the deadline a job expires, and its solver has lost nothing. */
    TRY(local_require_not_after(game, job.terms.deadline_s));
    if (job.committed != job.finalized) {
        return local_refuse(game, GAME_WRONG_INDEX, job.finalized);
    }

    penalty = job.terms.stake / GAME_LATE_SHARE;
    event = local_event(game, GAME_RELEASED, &move->key);
    event->account = job.solver;
    event->amount = penalty;
    TRY(leave_job(game, &job, penalty));
    return local_put_job(game, &job, &move->key);
}

static enum status play_expire(struct local_game *game, const struct game_move *move)
{
    struct local_job job = {0};

    TRY(local_get_job(game, &job, &move->key));
    if (job.phase != GAME_PHASE_OPEN) {
        TRY(local_require_phase(game, &job, GAME_PHASE_RUNNING));
    }
    TRY(local_require_after(game, job.terms.deadline_s));
    /* What was committed in time is carried to its end first. */
    if (job.committed != job.finalized) {
        return local_refuse(game, GAME_WRONG_INDEX, job.finalized);
    }

    if (job.phase == GAME_PHASE_RUNNING) {
        TRY(leave_job(game, &job, 0));
    }
    TRY(close_job(game, &job));
    local_event(game, GAME_CLOSED, &move->key)->index = job.finalized;
    return local_put_job(game, &job, &move->key);
}

/* What the panel says, once the client has asked it. */
static enum status deliver_asked(struct local_game *game, struct local_segment *asked)
{
    struct local_job *job = &asked->job;
    const struct local_tally *tally = &asked->tally;
    wei rest;

    TRY(local_get(game->store, &asked->hash, LOCAL_SEGMENT, asked->key, asked->index));
    TRY(local_get(game->store, &asked->tally, LOCAL_TALLY, &asked->hash, 0));
    if (!tally->closed || (!local_has_score(asked) && !tally->asleep)) {
        return local_refuse(game, GAME_COVERAGE_MISSING, tally->rights);
    }
    TRY(local_pay_rights(game, asked));
    rest = job->pool;
    job->pool = 0;
    TRY(local_credit(game, &job->client, rest));
    return local_save_segment(game, asked);
}

static enum status play_deliver(struct local_game *game, const struct game_move *move)
{
    struct local_segment asked = {.key = &move->key};
    struct local_job *job = &asked.job;
    const struct address *to = &job->solver;

    TRY(local_get_job(game, job, &move->key));
    TRY(local_require_phase(game, job, GAME_PHASE_CLOSED));
    if (job->held == 0) {
        return local_refuse(game, GAME_NOT_NEEDED, 0);
    }
    if (job->asked) {
        asked.index = job->finalized - 1;
        TRY(deliver_asked(game, &asked));
        to = local_score(&asked.tally) <= GAME_SCORE_VOID ? &job->client : &job->solver;
    } else {
        TRY(local_require_after(game, job->closed_at_s + job->terms.delivery_period_s));
    }
    return pay_held(game, job, &move->key, to);
}

static enum status play_withdraw(struct local_game *game, const struct game_move *move)
{
    const struct hash32 own = local_key_of_account(&game->sender);
    const struct hash32 target = local_key_of_account(&move->account);
    struct local_account account = {0};
    struct game_event *event;
    wei amount;

    TRY(local_get(game->store, &account, LOCAL_ACCOUNT, &own, 0));
    amount = account.owed;
    if (amount == 0) {
        return local_refuse(game, GAME_NOTHING_OWED, 0);
    }
    if (address_is_zero(&move->account)) {
        return local_refuse(game, GAME_ZERO_ADDRESS, 0);
    }

    account.owed = 0;
    TRY(local_put(game->store, &account, LOCAL_ACCOUNT, &own, 0));
    event = local_event(game, GAME_WITHDRAWN, NULL);
    event->account = game->sender;
    event->other = move->account;
    event->amount = amount;
    TRY(local_get(game->store, &account, LOCAL_ACCOUNT, &target, 0));
    account.purse += amount;
    return local_put(game->store, &account, LOCAL_ACCOUNT, &target, 0);
}

enum status local_convict_solver(struct local_game *game, wei *stake, struct local_job *job,
                                 const struct hash32 *key)
{
    struct game_event *event = local_event(game, GAME_CONVICTED, key);

    *stake = job->terms.stake;
    event->account = job->solver;
    event->index = job->finalized;
    TRY(local_credit(game, &job->client, job->held));
    job->held = 0;
    local_void_committed(job);
    local_reopen(game, job);
    return STATUS_OK;
}

/* ---- all moves -------------------------------------------------------------- */

static const struct {
    enum status (*play)(struct local_game *game, const struct game_move *move);
    bool payable;
} rules[GAME_MOVE_KINDS] = {
    [GAME_OPEN] = {play_open, true},
    [GAME_CANCEL] = {play_cancel, false},
    [GAME_REWIND] = {play_rewind, true},
    [GAME_ACKNOWLEDGE] = {play_acknowledge, false},
    [GAME_ASK_PANEL] = {play_ask_panel, true},
    [GAME_ACCEPT] = {play_accept, true},
    [GAME_STEP_BACK] = {play_step_back, false},
    [GAME_COMMIT] = {play_commit, false},
    [GAME_ENLIST] = {local_enlist, true},
    [GAME_LEAVE] = {local_leave, false},
    [GAME_ANNOUNCE] = {local_announce, false},
    [GAME_DRAW] = {local_draw, false},
    [GAME_SEAL] = {local_seal, false},
    [GAME_REVEAL] = {local_reveal, false},
    [GAME_RENEW] = {local_renew, false},
    [GAME_FINALIZE] = {play_finalize, false},
    [GAME_FORFEIT] = {play_forfeit, false},
    [GAME_RELEASE] = {play_release, false},
    [GAME_EXPIRE] = {play_expire, false},
    [GAME_DELIVER] = {play_deliver, false},
    [GAME_WITHDRAW] = {play_withdraw, false},
    [GAME_SEAL_CLAIM] = {local_seal_claim, false},
    [GAME_CLAIM] = {local_claim, true},
    [GAME_ALARM] = {local_alarm, false},
    [GAME_ANSWER] = {local_answer, false},
    [GAME_QUERY] = {local_query, true},
    [GAME_REPLY] = {local_reply, false},
    [GAME_CONVICT] = {local_convict, false},
    [GAME_TIMEOUT] = {local_timeout, false},
    [GAME_LAPSE] = {local_lapse, false},
    [GAME_PAY] = {local_pay, false},
    [GAME_CHALLENGE] = {local_challenge, false},
    [GAME_FIX] = {local_fix, false},
};

enum status local_game_play(struct local_game *game, const struct game_move *move)
{
    game->event_count = 0;
    memset(&game->refusal, 0, sizeof(game->refusal));
    if ((move->value != 0 && !rules[move->kind].payable) ||
        move->verdict > GAME_VERDICT_UNAVAILABLE) {
        return local_refuse(game, GAME_REFUSED_NOT, 0);
    }
    return rules[move->kind].play(game, move);
}
