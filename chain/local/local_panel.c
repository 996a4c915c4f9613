/* local_panel.c - the panel of a job: entries, draws, rounds and verdicts. See local_game.h. */
#include <assert.h>
#include <string.h>

#include "chain/local/local_rules.h"

/* ---- entries ------------------------------------------------------------------- */

static enum status get_entry(struct local_game *game, struct local_entry *entry,
                             const struct hash32 *key, uint32_t number)
{
    return local_get(game->store, entry, LOCAL_ENTRY, key, number);
}

static enum status put_entry(struct local_game *game, const struct local_entry *entry,
                             const struct hash32 *key, uint32_t number)
{
    return local_put(game->store, entry, LOCAL_ENTRY, key, number);
}

static void mark_left(struct local_game *game, struct local_job *job, const struct hash32 *key,
                      struct local_entry *entry, uint32_t number)
{
    struct game_event *event = local_event(game, GAME_LEFT, key);

    event->entry = number;
    event->account = entry->owner;
    entry->left = true;
    entry->generation = job->generation;
    entry->until = job->committed;
    job->active--;
}

/* Takes an entry off the panel. Returns what its bond still is. */
static wei remove_entry(struct local_job *job, struct local_entry *entry)
{
    entry->gone = true;
    job->active -= !entry->left;
    return job->terms.bond - 2 * (wei)entry->strikes * job->terms.fee;
}

static void tell_gone(struct local_game *game, const struct hash32 *key,
                      const struct local_entry *entry, uint32_t number, wei amount)
{
    struct game_event *event = local_event(game, GAME_GONE, key);

    event->entry = number;
    event->account = entry->owner;
    event->amount = amount;
}

static enum status require_may_enlist(struct local_game *game, const struct local_job *job,
                                      const struct game_move *move)
{
    if (job->phase != GAME_PHASE_OPEN) {
        TRY(local_require_phase(game, job, GAME_PHASE_RUNNING));
    }
    if (move->count == 0 || move->count > GAME_ENLIST_MAX) {
        return local_refuse(game, GAME_FULL, GAME_ENLIST_MAX);
    }
    if (job->entries + move->count > GAME_PANEL_MAX) {
        return local_refuse(game, GAME_FULL, GAME_PANEL_MAX);
    }
    if (address_equal(&game->sender, &job->client) || address_equal(&game->sender, &job->solver)) {
        return local_refuse(game, GAME_SELF_DEALING, 0);
    }
    TRY(local_require_allowed(game, &job->terms.verifiers, &move->path));
    TRY(local_require_short(game, &move->contact));
    return local_take_bond(game, move, move->count * job->terms.bond);
}

enum status local_enlist(struct local_game *game, const struct game_move *move)
{
    const struct local_entry entry = {.owner = game->sender};
    struct local_job job = {0};
    struct game_event *event;

    TRY(local_get_job(game, &job, &move->key));
    TRY(require_may_enlist(game, &job, move));

    event = local_event(game, GAME_ENLISTED, &move->key);
    event->account = game->sender;
    event->entry = job.entries;
    event->count = move->count;
    event->contact = move->contact;
    for (uint32_t i = 0; i < move->count; i++) {
        TRY(put_entry(game, &entry, &move->key, job.entries + i));
    }
    job.entries += move->count;
    job.active += move->count;
    return local_put_job(game, &job, &move->key);
}

/* No segment in which it may sit is open; of a closed job, the one that its client asks about. */
static enum status require_may_collect(struct local_game *game, const struct local_job *job,
                                       const struct local_entry *entry)
{
    if (job->phase == GAME_PHASE_CLOSED) {
        return job->asked && job->held != 0 ? local_refuse(game, GAME_ENGAGED, job->finalized)
                                            : STATUS_OK;
    }
    return entry->generation == job->generation && entry->until > job->finalized
               ? local_refuse(game, GAME_ENGAGED, entry->until)
               : STATUS_OK;
}

enum status local_leave(struct local_game *game, const struct game_move *move)
{
    struct local_job job = {0};
    struct local_entry entry = {0};
    wei amount;

