/* job_record.c - see job_record.h. */
#include "chain/job/job_record.h"

#include <stdlib.h>
#include <string.h>

void job_record_init(struct job_record *record, const struct hash32 *key,
                     const struct address *account)
{
    *record = (struct job_record){.key = *key, .unpaid = JOB_REDUCED_PAID};
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

/* ---- what the reducer keeps ----------------------------------------------------- */

static struct job_reduced reduced_of(const struct job_record *record)
{
    return (struct job_reduced){.phase = record->phase,
                                .solver = record->solver,
                                .generation = record->generation,
                                .committed = record->committed,
                                .finalized = record->finalized,
                                .unpaid = record->unpaid,
                                .due_s = record->due_s,
                                .ended = record->ended,
                                .asked = record->asked,
                                .delivered = record->delivered};
}

/* Claims about what is void go on, to their own end. */
static void reduce(struct job_record *record, const struct game_event *event)
{
    const struct job_reduced before = reduced_of(record);
    struct job_reduced job = before;

    job_reduced_take(&job, &record->terms, event);
    record->phase = job.phase;
    record->solver = job.solver;
    record->generation = job.generation;
    record->committed = job.committed;
    record->finalized = job.finalized;
    record->unpaid = job.unpaid;
    record->due_s = job.due_s;
    record->ended = job.ended;
    record->asked = job.asked;
    record->delivered = job.delivered;
    if (job.committed < before.committed || job.finalized > before.finalized || job.delivered) {
        drop_seats(record);
    }
}

static struct job_reduced_segment reduced_segment_of(const struct job_record_segment *segment)
{
    return (struct job_reduced_segment){.seed = segment->seed,
                                        .covered = segment->covered,
                                        .ended = segment->ended,
                                        .start_s = segment->start_s,
                                        .round = segment->round,
                                        .to = segment->to,
                                        .rights = segment->rights,
                                        .unavailables = segment->unavailables};
}

static void put_segment(struct job_record_segment *segment,
                        const struct job_reduced_segment *reduced)
{
    segment->seed = reduced->seed;
    segment->covered = reduced->covered;
    segment->ended = reduced->ended;
    segment->start_s = reduced->start_s;
    segment->round = reduced->round;
    segment->to = reduced->to;
    segment->rights = reduced->rights;
    segment->unavailables = reduced->unavailables;
}

static void reduce_segment(struct job_record_segment *segment, const struct game_event *event)
{
    struct job_reduced_segment reduced = reduced_segment_of(segment);

    job_reduced_take_segment(&reduced, event);
    put_segment(segment, &reduced);
}

static void reduce_seat(struct job_record_seat *seat, struct job_record_segment *segment,
                        const struct game_event *event)
{
    struct job_reduced_segment draw = reduced_segment_of(segment);
    struct job_reduced_seat reduced = {
        .entry = seat->entry, .phase = seat->phase, .verdict = seat->verdict};

    job_reduced_take_seat(&reduced, &draw, event);
    put_segment(segment, &draw);
    seat->phase = reduced.phase;
    seat->verdict = reduced.verdict;
}

static void reduce_claim(struct job_record_claim *claim, const struct game_event *event)
{
    struct job_reduced_claim reduced = {.phase = claim->phase,
                                        .turn = claim->turn,
                                        .lead = claim->lead,
                                        .deadline_s = claim->deadline_s,
                                        .turns = claim->turns,
                                        .rank = claim->rank,
                                        .outcome = claim->outcome};

    job_reduced_take_claim(&reduced, event);
    claim->phase = reduced.phase;
    claim->turn = reduced.turn;
    claim->lead = reduced.lead;
    claim->deadline_s = reduced.deadline_s;
    claim->turns = reduced.turns;
    claim->rank = reduced.rank;
    claim->outcome = reduced.outcome;
}

/* ---- what only this reader keeps ------------------------------------------------- */

static void apply_phase(struct job_record *record, const struct ledger_entry *entry)
{
    const struct game_event *event = &entry->event;

    record->changed_height = entry->height;
    record->cancelled = event->kind == GAME_CANCELLED;
    if (event->kind == GAME_ACCEPTED) {
        record->last_accepted = event->account;
        record->convicted = false;
        record->reward = event->amount;
        record->accepted_s = entry->time_s;
        record->held = 0;
        record->accepts++;
        return;
    }
    if (record->phase == GAME_PHASE_CLOSED) {
        record->closed_s = entry->time_s;
        if (record->finalized < record->segment_count && !record->ended) {
            record->held = 0; /* it expired: the solver left with what was held */
        }
        return;
    }
    record->opened_s = entry->time_s;
    record->held = 0;
    record->convicted = record->convicted || event->kind == GAME_CONVICTED;
}

static enum status apply_committed(struct job_record *record, const struct game_event *event,
                                   struct error *error)
{
    if (event->segment.index != record->committed || record->committed >= record->segment_count) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "the ledger committed segment %u where segment %u was next",
                         event->segment.index, record->committed);
    }
    TRY(grow((void **)&record->segments, &record->segment_room, record->committed,
             sizeof(*record->segments), error));
    record->segments[record->committed] =
        (struct job_record_segment){.committed = event->segment, .start_s = event->segment.time_s};
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
    for (uint32_t i = 0; i < record->seat_count; i++) {
        struct job_record_seat *seat = &record->seats[i];

        if (seat->segment.index == event->index && seat->place == event->place) {
            reduce_seat(seat, segment, event);
        }
    }
}

