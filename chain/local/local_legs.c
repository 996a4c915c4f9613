/* local_legs.c - how legs and tenures end: final, void, released, convicted. See local_game.h. */
#include <string.h>

#include "chain/game/vouch.h"
#include "chain/local/local_rules.h"

/* ---- the keeper ----------------------------------------------------------------- */

static bool is_of_keeper(const struct local_game *game, const struct local_segment *segment,
                         const struct game_bytes *bytes)
{
    struct vouch vouch = {.segment = segment->hash, .size = GAME_VOUCH_SIZE};

    if (bytes->size != GAME_VOUCH_SIZE) {
        return false;
    }
    memcpy(vouch.signature, bytes->bytes, GAME_VOUCH_SIZE);
    return vouch_check(&vouch, &game->place, segment->key, &segment->job.terms.keeper) ==
           VERDICT_VALID;
}

/* *noted: the first vouch of the segment. */
static enum status note_vouch(struct local_game *game, bool *noted, struct local_segment *segment,
                              const struct game_bytes *vouch)
{
    struct game_event *event;

    *noted = false;
    if (vouch->size == 0) {
        return STATUS_OK;
    }
    if (address_is_zero(&segment->job.terms.keeper)) {
        return local_refuse(game, GAME_WRONG_VOUCH, 0);
    }
    if (vouch->size > GAME_VOUCH_MAX) {
        return local_refuse(game, GAME_TOO_LONG, GAME_VOUCH_MAX);
    }
    if (!segment->tally.covered) {
        return local_refuse(game, GAME_NOT_DRAWN, 0);
    }
    if (!is_of_keeper(game, segment, vouch)) {
        return local_refuse(game, GAME_WRONG_VOUCH, 0);
    }
    if (!segment->tally.vouched) {
        segment->tally.vouched = true;
        *noted = true;
        event = local_event(game, GAME_VOUCHED, segment->key);
        event->index = segment->index;
        event->seal = segment->hash;
    }
    return STATUS_OK;
}

/* ---- final ---------------------------------------------------------------------- */

struct leg_tally local_told(const struct local_segment *segment)
{
    const struct local_tally *tally = &segment->tally;

    return (struct leg_tally){
        .wanted = game_wanted_rights(&segment->job.terms, segment->shown, segment->job.segments),
        .rights = tally->rights,
        .unseen = tally->unseen,
        .round = tally->round,
        .drawn = tally->drawn,
        .to = tally->to,
        .panel = tally->panel,
        .vouched = tally->vouched,
    };
}

/* The segment ends the job. */
static bool is_last(const struct local_segment *segment)
{
    return segment->shown->diverged || segment->index + 1 == segment->job.segments;
}

static enum status pay_seat(struct local_game *game, const struct local_segment *segment,
                            uint32_t place, wei amount)
{
    struct game_event *event = local_event(game, GAME_FEE_PAID, segment->key);
    struct local_entry entry = {0};

    TRY(local_get_seated(game, &entry, segment, place));
    event->index = segment->index;
    event->place = place;
    event->account = entry.owner;
    event->amount = amount;
    return local_credit(game, &entry.owner, amount);
}

static enum status pay_rights(struct local_game *game, struct local_segment *segment)
{
    const struct local_tally *tally = &segment->tally;
    const wei pool = segment->job.pool;

    for (uint32_t place = 0; place < tally->to; place++) {
        wei fee;

        if (local_get_place(tally, place) == LOCAL_PLACE_RIGHT) {
            fee = leg_fee(&segment->job.terms, pool, tally->rights, place >= tally->first);
            segment->job.pool -= fee;
            TRY(pay_seat(game, segment, place, fee));
        }
    }
    return STATUS_OK;
}

static enum status finish_leg(struct local_game *game, struct local_segment *segment)
{
    struct local_job *job = &segment->job;
    const uint32_t count = segment->index + 1 - job->finalized;
    const bool was_full = job->committed - job->finalized == GAME_OPEN_MAX;
    const bool last = is_last(segment);
    struct game_event *event;

