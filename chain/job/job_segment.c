/* job_segment.c - see job_segment.h. */
#include "chain/job/job_segment.h"

enum {
    DRAW_AFTER = 2, /* blocks after the commit's */
};

uint64_t job_segment_attest_end(const struct job_segment *segment)
{
    return segment->start_s + segment->terms->attest_period_s;
}

uint64_t job_segment_reveal_end(const struct job_segment *segment)
{
    return job_segment_attest_end(segment) + segment->terms->reveal_period_s;
}

uint64_t job_segment_claim_end(const struct job_segment *segment)
{
    return job_segment_reveal_end(segment) + segment->terms->claim_period_s;
}

bool job_segment_must_be_covered(const struct job_segment *segment)
{
    return segment->terms->coverage_ppm == GAME_PPM || segment->mandatory;
}

bool job_segment_is_covered(const struct job_segment *segment)
{
    return !job_segment_must_be_covered(segment) || segment->revealed >= segment->terms->attestors;
}

bool job_segment_wants_draw(const struct job_segment *segment)
{
    return segment->terms->coverage_ppm > 0 && segment->terms->coverage_ppm < GAME_PPM &&
           !segment->drawn;
}

bool job_segment_can_draw(const struct job_segment *segment, uint64_t height)
{
    return job_segment_wants_draw(segment) && height >= segment->height + DRAW_AFTER;
}

uint64_t job_terms_end(const struct game_terms *terms)
{
    return terms->deadline_s + terms->attest_period_s + terms->reveal_period_s +
           terms->claim_period_s;
}

enum job_segment_wait job_segment_waits_for(const struct job_segment *segment, uint64_t now_s)
{
    if (segment->final) {
        return JOB_SEGMENT_FINAL;
    }
    if (segment->open_claims > 0) {
        return JOB_SEGMENT_DISPUTED;
    }
    if (now_s <= job_segment_attest_end(segment) && segment->terms->attestors > 0) {
        return JOB_SEGMENT_ATTESTING;
    }
    if (now_s <= job_segment_reveal_end(segment) && segment->terms->attestors > 0) {
        return JOB_SEGMENT_REVEALING;
    }
    if (!job_segment_is_covered(segment)) {
        return now_s <= segment->terms->deadline_s ? JOB_SEGMENT_RENEWAL : JOB_SEGMENT_UNCOVERED;
    }
    if (now_s <= job_segment_claim_end(segment)) {
        return JOB_SEGMENT_CLAIM_TIME;
    }
    return segment->first ? JOB_SEGMENT_DUE : JOB_SEGMENT_PREDECESSOR;
}
