/* job_status.c - see job_status.h. */
#include "chain/job/job_status.h"

#include <stdio.h>
#include <string.h>

#include "chain/game/terms.h"

/* A vouch that was handed to the solver comes with its settle: of a silent panel after one claim
 * time, of one that says unseen at the reveal's end, by the keeper itself. */
bool job_status_lacks_vouch(const struct job_record *record, uint32_t index, uint64_t now_s)
{
    struct job_segment segment = job_record_segment(record, index);
    const struct leg_tally *tally = &segment.tally;
    const struct address *keeper = &record->terms.keeper;
    bool is_refused = segment.refused_until_s != 0;
    uint64_t known_s =
        job_segment_reveal_end(&segment) + (tally->unseen > 0 ? 0 : segment.terms->claim_period_s);

    if (address_is_zero(keeper) || !segment.drawn || !segment.covered || segment.final ||
        tally->vouched || (is_refused && address_equal(&record->refuser, keeper))) {
        return false;
    }
    return is_refused || (now_s > known_s && (tally->unseen > 0 || tally->rights == 0));
}

const char *job_status_phase(const struct job_record *record)
{
    switch (record->state.phase) {
    case GAME_PHASE_OPEN:
        return record->state.barred ? "barred" : "open";
    case GAME_PHASE_RUNNING:
        return record->state.refused_until_s != 0 ? "refused" : "running";
    case GAME_PHASE_CLOSED:
        return "closed";
    case GAME_PHASE_NONE:
        break;
    }
    return "unknown";
}

static uint64_t end_of(const struct job_segment *segment, enum job_segment_wait wait)
{
    return wait == JOB_SEGMENT_SEALING      ? job_segment_seal_end(segment)
           : wait == JOB_SEGMENT_REVEALING  ? job_segment_reveal_end(segment)
           : wait == JOB_SEGMENT_CLAIM_TIME ? job_segment_claim_end(segment)
           : wait == JOB_SEGMENT_HELD       ? segment->refused_until_s
                                            : 0;
}

/* Where seats are asked. */
static void describe_round(char text[JOB_STATUS_TEXT_SIZE], const struct job_record_segment *of,
                           const struct job_segment *segment, enum job_segment_wait wait)
{
    char time[TERMS_TIME_SIZE];

    terms_time(time, end_of(segment, wait));
    if (wait == JOB_SEGMENT_SEALING) {
        (void)snprintf(text, JOB_STATUS_TEXT_SIZE, "verdicts: %u of %u sealed, until %s",
                       of->sealed, of->seated, time);
    } else if (wait == JOB_SEGMENT_REVEALING) {
        (void)snprintf(text, JOB_STATUS_TEXT_SIZE,
                       "verdicts to be revealed: %u right, %u unseen so far, until %s",
                       of->draw.rights, of->draw.unseen, time);
    } else {
        (void)snprintf(text, JOB_STATUS_TEXT_SIZE,
                       "another round, which is due: %u right, %u unseen, and %u rights are wanted",
                       of->draw.rights, of->draw.unseen, segment->tally.wanted);
    }
}

/* What nobody can attribute burns on both sides. */
static void describe_lost(char text[JOB_STATUS_TEXT_SIZE], const struct job_segment *segment)
{
    const char *why = segment->refused_until_s != 0 ? "it was refused"
                                                    : "the panel says that its states are missing";

    (void)snprintf(text, JOB_STATUS_TEXT_SIZE,
                   "settle, which is due and makes all that is not final void: %s", why);
}

/* What needs no number. */
static const char *const plain_words[] = {
    [JOB_SEGMENT_UNDRAWN] = "its draw, which is due",
    [JOB_SEGMENT_ROUND_UNDRAWN] = "the draw of another round, which is due",
    [JOB_SEGMENT_UNCOVERED] = "the next segment that the panel looks at: it ends this leg",
    [JOB_SEGMENT_VOUCH] = "settle, which is due: the keeper's vouch saves it from the refusal",
    [JOB_SEGMENT_LEG_BEFORE] = "the legs before it",
    [JOB_SEGMENT_DUE] = "settle, which is due and pays its leg",
    [JOB_SEGMENT_FINAL] = "final",
};