/* ---- segments ----------------------------------------------------------------- */

/* The panel is drawn once more for the last segment: can its state be had? */
static void apply_asked(struct job_record *record, const struct ledger_entry *entry)
{
    struct job_record_segment *segment;

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
        return STATUS_OK;
    }
    segment = &record->segments[event->index];
    if (event->kind == GAME_DISPROVED) {
        struct hash32 hash = game_segment_hash(&event->job, &segment->committed);

        if (!hash32_equal(&hash, &event->seal)) {
            return STATUS_OK; /* rights of a void segment can be disproved */
        }
    }
    reduce_segment(segment, event);
    if (event->kind == GAME_ROUND) {
        return apply_round(record, segment, event, error);
    }
    if (event->kind != GAME_DRAWN) {
        apply_to_seat(record, segment, event);
    }
    return STATUS_OK;
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
        reduce_claim(claim, event);
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

static void close_claim(struct job_record *record, struct job_record_claim *claim)
{
    claim->open = false;
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
    reduce_claim(claim, event);
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

static enum status apply_to_job(struct job_record *record, const struct ledger_entry *entry,
                                struct error *error)
{
    const struct game_event *event = &entry->event;

    if (event->kind == GAME_OPENED) {
        apply_opened(record, entry);
    } else if (record->phase == GAME_PHASE_NONE) {
        return STATUS_OK;
    }
    if (event->kind == GAME_COMMITTED) {
        TRY(apply_committed(record, event, error));
    }
    if (job_reduced_is_changed_by(event->kind)) {
        reduce(record, event);
    }
    if (job_event_phase(event->kind) != GAME_PHASE_NONE) {
        apply_phase(record, entry);
        return STATUS_OK;
    }
    switch ((int)event->kind) {
    case GAME_COMMITTED:
    case GAME_REWOUND:
    case GAME_DELIVERED:
    case GAME_PAID:
    case GAME_ANNOUNCED:
        return STATUS_OK;
    case GAME_ENLISTED:
        return apply_enlisted(record, event, error);
    case GAME_LEFT:
    case GAME_GONE:
        if (event->entry < record->entry_count) {
            record->entries[event->entry].left = true;
            record->entries[event->entry].gone |= event->kind == GAME_GONE;
        }
        return STATUS_OK;
    case GAME_FINALIZED:
        record->earned += event->amount;
        record->held++;
        return STATUS_OK;
    case GAME_ASKED:
        apply_asked(record, entry);
        return STATUS_OK;
    case GAME_CLAIMED:
        return apply_claimed(record, event, error);
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