    TRY(pay_rights(game, segment));
    TRY(local_credit(game, &job->solver, count * job->terms.reward));
    event = local_event(game, GAME_FINALIZED, segment->key);
    event->index = segment->index;
    event->count = count;
    event->amount = count * job->terms.reward;
    job->finalized = segment->index + 1;
    if (last) {
        TRY(local_credit(game, &job->solver, job->terms.stake));
        TRY(local_close(game, job, segment->key));
    } else if (was_full && job->refused_until_s == 0) {
        job->due_s = local_due_from_now(game, job);
    }
    return local_save_segment(game, segment);
}

/* ---- void ----------------------------------------------------------------------- */

static uint32_t count_unseen(const struct local_tally *tally)
{
    uint32_t count = 0;

    for (uint32_t place = 0; place < tally->to; place++) {
        count += local_get_place(tally, place) == LOCAL_PLACE_UNSEEN;
    }
    return count;
}

static enum status pay_unseen(struct local_game *game, const struct local_segment *segment,
                              wei amount)
{
    for (uint32_t place = 0; place < segment->tally.to; place++) {
        if (local_get_place(&segment->tally, place) == LOCAL_PLACE_UNSEEN) {
            TRY(pay_seat(game, segment, place, amount));
        }
    }
    return STATUS_OK;
}

/* What nobody can attribute burns on both sides. */
static enum status void_legs(struct local_game *game, struct local_segment *segment)
{
    struct local_job *job = &segment->job;
    const uint32_t unseen = count_unseen(&segment->tally);
    const struct leg_void lost = leg_void(&job->terms, job->pool, job->committed - job->finalized,
                                          job->segments - job->finalized, unseen, is_last(segment));
    struct game_event *event;

    if (!is_last(segment)) {
        TRY(pay_unseen(game, segment, lost.each));
    }
    TRY(local_burn(game, lost.stake - unseen * lost.each + lost.escrow + lost.pool));
    TRY(local_credit(game, &job->solver, job->terms.stake - lost.stake));
    job->pool -= lost.pool;
    job->missing_escrow = lost.escrow;
    job->missing_pool = lost.pool;
    job->barred = true;
    event = local_event(game, GAME_VOIDED, segment->key);
    event->account = job->solver;
    event->index = job->finalized;
    event->count = lost.priced;
    event->amount = lost.stake;
    event->escrow = lost.escrow;
    event->pool = lost.pool;
    local_reopen(game, job);
    return local_save_segment(game, segment);
}

/* ---- settling ------------------------------------------------------------------- */

static enum status require_no_claims(struct local_game *game, const struct local_job *job)
{
    return job->open_claims == 0 ? STATUS_OK
                                 : local_refuse(game, GAME_CLAIMS_OPEN, job->open_claims);
}

/* No leg is open before the one that begins here. */
static enum status require_first(struct local_game *game, const struct local_job *job,
                                 uint32_t leg_start)
{
    return leg_start == job->finalized ? STATUS_OK
                                       : local_refuse(game, GAME_WRONG_INDEX, job->finalized);
}

/* All is drawn, and nothing but an uncovered tail is left. */
static enum status require_tail(struct local_game *game, const struct local_job *job)
{
    if (job->drawn != job->committed) {
        return local_refuse(game, GAME_WRONG_INDEX, job->drawn);
    }
    TRY(require_first(game, job, job->leg_start));
    return require_no_claims(game, job);
}

/* A refused tail that no covered segment follows is void. */
static enum status settle_tail(struct local_game *game, struct local_segment *segment)
{
    const struct local_job *job = &segment->job;

    if (job->refused_until_s == 0) {
        return local_refuse(game, GAME_NOT_NEEDED, 0);
    }
    TRY(local_require_after(game, job->refused_until_s));
    TRY(require_tail(game, job));
    return void_legs(game, segment);
}

static uint64_t wait_end(const struct local_segment *segment, const struct leg_tally *told)
{
    return local_round_end(segment) + (uint64_t)leg_waits(told) * segment->job.terms.claim_period_s;
}

