/* due_submit.c - see due_submit.h. */
#include "chain/job/due_submit.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/hex.h"
#include "chain/codec/hex_data.h"

struct due_move due_submit_of_segment(const struct job_record *record, enum due_move_kind kind,
                                      uint32_t index)
{
    return (struct due_move){
        .kind = kind, .index = index, .segment = record->segments[index].committed};
}

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

/* The name follows the block of the commit: a reorganization makes another segment of it. */
static enum status submit_of_segment(char name[LEDGER_NAME_MAX], struct ledger *ledger,
                                     const struct job_record *record, const struct due_move *move,
                                     struct error *error)
{
    struct hash32 hash = game_segment_hash(&record->key, &move->segment);
    const char *verb = due_move_name(move->kind);
    char text[HEX_DATA_SIZE(HASH32_SIZE)];

    hex_write(text, hash.bytes, HASH32_SIZE, true);
    if (move->kind == DUE_MOVE_RENEW) {
        (void)snprintf(name, LEDGER_NAME_MAX, "segment %s %s %u", text, verb,
                       record->segments[move->index].round);
        return ledger_renew(ledger, name, &record->key, &move->segment, error);
    }
    (void)snprintf(name, LEDGER_NAME_MAX, "segment %s %s", text, verb);
    if (move->kind == DUE_MOVE_DRAW) {
        return ledger_draw(ledger, name, &record->key, &move->segment, error);
    }
    return (move->kind == DUE_MOVE_FORFEIT ? ledger_forfeit : ledger_finalize)(
        ledger, name, &record->key, &move->segment, error);
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
    if (move->kind == DUE_MOVE_LEAVE) {
        /* A reorganization may put it before the end of the job: then the entry has only left. */
        (void)snprintf(name, LEDGER_NAME_MAX, "job %s %s %u%s", text, verb, move->entry,
                       record->entries[move->entry].left ? " at last" : " with its bond");
        return ledger_leave(ledger, name, job, move->entry, error);
    }
    (void)snprintf(name, LEDGER_NAME_MAX, "job %s %s %u", text, verb, record->accepts);
    return (move->kind == DUE_MOVE_RELEASE  ? ledger_release
            : move->kind == DUE_MOVE_EXPIRE ? ledger_expire
                                            : ledger_deliver)(ledger, name, job, error);
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
    case DUE_MOVE_RENEW:
    case DUE_MOVE_FINALIZE:
    case DUE_MOVE_FORFEIT:
        return submit_of_segment(name, ledger, record, move, error);
    case DUE_MOVE_PAY:
    case DUE_MOVE_LEAVE:
    case DUE_MOVE_RELEASE:
    case DUE_MOVE_EXPIRE:
    case DUE_MOVE_DELIVER:
        break;
    }
    return submit_of_job(name, ledger, record, move, error);
}
