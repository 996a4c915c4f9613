/* job_record.c - see job_record.h. */
#include "chain/game/job_record.h"

#include <stdlib.h>
#include <string.h>

void job_record_init(struct job_record *record, const struct hash32 *key,
                     const struct address *account)
{
    memset(record, 0, sizeof(*record));
    record->key = *key;
    if (account != NULL) {
        record->account = *account;
    }
}

void job_record_free(struct job_record *record)
{
    free(record->segments);
    free(record->attestations);
    free(record->claims);
    record->segments = NULL;
    record->attestations = NULL;
    record->claims = NULL;
}

/* Forgets all but who we are, and keeps the memory. */
static void start_anew(struct job_record *record, uint64_t rewound)
{
    struct job_record fresh;

    job_record_init(&fresh, &record->key, &record->account);
    fresh.segments = record->segments;
    fresh.segment_room = record->segment_room;
    fresh.attestations = record->attestations;
    fresh.attestation_room = record->attestation_room;
    fresh.claims = record->claims;
    fresh.claim_room = record->claim_room;
    fresh.rewound = rewound;
    *record = fresh;
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

/* ---- events ------------------------------------------------------------------- */

static void take_opened(struct job_record *record, const struct ledger_entry *entry)
{
    record->phase = GAME_PHASE_OPEN;
    record->client = entry->event.account;
    record->terms = entry->event.terms;
    record->opened_s = entry->time_s;
    record->segment_count = game_segment_count(&entry->event.terms);
}

static void take_accepted(struct job_record *record, const struct game_event *event)
{
    record->phase = GAME_PHASE_RUNNING;
    record->solver = event->account;
    record->last_accepted = event->account;
    record->convicted = false;
    record->due_s = event->time_s;
    record->accepts++;
}

static enum status take_committed(struct job_record *record, const struct game_event *event,
                                  struct error *error)
{
    const struct game_terms *terms = &record->terms;
    uint64_t due_s = event->segment.time_s + terms->segment_period_s;
    enum status status;

    if (event->index != record->committed || event->index >= record->segment_count) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "the ledger tells of segment %u, and segment %u was due", event->index,
                         record->committed);
    }
    status = grow((void **)&record->segments, &record->segment_room, record->committed,
                  sizeof(*record->segments), error);
    if (status != STATUS_OK) {
        return status;
    }
    record->segments[record->committed++] =
        (struct job_record_segment){.committed = event->segment, .start_s = event->segment.time_s};
    record->generation = event->segment.generation;
    record->due_s = due_s < terms->deadline_s ? due_s : terms->deadline_s;
    record->ended = event->flag;
    return STATUS_OK;
}

static enum status take_attested(struct job_record *record, const struct game_event *event,
                                 struct error *error)
{
    enum status status;

    record->segments[event->index].attested++;
    if (record->attestation_count >= JOB_RECORD_ATTESTATIONS_MAX) {
        return STATUS_OK;
    }
    status = grow((void **)&record->attestations, &record->attestation_room,
                  record->attestation_count, sizeof(*record->attestations), error);
    if (status == STATUS_OK) {
        record->attestations[record->attestation_count++] =
            (struct job_record_attestation){.account = event->account,
                                            .index = event->index,
                                            .round = record->segments[event->index].round};
    }
    return status;
}

static struct job_record_attestation *find_attestation(struct job_record *record,
                                                       const struct game_event *event)
{
    for (uint32_t i = record->attestation_count; i-- > 0;) {
        struct job_record_attestation *found = &record->attestations[i];

        if (found->index == event->index && address_equal(&found->account, &event->account)) {
            return found;
        }
    }
    return NULL;
}

static void take_revealed(struct job_record *record, const struct game_event *event)
{
    struct job_record_attestation *attestation = find_attestation(record, event);

    record->segments[event->index].revealed++;
    if (record->segments[event->index].attested > 0) {
        record->segments[event->index].attested--;
    }
    if (attestation != NULL) {
        attestation->revealed = true;
    }
}

static void take_settled(struct job_record *record, const struct game_event *event)
{
    struct job_record_attestation *attestation = find_attestation(record, event);

    if (attestation != NULL) {
        attestation->settled = true;
    }
}

static void take_renewed(struct job_record *record, const struct game_event *event)
{
    struct job_record_segment *segment = &record->segments[event->index];

    segment->round++;
    segment->attested = 0;
    segment->start_s = event->time_s;
}

static enum status take_claim(struct job_record *record, const struct game_event *event,
                              struct error *error)
{
    enum status status;

