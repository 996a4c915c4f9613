/* local_rules.c - see local_rules.h. */
#include "chain/local/local_rules.h"

#include <assert.h>
#include <string.h>

#include "chain/game/allow_list.h"

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

/* ---- checks ------------------------------------------------------------------- */

enum status local_require_phase(struct local_game *game, const struct local_job *job,
                                enum game_phase phase)
{
    return job->phase == phase ? STATUS_OK : local_refuse(game, GAME_WRONG_PHASE, job->phase);
}

enum status local_require_sender(struct local_game *game, const struct address *expected)
{
    return address_equal(&game->sender, expected) ? STATUS_OK : local_refuse_other(game, expected);
}

enum status local_require_value(struct local_game *game, const struct game_move *move, wei expected)
{
    return move->value == expected ? STATUS_OK : local_refuse(game, GAME_WRONG_VALUE, expected);
}

enum status local_take_bond(struct local_game *game, const struct game_move *move, wei bond)
{
    const struct hash32 key = local_key_of_account(&game->sender);
    struct local_account account = {0};

    if (move->value != 0) {
        return local_require_value(game, move, bond);
    }
    TRY(local_get(game->store, &account, LOCAL_ACCOUNT, &key, 0));
    if (account.owed < bond) {
        return local_refuse(game, GAME_WRONG_VALUE, bond);
    }
    account.owed -= bond;
    return local_put(game->store, &account, LOCAL_ACCOUNT, &key, 0);
}

enum status local_require_not_after(struct local_game *game, uint64_t time_s)
{
    return game->now_s > time_s ? local_refuse(game, GAME_TOO_LATE, time_s) : STATUS_OK;
}

enum status local_require_after(struct local_game *game, uint64_t time_s)
{
    return game->now_s <= time_s ? local_refuse(game, GAME_TOO_EARLY, time_s) : STATUS_OK;
}

enum status local_require_short(struct local_game *game, const struct game_bytes *contact)
{
    return contact->size > GAME_CONTACT_MAX ? local_refuse(game, GAME_TOO_LONG, GAME_CONTACT_MAX)
                                            : STATUS_OK;
}

enum status local_require_allowed(struct local_game *game, const struct hash32 *root,
                                  const struct game_hashes *path)
{
    return allow_list_admits(root, &game->sender, path) ? STATUS_OK
                                                        : local_refuse(game, GAME_NOT_ALLOWED, 0);
}

/* ---- money -------------------------------------------------------------------- */

enum status local_credit(struct local_game *game, const struct address *owner, wei amount)
{
    const struct hash32 key = local_key_of_account(owner);
    struct local_account account = {0};

    TRY(local_get(game->store, &account, LOCAL_ACCOUNT, &key, 0));
    account.owed += amount;
    return local_put(game->store, &account, LOCAL_ACCOUNT, &key, 0);
}

enum status local_burn(struct local_game *game, wei amount)
{
    static const struct hash32 key;
    wei burned;

    TRY(local_get(game->store, &burned, LOCAL_BURNED, &key, 0));
    burned += amount;
    return local_put(game->store, &burned, LOCAL_BURNED, &key, 0);
}

/* ---- jobs and segments ---------------------------------------------------------- */

enum status local_get_job(struct local_game *game, struct local_job *job, const struct hash32 *key)
{
    return local_get(game->store, job, LOCAL_JOB, key, 0);
}

enum status local_put_job(struct local_game *game, const struct local_job *job,
                          const struct hash32 *key)
{
    return local_put(game->store, job, LOCAL_JOB, key, 0);
}

enum status local_require_subject(struct local_game *game, struct local_segment *segment,
                                  const struct hash32 *key, uint32_t index,
                                  const struct hash32 *hash)
{
    struct hash32 standing;

    segment->key = key;
    segment->index = index;
    segment->hash = *hash;
    TRY(local_get_job(game, &segment->job, key));
    TRY(local_require_phase(game, &segment->job, GAME_PHASE_RUNNING));
    TRY(local_get(game->store, &segment->tally, LOCAL_TALLY, hash, 0));
    TRY(local_get(game->store, &standing, LOCAL_SEGMENT, key, index));
    return index < segment->job.committed && hash32_equal(&standing, hash)
               ? STATUS_OK
               : local_refuse(game, GAME_WRONG_SEGMENT, 0);
}

enum status local_require_shown(struct local_game *game, struct local_segment *segment,
                                const struct hash32 *key, const struct game_segment *shown)
{
    const struct hash32 hash = game_segment_hash(key, shown);

    segment->shown = shown;
    return local_require_subject(game, segment, key, shown->index, &hash);
}

enum status local_require_pending(struct local_game *game, struct local_segment *segment,
                                  const struct hash32 *key, const struct game_segment *shown)
{
    TRY(local_require_shown(game, segment, key, shown));
    return shown->index >= segment->job.finalized
               ? STATUS_OK
               : local_refuse(game, GAME_WRONG_INDEX, segment->job.finalized);
}

enum status local_save_segment(struct local_game *game, const struct local_segment *segment)
{
    TRY(local_put_job(game, &segment->job, segment->key));
    return local_put(game->store, &segment->tally, LOCAL_TALLY, &segment->hash, 0);
}

uint64_t local_round_end(const struct local_segment *segment)
{
    return segment->tally.start_s + segment->job.terms.seal_period_s +
           segment->job.terms.reveal_period_s;
}

uint64_t local_first_step(const struct local_job *job, uint32_t index)
{
    return (uint64_t)index * job->terms.segment_steps;
}

uint64_t local_due_from_now(const struct local_game *game, const struct local_job *job)
{
    uint64_t due_s = game->now_s + job->terms.segment_period_s;

    return due_s < job->terms.deadline_s ? due_s : job->terms.deadline_s;
}

enum status local_close(struct local_game *game, struct local_job *job, const struct hash32 *key)
{
    wei left = (job->segments - job->finalized) * job->terms.reward;
    wei rest = left - job->missing_escrow + job->pool;

    job->pool = 0;
    job->missing_escrow = 0;
    job->missing_pool = 0;
    job->phase = GAME_PHASE_CLOSED;
    local_event(game, GAME_CLOSED, key)->index = job->finalized;
    return local_credit(game, &job->client, rest);
}

void local_reopen(struct local_game *game, struct local_job *job)
{
    job->phase = GAME_PHASE_OPEN;
    memset(&job->solver, 0, sizeof(job->solver));
    job->generation++;
    job->committed = job->finalized;
    job->drawn = job->finalized;
    job->leg_start = job->finalized;
    job->due_s = 0;
    job->open_claims = 0;
    job->entries = 0;
    job->ended = false;
    job->opened_at_s = game->now_s;
    job->refused_until_s = 0;
}
