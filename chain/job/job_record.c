/* job_record.c - see job_record.h. */
#include "chain/job/job_record.h"

#include <stdlib.h>
#include <string.h>

void job_record_init(struct job_record *record, const struct hash32 *key,
                     const struct address *account)
{
    *record = (struct job_record){.key = *key, .state = {.unpaid = JOB_REDUCED_PAID}};
    if (account != NULL) {
        record->account = *account;
    }
}

void job_record_free(struct job_record *record)
{
    const struct hash32 key = record->key;
    const struct address account = record->account;

    for (uint32_t i = 0; record->whole && i < record->state.committed; i++) {
        free(record->segments[i].states);
    }
    for (uint32_t i = 0; i < record->void_count; i++) {
        free(record->voids[i].states);
    }
    free(record->entries);
    free(record->former);
    free(record->segments);
    free(record->voids);
    free(record->seats);
    free(record->ended);
    free(record->contacts);
    free(record->vouches);
    free(record->claims);
    memset(record, 0, sizeof(*record));
    job_record_init(record, &key, &account);
}

/* Forgets everything but the key, the account and what the reader set. */
static void start_over(struct job_record *record, uint64_t rewound)
{
    const struct game_place place = record->place;
    const struct currency currency = record->currency;
    const bool whole = record->whole;

    job_record_free(record);
    record->place = place;
    record->currency = currency;
    record->whole = whole;
    record->rewound = rewound;
}

enum status job_record_grow(void **items, uint32_t *room, uint32_t count, size_t size,
                            struct error *error)
{
    uint32_t wanted = *room == 0 ? 16 : 2 * *room;
    void *larger;

    if (count < *room) {
        return STATUS_OK;
    }
    larger = realloc(*items, wanted * size);
    if (larger == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the record of a job");
    }
    *items = larger;
    *room = wanted;
    return STATUS_OK;
}

/* ---- the job ------------------------------------------------------------------ */

static void apply_opened(struct job_record *record, const struct ledger_entry *entry)
{
    record->client = entry->event.account;
    record->terms = entry->event.terms;
    job_card_read(&record->card, &entry->event.contact);
    record->pool = game_fees(&record->terms, game_segment_count(&record->terms));
}

static bool has_ended(const struct job_record *record, const struct job_record_seat *seat)
{
    return seat->index < record->state.finalized || seat->index >= record->state.committed;
}

/* Of segments that are final or void. */
static enum status end_seats(struct job_record *record, struct error *error)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < record->seat_count; i++) {
        struct job_record_seat *seat = &record->seats[i];

        if (!has_ended(record, seat)) {
            record->seats[kept++] = *seat;
            continue;
        }
        if (!record->whole) {
            continue;
        }
        if (seat->state.phase == GAME_SEAT_SEALED || seat->state.phase == GAME_SEAT_REVEALED) {
            seat->state.phase = GAME_SEAT_CLOSED;
        }
        TRY(job_record_grow((void **)&record->ended, &record->ended_room, record->ended_count,
                            sizeof(*record->ended), error));
        record->ended[record->ended_count++] = *seat;
    }
    record->seat_count = kept;
    return STATUS_OK;
}

static enum status end_segments(struct job_record *record, uint32_t from, uint32_t to,
                                struct error *error)
{
    for (uint32_t i = from; i < to && record->whole; i++) {
        TRY(job_record_grow((void **)&record->voids, &record->void_room, record->void_count,
                            sizeof(*record->voids), error));
        record->segments[i].is_void = true;
        record->voids[record->void_count++] = record->segments[i];
    }
    return STATUS_OK;
}

/* ---- what the reducer keeps ----------------------------------------------------- */

/* Claims about what is void go on, to their own end. */
static enum status reduce(struct job_record *record, const struct ledger_entry *entry,
                          struct error *error)
{
    const struct job_reduced before = record->state;
    const struct job_reduced *after = &record->state;

    if (!job_reduced_fits(&before, &entry->event)) {
        return error_set(error, STATUS_BAD_FORMAT, "the ledger moved segment %u, which is not open",
                         entry->event.index);
    }
    job_reduced_take(&record->state, &record->terms, entry);
    if (after->generation == before.generation && after->finalized <= before.finalized) {
        return STATUS_OK;
    }
    TRY(end_segments(record, after->committed, before.committed, error));
    return end_seats(record, error);
}

