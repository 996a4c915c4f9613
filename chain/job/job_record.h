/*
 * job_record.h - the state of one job: who plays, which segments stand, how near each is to final.
 *
 * It follows from the events in their order alone, so it is always consistent; two answers from two
 * endpoints may not be. After a reorganization the event log is read again.
 */
#ifndef CHAIN_JOB_JOB_RECORD_H
#define CHAIN_JOB_JOB_RECORD_H

#include "chain/game/ledger.h"
#include "chain/job/job_card.h"
#include "chain/job/job_reduced.h"
#include "chain/job/job_segment.h"

/* Any more are ignored: each has cost its maker a bond. */
#define JOB_RECORD_SEATS_MAX  (1u << 20)
#define JOB_RECORD_CLAIMS_MAX (1u << 16)

struct job_record_segment {
    struct game_segment committed;
    struct hash32 seed; /* zero: not drawn */
    bool covered;
    bool ended;       /* the draw */
    uint64_t start_s; /* of the last round, or of the commit */
    uint32_t round;
    uint32_t to;     /* the first place that no round has reached */
    uint32_t seated; /* places of this round that have an owner, */
    uint32_t sealed; /* and how many of them sealed a verdict */
    uint32_t rights;
    uint32_t unavailables;
    uint32_t open_claims;
};

/* A place that was drawn, of a segment that stands and is not final. */
struct job_record_seat {
    struct game_segment segment;
    uint32_t place;
    uint32_t entry;
    struct address owner;
    uint32_t round;
    enum game_seat_phase phase; /* NONE: drawn, nothing sealed */
    enum game_verdict verdict;  /* that was revealed */
};

struct job_record_claim {
    struct hash32 key;
    uint32_t index; /* of the segment */
    uint32_t generation;
    uint32_t step; /* within the segment */
    struct digest pre_state;
    struct digest post_state;
    struct address solver; /* the accused */
    struct address lead;
    struct address
        outsiders[GAME_OUTSIDERS_MAX]; /* among the claimants whose clock has not run out */
    uint32_t outsider_count;
    uint64_t rank;
    bool open;
    enum game_outcome outcome; /* when it is not */
    enum game_claim_phase phase;
    enum game_turn turn;
    uint64_t deadline_s;   /* of the turn; 0: it waits */
    uint32_t turns;        /* that began */
    uint32_t queried_size; /* of what was queried last; 0: nothing yet */
    uint8_t queried[GAME_QUERIED_MAX];
};

struct job_record {
    struct hash32 key;
    struct address account; /* whose withdrawals are counted */
    enum game_phase phase;  /* GAME_PHASE_NONE: nobody has opened it yet */
    struct address client;
    struct address solver;
    struct game_terms terms;
    struct job_card card; /* what the client says of the job; for people */
    uint64_t opened_s;    /* and of each return to OPEN */
    uint64_t accepted_s;
    uint64_t closed_s;
    wei reward; /* of a segment, for this solver */
    wei earned; /* by all solvers, with what is held */
    uint32_t generation;
    uint32_t segment_count; /* of the whole job */
    uint32_t committed;
    uint32_t finalized;
    uint32_t held;  /* segments of which this solver's held part waits */
    uint64_t due_s; /* RUNNING: the next segment must be committed by then */
    bool ended;     /* the last committed segment diverged */
    bool cancelled;
    bool asked; /* the client asked the panel for the last state */
    bool delivered;
    uint32_t accepts;             /* how often the job was accepted */
    struct address last_accepted; /* the last solver to accept it */
    bool convicted;               /* the last solver was */
    uint64_t changed_height;      /* of the block in which the solver last changed */
    uint64_t withdrawals;
    struct job_entry *entries; /* the panel */
    uint32_t entry_count;
    uint32_t entry_room;
    struct job_record_segment *segments; /* `committed` of them */
    uint32_t segment_room;
    struct job_record_seat *seats;
    uint32_t seat_count;
    uint32_t seat_room;
    struct job_record_claim *claims;
    uint32_t claim_count;
    uint32_t claim_room;
    uint32_t unpaid;  /* the generation of a conviction whose pot is not paid; UINT32_MAX: none */
    uint64_t read;    /* the number of the last entry */
    uint64_t rewound; /* the number of the last rewind of the log */
};

/* account may be NULL. */
void job_record_init(struct job_record *record, const struct hash32 *key,
                     const struct address *account);
void job_record_free(struct job_record *record);

/* Reads the new entries of the event log. */
MUST_CHECK enum status job_record_follow(struct job_record *record, struct ledger *ledger,
                                         struct error *error);

/* One entry, in order, for a caller that reads the event log for many jobs. After a new rewind
 * record->read is 0: read the event log from the beginning. */
MUST_CHECK enum status job_record_take(struct job_record *record, const struct ledger_entry *entry,
                                       struct error *error);

/* A segment that stands, and what job_segment.h says of it. */
struct job_segment job_record_segment(const struct job_record *record, uint32_t index);

/* Can its panel say that the last final state is nowhere? A small one never reaches that score. */
bool job_record_can_deny(const struct job_record *record);
enum job_segment_wait job_record_waits_for(const struct job_record *record, uint32_t index,
                                           uint64_t now_s);

/* Claims that are open about segments that stand. */
uint32_t job_record_open_claims(const struct job_record *record);
/* Entries that are drawn for new segments. */
uint32_t job_record_panel(const struct job_record *record);

/* Does it lead the claim, or wait to take over? Seats are known by their entries, and not here. */
bool job_record_is_claimant(const struct job_record_claim *claim, const struct address *account);

/* Has a claim with a lower rank convicted its solver, before that answered this one? */
bool job_record_claim_is_overtaken(const struct job_record *record,
                                   const struct job_record_claim *claim);

#endif /* CHAIN_JOB_JOB_RECORD_H */
