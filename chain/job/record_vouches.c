/*
 * record_vouches.c - the keeper's word and the parties' addresses in the record of a job: see
 * job_record.h.
 *
 * A key's signature is checked as its event is read. Only the chain knows what a contract has
 * signed, and it is asked no more than once about each announcement: when the events are read to
 * their end, and about segments that still wait.
 */
#include <stdio.h>
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
        if (hash32_equal(&record->segments[i].hash, segment)) {
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

/* ---- addresses ---------------------------------------------------------------- */

const struct job_record_contact *job_record_contact(const struct job_record *record,
                                                    const struct address *owner)
{
    for (uint32_t i = 0; i < record->contact_count; i++) {
        if (address_equal(&record->contacts[i].owner, owner)) {
            return &record->contacts[i];
        }
    }
    return NULL;
}

static bool is_in_panel(const struct job_record *record, const struct address *owner)
{
    for (uint32_t i = 0; i < record->state.entries; i++) {
        if (address_equal(&record->entries[i].owner, owner)) {
            return true;
        }
    }
    for (uint32_t i = 0; i < record->former_count; i++) {
        if (!record->former[i].gone && address_equal(&record->former[i].owner, owner)) {
            return true;
        }
    }
    return false;
}

bool job_record_has_part(const struct job_record *record, const struct address *owner)
{
    return address_equal(owner, &record->state.solver) ||
           address_equal(owner, &record->terms.keeper) || address_equal(owner, &record->client) ||
           is_in_panel(record, owner);
}

static void drop_contacts(struct job_record *record)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; record->contacts != NULL && i < record->contact_count; i++) {
        if (job_record_has_part(record, &record->contacts[i].owner)) {
            record->contacts[kept++] = record->contacts[i];
        }
    }
    record->contact_count = kept;
}

/* NULL: there is no room for it. */
static struct job_record_contact *make_contact(struct job_record *record,
                                               const struct address *owner, struct error *error)
{
    const struct job_record_contact *known = job_record_contact(record, owner);

    if (known != NULL) {
        return &record->contacts[known - record->contacts];
    }
    if (record->contact_count == JOB_RECORD_CONTACTS_MAX) {
        drop_contacts(record);
    }
    return record->contact_count == JOB_RECORD_CONTACTS_MAX ||
                   job_record_grow((void **)&record->contacts, &record->contact_room,
                                   record->contact_count, sizeof(*record->contacts),
                                   error) != STATUS_OK
               ? NULL
               : &record->contacts[record->contact_count++];
}

/* A vouch that its keeper announces is no address. Anybody may announce: who has no part in the job
 * takes no room here. */
enum status job_record_take_contact(struct job_record *record, const struct ledger_entry *entry,
                                    struct error *error)
{
    const struct game_event *event = &entry->event;
    char url[GAME_CONTACT_MAX + 1];
    struct job_record_contact *contact;
    struct vouch vouch;

    job_card_address(url, &event->contact);
    if (url[0] == '\0' || !job_record_has_part(record, &event->account) ||
        (event->kind == GAME_ANNOUNCED && vouch_read(&vouch, &event->contact))) {
        return STATUS_OK;
    }
    contact = make_contact(record, &event->account, error);
    if (contact == NULL) {
        return record->contact_count == JOB_RECORD_CONTACTS_MAX ? STATUS_OK : error->status;
    }
    *contact = (struct job_record_contact){.owner = event->account, .number = entry->number};
    (void)snprintf(contact->url, sizeof(contact->url), "%s", url);
    return STATUS_OK;
}