/* ---- what only this reader keeps ------------------------------------------------- */

static void apply_phase(struct job_record *record, const struct ledger_entry *entry)
{
    const struct game_event *event = &entry->event;

    record->changed_height = entry->height;
    switch ((int)event->kind) {
    case GAME_ACCEPTED:
        record->last_accepted = event->account;
        record->convicted = false;
        record->accepted_s = entry->time_s;
        record->accepts++;
        break;
    case GAME_VOIDED:
        record->burned_stake += event->amount;
        record->burned_escrow += event->escrow;
        record->burned_pool += event->pool;
        record->pool -= event->pool;
        break;
    case GAME_RELEASED:
        record->burned_stake += event->amount;
        break;
    case GAME_CONVICTED:
        record->convicted = true;
        break;
    case GAME_CLOSED:
        record->pool = 0;
        record->closed_s = entry->time_s;
        break;
    default:
        break;
    }
}

static enum status copy_states(struct job_record_segment *segment, const struct game_event *event,
                               struct error *error)
{
    const size_t size = event->states.count * sizeof(*segment->states);

    if (size == 0 || event->states.count != segment->committed.steps) {
        return STATUS_OK;
    }
    segment->states = malloc(size);
    if (segment->states == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the states of a segment");
    }
    memcpy(segment->states, event->states.hashes, size);
    return STATUS_OK;
}

static enum status apply_committed(struct job_record *record, const struct ledger_entry *entry,
                                   struct error *error)
{
    const struct game_event *event = &entry->event;
    struct job_record_segment *segment;

    if (event->segment.index != record->state.committed ||
        record->state.committed >= record->state.segments) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "the ledger committed segment %u where segment %u was next",
                         event->segment.index, record->state.committed);
    }
    TRY(job_record_grow((void **)&record->segments, &record->segment_room, record->state.committed,
                        sizeof(*record->segments), error));
    segment = &record->segments[record->state.committed];
    *segment = (struct job_record_segment){.committed = event->segment,
                                           .draw = {.start_s = event->segment.time_s},
                                           .hash = game_segment_hash(&event->job, &event->segment),
                                           .number = entry->number};
    if (event->segment.index > 0) {
        segment->previous = segment[-1].committed.root;
    }
    return record->whole ? copy_states(segment, event, error) : STATUS_OK;
}

/* ---- the panel ---------------------------------------------------------------- */

static bool is_own(const struct job_record *record, const struct address *account)
{
    return !address_is_zero(&record->account) && address_equal(account, &record->account);
}

static enum status apply_enlisted(struct job_record *record, const struct ledger_entry *entry,
                                  struct error *error)
{
    const struct game_event *event = &entry->event;

    if (event->entry != record->state.entries || event->count > GAME_PANEL_MAX ||
        event->entry + event->count > GAME_PANEL_MAX) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "the ledger enlisted entry %u where entry %u was next", event->entry,
                         record->state.entries);
    }
    for (uint32_t i = 0; i < event->count; i++) {
        TRY(job_record_grow((void **)&record->entries, &record->entry_room, event->entry + i,
                            sizeof(*record->entries), error));
        record->entries[event->entry + i] =
            (struct job_record_entry){.owner = event->account,
                                      .generation = event->generation,
                                      .number = event->entry + i,
                                      .enlisted = entry->number * GAME_ENLIST_MAX + i};
    }
    record->enlisted += is_own(record, &event->account) ? event->count : 0;
    return STATUS_OK;
}

static void apply_moved(struct job_record *record, const struct game_event *event)
{
    if (event->entry == record->state.entries && event->to < record->state.entries) {
        record->entries[event->to] = record->entries[event->entry];
        record->entries[event->to].number = event->to;
    }
}

/* NULL: the record does not have it. */
static struct job_record_entry *find_former(struct job_record *record, uint32_t generation,
                                            uint32_t number)
{
    for (uint32_t i = 0; i < record->former_count; i++) {
        if (record->former[i].generation == generation && record->former[i].number == number) {
            return &record->former[i];
        }
    }
    return NULL;
}

static void drop_former(struct job_record *record, const struct game_event *event)
{
    struct job_record_entry *former = find_former(record, event->generation, event->entry);

    if (former != NULL && record->whole) {
        former->gone = true;
    } else if (former != NULL) {
        *former = record->former[--record->former_count];
    }
}

