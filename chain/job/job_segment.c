/* job_segment.c - see job_segment.h. */
#include "chain/job/job_segment.h"

#include "chain/codec/keccak.h"

int32_t job_segment_score(const struct job_segment *segment)
{
    return (int32_t)segment->rights - (int32_t)segment->unavailables;
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
    return job_segment_reveal_end(segment) + segment->terms->claim_period_s;
}

bool job_segment_can_draw(const struct job_segment *segment, const struct ledger_clock *clock)
{
    return !segment->final && segment->terms->seats > 0 && !segment->drawn &&
           clock->height >= segment->height + clock->seed_delay;
}

/* Has the panel said all that it will? */
static bool has_verdict(const struct job_segment *segment)
{
    int32_t score = job_segment_score(segment);

    return !segment->covered || segment->ended || score >= (int32_t)segment->terms->seats ||
           score <= GAME_SCORE_VOID;
}

/* Silence lets a segment through with more rights than denials, or where the client named the
 * panel. */
static bool is_lost(const struct job_segment *segment)
{
    int32_t score = job_segment_score(segment);

    return segment->covered &&
           (score <= GAME_SCORE_VOID || (score <= 0 && hash32_is_zero(&segment->terms->verifiers)));
}

/* All claims of a job share one queue, and must end first. */
static enum job_segment_wait in_line(const struct job_segment *segment)
{
    if (!segment->first) {
        return JOB_SEGMENT_PREDECESSOR;
    }
    if (segment->job_claims > 0) {
        return JOB_SEGMENT_DISPUTED;
    }
    return is_lost(segment) ? JOB_SEGMENT_LOST : JOB_SEGMENT_DUE;
}

enum job_segment_wait job_segment_waits_for(const struct job_segment *segment, uint64_t now_s)
{
    if (segment->final) {
        return JOB_SEGMENT_FINAL;
    }
    if (segment->open_claims > 0) {
        return JOB_SEGMENT_DISPUTED;
    }
    if (segment->terms->seats > 0 && !segment->drawn) {
        return JOB_SEGMENT_UNDRAWN;
    }
    if (segment->covered && !segment->ended && now_s <= job_segment_seal_end(segment)) {
        return JOB_SEGMENT_SEALING;
    }
    if (segment->covered && !segment->ended && now_s <= job_segment_reveal_end(segment)) {
        return JOB_SEGMENT_REVEALING;
    }
    if (!has_verdict(segment)) {
        return JOB_SEGMENT_RENEWAL;
    }
    return now_s <= job_segment_claim_end(segment) ? JOB_SEGMENT_CLAIM_TIME : in_line(segment);
}

const char *job_segment_wait_word(enum job_segment_wait wait)
{
    static const char *const words[] = {
        [JOB_SEGMENT_FINAL] = "final",
        [JOB_SEGMENT_DISPUTED] = "disputed",
        [JOB_SEGMENT_UNDRAWN] = "undrawn",
        [JOB_SEGMENT_SEALING] = "sealing",
        [JOB_SEGMENT_REVEALING] = "revealing",
        [JOB_SEGMENT_RENEWAL] = "renewal",
        [JOB_SEGMENT_CLAIM_TIME] = "claim-time",
        [JOB_SEGMENT_PREDECESSOR] = "predecessor",
        [JOB_SEGMENT_LOST] = "lost",
        [JOB_SEGMENT_DUE] = "due",
    };

    return words[wait];
}
