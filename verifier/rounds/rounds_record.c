/* rounds_record.c - a round's record against its agreement; see rounds_parts.h. */
#include <string.h>

#include "base/hex.h"
#include "proofs/rounds/round_job.h"
#include "verifier/rounds/rounds_parts.h"

/* ---- the chain ------------------------------------------------------------ */

static bool follows_last(struct rounds_check *check)
{
    const struct round_record *record = &check->record;
    bool holds = true;

    if (!digest_equal(&record->rounds, &check->result->rounds.id)) {
        rounds_parts_say(check, FINDING_REFUTED,
                         "its record is of other rounds, with another agreement");
        holds = false;
    }
    if (record->number != check->number) {
        rounds_parts_say(check, FINDING_REFUTED, "its record is that of round %u", record->number);
        holds = false;
    }
    if (!digest_equal(&record->previous, &check->previous)) {
        rounds_parts_say(check, FINDING_REFUTED, "its record does not follow the record before it");
        holds = false;
    }
    if (!digest_equal(&record->start, &check->begins)) {
        rounds_parts_say(check, FINDING_REFUTED,
                         check->number == 1
                             ? "it does not begin with the first state of the jobs"
                             : "it does not begin with the mean of the round before");
        holds = false;
    }
    return holds;
}

/* ---- the owners ----------------------------------------------------------- */

static bool names_owner(const struct round_record *record, const char *name)
{
    for (uint32_t i = 0; i < record->owner_count; i++) {
        if (strcmp(record->names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* All of them, each once, in the agreement's order. */
static bool names_all(struct rounds_check *check)
{
    const struct rounds *rounds = &check->result->rounds;
    const struct round_record *record = &check->record;
    bool dropped = false;

    for (uint32_t i = 0; i < rounds->owner_count; i++) {
        if (!names_owner(record, rounds->owners[i].name)) {
            rounds_parts_say(check, FINDING_REFUTED,
                             "its record does not name %s: an owner was dropped without a reason",
                             rounds->owners[i].name);
            dropped = true;
        }
    }
    for (uint32_t i = 0; i < record->owner_count && !dropped; i++) {
        if (record->owner_count != rounds->owner_count ||
            strcmp(record->names[i], rounds->owners[i].name) != 0) {
            rounds_parts_say(check, FINDING_REFUTED,
                             "its record names the owners in another order, or others");
            return false;
        }
    }
    return !dropped;
}

static enum status check_job(bool *holds, struct rounds_check *check, uint32_t owner,
                             struct error *error)
{
    struct job *job = NULL;

    TRY(round_job_make(&job, check->given[owner], check->number, &check->record.start, error));
    if (!digest_equal(&job->id, &check->record.owners[owner].job)) {
        rounds_parts_say(check, FINDING_REFUTED,
                         "the job of %s is another than the one that was given, begun with the "
                         "state of this round",
                         check->record.names[owner]);
        *holds = false;
    }
    job_free(job);
    return STATUS_OK;
}

/* An owner gave a state, or is left out for the reason of its last try. */
static bool has_reason(struct rounds_check *check, uint32_t owner)
{
    const struct round_owner *one = &check->record.owners[owner];
    const enum round_end end =
        one->try_count == 0 ? ROUND_END_NONE : one->tries[one->try_count - 1].end;

    if (one->has_state && end != ROUND_END_FINAL) {
        rounds_parts_say(check, FINDING_REFUTED,
                         "%s gave a state, and its job did not end with one",
                         check->record.names[owner]);
        return false;
    }
    if (!one->has_state && (end == ROUND_END_NONE || end == ROUND_END_FINAL)) {
        rounds_parts_say(check, FINDING_REFUTED, "%s is left out without a reason",
                         check->record.names[owner]);
        return false;
    }
    if (!one->has_state) {
        rounds_parts_say(check, check->ledger == NULL ? FINDING_TRUSTED : FINDING_PROVEN,
                         "%s is left out: %s%s", check->record.names[owner], round_end_word(end),
                         check->ledger == NULL ? ", as its record says" : "");
    }
    return true;
}

/* The agreement says the salts, so no try can be kept back. */
static bool has_salts(struct rounds_check *check, uint32_t owner)
{
    const struct round_owner *one = &check->record.owners[owner];

    for (uint32_t at = 0; at < one->try_count && check->result->rounds.place[0] != '\0'; at++) {
        if (one->tries[at].salt != rounds_salt(&check->result->rounds, at)) {
            rounds_parts_say(
                check, FINDING_REFUTED,
                "try %u of %s has another salt than the agreement gives it: the record "
                "keeps back a try",
                at + 1, check->record.names[owner]);
            return false;
        }
    }
    return true;
}

enum status rounds_record_check(bool *holds, struct rounds_check *check, struct error *error)
{
    const uint32_t states = round_mean_count(&check->record);
    const uint32_t quorum = check->result->rounds.quorum;

    *holds = follows_last(check);
    *holds = names_all(check) && *holds;
    if (!*holds) {
        return STATUS_OK;
    }
    for (uint32_t i = 0; i < check->record.owner_count; i++) {
        TRY(check_job(holds, check, i, error));
        if (check->ledger != NULL) {
            TRY(rounds_ledger_check(check, i, error));
        }
        *holds = has_salts(check, i) && *holds;
        *holds = has_reason(check, i) && *holds;
    }
    if (states < quorum) {
        rounds_parts_say(check, FINDING_REFUTED, "it has %u states, and the quorum is %u", states,
                         quorum);
        *holds = false;
    }
    return STATUS_OK;
}