/* While nobody has the job, an entry that goes leaves no gap: MOVED follows, unless it was the
 * last. */
static void apply_gone(struct job_record *record, const struct game_event *event)
{
    if (event->generation != record->state.generation) {
        drop_former(record, event);
    } else if (event->entry < record->state.entries) {
        record->entries[event->entry].gone = true;
    }
}

/* A new tenure has a new panel. Of the last one most need the account's bonds alone. */
static enum status end_panel(struct job_record *record, struct error *error)
{
    for (uint32_t i = 0; i < record->state.entries; i++) {
        const struct job_record_entry *entry = &record->entries[i];

        if ((entry->gone || !is_own(record, &entry->owner)) &&
            (!record->whole || record->former_count >= JOB_RECORD_FORMER_MAX)) {
            continue;
        }
        TRY(job_record_grow((void **)&record->former, &record->former_room, record->former_count,
                            sizeof(*record->former), error));
        record->former[record->former_count++] = *entry;
    }
    return STATUS_OK;
}

/* The bond of a right that was disproved is lost, also where its segment is over. */
static void lose_bond(struct job_record *record, const struct ledger_entry *entry)
{
    const struct game_event *event = &entry->event;
    uint32_t generation = record->state.generation;
    struct job_record_entry *lost;

    for (uint32_t i = 0; i < record->void_count; i++) {
        if (hash32_equal(&record->voids[i].hash, &event->seal)) {
            generation = record->voids[i].committed.generation;
        }
    }
    if (generation == record->state.generation) {
        lost = event->entry < record->state.entries ? &record->entries[event->entry] : NULL;
    } else {
        lost = find_former(record, generation, event->entry);
    }
    if (lost != NULL) {
        lost->lost_s = entry->time_s;
    }
}

struct seating {
    const struct job_record *record;
    uint32_t index;
};

static bool find_entry(void *context, struct job_entry *entry, uint32_t number)
{
    const struct seating *seating = context;

    if (number >= seating->record->state.entries) {
        return false;
    }
    *entry = (struct job_entry){.owner = seating->record->entries[number].owner,
                                .gone = seating->record->entries[number].gone};
    return true;
}

static bool is_seated(void *context, uint32_t number)
{
    const struct seating *seating = context;

    for (uint32_t i = 0; i < seating->record->seat_count; i++) {
        const struct job_record_seat *seat = &seating->record->seats[i];

        if (seat->index == seating->index && seat->state.entry == number) {
            return true;
        }
    }
    return false;
}

static enum status apply_round(struct job_record *record, struct job_record_segment *segment,
                               const struct game_event *event, struct error *error)
{
    struct seating seating = {record, event->index};
    const struct job_panel panel = {
        .context = &seating, .find = find_entry, .is_seated = is_seated};
    struct job_place places[GAME_PLACES_MAX];

    segment->sealed = 0;
    segment->seated =
        job_round_places(places, &event->seal, &segment->committed, event->from, event->to, &panel);
    segment->draw.seats += segment->seated;
    for (uint32_t i = 0; i < segment->seated && record->seat_count < JOB_RECORD_SEATS_MAX; i++) {
        TRY(job_record_grow((void **)&record->seats, &record->seat_room, record->seat_count,
                            sizeof(*record->seats), error));
        record->seats[record->seat_count++] =
            (struct job_record_seat){.index = event->index,
                                     .segment = segment->hash,
                                     .place = places[i].place,
                                     .owner = places[i].owner,
                                     .round = event->round,
                                     .state = {.entry = places[i].entry}};
    }
    return STATUS_OK;
}

/* The latest first, each once. */
static void note_seen(struct job_record *record, const struct address *account)
{
    uint32_t at = 0;

    while (at < record->seen_count && !address_equal(&record->seen[at], account)) {
        at++;
    }
    if (at == record->seen_count) {
        at = record->seen_count < JOB_RECORD_SEEN_MAX ? record->seen_count++ : at - 1;
    }
    memmove(&record->seen[1], &record->seen[0], at * sizeof(record->seen[0]));
    record->seen[0] = *account;
}

/* What a place says, or how it ends. Rights are paid out of the pool; what a void pays to seats is
 * the solver's stake. */
