/* job_record.c - see job_record.h. */
#include "chain/job/job_record.h"

#include <stdlib.h>
#include <string.h>

void job_record_init(struct job_record *record, const struct hash32 *key,
                     const struct address *account)
{
    *record = (struct job_record){.key = *key, .unpaid = UINT32_MAX};
    if (account != NULL) {
        record->account = *account;
    }
}

void job_record_free(struct job_record *record)
{
    free(record->entries);
    free(record->segments);
    free(record->seats);
    free(record->claims);
    record->entries = NULL;
    record->segments = NULL;
    record->seats = NULL;
    record->claims = NULL;
}

/* Forgets everything but the key and the account. The memory of the lists serves again. */
static void start_over(struct job_record *record, uint64_t rewound)
{
    struct job_record old = *record;

    job_record_init(record, &old.key, &old.account);
    record->entries = old.entries;
    record->entry_room = old.entry_room;
    record->segments = old.segments;
    record->segment_room = old.segment_room;
    record->seats = old.seats;
    record->seat_room = old.seat_room;
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
    record->segment_count = game_segment_count(&record->terms);
}

/* Those of segments that are final or void. */
static void drop_seats(struct job_record *record)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < record->seat_count; i++) {
        struct job_record_seat *seat = &record->seats[i];

        if (seat->segment.index >= record->finalized && seat->segment.index < record->committed) {
            record->seats[kept++] = *seat;
        }
    }
    record->seat_count = kept;
}

/* What is not final is void. Claims about it go on, to their own end. */
static void void_committed(struct job_record *record)
{
    record->committed = record->finalized;
    record->ended = false;
    drop_seats(record);
}

static void apply_phase(struct job_record *record, const struct ledger_entry *entry)
{
    const struct game_event *event = &entry->event;

    record->changed_height = entry->height;
    record->phase = job_event_phase(event->kind);
    if (event->kind == GAME_ACCEPTED) {
        record->solver = event->account;
        record->last_accepted = event->account;
        record->convicted = false;
        record->reward = event->amount;
        record->accepted_s = entry->time_s;
        record->due_s = event->time_s;
        record->held = 0;
        record->accepts++;
        return;
    }
    record->cancelled = event->kind == GAME_CANCELLED;
    if (record->phase == GAME_PHASE_CLOSED) {
        record->closed_s = entry->time_s;
        if (record->finalized < record->segment_count && !record->ended) {
            record->held = 0; /* it expired: the solver left with what was held */
        }
        return;
    }
    record->opened_s = entry->time_s;
    record->held = 0;
    if (event->kind == GAME_CONVICTED) {
        record->convicted = true;
        record->unpaid = record->generation;
    }
    record->generation += event->kind == GAME_CONVICTED || event->kind == GAME_VOIDED;
    memset(&record->solver, 0, sizeof(record->solver));
}

/* The client pays for final segments again. */
static void apply_rewound(struct job_record *record, uint32_t index)
{
    record->generation++;
    if (index < record->finalized) {
        record->finalized = index;
        record->committed = index;
        record->ended = false;
    }
}

static enum status apply_committed(struct job_record *record, const struct game_event *event,
                                   struct error *error)
{
    const struct game_terms *terms = &record->terms;
    uint64_t due_s = event->segment.time_s + terms->segment_period_s;

    if (event->segment.index != record->committed || record->committed >= record->segment_count) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "the ledger committed segment %u where segment %u was next",
                         event->segment.index, record->committed);
    }
    TRY(grow((void **)&record->segments, &record->segment_room, record->committed,
             sizeof(*record->segments), error));
    record->segments[record->committed++] =
        (struct job_record_segment){.committed = event->segment, .start_s = event->segment.time_s};
    record->generation = event->segment.generation;
    record->due_s = due_s < terms->deadline_s ? due_s : terms->deadline_s;
    record->ended = event->segment.diverged;
    return STATUS_OK;
}

/* ---- the panel ---------------------------------------------------------------- */

static enum status apply_enlisted(struct job_record *record, const struct game_event *event,
                                  struct error *error)
{
    if (event->entry != record->entry_count || event->count > GAME_PANEL_MAX ||
        event->entry + event->count > GAME_PANEL_MAX) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "the ledger enlisted entry %u where entry %u was next", event->entry,
                         record->entry_count);
    }
    for (uint32_t i = 0; i < event->count; i++) {
        TRY(grow((void **)&record->entries, &record->entry_room, record->entry_count,
                 sizeof(*record->entries), error));
        record->entries[record->entry_count++] = (struct job_entry){.owner = event->account};
    }
    return STATUS_OK;
}