    TRY(local_get_job(game, &job, &move->key));
    TRY(get_entry(game, &entry, &move->key, move->entry));
    TRY(local_require_sender(game, &entry.owner));
    if (entry.gone) {
        return local_refuse(game, GAME_NOT_NEEDED, 0);
    }
    if (job.phase != GAME_PHASE_CLOSED && !entry.left) {
        if (job.active <= job.terms.panel_least) {
            return local_refuse(game, GAME_PANEL_SHORT, job.active);
        }
        mark_left(game, &job, &move->key, &entry, move->entry);
    } else {
        TRY(require_may_collect(game, &job, &entry));
        amount = remove_entry(&job, &entry);
        TRY(local_credit(game, &game->sender, amount));
        tell_gone(game, &move->key, &entry, move->entry, amount);
    }
    TRY(put_entry(game, &entry, &move->key, move->entry));
    return local_put_job(game, &job, &move->key);
}

enum status local_announce(struct local_game *game, const struct game_move *move)
{
    struct local_job job = {0};
    struct game_event *event;

    TRY(local_get_job(game, &job, &move->key));
    if (job.phase == GAME_PHASE_NONE) {
        return local_refuse(game, GAME_WRONG_PHASE, GAME_PHASE_NONE);
    }
    TRY(local_require_short(game, &move->contact));

    event = local_event(game, GAME_ANNOUNCED, &move->key);
    event->account = game->sender;
    event->contact = move->contact;
    return STATUS_OK;
}

/* ---- places -------------------------------------------------------------------- */

static enum local_place get_place(const struct local_tally *tally, uint32_t place)
{
    if (place >= GAME_PLACES_MAX) {
        return LOCAL_PLACE_SKIPPED;
    }
    return (enum local_place)((tally->places.bytes[place / 2] >> (4 * (place % 2))) & 15);
}

static void set_place(struct local_tally *tally, uint32_t place, enum local_place phase)
{
    uint8_t *pair = &tally->places.bytes[place / 2];
    const int shift = 4 * (int)(place % 2);

    *pair = (uint8_t)((*pair & ~(15 << shift)) | ((int)phase << shift));
}

static uint32_t entry_at(const struct local_tally *tally, uint32_t place)
{
    return game_place_entry(&tally->seed, place, tally->panel);
}

static void tell_round(struct local_game *game, const struct local_segment *segment)
{
    const struct local_tally *tally = &segment->tally;
    struct game_event *event = local_event(game, GAME_ROUND, segment->key);

    event->index = segment->shown->index;
    event->generation = segment->shown->generation;
    event->round = tally->round;
    event->from = tally->closed ? tally->to : tally->from;
    event->to = tally->to;
    event->time_s = tally->start_s;
}

/* Has the entry at `place` one of the places before it? */
static bool sits_already(const struct local_tally *tally, const uint32_t entries[GAME_PLACES_MAX],
                         uint32_t place)
{
    for (uint32_t i = 0; i < place; i++) {
        if (entries[i] == entries[place] && get_place(tally, i) != LOCAL_PLACE_SKIPPED) {
            return true;
        }
    }
    return false;
}

/* Walks on from the last place to as many entries as are needed, or to the last place. */
static enum status open_round(struct local_game *game, struct local_segment *segment, uint32_t need)
{
    struct local_tally *tally = &segment->tally;
    uint32_t entries[GAME_PLACES_MAX];
    uint32_t found = 0;
    uint32_t place;

    for (place = 0; place < GAME_PLACES_MAX && found < need; place++) {
        struct local_entry entry = {0};

        entries[place] = entry_at(tally, place);
        if (place < tally->to || sits_already(tally, entries, place)) {
            continue;
        }
        TRY(get_entry(game, &entry, segment->key, entries[place]));
        if (!entry.gone && !entry.left && !address_equal(&entry.owner, &segment->shown->solver)) {
            set_place(tally, place, LOCAL_PLACE_DRAWN);
            found++;
        }
    }
    tally->from = tally->to;
    tally->to = place;
    tally->drawn += found;
    tally->closed = false;
    tally->start_s = game->now_s;
    tell_round(game, segment);
    return STATUS_OK;
}

/* ---- drawing ------------------------------------------------------------------- */

enum status local_draw(struct local_game *game, const struct game_move *move)
{
    struct local_segment segment = {0};
    const struct local_job *job = &segment.job;
    struct local_tally *tally = &segment.tally;
    struct game_event *event;
    struct hash32 random;
    struct hash32 seed;
    bool covered = false;