static void apply_to_seat(struct job_record *record, struct job_record_segment *segment,
                          const struct game_event *event)
{
    segment->sealed += event->kind == GAME_SEALED_VERDICT || event->kind == GAME_SAID_UNSEEN;
    for (uint32_t i = 0; i < record->seat_count; i++) {
        struct job_record_seat *seat = &record->seats[i];

        if (seat->index != event->index || seat->place != event->place) {
            continue;
        }
        job_reduced_take_seat(&seat->state, &segment->draw, event);
        if (event->kind == GAME_SEALED_VERDICT) {
            seat->seal = event->seal;
        } else if (event->kind == GAME_REVEALED) {
            seat->leaves = event->leaves;
            seat->salt = event->seal;
        }
        if (event->kind == GAME_FEE_PAID && seat->state.phase == GAME_SEAT_REVEALED) {
            record->pool -= event->amount;
        }
        if (event->kind == GAME_REVEALED && event->verdict == GAME_VERDICT_RIGHT) {
            note_seen(record, &seat->owner);
        }
    }
}

/* ---- segments ----------------------------------------------------------------- */

/* job->leg_start is still that of before the event. */
static enum status apply_to_segment(struct job_record *record, const struct ledger_entry *entry,
                                    struct error *error)
{
    const struct game_event *event = &entry->event;
    struct job_record_segment *segment;

    if (event->kind == GAME_DISPROVED) {
        lose_bond(record, entry);
    }
    if (event->index >= record->state.committed) {
        return STATUS_OK;
    }
    segment = &record->segments[event->index];
    if (event->kind == GAME_DISPROVED && !hash32_equal(&segment->hash, &event->seal)) {
        return STATUS_OK;
    }
    job_reduced_take_segment(&segment->draw, record->state.leg_start, event);
    switch ((int)event->kind) {
    case GAME_ROUND:
        return apply_round(record, segment, event, error);
    case GAME_VOUCHED:
        record->vouched_s = entry->time_s;
        return STATUS_OK;
    case GAME_DRAWN:
    case GAME_ROUND_OVER:
        return STATUS_OK;
    default:
        apply_to_seat(record, segment, event);
        return STATUS_OK;
    }
}

/* ---- claims ------------------------------------------------------------------- */

static struct job_record_claim *find_claim(struct job_record *record, const struct hash32 *key)
{
    for (uint32_t i = 0; i < record->claim_count; i++) {
        if (job_record_claim_is_open(&record->claims[i]) &&
            hash32_equal(&record->claims[i].key, key)) {
            return &record->claims[i];
        }
    }
    return NULL;
}

/* The claimants of a panel are known by their entries. */
static void add_claimant(const struct job_record *record, struct job_record_claim *claim,
                         const struct game_event *event)
{
    claim->outsiders_ever += event->rank >= GAME_RANK_OUTSIDER;
    if (event->rank >= GAME_RANK_OUTSIDER && claim->outsider_count < GAME_OUTSIDERS_MAX) {
        claim->outsiders[claim->outsider_count++] = event->account;
    }
    if (is_own(record, &event->account)) {
        claim->ours = true;
        claim->bond = event->amount;
    }
}

static void remove_claimant(struct job_record_claim *claim, const struct address *account)
{
    for (uint32_t i = 0; i < claim->outsider_count; i++) {
        if (address_equal(&claim->outsiders[i], account)) {
            claim->outsiders[i] = claim->outsiders[--claim->outsider_count];
            return;
        }
    }
}

/* A second claimant of a live claim joins it, and may lower its rank. */
static enum status apply_claimed(struct job_record *record, const struct ledger_entry *entry,
                                 struct error *error)
{
    const struct game_event *event = &entry->event;
    struct job_record_claim *claim = find_claim(record, &event->claim);
    struct job_record_segment *segment;