struct seating {
    struct job_record *record;
    uint32_t index;
};

static bool find_entry(void *context, struct job_entry *entry, uint32_t number)
{
    const struct seating *seating = context;

    if (number >= seating->record->entry_count) {
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

        if (seat->segment.index == seating->index && seat->entry == number) {
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

    segment->start_s = event->time_s;
    segment->round = event->round;
    segment->to = event->to;
    segment->ended = event->from == event->to;
    segment->sealed = 0;
    segment->seated = job_round_places(places, &segment->seed, &segment->committed, event->from,
                                       event->to, &panel);
    for (uint32_t i = 0; i < segment->seated && record->seat_count < JOB_RECORD_SEATS_MAX; i++) {
        TRY(grow((void **)&record->seats, &record->seat_room, record->seat_count,
                 sizeof(*record->seats), error));
        record->seats[record->seat_count++] =
            (struct job_record_seat){.segment = segment->committed,
                                     .place = places[i].place,
                                     .entry = places[i].entry,
                                     .owner = places[i].owner,
                                     .round = event->round};
    }
    return STATUS_OK;
}

/* What a place says, or how it ends. */
static void apply_to_seat(struct job_record *record, struct job_record_segment *segment,
                          const struct game_event *event)
{
    segment->sealed += event->kind == GAME_SEALED_VERDICT;
    if (event->kind == GAME_REVEALED) {
        segment->rights += event->verdict == GAME_VERDICT_RIGHT;
        segment->unavailables += event->verdict == GAME_VERDICT_UNAVAILABLE;
    }
    segment->rights -= event->kind == GAME_DISPROVED && segment->rights > 0;
    for (uint32_t i = 0; i < record->seat_count; i++) {
        struct job_record_seat *seat = &record->seats[i];

        if (seat->segment.index == event->index && seat->place == event->place) {
            seat->phase = event->kind == GAME_SEALED_VERDICT ? GAME_SEAT_SEALED
                          : event->kind == GAME_REVEALED     ? GAME_SEAT_REVEALED
                                                             : GAME_SEAT_CLOSED;
        }
    }
}

/* ---- segments ----------------------------------------------------------------- */

static void apply_finalized(struct job_record *record, uint32_t index, wei reward)
{
    record->finalized = index + 1;
    record->earned += reward;
    record->held++;
    drop_seats(record);
}

/* The panel is drawn once more for the last segment: can its state be had? */
static void apply_asked(struct job_record *record, const struct ledger_entry *entry)
{
    struct job_record_segment *segment;

    record->asked = true;
    if (record->finalized > 0) {
        segment = &record->segments[record->finalized - 1];
        *segment =
            (struct job_record_segment){.committed = segment->committed, .start_s = entry->time_s};
        job_event_ask(&segment->committed, entry, record->entry_count);
    }
}

static enum status apply_to_segment(struct job_record *record, const struct game_event *event,
                                    struct error *error)
{
    struct job_record_segment *segment;

    if (event->index >= record->committed) {
        return STATUS_OK; /* it is void: its rights can be disproved even then */
    }
    segment = &record->segments[event->index];
    switch ((int)event->kind) {
    case GAME_DRAWN:
        segment->seed = event->seal;
        segment->covered = event->flag;
        return STATUS_OK;
    case GAME_ROUND:
        return apply_round(record, segment, event, error);
    case GAME_FINALIZED:
        apply_finalized(record, event->index, event->amount);
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
        if (record->claims[i].open && hash32_equal(&record->claims[i].key, key)) {
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
        claim->rank = event->rank < claim->rank ? event->rank : claim->rank;
        add_claimant(claim, event);
        return STATUS_OK;
    }
    if (record->claim_count >= JOB_RECORD_CLAIMS_MAX || event->index >= record->committed) {
        return STATUS_OK;
    }
    TRY(grow((void **)&record->claims, &record->claim_room, record->claim_count,
             sizeof(*record->claims), error));
    record->segments[event->index].open_claims++;
    record->claims[record->claim_count++] =
        (struct job_record_claim){.key = event->claim,
                                  .index = event->index,
                                  .generation = record->generation,
                                  .step = event->step,
                                  .pre_state = event->pre_state,
                                  .post_state = event->post_state,
                                  .solver = record->segments[event->index].committed.solver,
                                  .lead = event->account,
                                  .rank = event->rank,
                                  .open = true,
                                  .phase = GAME_CLAIM_WAITING,
                                  .turn = GAME_TURN_ACCUSED};
    add_claimant(&record->claims[record->claim_count - 1], event);
    return STATUS_OK;
}

static void close_claim(struct job_record *record, struct job_record_claim *claim,
                        enum game_outcome outcome)
{
    claim->open = false;
    claim->outcome = outcome;
    claim->phase = GAME_CLAIM_CLOSED;
    if (claim->index < record->committed &&
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
    switch ((int)event->kind) {
    case GAME_TURN_PASSED:
        claim->phase = (enum game_claim_phase)event->phase;
        claim->turn = (enum game_turn)event->turn;
        claim->lead = event->account;
        claim->deadline_s = event->time_s;
        claim->turns++;
        break;
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
        close_claim(record, claim, (enum game_outcome)event->outcome);
        break;
    default:
        break;
    }
}

/* ---- entries of the log --------------------------------------------------------- */

static enum status apply_to_job(struct job_record *record, const struct ledger_entry *entry,
                                struct error *error)
{
    const struct game_event *event = &entry->event;

    if (event->kind == GAME_OPENED) {
        apply_opened(record, entry);
    } else if (record->phase == GAME_PHASE_NONE) {
        return STATUS_OK;
    }
    if (job_event_voids(event->kind) && record->finalized < record->committed) {
        void_committed(record);
    }
    if (job_event_phase(event->kind) != GAME_PHASE_NONE) {
        apply_phase(record, entry);
        return STATUS_OK;
    }
    switch ((int)event->kind) {
    case GAME_REWOUND:
        apply_rewound(record, event->index);
        return STATUS_OK;
    case GAME_COMMITTED:
        return apply_committed(record, event, error);
    case GAME_ENLISTED:
        return apply_enlisted(record, event, error);
    case GAME_LEFT:
    case GAME_GONE:
        if (event->entry < record->entry_count) {
            record->entries[event->entry].left = true;
            record->entries[event->entry].gone |= event->kind == GAME_GONE;
        }
        return STATUS_OK;
    case GAME_ASKED:
        apply_asked(record, entry);
        return STATUS_OK;
    case GAME_DELIVERED:
        record->delivered = true;
        return STATUS_OK;
    case GAME_CLAIMED:
        return apply_claimed(record, event, error);
    case GAME_PAID:
        record->unpaid = record->unpaid == event->generation ? UINT32_MAX : record->unpaid;
        return STATUS_OK;
    case GAME_ANNOUNCED:
        return STATUS_OK;
    default:
        return apply_to_segment(record, event, error);
    }
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

    while ((status = ledger_next(ledger, &entry, record->read, 0, error)) == STATUS_OK) {
        TRY(job_record_take(record, &entry, error));
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- what follows ---------------------------------------------------------------- */

struct job_segment job_record_segment(const struct job_record *record, uint32_t index)
{
    const struct job_record_segment *segment = &record->segments[index];

    return (struct job_segment){.terms = &record->terms,
                                .height = segment->committed.height,
                                .start_s = segment->start_s,
                                .rights = segment->rights,
                                .unavailables = segment->unavailables,
                                .open_claims = segment->open_claims,
                                .job_claims = job_record_open_claims(record),
                                .drawn = !hash32_is_zero(&segment->seed),
                                .covered = segment->covered,
                                .ended = segment->ended,
                                .final = index < record->finalized,
                                .first = index == record->finalized};
}

bool job_record_can_deny(const struct job_record *record)
{
    return record->terms.seats > 0 && record->finalized > 0 &&
           record->segments[record->finalized - 1].committed.panel >= -GAME_SCORE_VOID;
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
        count += record->claims[i].open && record->claims[i].generation == record->generation;
    }
    return count;
}

bool job_record_is_claimant(const struct job_record_claim *claim, const struct address *account)
{
    for (uint32_t i = 0; i < claim->outsider_count; i++) {
        if (address_equal(&claim->outsiders[i], account)) {
            return true;
        }
    }
    return address_equal(&claim->lead, account);
}

uint32_t job_record_panel(const struct job_record *record)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < record->entry_count; i++) {
        count += !record->entries[i].left;
    }
    return count;
}

bool job_record_claim_is_overtaken(const struct job_record *record,
                                   const struct job_record_claim *claim)
{
    if (!claim->open || claim->phase == GAME_CLAIM_TRIED) {
        return false;
    }
    for (uint32_t i = 0; i < record->claim_count; i++) {
        const struct job_record_claim *other = &record->claims[i];

        if (!other->open && other->outcome == GAME_UPHELD &&
            other->generation == claim->generation && other->rank < claim->rank) {
            return true;
        }
    }
    return false;
}
