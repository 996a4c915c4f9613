/* job_view.c - see job_view.h. */
#include "chain/view/job_view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "chain/game/terms.h"

/* ---- segments ------------------------------------------------------------------------ */

/* What a segment's square shows. */
static enum job_view_mark mark_of(const struct job_record *record, uint32_t index, uint64_t now_s)
{
    if (index >= record->state.committed) {
        return JOB_VIEW_TO_COME;
    }
    switch (job_record_waits_for(record, index, now_s)) {
    case JOB_SEGMENT_FINAL:
        return JOB_VIEW_FINAL;
    case JOB_SEGMENT_DISPUTED:
    case JOB_SEGMENT_HELD:
    case JOB_SEGMENT_LOST:
        return JOB_VIEW_DISPUTED;
    case JOB_SEGMENT_SEALING:
    case JOB_SEGMENT_REVEALING:
    case JOB_SEGMENT_ROUND:
    case JOB_SEGMENT_ROUND_UNDRAWN:
        return JOB_VIEW_VERIFIED;
    case JOB_SEGMENT_UNDRAWN:
    case JOB_SEGMENT_CLAIM_TIME:
    case JOB_SEGMENT_UNCOVERED:
    case JOB_SEGMENT_VOUCH:
    case JOB_SEGMENT_LEG_BEFORE:
    case JOB_SEGMENT_DUE:
        break;
    }
    return JOB_VIEW_COMMITTED;
}

const char *job_view_mark_word(enum job_view_mark mark)
{
    static const char *const words[JOB_VIEW_MARKS] = {
        "to come", "committed", "final", "being verified", "trained", "disputed, refused or lost"};

    return words[mark];
}

uint32_t job_view_each(uint32_t segments, uint32_t squares)
{
    return segments <= squares ? 1 : (segments + squares - 1) / squares;
}

uint32_t job_view_squares(uint8_t *squares, uint32_t most, uint32_t marks[JOB_VIEW_MARKS],
                          const struct job_record *record, uint64_t now_s)
{
    uint32_t each = job_view_each(record->state.segments, most);

    memset(marks, 0, JOB_VIEW_MARKS * sizeof(marks[0]));
    for (uint32_t i = 0; i < record->state.segments; i++) {
        enum job_view_mark mark = mark_of(record, i, now_s);

        marks[mark]++;
        if (i % each == 0 || mark == JOB_VIEW_DISPUTED) {
            squares[i / each] = (uint8_t)mark;
        }
    }
    return (record->state.segments + each - 1) / each;
}

void job_standing_mark_trained(struct job_standing *standing, uint32_t trained)
{
    for (uint32_t i = standing->committed; i < trained && i < standing->segments; i++) {
        uint8_t *cell = &standing->cells[i / standing->cell_segments];

        standing->marks[JOB_VIEW_TO_COME]--;
        standing->marks[JOB_VIEW_TRAINED]++;
        *cell = *cell == JOB_VIEW_TO_COME ? JOB_VIEW_TRAINED : *cell;
    }
}

/* ---- the whole ----------------------------------------------------------------------- */

/* By the commits of the present solver, from the first to the last. */
static double pace_of(const struct job_record *record)
{
    uint64_t from_s = record->accepted_s;
    uint64_t steps = 0;
    uint64_t to_s = 0;
    uint32_t i = record->state.committed;

    while (i > 0 &&
           address_equal(&record->segments[i - 1].committed.solver, &record->state.solver)) {
        const struct game_segment *segment = &record->segments[--i].committed;

        to_s = to_s == 0 ? segment->time_s : to_s;
        if (i == 0 || segment->time_s < from_s) {
            break;
        }
    }
    for (uint32_t k = i; k < record->state.committed; k++) {
        steps += record->segments[k].committed.steps;
    }
    return to_s <= from_s ? 0 : (double)steps / (double)(to_s - from_s);
}

static void take_money(struct job_standing *standing, const struct job_record *record)
{
    bool open = record->state.phase == GAME_PHASE_OPEN || record->state.phase == GAME_PHASE_RUNNING;
    wei left = (record->state.segments - record->state.finalized) * record->terms.reward;

    standing->escrow = game_escrow(&record->terms);
    standing->stake = record->state.phase == GAME_PHASE_RUNNING ? record->terms.stake : 0;
    standing->earned = record->earned;
    standing->pool = record->pool;
    standing->to_come = open ? left - record->state.missing_escrow : 0;
    standing->missing = record->state.missing_escrow + record->state.missing_pool;
    standing->burned_client = record->burned_escrow + record->burned_pool;
    standing->burned_solver = record->burned_stake;
}

