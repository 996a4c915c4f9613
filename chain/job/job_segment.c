/* job_segment.c - see job_segment.h. */
#include "chain/job/job_segment.h"

/* Its leg comes next: of an uncovered one, the first of a tail that nobody looks at. */
static bool is_first(const struct job_reduced *job, const struct job_reduced_segment *draw,
                     uint32_t index)
{
    return draw->covered
               ? draw->leg_start == job->finalized
               : index == job->finalized && job->leg_start == index && job->drawn == job->committed;
}

struct job_segment job_segment_of(const struct game_terms *terms, const struct job_reduced *job,
                                  const struct game_segment *committed,
                                  const struct job_reduced_segment *draw, bool has_vouch)
{
    const uint32_t index = committed->index;

    return (struct job_segment){
        .terms = terms,
        .tally = {.wanted = game_wanted_rights(terms, committed, job->segments),
                  .rights = draw->rights,
                  .unseen = draw->unseen,
                  .round = draw->round,
                  .drawn = draw->seats,
                  .to = draw->to,
                  .panel = committed->panel,
                  .vouched = draw->vouched || has_vouch},
        .commits = {draw->over_height > 0 ? draw->over_height : committed->height,
                    draw->over_height > 0 ? draw->over_s : committed->time_s},
        .panel = committed->panel,
        .start_s = draw->start_s,
        .refused_until_s = job->refused_until_s,
        .drawn = (index < job->drawn),
        .next = index == job->drawn,
        .over = (draw->over_height > 0),
        .covered = draw->covered,
        .noted = draw->vouched,
        .final = index < job->finalized,
        .first = is_first(job, draw, index)};
}

uint64_t job_segment_seal_end(const struct job_segment *segment)
{
    return segment->start_s + segment->terms->seal_period_s;
}

uint64_t job_segment_reveal_end(const struct job_segment *segment)
{
    return job_segment_seal_end(segment) + segment->terms->reveal_period_s;
}

uint64_t job_segment_claim_end(const struct job_segment *segment)
{
    return job_segment_reveal_end(segment) +
           (uint64_t)leg_waits(&segment->tally) * segment->terms->claim_period_s;
}

bool job_segment_can_draw(const struct job_segment *segment, const struct ledger_clock *clock)
{
    return !segment->final && (segment->next || segment->over) &&
           (segment->panel == 0 || clock->height >= segment->commits.height + clock->seed_delay);
}

/* A vouch counts that we have and the ledger has not: settle brings it. */
bool job_segment_is_held(const struct job_segment *segment)
{
    const struct game_terms *terms = segment->terms;
    uint64_t notice_s =
        (uint64_t)terms->seal_period_s + terms->reveal_period_s + terms->claim_period_s;

    return segment->refused_until_s != 0 && !segment->tally.vouched &&
           job_segment_claim_end(segment) + notice_s >= segment->refused_until_s;
}

/* All claims of a job share one queue, and must end first. */
static enum job_segment_wait in_line(const struct job_segment *segment,
                                     enum job_segment_wait outcome)
{
    if (!segment->first) {
        return JOB_SEGMENT_LEG_BEFORE;
    }
    return segment->job_claims > 0 ? JOB_SEGMENT_DISPUTED : outcome;
}

static enum job_segment_wait held_waits_for(const struct job_segment *segment, uint64_t now_s)
{
    return now_s <= segment->refused_until_s ? JOB_SEGMENT_HELD
                                             : in_line(segment, JOB_SEGMENT_LOST);
}

static enum job_segment_wait told_waits_for(const struct job_segment *segment, uint64_t now_s)
{
    bool may_go_on = segment->refused_until_s == 0 || segment->tally.vouched;

    if (segment->terms->seats > 0 && now_s <= job_segment_seal_end(segment)) {
        return JOB_SEGMENT_SEALING;
    }
    if (segment->terms->seats > 0 && now_s <= job_segment_reveal_end(segment)) {
        return JOB_SEGMENT_REVEALING;
    }
    if (may_go_on && leg_seats_needed(&segment->tally) > 0) {
        return segment->over ? JOB_SEGMENT_ROUND_UNDRAWN : JOB_SEGMENT_ROUND;
    }
    if (now_s <= job_segment_claim_end(segment)) {
        return JOB_SEGMENT_CLAIM_TIME;
    }
    return in_line(segment, leg_is_final(&segment->tally) ? JOB_SEGMENT_DUE : JOB_SEGMENT_LOST);
}

/* A refused tail that nobody looks at is void, at its first segment. */
static enum job_segment_wait uncovered_waits_for(const struct job_segment *segment, uint64_t now_s)
{
    if (segment->refused_until_s == 0 || !segment->first) {
        return JOB_SEGMENT_UNCOVERED;
    }
    return held_waits_for(segment, now_s);
}

enum job_segment_wait job_segment_waits_for(const struct job_segment *segment, uint64_t now_s)
{
    if (segment->final) {
        return JOB_SEGMENT_FINAL;
    }
    if (!segment->drawn) {
        return JOB_SEGMENT_UNDRAWN;
    }
    if (!segment->covered) {
        return uncovered_waits_for(segment, now_s);
    }
    if (segment->refused_until_s != 0 && segment->tally.vouched && !segment->noted) {
        return JOB_SEGMENT_VOUCH;
    }
    if (segment->open_claims > 0) {
        return JOB_SEGMENT_DISPUTED;
    }
    return job_segment_is_held(segment) ? held_waits_for(segment, now_s)
                                        : told_waits_for(segment, now_s);
}

bool job_segment_settles(enum job_segment_wait wait)
{
    return wait == JOB_SEGMENT_ROUND || wait == JOB_SEGMENT_VOUCH || wait == JOB_SEGMENT_LOST ||
           wait == JOB_SEGMENT_DUE;
}

const char *job_segment_wait_word(enum job_segment_wait wait)
{
    static const char *const words[] = {
        [JOB_SEGMENT_FINAL] = "final",
        [JOB_SEGMENT_DISPUTED] = "disputed",
        [JOB_SEGMENT_UNDRAWN] = "undrawn",
        [JOB_SEGMENT_ROUND_UNDRAWN] = "round-undrawn",
        [JOB_SEGMENT_UNCOVERED] = "uncovered",
        [JOB_SEGMENT_SEALING] = "sealing",
        [JOB_SEGMENT_REVEALING] = "revealing",
        [JOB_SEGMENT_ROUND] = "round",
        [JOB_SEGMENT_VOUCH] = "vouch",
        [JOB_SEGMENT_HELD] = "held",
        [JOB_SEGMENT_CLAIM_TIME] = "claim-time",
        [JOB_SEGMENT_LEG_BEFORE] = "leg-before",
        [JOB_SEGMENT_LOST] = "lost",
        [JOB_SEGMENT_DUE] = "due",
    };

    return words[wait];
}
