/* rounds_ledger.c - what a ledger says of the jobs of a round; see rounds_parts.h. */
#include <stdio.h>
#include <string.h>

#include "chain/job/job_states.h"
#include "chain/view/ledger_end.h"
#include "verifier/rounds/rounds_parts.h"

static void refute_try(struct rounds_check *check, uint32_t owner, uint32_t at, const char *says)
{
    rounds_parts_say(check, FINDING_REFUTED, "the ledger says otherwise of try %u of %s: %s",
                     at + 1, check->record.names[owner], says);
}

/* Is the last final state the one of the record? */
static enum status check_final(struct rounds_check *check, uint32_t owner, uint32_t at,
                               const struct job_record *record, struct error *error)
{
    struct job_states_place place;

    if (!ledger_end_is_final(record)) {
        refute_try(check, owner, at, "its last state is not final");
        return STATUS_OK;
    }
    TRY(job_states_end(&place, check->ledger, record, record->state.finalized - 1, error));
    if (!digest_equal(&place.root, &check->record.owners[owner].state)) {
        refute_try(check, owner, at, "its job came to another state");
        return STATUS_OK;
    }
    rounds_parts_say(check, FINDING_PROVEN, "the state of %s is final on the ledger",
                     check->record.names[owner]);
    return STATUS_OK;
}

static enum status check_try(struct rounds_check *check, uint32_t owner, uint32_t at,
                             const struct job_record *record, struct error *error)
{
    const struct round_owner *one = &check->record.owners[owner];
    const enum round_end end = one->tries[at].end;
    const enum round_end found = ledger_end_trouble(record);
    char says[80];

    if (record->state.phase == GAME_PHASE_NONE) {
        refute_try(check, owner, at, "it knows no such job");
        return STATUS_OK;
    }
    if (check->asked && !address_equal(&check->client, &record->client)) {
        refute_try(check, owner, at,
                   "another account opened it than the other jobs of these rounds");
        return STATUS_OK;
    }
    check->client = record->client;
    check->asked = true;
    if (!digest_equal(&record->terms.job_id, &one->job) ||
        record->terms.salt != one->tries[at].salt) {
        refute_try(check, owner, at, "it is of another job, or has another salt");
        return STATUS_OK;
    }
    if (end == ROUND_END_FINAL) {
        return check_final(check, owner, at, record, error);
    }
    if (found != end) {
        (void)snprintf(says, sizeof(says), "not %s but %s", round_end_word(end),
                       ledger_end_is_final(record) ? round_end_word(ROUND_END_FINAL)
                                                   : round_end_word(found));
        refute_try(check, owner, at, says);
    }
    return STATUS_OK;
}

enum status rounds_ledger_check(struct rounds_check *check, uint32_t owner, struct error *error)
{
    const struct round_owner *one = &check->record.owners[owner];

    for (uint32_t at = 0; at < one->try_count; at++) {
        struct job_record record;
        struct hash32 key;
        enum status status;

        memcpy(key.bytes, one->tries[at].key.bytes, DIGEST_SIZE);
        job_record_init(&record, &key, NULL);
        status = job_record_follow(&record, check->ledger, error);
        if (status == STATUS_OK) {
            status = check_try(check, owner, at, &record, error);
        }
        job_record_free(&record);
        TRY(status);
    }
    return STATUS_OK;
}