/* Since when the keeper has said nothing, though it matters; 0: it does not. */
static uint64_t keeper_silent_since(const struct job_record *record, uint64_t now_s)
{
    uint64_t since_s = 0;

    for (uint32_t i = record->state.finalized; i < record->state.committed; i++) {
        uint64_t start_s = job_record_segment(record, i).start_s;

        if (job_status_lacks_vouch(record, i, now_s) && (since_s == 0 || start_s < since_s)) {
            since_s = start_s;
        }
    }
    return since_s != 0 && since_s < record->vouched_s ? record->vouched_s : since_s;
}

static void take_alert(struct job_standing *standing, const struct job_record *record,
                       uint64_t now_s)
{
    uint64_t since_s = keeper_silent_since(record, now_s);
    bool by_keeper = address_equal(&record->refuser, &record->terms.keeper);
    char text[WEI_TEXT_SIZE > TERMS_TIME_SIZE ? WEI_TEXT_SIZE : TERMS_TIME_SIZE];

    standing->alert[0] = '\0';
    if (record->state.barred && record->state.phase == GAME_PHASE_OPEN) {
        currency_print(text, &record->currency, standing->missing);
        (void)snprintf(standing->alert, sizeof(standing->alert),
                       "the job is barred: %s burned, which its client puts back to go on", text);
    } else if (since_s != 0) {
        (void)snprintf(standing->alert, sizeof(standing->alert),
                       "the keeper of this job has vouched nothing for %" PRIu64 " minutes",
                       (now_s > since_s ? now_s - since_s : 0) / 60);
    } else if (record->state.refused_until_s != 0) {
        terms_time(text, record->state.refused_until_s);
        (void)snprintf(standing->alert, sizeof(standing->alert),
                       "refused by the %s: what nobody vouched for is void after %s",
                       by_keeper ? "keeper" : "client", text);
    }
}

void job_standing_take(struct job_standing *standing, const struct job_record *record,
                       uint64_t now_s)
{
    bool is_accepted =
        record->state.phase == GAME_PHASE_RUNNING || record->state.phase == GAME_PHASE_CLOSED;

    standing->read = true;
    standing->key = record->key;
    standing->currency = record->currency;
    standing->client = record->client;
    standing->solver = is_accepted ? record->state.solver : (struct address){{0}};
    standing->phase = job_status_phase(record);
    standing->now_s = now_s;
    standing->segments = record->state.segments;
    standing->committed = record->state.committed;
    standing->finalized = record->state.finalized;
    standing->claims = job_record_open_claims(record);
    standing->steps = record->terms.steps;
    standing->steps_committed = 0;
    for (uint32_t i = 0; i < record->state.committed; i++) {
        standing->steps_committed += record->segments[i].committed.steps;
    }
    standing->cell_segments = job_view_each(record->state.segments, JOB_VIEW_CELLS_MAX);
    standing->cell_count =
        job_view_squares(standing->cells, JOB_VIEW_CELLS_MAX, standing->marks, record, now_s);
    take_money(standing, record);
    take_alert(standing, record, now_s);
    standing->pace = pace_of(record);
    standing->forecast_s = record->state.finalized < record->state.committed
                               ? job_status_forecast(record, record->state.finalized, now_s)
                               : 0;
    standing->over = job_wait_is_over(record);
    standing->waits = job_wait_describe(&standing->wait, record, now_s);
}

const char *job_view_word(const struct job_view *view)
{
    return job_card_trains(&view->card) ? "training" : "running";
}

uint64_t job_view_done(const struct job_view *view)
{
    return view->trained > view->standing.steps_committed ? view->trained
                                                          : view->standing.steps_committed;
}

double job_view_pace(const struct job_view *view)
{
    return view->trained == 0 && view->standing.pace > 0 ? view->standing.pace : view->curve_pace;
}

double job_view_left_s(const struct job_view *view)
{
    double pace = job_view_pace(view);

    return pace > 0 && job_view_done(view) < view->steps
               ? (double)(view->steps - job_view_done(view)) / pace
               : 0;
}

void job_view_map(struct sheet_squares *squares, const struct job_standing *standing)
{
    *squares = (struct sheet_squares){.name = "segments by state",
                                      .unit = "segment",
                                      .marks = standing->cells,
                                      .count = standing->cell_count,
                                      .each = standing->cell_segments,
                                      .total = standing->segments};
    for (int i = 0; i < JOB_VIEW_MARKS; i++) {
        squares->words[i] = job_view_mark_word((enum job_view_mark)i);
        squares->counts[i] = standing->marks[i];
    }
}
