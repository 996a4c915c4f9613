/* ledger_end.c - see ledger_end.h. */
#include "chain/view/ledger_end.h"

#include <stdio.h>

bool ledger_end_is_final(const struct job_record *record)
{
    return record->state.segments > 0 && record->state.finalized == record->state.segments &&
           !record->state.ended;
}

enum round_end ledger_end_trouble(const struct job_record *record)
{
    const struct job_reduced *state = &record->state;
    const bool waits = state->phase == GAME_PHASE_OPEN;

    if (ledger_end_is_final(record)) {
        return ROUND_END_NONE;
    }
    if (state->ended && state->committed > 0 && state->finalized == state->committed) {
        return ROUND_END_DIVERGED;
    }
    if (!waits && state->phase != GAME_PHASE_CLOSED) {
        return ROUND_END_NONE;
    }
    if (state->barred || record->burned_escrow > 0) {
        return ROUND_END_VOID;
    }
    if (record->convicted) {
        return ROUND_END_CONVICTED;
    }
    if (record->accepts > 0) {
        return ROUND_END_LATE;
    }
    return waits ? ROUND_END_NONE : ROUND_END_UNTAKEN;
}

void ledger_end_place(char place[ROUNDS_PLACE_MAX + 1], const struct ledger *ledger)
{
    const struct ledger_place *there = ledger_get_place(ledger);
    char registry[ADDRESS_TEXT_SIZE];

    address_print(registry, &there->registry);
    (void)snprintf(place, ROUNDS_PLACE_MAX + 1, "%.80s %s", there->chain, registry);
}
