/* job_event.c - see job_event.h. */
#include "chain/job/job_event.h"

enum game_phase job_event_phase(enum game_event_kind kind)
{
    switch ((int)kind) {
    case GAME_OPENED:
    case GAME_VOIDED:
    case GAME_CONVICTED:
    case GAME_RELEASED:
        return GAME_PHASE_OPEN;
    case GAME_ACCEPTED:
        return GAME_PHASE_RUNNING;
    case GAME_CLOSED:
        return GAME_PHASE_CLOSED;
    default:
        return GAME_PHASE_NONE;
    }
}

bool job_event_reopens(enum game_event_kind kind)
{
    return kind == GAME_VOIDED || kind == GAME_CONVICTED || kind == GAME_RELEASED;
}

bool job_event_is_of_claim(enum game_event_kind kind)
{
    return kind == GAME_TURN_PASSED || kind == GAME_ANSWERED || kind == GAME_DEFAULTED ||
           kind == GAME_RULED || kind == GAME_QUERIED || kind == GAME_REPLIED;
}

const char *job_outcome_name(enum game_outcome outcome)
{
    static const char *const names[] = {
        [GAME_UPHELD] = "upheld", [GAME_REFUTED] = "refuted", [GAME_LAPSED] = "lapsed"};

    return names[outcome];
}

const char *job_verdict_name(enum game_verdict verdict)
{
    static const char *const names[] = {[GAME_VERDICT_NONE] = "none",
                                        [GAME_VERDICT_RIGHT] = "right",
                                        [GAME_VERDICT_FALSE] = "false"};

    return names[verdict];
}

/* ---- places ------------------------------------------------------------------- */

static bool is_among(const struct job_place *places, uint32_t count, uint32_t entry)
{
    for (uint32_t i = 0; i < count; i++) {
        if (places[i].entry == entry) {
            return true;
        }
    }
    return false;
}

uint32_t job_round_places(struct job_place places[GAME_PLACES_MAX], const struct hash32 *seed,
                          const struct game_segment *segment, uint32_t from, uint32_t to,
                          const struct job_panel *panel)
{
    uint32_t count = 0;

    for (uint32_t at = from; at < to && at < GAME_PLACES_MAX && segment->panel > 0; at++) {
        uint32_t number = game_place_entry(seed, at, segment->panel);
        struct job_entry entry;

        if (panel->find(panel->context, &entry, number) && !entry.gone &&
            !address_equal(&entry.owner, &segment->solver) && !is_among(places, count, number) &&
            !panel->is_seated(panel->context, number)) {
            places[count++] =
                (struct job_place){.place = at, .entry = number, .owner = entry.owner};
        }
    }
    return count;
}

/* ---- the keeper --------------------------------------------------------------- */

bool job_event_vouch(struct vouch *vouch, const struct game_event *event,
                     const struct address *keeper)
{
    return address_equal(&event->account, keeper) && vouch_read(vouch, &event->contact);
}
