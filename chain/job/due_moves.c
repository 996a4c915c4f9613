/* due_moves.c - see due_moves.h. */
#include "chain/job/due_moves.h"

const char *due_move_name(enum due_move_kind kind)
{
    static const char *const names[] = {"timeout",  "lapse",  "draw",    "renew",
                                        "finalize", "settle", "release", "expire"};

    return names[kind];
}

static bool claim_is_due(struct due_move *move, const struct job_record *record, uint64_t now_s)
{
    for (uint32_t i = 0; i < record->claim_count; i++) {
        const struct job_record_claim *claim = &record->claims[i];
        bool moot = claim->open && job_record_claim_is_moot(record, claim);

        if (claim->open && (moot || now_s > claim->deadline_s)) {
            *move = (struct due_move){.kind = moot ? DUE_MOVE_LAPSE : DUE_MOVE_TIMEOUT,
                                      .index = claim->index,
                                      .claim = claim->key,
                                      .turn_s = claim->deadline_s};
            return true;
        }
    }
    return false;
}

bool due_move_of_segment(enum due_move_kind *kind, const struct job_segment *segment,
                         const struct ledger_clock *clock)
{
    enum job_segment_wait wait = job_segment_waits_for(segment, clock->time_s);

    if (wait == JOB_SEGMENT_DUE) {
        *kind = job_segment_can_draw(segment, clock->height) ? DUE_MOVE_DRAW : DUE_MOVE_FINALIZE;
        return true;
    }
    *kind = DUE_MOVE_RENEW;
    return wait == JOB_SEGMENT_RENEWAL;
}

static bool segment_is_due(struct due_move *move, const struct job_record *record,
                           const struct ledger_clock *clock)
{
    for (uint32_t i = record->finalized; i < record->committed; i++) {
        struct job_segment segment = job_record_segment(record, i);

        move->index = i;
        if (due_move_of_segment(&move->kind, &segment, clock)) {
            return true;
        }
    }
    return false;
}

/* The bond of a seal that was not revealed in its round goes to the solver. An attestor is paid
 * when its segment is final. */
static bool settlement_is_due(struct due_move *move, const struct job_record *record,
                              uint64_t now_s, const struct address *account)
{
    for (uint32_t i = 0; i < record->attestation_count; i++) {
        const struct job_record_attestation *attestation = &record->attestations[i];
        uint32_t index = attestation->index;
        bool due;

        if (attestation->settled || index >= record->committed) {
            continue;
        }
        due = attestation->revealed
                  ? index < record->finalized && address_equal(&attestation->account, account)
                  : (attestation->round != record->segments[index].round ||
                     now_s > job_record_reveal_end(record, index)) &&
                        address_equal(&record->segments[index].committed.solver, account);
        if (due) {
            *move = (struct due_move){
                .kind = DUE_MOVE_SETTLE, .index = index, .attestor = attestation->account};
            return true;
        }
    }
    return false;
}

static bool job_is_due(struct due_move *move, const struct job_record *record, uint64_t now_s,
                       const struct address *account)
{
    *move = (struct due_move){.kind = DUE_MOVE_EXPIRE};
    if (record->phase == GAME_PHASE_OPEN) {
        return now_s > record->terms.deadline_s;
    }
    if (now_s > job_record_end(record)) {
        return job_record_open_claims(record) == 0;
    }
    move->kind = DUE_MOVE_RELEASE;
    return record->committed == record->finalized && now_s > record->due_s &&
           !address_equal(&record->solver, account);
}

bool due_move_next(struct due_move *move, const struct job_record *record,
                   const struct ledger_clock *clock, const struct address *account)
{
    bool running = record->phase == GAME_PHASE_RUNNING;

    *move = (struct due_move){.kind = DUE_MOVE_TIMEOUT};
    return (running &&
            (claim_is_due(move, record, clock->time_s) || segment_is_due(move, record, clock))) ||
           settlement_is_due(move, record, clock->time_s, account) ||
           ((running || record->phase == GAME_PHASE_OPEN) &&
            job_is_due(move, record, clock->time_s, account));
}

uint64_t due_move_after(const struct job_record *record, uint64_t now_s)
{
    uint64_t next_s = record->phase == GAME_PHASE_OPEN ? record->terms.deadline_s : UINT64_MAX;

    if (record->phase == GAME_PHASE_RUNNING) {
        next_s = record->committed == record->finalized ? record->due_s : job_record_end(record);
    }
    for (uint32_t i = 0; i < record->claim_count; i++) {
        const struct job_record_claim *claim = &record->claims[i];

        if (claim->open && claim->deadline_s >= now_s && claim->deadline_s < next_s) {
            next_s = claim->deadline_s;
        }
    }
    for (uint32_t i = record->finalized; i < record->committed; i++) {
        uint64_t ends[] = {job_record_reveal_end(record, i), job_record_claim_end(record, i)};

        for (int at = 0; at < 2; at++) {
            if (ends[at] >= now_s && ends[at] < next_s) {
                next_s = ends[at];
            }
        }
    }
    return next_s == UINT64_MAX || next_s < now_s ? 0 : next_s;
}