/* A refusal holds what is not vouched and whose wait was not over. */
static bool is_held(const struct local_segment *segment, const struct leg_tally *told)
{
    const struct local_job *job = &segment->job;
    const uint64_t notice_s =
        (uint64_t)job->terms.seal_period_s + job->terms.reveal_period_s + job->terms.claim_period_s;

    return job->refused_until_s != 0 && !told->vouched &&
           wait_end(segment, told) + notice_s >= job->refused_until_s;
}

static enum status settle_held(struct local_game *game, struct local_segment *segment)
{
    TRY(local_require_after(game, segment->job.refused_until_s));
    TRY(require_first(game, &segment->job, segment->tally.leg_start));
    TRY(require_no_claims(game, &segment->job));
    return void_legs(game, segment);
}

static enum status settle_told(struct local_game *game, struct local_segment *segment,
                               const struct leg_tally *told)
{
    const struct local_job *job = &segment->job;
    const bool may_go_on = job->refused_until_s == 0 || told->vouched;

    if (job->terms.seats > 0) {
        TRY(local_require_after(game, local_round_end(segment)));
    }
    if (may_go_on && leg_seats_needed(told) > 0) {
        TRY(local_close_round(game, segment));
        return local_save_segment(game, segment);
    }
    TRY(require_first(game, job, segment->tally.leg_start));
    TRY(local_require_after(game, wait_end(segment, told)));
    TRY(require_no_claims(game, job));
    return leg_is_final(told) ? finish_leg(game, segment) : void_legs(game, segment);
}

enum status local_settle(struct local_game *game, const struct game_move *move)
{
    struct local_segment segment = {0};
    struct leg_tally told;
    enum status status;
    bool noted;

    TRY(local_require_pending(game, &segment, &move->key, &move->segment));
    TRY(note_vouch(game, &noted, &segment, &move->vouch));
    if (segment.index >= segment.job.drawn) {
        return local_refuse(game, GAME_NOT_DRAWN, 0);
    }
    if (!segment.tally.covered) {
        return settle_tail(game, &segment);
    }
    told = local_told(&segment);
    status =
        is_held(&segment, &told) ? settle_held(game, &segment) : settle_told(game, &segment, &told);
    if (status != STATUS_REFUSED || !noted) {
        return status;
    }
    /* Too early for anything else, but the vouch stays. */
    memset(&game->refusal, 0, sizeof(game->refusal));
    return local_save_segment(game, &segment);
}

/* ---- without a solver ------------------------------------------------------------ */

enum status local_release(struct local_game *game, const struct game_move *move)
{
    struct local_job job = {0};
    struct game_event *event;
    wei penalty = 0;

    TRY(local_get_job(game, &job, &move->key));
    TRY(local_require_phase(game, &job, GAME_PHASE_RUNNING));
    TRY(require_tail(game, &job));
    if (job.refused_until_s != 0) {
        /* A refusal that found nothing to hold ends so. */
        if (job.committed != job.finalized || game->now_s <= job.refused_until_s) {
            return local_refuse(game, GAME_STANDS_REFUSED, job.refused_until_s);
        }
    } else {
        TRY(local_require_after(game, job.due_s));
        penalty = game->now_s > job.terms.deadline_s ? 0 : job.terms.stake / GAME_LATE_SHARE;
    }

    TRY(local_burn(game, penalty));
    TRY(local_credit(game, &job.solver, job.terms.stake - penalty));
    event = local_event(game, GAME_RELEASED, &move->key);
    event->account = job.solver;
    event->index = job.finalized;
    event->amount = penalty;
    local_reopen(game, &job);
    return local_put_job(game, &job, &move->key);
}

enum status local_convict_solver(struct local_game *game, wei *stake, struct local_job *job,
                                 const struct hash32 *key)
{
    struct game_event *event = local_event(game, GAME_CONVICTED, key);

    *stake = job->terms.stake;
    event->account = job->solver;
    event->index = job->finalized;
    local_reopen(game, job);
    return STATUS_OK;
}
