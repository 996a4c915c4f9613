/* due_moves.c - see due_moves.h. */
#include "chain/job/due_moves.h"

const char *due_move_name(enum due_move_kind kind)
{
    static const char *const names[] = {"timeout", "lapse",    "pay",     "draw",
                                        "renew",   "finalize", "forfeit", "leave",
                                        "release", "expire",   "deliver"};

    return names[kind];
}

/* ---- claims ------------------------------------------------------------------- */

static bool claim_is_due(struct due_move *move, const struct job_record *record, uint64_t now_s)
{
    for (uint32_t i = 0; i < record->claim_count; i++) {
        const struct job_record_claim *claim = &record->claims[i];
        bool lapses = job_record_claim_is_overtaken(record, claim);

        if (claim->open && (lapses || (claim->deadline_s > 0 && now_s > claim->deadline_s))) {
            *move = (struct due_move){.kind = lapses ? DUE_MOVE_LAPSE : DUE_MOVE_TIMEOUT,
                                      .index = claim->index,
                                      .claim = claim->key,
                                      .turn_s = claim->deadline_s};
            return true;
        }
    }
    return false;
}

static bool pot_is_due(struct due_move *move, const struct job_record *record)
{
    if (record->unpaid == UINT32_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < record->claim_count; i++) {
        if (record->claims[i].open && record->claims[i].generation == record->unpaid) {
            return false;
        }
    }
    *move = (struct due_move){.kind = DUE_MOVE_PAY, .generation = record->unpaid};
    return true;
}

/* ---- segments ----------------------------------------------------------------- */

bool due_move_of_segment(enum due_move_kind *kind, const struct job_segment *segment,
                         const struct ledger_clock *clock)
{
    switch (job_segment_waits_for(segment, clock->time_s)) {
    case JOB_SEGMENT_UNDRAWN:
        *kind = DUE_MOVE_DRAW;
        return job_segment_can_draw(segment, clock);
    case JOB_SEGMENT_RENEWAL:
        *kind = DUE_MOVE_RENEW;
        return true;
    case JOB_SEGMENT_LOST:
        *kind = DUE_MOVE_FORFEIT;
        return true;
    case JOB_SEGMENT_DUE:
        *kind = DUE_MOVE_FINALIZE;
        return true;
    case JOB_SEGMENT_FINAL:
    case JOB_SEGMENT_DISPUTED:
    case JOB_SEGMENT_SEALING:
    case JOB_SEGMENT_REVEALING:
    case JOB_SEGMENT_CLAIM_TIME:
    case JOB_SEGMENT_PREDECESSOR:
        break;
    }
    return false;
}

/* The client has asked the panel for the last state: its draw is like that of a segment that is not
 * final, and its end pays. */
static struct job_segment asked_segment(const struct job_record *record)
{
    struct job_segment segment = job_record_segment(record, record->finalized - 1);

    segment.final = false;
    segment.first = true;
    return segment;
}

static bool is_asked(const struct job_record *record)
{
    return record->phase == GAME_PHASE_CLOSED && record->asked && !record->delivered &&
           record->finalized > 0;
}

static bool segment_is_due(struct due_move *move, const struct job_record *record,
                           const struct ledger_clock *clock)
{
    for (uint32_t i = record->finalized; i < record->committed; i++) {
        struct job_segment segment = job_record_segment(record, i);

        move->index = i;
        move->segment = record->segments[i].committed;
        if (due_move_of_segment(&move->kind, &segment, clock)) {
            return true;
        }
    }
    return false;
}

static bool asked_is_due(struct due_move *move, const struct job_record *record,
                         const struct ledger_clock *clock)
{
    struct job_segment segment;

    if (!is_asked(record)) {
        return false;
    }
    segment = asked_segment(record);
    move->index = record->finalized - 1;
    move->segment = record->segments[move->index].committed;
    if (!segment.drawn) {
        move->kind = DUE_MOVE_DRAW;
        return job_segment_can_draw(&segment, clock);
    }
    move->kind = DUE_MOVE_RENEW;
    return !segment.ended && clock->time_s > job_segment_reveal_end(&segment);
}