    record->segments[event->index].open_claims++;
    if (record->claim_count >= JOB_RECORD_CLAIMS_MAX) {
        return STATUS_OK;
    }
    status = grow((void **)&record->claims, &record->claim_room, record->claim_count,
                  sizeof(*record->claims), error);
    if (status == STATUS_OK) {
        record->claims[record->claim_count++] = (struct job_record_claim){
            .key = event->claim,
            .claimant = event->account,
            .attestor = event->kind == GAME_ACCUSED ? event->other : (struct address){{0}},
            .index = event->index,
            .step = event->step,
            .open = true,
            .turn = event->kind == GAME_ACCUSED ? GAME_TURN_CLAIMANT : GAME_TURN_ACCUSED,
            .deadline_s = event->time_s};
    }
    return status;
}

/* All that is not final, attestations and claims with it, is void. */
static void void_committed(struct job_record *record)
{
    uint32_t kept = 0;

    record->generation++;
    record->committed = record->finalized;
    record->ended = false;
    for (uint32_t i = 0; i < record->attestation_count; i++) {
        if (record->attestations[i].index < record->finalized) {
            record->attestations[kept++] = record->attestations[i];
        }
    }
    record->attestation_count = kept;
    for (uint32_t i = 0; i < record->claim_count; i++) {
        record->claims[i].open = false;
        record->claims[i].upheld = false; /* what it was about is gone */
    }
}

/* Events of a claim name the claim only. */
static void take_end_of_claim(struct job_record *record, const struct game_event *event)
{
    for (uint32_t i = 0; i < record->claim_count; i++) {
        struct job_record_claim *claim = &record->claims[i];

        if (!claim->open || !hash32_equal(&claim->key, &event->claim)) {
            continue;
        }
        claim->open = false;
        claim->upheld = event->kind == GAME_RULED && event->flag;
        if (claim->index < record->committed) {
            struct job_record_segment *segment = &record->segments[claim->index];

            segment->open_claims -= segment->open_claims > 0;
            /* A convicted attestor's reveal no longer counts. */
            if (claim->upheld && !address_is_zero(&claim->attestor)) {
                segment->revealed -= segment->revealed > 0;
            }
        }
    }
}

static void take_end(struct job_record *record, const struct game_event *event)
{
    if (event->kind == GAME_CANCELLED || event->kind == GAME_CLOSED) {
        record->cancelled = event->kind == GAME_CANCELLED;
        if (record->finalized < record->committed) {
            void_committed(record);
        }
        record->phase = GAME_PHASE_CLOSED;
        return;
    }
    if (event->kind == GAME_CONVICTED) {
        void_committed(record);
        record->convicted = true;
    }
    record->phase = GAME_PHASE_OPEN;
    memset(&record->solver, 0, sizeof(record->solver));
}

/* Events about one segment that stands. */
static enum status take_segment_event(struct job_record *record, const struct game_event *event,
                                      struct error *error)
{
    if (event->index >= record->committed) {
        return STATUS_OK; /* of a segment that is void: attestors are settled even then */
    }
    if (event->kind == GAME_DRAWN) {
        record->segments[event->index].seed = event->seal;
        record->segments[event->index].mandatory = event->flag;
    } else if (event->kind == GAME_REVEALED) {
        take_revealed(record, event);
    } else if (event->kind == GAME_RENEWED) {
        take_renewed(record, event);
    } else if (event->kind == GAME_SETTLED) {
        take_settled(record, event);
    } else if (event->kind == GAME_FINALIZED) {
        record->finalized = event->index + 1;
    } else if (event->kind == GAME_ATTESTED) {
        return take_attested(record, event, error);
    } else {
        return take_claim(record, event, error);
    }
    return STATUS_OK;
}

static enum status take_job_event(struct job_record *record, const struct ledger_entry *entry,
                                  struct error *error)
{
    const struct game_event *event = &entry->event;

    if (event->kind == GAME_OPENED) {
        take_opened(record, entry);
        return STATUS_OK;
    }
    if (record->phase == GAME_PHASE_NONE) {
        return STATUS_OK;
    }
    switch (event->kind) {
    case GAME_ACCEPTED:
        record->changed_height = entry->height;
        take_accepted(record, event);
        return STATUS_OK;
    case GAME_COMMITTED:
        return take_committed(record, event, error);
    case GAME_CONVICTED:
    case GAME_RELEASED:
    case GAME_CANCELLED:
    case GAME_CLOSED:
        record->changed_height = entry->height;
        take_end(record, event);
        return STATUS_OK;
    case GAME_DRAWN:
    case GAME_ATTESTED:
    case GAME_REVEALED:
    case GAME_RENEWED:
    case GAME_SETTLED:
    case GAME_FINALIZED:
    case GAME_CLAIMED:
    case GAME_ACCUSED:
        return take_segment_event(record, event, error);
    case GAME_OPENED:
    case GAME_SEALED:
    case GAME_ANSWERED:
    case GAME_TURN_PASSED:
    case GAME_RULED:
    case GAME_LAPSED:
    case GAME_WITHDRAWN:
    case GAME_QUERIED:
    case GAME_REPLIED:
    case GAME_EVENT_KINDS:
        break;
    }
    return STATUS_OK;
}