    TRY(local_require_shown(game, &segment, move));
    if (job->terms.seats == 0) {
        return local_refuse(game, GAME_NOT_NEEDED, 0);
    }
    if (tally->start_s != 0) {
        return local_refuse(game, GAME_ALREADY_DRAWN, 0);
    }
    TRY(local_random_of(game, &random, &covered, &move->segment));
    seed = game_seed(&random, &segment.hash);

    /* A seed that came late, the end of a job and what its client asks for are covered anyway. */
    covered = covered || job->phase == GAME_PHASE_CLOSED || move->segment.diverged ||
              move->segment.index + 1 == job->segments ||
              game_seed_covers(&seed, job->terms.coverage_ppm);
    event = local_event(game, GAME_DRAWN, &move->key);
    event->index = move->segment.index;
    event->seal = seed;
    event->flag = covered;
    if (!covered) {
        tally->start_s = move->segment.time_s;
        return local_save_segment(game, &segment);
    }
    tally->seed = seed;
    tally->covered = true;
    tally->panel = move->segment.panel;
    TRY(open_round(game, &segment, job->terms.seats));
    return local_save_segment(game, &segment);
}

/* ---- verdicts ------------------------------------------------------------------ */

/* A place keeps half of its seal; zero: it has none. */
static enum status get_seat(struct local_game *game, struct hash32 *seat,
                            const struct local_segment *segment, uint32_t place)
{
    return local_get(game->store, seat, LOCAL_SEAT, &segment->hash, place);
}

/* The entry at a place of the last round. */
static enum status require_seat(struct local_game *game, struct local_entry *entry,
                                const struct local_segment *segment, uint32_t place)
{
    const struct local_tally *tally = &segment->tally;

    if (tally->start_s == 0) {
        return local_refuse(game, GAME_NOT_DRAWN, 0);
    }
    if (place < tally->from || place >= tally->to ||
        get_place(tally, place) == LOCAL_PLACE_SKIPPED) {
        return local_refuse(game, GAME_WRONG_PLACE, 0);
    }
    TRY(get_entry(game, entry, segment->key, entry_at(tally, place)));
    return entry->gone ? local_refuse_other(game, &entry->owner)
                       : local_require_sender(game, &entry->owner);
}

enum status local_seal(struct local_game *game, const struct game_move *move)
{
    struct local_segment segment = {0};
    struct local_tally *tally = &segment.tally;
    struct local_entry entry = {0};
    struct game_event *event;
    struct hash32 seat;

    TRY(local_require_subject(game, &segment, &move->key, move->index, &move->about));
    TRY(require_seat(game, &entry, &segment, move->place));
    TRY(get_seat(game, &seat, &segment, move->place));
    if (get_place(tally, move->place) != LOCAL_PLACE_DRAWN || !hash32_is_zero(&seat)) {
        return local_refuse(game, GAME_ALREADY_SEALED, 0);
    }
    TRY(local_require_not_after(game, tally->start_s + segment.job.terms.seal_period_s));

    event = local_event(game, GAME_SEALED_VERDICT, &move->key);
    event->index = move->index;
    event->place = move->place;
    event->account = game->sender;
    event->seal = move->seal;
    memcpy(seat.bytes, move->seal.bytes, GAME_SEAL_SIZE);
    return local_put(game->store, &seat, LOCAL_SEAT, &segment.hash, move->place);
}

static enum status require_reveal(struct local_game *game, const struct local_segment *segment,
                                  uint32_t place, const struct hash32 *value)
{
    const struct local_tally *tally = &segment->tally;
    struct hash32 seal;

    TRY(get_seat(game, &seal, segment, place));
    if (get_place(tally, place) != LOCAL_PLACE_DRAWN || hash32_is_zero(&seal)) {
        return local_refuse(game, GAME_NOT_SEALED, 0);
    }
    TRY(local_require_after(game, tally->start_s + segment->job.terms.seal_period_s));
    TRY(local_require_not_after(game, local_round_end(segment)));
    return memcmp(&seal, value, GAME_SEAL_SIZE) == 0 ? STATUS_OK
                                                     : local_refuse(game, GAME_WRONG_REVEAL, 0);
}

static struct game_event *tell_revealed(struct local_game *game,
                                        const struct local_segment *segment,
                                        const struct game_move *move, enum game_verdict verdict)
{
    struct game_event *event = local_event(game, GAME_REVEALED, segment->key);

    event->index = segment->index;
    event->place = move->place;
    event->account = game->sender;
    event->verdict = verdict;
    event->seal = move->salt;
    return event;
}

