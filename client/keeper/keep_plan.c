/* keep_plan.c - see keep_plan.h. */
#include "client/keeper/keep_plan.h"

/* Of the seal period: who was well from one share on could have had the states, and who has no end
 * one share before it is over computes it. */
#define SHARE 8

/* Without a replay of its own it believes nobody but those whom the user knows. A vouch for what
 * came late can end the leg at once: nobody else has time to look and to claim, so it must have
 * looked itself. */
static bool may_vouch(const struct keep_known *known, const struct keep_policy *policy)
{
    return known->has_states && !known->is_false &&
           (policy->replays ? known->replayed || !known->late : known->known_right);
}

/* Seats disagree, nobody says right, or nobody else can look in time: then only a replay tells. */
static bool is_open_question(const struct job_segment *segment, const struct keep_known *known,
                             uint64_t now_s)
{
    return (known->has_states && known->late && !segment->noted) ||
           (segment->tally.unseen > 0 && now_s > job_segment_seal_end(segment)) ||
           (segment->tally.rights == 0 && now_s > job_segment_reveal_end(segment));
}

static uint64_t first_seal_end(const struct job_segment *segment, const struct keep_known *known)
{
    return known->first_end_s - segment->terms->reveal_period_s;
}

/* Nobody gives the end, and the start is here. */
static bool must_compute_end(const struct job_segment *segment, const struct keep_known *known,
                             uint64_t now_s)
{
    return known->has_start && !known->has_states &&
           now_s > first_seal_end(segment, known) - segment->terms->seal_period_s / SHARE;
}

/* A refusal holds only what is refused within its claim time: replays have the first half of it. */
static bool is_time_to_refuse(const struct job_segment *segment, const struct keep_known *known,
                              const struct keep_policy *policy, uint64_t now_s)
{
    bool may_compute = policy->replays && (known->has_start || known->start_comes);

    return now_s > known->first_end_s + (may_compute ? segment->terms->claim_period_s / 2 : 0);
}

/* A wrong settle would void it. What a replay may still prove false is not hurried to its end. */
static bool must_bring(const struct job_segment *segment, const struct keep_known *known,
                       const struct keep_policy *policy, uint64_t now_s)
{
    uint64_t spare_s = segment->terms->claim_period_s / 2;

    return (segment->tally.unseen > 0 || segment->refused_until_s != 0) &&
           now_s > job_segment_reveal_end(segment) &&
           (known->replayed || !policy->replays ||
            now_s + spare_s > job_segment_claim_end(segment));
}

/* Was all well with us for as long as the states could be fetched? */
static bool is_their_fault(const struct job_segment *segment, const struct keep_known *known)
{
    const struct game_terms *terms = segment->terms;
    uint64_t began_s = first_seal_end(segment, known) - terms->seal_period_s;

    return known->well_s != 0 && known->well_s <= began_s + terms->seal_period_s / SHARE;
}

struct keep_needs keep_plan(const struct job_segment *segment, const struct keep_known *known,
                            const struct keep_policy *policy, uint64_t now_s)
{
    struct keep_needs needs = {0};

    if (!segment->drawn || !segment->covered || segment->final) {
        return needs;
    }
    needs.states = !known->has_states;
    needs.vouch = !segment->noted && may_vouch(known, policy);
    needs.bring = needs.vouch && must_bring(segment, known, policy, now_s);
    needs.replay = policy->replays && !known->replayed &&
                   ((known->has_states && is_open_question(segment, known, now_s)) ||
                    must_compute_end(segment, known, now_s));
    needs.refuse =
        policy->refuses && !known->has_states && !segment->noted && segment->refused_until_s == 0 &&
        is_time_to_refuse(segment, known, policy, now_s) && is_their_fault(segment, known);
    return needs;
}
