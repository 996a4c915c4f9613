/* due_submit.c - see due_submit.h. */
#include "chain/job/due_submit.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/hex.h"
#include "chain/codec/hex_data.h"

static enum status submit_of_claim(char name[LEDGER_NAME_MAX], struct ledger *ledger,
                                   const struct due_move *move, struct error *error)
{
    char key[HEX_DATA_SIZE(HASH32_SIZE)];

    hex_write(key, move->claim.bytes, HASH32_SIZE, true);
    (void)snprintf(name, LEDGER_NAME_MAX, "claim %s %s of %" PRIu64, key, due_move_name(move->kind),
                   move->turn_s);
    return (move->kind == DUE_MOVE_LAPSE ? ledger_lapse : ledger_timeout)(ledger, name,
                                                                          &move->claim, error);
}

/* The name follows the block of the commit, since a reorganization makes another segment of it; and
 * the reason, since each has a settle of its own. */
static enum status submit_of_segment(char name[LEDGER_NAME_MAX], struct ledger *ledger,
                                     const struct job_record *record, const struct due_move *move,
                                     struct error *error)
{
    struct hash32 hash = game_segment_hash(&record->key, &move->segment);
    struct game_bytes signature = {NULL, 0};
    struct error why; /* a word that does not count is no failure */
    char text[HEX_DATA_SIZE(HASH32_SIZE)];

    hex_write(text, hash.bytes, HASH32_SIZE, true);
    if (move->kind == DUE_MOVE_DRAW) {
        (void)snprintf(name, LEDGER_NAME_MAX, "segment %s draw", text);
        if (move->because == JOB_SEGMENT_ROUND_UNDRAWN) {
            (void)snprintf(name + strlen(name), LEDGER_NAME_MAX - strlen(name), " %u",
                           move->round + 1);
        }
        return ledger_draw(ledger, name, &record->key, &move->segment, &move->commits, error);
    }
    (void)snprintf(name, LEDGER_NAME_MAX, "segment %s settle %s %u%s", text,
                   job_segment_wait_word(move->because), move->round,
                   move->vouched ? " vouched" : "");
    error_init(&why);
    if (move->vouched) {
        const struct vouch *vouch = job_record_vouch(record, move->index);
        enum status status = vouch_ask(vouch, ledger, &record->key, &record->terms.keeper, &why);

        if (status == STATUS_OK) {
            signature = (struct game_bytes){vouch->signature, vouch->size};
        } else if (status != STATUS_REFUSED) {
            *error = why;
            return status;
        }
    }
    return ledger_settle(ledger, name, &record->key, &move->segment, &signature, error);
}

static enum status submit_of_job(char name[LEDGER_NAME_MAX], struct ledger *ledger,
                                 const struct job_record *record, const struct due_move *move,
                                 struct error *error)
{
    const struct hash32 *job = &record->key;
    const char *verb = due_move_name(move->kind);
    char text[HEX_DATA_SIZE(HASH32_SIZE)];

    hex_write(text, job->bytes, HASH32_SIZE, true);
    if (move->kind == DUE_MOVE_PAY) {
        (void)snprintf(name, LEDGER_NAME_MAX, "job %s %s %u", text, verb, move->generation);
        return ledger_pay(ledger, name, job, move->generation, error);
    }
    if (move->kind == DUE_MOVE_DEPART) {
        (void)snprintf(name, LEDGER_NAME_MAX, "job %s %s %u of %u", text, verb, move->entry,
                       move->generation);
        return ledger_depart(ledger, name, job, move->generation, move->entry, error);
    }
    (void)snprintf(name, LEDGER_NAME_MAX, "job %s %s %u", text, verb, record->accepts);
    return (move->kind == DUE_MOVE_RELEASE ? ledger_release : ledger_close_job)(ledger, name, job,
                                                                                error);
}

enum status due_submit(char name[LEDGER_NAME_MAX], struct ledger *ledger,
                       const struct job_record *record, const struct due_move *move,
                       struct error *error)
{
    switch (move->kind) {
    case DUE_MOVE_TIMEOUT:
    case DUE_MOVE_LAPSE:
        return submit_of_claim(name, ledger, move, error);
    case DUE_MOVE_DRAW:
    case DUE_MOVE_SETTLE:
        return submit_of_segment(name, ledger, record, move, error);
    case DUE_MOVE_PAY:
    case DUE_MOVE_RELEASE:
    case DUE_MOVE_CLOSE:
    case DUE_MOVE_DEPART:
        break;
    }
    return submit_of_job(name, ledger, record, move, error);
}
