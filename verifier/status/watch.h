/*
 * watch.h - all jobs of a ledger for a reader: what each segment waits for, when it can be final,
 * whose turn it is in each dispute, and what is wrong.
 *
 * It follows from the event log and the ledger's clock alone. Nothing is replayed or signed, and no
 * attestor is trusted: reveals of the same step are compared with each other.
 */
#ifndef VERIFIER_STATUS_WATCH_H
#define VERIFIER_STATUS_WATCH_H

#include "chain/job/job_record.h"

#define WATCH_JOBS_MAX    4096 /* later ones are only counted */
#define WATCH_CLAIMS_MAX  (1u << 16)
#define WATCH_REVEALS_MAX (1u << 20)
#define WATCH_ALARMS_MAX  1024

enum watch_alarm_kind {
    WATCH_SOLVER_LATE,  /* the next segment is overdue, or due soon */
    WATCH_UNCOVERED,    /* too few attestors, and little or no time left for more */
    WATCH_REVEAL_DUE,   /* attestors that did not reveal are about to lose their bonds */
    WATCH_TURN,         /* a dispute whose next move is due soon, or overdue */
    WATCH_DISAGREEMENT, /* two attestors revealed different trace roots of one step */
    WATCH_CONVICTED,    /* a solver was, and nobody has accepted the job since */
};

struct watch_alarm {
    enum watch_alarm_kind kind;
    struct hash32 job;
    uint32_t index;      /* of the segment */
    struct hash32 claim; /* zero where it is about none */
    uint64_t due_s;      /* 0: not about a deadline */
    char text[256];      /* without times: the same trouble has the same text */
};

struct watch_claim {
    struct hash32 key;
    struct hash32 job;
    uint32_t index;
    struct address claimant;
    struct address attestor; /* zero: the solver is accused */
    enum game_claim_phase phase;
    enum game_turn turn;
    uint64_t deadline_s;
};

struct watch_reveal {
    uint32_t job; /* index in watch->jobs */
    uint32_t index;
    struct digest root; /* of the segment as it was committed then */
    uint32_t step;
    struct address account;
    struct digest trace_root;
};

struct watch {
    struct job_record *jobs;
    uint32_t job_count;
    uint32_t job_room;
    uint32_t jobs_left_out;
    struct watch_claim *claims; /* those that are open */
    uint32_t claim_count;
    uint32_t claim_room;
    struct watch_reveal *reveals;
    uint32_t reveal_count;
    uint32_t reveal_room;
    uint64_t read; /* the number of the last entry */
    uint64_t rewound;
};

void watch_init(struct watch *watch);
void watch_free(struct watch *watch);

/* One entry of the event log. After a new rewind watch->read is 0: read it from the beginning. */
MUST_CHECK enum status watch_take(struct watch *watch, const struct ledger_entry *entry,
                                  struct error *error);
/* All new entries. */
MUST_CHECK enum status watch_follow(struct watch *watch, struct ledger *ledger,
                                    struct error *error);

/* When the segment is final if everybody moves in time and nobody claims; 0: unknown, since it is
 * disputed, needs another round, or can never be final. */
uint64_t watch_forecast(const struct job_record *job, uint32_t index, uint64_t now_s);

/* "attesting": for people and JSON. */
const char *watch_wait_name(enum job_segment_wait wait);
const char *watch_alarm_name(enum watch_alarm_kind kind);

/* Writes what is wrong at now_s, or will be within margin_s; returns how many were written. */
uint32_t watch_alarms(struct watch_alarm alarms[WATCH_ALARMS_MAX], const struct watch *watch,
                      uint64_t now_s, uint64_t margin_s);

#endif /* VERIFIER_STATUS_WATCH_H */