    if (claim != NULL) {
        job_reduced_take_claim(&claim->state, event);
        add_claimant(record, claim, event);
        return STATUS_OK;
    }
    if (record->claim_count >= JOB_RECORD_CLAIMS_MAX || event->index >= record->state.committed) {
        return STATUS_OK;
    }
    TRY(job_record_grow((void **)&record->claims, &record->claim_room, record->claim_count,
                        sizeof(*record->claims), error));
    segment = &record->segments[event->index];
    segment->open_claims++;
    record->claims[record->claim_count++] = (struct job_record_claim){
        .key = event->claim,
        .number = entry->number,
        .segment = segment->hash,
        .subject =
            game_subject_hash(&segment->hash, event->step, &event->pre_state, &event->post_state),
        .index = event->index,
        .generation = record->state.generation,
        .step = event->step,
        .pre_state = event->pre_state,
        .post_state = event->post_state,
        .solver = segment->committed.solver,
        .state = job_reduced_claim_of(event)};
    add_claimant(record, &record->claims[record->claim_count - 1], event);
    return STATUS_OK;
}

static void close_claim(struct job_record *record, struct job_record_claim *claim)
{
    if (claim->index < record->state.committed &&
        record->segments[claim->index].committed.generation == claim->generation) {
        record->segments[claim->index].open_claims--;
    }
}

static void apply_to_claim(struct job_record *record, const struct ledger_entry *entry)
{
    const struct game_event *event = &entry->event;
    struct job_record_claim *claim = find_claim(record, &event->claim);

    if (claim == NULL) {
        return;
    }
    job_reduced_take_claim(&claim->state, event);
    switch ((int)event->kind) {
    case GAME_QUERIED:
        if (event->payload.size <= sizeof(claim->queried)) {
            claim->queried_size = (uint32_t)event->payload.size;
            memcpy(claim->queried, event->payload.bytes, event->payload.size);
        }
        break;
    case GAME_ANSWERED:
        claim->trace_root = event->root;
        break;
    case GAME_DEFAULTED: /* the clock of a claimant ran out: its bond is lost */
        remove_claimant(claim, &event->account);
        if (is_own(record, &event->account)) {
            claim->ours = false;
            claim->lost = true;
            claim->lost_s = entry->time_s;
        }
        break;
    case GAME_RULED:
        close_claim(record, claim);
        break;
    default:
        break;
    }
}

/* ---- entries of the log --------------------------------------------------------- */

/* What is read before the reducer changes the job. */
static enum status apply_before(struct job_record *record, const struct ledger_entry *entry,
                                struct error *error)
{
    const struct game_event *event = &entry->event;

    switch ((int)event->kind) {
    case GAME_OPENED:
        apply_opened(record, entry);
        return STATUS_OK;
    case GAME_COMMITTED:
        return apply_committed(record, entry, error);
    case GAME_ENLISTED:
        return apply_enlisted(record, entry, error);
    case GAME_DRAWN:
        return apply_to_segment(record, entry, error);
    case GAME_GONE:
        apply_gone(record, event);
        return STATUS_OK;
    default:
        return job_event_reopens(event->kind) ? end_panel(record, error) : STATUS_OK;
    }
}

static enum status apply_after(struct job_record *record, const struct ledger_entry *entry,
                               struct error *error)
{
    const struct game_event *event = &entry->event;

    switch ((int)event->kind) {
    case GAME_FINALIZED:
        record->earned += event->amount;
        record->finalized_s = entry->time_s;
        return STATUS_OK;
    case GAME_RESUMED:
        record->pool += event->pool;
        return STATUS_OK;
    case GAME_STOPPED:
        record->stopped = true;
        return STATUS_OK;
    case GAME_REFUSED:
        record->refuser = event->account;
        return STATUS_OK;
    case GAME_MOVED:
        apply_moved(record, event);
        return STATUS_OK;
    case GAME_ANNOUNCED:
        TRY(job_record_take_word(record, entry, error));
        return STATUS_OK;
    case GAME_CLAIMED:
        return apply_claimed(record, entry, error);
    case GAME_COMMITTED:
    case GAME_ENLISTED:
    case GAME_DRAWN:
    case GAME_GONE:
    case GAME_PAID:
        return STATUS_OK;
    default:
        return apply_to_segment(record, entry, error);
    }
}

static enum status apply_to_job(struct job_record *record, const struct ledger_entry *entry,
                                struct error *error)
{
    const enum game_event_kind kind = entry->event.kind;

