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
    free(record->entries);
    free(record->bonds);
    free(record->segments);
    free(record->seats);
    free(record->vouches);
    free(record->claims);
    record->entries = NULL;
    record->bonds = NULL;
    record->segments = NULL;
    record->seats = NULL;
    record->vouches = NULL;
    record->claims = NULL;
}

/* Forgets everything but the key and the account. The memory of the lists serves again. */
static void start_over(struct job_record *record, uint64_t rewound)
{
    struct job_record old = *record;

    job_record_init(record, &old.key, &old.account);
    record->place = old.place;
    record->currency = old.currency;
    record->entries = old.entries;
    record->entry_room = old.entry_room;
    record->bonds = old.bonds;
    record->bond_room = old.bond_room;
    record->segments = old.segments;
    record->segment_room = old.segment_room;
    record->seats = old.seats;
    record->seat_room = old.seat_room;
    record->vouches = old.vouches;
    record->claims = old.claims;
    record->claim_room = old.claim_room;
    record->rewound = rewound;
}

/* Makes room for one more of size bytes each. */
static enum status grow(void **items, uint32_t *room, uint32_t count, size_t size,
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

/* Those of segments that are final or void. */
static void drop_seats(struct job_record *record)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < record->seat_count; i++) {
        struct job_record_seat *seat = &record->seats[i];

        if (seat->segment.index >= record->state.finalized &&
            seat->segment.index < record->state.committed) {
            record->seats[kept++] = *seat;
        }
    }
    record->seat_count = kept;
}

/* ---- what the reducer keeps ----------------------------------------------------- */

/* Claims about what is void go on, to their own end. */
static void reduce(struct job_record *record, const struct ledger_entry *entry)
{
    const struct job_reduced before = record->state;
    const struct job_reduced *after = &record->state;

    job_reduced_take(&record->state, &record->terms, entry);
    if (after->generation != before.generation || after->finalized > before.finalized) {
        drop_seats(record);
    }
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
        break;
    default:
        break;
    }
}

static enum status apply_committed(struct job_record *record, const struct game_event *event,
                                   struct error *error)
{
    if (event->segment.index != record->state.committed ||
        record->state.committed >= record->state.segments) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "the ledger committed segment %u where segment %u was next",
                         event->segment.index, record->state.committed);
    }
    TRY(grow((void **)&record->segments, &record->segment_room, record->state.committed,
             sizeof(*record->segments), error));
    record->segments[record->state.committed] = (struct job_record_segment){
        .committed = event->segment, .draw = {.start_s = event->segment.time_s}};
    return STATUS_OK;
}

/* ---- the panel ---------------------------------------------------------------- */

static enum status apply_enlisted(struct job_record *record, const struct game_event *event,
                                  struct error *error)
{
    if (event->entry != record->state.entries || event->count > GAME_PANEL_MAX ||
        event->entry + event->count > GAME_PANEL_MAX) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "the ledger enlisted entry %u where entry %u was next", event->entry,
                         record->state.entries);
    }
    for (uint32_t i = 0; i < event->count; i++) {
        TRY(grow((void **)&record->entries, &record->entry_room, event->entry + i,
                 sizeof(*record->entries), error));
        record->entries[event->entry + i] = (struct job_entry){.owner = event->account};
    }
    return STATUS_OK;
}

static void apply_moved(struct job_record *record, const struct game_event *event)
{
    if (event->entry == record->state.entries && event->to < record->state.entries) {
        record->entries[event->to] = record->entries[event->entry];
    }
}

static void drop_bond(struct job_record *record, const struct game_event *event)
{
    for (uint32_t i = 0; i < record->bond_count; i++) {
        if (record->bonds[i].generation == event->generation &&
            record->bonds[i].entry == event->entry) {
            record->bonds[i] = record->bonds[--record->bond_count];
            return;
        }
    }
}

/* While nobody has the job, an entry that goes leaves no gap: MOVED follows, unless it was the
 * last. */
static void apply_gone(struct job_record *record, const struct game_event *event)
{
    if (event->generation != record->state.generation) {
        drop_bond(record, event);
    } else if (event->entry < record->state.entries) {
        record->entries[event->entry].gone = true;
    }
}

/* A new tenure has a new panel. Of the last one only the account's bonds are of use. */
static enum status end_panel(struct job_record *record, uint32_t generation, struct error *error)
{
    for (uint32_t i = 0; i < record->state.entries; i++) {
        if (record->entries[i].gone || record->bond_count >= JOB_RECORD_BONDS_MAX ||
            address_is_zero(&record->account) ||
            !address_equal(&record->entries[i].owner, &record->account)) {
            continue;
        }
        TRY(grow((void **)&record->bonds, &record->bond_room, record->bond_count,
                 sizeof(*record->bonds), error));
        record->bonds[record->bond_count++] =
            (struct job_record_bond){.generation = generation, .entry = i};
    }
    return STATUS_OK;
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
    *entry = seating->record->entries[number];
    return true;
}

