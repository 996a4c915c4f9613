/* job_states.c - see job_states.h. */
#include "chain/job/job_states.h"

#include <stdio.h>
#include <string.h>

/* ---- hosts --------------------------------------------------------------- */

static bool owns_entry(const struct job_record *record, const struct address *account)
{
    for (uint32_t i = 0; i < record->state.entries; i++) {
        if (address_equal(&record->entries[i].owner, account)) {
            return true;
        }
    }
    return false;
}

/* Who found a segment right had its states. */
static bool has_seen(const struct job_record *record, const struct address *account)
{
    for (uint32_t i = 0; i < record->seen_count; i++) {
        if (address_equal(&record->seen[i], account)) {
            return true;
        }
    }
    return false;
}

enum {
    RANK_NONE = 5, /* it is no party of the job */
};

/* 0 is asked first. */
static int rank_of(const struct job_record *record, const struct address *account)
{
    if (address_equal(account, &record->state.solver) ||
        address_equal(account, &record->last_accepted)) {
        return 0;
    }
    return address_equal(account, &record->terms.keeper) ? 1
           : address_equal(account, &record->client)     ? 2
           : has_seen(record, account)                   ? 3
           : owns_entry(record, account)                 ? 4
                                                         : RANK_NONE;
}

static void forget_host(struct job_states_hosts *hosts, uint32_t at)
{
    hosts->count--;
    memmove(&hosts->hosts[at], &hosts->hosts[at + 1],
            (hosts->count - at) * sizeof(hosts->hosts[0]));
}

/* A vouch that is announced says not where its keeper is found. */
static bool is_vouch(const struct job_record *record, const struct game_event *event)
{
    struct vouch vouch;

    return job_event_vouch(&vouch, event, &record->terms.keeper);
}

/* The latest word of each account counts; later ones stand before earlier ones of the same rank. */
static void take_host(struct job_states_hosts *hosts, const struct job_record *record,
                      const struct game_event *event)
{
    int rank = rank_of(record, &event->account);
    char address[GAME_CONTACT_MAX + 1];
    uint32_t at = 0;

    if (rank == RANK_NONE || event->contact.size > GAME_CONTACT_MAX || is_vouch(record, event)) {
        return;
    }
    for (uint32_t i = hosts->count; i-- > 0;) {
        if (address_equal(&hosts->hosts[i].owner, &event->account)) {
            forget_host(hosts, i);
        }
    }
    job_card_address(address, &event->contact);
    if (address[0] == '\0') {
        return;
    }
    while (at < hosts->count && rank_of(record, &hosts->hosts[at].owner) < rank) {
        at++;
    }
    if (at == JOB_STATES_HOSTS_MAX) {
        return;
    }
    if (hosts->count == JOB_STATES_HOSTS_MAX) {
        hosts->count--;
    }
    memmove(&hosts->hosts[at + 1], &hosts->hosts[at],
            (hosts->count - at) * sizeof(hosts->hosts[0]));
    hosts->count++;
    hosts->hosts[at].owner = event->account;
    memcpy(hosts->hosts[at].text, address, sizeof(address));
}

enum status job_states_find_hosts(struct job_states_hosts *hosts, struct ledger *ledger,
                                  const struct job_record *record, struct error *error)
{
    struct ledger_entry entry = {0};
    enum status status;

    *hosts = (struct job_states_hosts){0};
    while ((status = ledger_next(ledger, &entry, entry.number, 0, error)) == STATUS_OK) {
        enum game_event_kind kind = entry.event.kind;

        if (entry.kind == LEDGER_EVENT && hash32_equal(&entry.event.job, &record->key) &&
            (kind == GAME_OPENED || kind == GAME_ACCEPTED || kind == GAME_ENLISTED ||
             kind == GAME_ANNOUNCED)) {
            take_host(hosts, record, &entry.event);
        }
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- roots --------------------------------------------------------------- */

/* The next commit of a segment that stands; its states are in the entry. A root binds its states,
 * so any event of that root has them, also one that a reorganization voided. */
static enum status next_commit(struct ledger_entry *entry, struct ledger *ledger,
                               const struct job_record *record, struct error *error)
{
    enum status status;

    while ((status = ledger_next(ledger, entry, entry->number, 0, error)) == STATUS_OK) {
        const struct game_event *event = &entry->event;

        if (entry->kind == LEDGER_EVENT && event->kind == GAME_COMMITTED &&
            hash32_equal(&event->job, &record->key) &&
            event->segment.index < record->state.committed && event->states.count > 0 &&
            event->states.count == event->segment.steps &&
            digest_equal(&event->segment.root,
                         &record->segments[event->segment.index].committed.root)) {
            return STATUS_OK;
        }
    }
    return status;
}

static void set_place(struct job_states_place *place, const struct job_record *record,
                      const struct game_event *event, uint32_t at)
{
    uint64_t first = (uint64_t)event->segment.index * record->terms.segment_steps;

    *place = (struct job_states_place){.root = event->states.hashes[at],
                                       .step = first + at + 1,
                                       .segment = event->segment.index,
                                       .end = at + 1 == event->states.count};
}

enum status job_states_end(struct job_states_place *place, struct ledger *ledger,
                           const struct job_record *record, uint32_t segment, struct error *error)
{
    struct ledger_entry entry = {0};
    enum status status;

    while ((status = next_commit(&entry, ledger, record, error)) == STATUS_OK) {
        if (entry.event.segment.index == segment) {
            set_place(place, record, &entry.event, entry.event.states.count - 1);
            return STATUS_OK;
        }
    }
    return status == STATUS_NOT_FOUND
               ? error_set(error, STATUS_NOT_FOUND, "nobody has committed segment %u", segment)
               : status;
}

enum status job_states_last_ends(struct job_states_place *places, uint32_t count,
                                 struct ledger *ledger, const struct job_record *record,
                                 struct error *error)
{
    struct ledger_entry entry = {0};
    enum status status;

    memset(places, 0, count * sizeof(*places));
    while ((status = next_commit(&entry, ledger, record, error)) == STATUS_OK) {
        uint32_t at = record->state.committed - 1 - entry.event.segment.index;

        if (at < count) {
            set_place(&places[at], record, &entry.event, entry.event.states.count - 1);
        }
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status job_states_find(struct job_states_place *place, struct ledger *ledger,
                            const struct job_record *record, const struct digest *root,
                            struct error *error)
{
    struct ledger_entry entry = {0};
    bool found = false;
    enum status status;

    while ((status = next_commit(&entry, ledger, record, error)) == STATUS_OK) {
        for (uint32_t i = 0; i < entry.event.states.count; i++) {
            if (digest_equal(&entry.event.states.hashes[i], root)) {
                set_place(place, record, &entry.event, i);
                found = true;
            }
        }
    }
    if (status != STATUS_NOT_FOUND) {
        return status;
    }
    return found ? STATUS_OK
                 : error_set(error, STATUS_NOT_FOUND, "no state of that root was committed");
}