    if (record->state.phase == GAME_PHASE_NONE && kind != GAME_OPENED) {
        return STATUS_OK;
    }
    TRY(apply_before(record, entry, error));
    if (job_reduced_is_changed_by(kind)) {
        TRY(reduce(record, entry, error));
    }
    if (record->whole) {
        TRY(job_record_take_contact(record, entry, error));
    }
    if (job_event_phase(kind) != GAME_PHASE_NONE) {
        apply_phase(record, entry);
        return STATUS_OK;
    }
    return apply_after(record, entry, error);
}

enum status job_record_take(struct job_record *record, const struct ledger_entry *entry,
                            struct error *error)
{
    const struct game_event *event = &entry->event;

    record->read = entry->number;
    if (entry->kind == LEDGER_REWIND) {
        if (entry->number > record->rewound) {
            start_over(record, entry->number);
        }
        return STATUS_OK;
    }
    if (event->kind == GAME_WITHDRAWN) {
        record->withdrawals += address_equal(&event->account, &record->account);
        return STATUS_OK;
    }
    if (job_event_is_of_claim(event->kind)) {
        apply_to_claim(record, entry);
        return STATUS_OK;
    }
    return event->kind != GAME_SEALED && hash32_equal(&event->job, &record->key)
               ? apply_to_job(record, entry, error)
               : STATUS_OK;
}

enum status job_record_follow(struct job_record *record, struct ledger *ledger, struct error *error)
{
    struct ledger_entry entry;
    enum status status;

    record->place = *ledger_get_game(ledger);
    record->currency = *ledger_get_currency(ledger);
    while ((status = ledger_next(ledger, &entry, record->read, 0, error)) == STATUS_OK) {
        TRY(job_record_take(record, &entry, error));
    }
    TRY(status == STATUS_NOT_FOUND ? STATUS_OK : status);
    job_record_ask_words(record, ledger);
    return STATUS_OK;
}

/* ---- what follows ---------------------------------------------------------------- */

struct job_segment job_record_segment(const struct job_record *record, uint32_t index)
{
    const struct job_record_segment *of = &record->segments[index];
    struct job_segment segment =
        job_segment_of(&record->terms, &record->state, &of->committed, &of->draw, of->has_vouch);

    segment.open_claims = of->open_claims;
    segment.job_claims = job_record_open_claims(record);
    return segment;
}

uint32_t job_record_unvouched(const struct job_record *record)
{
    bool all = true; /* covered ones so far are vouched for */
    uint32_t count = 0;

    for (uint32_t i = record->state.finalized; i < record->state.committed; i++) {
        const struct job_record_segment *segment = &record->segments[i];

        all = all && (!segment->draw.covered || segment->draw.vouched || segment->has_vouch);
        count = all && segment->draw.covered ? 0 : count + 1;
    }
    return count;
}

enum job_segment_wait job_record_waits_for(const struct job_record *record, uint32_t index,
                                           uint64_t now_s)
{
    struct job_segment segment = job_record_segment(record, index);

    return job_segment_waits_for(&segment, now_s);
}

uint32_t job_record_open_claims(const struct job_record *record)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < record->claim_count; i++) {
        count += job_record_claim_is_open(&record->claims[i]) &&
                 record->claims[i].generation == record->state.generation;
    }
    return count;
}

uint32_t job_record_outsiders(const struct job_record *record)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < record->claim_count; i++) {
        count +=
            job_record_claim_is_open(&record->claims[i]) ? record->claims[i].outsiders_ever : 0;
    }
    return count;
}

bool job_record_claim_is_open(const struct job_record_claim *claim)
{
    return claim->state.phase != GAME_CLAIM_CLOSED;
}

bool job_record_is_claimant(const struct job_record_claim *claim, const struct address *account)
{
    for (uint32_t i = 0; i < claim->outsider_count; i++) {
        if (address_equal(&claim->outsiders[i], account)) {
            return true;
        }
    }
    return address_equal(&claim->state.lead, account);
}

bool job_record_claim_is_overtaken(const struct job_record *record,
                                   const struct job_record_claim *claim)
{
    if (!job_record_claim_is_open(claim) || claim->state.phase == GAME_CLAIM_TRIED) {
        return false;
    }
    for (uint32_t i = 0; i < record->claim_count; i++) {
        const struct job_record_claim *other = &record->claims[i];

        if (!job_record_claim_is_open(other) && other->state.outcome == GAME_UPHELD &&
            other->generation == claim->generation && other->state.rank < claim->state.rank) {
            return true;
        }
    }
    return false;
}
