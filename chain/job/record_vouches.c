/*
 * record_vouches.c - the keeper's word in the record of a job: see job_record.h.
 *
 * A key's signature is checked as its event is read. Only the chain knows what a contract has
 * signed, and it is asked no more than once about each announcement: when the events are read to
 * their end, and about segments that still wait.
 */
#include <stdlib.h>

#include "chain/job/job_record.h"

/* Open segments differ in it. */
static uint32_t slot_of(uint32_t index)
{
    return index % GAME_OPEN_MAX;
}

/* The index; `committed`: none that is open. */
static uint32_t find_open(const struct job_record *record, const struct hash32 *segment)
{
    for (uint32_t i = record->state.finalized; i < record->state.committed; i++) {
        struct hash32 hash = game_segment_hash(&record->key, &record->segments[i].committed);

        if (hash32_equal(&hash, segment)) {
            return i;
        }
    }
    return record->state.committed;
}

bool job_record_is_open(const struct job_record *record, const struct hash32 *segment)
{
    return find_open(record, segment) < record->state.committed;
}

static enum status put_vouch(struct job_record *record, uint32_t index, const struct vouch *vouch,
                             struct error *error)
{
    if (record->vouches == NULL) {
        record->vouches = calloc(GAME_OPEN_MAX, sizeof(*record->vouches));
    }
    if (record->vouches == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for vouches");
    }
    record->vouches[slot_of(index)] = *vouch;
    return STATUS_OK;
}

enum status job_record_add_vouch(struct job_record *record, struct ledger *ledger,
                                 const struct vouch *vouch, struct error *error)
{
    const uint32_t index = find_open(record, &vouch->segment);

    if (index == record->state.committed) {
        return error_set(error, STATUS_REFUSED, "the vouch is about no segment that is open");
    }
    TRY(vouch_ask(vouch, ledger, &record->key, &record->terms.keeper, error));
    TRY(put_vouch(record, index, vouch, error));
    record->segments[index].has_vouch = true;
    record->segments[index].has_word = false;
    return STATUS_OK;
}

/* A word that only a contract may have signed does not take the place of a key's. */
enum status job_record_take_word(struct job_record *record, const struct ledger_entry *entry,
                                 struct error *error)
{
    struct job_record_segment *segment;
    struct vouch vouch;
    uint32_t index;

    if (!job_event_vouch(&vouch, &entry->event, &record->terms.keeper)) {
        return STATUS_OK;
    }
    index = find_open(record, &vouch.segment);
    if (index == record->state.committed) {
        return STATUS_OK;
    }
    segment = &record->segments[index];
    if (vouch_check(&vouch, &record->place, &record->key, &record->terms.keeper) == VERDICT_VALID) {
        segment->has_vouch = true;
        segment->has_word = false;
        record->vouched_s = entry->time_s;
    } else if (segment->has_vouch) {
        return STATUS_OK;
    } else {
        segment->has_word = true;
        record->word_s = entry->time_s;
    }
    return put_vouch(record, index, &vouch, error);
}

/* What cannot be asked now is asked the next time. */
void job_record_ask_words(struct job_record *record, struct ledger *ledger)
{
    for (uint32_t i = record->state.finalized; i < record->state.committed; i++) {
        struct job_record_segment *segment = &record->segments[i];
        struct error error;
        enum status status;

        if (!segment->has_word || segment->draw.vouched) {
            continue;
        }
        error_init(&error);
        status = vouch_ask(&record->vouches[slot_of(i)], ledger, &record->key,
                           &record->terms.keeper, &error);
        if (status != STATUS_OK && status != STATUS_REFUSED) {
            return;
        }
        segment->has_word = false;
        segment->has_vouch = status == STATUS_OK;
        if (segment->has_vouch && record->word_s > record->vouched_s) {
            record->vouched_s = record->word_s;
        }
    }
}

const struct vouch *job_record_vouch(const struct job_record *record, uint32_t index)
{
    return &record->vouches[slot_of(index)];
}