void job_status_describe(struct job_status *waits, const struct job_record *record, uint32_t index,
                         uint64_t now_s)
{
    const struct job_record_segment *of = &record->segments[index];
    struct job_segment segment = job_record_segment(record, index);
    enum job_segment_wait wait = job_segment_waits_for(&segment, now_s);
    char time[TERMS_TIME_SIZE];

    waits->word = job_segment_wait_word(wait);
    waits->until_s = end_of(&segment, wait);
    terms_time(time, waits->until_s);
    switch (wait) {
    case JOB_SEGMENT_SEALING:
    case JOB_SEGMENT_REVEALING:
    case JOB_SEGMENT_ROUND:
        describe_round(waits->text, of, &segment, wait);
        break;
    case JOB_SEGMENT_CLAIM_TIME:
        (void)snprintf(waits->text, JOB_STATUS_TEXT_SIZE, "the end of the time for claims, %s%s",
                       time, segment.tally.vouched ? "; the keeper has its states" : "");
        break;
    case JOB_SEGMENT_HELD:
        (void)snprintf(waits->text, JOB_STATUS_TEXT_SIZE,
                       "the end of the refusal, %s: until then claims, or the keeper's vouch",
                       time);
        break;
    case JOB_SEGMENT_DISPUTED:
        (void)snprintf(waits->text, JOB_STATUS_TEXT_SIZE, "the end of %u open claims",
                       segment.job_claims);
        break;
    case JOB_SEGMENT_LOST:
        describe_lost(waits->text, &segment);
        break;
    case JOB_SEGMENT_UNDRAWN:
    case JOB_SEGMENT_ROUND_UNDRAWN:
    case JOB_SEGMENT_UNCOVERED:
    case JOB_SEGMENT_VOUCH:
    case JOB_SEGMENT_LEG_BEFORE:
    case JOB_SEGMENT_DUE:
    case JOB_SEGMENT_FINAL:
        (void)snprintf(waits->text, JOB_STATUS_TEXT_SIZE, "%s", plain_words[wait]);
        break;
    }
}

/* The covered segment that ends the leg of `index`; record->committed: it is not there yet. */
static uint32_t leg_end_of(const struct job_record *record, uint32_t index)
{
    while (index < record->state.committed && !record->segments[index].draw.covered) {
        index++;
    }
    return index;
}

uint64_t job_status_forecast(const struct job_record *record, uint32_t index, uint64_t now_s)
{
    uint32_t last = leg_end_of(record, index);
    uint64_t final_s = now_s;

    if (last >= record->state.committed) {
        return 0;
    }
    for (uint32_t i = record->state.finalized; i <= last; i++) {
        struct job_segment segment = job_record_segment(record, i);
        enum job_segment_wait wait = job_segment_waits_for(&segment, now_s);
        /* Seats that can still speak find it right, as a rule: then it waits for one claim time. */
        uint64_t end_s = wait == JOB_SEGMENT_SEALING || wait == JOB_SEGMENT_REVEALING
                             ? job_segment_reveal_end(&segment) + record->terms.claim_period_s
                             : job_segment_claim_end(&segment);

        if (wait == JOB_SEGMENT_DISPUTED || wait == JOB_SEGMENT_ROUND ||
            wait == JOB_SEGMENT_ROUND_UNDRAWN || wait == JOB_SEGMENT_UNDRAWN ||
            wait == JOB_SEGMENT_LOST || wait == JOB_SEGMENT_HELD) {
            return 0;
        }
        final_s = segment.covered && end_s > final_s ? end_s : final_s;
    }
    return final_s;
}