enum status local_reveal(struct local_game *game, const struct game_move *move)
{
    const enum game_verdict verdict = (enum game_verdict)move->verdict;
    const bool is_right = verdict == GAME_VERDICT_RIGHT;
    struct local_segment segment = {0};
    struct local_tally *tally = &segment.tally;
    struct local_entry entry = {0};
    struct hash32 value;

    TRY(local_require_subject(game, &segment, &move->key, move->index, &move->about));
    TRY(require_seat(game, &entry, &segment, move->place));
    value = game_verdict_seal(&game->sender, &segment.hash, verdict, 0, &move->leaves, &move->salt);
    TRY(require_reveal(game, &segment, move->place, &value));
    if (!is_right && verdict != GAME_VERDICT_UNAVAILABLE) {
        return local_refuse(game, GAME_WRONG_REVEAL, 0);
    }

    set_place(tally, move->place, is_right ? LOCAL_PLACE_RIGHT : LOCAL_PLACE_UNAVAILABLE);
    tally->rights += is_right;
    tally->unavailables += !is_right;
    tell_revealed(game, &segment, move, verdict)->leaves = move->leaves;
    return local_save_segment(game, &segment);
}

enum status local_raise(struct local_game *game, wei *bond, struct local_segment *segment,
                        const struct game_move *move)
{
    const uint32_t place = move->place;
    struct local_entry entry = {0};
    struct hash32 value;
    uint32_t number;

    TRY(require_seat(game, &entry, segment, place));
    value = game_verdict_seal(&game->sender, &segment->hash, GAME_VERDICT_FALSE, move->shown.step,
                              NULL, &move->salt);
    TRY(require_reveal(game, segment, place, &value));

    number = entry_at(&segment->tally, place);
    set_place(&segment->tally, place, LOCAL_PLACE_CLOSED);
    *bond = remove_entry(&segment->job, &entry);
    (void)tell_revealed(game, segment, move, GAME_VERDICT_FALSE);
    tell_gone(game, segment->key, &entry, number, 0);
    TRY(put_entry(game, &entry, segment->key, number));
    return local_save_segment(game, segment);
}

/* What the panel was drawn for is final, or was delivered. */
static bool is_answered(const struct local_segment *segment)
{
    const struct local_job *job = &segment->job;

    return job->phase == GAME_PHASE_CLOSED ? segment->index + 1 != job->finalized || job->held == 0
                                           : segment->index < job->finalized;
}

enum status local_find_right(struct local_game *game, struct local_right *right,
                             const struct game_move *move)
{
    struct local_segment *segment = &right->segment;
    struct hash32 value;
    struct hash32 seat;

    TRY(local_require_shown(game, segment, move));
    if (is_answered(segment)) {
        return local_refuse(game, GAME_WRONG_INDEX, segment->job.finalized);
    }
    if (get_place(&segment->tally, move->place) != LOCAL_PLACE_RIGHT) {
        return local_refuse(game, GAME_WRONG_PLACE, 0);
    }
    right->number = entry_at(&segment->tally, move->place);
    TRY(get_entry(game, &right->entry, &move->key, right->number));
    TRY(get_seat(game, &seat, segment, move->place));
    value = game_verdict_seal(&right->entry.owner, &segment->hash, GAME_VERDICT_RIGHT, 0,
                              &move->leaves, &move->salt);
    return memcmp(&seat, &value, GAME_SEAL_SIZE) == 0 ? STATUS_OK
                                                      : local_refuse(game, GAME_WRONG_REVEAL, 0);
}

enum status local_disprove(struct local_game *game, struct local_right *right, uint32_t place)
{
    struct local_segment *segment = &right->segment;
    struct game_event *event = local_event(game, GAME_DISPROVED, segment->key);
    wei bond;

    event->index = segment->index;
    event->seal = segment->hash;
    event->place = place;
    event->entry = right->number;
    event->account = game->sender;
    segment->tally.rights--;
    set_place(&segment->tally, place, LOCAL_PLACE_CLOSED);
    if (!right->entry.gone) {
        bond = remove_entry(&segment->job, &right->entry);
        TRY(local_burn(game, bond / 2));
        TRY(local_credit(game, &game->sender, bond - bond / 2));
        tell_gone(game, segment->key, &right->entry, right->number, 0);
        TRY(put_entry(game, &right->entry, segment->key, right->number));
    }
    return local_save_segment(game, segment);
}

