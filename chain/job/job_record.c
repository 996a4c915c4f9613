/* job_record.c - see job_record.h. */
#include "chain/job/job_record.h"

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

/* Forgets everything but the key and the account, and keeps the memory. */
static void start_over(struct job_record *record, uint64_t rewound)
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

/* ---- changes ------------------------------------------------------------------ */

static void apply_opened(struct job_record *record, const struct job_change *change)
{
    record->phase = GAME_PHASE_OPEN;
    record->client = change->account;
    record->terms = *change->terms;
    record->opened_s = change->time_s;
    record->segment_count = game_segment_count(change->terms);
}

/* What is not final is void, and attestations and claims with it. */
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
        record->claims[i].upheld = false; /* its segment is gone */
    }
}

static void apply_phase(struct job_record *record, const struct job_change *change)
{
    record->changed_height = change->height;
    record->phase = change->phase;
    if (change->phase == GAME_PHASE_RUNNING) {
        record->solver = change->solver;
        record->last_accepted = change->solver;
        record->convicted = false;
        record->due_s = change->due_s;
        record->accepts++;
        return;
    }
    record->cancelled = change->cancelled;
    if (change->voids && record->finalized < record->committed) {
        void_committed(record);
    }
    if (change->phase == GAME_PHASE_OPEN) {
        record->convicted = record->convicted || change->convicted;
        memset(&record->solver, 0, sizeof(record->solver));
    }
}

static enum status apply_committed(struct job_record *record, const struct job_change *change,
                                   struct error *error)
{
    const struct game_terms *terms = &record->terms;
    uint64_t due_s = change->segment.time_s + terms->segment_period_s;

    if (change->index != record->committed || change->index >= record->segment_count) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "the ledger committed segment %u where segment %u was next", change->index,
                         record->committed);
    }
    TRY(grow((void **)&record->segments, &record->segment_room, record->committed,
             sizeof(*record->segments), error));
    record->segments[record->committed++] = (struct job_record_segment){
        .committed = change->segment, .start_s = change->segment.time_s};
    record->generation = change->segment.generation;
    record->due_s = due_s < terms->deadline_s ? due_s : terms->deadline_s;
    record->ended = change->diverged;
    return STATUS_OK;
}

static struct job_record_attestation *find_attestation(struct job_record *record,
                                                       const struct job_change *change)
{
    for (uint32_t i = record->attestation_count; i-- > 0;) {
        struct job_record_attestation *found = &record->attestations[i];

        if (found->index == change->index && address_equal(&found->account, &change->account)) {
            return found;
        }
    }
    return NULL;
}

static uint32_t add(uint32_t count, int more)
{
    return more < 0 && count == 0 ? 0 : count + (uint32_t)more;
}

static enum status apply_attestation(struct job_record *record, const struct job_change *change,
                                     struct error *error)
{
    struct job_record_segment *segment = &record->segments[change->index];
    struct job_record_attestation *attestation;

    segment->attested = add(segment->attested, change->attested);
    segment->revealed = add(segment->revealed, change->revealed);
    if (change->attestation == JOB_ATTESTATION_SEALED) {
        if (record->attestation_count >= JOB_RECORD_ATTESTATIONS_MAX) {
            return STATUS_OK;
        }
        TRY(grow((void **)&record->attestations, &record->attestation_room,
                 record->attestation_count, sizeof(*record->attestations), error));
        record->attestations[record->attestation_count++] = (struct job_record_attestation){
            .account = change->account, .index = change->index, .round = segment->round};
        return STATUS_OK;
    }
    attestation = find_attestation(record, change);
    if (attestation != NULL) {
        attestation->revealed |= change->attestation == JOB_ATTESTATION_REVEALED;
        attestation->settled |= change->attestation == JOB_ATTESTATION_SETTLED;
    }
    return STATUS_OK;
}

static void apply_renewed(struct job_record *record, const struct job_change *change)
{
    struct job_record_segment *segment = &record->segments[change->index];

    segment->round++;
    segment->attested = 0;
    segment->start_s = change->start_s;
}

static enum status apply_claim_opened(struct job_record *record, const struct job_change *change,
                                      struct error *error)
{
    record->segments[change->index].open_claims++;
    if (record->claim_count >= JOB_RECORD_CLAIMS_MAX) {
        return STATUS_OK;
    }
    TRY(grow((void **)&record->claims, &record->claim_room, record->claim_count,
             sizeof(*record->claims), error));
    record->claims[record->claim_count++] =
        (struct job_record_claim){.key = change->claim,
                                  .claimant = change->account,
                                  .attestor = change->attestor,
                                  .index = change->index,
                                  .step = change->step,
                                  .open = true,
                                  .turn = change->turn,
                                  .deadline_s = change->deadline_s};
    return STATUS_OK;
}

/* Changes about one segment that stands. */
static enum status apply_to_segment(struct job_record *record, const struct job_change *change,
                                    struct error *error)
{
    if (change->index >= record->committed) {
        return STATUS_OK; /* the segment is void: attestors are settled even then */
    }
    switch ((int)change->kind) {
    case JOB_CHANGE_DRAWN:
        record->segments[change->index].seed = change->seed;
        record->segments[change->index].mandatory = change->mandatory;
        return STATUS_OK;
    case JOB_CHANGE_RENEWED:
        apply_renewed(record, change);
        return STATUS_OK;
    case JOB_CHANGE_FINALIZED:
        record->finalized = change->index + 1;
        return STATUS_OK;
    case JOB_CHANGE_ATTESTATION:
        return apply_attestation(record, change, error);
    default:
        return apply_claim_opened(record, change, error);
    }
}

