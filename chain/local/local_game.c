/* local_game.c - see local_game.h: the moves of client and solver. */
#include "chain/local/local_game.h"

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
    const struct term_range ranges[] = {
        {digest_equal(&terms->job_id, &zero) ? 0 : 1, 1, 1, 0},
        {terms->steps, 1, GAME_STEPS_MAX, 5},
        {terms->segment_steps, 1, GAME_STATES_MAX, 6},
        {game_segment_count(terms), 1, GAME_SEGMENTS_MAX, 6},
        {terms->reward, 1, WEI_MAX, 7},
        {terms->fee, terms->seats == 0 ? 0 : 1, WEI_MAX, 8},
        {terms->stake, 1, WEI_MAX, 9},
        {terms->bond, terms->fee == 0 ? 1 : GAME_FEES_OF_BOND * terms->fee,
         terms->stake < bond_max ? terms->stake : bond_max, 10},
        {terms->query_fee, 0, game_query_fee_max(terms), 11},
        {terms->seats, 0, GAME_SEATS_MAX, 12},
        {terms->coverage_ppm, 0, terms->seats == 0 ? 0 : GAME_PPM, 13},
        {terms->panel_least, terms->seats, GAME_PANEL_LEAST, 14},
        {terms->segment_period_s, 1, GAME_PERIOD_MAX, 18},
        {terms->seal_period_s, 1, GAME_PERIOD_MAX, 19},
        {terms->reveal_period_s, 1, GAME_PERIOD_MAX, 20},
        {terms->claim_period_s, 1, GAME_PERIOD_MAX, 21},
        {terms->clock_s, 1, GAME_PERIOD_MAX, 22},
        {terms->deadline_s, (wei)now_s + 1, GAME_TIME_MAX / 2, 23},
    };

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        if (ranges[i].value < ranges[i].least || ranges[i].value > ranges[i].most) {
            return ranges[i].field;
        }
    }
    return game_escrow(terms) > WEI_MAX ? 7 : -1;
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
    job.phase = GAME_PHASE_OPEN;
    job.opened_at_s = game->now_s;
    event = local_event(game, GAME_OPENED, &key);
    event->account = game->sender;
    event->terms = move->terms;
    event->contact = move->contact;
    return local_put_job(game, &job, &key);
}

static enum status play_close(struct local_game *game, const struct game_move *move)
{
    struct local_job job = {0};

    TRY(local_get_job(game, &job, &move->key));
    TRY(local_require_phase(game, &job, GAME_PHASE_OPEN));
    if (game->now_s <= job.terms.deadline_s) {
        TRY(local_require_sender(game, &job.client));
    }

    TRY(local_close(game, &job, &move->key));
    return local_put_job(game, &job, &move->key);
}

/* The client puts back what a void burned. */
static enum status play_resume(struct local_game *game, const struct game_move *move)
{
    struct local_job job = {0};
    struct game_event *event;

    TRY(local_get_job(game, &job, &move->key));
    TRY(local_require_phase(game, &job, GAME_PHASE_OPEN));
    TRY(local_require_sender(game, &job.client));
    if (!job.barred) {
        return local_refuse(game, GAME_NOT_NEEDED, 0);
    }
    TRY(local_require_not_after(game, job.terms.deadline_s));
    TRY(local_require_value(game, move, job.missing_escrow + job.missing_pool));

    event = local_event(game, GAME_RESUMED, &move->key);
    event->escrow = job.missing_escrow;
    event->pool = job.missing_pool;
    job.pool += job.missing_pool;
    job.missing_escrow = 0;
    job.missing_pool = 0;
    job.barred = false;
    job.opened_at_s = game->now_s;
    return local_put_job(game, &job, &move->key);
}

/* The next segment is the last. */
static enum status play_stop(struct local_game *game, const struct game_move *move)
{
    struct local_job job = {0};
    uint32_t segments;

    TRY(local_get_job(game, &job, &move->key));
    TRY(local_require_phase(game, &job, GAME_PHASE_RUNNING));
    TRY(local_require_sender(game, &job.client));
    segments = job.committed + 1;
    if (segments >= job.segments || job.ended) {
        return local_refuse(game, GAME_NOT_NEEDED, 0);
    }

    TRY(local_credit(game, &job.client, (job.segments - segments) * job.terms.reward));
    job.segments = segments;
    local_event(game, GAME_STOPPED, &move->key)->count = segments;
    return local_put_job(game, &job, &move->key);
}

static enum status play_refuse(struct local_game *game, const struct game_move *move)
{
    struct local_job job = {0};
    struct game_event *event;

    TRY(local_get_job(game, &job, &move->key));
    TRY(local_require_phase(game, &job, GAME_PHASE_RUNNING));
    if (!address_equal(&game->sender, &job.terms.keeper)) {
        TRY(local_require_sender(game, &job.client));
    }
    if (job.committed == job.finalized || job.refused_until_s != 0) {
        return local_refuse(game, GAME_NOT_NEEDED, 0);
    }

