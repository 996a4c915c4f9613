/* local_rules.c - see local_rules.h. */
#include "chain/local/local_rules.h"

#include <assert.h>
#include <string.h>

enum status local_refuse(struct local_game *game, enum game_refusal_kind kind, wei number)
{
    memset(&game->refusal, 0, sizeof(game->refusal));
    game->refusal.kind = kind;
    game->refusal.number = number;
    return STATUS_REFUSED;
}

enum status local_refuse_other(struct local_game *game, const struct address *expected)
{
    (void)local_refuse(game, GAME_NOT_YOURS, 0);
    game->refusal.account = *expected;
    return STATUS_REFUSED;
}

/* job may be NULL: then the event names only its claim. */
struct game_event *local_event(struct local_game *game, enum game_event_kind kind,
                               const struct hash32 *job)
{
    struct game_event *event;

    assert(game->event_count < LOCAL_EVENTS_MAX);
    event = &game->events[game->event_count++];
    memset(event, 0, sizeof(*event));
    event->kind = kind;
    if (job != NULL) {
        event->job = *job;
    }
    return event;
}

enum status local_credit(struct local_game *game, const struct address *owner, wei amount)
{
    struct local_account account;

    TRY(local_get_account(game->store, &account, owner));
    account.owed += amount;
    return local_put_account(game->store, &account, owner);
}

enum status local_require_phase(struct local_game *game, const struct local_job *job,
                                enum game_phase phase)
{
    return job->phase == phase ? STATUS_OK : local_refuse(game, GAME_WRONG_PHASE, job->phase);
}

enum status local_require_not_after(struct local_game *game, uint64_t time_s)
{
    return game->now_s > time_s ? local_refuse(game, GAME_TOO_LATE, time_s) : STATUS_OK;
}

enum status local_require_after(struct local_game *game, uint64_t time_s)
{
    return game->now_s <= time_s ? local_refuse(game, GAME_TOO_EARLY, time_s) : STATUS_OK;
}

enum status local_find_segment(struct local_game *game, struct local_segment *segment,
                               const struct game_move *move, const struct local_job *job)
{
    struct hash32 standing;

    segment->shown = &move->segment;
    segment->hash = game_segment_hash(&move->key, &move->segment);
    TRY(local_get_segment(game->store, &standing, &move->key, move->segment.index));
    segment->stands =
        move->segment.index < job->committed && hash32_equal(&standing, &segment->hash);
    return local_get_tally(game->store, &segment->tally, &segment->hash);
}

enum status local_require_standing(struct local_game *game, struct local_segment *segment,
                                   const struct game_move *move, const struct local_job *job)
{
    TRY(local_find_segment(game, segment, move, job));
    return segment->stands ? STATUS_OK : local_refuse(game, GAME_WRONG_SEGMENT, 0);
}

uint64_t local_round_start(const struct local_segment *segment)
{
    return segment->tally.start_s == 0 ? segment->shown->time_s : segment->tally.start_s;
}

uint64_t local_claim_end(const struct local_job *job, const struct local_segment *segment)
{
    return local_round_start(segment) + job->terms.attest_period_s + job->terms.reveal_period_s +
           job->terms.claim_period_s;
}

uint64_t local_respond_by(const struct local_game *game, const struct local_job *job)
{
    return game->now_s + job->terms.response_period_s;
}

void local_void_committed(struct local_job *job)
{
    job->generation++;
    job->committed = job->finalized;
    job->open_claims = 0;
    job->ended = false;
}