static void close_claim(struct job_record *record, struct job_record_claim *claim,
                        enum job_claim_outcome outcome)
{
    claim->open = false;
    claim->upheld = outcome == JOB_CLAIM_UPHELD;
    if (claim->index < record->committed) {
        struct job_record_segment *segment = &record->segments[claim->index];

        segment->open_claims = add(segment->open_claims, -1);
        /* The reveal of a convicted attestor no longer counts. */
        if (claim->upheld && !address_is_zero(&claim->attestor)) {
            segment->revealed = add(segment->revealed, -1);
        }
    }
}

static void apply_to_claim(struct job_record *record, const struct job_change *change)
{
    for (uint32_t i = 0; i < record->claim_count; i++) {
        struct job_record_claim *claim = &record->claims[i];

        if (!claim->open || !hash32_equal(&claim->key, &change->claim)) {
            continue;
        }
        if (change->kind == JOB_CHANGE_CLAIM_CLOSED) {
            close_claim(record, claim, change->outcome);
        } else if (change->kind == JOB_CHANGE_CLAIM_TURN) {
            claim->turn = change->turn;
            claim->deadline_s = change->deadline_s;
        } else if (change->queried.size <= sizeof(claim->queried)) {
            claim->queried_size = (uint32_t)change->queried.size;
            memcpy(claim->queried, change->queried.bytes, change->queried.size);
        }
    }
}

static enum status apply_to_job(struct job_record *record, const struct job_change *change,
                                struct error *error)
{
    if (change->kind == JOB_CHANGE_OPENED) {
        apply_opened(record, change);
        return STATUS_OK;
    }
    if (record->phase == GAME_PHASE_NONE) {
        return STATUS_OK;
    }
    if (change->kind == JOB_CHANGE_PHASE) {
        apply_phase(record, change);
        return STATUS_OK;
    }
    return change->kind == JOB_CHANGE_COMMITTED ? apply_committed(record, change, error)
                                                : apply_to_segment(record, change, error);
}

enum status job_record_apply(struct job_record *record, const struct job_change *change,
                             struct error *error)
{
    record->read = change->number;
    switch (change->kind) {
    case JOB_CHANGE_REWIND:
        if (change->number > record->rewound) {
            start_over(record, change->number);
        }
        return STATUS_OK;
    case JOB_CHANGE_WITHDRAWN:
        record->withdrawals += address_equal(&change->account, &record->account);
        return STATUS_OK;
    case JOB_CHANGE_CLAIM_TURN:
    case JOB_CHANGE_CLAIM_QUERIED:
    case JOB_CHANGE_CLAIM_CLOSED:
        apply_to_claim(record, change);
        return STATUS_OK;
    case JOB_CHANGE_OPENED:
    case JOB_CHANGE_PHASE:
    case JOB_CHANGE_COMMITTED:
    case JOB_CHANGE_DRAWN:
    case JOB_CHANGE_RENEWED:
    case JOB_CHANGE_FINALIZED:
    case JOB_CHANGE_ATTESTATION:
    case JOB_CHANGE_CLAIM_OPENED:
        return hash32_equal(&change->job, &record->key) ? apply_to_job(record, change, error)
                                                        : STATUS_OK;
    case JOB_CHANGE_NONE:
        break;
    }
    return STATUS_OK;
}

enum status job_record_take(struct job_record *record, const struct ledger_entry *entry,
                            struct error *error)
{
    struct job_change change;

    job_change_read(&change, entry);
    return job_record_apply(record, &change, error);
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
                                .start_s = segment->start_s,
                                .height = segment->committed.height,
                                .revealed = segment->revealed,
                                .open_claims = segment->open_claims,
                                .drawn = !hash32_is_zero(&segment->seed),
                                .mandatory = segment->mandatory,
                                .final = index < record->finalized,
                                .first = index == record->finalized};
}

bool job_record_must_be_covered(const struct job_record *record, uint32_t index)
{
    struct job_segment segment = job_record_segment(record, index);

    return job_segment_must_be_covered(&segment);
}

uint64_t job_record_attest_end(const struct job_record *record, uint32_t index)
{
    struct job_segment segment = job_record_segment(record, index);

    return job_segment_attest_end(&segment);
}

uint64_t job_record_reveal_end(const struct job_record *record, uint32_t index)
{
    struct job_segment segment = job_record_segment(record, index);

    return job_segment_reveal_end(&segment);
}

uint64_t job_record_claim_end(const struct job_record *record, uint32_t index)
{
    struct job_segment segment = job_record_segment(record, index);

    return job_segment_claim_end(&segment);
}

enum job_segment_wait job_record_waits_for(const struct job_record *record, uint32_t index,
                                           uint64_t now_s)
{
    struct job_segment segment = job_record_segment(record, index);

    return job_segment_waits_for(&segment, now_s);
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
    return job_terms_end(&record->terms);
}