    job.refused_until_s = game->now_s + job.terms.seal_period_s + job.terms.reveal_period_s +
                          job.terms.claim_period_s;
    event = local_event(game, GAME_REFUSED, &move->key);
    event->account = game->sender;
    event->time_s = job.refused_until_s;
    return local_put_job(game, &job, &move->key);
}

/* ---- the solver ------------------------------------------------------------- */

/* A panel that nobody chose has time to fill, so that one party cannot fill it first. */
static enum status require_panel(struct local_game *game, const struct local_job *job)
{
    const struct game_terms *terms = &job->terms;

    if (terms->seats > 0 && hash32_is_zero(&terms->verifiers)) {
        TRY(local_require_after(game, job->opened_at_s + terms->seal_period_s));
    }
    return job->entries < terms->panel_least ? local_refuse(game, GAME_PANEL_SHORT, job->entries)
                                             : STATUS_OK;
}

static enum status play_accept(struct local_game *game, const struct game_move *move)
{
    struct local_job job = {0};
    struct game_event *event;

    TRY(local_get_job(game, &job, &move->key));
    TRY(local_require_phase(game, &job, GAME_PHASE_OPEN));
    if (job.barred) {
        return local_refuse(game, GAME_BARRED, 0);
    }
    TRY(local_require_not_after(game, job.terms.deadline_s));
    TRY(require_panel(game, &job));
    TRY(local_require_value(game, move, job.terms.stake));
    TRY(local_require_allowed(game, &job.terms.solvers, &move->path));
    TRY(local_require_short(game, &move->contact));

    job.phase = GAME_PHASE_RUNNING;
    job.solver = game->sender;
    job.due_s = local_due_from_now(game, &job);
    event = local_event(game, GAME_ACCEPTED, &move->key);
    event->account = game->sender;
    event->time_s = job.due_s;
    event->contact = move->contact;
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
    if (job->refused_until_s != 0) {
        return local_refuse(game, GAME_STANDS_REFUSED, job->refused_until_s);
    }
    if (job->committed - job->finalized >= GAME_OPEN_MAX) {
        return local_refuse(game, GAME_FULL, GAME_OPEN_MAX);
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
    job.due_s = job.committed - job.finalized < GAME_OPEN_MAX ? local_due_from_now(game, &job) : 0;
    job.ended = move->diverged;
    return local_put_job(game, &job, &move->key);
}

/* ---- money ------------------------------------------------------------------- */

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

/* ---- all moves -------------------------------------------------------------- */

static const struct {
    enum status (*play)(struct local_game *game, const struct game_move *move);
    bool payable;
} rules[GAME_MOVE_KINDS] = {
    [GAME_OPEN] = {play_open, true},          [GAME_CLOSE] = {play_close, false},
    [GAME_RESUME] = {play_resume, true},      [GAME_STOP] = {play_stop, false},
    [GAME_REFUSE] = {play_refuse, false},     [GAME_ACCEPT] = {play_accept, true},
    [GAME_COMMIT] = {play_commit, false},     [GAME_ENLIST] = {local_enlist, true},
    [GAME_DEPART] = {local_depart, false},    [GAME_ANNOUNCE] = {local_announce, false},
    [GAME_DRAW] = {local_draw, false},        [GAME_SEAL] = {local_seal, false},
    [GAME_REVEAL] = {local_reveal, false},    [GAME_UNSEEN] = {local_unseen, false},
    [GAME_SETTLE] = {local_settle, false},    [GAME_RELEASE] = {local_release, false},
    [GAME_WITHDRAW] = {play_withdraw, false}, [GAME_SEAL_CLAIM] = {local_seal_claim, false},
    [GAME_CLAIM] = {local_claim, true},       [GAME_ALARM] = {local_alarm, false},
    [GAME_ANSWER] = {local_answer, false},    [GAME_QUERY] = {local_query, true},
    [GAME_REPLY] = {local_reply, false},      [GAME_CONVICT] = {local_convict, false},
    [GAME_TIMEOUT] = {local_timeout, false},  [GAME_LAPSE] = {local_lapse, false},
    [GAME_PAY] = {local_pay, false},          [GAME_CHALLENGE] = {local_challenge, false},
    [GAME_FIX] = {local_fix, false},
};

enum status local_game_play(struct local_game *game, const struct game_move *move)
{
    game->event_count = 0;
    memset(&game->refusal, 0, sizeof(game->refusal));
    if (move->value != 0 && !rules[move->kind].payable) {
        return local_refuse(game, GAME_REFUSED_NOT, 0);
    }
    return rules[move->kind].play(game, move);
}
