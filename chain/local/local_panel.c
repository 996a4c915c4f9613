/* local_panel.c - the panel of a job: entries, draws, rounds and verdicts. See local_game.h. */
#include <string.h>

#include "chain/local/local_rules.h"

/* ---- entries ------------------------------------------------------------------- */

/* Each generation of a job has its own. */
static uint64_t entry_number(uint32_t generation, uint32_t number)
{
    return (uint64_t)generation << 32 | number;
}

static enum status get_entry(struct local_game *game, struct local_entry *entry,
                             const struct hash32 *key, uint32_t generation, uint32_t number)
{
    return local_get(game->store, entry, LOCAL_ENTRY, key, entry_number(generation, number));
}

static enum status put_entry(struct local_game *game, const struct local_entry *entry,
                             const struct hash32 *key, uint32_t generation, uint32_t number)
{
    return local_put(game->store, entry, LOCAL_ENTRY, key, entry_number(generation, number));
}

static void tell_gone(struct local_game *game, const struct hash32 *key, uint32_t generation,
                      uint32_t number, const struct address *owner, wei amount)
{
    struct game_event *event = local_event(game, GAME_GONE, key);

    event->generation = generation;
    event->entry = number;
    event->account = *owner;
    event->amount = amount;
}

static enum status require_may_enlist(struct local_game *game, const struct local_job *job,
                                      const struct game_move *move)
{
    if (job->phase != GAME_PHASE_OPEN) {
        TRY(local_require_phase(game, job, GAME_PHASE_RUNNING));
    }
    if (job->barred) {
        return local_refuse(game, GAME_BARRED, 0);
    }
    if (move->count == 0 || move->count > GAME_ENLIST_MAX) {
        return local_refuse(game, GAME_FULL, GAME_ENLIST_MAX);
    }
    if (job->entries + move->count > GAME_PANEL_MAX) {
        return local_refuse(game, GAME_FULL, GAME_PANEL_MAX);
    }
    if (address_equal(&game->sender, &job->client) || address_equal(&game->sender, &job->solver) ||
        address_equal(&game->sender, &job->terms.keeper)) {
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
    event->generation = job.generation;
    event->entry = job.entries;
    event->count = move->count;
    event->contact = move->contact;
    for (uint32_t i = 0; i < move->count; i++) {
        TRY(put_entry(game, &entry, &move->key, job.generation, job.entries + i));
    }
    job.entries += move->count;
    return local_put_job(game, &job, &move->key);
}

/* The last entry takes the number of one that goes while no solver has the job. */
static enum status fill_gap(struct local_game *game, struct local_job *job,
                            const struct hash32 *key, uint32_t gap)
{
    static const struct local_entry none;
    const uint32_t last = --job->entries;
    struct local_entry entry = {0};
    struct game_event *event;

    if (gap != last) {
        TRY(get_entry(game, &entry, key, job->generation, last));
        TRY(put_entry(game, &entry, key, job->generation, gap));
        event = local_event(game, GAME_MOVED, key);
        event->generation = job->generation;
        event->entry = last;
        event->to = gap;
    }
    TRY(put_entry(game, &none, key, job->generation, last));
    return local_put_job(game, job, key);
}

enum status local_depart(struct local_game *game, const struct game_move *move)
{
    const struct hash32 *key = &move->key;
    struct local_job job = {0};
    struct local_entry entry = {0};
    bool is_now;

    TRY(local_get_job(game, &job, key));
    TRY(get_entry(game, &entry, key, move->generation, move->entry));
    TRY(local_require_sender(game, &entry.owner));
    if (entry.gone) {
        return local_refuse(game, GAME_NOT_NEEDED, 0);
    }
    is_now = move->generation == job.generation;
    if (is_now && job.phase == GAME_PHASE_RUNNING) {
        return local_refuse(game, GAME_ENGAGED, job.finalized);
    }

    TRY(local_credit(game, &entry.owner, job.terms.bond));
    tell_gone(game, key, move->generation, move->entry, &entry.owner, job.terms.bond);
    if (is_now && job.phase == GAME_PHASE_OPEN) {
        return fill_gap(game, &job, key, move->entry);
    }
    entry.gone = true;
    return put_entry(game, &entry, key, move->generation, move->entry);
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

enum local_place local_get_place(const struct local_tally *tally, uint32_t place)
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

/* Each round behind the first has a seed of its own. */
enum status local_entry_at(struct local_game *game, uint32_t *number,
                           const struct local_segment *segment, uint32_t place)
{
    const struct local_tally *tally = &segment->tally;
    struct local_round round = {.seed = tally->seed};

    for (uint32_t i = tally->round; place >= tally->first && i > 0; i--) {
        TRY(local_get(game->store, &round, LOCAL_ROUND, &segment->hash, i));
        if (place >= round.from) {
            break;
        }
    }
    *number = game_place_entry(&round.seed, place, tally->panel);
    return STATUS_OK;
}

enum status local_get_seated(struct local_game *game, struct local_entry *entry,
                             const struct local_segment *segment, uint32_t place)
{
    uint32_t number = 0;

    TRY(local_entry_at(game, &number, segment, place));
    return get_entry(game, entry, segment->key, segment->job.generation, number);
}

/* Has an entry one of the places before this one? */
static bool sits_already(const struct local_tally *tally, const uint32_t entries[GAME_PLACES_MAX],
                         uint32_t place)
{
    for (uint32_t i = 0; i < place; i++) {
        if (entries[i] == entries[place] && local_get_place(tally, i) != LOCAL_PLACE_SKIPPED) {
            return true;
        }
    }
    return false;
}

/* Draws as many seats as are needed, or those that are left. */
static enum status seat_round(struct local_game *game, struct local_segment *segment,
                              const struct hash32 *seed, uint32_t need)
{
    struct local_tally *tally = &segment->tally;
    uint32_t entries[GAME_PLACES_MAX];
    uint32_t seats = 0;
    uint32_t place;

    for (place = 0; place < tally->to; place++) {
        TRY(local_entry_at(game, &entries[place], segment, place));
    }
    for (; place < GAME_PLACES_MAX && seats < need; place++) {
        struct local_entry entry = {0};

        entries[place] = game_place_entry(seed, place, tally->panel);
        if (sits_already(tally, entries, place)) {
            continue;
        }
        TRY(get_entry(game, &entry, segment->key, segment->job.generation, entries[place]));
        if (!entry.gone && !address_equal(&entry.owner, &segment->shown->solver)) {
            set_place(tally, place, LOCAL_PLACE_DRAWN);
            seats++;
        }
    }
    tally->from = tally->to;
    tally->to = place;
    tally->drawn += seats;
    return STATUS_OK;
}

/* Its time begins now. */
static void start_round(struct local_game *game, struct local_segment *segment,
                        const struct hash32 *seed)
{
    struct local_tally *tally = &segment->tally;
    struct game_event *event = local_event(game, GAME_ROUND, segment->key);

    tally->start_s = game->now_s;
    event->index = segment->index;
    event->round = tally->round;
    event->from = tally->from;
    event->to = tally->to;
    event->time_s = tally->start_s;
    event->seal = *seed;
}

enum status local_close_round(struct local_game *game, const struct local_segment *segment)
{
    const uint32_t round = segment->tally.round + 1;
    struct local_round next = {0};
    struct game_event *event;

    TRY(local_get(game->store, &next, LOCAL_ROUND, &segment->hash, round));
    if (next.height != 0) {
        return local_refuse(game, GAME_ENGAGED, segment->index);
    }

    next.height = game->height;
    next.time_s = game->now_s;
    event = local_event(game, GAME_ROUND_OVER, segment->key);
    event->index = segment->index;
    event->height = next.height;
    event->time_s = next.time_s;
    return local_put(game->store, &next, LOCAL_ROUND, &segment->hash, round);
}

/* ---- drawing ------------------------------------------------------------------- */

static void tell_drawn(struct local_game *game, const struct local_segment *segment,
                       const struct hash32 *seed)
{
    struct game_event *event = local_event(game, GAME_DRAWN, segment->key);

    event->index = segment->index;
    event->seal = *seed;
    event->flag = segment->tally.covered;
}

/* Its leg ends here. */
static void cover_segment(struct local_segment *segment)
{
    segment->tally.covered = true;
    segment->tally.leg_start = segment->job.leg_start;
    segment->job.leg_start = segment->index + 1;
}

/* Nobody checks: it waits from its commit on. */
static enum status draw_nobody(struct local_game *game, struct local_segment *segment)
{
    static const struct hash32 none;

    cover_segment(segment);
    segment->tally.start_s = segment->shown->time_s;
    segment->tally.to = GAME_PLACES_MAX;
    tell_drawn(game, segment, &none);
    return local_save_segment(game, segment);
}

static enum status seed_of(struct local_game *game, struct hash32 *seed, bool *late,
                           const struct local_segment *segment, uint64_t height, uint64_t time_s)
{
    struct hash32 random;

    TRY(local_random_of(game, &random, late, height, time_s));
    *seed = game_seed(&random, &segment->hash);
    return STATUS_OK;
}

/* The next round of a segment, where settle closed one and rights are missing still. */
static enum status draw_again(struct local_game *game, struct local_segment *segment)
{
    const struct leg_tally told = local_told(segment);
    const uint32_t need = leg_seats_needed(&told);
    struct local_tally *tally = &segment->tally;
    struct local_round next = {0};
    bool late;

    TRY(local_get(game->store, &next, LOCAL_ROUND, &segment->hash, tally->round + 1));
    /* A refusal lets a leg be final with a round to come, and ends with its tenure. */
    if (next.height == 0 || segment->index < segment->job.finalized) {
        return local_refuse(game, GAME_ALREADY_DRAWN, 0);
    }
    if (segment->job.refused_until_s != 0 && !tally->vouched) {
        return local_refuse(game, GAME_STANDS_REFUSED, segment->job.refused_until_s);
    }
    if (need == 0) {
        return local_refuse(game, GAME_NOT_NEEDED, 0);
    }
    TRY(seed_of(game, &next.seed, &late, segment, next.height, next.time_s));

    next.from = tally->to;
    TRY(local_put(game->store, &next, LOCAL_ROUND, &segment->hash, tally->round + 1));
    TRY(seat_round(game, segment, &next.seed, need));
    tally->round++;
    start_round(game, segment, &next.seed);
    return local_save_segment(game, segment);
}

enum status local_draw(struct local_game *game, const struct game_move *move)
{
    const struct game_segment *shown = &move->segment;
    struct local_segment segment = {0};
    struct local_job *job = &segment.job;
    struct local_tally *tally = &segment.tally;
    struct hash32 seed = {{0}};
    bool late = false;

    TRY(local_require_shown(game, &segment, &move->key, shown));
    if (segment.index < job->drawn) {
        return draw_again(game, &segment);
    }
    /* In their order: whether one is covered depends on where its leg began. */
    if (segment.index != job->drawn) {
        return local_refuse(game, GAME_WRONG_INDEX, job->drawn);
    }
    job->drawn++;
    if (job->terms.seats == 0) {
        return draw_nobody(game, &segment);
    }
    TRY(seed_of(game, &seed, &late, &segment, shown->height, shown->time_s));
    if (!leg_is_covered(&job->terms, shown, job->segments, job->leg_start, &seed, late)) {
        tell_drawn(game, &segment, &seed);
        return local_put_job(game, job, segment.key);
    }

    cover_segment(&segment);
    tell_drawn(game, &segment, &seed);
    tally->seed = seed;
    tally->panel = shown->panel;
    TRY(seat_round(game, &segment, &seed, game_wanted_rights(&job->terms, shown, job->segments)));
    tally->first = tally->to;
    start_round(game, &segment, &seed);
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

    if (!tally->covered) {
        return local_refuse(game, GAME_NOT_DRAWN, 0);
    }
    if (place < tally->from || place >= tally->to ||
        local_get_place(tally, place) == LOCAL_PLACE_SKIPPED) {
        return local_refuse(game, GAME_WRONG_PLACE, 0);
    }
    TRY(local_get_seated(game, entry, segment, place));
    return entry->gone ? local_refuse_other(game, &entry->owner)
                       : local_require_sender(game, &entry->owner);
}

/* A seat that has said nothing yet, in time. */
static enum status require_silent(struct local_game *game, struct local_segment *segment,
                                  const struct game_move *move)
{
    struct local_entry entry = {0};
    struct hash32 seat;

    TRY(local_require_subject(game, segment, &move->key, move->index, &move->about));
    TRY(require_seat(game, &entry, segment, move->place));
    TRY(get_seat(game, &seat, segment, move->place));
    if (local_get_place(&segment->tally, move->place) != LOCAL_PLACE_DRAWN ||
        !hash32_is_zero(&seat)) {
        return local_refuse(game, GAME_ALREADY_SEALED, 0);
    }
    return local_require_not_after(game, segment->tally.start_s + segment->job.terms.seal_period_s);
}

static struct game_event *tell_seat(struct local_game *game, enum game_event_kind kind,
                                    const struct local_segment *segment, uint32_t place)
{
    struct game_event *event = local_event(game, kind, segment->key);

    event->index = segment->index;
    event->place = place;
    event->account = game->sender;
    return event;
}

enum status local_seal(struct local_game *game, const struct game_move *move)
{
    struct local_segment segment = {0};
    struct hash32 seat = {{0}};

    TRY(require_silent(game, &segment, move));

    tell_seat(game, GAME_SEALED_VERDICT, &segment, move->place)->seal = move->seal;
    memcpy(seat.bytes, move->seal.bytes, GAME_SEAL_SIZE);
    return local_put(game->store, &seat, LOCAL_SEAT, &segment.hash, move->place);
}

enum status local_unseen(struct local_game *game, const struct game_move *move)
{
    struct local_segment segment = {0};

    TRY(require_silent(game, &segment, move));

    set_place(&segment.tally, move->place, LOCAL_PLACE_UNSEEN);
    segment.tally.unseen++;
    (void)tell_seat(game, GAME_SAID_UNSEEN, &segment, move->place);
    return local_save_segment(game, &segment);
}

static enum status require_reveal(struct local_game *game, const struct local_segment *segment,
                                  uint32_t place, const struct hash32 *value)
{
    const struct local_tally *tally = &segment->tally;
    struct hash32 seal;

    TRY(get_seat(game, &seal, segment, place));
    if (local_get_place(tally, place) != LOCAL_PLACE_DRAWN || hash32_is_zero(&seal)) {
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
    struct game_event *event = tell_seat(game, GAME_REVEALED, segment, move->place);

    event->verdict = verdict;
    event->seal = move->salt;
    return event;
}

enum status local_reveal(struct local_game *game, const struct game_move *move)
{
    struct local_segment segment = {0};
    struct local_entry entry = {0};
    struct hash32 value;

    TRY(local_require_subject(game, &segment, &move->key, move->index, &move->about));
    TRY(require_seat(game, &entry, &segment, move->place));
    value = game_verdict_seal(&game->sender, &segment.hash, GAME_VERDICT_RIGHT, 0, &move->leaves,
                              &move->salt);
    TRY(require_reveal(game, &segment, move->place, &value));

    set_place(&segment.tally, move->place, LOCAL_PLACE_RIGHT);
    segment.tally.rights++;
    tell_revealed(game, &segment, move, GAME_VERDICT_RIGHT)->leaves = move->leaves;
    return local_save_segment(game, &segment);
}

/* The bond of the entry at a place is no more its owner's. */
static enum status remove_entry(struct local_game *game, struct local_entry *entry,
                                const struct local_segment *segment, uint32_t place)
{
    const uint32_t generation = segment->job.generation;
    uint32_t number = 0;

    TRY(local_entry_at(game, &number, segment, place));
    entry->gone = true;
    tell_gone(game, segment->key, generation, number, &entry->owner, 0);
    return put_entry(game, entry, segment->key, generation, number);
}

enum status local_raise(struct local_game *game, struct local_segment *segment,
                        const struct game_move *move)
{
    const uint32_t place = move->place;
    struct local_entry entry = {0};
    struct hash32 value;

    TRY(require_seat(game, &entry, segment, place));
    value = game_verdict_seal(&game->sender, &segment->hash, GAME_VERDICT_FALSE, move->shown.step,
                              NULL, &move->salt);
    TRY(require_reveal(game, segment, place, &value));

    set_place(&segment->tally, place, LOCAL_PLACE_CLOSED);
    (void)tell_revealed(game, segment, move, GAME_VERDICT_FALSE);
    TRY(remove_entry(game, &entry, segment, place));
    return local_save_segment(game, segment);
}

enum status local_find_right(struct local_game *game, struct local_right *right,
                             const struct game_move *move)
{
    struct local_segment *segment = &right->segment;
    struct hash32 value;
    struct hash32 seat;

    TRY(local_require_pending(game, segment, &move->key, &move->segment));
    if (local_get_place(&segment->tally, move->place) != LOCAL_PLACE_RIGHT) {
        return local_refuse(game, GAME_WRONG_PLACE, 0);
    }
    TRY(local_get_seated(game, &right->entry, segment, move->place));
    TRY(get_seat(game, &seat, segment, move->place));
    value = game_verdict_seal(&right->entry.owner, &segment->hash, GAME_VERDICT_RIGHT, 0,
                              &move->leaves, &move->salt);
    return memcmp(&seat, &value, GAME_SEAL_SIZE) == 0 ? STATUS_OK
                                                      : local_refuse(game, GAME_WRONG_REVEAL, 0);
}

enum status local_disprove(struct local_game *game, struct local_right *right, uint32_t place)
{
    struct local_segment *segment = &right->segment;
    struct game_event *event = tell_seat(game, GAME_DISPROVED, segment, place);
    const wei bond = segment->job.terms.bond;

    event->seal = segment->hash;
    TRY(local_entry_at(game, &event->entry, segment, place));
    segment->tally.rights--;
    segment->tally.unseen++;
    set_place(&segment->tally, place, LOCAL_PLACE_CLOSED);
    if (!right->entry.gone) {
        TRY(local_burn(game, bond / 2));
        TRY(local_credit(game, &game->sender, bond - bond / 2));
        TRY(remove_entry(game, &right->entry, segment, place));
    }
    return local_save_segment(game, segment);
}
