/* due_moves.c - see due_moves.h. */
#include "chain/job/due_moves.h"

const char *due_move_name(enum due_move_kind kind)
{
    static const char *const names[] = {"timeout", "lapse",   "pay",   "draw",
                                        "settle",  "release", "close", "depart"};

    return names[kind];
}

/* ---- claims ------------------------------------------------------------------- */

static bool claim_is_due(struct due_move *move, const struct job_record *record, uint64_t now_s)
{
    for (uint32_t i = 0; i < record->claim_count; i++) {
        const struct job_record_claim *claim = &record->claims[i];
        bool lapses = job_record_claim_is_overtaken(record, claim);

        if (job_record_claim_is_open(claim) &&
            (lapses || (claim->state.deadline_s > 0 && now_s > claim->state.deadline_s))) {
            *move = (struct due_move){.kind = lapses ? DUE_MOVE_LAPSE : DUE_MOVE_TIMEOUT,
                                      .index = claim->index,
                                      .claim = claim->key,
                                      .turn_s = claim->state.deadline_s};
            return true;
        }
    }
    return false;
}

static bool pot_is_due(struct due_move *move, const struct job_record *record)
{
    if (record->state.unpaid == UINT32_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < record->claim_count; i++) {
        if (job_record_claim_is_open(&record->claims[i]) &&
            record->claims[i].generation == record->state.unpaid) {
            return false;
        }
    }
    *move = (struct due_move){.kind = DUE_MOVE_PAY, .generation = record->state.unpaid};
    return true;
}

/* ---- segments ----------------------------------------------------------------- */

bool due_move_of_segment(enum due_move_kind *kind, const struct job_segment *segment,
                         const struct ledger_clock *clock)
{
    enum job_segment_wait wait = job_segment_waits_for(segment, clock->time_s);

    if (wait == JOB_SEGMENT_UNDRAWN || wait == JOB_SEGMENT_ROUND_UNDRAWN) {
        *kind = DUE_MOVE_DRAW;
        return job_segment_can_draw(segment, clock);
    }
    *kind = DUE_MOVE_SETTLE;
    return job_segment_settles(wait);
}

bool due_move_wants_vouch(const struct job_segment *segment)
{
    return segment->covered && !segment->noted &&
           (segment->tally.unseen > 0 || segment->tally.rights == 0 ||
            segment->refused_until_s != 0);
}

bool due_move_at(struct due_move *move, const struct job_record *record, uint32_t index,
                 const struct ledger_clock *clock)
{
    const struct job_record_segment *of = &record->segments[index];
    struct job_segment segment = job_record_segment(record, index);

    *move = (struct due_move){.index = index,
                              .segment = of->committed,
                              .commits = segment.commits,
                              .because = job_segment_waits_for(&segment, clock->time_s),
                              .round = of->draw.round,
                              .vouched = of->has_vouch && due_move_wants_vouch(&segment)};
    return due_move_of_segment(&move->kind, &segment, clock);
}

static bool segment_is_due(struct due_move *move, const struct job_record *record,
                           const struct ledger_clock *clock)
{
    for (uint32_t i = record->state.finalized; i < record->state.committed; i++) {
        if (due_move_at(move, record, i, clock)) {
            return true;
        }
    }
    return false;
}

/* ---- what is the account's ------------------------------------------------------ */

/* In the panel of now a bond stays until the job is closed: who wants to be drawn waits. */
static bool entry_is_due(struct due_move *move, const struct job_record *record,
                         const struct address *account)
{
    if (record->former_count > 0 && address_equal(&record->account, account)) {
        *move = (struct due_move){.kind = DUE_MOVE_DEPART,
                                  .generation = record->former[0].generation,
                                  .entry = record->former[0].number};
        return true;
    }
    for (uint32_t i = 0; record->state.phase == GAME_PHASE_CLOSED && i < record->state.entries;
         i++) {
        if (!record->entries[i].gone && address_equal(&record->entries[i].owner, account)) {
            *move = (struct due_move){
                .kind = DUE_MOVE_DEPART, .generation = record->state.generation, .entry = i};
            return true;
        }
    }
    return false;
}

/* ---- the job ------------------------------------------------------------------ */

/* Nothing is open but a tail that nobody looks at. */
static bool is_idle(const struct job_record *record)
{
    return record->state.drawn == record->state.committed &&
           record->state.leg_start == record->state.finalized &&
           job_record_open_claims(record) == 0;
}

static bool release_is_due(const struct job_record *record, uint64_t now_s,
                           const struct address *account)
{
    if (!is_idle(record)) {
        return false;
    }
    if (record->state.refused_until_s != 0) {
        return record->state.committed == record->state.finalized &&
               now_s > record->state.refused_until_s;
    }
    return record->state.due_s != 0 && now_s > record->state.due_s &&
           (now_s > record->terms.deadline_s || !address_equal(&record->state.solver, account));
}

static bool job_is_due(struct due_move *move, const struct job_record *record, uint64_t now_s,
                       const struct address *account)
{
    if (record->state.phase == GAME_PHASE_OPEN) {
        *move = (struct due_move){.kind = DUE_MOVE_CLOSE};
        return now_s > record->terms.deadline_s;
    }
    *move = (struct due_move){.kind = DUE_MOVE_RELEASE};
    return record->state.phase == GAME_PHASE_RUNNING && release_is_due(record, now_s, account);
}

bool due_move_next(struct due_move *move, const struct job_record *record,
                   const struct ledger_clock *clock, const struct address *account)
{
    *move = (struct due_move){.kind = DUE_MOVE_TIMEOUT};
    return claim_is_due(move, record, clock->time_s) || pot_is_due(move, record) ||
           segment_is_due(move, record, clock) ||
           job_is_due(move, record, clock->time_s, account) || entry_is_due(move, record, account);
}

/* ---- when ------------------------------------------------------------------------ */

static void take_sooner(uint64_t *next_s, uint64_t at_s, uint64_t now_s)
{
    *next_s = at_s >= now_s && at_s < *next_s ? at_s : *next_s;
}

static void take_ends(uint64_t *next_s, const struct job_segment *segment, uint64_t now_s)
{
    if (segment->covered) {
        take_sooner(next_s, job_segment_reveal_end(segment), now_s);
        take_sooner(next_s, job_segment_claim_end(segment), now_s);
    }
}

uint64_t due_move_after(const struct job_record *record, uint64_t now_s)
{
    uint64_t next_s = UINT64_MAX;

    if (record->state.phase == GAME_PHASE_OPEN) {
        take_sooner(&next_s, record->terms.deadline_s, now_s);
    } else if (record->state.phase == GAME_PHASE_RUNNING && record->state.refused_until_s != 0) {
        take_sooner(&next_s, record->state.refused_until_s, now_s);
    } else if (record->state.phase == GAME_PHASE_RUNNING &&
               record->state.leg_start == record->state.finalized && record->state.due_s != 0) {
        take_sooner(&next_s, record->state.due_s, now_s);
    }
    for (uint32_t i = 0; i < record->claim_count; i++) {
        if (job_record_claim_is_open(&record->claims[i]) &&
            record->claims[i].state.deadline_s > 0) {
            take_sooner(&next_s, record->claims[i].state.deadline_s, now_s);
        }
    }
    for (uint32_t i = record->state.finalized; i < record->state.committed; i++) {
        struct job_segment segment = job_record_segment(record, i);

        take_ends(&next_s, &segment, now_s);
    }
    return next_s == UINT64_MAX ? 0 : next_s;
}