static void take_question(struct job_record *record, const struct game_event *event)
{
    for (uint32_t i = 0; i < record->claim_count; i++) {
        struct job_record_claim *claim = &record->claims[i];

        if (claim->open && hash32_equal(&claim->key, &event->claim) &&
            event->payload.size <= sizeof(claim->queried)) {
            claim->asked_size = (uint32_t)event->payload.size;
            memcpy(claim->queried, event->payload.bytes, event->payload.size);
        }
    }
}

static void take_turn(struct job_record *record, const struct game_event *event)
{
    for (uint32_t i = 0; i < record->claim_count; i++) {
        struct job_record_claim *claim = &record->claims[i];

        if (claim->open && hash32_equal(&claim->key, &event->claim)) {
            claim->turn =
                event->kind == GAME_ANSWERED ? GAME_TURN_CLAIMANT : (enum game_turn)event->turn;
            claim->deadline_s = event->time_s;
        }
    }
}

enum status job_record_take(struct job_record *record, const struct ledger_entry *entry,
                            struct error *error)
{
    const struct game_event *event = &entry->event;

    record->read = entry->number;
    if (entry->kind == LEDGER_REWIND) {
        if (entry->number > record->rewound) {
            start_anew(record, entry->number);
        }
        return STATUS_OK;
    }
    if (event->kind == GAME_WITHDRAWN) {
        record->withdrawals += address_equal(&event->account, &record->account);
        return STATUS_OK;
    }
    if (event->kind == GAME_RULED || event->kind == GAME_LAPSED) {
        take_end_of_claim(record, event);
        return STATUS_OK;
    }
    if (event->kind == GAME_QUERIED) {
        take_question(record, event);
        return STATUS_OK;
    }
    if (event->kind == GAME_ANSWERED || event->kind == GAME_TURN_PASSED) {
        take_turn(record, event);
        return STATUS_OK;
    }
    return hash32_equal(&event->job, &record->key) ? take_job_event(record, entry, error)
                                                   : STATUS_OK;
}

enum status job_record_follow(struct job_record *record, struct ledger *ledger, struct error *error)
{
    struct ledger_entry entry;
    enum status status;

    while ((status = ledger_next(ledger, &entry, record->read, 0, error)) == STATUS_OK) {
        status = job_record_take(record, &entry, error);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- what follows ---------------------------------------------------------------- */

bool job_record_must_be_covered(const struct job_record *record, uint32_t index)
{
    return record->terms.coverage_ppm == GAME_PPM || record->segments[index].mandatory;
}

uint64_t job_record_attest_end(const struct job_record *record, uint32_t index)
{
    return record->segments[index].start_s + record->terms.attest_period_s;
}

uint64_t job_record_reveal_end(const struct job_record *record, uint32_t index)
{
    return job_record_attest_end(record, index) + record->terms.reveal_period_s;
}

uint64_t job_record_claim_end(const struct job_record *record, uint32_t index)
{
    return job_record_reveal_end(record, index) + record->terms.claim_period_s;
}

bool job_record_claim_is_moot(const struct job_record *record, const struct job_record_claim *claim)
{
    for (uint32_t i = 0; i < record->claim_count && !address_is_zero(&claim->attestor); i++) {
        const struct job_record_claim *other = &record->claims[i];

        if (other->upheld && other->index == claim->index &&
            address_equal(&other->attestor, &claim->attestor)) {
            return true;
        }
    }
    return false;
}

uint32_t job_record_open_claims(const struct job_record *record)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < record->claim_count; i++) {
        count += record->claims[i].open;
    }
    return count;
}

uint64_t job_record_end(const struct job_record *record)
{
    const struct game_terms *terms = &record->terms;

    return terms->deadline_s + terms->attest_period_s + terms->reveal_period_s +
           terms->claim_period_s;
}

enum job_record_wait job_record_waits_for(const struct job_record *record, uint32_t index,
                                          uint64_t now_s)
{
    const struct job_record_segment *segment = &record->segments[index];
    bool wanting =
        job_record_must_be_covered(record, index) && segment->revealed < record->terms.attestors;

    if (index < record->finalized) {
        return JOB_RECORD_FINAL;
    }
    if (segment->open_claims > 0) {
        return JOB_RECORD_DISPUTED;
    }
    if (now_s <= job_record_attest_end(record, index) && record->terms.attestors > 0) {
        return JOB_RECORD_ATTESTING;
    }
    if (now_s <= job_record_reveal_end(record, index) && record->terms.attestors > 0) {
        return JOB_RECORD_REVEALING;
    }
    if (wanting) {
        return now_s <= record->terms.deadline_s ? JOB_RECORD_RENEWAL : JOB_RECORD_UNCOVERED;
    }
    if (now_s <= job_record_claim_end(record, index)) {
        return JOB_RECORD_CLAIM_TIME;
    }
    return index == record->finalized ? JOB_RECORD_DUE : JOB_RECORD_PREDECESSOR;
}