/* ---- rounds -------------------------------------------------------------------- */

int32_t local_score(const struct local_tally *tally)
{
    return (int32_t)tally->rights - (int32_t)tally->unavailables;
}

bool local_has_score(const struct local_segment *segment)
{
    int32_t score = local_score(&segment->tally);

    return score >= (int32_t)segment->job.terms.seats || score <= GAME_SCORE_VOID;
}

/* Who was absent twice is drawn no more. */
static void strike(struct local_game *game, struct local_segment *segment,
                   struct local_entry *entry, uint32_t number)
{
    if (entry->gone || entry->strikes == GAME_STRIKES_MAX) {
        return;
    }
    segment->job.pool += 2 * segment->job.terms.fee;
    entry->strikes++;
    if (entry->strikes == GAME_STRIKES_MAX && !entry->left) {
        mark_left(game, &segment->job, segment->key, entry, number);
    }
}

enum status local_close_round(struct local_game *game, struct local_segment *segment)
{
    struct local_tally *tally = &segment->tally;

    for (uint32_t place = tally->from; place < tally->to && !tally->closed; place++) {
        const uint32_t number = entry_at(tally, place);
        struct local_entry entry = {0};
        struct game_event *event;

        if (get_place(tally, place) != LOCAL_PLACE_DRAWN) {
            continue;
        }
        set_place(tally, place, LOCAL_PLACE_CLOSED);
        tally->absents++;
        event = local_event(game, GAME_ABSENT, segment->key);
        event->index = segment->index;
        event->place = place;
        event->entry = number;
        TRY(get_entry(game, &entry, segment->key, number));
        strike(game, segment, &entry, number);
        TRY(put_entry(game, &entry, segment->key, number));
    }
    return STATUS_OK;
}

enum status local_renew(struct local_game *game, const struct game_move *move)
{
    struct local_segment segment = {0};
    struct local_tally *tally = &segment.tally;
    uint32_t need;

    TRY(local_require_shown(game, &segment, move));
    if (tally->start_s == 0) {
        return local_refuse(game, GAME_NOT_DRAWN, 0);
    }
    if (!tally->covered || is_answered(&segment)) {
        return local_refuse(game, GAME_NOT_NEEDED, 0);
    }
    TRY(local_require_after(game, local_round_end(&segment)));
    if (tally->closed && (local_has_score(&segment) || tally->asleep)) {
        return local_refuse(game, GAME_NOT_NEEDED, 0);
    }

    TRY(local_close_round(game, &segment));
    tally->closed = true;
    if (local_has_score(&segment)) {
        tell_round(game, &segment);
    } else if (tally->to == GAME_PLACES_MAX) {
        tally->asleep = true;
        tally->from = GAME_PLACES_MAX;
        tally->start_s = game->now_s;
        tell_round(game, &segment);
    } else {
        tally->round++;
        /* At least as many again: so there are at most seven rounds. */
        need = (uint32_t)((int32_t)segment.job.terms.seats - local_score(tally)) + tally->absents;
        TRY(open_round(game, &segment, need < tally->drawn ? tally->drawn : need));
    }
    return local_save_segment(game, &segment);
}

/* ---- fees ---------------------------------------------------------------------- */

static enum status pay_right(struct local_game *game, struct local_segment *segment, uint32_t place,
                             wei amount)
{
    struct local_entry entry = {0};
    struct game_event *event;

    TRY(get_entry(game, &entry, segment->key, entry_at(&segment->tally, place)));
    event = local_event(game, GAME_SETTLED, segment->key);
    event->index = segment->index;
    event->place = place;
    event->account = entry.owner;
    event->amount = amount;
    return local_credit(game, &entry.owner, amount);
}

enum status local_pay_rights(struct local_game *game, struct local_segment *segment)
{
    struct local_job *job = &segment->job;
    const struct local_tally *tally = &segment->tally;
    wei each;

    if (tally->rights == 0) {
        return STATUS_OK;
    }
    each = job->pool / tally->rights;
    each = each < job->terms.fee ? each : job->terms.fee;
    job->pool -= each * tally->rights;
    for (uint32_t place = 0; place < tally->to; place++) {
        if (get_place(tally, place) == LOCAL_PLACE_RIGHT) {
            TRY(pay_right(game, segment, place, each));
        }
    }
    return STATUS_OK;
}