/* ---- what is the account's ------------------------------------------------------ */

static bool entry_is_due(struct due_move *move, const struct job_record *record,
                         const struct address *account)
{
    if (record->phase != GAME_PHASE_CLOSED || is_asked(record)) {
        return false;
    }
    for (uint32_t i = 0; i < record->entry_count; i++) {
        if (!record->entries[i].gone && address_equal(&record->entries[i].owner, account)) {
            *move = (struct due_move){.kind = DUE_MOVE_LEAVE, .entry = i};
            return true;
        }
    }
    return false;
}

/* ---- the job ------------------------------------------------------------------ */

static uint64_t delivery_end(const struct job_record *record)
{
    return record->closed_s + record->terms.delivery_period_s;
}

static bool delivery_is_due(const struct job_record *record, uint64_t now_s)
{
    if (record->cancelled || record->delivered || record->held == 0 ||
        record->terms.held_ppm == 0) {
        return false;
    }
    return is_asked(record) ? record->segments[record->finalized - 1].ended
                            : now_s > delivery_end(record);
}

static bool job_is_due(struct due_move *move, const struct job_record *record, uint64_t now_s,
                       const struct address *account)
{
    bool idle = record->committed == record->finalized && job_record_open_claims(record) == 0;

    *move = (struct due_move){.kind = DUE_MOVE_EXPIRE};
    switch (record->phase) {
    case GAME_PHASE_OPEN:
        return now_s > record->terms.deadline_s;
    case GAME_PHASE_RUNNING:
        if (!idle || now_s <= record->due_s || now_s > record->terms.deadline_s) {
            return idle && now_s > record->due_s;
        }
        move->kind = DUE_MOVE_RELEASE;
        return !address_equal(&record->solver, account);
    case GAME_PHASE_CLOSED:
        move->kind = DUE_MOVE_DELIVER;
        return delivery_is_due(record, now_s);
    case GAME_PHASE_NONE:
        break;
    }
    return false;
}

bool due_move_next(struct due_move *move, const struct job_record *record,
                   const struct ledger_clock *clock, const struct address *account)
{
    *move = (struct due_move){.kind = DUE_MOVE_TIMEOUT};
    return claim_is_due(move, record, clock->time_s) || pot_is_due(move, record) ||
           segment_is_due(move, record, clock) || asked_is_due(move, record, clock) ||
           job_is_due(move, record, clock->time_s, account) || entry_is_due(move, record, account);
}

static void take_sooner(uint64_t *next_s, uint64_t at_s, uint64_t now_s)
{
    *next_s = at_s >= now_s && at_s < *next_s ? at_s : *next_s;
}

static void take_ends(uint64_t *next_s, const struct job_segment *segment, uint64_t now_s)
{
    take_sooner(next_s, job_segment_reveal_end(segment), now_s);
    take_sooner(next_s, job_segment_claim_end(segment), now_s);
}

uint64_t due_move_after(const struct job_record *record, uint64_t now_s)
{
    uint64_t next_s = UINT64_MAX;

    if (record->phase == GAME_PHASE_OPEN) {
        take_sooner(&next_s, record->terms.deadline_s, now_s);
    } else if (record->phase == GAME_PHASE_RUNNING && record->committed == record->finalized) {
        take_sooner(&next_s, record->due_s, now_s);
    } else if (record->phase == GAME_PHASE_CLOSED && !record->delivered && record->held > 0 &&
               record->terms.held_ppm > 0) {
        take_sooner(&next_s, delivery_end(record), now_s);
    }
    for (uint32_t i = 0; i < record->claim_count; i++) {
        if (record->claims[i].open && record->claims[i].deadline_s > 0) {
            take_sooner(&next_s, record->claims[i].deadline_s, now_s);
        }
    }
    for (uint32_t i = record->finalized; i < record->committed; i++) {
        struct job_segment segment = job_record_segment(record, i);

        take_ends(&next_s, &segment, now_s);
    }
    if (is_asked(record)) {
        struct job_segment segment = asked_segment(record);

        take_ends(&next_s, &segment, now_s);
    }
    return next_s == UINT64_MAX ? 0 : next_s;
}
