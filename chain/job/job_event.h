/*
 * job_event.h - what an event of the ledger does to the phase of its job, and who has the places of
 * a round.
 *
 * Events carry nearly all that changes. This is the rest, in one place, for job_reduced.h and for
 * who finds places.
 */
#ifndef CHAIN_JOB_JOB_EVENT_H
#define CHAIN_JOB_JOB_EVENT_H

#include "chain/game/ledger.h"
#include "chain/game/vouch.h"

/* The phase that the event's job enters; GAME_PHASE_NONE: it stays in its phase. */
enum game_phase job_event_phase(enum game_event_kind kind);

/* Does it end a tenure: void, convicted or released? What is not final is void then, and the job
 * has a new generation. */
bool job_event_reopens(enum game_event_kind kind);

/* Does the event name a claim, and only by that its job? */
bool job_event_is_of_claim(enum game_event_kind kind);

/* "upheld", "refuted", "lapsed". */
const char *job_outcome_name(enum game_outcome outcome);
/* "right", "false"; "none". */
const char *job_verdict_name(enum game_verdict verdict);

/* ---- places ------------------------------------------------------------------- */

/* An entry of the panel of one generation. */
struct job_entry {
    struct address owner;
    bool gone; /* its bond was paid out, or lost */
};

struct job_place {
    uint32_t place;
    uint32_t entry;
    struct address owner;
};

/* Where the walk finds what it needs. find gives false for an entry that is not known. */
struct job_panel {
    void *context;
    bool (*find)(void *context, struct job_entry *entry, uint32_t number);
    /* Has the entry a place of this segment already? */
    bool (*is_seated)(void *context, uint32_t number);
};

/* The places of a round that belong to somebody; returns how many. At the event ROUND. */
uint32_t job_round_places(struct job_place places[GAME_PLACES_MAX], const struct hash32 *seed,
                          const struct game_segment *segment, uint32_t from, uint32_t to,
                          const struct job_panel *panel);

/* ---- the keeper --------------------------------------------------------------- */

/* ANNOUNCED: does the job's keeper hand a vouch over? Nobody has looked whether it is valid. Its
 * other announcements say where it is found. */
bool job_event_vouch(struct vouch *vouch, const struct game_event *event,
                     const struct address *keeper);

#endif /* CHAIN_JOB_JOB_EVENT_H */