static bool is_seated(void *context, uint32_t number)
{
    const struct seating *seating = context;

    for (uint32_t i = 0; i < seating->record->seat_count; i++) {
        const struct job_record_seat *seat = &seating->record->seats[i];

        if (seat->segment.index == seating->index && seat->state.entry == number) {
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
        TRY(grow((void **)&record->seats, &record->seat_room, record->seat_count,
                 sizeof(*record->seats), error));
        record->seats[record->seat_count++] =
            (struct job_record_seat){.segment = segment->committed,
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

        if (seat->segment.index != event->index || seat->place != event->place) {
            continue;
        }
        job_reduced_take_seat(&seat->state, &segment->draw, event);
        if (event->kind == GAME_FEE_PAID && seat->state.phase == GAME_SEAT_REVEALED) {
            record->pool -= event->amount;
        }
        if (event->kind == GAME_REVEALED && event->verdict == GAME_VERDICT_RIGHT) {
            note_seen(record, &seat->owner);
        }
    }
}

/* ---- segments ----------------------------------------------------------------- */

static bool is_about(const struct job_record_segment *segment, const struct game_event *event)
{
    struct hash32 hash = game_segment_hash(&event->job, &segment->committed);

    return hash32_equal(&hash, &event->seal);
}

/* job->leg_start is still that of before the event. */
static enum status apply_to_segment(struct job_record *record, const struct ledger_entry *entry,
                                    struct error *error)
{
    const struct game_event *event = &entry->event;
    struct job_record_segment *segment;

    if (event->index >= record->state.committed) {
        return STATUS_OK;
    }
    segment = &record->segments[event->index];
    if (event->kind == GAME_DISPROVED && !is_about(segment, event)) {
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
static void add_claimant(struct job_record_claim *claim, const struct game_event *event)
{
    if (event->rank >= GAME_RANK_OUTSIDER && claim->outsider_count < GAME_OUTSIDERS_MAX) {
        claim->outsiders[claim->outsider_count++] = event->account;
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
static enum status apply_claimed(struct job_record *record, const struct game_event *event,
                                 struct error *error)
{
    struct job_record_claim *claim = find_claim(record, &event->claim);

    if (claim != NULL) {
        job_reduced_take_claim(&claim->state, event);
        add_claimant(claim, event);
        return STATUS_OK;
    }
    if (record->claim_count >= JOB_RECORD_CLAIMS_MAX || event->index >= record->state.committed) {
        return STATUS_OK;
    }
    TRY(grow((void **)&record->claims, &record->claim_room, record->claim_count,
             sizeof(*record->claims), error));
    record->segments[event->index].open_claims++;
    record->claims[record->claim_count++] =
        (struct job_record_claim){.key = event->claim,
                                  .index = event->index,
                                  .generation = record->state.generation,
                                  .step = event->step,
                                  .pre_state = event->pre_state,
                                  .post_state = event->post_state,
                                  .solver = record->segments[event->index].committed.solver,
                                  .state = job_reduced_claim_of(event)};
    add_claimant(&record->claims[record->claim_count - 1], event);
    return STATUS_OK;
}

static void close_claim(struct job_record *record, struct job_record_claim *claim)
{
    if (claim->index < record->state.committed &&
        record->segments[claim->index].committed.generation == claim->generation) {
        record->segments[claim->index].open_claims--;
    }
}

static void apply_to_claim(struct job_record *record, const struct game_event *event)
{
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
    case GAME_DEFAULTED:
        remove_claimant(claim, &event->account);
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
        return apply_committed(record, event, error);
    case GAME_ENLISTED:
        return apply_enlisted(record, event, error);
    case GAME_DRAWN:
        return apply_to_segment(record, entry, error);
    case GAME_GONE:
        apply_gone(record, event);
        return STATUS_OK;
    default:
        return job_event_reopens(event->kind) ? end_panel(record, record->state.generation, error)
                                              : STATUS_OK;
    }
}

static enum status apply_after(struct job_record *record, const struct ledger_entry *entry,
                               struct error *error)
{
    const struct game_event *event = &entry->event;

    switch ((int)event->kind) {
    case GAME_FINALIZED:
        record->earned += event->amount;
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
        return apply_claimed(record, event, error);
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
        reduce(record, entry);
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
        apply_to_claim(record, event);
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
