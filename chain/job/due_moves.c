/* due_moves.c - see due_moves.h. */
#include "chain/job/due_moves.h"

enum {
    DRAW_AFTER = 2, /* blocks after the commit's */
};

const char *due_move_name(enum due_move_kind kind)
{
    static const char *const names[] = {"timeout",  "lapse",  "draw",    "renew",
                                        "finalize", "settle", "release", "expire"};

    return names[kind];
}

static bool claim_is_due(struct due_move_move *move, const struct job_record *record,
                         uint64_t now_s)
{
    for (uint32_t i = 0; i < record->claim_count; i++) {
        const struct job_record_claim *claim = &record->claims[i];
        bool moot = claim->open && job_record_claim_is_moot(record, claim);

        if (claim->open && (moot || now_s > claim->deadline_s)) {
            *move = (struct due_move_move){.kind = moot ? DUE_MOVE_LAPSE : DUE_MOVE_TIMEOUT,
                                           .index = claim->index,
                                           .claim = claim->key,
                                           .turn_s = claim->deadline_s};
            return true;
        }
    }
    return false;
}

/* Undrawn, where a draw decides what the segment waits for. */
static bool wants_draw(const struct job_record *record, const struct ledger_clock *clock,
                       uint32_t index)
{
    const struct job_record_segment *segment = &record->segments[index];

    return record->terms.coverage_ppm > 0 && record->terms.coverage_ppm < GAME_PPM &&
           hash32_is_zero(&segment->seed) &&
           clock->height >= segment->committed.height + DRAW_AFTER;
}

static bool segment_is_due(struct due_move_move *move, const struct job_record *record,
                           const struct ledger_clock *clock)
{
    for (uint32_t i = record->finalized; i < record->committed; i++) {
        enum job_record_wait wait = job_record_waits_for(record, i, clock->time_s);

        move->index = i;
        if (wait == JOB_RECORD_DUE) {
            move->kind = wants_draw(record, clock, i) ? DUE_MOVE_DRAW : DUE_MOVE_FINALIZE;
            return true;
        }
        if (wait == JOB_RECORD_RENEWAL) {
            move->kind = DUE_MOVE_RENEW;
            return true;
        }
    }
    return false;
}

/* What was not revealed in its round is the solver's; what was, its attestor's when it is final. */
static bool settlement_is_due(struct due_move_move *move, const struct job_record *record,
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
            *move = (struct due_move_move){
                .kind = DUE_MOVE_SETTLE, .index = index, .attestor = attestation->account};
            return true;
        }
    }
    return false;
}

static bool job_is_due(struct due_move_move *move, const struct job_record *record, uint64_t now_s,
                       const struct address *account)
{
    *move = (struct due_move_move){.kind = DUE_MOVE_EXPIRE};
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

bool due_move_next(struct due_move_move *move, const struct job_record *record,
                   const struct ledger_clock *clock, const struct address *account)
{
    bool running = record->phase == GAME_PHASE_RUNNING;

    *move = (struct due_move_move){.kind = DUE_MOVE_TIMEOUT};
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
